
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().
 *
 *     text     us_input_text -> us_input_line ---------------------.
 *     NDJSON   us_input_ndjson -> us_json_feed -> us_input_event   |
 *                    `-> us_input_ndjson_line ---------------------+-> emit
 *     JSON     us_json_feed -> us_input_event -> _element ---------|
 *                                             `-> _object_end -----|
 *     form     us_input_form (keeps) -> us_input_form_end ---------'
 */


#include "us_input.h"
#include "us_json_quote.h"

#include <stdlib.h>


typedef enum {
    US_INPUT_F_OTHER = 0,
    US_INPUT_F_ITEM,                  /* url or id */
    US_INPUT_F_LIST,                  /* urls or ids */
    US_INPUT_F_BASE,
    US_INPUT_F_REF
} us_input_field_t;


/* in `held`: what each entry begins with */

typedef struct {
    us_input_kind_t     kind;
    size_t              len;
} us_input_held_t;


static int us_input_text(us_input_t *in, const uint8_t *p, size_t len);
static int us_input_line(us_input_t *in, us_str_t line);
static int us_input_ndjson(us_input_t *in, const uint8_t *p, size_t len);
static int us_input_ndjson_line(us_input_t *in);
static int us_input_form(us_input_t *in, const uint8_t *p, size_t len);
static int us_input_form_sniff(us_input_t *in);
static int us_input_form_end(us_input_t *in);
static int us_input_form_ref(us_input_t *in, us_str_t value);
static int us_input_form_field(us_str_t *name, us_str_t *value, uint8_t **p,
    uint8_t *end);
static int us_input_event(void *data, us_json_event_t event, us_str_t text,
    int cut);
static int us_input_top(us_input_t *in, us_json_event_t event);
static int us_input_element(us_input_t *in, us_json_event_t event,
    us_str_t text, int cut);
static int us_input_key(us_input_t *in, us_str_t key);
static int us_input_value(us_input_t *in, us_json_event_t event,
    us_str_t text, int cut);
static int us_input_object_end(us_input_t *in);
static int us_input_release(us_input_t *in);
static int us_input_hold(us_input_t *in, us_input_kind_t kind, us_str_t text);
static int us_input_ref(us_input_t *in, us_json_event_t event, us_str_t text,
    int cut);
static int us_input_emit(us_input_t *in, us_input_kind_t kind, us_str_t text,
    us_input_buf_t *base, us_input_buf_t *ref);
static int us_input_fail(us_input_t *in, const char *error);
static int us_input_append(us_input_t *in, us_input_buf_t *b,
    const uint8_t *p, size_t len);
static int us_input_is_item(us_input_t *in, us_str_t name);
static int us_input_is(us_str_t s, const char *name);


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


size_t
us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len)
{
    int             i, n, c;
    uint8_t        *d;
    const uint8_t  *last;

    d = dst;
    last = src + len;

    while (src < last) {

        if (*src == '+') {
            *d++ = ' ';
            src++;
            continue;
        }

        if (*src != '%' || last - src < 3) {
            *d++ = *src++;
            continue;
        }

        n = 0;

        for (i = 1; i < 3; i++) {
            c = src[i];

            if (c >= '0' && c <= '9') {
                n = n * 16 + c - '0';

            } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
                n = n * 16 + (c | 0x20) - 'a' + 10;

            } else {
                break;
            }
        }

        if (i < 3) {
            /* not an escape: it stays as it is */
            *d++ = *src++;
            continue;
        }

        *d++ = n;
        src += 3;
    }

    return d - dst;
}


static int
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


/*
 * A line feed cannot be part of a JSON text other than as white space, so a
 * line's end is known without the JSON reader, and a broken line is left at
 * the next one.
 */

static int
us_input_ndjson(us_input_t *in, const uint8_t *p, size_t len)
{
    const uint8_t  *lf, *last, *end;

    end = p + len;

    while (p < end) {
        lf = memchr(p, '\n', end - p);
        last = lf ? lf : end;

        if (!in->begun) {
            while (p < last && (*p == ' ' || *p == '\t' || *p == '\r')) {
                p++;
            }

            if (p < last) {
                in->begun = 1;
            }
        }

        if (p < last && !in->bad) {
            if (us_json_feed(&in->json, p, last - p) != 0) {
                if (in->error) {
                    return -1;
                }

                in->bad = 1;
            }
        }

        if (lf == NULL) {
            return 0;
        }

        if (us_input_ndjson_line(in) != 0) {
            return -1;
        }

        p = lf + 1;
    }

    return 0;
}


