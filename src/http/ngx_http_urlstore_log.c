
/*
 * GET /log: the journal of a zone with path=, for replicas; see
 * src/journal/us_stream.h for what is sent, src/journal/us_ship.h for how it is
 * read.
 *
 *     /log              from nothing: the snapshot, then the journal
 *     /log?from=LSN     the journal, from the segment that contains the LSN
 *     /log?at=PLACE     what follows a place that a reader has reached
 *
 * With replica=ID&erased=LSN&keeps=1 a replica makes itself known, and says up
 * to where it has erased what the zone has (src/life/us_known.h).
 *
 * The reply does not end by itself.  While there is nothing new, a beat is sent
 * every second.  It ends when the worker is to exit, or when a file cannot be
 * read: the replica comes again, with the place that it has reached.
 */


#include "ngx_http_urlstore_request.h"
#include "../life/us_known.h"


/* ms: a replica whose connection breaks comes back after 5000 at most */
#define NGX_HTTP_URLSTORE_LOG_KEEP  30000


typedef struct {
    us_ship_t                       ship;
    ngx_http_urlstore_zone_t       *zone;
    us_known_t                      said;         /* by a replica; or id 0 */
    unsigned                        row;          /* of it */
    uint64_t                        paced;        /* bytes */
    unsigned                        locked:1;     /* as the pace knows it */
} ngx_http_urlstore_log_t;


static ngx_int_t
ngx_http_urlstore_log_refuse(ngx_http_urlstore_ctx_t *ctx, us_ship_rc_t rc,
    us_disk_error_t *e)
{
    if (rc == US_SHIP_GONE) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_URLSTORE_GONE, NULL,
                                         "the journal does not go on from "
                                         "there: %s; /log without arguments "
                                         "begins from nothing", e->text);
    }

    ngx_http_urlstore_retry_after(ctx, 1);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "the journal cannot be read: %s",
                                     e->text);
}


/* NGX_DECLINED: *place is where to begin, NULL from nothing; else replied */

static ngx_int_t
ngx_http_urlstore_log_place(ngx_http_urlstore_ctx_t *ctx, us_place_t *at,
    us_place_t **place)
{
    uint64_t         lsn;
    ngx_str_t        value, from;
    us_manifest_t    m;
    us_disk_error_t  e;

    *place = NULL;

    if (ngx_http_urlstore_arg(ctx, "at", &value)) {
        *place = at;

        if (!ngx_http_urlstore_arg(ctx, "from", &from)
            && us_place_parse(at, (char *) value.data, value.len) == 0)
        {
            return NGX_DECLINED;
        }

        return ngx_http_urlstore_bad(ctx, "invalid \"at\": a place that a "
                                     "replica has reached is expected, without "
                                     "\"from\"");
    }

    if (!ngx_http_urlstore_arg(ctx, "from", &value)) {
        return NGX_DECLINED;
    }

    if (us_id_parse(ngx_http_urlstore_str(&value), &lsn) != US_ID_OK) {
        return ngx_http_urlstore_bad(ctx, "invalid \"from\": an LSN is "
                                     "expected, a decimal number");
    }

    if (us_manifest_read(ctx->zone->dir->dirfd, &m, &e) != US_MANIFEST_OK) {
        return ngx_http_urlstore_log_refuse(ctx, US_SHIP_FAILED, &e);
    }

    *place = at;
    us_ship_from(at, &m, lsn);

    return NGX_DECLINED;
}


