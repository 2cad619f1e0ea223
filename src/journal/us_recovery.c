
/*
 * Reads a data directory back.  See us_recovery.h for what the end of a journal
 * may mean.
 *
 *     us_recovery_run()
 *         us_recovery_snapshot()     once
 *         us_recovery_journal()      for each segment:
 *             us_recovery_next()         the header, and what it follows
 *             us_recovery_segment()      its blocks, applied
 *         us_recovery_end()          the owner settles the last one's end:
 *             us_recovery_follow()       a crash, or damage?
 *             us_recovery_answered()     was more answered than is there?
 */


#include "us_recovery.h"
#include "us_dir.h"
#include "../us_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>


us_recovery_rc_t
us_recovery_open(us_recovery_t *r, int dirfd, const us_ops_t *ops,
    us_recovery_apply_pt apply, void *data, const char *boot)
{
    size_t            i, n;
    us_dir_t          dir;
    us_manifest_rc_t  rc;

    memset(r, 0, sizeof(us_recovery_t));

    r->dirfd = dirfd;
    r->ops = ops;
    r->apply = apply;
    r->data = data;
    snprintf(r->boot, sizeof(r->boot), "%s", boot);
    r->readers = -1;

    /* nothing is written to a directory that holds no store */

    rc = us_manifest_read(dirfd, &r->manifest, &r->error);

    if (rc == US_MANIFEST_NONE
        || (rc == US_MANIFEST_OK && !us_manifest_begun(&r->manifest)))
    {
        if (us_dir_read(dirfd, &dir, &r->error) == -1) {
            return US_RECOVERY_FAILED;
        }

        n = dir.nsegments + dir.nsnapshots;
        us_dir_free(&dir);

        if (n == 0) {
            return US_RECOVERY_FRESH;
        }
    }

    /* a read-only file system has no such file, and no process removes any */
    r->readers = us_disk_lock(dirfd, US_DIR_READERS, O_RDWR, LOCK_SH);

    if (r->readers == -1) {
        r->readers = us_disk_lock(dirfd, US_DIR_READERS, O_RDONLY, LOCK_SH);
    }

    if (us_dir_read(dirfd, &dir, &r->error) == -1) {
        return US_RECOVERY_FAILED;
    }

    for (i = 0; i < dir.nsegments; i++) {
        r->total += us_dir_file_bytes(dirfd, US_SEGMENT_JOURNAL,
                                      dir.segments[i]);
    }

    us_dir_free(&dir);

    rc = us_manifest_read(dirfd, &r->manifest, &r->error);

    if (rc == US_MANIFEST_NONE) {
        us_disk_fail(&r->error, 0, "there is a journal, but no \"manifest\"");
    }

    if (rc == US_MANIFEST_OK && !us_manifest_begun(&r->manifest)) {
        us_disk_fail(&r->error, 0, "it is a copy that is not complete");
        return US_RECOVERY_FAILED;
    }

    if (rc != US_MANIFEST_OK) {
        return US_RECOVERY_FAILED;
    }

    if (r->manifest.has_snapshot) {
        r->total += us_dir_file_bytes(dirfd, US_SEGMENT_SNAPSHOT,
                                      r->manifest.snapshot);
    }

    return US_RECOVERY_OK;
}


void
us_recovery_close(us_recovery_t *r)
{
    if (r->readers != -1) {
        (void) close(r->readers);
        r->readers = -1;
    }
}


/* whether the file goes on past its footer, which is a fault, or may do so */

static int
us_recovery_goes_on(const us_reader_t *reader, us_disk_error_t *e)
{
    int64_t  size;

    size = us_reader_size(reader);

    if (size == -1) {
        us_disk_fail(e, errno, "fstat of \"%s\" failed", reader->name);

    } else if (size != (int64_t) reader->at.offset) {
        us_disk_fail(e, 0, "\"%s\" at offset %" PRIu64
                     ": something follows the footer", reader->name,
                     reader->at.offset);
    }

    return size != (int64_t) reader->at.offset;
}


/* has operations applied, or what was applied ended */

static us_recovery_rc_t
us_recovery_applied(us_recovery_t *r, const uint8_t *p, size_t len)
{
    int  rc;

    rc = r->apply(r->data, p, len);

    switch (rc) {

    case US_RECOVERY_NO_ROOM:
        r->no_room = 1;
        us_disk_fail(&r->error, 0, "the store is too small for the data");
        break;

    case US_RECOVERY_NO_MEMORY:
        us_disk_fail(&r->error, ENOMEM, "no memory to load the data");
        return rc;

    case -1:

        if (len == 0) {
            us_disk_fail(&r->error, 0, "the snapshot names ids that it does "
                         "not give");
        }

        return US_RECOVERY_DAMAGED;

    case 0:
        break;

    default:
        return rc;
    }

    return (len == 0 && r->no_room) ? US_RECOVERY_NO_ROOM : US_RECOVERY_OK;
}


