/*
 * See ngx_http_urlstore_cluster.h.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../journal/us_disk.h"


/* the longest name of a cluster, which is a label in /metrics */
#define NGX_HTTP_URLSTORE_CLUSTER_NAME  255

/* tries to adopt one map, while other workers adopt others */
#define NGX_HTTP_URLSTORE_ADOPTIONS  8


/* why, in err, of NGX_MAX_ERROR_STR bytes */

static ngx_int_t
ngx_http_urlstore_cluster_refuse(char *err, const char *fmt, ...)
{
    u_char   *p, *last;
    va_list   args;

    p = (u_char *) err;
    last = p + NGX_MAX_ERROR_STR - 1;

    va_start(args, fmt);
    *ngx_vslprintf(p, last, fmt, args) = '\0';
    va_end(args);

    return NGX_DECLINED;
}


/*
 * The map of the file.  NGX_OK: it is the newest now, or was already;
 * NGX_DECLINED: it cannot be read, is none, or may not follow, and err
 * (NGX_MAX_ERROR_STR bytes) has the reason.
 */

static ngx_int_t
ngx_http_urlstore_cluster_load(ngx_http_urlstore_cluster_t *cluster, char *err)
{
    ssize_t    n;
    u_char    *text;
    us_map_t  *map;
    ngx_fd_t   fd;

    n = -1;

    fd = ngx_open_file(cluster->path.data, NGX_FILE_RDONLY|O_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    /* a byte more than allowed, so that a longer file is refused as one */

    text = malloc(US_MAP_TEXT_MAX + 1);

    if (fd != NGX_INVALID_FILE && text) {
        n = us_disk_pread(fd, text, US_MAP_TEXT_MAX + 1, 0);
    }

    if (n == -1) {
        (void) ngx_http_urlstore_cluster_refuse(err, "%s failed (%d: %s)",
                                                fd == NGX_INVALID_FILE
                                                ? ngx_open_file_n
                                                : ngx_read_fd_n,
                                                ngx_errno,
                                                strerror(ngx_errno));
        map = NULL;

    } else {
        map = us_map_read((us_str_t) { n, text }, err, NGX_MAX_ERROR_STR);
    }

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
    }

    free(text);

    if (map == NULL) {
        return NGX_DECLINED;
    }

    /* what a router starts with is checked when its upstreams are known */

    if ((cluster->map
         && us_map_follows(cluster->map, map, err, NGX_MAX_ERROR_STR) != 0)
        || (cluster->zone
            && ngx_http_urlstore_cluster_nodes(NULL, map, err) != NGX_OK))
    {
        us_map_free(map);
        return NGX_DECLINED;
    }

    if (cluster->map && cluster->map->version == map->version) {
        us_map_free(map);
        return NGX_OK;
    }

    us_map_free(cluster->map);
    cluster->map = map;

    return NGX_OK;
}


static void
ngx_http_urlstore_cluster_release(void *data)
{
    us_map_free(data);
}


/* of the configuration's pool */

static void
ngx_http_urlstore_cluster_cleanup(void *data)
{
    ngx_http_urlstore_cluster_t *cluster = data;

    us_map_free(cluster->map);
    cluster->map = NULL;
}


