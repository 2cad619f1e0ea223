
/*
 * A request body on its way in, in pieces, as it arrives.
 *
 *     socket -> nginx's buffer --.
 *     nginx's temporary file ----+--> window -> [inflate] -> data(piece)
 *     body read by others  ------'
 *
 * Reading is unbuffered where nginx can; a body that nginx or another module
 * has read before comes whole, from memory or from its temporary file, by the
 * same way.  Before the event loop goes on, `pause` is called, so that
 * nothing of a worker's own is held while a client is slow.  Both may answer
 * NGX_AGAIN, "taken, but no more for now": then reading stops until the
 * journal's ring has room.
 *
 * Limits count bytes behind the inflation, so a bomb ends at urlstore_max_body
 * like any other body; more than one gzip member is allowed.
 */


#include "ngx_http_urlstore.h"

#include <zlib.h>


#define NGX_HTTP_URLSTORE_WINDOW   (32 * 1024)


struct ngx_http_urlstore_body_s {
    ngx_http_urlstore_data_pt       data;
    ngx_http_urlstore_pause_pt      pause;
    ngx_http_urlstore_end_pt        end;

    u_char                         *pos;      /* what is to be read next */
    u_char                         *last;

    ngx_chain_t                    *rest;     /* of a body read by others */
    off_t                           offset;   /* in its file */
    u_char                         *file;     /* a window on that */

    z_stream                       *z;
    u_char                         *inflated;
    unsigned                        more:1;   /* in the inflater */
    unsigned                        member:1; /* a gzip member is open */

    size_t                          size;     /* bytes given to `data` */
};


static ngx_int_t ngx_http_urlstore_body_encoding(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body);
static void ngx_http_urlstore_body_post(ngx_http_request_t *r);
static void ngx_http_urlstore_body_read(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_body_next(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body);
static ngx_int_t ngx_http_urlstore_body_window(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body);
static ngx_int_t ngx_http_urlstore_body_rest(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body);
static ngx_int_t ngx_http_urlstore_body_piece(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body, u_char *p, size_t len);
static ngx_int_t ngx_http_urlstore_body_inflate(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body);
static ngx_int_t ngx_http_urlstore_body_wait(ngx_http_request_t *r);
static void ngx_http_urlstore_body_done(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_urlstore_body_cleanup(void *data);
static void *ngx_http_urlstore_body_alloc(void *opaque, uInt n, uInt size);
static void ngx_http_urlstore_body_free(void *opaque, void *p);


ngx_int_t
ngx_http_urlstore_body(ngx_http_request_t *r, ngx_http_urlstore_data_pt data,
    ngx_http_urlstore_pause_pt pause, ngx_http_urlstore_end_pt end)
{
    ngx_int_t                      rc;
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_body_t      *body;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (r->headers_in.content_length_n > (off_t) ulcf->max_body) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                         "\"processed\":0",
                                         "a body has at most %uz bytes",
                                         ulcf->max_body);
    }

    body = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_body_t));
    if (body == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->data = data;
    body->pause = pause;
    body->end = end;

    ctx->body = body;

    rc = ngx_http_urlstore_body_encoding(r, body);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_urlstore_body_post);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


/* NGX_DECLINED: go on; else the reply has been sent */

