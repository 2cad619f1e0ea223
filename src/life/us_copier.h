
/*
 * The copier of a replicated store, with path=: it writes what the log has
 * confirmed into a directory, so that a start reads only the rest from the log.
 * Outside of this program that directory is called a cache of the log.
 *
 *     log --> standby --> store --> answers       us_replicate.c
 *      |                  ^   |
 *      |         at a start   | now and then
 *      |                  |   v
 *      `----> keeper --> directory                this file
 *
 * The keeper reads the log by a session of its own, by the rules of a standby
 * (us_standby.h).  Each row that it gets is confirmed; the row becomes a block
 * of the directory's journal (us_copy.h).  The directory begins with a snapshot
 * of the store, and gets another one when its journal has grown (us_job.h).
 *
 * No answer depends on the directory.  When it cannot be written, that is
 * reported, and tried again.
 *
 * The manifest has the CRC of the log's bytes below the snapshot's LSN, and its
 * term there.  So a start knows both at the end of what it has read, and
 * compares them with the log's row that ends there, and the epochs.  If they
 * differ, the log is another one, or has another base, or has lost rows, and
 * nothing of the directory is used.
 *
 * Before the keeper begins a copy, it compares what lies in the directory in
 * the same way, also if no start has.  It goes on from there if the log has it.
 * If a base has replaced it, it is removed.  Else its files are moved to
 * DIR/lost-LSN, as nobody else may have what they have, when the log says that
 * it has lost that: LSN is that of the snapshot.
 *
 * Invariants:
 *
 *  1. The directory is the loader's while the copy's number is 0, else the
 *     keeper's.  Before the loader uses it, no job of the keeper runs.
 *  2. A block is written when its row is confirmed.  A snapshot gets its name
 *     when all that the store had, when it was complete, is confirmed.
 *  3. Bytes past the shared end (us_share_copier_t) are not looked at, and are
 *     overwritten or cut off by what comes.
 */


#ifndef _US_COPIER_H_INCLUDED_
#define _US_COPIER_H_INCLUDED_


#include "us_follow.h"


/* of each tick: starts the keeper's job that is due */
void us_copier(us_life_t *l);

/* whether a job of this process reads the store, which must not be emptied */
int us_copier_inside(const us_life_t *l);


/* the loader's part, of a job */

typedef enum {
    US_COPIER_OK = 0,
    US_COPIER_NONE,                    /* nothing of it is in the store */
    US_COPIER_BAD,                     /* it is not what the log has */
    US_COPIER_AGAIN                    /* not now */
} us_copier_rc_t;

/*
 * Reads the directory into the empty store of f, of the log that m describes.
 * OK: it has all up to `end`, and is not settled.  NONE: the keeper has the
 * directory.  AGAIN: f waits.
 */
us_copier_rc_t us_copier_read(us_follow_t *f, const us_manifest_t *m,
    us_share_copied_t *end);

/*
 * Whether the log, which m describes, has it, epoch and rows: OK, end->row is
 * the log's row that ends there, and the keeper has the directory; AGAIN, the
 * log does not answer, by log->error; BAD, it has not, and us_copier_drop() is
 * to be called.
 */
us_copier_rc_t us_copier_check(us_follow_t *f, const us_manifest_t *m,
    us_share_copied_t *end);

/*
 * What the keeper has found in the directory, and not in the log, and waits
 * with; or NULL.  Who has the log's next term then reports it there, or finds
 * that nothing was lost, and calls us_copier_reported().
 */
const us_share_copied_t *us_copier_missing(const us_life_t *l);
void us_copier_reported(us_life_t *l);

/*
 * The directory is not used, and is the keeper's; the store is emptied.  AGAIN.
 */
us_copier_rc_t us_copier_drop(us_follow_t *f, const char *why);


#endif /* _US_COPIER_H_INCLUDED_ */