char *
ngx_http_urlstore_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_main_conf_t *umcf = conf;

    ngx_str_t                    *value;
    ngx_pool_cleanup_t           *cln;
    ngx_http_urlstore_cluster_t  *cluster, **cp;
    char                          err[NGX_MAX_ERROR_STR];

    value = cf->args->elts;

    if (!us_conf_is_name(ngx_http_urlstore_str(&value[1]),
                         NGX_HTTP_URLSTORE_CLUSTER_NAME))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"%V\" of %V: at most %ui letters, "
                           "digits, - and _", &value[1], &value[0],
                           (ngx_uint_t) NGX_HTTP_URLSTORE_CLUSTER_NAME);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_cluster_find(cf, &value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate %V \"%V\"", &value[0], &value[1]);
        return NGX_CONF_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_urlstore_cluster_t));
    cp = ngx_array_push(&umcf->clusters);

    if (cln == NULL || cp == NULL) {
        return NGX_CONF_ERROR;
    }

    cluster = cln->data;
    *cp = cluster;

    ngx_memzero(cluster, sizeof(ngx_http_urlstore_cluster_t));

    cln->handler = ngx_http_urlstore_cluster_cleanup;

    cluster->name = value[1];
    cluster->path = value[2];

    if (ngx_conf_full_name(cf->cycle, &cluster->path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    /* a file that is not there is no error: shards have it in their journals */

    if ((stat((char *) cluster->path.data, &cluster->file) == -1
         && ngx_errno == NGX_ENOENT)
        || ngx_http_urlstore_cluster_load(cluster, err) == NGX_OK)
    {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "urlstore_cluster \"%V\": the map \"%V\": %s",
                       &cluster->name, &cluster->path, err);

    return NGX_CONF_ERROR;
}


ngx_http_urlstore_cluster_t *
ngx_http_urlstore_cluster_find(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                      i;
    ngx_http_urlstore_cluster_t   **cp;
    ngx_http_urlstore_main_conf_t  *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    cp = umcf->clusters.elts;

    for (i = 0; i < umcf->clusters.nelts; i++) {
        if (ngx_http_urlstore_same(&cp[i]->name, name)) {
            return cp[i];
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_urlstore_cluster_node(ngx_http_upstream_main_conf_t *umcf,
    const us_str_t *name, char *err)
{
    ngx_uint_t                       i;
    ngx_http_upstream_server_t      *server;
    ngx_http_upstream_srv_conf_t   **uscf;

    uscf = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (uscf[i]->servers == NULL || uscf[i]->host.len != name->len
            || ngx_strncasecmp(uscf[i]->host.data, (u_char *) name->data,
                               name->len)
               != 0)
        {
            continue;
        }

        server = uscf[i]->servers->elts;

        if (uscf[i]->servers->nelts == 1 && server[0].naddrs == 1) {
            return NGX_OK;
        }

        return ngx_http_urlstore_cluster_refuse(err, "the upstream \"%*s\" "
                                                "must have one server with one "
                                                "address: a call for a node "
                                                "must not go to another one",
                                                name->len, name->data);
    }

    return ngx_http_urlstore_cluster_refuse(err, "no upstream \"%*s\" for a "
                                            "node of its map; \"urlstore "
                                            "cluster conf\" prints them",
                                            name->len, name->data);
}


ngx_int_t
ngx_http_urlstore_cluster_nodes(ngx_conf_t *cf, const us_map_t *map, char *err)
{
    ngx_uint_t                      i, k;
    ngx_http_upstream_main_conf_t  *umcf;

    umcf = cf ? ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module)
              : ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                    ngx_http_upstream_module);

    for (i = 0; i < map->nshards; i++) {
        for (k = 0; k < map->shards[i].nnodes; k++) {
            if (ngx_http_urlstore_cluster_node(umcf, &map->shards[i].nodes[k],
                                             err)
                != NGX_OK)
            {
                return NGX_DECLINED;
            }
        }
    }

    return NGX_OK;
}


const us_map_t *
ngx_http_urlstore_cluster_map(ngx_http_urlstore_cluster_t *cluster,
    ngx_log_t *log)
{
    struct stat   file, *had;
    char          err[NGX_MAX_ERROR_STR];

    had = &cluster->file;

    /* whether the file has changed, once a second */

    if (cluster->looked != ngx_time()
        && stat((char *) cluster->path.data, &file) == 0
        && (file.st_ino != had->st_ino || file.st_size != had->st_size
            || file.st_mtim.tv_sec != had->st_mtim.tv_sec
            || file.st_mtim.tv_nsec != had->st_mtim.tv_nsec))
    {
        /* even if it cannot be read: one message for each change */

        *had = file;

        if (ngx_http_urlstore_cluster_load(cluster, err) == NGX_OK) {
            ngx_log_error(NGX_LOG_NOTICE, log, 0,
                          "urlstore_cluster \"%V\": map of version %uL",
                          &cluster->name, cluster->map->version);

        } else {
            ngx_log_error(NGX_LOG_ERR, log, 0,
                          "urlstore_cluster \"%V\": the map \"%V\" is not "
                          "used, the one before stays: %s", &cluster->name,
                          &cluster->path, err);
        }
    }

    cluster->looked = ngx_time();

    return cluster->map;
}


const us_map_t *
ngx_http_urlstore_cluster_hold(ngx_http_urlstore_cluster_t *cluster,
    ngx_pool_t *pool)
{
    const us_map_t      *map;
    ngx_pool_cleanup_t  *cln;

    map = ngx_http_urlstore_cluster_map(cluster, pool->log);

    if (map == NULL) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_urlstore_cluster_release;
    cln->data = us_map_hold(cluster->map);

    return map;
}


/* the store's map, read once for each map that it adopts */

const us_map_t *
ngx_http_urlstore_shard_map(ngx_http_urlstore_zone_t *zone)
{
    u_char    *text;
    size_t     len;
    uint64_t   number;
    us_map_t  *map;
    char       err[NGX_MAX_ERROR_STR];

    number = us_store_map_number(zone->store);

    if (zone->map && zone->map_number == number) {
        return zone->map;
    }

    if (number == 0) {
        return NULL;
    }

    text = malloc(US_MAP_TEXT_MAX);
    if (text == NULL) {
        return NULL;
    }

    len = us_store_map_text(zone->store, text, &number);
    map = us_map_read((us_str_t) { len, text }, err, sizeof(err));

    free(text);

    if (map == NULL) {
        return NULL;
    }

    us_map_free(zone->map);

    zone->map = map;
    zone->map_number = number;

    return map;
}


void
ngx_http_urlstore_shard_exit(ngx_http_urlstore_zone_t *zone)
{
    us_map_free(zone->map);
    zone->map = NULL;
}


ngx_int_t
ngx_http_urlstore_shard_check(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    int              at;
    us_life_t       *life;
    uint32_t         shard;
    ngx_uint_t       slot;
    const us_map_t  *old;

    life = &zone->life;

    /* until it is loaded it has no uuid */

    if (!us_life_admits(life, US_WANTS_BY_ID)) {
        return us_life_state(life) == US_LIFE_STANDBY ? NGX_BUSY : NGX_AGAIN;
    }

    /* the map has this shard, with this store at this node */

    at = us_map_shard(map, zone->conf.shard);

    if (at == -1) {
        return ngx_http_urlstore_cluster_refuse(err, "it has no shard %uD",
                                                zone->conf.shard);
    }

    if (ngx_memcmp(map->shards[at].uuid, zone->conf.uuid, 16) != 0) {
        return ngx_http_urlstore_cluster_refuse(err, "its shard %uD is another "
                                                "store, of uuid %*xs; this one "
                                                "has the uuid %*xs",
                                                zone->conf.shard, (size_t) 16,
                                                map->shards[at].uuid,
                                                (size_t) 16, zone->conf.uuid);
    }

    if (us_map_node(map, ngx_http_urlstore_str(&zone->node)) != at) {
        return ngx_http_urlstore_cluster_refuse(err, "its shard %uD has no "
                                                "node \"%V\"",
                                                zone->conf.shard, &zone->node);
    }

    if (!us_norm_same(map->norm, zone->conf.norm)) {
        return ngx_http_urlstore_cluster_refuse(err, "its \"norm\" is \"%*s\", "
                                                "that of the zone \"%*s\"",
                                                map->norm.len, map->norm.data,
                                                zone->conf.norm.len,
                                                zone->conf.norm.data);
    }

    if (us_life_state(life) == US_LIFE_STANDBY) {
        return NGX_BUSY;
    }

    if (us_life_state(life) != US_LIFE_READY
        || !us_life_writable(life, NULL)
        || !us_store_is_shard(zone->store, &shard))
    {
        return NGX_AGAIN;
    }

    old = ngx_http_urlstore_shard_map(zone);

    if (old) {
        return us_map_follows(old, map, err, NGX_MAX_ERROR_STR) == 0
               ? NGX_OK : NGX_DECLINED;
    }

    if (us_store_map_number(zone->store)) {
        return NGX_AGAIN;
    }

    /*
     * The first map of a store that has URLs.  They may be in any slot, so each
     * one has to be the shard's, or to have been.  Else another shard would
     * deny them.
     */

    for (slot = 0; slot < US_SLOTS && us_store_next_id(zone->store); slot++) {
        if (!us_map_has_owner(map, slot, zone->conf.shard)) {
            return ngx_http_urlstore_cluster_refuse(err, "the store has URLs, "
                                                    "and slot %ui of the map "
                                                    "is, and was, not its own: "
                                                    "begin with a map of this "
                                                    "shard alone", slot);
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_shard_adopt(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err)
{
    uint64_t    lsn, number;
    ngx_int_t   rc;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_URLSTORE_ADOPTIONS; i++) {
        rc = ngx_http_urlstore_shard_check(zone, map, err);

        if (rc != NGX_OK) {
            return rc;
        }

        number = zone->map ? zone->map_number : 0;

        if (number && zone->map->version == map->version
            && !us_store_map_stale(zone->store))
        {
            return NGX_OK;
        }

        switch (us_store_adopt(zone->store, map, number, &lsn)) {

        case US_OK:
            us_life_write(&zone->life);
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": shard %uD has adopted map "
                          "version %uL", &zone->name, zone->conf.shard,
                          map->version);
            return NGX_OK;

        case US_MOVED:
            continue;

        case US_FULL:
            return ngx_http_urlstore_cluster_refuse(err, "its %uz bytes do not "
                                                    "fit the zone, or its "
                                                    "ring: a larger SIZE is "
                                                    "needed", map->text.len);

        default: /* US_BUSY */
            return NGX_AGAIN;
        }
    }

    return NGX_AGAIN;
}


void
ngx_http_urlstore_shard_tick(ngx_http_urlstore_zone_t *zone)
{
    char             err[NGX_MAX_ERROR_STR];
    ngx_uint_t       stale;
    const us_map_t  *map;

    if (zone->cluster == NULL || zone->life.conf.follow) {
        return;
    }

    /* the file may be as old as what was restored: one that is posted counts */

    stale = us_store_map_stale(zone->store);
    map = stale ? NULL : ngx_http_urlstore_cluster_map(zone->cluster,
                                                       ngx_cycle->log);

    if (map == NULL && !zone->map_missed && ngx_worker == 0
        && us_life_state(&zone->life) == US_LIFE_READY)
    {
        zone->map_missed = 1;

        if (us_store_map(zone->store)->number == 0) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": shard %uD %s, and answers "
                          "nothing: \"urlstore cluster apply\" posts it",
                          &zone->name, zone->conf.shard, stale
                          ? "was restored, and needs the newest map again"
                          : "has no map so far");
        }
    }

    if (map == NULL || map->version <= zone->map_file
        || map->version <= us_store_map(zone->store)->version)
    {
        return;
    }

    switch (ngx_http_urlstore_shard_adopt(zone, map, err)) {

    case NGX_BUSY:
    case NGX_AGAIN:
        return;

    case NGX_DECLINED:
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the map \"%V\", version %uL, is "
                      "not adopted: %s", &zone->name, &zone->cluster->path,
                      map->version, err);
        break;

    default:
        break;
    }

    /* one message for each version */

    zone->map_file = map->version;
}


