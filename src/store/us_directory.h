
/*
 * The directory of the index: leaf number -> address of the leaf.
 *
 *     head->area[US_AREA_DIRECTORY]     | 0 | 0 | c | d | e | 0 | ...
 *                                             ^           ^     a ring
 *                              directory_first     directory_last
 *
 *     a chunk                           | address | address | ...   32 bits
 *
 * Leaves n .. 2n-1 are in use when there are n of them (us_index.c).  So the
 * chunks in use move through the ring.  When growth needs a chunk, it is added
 * at the end; a chunk that lies wholly before head->leaves is removed, kept in
 * directory_spare, and used again.  A word that a reader gets from a chunk that
 * was just used again leads to another leaf; us_index_stale() detects that.
 *
 * For the files of the index only.
 */


#ifndef _US_DIRECTORY_H_INCLUDED_
#define _US_DIRECTORY_H_INCLUDED_


#include "../zone/us_arena.h"


static inline uint32_t *
us_directory_chunk(const us_arena_t *a, uint64_t number)
{
    us_area_t  *area;

    area = &a->head->area[US_AREA_DIRECTORY];

    return (uint32_t *) (a->base + area->directory)
           + (number & (area->max - 1));
}


static inline uint64_t
us_directory_chunk_number(const us_arena_t *a, uint64_t leaf)
{
    return leaf >> (a->chunk_shift - 2);
}


/* NULL: no leaf was ever made there */

static inline uint32_t *
us_directory_word(const us_arena_t *a, uint64_t leaf)
{
    uint32_t   chunk;

    /*
     * Acquire: a chunk was given its place after it was zeroed, or after the
     * leaves that it led to before were gone; its words must not be read as
     * they were then.
     */

    chunk = __atomic_load_n(us_directory_chunk(a,
                                          us_directory_chunk_number(a, leaf)),
                            __ATOMIC_ACQUIRE);
    if (chunk == 0) {
        return NULL;
    }

    return (uint32_t *) (a->base + ((uint64_t) chunk << a->chunk_shift))
           + (leaf & (((uint64_t) 1 << (a->chunk_shift - 2)) - 1));
}


static inline uint32_t
us_directory_get(const us_arena_t *a, uint64_t leaf)
{
    uint32_t  *word;

    word = us_directory_word(a, leaf);

    /*
     * Acquire: the leaf was filled before its address was released; a reader
     * that follows the address must not see the leaf as it was before.
     */

    return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
}


/* chunks for the words of leaves n .. 2n-1 */

static inline uint64_t
us_directory_chunks(const us_arena_t *a, uint64_t n)
{
    return us_directory_chunk_number(a, 2 * n - 1)
           - us_directory_chunk_number(a, n) + 1;
}


/* Under the lock, nothing intended; 0, or -1: no room, nothing was changed. */

/* makes sure that there is a word for this leaf, the last one or the next */
int us_directory_extend_locked(us_arena_t *a, uint64_t leaf);

/*
 * Under the lock, intends: that staged leaf 0 replaces another one, which
 * is freed (0: there was none); that leaves before this one are no more.
 */
void us_directory_replace_locked(us_arena_t *a, uint64_t leaf, uint32_t address,
    uint32_t old);
void us_directory_drop_locked(us_arena_t *a, uint64_t leaf);


#endif /* _US_DIRECTORY_H_INCLUDED_ */
