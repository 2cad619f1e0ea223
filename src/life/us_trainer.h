
/*
 * A training: a thread learns a model from the store's own records, which takes
 * seconds, by a handle of its own.
 *
 * It is no job of us_job.h: a store without a directory has none, and a process
 * does not end before its jobs have.  A training is cancelled instead; it looks
 * for that all the time.  The process waits for its end, because the thread
 * uses the store's memory and parts of the C library that exit() tears down.
 *
 * When a model is due is in codec/us_learn.c.
 */


#ifndef _US_TRAINER_H_INCLUDED_
#define _US_TRAINER_H_INCLUDED_


#include "../store/us_store.h"


typedef struct us_trainer_s  us_trainer_t;


/*
 * Starts one on the store in mem, which has to be due (us_store_train_due()).
 * Returns 0, the error of pthread_create(), or -1 if there is no memory.
 */
int us_trainer_start(us_trainer_t **trainer, void *mem,
    const us_store_lock_t *lock);

/* whether it has ended by itself, so that us_trainer_end() does not wait */
int us_trainer_done(const us_trainer_t *t);

/* cancels it, waits for its end and frees it; 1: it has installed a model */
int us_trainer_end(us_trainer_t *t);


#endif /* _US_TRAINER_H_INCLUDED_ */
