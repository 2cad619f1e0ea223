
/*
 * Reads the frames of a stream.  See us_stream.h for the format.
 */


#include "us_stream.h"
#include "us_crc32c.h"
#include "../us_text.h"

#include <inttypes.h>
#include <stdio.h>


#define US_PLACE_FIELDS  8            /* numbers after the uuid */


void
us_place_start(us_place_t *at, const us_manifest_t *m)
{
    memset(at, 0, sizeof(us_place_t));
    memcpy(at->uuid, m->uuid, 16);
    at->epoch = m->epoch;
    at->kind = US_SEGMENT_JOURNAL;
}


void
us_place_print(const us_place_t *at, char text[US_PLACE_TEXT])
{
    const us_tail_t  *t;

    t = &at->tail;
    (void) us_put_hex((uint8_t *) text, at->uuid, 16);
    (void) snprintf(text + 32, US_PLACE_TEXT - 32, ".%" PRIx64 ".%c%" PRIx64
                    ".%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64 ".%x.%x",
                    at->epoch, at->kind == US_SEGMENT_JOURNAL ? 'j' : 's',
                    t->segment, t->offset, t->lsn, t->ids, t->blocks, t->crc,
                    t->seed);
}


/* the hexadecimal digits at *p, one to max; -1: there are none, or more */

static int
us_place_number(const char **p, const char *last, unsigned max, uint64_t *n)
{
    unsigned  i;
    char      c;

    *n = 0;

    for (i = 0; *p < last; (*p)++, i++) {
        c = **p;

        if (c >= '0' && c <= '9') {
            *n = *n << 4 | (uint64_t) (c - '0');

        } else if (c >= 'a' && c <= 'f') {
            *n = *n << 4 | (uint64_t) (c - 'a' + 10);

        } else {
            break;
        }
    }

    return i && i <= max ? 0 : -1;
}


int
us_place_parse(us_place_t *at, const char *p, size_t len)
{
    int          i;
    uint64_t     n[US_PLACE_FIELDS];
    const char  *last, *end;

    last = p + len;
    memset(at, 0, sizeof(us_place_t));

    if (len < 32) {
        return -1;
    }

    for (i = 0; i < 16; i++) {
        end = p + 2;

        if (us_place_number(&p, end, 2, &n[0]) == -1 || p != end) {
            return -1;
        }

        at->uuid[i] = (uint8_t) n[0];
    }

    for (i = 0; i < US_PLACE_FIELDS; i++) {

        if (p == last || *p++ != '.') {
            return -1;
        }

        if (i == 1) {

            if (p == last || (*p != 'j' && *p != 's')) {
                return -1;
            }

            at->kind = *p++ == 'j' ? US_SEGMENT_JOURNAL : US_SEGMENT_SNAPSHOT;
        }

        if (us_place_number(&p, last, i < US_PLACE_FIELDS - 2 ? 16 : 8, &n[i])
            == -1)
        {
            return -1;
        }
    }

    at->epoch = n[0];
    at->tail.segment = n[1];
    at->tail.offset = n[2];
    at->tail.lsn = n[3];
    at->tail.ids = n[4];
    at->tail.blocks = n[5];
    at->tail.crc = (uint32_t) n[6];
    at->tail.seed = (uint32_t) n[7];

    if (at->tail.offset && at->tail.offset < US_SEGMENT_HEADER) {
        return -1;
    }

    return p == last ? 0 : -1;
}


size_t
us_beat_write(uint8_t p[US_STREAM_BEAT], const us_beat_t *beat)
{
    memset(p, 0, US_STREAM_BEAT);
    memcpy(p, "USBT", 4);
    us_put32(p + 4, US_STREAM_VERSION);
    us_put64(p + 8, beat->published);
    us_put64(p + 16, beat->durable);
    us_put64(p + 24, beat->ids);
    us_put32(p + 60, us_crc32c(0, p, US_STREAM_BEAT - 4));

    return US_STREAM_BEAT;
}


void
us_stream_manifest(uint8_t p[US_STREAM_MANIFEST], size_t len)
{
    memcpy(p, "USMF", 4);
    us_put32(p + 4, (uint32_t) len);
}


void
us_stream_init(us_stream_t *s, const us_ops_t *ops, const us_place_t *at)
{
    memset(s, 0, sizeof(us_stream_t));
    s->ops = ops;
    s->reader.fd = -1;

    if (at) {
        s->at = *at;
        s->resumed = 1;
    }
}


