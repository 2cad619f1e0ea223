
/*
 * The fan of a request: its calls to shards, and what becomes of their replies.
 *
 *     fan_calls(), call_begin() for each, fan_wait()
 *                                          |
 *         a subrequest has ended           |     the request is posted
 *                 |                        v
 *                 '---> fan_event() ---> ended() of each, done()
 *
 * What a shard says to a router (421, or no reply) is a 503 for the client:
 * what it asks for may well be there.
 */


#include "ngx_http_urlstore_route.h"


/* bytes of the words and numbers of a path */
#define NGX_HTTP_URLSTORE_PATH     128


ngx_int_t
ngx_http_urlstore_fan(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_fan_t **made)
{
    us_str_t                  norm;
    const us_map_t           *map;
    ngx_http_request_t       *r;
    ngx_http_urlstore_fan_t  *fan;

    r = ctx->r;

    map = ngx_http_urlstore_cluster_hold(ctx->zone->own, r->pool);

    if (map == NULL) {
        return ngx_http_urlstore_route_absent(ctx, NULL, "the cluster has no "
                                              "map so far");
    }

    norm = us_norm_signature(ctx->zone->norm);

    if (!us_norm_same(norm, map->norm)) {
        return ngx_http_urlstore_route_absent(ctx, NULL, "the cluster's map is "
                                              "for URLs normalized as "
                                              "\"%*s\", this router makes "
                                              "\"%*s\": reload it",
                                              map->norm.len, map->norm.data,
                                              norm.len, norm.data);
    }

    fan = ngx_pcalloc(r->pool, sizeof(ngx_http_urlstore_fan_t));
    if (fan == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    fan->ctx = ctx;
    fan->map = map;

    ngx_http_set_ctx(r, fan, ngx_http_urlstore_route_module);
    *made = fan;

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_urlstore_fan_calls(ngx_http_urlstore_fan_t *fan, ngx_uint_t n,
    ngx_uint_t method)
{
    ngx_uint_t  i;

    method = method == NGX_HTTP_HEAD ? NGX_HTTP_GET : method;

    fan->n = n;
    fan->calls = ngx_pcalloc(fan->ctx->r->pool,
                             n * sizeof(ngx_http_urlstore_call_t));
    if (fan->calls == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        fan->calls[i].ctx = fan->ctx;
        fan->calls[i].map = fan->map;
        fan->calls[i].method = method;
        fan->calls[i].end.reads = (method == NGX_HTTP_GET);
    }

    return NGX_OK;
}


/* some call has ended; or the client's connection is writable */

static void
ngx_http_urlstore_fan_event(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_http_urlstore_fan_t   *fan;
    ngx_http_urlstore_call_t  *call;

    fan = ngx_http_get_module_ctx(r, ngx_http_urlstore_route_module);
    r->connection->error |= fan->broken;

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        if (ngx_http_urlstore_call_ended(call)) {
            fan->under_way--;

            if (fan->ended) {
                fan->ended(fan, call);
            }
        }
    }

    rc = fan->under_way ? NGX_AGAIN : fan->done(fan->ctx);

    if (rc != NGX_AGAIN) {
        ngx_http_urlstore_finalize(r, rc);
    }
}


ngx_int_t
ngx_http_urlstore_fan_wait(ngx_http_urlstore_fan_t *fan)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = fan->ctx->r;
    rc = fan->under_way ? NGX_AGAIN : fan->done(fan->ctx);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    /*
     * A client that leaves, or resets its stream, does not end the request:
     * what it has asked for is under way, and is counted and charged when it
     * is answered.  What is left of a body is discarded meanwhile.
     */

    if (r->read_event_handler != ngx_http_discarded_request_body_handler) {
        r->read_event_handler = ngx_http_block_reading;
    }

    r->write_event_handler = ngx_http_urlstore_fan_event;

    r->main->count++;

    return NGX_DONE;
}


ngx_int_t
ngx_http_urlstore_fan_all(ngx_http_urlstore_fan_t *fan, const ngx_str_t *path,
    ngx_uint_t method, ngx_uint_t probes)
{
    ngx_uint_t                 i;
    ngx_http_urlstore_call_t  *call;

    if (ngx_http_urlstore_fan_calls(fan, fan->map->nshards, method)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < fan->n; i++) {
        call = &fan->calls[i];

        call->shard = i;
        call->single = 1;
        call->probes = probes;
        call->path = *path;

        if (!probes) {
            ngx_str_set(&call->accept, "text/plain");
        }

        (void) ngx_http_urlstore_call_begin(fan, call);
    }

    return ngx_http_urlstore_fan_wait(fan);
}


