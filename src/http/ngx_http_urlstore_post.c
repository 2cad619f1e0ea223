
/*
 * A POST to urlstore_cluster_admin: which shards of this nginx it is for, and
 * how it waits until they are as it wants them.
 *
 *     create()        look() <--.      called again and again, every few ms
 *        |              |       |
 *        '------------->|  wait()
 *                       |
 *                     reply
 *
 * Commands for the replicated zones that are nodes of NAME:
 *
 *     location = /cluster { urlstore_cluster_admin NAME; }
 *
 *     POST ?promote     each becomes the primary
 *     POST ?forget      the same for logs that have lost rows: what is lost is
 *                       given up first
 *     POST ?rebase      each that is a primary makes a new base of its log
 *
 * With =SHARD, for the one of this shard.  The reply, 200, is sent when all are
 * done, a rebase however long that takes: its lines are SHARD, NODE and TERM,
 * or LSN and BYTES of the base.  409: the command is for none of them.  503:
 * one could not do it, or not in time, for the log is away or it still reads
 * it: the command may be sent again.
 *
 * A thread makes a base.  If its worker ends, another one begins anew as long
 * as the client waits.
 */


#include "ngx_http_urlstore_shard.h"
#include "../life/us_replicate.h"
#include "../life/us_replicate_base.h"
#include "../input/us_json.h"


#define NGX_HTTP_URLSTORE_POST_TICK   5       /* ms between two looks */
#define NGX_HTTP_URLSTORE_POST_WAIT   10000   /* ms that a POST waits */


/* bytes of a zone in the reply to a command */
#define NGX_HTTP_URLSTORE_POST_LINE                                           \
    (sizeof("{\"shard\":,\"node\":,\"base_lsn\":,\"base_bytes\":},")          \
     + 3 * NGX_INT64_LEN + us_json_quoted_max(US_MAP_NODE_LEN))


typedef enum {
    NGX_HTTP_URLSTORE_PROMOTE = 0,
    NGX_HTTP_URLSTORE_FORGET,
    NGX_HTTP_URLSTORE_REBASE,
    NGX_HTTP_URLSTORE_COMMANDS
} ngx_http_urlstore_command_e;


/* a zone that a command is for */

typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    us_replicate_wish_t             wish;     /* of a rebase */
} ngx_http_urlstore_post_zone_t;


static const struct {
    ngx_str_t                       name;
    const char                     *does;
    const char                     *reason;   /* of a 409: no shard */
    const char                     *has;
} ngx_http_urlstore_post_commands[] = {
    { ngx_string("promote"), "to become the primary",
      "\"reason\":\"replicate\"", " and has replicate=" },
    { ngx_string("forget"), NULL, "\"reason\":\"replicate\"",
      " and has a log that has lost rows" },
    { ngx_string("rebase"), "a new base of its log",
      "\"reason\":\"standby\"", "" }
};


static void
ngx_http_urlstore_post_timer(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_urlstore_post_t  *a;

    a = ev->data;
    r = a->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    /* who has left waits no longer for what has no end of its own */

    ngx_http_finalize_request(r, a->most == 0 && c->read->pending_eof
                                 ? NGX_HTTP_CLIENT_CLOSED_REQUEST
                                 : a->look(a));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_urlstore_post_cleanup(void *data)
{
    ngx_http_urlstore_post_t *a = data;

    if (a->timer.timer_set) {
        ngx_del_timer(&a->timer);
    }

    us_map_free(a->map);
}


ngx_http_urlstore_post_t *
ngx_http_urlstore_post_create(ngx_http_request_t *r,
    ngx_http_urlstore_post_pt look)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_urlstore_post_t      *a;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_post_t));
    if (cln == NULL) {
        return NULL;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_urlstore_post_t));

    cln->handler = ngx_http_urlstore_post_cleanup;

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    a->r = r;
    a->cluster = ulcf->admin;
    a->shard = NGX_ERROR;
    a->look = look;
    a->since = ngx_http_urlstore_now();
    a->most = NGX_HTTP_URLSTORE_POST_WAIT;
    a->timer.handler = ngx_http_urlstore_post_timer;
    a->timer.data = a;
    a->timer.log = r->connection->log;

    return a;
}


ngx_int_t
ngx_http_urlstore_post_only(ngx_http_urlstore_post_t *a, u_char *number,
    size_t len)
{
    a->shard = ngx_atoi(number, len);

    return a->shard == NGX_ERROR || a->shard >= US_SHARDS ? NGX_ERROR : NGX_OK;
}


