
/*
 * The files of a data directory, and their names.  See us_dir.h.
 */


#include "us_dir.h"
#include "us_manifest.h"
#include "../us_hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


/* a walk through the entries; all is zero at first */

typedef struct {
    DIR            *stream;
    struct dirent  *entry;
    int             rc;               /* not 0: it ends */
} us_dir_walk_t;


/*
 * The next entry: 1; 0: there is none, or walk->rc is not 0.  That is -1, with
 * e, if the directory could not be read: an entry that is not read would be
 * taken for a file that does not exist.
 */

static int
us_dir_next(us_dir_walk_t *walk, int dirfd, us_disk_error_t *e)
{
    int  fd;

    if (walk->stream == NULL) {

        /* a stream of its own, so that dirfd's position does not matter */

        fd = openat(dirfd, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
        walk->stream = fd == -1 ? NULL : fdopendir(fd);

        if (walk->stream == NULL) {
            walk->rc = us_disk_fail(e, errno, "the directory could not be "
                                    "read");

            if (fd != -1) {
                (void) close(fd);
            }

            return 0;
        }
    }

    if (walk->rc == 0) {
        errno = 0;
        walk->entry = readdir(walk->stream);

        if (walk->entry) {
            return 1;
        }

        if (errno) {
            walk->rc = us_disk_fail(e, errno, "the directory could not be "
                                    "read");
        }
    }

    (void) closedir(walk->stream);

    return 0;
}


static int
us_dir_push(uint64_t **list, size_t *n, uint64_t lsn, us_disk_error_t *e)
{
    uint64_t  *p;

    if ((*n & (*n - 1)) == 0) {
        p = realloc(*list, (*n ? *n * 2 : 1) * sizeof(uint64_t));

        if (p == NULL) {
            return us_disk_fail(e, errno, "the directory could not be read");
        }

        *list = p;
    }

    (*list)[(*n)++] = lsn;

    return 0;
}


static int
us_dir_compare(const void *one, const void *two)
{
    uint64_t  a, b;

    a = *(const uint64_t *) one;
    b = *(const uint64_t *) two;

    return (a > b) - (a < b);
}


int
us_dir_read(int dirfd, us_dir_t *dir, us_disk_error_t *e)
{
    uint64_t       lsn;
    const char    *name;
    us_dir_walk_t  walk = { 0 };

    memset(dir, 0, sizeof(us_dir_t));

    while (us_dir_next(&walk, dirfd, e)) {
        name = walk.entry->d_name;

        if (us_segment_parse_name(name, US_SEGMENT_JOURNAL, &lsn) == 0) {
            walk.rc = us_dir_push(&dir->segments, &dir->nsegments, lsn, e);

        } else if (us_segment_parse_name(name, US_SEGMENT_SNAPSHOT, &lsn) == 0)
        {
            walk.rc = us_dir_push(&dir->snapshots, &dir->nsnapshots, lsn, e);
        }
    }

    if (walk.rc == -1) {
        us_dir_free(dir);
        return -1;
    }

    if (dir->nsegments) {
        qsort(dir->segments, dir->nsegments, sizeof(uint64_t),
              us_dir_compare);
    }

    if (dir->nsnapshots) {
        qsort(dir->snapshots, dir->nsnapshots, sizeof(uint64_t),
              us_dir_compare);
    }

    return 0;
}


void
us_dir_free(us_dir_t *dir)
{
    free(dir->segments);
    free(dir->snapshots);

    memset(dir, 0, sizeof(us_dir_t));
}


size_t
us_dir_upto(const us_dir_t *dir, uint64_t lsn)
{
    size_t  n;

    for (n = dir->nsegments; n && dir->segments[n - 1] > lsn; n--) {
        /* void */
    }

    return n;
}


/*
 * A name of ours, or of a temporary file of ours.  What an NFS client makes of
 * a file that is removed while it is open is ours as well.  A file system's
 * own directory is nobody's, and so is what us_dir_keep() has made.
 */

static int
us_dir_ours(const char *name)
{
    char               own[US_DISK_NAME];
    size_t             i, len;
    uint64_t           lsn;

    static const char  *names[] = { US_MANIFEST_NAME, US_WATERMARK_NAME,
                                    US_DIR_LOCK, US_DIR_READERS, US_DIR_AUDIT,
                                    "snapshot" };

    if (strncmp(name, ".nfs", 4) == 0) {
        return 1;
    }

    len = strlen(name);

    if (len >= sizeof(own)) {
        return 0;
    }

    memcpy(own, name, len + 1);

    if (len > 4 && strcmp(own + len - 4, ".tmp") == 0) {
        own[len - 4] = '\0';
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(own, names[i]) == 0) {
            return 1;
        }
    }

    return us_segment_parse_name(own, US_SEGMENT_JOURNAL, &lsn) == 0
           || us_segment_parse_name(own, US_SEGMENT_SNAPSHOT, &lsn) == 0;
}


