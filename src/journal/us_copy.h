
/*
 * A directory that is a copy: it gets the files of another one, byte for byte,
 * as a stream brings them (us_stream.h).
 *
 *     stream      ... header block block footer | header block ...
 *                       |
 *     directory   snapshot.S  journal.L  journal.M     the same files
 *                 manifest                             state "replica"
 *
 * A frame is written to the place that it has at the sender.  What lies past a
 * place is not looked at, and is overwritten or cut off by what comes.  So a
 * writer that was killed is followed by one that goes on at the last place that
 * is known: that in memory, or the end of the directory (us_recovery.h).
 *
 * Operations that come without files, those of a replicated log, are put into
 * files here, each piece as one block.  Such a copy begins in the middle of a
 * journal.  It is whole when its owner has added a snapshot.
 *
 * The manifest is written with the first segment of the journal, when the
 * snapshot before it is complete.  Until then the directory has one without any
 * settings, which is there before all other files: it says only that they are
 * of a copy.  So a file that no manifest vouches for is never removed.  The end
 * of a copy may be torn in any way: it is cut off, because the sender has it.
 */


#ifndef _US_COPY_H_INCLUDED_
#define _US_COPY_H_INCLUDED_


#include "us_recovery.h"
#include "us_stream.h"


typedef struct {
    int                dirfd;         /* the caller's */
    int                fd;            /* of the file that is written; or -1 */
    us_disk_error_t    error;
} us_copy_t;


void us_copy_init(us_copy_t *c, int dirfd);
void us_copy_close(us_copy_t *c);

/*
 * Writes a header, block or footer that leads from one place to the next; a
 * file is synced with its footer.  m: the sender's manifest.  0; or with
 * c->error, -1: it may be repeated; US_COPY_GONE: a part of what was written
 * before is not there any more.
 */
#define US_COPY_GONE  -2

int us_copy_frame(us_copy_t *c, const us_place_t *from, const us_place_t *to,
    const us_frame_t *f, const us_manifest_t *m);

/*
 * A copy of operations begins: in an empty directory, at an LSN below which so
 * many ids were given.  m: as the manifest is to be.  *at is the place there.
 * 0, or -1 with c->error.
 */
int us_copy_start(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    uint64_t lsn, uint64_t ids);

/*
 * Appends whole operations, which give so many ids, as one block of at most
 * US_BLOCK_MAX bytes, and moves *at past it.  The next file begins when one has
 * `limit` bytes.  Returns as us_copy_frame(); after a failure *at is a place
 * before the operations.
 */
int us_copy_append(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    us_str_t ops, uint64_t ids, uint64_t limit);

/* the next file begins, if one has `limit` bytes; as us_copy_append() */
int us_copy_roll(us_copy_t *c, us_place_t *at, const us_manifest_t *m,
    uint64_t limit);

/* what was written becomes durable; 0, or -1 with c->error */
int us_copy_sync(us_copy_t *c);

/*
 * The sender's settings have changed: the manifest of a copy gets them.  0,
 * also if there is none yet; or -1 with c->error.
 */
int us_copy_settings(us_copy_t *c, const us_manifest_t *m);

/* where a copy ends, after us_recovery_run() by its owner */
void us_copy_place(us_place_t *at, const us_recovery_t *r);


#endif /* _US_COPY_H_INCLUDED_ */
