
/*
 * See us_request.h.
 */


#include "us_request.h"
#include "../cluster/us_map.h"

#include <strings.h>


/* digits of the longest id: none reaches 2^52 */
#define US_ID_DIGITS  16


static const us_str_t  us_args_flags[] = {
    us_string("brief"), us_string("check"), us_string("clear"),
    us_string("deleted"), us_string("erase"), us_string("explain"),
    us_string("keeps"), us_string("new_sites"), us_string("redirect"),
    us_string("remove"), us_string("same"), us_string("sites"),
    us_string("stored"), us_string("summary"), us_string("times"),
    us_string("write")
};


/* its number among the words; -1: it is none of them */

static int
us_args_known(const char *known, us_str_t name)
{
    int     i;
    size_t  n;

    for (i = 0; *known; i++) {
        n = strcspn(known, " ");

        if (n == name.len && memcmp(known, name.data, n) == 0) {
            return i;
        }

        known += n;

        if (*known == ' ') {
            known++;
        }
    }

    return -1;
}


us_args_fault_t
us_args_check(us_str_t query, const char *known, us_str_t *name)
{
    int             n;
    size_t          i;
    uint64_t        seen;
    const uint8_t  *p, *next, *last, *eq;

    seen = 0;
    last = query.data + query.len;

    for (p = query.data; p < last; p = next + 1) {

        next = memchr(p, '&', last - p);
        if (next == NULL) {
            next = last;
        }

        if (next == p) {
            continue;
        }

        eq = memchr(p, '=', next - p);

        name->data = p;
        name->len = (eq ? eq : next) - p;

        n = us_args_known(known, *name);

        if (n == -1) {
            return US_ARGS_UNKNOWN;
        }

        if (eq == NULL) {
            return US_ARGS_NO_VALUE;
        }

        if (seen & ((uint64_t) 1 << n)) {
            return US_ARGS_TWICE;
        }

        seen |= (uint64_t) 1 << n;

        /* a flag that has another value */

        if (next - eq == 1
            || (next - eq == 2 && (eq[1] == '0' || eq[1] == '1')))
        {
            continue;
        }

        for (i = 0; i < sizeof(us_args_flags) / sizeof(us_args_flags[0]); i++) {
            if (us_str_compare(us_args_flags[i], *name) == 0) {
                name->len = next - p;
                return US_ARGS_FLAG;
            }
        }
    }

    return US_ARGS_OK;
}


int
us_args_find(us_str_t query, const char *name, us_str_t *value)
{
    size_t          len;
    const uint8_t  *p, *next, *last;

    if (query.len == 0) {
        return 0;
    }

    len = strlen(name);
    last = query.data + query.len;

    for (p = query.data; p < last; p = next + 1) {

        next = memchr(p, '&', last - p);
        if (next == NULL) {
            next = last;
        }

        if ((size_t) (next - p) > len && p[len] == '='
            && memcmp(p, name, len) == 0)
        {
            value->data = p + len + 1;
            value->len = next - value->data;
            return 1;
        }
    }

    return 0;
}


int
us_args_flag(us_str_t query, const char *name)
{
    us_str_t  value;

    return us_args_find(query, name, &value) && value.len == 1
           && *value.data == '1';
}


int
us_id_digits(us_str_t text)
{
    size_t  i;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return 0;
        }
    }

    return text.len != 0;
}


us_id_rc_t
us_id_parse(us_str_t text, uint64_t *id)
{
    size_t    i;
    uint64_t  n;

    if (text.len == 0 || (text.data[0] == '0' && text.len > 1)) {
        return US_ID_BAD;
    }

    n = 0;

    for (i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return US_ID_BAD;
        }

        if (i < US_ID_DIGITS) {
            n = n * 10 + (text.data[i] - '0');
        }
    }

    *id = text.len > US_ID_DIGITS ? UINT64_MAX : n;

    return text.len > US_ID_DIGITS ? US_ID_NEVER : US_ID_OK;
}


us_id_rc_t
us_id_parse_shard(us_str_t text, uint64_t first, uint64_t *id)
{
    us_id_rc_t  rc;

    rc = us_id_parse(text, id);

    if (rc == US_ID_OK && (*id ^ first) > US_LOCAL_MAX) {
        return US_ID_MOVED;
    }

    *id &= US_LOCAL_MAX;

    return rc;
}


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


/* a type of bodies, of replies, or of both: -1 is none */

static const struct {
    const char  *name;
    int          body;                /* us_input_format_t */
    int          reply;               /* us_format_t */
} us_media_types[] = {
    { "application/json", US_INPUT_JSON, US_FORMAT_JSON },
    { "application/x-ndjson", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "application/ndjson", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "application/jsonl", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "text/plain", US_INPUT_TEXT, US_FORMAT_TEXT },
    { "text/*", -1, US_FORMAT_TEXT },
    { "application/x-www-form-urlencoded", US_INPUT_FORM, -1 }
};

#define US_MEDIA_TYPES  (sizeof(us_media_types) / sizeof(us_media_types[0]))


int
us_media_body(us_str_t content_type, us_input_format_t *format)
{
    size_t    i;
    us_str_t  name;

    name = us_media_name(content_type);

    for (i = 0; i < US_MEDIA_TYPES; i++) {
        if (us_media_types[i].body != -1
            && us_media_is(name, us_media_types[i].name))
        {
            *format = us_media_types[i].body;
            return 0;
        }
    }

    return -1;
}


/* 1: *format is one of the range */

static int
us_media_range(us_str_t range, us_format_t preset, us_format_t *format)
{
    size_t    i;
    us_str_t  name;

    name = us_media_name(range);

    for (i = 0; i < US_MEDIA_TYPES; i++) {
        if (us_media_types[i].reply != -1
            && us_media_is(name, us_media_types[i].name))
        {
            *format = us_media_types[i].reply;
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
    return format == US_FORMAT_JSON ? us_string("application/json")
           : format == US_FORMAT_NDJSON ? us_string("application/x-ndjson")
           : us_string("text/plain");
}


int
us_origin_valid(us_str_t origin)
{
    size_t          n;
    const uint8_t  *p;

    if (origin.len == 1 && origin.data[0] == '*') {
        return 1;
    }

    p = memmem(origin.data, origin.len, "://", 3);

    if (p == NULL || p == origin.data) {
        return 0;
    }

    p += 3;
    n = origin.data + origin.len - p;

    return n && memchr(p, '/', n) == NULL;
}


static int
us_origin_same(us_str_t a, us_str_t b)
{
    return a.len == b.len
           && strncasecmp((const char *) a.data, (const char *) b.data, a.len)
              == 0;
}


int
us_origin_matches(us_str_t allowed, us_str_t origin)
{
    return (allowed.len == 1 && allowed.data[0] == '*')
           || us_origin_same(allowed, origin);
}


int
us_origin_is_host(us_str_t origin, us_str_t host)
{
    size_t       n, len;
    const char  *port;

    if (origin.len > 7
        && strncasecmp((const char *) origin.data, "http://", 7) == 0)
    {
        n = 7;
        port = ":80";

    } else if (origin.len > 8
               && strncasecmp((const char *) origin.data, "https://", 8) == 0)
    {
        n = 8;
        port = ":443";

    } else {
        return 0;
    }

    len = strlen(port);

    if (host.len > len && memcmp(host.data + host.len - len, port, len) == 0) {
        host.len -= len;
    }

    return us_origin_same((us_str_t) { origin.len - n, origin.data + n },
                          host);
}
