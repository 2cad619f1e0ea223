
/*
 * Promotion by command.
 *
 *     location = /cluster { urlstore_cluster_admin NAME; }
 *
 *     POST ?promote                    every replicated zone of this nginx that
 *                                      is a node of NAME becomes the primary
 *     POST ?promote=SHARD              the one of this shard
 *     POST ?forget, ?forget=SHARD      the same for logs that have lost rows:
 *                                      what is lost is given up first
 *
 * The reply, 200, is sent when all of them are: its lines are SHARD, NODE and
 * TERM.  A node that cannot become the primary in time, for the log is away or
 * it still reads it, is 503: the command may be sent again.
 */


#include "ngx_http_urlstore_shard.h"
#include "../life/us_replicate.h"
#include "../input/us_json_quote.h"


/* bytes of a zone in the reply */
#define NGX_HTTP_URLSTORE_PROMOTED                                            \
    (sizeof("{\"shard\":,\"node\":,\"term\":},") + 2 * NGX_INT64_LEN          \
     + us_json_quoted_max(US_MAP_NODE_LEN))


static ngx_http_urlstore_zone_t *ngx_http_urlstore_promote_zone(
    ngx_http_urlstore_post_t *a, ngx_uint_t *i);
static ngx_uint_t ngx_http_urlstore_promote_begin(
    ngx_http_urlstore_post_t *a);
static ngx_int_t ngx_http_urlstore_promote_look(
    ngx_http_urlstore_post_t *a);
static ngx_int_t ngx_http_urlstore_promote_later(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_promote_reply(
    ngx_http_urlstore_post_t *a);


/* a command, alone or with a value */

static ngx_uint_t
ngx_http_urlstore_promote_command(ngx_http_request_t *r, const char *name)
{
    size_t  len;

    len = ngx_strlen(name);

    return r->args.len >= len && ngx_memcmp(r->args.data, name, len) == 0
           && (r->args.len == len || r->args.data[len] == '=');
}


ngx_uint_t
ngx_http_urlstore_promote_is(ngx_http_request_t *r)
{
    return ngx_http_urlstore_promote_command(r, "promote")
           || ngx_http_urlstore_promote_command(r, "forget");
}


ngx_int_t
ngx_http_urlstore_promote(ngx_http_request_t *r)
{
    u_char                    *p;
    ngx_int_t                  rc;
    ngx_http_urlstore_post_t  *a;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    a = ngx_http_urlstore_post_create(r, ngx_http_urlstore_promote_look);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_strlchr(r->args.data, r->args.data + r->args.len, '=');

    if (p && ngx_http_urlstore_post_only(a, p + 1,
                                         r->args.data + r->args.len - p - 1)
             != NGX_OK)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "\"%*s\" is the number of a "
                                         "shard, or without a value",
                                         (size_t) (p - r->args.data),
                                         r->args.data);
    }

    if (ngx_http_urlstore_promote_begin(a)) {
        return ngx_http_urlstore_promote_look(a);
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT,
                                     "\"reason\":\"replicate\"", "no zone of "
                                     "this nginx is %s shard of the cluster "
                                     "%V and has %s",
                                     a->shard == NGX_ERROR ? "a" : "this",
                                     &a->cluster->name,
                                     ngx_http_urlstore_promote_command(r,
                                                                  "promote")
                                     ? "replicate=" : "a log that has lost "
                                                      "rows");
}


/* the next zone that is meant and replicated */

static ngx_http_urlstore_zone_t *
ngx_http_urlstore_promote_zone(ngx_http_urlstore_post_t *a, ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t  *zone;

    while ((zone = ngx_http_urlstore_post_next(a, i))) {

        if (zone->life.conf.replicate) {
            break;
        }
    }

    return zone;
}


/* gives the command, once: to how many zones */

static ngx_uint_t
ngx_http_urlstore_promote_begin(ngx_http_urlstore_post_t *a)
{
    us_life_t                 *life;
    ngx_uint_t                 i, n, promote;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;
    n = 0;
    promote = ngx_http_urlstore_promote_command(a->r, "promote");

    while ((zone = ngx_http_urlstore_promote_zone(a, &i))) {
        life = &zone->life;

        if (!promote) {

            /* a command that is sent again finds that it was done */

            n += us_replicate_forget(life) == 0
                 || us_life_state(life) == US_LIFE_READY;
            continue;
        }

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
ngx_http_urlstore_promote_look(ngx_http_urlstore_post_t *a)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;

    while ((zone = ngx_http_urlstore_promote_zone(a, &i))) {

        if (us_life_state(&zone->life) != US_LIFE_READY) {
            break;
        }
    }

    if (zone == NULL) {
        return ngx_http_urlstore_promote_reply(a);
    }

    rc = ngx_http_urlstore_post_wait(a);

    return rc == NGX_DECLINED ? ngx_http_urlstore_promote_later(a->r, zone)
                              : rc;
}


static ngx_int_t
ngx_http_urlstore_promote_later(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone)
{
    const char      *state;
    us_life_info_t   info;

    us_life_info(&zone->life, &info);
    state = us_life_state_word(us_life_state(&zone->life));

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "node %V of shard %uD is not the "
                                     "primary yet, the command may be sent "
                                     "again; its state is %s%s%s",
                                     &zone->node, zone->conf.shard, state,
                                     info.reason[0] ? ": " : "", info.reason);
}


static ngx_int_t
ngx_http_urlstore_promote_reply(ngx_http_urlstore_post_t *a)
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
        us_replicate_info(&zone->life, &info);

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
