
/*
 * A filter in a mapped file.
 *
 *     DIR/filter        header and blocks, see us_filter.c
 *     DIR/filter.new    one that is being made
 *     DIR               flock: shared while it is used, exclusive to open it
 *                       first and to close it last
 *
 * The mapping is the kernel's page cache, so bits that a killed process has set
 * are there for the next one, without any write.  Only a power failure or a
 * crash of the kernel can lose bits, and a lost bit is a false negative, which
 * a filter must not have.  So the header says:
 *
 *     clean = 1              closed: everything was on the disk
 *     clean = 0, boot = B    opened under boot B, and not closed since
 *
 * A file that was not closed is as good as one that was while the machine is
 * still in boot B.  After another boot it is refused, unless the user says
 * that missing bits do not matter.
 *
 * Bits are set atomically, so that any number of servers may use one file, as
 * the two masters of a binary upgrade do: each sees the URLs that the other
 * adds.  Only the mark "not closed" (clean = 0, boot = B) has an order.  A
 * process that is alone when it opens the file sets it; a process that is alone
 * when it closes the file clears it.  Invariant: while a process has the file
 * open, the mark is set with the present boot.
 *
 * The mark reaches the disk before the first bit can.  The blocks of the file
 * are allocated before it is used: a full disk must not become a SIGBUS.
 */


#include "us_filter_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_FILTER_FILE_NAME  "filter"
#define US_FILTER_FILE_NEW   "filter.new"

#define US_FILTER_FILE_TRIES  16      /* to open it while others close it */


static int us_filter_file_fail(char *err, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int us_filter_file_parent(const char *dir, char *err, size_t size);


static int
us_filter_file_fail(char *err, size_t size, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(err, size, fmt, args);
    va_end(args);

    return -1;
}


/* the machine's boot id; zeros where the kernel has none */

static void
us_filter_file_boot(uint8_t boot[16])
{
    int      fd;
    char     text[64];
    size_t   n;
    ssize_t  i, len;

    memset(boot, 0, 16);

    fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return;
    }

    len = read(fd, text, sizeof(text));
    (void) close(fd);

    /* 32 hexadecimal digits with some '-' between them */

    for (i = 0, n = 0; i < len && n < 32; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            boot[n / 2] = boot[n / 2] << 4 | (text[i] - '0');
            n++;

        } else if (text[i] >= 'a' && text[i] <= 'f') {
            boot[n / 2] = boot[n / 2] << 4 | (text[i] - 'a' + 10);
            n++;
        }
    }
}


static void *
us_filter_file_map(int fd, size_t size, int prot)
{
    void  *mem;

    mem = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

    return mem == MAP_FAILED ? NULL : mem;
}


/* makes the complete empty file under a temporary name first */

static int
us_filter_file_create(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, char *err, size_t size)
{
    int      fd, rc;
    void    *mem;
    uint8_t  key[16];

    mem = NULL;

    fd = openat(file->dir, US_FILTER_FILE_NEW,
                O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC, 0600);
    if (fd == -1) {
        return us_filter_file_fail(err, size, "cannot make a filter: %s",
                                   strerror(errno));
    }

    rc = posix_fallocate(fd, 0, plan->size);
    if (rc != 0) {
        (void) us_filter_file_fail(err, size,
                                   "no room for a filter of %zu bytes: %s",
                                   plan->size, strerror(rc));
        goto failed;
    }

    mem = us_filter_file_map(fd, plan->size, PROT_READ|PROT_WRITE);

    if (mem == NULL || getrandom(key, 16, 0) != 16) {
        (void) us_filter_file_fail(err, size,
                                   "cannot map a filter of %zu bytes: %s",
                                   plan->size, strerror(errno));
        goto failed;
    }

    us_filter_mark(us_filter_format(mem, plan, key, norm))->clean = 1;

    if (msync(mem, plan->size, MS_SYNC) == -1 || fsync(fd) == -1
        || renameat(file->dir, US_FILTER_FILE_NEW, file->dir,
                    US_FILTER_FILE_NAME) == -1
        || fsync(file->dir) == -1)
    {
        (void) us_filter_file_fail(err, size, "cannot write a filter: %s",
                                   strerror(errno));
        goto failed;
    }

    (void) close(fd);

    file->filter = mem;
    file->size = plan->size;
    file->created = 1;

    return 0;

failed:

    if (mem) {
        (void) munmap(mem, plan->size);
    }

    (void) close(fd);
    (void) unlinkat(file->dir, US_FILTER_FILE_NEW, 0);

    return -1;
}


/* maps what is there */

