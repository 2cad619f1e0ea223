
/*
 * A new base of a replicated log, by command.
 *
 *     location = /cluster { urlstore_cluster_admin NAME; }
 *
 *     POST ?rebase                     every zone of this nginx that is the
 *                                      primary of a shard of NAME makes one
 *     POST ?rebase=SHARD               the one of this shard
 *
 * The reply, 200, is sent when all are in force, however long that takes: its
 * lines are SHARD, NODE, LSN and BYTES.  503: one was not made, and the command
 * may be sent again.  409: none of them is a primary.
 *
 * A thread makes it.  If its worker ends, another one begins anew as long as
 * the client waits.
 */


#include "ngx_http_urlstore_shard.h"
#include "../life/us_replicate.h"
#include "../life/us_replicate_base.h"
#include "../input/us_json_quote.h"


#define NGX_HTTP_URLSTORE_REBASE  "rebase"

/* bytes of a zone in the reply */
#define NGX_HTTP_URLSTORE_REBASED                                             \
    (sizeof("{\"shard\":,\"node\":,\"base_lsn\":,\"base_bytes\":},")          \
     + 3 * NGX_INT64_LEN + us_json_quoted_max(US_MAP_NODE_LEN))


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    us_replicate_wish_t             wish;
} ngx_http_urlstore_rebase_zone_t;


static ngx_int_t ngx_http_urlstore_rebase_begin(ngx_http_urlstore_post_t *a);
static ngx_int_t ngx_http_urlstore_rebase_look(ngx_http_urlstore_post_t *a);
static ngx_int_t ngx_http_urlstore_rebase_failed(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *why);
static ngx_int_t ngx_http_urlstore_rebase_reply(ngx_http_urlstore_post_t *a);


/* "rebase", alone or with a value */

ngx_uint_t
ngx_http_urlstore_rebase_is(ngx_http_request_t *r)
{
    size_t  len;

    len = sizeof(NGX_HTTP_URLSTORE_REBASE) - 1;

    return r->args.len >= len
           && ngx_memcmp(r->args.data, NGX_HTTP_URLSTORE_REBASE, len) == 0
           && (r->args.len == len || r->args.data[len] == '=');
}


ngx_int_t
ngx_http_urlstore_rebase(ngx_http_request_t *r)
{
    size_t                     len;
    ngx_int_t                  rc;
    ngx_http_urlstore_post_t  *a;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    a = ngx_http_urlstore_post_create(r, ngx_http_urlstore_rebase_look);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->most = 0;
    len = sizeof(NGX_HTTP_URLSTORE_REBASE "=") - 1;

    if (r->args.len >= len
        && ngx_http_urlstore_post_only(a, r->args.data + len,
                                       r->args.len - len)
           != NGX_OK)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "\"rebase\" is the number of a "
                                         "shard, or without a value");
    }

    if (ngx_http_urlstore_rebase_begin(a) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (a->zones.nelts) {
        return ngx_http_urlstore_rebase_look(a);
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT,
                                     "\"reason\":\"standby\"", "no zone of "
                                     "this nginx is the primary of %s shard "
                                     "of the cluster %V",
                                     a->shard == NGX_ERROR ? "a" : "this",
                                     &a->cluster->name);
}


/* the zones that are primaries now */

static ngx_int_t
ngx_http_urlstore_rebase_begin(ngx_http_urlstore_post_t *a)
{
    ngx_uint_t                        i;
    ngx_http_urlstore_zone_t         *zone;
    ngx_http_urlstore_rebase_zone_t  *z;

    if (ngx_array_init(&a->zones, a->r->pool, 4,
                       sizeof(ngx_http_urlstore_rebase_zone_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    i = 0;

    while ((zone = ngx_http_urlstore_post_next(a, &i))) {

        if (zone->life.conf.replicate == NULL
            || us_share_state(zone->life.sh) != US_LIFE_READY)
        {
            continue;
        }

        z = ngx_array_push(&a->zones);
        if (z == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(z, sizeof(ngx_http_urlstore_rebase_zone_t));
        z->zone = zone;

        ngx_log_error(NGX_LOG_NOTICE, a->r->connection->log, 0,
                      "urlstore zone \"%V\": a new base of its log, by "
                      "command", &zone->name);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_rebase_look(ngx_http_urlstore_post_t *a)
{
    us_life_t                        *life;
    ngx_int_t                         rc;
    ngx_uint_t                        i, left;
    ngx_http_urlstore_rebase_zone_t  *z;

    z = a->zones.elts;
    left = 0;

    for (i = 0; i < a->zones.nelts; i++) {
        ngx_http_urlstore_refresh(z[i].zone);

        life = &z[i].zone->life;

        switch (us_replicate_wants_base(life, &z[i].wish)) {

        case 0:
            left++;
            break;

        case -1:
            return ngx_http_urlstore_rebase_failed(a->r, z[i].zone,
                                               us_replicate_base_why(life));
        }
    }

    if (left == 0) {
        return ngx_http_urlstore_rebase_reply(a);
    }

    rc = ngx_http_urlstore_post_wait(a);

    return rc != NGX_DECLINED ? rc
           : ngx_http_urlstore_rebase_failed(a->r, z[0].zone,
                                             "the worker is ending");
}


static ngx_int_t
ngx_http_urlstore_rebase_failed(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *why)
{
    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "node %V of shard %uD has made no base, "
                                     "the command may be sent again: %s",
                                     &zone->node, zone->conf.shard, why);
}


static ngx_int_t
ngx_http_urlstore_rebase_reply(ngx_http_urlstore_post_t *a)
{
    u_char                           *p;
    ngx_uint_t                        i;
    us_replicate_info_t               info;
    ngx_http_urlstore_ctx_t          *ctx;
    ngx_http_urlstore_zone_t         *zone;
    ngx_http_urlstore_rebase_zone_t  *z;

    ctx = ngx_http_get_module_ctx(a->r, ngx_http_urlstore_module);

    ngx_http_urlstore_accept(a->r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, a->r->pool, sizeof("[]\n")
                                   + a->zones.nelts * NGX_HTTP_URLSTORE_REBASED)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ctx->out.pos;
    z = a->zones.elts;

    for (i = 0; i < a->zones.nelts; i++) {
        zone = z[i].zone;
        us_replicate_info(&zone->life, &info);

        if (ctx->format == US_FORMAT_TEXT) {
            p = ngx_sprintf(p, "%uD\t%V\t%uL\t%uL\n", zone->conf.shard,
                            &zone->node, info.base_lsn, info.base_bytes);
            continue;
        }

        p = ngx_sprintf(p, "%s{\"shard\":%uD,\"node\":", i ? "," : "[",
                        zone->conf.shard);
        p = us_json_quote_bytes(p, ngx_http_urlstore_str(&zone->node));
        p = ngx_sprintf(p, ",\"base_lsn\":%uL,\"base_bytes\":%uL}",
                        info.base_lsn, info.base_bytes);
    }

    ctx->out.pos = ctx->format == US_FORMAT_TEXT ? p : ngx_sprintf(p, "]\n");

    return ngx_http_urlstore_send(a->r);
}
