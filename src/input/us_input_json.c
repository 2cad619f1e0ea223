
/*
 * JSON texts as items: NDJSON, an array, an object with a list or of one item.
 * See us_input.h.
 *
 *     level 0   1          2
 *           |   |          |
 *           {   "url":     "..."    a value of the object: us_input_value
 *           {   "urls": [  "..."    an element of the list
 *           [              "..."    the same, one level higher
 *           {   "ref":     any      kept as it was sent
 *           {   "other":   any      checked, and left out
 *
 * us_input_object() reads all of a text.  in->field is the member whose value
 * comes next; in->have has the members seen, of which none may come twice.  Of
 * a list it counts the elements, and finds where it lies: its elements are
 * read when the base is known, which may come after them.
 */


#include "us_input_private.h"


static us_input_rc_t us_input_object(us_input_t *in, us_str_t text);
static us_input_rc_t us_input_event(us_input_t *in, us_json_event_t event);
static us_input_rc_t us_input_broken(us_input_t *in, const char *why);
static us_input_rc_t us_input_key(us_input_t *in, us_str_t key);
static us_input_rc_t us_input_value(us_input_t *in, us_json_event_t event);
static void us_input_list(us_input_t *in, unsigned level);
static us_input_rc_t us_input_ref(us_input_t *in);
static us_input_rc_t us_input_one(us_input_t *in);
static us_input_rc_t us_input_element(us_input_t *in);
static unsigned us_input_level(us_input_t *in, us_json_event_t event);
static int us_input_ends(us_json_event_t event);


/* an error of its JSON makes a line an item that says so */

us_input_rc_t
us_input_ndjson(us_input_t *in)
{
    us_str_t       line;
    us_input_rc_t  rc;

    line = us_string("");

    for ( ;; ) {

        if (!in->begun) {
            rc = us_input_line(in, SIZE_MAX, &line);

            if (rc != US_INPUT_ITEM) {
                return rc;
            }

            while (line.len && (line.data[0] == ' ' || line.data[0] == '\t'
                                || line.data[0] == '\r'))
            {
                line.data++;
                line.len--;
            }

            if (line.len == 0) {
                continue;
            }
        }

        rc = us_input_object(in, line);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        in->begun = 0;

        if (in->bad == NULL && !us_input_has(in, US_INPUT_F_ITEM)) {
            in->bad = in->ids ? "neither \"url\" nor \"id\"" : "no \"url\"";
        }

        return us_input_one(in);
    }
}


us_input_rc_t
us_input_json(us_input_t *in)
{
    us_str_t       text;
    us_input_rc_t  rc;

    if (!in->read) {
        rc = in->begun ? US_INPUT_ITEM : us_input_keep(in);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        text.data = in->kept.data;
        text.len = in->kept.len;

        rc = us_input_object(in, text);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        if (in->bad) {
            return us_input_fail(in, in->bad);
        }

        in->read = 1;

        if (!us_input_has(in, US_INPUT_F_LIST)) {
            in->single = 1;
            in->done = 1;

            return us_input_has(in, US_INPUT_F_ITEM) ? us_input_one(in)
                   : us_input_fail(in, in->ids ? "neither \"ids\" nor \"id\""
                                       : "neither \"urls\" nor \"url\"");
        }

        if (us_input_has(in, US_INPUT_F_ITEM)) {
            return us_input_fail(in, "one item or a list, not both");
        }

        /* a ref is that of one item */

        in->have &= ~(1 << US_INPUT_F_REF);
        us_json_text(&in->json, in->list);
    }

    return us_input_element(in);
}


/*
 * The whole text, or the rest of it after US_INPUT_REST; in->bad says what is
 * wrong with it.
 */

