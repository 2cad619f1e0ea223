
/*
 * A world for src/life: a clock, processes, threads and a disk of the test's
 * own.
 *
 *     clock       world.now, in ms; moves when the test says so
 *     processes   proc_t: each has a us_life_t of its own; all share memory
 *     threads     a job waits in its process until the test runs it
 *     disk        a directory below /tmp; the calls that touch it are the
 *                 functions below, which fail, hang or kill as the test wants:
 *                 all of a kind, or the n-th call of any kind
 *
 * Errors of write-back are Linux's: recorded in the file, reported once to each
 * descriptor that was open then, and to later ones unless somebody has been
 * reported (see us_writer.h).  What was lost reads as it was written while it
 * is cached, and as 0xee from the disk.
 *
 * A process that is killed in the middle of a job is left by longjmp(); its
 * descriptors are closed.
 */


#ifndef _LIFE_FAKE_H_INCLUDED_
#define _LIFE_FAKE_H_INCLUDED_


#include "life/us_life.h"
#include "lsan.h"
#include "marks.h"
#include "journal/us_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>


#define FAKE_ZONE    (4 * 1024 * 1024)
#define FAKE_PROCS   8
#define FAKE_FDS     1024
#define FAKE_FILES   1024


typedef struct proc_s  proc_t;

struct proc_s {
    us_life_t        l;
    int              alive;
    int              stopped;         /* SIGSTOP: nothing is done by it */
    uint64_t         serial;          /* what identifies it */
    int              quiet;
    int              stopping;
    us_job_t        *jobs[US_ROLES];
    unsigned         moved;
    char             said[8192];
};


typedef struct {
    dev_t            dev;
    ino_t            ino;
    unsigned         err;             /* errors of write-back so far */
    int              seen;            /* the last one was reported */
    int              dropped;         /* the cache was */
    off_t            lost_from;       /* what the disk has not */
    off_t            lost_to;
} fake_file_t;


typedef struct {
    proc_t          *owner;
    fake_file_t     *file;
    unsigned         since;
    int              direct;
} fake_fd_t;


static struct {
    uint64_t         now;
    uint64_t         serial;
    proc_t           procs[FAKE_PROCS];
    proc_t          *current;

    char             path[64];
    void            *mem;
    size_t           size;            /* of a next zone */
    size_t           mapped;          /* of mem */
    us_share_t      *sh;
    us_life_conf_t   conf;

    /* the disk */
    fake_fd_t        fds[FAKE_FDS];
    fake_file_t      files[FAKE_FILES];
    unsigned         nfiles;
    int              open_errno;
    int              write_errno;
    int              lock_errno;
    int              sync_errno;      /* of all */
    int              manifest_errno;  /* of a sync of manifest.tmp */
    int              no_direct;
    int              read_errno;      /* of segments */
    int              no_remove;       /* qemu: that advice is ignored */
    unsigned         syncs;           /* of segments */

    /* a kill at the n-th call: before it (2n) or after it (2n + 1) */
    unsigned         calls;
    unsigned         kill_at;
    jmp_buf          killed;

    unsigned         fail_at;         /* the n-th call fails; see fault */

    /* of a slow disk: what happens while a thread waits; or NULL */
    void           (*slow)(proc_t *p);
} world;


/* the disk */

static void
fake_call(int after)
{
    if (world.kill_at && world.current
        && world.calls++ == world.kill_at - 1)
    {
        world.kill_at = 0;
        longjmp(world.killed, 1);
    }
}


/*
 * Campaigns in which the n-th call fails, once: of those for memory with
 * ENOMEM, of others with an error that may pass or one of a broken disk.
 *
 *     for (fault_begin(); fault_next(each); ) { ... fault_arm(); ... }
 */

static struct {
    unsigned         tries;
    unsigned         at;
    int              err;
    const char      *failed;          /* the call that has; or NULL */
} fault;


static inline void
fault_begin(void)
{
    memset(&fault, 0, sizeof(fault));
}


/* with US_FULL, all but of calls for memory, of which there are many */

