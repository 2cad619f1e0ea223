
/*
 * The journal as a stream: a directory that is being written is sent, by
 * us_ship.h, to a reader, us_stream.h, which puts the same files together; cut
 * at any byte, with any byte changed, from any place, and from a directory that
 * has other bytes.
 */

#include "journal_fake.h"
#include "journal/us_ship.h"

#include <fcntl.h>
#include <sys/uio.h>


#ifdef RWF_NOWAIT

/*
 * How many of so many reads without waiting find nothing in memory; whether
 * they find a page that the disk has failed to read, which Linux does not read
 * again before it is dropped.
 */

static struct {
    unsigned  of;
    unsigned  n;
    unsigned  calls;
    int       failed;
    int       dropped;
    off_t     at;
} cold;


ssize_t
preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    assert_int_equal(n, 1);
    assert_int_equal(flags, RWF_NOWAIT);

    if (cold.failed || (cold.of && cold.calls++ % cold.of < cold.n)) {
        cold.at = at;
        errno = EAGAIN;
        return -1;
    }

    return pread(fd, iov->iov_base, iov->iov_len, at);
}


int
posix_fadvise(int fd, off_t at, off_t len, int advice)
{
    (void) fd;

    if (at <= cold.at && cold.at < at + len) {
        cold.dropped |= (advice == POSIX_FADV_DONTNEED);
        cold.failed &= !(cold.dropped && advice == POSIX_FADV_WILLNEED);
    }

    return 0;
}

#endif


/* a reader of streams: the files that it has, and what they gave */

typedef struct {
    us_stream_t   s;
    us_place_t    at;                 /* of a next stream */
    int           begun;
    fake_store_t  store;
    uint64_t      lsn;                /* applied */
    us_beat_t     beat;
    uint64_t      files;
} fake_reader_t;


static void
reader_init(fake_reader_t *r, size_t max)
{
    memset(r, 0, sizeof(fake_reader_t));
    r->store.max = max;
}


/* the operations of a block that were not applied before */

static void
reader_block(fake_reader_t *r, const us_frame_t *f)
{
    size_t  skip;

    skip = 0;

    if (r->s.at.kind == US_SEGMENT_JOURNAL) {

        if (f->block.lsn + f->block.len <= r->lsn) {
            return;
        }

        assert_true(f->block.lsn <= r->lsn);
        skip = r->lsn - f->block.lsn;
        r->lsn = f->block.lsn + f->block.len;
    }

    (void) fake_apply(&r->store, f->p + US_BLOCK_HEADER + skip,
                      f->block.len - skip);
}


/* reads len bytes; 0, or -1 if there is a fault */

static int
reader_feed(fake_reader_t *r, const uint8_t *p, size_t len)
{
    size_t      need;
    ssize_t     n;
    us_frame_t  f;

    while (len) {
        n = us_stream_next(&r->s, p, len, &f, &need);

        if (n == 0) {
            assert_true(need > len);
            return 0;
        }

        if (n == -1) {
            assert_int_not_equal(r->s.error.text[0], '\0');
            return -1;
        }

        assert_true((size_t) n <= len);
        assert_ptr_equal(f.p, p);
        assert_int_equal(f.len, n);

        switch (f.type) {

        case US_FRAME_BEAT:
            r->beat = f.beat;
            break;

        case US_FRAME_HEAD:
            r->files++;
            break;

        case US_FRAME_BLOCK:
            reader_block(r, &f);
            break;

        case US_FRAME_FOOTER:

            if (r->s.at.kind == US_SEGMENT_SNAPSHOT) {
                r->lsn = r->s.at.tail.lsn;
            }

            break;

        default:
            break;
        }

        r->at = r->s.at;
        r->begun = 1;
        p += n;
        len -= n;
    }

    return 0;
}


/*
 * All that a sender has now, as bytes that the caller frees; *rc is what the
 * sender said at the beginning.
 */