/* applies the part past r->lsn of the block that was read */

static us_recovery_rc_t
us_recovery_payload(us_recovery_t *r, const us_reader_t *reader,
    const us_block_t *b, const uint8_t *p)
{
    size_t            skip;
    uint64_t          ids;
    us_recovery_rc_t  rc;

    skip = 0;
    ids = 0;

    if (reader->head.kind == US_SEGMENT_JOURNAL) {

        if (reader->at.lsn <= r->lsn) {
            return US_RECOVERY_OK;
        }

        skip = r->lsn - b->lsn;

        if (us_block_ids(p, skip, r->ops, &ids) == -1 || b->ids + ids != r->ids)
        {
            return US_RECOVERY_DAMAGED;
        }
    }

    rc = us_recovery_applied(r, p + skip, b->len - skip);

    if (rc != US_RECOVERY_OK) {
        return rc;
    }

    r->ids += reader->at.ids - b->ids - ids;

    if (reader->head.kind == US_SEGMENT_JOURNAL) {
        r->lsn = reader->at.lsn;
    }

    return US_RECOVERY_OK;
}


/*
 * Whether the machine has run, or the directory was closed in order, since it
 * was written: then the disk holds all of it, in order.
 */

static int
us_recovery_running(const us_recovery_t *r)
{
    return us_manifest_closed(&r->manifest)
           || us_manifest_same_boot(&r->manifest, r->boot);
}


/* reads one file to its end or to a bad place; *end says which */

static us_recovery_rc_t
us_recovery_segment(us_recovery_t *r, us_reader_t *reader, us_read_t *end)
{
    uint64_t          ids, offset;
    us_block_t        b;
    us_recovery_rc_t  rc;
    const uint8_t    *p;

    while (*end == US_READ_BLOCK) {
        ids = reader->at.ids;
        offset = reader->at.offset;

        *end = us_reader_next(reader, &b, &p);

        /*
         * A writer was killed; the next one cut what the first had written,
         * and sealed.  A power failure may let through the footer and not the
         * cut.  No reply depended on the bytes past the footer: see
         * us_recovery_end().
         */

        if (*end == US_READ_FOOTER
            && (reader->head.kind == US_SEGMENT_SNAPSHOT
                || us_recovery_running(r))
            && us_recovery_goes_on(reader, &reader->error))
        {
            *end = US_READ_FAILED;
        }

        if (*end != US_READ_BLOCK) {
            break;
        }

        r->done += reader->at.offset - offset;

        us_fault(US_FAULT_LOAD);

        rc = us_recovery_payload(r, reader, &b, p);

        if (rc == US_RECOVERY_DAMAGED) {
            us_disk_fail(&r->error, 0, "\"%s\" at offset %" PRIu64
                         ": the operations of a block do not fit the store "
                         "(LSN %" PRIu64 ", %" PRIu64 " ids before)",
                         reader->name, offset, b.lsn, ids);
        }

        if (rc != US_RECOVERY_OK) {
            return rc;
        }
    }

    /* something must follow what had been read before */

    if (reader->head.kind == US_SEGMENT_JOURNAL && reader->at.lsn < r->lsn
        && *end != US_READ_FAILED)
    {
        us_disk_fail(&r->error, 0, "\"%s\" ends at offset %" PRIu64 ", LSN "
                     "%016" PRIx64 ", before %016" PRIx64 " that had been "
                     "reached", reader->name, reader->at.offset, reader->at.lsn,
                     r->lsn);
        return US_RECOVERY_DAMAGED;
    }

    return US_RECOVERY_OK;
}


static us_recovery_rc_t
us_recovery_snapshot(us_recovery_t *r, us_read_t *end)
{
    char              name[US_DISK_NAME];
    us_reader_t       reader;
    us_recovery_rc_t  rc;

    us_segment_name(name, US_SEGMENT_SNAPSHOT, r->manifest.snapshot);

    *end = us_reader_open(&reader, r->dirfd, name, US_SEGMENT_SNAPSHOT,
                          r->manifest.uuid, r->ops, US_READ_CACHE);

    rc = us_recovery_segment(r, &reader, end);

    if (rc == US_RECOVERY_OK && *end == US_READ_END) {
        us_disk_fail(&reader.error, 0, "\"%s\" is cut off at offset %" PRIu64,
                     name, reader.at.offset);
        *end = US_READ_BAD;
    }

    if (rc == US_RECOVERY_OK && *end != US_READ_FOOTER) {
        r->error = reader.error;
        rc = US_RECOVERY_DAMAGED;
    }

    if (rc == US_RECOVERY_OK && reader.at.lsn != r->manifest.snapshot) {
        us_disk_fail(&r->error, 0, "\"%s\" covers another LSN, %016" PRIx64,
                     name, reader.at.lsn);
        rc = US_RECOVERY_DAMAGED;
    }

    if (rc == US_RECOVERY_OK) {
        r->lsn = reader.at.lsn;
    }

    us_reader_close(&reader);

    return rc;
}


