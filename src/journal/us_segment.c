
/*
 * Blocks: written, read, checked, and searched for past a bad place.  See
 * us_segment.h for the format.
 */


#include "us_segment.h"
#include "us_crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_READER_BUFFER  (256 * 1024)


static const char  *us_segment_magic[] = { "USJRNL\r\n", "USSNAP\r\n" };
static const char  *us_segment_prefix[] = { "journal.", "snapshot." };

static const unsigned  us_segment_version[] = {
    US_SEGMENT_VERSION, US_SNAPSHOT_VERSION
};


const char *
us_segment_name(char *buf, us_segment_kind_t kind, uint64_t lsn)
{
    snprintf(buf, US_DISK_NAME, "%s%016" PRIx64, us_segment_prefix[kind],
             lsn);

    return buf;
}


int
us_segment_parse_name(const char *name, us_segment_kind_t kind, uint64_t *lsn)
{
    size_t  len;

    len = strlen(us_segment_prefix[kind]);

    if (strncmp(name, us_segment_prefix[kind], len) != 0
        || strlen(name) != len + 16
        || strspn(name + len, "0123456789abcdef") != 16)
    {
        return -1;
    }

    *lsn = strtoull(name + len, NULL, 16);

    return 0;
}


size_t
us_segment_head_write(uint8_t *p, us_segment_head_t *h)
{
    memset(p, 0, US_SEGMENT_HEADER);
    memcpy(p, us_segment_magic[h->kind], 8);
    us_put32(p + 8, us_segment_version[h->kind]);
    memcpy(p + 16, h->uuid, 16);
    us_put64(p + 32, h->epoch);
    us_put64(p + 40, h->lsn);
    us_put64(p + 48, h->ids);
    us_put32(p + 56, h->prev);

    h->crc = us_crc32c(0, p, US_SEGMENT_HEADER - 4);
    us_put32(p + 60, h->crc);

    return US_SEGMENT_HEADER;
}


/*
 * The payload, b->len bytes, is already in its place after the header's.
 */

size_t
us_block_write(uint8_t *p, us_block_t *b, uint32_t seed)
{
    memset(p, 0, US_BLOCK_HEADER);
    memcpy(p, b->len ? "USBK" : "USFT", 4);
    us_put32(p + 4, b->len);
    us_put64(p + 8, b->lsn);
    us_put64(p + 16, b->ids);
    us_put32(p + 32, b->prev);
    us_put64(p + (b->len ? 24 : 36), b->durable);

    b->crc = us_crc32c(seed, p, US_BLOCK_HEADER - 4);
    b->crc = us_crc32c(b->crc, p + US_BLOCK_HEADER, b->len);
    us_put32(p + 44, b->crc);

    return US_BLOCK_HEADER + b->len;
}


size_t
us_tail_begin(us_tail_t *tail, uint8_t *p, us_segment_head_t *h)
{
    h->lsn = tail->lsn;
    h->ids = tail->ids;
    h->prev = tail->crc;

    tail->segment = tail->lsn;
    tail->offset = us_segment_head_write(p, h);
    tail->blocks = 0;
    tail->crc = h->crc;
    tail->seed = h->crc;

    return US_SEGMENT_HEADER;
}


size_t
us_tail_block(us_tail_t *tail, uint8_t *p, size_t len, uint64_t ids,
    uint64_t durable)
{
    size_t      n;
    us_block_t  b;

    b.len = (uint32_t) len;
    b.lsn = tail->lsn;
    b.ids = tail->ids;
    b.durable = durable;
    b.prev = tail->crc;

    n = us_block_write(p, &b, tail->seed);

    tail->offset += n;
    tail->blocks++;
    tail->lsn += len;
    tail->ids += ids;
    tail->crc = b.crc;

    return n;
}


void
us_tail_footer(us_tail_t *tail, uint8_t p[US_BLOCK_HEADER])
{
    (void) us_tail_block(tail, p, 0, 0, tail->blocks);

    tail->offset = 0;
    tail->blocks--;
}


/*
 * Reads a block's fields.  Returns 0 if it cannot be one: wrong magic, a
 * length that no writer writes.
 */