static uint8_t *
ship(fake_journal_t *j, const us_place_t *at, us_ship_rc_t *rc, size_t *len)
{
    size_t          n;
    uint8_t        *buf;
    unsigned        parts;
    us_beat_t       beat;
    us_ship_t       s;
    us_ship_rc_t    got;
    const uint8_t  *p;

    buf = NULL;
    *len = 0;

    *rc = us_ship_begin(&s, j->dirfd, &fake_ops, at, &j->tail);

    if (*rc == US_SHIP_OK) {
        beat.published = j->tail.lsn;
        beat.durable = j->durable;
        beat.ids = j->tail.ids;

        /*
         * The manifest, in two parts, and a beat; then no time passes.  While
         * it has the lock, it waits for the disk only.
         */

        for (parts = 0;
             (got = parts < 3 ? us_ship_send(&s, &j->tail, &beat, 0, &p, &n)
                              : us_ship_next(&s, &j->tail, j->durable, &p, &n))
             == US_SHIP_OK || (got == US_SHIP_WAIT && s.readers != -1);
             parts++)
        {
            if (got == US_SHIP_WAIT) {
                continue;
            }

            buf = realloc(buf, *len + n);
            assert_non_null(buf);
            memcpy(buf + *len, p, n);
            *len += n;
        }

        assert_int_equal(got, US_SHIP_WAIT);
        assert_int_equal(s.readers, -1);
    }

    us_ship_end(&s);

    return buf;
}


/* a whole stream, from where the reader is; what the sender said */

static us_ship_rc_t
follow(fake_journal_t *j, fake_reader_t *r)
{
    size_t         len;
    uint8_t       *buf;
    us_ship_rc_t   rc;

    buf = ship(j, r->begun ? &r->at : NULL, &rc, &len);

    if (rc == US_SHIP_OK) {
        us_stream_init(&r->s, &fake_ops, r->begun ? &r->at : NULL);
        assert_int_equal(reader_feed(r, buf, len), 0);
        assert_int_equal(r->lsn, j->durable);
    }

    free(buf);

    return rc;
}


/* the snapshot of a directory at its end now */

