
/*
 * What all formats share: returning an item, failing, and buffers.  See
 * us_input_private.h.
 */


#include "us_input_private.h"

#include <stdlib.h>


int
us_input_emit(us_input_t *in, us_input_kind_t kind, us_str_t text,
    us_input_buf_t *base, us_input_buf_t *ref)
{
    us_input_item_t  *item;

    item = in->item;

    item->kind = kind;
    item->text = text;
    item->base.data = NULL;
    item->base.len = 0;
    item->ref.data = NULL;
    item->ref.len = 0;
    item->why = NULL;

    if (base) {
        item->base.data = base->data;
        item->base.len = base->len;
    }

    if (ref) {
        item->ref.data = ref->data;
        item->ref.len = ref->len;
    }

    if (kind == US_INPUT_BAD) {
        item->why = in->why;
    }

    return 1;
}


int
us_input_fail(us_input_t *in, const char *error)
{
    if (in->error == NULL) {
        in->error = error;
    }

    return -1;
}


int
us_input_append(us_input_t *in, us_input_buf_t *b, const uint8_t *p,
    size_t len)
{
    size_t    size;
    uint8_t  *data;

    if (b->data == NULL || b->len + len > b->size) {
        size = b->size ? b->size * 2 : 256;

        while (size < b->len + len) {
            size *= 2;
        }

        data = realloc(b->data, size);

        if (data == NULL) {
            return us_input_fail(in, "out of memory");
        }

        b->data = data;
        b->size = size;
    }

    if (p && len) {
        memcpy(b->data + b->len, p, len);
    }

    b->len += len;

    return 0;
}
