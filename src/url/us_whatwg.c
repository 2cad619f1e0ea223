
/*
 * The basic URL parser.  See us_whatwg.h.
 *
 * States and their names are those of the WHATWG URL standard, section 4.4,
 * written as functions that look ahead instead of a machine that steps back:
 *
 *   in --> clean --> us_parse_scheme --+-- scheme: -----------------.
 *                                      `-- none: us_parse_no_scheme -+-->
 *                                           (with a base only)
 *
 *   scheme --+-- file -------> us_parse_file ----+
 *            |-- special ----> us_parse_relative |--> us_parse_path
 *            |              \> us_parse_authority|        |
 *            |-- other: //  -> us_parse_authority+    us_parse_query
 *            |          /   -> us_parse_path              |
 *            `--        else-> us_parse_opaque --->  us_parse_fragment
 *
 * Each goes on with the next, so that what it returns is the verdict on the
 * whole; in this file each stands after the next.  s->p runs over the input,
 * s->out over the href.  Room is checked once, at the door: every function
 * writes at most three bytes for each byte it reads, a host at most US_HOST_MAX
 * more, and a part of the base is copied once.
 */


#include "us_whatwg.h"
#include "us_percent.h"
#include "us_idna.h"
#include "../us_text.h"
#include "../us_utf8.h"

#include <arpa/inet.h>


/* --- hosts ---------------------------------------------------------------- */

/*
 *   [p, end) -- '[' --------------------------------> IPv6
 *            -- scheme is not special --------------> opaque host
 *            -- percent-decode -- ASCII: lower-case -+-> forbidden? -> IPv4?
 *                              `- else us_idna.c ----'
 *
 * An ASCII host is only lower-cased; a bad "xn--" label stays as it is (the
 * standard's rule since June 2026).
 */

/* decimal, 0 octal, 0x hexadecimal; values above 2^32 are all the same to us */

static int
us_ipv4_number(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    int       digit;
    unsigned  base;

    if (p == end) {
        return 0;
    }

    base = 10;

    if (end - p > 1 && *p == '0') {
        if ((p[1] | 0x20) == 'x') {
            base = 16;
            p += 2;

        } else {
            base = 8;
            p++;
        }
    }

    for (*v = 0; p < end; p++) {
        digit = us_hex[*p];

        if (digit < 0 || (unsigned) digit >= base) {
            return 0;
        }

        if (*v <= UINT32_MAX) {
            *v = *v * base + digit;
        }
    }

    return 1;
}


static us_verdict_t
us_host_ipv4(const uint8_t *p, const uint8_t *end, uint8_t **out)
{
    int             shift;
    uint8_t        *w;
    uint32_t        ip;
    uint64_t        v;
    unsigned        n;
    const uint8_t  *label;

    if (end[-1] == '.') {
        end--;
    }

    ip = 0;

    for (n = 0; /* void */ ; n++) {

        for (label = p; p < end && *p != '.'; p++) { /* void */ }

        if (n == 4 || !us_ipv4_number(label, p, &v)) {
            return US_URL_HOST;
        }

        if (p == end) {
            break;
        }

        if (v > 255) {
            return US_URL_HOST;
        }

        ip |= (uint32_t) v << (24 - 8 * n);
        p++;
    }

    /* the last number fills all bytes that are left */

    if (v >> (8 * (4 - n))) {
        return US_URL_HOST;
    }

    ip |= (uint32_t) v;
    w = *out;

    for (shift = 24; shift >= 0; shift -= 8) {
        w = us_put_u64(w, ip >> shift & 0xff);

        if (shift) {
            *w++ = '.';
        }
    }

    *out = w;

    return US_URL_OK;
}


/* the last label is a number: such a host is an IPv4 address or an error */

