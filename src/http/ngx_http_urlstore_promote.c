
/*
 * Promotion by command.
 *
 *     location = /cluster { urlstore_cluster_admin NAME; }
 *
 *     POST ?promote                    every replicated zone of this nginx that
 *                                      is a node of NAME becomes the primary
 *     POST ?promote=SHARD              the one of this shard
 *
 * The reply, 200, is sent when all of them are: its lines are SHARD, NODE and
 * TERM.  A node that cannot become the primary in time, for the log is away or
 * it still reads it, is 503: the command may be sent again.
 */


#include "ngx_http_urlstore_shard.h"
#include "ngx_http_urlstore_persist.h"
#include "../data/us_replicate.h"
#include "../input/us_json_quote.h"


#define NGX_HTTP_URLSTORE_PROMOTE  "promote"

/* bytes of a zone in the reply */
#define NGX_HTTP_URLSTORE_PROMOTED                                            \
    (sizeof("{\"shard\":,\"node\":,\"term\":},") + 2 * NGX_INT64_LEN          \
     + us_json_quoted_max(US_MAP_NODE_LEN))


typedef struct {
    ngx_http_request_t             *r;
    ngx_http_urlstore_cluster_t    *cluster;
    ngx_int_t                       shard;    /* NGX_ERROR: all */
    ngx_event_t                     timer;
    uint64_t                        since;    /* us */
} ngx_http_urlstore_promote_t;


static ngx_http_urlstore_zone_t *ngx_http_urlstore_promote_zone(
    ngx_http_urlstore_promote_t *a, ngx_uint_t *i);
static ngx_uint_t ngx_http_urlstore_promote_begin(
    ngx_http_urlstore_promote_t *a);
static ngx_int_t ngx_http_urlstore_promote_wait(
    ngx_http_urlstore_promote_t *a);
static void ngx_http_urlstore_promote_timer(ngx_event_t *ev);
static ngx_int_t ngx_http_urlstore_promote_later(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_promote_reply(
    ngx_http_urlstore_promote_t *a);
static void ngx_http_urlstore_promote_cleanup(void *data);


/* "promote", alone or with a value */

ngx_uint_t
ngx_http_urlstore_promote_is(ngx_http_request_t *r)
{
    size_t  len;

    len = sizeof(NGX_HTTP_URLSTORE_PROMOTE) - 1;

    return r->args.len >= len
           && ngx_memcmp(r->args.data, NGX_HTTP_URLSTORE_PROMOTE, len) == 0
           && (r->args.len == len || r->args.data[len] == '=');
}


ngx_int_t
ngx_http_urlstore_promote(ngx_http_request_t *r)
{
    size_t                         len;
    ngx_int_t                      rc;
    ngx_pool_cleanup_t            *cln;
    ngx_http_urlstore_promote_t   *a;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_promote_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_urlstore_promote_t));

    cln->handler = ngx_http_urlstore_promote_cleanup;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    a->r = r;
    a->cluster = ulcf->admin;
    a->shard = NGX_ERROR;
    a->since = ngx_http_urlstore_now();
    a->timer.handler = ngx_http_urlstore_promote_timer;
    a->timer.data = a;
    a->timer.log = r->connection->log;

    len = sizeof(NGX_HTTP_URLSTORE_PROMOTE "=") - 1;

    if (r->args.len >= len) {
        a->shard = ngx_atoi(r->args.data + len, r->args.len - len);

        if (a->shard == NGX_ERROR || a->shard >= US_SHARDS) {
            return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                             "\"promote\" is the number of a "
                                             "shard, or without a value");
        }
    }

    if (ngx_http_urlstore_promote_begin(a)) {
        return ngx_http_urlstore_promote_wait(a);
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT,
                                     "\"reason\":\"replicate\"", "no zone of "
                                     "this nginx is %s shard of the cluster "
                                     "%V and has replicate=",
                                     a->shard == NGX_ERROR ? "a" : "this",
                                     &a->cluster->name);
}


/* the next zone that is meant */

static ngx_http_urlstore_zone_t *
ngx_http_urlstore_promote_zone(ngx_http_urlstore_promote_t *a, ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t  *zone;

    while ((zone = ngx_http_urlstore_shard_next(a->r, a->cluster, i))) {

        if (zone->persist->life.conf.replicate
            && (a->shard == NGX_ERROR
                || (ngx_uint_t) a->shard == zone->conf.shard))
        {
            ngx_http_urlstore_refresh(zone);
            break;
        }
    }

    return zone;
}


