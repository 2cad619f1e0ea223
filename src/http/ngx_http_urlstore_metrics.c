
/*
 * Counters, and what reads them: see ngx_http_urlstore_slot_t.
 */


#include "ngx_http_urlstore.h"


/* upper bounds of the batch histogram, in us; the last bucket has none */

static const uint64_t  ngx_http_urlstore_bounds[] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000
};


uint64_t
ngx_http_urlstore_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


/* one batch that took us microseconds */

void
ngx_http_urlstore_observe(ngx_http_urlstore_zone_t *zone, uint64_t us)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_URLSTORE_BUCKETS - 1; i++) {
        if (us <= ngx_http_urlstore_bounds[i]) {
            break;
        }
    }

    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_BUCKET + i, 1);
    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_SUM, us);
}


/* a counter over all workers */

uint64_t
ngx_http_urlstore_sum(ngx_http_urlstore_zone_t *zone, ngx_uint_t counter)
{
    uint64_t    sum;
    ngx_uint_t  i;

    sum = 0;

    for (i = 0; i < NGX_HTTP_URLSTORE_SLOTS; i++) {
        sum += zone->sh->slots[i].n[counter];
    }

    return sum;
}
