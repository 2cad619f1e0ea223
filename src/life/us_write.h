
/*
 * The writer and the syncer: the store's operations to the journal, and the
 * journal to the disk.  See us_write.c.
 */


#ifndef _US_WRITE_H_INCLUDED_
#define _US_WRITE_H_INCLUDED_


#include "us_life.h"


/* each starts a job if there is something to do, and nobody does it */
void us_write(us_life_t *l);
void us_sync(us_life_t *l);

/*
 * In this thread, by the last process: writes and syncs all that the store has
 * published, until the time `until` (ms).  0: done, tail is the end; or -1
 * with e.
 */
int us_write_all(us_life_t *l, us_store_t *store, uint64_t until,
    us_tail_t *tail, us_disk_error_t *e);

/*
 * Whether path= is still this directory, and its lock still the file that we
 * have locked: 0, or -1 with e.
 */
int us_write_look(us_life_t *l, us_disk_error_t *e);


#endif /* _US_WRITE_H_INCLUDED_ */
