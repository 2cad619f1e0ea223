
/*
 * The events of a JSON text as items: NDJSON, an array, an object with a list
 * or of one item.  See us_input.h.
 *
 *     depth 0   1          2
 *           |   |          |
 *           {   "url":     "..."    a value of the object: us_input_value
 *           {   "urls": [  "..."    an element: us_input_element
 *           [              "..."    the same, at depth 1
 *           {   "ref":     any      written down again: us_input_ref
 *           {   "other":   any      checked, and left out
 *
 * in->field is the member whose value comes next; in->have has the members
 * seen, of which none may come twice.  Elements that come before their base
 * wait in in->held:
 *
 *     | us_input_held_t | text | us_input_held_t | text | ...
 */


#include "us_input_private.h"
#include "us_json_quote.h"


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


static int us_input_ndjson_line(us_input_t *in);
static us_input_buf_t *us_input_whole_ref(us_input_t *in);
static int us_input_broken(us_input_t *in, const char *why);
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
static int us_input_ref_write(us_input_t *in, us_json_event_t event,
    us_str_t text, size_t room);


int
us_input_json(us_input_t *in)
{
    const uint8_t  *p;

    if (in->releasing) {
        return us_input_release(in);
    }

    if (in->p < in->last) {
        p = us_json_feed(&in->json, in->p, in->last);

        if (p == NULL) {
            return us_input_fail(in, in->json.error);
        }

        in->p = p;

        if (in->json.paused) {
            return in->releasing ? us_input_release(in) : 1;
        }
    }

    if (in->ended) {
        in->done = 1;

        if (us_json_end(&in->json) != 0) {
            return us_input_fail(in, in->json.error);
        }
    }

    return 0;
}


/*
 * A line feed cannot be part of a JSON text other than as white space, so a
 * line's end is known without the JSON reader, and a broken line is left at
 * the next one.
 */

int
us_input_ndjson(us_input_t *in)
{
    int             rc;
    const uint8_t  *p, *lf, *last;

    for ( ;; ) {
        p = in->p;
        lf = p == in->last ? NULL : memchr(p, '\n', in->last - p);
        last = lf ? lf : in->last;

        if (!in->begun) {
            while (p < last && (*p == ' ' || *p == '\t' || *p == '\r')) {
                p++;
            }

            if (p < last) {
                in->begun = 1;
            }
        }

        if (p < last && !in->bad && us_json_feed(&in->json, p, last) == NULL) {
            if (in->error) {
                return -1;
            }

            us_input_broken(in, in->json.error);
        }

        in->p = lf ? lf + 1 : in->last;

        if (lf == NULL) {
            if (!in->ended) {
                return 0;
            }

            in->done = 1;

            return us_input_ndjson_line(in);
        }

        rc = us_input_ndjson_line(in);

        if (rc != 0) {
            return rc;
        }
    }
}


/* the line is an item that says so; the first reason stays */