static int
us_host_ends_in_number(const uint8_t *p, const uint8_t *end)
{
    uint64_t        v;
    const uint8_t  *label, *c;

    if (end > p && end[-1] == '.') {
        end--;
    }

    for (label = end; label > p && label[-1] != '.'; label--) { /* void */ }

    if (label == end || (uint8_t) (*label - '0') > 9) {
        return 0;
    }

    for (c = label; c < end && (uint8_t) (*c - '0') <= 9; c++) { /* void */ }

    return c == end || us_ipv4_number(label, end, &v);
}


static us_verdict_t
us_host_domain(const uint8_t *p, const uint8_t *end, uint8_t **out,
    uint8_t *tmp)
{
    uint8_t  *w, *last, any;
    us_str_t  name;
    ssize_t   n;

    last = us_percent_decode(tmp, p, end);
    any = 0;

    for (w = tmp; w < last; w++) {
        any |= *w;
    }

    if (any < 0x80) {
        for (w = tmp; w < last; w++) {
            (*out)[w - tmp] = (uint8_t) (*w - 'A') < 26 ? *w | 0x20 : *w;
        }

        n = last - tmp;

    } else {
        if (last - tmp > US_IDNA_MAX) {
            return US_URL_LENGTH;
        }

        name.data = tmp;
        name.len = last - tmp;

        if (!us_utf8_valid(name)) {
            return US_URL_UTF8;
        }

        n = us_idna_to_ascii(name, *out, US_HOST_MAX);
    }

    if (n <= 0) {
        return US_URL_HOST;
    }

    p = *out;
    end = p + n;

    for (w = *out; w < end; w++) {
        if (us_is(*w, US_CH_NO_DOMAIN)) {
            return *w < 0x20 || *w == 0x7f ? US_URL_CONTROL : US_URL_HOST;
        }
    }

    if (us_host_ends_in_number(p, end)) {
        memcpy(tmp, p, n);
        return us_host_ipv4(tmp, tmp + n, out);
    }

    *out += n;

    return US_URL_OK;
}


/* what inet_pton() accepts is what the standard's IPv6 parser does */

static int
us_ipv6_parse(const uint8_t *p, const uint8_t *end, uint16_t v[8])
{
    char             text[INET6_ADDRSTRLEN];
    size_t           len, i;
    struct in6_addr  address;

    len = end - p;

    if (len >= sizeof(text) || memchr(p, '\0', len)) {
        return 0;
    }

    memcpy(text, p, len);
    text[len] = '\0';

    if (inet_pton(AF_INET6, text, &address) != 1) {
        return 0;
    }

    for (i = 0; i < 8; i++) {
        v[i] = (uint16_t) (address.s6_addr[2 * i] << 8
                           | address.s6_addr[2 * i + 1]);
    }

    return 1;
}


/* RFC 5952: the first longest run of two or more zero pieces becomes "::" */

static uint8_t *
us_ipv6_write(uint8_t *out, const uint16_t v[8])
{
    int  i, run, from, len, shift;

    from = -1;
    len = 1;
    run = 0;

    for (i = 0; i < 8; i++) {
        run = v[i] ? 0 : run + 1;

        if (run > len) {
            len = run;
            from = i - run + 1;
        }
    }

    for (i = 0; i < 8; i++) {

        if (i == from) {
            *out++ = ':';

            if (i == 0) {
                *out++ = ':';
            }

            i += len - 1;
            continue;
        }

        shift = v[i] > 0xfff ? 12 : v[i] > 0xff ? 8 : v[i] > 0xf ? 4 : 0;

        for ( /* void */ ; shift >= 0; shift -= 4) {
            *out++ = "0123456789abcdef"[(v[i] >> shift) & 15];
        }

        if (i < 7) {
            *out++ = ':';
        }
    }

    return out;
}


/* the special schemes: length, name, default port */

static const struct {
    uint8_t      len;
    char         name[7];
    uint16_t     port;
} us_schemes[] = {
    { 0, "", 0 },
    { 4, "http", 80 },
    { 5, "https", 443 },
    { 2, "ws", 80 },
    { 3, "wss", 443 },
    { 3, "ftp", 21 },
    { 4, "file", 0 }
};


