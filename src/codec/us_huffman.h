
/*
 * Lengths of a prefix code from counts.
 */


#ifndef _US_HUFFMAN_H_INCLUDED_
#define _US_HUFFMAN_H_INCLUDED_


#include "../us_base.h"


#define US_HUFFMAN_MAX  16            /* bits of the longest code */


/*
 * Sorts sym[0 .. n-1] by descending counts[sym], cuts it into runs of equal
 * length and returns their sizes: nlen[l] symbols of l bits, shortest first.
 * n is at least 2 and at most 2^(max - 1), counts are at least 1, work has
 * 2 * n elements.  The code is complete.
 */
void us_huffman_lengths(const uint32_t *counts, uint16_t *sym, size_t n,
    unsigned max, uint16_t nlen[US_HUFFMAN_MAX + 1], uint64_t *work);


#endif /* _US_HUFFMAN_H_INCLUDED_ */
