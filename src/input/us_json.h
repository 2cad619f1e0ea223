
/*
 * A strict JSON reader (RFC 8259) of a whole text, one event a call:
 *
 *     {"url": "http://a/"}
 *     OBJECT  KEY url  STRING http://a/  OBJECT_END  END
 *
 * A string without escapes is returned where it lies in the text, any other
 * in a buffer of the reader, of at most `max` bytes.  A longer string is still
 * checked to its end, but comes without its text and with cut = 1.
 *
 * A call reads at most about `work` bytes, which it takes from j->work.  When
 * they are used up, it returns US_JSON_REST, and the caller may go on later
 * with more of them.
 *
 * Strict: UTF-8 without surrogates, overlong forms or a byte order mark, no
 * lone \u surrogates (with j->lone, set after us_json_init(), they are U+FFFD
 * as in browsers), no control bytes in strings, one value and nothing after it,
 * at most US_JSON_DEPTH levels, numbers of at most US_JSON_NUMBER characters.
 */


#ifndef _US_JSON_H_INCLUDED_
#define _US_JSON_H_INCLUDED_


#include "../us_base.h"
#include "../us_utf8.h"


#define US_JSON_DEPTH    64
#define US_JSON_NUMBER   256


typedef enum {
    US_JSON_OBJECT = 0,
    US_JSON_OBJECT_END,
    US_JSON_ARRAY,
    US_JSON_ARRAY_END,
    US_JSON_KEY,
    US_JSON_STRING,
    US_JSON_NUM,
    US_JSON_TRUE,
    US_JSON_FALSE,
    US_JSON_NULL,
    US_JSON_END,                      /* of the text */
    US_JSON_REST,
    US_JSON_ERROR                     /* j->error: there are no more */
} us_json_event_t;


typedef struct {
    const uint8_t  *p;                /* what has not been read */
    const uint8_t  *end;
    size_t          work;             /* no limit at first */

    /* of the last event */

    us_str_t        text;             /* decoded; a number as it was written */
    const uint8_t  *at;               /* where the token begins */
    unsigned        cut:1;            /* the string is longer than max */

    const char     *error;

    unsigned        depth;
    uint64_t        arrays;           /* a bit per level: array, not object */
    unsigned        state;

    /* the string that is being read */

    unsigned        string:1;
    unsigned        copied:1;         /* to buf, since it has an escape */
    unsigned        lone:1;           /* the caller's: see above */
    us_utf8_t       utf8;

    uint8_t        *buf;
    size_t          len;
    size_t          size;
    size_t          max;
} us_json_t;


void us_json_init(us_json_t *j, size_t max);
void us_json_free(us_json_t *j);

/* begins a text, which must stay where it is; what was allocated stays */
void us_json_text(us_json_t *j, us_str_t text);

us_json_event_t us_json_next(us_json_t *j);


#endif /* _US_JSON_H_INCLUDED_ */
