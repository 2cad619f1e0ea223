
/*
 * The identity of a process, and its memory: see us_process.h.
 */


#include "us_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define US_PROCESS_STAT  1024         /* bytes, more than the file ever has */


typedef struct {
    char                   state;
    long                   threads;
    unsigned long long     start;
} us_process_stat_t;


/*
 * 0, or -1 with errno.  Read is the file of the first thread, which has the
 * start and the number of threads of the process: a process that qemu runs is
 * told of its own /proc/PID/stat what others do not find there.
 *
 * The second field, the name of the program, may contain blanks and
 * parentheses: the fields that follow are counted from its end.
 */

static int
us_process_stat(pid_t pid, us_process_stat_t *st)
{
    int          fd, err;
    char         path[48], buf[US_PROCESS_STAT];
    ssize_t      n;
    const char  *p;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int) pid,
             (int) pid);

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    do {
        n = read(fd, buf, US_PROCESS_STAT - 1);
    } while (n == -1 && errno == EINTR);

    err = errno;
    (void) close(fd);
    errno = err;

    if (n <= 0) {
        return -1;
    }

    buf[n] = '\0';
    p = strrchr(buf, ')');

    /* state, 16 fields, the number of threads, one field, the start */

    if (p == NULL
        || sscanf(p + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                  " %*s %*s %*s %*s %ld %*s %llu",
                  &st->state, &st->threads, &st->start)
           != 3)
    {
        errno = EINVAL;
        return -1;
    }

    return 0;
}


static inline us_process_t
us_process_word(pid_t pid, unsigned long long start)
{
    return (us_process_t) start << US_PROCESS_PID_BITS | (us_process_t) pid;
}


us_process_t
us_process_self(void)
{
    char               number[16];
    pid_t              pid;
    ssize_t            n;
    us_process_stat_t  st;

    pid = getpid();
    n = readlink("/proc/self", number, sizeof(number) - 1);
    number[n > 0 ? n : 0] = '\0';

    /* a /proc of another pid namespace has another number for this process */

    return us_process_word(pid, atol(number) == pid
                                && us_process_stat(pid, &st) == 0
                                ? st.start : 0);
}


int
us_process_alive(us_process_t process)
{
    pid_t              pid;
    us_process_stat_t  st;

    pid = us_process_pid(process);

    if (pid == 0 || (kill(pid, 0) == -1 && errno == ESRCH)) {
        return 0;
    }

    if (process == us_process_word(pid, 0)) {
        return 1;
    }

    if (us_process_stat(pid, &st) != 0) {

        /*
         * the process has ended between kill() and read(), or is not visible
         */

        return !(errno == ESRCH || (kill(pid, 0) == -1 && errno == ESRCH));
    }

    if (us_process_word(pid, st.start) != process) {
        return 0;
    }

    /*
     * A zombie whose parent has not waited for it yet.  While it has other
     * threads, they may still be in a system call, such as a write.
     */

    return !(st.state == 'X' || (st.state == 'Z' && st.threads <= 1));
}


/*
 * A line of /proc/self/cgroup: "0::PATH" of v2, "N:CONTROLLERS:PATH" of v1.  In
 * a container the path may be one of the host, of which /sys shows only the
 * end: what is not there is passed over.
 */

uint64_t
us_process_memory(const char *root)
{
    int                  v1, n;
    FILE                *list, *file;
    char                 line[4200], name[4400], *path, *end;
    uint64_t             least;
    unsigned long long   limit;

    least = (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t)
            sysconf(_SC_PAGESIZE);

    (void) snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    list = fopen(name, "re");

    while (list && fgets(line, sizeof(line), list)) {
        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, ':');
        end = path ? strchr(path + 1, ':') : NULL;

        if (end == NULL) {
            continue;
        }

        *end = '\0';
        v1 = path[1] != '\0';

        /* of v1, that of memory alone, or with others */

        (void) snprintf(name, sizeof(name), ",%s,", path + 1);

        if (v1 && strstr(name, ",memory,") == NULL) {
            continue;
        }

        for (path = end + 1, end = path + strlen(path); /* void */ ; /* void */)
        {
            *end = '\0';
            n = snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s%s/%s", root,
                         v1 ? "/memory" : "", path,
                         v1 ? "memory.limit_in_bytes" : "memory.max");
            file = n < (int) sizeof(name) ? fopen(name, "re") : NULL;

            if (file) {

                /* "max" is no number */

                if (fscanf(file, "%llu", &limit) == 1 && limit < least) {
                    least = limit;
                }

                (void) fclose(file);
            }

            if (end == path) {
                break;
            }

            while (end > path && *--end != '/') { /* void */ }
        }
    }

    if (list) {
        (void) fclose(list);
    }

    return least;
}
