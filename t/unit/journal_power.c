
/*
 * Power failures.  A run of the journal is recorded: every write, truncation,
 * sync, creation, rename and removal.  For each length of the record the disk
 * may hold, after a failure at that moment,
 *
 *     what was synced;  of the rest any choice, in sectors of 512 bytes, and
 *     the file of any size in between;  of the changes to the directory since
 *     its last sync any choice
 *
 * Images are drawn from that, as many as US_IMAGES says, and recovered.  It
 * must succeed, give back a prefix of what was written (fake_apply() asserts
 * each byte), all that was durable, and nothing may be answered as lost under
 * sync=always.  Some images are written on and recovered once more.
 *
 * The same is done with a store, of which sets are made, filled, emptied and
 * dropped: after each image they are what they were when the operation was
 * written that is the last one in it.
 */

#include "journal_fake.h"
#include "store_zone.h"
#include "stream.h"
#include "same.h"
#include "life/us_data.h"

#include <inttypes.h>
#include <sys/syscall.h>


#define DISK_FILES   4096
#define DISK_SECTOR  512


typedef enum {
    DISK_CREATE, DISK_WRITE, DISK_CUT, DISK_SYNC, DISK_NAME, DISK_REMOVE,
    DISK_SYNC_DIR, DISK_DURABLE
} disk_kind_t;


typedef struct {
    disk_kind_t   kind;
    int           file;
    char          name[US_DISK_NAME];
    uint8_t      *data;
    size_t        len;
    uint64_t      at;                 /* offset, size, or durable LSN */
} disk_op_t;


typedef struct {
    uint8_t      *data;
    size_t        len;
    size_t        room;
} disk_file_t;


typedef struct {
    char          name[US_DISK_NAME];
    int           file;
} disk_entry_t;


static int           recording;
static int           record_dirfd;
static disk_op_t    *record;
static size_t        nrecord;
static int           nfiles;
static int           file_of_fd[1024];
static disk_entry_t  entries[64];
static size_t        nentries;


/* whether fd is the directory, by this descriptor or another one */

static int
record_dir(int fd)
{
    struct stat  st, dir;

    return fstat(fd, &st) == 0 && fstat(record_dirfd, &dir) == 0
           && st.st_ino == dir.st_ino && st.st_dev == dir.st_dev;
}


static disk_op_t *
record_op(disk_kind_t kind, int file)
{
    disk_op_t  *op;

    if ((nrecord & (nrecord - 1)) == 0) {
        record = realloc(record, (nrecord ? nrecord * 2 : 1)
                                 * sizeof(disk_op_t));
        assert_non_null(record);
    }

    op = &record[nrecord++];
    memset(op, 0, sizeof(disk_op_t));
    op->kind = kind;
    op->file = file;

    return op;
}


static disk_entry_t *
find_entry(disk_entry_t *list, size_t n, const char *name)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }

    return NULL;
}


static void
set_entry(disk_entry_t *list, size_t *n, const char *name, int file)
{
    disk_entry_t  *e;

    e = find_entry(list, *n, name);

    if (e == NULL) {
        assert_true(*n < 64);
        e = &list[(*n)++];
        snprintf(e->name, sizeof(e->name), "%s", name);
    }

    e->file = file;
}


static void
remove_entry(disk_entry_t *list, size_t *n, const char *name)
{
    disk_entry_t  *e;

    e = find_entry(list, *n, name);

    if (e) {
        *e = list[--*n];
    }
}


/* what libus calls: recorded, then done */

int
openat(int dirfd, const char *name, int flags, ...)
{
    int            fd, mode;
    va_list        args;
    disk_op_t     *op;
    disk_entry_t  *e;

    va_start(args, flags);
    mode = (flags & O_CREAT) ? va_arg(args, int) : 0;
    va_end(args);

    fd = (int) syscall(SYS_openat, dirfd, name, flags, mode);

    if (fd == -1 || !recording || !record_dir(dirfd) || fd >= 1024) {
        return fd;
    }

    e = find_entry(entries, nentries, name);

    if (e == NULL && (flags & O_CREAT)) {
        assert_true(nfiles < DISK_FILES);
        op = record_op(DISK_CREATE, nfiles);
        snprintf(op->name, sizeof(op->name), "%s", name);
        set_entry(entries, &nentries, name, nfiles++);
        e = find_entry(entries, nentries, name);

    } else if (e && (flags & O_TRUNC)) {
        record_op(DISK_CUT, e->file)->at = 0;
    }

    file_of_fd[fd] = e ? e->file : -1;

    return fd;
}


ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    disk_op_t  *op;

    if (recording && fd < 1024 && file_of_fd[fd] != -1) {
        op = record_op(DISK_WRITE, file_of_fd[fd]);
        op->data = malloc(len);
        assert_non_null(op->data);
        memcpy(op->data, p, len);
        op->len = len;
        op->at = at;
    }

    return syscall(SYS_pwrite64, fd, p, len, at);
}


