
/*
 * Training: a worker learns a model from the store's own records, which takes
 * seconds, in a thread of its own with a handle of its own.
 *
 * It is no thread of nginx's pool, because a worker cannot exit before those
 * have finished their work.  An exiting worker cancels this thread, which looks
 * for the cancellation all the time.  The worker waits for its end, because the
 * thread uses the zone and parts of the C library that exit() tears down.
 *
 * When a model is due is in codec/us_learn.c.
 *
 * Nothing wakes the event loop at the end of a training.  Each batch that adds
 * looks whether a training is done or due.
 */


#include "ngx_http_urlstore.h"

#include <pthread.h>
#include <signal.h>


struct ngx_http_urlstore_train_s {
    ngx_http_urlstore_zone_t       *zone;
    us_store_t                     *store;
    pthread_t                       thread;
    volatile int                    cancel;
    int                             done;     /* set by the thread */
    int                             learnt;
};


static ngx_int_t ngx_http_urlstore_train_start(
    ngx_http_urlstore_zone_t *zone);
static void *ngx_http_urlstore_train_thread(void *data);
static void ngx_http_urlstore_train_free(ngx_http_urlstore_train_t *t);


/* starts a training that is due, and ends one that is done; cheap */

void
ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_train_t  *t;

    t = zone->train;

    if (t) {
        if (!__atomic_load_n(&t->done, __ATOMIC_ACQUIRE)) {
            return;
        }

        (void) pthread_join(t->thread, NULL);

        if (t->learnt) {
            ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_TRAININGS, 1);

            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": learnt a new model",
                          &zone->name);
        }

        zone->train = NULL;
        ngx_http_urlstore_train_free(t);
    }

    if (us_store_train_due(zone->store)) {
        (void) ngx_http_urlstore_train_start(zone);
    }
}


/* at the end of the worker */

void
ngx_http_urlstore_train_exit(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_train_t  *t;

    t = zone->train;

    if (t == NULL) {
        return;
    }

    __atomic_store_n(&t->cancel, 1, __ATOMIC_RELAXED);
    zone->train = NULL;

    (void) pthread_join(t->thread, NULL);

    ngx_http_urlstore_train_free(t);
}


static ngx_int_t
ngx_http_urlstore_train_start(ngx_http_urlstore_zone_t *zone)
{
    int                         err;
    sigset_t                    all, old;
    us_store_lock_t             lock;
    ngx_http_urlstore_train_t  *t;

    t = ngx_calloc(sizeof(ngx_http_urlstore_train_t), ngx_cycle->log);
    if (t == NULL) {
        return NGX_ERROR;
    }

    t->zone = zone;

    ngx_http_urlstore_zone_lock(zone, &lock);

    t->store = us_store_open(zone->sh->mem, &lock);

    if (t->store == NULL) {
        ngx_free(t);
        return NGX_ERROR;
    }

    /* nginx's signal handlers are for the main thread */

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    err = pthread_create(&t->thread, NULL, ngx_http_urlstore_train_thread, t);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (err) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "pthread_create() failed");
        ngx_http_urlstore_train_free(t);
        return NGX_ERROR;
    }

    zone->train = t;

    return NGX_OK;
}


static void *
ngx_http_urlstore_train_thread(void *data)
{
    ngx_http_urlstore_train_t *t = data;

    t->learnt = us_store_train(t->store, &t->cancel);

    __atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);

    return NULL;
}


static void
ngx_http_urlstore_train_free(ngx_http_urlstore_train_t *t)
{
    us_store_close(t->store);
    ngx_free(t);
}
