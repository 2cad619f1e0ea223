
/*
 * For tests: the objects of a set, as its tree leads to them: what they take,
 * and whether each knows its place, or it would be lost when its chunk is
 * cleaned.  See us_sets.c.
 */


#ifndef _MEMBERS_H_INCLUDED_
#define _MEMBERS_H_INCLUDED_


#include "store/us_sets.h"


typedef struct {
    uint64_t      objects;
    uint64_t      bytes;
    uint64_t      astray;             /* objects whose first word is wrong */
    uint64_t     *living;             /* bytes by chunk, or NULL */
} members_t;


static inline void
members_walk(const us_arena_t *a, uint32_t row, uint64_t e, unsigned level,
    uint64_t id, members_t *m)
{
    unsigned   i, n, shift;
    uint64_t   at, bytes, *words;

    static const unsigned  each[] = { 0, 0, 2, 4, 0, 0 };

    n = e >> 3 & 0x1fff;
    at = e >> 16 << 3;
    shift = level ? 16 + 6 * (level - 1) : 13;

    if ((e & 7) < 2) {
        return;
    }

    bytes = (e & 7) == 4 ? 8 + 1024
            : (e & 7) != 5 ? 8 + (each[e & 7] * n + 7) / 8 * 8
            : 8 + (n == 1 ? 8 : 64) * 8;

    words = (uint64_t *) (a->base + at);

    m->objects++;
    m->bytes += bytes;
    m->astray += words[0] != (bytes / 8 | level << 9 | (uint64_t) row << 12
                              | id >> shift << 28);

    if (m->living) {
        m->living[at >> a->chunk_shift] += bytes;
    }

    if ((e & 7) == 5) {
        shift = n == 1 ? 13 : shift - 6;

        for (i = 0; i < (n == 1 ? 8 : 64); i++) {
            members_walk(a, row, words[1 + i], n - 1,
                         id + ((uint64_t) i << shift), m);
        }
    }
}


/* of a whole set; adds to what is there */

static inline void
members_add(const us_arena_t *a, uint32_t row, members_t *m)
{
    uint64_t  root;

    root = us_set_row(a, row)->root;

    members_walk(a, row, root, (root & 7) == 5 ? root >> 3 & 0x1fff : 1, 0, m);
}


#endif /* _MEMBERS_H_INCLUDED_ */
