
/*
 * A replica (src/life/us_replica.c), with the clock and the processes of
 * t/unit/life_fake.h, over a connection of the test's own.
 *
 *     primary_t    a directory that a server has made, and its journal's end
 *     copy         the directory of a replica with path=
 *     connection   what us_ship.h sends of it, as bytes that the test may cut,
 *                  change or write itself
 *
 * The functions of life/us_peer.h are those of peer_fake.h, and those below.
 */

#include "life_fake.h"
#include "peer_fake.h"
#include "life/us_follow.h"
#include "journal/us_crc32c.h"
#include "journal/us_dir.h"
#include "journal/us_ship.h"
#include "store/us_ring.h"


#define FAKE_STREAM  65536
#define FAKE_LATER   30000            /* ms in which all comes right */
#define FAKE_ZEROS   40


typedef struct {
    int              dirfd;
    us_tail_t        tail;
    us_beat_t        beat;
    unsigned         urls;
    unsigned         erased;          /* so many of the first ones */
} primary_t;


/* what the connections are like */

static struct {
    primary_t       *primary;

    /* of the next ones: 0, as they are */
    unsigned         faulty;          /* connections that are so */
    size_t           cut;             /* 1 + bytes, then it is closed */
    size_t           flip;            /* 1 + the byte with a bit changed */
    int              blind;           /* the place is not looked at */
    void           (*change)(uint8_t *p, size_t len);

    unsigned         gets;
    unsigned long long  id, erased;   /* what the last one said */
    unsigned         keeps;
    size_t           len;             /* of the last one */
    size_t           sent;
    int              closes;
    uint64_t         heard;
    uint8_t          buf[FAKE_STREAM];
} net;


/* a directory of the replica */

static struct {
    char             path[64];
    int              dirfd;
    int              lockfd;
} copy = { "", -1, -1 };


static const us_primary_t  address = { "http://primary/", "primary", "", NULL,
                                       NULL, 0 };


/* the connection */

void
us_peer_close(us_peer_t *p)
{
    p->fd = -1;
    p->pos = 0;
    p->len = 0;
}


static void
net_put(const void *p, size_t len)
{
    assert_true(net.len + len <= FAKE_STREAM);

    memcpy(net.buf + net.len, p, len);
    net.len += len;
}


/* all that the primary sends to who is at this place; its status */

static unsigned
net_ship(const us_place_t *at)
{
    size_t          n;
    primary_t      *pr;
    us_ship_t       s;
    us_ship_rc_t    rc;
    const uint8_t  *p;

    pr = net.primary;
    net.len = 0;
    net.sent = 0;

    rc = us_ship_begin(&s, pr->dirfd, &us_data_ops, net.blind ? NULL : at,
                       &pr->tail);

    while (rc == US_SHIP_OK
           && us_ship_send(&s, &pr->tail, &pr->beat, 0, &p, &n) == US_SHIP_OK)
    {
        net_put(p, n);
    }

    us_ship_end(&s);

    return rc == US_SHIP_OK ? 200 : rc == US_SHIP_GONE ? 410 : 503;
}


int
us_peer_get(us_peer_t *p, const us_primary_t *primary, unsigned n,
    const char *target)
{
    int          len;
    proc_t      *current;
    us_place_t   at, *place;

    net.gets++;
    fake_call(0);

    place = NULL;

    assert_int_equal(sscanf(target, "log?replica=%llu&erased=%llu&keeps=%u%n",
                            &net.id, &net.erased, &net.keeps, &len), 3);
    target += len;

    if (*target) {
        assert_int_equal(strncmp(target, "&at=", 4), 0);
        assert_int_equal(us_place_parse(&at, target + 4, strlen(target + 4)),
                         0);
        place = &at;
    }

    if (net.primary == NULL) {
        strcpy(p->error, "connect() failed");
        return -1;
    }

    /* the disk is the primary's, which no kill of the replica touches */

    current = world.current;
    world.current = NULL;
    p->status = net_ship(place);
    world.current = current;

    p->detail = 1;
    strcpy(p->error, "it answered so");

    if (p->status != 200) {
        return 0;
    }

    p->fd = 1000;
    net.closes = 0;
    net.heard = world.now;

    if (net.faulty) {
        net.faulty--;

        if (net.flip && net.flip <= net.len) {
            net.buf[net.flip - 1] ^= 1 << net.flip % 8;
        }

        if (net.cut && net.cut <= net.len) {
            net.len = net.cut - 1;
            net.closes = 1;
        }

        if (net.change) {
            net.change(net.buf, net.len);
        }
    }

    return 0;
}


int
us_peer_read(us_peer_t *p, size_t need)
{
    size_t  n, size;

    fake_call(0);

    size = p->len - p->pos + 1000;
    size = size < need ? need : size;

    if (p->pos) {
        memmove(p->buf, p->buf + p->pos, p->len - p->pos);
        p->len -= p->pos;
        p->pos = 0;
    }

    /* no byte more than there is: a look past them is found */

    n = net.len - net.sent;
    n = n < 100 ? n : 100;
    p->buf = __real_realloc(p->buf, p->len + n + !(p->len + n));
    assert_non_null(p->buf);

    if (n) {
        memcpy(p->buf + p->len, net.buf + net.sent, n);
        p->len += n;
        net.sent += n;
        net.heard = world.now++;

        return 1;
    }

    world.now += US_PEER_STEP;

    if (net.closes || world.now - net.heard > US_PEER_SILENT) {
        strcpy(p->error, "the connection was closed");
        return -1;
    }

    return 0;
}


static void
replicas_stop(void)
{
    unsigned  i;

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive) {
            proc_stop(&world.procs[i]);
        }
    }
}


/* a primary: a server with a directory, which has ended */

static void
primary_take(primary_t *pr, proc_t *p, unsigned urls)
{
    pass(1200);
    world.current = p;
    us_life_journal(&p->l, &pr->tail, &pr->beat);
    world.current = NULL;
    assert_int_equal(pr->beat.durable, us_store_published(p->l.store));
    pr->urls = urls;
    pr->erased = 0;
}