typedef struct {
    const uint8_t   *p;               /* input */
    const uint8_t   *end;

    uint8_t         *start;           /* output */
    uint8_t         *out;

    us_url_t        *url;
    const us_url_t  *base;
    us_whatwg_ws_t  *ws;

    us_scheme_t      scheme;
    unsigned         steps;
} us_parsing_t;


static us_scheme_t
us_scheme_find(const uint8_t *p, size_t len)
{
    us_scheme_t  i;

    for (i = US_SCHEME_HTTP; i <= US_SCHEME_FILE; i++) {
        if (us_schemes[i].len == len
            && memcmp(us_schemes[i].name, p, len) == 0)
        {
            return i;
        }
    }

    return US_SCHEME_OTHER;
}


us_scheme_t
us_url_scheme(const us_url_t *url)
{
    return us_scheme_find(url->href.data, url->protocol_end - 1);
}


static inline int
us_special(const us_parsing_t *s)
{
    return s->scheme != US_SCHEME_OTHER;
}


/* a path's separator: in special schemes a backslash too */

static inline int
us_slash(const us_parsing_t *s, const uint8_t *p)
{
    return p < s->end && (*p == '/' || (*p == '\\' && us_special(s)));
}


/* a letter and a : or |, no more */

static inline int
us_is_drive_letter(const uint8_t *p, const uint8_t *end)
{
    return end - p == 2 && (uint8_t) ((*p | 0x20) - 'a') < 26
           && (p[1] == ':' || p[1] == '|');
}


static us_verdict_t
us_parse_fragment(us_parsing_t *s)
{
    if (s->p == s->end || (s->steps & US_STEP_FRAGMENT)) {
        return US_URL_OK;
    }

    s->url->hash_start = s->out - s->start;

    *s->out++ = '#';
    s->out = us_percent_encode(s->out, s->p + 1, s->end, US_SET_FRAGMENT);

    return US_URL_OK;
}


/*
 * Query state, if there is a query.  US_STEP_QUERY drops empty pieces:
 *
 *   ?&&a=1&&b&   ->   ?a=1&b          piece: where the current one begins
 *             ^
 */

static us_verdict_t
us_parse_query(us_parsing_t *s)
{
    uint8_t        *out, *piece;
    unsigned        stop, drop;
    const uint8_t  *p, *end;

    p = s->p;
    end = s->end;

    if (p == end || *p != '?') {
        return us_parse_fragment(s);
    }

    drop = s->steps & US_STEP_QUERY;

    stop = s->steps & US_STEP_PERCENT ? US_SET_UNIQUE_QUERY
           : us_special(s) ? US_SET_SPECIAL_QUERY : US_SET_QUERY;

    out = s->out;
    s->url->search_start = out - s->start;

    *out++ = '?';
    piece = out;

    for (p++; p < end; /* void */ ) {

        if (!us_is(*p, stop | US_CH_AMP)) {
            *out++ = *p++;

        } else if (*p == '&') {
            p++;

            if (!drop || out > piece) {
                *out++ = '&';
                piece = out;
            }

        } else if (*p == '#') {
            break;

        } else if (*p == '%') {
            p += us_percent_triplet(&out, p, end);

        } else {
            out = us_percent_byte(out, *p++);
        }
    }

    if (drop && out == piece) {
        out--;

        if (*out == '?') {
            s->url->search_start = US_URL_OMITTED;
        }
    }

    s->p = p;
    s->out = out;

    return us_parse_fragment(s);
}


/* opaque path state: only a space before the ? or # is encoded */

static us_verdict_t
us_parse_opaque(us_parsing_t *s)
{
    const uint8_t  *c;

    for (c = s->p; c < s->end && *c != '?' && *c != '#'; c++) { /* void */ }

    s->out = us_percent_encode(s->out, s->p, c, US_SET_C0);

    if (c < s->end && c > s->p && c[-1] == ' ') {
        s->out = us_percent_byte(s->out - 1, ' ');
    }

    s->p = c;

    return us_parse_query(s);
}


