
/*
 * Questions about a site or a URL's surroundings.
 *
 *     GET /site/HOST     its first id, spelling and, with sites=on, count
 *     GET /prefix?url=U  the longest stored URL that U begins with
 */


#include "ngx_http_urlstore_shard.h"
#include "../api/us_lookup.h"
#include "../store/us_shard.h"


/*
 * The key of the site that a client names, in the request's pool.  *merge is
 * whether www.KEY is the same site.  NGX_DECLINED: it is no host.
 */

ngx_int_t
ngx_http_urlstore_site_key(ngx_http_request_t *r, ngx_str_t *host,
    us_str_t *key, int *merge)
{
    int                        rc;
    u_char                    *p;
    uint64_t                   budget;
    us_str_t                   name;
    us_canon_t                 canon;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;
    u_char                     buf[US_LOOKUP_BUF];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    budget = NGX_HTTP_URLSTORE_BUDGET;
    us_norm_ws_budget(zone->ws, &budget);

    rc = us_lookup_site(zone->norm, zone->ws, ngx_http_urlstore_str(host),
                        buf, &canon);

    us_norm_ws_budget(zone->ws, NULL);

    if (rc != 0) {
        return NGX_DECLINED;
    }

    name = us_canon_site(&canon);

    p = ngx_pnalloc(r->pool, name.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    key->data = p;
    key->len = name.len;
    *merge = canon.merge;

    ngx_memcpy(p, name.data, name.len);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_site_named(ngx_http_request_t *r, us_str_t *key)
{
    int                       merge;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_site_key(r, &ctx->tail, key, &merge);

    if (rc == NGX_OK) {
        return NGX_DECLINED;
    }

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid host \"%*s\"; "
                                     "/site/HOST[:PORT] is expected",
                                     ngx_min(ctx->tail.len, 100),
                                     ctx->tail.data);
}


ngx_int_t
ngx_http_urlstore_site_handler(ngx_http_request_t *r)
{
    us_str_t                  key;
    ngx_int_t                 rc;
    us_store_site_t           site;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_site_named(r, &key);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_shard_sites(r, "site");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_urlstore_shard_site(ctx, key, &site);

    if (rc == US_MOVED) {
        return ngx_http_urlstore_shard_moved(r, "the site");
    }

    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    if (rc != US_OK) {
        ctx->negative = 1;

        return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_site_missing);
    }

    /* a delete makes the number of URLs smaller */

    ctx->top = site.last + 1;
    ctx->absent = ctx->zone->conf.sites;

    site.first = ngx_http_urlstore_id(ctx->zone, site.first);
    site.last = ngx_http_urlstore_id(ctx->zone, site.last);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool,
                                   us_lookup_site_max(key.len))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_lookup_site_reply(ctx->out.pos, key, &site,
                                        ctx->zone->conf.sites);

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_site_missing(ngx_http_request_t *r)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                     "no URL of this site was added");
}


static ngx_int_t
ngx_http_urlstore_prefix_found(ngx_http_request_t *r, us_store_item_t *item)
{
    us_str_t                  url;
    ngx_http_urlstore_ctx_t  *ctx;
    u_char                    buf[US_URL_MAX + 8];

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->id = ngx_http_urlstore_id(ctx->zone, item->id);

    url.data = buf;
    url.len = us_store_item_url(item, buf);

    return ngx_http_urlstore_prefix_answer(r, &url);
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

    ngx_http_urlstore_shard_under(ctx);
    us_store_seen(ctx->zone->store, items, n);
    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->tops = 1;

    for (i = 0; i < n; i++) {
        if (items[i].status == US_SEEN) {
            ctx->top = items[i].id + 1;
            return ngx_http_urlstore_prefix_found(r, &items[i]);
        }

        if (items[i].status == US_MOVED) {
            return ngx_http_urlstore_shard_moved(r, "a prefix of the URL");
        }

        /* the reply also reveals that this longer one is not there */

        ctx->negative = 1;
        ctx->absent = 1;
    }

    return ngx_http_urlstore_prefix_answer(r, NULL);
}


ngx_int_t
ngx_http_urlstore_prefix_answer(ngx_http_request_t *r, const us_str_t *found)
{
    us_str_t                  url;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (found) {
        ctx->answer = US_ANSWER_SEEN;

        ctx->url.data = ngx_pnalloc(r->pool, found->len);
        if (ctx->url.data == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->url.len = found->len;
        ngx_memcpy(ctx->url.data, found->data, found->len);

    } else {
        ctx->answer = US_ANSWER_UNSEEN;
    }

    url = ngx_http_urlstore_str(&ctx->url);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool,
                                   us_lookup_url_max(url.len))
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    ctx->out.pos = us_lookup_prefix_reply(ctx->out.pos, ctx->format, ctx->id,
                                          found ? &url : NULL);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send);
}
