
/*
 * The files of a directory as they are finished.
 */


#ifndef _US_FOLLOW_H_INCLUDED_
#define _US_FOLLOW_H_INCLUDED_


#include "us_lineset.h"

#include <signal.h>


typedef struct us_follow_s  us_follow_t;


/* NULL after a message */
us_follow_t *us_follow_open(const char *dir);
void us_follow_close(us_follow_t *f);

/*
 * The path of the next finished file, valid until the next call; waits for
 * one.  NULL: *stop was set by a signal, or, after a message, an error
 * (*failed is 1 then).
 */
const char *us_follow_next(us_follow_t *f, const volatile sig_atomic_t *stop,
    int *failed);


#endif /* _US_FOLLOW_H_INCLUDED_ */
