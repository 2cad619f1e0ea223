
/*
 * Directories of nodes, for t/unit/simulate.c, which includes it.  They are
 * real ones.  Each call that changes one is a point at which others go on, and
 * at which the worker can be killed, also with half of a write done; the
 * descriptors of one that is killed are closed.
 *
 * For some seconds a fifth of a node's calls fail, or write a part.  A sync
 * that fails is final, and so is a file that cannot be read at a start:
 * somebody restarts the node.  An epoch may begin then, as more was written
 * than was answered; all that was answered is in it.
 *
 * A machine may lose its power.  What was done since the last sync is kept with
 * what takes it back:
 *
 *     of a file         the bytes that a write or a cut replaced.  The last
 *                       changes are taken back, or some of them; of the first
 *                       a part is there, with zeros or anything up to the next
 *                       sector
 *     of a directory    names that were made, moved and removed.  The last ones
 *                       are taken back; a sync of either directory keeps a move
 *
 * A file whose sync failed may lose the last ones at once.  After a loss of
 * power all is there that was answered, in the same epoch.  But a replica has
 * what its directory has, and asks for the rest again; or for all, as the
 * header of its last file was not synced and may be damaged.
 *
 * Disks of copies, a replica's and those of a log, may lie: nine of ten syncs
 * report success and keep nothing.  A manifest may be damaged then; somebody
 * removes the files of the copy.
 */


#ifndef _DISK_FAKE_H_INCLUDED_
#define _DISK_FAKE_H_INCLUDED_


#include "journal/us_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>


#define DISK_FDS      1024
#define DISK_SEGMENT  4096            /* bytes of a segment, */
#define DISK_SNAPSHOT 8192           /* and of a journal for a snapshot */
#define DISK_SICK     20000          /* ms, at most */
#define DISK_FAILS    200            /* of 1000 calls meanwhile */
#define DISK_FILES    512
#define DISK_SECTOR   512


typedef enum {
    DISK_WRITE = 0,                   /* or a cut */
    DISK_CREATE,
    DISK_RENAME,
    DISK_UNLINK,
    DISK_MKDIR
} disk_kind_t;


/* a file or a directory that has changed, or may */

typedef struct {
    int           fd;                 /* ours; 0: free */
    ino_t         ino;
    node_t       *node;
} disk_file_t;


/* a change that was not synced so far, and what takes it back */

typedef struct {
    disk_kind_t   kind;
    disk_file_t  *file;               /* the file, or the directory */
    disk_file_t  *to;                 /* directory of the new name, or NULL */
    disk_file_t  *gone;               /* which had the name; or NULL */
    char          name[US_DISK_NAME];
    char          to_name[US_DISK_NAME];
    int           lied;               /* a sync has said that it is kept */
    off_t         at;
    size_t        len;                /* bytes that were written */
    off_t         size;               /* before */
    uint8_t      *old;
    size_t        nold;
    uint8_t      *new;                /* while a file is torn */
} disk_op_t;


static struct {
    int           on;
    worker_t     *fds[DISK_FDS];      /* whose they are */
    disk_file_t  *of[DISK_FDS];
    worker_t     *opens;              /* who opens one now, */
    worker_t     *acts;               /* and where others go on; or NULL */
    disk_file_t   files[DISK_FILES];
    disk_op_t    *ops;
    size_t        nops;
    size_t        room;
} disk;


static void meanwhile(void *data);
static void follow_anew(const node_t *n);


static void
disk_begin(uint64_t seed)
{
    unsigned  i;

    for (i = 0; i < NODES; i++) {
        nodes[i].sick = 0;
        nodes[i].failed = 0;
        nodes[i].boot = 0;
        nodes[i].torn = 0;
        nodes[i].lied = 0;
        nodes[i].lies = seed % 8 == 7 ? i == 2 && seed / 8 % 2
                                      : (seed / 5 + i / 2) % 2;
    }

    assert_int_equal(disk.nops, 0);
    free(disk.ops);
    memset(&disk, 0, sizeof(disk));
    disk.on = seed % 8 == 7 || seed % 5 == 0;
}


