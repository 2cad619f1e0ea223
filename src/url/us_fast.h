
/*
 * The fast path: most URLs are canonical already.
 */


#ifndef _US_FAST_H_INCLUDED_
#define _US_FAST_H_INCLUDED_


#include "us_whatwg.h"


/*
 * If us_whatwg_parse() with these steps would answer the very bytes of in (or,
 * where only a fragment is to be dropped, a prefix of them), fills url with
 * url->href.data = in.data and returns 1.  Where only the "/" behind the host
 * is missing, the href is written to out, which has US_HREF_ROOM bytes.  Else
 * returns 0, and url is undefined.  It may say 0 of a canonical URL, never 1
 * of another.
 */
int us_fast(us_str_t in, unsigned steps, uint8_t *out, us_url_t *url);


/*
 * For tests: bit i is set if p[i] wants attention in a path or a query
 * (a superset of both percent-encode sets), or cannot stand in a host.
 */
unsigned us_fast_attention(const uint8_t p[16]);
unsigned us_fast_no_host(const uint8_t p[16]);


#endif /* _US_FAST_H_INCLUDED_ */
