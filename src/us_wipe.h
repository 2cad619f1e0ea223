
/*
 * Memory that a process has freed, wiped: what requests have left in it.  Each
 * worker wipes its own when the records of erased URLs are gone, in its event
 * loop (http/ngx_http_urlstore_life.c); threads wipe theirs at the end of jobs
 * (life/us_job.c).
 */


#ifndef _US_WIPE_H_INCLUDED_
#define _US_WIPE_H_INCLUDED_


#include "us_base.h"


/*
 * Of a process that is going to call us_wipe_heap(), before it has a second
 * thread: all threads share one heap from now on.
 */
void us_wipe_init(void);

/*
 * Overwrites what malloc() has to give, and gives most of it back to the
 * system; what is allocated stays as it is.  Takes about a millisecond for 5 MB
 * of it.  0; -1: this C library has no such heap, or a part could not be
 * reached, and nothing is promised.
 */
int us_wipe_heap(void);

/* the same of this thread's stack, as far down as calls of ours reach */
void us_wipe_stack(void);

/*
 * Of a thread that goes on to other work: its stack, and the freed blocks that
 * it keeps from all others.  Takes 50 microseconds.
 */
void us_wipe_thread(void);


#endif /* _US_WIPE_H_INCLUDED_ */
