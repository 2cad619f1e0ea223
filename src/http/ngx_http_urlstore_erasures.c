
/*
 * The endpoint /erase: what is erased is in ngx_http_urlstore_erase.c, or in
 * the batch.
 *
 *     POST /erase             ids and URLs: a batch (ngx_http_urlstore_batch.h)
 *     POST /erase?site=HOST   a site
 *     GET /erase, /erase/3    what was erased
 *     DELETE /erase/3         its URLs may be added again
 */


#include "ngx_http_urlstore_batch.h"


/* erasures of one slice of a list */
#define NGX_HTTP_URLSTORE_ERASURES    64


/* GET /erase */

typedef struct {
    uint64_t                        at;
    uint64_t                        last;
    uint64_t                        limit;
    us_list_t                       list;
    unsigned                        summary:1;
} ngx_http_urlstore_erasures_t;


static ngx_int_t
ngx_http_urlstore_erasure_lift(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                   lsn;
    ngx_int_t                  rc;
    us_store_status_t          status;
    us_erasure_info_t          e;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    e.state = US_ERASURE_LIFTED;
    (void) us_store_erasure(zone->store, ctx->id, &e);

    ngx_http_urlstore_clock(zone);
    status = us_store_erasure_lift(zone->store, ctx->id, &lsn);
    ctx->lsn = ngx_max(ctx->lsn, lsn);

    if (status == US_OK && e.state != US_ERASURE_LIFTED) {
        ngx_http_urlstore_erasure_log(zone, ctx->id, "lifted");
    }

    rc = ngx_http_urlstore_changed(ctx, status, ngx_http_urlstore_erasure_lift);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx->negative = 1;

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_erasure_missing);
}


/* one slice: see ngx_http_urlstore_stream() */

static ngx_int_t
ngx_http_urlstore_erasures_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    ngx_uint_t                     i;
    us_erasure_info_t              e;
    ngx_http_urlstore_erasures_t  *list;

    list = ctx->data;

    if (list->list.shown == 0 && ctx->format == US_FORMAT_JSON
        && ctx->processed == 0)
    {
        out->pos = ngx_cpymem(out->pos, "{\"erasures\":[", 13);
        ctx->processed = 1;
    }

    for (i = 0;
         list->at <= list->last && list->list.shown < list->limit;
         i++, list->at++)
    {
        if (i == NGX_HTTP_URLSTORE_ERASURES
            || ngx_http_urlstore_out_enough(out))
        {
            ctx->lsn = us_store_published(ctx->zone->store);
            return NGX_AGAIN;
        }

        if (ngx_http_urlstore_out_room(out, US_LIST_ERASURE + US_LIST_END)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (!us_store_erasure(ctx->zone->store, list->at, &e)) {

            /* of a store that was replaced meanwhile */

            return NGX_ERROR;
        }

        if (list->list.shown++ && ctx->format == US_FORMAT_JSON) {
            *out->pos++ = ',';
        }

        out->pos = us_list_erasure(out->pos, ctx->format, &e,
                                   us_life_left(&ctx->zone->life, &e),
                                   us_string(""));
    }

    ctx->lsn = us_store_published(ctx->zone->store);

    out->pos = us_list_next(out->pos, &list->list, list->at, list->summary);

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_erasures(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                      rc;
    ngx_http_urlstore_erasures_t  *list;

    rc = ngx_http_urlstore_args(ctx, "from limit summary");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    list = ngx_pcalloc(ctx->r->pool, sizeof(ngx_http_urlstore_erasures_t));

    if (list == NULL
        || ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, 1024) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    list->at = 1;
    list->limit = 1000;

    rc = ngx_http_urlstore_urls_number(ctx, "from", 1, &list->at);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_urls_number(ctx, "limit", 1, &list->limit);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_urlstore_accept(ctx, US_FORMAT_JSON);

    list->last = us_store_erasures(ctx->zone->store);
    list->list.format = ctx->format;
    list->summary = ngx_http_urlstore_flag(ctx->r, "summary");
    ctx->data = list;

    return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_erasures_produce);
}


ngx_int_t
ngx_http_urlstore_erase_args(ngx_http_urlstore_ctx_t *ctx, us_str_t *key)
{
    int         merge;
    ngx_int_t   rc;
    ngx_str_t   site, other;
    ngx_uint_t  i;

    static const char *const  others[] = {
        "url", "id", "base", "brief", "summary"
    };

    key->len = 0;

    rc = ngx_http_urlstore_args(ctx, "url id base brief summary site reason");

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_erase_reason(ctx);
    }

    if (rc != NGX_DECLINED || !ngx_http_urlstore_arg(ctx, "site", &site)) {
        return rc;
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (ngx_http_urlstore_arg(ctx, others[i], &other)) {
            return ngx_http_urlstore_bad(ctx, "the query has \"site\" and "
                                         "\"%s\"; one of them is allowed",
                                         others[i]);
        }
    }

    if (ctx->has_body) {
        return ngx_http_urlstore_bad(ctx, "the request has a \"site\" in the "
                                     "query and a body; one of them is "
                                     "allowed");
    }

    rc = ngx_http_urlstore_no_body(ctx->r);

    return rc == NGX_OK ? ngx_http_urlstore_site_key(ctx, &site, key, &merge)
                        : rc;
}


ngx_int_t
ngx_http_urlstore_erase_handler(ngx_http_urlstore_ctx_t *ctx)
{
    us_str_t    site;
    ngx_int_t   rc;
    us_id_rc_t  known;

    if (ctx->tail.len) {
        known = us_id_parse(ngx_http_urlstore_str(&ctx->tail), &ctx->id);

        if (known == US_ID_BAD || (known == US_ID_OK && ctx->id == 0)) {
            return ngx_http_urlstore_bad(ctx, "\"%*s\" is no number of an "
                                         "erasure; a decimal number from 1, "
                                         "without a leading zero, is expected",
                                         ngx_min(ctx->tail.len, 40),
                                         ctx->tail.data);
        }

        /* no erasure has the number of US_ID_NEVER, UINT64_MAX */

        return ctx->r->method == NGX_HTTP_DELETE
               ? ngx_http_urlstore_erasure_lift(ctx)
               : ngx_http_urlstore_erasure_reply(ctx, ctx->id);
    }

    if (ctx->r->method != NGX_HTTP_POST) {
        return ngx_http_urlstore_erasures(ctx);
    }

    rc = ngx_http_urlstore_erase_args(ctx, &site);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return site.len ? ngx_http_urlstore_erase_site(ctx, site)
                    : ngx_http_urlstore_batch(ctx, NGX_HTTP_URLSTORE_ERASE, 0);
}
