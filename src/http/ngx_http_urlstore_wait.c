/*
 * Requests that wait.
 *
 *     reply_when()    until ctx->lsn is written; durable, under sync=always
 *     room_when()     until the journal's ring has room again
 *     turn_when()     until the event loop has been round once
 *     stream()        until the client has taken a slice of a long reply
 *
 * Requests that wait for the disk, or for a turn, are in a queue of their zone
 * and worker.  The end of a job of this worker wakes them.  The jobs of other
 * workers do not: a timer of a millisecond looks at the watermarks in shared
 * memory, and runs only while a request waits.  For a turn, the event of that
 * timer is posted.
 *
 * While the disk refuses, or a call to it has not returned for US_LIFE_HUNG ms
 * (us_life_refuses()), requests that wait are answered 503 at once.  A read
 * waits a second at most, a write ten.
 *
 * A read need not wait if all ids that it reports are promised (us_life.h).  If
 * it reported an id that is not, the id could get lost and be given to another
 * URL in the same epoch, and the client would mistake one for the other.
 *
 * A long batch, an export: a producer writes the reply slice by slice.
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
 */


#include "ngx_http_urlstore_request.h"


#define NGX_HTTP_URLSTORE_READ_WAIT   1000    /* ms */
#define NGX_HTTP_URLSTORE_WRITE_WAIT  (2 * US_LIFE_HUNG)

/* one turn of the event loop produces for so long, us; calls between clocks */
#define NGX_HTTP_URLSTORE_TURN   1000
#define NGX_HTTP_URLSTORE_CALLS  8


/* a request has one, from the first time that it waits */

struct ngx_http_urlstore_parked_s {
    ngx_queue_t                     queue;
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_handler_pt    handler;
    uint64_t                        lsn;
    uint64_t                        since;    /* us */
    unsigned                        room:1;
    unsigned                        turn:1;
    unsigned                        linked:1;
};


static void
ngx_http_urlstore_park_cleanup(void *data)
{
    ngx_http_urlstore_parked_t *w = data;

    if (w->linked) {
        ngx_queue_remove(&w->queue);
        w->linked = 0;
    }
}


/*
 * In the queue: NGX_DONE, and the request's count is up; else the request's end
 */