static inline int
fault_next(unsigned each)
{
    int  full;

    if (fault.tries++ && fault.failed == NULL) {

        /* there are fewer calls */

        if (fault.err == ENOMEM) {
            return 0;
        }

        fault.err = ENOMEM;
        fault.at = 0;
    }

    if (fault.err != ENOMEM) {
        fault.err = fault.tries % 2 ? EIO : ENOSPC;
    }

    full = getenv("US_FULL") != NULL;
    fault.at += fault.err == ENOMEM ? 1 + fault.at / (full ? 64 : 8)
                : full ? 1 : each;
    fault.failed = NULL;

    return 1;
}


static inline void
fault_arm(void)
{
    world.fail_at = fault.at;
}


static int
fault_fires(const char *call)
{
    if (world.fail_at == 0 || world.current == NULL || --world.fail_at) {
        return 0;
    }

    fault.failed = call;
    errno = fault.err;

    return 1;
}


static int
fake_fails(const char *call)
{
    return fault.err != ENOMEM && fault_fires(call);
}


static int
fake_no_memory(const char *call)
{
    return fault.err == ENOMEM && fault_fires(call);
}


static fake_file_t *
fake_file(int fd)
{
    unsigned     i, fd_of;
    struct stat  st;

    if (syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) != 0) {
        return NULL;
    }

    for (i = 0; i < world.nfiles; i++) {
        if (world.files[i].ino == st.st_ino && world.files[i].dev == st.st_dev)
        {
            return &world.files[i];
        }
    }

    /* if there is no room, that of a file which is closed and has no fault */

    for (i = 0; world.nfiles == FAKE_FILES && i < FAKE_FILES; i++) {

        if (world.files[i].err || world.files[i].dropped
            || world.files[i].lost_to)
        {
            continue;
        }

        for (fd_of = 0; fd_of < FAKE_FDS; fd_of++) {
            if (world.fds[fd_of].file == &world.files[i]) {
                break;
            }
        }

        if (fd_of == FAKE_FDS) {
            break;
        }
    }

    i = world.nfiles < FAKE_FILES ? world.nfiles++ : i;
    assert_true(i < FAKE_FILES);

    memset(&world.files[i], 0, sizeof(fake_file_t));
    world.files[i].ino = st.st_ino;
    world.files[i].dev = st.st_dev;

    return &world.files[i];
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

    fake_call(0);

    if (world.current && world.open_errno) {
        errno = world.open_errno;
        return -1;
    }

    if (fake_fails("openat")) {
        return -1;
    }

    fd = (int) syscall(SYS_openat, dirfd, name, flags, mode);

    if (fd >= 0 && fd < FAKE_FDS && world.current) {
        world.fds[fd].owner = world.current;
        world.fds[fd].file = fake_file(fd);
        world.fds[fd].direct = 0;

        if (flags & O_TRUNC) {

            /* a new file, which may have the number of an old one */

            world.fds[fd].file->err = 0;
            world.fds[fd].file->seen = 0;
            world.fds[fd].file->dropped = 0;
            world.fds[fd].file->lost_to = 0;
        }

        /* errseq_sample() */
        world.fds[fd].since = world.fds[fd].file->seen
                              ? world.fds[fd].file->err : 0;
    }

    fake_call(1);

    return fd;
}


int
close(int fd)
{
    if (fd >= 0 && fd < FAKE_FDS) {
        memset(&world.fds[fd], 0, sizeof(fake_fd_t));
    }

    return (int) syscall(SYS_close, fd);
}


static int
fake_named(int fd, const char *name)
{
    char     link[64], path[300];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';

    return strstr(path, name) != NULL;
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    ssize_t  n;

    fake_call(0);

    if ((world.current && world.write_errno) || fake_fails("pwrite")) {

        /* half of it gets there */
        syscall(SYS_pwrite64, fd, p, len / 2, at);
        errno = world.write_errno ? world.write_errno : fault.err;
        return -1;
    }

    n = syscall(SYS_pwrite64, fd, p, len, at);

    fake_call(1);

    return n;
}