int
us_dir_foreign(int dirfd, char *name, us_disk_error_t *e)
{
    const char    *found;
    struct stat    st;
    us_dir_walk_t  walk = { 0 };

    while (us_dir_next(&walk, dirfd, e)) {
        found = walk.entry->d_name;

        /* a file system's own directory, and what is gone, are nobody's */

        if (strcmp(found, ".") != 0 && strcmp(found, "..") != 0
            && strcmp(found, "lost+found") != 0
            && strncmp(found, "lost-", 5) != 0
            && fstatat(dirfd, found, &st, AT_SYMLINK_NOFOLLOW) == 0
            && !(S_ISREG(st.st_mode) && us_dir_ours(found)))
        {
            (void) snprintf(name, US_DIR_NAME, "%s", found);
            walk.rc = 1;
        }
    }

    return walk.rc;
}


/* a manifest that a program of ours has written: so was the directory */

static int
us_dir_data(int dirfd)
{
    us_manifest_t     m;
    us_manifest_rc_t  rc;

    rc = us_manifest_read(dirfd, &m, NULL);

    return rc == US_MANIFEST_OK || rc == US_MANIFEST_VERSION_OTHER;
}


int
us_dir_alone(int dirfd, us_disk_error_t *e)
{
    int   rc;
    char  name[US_DIR_NAME];

    rc = us_dir_foreign(dirfd, name, e);

    if (rc == 1) {
        return us_disk_fail(e, 0, "it holds \"%.200s\", which is no file of a "
                            "URL store; name a directory that is empty, or "
                            "that is to be made", name);
    }

    return rc;
}


int
us_dir_usable(int dirfd, uid_t uid, gid_t gid, us_disk_error_t *e)
{
    struct stat  st;

    if (us_dir_alone(dirfd, e) == -1) {
        return -1;
    }

    if (fstat(dirfd, &st) == -1) {
        return us_disk_fail(e, errno, "fstat failed");
    }

    if (st.st_uid == uid || (st.st_mode & S_IWOTH)
        || (st.st_gid == gid && (st.st_mode & S_IWGRP))
        || us_dir_data(dirfd))
    {
        return 0;
    }

    return us_disk_fail(e, 0, "it belongs to user %u, and user %u of the "
                        "workers cannot write to it; change its owner, or "
                        "name a directory that is to be made",
                        (unsigned) st.st_uid, (unsigned) uid);
}


int
us_dir_give(int dirfd, int made, uid_t uid, us_disk_error_t *e)
{
    int            fd;
    const char    *name;
    us_dir_walk_t  walk = { 0 };

    if ((made || us_dir_data(dirfd)) && fchown(dirfd, uid, -1) == -1) {
        return us_disk_fail(e, errno, "it could not be given to user %u",
                            (unsigned) uid);
    }

    while (us_dir_next(&walk, dirfd, e)) {
        name = walk.entry->d_name;

        if (!us_dir_ours(name)) {
            continue;
        }

        /* not the name is given away, but the file that was looked at */

        fd = openat(dirfd, name, O_RDONLY|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC);

        if (fd == -1 && errno != ENOENT) {
            walk.rc = us_disk_fail(e, errno, "\"%s\" could not be opened",
                                   name);
        }

        if (fd != -1 && us_disk_give(fd, uid, -1) == -1) {
            walk.rc = us_disk_fail(e, errno, "\"%s\" belongs to another user "
                                   "and could not be given to user %u; it must "
                                   "be a regular file without another name",
                                   name, (unsigned) uid);
        }

        if (fd != -1) {
            (void) close(fd);
        }
    }

    return walk.rc;
}


