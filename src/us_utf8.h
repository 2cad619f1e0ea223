
/*
 * UTF-8, one byte at a time: the well-formed byte sequences of Unicode, table
 * 3-7.  No overlong forms, no surrogates, nothing above U+10FFFF.
 *
 *     first byte   follow   the second is in
 *     00 .. 7f       0
 *     c2 .. df       1      80 .. bf
 *     e0             2      a0 .. bf
 *     ed             2      80 .. 9f
 *     e1 .. ef       2      80 .. bf          the others
 *     f0             3      90 .. bf
 *     f1 .. f3       3      80 .. bf
 *     f4             3      80 .. 8f
 *
 * All further ones are in 80 .. bf.
 */


#ifndef _US_UTF8_H_INCLUDED_
#define _US_UTF8_H_INCLUDED_


#include "us_base.h"


/* all zero at the start of a text, and where need is 0 it may end */

typedef struct {
    uint8_t  need;                    /* bytes that must follow, */
    uint8_t  lo;                      /* and the range of the next one */
    uint8_t  hi;
} us_utf8_t;


/* 0, or -1: c cannot stand here */

static inline int
us_utf8_byte(us_utf8_t *u, uint8_t c)
{
    if (u->need) {
        if (c < u->lo || c > u->hi) {
            return -1;
        }

        u->need--;
        u->lo = 0x80;
        u->hi = 0xbf;

        return 0;
    }

    if (c < 0x80) {
        return 0;
    }

    if (c < 0xc2 || c > 0xf4) {
        return -1;
    }

    u->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    u->lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    u->hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;

    return 0;
}


static inline int
us_utf8_valid(us_str_t s)
{
    size_t     i;
    us_utf8_t  u = { 0, 0, 0 };

    for (i = 0; i < s.len; i++) {
        if (us_utf8_byte(&u, s.data[i]) != 0) {
            return 0;
        }
    }

    return u.need == 0;
}


#endif /* _US_UTF8_H_INCLUDED_ */
