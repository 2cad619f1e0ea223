
/*
 * Work on both cores: see us_work.h.
 *
 * Helpers sleep until a run begins.  Each thread takes the next piece by an
 * atomic increment, until there is none; the run has ended when the last helper
 * is done with its last piece.
 */


#include "us_work.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>


#define US_WORK_MAX  8


typedef struct {
    us_work_t         *work;
    unsigned           number;
    pthread_t          thread;
} us_work_helper_t;


struct us_work_s {
    pthread_mutex_t    mutex;
    pthread_cond_t     begin;
    pthread_cond_t     end;

    us_work_pt         run;
    void              *data;
    size_t             n;
    size_t             next;          /* atomic */

    unsigned           runs;          /* begun */
    unsigned           busy;          /* helpers at work in this one */
    int                stop;

    unsigned           nhelpers;
    us_work_helper_t   helpers[US_WORK_MAX];
};


static void
us_work_pieces(us_work_t *w, unsigned t)
{
    size_t  i;

    for ( ;; ) {
        i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);

        if (i >= w->n) {
            return;
        }

        w->run(w->data, t, i);
    }
}


static void *
us_work_helper(void *data)
{
    us_work_helper_t  *helper = data;

    unsigned    runs;
    us_work_t  *w;

    w = helper->work;
    runs = 0;

    (void) pthread_mutex_lock(&w->mutex);

    for ( ;; ) {

        while (w->runs == runs && !w->stop) {
            (void) pthread_cond_wait(&w->begin, &w->mutex);
        }

        if (w->stop) {
            break;
        }

        runs = w->runs;

        (void) pthread_mutex_unlock(&w->mutex);
        us_work_pieces(w, helper->number);
        (void) pthread_mutex_lock(&w->mutex);

        if (--w->busy == 0) {
            (void) pthread_cond_signal(&w->end);
        }
    }

    (void) pthread_mutex_unlock(&w->mutex);

    return NULL;
}


us_work_t *
us_work_create(unsigned threads)
{
    long        cpus;
    sigset_t    all, old;
    us_work_t  *w;

    w = calloc(1, sizeof(us_work_t));

    if (w == NULL) {
        return NULL;
    }

    (void) pthread_mutex_init(&w->mutex, NULL);
    (void) pthread_cond_init(&w->begin, NULL);
    (void) pthread_cond_init(&w->end, NULL);

    cpus = sysconf(_SC_NPROCESSORS_ONLN);
    threads = cpus > 0 && threads > (unsigned) cpus ? (unsigned) cpus
                                                    : threads;

    /* signals are for the threads that wait for them */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    while (w->nhelpers + 1 < threads && w->nhelpers < US_WORK_MAX) {
        w->helpers[w->nhelpers].work = w;
        w->helpers[w->nhelpers].number = w->nhelpers + 1;

        if (pthread_create(&w->helpers[w->nhelpers].thread, NULL,
                           us_work_helper, &w->helpers[w->nhelpers])
            != 0)
        {
            break;
        }

        w->nhelpers++;
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return w;
}


void
us_work_destroy(us_work_t *w)
{
    unsigned  i;

    if (w == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&w->mutex);
    w->stop = 1;
    (void) pthread_cond_broadcast(&w->begin);
    (void) pthread_mutex_unlock(&w->mutex);

    for (i = 0; i < w->nhelpers; i++) {
        (void) pthread_join(w->helpers[i].thread, NULL);
    }

    (void) pthread_cond_destroy(&w->begin);
    (void) pthread_cond_destroy(&w->end);
    (void) pthread_mutex_destroy(&w->mutex);

    free(w);
}


unsigned
us_work_threads(const us_work_t *w)
{
    return w->nhelpers + 1;
}


void
us_work_run(us_work_t *w, us_work_pt run, void *data, size_t n)
{
    (void) pthread_mutex_lock(&w->mutex);

    w->run = run;
    w->data = data;
    w->n = n;
    w->next = 0;
    w->busy = w->nhelpers;
    w->runs++;

    (void) pthread_cond_broadcast(&w->begin);
    (void) pthread_mutex_unlock(&w->mutex);

    us_work_pieces(w, 0);

    (void) pthread_mutex_lock(&w->mutex);

    while (w->busy) {
        (void) pthread_cond_wait(&w->end, &w->mutex);
    }

    (void) pthread_mutex_unlock(&w->mutex);
}
