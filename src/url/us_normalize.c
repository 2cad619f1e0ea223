
/*
 * The front door: see us_normalize.h.
 *
 *   in, base --> fast, whatwg --> late steps --> rewrite rules --.
 *                           ^     (in place)                    |
 *                           `-- at most 4 rounds, if changed ---'
 *                                      |
 *            limits, reject/accept rules, www strip, merge --> out
 *
 * The URL is in the workspace's href, or in the caller's input if nothing had
 * to be changed.
 */


#include "us_fast.h"
#include "us_idna.h"
#include "us_normalize.h"
#include "us_profile.h"
#include "us_rules.h"
#include "us_site.h"
#include "../us_utf8.h"

#include <stdio.h>
#include <stdlib.h>


#define US_REWRITE_ROUNDS  4

/* segments that us_path_repeats() looks at */
#define US_LIMITS_SEGMENTS  1024


/*
 * Native limits against traps; 0: no limit.
 *
 * depth    segments that are not empty: /a/b/c.html has 3, /a/b/ has 2
 * args     pieces of the query
 * repeat   how often a group of segments may stand in a row, whatever its
 *          length: with 2, /a/b/a/b/x passes and /a/b/a/b/a/b/x does not
 */

typedef struct {
    unsigned          depth;
    unsigned          args;
    unsigned          repeat;
} us_limits_t;


struct us_norm_s {
    us_profile_t      profile;
    unsigned          steps;
    us_www_t          www;
    unsigned          any_scheme;

    us_limits_t       limits;
    us_args_t         args;
    us_rules_t       *rules;
    us_site_t        *site;

    char              signature[96];
};


struct us_norm_ws_s {
    us_rules_ws_t    *rules;          /* NULL: no rules */

    us_explain_pt     explain;        /* NULL but in us_normalize_explain() */
    void             *data;
    us_str_t          before;         /* in prior[] */

    us_site_memo_t    memo;
    us_whatwg_ws_t    whatwg;
    us_query_ws_t     query;
    uint8_t           href[US_HREF_ROOM];
    uint8_t           prior[US_HREF_ROOM];
    uint8_t           last[US_URL_MAX];
};


struct us_base_s {
    us_url_t          url;
    uint8_t           text[];
};


us_norm_t *
us_norm_create(us_profile_t profile)
{
    size_t      i;
    us_norm_t  *n;

    n = calloc(1, sizeof(us_norm_t));

    if (n == NULL) {
        return NULL;
    }

    n->profile = profile;
    n->steps = us_profile_steps(profile);
    us_norm_set_www(n, US_WWW_FIRST);
    n->rules = us_rules_create();
    n->site = us_site_create();

    if (n->rules == NULL || n->site == NULL) {
        goto failed;
    }

    for (i = 0; (n->steps & US_STEP_ARGS) && us_tracking_args[i]; i++) {
        if (us_args_add(&n->args, us_str_of(us_tracking_args[i])) != 0) {
            goto failed;
        }
    }

    return n;

failed:

    us_norm_destroy(n);

    return NULL;
}


void
us_norm_destroy(us_norm_t *n)
{
    if (n) {
        us_args_free(&n->args);
        us_rules_destroy(n->rules);
        us_site_destroy(n->site);
        free(n);
    }
}


void
us_norm_set_www(us_norm_t *n, us_www_t www)
{
    static const char *const  how[] = { "first", "keep", "strip" };

    n->www = www;

    snprintf(n->signature, sizeof(n->signature), "%s/%d www=%s",
             us_profile_name(n->profile), US_PROFILE_VERSION, how[www]);
}


int
us_norm_www_except(us_norm_t *n, us_str_t host)
{
    size_t   i;
    uint8_t  ascii[256], any;
    ssize_t  len;

    for (any = 0, i = 0; i < host.len; i++) {
        any |= host.data[i];
    }

    if (any >= 0x80) {
        len = us_utf8_valid(host)
              ? us_idna_to_ascii(host, ascii, sizeof(ascii)) : -1;

        if (len <= 0) {
            return -1;
        }

        host.data = ascii;
        host.len = len;
    }

    return us_site_except(n->site, host);
}


void
us_norm_set_max_depth(us_norm_t *n, unsigned max)
{
    n->limits.depth = max;
}


void
us_norm_set_max_args(us_norm_t *n, unsigned max)
{
    n->limits.args = max;
}


