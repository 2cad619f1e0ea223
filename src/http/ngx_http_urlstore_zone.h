
/*
 * Zones: their memory, their directives, their state and their counters.
 */


#ifndef _NGX_HTTP_URLSTORE_ZONE_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_ZONE_H_INCLUDED_


#include "ngx_http_urlstore.h"
#include "../api/us_counters.h"
#include "../url/us_normalize.h"
#include "../store/us_store.h"
#include "../cluster/us_map.h"
#include "../life/us_trainer.h"
#include "../idempotency/us_idem.h"


#define NGX_HTTP_URLSTORE_PROFILES   4

/* the calls of a router to one shard, but for those of /stats and the like */

typedef struct {
    ngx_atomic_t                    calls;
    ngx_atomic_t                    failed;   /* no reply, or not of it */
    ngx_atomic_t                    unknown;  /* which may be done */
    ngx_atomic_t                    items;    /* left without an answer */
    ngx_atomic_t                    time;     /* us, of all calls */
    ngx_atomic_t                    node;     /* where the next one begins */
} ngx_http_urlstore_calls_t;


/* what all workers share beside the store; never moves, never shrinks */

typedef struct {
    void                           *mem;      /* the store's mapping */
    size_t                          size;
    time_t                          started;
    us_tally_t                     *tallies;
    void                           *persist;  /* of path=, or NULL */
    ngx_http_urlstore_calls_t      *calls;    /* of a router, by shard */
    ngx_atomic_t                    clock_ahead;  /* 1: it has been logged */
    ngx_atomic_t                    clock_offset; /* s, of the time of day */
} ngx_http_urlstore_sh_t;


typedef struct ngx_http_urlstore_persist_s  ngx_http_urlstore_persist_t;


/*
 * A zone.  The first half is configuration, made before workers fork; the
 * second belongs to one worker.
 */

struct ngx_http_urlstore_zone_s {
    ngx_str_t                       name;
    ngx_shm_zone_t                 *shm_zone; /* NULL: not declared (yet) */
    ngx_slab_pool_t                *shpool;
    ngx_http_urlstore_sh_t         *sh;

    us_norm_t                      *norm;
    us_profile_t                    profile;
    us_www_t                        www;
    us_store_conf_t                 conf;
    ngx_uint_t                      huge;
    ngx_uint_t                      rules;    /* user rules of all kinds */
    ngx_uint_t                      limits;   /* urlstore_max_*, one bit each */
    const ngx_http_urlstore_kind_t *kind;
    void                           *own;      /* of a filter, a router */
    ngx_str_t                      *path;     /* that of path=, or NULL */
    ngx_http_urlstore_persist_t    *persist;  /* NULL: no path= */

    /* of a shard: ngx_http_urlstore_shard.h */
    struct ngx_http_urlstore_cluster_s
                                   *cluster;  /* NULL: it is none */
    ngx_str_t                       node;
    uint64_t                        first_id; /* its ids begin with it */

    /* of one worker */

    us_store_t                     *store;
    us_norm_ws_t                   *ws;
    us_tally_t                     *tally;
    int64_t                         clock;    /* s, when last looked at */
    us_trainer_t                   *train;    /* NULL: none is under way */
    us_map_t                       *map;      /* that of the store, or NULL */
    uint64_t                        map_number;
    uint64_t                        map_file; /* version seen in the file */
    ngx_uint_t                      map_missed; /* its absence was looked at */

    /* another profile's normalizer for /normalize, made when asked for */
    us_norm_t                      *norms[NGX_HTTP_URLSTORE_PROFILES];
    us_norm_ws_t                   *wss[NGX_HTTP_URLSTORE_PROFILES];
};


/* the id that clients know, of one of the store */

static inline uint64_t
ngx_http_urlstore_id(const ngx_http_urlstore_zone_t *zone, uint64_t id)
{
    return id == US_STORE_NO_ID ? id : zone->first_id + id;
}


/* urlstore_idempotency: replies kept for clients that retry */

typedef struct {
    size_t                          size;     /* 0: off */
    ngx_msec_t                      keep;
    ngx_shm_zone_t                 *shm_zone; /* NULL: off, or no zones */
    us_idem_t                       area;     /* of a worker */
} ngx_http_urlstore_retries_t;


typedef struct {
    ngx_array_t                     zones;    /* ngx_http_urlstore_zone_t * */
    ngx_array_t                     clusters; /* of urlstore_cluster */
    size_t                          hot_size; /* 0: workers have no hot table */
    ngx_http_urlstore_retries_t     idem;

    const ngx_http_urlstore_endpoint_t
                                   *endpoints; /* NGX_HTTP_URLSTORE_ENDPOINTS */
    const ngx_http_urlstore_kind_t *store;    /* the kind of urlstore_zone */

    /* the zone of a cluster that is routed here; NULL: an error was logged */
    ngx_http_urlstore_zone_t     *(*route)(ngx_conf_t *cf,
                                     struct ngx_http_urlstore_cluster_s *cl);
} ngx_http_urlstore_main_conf_t;


/*
 * NAME=VALUE of a zone's directive; parse() returns NGX_OK, NGX_ERROR, or
 * NGX_ABORT: it has logged why, and the value may be a secret.
 */

typedef struct {
    ngx_str_t                       name;
    ngx_int_t                     (*parse)(ngx_conf_t *cf,
                                           ngx_http_urlstore_zone_t *zone,
                                           ngx_str_t *value);
    ngx_uint_t                      on_disk;  /* only with "path" */
    const char                     *allowed;  /* values, for the message */
} ngx_http_urlstore_option_t;


