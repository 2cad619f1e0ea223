
/*
 * Profiles and the steps that work on a serialized URL.  See us_profile.h.
 *
 * All these steps only shorten or permute, so they work in place.
 */


#include "us_profile.h"


static void us_step_path_session(us_url_t *url, const us_step_ctx_t *ctx);
static void us_step_slashes(us_url_t *url, const us_step_ctx_t *ctx);
static void us_step_args(us_url_t *url, const us_step_ctx_t *ctx);
static void us_step_session(us_url_t *url, const us_step_ctx_t *ctx);
static void us_step_duplicates(us_url_t *url, const us_step_ctx_t *ctx);
static void us_step_sort(us_url_t *url, const us_step_ctx_t *ctx);


const us_step_t  us_steps[] = {
    { US_STEP_USERINFO, "drop userinfo", NULL },
    { US_STEP_FRAGMENT, "drop fragment", NULL },
    { US_STEP_HOST_DOT, "drop final dot of host", NULL },
    { US_STEP_PERCENT, "unique percent form", NULL },
    { US_STEP_QUERY, "drop empty query pieces", NULL },
    { US_STEP_PATH_SESSION, "drop session id in path", us_step_path_session },
    { US_STEP_SLASHES, "collapse slashes", us_step_slashes },
    { US_STEP_ARGS, "strip arguments", us_step_args },
    { US_STEP_SESSION, "drop session id in query", us_step_session },
    { US_STEP_DUPLICATES, "drop duplicate query pieces", us_step_duplicates },
    { US_STEP_SORT, "sort arguments", us_step_sort },
    { 0, NULL, NULL }
};


static const struct {
    us_profile_t   profile;
    const char    *name;
    unsigned       steps;
} us_profiles[] = {

    { US_PROFILE_CRAWLER, "crawler", US_STEP_PARSE },

    { US_PROFILE_CRAWLER_CLEAN, "crawler-clean",
      US_STEP_PARSE | US_STEP_ARGS },

    { US_PROFILE_WHATWG, "whatwg", 0 },

    { US_PROFILE_AGGRESSIVE, "aggressive",
      US_STEP_PARSE | US_STEP_LATE }
};


#define US_PROFILES  (sizeof(us_profiles) / sizeof(us_profiles[0]))


/*
 * Names that only trackers read, of the well-known kind.  Broad names (ref,
 * source, spm, sid) are left out: sites use them for pages.
 */

const char *const  us_tracking_args[] = {
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid",
    "msclkid", "yclid", "ysclid", "twclid", "ttclid", "igshid", "li_fat_id",
    "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hssc", "__hstc",
    "__hsfp", "hsCtaTracking", "oly_anon_id", "oly_enc_id", "vero_id",
    "vero_conv", "rb_clickid", "s_cid", "wickedid", "_openstat",
    "ml_subscriber", "ml_subscriber_hash", "unicorn_click_id", NULL
};


unsigned
us_profile_steps(us_profile_t profile)
{
    size_t  i;

    for (i = 0; i < US_PROFILES; i++) {
        if (us_profiles[i].profile == profile) {
            return us_profiles[i].steps;
        }
    }

    return 0;
}


int
us_profile_parse(us_str_t name)
{
    size_t  i;

    for (i = 0; i < US_PROFILES; i++) {
        if (strlen(us_profiles[i].name) == name.len
            && memcmp(us_profiles[i].name, name.data, name.len) == 0)
        {
            return us_profiles[i].profile;
        }
    }

    return -1;
}


const char *
us_profile_name(us_profile_t profile)
{
    size_t  i;

    for (i = 0; i < US_PROFILES; i++) {
        if (us_profiles[i].profile == profile) {
            return us_profiles[i].name;
        }
    }

    return NULL;
}


/* the path has been rewritten up to out: moves what follows, fixes offsets */

static void
us_path_end(us_url_t *url, uint8_t *out, const uint8_t *end)
{
    size_t          gone;
    const uint8_t  *tail;

    tail = url->href.data + url->href.len;
    gone = end - out;

    memmove(out, end, tail - end);

    url->href.len -= gone;

    if (url->search_start != US_URL_OMITTED) {
        url->search_start -= gone;
    }

    if (url->hash_start != US_URL_OMITTED) {
        url->hash_start -= gone;
    }
}


/*
 * ";jsessionid=" up to the next ';' or '/', unless what is left would be a
 * dot segment.
 */

static int
us_session_parameter(const uint8_t *p, const uint8_t *end)
{
    size_t             i;
    static const char  name[] = ";jsessionid=";

    if ((size_t) (end - p) < sizeof(name) - 1) {
        return 0;
    }

    for (i = 1; i < sizeof(name) - 2; i++) {
        if ((p[i] | 0x20) != name[i]) {
            return 0;
        }
    }

    return p[sizeof(name) - 2] == '=';
}


static void
us_step_path_session(us_url_t *url, const us_step_ctx_t *ctx)
{
    uint8_t        *out, *segment;
    us_str_t        path;
    const uint8_t  *p, *end, *next;

    path = us_url_pathname(url);
    p = path.data;

    if (memchr(p, ';', path.len) == NULL) {
        return;
    }

    end = p + path.len;
    out = (uint8_t *) p;
    segment = out;

    while (p < end) {

        if (*p == '/') {
            segment = out + 1;
        }

        if (*p != ';' || !us_session_parameter(p, end)) {
            *out++ = *p++;
            continue;
        }

        for (next = p + 1; next < end && *next != ';' && *next != '/'; next++)
        {
            /* void */
        }

        if ((next == end || *next == '/')
            && out > segment && out - segment <= 2
            && segment[0] == '.' && out[-1] == '.')
        {
            memmove(out, p, next - p);
            out += next - p;
        }

        p = next;
    }

    us_path_end(url, out, end);
}


/*
 * A run of slashes becomes one; after a ':' (a URL in the path) two are kept.
 */

static void
us_step_slashes(us_url_t *url, const us_step_ctx_t *ctx)
{
    uint8_t        *out, *first;
    unsigned        keep, run;
    us_str_t        path;
    const uint8_t  *p, *end;

    path = us_url_pathname(url);
    p = path.data;

    if (memmem(p, path.len, "//", 2) == NULL) {
        return;
    }

    end = p + path.len;
    first = (uint8_t *) p;
    out = first;
    keep = 1;
    run = 0;

    for ( /* void */ ; p < end; p++) {

        if (*p != '/') {
            run = 0;

        } else if (run++ == 0) {
            keep = out > first && out[-1] == ':' ? 2 : 1;
        }

        if (run <= keep) {
            *out++ = *p;
        }
    }

    us_path_end(url, out, end);
}


static void
us_step_args(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_strip(url, ctx->args);
}


static void
us_step_session(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_strip_sessions(url);
}


static void
us_step_duplicates(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_drop_duplicates(url, ctx->query);
}


static void
us_step_sort(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_sort(url, ctx->query);
}
