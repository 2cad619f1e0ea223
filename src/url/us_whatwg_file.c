
/*
 * File URLs: file state, file slash state and file host state of the basic
 * URL parser.  See us_whatwg_private.h.
 *
 *   file:///C:/a     a drive letter begins the path: ".." does not leave it,
 *                    and "/b" in a page of C: stays there
 *   file://h/a       the host may be left out, "localhost" is none
 */


#include "us_whatwg_private.h"


static us_verdict_t us_parse_file_host(us_parsing_t *s);


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


/* file state and file slash state */

us_verdict_t
us_parse_file(us_parsing_t *s)
{
    us_str_t         path;
    const us_url_t  *b;

    b = s->base && us_url_scheme(s->base) == US_SCHEME_FILE ? s->base : NULL;
    path.len = 0;
    path.data = NULL;

    if (b) {
        path = us_url_pathname(b);
    }

    if (us_slash(s, s->p)) {

        if (us_slash(s, s->p + 1)) {
            s->p += 2;
            return us_parse_file_host(s);
        }

        if (b == NULL) {
            us_file_authority(s);
            return us_parse_path_start(s);
        }

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

    if (b == NULL) {
        us_file_authority(s);
        return us_parse_path(s);
    }

    if (s->p == s->end || *s->p == '#') {
        us_copy_base(s, b->hash_start);
        return us_parse_fragment(s);
    }

    if (*s->p == '?') {
        us_copy_base(s, b->pathname_start + path.len);
        return us_parse_query(s);
    }

    if (us_starts_with_drive_letter(s->p, s->end)) {
        us_copy_base(s, b->pathname_start);

    } else {
        us_copy_base(s, b->pathname_start + path.len);
        us_path_shorten(s);
    }

    return us_parse_path(s);
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
