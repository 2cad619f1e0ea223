
/*
 * A request body on its way in: pieces as they arrive, and the items in them.
 *
 *     socket -> nginx's buffer --.
 *     nginx's temporary file ----+--> piece -> [us_gzip] -> us_input -> items
 *     body read by others  ------'
 *
 * The consumer (`run`) takes items until there are none for now, and is called
 * again when there may be more: when the client has sent more, or at the next
 * turn of the event loop.  A turn ends after 64 KB of input, inflated, or after
 * a millisecond, or when the consumer says so; the body of a fast client, or a
 * bomb, does not hold up the others.
 *
 * Reading is unbuffered where nginx can; a body that nginx or another module
 * has read before comes whole, from memory or from its temporary file, by the
 * same way.
 *
 * Limits count inflated bytes, so a bomb ends at urlstore_max_body like any
 * other body.  More than one gzip member is allowed.
 */


#include "ngx_http_urlstore_request.h"
#include "../input/us_gzip.h"


#define NGX_HTTP_URLSTORE_WINDOW       (16 * 1024)

/* of one turn of the event loop: bytes, us; and items between two clocks */
#define NGX_HTTP_URLSTORE_TURN_BYTES   (64 * 1024)
#define NGX_HTTP_URLSTORE_TURN_TIME    1000
#define NGX_HTTP_URLSTORE_TURN_ITEMS   64


struct ngx_http_urlstore_body_s {
    us_input_t                      input;
    ngx_http_urlstore_handler_pt    run;

    u_char                         *pos;      /* what is to be read next */
    u_char                         *last;

    ngx_chain_t                    *rest;     /* that nginx has read */
    off_t                           offset;   /* in its file */
    u_char                         *file;     /* a window on that */

    us_gzip_t                      *gzip;     /* NULL: it is not packed */

    size_t                          size;     /* inflated, so far */

    /* this turn */
    uint64_t                        start;    /* us */
    size_t                          bytes;
    ngx_uint_t                      items;

    unsigned                        ended:1;
    unsigned                        over:1;   /* the turn is */
};


/* the client has sent something, or left, or did not send for too long */

static void
ngx_http_urlstore_body_event(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ngx_http_urlstore_finalize(r, ngx_http_urlstore_body_run(ctx));
}


static void
ngx_http_urlstore_body_post(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (r->request_body) {
        ctx->body->rest = r->request_body->bufs;
    }

    ngx_http_urlstore_body_event(r);
}


/* what nginx found in reading */

static ngx_int_t
ngx_http_urlstore_body_fault(ngx_http_urlstore_ctx_t *ctx, ngx_int_t rc)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(ctx->r, ngx_http_core_module);

    switch (rc) {

    case NGX_HTTP_BAD_REQUEST:
        return ngx_http_urlstore_fault(ctx, rc, "the body ends too early, or "
                                       "its chunks are malformed");

    case NGX_HTTP_REQUEST_ENTITY_TOO_LARGE:
        return ngx_http_urlstore_fault(ctx, rc, "a body has at most %O bytes "
                                       "(client_max_body_size)",
                                       clcf->client_max_body_size);

    default:
        return rc;
    }
}


static void
ngx_http_urlstore_body_cleanup(void *data)
{
    ngx_http_urlstore_body_t *body = data;

    us_input_free(&body->input);

    if (body->gzip) {
        us_gzip_destroy(body->gzip);
    }
}


