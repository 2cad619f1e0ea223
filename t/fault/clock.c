
/*
 * A clock that a test sets, for LD_PRELOAD: gettimeofday() is ahead of the
 * machine's clock by the seconds in the file US_CLOCK, a 64-bit integer in the
 * byte order of the machine.  The file is mapped: a test changes its mind while
 * the server runs.  nginx takes the time of the day from nowhere else.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
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
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec           ts;

    static volatile int64_t  *ahead;
    static int                asked;

    if (!asked) {
        ahead = clock_map();
        asked = 1;
    }

    clock_gettime(CLOCK_REALTIME, &ts);

    tv->tv_sec = ts.tv_sec + (ahead ? *ahead : 0);
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}
