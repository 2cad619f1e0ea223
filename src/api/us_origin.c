
/*
 * See us_origin.h.
 */


#include "us_origin.h"

#include <strings.h>


int
us_origin_valid(us_str_t origin)
{
    size_t          n;
    const uint8_t  *p;

    if (origin.len == 1 && origin.data[0] == '*') {
        return 1;
    }

    p = memmem(origin.data, origin.len, "://", 3);

    if (p == NULL || p == origin.data) {
        return 0;
    }

    p += 3;
    n = origin.data + origin.len - p;

    return n && memchr(p, '/', n) == NULL;
}


static int
us_origin_same(us_str_t a, us_str_t b)
{
    return a.len == b.len
           && strncasecmp((const char *) a.data, (const char *) b.data, a.len)
              == 0;
}


int
us_origin_matches(us_str_t allowed, us_str_t origin)
{
    return (allowed.len == 1 && allowed.data[0] == '*')
           || us_origin_same(allowed, origin);
}


int
us_origin_is_host(us_str_t origin, us_str_t host)
{
    size_t    i, n;
    us_str_t  port;

    static const struct {
        const char  *scheme;
        const char  *port;
    } schemes[] = {
        { "http://", ":80" },
        { "https://", ":443" }
    };

    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        n = strlen(schemes[i].scheme);

        if (origin.len <= n
            || strncasecmp((const char *) origin.data, schemes[i].scheme, n)
               != 0)
        {
            continue;
        }

        port.data = (const uint8_t *) schemes[i].port;
        port.len = strlen(schemes[i].port);

        if (host.len > port.len
            && memcmp(host.data + host.len - port.len, port.data, port.len)
               == 0)
        {
            host.len -= port.len;
        }

        return us_origin_same((us_str_t) { origin.len - n, origin.data + n },
                              host);
    }

    return 0;
}