static int
us_block_parse(const uint8_t *p, us_block_t *b)
{
    b->len = us_get32(p + 4);
    b->lsn = us_get64(p + 8);
    b->ids = us_get64(p + 16);
    b->prev = us_get32(p + 32);
    b->crc = us_get32(p + 44);

    if (memcmp(p, "USBK", 4) == 0) {
        b->durable = us_get64(p + 24);
        return b->len > 0 && b->len <= US_BLOCK_MAX;
    }

    b->durable = us_get64(p + 36);

    return memcmp(p, "USFT", 4) == 0 && b->len == 0;
}


static int
us_block_valid(const uint8_t *p, const us_block_t *b, uint32_t seed)
{
    uint32_t  crc;

    crc = us_crc32c(seed, p, US_BLOCK_HEADER - 4);

    return us_crc32c(crc, p + US_BLOCK_HEADER, b->len) == b->crc;
}


void
us_pieces_copy(uint8_t *to, const us_str_t pieces[2], size_t skip, size_t len)
{
    size_t  n;

    n = 0;

    if (skip < pieces[0].len) {
        n = pieces[0].len - skip;
        n = n < len ? n : len;
        memcpy(to, pieces[0].data + skip, n);
        skip = pieces[0].len;
    }

    if (n < len) {
        memcpy(to + n, pieces[1].data + skip - pieces[0].len, len - n);
    }
}


size_t
us_pieces_group(const us_str_t pieces[2], size_t skip, size_t most,
    const us_ops_t *ops)
{
    size_t   n;
    ssize_t  need;
    uint8_t  head[64];

    n = pieces[0].len + pieces[1].len;
    n = skip < n ? n - skip : 0;

    if (n <= most) {
        return n;
    }

    us_pieces_copy(head, pieces, skip, sizeof(head));
    need = ops->size(head, sizeof(head));

    return need > (ssize_t) most && (size_t) need <= n ? (size_t) need : most;
}


ssize_t
us_block_fill(const uint8_t *p, size_t len, const us_ops_t *ops,
    uint64_t *nids)
{
    size_t   used;
    ssize_t  n;

    *nids = 0;

    for (used = 0; used < len; used += n) {
        n = ops->size(p + used, len - used);

        if (n == -1 || (n > 0 && n > US_BLOCK_MAX)) {
            return used ? (ssize_t) used : -1;
        }

        if (n == 0 || (size_t) n > len - used) {
            break;
        }

        if (used && used + n > US_BLOCK_SIZE) {
            break;
        }

        *nids += ops->ids(p + used, n);
    }

    return used;
}


int
us_block_ids(const uint8_t *p, size_t len, const us_ops_t *ops, uint64_t *ids)
{
    ssize_t  n;

    for (*ids = 0; len; p += n, len -= n) {
        n = ops->size(p, len);

        if (n <= 0 || (size_t) n > len) {
            return -1;
        }

        *ids += ops->ids(p, n);
    }

    return 0;
}


static us_read_t
us_reader_bad(us_reader_t *r, const char *what)
{
    us_disk_fail(&r->error, 0, "\"%s\" at offset %" PRIu64 ": %s (LSN %" PRIu64
                 ", %" PRIu64 " ids before)", r->name, r->at.offset,
                 what, r->at.lsn, r->at.ids);

    return US_READ_BAD;
}


/* reads and checks the header; US_READ_BLOCK: it is good */

static us_read_t
us_reader_head(us_reader_t *r, const uint8_t *p, us_segment_kind_t kind,
    const uint8_t *uuid)
{
    unsigned  version;

    r->head.kind = kind;
    r->head.crc = us_get32(p + 60);

    if (memcmp(p, us_segment_magic[kind], 8) != 0) {
        return us_reader_bad(r, "the header is of another kind");
    }

    if (us_crc32c(0, p, US_SEGMENT_HEADER - 4) != r->head.crc) {
        return us_reader_bad(r, "the header is damaged");
    }

    version = us_get32(p + 8);

    if (version != us_segment_version[kind]) {
        us_disk_fail(&r->error, 0, "\"%s\" has format version %u, this "
                     "program reads version %u; the file was not touched",
                     r->name, version, us_segment_version[kind]);
        return US_READ_VERSION;
    }

    memcpy(r->head.uuid, p + 16, 16);
    r->head.epoch = us_get64(p + 32);
    r->head.lsn = us_get64(p + 40);
    r->head.ids = us_get64(p + 48);
    r->head.prev = us_get32(p + 56);

    if (uuid && memcmp(uuid, r->head.uuid, 16) != 0) {
        return us_reader_bad(r, "the file is of another store");
    }

    if (us_segment_parse_name(r->name, kind, &r->at.segment) == 0
        && kind == US_SEGMENT_JOURNAL && r->at.segment != r->head.lsn)
    {
        return us_reader_bad(r, "the name is of another segment");
    }

    r->at.offset = US_SEGMENT_HEADER;
    r->at.lsn = r->head.lsn;
    r->at.ids = r->head.ids;
    r->at.crc = r->head.crc;
    r->at.seed = r->head.crc;

    return US_READ_BLOCK;
}


