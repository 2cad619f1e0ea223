
/*
 * What the files of the body reader share and nobody else sees.
 *
 *     us_input.c         chooses the format
 *     us_input_item.c    lines of text, and what the formats share
 *     us_input_json.c    NDJSON, arrays and objects
 *     us_input_form.c    forms; a form that is none is text
 */


#ifndef _US_INPUT_PRIVATE_H_INCLUDED_
#define _US_INPUT_PRIVATE_H_INCLUDED_


#include "us_input.h"


static inline int
us_input_is(us_str_t s, const char *name)
{
    return s.len == strlen(name) && memcmp(s.data, name, s.len) == 0;
}


/* what names an item: in a form, and in an object */

static inline int
us_input_is_item(const us_input_t *in, us_str_t name)
{
    return us_input_is(name, "url") || (in->ids && us_input_is(name, "id"));
}


/* us_input_item.c */

us_input_rc_t us_input_text(us_input_t *in);

/*
 * The next line, without its end, as US_INPUT_ITEM.  Of a longer one there are
 * `most` bytes, at least.
 */
us_input_rc_t us_input_line(us_input_t *in, size_t most, us_str_t *line);

/* keeps the body; US_INPUT_ITEM: all of it */
us_input_rc_t us_input_keep(us_input_t *in);

/* fills in->item, with the base and the ref if `have` has them */
us_input_rc_t us_input_emit(us_input_t *in, us_input_kind_t kind,
    us_str_t text);

/* keeps the first reason */
us_input_rc_t us_input_fail(us_input_t *in, const char *error);

/* 0, or -1: it has failed; p may be NULL: room only */
int us_input_append(us_input_t *in, us_input_buf_t *b, const uint8_t *p,
    size_t len);

/* us_input_json.c */

us_input_rc_t us_input_ndjson(us_input_t *in);
us_input_rc_t us_input_json(us_input_t *in);

/* us_input_form.c */

us_input_rc_t us_input_form(us_input_t *in);


/* of in->field and in->have */

typedef enum {
    US_INPUT_F_OTHER = 0,
    US_INPUT_F_ITEM,                  /* url or id */
    US_INPUT_F_LIST,                  /* urls or ids, or the array itself */
    US_INPUT_F_BASE,
    US_INPUT_F_REF
} us_input_field_t;


#define us_input_has(in, field)  (((in)->have & 1 << (field)) != 0)


#endif /* _US_INPUT_PRIVATE_H_INCLUDED_ */
