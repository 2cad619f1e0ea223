
/*
 * The basic URL parser: its door, and how a URL begins.  See us_whatwg.h, and
 * us_whatwg_private.h for its states and what they keep.
 *
 *   in --> clean --+-- scheme: --> us_parse_scheme ------.
 *                  `-- none -----> us_parse_no_scheme ---+--> relative, or
 *                                   (with a base only)        what follows
 */


#include "us_whatwg_private.h"


static size_t us_parse_clean(us_whatwg_ws_t *ws, us_str_t *in);
static size_t us_parse_scheme_len(const uint8_t *p, const uint8_t *end);
static us_verdict_t us_parse_scheme(us_parsing_t *s, size_t len);
static us_verdict_t us_parse_no_scheme(us_parsing_t *s);
static us_verdict_t us_parse_relative(us_parsing_t *s);


/* the crawler's steps know only what a path and a query of http are */

static inline void
us_set_scheme(us_parsing_t *s, us_scheme_t scheme)
{
    s->scheme = scheme;

    if (scheme != US_SCHEME_HTTP && scheme != US_SCHEME_HTTPS) {
        s->steps = 0;
    }
}


us_verdict_t
us_whatwg_parse(us_whatwg_ws_t *ws, us_str_t in, const us_url_t *base,
    unsigned steps, uint8_t *out, us_url_t *url)
{
    size_t        n;
    us_verdict_t  rc;
    us_parsing_t  s;

    if (us_parse_clean(ws, &in) > US_INPUT_MAX) {
        return US_URL_LENGTH;
    }

    s.p = in.data;
    s.end = in.data + in.len;
    s.start = out;
    s.out = out;
    s.url = url;
    s.base = base;
    s.ws = ws;
    s.scheme = US_SCHEME_OTHER;
    s.steps = steps;

    url->port = US_URL_OMITTED;
    url->search_start = US_URL_OMITTED;
    url->hash_start = US_URL_OMITTED;

    n = us_parse_scheme_len(s.p, s.end);

    rc = n ? us_parse_scheme(&s, n) : us_parse_no_scheme(&s);

    if (rc == US_URL_OK && s.scheme == US_SCHEME_OTHER) {
        us_path_guard(&s);
    }

    url->href.data = out;
    url->href.len = s.out - out;

    return rc;
}


static int
us_url_is_opaque(const us_url_t *url)
{
    return !us_url_has_authority(url)
           && (url->pathname_start == url->href.len
               || url->href.data[url->pathname_start] != '/');
}


/* eight bytes at once; some byte is below 0x20 */

static inline int
us_has_control(const uint8_t *p, const uint8_t *end)
{
    uint64_t                v, found;
    static const uint64_t   low = 0x2020202020202020ull;
    static const uint64_t   high = 0x8080808080808080ull;

    for (found = 0; end - p >= 8; p += 8) {
        memcpy(&v, p, 8);
        found |= (v - low) & ~v & high;
    }

    for ( /* void */ ; p < end; p++) {
        found |= *p < 0x20;
    }

    return found != 0;
}


/*
 * Takes C0 controls and spaces from both ends, and tab, CR and LF from
 * anywhere.  Returns the new length.
 */

static size_t
us_parse_clean(us_whatwg_ws_t *ws, us_str_t *in)
{
    uint8_t        *w;
    const uint8_t  *p, *end;

    p = in->data;
    end = p + in->len;

    while (p < end && *p <= ' ') {
        p++;
    }

    while (p < end && end[-1] <= ' ') {
        end--;
    }

    in->data = p;
    in->len = end - p;

    if (in->len > US_INPUT_MAX) {
        return in->len;
    }

    if (!us_has_control(p, end)) {
        return in->len;
    }

    w = ws->clean;

    for (p = in->data; p < end; p++) {
        if (*p != '\t' && *p != '\n' && *p != '\r') {
            *w++ = *p;
        }
    }

    in->data = ws->clean;
    in->len = w - ws->clean;

    return in->len;
}


/* what stands before the ':', or 0 if there is no scheme */

static size_t
us_parse_scheme_len(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *c;

    if (p == end || (uint8_t) ((*p | 0x20) - 'a') >= 26) {
        return 0;
    }

    for (c = p + 1; c < end && us_is(*c, US_CH_SCHEME); c++) { /* void */ }

    return c < end && *c == ':' ? (size_t) (c - p) : 0;
}


static us_verdict_t
us_parse_scheme(us_parsing_t *s, size_t len)
{
    const uint8_t  *colon;

    for (colon = s->p + len; s->p < colon; s->p++) {
        *s->out++ = (uint8_t) (*s->p - 'A') < 26 ? *s->p | 0x20 : *s->p;
    }

    us_set_scheme(s, us_scheme_find(s->start, len));

    *s->out++ = ':';
    s->p++;

    s->url->protocol_end = s->out - s->start;

    if (s->scheme == US_SCHEME_FILE) {
        return us_parse_file(s);
    }

    if (us_special(s)) {

        if (s->base && us_url_scheme(s->base) == s->scheme
            && !(s->end - s->p > 1 && s->p[0] == '/' && s->p[1] == '/'))
        {
            return us_parse_relative(s);
        }

        while (us_slash(s, s->p)) {
            s->p++;
        }

        return us_parse_authority(s);
    }

    if (s->end - s->p > 1 && s->p[0] == '/' && s->p[1] == '/') {
        s->p += 2;
        return us_parse_authority(s);
    }

    s->url->username_end = s->url->protocol_end;
    s->url->host_start = s->url->protocol_end;
    s->url->host_end = s->url->protocol_end;
    s->url->pathname_start = s->url->protocol_end;

    return us_slash(s, s->p) ? us_parse_path_start(s) : us_parse_opaque(s);
}


static us_verdict_t
us_parse_no_scheme(us_parsing_t *s)
{
    if (s->base == NULL) {
        return US_URL_NO_BASE;
    }

    if (us_url_is_opaque(s->base)) {

        if (s->p == s->end || *s->p != '#') {
            return US_URL_NO_BASE;
        }

        us_copy_base(s, s->base->hash_start);

        return us_parse_fragment(s);
    }

    us_set_scheme(s, us_url_scheme(s->base));

    us_copy_base(s, s->base->protocol_end);

    return s->scheme == US_SCHEME_FILE ? us_parse_file(s)
                                       : us_parse_relative(s);
}


/* relative state and relative slash state; the scheme is written */

static us_verdict_t
us_parse_relative(us_parsing_t *s)
{
    us_str_t         path;
    const us_url_t  *b;

    b = s->base;
    path = us_url_pathname(b);

    if (us_slash(s, s->p)) {

        if (us_slash(s, s->p + 1)) {
            s->p += 2;

            while (us_special(s) && us_slash(s, s->p)) {
                s->p++;
            }

            return us_parse_authority(s);
        }

        us_copy_base(s, b->pathname_start);

        return us_parse_path_start(s);
    }

    if (s->p == s->end || *s->p == '#') {
        us_copy_base(s, b->hash_start);

        return us_parse_fragment(s);
    }

    us_copy_base(s, b->pathname_start + path.len);

    if (*s->p == '?') {
        return us_parse_query(s);
    }

    us_path_shorten(s);

    return us_parse_path(s);
}
