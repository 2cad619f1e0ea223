
/*
 * A replica with path= keeps the primary's bytes in a directory, so that a
 * restart begins where it was (journal/us_copy.h).
 *
 *     primary --frame--> directory --> store --> answers
 *                             \________^
 *                              at a start
 *
 * The directory is never behind the store.  After a kill within a block the
 * store is emptied, and built from the directory.  What cannot be read there,
 * or does not go on at the primary, is removed, and all is fetched.
 *
 * The directory's journal grows like the primary's.  When it has grown enough
 * (us_policy.h), the replica writes a snapshot of its own, which replaces the
 * segments before it.  No block is applied meanwhile.
 *
 * All of it is for the job of a replica (us_replica.c).
 */


#ifndef _US_REPLICA_COPY_H_INCLUDED_
#define _US_REPLICA_COPY_H_INCLUDED_


#include "us_life.h"
#include "../journal/us_copy.h"


/* the reading of a copy */

typedef struct {
    us_life_t        *life;
    us_store_t       *store;
    us_recovery_t     recovery;
} us_replica_copy_t;


/*
 * Looks at the directory.  US_RECOVERY_OK: it has a copy, of the store that
 * recovery.manifest names; _FRESH: it is empty; _STOP: it is not ours; else it
 * cannot be read.  recovery.error says why.  To be ended whatever it returned.
 */
us_recovery_rc_t us_replica_copy_open(us_replica_copy_t *c, us_life_t *l);
void us_replica_copy_end(us_replica_copy_t *c);

/* applies all of it to an empty store; _STOP: the process ends */
us_recovery_rc_t us_replica_copy_read(us_replica_copy_t *c,
    us_store_t *store);

/* removes the files, if the zone has a directory; 0, or -1 with e */
int us_replica_copy_remove(us_life_t *l, us_copy_t *copy, us_disk_error_t *e);

/*
 * Between two blocks: a snapshot of the store at an LSN, if one is due.  1: it
 * was taken, *m names it; 0: none is due, or the process ends; -1, e.
 */
int us_replica_copy_keep(us_life_t *l, us_copy_t *copy, us_store_t *store,
    uint64_t lsn, us_manifest_t *m, us_disk_error_t *e);


#endif /* _US_REPLICA_COPY_H_INCLUDED_ */