int
fsync(int fd)
{
    fake_fd_t    *f;
    fake_file_t  *file;

    fake_call(0);

    if (world.current && world.sync_errno) {
        errno = world.sync_errno;
        return -1;
    }

    if (fake_fails("fsync")) {
        return -1;
    }

    if (world.current && world.manifest_errno && fake_named(fd, "manifest")) {
        errno = world.manifest_errno;
        return -1;
    }

    if (world.current && fd < FAKE_FDS && world.fds[fd].file) {
        f = &world.fds[fd];
        file = f->file;
        world.syncs += fake_named(fd, "/journal.");

        /* file_check_and_advance_wb_err() */

        if (f->since != file->err) {
            f->since = file->err;
            file->seen = 1;
            fake_call(1);
            errno = EIO;
            return -1;
        }
    }

    fake_call(1);

    return 0;
}


int
fdatasync(int fd)
{
    return fsync(fd);
}


int
fcntl(int fd, int cmd, ...)
{
    long     arg;
    va_list  args;

    va_start(args, cmd);
    arg = va_arg(args, long);
    va_end(args);

    if (cmd == F_SETFL && (arg & O_DIRECT)) {

        if (world.no_direct) {
            errno = EINVAL;
            return -1;
        }

        world.fds[fd].direct = 1;
        return 0;
    }

    return (int) syscall(SYS_fcntl, fd, cmd, arg);
}


int
posix_fadvise(int fd, off_t from, off_t len, int advice)
{
    if (advice == POSIX_FADV_DONTNEED && world.current
        && world.fds[fd].file)
    {
        world.fds[fd].file->dropped = 1;
    }

    return 0;
}


ssize_t
pread(int fd, void *p, size_t len, off_t at)
{
    off_t         i;
    ssize_t       n;
    fake_file_t  *file;

    fake_call(0);

    if (world.read_errno && fake_named(fd, "/journal.")) {
        errno = world.read_errno;
        return -1;
    }

    if (fake_fails("pread")) {
        return -1;
    }

    n = syscall(SYS_pread64, fd, p, len, at);
    file = fd < FAKE_FDS ? world.fds[fd].file : NULL;

    if (n > 0 && file && (world.fds[fd].direct || file->dropped)) {

        if (world.fds[fd].direct) {
            assert_int_equal(at % 4096, 0);
            assert_int_equal(len % 4096, 0);
            assert_int_equal((uintptr_t) p % 4096, 0);
        }

        for (i = at; i < at + n; i++) {
            if (i >= file->lost_from && i < file->lost_to) {
                ((uint8_t *) p)[i - at] = 0xee;
            }
        }
    }

    return n;
}


int
madvise(void *p, size_t size, int advice)
{
    return world.no_remove && advice == MADV_REMOVE
           ? 0 : (int) syscall(SYS_madvise, p, size, advice);
}


int
ftruncate(int fd, off_t size)
{
    int  rc;

    fake_call(0);
    rc = fake_fails("ftruncate") ? -1 : (int) syscall(SYS_ftruncate, fd, size);
    fake_call(1);

    return rc;
}


int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    int  rc;

    fake_call(0);
    rc = fake_fails("renameat")
         ? -1 : (int) syscall(SYS_renameat, from_fd, from, to_fd, to);
    fake_call(1);

    return rc;
}


int
unlinkat(int dirfd, const char *name, int flags)
{
    int  rc;

    fake_call(0);
    rc = fake_fails("unlinkat")
         ? -1 : (int) syscall(SYS_unlinkat, dirfd, name, flags);
    fake_call(1);

    return rc;
}


int
mkdirat(int dirfd, const char *name, mode_t mode)
{
    return fake_fails("mkdirat")
           ? -1 : (int) syscall(SYS_mkdirat, dirfd, name, mode);
}


int
fstat(int fd, struct stat *st)
{
    return fake_fails("fstat")
           ? -1 : (int) syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}


int
fstatat(int dirfd, const char *name, struct stat *st, int flags)
{
    return fake_fails("fstatat")
           ? -1 : (int) syscall(SYS_newfstatat, dirfd, name, st, flags);
}