static void
primary_fill(proc_t *p, unsigned from, unsigned n)
{
    us_store_info_t  info;

    (void) add_some(p, from, n);
    us_store_info(p->l.store, &info);
    assert_int_equal(info.deleted, 0);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
}


/* n URLs, in blocks of four, and the first so many of them in a snapshot */

static void
primary_make(primary_t *pr, unsigned n, unsigned snapshot)
{
    int        lockfd;
    proc_t    *p;
    unsigned   i;

    world.conf.path = world.path;
    world.conf.follow = NULL;
    world.conf.snapshot = 1000000;
    pr->dirfd = world_open(".", O_RDONLY|O_DIRECTORY);
    lockfd = world_open("lock", O_RDWR|O_CREAT);
    assert_true(pr->dirfd >= 0 && lockfd >= 0);

    replicas_stop();
    world_zone();
    p = proc_start(pr->dirfd, lockfd);
    pass(100);
    assert_int_equal(us_life_state(&p->l), US_LIFE_READY);

    for (i = 0; i < n; i += 4) {
        primary_fill(p, i, 4);

        if (i + 4 == snapshot) {
            pass(1200);
            us_release(&world.sh->snapshot_now, 1);
            pass(1500);
            assert_int_equal(world.sh->snapshots, 1);
        }
    }

    primary_take(pr, p, n);

    proc_kill(p);
    (void) close(lockfd);
}


static void
primary_remove(primary_t *pr)
{
    DIR            *d;
    struct dirent  *de;

    (void) close(pr->dirfd);
    d = opendir(world.path);
    assert_non_null(d);

    while ((de = readdir(d)) != NULL) {
        (void) syscall(SYS_unlinkat, dirfd(d), de->d_name, 0);
    }

    (void) closedir(d);
}


/* an empty replica of it, in one process */

static proc_t *
replica_start(primary_t *pr)
{
    replicas_stop();

    world.conf.path = NULL;
    world.conf.follow = &address;
    world_zone();

    memset(&net, 0, sizeof(net));
    net.primary = pr;

    return proc_start(-1, -1);
}


static void
copy_close(void)
{
    if (copy.dirfd != -1) {
        (void) close(copy.dirfd);
        (void) close(copy.lockfd);
        copy.dirfd = -1;
    }
}


static void
copy_remove(void)
{
    DIR            *d;
    struct dirent  *de;

    copy_close();

    d = copy.path[0] ? opendir(copy.path) : NULL;

    while (d && (de = readdir(d)) != NULL) {
        (void) syscall(SYS_unlinkat, dirfd(d), de->d_name, 0);
    }

    if (d) {
        (void) closedir(d);
        (void) rmdir(copy.path);
    }

    copy.path[0] = '\0';
}


static int
copy_open(const char *name, int flags)
{
    int   fd;
    char  path[400];

    snprintf(path, sizeof(path), "%s/%s", copy.path, name);
    fd = (int) syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
    assert_true(fd >= 0 && fd < FAKE_FDS);
    memset(&world.fds[fd], 0, sizeof(fake_fd_t));

    return fd;
}


/* a start of the replica's server, with what is in its directory */

static proc_t *
copy_start(primary_t *pr)
{
    replicas_stop();
    copy_close();

    if (copy.path[0] == '\0') {
        strcpy(copy.path, "/tmp/urlstore-copy-XXXXXX");
        assert_non_null(mkdtemp(copy.path));
    }

    copy.dirfd = copy_open(".", O_RDONLY|O_DIRECTORY);
    copy.lockfd = copy_open("lock", O_RDWR|O_CREAT);

    world.conf.path = copy.path;
    world.conf.follow = &address;
    world_zone();

    memset(&net, 0, sizeof(net));
    net.primary = pr;

    return proc_start(copy.dirfd, copy.lockfd);
}


/* each file that the copy has is as the primary's, as far as it goes */

static void
copy_same(primary_t *pr)
{
    int             fd, mine;
    DIR            *d;
    ssize_t         n;
    unsigned        files;
    struct dirent  *de;
    static uint8_t  a[FAKE_STREAM], b[FAKE_STREAM];

    d = opendir(copy.path);
    assert_non_null(d);
    files = 0;

    while ((de = readdir(d)) != NULL) {

        if (strncmp(de->d_name, "journal.", 8) != 0
            && strncmp(de->d_name, "snapshot.", 9) != 0)
        {
            continue;
        }

        fd = (int) syscall(SYS_openat, pr->dirfd, de->d_name, O_RDONLY);
        assert_true(fd >= 0);
        mine = copy_open(de->d_name, O_RDONLY);

        n = syscall(SYS_read, mine, a, sizeof(a));
        assert_true(n > 0);
        assert_true(syscall(SYS_read, fd, b, sizeof(b)) >= n);
        assert_memory_equal(a, b, n);

        (void) syscall(SYS_close, fd);
        (void) syscall(SYS_close, mine);
        files++;
    }

    (void) closedir(d);
    assert_true(files > 0);
}


static uint64_t
restarts(void)
{
    return world.sh->replica.restarts;
}


/* whether the replica answers, and then never with anything else */

static int
right(proc_t *p)
{
    unsigned         i, n;
    char             url[64];
    size_t           len;
    uint8_t          buf[US_URL_MAX + 8];
    us_life_state_t  state;

    state = us_life_state(&p->l);

    if (state != US_LIFE_REPLICA) {
        assert_int_equal(state <= US_LIFE_LOADING, 1);
        return 0;
    }

    n = (unsigned) us_life_ids(&p->l);
    assert_true(n <= net.primary->urls);

    for (i = 0; i < n; i++) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", i % 7, i);

        if (n == net.primary->urls && i < net.primary->erased) {
            assert_int_equal(us_store_get(p->l.store, i, buf, &len),
                             US_DELETED);
            continue;
        }

        assert_int_equal(us_store_get(p->l.store, i, buf, &len), US_OK);
        assert_int_equal(len, strlen(url));
        assert_memory_equal(buf, url, len);
    }

    return n == net.primary->urls;
}


