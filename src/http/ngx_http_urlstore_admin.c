
/*
 * Maps of a cluster over HTTP.
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
 *     POST ?promote[=SHARD]            ngx_http_urlstore_post.c
 *     POST ?rebase[=SHARD]             ngx_http_urlstore_post.c
 *
 * A map is checked against all shards before the first of them adopts it.  The
 * reply, 204, is sent when it is durable at all of them.  What is refused, or
 * ends before, may be posted again: a shard that has a map adopts it no more.
 *
 * A standby (replicate=) checks the map's uuid, and gets the map from its
 * primary, by the log.  Where all are standbys, the reply is 503 with
 * Urlstore-Refused.  A map with a node that this nginx, if it is a router, has
 * no upstream for is refused, because nginx would not start with it.
 */


#include "ngx_http_urlstore_shard.h"
#include "../journal/us_disk.h"
#include "../store/us_shard.h"


/* as the first shard answers GET /cluster; a router: the map of its file */

static ngx_int_t
ngx_http_urlstore_admin_get(ngx_http_request_t *r)
{
    us_life_t                     *life;
    ngx_uint_t                     i;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    i = 0;
    ctx->zone = ngx_http_urlstore_shard_next(r, ulcf->admin, &i);

    if (ctx->zone == NULL) {
        return ngx_http_urlstore_cluster_show(r,
                   ngx_http_urlstore_cluster_map(ulcf->admin,
                                                 r->connection->log));
    }

    ngx_http_urlstore_refresh(ctx->zone);

    life = &ctx->zone->life;
    us_life_view(life, &ctx->view);

    return us_life_admits(life, US_WANTS_BY_ID)
           ? ngx_http_urlstore_cluster_handler(r)
           : ngx_http_urlstore_unready(r, ctx->zone, NULL);
}


/* the whole body in one piece; NGX_DECLINED: it is too long */

