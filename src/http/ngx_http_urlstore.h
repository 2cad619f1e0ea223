
/*
 * What every file of the nginx side uses: zones, with their memory, directives,
 * life and counters.  And which file does what.
 *
 * directives and zones
 *
 *     ngx_http_urlstore_module.c    directives, configuration
 *     ngx_http_urlstore_options.c   directives of zones, and their options
 *     ngx_http_urlstore_zone.c      memory and directory, in the master
 *     ngx_http_urlstore_life.c      of a worker: threads, the tick, the lock
 *     ngx_http_urlstore_rules.c     directives of a zone's normalizer
 *     ngx_http_urlstore_stats.c     /health, /stats, /metrics, the status page
 *     ngx_http_urlstore_cluster.h   clusters, their maps and shards
 *     ngx_http_urlstore_admin.c     maps over HTTP: GET /cluster, POST
 *
 * requests (ngx_http_urlstore_request.h)
 *
 *     ngx_http_urlstore_handler.c   which endpoint; may it answer now?
 *     ngx_http_urlstore_origin.c    pages of other sites
 *     ngx_http_urlstore_quota.c     new URLs that a client may add
 *     ngx_http_urlstore_args.c      query arguments
 *     ngx_http_urlstore_body.c      request bodies as they arrive, gzip
 *     ngx_http_urlstore_batch.h     /add, /seen and /mark: how they go
 *     ...                           a file for each further endpoint
 *     src/route                     a router: requests that go to shards
 *
 * replies (ngx_http_urlstore_request.h)
 *
 *     ngx_http_urlstore_out.c       output: text in pieces
 *     ngx_http_urlstore_reply.c     the writer of replies; which format
 *     ngx_http_urlstore_wait.c      requests that wait; slices of replies
 *     ngx_http_urlstore_problem.c   errors
 *
 * A request's way: the handler finds the endpoint, asks the zone's kind whether
 * it can answer, and calls it.  The endpoint collects its reply in ctx->out and
 * leaves through ngx_http_urlstore_reply_when(), which sends the reply when all
 * that it reports is promised (life/us_life.h).
 *
 * Each zone has a life, a state machine without nginx (life/us_life.h).  That
 * of a zone in memory alone, of a filter and of a router is READY and promises
 * at once (conf.memory), so that no request asks for the kind of its zone.
 *
 * The master opens the directory of path= and its lock file.  Workers inherit
 * both, so the lock (flock(2)) is free when the last process of this master is
 * gone.
 */


#ifndef _NGX_HTTP_URLSTORE_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_H_INCLUDED_


#include "../us_base.h"
#include "../api/us_figures.h"
#include "../url/us_normalize.h"
#include "../store/us_erasures.h"
#include "../store/us_store.h"
#include "../cluster/us_map.h"
#include "../api/us_audit.h"
#include "../life/us_life.h"
#include "../life/us_trainer.h"
#include "../journal/us_ship.h"

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef struct ngx_http_urlstore_zone_s      ngx_http_urlstore_zone_t;
typedef struct ngx_http_urlstore_kind_s      ngx_http_urlstore_kind_t;
typedef struct ngx_http_urlstore_ctx_s       ngx_http_urlstore_ctx_t;
typedef struct ngx_http_urlstore_endpoint_s  ngx_http_urlstore_endpoint_t;

/* a content handler, or a part of one: its result is the request's */
typedef ngx_int_t (*ngx_http_urlstore_handler_pt)(ngx_http_urlstore_ctx_t *ctx);


/* the core's kind of string */

static inline us_str_t
ngx_http_urlstore_str(const ngx_str_t *s)
{
    return (us_str_t) { s->len, s->data };
}


static inline ngx_uint_t
ngx_http_urlstore_same(const ngx_str_t *a, const ngx_str_t *b)
{
    return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}


/* in any case of letters */

static inline ngx_uint_t
ngx_http_urlstore_is(const ngx_str_t *s, const char *word)
{
    return s->len == ngx_strlen(word)
           && ngx_strncasecmp(s->data, (u_char *) word, s->len) == 0;
}