static int
us_filter_file_attach(us_filter_file_t *file, int fd, int prot, char *err,
    size_t size)
{
    void         *mem;
    const char   *reason;
    struct stat   st;

    mem = NULL;

    if (fstat(fd, &st) == 0
        && st.st_size >= US_FILTER_HEADER + US_FILTER_BLOCK)
    {
        mem = us_filter_file_map(fd, st.st_size, prot);
    }

    if (mem == NULL) {
        return us_filter_file_fail(err, size, "cannot map \"%s\": it is too "
                                   "short or too long", US_FILTER_FILE_NAME);
    }

    file->size = st.st_size;
    file->filter = us_filter_attach(mem, file->size, &reason);

    if (file->filter == NULL) {
        (void) munmap(mem, file->size);
        return us_filter_file_fail(err, size, "\"%s\": %s",
                                   US_FILTER_FILE_NAME, reason);
    }

    return 0;
}


/* whether it is what the caller wants */

static int
us_filter_file_match(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, char *err, size_t size)
{
    us_str_t          had;
    us_filter_info_t  info;

    us_filter_info(file->filter, &info);

    if (info.capacity != plan->capacity || info.error != plan->error
        || info.size != plan->size)
    {
        return us_filter_file_fail(err, size,
            "it was made for %zu bytes, capacity=%llu error=%g; a filter "
            "cannot be resized: remove it or name another path",
            info.size, (unsigned long long) info.capacity, info.error);
    }

    had = us_filter_norm(file->filter);

    if (had.len != norm.len || memcmp(had.data, norm.data, norm.len) != 0) {
        return us_filter_file_fail(err, size,
            "its URLs were normalized as \"%.*s\", not as \"%.*s\"",
            (int) had.len, had.data, (int) norm.len, norm.data);
    }

    return 0;
}


/*
 * Whether the bits can be trusted: 0, or US_FILTER_UNCLEAN.  *doubtful is set
 * if they cannot, and force accepts that.
 */

static int
us_filter_file_trust(const us_filter_file_t *file, int force,
    unsigned *doubtful, char *err, size_t size)
{
    uint8_t                  boot[16];
    const us_filter_mark_t  *mark;

    static const uint8_t  unknown[16];

    mark = us_filter_mark(file->filter);
    us_filter_file_boot(boot);

    *doubtful = (mark->clean != 1
                 && (memcmp(mark->boot, boot, 16) != 0
                     || memcmp(boot, unknown, 16) == 0));

    if (!*doubtful || force) {
        return 0;
    }

    (void) us_filter_file_fail(err, size,
        "the machine went down while it was in use: bits may be missing, and "
        "URLs that were seen would be taken for new ones; remove it, or "
        "accept that");

    return US_FILTER_UNCLEAN;
}


/*
 * The caller has it alone.  Marks it as used under this boot; returns as
 * us_filter_file_open().
 */

static int
us_filter_file_take(us_filter_file_t *file, int force, char *err, size_t size)
{
    int                rc;
    unsigned           doubtful;
    us_filter_mark_t  *mark;

    rc = us_filter_file_trust(file, force, &doubtful, err, size);

    if (rc != 0) {
        return rc;
    }

    file->doubtful = doubtful;

    mark = us_filter_mark(file->filter);
    mark->clean = 0;
    us_filter_file_boot(mark->boot);

    /* the header is a page: it is on the disk before this run sets a bit */

    if (msync(file->filter, US_FILTER_HEADER, MS_SYNC) == -1) {
        return us_filter_file_fail(err, size, "cannot write its mark: %s",
                                   strerror(errno));
    }

    return 0;
}


/* 1: alone, 0: beside others that use it, -1 */

static int
us_filter_file_lock(const us_filter_file_t *file)
{
    int  rc;

    if (flock(file->dir, LOCK_EX|LOCK_NB) == 0) {
        return 1;
    }

    if (errno != EWOULDBLOCK) {
        return -1;
    }

    /*
     * another process opens the file first or closes it last: wait until it
     * has done so
     */

    do {
        rc = flock(file->dir, LOCK_SH);
    } while (rc == -1 && errno == EINTR);

    return rc;
}


/* as us_filter_file_open(); 1: others closed it in between, try again */

static int
us_filter_file_try(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, int force, char *err, size_t size)
{
    int      fd, rc, alone;
    uint8_t  boot[16];

    alone = us_filter_file_lock(file);

    if (alone == -1) {
        return us_filter_file_fail(err, size, "cannot lock it: %s",
                                   strerror(errno));
    }

    fd = openat(file->dir, US_FILTER_FILE_NAME, O_RDWR|O_CLOEXEC);

    if (fd != -1) {
        rc = us_filter_file_attach(file, fd, PROT_READ|PROT_WRITE, err, size);
        (void) close(fd);

    } else if (errno == ENOENT && alone) {
        rc = us_filter_file_create(file, plan, norm, err, size);

    } else {
        rc = us_filter_file_fail(err, size, "cannot open \"%s\", which %s: %s",
                                 US_FILTER_FILE_NAME,
                                 alone ? "is there" : "others use",
                                 strerror(errno));
    }

    if (rc == -1 || us_filter_file_match(file, plan, norm, err, size) == -1) {
        return -1;
    }

    if (alone) {
        rc = us_filter_file_take(file, force, err, size);

        if (rc != 0) {
            return rc;
        }

        /*
         * flock() frees the lock for a moment: others may open and close the
         * file
         */

        do {
            rc = flock(file->dir, LOCK_SH);
        } while (rc == -1 && errno == EINTR);

        if (rc == -1) {
            return us_filter_file_fail(err, size, "cannot lock it: %s",
                                       strerror(errno));
        }
    }

    us_filter_file_boot(boot);

    return us_filter_mark(file->filter)->clean == 1
           || memcmp(us_filter_mark(file->filter)->boot, boot, 16) != 0;
}


