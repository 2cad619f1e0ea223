
/*
 * What the requests of a router have in common: the map that one asks by, and
 * what becomes of shards' replies that are the client's.
 *
 * What a shard says to a router (421, or no reply) is a 503 for the client:
 * what it asks for may well be there.
 */


#include "ngx_http_urlstore_route.h"


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


const us_map_t *
ngx_http_urlstore_route_map(ngx_http_request_t *r, ngx_int_t *rc)
{
    us_str_t                      norm;
    const us_map_t               *map;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_cluster_t  *cluster;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    cluster = ctx->zone->own;

    map = ngx_http_urlstore_cluster_hold(cluster, r->pool);

    if (map == NULL) {
        *rc = ngx_http_urlstore_route_absent(r, NULL, "the cluster has no "
                                             "map so far");
        return NULL;
    }

    norm = us_norm_signature(ctx->zone->norm);

    if (us_str_compare(norm, map->norm) != 0) {
        *rc = ngx_http_urlstore_route_absent(r, NULL, "the cluster's map is "
                                             "for URLs normalized as "
                                             "\"%*s\", this router makes "
                                             "\"%*s\": reload it",
                                             map->norm.len, map->norm.data,
                                             norm.len, norm.data);
        return NULL;
    }

    return map;
}


ngx_int_t
ngx_http_urlstore_route_sites(ngx_http_request_t *r, const char *what)
{
    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST,
                                     "\"reason\":\"key\"",
                                     "\"%s\" is not allowed: the cluster "
                                     "divides URLs and not sites (its key is "
                                     "\"url\")", what);
}


ngx_int_t
ngx_http_urlstore_route_absent(ngx_http_request_t *r, const char *members,
    const char *fmt, ...)
{
    size_t                    len;
    u_char                    detail[NGX_MAX_ERROR_STR];
    va_list                   args;
    ngx_http_urlstore_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    us_tally_add(ctx->zone->tally, US_N_UNREADY, 1);

    if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    va_start(args, fmt);
    len = ngx_vslprintf(detail, detail + sizeof(detail), fmt, args) - detail;
    va_end(args);

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, members,
                                     "%*s", len, detail);
}


ngx_int_t
ngx_http_urlstore_route_silent(ngx_http_request_t *r, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "%s\"reason\":\"shard:%ui\"%Z",
                r->method == NGX_HTTP_POST ? "\"processed\":0," : "", number);

    return ngx_http_urlstore_route_absent(r, (char *) members,
                                          "shard %ui does not answer", number);
}


ngx_int_t
ngx_http_urlstore_route_unknown(ngx_http_request_t *r, ngx_uint_t number)
{
    u_char  members[96];

    ngx_sprintf(members, "\"reason\":\"unknown:%ui\"%Z", number);

    return ngx_http_urlstore_retry_after(r, 1) != NGX_OK
           ? NGX_HTTP_INTERNAL_SERVER_ERROR
           : ngx_http_urlstore_problem(r, NGX_HTTP_GATEWAY_TIME_OUT,
                                       (char *) members, "shard %ui was asked "
                                       "and has not answered: whether it has "
                                       "done it is not known", number);
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
