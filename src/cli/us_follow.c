
/*
 * A file is finished when its writer has closed it or moved it into the
 * directory (inotify reports both).  A file that was there before is finished
 * when it has not changed for two seconds.  Names that begin with '.' or end
 * with .tmp or .part are left to their writers.
 *
 * Each version of a file is returned once: its name, inode, size and time of
 * change are remembered.  A file that grows after it was returned, and is
 * closed again, is returned again.
 */


#include "us_follow.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_FOLLOW_QUIET  2            /* seconds */
#define US_FOLLOW_QUEUE  4096         /* names of one scan or one read */


struct us_follow_s {
    char           *dir;
    int             fd;
    us_lineset_t   *known;

    char           *queue[US_FOLLOW_QUEUE];
    size_t          from;
    size_t          to;

    unsigned        scan:1;           /* events may have been lost */
    char            path[PATH_MAX];
};


us_follow_t *
us_follow_open(const char *dir)
{
    us_follow_t  *f;

    f = calloc(1, sizeof(us_follow_t));
    if (f == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return NULL;
    }

    f->fd = inotify_init1(IN_CLOEXEC|IN_NONBLOCK);
    f->dir = strdup(dir);
    f->known = us_lineset_create(0, 0);
    f->scan = 1;

    if (f->fd == -1 || f->dir == NULL || f->known == NULL
        || inotify_add_watch(f->fd, dir, IN_CLOSE_WRITE|IN_MOVED_TO|IN_ONLYDIR)
           == -1)
    {
        fprintf(stderr, "urlstore: cannot follow %s: %s\n", dir,
                strerror(errno));
        us_follow_close(f);
        return NULL;
    }

    return f;
}


void
us_follow_close(us_follow_t *f)
{
    while (f->from < f->to) {
        free(f->queue[f->from++]);
    }

    if (f->known) {
        us_lineset_destroy(f->known);
    }

    if (f->fd != -1) {
        (void) close(f->fd);
    }

    free(f->dir);
    free(f);
}


static int
us_follow_wanted(const char *name)
{
    size_t  n;

    n = strlen(name);

    return n && name[0] != '.'
           && !(n > 4 && strcmp(name + n - 4, ".tmp") == 0)
           && !(n > 5 && strcmp(name + n - 5, ".part") == 0);
}


static int
us_follow_path(us_follow_t *f, const char *name, struct stat *st)
{
    int  n;

    n = snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);

    return n > 0 && (size_t) n < sizeof(f->path) && stat(f->path, st) == 0
           && S_ISREG(st->st_mode) ? 0 : -1;
}


/* 1 if this version of the file in f->path has not been given out */

static int
us_follow_fresh(us_follow_t *f, const char *name, const struct stat *st)
{
    int       n;
    char      text[NAME_MAX + 128];
    uint8_t   fresh;
    us_str_t  key;

    n = snprintf(text, sizeof(text), "%ju %jd %jd.%09ld %s",
                 (uintmax_t) st->st_ino, (intmax_t) st->st_size,
                 (intmax_t) st->st_mtim.tv_sec, st->st_mtim.tv_nsec, name);

    key.data = (uint8_t *) text;
    key.len = n;

    return us_lineset_add(f->known, &key, 1, &fresh) == 1 && fresh;
}


/*
 * queues a file unless this version of it was queued; drops it if the queue is
 * full
 */

static void
us_follow_push(us_follow_t *f, const char *name, const struct stat *st)
{
    char  *copy;

    if (f->to == US_FOLLOW_QUEUE) {
        f->scan = 1;
        return;
    }

    if (us_follow_fresh(f, name, st)) {
        copy = strdup(name);

        if (copy) {
            f->queue[f->to++] = copy;
        }
    }
}


static int
us_follow_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}


/* queues, by name, the files that nobody has changed lately; 0, or -1 */

static int
us_follow_scan(us_follow_t *f)
{
    DIR            *d;
    struct stat     st;
    struct dirent  *e;

    d = opendir(f->dir);
    if (d == NULL) {
        fprintf(stderr, "urlstore: cannot read %s: %s\n", f->dir,
                strerror(errno));
        return -1;
    }

    f->scan = 0;

    while ((e = readdir(d)) != NULL) {

        if (!us_follow_wanted(e->d_name)
            || us_follow_path(f, e->d_name, &st) == -1)
        {
            continue;
        }

        if (st.st_mtime + US_FOLLOW_QUIET > time(NULL)) {
            f->scan = 1;
            continue;
        }

        us_follow_push(f, e->d_name, &st);
    }

    (void) closedir(d);

    qsort(f->queue + f->from, f->to - f->from, sizeof(char *),
          us_follow_compare);

    return 0;
}


/* reads the events of inotify, without waiting; 0, or -1 */

static int
us_follow_events(us_follow_t *f)
{
    char                         *p, buf[8192]
                                  __attribute__((aligned(8)));
    ssize_t                       n;
    struct stat                   st;
    const struct inotify_event   *e;

    n = read(f->fd, buf, sizeof(buf));

    if (n == -1) {
        if (errno == EAGAIN || errno == EINTR) {
            return 0;
        }

        fprintf(stderr, "urlstore: inotify: %s\n", strerror(errno));
        return -1;
    }

    for (p = buf; p < buf + n; p += sizeof(*e) + e->len) {
        e = (const struct inotify_event *) p;

        if (e->mask & IN_Q_OVERFLOW) {
            f->scan = 1;

        } else if (e->mask & IN_IGNORED) {
            fprintf(stderr, "urlstore: %s is gone\n", f->dir);
            return -1;

        } else if (e->len && us_follow_wanted(e->name)
                   && us_follow_path(f, e->name, &st) == 0)
        {
            us_follow_push(f, e->name, &st);
        }
    }

    return 0;
}


const char *
us_follow_next(us_follow_t *f, const volatile sig_atomic_t *stop, int *failed)
{
    int             found;
    char           *name;
    struct stat     st;
    struct pollfd   p;

    *failed = 0;

    while (!*stop) {

        while (f->from < f->to) {
            name = f->queue[f->from++];
            found = us_follow_path(f, name, &st) == 0;
            free(name);

            if (found) {
                return f->path;
            }
        }

        f->from = 0;
        f->to = 0;

        if (us_follow_events(f) == -1) {
            *failed = 1;
            return NULL;
        }

        if (f->to) {
            continue;
        }

        if (f->scan) {
            if (us_follow_scan(f) == -1) {
                *failed = 1;
                return NULL;
            }

            if (f->to) {
                continue;
            }
        }

        p.fd = f->fd;
        p.events = POLLIN;
        (void) poll(&p, 1, f->scan ? 500 : 60000);
    }

    return NULL;
}
