/*
 * Query arguments: which of them there may be (api/us_request.h), and their
 * values.  Those of claims, older=DURATION, times=1 and at=TIME, are of a zone
 * that keeps claims (revisit=UNIT).  The rule is in store/us_claims.c.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_time.h"


/* bytes of an argument that a problem shows */
#define NGX_HTTP_URLSTORE_ARG   40

/* of a value, what a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN   100


ngx_int_t
ngx_http_urlstore_args(ngx_http_urlstore_ctx_t *ctx, const char *known)
{
    us_str_t         name;
    us_args_fault_t  fault;

    fault = us_args_check(ngx_http_urlstore_str(&ctx->r->args), known, &name);

    switch (fault) {

    case US_ARGS_OK:
        return NGX_DECLINED;

    case US_ARGS_UNKNOWN:
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                         "unknown query argument \"%*s\"; "
                                         "allowed are: %s",
                                         ngx_min(name.len,
                                                 NGX_HTTP_URLSTORE_ARG),
                                         name.data, *known ? known : "none");

    case US_ARGS_FLAG:
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query argument \"%*s\" is a "
                                         "flag; its value is 1 or 0",
                                         ngx_min(name.len,
                                                 NGX_HTTP_URLSTORE_ARG),
                                         name.data);

    default:
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query argument \"%*s\" %s",
                                         name.len, name.data,
                                         fault == US_ARGS_TWICE
                                         ? "is given twice" : "has no value");
    }
}


ngx_int_t
ngx_http_urlstore_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    us_str_t  raw;

    value->len = 0;
    value->data = NULL;

    if (!us_args_find(ngx_http_urlstore_str(&r->args), name, &raw)) {
        return NGX_DECLINED;
    }

    value->data = ngx_pnalloc(r->pool, raw.len + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    value->len = us_input_unescape(value->data, raw.data, raw.len);
    value->data[value->len] = '\0';

    return NGX_OK;
}


/* NAME=1 */

ngx_uint_t
ngx_http_urlstore_flag(ngx_http_request_t *r, const char *name)
{
    return us_args_flag(ngx_http_urlstore_str(&r->args), name);
}


ngx_int_t
ngx_http_urlstore_urls_number(ngx_http_urlstore_ctx_t *ctx, const char *name,
    uint64_t least, uint64_t *n)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_urlstore_arg(ctx->r, name, &value);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_DECLINED
                                  : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (us_id_parse(ngx_http_urlstore_str(&value), n) != US_ID_OK
        || *n < least)
    {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                         "invalid \"%s\" \"%*s\"; a decimal "
                                         "number, %uL or more, is expected",
                                         name, ngx_min(value.len, 100),
                                         value.data, least);
    }

    return NGX_DECLINED;
}


/* NGX_DECLINED: the zone keeps claims; else the reply has been sent */

ngx_int_t
ngx_http_urlstore_claims(ngx_http_urlstore_ctx_t *ctx, const char *what,
    uint64_t *least, uint64_t *most)
{
    ngx_http_urlstore_zone_t  *zone;

    zone = ctx->zone;

    if (!us_life_recent(&zone->life)) {
        us_tally_add(zone->tally, US_N_UNREADY, 1);
        return ngx_http_urlstore_unready(ctx, zone, NULL);
    }

    *least = us_store_revisit(zone->store);
    *most = US_STORE_OLDER_MAX * *least;

    if (*least) {
        return NGX_DECLINED;
    }

    if (zone->life.conf.store.revisit) {

        ngx_http_urlstore_retry_after(ctx, 1);

        return ngx_http_urlstore_problem(ctx, NGX_HTTP_SERVICE_UNAVAILABLE,
                                         NULL, "claims are being added");
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                     "\"%s\" is not allowed: the zone keeps no "
                                     "claims (revisit=UNIT of urlstore_zone)",
                                     what);
}


ngx_int_t
ngx_http_urlstore_times(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t *times)
{
    uint64_t   least, most;
    ngx_int_t  rc;

    *times = 0;

    if (!ngx_http_urlstore_flag(ctx->r, "times")) {
        return NGX_DECLINED;
    }

    rc = ctx->zone->kind->claims(ctx, "times", &least, &most);
    *times = (rc == NGX_DECLINED);

    return rc;
}


ngx_int_t
ngx_http_urlstore_older(ngx_http_urlstore_ctx_t *ctx, uint32_t *units)
{
    u_char    *p;
    uint64_t   s, unit, max;
    ngx_int_t  rc;
    ngx_str_t  value;
    u_char     least[US_TIME_TEXT + 1];
    u_char     most[US_TIME_TEXT + 1];

    *units = 0;

    rc = ngx_http_urlstore_arg(ctx->r, "older", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED;
    }

    rc = ctx->zone->kind->claims(ctx, "older", &unit, &max);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (us_time_duration(ngx_http_urlstore_str(&value), &s) == 0
        && s >= unit && s <= max)
    {
        *units = (uint32_t) ((s + unit - 1) / unit);
        return NGX_DECLINED;
    }

    p = us_time_put(least, unit);
    *p = '\0';
    p = us_time_put(most, max);
    *p = '\0';

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid \"older\" value \"%*s\"; use a "
                                     "duration from %s to %s, such as 90m, 12h "
                                     "or 30d",
                                     ngx_min(value.len,
                                             NGX_HTTP_URLSTORE_SHOWN),
                                     value.data, least, most);
}


/* *at: now, if there is no at=; 0: clear=1 */

ngx_int_t
ngx_http_urlstore_claim_time(ngx_http_urlstore_ctx_t *ctx, ngx_uint_t clear,
    uint64_t *at)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *at = clear ? 0 : ngx_time();

    rc = ngx_http_urlstore_arg(ctx->r, "at", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED;
    }

    if (clear) {
        return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query has \"at\" and \"clear\"; "
                                         "one of them is allowed");
    }

    if (us_time_point(ngx_http_urlstore_str(&value), at) == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_problem(ctx, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid \"at\" value \"%*s\"; use "
                                     "seconds since 1970, or a time such as "
                                     "2026-11-22T08:28:18Z",
                                     ngx_min(value.len,
                                             NGX_HTTP_URLSTORE_SHOWN),
                                     value.data);
}