/* whose calls follow; returns whose were before */

static worker_t *
disk_acts(worker_t *w)
{
    worker_t  *was;

    was = disk.acts;
    disk.acts = disk.on ? w : NULL;
    disk.opens = disk.acts;

    return was;
}


static void
disk_call(void)
{
    worker_t  *w, *opens;

    w = disk.acts;

    if (w) {
        opens = disk.opens;
        meanwhile(w);
        disk.acts = w;
        disk.opens = opens;
    }
}


static void
disk_sickens(node_t *n)
{
    if (disk.on && n->dirfd != -1) {
        n->sick = clock_ms + any(DISK_SICK);
        say("the disk of %s fails until %llu", n->name,
            (unsigned long long) n->sick);
    }
}


/* whether a call fails; full: for want of room, too */

static int
disk_fails(int full)
{
    node_t  *n;

    n = disk.opens ? disk.opens->node : NULL;

    if (n == NULL || quiet || n->sick <= clock_ms || !chance(DISK_FAILS)) {
        return 0;
    }

    mark(M_FAILED);
    n->failed = 1;
    errno = full && chance(500) ? ENOSPC : EIO;

    return 1;
}


/* whether a node does not go on before it is restarted */

static int
disk_ended(const node_t *n)
{
    us_life_state_t  state;

    state = us_share_state(&n->sh);

    if (state != US_LIFE_DAMAGED && state != US_LIFE_FAILED
        && us_acquire(&n->sh.lost) == 0)
    {
        return 0;
    }

    assert_true(n->failed);

    return 1;
}


/* a node has read its own store from its directory */

static void
disk_loaded(node_t *n, uint64_t now)
{
    assert_true(now == epoch || n->failed);

    epoch = now;
    n->failed = 0;
}


/* what a name of a directory is; NULL: nothing */

static disk_file_t *
disk_named(const disk_file_t *dir, const char *name)
{
    int           fd;
    unsigned      i;
    disk_file_t  *f, *free_one;
    struct stat   st;

    fd = (int) syscall(SYS_openat, dir->fd, name, O_RDWR|O_NOFOLLOW);

    if (fd == -1 && errno == EISDIR) {
        fd = (int) syscall(SYS_openat, dir->fd, name, O_RDONLY|O_DIRECTORY);
    }

    if (fd == -1) {
        return NULL;
    }

    assert_true(fd < DISK_FDS);
    disk.fds[fd] = NULL;
    disk.of[fd] = NULL;
    assert_int_equal(fstat(fd, &st), 0);
    free_one = NULL;

    for (i = 0; i < DISK_FILES; i++) {
        f = &disk.files[i];

        if (f->fd && f->ino == st.st_ino) {
            (void) syscall(SYS_close, fd);
            return f;
        }

        free_one = f->fd || free_one ? free_one : f;
    }

    assert_non_null(free_one);
    free_one->fd = fd;
    free_one->ino = st.st_ino;
    free_one->node = dir->node;

    return free_one;
}


static disk_op_t *
disk_op(disk_kind_t kind, disk_file_t *file, const char *name)
{
    disk_op_t  *op;

    if (disk.nops == disk.room) {
        disk.room = disk.room ? 2 * disk.room : 64;
        disk.ops = realloc(disk.ops, disk.room * sizeof(disk_op_t));
        assert_non_null(disk.ops);
    }

    op = &disk.ops[disk.nops++];
    memset(op, 0, sizeof(disk_op_t));
    op->kind = kind;
    op->file = file;
    (void) snprintf(op->name, sizeof(op->name), "%s", name);

    return op;
}


/* before bytes of a file are written, or cut off */

