
/*
 * Replies that a producer writes slice by slice: a long batch, an export.
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
 * A producer that has nothing for now (NGX_DECLINED) is called again after
 * NGX_HTTP_URLSTORE_IDLE ms; the timer of the write event is used for that.
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
 */


#include "ngx_http_urlstore_request.h"


/* one turn of the event loop produces for so long, us */
#define NGX_HTTP_URLSTORE_TURN   1000

/* ms until a producer that has nothing for now is called again */
#define NGX_HTTP_URLSTORE_IDLE   20


static ngx_int_t ngx_http_urlstore_stream_turn(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_stream_wait(ngx_http_request_t *r);


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

    if (wev->timedout && ctx->idle) {
        wev->timedout = 0;
    }

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

    ngx_http_urlstore_finalize(r, rc);
}


/*
 * waits for the client, for limit_rate, for its place in a page; or for a turn
 * only
 */

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

    /*
     * What is left of a body is discarded meanwhile.  r->discard_body does not
     * say so in freenginx, where it is also set when nothing is left.
     */

    if (r->read_event_handler != ngx_http_discarded_request_body_handler) {
        r->read_event_handler = ngx_http_test_reading;
    }

    r->write_event_handler = ngx_http_urlstore_stream_writer;

    /* the caller ends with NGX_DONE */
    r->main->count++;

    if (r != c->data) {
        return NGX_DONE;
    }

    clcf = ngx_http_get_module_loc_conf(r->main, ngx_http_core_module);

    if (!wev->delayed) {
        if (!ngx_http_urlstore_out_sent(&ctx->out)) {
            ctx->idle = 0;
        }

        ngx_add_timer(wev, ctx->idle ? NGX_HTTP_URLSTORE_IDLE
                                     : clcf->send_timeout);

        if (ctx->idle) {
            return NGX_DONE;
        }

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
    ctx->idle = (rc == NGX_DECLINED);

    return ngx_http_urlstore_reply_when(r, ngx_http_urlstore_stream_slice);
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
