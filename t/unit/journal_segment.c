
/*
 * Segments and snapshots written and read back; then every truncation, bit
 * flips and exchanged blocks: found, and nothing wrong is ever given back
 * (fake_apply() asserts each byte).
 *
 * US_FULL: all 131,072 bits of 16 KiB and 10,000 exchanges, else a part.
 */

#include "journal_fake.h"
#include "journal/us_crc32c.h"

#include <inttypes.h>


static int
full(void)
{
    return getenv("US_FULL") != NULL;
}


static void
test_round_trip(void **state)
{
    int                dirfd;
    char               path[64];
    size_t             n;
    unsigned           i;
    us_dir_t           dir;
    fake_store_t       s;
    us_recovery_t      r;
    fake_journal_t     j;

    dirfd = fake_mkdir(path);

    /*
     * Operations of up to 70,000 bytes do not fit a block's usual size, and 99
     * of them not an append.
     */

    fake_create(&j, dirfd, 70000, 1024 * 1024, "1s");

    for (i = 0; i < 200; i++) {
        assert_int_equal(fake_append(&j, i % 40 == 3 ? 99 : 1 + i % 9), 0);

        if (i % 50 == 0) {
            assert_int_equal(fake_sync(&j), 0);
        }
    }

    us_writer_close(&j.w);

    assert_int_equal(us_dir_read(dirfd, &dir, NULL), 0);
    n = dir.nsegments;
    assert_true(n > 5);
    us_dir_free(&dir);

    assert_int_equal(fake_recover(&r, &s, dirfd, 70000, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, j.at.ops);
    assert_int_equal(s.ids, j.at.ids);
    assert_int_equal(r.lsn, j.tail.lsn);
    assert_int_equal(r.ids, j.tail.ids);
    assert_int_equal(r.cut, 0);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.done, r.total - US_SEGMENT_HEADER * n
                     - US_BLOCK_HEADER * (n - 1)
                     - (r.tail.offset ? 0 : US_BLOCK_HEADER));
    assert_memory_equal(&r.tail, &j.tail, sizeof(us_tail_t));

    fake_rmdir(path, dirfd);
}


/* the writer goes on from a recovered tail, and one from another's */

static void
test_go_on(void **state)
{
    int             dirfd;
    char            path[64], name[US_DISK_NAME];
    size_t          len;
    uint8_t        *p;
    unsigned        i;
    us_tail_t       tail;
    us_writer_t     other;
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 300, 4096, "1s");

    for (i = 0; i < 50; i++) {
        assert_int_equal(fake_append(&j, 7), 0);

        /* killed after a write that nobody heard of */

        tail = j.tail;

        if (i % 3 == 0 && tail.offset) {
            us_segment_name(name, US_SEGMENT_JOURNAL, tail.segment);
            p = fake_read(dirfd, name, &len);
            p = realloc(p, len + 100);
            memset(p + len, i, 100);
            fake_write(dirfd, name, p, len + 100);
            free(p);
        }

        us_writer_init(&other, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);
        other.limit = 4096;
        assert_int_equal(us_writer_attach(&other, &tail), 0);

        us_writer_close(&j.w);
        j.w = other;
    }

    us_writer_close(&j.w);

    assert_int_equal(fake_recover(&r, &s, dirfd, 300, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, 350);
    assert_int_equal(r.cut, 0);

    fake_rmdir(path, dirfd);
}


/*
 * A sync that has failed in another process is final for all: what the disk has
 * of that segment is not known any more.
 */

static void
test_sync_elsewhere(void **state)
{
    int             dirfd;
    char            path[64];
    us_watch_t      watch;
    fake_journal_t  j;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 300, 4096, "1s");
    memset(&watch, 0, sizeof(us_watch_t));
    j.w.watch = &watch;

    assert_int_equal(fake_append(&j, 5), 0);
    assert_int_equal(fake_sync(&j), 0);
    assert_int_equal(fake_append(&j, 5), 0);
    us_watch_fail(&watch);
    assert_int_equal(us_writer_sync(&j.w, &j.tail), US_WRITER_LOST);
    assert_non_null(strstr(j.w.error.text, "failed in another process"));

    /* also of what was sealed by then */

    j.w.error.text[0] = '\0';
    j.tail.offset = 0;
    assert_int_equal(us_writer_sync(&j.w, &j.tail), US_WRITER_LOST);
    assert_non_null(strstr(j.w.error.text, "failed in another process"));

    us_writer_close(&j.w);
    fake_rmdir(path, dirfd);
}


/*
 * A segment that begins where it is wanted to: at an operation of the middle of
 * an append, which ends there; at the next one, if that operation is past.
 */

