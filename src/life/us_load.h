
/*
 * The loader: a directory's data into the store.  See us_load.c.
 */


#ifndef _US_LOAD_H_INCLUDED_
#define _US_LOAD_H_INCLUDED_


#include "us_life.h"


/* starts a loader if there is something to load, and nobody loads */
void us_load(us_life_t *l);

/*
 * By the loader's job: begins again with an empty store of the same
 * configuration.  0: done; -1: processes are still reading the one that is
 * there, or nothing can be done.
 */
int us_load_empty(us_life_t *l);

/*
 * That SIZE is too small for what came, and what suffices, unless
 * that is more than the machine's memory.
 */
void us_load_small(const us_life_t *l, us_store_t *s, char *text, size_t len);


#endif /* _US_LOAD_H_INCLUDED_ */