static void
disk_changes(int fd, off_t at, size_t len, int cuts)
{
    size_t        n;
    disk_op_t    *op;
    struct stat   st;

    if (disk.of[fd] == NULL) {
        return;
    }

    op = disk_op(DISK_WRITE, disk.of[fd], "");
    assert_int_equal(fstat(fd, &st), 0);
    n = at < st.st_size ? (size_t) (st.st_size - at) : 0;
    n = cuts || n < len ? n : len;

    op->at = at;
    op->len = len;
    op->size = st.st_size;
    op->nold = n;
    op->old = malloc(n + 1);
    assert_non_null(op->old);
    assert_int_equal(syscall(SYS_pread64, op->file->fd, op->old, n, at), n);
}


static void
disk_drop(disk_op_t *op)
{
    free(op->old);
    free(op->new);
    disk.nops--;
    memmove(op, op + 1, (&disk.ops[disk.nops] - op) * sizeof(disk_op_t));
}


/* takes a write back, and keeps what it has written */

static void
disk_unwrite(disk_op_t *op)
{
    int  fd;

    fd = op->file->fd;
    op->new = malloc(op->len + 1);
    assert_non_null(op->new);
    (void) syscall(SYS_pread64, fd, op->new, op->len, op->at);
    (void) syscall(SYS_pwrite64, fd, op->old, op->nold, op->at);
    (void) syscall(SYS_ftruncate, fd, op->size);
}


/* it is there all the same, or its first bytes */

static void
disk_rewrite(const disk_op_t *op, size_t len)
{
    int      fd;
    off_t    end;
    size_t   i, n;
    uint8_t  rest[DISK_SECTOR];

    fd = op->file->fd;
    end = op->at + (off_t) len;

    if (op->len == 0) {
        (void) syscall(SYS_ftruncate, fd, op->at);
        return;
    }

    (void) syscall(SYS_pwrite64, fd, op->new, len, op->at);

    n = DISK_SECTOR - end % DISK_SECTOR;
    n = n < op->len - len ? n : op->len - len;

    if (len && n && chance(500)) {
        (void) memset(rest, 0, sizeof(rest));

        for (i = 0; i < n && chance(990); i++) {
            rest[i] = (uint8_t) any(256);
        }

        (void) syscall(SYS_pwrite64, fd, rest, n, end);
    }
}


/* a change is being taken back */

static void
disk_lost(const disk_op_t *op)
{
    mark(M_TORN);
    op->file->node->torn = 1;

    if (op->lied) {
        mark(M_LIED);
        op->file->node->lied = 1;
    }
}


/* the last of so many changes */

static unsigned
disk_last(unsigned n)
{
    return chance(300) ? n : any(n + 1);
}


/*
 * A file loses what was written last, and was not synced; or, out of order, of
 * what came after some of it as well.
 */

static void
disk_tear(const disk_file_t *f, int ordered)
{
    size_t      i;
    unsigned    n, k;
    disk_op_t  *op;

    for (i = disk.nops, n = 0; i--; ) {
        op = &disk.ops[i];

        if (op->kind == DISK_WRITE && op->file == f) {
            disk_unwrite(op);
            n++;
        }
    }

    n -= disk_last(n);

    for (i = 0, k = 0; i < disk.nops; i++) {
        op = &disk.ops[i];

        if (op->kind != DISK_WRITE || op->file != f) {
            continue;
        }

        if (k < n || (k > n && !ordered && chance(300))) {
            disk_rewrite(op, op->len);
            free(op->new);
            op->new = NULL;

        } else {

            if (k == n && op->len) {
                disk_rewrite(op, any((unsigned) op->len));
            }

            disk_lost(op);
            disk_drop(op);
            i--;
        }

        k++;
    }
}


/* a name is there again */