static void
test_roll(void **state)
{
    int              dirfd;
    char             path[64];
    uint8_t          op[512];
    unsigned         i, rolls;
    uint64_t         lsn, segment;
    fake_store_t     s;
    us_recovery_t    r;
    fake_journal_t   j;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 300, 1 << 20, "1s");

    for (i = 0, rolls = 0; i < 60; i++) {
        segment = j.tail.segment;
        lsn = j.tail.lsn;

        switch (i % 3) {

        case 0:                              /* before the tail */
            j.w.roll = i % 2 || i == 0 ? lsn : segment + 1;
            assert_int_equal(fake_append(&j, 5), 0);
            assert_int_equal(j.tail.segment,
                             segment < j.w.roll ? lsn : segment);
            rolls += segment < j.w.roll;
            break;

        case 1:                              /* no other one for that */
            assert_int_equal(fake_append(&j, 5), 0);
            assert_int_equal(j.tail.segment, segment);
            break;

        case 2:                              /* the third operation to come */
            j.w.roll = lsn + fake_op(op, j.at.ops, j.at.max);
            j.w.roll += fake_op(op, j.at.ops + 1, j.at.max);
            assert_int_equal(fake_append(&j, 5), 0);
            assert_int_equal(j.tail.segment, j.w.roll);
            rolls++;
            break;
        }
    }

    assert_true(rolls > 30);
    us_writer_close(&j.w);

    assert_int_equal(fake_recover(&r, &s, dirfd, 300, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, 300);
    assert_int_equal(r.cut, 0);

    fake_rmdir(path, dirfd);
}


/*
 * A writer is killed between a new segment's begin, or the write to it, and the
 * store of the tail.  The end of the segment before stays as it is, also if the
 * next writer does nothing; and if that one knows of a later operation that is
 * to begin a segment, the first is sealed where it was all the same.
 */

static void
test_roll_killed(void **state)
{
    int              dirfd;
    char             path[64], name[US_DISK_NAME];
    size_t           len;
    uint8_t         *p, op[512];
    unsigned         i;
    us_tail_t        tail;
    fake_store_t     at;
    fake_store_t     s;
    us_recovery_t    r;
    fake_journal_t   j;

    for (i = 0; i < 8; i++) {
        dirfd = fake_mkdir(path);
        fake_create(&j, dirfd, 300, 1 << 20, "1s");

        assert_int_equal(fake_append(&j, 5), 0);

        tail = j.tail;
        at = j.at;
        j.w.roll = tail.lsn;

        assert_int_equal(fake_append(&j, 2), 0);
        assert_int_equal(j.tail.segment, tail.lsn);

        us_writer_close(&j.w);
        j.tail = tail;
        j.at = at;

        if (i & 1) {
            us_segment_name(name, US_SEGMENT_JOURNAL, tail.lsn);
            p = fake_read(dirfd, name, &len);
            assert_true(len > US_SEGMENT_HEADER);
            fake_write(dirfd, name, p, US_SEGMENT_HEADER);
            free(p);
        }

        us_writer_init(&j.w, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);

        assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
        assert_int_equal(us_writer_mark(&j.w, &j.tail, 0, 0), 0);

        if (i & 2) {
            us_writer_close(&j.w);
            us_writer_init(&j.w, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);
            assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
        }

        if (i & 4) {
            j.w.roll = tail.lsn + fake_op(op, at.ops, at.max);
            assert_int_equal(fake_append(&j, 5), 0);
            assert_int_equal(j.tail.segment, j.w.roll);
            assert_int_equal(fake_append(&j, 5), 0);
        }

        us_writer_close(&j.w);

        assert_int_equal(fake_recover(&r, &s, dirfd, 300, FAKE_BOOT, 1),
                         US_RECOVERY_OK);
        assert_int_equal(s.ops, i & 4 ? 15 : i & 1 ? 5 : 7);
        assert_int_equal(r.lost, 0);

        fake_rmdir(path, dirfd);
    }
}


/*
 * The newest segment cut at every byte: what is left is a prefix, the cut is
 * reported, and lost ids are counted.  An older one: damage, and a prefix.
 */