void
us_norm_set_max_repeat(us_norm_t *n, unsigned max)
{
    n->limits.repeat = max;
}


void
us_norm_set_any_scheme(us_norm_t *n, int on)
{
    n->any_scheme = on;
}


int
us_norm_add_rewrite(us_norm_t *n, us_str_t name, us_str_t host,
    us_str_t regex, us_str_t replacement, us_rule_error_t *err)
{
    return us_rules_add(n->rules, US_RULE_REWRITE, name, host, regex,
                        replacement, err);
}


int
us_norm_add_reject(us_norm_t *n, us_str_t name, us_str_t regex,
    us_rule_error_t *err)
{
    return us_rules_add(n->rules, US_RULE_REJECT, name, us_string(""), regex,
                        us_string(""), err);
}


int
us_norm_add_accept(us_norm_t *n, us_str_t name, us_str_t regex,
    us_rule_error_t *err)
{
    return us_rules_add(n->rules, US_RULE_ACCEPT, name, us_string(""), regex,
                        us_string(""), err);
}


int
us_norm_add_strip_arg(us_norm_t *n, us_str_t name_or_glob)
{
    n->steps |= US_STEP_ARGS;

    return us_args_add(&n->args, name_or_glob);
}


us_str_t
us_norm_signature(const us_norm_t *n)
{
    return us_str_of(n->signature);
}


/* past the Unicode version, at p */

static const uint8_t *
us_norm_unicode(const uint8_t *p, const uint8_t *end)
{
    static const char  key[] = " unicode=";

    if ((size_t) (end - p) >= sizeof(key) - 1
        && memcmp(p, key, sizeof(key) - 1) == 0)
    {
        for (p++; p < end && *p != ' '; p++) { /* void */ }
    }

    return p;
}


int
us_norm_same(us_str_t a, us_str_t b)
{
    const uint8_t  *p, *q, *p_end, *q_end;

    p = a.data;
    q = b.data;
    p_end = p + a.len;
    q_end = q + b.len;

    for ( ;; ) {
        p = us_norm_unicode(p, p_end);
        q = us_norm_unicode(q, q_end);

        if (p == p_end || q == q_end) {
            return p == p_end && q == q_end;
        }

        if (*p++ != *q++) {
            return 0;
        }
    }
}


us_norm_t *
us_norm_of(us_str_t signature)
{
    int         profile, www;
    us_str_t    rest, name;
    us_norm_t  *n;

    rest = signature;
    us_str_cut(&rest, '/', &name);

    profile = us_profile_parse(name);

    for (www = US_WWW_FIRST; profile != -1 && www <= US_WWW_STRIP; www++) {
        n = us_norm_create((us_profile_t) profile);

        if (n) {
            us_norm_set_www(n, (us_www_t) www);

            if (us_norm_same(us_norm_signature(n), signature)) {
                return n;
            }
        }

        us_norm_destroy(n);
    }

    return NULL;
}


us_norm_ws_t *
us_norm_ws_create(const us_norm_t *n)
{
    us_norm_ws_t  *ws;

    ws = malloc(sizeof(us_norm_ws_t));

    if (ws == NULL) {
        return NULL;
    }

    ws->rules = NULL;
    ws->explain = NULL;
    memset(&ws->memo, 0, sizeof(ws->memo));

    if (us_rules_any(n->rules)) {
        ws->rules = us_rules_ws_create(n->rules);

        if (ws->rules == NULL) {
            free(ws);
            return NULL;
        }
    }

    return ws;
}


void
us_norm_ws_destroy(us_norm_ws_t *ws)
{
    if (ws) {
        us_rules_ws_destroy(ws->rules);
        free(ws);
    }
}


void
us_norm_ws_wipe(us_norm_ws_t *ws)
{
    if (ws->rules) {
        us_rules_ws_wipe(ws->rules);
    }

    explicit_bzero((uint8_t *) ws + offsetof(us_norm_ws_t, memo),
                   sizeof(us_norm_ws_t) - offsetof(us_norm_ws_t, memo));
}


void
us_norm_ws_budget(us_norm_ws_t *ws, uint64_t *ns)
{
    if (ws->rules) {
        us_rules_ws_budget(ws->rules, ns);
    }
}


