
/*
 * See us_rebase.h; the parts: us_replog.h.
 */


#include "us_rebase.h"
#include "../journal/us_crc32c.h"
#include "../journal/us_disk.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define US_PART_MAGIC  "USBP"


int
us_replog_fail(char error[US_REPLOG_ERROR], int rc, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(error, US_REPLOG_ERROR, fmt, args);
    va_end(args);

    return rc;
}


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
    char err[US_REPLOG_ERROR])
{
    uint32_t  crc;

    if (len < US_PART_HEAD || memcmp(p, US_PART_MAGIC, 4) != 0) {
        return us_replog_fail(err, -1, "part %u of the base is damaged: its "
                              "%zu bytes do not begin as a part does", number,
                              len);
    }

    crc = us_crc32c(0, p + 8, len - 8);

    if (crc != us_get32(p + 4)) {
        return us_replog_fail(err, -1, "part %u of the base is damaged: its "
                              "CRC-32C is %08x, not %08x", number, crc,
                              us_get32(p + 4));
    }

    part->number = us_get32(p + 8);
    part->last = us_get32(p + 12) != 0;
    part->base = us_get64(p + 16);
    part->lsn = us_get64(p + 24);
    part->until = us_get64(p + 32);

    if (part->number != number
        || (part->last && part->until < part->lsn))
    {
        return us_replog_fail(err, -1, "part %u of the base is another one: "
                              "part %u, LSN %" PRIu64 " to %" PRIu64, number,
                              part->number, part->lsn, part->until);
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

    if (us_part_open(part, 0, p, len, err) == -1) {
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
        return us_replog_fail(rb->error, -1, "an operation of %zu bytes does "
                              "not fit a part", len);
    }

    if (room <= rb->room) {
        return 0;
    }

    room = room > US_REBASE_PART ? room : US_REBASE_PART;
    buf = realloc(rb->buf, room);

    if (buf == NULL) {
        return us_replog_fail(rb->error, -1, "no memory for %zu bytes", room);
    }

    rb->buf = buf;
    rb->room = room;

    return 0;
}


/* tries a call until it has an outcome: OK or NONE; -1: none, or REFUSED */

static int
us_rebase_try(us_rebase_t *rb, us_replog_rc_t (*call)(us_rebase_t *rb))
{
    unsigned        fails, wait;
    us_replog_rc_t  rc;

    wait = 0;

    for (fails = 0; rb->pause(rb->data, wait) == 0; fails++) {
        rc = call(rb);

        if (rc == US_REPLOG_OK || rc == US_REPLOG_NONE) {
            return rc;
        }

        if (rc == US_REPLOG_REFUSED) {
            return us_replog_fail(rb->error, -1, "this node is not the primary "
                                  "any more, or another base was made");
        }

        (void) us_replog_fail(rb->error, -1, "%s", rb->log->error);

        if (rc == US_REPLOG_BAD || fails + 1 == US_REBASE_TRIES) {
            return -1;
        }

        wait = US_REBASE_FIRST << (fails < 5 ? fails : 5);
        wait = wait < US_REBASE_LAST ? wait : US_REBASE_LAST;
    }

    return us_replog_fail(rb->error, -1, "the process is ending, or this node "
                          "is not the primary any more");
}


/* a part that is sent twice replaces itself */

static us_replog_rc_t
us_rebase_part(us_rebase_t *rb)
{
    return rb->log->ops->rebase_part(rb->log, rb->term, rb->parts, rb->buf,
                                     rb->len);
}


static int
us_rebase_send(us_rebase_t *rb, us_part_t part)
{
    part.number = rb->parts;
    part.base = rb->base;
    us_part_seal(rb->buf, rb->len, &part);

    if (us_rebase_try(rb, us_rebase_part) != US_REPLOG_OK) {
        return -1;
    }

    rb->len = 0;

    /* what earlier tries have left is removed as soon as possible */

    return rb->parts++ == 0 ? us_rebase_trim(rb) : 0;
}


int
us_rebase_put(us_rebase_t *rb, const uint8_t *p, size_t len)
{
    size_t     size;
    us_part_t  part = { 0 };

    size = rb->size ? rb->size : US_REBASE_PART;

    if ((rb->len > US_PART_HEAD && rb->len + len > size
         && us_rebase_send(rb, part) == -1)
        || us_rebase_room(rb, len) == -1)
    {
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
    us_part_t  part = { .last = 1, .lsn = lsn, .until = until };

    rb->lsn = lsn;

    return us_rebase_room(rb, 0) == -1 ? -1 : us_rebase_send(rb, part);
}


static us_replog_rc_t
us_rebase_switch(us_rebase_t *rb)
{
    uint64_t        first;
    us_part_t       part = { 0 };
    us_replog_rc_t  rc;

    first = rb->lsn > rb->keep ? rb->lsn - rb->keep : 0;
    rc = rb->log->ops->rebase(rb->log, rb->term, first, rb->lsn, rb->parts);

    if (rc != US_REPLOG_REFUSED) {
        return rc;
    }

    /* an earlier try, whose outcome was unknown, may have done it */

    rc = rb->log->ops->base(rb->log, 0, us_replog_take_part, &part);

    return rc == US_REPLOG_NONE
           || (rc == US_REPLOG_OK && part.base != rb->base)
           ? US_REPLOG_REFUSED : rc;
}


int
us_rebase_force(us_rebase_t *rb)
{
    return us_rebase_try(rb, us_rebase_switch) == US_REPLOG_OK ? 0 : -1;
}


static us_replog_rc_t
us_rebase_rows(us_rebase_t *rb)
{
    return rb->log->ops->trim(rb->log);
}


int
us_rebase_trim(us_rebase_t *rb)
{
    int  rc;

    do {
        rc = us_rebase_try(rb, us_rebase_rows);
    } while (rc == US_REPLOG_OK);

    return rc == US_REPLOG_NONE ? 0 : -1;
}


void
us_rebase_free(us_rebase_t *rb)
{
    free(rb->buf);
    rb->buf = NULL;
    rb->len = 0;
    rb->room = 0;
}