static us_input_rc_t
us_input_object(us_input_t *in, us_str_t text)
{
    us_input_rc_t    rc;
    us_json_event_t  event;

    if (!in->begun) {
        in->begun = 1;
        in->field = US_INPUT_F_OTHER;
        in->have = 0;
        in->number = 0;
        in->too_long = 0;
        in->bad = NULL;
        in->level = 0;

        us_json_text(&in->json, text);
    }

    in->json.work = in->work;

    do {
        event = us_json_next(&in->json);

        switch (event) {

        case US_JSON_END:
            rc = US_INPUT_ITEM;
            break;

        case US_JSON_REST:
            rc = US_INPUT_REST;
            break;

        case US_JSON_ERROR:
            rc = us_input_broken(in, in->json.error);
            break;

        default:
            rc = us_input_event(in, event);
        }

    } while (rc == US_INPUT_MORE);

    in->work = in->json.work;

    return in->error ? US_INPUT_ERROR : rc;
}


/* US_INPUT_MORE: go on; US_INPUT_ITEM: what follows does not matter */

static us_input_rc_t
us_input_event(us_input_t *in, us_json_event_t event)
{
    int       ends;
    unsigned  level;

    ends = us_input_ends(event);
    level = us_input_level(in, event);

    if (in->level) {
        in->known += (level == in->level && !ends);

        if (level < in->level) {
            in->list.len = in->json.p - in->list.data;
            in->level = 0;
        }

        return US_INPUT_MORE;
    }

    if (level > 1) {
        return US_INPUT_MORE;
    }

    if (level == 1) {
        return event == US_JSON_KEY ? us_input_key(in, in->json.text)
                                    : us_input_value(in, event);
    }

    if (event == US_JSON_OBJECT || ends) {
        return US_INPUT_MORE;
    }

    if (in->format == US_INPUT_NDJSON) {
        return us_input_broken(in, "the line is no object");
    }

    if (event != US_JSON_ARRAY) {
        return us_input_broken(in, "an array or an object was expected");
    }

    us_input_list(in, 1);

    return US_INPUT_MORE;
}


static us_input_rc_t
us_input_broken(us_input_t *in, const char *why)
{
    in->bad = why;

    return US_INPUT_ITEM;
}


static us_input_rc_t
us_input_key(us_input_t *in, us_str_t key)
{
    us_input_field_t  field;

    field = US_INPUT_F_OTHER;

    if (us_input_is_item(in, key)) {
        field = US_INPUT_F_ITEM;
        in->number = us_input_is(key, "id");

    } else if (in->format == US_INPUT_JSON
               && (us_input_is(key, "urls")
                   || (in->ids && us_input_is(key, "ids"))))
    {
        field = US_INPUT_F_LIST;

    } else if (us_input_is(key, "base")) {
        field = US_INPUT_F_BASE;

    } else if (us_input_is(key, "ref")) {
        field = US_INPUT_F_REF;
    }

    if (field != US_INPUT_F_OTHER && us_input_has(in, field)) {
        return us_input_broken(in, "a key is there twice");
    }

    in->field = field;

    return US_INPUT_MORE;
}


/* a value of the object itself, or the end of one */

static us_input_rc_t
us_input_value(us_input_t *in, us_json_event_t event)
{
    us_input_buf_t  *b;

    switch (in->field) {

    case US_INPUT_F_LIST:
        if (event != US_JSON_ARRAY) {
            return us_input_broken(in, "a list must be an array");
        }

        us_input_list(in, 2);
        in->field = US_INPUT_F_OTHER;

        return US_INPUT_MORE;

    case US_INPUT_F_REF:
        if (!us_input_ends(event)) {
            in->ref_at.data = in->json.at;
        }

        return event == US_JSON_OBJECT || event == US_JSON_ARRAY
               ? US_INPUT_MORE : us_input_ref(in);

    case US_INPUT_F_ITEM:
        b = &in->text;
        in->number |= (event == US_JSON_NUM);

        if (event != US_JSON_STRING && event != US_JSON_NUM) {
            return us_input_broken(in, "\"url\" must be a string");
        }

        break;

    case US_INPUT_F_BASE:
        b = &in->base;

        if (event == US_JSON_NULL) {
            in->field = US_INPUT_F_OTHER;
            return US_INPUT_MORE;
        }

        if (event != US_JSON_STRING) {
            return us_input_broken(in, "\"base\" must be a string");
        }

        break;

    default: /* US_INPUT_F_OTHER */
        return US_INPUT_MORE;
    }

    in->too_long |= in->json.cut;
    in->have |= 1 << in->field;
    in->field = US_INPUT_F_OTHER;

    b->len = 0;

    return us_input_append(in, b, in->json.text.data, in->json.text.len) == 0
           ? US_INPUT_MORE : US_INPUT_ERROR;
}