/*
 * Segment i begins at the slash at[i].  A run of period p is a stretch in
 * which segment i equals segment i + p: its bytes are then the same p
 * segments further on.  It holds max + 1 groups when p * max segments in a row
 * are equal to those p further.  At most US_LIMITS_SEGMENTS ^ 2 / (max + 1)
 * comparisons, nearly all of them of one hash.
 */

static int
us_path_repeats(us_str_t path, unsigned max)
{
    int        len;
    size_t     i, p, n, run;
    uint32_t   h;
    uint16_t   at[US_LIMITS_SEGMENTS + 1];
    uint32_t   hash[US_LIMITS_SEGMENTS];

    for (n = 0, i = 0; i < path.len && n < US_LIMITS_SEGMENTS; n++) {
        at[n] = (uint16_t) i;

        for (h = 2166136261u, i++; i < path.len && path.data[i] != '/'; i++) {
            h = (h ^ path.data[i]) * 16777619;
        }

        hash[n] = h;
    }

    at[n] = (uint16_t) i;

    for (p = 1; p <= n / ((size_t) max + 1); p++) {

        for (run = 0, i = 0; i + p < n; i++) {

            if (hash[i] != hash[i + p]) {
                run = 0;
                continue;
            }

            if (++run < p * max) {
                continue;
            }

            len = at[i + 1] - at[i + 1 - run];

            if (at[i + 1 + p] - at[i + 1 - run + p] == len
                && memcmp(path.data + at[i + 1 - run],
                          path.data + at[i + 1 - run + p], (size_t) len) == 0)
            {
                return 1;
            }

            run = 0;
        }
    }

    return 0;
}


static us_verdict_t
us_limits_check(const us_limits_t *limits, const us_url_t *url)
{
    size_t    i;
    unsigned  depth;
    us_str_t  path;

    if (limits->depth) {
        path = us_url_pathname(url);

        for (depth = 0, i = 0; i + 1 < path.len; i++) {
            depth += path.data[i] == '/' && path.data[i + 1] != '/';
        }

        if (depth > limits->depth) {
            return US_URL_DEPTH;
        }
    }

    if (limits->args && us_query_count(url) > limits->args) {
        return US_URL_ARGS;
    }

    if (limits->repeat
        && us_path_repeats(us_url_pathname(url), limits->repeat))
    {
        return US_URL_REPEAT;
    }

    return US_URL_OK;
}


/* US_MERGE_*, of the host of a URL */

static unsigned
us_norm_merge_host(const us_norm_t *n, us_norm_ws_t *ws, const us_url_t *url)
{
    if (n->www == US_WWW_KEEP || url->href.data[url->host_start] == '@'
        || !us_site_merge(n->site, us_url_hostname(url), &ws->memo))
    {
        return US_MERGE_NO;
    }

    return n->www == US_WWW_FIRST ? US_MERGE_FIRST : US_MERGE_STRIP;
}


/* the parser, with some of the profile's steps: only http is stored */

static us_verdict_t
us_norm_parse_steps(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_url_t *base, unsigned steps, us_url_t *url)
{
    us_scheme_t   scheme;
    us_verdict_t  rc;

    rc = us_whatwg_parse(&ws->whatwg, in, base, steps, ws->href, url);

    if (rc != US_URL_OK || n->any_scheme) {
        return rc;
    }

    scheme = us_url_scheme(url);

    return scheme == US_SCHEME_HTTP || scheme == US_SCHEME_HTTPS
           ? US_URL_OK : US_URL_SCHEME;
}


static void
us_explain_after(us_norm_ws_t *ws, const us_url_t *url, const char *step)
{
    if (ws->explain
        && (ws->before.len != url->href.len
            || memcmp(ws->before.data, url->href.data, url->href.len) != 0))
    {
        ws->explain(ws->data, step, ws->before, url->href);
    }
}


/* keeps the URL, which explain compares with the result of the next step */

static void
us_explain_before(us_norm_ws_t *ws, const us_url_t *url)
{
    if (ws->explain) {
        memcpy(ws->prior, url->href.data, url->href.len);
        ws->before.data = ws->prior;
        ws->before.len = url->href.len;
    }
}


/* parses once more for each step of the parser, with one step more each time */

