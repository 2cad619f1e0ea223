
/*
 * Calls of a router to shards, by an upstream handler of its own.
 *
 * A call is a background subrequest of the client's request.  The subrequest
 * clones the location, so the phases before its content handler, such as access
 * rules, are not run again.  The handler gives nginx's upstream these
 * callbacks:
 *
 *     call_request()   the head of the request, and the caller's body
 *     call_header()    the head of the reply, from u->buffer: its status, and
 *                      the headers of a table
 *     call_read()      a piece of the body, which is appended to call->end.text
 *     call_finalize()  why it ended: call->rc
 *     call_done()      the subrequest ends; the client's request is posted,
 *                      because the subrequest is about to be finalized.  All
 *                      that follows is done by the request (the fan)
 *
 * What nginx does with such subrequests (1.22 to 1.31):
 *
 *   - The handler of the end can be called more than once, and what it returns
 *     is the subrequest's result.  NGX_ERROR would close the client's
 *     connection; NGX_OK keeps nginx from making an error page.
 *   - A reply that breaks off ends with NGX_OK as well.  Then u->length is what
 *     is missing, or 1 in chunked encoding; -1: its end is that of the
 *     connection.  A list is read as far as it goes.
 *   - Headers in u->headers_in.headers would be copied to those of the
 *     subrequest.  Here the list stays empty.
 *   - Without buffering each piece is read into u->buffer again, and
 *     call_read() leaves nothing there to be sent.  The buffer is the call's,
 *     so that further calls by it use it again.
 *   - After the body nginx would send a last buffer, for which the subrequest
 *     would allocate memory as long as the reply; r->header_only prevents it.
 *
 * When a call is tried at the shard's next node, and where the next call of the
 * shard begins, is decided in us_wire.h.  All workers share the word of that.
 */


#include "ngx_http_urlstore_route.h"
#include "../us_text.h"


/* bytes that are read at once; the head of a reply has no more */
#define NGX_HTTP_URLSTORE_CALL_BUFFER  (64 * 1024)


/* where the reader of a body in chunked encoding is */

typedef enum {
    NGX_HTTP_URLSTORE_CHUNK_SIZE = 0,
    NGX_HTTP_URLSTORE_CHUNK_LINE,     /* the rest of the line with the size */
    NGX_HTTP_URLSTORE_CHUNK_DATA,
    NGX_HTTP_URLSTORE_CHUNK_END,      /* the newline after the data */
    NGX_HTTP_URLSTORE_CHUNK_TRAILER
} ngx_http_urlstore_chunk_t;


/* those that are kept, in the order of ngx_http_urlstore_call_header_t */

static const ngx_str_t  ngx_http_urlstore_call_headers[] = {
    ngx_string("urlstore-map"),
    ngx_string("urlstore-refused"),
    ngx_string("idempotency-status"),
    ngx_string("content-type"),
    ngx_string("location"),
    ngx_string("retry-after"),
    ngx_string("etag"),
    ngx_string("cache-control"),
    ngx_string("content-length"),
    ngx_string("transfer-encoding"),
    ngx_string("connection")
};


static ngx_http_urlstore_calls_t *
ngx_http_urlstore_call_sums(ngx_http_urlstore_call_t *call)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = call->ctx;

    return &ctx->zone->sh->calls[call->map->shards[call->shard].number];
}


/* of the subrequest: see ngx_http_post_subrequest_t */

