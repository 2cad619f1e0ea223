
/*
 * The keeper: snapshots while the service runs, and scrubs.  See us_keep.c.
 */


#ifndef _US_KEEP_H_INCLUDED_
#define _US_KEEP_H_INCLUDED_


#include "us_life.h"


/* starts a job if there is something to do, and nobody does it */
void us_keep(us_life_t *l);


#endif /* _US_KEEP_H_INCLUDED_ */
