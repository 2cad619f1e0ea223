
/*
 * Schemes of URLs.  See us_scheme.h.
 */


#include "us_scheme.h"


/* length, name and default port of the special schemes */

static const struct {
    uint8_t      len;
    char         name[7];
    uint16_t     port;
} us_schemes[] = {
    { 0, "", 0 },
    { 4, "http", 80 },
    { 5, "https", 443 },
    { 2, "ws", 80 },
    { 3, "wss", 443 },
    { 3, "ftp", 21 },
    { 4, "file", 0 }
};


us_scheme_t
us_scheme_find(const uint8_t *p, size_t len)
{
    us_scheme_t  i;

    for (i = US_SCHEME_HTTP; i <= US_SCHEME_FILE; i++) {
        if (us_schemes[i].len == len
            && memcmp(us_schemes[i].name, p, len) == 0)
        {
            return i;
        }
    }

    return US_SCHEME_OTHER;
}


unsigned
us_scheme_port(us_scheme_t scheme)
{
    return us_schemes[scheme].port;
}


/* with the ':' */

uint8_t *
us_port_write(uint8_t *out, unsigned port)
{
    unsigned  power;

    *out++ = ':';

    for (power = 10000; power > 1 && port < power; power /= 10) { /* void */ }

    for ( /* void */ ; power; power /= 10) {
        *out++ = '0' + port / power % 10;
    }

    return out;
}


us_scheme_t
us_url_scheme(const us_url_t *url)
{
    return us_scheme_find(url->href.data, url->protocol_end - 1);
}
