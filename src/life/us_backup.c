
/*
 * Backups.  See us_backup.h.
 */


#include "us_backup.h"
#include "../journal/us_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_BACKUP_CHUNK   (256 * 1024)

/* a restored store's epoch: seconds since 1970 and so many random bits */
#define US_BACKUP_RANDOM  21


static int
us_backup_bytes(us_backup_t *b, int in, int out, uint64_t size,
    const char *name)
{
    int              rc;
    size_t           part;
    double           ahead;
    ssize_t          n;
    uint8_t         *buf;
    uint64_t         at;
    struct timespec  began, now, pause;

    buf = malloc(US_BACKUP_CHUNK);

    if (buf == NULL) {
        return us_disk_fail(&b->error, ENOMEM, "no memory");
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &began);
    rc = 0;

    for (at = 0; at < size; at += n) {
        part = (size - at < US_BACKUP_CHUNK) ? size - at : US_BACKUP_CHUNK;

        n = us_disk_pread(in, buf, part, at);

        if (n == -1) {
            rc = us_disk_fail(&b->error, errno, "\"%s\" at offset %" PRIu64
                              " could not be read", name, at);
            break;
        }

        /* it was cut meanwhile, by a server that takes over */

        if (n == 0) {
            break;
        }

        if (us_disk_pwrite(out, buf, n, at) == -1) {
            b->unwritten = 1;
            rc = us_disk_fail(&b->error, errno, "write to the copy of \"%s\" "
                              "failed", name);
            break;
        }

        b->bytes += n;

        if (b->rate == 0) {
            continue;
        }

        /* sleeps until what is read is not faster than the rate */

        (void) clock_gettime(CLOCK_MONOTONIC, &now);

        ahead = (double) (at + n) / (double) b->rate
                - (double) (now.tv_sec - began.tv_sec)
                - (double) (now.tv_nsec - began.tv_nsec) / 1e9;

        if (ahead > 0) {
            pause.tv_sec = (time_t) ahead;
            pause.tv_nsec = (long) ((ahead - (double) pause.tv_sec) * 1e9);
            (void) nanosleep(&pause, NULL);
        }
    }

    free(buf);

    return rc;
}


/* at most `limit` bytes of a file, synced */

