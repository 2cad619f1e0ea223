
/*
 * What the nginx side shares: the zone, the request's context, and which file
 * does what.
 *
 *     ngx_http_urlstore_module.c    directives, configuration
 *     ngx_http_urlstore_declare.c   directives of zones: name, size, options
 *     ngx_http_urlstore_zone.c      a store's zone: created, reloaded, opened
 *     ngx_http_urlstore_store.c     a worker's lock, hot table and training
 *     ngx_http_urlstore_filter.c    zones that are filters
 *     ngx_http_urlstore_handler.c   which endpoint; may it answer now?
 *     ngx_http_urlstore_origin.c    pages of other sites
 *     ngx_http_urlstore_request.c   query arguments, what the client accepts
 *     ngx_http_urlstore_body.c      request bodies as they arrive, gzip
 *     ngx_http_urlstore_batch.h     /add, /seen and /mark: how they go
 *     ngx_http_urlstore_out.c       output: text in pieces
 *     ngx_http_urlstore_reply.c     the writer of replies
 *     ngx_http_urlstore_stream.c    replies slice by slice
 *     ngx_http_urlstore_park.c      requests that wait
 *     ngx_http_urlstore_problem.c   errors
 *     ngx_http_urlstore_persist.h   a zone on disk: what its files do
 *     ngx_http_urlstore_state.c     the state of a zone, /health
 *     ngx_http_urlstore_stats.c     counters, /stats and /metrics
 *     ...                           a file for each further endpoint
 *
 * A request's way: the handler finds the endpoint, asks
 * ngx_http_urlstore_ready() whether the zone can answer, and calls it.  The
 * endpoint collects its reply in ctx->out and leaves through
 * ngx_http_urlstore_reply_when(), which sends the reply when all that it
 * reports is promised (data/us_life.h).
 */


#ifndef _NGX_HTTP_URLSTORE_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_H_INCLUDED_


#include "../us_base.h"

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "../url/us_normalize.h"
#include "../store/us_store.h"
#include "../data/us_trainer.h"
#include "../filter/us_filter_file.h"
#include "../input/us_input.h"
#include "../input/us_json_quote.h"


#define NGX_HTTP_URLSTORE_PROFILES   5

/* CPU time of a request's slow matches of user rules, ns */
#define NGX_HTTP_URLSTORE_BUDGET   (100 * 1000 * 1000)

#define NGX_HTTP_URLSTORE_GONE            410
#define NGX_HTTP_URLSTORE_UNPROCESSABLE   422

/*
 * Counters.  Each worker has a tally of its own in the zone, so that counting
 * costs no shared cache line; a scrape adds the tallies up.  Two workers share
 * a tally only while an old one drains, or beyond NGX_HTTP_URLSTORE_TALLIES, so
 * they are atomic all the same.
 */

#define NGX_HTTP_URLSTORE_TALLIES    64
#define NGX_HTTP_URLSTORE_BUCKETS    13


typedef enum {
    NGX_HTTP_URLSTORE_N_NEW = 0,      /* URLs, by answer */
    NGX_HTTP_URLSTORE_N_SEEN,
    NGX_HTTP_URLSTORE_N_UNSEEN,
    NGX_HTTP_URLSTORE_N_INVALID,
    NGX_HTTP_URLSTORE_N_REJECTED,
    NGX_HTTP_URLSTORE_N_FULL,

    NGX_HTTP_URLSTORE_N_LOCK_WAITS,
    NGX_HTTP_URLSTORE_N_TRAININGS,
    NGX_HTTP_URLSTORE_N_QUOTA,        /* requests refused by a quota */
    NGX_HTTP_URLSTORE_N_UNREADY,      /* requests answered 503 */
    NGX_HTTP_URLSTORE_N_BYTES,        /* of request bodies, inflated */
    NGX_HTTP_URLSTORE_N_BUDGET,       /* URLs rejected: rules took too long */
    NGX_HTTP_URLSTORE_N_HOT,          /* URLs that a hot table answered */

    NGX_HTTP_URLSTORE_N_SUM,          /* of the batches' time, in us */
    NGX_HTTP_URLSTORE_N_BUCKET,       /* batches, by time; the last: +Inf */

    NGX_HTTP_URLSTORE_N_REQUESTS = NGX_HTTP_URLSTORE_N_BUCKET
                                   + NGX_HTTP_URLSTORE_BUCKETS,

    NGX_HTTP_URLSTORE_N = 48          /* six cache lines */
} ngx_http_urlstore_counter_t;


