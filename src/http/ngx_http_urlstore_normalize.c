
/*
 * GET /normalize: the URL that would be stored, its parts, and the steps that
 * made it (api/us_list.h).
 *
 * The last step is the store's: a URL takes the spelling (www, and the scheme
 * where the first one stays) of the URL with that id.
 *
 * Another profile than the zone's own gets a normalizer of the request, without
 * the zone's user rules.
 */


#include "ngx_http_urlstore_request.h"
#include "../us_text.h"


/* one more element of "steps"; without memory it is left out */

static void
ngx_http_urlstore_normalize_step(void *data, const char *step,
    us_str_t before, us_str_t after)
{
    ngx_http_urlstore_how_t *how = data;

    u_char    *p;
    us_str_t   name;

    name = us_str_of(step);

    p = ngx_array_push_n(how->steps, us_explain_step_max(name.len, before.len,
                                                         after.len));
    if (p) {
        how->steps->nelts = us_explain_step(p, name, before, after)
                            - (u_char *) how->steps->elts;
    }
}


/*
 * The spelling under which the URL is stored, or would be.  A reply that
 * depends on it waits until the URL that decided on it is on disk.
 */

static ngx_int_t
ngx_http_urlstore_normalize_spell(ngx_http_urlstore_ctx_t *ctx,
    us_canon_t *canon, ngx_http_urlstore_how_t *how)
{
    u_char   *p;
    uint64_t  first;
    us_str_t  text, before;

    before = canon->url.href;

    p = ngx_pnalloc(ctx->r->pool, before.len + US_EXPLAIN_SPELL);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (!us_explain_spelling(ctx->zone->store, canon, p, &text, &first)) {
        return NGX_OK;
    }

    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;
    ctx->top = first + 1;

    us_explain_respell(&canon->url, text);

    if (how->steps == NULL) {
        return NGX_OK;
    }

    ngx_http_urlstore_normalize_step(how, "spell as first seen", before,
                                     text);

    p = ngx_array_push_n(how->steps, US_EXPLAIN_FIRST);

    if (p) {
        p = us_explain_first(p, ngx_http_urlstore_id(ctx->zone, first));
        how->steps->nelts = p - (u_char *) how->steps->elts;
    }

    return NGX_OK;
}


static void
ngx_http_urlstore_normalize_cleanup(void *data)
{
    ngx_http_urlstore_how_t *how = data;

    us_norm_ws_destroy(how->ws);
    us_norm_destroy(how->norm);
}


/* ?profile=P; NGX_DECLINED: go on */

static ngx_int_t
ngx_http_urlstore_normalize_profile(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_how_t *how)
{
    us_str_t   own, name, profile, signature;
    ngx_str_t  value;
    u_char     buf[128];

    if (!ngx_http_urlstore_arg(ctx, "profile", &value)) {
        return NGX_DECLINED;
    }

    profile = ngx_http_urlstore_str(&value);

    if (us_profile_parse(profile) == -1) {
        return ngx_http_urlstore_bad(ctx, "unknown profile \"%*s\"; use "
                                     "crawler, crawler-clean, whatwg or "
                                     "aggressive", ngx_min(value.len, 100),
                                     value.data);
    }

    /* the zone's signature, but for the profile */

    own = us_norm_signature(ctx->zone->norm);
    (void) us_str_cut(&own, '/', &name);

    if (us_str_compare(name, profile) == 0) {
        return NGX_DECLINED;
    }

    signature.data = buf;
    signature.len = us_json_printf(buf, "%V/%V", profile, own) - buf;

    how->norm = us_norm_of(signature);
    how->ws = how->norm ? us_norm_ws_create(how->norm) : NULL;

    return how->ws ? NGX_DECLINED : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


ngx_int_t
ngx_http_urlstore_normalize_handler(ngx_http_urlstore_ctx_t *ctx)
{
    size_t                    n;
    us_str_t                  url;
    ngx_int_t                 rc;
    us_canon_t                canon;
    ngx_pool_cleanup_t       *cln;
    ngx_http_urlstore_how_t  *how;
    ngx_http_urlstore_out_t  *out;

    cln = ngx_pool_cleanup_add(ctx->r->pool, sizeof(ngx_http_urlstore_how_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    how = cln->data;
    ngx_memzero(how, sizeof(ngx_http_urlstore_how_t));

    cln->handler = ngx_http_urlstore_normalize_cleanup;

    rc = ngx_http_urlstore_normalize_profile(ctx, how);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_urlstore_flag(ctx->r, "explain")) {

        how->steps = ngx_array_create(ctx->r->pool, 1024, 1);
        if (how->steps == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        how->steps->nelts = us_explain_begin(how->steps->elts)
                           - (u_char *) how->steps->elts;
    }

    rc = ngx_http_urlstore_one_url(ctx, how, &canon);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (how->norm == NULL && ctx->zone->store
        && ngx_http_urlstore_normalize_spell(ctx, &canon, how) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    out = &ctx->out;
    url = canon.url.href;
    n = how->steps ? how->steps->nelts : 0;

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON,
                                      us_explain_max(url.len) + n)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == US_FORMAT_TEXT) {
        out->pos = us_put_str(out->pos, url);
        *out->pos++ = '\n';

    } else {
        out->pos = us_explain_parts(out->pos, &canon);

        if (n) {
            out->pos = ngx_cpymem(out->pos, how->steps->elts, n);
        }

        out->pos = us_put(out->pos, "}\n");
    }

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_one_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_how_t *how, us_canon_t *canon)
{
    ngx_int_t     rc;
    us_refusal_t  refusal;
    us_verdict_t  verdict;

    rc = ngx_http_urlstore_query_url(ctx->r, ctx->zone, how, canon, &verdict);

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_bad(ctx, "the query has no \"url\"");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (verdict == US_URL_OK) {
        return NGX_DECLINED;
    }

    ngx_memzero(&refusal, sizeof(us_refusal_t));

    refusal.kind = US_INPUT_URL;
    refusal.verdict = verdict;
    refusal.rule = canon->rule;

    return ngx_http_urlstore_refused(ctx, &refusal, NULL,
                                     how ? how->steps : NULL);
}


ngx_int_t
ngx_http_urlstore_query_url(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_how_t *how,
    us_canon_t *canon, us_verdict_t *verdict)
{
    uint64_t                       budget;
    us_str_t                       in;
    us_base_t                     *base;
    u_char                        *query;
    us_norm_t                     *norm;
    ngx_str_t                      url, value;
    us_norm_ws_t                  *ws;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    norm = (how && how->norm) ? how->norm : zone->norm;
    ws = (how && how->norm) ? how->ws : zone->ws;

    query = ngx_pnalloc(r->pool, r->args.len + 1);
    if (query == NULL) {
        return NGX_ERROR;
    }

    if (!ngx_http_urlstore_query(r, query, "url", &url)) {
        return NGX_DECLINED;
    }

    (void) ngx_http_urlstore_query(r, query, "base", &value);

    in = ngx_http_urlstore_str(&url);
    base = NULL;
    canon->rule.len = 0;
    *verdict = US_URL_OK;

    if (url.len > ulcf->max_url) {
        *verdict = US_URL_LENGTH;

    } else if (value.data) {
        base = us_base_create(norm, ws, ngx_http_urlstore_str(&value),
                              verdict);

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
