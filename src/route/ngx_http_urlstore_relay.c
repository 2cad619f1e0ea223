
/*
 * Requests of a router that concern one shard: GET and DELETE of /url/ID.
 * Lists of ids are those of ngx_http_urlstore_ids.c.
 *
 * The shard gets the request with the arguments and the Accept of the client,
 * and its reply is the client's: status, type, text, and the headers below.
 * What the shard says to a router (421, or no reply) is a 503 for the client:
 * the id may well be there.
 */


#include "ngx_http_urlstore_route.h"
#include "../api/us_list.h"


/* bytes of a client's id that a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN    40


static ngx_int_t ngx_http_urlstore_relay(ngx_http_request_t *r,
    const us_map_t *map, ngx_uint_t shard);
static ngx_int_t ngx_http_urlstore_relay_gather(ngx_http_request_t *r);
static ngx_int_t ngx_http_urlstore_relay_headers(ngx_http_request_t *r,
    ngx_http_urlstore_call_t *call);
static ngx_int_t ngx_http_urlstore_relay_cache(ngx_http_request_t *r,
    ngx_http_urlstore_call_t *call);


/* of a shard's reply, in lower case as they are looked for, and as sent */

static const struct {
    const char                     *name;
    const char                     *key;
} ngx_http_urlstore_relayed[] = {
    { "location", "Location" },
    { "retry-after", "Retry-After" }
};


ngx_int_t
ngx_http_urlstore_route_url(ngx_http_request_t *r)
{
    int                       shard;
    uint64_t                  id;
    ngx_int_t                 rc;
    us_id_rc_t                known;
    const us_map_t           *map;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    known = us_id_parse(ngx_http_urlstore_str(&ctx->tail), &id);

    if (known == US_ID_BAD) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         NGX_HTTP_URLSTORE_NO_ID,
                                         ngx_min(ctx->tail.len,
                                                 NGX_HTTP_URLSTORE_SHOWN),
                                         ctx->tail.data);
    }

    if (known == US_ID_NEVER || id >> US_SHARD_SHIFT >= US_SHARDS) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_NOT_FOUND, NULL,
                                         "the id %*s was not given yet",
                                         ngx_min(ctx->tail.len,
                                                 NGX_HTTP_URLSTORE_SHOWN),
                                         ctx->tail.data);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ctx->id = id;

    map = ngx_http_urlstore_route_map(r, &rc);

    if (map == NULL) {
        return rc;
    }

    shard = us_map_shard(map, id >> US_SHARD_SHIFT);

    if (shard == -1) {

        /* the map may be old */

        return ngx_http_urlstore_route_absent(r, NULL,
                                              "the map of this router has no "
                                              "shard %uL",
                                              id >> US_SHARD_SHIFT);
    }

    return ngx_http_urlstore_relay(r, map, shard);
}


