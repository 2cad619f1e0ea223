
/*
 * What the end of a journal means, one rule a test; and failing disks: each
 * call of pwrite(), fdatasync(), fsync() and rename() fails once; so does a
 * readdir().
 */

#include "journal_fake.h"
#include "journal/us_crc32c.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <sys/syscall.h>


/* the n-th call from now on fails with fault_errno; writes half before */

static int       fault_errno;
static unsigned  fault_at;
static unsigned  fault_calls;
static unsigned  fault_syncs;
static int       fault_fd;            /* whose sync failed */


static int
fault(void)
{
    return fault_errno && ++fault_calls == fault_at;
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    if (fault()) {
        syscall(SYS_pwrite64, fd, p, len / 2, at);
        errno = fault_errno;
        return -1;
    }

    /* short writes are legal at any time */

    if (len > 100 && fault_errno) {
        len = len / 2;
    }

    return syscall(SYS_pwrite64, fd, p, len, at);
}


int
fsync(int fd)
{
    if (fault()) {
        fault_syncs++;
        fault_fd = fd;
        errno = fault_errno;
        return -1;
    }

    return 0;
}


int
fdatasync(int fd)
{
    return fsync(fd);
}


int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (fault()) {
        errno = fault_errno;
        return -1;
    }

    return (int) syscall(SYS_renameat, from_fd, from, to_fd, to);
}


static unsigned  fault_entry;         /* the entry that cannot be read */


struct dirent *
readdir(DIR *d)
{
    static struct dirent *(*next)(DIR *);

    if (next == NULL) {
        next = (struct dirent *(*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    }

    if (fault_entry && --fault_entry == 0) {
        errno = EIO;
        return NULL;
    }

    return next(d);
}


static int   dirfd_;
static char  path_[64];


static int
setup(void **state)
{
    fault_errno = 0;
    dirfd_ = fake_mkdir(path_);

    return 0;
}


static int
teardown(void **state)
{
    fault_errno = 0;
    fake_rmdir(path_, dirfd_);

    return 0;
}


/* a directory with several segments, the last of which has blocks */

static void
fill(fake_journal_t *j, const char *sync)
{
    fake_create(j, dirfd_, 200, 6000, sync);

    while (j->tail.segment == 0 || j->tail.offset < 4000) {
        assert_int_equal(fake_append(j, 3), 0);
    }

    assert_int_equal(fake_sync(j), 0);
}


static void
newest(const fake_journal_t *j, char *name)
{
    us_segment_name(name, US_SEGMENT_JOURNAL, j->tail.segment);
}


static void
spoil(const char *name, uint64_t at)
{
    size_t    len;
    uint8_t  *p;

    p = fake_read(dirfd_, name, &len);
    assert_true(at < len);
    p[at] ^= 0x10;
    fake_write(dirfd_, name, p, len);
    free(p);
}


static void
test_fresh(void **state)
{
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_FRESH);

    fill(&j, "1s");
    us_writer_close(&j.w);

    /* its manifest gone, it must not be taken for an empty one */

    assert_int_equal(unlinkat(dirfd_, "manifest", 0), 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_FAILED);
    assert_non_null(strstr(r.error.text, "manifest"));
}


static void
test_kill(void **state)
{
    char            name[US_DISK_NAME];
    size_t          len;
    uint8_t        *p;
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    us_writer_close(&j.w);
    newest(&j, name);

    /* a part of a block that no reply revealed: cut, and nothing is lost */

    p = fake_read(dirfd_, name, &len);
    p = realloc(p, len + 70);
    memcpy(p + len, p + US_SEGMENT_HEADER, 70);
    fake_write(dirfd_, name, p, len + 70);
    free(p);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, j.at.ops);
    assert_int_equal(r.cut, 70);
    assert_int_equal(r.lost, 0);
    assert_non_null(strstr(r.torn.text, name));
    assert_int_equal(fake_finish(&r, "1s"), 0);
    assert_int_equal(r.manifest.epoch, 1);

    /* it was cut, not only passed over */

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.cut, 0);
}


/* an end that was answered is cut off: the epoch rises, once */