/* it has all within some time, and had nothing wrong before */

static void
comes(proc_t *p, unsigned ms)
{
    uint64_t  end;

    for (end = world.now + ms; world.now < end; /* void */) {
        pass(50);

        if (right(p)) {
            return;
        }
    }

    fail_msg("not all is there: \"%s\" %s", world.sh->reason, p->said);
}


static int
setup(void **state)
{
    return world_setup(state);
}


static int
teardown(void **state)
{
    replicas_stop();
    copy_remove();

    return world_teardown(state);
}


/* from nothing, and on */

static void
test_follow(void **state)
{
    proc_t     *p;
    primary_t   pr;

    primary_make(&pr, 12, 4);
    p = replica_start(&pr);
    comes(p, 1000);
    assert_int_equal(net.gets, 1);
    assert_int_equal(restarts(), 0);
    assert_int_equal(world.sh->replica.connected, 1);

    /* 10 s of silence, then the next connection goes on */

    pass(11000);
    assert_true(net.gets > 1);
    assert_int_equal(right(p), 1);
    assert_int_equal(restarts(), 0);

    primary_remove(&pr);
}


static int
full(void)
{
    return getenv("US_FULL") != NULL;
}


/*
 * The place of the next fault in len bytes: about n places, or with US_FULL=1
 * each byte.  A snapshot has 16 KB of the codec's cache here, nearly all of
 * it zeros: of bytes after FAKE_ZEROS zeros, which no header has, only each
 * 61st is one with US_FULL=1.
 */

static size_t
next(const uint8_t *p, size_t at, size_t len, size_t n)
{
    static const uint8_t  zeros[FAKE_ZEROS + 1];

    if (!full()) {
        return at + 1 + len / n;
    }

    do {
        at++;
    } while (at < len && at % 61 && at >= FAKE_ZEROS
             && memcmp(p + at - FAKE_ZEROS, zeros, sizeof(zeros)) == 0);

    return at;
}


/* all that the last connection had */

static size_t
stream(uint8_t *p)
{
    memcpy(p, net.buf, net.len);

    return net.len;
}


/* the connection is cut after a byte: the next one goes on */

static void
test_cuts(void **state)
{
    proc_t          *p;
    size_t           cut, len;
    unsigned         snapshot;
    primary_t        pr;
    static uint8_t   buf[FAKE_STREAM];

    for (snapshot = 0; snapshot <= 4; snapshot += 4) {
        primary_make(&pr, 12, snapshot);
        p = replica_start(&pr);
        comes(p, 1000);
        len = stream(buf);

        for (cut = 0; cut <= len; cut = next(buf, cut, len, 60)) {
            p = replica_start(&pr);
            net.faulty = 1;
            net.cut = cut + 1;
            comes(p, FAKE_LATER);
            assert_int_equal(restarts(), 0);
            assert_true(net.gets <= 2);
        }

        primary_remove(&pr);
    }
}


/* one bit of a byte is changed, in one connection and in five */

static void
test_flips(void **state)
{
    proc_t          *p;
    size_t           at, len;
    unsigned         snapshot;
    primary_t        pr;
    static uint8_t   buf[FAKE_STREAM];

    for (snapshot = 0; snapshot <= 4; snapshot += 4) {
        primary_make(&pr, 12, snapshot);
        p = replica_start(&pr);
        comes(p, 1000);
        len = stream(buf);

        for (at = 0; at < len; at = next(buf, at, len, 60)) {
            p = replica_start(&pr);
            net.faulty = at % 2 ? 5 : 1;
            net.flip = at + 1;
            comes(p, 100000);
        }

        primary_remove(&pr);
    }
}


/* a worker is killed at its call number at; 0: it makes fewer */

static int
killed(proc_t *p, unsigned at)
{
    static us_share_t  shared;

    world.calls = 0;
    world.kill_at = at;
    __lsan_disable();

    if (setjmp(world.killed) == 0) {
        pass(400);
        __lsan_enable();
        world.kill_at = 0;
        return 0;
    }

    /* its own memory, and nothing that is shared */

    shared = *world.sh;
    us_follow_stop(&p->l.follow);
    *world.sh = shared;
    proc_kill(p);
    __lsan_enable();

    return 1;
}


/* the replica's process is killed at each call that waits */

static void
test_kills(void **state)
{
    proc_t     *p;
    unsigned    at;
    primary_t   pr;

    primary_make(&pr, 12, 4);

    for (at = 1; at < 40; at++) {
        if (!killed(replica_start(&pr), at)) {
            break;
        }

        p = proc_start(-1, -1);
        comes(p, FAKE_LATER);
    }

    assert_true(at > 10);
    primary_remove(&pr);
}


/* a connection that brings nothing new: it is made less and less often */

static void
test_back_off(void **state)
{
    size_t     cut;
    proc_t    *p;
    unsigned   i;
    primary_t  pr;

    primary_make(&pr, 12, 4);

    /* nobody there */

    p = replica_start(&pr);
    net.primary = NULL;
    pass(60000);
    assert_in_range(net.gets, 14, 20);
    net.primary = &pr;
    comes(p, 6000);

    /* past the manifest and a beat, and in the middle of the first block */

    for (cut = 400; cut < 600; cut += 60) {
        p = replica_start(&pr);
        net.faulty = 1000;
        net.cut = cut;
        pass(60000);
        assert_in_range(net.gets, 14, 20);
        assert_int_equal(restarts(), 0);

        net.faulty = 0;
        comes(p, 6000);
        pass(1000);

        /* a level replica that loses connections comes back at once */

        for (i = 0; i < 5; i++) {
            net.gets = 0;
            net.sent = net.len;
            net.closes = 1;
            pass(400);
            assert_int_equal(net.gets, 1);
        }
    }

    primary_remove(&pr);

    /* so does one that gets a block or two by each connection */

    primary_make(&pr, 160, 0);
    p = replica_start(&pr);
    net.faulty = 1000;
    net.cut = 600;
    comes(p, 10000);
    assert_true(net.gets > 8);
    primary_remove(&pr);
}


