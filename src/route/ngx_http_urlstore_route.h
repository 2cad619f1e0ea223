
/*
 * A router: the API over the shards of a cluster.
 *
 *     client's request
 *         |          whom to ask, and what of each
 *         |
 *     fan            calls at the same time: a subrequest each, to the upstream
 *         |          of a node
 *         |
 *     done()         all calls have ended: the reply, or more calls
 *
 *     ngx_http_urlstore_fan.c       calls of a request; what a shard's reply is
 *                                   for the client
 *     ngx_http_urlstore_call.c      one call, by nginx's upstream
 *     ngx_http_urlstore_rounds.c    what cluster/us_scatter.h asks, as calls
 *     ngx_http_urlstore_scatter.c   /add, /seen, /set, /mark, /claim, /erase
 *     ngx_http_urlstore_ids.c       /url: one id, lists of ids; /prefix; /site
 *     ngx_http_urlstore_feed.c      /urls: one shard after the other
 *     ngx_http_urlstore_survey.c    /health, /stats, /metrics, sets: all shards
 *     ngx_http_urlstore_parts.c     erasures, by the parts that shards have
 *
 * A router is a kind of zone, without a store.  It has a name (that of the
 * cluster), a normalizer, rules and counters as every zone, and keeps nothing
 * that a shard has answered.  zone->own is the cluster.
 */


#ifndef _NGX_HTTP_URLSTORE_ROUTE_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_ROUTE_H_INCLUDED_


#include "ngx_http_urlstore_cluster.h"
#include "../cluster/us_scatter.h"


/* bytes of a shard's reply that are read; past the second it is no reply */
#define NGX_HTTP_URLSTORE_CALL_REPLY   (1024 * 1024)
#define NGX_HTTP_URLSTORE_CALL_MAX     (16 * 1024 * 1024)

/* ms: a node that does not report its state for so long does not answer */
#define NGX_HTTP_URLSTORE_CALL_PROBE   2000


typedef struct {
    ngx_http_upstream_conf_t        upstream;
    ngx_http_upstream_conf_t        probe;    /* for the state of nodes */
    ngx_str_t                       endpoint; /* endpoint=, or empty: all */
} ngx_http_urlstore_route_loc_conf_t;


extern ngx_module_t  ngx_http_urlstore_route_module;


/* headers of a shard's reply */

typedef enum {
    NGX_HTTP_URLSTORE_CALL_MAP = 0,
    NGX_HTTP_URLSTORE_CALL_REFUSED,
    NGX_HTTP_URLSTORE_CALL_REPEATED,
    NGX_HTTP_URLSTORE_CALL_TYPE,
    NGX_HTTP_URLSTORE_CALL_LOCATION,
    NGX_HTTP_URLSTORE_CALL_RETRY,
    NGX_HTTP_URLSTORE_CALL_ETAG,
    NGX_HTTP_URLSTORE_CALL_CACHE,
    NGX_HTTP_URLSTORE_CALL_LENGTH,
    NGX_HTTP_URLSTORE_CALL_ENCODING,
    NGX_HTTP_URLSTORE_CALL_CONNECTION,
    NGX_HTTP_URLSTORE_CALL_HEADERS
} ngx_http_urlstore_call_header_t;


/*
 * A call to a shard.  The caller fills the first part.
 */

typedef struct {
    ngx_http_urlstore_ctx_t        *ctx;      /* of the client's request */
    const us_map_t                 *map;
    ngx_uint_t                      shard;    /* index in it */
    ngx_uint_t                      method;   /* GET, POST, PUT, DELETE */
    ngx_str_t                       path;     /* with its arguments */
    ngx_str_t                       accept;   /* empty: not sent */
    ngx_chain_t                    *body;     /* of POST */
    off_t                           length;
    unsigned                        single:1; /* a part is no reply */
    unsigned                        probes:1; /* for the node's own state */
    unsigned                        reuses:1; /* text of the call before */

    /* where it goes */
    ngx_uint_t                      node;     /* index in the shard */
    ngx_uint_t                      tries;
    uint64_t                        start;    /* us, monotonic */
    ngx_http_request_t             *sr;

    /* the reply; end.reads: the caller's */
    us_wire_end_t                   end;
    us_str_t                        before;   /* that of the node before */
    ngx_str_t                       headers[NGX_HTTP_URLSTORE_CALL_HEADERS];

    /* while it is read */
    ngx_int_t                       rc;       /* of the upstream */
    u_char                         *head;     /* u->buffer */
    u_char                         *buf;      /* which has the text */
    size_t                          size;
    size_t                          received;
    off_t                           rest;     /* of the body, or of its chunk */
    ngx_uint_t                      chunk;    /* where its reader is */
    ngx_uint_t                      digits;

    unsigned                        under_way:1;
    unsigned                        ended:1;  /* not looked at so far */
    unsigned                        foreign:1; /* another shard, or none */
    unsigned                        chunked:1;
    unsigned                        closes:1; /* the connection */
} ngx_http_urlstore_call_t;


