
/*
 * What every part of the core shares: the counted string, the longest URL,
 * and what a "www." is.
 * Included first, before any system header.  No file us_* includes an nginx
 * header: the module, the command, tests, fuzzers and benchmarks all link it.
 */


#ifndef _US_BASE_H_INCLUDED_
#define _US_BASE_H_INCLUDED_


#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif


#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>


#ifdef __cplusplus
extern "C" {
#endif


/* the longest canonical URL, in bytes */
#define US_URL_MAX   8192


typedef struct {
    size_t          len;
    const uint8_t  *data;
} us_str_t;


#define us_string(s)  ((us_str_t) { sizeof(s) - 1, (const uint8_t *) (s) })


static inline us_str_t
us_str_of(const char *s)
{
    us_str_t  str;

    str.len = strlen(s);
    str.data = (const uint8_t *) s;

    return str;
}


/* the order of their bytes, a prefix first */

static inline int
us_str_compare(us_str_t a, us_str_t b)
{
    int  rc;

    rc = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);

    return rc ? rc : (a.len > b.len) - (a.len < b.len);
}


/*
 * Cuts off what comes before this byte, and the byte: 1.  0: there is none, and
 * *part is all of the text.
 */

static inline int
us_str_cut(us_str_t *text, int byte, us_str_t *part)
{
    const uint8_t  *end;

    end = text->len ? (const uint8_t *) memchr(text->data, byte, text->len)
                    : NULL;

    part->data = text->data;
    part->len = end ? (size_t) (end - text->data) : text->len;

    text->data += part->len + (end != NULL);
    text->len -= part->len + (end != NULL);

    return end != NULL;
}


/* us_canon_t.merge: whether "www." makes no difference in a URL's host */

#define US_MERGE_NO     0
#define US_MERGE_FIRST  1             /* the first URL of the site spells it */
#define US_MERGE_STRIP  2             /* new URLs are stored without */


/* whether a host, or what begins with one, begins with "www." and goes on */

static inline int
us_has_www(us_str_t host)
{
    return host.len > 4 && memcmp(host.data, "www.", 4) == 0;
}


#ifdef __cplusplus
}
#endif


#endif /* _US_BASE_H_INCLUDED_ */
