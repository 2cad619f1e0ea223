
/*
 * What follows the authority, or a scheme without one: path state, opaque
 * path state, query state and fragment state of the basic URL parser.  See
 * us_whatwg_private.h.
 *
 *   /a/./b/../c?x#y   is written one segment at a time; a segment of dots is
 *    ^segment         removed again with its slash, and ".." removes the
 *                     segment before it, too, but nothing before
 *                     pathname_start
 */


#include "us_whatwg_private.h"


static unsigned us_path_dots(const uint8_t *p, const uint8_t *end);


us_verdict_t
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


us_verdict_t
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


void
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


void
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


/* opaque path state: only a space before the ? or # is encoded */

us_verdict_t
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


/*
 * Query state, if there is a query.  US_STEP_QUERY drops empty pieces:
 *
 *   ?&&a=1&&b&   ->   ?a=1&b          piece: where the current one begins
 *             ^
 */

us_verdict_t
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


us_verdict_t
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
