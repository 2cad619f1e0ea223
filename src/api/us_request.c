
/*
 * See us_request.h.
 */


#include "us_request.h"
#include "../cluster/us_map.h"

#include <strings.h>


/* digits of the longest id: none reaches 2^52 */
#define US_ID_DIGITS  16


static const char  us_args_flags[] =
    "brief check clear deleted erase explain keeps new_sites redirect remove "
    "same sites stored summary times write";


int
us_word_number(const char *words, us_str_t word)
{
    int       i;
    us_str_t  rest, one;

    rest = us_str_of(words);

    for (i = 0; rest.len; i++) {
        (void) us_str_cut(&rest, ' ', &one);

        if (us_str_compare(one, word) == 0) {
            return i;
        }
    }

    return -1;
}


us_args_fault_t
us_args_check(us_str_t query, const char *known, us_str_t *name)
{
    int       n, has;
    us_str_t  value;
    uint64_t  seen;

    seen = 0;

    while (query.len) {
        (void) us_str_cut(&query, '&', &value);

        if (value.len == 0) {
            continue;
        }

        has = us_str_cut(&value, '=', name);
        n = us_word_number(known, *name);

        if (n == -1) {
            return US_ARGS_UNKNOWN;
        }

        if (!has) {
            return US_ARGS_NO_VALUE;
        }

        if (seen & ((uint64_t) 1 << n)) {
            return US_ARGS_TWICE;
        }

        seen |= (uint64_t) 1 << n;

        /* a flag that has another value */

        if (value.len == 0
            || (value.len == 1 && (*value.data == '0' || *value.data == '1')))
        {
            continue;
        }

        if (us_word_number(us_args_flags, *name) != -1) {
            name->len += 1 + value.len;
            return US_ARGS_FLAG;
        }
    }

    return US_ARGS_OK;
}


int
us_args_find(us_str_t query, const char *name, us_str_t *value)
{
    size_t    len;
    us_str_t  arg;

    len = strlen(name);

    while (query.len) {
        (void) us_str_cut(&query, '&', &arg);

        if (arg.len > len && arg.data[len] == '='
            && memcmp(arg.data, name, len) == 0)
        {
            *value = (us_str_t) { arg.len - len - 1, arg.data + len + 1 };
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


/* cuts off what comes before this byte, without blanks around it */

static us_str_t
us_media_cut(us_str_t *text, int byte)
{
    us_str_t  part;

    (void) us_str_cut(text, byte, &part);

    while (part.len && (*part.data == ' ' || *part.data == '\t')) {
        part.data++;
        part.len--;
    }

    while (part.len && (part.data[part.len - 1] == ' '
                        || part.data[part.len - 1] == '\t'))
    {
        part.len--;
    }

    return part;
}


/* in any case of letters */

static int
us_request_same(us_str_t a, us_str_t b)
{
    return a.len == b.len
           && strncasecmp((const char *) a.data, (const char *) b.data, a.len)
              == 0;
}


/* a type of bodies, of replies, or of both: -1 is none */

typedef struct {
    const char  *name;
    int          body;                /* us_input_format_t */
    int          reply;               /* us_format_t */
} us_media_t;


static const us_media_t  us_media_types[] = {
    { "application/json", US_INPUT_JSON, US_FORMAT_JSON },
    { "application/x-ndjson", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "application/ndjson", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "application/jsonl", US_INPUT_NDJSON, US_FORMAT_NDJSON },
    { "text/plain", US_INPUT_TEXT, US_FORMAT_TEXT },
    { "text/*", -1, US_FORMAT_TEXT },
    { "application/x-www-form-urlencoded", US_INPUT_FORM, -1 },
    { NULL, -1, -1 }
};


/* the row of a type; the last one: it is none of them */

static const us_media_t *
us_media_find(us_str_t name)
{
    const us_media_t  *m;

    m = us_media_types;

    while (m->name && !us_request_same(name, us_str_of(m->name))) {
        m++;
    }

    return m;
}


int
us_media_body(us_str_t content_type, us_input_format_t *format)
{
    const us_media_t  *m;

    m = us_media_find(us_media_cut(&content_type, ';'));

    if (m->body != -1) {
        *format = m->body;
    }

    return m->body != -1 ? 0 : -1;
}


/* the q among the parameters of a media range, in thousandths */

static unsigned
us_media_quality(us_str_t parameters)
{
    size_t    i;
    unsigned  q, unit;
    us_str_t  p;

    do {
        if (parameters.len == 0) {
            return 1000;
        }

        p = us_media_cut(&parameters, ';');

    } while (p.len < 3 || (*p.data != 'q' && *p.data != 'Q')
             || p.data[1] != '=');

    if (p.data[2] != '0') {
        return p.data[2] == '1' ? 1000 : 0;
    }

    q = 0;
    unit = 100;

    for (i = 4; i < p.len && p.data[i] >= '0' && p.data[i] <= '9' && unit; i++)
    {
        q += (p.data[i] - '0') * unit;
        unit /= 10;
    }

    return q;
}


us_format_t
us_media_accept(us_str_t accept, us_format_t preset)
{
    int          reply;
    unsigned     q, best;
    us_str_t     range, name;
    us_format_t  found;

    best = 0;
    found = preset;

    while (accept.len) {
        range = us_media_cut(&accept, ',');
        name = us_media_cut(&range, ';');
        reply = us_media_find(name)->reply;

        if (us_str_compare(name, us_string("*/*")) == 0
            || (us_request_same(name, us_string("application/*"))
                && preset != US_FORMAT_TEXT))
        {
            reply = preset;
        }

        q = reply == -1 ? 0 : us_media_quality(range);

        if (q > best) {
            best = q;
            found = reply;
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


int
us_origin_matches(us_str_t allowed, us_str_t origin)
{
    return (allowed.len == 1 && allowed.data[0] == '*')
           || us_request_same(allowed, origin);
}


int
us_origin_is_host(us_str_t origin, us_str_t host)
{
    us_str_t  scheme, port;

    if (!us_str_cut(&origin, ':', &scheme) || origin.len <= 2
        || memcmp(origin.data, "//", 2) != 0)
    {
        return 0;
    }

    origin.data += 2;
    origin.len -= 2;

    if (us_request_same(scheme, us_string("http"))) {
        port = us_string(":80");

    } else if (us_request_same(scheme, us_string("https"))) {
        port = us_string(":443");

    } else {
        return 0;
    }

    if (host.len > port.len
        && memcmp(host.data + host.len - port.len, port.data, port.len) == 0)
    {
        host.len -= port.len;
    }

    return us_request_same(origin, host);
}
