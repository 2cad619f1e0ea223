
/*
 * The laws of the normalizer.  See laws.h.
 *
 *   N(x)       the profile's canonical URL;  W(x)  the standard's href
 *   x ^ b      x resolved against b
 *
 *   plain      N(x) is printable ASCII, not longer than US_URL_MAX, and its
 *              parts lie in order
 *   idempotent N(N(x)) = N(x), with the same parts
 *   stable     W(N(x)) = N(x)
 *   resolve    N(x ^ b) = N(W(x ^ b))
 *   fast       where the fast path answers, the parser answers the same
 *   explain    explaining does not change the answer, and the last step that
 *              is told ends in it
 *   merge      both spellings of a site are merged, or none
 */


#include "laws.h"
#include "url/us_fast.h"
#include "url/us_profile.h"

#include <stdio.h>
#include <stdlib.h>


#define PROFILES  4


typedef struct {
    us_norm_t     *norm;
    us_norm_ws_t  *ws;
} us_laws_norm_t;


static us_laws_norm_t  stored[PROFILES];      /* as the store asks */
static us_laws_norm_t  whatwg;                /* every scheme */

static uint8_t         first[US_HREF_ROOM];
static uint8_t         absolute[US_HREF_ROOM];


static void
us_laws_open_one(us_laws_norm_t *n, us_profile_t profile, int any)
{
    n->norm = us_norm_create(profile);

    if (n->norm == NULL) {
        abort();
    }

    us_norm_set_any_scheme(n->norm, any);

    n->ws = us_norm_ws_create(n->norm);

    if (n->ws == NULL) {
        abort();
    }
}


void
us_laws_open(void)
{
    us_profile_t  p;

    for (p = 0; p < PROFILES; p++) {
        us_laws_open_one(&stored[p], p, 0);
    }

    us_laws_open_one(&whatwg, US_PROFILE_WHATWG, 1);
}


void
us_laws_broken(const char *law, us_str_t in, const us_str_t *base, us_str_t a,
    us_str_t b)
{
    fprintf(stderr, "law \"%s\" broken\n  input: \"%.*s\"\n", law,
            (int) in.len, in.data);

    if (base) {
        fprintf(stderr, "  base:  \"%.*s\"\n", (int) base->len, base->data);
    }

    fprintf(stderr, "  got:   \"%.*s\"\n  and:   \"%.*s\"\n", (int) a.len,
            a.data, (int) b.len, b.data);

    abort();
}


static us_verdict_t
us_laws_run(us_laws_norm_t *n, us_str_t in, const us_str_t *base,
    us_canon_t *out)
{
    us_base_t     *b;
    us_verdict_t   rc;

    if (base == NULL) {
        return us_normalize(n->norm, n->ws, in, NULL, out);
    }

    b = us_base_create(n->norm, n->ws, *base, &rc);

    if (b) {
        rc = us_normalize(n->norm, n->ws, in, b, out);
        us_base_destroy(b);
    }

    return rc;
}


us_verdict_t
us_laws_normalize(us_profile_t profile, us_str_t in, const us_str_t *base,
    us_canon_t *out)
{
    return us_laws_run(&stored[profile], in, base, out);
}


static int
us_same(us_str_t a, us_str_t b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}


static int
us_same_parts(const us_url_t *a, const us_url_t *b)
{
    return us_same(a->href, b->href) && a->protocol_end == b->protocol_end
           && a->username_end == b->username_end
           && a->host_start == b->host_start && a->host_end == b->host_end
           && a->port == b->port && a->pathname_start == b->pathname_start
           && a->search_start == b->search_start
           && a->hash_start == b->hash_start;
}


static void
us_laws_plain(us_str_t in, const us_str_t *base, const us_url_t *u)
{
    size_t    i, at;
    uint32_t  order[8];

    for (i = 0; i < u->href.len; i++) {
        if (u->href.data[i] <= ' ' || u->href.data[i] >= 0x7f) {
            us_laws_broken("plain", in, base, u->href, u->href);
        }
    }

    order[0] = u->protocol_end;
    order[1] = u->username_end;
    order[2] = u->host_start;
    order[3] = u->host_end;
    order[4] = u->pathname_start;
    order[5] = u->search_start;
    order[6] = u->hash_start;
    order[7] = (uint32_t) u->href.len;

    for (at = 0, i = 0; i < 8; i++) {
        if (order[i] == US_URL_OMITTED) {
            continue;
        }

        if (order[i] < at || order[i] > u->href.len) {
            us_laws_broken("plain: parts", in, base, u->href, u->href);
        }

        at = order[i];
    }

    if (u->href.len > US_URL_MAX || us_url_hostname(u).len == 0) {
        us_laws_broken("plain: length", in, base, u->href,
                       us_url_hostname(u));
    }
}


typedef struct {
    us_str_t  last;
    uint8_t   text[US_HREF_ROOM];
} us_laws_explain_t;


static void
us_laws_step(void *data, const char *step, us_str_t before, us_str_t after)
{
    us_laws_explain_t  *e;

    e = data;

    memcpy(e->text, after.data, after.len);
    e->last.data = e->text;
    e->last.len = after.len;
}


