
/*
 * What GET /urls?older= costs: the scan of the claims of so many ids, of which
 * one in so many is due; of those of one chunk after the other, in slices of
 * 262,144 ids, as the server has them.  Nanoseconds of CPU time for an id, and
 * the time for all.
 *
 *     build/bench/claims [IDS]
 */


#include "store/us_store_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>


#define SLICE   262144
#define PASSES  5
#define CLOCK   490000


static double
cpu(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


/* claims of the last 100 units; those of one id in `due` are older */

static void
fill(us_arena_t *a, uint64_t ids, uint64_t due)
{
    uint64_t  id, seed;

    seed = 1;

    for (id = 0; id < ids; id++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;

        if (us_claims_reserve_locked(a, id) != 0) {
            fprintf(stderr, "no room\n");
            exit(2);
        }

        us_claims_write_locked(a, id, CLOCK
            - (due && seed % due == 0 ? 1000 : (seed >> 33) % 100));
    }
}


static uint64_t
scan(const us_arena_t *a, uint64_t ids)
{
    uint64_t  at, end, found;

    found = 0;

    for (at = 0; at < ids; /* void */ ) {
        end = at + SLICE < ids ? at + SLICE : ids;

        while ((at = us_claims_scan(a, us_claims_before(CLOCK, CLOCK, 500),
                                    at, end)) < end)
        {
            found++;
            at++;
        }
    }

    return found;
}


int
main(int argc, char **argv)
{
    void             *mem;
    size_t            size;
    double            t, best;
    uint64_t          ids, found;
    unsigned          i, k;
    us_arena_t        a;
    us_store_conf_t   conf;

    static const uint64_t  dues[] = { 0, 100000, 1000, 100, 10 };

    ids = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;

    /* a zone gives at most two thirds of its memory to claims */

    size = ids * 6 + ((size_t) 64 << 20);

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    memset(&conf, 0, sizeof(conf));
    conf.revisit = 3600;

    if (mem == MAP_FAILED || us_arena_format(&a, mem, size, &conf) != 0) {
        fprintf(stderr, "no memory\n");
        return 2;
    }

    printf("%12s %12s %12s %12s\n", "due, one in", "found", "s CPU",
           "ns an id");

    for (i = 0; i < sizeof(dues) / sizeof(dues[0]); i++) {
        fill(&a, ids, dues[i]);
        best = 1e9;
        found = 0;

        for (k = 0; k < PASSES; k++) {
            t = cpu();
            found = scan(&a, ids);
            t = cpu() - t;
            best = t < best ? t : best;
        }

        printf("%12lu %12lu %12.3f %12.3f\n", (unsigned long) dues[i],
               (unsigned long) found, best, best / ids * 1e9);
    }

    return 0;
}
