
/*
 * A dump: the shortest stream of operations that builds the store as it is now.
 * It leaves out operations that later ones made void.  Writers go on meanwhile.
 */


#include "us_store_private.h"
#include "us_shard.h"

#include <stdlib.h>


#define US_DUMP_PIECE   16384         /* bytes, if no operation is longer */
#define US_DUMP_WORDS   512           /* of one operation, at most */


/* a dump in progress: whole operations are collected in pieces */

typedef struct {
    us_store_out_pt   out;
    void             *data;
    int               failed;
    size_t            n;
    size_t            size;
    uint8_t          *buf;
    uint64_t          words[US_DUMP_WORDS];
} us_dump_t;


/* the store when the dump was begun */

typedef struct {
    uint64_t          ids;
    uint64_t          leaves;
    uint64_t          entries;
    uint64_t          sites;
    uint64_t          models;
    uint64_t          clock;
    uint64_t          sets;           /* the highest number of one */
    uint64_t          deletes;        /* of ids below */
    int               built;          /* the index is complete */
    us_store_key_t    key;
} us_dump_head_t;


static void
us_dump_flush(us_dump_t *d)
{
    if (d->n && !d->failed && d->out(d->data, d->buf, d->n) != 0) {
        d->failed = 1;
    }

    d->n = 0;
}


static void
us_dump_op(us_dump_t *d, const us_op_t *op)
{
    size_t    size;
    uint8_t  *buf;

    size = US_OP_HEAD_MAX + op->bytes.len;

    if (d->n + size > d->size) {
        us_dump_flush(d);
    }

    if (size > d->size) {
        buf = realloc(d->buf, size);

        if (buf == NULL) {
            d->failed = 1;
            return;
        }

        d->buf = buf;
        d->size = size;
    }

    d->n += us_op_head(op, d->buf + d->n);

    if (op->bytes.len) {
        memcpy(d->buf + d->n, op->bytes.data, op->bytes.len);
        d->n += op->bytes.len;
    }
}


static void
us_dump_put(us_dump_t *d, us_op_type_t type, uint64_t id, const void *bytes,
    size_t len)
{
    us_op_t  op;

    op = us_op(type, id, bytes, len);
    us_dump_op(d, &op);
}


/*
 * The map of a shard, which may be newer than the LSN: the operation that
 * follows is passed over then.
 */

static void
us_dump_map(us_store_t *s, us_dump_t *d)
{
    size_t     len;
    uint8_t   *text;
    uint32_t   shard;
    uint64_t   number;

    if (!us_store_is_shard(s, &shard)) {
        return;
    }

    text = malloc(US_MAP_TEXT_MAX);

    if (text == NULL) {
        d->failed = 1;
        return;
    }

    len = us_store_map_text(s, text, &number);

    if (number) {
        us_dump_put(d, US_OP_MAP, shard, text, len);
    }

    free(text);
}


/*
 * Leaf after leaf as it is now.  In a replay, entries of ids from n on are left
 * out, and those deleted meanwhile are not there: an operation that follows the
 * dump deletes them.  Counters of sites would count what follows: with them
 * there is no image.
 */

static void
us_dump_image(us_store_t *s, us_dump_t *d, const us_dump_head_t *head)
{
    int                more;
    uint8_t            piece[US_PREFIX_PIECE];
    uint64_t           at;
    us_store_image_t   out;
    us_index_image_t  *im;

    if (head->entries == 0 || !head->built
        || (us_head(s)->flags & US_HEAD_SITES))
    {
        return;
    }

    im = calloc(1, sizeof(us_index_image_t));

    if (im == NULL) {
        return;
    }

    memset(&out, 0, sizeof(us_store_image_t));
    out.version = US_IMAGE_VERSION;
    memcpy(out.hash_key, us_head(s)->hash_key, sizeof(out.hash_key));
    out.ids = head->ids;
    out.leaves = head->leaves;
    out.sites = head->sites;
    out.cache = us_prefix_bytes(&s->arena);

    us_dump_put(d, US_OP_IMAGE, 0, &out, sizeof(us_store_image_t));

    do {
        us_store_enter(s);
        more = us_index_image(&s->arena, im);
        us_store_leave(s);

        if (more) {
            us_dump_put(d, US_OP_LEAVES, im->leaf, im->words,
                        im->n * sizeof(uint64_t));
        }
    } while (more && !d->failed);

    free(im);

    /* the cache is of hints: it may be newer than the rest */

    for (at = 0; at < out.cache && !d->failed; at += sizeof(piece)) {
        us_prefix_copy(&s->arena, at, piece, sizeof(piece));
        us_dump_put(d, US_OP_CACHE, at, piece, sizeof(piece));
    }
}


