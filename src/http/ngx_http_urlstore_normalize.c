
/*
 * GET /normalize: the URL that would be stored, its parts, and the steps that
 * made it.
 *
 *     {"url": .., "scheme", "host", "port", "path", "file", "query",
 *      "steps": [{"step", "before", "after"}, ...,
 *                {"step": "spell as first seen", .., "first": ID}]}
 *
 * The last step is the store's: a URL takes the spelling (www, and the scheme
 * where the first one stays) of the URL with that id.
 *
 * Another profile than the zone's own gets a normalizer of this worker,
 * without the zone's user rules, when it is first asked for.
 */


#include "ngx_http_urlstore_request.h"


static ngx_int_t ngx_http_urlstore_normalize_profile(ngx_http_request_t *r,
    ngx_http_urlstore_how_t *how);
static ngx_int_t ngx_http_urlstore_normalize_spell(ngx_http_request_t *r,
    us_canon_t *canon, ngx_http_urlstore_how_t *how);
static void ngx_http_urlstore_normalize_respell(us_url_t *u, us_str_t text);
static ngx_int_t ngx_http_urlstore_normalize_out(ngx_http_request_t *r,
    us_canon_t *canon, ngx_http_urlstore_how_t *how);
static ngx_int_t ngx_http_urlstore_normalize_json(ngx_http_request_t *r,
    us_canon_t *canon, ngx_http_urlstore_how_t *how);
static u_char *ngx_http_urlstore_normalize_part(u_char *p, const char *name,
    us_str_t part, ngx_uint_t given);
static void ngx_http_urlstore_normalize_step(void *data, const char *step,
    us_str_t before, us_str_t after);
static void ngx_http_urlstore_normalize_first(ngx_http_urlstore_how_t *how,
    uint64_t id);