uint64_t
us_dir_bytes(int dirfd)
{
    uint64_t       sum;
    struct stat    st;
    us_dir_walk_t  walk = { 0 };

    sum = 0;

    while (us_dir_next(&walk, dirfd, NULL)) {
        if (fstatat(dirfd, walk.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && S_ISREG(st.st_mode))
        {
            sum += st.st_size;
        }
    }

    return sum;
}


uint64_t
us_dir_file_bytes(int dirfd, us_segment_kind_t kind, uint64_t lsn)
{
    char         name[US_DISK_NAME];
    struct stat  st;

    us_segment_name(name, kind, lsn);

    return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size
                                                               : 0;
}


/* into the directory `to`; -1: it is removed */

static int
us_dir_move(int dirfd, const char *name, int to, us_disk_error_t *e)
{
    if ((to == -1 ? unlinkat(dirfd, name, 0) : renameat(dirfd, name, to, name))
        == -1 && errno != ENOENT)
    {
        return us_disk_fail(e, errno, "\"%.200s\" could not be %s", name,
                            to == -1 ? "removed" : "moved");
    }

    return 0;
}


/*
 * The same for all files, but for the audit, which is for ever.  The manifest
 * is the last one: as long as there is another file, it says whose that is.
 */

static int
us_dir_move_all(int dirfd, int to, us_disk_error_t *e)
{
    const char    *name;
    us_dir_walk_t  walk = { 0 };

    while (us_dir_next(&walk, dirfd, e)) {
        name = walk.entry->d_name;

        if (us_dir_ours(name) && strcmp(name, US_DIR_LOCK) != 0
            && strcmp(name, US_DIR_AUDIT) != 0
            && strcmp(name, US_MANIFEST_NAME) != 0)
        {
            walk.rc = us_dir_move(dirfd, name, to, e);
        }
    }

    if (walk.rc != 0) {
        return -1;
    }

    if (fsync(to == -1 ? dirfd : to) == -1) {
        return us_disk_fail(e, errno, "fsync of the directory failed");
    }

    return us_dir_move(dirfd, US_MANIFEST_NAME, to, e);
}


int
us_dir_remove(int dirfd, us_disk_error_t *e)
{
    return us_dir_move_all(dirfd, -1, e);
}


int
us_dir_keep(int dirfd, char name[US_DISK_NAME], us_disk_error_t *e)
{
    int            rc, fd, len;
    unsigned       n;
    us_manifest_t  m;

    fd = mkdirat(dirfd, US_DIR_MOVING, 0700) == 0 || errno == EEXIST
         ? openat(dirfd, US_DIR_MOVING,
                  O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC) : -1;

    if (fd == -1 || fsync(dirfd) == -1) {
        rc = us_disk_fail(e, errno, "\"" US_DIR_MOVING "\" could not be made");

    } else {
        rc = us_dir_move_all(dirfd, fd, e);
    }

    if (rc == 0 && us_manifest_read(fd, &m, e) != US_MANIFEST_OK) {
        m.snapshot = 0;
    }

    for (n = 1; rc == 0; n++) {
        len = snprintf(name, US_DISK_NAME, "lost-%016" PRIx64, m.snapshot);

        if (n > 1) {
            (void) snprintf(name + len, US_DISK_NAME - len, "-%u", n);
        }

        /* a directory with files is not replaced */

        if (fsync(fd) == 0
            && renameat(dirfd, US_DIR_MOVING, dirfd, name) == 0
            && fsync(dirfd) == 0)
        {
            break;
        }

        if (errno != EEXIST && errno != ENOTEMPTY) {
            rc = us_disk_fail(e, errno, "\"" US_DIR_MOVING "\" could not be "
                              "renamed");
        }
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return rc;
}


int
us_dir_moving(int dirfd)
{
    return faccessat(dirfd, US_DIR_MOVING, F_OK, 0) == 0;
}


uint64_t
us_dir_id(int lockfd)
{
    uint8_t      key[16], inode[8];
    struct stat  st;

    if (fstat(lockfd, &st) == -1) {
        return 0;
    }

    /* a file that a crash has left shorter has none */

    if (us_disk_pread(lockfd, key, sizeof(key), 0) != sizeof(key)
        && (getrandom(key, sizeof(key), 0) != sizeof(key)
            || us_disk_pwrite(lockfd, key, sizeof(key), 0) == -1
            || us_disk_sync(lockfd) == -1))
    {
        return 0;
    }

    us_put64(inode, st.st_ino);

    return us_hash(key, 0, inode, sizeof(inode)) >> 12 | 1;
}


void
us_dir_clean(int dirfd)
{
    size_t         len;
    const char    *name;
    us_dir_walk_t  walk = { 0 };

    while (us_dir_next(&walk, dirfd, NULL)) {
        name = walk.entry->d_name;
        len = strlen(name);

        if (len > 4 && strcmp(name + len - 4, ".tmp") == 0
            && (strncmp(name, "journal.", 8) == 0
                || strncmp(name, "snapshot.", 9) == 0
                || strncmp(name, "manifest.", 9) == 0))
        {
            (void) unlinkat(dirfd, name, 0);
        }
    }
}