static ngx_int_t
ngx_http_urlstore_body_encoding(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body)
{
    ngx_str_t           *value, accepted;
    ngx_pool_cleanup_t  *cln;

    value = ngx_http_urlstore_header_in(r, "content-encoding");

    if (value == NULL || value->len == 0
        || (value->len == 8
            && ngx_strncasecmp(value->data, (u_char *) "identity", 8) == 0))
    {
        return NGX_DECLINED;
    }

    if (!(value->len == 4
          && ngx_strncasecmp(value->data, (u_char *) "gzip", 4) == 0)
        && !(value->len == 6
             && ngx_strncasecmp(value->data, (u_char *) "x-gzip", 6) == 0))
    {
        ngx_str_set(&accepted, "gzip");

        if (ngx_http_urlstore_header(r, "Accept-Encoding", &accepted)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_urlstore_problem(r,
                                         NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                         NULL, "Content-Encoding: gzip is "
                                         "taken, and none");
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    body->z = ngx_pcalloc(r->pool, sizeof(z_stream));
    body->inflated = ngx_palloc(r->pool, NGX_HTTP_URLSTORE_WINDOW);

    if (cln == NULL || body->z == NULL || body->inflated == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->z->zalloc = ngx_http_urlstore_body_alloc;
    body->z->zfree = ngx_http_urlstore_body_free;
    body->z->opaque = r->pool;

    if (inflateInit2(body->z, MAX_WBITS + 16) != Z_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    cln->handler = ngx_http_urlstore_body_cleanup;
    cln->data = body->z;

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_body_format(ngx_http_request_t *r,
    us_input_format_t *format)
{
    size_t       len;
    u_char      *p;
    ngx_uint_t   i;
    ngx_str_t   *type;

    static const struct {
        ngx_str_t           name;
        us_input_format_t   format;
    } types[] = {
        { ngx_string("text/plain"), US_INPUT_TEXT },
        { ngx_string("application/json"), US_INPUT_JSON },
        { ngx_string("application/x-ndjson"), US_INPUT_NDJSON },
        { ngx_string("application/ndjson"), US_INPUT_NDJSON },
        { ngx_string("application/jsonl"), US_INPUT_NDJSON },
        { ngx_string("application/x-www-form-urlencoded"), US_INPUT_FORM }
    };

    if (r->headers_in.content_length_n == -1 && !r->headers_in.chunked
        && r->http_version < NGX_HTTP_VERSION_20)
    {
        return ngx_http_urlstore_problem(r, NGX_HTTP_LENGTH_REQUIRED, NULL,
                                         "a body needs Content-Length or "
                                         "chunked Transfer-Encoding");
    }

    if (r->headers_in.content_type == NULL
        || r->headers_in.content_type->value.len == 0)
    {
        *format = US_INPUT_TEXT;
        return NGX_DECLINED;
    }

    type = &r->headers_in.content_type->value;

    p = ngx_strlchr(type->data, type->data + type->len, ';');
    len = p ? (size_t) (p - type->data) : type->len;

    while (len && type->data[len - 1] == ' ') {
        len--;
    }

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].name.len == len
            && ngx_strncasecmp(types[i].name.data, type->data, len) == 0)
        {
            *format = types[i].format;
            return NGX_DECLINED;
        }
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE, NULL,
                                     "Content-Type is text/plain, "
                                     "application/json, "
                                     "application/x-ndjson or "
                                     "application/x-www-form-urlencoded");
}


/* remembers the first fault of the envelope */

ngx_int_t
ngx_http_urlstore_fault(ngx_http_request_t *r, ngx_uint_t status,
    const char *fmt, ...)
{
    u_char                   *p;
    va_list                   args;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (ctx->fault) {
        return NGX_ERROR;
    }

    ctx->fault = status;

    p = ngx_pnalloc(r->pool, 128);

    if (p) {
        ctx->fault_text.data = p;

        va_start(args, fmt);
        ctx->fault_text.len = ngx_vslprintf(p, p + 128, fmt, args) - p;
        va_end(args);
    }

    return NGX_ERROR;
}


/*
 * The end of a body: NGX_DECLINED if all is well, else the reply has been
 * sent.  rc is what the reading ended with.
 */

ngx_int_t
ngx_http_urlstore_body_fault(ngx_http_request_t *r, ngx_int_t rc)
{
    u_char                    extra[64];
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (rc == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {

        /* nginx's own limit, which a chunked body meets late */

        (void) ngx_http_urlstore_fault(r, rc, "the body is too large");

    } else if (rc > NGX_OK) {
        return rc;
    }

    if (ctx->fault == 0) {
        return NGX_DECLINED;
    }

    ngx_sprintf(extra, "\"processed\":%ui%Z", ctx->processed);

    if (ctx->fault == NGX_HTTP_SERVICE_UNAVAILABLE) {
        return ngx_http_urlstore_unready(r, ctx->zone, (char *) extra);
    }

    return ngx_http_urlstore_problem(r, ctx->fault, (char *) extra, "%V",
                                     &ctx->fault_text);
}


static void
ngx_http_urlstore_body_post(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    if (!r->request_body_no_buffering && r->request_body) {
        ctx->body->rest = r->request_body->bufs;
    }

    r->read_event_handler = ngx_http_urlstore_body_read;

    ngx_http_urlstore_body_read(r);
}


static void
ngx_http_urlstore_body_read(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_body_t  *body;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    body = ctx->body;

    /* after a wait: what waits goes first, or nobody would find the room */

    if (body->pause(r) == NGX_AGAIN) {
        goto wait;
    }

    for ( ;; ) {
        rc = ngx_http_urlstore_body_next(r, body);

        if (rc == NGX_AGAIN) {
            goto wait;
        }

        if (rc != NGX_OK) {
            ngx_http_urlstore_body_done(r, rc);
            return;
        }

        if (!r->reading_body) {
            break;
        }

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_urlstore_body_done(r, rc);
            return;
        }

        if (rc == NGX_AGAIN && r->request_body->bufs == NULL) {

            if (body->pause(r) == NGX_AGAIN) {
                goto wait;
            }

            return;
        }
    }

    if (body->pause(r) == NGX_AGAIN) {
        goto wait;
    }

    if (body->z && body->member) {
        rc = ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST,
                                     "the gzip body ends too early");

    } else {
        rc = NGX_OK;
    }

    ngx_http_urlstore_body_done(r, rc);

    return;

wait:

    /* nothing is read meanwhile, and the client's slowness is not its own */

    r->read_event_handler = ngx_http_block_reading;

    if (r->connection->read->timer_set) {
        ngx_del_timer(r->connection->read);
    }

    rc = ngx_http_urlstore_room_when(r, ngx_http_urlstore_body_wait);

    if (rc == NGX_DECLINED) {
        rc = ngx_http_urlstore_fault(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                     "the disk refuses");
    }

    if (rc != NGX_DONE) {
        ngx_http_urlstore_body_done(r, rc);
    }
}


/* the ring has room again, or the zone refuses: see room_when() */

static ngx_int_t
ngx_http_urlstore_body_wait(ngx_http_request_t *r)
{
    r->read_event_handler = ngx_http_urlstore_body_read;

    ngx_http_urlstore_body_read(r);

    return NGX_DONE;
}


/* gives all that there is to `data` */

static ngx_int_t
ngx_http_urlstore_body_next(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body)
{
    size_t     len;
    u_char    *p;
    ngx_int_t  rc;

    for ( ;; ) {

        if (body->pos == body->last && !body->more) {
            rc = ngx_http_urlstore_body_window(r, body);

            if (rc == NGX_DONE) {
                return NGX_OK;
            }

            if (rc != NGX_OK) {
                return rc;
            }
        }

        if (body->z) {
            rc = ngx_http_urlstore_body_inflate(r, body);

        } else {
            p = body->pos;
            len = ngx_min(body->last - p, NGX_HTTP_URLSTORE_WINDOW);
            body->pos += len;

            rc = ngx_http_urlstore_body_piece(r, body, p, len);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }
}


/* the next buffer, which is used up; NGX_DONE: there is none yet, or no more */

static ngx_int_t
ngx_http_urlstore_body_window(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (!r->request_body_no_buffering) {
        return ngx_http_urlstore_body_rest(r, body);
    }

    for ( ;; ) {

        if (r->request_body == NULL || r->request_body->bufs == NULL) {
            return NGX_DONE;
        }

        cl = r->request_body->bufs;
        b = cl->buf;

        if (b->pos < b->last) {
            body->pos = b->pos;
            body->last = b->last;

            b->pos = b->last;

            return NGX_OK;
        }

        r->request_body->bufs = cl->next;
        ngx_free_chain(r->pool, cl);
    }
}


/*
 * The same of a body that has been read before, whose buffers others may need
 * after us: `mirror` sends them to another server.
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


static ngx_int_t
ngx_http_urlstore_body_piece(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body, u_char *p, size_t len)
{
    ngx_http_urlstore_ctx_t       *ctx;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    if (len > ulcf->max_body - body->size) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_REQUEST_ENTITY_TOO_LARGE,
                                       "a body has at most %uz bytes",
                                       ulcf->max_body);
    }

    body->size += len;

    ngx_http_urlstore_count(ctx->zone, NGX_HTTP_URLSTORE_N_BYTES, len);

    return body->data(r, p, len);
}


/* one window of output at most; body->more tells that there is more to come */

static ngx_int_t
ngx_http_urlstore_body_inflate(ngx_http_request_t *r,
    ngx_http_urlstore_body_t *body)
{
    int        rc;
    size_t     len;
    z_stream  *z;

    z = body->z;

    z->next_in = body->pos;
    z->avail_in = body->last - body->pos;
    z->next_out = body->inflated;
    z->avail_out = NGX_HTTP_URLSTORE_WINDOW;

    if (z->avail_in) {
        body->member = 1;
    }

    rc = inflate(z, Z_NO_FLUSH);

    body->pos = z->next_in;
    body->more = (z->avail_out == 0);

    if (rc == Z_STREAM_END) {
        body->member = 0;
        body->more = 0;

        /* the next member, if there is one */

        if (inflateReset(z) != Z_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else if (rc == Z_BUF_ERROR && body->pos == body->last) {

        /* it had no more, after all */
        body->more = 0;

    } else if (rc != Z_OK) {
        return ngx_http_urlstore_fault(r, NGX_HTTP_BAD_REQUEST,
                                       "the body is not gzip");
    }

    len = NGX_HTTP_URLSTORE_WINDOW - z->avail_out;

    if (len == 0) {
        return NGX_OK;
    }

    return ngx_http_urlstore_body_piece(r, body, body->inflated, len);
}


/*
 * rc is NGX_OK at the end of the body, NGX_ERROR after a fault of ours (see
 * ngx_http_urlstore_fault()), or nginx's.
 */

static void
ngx_http_urlstore_body_done(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_finalize_request(r, ctx->body->end(r, rc));
}


static void
ngx_http_urlstore_body_cleanup(void *data)
{
    inflateEnd(data);
}


static void *
ngx_http_urlstore_body_alloc(void *opaque, uInt n, uInt size)
{
    return ngx_palloc(opaque, (size_t) n * size);
}


static void
ngx_http_urlstore_body_free(void *opaque, void *p)
{
    /* void: the pool frees it */
}
