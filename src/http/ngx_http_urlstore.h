
/*
 * What every file of the nginx side uses, and which file does what.
 *
 * directives and zones (ngx_http_urlstore_zone.h)
 *
 *     ngx_http_urlstore_module.c    directives, configuration
 *     ngx_http_urlstore_options.c   directives of zones, and their options
 *     ngx_http_urlstore_zone.c      memory and directory, in the master
 *     ngx_http_urlstore_life.c      in a worker: threads, the lock, training
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
 *     ngx_http_urlstore_reply.c     the writer of replies
 *     ngx_http_urlstore_wait.c      requests that wait; replies slice by slice
 *     ngx_http_urlstore_problem.c   errors
 *
 * A request's way: the handler finds the endpoint, asks the zone's kind whether
 * it can answer, and calls it.  The endpoint collects its reply in ctx->out and
 * leaves through ngx_http_urlstore_reply_when(), which sends the reply when all
 * that it reports is promised (life/us_life.h).
 */


#ifndef _NGX_HTTP_URLSTORE_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_H_INCLUDED_


#include "../us_base.h"

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


extern ngx_module_t  ngx_http_urlstore_module;


/* us, monotonic */

static inline uint64_t
ngx_http_urlstore_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


#endif /* _NGX_HTTP_URLSTORE_H_INCLUDED_ */
