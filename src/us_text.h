
/*
 * Text that is written: each function writes at p, where there is room, and
 * returns the end.  There is no zero at the end.
 */


#ifndef _US_TEXT_H_INCLUDED_
#define _US_TEXT_H_INCLUDED_


#include "us_base.h"


/* bytes of the longest number, without a sign */
#define US_U64_LEN      20
#define US_DECIMAL_LEN  (US_U64_LEN + 1 + 9)


static inline uint8_t *
us_put(uint8_t *p, const char *s)
{
    size_t  len;

    len = strlen(s);
    memcpy(p, s, len);

    return p + len;
}


static inline uint8_t *
us_put_str(uint8_t *p, us_str_t s)
{
    if (s.len) {
        memcpy(p, s.data, s.len);
    }

    return p + s.len;
}


/* of a hexadecimal digit, or -1 */

static inline int
us_hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/* digits from *i on, up to max: 0; -1: there are none, or it is more */
int us_read_u64(us_str_t text, size_t *i, uint64_t max, uint64_t *n);

uint8_t *us_put_u64(uint8_t *p, uint64_t n);

/* n is not negative and below 2^63; 1 to 9 places, a half is rounded up */
uint8_t *us_put_decimal(uint8_t *p, double n, unsigned places);

/* two digits a byte, in lower case */
uint8_t *us_put_hex(uint8_t *p, const uint8_t *bytes, size_t n);

/*
 * Bytes of any kind, for a line of a log: \xHH for all but printable ASCII, and
 * for space, quotation mark and backslash; at most four for each.
 */
uint8_t *us_put_escaped(uint8_t *p, us_str_t s);


#endif /* _US_TEXT_H_INCLUDED_ */
