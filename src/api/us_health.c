
/*
 * See us_health.h.
 */


#include "us_health.h"
#include "../life/us_replicate.h"
#include "../us_text.h"


static uint8_t *
us_health_replica(uint8_t *p, const us_life_t *l)
{
    us_life_lag_t  lag;

    us_life_lag(l, &lag);

    p = us_put(p, ",\"connected\":");
    p = us_put(p, lag.connected ? "true" : "false");
    p = us_put(p, ",\"lsn\":");
    p = us_put_u64(p, lag.lsn);
    p = us_put(p, ",\"primary_lsn\":");
    p = us_put_u64(p, lag.published);
    p = us_put(p, ",\"lag_bytes\":");
    p = us_put_u64(p, lag.bytes);
    p = us_put(p, ",\"lag_seconds\":");

    if (lag.ms == UINT64_MAX) {
        p = us_put(p, "null");

    } else {
        p = us_put_u64(p, lag.ms / 1000);
        *p++ = '.';
        p = us_put_digits(p, lag.ms % 1000, 3);
    }

    return p;
}


static uint8_t *
us_health_replicated(uint8_t *p, const us_life_t *l)
{
    us_replicate_info_t  log;

    us_replicate_info(l, &log);

    p = us_put(p, ",\"node\":");
    p = us_json_quote_bytes(p, us_str_of(l->conf.replicate->node));
    p = us_put(p, ",\"holder\":");
    p = us_json_quote_bytes(p, us_str_of(log.holder));
    p = us_put(p, ",\"term\":");
    p = us_put_u64(p, log.term);
    p = us_put(p, ",\"lag_bytes\":");
    p = us_put_u64(p, log.lag);

    return p;
}


static uint8_t *
us_health_reason(uint8_t *p, const us_life_t *l)
{
    us_life_info_t  info;

    us_life_info(l, &info);

    if (info.reason[0]) {
        p = us_put(p, ",\"reason\":");
        p = us_json_quote_bytes(p, us_str_of(info.reason));
    }

    return p;
}


uint8_t *
us_health(uint8_t *p, us_format_t format, const char *status, int writable,
    int full, uint64_t epoch, const us_life_t *life)
{
    if (format == US_FORMAT_TEXT) {
        p = us_put(p, status);
        return us_put(p, "\n");
    }

    p = us_put(p, "{\"status\":\"");
    p = us_put(p, status);
    p = us_put(p, "\",\"writable\":");
    p = us_put(p, writable ? "true" : "false");
    p = us_put(p, ",\"full\":");
    p = us_put(p, full ? "true" : "false");
    p = us_put(p, ",\"epoch\":");
    p = us_put_u64(p, epoch);

    if (life && life->conf.follow) {
        p = us_health_replica(p, life);

    } else if (life && life->conf.replicate) {
        p = us_health_replicated(p, life);
    }

    if (life) {
        p = us_health_reason(p, life);
    }

    return us_put(p, "}\n");
}