typedef struct {
    ngx_atomic_t                    n[NGX_HTTP_URLSTORE_N];
} ngx_http_urlstore_tally_t;


/* what all workers share beside the store; never moves, never shrinks */

typedef struct {
    void                           *mem;      /* the store's mapping */
    size_t                          size;
    time_t                          started;
    ngx_http_urlstore_tally_t      *tallies;
    void                           *persist;  /* of path=, or NULL */
} ngx_http_urlstore_sh_t;


typedef struct ngx_http_urlstore_zone_s     ngx_http_urlstore_zone_t;
typedef struct ngx_http_urlstore_persist_s  ngx_http_urlstore_persist_t;
typedef struct ngx_http_urlstore_ctx_s      ngx_http_urlstore_ctx_t;


/* what a filter zone has; see ngx_http_urlstore_filter.c */

typedef struct {
    us_filter_t                    *set;
    us_filter_plan_t                plan;
    uint64_t                        capacity;
    double                          error;
    ngx_str_t                       path;
    ngx_uint_t                      accept;   /* unclean=accept */
    ngx_uint_t                      warned;   /* of one worker */
} ngx_http_urlstore_filter_t;


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
    ngx_http_urlstore_filter_t     *filter;   /* NULL: it is a store */
    ngx_http_urlstore_persist_t    *persist;  /* NULL: no path= */

    /* of one worker */

    us_store_t                     *store;
    us_norm_ws_t                   *ws;
    ngx_http_urlstore_tally_t      *tally;
    us_trainer_t                   *train;    /* NULL: none is under way */

    /* another profile's normalizer for /normalize, made when asked for */
    us_norm_t                      *norms[NGX_HTTP_URLSTORE_PROFILES];
    us_norm_ws_t                   *wss[NGX_HTTP_URLSTORE_PROFILES];
};


typedef struct ngx_http_urlstore_endpoint_s  ngx_http_urlstore_endpoint_t;


typedef struct {
    ngx_array_t                     zones;    /* ngx_http_urlstore_zone_t * */
    size_t                          hot_size; /* 0: workers have no hot table */

    const ngx_http_urlstore_endpoint_t
                                   *endpoints; /* up to one without a handler */
} ngx_http_urlstore_main_conf_t;


/* NAME=VALUE of a zone's directive; parse() returns NGX_OK or NGX_ERROR */

typedef struct {
    ngx_str_t                       name;
    ngx_int_t                     (*parse)(ngx_conf_t *cf,
                                           ngx_http_urlstore_zone_t *zone,
                                           ngx_str_t *value);
    ngx_uint_t                      on_disk;  /* only with "path" */
    const char                     *allowed;  /* values, for the message */
} ngx_http_urlstore_option_t;


typedef struct ngx_http_urlstore_quota_s  ngx_http_urlstore_quota_t;


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    const ngx_http_urlstore_endpoint_t
                                   *endpoint; /* NULL: urlstore_api */

    /* of the location that has the directive; blocks in it have others */
    ngx_str_t                       name;
    ngx_uint_t                      regex;

    /* of a server: the names of its locations that are ours, ngx_str_t */
    ngx_array_t                    *ours;

    ngx_http_urlstore_quota_t      *quota;
    ngx_array_t                    *origins;  /* NULL: no other than its own */

    ngx_uint_t                      max_url;
    size_t                          max_body;
    size_t                          max_reply;
    ngx_uint_t                      max_batch;
    time_t                          max_age;
} ngx_http_urlstore_loc_conf_t;


/* one endpoint; the table is in ngx_http_urlstore_handler.c */

#define NGX_HTTP_URLSTORE_BY_ID        1   /* which mode=lookup can do */
#define NGX_HTTP_URLSTORE_ALWAYS       2   /* answers while loading */
#define NGX_HTTP_URLSTORE_FILTER       4   /* a filter has it, too */

