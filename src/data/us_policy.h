
/*
 * When a snapshot is worth its price.
 *
 * A start reads the snapshot and then replays the journal that follows it.  The
 * replay takes longer for each byte, so the time of a start is bounded by
 * taking a snapshot in time.  A snapshot writes the whole store once more.
 *
 *     replay_ms    of the journal past the snapshot, estimated by the last load
 *     snapshot_ms  that the next snapshot will take, estimated by the last one
 */


#ifndef _US_POLICY_H_INCLUDED_
#define _US_POLICY_H_INCLUDED_


#include "../us_base.h"


typedef struct {
    uint64_t          least;          /* option snapshot=, bytes */
    uint64_t          journal;        /* bytes past the last snapshot */
    uint64_t          size;           /* bytes of the last one, or 0 */
} us_policy_t;


/* while the service runs */
int us_policy_due(const us_policy_t *p);


#endif /* _US_POLICY_H_INCLUDED_ */