static void
test_lost(void **state)
{
    char            name[US_DISK_NAME];
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    us_writer_close(&j.w);
    newest(&j, name);

    spoil(name, j.tail.offset - 10);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_true(r.cut > 0);
    assert_int_equal(r.lost, 1);
    assert_int_equal(r.lost_ids, j.at.ids - s.ids);
    assert_true(r.lost_ids > 0);
    assert_int_equal(fake_finish(&r, "1s"), 0);
    assert_int_equal(r.manifest.epoch, 2);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 0);
    assert_int_equal(fake_finish(&r, "1s"), 0);
    assert_int_equal(r.manifest.epoch, 2);
}


static void
test_power(void **state)
{
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    us_writer_close(&j.w);

    /* whole blocks may be missing without a trace */

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_NEXT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 1);

    /* not if it was closed in order */

    assert_int_equal(us_recovery_clean(dirfd_, r.lsn, r.ids, NULL), 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_NEXT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 0);

    /* nor if nothing is answered before it is durable */

    assert_int_equal(fake_finish(&r, "always"), 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 0);

    /* two starts whose boot id is not known: the machine may have restarted */

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, US_BOOT_UNKNOWN, 1),
                     US_RECOVERY_OK);
    assert_int_equal(fake_finish(&r, "1s"), 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, US_BOOT_UNKNOWN, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 1);
}


static void
test_clean_cut(void **state)
{
    char            name[US_DISK_NAME];
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "always");
    us_writer_close(&j.w);
    newest(&j, name);

    assert_int_equal(us_recovery_clean(dirfd_, j.tail.lsn, j.tail.ids, NULL),
                     0);
    spoil(name, j.tail.offset - 1);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_NEXT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(r.lost, 1);
    assert_int_equal(r.lost_ids, j.at.ids - s.ids);
}


/* valid blocks past the bad place: damage, and nothing is touched */

static void
test_middle(void **state)
{
    char            name[US_DISK_NAME];
    size_t          len, after;
    uint8_t        *p, *q;
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    us_writer_close(&j.w);
    newest(&j, name);

    spoil(name, 1000);
    p = fake_read(dirfd_, name, &len);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_DAMAGED);
    assert_non_null(strstr(r.error.text, name));
    assert_non_null(strstr(r.error.text, "valid blocks follow"));
    assert_true(s.ops > 0 && s.ops < j.at.ops);

    q = fake_read(dirfd_, name, &after);
    assert_int_equal(after, len);
    assert_memory_equal(p, q, len);
    free(p);
    free(q);

    /*
     * Nobody had synced when these blocks were written, so that a power
     * failure may have let them through out of order.
     */

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_NEXT, 1),
                     US_RECOVERY_OK);
    assert_true(r.cut > 0);
    assert_int_equal(r.lost, 1);
}


/* the same place, but a later block knows that it was durable */

static void
test_middle_durable(void **state)
{
    char            name[US_DISK_NAME];
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    assert_int_equal(fake_append(&j, 3), 0);
    us_writer_close(&j.w);
    newest(&j, name);

    spoil(name, 1000);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_NEXT, 1),
                     US_RECOVERY_DAMAGED);
}


/* a copy: what it lacks is sent again, and no answer is lost with it */

static void
test_copy(void **state)
{
    char             name[US_DISK_NAME];
    unsigned         i;
    fake_store_t     s;
    us_manifest_t    m;
    us_recovery_t    r;
    fake_journal_t   j;
    us_disk_error_t  e;

    static const char *const  boots[] = { FAKE_BOOT, FAKE_NEXT };

    for (i = 0; i < 2; i++) {
        fake_empty(dirfd_);
        fill(&j, "off");
        us_writer_close(&j.w);
        newest(&j, name);

        assert_int_equal(us_manifest_read(dirfd_, &m, &e), US_MANIFEST_OK);
        m.state = US_STATE_REPLICA;
        assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);

        spoil(name, 1000);

        /* a reader knows no more than of any other directory */

        memset(&s, 0, sizeof(s));
        s.max = 200;
        assert_int_equal(us_recovery_open(&r, dirfd_, &fake_ops, fake_apply, &s,
                                          boots[i]), US_RECOVERY_OK);
        r.whole = 1;
        assert_int_equal(us_recovery_run(&r, 0),
                         i ? US_RECOVERY_OK : US_RECOVERY_DAMAGED);
        us_recovery_close(&r);

        assert_int_equal(fake_recover(&r, &s, dirfd_, 200, boots[i], 1),
                         US_RECOVERY_OK);
        assert_true(s.ops > 0 && s.ops < j.at.ops);
        assert_true(r.cut > 0);
        assert_int_equal(r.lost, 0);
        assert_int_equal(r.lost_ids, 0);
    }
}