ngx_int_t
ngx_http_urlstore_route_path(ngx_http_urlstore_ctx_t *ctx, ngx_str_t *path,
    const char *fmt, ...)
{
    size_t   max;
    va_list  args;

    max = NGX_HTTP_URLSTORE_PATH + ctx->r->args.len + ctx->tail.len
          + ctx->set_name.len;
    path->data = ngx_pnalloc(ctx->r->pool, max);

    if (path->data == NULL) {
        return NGX_ERROR;
    }

    va_start(args, fmt);
    path->len = ngx_vslprintf(path->data, path->data + max, fmt, args)
                - path->data;
    va_end(args);

    /* a path that was cut would ask for something else */

    return path->len < max ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_urlstore_route_sites(ngx_http_urlstore_ctx_t *ctx, const char *what)
{
    return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST,
                                     "\"reason\":\"key\"",
                                     "\"%s\" is not allowed: the cluster "
                                     "divides URLs and not sites (its key is "
                                     "\"url\")", what);
}


ngx_int_t
ngx_http_urlstore_route_absent(ngx_http_urlstore_ctx_t *ctx,
    const char *members, const char *fmt, ...)
{
    size_t   len;
    u_char   detail[NGX_MAX_ERROR_STR];
    va_list  args;

    us_tally_add(ctx->zone->tally, US_N_UNREADY, 1);

    ngx_http_urlstore_retry_after(ctx, 1);

    va_start(args, fmt);
    len = ngx_vslprintf(detail, detail + sizeof(detail), fmt, args) - detail;
    va_end(args);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE, members,
                                     "%*s", len, detail);
}


ngx_int_t
ngx_http_urlstore_route_lacks(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t number)
{
    return ngx_http_urlstore_route_absent(ctx, NULL, "the map of this router "
                                          "has no shard %ui", number);
}


ngx_int_t
ngx_http_urlstore_route_silent(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "%s\"reason\":\"shard:%ui\"%Z",
                ctx->r->method == NGX_HTTP_POST ? "\"processed\":0," : "",
                number);

    return ngx_http_urlstore_route_absent(ctx, (char *) members,
                                          "shard %ui does not answer", number);
}


ngx_int_t
ngx_http_urlstore_route_unknown(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "\"reason\":\"unknown:%ui\"%Z", number);

    ngx_http_urlstore_retry_after(ctx, 1);

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_GATEWAY_TIME_OUT,
                                     (char *) members, "shard %ui was asked "
                                     "and has not answered: whether it has "
                                     "done it is not known", number);
}


ngx_uint_t
ngx_http_urlstore_call_problem(ngx_http_urlstore_call_t *call)
{
    static const ngx_str_t  problem = ngx_string("application/problem+json");

    if (call->end.status != NGX_HTTP_BAD_REQUEST
        && call->end.status != NGX_HTTP_NOT_FOUND
        && call->end.status != NGX_HTTP_CONFLICT
        && call->end.status != NGX_HTTP_INSUFFICIENT_STORAGE)
    {
        return 0;
    }

    return ngx_http_urlstore_same(&call->headers[NGX_HTTP_URLSTORE_CALL_TYPE],
                                  &problem);
}


ngx_int_t
ngx_http_urlstore_relay_reply(ngx_http_urlstore_ctx_t *ctx,
    ngx_http_urlstore_call_t *call)
{
    ngx_str_t  *h, *cache;

    ctx->status = call->end.status;
    ctx->wrote = (call->end.status == NGX_HTTP_NO_CONTENT);
    ctx->type = call->headers[NGX_HTTP_URLSTORE_CALL_TYPE];

    ctx->answer = call->end.status == NGX_HTTP_OK ? US_ANSWER_SEEN
                  : call->end.status == NGX_HTTP_NOT_FOUND ? US_ANSWER_UNKNOWN
                  : call->end.status == NGX_HTTP_URLSTORE_GONE
                  ? US_ANSWER_DELETED
                  : ctx->answer;

    ngx_http_urlstore_problem_line(ctx->r, call->end.status);

    h = call->headers;

    if (h[NGX_HTTP_URLSTORE_CALL_LOCATION].data) {
        ngx_http_urlstore_header(ctx, "Location",
                                 &h[NGX_HTTP_URLSTORE_CALL_LOCATION]);
    }

    if (h[NGX_HTTP_URLSTORE_CALL_RETRY].data) {
        ngx_http_urlstore_header(ctx, "Retry-After",
                                 &h[NGX_HTTP_URLSTORE_CALL_RETRY]);
    }

    if (h[NGX_HTTP_URLSTORE_CALL_ETAG].data) {
        ngx_http_urlstore_etag(ctx, &h[NGX_HTTP_URLSTORE_CALL_ETAG]);
    }

    /*
     * Whether the answer stays is for the shard to say; for how long it may be
     * cached, and by whom, is for the location that the client asks.
     */

    cache = &h[NGX_HTTP_URLSTORE_CALL_CACHE];

    if (cache->data
        && ngx_strlcasestrn(cache->data, cache->data + cache->len,
                            (u_char *) "max-age=", sizeof("max-age=") - 2))
    {
        ngx_http_urlstore_cache_control(ctx, 1);

    } else if (cache->data
               && ngx_strlcasestrn(cache->data, cache->data + cache->len,
                                   (u_char *) "no-cache",
                                   sizeof("no-cache") - 2))
    {
        ngx_http_urlstore_cache_control(ctx, 0);
    }

    return ngx_http_urlstore_send_text(ctx, call->end.text);
}
