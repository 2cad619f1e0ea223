
/*
 * What the files of the body reader share and nobody else sees.
 *
 *     us_input.c         chooses the format
 *     us_input_text.c    lines
 *     us_input_json.c    NDJSON, arrays and objects
 *     us_input_form.c    forms; a form that is none is text
 *     us_input_item.c    what the formats share
 *
 * Functions return 1 if there is an item, 0 if there is none for now, or -1
 * with the reason in in->error.
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
us_input_is_item(us_input_t *in, us_str_t name)
{
    return us_input_is(name, "url") || (in->ids && us_input_is(name, "id"));
}


/* us_input_text.c */

int us_input_text(us_input_t *in);

/* us_input_item.c */

/* fills in->item; base and ref may be NULL; 1 */
int us_input_emit(us_input_t *in, us_input_kind_t kind, us_str_t text,
    us_input_buf_t *base, us_input_buf_t *ref);

/* keeps the first reason; -1 */
int us_input_fail(us_input_t *in, const char *error);

/* p may be NULL: room only */
int us_input_append(us_input_t *in, us_input_buf_t *b, const uint8_t *p,
    size_t len);

/* us_input_json.c */

int us_input_ndjson(us_input_t *in);
int us_input_json(us_input_t *in);

/* a us_json_pt */
int us_input_event(void *data, us_json_event_t event, us_str_t text,
    int cut);

/* us_input_form.c */

int us_input_form(us_input_t *in);


#endif /* _US_INPUT_PRIVATE_H_INCLUDED_ */