static void
test_missing(void **state)
{
    char            name[US_DISK_NAME];
    us_dir_t        dir;
    fake_store_t    s;
    us_recovery_t   r;
    fake_journal_t  j;

    fill(&j, "1s");
    us_writer_close(&j.w);
    newest(&j, name);

    /* the newest */

    assert_int_equal(unlinkat(dirfd_, name, 0), 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_DAMAGED);
    assert_non_null(strstr(r.error.text, "missing"));
    assert_true(s.ops > 0);

    /* the oldest */

    assert_int_equal(us_dir_read(dirfd_, &dir, NULL), 0);
    us_segment_name(name, US_SEGMENT_JOURNAL, dir.segments[0]);
    assert_int_equal(unlinkat(dirfd_, name, 0), 0);
    us_dir_free(&dir);

    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_DAMAGED);
    assert_int_equal(s.ops, 0);
}


/* a large snapshot is on its way to the disk before its last byte is written */

static struct {
    off_t     end;                    /* of what the kernel was told of */
    off_t     most;                   /* in one call */
} started;


int
sync_file_range(int fd, off_t at, off_t n, unsigned flags)
{
    assert_int_equal(at, started.end);
    assert_int_equal(flags, SYNC_FILE_RANGE_WRITE);
    started.end = at + n;
    started.most = n > started.most ? n : started.most;

    return 0;
}


static void
test_write_back(void **state)
{
    uint64_t         i;
    us_snapshot_t    snap;
    static uint8_t   op[70010];

    memset(&started, 0, sizeof(started));
    assert_int_equal(us_snapshot_begin(&snap, dirfd_, fake_uuid, 1,
                                       &fake_ops), 0);

    for (i = 0; snap.at.offset < 20 * 1024 * 1024; i++) {
        assert_int_equal(us_snapshot_out(&snap, op, fake_op(op, i, 70000)),
                         0);
    }

    assert_true(started.end > 14 * 1024 * 1024);
    assert_in_range(started.most, 1, 6 * 1024 * 1024);
    us_snapshot_end(&snap);
}


/* one who does not own the directory reads while it is written */

