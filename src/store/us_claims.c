
/*
 * The array of claims.  See us_claims.h.
 */


#include "us_claims.h"


/* claims that a scan looks at together: two cache lines of them */
#define US_CLAIMS_BLOCK  32

/* of claims of 2 bytes, in units */
#define US_CLAIMS_TURN    65535
#define US_CLAIMS_OLDEST  65512


uint32_t
us_claims_short(uint64_t clock, uint16_t value)
{
    uint64_t  age;

    if (value == 0) {
        return 0;
    }

    age = (clock % US_CLAIMS_TURN + US_CLAIMS_TURN - (value - 1))
          % US_CLAIMS_TURN;
    age = age > US_CLAIMS_OLDEST ? 0 : age;

    return age < clock ? (uint32_t) (clock - age) : 0;
}


/*
 * 1: one of the block's claims is due.  The claims are copied by whole words,
 * which lets the compiler compare many of them at once.
 */

static int
us_claims_block(const uint64_t *words, uint32_t before)
{
    unsigned  i;
    uint32_t  v[US_CLAIMS_BLOCK], due;
    uint64_t  copy[US_CLAIMS_BLOCK / 2];

    for (i = 0; i < US_CLAIMS_BLOCK / 2; i++) {
        copy[i] = us_acquire(&words[i]);
    }

    memcpy(v, copy, sizeof(v));

    due = 0;

    for (i = 0; i < US_CLAIMS_BLOCK; i++) {
        due |= v[i] < before;
    }

    return due;
}


uint64_t
us_claims_scan(const us_arena_t *a, uint32_t before, uint64_t from,
    uint64_t to)
{
    uint32_t  *p;

    while (from < to) {
        p = us_claims_at(a, from);

        if (p == NULL) {
            return from;
        }

        if (from % US_CLAIMS_BLOCK == 0 && to - from >= US_CLAIMS_BLOCK
            && !us_claims_block((const uint64_t *) p, before))
        {
            from += US_CLAIMS_BLOCK;
            continue;
        }

        if (us_claims_read(a, from) < before) {
            return from;
        }

        from++;
    }

    return to;
}


int
us_claims_reserve_locked(us_arena_t *a, uint64_t id)
{
    return us_arena_allot_locked(a, US_AREA_CLAIMS,
                                 id >> (a->chunk_shift - 2));
}


void
us_claims_write_locked(us_arena_t *a, uint64_t id, uint32_t unit)
{
    /* relaxed: next_id is released after it */

    __atomic_store_n(us_claims_at(a, id), unit, __ATOMIC_RELAXED);
}


void
us_claims_set_locked(us_arena_t *a, uint64_t id, uint32_t unit)
{
    uint32_t  *p;

    p = us_claims_at(a, id);

    if (p) {
        us_intend32_locked(a, p, unit);
    }
}