static int
us_input_ndjson_line(us_input_t *in)
{
    int              rc;
    us_str_t         text;
    us_input_buf_t  *base, *ref;

    if (!in->begun) {
        return 0;
    }

    if (!in->bad && us_json_end(&in->json) != 0) {
        if (in->error) {
            return -1;
        }

        in->bad = 1;
    }

    base = (in->have & 1 << US_INPUT_F_BASE) ? &in->base : NULL;
    ref = (in->have & 1 << US_INPUT_F_REF) ? &in->ref : NULL;

    text.data = in->text.data;
    text.len = in->text.len;

    if (in->bad || !(in->have & 1 << US_INPUT_F_ITEM)) {
        text.len = 0;

        /* a ref of which half was read would be broken JSON */

        rc = us_input_emit(in, US_INPUT_BAD, text, NULL,
                           in->bad ? NULL : ref);

    } else if (in->too_long) {
        text.len = 0;
        rc = us_input_emit(in, US_INPUT_LONG, text, NULL,
                           in->ref_long ? NULL : ref);

    } else {
        rc = us_input_emit(in, in->number ? US_INPUT_NUMBER : US_INPUT_URL,
                           text, base, ref);
    }

    in->begun = 0;
    in->bad = 0;
    in->have = 0;
    in->field = US_INPUT_F_OTHER;

    us_json_reset(&in->json);

    return rc;
}


static int
us_input_form(us_input_t *in, const uint8_t *p, size_t len)
{
    if (us_input_append(in, &in->carry, p, len) != 0) {
        return -1;
    }

    if (!in->sniffed && in->carry.len >= 5) {
        return us_input_form_sniff(in);
    }

    return 0;
}


/* `curl --data-binary @urls.txt` calls a list of URLs a form */

static int
us_input_form_sniff(us_input_t *in)
{
    int              rc;
    us_str_t         s;
    us_input_buf_t   b;

    in->sniffed = 1;

    s.data = in->carry.data;
    s.len = in->carry.len < 5 ? in->carry.len : 5;

    if (s.len == 5
        && (us_input_is(s, "base=") || memcmp(s.data, "url=", 4) == 0
            || memcmp(s.data, "ref=", 4) == 0
            || (in->ids && memcmp(s.data, "id=", 3) == 0)))
    {
        return 0;
    }

    if (s.len == 4 && (us_input_is(s, "url=") || us_input_is(s, "ref=")
                       || (in->ids && memcmp(s.data, "id=", 3) == 0)))
    {
        return 0;
    }

    b = in->carry;

    memset(&in->carry, 0, sizeof(us_input_buf_t));

    in->format = US_INPUT_TEXT;

    rc = us_input_text(in, b.data, b.len);

    free(b.data);

    return rc;
}


/* two passes, for a base may come behind its URLs */

static int
us_input_form_end(us_input_t *in)
{
    int              rc;
    uint8_t         *p, *end;
    unsigned         urls;
    us_str_t         name, value;
    us_input_buf_t  *base, *ref;

    urls = 0;
    base = NULL;
    ref = NULL;

    p = in->carry.data;
    end = p + in->carry.len;

    while (us_input_form_field(&name, &value, &p, end)) {

        if (us_input_is(name, "base")) {
            if (base) {
                return us_input_fail(in, "more than one \"base\"");
            }

            base = &in->base;

            if (us_input_append(in, base, value.data, value.len) != 0) {
                return -1;
            }

            base->len = us_input_unescape(base->data, base->data, base->len);

        } else if (us_input_is(name, "ref")) {
            if (ref) {
                return us_input_fail(in, "more than one \"ref\"");
            }

            ref = &in->ref;

            if (us_input_form_ref(in, value) != 0) {
                return -1;
            }

        } else if (us_input_is_item(in, name)) {
            urls++;
        }
    }

    if (ref && urls > 1) {
        return us_input_fail(in, "\"ref\" is for a single URL in a form");
    }

    if (urls == 0 && (ref || base)) {
        return us_input_fail(in, "no \"url\"");
    }

    in->single = (urls == 1);

    p = in->carry.data;

    while (us_input_form_field(&name, &value, &p, end)) {

        if (!us_input_is_item(in, name)) {
            continue;
        }

        value.len = us_input_unescape((uint8_t *) value.data, value.data,
                                      value.len);

        if (value.len > in->max || (base && base->len > in->max)) {
            value.len = 0;
            rc = us_input_emit(in, US_INPUT_LONG, value, NULL, ref);

        } else {
            rc = us_input_emit(in, US_INPUT_URL, value, base, ref);
        }

        if (rc != 0) {
            return -1;
        }
    }

    return 0;
}