static void
test_follow(void **state)
{
    int                lock;
    unsigned           i;
    us_manifest_t      m;
    fake_store_t       s;
    us_recovery_t      r;
    us_snapshot_t      snap;
    fake_journal_t     j;
    static uint8_t     op[1024];

    fake_create(&j, dirfd_, 200, 6000, "1s");
    assert_int_equal(fake_append(&j, 3), 0);

    memset(&s, 0, sizeof(s));
    s.max = 200;
    assert_int_equal(us_recovery_open(&r, dirfd_, &fake_ops, fake_apply, &s,
                                      FAKE_BOOT), US_RECOVERY_OK);

    for (i = 0; i < 100; i++) {
        assert_int_equal(us_recovery_run(&r, 0), US_RECOVERY_OK);
        assert_int_equal(s.ops, j.at.ops);
        assert_int_equal(fake_append(&j, 1 + i % 7), 0);
    }

    /* what it has still to read is not removed under its hands */

    assert_int_equal(us_snapshot_begin(&snap, dirfd_, fake_uuid, 1,
                                       &fake_ops), 0);

    for (i = 0; i < j.at.ops; i++) {
        assert_int_equal(us_snapshot_out(&snap, op, fake_op(op, i, 200)), 0);
    }

    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(us_snapshot_finish(&snap, j.tail.lsn, &m), 0);
    us_snapshot_end(&snap);
    assert_int_equal(us_snapshot_drop(dirfd_, &m), 0);

    us_writer_close(&j.w);

    /* it becomes the owner */

    assert_int_equal(us_recovery_run(&r, 1), US_RECOVERY_OK);
    assert_int_equal(s.ops, j.at.ops);
    assert_memory_equal(&r.tail, &j.tail, sizeof(us_tail_t));
    us_recovery_close(&r);

    assert_true(us_snapshot_drop(dirfd_, &m) > 0);
    assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                     US_RECOVERY_OK);
    assert_int_equal(s.ops, j.at.ops);

    /* and only one can */

    lock = us_disk_lock(dirfd_, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);
    assert_int_not_equal(lock, -1);
    assert_int_equal(us_disk_lock(dirfd_, US_DIR_LOCK, O_RDWR,
                                  LOCK_EX|LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    (void) close(lock);
}


/*
 * Each call fails once, with ENOSPC and with EIO.  An append that failed is
 * tried again; a failed sync ends the writing, unless it is that of a new
 * file, which is made once more.  What comes back is all that succeeded.
 */

static void
test_faults(void **state)
{
    int              rc;
    size_t           k;
    unsigned         at, lost, again, syncs;
    us_tail_t        before;
    fake_store_t     s;
    us_recovery_t    r;
    fake_journal_t   j;

    lost = 0;
    again = 0;
    syncs = 0;

    for (k = 0; k < 2; k++) {
        for (at = 1; ; at++) {
            fault_errno = 0;
            fake_empty(dirfd_);
            fake_create(&j, dirfd_, 200, 3000, "1s");

            fault_calls = 0;
            fault_syncs = 0;
            fault_fd = -1;
            fault_at = at;
            fault_errno = k ? EIO : ENOSPC;

            while (j.at.ops < 90) {
                before = j.tail;
                rc = fake_append(&j, 5);

                if (rc == -1) {
                    again++;
                    assert_int_not_equal(fault_fd, dirfd_);
                    assert_int_equal(j.tail.lsn, before.lsn);
                    assert_int_equal(j.w.error.err, fault_errno);
                    assert_non_null(strstr(j.w.error.text, "failed"));
                    continue;
                }

                if (rc == US_WRITER_LOST
                    || (j.at.ops % 20 == 0 && fake_sync(&j) != 0))
                {
                    assert_int_equal(fault_syncs, 1);
                    lost++;
                    break;
                }
            }

            syncs += fault_syncs;
            us_writer_close(&j.w);
            rc = (fault_calls < at);
            fault_errno = 0;

            assert_int_equal(fake_recover(&r, &s, dirfd_, 200, FAKE_BOOT, 1),
                             US_RECOVERY_OK);
            assert_int_equal(s.ops, j.at.ops);
            assert_int_equal(r.lost, 0);

            if (rc) {
                break;
            }
        }
    }

    print_message("%u calls failed: %u tried again, %u ended it\n", 2 * at,
                  again, lost);
    assert_true(again > 20);
    assert_true(lost > 4);
}


static void
test_manifest(void **state)
{
    char             text[100];
    size_t           len;
    us_manifest_t    m, n;
    us_disk_error_t  e;

    assert_int_equal(us_manifest_read(dirfd_, &n, &e), US_MANIFEST_NONE);

    memset(&m, 0, sizeof(m));
    m.version = 1;
    memcpy(m.uuid, fake_uuid, 16);
    m.epoch = 77;
    m.state = US_STATE_OPEN;
    strcpy(m.boot, FAKE_BOOT);
    strcpy(m.sync, "always");
    m.has_snapshot = 1;
    m.snapshot = 0x123456789abc;
    m.end = 5;
    m.end_ids = 6;
    assert_int_equal(us_manifest_set(&m, "norm", us_string("a b  c")), 0);
    assert_int_equal(us_manifest_set(&m, "marks", us_string("x,y")), 0);
    assert_int_equal(us_manifest_set(&m, "bad", us_string("x\ny")), -1);

    assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);
    assert_int_equal(us_manifest_read(dirfd_, &n, &e), US_MANIFEST_OK);
    assert_memory_equal(&m, &n, sizeof(m));

    assert_int_equal(us_manifest_setting(&n, "norm", text, sizeof(text)), 0);
    assert_string_equal(text, "a b  c");
    assert_int_equal(us_manifest_setting(&n, "marks", text, sizeof(text)), 0);
    assert_string_equal(text, "x,y");
    assert_int_equal(us_manifest_setting(&n, "mark", text, sizeof(text)), -1);
    assert_int_equal(us_manifest_setting(&n, "norm", text, 6), -1);

    /* with operations of claims; of a shard; of a program to come */

    m.version = 2;
    assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);
    assert_int_equal(us_manifest_read(dirfd_, &n, &e), US_MANIFEST_OK);
    assert_int_equal(n.version, 2);

    m.version = 3;
    assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);
    assert_int_equal(us_manifest_read(dirfd_, &n, &e), US_MANIFEST_OK);
    assert_int_equal(n.version, 3);

    m.version = US_MANIFEST_VERSION + 1;
    assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);
    assert_int_equal(us_manifest_read(dirfd_, &n, &e),
                     US_MANIFEST_VERSION_OTHER);
    snprintf(text, sizeof(text), "format version %d", US_MANIFEST_VERSION + 1);
    assert_non_null(strstr(e.text, text));
    snprintf(text, sizeof(text), "up to %d", US_MANIFEST_VERSION);
    assert_non_null(strstr(e.text, text));

    /* a zero byte under a good CRC */

    len = sprintf(text, "urlstore data 1?\n");
    text[len - 2] = '\0';
    len += sprintf(text + len, "crc32c %08x\n", us_crc32c(0, text, len));
    fake_write(dirfd_, US_MANIFEST_NAME, (uint8_t *) text, len);
    assert_int_equal(us_manifest_read(dirfd_, &n, &e), US_MANIFEST_BAD);

    us_manifest_boot(text);
    assert_true(strlen(text) == US_BOOT_ID || strcmp(text, "unknown") == 0);
}


