
/*
 * Calls of a router to shards.
 *
 * A call is a background subrequest of the client's request.  A body filter of
 * this file keeps its reply in memory.  The subrequest clones the location: its
 * content handler is the one of the proxy_pass that urlstore_route has put
 * there, so the phases before it, such as access rules, are not run again.
 *
 *     client's request   call_wait() ........................ gather()
 *                            |    |                            ^
 *     subrequest 1           '----+--> shard --> ended --------|  posted
 *     subrequest 2                '--> shard --> ended --------'
 *
 * A subrequest only marks its call as ended and posts the client's request,
 * because it is about to be finalized.  All that follows is done by gather().
 *
 * What nginx does with such subrequests (1.22 to 1.31):
 *
 *   - The handler of the end can be called more than once, and what it returns
 *     is the subrequest's result.  NGX_ERROR would close the client's
 *     connection; NGX_OK keeps nginx from making an error page.
 *   - It inherits that the client's body was discarded: freenginx would send
 *     its own body without a length.
 *   - A reply that breaks off ends with NGX_OK as well.  Then u->length is what
 *     is missing, or 1 in chunked encoding; -1: its end is that of the
 *     connection.  A list is read as far as it goes.
 *   - With proxy_buffering the reply would be held until it is complete,
 *     because the subrequest is not what writes to the client (c->data).  So
 *     it is off, and the filter gets each piece that is read.
 *   - The subrequest has the headers and the body of the client's request until
 *     they are replaced.
 *
 * A call that failed before anything was sent, or that a node has refused
 * (Urlstore-Refused), is tried at the shard's next node.  One that only reads
 * is tried there after any failure, and after a 503.  No other is sent again: a
 * shard may have done what it was asked, and a second try would answer `seen`
 * for a new URL.
 *
 * The next call of the shard begins at the node that has answered, or at the
 * one after a node that has not.  A standby refuses at once, so a wrong guess
 * costs one more call.  All workers share the word.
 */


#include "ngx_http_urlstore_route.h"
#include "../cluster/us_map_tag.h"


/* ms: a node that does not report its state for so long does not answer */
#define NGX_HTTP_URLSTORE_CALL_PROBE   2000


static ngx_int_t ngx_http_urlstore_call_send(ngx_http_urlstore_call_t *call);
static ngx_int_t ngx_http_urlstore_call_probe(ngx_http_request_t *sr);
static ngx_int_t ngx_http_urlstore_call_done(ngx_http_request_t *sr,
    void *data, ngx_int_t rc);
static void ngx_http_urlstore_call_reply(ngx_http_urlstore_call_t *call);
static ngx_uint_t ngx_http_urlstore_call_refused(
    ngx_http_urlstore_call_t *call);
static ngx_uint_t ngx_http_urlstore_call_shard(
    ngx_http_urlstore_call_t *call);
static ngx_int_t ngx_http_urlstore_call_room(ngx_http_urlstore_call_t *call,
    size_t n);
static ngx_uint_t ngx_http_urlstore_call_again(
    ngx_http_urlstore_call_t *call);
static void ngx_http_urlstore_call_remember(ngx_http_urlstore_call_t *call);
static void ngx_http_urlstore_call_count(ngx_http_urlstore_call_t *call);
static ngx_http_urlstore_calls_t *ngx_http_urlstore_call_sums(
    ngx_http_urlstore_call_t *call);
static void ngx_http_urlstore_call_event(ngx_http_request_t *r);


ngx_int_t
ngx_http_urlstore_call(ngx_http_urlstore_call_t *call)
{
    call->tries = 0;
    call->start = ngx_http_urlstore_now();
    call->node = ngx_http_urlstore_call_sums(call)->node
                 % call->map->shards[call->shard].nnodes;

    return ngx_http_urlstore_call_send(call);
}


