
/*
 * See us_text.h.
 */


#include "us_text.h"


int
us_read_u64(us_str_t text, size_t *i, uint64_t max, uint64_t *n)
{
    size_t    start;
    uint64_t  digit;

    start = *i;
    *n = 0;

    for ( /* void */ ; *i < text.len; (*i)++) {

        if (text.data[*i] < '0' || text.data[*i] > '9') {
            break;
        }

        digit = text.data[*i] - '0';

        if (digit > max || *n > (max - digit) / 10) {
            return -1;
        }

        *n = *n * 10 + digit;
    }

    return *i > start ? 0 : -1;
}


/* two digits at a time: numbers are half of the time of a short answer */

uint8_t *
us_put_u64(uint8_t *p, uint64_t n)
{
    uint8_t   buf[US_U64_LEN], *b;
    unsigned  k;

    static const char  digits[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "68697071727374757677787980818283848586878889909192939495969798"
        "99";

    b = buf + sizeof(buf);

    while (n >= 100) {
        k = n % 100;
        n /= 100;
        b -= 2;
        memcpy(b, &digits[k * 2], 2);
    }

    if (n >= 10) {
        b -= 2;
        memcpy(b, &digits[n * 2], 2);

    } else {
        *--b = '0' + n;
    }

    memcpy(p, b, buf + sizeof(buf) - b);

    return p + (buf + sizeof(buf) - b);
}


uint8_t *
us_put_decimal(uint8_t *p, double n, unsigned places)
{
    uint64_t  whole, scale, part;
    unsigned  i;

    for (i = 0, scale = 1; i < places; i++) {
        scale *= 10;
    }

    whole = (uint64_t) n;
    part = (uint64_t) ((n - (double) whole) * (double) scale + 0.5);

    if (part == scale) {
        whole++;
        part = 0;
    }

    p = us_put_u64(p, whole);
    *p++ = '.';

    for (i = places; i; i--, part /= 10) {
        p[i - 1] = '0' + part % 10;
    }

    return p + places;
}


uint8_t *
us_put_hex(uint8_t *p, const uint8_t *bytes, size_t n)
{
    size_t  i;

    static const char  digits[] = "0123456789abcdef";

    for (i = 0; i < n; i++) {
        *p++ = digits[bytes[i] >> 4];
        *p++ = digits[bytes[i] & 15];
    }

    return p;
}


uint8_t *
us_put_escaped(uint8_t *p, us_str_t s)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < s.len; i++) {
        c = s.data[i];

        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            p = us_put(p, "\\x");
            p = us_put_hex(p, &c, 1);

        } else {
            *p++ = c;
        }
    }

    return p;
}
