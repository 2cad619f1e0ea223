
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
 */


#include "us_cli_data.h"
#include "../life/us_backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>


typedef struct {
    char          path[PATH_MAX];     /* without slashes at its end */
    const char   *name;               /* its last part */
    char          tmp[NAME_MAX + 1];  /* the name of the copy, beside it */
    int           parent;             /* the directory of both, or -1 */
    int           dirfd;              /* the copy, or -1 */
    int           lock;
} us_dest_t;


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
    int              n;
    char            *slash, name[US_DIR_NAME], parent[PATH_MAX];
    size_t           len;
    struct stat      st, a, b;
    us_disk_error_t  e;

    t->parent = -1;
    t->dirfd = -1;
    t->lock = -1;

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

    switch (us_dir_foreign(t->dirfd, name, &e)) {
    case 0:
        break;

    case 1:
        return us_cli_fail("\"%s.tmp\" holds \"%s\", which is no file of a "
                           "copy", t->path, name);

    default:
        return us_cli_fail("\"%s.tmp\": %s", t->path, e.text);
    }

    if (st.st_nlink && ((fchown(t->dirfd, st.st_uid, st.st_gid) == -1)
                         || fchmod(t->dirfd, st.st_mode & 07777) == -1))
    {
        return us_dest_fail(t, "its owner and mode could not be given to "
                              "the copy");
    }

    return us_dest_own(t);
}


static int
us_backup_failed(const char *path, const us_backup_t *b)
{
    (void) us_cli_failed(path, b->error.text);

    return b->damaged ? US_CLI_REFUSED : US_CLI_USAGE;
}


/* copies and checks, then finishes; *epoch is the source's */

static int
us_backup_make(us_backup_t *b, const char *from, const char *to,
    int (*finish)(us_backup_t *b), uint64_t *epoch)
{
    if (us_backup_copy(b) == -1) {
        return us_backup_failed(b->unwritten ? to : from, b);
    }

    *epoch = b->manifest.epoch;

    return finish(b) == 0 ? US_CLI_DONE : us_backup_failed(to, b);
}


/* epoch: the source's */

static void
us_backup_say(const char *done, const char *path, const us_backup_t *b,
    uint64_t epoch)
{
    if (b->instead.text[0]) {
        fprintf(stderr, "urlstore: %s\n", b->instead.text);
    }

    if (b->cut) {
        fprintf(stderr, "urlstore: the journal's torn end was left out: %"
                PRIu64 " bytes, %" PRIu64 " ids that had been answered\n",
                b->cut, b->lost_ids);

    } else if (b->lost) {
        fprintf(stderr, "urlstore: answered ids may have been lost before, by "
                "a failure of the machine or of its disk\n");
    }

    printf("%s \"%s\": %" PRIu64 " ids up to LSN %" PRIu64, done, path,
           b->tail.ids, b->tail.lsn);

    if (b->files) {
        printf(", %" PRIu64 " bytes in %" PRIu64 " files", b->bytes,
               b->files);
    }

    if (b->manifest.epoch != epoch) {
        printf(", epoch %" PRIu64 " after %" PRIu64, b->manifest.epoch, epoch);

    } else {
        printf(", epoch %" PRIu64, epoch);
    }

    printf("\n");

    if (b->manifest.epoch != epoch && b->manifest.has_restored) {
        printf("it is a shard, and answers nothing before the cluster's map is "
               "posted again: post the newest map: urlstore cluster apply\n");
    }
}


static int
us_backup_run(const char *from, const char *to, uint64_t rate,
    int (*finish)(us_backup_t *b), const char *done)
{
    int            code;
    uint64_t       epoch;
    us_backup_t    b;
    us_dest_t      t;
    us_cli_data_t  d;

    code = us_cli_data_open(&d, from);

    if (code != US_CLI_DONE) {
        return code;
    }

    memset(&b, 0, sizeof(us_backup_t));
    b.from = d.dirfd;
    b.rate = rate;

    epoch = 0;
    code = us_dest_open(&t, to, d.dirfd);

    if (code == US_CLI_DONE) {
        b.to = t.dirfd;
        code = us_backup_make(&b, from, to, finish, &epoch);
    }

    if (code == US_CLI_DONE) {

        /* the complete copy gets its name */

        if (renameat(t.parent, t.tmp, t.parent, t.name) == -1) {
            code = us_dest_fail(&t, "the complete copy could not be renamed");

        } else {
            (void) close(t.dirfd);
            t.dirfd = -1;

            if (fsync(t.parent) == -1) {
                code = us_dest_fail(&t, "fsync of its parent directory failed");
            }
        }
    }

    if (code == US_CLI_DONE) {
        us_backup_say(done, to, &b, epoch);
    }

    /* a copy that was not completed is removed */

    if (t.lock != -1 && t.dirfd != -1) {
        (void) us_dir_remove(t.dirfd, NULL);
        (void) unlinkat(t.dirfd, US_DIR_LOCK, 0);
        (void) unlinkat(t.parent, t.tmp, AT_REMOVEDIR);
    }

    if (t.dirfd != -1) {
        (void) close(t.dirfd);
    }

    if (t.lock != -1) {
        (void) close(t.lock);
    }

    if (t.parent != -1) {
        (void) close(t.parent);
    }

    us_cli_data_close(&d);

    return code;
}


static int
us_backup_command(int argc, char **argv)
{
    size_t  rate;

    rate = 0;

    return us_cli_options(&us_cli_backup, argc, argv, &rate, 2, 2)
           == US_CLI_DONE
           ? us_backup_run(argv[optind], argv[optind + 1], rate,
                           us_backup_seal, "backup")
           : US_CLI_USAGE;
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
    .exits =
        " 0   OUT is complete and on the disk\n"
        " 1   DIR is damaged\n"
        " 2   wrong usage, or OUT could not be made"
};


static int
us_restore_command(int argc, char **argv)
{
    int            code, lock;
    size_t         rate;
    uint64_t       epoch;
    const char    *path;
    us_backup_t    b;
    us_cli_data_t  d;

    rate = 0;
    epoch = 0;

    if (us_cli_options(&us_cli_restore, argc, argv, &rate, 1, 2)
        != US_CLI_DONE)
    {
        return US_CLI_USAGE;
    }

    path = argv[optind];

    if (optind == argc - 2) {
        return us_backup_run(path, argv[optind + 1], rate, us_backup_restore,
                             "restored");
    }

    if (rate) {
        return us_cli_usage(&us_cli_restore);
    }

    /* a directory that was put back by other means: only its epoch changes */

    code = us_cli_data_open(&d, path);

    if (code != US_CLI_DONE) {
        return code;
    }

    memset(&b, 0, sizeof(us_backup_t));
    b.from = d.dirfd;
    b.to = d.dirfd;

    if (us_backup_look(&b) == -1) {
        code = us_backup_failed(path, &b);
        us_cli_data_close(&d);
        return code;
    }

    lock = us_disk_lock(d.dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

    if (lock == -1) {
        code = us_cli_fail("\"%s\" cannot be locked: %s", path,
                           errno == EWOULDBLOCK ? "it has an owner; stop the "
                                                  "service first"
                                                : strerror(errno));

    } else {
        code = us_backup_make(&b, path, path, us_backup_restore, &epoch);
    }

    if (code == US_CLI_DONE) {
        us_backup_say("restored", path, &b, epoch);
    }

    if (lock != -1) {
        (void) close(lock);
    }

    us_cli_data_close(&d);

    return code;
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
    .exits =
        " 0   DIR is complete and on the disk\n"
        " 1   IN is damaged or cut\n"
        " 2   wrong usage, or DIR could not be made"
};
