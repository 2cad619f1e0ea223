
/*
 * A real store through a real directory: real URLs are added, some deleted
 * and marked, snapshots taken in between; what a recovery builds from the
 * directory is the same, id by id and bit by bit, and goes on the same.
 */

#include "corpus.h"
#include "journal_fake.h"
#include "marks.h"
#include "stream.h"
#include "life/us_data.h"
#include "journal/us_dir.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>


#define DATA_ZONE   (64 * 1024 * 1024)
#define DATA_RING   (1024 * 1024)
#define DATA_URLS   20000


static void
lock(void *data)
{
}


typedef struct {
    void         *mem;
    us_store_t   *store;
    us_writer_t   w;
    us_tail_t     tail;
    uint64_t      durable;
    int           dirfd;
} side_t;


static char   *text;
static size_t  nurls;
static char   *urls[DATA_URLS];


static void
load_corpus(void)
{
    FILE    *f;
    size_t   len, room;
    char    *p;

    f = corpus_open("trackawesomelist_md", DATA_URLS, 0);
    room = 8 * 1024 * 1024;
    text = malloc(room);
    assert_non_null(text);
    len = fread(text, 1, room - 1, f);
    text[len] = '\0';
    corpus_close(f);

    for (p = strtok(text, "\n"); p && nurls < DATA_URLS;
         p = strtok(NULL, "\n"))
    {
        if (strncmp(p, "http", 4) == 0 && strchr(p + 8, '/')
            && strlen(p) < 2000)
        {
            urls[nurls++] = p;
        }
    }
}


static void
side_conf(us_store_conf_t *conf)
{
    memset(conf, 0, sizeof(us_store_conf_t));
    memcpy(conf->uuid, fake_uuid, 16);
    memcpy(conf->hash_key, "0123456789abcdef", 16);
    conf->epoch = 1;
    conf->norm = us_string("crawler/1");
    conf->marks[0] = us_string("visited");
    conf->marks[1] = us_string("hot");
    conf->nmarks = 2;
    conf->revisit = 60;
    conf->ring = DATA_RING;
}


static void
side_open(side_t *s, int dirfd)
{
    us_store_conf_t  conf;
    us_store_lock_t  l = { lock, lock, NULL };

    memset(s, 0, sizeof(side_t));
    s->dirfd = dirfd;
    s->mem = mmap(NULL, DATA_ZONE, PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s->mem, MAP_FAILED);

    side_conf(&conf);

    /* a snapshot brings the key of its index along */
    conf.hash_key[0] = (uint8_t) random();

    assert_int_equal(us_store_format(s->mem, DATA_ZONE, &conf), 0);
    s->store = us_store_open(s->mem, &l);
    assert_non_null(s->store);

    us_writer_init(&s->w, dirfd, fake_uuid, 1, FAKE_BOOT, &us_data_ops);
    s->w.limit = 100000;
}


static void
side_close(side_t *s)
{
    us_writer_close(&s->w);
    us_store_close(s->store);
    assert_int_equal(munmap(s->mem, DATA_ZONE), 0);
}


static void
side_write(side_t *s)
{
    uint64_t  lsn;
    us_str_t  pieces[2];

    while (us_store_written(s->store) < us_store_published(s->store)) {
        lsn = s->tail.lsn;
        us_store_ops(s->store, lsn, pieces);
        assert_int_equal(us_writer_append(&s->w, &s->tail, pieces, s->durable),
                         0);
        assert_true(s->tail.lsn > lsn);
        us_store_set_written(s->store, s->tail.lsn);
    }

    assert_int_equal(s->tail.lsn, us_store_published(s->store));
    assert_int_equal(s->tail.ids, us_store_next_id(s->store));

    assert_int_equal(us_writer_mark(&s->w, &s->tail, s->durable, 0), 0);
}


static void
side_add(side_t *s, size_t from, size_t n)
{
    size_t           i;
    us_store_item_t  items[US_STORE_GROUP];

    memset(items, 0, sizeof(items));

    for (i = 0; i < n; i++) {
        items[i].url.data = (uint8_t *) urls[from + i];
        items[i].url.len = strlen(urls[from + i]);
    }

    us_store_add(s->store, items, n);

    for (i = 0; i < n; i++) {
        assert_true(items[i].status == US_NEW || items[i].status == US_SEEN);
    }

    side_write(s);
}


