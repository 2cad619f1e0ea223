
/*
 * Requests leave texts of URLs in the memory that they free, in what a worker
 * keeps for the next ones (groups, pieces of output), and in its tables.  When
 * records of erased URLs are gone, each worker wipes all that; and once more
 * after a while, because blocks that were in use then have texts, too: those of
 * connections that wait for their next request.
 *
 * A replica's jobs wipe what they keep, and their stacks, before
 * (us_replica.c).
 *
 * Not wiped are blocks that are in use for longer, and what other modules keep.
 */


#include "ngx_http_urlstore_batch.h"
#include "../us_wipe.h"


/* between the two times, at most: longer than connections wait, mostly */
#define NGX_HTTP_URLSTORE_WIPE_AGAIN  (2 * 60 * 1000)    /* ms */


void
ngx_http_urlstore_wipe(ngx_http_urlstore_zone_t *zone)
{
    uint64_t    lsn;
    ngx_uint_t  i;

    lsn = us_store_erased_lsn(zone->store);

    if (zone->wipe_generation != zone->life.generation) {

        /* its LSNs may be others, or URLs were there again */

        zone->wipe_generation = zone->life.generation;
        zone->wiping = 0;
        zone->wiped = 0;
    }

    if (lsn <= zone->wiped
        || (ngx_msec_int_t) (ngx_current_msec - zone->wipe_next) < 0)
    {
        return;
    }

    /* a training has URLs of the store, until it has ended */

    if (zone->train && us_trainer_done(zone->train)) {
        ngx_http_urlstore_train(zone);
    }

    if (zone->train || !us_life_followed(&zone->life, lsn)) {
        return;
    }

    /* also if it fails: not at each tick, as it empties the hot table */

    zone->wipe_next = ngx_current_msec
                      + ngx_min(zone->erase_within / 8,
                                NGX_HTTP_URLSTORE_WIPE_AGAIN);

    us_store_wipe(zone->store);
    us_norm_ws_wipe(zone->ws);

    ngx_http_urlstore_hot_wipe();

    for (i = 0; i < NGX_HTTP_URLSTORE_PROFILES; i++) {
        if (zone->norms[i]) {
            us_norm_ws_wipe(zone->wss[i]);
        }
    }

    ngx_http_urlstore_group_exit();
    ngx_http_urlstore_out_exit();
    us_wipe_stack();

    if (us_wipe_heap() != 0) {
        return;
    }

    if (lsn == zone->wiping) {
        zone->wiped = lsn;
        us_life_wiped(&zone->life, lsn);
        return;
    }

    zone->wiping = lsn;
}
