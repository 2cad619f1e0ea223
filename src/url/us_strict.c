
/*
 * RFC 3986.  See us_strict.h.
 *
 *   in --> split (appendix B) --> check (appendix A) --.
 *   base ------------------------------------------> resolve (5.2.2)
 *                                                      |
 *          scheme ":" "//" authority path "?" query "#" fragment
 *            |            |           |      `-------`-- triplets (6.2.2)
 *            |            |           `-- triplets, dot segments (5.2.4)
 *            |            `-- lower case, triplets, no default port
 *            `-- lower case
 *
 * An empty path stays empty ("//g" is "http://g" in section 5.4), userinfo
 * and fragment are kept, a reference with a scheme is never relative.
 */


#include "us_strict.h"
#include "us_percent.h"
#include "us_scheme.h"


typedef struct {
    us_str_t  scheme;                 /* data NULL: undefined, everywhere */
    us_str_t  authority;
    us_str_t  path;                   /* never NULL */
    us_str_t  query;
    us_str_t  fragment;
} us_reference_t;


static us_verdict_t us_strict_split(us_str_t in, us_reference_t *r);
static us_verdict_t us_strict_check(us_str_t s, const char *more);
static void us_strict_resolve(us_reference_t *r, const us_url_t *base,
    us_str_t *dir);
static void us_strict_base(const us_url_t *base, us_reference_t *b);
static us_verdict_t us_strict_recompose(us_reference_t *r, us_str_t dir,
    uint8_t *out, us_url_t *url);
static uint8_t *us_strict_scheme(uint8_t *out, us_str_t s);
static uint8_t *us_strict_write(uint8_t *out, us_str_t s);
static us_verdict_t us_strict_authority(us_str_t s, uint8_t *start,
    uint8_t **out, us_url_t *url);
static us_verdict_t us_strict_host(const uint8_t *p, const uint8_t *end,
    uint8_t **out);
static us_verdict_t us_strict_port(const uint8_t *p, const uint8_t *end,
    us_scheme_t scheme, uint8_t **out, us_url_t *url);
static uint8_t *us_strict_remove_dots(uint8_t *path, uint8_t *end);


us_verdict_t
us_strict_parse(us_str_t in, const us_url_t *base, uint8_t *out, us_url_t *url)
{
    us_str_t        dir;
    us_verdict_t    rc;
    us_reference_t  r;

    if (in.len > US_INPUT_MAX) {
        return US_URL_LENGTH;
    }

    if (in.len == 0) {
        in = us_string("");
    }

    rc = us_strict_split(in, &r);

    if (rc != US_URL_OK) {
        return rc;
    }

    dir.len = 0;
    dir.data = NULL;

    if (r.scheme.data == NULL) {

        if (base == NULL) {
            return US_URL_NO_BASE;
        }

        us_strict_resolve(&r, base, &dir);
    }

    return us_strict_recompose(&r, dir, out, url);
}


/* 5.2.2 but for the dot segments; *dir is what 5.2.3 puts before the path */

static void
us_strict_resolve(us_reference_t *r, const us_url_t *base, us_str_t *dir)
{
    const uint8_t   *last;
    us_reference_t   b;

    us_strict_base(base, &b);

    r->scheme = b.scheme;

    if (r->authority.data) {
        return;
    }

    r->authority = b.authority;

    if (r->path.len == 0) {
        r->path = b.path;

        if (r->query.data == NULL) {
            r->query = b.query;
        }

        return;
    }

    if (r->path.data[0] == '/') {
        return;
    }

    /* merge: all of the base's path up to its last slash */

    last = memrchr(b.path.data, '/', b.path.len);

    dir->data = b.path.data;
    dir->len = last ? (size_t) (last + 1 - b.path.data) : 0;

    if (b.path.len == 0 && b.authority.data) {
        *dir = us_string("/");
    }
}


/* 5.3, each part in its normal form */