int
us_filter_file_open(us_filter_file_t *file, const char *dir,
    const us_filter_plan_t *plan, us_str_t norm, int force, char *err,
    size_t size)
{
    int       rc;
    unsigned  i;

    memset(file, 0, sizeof(us_filter_file_t));

    file->dir = -1;

    if (mkdir(dir, 0700) == -1 && errno != EEXIST) {
        return us_filter_file_fail(err, size, "cannot make \"%s\": %s", dir,
                                   strerror(errno));
    }

    for (i = 0; i < US_FILTER_FILE_TRIES; i++) {

        file->dir = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
        if (file->dir == -1) {
            return us_filter_file_fail(err, size, "cannot open \"%s\": %s",
                                       dir, strerror(errno));
        }

        rc = us_filter_file_try(file, plan, norm, force, err, size);

        if (rc == 0) {
            return 0;
        }

        us_filter_file_drop(file);

        if (rc < 0) {
            return rc;
        }

        /* on a busy machine all tries may meet the same processes at work */

        (void) usleep(i * 1000);
    }

    return us_filter_file_fail(err, size, "others open and close it without "
                               "end");
}


int
us_filter_file_check(const char *dir, const us_filter_plan_t *plan,
    us_str_t norm, int force, char *err, size_t size)
{
    int                fd, rc;
    unsigned           doubtful;
    us_filter_file_t   file;

    memset(&file, 0, sizeof(us_filter_file_t));

    file.dir = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (file.dir == -1) {
        return errno == ENOENT ? us_filter_file_parent(dir, err, size)
               : us_filter_file_fail(err, size, "cannot open \"%s\": %s",
                                     dir, strerror(errno));
    }

    fd = openat(file.dir, US_FILTER_FILE_NAME, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        rc = errno == ENOENT ? 0
             : us_filter_file_fail(err, size, "cannot open \"%s\": %s",
                                   US_FILTER_FILE_NAME, strerror(errno));
        goto done;
    }

    rc = us_filter_file_attach(&file, fd, PROT_READ, err, size);
    (void) close(fd);

    if (rc == 0) {
        rc = us_filter_file_match(&file, plan, norm, err, size);
    }

    if (rc == 0) {
        rc = us_filter_file_trust(&file, force, &doubtful, err, size);
    }

done:

    us_filter_file_drop(&file);

    return rc;
}


/* dir is not there, but it can be made if only it itself is missing */

static int
us_filter_file_parent(const char *dir, char *err, size_t size)
{
    size_t  len;
    char    parent[PATH_MAX];

    len = strlen(dir);

    while (len > 1 && dir[len - 1] == '/') {
        len--;
    }

    while (len > 1 && dir[len - 1] != '/') {
        len--;
    }

    if (len < sizeof(parent)) {
        memcpy(parent, dir, len);
        parent[len] = '\0';

        if (access(parent, F_OK) == 0) {
            return 0;
        }
    }

    return us_filter_file_fail(err, size, "cannot make \"%s\": %s", dir,
                               strerror(errno));
}


int
us_filter_file_close(us_filter_file_t *file)
{
    int                rc;
    us_filter_mark_t  *mark;

    rc = 0;
    mark = us_filter_mark(file->filter);

    /* the bits first: the mark must not be on the disk before them */

    if (flock(file->dir, LOCK_EX|LOCK_NB) == 0) {
        rc = msync(file->filter, file->size, MS_SYNC);

        if (rc == 0) {
            mark->clean = 1;
            rc = msync(file->filter, US_FILTER_HEADER, MS_SYNC);
            mark->clean = (rc == 0);
        }

    } else if (errno != EWOULDBLOCK) {
        rc = -1;
    }

    us_filter_file_drop(file);

    return rc;
}


void
us_filter_file_drop(us_filter_file_t *file)
{
    if (file->filter) {
        (void) munmap(file->filter, file->size);
        file->filter = NULL;
    }

    if (file->dir != -1) {
        (void) close(file->dir);
        file->dir = -1;
    }
}
