
/*
 * Writes a snapshot: a stream of operations that builds the store as it was
 * at one LSN of its journal, in a file of blocks (us_segment.h).
 *
 *     snapshot.tmp --fsync, rename--> snapshot.LSN --> manifest names it -->
 *     files that it replaces are removed
 *
 * A crash at any point leaves the old snapshot with its segments, or the new
 * one.  The next snapshot removes leftover files.
 */


#ifndef _US_SNAPSHOT_H_INCLUDED_
#define _US_SNAPSHOT_H_INCLUDED_


#include "us_manifest.h"


typedef struct {
    int                dirfd;
    int                fd;
    const us_ops_t    *ops;
    us_tail_t          at;            /* in its own stream */
    uint64_t           started;       /* bytes below are on the way to disk */

    uint8_t           *buf;           /* bytes not yet in a block */
    size_t             buf_size;
    size_t             len;

    us_disk_error_t    error;
} us_snapshot_t;


int us_snapshot_begin(us_snapshot_t *s, int dirfd, const uint8_t *uuid,
    uint64_t epoch, const us_ops_t *ops);

/* us_store_out_pt: data is a us_snapshot_t */
int us_snapshot_out(void *data, const uint8_t *p, size_t len);

/*
 * The snapshot covers the journal below lsn, which is durable.  After 0 it is
 * the one that the manifest names; *m is what was written.  Else -1, or
 * US_DISK_LOST if a sync of the directory has failed.
 */
int us_snapshot_finish(us_snapshot_t *s, uint64_t lsn, us_manifest_t *m);

/* gives up, at any time; also frees after us_snapshot_finish() */
void us_snapshot_end(us_snapshot_t *s);

/*
 * Removes what the manifest's snapshot makes void: older snapshots, segments
 * that end at or below its LSN.  Does nothing while somebody reads the
 * directory (file "readers").  Returns the number of files removed.
 */
int us_snapshot_drop(int dirfd, const us_manifest_t *m);


#endif /* _US_SNAPSHOT_H_INCLUDED_ */
