
/*
 * Profiles and the steps that work on a serialized URL.  See us_profile.h.
 *
 * All these steps only shorten or permute, so they work in place.  The first
 * two work on the path, the others on the pieces of the query: a piece is what
 * stands between two '&', its name ends at the first '='.  Names are compared
 * as they are written, case matters.
 */


#include "us_profile.h"

#include <stdlib.h>


typedef int (*us_piece_pt)(const void *data, us_str_t piece);


struct us_arg_s {
    us_arg_t         *next;
    us_str_t          text;           /* is name */
    unsigned          glob;
    uint8_t           name[];
};


void
us_url_remove(us_url_t *url, uint8_t *from, const uint8_t *to)
{
    size_t          gone;
    const uint8_t  *tail;

    tail = url->href.data + url->href.len;
    gone = to - from;

    if (url->search_start != US_URL_OMITTED
        && url->href.data + url->search_start >= to)
    {
        url->search_start -= gone;
    }

    if (url->hash_start != US_URL_OMITTED) {
        url->hash_start -= gone;
    }

    memmove(from, to, tail - to);

    url->href.len -= gone;
}


/*
 * ";jsessionid=" up to the next ';' or '/', unless what is left would be a
 * dot segment.
 */

static int
us_session_parameter(const uint8_t *p, const uint8_t *end)
{
    size_t  i;
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

    us_url_remove(url, out, end);
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

    us_url_remove(url, out, end);
}


/* what follows the '?' */

static us_str_t
us_query(const us_url_t *url)
{
    us_str_t  query;

    query = us_url_search(url);
    query.data += query.len != 0;
    query.len -= query.len != 0;

    return query;
}


/* the name of a piece: up to the '=' or the end */

static us_str_t
us_piece_name(us_str_t piece)
{
    us_str_t  name;

    us_str_cut(&piece, '=', &name);

    return name;
}


/* the query has been rewritten up to out */

static void
us_query_end(us_url_t *url, uint8_t *out, const uint8_t *end)
{
    if (out == url->href.data + url->search_start + 1) {
        out--;
        url->search_start = US_URL_OMITTED;
    }

    us_url_remove(url, out, end);
}


/* drops the pieces for which the function answers 1 */

static void
us_query_filter(us_url_t *url, us_piece_pt drop, const void *data)
{
    uint8_t  *out, *first;
    us_str_t  query, piece;

    query = us_query(url);
    first = (uint8_t *) query.data;

    /* nothing is written until a piece is dropped */

    do {
        if (query.len == 0) {
            return;
        }

        out = (uint8_t *) query.data;
        us_str_cut(&query, '&', &piece);

    } while (!drop(data, piece));

    out -= out > first;

    while (query.len) {
        us_str_cut(&query, '&', &piece);

        if (drop(data, piece)) {
            continue;
        }

        if (out > first) {
            *out++ = '&';
        }

        memmove(out, piece.data, piece.len);
        out += piece.len;
    }

    us_query_end(url, out, query.data);
}


unsigned
us_query_count(const us_url_t *url)
{
    unsigned  n;
    us_str_t  query, piece;

    query = us_query(url);

    for (n = 0; query.len; n += piece.len != 0) {
        us_str_cut(&query, '&', &piece);
    }

    return n;
}


/* '*' stands for any bytes; time is bounded by glob.len * s.len */

int
us_glob(us_str_t glob, us_str_t s)
{
    size_t  g, i, star, mark;

    star = glob.len;
    mark = 0;

    for (g = 0, i = 0; i < s.len; /* void */ ) {

        if (g < glob.len && glob.data[g] == '*') {
            star = g++;
            mark = i;

        } else if (g < glob.len && glob.data[g] == s.data[i]) {
            g++;
            i++;

        } else if (star < glob.len) {
            g = star + 1;
            i = ++mark;

        } else {
            return 0;
        }
    }

    while (g < glob.len && glob.data[g] == '*') {
        g++;
    }

    return g == glob.len;
}


int
us_args_add(us_args_t *args, us_str_t name)
{
    us_arg_t  *arg;

    if (name.len == 0) {
        return -1;
    }

    arg = malloc(sizeof(us_arg_t) + name.len);

    if (arg == NULL) {
        return -1;
    }

    memcpy(arg->name, name.data, name.len);
    arg->text.data = arg->name;
    arg->text.len = name.len;
    arg->glob = memchr(name.data, '*', name.len) != NULL;
    arg->next = args->first[name.data[0]];

    args->first[name.data[0]] = arg;

    return 0;
}


void
us_args_free(us_args_t *args)
{
    size_t     i;
    us_arg_t  *arg, *next;

    for (i = 0; i < 256; i++) {
        for (arg = args->first[i]; arg; arg = next) {
            next = arg->next;
            free(arg);
        }
    }
}


