
/*
 * Layout of the zone, allotment of chunks, and the intent: see us_arena.h.
 */


#include "us_arena.h"


#define US_CHUNK_SHIFT_MIN  14
#define US_CHUNK_SHIFT_MAX  20

/* more chunks only if they have their greatest size */
#define US_CHUNKS_MAX       49152

/* leaves have sizes of so many bytes, in a zone of up to 32 GiB */
#ifndef US_LEAF_SHIFT
#define US_LEAF_SHIFT       3
#endif

/* the smallest zone has a few chunks for each area, and some log */
#define US_CHUNKS_MIN       16

/*
 * A reader of a leaf reads past its end by this many bytes at most.  A reader
 * that takes other bytes for a header reads as far as the largest leaf that a
 * header can describe.
 */
#define US_LEAF_GUARD       4096

/* the memory of retries is a 256th of the zone, and no less than this */
#define US_KEYS_PART        256
#define US_KEYS_MIN         (16 * 1024)
#define US_KEYS_LEAST       (8 * 1024)        /* fewer are all slack: none */


static inline uint64_t
us_align(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1);
}


static unsigned
us_chunk_shift(size_t size)
{
    unsigned  shift;

    shift = US_CHUNK_SHIFT_MIN;

    while (shift < US_CHUNK_SHIFT_MAX && (size >> shift) > US_CHUNKS_MAX) {
        shift++;
    }

    return shift;
}


/*
 * Entries of an area's directory: what the area can come to own at most.  For
 * the leaf directory, a power of two: it is a ring.
 */

static uint64_t
us_area_max(us_area_id_t id, const us_layout_t *l,
    const us_store_conf_t *conf)
{
    uint64_t  n, max;

    n = l->chunks;

    switch (id) {

    case US_AREA_LEAVES:
        return 0;

    case US_AREA_MAPS:

        /* two maps, of a 128th of the zone each, if the longest is longer */

        max = ((US_MAP_ROOM_MAX - 1) >> l->chunk_shift) + 1;
        return 2 * (n / 128 + 1 < max ? n / 128 + 1 : max);

    case US_AREA_OFFSETS:
    case US_AREA_LONG:
    case US_AREA_MEMBERS:
        return n;

    case US_AREA_SETS:

        /* a row of 128 bytes for each set, and for those being dropped */

        max = (((uint64_t) 65536 * 128 - 1) >> l->chunk_shift) + 1;
        return max < n ? max : n;

    case US_AREA_SITES:
        return conf->sites ? n : 0;

    case US_AREA_DIRECTORY:
        for (max = 8; max < n / 32; max *= 2) { /* void */ }
        return max;

    case US_AREA_CACHE:
    case US_AREA_MODELS:
        return n / 4 + 8;

    case US_AREA_ERASURES:
    case US_AREA_REASONS:
        return n / 4 + 1;

    case US_AREA_ERASED:

        /* two tables, of a quarter of the zone each at most */

        return 2 * (n / 4 + 1);

    case US_AREA_CLAIMS:

        /*
         * Four bytes for an id, beside its URL's two.  There is a directory
         * also in a store that keeps no claims: it may get them later.
         */

        return n / 3 * 2 + 2;

    default:

        /* one bit for an id; no URL takes less than two bytes in all */

        return n / 16 + 1;
    }
}


int
us_arena_open(us_arena_t *a, void *mem)
{
    us_head_t  *h;

    h = mem;

    if (h->magic != US_MAGIC || h->layout != US_LAYOUT
        || h->byte_order != US_BYTE_ORDER)
    {
        return -1;
    }

    a->base = mem;
    a->head = h;
    a->chunk_shift = h->chunk_shift;
    a->intents = 0;
    a->keep = 0;
    a->slack = 0;

    return 0;
}