/*
 * The first `models` models, each before the first record that may have it.
 * One that was published later must not be there: the operation that follows
 * the dump's LSN would install it twice, and others would change their number.
 */

static void
us_dump_models(us_store_t *s, us_dump_t *d, uint64_t models, uint64_t id,
    unsigned *number)
{
    us_str_t  model;
    uint64_t  first;

    while (*number < models
           && us_record_model(s->codec, *number, &first, &model) == 0
           && first <= id)
    {
        us_dump_put(d, US_OP_MODEL, 0, model.data, model.len);
        (*number)++;
    }
}


/*
 * A record may have been erased since the LSN, even be deleted since: the
 * operations that follow do it once more.
 */

static void
us_dump_adds(us_store_t *s, us_dump_t *d, uint64_t n, uint64_t models)
{
    us_op_t       op, erased;
    uint8_t       buf[US_RECORD_BUFFER];
    us_str_t      stub;
    unsigned      number;
    uint64_t      id;
    us_bits_t     b;
    us_reading_t  r;

    op = us_op(US_OP_ADD, 0, s->bits, 0);
    erased = us_op(US_OP_ERASED, 0, s->text, 0);
    number = 0;

    for (id = 0; id < n && !d->failed; id++) {

        us_dump_models(s, d, models, id, &number);

        memset(&r, 0, sizeof(us_reading_t));

        while (us_store_reading(s, &r)) {
            us_log_get(&s->arena, id, buf, &b);

            op.units = b.units;
            op.bytes.len = us_bits_copy(&b, s->bits);
            erased.bytes.len = 0;

            if (us_bits_erased(&b) && us_log_stub(&s->arena, id, &stub)
                && stub.len <= US_STUB_MAX)
            {
                erased.bytes.len = stub.len;
                memcpy(s->text, stub.data, stub.len);
            }
        }

        us_dump_op(d, &op);

        if (erased.bytes.len) {
            erased.id = id;
            us_dump_op(d, &erased);
        }
    }

    /* models that no record of the dump has: what follows the LSN may */

    us_dump_models(s, d, models, n, &number);
}


/*
 * Appends word i to a run of words in one operation.  A word that is zero ends
 * the run.
 */

static void
us_dump_word(us_dump_t *d, us_op_t *op, uint64_t i, uint64_t word)
{
    if (op->bytes.len && (word == 0 || op->bytes.len == sizeof(d->words))) {
        us_dump_op(d, op);
        op->bytes.len = 0;
    }

    if (word) {
        op->id = op->bytes.len ? op->id : i;
        d->words[op->bytes.len / 8] = word;
        op->bytes.len += 8;
    }
}


/* the ids below n that are deleted */

static void
us_dump_deleted(us_store_t *s, us_dump_t *d, uint64_t n)
{
    uint64_t   i, w, *p;
    us_op_t    op;

    op = us_op(US_OP_DELETED, 0, d->words, 0);

    for (i = 0; i * 64 < n && !d->failed; i++) {
        p = us_deleted_word(&s->arena, i);
        w = p ? us_relaxed(p) : 0;

        if (i == n / 64) {
            w &= ((uint64_t) 1 << n % 64) - 1;
        }

        us_dump_word(d, &op, i, w);
    }

    us_dump_word(d, &op, i, 0);
}


/* the ids below n that are in a set, in operations of many runs */

