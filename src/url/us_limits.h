
/*
 * Native limits against traps: path depth, arguments, repeated segments.
 */


#ifndef _US_LIMITS_H_INCLUDED_
#define _US_LIMITS_H_INCLUDED_


#include "us_normalize.h"


typedef struct {
    unsigned  depth;                  /* 0 everywhere: no limit */
    unsigned  args;
    unsigned  repeat;
} us_limits_t;


/* segments that us_limits_check() looks at */
#define US_LIMITS_SEGMENTS  1024


us_verdict_t us_limits_check(const us_limits_t *limits, const us_url_t *url);


#endif /* _US_LIMITS_H_INCLUDED_ */
