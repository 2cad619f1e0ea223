
/*
 * Claims: when each id was claimed last, in units of head->revisit seconds.
 *
 * A claim is 4 bytes, in chunks that are allotted when the first claim in them
 * is made: a chunk of 16 KiB has 4,096 ids.
 *
 *     0       never
 *     unit    seconds since 1970 / revisit
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
 *     never claimed               due       claimed at the clock
 *
 * A claim may also be set to any earlier time, or cleared (us_store_claim()); a
 * delete clears it.  A claim of age n was made more than n - 1 and less than
 * n + 1 units ago.  So a URL is never due before N units have passed, and is
 * due when N + 1 have.
 *
 * Of any number of writers that ask at once, one is answered `due`: a claim is
 * checked and set under the store's lock.  A compare and swap of the 4 bytes
 * would not do.  The operation needs its place in the journal's stream, which
 * only the lock gives; and a writer killed after its swap would leave a claim
 * that no journal has.  Under the lock, the operation and the claims of a batch
 * are one commit.  The lock is taken only for what is due: a URL that is known
 * and claimed is answered without it.
 *
 *
 * The clock, head->clock, is the greatest time that a lock holder has seen.
 * When the machine's clock goes back, this one stands.  So no claim gets
 * younger than it was.  A claim that is newer than the clock which a reader has
 * is not due.
 */


#ifndef _US_CLAIMS_H_INCLUDED_
#define _US_CLAIMS_H_INCLUDED_


#include "us_marks.h"


#define US_CLAIMS_UNIT_MAX  UINT32_MAX    /* of one minute: 8,000 years */


/* where the claim of an id is, or NULL: it was never claimed */

static inline uint32_t *
us_claims_at(const us_arena_t *a, uint64_t id)
{
    return (uint32_t *) us_sparse_at(a, US_AREA_CLAIMS, id * sizeof(uint32_t));
}


static inline uint32_t
us_claims_read(const us_arena_t *a, uint64_t id)
{
    uint32_t  *p;

    p = us_claims_at(a, id);

    /*
     * Acquire: the LSN of the operation that made the claim, and the clock's
     * value, were released before it.  So an answer that depends on the claim
     * waits for that LSN.
     */

    return p ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : 0;
}


/*
 * Claims below this unit, also 0, are older than `older` units.  `unit` is the
 * time; the clock may be ahead of it, and stands while nobody writes.
 */

static inline uint32_t
us_claims_before(uint64_t clock, uint64_t unit, uint64_t older)
{
    unit = unit > clock ? unit : clock;

    return unit > older ? (uint32_t) (unit - older) : 1;
}


/* the first id in [from, to) claimed before `before`, or `to`; no lock */
uint64_t us_claims_scan(const us_arena_t *a, uint32_t before, uint64_t from,
    uint64_t to);

/* under the lock, nothing intended: room for a claim; -1: there is none */
int us_claims_reserve_locked(us_arena_t *a, uint64_t id);

/* the claim of an id that no reader knows yet, for which there is room */
void us_claims_write_locked(us_arena_t *a, uint64_t id, uint32_t unit);

/* intends the claim of an id; 0 needs no room */
void us_claims_set_locked(us_arena_t *a, uint64_t id, uint32_t unit);

/*
 * The unit of a claim of 2 bytes, as older dumps have them (operation 14):
 *
 *     0            never, or long ago
 *     1 .. 65535   1 + unit % 65535
 *
 * The clock is the dump's.  An age above 65,512 units stands for a claim that
 * is newer than it.
 */
uint32_t us_claims_short(uint64_t clock, uint16_t value);


#endif /* _US_CLAIMS_H_INCLUDED_ */
