
/*
 * Private memory with huge pages: see us_huge.h.
 */


#include "us_huge.h"

#include <sys/mman.h>


#define US_HUGE_ALIGN  ((size_t) 64 << 10)


void *
us_huge_map(size_t size, size_t huge)
{
    size_t    skip, spare, end;
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

    /* from a multiple of 64 KB on, the largest page that there is */

    end = size + spare - skip;
    size = (size + US_HUGE_ALIGN - 1) & ~(US_HUGE_ALIGN - 1);

    if (size < end) {
        munmap(p + size, end - size);
    }

    /* without them it works as well */

    (void) madvise(p, huge, MADV_HUGEPAGE);

    return p;
}