/* the ref of a form is a JSON string */

static int
us_input_form_ref(us_input_t *in, us_str_t value)
{
    size_t    len;
    us_str_t  s;

    in->text.len = 0;

    if (us_input_append(in, &in->text, value.data, value.len) != 0) {
        return -1;
    }

    s.data = in->text.data;
    s.len = us_input_unescape(in->text.data, in->text.data, in->text.len);

    len = us_json_quoted_len(s);

    if (len > US_INPUT_REF) {
        return us_input_fail(in, "\"ref\" is too long");
    }

    if (!us_utf8_valid(s)) {
        return us_input_fail(in, "\"ref\" is not UTF-8");
    }

    in->ref.len = 0;

    if (us_input_append(in, &in->ref, NULL, len) != 0) {
        return -1;
    }

    in->ref.len = us_json_quote(in->ref.data, s) - in->ref.data;

    return 0;
}


/* the next NAME=VALUE, as it was sent; 0: there is none */

static int
us_input_form_field(us_str_t *name, us_str_t *value, uint8_t **p,
    uint8_t *end)
{
    uint8_t  *start, *eq, *last;

    start = *p;

    if (start >= end) {
        return 0;
    }

    last = memchr(start, '&', end - start);

    if (last == NULL) {
        last = end;

        /* what an editor or echo puts behind the last value */

        while (end - start > 0 && (end[-1] == '\n' || end[-1] == '\r')) {
            end--;
        }
    }

    *p = last + 1;

    if (last > end) {
        last = end;
    }

    eq = memchr(start, '=', last - start);

    if (eq == NULL) {
        eq = last;
    }

    name->data = start;
    name->len = eq - start;

    value->data = eq < last ? eq + 1 : last;
    value->len = last - value->data;

    return 1;
}


static int
us_input_event(void *data, us_json_event_t event, us_str_t text, int cut)
{
    us_input_t *in = data;

    unsigned  depth;

    /* the depth at which the value stands: 0 is the whole text */

    depth = in->json.depth;

    if (event == US_JSON_OBJECT || event == US_JSON_ARRAY) {
        depth--;
    }

    if (depth == 0) {
        if (event == US_JSON_OBJECT_END) {
            return us_input_object_end(in);
        }

        if (event == US_JSON_ARRAY_END) {
            return 0;
        }

        return us_input_top(in, event);
    }

    if (in->field == US_INPUT_F_REF && event != US_JSON_KEY) {
        return us_input_ref(in, event, text, cut);
    }

    if (in->field == US_INPUT_F_REF && depth > 1) {
        return us_input_ref(in, event, text, cut);
    }

    if (in->list) {
        if (depth == (in->field == US_INPUT_F_LIST ? 2u : 1u)
            && event != US_JSON_OBJECT_END && event != US_JSON_ARRAY_END)
        {
            return us_input_element(in, event, text, cut);
        }

        if (in->field == US_INPUT_F_LIST && depth == 1) {
            /* the end of the list */
            in->list = 0;
            in->field = US_INPUT_F_OTHER;
        }

        return 0;
    }

    if (depth == 1) {
        if (event == US_JSON_KEY) {
            return us_input_key(in, text);
        }

        return us_input_value(in, event, text, cut);
    }

    return 0;
}


static int
us_input_top(us_input_t *in, us_json_event_t event)
{
    if (event == US_JSON_OBJECT) {
        in->have = 0;
        in->list = 0;
        in->number = 0;
        in->too_long = 0;
        in->ref_long = 0;
        in->field = US_INPUT_F_OTHER;
        return 0;
    }

    if (in->format == US_INPUT_NDJSON) {

        /* the rest of the line is still checked, to no avail */

        in->bad = 1;
        return -1;
    }

    if (event == US_JSON_ARRAY) {
        in->list = 1;
        in->field = US_INPUT_F_OTHER;
        return 0;
    }

    return us_input_fail(in, "an array or an object was expected");
}


