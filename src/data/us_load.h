
/*
 * The loader: a directory's data into the store.  See us_load.c.
 */


#ifndef _US_LOAD_H_INCLUDED_
#define _US_LOAD_H_INCLUDED_


#include "us_life.h"


/* starts a loader if there is something to load, and nobody loads */
void us_load(us_life_t *l);


#endif /* _US_LOAD_H_INCLUDED_ */