static void
snapshot(fake_journal_t *j)
{
    size_t          n;
    uint8_t         op[70000];
    uint64_t        i;
    us_snapshot_t   s;
    us_manifest_t   m;

    assert_int_equal(fake_sync(j), 0);
    assert_int_equal(us_manifest_read(j->dirfd, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(us_snapshot_begin(&s, j->dirfd, fake_uuid, 1, &fake_ops),
                     0);

    for (i = 0; i < j->at.ops; i++) {
        n = fake_op(op, i, j->at.max);
        assert_int_equal(us_snapshot_out(&s, op, n), 0);
    }

    assert_int_equal(us_snapshot_finish(&s, j->tail.lsn, &m), 0);
    us_snapshot_end(&s);
}


static void
drop(fake_journal_t *j)
{
    us_manifest_t  m;

    assert_int_equal(us_manifest_read(j->dirfd, &m, NULL), US_MANIFEST_OK);
    (void) us_snapshot_drop(j->dirfd, &m);
}


/*
 * A directory of n groups of so many operations each, of up to max bytes, with
 * a snapshot after group number `at`, if it is not 0; all of it is durable.
 */

static void
groups(fake_journal_t *j, int dirfd, unsigned max, uint64_t limit, unsigned n,
    unsigned each, unsigned at)
{
    unsigned  i;

    fake_create(j, dirfd, max, limit, "1s");

    for (i = 1; i <= n; i++) {
        assert_int_equal(fake_append(j, each), 0);

        if (i == at) {
            snapshot(j);
        }
    }

    assert_int_equal(fake_sync(j), 0);
}


/* an empty store, one that grows, segments that end, a restart in between */

static void
test_follow(void **state)
{
    int             dirfd;
    char            path[64];
    unsigned        i;
    fake_store_t    store;
    fake_reader_t   r, late;
    us_recovery_t   recovery;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 700, 16384, "1s");
    reader_init(&r, 700);
    reader_init(&late, 700);

    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    assert_int_equal(r.lsn, 0);

    for (i = 0; i < 300; i++) {
        assert_int_equal(fake_append(&j, 1 + i % 5), 0);

        if (i % 3 == 0) {
            assert_int_equal(fake_sync(&j), 0);
        }

        assert_int_equal(follow(&j, &r), US_SHIP_OK);

        if (i % 50 == 49) {

            /* the owner restarts: what it reads is durable */

            us_writer_close(&j.w);
            assert_int_equal(fake_recover(&recovery, &store, dirfd, 700,
                                          FAKE_BOOT, 1), US_RECOVERY_OK);
            us_writer_init(&j.w, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);
            j.w.limit = 16384;
            j.tail = recovery.tail;
            j.durable = j.tail.lsn;
            assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
        }
    }

    assert_int_equal(fake_sync(&j), 0);
    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    assert_int_equal(follow(&j, &late), US_SHIP_OK);

    assert_int_equal(r.store.ops, j.at.ops);
    assert_int_equal(late.store.ops, j.at.ops);
    assert_int_equal(r.store.ids, j.at.ids);
    assert_int_equal(r.beat.published, j.tail.lsn);
    assert_true(late.files > 5);

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* from a snapshot, whose LSN lies within a segment and within a block */

static void
test_snapshot(void **state)
{
    int             dirfd;
    char            path[64];
    unsigned        i;
    us_place_t      at;
    fake_reader_t   early, r;
    us_manifest_t   m;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 300, 8192, 1, 4, 0);
    reader_init(&early, 300);

    assert_int_equal(follow(&j, &early), US_SHIP_OK);

    for (i = 0; i < 20; i++) {
        assert_int_equal(fake_append(&j, 20), 0);
    }

    snapshot(&j);
    drop(&j);

    reader_init(&r, 300);
    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    assert_int_equal(r.store.ops, j.at.ops);

    for (i = 0; i < 20; i++) {
        assert_int_equal(fake_append(&j, 20), 0);
    }

    assert_int_equal(fake_sync(&j), 0);
    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    assert_int_equal(r.store.ops, j.at.ops);

    /* a reader that is further back than the journal */

    assert_int_equal(follow(&j, &early), US_SHIP_GONE);

    /* by an LSN alone */

    assert_int_equal(us_manifest_read(dirfd, &m, NULL), US_MANIFEST_OK);

    us_ship_from(&at, &m, m.snapshot);
    reader_init(&r, 300);
    r.at = at;
    r.begun = 1;
    r.lsn = m.snapshot;

    r.store.ops = 404;

    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    assert_int_equal(r.store.ops, j.at.ops);

    us_ship_from(&at, &m, j.tail.lsn + 1);
    r.at = at;
    assert_int_equal(follow(&j, &r), US_SHIP_GONE);

    us_ship_from(&at, &m, 0);
    r.at = at;
    assert_int_equal(follow(&j, &r), US_SHIP_GONE);

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* cut after every byte, the reader goes on with another stream */

static void
test_cut(void **state)
{
    int             dirfd;
    char            path[64];
    size_t          len, cut;
    uint8_t        *buf;
    us_ship_rc_t    rc;
    fake_reader_t   r;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 60, 1500, 20, 4, 8);
    buf = ship(&j, NULL, &rc, &len);
    assert_int_equal(rc, US_SHIP_OK);

    for (cut = 0; cut <= len; cut++) {
        reader_init(&r, 60);
        us_stream_init(&r.s, &fake_ops, NULL);
        assert_int_equal(reader_feed(&r, buf, cut), 0);
        assert_int_equal(follow(&j, &r), US_SHIP_OK);
        assert_int_equal(r.store.ops, j.at.ops);
        assert_memory_equal(&r.at.tail, &j.tail, sizeof(us_tail_t));
    }

    free(buf);
    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* each byte changed: a fault, and nothing wrong is given (fake_apply()) */

static void
test_changed(void **state)
{
    int             dirfd;
    char            path[64];
    size_t          len, at;
    uint8_t        *buf;
    us_ship_rc_t    rc;
    fake_reader_t   r;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 60, 700, 12, 3, 6);
    buf = ship(&j, NULL, &rc, &len);
    assert_int_equal(rc, US_SHIP_OK);

    for (at = 0; at < len; at++) {
        buf[at] ^= 1 << at % 8;

        reader_init(&r, 60);
        us_stream_init(&r.s, &fake_ops, NULL);

        /* a length that has grown: the reader waits for bytes */

        if (reader_feed(&r, buf, len) == 0) {
            assert_true(r.store.ops < j.at.ops);
        }

        buf[at] ^= 1 << at % 8;
    }

    free(buf);
    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/*
 * The directory goes back to an earlier copy and grows otherwise: no place that
 * a reader has reached past the copy is continued.
 */

static void
test_other_bytes(void **state)
{
    int             dirfd, other;
    char            path[64], copy[64], name[US_DISK_NAME];
    size_t          len;
    uint8_t        *p;
    unsigned        i, gone;
    us_tail_t       tail;
    us_place_t      places[60];
    us_ship_rc_t    rc;
    fake_reader_t   r;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    other = fake_mkdir(copy);
    groups(&j, dirfd, 100, 1 << 20, 1, 30, 0);
    reader_init(&r, 100);

    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    places[0] = r.at;

    us_segment_name(name, US_SEGMENT_JOURNAL, 0);
    p = fake_read(dirfd, name, &len);
    fake_write(other, name, p, len);
    free(p);
    p = fake_read(dirfd, US_MANIFEST_NAME, &len);
    fake_write(other, US_MANIFEST_NAME, p, len);
    free(p);

    tail = j.tail;

    for (i = 1; i < 60; i++) {
        assert_int_equal(fake_append(&j, 1), 0);
        assert_int_equal(fake_sync(&j), 0);
        assert_int_equal(follow(&j, &r), US_SHIP_OK);
        places[i] = r.at;
    }

    us_writer_close(&j.w);

    /* the copy: the operations from number 1,000 on */

    j.dirfd = other;
    j.tail = tail;
    j.durable = tail.lsn;
    us_writer_init(&j.w, other, fake_uuid, 1, FAKE_BOOT, &fake_ops);
    assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);

    for (gone = 0, i = 1; i < 60; i++) {
        free(ship(&j, &places[i], &rc, &len));
        gone += rc == US_SHIP_GONE;
    }

    assert_int_equal(gone, 59);

    j.at.ops = 1000;

    for (i = 0; i < 200; i++) {
        j.at.bytes = j.tail.lsn;
        j.at.ids = j.tail.ids;
        assert_int_equal(fake_append(&j, 1), 0);
        assert_int_equal(fake_sync(&j), 0);
    }

    for (gone = 0, i = 0; i < 60; i++) {
        free(ship(&j, &places[i], &rc, &len));
        gone += rc == US_SHIP_GONE;
    }

    assert_int_equal(gone, 59);

    us_writer_close(&j.w);
    fake_rmdir(copy, other);
    fake_rmdir(path, dirfd);
}


/* another uuid, another epoch; nothing of it is taken for the same store */

static void
test_other_store(void **state)
{
    int              dirfd;
    char             path[64];
    size_t           len;
    uint8_t         *buf;
    us_ship_rc_t     rc;
    fake_reader_t    r;
    us_manifest_t    m;
    fake_journal_t   j;
    us_disk_error_t  e;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 100, 1 << 20, 1, 30, 0);
    reader_init(&r, 100);

    assert_int_equal(follow(&j, &r), US_SHIP_OK);

    assert_int_equal(us_manifest_read(dirfd, &m, &e), US_MANIFEST_OK);
    m.epoch++;
    assert_int_equal(us_manifest_write(dirfd, &m, &e), 0);
    assert_int_equal(follow(&j, &r), US_SHIP_GONE);

    /* a sender that does not look at the place */

    buf = ship(&j, NULL, &rc, &len);
    assert_int_equal(rc, US_SHIP_OK);
    us_stream_init(&r.s, &fake_ops, &r.at);
    assert_int_equal(reader_feed(&r, buf, len), -1);
    free(buf);

    m.epoch--;
    m.uuid[7] ^= 1;
    assert_int_equal(us_manifest_write(dirfd, &m, &e), 0);
    assert_int_equal(follow(&j, &r), US_SHIP_GONE);

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/*
 * A writer is killed after a write; the next one cuts its bytes off and writes
 * others.  A sender that had the first ones in its buffer sends the others.
 */

static void
test_stale(void **state)
{
    int             dirfd;
    char            path[64], name[US_DISK_NAME];
    size_t          len;
    uint8_t        *whole;
    us_ship_t       s;
    us_tail_t       tail;
    fake_reader_t   r;
    fake_store_t    at;
    const uint8_t  *p;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 100, 1 << 20, "1s");
    reader_init(&r, 100);

    assert_int_equal(fake_append(&j, 3), 0);
    tail = j.tail;
    at = j.at;
    j.at.ops = 50;
    assert_int_equal(fake_append(&j, 3), 0);

    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &tail),
                     US_SHIP_OK);

    while (us_ship_next(&s, &tail, tail.lsn, &p, &len) == US_SHIP_OK) {
        /* void */
    }

    j.tail = tail;
    j.at = at;
    assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
    assert_int_equal(fake_append(&j, 3), 0);

    us_segment_name(name, US_SEGMENT_JOURNAL, 0);
    whole = fake_read(dirfd, name, &len);

    assert_int_equal(us_ship_next(&s, &j.tail, j.tail.lsn, &p, &len),
                     US_SHIP_OK);
    assert_memory_equal(p, whole + tail.offset, len);
    assert_int_equal(us_ship_next(&s, &j.tail, j.tail.lsn, &p, &len),
                     US_SHIP_WAIT);

    free(whole);
    us_ship_end(&s);
    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* while a reader has not come to the end, no file is removed */

