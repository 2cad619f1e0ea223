
/*
 * Sets of ids, by name: see us_sets.c.
 */


#ifndef _US_SETS_H_INCLUDED_
#define _US_SETS_H_INCLUDED_


#include "us_keys.h"
#include "us_ring.h"


/* ids that one commit puts in or takes out; of a request with a key, half */
#define US_SET_AT_ONCE   (2 * US_KEYS_AT_ONCE)

/* what one hold of the lock frees, in objects, and moves, in bytes */
#define US_SET_SLICE     256
#define US_SET_MOVED     (256 * 1024)

/* the largest object of a set, bytes */
#define US_SET_OBJECT    (8 + 2048)

/* ids are below: 36 bits of them are in an object, less a part's 13 */
#define US_SET_ID_MAX    ((uint64_t) 1 << 49)

/* sets, and those that are being dropped: 16 bits have a row and 1 */
#define US_SET_ROWS      65535

/* of a row's number: the set is being dropped */
#define US_SET_DROPPED   ((uint64_t) 1 << 63)

/* numbers in a journal are below, so that one is always left for a new set */
#define US_SET_NUMBERS   ((uint64_t) 1 << 62)


/* FORMAT: a set, in US_AREA_SETS.  Its number is 0 in a row that is free. */

typedef struct {
    uint64_t           number;
    uint64_t           root;          /* an entry */
    uint64_t           members;
    uint64_t           bytes;         /* of its objects */
    uint64_t           created;       /* s since 1970; 0: a mark's */
    uint64_t           asked;         /* URLs, since the zone was made */
    uint64_t           links;         /* rows of this name, and number */
    uint64_t           len;
    uint8_t            name[US_STORE_SET_LEN];
} us_set_row_t;


/* the ids from first to last */

typedef struct {
    uint64_t           first;
    uint64_t           last;
} us_set_run_t;


static inline us_set_row_t *
us_set_row(const us_arena_t *a, uint64_t row)
{
    return (us_set_row_t *) us_area_at(a, US_AREA_SETS,
                                       row * sizeof(us_set_row_t));
}


/*
 * The number and the row of the set of that name, or of that number; 0: there
 * is none.  No lock.
 */
uint64_t us_set_find(const us_arena_t *a, us_str_t name, uint32_t *row);
uint64_t us_set_find_number(const us_arena_t *a, uint64_t number,
    uint32_t *row);

/* the first run of members in [from, to), or a part of it; 0: none; no lock */
int us_set_next(const us_arena_t *a, uint32_t row, uint64_t from, uint64_t to,
    us_set_run_t *run);

static inline int
us_set_has(const us_arena_t *a, uint32_t row, uint64_t id)
{
    us_set_run_t  run;

    return us_set_next(a, row, id, id + 1, &run);
}


/* What follows is done under the lock, nothing intended. */

/* makes the lists by which sets are found: after a kill, or with a new key */
void us_sets_link_locked(us_arena_t *a);

/*
 * Makes a set, whose operation goes to the ring, or NULL.  0 and its row; -1:
 * there is no room.
 */
int us_set_make_locked(us_arena_t *a, uint64_t number, us_str_t name,
    uint64_t created, const us_op_t *op, uint32_t *row);

/* gives a set another number, and the time when it was created */
void us_set_renumber_locked(us_arena_t *a, uint32_t row, uint64_t number,
    uint64_t created);

/*
 * Drops a set.  Its memory is free when us_sets_tend_locked() has been called
 * until that returns 0; each call does a part of it.
 */
void us_set_drop_locked(us_arena_t *a, uint32_t row, const us_op_t *op);
int us_sets_tend_locked(us_arena_t *a);

/*
 * Puts ids in, or takes them out.  They ascend.  Returns how many of the runs
 * were done: all, or those for which there was room.
 *
 * With `journal` the runs are ids, which are not in or in now, and they become
 * operations; there is room in the ring for us_set_op_bytes() of them.
 */
size_t us_set_change_locked(us_arena_t *a, uint32_t row,
    const us_set_run_t *runs, size_t n, int in, int journal);

/* runs as bytes: as us_op_id_write() and us_op_id_read() */
size_t us_set_run_write(uint8_t *p, uint64_t last, const us_set_run_t *run);
int us_set_run_read(const uint8_t **p, const uint8_t *end, uint64_t last,
    us_set_run_t *run);

/*
 * Chunks of some size that suffice for all sets, and how many a replay may need
 * for them beside those that they have.
 */
uint64_t us_sets_chunks(const us_arena_t *a, unsigned chunk_shift);
uint64_t us_sets_slack(const us_arena_t *a);


/* bytes of so many ids, in operations of at most US_KEYS_AT_ONCE */

static inline size_t
us_set_op_bytes(size_t n)
{
    return n ? (n / US_KEYS_AT_ONCE + 1) * US_OP_HEAD_MAX + n * 10 : 0;
}


#endif /* _US_SETS_H_INCLUDED_ */
