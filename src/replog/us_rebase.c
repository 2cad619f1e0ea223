
/*
 * See us_rebase.h; the parts: us_replog.h.
 */


#include "us_rebase.h"
#include "../journal/us_crc32c.h"
#include "../journal/us_disk.h"

#include <stdio.h>
#include <stdlib.h>


#define US_PART_MAGIC  "USBP"


void
us_part_seal(uint8_t *p, size_t len, const us_part_t *part)
{
    memcpy(p, US_PART_MAGIC, 4);
    us_put32(p + 8, part->number);
    us_put32(p + 12, part->last != 0);
    us_put64(p + 16, part->base);
    us_put64(p + 24, part->lsn);
    us_put64(p + 32, part->until);
    us_put32(p + 4, us_crc32c(0, p + 8, len - 8));
}


int
us_part_open(us_part_t *part, uint32_t number, const uint8_t *p, size_t len,
    char *err, size_t size)
{
    uint32_t  crc;

    if (len < US_PART_HEAD || memcmp(p, US_PART_MAGIC, 4) != 0) {
        (void) snprintf(err, size, "part %u of the base is damaged: its %zu "
                        "bytes do not begin as a part does", number, len);
        return -1;
    }

    crc = us_crc32c(0, p + 8, len - 8);

    if (crc != us_get32(p + 4)) {
        (void) snprintf(err, size, "part %u of the base is damaged: its "
                        "CRC-32C is %08x, not %08x", number, crc,
                        us_get32(p + 4));
        return -1;
    }

    part->number = us_get32(p + 8);
    part->last = us_get32(p + 12) != 0;
    part->base = us_get64(p + 16);
    part->lsn = us_get64(p + 24);
    part->until = us_get64(p + 32);

    if (part->number != number
        || (part->last && part->until < part->lsn))
    {
        (void) snprintf(err, size, "part %u of the base is another one: part "
                        "%u, LSN %llu to %llu", number, part->number,
                        (unsigned long long) part->lsn,
                        (unsigned long long) part->until);
        return -1;
    }

    return 0;
}


int
us_replog_take_row(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_replog_row_t *to = data;

    *to = *row;

    return -1;
}


int
us_replog_take_part(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_part_t *part = data;

    char  err[US_REPLOG_ERROR];

    if (us_part_open(part, 0, p, len, err, sizeof(err)) == -1) {
        memset(part, 0, sizeof(us_part_t));
    }

    return 0;
}


/* len more bytes in the part, which has room for its head */

static int
us_rebase_room(us_rebase_t *rb, size_t len)
{
    size_t    room;
    uint8_t  *buf;

    if (rb->len == 0) {
        rb->len = US_PART_HEAD;
    }

    room = rb->len + len;

    if (room > US_REPLOG_MAX) {
        (void) snprintf(rb->error, sizeof(rb->error), "an operation of %zu "
                        "bytes does not fit a part", len);
        return -1;
    }

    if (room <= rb->room) {
        return 0;
    }

    room = room > US_REBASE_PART ? room : US_REBASE_PART;
    buf = realloc(rb->buf, room);

    if (buf == NULL) {
        (void) snprintf(rb->error, sizeof(rb->error), "no memory for %zu "
                        "bytes", room);
        return -1;
    }

    rb->buf = buf;
    rb->room = room;

    return 0;
}


static int
us_rebase_fail(us_rebase_t *rb, const char *what)
{
    (void) snprintf(rb->error, sizeof(rb->error), "%s", what);

    return -1;
}


/* after a failure that may pass: waits; -1: no more */

static int
us_rebase_again(us_rebase_t *rb, unsigned *fails)
{
    unsigned  wait;

    (void) us_rebase_fail(rb, rb->log->error);

    if (++*fails == US_REBASE_TRIES) {
        return -1;
    }

    wait = US_REBASE_FIRST << (*fails < 6 ? *fails - 1 : 5);

    return rb->pause(rb->data, wait < US_REBASE_LAST ? wait : US_REBASE_LAST);
}


/* a part that is sent twice replaces itself */