static us_verdict_t
us_norm_parse_explain(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_url_t *base, us_url_t *url)
{
    unsigned          steps;
    us_verdict_t      rc;
    const us_step_t  *step;

    ws->before = in;

    rc = us_norm_parse_steps(n, ws, in, base, 0, url);

    if (rc != US_URL_OK) {
        return rc;
    }

    us_explain_after(ws, url, base ? "resolve" : "parse");

    steps = 0;

    for (step = us_steps; step->step & US_STEP_PARSE; step++) {

        if (!(step->step & n->steps)) {
            continue;
        }

        us_explain_before(ws, url);

        steps |= step->step;
        rc = us_norm_parse_steps(n, ws, in, base, steps, url);

        if (rc != US_URL_OK) {
            return rc;
        }

        us_explain_after(ws, url, step->name);
    }

    return US_URL_OK;
}


static us_verdict_t
us_norm_parse(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_url_t *base, us_url_t *url)
{
    us_verdict_t  rc;

    if (ws->explain) {
        rc = us_norm_parse_explain(n, ws, in, base, url);

    } else if (us_fast(in, n->steps & US_STEP_PARSE, ws->href, url)) {
        return US_URL_OK;

    } else {
        rc = us_norm_parse_steps(n, ws, in, base, n->steps & US_STEP_PARSE,
                                 url);
    }

    if (rc == US_URL_OK && url->href.len > US_URL_MAX) {
        return US_URL_LENGTH;
    }

    return rc;
}


/* the text is changed in place, so it must be the workspace's */

static void
us_norm_own(us_norm_ws_t *ws, us_url_t *url)
{
    if (url->href.data != ws->href) {
        memcpy(ws->href, url->href.data, url->href.len);
        url->href.data = ws->href;
    }
}


static void
us_norm_late(const us_norm_t *n, us_norm_ws_t *ws, us_url_t *url)
{
    unsigned          steps;
    us_step_ctx_t     ctx;
    const us_step_t  *step;

    steps = n->steps & US_STEP_LATE;

    if (url->search_start == US_URL_OMITTED) {
        steps &= US_STEP_PATH;
    }

    if (steps == 0) {
        return;
    }

    ctx.args = &n->args;
    ctx.query = &ws->query;

    us_norm_own(ws, url);

    for (step = us_steps; step->step; step++) {

        if (!(step->step & steps)) {
            continue;
        }

        us_explain_before(ws, url);
        step->run(url, &ctx);
        us_explain_after(ws, url, step->name);
    }
}


/*
 * Rewrites until nothing changes.  A change that normalization undoes does not
 * count, so that a normalized URL stays as it is.  The normalization of what a
 * rule has made is one step for explain, whatever it changes.
 */

static us_verdict_t
us_norm_rewrite(const us_norm_t *n, us_norm_ws_t *ws, us_canon_t *out)
{
    int            changed;
    size_t         len;
    unsigned       round;
    us_str_t       text;
    us_url_t      *url;
    us_verdict_t   rc;
    us_explain_pt  explain;

    url = &out->url;

    for (round = 0; /* void */ ; round++) {

        rc = us_rules_apply(n->rules, ws->rules, url, &text, &changed,
                            &out->rule, ws->explain, ws->data);

        if (rc != US_URL_OK || !changed) {
            return rc;
        }

        len = url->href.len;
        memcpy(ws->last, url->href.data, len);

        explain = ws->explain;
        ws->explain = NULL;

        rc = us_norm_parse(n, ws, text, NULL, url);

        if (rc == US_URL_OK) {

            /* copied: the next round overwrites the text of the rules */

            us_norm_own(ws, url);

            if (n->steps & US_STEP_LATE) {
                us_norm_late(n, ws, url);
            }
        }

        ws->explain = explain;

        if (rc != US_URL_OK) {
            return rc;
        }

        if (explain) {
            ws->before = text;
            us_explain_after(ws, url, "normalize again");
        }

        if (url->href.len == len && memcmp(url->href.data, ws->last, len) == 0)
        {
            return US_URL_OK;
        }

        if (round == US_REWRITE_ROUNDS) {
            return US_URL_REWRITE_LOOP;
        }
    }
}


static void
us_norm_www_strip(us_norm_ws_t *ws, us_url_t *url)
{
    uint8_t  *host;

    us_norm_own(ws, url);
    us_explain_before(ws, url);

    host = ws->href + url->host_start;

    us_url_remove(url, host, host + 4);

    url->host_end -= 4;
    url->pathname_start -= 4;

    us_explain_after(ws, url, "strip www");
}