extern ngx_module_t  ngx_http_urlstore_module;


/* us, monotonic */

static inline uint64_t
ngx_http_urlstore_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


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
    us_share_t                     *life;
    ngx_http_urlstore_calls_t      *calls;    /* of a router, by shard */
    ngx_atomic_t                    clock_ahead;  /* 1: it has been logged */
    ngx_atomic_t                    clock_offset; /* s, of the time of day */
    ngx_atomic_t                    keys_since; /* s: keep= is as long as now */
} ngx_http_urlstore_sh_t;


/* descriptors that outlive a cycle, in the master and inherited by workers */

typedef struct {
    int                             dirfd;
    int                             lock;
    ngx_uint_t                      refs;
} ngx_http_urlstore_dir_t;


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
    ngx_uint_t                      sets;     /* that requests may make */
    time_t                          keys_keep; /* 0: off */
    unsigned                        sets_auto; /* at their first use */
    unsigned                        huge;
    ngx_uint_t                      rules;    /* user rules of all kinds */
    ngx_uint_t                      limits;   /* urlstore_max_*, one bit each */
    const ngx_http_urlstore_kind_t *kind;
    void                           *own;      /* of a filter, a router */
    ngx_str_t                       path;     /* of path=, or empty */

    /* its life; life.conf has most options */
    us_life_t                       life;
    ngx_cycle_t                    *cycle;
    ngx_thread_pool_t              *pool;
    ngx_http_urlstore_dir_t        *dir;      /* NULL: no path= */

    us_replicate_conf_t             replicate;  /* of life.conf.replicate */
    ngx_str_t                       base;

    /* of a shard: ngx_http_urlstore_cluster.h */
    struct ngx_http_urlstore_cluster_s
                                   *cluster;  /* NULL: it is none */
    ngx_int_t                       shard;
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

    ngx_event_t                     sweep;
    us_audit_t                      audit;    /* fd -1: not open */
    ngx_msec_t                      audit_next;

    ngx_thread_task_t               tasks[US_ROLES];
    ngx_event_t                     tick;
    ngx_event_t                     wake;
    ngx_queue_t                     parked;

    /* GET /log: how long files are kept; the lock of a reader that was cut */
    us_pace_t                       pace;
    int                             readers;
    ngx_event_t                     readers_end;
    unsigned                        readers_kept:1;
};


/* the id that clients know, of one of the store */

static inline uint64_t
ngx_http_urlstore_id(const ngx_http_urlstore_zone_t *zone, uint64_t id)
{
    return id == US_STORE_NO_ID ? id : zone->first_id + id;
}


typedef struct {
    ngx_array_t                     zones;    /* ngx_http_urlstore_zone_t * */
    ngx_array_t                     clusters; /* of urlstore_cluster */
    size_t                          hot_size; /* 0: workers have no hot table */
    size_t                          keys_size; /* of a zone; 0: off */
    ngx_msec_t                      keys_keep;

    const ngx_http_urlstore_endpoint_t
                                   *endpoints; /* NGX_HTTP_URLSTORE_ENDPOINTS */
    const ngx_http_urlstore_kind_t *store;    /* the kind of urlstore_zone */

    /* the zone of a cluster that is routed here; NULL: an error was logged */
    ngx_http_urlstore_zone_t     *(*route)(ngx_conf_t *cf,
                                     struct ngx_http_urlstore_cluster_s *cl);
} ngx_http_urlstore_main_conf_t;


/*
 * An option of a directive, NAME=VALUE.  set() returns NGX_OK, NGX_ERROR, or
 * NGX_ABORT: it has logged why.
 */
typedef struct ngx_http_urlstore_option_s  ngx_http_urlstore_option_t;