static int
us_rebase_send(us_rebase_t *rb, const us_part_t *part)
{
    unsigned        fails;
    us_part_t       sealed;
    us_replog_rc_t  rc;

    sealed = *part;
    sealed.number = rb->parts;
    sealed.base = rb->base;
    us_part_seal(rb->buf, rb->len, &sealed);

    for (fails = 0; rb->pause(rb->data, 0) == 0; /* void */) {
        rc = rb->log->ops->rebase_part(rb->log, rb->term, rb->parts, rb->buf,
                                       rb->len);

        switch (rc) {

        case US_REPLOG_OK:
            rb->len = 0;

            /* what earlier tries have left is removed as soon as possible */

            return rb->parts++ == 0 ? us_rebase_trim(rb) : 0;

        case US_REPLOG_REFUSED:
            return us_rebase_fail(rb, "this node is not the primary any more, "
                                      "or another base is being made");

        case US_REPLOG_BAD:
            return us_rebase_fail(rb, rb->log->error);

        default:
            if (us_rebase_again(rb, &fails) == -1) {
                return -1;
            }
        }
    }

    return us_rebase_fail(rb, "the process is ending, or this node is not the "
                              "primary any more");
}


int
us_rebase_put(us_rebase_t *rb, const uint8_t *p, size_t len)
{
    size_t     size;
    us_part_t  part;

    size = rb->size ? rb->size : US_REBASE_PART;

    if (rb->len > US_PART_HEAD && rb->len + len > size) {
        memset(&part, 0, sizeof(us_part_t));

        if (us_rebase_send(rb, &part) == -1) {
            return -1;
        }
    }

    if (us_rebase_room(rb, len) == -1) {
        return -1;
    }

    memcpy(rb->buf + rb->len, p, len);
    rb->len += len;
    rb->bytes += len;

    return 0;
}


int
us_rebase_end(us_rebase_t *rb, uint64_t lsn, uint64_t until)
{
    us_part_t  part;

    memset(&part, 0, sizeof(us_part_t));
    part.last = 1;
    part.lsn = lsn;
    part.until = until;
    rb->lsn = lsn;

    return us_rebase_room(rb, 0) == -1 ? -1 : us_rebase_send(rb, &part);
}


int
us_rebase_force(us_rebase_t *rb)
{
    uint64_t        first;
    unsigned        fails;
    us_part_t       part;
    us_replog_rc_t  rc;

    first = rb->lsn > rb->keep ? rb->lsn - rb->keep : 0;

    for (fails = 0; rb->pause(rb->data, 0) == 0; /* void */) {
        rc = rb->log->ops->rebase(rb->log, rb->term, first, rb->lsn,
                                  rb->parts);

        if (rc == US_REPLOG_OK) {
            return 0;
        }

        if (rc == US_REPLOG_BAD) {
            return us_rebase_fail(rb, rb->log->error);
        }

        /* an earlier try, whose outcome was unknown, may have done it */

        if (rc == US_REPLOG_REFUSED) {

            /* is the base in force this one, another one, or not known? */

            memset(&part, 0, sizeof(us_part_t));

            rc = rb->log->ops->base(rb->log, 0, us_replog_take_part, &part);

            if (rc == US_REPLOG_OK && part.base == rb->base) {
                return 0;
            }

            if (rc == US_REPLOG_OK || rc == US_REPLOG_NONE
                || rc == US_REPLOG_REFUSED)
            {
                return us_rebase_fail(rb, "this node is not the primary any "
                                          "more, or another base was made");
            }
        }

        if (us_rebase_again(rb, &fails) == -1) {
            return -1;
        }
    }

    return us_rebase_fail(rb, "the process is ending, or this node is not the "
                              "primary any more");
}


int
us_rebase_trim(us_rebase_t *rb)
{
    unsigned        fails;
    us_replog_rc_t  rc;

    for (fails = 0; rb->pause(rb->data, 0) == 0; /* void */) {
        rc = rb->log->ops->trim(rb->log);

        if (rc == US_REPLOG_NONE) {
            return 0;
        }

        if (rc == US_REPLOG_OK) {
            fails = 0;

        } else if (us_rebase_again(rb, &fails) == -1) {
            return -1;
        }
    }

    return us_rebase_fail(rb, "the process is ending, or this node is not the "
                              "primary any more");
}


void
us_rebase_free(us_rebase_t *rb)
{
    free(rb->buf);
    rb->buf = NULL;
    rb->len = 0;
    rb->room = 0;
}
