
/*
 * Sites and their counters: see us_sites.h.
 */


#include "us_sites.h"


#define US_SITE_BITS   40
#define US_SITE_ID     (((uint64_t) 1 << US_SITE_BITS) - 1)


us_str_t
us_site(us_str_t rest)
{
    size_t    i;
    us_str_t  site;

    for (i = 0; i < rest.len; i++) {
        if (rest.data[i] == '/' || rest.data[i] == '?'
            || rest.data[i] == '#')
        {
            break;
        }
    }

    site.len = i;
    site.data = rest.data;

    return site;
}


static inline uint64_t *
us_site_words(const us_arena_t *a, uint64_t number)
{
    return (uint64_t *) us_area_at(a, US_AREA_SITES, number * US_SITE_SIZE);
}


uint64_t
us_site_number(const us_arena_t *a, uint64_t first)
{
    uint64_t  low, high, middle;

    low = 0;

    /*
     * Acquire: the counters below this number were written before it was
     * released.
     */

    high = us_acquire(&a->head->sites);

    while (high - low > 1) {
        middle = (low + high) / 2;

        if ((us_relaxed(us_site_words(a, middle)) & US_SITE_ID) <= first) {
            low = middle;

        } else {
            high = middle;
        }
    }

    return low;
}


void
us_site_read(const us_arena_t *a, uint64_t number, uint64_t *urls,
    uint64_t *last)
{
    uint64_t  w0, w1, *w;

    w = us_site_words(a, number);

    /*
     * Acquire, all of them: the two words belong together if the second did
     * not change while the first was read.  It carries the last id, so it never
     * changes back.  A writer that is between its two stores may show a number
     * that is one ahead of the last id; and one of 2^24 too low, the one time
     * that the low half overflows, as no lock is taken for a counter.
     */

    do {
        w1 = us_acquire(w + 1);
        w0 = us_acquire(w);
    } while (us_acquire(w + 1) != w1);

    *urls = w0 >> US_SITE_BITS | (w1 >> US_SITE_BITS) << 24;
    *last = w1 & US_SITE_ID;
}


int
us_site_reserve_locked(us_arena_t *a)
{
    if ((a->head->sites + 1) * US_SITE_SIZE
        <= us_area_bytes(a, US_AREA_SITES))
    {
        return 0;
    }

    return us_arena_grow_locked(a, US_AREA_SITES, 1);
}


static void
us_site_write(us_arena_t *a, uint64_t number, uint64_t first, uint64_t urls,
    uint64_t last)
{
    uint64_t  *w;

    w = us_site_words(a, number);

    us_intend_locked(a, w, first | urls << US_SITE_BITS);
    us_intend_locked(a, w + 1, last | urls >> 24 << US_SITE_BITS);
}


void
us_site_add_locked(us_arena_t *a, uint64_t id)
{
    us_site_write(a, a->head->sites, id, 1, id);
    us_intend_locked(a, &a->head->sites, a->head->sites + 1);
}


void
us_site_count_locked(us_arena_t *a, uint64_t number, uint64_t id)
{
    uint64_t  urls, last;

    us_site_read(a, number, &urls, &last);
    us_site_write(a, number, us_relaxed(us_site_words(a, number)) & US_SITE_ID,
                  urls + 1, id);
}


void
us_site_uncount_locked(us_arena_t *a, uint64_t number)
{
    uint64_t  urls, last;

    us_site_read(a, number, &urls, &last);
    us_site_write(a, number, us_relaxed(us_site_words(a, number)) & US_SITE_ID,
                  urls - 1, last);
}
