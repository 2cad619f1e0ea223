
/*
 * When a snapshot is worth its price.
 *
 * A start reads the snapshot and then replays the journal past it.  A record of
 * the journal takes a start ten times as long as one of the snapshot, whose
 * index is ready; so what may follow a snapshot bounds the time of a start.  A
 * snapshot writes the whole store once more: taken when the journal is a
 * quarter of it, all snapshots together write four times what is added.
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
