
/*
 * Clusters that the configuration names, and their maps (cluster/us_map.h).
 *
 *     urlstore_cluster NAME PATH;
 *
 * PATH is the file of the map.  It is read at configuration, and again by each
 * worker when it has changed; it is looked at once a second at most.  A file
 * that is missing is no error: the first map is written when the shards have
 * started and have uuids.
 *
 * A worker goes from one map to another only if us_map_follows() allows it, so
 * an old file in the place of a new one changes nothing.
 */


#ifndef _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_


#include "ngx_http_urlstore.h"
#include "../cluster/us_map.h"


/* a map with those who use it; a map does not change */

typedef struct {
    us_map_t                       *map;
    ngx_uint_t                      users;
} ngx_http_urlstore_map_t;


typedef struct ngx_http_urlstore_cluster_s {
    ngx_str_t                       name;
    ngx_str_t                       path;     /* with a zero at its end */
    ngx_http_urlstore_zone_t       *zone;     /* of urlstore_route, or NULL */

    /* of a worker */

    ngx_http_urlstore_map_t        *map;      /* NULL: there is none so far */
    time_t                          looked;   /* at the file */
    struct stat                     file;     /* as it was read last */
} ngx_http_urlstore_cluster_t;


char *ngx_http_urlstore_cluster(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* declared above; NULL: it is not */
ngx_http_urlstore_cluster_t *ngx_http_urlstore_cluster_find(ngx_conf_t *cf,
    ngx_str_t *name);

/*
 * The newest map that this worker has, after a look at the file; NULL: there is
 * none.  It is valid until the event loop goes on.
 */
const us_map_t *ngx_http_urlstore_cluster_map(
    ngx_http_urlstore_cluster_t *cluster, ngx_log_t *log);

/* the same, valid as long as the pool; NULL: no map, or no memory */
const us_map_t *ngx_http_urlstore_cluster_hold(
    ngx_http_urlstore_cluster_t *cluster, ngx_pool_t *pool);

/* whether this nginx has a location with urlstore_route of this cluster */
ngx_uint_t ngx_http_urlstore_cluster_routes(
    ngx_http_urlstore_cluster_t *cluster);

/*
 * Whether each node of the map is an upstream of one address, so that a call
 * goes where it should: NGX_OK, or NGX_DECLINED with err (NGX_MAX_ERROR_STR
 * bytes).
 */
ngx_int_t ngx_http_urlstore_cluster_nodes(ngx_http_upstream_main_conf_t *umcf,
    const us_map_t *map, char *err);


#endif /* _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_ */
