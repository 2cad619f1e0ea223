
/*
 * GET /health, for balancers, and GET /stats, for operators and the status
 * page: the table of ngx_http_urlstore_figures.c, and what is no number.
 */


#include "ngx_http_urlstore_figures.h"
#include "ngx_http_urlstore_persist.h"


/* room for one member of /stats */
#define NGX_HTTP_URLSTORE_MEMBER  512


static ngx_int_t ngx_http_urlstore_stats_zone(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_stats_figures(
    ngx_http_urlstore_out_t *out, ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static ngx_int_t ngx_http_urlstore_stats_lists(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f);


ngx_int_t
ngx_http_urlstore_health_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                full, writable;
    const char               *state;
    ngx_http_urlstore_ctx_t  *ctx;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

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

    ngx_http_urlstore_type(ctx, ngx_http_urlstore_accept(r,
                                                    NGX_HTTP_URLSTORE_JSON));

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 256) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->format == NGX_HTTP_URLSTORE_TEXT) {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 32, "%s\n", state);

    } else {
        rc = ngx_http_urlstore_out_printf(&ctx->out, 256,
                                          "{\"status\":\"%s\","
                                          "\"writable\":%s,\"full\":%s,"
                                          "\"epoch\":%uL}\n", state,
                                          writable ? "true" : "false",
                                          full ? "true" : "false",
                                          ctx->zone->conf.epoch);
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_send(r);
}


ngx_int_t
ngx_http_urlstore_stats_handler(ngx_http_request_t *r)
{
    ngx_int_t                     rc;
    ngx_http_urlstore_out_t      *out;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_figures_t   f;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    ngx_http_urlstore_figures_get(ctx->zone, &f);

    if (ngx_http_urlstore_out_init(out, r->pool, 4096) != NGX_OK
        || ngx_http_urlstore_stats_zone(out, ctx->zone) != NGX_OK
        || ngx_http_urlstore_stats_figures(out, ctx->zone, &f) != NGX_OK
        || ngx_http_urlstore_stats_lists(out, ctx->zone, &f) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, NGX_HTTP_URLSTORE_JSON);

    return ngx_http_urlstore_send(r);
}


/* what the zone is, in strings */

static ngx_int_t
ngx_http_urlstore_stats_zone(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone)
{
    u_char                       *p, uuid[37];
    ngx_int_t                     rc;
    ngx_uint_t                    i;
    ngx_http_urlstore_persist_t  *persist;

    rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                      "{\"zone\":\"%V\",\"normalization\":"
                                      "\"%*s\",\"state\":\"%s\"",
                                      &zone->name, zone->conf.norm.len,
                                      zone->conf.norm.data,
                                      ngx_http_urlstore_state_name(zone));

    if (rc != NGX_OK || zone->filter) {
        return rc == NGX_OK ? ngx_http_urlstore_out_printf(out, 16,
                                                   ",\"filter\":true")
                            : NGX_ERROR;
    }

    p = uuid;

    for (i = 0; i < 16; i++) {
        p = ngx_hex_dump(p, &zone->conf.uuid[i], 1);

        if (i == 3 || i == 5 || i == 7 || i == 9) {
            *p++ = '-';
        }
    }

    *p = '\0';

    persist = zone->persist;

    if (persist == NULL) {
        return ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                            ",\"uuid\":\"%s\","
                                            "\"persistent\":false", uuid);
    }

    return ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                        ",\"uuid\":\"%s\",\"persistent\":true,"
                                        "\"sync\":\"%V\"", uuid,
                                        &persist->sync_name);
}


static ngx_int_t
ngx_http_urlstore_stats_figures(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f)
{
    u_char                            *p;
    ngx_int_t                          rc;
    ngx_uint_t                         of;
    const ngx_http_urlstore_figure_t  *row;

    of = ngx_http_urlstore_figures_of(zone);

    for (row = ngx_http_urlstore_figures; row->of; row++) {

        if (row->stat == NULL || !(row->of & of)) {
            continue;
        }

        p = (u_char *) f + row->offset;

        switch (row->kind) {

        case NGX_HTTP_URLSTORE_FLAG:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%s", row->stat,
                                              *(uint64_t *) p ? "true"
                                                              : "false");
            break;

        case NGX_HTTP_URLSTORE_RATIO:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%.9f", row->stat,
                                              *(double *) p);
            break;

        case NGX_HTTP_URLSTORE_SECONDS:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%.3f", row->stat,
                                              *(double *) p);
            break;

        default:

            if (*(uint64_t *) p == US_STORE_NO_ID) {
                rc = ngx_http_urlstore_out_printf(out,
                                                  NGX_HTTP_URLSTORE_MEMBER,
                                                  ",\"%s\":null", row->stat);
                break;
            }

            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%uL", row->stat,
                                              *(uint64_t *) p);
            break;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* bytes_per_url, parts, marks and answers */

static ngx_int_t
ngx_http_urlstore_stats_lists(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f)
{
    ngx_uint_t  i;

    /* room for all of it: names are at most US_STORE_MARK_LEN long */

    if (ngx_http_urlstore_out_room(out, 4096) != NGX_OK) {
        return NGX_ERROR;
    }

    if (f->bytes_per_url) {
        out->pos = ngx_sprintf(out->pos, ",\"bytes_per_url\":%.2f",
                               f->bytes_per_url);

    } else {
        out->pos = ngx_sprintf(out->pos, ",\"bytes_per_url\":null");
    }

    if (zone->filter == NULL) {
        out->pos = ngx_sprintf(out->pos, ",\"parts\":");

        for (i = 0; i < US_PARTS; i++) {
            out->pos = ngx_sprintf(out->pos, "%c\"%s\":%uL", i ? ',' : '{',
                                   us_store_part_name(i), f->parts[i]);
        }

        out->pos = ngx_sprintf(out->pos, "},\"marks\":[");

        for (i = 0; i < zone->conf.nmarks; i++) {
            out->pos = ngx_sprintf(out->pos, "%s\"%*s\"", i ? "," : "",
                                   zone->conf.marks[i].len,
                                   zone->conf.marks[i].data);
        }

        *out->pos++ = ']';
    }

    out->pos = ngx_sprintf(out->pos, ",\"answers\":");

    for (i = 0; i < NGX_HTTP_URLSTORE_ANSWERS; i++) {
        out->pos = ngx_sprintf(out->pos, "%c\"%s\":%uL", i ? ',' : '{',
                               ngx_http_urlstore_answers[i],
                               ngx_http_urlstore_sum(zone,
                                             NGX_HTTP_URLSTORE_N_NEW + i));
    }

    out->pos = ngx_sprintf(out->pos, "}}\n");

    return NGX_OK;
}
