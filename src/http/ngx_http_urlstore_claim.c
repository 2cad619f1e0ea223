
/*
 * Claims in requests: older=DURATION, times=1 and at=TIME, of a zone that keeps
 * claims (revisit=UNIT).  The rule is in store/us_claims.c.
 */


#include "ngx_http_urlstore_request.h"
#include "../api/us_time.h"
#include "../us_clock.h"


/* of a value, what a problem shows */
#define NGX_HTTP_URLSTORE_SHOWN   100

/* a time of day that has moved by so many seconds has not been slewed */
#define NGX_HTTP_URLSTORE_JUMP    86400


/*
 * Gives the store the time of the calls that follow.  The clock of claims never
 * goes back, so a time that is far ahead is logged: once by all workers when
 * the machine's clock jumps, and once when the store's clock is ahead of it,
 * after it was corrected, or as the clock of another node is.
 */

void
ngx_http_urlstore_clock(ngx_http_urlstore_zone_t *zone)
{
    int64_t                  now, ahead, offset, was;
    uint64_t                 unit;
    ngx_http_urlstore_sh_t  *sh;

    if (zone->store == NULL) {
        return;
    }

    now = ngx_time();
    unit = us_store_revisit(zone->store);
    us_store_time(zone->store, now);

    if (unit == 0 || now == zone->clock) {
        return;
    }

    zone->clock = now;
    sh = zone->sh;

    was = (int64_t) sh->clock_offset;
    offset = now - (int64_t) (us_clock_boottime() / 1000);

    if (was == 0) {
        (void) ngx_atomic_cmp_set(&sh->clock_offset, 0, offset);

    } else if (llabs(offset - was) > NGX_HTTP_URLSTORE_JUMP
               && ngx_atomic_cmp_set(&sh->clock_offset, was, offset))
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the time of day has jumped by %L "
                      "seconds; claims are dated by it",
                      &zone->name, offset - was);
    }

    ahead = (int64_t) us_store_clock(zone->store) - now;

    if ((ahead > (int64_t) unit) == (sh->clock_ahead != 0)
        || !ngx_atomic_cmp_set(&sh->clock_ahead, ahead <= (int64_t) unit,
                               ahead > (int64_t) unit)
        || ahead <= (int64_t) unit)
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "urlstore_zone \"%V\": its clock of claims is %L seconds "
                  "ahead of this machine's; no claim gets older until the time "
                  "of day has reached it", &zone->name, ahead);
}


/* NGX_DECLINED: the zone keeps claims; else the reply has been sent */

ngx_int_t
ngx_http_urlstore_claims(ngx_http_request_t *r, const char *what,
    uint64_t *least, uint64_t *most)
{
    ngx_http_urlstore_ctx_t   *ctx;
    ngx_http_urlstore_zone_t  *zone;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    zone = ctx->zone;

    if (!us_life_recent(&zone->life)) {
        us_tally_add(zone->tally, US_N_UNREADY, 1);
        return ngx_http_urlstore_unready(r, zone, NULL);
    }

    *least = us_store_revisit(zone->store);
    *most = US_STORE_OLDER_MAX * *least;

    if (*least) {
        return NGX_DECLINED;
    }

    if (zone->life.conf.store.revisit) {

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
    uint64_t                  least, most;
    ngx_int_t                 rc;
    ngx_http_urlstore_ctx_t  *ctx;

    *times = 0;

    if (!ngx_http_urlstore_flag(r, "times")) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ctx->zone->kind->claims(r, "times", &least, &most);
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

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ctx->zone->kind->claims(r, "older", &unit, &max);

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