int
stat(const char *path, struct stat *st)
{
    return fake_fails("stat")
           ? -1 : (int) syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}


int
flock(int fd, int op)
{
    if (world.current && world.lock_errno) {
        errno = world.lock_errno;
        return -1;
    }

    return fake_fails("flock") ? -1 : (int) syscall(SYS_flock, fd, op);
}


DIR *
fdopendir(int fd)
{
    static DIR  *(*next)(int fd);

    next = next ? next : (DIR *(*)(int)) dlsym(RTLD_NEXT, "fdopendir");

    return fake_fails("fdopendir") ? NULL : next(fd);
}


struct dirent *
readdir(DIR *d)
{
    static struct dirent  *(*next)(DIR *d);

    next = next ? next : (struct dirent *(*)(DIR *)) dlsym(RTLD_NEXT,
                                                           "readdir");

    return fake_fails("readdir") ? NULL : next(d);
}


/* memory: those of the program, for mk/test.mk has the linker wrap them */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);


void *
__wrap_malloc(size_t size)
{
    return fake_no_memory("malloc") ? NULL : __real_malloc(size);
}


void *
__wrap_calloc(size_t n, size_t size)
{
    return fake_no_memory("calloc") ? NULL : __real_calloc(n, size);
}


void *
__wrap_realloc(void *p, size_t size)
{
    return fake_no_memory("realloc") ? NULL : __real_realloc(p, size);
}


void *
mmap(void *p, size_t size, int prot, int flags, int fd, off_t at)
{
    return fake_no_memory("mmap")
           ? MAP_FAILED : (void *) syscall(SYS_mmap, p, size, prot, flags, fd,
                                           at);
}


/* descriptors that are open */

static inline unsigned
fake_open(void)
{
    int       fd;
    unsigned  n;

    for (fd = 0, n = 0; fd < FAKE_FDS; fd++) {
        n += syscall(SYS_fcntl, fd, F_GETFD) != -1;
    }

    return n;
}


/* write-back of a file failed: its last so many bytes are not on the disk */

static inline void
fake_writeback_fails(const char *name, off_t bytes)
{
    int           fd;
    char          path[300];
    struct stat   st;
    fake_file_t  *file;

    snprintf(path, sizeof(path), "%s/%s", world.path, name);
    fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    assert_true(fd >= 0);

    file = fake_file(fd);
    file->err++;
    file->seen = 0;

    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > bytes);
    file->lost_from = st.st_size - bytes;
    file->lost_to = st.st_size;

    (void) syscall(SYS_close, fd);
}


static inline unsigned
fake_index(const char *name)
{
    int          fd;
    char         path[300];
    fake_file_t  *file;

    snprintf(path, sizeof(path), "%s/%s", world.path, name);
    fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    file = fake_file(fd);
    (void) syscall(SYS_close, fd);

    return file - world.files;
}


/* processes */

/* all have the same pid */

us_process_t
us_process_self(void)
{
    return world.current->serial << US_PROCESS_PID_BITS | 4711;
}


int
us_process_alive(us_process_t process)
{
    unsigned  i;

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive
            && world.procs[i].serial == process >> US_PROCESS_PID_BITS)
        {
            return 1;
        }
    }

    return 0;
}


/* the machine's memory: no start here needs as much */

uint64_t
us_process_memory(const char *root)
{
    return (uint64_t) 1 << 34;
}


static uint64_t
fake_now(void *data)
{
    return world.now;
}


static int
fake_start(void *data, us_job_t *job)
{
    proc_t  *p = data;

    assert_null(p->jobs[job->role]);
    p->jobs[job->role] = job;

    return 0;
}


static void proc_step(proc_t *p);


/* a thread waits: time passes, and the other threads go on */

static void
fake_pause(void *data, unsigned ms)
{
    unsigned   i;
    proc_t    *p = data;

    world.now += ms;

    if (world.slow) {
        world.slow(p);
        return;
    }

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive && !world.procs[i].stopped) {
            proc_step(&world.procs[i]);
        }
    }

    world.current = p;
}


