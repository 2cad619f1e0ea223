
/*
 * Requests: the configuration of their location, the table of endpoints, a
 * request's context and what it brings.  Replies: their text, how they are
 * sent, when, and what an error looks like.
 */


#ifndef _NGX_HTTP_URLSTORE_REQUEST_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_REQUEST_H_INCLUDED_


#include "ngx_http_urlstore.h"
#include "../api/us_list.h"
#include "../api/us_request.h"
#include "../api/us_problem.h"
#include "../input/us_json.h"


#define NGX_HTTP_URLSTORE_GONE            410
#define NGX_HTTP_URLSTORE_MISDIRECTED     421
#define NGX_HTTP_URLSTORE_UNPROCESSABLE   422


/* bytes of a piece of a reply, and of a slice of it, at least */
#define NGX_HTTP_URLSTORE_PIECE    (64 * 1024 - sizeof(ngx_queue_t))
#define NGX_HTTP_URLSTORE_ENOUGH   (96 * 1024)


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


/* see ngx_http_urlstore_stream() */

typedef ngx_int_t (*ngx_http_urlstore_produce_pt)(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out);


/* CPU time of a request's slow matches of user rules, ns */
#define NGX_HTTP_URLSTORE_BUDGET   (100 * 1000 * 1000)


/* what a request with more items is refused with, 413 */
#define NGX_HTTP_URLSTORE_TOO_MANY                                            \
    "a request has at most %ui items (urlstore_max_batch)"


typedef struct ngx_http_urlstore_quota_s  ngx_http_urlstore_quota_t;


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    const ngx_http_urlstore_endpoint_t
                                   *endpoint; /* NULL: urlstore_api */
    ngx_http_handler_pt             handler;  /* of the location */

    /* of the location that has the directive; blocks in it have others */
    ngx_str_t                       name;
    ngx_uint_t                      regex;

    /* urlstore_cluster_admin */
    struct ngx_http_urlstore_cluster_s
                                   *admin;

    /* of a server: the names of its locations that are ours, ngx_str_t */
    ngx_array_t                    *ours;
    ngx_array_t                     names;        /* of the server itself */

    ngx_http_urlstore_quota_t      *quota;
    ngx_array_t                    *origins;  /* NULL: no other than its own */

    ngx_uint_t                      max_url;
    size_t                          max_body;
    size_t                          max_reply;
    ngx_uint_t                      max_batch;
    time_t                          max_age;
} ngx_http_urlstore_loc_conf_t;


/* one endpoint; the table is in ngx_http_urlstore_handler.c, in this order */

typedef enum {
    NGX_HTTP_URLSTORE_E_ADD = 0,
    NGX_HTTP_URLSTORE_E_SEEN,
    NGX_HTTP_URLSTORE_E_URL,
    NGX_HTTP_URLSTORE_E_URLS,
    NGX_HTTP_URLSTORE_E_PREFIX,
    NGX_HTTP_URLSTORE_E_SITE,
    NGX_HTTP_URLSTORE_E_MARK,
    NGX_HTTP_URLSTORE_E_LOG,
    NGX_HTTP_URLSTORE_E_CLAIM,
    NGX_HTTP_URLSTORE_E_CLUSTER,
    NGX_HTTP_URLSTORE_E_NORMALIZE,
    NGX_HTTP_URLSTORE_E_HEALTH,
    NGX_HTTP_URLSTORE_E_STATS,
    NGX_HTTP_URLSTORE_E_METRICS,
    NGX_HTTP_URLSTORE_E_PAGE,
    NGX_HTTP_URLSTORE_E_OPENAPI,
    NGX_HTTP_URLSTORE_E_SET,
    NGX_HTTP_URLSTORE_E_ERASE,
    NGX_HTTP_URLSTORE_ENDPOINTS
} ngx_http_urlstore_endpoint_number_t;


/*
 * Its answer is a list or a count, which denies all that is not in it: only a
 * store that has all can give one.
 */
#define NGX_HTTP_URLSTORE_LISTS        1

/* what follows its name is that of a set; in the words of marks */
#define NGX_HTTP_URLSTORE_OF_SET       2
#define NGX_HTTP_URLSTORE_OF_MARK      4

