
/*
 * See us_ship.h.
 *
 * The owner may cut off bytes past the journal's end that a killed writer has
 * left, and write others there.  So the reader's buffer may be used up to the
 * end as it was when the buffer was filled (limit), and is filled again past
 * that.
 */


#include "us_ship.h"
#include "us_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>


static us_ship_rc_t
us_ship_gone(us_ship_t *s, const char *what)
{
    us_disk_fail(&s->error, 0, "%s: LSN %" PRIu64, what, s->at.tail.lsn);

    return US_SHIP_GONE;
}


/* all was sent: files may be removed again */

static us_ship_rc_t
us_ship_wait(us_ship_t *s)
{
    us_ship_unlock(s);

    return US_SHIP_WAIT;
}


/*
 * A read that does not wait may be tried again for some time.  If nothing has
 * come for a second, the disk may have failed to read it.
 */

static us_ship_rc_t
us_ship_failed(us_ship_t *s)
{
    s->error = s->reader.error;

    if (s->error.err != EAGAIN) {
        return US_SHIP_FAILED;
    }

    if (++s->tries % US_SHIP_AGAIN == 0) {
        us_disk_again(s->reader.fd, s->reader.buf_offset);
    }

    return s->tries <= US_SHIP_TRIES ? US_SHIP_WAIT : US_SHIP_FAILED;
}


static us_ship_rc_t
us_ship_file(us_ship_t *s, const char *name)
{
    us_tail_t    *t;
    us_reader_t  *r;

    t = &s->at.tail;
    r = &s->reader;

    us_reader_close(r);

    if (us_reader_open(r, s->dirfd, name,
                       name[0] == 's' ? US_SEGMENT_SNAPSHOT
                                      : US_SEGMENT_JOURNAL,
                       s->at.uuid, s->ops, US_READ_NOW)
        != US_READ_BLOCK)
    {
        s->error = r->error;

        return r->error.err == ENOENT ? US_SHIP_GONE : us_ship_failed(s);
    }

    memcpy(s->small, r->buf, US_SEGMENT_HEADER);
    s->header = 1;
    s->open = 1;
    s->limit = 0;

    if (t->offset > US_SEGMENT_HEADER) {

        if (r->head.crc != t->seed) {
            return us_ship_gone(s, "the file is another one");
        }

        us_reader_resume(r, t);
    }

    return US_SHIP_OK;
}


static us_ship_rc_t
us_ship_segment(us_ship_t *s, const us_tail_t *tail)
{
    char          name[US_DISK_NAME];
    size_t        n;
    us_dir_t      dir;
    us_tail_t    *t;
    us_ship_rc_t  rc;

    t = &s->at.tail;

    if (t->lsn > tail->lsn) {
        return us_ship_gone(s, "the journal ends before it");
    }

    if (t->offset == 0) {

        if (t->lsn == tail->lsn && tail->offset == 0) {

            /* it begins with the next operation */

            if (s->at.kind == US_SEGMENT_JOURNAL && t->crc != tail->crc) {
                return us_ship_gone(s, "the journal has other bytes");
            }

            s->at.kind = US_SEGMENT_JOURNAL;
            *t = *tail;

            return us_ship_wait(s);
        }

        if (s->at.kind == US_SEGMENT_JOURNAL) {
            t->segment = t->lsn;

        } else {

            if (us_dir_read(s->dirfd, &dir, &s->error) == -1) {
                return US_SHIP_FAILED;
            }

            n = us_dir_upto(&dir, t->lsn);
            t->segment = n ? dir.segments[n - 1] : UINT64_MAX;
            us_dir_free(&dir);
        }
    }

    us_segment_name(name, US_SEGMENT_JOURNAL, t->segment);

    rc = us_ship_file(s, name);

    if (rc != US_SHIP_OK || t->offset) {
        return rc;
    }

    if (s->at.kind == US_SEGMENT_JOURNAL
        && (s->reader.head.prev != t->crc || s->reader.head.ids != t->ids))
    {
        return us_ship_gone(s, "the journal has other bytes");
    }

    s->at.kind = US_SEGMENT_JOURNAL;
    *t = s->reader.at;

    return US_SHIP_OK;
}


/* the file of s->at, or that which follows it */