static void
test_lock(void **state)
{
    int             dirfd;
    char            path[64];
    size_t          len;
    us_ship_t       s;
    us_ship_rc_t    rc;
    const uint8_t  *p;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 100, 1000, 30, 5, 0);
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &j.tail),
                     US_SHIP_OK);
    assert_int_equal(us_ship_next(&s, &j.tail, j.durable, &p, &len),
                     US_SHIP_OK);

    snapshot(&j);
    drop(&j);

    while ((rc = us_ship_next(&s, &j.tail, j.durable, &p, &len))
           == US_SHIP_OK)
    {
        /* void */
    }

    assert_int_equal(rc, US_SHIP_WAIT);
    assert_int_equal(s.at.tail.lsn, j.durable);

    drop(&j);
    us_ship_end(&s);
    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/*
 * A reader that is too slow loses the lock: it has the file that it reads, and
 * not the next one.
 */

static void
test_unlocked(void **state)
{
    int             dirfd;
    char            path[64];
    size_t          len, sent;
    unsigned        i;
    us_ship_t       s;
    us_ship_rc_t    rc;
    const uint8_t  *p;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 100, 1000, 30, 5, 0);
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &j.tail),
                     US_SHIP_OK);

    for (i = 0, sent = 0; i < 3; i++) {
        assert_int_equal(us_ship_next(&s, &j.tail, j.durable, &p, &len),
                         US_SHIP_OK);
        sent += len;
    }

    assert_int_equal(s.sent, sent);

    snapshot(&j);
    us_ship_unlock(&s);
    drop(&j);

    while ((rc = us_ship_next(&s, &j.tail, j.durable, &p, &len))
           == US_SHIP_OK)
    {
        sent += len;
    }

    assert_int_equal(rc, US_SHIP_GONE);
    assert_true(sent > 400 && sent < j.durable);

    us_ship_end(&s);
    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* what is not in memory: the same bytes, later; or a fault, when it is late */