static void
ngx_http_urlstore_log_known(ngx_http_urlstore_log_t *log, ngx_log_t *l)
{
    int               news;
    us_store_lock_t  *lock;

    log->said.seen = ngx_http_urlstore_now() / 1000;

    lock = &log->zone->life.lock;
    lock->lock(lock->data);
    log->row = us_known_enter_locked(log->zone->life.sh, &log->said, &news);
    lock->unlock(lock->data);

    if (log->row == US_KNOWN) {
        ngx_log_error(NGX_LOG_WARN, l, 0, "urlstore_zone \"%V\": %d other "
                      "replicas are connected: replica %uL counts for "
                      "erasures while it is connected, too",
                      &log->zone->name, US_KNOWN, log->said.id);

    } else if (news) {
        ngx_log_error(NGX_LOG_NOTICE, l, 0, "urlstore_zone \"%V\": replica "
                      "%uL, %s a directory, is known now", &log->zone->name,
                      log->said.id, log->said.keeps ? "with" : "without");
    }
}


/* how long files may be kept is that of all readers; 1: not any longer */

static ngx_uint_t
ngx_http_urlstore_log_pace(ngx_http_urlstore_log_t *log)
{
    ngx_uint_t   over, locked;
    us_pace_t   *pace;

    pace = &log->zone->pace;
    over = 0;

    if (!us_pace(pace, ngx_http_urlstore_now() / 1000,
                 log->ship.sent - log->paced)
        && log->ship.readers != -1)
    {
        us_ship_unlock(&log->ship);
        over = 1;
    }

    log->paced = log->ship.sent;

    locked = (log->ship.readers != -1);
    pace->held += locked - log->locked;
    log->locked = locked;

    return over;
}


static void
ngx_http_urlstore_log_unlock(ngx_event_t *ev)
{
    ngx_http_urlstore_zone_t *zone = ev->data;

    (void) us_pace(&zone->pace, ngx_http_urlstore_now() / 1000, 0);

    (void) close(zone->readers);
    zone->readers_kept = 0;
    zone->pace.held--;
}


static void
ngx_http_urlstore_log_cleanup(void *data)
{
    ngx_http_urlstore_log_t *log = data;

    ngx_event_t               *ev;
    ngx_http_urlstore_zone_t  *zone;

    zone = log->zone;
    ev = &zone->readers_end;

    (void) ngx_http_urlstore_log_pace(log);

    if (log->locked && !zone->readers_kept && !ngx_exiting && !ngx_terminate) {

        /*
         * It was cut before it had all: the files that it goes on with are
         * kept for a while.  One lock does that for all who were cut.
         */

        zone->readers = log->ship.readers;
        zone->readers_kept = 1;
        log->ship.readers = -1;
        log->locked = 0;

        ev->handler = ngx_http_urlstore_log_unlock;
        ev->data = zone;
        ev->log = ngx_cycle->log;
        ev->cancelable = 1;
        ngx_add_timer(ev, ngx_min(NGX_HTTP_URLSTORE_LOG_KEEP,
                                  (ngx_msec_t) zone->pace.left));
    }

    us_ship_end(&log->ship);
    (void) ngx_http_urlstore_log_pace(log);
}


/* one part of the stream */

