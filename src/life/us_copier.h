
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
 * compares them with the log's row that ends there.  If they differ, the log is
 * another one, or has another base, or has lost rows: nothing of the directory
 * is used.  If a base has replaced it, it is removed.  Else its files are moved
 * to DIR/lost-LSN, as nobody else may have what it has: LSN is that of its
 * snapshot.  The keeper begins it anew.
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


#include "us_life.h"


/* of each tick: starts the keeper's job that is due */
void us_copier(us_life_t *l);

/* whether a job of this process reads the store, which must not be emptied */
int us_copier_inside(const us_life_t *l);


/* the loader's part, of a job */

typedef enum {
    US_COPIER_OK = 0,
    US_COPIER_NONE,                    /* nothing of it is in the store */
    US_COPIER_BAD,                     /* the store is to be emptied */
    US_COPIER_AGAIN                    /* not now */
} us_copier_rc_t;

/*
 * Reads the directory into an empty store of the log that m describes.  OK: it
 * has all up to `end`, and is not settled.  But for AGAIN, the keeper has the
 * directory then.
 */
us_copier_rc_t us_copier_read(us_job_t *job, us_store_t *store,
    const us_manifest_t *m, us_share_copied_t *end);

/*
 * Whether the log has it: OK, end->row is the log's row that ends there, and
 * the keeper has the directory; AGAIN, the log does not answer, by log->error;
 * BAD, it has not, and us_copier_drop() is to be called.
 */
us_copier_rc_t us_copier_check(us_job_t *job, us_replog_t *log,
    us_share_copied_t *end);

/* us_replog_follows_pt: by the settings of the log's last term */
int us_cache_follows(void *data, const us_replog_head_t *head,
    const us_replog_row_t *row);

/*
 * The directory is not used, and is the keeper's.  kept: its files are moved
 * first; if they cannot be, no keeper has it.
 */
void us_copier_drop(us_job_t *job, int kept, const char *why);


#endif /* _US_COPIER_H_INCLUDED_ */
