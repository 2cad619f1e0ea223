
/*
 * Authority state, host state and port state of the basic URL parser.  See
 * us_whatwg_private.h.
 *
 *   //user:password@host:port/    the last @ before the end splits off the
 *     `-----------' `--' `--'     user, the first : after it and outside of
 *                                 brackets the port
 *
 * us_host.c parses the host.
 */


#include "us_whatwg_private.h"


static void us_parse_userinfo(us_parsing_t *s, const uint8_t *end);
static us_verdict_t us_parse_host_port(us_parsing_t *s, const uint8_t *colon,
    const uint8_t *end);
static us_verdict_t us_parse_port(us_parsing_t *s, const uint8_t *end);


us_verdict_t
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
        us_parse_userinfo(s, at);

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


/* host and port states; the host ends at the colon */

static us_verdict_t
us_parse_host_port(us_parsing_t *s, const uint8_t *colon, const uint8_t *end)
{
    us_verdict_t  rc;

    rc = us_parse_host(s, colon);

    if (rc != US_URL_OK) {
        return rc;
    }

    s->url->host_end = s->out - s->start;

    if (colon < end) {
        s->p = colon + 1;
        rc = us_parse_port(s, end);

        if (rc != US_URL_OK) {
            return rc;
        }
    }

    s->p = end;
    s->url->pathname_start = s->out - s->start;

    return us_parse_path_start(s);
}


static void
us_parse_userinfo(us_parsing_t *s, const uint8_t *end)
{
    const uint8_t  *c;

    if (s->steps & US_STEP_USERINFO) {
        return;
    }

    for (c = s->p; c < end && *c != ':'; c++) { /* void */ }

    s->out = us_percent_encode(s->out, s->p, c, US_SET_USERINFO);
    s->url->username_end = s->out - s->start;

    if (end - c > 1) {
        *s->out++ = ':';
        s->out = us_percent_encode(s->out, c + 1, end, US_SET_USERINFO);
    }
}


us_verdict_t
us_parse_host(us_parsing_t *s, const uint8_t *end)
{
    uint8_t        *host;
    us_verdict_t    rc;
    const uint8_t  *c;

    if (s->p == end) {
        return US_URL_OK;
    }

    if (*s->p == '[') {
        return us_host_ipv6(s->p, end, &s->out);
    }

    if (!us_special(s)) {
        return us_host_opaque(s->p, end, &s->out);
    }

    host = s->out;

    for (c = s->p; c < end && us_is(*c, US_CH_HOST); c++) {
        *s->out++ = *c;
    }

    if (c < end || us_host_ends_in_number(s->p, end)) {
        s->out = host;
        rc = us_host_domain(s->ws->idna, s->p, end, &s->out, s->ws->host);

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


/* s->p is after the ':' */

static us_verdict_t
us_parse_port(us_parsing_t *s, const uint8_t *end)
{
    uint32_t        port;
    const uint8_t  *c;

    if (s->p == end) {
        return US_URL_OK;
    }

    port = 0;

    for (c = s->p; c < end; c++) {

        if ((uint8_t) (*c - '0') > 9) {
            return US_URL_PORT;
        }

        port = port * 10 + (*c - '0');

        if (port > 65535) {
            return US_URL_PORT;
        }
    }

    if (port == us_scheme_port(s->scheme) && us_special(s)) {
        return US_URL_OK;
    }

    s->url->port = port;
    s->out = us_port_write(s->out, port);

    return US_URL_OK;
}