ngx_int_t
ngx_http_urlstore_body(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t ids,
    ngx_http_urlstore_handler_pt run)
{
    ngx_int_t                  rc;
    ngx_str_t                 *type, *coding;
    us_input_format_t          format;
    ngx_pool_cleanup_t        *cln;
    ngx_http_request_t        *r;
    ngx_http_urlstore_body_t  *body;

    r = ctx->r;

    if (r->headers_in.content_length_n > (off_t) ctx->conf->max_body) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                         "\"processed\":0",
                                         "a body has at most %uz bytes "
                                         "(urlstore_max_body), this one %O",
                                         ctx->conf->max_body,
                                         r->headers_in.content_length_n);
    }

    if (r->headers_in.content_length_n == -1 && !r->headers_in.chunked
        && r->http_version < NGX_HTTP_VERSION_20)
    {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_LENGTH_REQUIRED, NULL,
                                         "a body needs Content-Length or "
                                         "chunked Transfer-Encoding");
    }

    format = US_INPUT_TEXT;
    type = r->headers_in.content_type ? &r->headers_in.content_type->value
                                      : NULL;

    if (type && type->len
        && us_media_body(ngx_http_urlstore_str(type), &format) != 0)
    {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                         NULL, "unsupported Content-Type "
                                         "\"%*s\"; use text/plain, "
                                         "application/json, "
                                         "application/x-ndjson or "
                                         "application/x-www-form-urlencoded",
                                         ngx_min(type->len, 100), type->data);
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_urlstore_body_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body = cln->data;
    ngx_memzero(body, sizeof(ngx_http_urlstore_body_t));

    /* the reader must distinguish the longest id, or URL, from longer ones */

    us_input_init(&body->input, format, ids == NGX_HTTP_URLSTORE_ONLY_IDS
                                        ? US_URL_MAX : ctx->conf->max_url);

    body->input.ids = (ids != NGX_HTTP_URLSTORE_NO_IDS);
    body->run = run;

    cln->handler = ngx_http_urlstore_body_cleanup;

    ctx->body = body;
    ctx->input = &body->input;

    coding = ngx_http_urlstore_header_in(r, "content-encoding");

    if (coding && (ngx_http_urlstore_is(coding, "gzip")
                   || ngx_http_urlstore_is(coding, "x-gzip")))
    {
        body->gzip = us_gzip_create();

        if (body->gzip == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else if (coding && coding->len
               && !ngx_http_urlstore_is(coding, "identity"))
    {
        ngx_http_urlstore_header_text(ctx, "Accept-Encoding", "gzip");

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                         NULL, "unsupported Content-Encoding "
                                         "\"%*s\"; use gzip or identity",
                                         ngx_min(coding->len, 100),
                                         coding->data);
    }

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_urlstore_body_post);

    if (rc < NGX_HTTP_SPECIAL_RESPONSE) {
        return NGX_DONE;
    }

    /* what came with the header is malformed: the rest cannot be read */

    r->keepalive = 0;
    r->lingering_close = 1;

    rc = ngx_http_urlstore_body_fault(ctx, rc);

    return ngx_http_urlstore_faulty(ctx, rc, "\"processed\":0");
}


void
ngx_http_urlstore_body_slow(ngx_http_urlstore_ctx_t *ctx)
{
    if (ngx_http_urlstore_now() - ctx->body->start
        > NGX_HTTP_URLSTORE_TURN_TIME)
    {
        ctx->body->over = 1;
    }
}


/*
 * A turn.  Returns NGX_DONE if the request goes on later, with its count
 * raised, or the request's end.
 */

ngx_int_t
ngx_http_urlstore_body_run(ngx_http_urlstore_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_request_t        *r;
    ngx_http_urlstore_body_t  *body;

    r = ctx->r;

    body = ctx->body;

    body->start = ngx_http_urlstore_now();
    body->input.work = NGX_HTTP_URLSTORE_TURN_BYTES;
    body->bytes = 0;
    body->items = 0;
    body->over = 0;

    /* before run, which may begin the reply: that has handlers of its own */

    r->read_event_handler = ngx_http_block_reading;

    rc = body->run(ctx);

    if (rc == NGX_AGAIN && !body->over) {

        /* nginx has set the timer for the client */

        r->read_event_handler = ngx_http_urlstore_body_event;
        r->main->count++;

        return NGX_DONE;
    }

    /* the client is not slow while nothing is read from it */

    if (r->reading_body && r->connection->read->timer_set) {
        ngx_del_timer(r->connection->read);
    }

    return rc == NGX_AGAIN
           ? ngx_http_urlstore_turn_when(ctx, ngx_http_urlstore_body_run) : rc;
}


/*
 * What nginx has read, as body->pos and body->last; NGX_DONE: that was all.
 * Of a body that was read before, others may need the buffers after us, as
 * `mirror`, which sends them to another server.
 */

static ngx_int_t
ngx_http_urlstore_body_rest(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body)
{
    off_t       rest;
    ssize_t     n;
    ngx_buf_t  *b;

    for ( /* void */ ; body->rest; body->rest = body->rest->next) {
        b = body->rest->buf;

        if (ngx_buf_in_memory(b)) {
            if (b->pos == b->last) {
                continue;
            }

            body->pos = b->pos;
            body->last = b->last;
            body->rest = body->rest->next;

            return NGX_OK;
        }

        rest = b->in_file ? b->file_last - b->file_pos - body->offset : 0;

        if (rest == 0) {
            body->offset = 0;
            continue;
        }

        if (body->file == NULL) {
            body->file = ngx_palloc(r->pool, NGX_HTTP_URLSTORE_WINDOW);
            if (body->file == NULL) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }
        }

        n = ngx_read_file(b->file, body->file,
                          (size_t) ngx_min(rest, NGX_HTTP_URLSTORE_WINDOW),
                          b->file_pos + body->offset);

        if (n <= 0) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        body->offset += n;

        body->pos = body->file;
        body->last = body->file + n;

        return NGX_OK;
    }

    return NGX_DONE;
}