static void
test_truncate(void **state)
{
    int              dirfd;
    char             path[64], name[US_DISK_NAME];
    size_t           len, cut, step;
    uint8_t         *p;
    us_dir_t         dir;
    fake_store_t     s;
    us_recovery_t    r;
    fake_journal_t   j;
    us_recovery_rc_t rc;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 200, 6000, "1s");

    while (j.tail.segment == 0 || j.tail.offset < 5000) {
        assert_int_equal(fake_append(&j, 3), 0);
    }

    us_writer_close(&j.w);

    us_segment_name(name, US_SEGMENT_JOURNAL, j.tail.segment);
    p = fake_read(dirfd, name, &len);

    for (cut = 0; cut < len; cut++) {
        fake_write(dirfd, name, p, cut);

        rc = fake_recover(&r, &s, dirfd, 200, FAKE_BOOT, 1);

        if (cut < US_SEGMENT_HEADER) {
            assert_int_equal(rc, US_RECOVERY_DAMAGED);
            continue;
        }

        assert_int_equal(rc, US_RECOVERY_OK);
        assert_true(s.ops < j.at.ops);
        assert_int_equal(r.lost, 1);
        assert_int_equal(r.lost_ids, j.at.ids - s.ids);
        assert_int_equal(r.tail.offset + r.cut, cut);
    }

    fake_write(dirfd, name, p, len);
    free(p);

    assert_int_equal(us_dir_read(dirfd, &dir, NULL), 0);
    us_segment_name(name, US_SEGMENT_JOURNAL, dir.segments[0]);
    us_dir_free(&dir);

    p = fake_read(dirfd, name, &len);
    step = full() ? 1 : 7;

    for (cut = 0; cut < len; cut += step) {
        fake_write(dirfd, name, p, cut);

        assert_int_equal(fake_recover(&r, &s, dirfd, 200, FAKE_BOOT, 1),
                         US_RECOVERY_DAMAGED);
        assert_true(s.ops < j.at.ops);
        assert_non_null(strstr(r.error.text, name));
    }

    free(p);
    fake_rmdir(path, dirfd);
}


/*
 * Any bit of the directory's files.  In the newest segment's last block a
 * changed bit looks like a crash, but the watermark knows better: lost.
 */