static us_verdict_t
us_strict_recompose(us_reference_t *r, us_str_t dir, uint8_t *out,
    us_url_t *url)
{
    uint8_t       *start, *path;
    us_verdict_t   rc;

    start = out;

    out = us_strict_scheme(out, r->scheme);

    url->protocol_end = out - start;
    url->username_end = url->protocol_end;
    url->host_start = url->protocol_end;
    url->host_end = url->protocol_end;
    url->port = US_URL_OMITTED;
    url->search_start = US_URL_OMITTED;
    url->hash_start = US_URL_OMITTED;

    if (r->authority.data) {
        rc = us_strict_authority(r->authority, start, &out, url);

        if (rc != US_URL_OK) {
            return rc;
        }
    }

    path = out;
    out = us_strict_write(out, dir);
    out = us_strict_write(out, r->path);
    out = us_strict_remove_dots(path, out);

    /* a path that begins with "//" would be read as an authority */

    if (r->authority.data == NULL && out - path > 1 && path[0] == '/'
        && path[1] == '/')
    {
        memmove(path + 2, path, out - path);
        path[1] = '.';
        path += 2;
        out += 2;
    }

    url->pathname_start = path - start;

    if (r->query.data) {
        url->search_start = out - start;
        *out++ = '?';
        out = us_strict_write(out, r->query);
    }

    if (r->fragment.data) {
        url->hash_start = out - start;
        *out++ = '#';
        out = us_strict_write(out, r->fragment);
    }

    url->href.data = start;
    url->href.len = out - start;

    return US_URL_OK;
}


static uint8_t *
us_strict_scheme(uint8_t *out, us_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        *out++ = s.data[i] >= 'A' ? s.data[i] | 0x20 : s.data[i];
    }

    *out++ = ':';

    return out;
}


/* appendix B, and the grammar of all parts but the authority */

static us_verdict_t
us_strict_split(us_str_t in, us_reference_t *r)
{
    us_verdict_t    rc;
    const uint8_t  *p, *end, *c;

    memset(r, 0, sizeof(us_reference_t));

    p = in.data;
    end = p + in.len;

    for (c = p; c < end && us_is(*c, US_CH_SCHEME); c++) { /* void */ }

    if (c > p && c < end && *c == ':'
        && (uint8_t) ((*p | 0x20) - 'a') < 26)
    {
        r->scheme.data = p;
        r->scheme.len = c - p;
        p = c + 1;
    }

    c = memchr(p, '#', end - p);

    if (c) {
        r->fragment.data = c + 1;
        r->fragment.len = end - c - 1;
        end = c;
    }

    c = memchr(p, '?', end - p);

    if (c) {
        r->query.data = c + 1;
        r->query.len = end - c - 1;
        end = c;
    }

    if (end - p > 1 && p[0] == '/' && p[1] == '/') {
        p += 2;
        c = memchr(p, '/', end - p);

        r->authority.data = p;
        r->authority.len = (c ? c : end) - p;
        p += r->authority.len;
    }

    r->path.data = p;
    r->path.len = end - p;

    /* path-noscheme: no colon in the first segment */

    if (r->scheme.data == NULL && r->authority.data == NULL) {

        for (c = p; c < end && *c != '/'; c++) {
            if (*c == ':') {
                return US_URL_SCHEME;
            }
        }
    }

    rc = us_strict_check(r->path, ":@/");

    if (rc == US_URL_OK) {
        rc = us_strict_check(r->query, ":@/?");
    }

    if (rc == US_URL_OK) {
        rc = us_strict_check(r->fragment, ":@/?");
    }

    return rc;
}


/* unreserved, sub-delims, triplets, and the bytes in more */

static us_verdict_t
us_strict_check(us_str_t s, const char *more)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < s.len; i++) {
        c = s.data[i];

        if (us_is(c, US_CH_UNRESERVED)) {
            continue;
        }

        if (c >= 0x80) {
            return US_URL_UTF8;
        }

        if (c == '%') {
            if (s.len - i < 3 || us_hex[s.data[i + 1]] < 0
                || us_hex[s.data[i + 2]] < 0)
            {
                return US_URL_CONTROL;
            }

            i += 2;

        } else if (c == '\0'
                   || (!strchr("!$&'()*+,;=", c) && !strchr(more, c)))
        {
            return US_URL_CONTROL;
        }
    }

    return US_URL_OK;
}


static void
us_strict_base(const us_url_t *base, us_reference_t *b)
{
    us_str_t  search;

    memset(b, 0, sizeof(us_reference_t));

    b->scheme.data = base->href.data;
    b->scheme.len = base->protocol_end - 1;

    if (us_url_has_authority(base)) {
        b->authority.data = base->href.data + base->protocol_end + 2;
        b->authority.len = base->pathname_start - base->protocol_end - 2;
    }

    b->path = us_url_pathname(base);
    search = us_url_search(base);

    if (search.len) {
        b->query.data = search.data + 1;
        b->query.len = search.len - 1;
    }
}


/* 6.2.2.1 and 6.2.2.2; s has been checked */

