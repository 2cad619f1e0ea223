
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().  Here is
 * what they share, and text.
 *
 *     text     us_input_text -> us_input_line ---------------------.
 *     NDJSON   us_input_ndjson -> us_json_feed -> us_input_event   |
 *                    `-> us_input_ndjson_line ---------------------+-> emit
 *     JSON     us_json_feed -> us_input_event -> _element ---------|
 *                                             `-> _object_end -----|
 *     form     us_input_form (keeps) -> us_input_form_end ---------'
 */


#include "us_input_private.h"

#include <stdlib.h>


static int us_input_line(us_input_t *in, us_str_t line);


void
us_input_init(us_input_t *in, us_input_format_t format, size_t max,
    us_input_pt item, void *data)
{
    memset(in, 0, sizeof(us_input_t));

    in->item = item;
    in->data = data;
    in->format = format;
    in->max = max;

    us_json_init(&in->json, us_input_event, in, max);
}


void
us_input_free(us_input_t *in)
{
    us_json_free(&in->json);

    free(in->carry.data);
    free(in->text.data);
    free(in->base.data);
    free(in->ref.data);
    free(in->held.data);
}


int
us_input_feed(us_input_t *in, const uint8_t *p, size_t len)
{
    switch (in->format) {

    case US_INPUT_TEXT:
        return us_input_text(in, p, len);

    case US_INPUT_NDJSON:
        return us_input_ndjson(in, p, len);

    case US_INPUT_FORM:
        return us_input_form(in, p, len);

    default: /* US_INPUT_JSON */

        if (us_json_feed(&in->json, p, len) != 0) {
            return us_input_fail(in, in->json.error);
        }

        return 0;
    }
}


int
us_input_end(us_input_t *in)
{
    us_str_t  line;

    if (in->format == US_INPUT_FORM && !in->sniffed) {
        if (us_input_form_sniff(in) != 0) {
            return -1;
        }
    }

    switch (in->format) {

    case US_INPUT_TEXT:
        line.data = in->carry.data;
        line.len = in->carry.len;

        return us_input_line(in, line);

    case US_INPUT_NDJSON:
        return us_input_ndjson_line(in);

    case US_INPUT_FORM:
        return us_input_form_end(in);

    default: /* US_INPUT_JSON */

        if (us_json_end(&in->json) != 0) {
            return us_input_fail(in, in->json.error);
        }

        return 0;
    }
}


int
us_input_text(us_input_t *in, const uint8_t *p, size_t len)
{
    us_str_t        line;
    const uint8_t  *lf, *end;

    end = p + len;

    while (p < end) {
        lf = memchr(p, '\n', end - p);

        if (lf == NULL) {
            if (in->skip) {
                return 0;
            }

            /* a byte more than the limit tells that the line is over it */

            len = end - p;

            if (len > in->max + 2 - in->carry.len) {
                len = in->max + 2 - in->carry.len;
                in->skip = 1;
            }

            return us_input_append(in, &in->carry, p, len);
        }

        line.data = p;
        line.len = lf - p;

        if (in->carry.len) {
            if (!in->skip) {
                if (line.len > in->max + 2 - in->carry.len) {
                    line.len = in->max + 2 - in->carry.len;
                }

                if (us_input_append(in, &in->carry, line.data, line.len)
                    != 0)
                {
                    return -1;
                }
            }

            line.data = in->carry.data;
            line.len = in->carry.len;
        }

        if (us_input_line(in, line) != 0) {
            return -1;
        }

        p = lf + 1;
    }

    return 0;
}


static int
us_input_line(us_input_t *in, us_str_t line)
{
    us_input_kind_t  kind;

    in->carry.len = 0;
    in->skip = 0;

    if (line.len && line.data[line.len - 1] == '\r') {
        line.len--;
    }

    if (line.len == 0) {
        return 0;
    }

    kind = US_INPUT_URL;

    if (line.len > in->max) {
        kind = US_INPUT_LONG;
    }

    return us_input_emit(in, kind, line, NULL, NULL);
}


int
us_input_emit(us_input_t *in, us_input_kind_t kind, us_str_t text,
    us_input_buf_t *base, us_input_buf_t *ref)
{
    us_input_item_t  item;

    item.kind = kind;
    item.text = text;
    item.base.data = NULL;
    item.base.len = 0;
    item.ref.data = NULL;
    item.ref.len = 0;

    if (base) {
        item.base.data = base->data;
        item.base.len = base->len;
    }

    if (ref) {
        item.ref.data = ref->data;
        item.ref.len = ref->len;
    }

    if (in->item(in->data, &item) != 0) {
        in->stopped = 1;
        return -1;
    }

    return 0;
}


int
us_input_fail(us_input_t *in, const char *error)
{
    if (in->error == NULL && !in->stopped) {
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