/* the CRCs of a stream's last block, after a change of its payload */

static uint8_t *
block_last(uint8_t *p, size_t len, us_block_t *b, uint32_t *seed)
{
    size_t       need;
    ssize_t      n;
    us_frame_t   f;
    uint8_t     *last;
    us_stream_t  s;

    us_stream_init(&s, &us_data_ops, NULL);

    for (last = NULL; len; p += n, len -= n) {
        n = us_stream_next(&s, p, len, &f, &need);
        assert_true(n > 0);

        if (f.type == US_FRAME_BLOCK) {
            last = p;
            *b = f.block;
            *seed = s.reader.head.crc;
        }
    }

    assert_non_null(last);

    return last;
}


/* the last block deletes an id that is not given, and does nothing else */

static void
change_unappliable(uint8_t *p, size_t len)
{
    size_t      n;
    uint8_t    *q, *next;
    uint32_t    seed;
    us_op_t     op;
    us_block_t  b;

    q = block_last(p, len, &b, &seed);
    next = q + US_BLOCK_HEADER + b.len;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_DELETE;
    op.id = 1000000;
    b.len = us_op_head(&op, q + US_BLOCK_HEADER);
    n = us_block_write(q, &b, seed);

    memmove(q + n, next, p + len - next);
    net.len -= next - (q + n);
}


/*
 * A stream that cannot be applied, though all of its CRCs are right: all is
 * fetched anew, a few times, and then once a minute.
 */

static void
test_unappliable(void **state)
{
    proc_t     *p;
    primary_t   pr;

    primary_make(&pr, 12, 4);

    p = replica_start(&pr);
    net.faulty = 1000;
    net.change = change_unappliable;
    pass(600000);
    assert_true(strstr(p->said, "do not fit the store") != NULL
                || strstr(p->said, "no whole store") != NULL);
    assert_in_range(restarts(), 10, 25);
    assert_in_range(net.gets, 10, 60);
    assert_int_equal(right(p), 0);

    net.faulty = 0;
    comes(p, 61000);

    primary_remove(&pr);
}


static void
change_uuid(uint8_t *p, size_t len)
{
    char      *line;
    size_t     n;
    uint32_t   crc;

    /* a manifest of another store, whose own CRC is right */

    n = us_get32(p + 4);
    p += US_STREAM_MANIFEST;
    line = memmem(p, n, "uuid ", 5);
    assert_non_null(line);
    line[5] = line[5] == '0' ? '1' : '0';

    line = memmem(p, n, "\ncrc32c ", 8);
    assert_non_null(line);
    line++;
    crc = us_crc32c(0, p, (uint8_t *) line - p);
    snprintf(line + 7, 9, "%08x", crc);
    line[15] = '\n';
}


/* a primary that goes on with another store; one that has less than it had */

static void
test_others(void **state)
{
    proc_t     *p;
    unsigned    gets;
    primary_t   pr, less;

    primary_make(&pr, 12, 0);
    p = replica_start(&pr);
    comes(p, 1000);

    net.faulty = 1000;
    net.change = change_uuid;
    pass(60000);
    assert_int_equal(right(p), 1);
    assert_int_equal(restarts(), 0);
    assert_non_null(strstr(world.sh->reason, "of another store"));

    /* its journal ends earlier: 410, and all is fetched anew */

    net.faulty = 0;
    less = pr;
    less.tail.lsn = 0;
    less.tail.offset = 0;
    less.tail.ids = 0;
    less.tail.crc = 0;
    memset(&less.beat, 0, sizeof(us_beat_t));
    less.urls = 0;
    net.primary = &less;
    gets = net.gets;

    pass(20000);
    assert_true(net.gets > gets);
    assert_true(restarts() > 0);
    assert_int_equal(right(p), 1);

    net.primary = &pr;
    comes(p, FAKE_LATER);

    primary_remove(&pr);
}


/* beats that cannot be true: nothing is answered by them */

static void
test_beats(void **state)
{
    proc_t     *p;
    unsigned    i;
    primary_t   pr;
    us_beat_t   beats[] = {
        { 0, 0, 0 },                  /* durable before the snapshot */
        { 1, UINT64_MAX, 12 },        /* more than is published */
    };

    for (i = 0; i < 2; i++) {
        us_beat_t  beat;

        primary_make(&pr, 12, i ? 0 : 4);
        beat = pr.beat;
        p = replica_start(&pr);
        pr.beat = beats[i];
        pass(10000);
        assert_int_equal(right(p), 0);
        assert_int_not_equal(us_life_state(&p->l), US_LIFE_REPLICA);
        assert_non_null(strstr(world.sh->reason, "its beat has LSN"));

        pr.beat = beat;
        comes(p, 6000);

        /* less than it has sent: what was applied stays */

        pr.beat.durable = 1;
        net.closes = 1;
        pass(20000);
        assert_int_equal(right(p), 1);
        assert_non_null(strstr(world.sh->reason, "its beat has LSN"));
        primary_remove(&pr);
    }
}


/* with path=: a restart has what was there, and goes on with the rest */