static void
disk_restore(const disk_file_t *dir, const char *name, const disk_file_t *f)
{
    int      fd;
    off_t    at;
    ssize_t  n;
    uint8_t  buf[4096];

    fd = (int) syscall(SYS_openat, dir->fd, name, O_WRONLY|O_CREAT|O_TRUNC,
                       0600);
    assert_int_not_equal(fd, -1);

    for (at = 0; /* void */ ; at += n) {
        n = syscall(SYS_pread64, f->fd, buf, sizeof(buf), at);

        if (n <= 0) {
            break;
        }

        (void) syscall(SYS_pwrite64, fd, buf, n, at);
    }

    (void) syscall(SYS_close, fd);
}


static void
disk_unname(const disk_op_t *op)
{
    switch (op->kind) {

    case DISK_RENAME:
        (void) syscall(SYS_renameat, op->to->fd, op->to_name, op->file->fd,
                       op->name);

        if (op->gone) {
            disk_restore(op->to, op->to_name, op->gone);
        }

        break;

    case DISK_UNLINK:
        disk_restore(op->file, op->name, op->gone);
        break;

    default:
        (void) syscall(SYS_unlinkat, op->file->fd, op->name,
                       op->kind == DISK_MKDIR ? AT_REMOVEDIR : 0);
    }
}


/* nothing of a node is to be taken back any more */

static void
disk_forget(const node_t *n)
{
    size_t  i;

    for (i = disk.nops; i--; ) {
        if (disk.ops[i].file->node == n) {
            disk_drop(&disk.ops[i]);
        }
    }

    for (i = 0; i < DISK_FILES; i++) {
        if (disk.files[i].fd && disk.files[i].node == n) {
            (void) syscall(SYS_close, disk.files[i].fd);
            disk.files[i].fd = 0;
        }
    }
}


/* the machine of a node, of which nothing runs, has lost its power */

static void
disk_power(node_t *n)
{
    size_t      i;
    unsigned    names;
    disk_op_t  *op;

    say("%s loses its power", n->name);
    mark(M_POWER);
    n->boot++;

    /* a start that had not ended may have begun an epoch */

    if (us_share_state(&n->sh) > US_LIFE_LOADING) {
        n->failed = 0;
    }

    follow_anew(n);

    for (i = 0; i < DISK_FILES; i++) {
        if (disk.files[i].fd && disk.files[i].node == n) {
            disk_tear(&disk.files[i], chance(500));
        }
    }

    for (i = 0, names = 0; i < disk.nops; i++) {
        names += disk.ops[i].kind != DISK_WRITE && disk.ops[i].file->node == n;
    }

    names = disk_last(names);

    for (i = disk.nops; names; ) {
        op = &disk.ops[--i];

        if (op->kind != DISK_WRITE && op->file->node == n) {
            names--;
            disk_lost(op);
            disk_unname(op);
        }
    }

    disk_forget(n);
}


/* what was done is on the disk, or is said to be */

static void
disk_synced(const disk_file_t *f)
{
    int           lies;
    size_t        i, n;
    disk_file_t  *gone;
    struct stat   st;

    lies = f->node->lies && !chance(100);

    for (i = disk.nops; i--; ) {
        if (disk.ops[i].file != f && disk.ops[i].to != f) {
            continue;
        }

        if (lies) {
            disk.ops[i].lied = 1;

        } else {
            disk_drop(&disk.ops[i]);
        }
    }

    /* files that have no name for good */

    for (n = 0; n < DISK_FILES; n++) {
        gone = &disk.files[n];

        if (gone->fd == 0 || fstat(gone->fd, &st) == -1 || st.st_nlink) {
            continue;
        }

        for (i = 0; i < disk.nops && disk.ops[i].gone != gone; i++) {
            /* void */
        }

        if (i < disk.nops) {
            continue;
        }

        for (i = disk.nops; i--; ) {
            if (disk.ops[i].file == gone) {
                disk_drop(&disk.ops[i]);
            }
        }

        (void) syscall(SYS_close, gone->fd);
        gone->fd = 0;
    }
}


void  __wrap_us_manifest_boot(char boot[US_BOOT_ID + 1]);

