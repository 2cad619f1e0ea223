
/*
 * FORMAT of the stream of operations.  Numbers are little endian base 128
 * (7 bits to a byte, lowest first, the top bit says that more follow).
 *
 *   1 .. 254   add: a record of so many units, and its bits in (units + 1) / 2
 *              bytes; its id is the next one
 *   255        add: number of units, bits
 *   0 1        delete: number of the id
 *   0 2        set mark: byte which, number of the id
 *   0 3        clear mark: byte which, number of the id
 *   0 4        model: number of bytes, bytes; for the adds from here on
 *   0 5        set marks: byte which, number of the first word (64 ids),
 *              number of words, words of 8 bytes
 *   0 6        delete: the same without the byte
 *   0 7        the next add has this id (a check)
 *   0 8        the index has so many entries at the end of the dump
 *
 *   0 9        an image of the index follows, and of the cache that finds
 *              references: number 0, of bytes, us_store_image_t
 *   0 10       leaves: number of the first one, of bytes, us_index_image_t
 *   0 11       the cache: position, number of bytes, bytes
 *
 *   0 12       the clock of claims: number of the unit; all adds from here on
 *              are claimed then
 *   0 13       claims: number of their unit (0: cleared), number of bytes, ids:
 *              the first one, then for each how many lie between
 *   0 14       set claims of 2 bytes: number of the first word (4 ids), number
 *              of words, words of 8 bytes (us_claims_short()); read only
 *
 *   0 15       of a shard, the map that it has adopted: number of the shard, of
 *              bytes, the map's text (us_map.h)
 *   0 16       a primary of a replicated log begins (us_replog.h): number of
 *              its term, of bytes, its name; nothing in the store depends on it
 *   0 17       set claims: number of the first word (2 ids), number of words,
 *              words of 8 bytes, as in memory (us_claims.c)
 *
 *   0 18       a key for retries (us_keys.h): number of the second until which
 *              it is known, 1, its name of 8 bytes; the adds and the claims
 *              from here on are the key's
 *   0 19       those from here on are no key's
 *   0 20       what keys have had: number of words, entries of 4 words
 *              (us_keys_entry_t); bits 0: those that live until then are
 *              forgotten
 *
 *   0 25       erase: number of the id, of bytes, the first bytes of its text,
 *              which other records need; it is deleted, too, if it is not yet
 *   0 26       an erasure (us_erasures.c): its number, number of bytes, its row
 *              and its reason; or what has become of it
 *   0 27       the list of what was erased: number of words, entries of 2 words
 *   0 28       delete, for an erasure: number of the id, of bytes; the number
 *              of the erasure, and how many ids it has deleted
 *   0 29       the list has 1 << this number of places
 *   0 30       texts of a model go: its number (0: the first that was learnt),
 *              number of bytes, a bit for each token, lowest first
 *
 * 5 to 11, 14, 17, 20 and 29 are found in dumps only.  An operation's LSN is
 * the position in the stream at which it ends.
 *
 * A dump:
 *
 *     at 0, 8, [15], deletes, [9, leaves, cache], adds and models, marks,
 *     [12, 17 ...], [20 ...], [26 ..., 29, 27 ...], at n, [18]
 *
 * Its 12 follows the adds: only those after the dump are claimed at that time.
 * 12 to 14 and 17 are of stores with claims, 15 is of shards, 18 to 20 are of
 * stores that know keys, 25 to 30 of those that may have erasures.  A directory
 * that can have any says so in its manifest, of version 2 to 7, which programs
 * before them refuse (us_manifest.h).
 *
 * The deletes come first: their ids are those of adds that follow.  The record
 * of an erased id is ones; if bytes of its text stay, 25 follows it.
 *
 * The ring holds the bytes [written, published) of the stream, byte n at
 * n % size:
 *
 *     |.....|#################|............|
 *           written           published
 *           (journal)         (lock holder)
 *
 * Each of the two watermarks has one writer and only grows.
 */


#include "us_ring.h"
#include "../cluster/us_map.h"
#include "../zone/us_log.h"


#define US_OP_UNITS_MAX   (2 * US_RECORD_MAX)      /* of 4 bits */


/* what follows the type of an operation, but of an add */