static ngx_int_t
ngx_http_urlstore_admin_text(ngx_http_request_t *r, us_str_t *text)
{
    off_t         len;
    u_char       *p;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    len = 0;

    for (cl = r->request_body ? r->request_body->bufs : NULL; cl;
         cl = cl->next)
    {
        len += ngx_buf_size(cl->buf);
    }

    if (len > US_MAP_TEXT_MAX) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, len + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text->data = p;
    text->len = len;

    for (cl = r->request_body ? r->request_body->bufs : NULL; cl;
         cl = cl->next)
    {
        b = cl->buf;

        if (!b->in_file) {
            p = ngx_cpymem(p, b->pos, b->last - b->pos);
            continue;
        }

        n = ngx_read_file(b->file, p, b->file_last - b->file_pos,
                          b->file_pos);

        if (n != b->file_last - b->file_pos) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        p += n;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_admin_route(ngx_http_urlstore_post_t *a, char *err)
{
    const us_map_t  *map;

    map = a->shards ? NULL
          : ngx_http_urlstore_cluster_map(a->cluster, a->r->connection->log);

    if (map && us_map_follows(map, a->map, err, NGX_MAX_ERROR_STR) != 0) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_cluster_nodes(
               ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_upstream_module),
               a->map, err);
}


/* whether the map may be used here: NGX_OK, NGX_DECLINED with err, NGX_AGAIN */

static ngx_int_t
ngx_http_urlstore_admin_check(ngx_http_urlstore_post_t *a,
    ngx_uint_t *standbys, char *err)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_urlstore_zone_t  *zone;

    i = 0;
    a->shards = 0;
    *standbys = 0;

    while ((zone = ngx_http_urlstore_post_next(a, &i))) {
        rc = ngx_http_urlstore_shard_check(zone, a->map, err);

        if (rc != NGX_OK && rc != NGX_BUSY) {
            return rc;
        }

        a->shards += (rc == NGX_OK);
        *standbys += (rc == NGX_BUSY);
    }

    if (a->shards + *standbys == 0 && a->shard != NGX_ERROR) {
        (void) ngx_sprintf((u_char *) err, "this nginx has no shard %i of the "
                           "cluster%Z", a->shard);
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_cluster_routes(a->cluster)
           ? ngx_http_urlstore_admin_route(a, err) : NGX_OK;
}


/*
 * NGX_OK: all shards have it, or may; NGX_DECLINED: err has the reason;
 * NGX_BUSY: there are standbys only; NGX_AGAIN
 */

static ngx_int_t
ngx_http_urlstore_admin_adopt(ngx_http_urlstore_post_t *a, char *err)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i, standbys;
    ngx_http_urlstore_zone_t  *zone;

    rc = ngx_http_urlstore_admin_check(a, &standbys, err);

    if (rc != NGX_OK || a->check) {
        return rc;
    }

    if (a->shards == 0 && standbys
        && (a->shard != NGX_ERROR
            || !ngx_http_urlstore_cluster_routes(a->cluster)))
    {
        return NGX_BUSY;
    }

    i = 0;

    while ((zone = ngx_http_urlstore_post_next(a, &i))) {
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

    while ((zone = ngx_http_urlstore_post_next(a, &i))) {
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


/* other workers may do the same: each has a temporary file of its own */

static int
ngx_http_urlstore_admin_write(ngx_http_urlstore_post_t *a, int dirfd,
    const char *name, us_disk_error_t *e)
{
    int    fd;
    char  *tmp;

    tmp = ngx_pnalloc(a->r->pool, ngx_strlen(name) + 32);
    if (tmp == NULL) {
        return us_disk_fail(e, ENOMEM, "no temporary file");
    }

    (void) ngx_sprintf((u_char *) tmp, "%s.%P.tmp%Z", name, ngx_pid);

    fd = openat(dirfd, tmp, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0644);

    return us_disk_replace_by(dirfd, tmp, fd, name, a->map->text.data,
                              a->map->text.len, e);
}


/* of a router, which has no other place for it */

static ngx_int_t
ngx_http_urlstore_admin_file(ngx_http_urlstore_post_t *a, char *err)
{
    int               rc, dirfd;
    u_char           *dir, *name;
    us_disk_error_t   e;

    if (!ngx_http_urlstore_cluster_routes(a->cluster)) {
        return NGX_OK;
    }

    rc = -1;
    dirfd = -1;

    /* the path is absolute */

    name = (u_char *) strrchr((char *) a->cluster->path.data, '/') + 1;
    dir = ngx_pnalloc(a->r->pool, name - a->cluster->path.data + 1);

    if (dir) {
        ngx_cpystrn(dir, a->cluster->path.data,
                    name - a->cluster->path.data + 1);
        dirfd = open((char *) dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    }

    if (dirfd == -1) {
        us_disk_fail(&e, ngx_errno, "open of its directory failed");

    } else {
        rc = ngx_http_urlstore_admin_write(a, dirfd, (char *) name, &e);
        (void) close(dirfd);
    }

    if (rc != 0) {
        (void) ngx_cpystrn((u_char *) err, (u_char *) e.text,
                           NGX_MAX_ERROR_STR);
        return NGX_ERROR;
    }

    /* it is looked at once more, whatever the second is */

    a->cluster->looked = 0;
    (void) ngx_http_urlstore_cluster_map(a->cluster, a->r->connection->log);

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_admin_later(ngx_http_request_t *r)
{
    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "a shard of this nginx is not ready, or "
                                     "its disk is late; the map may be posted "
                                     "again");
}


static ngx_int_t
ngx_http_urlstore_admin_standby(ngx_http_request_t *r)
{
    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK
        || ngx_http_urlstore_untouched(r) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "\"reason\":\"standby\"", "this node is a "
                                     "standby: it gets the map from the "
                                     "primary of its shard");
}


/* adopts the map, or waits until all shards can, and have it on disk */

static ngx_int_t
ngx_http_urlstore_admin_look(ngx_http_urlstore_post_t *a)
{
    ngx_int_t                 rc;
    ngx_http_request_t       *r;
    ngx_http_urlstore_ctx_t  *ctx;
    char                      err[NGX_MAX_ERROR_STR];

    r = a->r;

    rc = a->adopted ? NGX_OK : ngx_http_urlstore_admin_adopt(a, err);

    if (rc == NGX_OK) {
        a->adopted = 1;

        if (a->check || ngx_http_urlstore_admin_durable(a)) {

            if (!a->check && ngx_http_urlstore_admin_file(a, err) != NGX_OK) {
                return ngx_http_urlstore_problem(r,
                                                 NGX_HTTP_INTERNAL_SERVER_ERROR,
                                                 NULL, "the map could not be "
                                                 "written to \"%V\": %s",
                                                 &a->cluster->path, err);
            }

            ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
            ctx->status = NGX_HTTP_NO_CONTENT;

            if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 1) != NGX_OK) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            return ngx_http_urlstore_send(r);
        }

        rc = NGX_AGAIN;
    }

    if (rc == NGX_BUSY) {
        return ngx_http_urlstore_admin_standby(r);
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_CONFLICT,
                                         "\"reason\":\"map\"", "the map is "
                                         "refused: %s", err);
    }

    rc = a->check ? NGX_DECLINED : ngx_http_urlstore_post_wait(a);

    return rc == NGX_DECLINED ? ngx_http_urlstore_admin_later(r) : rc;
}


