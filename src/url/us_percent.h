
/*
 * The byte classes of URLs, and percent-encoding.
 *
 * Sets have the names of the WHATWG URL standard (section 1.3): a byte in the
 * "path percent-encode set" is written %XX in a path.  Two forms of encoding:
 *
 *   standard   bytes of the set become %XX, a '%' that is there already is
 *              left as it is;
 *   unique     of the crawler profiles: besides, %41 becomes A (only ALPHA
 *              DIGIT - . _ ~ are ever decoded, never a reserved character),
 *              %2f becomes %2F, and a '%' that begins no triplet becomes %25.
 *              One text for each meaning, so doing it again changes nothing.
 *
 * Both write at most three bytes for each byte read.
 */


#ifndef _US_PERCENT_H_INCLUDED_
#define _US_PERCENT_H_INCLUDED_


#include "../us_base.h"


/* percent-encode sets */

#define US_SET_C0             0x0001
#define US_SET_FRAGMENT       0x0002
#define US_SET_QUERY          0x0004
#define US_SET_SPECIAL_QUERY  0x0008
#define US_SET_PATH           0x0010
#define US_SET_USERINFO       0x0020
#define US_SET_UNIQUE_PATH    0x0040    /* crawler: PATH and \ | [ ] % */
#define US_SET_UNIQUE_QUERY   0x0080    /* the same, and ' */

/* other classes */

#define US_CH_SLASH           0x0100    /* / and \ */
#define US_CH_SCHEME          0x0200    /* ALPHA DIGIT + - . */
#define US_CH_HOST            0x0400    /* in a host, stands for itself */
#define US_CH_NO_HOST         0x0800    /* forbidden host code point */
#define US_CH_NO_DOMAIN       0x1000    /* forbidden domain code point */
#define US_CH_UNRESERVED      0x2000    /* ALPHA DIGIT - . _ ~ */
#define US_CH_END             0x4000    /* / \ ? # @ : end or split a host */
#define US_CH_AMP             0x8000    /* & splits a query */


extern const uint16_t  us_chars[256];
extern const int8_t    us_hex[256];     /* value of a hex digit, or -1 */


#define us_is(c, set)  (us_chars[(uint8_t) (c)] & (set))


uint8_t *us_percent_byte(uint8_t *out, uint8_t c);
uint8_t *us_percent_encode(uint8_t *out, const uint8_t *p, const uint8_t *end,
    unsigned set);
uint8_t *us_percent_decode(uint8_t *out, const uint8_t *p, const uint8_t *end);
size_t us_percent_triplet(uint8_t **out, const uint8_t *p, const uint8_t *end);


#endif /* _US_PERCENT_H_INCLUDED_ */