static us_ship_rc_t
us_ship_open(us_ship_t *s, const us_tail_t *tail)
{
    char          name[US_DISK_NAME];
    us_tail_t    *t;
    us_ship_rc_t  rc;

    t = &s->at.tail;

    if (s->at.kind == US_SEGMENT_JOURNAL || t->offset == 0) {
        return us_ship_segment(s, tail);
    }

    us_segment_name(name, US_SEGMENT_SNAPSHOT, t->segment);

    rc = us_ship_file(s, name);

    if (rc == US_SHIP_OK && t->offset == US_SEGMENT_HEADER) {
        *t = s->reader.at;
    }

    return rc;
}


/* whether the bytes before s->at are those that its reader has */

static us_ship_rc_t
us_ship_verify(us_ship_t *s, const us_tail_t *tail)
{
    us_read_t       rc;
    us_tail_t      *t;
    us_block_t      b;
    const uint8_t  *p;

    t = &s->at.tail;

    if (t->offset == US_SEGMENT_HEADER && s->reader.head.crc != t->seed) {
        return us_ship_gone(s, "the file is another one");
    }

    if (s->at.kind == US_SEGMENT_JOURNAL && tail->offset
        && t->segment == tail->segment)
    {
        if (t->offset > tail->offset
            || (t->offset == tail->offset
                && (t->crc != tail->crc || t->lsn != tail->lsn
                    || t->ids != tail->ids || t->blocks != tail->blocks)))
        {
            return us_ship_gone(s, "the journal has other bytes");
        }

        if (t->offset == tail->offset) {
            return US_SHIP_OK;
        }
    }

    rc = us_reader_next(&s->reader, &b, &p);

    if (rc == US_READ_FAILED) {
        return us_ship_failed(s);
    }

    us_reader_resume(&s->reader, t);

    return rc == US_READ_BLOCK || rc == US_READ_FOOTER
           ? US_SHIP_OK : us_ship_gone(s, "the file has other bytes");
}


us_ship_rc_t
us_ship_begin(us_ship_t *s, int dirfd, const us_ops_t *ops,
    const us_place_t *at, const us_tail_t *tail)
{
    us_manifest_t  *m;
    us_ship_rc_t    rc;

    memset(s, 0, sizeof(us_ship_t));
    s->dirfd = dirfd;
    s->ops = ops;
    s->reader.fd = -1;
    m = &s->manifest;

    s->readers = us_disk_lock(dirfd, US_DIR_READERS, O_RDWR,
                              LOCK_SH|LOCK_NB);

    if (s->readers == -1) {
        us_disk_fail(&s->error, errno, "\"" US_DIR_READERS "\" could not be "
                     "locked");
        return US_SHIP_FAILED;
    }

    if (us_manifest_read(dirfd, m, &s->error) != US_MANIFEST_OK) {
        return US_SHIP_FAILED;
    }

    if (at) {
        s->at = *at;
        s->named = at->tail.offset != 0;

        if (memcmp(at->uuid, m->uuid, 16) != 0) {
            return us_ship_gone(s, "this is another store");
        }

        if (at->epoch != m->epoch) {
            return us_ship_gone(s, "the store has another epoch");
        }

    } else {
        us_place_start(&s->at, m);

        if (m->has_snapshot) {
            s->at.kind = US_SEGMENT_SNAPSHOT;
            s->at.tail.segment = m->snapshot;
            s->at.tail.offset = US_SEGMENT_HEADER;
        }
    }

    rc = us_ship_open(s, tail);

    if (at == NULL || at->tail.offset == 0) {
        return rc == US_SHIP_WAIT ? US_SHIP_OK : rc;
    }

    if (rc == US_SHIP_OK) {
        rc = us_ship_verify(s, tail);
    }

    /* whether it is the reader's file has to be known now */

    if (rc == US_SHIP_WAIT) {
        us_disk_again(s->reader.fd, s->reader.buf_offset);
        return US_SHIP_FAILED;
    }

    return rc;
}


void
us_ship_end(us_ship_t *s)
{
    us_reader_close(&s->reader);
    us_ship_unlock(s);
    free(s->text);
}


void
us_ship_unlock(us_ship_t *s)
{
    if (s->readers != -1) {
        (void) close(s->readers);
        s->readers = -1;
    }
}