static int
fake_stopping(void *data)
{
    return ((proc_t *) data)->stopping;
}


static int
fake_quiet(void *data)
{
    return ((proc_t *) data)->quiet;
}


static void
fake_moved(void *data)
{
    ((proc_t *) data)->moved++;
}


static void
fake_say(void *data, us_say_t level, const char *text)
{
    proc_t  *p = data;
    size_t   n;

    n = strlen(p->said);

    snprintf(p->said + n, sizeof(p->said) - n, "%d %s\n", level, text);
}


static void
fake_lock(void *data)
{
}


/* SIGKILL: its descriptors are closed, all else stays as it is */

static inline void
proc_kill(proc_t *p)
{
    unsigned  fd;

    for (fd = 0; fd < FAKE_FDS; fd++) {
        if (world.fds[fd].owner == p) {
            (void) close(fd);
        }
    }

    if (p->l.empty_mem) {
        (void) munmap(p->l.empty_mem, p->l.empty_size);
    }

    if (p->l.store) {
        us_store_close(p->l.store);
        p->l.store = NULL;
    }

    free(p->l.writer.buf);
    free(p->l.syncer.buf);

    p->alive = 0;
}


/* a process of a server, whose directory and lock these descriptors are */

static inline proc_t *
proc_start(int dirfd, int lockfd)
{
    unsigned    i;
    proc_t     *p;
    us_life_t  *l;

    for (i = 0; world.procs[i].alive; i++) { /* void */ }

    assert_true(i < FAKE_PROCS);

    p = &world.procs[i];
    memset(p, 0, sizeof(proc_t));

    p->alive = 1;
    p->serial = ++world.serial;
    p->quiet = 1;
    l = &p->l;

    l->env = (us_life_env_t) { fake_now, fake_start, fake_pause,
                               fake_stopping, fake_quiet, fake_moved,
                               fake_say, p };
    l->conf = world.conf;
    l->sh = world.sh;
    l->mem = world.mem;
    l->size = world.mapped;
    l->lock = (us_store_lock_t) { fake_lock, fake_lock, NULL };
    l->dirfd = dirfd;
    l->lockfd = lockfd;

    world.current = p;
    i = us_life_start(l) == 0;
    world.current = NULL;

    if (!i) {

        /* the call that fails was of this start: there is another one */

        assert_non_null(fault.failed);
        proc_kill(p);
        p = proc_start(dirfd, lockfd);
    }

    return p;
}


static inline void
proc_tick(proc_t *p)
{
    world.current = p;
    (void) us_life_refresh(&p->l);
    (void) us_life_tick(&p->l);
    world.current = NULL;
}


/* the job of a role, if it is started: its thread's part, and the loop's */

static inline void
proc_thread(proc_t *p, us_role_t role)
{
    us_job_t  *job;

    job = p->jobs[role];

    if (job) {
        world.current = p;
        us_job_run(job);
        p->jobs[role] = NULL;
        us_job_done(job);
        world.current = NULL;
    }
}


static void
proc_step(proc_t *p)
{
    unsigned  i;

    proc_tick(p);

    /* a job that pauses is in the middle of itself */

    for (i = 0; i < US_ROLES; i++) {
        if (p->jobs[i] && i != US_ROLE_KEEPER) {
            proc_thread(p, i);
        }
    }
}


static inline void
proc_all(proc_t *p)
{
    proc_step(p);
    proc_thread(p, US_ROLE_KEEPER);
}


/* time passes, in ticks; each live process does what there is to do */

static inline void
pass(unsigned ms)
{
    unsigned  i, n;

    for (n = 0; n < ms; n += 50) {
        world.now += 50;

        for (i = 0; i < FAKE_PROCS; i++) {
            if (world.procs[i].alive && !world.procs[i].stopped) {
                proc_all(&world.procs[i]);
            }
        }
    }
}


static inline void
proc_stop(proc_t *p)
{
    world.current = p;
    us_life_stop(&p->l);
    world.current = NULL;
    p->alive = 0;
}


