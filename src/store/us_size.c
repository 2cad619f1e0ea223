
/*
 * The SIZE of a zone in which a stream of operations fits.  It is counted while
 * the stream is replayed, also after the zone has turned out to be too small.
 *
 * All areas but the index are counted as a replay fills them.  The index is
 * bounded by its number of entries (us_bulk_chunks()), which are the URLs that
 * are not deleted, and the sites.  The sites of ids that were decoded are
 * counted.  A dump states its number of entries.  Any other id is assumed to be
 * the first of a site, so the SIZE may be larger than needed.  After a larger
 * zone has loaded everything, no such id is left.
 */


#include "us_size.h"
#include "us_bulk.h"
#include "../zone/us_log.h"
#include "../codec/us_model.h"
#include "us_shard.h"
#include "us_sites.h"
#include "us_store.h"

#include <stdlib.h>


/* ids for which 16 KiB of bits are taken; no chunk is smaller */
#define US_SIZE_BITS_SHIFT  17

/* the same of claims */
#define US_SIZE_CLAIMS_SHIFT  12

/* zones of 64 TiB are not looked for */
#define US_SIZE_MAX         ((uint64_t) 1 << 46)

/*
 * So many ids are merged into the index at once, when all deletes are known.
 * More: an earlier merge may have had more entries than there are at the end.
 */
#define US_SIZE_AT_ONCE     (US_BULK_MEMORY / 32)


static int
us_size_at(us_size_bits_t *b, uint64_t at)
{
    size_t     n;
    uint64_t  *words;

    /* such ids are not given */

    if (at >> 24) {
        return 0;
    }

    if (at / 64 >= b->n) {
        n = at / 64 + 1;
        words = realloc(b->words, n * sizeof(uint64_t));

        if (words == NULL) {
            return -1;
        }

        memset(words + b->n, 0, (n - b->n) * sizeof(uint64_t));
        b->words = words;
        b->n = n;
    }

    b->words[at / 64] |= (uint64_t) 1 << at % 64;

    return 0;
}


static int
us_size_bit(us_size_bits_t *b, uint64_t id)
{
    return us_size_at(b, id >> US_SIZE_BITS_SHIFT);
}


static int
us_size_claim(us_size_t *z, uint64_t id)
{
    return us_size_at(&z->claims, id >> US_SIZE_CLAIMS_SHIFT);
}


/* the ids of one claim */

