
/*
 * GET /health and /stats: what balancers, operators and the status page ask.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


static u_char *ngx_http_urlstore_stats_ids(u_char *p,
    ngx_http_urlstore_zone_t *zone, us_store_info_t *info);
static u_char *ngx_http_urlstore_stats_memory(u_char *p,
    us_store_info_t *info);
static ngx_int_t ngx_http_urlstore_stats_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_ops_send(ngx_http_request_t *r);


ngx_int_t
ngx_http_urlstore_health_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                writable;
    const char               *state;
    us_store_info_t           info;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->zone->filter) {
        info.full = us_filter_full(ctx->zone->filter->set);

    } else {
        us_store_info(ctx->zone->store, &info);
    }

    state = ngx_http_urlstore_state_name(ctx->zone);
    writable = !info.full && ngx_http_urlstore_writable(ctx->zone);

    if (ngx_strcmp(state, "ready") != 0) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;

    } else if (!writable && ngx_http_urlstore_flag(r, "write")) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        state = info.full ? "full" : "read-only";
    }

    ngx_http_urlstore_type(ctx, ngx_http_urlstore_accept(r,
                                                    NGX_HTTP_URLSTORE_JSON));

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 512) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 32, "%s\n", state);

    } else {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 512,
                                          "{\"status\":\"%s\","
                                          "\"writable\":%s,\"full\":%s,"
                                          "\"epoch\":%uL}\n", state,
                                          writable ? "true" : "false",
                                          info.full ? "true" : "false",
                                          ctx->zone->conf.epoch);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_ops_send(r);
}


ngx_int_t
ngx_http_urlstore_stats_handler(ngx_http_request_t *r)
{
    ngx_uint_t                 i;
    us_store_info_t            info;
    ngx_http_urlstore_out_t   *out;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;
    out = &ctx->out;

    if (zone->filter) {
        return ngx_http_urlstore_stats_filter(r);
    }

    us_store_info(zone->store, &info);

    if (ngx_http_urlstore_out_init(out, r->pool, 4096
                                   + NGX_HTTP_URLSTORE_PERSIST_STATS)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    out->pos = ngx_http_urlstore_stats_ids(out->pos, zone, &info);
    out->pos = ngx_http_urlstore_stats_memory(out->pos, &info);

    out->pos = ngx_sprintf(out->pos, ",\"marks\":[");

    for (i = 0; i < zone->conf.nmarks; i++) {
        out->pos = ngx_sprintf(out->pos, "%s\"%*s\"", i ? "," : "",
                               zone->conf.marks[i].len,
                               zone->conf.marks[i].data);
    }

    out->pos = ngx_sprintf(out->pos, "],\"published\":%uL,\"written\":%uL,"
                           "\"durable\":%uL,\"recoveries\":%uL,"
                           "\"trainings\":%uL,\"lock_waits\":%uL,"
                           "\"uptime\":%T",
                           us_store_published(zone->store),
                           us_store_written(zone->store),
                           us_store_durable(zone->store), info.recoveries,
                           ngx_http_urlstore_sum(zone,
                                         NGX_HTTP_URLSTORE_N_TRAININGS),
                           ngx_http_urlstore_sum(zone,
                                         NGX_HTTP_URLSTORE_N_LOCK_WAITS),
                           ngx_time() - zone->sh->started);

    out->pos = ngx_http_urlstore_persist_stats(out->pos, zone);

    if (ngx_http_urlstore_flag(r, "history")
        && ngx_http_urlstore_history(out, zone) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_out_printf(out, 2, "}\n") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, NGX_HTTP_URLSTORE_JSON);

    return ngx_http_urlstore_ops_send(r);
}


static u_char *
ngx_http_urlstore_stats_ids(u_char *p, ngx_http_urlstore_zone_t *zone,
    us_store_info_t *info)
{
    ngx_uint_t  i;

    p = ngx_sprintf(p, "{\"zone\":\"%V\",\"urls\":%uL,\"deleted\":%uL,"
                    "\"sites\":%uL,\"next_id\":%uL,\"epoch\":%uL,"
                    "\"uuid\":\"",
                    &zone->name, info->urls, info->deleted, info->sites,
                    us_store_next_id(zone->store), zone->conf.epoch);

    for (i = 0; i < 16; i++) {
        p = ngx_hex_dump(p, &zone->conf.uuid[i], 1);

        if (i == 3 || i == 5 || i == 7 || i == 9) {
            *p++ = '-';
        }
    }

    return ngx_sprintf(p, "\",\"normalization\":\"%*s\",",
                       zone->conf.norm.len, zone->conf.norm.data);
}


static u_char *
ngx_http_urlstore_stats_memory(u_char *p, us_store_info_t *info)
{
    double      each;
    ngx_uint_t  i;

    each = info->urls ? (double) info->used / info->urls : 0;

    p = ngx_sprintf(p, "\"size\":%uL,\"used\":%uL,\"free\":%uL,"
                    "\"bytes_per_url\":%.2f,\"fit\":%uL,\"full\":%s,"
                    "\"parts\":{",
                    info->size, info->used, info->size - info->used, each,
                    info->fit, info->full ? "true" : "false");

    for (i = 0; i < US_PARTS; i++) {
        p = ngx_sprintf(p, "%s\"%s\":%uL", i ? "," : "",
                        us_store_part_name(i), info->parts[i]);
    }

    *p++ = '}';

    return p;
}


static ngx_int_t
ngx_http_urlstore_stats_filter(ngx_http_request_t *r)
{
    us_filter_info_t           info;
    ngx_http_urlstore_out_t   *out;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;
    out = &ctx->out;

    us_filter_info(zone->filter->set, &info);

    if (ngx_http_urlstore_out_init(out, r->pool, 1024) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* nine digits: errors go down to a millionth */

    out->pos = ngx_sprintf(out->pos, "{\"zone\":\"%V\",\"filter\":true,"
                           "\"urls\":%uL,\"capacity\":%uL,"
                           "\"error\":%.9f,\"expected_error\":%.9f,"
                           "\"filling\":%.4f,\"hashes\":%ui,"
                           "\"normalization\":\"%*s\","
                           "\"size\":%uz,\"bytes_per_url\":%.2f,"
                           "\"full\":%s,\"epoch\":%uL,\"uptime\":%T}\n",
                           &zone->name, info.urls, info.capacity, info.error,
                           info.expected, info.filling,
                           (ngx_uint_t) info.hashes,
                           zone->conf.norm.len, zone->conf.norm.data,
                           info.size, (double) info.size / info.capacity,
                           us_filter_full(zone->filter->set) ? "true" : "false",
                           zone->conf.epoch, ngx_time() - zone->sh->started);

    ngx_http_urlstore_type(ctx, NGX_HTTP_URLSTORE_JSON);

    return ngx_http_urlstore_ops_send(r);
}


static ngx_int_t
ngx_http_urlstore_ops_send(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_urlstore_send(r);
}