static ngx_int_t
ngx_http_urlstore_admin_post(ngx_http_request_t *r)
{
    us_str_t                   text;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    ngx_http_urlstore_post_t  *a;
    char                       err[NGX_MAX_ERROR_STR];

    rc = ngx_http_urlstore_admin_text(r, &text);

    if (rc == NGX_DECLINED) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                         NULL, "a map has at most %ui bytes",
                                         (ngx_uint_t) US_MAP_TEXT_MAX);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    a = ngx_http_urlstore_post_create(r, ngx_http_urlstore_admin_look);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_arg(r, "shard", &value);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_OK
        && ngx_http_urlstore_post_only(a, value.data, value.len) != NGX_OK)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "\"shard\" is the number of a "
                                         "shard");
    }

    a->check = ngx_http_urlstore_flag(r, "check");
    a->map = us_map_read(text, err, sizeof(err));

    if (a->map == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL, "%s",
                                         err);
    }

    return ngx_http_urlstore_admin_look(a);
}


static void
ngx_http_urlstore_admin_body(ngx_http_request_t *r)
{
    ngx_http_finalize_request(r, ngx_http_urlstore_admin_post(r));
}


/* a map, by POST */

static ngx_int_t
ngx_http_urlstore_admin_read(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_args(r, "shard check");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_urlstore_admin_body);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


static ngx_int_t
ngx_http_urlstore_admin_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;
    ngx_str_t  allow;

    if (ngx_http_urlstore_ctx(r) == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_urlstore_origin(r, NGX_HTTP_POST);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (r->method == NGX_HTTP_POST) {
        rc = ngx_http_urlstore_post_command(r);

        return rc == NGX_DECLINED ? ngx_http_urlstore_admin_read(r) : rc;
    }

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }

        return ngx_http_urlstore_admin_get(r);
    }

    ngx_str_set(&allow, "GET, HEAD, POST");

    if (ngx_http_urlstore_header(r, "Allow", &allow) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_ALLOWED, NULL,
                                     "the method is not allowed; allowed are "
                                     "%V", &allow);
}


char *
ngx_http_urlstore_cluster_admin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_urlstore_loc_conf_t *ulcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (ulcf->admin || ulcf->zone) {
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
ngx_http_urlstore_cluster_handler(ngx_http_request_t *r)
{
    const us_map_t           *map;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->zone->cluster == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "the zone is no shard of a cluster");
    }

    /* a stale one is none */

    map = us_store_map(ctx->zone->store)->number
          ? ngx_http_urlstore_shard_map(ctx->zone) : NULL;

    /* after the map was read: its LSN is at or below this one */

    ctx->lsn = us_store_published(ctx->zone->store);

    return ngx_http_urlstore_cluster_show(r, map);
}


ngx_int_t
ngx_http_urlstore_cluster_show(ngx_http_request_t *r, const us_map_t *map)
{
    u_char                   *p;
    ngx_str_t                 etag;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (map == NULL) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "there is no map so far");
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 35);

    if (p == NULL
        || ngx_http_urlstore_out_init(&ctx->out, r->pool, map->text.len)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    etag.data = p;
    p = ngx_sprintf(p, "\"%uL-", map->version);
    p = ngx_hex_dump(p, (u_char *) map->digest, 16);
    *p++ = '"';
    etag.len = p - etag.data;

    if (ngx_http_urlstore_etag(r, &etag) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = ngx_cpymem(ctx->out.pos, map->text.data, map->text.len);

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ctx->zone ? ngx_http_urlstore_reply_when(r, ngx_http_urlstore_send)
                     : ngx_http_urlstore_send(r);
}
