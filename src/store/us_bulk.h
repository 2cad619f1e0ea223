
/*
 * Bulk loading of the index, by a replay that has the store to itself.  See
 * us_bulk.c.
 */


#ifndef _US_BULK_H_INCLUDED_
#define _US_BULK_H_INCLUDED_


#include "us_index.h"


/* threads that collect at the same time */
#define US_BULK_THREADS   2

/*
 * Bytes of entries collected before they are merged into the index, or a
 * quarter of a smaller zone.  What else a loader needs is small beside it.
 */
#define US_BULK_MEMORY    ((size_t) 64 << 20)

typedef struct us_bulk_s  us_bulk_t;


/* hash and data: for leaves whose split bits are used up.  NULL: no memory */
us_bulk_t *us_bulk_create(us_arena_t *a, us_index_hash_pt hash, void *data);
void us_bulk_destroy(us_bulk_t *b);

/*
 * What is collected: an entry that the next merge adds, of a URL, which is
 * dropped if its id is deleted by then, or of a site; or an entry that the
 * index has, and that the next merge removes.  There need not be such a one.
 */
typedef enum {
    US_BULK_URL = 0,
    US_BULK_SITE,
    US_BULK_GONE
} us_bulk_kind_t;

/* by thread t; -1: no memory */
int us_bulk_put(us_bulk_t *b, unsigned t, uint64_t hash, uint64_t id,
    us_bulk_kind_t kind);

/* bytes of an entry; of all that are collected */
#define US_BULK_ENTRY  16

size_t us_bulk_memory(const us_bulk_t *b);

/*
 * Merges what is collected into the index, of ids below `to`.  last: nothing
 * will be merged after it.  expect: entries that the index is going to have,
 * or 0.  0, US_REPLAY_NO_ROOM or US_REPLAY_FAILED: the index is of no use any
 * more.
 */
int us_bulk_merge(us_bulk_t *b, uint64_t to, int last, uint64_t expect);

/*
 * An image into an empty index: begun with the number of leaves that there
 * were when it was, then the words of leaf after leaf (us_index.h), of which
 * entries below `end` are taken.  0, or as us_store_apply().
 */
int us_bulk_image_begin(us_bulk_t *b, uint64_t leaves, uint64_t end);
int us_bulk_image_leaf(us_bulk_t *b, uint64_t leaf, const uint8_t *words,
    size_t n);
int us_bulk_image_end(us_bulk_t *b);

/*
 * The chunks that suffice for the index of a store that is replayed, whatever
 * its hash key: of so many leaves, entries and ids, in a zone with these units
 * (us_head_t).
 */
uint64_t us_bulk_chunks(unsigned chunk_shift, unsigned leaf_shift,
    uint64_t leaves, uint64_t entries, uint64_t ids);

/*
 * Under the lock, before an operation that adds so many entries to the index:
 * sets the chunks that must stay free beside it (us_arena.h, "the reserve").
 */
void us_bulk_keep_locked(us_arena_t *a, unsigned more);

/* whether an empty index has room for so many of them */
int us_bulk_fits(const us_bulk_t *b, uint64_t leaves, uint64_t entries,
    uint64_t ids);

/*
 * As many leaves as growth makes for so many entries; and of a store that has
 * some, which never become less.
 */
uint64_t us_bulk_leaves(uint64_t entries);
uint64_t us_bulk_more_leaves(const us_head_t *h, uint64_t entries);


#endif /* _US_BULK_H_INCLUDED_ */
