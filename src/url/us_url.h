
/*
 * What all files of this room share: a parsed and serialized URL, one buffer
 * and where its parts begin; why there is none; what is reported on the way;
 * the names of profiles.
 *
 *   https://user:pass@example.com:1234/foo/bar?baz#quux
 *         |     |    |          | ^^^^|       |   |
 *         |     |    |          | |   |       |   `----- hash_start
 *         |     |    |          | |   |       `--------- search_start
 *         |     |    |          | |   `----------------- pathname_start
 *         |     |    |          | `--------------------- port
 *         |     |    |          `----------------------- host_end
 *         |     |    `---------------------------------- host_start (the @)
 *         |     `--------------------------------------- username_end
 *         `--------------------------------------------- protocol_end
 */


#ifndef _US_URL_H_INCLUDED_
#define _US_URL_H_INCLUDED_


#include "../us_base.h"


#ifdef __cplusplus
extern "C" {
#endif


#define US_URL_OMITTED  ((uint32_t) -1)


typedef struct {
    us_str_t      href;

    uint32_t      protocol_end;       /* after the ':' */
    uint32_t      username_end;
    uint32_t      host_start;         /* at the '@' if there is one */
    uint32_t      host_end;
    uint32_t      port;               /* US_URL_OMITTED: none shown */
    uint32_t      pathname_start;
    uint32_t      search_start;       /* at the '?', or US_URL_OMITTED */
    uint32_t      hash_start;         /* at the '#', or US_URL_OMITTED */
} us_url_t;


us_str_t us_url_host(const us_url_t *u);       /* host, with :port if shown */
us_str_t us_url_search(const us_url_t *u);     /* with the '?', or empty */


static inline us_str_t
us_url_part(const us_url_t *u, size_t from, size_t to)
{
    us_str_t  s;

    s.data = u->href.data + from;
    s.len = to - from;

    return s;
}


/* without port */

static inline us_str_t
us_url_hostname(const us_url_t *u)
{
    size_t  from;

    from = u->host_start;

    if (from < u->host_end && u->href.data[from] == '@') {
        from++;
    }

    return us_url_part(u, from, u->host_end);
}


static inline us_str_t
us_url_pathname(const us_url_t *u)
{
    size_t  to;

    to = u->search_start != US_URL_OMITTED ? u->search_start
         : u->hash_start != US_URL_OMITTED ? u->hash_start : u->href.len;

    return us_url_part(u, u->pathname_start, to);
}


static inline int
us_url_has_authority(const us_url_t *u)
{
    return u->username_end > u->protocol_end;
}


/* why an input has no canonical URL; us_verdict_name(): docs/api.md's word */

typedef enum {
    US_URL_OK = 0,

    US_URL_SCHEME,                    /* invalid: */
    US_URL_HOST,
    US_URL_PORT,
    US_URL_UTF8,
    US_URL_CONTROL,
    US_URL_LENGTH,
    US_URL_NO_BASE,                   /* it is relative */
    US_URL_BASE,                      /* the base is no URL; set by callers */

    US_URL_RULE,                      /* rejected: */
    US_URL_DEPTH,
    US_URL_ARGS,
    US_URL_REPEAT,
    US_URL_REWRITE_LOOP,
    US_URL_BUDGET
} us_verdict_t;


/*
 * One step that changed something, for explain.  The texts are valid during
 * the call only.
 */

typedef void (*us_explain_pt)(void *data, const char *step, us_str_t before,
    us_str_t after);


/* of a rule that cannot be compiled; the offset is one in the pattern */

typedef struct {
    char          text[256];
    size_t        offset;
} us_rule_error_t;


typedef enum {
    US_PROFILE_CRAWLER = 0,
    US_PROFILE_CRAWLER_CLEAN,
    US_PROFILE_WHATWG,
    US_PROFILE_AGGRESSIVE
} us_profile_t;

/* -1 if there is no such name */
int us_profile_parse(us_str_t name);
const char *us_profile_name(us_profile_t p);


#ifdef __cplusplus
}
#endif


#endif /* _US_URL_H_INCLUDED_ */