ngx_http_urlstore_zone_t *
ngx_http_urlstore_post_next(ngx_http_urlstore_post_t *a, ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t  *zone;

    while ((zone = ngx_http_urlstore_shard_next(a->r, a->cluster, i))) {

        if (a->shard == NGX_ERROR
            || (ngx_uint_t) a->shard == zone->conf.shard)
        {
            ngx_http_urlstore_refresh(zone);
            break;
        }
    }

    return zone;
}


ngx_int_t
ngx_http_urlstore_post_wait(ngx_http_urlstore_post_t *a)
{
    if ((a->most && (ngx_http_urlstore_now() - a->since) / 1000 > a->most)
        || ngx_exiting || ngx_terminate)
    {
        return NGX_DECLINED;
    }

    a->r->main->count++;

    ngx_add_timer(&a->timer, NGX_HTTP_URLSTORE_POST_TICK);

    return NGX_DONE;
}


/* --- commands ------------------------------------------------------------- */

/* gives the command to a zone; whether it is for it */

static ngx_uint_t
ngx_http_urlstore_post_give(ngx_http_urlstore_post_t *a,
    ngx_http_urlstore_zone_t *zone)
{
    us_life_t   *life;
    ngx_uint_t   ready;

    life = &zone->life;

    if (life->conf.replicate == NULL) {
        return 0;
    }

    ready = us_life_state(life) == US_LIFE_READY;

    switch (a->command) {

    case NGX_HTTP_URLSTORE_FORGET:

        /* a command that is sent again finds that it was done */

        return us_replicate_forget(life) == 0 || ready;

    case NGX_HTTP_URLSTORE_REBASE:

        if (us_share_state(life->sh) != US_LIFE_READY) {
            return 0;
        }

        break;

    default:

        if (ready) {
            return 1;
        }

        us_replicate_promote(life);
    }

    ngx_log_error(NGX_LOG_NOTICE, a->r->connection->log, 0,
                  "urlstore zone \"%V\": %s, by command", &zone->name,
                  ngx_http_urlstore_post_commands[a->command].does);

    return 1;
}


/* NGX_OK: it is done; NGX_AGAIN: not yet; NGX_ERROR */