/* shorten a URL's path: the last segment is removed from what is written */

static void
us_path_shorten(us_parsing_t *s)
{
    uint8_t  *path;

    path = s->start + s->url->pathname_start;

    if (s->scheme == US_SCHEME_FILE && s->out - path == 3
        && us_is_drive_letter(path + 1, s->out) && path[2] == ':')
    {
        return;
    }

    while (s->out > path && *--s->out != '/') { /* void */ }
}


/* 1 or 2 if this is a single-dot or double-dot URL path segment, else 0 */

static unsigned
us_path_dots(const uint8_t *p, const uint8_t *end)
{
    unsigned  n;

    for (n = 0; p < end; n++) {

        if (*p == '.') {
            p++;

        } else if (end - p > 2 && p[0] == '%' && p[1] == '2'
                   && (p[2] | 0x20) == 'e')
        {
            p += 3;

        } else {
            return 0;
        }
    }

    return n <= 2 ? n : 0;
}


/*
 * Path state: /a/./b/../c is written one segment at a time.  A segment of dots
 * is removed again with its slash, and ".." removes the segment before it, too,
 * but nothing before pathname_start.
 *
 * The slash before the segment at s->p has been read, none has been written;
 * a path copied from the base stands before s->out.
 */

static us_verdict_t
us_parse_path(us_parsing_t *s)
{
    uint8_t        *out, *segment;
    unsigned        dots, stop, slash;
    const uint8_t  *p, *end;

    p = s->p;
    end = s->end;
    out = s->out;

    stop = US_CH_SLASH
           | (s->steps & US_STEP_PERCENT ? US_SET_UNIQUE_PATH : US_SET_PATH);

    do {
        segment = out;
        *out++ = '/';
        slash = 0;

        while (p < end) {

            if (!us_is(*p, stop)) {
                *out++ = *p++;

            } else if (*p == '/' || (*p == '\\' && us_special(s))) {
                slash = 1;
                p++;
                break;

            } else if (*p == '?' || *p == '#') {
                break;

            } else if (*p == '\\') {
                *out++ = *p++;

            } else if (*p == '%') {
                p += us_percent_triplet(&out, p, end);

            } else {
                out = us_percent_byte(out, *p++);
            }
        }

        if (out - segment > 7 || out - segment == 1) {
            continue;
        }

        dots = us_path_dots(segment + 1, out);

        if (dots) {
            s->out = segment;

            if (dots == 2) {
                us_path_shorten(s);
            }

            out = s->out;

            if (!slash) {
                *out++ = '/';
            }

        } else if (s->scheme == US_SCHEME_FILE
                   && segment == s->start + s->url->pathname_start
                   && us_is_drive_letter(segment + 1, out))
        {
            segment[2] = ':';
        }

    } while (slash);

    s->p = p;
    s->out = out;

    return us_parse_query(s);
}


static us_verdict_t
us_parse_path_start(us_parsing_t *s)
{
    if (!us_special(s) && (s->p == s->end || *s->p == '?' || *s->p == '#')) {
        return us_parse_query(s);
    }

    if (us_slash(s, s->p)) {
        s->p++;
    }

    return us_parse_path(s);
}


/*
 * Appends the base from where the output ends up to the offset `to`, and
 * takes over the offsets of the parts that lie before it.  Leaves out the "/."
 * that guards a path.
 */

static void
us_copy_base(us_parsing_t *s, size_t to)
{
    size_t           from, guard;
    us_url_t        *u;
    const us_url_t  *b;

    u = s->url;
    b = s->base;
    from = s->out - s->start;
    guard = us_url_has_authority(b) ? 0 : b->pathname_start - b->protocol_end;

    if (to > b->href.len) {
        to = b->href.len;
    }

    if (to >= b->pathname_start) {
        from += guard;
    }

    memcpy(s->out, b->href.data + from, to - from);
    s->out += to - from;

    u->protocol_end = b->protocol_end;

    if (to < b->pathname_start) {
        return;
    }

    u->username_end = b->username_end;
    u->host_start = b->host_start;
    u->host_end = b->host_end;
    u->port = b->port;
    u->pathname_start = b->pathname_start - guard;

    if (b->search_start < to) {
        u->search_start = b->search_start - guard;
    }
}


