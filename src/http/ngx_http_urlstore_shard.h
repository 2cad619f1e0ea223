
/*
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


#ifndef _NGX_HTTP_URLSTORE_SHARD_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_SHARD_H_INCLUDED_


#include "ngx_http_urlstore_cluster.h"
#include "ngx_http_urlstore_request.h"
#include "../cluster/us_map.h"


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
 * The next zone of this nginx from *i on that is a shard of the cluster and no
 * replica; NULL: no more.
 */
ngx_http_urlstore_zone_t *ngx_http_urlstore_shard_next(ngx_http_request_t *r,
    ngx_http_urlstore_cluster_t *cluster, ngx_uint_t *i);

/*
 * The store's map, which is valid until the event loop goes on; NULL: there is
 * none, or no memory.
 */
const us_map_t *ngx_http_urlstore_shard_map(ngx_http_urlstore_zone_t *zone);

/*
 * The request's header Urlstore-Map.  NGX_DECLINED: it may be answered; else
 * the reply has been sent.  ngx_http_urlstore_shard_under() is called before
 * the store is asked: which map the request names.
 */
ngx_int_t ngx_http_urlstore_shard_begin(ngx_http_request_t *r);
void ngx_http_urlstore_shard_under(ngx_http_urlstore_ctx_t *ctx);

/* 421 of a single URL or id that is another shard's; what: its name */
ngx_int_t ngx_http_urlstore_shard_moved(ngx_http_request_t *r,
    const char *what);

/*
 * Whether sites are answered: not with key=url, where each shard knows a part
 * of a site only.  NGX_DECLINED: they are; else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_shard_sites(ngx_http_request_t *r,
    const char *what);

/* us_store_site(), or US_MOVED: another shard knows whether there is one */
us_store_status_t ngx_http_urlstore_shard_site(ngx_http_urlstore_ctx_t *ctx,
    us_str_t key, us_store_site_t *site);

/* ngx_http_urlstore_reply.c: the map that the store has adopted */
void ngx_http_urlstore_tag(ngx_http_urlstore_zone_t *zone, us_map_tag_t *tag);

/* ngx_http_urlstore_admin.c */

char *ngx_http_urlstore_cluster_admin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_urlstore_post.c */

/* a POST, which waits until shards of this nginx are as it wants them */

typedef struct ngx_http_urlstore_post_s  ngx_http_urlstore_post_t;

typedef ngx_int_t (*ngx_http_urlstore_post_pt)(
    ngx_http_urlstore_post_t *a);

struct ngx_http_urlstore_post_s {
    ngx_http_request_t             *r;
    ngx_http_urlstore_cluster_t    *cluster;
    ngx_int_t                       shard;    /* NGX_ERROR: all */

    /* looks at the shards; what it returns is the request's result */
    ngx_http_urlstore_post_pt       look;
    ngx_event_t                     timer;
    uint64_t                        since;    /* us */
    uint64_t                        most;     /* ms to wait; 0: for ever */

    /* of a command, and the zones that it is for */
    ngx_uint_t                      command;
    ngx_array_t                     zones;

    /* of a map */
    us_map_t                       *map;
    ngx_uint_t                      check;    /* and nothing else */
    ngx_uint_t                      adopted;
    ngx_uint_t                      shards;   /* that have adopted it */
};

/* a POST for all shards, freed with its request; NULL: no memory */
ngx_http_urlstore_post_t *ngx_http_urlstore_post_create(
    ngx_http_request_t *r, ngx_http_urlstore_post_pt look);

/* for one shard only; NGX_ERROR: it is not the number of a shard */
ngx_int_t ngx_http_urlstore_post_only(ngx_http_urlstore_post_t *a,
    u_char *number, size_t len);

/* the next zone from *i on that is meant, as it is now; NULL: no more */
ngx_http_urlstore_zone_t *ngx_http_urlstore_post_next(
    ngx_http_urlstore_post_t *a, ngx_uint_t *i);

/* NGX_DONE: look() is called again soon; NGX_DECLINED: its time is over */
ngx_int_t ngx_http_urlstore_post_wait(ngx_http_urlstore_post_t *a);

/* promote, forget, rebase; NGX_DECLINED: the POST is none of them */
ngx_int_t ngx_http_urlstore_post_command(ngx_http_request_t *r);


#endif /* _NGX_HTTP_URLSTORE_SHARD_H_INCLUDED_ */