static void
us_laws_explain(us_laws_norm_t *n, us_str_t in, const us_str_t *base,
    us_verdict_t rc, us_str_t href)
{
    us_base_t                 *b;
    us_canon_t                 out;
    us_verdict_t               again;
    static us_laws_explain_t   e;

    b = NULL;
    e.last.data = NULL;

    if (base) {
        b = us_base_create(n->norm, n->ws, *base, &again);

        if (b == NULL) {
            return;
        }
    }

    again = us_normalize_explain(n->norm, n->ws, in, b, &out, us_laws_step,
                                 &e);
    us_base_destroy(b);

    if (again != rc || (rc == US_URL_OK && !us_same(out.url.href, href))
        || (rc == US_URL_OK && e.last.data && !us_same(e.last, href)))
    {
        us_laws_broken("explain", in, base, href,
                       rc == US_URL_OK ? out.url.href : us_string("-"));
    }
}


/* both spellings of a site are merged */

static void
us_laws_merge(us_laws_norm_t *n, us_str_t in, const us_url_t *u)
{
    size_t          head, skip;
    us_str_t        twin;
    us_canon_t      out;
    static uint8_t  text[US_URL_MAX + 4];

    if (us_url_hostname(u).data != u->href.data + u->protocol_end + 2) {
        us_laws_broken("merge: userinfo", in, NULL, u->href, u->href);
    }

    head = u->host_start;
    skip = u->href.len > head + 4
           && memcmp(u->href.data + head, "www.", 4) == 0 ? 4 : 0;

    memcpy(text, u->href.data, head);
    memcpy(text + head, "www.", 4);
    memcpy(text + head + 4 - skip, u->href.data + head + skip,
           u->href.len - head - skip);

    twin.data = text;
    twin.len = u->href.len + 4 - 2 * skip;

    if (skip) {
        twin.len = u->href.len - 4;
        memcpy(text + head, u->href.data + head + 4, u->href.len - head - 4);
    }

    if (twin.len > US_URL_MAX) {
        return;
    }

    if (us_normalize(n->norm, n->ws, twin, NULL, &out) != US_URL_OK
        || !us_same(out.url.href, twin) || !out.merge)
    {
        us_laws_broken("merge", in, NULL, twin, u->href);
    }
}


static void
us_laws_profile(us_profile_t p, us_str_t in, const us_str_t *base)
{
    us_url_t      parts;
    us_str_t      href;
    us_canon_t    a, b;
    us_verdict_t  rc;
    unsigned      merge;

    rc = us_laws_run(&stored[p], in, base, &a);

    href.data = first;
    href.len = 0;
    merge = 0;
    memset(&parts, 0, sizeof(parts));

    if (rc == US_URL_OK) {
        parts = a.url;
        merge = a.merge;
        us_laws_plain(in, base, &parts);

        memcpy(first, parts.href.data, parts.href.len);
        href.len = parts.href.len;
        parts.href = href;

        if (us_laws_run(&stored[p], href, NULL, &b) != US_URL_OK
            || !us_same_parts(&b.url, &parts) || b.merge != merge)
        {
            us_laws_broken("idempotent", in, base, href, b.url.href);
        }

        if (us_laws_run(&whatwg, href, NULL, &b) != US_URL_OK
            || !us_same_parts(&b.url, &parts))
        {
            us_laws_broken("stable", in, base, href, b.url.href);
        }

        if (merge) {
            us_laws_merge(&stored[p], in, &parts);
        }
    }

    us_laws_explain(&stored[p], in, base, rc, href);
}


/* a result that was refused for its length says nothing */

static void
us_laws_resolve(us_profile_t p, us_str_t in, us_str_t base)
{
    us_str_t      abs;
    us_canon_t    a, b;
    us_verdict_t  rc, again;

    rc = us_laws_run(&whatwg, in, &base, &a);

    if (rc == US_URL_LENGTH) {
        return;
    }

    again = us_laws_run(&stored[p], in, &base, &b);

    if (again == US_URL_LENGTH) {
        return;
    }

    if (rc != US_URL_OK) {
        if (again != rc) {
            us_laws_broken("resolve: refused", in, &base,
                           us_string("absolute"), us_string("relative"));
        }

        return;
    }

    abs.data = absolute;
    abs.len = a.url.href.len;
    memcpy(absolute, a.url.href.data, abs.len);

    if (again == US_URL_OK) {
        memcpy(first, b.url.href.data, b.url.href.len);
        b.url.href.data = first;
    }

    rc = us_laws_run(&stored[p], abs, NULL, &a);

    if (rc != again
        || (rc == US_URL_OK && !us_same_parts(&a.url, &b.url)))
    {
        us_laws_broken("resolve", in, &base, abs,
                       again == US_URL_OK ? b.url.href : us_string("-"));
    }
}


static void
us_laws_fast(us_str_t in, unsigned steps)
{
    us_url_t               quick, slow;
    static us_whatwg_ws_t  ws;

    if (!us_fast(in, steps, first, &quick)) {
        return;
    }

    /* what is canonical has no host that needs tables */

    if (us_whatwg_parse(&ws, in, NULL, steps, absolute, &slow)
        != US_URL_OK || !us_same_parts(&quick, &slow))
    {
        us_laws_broken("fast", in, NULL, quick.href, slow.href);
    }
}


void
us_laws_check(us_str_t in, const us_str_t *base)
{
    us_profile_t  p;

    us_laws_fast(in, 0);
    us_laws_fast(in, US_STEP_PARSE);
    us_laws_fast(in, US_STEP_PERCENT);
    us_laws_fast(in, US_STEP_QUERY);
    us_laws_fast(in, US_STEP_FRAGMENT | US_STEP_QUERY);

    for (p = 0; p < PROFILES; p++) {
        us_laws_profile(p, in, base);

        if (base) {
            us_laws_resolve(p, in, *base);
        }
    }
}
