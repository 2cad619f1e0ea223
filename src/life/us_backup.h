
/*
 * Copies of a data directory: a backup, and a store that is made of one.
 *
 *     data directory --us_backup_copy()--> files --us_backup_seal()--> backup
 *     backup         --us_backup_copy()--> files --us_backup_restore()-->
 *                                             data directory, in a new epoch
 *
 * A backup is a data directory (us_manifest.h) whose manifest has the state
 * `backup`: no server writes to it.  Otherwise a server that continued it, and
 * the one that it was taken from, would give the same ids to different URLs
 * under the same uuid and epoch.
 *
 * The source may belong to a running server.  The copy then holds what was
 * written when it was begun, and so all that had been answered:
 *
 *     1. lock "readers": from now on the server removes no file
 *     2. the manifest: which snapshot, and which segments follow it
 *     3. the watermark: the LSN up to which the copy goes
 *     4. snapshot and segments, byte by byte; the last segment ends at the
 *        block in which that LSN lies
 *     5. the copy is read back from the disk, as a start of the server reads
 *        a directory: the chain of CRCs, the operations, the end
 *
 * The manifest is written last, so a copy that was not completed is none.
 */


#ifndef _US_BACKUP_H_INCLUDED_
#define _US_BACKUP_H_INCLUDED_


#include "us_data.h"


typedef struct {
    int               from;           /* the caller's: the source */
    int               to;             /* and an empty directory, or `from` */
    uint64_t          rate;           /* bytes a second, or 0: any */

    us_manifest_t     manifest;       /* the source's, then the copy's */
    us_tail_t         tail;           /* of the copy */
    uint64_t          files;
    uint64_t          bytes;
    uint64_t          cut;            /* bytes of a torn end, left out */
    uint64_t          lost_ids;       /* answered, and not in the source */
    unsigned          lost:1;
    unsigned          damaged:1;      /* error: the source, not a call */
    unsigned          unwritten:1;    /* error: of a write to the copy */
    us_disk_error_t   error;
    us_disk_error_t   instead;        /* see us_recovery_choose() */
} us_backup_t;


/* whether the source is a data directory, or a backup: as the next */
int us_backup_look(us_backup_t *b);

/*
 * Copies and checks; if `to` is `from`, checks only, and cuts a torn end.  The
 * caller owns `to`: it holds the file "lock" locked.  0, or -1 with b->error,
 * and b->damaged if the source is not whole.
 */
int us_backup_copy(us_backup_t *b);

/*
 * After that: makes the copy a backup, or a data directory with an epoch that
 * no other copy of the store has.  All of it is on the disk then.  0, or -1
 * with b->error.
 */
int us_backup_seal(us_backup_t *b);
int us_backup_restore(us_backup_t *b);


#endif /* _US_BACKUP_H_INCLUDED_ */