/* the watermark as it is written, of another version, and damaged */

static void
test_watermark(void **state)
{
    size_t          len;
    uint8_t        *p;
    us_watermark_t  mark, got;

    assert_int_equal(us_watermark_read(dirfd_, &got), -1);

    memset(&mark, 0, sizeof(mark));
    memcpy(mark.uuid, fake_uuid, 16);
    strcpy(mark.boot, FAKE_BOOT);
    mark.written = 0x123456789a;
    mark.durable = 0x1234567890;
    mark.ids = 0x700000001;
    mark.deleted = 0x1234560000;
    us_watermark_write(dirfd_, &mark);

    memset(&got, 0, sizeof(got));    /* what lies between two members, too */
    assert_int_equal(us_watermark_read(dirfd_, &got), 0);
    assert_memory_equal(&got, &mark, sizeof(mark));

    p = fake_read(dirfd_, US_WATERMARK_NAME, &len);
    assert_int_equal(len, 112);

    us_put32(p + 8, 1);
    us_put32(p + 108, us_crc32c(0, p, 108));
    fake_write(dirfd_, US_WATERMARK_NAME, p, len);
    assert_int_equal(us_watermark_read(dirfd_, &got), -1);

    us_put32(p + 8, 2);
    us_put32(p + 108, us_crc32c(0, p, 108));
    fake_write(dirfd_, US_WATERMARK_NAME, p, len);
    assert_int_equal(us_watermark_read(dirfd_, &got), 0);

    p[100] ^= 1;
    fake_write(dirfd_, US_WATERMARK_NAME, p, len);
    assert_int_equal(us_watermark_read(dirfd_, &got), -1);
    fake_write(dirfd_, US_WATERMARK_NAME, p, 100);
    assert_int_equal(us_watermark_read(dirfd_, &got), -1);
    free(p);
}


/* a directory that cannot be read is not an empty one */

static void
test_readdir(void **state)
{
    us_dir_t         dir;
    unsigned         at, n;
    fake_journal_t   j;
    us_disk_error_t  e;

    fill(&j, "1s");
    us_writer_close(&j.w);

    assert_int_equal(us_dir_read(dirfd_, &dir, &e), 0);
    n = dir.nsegments;
    us_dir_free(&dir);

    for (at = 1; at <= n; at++) {
        fault_entry = at;
        assert_int_equal(us_dir_read(dirfd_, &dir, &e), -1);
        assert_int_equal(e.err, EIO);
        assert_int_equal(fault_entry, 0);
    }
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(test_fresh),
        test(test_kill),
        test(test_lost),
        test(test_power),
        test(test_clean_cut),
        test(test_middle),
        test(test_middle_durable),
        test(test_copy),
        test(test_missing),
        test(test_follow),
        test(test_write_back),
        test(test_faults),
        test(test_readdir),
        test(test_manifest),
        test(test_watermark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