us_read_t
us_reader_start(us_reader_t *r, const uint8_t *p, us_segment_kind_t kind,
    const uint8_t *uuid, const us_ops_t *ops)
{
    memset(r, 0, sizeof(us_reader_t));
    r->fd = -1;
    r->ops = ops;

    (void) us_segment_name(r->name, kind, us_get64(p + 40));

    return us_reader_head(r, p, kind, uuid);
}


/*
 * The bytes of the file at offset, at least len of them unless it ends: *got
 * are there, at most len.  NULL with r->error if it cannot be read.
 */

static const uint8_t *
us_reader_need(us_reader_t *r, uint64_t offset, size_t len, size_t *got)
{
    size_t    skip, size;
    ssize_t   n;
    uint8_t  *buf;

    if (offset < r->buf_offset || offset + len > r->buf_offset + r->buf_len) {

        skip = r->aligned ? offset & (US_DISK_BLOCK - 1) : 0;
        size = skip + len;

        if (size > r->buf_size) {
            size = (size < US_READER_BUFFER) ? US_READER_BUFFER : size;
            size = (size + US_DISK_BLOCK - 1) & ~(size_t) (US_DISK_BLOCK - 1);
            buf = aligned_alloc(US_DISK_BLOCK, size);

            if (buf == NULL) {
                us_disk_fail(&r->error, ENOMEM, "\"%s\" could not be read",
                             r->name);
                return NULL;
            }

            free(r->buf);
            r->buf = buf;
            r->buf_size = size;
        }

        r->buf_len = 0;
        r->buf_offset = offset - skip;

        n = r->now
            ? us_disk_pread_now(r->fd, r->buf, r->buf_size, len, offset)
            : us_disk_pread_blocks(r->fd, r->buf, r->buf_size, r->buf_offset,
                                   r->aligned ? US_DISK_BLOCK : 1);

        if (n == -1) {
            us_disk_fail(&r->error, errno, "read of \"%s\" at %" PRIu64
                         " failed", r->name, r->buf_offset);
            return NULL;
        }

        r->buf_len = n;
    }

    *got = r->buf_offset + r->buf_len;
    *got = (*got > offset) ? *got - offset : 0;

    if (*got > len) {
        *got = len;
    }

    return r->buf + (offset - r->buf_offset);
}


us_read_t
us_reader_open(us_reader_t *r, int dirfd, const char *name,
    us_segment_kind_t kind, const uint8_t *uuid, const us_ops_t *ops,
    us_read_from_t from)
{
    size_t          got;
    const uint8_t  *p;

    memset(r, 0, sizeof(us_reader_t));
    r->ops = ops;
    r->aligned = from == US_READ_DISK;
    r->now = from == US_READ_NOW;
    snprintf(r->name, sizeof(r->name), "%s", name);

    r->fd = openat(dirfd, name, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (r->fd == -1) {
        us_disk_fail(&r->error, errno, "\"%s\" could not be opened", name);
        return US_READ_FAILED;
    }

    (void) posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);

    if (r->aligned) {
        us_disk_uncached(r->fd);
    }

    p = us_reader_need(r, 0, US_SEGMENT_HEADER, &got);

    if (p == NULL) {
        return US_READ_FAILED;
    }

    if (got < US_SEGMENT_HEADER) {
        return us_reader_bad(r, "the header is cut off");
    }

    return us_reader_head(r, p, kind, uuid);
}


void
us_reader_close(us_reader_t *r)
{
    if (r->fd != -1) {
        (void) close(r->fd);
        r->fd = -1;
    }

    free(r->buf);
    r->buf = NULL;
}


/* whether the whole block at c is valid here: the reader goes past it then */

