
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


/* the bytes before the path, the query and the fragment */

static size_t
us_slot_authority(us_str_t s)
{
    size_t  n;

    for (n = 0; n < s.len; n++) {
        if (s.data[n] == '/' || s.data[n] == '?' || s.data[n] == '#') {
            break;
        }
    }

    return n;
}


us_str_t
us_slot_key(us_key_t kind, us_str_t url)
{
    size_t          n;
    us_str_t        key;
    const uint8_t  *at;

    key = us_slot_after(url, us_string("https://"));

    if (key.len == url.len) {
        key = us_slot_after(url, us_string("http://"));
    }

    n = us_slot_authority(key);
    at = n ? memrchr(key.data, '@', n) : NULL;

    if (at) {
        n -= (size_t) (at + 1 - key.data);
        key.len -= (size_t) (at + 1 - key.data);
        key.data = at + 1;
    }

    if (kind == US_KEY_SITE) {
        key.len = n;
    }

    return us_slot_after(key, us_string("www."));
}


unsigned
us_slot(us_str_t key)
{
    return (unsigned) crc32_z(0, key.data ? key.data : (const Bytef *) "",
                              key.len)
           >> 20;
}