static ngx_int_t
ngx_http_urlstore_shard_older(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t  version;

    version = us_store_map(ctx->zone->store)->version;

    ngx_http_urlstore_untouched(ctx);
    ngx_http_urlstore_retry_after(ctx, 1);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "\"reason\":\"map\"",
                                     version ? "the shard has map version %uL, "
                                               "the request a newer one"
                                             : "the shard has no map so far",
                                     version);
}


ngx_int_t
ngx_http_urlstore_shard_begin(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_str_t                 *value;
    us_map_tag_t               tag, own;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    value = ngx_http_urlstore_header_in(ctx->r, "urlstore-map");

    if (value == NULL) {
        return NGX_DECLINED;
    }

    if (us_map_tag_parse(&tag, ngx_http_urlstore_str(value)) != 0) {
        return ngx_http_urlstore_bad(ctx, "invalid header Urlstore-Map; "
                                     "CLUSTER SHARD VERSION DIGEST is "
                                     "expected");
    }

    ctx->tagged = 1;

    if (us_store_map(zone->store)->number == 0) {
        return ngx_http_urlstore_shard_older(ctx);
    }

    ngx_http_urlstore_tag(zone, &own);

    if (ngx_memcmp(tag.cluster, own.cluster, 16) != 0
        || tag.shard != own.shard
        || (tag.version == own.version
            && ngx_memcmp(tag.digest, own.digest, 16) != 0))
    {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_MISDIRECTED,
                                         "\"reason\":\"map\"", "this is shard "
                                         "%uD of another cluster or map",
                                         own.shard);
    }

    if (tag.version > own.version) {
        return ngx_http_urlstore_shard_older(ctx);
    }

    ctx->under_version = tag.version;
    ngx_memcpy(ctx->under_digest, tag.digest, 16);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_shard_moved(ngx_http_urlstore_ctx_t *ctx, const char *what)
{
    if (us_store_map(ctx->zone->store)->number == 0) {
        return ngx_http_urlstore_shard_older(ctx);
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_MISDIRECTED,
                                     "\"reason\":\"moved\"", "%s belongs to "
                                     "another shard; GET /cluster shows the "
                                     "map", what);
}


