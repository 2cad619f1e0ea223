
/*
 * The state of a zone: GET /health, what a zone with path= can answer in each
 * state (see ngx_http_urlstore_persist.h), and the 503 that says why it cannot.
 */


#include "ngx_http_urlstore_request.h"
#include "ngx_http_urlstore_persist.h"
#include "../api/us_health.h"
#include "../api/us_unready.h"
#include "../store/us_shard.h"


ngx_uint_t
ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return (r->method & ep->writes) != 0;
}


static ngx_int_t
ngx_http_urlstore_ready(ngx_http_request_t *r, ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    unsigned                      wants;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return NGX_DECLINED;
    }

    wants = (ngx_http_urlstore_writes(r, ep) ? US_WANTS_CHANGE : 0)
            | (ep->flags & NGX_HTTP_URLSTORE_BY_ID ? US_WANTS_BY_ID : 0);

    if ((ep->flags & NGX_HTTP_URLSTORE_LISTS)
        || (zone->conf.sites && (ep->flags & NGX_HTTP_URLSTORE_LISTS_SITES)))
    {
        wants |= US_WANTS_ALL;
    }

    if (us_life_admits(&p->life, wants)) {
        return NGX_DECLINED;
    }

    if ((wants & US_WANTS_CHANGE) && p->life.conf.follow) {

        if (ngx_http_urlstore_header_in(r, "urlstore-map")
            && ngx_http_urlstore_untouched(r) != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_urlstore_follow_problem(r, zone,
                   NGX_HTTP_URLSTORE_MISDIRECTED, NULL,
                   "this zone is a replica, which is only read");
    }

    us_tally_add(zone->tally, US_N_UNREADY, 1);

    if (zone->cluster && ngx_http_urlstore_untouched(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_unready(r, zone, NULL);
}


ngx_int_t
ngx_http_urlstore_begin(ngx_http_request_t *r, ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (!(ctx->endpoint->flags & NGX_HTTP_URLSTORE_ALWAYS)) {
        rc = ngx_http_urlstore_ready(r, ctx->zone, ctx->endpoint);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (ctx->zone->persist) {
        us_life_view(&ctx->zone->persist->life, &ctx->view);
    }

    return NGX_DECLINED;
}


ngx_uint_t
ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_persist_t  *p;

    p = ctx->zone->persist;

    return p && us_life_overtaken(&p->life, &ctx->view, ctx->negative);
}


/* whether new URLs are refused for lack of room */

ngx_uint_t
ngx_http_urlstore_store_full(ngx_http_urlstore_zone_t *zone)
{
    us_store_info_t  info;

    us_store_info(zone->store, &info);

    return info.full;
}


ngx_uint_t
ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist == NULL
           || us_life_writable(&zone->persist->life, NULL);
}


ngx_uint_t
ngx_http_urlstore_accepts(ngx_http_urlstore_zone_t *zone)
{
    return !zone->kind->full(zone) && ngx_http_urlstore_writable(zone)
           && (zone->cluster == NULL || us_store_map(zone->store)->number);
}


ngx_uint_t
ngx_http_urlstore_answers(ngx_http_urlstore_zone_t *zone, ngx_uint_t found)
{
    return zone->persist == NULL
           || us_life_answers(&zone->persist->life, found);
}


uint64_t
ngx_http_urlstore_promised_ids(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist ? us_life_ids(&zone->persist->life)
                         : us_store_next_id(zone->store);
}


ngx_uint_t
ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx)
{
    return ctx->zone->persist == NULL
           || us_life_promised(&ctx->zone->persist->life, ctx->lsn,
                               ctx->tops ? ctx->top : US_STORE_NO_ID,
                               ctx->absent);
}


void
ngx_http_urlstore_deleting(ngx_http_urlstore_zone_t *zone)
{
    if (zone->persist) {
        us_life_deleting(&zone->persist->life);
    }
}


void
ngx_http_urlstore_deleted(ngx_http_urlstore_zone_t *zone, uint64_t lsn)
{
    if (zone->persist) {
        us_life_deleted(&zone->persist->life, lsn);
    }
}


uint64_t
ngx_http_urlstore_durable_ids(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist ? us_life_durable_ids(&zone->persist->life) : 0;
}


const char *
ngx_http_urlstore_state_name(ngx_http_urlstore_zone_t *zone)
{
    return us_life_state_word(zone->persist
                              ? us_life_state(&zone->persist->life)
                              : US_LIFE_READY);
}


ngx_uint_t
ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist == NULL || us_life_whole(&zone->persist->life)
           || us_life_state(&zone->persist->life) == US_LIFE_REPLICA;
}


/* 503 with the reason */

ngx_int_t
ngx_http_urlstore_unready(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra)
{
    us_unready_t              u;
    u_char                    progress[64];
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    us_unready(&u, &zone->persist->life,
               ctx && ngx_http_urlstore_overtaken(ctx));

    if (u.passes && ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (u.primary) {
        return ngx_http_urlstore_follow_problem(r, zone,
                                                NGX_HTTP_SERVICE_UNAVAILABLE,
                                                extra, u.detail);
    }

    if (u.loading) {
        ngx_sprintf(progress, "\"progress\":%ui%Z",
                    (ngx_uint_t) u.progress);
        extra = (char *) progress;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, extra,
                                     "%s", u.detail);
}


ngx_int_t
ngx_http_urlstore_mark_none(ngx_http_request_t *r, ngx_uint_t status,
    us_str_t name)
{
    size_t                    len;
    unsigned                  i;
    us_store_conf_t          *conf;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    len = ngx_min(name.len, US_STORE_MARK_LEN);

    if (ctx->zone->persist) {
        conf = &ctx->zone->persist->life.conf.store;

        for (i = 0; i < conf->nmarks; i++) {

            if (us_str_compare(conf->marks[i], name) != 0) {
                continue;
            }

            if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                             NULL, "the mark \"%*s\" is being "
                                             "added", len, name.data);
        }
    }

    return ngx_http_urlstore_problem(r, status, NULL,
                                     "the zone has no mark \"%*s\"", len,
                                     name.data);
}


/* for balancers */

ngx_int_t
ngx_http_urlstore_health_handler(ngx_http_request_t *r)
{
    us_life_t                *life;
    ngx_uint_t                full, writable;
    const char               *state;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    state = ngx_http_urlstore_state_name(ctx->zone);
    full = ctx->zone->kind->full(ctx->zone);
    writable = ngx_http_urlstore_accepts(ctx->zone);

    if (!ngx_http_urlstore_is_ready(ctx->zone)) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;

    } else if (!writable && ngx_http_urlstore_flag(r, "write")) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        state = full ? "full"
                : ngx_http_urlstore_writable(ctx->zone) ? "no-map"
                : "read-only";
    }

    life = ctx->zone->persist ? &ctx->zone->persist->life : NULL;

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, US_HEALTH_TEXT)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_health(ctx->out.pos, ctx->format, state, writable, full,
                             ctx->zone->conf.epoch, life);

    return ngx_http_urlstore_send(r);
}