static int
side_wait(void *data, uint64_t lsn, uint64_t until)
{
    side_t  *s = data;

    if (lsn == 0) {
        return 0;
    }

    side_write(s);
    assert_int_equal(us_writer_sync(&s->w, &s->tail), 0);
    s->durable = s->tail.lsn;
    us_store_set_durable(s->store, s->durable);

    return 0;
}


static void
side_same(side_t *a, side_t *b)
{
    size_t             n, m;
    uint8_t            one[US_URL_MAX + 8], two[US_URL_MAX + 8];
    uint64_t           id;
    unsigned           k;
    us_store_item_t    item[2];
    us_store_status_t  rc;

    assert_int_equal(us_store_next_id(a->store), us_store_next_id(b->store));

    for (id = 0; id < us_store_next_id(a->store); id++) {
        rc = us_store_get(a->store, id, one, &n);
        assert_int_equal(us_store_get(b->store, id, two, &m), rc);

        for (k = 0; k < 2; k++) {
            assert_int_equal(mark_has(a->store, k, id),
                             mark_has(b->store, k, id));
        }

        assert_int_equal(us_store_claimed(a->store, id),
                         us_store_claimed(b->store, id));

        if (rc != US_OK) {
            assert_int_equal(rc, US_DELETED);
            continue;
        }

        assert_int_equal(n, m);
        assert_memory_equal(one, two, n);

        memset(item, 0, sizeof(item));
        item[0].url = (us_str_t) { n, one };
        item[1].url = (us_str_t) { n, one };
        us_store_seen(a->store, &item[0], 1);
        us_store_seen(b->store, &item[1], 1);

        assert_int_equal(item[0].status, US_SEEN);
        assert_int_equal(item[1].status, US_SEEN);
        assert_int_equal(item[1].id, item[0].id);
        assert_int_equal(item[1].spelling, item[0].spelling);
    }
}


/* a second side from the directory */

static us_recovery_rc_t
side_recover(side_t *b, us_recovery_t *r, int dirfd)
{
    us_recovery_rc_t  rc;

    side_open(b, dirfd);

    rc = us_recovery_open(r, dirfd, &us_data_ops, us_data_apply, b->store,
                          FAKE_BOOT);

    if (rc == US_RECOVERY_OK) {
        rc = us_recovery_run(r, 1);
    }

    us_recovery_close(r);

    b->tail = r->tail;
    b->durable = r->lsn;
    us_store_set_lsn(b->store, r->lsn);

    return rc;
}


/* minutes go by, now and then weeks; some ids are claimed, or given back */

static void
side_claim(side_t *s, uint64_t r)
{
    unsigned          i;
    us_store_claim_t  claims[20];

    static uint64_t   now = 1795336098;

    now += r % 50 ? r % 300 : r % (50 * 86400);
    us_store_time(s->store, now);

    for (i = 0; i < 20; i++) {
        r = fake_mix(r);
        claims[i].id = r % us_store_next_id(s->store);
    }

    us_store_claim(s->store, claims, 20, r % 5 ? now - r % 100000 : 0);
}


static void
test_same(void **state)
{
    int                was, dirfd, snapshots;
    char               path[64];
    side_t             a, b;
    size_t             at, n;
    uint64_t           r64, id, lsn;
    us_recovery_t      r;
    us_manifest_t      m;
    us_store_conf_t    conf;
    us_disk_error_t    e;

    assert_true(nurls > 10000);

    dirfd = fake_mkdir(path);
    side_open(&a, dirfd);

    side_conf(&conf);
    memset(&m, 0, sizeof(us_manifest_t));
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(fake_new(dirfd, &m, "1s"), 0);
    assert_int_equal(us_writer_attach(&a.w, &a.tail), 0);

    snapshots = 0;

    for (at = 0; at < nurls; at += n) {
        r64 = fake_mix(at);
        n = 1 + r64 % US_STORE_GROUP;
        n = (n > nurls - at) ? nurls - at : n;

        side_add(&a, at, n);

        for (id = 0; id < 8; id++) {
            r64 = fake_mix(r64);

            if (id == 7) {
                side_claim(&a, r64);

            } else if (id < 2) {
                us_store_delete(a.store, r64 % us_store_next_id(a.store),
                                &was, &lsn);

            } else {
                mark_put(a.store, r64 >> 63,
                              r64 % us_store_next_id(a.store),
                              (r64 >> 62) & 1, &lsn);
            }
        }

        side_write(&a);

        if (r64 % 23 == 0) {
            snapshots++;
            assert_int_equal(us_data_snapshot(a.store, dirfd, side_wait, &a,
                                              NULL, &m, &e), 0);
        }

        if (r64 % 11 == 0 || at + n == nurls) {
            assert_int_equal(side_recover(&b, &r, dirfd), US_RECOVERY_OK);
            assert_int_equal(r.ids, us_store_next_id(a.store));
            assert_memory_equal(&r.tail, &a.tail, sizeof(us_tail_t));
            side_same(&a, &b);

            /* and it goes on in the other one's place */

            fake_finish(&r, "1s");
            assert_int_equal(us_writer_attach(&b.w, &b.tail), 0);
            side_close(&a);
            a = b;
        }
    }

    print_message("%zu URLs, %" PRIu64 " ids, %d snapshots, LSN %" PRIu64
                  ", %" PRIu64 " bytes of files\n", nurls,
                  us_store_next_id(a.store), snapshots, a.tail.lsn,
                  us_dir_bytes(dirfd));
    assert_true(snapshots > 3);

    side_close(&a);
    fake_rmdir(path, dirfd);
}