static ngx_int_t
ngx_http_urlstore_park_add(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_http_cleanup_t          *cln;
    ngx_http_request_t          *r;
    ngx_http_urlstore_zone_t    *zone;
    ngx_http_urlstore_parked_t  *w;

    r = ctx->r;
    zone = ctx->zone;
    w = ctx->parked;

    if (w == NULL) {
        cln = ngx_http_cleanup_add(r, sizeof(ngx_http_urlstore_parked_t));
        if (cln == NULL) {
            return r->header_sent ? NGX_ERROR
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        w = cln->data;
        cln->handler = ngx_http_urlstore_park_cleanup;

        w->ctx = ctx;
        ctx->parked = w;
    }

    w->handler = handler;
    w->since = ngx_http_urlstore_now();
    w->room = 0;
    w->turn = 0;

    ngx_queue_insert_tail(&zone->parked, &w->queue);
    w->linked = 1;

    if (!zone->wake.timer_set) {
        ngx_add_timer(&zone->wake, 1);
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_urlstore_park_resume(ngx_http_urlstore_parked_t *w,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    ngx_queue_remove(&w->queue);
    w->linked = 0;

    r = w->ctx->r;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_finalize_request(r, handler(w->ctx));
    ngx_http_run_posted_requests(c);
}


static ngx_int_t
ngx_http_urlstore_park_refuse(ngx_http_urlstore_ctx_t *ctx)
{
    u_char  extra[64];

    if (ctx->r->header_sent) {

        /* in the middle of a long reply: the client must see that it is cut */

        return NGX_ERROR;
    }

    ngx_http_clean_header(ctx->r);

    /* nor do the variables say what is not answered */

    ctx->id = US_STORE_NO_ID;
    ctx->answer = US_ANSWER_NONE;
    ngx_str_null(&ctx->url);

    /*
     * What the disk does not have yet is in the store, and stays there.  Of a
     * store that began anew, nobody knows.
     */

    ngx_sprintf(extra, "\"processed\":%ui%Z", ctx->processed);

    return ngx_http_urlstore_unready(ctx, ctx->wrote ? (char *) extra : NULL);
}


/* NGX_OK: it may go on; NGX_DECLINED: it will not; NGX_AGAIN: it waits */

static ngx_int_t
ngx_http_urlstore_park_due(ngx_http_urlstore_parked_t *w)
{
    uint64_t                  lsn, ms;
    us_life_t                *l;
    us_store_t               *store;
    ngx_http_urlstore_ctx_t  *ctx;

    if (w->turn) {
        return NGX_OK;
    }

    ctx = w->ctx;
    l = &ctx->zone->life;
    store = ctx->zone->store;

    /* a worker that stood still may find the store of a later term */

    if (us_life_state(l) != US_LIFE_READY || ngx_http_urlstore_overtaken(ctx))
    {
        return NGX_DECLINED;
    }

    lsn = w->room ? us_store_written(store) : us_life_lsn(l);

    if (lsn >= w->lsn) {
        return NGX_OK;
    }

    /* the writer was done before: perhaps no other event wakes this request */

    if (w->room && lsn == us_store_published(store)) {
        return NGX_OK;
    }

    ms = (ngx_http_urlstore_now() - w->since) / 1000;

    if (l->ending || us_life_refuses(l, NULL)
        || ms > (ctx->writes ? NGX_HTTP_URLSTORE_WRITE_WAIT
                             : NGX_HTTP_URLSTORE_READ_WAIT))
    {
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


/* whether requests are left that wait for the disk */

static ngx_uint_t
ngx_http_urlstore_park_look(ngx_http_urlstore_zone_t *zone)
{
    ngx_int_t                    rc;
    ngx_uint_t                   left;
    ngx_queue_t                 *q, all, rest;
    ngx_http_urlstore_parked_t  *w;

    /* an answer may end other requests, and park new ones, after these */

    ngx_queue_init(&all);
    ngx_queue_add(&all, &zone->parked);
    ngx_queue_init(&zone->parked);
    ngx_queue_init(&rest);

    while (!ngx_queue_empty(&all)) {
        q = ngx_queue_head(&all);
        w = ngx_queue_data(q, ngx_http_urlstore_parked_t, queue);

        rc = ngx_http_urlstore_park_due(w);

        if (rc == NGX_AGAIN) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&rest, q);
            continue;
        }

        /* a request that waits for room checks by itself if there is any */

        ngx_http_urlstore_park_resume(w, w->room || rc == NGX_OK
                                         ? w->handler
                                         : ngx_http_urlstore_park_refuse);
    }

    left = !ngx_queue_empty(&rest);

    ngx_queue_add(&rest, &zone->parked);
    ngx_queue_init(&zone->parked);
    ngx_queue_add(&zone->parked, &rest);

    return left;
}


void
ngx_http_urlstore_park_wake(void *data)
{
    (void) ngx_http_urlstore_park_look(data);
}


static void
ngx_http_urlstore_park_timer(ngx_event_t *ev)
{
    ngx_http_urlstore_zone_t *zone = ev->data;

    if (ngx_http_urlstore_park_look(zone)) {

        /* the writer may have finished just now, or been killed */

        us_life_write(&zone->life);
    }

    if (!ngx_queue_empty(&zone->parked)) {
        ngx_add_timer(&zone->wake, 1);
    }
}


void
ngx_http_urlstore_park_init(ngx_http_urlstore_zone_t *zone)
{
    ngx_queue_init(&zone->parked);

    zone->wake.handler = ngx_http_urlstore_park_timer;
    zone->wake.data = zone;
    zone->wake.log = ngx_cycle->log;
}


ngx_int_t
ngx_http_urlstore_reply_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    /*
     * the request did not find a URL, but the data have changed since it began
     */

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_park_refuse(ctx);
    }

    if (ctx->writes ? us_life_lsn(&ctx->zone->life) >= ctx->lsn
                    : ngx_http_urlstore_promised(ctx))
    {
        return handler(ctx);
    }

    rc = ngx_http_urlstore_park_add(ctx, handler);

    if (rc != NGX_DONE) {
        return rc;
    }

    ctx->parked->lsn = ctx->lsn;

    /*
     * The work is done.  A client that has closed its half of the connection
     * waits for the reply.
     */

    r = ctx->r;

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    us_life_write(&ctx->zone->life);

    return NGX_DONE;
}


ngx_int_t
ngx_http_urlstore_room_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_int_t                  rc;
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;
    rc = ngx_http_urlstore_park_add(ctx, handler);

    if (rc == NGX_DONE) {
        ctx->parked->lsn = us_store_written(zone->store) + 1;
        ctx->parked->room = 1;

        us_life_write(&zone->life);
    }

    return rc;
}


