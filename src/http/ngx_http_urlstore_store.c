
/*
 * The store of a zone, as a worker uses it: the lock, the hot table, the
 * training of models.
 *
 * The hot table (store/us_hot.h) is one for the stores of all zones.  It is
 * private to the worker, so a look-up in it takes no lock and waits for no
 * cache line of another worker.  Each worker has the links that it was asked
 * for.
 */


#include "ngx_http_urlstore_zone.h"


static void ngx_http_urlstore_lock(void *data);
static void ngx_http_urlstore_unlock(void *data);


static us_hot_t  *ngx_http_urlstore_hot;


void
ngx_http_urlstore_zone_lock(ngx_http_urlstore_zone_t *zone,
    us_store_lock_t *lock)
{
    lock->lock = ngx_http_urlstore_lock;
    lock->unlock = ngx_http_urlstore_unlock;
    lock->data = zone;
}


/*
 * Threads of the worker take the lock as well: that of a training, and jobs of
 * us_job.h.  ngx_shmtx_t is an atomic word with the pid of its holder, and a
 * semaphore on which others wait, so two threads of one process exclude each
 * other as two processes do.  Nothing in it belongs to a thread.  When a worker
 * is killed, the master releases the lock by its pid, whichever thread had it.
 * The main thread holds the lock only within a call of the store, and never
 * joins a thread meanwhile.
 */

static void
ngx_http_urlstore_lock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    if (ngx_shmtx_trylock(&zone->shpool->mutex)) {
        return;
    }

    us_tally_add(zone->tally, US_N_LOCK_WAITS, 1);

    ngx_shmtx_lock(&zone->shpool->mutex);
}


static void
ngx_http_urlstore_unlock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


void
ngx_http_urlstore_hot_init(size_t size, ngx_log_t *log)
{
    if (size == 0) {
        return;
    }

    ngx_http_urlstore_hot = us_hot_create(size);

    if (ngx_http_urlstore_hot == NULL) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "no memory for \"urlstore_hot\" %uz, this worker goes "
                      "on without", size);
    }
}


void
ngx_http_urlstore_hot_attach(ngx_http_urlstore_zone_t *zone)
{
    if (ngx_http_urlstore_hot) {
        us_store_hot(zone->store, ngx_http_urlstore_hot,
                     &zone->tally->n[US_N_HOT]);
    }
}


/* the stores have been closed */

/* one that is in shared memory only: others are opened when they are loaded */

ngx_int_t
ngx_http_urlstore_store_open(ngx_http_urlstore_zone_t *zone, ngx_log_t *log)
{
    us_store_lock_t  lock;

    if (zone->persist) {
        return NGX_OK;
    }

    ngx_http_urlstore_zone_lock(zone, &lock);

    zone->store = us_store_open(zone->sh->mem, &lock);

    if (zone->store == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening urlstore_zone \"%V\" failed", &zone->name);
        return NGX_ERROR;
    }

    /* those that the configuration has added */

    (void) us_store_add_marks(zone->store, zone->conf.marks,
                              zone->conf.nmarks);
    (void) us_store_set_revisit(zone->store, zone->conf.revisit);

    us_store_conf(zone->store, &zone->conf);
    ngx_http_urlstore_hot_attach(zone);

    return NGX_OK;
}


void
ngx_http_urlstore_hot_exit(void)
{
    if (ngx_http_urlstore_hot) {
        us_hot_destroy(ngx_http_urlstore_hot);
        ngx_http_urlstore_hot = NULL;
    }
}


/*
 * Ends a training that is done, and starts one that is due; cheap.  Nothing
 * wakes the event loop at the end of a training: each batch that adds calls
 * this.
 */

void
ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone)
{
    int              err;
    us_store_lock_t  lock;

    if (zone->train) {

        if (!us_trainer_done(zone->train)) {
            return;
        }

        if (us_trainer_end(zone->train)) {
            us_tally_add(zone->tally, US_N_TRAININGS, 1);

            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": learnt a new model",
                          &zone->name);
        }

        zone->train = NULL;
    }

    if (!us_store_train_due(zone->store)) {
        return;
    }

    ngx_http_urlstore_zone_lock(zone, &lock);

    err = us_trainer_start(&zone->train, zone->sh->mem, &lock);

    if (err > 0) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "pthread_create() failed");
    }
}


/* at the end of the worker */

void
ngx_http_urlstore_train_exit(ngx_http_urlstore_zone_t *zone)
{
    if (zone->train) {
        (void) us_trainer_end(zone->train);
        zone->train = NULL;
    }
}