/* the world */

static inline int
world_open(const char *name, int flags)
{
    int   fd;
    char  path[400];

    snprintf(path, sizeof(path), "%s/%s", world.path, name);

    fd = (int) syscall(SYS_openat, AT_FDCWD, path, flags, 0600);

    /* closedir() has closed what had this number before */

    if (fd >= 0 && fd < FAKE_FDS) {
        memset(&world.fds[fd], 0, sizeof(fake_fd_t));
    }

    return fd;
}


/* an empty zone, as after a start of nginx; the directory stays */

static inline void
world_zone(void)
{
    if (world.mem) {
        (void) munmap(world.mem, world.mapped);
    }

    world.mapped = world.size;
    world.mem = mmap(NULL, world.size, PROT_READ|PROT_WRITE,
                     MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(world.mem, MAP_FAILED);

    memset(world.sh, 0, sizeof(us_share_t));

    assert_int_equal(us_store_format(world.mem, world.size,
                                     &world.conf.store), 0);
}


static inline int
world_setup(void **state)
{
    memset(&world, 0, sizeof(world));

    world.now = 1000000;
    world.size = FAKE_ZONE;

    strcpy(world.path, "/tmp/urlstore-life-XXXXXX");
    assert_non_null(mkdtemp(world.path));

    world.sh = calloc(1, sizeof(us_share_t));
    assert_non_null(world.sh);

    world.conf.path = world.path;
    world.conf.sync_name = "1s";
    world.conf.sync = US_SYNC_TIME;
    world.conf.interval = 1000;

    memcpy(world.conf.store.uuid, "the store's uuid", 16);
    memcpy(world.conf.store.hash_key, "0123456789abcdef", 16);
    world.conf.store.epoch = 77;
    world.conf.store.norm = us_string("crawler/1");
    world.conf.store.ring = 64 * 1024;
    world.conf.store.fenced = 1;

    world_zone();

    return 0;
}


static inline int
world_teardown(void **state)
{
    unsigned        i;
    DIR            *d;
    struct dirent  *de;

    world.open_errno = 0;
    world.write_errno = 0;
    world.sync_errno = 0;
    world.manifest_errno = 0;
    world.lock_errno = 0;
    world.fail_at = 0;

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive) {
            proc_kill(&world.procs[i]);
        }
    }

    d = opendir(world.path);

    while (d && (de = readdir(d)) != NULL) {
        (void) syscall(SYS_unlinkat, dirfd(d), de->d_name, 0);
    }

    if (d) {
        (void) closedir(d);
    }

    (void) rmdir(world.path);
    (void) munmap(world.mem, world.mapped);
    free(world.sh);

    return 0;
}


/* what clients do */

static inline us_store_status_t
add(proc_t *p, const char *url, uint64_t *id, uint64_t *lsn)
{
    us_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.url = (us_str_t) { strlen(url), (const uint8_t *) url };

    *lsn = us_store_add(p->l.store, &item, 1);
    *id = item.id;

    return item.status;
}


/* adds so many URLs of a series; the LSN of the last one */

static inline uint64_t
add_some(proc_t *p, unsigned from, unsigned n)
{
    char      url[64];
    uint64_t  id, lsn;

    for (lsn = 0; n; n--, from++) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", from % 7, from);
        assert_int_equal(add(p, url, &id, &lsn), US_NEW);
        assert_int_equal(id, from);
    }

    return lsn;
}


/* whether the store has that series from 0 on, and nothing else */

static inline int
has_all(proc_t *p, unsigned n)
{
    char      url[64];
    size_t    len;
    uint8_t   buf[US_URL_MAX + 8];
    unsigned  i;

    if (us_store_next_id(p->l.store) != n) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", i % 7, i);

        if (us_store_get(p->l.store, i, buf, &len) != US_OK
            || len != strlen(url) || memcmp(buf, url, len) != 0)
        {
            return 0;
        }
    }

    return 1;
}


#endif /* _LIFE_FAKE_H_INCLUDED_ */
