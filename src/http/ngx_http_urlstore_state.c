
/*
 * The state of a zone: GET /health, what a zone with path= can answer in each
 * state (see ngx_http_urlstore_persist.h), and the 503 that says why it cannot.
 */


#include "ngx_http_urlstore_request.h"
#include "ngx_http_urlstore_persist.h"


static ngx_int_t ngx_http_urlstore_unloaded(ngx_http_request_t *r,
    us_life_info_t *info);


ngx_uint_t
ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return (r->method & ep->writes) != 0;
}


static ngx_uint_t
ngx_http_urlstore_lists(ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return (ep->flags & NGX_HTTP_URLSTORE_LISTS)
           || (zone->conf.sites
               && (ep->flags & NGX_HTTP_URLSTORE_LISTS_SITES));
}


ngx_int_t
ngx_http_urlstore_ready(ngx_http_request_t *r, ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    ngx_uint_t                    writes;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return NGX_DECLINED;
    }

    writes = ngx_http_urlstore_writes(r, ep);

    switch (us_life_state(&p->life)) {

    case US_LIFE_READY:

        if (!writes || ngx_http_urlstore_writable(zone)) {
            return NGX_DECLINED;
        }

        break;

    case US_LIFE_REPLICA:

        if (!writes) {
            return NGX_DECLINED;
        }

        break;

    case US_LIFE_FOLLOWING:
    case US_LIFE_DAMAGED:

        if (!writes && !ngx_http_urlstore_lists(zone, ep)
            && us_life_current(&p->life))
        {
            return NGX_DECLINED;
        }

        break;

    case US_LIFE_LOOKUP:

        if (!writes && (ep->flags & NGX_HTTP_URLSTORE_BY_ID)) {
            return NGX_DECLINED;
        }

        break;

    default:
        break;
    }

    if (writes && p->life.conf.follow) {
        return ngx_http_urlstore_follow_refuse(r, zone);
    }

    us_tally_add(zone->tally, US_N_UNREADY, 1);

    return ngx_http_urlstore_unready(r, zone, NULL);
}


void
ngx_http_urlstore_begin(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_persist_t  *p;

    p = ctx->zone->persist;

    if (p) {
        ctx->partial = !us_life_whole(&p->life);
        ctx->generation = p->life.generation;
    }
}


/*
 * A URL that a request did not find before the zone owned its directory may be
 * there now.  If the zone has begun anew since, the URLs that the request
 * found do not count either.
 */

ngx_uint_t
ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_persist_t  *p;

    p = ctx->zone->persist;

    return p
           && (ctx->generation != us_share_generation(p->life.sh)
               || us_life_state(&p->life) <= US_LIFE_LOADING
               || (ctx->negative
                   && (ctx->partial || !us_life_whole(&p->life))));
}


/* whether new URLs are refused for lack of room */

ngx_uint_t
ngx_http_urlstore_full(ngx_http_urlstore_zone_t *zone)
{
    us_store_info_t  info;

    if (zone->filter) {
        return us_filter_full(zone->filter->set);
    }

    us_store_info(zone->store, &info);

    return info.full;
}


ngx_uint_t
ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist == NULL
           || us_life_writable(&zone->persist->life, NULL);
}


/* whether a caller that cannot wait may answer a look-up, found or not */

ngx_uint_t
ngx_http_urlstore_tells(ngx_http_urlstore_zone_t *zone, ngx_uint_t found)
{
    if (zone->persist == NULL) {
        return 1;
    }

    switch (us_life_state(&zone->persist->life)) {

    case US_LIFE_READY:
        return 1;

    case US_LIFE_FOLLOWING:
    case US_LIFE_REPLICA:
    case US_LIFE_DAMAGED:
        return found;

    default:
        return 0;
    }
}


uint64_t
ngx_http_urlstore_promised_ids(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist ? us_life_ids(&zone->persist->life)
                         : us_store_next_id(zone->store);
}


/*
 * Whether a read may be answered now.  It may if all that it can depend on is
 * promised.  It also may if the ids that it reports are promised, and it
 * reports no absence or no delete is under way.  An add under way causes no
 * absence: its URL is found.
 */

ngx_uint_t
ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx)
{
    us_life_t  *l;

    if (ctx->zone->persist == NULL) {
        return 1;
    }

    l = &ctx->zone->persist->life;

    return us_life_lsn(l) >= ctx->lsn
           || (ctx->tops && ctx->top <= us_life_ids(l)
               && (!ctx->absent || us_life_deletes_promised(l)));
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
    us_life_t                *l;
    us_life_info_t            info;
    us_life_state_t           state;
    ngx_http_urlstore_ctx_t  *ctx;

    l = &zone->persist->life;
    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    us_life_info(l, &info);
    state = us_life_state(l);

    switch (state) {

    case US_LIFE_DAMAGED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "the directory is damaged; the zone is read-only "
                       "and has what was stored before the damage: %s",
                       info.reason);

    case US_LIFE_TOO_SMALL:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "%s", info.reason);

    case US_LIFE_FAILED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "the directory cannot be read: %s",
                       info.reason);

    case US_LIFE_LOOKUP:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "this zone answers /url and /urls only "
                       "(mode=lookup)");

    default:
        break;
    }

    if (info.sync_failed) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "read-only until a restart: %s", info.reason);
    }

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (state <= US_LIFE_LOADING) {
        return ngx_http_urlstore_unloaded(r, &info);
    }

    if (state == US_LIFE_FOLLOWING) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "another server owns the directory");
    }

    if (state == US_LIFE_REPLICA) {
        return ngx_http_urlstore_follow_absent(r, zone, extra);
    }

    if (l->ending) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "this process is ending");
    }

    if (ctx && ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       extra, "the directory was loaded meanwhile");
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, extra,
                                     "the disk is late: %s",
                                     info.stalled ? info.reason
                                                  : "no write or sync has "
                                                    "returned in time");
}


static ngx_int_t
ngx_http_urlstore_unloaded(ngx_http_request_t *r, us_life_info_t *info)
{
    u_char  progress[64];

    ngx_sprintf(progress, "\"progress\":%ui%Z", (ngx_uint_t) info->progress);

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     (char *) progress, "loading: %ui%%%s%s",
                                     (ngx_uint_t) info->progress,
                                     info->reason[0] ? ", " : "",
                                     info->reason);
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
    ngx_int_t                 rc;
    ngx_uint_t                full, writable;
    const char               *state;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    state = ngx_http_urlstore_state_name(ctx->zone);
    full = ngx_http_urlstore_full(ctx->zone);
    writable = !full && ngx_http_urlstore_writable(ctx->zone);

    if (!ngx_http_urlstore_is_ready(ctx->zone)) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;

    } else if (!writable && ngx_http_urlstore_flag(r, "write")) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        state = full ? "full" : "read-only";
    }

    ngx_http_urlstore_accept(r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 256) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == US_FORMAT_TEXT) {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 32, "%s\n", state);

    } else {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 256,
                                          "{\"status\":\"%s\","
                                          "\"writable\":%s,\"full\":%s,"
                                          "\"epoch\":%uL", state,
                                          writable ? "true" : "false",
                                          full ? "true" : "false",
                                          ctx->zone->conf.epoch);

        if (rc == NGX_OK) {
            rc = ngx_http_urlstore_follow_health(&ctx->out, ctx->zone);
        }

        if (rc == NGX_OK) {
            rc = ngx_http_urlstore_out_printf(&ctx->out, 2, "}\n");
        }
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}
