
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
 *
 * A zone that is a shard of a cluster (store/us_shard.h).
 *
 *     urlstore_zone NAME SIZE path=DIR cluster=CLUSTER shard=N node=NODE;
 *
 *     file of urlstore_cluster --.
 *                                +--> ngx_http_urlstore_shard_adopt() --> store
 *     POST to the admin location '
 *
 * Ids are those of the store within the module.  A client's id has the shard's
 * number in its upper bits: zone->first_id is added to all that are sent, and
 * taken from all that come.
 */


#ifndef _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_


#include "ngx_http_urlstore_request.h"
#include "../store/us_shard.h"


typedef struct ngx_http_urlstore_cluster_s {
    ngx_str_t                       name;
    ngx_str_t                       path;     /* with a zero at its end */
    ngx_http_urlstore_zone_t       *zone;     /* of urlstore_route, or NULL */

    /* of a worker */

    us_map_t                       *map;      /* NULL: there is none so far */
    time_t                          looked;   /* at the file */
    struct stat                     file;     /* before it was read last */
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

/*
 * Whether each node of the map is an upstream of one address, so that a call
 * goes where it should: NGX_OK, or NGX_DECLINED with err (NGX_MAX_ERROR_STR
 * bytes).  cf: what is being read, or NULL.
 */
ngx_int_t ngx_http_urlstore_cluster_nodes(ngx_conf_t *cf, const us_map_t *map,
    char *err);


/* of a worker: adopts the map of the file, when the store is ready */
void ngx_http_urlstore_shard_tick(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_shard_exit(ngx_http_urlstore_zone_t *zone);

/*
 * Whether the shard may adopt the map, and it does.  NGX_OK: the store has it;
 * answers wait until it is durable.  NGX_DECLINED: it may not, and err
 * (NGX_MAX_ERROR_STR bytes) has the reason.  NGX_AGAIN: not now; NGX_BUSY: a
 * standby, which gets it from its primary.
 */
ngx_int_t ngx_http_urlstore_shard_check(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err);
ngx_int_t ngx_http_urlstore_shard_adopt(ngx_http_urlstore_zone_t *zone,
    const us_map_t *map, char *err);

/*
 * The store's map, which is valid until the event loop goes on; NULL: there is
 * none, or no memory.
 */
const us_map_t *ngx_http_urlstore_shard_map(ngx_http_urlstore_zone_t *zone);

/*
 * The header Urlstore-Map of a request to a shard.  NGX_DECLINED: it may be
 * answered; else the reply has been sent.  ngx_http_urlstore_shard_under() is
 * called before the store is asked: which map the request names.
 */
ngx_int_t ngx_http_urlstore_shard_begin(ngx_http_urlstore_ctx_t *ctx);


static ngx_inline void
ngx_http_urlstore_shard_under(ngx_http_urlstore_ctx_t *ctx)
{
    if (ctx->zone->cluster) {
        us_store_under(ctx->zone->store, ctx->under_version,
                       ctx->under_digest);
    }
}


/* 421 of a single URL or id that is another shard's; what: its name */
ngx_int_t ngx_http_urlstore_shard_moved(ngx_http_urlstore_ctx_t *ctx,
    const char *what);

/*
 * Whether sites are answered: not with key=url, where each shard knows a part
 * of a site only.  NGX_DECLINED: they are; else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_shard_sites(ngx_http_urlstore_ctx_t *ctx,
    const char *what);

/* us_store_site(), or US_MOVED: another shard knows whether there is one */
us_store_status_t ngx_http_urlstore_shard_site(ngx_http_urlstore_ctx_t *ctx,
    us_str_t key, int merge, us_store_site_t *site);

/* ngx_http_urlstore_reply.c: the map that the store has adopted */
void ngx_http_urlstore_tag(ngx_http_urlstore_zone_t *zone, us_map_tag_t *tag);

/* ngx_http_urlstore_admin.c */

char *ngx_http_urlstore_cluster_admin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* _NGX_HTTP_URLSTORE_CLUSTER_H_INCLUDED_ */
