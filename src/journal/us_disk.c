
/*
 * How the journal touches the disk.  See us_disk.h.
 *
 * Every write is repeated until all bytes are written, and so is every
 * interrupted call.  Any other failure is reported with errno to the caller.
 */


#include "us_disk.h"
#include "../us_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>


/* bytes that the kernel is asked to read; it may bound them */
#define US_DISK_AHEAD  (1 << 20)

/* bytes: no folio of the page cache is larger */
#define US_DISK_PAGE   (2 << 20)


int
us_disk_fail(us_disk_error_t *e, int err, const char *fmt, ...)
{
    int      n;
    va_list  args;

    if (e == NULL) {
        return -1;
    }

    e->err = err;

    va_start(args, fmt);
    n = vsnprintf(e->text, sizeof(e->text), fmt, args);
    va_end(args);

    if (err && n >= 0 && (size_t) n < sizeof(e->text)) {
        snprintf(e->text + n, sizeof(e->text) - n, " (%d: %s)", err,
                 strerror(err));
    }

    return -1;
}


int
us_disk_pwrite(int fd, const void *p, size_t len, uint64_t offset)
{
    ssize_t         n;
    const uint8_t  *c;

    c = p;

    while (len) {
        n = pwrite(fd, c, len, (off_t) offset);

        if (n == -1) {
            if (errno == EINTR) {
                continue;
            }

            return -1;
        }

        if (n == 0) {
            errno = EIO;
            return -1;
        }

        c += n;
        offset += n;
        len -= n;
    }

    return 0;
}


ssize_t
us_disk_pread_blocks(int fd, void *p, size_t len, uint64_t offset,
    size_t block)
{
    size_t   done;
    ssize_t  n;

    n = 0;

    for (done = 0; done < len; done += n) {

        /* only the file's end is within a block, and no read begins there */

        if (done % block) {
            break;
        }

        n = pread(fd, (uint8_t *) p + done, len - done,
                  (off_t) (offset + done));

        if (n == 0) {
            break;
        }

        if (n == -1) {
            if (errno == EINTR) {
                n = 0;
                continue;
            }

            return -1;
        }
    }

    return done;
}


ssize_t
us_disk_pread(int fd, void *p, size_t len, uint64_t offset)
{
    return us_disk_pread_blocks(fd, p, len, offset, 1);
}


ssize_t
us_disk_pread_now(int fd, void *p, size_t len, size_t least, uint64_t offset)
{
#ifdef RWF_NOWAIT

    size_t        done;
    ssize_t       n;
    struct iovec  iov;

    for (done = 0; done < len; done += n) {
        iov.iov_base = (uint8_t *) p + done;
        iov.iov_len = len - done;

        n = preadv2(fd, &iov, 1, (off_t) (offset + done), RWF_NOWAIT);

        /* Linux 5.9 and 5.10 answer 0 before the end, too: preadv2(2), BUGS */

        if (n == 0) {
            if (done >= least) {
                break;
            }

            return us_disk_pread(fd, p, len, offset);
        }

        if (n == -1 && errno == EAGAIN) {
            (void) posix_fadvise(fd, (off_t) (offset + done), US_DISK_AHEAD,
                                 POSIX_FADV_WILLNEED);

            if (done < least) {
                errno = EAGAIN;
                return -1;
            }

            break;
        }

        if (n == -1) {
            return us_disk_pread(fd, p, len, offset);
        }
    }

    return done;

#else

    return us_disk_pread(fd, p, len, offset);

#endif
}


void
us_disk_again(int fd, uint64_t offset)
{
    uint64_t  page;

    page = offset & ~(uint64_t) (US_DISK_PAGE - 1);

    /* pages that are being read are locked, and stay */

    (void) posix_fadvise(fd, (off_t) page, 2 * US_DISK_PAGE,
                         POSIX_FADV_DONTNEED);
    (void) posix_fadvise(fd, (off_t) offset, US_DISK_AHEAD,
                         POSIX_FADV_WILLNEED);
}


int
us_disk_passing(int err)
{
    size_t  i;

    static const int  passing[] = {
        EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EROFS, EACCES, EPERM, EAGAIN,
        EINTR, ESTALE, ETIMEDOUT
    };

    for (i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        if (passing[i] == err) {
            return 1;
        }
    }

    return 0;
}


