
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
#include <time.h>
#include <unistd.h>


#define US_AUDIT_TIME    21           /* bytes, with the tab */
#define US_AUDIT_BUF     65536

/* erasures of a look: the newest, and of the others */
#define US_AUDIT_NEWEST  64
#define US_AUDIT_SLICE   1024


/* what is known of a number: its state and what is left; 0: nothing */

static uint8_t
us_audit_code(const us_erasure_info_t *e, unsigned left)
{
    return (uint8_t) (1 + e->state + (left << 2));
}


static uint8_t *
us_audit_known(us_audit_t *a, uint64_t number)
{
    size_t    room;
    uint8_t  *p;

    if (number >= a->room) {
        room = number + number / 2 + 64;
        p = realloc(a->known, room);

        if (p == NULL) {
            return NULL;
        }

        memset(p + a->room, 0, room - a->room);
        a->known = p;
        a->room = room;
    }

    return &a->known[number];
}


/* a line without the time; one of another program is passed over */

static int
us_audit_line(us_audit_t *a, us_str_t line, uint64_t most)
{
    uint8_t           *known;
    unsigned           left;
    us_erasure_info_t  e;

    if (line.len <= US_AUDIT_TIME) {
        return 0;
    }

    line.data += US_AUDIT_TIME;
    line.len -= US_AUDIT_TIME;

    /* a number takes a line at least, so a greater one is none of ours */

    if (!us_list_erasure_read(&line, &e, &left) || e.number > most) {
        return 0;
    }

    known = us_audit_known(a, e.number);

    if (known == NULL) {
        return -1;
    }

    *known = us_audit_code(&e, left);

    return 0;
}


static int
us_audit_read(us_audit_t *a)
{
    int       rc;
    size_t    n;
    ssize_t   got;
    uint8_t  *buf, *p, *end;

    buf = malloc(US_AUDIT_BUF);

    if (buf == NULL) {
        return -1;
    }

    rc = 0;
    n = 0;

    do {
        got = us_disk_pread(a->fd, buf + n, US_AUDIT_BUF - n, a->size);

        if (got == -1) {
            rc = -1;
            break;
        }

        a->size += (uint64_t) got;
        n += (size_t) got;
        p = buf;

        while (rc == 0 && (end = memchr(p, '\n', n)) != NULL) {
            end++;
            rc = us_audit_line(a, (us_str_t) { (size_t) (end - p), p },
                               a->size);
            n -= (size_t) (end - p);
            p = end;
        }

        /* a line that no line of ours is as long as */

        n = n == US_AUDIT_BUF ? 0 : n;
        memmove(buf, p, n);

    } while (got && rc == 0);

    /* of a writer that was killed, or found no room */

    if (rc == 0 && n) {
        rc = us_disk_pwrite(a->fd, "\n", 1, a->size);
        a->size++;
    }

    free(buf);

    return rc;
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

    if (us_audit_read(a) == -1) {
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

    free(a->known);
    a->known = NULL;
    a->room = 0;
}


int
us_audit_add(us_audit_t *a, const us_erasure_info_t *e, unsigned left)
{
    time_t      now;
    struct tm   tm;
    uint8_t    *known, *p, line[US_AUDIT_TIME + 1 + US_LIST_ERASURE];

    known = us_audit_known(a, e->number);

    if (known == NULL) {
        return -1;
    }

    /* a start says that some may be left, until it has been looked */

    if (e->gone && *known && (*known - 1) >> 2 == 0) {
        left = 0;
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


static int
us_audit_one(us_audit_t *a, const us_life_t *l, uint64_t number)
{
    us_erasure_info_t  e;

    return us_store_erasure(l->store, number, &e)
           ? us_audit_add(a, &e, us_life_left(l, &e)) : 0;
}


int
us_audit_look(us_audit_t *a, const us_life_t *l)
{
    int       rc;
    uint64_t  n, newest, end;

    n = us_store_erasures(l->store);
    newest = n > US_AUDIT_NEWEST ? n - US_AUDIT_NEWEST + 1 : 1;
    end = a->next + US_AUDIT_SLICE;

    for (rc = 0; rc == 0 && a->next < newest && a->next < end; a->next++) {
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