/*
 * The calls of a request that are under way at the same time: the context of
 * the request in this module.
 */

typedef struct ngx_http_urlstore_fan_s  ngx_http_urlstore_fan_t;

struct ngx_http_urlstore_fan_s {
    ngx_http_urlstore_ctx_t        *ctx;
    const us_map_t                 *map;      /* as it was at first */
    ngx_http_urlstore_call_t       *calls;
    ngx_uint_t                      n;
    ngx_uint_t                      under_way;
    void                           *data;     /* the endpoint's */
    unsigned                        broken:1; /* r->connection->error */

    /* one of them has ended: merges the reply, may begin it again; or NULL */
    void                          (*ended)(ngx_http_urlstore_fan_t *fan,
                                           ngx_http_urlstore_call_t *call);

    /* none is under way: the request's result; NGX_AGAIN: more are, now */
    ngx_http_urlstore_handler_pt    done;
};


typedef struct {
    us_scatter_t                    s;
    ngx_http_urlstore_fan_t        *fan;      /* a call for each lane */
    ngx_http_urlstore_out_t        *bodies;   /* of these */

    /* the caller's: what is asked, and how URLs are looked up */
    ngx_str_t                       action;   /* paths with their arguments */
    ngx_str_t                       look_up;
    ngx_http_urlstore_handler_pt    done;
    size_t                          limit;    /* of replies; 0: none */

    ngx_uint_t                      remaps;
    size_t                          size;     /* of the replies, by id */
    unsigned                        over:1;   /* they have more: not asked on */
    unsigned                        forgets:1; /* a retry is not repeated all */
    ngx_http_urlstore_call_t        refusal;  /* status 0: there is none */
    ngx_array_t                     parts;    /* those of an erasure */

    /* of a batch, whose `own` they are */
    size_t                          texts;    /* bytes of its items */
    ngx_uint_t                      shown;    /* items of the reply */
} ngx_http_urlstore_rounds_t;


/* a shard's part of an erasure, and what the shard reports of it, or NULL */

typedef struct {
    uint32_t                        shard;    /* its number */
    uint64_t                        number;   /* of the erasure there */
    us_erasure_info_t              *e;
    unsigned                        left;
} ngx_http_urlstore_part_t;

/* bytes of the name of one, with what follows it in a name of several */
#define NGX_HTTP_URLSTORE_PART  (NGX_INT32_LEN + NGX_INT64_LEN + 2)


/* the name of one part */

static inline u_char *
ngx_http_urlstore_part(u_char *p, const ngx_http_urlstore_part_t *part)
{
    return ngx_sprintf(p, "%uD.%uL", part->shard, part->number);
}


/* ngx_http_urlstore_fan.c */

/*
 * A fan for a request, without calls, by the map of the cluster as it is now.
 * NGX_DECLINED: go on; else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_fan(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_fan_t **fan);

/*
 * n calls of this method in the place of those that there are, by fan->map;
 * HEAD is GET, which only reads
 */
ngx_int_t ngx_http_urlstore_fan_calls(ngx_http_urlstore_fan_t *fan,
    ngx_uint_t n, ngx_uint_t method);

/* the path of a call: words, numbers, and what the client has sent, once */
ngx_int_t ngx_http_urlstore_route_path(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *path, const char *fmt, ...);

/*
 * The same path for all shards, and the request's result as below.  probes: it
 * asks for the state of the nodes; else for text.
 */
ngx_int_t ngx_http_urlstore_fan_all(ngx_http_urlstore_fan_t *fan,
    const ngx_str_t *path, ngx_uint_t method, ngx_uint_t probes);

/* the request's result: NGX_DONE, and done() is called later; or what it has */
ngx_int_t ngx_http_urlstore_fan_wait(ngx_http_urlstore_fan_t *fan);

/* 400: a cluster with the key "url" knows no sites; what: the argument */
ngx_int_t ngx_http_urlstore_route_sites(ngx_http_urlstore_ctx_t *ctx,
    const char *what);

/* 503 with Retry-After; members as ngx_http_urlstore_problem() has them */
ngx_int_t ngx_http_urlstore_route_absent(ngx_http_urlstore_ctx_t *ctx,
    const char *members, const char *fmt, ...);

/* the same: the map, which may be old, has no shard of this number */
ngx_int_t ngx_http_urlstore_route_lacks(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t number);