static int
us_arg_find(const us_arg_t *arg, us_str_t name)
{
    for ( /* void */ ; arg; arg = arg->next) {
        if (arg->glob ? us_glob(arg->text, name)
                      : arg->text.len == name.len
                        && memcmp(arg->name, name.data, name.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static int
us_args_match(const void *data, us_str_t piece)
{
    us_str_t          name;
    const us_args_t  *args;

    args = data;

    if (piece.len == 0
        || (args->first[piece.data[0]] == NULL && args->first['*'] == NULL))
    {
        return 0;
    }

    name = us_piece_name(piece);

    return name.len != 0 && (us_arg_find(args->first[name.data[0]], name)
                             || us_arg_find(args->first['*'], name));
}


static void
us_step_args(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_filter(url, us_args_match, ctx->args);
}


/*
 * Session ids by name and shape, because names alone hit too much: "sid" only
 * with a value of 16 or more letters and digits.
 */

static int
us_session_match(const void *data, us_str_t piece)
{
    size_t       i;
    uint8_t      c;
    us_str_t     name;
    const char  *lower;

    static const char *const  names[] = {
        [3] = "sid", [4] = "cfid", [7] = "cftoken", [9] = "phpsessid",
        [10] = "jsessionid", [20] = "aspsessionid"
    };

    name = us_piece_name(piece);
    lower = name.len <= 20 ? names[name.len] : NULL;

    if (lower == NULL) {
        return 0;
    }

    for (i = 0; lower[i]; i++) {
        if ((name.data[i] | 0x20) != lower[i]) {
            return 0;
        }
    }

    /* ASPSESSIONID, and eight letters */

    for ( /* void */ ; i < name.len; i++) {
        if ((uint8_t) ((name.data[i] | 0x20) - 'a') > 25) {
            return 0;
        }
    }

    if (name.len == 3) {
        if (piece.len < name.len + 1 + 16) {
            return 0;
        }

        for (i = name.len + 1; i < piece.len; i++) {
            c = piece.data[i] | 0x20;

            if ((uint8_t) (c - 'a') > 25 && (uint8_t) (c - '0') > 9) {
                return 0;
            }
        }
    }

    return 1;
}


static void
us_step_session(us_url_t *url, const us_step_ctx_t *ctx)
{
    us_query_filter(url, us_session_match, NULL);
}


/* orders of pieces for qsort(): no two have one address */

static int
us_by_address(const void *a, const void *b)
{
    const us_str_t *x = a;
    const us_str_t *y = b;

    return (x->data > y->data) - (x->data < y->data);
}


static int
us_by_name(const void *a, const void *b)
{
    int  rc;

    rc = us_str_compare(us_piece_name(*(const us_str_t *) a),
                        us_piece_name(*(const us_str_t *) b));

    return rc ? rc : us_by_address(a, b);
}


static int
us_by_text(const void *a, const void *b)
{
    int  rc;

    rc = us_str_compare(*(const us_str_t *) a, *(const us_str_t *) b);

    return rc ? rc : us_by_address(a, b);
}


/* copies the query to ws->text and splits it; 0: too many pieces */

static size_t
us_pieces_split(us_url_t *url, us_query_ws_t *ws)
{
    size_t    n;
    us_str_t  query;

    query = us_query(url);

    if (query.len == 0 || query.len > sizeof(ws->text)
        || memchr(query.data, '&', query.len) == NULL)
    {
        return 0;
    }

    query.data = memcpy(ws->text, query.data, query.len);

    for (n = 0; query.len; n++) {
        if (n == US_QUERY_PIECES) {
            return 0;
        }

        us_str_cut(&query, '&', &ws->piece[n]);
    }

    return n;
}


static void
us_pieces_join(us_url_t *url, us_query_ws_t *ws, size_t n)
{
    size_t    i;
    uint8_t  *out;
    us_str_t  query;

    query = us_query(url);
    out = (uint8_t *) query.data;

    for (i = 0; i < n; i++) {
        if (i) {
            *out++ = '&';
        }

        memcpy(out, ws->piece[i].data, ws->piece[i].len);
        out += ws->piece[i].len;
    }

    us_query_end(url, out, query.data + query.len);
}


/* stable by name; only if every piece has a '=', others are not arguments */

static void
us_step_sort(us_url_t *url, const us_step_ctx_t *ctx)
{
    size_t          i, n;
    us_query_ws_t  *ws;

    ws = ctx->query;
    n = us_pieces_split(url, ws);

    for (i = 0; i < n; i++) {
        if (memchr(ws->piece[i].data, '=', ws->piece[i].len) == NULL) {
            return;
        }
    }

    if (n > 1) {
        qsort(ws->piece, n, sizeof(us_str_t), us_by_name);
        us_pieces_join(url, ws, n);
    }
}


/* the first of equal pieces stays, where it is */

static void
us_step_duplicates(us_url_t *url, const us_step_ctx_t *ctx)
{
    size_t          i, n, kept;
    us_query_ws_t  *ws;

    ws = ctx->query;
    n = us_pieces_split(url, ws);

    if (n < 2) {
        return;
    }

    qsort(ws->piece, n, sizeof(us_str_t), us_by_text);

    for (kept = 1, i = 1; i < n; i++) {
        if (us_str_compare(ws->piece[i], ws->piece[kept - 1]) != 0) {
            ws->piece[kept++] = ws->piece[i];
        }
    }

    if (kept == n) {
        return;
    }

    qsort(ws->piece, kept, sizeof(us_str_t), us_by_address);
    us_pieces_join(url, ws, kept);
}


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
    const char    *name;
    unsigned       steps;
} us_profiles[] = {
    [US_PROFILE_CRAWLER] = { "crawler", US_STEP_PARSE },
    [US_PROFILE_CRAWLER_CLEAN] = { "crawler-clean",
                                   US_STEP_PARSE | US_STEP_ARGS },
    [US_PROFILE_WHATWG] = { "whatwg", 0 },
    [US_PROFILE_AGGRESSIVE] = { "aggressive", US_STEP_PARSE | US_STEP_LATE }
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
    return us_profiles[profile].steps;
}


int
us_profile_parse(us_str_t name)
{
    size_t  i;

    for (i = 0; i < US_PROFILES; i++) {
        if (strlen(us_profiles[i].name) == name.len
            && memcmp(us_profiles[i].name, name.data, name.len) == 0)
        {
            return (int) i;
        }
    }

    return -1;
}


const char *
us_profile_name(us_profile_t profile)
{
    return us_profiles[profile].name;
}
