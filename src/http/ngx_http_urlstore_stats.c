/*
 * GET /stats, JSON for operators and the status page, and GET /metrics for
 * Prometheus: the figures of a zone (api/us_figures.h).
 *
 *     GET /              the status page
 *     GET /openapi.yaml  the description of the interface
 *
 * Both are files of front/, which front.awk turns into strings at configure
 * time.  The page shows what /stats, /seen, /url and /normalize answer to it,
 * under their access rules: there is no other way to the store.
 */


#include "ngx_http_urlstore_request.h"
#include "ngx_http_urlstore_front.h"
#include "../store/us_shard.h"


typedef uint8_t *(*ngx_http_urlstore_piece_pt)(uint8_t *p,
    const us_figures_t *f, unsigned n);


ngx_uint_t
ngx_http_urlstore_store_full(ngx_http_urlstore_zone_t *zone)
{
    us_store_info_t  info;

    us_store_info(zone->store, &info);

    return info.full;
}


/* whether new URLs are accepted: it is writable, has room, and has a map */

static ngx_uint_t
ngx_http_urlstore_accepts(ngx_http_urlstore_zone_t *zone)
{
    return !zone->kind->full(zone) && us_life_writable(&zone->life, NULL)
           && (zone->cluster == NULL || us_store_map(zone->store)->number);
}


/* whether look-ups are answered */

static ngx_uint_t
ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone)
{
    return us_life_whole(&zone->life)
           || us_life_state(&zone->life) == US_LIFE_REPLICA;
}


static ngx_int_t
ngx_http_urlstore_stats(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_piece_pt piece)
{
    u_char                         *p;
    ngx_str_t                      *name;
    ngx_uint_t                      i;
    us_figures_t                    f;
    ngx_http_urlstore_out_t        *out;
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_main_conf_t  *umcf;

    out = &ctx->out;
    zone = ctx->zone;

    ngx_memzero(&f, sizeof(us_figures_t));

    f.zone = ngx_http_urlstore_str(&zone->name);
    f.conf = &zone->conf;
    f.state = us_life_state(&zone->life);

    us_tally_sums(zone->sh->tallies, f.n);

    zone->kind->figures(zone, &f);

    f.uptime = ngx_time() - zone->sh->started;

    f.epoch = zone->conf.epoch;
    f.uuid = us_life_admits(&zone->life, US_WANTS_BY_ID)
             ? zone->conf.uuid : NULL;
    f.ready = ngx_http_urlstore_is_ready(zone);
    f.writable = ngx_http_urlstore_accepts(zone);

    umcf = ngx_http_get_module_main_conf(ctx->r, ngx_http_urlstore_module);

    for (i = 0; i < NGX_HTTP_URLSTORE_ENDPOINTS; i++) {

        /* an empty label would be none */

        name = (ngx_str_t *) &umcf->endpoints[i].name;
        f.endpoints[i] = name->len ? (char *) name->data : "page";
    }

    if (ngx_http_urlstore_out_init(out, ctx->r->pool, 2 * US_FIGURES_PIECE)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; /* void */ ; i++) {

        if (ngx_http_urlstore_out_room(out, US_FIGURES_PIECE) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p = piece(out->pos, &f, i);

        if (p == NULL) {
            return ngx_http_urlstore_send(ctx);
        }

        out->pos = p;
    }
}


ngx_int_t
ngx_http_urlstore_stats_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ngx_http_urlstore_stats(ctx, us_figures_stats);
}


ngx_int_t
ngx_http_urlstore_metrics_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_str_set(&ctx->type, "text/plain; version=0.0.4; charset=utf-8");

    return ngx_http_urlstore_stats(ctx, us_figures_metrics);
}


void
ngx_http_urlstore_store_figures(ngx_http_urlstore_zone_t *zone,
    us_figures_t *f)
{
    const us_store_map_t  *map;

    f->kind = US_FIGURES_MEMORY;
    f->next_id = ngx_http_urlstore_id(zone, us_life_ids(&zone->life));
    us_figures_store(f, zone->store);
    f->sets_most = zone->sets;

    if (zone->cluster) {
        map = us_store_map(zone->store);

        f->is_shard = 1;
        f->shard = zone->conf.shard;
        f->map_version = map->version;
        f->cluster = map->number ? map->cluster : NULL;
    }

    f->clock_ahead = f->clock > (uint64_t) ngx_time()
                     ? f->clock - ngx_time() : 0;

    us_figures_life(f, &zone->life);
}


/* for balancers */

ngx_int_t
ngx_http_urlstore_health_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_uint_t   full, writable;
    const char  *state;

    state = us_life_state_word(us_life_state(&ctx->zone->life));
    full = ctx->zone->kind->full(ctx->zone);
    writable = ngx_http_urlstore_accepts(ctx->zone);

    if (!ngx_http_urlstore_is_ready(ctx->zone)) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;

    } else if (!writable && ngx_http_urlstore_flag(ctx->r, "write")) {
        ctx->status = NGX_HTTP_SERVICE_UNAVAILABLE;
        state = full ? "full"
                : us_life_writable(&ctx->zone->life, NULL) ? "no-map"
                : "read-only";
    }

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, US_HEALTH_TEXT)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = us_health(ctx->out.pos, ctx->format, state, writable, full,
                             ctx->zone->conf.epoch, &ctx->zone->life);

    return ngx_http_urlstore_send(ctx);
}


/*
 * The page's links are relative and need the slash after the location's name.
 * The redirect is relative too: "./NAME/" cannot lead to another host.
 */

ngx_int_t
ngx_http_urlstore_page_handler(ngx_http_urlstore_ctx_t *ctx)
{
    u_char              *name, *end;
    ngx_http_request_t  *r;

    r = ctx->r;

    if (ctx->conf->endpoint == NULL && r->uri.data[r->uri.len - 1] != '/') {
        name = r->unparsed_uri.data;
        end = ngx_strlchr(name, name + r->unparsed_uri.len, '?');

        if (end == NULL) {
            end = name + r->unparsed_uri.len;
        }

        for (name = end; name > r->unparsed_uri.data && name[-1] != '/'; name--)
        {
            /* void */
        }

        ngx_http_urlstore_header_printf(ctx, "Location", sizeof(".//?") - 1
                                        + (end - name) + r->args.len,
                                        "./%*s/%s%V", end - name, name,
                                        r->args.len ? "?" : "", &r->args);

        ctx->status = NGX_HTTP_MOVED_PERMANENTLY;
        ngx_str_set(&ctx->type, "text/plain");

        return ngx_http_urlstore_send_text(ctx, us_string("moved\n"));
    }

    /* nothing from elsewhere, and no script but the page's own */

    ngx_http_urlstore_header_text(ctx, "Content-Security-Policy",
                                  "default-src 'none'; "
                                  "style-src 'unsafe-inline'; "
                                  "script-src 'unsafe-inline'; img-src data:; "
                                  "connect-src 'self'; form-action 'self'; "
                                  "base-uri 'none'; frame-ancestors 'none'");

    ngx_str_set(&ctx->type, "text/html; charset=utf-8");

    return ngx_http_urlstore_send_text(ctx,
                  ngx_http_urlstore_str(&ngx_http_urlstore_front_status));
}


ngx_int_t
ngx_http_urlstore_openapi_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_str_set(&ctx->type, "application/yaml");

    return ngx_http_urlstore_send_text(ctx,
                  ngx_http_urlstore_str(&ngx_http_urlstore_front_openapi));
}
