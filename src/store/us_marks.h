
/*
 * Marks: one bit for an id.  The deleted ids are such bits, too.
 *
 * The bits of a mark lie in chunks, which are allotted when the first bit in
 * them is set: a chunk of 16 KiB has 131,072 ids.
 */


#ifndef _US_MARKS_H_INCLUDED_
#define _US_MARKS_H_INCLUDED_


#include "../zone/us_arena.h"


/* 64 ids; a word that has no memory is zero */

static inline uint64_t *
us_marks_word(const us_arena_t *a, us_area_id_t id, uint64_t word)
{
    return (uint64_t *) us_sparse_at(a, id, word * sizeof(uint64_t));
}


static inline int
us_marked(const us_arena_t *a, us_area_id_t id, uint64_t number)
{
    uint64_t  *word;

    word = us_marks_word(a, id, number / 64);

    /*
     * Acquire: the LSN of the operation that set the bit was released before
     * it, so an answer that depends on the bit waits for that LSN.
     */

    return word && us_acquire(word) >> number % 64 & 1;
}


/* under the lock, nothing intended: room for this bit; -1: there is none */

static inline int
us_mark_reserve_locked(us_arena_t *a, us_area_id_t id, uint64_t number)
{
    return us_arena_allot_locked(a, id, number >> (a->chunk_shift + 3));
}


/* intends to set the bit, for which there is room, or to clear it */

static inline void
us_mark_set_locked(us_arena_t *a, us_area_id_t id, uint64_t number, int on)
{
    uint64_t  *word, bit;

    word = us_marks_word(a, id, number / 64);
    bit = (uint64_t) 1 << number % 64;

    if (word) {
        us_intend_locked(a, word, on ? us_intended(a, word) | bit
                              : us_intended(a, word) & ~bit);
    }
}


#endif /* _US_MARKS_H_INCLUDED_ */
