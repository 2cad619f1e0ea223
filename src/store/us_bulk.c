
/*
 * Bulk loading of the index: entries are collected by the first bits of their
 * paths, and merged into all leaves at once, in the order of the leaves' paths.
 *
 *   hash, id --> 1,024 lists --> sorted by leaf --\
 *                                                   leaf by leaf --> new leaves
 *   old leaves, in the order of their paths ------/
 *
 * Entries that are to be removed are collected in the same way, and leave their
 * leaf when it is made anew.
 *
 * An entry costs a few writes to memory in sequence.  To add it to its leaf
 * would cost cache misses and, each time that the leaf is full, a copy.  The
 * leaves are as small as they can be: they have no slots to spare.  Since
 * nobody reads them meanwhile, they follow each other without gaps.
 *
 *   zone     | ... | leaf 7 | leaf 6 | leaf 5 | leaf 4 | ...     <---- filled
 *            | chunk          | chunk            | chunk |          downwards
 *
 * Chunks are taken downwards, so those of one merge are mostly adjacent, and a
 * leaf may lie across them.  Old leaves are read some chunks ahead: a chunk
 * that was read is filled again.  So a merge takes no more chunks than the
 * index has afterwards.
 *
 *
 * The bound.  The bits of a leaf of n entries with ids below `ids`:
 *
 *     64  header          8 n  fingerprints        x n  split
 *     n low + ids / 2^low + n                      ids (Elias, Fano)
 *
 * each part rounded up to words.  Each leaf has the low that is best for its n,
 * or nearly.  So with one low for all leaves they would take as much, or more.
 * That larger sum is the bound: it depends on the number of leaves and entries
 * only, not on how a hash key spreads entries over leaves.  With x = 0 (split
 * bits only save hashing) the bound is less than the bytes of the same leaves
 * when they grew one by one.
 */


#include "us_bulk_private.h"

#include <stdlib.h>


us_bulk_t *
us_bulk_create(us_arena_t *a, us_index_hash_pt hash, void *data)
{
    us_bulk_t  *b;

    b = calloc(1, sizeof(us_bulk_t));

    if (b) {
        b->arena = a;
        b->hash = hash;
        b->data = data;
    }

    return b;
}


static void
us_bulk_drop(us_bulk_side_t *side)
{
    us_bulk_slab_t  *slab;

    while (side->slab) {
        slab = side->slab;
        side->slab = slab->before;
        free(slab);
    }

    memset(side, 0, sizeof(us_bulk_side_t));
}


void
us_bulk_forget(us_bulk_t *b)
{
    unsigned  t;

    for (t = 0; t < US_BULK_THREADS; t++) {
        us_bulk_drop(&b->sides[t]);
    }
}


void
us_bulk_destroy(us_bulk_t *b)
{
    if (b == NULL) {
        return;
    }

    us_bulk_forget(b);

    free(b->chunks.chunks);
    free(b->old.chunks);
    free(b);
}


static us_bulk_block_t *
us_bulk_block(us_bulk_side_t *side, unsigned part)
{
    us_bulk_slab_t   *slab;
    us_bulk_block_t  *block;

    if (side->slab == NULL || side->used == US_BULK_SLAB) {
        slab = malloc(sizeof(us_bulk_slab_t));

        if (slab == NULL) {
            return NULL;
        }

        slab->before = side->slab;
        side->slab = slab;
        side->nslabs++;
        side->used = 0;
    }

    block = &side->slab->blocks[side->used++];
    block->before = side->last[part];
    block->n = 0;
    side->last[part] = block;

    return block;
}


int
us_bulk_put(us_bulk_t *b, unsigned t, uint64_t hash, uint64_t id,
    us_bulk_kind_t kind)
{
    unsigned          part;
    us_bulk_side_t   *side;
    us_bulk_block_t  *block;
    us_bulk_entry_t  *e;

    side = &b->sides[t];
    part = us_path(hash) >> (64 - US_BULK_PART_BITS);
    block = side->last[part];

    if (block == NULL || block->n == US_BULK_BLOCK) {
        block = us_bulk_block(side, part);

        if (block == NULL) {
            return -1;
        }
    }

    e = &block->entries[block->n++];
    e->hash = hash;
    e->id = id & (((uint64_t) 1 << US_BULK_ID_BITS) - 1);
    e->kind = kind;

    return 0;
}


size_t
us_bulk_memory(const us_bulk_t *b)
{
    size_t    bytes;
    unsigned  t;

    bytes = 0;

    for (t = 0; t < US_BULK_THREADS; t++) {
        bytes += b->sides[t].nslabs * sizeof(us_bulk_slab_t);
    }

    return bytes;
}


uint64_t
us_bulk_leaves(uint64_t entries)
{
    uint64_t  leaves;

    leaves = entries / US_LEAF_MEAN + 1;

    return leaves < US_FIRST_LEAF ? US_FIRST_LEAF : leaves;
}


/* bytes of so many leaves with x split bits, see the top of this file */

static uint64_t
us_bulk_bytes(unsigned leaf_shift, uint64_t leaves, uint64_t entries,
    uint64_t ids, unsigned x)
{
    unsigned  low;
    uint64_t  each, bits;

    if (entries == 0) {
        return 0;
    }

    /* header, what rounding adds to each part, and to the whole */

    each = 64 + 56 + 63 + 63 + 1 + (((uint64_t) 8 << leaf_shift) - 64);
    low = us_leaf_low(entries / leaves + 1, ids);

    bits = leaves * (each + (ids >> low)) + entries * (8 + x + low + 1);

    return bits / 8 + 1;
}


uint64_t
us_bulk_chunks(unsigned chunk_shift, unsigned leaf_shift, uint64_t leaves,
    uint64_t entries, uint64_t ids)
{
    uint64_t  directory;

    directory = ((2 * leaves - 1) >> (chunk_shift - 2))
                - (leaves >> (chunk_shift - 2)) + 1;

    /*
     * The last chunk is not full, and a leaf that does not fit leaves a gap
     * where two chunks are not adjacent.
     */

    return directory + 2
           + (us_bulk_bytes(leaf_shift, leaves, entries, ids, 0)
              >> chunk_shift);
}


int
us_bulk_fits(const us_bulk_t *b, uint64_t leaves, uint64_t entries,
    uint64_t ids)
{
    us_arena_t  *a;

    a = b->arena;

    return us_directory_chunks(a, leaves)
           <= a->head->area[US_AREA_DIRECTORY].max
           && us_bulk_chunks(a->chunk_shift, a->head->leaf_shift, leaves,
                             entries, ids)
              <= us_arena_free(a);
}


unsigned
us_bulk_most(const us_bulk_t *b, uint64_t leaves, uint64_t entries,
    uint64_t ids)
{
    unsigned     x;
    uint64_t     have;
    us_arena_t  *a;

    a = b->arena;
    have = us_arena_free(a) + a->head->area[US_AREA_LEAVES].n;

    for (x = US_SPLIT_MAX; x > 0; x--) {
        if ((us_bulk_bytes(a->head->leaf_shift, leaves, entries, ids, x)
             >> a->chunk_shift) + 2 <= have)
        {
            break;
        }
    }

    return x;
}