/*
 * Its answer is a list or a count, which denies all that is not in it: only a
 * store that has all can give one.  _SITES: where the zone has an index of
 * sites.
 */
#define NGX_HTTP_URLSTORE_LISTS        8
#define NGX_HTTP_URLSTORE_LISTS_SITES  16

typedef ngx_int_t (*ngx_http_urlstore_handler_pt)(ngx_http_request_t *r);

struct ngx_http_urlstore_endpoint_s {
    ngx_str_t                       name;
    ngx_uint_t                      methods;  /* of NAME */
    ngx_uint_t                      tail;     /* of NAME/..., or 0 */
    ngx_uint_t                      writes;   /* those that change the store */
    ngx_uint_t                      flags;
    const char                     *args;     /* of the query */
    ngx_http_urlstore_handler_pt    handler;
};


/* a reply, in pieces; see ngx_http_urlstore_out.c */

typedef struct {
    ngx_pool_t                     *pool;
    ngx_chain_t                    *chain;
    ngx_chain_t                    *last;
    u_char                         *pos;      /* free room of the last piece */
    u_char                         *end;
    size_t                          size;     /* of the pieces before */

    ngx_chain_t                    *busy;     /* on their way to the client */
    ngx_chain_t                    *free;
    ngx_queue_t                    *pieces;   /* that are the request's */
} ngx_http_urlstore_out_t;


typedef enum {
    NGX_HTTP_URLSTORE_TEXT = 0,
    NGX_HTTP_URLSTORE_JSON,
    NGX_HTTP_URLSTORE_NDJSON
} ngx_http_urlstore_format_t;


/* why an input is no item of the store; see ngx_http_urlstore_problem.c */

typedef struct {
    us_input_kind_t                 kind;
    us_verdict_t                    verdict;  /* of US_INPUT_URL */
    us_str_t                        rule;     /* of US_URL_RULE: its name */
    const char                     *why;      /* of US_INPUT_BAD */
} ngx_http_urlstore_refusal_t;


typedef struct ngx_http_urlstore_body_s    ngx_http_urlstore_body_t;
typedef struct ngx_http_urlstore_parked_s  ngx_http_urlstore_parked_t;


/* see ngx_http_urlstore_stream() */

typedef ngx_int_t (*ngx_http_urlstore_produce_pt)(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out);


/* of a request; ctx->data is of its endpoint */

struct ngx_http_urlstore_ctx_s {
    ngx_http_urlstore_zone_t       *zone;
    const ngx_http_urlstore_endpoint_t
                                   *endpoint;
    ngx_str_t                       tail;         /* what follows NAME/ */
    ngx_http_urlstore_out_t         out;
    ngx_http_urlstore_format_t      format;

    /* what the reply depends on: see ngx_http_urlstore_reply_when() */
    uint64_t                        lsn;
    unsigned                        writes:1;     /* its method does */
    unsigned                        wrote:1;      /* it changed the store */
    unsigned                        negative:1;   /* it says unseen/unknown */
    unsigned                        absent:1;     /* the same, or deleted */
    unsigned                        tops:1;       /* top is kept */
    unsigned                        partial:1;    /* begun while loading */
    uint64_t                        top;          /* its ids are below */
    ngx_uint_t                      generation;   /* of the data, at first */

    /* the reply */
    unsigned                        replied:1;    /* it is ours */
    unsigned                        replaced:1;   /* for nginx's error page */
    unsigned                        cacheable:1;  /* it has Cache-Control */
    unsigned                        produced:1;   /* all of it is in out */
    ngx_http_urlstore_produce_pt    produce;
    ngx_uint_t                      status;
    ngx_str_t                       type;

    ngx_http_urlstore_parked_t     *parked;       /* while it waits */

    /* the body, and what was wrong with it */
    ngx_http_urlstore_body_t       *body;
    ngx_str_t                       fault;

    /* variables */
    uint64_t                        id;
    ngx_str_t                       status_name;
    ngx_str_t                       url;

    void                           *data;         /* the endpoint's own */
};


extern ngx_module_t  ngx_http_urlstore_module;


#define ngx_http_urlstore_count(zone, counter, k)                             \
    (void) ngx_atomic_fetch_add(&(zone)->tally->n[counter], k)


