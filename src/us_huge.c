
/*
 * Private memory with huge pages: see us_huge.h.
 */


#include "us_huge.h"

#include <sys/mman.h>


void *
us_huge_map(size_t size, size_t huge)
{
    size_t    skip, spare;
    uint8_t  *p;

    huge &= ~(US_HUGE_PAGE - 1);
    spare = huge ? US_HUGE_PAGE : 0;

    p = mmap(NULL, size + spare, PROT_READ|PROT_WRITE,
             MAP_ANONYMOUS|MAP_PRIVATE|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        return NULL;
    }

    if (huge == 0) {
        return p;
    }

    skip = -(uintptr_t) p & (US_HUGE_PAGE - 1);

    if (skip) {
        munmap(p, skip);
    }

    p += skip;

    munmap(p + size, spare - skip);

    /* without them it works as well */

    (void) madvise(p, huge, MADV_HUGEPAGE);

    return p;
}