static uint8_t *
us_strict_write(uint8_t *out, us_str_t s)
{
    const uint8_t  *p, *end;

    if (s.len == 0) {
        return out;
    }

    p = s.data;
    end = p + s.len;

    while (p < end) {
        if (*p == '%') {
            p += us_percent_triplet(&out, p, end);

        } else {
            *out++ = *p++;
        }
    }

    return out;
}


static us_verdict_t
us_strict_authority(us_str_t s, uint8_t *start, uint8_t **out, us_url_t *url)
{
    us_str_t        userinfo;
    us_scheme_t     scheme;
    us_verdict_t    rc;
    const uint8_t  *p, *end, *at, *colon;

    p = s.data;
    end = p + s.len;
    scheme = us_scheme_find(start, url->protocol_end - 1);

    *(*out)++ = '/';
    *(*out)++ = '/';

    url->username_end = *out - start;

    at = memchr(p, '@', end - p);

    if (at) {
        userinfo.data = p;
        userinfo.len = at - p;

        rc = us_strict_check(userinfo, ":");

        if (rc != US_URL_OK) {
            return rc;
        }

        colon = memchr(p, ':', at - p);

        if (colon == NULL) {
            colon = at;
        }

        userinfo.len = colon - p;
        *out = us_strict_write(*out, userinfo);
        url->username_end = *out - start;

        userinfo.data = colon;
        userinfo.len = at - colon;
        *out = us_strict_write(*out, userinfo);

        p = at + 1;
    }

    url->host_start = *out - start;

    if (at) {
        *(*out)++ = '@';
    }

    /* the port's colon is the last one, but not one in brackets */

    colon = memrchr(p, ':', end - p);

    if (colon == NULL || memchr(colon, ']', end - colon)) {
        colon = end;
    }

    if (p == colon
        && (scheme == US_SCHEME_HTTP || scheme == US_SCHEME_HTTPS))
    {
        return US_URL_HOST;
    }

    rc = us_strict_host(p, colon, out);
    url->host_end = *out - start;

    if (rc == US_URL_OK && colon < end) {
        rc = us_strict_port(colon + 1, end, scheme, out, url);
    }

    return rc;
}


static us_verdict_t
us_strict_host(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    uint8_t       *w;
    us_str_t       s;
    us_verdict_t   rc;

    if (p < end && *p == '[') {
        return us_host_ipv6(p, end, out);
    }

    s.data = p;
    s.len = end - p;

    rc = us_strict_check(s, "");

    if (rc != US_URL_OK) {
        return rc == US_URL_CONTROL ? US_URL_HOST : rc;
    }

    w = *out;
    *out = us_strict_write(w, s);

    /* letters of triplets are written in upper case */

    for ( /* void */ ; w < *out; w++) {

        if (*w == '%') {
            w += 2;

        } else if ((uint8_t) (*w - 'A') < 26) {
            *w |= 0x20;
        }
    }

    return US_URL_OK;
}


static us_verdict_t
us_strict_port(const uint8_t *p, const uint8_t *end, us_scheme_t scheme,
    uint8_t **out, us_url_t *url)
{
    uint32_t  port;

    if (p == end) {
        return US_URL_OK;
    }

    while (end - p > 1 && *p == '0') {
        p++;
    }

    for (port = 0; p < end; p++) {

        if ((uint8_t) (*p - '0') > 9) {
            return US_URL_PORT;
        }

        port = port * 10 + (*p - '0');

        if (port > 65535) {
            return US_URL_PORT;
        }
    }

    if (us_scheme_port(scheme) != port) {
        *out = us_port_write(*out, port);
        url->port = port;
    }

    return US_URL_OK;
}


/* 5.2.4, in place: what is written is never longer than what was read */

static uint8_t *
us_strict_remove_dots(uint8_t *path, uint8_t *end)
{
    size_t    n;
    uint8_t  *in, *out, *next;

    in = path;
    out = path;

    /* A and D: dots at the very beginning */

    while (in < end && *in == '.') {
        n = end - in > 1 && in[1] == '.' ? 2 : 1;

        if (in + n == end) {
            return path;
        }

        if (in[n] != '/') {
            break;
        }

        in += n + 1;
    }

    while (in < end) {

        next = memchr(in + 1, '/', end - in - 1);

        if (next == NULL) {
            next = end;
        }

        n = next - in;

        if (*in == '/' && n <= 3 && n > 1 && in[1] == '.'
            && (n == 2 || in[2] == '.'))
        {
            /* B and C */

            if (n == 3) {
                while (out > path && *--out != '/') { /* void */ }
            }

            if (next == end) {
                *out++ = '/';
            }

        } else {
            memmove(out, in, n);
            out += n;
        }

        in = next;
    }

    return out;
}
