
/*
 * Origins, as browsers send them: SCHEME://HOST[:PORT], without a port that is
 * the scheme's (RFC 6454, section 6).
 */


#ifndef _US_ORIGIN_H_INCLUDED_
#define _US_ORIGIN_H_INCLUDED_


#include "../us_base.h"


/* whether it can be one, or is "*" */
int us_origin_valid(us_str_t origin);

/* whether allowed is the origin, in any case, or "*" */
int us_origin_matches(us_str_t allowed, us_str_t origin);

/* whether the origin is the server of this Host header, by any scheme */
int us_origin_is_host(us_str_t origin, us_str_t host);


#endif /* _US_ORIGIN_H_INCLUDED_ */