int
ftruncate(int fd, off_t size)
{
    if (recording && fd < 1024 && file_of_fd[fd] != -1) {
        record_op(DISK_CUT, file_of_fd[fd])->at = size;
    }

    return (int) syscall(SYS_ftruncate, fd, size);
}


int
fsync(int fd)
{
    if (recording) {
        if (record_dir(fd)) {
            record_op(DISK_SYNC_DIR, -1);

        } else if (fd < 1024 && file_of_fd[fd] != -1) {
            record_op(DISK_SYNC, file_of_fd[fd]);
        }
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
    disk_op_t     *op;
    disk_entry_t  *e;

    if (recording && record_dir(from_fd)) {
        e = find_entry(entries, nentries, from);
        assert_non_null(e);

        op = record_op(DISK_NAME, e->file);
        snprintf(op->name, sizeof(op->name), "%s", to);
        set_entry(entries, &nentries, to, op->file);

        op = record_op(DISK_REMOVE, op->file);
        snprintf(op->name, sizeof(op->name), "%s", from);
        remove_entry(entries, &nentries, from);
    }

    return (int) syscall(SYS_renameat, from_fd, from, to_fd, to);
}


int
unlinkat(int dirfd, const char *name, int flags)
{
    disk_op_t  *op;

    if (recording && record_dir(dirfd)) {
        op = record_op(DISK_REMOVE, -1);
        snprintf(op->name, sizeof(op->name), "%s", name);
        remove_entry(entries, &nentries, name);
    }

    return (int) syscall(SYS_unlinkat, dirfd, name, flags);
}


/* draws and writes an image */

static void
file_resize(disk_file_t *f, size_t len)
{
    if (len > f->room) {
        f->room = len * 2;
        f->data = realloc(f->data, f->room);
        assert_non_null(f->data);
    }

    if (len > f->len) {
        memset(f->data + f->len, 0, len - f->len);
    }

    f->len = len;
}


static void
file_write(disk_file_t *f, const disk_op_t *op, uint64_t *seed, int all)
{
    size_t  i, n;

    for (i = 0; i < op->len; i += n) {
        n = DISK_SECTOR - (op->at + i) % DISK_SECTOR;
        n = (n > op->len - i) ? op->len - i : n;

        *seed = fake_mix(*seed);

        if (!all && *seed % 3 == 0) {
            continue;
        }

        if (op->at + i + n > f->len) {
            file_resize(f, op->at + i + n);
        }

        memcpy(f->data + op->at + i, op->data + i, n);
    }

    /* the size may have reached the disk without the bytes */

    *seed = fake_mix(*seed);

    if (op->at + op->len > f->len && (all || *seed % 2)) {
        file_resize(f, op->at + op->len);
    }
}


static uint64_t
draw(size_t crash, uint64_t seed, int dirfd)
{
    size_t               i, k, n, *synced, dir_synced;
    uint64_t             durable;
    disk_op_t           *op;
    disk_entry_t         list[64];
    static disk_file_t   files[DISK_FILES];

    synced = calloc(nfiles, sizeof(size_t));
    assert_non_null(synced);
    dir_synced = 0;
    durable = 0;

    for (i = 0; i < crash; i++) {
        op = &record[i];

        if (op->kind == DISK_SYNC) {
            synced[op->file] = i;

        } else if (op->kind == DISK_SYNC_DIR) {
            dir_synced = i;

        } else if (op->kind == DISK_DURABLE) {
            durable = op->at;
        }
    }

    for (i = 0; i < (size_t) nfiles; i++) {
        files[i].len = 0;
    }

    n = 0;

    for (i = 0; i < crash; i++) {
        op = &record[i];

        /* one in eight images: all that was written, in order */
        k = (seed % 8 == 0);

        switch (op->kind) {

        case DISK_WRITE:
            file_write(&files[op->file], op, &seed,
                       k || i < synced[op->file]);
            break;

        case DISK_CUT:
            seed = fake_mix(seed);

            if (k || i < synced[op->file] || seed % 2) {
                file_resize(&files[op->file], op->at);
            }

            break;

        case DISK_CREATE:
        case DISK_NAME:
        case DISK_REMOVE:
            seed = fake_mix(seed);

            if (!k && i >= dir_synced && seed % 2) {
                break;
            }

            if (op->kind == DISK_REMOVE) {
                remove_entry(list, &n, op->name);

            } else {
                set_entry(list, &n, op->name, op->file);
            }

            break;

        default:
            break;
        }
    }

    fake_empty(dirfd);

    for (i = 0; i < n; i++) {
        fake_write(dirfd, list[i].name, files[list[i].file].data,
                   files[list[i].file].len);
    }

    free(synced);

    return durable;
}


/* the run to be recorded */

static void
take_snapshot(fake_journal_t *j)
{
    uint64_t        i;
    us_manifest_t   m;
    us_snapshot_t   snap;
    static uint8_t  op[1024];

    assert_int_equal(us_snapshot_begin(&snap, j->dirfd, fake_uuid, 1,
                                       &fake_ops), 0);

    for (i = 0; i < j->at.ops; i++) {
        assert_int_equal(us_snapshot_out(&snap, op,
                                         fake_op(op, i, j->at.max)), 0);
    }

    assert_int_equal(us_manifest_read(j->dirfd, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(us_snapshot_finish(&snap, j->tail.lsn, &m), 0);
    us_snapshot_end(&snap);

    us_snapshot_drop(j->dirfd, &m);
}


static void
run(int dirfd, const char *sync, uint64_t seed)
{
    unsigned        i;
    us_tail_t       tail;
    fake_store_t    at;
    fake_journal_t  j;

    nrecord = 0;
    nfiles = 0;
    nentries = 0;
    record_dirfd = dirfd;
    recording = 1;

    fake_create(&j, dirfd, 300, 4096, sync);

    for (i = 0; i < 120; i++) {
        seed = fake_mix(seed);

        tail = j.tail;
        at = j.at;

        assert_int_equal(fake_append(&j, 1 + seed % 12), 0);

        if (seed >> 59 == 0) {

            /* killed before anybody knew: another one takes over */

            j.tail = tail;
            j.at = at;
            us_writer_close(&j.w);
            us_writer_init(&j.w, dirfd, fake_uuid, 1, FAKE_BOOT, &fake_ops);
            j.w.limit = 4096;
            assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
            continue;
        }

        if (strcmp(sync, "always") == 0 || (seed >> 32) % 8 == 0) {
            assert_int_equal(fake_sync(&j), 0);
            record_op(DISK_DURABLE, -1)->at = j.durable;
        }

        if ((seed >> 40) % 40 == 0 && j.durable == j.tail.lsn) {
            take_snapshot(&j);
        }
    }

    us_writer_close(&j.w);
    recording = 0;
}


static uint64_t  images;


static void
recover(int dirfd, const char *sync, size_t crash, uint64_t seed)
{
    uint64_t          durable;
    fake_store_t      s;
    us_recovery_t     r;
    fake_journal_t    j;
    us_recovery_rc_t  rc;

    durable = draw(crash, seed, dirfd);

    rc = fake_recover(&r, &s, dirfd, 300, FAKE_NEXT, 1);
    images++;

    if (rc == US_RECOVERY_FRESH) {
        /* before the manifest was there */
        assert_int_equal(durable, 0);
        return;
    }

    if (rc != US_RECOVERY_OK || r.lsn < durable) {
        print_message("crash at %zu of %zu, seed %" PRIu64 ": rc %d, LSN %"
                      PRIu64 ", durable %" PRIu64 "\n%s\n",
                      crash, nrecord, seed, rc, r.lsn, durable,
                      r.error.text);
        fail();
    }

    assert_int_equal(s.ids, r.ids);
    assert_int_equal(r.lost, strcmp(sync, "always") != 0);

    if (seed % 16 == 0) {

        /* and on, as after a start */

        assert_int_equal(fake_finish(&r, sync), 0);
        assert_int_equal(r.manifest.epoch, 1 + r.lost);

        memset(&j, 0, sizeof(j));
        j.dirfd = dirfd;
        j.at = s;
        j.at.bytes = r.lsn;
        j.tail = r.tail;
        us_writer_init(&j.w, dirfd, fake_uuid, 1, FAKE_NEXT, &fake_ops);
        j.w.limit = 4096;
        assert_int_equal(us_writer_attach(&j.w, &j.tail), 0);
        assert_int_equal(fake_append(&j, 5), 0);
        assert_int_equal(fake_append(&j, 9), 0);
        us_writer_close(&j.w);

        assert_int_equal(fake_recover(&r, &s, dirfd, 300, FAKE_NEXT, 1),
                         US_RECOVERY_OK);
        assert_int_equal(s.ops, j.at.ops);
        assert_int_equal(r.lost, 0);
    }
}


/* --- a store with sets ---------------------------------------------------- */

#define SETS_STEPS  60
#define SETS_URLS   40
#define SETS_ENDS   4096

static stream_t  ops;                 /* of the run, */

static struct {
    uint64_t  lsn, sum;
} ends[SETS_ENDS];                    /* and the sets after each */

static unsigned  nends;


static zone_t *
sets_zone(void)
{
    memcpy(zone_conf.uuid, fake_uuid, sizeof(fake_uuid));
    zone_conf.epoch = 1;
    zone_conf.sets = 1;

    return zone_create((size_t) 1 << 20, (size_t) 1 << 16);
}


/* a few URLs into a set, ids in or out, a drop */

static void
sets_step(us_store_t *s)
{
    char               name[8], urls[8][32];
    unsigned           i, n;
    uint64_t           lsn;
    us_str_t           text;
    us_store_set_t     set;
    us_store_item_t    it[8];
    us_store_claim_t   c[8];

    sprintf(name, "s%u", rnd(4));
    text = us_str_of(name);
    set = us_store_set(s, text);
    n = 1 + rnd(8);

    if (set.number == 0) {
        assert_int_equal(us_store_set_make(s, text, 64, &set, &lsn), US_NEW);

    } else if (rnd(10) == 0) {
        assert_int_equal(us_store_set_drop(s, set, &lsn), US_OK);

    } else if (rnd(3) || us_store_next_id(s) == 0) {
        for (i = 0; i < n; i++) {
            sprintf(urls[i], "http://x.test/%u", rnd(SETS_URLS));
            it[i] = item(urls[i], 0);
        }

        us_store_add_set(s, it, n, set, NULL);

    } else {
        for (i = 0; i < n; i++) {
            c[i].id = rnd((unsigned) us_store_next_id(s));
        }

        us_store_set_put(s, set, c, n, rnd(3) > 0, NULL);
    }
}


static void
sets_ends(void)
{
    size_t    n;
    zone_t   *z;

    z = sets_zone();
    ends[0].lsn = 0;
    ends[0].sum = same_sets_sum(z->store);

    for (nends = 1; ends[nends - 1].lsn < ops.len; nends++) {
        assert_true(nends < SETS_ENDS);
        n = us_store_op_size(ops.data + ends[nends - 1].lsn,
                             ops.len - ends[nends - 1].lsn);
        assert_int_equal(us_data_apply(z->store,
                                       ops.data + ends[nends - 1].lsn, n), 0);
        ends[nends].lsn = ends[nends - 1].lsn + n;
        ends[nends].sum = same_sets_sum(z->store);
    }

    zone_destroy(z);
}


static void
sets_run(int dirfd, const char *sync, uint64_t seed)
{
    unsigned          i;
    size_t            from;
    zone_t           *z;
    us_str_t          pieces[2];
    us_manifest_t     m;
    fake_journal_t    j;
    us_disk_error_t   e;

    nrecord = 0;
    nfiles = 0;
    nentries = 0;
    record_dirfd = dirfd;
    recording = 1;
    ops.len = 0;

    z = sets_zone();
    fake_create(&j, dirfd, 0, 2048, sync);
    j.w.ops = &us_data_ops;

    for (i = 0; i < SETS_STEPS; i++) {
        from = ops.len;
        sets_step(z->store);
        stream_drain(&ops, z->store);

        pieces[0] = (us_str_t) { ops.len - from, ops.data + from };
        pieces[1] = (us_str_t) { 0, NULL };

        assert_int_equal(us_writer_append(&j.w, &j.tail, pieces, j.durable),
                         0);
        (void) us_writer_mark(&j.w, &j.tail, j.durable, 0);

        if (strcmp(sync, "always") == 0 || rnd(8) == 0) {
            assert_int_equal(fake_sync(&j), 0);
            record_op(DISK_DURABLE, -1)->at = j.durable;
        }

        if (rnd(20) == 0 && j.durable == j.tail.lsn) {
            assert_int_equal(us_data_snapshot(z->store, dirfd, NULL, NULL,
                                              NULL, &m, &e), 0);
        }
    }

    us_writer_close(&j.w);
    recording = 0;

    sets_ends();
    assert_true(ends[nends - 1].sum == same_sets_sum(z->store));
    zone_destroy(z);
}


static void
sets_recover(int dirfd, const char *sync, size_t crash, uint64_t seed)
{
    unsigned          i;
    zone_t           *z;
    uint64_t          durable;
    us_recovery_t     r;
    us_recovery_rc_t  rc;

    durable = draw(crash, seed, dirfd);
    images++;
    z = sets_zone();

    rc = us_recovery_open(&r, dirfd, &us_data_ops, us_data_apply, z->store,
                          FAKE_NEXT);

    if (rc == US_RECOVERY_OK) {
        rc = us_recovery_run(&r, 1);
    }

    us_recovery_close(&r);

    if (rc == US_RECOVERY_FRESH) {
        assert_int_equal(durable, 0);
        zone_destroy(z);
        return;
    }

    for (i = 0; i < nends && ends[i].lsn != r.lsn; i++) { /* void */ }

    if (rc != US_RECOVERY_OK || r.lsn < durable || i == nends
        || same_sets_sum(z->store) != ends[i].sum)
    {
        print_message("crash at %zu of %zu, seed %" PRIu64 ": rc %d, LSN %"
                      PRIu64 ", durable %" PRIu64 ", other sets\n%s\n",
                      crash, nrecord, seed, rc, r.lsn, durable, r.error.text);
        fail();
    }

    zone_destroy(z);
}


/* --- all of it ------------------------------------------------------------ */

static void
images_of(const char *sync, uint64_t part,
    void (*make)(int dirfd, const char *sync, uint64_t seed),
    void (*check)(int dirfd, const char *sync, size_t crash, uint64_t seed))
{
    int          dirfd, imagefd;
    char         path[64], image_path[64];
    size_t       crash, i;
    uint64_t     want, seed, round;
    const char  *env;

    env = getenv("US_IMAGES");
    want = (env ? strtoull(env, NULL, 10) : 3000) / part;

    for (images = 0, round = 0; images < want; round++) {
        dirfd = fake_mkdir(path);
        imagefd = fake_mkdir(image_path);

        make(dirfd, sync, round);

        seed = round << 32;

        for (crash = 0; crash <= nrecord && images < want; crash++) {
            check(imagefd, sync, crash, seed++);
            check(imagefd, sync, crash, seed++);
        }

        for (i = 0; i < nrecord; i++) {
            free(record[i].data);
            record[i].data = NULL;
        }

        fake_rmdir(path, dirfd);
        fake_rmdir(image_path, imagefd);
    }

    print_message("sync=%s: %" PRIu64 " images of %" PRIu64 " runs\n", sync,
                  images, round);
}


static void
test_always(void **state)
{
    images_of("always", 2, run, recover);
}


static void
test_time(void **state)
{
    images_of("1s", 2, run, recover);
}


static void
test_sets_always(void **state)
{
    images_of("always", 6, sets_run, sets_recover);
}


static void
test_sets_time(void **state)
{
    images_of("1s", 6, sets_run, sets_recover);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_always),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_sets_always),
        cmocka_unit_test(test_sets_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