us_verdict_t
us_normalize_text(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_base_t *base, us_canon_t *out)
{
    us_url_t      *url;
    us_verdict_t   rc;

    url = &out->url;
    out->rule.len = 0;
    out->rule.data = NULL;
    out->merge = 0;

    rc = us_norm_parse(n, ws, in, base ? &base->url : NULL, url);

    if (rc != US_URL_OK) {
        return rc;
    }

    if (n->steps & US_STEP_LATE) {
        us_norm_late(n, ws, url);
    }

    if (ws->rules) {
        rc = us_norm_rewrite(n, ws, out);

        if (rc != US_URL_OK) {
            return rc;
        }
    }

    rc = us_limits_check(&n->limits, url);

    if (rc != US_URL_OK) {
        return rc;
    }

    if (ws->rules) {
        rc = us_rules_decide(n->rules, ws->rules, url->href, &out->rule);

        if (rc != US_URL_OK) {
            return rc;
        }
    }

    if (n->www == US_WWW_STRIP && us_has_www(us_url_hostname(url))
        && us_norm_merge_host(n, ws, url))
    {
        us_norm_www_strip(ws, url);
    }

    return US_URL_OK;
}


us_verdict_t
us_normalize(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_base_t *base, us_canon_t *out)
{
    us_verdict_t  rc;

    rc = us_normalize_text(n, ws, in, base, out);

    if (rc == US_URL_OK) {
        out->merge = us_norm_merge_host(n, ws, &out->url);
    }

    return rc;
}


unsigned
us_norm_merge(const us_norm_t *n, us_norm_ws_t *ws, us_str_t href)
{
    us_url_t  url;

    return us_whatwg_parse(&ws->whatwg, href, NULL, 0, ws->href, &url)
           == US_URL_OK ? us_norm_merge_host(n, ws, &url) : US_MERGE_NO;
}


us_verdict_t
us_normalize_explain(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_base_t *base, us_canon_t *out, us_explain_pt step, void *data)
{
    us_verdict_t  rc;

    ws->explain = step;
    ws->data = data;

    rc = us_normalize(n, ws, in, base, out);

    ws->explain = NULL;

    return rc;
}


us_base_t *
us_base_create(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    us_verdict_t *why)
{
    us_url_t    url;
    us_base_t  *base;

    *why = us_whatwg_parse(&ws->whatwg, in, NULL, n->steps & US_STEP_PARSE,
                           ws->href, &url);

    if (*why == US_URL_OK && url.href.len > US_URL_MAX) {
        *why = US_URL_LENGTH;
    }

    if (*why != US_URL_OK) {
        return NULL;
    }

    base = malloc(sizeof(us_base_t) + url.href.len);

    if (base == NULL) {
        *why = US_URL_LENGTH;
        return NULL;
    }

    memcpy(base->text, url.href.data, url.href.len);
    base->url = url;
    base->url.href.data = base->text;

    return base;
}


void
us_base_destroy(us_base_t *base)
{
    free(base);
}


us_str_t
us_canon_site(const us_canon_t *canon)
{
    us_str_t  site;

    site = us_url_host(&canon->url);

    if (canon->merge && us_has_www(site)) {
        site.data += 4;
        site.len -= 4;
    }

    return site;
}


unsigned
us_canon_cuts(const us_canon_t *canon, us_str_t *cuts)
{
    size_t    i, path;
    unsigned  n;
    us_str_t  cut;

    cut = canon->url.href;
    path = canon->url.pathname_start;

    n = 0;
    cuts[n++] = cut;

    if (canon->url.search_start != US_URL_OMITTED
        && canon->url.search_start < cut.len)
    {
        cut.len = canon->url.search_start;
        cuts[n++] = cut;
    }

    for (i = cut.len; i > path && n < US_CANON_CUTS - 1; i--) {

        if (cut.data[i - 1] != '/') {
            continue;
        }

        /* "dir/", and "dir" if it is not the root */

        if (i < cut.len) {
            cut.len = i;
            cuts[n++] = cut;
        }

        if (i - 1 > path) {
            cut.len = i - 1;
            cuts[n++] = cut;
        }
    }

    return n;
}


const char *
us_verdict_name(us_verdict_t v)
{
    static const char *const  names[] = {
        "ok", "scheme", "host", "port", "utf8", "control", "length",
        "no-base", "base", "rule", "depth", "args", "repeat", "rewrite-loop",
        "budget"
    };

    return names[v];
}


int
us_verdict_rejected(us_verdict_t v)
{
    return v >= US_URL_RULE;
}
