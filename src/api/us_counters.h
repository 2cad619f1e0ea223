
/*
 * The counters of a zone.  Each process has a tally of its own in shared
 * memory, so that counting costs no shared cache line; a reader adds the
 * tallies up.
 */


#ifndef _US_COUNTERS_H_INCLUDED_
#define _US_COUNTERS_H_INCLUDED_


#include "../us_words.h"


#define US_TALLIES      64
#define US_N_BUCKETS    13
#define US_N_ENDPOINTS  20            /* at most */


typedef enum {
    US_N_NEW = 0,                     /* URLs, by answer: us_counter_of() */

    US_N_LOCK_WAITS = US_N_NEW + US_ANSWERS_COUNTED,
    US_N_TRAININGS,
    US_N_QUOTA,                       /* requests refused by a quota */
    US_N_UNREADY,                     /* requests answered 503 */
    US_N_BYTES,                       /* of request bodies, inflated */
    US_N_BUDGET,                      /* URLs rejected: rules took too long */
    US_N_HOT,                         /* URLs that a hot table answered */
    US_N_CLAIMS,                      /* claims that /claim made */

    US_N_REPEATED,                    /* items, for Idempotency-Key */
    US_N_FORGOTTEN,                   /* requests with a key, not promised */

    US_N_UNAVAILABLE,                 /* items of a cluster not answered */

    US_N_SUM,                         /* of the batches' time, in us */
    US_N_BUCKET,                      /* batches, by time; the last: +Inf */

    US_N_REQUESTS = US_N_BUCKET + US_N_BUCKETS,

    US_N = 56                         /* seven cache lines */
} us_counter_t;

_Static_assert(US_N_REQUESTS + US_N_ENDPOINTS <= US_N,
               "a tally has no room for the counters");


/* that of an answer, one of the first US_ANSWERS_COUNTED */
#define us_counter_of(answer)  (US_N_NEW + (answer) - US_ANSWER_NEW)


/*
 * Two workers share a tally only while an old one drains, or beyond US_TALLIES,
 * so they are atomic all the same.
 */

typedef struct {
    uint64_t  n[US_N];
} us_tally_t;


/* upper bounds of the buckets, in us; the last bucket has none */
extern const uint64_t  us_counter_bounds[US_N_BUCKETS - 1];


static inline void
us_tally_add(us_tally_t *tally, unsigned counter, uint64_t n)
{
    (void) __atomic_fetch_add(&tally->n[counter], n, __ATOMIC_SEQ_CST);
}


/* one batch that took so long */
void us_tally_batch(us_tally_t *tally, uint64_t us);

/* n: the sums of the first counters, of US_TALLIES tallies */
void us_tally_sums(const us_tally_t *tallies, uint64_t *n, unsigned counters);


#endif /* _US_COUNTERS_H_INCLUDED_ */
