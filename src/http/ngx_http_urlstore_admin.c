/*
 * urlstore_cluster_admin: maps of a cluster, and commands for its nodes.
 *
 *     GET /cluster                     of urlstore_api: the map of the shard
 *
 *     location = /cluster { urlstore_cluster_admin NAME; }
 *
 *     GET                              the same
 *     POST a map                       every shard of NAME in this nginx adopts
 *                                      it, and its file is written if this
 *                                      nginx routes NAME
 *     POST ?shard=SHARD a map          this shard only
 *     POST ?check=1 a map              nothing is done: may it be posted?
 *     POST ?promote[=SHARD]            each replicated node becomes the primary
 *     POST ?forget[=SHARD]             the same for logs that have lost rows:
 *                                      what is lost is given up first
 *     POST ?rebase[=SHARD]             each that is a primary makes a new base
 *                                      of its log
 *
 * A POST waits until the shards of this nginx are as it wants them: look() is
 * called again every few ms.
 *
 * A map is checked against all shards before the first of them adopts it.  The
 * reply, 204, is sent when it is durable at all of them.  What is refused, or
 * ends before, may be posted again: a shard that has a map adopts it no more.
 *
 * A standby (replicate=) checks the map's uuid, and gets the map from its
 * primary, by the log.  Where all are standbys, the reply is 503 with
 * Urlstore-Refused.  A map with a node that this nginx, if it is a router, has
 * no upstream for is refused, because nginx would not start with it.
 *
 * The reply to a command, 200, is sent when all are done, a rebase however long
 * that takes: its lines are SHARD, NODE and TERM, or LSN and BYTES of the base.
 * 409: the command is for none of them.  503: one could not do it, or not in
 * time, for the log is away or it still reads it: the command may be sent
 * again.  A thread makes a base.  If its worker ends, another one begins anew
 * as long as the client waits.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../journal/us_disk.h"
#include "../life/us_replicate.h"
#include "../life/us_replicate_base.h"


#define NGX_HTTP_URLSTORE_POST_TICK   5       /* ms between two looks */
#define NGX_HTTP_URLSTORE_POST_WAIT   10000   /* ms that a POST waits */


/* bytes of a zone in the reply to a command */
#define NGX_HTTP_URLSTORE_POST_LINE                                           \
    (sizeof("{\"shard\":,\"node\":,\"base_lsn\":,\"base_bytes\":},")          \
     + 3 * NGX_INT64_LEN + us_json_quoted_max(US_MAP_NODE_LEN))


/* commands, in this order */
#define NGX_HTTP_URLSTORE_COMMANDS  "promote forget rebase"

typedef enum {
    NGX_HTTP_URLSTORE_PROMOTE = 0,
    NGX_HTTP_URLSTORE_FORGET,
    NGX_HTTP_URLSTORE_REBASE
} ngx_http_urlstore_command_e;


/* a POST, which waits until shards of this nginx are as it wants them */

typedef struct ngx_http_urlstore_post_s  ngx_http_urlstore_post_t;

typedef ngx_int_t (*ngx_http_urlstore_post_pt)(
    ngx_http_urlstore_post_t *a);

struct ngx_http_urlstore_post_s {
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_int_t                       shard;    /* NGX_ERROR: all */

    /* looks at the shards; what it returns is the request's result */
    ngx_http_urlstore_post_pt       look;
    ngx_event_t                     timer;
    uint64_t                        since;    /* us */
    uint64_t                        most;     /* ms to wait; 0: for ever */

    /* of a command, and the zones that it is for */
    ngx_int_t                       command;
    ngx_array_t                     zones;

    /* of a map */
    us_map_t                       *map;
    ngx_uint_t                      check;    /* and nothing else */
    ngx_uint_t                      adopted;
    ngx_uint_t                      shards;   /* that have adopted it */
};


/* a zone that a command is for */

typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    us_replicate_wish_t             wish;     /* of a rebase */
} ngx_http_urlstore_post_zone_t;


static const struct {
    const char                     *does;
    const char                     *reason;   /* of a 409: no shard */
    const char                     *has;
} ngx_http_urlstore_post_commands[] = {
    { "to become the primary", "\"reason\":\"replicate\"",
      " and has replicate=" },
    { NULL, "\"reason\":\"replicate\"", " and has a log that has lost rows" },
    { "a new base of its log", "\"reason\":\"standby\"", "" }
};