ngx_int_t
ngx_http_urlstore_again(ngx_http_urlstore_ctx_t *ctx, ngx_int_t rc,
    ngx_http_urlstore_handler_pt handler)
{
    if (rc != NGX_BUSY) {
        return ngx_http_urlstore_faulty(ctx, rc, NULL);
    }

    return us_life_writable(&ctx->zone->life, NULL)
           ? ngx_http_urlstore_room_when(ctx, handler)
           : ngx_http_urlstore_unready(ctx, NULL);
}


ngx_int_t
ngx_http_urlstore_changed(ngx_http_urlstore_ctx_t *ctx,
    us_store_status_t status, ngx_http_urlstore_handler_pt handler)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_stored(ctx, status);

    if (rc != NGX_OK) {
        return ngx_http_urlstore_again(ctx, rc, handler);
    }

    if (status != US_OK) {
        return NGX_DECLINED;
    }

    ctx->wrote = 1;
    ctx->processed = 1;
    ctx->status = NGX_HTTP_NO_CONTENT;

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_deny(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler)
{
    /* a change that is under way may be lost yet */

    ctx->lsn = us_store_published(ctx->zone->store);
    ctx->negative = 1;

    return ngx_http_urlstore_reply_when(ctx, handler);
}


/*
 * A posted event alone would not keep a worker that shuts down: the timer does.
 */

ngx_int_t
ngx_http_urlstore_turn_when(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_int_t  rc;

    rc = ngx_http_urlstore_park_add(ctx, handler);

    if (rc == NGX_DONE) {
        ctx->parked->turn = 1;
        ngx_post_event(&ctx->zone->wake, &ngx_posted_next_events);
    }

    return rc;
}


/*
 * Produces what one turn may, and goes on with it.  Like all that follow here,
 * it returns NGX_DONE if the reply goes on later, or the request's end.
 */

static ngx_int_t
ngx_http_urlstore_stream_turn(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t    start;
    ngx_int_t   rc;
    ngx_uint_t  n;

    start = ngx_http_urlstore_now();
    n = 0;

    do {
        rc = ctx->produce(ctx, &ctx->out);

    } while (rc == NGX_AGAIN && !ngx_http_urlstore_out_enough(&ctx->out)
             && (++n % NGX_HTTP_URLSTORE_CALLS
                 || ngx_http_urlstore_now() - start < NGX_HTTP_URLSTORE_TURN));

    if (rc == NGX_HTTP_NOT_FOUND) {
        return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_set_none);
    }

    if (rc == NGX_ERROR) {
        return ctx->r->header_sent ? NGX_ERROR : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->more = rc == NGX_OK ? NULL : ngx_http_urlstore_stream_turn;
    ctx->idle = (rc == NGX_DECLINED);

    return ngx_http_urlstore_reply_when(ctx, ngx_http_urlstore_send);
}


ngx_int_t
ngx_http_urlstore_stream(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_produce_pt produce)
{
    ngx_http_request_t  *r;

    r = ctx->r;

    ctx->produce = produce;

    /* nobody sees the body of a background subrequest, as of mirror */

    if (r->method == NGX_HTTP_HEAD || r->header_only || r->background) {
        return ngx_http_urlstore_reply_header(ctx, -1);
    }

    return ngx_http_urlstore_stream_turn(ctx);
}
