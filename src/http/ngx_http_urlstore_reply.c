/*
 * A request's context and headers, and the writer of its reply.
 *
 * The format is chosen by accept(): the best one that the header Accept names
 * (us_media_accept() in api/us_request.c), or else what the endpoint presets.
 * A batch presets that of its body (us_media_reply()), JSON for a query.
 *
 * When a reply may be sent is in ngx_http_urlstore_wait.c: all that depends on
 * the store passes ngx_http_urlstore_reply_when().
 *
 * A reply holds one slice: the next one is produced when nothing of the last
 * is left in our pieces.  So its memory does not depend on its length, nor on
 * how slow its client is.  A producer that has nothing for now is called again
 * after NGX_HTTP_URLSTORE_IDLE ms, by the timer of the write event.
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
 *     It is NGX_OK here: whether a reply is done is in ctx->more alone, and
 *     then the request is finalized once, and nginx writes what is buffered.
 *     Not so of a write: nginx would end the request of a client that has
 *     closed its half of the connection, so it waits for the client here.
 */


#include "ngx_http_urlstore_cluster.h"


#define NGX_HTTP_URLSTORE_IDLE   20


static ngx_int_t ngx_http_urlstore_reply_wait(ngx_http_urlstore_ctx_t *ctx);


/* the request's, which begins here; NULL: no memory */

ngx_http_urlstore_ctx_t *
ngx_http_urlstore_ctx(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx) {
        return ctx;
    }

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ctx->r = r;
    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);
    ctx->zone = ctx->conf->zone;
    ctx->status = NGX_HTTP_OK;
    ctx->id = US_STORE_NO_ID;

    ngx_http_set_ctx(r, ctx, ngx_http_urlstore_module);

    return ctx;
}


/* the first header of this name, in lower case; NULL: there is none */

ngx_str_t *
ngx_http_urlstore_header_in(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == len
                && ngx_strncmp(h[i].lowcase_key, name, len) == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}


/* whether urlstore_allow_origin names it */

