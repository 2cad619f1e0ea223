
/*
 * The state of a zone: GET /health, what a zone can answer in each state of its
 * life (life/us_life.h), and the 503 that says why it cannot.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_health.h"
#include "../api/us_unready.h"
#include "../store/us_shard.h"


ngx_uint_t
ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return (r->method & ep->writes) != 0;
}


/* members of a problem document: extra, which may be NULL, and "primary" */

static ngx_int_t
ngx_http_urlstore_follow_member(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra, ngx_str_t *member)
{
    u_char    *p;
    size_t     len;
    us_str_t   name;

    name = us_str_of(zone->life.conf.follow->name);
    len = extra ? ngx_strlen(extra) : 0;

    member->data = ngx_pnalloc(r->pool, len + us_json_quoted_max(name.len)
                                        + sizeof(",\"primary\":"));
    if (member->data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(member->data, extra ? extra : "", len);

    if (len) {
        *p++ = ',';
    }

    p = ngx_cpymem(p, "\"primary\":", sizeof("\"primary\":") - 1);
    p = us_json_quote_bytes(p, name);
    *p = '\0';

    member->len = p - member->data;

    return NGX_OK;
}


/* what is wrong, and who has what the client wants */

ngx_int_t
ngx_http_urlstore_follow_problem(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_uint_t status, const char *extra,
    const char *detail)
{
    ngx_str_t  member;

    if (ngx_http_urlstore_follow_member(r, zone, extra, &member) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, status, (char *) member.data,
                                     "%s; its primary is %s", detail,
                                     zone->life.conf.follow->name);
}


static ngx_int_t
ngx_http_urlstore_ready(ngx_http_request_t *r, ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    unsigned  wants;

    wants = (ngx_http_urlstore_writes(r, ep) ? US_WANTS_CHANGE : 0)
            | (ep->flags & NGX_HTTP_URLSTORE_BY_ID ? US_WANTS_BY_ID : 0);

    if ((ep->flags & NGX_HTTP_URLSTORE_LISTS)
        || (zone->conf.sites && (ep->flags & NGX_HTTP_URLSTORE_LISTS_SITES)))
    {
        wants |= US_WANTS_ALL;
    }

    if (us_life_admits(&zone->life, wants)) {
        return NGX_DECLINED;
    }

    if ((wants & US_WANTS_CHANGE) && zone->life.conf.follow) {

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

    us_life_view(&ctx->zone->life, &ctx->view);

    return NGX_DECLINED;
}


ngx_uint_t
ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx)
{
    return us_life_overtaken(&ctx->zone->life, &ctx->view, ctx->negative);
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
ngx_http_urlstore_accepts(ngx_http_urlstore_zone_t *zone)
{
    return !zone->kind->full(zone) && us_life_writable(&zone->life, NULL)
           && (zone->cluster == NULL || us_store_map(zone->store)->number);
}


ngx_uint_t
ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx)
{
    return us_life_promised(&ctx->zone->life, ctx->lsn,
                            ctx->tops ? ctx->top : US_STORE_NO_ID,
                            ctx->absent);
}


ngx_uint_t
ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone)
{
    return us_life_whole(&zone->life)
           || us_life_state(&zone->life) == US_LIFE_REPLICA;
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

    us_unready(&u, &zone->life,
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

    conf = &ctx->zone->life.conf.store;

    for (i = 0; i < conf->nmarks; i++) {

        if (us_str_compare(conf->marks[i], name) != 0) {
            continue;
        }

        if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                         "the mark \"%*s\" is being added",
                                         len, name.data);
    }

    return ngx_http_urlstore_problem(r, status, NULL,
                                     "the zone has no mark \"%*s\"", len,
                                     name.data);
}


/* for balancers */

ngx_int_t
ngx_http_urlstore_health_handler(ngx_http_request_t *r)
{
    ngx_uint_t                full, writable;
    const char               *state;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    state = us_life_state_word(us_life_state(&ctx->zone->life));
    full = ctx->zone->kind->full(ctx->zone);
    writable = ngx_http_urlstore_accepts(ctx->zone);

    if (!ngx_http_urlstore_is_ready(ctx->zone)) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;

    } else if (!writable && ngx_http_urlstore_flag(r, "write")) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        state = full ? "full"
                : us_life_writable(&ctx->zone->life, NULL) ? "no-map"
                : "read-only";
    }

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, US_HEALTH_TEXT)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_health(ctx->out.pos, ctx->format, state, writable, full,
                             ctx->zone->conf.epoch, &ctx->zone->life);

    return ngx_http_urlstore_send(r);
}