/*
 * A snapshot while others write.  When it gets its name, the disk has all of
 * the journal up to the LSN that us_data_snapshot() has waited for, and nothing
 * past it: the machine fails.  A start finds what the journal up to there
 * makes.
 */

static struct {
    side_t           *side;           /* NULL: nobody writes */
    stream_t          journal;
    uint64_t          random;
    uint64_t          lsn;            /* of the dump */
    uint64_t          until;
    size_t            at;             /* of urls */
} busy;


static void
busy_step(void)
{
    int              was;
    size_t           i, n;
    uint64_t         lsn, id, ids;
    us_store_t      *s;
    us_store_item_t  items[16];

    s = busy.side->store;
    ids = us_store_next_id(s);
    busy.random = fake_mix(busy.random);
    id = ids ? (busy.random >> 8) % ids : 0;

    switch (ids ? busy.random % 8 : 7) {

    case 0:
    case 1:
    case 2:
        us_store_delete(s, id, &was, &lsn);
        break;

    case 3:
    case 4:
        mark_put(s, busy.random >> 63, id, (busy.random >> 62) & 1, &lsn);
        break;

    case 5:
        side_claim(busy.side, busy.random);
        break;

    default:
        memset(items, 0, sizeof(items));

        for (n = 0; n < 16 && busy.at < nurls; n++, busy.at++) {
            i = busy.at;
            items[n].url = (us_str_t) { strlen(urls[i]), (uint8_t *) urls[i] };
        }

        us_store_add(s, items, n);
    }

    stream_drain(&busy.journal, s);
}


static void
busy_steps(unsigned n)
{
    side_t  *side;

    side = busy.side;

    while (side && n--) {
        busy_step();
    }
}


/* others write while the snapshot's file is written, and between its locks */

ssize_t
pwrite(int fd, const void *p, size_t len, off_t at)
{
    busy_steps(200);

    return syscall(SYS_pwrite64, fd, p, len, at);
}


static void
busy_lock(void *data)
{
    busy_steps(50);
}


static int
busy_wait(void *data, uint64_t lsn, uint64_t until)
{
    side_t    *s = data;
    us_str_t   pieces[2] = { { 0, NULL }, { 0, NULL } };

    if (lsn == 0) {
        return 0;
    }

    busy_steps(100);
    busy.side = NULL;
    busy.lsn = lsn;
    busy.until = until;

    while (s->tail.lsn < until) {
        pieces[0].data = busy.journal.data + s->tail.lsn;
        pieces[0].len = until - s->tail.lsn;
        assert_int_equal(us_writer_append(&s->w, &s->tail, pieces, 0), 0);
    }

    assert_int_equal(us_writer_sync(&s->w, &s->tail), 0);

    return 0;
}


