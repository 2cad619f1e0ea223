
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
 *     us_input_piece(p)    us_input_next() 1, 1, ... 0    the piece is used up
 *     us_input_piece(p)    us_input_next() 1, ... 0
 *     us_input_end()       us_input_next() 1, 0           that was all
 *
 * so that its caller may rest after any item.  The body may be cut at any
 * byte.  Items come in order, each as soon as its last byte has been read, with
 * two exceptions: a form is kept until its end, and so are "urls" as long as a
 * "base" may follow them.
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


/* the most bytes of a "ref" */
#define US_INPUT_REF   4096


typedef enum {
    US_INPUT_TEXT = 0,
    US_INPUT_NDJSON,
    US_INPUT_JSON,
    US_INPUT_FORM
} us_input_format_t;


typedef enum {
    US_INPUT_URL = 0,                 /* text of any kind */
    US_INPUT_NUMBER,                  /* a number of JSON, as it was written */
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


typedef struct {
    uint8_t            *data;
    size_t              len;
    size_t              size;
} us_input_buf_t;


typedef struct {
    us_input_format_t   format;       /* a form may turn out to be text */
    size_t              max;          /* bytes of an item */
    unsigned            ids:1;        /* "id" and "ids" are known, too */

    unsigned            single:1;     /* after the end: one object with "url",
                                         or a form with one url= */
    size_t              known;        /* items, where that is known before the
                                         first of them; else 0 */

    const uint8_t      *p;            /* the piece: what has not been read */
    const uint8_t      *last;
    unsigned            ended:1;      /* no piece follows */
    unsigned            done:1;       /* nor does an item */

    us_input_buf_t      carry;        /* a cut line, or a form */
    unsigned            carried:1;    /* the last item lies in there */

    /* a form */

    unsigned            sniffed:1;    /* its first bytes were looked at */
    unsigned            nsniff;
    uint8_t             sniff[8];
    const uint8_t      *rest;         /* the piece after those bytes */
    const uint8_t      *rest_last;
    uint8_t            *field_at;     /* of the carry: not emitted yet */
    unsigned            has_base:1;
    unsigned            has_ref:1;

    /* JSON */

    us_json_t           json;
    unsigned            field;        /* of the object: us_input_field_t */
    unsigned            have;         /* a bit for each field seen */
    unsigned            list:1;       /* the array is one of items */
    unsigned            bad:1;
    unsigned            too_long:1;
    unsigned            number:1;     /* `text` was a number */
    unsigned            begun:1;      /* something of the line was read */
    unsigned            ref_comma:1;
    unsigned            ref_long:1;

    us_input_buf_t      text;
    us_input_buf_t      base;
    us_input_buf_t      ref;
    us_input_buf_t      held;         /* urls that wait for their base */
    size_t              nheld;
    size_t              held_at;      /* those before it have come */
    unsigned            releasing:1;

    us_input_item_t    *item;         /* of the call, which an event fills */
    const char         *why;          /* of a bad line */
    const char         *error;        /* after a failure */
} us_input_t;


/* max: bytes of a URL, raw */
void us_input_init(us_input_t *in, us_input_format_t format, size_t max);
void us_input_free(us_input_t *in);

/*
 * The next piece of the body, after us_input_next() has returned 0; it must
 * stay where it is until it does so again.
 */
void us_input_piece(us_input_t *in, const uint8_t *p, size_t len);

/* there is no other piece */
void us_input_end(us_input_t *in);

/*
 * 1: the next item, whose texts live until the next call; 0: none until there
 * is another piece, or the end; -1: in->error is why, and there are no more.
 */
int us_input_next(us_input_t *in, us_input_item_t *item);

/*
 * Decodes %XX and + of a form or query value; dst has len bytes and may be
 * src itself.  Returns the length.
 */
size_t us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len);


#endif /* _US_INPUT_H_INCLUDED_ */
