
/*
 * The JSON reader and the JSON writer on any bytes:
 *
 *   input   | work: 1 | max: 1 | text
 *
 *   rest     wherever reading rests, its events are those of one go
 *   nested   events stand where they may, and no text is over its limit
 *   written  the events of a text, written down, are a text that gives them,
 *            and so they are with each character escaped
 *   quoted   a string as it is written is read back, in as many bytes as
 *            were foretold; any bytes quoted are JSON
 */


#include "pieces.h"
#include "input/us_json.h"

#include <stdio.h>


/* an event: | event: 1 | cut: 1 | length: 4 | text | */
#define EVENT  6


typedef struct {
    us_json_t   json;
    uint64_t    arrays;               /* a bit for each level */
    unsigned    depth;
    unsigned    cut:1;                /* some text was left out */

    uint8_t    *log;
    size_t      len;
    size_t      size;
} reading_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static reading_t  whole, other;
static uint8_t   *text;
static size_t     text_size;


static void
nested(reading_t *r, us_json_event_t event, us_str_t s, int cut)
{
    switch (event) {

    case US_JSON_OBJECT:
    case US_JSON_ARRAY:
        r->depth++;
        r->arrays = r->arrays << 1 | (event == US_JSON_ARRAY);
        break;

    case US_JSON_OBJECT_END:
    case US_JSON_ARRAY_END:
        if (r->depth == 0
            || (r->arrays & 1) != (event == US_JSON_ARRAY_END))
        {
            broken("nested", s);
        }

        r->depth--;
        r->arrays >>= 1;
        break;

    case US_JSON_KEY:
        if (r->depth == 0 || (r->arrays & 1)) {
            broken("nested: key", s);
        }

        /* fall through */

    case US_JSON_STRING:
        if (!us_utf8_valid(s)) {
            broken("nested: UTF-8", s);
        }

        if (s.len > r->json.max || (cut && s.len)) {
            broken("nested: length", s);
        }

        return;

    case US_JSON_NUM:
        if (cut || s.len == 0 || s.len > US_JSON_NUMBER) {
            broken("nested: number", s);
        }

        return;

    default:
        break;
    }

    if (cut || s.len || r->depth > US_JSON_DEPTH
        || r->depth != r->json.depth)
    {
        broken("nested: depth", s);
    }
}


static void
record(reading_t *r, us_json_event_t event)
{
    int        cut;
    uint8_t   *p;
    uint32_t   len;
    us_str_t   s;

    cut = r->json.cut;
    s = event == US_JSON_KEY || event == US_JSON_STRING || event == US_JSON_NUM
        ? r->json.text : us_string("");

    nested(r, event, s, cut);

    if (r->len + EVENT + s.len > r->size) {
        r->size = 2 * (r->len + EVENT + s.len);
        r->log = realloc(r->log, r->size);
    }

    len = (uint32_t) s.len;
    r->cut |= cut;

    p = r->log + r->len;
    p[0] = (uint8_t) event;
    p[1] = (uint8_t) cut;
    memcpy(p + 2, &len, sizeof(len));

    if (s.len) {
        memcpy(p + EVENT, s.data, s.len);
    }

    r->len += EVENT + s.len;
}


/* work: bytes that are read before a rest */

static int
read_text(reading_t *r, us_str_t in, size_t work, size_t max)
{
    us_json_event_t  event;

    r->len = 0;
    r->depth = 0;
    r->cut = 0;

    us_json_init(&r->json, max);
    us_json_text(&r->json, in);

    do {
        r->json.work = work;
        event = us_json_next(&r->json);

        if (event < US_JSON_END) {
            record(r, event);
        }

    } while (event != US_JSON_END && event != US_JSON_ERROR);

    if ((event == US_JSON_END) != (r->json.error == NULL)) {
        broken("an error has its reason", in);
    }

    us_json_free(&r->json);

    return event == US_JSON_END ? 0 : -1;
}


static void
same(const char *law, us_str_t in)
{
    if (whole.len != other.len
        || (whole.len && memcmp(whole.log, other.log, whole.len) != 0))
    {
        broken(law, in);
    }
}


/* all of s, which is UTF-8, as \uXXXX, and surrogates if it must be */

