
/*
 * The keeper: snapshots while the service runs, and scrubs.  See us_keep.c.
 *
 *
 * When a snapshot is worth its price.
 *
 * A start reads the snapshot and then replays the journal past it.  A URL of
 * the journal costs a start several times the time of a URL of the snapshot,
 * whose index is ready.  So the length of the journal past the snapshot bounds
 * the time of a start.  But a snapshot writes the whole store again.  If one is
 * taken when the journal has grown to a twelfth of the snapshot, all snapshots
 * together write twelve bytes for each byte that is added.
 *
 * With the default option a start replays at most 12 MiB, or a twelfth of a
 * snapshot of more than 144 MiB, and what is added while the snapshot is being
 * written; of deletes, half as much.  `make bench-durability` measures that;
 * docs/decisions/durability.md has the figures of other shares.
 */


#ifndef _US_KEEP_H_INCLUDED_
#define _US_KEEP_H_INCLUDED_


#include "us_life.h"


/* starts a job if there is something to do, and nobody does it */
void us_keep(us_life_t *l);


/* a snapshot is due when the journal has one byte for so many of the last */
#define US_POLICY_SHARE   12

/*
 * A delete costs a start as much as so many bytes of added URLs, beside its
 * own: its record is somewhere in the log.
 */
#define US_POLICY_DELETE  6

typedef struct {
    uint64_t          least;          /* option snapshot=, bytes */
    uint64_t          journal;        /* bytes past the last snapshot */
    uint64_t          size;           /* bytes of its file, or 0 */
    uint64_t          deletes;        /* in these bytes of the journal */
} us_policy_t;


/* while the service runs */
int us_policy_due(const us_policy_t *p);


#endif /* _US_KEEP_H_INCLUDED_ */