/*
 * The next buffer, as body->pos and body->last; NGX_AGAIN: the client has not
 * sent it yet, NGX_DONE: there is none.
 */

static ngx_int_t
ngx_http_urlstore_body_window(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_body_t *body)
{
    ngx_int_t            rc;
    ngx_chain_t         *cl;
    ngx_http_request_t  *r;

    r = ctx->r;

    for ( ;; ) {
        rc = ngx_http_urlstore_body_rest(r, body);

        if (rc != NGX_DONE || !r->reading_body) {
            break;
        }

        /* unbuffered: nginx fills the buffers once more */

        while (r->request_body->bufs) {
            cl = r->request_body->bufs;
            r->request_body->bufs = cl->next;

            cl->buf->pos = cl->buf->last;
            ngx_free_chain(r->pool, cl);
        }

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            return ngx_http_urlstore_body_fault(ctx, rc);
        }

        body->rest = r->request_body->bufs;

        if (rc == NGX_AGAIN && body->rest == NULL) {
            return NGX_AGAIN;
        }
    }

    if (rc == NGX_DONE && body->gzip && us_gzip_open(body->gzip)) {
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_BAD_REQUEST,
                                       "the gzip body ends too early");
    }

    return rc;
}


/* some bytes of the body, unpacked; NGX_DONE: it has ended */

static ngx_int_t
ngx_http_urlstore_body_piece(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_body_t *body, us_str_t *piece)
{
    us_str_t      in;
    ngx_int_t     rc;
    us_gzip_rc_t  unpacked;

    do {

        if (body->bytes >= NGX_HTTP_URLSTORE_TURN_BYTES) {
            body->over = 1;
            return NGX_AGAIN;
        }

        if (body->pos == body->last
            && !(body->gzip && us_gzip_more(body->gzip)))
        {
            rc = ngx_http_urlstore_body_window(ctx, body);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        piece->data = body->pos;
        piece->len = ngx_min(body->last - body->pos, NGX_HTTP_URLSTORE_WINDOW);

        if (body->gzip == NULL) {
            body->pos += piece->len;
            continue;
        }

        in.data = body->pos;
        in.len = body->last - body->pos;

        unpacked = us_gzip_next(body->gzip, &in, piece);

        if (unpacked == US_GZIP_BAD) {
            return ngx_http_urlstore_fault(ctx, NGX_HTTP_BAD_REQUEST,
                                           "the body is not gzip");
        }

        if (unpacked != US_GZIP_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        /* bytes that were read count as work too: they may unpack to nothing */

        body->bytes += body->last - body->pos - in.len;
        body->pos = body->last - in.len;

    } while (piece->len == 0);

    body->bytes += piece->len;

    if (piece->len > ctx->conf->max_body - body->size) {
        return ngx_http_urlstore_fault(ctx, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "a body has at most %uz bytes "
                                       "(urlstore_max_body)%s",
                                       ctx->conf->max_body,
                                       body->gzip ? ", inflated" : "");
    }

    body->size += piece->len;

    us_tally_add(ctx->zone->tally, US_N_BYTES, piece->len);

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_body_item(ngx_http_urlstore_ctx_t *ctx, us_input_item_t *item)
{
    us_str_t                   piece;
    ngx_int_t                  rc;
    ngx_http_urlstore_body_t  *body;

    body = ctx->body;

    if (++body->items % NGX_HTTP_URLSTORE_TURN_ITEMS == 0) {
        ngx_http_urlstore_body_slow(ctx);
    }

    for ( ;; ) {

        if (body->over) {
            return NGX_AGAIN;
        }

        switch (us_input_next(&body->input, item)) {

        case US_INPUT_ITEM:
            return NGX_OK;

        case US_INPUT_REST:
            body->over = 1;
            return NGX_AGAIN;

        case US_INPUT_ERROR:
            return ngx_http_urlstore_fault(ctx, NGX_HTTP_BAD_REQUEST,
                                           "malformed body: %s",
                                           body->input.error);

        default: /* US_INPUT_MORE */
            break;
        }

        if (body->ended) {

            /* a slow client of the reply holds no body */

            us_input_free(&body->input);

            return NGX_DONE;
        }

        rc = ngx_http_urlstore_body_piece(ctx, body, &piece);

        if (rc == NGX_DONE) {
            us_input_end(&body->input);
            body->ended = 1;
            piece = us_string("");

        } else if (rc != NGX_OK) {
            return rc;
        }

        us_input_piece(&body->input, piece.data, piece.len);
    }
}