static int
us_input_element(us_input_t *in, us_json_event_t event, us_str_t text,
    int cut)
{
    us_input_kind_t  kind;

    kind = US_INPUT_BAD;

    if (event == US_JSON_STRING) {
        kind = cut ? US_INPUT_LONG : US_INPUT_URL;

    } else if (event == US_JSON_NUM) {
        kind = US_INPUT_NUMBER;

    } else {
        text.len = 0;
    }

    if (in->field == US_INPUT_F_LIST
        && !(in->have & 1 << US_INPUT_F_BASE))
    {
        return us_input_hold(in, kind, text);
    }

    return us_input_emit(in, kind, text,
                         in->have & 1 << US_INPUT_F_BASE ? &in->base : NULL,
                         NULL);
}


static int
us_input_key(us_input_t *in, us_str_t key)
{
    us_input_field_t  field;

    field = US_INPUT_F_OTHER;

    if (us_input_is_item(in, key)) {
        field = US_INPUT_F_ITEM;

    } else if ((us_input_is(key, "urls")
                || (in->ids && us_input_is(key, "ids")))
               && in->format == US_INPUT_JSON)
    {
        field = US_INPUT_F_LIST;

    } else if (us_input_is(key, "base")) {
        field = US_INPUT_F_BASE;

    } else if (us_input_is(key, "ref")) {
        field = US_INPUT_F_REF;
        in->ref.len = 0;
        in->ref_comma = 0;
        in->ref_long = 0;
    }

    if (field != US_INPUT_F_OTHER && (in->have & 1 << field)) {
        if (in->format == US_INPUT_NDJSON) {
            in->bad = 1;
            return -1;
        }

        return us_input_fail(in, "a key is there twice");
    }

    in->field = field;

    return 0;
}


/* a value of the object itself */

static int
us_input_value(us_input_t *in, us_json_event_t event, us_str_t text, int cut)
{
    us_input_buf_t  *b;

    if (in->field == US_INPUT_F_OTHER) {
        return 0;
    }

    in->have |= 1 << in->field;

    if (in->field == US_INPUT_F_LIST) {
        if (event != US_JSON_ARRAY) {
            return us_input_fail(in, "a list must be an array");
        }

        in->list = 1;
        in->held.len = 0;
        return 0;
    }

    b = &in->text;

    if (in->field == US_INPUT_F_BASE) {
        b = &in->base;

        if (event == US_JSON_NULL) {
            in->have &= ~(1 << US_INPUT_F_BASE);
            return 0;
        }
    }

    if (event == US_JSON_NUM && in->field == US_INPUT_F_ITEM) {
        in->number = 1;

    } else if (event != US_JSON_STRING) {
        if (in->format == US_INPUT_NDJSON) {
            in->bad = 1;
            return -1;
        }

        return us_input_fail(in, in->field == US_INPUT_F_BASE
                                 ? "\"base\" must be a string"
                                 : "\"url\" must be a string");
    }

    if (cut) {
        in->too_long = 1;
    }

    b->len = 0;

    if (us_input_append(in, b, text.data, text.len) != 0) {
        return -1;
    }

    in->field = US_INPUT_F_OTHER;

    return 0;
}


/* of the whole text; NDJSON waits for the line's end */

static int
us_input_object_end(us_input_t *in)
{
    us_str_t         text;
    us_input_buf_t  *base, *ref;

    if (in->format == US_INPUT_NDJSON) {
        return 0;
    }

    if ((in->have & 1 << US_INPUT_F_ITEM)
        && (in->have & 1 << US_INPUT_F_LIST))
    {
        return us_input_fail(in, "one item or a list, not both");
    }

    if (in->have & 1 << US_INPUT_F_LIST) {
        return us_input_release(in);
    }

    if (!(in->have & 1 << US_INPUT_F_ITEM)) {
        return us_input_fail(in, in->ids ? "neither \"ids\" nor \"id\""
                                         : "neither \"urls\" nor \"url\"");
    }

    in->single = 1;

    base = (in->have & 1 << US_INPUT_F_BASE) ? &in->base : NULL;
    ref = (in->have & 1 << US_INPUT_F_REF) ? &in->ref : NULL;

    text.data = in->text.data;
    text.len = in->text.len;

    if (in->too_long) {
        text.len = 0;
        return us_input_emit(in, US_INPUT_LONG, text, NULL,
                             in->ref_long ? NULL : ref);
    }

    return us_input_emit(in, in->number ? US_INPUT_NUMBER : US_INPUT_URL,
                         text, base, ref);
}


