
/*
 * See us_input.h.  Four formats, one way out: us_input_emit().
 *
 *     text     us_input_text <- line ---------------------.
 *     NDJSON   us_input_ndjson <- line                    |
 *                  `-- us_input_object <- us_json_next ---+-> emit
 *     JSON     us_input_json <- keep                      |
 *                  |-- us_input_object <- us_json_next ---+
 *                  `-- us_input_element <- us_json_next --+
 *     form     us_input_form <- keep                      |
 *                  `-- us_input_form_item ----------------'
 */


#include "us_input.h"
#include "us_json.h"
#include "../us_text.h"


/* what a field costs, however short it is: as much as so many bytes */
#define US_INPUT_FORM_FIELD  16


/* of in->field and in->have */

typedef enum {
    US_INPUT_F_OTHER = 0,
    US_INPUT_F_ITEM,                  /* url or id */
    US_INPUT_F_LIST,                  /* urls or ids, or the array itself */
    US_INPUT_F_BASE,
    US_INPUT_F_REF
} us_input_field_t;


#define us_input_has(in, field)  (((in)->have & 1 << (field)) != 0)


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


/* keeps the first reason */

static us_input_rc_t
us_input_fail(us_input_t *in, const char *error)
{
    if (in->error == NULL) {
        in->error = error;
    }

    return US_INPUT_ERROR;
}


/* 0, or -1: it has failed; p may be NULL: room only */

static int
us_input_append(us_input_t *in, us_json_buf_t *b, const uint8_t *p, size_t len)
{
    return us_json_buf_add(b, p, len) == 0
           ? 0 : us_input_fail(in, "out of memory");
}


/*
 * The next line, without its end, as US_INPUT_ITEM.  Of a longer one there are
 * `most` bytes, at least.  A line that a piece of the body has cut is kept in
 * in->kept.
 */

static us_input_rc_t
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

        *line = (us_str_t) { in->kept.len, in->kept.data };
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


/* keeps the body; US_INPUT_ITEM: all of it */

static us_input_rc_t
us_input_keep(us_input_t *in)
{
    if (us_input_append(in, &in->kept, in->p, in->last - in->p) != 0) {
        return US_INPUT_ERROR;
    }

    in->p = in->last;

    return in->ended ? US_INPUT_ITEM : US_INPUT_MORE;
}


/* fills in->item, with the base and the ref if `have` has them */

static us_input_rc_t
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
        item->base = (us_str_t) { in->base.len, in->base.data };
    }

    if (us_input_has(in, US_INPUT_F_REF)) {
        item->ref = (us_str_t) { in->ref.len, in->ref.data };
    }

    return US_INPUT_ITEM;
}


/* an item a line; an empty one is none */

static us_input_rc_t
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

        line.len -= (line.len && line.data[line.len - 1] == '\r');

        if (line.len) {
            return us_input_emit(in, line.len > in->max ? US_INPUT_LONG
                                                        : US_INPUT_URL, line);
        }
    }
}


/*
 * JSON texts as items: NDJSON, an array, an object with a list or of one item.
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


static us_input_rc_t
us_input_broken(us_input_t *in, const char *why)
{
    in->bad = why;

    return US_INPUT_ITEM;
}


static int
us_input_ends(us_json_event_t event)
{
    return event == US_JSON_OBJECT_END || event == US_JSON_ARRAY_END;
}


/* on which the value stands: 0 is the whole text */