static int
us_backup_file(us_backup_t *b, const char *name, uint64_t limit)
{
    int          in, out, rc;
    uint64_t     size;
    struct stat  st;

    in = openat(b->from, name, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (in == -1) {
        b->damaged = (errno == ENOENT);
        return us_disk_fail(&b->error, errno, "\"%s\" could not be opened",
                            name);
    }

    if (fstat(in, &st) == -1 || !S_ISREG(st.st_mode)) {
        (void) close(in);
        return us_disk_fail(&b->error, 0, "\"%s\" is no regular file", name);
    }

    size = (uint64_t) st.st_size;
    size = (size < limit) ? size : limit;

    out = us_disk_create(b->to, name, O_RDWR|O_EXCL);

    if (out == -1) {
        b->unwritten = 1;
        us_disk_fail(&b->error, errno, "the copy of \"%s\" could not be made",
                     name);
        (void) close(in);
        return -1;
    }

    rc = us_backup_bytes(b, in, out, size, name);

    if (rc == 0 && fsync(out) == -1) {
        b->unwritten = 1;
        rc = us_disk_fail(&b->error, errno, "fsync of the copy of \"%s\" "
                          "failed", name);
    }

    /* the check is to read the disk, not the cache */

    (void) posix_fadvise(out, 0, 0, POSIX_FADV_DONTNEED);

    (void) close(in);
    (void) close(out);

    b->files += (rc == 0);

    return rc;
}


/*
 * The snapshot, and the segments from the one on that holds its LSN, up to the
 * target.
 */

static int
us_backup_files(us_backup_t *b, uint64_t target)
{
    int             rc;
    char            name[US_DISK_NAME];
    size_t          i, first;
    uint64_t        lsn, limit;
    us_dir_t        dir;
    us_read_t       end;
    us_block_t      block;
    us_reader_t     r;
    const uint8_t  *p;

    rc = 0;
    lsn = 0;

    if (b->manifest.has_snapshot) {
        lsn = b->manifest.snapshot;
        us_segment_name(name, US_SEGMENT_SNAPSHOT, lsn);
        rc = us_backup_file(b, name, UINT64_MAX);
    }

    if (rc == -1 || us_dir_read(b->from, &dir, &b->error) == -1) {
        return -1;
    }

    first = us_dir_upto(&dir, lsn);
    first = first ? first - 1 : 0;

    for (i = first; rc == 0 && i < dir.nsegments; i++) {

        if (i > first && dir.segments[i] > target) {
            break;
        }

        us_segment_name(name, US_SEGMENT_JOURNAL, dir.segments[i]);
        limit = UINT64_MAX;

        if (target != UINT64_MAX) {

            /*
             * What a running writer appends past the target changes while it is
             * copied; what a killed one has left there is cut by the next.  All
             * is copied of a segment that ends before: the check judges how it
             * ends.
             */

            end = us_reader_open(&r, b->from, name, US_SEGMENT_JOURNAL,
                                 b->manifest.uuid, &us_data_ops,
                                 US_READ_CACHE);

            while (end == US_READ_BLOCK && r.lsn < target) {
                end = us_reader_next(&r, &block, &p);
            }

            if (end == US_READ_BLOCK) {
                limit = r.offset;
            }

            us_reader_close(&r);
        }

        rc = us_backup_file(b, name, limit);
    }

    us_dir_free(&dir);

    return rc;
}


/* whether a backup ends where its manifest says */

static int
us_backup_whole(us_backup_t *b, const us_recovery_t *r)
{
    char         name[US_DISK_NAME];
    struct stat  st;

    us_segment_name(name, US_SEGMENT_JOURNAL, r->tail.segment);

    if (r->tail.offset == 0) {
        st.st_size = 0;

    } else if (fstatat(b->to, name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
        return us_disk_fail(&b->error, errno, "\"%s\"", name);
    }

    if ((uint64_t) st.st_size > r->tail.offset) {
        return us_disk_fail(&b->error, 0, "\"%s\" at offset %" PRIu64
                            " is damaged", name, r->tail.offset);
    }

    if (b->manifest.end == UINT64_MAX) {
        return us_disk_fail(&b->error, 0, "the backup was not completed");
    }

    if (r->lsn != b->manifest.end || r->ids != b->manifest.end_ids) {
        return us_disk_fail(&b->error, 0, "\"%s\" is cut off at offset %"
                            PRIu64 ", LSN %" PRIu64 ": the backup ends at LSN "
                            "%" PRIu64, name, r->tail.offset, r->lsn,
                            b->manifest.end);
    }

    return 0;
}


/*
 * Reads the copy as a server would that owns it from now on, so that a torn end
 * is judged by the same rule.  A backup has no torn end: there, all must be as
 * it was written.
 */

static int
us_backup_check(us_backup_t *b)
{
    int               backup;
    char              boot[US_BOOT_ID + 1];
    us_recovery_t     r;
    us_recovery_rc_t  rc;

    us_manifest_boot(boot);
    backup = (b->manifest.state == US_STATE_BACKUP);

    rc = us_recovery_open(&r, b->to, &us_data_ops, us_data_ignore, NULL, boot);

    if (rc == US_RECOVERY_OK) {
        r.manifest = b->manifest;
        rc = us_recovery_run(&r, !backup);
    }

    if (rc == US_RECOVERY_OK && backup && r.instead.text[0]) {
        rc = US_RECOVERY_DAMAGED;
        b->error = r.instead;

    } else if (rc == US_RECOVERY_OK && backup
               && us_backup_whole(b, &r) == -1)
    {
        rc = US_RECOVERY_DAMAGED;

    } else if (rc != US_RECOVERY_OK) {
        b->error = r.error;
    }

    b->damaged = (rc == US_RECOVERY_DAMAGED);
    b->tail = r.tail;
    b->cut = r.cut;
    b->lost = r.lost;
    b->lost_ids = r.lost_ids;

    us_recovery_close(&r);

    return (rc == US_RECOVERY_OK) ? 0 : -1;
}


int
us_backup_copy(us_backup_t *b)
{
    int             rc, readers;
    char            boot[US_BOOT_ID + 1];
    uint64_t        target;
    us_manifest_t   m;
    us_watermark_t  mark;

    /* makes no file in what is no directory of ours */

    if (us_backup_look(b) == -1) {
        return -1;
    }

    /* a read-only file system has no such file, and no process removes any */

    readers = us_disk_lock(b->from, US_DIR_READERS, O_RDWR, LOCK_SH);

    if (readers == -1) {
        readers = us_disk_lock(b->from, US_DIR_READERS, O_RDONLY, LOCK_SH);
    }

    /*
     * The manifest again: the files that it names now stay.  What the watermark
     * claims, read later, lies in them and in those that follow.
     */

    rc = us_backup_look(b);

    if (rc == 0 && b->manifest.state != US_STATE_BACKUP) {
        us_recovery_choose(b->from, &b->manifest, &us_data_ops, &b->instead);
    }

    if (us_watermark_read(b->from, &mark) == -1) {
        memset(&mark, 0, sizeof(us_watermark_t));
    }

    if (rc == 0 && b->from != b->to) {

        if (mark.written) {
            us_watermark_write(b->to, &mark);
        }

        /* what is not complete is a backup that no restore accepts */

        m = b->manifest;
        m.state = US_STATE_BACKUP;
        m.end = UINT64_MAX;

        /* all that was answered lies below; or up to the end of the files */

        us_manifest_boot(boot);

        target = us_manifest_closed(&b->manifest)
                 || !us_manifest_marked(&b->manifest, &mark)
                 || !us_manifest_same_boot(&b->manifest, boot)
                 ? UINT64_MAX : mark.written;

        rc = us_backup_files(b, target);

        if (rc == 0 && us_manifest_write(b->to, &m, &b->error) != 0) {
            b->unwritten = 1;
            rc = -1;
        }
    }

    if (rc == 0) {
        rc = us_backup_check(b);
    }

    if (readers != -1) {
        (void) close(readers);
    }

    return rc;
}


int
us_backup_look(us_backup_t *b)
{
    us_manifest_rc_t  rc;

    rc = us_manifest_read(b->from, &b->manifest, &b->error);

    if (rc == US_MANIFEST_NONE) {
        return us_disk_fail(&b->error, 0, "there is no \"" US_MANIFEST_NAME
                            "\": it is no data directory, and no backup that "
                            "was completed");
    }

    if (rc != US_MANIFEST_OK) {
        b->damaged = (b->error.err == 0);
        return -1;
    }

    return 0;
}


int
us_backup_seal(us_backup_t *b)
{
    us_manifest_t  *m;

    m = &b->manifest;
    m->state = US_STATE_BACKUP;
    m->end = b->tail.lsn;
    m->end_ids = b->tail.ids;

    (void) unlinkat(b->to, US_WATERMARK_NAME, 0);
    (void) unlinkat(b->to, US_DIR_READERS, 0);

    return us_manifest_write(b->to, m, &b->error) == 0 ? 0 : -1;
}


int
us_backup_restore(us_backup_t *b)
{
    char            boot[US_BOOT_ID + 1], shard[16];
    uint32_t        random;
    uint64_t        epoch;
    us_manifest_t  *m;

    m = &b->manifest;
    us_manifest_boot(boot);

    m->has_restored = us_manifest_setting(m, "shard", shard, sizeof(shard))
                      == 0;
    m->restored = b->tail.lsn;
    m->moved = 0;

    /*
     * An epoch greater than the source's, which no other copy of the store has:
     * neither the source, which raises its own by one at a time, nor a store
     * that was restored at another time, nor one restored at the same time but
     * for one chance in two million.  Below 2^53, as JSON's numbers are exact
     * up to there.
     */

    if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
        return us_disk_fail(&b->error, errno, "no random bytes");
    }

    random >>= 32 - US_BACKUP_RANDOM;

    epoch = ((uint64_t) time(NULL) << US_BACKUP_RANDOM) + random;

    if (epoch <= m->epoch) {
        epoch = m->epoch + 1 + random;
    }

    if (epoch >> 53) {
        return us_disk_fail(&b->error, 0, "the epoch %" PRIu64 " leaves no "
                            "room for a greater one", m->epoch);
    }

    m->epoch = epoch;

    if (us_recovery_settle(b->to, m, &b->tail, boot, m->sync, &b->error) != 0
        || us_recovery_clean(b->to, b->tail.lsn, b->tail.ids, &b->error) != 0)
    {
        return -1;
    }

    return 0;
}