static void
test_copy(void **state)
{
    proc_t          *p;
    size_t           cut, len;
    unsigned         snapshot;
    primary_t        pr;
    static uint8_t   buf[FAKE_STREAM];

    for (snapshot = 0; snapshot <= 4; snapshot += 4) {
        primary_make(&pr, 12, snapshot);
        p = copy_start(&pr);
        comes(p, 1000);
        assert_int_equal(restarts(), 0);
        copy_same(&pr);
        len = stream(buf);

        /* nobody to ask: all is there, and the primary goes on from it */

        p = copy_start(NULL);
        net.primary = NULL;
        pass(2000);
        net.primary = &pr;
        assert_int_equal(us_life_state(&p->l), US_LIFE_REPLICA);
        assert_int_equal(right(p), 1);
        comes(p, 6000);
        assert_int_equal(restarts(), 0);
        assert_true(net.len < len);

        /* of each first load that a restart has cut */

        for (cut = 0; cut <= len; cut = next(buf, cut, len, 12)) {
            copy_remove();
            (void) copy_start(&pr);
            net.faulty = 1000;
            net.cut = cut + 1;
            pass(300);

            p = copy_start(&pr);
            comes(p, FAKE_LATER);
            copy_same(&pr);
        }

        copy_remove();
        primary_remove(&pr);
    }
}


static void copy_erased(proc_t *p);


/* a kill at each call, of the worker alone and of the whole server */

static void
copy_kills(primary_t *pr, unsigned step, int erases)
{
    proc_t    *p;
    unsigned   at, all;

    for (at = 1, all = 0; at < 2000; at += full() ? 1 : step, all++) {
        copy_remove();

        if (!killed(copy_start(pr), at)) {
            break;
        }

        p = all % 2 ? copy_start(pr) : proc_start(copy.dirfd, copy.lockfd);
        comes(p, FAKE_LATER);

        if (erases) {
            copy_erased(p);

        } else {
            copy_same(pr);
        }

        assert_true(restarts() <= 1);
    }

    assert_true(at > 60);
}


static void
test_copy_kills(void **state)
{
    primary_t  pr;

    primary_make(&pr, 12, 4);
    copy_kills(&pr, 6, 0);
    copy_remove();
    primary_remove(&pr);
}


/* the same at a start from a copy, whose end is not whole */

static void
test_copy_start_kills(void **state)
{
    proc_t     *p;
    unsigned    at;
    primary_t   pr;

    primary_make(&pr, 12, 4);
    p = copy_start(&pr);
    comes(p, 1000);

    for (at = 1; at < 2000; at += full() ? 1 : 2) {
        if (!killed(copy_start(&pr), at)) {
            break;
        }

        p = proc_start(copy.dirfd, copy.lockfd);
        comes(p, FAKE_LATER);
        copy_same(&pr);
        assert_int_equal(restarts(), 0);
    }

    assert_true(at > 10);
    copy_remove();
    primary_remove(&pr);
}


/*
 * A primary that has erased the first n of its URLs, and was killed before it
 * took the snapshot: its files have them, and the journal has the erasure.
 */

static void
primary_erase(primary_t *pr, unsigned urls, unsigned n)
{
    int                 lockfd;
    char                url[64];
    proc_t             *p;
    unsigned            i;
    uint64_t            number, lsn;
    us_sweep_t          sweep;
    us_store_item_t     item;
    us_store_status_t   status;

    static const uint8_t  random[16] = "the list's key..";

    world.conf.path = world.path;
    world.conf.follow = NULL;
    world.conf.snapshot = 1000000;
    world.conf.store.erases = 1;
    pr->dirfd = world_open(".", O_RDONLY|O_DIRECTORY);
    lockfd = world_open("lock", O_RDWR|O_CREAT);
    assert_true(pr->dirfd >= 0 && lockfd >= 0);

    replicas_stop();
    world_zone();
    p = proc_start(pr->dirfd, lockfd);
    pass(100);
    primary_fill(p, 0, urls);
    world.current = p;

    assert_int_equal(us_store_erasure_begin(p->l.store, US_ERASURE_URLS,
                                            us_string(""), random, 0, NULL,
                                            &number, &lsn), US_NEW);

    for (i = 0; i < n; i++) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", i % 7, i);
        memset(&item, 0, sizeof(item));
        item.url = us_str_of(url);
        (void) us_store_erase(p->l.store, number, &item, 1);
        assert_int_equal(item.status, US_ERASED);
    }

    assert_int_equal(us_store_erasure_done(p->l.store, number, &lsn), US_OK);
    memset(&sweep, 0, sizeof(sweep));

    for (i = 0; i < 1000; i++) {
        world.current = p;
        status = us_store_sweep(p->l.store, &sweep);
        world.current = NULL;

        if (status == US_OK) {
            break;
        }

        us_life_write(&p->l);
        proc_step(p);
    }

    assert_int_equal(status, US_OK);

    /* the keeper's thread does not come to run */

    while (us_store_durable(p->l.store) < us_store_published(p->l.store)) {
        world.now += 50;
        us_release(&world.sh->sync_wanted, us_store_published(p->l.store));
        proc_step(p);
    }

    world.current = p;
    us_life_journal(&p->l, &pr->tail, &pr->beat);
    world.current = NULL;
    pr->urls = urls;
    pr->erased = n;
    p->jobs[US_ROLE_KEEPER] = NULL;
    proc_kill(p);
    (void) close(lockfd);
    world.conf.store.erases = 0;
}


/* the LSN from which on no file of the copy may begin earlier */

static uint64_t
copy_gone(proc_t *p)
{
    us_erasure_info_t  e;

    assert_int_equal(us_store_erasure(p->l.store, 1, &e), 1);
    assert_true(e.gone > 0);

    return e.gone;
}


static void
copy_erased(proc_t *p)
{
    size_t              i;
    uint64_t            end, gone;
    us_dir_t            dir;
    us_disk_error_t     e;
    us_erasure_info_t   info;

    gone = copy_gone(p);
    assert_int_equal(us_store_erasure(p->l.store, 1, &info), 1);

    for (end = world.now + FAKE_LATER; world.now < end; /* void */) {

        if (!(us_life_left(&p->l, &info) & US_LEFT_FILES)) {
            break;
        }

        pass(50);
    }

    assert_int_equal(us_life_left(&p->l, &info), US_LEFT_WORKERS);
    assert_true(us_acquire(&p->l.follow_past) >= gone);

    assert_int_equal(us_dir_read(copy.dirfd, &dir, &e), 0);
    assert_true(dir.nsegments > 0 && dir.nsnapshots > 0);

    for (i = 0; i < dir.nsegments; i++) {
        assert_true(dir.segments[i] >= gone);
    }

    for (i = 0; i < dir.nsnapshots; i++) {
        assert_true(dir.snapshots[i] >= gone);
    }

    us_dir_free(&dir);
}


