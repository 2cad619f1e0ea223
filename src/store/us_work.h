
/*
 * Work on both cores: a number of pieces, each done by the next free thread.
 */


#ifndef _US_WORK_H_INCLUDED_
#define _US_WORK_H_INCLUDED_


#include "../us_base.h"


typedef struct us_work_s  us_work_t;

/* piece number i, by thread number t */
typedef void (*us_work_pt)(void *data, unsigned t, size_t i);


/*
 * threads: with the caller's, as many as there are processors at most; fewer if
 * the system refuses one.  NULL: no memory.
 */
us_work_t *us_work_create(unsigned threads);
void us_work_destroy(us_work_t *w);

/* threads that there are */
unsigned us_work_threads(const us_work_t *w);

/* pieces 0 .. n - 1; returns when all are done; thread 0 is the caller's */
void us_work_run(us_work_t *w, us_work_pt run, void *data, size_t n);


#endif /* _US_WORK_H_INCLUDED_ */