static uint8_t *
write_escaped(uint8_t *w, us_str_t s)
{
    uint32_t        c;
    const uint8_t  *p;

    *w++ = '"';

    for (p = s.data; p < s.data + s.len; /* void */ ) {
        c = *p++;

        if (c >= 0x80) {
            c &= c >= 0xf0 ? 0x07 : c >= 0xe0 ? 0x0f : 0x1f;

            for ( /* void */ ; p < s.data + s.len && (*p & 0xc0) == 0x80; p++)
            {
                c = c << 6 | (*p & 0x3f);
            }
        }

        if (c >= 0x10000) {
            c -= 0x10000;
            w += sprintf((char *) w, "\\u%04X\\u%04x", 0xd800 | c >> 10,
                         0xdc00 | (c & 0x3ff));

        } else {
            w += sprintf((char *) w, "\\u%04x", c);
        }
    }

    *w++ = '"';

    return w;
}


/*
 * The events of `whole` as JSON, in `text`, strings by `quote`.  Returns the
 * length.
 */

static size_t
write_text(uint8_t *(*quote)(uint8_t *w, us_str_t s))
{
    int              comma;
    uint8_t         *p, *w;
    us_str_t         s;
    uint32_t         len;
    us_json_event_t  event;

    static const char  *words[] = {
        "{", "}", "[", "]", "", "", "", "true", "false", "null"
    };

    w = text;
    comma = 0;

    for (p = whole.log; p < whole.log + whole.len; p += EVENT + len) {
        event = p[0];
        memcpy(&len, p + 2, sizeof(len));
        s.data = p + EVENT;
        s.len = len;

        if (comma && event != US_JSON_OBJECT_END && event != US_JSON_ARRAY_END)
        {
            *w++ = ',';
        }

        comma = 1;

        switch (event) {

        case US_JSON_KEY:
            w = quote(w, s);
            *w++ = ':';
            comma = 0;
            break;

        case US_JSON_STRING:
            w = quote(w, s);
            break;

        case US_JSON_NUM:
            memcpy(w, s.data, s.len);
            w += s.len;
            break;

        default:
            w = (uint8_t *) stpcpy((char *) w, words[event]);
            comma = event != US_JSON_OBJECT && event != US_JSON_ARRAY;
        }
    }

    return w - text;
}


static void
quoted(us_str_t in, size_t work)
{
    uint8_t   *bytes;
    uint32_t   len;
    us_str_t   s;

    bytes = malloc(us_json_quoted_max(in.len));
    s.data = bytes;
    s.len = us_json_quote_bytes(bytes, in) - bytes;

    if (s.len > us_json_quoted_max(in.len)
        || read_text(&other, s, work, 3 * in.len + 1) != 0
        || other.log[0] != US_JSON_STRING || other.cut)
    {
        broken("quoted: any bytes", in);
    }

    if (us_utf8_valid(in)) {
        memcpy(&len, other.log + 2, sizeof(len));

        if (len != in.len
            || memcmp(other.log + EVENT, in.data, len) != 0)
        {
            broken("quoted", in);
        }
    }

    free(bytes);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                  rc;
    size_t               max, work;
    us_str_t             in;
    const char          *error;
    static const size_t  limits[] = { 8192, 64, 8, 1 };

    if (size < 2) {
        return -1;
    }

    work = 1 + data[0] % 64;
    max = limits[data[1] & 3];
    in.data = data + 2;
    in.len = size - 2;

    rc = read_text(&whole, in, SIZE_MAX, max);
    error = whole.json.error;

    if (read_text(&other, in, work, max) != rc || other.json.error != error) {
        broken("rest: verdict", in);
    }

    same("rest", in);

    if (rc == 0 && !whole.cut) {

        /* each event has a comma or colon and two quotes at most, and a 0 */

        if (text_size < 6 * whole.len + 1) {
            text_size = 6 * whole.len + 1;
            text = realloc(text, text_size);
        }

        in.data = text;
        in.len = write_text(us_json_quote);

        if (read_text(&other, in, work, max) != 0) {
            broken("written: verdict", in);
        }

        same("written", in);

        in.len = write_text(write_escaped);

        if (read_text(&other, in, work, max) != 0) {
            broken("written: escaped", in);
        }

        same("written: escaped", in);
    }

    in.data = data + 2;
    in.len = size - 2;

    quoted(in, work);

    return 0;
}