static void
test_power(void **state)
{
    int               dirfd;
    char              path[64];
    side_t            a, b, c;
    size_t            past;
    unsigned          i, k;
    us_store_t       *s;
    us_recovery_t     r;
    us_manifest_t     m;
    us_store_conf_t   conf;
    us_store_lock_t   l = { busy_lock, lock, NULL };
    us_disk_error_t   e;

    past = 0;

    for (i = 0; i < 6; i++) {
        dirfd = fake_mkdir(path);
        side_open(&a, dirfd);

        side_conf(&conf);
        memset(&m, 0, sizeof(us_manifest_t));
        assert_int_equal(us_data_describe(&m, &conf), 0);
        assert_int_equal(fake_new(dirfd, &m, "1s"), 0);
        assert_int_equal(us_writer_attach(&a.w, &a.tail), 0);

        memset(&busy, 0, sizeof(busy));
        busy.side = &a;
        busy.random = i;

        for (k = 0; k < 2000 + i * 500; k++) {
            busy_step();
        }

        s = us_store_open(a.mem, &l);
        assert_non_null(s);
        assert_int_equal(us_data_snapshot(s, dirfd, busy_wait, &a, NULL, &m,
                                          &e), 0);
        us_store_close(s);
        past += busy.until - busy.lsn;

        assert_int_equal(side_recover(&b, &r, dirfd), US_RECOVERY_OK);
        assert_int_equal(r.lsn, busy.until);

        side_open(&c, dirfd);
        assert_int_equal(us_store_apply(c.store, busy.journal.data, busy.until),
                         busy.until);
        assert_int_equal(us_store_set_lsn(c.store, busy.until), 0);
        side_same(&c, &b);

        side_close(&a);
        side_close(&b);
        side_close(&c);
        free(busy.journal.data);
        fake_rmdir(path, dirfd);
    }

    print_message("%zu bytes were published while the dumps went on\n", past);
    assert_true(past > 10000);
}


/*
 * A snapshot that is damaged, empty or missing costs nothing as long as the
 * journal goes back to its beginning, or an older snapshot is there.
 */

static void
test_instead(void **state)
{
    int               dirfd, readers;
    char              path[64], name[US_DISK_NAME];
    side_t            a, b;
    size_t            len, at;
    uint8_t          *file;
    unsigned          how, older;
    us_dir_t          dir;
    us_recovery_t     r;
    us_manifest_t     m;
    us_store_conf_t   conf;
    us_disk_error_t   e;

    for (how = 0; how < 10; how++) {
        older = how / 5;
        dirfd = fake_mkdir(path);
        side_open(&a, dirfd);

        side_conf(&conf);
        memset(&m, 0, sizeof(us_manifest_t));
        assert_int_equal(us_data_describe(&m, &conf), 0);
        assert_int_equal(fake_new(dirfd, &m, "1s"), 0);
        assert_int_equal(us_writer_attach(&a.w, &a.tail), 0);
        a.w.limit = 4096;

        /* a reader keeps what the snapshots replace */

        readers = us_disk_lock(dirfd, US_DIR_READERS, O_RDWR, LOCK_SH);

        for (at = 0; at < 2000; at += US_STORE_GROUP) {
            side_add(&a, at, US_STORE_GROUP);

            if (at == 0 || at == 4 * US_STORE_GROUP) {
                assert_int_equal(us_data_snapshot(a.store, dirfd, side_wait,
                                                  &a, NULL, &m, &e), 0);
            }
        }

        (void) close(readers);
        assert_int_equal(us_dir_read(dirfd, &dir, &e), 0);
        assert_int_equal(dir.nsnapshots, 2);
        assert_int_equal(dir.segments[0], 0);

        if (older) {
            us_segment_name(name, US_SEGMENT_JOURNAL, 0);

        } else {
            us_segment_name(name, US_SEGMENT_SNAPSHOT, dir.snapshots[0]);
        }

        assert_int_equal(unlinkat(dirfd, name, 0), 0);
        us_segment_name(name, US_SEGMENT_SNAPSHOT, dir.snapshots[1]);
        us_dir_free(&dir);

        file = fake_read(dirfd, name, &len);
        file[how % 5 == 0 ? 100 : len / 2] ^= how % 5 < 2;
        fake_write(dirfd, name, file,
                   how % 5 == 2 ? 0 : how % 5 == 3 ? len - 9 : len);
        free(file);

        if (how % 5 == 4) {
            assert_int_equal(unlinkat(dirfd, name, 0), 0);
        }

        assert_int_equal(side_recover(&b, &r, dirfd), US_RECOVERY_OK);
        assert_non_null(strstr(r.instead.text, name));
        assert_non_null(strstr(r.instead.text, older ? "an older snapshot"
                                                     : "the journal has"));
        assert_memory_equal(&r.tail, &a.tail, sizeof(us_tail_t));
        side_same(&a, &b);

        side_close(&a);
        side_close(&b);
        fake_rmdir(path, dirfd);
    }
}


/*
 * Changes bytes of the operations in a file of blocks, one in `rare`, and makes
 * all CRCs right again: what a fault of the memory or of the program would
 * leave, or a hostile disk.  how 0: only the bits of records; 1: only what is
 * not a record, after its first two bytes.
 */

