
/*
 * Any bytes in pieces, as a body comes from the network: what a reader of
 * pieces makes of them must not depend on where they were cut.  Each piece
 * lies in memory of its own, so that a byte read beyond it is seen.
 */


#ifndef _PIECES_H_INCLUDED_
#define _PIECES_H_INCLUDED_


#include "us_base.h"

#include <stdio.h>
#include <stdlib.h>


static inline void
broken(const char *law, us_str_t in)
{
    fprintf(stderr, "law \"%s\" broken\n  input: \"%.*s\"\n", law,
            (int) in.len, in.data);
    abort();
}


/* 0: go on; anything else ends the feeding and is returned */
typedef int (*pieces_pt)(void *data, const uint8_t *p, size_t len);


/* seed 0: one piece; else it decides on where to cut */

static inline int
pieces_feed(const uint8_t *p, size_t len, uint32_t seed, pieces_pt feed,
    void *data)
{
    int       rc;
    size_t    n;
    uint8_t  *copy;

    for (rc = 0; rc == 0 && len; p += n, len -= n) {
        n = len;

        if (seed) {
            seed = seed * 1664525 + 1013904223;
            n = 1 + (seed >> 16) % (1u << (seed >> 29));
            n = n < len ? n : len;
        }

        copy = malloc(n);
        memcpy(copy, p, n);

        rc = feed(data, copy, n);

        free(copy);
    }

    return rc;
}


#endif /* _PIECES_H_INCLUDED_ */
