
/*
 * The end of the journal.  See us_writer.h.
 *
 *     us_writer_append()
 *         us_writer_gather()     operations from the ring, into the buffer
 *         us_writer_seal()       the segment is full: footer, sync
 *         us_writer_begin()      a new one: header, sync, rename, sync
 *         us_writer_blocks()     headers between the operations
 *         one pwrite()
 *
 * *tail moves only past bytes that are written.
 */


#include "us_writer.h"
#include "us_crc32c.h"
#include "../us_atomic.h"
#include "../us_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_WATERMARK_MAGIC  "USMARK\r\n"
#define US_WATERMARK_SIZE   112
#define US_WATERMARK_TRIES  4         /* while it is being written */


void
us_watch_append(us_watch_t *watch, uint64_t lsn)
{
    if (watch) {
        us_raise(&watch->appended, lsn);
    }
}


void
us_watch_durable(us_watch_t *watch, uint64_t lsn)
{
    if (watch) {
        us_raise(&watch->durable, lsn);
    }
}


void
us_watch_fail(us_watch_t *watch)
{
    if (watch) {
        __atomic_store_n(&watch->failed, 1, __ATOMIC_SEQ_CST);
    }
}


static int
us_watch_failed(const us_watch_t *watch)
{
    return watch && __atomic_load_n(&watch->failed, __ATOMIC_SEQ_CST);
}


void
us_writer_init(us_writer_t *w, int dirfd, const uint8_t *uuid, uint64_t epoch,
    const char *boot, const us_ops_t *ops)
{
    memset(w, 0, sizeof(us_writer_t));

    w->dirfd = dirfd;
    w->syncfd = -1;
    w->fd = -1;
    w->mark_fd = -1;
    w->epoch = epoch;
    w->ops = ops;
    w->limit = us_fault_number("US_SEGMENT_SIZE", US_SEGMENT_SIZE);

    memcpy(w->mark.uuid, uuid, 16);
    snprintf(w->mark.boot, sizeof(w->mark.boot), "%s", boot);
}


void
us_writer_close(us_writer_t *w)
{
    if (w->fd != -1) {
        (void) close(w->fd);
    }

    if (w->mark_fd != -1) {
        (void) close(w->mark_fd);
    }

    if (w->syncfd != -1) {
        (void) close(w->syncfd);
    }

    free(w->buf);

    w->fd = -1;
    w->mark_fd = -1;
    w->syncfd = -1;
    w->buf = NULL;
    w->buf_size = 0;
}


/* whether w->fd is the newest segment, and as long as was written; its bytes */

static int
us_writer_there(us_writer_t *w, const us_tail_t *tail, uint64_t *size)
{
    char         buf[US_DISK_NAME];
    const char  *name;
    struct stat  st, there;

    name = us_segment_name(buf, US_SEGMENT_JOURNAL, tail->segment);

    if (fstat(w->fd, &st) == -1) {
        return us_disk_fail(&w->error, errno, "fstat of \"%s\" failed", name);
    }

    if (fstatat(w->dirfd, name, &there, AT_SYMLINK_NOFOLLOW) == -1) {

        if (errno == ENOENT) {
            us_disk_fail(&w->error, 0, "\"%s\" has been removed", name);
            return US_WRITER_GONE;
        }

        return us_disk_fail(&w->error, errno, "fstat of \"%s\" failed", name);
    }

    if (there.st_ino != st.st_ino || there.st_dev != st.st_dev) {
        us_disk_fail(&w->error, 0, "\"%s\" has been replaced", name);
        return US_WRITER_GONE;
    }

    if ((uint64_t) st.st_size < tail->offset) {
        us_disk_fail(&w->error, 0, "\"%s\" has %" PRIu64 " bytes, %" PRIu64
                     " were written: it has been cut", name,
                     (uint64_t) st.st_size, tail->offset);
        return US_WRITER_GONE;
    }

    *size = (uint64_t) st.st_size;

    return 0;
}


