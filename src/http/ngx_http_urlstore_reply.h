
/*
 * Replies: their text, how they are sent, when, and what an error looks like.
 */


#ifndef _NGX_HTTP_URLSTORE_REPLY_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_REPLY_H_INCLUDED_


#include "ngx_http_urlstore.h"
#include "../api/us_media.h"
#include "../api/us_refusal.h"
#include "../input/us_json.h"


#define NGX_HTTP_URLSTORE_GONE            410
#define NGX_HTTP_URLSTORE_MISDIRECTED     421
#define NGX_HTTP_URLSTORE_UNPROCESSABLE   422


/* bytes of a slice, at least */
#define NGX_HTTP_URLSTORE_ENOUGH   (96 * 1024)


/* a reply, in pieces; see ngx_http_urlstore_out.c */

typedef struct {
    ngx_pool_t                     *pool;
    ngx_chain_t                    *chain;
    ngx_chain_t                    *last;
    u_char                         *pos;      /* free room of the last piece */
    u_char                         *end;
    size_t                          size;     /* of the pieces before */
    size_t                          enough;   /* bytes of a slice, at least */

    ngx_chain_t                    *busy;     /* on their way to the client */
    ngx_chain_t                    *free;
    ngx_queue_t                    *pieces;   /* that are the request's */
} ngx_http_urlstore_out_t;


/* see ngx_http_urlstore_stream() */

typedef ngx_int_t (*ngx_http_urlstore_produce_pt)(ngx_http_request_t *r,
    ngx_http_urlstore_out_t *out);


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

/* of what is not cacheable */
ngx_int_t ngx_http_urlstore_no_store(ngx_http_request_t *r);

ngx_int_t ngx_http_urlstore_etag(ngx_http_request_t *r, ngx_str_t *value);

/* nothing was done: a router may ask another node */
ngx_int_t ngx_http_urlstore_untouched(ngx_http_request_t *r);

/* Cache-Control of an answer that is safe on disk and stays, or is not yet */
ngx_int_t ngx_http_urlstore_cache_control(ngx_http_request_t *r,
    ngx_uint_t stays);

/* the type: of a format; of that which Accept prefers, or preset */
void ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx, us_format_t format);
void ngx_http_urlstore_accept(ngx_http_request_t *r, us_format_t preset);

/* of a problem that passes */
ngx_int_t ngx_http_urlstore_retry_after(ngx_http_request_t *r,
    uint64_t seconds);

/*
 * For the handler of an event: ends the request with its result.  NGX_DONE: it
 * goes on, with the count that was raised for that.
 */
void ngx_http_urlstore_finalize(ngx_http_request_t *r, ngx_int_t rc);

/* ngx_http_urlstore_stream.c */

/*
 * Sends what a producer writes to ctx->out, slice by slice, as the client
 * takes it.  A producer returns after some 100 us, or when the output has
 * enough; what it has written depends on ctx->lsn and the members beside it.
 * NGX_AGAIN: there is more to come, NGX_OK: that was all, NGX_ERROR: no
 * memory, NGX_DECLINED: there is more to come, but not now.
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

/* the status line of a status that nginx has no words for */
void ngx_http_urlstore_problem_line(ngx_http_request_t *r, ngx_uint_t status);

/* remembers what was wrong with the body, as ctx->fault; returns status */
ngx_int_t ngx_http_urlstore_fault(ngx_http_request_t *r, ngx_uint_t status,
    const char *fmt, ...);
ngx_int_t ngx_http_urlstore_problem_init(ngx_conf_t *cf);

/*
 * Of a single URL: 422 with the reason; 507 if there is no refusal, because
 * the zone is full.  ref may be NULL; steps, too, or a text (u_char) with more
 * members and a comma before each.
 */
ngx_int_t ngx_http_urlstore_refused(ngx_http_request_t *r,
    us_refusal_t *refusal, ngx_str_t *ref, ngx_array_t *steps);


#endif /* _NGX_HTTP_URLSTORE_REPLY_H_INCLUDED_ */