void
__wrap_us_manifest_boot(char boot[US_BOOT_ID + 1])
{
    (void) snprintf(boot, US_BOOT_ID + 1, "%s, %u",
                    disk.opens ? disk.opens->node->name : "of a node",
                    disk.opens ? disk.opens->node->boot : 0);
}


/* the calls */

int
openat(int dirfd, const char *name, int flags, ...)
{
    int           fd, made;
    mode_t        mode;
    va_list       args;
    struct stat   st;
    disk_file_t  *dir;

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);

    if (flags & O_CREAT) {
        disk_call();

        if (disk_fails(1)) {
            return -1;
        }
    }

    dir = dirfd >= 0 && dirfd < DISK_FDS ? disk.of[dirfd] : NULL;
    made = dir && (flags & O_CREAT) && fstatat(dirfd, name, &st, 0) == -1;

    fd = (int) syscall(SYS_openat, dirfd, name,
                       dir ? flags & ~O_TRUNC : flags, mode);

    if (fd == -1) {
        return -1;
    }

    assert_true(fd < DISK_FDS);
    disk.fds[fd] = disk.opens;
    disk.of[fd] = dir ? disk_named(dir, name) : NULL;

    if (made) {
        (void) disk_op(DISK_CREATE, dir, name);

    } else if (dir && (flags & O_TRUNC)) {
        disk_changes(fd, 0, 0, 1);
        (void) syscall(SYS_ftruncate, fd, 0);
    }

    return fd;
}


int
close(int fd)
{
    if (fd >= 0 && fd < DISK_FDS) {
        disk.fds[fd] = NULL;
        disk.of[fd] = NULL;
    }

    return (int) syscall(SYS_close, fd);
}


ssize_t
pread(int fd, void *p, size_t len, off_t at)
{
    return disk_fails(0) ? -1 : syscall(SYS_pread64, fd, p, len, at);
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    size_t  half;

    disk_call();

    /* killed in the middle, half of it is there */

    half = disk.acts ? len / 2 : 0;

    if (half && chance(20)) {
        disk_changes(fd, at, half, 0);
        (void) syscall(SYS_pwrite64, fd, p, half, at);
        disk_call();
    }

    if (disk_fails(1)) {

        if (half == 0 || chance(500)) {
            return -1;
        }

        len = half;
    }

    disk_changes(fd, at, len, 0);

    return syscall(SYS_pwrite64, fd, p, len, at);
}


int
ftruncate(int fd, off_t size)
{
    disk_call();

    if (disk_fails(0)) {
        return -1;
    }

    disk_changes(fd, size, 0, 1);

    return (int) syscall(SYS_ftruncate, fd, size);
}


int
fsync(int fd)
{
    disk_file_t  *f;

    disk_call();
    f = disk.of[fd];

    if (disk_fails(1)) {

        if (f && chance(500)) {
            disk_tear(f, 1);
            follow_anew(f->node);
        }

        return -1;
    }

    if (f) {
        disk_synced(f);
    }

    return 0;
}


int
fdatasync(int fd)
{
    return fsync(fd);
}


int
mkdirat(int dirfd, const char *name, mode_t mode)
{
    int  rc;

    disk_call();

    if (disk_fails(1)) {
        return -1;
    }

    rc = (int) syscall(SYS_mkdirat, dirfd, name, mode);

    if (rc == 0) {
        (void) disk_op(DISK_MKDIR, disk.of[dirfd], name);
    }

    return rc;
}


int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    int           rc;
    disk_op_t    *op;
    disk_file_t  *gone;

    disk_call();

    if (disk_fails(1)) {
        return -1;
    }

    gone = disk_named(disk.of[to_fd], to);
    rc = (int) syscall(SYS_renameat, from_fd, from, to_fd, to);

    if (rc == 0) {
        op = disk_op(DISK_RENAME, disk.of[from_fd], from);
        op->to = disk.of[to_fd];
        op->gone = gone;
        (void) snprintf(op->to_name, sizeof(op->to_name), "%s", to);
    }

    return rc;
}