struct ngx_http_urlstore_endpoint_s {
    ngx_str_t                       name;
    ngx_uint_t                      methods;  /* of NAME */
    ngx_uint_t                      tail;     /* of NAME/..., or 0 */
    ngx_uint_t                      writes;   /* those that change the store */
    ngx_uint_t                      flags;
    const char                     *args;     /* of the query */
};


typedef struct ngx_http_urlstore_batch_s  ngx_http_urlstore_batch_t;
typedef struct ngx_http_urlstore_group_s  ngx_http_urlstore_group_t;

/* a part of a batch: its result is the request's */
typedef ngx_int_t (*ngx_http_urlstore_batch_pt)(
    ngx_http_urlstore_batch_t *batch);


/*
 * A kind of zone: what answers its requests.  A store is in this folder, a
 * filter in ngx_http_urlstore_filter_module.c, a router in src/route.
 *
 * Functions that return NGX_DECLINED for "go on" have sent the reply otherwise.
 */

struct ngx_http_urlstore_kind_s {
    const char                     *name;

    /* of its endpoints; NULL: the kind has none, and replies so */
    ngx_http_urlstore_handler_pt    handlers[NGX_HTTP_URLSTORE_ENDPOINTS];
    const char                     *lacks;    /* with the endpoint's name */
    ngx_uint_t                      status;

    /* whether the zone can answer now; NULL: always */
    ngx_http_urlstore_handler_pt    begin;

    /*
     * In the master: fills new memory.  Then, with each configuration, what the
     * kind has beside it, and whether the data can go on; old: the zone of the
     * configuration before, or NULL.  "nginx -t" has no memory.  NULL: nothing.
     */
    ngx_int_t                     (*create)(ngx_http_urlstore_zone_t *zone);
    ngx_int_t                     (*attach)(ngx_http_urlstore_zone_t *zone,
                                            ngx_http_urlstore_zone_t *old);

    /* of a worker that starts; NULL: nothing */
    ngx_int_t                     (*open)(ngx_http_urlstore_zone_t *zone,
                                          ngx_log_t *log);

    /* a link to its canonical URL */
    us_verdict_t                  (*normalize)(const us_norm_t *norm,
                                               us_norm_ws_t *ws, us_str_t link,
                                               const us_base_t *base,
                                               us_canon_t *canon);

    /*
     * Whether it keeps claims, and the ages that can be asked for, s; what: the
     * argument that needs them.
     */
    ngx_int_t                     (*claims)(ngx_http_urlstore_ctx_t *ctx,
                                            const char *what, uint64_t *least,
                                            uint64_t *most);

    /* a batch, when its options are read (NULL: nothing is to be done) */
    ngx_http_urlstore_batch_pt      batch;

    /* sets the answers of a group, as ngx_http_urlstore_batch.h has it */
    ngx_int_t                     (*group)(ngx_http_urlstore_batch_t *batch,
                                           ngx_http_urlstore_group_t *g);

    /* the body has ended, and all groups were answered */
    ngx_http_urlstore_batch_pt      end;

    /*
     * Looks a URL up for variables.  NGX_DECLINED: it cannot now; NULL: it
     * never can at once.
     */
    ngx_int_t                     (*look)(ngx_http_urlstore_ctx_t *ctx,
                                          ngx_http_urlstore_zone_t *zone,
                                          us_store_item_t *item);

    /* whether new URLs are refused for lack of room; figures for /stats */
    ngx_uint_t                    (*full)(ngx_http_urlstore_zone_t *zone);
    void                          (*figures)(ngx_http_urlstore_zone_t *zone,
                                             us_figures_t *f);
};


typedef struct ngx_http_urlstore_body_s    ngx_http_urlstore_body_t;
typedef struct ngx_http_urlstore_parked_s  ngx_http_urlstore_parked_t;


/* of a request; ctx->data is of its endpoint */

struct ngx_http_urlstore_ctx_s {
    ngx_http_request_t             *r;
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_loc_conf_t   *conf;         /* of its location */
    const ngx_http_urlstore_endpoint_t
                                   *endpoint;
    ngx_http_urlstore_handler_pt    handler;      /* of the zone's kind */
    ngx_str_t                       tail;         /* what follows NAME/ */
    u_char                         *query;        /* arguments, decoded */
    ngx_http_urlstore_out_t         out;
    us_format_t                     format;

