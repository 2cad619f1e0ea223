
/*
 * PUBLIC.  A raw link in, its canonical URL out.
 *
 * A normalizer (us_norm_t) is configuration: profile, steps, user rules.  It
 * is built once, before workers fork, and is read-only from then on, so that
 * any number of threads and processes may use it.  A workspace
 * (us_norm_ws_t) holds the buffers of one caller: one for each thread, no
 * locks, and nothing is allocated for ASCII URLs.
 *
 * A result lives in the workspace until its next use, or, where nothing had to
 * be changed, in the caller's input: neither may be changed while it is used.
 */


#ifndef _US_NORMALIZE_H_INCLUDED_
#define _US_NORMALIZE_H_INCLUDED_


#include "../us_base.h"
#include "us_url.h"


#ifdef __cplusplus
extern "C" {
#endif


typedef enum {
    US_WWW_FIRST = 0,                 /* the first variant seen is canonical */
    US_WWW_KEEP,                      /* two sites */
    US_WWW_STRIP                      /* always without */
} us_www_t;


typedef struct us_norm_s     us_norm_t;
typedef struct us_norm_ws_s  us_norm_ws_t;


/*
 * The canonical URL: us_url_t has the href and where its parts begin (see
 * us_url.h).
 */

typedef struct {
    us_url_t      url;

    /*
     * US_MERGE_*.  Not US_MERGE_NO: "www." may be put before or taken from
     * this host without changing the key: www=first or www=strip, the rest has
     * a dot, is no public suffix, no IP address and no exception.  True for
     * both spellings of a site.
     */
    unsigned      merge:2;

    us_str_t      rule;               /* the rule that refused, if any */
} us_canon_t;


/* a base URL, parsed once for a batch; owns a copy of its text */

typedef struct us_base_s  us_base_t;


us_norm_t *us_norm_create(us_profile_t profile);
void us_norm_destroy(us_norm_t *n);

/* settings, before workers fork; names and texts are copied */

void us_norm_set_www(us_norm_t *n, us_www_t www);
int us_norm_www_except(us_norm_t *n, us_str_t host);     /* -1: no host */
void us_norm_set_max_depth(us_norm_t *n, unsigned max);    /* 0: no limit */
void us_norm_set_max_args(us_norm_t *n, unsigned max);
void us_norm_set_max_repeat(us_norm_t *n, unsigned max);

/*
 * User rules.  name is what clients see of one (see us_rules.h), and may be
 * empty.  host may be empty (any host), else a glob that guards the regex.  On
 * failure they return -1 and fill err with a readable text that has the offset
 * in the pattern.
 */

int us_norm_add_rewrite(us_norm_t *n, us_str_t name, us_str_t host,
    us_str_t regex, us_str_t replacement, us_rule_error_t *err);
int us_norm_add_reject(us_norm_t *n, us_str_t name, us_str_t regex,
    us_rule_error_t *err);
int us_norm_add_accept(us_norm_t *n, us_str_t name, us_str_t regex,
    us_rule_error_t *err);
int us_norm_add_strip_arg(us_norm_t *n, us_str_t name_or_glob);

/*
 * Names the keys that this configuration makes, e.g. "crawler/1 www=first";
 * stored with the data, because keys persist.  Points into n.  The version of
 * a profile stands for its tables, too: Unicode's (us_idna_data.c) and the list
 * of public suffixes (us_suffix_data.c).
 */
us_str_t us_norm_signature(const us_norm_t *n);

/*
 * A signature of 75e9eef names the Unicode version of the ICU that made the
 * keys, "crawler/1 unicode=15.0 www=first".  Canonical URLs are the same.
 *
 * us_norm_same():  1 if only that differs
 * us_norm_of():    a normalizer of this or such a signature, without rules;
 *                  NULL: there is none, or no memory
 */
int us_norm_same(us_str_t a, us_str_t b);
us_norm_t *us_norm_of(us_str_t signature);

us_norm_ws_t *us_norm_ws_create(const us_norm_t *n);
void us_norm_ws_destroy(us_norm_ws_t *ws);

/* overwrites the texts that it has of URLs; no result of it is in use */
void us_norm_ws_wipe(us_norm_ws_t *ws);

/* us_canon_t.merge of a canonical URL; ws is of n */
unsigned us_norm_merge(const us_norm_t *n, us_norm_ws_t *ws, us_str_t href);

/*
 * CPU time that user rules may take from now on, until NULL is set or another
 * budget: *ns is what is left, and goes down.  Without rules nothing happens.
 */
void us_norm_ws_budget(us_norm_ws_t *ws, uint64_t *ns);

/*
 * base may be NULL; in may not lie in ws (the result of another call), copy it
 * first.  out is filled only if US_URL_OK is returned, but for out->rule.
 * Only http and https are US_URL_OK unless any_scheme was set.
 */
us_verdict_t us_normalize(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    const us_base_t *base, us_canon_t *out);

/* the same but for out->merge, which is 0: for callers that keep no URL */
us_verdict_t us_normalize_text(const us_norm_t *n, us_norm_ws_t *ws,
    us_str_t in, const us_base_t *base, us_canon_t *out);

/* the same; calls step() for each step that changed something, in order */
us_verdict_t us_normalize_explain(const us_norm_t *n, us_norm_ws_t *ws,
    us_str_t in, const us_base_t *base, us_canon_t *out, us_explain_pt step,
    void *data);

/* a base: parsed by the profile's parser, any scheme; NULL and *why if bad */
us_base_t *us_base_create(const us_norm_t *n, us_norm_ws_t *ws, us_str_t in,
    us_verdict_t *why);
void us_base_destroy(us_base_t *base);

/* conformance runs: answer every scheme (build/urlstore normalize) */
void us_norm_set_any_scheme(us_norm_t *n, int on);

/* the site: host, with :port if the URL shows one, less a mergeable "www." */
us_str_t us_canon_site(const us_canon_t *canon);

/*
 * The URL itself, then what is before its '?', then what ends with or before
 * each '/', the longest first, down to the host.  Returns their number.
 */
#define US_CANON_CUTS  64
unsigned us_canon_cuts(const us_canon_t *canon, us_str_t *cuts);

const char *us_verdict_name(us_verdict_t v);     /* "scheme", "host", ... */
int us_verdict_rejected(us_verdict_t v);         /* rejected, not invalid */


#ifdef __cplusplus
}
#endif


#endif /* _US_NORMALIZE_H_INCLUDED_ */
