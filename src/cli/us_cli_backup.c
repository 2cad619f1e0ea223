
/*
 * urlstore backup DIR OUT, urlstore restore IN DIR, urlstore restore DIR.
 *
 * A copy is made in a directory beside its target, OUT.tmp, and renamed when it
 * is complete, checked and on the disk.  What a killed command has left there
 * is removed by the next one.  While it is made it is locked, as a server locks
 * its directory.
 *
 * The target must not exist, or be an empty directory, whose owner and mode the
 * copy gets.
 *
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


#include "us_cli_data.h"
#include "../us_clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_BACKUP_CHUNK   (256 * 1024)

/* a restored store's epoch: seconds since 1970 and so many random bits */
#define US_BACKUP_RANDOM  21


typedef struct {
    int               from;           /* the caller's: the source */
    int               to;             /* and an empty directory, or `from` */
    uint64_t          rate;           /* bytes a second, or 0: any */

    us_manifest_t     manifest;       /* the source's, then the copy's */
    uint64_t          epoch;          /* the source's */
    us_recovery_t     r;              /* of the copy, which was closed */
    uint64_t          files;
    uint64_t          bytes;
    unsigned          damaged:1;      /* error: the source, not a call */
    unsigned          unwritten:1;    /* error: of a write to the copy */
    us_disk_error_t   error;
    us_disk_error_t   instead;        /* see us_recovery_choose() */
} us_backup_t;


static int
us_backup_bytes(us_backup_t *b, int in, int out, uint64_t size,
    const char *name)
{
    int        rc;
    size_t     part;
    ssize_t    n;
    uint8_t   *buf;
    uint64_t   at, began, due, now;

    buf = malloc(US_BACKUP_CHUNK);

    if (buf == NULL) {
        return us_disk_fail(&b->error, ENOMEM, "no memory");
    }

    began = us_clock_running();
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

        now = us_clock_running();
        due = began + (uint64_t) ((double) (at + n) * 1000 / (double) b->rate);

        if (due > now) {
            (void) poll(NULL, 0, (int) (due - now));
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

            while (end == US_READ_BLOCK && r.at.lsn < target) {
                end = us_reader_next(&r, &block, &p);
            }

            if (end == US_READ_BLOCK) {
                limit = r.at.offset;
            }

            us_reader_close(&r);
        }

        rc = us_backup_file(b, name, limit);

        /* without its footer: the next one may begin at the target */

        if (limit != UINT64_MAX) {
            break;
        }
    }

    us_dir_free(&dir);

    return rc;
}


/* whether a backup ends where its manifest says */

static int
us_backup_whole(us_backup_t *b)
{
    char                  name[US_DISK_NAME];
    struct stat           st;
    const us_recovery_t  *r;

    r = &b->r;
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
    us_recovery_rc_t  rc;

    us_manifest_boot(boot);
    backup = (b->manifest.state == US_STATE_BACKUP);

    rc = us_recovery_open(&b->r, b->to, &us_data_ops, us_recovery_ignore, NULL,
                          boot);

    if (rc == US_RECOVERY_OK) {
        b->r.manifest = b->manifest;
        rc = us_recovery_run(&b->r, !backup);
    }

    if (rc == US_RECOVERY_OK && backup && b->r.instead.text[0]) {
        rc = US_RECOVERY_DAMAGED;
        b->error = b->r.instead;

    } else if (rc == US_RECOVERY_OK && backup && us_backup_whole(b) == -1) {
        rc = US_RECOVERY_DAMAGED;

    } else if (rc != US_RECOVERY_OK) {
        b->error = b->r.error;
    }

    b->damaged = (rc == US_RECOVERY_DAMAGED);

    us_recovery_close(&b->r);

    return (rc == US_RECOVERY_OK) ? 0 : -1;
}


/* whether the source is a data directory, or a backup */

static int
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


/*
 * Copies and checks; if `to` is `from`, checks only, and cuts a torn end.  The
 * caller owns `to`: it holds the file "lock" locked.  0, or -1 with b->error,
 * and b->damaged if the source is not whole.
 */

static int
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


/* after that: makes the copy a backup, all of which is on the disk then */