static void
spoil(int dirfd, const char *name, int how, unsigned rare)
{
    size_t      len, at, op, n, i;
    uint8_t    *p, *payload;
    uint32_t    seed, prev;
    us_block_t  b;

    p = fake_read(dirfd, name, &len);
    seed = us_get32(p + 60);
    prev = seed;

    for (at = US_SEGMENT_HEADER; at < len; at += US_BLOCK_HEADER + b.len) {
        b.len = us_get32(p + at + 4);
        b.lsn = us_get64(p + at + 8);
        b.ids = us_get64(p + at + 16);
        b.durable = us_get64(p + at + (b.len ? 24 : 36));
        b.prev = prev;

        payload = p + at + US_BLOCK_HEADER;

        for (op = 0; op < b.len; op += n) {
            n = us_store_op_size(payload + op, b.len - op);

            if (payload[op] == 255 || (how == 0) != (payload[op] != 0)) {
                continue;
            }

            for (i = 1 + how; i < n; i++) {
                if (random() % rare == 0) {
                    payload[op + i] ^= (uint8_t) (1 << random() % 8);
                }
            }
        }

        (void) us_block_write(p + at, &b, seed);
        prev = b.crc;
    }

    fake_write(dirfd, name, p, len);
    free(p);
}


/*
 * A recovery of nonsense with the right CRCs: it is refused, or ends with a
 * store that says which records are damaged, and works.
 */

static void
test_nonsense(void **state)
{
    int                dirfd, how;
    char               path[64], name[US_DISK_NAME], url[64];
    side_t             a, b;
    size_t             n, at, len, damaged, refused;
    uint8_t            buf[US_URL_MAX + 8];
    uint64_t           id;
    unsigned           i;
    us_recovery_t      r;
    us_manifest_t      m;
    us_store_conf_t    conf;
    us_store_item_t    item;
    us_disk_error_t    e;
    us_store_status_t  rc;

    damaged = 0;
    refused = 0;

    for (i = 0; i < 60; i++) {
        dirfd = fake_mkdir(path);
        side_open(&a, dirfd);
        a.w.limit = US_SEGMENT_SIZE;

        side_conf(&conf);
        memset(&m, 0, sizeof(us_manifest_t));
        assert_int_equal(us_data_describe(&m, &conf), 0);
        assert_int_equal(fake_new(dirfd, &m, "1s"), 0);
        assert_int_equal(us_writer_attach(&a.w, &a.tail), 0);

        for (at = 0; at < 2000; at += US_STORE_GROUP) {
            side_add(&a, at, US_STORE_GROUP);
        }

        how = i & 1;

        if (i & 3) {
            assert_int_equal(us_data_snapshot(a.store, dirfd, side_wait, &a,
                                              NULL, &m, &e), 0);
            side_add(&a, at, US_STORE_GROUP);
            assert_int_equal(us_manifest_read(dirfd, &m, &e), US_MANIFEST_OK);
            us_segment_name(name, US_SEGMENT_SNAPSHOT, m.snapshot);

        } else {
            us_segment_name(name, US_SEGMENT_JOURNAL, 0);
        }

        side_close(&a);
        spoil(dirfd, name, how, 1 << random() % 12);

        if (side_recover(&b, &r, dirfd) != US_RECOVERY_OK
            || us_store_set_lsn(b.store, r.lsn) != 0)
        {
            refused++;
            assert_true(r.lsn <= a.tail.lsn);
            goto next;
        }

        for (id = 0; id < us_store_next_id(b.store); id++) {
            rc = us_store_get(b.store, id, buf, &len);

            if (rc == US_OK) {
                memset(&item, 0, sizeof(item));
                item.url = (us_str_t) { len, buf };
                us_store_seen(b.store, &item, 1);

            } else {
                assert_true(rc == US_DAMAGED || rc == US_DELETED);
                damaged += (rc == US_DAMAGED);
            }
        }

        for (n = 0; n < 2000; n++) {
            memset(&item, 0, sizeof(item));
            item.url.data = (uint8_t *) url;
            item.url.len = sprintf(url, "http://s%zu.test/new/%zu", n % 50, n);
            us_store_add(b.store, &item, 1);
            assert_int_equal(item.status, US_NEW);
            us_store_set_written(b.store, us_store_published(b.store));

            us_store_seen(b.store, &item, 1);
            assert_int_equal(item.status, US_SEEN);
        }

    next:

        side_close(&b);
        fake_rmdir(path, dirfd);
    }

    print_message("%zu records damaged, %zu recoveries refused\n", damaged,
                  refused);
    assert_true(damaged > 100);
    assert_in_range(refused, 3, 50);
}


