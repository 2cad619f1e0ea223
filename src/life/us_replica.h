
/*
 * A replica: a store that is what another server's store is (follow=).
 *
 *     primary  --GET /log, us_stream.h-->  replica
 *
 *     LOADING    the store is built from nothing: the primary's snapshot and
 *                the journal up to where the primary was when it was asked
 *     REPLICA    what comes is applied at once.  Hits are answered; what is not
 *                found may be there already at the primary, so nothing is
 *                denied; nothing is written
 *     TOO_SMALL  the zone has no room for the primary's URLs
 *
 * The loader's role does all of it, in jobs of a tenth of a second, so that
 * messages are logged and a process that is to end ends soon.  Between two jobs
 * the role stays with its process, which has the connection.
 *
 * Invariants:
 *
 *  1. The shared place (us_share_t.replica.at) says what the store has, except
 *     while load_applying is set.  If a process is killed meanwhile, the next
 *     one empties the store (us_load_empty()), and begins from nothing, or with
 *     path= from what the directory has (us_sink.h).
 *  2. A stream goes on only at the place that was reached, in the store of that
 *     uuid and epoch, with the CRC of the block before it.  In any other case
 *     the store is emptied first.  So it never has URLs of two stores.
 *  3. Only what is durable at the primary is sent.  So the primary cannot lose
 *     what the replica has, unless its directory is lost or replaced; then its
 *     uuid, its epoch or its bytes differ.
 */


#ifndef _US_REPLICA_H_INCLUDED_
#define _US_REPLICA_H_INCLUDED_


#include "us_life.h"


/* of each tick: starts a job, if one is due */
void us_replica(us_life_t *l);


#endif /* _US_REPLICA_H_INCLUDED_ */