int
us_arena_layout(size_t size, const us_store_conf_t *conf, us_layout_t *l)
{
    unsigned  i;
    uint64_t  pos, guard, bytes;

    l->chunk_shift = us_chunk_shift(size);

    /* the unit of leaves: their addresses must fit 32 bits */

    l->leaf_shift = US_LEAF_SHIFT;

    while (size >> l->leaf_shift > UINT32_MAX) {
        l->leaf_shift++;
    }

    /* whole chunks; enough bytes follow them for readers of the last one */

    guard = (uint64_t) US_LEAF_SIZES << l->leaf_shift;
    guard = guard > US_LEAF_GUARD ? guard : US_LEAF_GUARD;
    l->chunks = (size - guard) >> l->chunk_shift;

    pos = us_align(sizeof(us_head_t), 64);

    for (i = 0; i < US_AREAS; i++) {
        l->area[i].n = 0;
        l->area[i].max = us_area_max(i, l, conf);
        l->area[i].directory = pos;
        pos = us_align(pos + l->area[i].max * sizeof(uint32_t), 64);
    }

    bytes = size / US_KEYS_PART;
    bytes = bytes > US_KEYS_MIN ? bytes : US_KEYS_MIN;
    bytes = conf->keys < bytes ? conf->keys : bytes;

    l->keys = pos;
    l->keys_n = bytes < US_KEYS_LEAST ? 0 : bytes / US_KEYS_EACH;
    l->ring = us_align(pos + l->keys_n * US_KEYS_EACH, 64);
    l->log = us_align(l->ring + conf->ring, 64);

    return l->log + ((uint64_t) US_CHUNKS_MIN << l->chunk_shift)
           <= l->chunks << l->chunk_shift ? 0 : -1;
}


size_t
us_arena_min_size(const us_store_conf_t *conf)
{
    size_t       size;
    us_layout_t  layout;

    size = (size_t) 1 << US_CHUNK_SHIFT_MIN;

    while (us_arena_layout(size, conf, &layout) != 0) {
        size += (size_t) 1 << us_chunk_shift(size);
    }

    return size;
}


int
us_arena_format(us_arena_t *a, void *mem, size_t size,
    const us_store_conf_t *conf)
{
    unsigned      i;
    us_head_t    *h;
    us_layout_t   l;

    if (us_arena_layout(size, conf, &l) != 0) {
        return -1;
    }

    h = mem;

    memcpy(h->area, l.area, sizeof(l.area));

    h->log = l.log;
    h->ring = l.ring;
    h->ring_size = conf->ring;
    h->keys = l.keys;
    h->keys_n = l.keys_n;
    h->keys_most = conf->keys;

    h->leaf_shift = l.leaf_shift;
    h->magic = US_MAGIC;
    h->layout = US_LAYOUT;
    h->byte_order = US_BYTE_ORDER;
    h->epoch = conf->epoch;
    h->size = size;
    h->chunk_shift = l.chunk_shift;
    h->nmarks = conf->nmarks;
    h->revisit = conf->revisit;
    h->shard = conf->is_shard ? (uint64_t) conf->shard + 1 : 0;
    h->fenced = conf->fenced;
    h->flags = (conf->schemes_first ? US_HEAD_SCHEMES_FIRST : 0)
               | (conf->sites ? US_HEAD_SITES : 0)
               | (conf->lookup ? US_HEAD_LOOKUP : 0)
               | (conf->sets ? US_HEAD_NAMES : 0)
               | (conf->erases ? US_HEAD_ERASES : 0);

    memcpy(h->uuid, conf->uuid, sizeof(h->uuid));
    memcpy(h->hash_key, conf->hash_key, sizeof(h->hash_key));

    h->norm_len = conf->norm.len < US_STORE_NORM_LEN ? conf->norm.len
                                                     : US_STORE_NORM_LEN;
    memcpy(h->norm, conf->norm.data, h->norm_len);

    for (i = 0; i < conf->nmarks; i++) {
        h->mark_len[i] = conf->marks[i].len < US_STORE_MARK_LEN
                         ? conf->marks[i].len : US_STORE_MARK_LEN;
        memcpy(h->mark[i], conf->marks[i].data, h->mark_len[i]);
    }

    h->chunks_low = l.chunks;
    h->log_end = h->log * 2;

    return us_arena_open(a, mem);
}