/* gives the command, once: to how many zones */

static ngx_uint_t
ngx_http_urlstore_promote_begin(ngx_http_urlstore_promote_t *a)
{
    us_life_t                 *life;
    ngx_uint_t                 i, n;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;
    n = 0;

    while ((zone = ngx_http_urlstore_promote_zone(a, &i))) {
        life = &zone->persist->life;
        n++;

        if (us_life_state(life) == US_LIFE_READY) {
            continue;
        }

        ngx_log_error(NGX_LOG_NOTICE, a->r->connection->log, 0,
                      "urlstore zone \"%V\": to become the primary, by "
                      "command", &zone->name);

        us_replicate_promote(life);
    }

    return n;
}


static ngx_int_t
ngx_http_urlstore_promote_wait(ngx_http_urlstore_promote_t *a)
{
    ngx_uint_t                 i;
    ngx_http_request_t        *r;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;
    r = a->r;

    while ((zone = ngx_http_urlstore_promote_zone(a, &i))) {

        if (us_life_state(&zone->persist->life) != US_LIFE_READY) {
            break;
        }
    }

    if (zone == NULL) {
        return ngx_http_urlstore_promote_reply(a);
    }

    if ((ngx_http_urlstore_now() - a->since) / 1000
        > NGX_HTTP_URLSTORE_ADMIN_WAIT || ngx_exiting || ngx_terminate)
    {
        return ngx_http_urlstore_promote_later(r, zone);
    }

    if (!a->timer.timer_set) {
        r->main->count++;
    }

    ngx_add_timer(&a->timer, NGX_HTTP_URLSTORE_ADMIN_TICK);

    return NGX_DONE;
}


static void
ngx_http_urlstore_promote_timer(ngx_event_t *ev)
{
    ngx_connection_t             *c;
    ngx_http_request_t           *r;
    ngx_http_urlstore_promote_t  *a;

    a = ev->data;
    r = a->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_finalize_request(r, ngx_http_urlstore_promote_wait(a));
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_urlstore_promote_later(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone)
{
    us_life_info_t  info;

    us_life_info(&zone->persist->life, &info);

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "node %V of shard %uD is not the "
                                     "primary yet, the command may be sent "
                                     "again; its state is %s%s%s",
                                     &zone->node, zone->conf.shard,
                                     ngx_http_urlstore_state_name(zone),
                                     info.reason[0] ? ": " : "", info.reason);
}


static ngx_int_t
ngx_http_urlstore_promote_reply(ngx_http_urlstore_promote_t *a)
{
    u_char                    *p;
    size_t                     size;
    ngx_uint_t                 i, n;
    us_replicate_info_t        info;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(a->r, ngx_http_urlstore_module);
    size = sizeof("[]\n");

    for (i = 0; (zone = ngx_http_urlstore_promote_zone(a, &i)); /* void */) {
        size += NGX_HTTP_URLSTORE_PROMOTED;
    }

    ngx_http_urlstore_accept(a->r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, a->r->pool, size) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ctx->out.pos;
    n = 0;

    for (i = 0; (zone = ngx_http_urlstore_promote_zone(a, &i)); n++) {
        us_replicate_info(&zone->persist->life, &info);

        if (ctx->format == US_FORMAT_TEXT) {
            p = ngx_sprintf(p, "%uD\t%V\t%uL\n", zone->conf.shard,
                            &zone->node, info.term);
            continue;
        }

        p = ngx_sprintf(p, "%s{\"shard\":%uD,\"node\":", n ? "," : "[",
                        zone->conf.shard);
        p = us_json_quote_bytes(p, ngx_http_urlstore_str(&zone->node));
        p = ngx_sprintf(p, ",\"term\":%uL}", info.term);
    }

    ctx->out.pos = ctx->format == US_FORMAT_TEXT ? p : ngx_sprintf(p, "]\n");

    return ngx_http_urlstore_send(a->r);
}


static void
ngx_http_urlstore_promote_cleanup(void *data)
{
    ngx_http_urlstore_promote_t *a = data;

    if (a->timer.timer_set) {
        ngx_del_timer(&a->timer);
    }
}
