
/*
 * The writer of replies.  There are two kinds of them, and one way out.
 *
 *     send()      ctx->out has all of it: a few answers, a page
 *     stream()    a producer writes it slice by slice: a batch, an export
 *
 *                      .------------- next turn: others first -------------.
 *                      v                                                   |
 *     stream() --> produce --> reply_when --> output filters --> all is    |
 *                   up to      the slice is    |                 sent -----'
 *                   128 KB     on disk         v
 *                   or 1 ms                 the client is slower, or
 *                      ^                    limit_rate delays: wait
 *                      |                       |
 *                      '--- all is sent -------'   write event, send_timeout
 *
 * A reply holds one slice: the next one is produced when nothing of the last
 * is left in our pieces.  So its memory does not depend on its length, nor on
 * how slow its client is.
 *
 * The rules are those of ngx_http_writer() and of the upstream's non-buffered
 * path:
 *
 *   - While wev->delayed is set, limit_rate owns the write event's timer.
 *     Nothing is written, and that timer is neither set nor deleted.
 *   - A request that is not c->data (a subrequest that waits for its turn in
 *     the page) has no write event.  It produces nothing until the postpone
 *     filter posts it.
 *   - Whenever a request is left that is not done, its write event has a timer,
 *     or it is parked (which has one).  A worker that shuts down gracefully
 *     stays until the last of them is gone; a posted event alone is cut off.
 *   - NGX_AGAIN of an output filter means "buffered", also for the last slice.
 *     It is NGX_OK here: whether a reply is done is in ctx->produced alone, and
 *     then the request is finalized once, and nginx writes what is buffered.
 *
 * When a reply may be sent is in ngx_http_urlstore_park.c: all that depends on
 * the store passes ngx_http_urlstore_reply_when().
 */


#include "ngx_http_urlstore.h"


/* one turn of the event loop produces for so long, us */
#define NGX_HTTP_URLSTORE_TURN   1000


static ngx_int_t ngx_http_urlstore_reply_header(ngx_http_request_t *r,
    off_t length);
static ngx_int_t ngx_http_urlstore_reply_output(ngx_http_request_t *r,
    ngx_uint_t last);
