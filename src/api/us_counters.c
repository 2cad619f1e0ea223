
/*
 * See us_counters.h.
 */


#include "us_counters.h"


const uint64_t  us_counter_bounds[US_N_BUCKETS - 1] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000
};


void
us_tally_batch(us_tally_t *tally, uint64_t us)
{
    unsigned  i;

    for (i = 0; i < US_N_BUCKETS - 1; i++) {
        if (us <= us_counter_bounds[i]) {
            break;
        }
    }

    us_tally_add(tally, US_N_BUCKET + i, 1);
    us_tally_add(tally, US_N_SUM, us);
}


void
us_tally_sums(const us_tally_t *tallies, uint64_t *n, unsigned counters)
{
    unsigned  i, k;

    memset(n, 0, counters * sizeof(uint64_t));

    for (i = 0; i < US_TALLIES; i++) {
        for (k = 0; k < counters; k++) {
            n[k] += __atomic_load_n(&tallies[i].n[k], __ATOMIC_RELAXED);
        }
    }
}
