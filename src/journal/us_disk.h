
/*
 * How src/journal touches the disk: whole writes at an offset, files replaced
 * in one step, directories synced, locks, and errors that a person can read.
 *
 * No function here retries a failed sync.  It is not known what the kernel has
 * done with the pages, so the caller must not trust the file any more.
 */


#ifndef _US_DISK_H_INCLUDED_
#define _US_DISK_H_INCLUDED_


#include "../us_base.h"


/* what went wrong, in words, with the place; err is errno or 0 */

typedef struct {
    int           err;
    char          text[480];
} us_disk_error_t;


/* fills e, which may be NULL, and returns -1 */
int us_disk_fail(us_disk_error_t *e, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* writes all of it, or returns -1 with errno; some may have been written */
int us_disk_pwrite(int fd, const void *p, size_t len, uint64_t offset);

/* reads up to the end of the file; fewer than len bytes only there, or -1 */
ssize_t us_disk_pread(int fd, void *p, size_t len, uint64_t offset);

/* the same after us_disk_uncached(), with US_DISK_BLOCK */
ssize_t us_disk_pread_blocks(int fd, void *p, size_t len, uint64_t offset,
    size_t block);

/*
 * us_disk_pread() without waiting for the disk.  What the kernel does not have
 * in memory it is asked to read; then fewer than len bytes, at least `least`,
 * or -1 with EAGAIN.  A file system that cannot do that is waited for.
 */
ssize_t us_disk_pread_now(int fd, void *p, size_t len, size_t least,
    uint64_t offset);

/*
 * Asks for it anew: a page that the disk has failed to read stays in memory
 * without its bytes, and is not read again for those who do not wait.
 */
void us_disk_again(int fd, uint64_t offset);

/*
 * Whether a failure may pass without anybody touching the data: no descriptor,
 * no memory, no room, no permission.
 */
int us_disk_passing(int err);

/* fdatasync(), until it is not interrupted any more */
int us_disk_sync(int fd);

/*
 * Has reads of fd come from the disk, not from the kernel's cache, if the file
 * system can do that.  They must begin at multiples of US_DISK_BLOCK then, in
 * place and in memory.
 */
#define US_DISK_BLOCK  4096

void us_disk_uncached(int fd);

/*
 * Writes a file under a temporary name, syncs it, renames it, syncs the
 * directory: after a crash the old text is there, or the new.  0, -1 or
 * US_DISK_LOST, as us_disk_rename().
 */
int us_disk_replace(int dirfd, const char *name, const void *p, size_t len,
    us_disk_error_t *e);

/*
 * The same by a temporary file of the caller, which is open as fd, or -1 with
 * errno.  It is closed, and removed unless it is the file now.
 */
int us_disk_replace_by(int dirfd, const char *tmp, int fd, const char *name,
    const void *p, size_t len, us_disk_error_t *e);

/*
 * Opens a file of the directory to write it, made if it is not there; what
 * root makes belongs to the directory's owner.  Returns the descriptor or -1.
 */
int us_disk_create(int dirfd, const char *name, int flags);

/*
 * Gives a file of ours to another user: only a regular one without a second
 * name, which could be somebody else's.  0, or -1 with errno.
 */
int us_disk_give(int fd, uid_t uid, gid_t gid);

/*
 * Renames within the directory and syncs it.  0; -1: nothing has happened; or
 * US_DISK_LOST: renamed, but whether a crash undoes it is not known.
 */
#define US_DISK_LOST  -2

int us_disk_rename(int dirfd, const char *from, const char *to,
    us_disk_error_t *e);

/* bytes of a name of ours */
#define US_DISK_NAME  64

/*
 * Opens a file of the directory (made if it is not there and how is
 * O_RDWR) and takes flock(2) `op` on it.  Returns the descriptor, which
 * carries the lock over fork() but not exec(); -1 with errno EWOULDBLOCK if
 * another one has it and op has LOCK_NB.
 */
int us_disk_lock(int dirfd, const char *name, int how, int op);

/* little-endian numbers of the formats */

void us_put32(uint8_t *p, uint32_t n);
void us_put64(uint8_t *p, uint64_t n);
uint32_t us_get32(const uint8_t *p);
uint64_t us_get64(const uint8_t *p);


#endif /* _US_DISK_H_INCLUDED_ */