/* writes the host [s->p, end); leaves s->p where it is */

static us_verdict_t
us_parse_host(us_parsing_t *s, const uint8_t *end)
{
    uint8_t        *host;
    uint16_t        v[8];
    us_verdict_t    rc;
    const uint8_t  *c;

    if (s->p == end) {
        return US_URL_OK;
    }

    if (*s->p == '[') {
        if (end[-1] != ']' || !us_ipv6_parse(s->p + 1, end - 1, v)) {
            return US_URL_HOST;
        }

        *s->out++ = '[';
        s->out = us_ipv6_write(s->out, v);
        *s->out++ = ']';

        return US_URL_OK;
    }

    if (!us_special(s)) {
        for (c = s->p; c < end; c++) {
            if (us_is(*c, US_CH_NO_HOST)) {
                return US_URL_HOST;
            }
        }

        s->out = us_percent_encode(s->out, s->p, end, US_SET_C0);

        return US_URL_OK;
    }

    host = s->out;

    for (c = s->p; c < end && us_is(*c, US_CH_HOST); c++) {
        *s->out++ = *c;
    }

    if (c < end || us_host_ends_in_number(s->p, end)) {
        s->out = host;
        rc = us_host_domain(s->p, end, &s->out, s->ws->host);

        if (rc != US_URL_OK) {
            return rc;
        }
    }

    if ((s->steps & US_STEP_HOST_DOT) && s->out - host > 1
        && s->out[-1] == '.' && s->out[-2] != '.')
    {
        s->out--;
    }

    return US_URL_OK;
}


/* host and port states; the host ends at the colon */

static us_verdict_t
us_parse_host_port(us_parsing_t *s, const uint8_t *colon, const uint8_t *end)
{
    size_t        i;
    us_str_t      digits;
    uint64_t      port;
    us_verdict_t  rc;

    rc = us_parse_host(s, colon);

    if (rc != US_URL_OK) {
        return rc;
    }

    s->url->host_end = s->out - s->start;

    if (end - colon > 1) {
        digits = (us_str_t) { end - colon - 1, colon + 1 };
        i = 0;

        if (us_read_u64(digits, &i, 65535, &port) != 0 || i < digits.len) {
            return US_URL_PORT;
        }

        if (port != us_schemes[s->scheme].port || !us_special(s)) {
            s->url->port = (uint32_t) port;
            *s->out++ = ':';
            s->out = us_put_u64(s->out, port);
        }
    }

    s->p = end;
    s->url->pathname_start = s->out - s->start;

    return us_parse_path_start(s);
}


/*
 * Authority state; s->p is after the slashes.
 *
 *   //user:password@host:port/    the last @ before the end splits off the
 *     `-----------' `--' `--'     user, the first : after it and outside of
 *                                 brackets the port
 */