static ngx_int_t ngx_http_urlstore_stream_turn(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_stream_slice(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_stream_wait(ngx_http_request_t *r);
static void ngx_http_urlstore_stream_writer(ngx_http_request_t *r);


ngx_int_t
ngx_http_urlstore_send(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_urlstore_reply_header(r,
                                     ngx_http_urlstore_out_size(&ctx->out));

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    return ngx_http_urlstore_reply_output(r, 1);
}


/* length is -1 if it is not known */

static ngx_int_t
ngx_http_urlstore_reply_header(ngx_http_request_t *r, off_t length)
{
    ngx_int_t                 rc;
    ngx_str_t                 value;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->replied = 1;

    if (r->reading_body) {

        /* a fault before its end: nginx lingers, and closes */

        r->keepalive = 0;
    }

    r->headers_out.status = ctx->status;
    r->headers_out.content_type = ctx->type;
    r->headers_out.content_type_len = ctx->type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.content_length_n = length;

    /*
     * The next answer to a GET may be another one: without Cache-Control a
     * cache may keep a 200, 404 or 410 as long as it likes (RFC 9111, 4.2.2).
     */

    if (!ctx->cacheable && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        ngx_str_set(&value, "no-store");

        if (ngx_http_urlstore_header(r, "Cache-Control", &value) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ngx_http_urlstore_origin_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ctx->status == NGX_HTTP_NO_CONTENT) {
        ngx_str_null(&r->headers_out.content_type);
        r->headers_out.content_type_len = 0;
        r->headers_out.content_length_n = -1;
        r->header_only = 1;
    }

    rc = ngx_http_send_header(r);

    return rc == NGX_AGAIN ? NGX_OK : rc;
}


/* hands over what is in ctx->out; last: this is the end of the reply */

static ngx_int_t
ngx_http_urlstore_reply_output(ngx_http_request_t *r, ngx_uint_t last)
{
    ngx_int_t                 rc;
    ngx_buf_t                *b;
    ngx_chain_t              *out, *cl;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    out = ngx_http_urlstore_out_take(&ctx->out, last);

    if (out == NULL) {
        return last ? NGX_ERROR : NGX_OK;
    }

    for (cl = out; cl->next; cl = cl->next) { /* void */ }

    b = cl->buf;
    b->flush = !last;
    b->last_buf = (last && r == r->main);
    b->last_in_chain = last;

    rc = ngx_http_output_filter(r, out);

    (void) ngx_http_urlstore_out_sent(&ctx->out);

    return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


ngx_int_t
ngx_http_urlstore_stream(ngx_http_request_t *r,
    ngx_http_urlstore_produce_pt produce)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->produce = produce;

    /* nobody sees the body of a background subrequest, as of mirror */

    if (r->method == NGX_HTTP_HEAD || r->header_only || r->background) {
        return ngx_http_urlstore_reply_header(r, -1);
    }

    return ngx_http_urlstore_stream_turn(r);
}


/*
 * Produces what one turn may, and goes on with it.  Like all that follow here,
 * it returns NGX_DONE if the reply goes on later, or the request's end.
 */

static ngx_int_t
ngx_http_urlstore_stream_turn(ngx_http_request_t *r)
{
    uint64_t                  start;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    start = ngx_http_urlstore_now();

    do {
        rc = ctx->produce(r, &ctx->out);

    } while (rc == NGX_AGAIN && !ngx_http_urlstore_out_enough(&ctx->out)
             && ngx_http_urlstore_now() - start < NGX_HTTP_URLSTORE_TURN);

    if (rc == NGX_ERROR) {
        return r->header_sent ? NGX_ERROR : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->produced = (rc == NGX_OK);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_stream_slice);
}


/* sends the slice; the first one has the header, and perhaps all there is */

static ngx_int_t
ngx_http_urlstore_stream_slice(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (!r->header_sent) {
        rc = ngx_http_urlstore_reply_header(r, ctx->produced
                               ? (off_t) ngx_http_urlstore_out_size(&ctx->out)
                               : -1);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return rc;
        }
    }

    rc = ngx_http_urlstore_reply_output(r, ctx->produced);

    if (rc == NGX_ERROR || ctx->produced) {
        return rc;
    }

    return ngx_http_urlstore_stream_wait(r);
}


/* for the client, for limit_rate, for its place in a page; or only a turn */

static ngx_int_t
ngx_http_urlstore_stream_wait(ngx_http_request_t *r)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_core_loc_conf_t  *clcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    c = r->connection;
    wev = c->write;

    r->read_event_handler = r->discard_body
                            ? ngx_http_discarded_request_body_handler
                            : ngx_http_test_reading;
    r->write_event_handler = ngx_http_urlstore_stream_writer;

    /* the caller ends with NGX_DONE */
    r->main->count++;

    if (r != c->data) {
        return NGX_DONE;
    }

    clcf = ngx_http_get_module_loc_conf(r->main, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);

        if (ngx_http_urlstore_out_sent(&ctx->out)) {
            ngx_post_event(wev, &ngx_posted_next_events);
            return NGX_DONE;
        }
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        r->main->count--;
        return NGX_ERROR;
    }

    return NGX_DONE;
}


static void
ngx_http_urlstore_stream_writer(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_event_t              *wev;
    ngx_connection_t         *c;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;

        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    rc = NGX_OK;

    if (r == c->data && !wev->delayed) {
        rc = ngx_http_output_filter(r, NULL);
    }

    if (rc == NGX_ERROR) {
        /* void */

    } else if (r != c->data || wev->delayed
               || !ngx_http_urlstore_out_sent(&ctx->out))
    {
        rc = ngx_http_urlstore_stream_wait(r);

    } else {

        /* the timer was ours; production and the disk take their own time */

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

        rc = ngx_http_urlstore_stream_turn(r);
    }

    if (rc == NGX_DONE) {

        /* ngx_http_finalize_request() would begin to linger */

        r->main->count--;
        return;
    }

    ngx_http_finalize_request(r, rc);
}


/* key is a literal; *value lives as long as the request */

ngx_int_t
ngx_http_urlstore_header(ngx_http_request_t *r, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return NGX_OK;
}


void
ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_format_t format)
{
    ctx->format = format;

    switch (format) {

    case NGX_HTTP_URLSTORE_JSON:
        ngx_str_set(&ctx->type, "application/json");
        break;

    case NGX_HTTP_URLSTORE_NDJSON:
        ngx_str_set(&ctx->type, "application/x-ndjson");
        break;

    default:
        ngx_str_set(&ctx->type, "text/plain");
        break;
    }
}
