
/*
 * The replicas that a primary knows, and what they have said of erasures.
 *
 *     GET /log?replica=ID&erased=LSN&keeps=1    -->  row ID: erased, keeps
 *     while that stream goes on                 -->  row ID: seen
 *
 * A replica has erased up to an LSN when nothing is left with it of erasures
 * whose records were gone at the primary by that LSN: in its zone, its files,
 * its workers.  It says so when it asks for the stream, and asks again when it
 * has more to say.  Until then the erasure is not done.  One that says nothing
 * is away: its directory has what it had, and its memory, if its process lives.
 *
 * A row is forgotten when the replica was away for long: nobody waits for ever
 * for a directory that was removed.  The memory of one that keeps no directory
 * ends with it, so that is sooner.  All rows are in memory that a restart of
 * the primary begins anew.
 *
 * Whoever may read the stream can have rows.  So they are few, and the one that
 * was away for longest makes room.  Where there is none away, the newcomer is a
 * stranger: it counts as one that has erased nothing while it is connected.
 *
 * An id is of a directory, or of the shared memory of a replica without one:
 * two replicas with one id would answer for each other.
 */


#ifndef _US_KNOWN_H_INCLUDED_
#define _US_KNOWN_H_INCLUDED_


#include "us_share.h"


/* ms without a beat: it is away; then it is forgotten */
#define US_KNOWN_AWAY    10000
#define US_KNOWN_KEEPS   ((uint64_t) 7 * 24 * 3600 * 1000)
#define US_KNOWN_MEMORY  ((uint64_t) 3600 * 1000)


/*
 * A replica asks for the stream: *said is what it says, at the time `now`.  The
 * caller has the store's lock.  Returns the number of its row; US_KNOWN: it has
 * none.  *news: it was not known.
 */
unsigned us_known_enter_locked(us_share_t *sh, const us_known_t *said,
    int *news);

/* it is connected; no lock */
void us_known_beat(us_share_t *sh, unsigned row, uint64_t id, uint64_t now);

/*
 * Where an erasure is not done, whose records were gone at this LSN, or are not
 * (0): US_LEFT_REPLICAS, US_LEFT_AWAY.
 */
unsigned us_known_left(const us_share_t *sh, uint64_t gone, uint64_t now);

/* how many there are, and how many of them are away */
uint64_t us_known_count(const us_share_t *sh, uint64_t now, uint64_t *away);


#endif /* _US_KNOWN_H_INCLUDED_ */