static us_verdict_t
us_parse_authority(us_parsing_t *s)
{
    int             bracket;
    uint8_t        *start;
    us_url_t       *u;
    const uint8_t  *end, *at, *c;

    u = s->url;

    *s->out++ = '/';
    *s->out++ = '/';

    start = s->out;
    u->username_end = start - s->start;
    u->host_start = u->username_end;

    /* nearly all authorities are nothing but a host */

    for (c = s->p; c < s->end && us_is(*c, US_CH_HOST); c++) { /* void */ }

    if (c > s->p && us_special(s)
        && (c == s->end || *c == '/' || *c == '?' || *c == '#'))
    {
        return us_parse_host_port(s, c, c);
    }

    for (at = NULL; c < s->end; c++) {

        if (!us_is(*c, US_CH_END)) {
            continue;
        }

        if (*c == '@') {
            at = c;

        } else if (*c == '\\' ? us_special(s) : *c != ':') {
            break;
        }
    }

    end = c;

    if (at) {
        if (!(s->steps & US_STEP_USERINFO)) {
            for (c = s->p; c < at && *c != ':'; c++) { /* void */ }

            s->out = us_percent_encode(s->out, s->p, c, US_SET_USERINFO);
            u->username_end = s->out - s->start;

            if (at - c > 1) {
                *s->out++ = ':';
                s->out = us_percent_encode(s->out, c + 1, at,
                                           US_SET_USERINFO);
            }
        }

        s->p = at + 1;

        if (s->p == end) {
            return US_URL_HOST;
        }
    }

    u->host_start = s->out - s->start;

    if (s->out > start) {
        *s->out++ = '@';
    }

    /* a ':' in brackets does not end a host */

    bracket = 0;

    for (c = s->p; c < end && (*c != ':' || bracket); c++) {
        bracket = *c == '[' ? 1 : *c == ']' ? 0 : bracket;
    }

    if (c == s->p && (us_special(s) || c < end)) {
        return US_URL_HOST;
    }

    return us_parse_host_port(s, c, end);
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


static int
us_starts_with_drive_letter(const uint8_t *p, const uint8_t *end)
{
    return end - p >= 2 && us_is_drive_letter(p, p + 2)
           && (end - p == 2 || p[2] == '/' || p[2] == '\\' || p[2] == '?'
               || p[2] == '#');
}


static void
us_file_authority(us_parsing_t *s)
{
    us_url_t  *u;

    u = s->url;

    *s->out++ = '/';
    *s->out++ = '/';

    u->username_end = u->protocol_end + 2;
    u->host_start = u->username_end;
    u->host_end = u->username_end;
    u->pathname_start = u->username_end;
}


static us_verdict_t
us_parse_file_host(us_parsing_t *s)
{
    us_verdict_t    rc;
    const uint8_t  *end;

    for (end = s->p; end < s->end && !us_slash(s, end) && *end != '?'
                     && *end != '#'; end++)
    {
        /* void */
    }

    us_file_authority(s);

    if (us_is_drive_letter(s->p, end)) {
        return us_parse_path(s);
    }

    if (end > s->p) {
        rc = us_parse_host(s, end);

        if (rc != US_URL_OK) {
            return rc;
        }

        if (s->out - s->start - s->url->host_start == 9
            && memcmp(s->start + s->url->host_start, "localhost", 9) == 0)
        {
            s->out -= 9;
        }

        s->p = end;
    }

    s->url->host_end = s->out - s->start;
    s->url->pathname_start = s->url->host_end;

    return us_parse_path_start(s);
}


/*
 * File state and file slash state; "file:" is written.
 *
 *   file:///C:/a     a drive letter begins the path: ".." does not leave it,
 *                    and "/b" in a page of C: stays there
 *   file://h/a       the host may be left out, "localhost" is none
 */

static us_verdict_t
us_parse_file(us_parsing_t *s)
{
    us_str_t         path;
    const us_url_t  *b;

    b = s->base && us_url_scheme(s->base) == US_SCHEME_FILE ? s->base : NULL;

    if (us_slash(s, s->p) && us_slash(s, s->p + 1)) {
        s->p += 2;
        return us_parse_file_host(s);
    }

    if (b == NULL) {
        us_file_authority(s);
        return us_parse_path_start(s);
    }

    if (us_slash(s, s->p)) {
        path = us_url_pathname(b);

        us_copy_base(s, b->pathname_start);

        if (!us_starts_with_drive_letter(s->p + 1, s->end)
            && path.len >= 3 && path.data[2] == ':'
            && us_starts_with_drive_letter(path.data + 1,
                                           path.data + path.len))
        {
            memcpy(s->out, path.data, 3);
            s->out += 3;
        }

        s->p++;

        return us_parse_path(s);
    }

    if (us_starts_with_drive_letter(s->p, s->end)) {
        us_copy_base(s, b->pathname_start);
        return us_parse_path(s);
    }

    return us_parse_relative(s);
}


/* the crawler's steps know only what a path and a query of http are */

static inline void
us_set_scheme(us_parsing_t *s, us_scheme_t scheme)
{
    s->scheme = scheme;

    if (scheme != US_SCHEME_HTTP && scheme != US_SCHEME_HTTPS) {
        s->steps = 0;
    }
}


static us_verdict_t
us_parse_no_scheme(us_parsing_t *s)
{
    size_t  path;

    if (s->base == NULL) {
        return US_URL_NO_BASE;
    }

    path = s->base->pathname_start;

    if (!us_url_has_authority(s->base)
        && (path == s->base->href.len || s->base->href.data[path] != '/'))
    {
        /* an opaque path */

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


/* scheme start state and scheme state */

static us_verdict_t
us_parse_scheme(us_parsing_t *s)
{
    size_t          len;
    const uint8_t  *colon;

    colon = s->p;

    if (colon < s->end && (uint8_t) ((*colon | 0x20) - 'a') < 26) {
        do {
            colon++;
        } while (colon < s->end && us_is(*colon, US_CH_SCHEME));
    }

    len = colon - s->p;

    if (len == 0 || colon == s->end || *colon != ':') {
        return us_parse_no_scheme(s);
    }

    for ( /* void */ ; s->p < colon; s->p++) {
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


/* eight bytes at once; some byte is below 0x20 */

static inline int
us_has_control(const uint8_t *p, const uint8_t *end)
{
    uint64_t  v, found;
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
 * anywhere, unless the input is too long.
 */

static void
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

    if (in->len > US_INPUT_MAX || !us_has_control(p, end)) {
        return;
    }

    w = ws->clean;

    for (p = in->data; p < end; p++) {
        if (*p != '\t' && *p != '\n' && *p != '\r') {
            *w++ = *p;
        }
    }

    in->data = ws->clean;
    in->len = w - ws->clean;
}


/*
 * A path that begins with "//" but follows no host would be read as a host:
 * "/." before it guards it.
 */

static void
us_path_guard(us_parsing_t *s)
{
    uint8_t   *path;
    us_url_t  *u;

    u = s->url;
    path = s->start + u->pathname_start;

    if (us_url_has_authority(u) || s->out - path < 2 || path[0] != '/'
        || path[1] != '/')
    {
        return;
    }

    memmove(path + 2, path, s->out - path);
    path[1] = '.';

    s->out += 2;
    u->pathname_start += 2;
    u->search_start += u->search_start == US_URL_OMITTED ? 0 : 2;
    u->hash_start += u->hash_start == US_URL_OMITTED ? 0 : 2;
}


us_verdict_t
us_whatwg_parse(us_whatwg_ws_t *ws, us_str_t in, const us_url_t *base,
    unsigned steps, uint8_t *out, us_url_t *url)
{
    us_verdict_t  rc;
    us_parsing_t  s;

    us_parse_clean(ws, &in);

    if (in.len > US_INPUT_MAX) {
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

    rc = us_parse_scheme(&s);

    if (rc == US_URL_OK && s.scheme == US_SCHEME_OTHER) {
        us_path_guard(&s);
    }

    url->href.data = out;
    url->href.len = s.out - out;

    return rc;
}


/* --- parts of a serialized URL, see us_url.h ------------------------------ */

us_str_t
us_url_host(const us_url_t *u)
{
    us_str_t  s;

    s = us_url_hostname(u);

    if (u->port != US_URL_OMITTED) {
        s.len = u->href.data + u->pathname_start - s.data;
    }

    return s;
}


us_str_t
us_url_search(const us_url_t *u)
{
    size_t  from, to;

    to = u->hash_start != US_URL_OMITTED ? u->hash_start : u->href.len;
    from = u->search_start != US_URL_OMITTED ? u->search_start : to;

    return us_url_part(u, from, to);
}