static int
us_backup_seal(us_backup_t *b)
{
    us_manifest_t  *m;

    m = &b->manifest;
    m->state = US_STATE_BACKUP;
    m->end = b->r.tail.lsn;
    m->end_ids = b->r.tail.ids;

    (void) unlinkat(b->to, US_WATERMARK_NAME, 0);
    (void) unlinkat(b->to, US_DIR_READERS, 0);

    return us_manifest_write(b->to, m, &b->error) == 0 ? 0 : -1;
}


/* the same: a data directory with an epoch that no other copy has */

static int
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
    m->restored = b->r.tail.lsn;
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

    if (us_recovery_settle(b->to, m, &b->r.tail, boot, m->sync, &b->error) != 0
        || us_recovery_clean(b->to, b->r.tail.lsn, b->r.tail.ids, &b->error)
           != 0)
    {
        return -1;
    }

    return 0;
}


typedef struct {
    char          path[PATH_MAX];     /* without slashes at its end */
    const char   *name;               /* its last part */
    char          tmp[NAME_MAX + 1];  /* the name of the copy, beside it */
    int           parent;             /* the directory of both, or -1 */
    int           dirfd;              /* the copy, or -1 */
    int           lock;
} us_dest_t;


static size_t  us_backup_rate;


static const us_cli_option_t  us_backup_options[] = {
    { 'r', "rate", "SIZE", "Read at most so many bytes a second (20m).",
      us_cli_bytes, 0 },
    { .name = NULL }
};


static int
us_dest_fail(const us_dest_t *t, const char *what)
{
    return us_cli_fail("\"%s\": %s%s%s", t->path, what, errno ? ": " : "",
                       errno ? strerror(errno) : "");
}


/* nothing, or an empty directory; st->st_nlink is 0 if there is nothing */