static ngx_int_t
ngx_http_urlstore_call_done(ngx_http_request_t *sr, void *data, ngx_int_t rc)
{
    ngx_http_urlstore_call_t *call = data;

    ngx_str_t                *value;
    us_map_tag_t              tag;
    ngx_http_urlstore_fan_t  *fan;

    if (call->sr != sr || !call->under_way) {
        return NGX_OK;
    }

    call->under_way = 0;
    call->ended = 1;

    if (sr->upstream) {
        call->end.sent = sr->upstream->request_sent;
    }

    /* of answers, those that have come count; of all else, only the whole */

    if (call->end.code && call->rc != NGX_ERROR
        && ((sr->upstream->length <= 0
             && call->rc < NGX_HTTP_SPECIAL_RESPONSE
             && call->received == call->end.text.len)
            || (!call->single && (call->end.code == NGX_HTTP_OK
                                  || call->end.code == NGX_HTTP_ACCEPTED))))
    {
        /*
         * It has done nothing: it is not ready, or it is a replica and was sent
         * a write.  A node that is loading, and a replica, do not report the
         * shard.
         */

        call->end.refused = (call->end.code == NGX_HTTP_SERVICE_UNAVAILABLE
                             || call->end.code == NGX_HTTP_URLSTORE_MISDIRECTED)
                            && call->headers[NGX_HTTP_URLSTORE_CALL_REFUSED]
                               .data;

        /*
         * What a wrong address leads to, such as a node without a cluster, does
         * not know that it is asked as a shard, and its answers would be taken
         * for those of the shard.
         */

        value = &call->headers[NGX_HTTP_URLSTORE_CALL_MAP];

        if (value->data
            && us_map_tag_parse(&tag, ngx_http_urlstore_str(value)) == 0
            && tag.shard == call->map->shards[call->shard].number
            && ngx_memcmp(tag.cluster, call->map->cluster, 16) == 0)
        {
            call->end.status = call->end.code;

        } else {
            call->foreign = !call->end.refused;
        }
    }

    /* of a broken connection, nginx would now end the whole request */

    fan = ngx_http_get_module_ctx(call->ctx->r, ngx_http_urlstore_route_module);
    fan->broken |= sr->connection->error;
    sr->connection->error = 0;

    return ngx_http_post_request(call->ctx->r, NULL) == NGX_OK ? NGX_OK
                                                               : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_call_request(ngx_http_request_t *sr)
{
    u_char                     tag[US_MAP_TAG_LEN];
    size_t                     len;
    ngx_buf_t                 *b;
    us_map_tag_t               map;
    ngx_chain_t               *cl, *in;
    const us_str_t            *node;
    const us_shard_t          *shard;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_call_t  *call;

    call = sr->post_subrequest->data;
    ctx = call->ctx;

    shard = &call->map->shards[call->shard];
    node = &shard->nodes[call->node];
    map = us_map_tag(call->map, shard->number);

    len = sizeof("DELETE  HTTP/1.1\r\nHost: \r\nUrlstore-Map: \r\n"
                 "Accept: \r\nContent-Length: \r\n\r\n") + NGX_OFF_T_LEN
          + sizeof("Idempotency-Key: \r\n") + NGX_INT64_LEN
          + US_MAP_TAG_LEN + call->path.len + node->len + call->accept.len;

    b = ngx_create_temp_buf(sr->pool, len);
    cl = ngx_alloc_chain_link(sr->pool);

    if (b == NULL || cl == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_sprintf(b->last, "%s %V HTTP/1.1\r\nHost: %*s\r\n"
                          "Urlstore-Map: %*s\r\n",
                          call->method == NGX_HTTP_POST ? "POST"
                          : call->method == NGX_HTTP_PUT ? "PUT"
                          : call->method == NGX_HTTP_DELETE ? "DELETE" : "GET",
                          &call->path, node->len, node->data,
                          (size_t) (us_map_tag_put(tag, &map) - tag), tag);

    if (call->accept.len) {
        b->last = ngx_sprintf(b->last, "Accept: %V\r\n", &call->accept);
    }

    if (ctx->key.name && !call->end.reads) {
        b->last = ngx_sprintf(b->last, "Idempotency-Key: %016xL\r\n",
                              ctx->key.name);
    }

    if (call->body) {
        b->last = ngx_sprintf(b->last, "Content-Length: %O\r\n",
                              call->length);
    }

    *b->last++ = '\r';
    *b->last++ = '\n';

    cl->buf = b;
    sr->upstream->request_bufs = cl;

    /* what sends the buffers moves their pos: the caller's may be sent again */

    for (in = call->body; in; in = in->next) {
        cl->next = ngx_alloc_chain_link(sr->pool);
        b = ngx_alloc_buf(sr->pool);

        if (b == NULL || cl->next == NULL) {
            return NGX_ERROR;
        }

        *b = *in->buf;
        cl = cl->next;
        cl->buf = b;
    }

    cl->next = NULL;

    return NGX_OK;
}


/* nginx itself sends no call again: next_upstream is off */

static ngx_int_t
ngx_http_urlstore_call_reinit(ngx_http_request_t *sr)
{
    return NGX_ERROR;
}


/* the lines of the head; 1xx: no reply has followed */

static ngx_int_t
ngx_http_urlstore_call_lines(ngx_http_urlstore_call_t *call, u_char *p,
    u_char *last)
{
    u_char           *colon, *end, *v;
    ngx_int_t         code;
    ngx_uint_t        i;
    ngx_str_t        *value;
    const ngx_str_t  *name;

    code = last - p < 14 || ngx_strncmp(p, "HTTP/1.", 7) != 0 || p[8] != ' '
           ? NGX_ERROR : ngx_atoi(p + 9, 3);

    if (code < NGX_HTTP_OK) {
        return NGX_ERROR;
    }

    call->end.code = code;
    call->closes = (p[7] == '0');

    for ( ;; ) {
        end = memchr(p, '\n', last - p);
        p = end + 1;

        if (p == last) {
            break;
        }

        end = memchr(p, '\n', last - p);
        colon = memchr(p, ':', end - p);

        if (colon == NULL) {
            return NGX_ERROR;
        }

        for (i = 0; i < NGX_HTTP_URLSTORE_CALL_HEADERS; i++) {
            name = &ngx_http_urlstore_call_headers[i];
            value = &call->headers[i];

            if (name->len != (size_t) (colon - p) || value->data
                || ngx_strncasecmp(p, name->data, name->len) != 0)
            {
                continue;
            }

            value->data = colon + 1;

            while (value->data < end && *value->data == ' ') {
                value->data++;
            }

            value->len = end - value->data;

            if (value->len && end[-1] == '\r') {
                value->len--;
            }

            /* what is relayed stays one line: no control byte but the tab */

            for (v = value->data; v < value->data + value->len; v++) {
                if ((*v < ' ' && *v != '\t') || *v == 0x7f) {
                    return NGX_ERROR;
                }
            }

            break;
        }
    }

    value = &call->headers[NGX_HTTP_URLSTORE_CALL_CONNECTION];
    call->closes |= ngx_http_urlstore_is(value, "close");

    call->chunk = NGX_HTTP_URLSTORE_CHUNK_SIZE;
    call->digits = 0;

    value = &call->headers[NGX_HTTP_URLSTORE_CALL_ENCODING];
    call->chunked = (value->data != NULL);

    if (call->chunked) {
        return ngx_http_urlstore_is(value, "chunked") ? NGX_OK : NGX_ERROR;
    }

    value = &call->headers[NGX_HTTP_URLSTORE_CALL_LENGTH];
    call->rest = value->data ? ngx_atoof(value->data, value->len) : -1;

    return value->data && call->rest == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_call_header(ngx_http_request_t *sr)
{
    size_t                     len;
    u_char                    *p, *end;
    ngx_buf_t                 *b;
    ngx_http_urlstore_call_t  *call;

    call = sr->post_subrequest->data;
    b = &sr->upstream->buffer;

    end = memmem(b->pos, b->last - b->pos, "\r\n\r\n", 4);

    if (end == NULL) {

        /* the next search begins with what may be the beginning of the end */

        b->pos = ngx_max(b->start, b->last - 3);
        return NGX_AGAIN;
    }

    /* the buffer will have the body */

    len = end + 2 - b->start;
    b->pos = end + 4;

    p = ngx_pnalloc(sr->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, b->start, len);

    if (ngx_http_urlstore_call_lines(call, p, p + len) == NGX_OK) {
        sr->upstream->headers_in.status_n = call->end.code;
        return NGX_OK;
    }

    call->end.code = 0;

    ngx_log_error(NGX_LOG_ERR, sr->connection->log, 0,
                  "upstream sent an invalid header");

    return NGX_HTTP_UPSTREAM_INVALID_HEADER;
}


static void
ngx_http_urlstore_call_finalize(ngx_http_request_t *sr, ngx_int_t rc)
{
    ngx_http_urlstore_call_t  *call;

    call = sr->post_subrequest->data;

    call->rc = rc;
    sr->header_only = 1;
}


static ngx_int_t
ngx_http_urlstore_call_read_init(void *data)
{
    ngx_http_urlstore_call_t *call = data;

    ngx_http_upstream_t  *u;

    u = call->sr->upstream;

    u->length = call->end.code == NGX_HTTP_NO_CONTENT
                || call->end.code == NGX_HTTP_NOT_MODIFIED ? 0
                : call->chunked ? 1 : call->rest;

    u->keepalive = (u->length == 0 && !call->closes);

    return NGX_OK;
}


/*
 * What is too long is cut, and a reader of the reply finds it incomplete; a
 * reply that does not end is a failure all the same.
 */

static ngx_int_t
ngx_http_urlstore_call_keep(ngx_http_urlstore_call_t *call, u_char *p,
    size_t n)
{
    size_t   size;
    u_char  *buf;

    call->received += n;

    if (call->received > NGX_HTTP_URLSTORE_CALL_MAX) {
        return NGX_ERROR;
    }

    n = ngx_min(n, NGX_HTTP_URLSTORE_CALL_REPLY - call->end.text.len);

    if (n > call->size - call->end.text.len) {

        /* a length that is known is the first guess */

        size = ngx_max(call->size * 2, call->end.text.len + n);

        if (!call->chunked && call->sr->upstream->length > 0) {
            size = ngx_max(size, n + call->sr->upstream->length);
        }

        size = ngx_min(size, NGX_HTTP_URLSTORE_CALL_REPLY);

        buf = ngx_palloc(call->ctx->r->pool, size);
        if (buf == NULL) {
            return NGX_ERROR;
        }

        if (call->end.text.len) {
            ngx_memcpy(buf, call->buf, call->end.text.len);
        }

        call->buf = buf;
        call->size = size;
    }

    ngx_memcpy(call->buf + call->end.text.len, p, n);

    call->end.text.data = call->buf;
    call->end.text.len += n;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_call_chunks(ngx_http_urlstore_call_t *call, u_char *p,
    u_char *last)
{
    int                   digit;
    size_t                n;
    ngx_http_upstream_t  *u;

    u = call->sr->upstream;

    while (p < last) {

        switch (call->chunk) {

        case NGX_HTTP_URLSTORE_CHUNK_SIZE:
            digit = us_hex_value(*p);

            if (digit != -1) {

                if (call->digits == 15) {
                    return NGX_ERROR;
                }

                call->rest = (call->digits++ ? call->rest * 16 : 0) + digit;
                p++;

            } else if (call->digits == 0) {
                return NGX_ERROR;

            } else {
                call->chunk = NGX_HTTP_URLSTORE_CHUNK_LINE;
            }

            break;

        case NGX_HTTP_URLSTORE_CHUNK_LINE:

            if (*p++ == '\n') {
                call->chunk = call->rest ? NGX_HTTP_URLSTORE_CHUNK_DATA
                                         : NGX_HTTP_URLSTORE_CHUNK_TRAILER;
                call->digits = 0;
            }

            break;

        case NGX_HTTP_URLSTORE_CHUNK_DATA:
            n = ngx_min(call->rest, last - p);

            if (ngx_http_urlstore_call_keep(call, p, n) != NGX_OK) {
                return NGX_ERROR;
            }

            p += n;
            call->rest -= n;

            if (call->rest == 0) {
                call->chunk = NGX_HTTP_URLSTORE_CHUNK_END;
            }

            break;

        case NGX_HTTP_URLSTORE_CHUNK_END:

            if (*p == '\n') {
                call->chunk = NGX_HTTP_URLSTORE_CHUNK_SIZE;

            } else if (*p != '\r') {
                return NGX_ERROR;
            }

            p++;
            break;

        default: /* NGX_HTTP_URLSTORE_CHUNK_TRAILER */

            /* lines up to an empty one; digits: the bytes of this one */

            if (*p == '\n' && call->digits == 0) {
                u->length = 0;
                u->keepalive = (p + 1 == last && !call->closes);
                return NGX_OK;
            }

            call->digits = *p == '\n' ? 0 : call->digits + (*p != '\r');
            p++;
            break;
        }
    }

    return NGX_OK;
}


/* a piece of the body, past u->buffer.last */

static ngx_int_t
ngx_http_urlstore_call_read(void *data, ssize_t bytes)
{
    ngx_http_urlstore_call_t *call = data;

    u_char               *p;
    ngx_http_upstream_t  *u;

    u = call->sr->upstream;
    p = u->buffer.last;

    if (call->chunked) {
        return ngx_http_urlstore_call_chunks(call, p, p + bytes);
    }

    if (u->length != -1) {
        u->keepalive = (bytes == u->length && !call->closes);
        bytes = ngx_min(bytes, u->length);
        u->length -= bytes;
    }

    return ngx_http_urlstore_call_keep(call, p, bytes);
}


/* of the subrequest */

static ngx_int_t
ngx_http_urlstore_call_handler(ngx_http_request_t *sr)
{
    const us_str_t                      *node;
    ngx_http_upstream_t                 *u;
    ngx_http_urlstore_call_t            *call;
    ngx_http_urlstore_route_loc_conf_t  *rlcf;

    call = sr->post_subrequest->data;
    rlcf = ngx_http_get_module_loc_conf(sr, ngx_http_urlstore_route_module);

    if (ngx_http_upstream_create(sr) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    u = sr->upstream;

    u->conf = call->probes ? &rlcf->probe : &rlcf->upstream;
    u->resolved = ngx_pcalloc(sr->pool, sizeof(ngx_http_upstream_resolved_t));

    if (call->head == NULL) {
        call->head = ngx_palloc(sr->pool, NGX_HTTP_URLSTORE_CALL_BUFFER);
    }

    if (u->resolved == NULL || call->head == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the upstream of the node: see ngx_http_urlstore_cluster_nodes() */

    node = &call->map->shards[call->shard].nodes[call->node];

    u->resolved->host.data = (u_char *) node->data;
    u->resolved->host.len = node->len;
    u->resolved->no_port = 1;

    /* for messages in the log */

    ngx_str_set(&u->schema, "http://");
    u->uri = call->path;

    u->output.tag = (ngx_buf_tag_t) &ngx_http_urlstore_route_module;

    u->buffer.start = call->head;
    u->buffer.pos = call->head;
    u->buffer.last = call->head;
    u->buffer.end = call->head + NGX_HTTP_URLSTORE_CALL_BUFFER;
    u->buffer.temporary = 1;

    u->create_request = ngx_http_urlstore_call_request;
    u->reinit_request = ngx_http_urlstore_call_reinit;
    u->process_header = ngx_http_urlstore_call_header;
    u->finalize_request = ngx_http_urlstore_call_finalize;

    u->input_filter_init = ngx_http_urlstore_call_read_init;
    u->input_filter = ngx_http_urlstore_call_read;
    u->input_filter_ctx = call;

    sr->main->count++;

    ngx_http_upstream_init(sr);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_urlstore_call_send(ngx_http_urlstore_call_t *call)
{
    ngx_http_request_t          *r;
    ngx_http_post_subrequest_t  *ps;

    r = call->ctx->r;

    if (call->end.status) {
        call->before = call->end.text;
    }

    call->tries++;
    call->under_way = 0;
    call->ended = 0;
    call->end.sent = 0;
    call->end.refused = 0;
    call->foreign = 0;
    ngx_memzero(call->headers, sizeof(call->headers));
    call->end.code = 0;
    call->end.status = 0;
    call->rc = NGX_ERROR;
    call->end.text.len = 0;
    call->size = call->reuses ? call->size : 0;
    call->received = 0;
    call->sr = NULL;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    if (ps == NULL) {
        return NGX_ERROR;
    }

    ps->handler = ngx_http_urlstore_call_done;
    ps->data = call;

    if (ngx_http_subrequest(r, &r->uri, NULL, &call->sr, ps,
                            NGX_HTTP_SUBREQUEST_IN_MEMORY
                            |NGX_HTTP_SUBREQUEST_BACKGROUND
                            |NGX_HTTP_SUBREQUEST_CLONE)
        != NGX_OK)
    {
        call->sr = NULL;
        return NGX_ERROR;
    }

    call->sr->content_handler = ngx_http_urlstore_call_handler;
    call->sr->method = NGX_HTTP_GET;
    call->under_way = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_call_begin(ngx_http_urlstore_fan_t *fan,
    ngx_http_urlstore_call_t *call)
{
    call->tries = 0;
    call->start = ngx_http_urlstore_now();
    call->node = ngx_http_urlstore_call_sums(call)->node
                 % call->map->shards[call->shard].nnodes;

    if (ngx_http_urlstore_call_send(call) != NGX_OK) {
        return NGX_ERROR;
    }

    fan->under_way++;

    return NGX_OK;
}


ngx_uint_t
ngx_http_urlstore_call_ended(ngx_http_urlstore_call_t *call)
{
    ngx_uint_t                  nnodes, first, node;
    ngx_http_urlstore_calls_t  *sums;

    if (!call->ended) {
        return 0;
    }

    call->ended = 0;
    nnodes = call->map->shards[call->shard].nnodes;

    if (us_wire_again(&call->end) && call->tries < nnodes
        && (!call->probes || ngx_http_urlstore_now() - call->start
                             <= 2000 * NGX_HTTP_URLSTORE_CALL_PROBE))
    {
        call->node = (call->node + 1) % nnodes;

        if (ngx_http_urlstore_call_send(call) == NGX_OK) {
            return 0;
        }
    }

    if (call->probes) {
        return 1;
    }

    /* for the metrics; and where the next call of the shard begins */

    sums = ngx_http_urlstore_call_sums(call);

    (void) ngx_atomic_fetch_add(&sums->calls, 1);
    (void) ngx_atomic_fetch_add(&sums->time,
                                ngx_http_urlstore_now() - call->start);

    if (call->end.status == 0
        || call->end.status == NGX_HTTP_URLSTORE_MISDIRECTED
        || call->end.status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        (void) ngx_atomic_fetch_add(&sums->failed, 1);
    }

    /* a call that shows nothing leaves what another worker has written */

    first = sums->node;
    node = us_wire_node(&call->end, call->node, first);

    if (node != first) {
        sums->node = node;
    }

    return 1;
}


void
ngx_http_urlstore_call_log(ngx_http_urlstore_call_t *call, ngx_uint_t n)
{
    const us_str_t             *node;
    const us_shard_t           *shard;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_calls_t  *sums;

    ctx = call->ctx;
    shard = &call->map->shards[call->shard];
    node = &shard->nodes[call->node];
    sums = ngx_http_urlstore_call_sums(call);

    (void) ngx_atomic_fetch_add(&sums->items, n);
    (void) ngx_atomic_fetch_add(&sums->unknown,
                                us_wire_unsure(&call->end));

    ngx_log_error(NGX_LOG_WARN, call->ctx->r->connection->log, 0,
                  "shard %uD of \"%V\" has not answered %ui items: status "
                  "%ui and %uz bytes from node \"%*s\" for \"%V\"%s%s",
                  shard->number, &ctx->zone->name, n,
                  (ngx_uint_t) call->end.status, call->end.text.len,
                  node->len, node->data,
                  &call->path, call->foreign ? ", which is not this shard"
                                             : "",
                  us_wire_unsure(&call->end)
                  ? "; it may have done what it was asked" : "");
}