static int
us_size_claims(us_size_t *z, const us_op_t *op)
{
    uint64_t        id;
    const uint8_t  *p, *end;

    p = op->bytes.data;
    end = p + op->bytes.len;
    id = US_STORE_NO_ID;

    while (op->id && us_op_id_read(&p, end, id, &id) > 0) {
        if (us_size_claim(z, id) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
us_size_claim_words(us_size_t *z, const us_op_t *op)
{
    size_t    i;
    uint64_t  word, ids;

    ids = op->type == US_OP_CLAIMS ? 2 : 4;

    for (i = 0; i < op->bytes.len / 8; i++) {
        memcpy(&word, op->bytes.data + i * 8, 8);

        if (word && us_size_claim(z, (op->id + i) * ids) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
us_size_words(us_size_t *z, us_size_bits_t *b, const us_op_t *op)
{
    size_t    i;
    uint64_t  word;

    for (i = 0; i < op->bytes.len / 8; i++) {
        memcpy(&word, op->bytes.data + i * 8, 8);

        if (word && us_size_bit(b, (op->id + i) * 64) != 0) {
            return -1;
        }

        if (op->type == US_OP_DELETED) {
            z->deleted += (uint64_t) __builtin_popcountll(word);
        }
    }

    return 0;
}


int
us_size_add(us_size_t *z, const us_op_t *op)
{
    uint64_t  n;

    switch (op->type) {

    case US_OP_ADD:
        z->ids++;
        z->units += us_log_units(op->units);
        z->length += us_log_length(op->units);

        return z->clock ? us_size_claim(z, z->ids - 1) : 0;

    case US_OP_DELETE:
        z->deleted++;
        return us_size_bit(&z->bits[0], op->id);

    case US_OP_MARK:
        return us_size_bit(&z->bits[1 + op->mark], op->id);

    case US_OP_MARKS:
        return us_size_words(z, &z->bits[1 + op->mark], op);

    case US_OP_DELETED:
        return us_size_words(z, &z->bits[0], op);

    case US_OP_CLOCK:
        z->clock = 1;
        return 0;

    case US_OP_CLAIM:
        return us_size_claims(z, op);

    case US_OP_CLAIMS:
    case US_OP_CLAIMS_SHORT:
        return us_size_claim_words(z, op);

    case US_OP_EXPECT:
        z->entries = op->id;
        return 0;

    case US_OP_MODEL:
        if (z->nmodels < US_MODELS_MAX) {
            z->models[z->nmodels++] = op->bytes.len;
        }

        return 0;

    case US_OP_AT:

        /* the end of a dump that said what to expect */

        if (z->entries && z->counted == 0) {
            z->counted = op->id;
        }

        return 0;

    case US_OP_MAP:
        n = sizeof(us_store_map_t) + op->bytes.len;
        z->map = n > z->map ? n : z->map;
        return 0;

    default:
        return 0;
    }
}


void
us_size_free(us_size_t *z)
{
    unsigned  i;

    for (i = 0; i < 1 + US_STORE_MARKS; i++) {
        free(z->bits[i].words);
    }

    free(z->claims.words);
}


void
us_size_exact(us_size_t *z, uint64_t entries, uint64_t sites)
{
    z->known = z->ids;
    z->sites = sites;
    z->counted = z->ids;
    z->entries = entries;
}


/* sites that there can be: each id that was not decoded may begin one */

static uint64_t
us_size_sites(const us_size_t *z)
{
    return z->sites + z->ids - z->known;
}


/* entries of the index: of a dump, and for each id that follows, two */

static uint64_t
us_size_entries(const us_size_t *z)
{
    uint64_t  n;

    n = z->ids + us_size_sites(z);

    if (z->ids <= US_SIZE_AT_ONCE && z->deleted <= z->ids) {
        n -= z->deleted;
    }

    if (z->counted && z->entries + 2 * (z->ids - z->counted) < n) {
        n = z->entries + 2 * (z->ids - z->counted);
    }

    return n;
}


static inline uint64_t
us_size_up(uint64_t bytes, unsigned shift)
{
    return (bytes + ((uint64_t) 1 << shift) - 1) >> shift;
}


/* chunks of one area of bits */

static uint64_t
us_size_bits(const us_size_bits_t *b, unsigned shift)
{
    uint64_t  i, n, last;

    n = 0;
    last = UINT64_MAX;

    for (i = 0; i < b->n * 64; i++) {
        if ((b->words[i / 64] >> i % 64 & 1) && i >> shift != last) {
            last = i >> shift;
            n++;
        }
    }

    return n;
}


/* chunks of all areas */

static uint64_t
us_size_chunks(const us_size_t *z, const us_store_conf_t *conf,
    const us_layout_t *l)
{
    unsigned  i, shift;
    uint64_t  n, sum;

    shift = l->chunk_shift;

    sum = z->ids ? ((z->ids - 1) / US_LOG_GROUP * 64 >> shift) + 1 : 0;
    sum += us_size_up(z->length, shift);

    if (conf->sites) {
        sum += us_size_up(us_size_sites(z) * US_SITE_SIZE, shift);
    }

    for (i = 0; i < z->nmodels; i++) {
        sum += us_size_up(z->models[i] + US_MODEL_FIRST, shift);
    }

    for (i = 0; i < 1 + conf->nmarks; i++) {
        n = us_size_bits(&z->bits[i], shift - US_SIZE_BITS_SHIFT + 3);
        sum += n;
    }

    sum += us_size_bits(&z->claims, shift - US_SIZE_CLAIMS_SHIFT - 2);

    sum += z->map ? l->area[US_AREA_MAPS].max : 0;

    if (!conf->lookup) {
        n = us_size_entries(z);
        sum += us_bulk_chunks(shift, l->leaf_shift, us_bulk_leaves(n), n,
                              z->ids);
    }

    return sum;
}


static int
us_size_fits(const us_size_t *z, const us_store_conf_t *conf, uint64_t size,
    us_layout_t *l)
{
    uint64_t  bytes;

    if (us_arena_layout(size, conf, l) != 0
        || l->area[US_AREA_MAPS].max / 2 << l->chunk_shift < z->map)
    {
        return 0;
    }

    bytes = l->log + (z->units + 1) / 2 + US_LOG_GUARD;

    return bytes + (us_size_chunks(z, conf, l) << l->chunk_shift)
           <= l->chunks << l->chunk_shift;
}


uint64_t
us_size_zone(const us_size_t *z, us_store_conf_t *conf, int journal)
{
    uint64_t     size;
    us_layout_t  l;

    conf->ring = journal ? us_store_ring(0) : 0;

    size = us_arena_min_size(conf);
    size = z->units / 2 > size ? z->units / 2 & ~(uint64_t) 4095 : size;

    for ( /* void */ ; size < US_SIZE_MAX;
         size += (uint64_t) 1 << l.chunk_shift)
    {
        /* the zone has more bytes than its store: the next larger ring */

        conf->ring = journal ? us_store_ring(size + size / 16) : 0;

        if (us_size_fits(z, conf, size, &l)) {
            return size;
        }
    }

    return 0;
}