/* us, monotonic */

static inline uint64_t
ngx_http_urlstore_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


/* words for what became of an item; the first are in order of their counters */

#define NGX_HTTP_URLSTORE_ANSWERS   6

extern ngx_str_t  ngx_http_urlstore_answers[];


/* ngx_http_urlstore_declare.c */

ngx_http_urlstore_zone_t *ngx_http_urlstore_zone_find(ngx_conf_t *cf,
    ngx_str_t *name);

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
    "crawler, crawler-clean, whatwg, strict-rfc3986 or aggressive"
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
void ngx_http_urlstore_zone_lock(ngx_http_urlstore_zone_t *zone,
    us_store_lock_t *lock);
void ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_train_exit(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_filter.c */

char *ngx_http_urlstore_filter(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_urlstore_filter_seen(ngx_http_urlstore_zone_t *zone,
    us_store_item_t *item);
void ngx_http_urlstore_filter_exit(ngx_cycle_t *cycle);

/* ngx_http_urlstore_rules.c */

char *ngx_http_urlstore_rewrite(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_urlstore_strip_args(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_www_except(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_urlstore_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_urlstore_handler.c */

const ngx_http_urlstore_endpoint_t *ngx_http_urlstore_endpoint(
    ngx_str_t *name);
ngx_int_t ngx_http_urlstore_handler(ngx_http_request_t *r);

/* of the endpoints; a content handler's result */

ngx_int_t ngx_http_urlstore_add_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_seen_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_url_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_urls_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_prefix_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_site_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_mark_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_normalize_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_metrics_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_health_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_stats_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_page_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_urlstore_openapi_handler(ngx_http_request_t *r);

extern const ngx_http_urlstore_endpoint_t  ngx_http_urlstore_endpoints[];

/* ngx_http_urlstore_path.c, _dir.c; for all zones, with path= or without */

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

/* of every request: another process may have changed state and epoch */
void ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_state.c; also for all zones */

/*
 * What every endpoint asks before it answers: NGX_DECLINED if it may; else the
 * problem has been sent, and the result is to be returned.
 */
ngx_int_t ngx_http_urlstore_ready(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, const ngx_http_urlstore_endpoint_t *ep);

/* remembers which data the request begins with, and whether they changed */
void ngx_http_urlstore_begin(ngx_http_urlstore_ctx_t *ctx);
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

ngx_uint_t ngx_http_urlstore_full(ngx_http_urlstore_zone_t *zone);
ngx_uint_t ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone);
ngx_uint_t ngx_http_urlstore_tells(ngx_http_urlstore_zone_t *zone,
    ngx_uint_t found);

/* whether look-ups are answered; the word for the state */
ngx_uint_t ngx_http_urlstore_is_ready(ngx_http_urlstore_zone_t *zone);
const char *ngx_http_urlstore_state_name(ngx_http_urlstore_zone_t *zone);

/* the word for state n (0, 1, ...), NULL past the last; some have the same */
const char *ngx_http_urlstore_state_word(ngx_http_urlstore_zone_t *zone,
    ngx_uint_t n);

/* of loading, per cent */
ngx_uint_t ngx_http_urlstore_progress(ngx_http_urlstore_zone_t *zone);

/* ngx_http_urlstore_origin.c */

char *ngx_http_urlstore_allow_origin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_urlstore_origin(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep);

/* ngx_http_urlstore_request.c */

ngx_http_urlstore_ctx_t *ngx_http_urlstore_ctx(ngx_http_request_t *r);
ngx_uint_t ngx_http_urlstore_origin_allowed(ngx_http_request_t *r,
    ngx_str_t *origin);
ngx_str_t *ngx_http_urlstore_header_in(ngx_http_request_t *r,
    const char *name);

/* a decoded query argument, in the request's pool; NGX_DECLINED: not there */
ngx_int_t ngx_http_urlstore_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);
ngx_int_t ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name);
ngx_http_urlstore_format_t ngx_http_urlstore_accept(ngx_http_request_t *r,
    ngx_http_urlstore_format_t preset);

/* an id: NGX_OK, NGX_ERROR (not an id), NGX_DECLINED (never given: too big) */
ngx_int_t ngx_http_urlstore_id(const u_char *p, size_t len, uint64_t *id);

/* ngx_http_urlstore_out.c */

ngx_int_t ngx_http_urlstore_out_init(ngx_http_urlstore_out_t *out,
    ngx_pool_t *pool, size_t size);

/* room for n bytes at out->pos, which the caller moves */
ngx_int_t ngx_http_urlstore_out_room(ngx_http_urlstore_out_t *out, size_t n);
ngx_int_t ngx_http_urlstore_out_printf(ngx_http_urlstore_out_t *out,
    size_t max, const char *fmt, ...);
size_t ngx_http_urlstore_out_size(ngx_http_urlstore_out_t *out);
ngx_uint_t ngx_http_urlstore_out_enough(ngx_http_urlstore_out_t *out);

ngx_chain_t *ngx_http_urlstore_out_take(ngx_http_urlstore_out_t *out,
    ngx_uint_t last);
ngx_uint_t ngx_http_urlstore_out_sent(ngx_http_urlstore_out_t *out);
u_char *ngx_http_urlstore_u64(u_char *p, uint64_t n);
void ngx_http_urlstore_out_exit(void);

/* ngx_http_urlstore_reply.c */

/* sends ctx->out with ctx->status and ctx->type */
ngx_int_t ngx_http_urlstore_send(ngx_http_request_t *r);

/* its two halves; length: of the body, or -1; last: no more follows */
ngx_int_t ngx_http_urlstore_reply_header(ngx_http_request_t *r, off_t length);
ngx_int_t ngx_http_urlstore_reply_output(ngx_http_request_t *r,
    ngx_uint_t last);

ngx_int_t ngx_http_urlstore_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value);
void ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_format_t format);

