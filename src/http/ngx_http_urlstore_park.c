
/*
 * Requests that wait for the disk.
 *
 *     reply_when()    until ctx->lsn is written; durable, under sync=always
 *     room_when()     until the journal's ring has room again
 *
 * They stand in a queue of their worker.  Its own writing wakes them when the
 * thread is done; for another worker's there is a timer of a millisecond that
 * looks at the watermarks in shared memory and runs only while somebody
 * waits.
 *
 * Whoever waits while the disk refuses gets 503 at once.  Reads wait a second
 * at most; they need not if all that they tell is older than what is on its
 * way: a read that told of an id which then gets lost would have its client
 * take another URL for that one, in the same epoch.
 */


#include "ngx_http_urlstore_persist.h"


#define NGX_HTTP_URLSTORE_READ_WAIT  1000     /* ms */


typedef struct {
    ngx_queue_t                     queue;
    ngx_http_request_t             *r;
    ngx_http_urlstore_handler_pt    handler;
    ngx_http_urlstore_persist_t    *persist;
    uint64_t                        lsn;
    uint64_t                        since;
    unsigned                        write:1;
    unsigned                        room:1;
    unsigned                        linked:1;
} ngx_http_urlstore_parked_t;


static ngx_int_t ngx_http_urlstore_park(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler, uint64_t lsn, ngx_uint_t write,
    ngx_uint_t room);
static ngx_int_t ngx_http_urlstore_park_due(ngx_http_urlstore_parked_t *w);
static void ngx_http_urlstore_park_cleanup(void *data);
static void ngx_http_urlstore_park_timer(ngx_event_t *ev);
static ngx_int_t ngx_http_urlstore_park_refuse(ngx_http_request_t *r);


void
ngx_http_urlstore_park_init(ngx_http_urlstore_persist_t *p)
{
    ngx_queue_init(&p->parked);

    p->wake.handler = ngx_http_urlstore_park_timer;
    p->wake.data = p;
    p->wake.log = ngx_cycle->log;
}


/* how far the zone's promise goes now */

static uint64_t
ngx_http_urlstore_promised_lsn(ngx_http_urlstore_persist_t *p)
{
    return (p->sync == NGX_HTTP_URLSTORE_SYNC_ALWAYS)
           ? us_store_durable(p->zone->store)
           : us_store_written(p->zone->store);
}


/* ids that are below are there as far as the zone promises */

uint64_t
ngx_http_urlstore_promised_ids(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    /* who only reads a directory knows nothing else */

    if (p == NULL || p->sh->state != NGX_HTTP_URLSTORE_READY) {
        return us_store_next_id(zone->store);
    }

    return (p->sync == NGX_HTTP_URLSTORE_SYNC_ALWAYS) ? p->sh->durable_ids
                                                      : p->sh->written_ids;
}


/*
 * Whether a read may be told now: because there is nothing that the disk has
 * not; or because the read tells of ids that it has, and of absence only while
 * no delete is under way.  An add under way is no absence: it is found.
 */

ngx_uint_t
ngx_http_urlstore_promised(ngx_http_urlstore_ctx_t *ctx)
{
    uint64_t                         lsn;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = ctx->zone->persist;

    if (p == NULL) {
        return 1;
    }

    sh = p->sh;
    lsn = ngx_http_urlstore_promised_lsn(p);

    return lsn >= ctx->lsn
           || (ctx->tops
               && ctx->top <= ngx_http_urlstore_promised_ids(ctx->zone)
               && (!ctx->absent
                   || (sh->deleting == 0 && sh->deleted_lsn <= lsn)));
}


/*
 * Around a delete: counted first, so that nobody takes its effect for
 * durable.  A worker killed in between leaves the count, and reads then wait
 * for the whole journal.
 */

void
ngx_http_urlstore_deleting(ngx_http_urlstore_zone_t *zone)
{
    if (zone->persist) {
        (void) ngx_atomic_fetch_add(&zone->persist->sh->deleting, 1);
    }
}


void
ngx_http_urlstore_deleted(ngx_http_urlstore_zone_t *zone, uint64_t lsn)
{
    ngx_atomic_uint_t                last;
    ngx_http_urlstore_persist_sh_t  *sh;

    if (zone->persist == NULL) {
        return;
    }

    sh = zone->persist->sh;

    do {
        last = sh->deleted_lsn;
    } while (last < lsn && !ngx_atomic_cmp_set(&sh->deleted_lsn, last, lsn));

    (void) ngx_atomic_fetch_add(&sh->deleting, -1);
}


/* ids that no failure takes back any more are below */

uint64_t
ngx_http_urlstore_durable_ids(ngx_http_urlstore_zone_t *zone)
{
    return zone->persist ? zone->persist->sh->durable_ids : 0;
}


ngx_int_t
ngx_http_urlstore_reply_when(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_persist_t  *p;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    p = ctx->zone->persist;

    if (p == NULL) {
        return handler(r);
    }

    /* what is not known here may be known to the owner, or was before */

    if (ngx_http_urlstore_overtaken(ctx)) {
        return ngx_http_urlstore_park_refuse(r);
    }

    if (ctx->writes ? ngx_http_urlstore_promised_lsn(p) >= ctx->lsn
                    : ngx_http_urlstore_promised(ctx))
    {
        return handler(r);
    }

    return ngx_http_urlstore_park(r, handler, ctx->lsn, ctx->writes, 0);
}


