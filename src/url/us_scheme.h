
/*
 * The special schemes of the WHATWG URL standard (section 4.2), and their
 * default ports.  Names are in lower case, as they are written.
 */


#ifndef _US_SCHEME_H_INCLUDED_
#define _US_SCHEME_H_INCLUDED_


#include "us_url.h"


typedef enum {
    US_SCHEME_OTHER = 0,
    US_SCHEME_HTTP,
    US_SCHEME_HTTPS,
    US_SCHEME_WS,
    US_SCHEME_WSS,
    US_SCHEME_FTP,
    US_SCHEME_FILE
} us_scheme_t;


us_scheme_t us_scheme_find(const uint8_t *p, size_t len);
us_scheme_t us_url_scheme(const us_url_t *url);
unsigned us_scheme_port(us_scheme_t scheme);     /* 0: none */

/* writes ":PORT"; returns the end */
uint8_t *us_port_write(uint8_t *out, unsigned port);


#endif /* _US_SCHEME_H_INCLUDED_ */
