
/*
 * What a load costs here: the time of one that waits for the one before and
 * finds its line in no order, in shared memory of so many megabytes, with
 * pages of 4 KB and with huge ones.  A look-up waits for three to five of
 * them, so its figures are to be read beside these.
 *
 *     build/bench/memory [MEGABYTES ...]
 *
 * Huge pages are there only if
 * /sys/kernel/mm/transparent_hugepage/shmem_enabled says "advise".
 */


#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>


#define LINE    64
#define LOADS   5000000
#define PASSES  3


static uint64_t
next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;

    return *seed >> 33;
}


/* lines of mem as one cycle in random order (Sattolo, 1986) */

static int
cycle(char *mem, uint32_t n)
{
    uint32_t   i, k, t, *order;
    uint64_t   seed = 1;

    order = malloc(n * sizeof(uint32_t));
    if (order == NULL) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        order[i] = i;
    }

    for (i = n - 1; i; i--) {
        k = next(&seed) % i;
        t = order[i];
        order[i] = order[k];
        order[k] = t;
    }

    for (i = 0; i < n; i++) {
        memcpy(mem + (size_t) i * LINE, &order[i], sizeof(uint32_t));
    }

    free(order);

    return 0;
}


static double
chase(const volatile char *mem, uint32_t *at)
{
    unsigned         i;
    struct timespec  a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);

    for (i = 0; i < LOADS; i++) {
        *at = *(const volatile uint32_t *) (mem + (size_t) *at * LINE);
    }

    clock_gettime(CLOCK_MONOTONIC, &b);

    return ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / LOADS;
}


/* the fastest pass, in ns; below 0: no memory */

static double
measure(size_t megabytes, int huge)
{
    int        i;
    char      *mem;
    double     ns, least;
    size_t     size;
    uint32_t   at;

    size = megabytes << 20;
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_ANONYMOUS|MAP_SHARED, -1,
               0);

    if (mem == MAP_FAILED) {
        return -1;
    }

    if (huge && madvise(mem, size, MADV_HUGEPAGE) == -1) {
        fprintf(stderr, "memory: no huge pages: %s\n", strerror(errno));
    }

    least = cycle(mem, size / LINE);

    for (i = 0, at = 0; i < PASSES && least >= 0; i++) {
        ns = chase(mem, &at);
        least = i == 0 || ns < least ? ns : least;
    }

    munmap(mem, size);

    return least;
}


int
main(int argc, char **argv)
{
    double   plain, huge;
    size_t   megabytes;

    static char  *usual[] = { "", "1", "4", "16", "64", "256", "1024", "2048",
                              NULL };

    if (argc < 2) {
        argv = usual;
    }

    printf("no URLs: loads that depend on each other, in random order\n\n");
    printf("%8s %12s %12s\n", "MB", "ns a load", "huge pages");

    while (*++argv) {
        megabytes = strtoul(*argv, NULL, 10);

        if (megabytes == 0 || megabytes > 262143) {
            fprintf(stderr, "usage: memory [MEGABYTES ...]\n");
            return 2;
        }

        plain = measure(megabytes, 0);
        huge = measure(megabytes, 1);

        if (plain < 0 || huge < 0) {
            fprintf(stderr, "memory: no memory for %zu MB\n", megabytes);
            return 1;
        }

        printf("%8zu %12.0f %12.0f\n", megabytes, plain, huge);
    }

    return 0;
}