/*
 * What a process has is closed if others have its roles, but not because one of
 * two is still in the hands of a process that was killed, or is stopped.
 */

static void
test_roles_of_others(void **state)
{
    proc_t          *p;
    uint64_t        *loader, *writer;
    primary_t        pr;
    const unsigned   both = 1 << US_ROLE_LOADER | 1 << US_ROLE_WRITER;

    primary_erase(&pr, 40, 5);
    p = copy_start(&pr);
    comes(p, 1000);

    loader = &world.sh->roles[US_ROLE_LOADER].holder;
    writer = &world.sh->roles[US_ROLE_WRITER].holder;
    assert_int_equal(*loader, p->l.self);
    assert_int_equal(*writer, 0);

    *writer = p->l.self + 1;
    p->l.jobs[US_ROLE_LOADER].active = 0;
    assert_int_equal(us_follow_due(&p->l, &p->l.follow, both), 1);
    assert_non_null(p->l.follow);

    *loader = 0;
    assert_int_equal(us_follow_due(&p->l, &p->l.follow, both), 1);
    assert_null(p->l.follow);
    *writer = 0;
}


/* jobs do not start while memory is to be wiped; but not for long */

static unsigned
busy_after(proc_t *p, unsigned ms)
{
    uint64_t  end;
    unsigned  busy;

    for (busy = 0, end = world.now + ms; world.now < end; /* void */) {
        pass(10);
        busy = us_life_busy(&p->l);
    }

    return busy;
}


static void
test_held(void **state)
{
    proc_t          *p;
    primary_t        pr;

    primary_erase(&pr, 40, 5);
    p = copy_start(&pr);
    comes(p, 1000);
    assert_true(busy_after(p, 100) & US_ROLES_SHORT);

    us_life_hold(&p->l, 1 << US_ROLE_BASE | 1 << US_ROLE_LOADER);
    assert_true(busy_after(p, 500) & US_ROLES_SHORT);

    us_life_hold(&p->l, US_ROLES_SHORT);
    assert_int_equal(busy_after(p, 900), 0);
    assert_true(busy_after(p, 500) & US_ROLES_SHORT);

    us_life_hold(&p->l, US_ROLES_SHORT);
    assert_int_equal(busy_after(p, 900), 0);
    us_life_forget(&p->l);
    assert_true(busy_after(p, 100) & US_ROLES_SHORT);

    p->l.conf.follow = NULL;
    assert_int_equal(us_life_busy(&p->l), 0);
}


/* a worker has wiped when it has done so twice; the second time it fails */

static void
test_wiped(void **state)
{
    proc_t     *p;
    unsigned    i;
    uint64_t    gone;
    primary_t   pr;

    world.conf.erase_within = 8000;
    primary_erase(&pr, 40, 5);
    p = copy_start(&pr);
    comes(p, 1000);
    gone = us_store_erased_lsn(p->l.store);

    for (i = 0; i < 4; i++) {
        assert_int_equal(us_life_wipe_due(&p->l), gone);
        us_life_wiped(&p->l, i == 1 ? 0 : gone);
        assert_int_equal(us_members_wiped(world.sh), i < 3 ? 0 : gone);
        assert_int_equal(us_life_wipe_due(&p->l), 0);
        pass(1000);
    }

    assert_int_equal(us_life_wipe_due(&p->l), 0);
    world.conf.erase_within = 0;
}


/*
 * An erasure comes with the journal: the copy has none of it in the end, if the
 * worker or the server is killed at any call meanwhile.  Nothing is said to the
 * primary before.
 */

static void
test_copy_erases(void **state)
{
    proc_t             *p;
    unsigned            row;
    uint64_t            id, gone;
    primary_t           pr, other;
    us_erasure_info_t   e;

    primary_erase(&pr, 40, 5);

    p = copy_start(&pr);
    comes(p, 1000);
    assert_int_equal(net.erased, 0);
    assert_int_equal(net.keeps, 1);
    id = net.id;
    copy_erased(p);

    /* all but the workers, as nobody wipes them here: then it comes again */

    for (row = 0; row < US_SHARE_MEMBERS; row++) {
        us_release(&world.sh->members[row].wiped, UINT64_MAX);
    }

    pass(200);
    gone = copy_gone(p);
    assert_int_equal(net.erased, gone);
    assert_int_equal(net.id, id);
    assert_int_equal(net.gets, 2);
    pass(3000);
    assert_int_equal(net.gets, 2);

    /* all is fetched anew: files and memory have them again */

    other = pr;
    other.tail.lsn = 0;
    other.tail.offset = 0;
    other.tail.ids = 0;
    other.tail.crc = 0;
    memset(&other.beat, 0, sizeof(us_beat_t));
    other.urls = 0;
    net.primary = &other;
    net.closes = 1;
    pass(2000);
    assert_true(restarts() > 0);
    assert_false(us_life_past(&p->l, gone));
    us_release(&world.sh->snapshot_next, world.now + 10000);
    net.primary = &pr;
    comes(p, 9000);
    assert_int_equal(us_store_erasure(p->l.store, 1, &e), 1);
    assert_int_equal(us_life_left(&p->l, &e), US_LEFT_FILES|US_LEFT_WORKERS);
    assert_int_equal(net.erased, 0);
    assert_int_equal(net.id, id);
    copy_erased(p);

    /* a restart is the same replica, and has to say it anew */

    p = copy_start(&pr);
    comes(p, 1000);
    assert_int_equal(net.id, id);
    assert_int_equal(net.erased, 0);
    copy_erased(p);
    assert_int_equal(restarts(), 0);

    copy_kills(&pr, 3, 1);
    copy_remove();
    primary_remove(&pr);
}