static int
us_dest_empty(us_dest_t *t, struct stat *st)
{
    DIR            *d;
    int             fd;
    struct dirent  *de;

    st->st_nlink = 0;

    if (fstatat(t->parent, t->name, st, AT_SYMLINK_NOFOLLOW) == -1) {
        st->st_nlink = 0;
        return errno == ENOENT ? US_CLI_DONE : us_dest_fail(t, "fstat");
    }

    fd = openat(t->parent, t->name,
                O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
    d = (fd == -1) ? NULL : fdopendir(fd);

    if (d == NULL) {
        return us_dest_fail(t, "it is there, and is no directory that can "
                              "be read");
    }

    do {
        de = readdir(d);
    } while (de && (strcmp(de->d_name, ".") == 0
                    || strcmp(de->d_name, "..") == 0));

    errno = 0;

    if (de) {
        (void) us_dest_fail(t, "it is not empty; name a directory that is to "
                              "be made, or an empty one");
    }

    (void) closedir(d);

    return de ? US_CLI_USAGE : US_CLI_DONE;
}


/*
 * Locks the copy's directory and empties it.  Another command may have
 * completed and renamed it since it was opened: then it is not ours.
 */

static int
us_dest_own(us_dest_t *t)
{
    struct stat      a, b;
    us_disk_error_t  e;

    t->lock = us_disk_lock(t->dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

    if (t->lock == -1 && errno != EWOULDBLOCK) {
        return us_dest_fail(t, "its \".tmp\" could not be locked");
    }

    if (t->lock == -1 || fstat(t->dirfd, &a) == -1
        || fstatat(t->parent, t->tmp, &b, AT_SYMLINK_NOFOLLOW) == -1
        || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
    {
        if (t->lock != -1) {
            (void) close(t->lock);
            t->lock = -1;
        }

        errno = 0;
        return us_dest_fail(t, "another command is making it");
    }

    /* the files that a killed command has left */

    if (us_dir_remove(t->dirfd, &e) == -1) {
        return us_cli_fail("\"%s.tmp\": %s", t->path, e.text);
    }

    return US_CLI_DONE;
}


/* makes the copy's directory; US_CLI_DONE, or a message was printed */

static int
us_dest_open(us_dest_t *t, const char *path, int from)
{
    int              n, foreign;
    char            *slash, name[US_DIR_NAME], parent[PATH_MAX];
    size_t           len;
    struct stat      st, a, b;
    us_disk_error_t  e;

    for (len = strlen(path); len > 1 && path[len - 1] == '/'; len--) {
        /* void */
    }

    n = snprintf(t->path, sizeof(t->path), "%.*s", (int) len, path);
    slash = strrchr(t->path, '/');
    t->name = slash ? slash + 1 : t->path;

    if (n < 0 || (size_t) n >= sizeof(t->path) || t->name[0] == '\0'
        || strcmp(t->name, ".") == 0 || strcmp(t->name, "..") == 0
        || strlen(t->name) + sizeof(".tmp") > sizeof(t->tmp))
    {
        errno = 0;
        return us_dest_fail(t, "name a directory that is to be made");
    }

    snprintf(t->tmp, sizeof(t->tmp), "%.*s.tmp",
             (int) (sizeof(t->tmp) - sizeof(".tmp")), t->name);

    /* its parent: "." of "name", "/" of "/name" */

    n = (int) (t->name - t->path);
    snprintf(parent, sizeof(parent), "%.*s", n > 1 ? n - 1 : n, t->path);

    t->parent = open(n ? parent : ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (t->parent == -1) {
        return us_dest_fail(t, "its parent directory could not be opened");
    }

    if (fstat(t->parent, &a) == -1 || fstat(from, &b) == -1) {
        return us_dest_fail(t, "fstat failed");
    }

    if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
        errno = 0;
        return us_dest_fail(t, "it lies in the directory to be copied");
    }

    if (us_dest_empty(t, &st) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    if (mkdirat(t->parent, t->tmp, 0700) == -1 && errno != EEXIST) {
        return us_dest_fail(t, "the directory could not be made");
    }

    t->dirfd = openat(t->parent, t->tmp,
                      O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

    if (t->dirfd == -1) {
        return us_dest_fail(t, "its \".tmp\" could not be opened");
    }

    foreign = us_dir_foreign(t->dirfd, name, &e);

    if (foreign) {
        return foreign == 1
               ? us_cli_fail("\"%s.tmp\" holds \"%s\", which is no file of a "
                             "copy", t->path, name)
               : us_cli_fail("\"%s.tmp\": %s", t->path, e.text);
    }

    if (st.st_nlink && ((fchown(t->dirfd, st.st_uid, st.st_gid) == -1)
                         || fchmod(t->dirfd, st.st_mode & 07777) == -1))
    {
        return us_dest_fail(t, "its owner and mode could not be given to "
                              "the copy");
    }

    return us_dest_own(t);
}


/* the complete copy gets its name */

static int
us_dest_rename(us_dest_t *t)
{
    if (renameat(t->parent, t->tmp, t->parent, t->name) == -1) {
        return us_dest_fail(t, "the complete copy could not be renamed");
    }

    t->dirfd = -1;

    return fsync(t->parent) == 0
           ? US_CLI_DONE
           : us_dest_fail(t, "fsync of its parent directory failed");
}


static int
us_backup_failed(const char *path, const us_backup_t *b)
{
    (void) us_cli_failed(path, b->error.text);

    return b->damaged ? US_CLI_REFUSED : US_CLI_USAGE;
}


static void
us_backup_say(const char *done, const char *path, const us_backup_t *b)
{
    if (b->instead.text[0]) {
        fprintf(stderr, "urlstore: %s\n", b->instead.text);
    }

    if (b->r.cut) {
        fprintf(stderr, "urlstore: the journal's torn end was left out: %"
                PRIu64 " bytes, %" PRIu64 " ids that had been answered\n",
                b->r.cut, b->r.lost_ids);

    } else if (b->r.lost) {
        fprintf(stderr, "urlstore: answered ids may have been lost before, by "
                "a failure of the machine or of its disk\n");
    }

    printf("%s \"%s\": %" PRIu64 " ids up to LSN %" PRIu64, done, path,
           b->r.tail.ids, b->r.tail.lsn);

    if (b->files) {
        printf(", %" PRIu64 " bytes in %" PRIu64 " files", b->bytes,
               b->files);
    }

    printf(", epoch %" PRIu64, b->manifest.epoch);

    if (b->manifest.epoch != b->epoch) {
        printf(" after %" PRIu64, b->epoch);
    }

    printf("\n");

    if (b->manifest.epoch != b->epoch && b->manifest.has_restored) {
        printf("it is a shard, and answers nothing before the cluster's map is "
               "posted again: post the newest map: urlstore cluster apply\n");
    }
}


/* to: NULL: where it is.  The locks go with the process. */

static int
us_backup_run(const char *from, const char *to,
    int (*finish)(us_backup_t *b), const char *done)
{
    int            code;
    us_backup_t    b;
    us_dest_t      t = { .parent = -1, .dirfd = -1, .lock = -1 };
    us_cli_data_t  d;

    if (us_cli_data_open(&d, from) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    memset(&b, 0, sizeof(us_backup_t));
    b.from = d.dirfd;
    b.rate = us_backup_rate;

    if (to) {
        code = us_dest_open(&t, to, d.dirfd);
        b.to = t.dirfd;

    } else {

        /* no file is made in what is no directory of ours */

        code = us_backup_look(&b) == -1 ? us_backup_failed(from, &b)
                                        : us_cli_data_lock(&d);
        b.to = d.dirfd;
        to = from;
    }

    if (code == US_CLI_DONE && us_backup_copy(&b) == -1) {
        code = us_backup_failed(b.unwritten ? to : from, &b);
    }

    b.epoch = b.manifest.epoch;

    if (code == US_CLI_DONE && finish(&b) == -1) {
        code = us_backup_failed(to, &b);
    }

    if (code == US_CLI_DONE && t.dirfd != -1) {
        code = us_dest_rename(&t);
    }

    if (code == US_CLI_DONE) {
        us_backup_say(done, to, &b);
    }

    /* a copy that was not completed is removed */

    if (t.lock != -1 && t.dirfd != -1) {
        (void) us_dir_remove(t.dirfd, NULL);
        (void) unlinkat(t.dirfd, US_DIR_LOCK, 0);
        (void) unlinkat(t.parent, t.tmp, AT_REMOVEDIR);
    }

    return us_cli_data_close(&d, code);
}


static int
us_backup_command(const us_cli_command_t *c, int n, char **args)
{
    return us_backup_run(args[0], args[1], us_backup_seal, "backup");
}


const us_cli_command_t  us_cli_backup = {
    .name = "backup",
    .run = us_backup_command,
    .args = "DIR OUT",
    .summary = "copy a data directory, beside a running service too",
    .text =
        "Copies the data directory DIR to OUT, which must not exist or be an "
        "empty directory. The copy holds all that was answered before it was "
        "begun. It is made in OUT.tmp, read back from the disk and checked, "
        "and renamed when it is complete. What a killed command has left in "
        "OUT.tmp is removed by the next one.\n\n"
        "No service writes to a backup: restore makes a data directory of it. "
        "stat, verify and dump read it.",
    .options = us_backup_options,
    .own = &us_backup_rate,
    .exits =
        " 0   OUT is complete and on the disk\n"
        " 1   DIR is damaged\n"
        " 2   wrong usage, or OUT could not be made"
};


static int
us_restore_command(const us_cli_command_t *c, int n, char **args)
{
    /* a directory that was put back by other means: only its epoch changes */

    return n == 1 && us_backup_rate
           ? us_cli_usage(c)
           : us_backup_run(args[0], args[1], us_backup_restore, "restored");
}


const us_cli_command_t  us_cli_restore = {
    .name = "restore",
    .run = us_restore_command,
    .args = "[IN] DIR",
    .summary = "make a data directory of a backup",
    .text =
        "Copies the backup IN to DIR, which must not exist or be an empty "
        "directory, as backup does. A backup that is damaged or cut is "
        "refused.\n\n"
        "The store gets a new epoch: ids that were given after the backup are "
        "never given again under the same uuid and epoch.\n\n"
        "Without IN, gives a new epoch to DIR where it is. Use it after an "
        "older copy of a data directory was put back by other means, before "
        "the service starts.",
    .options = us_backup_options,
    .own = &us_backup_rate,
    .exits =
        " 0   DIR is complete and on the disk\n"
        " 1   IN is damaged or cut\n"
        " 2   wrong usage, or DIR could not be made"
};
