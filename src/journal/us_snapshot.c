
/*
 * Writes a snapshot, and removes the files that it replaces.  See
 * us_snapshot.h.
 *
 * The stream comes in pieces of any size.  buf collects them until there is
 * enough for a block.  Its first bytes are room for the first block's header; a
 * later header takes the place of what was written before it.
 */


#include "us_snapshot.h"
#include "us_dir.h"
#include "../us_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>


#define US_SNAPSHOT_TMP    "snapshot.tmp"
#define US_SNAPSHOT_START  (4 * 1024 * 1024)


int
us_snapshot_begin(us_snapshot_t *s, int dirfd, const uint8_t *uuid,
    uint64_t epoch, const us_ops_t *ops)
{
    uint8_t            p[US_SEGMENT_HEADER];
    us_segment_head_t  head;

    memset(s, 0, sizeof(us_snapshot_t));

    s->dirfd = dirfd;
    s->ops = ops;

    head.kind = US_SEGMENT_SNAPSHOT;
    head.epoch = epoch;
    memcpy(head.uuid, uuid, 16);

    s->fd = us_disk_create(dirfd, US_SNAPSHOT_TMP, O_RDWR|O_TRUNC);

    if (s->fd == -1) {
        return us_disk_fail(&s->error, errno, "\"" US_SNAPSHOT_TMP
                            "\" could not be made");
    }

    (void) us_tail_begin(&s->at, p, &head);

    if (us_disk_pwrite(s->fd, p, sizeof(p), 0) == -1) {
        return us_disk_fail(&s->error, errno, "write to \"" US_SNAPSHOT_TMP
                            "\" failed");
    }

    return 0;
}


/*
 * Writes blocks of what has gathered, as long as it is `least` bytes, and more
 * than a part of an operation.
 */

static int
us_snapshot_blocks(us_snapshot_t *s, size_t least)
{
    size_t     used;
    ssize_t    n;
    uint8_t   *p;
    uint64_t   ids, offset;

    for (used = 0; s->len - used >= least; used += n) {
        p = s->buf + used;
        n = us_block_fill(p + US_BLOCK_HEADER, s->len - used, s->ops, &ids);

        if (n == -1) {
            return us_disk_fail(&s->error, 0, "the stream has no operation");
        }

        if (n == 0) {
            break;
        }

        offset = s->at.offset;
        (void) us_tail_block(&s->at, p, n, ids, 0);

        if (us_disk_pwrite(s->fd, p, US_BLOCK_HEADER + n, offset) == -1) {
            return us_disk_fail(&s->error, errno, "write to \""
                                US_SNAPSHOT_TMP "\" failed");
        }

        /*
         * If the kernel got all of it by the fsync() at the end, a sync of the
         * journal would wait until gigabytes are on the disk.  It is a hint: an
         * error is reported by the fsync().
         */

        if (s->at.offset - s->started >= US_SNAPSHOT_START) {
            (void) sync_file_range(s->fd, (off_t) s->started,
                                   (off_t) (s->at.offset - s->started),
                                   SYNC_FILE_RANGE_WRITE);
            s->started = s->at.offset;
        }
    }

    if (used) {
        s->len -= used;
        memmove(s->buf + US_BLOCK_HEADER, s->buf + US_BLOCK_HEADER + used,
                s->len);
    }

    return 0;
}


int
us_snapshot_out(void *data, const uint8_t *p, size_t len)
{
    us_snapshot_t  *s = data;

    size_t          size;
    uint8_t        *buf;

    if (s->len + len > s->buf_size) {
        size = s->len + len;
        size = (size < 4 * US_BLOCK_SIZE) ? 4 * US_BLOCK_SIZE : size * 2;
        buf = realloc(s->buf, US_BLOCK_HEADER + size);

        if (buf == NULL) {
            return us_disk_fail(&s->error, ENOMEM, "no memory");
        }

        s->buf = buf;
        s->buf_size = size;
    }

    memcpy(s->buf + US_BLOCK_HEADER + s->len, p, len);
    s->len += len;

    if (us_snapshot_blocks(s, 2 * US_BLOCK_SIZE) == -1) {
        return -1;
    }

    us_fault(US_FAULT_SNAPSHOT);

    return 0;
}


int
us_snapshot_finish(us_snapshot_t *s, uint64_t lsn, us_manifest_t *m)
{
    int       rc;
    char      name[US_DISK_NAME];
    uint8_t   p[US_BLOCK_HEADER];
    uint64_t  offset;

    if (us_snapshot_blocks(s, 1) == -1) {
        return -1;
    }

    if (s->len) {
        return us_disk_fail(&s->error, 0, "the stream ends in the middle of an "
                            "operation");
    }

    offset = s->at.offset;
    s->at.lsn = lsn;
    us_tail_footer(&s->at, p);

    if (us_disk_pwrite(s->fd, p, sizeof(p), offset) == -1) {
        return us_disk_fail(&s->error, errno, "write to \"" US_SNAPSHOT_TMP
                            "\" failed");
    }

    if (fsync(s->fd) == -1) {
        return us_disk_fail(&s->error, errno, "fsync of \"" US_SNAPSHOT_TMP
                            "\" failed");
    }

    us_segment_name(name, US_SEGMENT_SNAPSHOT, lsn);

    rc = us_disk_rename(s->dirfd, US_SNAPSHOT_TMP, name, &s->error);

    if (rc != 0) {
        return rc;
    }

    (void) close(s->fd);
    s->fd = -1;

    us_fault(US_FAULT_SNAPSHOT_DONE);

    m->has_snapshot = 1;
    m->snapshot = lsn;

    return us_manifest_write(s->dirfd, m, &s->error);
}


void
us_snapshot_end(us_snapshot_t *s)
{
    if (s->fd != -1) {
        (void) close(s->fd);
        (void) unlinkat(s->dirfd, US_SNAPSHOT_TMP, 0);
        s->fd = -1;
    }

    free(s->buf);
    s->buf = NULL;
}


int
us_snapshot_drop(int dirfd, const us_manifest_t *m)
{
    int             lock, n;
    char            name[US_DISK_NAME];
    size_t          i;
    us_dir_t        dir;

    if (!m->has_snapshot) {
        return 0;
    }

    us_fault(US_FAULT_DROP);

    lock = us_disk_lock(dirfd, US_DIR_READERS, O_RDWR, LOCK_EX|LOCK_NB);

    if (lock == -1) {
        return 0;
    }

    n = 0;

    if (us_dir_read(dirfd, &dir, NULL) == 0) {

        for (i = 0; i < dir.nsnapshots; i++) {
            if (dir.snapshots[i] != m->snapshot) {
                us_segment_name(name, US_SEGMENT_SNAPSHOT, dir.snapshots[i]);
                n += (unlinkat(dirfd, name, 0) == 0);
            }
        }

        /* a segment ends where the next one begins */

        for (i = 0; i + 1 < dir.nsegments; i++) {
            if (dir.segments[i + 1] <= m->snapshot) {
                us_segment_name(name, US_SEGMENT_JOURNAL, dir.segments[i]);
                n += (unlinkat(dirfd, name, 0) == 0);
            }
        }

        us_dir_free(&dir);
    }

    (void) close(lock);

    return n;
}