static unsigned
us_input_level(us_input_t *in, us_json_event_t event)
{
    return in->json.depth - (event == US_JSON_OBJECT
                             || event == US_JSON_ARRAY);
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


/* a value of the object itself, or the end of one */

static us_input_rc_t
us_input_value(us_input_t *in, us_json_event_t event)
{
    us_json_buf_t  *b;

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


/* of an object */

static us_input_rc_t
us_input_one(us_input_t *in)
{
    us_str_t  text;

    text.data = in->text.data;
    text.len = in->bad || in->too_long ? 0 : in->text.len;

    if (in->bad) {
        in->have &= ~(1 << US_INPUT_F_REF);
        return us_input_emit(in, US_INPUT_BAD, text);
    }

    return us_input_emit(in, in->too_long ? US_INPUT_LONG
                             : in->number ? US_INPUT_NUMBER : US_INPUT_URL,
                         text);
}


/* an error of its JSON makes a line an item that says so */

static us_input_rc_t
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


static us_input_rc_t
us_input_json(us_input_t *in)
{
    us_input_rc_t  rc;

    if (!in->read) {
        rc = in->begun ? US_INPUT_ITEM : us_input_keep(in);

        if (rc == US_INPUT_ITEM) {
            rc = us_input_object(in, (us_str_t) { in->kept.len,
                                                  in->kept.data });
        }

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
 * Forms: url=U&url=U&base=B&ref=R.
 *
 * The first pass finds the base, which may come after its URLs, and counts
 * them.  Values are decoded in place.  A body that begins with none of the
 * names is read as text: `curl --data-binary @urls.txt` calls a list of URLs a
 * form.
 */


/*
 * Keeps bytes as long as they may become a name, which has no line end in it.
 * US_INPUT_ITEM: it is known whether this is a form.
 */

static us_input_rc_t
us_input_form_begins(us_input_t *in)
{
    int          may;
    size_t       i, len;
    const char  *name;

    static const char  *const names[] = { "url=", "base=", "ref=", "id=" };

    while (in->p < in->last) {
        may = 0;
        len = in->kept.len;

        for (i = 0; i < (in->ids ? 4 : 3); i++) {
            name = names[i];

            if ((len == 0 || strncmp(name, (char *) in->kept.data, len) == 0)
                && (uint8_t) name[len] == *in->p)
            {
                may = 1;
                in->form = (name[len + 1] == '\0');
            }
        }

        if (!may) {
            return US_INPUT_ITEM;
        }

        if (us_input_append(in, &in->kept, in->p++, 1) != 0) {
            return US_INPUT_ERROR;
        }

        if (in->form) {
            return US_INPUT_ITEM;
        }
    }

    return in->ended ? US_INPUT_ITEM : US_INPUT_MORE;
}


/* the next NAME=VALUE, as it was sent; US_INPUT_MORE: there is none */

static us_input_rc_t
us_input_form_field(us_input_t *in, us_str_t *name, us_str_t *value)
{
    size_t    used;
    us_str_t  rest;

    if (in->field_at >= in->kept.len) {
        return US_INPUT_MORE;
    }

    if (in->work == 0) {
        return US_INPUT_REST;
    }

    rest.data = in->kept.data + in->field_at;
    rest.len = in->kept.len - in->field_at;

    (void) us_str_cut(&rest, '&', value);

    in->field_at += value->len + 1;
    used = value->len + US_INPUT_FORM_FIELD;
    in->work -= used < in->work ? used : in->work;

    (void) us_str_cut(value, '=', name);

    return US_INPUT_ITEM;
}


static us_input_rc_t
us_input_form_base(us_input_t *in, us_str_t value)
{
    if (us_input_has(in, US_INPUT_F_BASE)) {
        return us_input_fail(in, "more than one \"base\"");
    }

    in->have |= 1 << US_INPUT_F_BASE;

    if (value.len > 3 * in->max) {
        in->too_long = 1;
        return US_INPUT_ITEM;
    }

    if (us_input_append(in, &in->base, value.data, value.len) != 0) {
        return US_INPUT_ERROR;
    }

    in->base.len = us_input_unescape(in->base.data, in->base.data,
                                     in->base.len);
    in->too_long = (in->base.len > in->max);

    return US_INPUT_ITEM;
}


/* the ref of a form is a JSON string */

static us_input_rc_t
us_input_form_ref(us_input_t *in, us_str_t value)
{
    us_str_t  s;

    if (us_input_has(in, US_INPUT_F_REF)) {
        return us_input_fail(in, "more than one \"ref\"");
    }

    in->have |= 1 << US_INPUT_F_REF;

    if (value.len > 3 * US_INPUT_REF) {
        return us_input_fail(in, "\"ref\" is too long");
    }

    if (us_input_append(in, &in->text, value.data, value.len) != 0) {
        return US_INPUT_ERROR;
    }

    s.data = in->text.data;
    s.len = us_input_unescape(in->text.data, in->text.data, in->text.len);

    if (us_input_append(in, &in->ref, NULL, us_json_quoted_max(s.len)) != 0) {
        return US_INPUT_ERROR;
    }

    in->ref.len = us_json_quote(in->ref.data, s) - in->ref.data;

    if (in->ref.len > US_INPUT_REF) {
        return us_input_fail(in, "\"ref\" is too long");
    }

    if (!us_utf8_valid(s)) {
        return us_input_fail(in, "\"ref\" is not UTF-8");
    }

    return US_INPUT_ITEM;
}


static us_input_rc_t
us_input_form_read(us_input_t *in)
{
    us_str_t       name, value;
    us_input_rc_t  rc;

    for ( ;; ) {
        rc = us_input_form_field(in, &name, &value);

        if (rc == US_INPUT_ITEM && us_input_is(name, "base")) {
            rc = us_input_form_base(in, value);

        } else if (rc == US_INPUT_ITEM && us_input_is(name, "ref")) {
            rc = us_input_form_ref(in, value);

        } else if (rc == US_INPUT_ITEM && us_input_is_item(in, name)) {
            in->known++;
        }

        if (rc == US_INPUT_MORE) {
            break;
        }

        if (rc != US_INPUT_ITEM) {
            return rc;
        }
    }

    if (us_input_has(in, US_INPUT_F_REF) && in->known > 1) {
        return us_input_fail(in, "\"ref\" is for a single URL in a form");
    }

    if (in->known == 0 && in->have) {
        return us_input_fail(in, "no \"url\"");
    }

    in->single = (in->known == 1);

    return US_INPUT_ITEM;
}


static us_input_rc_t
us_input_form(us_input_t *in)
{
    us_str_t       name, value;
    us_input_rc_t  rc;

    if (!in->read) {

        if (!in->form) {
            rc = us_input_form_begins(in);

            if (rc != US_INPUT_ITEM) {
                return rc;
            }

            if (!in->form) {
                in->format = US_INPUT_TEXT;
                return us_input_text(in);
            }
        }

        if (!in->begun) {
            rc = us_input_keep(in);

            if (rc != US_INPUT_ITEM) {
                return rc;
            }

            /* line ends that an editor or echo appends to the last value */

            while (in->kept.data[in->kept.len - 1] == '\n'
                   || in->kept.data[in->kept.len - 1] == '\r')
            {
                in->kept.len--;
            }

            in->begun = 1;
        }

        rc = us_input_form_read(in);

        if (rc != US_INPUT_ITEM) {
            return rc;
        }

        in->read = 1;
        in->field_at = 0;
    }

    /* the second pass: values are decoded where they lie */

    do {
        rc = us_input_form_field(in, &name, &value);

        if (rc != US_INPUT_ITEM) {
            in->done = (rc == US_INPUT_MORE);
            return rc;
        }

    } while (!us_input_is_item(in, name));

    if (!in->too_long && value.len <= 3 * in->max) {
        value.len = us_input_unescape((uint8_t *) value.data, value.data,
                                      value.len);
    }

    if (in->too_long || value.len > in->max) {
        value.len = 0;
        return us_input_emit(in, US_INPUT_LONG, value);
    }

    return us_input_emit(in, us_input_is(name, "id") ? US_INPUT_NUMBER
                                                     : US_INPUT_URL, value);
}


size_t
us_input_unescape(uint8_t *dst, const uint8_t *src, size_t len)
{
    int             high, low;
    uint8_t        *d;
    const uint8_t  *last;

    d = dst;
    last = src + len;

    while (src < last) {

        if (*src == '%' && last - src >= 3) {
            high = us_hex_value(src[1]);
            low = us_hex_value(src[2]);

            if (high != -1 && low != -1) {
                *d++ = (uint8_t) (high << 4 | low);
                src += 3;
                continue;
            }

            /* not an escape: it stays as it is */
        }

        *d++ = *src == '+' ? ' ' : *src;
        src++;
    }

    return d - dst;
}


void
us_input_init(us_input_t *in, us_input_format_t format, size_t max)
{
    memset(in, 0, sizeof(us_input_t));

    in->format = format;
    in->max = max;
    in->work = SIZE_MAX;

    us_json_init(&in->json, max);
}


void
us_input_free(us_input_t *in)
{
    size_t  i;

    us_json_buf_t  *bufs[] = { &in->kept, &in->text, &in->base, &in->ref };

    us_json_free(&in->json);

    for (i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
        free(bufs[i]->data);
        memset(bufs[i], 0, sizeof(us_json_buf_t));
    }
}


us_input_rc_t
us_input_next(us_input_t *in, us_input_item_t *item)
{
    if (in->error) {
        return US_INPUT_ERROR;
    }

    if (in->done) {
        return US_INPUT_MORE;
    }

    in->item = item;

    return in->format == US_INPUT_TEXT ? us_input_text(in)
           : in->format == US_INPUT_NDJSON ? us_input_ndjson(in)
           : in->format == US_INPUT_FORM ? us_input_form(in)
           : us_input_json(in);
}
