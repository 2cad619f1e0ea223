
/*
 * Operations as bytes, and the ring through which they reach the journal.  See
 * us_ring.c for the format.
 */


#ifndef _US_RING_H_INCLUDED_
#define _US_RING_H_INCLUDED_


#include "../codec/us_model.h"
#include "../zone/us_arena.h"


#define US_OP_HEAD_MAX   24           /* what goes before the bytes of an op */
#define US_OP_WORDS_MAX  (1 << 20)    /* of marks, deleted ids, claims */
#define US_OP_CLAIM_MAX  (US_STORE_GROUP * 10)     /* bytes of ids */
#define US_OP_TERM_MAX   128          /* bytes that name a primary */
#define US_OP_KEYS_MAX   (4 * 512)    /* words of entries */
#define US_OP_SET_MAX    (8 + US_STORE_SET_LEN)
#define US_OP_RUNS_MAX   16384        /* bytes of runs */
#define US_OP_ERASURE_MAX  272        /* bytes: see us_erasures.c */
#define US_OP_ERASED_MAX   1024       /* words of entries */
#define US_OP_DROP_MAX     US_DROP_BYTES(US_TOKENS_MAX)

#define US_NUMBER_MAX    10           /* bytes of a number */


typedef enum {
    US_OP_ADD = 0,                    /* bytes: the record */
    US_OP_DELETE = 1,
    US_OP_MARK = 2,
    US_OP_UNMARK = 3,
    US_OP_MODEL = 4,                  /* bytes: the model */
    US_OP_MARKS = 5,                  /* bytes: words of a mark, to be set */
    US_OP_DELETED = 6,                /* bytes: words of ids to be deleted */
    US_OP_AT = 7,                     /* the next add has this id */
    US_OP_EXPECT = 8,                 /* a dump's index has so many entries */
    US_OP_IMAGE = 9,                  /* bytes: us_store_image_t */
    US_OP_LEAVES = 10,                /* bytes: leaves, of numbers from id on */
    US_OP_CACHE = 11,                 /* bytes: of the codec's cache, from id */
    US_OP_CLOCK = 12,                 /* claims: id is the unit from now on */
    US_OP_CLAIM = 13,                 /* id: a unit, or 0; bytes: ids */
    US_OP_CLAIMS_SHORT = 14,          /* bytes: words of 4 claims, to be set */
    US_OP_MAP = 15,                   /* id: the shard; bytes: its map */
    US_OP_TERM = 16,                  /* id: the term; bytes: whose it is */
    US_OP_CLAIMS = 17,                /* bytes: words of 2 claims, to be set */
    US_OP_KEY = 18,                   /* id: until when; bytes: its name */
    US_OP_KEY_END = 19,
    US_OP_KEYS = 20,                  /* bytes: entries of 4 words */
    US_OP_SET = 21,                   /* id: its number; bytes: when, name */
    US_OP_SET_DROP = 22,              /* id: its number */
    US_OP_SET_IN = 23,                /* id: its number; bytes: runs of ids */
    US_OP_SET_OUT = 24,
    US_OP_ERASED = 25,                /* bytes: of its text, what stays */
    US_OP_ERASURE = 26,               /* id: its number; bytes: its row */
    US_OP_ERASED_URLS = 27,           /* bytes: entries of 2 words */
    US_OP_ERASED_ID = 28,             /* to be deleted; bytes: number, count */
    US_OP_ERASED_TABLE = 29,          /* id: the bits of the list's size */
    US_OP_DROP = 30                   /* id: a model; bytes: a bit a token */
} us_op_type_t;


typedef struct {
    us_op_type_t       type;
    unsigned           mark;
    uint64_t           id;            /* or the number of the first word */
    uint32_t           units;         /* of a record */
    us_str_t           bytes;
} us_op_t;


static inline us_op_t
us_op(us_op_type_t type, uint64_t id, const void *bytes, size_t len)
{
    us_op_t  op;

    memset(&op, 0, sizeof(us_op_t));
    op.type = type;
    op.id = id;
    op.bytes.data = bytes;
    op.bytes.len = len;

    return op;
}


/* writes all but op->bytes; returns how much */
size_t us_op_head(const us_op_t *op, uint8_t head[US_OP_HEAD_MAX]);

/*
 * The size of the whole operation at p, of which len bytes are there, and
 * what it is: *op is filled, its bytes may only be read if they are there.  0:
 * more than len bytes are needed; -1: it cannot be one.
 */
ssize_t us_op_parse(const uint8_t *p, size_t len, us_op_t *op);

/*
 * The ids of a US_OP_CLAIM, which ascend.  us_op_id_write() appends an id that
 * follows `last`, which is US_STORE_NO_ID at first; it returns the bytes, at
 * most 10.  us_op_id_read() reads the next one from *p; 0: there is none, -1:
 * it cannot be one.
 */
size_t us_op_id_write(uint8_t *p, uint64_t last, uint64_t id);
int us_op_id_read(const uint8_t **p, const uint8_t *end, uint64_t last,
    uint64_t *id);


/* a number; read: 0: it is incomplete, -1: it has more than 64 bits */
size_t us_number_write(uint8_t *p, uint64_t n);
int us_number_read(const uint8_t **p, const uint8_t *end, uint64_t *n);


/*
 * Under the lock, after us_ring_fits(): writes the operation after the
 * published ones and intends to publish it.
 */
void us_ring_put_locked(us_arena_t *a, const us_op_t *op);

/*
 * Under the lock: overwrites n bytes from an offset in the ring on, but those
 * of operations that are not written yet.
 */
void us_ring_clear_locked(us_arena_t *a, uint64_t at, size_t n);

static inline size_t
us_op_size(const us_op_t *op)
{
    uint8_t  head[US_OP_HEAD_MAX];

    return us_op_head(op, head) + op->bytes.len;
}


/* whether there is room for n bytes, or no ring */

static inline int
us_ring_fits(const us_arena_t *a, size_t n)
{
    /*
     * Acquire: the journal has read the bytes below `written`; they must not
     * be overwritten before.
     */

    return a->head->ring_size == 0
           || a->head->published + n - us_acquire(&a->head->written)
              <= a->head->ring_size;
}


#endif /* _US_RING_H_INCLUDED_ */