int
us_pace(us_pace_t *p, uint64_t now, uint64_t bytes)
{
    int64_t  ms;

    ms = p->at && now > p->at ? (int64_t) (now - p->at) : 0;
    p->at = now;

    p->left += p->held ? -ms : ms / US_SHIP_FREE;
    p->left += (int64_t) (bytes * 1000 / US_SHIP_PACE);

    if (p->left > US_SHIP_GRACE) {
        p->left = US_SHIP_GRACE;
    }

    return p->left > 0;
}


void
us_ship_from(us_place_t *at, const us_manifest_t *m, uint64_t lsn)
{
    us_place_start(at, m);
    at->kind = US_SEGMENT_SNAPSHOT;
    at->tail.segment = lsn;
    at->tail.lsn = lsn;
}


us_ship_rc_t
us_ship_next(us_ship_t *s, const us_tail_t *tail, uint64_t durable,
    const uint8_t **p, size_t *len)
{
    us_read_t     end;
    us_block_t    b;
    us_ship_rc_t  rc;
    us_reader_t  *r;

    r = &s->reader;

    if (!s->open) {
        rc = us_ship_open(s, tail);

        if (rc != US_SHIP_OK) {
            return rc;
        }
    }

    if (s->header) {
        s->header = 0;
        *p = s->small;
        *len = US_SEGMENT_HEADER;
        s->sent += *len;
        return US_SHIP_OK;
    }

    /* whether the bytes of the next block will not change any more */

    if (s->at.kind == US_SEGMENT_JOURNAL && r->at.offset >= s->limit) {
        s->limit = s->at.tail.segment == tail->segment && tail->offset
                   ? tail->offset : UINT64_MAX;
        r->buf_len = 0;

        if (r->at.offset >= s->limit) {
            return us_ship_wait(s);
        }
    }

    end = us_reader_next(r, &b, p);

    if (end == US_READ_END) {
        return us_ship_gone(s, "the file has no footer");
    }

    /* no block before the footer shows whether the count is right */

    if (end == US_READ_BAD && s->named && b.len == 0
        && b.durable != r->at.blocks && b.prev == r->at.crc)
    {
        return us_ship_gone(s, "the file has another count of blocks");
    }

    if (end != US_READ_BLOCK && end != US_READ_FOOTER) {
        return us_ship_failed(s);
    }

    s->tries = 0;

    /* the reader stays before a block that has to wait */

    if (s->at.kind == US_SEGMENT_JOURNAL && b.lsn + b.len > durable) {
        us_reader_resume(r, &s->at.tail);
        return us_ship_wait(s);
    }

    *p -= US_BLOCK_HEADER;
    s->at.tail = r->at;
    *len = US_BLOCK_HEADER + b.len;
    s->sent += *len;

    if (end == US_READ_FOOTER) {
        memcpy(s->small, *p, US_BLOCK_HEADER);
        us_reader_close(r);
        s->named = 0;
        s->open = 0;
        s->at.tail.offset = 0;
        *p = s->small;
    }

    return US_SHIP_OK;
}


us_ship_rc_t
us_ship_send(us_ship_t *s, const us_tail_t *tail, const us_beat_t *beat,
    uint64_t now, const uint8_t **p, size_t *len)
{
    us_ship_rc_t  rc;

    if (s->text == NULL) {

        if (us_manifest_print(&s->manifest, &s->text, &s->text_len, &s->error)
            == -1)
        {
            return US_SHIP_FAILED;
        }

        us_stream_manifest(s->beat, s->text_len);
        *p = s->beat;
        *len = US_STREAM_MANIFEST;

        return US_SHIP_OK;
    }

    if (!s->begun) {
        s->begun = 1;
        *p = (uint8_t *) s->text;
        *len = s->text_len;

        return US_SHIP_OK;
    }

    if (now < s->beat_next) {
        rc = us_ship_next(s, tail, beat->durable, p, len);
        s->news |= (rc == US_SHIP_OK);

        if (rc != US_SHIP_WAIT || !s->news) {
            return rc;
        }
    }

    s->news = 0;
    s->beat_next = now + US_SHIP_BEAT;
    *p = s->beat;
    *len = us_beat_write(s->beat, beat);

    return US_SHIP_OK;
}
