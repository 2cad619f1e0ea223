
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
 * SIZE for a store of so many bytes, as the configuration has it; 0 bytes: how
 * many is not known, as the data do not fit the machine's memory.
 */
void us_load_size(const us_life_t *l, uint64_t bytes, char *text, size_t len);


#endif /* _US_LOAD_H_INCLUDED_ */