static ngx_int_t
ngx_http_urlstore_post_given(ngx_http_urlstore_post_t *a,
    ngx_http_urlstore_post_zone_t *z)
{
    int         rc;
    us_life_t  *life;

    life = &z->zone->life;
    ngx_http_urlstore_refresh(z->zone);

    if (a->command != NGX_HTTP_URLSTORE_REBASE) {
        return us_life_state(life) == US_LIFE_READY ? NGX_OK : NGX_AGAIN;
    }

    rc = us_replicate_wants_base(life, &z->wish);

    return rc == 1 ? NGX_OK : rc == 0 ? NGX_AGAIN : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_post_later(ngx_http_urlstore_post_t *a,
    ngx_http_urlstore_zone_t *zone)
{
    u_char          *p, text[US_SHARE_REASON + 128];
    us_life_info_t   info;

    if (ngx_http_urlstore_retry_after(a->r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (a->command == NGX_HTTP_URLSTORE_REBASE) {
        p = ngx_slprintf(text, text + sizeof(text), "has made no base, the "
                         "command may be sent again: %s",
                         ngx_exiting || ngx_terminate
                         ? "the worker is ending"
                         : us_replicate_base_why(&zone->life));

    } else {
        us_life_info(&zone->life, &info);
        p = ngx_slprintf(text, text + sizeof(text), "is not the primary yet, "
                         "the command may be sent again; its state is %s%s%s",
                         us_life_state_word(us_life_state(&zone->life)),
                         info.reason[0] ? ": " : "", info.reason);
    }

    return ngx_http_urlstore_problem(a->r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "node %V of shard %uD %*s", &zone->node,
                                     zone->conf.shard, (size_t) (p - text),
                                     text);
}


static ngx_int_t
ngx_http_urlstore_post_reply(ngx_http_urlstore_post_t *a)
{
    u_char                         *p;
    ngx_uint_t                      i, text, rebase;
    us_replicate_info_t             info;
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_post_zone_t  *z;

    ctx = ngx_http_get_module_ctx(a->r, ngx_http_urlstore_module);

    ngx_http_urlstore_accept(a->r, US_FORMAT_JSON);

    if (ngx_http_urlstore_out_init(&ctx->out, a->r->pool, sizeof("[]\n")
                                   + a->zones.nelts
                                     * NGX_HTTP_URLSTORE_POST_LINE)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ctx->out.pos;
    z = a->zones.elts;
    text = ctx->format == US_FORMAT_TEXT;
    rebase = a->command == NGX_HTTP_URLSTORE_REBASE;

    for (i = 0; i < a->zones.nelts; i++) {
        zone = z[i].zone;
        us_replicate_info(&zone->life, &info);

        if (text) {
            p = ngx_sprintf(p, "%uD\t%V", zone->conf.shard, &zone->node);
            p = rebase ? ngx_sprintf(p, "\t%uL\t%uL\n", info.base_lsn,
                                     info.base_bytes)
                       : ngx_sprintf(p, "\t%uL\n", info.term);
            continue;
        }

        p = ngx_sprintf(p, "%s{\"shard\":%uD,\"node\":", i ? "," : "[",
                        zone->conf.shard);
        p = us_json_quote_bytes(p, ngx_http_urlstore_str(&zone->node));
        p = rebase ? ngx_sprintf(p, ",\"base_lsn\":%uL,\"base_bytes\":%uL}",
                                 info.base_lsn, info.base_bytes)
                   : ngx_sprintf(p, ",\"term\":%uL}", info.term);
    }

    ctx->out.pos = text ? p : ngx_sprintf(p, "]\n");

    return ngx_http_urlstore_send(a->r);
}


static ngx_int_t
ngx_http_urlstore_post_look(ngx_http_urlstore_post_t *a)
{
    ngx_int_t                       rc;
    ngx_uint_t                      i;
    ngx_http_urlstore_zone_t       *wait;
    ngx_http_urlstore_post_zone_t  *z;

    wait = NULL;
    z = a->zones.elts;

    for (i = 0; i < a->zones.nelts; i++) {
        rc = ngx_http_urlstore_post_given(a, &z[i]);

        if (rc == NGX_ERROR) {
            return ngx_http_urlstore_post_later(a, z[i].zone);
        }

        if (rc == NGX_AGAIN && wait == NULL) {
            wait = z[i].zone;
        }
    }

    if (wait == NULL) {
        return ngx_http_urlstore_post_reply(a);
    }

    rc = ngx_http_urlstore_post_wait(a);

    return rc == NGX_DECLINED ? ngx_http_urlstore_post_later(a, wait) : rc;
}


/* a word, alone or with a value */

static ngx_uint_t
ngx_http_urlstore_post_is(ngx_http_request_t *r, const ngx_str_t *name)
{
    return r->args.len >= name->len
           && ngx_memcmp(r->args.data, name->data, name->len) == 0
           && (r->args.len == name->len || r->args.data[name->len] == '=');
}


ngx_int_t
ngx_http_urlstore_post_command(ngx_http_request_t *r)
{
    u_char                         *p;
    ngx_int_t                       rc;
    ngx_uint_t                      i, command;
    const ngx_str_t                *name;
    ngx_http_urlstore_post_t       *a;
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_post_zone_t  *z;

    for (command = 0; command < NGX_HTTP_URLSTORE_COMMANDS; command++) {
        name = &ngx_http_urlstore_post_commands[command].name;

        if (ngx_http_urlstore_post_is(r, name)) {
            break;
        }
    }

    if (command == NGX_HTTP_URLSTORE_COMMANDS) {
        return NGX_DECLINED;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    a = ngx_http_urlstore_post_create(r, ngx_http_urlstore_post_look);
    if (a == NULL
        || ngx_array_init(&a->zones, r->pool, 4,
                          sizeof(ngx_http_urlstore_post_zone_t))
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    a->command = command;

    if (command == NGX_HTTP_URLSTORE_REBASE) {
        a->most = 0;
    }

    p = r->args.data + name->len + 1;

    if (r->args.len > name->len
        && ngx_http_urlstore_post_only(a, p, r->args.data + r->args.len - p)
           != NGX_OK)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "\"%V\" is the number of a shard, or "
                                         "without a value", name);
    }

    i = 0;

    while ((zone = ngx_http_urlstore_post_next(a, &i))) {

        if (!ngx_http_urlstore_post_give(a, zone)) {
            continue;
        }

        z = ngx_array_push(&a->zones);
        if (z == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_memzero(z, sizeof(ngx_http_urlstore_post_zone_t));
        z->zone = zone;
    }

    if (a->zones.nelts) {
        return ngx_http_urlstore_post_look(a);
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT,
                                     ngx_http_urlstore_post_commands[command]
                                         .reason,
                                     "no zone of this nginx is %s%s shard of "
                                     "the cluster %V%s",
                                     command == NGX_HTTP_URLSTORE_REBASE
                                     ? "the primary of " : "",
                                     a->shard == NGX_ERROR ? "a" : "this",
                                     &a->cluster->name,
                                     ngx_http_urlstore_post_commands[command]
                                         .has);
}
