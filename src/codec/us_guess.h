
/*
 * Where records probably lie: see us_guess.c.
 */


#ifndef _US_GUESS_H_INCLUDED_
#define _US_GUESS_H_INCLUDED_


#include "../zone/us_log.h"


#define US_GUESS_UNIT    16           /* of the log's units: 8 bytes */


/* zero at first */

typedef struct {
    uint32_t      *bases;             /* of lines, in US_GUESS_UNIT; 0: none */
    uint64_t       n;
    unsigned       failed:1;          /* there was no memory */
} us_guess_t;


void us_guess_free(us_guess_t *g);

/* room for a line; -1: there is none */
int us_guess_grow(us_guess_t *g, uint64_t line);

/* a position in units from the start of the zone; 0: not known */
uint64_t us_guess_place(const us_guess_t *g, uint64_t id);

/* asks for the line of id, and for the record */
void us_guess_prefetch(const us_guess_t *g, const us_arena_t *a, uint64_t id);


/* remembers the line of id, which the caller has just read */

static inline void
us_guess_learn(us_guess_t *g, const us_arena_t *a, uint64_t id)
{
    uint32_t  base;
    uint64_t  line;

    line = id / US_LOG_GROUP;
    base = (uint32_t) (us_log_base(a, id) / US_GUESS_UNIT);

    if (line >= g->n && us_guess_grow(g, line) == -1) {
        return;
    }

    if (g->bases[line] != base) {
        g->bases[line] = base;
    }
}


#endif /* _US_GUESS_H_INCLUDED_ */
