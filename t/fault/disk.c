
/*
 * A disk that fails, for LD_PRELOAD: what the file US_DISK says happens to
 * files of a data directory,
 *
 *     write ERRNO      pwrite() to a journal or snapshot fails
 *     sync ERRNO       fsync() and fdatasync() fail
 *     manifest ERRNO   those of the manifest fail
 *     directory ERRNO  those of any directory
 *     slow MS          they take so long first
 *     stall 1          pwrite() to them waits for as long as this stands here
 *     cold 1           pread() of a segment waits for as long as this stands
 *                      here; one that does not wait gets EAGAIN
 *     memory BYTES     mmap() of so many, of memory, fails
 *     fds 1            a segment cannot be opened: EMFILE
 *     page BYTES       the size of a page, as nginx asks for it
 *     writeback N      the Nth error of write-back has happened, see below
 *     die 1            the process that reports it first is killed at once
 *     rot OFFSET       segments read as 0xee from there on, past the cache
 *     random 1         getrandom() waits for as long as this stands here
 *
 * a word and a number; an empty or missing file: nothing.  The file is read at
 * each call, so that a test changes its mind while the server runs.
 *
 * Errors of write-back are reported as Linux does: once by each descriptor that
 * was open when it happened, and by one that is opened later only if none has
 * reported it before, in any process (the file US_DISK.reported).
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>


static int
disk_says(const char *word)
{
    int          fd, n;
    char         buf[100], *p;
    ssize_t      len;
    const char  *path;

    path = getenv("US_DISK");

    if (path == NULL) {
        return 0;
    }

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd == -1) {
        return 0;
    }

    len = read(fd, buf, sizeof(buf) - 1);
    close(fd);

    if (len <= 0) {
        return 0;
    }

    buf[len] = '\0';
    p = strstr(buf, word);

    if (p == NULL || sscanf(p + strlen(word), "%d", &n) != 1) {
        return 0;
    }

    return n;
}


int
getpagesize(void)
{
    int  size;

    size = disk_says("page");

    return size ? size : (int) sysconf(_SC_PAGESIZE);
}


static int
disk_ours(int fd)
{
    char     link[64], path[4096];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);

    if (n <= 0) {
        return 0;
    }

    path[n] = '\0';

    return strstr(path, "/journal.") || strstr(path, "/snapshot.")
           || strstr(path, "/manifest");
}


/* of what an nginx module asks for in one piece; malloc()'s own is not here */

void *
mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
    static void  *(*next)(void *, size_t, int, int, int, off_t);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "mmap");
    }

    if ((flags & MAP_ANONYMOUS) && len == 64 * 1024
        && disk_says("memory") == 64 * 1024)
    {
        errno = ENOMEM;
        return MAP_FAILED;
    }

    return next(addr, len, prot, flags, fd, at);
}


ssize_t
getrandom(void *p, size_t len, unsigned flags)
{
    static ssize_t (*next)(void *, size_t, unsigned);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "getrandom");
    }

    while (disk_says("random")) {
        usleep(10 * 1000);
    }

    return next(p, len, flags);
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    int              err;
    static ssize_t (*next)(int, const void *, size_t, off_t);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "pwrite");
    }

    if (disk_ours(fd)) {

        while (disk_says("stall")) {
            usleep(10 * 1000);
        }

        err = disk_says("write");

        if (err) {
            errno = err;
            return -1;
        }
    }

    return next(fd, p, len, at);
}


/* the last error that a descriptor has reported, or is not to report */

#define DISK_FDS  4096

static int  disk_reported[DISK_FDS];


/* the last error that any descriptor has reported */

static int
disk_reported_any(int report)
{
    int    fd, n;
    char   path[4200], buf[20];

    snprintf(path, sizeof(path), "%s.reported", getenv("US_DISK"));
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (fd == -1) {
        return 0;
    }

    memset(buf, 0, sizeof(buf));
    n = read(fd, buf, sizeof(buf) - 1) > 0 ? atoi(buf) : 0;

    if (report > n) {
        n = snprintf(buf, sizeof(buf), "%d\n", report);
        lseek(fd, 0, SEEK_SET);

        if (write(fd, buf, n) != n) {
            abort();
        }

        n = report;
    }

    close(fd);

    return n;
}


int
openat(int dirfd, const char *name, int flags, ...)
{
    int            fd, event;
    mode_t         mode;
    va_list        args;
    static int   (*next)(int, const char *, int, ...);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "openat");
    }

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);

    if (strncmp(name, "journal.", 8) == 0 && disk_says("fds")) {
        errno = EMFILE;
        return -1;
    }

    fd = next(dirfd, name, flags, mode);

    if (fd >= 0 && fd < DISK_FDS) {
        event = disk_says("writeback");
        disk_reported[fd] = (event && disk_reported_any(0) < event) ? event - 1
                                                                    : event;
    }

    return fd;
}


static int
disk_named(int fd, const char *name)
{
    char     link[64], path[4096];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';

    return strstr(path, name) != NULL;
}


/* 1: this descriptor has an error of write-back to report */

static int
disk_writeback(int fd)
{
    int  event;

    event = disk_says("writeback");

    if (event == 0 || fd >= DISK_FDS || disk_reported[fd] >= event
        || !disk_named(fd, "/journal."))
    {
        return 0;
    }

    disk_reported[fd] = event;

    if (disk_reported_any(0) < event) {
        (void) disk_reported_any(event);

        if (disk_says("die")) {
            kill(getpid(), SIGKILL);
        }
    }

    return 1;
}


static int
disk_cold(int fd)
{
    return disk_ours(fd) && !disk_named(fd, "/manifest") && disk_says("cold");
}


ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    static ssize_t (*next)(int, const struct iovec *, int, off_t, int);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "preadv2");
    }

    if ((flags & RWF_NOWAIT) && disk_cold(fd)) {
        errno = EAGAIN;
        return -1;
    }

    return next(fd, iov, n, at, flags);
}


ssize_t
pread(int fd, void *p, size_t len, off_t at)
{
    int              rot;
    off_t            i;
    ssize_t          n;
    static ssize_t (*next)(int, void *, size_t, off_t);

    if (next == NULL) {
        next = dlsym(RTLD_NEXT, "pread");
    }

    while (disk_cold(fd)) {
        usleep(10 * 1000);
    }

    n = next(fd, p, len, at);

    if (n > 0 && (fcntl(fd, F_GETFL) & O_DIRECT)
        && disk_named(fd, "/journal."))
    {
        rot = disk_says("rot");

        for (i = at; rot && i < at + n; i++) {
            if (i >= rot) {
                ((unsigned char *) p)[i - at] = 0xee;
            }
        }
    }

    return n;
}


static int
disk_sync(int fd, const char *name)
{
    int           err;
    int         (*next)(int);
    struct stat   st;

    next = dlsym(RTLD_NEXT, name);

    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        err = disk_says("directory");

        if (err) {
            errno = err;
            return -1;
        }
    }

    if (disk_ours(fd)) {
        err = disk_says("slow");

        if (err) {
            usleep(err * 1000);
        }

        err = disk_says("sync");

        if (err) {
            errno = err;
            return -1;
        }

        err = disk_says("manifest");

        if (err && disk_named(fd, "/manifest")) {
            errno = err;
            return -1;
        }

        if (disk_writeback(fd)) {
            errno = EIO;
            return -1;
        }
    }

    return next(fd);
}


int
fsync(int fd)
{
    return disk_sync(fd, "fsync");
}


int
fdatasync(int fd)
{
    return disk_sync(fd, "fdatasync");
}
