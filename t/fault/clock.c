
/*
 * A clock that a test sets, for LD_PRELOAD: gettimeofday() and CLOCK_REALTIME
 * are ahead of the machine's clock by the seconds in the file US_CLOCK, an
 * integer of 64 bits in the byte order of the machine.  The file is mapped: a
 * test changes its mind while the server runs.  nginx takes the time of the day
 * from nowhere else.  What the kernel waits for is by the machine's clock.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


static volatile int64_t *
clock_map(void)
{
    int          fd;
    void        *p;
    const char  *path;

    path = getenv("US_CLOCK");
    fd = path ? open(path, O_RDONLY|O_CLOEXEC) : -1;

    if (fd == -1) {
        return NULL;
    }

    p = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);

    return p == MAP_FAILED ? NULL : p;
}


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int                       rc;

    static volatile int64_t  *ahead;
    static int                asked;

    if (!asked) {
        ahead = clock_map();
        asked = 1;
    }

    rc = syscall(SYS_clock_gettime, id, ts);

    if (rc == 0 && id == CLOCK_REALTIME && ahead) {
        ts->tv_sec += *ahead;
    }

    return rc;
}


int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec  ts;

    (void) tz;
    (void) clock_gettime(CLOCK_REALTIME, &ts);

    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}