static ngx_int_t
ngx_http_urlstore_log_produce(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_out_t *out)
{
    size_t                    len, n;
    uint64_t                  now;
    us_beat_t                 beat;
    us_tail_t                 tail;
    ngx_uint_t                level;
    us_ship_rc_t              rc;
    const uint8_t            *p;
    ngx_http_urlstore_log_t  *log;

    log = ctx->data;

    if (ngx_exiting || ngx_terminate
        || us_life_state(&log->zone->life) != US_LIFE_READY)
    {
        return NGX_OK;
    }

    us_life_journal(&log->zone->life, &tail, &beat);
    now = ngx_http_urlstore_now() / 1000;

    if (log->said.id) {
        us_known_beat(log->zone->life.sh, log->row, log->said.id, now);
    }

    if (ngx_http_urlstore_log_pace(log)) {
        ngx_log_error(NGX_LOG_WARN, ctx->r->connection->log, 0,
                      "urlstore_zone \"%V\": replicas are slow, this one has "
                      "taken %uL bytes; files are not kept for them any "
                      "longer", &ctx->zone->name, log->ship.sent);
    }

    rc = us_ship_send(&log->ship, &tail, &beat, now, &p, &len);

    if (rc == US_SHIP_OK) {

        /* over ends of pieces: a larger one would be of the request's pool */

        for ( /* void */ ; len; p += n, len -= n) {

            if (ngx_http_urlstore_out_room(out, 1) != NGX_OK) {
                return NGX_ERROR;
            }

            n = ngx_min((size_t) (out->end - out->pos), len);
            out->pos = ngx_cpymem(out->pos, p, n);
        }

        return NGX_AGAIN;
    }

    if (rc == US_SHIP_WAIT) {
        return NGX_DECLINED;
    }

    level = rc == US_SHIP_GONE ? NGX_LOG_WARN : NGX_LOG_ERR;

    ngx_log_error(level, ctx->r->connection->log, 0,
                  "urlstore_zone \"%V\": its journal cannot be sent on: %s",
                  &ctx->zone->name, log->ship.error.text);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_log_handler(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                  rc;
    us_beat_t                  beat;
    us_tail_t                  tail;
    us_known_t                 said;
    us_place_t                 at, *place;
    us_ship_rc_t               got;
    ngx_http_cleanup_t        *cln;
    ngx_http_request_t        *r;
    ngx_http_urlstore_log_t   *log;
    ngx_http_urlstore_zone_t  *zone;

    r = ctx->r;

    zone = ctx->zone;

    if (zone->life.conf.follow) {
        return ngx_http_urlstore_follow_problem(ctx,
                                                NGX_HTTP_SERVICE_UNAVAILABLE,
                                                NULL, "this zone is a replica, "
                                                "which cannot be followed");
    }

    /* a directory of it is a cache, which may begin anew */

    if (zone->life.conf.replicate) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "the zone has no journal of its own: "
                                         "its \"replicate\" names the log, "
                                         "which other nodes read");
    }

    if (us_life_state(&zone->life) != US_LIFE_READY) {
        return ngx_http_urlstore_unready(ctx, NULL);
    }

    if (zone->life.conf.memory) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_NOT_FOUND, NULL,
                                         "the zone has no journal of its own: "
                                         "its \"urlstore_zone\" has no "
                                         "\"path\"");
    }

    said.id = 0;
    said.erased = 0;

    rc = ngx_http_urlstore_urls_number(ctx, "replica", 0, &said.id);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_urls_number(ctx, "erased", 0, &said.erased);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_log_place(ctx, &at, &place);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    said.keeps = ngx_http_urlstore_flag(r, "keeps");

    ctx->status = NGX_HTTP_OK;
    ngx_str_set(&ctx->type, "application/octet-stream");

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (r->method == NGX_HTTP_HEAD) {

        /* nothing is read, so no file has to be kept */

        return ngx_http_urlstore_reply_header(ctx, -1);
    }

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_urlstore_log_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    log = cln->data;
    ngx_memzero(log, sizeof(ngx_http_urlstore_log_t));
    log->zone = zone;
    log->said = said;

    us_life_journal(&zone->life, &tail, &beat);

    got = us_ship_begin(&log->ship, zone->dir->dirfd, &us_data_ops, place,
                        &tail);

    if (got != US_SHIP_OK) {
        us_ship_end(&log->ship);
        return ngx_http_urlstore_log_refuse(ctx, got, &log->ship.error);
    }

    cln->handler = ngx_http_urlstore_log_cleanup;

    if (said.id) {
        ngx_http_urlstore_log_known(log, r->connection->log);
    }

    (void) ngx_http_urlstore_log_pace(log);

    if (place && zone->readers_kept) {

        /* one that was cut has come back */

        ngx_del_timer(&zone->readers_end);
        ngx_http_urlstore_log_unlock(&zone->readers_end);
    }

    /* a proxy before this server passes on what it gets, at once */

    ngx_http_urlstore_header_text(ctx, "X-Accel-Buffering", "no");

    ctx->data = log;

    return ngx_http_urlstore_stream(ctx, ngx_http_urlstore_log_produce);
}