    /* what the reply depends on: see ngx_http_urlstore_reply_when() */
    uint64_t                        lsn;
    unsigned                        writes:1;     /* its method does */
    unsigned                        wrote:1;      /* it changed the store */
    unsigned                        negative:1;   /* it says unseen/unknown */
    unsigned                        absent:1;     /* the same, or deleted */
    unsigned                        tops:1;       /* top is kept */
    unsigned                        has_body:1;   /* of its own */
    unsigned                        recent:1;     /* it reads claims */
    uint64_t                        top;          /* its ids are below */
    us_life_view_t                  view;         /* of the data, at first */
    ngx_uint_t                      processed;    /* items, so far */

    /* of a shard: the request names the map of a router */
    unsigned                        tagged:1;
    uint64_t                        under_version;
    uint8_t                         under_digest[16];

    /* the reply */
    unsigned                        replied:1;    /* it is ours */
    unsigned                        replaced:1;   /* for nginx's error page */
    unsigned                        cacheable:1;  /* it has Cache-Control */
    unsigned                        no_memory:1;  /* for a header */
    unsigned                        idle:1;       /* nothing for now */
    ngx_http_urlstore_produce_pt    produce;
    ngx_http_urlstore_handler_pt    more;         /* NULL: all is in out */
    ngx_uint_t                      status;
    ngx_str_t                       type;

    ngx_http_urlstore_parked_t     *parked;       /* while it waits */

    /* set=, or that of the path; number 0: there is none, yet */
    ngx_str_t                       set_name;
    us_store_set_t                  set;
    unsigned                        outside:1;    /* set=!NAME */
    unsigned                        made:1;       /* by this request */

    /* Idempotency-Key: no name if it has none */
    us_store_key_t                  key;
    unsigned                        repeats:1;    /* all it was answered */

    /* the body, and what was wrong with it */
    ngx_http_urlstore_body_t       *body;
    us_input_t                     *input;        /* its reader; the format is
                                                     settled by an item, or at
                                                     the end */
    ngx_str_t                       fault;

    /* variables */
    uint64_t                        id;
    us_answer_t                     answer;
    ngx_str_t                       url;

    void                           *data;         /* the endpoint's own */
};


/* a list of ids, ctx->data, and the reply as far as it is written */

typedef struct ngx_http_urlstore_ids_s  ngx_http_urlstore_ids_t;

/* the answer to an id; its URL may be in buf, which has room for any */
typedef us_answer_t (*ngx_http_urlstore_find_pt)(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_ids_t *ids, us_str_t id, u_char *buf, us_str_t *url);

struct ngx_http_urlstore_ids_s {
    us_list_t                       list;
    ngx_http_urlstore_handler_pt    answer;
    ngx_http_urlstore_find_pt       find;
    ngx_http_urlstore_out_t         ids;      /* with commas between */
    ngx_uint_t                      n;        /* of the body */
    ngx_uint_t                      shown;
    ngx_chain_t                    *at;       /* of the ids: not shown yet */
    unsigned                        partial:1;    /* what is not known is
                                                     unavailable */
};


/* an id that a client has sent, as the zone's store has it */

static inline us_id_rc_t
ngx_http_urlstore_id_parse(const ngx_http_urlstore_zone_t *zone,
    us_str_t text, uint64_t *id)
{
    return zone->cluster ? us_id_parse_shard(text, zone->first_id, id)
                         : us_id_parse(text, id);
}


/*
 * Whether the data have changed since the request began to be answered, or the
 * claims that it reads may have.
 */

static inline ngx_uint_t
ngx_http_urlstore_overtaken(ngx_http_urlstore_ctx_t *ctx)
{
    return us_life_overtaken(&ctx->zone->life, &ctx->view, ctx->negative)
           || (ctx->recent && !us_life_recent(&ctx->zone->life));
}


/* whether all that a read reveals is promised: by lsn, tops, top and absent */

static inline ngx_uint_t
ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx)
{
    return us_life_promised(&ctx->zone->life, ctx->lsn,
                            ctx->tops ? ctx->top : US_STORE_NO_ID,
                            ctx->absent);
}


/* ngx_http_urlstore_handler.c */

const ngx_http_urlstore_endpoint_t *ngx_http_urlstore_endpoint(
    ngx_str_t *name);

/* of the endpoints; a content handler's result */

