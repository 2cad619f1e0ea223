
/*
 * See us_trainer.h.
 */


#include "us_trainer.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>


struct us_trainer_s {
    us_store_t       *store;
    pthread_t         thread;
    volatile int      cancel;
    int               done;           /* set by the thread */
    int               learnt;
};


static void *
us_trainer_thread(void *data)
{
    us_trainer_t *t = data;

    t->learnt = us_store_train(t->store, &t->cancel);

    __atomic_store_n(&t->done, 1, __ATOMIC_RELEASE);

    return NULL;
}


int
us_trainer_start(us_trainer_t **trainer, void *mem,
    const us_store_lock_t *lock)
{
    int            err;
    sigset_t       all, old;
    us_trainer_t  *t;

    t = calloc(1, sizeof(us_trainer_t));
    if (t == NULL) {
        return -1;
    }

    t->store = us_store_open(mem, lock);

    if (t->store == NULL) {
        free(t);
        return -1;
    }

    /* signal handlers are for the main thread */

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &old);

    err = pthread_create(&t->thread, NULL, us_trainer_thread, t);

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    if (err) {
        us_store_close(t->store);
        free(t);
        return err;
    }

    *trainer = t;

    return 0;
}


int
us_trainer_done(const us_trainer_t *t)
{
    return __atomic_load_n(&t->done, __ATOMIC_ACQUIRE);
}


int
us_trainer_end(us_trainer_t *t)
{
    int  learnt;

    __atomic_store_n(&t->cancel, 1, __ATOMIC_RELAXED);

    (void) pthread_join(t->thread, NULL);

    learnt = t->learnt;

    us_store_close(t->store);
    free(t);

    return learnt;
}