typedef struct {
    unsigned          mark:1;         /* a byte */
    unsigned          id:1;           /* a number */
    unsigned          unit;           /* a number of pieces of that size, and */
    uint32_t          max;            /* they: at most so many; at least 1, */
    unsigned          none:1;         /* or none */
} us_op_form_t;


static const us_op_form_t  us_op_forms[] = {
    [US_OP_DELETE] = { .id = 1 },
    [US_OP_MARK] = { .mark = 1, .id = 1 },
    [US_OP_UNMARK] = { .mark = 1, .id = 1 },
    [US_OP_MODEL] = { .unit = 1, .max = 1 << 26 },
    [US_OP_MARKS] = { .mark = 1, .id = 1, .unit = 8, .max = US_OP_WORDS_MAX },
    [US_OP_DELETED] = { .id = 1, .unit = 8, .max = US_OP_WORDS_MAX },
    [US_OP_AT] = { .id = 1 },
    [US_OP_EXPECT] = { .id = 1 },
    [US_OP_IMAGE] = { .id = 1, .unit = 1, .max = 1 << 20 },
    [US_OP_LEAVES] = { .id = 1, .unit = 1, .max = 1 << 20 },
    [US_OP_CACHE] = { .id = 1, .unit = 1, .max = 1 << 20 },
    [US_OP_CLOCK] = { .id = 1 },
    [US_OP_CLAIM] = { .id = 1, .unit = 1, .max = US_OP_CLAIM_MAX },
    [US_OP_CLAIMS_SHORT] = { .id = 1, .unit = 8, .max = US_OP_WORDS_MAX },
    [US_OP_MAP] = { .id = 1, .unit = 1, .max = US_MAP_TEXT_MAX },
    [US_OP_TERM] = { .id = 1, .unit = 1, .max = US_OP_TERM_MAX },
    [US_OP_CLAIMS] = { .id = 1, .unit = 8, .max = US_OP_WORDS_MAX },
    [US_OP_KEY] = { .id = 1, .unit = 8, .max = 1 },
    [US_OP_KEY_END] = { .id = 0 },
    [US_OP_KEYS] = { .unit = 8, .max = US_OP_KEYS_MAX },
    [US_OP_SET] = { .id = 1, .unit = 1, .max = US_OP_SET_MAX },
    [US_OP_SET_DROP] = { .id = 1 },
    [US_OP_SET_IN] = { .id = 1, .unit = 1, .max = US_OP_RUNS_MAX },
    [US_OP_SET_OUT] = { .id = 1, .unit = 1, .max = US_OP_RUNS_MAX },
    [US_OP_ERASED] = { .id = 1, .unit = 1, .max = US_STUB_MAX, .none = 1 },
    [US_OP_ERASURE] = { .id = 1, .unit = 1, .max = US_OP_ERASURE_MAX },
    [US_OP_ERASED_URLS] = { .unit = 8, .max = US_OP_ERASED_MAX },
    [US_OP_ERASED_ID] = { .id = 1, .unit = 1, .max = 2 * US_NUMBER_MAX },
    [US_OP_ERASED_TABLE] = { .id = 1 },
    [US_OP_DROP] = { .id = 1, .unit = 1, .max = US_OP_DROP_MAX },
};

#define US_OP_TYPES  (sizeof(us_op_forms) / sizeof(us_op_forms[0]))


size_t
us_number_write(uint8_t *p, uint64_t n)
{
    size_t  i;

    for (i = 0; n >= 0x80; i++) {
        p[i] = n | 0x80;
        n >>= 7;
    }

    p[i] = n;

    return i + 1;
}


int
us_number_read(const uint8_t **p, const uint8_t *end, uint64_t *n)
{
    unsigned  shift;

    *n = 0;

    for (shift = 0; shift < 63; shift += 7) {

        if (*p == end) {
            return 0;
        }

        *n |= (uint64_t) (**p & 0x7f) << shift;

        if ((*(*p)++ & 0x80) == 0) {
            return 1;
        }
    }

    return -1;
}


size_t
us_op_head(const us_op_t *op, uint8_t head[US_OP_HEAD_MAX])
{
    size_t               n;
    const us_op_form_t  *f;

    if (op->type == US_OP_ADD) {

        if (op->units < 255) {
            head[0] = op->units;
            return 1;
        }

        head[0] = 255;
        return 1 + us_number_write(head + 1, op->units);
    }

    f = &us_op_forms[op->type];

    head[0] = 0;
    head[1] = op->type;
    n = 2;

    if (f->mark) {
        head[n++] = op->mark;
    }

    if (f->id) {
        n += us_number_write(head + n, op->id);
    }

    if (f->unit) {
        n += us_number_write(head + n, op->bytes.len / f->unit);
    }

    return n;
}