static void
ngx_http_urlstore_post_timer(ngx_event_t *ev)
{
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_urlstore_post_t  *a;

    a = ev->data;
    r = a->ctx->r;
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


/* a POST for all shards, freed with its request; NULL: no memory */

static ngx_http_urlstore_post_t *
ngx_http_urlstore_post_create(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_post_pt look)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_urlstore_post_t  *a;

    cln = ngx_pool_cleanup_add(ctx->r->pool, sizeof(ngx_http_urlstore_post_t));
    if (cln == NULL) {
        return NULL;
    }

    a = cln->data;
    ngx_memzero(a, sizeof(ngx_http_urlstore_post_t));

    cln->handler = ngx_http_urlstore_post_cleanup;

    a->ctx = ctx;
    a->shard = NGX_ERROR;
    a->look = look;
    a->since = ngx_http_urlstore_now();
    a->most = NGX_HTTP_URLSTORE_POST_WAIT;
    a->timer.handler = ngx_http_urlstore_post_timer;
    a->timer.data = a;
    a->timer.log = ctx->r->connection->log;

    return a;
}


/* for one shard only; NGX_ERROR: it is not the number of a shard */

static ngx_int_t
ngx_http_urlstore_post_only(ngx_http_urlstore_post_t *a, us_str_t number)
{
    a->shard = ngx_atoi((u_char *) number.data, number.len);

    return a->shard == NGX_ERROR || a->shard >= US_SHARDS ? NGX_ERROR : NGX_OK;
}


/*
 * The next zone of this nginx from *i on that is a shard of the cluster, of any
 * number if that is NGX_ERROR, and no replica; as it is now.  NULL: no more.
 */

static ngx_http_urlstore_zone_t *
ngx_http_urlstore_shard_next(ngx_http_urlstore_ctx_t *ctx, ngx_int_t shard,
    ngx_uint_t *i)
{
    ngx_http_urlstore_zone_t       **zp, *zone;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_get_module_main_conf(ctx->r, ngx_http_urlstore_module);
    zp = umcf->zones.elts;

    while (*i < umcf->zones.nelts) {
        zone = zp[(*i)++];

        if (zone->cluster == ctx->conf->admin
            && zone->life.conf.follow == NULL
            && (shard == NGX_ERROR || (ngx_uint_t) shard == zone->conf.shard))
        {
            ngx_http_urlstore_refresh(zone);
            return zone;
        }
    }

    return NULL;
}


/* NGX_DONE: look() is called again soon; NGX_DECLINED: its time is over */

static ngx_int_t
ngx_http_urlstore_post_wait(ngx_http_urlstore_post_t *a)
{
    if ((a->most && (ngx_http_urlstore_now() - a->since) / 1000 > a->most)
        || ngx_exiting || ngx_terminate)
    {
        return NGX_DECLINED;
    }

    a->ctx->r->main->count++;

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

    /* a command that is sent again finds that it was done */

    if (a->command == NGX_HTTP_URLSTORE_FORGET) {
        return us_replicate_forget(life) == 0 || ready;
    }

    if (a->command == NGX_HTTP_URLSTORE_PROMOTE) {

        if (ready) {
            return 1;
        }

        us_replicate_promote(life);

    } else if (us_share_state(life->sh) != US_LIFE_READY) {
        return 0;
    }

    ngx_log_error(NGX_LOG_NOTICE, a->ctx->r->connection->log, 0,
                  "urlstore zone \"%V\": %s, by command", &zone->name,
                  ngx_http_urlstore_post_commands[a->command].does);

    return 1;
}