/* ngx_http_urlstore_stream.c */

/*
 * Sends what a producer writes to ctx->out, slice by slice, as the client
 * takes it.  A producer returns after some 100 us, or when the output has
 * enough; what it has written depends on ctx->lsn and the members beside it.
 * NGX_AGAIN: there is more to come, NGX_OK: that was all, NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_http_urlstore_stream(ngx_http_request_t *r,
    ngx_http_urlstore_produce_pt produce);

/* ngx_http_urlstore_park.c; also for zones without path= */

/*
 * Every reply that reveals what the store has, or has not, passes here.  Calls
 * handler and returns its result if ctx->lsn is on disk as far as the zone
 * promises; else returns NGX_DONE and calls it when that is so.
 */
ngx_int_t ngx_http_urlstore_reply_when(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler);

/*
 * Calls handler once the journal's ring has room again.  NGX_DECLINED: the
 * disk refuses, nothing is waited for.
 */
ngx_int_t ngx_http_urlstore_room_when(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler);

/* calls handler at the next turn of the event loop: others first */
ngx_int_t ngx_http_urlstore_turn_when(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler);

/* around us_store_delete(), with its LSN or 0 */
void ngx_http_urlstore_deleting(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_deleted(ngx_http_urlstore_zone_t *zone, uint64_t lsn);

/* ids below it are on the disk; or there as far as the zone promises */
uint64_t ngx_http_urlstore_durable_ids(ngx_http_urlstore_zone_t *zone);
uint64_t ngx_http_urlstore_promised_ids(ngx_http_urlstore_zone_t *zone);

/* whether all that a read reveals is promised: by lsn, tops, top and absent */
ngx_uint_t ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_problem.c */

/*
 * Sends application/problem+json (RFC 9457); members is more of them, such as
 * "\"processed\":7", or NULL.  The detail is escaped here.
 */
ngx_int_t ngx_http_urlstore_problem(ngx_http_request_t *r, ngx_uint_t status,
    const char *members, const char *fmt, ...);

/* the same in ctx->out, without the end of the object; NGX_OK, or a status */
ngx_int_t ngx_http_urlstore_problem_begin(ngx_http_request_t *r,
    ngx_uint_t status, const char *members, const char *fmt, ...);

/* remembers what was wrong with the body, as ctx->fault; returns status */
ngx_int_t ngx_http_urlstore_fault(ngx_http_request_t *r, ngx_uint_t status,
    const char *fmt, ...);
ngx_int_t ngx_http_urlstore_problem_init(ngx_conf_t *cf);

/* bytes of the longest word, "rule:NAME" */
#define NGX_HTTP_URLSTORE_REASON   80

/* writes API.md's word for a refusal */
u_char *ngx_http_urlstore_reason(u_char *p,
    ngx_http_urlstore_refusal_t *refusal);

/*
 * Of a single URL: 422 with the reason; 507 if there is no refusal, because
 * the zone is full.  ref may be NULL; steps, too, or a text (u_char) with more
 * members and a comma before each.
 */
ngx_int_t ngx_http_urlstore_refused(ngx_http_request_t *r,
    ngx_http_urlstore_refusal_t *refusal, ngx_str_t *ref, ngx_array_t *steps);

/* ngx_http_urlstore_body.c */

/* whether items can be ids: no, also, only */
#define NGX_HTTP_URLSTORE_NO_IDS     0
#define NGX_HTTP_URLSTORE_OR_IDS     1
#define NGX_HTTP_URLSTORE_ONLY_IDS   2

/*
 * Reads the body as items.  run is called whenever there may be some, takes
 * them by ngx_http_urlstore_body_item() as long as that returns NGX_OK, and
 * returns NGX_AGAIN to be called again.  Any other result is the request's, as
 * that of a content handler.
 */
ngx_int_t ngx_http_urlstore_body(ngx_http_request_t *r, ngx_uint_t ids,
    ngx_http_urlstore_handler_pt run);

/*
 * NGX_AGAIN: no item for now; NGX_DONE: the body has ended; else a status,
 * with ctx->fault if it is a fault of the client.
 */
ngx_int_t ngx_http_urlstore_body_item(ngx_http_request_t *r,
    us_input_item_t *item);

/* calls run, for one that has waited for something else than the body */
ngx_int_t ngx_http_urlstore_body_run(ngx_http_request_t *r);

/* an item took long: looks at the clock whether that was the turn's last one */
void ngx_http_urlstore_body_slow(ngx_http_urlstore_ctx_t *ctx);

/* the reader; its format is settled after the first item, or the end */
us_input_t *ngx_http_urlstore_body_input(ngx_http_urlstore_ctx_t *ctx);
ngx_http_urlstore_format_t ngx_http_urlstore_body_format(
    ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_group.c */

void ngx_http_urlstore_group_exit(void);

/* ngx_http_urlstore_normalize.c */

/* how to normalize, other than the zone does */

typedef struct {
    us_norm_t                      *norm;     /* NULL: the zone's */
    us_norm_ws_t                   *ws;
    ngx_array_t                    *steps;    /* u_char: the member "steps" */
} ngx_http_urlstore_how_t;

/*
 * What ?url=U[&base=B] comes to, in *canon if the verdict is US_URL_OK; how is
 * NULL for the zone's own way.  NGX_DECLINED: there is no url.  *canon lives
 * in a workspace of the worker.
 */
ngx_int_t ngx_http_urlstore_query_url(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_how_t *how,
    us_canon_t *canon, us_verdict_t *verdict);

/* the same; NGX_DECLINED: it is in *canon, else the reply has been sent */
ngx_int_t ngx_http_urlstore_one_url(ngx_http_request_t *r,
    ngx_http_urlstore_how_t *how, us_canon_t *canon);

/* ngx_http_urlstore_site.c */

ngx_int_t ngx_http_urlstore_site_key(ngx_http_request_t *r, ngx_str_t *host,
    us_str_t *key, int *merge);


/* ngx_http_urlstore_stats.c */

/* counts one batch that took so many microseconds */
void ngx_http_urlstore_observe(ngx_http_urlstore_zone_t *zone, uint64_t us);

/* ngx_http_urlstore_variables.c */

ngx_int_t ngx_http_urlstore_add_variables(ngx_conf_t *cf);

/* ngx_http_urlstore_quota.c */

char *ngx_http_urlstore_quota(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_urlstore_quota_test(ngx_http_request_t *r);
void ngx_http_urlstore_quota_charge(ngx_http_request_t *r, ngx_uint_t n);


#endif /* _NGX_HTTP_URLSTORE_H_INCLUDED_ */
