
/*
 * Time that also counts while the machine is suspended.
 */


#ifndef _US_CLOCK_H_INCLUDED_
#define _US_CLOCK_H_INCLUDED_


#include "us_base.h"

#include <time.h>


/* ms since the machine was started, the same for all of its processes */

static inline uint64_t
us_clock_boottime(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_BOOTTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


#endif /* _US_CLOCK_H_INCLUDED_ */