ngx_int_t
ngx_http_urlstore_room_when(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (!ngx_http_urlstore_writable(ctx->zone)) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_park(r, handler,
                                  us_store_written(ctx->zone->store) + 1, 1,
                                  1);
}


static ngx_int_t
ngx_http_urlstore_park(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt handler, uint64_t lsn, ngx_uint_t write,
    ngx_uint_t room)
{
    ngx_http_cleanup_t           *cln;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_parked_t   *w;
    ngx_http_urlstore_persist_t  *p;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    p = ctx->zone->persist;

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_urlstore_parked_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    w = cln->data;
    cln->handler = ngx_http_urlstore_park_cleanup;

    w->r = r;
    w->handler = handler;
    w->persist = p;
    w->lsn = lsn;
    w->since = ngx_http_urlstore_ms();
    w->write = write;
    w->room = room;
    w->linked = 1;

    ngx_queue_insert_tail(&p->parked, &w->queue);

    /* the caller ends with NGX_DONE */
    r->main->count++;

    if (!room) {
        r->read_event_handler = ngx_http_test_reading;
        r->write_event_handler = ngx_http_request_empty_handler;
    }

    ngx_http_urlstore_write(p);

    if (!p->wake.timer_set) {
        ngx_add_timer(&p->wake, 1);
    }

    return NGX_DONE;
}


static void
ngx_http_urlstore_park_cleanup(void *data)
{
    ngx_http_urlstore_parked_t *w = data;

    if (w->linked) {
        ngx_queue_remove(&w->queue);
        w->linked = 0;
    }
}


static void
ngx_http_urlstore_park_timer(ngx_event_t *ev)
{
    ngx_http_urlstore_persist_t *p = ev->data;

    ngx_http_urlstore_park_wake(p);

    if (!ngx_queue_empty(&p->parked)) {

        /* whoever was writing may have been just done, or killed */

        ngx_http_urlstore_write(p);
        ngx_add_timer(&p->wake, 1);
    }
}


/* NGX_OK: it may go on; NGX_DECLINED: it will not; NGX_AGAIN: it waits */

static ngx_int_t
ngx_http_urlstore_park_due(ngx_http_urlstore_parked_t *w)
{
    uint64_t                      lsn;
    ngx_http_urlstore_persist_t  *p;

    p = w->persist;

    lsn = w->room ? us_store_written(p->zone->store)
                  : ngx_http_urlstore_promised_lsn(p);

    if (lsn >= w->lsn) {
        return NGX_OK;
    }

    /* the writer was done before we came: nothing more may come, and wake us */

    if (w->room && lsn == us_store_published(p->zone->store)) {
        return NGX_OK;
    }

    if (p->orphan || p->sh->lost || p->sh->stalled
        || p->sh->state != NGX_HTTP_URLSTORE_READY)
    {
        return NGX_DECLINED;
    }

    if (!w->write && ngx_http_urlstore_ms() - w->since
                     > NGX_HTTP_URLSTORE_READ_WAIT)
    {
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


void
ngx_http_urlstore_park_wake(ngx_http_urlstore_persist_t *p)
{
    ngx_int_t                    rc;
    ngx_queue_t                  *q, *next, due;
    ngx_connection_t             *c;
    ngx_http_request_t           *r;
    ngx_http_urlstore_parked_t   *w;

    /* an answer may end other requests, and park new ones */

    ngx_queue_init(&due);

    for (q = ngx_queue_head(&p->parked);
         q != ngx_queue_sentinel(&p->parked);
         q = next)
    {
        next = ngx_queue_next(q);
        w = ngx_queue_data(q, ngx_http_urlstore_parked_t, queue);

        if (ngx_http_urlstore_park_due(w) != NGX_AGAIN) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&due, q);
        }
    }

    while (!ngx_queue_empty(&due)) {
        q = ngx_queue_head(&due);
        w = ngx_queue_data(q, ngx_http_urlstore_parked_t, queue);

        ngx_queue_remove(q);
        w->linked = 0;

        r = w->r;
        c = r->connection;

        ngx_http_set_log_request(c->log, r);

        if (ngx_http_urlstore_park_due(w) != NGX_OK) {
            rc = w->room ? w->handler(r) : ngx_http_urlstore_park_refuse(r);

        } else {
            rc = w->handler(r);
        }

        ngx_http_finalize_request(r, rc);
        ngx_http_run_posted_requests(c);
    }
}


static ngx_int_t
ngx_http_urlstore_park_refuse(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (r->header_sent) {

        /* in the middle of a long reply: the client must see that it is cut */

        return NGX_ERROR;
    }

    ngx_http_clean_header(r);
    ngx_http_urlstore_answer_forget(ctx);

    return ngx_http_urlstore_unready(r, ctx->zone, NULL);
}
