
/*
 * See us_slot.h.
 */


#include "us_slot.h"

#include <zlib.h>


static us_str_t
us_slot_after(us_str_t s, us_str_t prefix)
{
    if (s.len >= prefix.len && memcmp(s.data, prefix.data, prefix.len) == 0) {
        s.data += prefix.len;
        s.len -= prefix.len;
    }

    return s;
}


us_str_t
us_slot_key(us_key_t kind, us_str_t url)
{
    size_t    n, from;
    us_str_t  key;

    /* what ends host and port, and what ends a user */

    static const uint8_t  ends[256] = {
        ['/'] = 1, ['?'] = 1, ['#'] = 1, ['@'] = 2
    };

    key = us_slot_after(url, us_string("https://"));

    if (key.len == url.len) {
        key = us_slot_after(url, us_string("http://"));
    }

    for (n = 0, from = 0; n < key.len && ends[key.data[n]] != 1; n++) {
        from = ends[key.data[n]] ? n + 1 : from;
    }

    if (kind == US_KEY_SITE) {
        key.len = n;
    }

    if (from) {
        key.data += from;
        key.len -= from;
    }

    return us_slot_after(key, us_string("www."));
}


unsigned
us_slot(us_str_t key)
{
    return (unsigned) (crc32_z(0, key.data, key.len) >> 20);
}


us_str_t
us_slot_front(us_str_t site, uint8_t *buf)
{
    size_t  n;

    n = site.len < US_URL_MAX ? site.len : US_URL_MAX;

    memcpy(buf, "http://", 7);
    memcpy(buf + 7, site.data, n);
    buf[7 + n] = '/';

    return (us_str_t) { n + 8, buf };
}