static void
test_flip(void **state)
{
    int               dirfd, f;
    char              path[64], names[4][US_DISK_NAME];
    size_t            len, bit, step;
    uint8_t          *p;
    us_dir_t          dir;
    uint64_t          found, tried;
    fake_store_t      s;
    us_recovery_t     r;
    us_snapshot_t     snap;
    us_manifest_t     m;
    fake_journal_t    j;
    us_recovery_rc_t  rc;
    static uint8_t    op[1024];

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 200, 6000, "1s");

    while (j.at.bytes < 9000) {
        assert_int_equal(fake_append(&j, 5), 0);
    }

    assert_int_equal(fake_sync(&j), 0);

    /* the fake stream is never void: the snapshot is the stream itself */

    assert_int_equal(us_snapshot_begin(&snap, dirfd, fake_uuid, 1, &fake_ops),
                     0);

    for (f = 0; f < (int) j.at.ops; f++) {
        len = fake_op(op, f, 200);
        assert_int_equal(us_snapshot_out(&snap, op, len), 0);
    }

    assert_int_equal(us_manifest_read(dirfd, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(us_snapshot_finish(&snap, j.tail.lsn, &m), 0);
    us_snapshot_end(&snap);

    while (j.at.bytes < 20000) {
        assert_int_equal(fake_append(&j, 5), 0);
    }

    us_writer_close(&j.w);

    assert_int_equal(fake_recover(&r, &s, dirfd, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, j.at.ops);
    assert_int_equal(us_snapshot_drop(dirfd, &m), 1);

    assert_int_equal(us_dir_read(dirfd, &dir, NULL), 0);
    assert_int_equal(dir.nsegments, 3);
    us_segment_name(names[0], US_SEGMENT_JOURNAL, dir.segments[1]);
    us_segment_name(names[1], US_SEGMENT_JOURNAL, dir.segments[2]);
    us_segment_name(names[2], US_SEGMENT_SNAPSHOT, dir.snapshots[0]);
    strcpy(names[3], US_MANIFEST_NAME);
    us_dir_free(&dir);

    found = 0;
    tried = 0;

    for (f = 0; f < 4; f++) {
        p = fake_read(dirfd, names[f], &len);
        step = full() ? 1 : 13;

        for (bit = 0; bit < len * 8; bit += step) {
            p[bit / 8] ^= 1 << bit % 8;
            fake_write(dirfd, names[f], p, len);
            p[bit / 8] ^= 1 << bit % 8;

            rc = fake_recover(&r, &s, dirfd, 200, FAKE_BOOT, 1);

            tried++;
            if (rc == US_RECOVERY_DAMAGED || rc == US_RECOVERY_FAILED
                || (rc == US_RECOVERY_OK && r.lost && r.cut))
            {
                found++;

            } else {
                print_message("not found: bit %zu of \"%s\"\n", bit,
                              names[f]);
            }
        }

        fake_write(dirfd, names[f], p, len);
        free(p);
    }

    print_message("%" PRIu64 " bits flipped\n", tried);
    assert_int_equal(found, tried);
    assert_true(tried > (full() ? 131072 : 10000));

    assert_int_equal(fake_recover(&r, &s, dirfd, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);

    fake_rmdir(path, dirfd);
}


/* two blocks of a segment or of two exchanged, one doubled, one left out */

static void
test_swap(void **state)
{
    int              dirfd;
    char             path[64], name[US_DISK_NAME];
    size_t           len, i, k, n, at[64], size[64], out;
    uint8_t         *p, *q;
    uint64_t         round, rounds, r64;
    us_block_t       b;
    us_reader_t      reader;
    const uint8_t   *payload;
    fake_store_t     s;
    us_recovery_t    r;
    fake_journal_t   j;
    us_recovery_rc_t rc;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 100, 1024 * 1024, "1s");

    while (j.at.ops < 64 * 4) {
        assert_int_equal(fake_append(&j, 4), 0);
    }

    us_writer_close(&j.w);
    us_segment_name(name, US_SEGMENT_JOURNAL, 0);

    assert_int_equal(us_reader_open(&reader, dirfd, name, US_SEGMENT_JOURNAL,
                                    fake_uuid, &fake_ops, US_READ_CACHE),
                     US_READ_BLOCK);

    for (n = 0; /* void */ ; n++) {
        i = reader.at.offset;

        if (us_reader_next(&reader, &b, &payload) != US_READ_BLOCK) {
            break;
        }

        at[n] = i;
        size[n] = reader.at.offset - i;
    }

    us_reader_close(&reader);
    assert_int_equal(n, 64);

    p = fake_read(dirfd, name, &len);
    q = malloc(2 * len);
    rounds = full() ? 10000 : 1000;

    for (round = 0; round < rounds; round++) {
        r64 = fake_mix(round);
        i = r64 % 64;
        k = (i + 1 + (r64 >> 8) % 63) % 64;

        memcpy(q, p, US_SEGMENT_HEADER);
        out = US_SEGMENT_HEADER;

        for (n = 0; n < 64; n++) {
            size_t  from;

            from = (n == i) ? k : (n == k && r64 >> 63) ? i : n;

            memcpy(q + out, p + at[from], size[from]);
            out += size[from];
        }

        fake_write(dirfd, name, q, out);

        rc = fake_recover(&r, &s, dirfd, 100, FAKE_BOOT, 1);

        assert_true(s.ops <= 4 * ((r64 >> 63) ? (i < k ? i : k) : i));
        assert_true(rc == US_RECOVERY_DAMAGED
                    || (rc == US_RECOVERY_OK && r.lost));
    }

    free(p);
    free(q);
    fake_rmdir(path, dirfd);
}


static void
test_version(void **state)
{
    int              dirfd;
    char             path[64], name[US_DISK_NAME];
    size_t           len, after;
    uint8_t         *p, *q;
    us_manifest_t    m;
    fake_store_t     s;
    us_recovery_t    r;
    us_disk_error_t  e;
    fake_journal_t   j;
    us_segment_head_t head;

    dirfd = fake_mkdir(path);
    fake_create(&j, dirfd, 100, 1024 * 1024, "1s");
    assert_int_equal(fake_append(&j, 4), 0);
    us_writer_close(&j.w);

    us_segment_name(name, US_SEGMENT_JOURNAL, 0);
    p = fake_read(dirfd, name, &len);

    memset(&head, 0, sizeof(head));
    memcpy(head.uuid, fake_uuid, 16);
    head.epoch = 1;
    us_segment_head_write(p, &head);
    us_put32(p + 8, 2);
    us_put32(p + 60, us_crc32c(0, p, 60));
    fake_write(dirfd, name, p, len);

    assert_int_equal(fake_recover(&r, &s, dirfd, 100, FAKE_BOOT, 1),
                     US_RECOVERY_DAMAGED);
    assert_non_null(strstr(r.error.text, "format version 2"));
    assert_int_equal(s.ops, 0);

    q = fake_read(dirfd, name, &after);
    assert_int_equal(after, len);
    assert_memory_equal(p, q, len);
    free(p);
    free(q);

    /* a manifest of a later program */

    assert_int_equal(us_manifest_read(dirfd, &m, &e), US_MANIFEST_OK);
    p = fake_read(dirfd, US_MANIFEST_NAME, &len);
    p[len] = '\0';
    memcpy(p, "urlstore data 8", 15);
    sprintf((char *) p + len - 16, "crc32c %08x\n",
            us_crc32c(0, p, len - 16));
    fake_write(dirfd, US_MANIFEST_NAME, p, len);
    free(p);

    assert_int_equal(us_manifest_read(dirfd, &m, &e),
                     US_MANIFEST_VERSION_OTHER);
    assert_non_null(strstr(e.text, "version 8"));
    assert_int_equal(fake_recover(&r, &s, dirfd, 100, FAKE_BOOT, 1),
                     US_RECOVERY_FAILED);

    fake_rmdir(path, dirfd);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_go_on),
        cmocka_unit_test(test_sync_elsewhere),
        cmocka_unit_test(test_roll),
        cmocka_unit_test(test_roll_killed),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
