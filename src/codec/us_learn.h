
/*
 * When a store learns a model, and from what.
 */


#ifndef _US_LEARN_H_INCLUDED_
#define _US_LEARN_H_INCLUDED_


#include "us_record.h"


/* what was learnt last, until it is installed */

typedef struct {
    uint8_t       *model;             /* its bytes */
    size_t         len;
    uint64_t       number;            /* models that there were before it */
    uint64_t       age;               /* us_learn_age() before it was learnt */
} us_learn_t;


/* whether the next model is due; without a lock, and cheap */
int us_learn_due(const us_arena_t *a);

/*
 * Learns it, which takes seconds, without a lock, from what c decodes.  1:
 * *model is what was learnt, kept in l; 0: no memory, or it was cancelled.
 */
int us_learn(us_learn_t *l, us_codec_t *c, const volatile int *cancel,
    us_str_t *model);

/*
 * Under the lock, nothing intended: intends to publish what was learnt for the
 * records from next_id on.  0, or as us_record_install_locked();
 * US_REPLAY_FAILED: URLs were erased meanwhile, it must be learnt again.
 */
int us_learn_install_locked(us_learn_t *l, us_codec_t *c);

/* no model is due any more: there is no room for this one, and never will be */
void us_learn_give_up(us_learn_t *l, us_arena_t *a);

void us_learn_free(us_learn_t *l);


#endif /* _US_LEARN_H_INCLUDED_ */