int
us_writer_attach(us_writer_t *w, const us_tail_t *tail)
{
    int        rc;
    ssize_t    n;
    uint8_t    p[US_BLOCK_HEADER], there[US_BLOCK_HEADER];
    uint64_t   size;
    us_tail_t  next;

    w->sealed = 0;

    if (w->mark_fd == -1) {
        w->mark_fd = us_disk_create(w->dirfd, US_WATERMARK_NAME, O_WRONLY);

        if (w->mark_fd == -1) {
            return us_disk_fail(&w->error, errno, "\"" US_WATERMARK_NAME
                                "\" could not be opened");
        }
    }

    rc = us_writer_ready(w, tail);

    if (rc != 0 || tail->offset == 0) {
        return rc;
    }

    rc = us_writer_there(w, tail, &size);

    if (rc != 0) {
        return rc;
    }

    if (size == tail->offset + US_BLOCK_HEADER) {
        n = us_disk_pread(w->fd, there, sizeof(there), tail->offset);

        if (n == -1) {
            return us_disk_fail(&w->error, errno, "read of journal.%016" PRIx64
                                " at %" PRIu64 " failed", tail->segment,
                                tail->offset);
        }

        next = *tail;
        us_tail_footer(&next, p);

        /* the footer: a next segment may be there, which begins at the tail */

        if (n == sizeof(there) && memcmp(there, p, sizeof(p)) == 0) {
            w->sealed = 1;
            return 0;
        }
    }

    if (size > tail->offset && ftruncate(w->fd, (off_t) tail->offset) == -1) {
        return us_disk_fail(&w->error, errno, "journal.%016" PRIx64 " could "
                            "not be cut to %" PRIu64 " bytes", tail->segment,
                            tail->offset);
    }

    return 0;
}


/*
 * The directory by a descriptor of our own, opened before anything is renamed:
 * an error is reported once by each open file.
 */

