
/*
 * See ngx_http_urlstore_cluster.h.
 */


#include "ngx_http_urlstore_cluster.h"
#include "ngx_http_urlstore_zone.h"


/* the longest name of a cluster, which is a label in /metrics */
#define NGX_HTTP_URLSTORE_CLUSTER_NAME  255


/*
 * The text of the file, which the caller frees, and cluster->file.
 * NGX_DECLINED with an errno and a text: it cannot be read.
 */

static ngx_int_t
ngx_http_urlstore_cluster_read(ngx_http_urlstore_cluster_t *cluster,
    us_str_t *text, char *err)
{
    ssize_t       n;
    u_char       *p;
    ngx_fd_t      fd;
    ngx_err_t     e;
    const char   *failed;
    struct stat   file;

    p = NULL;
    failed = ngx_open_file_n;

    fd = ngx_open_file(cluster->path.data, NGX_FILE_RDONLY|O_NONBLOCK,
                       NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        goto refused;
    }

    failed = ngx_fd_info_n;

    if (fstat(fd, &file) == -1) {
        goto refused;
    }

    cluster->file = file;

    /* a byte more than allowed, so that a longer file is refused as one */

    failed = ngx_read_fd_n;
    p = malloc(US_MAP_TEXT_MAX + 1);

    if (p == NULL) {
        goto refused;
    }

    text->data = p;
    text->len = 0;

    do {
        n = ngx_read_fd(fd, p + text->len, US_MAP_TEXT_MAX + 1 - text->len);

        if (n == -1) {
            goto refused;
        }

        text->len += n;

    } while (n && text->len <= US_MAP_TEXT_MAX);

    (void) ngx_close_file(fd);

    return NGX_OK;

refused:

    e = ngx_errno;

    ngx_sprintf((u_char *) err, "%s failed (%d: %s)%Z", failed, e,
                strerror(e));

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
    }

    free(p);
    ngx_set_errno(e);

    return NGX_DECLINED;
}


static void
ngx_http_urlstore_cluster_release(void *data)
{
    ngx_http_urlstore_map_t *map = data;

    if (--map->users == 0) {
        us_map_free(map->map);
        free(map);
    }
}


static ngx_int_t
ngx_http_urlstore_cluster_adopt(ngx_http_urlstore_cluster_t *cluster,
    us_str_t text, char *err)
{
    us_map_t                 *map;
    ngx_http_urlstore_map_t  *next;

    map = us_map_read(text, err, NGX_MAX_ERROR_STR);

    if (map == NULL) {
        return NGX_DECLINED;
    }

    /* what a router starts with is checked when its upstreams are known */

    if ((cluster->map
         && us_map_follows(cluster->map->map, map, err, NGX_MAX_ERROR_STR)
            != 0)
        || (cluster->zone
            && ngx_http_urlstore_cluster_nodes(
                   ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_upstream_module),
                   map, err)
               != NGX_OK))
    {
        us_map_free(map);
        return NGX_DECLINED;
    }

    if (cluster->map) {
        if (cluster->map->map->version == map->version) {
            us_map_free(map);
            return NGX_OK;
        }
    }

    next = malloc(sizeof(ngx_http_urlstore_map_t));

    if (next == NULL) {
        us_map_free(map);
        return NGX_ERROR;
    }

    next->map = map;
    next->users = 1;

    if (cluster->map) {
        ngx_http_urlstore_cluster_release(cluster->map);
    }

    cluster->map = next;

    return NGX_OK;
}


/*
 * The map of the file.  NGX_OK: it is the newest now, or was already;
 * NGX_DECLINED: it cannot be read (errno), is none, or may not follow, and err
 * (NGX_MAX_ERROR_STR bytes) has the reason; NGX_ERROR: no memory.
 */

static ngx_int_t
ngx_http_urlstore_cluster_load(ngx_http_urlstore_cluster_t *cluster, char *err)
{
    ngx_int_t  rc;
    us_str_t   text;

    if (ngx_http_urlstore_cluster_read(cluster, &text, err) != NGX_OK) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_cluster_adopt(cluster, text, err);

    free((void *) text.data);

    return rc;
}


