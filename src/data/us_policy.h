
/*
 * When a snapshot is worth its price.
 *
 * A start reads the snapshot and then replays the journal past it.  A record of
 * the journal costs a start ten times as much time as a record of the snapshot,
 * whose index is ready.  So the length of the journal past the snapshot bounds
 * the time of a start.  But a snapshot writes the whole store again.  If one is
 * taken when the journal has grown to a quarter of the snapshot, all snapshots
 * together write four bytes for each byte that is added.
 *
 * With the default option a start replays 32 MiB, or a quarter of a snapshot of
 * more than 128 MiB.  `make bench-durability` measures that.
 */


#ifndef _US_POLICY_H_INCLUDED_
#define _US_POLICY_H_INCLUDED_


#include "../us_base.h"


typedef struct {
    uint64_t          least;          /* option snapshot=, bytes */
    uint64_t          journal;        /* bytes past the last snapshot */
    uint64_t          size;           /* bytes of its file, or 0 */
} us_policy_t;


/* while the service runs */
int us_policy_due(const us_policy_t *p);


#endif /* _US_POLICY_H_INCLUDED_ */