static ngx_int_t
ngx_http_urlstore_post_later(ngx_http_urlstore_post_t *a,
    ngx_http_urlstore_zone_t *zone)
{
    us_life_info_t  info;

    ngx_http_urlstore_retry_after(a->ctx, 1);

    if (a->command == NGX_HTTP_URLSTORE_REBASE) {
        return ngx_http_urlstore_problem(a->ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         NULL, "node %V of shard %uD has made "
                                         "no base, the command may be sent "
                                         "again: %s", &zone->node,
                                         zone->conf.shard,
                                         ngx_exiting || ngx_terminate
                                         ? "the worker is ending"
                                         : us_replicate_base_why(&zone->life));
    }

    us_life_info(&zone->life, &info);

    return ngx_http_urlstore_problem(a->ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "node %V of shard %uD is not the primary "
                                     "yet, the command may be sent again; its "
                                     "state is %s%s%s", &zone->node,
                                     zone->conf.shard,
                                     us_life_state_word(
                                         us_life_state(&zone->life)),
                                     info.reason[0] ? ": " : "", info.reason);
}


/* the reply, when the command is done by all zones, or its time is over */

static ngx_int_t
ngx_http_urlstore_post_look(ngx_http_urlstore_post_t *a)
{
    int                             made;
    u_char                         *p;
    ngx_int_t                       rc;
    ngx_uint_t                      i, text, rebase;
    us_replicate_info_t             info;
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_zone_t       *zone, *wait;
    ngx_http_urlstore_post_zone_t  *z;

    ctx = a->ctx;
    rebase = a->command == NGX_HTTP_URLSTORE_REBASE;
    wait = NULL;
    z = a->zones.elts;

    for (i = 0; i < a->zones.nelts; i++) {
        zone = z[i].zone;
        ngx_http_urlstore_refresh(zone);

        made = rebase ? us_replicate_wants_base(&zone->life, &z[i].wish)
                      : us_life_state(&zone->life) == US_LIFE_READY;

        if (made == -1) {
            return ngx_http_urlstore_post_later(a, zone);
        }

        if (made == 0 && wait == NULL) {
            wait = zone;
        }
    }

    if (wait) {
        rc = ngx_http_urlstore_post_wait(a);

        return rc == NGX_DECLINED ? ngx_http_urlstore_post_later(a, wait) : rc;
    }

    if (ngx_http_urlstore_reply_begin(ctx, US_FORMAT_JSON, sizeof("[]\n")
                                      + a->zones.nelts
                                        * NGX_HTTP_URLSTORE_POST_LINE)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ctx->out.pos;
    text = ctx->format == US_FORMAT_TEXT;

    for (i = 0; i < a->zones.nelts; i++) {
        zone = z[i].zone;
        us_replicate_info(&zone->life, &info);

        p = us_put(p, text ? "" : i ? "," : "[");
        p = us_json_printf(p, text ? "%u\t%V\t"
                                   : "{\"shard\":%u,\"node\":%q,",
                           (uint64_t) zone->conf.shard,
                           ngx_http_urlstore_str(&zone->node));
        p = rebase
            ? us_json_printf(p, text ? "%u\t%u\n"
                                     : "\"base_lsn\":%u,\"base_bytes\":%u}",
                             info.base_lsn, info.base_bytes)
            : us_json_printf(p, text ? "%u\n" : "\"term\":%u}", info.term);
    }

    ctx->out.pos = us_put(p, text ? "" : "]\n");

    return ngx_http_urlstore_send(ctx);
}


/* promote, forget, rebase; NGX_DECLINED: the POST is none of them */

static ngx_int_t
ngx_http_urlstore_post_command(ngx_http_urlstore_ctx_t *ctx)
{
    int                             has;
    us_str_t                        name, value;
    ngx_int_t                       rc, command;
    ngx_uint_t                      i;
    ngx_http_request_t             *r;
    ngx_http_urlstore_post_t       *a;
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_post_zone_t  *z;

    r = ctx->r;

    /* a word, alone or with a value */

    value = ngx_http_urlstore_str(&r->args);
    has = us_str_cut(&value, '=', &name);
    command = us_word_number(NGX_HTTP_URLSTORE_COMMANDS, name);

    if (command == -1) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_no_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    a = ngx_http_urlstore_post_create(ctx, ngx_http_urlstore_post_look);
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

    if (has && ngx_http_urlstore_post_only(a, value) != NGX_OK) {
        return ngx_http_urlstore_bad(ctx, "\"%*s\" is the number of a shard, "
                                     "or without a value", name.len,
                                     name.data);
    }

    i = 0;

    while ((zone = ngx_http_urlstore_shard_next(ctx, a->shard, &i))) {

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

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_CONFLICT,
                                     ngx_http_urlstore_post_commands[command]
                                         .reason,
                                     "no zone of this nginx is %s%s shard of "
                                     "the cluster %V%s",
                                     command == NGX_HTTP_URLSTORE_REBASE
                                     ? "the primary of " : "",
                                     a->shard == NGX_ERROR ? "a" : "this",
                                     &ctx->conf->admin->name,
                                     ngx_http_urlstore_post_commands[command]
                                         .has);
}


/*
 * Whether the map may be used here; and then each shard adopts it, unless this
 * is a check.  NGX_OK: all shards have it, or may; NGX_DECLINED: err has the
 * reason; NGX_BUSY: there are standbys only; NGX_AGAIN
 */

static ngx_int_t
ngx_http_urlstore_admin_adopt(ngx_http_urlstore_post_t *a, char *err)
{
    ngx_int_t                     rc;
    ngx_uint_t                    i, standbys;
    const us_map_t               *map;
    ngx_http_urlstore_zone_t     *zone;
    ngx_http_urlstore_cluster_t  *cluster;

    cluster = a->ctx->conf->admin;

    i = 0;
    a->shards = 0;
    standbys = 0;

    while ((zone = ngx_http_urlstore_shard_next(a->ctx, a->shard, &i))) {
        rc = ngx_http_urlstore_shard_check(zone, a->map, err);

        if (rc != NGX_OK && rc != NGX_BUSY) {
            return rc;
        }

        a->shards += (rc == NGX_OK);
        standbys += (rc == NGX_BUSY);
    }

    if (a->shards + standbys == 0 && a->shard != NGX_ERROR) {
        (void) ngx_sprintf((u_char *) err, "this nginx has no shard %i of the "
                           "cluster%Z", a->shard);
        return NGX_DECLINED;
    }

    if (cluster->zone) {
        map = a->shards ? NULL
              : ngx_http_urlstore_cluster_map(cluster,
                                              a->ctx->r->connection->log);

        if ((map && us_map_follows(map, a->map, err, NGX_MAX_ERROR_STR) != 0)
            || ngx_http_urlstore_cluster_nodes(NULL, a->map, err) != NGX_OK)
        {
            return NGX_DECLINED;
        }
    }

    if (a->check) {
        return NGX_OK;
    }

    if (a->shards == 0 && standbys
        && (a->shard != NGX_ERROR || cluster->zone == NULL))
    {
        return NGX_BUSY;
    }

    i = 0;

    while ((zone = ngx_http_urlstore_shard_next(a->ctx, a->shard, &i))) {
        rc = ngx_http_urlstore_shard_adopt(zone, a->map, err);

        if (rc != NGX_OK && rc != NGX_BUSY) {
            return rc;
        }
    }

    return NGX_OK;
}


/* a shard that was deposed meanwhile may have lost the map */

static ngx_uint_t
ngx_http_urlstore_admin_durable(ngx_http_urlstore_post_t *a)
{
    ngx_uint_t                 i, n;
    us_life_state_t            state;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;
    n = 0;

    while ((zone = ngx_http_urlstore_shard_next(a->ctx, a->shard, &i))) {
        state = us_life_state(&zone->life);

        if (state == US_LIFE_STANDBY) {
            continue;
        }

        if (state != US_LIFE_READY
            || !us_life_map_durable(&zone->life))
        {
            return 0;
        }

        n += us_store_map(zone->store)->version >= a->map->version;
    }

    return n >= a->shards;
}


/*
 * Of a router, which has no other place for it.  Other workers may do the same:
 * each has a temporary file of its own.
 */

static ngx_int_t
ngx_http_urlstore_admin_file(ngx_http_urlstore_post_t *a, char *err)
{
    int                           fd, rc, dirfd;
    char                         *tmp;
    u_char                       *name;
    ngx_str_t                     dir;
    us_disk_error_t               e;
    ngx_http_urlstore_cluster_t  *cluster;

    cluster = a->ctx->conf->admin;

    if (a->check || cluster->zone == NULL) {
        return NGX_OK;
    }

    /* the path is absolute */

    dir.data = cluster->path.data;
    name = (u_char *) strrchr((char *) dir.data, '/') + 1;
    dir.len = name - dir.data;

    tmp = ngx_pnalloc(a->ctx->r->pool, cluster->path.len + 32);
    if (tmp == NULL) {
        (void) ngx_sprintf((u_char *) err, "out of memory%Z");
        return NGX_ERROR;
    }

    (void) ngx_sprintf((u_char *) tmp, "%V%Z", &dir);
    dirfd = open(tmp, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dirfd == -1) {
        rc = us_disk_fail(&e, ngx_errno, "open of its directory failed");

    } else {
        (void) ngx_sprintf((u_char *) tmp, "%s.%P.tmp%Z", name, ngx_pid);
        fd = openat(dirfd, tmp, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);

        rc = us_disk_replace_by(dirfd, tmp, fd, (char *) name,
                                a->map->text.data, a->map->text.len, &e);
        (void) close(dirfd);
    }

    if (rc != 0) {
        (void) ngx_cpystrn((u_char *) err, (u_char *) e.text,
                           NGX_MAX_ERROR_STR);
        return NGX_ERROR;
    }

    /* it is looked at once more, whatever the second is */

    cluster->looked = 0;
    (void) ngx_http_urlstore_cluster_map(cluster, a->ctx->r->connection->log);

    return NGX_OK;
}


/* adopts the map, or waits until all shards can, and have it on disk */

static ngx_int_t
ngx_http_urlstore_admin_look(ngx_http_urlstore_post_t *a)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;
    char                      err[NGX_MAX_ERROR_STR];

    ctx = a->ctx;
    rc = a->adopted ? NGX_OK : ngx_http_urlstore_admin_adopt(a, err);

    switch (rc) {

    case NGX_OK:
        a->adopted = 1;

        if (!a->check && !ngx_http_urlstore_admin_durable(a)) {
            break;
        }

        if (ngx_http_urlstore_admin_file(a, err) != NGX_OK) {
            return ngx_http_urlstore_problem(ctx,
                                             NGX_HTTP_INTERNAL_SERVER_ERROR,
                                             NULL, "the map could not be "
                                             "written to \"%V\": %s",
                                             &ctx->conf->admin->path, err);
        }

        ctx->status = NGX_HTTP_NO_CONTENT;

        return ngx_http_urlstore_send(ctx);

    case NGX_DECLINED:
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_CONFLICT,
                                         "\"reason\":\"map\"", "the map is "
                                         "refused: %s", err);

    case NGX_BUSY:
        ngx_http_urlstore_retry_after(ctx, 1);
        ngx_http_urlstore_untouched(ctx);

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         "\"reason\":\"standby\"", "this node "
                                         "is a standby: it gets the map from "
                                         "the primary of its shard");

    default: /* NGX_AGAIN */
        break;
    }

    rc = a->check ? NGX_DECLINED : ngx_http_urlstore_post_wait(a);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_http_urlstore_retry_after(ctx, 1);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "a shard of this nginx is not ready, or "
                                     "its disk is late; the map may be posted "
                                     "again");
}