static ssize_t
us_stream_text(us_stream_t *s, const uint8_t *p, size_t len, size_t *need)
{
    uint32_t       n;
    us_manifest_t  m;

    *need = US_STREAM_MANIFEST;

    if (len < *need) {
        return 0;
    }

    n = us_get32(p + 4);

    if (n > US_MANIFEST_MAX) {
        return us_disk_fail(&s->error, 0, "a manifest of %u bytes", n);
    }

    *need += n;

    if (len < *need) {
        return 0;
    }

    if (us_manifest_scan(&m, (const char *) p + US_STREAM_MANIFEST, n,
                         &s->error)
        != US_MANIFEST_OK)
    {
        return -1;
    }

    if ((s->resumed || s->named)
        && (memcmp(m.uuid, s->at.uuid, 16) != 0 || m.epoch != s->at.epoch))
    {
        return us_disk_fail(&s->error, 0, "the stream is of another store, or "
                            "epoch");
    }

    s->manifest = m;

    if (!s->named && !s->resumed) {
        us_place_start(&s->at, &m);
    }

    s->named = 1;

    return *need;
}


/* whether the file of s->reader is the one to come; 0, or -1 */

static int
us_stream_begins(us_stream_t *s, us_segment_kind_t kind)
{
    us_tail_t          *t;
    us_segment_head_t  *h;

    t = &s->at.tail;
    h = &s->reader.head;

    if (t->offset) {

        /* the same once more, at the beginning of a stream that goes on */

        if (s->open || kind != s->at.kind || h->crc != t->seed) {
            return -1;
        }

        us_reader_resume(&s->reader, t);
        return 0;
    }

    if (s->at.kind == US_SEGMENT_SNAPSHOT) {
        s->at.kind = kind;
        t->segment = h->lsn;

        return kind == US_SEGMENT_JOURNAL && h->lsn <= t->lsn ? 0 : -1;
    }

    if (kind == US_SEGMENT_SNAPSHOT) {
        s->at.kind = kind;
        t->segment = s->manifest.snapshot;

        return t->lsn == 0 && t->crc == 0 && s->manifest.has_snapshot ? 0 : -1;
    }

    t->segment = h->lsn;

    return h->lsn == t->lsn && h->ids == t->ids && h->prev == t->crc ? 0 : -1;
}


ssize_t
us_stream_next(us_stream_t *s, const uint8_t *p, size_t len, us_frame_t *f,
    size_t *need)
{
    ssize_t            n;
    us_read_t          rc;
    us_segment_kind_t  kind;

    f->p = p;
    f->len = 0;
    *need = 4;

    if (len < *need) {
        return 0;
    }

    if (memcmp(p, "USMF", 4) == 0) {
        f->type = US_FRAME_MANIFEST;
        n = us_stream_text(s, p, len, need);

        if (n <= 0) {
            return n;
        }

    } else if (!s->named) {
        return us_disk_fail(&s->error, 0, "the stream does not begin with a "
                            "manifest");

    } else if (memcmp(p, "USBT", 4) == 0) {
        f->type = US_FRAME_BEAT;
        *need = US_STREAM_BEAT;

        if (len < *need) {
            return 0;
        }

        if (us_get32(p + 60) != us_crc32c(0, p, US_STREAM_BEAT - 4)) {
            return us_disk_fail(&s->error, 0, "a beat's CRC is wrong");
        }

        if (us_get32(p + 4) != US_STREAM_VERSION) {
            return us_disk_fail(&s->error, 0, "the stream has version %u, this "
                                "program reads version %u", us_get32(p + 4),
                                US_STREAM_VERSION);
        }

        f->beat.published = us_get64(p + 8);
        f->beat.durable = us_get64(p + 16);
        f->beat.ids = us_get64(p + 24);

    } else if (memcmp(p, "USJR", 4) == 0 || memcmp(p, "USSN", 4) == 0) {
        f->type = US_FRAME_HEAD;
        *need = US_SEGMENT_HEADER;

        if (len < *need) {
            return 0;
        }

        kind = p[2] == 'J' ? US_SEGMENT_JOURNAL : US_SEGMENT_SNAPSHOT;

        if (us_reader_start(&s->reader, p, kind, s->at.uuid, s->ops)
            != US_READ_BLOCK)
        {
            s->error = s->reader.error;
            return -1;
        }

        if (us_stream_begins(s, kind) == -1) {
            return us_disk_fail(&s->error, 0, "\"%s\" does not follow what "
                                "came before it, which ends at LSN %016" PRIx64,
                                s->reader.name, s->at.tail.lsn);
        }

        s->open = 1;
        s->reader.at.segment = s->at.tail.segment;
        s->at.tail = s->reader.at;

    } else if (!s->open) {
        return us_disk_fail(&s->error, 0, "a block without a file");

    } else {
        rc = us_reader_take(&s->reader, p, len, &f->block, need);

        if (rc == US_READ_END) {
            return 0;
        }

        if (rc != US_READ_BLOCK && rc != US_READ_FOOTER) {
            s->error = s->reader.error;
            return -1;
        }

        f->type = rc == US_READ_BLOCK ? US_FRAME_BLOCK : US_FRAME_FOOTER;
        s->at.tail = s->reader.at;

        if (rc == US_READ_FOOTER) {
            s->at.tail.offset = 0;
            s->open = 0;
        }
    }

    f->len = *need;

    return *need;
}