ngx_int_t
ngx_http_urlstore_shard_sites(ngx_http_urlstore_ctx_t *ctx, const char *what)
{
    if (ctx->zone->cluster == NULL
        || us_store_map(ctx->zone->store)->number == 0
        || us_store_map(ctx->zone->store)->key == US_KEY_SITE)
    {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST,
                                     "\"reason\":\"key\"", "\"%s\" is not "
                                     "allowed: the cluster has key=url, so "
                                     "each shard knows a part of a site",
                                     what);
}


us_store_status_t
ngx_http_urlstore_shard_site(ngx_http_urlstore_ctx_t *ctx, us_str_t key,
    int merge, us_store_site_t *site)
{
    us_str_t                   url;
    us_store_t                *store;
    ngx_uint_t                 denies;
    us_store_status_t          status;
    ngx_http_urlstore_zone_t  *zone;
    u_char                     buf[US_SLOT_FRONT];

    zone = ctx->zone;
    store = zone->store;

    if (zone->cluster == NULL) {
        return us_store_site(store, key, merge, site);
    }

    url = us_slot_front(key, buf);

    ngx_http_urlstore_shard_under(ctx);

    /* before the look-up: see store/us_shard.h */

    denies = us_store_denies(store, url);

    if (us_store_slot(store, url) == US_SLOT_FOREIGN) {
        return US_MOVED;
    }

    status = us_store_site(store, key, merge, site);

    return status == US_OK || denies ? status : US_MOVED;
}
