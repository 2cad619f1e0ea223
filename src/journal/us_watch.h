
/*
 * When a sync that reports success can be believed.  Several processes write
 * the file and sync it, each by its own descriptor.
 *
 * Linux reports an error of write-back (errseq_t, since 4.13) once to each
 * descriptor that was open when it happened, at its next fsync().  A descriptor
 * that is opened later reports it too, but only if no other one has reported
 * it before.  The pages are clean then, and what they held is lost.
 *
 *     page written        x
 *     write-back fails       x
 *     A.fsync()                 EIO
 *     B = open()                    x
 *     B.fsync()                       0     and the page is not on the disk
 *
 * A may be another process that is killed before it has recorded the error, or
 * a foreign program.
 *
 * So fsync() == 0 proves that a byte is on the disk only if the byte was
 * written after the descriptor was opened, or was known to be durable then.
 * Hence two words of shared memory:
 *
 *     appended   raised before bytes are written: none lies at or past it
 *     durable    raised after they were proved to be on the disk
 *
 * The process that opens a descriptor reads `appended` after the open().  A
 * sync by that descriptor proves nothing about bytes below this LSN, until
 * `durable` has reached it.  If the descriptor is synced earlier, the process
 * reads the file back from the disk, without the cache (us_writer.c).
 *
 * Both words are LSNs and only grow.  A third word is set when a sync has
 * failed in any process; no process writes then.
 */


#ifndef _US_WATCH_H_INCLUDED_
#define _US_WATCH_H_INCLUDED_


#include "us_disk.h"


typedef struct {
    uint64_t           appended;
    uint64_t           durable;
    uint64_t           failed;
} us_watch_t;


/* watch may be NULL in all of them: no other process has the file open */

/* before bytes are written whose stream ends at lsn */
void us_watch_append(us_watch_t *watch, uint64_t lsn);

/* after a descriptor was opened: the LSN up to which it is in doubt */
uint64_t us_watch_opened(const us_watch_t *watch);

/* whether such a doubt lasts */
int us_watch_doubt(const us_watch_t *watch, uint64_t lsn);

/* all below lsn is on the disk; or a sync has failed */
void us_watch_durable(us_watch_t *watch, uint64_t lsn);
void us_watch_fail(us_watch_t *watch);
int us_watch_failed(const us_watch_t *watch);


#endif /* _US_WATCH_H_INCLUDED_ */
