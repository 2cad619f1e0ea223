
/*
 * The fast path: most URLs are canonical already.
 */


#ifndef _US_FAST_H_INCLUDED_
#define _US_FAST_H_INCLUDED_


#include "us_whatwg.h"


/*
 * Returns 1 if us_whatwg_parse() with these steps would return the bytes of in
 * unchanged (or, where only a fragment is to be dropped, a prefix of them), and
 * fills url with url->href.data = in.data.  Where only the "/" after the host
 * is missing, the href is written to out, which has US_HREF_ROOM bytes.
 * Otherwise returns 0, and url is undefined.  It may return 0 for a canonical
 * URL, but never 1 for any other text.
 */
int us_fast(us_str_t in, unsigned steps, uint8_t *out, us_url_t *url);


#endif /* _US_FAST_H_INCLUDED_ */