/* the map at configuration */

static ngx_int_t
ngx_http_urlstore_cluster_first(ngx_conf_t *cf,
    ngx_http_urlstore_cluster_t *cluster)
{
    ngx_int_t  rc;
    char       err[NGX_MAX_ERROR_STR];

    rc = ngx_http_urlstore_cluster_load(cluster, err);

    /* shards have it in their journals */

    if (rc == NGX_DECLINED && cluster->file.st_ino == 0
        && ngx_errno == NGX_ENOENT)
    {
        return NGX_OK;
    }

    if (rc != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_cluster \"%V\": the map \"%V\": %s",
                           &cluster->name, &cluster->path,
                           rc == NGX_ERROR ? "out of memory" : err);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* of the configuration's pool */

static void
ngx_http_urlstore_cluster_cleanup(void *data)
{
    ngx_http_urlstore_cluster_t *cluster = data;

    if (cluster->map) {
        ngx_http_urlstore_cluster_release(cluster->map);
        cluster->map = NULL;
    }
}


char *
ngx_http_urlstore_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_urlstore_main_conf_t *umcf = conf;

    ngx_str_t                    *value;
    ngx_pool_cleanup_t           *cln;
    ngx_http_urlstore_cluster_t  *cluster, **cp;

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

    return ngx_http_urlstore_cluster_first(cf, cluster) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
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
        if (cp[i]->name.len == name->len
            && ngx_strncmp(cp[i]->name.data, name->data, name->len) == 0)
        {
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

        ngx_sprintf((u_char *) err, "the upstream \"%*s\" must have one "
                    "server with one address: a call for a node must not go "
                    "to another one%Z", name->len, name->data);
        return NGX_DECLINED;
    }

    ngx_sprintf((u_char *) err, "no upstream \"%*s\" for a node of its map; "
                "\"urlstore cluster conf\" prints them%Z", name->len,
                name->data);
    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_cluster_nodes(ngx_http_upstream_main_conf_t *umcf,
    const us_map_t *map, char *err)
{
    ngx_uint_t  i, k;

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


static ngx_uint_t
ngx_http_urlstore_cluster_changed(ngx_http_urlstore_cluster_t *cluster,
    struct stat *file)
{
    return file->st_ino != cluster->file.st_ino
           || file->st_size != cluster->file.st_size
           || file->st_mtim.tv_sec != cluster->file.st_mtim.tv_sec
           || file->st_mtim.tv_nsec != cluster->file.st_mtim.tv_nsec;
}


/* whether the file has changed, and what it has now */

static void
ngx_http_urlstore_cluster_look(ngx_http_urlstore_cluster_t *cluster,
    ngx_log_t *log)
{
    ngx_int_t    rc;
    struct stat  file;
    char         err[NGX_MAX_ERROR_STR];

    if (stat((char *) cluster->path.data, &file) == -1
        || !ngx_http_urlstore_cluster_changed(cluster, &file))
    {
        return;
    }

    /* even if it cannot be read: one message for each change */

    cluster->file = file;

    rc = ngx_http_urlstore_cluster_load(cluster, err);

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "urlstore_cluster \"%V\": the map \"%V\" is not used, "
                      "the one before stays: %s", &cluster->name,
                      &cluster->path, rc == NGX_ERROR ? "out of memory" : err);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "urlstore_cluster \"%V\": map of version %uL",
                  &cluster->name, cluster->map->map->version);
}


const us_map_t *
ngx_http_urlstore_cluster_map(ngx_http_urlstore_cluster_t *cluster,
    ngx_log_t *log)
{
    if (cluster->looked != ngx_time()) {
        cluster->looked = ngx_time();
        ngx_http_urlstore_cluster_look(cluster, log);
    }

    return cluster->map ? cluster->map->map : NULL;
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
    cln->data = cluster->map;

    cluster->map->users++;

    return map;
}


ngx_uint_t
ngx_http_urlstore_cluster_routes(ngx_http_urlstore_cluster_t *cluster)
{
    return cluster->zone != NULL;
}