int
us_disk_sync(int fd)
{
    int  rc;

    do {
        rc = fdatasync(fd);
    } while (rc == -1 && errno == EINTR);

    return rc;
}


void
us_disk_uncached(int fd)
{
    int  flags;

    flags = fcntl(fd, F_GETFL);

    if (flags == -1 || fcntl(fd, F_SETFL, flags|O_DIRECT) == -1) {

        /* clean pages leave the cache; of a sealed file all are */

        (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
}


int
us_disk_give(int fd, uid_t uid, gid_t gid)
{
    struct stat  st;

    if (fstat(fd, &st) == -1) {
        return -1;
    }

    if (st.st_uid == uid) {
        return 0;
    }

    if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
        errno = EPERM;
        return -1;
    }

    return fchown(fd, uid, gid);
}


int
us_disk_create(int dirfd, const char *name, int flags)
{
    int          fd;
    struct stat  st;

    fd = openat(dirfd, name, flags|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (fd != -1 && geteuid() == 0 && fstat(dirfd, &st) == 0) {
        (void) us_disk_give(fd, st.st_uid, st.st_gid);
    }

    return fd;
}


int
us_disk_rename(int dirfd, const char *from, const char *to,
    us_disk_error_t *e)
{
    if (renameat(dirfd, from, dirfd, to) == -1) {
        return us_disk_fail(e, errno, "rename of \"%s\" to \"%s\" failed",
                            from, to);
    }

    us_fault(US_FAULT_RENAMED);

    if (fsync(dirfd) == -1) {
        (void) us_disk_fail(e, errno, "fsync of the directory failed");
        return US_DISK_LOST;
    }

    return 0;
}


int
us_disk_replace(int dirfd, const char *name, const void *p, size_t len,
    us_disk_error_t *e)
{
    int   fd;
    char  tmp[US_DISK_NAME];

    snprintf(tmp, sizeof(tmp), "%s.tmp", name);

    fd = us_disk_create(dirfd, tmp, O_WRONLY|O_TRUNC);

    return us_disk_replace_by(dirfd, tmp, fd, name, p, len, e);
}


int
us_disk_replace_by(int dirfd, const char *tmp, int fd, const char *name,
    const void *p, size_t len, us_disk_error_t *e)
{
    int  rc;

    if (fd == -1) {
        return us_disk_fail(e, errno, "\"%s\" could not be made", tmp);
    }

    rc = us_disk_pwrite(fd, p, len, 0);

    if (rc == -1) {
        us_disk_fail(e, errno, "write to \"%s\" failed", tmp);

    } else if (fsync(fd) == -1) {
        rc = us_disk_fail(e, errno, "fsync of \"%s\" failed", tmp);
    }

    (void) close(fd);

    if (rc == 0) {
        us_fault(US_FAULT_REPLACE);

        rc = us_disk_rename(dirfd, tmp, name, e);
    }

    if (rc == -1) {
        (void) unlinkat(dirfd, tmp, 0);
    }

    return rc;
}


int
us_disk_lock(int dirfd, const char *name, int how, int op)
{
    int  fd, err;

    fd = (how == O_RDWR) ? us_disk_create(dirfd, name, how)
                         : openat(dirfd, name, how|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    while (flock(fd, op) == -1) {
        if (errno != EINTR) {
            err = errno;
            (void) close(fd);
            errno = err;
            return -1;
        }
    }

    return fd;
}


void
us_put32(uint8_t *p, uint32_t n)
{
    p[0] = (uint8_t) n;
    p[1] = (uint8_t) (n >> 8);
    p[2] = (uint8_t) (n >> 16);
    p[3] = (uint8_t) (n >> 24);
}


void
us_put64(uint8_t *p, uint64_t n)
{
    us_put32(p, (uint32_t) n);
    us_put32(p + 4, (uint32_t) (n >> 32));
}


uint32_t
us_get32(const uint8_t *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16
           | (uint32_t) p[3] << 24;
}


uint64_t
us_get64(const uint8_t *p)
{
    return (uint64_t) us_get32(p) | (uint64_t) us_get32(p + 4) << 32;
}
