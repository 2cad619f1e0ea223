
/*
 * The directory of a follower, with path=: a copy (journal/us_copy.h).  A
 * replica has one of what its primary sends (us_replica.c), a node of a
 * replicated store one of what the log has confirmed (us_copier.c).  A restart
 * begins where it was.
 *
 *     primary --frame--> directory --> store --> answers
 *                             \________^
 *                              at a start
 *
 * What cannot be read there, or does not go on at the primary or in the log, is
 * removed or moved away, and all is fetched.
 *
 * The directory's journal grows like its source.  When it has grown enough
 * (us_job.h), its owner writes a snapshot, which replaces the segments
 * before it.
 *
 * All of it is for one process at a time, which has the role for it.
 */


#ifndef _US_SINK_H_INCLUDED_
#define _US_SINK_H_INCLUDED_


#include "us_life.h"
#include "../journal/us_copy.h"


/* the reading of a copy */

typedef struct {
    us_life_t         *life;
    us_store_t        *store;
    int                more;          /* operations follow: it is not settled,
                                         and what has no room is counted */
    us_manifest_log_t  log;           /* of a replicated log: where it ends */
    us_recovery_t      recovery;
} us_sink_t;


/* what comes of the directory; recovery.error says why */

typedef enum {
    US_SINK_OK = 0,
    US_SINK_FRESH,                    /* it is empty */
    US_SINK_NO_ROOM,                  /* in the store */
    US_SINK_PASSING,                  /* it is not read now: it is not ours, the
                                         process ends, a fault may pass */
    US_SINK_USELESS                   /* it cannot be read */
} us_sink_rc_t;

/*
 * Looks at the directory.  OK: it has a copy, of the store that
 * recovery.manifest names.  The recovery is to be closed whatever it returned.
 */
us_sink_rc_t us_sink_open(us_sink_t *c, us_life_t *l);

/* applies all of it to an empty store; NULL: its end is looked for only */
us_sink_rc_t us_sink_read(us_sink_t *c, us_store_t *store);

/*
 * Removes the files, if the zone has a directory, and if that is a copy and
 * ours; or, with `kept`, moves them to DIR/kept.  0, or -1 with e.
 */
int us_sink_remove(us_life_t *l, us_copy_t *copy, char *kept,
    us_disk_error_t *e);


#endif /* _US_SINK_H_INCLUDED_ */
