
/*
 * A disk that fails, for LD_PRELOAD: what the file US_DISK says happens to
 * files of a data directory,
 *
 *     write ERRNO      pwrite() to a journal or snapshot fails
 *     sync ERRNO       fsync() and fdatasync() fail
 *     slow MS          they take so long first
 *     stall 1          pwrite() to them waits for as long as this stands here
 *     memory BYTES     mmap() of so many, of memory, fails
 *
 * a word and a number; an empty or missing file: nothing.  The file is read at
 * each call, so that a test changes its mind while the server runs.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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


static int
disk_sync(int fd, const char *name)
{
    int      err;
    int    (*next)(int);

    next = dlsym(RTLD_NEXT, name);

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
