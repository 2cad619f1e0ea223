
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
 * A number is never cut, whatever max is.
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
    US_JSON_NULL
} us_json_event_t;


/*
 * text is decoded for keys and strings, and as it was written for numbers; it
 * is valid until the reader goes on.  A result < 0 ends the reading, one > 0
 * makes us_json_feed() return.
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
    unsigned        lone:1;           /* the caller's: see above */
    unsigned        paused:1;         /* by a result > 0 */

    us_utf8_t       utf8;             /* of the string */

    uint8_t         nhex;
    uint32_t        unit;             /* of \uXXXX */
    uint32_t        high;             /* surrogate that waits for its low */

    const char     *literal;          /* what is left of true, false, null */
    us_json_event_t literal_event;

    const char     *error;            /* after a failure */
} us_json_t;


void us_json_init(us_json_t *j, us_json_pt event, void *data, size_t max);
void us_json_free(us_json_t *j);

/* begins a new text; what was allocated stays */
void us_json_reset(us_json_t *j);

/*
 * Reads from p on.  Returns where it stopped: at end, or before it after an
 * event that paused the reading; NULL after a failure, with j->error.
 */
const uint8_t *us_json_feed(us_json_t *j, const uint8_t *p,
    const uint8_t *end);

/* 0, or -1 with j->error: the text is not whole */
int us_json_end(us_json_t *j);


#endif /* _US_JSON_H_INCLUDED_ */
