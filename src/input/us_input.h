
/*
 * A request body in, its items out; an item is one URL or one id.
 *
 *     text     one a line
 *     NDJSON   {"url": "...", "base": "...", "ref": any} or {"id": 7} a line
 *     JSON     ["...", ...], {"base": "...", "urls": ["...", ...]} or one
 *              object like a line of NDJSON; [1, 2] and {"ids": [...]} too
 *     form     url=U&base=B
 *
 * The reader is asked for items, and asks for pieces of the body:
 *
 *     us_input_piece(p)    us_input_next() ITEM, ITEM, ... MORE
 *     us_input_piece(p)    us_input_next() ITEM, ... MORE
 *     us_input_end()       us_input_next() ITEM, MORE      that was all
 *
 * The body may be cut at any byte, and its caller may rest after any item.
 * Lines give their items as they come.  A JSON text and a form are kept until
 * their end, and read twice: first as a whole, for its faults, its base and the
 * number of its items; then for the items.  So a fault of such an envelope is
 * known before there is an item of it.
 *
 * What is kept may be long and hold no item.  us_input_next() reads about
 * in->work bytes of it, which its caller has set, and then returns
 * US_INPUT_REST: the caller lets others go on, sets in->work again, and calls.
 *
 * The caller decides whether an item is a URL.  Text that cannot be an item (a
 * broken line of NDJSON, an array in an array, a line that is too long) is
 * returned as US_INPUT_BAD or US_INPUT_LONG, and reading goes on.  A fault of
 * the envelope (the JSON around the items) ends the reading.
 */


#ifndef _US_INPUT_H_INCLUDED_
#define _US_INPUT_H_INCLUDED_


#include "../us_base.h"
#include "us_json.h"


/* the most bytes of a "ref", as it was sent */
#define US_INPUT_REF   4096


typedef enum {
    US_INPUT_TEXT = 0,
    US_INPUT_NDJSON,
    US_INPUT_JSON,
    US_INPUT_FORM
} us_input_format_t;


typedef enum {
    US_INPUT_URL = 0,                 /* text of any kind */
    US_INPUT_NUMBER,                  /* a number of JSON as it was written,
                                         or text that is named "id" */
    US_INPUT_BAD,                     /* not what JSON should have here */
    US_INPUT_LONG                     /* over the limit */
} us_input_kind_t;


typedef struct {
    us_input_kind_t     kind;
    us_str_t            text;
    us_str_t            base;         /* data is NULL if there is none */
    us_str_t            ref;          /* JSON; data is NULL if there is none */
    const char         *why;          /* of US_INPUT_BAD: what was wrong */
} us_input_item_t;


typedef enum {
    US_INPUT_ERROR = -1,              /* in->error is why; there are no more */
    US_INPUT_MORE = 0,                /* none without a piece, or the end */
    US_INPUT_ITEM,
    US_INPUT_REST
} us_input_rc_t;


typedef struct {
    us_input_format_t   format;       /* a form may turn out to be text */
    size_t              max;          /* bytes of an item */
    unsigned            ids:1;        /* "id" and "ids" are known, too */
    size_t              work;         /* the caller's; no limit at first */

    unsigned            single:1;     /* one object with "url", or a form with
                                         one url= */
    size_t              known;        /* items, where that is known before the
                                         first of them; else 0 */

    const uint8_t      *p;            /* the piece: what has not been read */
    const uint8_t      *last;
    unsigned            ended:1;      /* no piece follows */
    unsigned            done:1;       /* nor does an item */

    us_json_buf_t       kept;         /* a cut line, or the body */
    unsigned            line:1;       /* the last line lies in there */

    unsigned            form:1;       /* it begins with one of the names */
    unsigned            begun:1;      /* an object, a list or a form was */
    unsigned            read:1;       /* the first time */
    size_t              field_at;     /* of a form: the next field, in `kept` */
    us_json_t           json;

    /* an object, or a list */

    unsigned            field;        /* whose value comes next */
    unsigned            have;         /* a bit for each field seen */
    unsigned            number:1;     /* `text` is one, or an id */
    unsigned            too_long:1;
    const char         *bad;          /* of a line: what was wrong */
    us_str_t            list;         /* where they lie in `kept` */
    us_str_t            ref_at;
    unsigned            level;        /* of elements that are counted */

    us_json_buf_t       text;
    us_json_buf_t       base;
    us_json_buf_t       ref;

    us_input_item_t    *item;         /* of the call */
    const char         *error;        /* after a failure */
} us_input_t;


/* max: bytes of a URL, raw */
void us_input_init(us_input_t *in, us_input_format_t format, size_t max);
void us_input_free(us_input_t *in);


/*
 * The next piece of the body, after us_input_next() has returned 0; it must
 * stay where it is until it does so again.
 */

static inline void
us_input_piece(us_input_t *in, const uint8_t *p, size_t len)
{
    in->p = p;
    in->last = len ? p + len : p;
}


/* there is no other piece */

static inline void
us_input_end(us_input_t *in)
{
    in->ended = 1;
}


/* the texts of an item live until the next call */
us_input_rc_t us_input_next(us_input_t *in, us_input_item_t *item);

/*
 * Decodes %XX and + of a form or query value; dst has len bytes and may be
 * src itself.  Returns the length.
 */
size_t us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len);


#endif /* _US_INPUT_H_INCLUDED_ */