static ngx_int_t
ngx_http_urlstore_admin_post(ngx_http_urlstore_ctx_t *ctx)
{
    char                       err[NGX_MAX_ERROR_STR];
    off_t                      len;
    u_char                    *p;
    ssize_t                    n;
    us_str_t                   text;
    ngx_buf_t                 *b;
    ngx_str_t                  value;
    ngx_chain_t               *cl, *bufs;
    ngx_http_request_t        *r;
    ngx_http_urlstore_post_t  *a;

    r = ctx->r;

    /* the whole body in one piece */

    len = 0;
    bufs = r->request_body ? r->request_body->bufs : NULL;

    for (cl = bufs; cl; cl = cl->next) {
        len += ngx_buf_size(cl->buf);
    }

    if (len > US_MAP_TEXT_MAX) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                         NULL, "a map has at most %ui bytes",
                                         (ngx_uint_t) US_MAP_TEXT_MAX);
    }

    p = ngx_pnalloc(r->pool, len + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text.data = p;
    text.len = len;

    for (cl = bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (!b->in_file) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        n = ngx_read_file(b->file, p, b->file_last - b->file_pos, b->file_pos);

        if (n != b->file_last - b->file_pos) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p += n;
    }

    a = ngx_http_urlstore_post_create(ctx, ngx_http_urlstore_admin_look);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_urlstore_arg(ctx, "shard", &value)
        && ngx_http_urlstore_post_only(a, ngx_http_urlstore_str(&value))
           != NGX_OK)
    {
        return ngx_http_urlstore_bad(ctx, "\"shard\" is the number of a shard");
    }

    a->check = ngx_http_urlstore_flag(r, "check");
    a->map = us_map_read(text, err, sizeof(err));

    if (a->map == NULL) {
        return ngx_http_urlstore_bad(ctx, "%s", err);
    }

    return ngx_http_urlstore_admin_look(a);
}


