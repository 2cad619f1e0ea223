
/*
 * Directories of nodes, for t/unit/simulate.c, which includes it.  They are
 * real ones.  Each call that changes one is a point at which others go on, and
 * at which the worker can be killed, also with half of a write done; the
 * descriptors of one that is killed are closed.  A sync does nothing, as no
 * machine stops here.
 *
 * For some seconds a fifth of a node's calls fail, or write a part.  A sync
 * that fails is final, and so is a file that cannot be read at a start:
 * somebody restarts the node.  An epoch may begin then, as more was written
 * than was answered; all that was answered is in it.
 */


#ifndef _DISK_FAKE_H_INCLUDED_
#define _DISK_FAKE_H_INCLUDED_


#include "journal/us_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>


#define DISK_FDS      1024
#define DISK_SEGMENT  16384           /* bytes of a segment, */
#define DISK_SNAPSHOT 8192           /* and of a journal for a snapshot */
#define DISK_SICK     20000          /* ms, at most */
#define DISK_FAILS    200            /* of 1000 calls meanwhile */


static struct {
    int          on;
    worker_t    *fds[DISK_FDS];       /* whose they are */
    worker_t    *opens;               /* who opens one now, */
    worker_t    *acts;                /* and where others go on; or NULL */
} disk;


static void meanwhile(void *data);


static void
disk_begin(uint64_t seed)
{
    unsigned  i;

    for (i = 0; i < NODES; i++) {
        nodes[i].sick = 0;
        nodes[i].failed = 0;
    }

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


int
openat(int dirfd, const char *name, int flags, ...)
{
    int      fd;
    mode_t   mode;
    va_list  args;

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);

    if (flags & O_CREAT) {
        disk_call();

        if (disk_fails(1)) {
            return -1;
        }
    }

    fd = (int) syscall(SYS_openat, dirfd, name, flags, mode);

    if (fd >= 0) {
        assert_true(fd < DISK_FDS);
        disk.fds[fd] = disk.opens;
    }

    return fd;
}


int
close(int fd)
{
    if (fd >= 0 && fd < DISK_FDS) {
        disk.fds[fd] = NULL;
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
        (void) syscall(SYS_pwrite64, fd, p, half, at);
        disk_call();
    }

    if (disk_fails(1)) {

        if (half == 0 || chance(500)) {
            return -1;
        }

        len = half;
    }

    return syscall(SYS_pwrite64, fd, p, len, at);
}


int
ftruncate(int fd, off_t size)
{
    disk_call();

    return disk_fails(0) ? -1 : (int) syscall(SYS_ftruncate, fd, size);
}


int
fsync(int fd)
{
    (void) fd;
    disk_call();

    return disk_fails(1) ? -1 : 0;
}


int
fdatasync(int fd)
{
    return fsync(fd);
}


int
mkdirat(int dirfd, const char *name, mode_t mode)
{
    disk_call();

    return disk_fails(1) ? -1 : (int) syscall(SYS_mkdirat, dirfd, name, mode);
}


int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    disk_call();

    return disk_fails(1)
           ? -1 : (int) syscall(SYS_renameat, from_fd, from, to_fd, to);
}


int
unlinkat(int dirfd, const char *name, int flags)
{
    disk_call();

    return disk_fails(0) ? -1 : (int) syscall(SYS_unlinkat, dirfd, name, flags);
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


static void
disk_remove(node_t *n)
{
    if (n->path[0]) {
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
