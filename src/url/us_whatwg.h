
/*
 * The basic URL parser of the WHATWG URL standard (section 4.4), with
 * resolution against a base, writing the serialized URL in one pass.
 *
 * The steps of the crawler profiles that concern single bytes are done in the
 * same pass; with steps = 0 the answer is exactly the standard's href.
 */


#ifndef _US_WHATWG_H_INCLUDED_
#define _US_WHATWG_H_INCLUDED_


#include "us_url.h"


/* no host is longer as ASCII; there are no limits in the standard */
#define US_HOST_MAX    US_URL_MAX

/* no longer input is looked at */
#define US_INPUT_MAX   (4 * US_URL_MAX)

/* room that any href needs: each byte grows to three at most */
#define US_HREF_ROOM   (3 * US_INPUT_MAX + US_URL_MAX + 2 * US_HOST_MAX)


/* the special schemes (section 4.2), and all others */

typedef enum {
    US_SCHEME_OTHER = 0,
    US_SCHEME_HTTP,
    US_SCHEME_HTTPS,
    US_SCHEME_WS,
    US_SCHEME_WSS,
    US_SCHEME_FTP,
    US_SCHEME_FILE
} us_scheme_t;


us_scheme_t us_url_scheme(const us_url_t *url);


/* steps done while parsing, for http and https only */

#define US_STEP_USERINFO  0x0001      /* drop user and password */
#define US_STEP_FRAGMENT  0x0002      /* drop it */
#define US_STEP_HOST_DOT  0x0004      /* drop one dot at the end of the host */
#define US_STEP_PERCENT   0x0008      /* unique percent form */
#define US_STEP_QUERY     0x0010      /* drop empty pieces, and the empty ? */

#define US_STEP_PARSE     0x001f


/* what the parser works with; one for each workspace */

typedef struct {
    uint8_t  clean[US_INPUT_MAX];     /* input without tab, CR, LF */
    uint8_t  host[US_INPUT_MAX];      /* percent-decoded */
} us_whatwg_ws_t;


/*
 * Writes to out, which has US_HREF_ROOM bytes, and fills url.  base may be
 * NULL; base->href is not longer than US_URL_MAX, and may lie anywhere but in
 * out.
 */
us_verdict_t us_whatwg_parse(us_whatwg_ws_t *ws, us_str_t in,
    const us_url_t *base, unsigned steps, uint8_t *out, us_url_t *url);


#endif /* _US_WHATWG_H_INCLUDED_ */