static ngx_int_t
ngx_http_urlstore_call_send(ngx_http_urlstore_call_t *call)
{
    ngx_http_request_t            *r, *sr;
    ngx_http_request_body_t       *body;
    ngx_http_post_subrequest_t    *ps;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    static ngx_str_t  post = ngx_string("POST");
    static ngx_str_t  delete = ngx_string("DELETE");

    r = call->r;

    if (call->status) {
        call->before = call->text;
    }

    call->tries++;
    call->under_way = 0;
    call->ended = 0;
    call->sent = 0;
    call->refused = 0;
    call->foreign = 0;
    call->status = 0;
    call->text.len = 0;
    call->size = 0;
    call->received = 0;
    call->sr = NULL;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    body = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));

    if (ps == NULL || body == NULL) {
        return NGX_ERROR;
    }

    ps->handler = ngx_http_urlstore_call_done;
    ps->data = call;

    if (ngx_http_subrequest(r, &r->uri, NULL, &sr, ps,
                            NGX_HTTP_SUBREQUEST_IN_MEMORY
                            |NGX_HTTP_SUBREQUEST_BACKGROUND
                            |NGX_HTTP_SUBREQUEST_CLONE)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ulcf = ngx_http_get_module_loc_conf(r, ngx_http_urlstore_module);

    sr->content_handler = call->probes ? ngx_http_urlstore_call_probe
                                       : ulcf->pass;

    sr->method = call->method;

    switch (call->method) {

    case NGX_HTTP_POST:
        sr->method_name = post;
        break;

    case NGX_HTTP_DELETE:
        sr->method_name = delete;
        break;

    default: /* NGX_HTTP_GET */
        sr->method_name = ngx_http_core_get_method;
        break;
    }

    body->bufs = call->body;

    sr->request_body = body;
    sr->discard_body = 0;
    sr->headers_in.content_length = NULL;
    sr->headers_in.content_length_n = call->body ? call->length : -1;
    sr->headers_in.chunked = 0;

    call->sr = sr;
    call->under_way = 1;

    return NGX_OK;
}


/*
 * The content handler of a probe: that of proxy_pass, with shorter limits, so
 * that /health and /metrics answer while a node hangs.
 */

static ngx_int_t
ngx_http_urlstore_call_probe(ngx_http_request_t *sr)
{
    ngx_int_t                      rc;
    ngx_connection_t              *c;
    ngx_http_upstream_t           *u;
    ngx_http_upstream_conf_t      *conf;
    ngx_http_urlstore_loc_conf_t  *ulcf;

    ulcf = ngx_http_get_module_loc_conf(sr, ngx_http_urlstore_module);

    rc = ulcf->pass(sr);

    u = sr->upstream;
    conf = ngx_palloc(sr->pool, sizeof(ngx_http_upstream_conf_t));

    if (u == NULL || conf == NULL) {
        return rc;
    }

    *conf = *u->conf;

    conf->send_timeout = ngx_min(conf->send_timeout,
                                 NGX_HTTP_URLSTORE_CALL_PROBE);
    conf->read_timeout = ngx_min(conf->read_timeout,
                                 NGX_HTTP_URLSTORE_CALL_PROBE);
    u->conf = conf;

    /* a connection that was kept has been sent the request */

    c = u->peer.connection;

    if (c && c->read->timer_set) {
        ngx_add_timer(c->read, conf->read_timeout);
    }

    if (c && c->write->timer_set) {
        ngx_add_timer(c->write, ngx_min(conf->connect_timeout,
                                        NGX_HTTP_URLSTORE_CALL_PROBE));
    }

    return rc;
}


/* of the subrequest: see ngx_http_post_subrequest_t */