/*
 * Each call that can fail does so once: of a first load, of the snapshot that
 * the erasure asks for, and of a start from that copy.  No descriptor stays
 * open.
 */

static void
test_copy_fails(void **state)
{
    proc_t     *p;
    unsigned    i, fds;
    primary_t   pr;

    primary_erase(&pr, 40, 5);

    for (fault_begin(); fault_next(3); /* void */) {
        copy_remove();
        p = copy_start(&pr);
        fds = fake_open();
        fault_arm();

        for (i = 0; i < 2; i++) {
            comes(p, FAKE_LATER);
            pass(1000);

            /* a snapshot that has failed is taken again at once */

            if (fault.failed) {
                us_release(&world.sh->snapshot_next, 0);
            }

            copy_erased(p);
            p = copy_start(&pr);
        }

        world.fail_at = 0;
        comes(p, FAKE_LATER);
        assert_int_equal(restarts(), 0);
        replicas_stop();

        if (fake_open() != fds) {
            fail_msg("%s, call %u: %u descriptors, %u before", fault.failed,
                     fault.at, fake_open(), fds);
        }
    }

    assert_true(fault.tries > 70);
    copy_remove();
    primary_remove(&pr);
}


/* the first file of the copy whose name begins so */

static void
copy_name(const char *begin, char name[300])
{
    DIR            *d;
    struct dirent  *de;

    d = opendir(copy.path);
    assert_non_null(d);

    while ((de = readdir(d)) != NULL
           && strncmp(de->d_name, begin, strlen(begin)) != 0)
    {
        /* void */
    }

    assert_non_null(de);
    snprintf(name, 300, "%s", de->d_name);
    (void) closedir(d);
}


static int
copy_file(const char *begin)
{
    char  name[300];

    copy_name(begin, name);

    return copy_open(name, O_RDWR);
}


static void
copy_unlink(const char *begin)
{
    char  name[300];

    copy_name(begin, name);
    assert_int_equal(syscall(SYS_unlinkat, copy.dirfd, name, 0), 0);
}


/* a bit of a byte is changed, or the file ends there */

static void
copy_damage(const char *begin, off_t at, int cut)
{
    int      fd;
    uint8_t  byte;

    fd = copy_file(begin);

    if (cut) {
        assert_int_equal(ftruncate(fd, at), 0);

    } else {
        assert_int_equal(syscall(SYS_pread64, fd, &byte, 1, at), 1);
        byte ^= 1 << at % 8;
        assert_int_equal(syscall(SYS_pwrite64, fd, &byte, 1, at), 1);
    }

    (void) syscall(SYS_close, fd);
}


/* a byte of a file is changed, and a file is cut: nothing wrong comes of it */

static void
test_copy_damage(void **state)
{
    int                        fd, cut;
    size_t                     at, len;
    proc_t                    *p;
    unsigned                   i;
    primary_t                  pr;
    static uint8_t             buf[FAKE_STREAM];
    static const char *const   files[] = { "journal.", "snapshot." };

    primary_make(&pr, 12, 4);
    p = copy_start(&pr);
    comes(p, 1000);

    for (i = 0; i < 2; i++) {
        fd = copy_file(files[i]);
        len = (size_t) syscall(SYS_read, fd, buf, sizeof(buf));
        assert_in_range(len, 1, sizeof(buf) - 1);
        (void) syscall(SYS_close, fd);

        for (at = 0; at < len; at = next(buf, at, len, 12)) {
            for (cut = 0; cut < 2; cut++) {
                copy_damage(files[i], (off_t) at, cut);

                p = copy_start(&pr);
                comes(p, FAKE_LATER);
                copy_same(&pr);
            }
        }
    }

    copy_remove();
    primary_remove(&pr);
}


/* the names and sizes of the files that a copy has */

static uint64_t
copy_files(void)
{
    DIR            *d;
    char           *name;
    uint64_t        sum;
    struct stat     st;
    struct dirent  *de;

    d = opendir(copy.path);
    assert_non_null(d);
    sum = 0;

    while ((de = readdir(d)) != NULL) {
        name = de->d_name;

        if (strncmp(name, "journal.", 8) == 0
            || strncmp(name, "snapshot.", 9) == 0
            || strcmp(name, "manifest") == 0)
        {
            assert_int_equal(fstatat(dirfd(d), name, &st, 0), 0);
            sum += (uint64_t) (st.st_size + 1) * (strlen(name) + name[0]);
        }
    }

    (void) closedir(d);

    return sum;
}


/* files that no manifest says to be a copy: none is removed, nobody is asked */

static void
test_copy_foreign(void **state)
{
    int                        fd;
    proc_t                    *p;
    uint64_t                   had;
    unsigned                   i;
    primary_t                  pr;
    us_manifest_t              m;
    us_disk_error_t            e;
    static const char *const   why[] = {
        "but no \"manifest\"", "\"manifest\" is damaged",
        "no replica's copy",
    };

    primary_make(&pr, 12, 4);

    for (i = 0; i < 3; i++) {
        copy_remove();
        p = copy_start(&pr);
        comes(p, 1000);

        assert_int_equal(us_manifest_read(copy.dirfd, &m, &e),
                         US_MANIFEST_OK);

        if (i == 0) {
            copy_unlink("manifest");

        } else if (i == 1) {
            fd = copy_open("manifest", O_WRONLY|O_TRUNC);
            (void) syscall(SYS_close, fd);

        } else {
            m.state = US_STATE_OPEN;
            assert_int_equal(us_manifest_write(copy.dirfd, &m, &e), 0);
        }

        had = copy_files();
        p = copy_start(&pr);
        pass(60000);
        assert_int_equal(copy_files(), had);
        assert_int_equal(right(p), 0);
        assert_int_equal(net.gets, 0);
        assert_non_null(strstr(world.sh->reason, why[i]));

        copy_unlink("journal.");
        copy_unlink("snapshot.");

        if (i) {
            copy_unlink("manifest");
        }

        comes(p, 120000);
        copy_same(&pr);
    }

    copy_remove();
    primary_remove(&pr);
}