static void
test_cold(void **state)
{
#ifdef RWF_NOWAIT

    int             dirfd;
    char            path[64];
    size_t          len, n;
    uint8_t        *warm, *buf;
    unsigned        i;
    us_ship_t       s;
    us_place_t      at;
    us_ship_rc_t    rc;
    const uint8_t  *p;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 100, 1000, 30, 5, 15);

    warm = ship(&j, NULL, &rc, &len);
    assert_int_equal(rc, US_SHIP_OK);

    for (cold.of = 2; cold.of < 40; cold.of++) {
        cold.n = cold.of - 1;
        cold.calls = 0;
        buf = ship(&j, NULL, &rc, &n);
        assert_int_equal(rc, US_SHIP_OK);
        assert_int_equal(n, len);
        assert_memory_equal(buf, warm, len);
        assert_true(cold.calls > cold.of);
        free(buf);
    }

    free(warm);

    /* a place in the middle */

    cold.of = 0;
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &j.tail),
                     US_SHIP_OK);

    for (i = 0; i < 2; i++) {
        assert_int_equal(us_ship_next(&s, &j.tail, j.durable, &p, &n),
                         US_SHIP_OK);
    }

    at = s.at;
    assert_true(at.tail.offset > US_SEGMENT_HEADER);
    us_ship_end(&s);

    /* the disk does not answer at all */

    cold.of = cold.n = 1;
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &j.tail),
                     US_SHIP_OK);

    while ((rc = us_ship_next(&s, &j.tail, j.durable, &p, &n))
           == US_SHIP_WAIT)
    {
        assert_true(s.readers != -1);
        i++;
    }

    assert_int_equal(rc, US_SHIP_FAILED);
    assert_int_equal(s.error.err, EAGAIN);
    assert_true(i >= US_SHIP_TRIES);
    us_ship_end(&s);

    /* whether a place is there cannot be said: of the first read, the third */

    for (cold.of = 1; cold.of < 4; cold.of += 2) {
        cold.calls = 1;
        assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, &at, &j.tail),
                         US_SHIP_FAILED);
        assert_int_equal(s.error.err, EAGAIN);
        us_ship_end(&s);
    }

    cold.of = 0;

    /* the disk has failed, and is well again: of a stream, and of a place */

    cold.failed = 1;
    cold.dropped = 0;
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, NULL, &j.tail),
                     US_SHIP_OK);

    for (i = 1; (rc = us_ship_next(&s, &j.tail, j.durable, &p, &n))
                == US_SHIP_WAIT; i++)
    {
        /* void */
    }

    assert_int_equal(rc, US_SHIP_OK);
    assert_int_equal(i, US_SHIP_AGAIN);
    us_ship_end(&s);

    cold.failed = 1;
    cold.dropped = 0;

    for (i = 0; i < 2; i++) {
        assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, &at, &j.tail),
                         i ? US_SHIP_OK : US_SHIP_FAILED);
        us_ship_end(&s);
    }

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);

