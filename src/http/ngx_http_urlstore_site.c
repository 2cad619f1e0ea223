
/*
 * Questions about a site or a URL's surroundings.
 *
 *     GET /site/HOST     its first id, spelling and, with sites=on, count
 *     GET /prefix?url=U  the longest stored URL that U begins with
 */


#include "ngx_http_urlstore_request.h"


static ngx_int_t ngx_http_urlstore_site_json(ngx_http_request_t *r,
    us_str_t key, us_store_site_t *site);
static ngx_int_t ngx_http_urlstore_site_missing(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_prefix_answer(ngx_http_request_t *r,
    us_store_item_t *item);


/*
 * The key of a site from a client's name for it: a host in any spelling,
 * perhaps with www. or a port.  The key lies in the request's pool.  *merge is
 * whether www.KEY is the same site.
 */

ngx_int_t
ngx_http_urlstore_site_key(ngx_http_request_t *r, ngx_str_t *host,
    us_str_t *key, int *merge)
{
    u_char                    *p;
    uint64_t                   budget;
    us_str_t                   in, name;
    us_canon_t                 canon;
    us_verdict_t               verdict;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    if (host->len == 0 || host->len > 512
        || ngx_strlchr(host->data, host->data + host->len, '/')
        || ngx_strlchr(host->data, host->data + host->len, '@'))
    {
        return NGX_DECLINED;
    }

    in.len = sizeof("http://") - 1 + host->len + 1;

    p = ngx_pnalloc(r->pool, in.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    in.data = p;
    p = ngx_cpymem(p, "http://", 7);
    p = ngx_cpymem(p, host->data, host->len);
    *p = '/';

    budget = NGX_HTTP_URLSTORE_BUDGET;
    us_norm_ws_budget(zone->ws, &budget);

    verdict = us_normalize(zone->norm, zone->ws, in, NULL, &canon);

    us_norm_ws_budget(zone->ws, NULL);

    if (verdict != US_URL_OK) {
        return NGX_DECLINED;
    }

    name = us_canon_site(&canon);

    p = ngx_pnalloc(r->pool, name.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, name.data, name.len);

    key->data = p;
    key->len = name.len;
    *merge = canon.merge;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_site_handler(ngx_http_request_t *r)
{
    int                       merge;
    us_str_t                  key;
    ngx_int_t                 rc;
    us_store_site_t           site;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_site_key(r, &ctx->tail, &key, &merge);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc != NGX_OK) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "invalid host \"%*s\"; "
                                         "/site/HOST[:PORT] is expected",
                                         ngx_min(ctx->tail.len, 100),
                                         ctx->tail.data);
    }

    rc = us_store_site(ctx->zone->store, key, &site);
    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    if (rc != US_OK) {
        ctx->negative = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_site_missing);
    }

    /* a delete makes the number of URLs smaller */

    ctx->top = site.last + 1;
    ctx->absent = ctx->zone->conf.sites;

    if (ngx_http_urlstore_site_json(r, key, &site) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


static ngx_int_t
ngx_http_urlstore_site_json(ngx_http_request_t *r, us_str_t key,
    us_store_site_t *site)
{
    u_char                   *p;
    us_str_t                  spelling;
    ngx_uint_t                www;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;
    www = site->spelling & US_SPELLING_WWW;

    p = ngx_pnalloc(r->pool, 4 + key.len);

    if (p == NULL
        || ngx_http_urlstore_out_init(out, r->pool,
                                      us_json_quoted_max(key.len)
                                      + us_json_quoted_max(4 + key.len) + 256)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    spelling.data = p;
    spelling.len = (www ? 4 : 0) + key.len;

    if (www) {
        p = ngx_cpymem(p, "www.", 4);
    }

    ngx_memcpy(p, key.data, key.len);

    /* a host may hold a quotation mark */

    out->pos = ngx_cpymem(out->pos, "{\"site\":", 8);
    out->pos = us_json_quote(out->pos, key);
    out->pos = ngx_sprintf(out->pos, ",\"first\":%uL,\"spelling\":",
                           site->first);
    out->pos = us_json_quote(out->pos, spelling);
    out->pos = ngx_sprintf(out->pos, ",\"www\":%s", www ? "true" : "false");

    if (ctx->zone->conf.sites) {
        out->pos = ngx_sprintf(out->pos, ",\"urls\":%uL,\"last\":%uL",
                               site->urls, site->last);
    }

    out->pos = ngx_cpymem(out->pos, "}\n", 2);

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_site_missing(ngx_http_request_t *r)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                     "no URL of this site was added");
}


ngx_int_t
ngx_http_urlstore_prefix_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    us_str_t                   cuts[US_CANON_CUTS];
    ngx_uint_t                 i, n;
    us_canon_t                 canon;
    us_store_item_t           *items;
    ngx_http_urlstore_ctx_t   *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_one_url(r, NULL, &canon);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    items = ngx_palloc(r->pool, sizeof(us_store_item_t) * US_CANON_CUTS);
    if (items == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    n = us_canon_cuts(&canon, cuts);

    ngx_memzero(items, n * sizeof(us_store_item_t));

    for (i = 0; i < n; i++) {
        items[i].url = cuts[i];
        items[i].merge = canon.merge;
    }

    us_store_seen(ctx->zone->store, items, n);
    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    for (i = 0; i < n; i++) {
        if (items[i].status == US_SEEN) {
            ctx->top = items[i].id + 1;
            return ngx_http_urlstore_prefix_answer(r, &items[i]);
        }

        /* the reply also reveals that this longer one is not there */

        ctx->negative = 1;
        ctx->absent = 1;
    }

    return ngx_http_urlstore_prefix_answer(r, NULL);
}


/* item is NULL if there is none */

static ngx_int_t
ngx_http_urlstore_prefix_answer(ngx_http_request_t *r, us_store_item_t *item)
{
    size_t                    len;
    us_str_t                  url;
    ngx_http_urlstore_out_t  *out;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    buf[US_URL_MAX + 8];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    len = 0;

    if (item) {
        len = us_store_item_url(item, buf);

        ctx->id = item->id;
        ngx_str_set(&ctx->status_name, "seen");

        ctx->url.len = len;
        ctx->url.data = ngx_pnalloc(r->pool, len);

        if (ctx->url.data == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_memcpy(ctx->url.data, buf, len);

    } else {
        ngx_str_set(&ctx->status_name, "unseen");
    }

    if (ngx_http_urlstore_out_init(out, r->pool, us_json_quoted_max(len) + 64)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    if (ctx->format == US_FORMAT_TEXT) {

        if (item) {
            out->pos = ngx_sprintf(out->pos, "%uL\tseen\t", item->id);
            out->pos = ngx_cpymem(out->pos, buf, len);
            *out->pos++ = '\n';

        } else {
            out->pos = ngx_cpymem(out->pos, "-\tunseen\t-\n", 11);
        }

    } else if (item) {
        url.data = buf;
        url.len = len;

        out->pos = ngx_sprintf(out->pos, "{\"id\":%uL,\"status\":\"seen\","
                               "\"url\":", item->id);
        out->pos = us_json_quote(out->pos, url);
        out->pos = ngx_cpymem(out->pos, "}\n", 2);

    } else {
        out->pos = ngx_sprintf(out->pos, "{\"id\":null,"
                               "\"status\":\"unseen\",\"url\":null}\n");
    }

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}