/*
 * Opens the next segment; prev: the CRC at the end of the one before, or 0.
 * settle: what is read then is on the disk, whatever a sync has reported to
 * a process before.
 */

static us_read_t
us_recovery_next(us_recovery_t *r, us_reader_t *reader, const char *name,
    uint32_t prev, int settle)
{
    us_read_t  end;

    end = us_reader_open(reader, r->dirfd, name, US_SEGMENT_JOURNAL,
                         r->manifest.uuid, r->ops,
                         settle ? US_READ_DISK : US_READ_CACHE);

    if (end != US_READ_BLOCK) {
        return end;
    }

    if (r->tail.segment != reader->head.lsn
        && prev && (reader->head.lsn != r->lsn || reader->head.prev != prev))
    {
        us_disk_fail(&reader->error, 0, "\"%s\" does not follow the "
                     "segment before, which ends at LSN %016" PRIx64,
                     name, r->lsn);
        return US_READ_FAILED;
    }

    if (!settle) {
        return US_READ_BLOCK;
    }

    if (us_disk_sync(reader->fd) == -1) {
        us_disk_fail(&reader->error, errno, "fdatasync of \"%s\" failed",
                     name);
        end = US_READ_FAILED;
    }

    us_disk_uncached(reader->fd);
    reader->buf_len = 0;

    return end;
}


/* 1: there are valid blocks from an offset on, which is damage; r->error */

static int
us_recovery_follow(us_recovery_t *r, us_reader_t *reader, uint64_t from)
{
    uint64_t    at, known, valid;
    us_block_t  b;

    known = 0;
    valid = 0;

    for (at = us_reader_probe(reader, from, &b);
         at != 0;
         at = us_reader_probe(reader, at + US_BLOCK_HEADER + b.len, &b))
    {
        valid++;

        if (b.len && b.durable > known) {
            known = b.durable;
        }
    }

    if (valid == 0
        || (!us_recovery_running(r) && known <= reader->at.lsn))
    {
        return 0;
    }

    us_disk_fail(&r->error, 0, "%.300s; %" PRIu64 " valid blocks follow",
                 reader->error.text, valid);

    return 1;
}


/* whether more may have been answered than is there */

static us_recovery_rc_t
us_recovery_answered(us_recovery_t *r)
{
    int             clean, same, marked;
    uint64_t        end;
    us_watermark_t  mark;

    /* the answers of a copy are those of its source */

    if (r->manifest.state == US_STATE_REPLICA) {
        return US_RECOVERY_OK;
    }

    clean = us_manifest_closed(&r->manifest);
    same = us_manifest_same_boot(&r->manifest, r->boot);

    marked = (us_watermark_read(r->dirfd, &mark) == 0
              && us_manifest_marked(&r->manifest, &mark));

    if (clean) {
        end = r->manifest.end;

    } else if (marked) {
        end = same ? mark.written : mark.durable;

    } else {
        /* a kill in the middle of a write, or more: assume more */
        end = (same && r->cut) ? r->lsn + 1 : 0;
    }

    if (end > r->lsn) {

        /* it would begin the next segment, so that has gone as a whole */

        if (r->tail.offset == 0) {
            us_disk_fail(&r->error, 0, "the journal from LSN %016" PRIx64
                         " on is missing", r->lsn);
            return US_RECOVERY_DAMAGED;
        }

        r->lost = 1;

        if (clean) {
            r->lost_ids = r->manifest.end_ids - r->ids;

        } else if (marked) {
            r->lost_ids = (uint32_t) (mark.ids - r->ids);
        }

        return US_RECOVERY_OK;
    }

    if (!clean && !same && strcmp(r->manifest.sync, "always") != 0) {
        r->lost = 1;
    }

    return US_RECOVERY_OK;
}


/* the owner has read the newest segment to its end */

