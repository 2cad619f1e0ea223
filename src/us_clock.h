
/*
 * Time since the machine was started, in ms, the same for all of its processes:
 * with what it was suspended, or without.
 */


#ifndef _US_CLOCK_H_INCLUDED_
#define _US_CLOCK_H_INCLUDED_


#include "us_base.h"

#include <time.h>


static inline uint64_t
us_clock_of(clockid_t clock)
{
    struct timespec  ts;

    (void) clock_gettime(clock, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


static inline uint64_t
us_clock_boottime(void)
{
    return us_clock_of(CLOCK_BOOTTIME);
}


static inline uint64_t
us_clock_running(void)
{
    return us_clock_of(CLOCK_MONOTONIC);
}


#endif /* _US_CLOCK_H_INCLUDED_ */