static void
us_dump_members(us_store_t *s, us_dump_t *d, const us_store_set_info_t *set,
    uint64_t n)
{
    int            found;
    size_t         len;
    uint8_t       *p;
    uint64_t       last, from;
    us_set_run_t   run, next;

    p = (uint8_t *) d->words;
    len = 0;
    last = US_STORE_NO_ID;
    found = us_set_next(&s->arena, set->set.row, 0, n, &run);

    while (found && !d->failed) {

        /* what follows it at once belongs to it */

        for (from = run.last + 1;
             (found = us_set_next(&s->arena, set->set.row, from, n, &next))
             && next.first == from;
             from = run.last + 1)
        {
            run.last = next.last;
        }

        len += us_set_run_write(p + len, last, &run);
        last = run.last;
        run = next;

        if (!found || len > sizeof(d->words) - 20) {
            us_dump_put(d, US_OP_SET_IN, set->set.number, p, len);
            len = 0;
            last = US_STORE_NO_ID;
        }
    }
}


/*
 * Sets, and their members, may be newer than the LSN, and a set that is dropped
 * meanwhile may be here in part: the operations that follow do all of it once
 * more.  First the highest number that a set has had.
 */

static void
us_dump_sets(us_store_t *s, us_dump_t *d, uint64_t n, uint64_t last)
{
    uint8_t               bytes[US_OP_SET_MAX];
    uint32_t              row;
    us_store_set_info_t   set;

    if (last > US_STORE_MARKS) {
        us_dump_put(d, US_OP_SET_DROP, last, NULL, 0);
    }

    for (row = 0; us_store_set_info(s, &row, &set) && !d->failed; ) {

        if (set.set.number > US_STORE_MARKS) {
            memcpy(bytes, &set.created, sizeof(set.created));
            memcpy(bytes + sizeof(set.created), set.text, set.name.len);
            us_dump_put(d, US_OP_SET, set.set.number, bytes,
                        sizeof(set.created) + set.name.len);
        }

        us_dump_members(s, d, &set, n);
    }
}


/*
 * Claims may be newer than the LSN, and than the clock that the dump has: the
 * operations that follow set them once more.
 */

static void
us_dump_claims(us_store_t *s, us_dump_t *d, const us_dump_head_t *head)
{
    uint32_t   pair[2];
    uint64_t   i, w;
    us_op_t    op;

    if (head->clock == 0) {
        return;
    }

    us_dump_put(d, US_OP_CLOCK, head->clock, NULL, 0);
    op = us_op(US_OP_CLAIMS, 0, d->words, 0);

    for (i = 0; i < head->ids && !d->failed; i += 2) {
        pair[0] = us_claims_read(&s->arena, i);
        pair[1] = i + 1 < head->ids ? us_claims_read(&s->arena, i + 1) : 0;
        memcpy(&w, pair, sizeof(w));

        us_dump_word(d, &op, i / 2, w);
    }

    us_dump_word(d, &op, i / 2, 0);
}


/*
 * What keys have had, and until when that is not all.  Entries may be newer
 * than the LSN: the operations that follow put them once more.  Ids that they
 * give are left out.
 */

static void
us_dump_keys(us_store_t *s, us_dump_t *d, const us_dump_head_t *head)
{
    uint64_t         at, end;
    unsigned         n;
    us_keys_entry_t  e[US_DUMP_WORDS / 4];

    end = us_acquire(&us_head(s)->keys_end);

    for (at = us_keys_first(&s->arena), n = 0; at < end; at++) {

        if (!us_keys_read(&s->arena, at, &e[n])
            || us_keys_until(&e[n]) <= s->now) {
            continue;
        }

        if (e[n].block >= head->ids / 64 && e[n].block >> 62 == US_KEYS_NEW) {
            e[n].bits &= e[n].block == head->ids / 64
                         ? ((uint64_t) 1 << head->ids % 64) - 1 : 0;
        }

        e[n].last = us_keys_until(&e[n]);
        n += e[n].bits != 0;

        if (n == US_DUMP_WORDS / 4) {
            us_dump_put(d, US_OP_KEYS, 0, e, sizeof(e));
            n = 0;
        }
    }

    /* what is forgotten; also what was overwritten since the loop began */

    memset(&e[n], 0, sizeof(us_keys_entry_t));
    e[n].last = (uint32_t) us_acquire(&us_head(s)->keys_lost);
    n += us_keys_until(&e[n]) > s->now;

    if (n) {
        us_dump_put(d, US_OP_KEYS, 0, e, n * sizeof(us_keys_entry_t));
    }
}