static void
test_settings(void **state)
{
    size_t           i;
    const us_str_t   bad[] = {
        us_string("0"), us_string("59"), us_string("86401"), us_string("-60"),
        us_string("60x"), us_string("x"), us_string("4294967356"),
        us_string("18446744073709551676"), us_string("0000000000000000060x"),
    };
    us_manifest_t    m;
    us_data_text_t   txt;
    us_disk_error_t  e;
    us_store_conf_t  conf, other;

    side_conf(&conf);
    memset(&m, 0, sizeof(us_manifest_t));
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(us_data_differs(&m, &conf, &e), 0);

    assert_int_equal(us_data_conf(&m, &other, &txt, &e), 0);
    assert_int_equal(us_data_differs(&m, &other, &e), 0);
    assert_int_equal(other.nmarks, 2);
    assert_memory_equal(other.uuid, conf.uuid, 16);

    /* a mark may be added */

    other.marks[2] = us_string("new");
    other.nmarks = 3;
    assert_int_equal(us_data_differs(&m, &other, &e), 0);

    other.marks[1] = us_string("cold");
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "visited,hot"));

    other = conf;
    other.nmarks = 1;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);

    /* claims may be added; then they stay, by their unit */

    assert_int_equal(m.version, 6);
    other = conf;
    other.revisit = 3600;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "revisit \"60s\""));
    other.revisit = 0;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(m.version, 6);
    other.revisit = 3600;
    assert_int_equal(us_data_differs(&m, &other, &e), 0);
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(us_data_conf(&m, &other, &txt, &e), 0);
    assert_int_equal(other.revisit, 60);

    /* what was no shard can become shard 0, once and for ever */

    other = conf;
    other.is_shard = 1;
    assert_int_equal(us_data_differs(&m, &other, &e), 0);
    other.shard = 3;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "shard 0, not shard 3"));
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(m.version, 6);
    assert_int_equal(us_data_differs(&m, &other, &e), 0);
    assert_int_equal(us_data_conf(&m, &other, &txt, &e), 0);
    assert_int_equal(other.is_shard, 1);
    assert_int_equal(other.shard, 3);
    other.shard = 0;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "shard=3"));
    assert_int_equal(us_data_differs(&m, &conf, &e), -1);
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(us_manifest_set(&m, "shard", us_string("4096")), 0);
    assert_int_equal(us_data_conf(&m, &other, &txt, &e), -1);

    /* a unit that is none is not taken for "no claims" */

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        other = conf;
        other.revisit = 0;
        assert_int_equal(us_data_describe(&m, &other), 0);
        assert_int_equal(us_manifest_set(&m, "revisit", bad[i]), 0);
        assert_int_equal(us_data_conf(&m, &other, &txt, &e), -1);
        assert_non_null(strstr(e.text, "which is no number from 60 to 86400"));
        assert_int_equal(us_data_differs(&m, &conf, &e), -1);
    }

    other = conf;
    other.revisit = 0;
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(us_manifest_set(&m, "shard",
                                     us_string("0000000000000000000001")), 0);
    assert_int_equal(us_data_conf(&m, &other, &txt, &e), 0);
    assert_int_equal(other.shard, 1);

    assert_int_equal(us_data_describe(&m, &conf), 0);

    other = conf;
    other.schemes_first = 1;
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "schemes"));

    /* keys of requests: what is in the journal stays there without them */

    conf.nmarks = 0;
    m.version = 1;
    other = conf;
    other.keys = 1 << 20;
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(us_data_differs(&m, &other, &e), 0);
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(m.version, 5);
    assert_int_equal(us_data_differs(&m, &conf, &e), 0);
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(m.version, 5);

    /* and those of sets */

    other.sets = 1;
    assert_int_equal(us_data_describe(&m, &other), 0);
    assert_int_equal(m.version, 6);
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(m.version, 6);

    other = conf;
    other.norm = us_string("whatwg/1");
    assert_int_equal(us_data_differs(&m, &other, &e), -1);
    assert_non_null(strstr(e.text, "crawler/1"));
    assert_non_null(strstr(e.text, "whatwg/1"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_instead),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_settings),
    };

    load_corpus();

    return cmocka_run_group_tests(tests, NULL, NULL);
}