ssize_t
us_op_parse(const uint8_t *p, size_t len, us_op_t *op)
{
    int                  rc;
    uint64_t             n;
    const uint8_t       *start, *end;
    const us_op_form_t  *f;

    static const us_op_form_t  add;

    start = p;
    end = p + len;
    memset(op, 0, sizeof(us_op_t));

    if (len < 2) {
        return 0;
    }

    if (*p) {
        f = &add;
        op->units = *p++;

        if (op->units == 255) {
            rc = us_number_read(&p, end, &n);

            if (rc <= 0) {
                return rc;
            }

            if (n < 255 || n > US_OP_UNITS_MAX) {
                return -1;
            }

            op->units = n;
        }

        op->bytes.len = (op->units + 1) / 2;

    } else {
        op->type = p[1];
        p += 2;

        if (op->type == US_OP_ADD || op->type >= US_OP_TYPES) {
            return -1;
        }

        f = &us_op_forms[op->type];
    }

    if (f->mark) {

        if (p == end) {
            return 0;
        }

        op->mark = *p++;

        if (op->mark >= US_STORE_MARKS) {
            return -1;
        }
    }

    if (f->id) {
        rc = us_number_read(&p, end, &op->id);

        if (rc <= 0) {
            return rc;
        }
    }

    if (f->unit) {
        rc = us_number_read(&p, end, &n);

        if (rc <= 0) {
            return rc;
        }

        if ((n == 0 && !f->none) || n > f->max) {
            return -1;
        }

        op->bytes.len = n * f->unit;
    }

    op->bytes.data = p;

    return p - start + op->bytes.len;
}


size_t
us_op_id_write(uint8_t *p, uint64_t last, uint64_t id)
{
    /* NO_ID + 1 is 0 */

    return us_number_write(p, id - (last + 1));
}


int
us_op_id_read(const uint8_t **p, const uint8_t *end, uint64_t last,
    uint64_t *id)
{
    int       rc;
    uint64_t  n;

    if (*p == end) {
        return 0;
    }

    rc = us_number_read(p, end, &n);

    if (rc <= 0 || n >= US_STORE_NO_ID - (last + 1)) {
        return -1;
    }

    *id = last + 1 + n;

    return 1;
}


static void
us_ring_write(us_arena_t *a, uint64_t lsn, const uint8_t *p, size_t n)
{
    size_t  at, part;

    at = lsn & (a->head->ring_size - 1);
    part = a->head->ring_size - at;
    part = part < n ? part : n;

    memcpy(a->base + a->head->ring + at, p, part);
    memcpy(a->base + a->head->ring, p + part, n - part);
}


void
us_ring_put_locked(us_arena_t *a, const us_op_t *op)
{
    size_t    n;
    uint8_t   head[US_OP_HEAD_MAX];
    uint64_t  lsn;

    if (a->head->ring_size == 0) {
        return;
    }

    lsn = a->head->published;
    n = us_op_head(op, head);

    us_ring_write(a, lsn, head, n);

    if (op->bytes.len) {
        us_ring_write(a, lsn + n, op->bytes.data, op->bytes.len);
    }

    us_intend_locked(a, &a->head->published, lsn + n + op->bytes.len);
}


void
us_ring_clear_locked(us_arena_t *a, uint64_t at, size_t n)
{
    size_t      ahead, pending, len;
    uint8_t    *ring;
    uint64_t    size, written;
    us_head_t  *h;

    h = a->head;
    size = h->ring_size;
    ring = a->base + h->ring;

    /* acquire: the journal has read the bytes below */

    written = us_acquire(&h->written);
    pending = h->published - written;
    n = at < size && size - at < n ? size - at : n;

    for ( /* void */ ; n && at < size; n -= len, at += len) {
        ahead = (at - written) & (size - 1);
        len = ahead < pending ? pending - ahead : size - ahead;
        len = len < n ? len : n;

        if (ahead >= pending) {
            memset(ring + at, 0, len);
        }
    }
}