static us_recovery_rc_t
us_recovery_end(us_recovery_t *r, us_reader_t *reader, us_read_t end)
{
    int      fd;
    int64_t  size;

    /*
     * The segment may have a bad place at reader->at.  A kill loses nothing as
     * long as the machine runs.  So valid blocks past the bad place are excused
     * only if the machine was restarted, and only if none of them says that the
     * place was durable.  What a copy lacks is sent again.
     */

    if (end == US_READ_BAD && r->manifest.state != US_STATE_REPLICA
        && us_recovery_follow(r, reader, reader->at.offset + 1))
    {
        return US_RECOVERY_DAMAGED;
    }

    if (end == US_READ_BAD
        || (end == US_READ_FOOTER
            && us_recovery_goes_on(reader, &reader->error)))
    {
        /* reader->error is the reason why it is cut there */

        size = us_reader_size(reader);

        fd = openat(r->dirfd, reader->name, O_WRONLY|O_NOFOLLOW|O_CLOEXEC);

        if (size == -1 || fd == -1
            || ftruncate(fd, (off_t) reader->at.offset) == -1
            || fsync(fd) == -1)
        {
            us_disk_fail(&r->error, errno, "\"%s\" could not be cut to %" PRIu64
                         " bytes", reader->name, reader->at.offset);

            if (fd != -1) {
                (void) close(fd);
            }

            return US_RECOVERY_FAILED;
        }

        (void) close(fd);

        r->cut = size - reader->at.offset;
        r->torn = reader->error;
    }

    /* the next segment begins with the next operation */

    if (end == US_READ_FOOTER) {
        r->tail.offset = 0;
    }

    return us_recovery_answered(r);
}


/*
 * Walks the segments from the one that holds r->lsn.  That one is read from
 * its beginning again, also when a part of it has been applied: a reader that
 * becomes the owner must find on the disk what it has read before.
 */

static us_recovery_rc_t
us_recovery_journal(us_recovery_t *r, const us_dir_t *dir, int owner)
{
    char              name[US_DISK_NAME];
    size_t            i;
    unsigned          last;
    uint32_t          prev;
    us_read_t         end;
    us_block_t        b;
    us_reader_t       reader;
    us_recovery_rc_t  rc;

    memset(&r->tail, 0, sizeof(us_tail_t));
    r->tail.lsn = r->lsn;
    r->tail.ids = r->ids;

    i = us_dir_upto(dir, r->lsn);

    if (i == 0) {
        if (dir->nsegments) {
            us_segment_name(name, US_SEGMENT_JOURNAL, dir->segments[0]);
            us_disk_fail(&r->error, ENOENT, "the journal from LSN %016"
                         PRIx64 " to \"%s\" is missing", r->lsn, name);
            return US_RECOVERY_DAMAGED;
        }

        rc = us_recovery_applied(r, NULL, 0);

        return (rc == US_RECOVERY_OK && owner) ? us_recovery_answered(r)
                                                : rc;
    }

    prev = 0;

    for (i--; ; i++) {

        last = (i == dir->nsegments - 1);
        us_segment_name(name, US_SEGMENT_JOURNAL, dir->segments[i]);

        end = us_recovery_next(r, &reader, name, prev, last && owner);
        rc = US_RECOVERY_OK;

        if (end == US_READ_BLOCK) {
            rc = us_recovery_segment(r, &reader, &end);
        }

        /* a writer would go on where the reader has come to */

        r->tail = reader.at;
        prev = reader.at.crc;

        /* may it end so?  Only the last one may be cut off, or torn */

        if (rc != US_RECOVERY_OK) {
            /* it is known why */

        } else if (end == US_READ_FAILED || end == US_READ_VERSION
                   || (end == US_READ_BAD && (!last || reader.at.offset == 0)))
        {
            r->error = reader.error;
            rc = US_RECOVERY_DAMAGED;

        } else if (!last && end == US_READ_FOOTER
                   && us_recovery_goes_on(&reader, &r->error))
        {
            rc = US_RECOVERY_DAMAGED;

        } else if (!last && end == US_READ_END) {
            us_disk_fail(&r->error, 0, "\"%s\" is cut off at offset %" PRIu64,
                         reader.name, reader.at.offset);
            rc = US_RECOVERY_DAMAGED;
        }

        if (rc == US_RECOVERY_OK && last) {
            rc = us_recovery_applied(r, NULL, 0);
        }

        if (rc == US_RECOVERY_OK && last && owner) {
            rc = us_recovery_end(r, &reader, end);

        } else if (rc == US_RECOVERY_OK && last && r->whole
                   && end == US_READ_BAD
                   && us_reader_probe(&reader, reader.at.offset, &b)
                      != reader.at.offset
                   && us_recovery_follow(r, &reader, reader.at.offset + 1))
        {
            /*
             * The same for a reader, which changes nothing.  The block at the
             * bad place may have been completed since it was read: blocks are
             * written in order.
             */

            rc = US_RECOVERY_DAMAGED;
        }

        us_reader_close(&reader);

        if (rc != US_RECOVERY_OK || last) {
            return rc;
        }
    }
}