int
unlinkat(int dirfd, const char *name, int flags)
{
    int           rc;
    disk_file_t  *gone;

    disk_call();

    if (disk_fails(0)) {
        return -1;
    }

    gone = disk_named(disk.of[dirfd], name);
    rc = (int) syscall(SYS_unlinkat, dirfd, name, flags);

    if (rc == 0) {
        disk_op(DISK_UNLINK, disk.of[dirfd], name)->gone = gone;
    }

    return rc;
}


/* a directory of a node, which has its lock */

static void
disk_open(node_t *n)
{
    if (n->path[0] == '\0') {
        (void) strcpy(n->path, "/tmp/urlstore-simulate-XXXXXX");
        assert_non_null(mkdtemp(n->path));
    }

    disk.opens = NULL;
    n->dirfd = openat(AT_FDCWD, n->path, O_RDONLY|O_DIRECTORY);
    assert_int_not_equal(n->dirfd, -1);
    disk.of[n->dirfd] = disk_named(&(disk_file_t) { n->dirfd, 0, n }, ".");
    n->lockfd = openat(n->dirfd, US_DIR_LOCK, O_RDWR|O_CREAT, 0600);
    assert_int_not_equal(n->lockfd, -1);
}


static void
disk_close(node_t *n)
{
    if (n->dirfd != -1) {
        (void) close(n->lockfd);
        (void) close(n->dirfd);
        n->dirfd = -1;
    }
}


static void
disk_clear(const char *path)
{
    DIR            *d;
    char            name[400];
    struct dirent  *de;

    d = opendir(path);

    while (d && (de = readdir(d)) != NULL) {
        (void) snprintf(name, sizeof(name), "%.100s/%.255s", path, de->d_name);

        /* files of a lost log are in a directory of their own */

        if (de->d_type == DT_DIR && de->d_name[0] != '.') {
            disk_clear(name);

        } else {
            (void) unlink(name);
        }
    }

    if (d) {
        (void) closedir(d);
        (void) rmdir(path);
    }
}


/* somebody removes the files of a copy */

static void
disk_empty(node_t *n)
{
    DIR            *d;
    worker_t       *was;
    struct dirent  *de;

    was = disk_acts(NULL);
    d = opendir(n->path);
    assert_non_null(d);

    while ((de = readdir(d)) != NULL) {
        if (de->d_type == DT_REG && strcmp(de->d_name, US_DIR_LOCK) != 0) {
            assert_int_equal(unlinkat(n->dirfd, de->d_name, 0), 0);
        }
    }

    (void) closedir(d);
    (void) disk_acts(was);
}


/* or of each that is not written, after a lie */

static void
disk_look(void)
{
    unsigned  i;

    for (i = 0; i < NODES; i++) {
        if (nodes[i].lied && us_acquire(&nodes[i].sh.replicate.copier.off)) {
            disk_empty(&nodes[i]);
        }
    }
}


static void
disk_remove(node_t *n)
{
    if (n->path[0]) {
        disk_forget(n);
        disk_clear(n->path);
        n->path[0] = '\0';
    }
}


/* of a worker that starts */

static void
disk_conf(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;

    if (w->node->dirfd != -1) {
        l->conf.segment = DISK_SEGMENT;
        l->conf.snapshot = DISK_SNAPSHOT;
        l->conf.path = w->node->path;
        l->dirfd = w->node->dirfd;
        l->lockfd = w->node->lockfd;
    }
}


/* a worker was killed */

static void
disk_killed(worker_t *w)
{
    int  fd;

    for (fd = 0; fd < DISK_FDS; fd++) {
        if (disk.fds[fd] == w) {
            (void) close(fd);
        }
    }
}


#endif /* _DISK_FAKE_H_INCLUDED_ */