uint64_t
us_arena_take_locked(us_arena_t *a, us_area_id_t id, size_t n)
{
    size_t      i;
    int64_t     gap;
    uint64_t    keep, *chunk;
    us_head_t  *h;

    h = a->head;
    gap = us_arena_gap(a, 0);
    keep = id == US_AREA_LEAVES || id == US_AREA_DIRECTORY
           || id == US_AREA_CACHE ? 0
           : id == US_AREA_MEMBERS ? a->keep : a->keep + a->slack;

    if (gap < 0 || (uint64_t) gap + h->nspare < n + keep
        || (n > 1 && (uint64_t) gap < n))
    {
        return 0;
    }

    us_intend_locked(a, &h->area[id].n, h->area[id].n + n);

    if (n == 1 && h->nspare) {
        chunk = (uint64_t *) (a->base + (h->spare << a->chunk_shift));

        /*
         * The first word is the list's until the commit.  Release: a reader of
         * what the chunk had before finds a zero only if it finds, too, that
         * the memory is used again.
         */

        for (i = 1; i < ((size_t) 1 << a->chunk_shift) / 8; i++) {
            us_release(&chunk[i], 0);
        }

        us_intend_locked(a, &h->spare, *chunk);
        us_intend_locked(a, &h->nspare, h->nspare - 1);
        us_intend_locked(a, chunk, 0);

        return h->spare << a->chunk_shift;
    }

    us_intend_locked(a, &h->chunks_low, h->chunks_low - n);

    return (h->chunks_low - n) << a->chunk_shift;
}


void
us_arena_give(us_arena_t *a, us_area_id_t id, uint64_t chunk)
{
    us_head_t  *h;

    h = a->head;

    us_release((uint64_t *) (a->base + (chunk << a->chunk_shift)), h->spare);

    us_intend_locked(a, &h->area[id].n, h->area[id].n - 1);
    us_intend_locked(a, &h->spare, chunk);
    us_intend_locked(a, &h->nspare, h->nspare + 1);
    us_commit_locked(a);
}


int
us_arena_grow_locked(us_arena_t *a, us_area_id_t id, size_t n)
{
    size_t    i;
    uint64_t  at, chunk;

    at = a->head->area[id].n;

    if (at + n > a->head->area[id].max) {
        return -1;
    }

    chunk = us_arena_take_locked(a, id, n) >> a->chunk_shift;

    if (chunk == 0) {
        return -1;
    }

    /* nobody reads entries past area.n: no intent is needed for them */

    for (i = 0; i < n; i++) {
        __atomic_store_n(us_area_entry(a, id, at + i), chunk + i,
                         __ATOMIC_RELAXED);
    }

    us_commit_locked(a);

    return 0;
}


int
us_arena_allot_locked(us_arena_t *a, us_area_id_t id, uint64_t pos)
{
    uint32_t  *entry;
    uint64_t   chunk;

    if (pos >> a->chunk_shift >= a->head->area[id].max) {
        return -1;
    }

    entry = us_area_entry(a, id, pos >> a->chunk_shift);

    if (*entry) {
        return 0;
    }

    chunk = us_arena_take_locked(a, id, 1) >> a->chunk_shift;

    if (chunk == 0) {
        return -1;
    }

    us_intend32_locked(a, entry, chunk);
    us_commit_locked(a);

    return 0;
}


void
us_area_read(const us_arena_t *a, us_area_id_t id, uint64_t pos, uint8_t *p,
    size_t n)
{
    size_t    piece;
    uint8_t  *from;

    for ( /* void */ ; n; n -= piece, pos += piece, p += piece) {
        from = us_area_piece(a, id, pos, n, &piece);
        memcpy(p, from, piece);
    }
}