us_recovery_rc_t
us_recovery_run(us_recovery_t *r, int owner)
{
    us_dir_t          dir;
    us_read_t         end;
    us_recovery_rc_t  rc;

    if (!r->started) {
        us_recovery_choose(r->dirfd, &r->manifest, r->ops, &r->instead);
    }

    if (!r->started && r->manifest.has_snapshot) {
        rc = us_recovery_snapshot(r, &end);

        if (rc != US_RECOVERY_OK) {
            return rc;
        }
    }

    r->started = 1;

    if (us_dir_read(r->dirfd, &dir, &r->error) == -1) {
        return US_RECOVERY_FAILED;
    }

    rc = us_recovery_journal(r, &dir, owner);

    us_dir_free(&dir);

    us_fault(US_FAULT_LOADED);

    return rc;
}


int
us_recovery_ignore(void *data, const uint8_t *p, size_t len)
{
    return 0;
}


/* 1: what can be read in place of the snapshot of a manifest */

static int
us_recovery_older(int dirfd, const us_manifest_t *m, us_manifest_t *older)
{
    int       found;
    size_t    i;
    us_dir_t  dir;

    if (us_dir_read(dirfd, &dir, NULL) == -1) {
        return 0;
    }

    *older = *m;
    older->has_snapshot = 0;
    older->snapshot = 0;
    found = dir.nsegments && dir.segments[0] == 0;

    for (i = 0; i < dir.nsnapshots && dir.snapshots[i] < m->snapshot; i++) {

        if (us_dir_upto(&dir, dir.snapshots[i])) {
            older->has_snapshot = 1;
            older->snapshot = dir.snapshots[i];
            found = 1;
        }
    }

    us_dir_free(&dir);

    return found;
}


void
us_recovery_choose(int dirfd, us_manifest_t *m, const us_ops_t *ops,
    us_disk_error_t *instead)
{
    us_read_t      end;
    us_manifest_t  older;
    us_recovery_t  probe;

    instead->text[0] = '\0';

    /* a copy is fetched again */

    while (m->has_snapshot && m->state != US_STATE_REPLICA
           && us_recovery_older(dirfd, m, &older))
    {
        memset(&probe, 0, sizeof(us_recovery_t));
        probe.dirfd = dirfd;
        probe.ops = ops;
        probe.apply = us_recovery_ignore;
        probe.manifest = *m;

        if (us_recovery_snapshot(&probe, &end) != US_RECOVERY_DAMAGED
            || end == US_READ_VERSION
            || (end == US_READ_FAILED && us_disk_passing(probe.error.err)))
        {
            return;
        }

        if (instead->text[0] == '\0') {
            us_disk_fail(instead, 0, "%.300s; %s has all that it had",
                         probe.error.text, older.has_snapshot
                         ? "an older snapshot" : "the journal");
        }

        *m = older;
    }
}


int
us_recovery_settle(int dirfd, us_manifest_t *m, const us_tail_t *tail,
    const char *boot, const char *sync, us_disk_error_t *e)
{
    us_watermark_t  mark;

    m->state = US_STATE_OPEN;
    m->end = tail->lsn;
    m->end_ids = tail->ids;

    snprintf(m->boot, sizeof(m->boot), "%s", boot);
    snprintf(m->sync, sizeof(m->sync), "%s", sync);

    if (us_manifest_write(dirfd, m, e) != 0) {
        return -1;
    }

    /* from now on what was lost is forgotten */

    memcpy(mark.uuid, m->uuid, 16);
    snprintf(mark.boot, sizeof(mark.boot), "%s", boot);
    mark.written = tail->lsn;
    mark.durable = tail->lsn;
    mark.ids = tail->ids;
    mark.deleted = tail->lsn;

    us_watermark_write(dirfd, &mark);

    return 0;
}


int
us_recovery_clean(int dirfd, uint64_t lsn, uint64_t ids, us_disk_error_t *e)
{
    us_manifest_t  m;

    if (us_manifest_read(dirfd, &m, e) != US_MANIFEST_OK) {
        return -1;
    }

    m.state = US_STATE_CLEAN;
    m.end = lsn;
    m.end_ids = ids;

    return us_manifest_write(dirfd, &m, e);
}
