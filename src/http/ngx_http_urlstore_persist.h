
/*
 * A zone with path= in nginx.  The life of the store on disk is a state machine
 * without nginx, see src/life/us_life.h; here is what it needs of nginx, and
 * what nginx needs of it.
 *
 *     ngx_http_urlstore_dir.c       options; the directory, in the master
 *     ngx_http_urlstore_persist.c   threads, the tick, the log, the end
 *     ngx_http_urlstore_state.c     which requests the state lets pass
 *     ngx_http_urlstore_park.c      requests that wait for the disk
 *
 * The master opens the directory and its lock file.  Workers inherit both, so
 * the lock (flock(2)) is free when the last process of this master is gone.
 */


#ifndef _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_


#include "ngx_http_urlstore_zone.h"
#include "ngx_http_urlstore_reply.h"
#include "../life/us_life.h"
#include "../journal/us_ship.h"


/* presets of snapshot=, bytes, and scrub=, ms */
#define NGX_HTTP_URLSTORE_SNAPSHOT    (12 * 1024 * 1024)
#define NGX_HTTP_URLSTORE_SCRUB       (3600 * 1000)
#define NGX_HTTP_URLSTORE_LEASE       2000
#define NGX_HTTP_URLSTORE_STALE       (24 * 60 * 60 * 1000)


/* descriptors that outlive a cycle, in the master and inherited by workers */

typedef struct {
    int                             dirfd;
    int                             lock;
    ngx_uint_t                      refs;
} ngx_http_urlstore_dir_t;


struct ngx_http_urlstore_persist_s {
    /* configuration; life.conf has the rest */
    ngx_str_t                       path;
    ngx_str_t                       sync_name;
    ngx_cycle_t                    *cycle;
    ngx_thread_pool_t              *pool;
    ngx_http_urlstore_dir_t        *dir;

    us_life_t                       life;

    /* life.conf.replicate, if there is one; an option that needs one */
    us_replicate_conf_t             replicate;
    const char                     *replicated;

    /* of one worker */
    ngx_http_urlstore_zone_t       *zone;
    ngx_thread_task_t              *tasks[US_ROLES];
    ngx_event_t                     tick;
    ngx_event_t                     wake;
    ngx_queue_t                     parked;

    /* GET /log: how long files are kept; the lock of a reader that was cut */
    us_pace_t                       pace;
    int                             readers;
    ngx_event_t                     readers_end;
    unsigned                        readers_kept:1;
};


/* ngx_http_urlstore_dir.c; for all zones, with path= or without */

ngx_int_t ngx_http_urlstore_opt_path(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_sync(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_mode(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_snapshot(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_scrub(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_persist_conf(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, size_t size);
ngx_int_t ngx_http_urlstore_path_free(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *path);
const char *ngx_http_urlstore_persist_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);
ngx_int_t ngx_http_urlstore_persist_init(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);

/* ngx_http_urlstore_persist.c; also for all zones */

ngx_int_t ngx_http_urlstore_persist_start(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_persist_stop(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_persist_exit(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_dir.c: made by the first option that needs it; or NULL */
ngx_http_urlstore_persist_t *ngx_http_urlstore_persist_of(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone);

/* a time that is not zero, in ms */
ngx_int_t ngx_http_urlstore_opt_time(ngx_str_t *value, uint64_t *ms);

/* ngx_http_urlstore_follow.c */

ngx_int_t ngx_http_urlstore_opt_follow(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_follow_conf(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone);
ngx_int_t ngx_http_urlstore_follow_problem(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_uint_t status, const char *extra,
    const char *detail);

/* ngx_http_urlstore_replicate.c */

ngx_int_t ngx_http_urlstore_opt_replicate(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_replicas(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_lease(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_takeover(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_stale(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_base(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_replicate_conf(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_park.c */

void ngx_http_urlstore_park_init(ngx_http_urlstore_persist_t *p);

/* answers those that need not wait any more */
void ngx_http_urlstore_park_wake(ngx_http_urlstore_persist_t *p);


#endif /* _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_ */