void
us_area_write(us_arena_t *a, us_area_id_t id, uint64_t pos, const uint8_t *p,
    size_t n)
{
    size_t    piece;
    uint8_t  *to;

    for ( /* void */ ; n; n -= piece, pos += piece, p += piece) {
        to = us_area_piece(a, id, pos, n, &piece);
        memcpy(to, p, piece);
    }
}


void
us_intend32_locked(us_arena_t *a, uint32_t *half, uint32_t value)
{
    uint64_t  *word, v;

    word = (uint64_t *) ((uintptr_t) half & ~(uintptr_t) 7);
    v = us_intended(a, word);

    memcpy((uint8_t *) &v + ((uintptr_t) half & 7), &value, sizeof(value));

    us_intend_locked(a, word, v);
}


static void
us_arena_fulfil(us_arena_t *a, uint64_t n)
{
    uint64_t      i;
    us_intent_t  *w;

    w = a->head->intent;

    for (i = 0; i < n; i++) {

        /*
         * Release: a reader that acquires this word sees all that the writer
         * wrote before, in particular the record, leaf or chunk that the word
         * leads to, and the words before it in the list.
         */

        us_release((uint64_t *) (a->base + w[i].offset), w[i].value);
    }

    /*
     * Release: were the number zero before the last word is stored, a kill
     * between the two would leave a part of the update and nobody to know.
     */

    us_release(&a->head->intents, 0);
}


void
us_commit_locked(us_arena_t *a)
{
    uint64_t  n;

    n = a->intents;
    a->intents = 0;

    /*
     * Release: the list must be complete before its number is, or a writer
     * that takes over stores words that were never meant.  The store itself
     * is what decides: killed before it, nothing has happened; after it,
     * everything will.
     */

    us_release(&a->head->intents, n);

    us_arena_fulfil(a, n);
}


void
us_arena_enter(us_arena_t *a)
{
    uint64_t  n;

    a->intents = 0;
    a->keep = 0;
    a->slack = 0;

    /*
     * Acquire: pairs with the release in us_commit_locked(); the list is read
     * only after its number.
     */

    n = us_acquire(&a->head->intents);

    if (n) {
        us_arena_fulfil(a, n);

        /* counted after: a kill here loses one count, not an update */

        us_release(&a->head->recoveries, a->head->recoveries + 1);
    }
}


/* --- names and lists of a configuration ----------------------------------- */

int
us_conf_is_name(us_str_t name, size_t max)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9') || c == '-' || c == '_'))
        {
            return 0;
        }
    }

    return name.len && name.len <= max;
}


int
us_conf_is_set(us_str_t name)
{
    size_t    i;
    us_str_t  c;

    for (i = 0; i < name.len; i++) {
        c = (us_str_t) { 1, name.data + i };

        if (*c.data != '.' && *c.data != ':' && !us_conf_is_name(c, 1)) {
            return 0;
        }
    }

    return name.len && name.len <= US_STORE_SET_LEN
           && us_str_compare(name, us_string(".")) != 0
           && us_str_compare(name, us_string("..")) != 0;
}


int
us_conf_marks(us_store_conf_t *conf, us_str_t list)
{
    unsigned        i;
    us_str_t        name;
    const uint8_t  *p, *last, *comma;

    last = list.data + list.len;

    for (p = list.data; p; p = comma ? comma + 1 : NULL) {

        comma = memchr(p, ',', last - p);

        name.data = p;
        name.len = (comma ? comma : last) - p;

        if (!us_conf_is_name(name, US_STORE_MARK_LEN)
            || conf->nmarks == US_STORE_MARKS)
        {
            return -1;
        }

        for (i = 0; i < conf->nmarks; i++) {
            if (us_str_compare(conf->marks[i], name) == 0) {
                return -1;
            }
        }

        conf->marks[conf->nmarks++] = name;
    }

    return 0;
}