#else

    skip();

#endif
}


static void
test_pace(void **state)
{
    us_pace_t  p = { US_SHIP_GRACE, 0, 0 };

    /* a lock uses up the time, whoever has it */

    assert_true(us_pace(&p, 1000, 0));
    p.held = 1;
    assert_true(us_pace(&p, 31000, 0));
    p.held = 2;
    assert_true(us_pace(&p, 31000 + US_SHIP_GRACE - 30001, 0));
    assert_false(us_pace(&p, 31000 + US_SHIP_GRACE - 30000, 0));

    /* bytes give some back */

    assert_true(us_pace(&p, 1000 + US_SHIP_GRACE, 2 * US_SHIP_PACE));
    assert_true(us_pace(&p, 2000 + US_SHIP_GRACE, 0));
    assert_false(us_pace(&p, 3000 + US_SHIP_GRACE, 0));

    /* so does time without one, by and by, up to what there was at first */

    p.held = 0;
    assert_true(us_pace(&p, 7000 + US_SHIP_GRACE, 0));
    p.held = 1;
    assert_false(us_pace(&p, 8000 + US_SHIP_GRACE, 0));
    p.held = 0;
    assert_true(us_pace(&p, 100 * US_SHIP_GRACE, 0));
    p.held = 1;
    assert_true(us_pace(&p, 101 * US_SHIP_GRACE - 1, 0));
    assert_false(us_pace(&p, 101 * US_SHIP_GRACE, 0));
}