ngx_int_t ngx_http_urlstore_add_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_seen_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_url_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_urls_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_prefix_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_site_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_set_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_erase_handler(ngx_http_urlstore_ctx_t *ctx);

/* puts ids and URLs into the set, or takes them out; NGX_DECLINED: neither */
ngx_int_t ngx_http_urlstore_set_batch(ngx_http_urlstore_ctx_t *ctx);

/* makes the set that it names: NGX_OK; NGX_BUSY; or a status, with a fault */
ngx_int_t ngx_http_urlstore_set_make(ngx_http_urlstore_ctx_t *ctx);

/* finds the set that the request names, and calls the request's handler */
ngx_int_t ngx_http_urlstore_set_begin(ngx_http_urlstore_ctx_t *ctx);

ngx_int_t ngx_http_urlstore_claim_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_normalize_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_metrics_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_health_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_stats_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_page_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_openapi_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_log_handler(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_cluster_handler(ngx_http_urlstore_ctx_t *ctx);

extern const ngx_http_urlstore_endpoint_t
    ngx_http_urlstore_endpoints[NGX_HTTP_URLSTORE_ENDPOINTS];

/* the kind of urlstore_zone */
extern const ngx_http_urlstore_kind_t  ngx_http_urlstore_store_kind;

/*
 * Whether the location can have what it is to have: all of the zone, or one
 * endpoint.  NGX_CONF_OK: it has the handler; else a message.
 */
char *ngx_http_urlstore_location(ngx_conf_t *cf,
    ngx_http_urlstore_loc_conf_t *ulcf);

/* ngx_http_urlstore_origin.c */

char *ngx_http_urlstore_allow_origin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* writes: methods that change the store.  NGX_DECLINED: go on; else: replied */
ngx_int_t ngx_http_urlstore_origin(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t writes);

/* at the end of the configuration */
ngx_int_t ngx_http_urlstore_origin_init(ngx_conf_t *cf);

/* ngx_http_urlstore_quota.c */

char *ngx_http_urlstore_quota(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* of a location with a quota */
ngx_int_t ngx_http_urlstore_quota_test(ngx_http_urlstore_ctx_t *ctx);
void ngx_http_urlstore_quota_charge(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t n);

/* the client as its quota has it; empty: it has no quota */
ngx_int_t ngx_http_urlstore_quota_key(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *key);

/* ngx_http_urlstore_idempotency.c */

char *ngx_http_urlstore_idempotency(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_urlstore_key(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_args.c; NGX_DECLINED: go on, else the reply was sent */

/* whether all query arguments are among the known ones */
ngx_int_t ngx_http_urlstore_args(ngx_http_urlstore_ctx_t *ctx,
    const char *known);

/*
 * A decoded query argument, with a zero after it; 0: it is not there, and
 * *value is empty.  It lies in buf, which has the query's length and a byte
 * more.
 */
ngx_uint_t ngx_http_urlstore_query(ngx_http_request_t *r, u_char *buf,
    const char *name, ngx_str_t *value);

/* the same of an endpoint's request */
ngx_uint_t ngx_http_urlstore_arg(ngx_http_urlstore_ctx_t *ctx, const char *name,
    ngx_str_t *value);
ngx_uint_t ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name);

/*
 * A number of the query, from least.  NGX_DECLINED: it is *n, or there is none;
 * else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_urls_number(ngx_http_urlstore_ctx_t *ctx,
    const char *name, uint64_t least, uint64_t *n);

/* of a store: see ngx_http_urlstore_kind_t */
ngx_int_t ngx_http_urlstore_claims(ngx_http_urlstore_ctx_t *ctx,
    const char *what, uint64_t *least, uint64_t *most);

/* older=DURATION in units (0: there is none), times=1, and the time to claim */
ngx_int_t ngx_http_urlstore_older(ngx_http_urlstore_ctx_t *ctx,
    uint32_t *units, ngx_uint_t *times);
ngx_int_t ngx_http_urlstore_claim_time(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t clear, uint64_t *at);

/* the site that a client names, by ctx->tail or site=; NGX_DECLINED: go on */
ngx_int_t ngx_http_urlstore_site_key(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *host, us_str_t *key, int *merge);

/* what is wrong with a text that is no id; its length and bytes */
#define NGX_HTTP_URLSTORE_NO_ID                                               \
    "\"%*s\" is not an id; a decimal number of at most 32 digits, without a "  \
    "leading zero, is expected"

#define NGX_HTTP_URLSTORE_EXAMINE   1000000   /* ids of one request */

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
ngx_int_t ngx_http_urlstore_body(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t ids,
    ngx_http_urlstore_handler_pt run);

/*
 * NGX_AGAIN: no item for now; NGX_DONE: the body has ended; else a status,
 * with ctx->fault if it is a fault of the client.
 */
ngx_int_t ngx_http_urlstore_body_item(ngx_http_urlstore_ctx_t *ctx,
    us_input_item_t *item);

/* calls run, for one that has waited for something else than the body */
ngx_int_t ngx_http_urlstore_body_run(ngx_http_urlstore_ctx_t *ctx);

/* an item took long: looks at the clock whether that was the turn's last one */
void ngx_http_urlstore_body_slow(ngx_http_urlstore_ctx_t *ctx);

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
ngx_int_t ngx_http_urlstore_one_url(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_how_t *how, us_canon_t *canon);

/* ngx_http_urlstore_urls.c */

/* the replies: 404; the prefix, which has ctx->id, or NULL if there is none */
ngx_int_t ngx_http_urlstore_site_missing(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_prefix_answer(ngx_http_urlstore_ctx_t *ctx,
    const us_str_t *found);

/*
 * ngx_http_urlstore_url.c: of GET /url/7,9 and POST /url.  Calls answer() when
 * the list is there, a text with commas between; it ends with ids_reply().
 * NGX_DECLINED: the request is for one id.
 */
ngx_int_t ngx_http_urlstore_ids(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt answer);
ngx_int_t ngx_http_urlstore_ids_reply(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_find_pt find);

/* the reply to what is no id: 400 */
ngx_int_t ngx_http_urlstore_url_bad(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_erase.c */

/*
 * Of POST /erase: whether its arguments are right, and the site that they name,
 * or none.  NGX_DECLINED: go on.
 */
ngx_int_t ngx_http_urlstore_erase_args(ngx_http_urlstore_ctx_t *ctx,
    us_str_t *site);

/* whether the request's reason can be kept; NGX_DECLINED: go on */
ngx_int_t ngx_http_urlstore_erase_reason(ngx_http_urlstore_ctx_t *ctx);

/* DELETE /url/ID?erase=1 */
ngx_int_t ngx_http_urlstore_erase_id(ngx_http_urlstore_ctx_t *ctx);

/* /erase; NGX_DECLINED: it is a batch */
ngx_int_t ngx_http_urlstore_erasures(ngx_http_urlstore_ctx_t *ctx);

/* the reply to a number of none: 404 */
ngx_int_t ngx_http_urlstore_erasure_missing(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_variables.c */

ngx_int_t ngx_http_urlstore_add_variables(ngx_conf_t *cf);

/* of a store: see ngx_http_urlstore_kind_t */
ngx_int_t ngx_http_urlstore_store_look(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_zone_t *zone, us_store_item_t *item);

/* ngx_http_urlstore_stats.c: the same */
ngx_uint_t ngx_http_urlstore_store_full(ngx_http_urlstore_zone_t *zone);
void ngx_http_urlstore_store_figures(ngx_http_urlstore_zone_t *zone,
    us_figures_t *f);

/* ngx_http_urlstore_admin.c: GET /cluster; map may be NULL */
ngx_int_t ngx_http_urlstore_cluster_show(ngx_http_urlstore_ctx_t *ctx,
    const us_map_t *map);


/* ngx_http_urlstore_out.c */

ngx_int_t ngx_http_urlstore_out_init(ngx_http_urlstore_out_t *out,
    ngx_pool_t *pool, size_t size);

/* room for n bytes at out->pos, which the caller moves */
ngx_int_t ngx_http_urlstore_out_room(ngx_http_urlstore_out_t *out, size_t n);
ngx_int_t ngx_http_urlstore_out_printf(ngx_http_urlstore_out_t *out,
    size_t max, const char *fmt, ...);

/* a piece, whose bytes are any; it is freed with out->pool at the latest */
void *ngx_http_urlstore_piece_get(ngx_http_urlstore_out_t *out);
void ngx_http_urlstore_piece_put(void *piece);

ngx_chain_t *ngx_http_urlstore_out_take(ngx_http_urlstore_out_t *out,
    ngx_uint_t last);
ngx_uint_t ngx_http_urlstore_out_sent(ngx_http_urlstore_out_t *out);

/* the free pieces of the worker: its end, and an erasure */
void ngx_http_urlstore_out_exit(void);


static ngx_inline size_t
ngx_http_urlstore_out_size(ngx_http_urlstore_out_t *out)
{
    return out->last ? out->size + (out->pos - out->last->buf->pos) : 0;
}


/* whether it is a slice: no more is produced until the client has taken it */

static ngx_inline ngx_uint_t
ngx_http_urlstore_out_enough(ngx_http_urlstore_out_t *out)
{
    return ngx_http_urlstore_out_size(out) >= NGX_HTTP_URLSTORE_ENOUGH;
}


/* ngx_http_urlstore_reply.c */

ngx_http_urlstore_ctx_t *ngx_http_urlstore_ctx(ngx_http_request_t *r);
ngx_uint_t ngx_http_urlstore_origin_allowed(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *origin);
ngx_str_t *ngx_http_urlstore_header_in(ngx_http_request_t *r,
    const char *name);

/*
 * Sends ctx->out with ctx->status and ctx->type: all of the reply, or a slice,
 * after which ctx->more() goes on.
 */
ngx_int_t ngx_http_urlstore_send(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_send_text(ngx_http_urlstore_ctx_t *ctx,
    us_str_t text);

/* length: of the body, or -1 */
ngx_int_t ngx_http_urlstore_reply_header(ngx_http_urlstore_ctx_t *ctx,
    off_t length);

/*
 * A header of the reply; key is a literal, *value lives as long as the request.
 * Without memory the reply is a 500.
 */
ngx_table_elt_t *ngx_http_urlstore_header(ngx_http_urlstore_ctx_t *ctx,
    const char *key, ngx_str_t *value);
void ngx_http_urlstore_header_text(ngx_http_urlstore_ctx_t *ctx,
    const char *key, const char *text);
void ngx_http_urlstore_header_printf(ngx_http_urlstore_ctx_t *ctx,
    const char *key, size_t max, const char *fmt, ...);

/* of what is not cacheable */
void ngx_http_urlstore_no_store(ngx_http_urlstore_ctx_t *ctx);

void ngx_http_urlstore_etag(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *value);

/* nothing was done: a router may ask another node */
void ngx_http_urlstore_untouched(ngx_http_urlstore_ctx_t *ctx);

/* Cache-Control of an answer that is safe on disk and stays, or is not yet */
void ngx_http_urlstore_cache_control(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t stays);

/* the type: of a format; of that which Accept prefers, or preset */
void ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx, us_format_t format);
void ngx_http_urlstore_accept(ngx_http_urlstore_ctx_t *ctx, us_format_t preset);

/* begins a reply: its type as accept() has it, and room for n bytes */
ngx_int_t ngx_http_urlstore_reply_begin(ngx_http_urlstore_ctx_t *ctx,
    us_format_t preset, size_t n);

/* of a problem that passes */
void ngx_http_urlstore_retry_after(ngx_http_urlstore_ctx_t *ctx,
    uint64_t seconds);


/*
 * For the handler of an event: ends the request with its result.  NGX_DONE: it
 * goes on, with the count that was raised for that.
 */

static ngx_inline void
ngx_http_urlstore_finalize(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_DONE) {

        /* ngx_http_finalize_request() would begin to linger */

        r->main->count--;
        return;
    }

    ngx_http_finalize_request(r, rc);
}


/* ngx_http_urlstore_wait.c; also for zones without path= */

/*
 * Sends what a producer writes to ctx->out, slice by slice, as the client
 * takes it.  A producer writes a line, or for 100 us; what it has written
 * depends on ctx->lsn and the members beside it.
 * NGX_AGAIN: there is more to come, NGX_OK: that was all, NGX_ERROR: no
 * memory, or a reply that began is cut, NGX_DECLINED: there is more to come,
 * but not now, NGX_HTTP_NOT_FOUND: of one that has not begun, no such set.
 */
ngx_int_t ngx_http_urlstore_stream(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_produce_pt produce);

/*
 * Every reply that reveals what the store has, or has not, passes here.  Calls
 * handler and returns its result if ctx->lsn is on disk as far as the zone
 * promises; else returns NGX_DONE and calls it when that is so.
 */
ngx_int_t ngx_http_urlstore_reply_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler);

/* calls handler once the journal's ring has room again, or the disk refuses */
ngx_int_t ngx_http_urlstore_room_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler);

/* what stored() returns but NGX_OK: calls handler again, or replies */
ngx_int_t ngx_http_urlstore_again(ngx_http_urlstore_ctx_t *ctx, ngx_int_t rc,
    ngx_http_urlstore_handler_pt handler);

/*
 * Of a request that changes one thing, by what the store has done: 204, or
 * again().  NGX_DECLINED: it is for the caller to reply.
 */
ngx_int_t ngx_http_urlstore_changed(ngx_http_urlstore_ctx_t *ctx,
    us_store_status_t status, ngx_http_urlstore_handler_pt handler);

/* handler replies that there is no such thing, as soon as that is promised */
ngx_int_t ngx_http_urlstore_deny(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler);

/* calls handler at the next turn of the event loop: others first */
ngx_int_t ngx_http_urlstore_turn_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler);

/* ngx_http_urlstore_problem.c */

/*
 * The request's body is not read: it is discarded, or a client that waits for
 * 100 Continue need not send it.  NGX_OK, or a status.
 */
ngx_int_t ngx_http_urlstore_no_body(ngx_http_request_t *r);

/*
 * Sends application/problem+json (RFC 9457); members is more of them, such as
 * "\"processed\":7", or NULL.  The detail is escaped here.
 */
ngx_int_t ngx_http_urlstore_problem(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t status, const char *members, const char *fmt, ...);

#define ngx_http_urlstore_bad(ctx, ...)                                       \
    ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL, __VA_ARGS__)

/* the same in ctx->out, without the end of the object; NGX_OK, or a status */
ngx_int_t ngx_http_urlstore_problem_begin(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t status, const char *members, ngx_str_t *detail);

/* the status line of a status that nginx has no words for */
void ngx_http_urlstore_problem_line(ngx_http_request_t *r, ngx_uint_t status);

/*
 * Remembers what was wrong, as ctx->fault; returns status.  503 is the state of
 * the zone, and needs no text.
 */
ngx_int_t ngx_http_urlstore_fault(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t status, const char *fmt, ...);

/* the reply to a request with that fault; with 503, it is the zone's state */
ngx_int_t ngx_http_urlstore_faulty(ngx_http_urlstore_ctx_t *ctx,
    ngx_int_t status, const char *members);

/*
 * Whether the store could do what was asked: NGX_OK; NGX_BUSY: when its ring
 * has room; else a status, with a fault.
 */
ngx_int_t ngx_http_urlstore_stored(ngx_http_urlstore_ctx_t *ctx,
    us_store_status_t status);
ngx_int_t ngx_http_urlstore_problem_init(ngx_conf_t *cf);

/*
 * Of a single URL: 422 with the reason; 507 if there is no refusal, because
 * the zone is full.  ref may be NULL; steps, too, or a text (u_char) with more
 * members and a comma before each.
 */
ngx_int_t ngx_http_urlstore_refused(ngx_http_urlstore_ctx_t *ctx,
    us_refusal_t *refusal, ngx_str_t *ref, ngx_array_t *steps);

/* 503: the state of the zone does not allow it; extra: members, or NULL */
ngx_int_t ngx_http_urlstore_unready(ngx_http_urlstore_ctx_t *ctx,
    const char *extra);

/*
 * The zone has no such set: 404; or 503, if it is a mark of the configuration,
 * which is not in the manifest of path= so far.
 */
ngx_int_t ngx_http_urlstore_set_none(ngx_http_urlstore_ctx_t *ctx);

/* an id without a URL: 404 to that of the path; 410 to ctx->id; 500, logged */
ngx_int_t ngx_http_urlstore_url_missing(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_url_gone(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_url_damaged(ngx_http_urlstore_ctx_t *ctx);

/* a problem of a replica, with the name of its primary */
ngx_int_t ngx_http_urlstore_follow_problem(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t status, const char *extra, const char *detail);


#endif /* _NGX_HTTP_URLSTORE_REQUEST_H_INCLUDED_ */