/* the same: the shard of this number does not answer, and has done nothing */
ngx_int_t ngx_http_urlstore_route_silent(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t number);

/* 504 with Retry-After: it may have done what it was asked */
ngx_int_t ngx_http_urlstore_route_unknown(ngx_http_urlstore_ctx_t *ctx,
    ngx_uint_t number);

/*
 * Whether the shard reports a problem of what the client has asked for; its
 * reply is the client's.
 */
ngx_uint_t ngx_http_urlstore_call_problem(ngx_http_urlstore_call_t *call);
ngx_int_t ngx_http_urlstore_relay_reply(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_call_t *call);

/* handlers of endpoints */

ngx_int_t ngx_http_urlstore_route_set(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_route_url(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_route_urls(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_route_prefix(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_route_site(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_survey(ngx_http_urlstore_ctx_t *ctx);
ngx_int_t ngx_http_urlstore_route_erase(ngx_http_urlstore_ctx_t *ctx);

/* GET /erase, a part of the last one; ngx_http_urlstore_feed.c */
ngx_int_t ngx_http_urlstore_route_erasures(ngx_http_urlstore_ctx_t *ctx);

/* ngx_http_urlstore_survey.c */

/* whether a call's reply says what the shard has done, or has, to its end */
ngx_uint_t ngx_http_urlstore_survey_answers(ngx_http_urlstore_call_t *call);

/*
 * Of a fan that is done: the call whose reply says what became of all of them,
 * and the shards that do not answer, ",1" each.  NGX_DECLINED: it is an answer,
 * and may be a part of it; else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_survey_best(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *silent, ngx_http_urlstore_call_t **best);

/* the end of a list, as far as the last bracket: those shards */
u_char *ngx_http_urlstore_survey_lost(u_char *p, us_format_t format,
    const ngx_str_t *silent);

/* ngx_http_urlstore_parts.c */

/* a key for the shards, if the request has none */
ngx_int_t ngx_http_urlstore_parts_key(ngx_http_urlstore_ctx_t *ctx);

/* a part more, in order, unless it is there; and the name of all */
ngx_int_t ngx_http_urlstore_parts_add(ngx_array_t *parts, uint32_t shard,
    uint64_t number);
ngx_int_t ngx_http_urlstore_parts_name(ngx_pool_t *pool, ngx_array_t *parts,
    ngx_str_t *name);

/* 202, with the place of an erasure */
void ngx_http_urlstore_parts_accepted(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *name);

/* the reply of a fan that is done: the erasure as it is now, or NGX_AGAIN */
ngx_int_t ngx_http_urlstore_parts_show(ngx_http_urlstore_ctx_t *ctx,
    ngx_array_t *parts, ngx_str_t *name);

/* ngx_http_urlstore_scatter.c: of a batch, see ngx_http_urlstore_kind_t */

ngx_int_t ngx_http_urlstore_scatter_begin(ngx_http_urlstore_batch_t *batch);
ngx_int_t ngx_http_urlstore_scatter_group(ngx_http_urlstore_batch_t *batch,
    ngx_http_urlstore_group_t *g);
ngx_int_t ngx_http_urlstore_scatter(ngx_http_urlstore_batch_t *batch);

/* ngx_http_urlstore_call.c */

/*
 * Begins a call, and tries further nodes of the shard if the first does
 * nothing.  NGX_OK, or NGX_ERROR: it has ended at once, without a reply.
 */
ngx_int_t ngx_http_urlstore_call_begin(ngx_http_urlstore_fan_t *fan,
    ngx_http_urlstore_call_t *call);

/* whether the call has ended since it was asked last; may begin another try */
ngx_uint_t ngx_http_urlstore_call_ended(ngx_http_urlstore_call_t *call);

/* reports in the log, and counts, that a call left n items without an answer */
void ngx_http_urlstore_call_log(ngx_http_urlstore_call_t *call,
    ngx_uint_t n);

/* ngx_http_urlstore_rounds.c */

/*
 * The rounds of a request, freed with its pool, for the map of the cluster as
 * it is now.  NGX_DECLINED: go on; else the reply has been sent.
 */
ngx_int_t ngx_http_urlstore_rounds_create(ngx_http_urlstore_ctx_t *ctx,
    us_scatter_action_t action, ngx_http_urlstore_rounds_t **rounds);

/* those of a request; ngx_http_urlstore_fan_wait() begins them */
ngx_http_urlstore_rounds_t *ngx_http_urlstore_rounds_of(ngx_http_request_t *r);

/* the reply if no item has an answer: a problem */
ngx_int_t ngx_http_urlstore_rounds_none(ngx_http_urlstore_rounds_t *rounds);


#endif /* _NGX_HTTP_URLSTORE_ROUTE_H_INCLUDED_ */
