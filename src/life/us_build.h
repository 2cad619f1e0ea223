
/*
 * A store that is built of operations which come from elsewhere: from a primary
 * (us_replica.c), or from a log that the nodes of a shard share
 * (us_replicate.c).  By the loader's job.
 *
 * From the first operation on, load_applying says that the store is no prefix
 * of anything; us_build_publish() ends that.  If the process is killed in
 * between, the next loader empties the store.
 */


#ifndef _US_BUILD_H_INCLUDED_
#define _US_BUILD_H_INCLUDED_


#include "us_job.h"
#include "../store/us_store.h"


/*
 * Applies whole operations.  bulk: the store is not answered from yet, so
 * operations for which there is no room are counted only.  0; -1: the store is
 * to be built anew, *why (a constant) says why.
 */
int us_build_apply(us_life_t *l, us_store_t *store, const uint8_t *p,
    size_t len, int bulk, const char **why);

/*
 * All has come, up to lsn, and has so many ids: it may be answered from.  0;
 * US_RECOVERY_NO_ROOM: us_build_small() is next; -1: it is no whole store.
 */
int us_build_settle(us_store_t *store, uint64_t lsn, uint64_t ids);

/*
 * State TOO_SMALL, and a message, with a SIZE that suffices for what has come;
 * journal: the store has a ring; what: "the data".
 */
void us_build_small(us_job_t *job, us_store_t *store, int journal,
    const char *what);

/* what the store has, and its state, for everybody; load_applying is set */
void us_build_publish(us_share_t *sh, us_life_state_t state, uint64_t lsn,
    uint64_t ids);


#endif /* _US_BUILD_H_INCLUDED_ */