static int
us_writer_open_dir(us_writer_t *w)
{
    if (w->syncfd == -1) {
        w->syncfd = openat(w->dirfd, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    }

    return w->syncfd == -1 ? us_disk_fail(&w->error, errno, "the directory "
                                          "could not be opened") : 0;
}


static int
us_writer_open(us_writer_t *w, const us_tail_t *tail)
{
    int          fd;
    char         buf[US_DISK_NAME];
    const char  *name;

    if (!us_writer_stale(w, tail)) {
        return 0;
    }

    /* its place among the descriptors is ours, and is taken again at once */

    if (w->fd != -1) {
        (void) close(w->fd);
        w->fd = -1;
    }

    name = us_segment_name(buf, US_SEGMENT_JOURNAL, tail->segment);

    fd = openat(w->dirfd, name, O_RDWR|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1 && errno == ENOENT) {
        us_disk_fail(&w->error, 0, "\"%s\" has been removed", name);
        return US_WRITER_GONE;
    }

    if (fd == -1) {
        return us_disk_fail(&w->error, errno, "\"%s\" could not be opened",
                            name);
    }

    w->fd = fd;
    w->segment = tail->segment;
    w->renewed = tail->renewed;
    w->doubt = 0;

    if (w->watch) {

        /* the file was opened before the word is read */

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

        w->doubt = __atomic_load_n(&w->watch->appended, __ATOMIC_SEQ_CST);
    }

    return 0;
}


int
us_writer_ready(us_writer_t *w, const us_tail_t *tail)
{
    int  rc;

    rc = tail->offset ? us_writer_open(w, tail) : 0;

    if (rc == 0) {
        (void) us_writer_open_dir(w);
    }

    return rc;
}


int
us_writer_stale(const us_writer_t *w, const us_tail_t *tail)
{
    return tail->offset
           && (w->fd == -1 || w->segment != tail->segment
               || w->renewed != tail->renewed);
}


/*
 * Makes blocks at the beginning of the buffer out of the whole operations among
 * the len bytes at its end.  A block needs no more room than its header.  *next
 * becomes the tail after them.  Returns the bytes of the blocks, or -1 if the
 * bytes are no operation.
 */

static ssize_t
us_writer_blocks(us_writer_t *w, us_tail_t *next, size_t len, uint64_t durable)
{
    size_t     used, out;
    ssize_t    n;
    uint8_t   *p;
    uint64_t   ids;

    p = w->buf + w->buf_size - len;
    out = 0;

    for (used = 0; used < len; used += n) {
        n = us_block_fill(p + used, len - used, w->ops, &ids);

        if (n == -1) {
            return us_disk_fail(&w->error, 0, "no operation at LSN %" PRIu64,
                                next->lsn);
        }

        if (n == 0) {
            break;
        }

        memmove(w->buf + out + US_BLOCK_HEADER, p + used, n);

        out += us_tail_block(next, w->buf + out, n, ids, durable);
    }

    return out;
}


/*
 * Copies the operations to the end of the buffer, which has room for the
 * blocks' headers before them.  Of more than US_WRITER_MAX bytes only as many
 * are taken, but an operation is never too long; and none from w->roll on, as
 * that one begins a segment.
 */

static int
us_writer_gather(us_writer_t *w, uint64_t lsn, const us_str_t pieces[2],
    size_t *len)
{
    size_t    n, size;
    uint8_t  *buf;

    n = us_pieces_group(pieces, 0, US_WRITER_MAX, w->ops);

    if (w->roll > lsn && w->roll - lsn < n) {
        n = w->roll - lsn;
    }

    /* a block may hold little more than a half of what it could */
    size = n + (2 * n / US_BLOCK_SIZE + 2) * US_BLOCK_HEADER;

    if (size > w->buf_size) {
        if (size < 256 * 1024) {
            size = 256 * 1024;
        }

        /* cleared: it is kept, and malloc() gives what others left */

        buf = calloc(1, size);

        if (buf == NULL) {
            return us_disk_fail(&w->error, ENOMEM, "no memory for a group");
        }

        free(w->buf);
        w->buf = buf;
        w->buf_size = size;
    }

    us_pieces_copy(w->buf + w->buf_size - n, pieces, 0, n);
    *len = n;

    return 0;
}


/* makes the next segment, whole or not at all, and opens it */

static int
us_writer_begin(us_writer_t *w, us_tail_t *tail)
{
    int                fd, rc;
    char               buf[US_DISK_NAME], tmp[US_DISK_NAME];
    uint8_t            p[US_SEGMENT_HEADER];
    us_tail_t          next;
    const char        *name;
    us_segment_head_t  head;

    head.kind = US_SEGMENT_JOURNAL;
    memcpy(head.uuid, w->mark.uuid, 16);
    head.epoch = w->epoch;

    next = *tail;
    (void) us_tail_begin(&next, p, &head);

    name = us_segment_name(buf, US_SEGMENT_JOURNAL, tail->lsn);
    snprintf(tmp, sizeof(tmp), "%s.tmp", name);

    /* the segment before is sealed: its descriptor is the new one's */

    if (w->fd != -1) {
        (void) close(w->fd);
        w->fd = -1;
    }

    if (us_writer_open_dir(w) == -1) {
        return -1;
    }

    fd = us_disk_create(w->dirfd, tmp, O_RDWR|O_TRUNC);

    if (fd == -1) {
        return us_disk_fail(&w->error, errno, "\"%s\" could not be made", tmp);
    }

    if (us_disk_pwrite(fd, p, sizeof(p), 0) == -1 || fsync(fd) == -1) {
        rc = us_disk_fail(&w->error, errno, "write or fsync of \"%s\" failed",
                          tmp);
        goto failed;
    }

    us_fault(US_FAULT_SEGMENT);

    rc = us_disk_rename(w->syncfd, tmp, name, &w->error);

    if (rc != 0) {
        rc = (rc == US_DISK_LOST) ? US_WRITER_LOST : -1;
        goto failed;
    }

    w->fd = fd;
    w->segment = tail->lsn;
    w->renewed = tail->renewed;
    w->doubt = 0;

    *tail = next;

    return 0;

failed:

    (void) close(fd);
    (void) unlinkat(w->dirfd, tmp, 0);

    return rc;
}


static int
us_writer_failed(us_writer_t *w)
{
    us_disk_fail(&w->error, 0, "a sync of journal.%016" PRIx64 " has failed "
                 "in another process", w->segment);
    return US_WRITER_LOST;
}


/* syncs w->fd, the segment of the tail */

static int
us_writer_settle(us_writer_t *w, const us_tail_t *tail)
{
    int             rc;
    char            name[US_DISK_NAME];
    us_read_t       got;
    uint64_t        size;
    us_block_t      b;
    us_reader_t     r;
    const uint8_t  *p;

    us_fault(US_FAULT_SYNC);

    if (us_disk_sync(w->fd) == -1) {
        us_disk_fail(&w->error, errno, "fdatasync of journal.%016" PRIx64
                     " failed", w->segment);
        us_watch_fail(w->watch);
        return US_WRITER_LOST;
    }

    us_fault(US_FAULT_SYNCED);

    if (w->watch
        && __atomic_load_n(&w->watch->durable, __ATOMIC_SEQ_CST) < w->doubt)
    {

        /*
         * Does the disk hold the newest segment up to the tail, whatever was
         * reported to others?  The sync came first, so that all of it was given
         * to the disk.  A file that was removed or replaced says nothing of it.
         */

        us_segment_name(name, US_SEGMENT_JOURNAL, tail->segment);

        got = us_reader_open(&r, w->dirfd, name, US_SEGMENT_JOURNAL,
                             w->mark.uuid, w->ops, US_READ_DISK);

        while (got == US_READ_BLOCK && r.at.offset < tail->offset) {
            got = us_reader_next(&r, &b, &p);
        }

        rc = 0;

        if (got == US_READ_FAILED && us_disk_passing(r.error.err)) {
            w->error = r.error;
            rc = -1;

        } else if ((r.at.offset != tail->offset || r.at.crc != tail->crc)
                   && (rc = us_writer_there(w, tail, &size)) == 0)
        {
            us_disk_fail(&w->error, 0, "journal.%016" PRIx64 " is not on the "
                         "disk as it was written: good up to %" PRIu64 " of %"
                         PRIu64 " bytes", tail->segment, r.at.offset,
                         tail->offset);
            us_watch_fail(w->watch);
            rc = US_WRITER_LOST;
        }

        us_reader_close(&r);

        if (rc != 0) {
            return rc;
        }
    }

    if (us_watch_failed(w->watch)) {
        return us_writer_failed(w);
    }

    us_watch_durable(w->watch, tail->lsn);

    return 0;
}


/*
 * The footer may be there already, written by a process that was killed before
 * the tail was stored: then it is written again.
 */

static int
us_writer_seal(us_writer_t *w, us_tail_t *tail)
{
    int        rc;
    uint8_t    p[US_BLOCK_HEADER];
    us_tail_t  next;

    next = *tail;
    us_tail_footer(&next, p);

    if (us_disk_pwrite(w->fd, p, sizeof(p), tail->offset) == -1) {
        us_disk_fail(&w->error, errno, "write to journal.%016" PRIx64
                     " at %" PRIu64 " failed", tail->segment, tail->offset);
        return -1;
    }

    us_fault(US_FAULT_SEAL);

    rc = us_writer_settle(w, tail);

    if (rc != 0) {
        return rc;
    }

    us_fault(US_FAULT_SEALED);

    *tail = next;
    w->sealed = 0;

    return 0;
}


int
us_writer_append(us_writer_t *w, us_tail_t *tail, const us_str_t pieces[2],
    uint64_t durable)
{
    int        rc, err;
    size_t     len;
    ssize_t    n;
    us_tail_t  next;

    len = 0;

    if (us_writer_gather(w, tail->lsn, pieces, &len) == -1) {
        return -1;
    }

    if (len == 0) {
        return 0;
    }

    next = *tail;

    if (next.offset >= w->limit
        || (next.offset
            && (w->sealed
                || (next.segment < w->roll && w->roll <= next.lsn))))
    {
        rc = us_writer_seal(w, &next);
        if (rc != 0) {
            return rc;
        }

        /* the caller keeps what is true now, should the rest fail */
        *tail = next;
    }

    if (next.offset == 0) {
        rc = us_writer_begin(w, &next);
        if (rc != 0) {
            return rc;
        }

        *tail = next;
    }

    us_fault(US_FAULT_APPEND);

    n = us_writer_blocks(w, &next, len, durable);

    if (n <= 0) {
        return n == 0 ? 0 : US_WRITER_LOST;
    }

    us_watch_append(w->watch, next.lsn);

    rc = us_disk_pwrite(w->fd, w->buf, n, tail->offset);
    err = errno;

    /* the buffer is kept, and a model has texts of URLs, at both ends of it */

    explicit_bzero(w->buf, n);
    explicit_bzero(w->buf + w->buf_size - len, len);

    if (rc == -1) {
        us_disk_fail(&w->error, err, "write to journal.%016" PRIx64
                     " at %" PRIu64 " failed", tail->segment, tail->offset);

        /* what has been written of it is cut, at the latest by an attach */

        (void) !ftruncate(w->fd, (off_t) tail->offset);

        return -1;
    }

    us_fault(US_FAULT_WRITTEN);

    *tail = next;

    return 0;
}


int
us_writer_sync(us_writer_t *w, const us_tail_t *tail)
{
    int  rc;

    if (tail->offset == 0) {
        /* sealed, and synced when it was */
        return us_watch_failed(w->watch) ? us_writer_failed(w) : 0;
    }

    rc = us_writer_open(w, tail);

    return rc == 0 ? us_writer_settle(w, tail) : rc;
}


int
us_writer_renew(us_writer_t *w, us_tail_t *tail)
{
    int        rc;
    us_tail_t  next;

    next = *tail;
    next.renewed++;

    rc = us_writer_begin(w, &next);

    if (rc == 0) {
        *tail = next;
    }

    return rc;
}


static void
us_watermark_encode(uint8_t *p, const us_watermark_t *mark)
{
    memset(p, 0, US_WATERMARK_SIZE);
    memcpy(p, US_WATERMARK_MAGIC, 8);
    us_put32(p + 8, US_WATERMARK_VERSION);
    memcpy(p + 16, mark->uuid, 16);
    memcpy(p + 32, mark->boot, strlen(mark->boot));
    us_put64(p + 72, mark->written);
    us_put64(p + 80, mark->durable);
    us_put64(p + 88, mark->ids);
    us_put64(p + 96, mark->deleted);
    us_put32(p + 108, us_crc32c(0, p, US_WATERMARK_SIZE - 4));
}


int
us_writer_mark(us_writer_t *w, const us_tail_t *tail, uint64_t durable,
    uint64_t deleted)
{
    uint8_t  p[US_WATERMARK_SIZE];

    w->mark.written = tail->lsn;
    w->mark.durable = durable;
    w->mark.ids = tail->ids;
    w->mark.deleted = deleted;

    us_watermark_encode(p, &w->mark);

    if (us_disk_pwrite(w->mark_fd, p, sizeof(p), 0) == -1) {
        return us_disk_fail(&w->error, errno, "write to \"" US_WATERMARK_NAME
                            "\" failed");
    }

    return 0;
}


void
us_watermark_write(int dirfd, const us_watermark_t *mark)
{
    int      fd;
    uint8_t  p[US_WATERMARK_SIZE];

    fd = us_disk_create(dirfd, US_WATERMARK_NAME, O_WRONLY);

    if (fd == -1) {
        return;
    }

    us_watermark_encode(p, mark);

    (void) us_disk_pwrite(fd, p, sizeof(p), 0);
    (void) close(fd);
}


int
us_watermark_read(int dirfd, us_watermark_t *mark)
{
    int       fd, good;
    uint8_t   p[US_WATERMARK_SIZE];
    unsigned  i;

    fd = openat(dirfd, US_WATERMARK_NAME, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    good = 0;

    for (i = 0; i < US_WATERMARK_TRIES && !good; i++) {
        good = us_disk_pread(fd, p, sizeof(p), 0) == sizeof(p)
               && memcmp(p, US_WATERMARK_MAGIC, 8) == 0
               && us_get32(p + 8) == US_WATERMARK_VERSION
               && us_get32(p + 108) == us_crc32c(0, p, sizeof(p) - 4);
    }

    (void) close(fd);

    if (!good) {
        return -1;
    }

    memcpy(mark->uuid, p + 16, 16);
    memcpy(mark->boot, p + 32, US_BOOT_ID);
    mark->boot[US_BOOT_ID] = '\0';
    mark->written = us_get64(p + 72);
    mark->durable = us_get64(p + 80);
    mark->ids = us_get64(p + 88);
    mark->deleted = us_get64(p + 96);

    return 0;
}
