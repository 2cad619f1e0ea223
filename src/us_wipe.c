
/*
 * Wiping memory that was freed.
 *
 * free() leaves the bytes of a block where they are.  There is no call to
 * overwrite them, but malloc() gives all of them out again before it asks the
 * system for more.  So us_wipe_heap() takes blocks of one size until the heap
 * grows, then of a smaller one, down to the smallest, overwrites each, and
 * frees them at the end.  The block for which the heap has grown begins with
 * what was left at its top.  Whole pages of a block are given back to the
 * system, which returns them as zeros: that costs less than to overwrite them.
 *
 *     heap   | used | free | used | free     | used | top |
 *                     ----          --------          --------->
 *                     taken and overwritten           grown
 *
 * Before that, malloc_trim() gives whole pages back to the system, which
 * returns them as zeros.  Blocks that are mappings of their own went back when
 * they were freed.
 *
 * It relies on glibc in three points: threads share one heap after
 * mallopt(M_ARENA_MAX, 1); that heap grows by sbrk(); a thread keeps some freed
 * blocks of up to 1,032 bytes for itself, which only that thread can take.
 * These may have what another thread has left: a block of the heap that is
 * taken, hardly used and freed.  So a thread of jobs ends each of them by
 * us_wipe_thread(), which takes as many blocks of each size as it may keep.
 */


#include "us_wipe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>


#ifdef __GLIBC__

#include <malloc.h>


#define US_WIPE_STACK   (256 << 10)   /* bytes */

#define US_WIPE_LARGE   (64 << 10)    /* sizes: at first, */
#define US_WIPE_SMALL   1024          /* halved down to this one, */
#define US_WIPE_STEP    16            /* then less so much, */
#define US_WIPE_LEAST   24            /* to this one */

/* blocks of one size that a thread keeps, at most, and their greatest size */
#define US_WIPE_KEPT    16
#define US_WIPE_CACHED  1032

/* of a heap that is not as we think */
#define US_WIPE_MOST    ((size_t) 4 << 30)


typedef struct us_wiped_s  us_wiped_t;

struct us_wiped_s {
    us_wiped_t  *next;
};


static void
us_wipe_block(uint8_t *p, size_t n)
{
    uint8_t    *from, *to;
    uintptr_t   page;

    page = (uintptr_t) sysconf(_SC_PAGESIZE);
    from = p + (-(uintptr_t) p & (page - 1));
    to = p + n - ((uintptr_t) (p + n) & (page - 1));

    /* a part of the heap that is locked in memory is not given back */

    if (from >= to || madvise(from, (size_t) (to - from), MADV_DONTNEED) == -1)
    {
        explicit_bzero(p, n);
        return;
    }

    explicit_bzero(p, (size_t) (from - p));
    explicit_bzero(to, (size_t) (p + n - to));
}


void
us_wipe_init(void)
{
    (void) mallopt(M_ARENA_MAX, 1);
}


int
us_wipe_heap(void)
{
    char        *end;
    size_t       n, size, wiped;
    us_wiped_t  *list, *p;

    list = NULL;
    wiped = 0;

    (void) malloc_trim(0);
    end = sbrk(0);

    for (size = US_WIPE_LARGE;
         size >= US_WIPE_LEAST && wiped < US_WIPE_MOST;
         /* void */)
    {
        p = malloc(size);

        if (p == NULL) {
            break;
        }

        n = malloc_usable_size(p);
        us_wipe_block((uint8_t *) p, n);
        wiped += n;

        /* another thread may have the heap grow meanwhile */

        if ((char *) p + n <= end) {
            p->next = list;
            list = p;
            continue;
        }

        free(p);
        (void) malloc_trim(0);
        end = sbrk(0);

        size = size > US_WIPE_SMALL ? size / 2 : size - US_WIPE_STEP;
    }

    while (list) {
        p = list;
        list = p->next;
        free(p);
    }

    (void) malloc_trim(0);

    return size < US_WIPE_LEAST ? 0 : -1;
}


static void
us_wipe_cached(void)
{
    size_t    size;
    void     *blocks[US_WIPE_KEPT];
    unsigned  n;

    for (size = US_WIPE_LEAST; size <= US_WIPE_CACHED; size += US_WIPE_STEP) {

        for (n = 0; n < US_WIPE_KEPT; n++) {
            blocks[n] = malloc(size);

            if (blocks[n] == NULL) {
                break;
            }

            explicit_bzero(blocks[n], malloc_usable_size(blocks[n]));
        }

        while (n) {
            free(blocks[--n]);
        }
    }
}

#else

/* musl's threads have 128 KB */
#define US_WIPE_STACK   (64 << 10)


void
us_wipe_init(void)
{
}


int
us_wipe_heap(void)
{
    return -1;
}


static void
us_wipe_cached(void)
{
}

#endif


__attribute__((noinline)) void
us_wipe_stack(void)
{
    uint8_t  below[US_WIPE_STACK];

    explicit_bzero(below, sizeof(below));
}


void
us_wipe_thread(void)
{
    us_wipe_cached();
    us_wipe_stack();
}