/* the file that is written is changed from outside: the next connection sees */

static void
test_copy_gone(void **state)
{
    int         fd;
    off_t       size;
    proc_t     *p;
    unsigned    i;
    primary_t   pr;

    enum { LONGER = 0, SHORTER, REMOVED };

    primary_make(&pr, 12, 4);

    for (i = LONGER; i <= REMOVED; i++) {
        copy_remove();
        p = copy_start(&pr);
        comes(p, 1000);

        if (i == REMOVED) {
            copy_unlink("journal.");

        } else {
            fd = copy_file("journal.");
            size = lseek(fd, 0, SEEK_END);
            assert_int_equal(ftruncate(fd, i == LONGER ? size + 9 : size - 1),
                             0);
            (void) syscall(SYS_close, fd);
        }

        net.sent = net.len;
        net.closes = 1;
        pass(10000);

        assert_int_equal(right(p), 1);
        assert_int_equal(restarts(), i != LONGER);
        copy_same(&pr);
    }

    copy_remove();
    primary_remove(&pr);
}


/* another server has the directory: the replica waits for it */

static void
test_copy_waits(void **state)
{
    int         fd;
    proc_t     *p;
    primary_t   pr;

    primary_make(&pr, 12, 4);
    p = copy_start(&pr);
    comes(p, 1000);

    p = copy_start(&pr);
    fd = copy_open("lock", O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX|LOCK_NB), 0);
    pass(3000);
    assert_int_equal(right(p), 0);
    assert_int_equal(net.gets, 0);
    assert_non_null(strstr(world.sh->reason, "another server has"));

    (void) syscall(SYS_close, fd);
    comes(p, 10000);
    assert_int_equal(restarts(), 0);
    copy_same(&pr);

    copy_remove();
    primary_remove(&pr);
}


/* a copy that cannot be removed: it is tried less and less often */

static void
test_copy_stays(void **state)
{
    char        name[400];
    proc_t     *p;
    primary_t   pr;

    primary_make(&pr, 12, 4);
    p = copy_start(&pr);
    comes(p, 1000);

    copy_damage("snapshot.", 100, 1);
    snprintf(name, sizeof(name), "%s/manifest.tmp", copy.path);
    assert_int_equal(mkdir(name, 0700), 0);

    p = copy_start(&pr);
    pass(60000);
    assert_int_equal(right(p), 0);
    assert_int_equal(net.gets, 0);
    assert_non_null(strstr(world.sh->reason,
                           "\"manifest.tmp\" could not be removed"));
    assert_in_range(world.sh->replica.failures, 5, 20);

    assert_int_equal(rmdir(name), 0);
    comes(p, 120000);
    copy_same(&pr);

    copy_remove();
    primary_remove(&pr);
}


/* a disk that refuses; another store at the primary's; a snapshot of its own */

static void
test_copy_others(void **state)
{
    proc_t     *p;
    primary_t   pr, other;

    primary_make(&pr, 12, 4);

    p = copy_start(&pr);
    world.write_errno = ENOSPC;
    pass(3000);
    assert_int_equal(right(p), 0);
    assert_non_null(strstr(world.sh->reason, "\"manifest.tmp\" failed"));
    world.write_errno = 0;
    comes(p, 10000);
    copy_same(&pr);

    /* no descriptors at a start: the copy stays */

    p = copy_start(&pr);
    world.open_errno = EMFILE;
    pass(3000);
    assert_int_equal(right(p), 0);
    assert_non_null(strstr(world.sh->reason, "is not asked: "));
    world.open_errno = 0;
    comes(p, 10000);
    assert_int_equal(restarts(), 0);

    /* its journal ends earlier: all of it is another one */

    other = pr;
    other.tail.lsn = 0;
    other.tail.offset = 0;
    other.tail.ids = 0;
    other.tail.crc = 0;
    memset(&other.beat, 0, sizeof(us_beat_t));
    other.urls = 12;
    p = copy_start(&other);
    pass(2000);
    assert_true(restarts() > 0);
    net.primary = &pr;
    comes(p, FAKE_LATER);
    copy_same(&pr);

    copy_remove();
    primary_remove(&pr);

    /* a journal that is long enough */

    primary_make(&pr, 12, 0);
    world.conf.snapshot = 1;
    p = copy_start(&pr);
    comes(p, 1000);
    pass(1000);
    assert_int_equal(world.sh->snapshots, 1);

    /* it has not grown since: none is due after a start */

    p = copy_start(&pr);
    comes(p, 1000);
    pass(1000);
    assert_int_equal(world.sh->snapshots, 0);
    world.conf.snapshot = 1000000;

    p = copy_start(&pr);
    net.primary = NULL;
    pass(1000);
    net.primary = &pr;
    assert_int_equal(right(p), 1);
    comes(p, 6000);
    assert_int_equal(restarts(), 0);

    copy_remove();
    primary_remove(&pr);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        test(test_follow),
        test(test_cuts),
        test(test_flips),
        test(test_kills),
        test(test_back_off),
        test(test_unappliable),
        test(test_others),
        test(test_beats),
        test(test_copy),
        test(test_copy_kills),
        test(test_copy_start_kills),
        test(test_roles_of_others),
        test(test_held),
        test(test_wiped),
        test(test_copy_erases),
        test(test_copy_fails),
        test(test_copy_damage),
        test(test_copy_foreign),
        test(test_copy_gone),
        test(test_copy_waits),
        test(test_copy_stays),
        test(test_copy_others),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
