
/*
 * Claims in requests: older=DURATION, times=1 and at=TIME, of a zone that keeps
 * claims (revisit=UNIT).  The rule is in store/us_claims.h.
 */


#include "ngx_http_urlstore_request.h"
#include "ngx_http_urlstore_persist.h"
#include "../api/us_time.h"


/* of a value, what a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN   100


/* NGX_DECLINED: the zone keeps claims; else the reply has been sent */

ngx_int_t
ngx_http_urlstore_claims(ngx_http_request_t *r, const char *what)
{
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    if (zone->filter) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "\"%s\" is not allowed: a filter "
                                         "keeps no claims", what);
    }

    if (zone->route) {

        /* the shards know */

        return NGX_DECLINED;
    }

    if (us_store_revisit(zone->store)) {
        return NGX_DECLINED;
    }

    if (zone->persist && zone->persist->life.conf.store.revisit) {

        if (ngx_http_urlstore_retry_after(r, 1) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                         "claims are being added");
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "\"%s\" is not allowed: the zone keeps no "
                                     "claims (revisit=UNIT of urlstore_zone)",
                                     what);
}


ngx_int_t
ngx_http_urlstore_times(ngx_http_request_t *r, ngx_uint_t *times)
{
    ngx_int_t  rc;

    *times = 0;

    if (!ngx_http_urlstore_flag(r, "times")) {
        return NGX_DECLINED;
    }

    rc = ngx_http_urlstore_claims(r, "times");
    *times = (rc == NGX_DECLINED);

    return rc;
}


ngx_int_t
ngx_http_urlstore_older(ngx_http_request_t *r, uint32_t *units)
{
    u_char                    *p;
    uint64_t                   s, unit, max;
    ngx_int_t                  rc;
    ngx_str_t                  value;
    ngx_http_urlstore_ctx_t   *ctx;
    u_char                     least[US_TIME_TEXT + 1];
    u_char                     most[US_TIME_TEXT + 1];

    *units = 0;

    rc = ngx_http_urlstore_arg(r, "older", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED;
    }

    rc = ngx_http_urlstore_claims(r, "older");

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    /* of a router: by the shortest unit, and the longest; shards know theirs */

    unit = ctx->zone->route ? 60 : us_store_revisit(ctx->zone->store);
    max = US_STORE_OLDER_MAX * (ctx->zone->route ? 24 * 60 * 60 : unit);

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

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid \"older\" value \"%*s\"; use a "
                                     "duration from %s to %s, such as 90m, 12h "
                                     "or 30d",
                                     ngx_min(value.len,
                                             NGX_HTTP_URLSTORE_SHOWN),
                                     value.data, least, most);
}


/* *at: now, if there is no at=; 0: clear=1 */

ngx_int_t
ngx_http_urlstore_claim_time(ngx_http_request_t *r, ngx_uint_t clear,
    uint64_t *at)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    *at = clear ? 0 : ngx_time();

    rc = ngx_http_urlstore_arg(r, "at", &value);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_HTTP_INTERNAL_SERVER_ERROR : NGX_DECLINED;
    }

    if (clear) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                         "the query has \"at\" and \"clear\"; "
                                         "one of them is allowed");
    }

    if (us_time_point(ngx_http_urlstore_str(&value), at) == 0) {
        return NGX_DECLINED;
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_BAD_REQUEST, NULL,
                                     "invalid \"at\" value \"%*s\"; use "
                                     "seconds since 1970, or a time such as "
                                     "2026-11-22T08:28:18Z",
                                     ngx_min(value.len,
                                             NGX_HTTP_URLSTORE_SHOWN),
                                     value.data);
}
