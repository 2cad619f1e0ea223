
/*
 * A strict, incremental JSON reader (RFC 8259): bytes in, events out.
 *
 *     feed("{\"url\": \"htt")  feed("p://a/\"}")
 *
 *     OBJECT  KEY url         STRING http://a/  OBJECT_END
 *
 * The text may be cut at any byte.  A string that lies whole in one piece and
 * has no escapes is handed over where it lies; any other is put together in
 * a buffer of the reader's own, of at most `max` bytes.  A longer string is
 * still checked to its end, but comes without its text and with cut = 1.
 *
 * Strict: UTF-8 without surrogates, overlong forms or a byte order mark, no
 * lone \u surrogates, no control bytes in strings, one value and nothing
 * after it, at most US_JSON_DEPTH levels, numbers of at most US_JSON_NUMBER
 * characters.
 */


#ifndef _US_JSON_H_INCLUDED_
#define _US_JSON_H_INCLUDED_


#include "../us_base.h"


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
    US_JSON_NULL
} us_json_event_t;


/*
 * text is decoded for keys and strings, and as it was written for numbers; it
 * is valid during the call.  A result other than 0 ends the reading.
 */

typedef int (*us_json_pt)(void *data, us_json_event_t event, us_str_t text,
    int cut);


typedef struct {
    us_json_pt      event;
    void           *data;

    uint8_t        *buf;              /* a token that was cut, or unescaped */
    size_t          len;
    size_t          size;
    size_t          max;

    uint64_t        arrays;           /* a bit per level: array, not object */
    unsigned        depth;

    unsigned        state;
    unsigned        key:1;            /* the string is a key */
    unsigned        cut:1;            /* the string is longer than max */

    uint8_t         need;             /* UTF-8: bytes that must follow, */
    uint8_t         lo;               /* and the range of the next one */
    uint8_t         hi;

    uint8_t         nhex;
    uint32_t        unit;             /* of \uXXXX */
    uint32_t        high;             /* surrogate that waits for its low */

    const char     *literal;          /* what is left of true, false, null */
    us_json_event_t literal_event;

    const char     *error;            /* after a failure: why, */
    uint64_t        offset;           /* and where */
} us_json_t;


void us_json_init(us_json_t *j, us_json_pt event, void *data, size_t max);
void us_json_free(us_json_t *j);

/* begins a new text; what was allocated stays */
void us_json_reset(us_json_t *j);

/* 0, or -1: j->error and j->offset tell */
int us_json_feed(us_json_t *j, const uint8_t *p, size_t len);
int us_json_end(us_json_t *j);

/*
 * Writes text as a JSON string with its quotes; dst has room for
 * us_json_quoted_max(len) bytes.  text is UTF-8.  Returns the end.
 */
#define us_json_quoted_max(len)  ((len) * 6 + 2)
uint8_t *us_json_quote(uint8_t *dst, us_str_t text);

/* the bytes that us_json_quote() writes */
size_t us_json_quoted_len(us_str_t text);

/* the same for text of any bytes: U+FFFD for each that is broken or near */
uint8_t *us_json_quote_bytes(uint8_t *dst, us_str_t text);

int us_json_utf8_valid(us_str_t s);


#endif /* _US_JSON_H_INCLUDED_ */