static void
ngx_http_urlstore_admin_body(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_finalize_request(r, ngx_http_urlstore_admin_post(ctx));
}


static ngx_int_t
ngx_http_urlstore_admin_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_uint_t                i;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_urlstore_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_origin(ctx, NGX_HTTP_POST);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r->method == NGX_HTTP_POST) {
        rc = ngx_http_urlstore_post_command(ctx);

        if (rc == NGX_DECLINED) {
            rc = ngx_http_urlstore_args(ctx, "shard check");
        }

        if (rc != NGX_DECLINED) {
            return rc;
        }

        rc = ngx_http_read_client_request_body(r, ngx_http_urlstore_admin_body);

        return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        ngx_http_urlstore_header_text(ctx, "Allow", "GET, HEAD, POST");

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_ALLOWED, NULL,
                                         "the method is not allowed; allowed "
                                         "are GET, HEAD, POST");
    }

    rc = ngx_http_urlstore_no_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    /* as the first shard answers GET /cluster; a router: the map of its file */

    i = 0;
    ctx->zone = ngx_http_urlstore_shard_next(ctx, NGX_ERROR, &i);

    if (ctx->zone == NULL) {
        return ngx_http_urlstore_cluster_show(ctx,
                   ngx_http_urlstore_cluster_map(ctx->conf->admin,
                                                 r->connection->log));
    }

    us_life_view(&ctx->zone->life, &ctx->view);

    return us_life_admits(&ctx->zone->life, US_WANTS_BY_ID)
           ? ngx_http_urlstore_cluster_handler(ctx)
           : ngx_http_urlstore_unready(ctx, NULL);
}


