
/*
 * What a store held over time, for the status page's curves.
 *
 *     recent   | time urls used | ...    one in 10 seconds, for an hour
 *     older    | time urls used | ...    one in 15 minutes, for a week
 *
 * Rings in the zone's shared memory: sample number n lies at n % size, and
 * `taken` tells how many there were.  Every worker looks whether a sample is
 * due; the one that moves `due` on takes it, so that a killed worker costs
 * one sample at most.  A sample is written before it is counted.  A reader
 * may meet one that is being overwritten, which is the oldest: it takes none
 * that is not later than the one before.
 */


#include "ngx_http_urlstore.h"


#define NGX_HTTP_URLSTORE_RECENT        360
#define NGX_HTTP_URLSTORE_RECENT_EVERY  10       /* seconds */
#define NGX_HTTP_URLSTORE_OLDER         672
#define NGX_HTTP_URLSTORE_OLDER_EVERY   900

/* [1766000000,1000000000000,1000000000000], */
#define NGX_HTTP_URLSTORE_SAMPLE_LEN    (3 * NGX_INT64_LEN + 5)


typedef struct {
    time_t                          time;
    uint64_t                        urls;
    uint64_t                        used;     /* bytes of the zone */
} ngx_http_urlstore_sample_t;


typedef struct {
    ngx_atomic_t                    due;      /* time of the next */
    ngx_atomic_t                    taken;
} ngx_http_urlstore_ring_t;


struct ngx_http_urlstore_history_s {
    ngx_http_urlstore_ring_t        recent;
    ngx_http_urlstore_ring_t        older;
    ngx_http_urlstore_sample_t      recents[NGX_HTTP_URLSTORE_RECENT];
    ngx_http_urlstore_sample_t      olders[NGX_HTTP_URLSTORE_OLDER];
};


static void ngx_http_urlstore_history_tick(ngx_event_t *ev);
static void ngx_http_urlstore_history_take(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_ring_t *ring, ngx_http_urlstore_sample_t *samples,
    ngx_uint_t size, time_t every);
static ngx_http_urlstore_sample_t ngx_http_urlstore_history_now(
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_history_put(ngx_http_urlstore_out_t *out,
    const ngx_http_urlstore_ring_t *ring,
    const ngx_http_urlstore_sample_t *samples, ngx_uint_t size, time_t *last,
    time_t before);
static ngx_int_t ngx_http_urlstore_history_sample(
    ngx_http_urlstore_out_t *out, const ngx_http_urlstore_sample_t *sample,
    time_t *last);


/* a worker's part in it, from its start on */

void
ngx_http_urlstore_history_start(ngx_http_urlstore_zone_t *zone)
{
    ngx_event_t  *ev;

    ev = &zone->sampler;

    ev->handler = ngx_http_urlstore_history_tick;
    ev->data = zone;
    ev->log = ngx_cycle->log;
    ev->cancelable = 1;

    ngx_http_urlstore_history_tick(ev);
}


ngx_http_urlstore_history_t *
ngx_http_urlstore_history_create(ngx_slab_pool_t *shpool)
{
    return ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_history_t));
}


static void
ngx_http_urlstore_history_tick(ngx_event_t *ev)
{
    ngx_http_urlstore_zone_t *zone = ev->data;

    ngx_int_t                     wait;
    ngx_http_urlstore_history_t  *h;

    h = zone->sh->history;

    ngx_http_urlstore_history_take(zone, &h->recent, h->recents,
                                   NGX_HTTP_URLSTORE_RECENT,
                                   NGX_HTTP_URLSTORE_RECENT_EVERY);

    ngx_http_urlstore_history_take(zone, &h->older, h->olders,
                                   NGX_HTTP_URLSTORE_OLDER,
                                   NGX_HTTP_URLSTORE_OLDER_EVERY);

    wait = (ngx_int_t) h->recent.due - ngx_time();
    wait = ngx_max(wait, 1);
    wait = ngx_min(wait, NGX_HTTP_URLSTORE_RECENT_EVERY);

    ngx_add_timer(ev, wait * 1000);
}


static void
ngx_http_urlstore_history_take(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_ring_t *ring, ngx_http_urlstore_sample_t *samples,
    ngx_uint_t size, time_t every)
{
    time_t  now, due;

    now = ngx_time();
    due = ring->due;

    /* the clock may have been put back */

    if ((now < due && due - now <= every)
        || !ngx_atomic_cmp_set(&ring->due, due, now + every))
    {
        return;
    }

    samples[ring->taken % size] = ngx_http_urlstore_history_now(zone);

    /* a full barrier: the sample is there before it is counted */

    (void) ngx_atomic_fetch_add(&ring->taken, 1);
}


static ngx_http_urlstore_sample_t
ngx_http_urlstore_history_now(ngx_http_urlstore_zone_t *zone)
{
    us_store_info_t             info;
    ngx_http_urlstore_sample_t  sample;

    us_store_info(zone->store, &info);

    sample.time = ngx_time();
    sample.urls = info.urls;
    sample.used = info.used;

    return sample;
}


/* what is older than the recent ones, these, and what is now */

ngx_int_t
ngx_http_urlstore_history(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone)
{
    time_t                        last, recent;
    ngx_uint_t                    first;
    ngx_http_urlstore_sample_t    now;
    ngx_http_urlstore_history_t  *h;

    h = zone->sh->history;
    last = 0;

    first = h->recent.taken;
    first = first > NGX_HTTP_URLSTORE_RECENT ? first : 0;
    recent = h->recents[first % NGX_HTTP_URLSTORE_RECENT].time;

    if (ngx_http_urlstore_out_printf(out, 16, ",\"history\":[") != NGX_OK
        || ngx_http_urlstore_history_put(out, &h->older, h->olders,
                                         NGX_HTTP_URLSTORE_OLDER, &last,
                                         recent)
           != NGX_OK
        || ngx_http_urlstore_history_put(out, &h->recent, h->recents,
                                         NGX_HTTP_URLSTORE_RECENT, &last,
                                         ngx_time())
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    now = ngx_http_urlstore_history_now(zone);

    if (ngx_http_urlstore_history_sample(out, &now, &last) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_out_printf(out, 1, "]");
}


/* the samples of a ring that are later than *last and earlier than before */

static ngx_int_t
ngx_http_urlstore_history_put(ngx_http_urlstore_out_t *out,
    const ngx_http_urlstore_ring_t *ring,
    const ngx_http_urlstore_sample_t *samples, ngx_uint_t size, time_t *last,
    time_t before)
{
    ngx_uint_t                  i, taken;
    ngx_http_urlstore_sample_t  sample;

    taken = ring->taken;

    for (i = taken > size ? taken - size : 0; i < taken; i++) {
        sample = samples[i % size];

        if (sample.time > *last && sample.time < before
            && ngx_http_urlstore_history_sample(out, &sample, last) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_history_sample(ngx_http_urlstore_out_t *out,
    const ngx_http_urlstore_sample_t *sample, time_t *last)
{
    const char  *comma;

    comma = *last ? "," : "";
    *last = sample->time;

    return ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_SAMPLE_LEN,
                                        "%s[%T,%uL,%uL]", comma, sample->time,
                                        sample->urls, sample->used);
}
