
/*
 * See us_media.h.
 */


#include "us_media.h"

#include <strings.h>


/* TYPE/SUBTYPE without blanks around it and parameters after it */

static us_str_t
us_media_name(us_str_t s)
{
    const uint8_t  *end;

    while (s.len && (*s.data == ' ' || *s.data == '\t')) {
        s.data++;
        s.len--;
    }

    end = s.len ? memchr(s.data, ';', s.len) : NULL;

    if (end) {
        s.len = end - s.data;
    }

    while (s.len && (s.data[s.len - 1] == ' ' || s.data[s.len - 1] == '\t')) {
        s.len--;
    }

    return s;
}


static int
us_media_is(us_str_t name, const char *word)
{
    return name.len == strlen(word)
           && strncasecmp((const char *) name.data, word, name.len) == 0;
}


int
us_media_body(us_str_t content_type, us_input_format_t *format)
{
    size_t    i;
    us_str_t  name;

    static const struct {
        const char         *name;
        us_input_format_t   format;
    } types[] = {
        { "text/plain", US_INPUT_TEXT },
        { "application/json", US_INPUT_JSON },
        { "application/x-ndjson", US_INPUT_NDJSON },
        { "application/ndjson", US_INPUT_NDJSON },
        { "application/jsonl", US_INPUT_NDJSON },
        { "application/x-www-form-urlencoded", US_INPUT_FORM }
    };

    name = us_media_name(content_type);

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (us_media_is(name, types[i].name)) {
            *format = types[i].format;
            return 0;
        }
    }

    return -1;
}


us_format_t
us_media_reply(us_input_format_t body)
{
    switch (body) {

    case US_INPUT_TEXT:
        return US_FORMAT_TEXT;

    case US_INPUT_NDJSON:
        return US_FORMAT_NDJSON;

    default:
        return US_FORMAT_JSON;
    }
}


/* 1: *format is one of the range */

static int
us_media_range(us_str_t range, us_format_t preset, us_format_t *format)
{
    size_t    i;
    us_str_t  name;

    static const struct {
        const char   *name;
        us_format_t   format;
    } types[] = {
        { "application/json", US_FORMAT_JSON },
        { "application/x-ndjson", US_FORMAT_NDJSON },
        { "application/ndjson", US_FORMAT_NDJSON },
        { "application/jsonl", US_FORMAT_NDJSON },
        { "text/plain", US_FORMAT_TEXT },
        { "text/*", US_FORMAT_TEXT }
    };

    name = us_media_name(range);

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (us_media_is(name, types[i].name)) {
            *format = types[i].format;
            return 1;
        }
    }

    *format = preset;

    return us_media_is(name, "*/*")
           || (us_media_is(name, "application/*")
               && preset != US_FORMAT_TEXT);
}


/* the q of a media range, in thousandths */

static unsigned
us_media_quality(us_str_t range)
{
    unsigned        q, unit;
    const uint8_t  *p, *last;

    p = range.data;
    last = p + range.len;

    for ( ;; ) {
        p = p < last ? memchr(p, ';', last - p) : NULL;

        if (p == NULL) {
            return 1000;
        }

        p++;

        while (p < last && (*p == ' ' || *p == '\t')) {
            p++;
        }

        if (last - p > 2 && (p[0] == 'q' || p[0] == 'Q') && p[1] == '=') {
            break;
        }
    }

    p += 2;

    if (*p == '1') {
        return 1000;
    }

    if (*p != '0') {
        return 0;
    }

    q = 0;
    unit = 100;

    for (p += 2; p < last && *p >= '0' && *p <= '9' && unit; p++) {
        q += (*p - '0') * unit;
        unit /= 10;
    }

    return q;
}


us_format_t
us_media_accept(us_str_t accept, us_format_t preset)
{
    unsigned        q, best;
    us_str_t        range;
    us_format_t     format, found;
    const uint8_t  *p, *last, *comma;

    last = accept.data + accept.len;
    best = 0;
    found = preset;

    for (p = accept.data; p < last; p = comma + 1) {
        comma = memchr(p, ',', last - p);
        if (comma == NULL) {
            comma = last;
        }

        range.data = p;
        range.len = comma - p;

        if (us_media_range(range, preset, &format)) {
            q = us_media_quality(range);

            if (q > best) {
                best = q;
                found = format;
            }
        }
    }

    return found;
}


us_str_t
us_media_type(us_format_t format)
{
    switch (format) {

    case US_FORMAT_JSON:
        return us_string("application/json");

    case US_FORMAT_NDJSON:
        return us_string("application/x-ndjson");

    default:
        return us_string("text/plain");
    }
}
