
/*
 * See us_audit.h.
 */


#include "us_audit.h"
#include "../journal/us_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_AUDIT_TIME    21           /* bytes, with the tab */
#define US_AUDIT_BUF     65536
#define US_AUDIT_READ    16           /* of these, in a look */

/* erasures of a look: the newest, and of the others */
#define US_AUDIT_NEWEST  64
#define US_AUDIT_SLICE   1024


/*
 * What is known of a number: its state, what is left, and when it was begun, as
 * another store, which was in the directory before, had the same numbers.  0:
 * nothing.
 */

#define US_AUDIT_STATE   2            /* bits */
#define US_AUDIT_CODE    8            /* with those of US_LEFT_* */

static uint64_t
us_audit_code(const us_erasure_info_t *e, unsigned left)
{
    return e->created << US_AUDIT_CODE
           | (left << US_AUDIT_STATE & ((1 << US_AUDIT_CODE) - 1))
           | e->state;
}


static uint64_t *
us_audit_known(us_audit_t *a, uint64_t number)
{
    size_t     room;
    uint64_t  *p;

    if (number >= a->room) {
        room = number + number / 2 + 64;
        p = realloc(a->known, room * sizeof(uint64_t));

        if (p == NULL) {
            return NULL;
        }

        memset(p + a->room, 0, (room - a->room) * sizeof(uint64_t));
        a->known = p;
        a->room = room;
    }

    return &a->known[number];
}


/* a line of another program, or of a number not given, is passed over */

int
us_audit_read(us_audit_t *a, uint64_t most)
{
    ssize_t            got;
    uint8_t           *p, *end;
    uint64_t          *known;
    unsigned           i, left;
    us_str_t           line;
    us_erasure_info_t  e;

    if (a->buf == NULL) {
        return 0;
    }

    for (i = 0, got = 1; i < US_AUDIT_READ && got; i++) {
        got = us_disk_pread(a->fd, a->buf + a->n, US_AUDIT_BUF - a->n,
                            a->size);

        if (got == -1) {
            return -1;
        }

        a->size += (uint64_t) got;
        a->n += (size_t) got;
        p = a->buf;

        while ((end = memchr(p, '\n', a->n)) != NULL) {
            end++;

            line.data = p + US_AUDIT_TIME;
            line.len = (size_t) (end - line.data);

            if (end - p > US_AUDIT_TIME
                && us_list_erasure_read(&line, &e, &left) && e.number <= most)
            {
                known = us_audit_known(a, e.number);

                if (known == NULL) {
                    return -1;
                }

                *known = us_audit_code(&e, left);
            }

            a->n -= (size_t) (end - p);
            p = end;
        }

        /* a line that no line of ours is as long as */

        a->n = a->n == US_AUDIT_BUF ? 0 : a->n;
        memmove(a->buf, p, a->n);
    }

    if (got) {
        return 1;
    }

    /* of a writer that was killed, or found no room */

    if (a->n && us_disk_pwrite(a->fd, "\n", 1, a->size) == -1) {
        return -1;
    }

    a->size += a->n != 0;
    free(a->buf);
    a->buf = NULL;

    return 0;
}


int
us_audit_open(us_audit_t *a, int dirfd)
{
    int  err;

    memset(a, 0, sizeof(us_audit_t));
    a->next = 1;
    a->fd = us_disk_lock(dirfd, US_DIR_AUDIT, O_RDWR, LOCK_EX|LOCK_NB);

    if (a->fd == -1) {
        return -1;
    }

    a->buf = malloc(US_AUDIT_BUF);

    if (a->buf == NULL) {
        err = errno;
        us_audit_close(a);
        errno = err;
        return -1;
    }

    return 0;
}


void
us_audit_close(us_audit_t *a)
{
    if (a->fd != -1) {
        (void) close(a->fd);
        a->fd = -1;
    }

    free(a->buf);
    a->buf = NULL;
    free(a->known);
    a->known = NULL;
    a->room = 0;
}


int
us_audit_is(const us_audit_t *a, int dirfd)
{
    struct stat  own, st;

    return fstat(a->fd, &own) == 0
           && fstatat(dirfd, US_DIR_AUDIT, &st, AT_SYMLINK_NOFOLLOW) == 0
           && own.st_dev == st.st_dev && own.st_ino == st.st_ino
           && (a->buf || (uint64_t) own.st_size == a->size);
}


int
us_audit_add(us_audit_t *a, const us_erasure_info_t *e, unsigned left)
{
    time_t      now;
    uint64_t   *known;
    struct tm   tm;
    uint8_t    *p, line[US_AUDIT_TIME + 1 + US_LIST_ERASURE];

    known = us_audit_known(a, e->number);

    if (known == NULL) {
        return -1;
    }

    if (*known == us_audit_code(e, left)) {
        return 0;
    }

    now = time(NULL);
    (void) gmtime_r(&now, &tm);
    (void) strftime((char *) line, US_AUDIT_TIME + 1, "%Y-%m-%dT%H:%M:%SZ\t",
                    &tm);

    p = us_list_erasure(line + US_AUDIT_TIME, US_FORMAT_TEXT, e, left,
                        us_string(""));

    if (us_disk_pwrite(a->fd, line, (size_t) (p - line), a->size) == -1) {
        return -1;
    }

    a->size += (uint64_t) (p - line);
    *known = us_audit_code(e, left);

    return 0;
}


/*
 * What was clean, with nothing left, is, but for an erasure that was opened
 * again: a start says that some may be left, until it has been looked.
 */

static int
us_audit_one(us_audit_t *a, const us_life_t *l, uint64_t number)
{
    int                 clean;
    uint64_t           *known;
    us_erasure_info_t   e;

    if (!us_store_erasure(l->store, number, &e)) {
        return 0;
    }

    known = us_audit_known(a, number);

    if (known == NULL) {
        return -1;
    }

    clean = *known >> US_AUDIT_STATE == us_audit_code(&e, 0) >> US_AUDIT_STATE;

    return us_audit_add(a, &e, e.gone && clean ? 0 : us_life_left(l, &e));
}


int
us_audit_look(us_audit_t *a, const us_life_t *l)
{
    int       rc;
    uint64_t  n, newest, end;

    n = us_store_erasures(l->store);
    rc = us_audit_read(a, n);

    if (rc != 0) {
        return rc;
    }

    newest = n > US_AUDIT_NEWEST ? n - US_AUDIT_NEWEST + 1 : 1;
    end = a->next + US_AUDIT_SLICE;

    for ( /* void */ ; rc == 0 && a->next < newest && a->next < end; a->next++)
    {
        rc = us_audit_one(a, l, a->next);
    }

    if (a->next >= newest) {
        a->next = 1;
    }

    for ( /* void */ ; rc == 0 && newest <= n; newest++) {
        rc = us_audit_one(a, l, newest);
    }

    return rc;
}