static ngx_int_t
ngx_http_urlstore_call_done(ngx_http_request_t *sr, void *data, ngx_int_t rc)
{
    ngx_http_urlstore_call_t *call = data;

    if (call->sr != sr || !call->under_way) {
        return NGX_OK;
    }

    call->under_way = 0;
    call->ended = 1;
    call->rc = rc;

    if (sr->upstream) {
        call->sent = sr->upstream->request_sent;

        if (rc == NGX_OK) {
            ngx_http_urlstore_call_reply(call);
        }
    }

    return ngx_http_post_request(call->r, NULL) == NGX_OK ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_urlstore_call_reply(ngx_http_urlstore_call_t *call)
{
    ngx_http_upstream_t  *u;

    u = call->sr->upstream;

    /* 1xx: no reply has followed */

    if (u->headers_in.status_n < NGX_HTTP_OK) {
        return;
    }

    /* of a list, what has come counts; of all else, only the whole */

    if ((u->length > 0 || call->received != call->text.len)
        && (call->single || u->headers_in.status_n != NGX_HTTP_OK))
    {
        return;
    }

    /* a node that is loading, and a replica, do not report the shard */

    call->refused = ngx_http_urlstore_call_refused(call);

    if (!ngx_http_urlstore_call_shard(call)) {
        call->foreign = !call->refused;
        return;
    }

    call->status = u->headers_in.status_n;
}


/*
 * Whether the node has done nothing: it is not ready, or it is a replica and
 * was sent a write.
 */

static ngx_uint_t
ngx_http_urlstore_call_refused(ngx_http_urlstore_call_t *call)
{
    ngx_uint_t  status;

    status = call->sr->upstream->headers_in.status_n;

    return (status == NGX_HTTP_SERVICE_UNAVAILABLE
            || status == NGX_HTTP_URLSTORE_MISDIRECTED)
           && ngx_http_urlstore_call_header(call, "urlstore-refused") != NULL;
}


/*
 * Whether the reply is from the shard that was called.  What a wrong address
 * leads to, such as a node without a cluster, does not know that it is asked as
 * a shard, and its answers would be taken for those of the shard.
 */

static ngx_uint_t
ngx_http_urlstore_call_shard(ngx_http_urlstore_call_t *call)
{
    ngx_str_t     *value;
    us_map_tag_t   tag;

    value = ngx_http_urlstore_call_header(call, "urlstore-map");

    return value && us_map_tag_parse(&tag, ngx_http_urlstore_str(value)) == 0
           && tag.shard == call->map->shards[call->shard].number
           && ngx_memcmp(tag.cluster, call->map->cluster, 16) == 0;
}


/*
 * The body filter of a subrequest.  nginx has one for subrequests in memory,
 * which fails if the reply is too long, and any failure of a filter ends the
 * client's connection.  Here what is too long is cut, and a reader of the reply
 * finds it incomplete; a reply that does not end is a failure all the same.
 */

ngx_int_t
ngx_http_urlstore_call_body(ngx_http_urlstore_call_t *call, ngx_chain_t *in)
{
    size_t       n;
    ngx_buf_t   *b;

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;

        if (ngx_buf_special(b)) {
            continue;
        }

        n = b->last - b->pos;
        call->received += n;

        if (call->received > NGX_HTTP_URLSTORE_CALL_MAX) {
            return NGX_ERROR;
        }

        n = ngx_min(n, NGX_HTTP_URLSTORE_CALL_REPLY - call->text.len);

        if (n && ngx_http_urlstore_call_room(call, n) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_memcpy(call->buf + call->text.len, b->pos, n);
        call->text.len += n;
        call->text.data = call->buf;

        b->pos = b->last;
    }

    return NGX_OK;
}


/* room for n more bytes; a length that is known is the first guess */

static ngx_int_t
ngx_http_urlstore_call_room(ngx_http_urlstore_call_t *call, size_t n)
{
    off_t    length;
    size_t   size;
    u_char  *buf;

    if (call->size - call->text.len >= n) {
        return NGX_OK;
    }

    length = call->sr->headers_out.content_length_n;

    size = ngx_max(call->size * 2, call->text.len + n);

    if (length > (off_t) size) {
        size = length;
    }

    size = ngx_min(size, NGX_HTTP_URLSTORE_CALL_REPLY);

    buf = ngx_palloc(call->r->pool, size);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    if (call->text.len) {
        ngx_memcpy(buf, call->buf, call->text.len);
    }

    call->buf = buf;
    call->size = size;

    return NGX_OK;
}


ngx_str_t *
ngx_http_urlstore_call_header(ngx_http_urlstore_call_t *call,
    const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    if (call->sr == NULL || call->sr->upstream == NULL) {
        return NULL;
    }

    len = ngx_strlen(name);

    for (part = &call->sr->upstream->headers_in.headers.part;
         part;
         part = part->next)
    {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len == len
                && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0)
            {
                return &h[i].value;
            }
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_urlstore_call_ended(ngx_http_urlstore_call_t *call)
{
    if (!call->ended) {
        return 0;
    }

    call->ended = 0;

    if (ngx_http_urlstore_call_again(call)) {
        call->node = (call->node + 1)
                     % call->map->shards[call->shard].nnodes;

        if (ngx_http_urlstore_call_send(call) == NGX_OK) {
            return 0;
        }
    }

    ngx_http_urlstore_call_remember(call);
    ngx_http_urlstore_call_count(call);

    return 1;
}


/* for the metrics */

static void
ngx_http_urlstore_call_count(ngx_http_urlstore_call_t *call)
{
    ngx_http_urlstore_calls_t  *sums;

    if (call->probes) {
        return;
    }

    sums = ngx_http_urlstore_call_sums(call);

    (void) ngx_atomic_fetch_add(&sums->calls, 1);
    (void) ngx_atomic_fetch_add(&sums->time,
                                ngx_http_urlstore_now() - call->start);

    if (call->status == 0 || call->status == NGX_HTTP_URLSTORE_MISDIRECTED
        || call->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        (void) ngx_atomic_fetch_add(&sums->failed, 1);
    }
}


static ngx_http_urlstore_calls_t *
ngx_http_urlstore_call_sums(ngx_http_urlstore_call_t *call)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(call->r, ngx_http_urlstore_module);

    return &ctx->zone->sh->calls[call->map->shards[call->shard].number];
}


/* where the next call of the shard begins */

static void
ngx_http_urlstore_call_remember(ngx_http_urlstore_call_t *call)
{
    if (call->probes || call->refused
        || call->status >= NGX_HTTP_INTERNAL_SERVER_ERROR)
    {
        return;
    }

    ngx_http_urlstore_call_sums(call)->node = call->status ? call->node
                                                           : call->node + 1;
}


/* whether the call may have an answer at another node */

static ngx_uint_t
ngx_http_urlstore_call_again(ngx_http_urlstore_call_t *call)
{
    if (call->tries >= call->map->shards[call->shard].nnodes
        || (call->probes && ngx_http_urlstore_now() - call->start
                            > 2000 * NGX_HTTP_URLSTORE_CALL_PROBE))
    {
        return 0;
    }

    if (call->refused) {
        return 1;
    }

    if (call->status) {
        return call->reads && call->status == NGX_HTTP_SERVICE_UNAVAILABLE;
    }

    return !call->sent || call->reads;
}


ngx_uint_t
ngx_http_urlstore_call_unsure(ngx_http_urlstore_call_t *call)
{
    ngx_uint_t  status;

    if (call->reads || call->refused || !call->sent) {
        return 0;
    }

    /* what was refused for itself was not done; but for the end of a batch */

    status = call->sr->upstream->headers_in.status_n;

    return status < NGX_HTTP_BAD_REQUEST
           || status >= NGX_HTTP_INTERNAL_SERVER_ERROR
           || status == NGX_HTTP_REQUEST_TIME_OUT
           || status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
}


ngx_int_t
ngx_http_urlstore_call_wait(ngx_http_request_t *r,
    ngx_http_urlstore_handler_pt gather)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->gather = gather;

    /*
     * A client that leaves does not end the request: what it has asked for is
     * under way, and its reply may be kept for a retry.
     */

    /* what is left of a body is discarded meanwhile */

    if (r->read_event_handler != ngx_http_discarded_request_body_handler) {
        r->read_event_handler = ngx_http_block_reading;
    }

    r->write_event_handler = ngx_http_urlstore_call_event;

    r->main->count++;

    return NGX_DONE;
}


