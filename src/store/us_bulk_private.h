
/*
 * What the files of bulk loading share.
 *
 *     us_bulk.c          collects entries; the bound
 *     us_bulk_leaves.c   makes leaves, in chunks that are filled downwards
 *     us_bulk_merge.c    old leaves and collected entries to new leaves
 *     us_bulk_image.c    an image to leaves
 */


#ifndef _US_BULK_PRIVATE_H_INCLUDED_
#define _US_BULK_PRIVATE_H_INCLUDED_


#include "us_bulk.h"
#include "us_directory.h"
#include "us_index_path.h"
#include "us_marks.h"


#define US_BULK_PART_BITS  10
#define US_BULK_PARTS      (1u << US_BULK_PART_BITS)

#define US_BULK_ID_BITS    46

#define US_BULK_BLOCK      62         /* entries in a block */
#define US_BULK_SLAB       344        /* blocks that are allocated at once */


typedef struct {
    uint64_t           hash;
    uint64_t           id:US_BULK_ID_BITS;
    uint64_t           kind:2;        /* us_bulk_kind_t */
} __attribute__((packed)) us_bulk_entry_t;


typedef struct us_bulk_block_s  us_bulk_block_t;

struct us_bulk_block_s {
    us_bulk_block_t   *before;
    uint32_t           n;
    us_bulk_entry_t    entries[US_BULK_BLOCK];
};


typedef struct us_bulk_slab_s  us_bulk_slab_t;

struct us_bulk_slab_s {
    us_bulk_slab_t    *before;
    us_bulk_block_t    blocks[US_BULK_SLAB];
};


/* what one thread has collected */

typedef struct {
    us_bulk_slab_t    *slab;
    unsigned           used;          /* blocks of it */
    size_t             nslabs;
    us_bulk_block_t   *last[US_BULK_PARTS];
} us_bulk_side_t;


/* a growing list of chunk numbers */

typedef struct {
    uint32_t          *chunks;
    size_t             n;
    size_t             size;
} us_bulk_chunks_t;


/* an entry on its way to a leaf, or out of it */

typedef struct {
    uint64_t           path;
    uint64_t           id:US_BULK_ID_BITS;
    uint64_t           gone:1;
    uint64_t           fingerprint:8;
} us_bulk_item_t;


struct us_bulk_s {
    us_arena_t        *arena;
    us_index_hash_pt   hash;
    void              *data;

    us_bulk_side_t     sides[US_BULK_THREADS];

    us_bulk_chunks_t   chunks;        /* of the leaves, as they were filled */
    us_bulk_chunks_t   old;           /* of those that are being replaced */
    size_t             read;          /* of old: read, and filled again */
    size_t             filled;
    uint64_t           top;           /* leaves end here, in a region that */
    uint64_t           bottom;        /* begins here */
    int                failed;        /* US_REPLAY_* */

    us_entry_t         entries[US_LEAF_MAX];
    unsigned           n;
    unsigned           split;         /* bits that they have */

    /* an image: the leaf that is being put together */
    uint64_t           leaf;
    uint64_t           leaves;
    uint64_t           end;
};


/* us_bulk.c */

/* drops what is collected */
void us_bulk_forget(us_bulk_t *b);

/* the most split bits with which the leaves are sure to fit */
unsigned us_bulk_most(const us_bulk_t *b, uint64_t leaves, uint64_t entries,
    uint64_t ids);


/* us_bulk_leaves.c: 0, or US_REPLAY_* */

/* an empty index of so many leaves; what it had is going to be replaced */
int us_bulk_begin(us_bulk_t *b, uint64_t leaves);

/* makes the leaf of b->entries */
int us_bulk_leaf(us_bulk_t *b, uint64_t leaf);

/* chunks that the leaves no longer need go back to the arena */
void us_bulk_end(us_bulk_t *b);

/* removes an entry from its leaf, in place */
void us_bulk_remove(us_bulk_t *b, uint64_t hash, uint64_t id);


#endif /* _US_BULK_PRIVATE_H_INCLUDED_ */