static int
us_input_broken(us_input_t *in, const char *why)
{
    if (!in->bad) {
        in->bad = 1;
        in->why = why;
    }

    return -1;
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

        us_input_broken(in, in->json.error);
    }

    if (!(in->have & 1 << US_INPUT_F_ITEM)) {
        us_input_broken(in, in->ids ? "neither \"url\" nor \"id\""
                                    : "no \"url\"");
    }

    base = (in->have & 1 << US_INPUT_F_BASE) ? &in->base : NULL;
    ref = us_input_whole_ref(in);

    text.data = in->text.data;
    text.len = in->text.len;

    if (in->bad) {
        text.len = 0;
        rc = us_input_emit(in, US_INPUT_BAD, text, NULL, ref);

    } else if (in->too_long) {
        text.len = 0;
        rc = us_input_emit(in, US_INPUT_LONG, text, NULL, ref);

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


int
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

    /* a key at depth 1 is the next member's */

    if (in->field == US_INPUT_F_REF
        && (depth > 1 || event != US_JSON_KEY))
    {
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
        return us_input_broken(in, "the line is no object");
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
    in->why = "an element of the list must be a string";

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
            return us_input_broken(in, "a key is there twice");
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
    const char      *why;
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
        in->nheld = 0;
        in->held_at = 0;
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
        why = in->field == US_INPUT_F_BASE ? "\"base\" must be a string"
                                           : "\"url\" must be a string";

        return in->format == US_INPUT_NDJSON ? us_input_broken(in, why)
                                             : us_input_fail(in, why);
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
        if (in->held.len == 0) {
            return 0;
        }

        in->known = in->nheld;
        in->releasing = 1;

        return 1;
    }

    if (!(in->have & 1 << US_INPUT_F_ITEM)) {
        return us_input_fail(in, in->ids ? "neither \"ids\" nor \"id\""
                                         : "neither \"urls\" nor \"url\"");
    }

    in->single = 1;

    base = (in->have & 1 << US_INPUT_F_BASE) ? &in->base : NULL;
    ref = us_input_whole_ref(in);

    text.data = in->text.data;
    text.len = in->text.len;

    if (in->too_long) {
        text.len = 0;
        return us_input_emit(in, US_INPUT_LONG, text, NULL, ref);
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

    in->nheld++;

    if (us_input_append(in, &in->held, (uint8_t *) &h, sizeof(h)) != 0) {
        return -1;
    }

    return us_input_append(in, &in->held, text.data, text.len);
}


/* the next of those that waited */

static int
us_input_release(us_input_t *in)
{
    us_str_t          text;
    us_input_held_t   h;

    memcpy(&h, in->held.data + in->held_at, sizeof(h));

    text.data = in->held.data + in->held_at + sizeof(h);
    text.len = h.len;

    in->held_at += sizeof(h) + h.len;

    if (in->held_at == in->held.len) {
        in->releasing = 0;
    }

    if (in->too_long) {

        /* the base was */

        h.kind = US_INPUT_LONG;
        text.len = 0;
    }

    return us_input_emit(in, h.kind, text,
                         in->have & 1 << US_INPUT_F_BASE ? &in->base : NULL,
                         NULL);
}


/* NULL: there is none, or half of it, which would be broken JSON */

static us_input_buf_t *
us_input_whole_ref(us_input_t *in)
{
    if (in->bad || in->ref_long) {
        return NULL;
    }

    return (in->have & 1 << US_INPUT_F_REF) ? &in->ref : NULL;
}


/* an event of a ref, which may be too long to be kept */

static int
us_input_ref(us_input_t *in, us_json_event_t event, us_str_t text, int cut)
{
    size_t  room;

    /* with what may stand around it */

    room = us_json_quoted_len(text) + 8;

    in->have |= 1 << US_INPUT_F_REF;

    if (cut || in->ref.len + room > US_INPUT_REF) {

        /* check the rest, and answer with none */

        in->ref_long = 1;
        in->too_long = 1;
    }

    if (!in->ref_long && us_input_ref_write(in, event, text, room) != 0) {
        return -1;
    }

    if (in->json.depth == 1 && event != US_JSON_OBJECT
        && event != US_JSON_ARRAY)
    {
        in->field = US_INPUT_F_OTHER;
    }

    return 0;
}


/*
 * Writes the events of a ref down again as JSON without white space.  Numbers
 * stay as they were written.
 */

static int
us_input_ref_write(us_input_t *in, us_json_event_t event, us_str_t text,
    size_t room)
{
    uint8_t  *p;

    if (us_input_append(in, &in->ref, NULL, room) != 0) {
        return -1;
    }

    p = in->ref.data + in->ref.len - room;

    if (in->ref_comma && event != US_JSON_OBJECT_END
        && event != US_JSON_ARRAY_END)
    {
        *p++ = ',';
    }

    in->ref_comma = 1;

    switch (event) {

    case US_JSON_OBJECT:
    case US_JSON_ARRAY:
        *p++ = (event == US_JSON_OBJECT) ? '{' : '[';
        in->ref_comma = 0;
        break;

    case US_JSON_OBJECT_END:
    case US_JSON_ARRAY_END:
        *p++ = (event == US_JSON_OBJECT_END) ? '}' : ']';
        break;

    case US_JSON_KEY:
        p = us_json_quote(p, text);
        *p++ = ':';
        in->ref_comma = 0;
        break;

    case US_JSON_STRING:
        p = us_json_quote(p, text);
        break;

    case US_JSON_NUM:
        p = mempcpy(p, text.data, text.len);
        break;

    case US_JSON_TRUE:
        p = mempcpy(p, "true", 4);
        break;

    case US_JSON_FALSE:
        p = mempcpy(p, "false", 5);
        break;

    case US_JSON_NULL:
        p = mempcpy(p, "null", 4);
        break;
    }

    in->ref.len = p - in->ref.data;

    return 0;
}
