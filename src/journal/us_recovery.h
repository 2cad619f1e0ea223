
/*
 * Reads a data directory back: the manifest, its snapshot, the journal from
 * there on; and decides whether the end of the journal is a crash or damage.
 *
 *     manifest -> snapshot.S -> journal ... S ... -> end
 *
 *   1. the newest segment ends in a torn block, and no valid block follows:
 *        a crash.  The end is cut off; r->cut and r->lost report it.
 *   2. the newest segment has a bad block, and valid blocks follow; but the
 *      machine was restarted since, and none of them records that the bad
 *      place was durable:
 *        a power failure, in which later writes reached the disk before
 *        earlier ones.  The end is cut off as well.
 *   3. the snapshot differs from what was written, and the journal or an older
 *      snapshot has all that it had:
 *        us_recovery_choose().  r->instead reports it.
 *   4. any other difference from what was written:
 *        damage.  Everything before it is good, no file is changed, and
 *        r->error names the place.
 *
 * Ids are `lost` when they were answered, or may have been, and are no longer
 * there.  The LSN up to which replies were sent is in the manifest after a
 * clean end, and in the watermark after a kill (us_writer.h).  After a power
 * failure it is not known, and only sync=always excludes a loss.
 *
 * A process that does not own the directory can read it, too, while the owner
 * writes, and read on later.
 */


#ifndef _US_RECOVERY_H_INCLUDED_
#define _US_RECOVERY_H_INCLUDED_


#include "us_manifest.h"


typedef enum {
    US_RECOVERY_OK = 0,
    US_RECOVERY_FRESH,                /* an empty directory */
    US_RECOVERY_DAMAGED,              /* good up to r->lsn; r->error */
    US_RECOVERY_FAILED,               /* nothing was read; r->error */
    US_RECOVERY_NO_ROOM,              /* apply could not take it all */
    US_RECOVERY_NO_MEMORY,            /* r->error */
    US_RECOVERY_STOP                  /* by apply */
} us_recovery_rc_t;


/*
 * Applies whole operations; len 0: these were all that there are now.  Returns
 * 0; -1: they cannot be, that is damage; or US_RECOVERY_NO_ROOM, _NO_MEMORY or
 * _STOP.  After NO_ROOM all that follows is given to it all the same, so that
 * it can be counted, and us_recovery_run() changes nothing on the disk.
 */
typedef int (*us_recovery_apply_pt)(void *data, const uint8_t *p, size_t len);

/* one that applies nothing: the files are checked only */
int us_recovery_ignore(void *data, const uint8_t *p, size_t len);


typedef struct {
    int                   dirfd;      /* the caller's */
    int                   readers;    /* lock, or -1 */
    const us_ops_t       *ops;
    us_recovery_apply_pt  apply;
    void                 *data;
    char                  boot[US_BOOT_ID + 1];

    us_manifest_t         manifest;
    us_disk_error_t       instead;    /* why its snapshot is not read, or "" */
    unsigned              started:1;  /* the snapshot has been read */
    unsigned              no_room:1;  /* apply has said so */
    unsigned              whole:1;    /* for us_recovery_run(), by callers */

    uint64_t              lsn;        /* applied up to here */
    uint64_t              ids;
    us_tail_t             tail;       /* for the writer, after OK as owner */

    uint64_t              done;       /* bytes of files */
    uint64_t              total;

    /* what the owner found at the end */
    uint64_t              cut;        /* bytes */
    us_disk_error_t       torn;       /* where, and how it looked */
    unsigned              lost:1;     /* answered ids may have been cut */
    uint64_t              lost_ids;   /* how many; 0: not known */

    us_disk_error_t       error;
} us_recovery_t;


/*
 * Reads the manifest.  boot: this machine's (us_manifest_boot()).  To be
 * closed whatever it returned.
 */
us_recovery_rc_t us_recovery_open(us_recovery_t *r, int dirfd,
    const us_ops_t *ops, us_recovery_apply_pt apply, void *data,
    const char *boot);
void us_recovery_close(us_recovery_t *r);

/*
 * Reads on from r->lsn.  owner: the directory is locked by us; what has been
 * read is then on the disk, the end is settled and r->tail is set.
 *
 * A process that is not the owner takes a bad block for one that is being
 * written, and returns US_RECOVERY_OK.  With r->whole it returns
 * US_RECOVERY_DAMAGED if valid blocks follow the bad one, as for the owner.
 */
us_recovery_rc_t us_recovery_run(us_recovery_t *r, int owner);

/*
 * Which snapshot us_recovery_run() reads: that of the manifest, or, if that is
 * damaged or missing, an older one that is still there with all of the journal
 * past it, or none if the journal goes back to its beginning.  m names it then,
 * and `instead` says why.  A file is read twice only where there is a choice:
 * it is small then, as segments that a snapshot covers are removed.
 */
void us_recovery_choose(int dirfd, us_manifest_t *m, const us_ops_t *ops,
    us_disk_error_t *instead);

/*
 * Opens a directory for writing, by its owner: writes the manifest, of which m
 * has uuid, epoch, snapshot and settings, and the watermark.  0, or -1 with e:
 * it may be tried again as long as nothing was appended.
 */
int us_recovery_settle(int dirfd, us_manifest_t *m, const us_tail_t *tail,
    const char *boot, const char *sync, us_disk_error_t *e);

/* closed in order: all below lsn is durable */
int us_recovery_clean(int dirfd, uint64_t lsn, uint64_t ids,
    us_disk_error_t *e);


#endif /* _US_RECOVERY_H_INCLUDED_ */