ngx_int_t
ngx_http_urlstore_normalize_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    us_canon_t                  canon;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_how_t     how;

    ngx_memzero(&how, sizeof(ngx_http_urlstore_how_t));

    rc = ngx_http_urlstore_normalize_profile(r, &how);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_urlstore_flag(r, "explain")) {

        how.steps = ngx_array_create(r->pool, 1024, 1);
        if (how.steps == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        how.steps->nelts = ngx_sprintf(how.steps->elts, ",\"steps\":[]")
                           - (u_char *) how.steps->elts;
    }

    rc = ngx_http_urlstore_one_url(r, &how, &canon);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (how.norm == NULL && ctx->zone->filter == NULL
        && ngx_http_urlstore_normalize_spell(r, &canon, &how) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_normalize_out(r, &canon, &how) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


/*
 * The spelling under which the URL is stored, or would be.  A reply that
 * depends on it waits until the URL that decided on it is on disk.
 */

static ngx_int_t
ngx_http_urlstore_normalize_spell(ngx_http_request_t *r, us_canon_t *canon,
    ngx_http_urlstore_how_t *how)
{
    u_char                   *p;
    uint64_t                  first;
    us_str_t                  text, before;
    us_store_t               *store;
    us_store_item_t           item;
    us_store_site_t           site;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    store = ctx->zone->store;
    before = canon->url.href;

    ngx_memzero(&item, sizeof(us_store_item_t));
    item.url = before;
    item.merge = canon->merge;

    us_store_seen(store, &item, 1);

    if (item.status == US_SEEN) {
        first = item.id;

    } else if (canon->merge
               && us_store_site(store, us_canon_site(canon), &site) == US_OK)
    {
        first = site.first;
        us_store_spell(store, &item);

    } else {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, before.len + sizeof("swww.") - 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text.data = p;
    text.len = us_store_item_url(&item, p);

    if (text.len == before.len
        && ngx_memcmp(text.data, before.data, text.len) == 0)
    {
        return NGX_OK;
    }

    ctx->lsn = us_store_published(store);
    ctx->tops = 1;
    ctx->top = first + 1;

    ngx_http_urlstore_normalize_respell(&canon->url, text);

    if (how->steps) {
        ngx_http_urlstore_normalize_step(how, "spell as first seen", before,
                                         text);
        ngx_http_urlstore_normalize_first(how, first);
    }

    return NGX_OK;
}


/* text is the same URL with or without www., with another scheme or not */

static void
ngx_http_urlstore_normalize_respell(us_url_t *u, us_str_t text)
{
    int32_t  scheme, all;

    all = (int32_t) text.len - (int32_t) u->href.len;
    scheme = (text.data[4] == 's') - (u->href.data[4] == 's');

    u->href = text;
    u->protocol_end += scheme;
    u->username_end += scheme;
    u->host_start += scheme;
    u->host_end += all;
    u->pathname_start += all;

    if (u->search_start != US_URL_OMITTED) {
        u->search_start += all;
    }

    if (u->hash_start != US_URL_OMITTED) {
        u->hash_start += all;
    }
}


ngx_int_t
ngx_http_urlstore_one_url(ngx_http_request_t *r, ngx_http_urlstore_how_t *how,
    us_canon_t *canon)
{
    ngx_int_t                 rc;
    us_refusal_t              refusal;
    us_verdict_t              verdict;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_query_url(r, ctx->zone, how, canon, &verdict);

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query has no \"url\"");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (verdict == US_URL_OK) {
        return NGX_DECLINED;
    }

    refusal.kind = US_INPUT_URL;
    refusal.verdict = verdict;
    refusal.rule = canon->rule;

    return ngx_http_urlstore_refused(r, &refusal, NULL,
                                     how ? how->steps : NULL);
}


ngx_int_t
ngx_http_urlstore_query_url(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_how_t *how,
    us_canon_t *canon, us_verdict_t *verdict)
{
    uint64_t                       budget;
    us_str_t                       in, text;
    us_base_t                     *base;
    us_norm_t                     *norm;
    ngx_int_t                      rc;
    ngx_str_t                      url, value;
    us_norm_ws_t                  *ws;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    norm = (how && how->norm) ? how->norm : zone->norm;
    ws = (how && how->norm) ? how->ws : zone->ws;

    rc = ngx_http_urlstore_arg(r, "url", &url);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_arg(r, "base", &value) == NGX_ERROR) {
        return NGX_ERROR;
    }

    in.data = url.data;
    in.len = url.len;
    base = NULL;
    canon->rule.len = 0;
    *verdict = US_URL_OK;

    if (url.len > ulcf->max_url) {
        *verdict = US_URL_LENGTH;

    } else if (value.data) {
        text.data = value.data;
        text.len = value.len;

        base = us_base_create(norm, ws, text, verdict);

        if (*verdict != US_URL_OK) {
            *verdict = US_URL_BASE;
        }
    }

    if (*verdict == US_URL_OK) {
        budget = NGX_HTTP_URLSTORE_BUDGET;
        us_norm_ws_budget(ws, &budget);

        *verdict = (how && how->steps)
                   ? us_normalize_explain(norm, ws, in, base, canon,
                                          ngx_http_urlstore_normalize_step,
                                          how)
                   : us_normalize(norm, ws, in, base, canon);

        us_norm_ws_budget(ws, NULL);
    }

    if (base) {
        us_base_destroy(base);
    }

    if (*verdict == US_URL_OK && canon->url.href.len > ulcf->max_url) {
        *verdict = US_URL_LENGTH;
    }

    return NGX_OK;
}


/* ?profile=P; NGX_DECLINED: go on */

static ngx_int_t
ngx_http_urlstore_normalize_profile(ngx_http_request_t *r,
    ngx_http_urlstore_how_t *how)
{
    int                        profile;
    us_str_t                   name;
    us_norm_t                 *norm;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    us_norm_ws_t              *ws;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    rc = ngx_http_urlstore_arg(r, "profile", &value);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    name.data = value.data;
    name.len = value.len;

    profile = us_profile_parse(name);

    if (profile < 0 || profile >= NGX_HTTP_URLSTORE_PROFILES) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "unknown profile \"%*s\"; use "
                                         "crawler, crawler-clean, whatwg, "
                                         "strict-rfc3986 or aggressive",
                                         ngx_min(value.len, 100), value.data);
    }

    if (zone->norms[profile] == NULL) {
        norm = us_norm_create(profile);
        if (norm == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        us_norm_set_www(norm, zone->www);

        ws = us_norm_seal(norm) == 0 ? us_norm_ws_create(norm) : NULL;

        if (ws == NULL) {
            us_norm_destroy(norm);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        zone->norms[profile] = norm;
        zone->wss[profile] = ws;
    }

    if (profile != (int) zone->profile) {
        how->norm = zone->norms[profile];
        how->ws = zone->wss[profile];
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_urlstore_normalize_out(ngx_http_request_t *r, us_canon_t *canon,
    ngx_http_urlstore_how_t *how)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_out_init(&ctx->out, r->pool,
                              us_json_quoted_max(canon->url.href.len * 3)
                              + 256);
    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_urlstore_type(ctx,
               ngx_http_urlstore_accept(r, US_FORMAT_JSON));

    if (ctx->format == US_FORMAT_TEXT) {
        ctx->out.pos = ngx_cpymem(ctx->out.pos, canon->url.href.data,
                                  canon->url.href.len);
        *ctx->out.pos++ = '\n';

    } else {
        rc = ngx_http_urlstore_normalize_json(r, canon, how);
    }

    return rc;
}


static ngx_int_t
ngx_http_urlstore_normalize_json(ngx_http_request_t *r, us_canon_t *canon,
    ngx_http_urlstore_how_t *how)
{
    size_t                    n;
    u_char                   *p;
    us_str_t                  part, path;
    us_url_t                 *u;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;
    u = &canon->url;
    p = out->pos;

    p = ngx_cpymem(p, "{\"url\":", 7);
    p = us_json_quote(p, u->href);

    part.data = u->href.data;
    part.len = u->protocol_end ? u->protocol_end - 1 : 0;
    p = ngx_http_urlstore_normalize_part(p, "scheme", part, 1);

    part = us_url_hostname(u);
    p = ngx_http_urlstore_normalize_part(p, "host", part, 1);

    if (u->port == US_URL_OMITTED) {
        p = ngx_cpymem(p, ",\"port\":null", 12);

    } else {
        p = ngx_sprintf(p, ",\"port\":%uD", u->port);
    }

    path = us_url_pathname(u);
    p = ngx_http_urlstore_normalize_part(p, "path", path, 1);

    /* what follows the last slash */

    part.data = path.data + path.len;

    while (part.data > path.data && part.data[-1] != '/') {
        part.data--;
    }

    part.len = path.data + path.len - part.data;
    p = ngx_http_urlstore_normalize_part(p, "file", part, part.len);

    part = us_url_search(u);

    if (part.len) {
        part.data++;
        part.len--;
    }

    p = ngx_http_urlstore_normalize_part(p, "query", part,
                                         u->search_start != US_URL_OMITTED);

    out->pos = p;

    n = how->steps ? how->steps->nelts : 0;

    if (ngx_http_urlstore_out_room(out, n + 2) != NGX_OK) {
        return NGX_ERROR;
    }

    if (n) {
        out->pos = ngx_cpymem(out->pos, how->steps->elts, n);
    }

    *out->pos++ = '}';
    *out->pos++ = '\n';

    return NGX_OK;
}


static u_char *
ngx_http_urlstore_normalize_part(u_char *p, const char *name, us_str_t part,
    ngx_uint_t given)
{
    p = ngx_sprintf(p, ",\"%s\":", name);

    return given ? us_json_quote(p, part) : ngx_cpymem(p, "null", 4);
}


/*
 * One more element of "steps".  Texts may hold any byte before the host is
 * checked, names the expression of a rule.  Without memory a step is left out.
 */

static void
ngx_http_urlstore_normalize_step(void *data, const char *step,
    us_str_t before, us_str_t after)
{
    ngx_http_urlstore_how_t *how = data;

    u_char    *p;
    us_str_t   name;

    name.data = (u_char *) step;
    name.len = ngx_strlen(step);

    p = ngx_array_push_n(how->steps, us_json_quoted_max(name.len)
                                     + us_json_quoted_max(before.len)
                                     + us_json_quoted_max(after.len) + 64);
    if (p == NULL) {
        return;
    }

    /* over the bracket at the end */

    p--;

    if (p[-1] == '}') {
        *p++ = ',';
    }

    p = ngx_cpymem(p, "{\"step\":", 8);
    p = us_json_quote_bytes(p, name);
    p = ngx_cpymem(p, ",\"before\":", 10);
    p = us_json_quote_bytes(p, before);
    p = ngx_cpymem(p, ",\"after\":", 9);
    p = us_json_quote_bytes(p, after);
    *p++ = '}';
    *p++ = ']';

    how->steps->nelts = p - (u_char *) how->steps->elts;
}


/* the last element gets the id of the URL whose spelling it takes */

static void
ngx_http_urlstore_normalize_first(ngx_http_urlstore_how_t *how, uint64_t id)
{
    u_char  *p;

    p = ngx_array_push_n(how->steps, NGX_INT64_LEN + 16);

    if (p) {
        p = ngx_sprintf(p - 2, ",\"first\":%uL}]", id);
        how->steps->nelts = p - (u_char *) how->steps->elts;
    }
}