ngx_uint_t
ngx_http_urlstore_origin_allowed(ngx_http_urlstore_ctx_t *ctx,
    ngx_str_t *origin)
{
    ngx_str_t    *allowed;
    ngx_uint_t    i;
    ngx_array_t  *origins;

    origins = ctx->conf->origins;

    if (origins == NULL) {
        return 0;
    }

    allowed = origins->elts;

    for (i = 0; i < origins->nelts; i++) {
        if (us_origin_matches(ngx_http_urlstore_str(&allowed[i]),
                              ngx_http_urlstore_str(origin)))
        {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_urlstore_tag(ngx_http_urlstore_zone_t *zone, us_map_tag_t *tag)
{
    const us_store_map_t  *map;

    map = us_store_map(zone->store);

    ngx_memcpy(tag->cluster, map->cluster, 16);
    ngx_memcpy(tag->digest, map->digest, 16);
    tag->shard = zone->conf.shard;
    tag->version = map->version;
}


/* a reply that is there as a whole */

ngx_int_t
ngx_http_urlstore_send_text(ngx_http_urlstore_ctx_t *ctx, us_str_t text)
{
    /* a byte more, as out_init() of 0 makes no piece */

    if (ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, text.len + 1)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = ngx_cpymem(ctx->out.pos, text.data, text.len);

    return ngx_http_urlstore_send(ctx);
}


ngx_int_t
ngx_http_urlstore_reply_header(ngx_http_urlstore_ctx_t *ctx, off_t length)
{
    ngx_int_t            rc;
    ngx_str_t           *origin;
    ngx_uint_t           varies;
    us_map_tag_t         tag;
    ngx_http_request_t  *r;
    u_char               text[US_MAP_TAG_LEN];

    r = ctx->r;
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

    if (!ctx->cacheable) {
        ngx_http_urlstore_no_store(ctx);
    }

    /*
     * What the reply depends on, in one line, since a cache of nginx before
     * 1.23 knows only the last one; and whether the page that asked may read it
     */

    varies = (ctx->conf->origins != NULL);

    if (ctx->cacheable || varies) {
        ngx_http_urlstore_header_text(ctx, "Vary",
                                      !varies ? "Accept"
                                      : ctx->cacheable ? "Accept, Origin"
                                      : "Origin");
    }

    origin = varies ? ngx_http_urlstore_header_in(r, "origin") : NULL;

    if (origin && ngx_http_urlstore_origin_allowed(ctx, origin)) {
        ngx_http_urlstore_header(ctx, "Access-Control-Allow-Origin", origin);
        ngx_http_urlstore_header_text(ctx, "Access-Control-Expose-Headers",
                                      "ETag, Idempotency-Status, Location, "
                                      "Retry-After");
    }

    if (ctx->tagged && us_store_map(ctx->zone->store)->number) {
        ngx_http_urlstore_tag(ctx->zone, &tag);
        ngx_http_urlstore_header_printf(ctx, "Urlstore-Map", sizeof(text),
                                        "%*s", (size_t)
                                        (us_map_tag_put(text, &tag) - text),
                                        text);
    }

    if (ctx->repeats && ctx->status < NGX_HTTP_BAD_REQUEST) {
        ngx_http_urlstore_header_text(ctx, "Idempotency-Status", "repeated");
    }

    if (ctx->no_memory) {
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


/*
 * A write is done: a client that has closed its half of the connection waits
 * for the reply.  A stream of HTTP/2 has no such half.
 */

static ngx_uint_t
ngx_http_urlstore_reply_half(ngx_http_urlstore_ctx_t *ctx)
{
    return ctx->writes && ctx->r == ctx->r->main
           && ctx->r->http_version < NGX_HTTP_VERSION_20;
}


/*
 * Whether nothing of this reply is left to wait for: our pieces, or after the
 * last of them what nginx has buffered for a half-closed client, as gzip's.
 */

static ngx_uint_t
ngx_http_urlstore_reply_sent(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_request_t *r;

    r = ctx->r;

    if (ctx->more) {
        return ngx_http_urlstore_out_sent(&ctx->out);
    }

    return !ngx_http_urlstore_reply_half(ctx)
           || !(r->buffered || r->connection->buffered);
}


static void
ngx_http_urlstore_reply_writer(ngx_http_request_t *r)
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
               || !ngx_http_urlstore_reply_sent(ctx))
    {
        rc = ngx_http_urlstore_reply_wait(ctx);

    } else {

        /* the timer was ours; production and the disk take their own time */

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

        rc = ctx->more ? ctx->more(ctx) : NGX_OK;
    }

    ngx_http_urlstore_finalize(r, rc);
}


/*
 * waits for the client, for limit_rate, for its place in a page; or for a turn
 * only
 */

static ngx_int_t
ngx_http_urlstore_reply_wait(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->r;

    c = r->connection;
    wev = c->write;

    /*
     * What is left of a body is discarded meanwhile.  r->discard_body does not
     * say so in freenginx, where it is also set when nothing is left.
     */

    if (r->read_event_handler != ngx_http_discarded_request_body_handler) {
        r->read_event_handler = ngx_http_urlstore_reply_half(ctx)
                                ? ngx_http_block_reading
                                : ngx_http_test_reading;
    }

    r->write_event_handler = ngx_http_urlstore_reply_writer;

    /* the caller ends with NGX_DONE */
    r->main->count++;

    if (r != c->data) {
        return NGX_DONE;
    }

    clcf = ngx_http_get_module_loc_conf(r->main, ngx_http_core_module);

    if (!wev->delayed) {
        if (!ngx_http_urlstore_reply_sent(ctx)) {
            ctx->idle = 0;
        }

        ngx_add_timer(wev, ctx->idle ? NGX_HTTP_URLSTORE_IDLE
                                     : clcf->send_timeout);

        if (ctx->idle) {
            return NGX_DONE;
        }

        if (ngx_http_urlstore_reply_sent(ctx)) {
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


/* the first slice has the header, and perhaps all there is */

ngx_int_t
ngx_http_urlstore_send(ngx_http_urlstore_ctx_t *ctx)
{
    off_t                length;
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *out, *cl;
    ngx_http_request_t  *r;

    r = ctx->r;

    if (!r->header_sent) {
        length = ctx->more ? -1 : (off_t) ngx_http_urlstore_out_size(&ctx->out);
        rc = ngx_http_urlstore_reply_header(ctx, length);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return rc;
        }
    }

    out = ngx_http_urlstore_out_take(&ctx->out, !ctx->more);

    if (out) {
        for (cl = out; cl->next; cl = cl->next) { /* void */ }

        b = cl->buf;
        b->flush = (ctx->more != NULL);
        b->last_buf = (!ctx->more && r == r->main);
        b->last_in_chain = !ctx->more;

        rc = ngx_http_output_filter(r, out);

        (void) ngx_http_urlstore_out_sent(&ctx->out);

    } else {
        rc = ctx->more ? NGX_OK : NGX_ERROR;
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    return !ctx->more && ngx_http_urlstore_reply_sent(ctx)
           ? NGX_OK : ngx_http_urlstore_reply_wait(ctx);
}


/*
 * The next answer may be another one: without Cache-Control a cache may keep a
 * 200, 404, 410 or 414 as long as it likes (RFC 9111, 4.2.2).
 */

void
ngx_http_urlstore_no_store(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_header_text(ctx, "Cache-Control", "no-store");
}


/*
 * If access may have been granted to this client alone, a cache that clients
 * share must not answer others.
 */

void
ngx_http_urlstore_cache_control(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t stays)
{
    ngx_uint_t           alone;
    ngx_http_request_t  *r;

    r = ctx->r;
    ctx->cacheable = 1;

    if (!stays) {
        ngx_http_urlstore_header_text(ctx, "Cache-Control", "no-cache");
        return;
    }

    alone = r->headers_in.authorization != NULL
            || ngx_http_urlstore_header_in(r, "cookie") != NULL;

    ngx_http_urlstore_header_printf(ctx, "Cache-Control", 32 + NGX_TIME_T_LEN,
                                    "%s, max-age=%T", alone ? "private"
                                                            : "public",
                                    ctx->conf->max_age);
}


ngx_table_elt_t *
ngx_http_urlstore_header(ngx_http_urlstore_ctx_t *ctx, const char *key,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&ctx->r->headers_out.headers);
    if (h == NULL) {
        ctx->no_memory = 1;
        return NULL;
    }

#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return h;
}


void
ngx_http_urlstore_etag(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *value)
{
    /* the not modified filter takes it from there */

    ctx->r->headers_out.etag = ngx_http_urlstore_header(ctx, "ETag", value);
}


void
ngx_http_urlstore_untouched(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_http_urlstore_header_text(ctx, "Urlstore-Refused", "1");
}


void
ngx_http_urlstore_header_text(ngx_http_urlstore_ctx_t *ctx, const char *key,
    const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = ngx_strlen(text);

    ngx_http_urlstore_header(ctx, key, &value);
}


void
ngx_http_urlstore_header_printf(ngx_http_urlstore_ctx_t *ctx, const char *key,
    size_t max, const char *fmt, ...)
{
    va_list    args;
    ngx_str_t  value;

    value.data = ngx_pnalloc(ctx->r->pool, max);
    if (value.data == NULL) {
        ctx->no_memory = 1;
        return;
    }

    va_start(args, fmt);
    value.len = ngx_vslprintf(value.data, value.data + max, fmt, args)
                - value.data;
    va_end(args);

    ngx_http_urlstore_header(ctx, key, &value);
}


void
ngx_http_urlstore_retry_after(ngx_http_urlstore_ctx_t *ctx, uint64_t seconds)
{
    ngx_http_urlstore_header_printf(ctx, "Retry-After", NGX_INT64_LEN, "%uL",
                                    seconds);
}


void
ngx_http_urlstore_type(ngx_http_urlstore_ctx_t *ctx, us_format_t format)
{
    us_str_t  type;

    ctx->format = format;

    type = us_media_type(format);

    ctx->type.data = (u_char *) type.data;
    ctx->type.len = type.len;
}


void
ngx_http_urlstore_accept(ngx_http_urlstore_ctx_t *ctx, us_format_t preset)
{
    ngx_str_t  *value;

    value = ngx_http_urlstore_header_in(ctx->r, "accept");

    ngx_http_urlstore_type(ctx, value ? us_media_accept(
                                            ngx_http_urlstore_str(value),
                                            preset)
                                      : preset);
}


ngx_int_t
ngx_http_urlstore_reply_begin(ngx_http_urlstore_ctx_t *ctx, us_format_t preset,
    size_t n)
{
    ngx_http_urlstore_accept(ctx, preset);

    return ngx_http_urlstore_out_init(&ctx->out, ctx->r->pool, n);
}
