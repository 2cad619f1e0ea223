
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
 *
 *
 * The JSON writer: text as a JSON string (RFC 8259, section 7).
 *
 *     a"b<LF>\xc3\xa9     "a\"b\n\xc3\xa9"
 *
 * Only what must be is escaped: ", \ and control bytes.  UTF-8 stays as it
 * is.  So each byte becomes one, two or six.
 */


#ifndef _US_JSON_H_INCLUDED_
#define _US_JSON_H_INCLUDED_


#include "../us_base.h"

#include <stdlib.h>
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


/* a text that grows */

typedef struct {
    uint8_t        *data;
    size_t          len;
    size_t          size;
} us_json_buf_t;

/* 0, or -1: no memory; p may be NULL: room only, which counts */
int us_json_buf_add(us_json_buf_t *b, const uint8_t *p, size_t len);


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

    us_json_buf_t   buf;
    size_t          max;
} us_json_t;


static inline void
us_json_init(us_json_t *j, size_t max)
{
    memset(j, 0, sizeof(us_json_t));

    j->max = max;
    j->work = SIZE_MAX;
}


static inline void
us_json_free(us_json_t *j)
{
    free(j->buf.data);
    j->buf.data = NULL;
    j->buf.size = 0;
}


/* begins a text, which must stay where it is; what was allocated stays */
void us_json_text(us_json_t *j, us_str_t text);

us_json_event_t us_json_next(us_json_t *j);


/* bytes that stand in a string as they are: ASCII, but for " and \ */
extern const uint8_t  us_json_plain[256];


/*
 * Writes text as a JSON string with its quotes; dst has room for
 * us_json_quoted_max(len) bytes.  text is UTF-8.  Returns the end.
 */
#define us_json_quoted_max(len)  ((len) * 6 + 2)
uint8_t *us_json_quote(uint8_t *dst, us_str_t text);

/* the same for text of any bytes: U+FFFD for each that is broken or near */
uint8_t *us_json_quote_bytes(uint8_t *dst, us_str_t text);

/*
 * Text after a format: %s a C string and %V a us_str_t as they are, %q a
 * us_str_t by us_json_quote_bytes(), %u a uint64_t.  There is no other %.
 */
uint8_t *us_json_printf(uint8_t *dst, const char *fmt, ...);


#endif /* _US_JSON_H_INCLUDED_ */
