
/*
 * The JSON writer.  See us_json_quote.h.
 */


#include "us_json_quote.h"
#include "../us_utf8.h"


/* bytes that may stand in a string as they are: ASCII, but for " and \ */

const uint8_t  us_json_plain[256] = {
    ['\x20' ... '!'] = 1, ['#' ... '['] = 1, [']' ... '\x7f'] = 1
};


static uint8_t *
us_json_quote_char(uint8_t *dst, uint8_t c)
{
    static const uint8_t  hex[] = "0123456789abcdef";

    *dst++ = '\\';

    switch (c) {

    case '"':
    case '\\':
        *dst++ = c;
        break;

    case '\n':
        *dst++ = 'n';
        break;

    case '\t':
        *dst++ = 't';
        break;

    case '\r':
        *dst++ = 'r';
        break;

    default:
        *dst++ = 'u';
        *dst++ = '0';
        *dst++ = '0';
        *dst++ = hex[c >> 4];
        *dst++ = hex[c & 15];
    }

    return dst;
}


uint8_t *
us_json_quote(uint8_t *dst, us_str_t text)
{
    const uint8_t  *p, *last;

    last = text.data + text.len;

    *dst++ = '"';

    for (p = text.data; p < last; p++) {

        if (us_json_plain[*p] || *p >= 0x80) {
            *dst++ = *p;
            continue;
        }

        dst = us_json_quote_char(dst, *p);
    }

    *dst++ = '"';

    return dst;
}


size_t
us_json_quoted_len(us_str_t text)
{
    size_t   i, len;
    uint8_t  one[6];

    len = 2;

    for (i = 0; i < text.len; i++) {

        if (us_json_plain[text.data[i]] || text.data[i] >= 0x80) {
            len++;
            continue;
        }

        len += us_json_quote_char(one, text.data[i]) - one;
    }

    return len;
}


uint8_t *
us_json_quote_bytes(uint8_t *dst, us_str_t text)
{
    const uint8_t  *p, *last;

    if (us_utf8_valid(text)) {
        return us_json_quote(dst, text);
    }

    last = text.data + text.len;

    *dst++ = '"';

    for (p = text.data; p < last; p++) {

        if (us_json_plain[*p]) {
            *dst++ = *p;

        } else if (*p >= 0x80) {
            memcpy(dst, "\\ufffd", 6);
            dst += 6;

        } else {
            dst = us_json_quote_char(dst, *p);
        }
    }

    *dst++ = '"';

    return dst;
}