/* ngx_http_urlstore_claim.c: the time, for the store's calls that follow */
void ngx_http_urlstore_clock(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_declare.c */

ngx_http_urlstore_zone_t *ngx_http_urlstore_zone_find(ngx_conf_t *cf,
    ngx_str_t *name);

/* of an init callback: random bytes; a name for the pool in nginx's messages */
ngx_int_t ngx_http_urlstore_random(ngx_log_t *log, void *p, size_t len);
ngx_int_t ngx_http_urlstore_pool_name(ngx_slab_pool_t *shpool,
    const char *kind, ngx_str_t *name);

/* for the directives that make a zone, in the order of their use */

ngx_http_urlstore_zone_t *ngx_http_urlstore_zone_declare(ngx_conf_t *cf,
    size_t *size);
ngx_int_t ngx_http_urlstore_zone_options(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_option_t *options);
ngx_int_t ngx_http_urlstore_zone_resized(ngx_conf_t *cf, ngx_str_t *name,
    size_t size);
char *ngx_http_urlstore_zone_add(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, size_t size, ngx_shm_zone_init_pt init);
ngx_int_t ngx_http_urlstore_opt_profile(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_www(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);

/* what the options of both kinds of zones allow */
#define NGX_HTTP_URLSTORE_ALLOWED_PROFILE                                     \
    "crawler, crawler-clean, whatwg or aggressive"
#define NGX_HTTP_URLSTORE_ALLOWED_WWW   "first, keep or strip"
#define NGX_HTTP_URLSTORE_ALLOWED_PATH  "a directory"

/* a value that is one of two words, *on if it is the second */
ngx_int_t ngx_http_urlstore_opt_either(ngx_str_t *value, const char *no,
    const char *yes, ngx_uint_t *on);

/* ngx_http_urlstore_zone.c */

char *ngx_http_urlstore_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_urlstore_zone_open(ngx_http_urlstore_zone_t *zone,
    ngx_log_t *log);
void ngx_http_urlstore_zone_close(ngx_http_urlstore_zone_t *zone);

ngx_http_urlstore_sh_t *ngx_http_urlstore_zone_share(
    ngx_http_urlstore_zone_t *zone);
ngx_int_t ngx_http_urlstore_zone_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);

/* ngx_http_urlstore_store.c: of a worker; a store that it has opened */

void ngx_http_urlstore_hot_init(size_t size, ngx_log_t *log);
void ngx_http_urlstore_hot_attach(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_hot_exit(void);
ngx_int_t ngx_http_urlstore_store_open(ngx_http_urlstore_zone_t *zone,
    ngx_log_t *log);
void ngx_http_urlstore_zone_lock(ngx_http_urlstore_zone_t *zone,
    us_store_lock_t *lock);
void ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_train_exit(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_rules.c */

char *ngx_http_urlstore_rewrite(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_urlstore_strip_args(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_www_except(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_urlstore_state.c; for all zones, with path= or without */

/*
 * Before an endpoint answers, after ngx_http_urlstore_refresh(): NGX_DECLINED
 * if it may, by the data as they are now, which the request remembers; else the
 * problem has been sent, and the result is to be returned.
 */
ngx_int_t ngx_http_urlstore_begin(ngx_http_request_t *r,
    ngx_http_urlstore_ctx_t *ctx);

/* whether they have changed since */
ngx_uint_t ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx);

/* whether the request would change the store */
ngx_uint_t ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep);

/* sends that problem, with members as ngx_http_urlstore_problem() has them */
ngx_int_t ngx_http_urlstore_unready(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const char *extra);

/*
 * The zone has no such mark: sends a problem of this status; or 503, if the
 * mark is in the configuration, but not in the manifest of path= so far.
 */
ngx_int_t ngx_http_urlstore_mark_none(ngx_http_request_t *r,
    ngx_uint_t status, us_str_t name);

ngx_uint_t ngx_http_urlstore_store_full(ngx_http_urlstore_zone_t *zone);
ngx_uint_t ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone);

/* whether new URLs are accepted: it is writable, has room, and has a map */
ngx_uint_t ngx_http_urlstore_accepts(ngx_http_urlstore_zone_t *zone);

/* whether a caller that cannot wait may answer a look-up, found or not */
ngx_uint_t ngx_http_urlstore_answers(ngx_http_urlstore_zone_t *zone,
    ngx_uint_t found);

/* whether look-ups are answered; the word for the state */
ngx_uint_t ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone);
const char *ngx_http_urlstore_state_name(ngx_http_urlstore_zone_t *zone);

/* around us_store_delete(), with its LSN or 0 */
void ngx_http_urlstore_deleting(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_deleted(ngx_http_urlstore_zone_t *zone, uint64_t lsn);

/* ids below it are on the disk; or there as far as the zone promises */
uint64_t ngx_http_urlstore_durable_ids(ngx_http_urlstore_zone_t *zone);
uint64_t ngx_http_urlstore_promised_ids(ngx_http_urlstore_zone_t *zone);

/* whether all that a read reveals is promised: by lsn, tops, top and absent */
ngx_uint_t ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_persist.c */

/* of every request: another process may have changed state and epoch */
void ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone);


#endif /* _NGX_HTTP_URLSTORE_ZONE_H_INCLUDED_ */