/* a place whose counts are invented is refused, or ends at its file's footer */

static void
test_invented(void **state)
{
    int             dirfd;
    char            path[64];
    size_t          len;
    unsigned        i;
    us_ship_t       s;
    us_place_t      at[2], bad;
    us_ship_rc_t    rc;
    fake_reader_t   r;
    const uint8_t  *p;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    groups(&j, dirfd, 100, 1000, 1, 1, 0);
    reader_init(&r, 100);

    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    at[0] = r.at;

    for (i = 0; i < 30; i++) {
        assert_int_equal(fake_append(&j, 3), 0);
    }

    assert_int_equal(fake_sync(&j), 0);
    assert_int_equal(follow(&j, &r), US_SHIP_OK);
    at[1] = r.at;
    assert_true(at[0].tail.offset && at[1].tail.offset);

    for (i = 0; i < 2; i++) {
        bad = at[i];
        bad.tail.ids++;
        free(ship(&j, &bad, &rc, &len));
        assert_int_equal(rc, US_SHIP_GONE);

        bad = at[i];
        bad.tail.lsn--;
        free(ship(&j, &bad, &rc, &len));
        assert_int_equal(rc, US_SHIP_GONE);
    }

    bad = at[1];
    bad.tail.blocks++;
    free(ship(&j, &bad, &rc, &len));
    assert_int_equal(rc, US_SHIP_GONE);

    bad = at[0];
    bad.tail.blocks++;
    assert_int_equal(us_ship_begin(&s, dirfd, &fake_ops, &bad, &j.tail),
                     US_SHIP_OK);

    while ((rc = us_ship_next(&s, &j.tail, j.durable, &p, &len))
           == US_SHIP_OK)
    {
        /* void */
    }

    assert_int_equal(rc, US_SHIP_GONE);
    us_ship_end(&s);

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/* places as text: there and back, and texts that are none */

static void
test_place(void **state)
{
    char        text[US_PLACE_TEXT], again[US_PLACE_TEXT];
    size_t      i, len;
    us_place_t  at, back;

    memset(&at, 0xff, sizeof(us_place_t));
    at.kind = US_SEGMENT_SNAPSHOT;
    us_place_print(&at, text);
    len = strlen(text);
    assert_true(len < US_PLACE_TEXT - 1);

    assert_int_equal(us_place_parse(&back, text, len), 0);
    assert_memory_equal(back.uuid, at.uuid, 16);
    assert_int_equal(back.kind, at.kind);
    us_place_print(&back, again);
    assert_string_equal(text, again);

    for (i = 0; i < len; i++) {
        memcpy(again, text, len);
        again[i] = 'x';
        assert_int_equal(us_place_parse(&back, again, len), -1);
    }

    assert_int_equal(us_place_parse(&back, "", 0), -1);

    strcpy(text, "000102030405060708090a0b0c0d0e0f.1.j0.3f.0.0.0.0.0");
    assert_int_equal(us_place_parse(&back, text, strlen(text)), -1);
    strcpy(text, "000102030405060708090a0b0c0d0e0f.1.j0.40.0.0.0.0.0");
    assert_int_equal(us_place_parse(&back, text, strlen(text)), 0);
    strcat(text, "0000000000");
    assert_int_equal(us_place_parse(&back, text, strlen(text)), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_other_bytes),
        cmocka_unit_test(test_other_store),
        cmocka_unit_test(test_stale),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_unlocked),
        cmocka_unit_test(test_cold),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_invented),
        cmocka_unit_test(test_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
