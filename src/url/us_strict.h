
/*
 * The parser of the strict-rfc3986 profile: RFC 3986, and nothing that its
 * grammar forbids.
 */


#ifndef _US_STRICT_H_INCLUDED_
#define _US_STRICT_H_INCLUDED_


#include "us_whatwg.h"


/*
 * Resolves in against base, which may be NULL and was made by this function,
 * and normalizes: section 5.2, then 6.2.2 and the ports of 6.2.3.  out has
 * US_HREF_ROOM bytes.
 */
us_verdict_t us_strict_parse(us_str_t in, const us_url_t *base, uint8_t *out,
    us_url_t *url);


#endif /* _US_STRICT_H_INCLUDED_ */
