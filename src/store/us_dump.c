
/*
 * A dump: the operations that would build the store as it is now, without what
 * later ones made void, while writers go on.
 */


#include "us_store_private.h"

#include <stdlib.h>


#define US_IMAGE_TRIES  3
#define US_IMAGE_WORDS  512           /* of leaves in an operation, at least */
#define US_MARK_WORDS   512           /* of marks in one, at most */


/* a dump in progress: operations are collected in pieces */

typedef struct {
    us_store_out_pt   out;
    void             *data;
    int               failed;
    size_t            n;
    uint8_t           buf[16384];
} us_dump_t;


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
    if (d->n + US_OP_HEAD_MAX + op->bytes.len > sizeof(d->buf)) {
        us_dump_flush(d);
    }

    d->n += us_op_head(op, d->buf + d->n);

    if (op->bytes.len <= sizeof(d->buf) - US_OP_HEAD_MAX) {
        memcpy(d->buf + d->n, op->bytes.data, op->bytes.len);
        d->n += op->bytes.len;
        return;
    }

    us_dump_flush(d);

    if (!d->failed && d->out(d->data, op->bytes.data, op->bytes.len) != 0) {
        d->failed = 1;
    }
}


/*
 * A copy of the index, which goes on growing: once it overtook the copy, from
 * the beginning again.  0, or -1: the dump goes without.
 */

static int
us_dump_copy(us_store_t *s, us_index_image_t *im)
{
    int       rc;
    unsigned  i;

    for (i = 0; i < US_IMAGE_TRIES; i++) {
        memset(im, 0, sizeof(us_index_image_t));

        do {
            rc = us_index_image_room(im);

            if (rc == 0) {
                us_store_enter(s);
                rc = us_index_image(&s->arena, im);
                us_store_leave(s);
            }
        } while (rc == 1);

        if (rc == 0) {
            return 0;
        }

        us_index_image_free(im);
    }

    return -1;
}


/* counters of sites would count what follows: with them, no image */

static void
us_dump_image(us_store_t *s, us_dump_t *d, uint64_t n, uint64_t sites)
{
    us_op_t            op;
    size_t             at, end;
    uint8_t            piece[US_PREFIX_PIECE];
    uint64_t           leaf, pos;
    us_head_t         *h;
    us_index_image_t   im;
    us_store_image_t   out;

    h = us_head(s);

    if (n == 0 || (h->flags & (US_HEAD_SITES|US_HEAD_LOOKUP))
        || us_dump_copy(s, &im) != 0)
    {
        return;
    }

    memset(&out, 0, sizeof(us_store_image_t));
    out.layout = US_LAYOUT;
    memcpy(out.hash_key, h->hash_key, sizeof(out.hash_key));
    out.ids = n;
    out.leaves = im.leaves;
    out.sites = sites;
    out.cache = us_prefix_bytes(&s->arena);

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_IMAGE;
    op.bytes.data = (uint8_t *) &out;
    op.bytes.len = sizeof(us_store_image_t);
    us_dump_op(d, &op);

    op.type = US_OP_LEAVES;

    for (at = 0, leaf = im.leaves; at < im.n && !d->failed; at = end) {
        op.id = leaf;

        for (end = at; end < im.n && end - at < US_IMAGE_WORDS; leaf++) {
            end += 1 + im.words[end];
        }

        op.bytes.data = (uint8_t *) &im.words[at];
        op.bytes.len = (end - at) * sizeof(uint64_t);
        us_dump_op(d, &op);
    }

    us_index_image_free(&im);

    op.type = US_OP_CACHE;
    op.bytes.data = piece;
    op.bytes.len = sizeof(piece);

    for (pos = 0; pos < out.cache && !d->failed; pos += sizeof(piece)) {
        us_prefix_copy(&s->arena, pos, piece, sizeof(piece));
        op.id = pos;
        us_dump_op(d, &op);
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
    us_op_t   op;
    uint64_t  first;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_MODEL;

    while (*number < models
           && us_record_model(s->codec, *number, &first, &op.bytes) == 0
           && first <= id)
    {
        us_dump_op(d, &op);
        (*number)++;
    }
}


static void
us_dump_adds(us_store_t *s, us_dump_t *d, uint64_t n, uint64_t models)
{
    uint8_t    buf[US_RECORD_BUFFER];
    us_op_t    op;
    unsigned   number;
    uint64_t   id;
    us_bits_t  b;

    memset(&op, 0, sizeof(us_op_t));
    number = 0;

    for (id = 0; id < n && !d->failed; id++) {

        us_dump_models(s, d, models, id, &number);

        us_log_get(&s->arena, id, buf, &b);

        op.type = US_OP_ADD;
        op.units = b.units;
        op.bytes.data = s->bits;
        op.bytes.len = us_bits_copy(&b, s->bits);

        us_dump_op(d, &op);
    }

    /* models that no record of the dump has: what follows the LSN may */

    us_dump_models(s, d, models, n, &number);
}


/* the ids below n that are deleted, or have a mark, in runs of words */

static void
us_dump_marks(us_store_t *s, us_dump_t *d, us_area_id_t area, uint64_t n)
{
    uint64_t   i, k, w, *p, words[US_MARK_WORDS];
    us_op_t    op;

    memset(&op, 0, sizeof(us_op_t));

    op.type = area == US_AREA_DELETED ? US_OP_DELETED : US_OP_MARKS;
    op.mark = area == US_AREA_DELETED ? 0 : area - US_AREA_MARK;
    op.bytes.data = (uint8_t *) words;

    for (i = 0, k = 0; i * 64 < n && !d->failed; i++) {
        p = us_marks_word(&s->arena, area, i);
        w = p ? us_relaxed(p) : 0;

        if (i == n / 64) {
            w &= ((uint64_t) 1 << n % 64) - 1;
        }

        if (w && k == 0) {
            op.id = i;
        }

        if (w) {
            words[k++] = w;
        }

        if (k && (w == 0 || k == US_MARK_WORDS)) {
            op.bytes.len = k * 8;
            us_dump_op(d, &op);
            k = 0;
        }
    }

    if (k) {
        op.bytes.len = k * 8;
        us_dump_op(d, &op);
    }
}


int
us_store_dump(us_store_t *s, us_store_out_pt out, void *data, uint64_t *lsn)
{
    unsigned    m;
    us_op_t     op;
    uint64_t    n, sites, models;
    us_dump_t   d;

    us_store_enter(s);

    n = us_store_next_id(s);
    sites = us_head(s)->sites;
    models = us_head(s)->models;
    *lsn = us_store_published(s);

    us_store_leave(s);

    d.out = out;
    d.data = data;
    d.failed = 0;
    d.n = 0;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_AT;
    op.bytes.data = d.buf;            /* none, but memcpy() wants a pointer */
    us_dump_op(&d, &op);

    us_dump_image(s, &d, n, sites);
    us_dump_adds(s, &d, n, models);

    /*
     * Marks may be newer than the LSN: an operation that follows it sets them
     * once more, or undoes them.  Deletes come last, as they clear marks.
     */

    for (m = 0; m < us_head(s)->nmarks; m++) {
        us_dump_marks(s, &d, US_AREA_MARK + m, n);
    }

    us_dump_marks(s, &d, US_AREA_DELETED, n);

    us_dump_flush(&d);

    return d.failed ? -1 : 0;
}