char *
ngx_http_urlstore_cluster_admin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (ulcf->handler) {
        return "is duplicate: a location has one endpoint, or urlstore_api";
    }

    value = cf->args->elts;

    ulcf->admin = ngx_http_urlstore_cluster_find(cf, &value[1]);

    if (ulcf->admin == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "no urlstore_cluster \"%V\" is declared above",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ulcf->handler = ngx_http_urlstore_admin_handler;
    clcf->handler = ulcf->handler;

    return NGX_CONF_OK;
}


/* GET /cluster of a shard */

ngx_int_t
ngx_http_urlstore_cluster_handler(ngx_http_urlstore_ctx_t *ctx)
{
    const us_map_t  *map;

    if (ctx->zone->cluster == NULL) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "the zone is no shard of a cluster");
    }

    /* a stale one is none */

    map = us_store_map(ctx->zone->store)->number
          ? ngx_http_urlstore_shard_map(ctx->zone) : NULL;

    /* after the map was read: its LSN is at or below this one */

    ctx->lsn = us_store_published(ctx->zone->store);

    return ngx_http_urlstore_cluster_show(ctx, map);
}


ngx_int_t
ngx_http_urlstore_cluster_show(ngx_http_urlstore_ctx_t *ctx,
    const us_map_t *map)
{
    u_char    *p;
    ngx_str_t  etag;

    if (map == NULL) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "there is no map so far");
    }

    p = ngx_pnalloc(ctx->r->pool, NGX_INT64_LEN + 35);

    if (p == NULL
        || ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, map->text.len)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    etag.data = p;
    p = ngx_sprintf(p, "\"%uL-", map->version);
    p = ngx_hex_dump(p, (u_char *) map->digest, 16);
    *p++ = '"';
    etag.len = p - etag.data;

    ngx_http_urlstore_etag(ctx, &etag);

    ctx->out.pos = ngx_cpymem(ctx->out.pos, map->text.data, map->text.len);

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ctx->zone ? ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send)
                     : ngx_http_urlstore_send(ctx);
}
