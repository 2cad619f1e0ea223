
/*
 * What the formats share: lines, the body that is kept, and the item that is
 * returned.  See us_input_private.h.
 *
 * A line that a piece of the body has cut is kept in in->kept.
 */


#include "us_input_private.h"

#include <stdlib.h>


/* an item a line; an empty one is none */

us_input_rc_t
us_input_text(us_input_t *in)
{
    us_str_t       line;
    us_input_rc_t  rc;

    for ( ;; ) {

        /* one byte more than the limit, and \r: the line is too long */

        rc = us_input_line(in, in->max + 2, &line);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        if (line.len && line.data[line.len - 1] == '\r') {
            line.len--;
        }

        if (line.len) {
            return us_input_emit(in, line.len > in->max ? US_INPUT_LONG
                                                        : US_INPUT_URL, line);
        }
    }
}


us_input_rc_t
us_input_line(us_input_t *in, size_t most, us_str_t *line)
{
    size_t          room;
    const uint8_t  *lf, *end;

    if (in->line) {
        in->line = 0;
        in->kept.len = 0;
    }

    lf = in->p == in->last ? NULL : memchr(in->p, '\n', in->last - in->p);
    end = lf ? lf : in->last;

    line->data = in->p;
    line->len = end - in->p;

    if (lf == NULL || in->kept.len) {
        room = most > in->kept.len ? most - in->kept.len : 0;

        if (us_input_append(in, &in->kept, line->data,
                            line->len < room ? line->len : room)
            != 0)
        {
            return US_INPUT_ERROR;
        }

        line->data = in->kept.data;
        line->len = in->kept.len;
    }

    in->p = lf ? lf + 1 : in->last;

    if (lf == NULL) {
        if (!in->ended) {
            return US_INPUT_MORE;
        }

        if (in->kept.len == 0) {
            in->done = 1;
            return US_INPUT_MORE;
        }
    }

    in->line = (line->data == in->kept.data);

    return US_INPUT_ITEM;
}


us_input_rc_t
us_input_keep(us_input_t *in)
{
    if (us_input_append(in, &in->kept, in->p, in->last - in->p) != 0) {
        return US_INPUT_ERROR;
    }

    in->p = in->last;

    return in->ended ? US_INPUT_ITEM : US_INPUT_MORE;
}


us_input_rc_t
us_input_emit(us_input_t *in, us_input_kind_t kind, us_str_t text)
{
    us_input_item_t  *item;

    item = in->item;

    memset(item, 0, sizeof(us_input_item_t));

    item->kind = kind;
    item->text = text;

    if (kind == US_INPUT_BAD) {
        item->why = in->bad;
    }

    if (kind <= US_INPUT_NUMBER && us_input_has(in, US_INPUT_F_BASE)) {
        item->base.data = in->base.data;
        item->base.len = in->base.len;
    }

    if (us_input_has(in, US_INPUT_F_REF)) {
        item->ref.data = in->ref.data;
        item->ref.len = in->ref.len;
    }

    return US_INPUT_ITEM;
}


us_input_rc_t
us_input_fail(us_input_t *in, const char *error)
{
    if (in->error == NULL) {
        in->error = error;
    }

    return US_INPUT_ERROR;
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
            us_input_fail(in, "out of memory");
            return -1;
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
