
/*
 * What the files of the basic URL parser share and nobody else sees.
 *
 *     us_whatwg.c             the input cleaned; the scheme, or the base's
 *     us_whatwg_base.c        parts copied from the base
 *     us_whatwg_file.c        file URLs, and their drive letters
 *     us_whatwg_authority.c   user, password, host and port
 *     us_whatwg_path.c        all that follows: path, query, fragment
 *
 * States and their names are those of the WHATWG URL standard, section 4.4,
 * written as functions that look ahead instead of a machine that steps back:
 *
 *   scheme --+-- file -------> us_parse_file ----+
 *            |-- special ----> us_parse_relative |--> us_parse_path
 *            |              \> us_parse_authority|        |
 *            |-- other: //  -> us_parse_authority+    us_parse_query
 *            |          /   -> us_parse_path              |
 *            `--        else-> us_parse_opaque --->  us_parse_fragment
 *
 * Each goes on with the next, so that what it returns is the verdict on the
 * whole.  s->p runs over the input, s->out over the href.  Room is checked
 * once, at the door: every function writes at most three bytes for each byte
 * it reads, a host at most US_HOST_MAX more, and a part of the base is copied
 * once.
 */


#ifndef _US_WHATWG_PRIVATE_H_INCLUDED_
#define _US_WHATWG_PRIVATE_H_INCLUDED_


#include "us_whatwg.h"
#include "us_percent.h"
#include "us_scheme.h"


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


/* us_whatwg_base.c */

/*
 * Appends the base from where the output ends up to the offset `to`, and
 * takes over the offsets of the parts that lie before it.  Leaves out the "/."
 * that guards a path.
 */
void us_copy_base(us_parsing_t *s, size_t to);

/* us_whatwg_file.c: "file:" is written */

us_verdict_t us_parse_file(us_parsing_t *s);

/* us_whatwg_authority.c */

/* s->p is after the slashes */
us_verdict_t us_parse_authority(us_parsing_t *s);

/* writes the host [s->p, end); leaves s->p where it is */
us_verdict_t us_parse_host(us_parsing_t *s, const uint8_t *end);

/* us_whatwg_path.c */

us_verdict_t us_parse_path_start(us_parsing_t *s);

/*
 * The slash before the segment at s->p has been read, none has been written;
 * a path copied from the base stands before s->out.
 */
us_verdict_t us_parse_path(us_parsing_t *s);

us_verdict_t us_parse_opaque(us_parsing_t *s);
us_verdict_t us_parse_query(us_parsing_t *s);
us_verdict_t us_parse_fragment(us_parsing_t *s);

/* shorten a URL's path: the last segment is removed from what is written */
void us_path_shorten(us_parsing_t *s);

/*
 * A path that begins with "//" but follows no host would be read as a host:
 * "/." before it guards it.
 */
void us_path_guard(us_parsing_t *s);


#endif /* _US_WHATWG_PRIVATE_H_INCLUDED_ */