static ngx_int_t
ngx_http_urlstore_relay(ngx_http_request_t *r, const us_map_t *map,
    ngx_uint_t shard)
{
    u_char                    *p;
    ngx_str_t                 *accept;
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_call_t  *call;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    call = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_call_t));
    if (call == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_pnalloc(r->pool, sizeof("/url/?") + NGX_INT64_LEN + r->args.len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    call->r = r;
    call->map = map;
    call->shard = shard;
    call->method = r->method == NGX_HTTP_DELETE ? NGX_HTTP_DELETE
                                                : NGX_HTTP_GET;
    call->single = 1;
    call->reads = (r->method != NGX_HTTP_DELETE);

    call->path.data = p;
    call->path.len = ngx_sprintf(p, "/url/%uL%s%V", ctx->id,
                                 r->args.len ? "?" : "", &r->args) - p;

    accept = ngx_http_urlstore_header_in(r, "accept");

    if (accept) {
        call->accept = *accept;
    }

    ctx->data = call;

    if (ngx_http_urlstore_call(call) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_urlstore_call_wait(r, ngx_http_urlstore_relay_gather);
}


static ngx_int_t
ngx_http_urlstore_relay_gather(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_call_t  *call;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    call = ctx->data;

    if (!ngx_http_urlstore_call_ended(call)) {
        return NGX_AGAIN;
    }

    if (call->status != 0 && call->status != NGX_HTTP_URLSTORE_MISDIRECTED
        && (call->status < NGX_HTTP_INTERNAL_SERVER_ERROR
            || call->status == NGX_HTTP_SERVICE_UNAVAILABLE
            || call->status == NGX_HTTP_INSUFFICIENT_STORAGE))
    {
        return ngx_http_urlstore_relay_reply(r, call);
    }

    ngx_http_urlstore_call_log(call, 1);

    return ngx_http_urlstore_call_unsure(call)
           ? ngx_http_urlstore_route_unknown(r,
                                     call->map->shards[call->shard].number)
           : ngx_http_urlstore_route_silent(r,
                                     call->map->shards[call->shard].number);
}


ngx_uint_t
ngx_http_urlstore_call_problem(ngx_http_urlstore_call_t *call)
{
    ngx_str_t  *type;

    static ngx_str_t  problem = ngx_string("application/problem+json");

    if (call->status != NGX_HTTP_BAD_REQUEST
        && call->status != NGX_HTTP_NOT_FOUND)
    {
        return 0;
    }

    type = &call->sr->headers_out.content_type;

    return type->len == problem.len
           && ngx_strncmp(type->data, problem.data, problem.len) == 0;
}


ngx_int_t
ngx_http_urlstore_relay_reply(ngx_http_request_t *r,
    ngx_http_urlstore_call_t *call)
{
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    ctx->status = call->status;
    ctx->wrote = (call->status == NGX_HTTP_NO_CONTENT);
    ctx->type = call->sr->headers_out.content_type;

    switch (call->status) {

    case NGX_HTTP_OK:
        ngx_str_set(&ctx->status_name, "seen");
        break;

    case NGX_HTTP_NOT_FOUND:
        ngx_str_set(&ctx->status_name, "unknown");
        break;

    case NGX_HTTP_URLSTORE_GONE:
        ngx_str_set(&ctx->status_name, "deleted");
        break;

    default:
        break;
    }

    ngx_http_urlstore_problem_line(r, call->status);

    if (ngx_http_urlstore_relay_headers(r, call) != NGX_OK
        || ngx_http_urlstore_out_init(&ctx->out, r->pool, call->text.len + 1)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->out.pos = ngx_cpymem(ctx->out.pos, call->text.data, call->text.len);

    return ngx_http_urlstore_send(r);
}


static ngx_int_t
ngx_http_urlstore_relay_headers(ngx_http_request_t *r,
    ngx_http_urlstore_call_t *call)
{
    size_t      i;
    ngx_str_t  *value;

    for (i = 0; i < sizeof(ngx_http_urlstore_relayed)
                    / sizeof(ngx_http_urlstore_relayed[0]); i++)
    {
        value = ngx_http_urlstore_call_header(call,
                                            ngx_http_urlstore_relayed[i].name);
        if (value == NULL) {
            continue;
        }

        if (ngx_http_urlstore_header(r, ngx_http_urlstore_relayed[i].key,
                                     value)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    value = ngx_http_urlstore_call_header(call, "etag");

    if (value && ngx_http_urlstore_etag(r, value) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_relay_cache(r, call);
}


/*
 * Whether the answer stays is for the shard to say; for how long it may be
 * cached, and by whom, is for the location that the client asks.
 */

static ngx_int_t
ngx_http_urlstore_relay_cache(ngx_http_request_t *r,
    ngx_http_urlstore_call_t *call)
{
    ngx_str_t  *value;

    value = ngx_http_urlstore_call_header(call, "cache-control");

    if (value == NULL) {
        return NGX_OK;
    }

    if (ngx_strlcasestrn(value->data, value->data + value->len,
                         (u_char *) "max-age=", sizeof("max-age=") - 2))
    {
        return ngx_http_urlstore_cache_control(r, 1);
    }

    return ngx_strlcasestrn(value->data, value->data + value->len,
                            (u_char *) "no-cache", sizeof("no-cache") - 2)
           ? ngx_http_urlstore_cache_control(r, 0) : NGX_OK;
}