static int
us_input_hold(us_input_t *in, us_input_kind_t kind, us_str_t text)
{
    us_input_held_t  h;

    h.kind = kind;
    h.len = text.len;

    if (us_input_append(in, &in->held, (uint8_t *) &h, sizeof(h)) != 0) {
        return -1;
    }

    return us_input_append(in, &in->held, text.data, text.len);
}


static int
us_input_release(us_input_t *in)
{
    uint8_t          *p, *end;
    us_str_t          text;
    us_input_held_t   h;

    p = in->held.data;
    end = p + in->held.len;

    while (p < end) {
        memcpy(&h, p, sizeof(h));

        text.data = p + sizeof(h);
        text.len = h.len;

        p += sizeof(h) + h.len;

        if (in->too_long) {

            /* the base was */

            h.kind = US_INPUT_LONG;
            text.len = 0;
        }

        if (us_input_emit(in, h.kind, text,
                          in->have & 1 << US_INPUT_F_BASE ? &in->base : NULL,
                          NULL)
            != 0)
        {
            return -1;
        }
    }

    in->held.len = 0;

    return 0;
}


/*
 * Writes the events of a ref down again as JSON without white space.  Numbers
 * stay as they were written.
 */

static int
us_input_ref(us_input_t *in, us_json_event_t event, us_str_t text, int cut)
{
    size_t           room;
    uint8_t          c;
    unsigned         nested;
    us_input_buf_t  *b;

    b = &in->ref;

    /* with what may stand around it */

    room = us_json_quoted_len(text) + 8;

    in->have |= 1 << US_INPUT_F_REF;

    if (cut || b->len + room > US_INPUT_REF) {

        /* check the rest, and answer with none */

        in->ref_long = 1;
        in->too_long = 1;
    }

    if (in->ref_long) {
        goto done;
    }

    if (us_input_append(in, b, NULL, room) != 0) {
        return -1;
    }

    b->len -= room;

    if (event != US_JSON_OBJECT_END && event != US_JSON_ARRAY_END) {
        if (in->ref_comma) {
            b->data[b->len++] = ',';
        }

        in->ref_comma = 1;
    }

    switch (event) {

    case US_JSON_OBJECT:
    case US_JSON_ARRAY:
        b->data[b->len++] = (event == US_JSON_OBJECT) ? '{' : '[';
        in->ref_comma = 0;
        return 0;

    case US_JSON_OBJECT_END:
    case US_JSON_ARRAY_END:
        c = (event == US_JSON_OBJECT_END) ? '}' : ']';
        b->data[b->len++] = c;
        in->ref_comma = 1;
        break;

    case US_JSON_KEY:
        b->len = us_json_quote(b->data + b->len, text) - b->data;
        b->data[b->len++] = ':';
        in->ref_comma = 0;
        return 0;

    case US_JSON_STRING:
        b->len = us_json_quote(b->data + b->len, text) - b->data;
        break;

    case US_JSON_NUM:
        memcpy(b->data + b->len, text.data, text.len);
        b->len += text.len;
        break;

    case US_JSON_TRUE:
        memcpy(b->data + b->len, "true", 4);
        b->len += 4;
        break;

    case US_JSON_FALSE:
        memcpy(b->data + b->len, "false", 5);
        b->len += 5;
        break;

    case US_JSON_NULL:
        memcpy(b->data + b->len, "null", 4);
        b->len += 4;
        break;
    }

done:

    nested = in->json.depth - 1;

    if (nested == 0 && event != US_JSON_OBJECT && event != US_JSON_ARRAY) {
        in->field = US_INPUT_F_OTHER;
    }

    return 0;
}


static int
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


/* keeps the first reason */

static int
us_input_fail(us_input_t *in, const char *error)
{
    if (in->error == NULL && !in->stopped) {
        in->error = error;
    }

    return -1;
}


/* p may be NULL: room only */

static int
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


static int
us_input_is_item(us_input_t *in, us_str_t name)
{
    return us_input_is(name, "url") || (in->ids && us_input_is(name, "id"));
}


static int
us_input_is(us_str_t s, const char *name)
{
    return s.len == strlen(name) && memcmp(s.data, name, s.len) == 0;
}
