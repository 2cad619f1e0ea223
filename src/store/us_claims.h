
/*
 * Claims: when each id was claimed last, in units of head->revisit seconds.
 *
 * A claim is 2 bytes, in chunks that are allotted when the first claim in them
 * is made: a chunk of 16 KiB has 8,192 ids.
 *
 *     0            never, or long ago
 *     1 .. 65535   1 + unit % 65535, where unit = seconds since 1970 / revisit
 *
 *
 * The rule.  An add asks whether a claim is older than N units.  The age of a
 * claim is the clock less the claim's unit.
 *
 *     state                       answer    next state
 *
 *     URL unknown                 new       claimed at the clock
 *     claimed, age <= N           seen      the same
 *     claimed, age > N            due       claimed at the clock
 *     never claimed, long ago     due       claimed at the clock
 *
 * A claim may also be set to any earlier time, or cleared (us_store_claim()); a
 * delete clears it.  A claim of age n was made more than n - 1 and less than
 * n + 1 units ago.  So a URL is never due before N units have passed, and is
 * due when N + 1 have.
 *
 * Of any number of writers that ask at once, one is answered `due`: a claim is
 * checked and set under the store's lock.  A compare and swap of the 2 bytes
 * would not do.  The operation needs its place in the journal's stream, which
 * only the lock gives; and a writer killed after its swap would leave a claim
 * that no journal has.  Under the lock, the operation and the claims of a batch
 * are one commit.  The lock is taken only for what is due: a URL that is known
 * and claimed is answered without it.
 *
 *
 * The clock, head->clock, is the greatest time that a lock holder has seen.
 * When the machine's clock goes back, this one stands.  So no claim gets
 * younger than it was.
 *
 *
 * The window.  The clock turns over 65,535 units.  A claim that old would look
 * young again.  So whenever the clock advances, a part of the claims is swept:
 * those older than US_CLAIMS_WINDOW become 0, "long ago".  A sweep of all ids
 * takes at most US_CLAIMS_PASS units.  Two visits of one id are at most twice
 * that apart:
 *
 *     age    0 ........ 65,000 ........ 65,512 .. 65,534
 *            exact      exact, or       not used: room for claims that are
 *                       long ago        newer than the clock a reader has
 *
 * No claim is newer than head->clock, but one reader has them so: of a dump
 * that is being loaded (us_dump.c).
 */


#ifndef _US_CLAIMS_H_INCLUDED_
#define _US_CLAIMS_H_INCLUDED_


#include "us_marks.h"


#define US_CLAIMS_TURN    65535       /* units */
#define US_CLAIMS_WINDOW  65000       /* ages that are kept */
#define US_CLAIMS_PASS    256
#define US_CLAIMS_OLDEST  (US_CLAIMS_WINDOW + 2 * US_CLAIMS_PASS)


/*
 * The values of claims of some age or more: n of them, from `first` on, modulo
 * 2^16; and 0.
 */

typedef struct {
    uint16_t           first;
    uint32_t           n;
} us_claims_rule_t;


/* where the claim of an id is, or NULL: it was never claimed */

static inline uint16_t *
us_claims_at(const us_arena_t *a, uint64_t id)
{
    uint32_t   chunk;
    uint64_t   at;
    uint32_t  *directory;

    at = id >> (a->chunk_shift - 1);

    if (at >= a->head->area[US_AREA_CLAIMS].max) {
        return NULL;
    }

    directory = (uint32_t *) (a->base
                              + a->head->area[US_AREA_CLAIMS].directory);
    chunk = __atomic_load_n(&directory[at], __ATOMIC_RELAXED);

    if (chunk == 0) {
        return NULL;
    }

    return (uint16_t *) (a->base + ((uint64_t) chunk << a->chunk_shift))
           + (id & (((uint64_t) 1 << (a->chunk_shift - 1)) - 1));
}


static inline uint16_t
us_claims_read(const us_arena_t *a, uint64_t id)
{
    uint16_t  *p;

    p = us_claims_at(a, id);

    /*
     * Acquire: the LSN of the operation that made the claim, and the clock's
     * value, were released before it.  So an answer that depends on the claim
     * waits for that LSN.
     */

    return p ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : 0;
}


static inline int
us_claims_due(const us_claims_rule_t *rule, uint16_t value)
{
    return value == 0 || (uint16_t) (value - rule->first) < rule->n;
}


/* of claims older than `older` units at time `unit`, by a clock that stood */
void us_claims_rule(us_claims_rule_t *rule, uint64_t clock, uint64_t unit,
    uint64_t older);

/* a claim at `unit`, by this clock; 0 if that is long ago */
uint16_t us_claims_value(uint64_t clock, uint64_t unit);

/* the other way round: 0 if never, or long ago */
uint64_t us_claims_unit(uint64_t clock, uint16_t value);

/* the first id in [from, to) whose claim is due, or `to`; without the lock */
uint64_t us_claims_scan(const us_arena_t *a, const us_claims_rule_t *rule,
    uint64_t from, uint64_t to);

/*
 * Under the lock, nothing intended: sweeps, then intends the clock to be
 * `unit`, which must be later.
 */
void us_claims_tick_locked(us_arena_t *a, uint64_t unit);

/* under the lock, nothing intended: room for a claim; -1: there is none */
int us_claims_reserve_locked(us_arena_t *a, uint64_t id);

/* the claim of an id that no reader knows yet, for which there is room */
void us_claims_write_locked(us_arena_t *a, uint64_t id, uint16_t value);

/* intends the claim of an id; 0 needs no room */
void us_claims_set_locked(us_arena_t *a, uint64_t id, uint16_t value);

/* the same for 4 ids from 4 * number on, in the order of their bytes */
void us_claims_word_locked(us_arena_t *a, uint64_t number, uint64_t word);


#endif /* _US_CLAIMS_H_INCLUDED_ */