/* some call has ended; or the client's connection is writable */

static void
ngx_http_urlstore_call_event(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ctx->gather(r);

    if (rc != NGX_AGAIN) {
        ngx_http_urlstore_finalize(r, rc);
    }
}


void
ngx_http_urlstore_call_log(ngx_http_urlstore_call_t *call, ngx_uint_t n)
{
    const us_str_t             *node;
    const us_shard_t           *shard;
    ngx_http_urlstore_ctx_t    *ctx;
    ngx_http_urlstore_calls_t  *sums;

    ctx = ngx_http_get_module_ctx(call->r, ngx_http_urlstore_module);
    shard = &call->map->shards[call->shard];
    node = &shard->nodes[call->node];
    sums = ngx_http_urlstore_call_sums(call);

    (void) ngx_atomic_fetch_add(&sums->items, n);
    (void) ngx_atomic_fetch_add(&sums->unknown,
                                ngx_http_urlstore_call_unsure(call));

    ngx_log_error(NGX_LOG_WARN, call->r->connection->log, 0,
                  "shard %uD of \"%V\" has not answered %ui items: status "
                  "%ui and %uz bytes from node \"%*s\" for \"%V\"%s%s",
                  shard->number, &ctx->zone->name, n,
                  call->status, call->text.len, node->len, node->data,
                  &call->path, call->foreign ? ", which is not this shard"
                                             : "",
                  ngx_http_urlstore_call_unsure(call)
                  ? "; it may have done what it was asked" : "");
}


ngx_http_urlstore_call_t *
ngx_http_urlstore_call_of(ngx_http_request_t *sr)
{
    if (sr->post_subrequest
        && sr->post_subrequest->handler == ngx_http_urlstore_call_done)
    {
        return sr->post_subrequest->data;
    }

    return NULL;
}