/* begins at the bracket that has been read */

static void
us_input_list(us_input_t *in, unsigned level)
{
    in->have |= 1 << US_INPUT_F_LIST;
    in->list.data = in->json.at;
    in->level = level;
}


/*
 * A ref has been read.  White space is left out: a line end in it would be one
 * of a reply in NDJSON.
 */

static us_input_rc_t
us_input_ref(us_input_t *in)
{
    int             string;
    uint8_t        *w;
    const uint8_t  *p;

    in->field = US_INPUT_F_OTHER;
    in->ref_at.len = in->json.p - in->ref_at.data;

    if (in->ref_at.len > US_INPUT_REF) {
        in->too_long = 1;
        return US_INPUT_MORE;
    }

    in->have |= 1 << US_INPUT_F_REF;
    in->ref.len = 0;

    if (us_input_append(in, &in->ref, NULL, in->ref_at.len) != 0) {
        return US_INPUT_ERROR;
    }

    w = in->ref.data;
    string = 0;

    for (p = in->ref_at.data; p < in->json.p; p++) {

        if (!string && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
            continue;
        }

        if (*p == '"') {
            string = !string;

        } else if (*p == '\\') {
            *w++ = *p++;
        }

        *w++ = *p;
    }

    in->ref.len = w - in->ref.data;

    return US_INPUT_MORE;
}


/* of an object */

static us_input_rc_t
us_input_one(us_input_t *in)
{
    us_str_t  text;

    text.data = in->text.data;
    text.len = in->text.len;

    if (in->bad) {
        text.len = 0;
        in->have &= ~(1 << US_INPUT_F_REF);

        return us_input_emit(in, US_INPUT_BAD, text);
    }

    if (in->too_long) {
        text.len = 0;
        return us_input_emit(in, US_INPUT_LONG, text);
    }

    return us_input_emit(in, in->number ? US_INPUT_NUMBER : US_INPUT_URL,
                         text);
}


/* the next one of the list */

static us_input_rc_t
us_input_element(us_input_t *in)
{
    us_str_t         text;
    us_json_event_t  event;

    in->json.work = in->work;

    do {
        event = us_json_next(&in->json);

    } while (event < US_JSON_END
             && (us_input_ends(event) || us_input_level(in, event) != 1));

    in->work = in->json.work;
    text = us_string("");

    switch (event) {

    case US_JSON_END:
        in->done = 1;
        return US_INPUT_MORE;

    case US_JSON_REST:
        return US_INPUT_REST;

    case US_JSON_ERROR:
        return us_input_fail(in, in->json.error);

    case US_JSON_STRING:
    case US_JSON_NUM:
        text = in->json.text;

        /* too_long: the base was */

        return us_input_emit(in, in->too_long || in->json.cut ? US_INPUT_LONG
                             : event == US_JSON_NUM ? US_INPUT_NUMBER
                             : US_INPUT_URL, text);

    default:
        in->bad = "an element of the list must be a string";
        return us_input_emit(in, US_INPUT_BAD, text);
    }
}


/* on which the value stands: 0 is the whole text */

static unsigned
us_input_level(us_input_t *in, us_json_event_t event)
{
    return in->json.depth - (event == US_JSON_OBJECT
                             || event == US_JSON_ARRAY);
}


static int
us_input_ends(us_json_event_t event)
{
    return event == US_JSON_OBJECT_END || event == US_JSON_ARRAY_END;
}
