
/*
 * A request body in, its items out: one URL, or id, each.
 *
 *     text     one a line
 *     NDJSON   {"url": "...", "base": "...", "ref": any} or {"id": 7} a line
 *     JSON     ["...", ...], {"base": "...", "urls": ["...", ...]} or one
 *              object like a line of NDJSON; [1, 2] and {"ids": [...]} too
 *     form     url=U&base=B
 *
 * The body may be cut at any byte.  Items come in order, each as soon as its
 * last byte has been read, with two exceptions: a form is kept until its end,
 * and so are "urls" as long as a "base" may follow them.
 *
 * What an item is worth (is it a URL?) is for the caller to say.  An item
 * that cannot be one (a broken line of NDJSON, an array in an array, a line
 * that is too long) comes as US_INPUT_BAD or US_INPUT_LONG, and reading goes
 * on.  A fault of the envelope ends the reading.
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
} us_input_item_t;


/* a result other than 0 ends the reading; the texts live during the call */

typedef int (*us_input_pt)(void *data, const us_input_item_t *item);


typedef struct {
    uint8_t            *data;
    size_t              len;
    size_t              size;
} us_input_buf_t;


typedef struct {
    us_input_pt         item;
    void               *data;

    us_input_format_t   format;       /* a form may turn out to be text */
    size_t              max;          /* bytes of an item */
    unsigned            ids:1;        /* "id" and "ids" are known, too */

    unsigned            single:1;     /* after the end: one object with "url",
                                         or a form with one url= */
    unsigned            stopped:1;    /* by a result of `item` */
    unsigned            sniffed:1;    /* the form's first bytes were seen */
    unsigned            skip:1;       /* to the end of the line */

    us_input_buf_t      carry;        /* a cut line, or a form */

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

    const char         *error;        /* after a failure, unless stopped */
} us_input_t;


/* max: bytes of a URL, raw */
void us_input_init(us_input_t *in, us_input_format_t format, size_t max,
    us_input_pt item, void *data);
void us_input_free(us_input_t *in);

/* 0, or -1: in->error is NULL if it was `item` that stopped, else it tells */
int us_input_feed(us_input_t *in, const uint8_t *p, size_t len);
int us_input_end(us_input_t *in);

/*
 * Decodes %XX and + of a form or query value; dst has len bytes and may be
 * src itself.  Returns the length.
 */
size_t us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len);


#endif /* _US_INPUT_H_INCLUDED_ */