struct ngx_http_urlstore_option_s {
    ngx_str_t                       name;
    ngx_int_t                     (*set)(ngx_conf_t *cf, void *conf,
                                        const ngx_http_urlstore_option_t *opt,
                                        ngx_str_t *value);
    size_t                          offset;   /* of the value, in conf */
    uint64_t                        least;
    uint64_t                        most;
    const char                     *words;    /* of the values 0, 1, ... */
    const char                     *needs;    /* another option, or NULL */
    const char                     *allowed;  /* NULL: words */
};


/* ngx_http_urlstore_options.c */

char *ngx_http_urlstore_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_http_urlstore_zone_t *ngx_http_urlstore_zone_find(ngx_conf_t *cf,
    ngx_str_t *name);

/* for the directives that make a zone, in the order of their use */

ngx_http_urlstore_zone_t *ngx_http_urlstore_zone_declare(ngx_conf_t *cf,
    size_t *size);

/* reads NAME=VALUE from argument `from` on, into conf */
ngx_int_t ngx_http_urlstore_options_read(ngx_conf_t *cf, void *conf,
    ngx_uint_t from, ngx_http_urlstore_option_t *options);

/* checks the zone against others; its normalizer, its shared memory */
char *ngx_http_urlstore_zone_add(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, size_t size);

/* types of options that other directives have, too */
ngx_int_t ngx_http_urlstore_opt_word(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_path(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_text(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value);
ngx_int_t ngx_http_urlstore_opt_time(ngx_conf_t *cf, void *conf,
    const ngx_http_urlstore_option_t *opt, ngx_str_t *value);

/* words in the order of us_profile_t, and of us_www_t */
#define NGX_HTTP_URLSTORE_PROFILES  "crawler crawler-clean whatwg aggressive"
#define NGX_HTTP_URLSTORE_WWW       "first keep strip"

/* ngx_http_urlstore_zone.c */

/* pages of a store's zone that are left to nginx and to small things */
#define NGX_HTTP_URLSTORE_SPARE   16

ngx_int_t ngx_http_urlstore_zone_init(ngx_shm_zone_t *shm_zone, void *data);

/* the threads of a zone with a life on disk, or in a log */
ngx_int_t ngx_http_urlstore_zone_threads(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone);

ngx_int_t ngx_http_urlstore_random(ngx_log_t *log, void *p, size_t len);

/* of the kind of urlstore_zone: its store, and its directory */
ngx_int_t ngx_http_urlstore_store_create(ngx_http_urlstore_zone_t *zone);
ngx_int_t ngx_http_urlstore_store_attach(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);

/* whether the zone can go on with the data of the old one */
ngx_int_t ngx_http_urlstore_zone_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);

/* ngx_http_urlstore_life.c */

ngx_int_t ngx_http_urlstore_zone_open(ngx_http_urlstore_zone_t *zone,
    ngx_log_t *log);
void ngx_http_urlstore_zone_close(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_zone_exit(ngx_http_urlstore_zone_t *zone);

/* of the kind of urlstore_zone: its store */
ngx_int_t ngx_http_urlstore_store_open(ngx_http_urlstore_zone_t *zone,
    ngx_log_t *log);

/* the time, for the store's calls that follow */
void ngx_http_urlstore_clock(ngx_http_urlstore_zone_t *zone);

/* of every request: another process may have changed state and epoch */
void ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone);

void ngx_http_urlstore_hot_init(size_t size, ngx_log_t *log);
void ngx_http_urlstore_hot_exit(void);
void ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone);

/* completes erasures, if there is anything to do; cheap */
void ngx_http_urlstore_sweep(ngx_http_urlstore_zone_t *zone);

/* what was done with an erasure, for the error log */
void ngx_http_urlstore_erasure_log(ngx_http_urlstore_zone_t *zone,
    uint64_t number, const char *what);

/* ngx_http_urlstore_wait.c */

void ngx_http_urlstore_park_init(ngx_http_urlstore_zone_t *zone);

/* answers those that need not wait any more */
void ngx_http_urlstore_park_wake(void *data);

/* ngx_http_urlstore_rules.c */

char *ngx_http_urlstore_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_urlstore_rule_words(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* _NGX_HTTP_URLSTORE_H_INCLUDED_ */