/*
 * Erasures and their list may be newer than the LSN: the operations that follow
 * find them, and change nothing.
 */

static void
us_dump_erasures(us_store_t *s, us_dump_t *d)
{
    uint8_t            buf[US_OP_ERASURE_MAX];
    us_op_t            op;
    uint64_t           n, last, bits;
    unsigned           k;
    us_erased_dump_t   list;

    last = us_acquire(&us_head(s)->erasures);

    for (n = 1; n <= last && !d->failed; n++) {
        op = us_erasure_op(&s->arena, n, us_erasure_row(&s->arena, n), buf);
        us_dump_op(d, &op);
    }

    bits = us_acquire(&us_head(s)->erased_bits);

    if (bits) {
        us_dump_put(d, US_OP_ERASED_TABLE, bits, NULL, 0);
    }

    list = (us_erased_dump_t) { .moves = UINT64_MAX };

    while (last && !list.ended && !d->failed) {
        k = us_erased_dump(s, &list, last, (us_erased_hash_t *) d->words,
                           sizeof(d->words) / US_ERASED_EACH);

        if (k) {
            us_dump_put(d, US_OP_ERASED_URLS, 0, d->words, k * US_ERASED_EACH);
        }
    }
}


int
us_store_dump(us_store_t *s, us_store_out_pt out, void *data, uint64_t *lsn)
{
    us_dump_t        d;
    us_dump_head_t   head;

    /*
     * The models that the handle has now are dumped, whatever becomes of them
     * meanwhile: an operation after the LSN may drop texts that adds before it
     * have.  But what was dropped before the LSN is not to come back.
     */

    us_record_refresh(s->codec);
    us_store_enter(s);
    us_record_refresh(s->codec);

    head.ids = us_store_next_id(s);
    head.leaves = us_head(s)->leaves;
    head.entries = us_head(s)->entries;
    head.sites = us_head(s)->sites;
    head.models = us_head(s)->models;
    head.clock = us_head(s)->clock;
    head.sets = us_head(s)->sets_last;
    head.deletes = 0;
    head.built = s->replay == NULL
                 || !s->replay_ops->builds(s, &head.deletes);
    head.deletes = head.deletes > head.ids ? head.deletes : head.ids;
    head.key.name = us_head(s)->key;
    head.key.until = us_head(s)->key_until;
    *lsn = us_acquire(&us_head(s)->published);

    us_store_leave(s);

    d.out = out;
    d.data = data;
    d.n = 0;
    d.size = US_DUMP_PIECE;
    d.buf = malloc(d.size);
    d.failed = d.buf == NULL;

    if (d.failed) {
        return -1;
    }

    us_dump_put(&d, US_OP_AT, 0, NULL, 0);
    us_dump_put(&d, US_OP_EXPECT, head.entries, NULL, 0);
    us_dump_map(s, &d);

    /*
     * Deletes come first: a replay does not index what is deleted, and so
     * needs no more room than the store has.  Bits may be newer than the LSN:
     * an operation that follows it sets them once more, or clears them.
     */

    us_dump_deleted(s, &d, head.deletes);
    us_dump_image(s, &d, &head);
    us_dump_adds(s, &d, head.ids, head.models);

    us_dump_sets(s, &d, head.ids, head.sets);
    us_dump_claims(s, &d, &head);
    us_dump_keys(s, &d, &head);
    us_dump_erasures(s, &d);

    us_dump_put(&d, US_OP_AT, head.ids, NULL, 0);

    if (head.key.name) {
        us_dump_put(&d, US_OP_KEY, head.key.until, &head.key.name,
                    sizeof(head.key.name));
    }

    us_dump_flush(&d);
    free(d.buf);

    return d.failed ? -1 : 0;
}
