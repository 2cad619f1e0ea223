
/*
 * What follows erasures in each process: a sweep of the store, by one of them,
 * then a wipe of what is private.
 *
 *     us_life_sweep()   deletes what is on the list, and erases its records
 *          |
 *     us_store_erased_lsn()        the zone has no text of them from here on
 *          |
 *          +--> us_life_wiped()    each process, twice
 *          +--> us_erased_look()   the files begin past it (us_keep.c)
 *          +--> the base of a log, and what replicas say (us_known.h)
 *
 * A process wipes twice, because blocks that were in use at the first time may
 * have texts, too: those of connections that wait for their next request.
 */


#include "us_job.h"


/* ms that the erasure of a site waits for its sweep, at most */
#define US_LIFE_SWEEP_WAIT  10000

/* ms after a sweep that had no room */
#define US_LIFE_SWEEP_FULL  10000

/* ms between two wipes, at most: longer than connections wait, mostly */
#define US_LIFE_WIPE_AGAIN  (2 * 60 * 1000)


us_store_status_t
us_life_erase_site(us_life_t *l, uint64_t number, us_str_t site,
    uint64_t *since, uint64_t *lsn)
{
    us_erasure_info_t  e;
    us_store_status_t  status;

    if (*since == 0) {
        status = us_store_erase_site(l->store, number, site, lsn);

        if (status != US_OK) {
            return status;
        }

        us_store_erasure_leave(l->store, number);
        *since = us_job_now(l);
    }

    *lsn = us_store_published(l->store);
    (void) us_store_erasure(l->store, number, &e);

    return e.state == US_ERASURE_DELETING
           && us_job_now(l) - *since <= US_LIFE_SWEEP_WAIT ? US_BUSY : US_OK;
}


int
us_life_sweep_due(const us_life_t *l)
{
    return us_life_state(l) == US_LIFE_READY && us_job_now(l) >= l->sweep_next
           && (l->sweep.begun || us_store_sweep_due(l->store));
}


us_store_status_t
us_life_sweep(us_life_t *l)
{
    us_store_status_t  status;

    l->sweep.done = 0;

    if (l->env.stopping(l->env.data)) {

        /* this process may wait for its connections for long */

        us_store_sweep_end(l->store, &l->sweep);
        return US_FENCED;
    }

    if (!us_life_writable(l, NULL)) {
        return US_FENCED;
    }

    us_life_deleting(l);
    status = us_store_sweep(l->store, &l->sweep);
    us_life_deleted(l, us_store_published(l->store));

    if (status == US_BUSY) {
        us_life_write(l);

    } else if (status == US_FULL) {
        l->sweep_next = us_job_now(l) + US_LIFE_SWEEP_FULL;
    }

    return status;
}


uint64_t
us_life_wipe_due(const us_life_t *l)
{
    uint64_t  lsn, wiped;

    lsn = us_store_erased_lsn(l->store);
    wiped = l->member ? us_relaxed(&l->member->wiped) : 0;

    return lsn > wiped && us_job_now(l) >= l->wipe_next && us_life_past(l, lsn)
           ? lsn : 0;
}


void
us_life_wiped(us_life_t *l, uint64_t lsn)
{
    uint64_t  again;

    again = l->conf.erase_within / 8;
    again = again < US_LIFE_WIPE_AGAIN ? again : US_LIFE_WIPE_AGAIN;

    /* also if it fails: not at each tick, as it empties the hot table */

    l->wipe_next = us_job_now(l) + again;

    if (l->member && lsn && lsn == l->wiping) {
        us_release(&l->member->wiped, lsn);
    }

    l->wiping = lsn;
}