static us_read_t
us_reader_follows(us_reader_t *r, const uint8_t *c, us_block_t *b)
{
    uint64_t  ids;

    if (!us_block_valid(c, b, r->head.crc)) {
        return us_reader_bad(r, "a block's CRC is wrong");
    }

    if (b->prev != r->at.crc
        || (b->len == 0 && b->durable != r->at.blocks)
        || b->ids != r->at.ids
        || (b->lsn != r->at.lsn
            && (b->len || r->head.kind == US_SEGMENT_JOURNAL)))
    {
        return us_reader_bad(r, "a block does not follow the one before");
    }

    if (us_block_ids(c + US_BLOCK_HEADER, b->len, r->ops, &ids) == -1) {
        return us_reader_bad(r, "a block does not hold whole operations");
    }

    r->at.offset += US_BLOCK_HEADER + b->len;
    r->at.lsn = b->lsn + b->len;
    r->at.ids += ids;
    r->at.crc = b->crc;

    if (b->len == 0) {
        return US_READ_FOOTER;
    }

    r->at.blocks++;

    return US_READ_BLOCK;
}


us_read_t
us_reader_next(us_reader_t *r, us_block_t *b, const uint8_t **p)
{
    size_t          got;
    const uint8_t  *c;

    c = us_reader_need(r, r->at.offset, US_BLOCK_HEADER, &got);

    if (c == NULL) {
        return US_READ_FAILED;
    }

    if (got == 0) {
        return US_READ_END;
    }

    if (got < US_BLOCK_HEADER) {
        return us_reader_bad(r, "a block's header is cut off");
    }

    if (!us_block_parse(c, b)) {
        return us_reader_bad(r, "no block begins here");
    }

    c = us_reader_need(r, r->at.offset, US_BLOCK_HEADER + b->len, &got);

    if (c == NULL) {
        return US_READ_FAILED;
    }

    if (got < US_BLOCK_HEADER + b->len) {
        return us_reader_bad(r, "a block is cut off");
    }

    *p = c + US_BLOCK_HEADER;

    return us_reader_follows(r, c, b);
}


us_read_t
us_reader_take(us_reader_t *r, const uint8_t *p, size_t len, us_block_t *b,
    size_t *need)
{
    *need = US_BLOCK_HEADER;

    if (len < *need) {
        return US_READ_END;
    }

    if (!us_block_parse(p, b)) {
        return us_reader_bad(r, "no block begins here");
    }

    *need += b->len;

    return len < *need ? US_READ_END : us_reader_follows(r, p, b);
}


void
us_reader_resume(us_reader_t *r, const us_tail_t *tail)
{
    r->at = *tail;
    r->buf_len = 0;
}


static const uint8_t *
us_block_magic(const uint8_t *p, const uint8_t *last)
{
    for ( ; last - p >= 4; p++) {
        p = memchr(p, 'U', last - p - 3);

        if (p == NULL) {
            return NULL;
        }

        if (memcmp(p, "USBK", 4) == 0 || memcmp(p, "USFT", 4) == 0) {
            return p;
        }
    }

    return NULL;
}


/*
 * A block is looked for at every byte.  Its magic is rare in compressed
 * payloads, so that the CRC is seldom calculated in vain.
 */

uint64_t
us_reader_probe(us_reader_t *r, uint64_t offset, us_block_t *b)
{
    size_t          got;
    uint64_t        at;
    const uint8_t  *p, *m;

    if (offset < US_SEGMENT_HEADER) {
        offset = US_SEGMENT_HEADER;
    }

    for ( ;; ) {
        p = us_reader_need(r, offset, US_READER_BUFFER, &got);

        if (p == NULL || got < US_BLOCK_HEADER) {
            return 0;
        }

        m = us_block_magic(p, p + got - US_BLOCK_HEADER + 4);

        if (m == NULL) {
            offset += got - US_BLOCK_HEADER + 1;
            continue;
        }

        at = offset + (m - p);
        offset = at + 1;

        m = us_reader_need(r, at, US_BLOCK_HEADER, &got);

        if (m == NULL || got < US_BLOCK_HEADER || !us_block_parse(m, b)) {
            continue;
        }

        m = us_reader_need(r, at, US_BLOCK_HEADER + b->len, &got);

        if (m && got == US_BLOCK_HEADER + b->len
            && us_block_valid(m, b, r->head.crc))
        {
            return at;
        }
    }
}


int64_t
us_reader_size(const us_reader_t *r)
{
    struct stat  st;

    if (fstat(r->fd, &st) == -1) {
        return -1;
    }

    return st.st_size;
}
