/*
 * The copy of a replicated store (src/life/us_copier.c), with the clock, the
 * disk and the processes of t/unit/life_fake.h, over a log in memory.
 *
 *     flog    the log: rows, of which the first so many can be seen; calls that
 *             find nobody
 *     node    a server with path=: start() is one of the machine, which has the
 *             directory and an empty zone
 */

#include "life_fake.h"
#include "life/us_replicate.h"
#include "replog/us_standby.h"
#include "journal/us_crc32c.h"
#include "journal/us_segment.h"
#include "store/us_ring.h"

#include <time.h>


#define FLOG_ROWS    4000
#define FLOG_PARTS   8
#define FAKE_LATER   20000            /* ms in which all comes right */


typedef struct {
    us_replog_row_t  row;
    uint8_t         *p;
    size_t           len;
} flog_row_t;


static struct {
    int              there;
    us_replog_head_t head;
    flog_row_t       rows[FLOG_ROWS];
    unsigned         nrows;
    unsigned         shown;           /* 0: all of them */
    int              away;
    int              unsure;          /* commits are not confirmed */
    int              unknown;         /* nor is it known that a term began */
    unsigned         restarts;        /* after each all sessions are new */
    unsigned         deposes;         /* after so many of them another node
                                         begins a term */
    int              unopened;        /* there is no memory for a session */
    int              based;           /* the parts are the base in force */
    flog_row_t       parts[FLOG_PARTS];
    unsigned         nparts;
    unsigned         late;            /* sessions that were closed by a process
                                         without a role */
} flog;


static struct {
    int              dirfd;
    int              lockfd;
} disk = { -1, -1 };


/* the time that leases are of, too */

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (clock != CLOCK_BOOTTIME) {
        return (int) syscall(SYS_clock_gettime, clock, ts);
    }

    ts->tv_sec = (time_t) (world.now / 1000);
    ts->tv_nsec = (long) (world.now % 1000) * 1000000;

    return 0;
}


/* the log */

static int
flog_check(const char *conninfo, char *err, size_t size)
{
    return 0;
}


static us_replog_t *flog_open(const char *conninfo, uint32_t shard, int single,
    const us_replog_env_t *env);


static void
flog_close(us_replog_t *log)
{
    unsigned  i;

    for (i = 0; world.current && i < US_ROLES; i++) {
        if (world.sh->roles[i].holder == us_process_self()) {
            break;
        }
    }

    flog.late += i == US_ROLES;
    free(log);
}


static us_replog_rc_t
flog_begin(us_replog_t *log)
{
    fake_call(0);
    log->session = 1 + flog.restarts;
    strcpy(log->error, "nobody is there");

    return flog.away ? US_REPLOG_AWAY : US_REPLOG_OK;
}


static unsigned
flog_end(void)
{
    return flog.shown ? flog.shown : flog.nrows;
}


static flog_row_t *
flog_at(uint64_t lsn)
{
    unsigned  i;

    for (i = 0; i < flog_end(); i++) {
        if (flog.rows[i].row.lsn == lsn) {
            return &flog.rows[i];
        }
    }

    return NULL;
}


static int
flog_has(const us_replog_row_t *row)
{
    flog_row_t  *r;

    r = flog_at(row->lsn);

    return r && memcmp(&r->row, row, sizeof(*row)) == 0;
}


static void
flog_put(const us_replog_row_t *row, const void *p, size_t len)
{
    flog_row_t  *r;

    assert_true(flog.nrows < FLOG_ROWS);

    r = &flog.rows[flog.nrows++];
    r->row = *row;
    r->len = len;
    r->p = __real_malloc(len + 1);
    assert_non_null(r->p);

    if (len) {
        memcpy(r->p, p, len);
    }
}


static us_replog_rc_t
flog_head(us_replog_t *log, us_replog_head_t *head)
{
    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    if (!flog.there) {
        return US_REPLOG_NONE;
    }

    *head = flog.head;
    head->last = flog.rows[flog_end() - 1].row;

    if (head->acked > head->last.next) {
        head->acked = head->last.next;
    }

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_create(us_replog_t *log, const uint8_t uuid[16], const char *settings)
{
    us_replog_row_t  base = { US_REPLOG_BASE, 0, 0, 0 };

    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    if (flog.there) {
        return US_REPLOG_REFUSED;
    }

    memcpy(flog.head.uuid, uuid, 16);
    snprintf(flog.head.settings, sizeof(flog.head.settings), "%s", settings);
    flog_put(&base, "", 0);
    flog.there = 1;

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_row(us_replog_t *log, uint64_t lsn, us_replog_take_pt take, void *data)
{
    flog_row_t  *r;

    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    r = flog_at(lsn);

    if (r == NULL) {
        return US_REPLOG_NONE;
    }

    (void) take(data, &r->row, r->p, r->len);

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_read(us_replog_t *log, uint64_t lsn, size_t max, us_replog_take_pt take,
    void *data)
{
    unsigned        i;
    us_replog_rc_t  rc;

    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    rc = US_REPLOG_NONE;

    for (i = 1; i < flog_end(); i++) {

        if (flog.rows[i].row.next <= lsn) {
            continue;
        }

        rc = US_REPLOG_OK;

        if (take(data, &flog.rows[i].row, flog.rows[i].p, flog.rows[i].len)
            == -1)
        {
            break;
        }
    }

    return rc;
}


static void  flog_other(const char *name);


/* 1: a commit cannot be made now */

static int
flog_refuses(us_replog_t *log)
{
    if (flog_begin(log) != US_REPLOG_OK) {
        return 1;
    }

    if (flog.unsure && flog.deposes && --flog.deposes == 0) {
        flog.unsure = 0;
        flog_other("a name that is as long as the operations that were not "
                   "confirmed are together");
    }

    return flog.unsure;
}


static us_replog_rc_t
flog_append(us_replog_t *log, const us_replog_row_t *prev,
    const us_replog_row_t *row, const uint8_t *p, size_t len, uint64_t acked)
{
    if (flog_refuses(log)) {
        return US_REPLOG_AWAY;
    }

    if (!flog_has(prev) || flog_at(row->lsn)) {
        return US_REPLOG_REFUSED;
    }

    flog_put(row, p, len);
    flog.head.acked = acked;

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_beat(us_replog_t *log, const us_replog_row_t *last, uint64_t acked)
{
    if (flog_refuses(log)) {
        return US_REPLOG_AWAY;
    }

    if (!flog_has(last) || last->term != flog.head.term) {
        return US_REPLOG_REFUSED;
    }

    flog.head.beat++;
    flog.head.acked = acked;

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_promote(us_replog_t *log, const us_replog_row_t *prev, uint64_t old,
    const us_replog_row_t *row, const uint8_t *p, size_t len,
    const char *holder, const char *settings, uint64_t *beat)
{
    if (flog_refuses(log)) {
        return US_REPLOG_AWAY;
    }

    if (old != flog.head.term || !flog_has(prev) || flog_at(row->lsn)) {
        return US_REPLOG_REFUSED;
    }

    flog_put(row, p, len);
    flog.head.term = row->term;
    snprintf(flog.head.holder, sizeof(flog.head.holder), "%s", holder);
    snprintf(flog.head.settings, sizeof(flog.head.settings), "%s", settings);
    *beat = flog.head.beat;

    return flog.unknown ? US_REPLOG_UNKNOWN : US_REPLOG_OK;
}


static us_replog_rc_t
flog_base(us_replog_t *log, uint32_t part, us_replog_take_pt take, void *data)
{
    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    if (!flog.based || part >= flog.nparts) {
        return US_REPLOG_NONE;
    }

    (void) take(data, &flog.rows[0].row, flog.parts[part].p,
                flog.parts[part].len);

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_rebase_part(us_replog_t *log, uint64_t term, uint32_t part,
    const uint8_t *p, size_t len)
{
    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    assert_int_equal(term, 0);
    assert_false(flog.based);
    assert_true(part <= flog.nparts && part < FLOG_PARTS);

    free(flog.parts[part].p);
    flog.parts[part].p = __real_malloc(len);
    assert_non_null(flog.parts[part].p);
    memcpy(flog.parts[part].p, p, len);
    flog.parts[part].len = len;
    flog.nparts = part + 1;

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_rebase(us_replog_t *log, uint64_t term, uint64_t first, uint64_t lsn,
    uint32_t parts)
{
    if (flog_begin(log) != US_REPLOG_OK) {
        return US_REPLOG_AWAY;
    }

    assert_int_equal(flog.nrows, 1);
    assert_int_equal(parts, flog.nparts);
    flog.rows[0].row.next = lsn;
    flog.head.base = lsn;
    flog.head.acked = lsn;
    flog.based = 1;

    return US_REPLOG_OK;
}


static us_replog_rc_t
flog_trim(us_replog_t *log)
{
    return flog_begin(log) == US_REPLOG_OK ? US_REPLOG_NONE : US_REPLOG_AWAY;
}


static void
flog_drop(us_replog_t *log)
{
    log->session++;
}


static const us_replog_ops_t  flog_ops = {
    .name = "fake",
    .version = "",
    .check = flog_check,
    .open = flog_open,
    .close = flog_close,
    .head = flog_head,
    .create = flog_create,
    .row = flog_row,
    .read = flog_read,
    .append = flog_append,
    .beat = flog_beat,
    .promote = flog_promote,
    .base = flog_base,
    .rebase_part = flog_rebase_part,
    .rebase = flog_rebase,
    .trim = flog_trim,
    .drop = flog_drop
};


static us_replog_t *
flog_open(const char *conninfo, uint32_t shard, int single,
    const us_replog_env_t *env)
{
    us_replog_t  *log;

    if (flog.unopened) {
        return NULL;
    }

    log = calloc(1, sizeof(us_replog_t));

    if (log == NULL) {
        return NULL;
    }

    log->ops = &flog_ops;
    log->look = 1000;

    return log;
}


/* rows from the n-th on are gone */

static void
flog_cut(unsigned n)
{
    while (flog.nrows > n) {
        free(flog.rows[--flog.nrows].p);
    }

    if (n) {
        flog.head.acked = flog.rows[n - 1].row.next;
        flog.head.term = flog.rows[n - 1].row.term;
    }
}


static void
flog_remove(void)
{
    unsigned  i;

    flog_cut(0);

    for (i = 0; i < FLOG_PARTS; i++) {
        free(flog.parts[i].p);
    }

    memset(&flog, 0, sizeof(flog));
}


/* another node appends an operation */

static void
flog_op(us_op_type_t type, uint64_t id, const char *bytes, uint64_t term)
{
    size_t           n;
    us_op_t          op;
    uint8_t          buf[256];
    us_replog_row_t  row, *last;

    last = &flog.rows[flog.nrows - 1].row;

    memset(&op, 0, sizeof(us_op_t));
    op.type = type;
    op.id = id;
    op.bytes = us_str_of(bytes);
    n = us_op_head(&op, buf);
    memcpy(buf + n, op.bytes.data, op.bytes.len);
    n += op.bytes.len;

    row.lsn = last->next;
    row.next = row.lsn + n;
    row.term = term;
    row.crc = us_crc32c((uint32_t) last->crc, buf, n);

    flog_put(&row, buf, n);
    flog.head.acked = row.next;
}


static void
flog_manifest(us_manifest_t *m)
{
    us_disk_error_t  e;

    assert_int_equal(us_manifest_scan(m, flog.head.settings,
                                      strlen(flog.head.settings), &e),
                     US_MANIFEST_OK);
}


static void
flog_state(const us_manifest_t *m)
{
    char             *text;
    size_t            len;
    us_disk_error_t   e;

    assert_int_equal(us_manifest_print(m, &text, &len, &e), 0);
    strcpy(flog.head.settings, text);
    free(text);
}


/* another node begins a term; its row has so many bytes of a name */

static void
flog_other(const char *name)
{
    flog.head.term = flog.rows[flog.nrows - 1].row.term + 1;
    flog_op(US_OP_TERM, flog.head.term, name, flog.head.term);
    strcpy(flog.head.holder, "other");
}


/* the same, and the log's settings say where it began */

static void
flog_other_stated(const char *name)
{
    char           *at, *end, terms[US_STANDBY_TERMS];
    us_manifest_t   m;

    flog_manifest(&m);
    assert_int_equal(us_manifest_setting(&m, "terms", terms, sizeof(terms)), 0);
    flog_other(name);
    us_standby_terms(terms, flog.head.term,
                     flog.rows[flog.nrows - 1].row.lsn);

    at = strstr(m.settings, "terms ");
    end = strchr(at, '\n') + 1;
    memmove(at, end, strlen(end) + 1);
    assert_int_equal(us_manifest_set(&m, "terms", us_str_of(terms)), 0);
    flog_state(&m);
}


/* the last row is replaced by another one of the same length */

static void
flog_other_end(void)
{
    char      name[US_OP_TERM_MAX];
    size_t    len;
    unsigned  n;

    n = flog.nrows - 1;
    len = flog.rows[n].len;
    memset(name, 'x', sizeof(name));

    do {
        flog_cut(n);
        name[--len] = '\0';
        flog_other(name);
    } while (flog.rows[n].len > flog.rows[n].row.next - flog.rows[n].row.lsn);
}


/* a line of the log's manifest gets another first character */

static void
flog_settings(const char *key, char c)
{
    char           *text, *at;
    us_manifest_t   m;

    text = flog.head.settings;
    at = strstr(text, key);
    assert_non_null(at);
    at[strlen(key)] = c;

    at = strstr(text, "crc32c ");
    snprintf(at, 17, "crc32c %08x\n",
             us_crc32c(0, (uint8_t *) text, (size_t) (at - text)));
    flog_manifest(&m);
}


/* a node has found that rows are lost */

static void
flog_lost(const char *lsn)
{
    us_manifest_t  m;

    flog_manifest(&m);
    assert_int_equal(us_manifest_set(&m, "lost", us_str_of(lsn)), 0);
    flog_state(&m);
}


/* the node */

static us_replicate_conf_t  replicate = {
    .ops = &flog_ops,
    .conninfo = "",
    .node = "n0",
    .single = 1,
    .lease = 1000
};


static us_share_copier_t *
copier(void)
{
    return &world.sh->replicate.copier;
}


static void
node_stop(void)
{
    unsigned  i;

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive) {
            proc_stop(&world.procs[i]);
        }
    }

    if (disk.dirfd != -1) {
        (void) close(disk.dirfd);
        (void) close(disk.lockfd);
        disk.dirfd = -1;
    }
}


static proc_t *
start(void)
{
    node_stop();

    disk.dirfd = world_open(".", O_RDONLY|O_DIRECTORY);
    disk.lockfd = world_open("lock", O_RDWR|O_CREAT);
    assert_true(disk.dirfd >= 0 && disk.lockfd >= 0);
    world_zone();

    return proc_start(disk.dirfd, disk.lockfd);
}


/* what kill -9 of a process leaves; its memory is freed for the test */

static void
node_kill(proc_t *p)
{
    static us_share_t  shared;

    __lsan_disable();
    shared = *world.sh;

    p->l.jobs[US_ROLE_KEEPER].active = 0;
    us_life_stop(&p->l);
    *world.sh = shared;
    proc_kill(p);
    __lsan_enable();
}


/* whether it answers all of so many URLs, and then nothing else */

static int
right(proc_t *p, us_life_state_t state, unsigned n)
{
    char      url[64];
    size_t    len;
    uint8_t   buf[US_URL_MAX + 8];
    unsigned  i, ids;

    if (us_life_state(&p->l) != state) {
        return 0;
    }

    ids = (unsigned) us_life_ids(&p->l);
    assert_true(ids <= n);

    for (i = 0; i < ids; i++) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", i % 7, i);
        assert_int_equal(us_store_get(p->l.store, i, buf, &len), US_OK);
        assert_int_equal(len, strlen(url));
        assert_memory_equal(buf, url, len);
    }

    return ids == n;
}


static void
comes(proc_t *p, us_life_state_t state, unsigned n)
{
    uint64_t  end;

    for (end = world.now + FAKE_LATER; world.now < end; /* void */) {
        pass(50);

        if (right(p, state, n)) {
            return;
        }
    }

    fail_msg("not all is there: state %d, \"%s\" %s", us_life_state(&p->l),
             world.sh->reason, p->said);
}


/* the directory has all that the log has */

static void
level(proc_t *p)
{
    uint64_t  end;

    for (end = world.now + FAKE_LATER; world.now < end; /* void */) {
        pass(50);

        if (copier()->lsn == flog.rows[flog_end() - 1].row.next) {
            return;
        }
    }

    fail_msg("the cache ends at %llu of %llu: %s",
             (unsigned long long) copier()->lsn,
             (unsigned long long) flog.rows[flog_end() - 1].row.next,
             p->said);
}


/* adds so many URLs in rows of four; all are confirmed */

static void
fill(proc_t *p, unsigned from, unsigned n)
{
    unsigned  i;

    for (i = 0; i < n; i += 4) {
        (void) add_some(p, from + i, 4);
        us_life_write(&p->l);
        proc_thread(p, US_ROLE_WRITER);
    }

    comes(p, US_LIFE_READY, from + n);
}


/* a node with so many URLs, whose directory has them */

static proc_t *
make(unsigned n)
{
    proc_t  *p;

    p = start();
    comes(p, US_LIFE_READY, 0);
    fill(p, 0, n);
    level(p);
    assert_int_equal(copier()->restarts, 1);
    assert_int_equal(world.sh->snapshots, 1);

    return p;
}


/* the files of the directory */

static void
world_clean(void)
{
    DIR            *d;
    struct dirent  *de;

    d = opendir(world.path);
    assert_non_null(d);

    while ((de = readdir(d)) != NULL) {
        if (strcmp(de->d_name, "lock") != 0) {
            (void) syscall(SYS_unlinkat, dirfd(d), de->d_name, 0);
        }
    }

    (void) closedir(d);
}


static unsigned
files(const char *name)
{
    DIR            *d;
    unsigned        n;
    struct dirent  *de;

    d = opendir(world.path);
    assert_non_null(d);

    for (n = 0; (de = readdir(d)) != NULL; /* void */) {
        n += strncmp(de->d_name, name, strlen(name)) == 0;
    }

    (void) closedir(d);

    return n;
}


static unsigned
count(const char *text, const char *what)
{
    unsigned  n;

    for (n = 0; (text = strstr(text, what)) != NULL; n++) {
        text += strlen(what);
    }

    return n;
}


/* whether it is the primary again, with all that the log has */

static void
settles(proc_t *p)
{
    uint64_t  end;

    for (end = world.now + FAKE_LATER; world.now < end; /* void */) {
        pass(50);

        if (us_life_state(&p->l) == US_LIFE_READY
            && us_store_durable(p->l.store)
               == flog.rows[flog.nrows - 1].row.next
            && us_store_published(p->l.store) == us_store_durable(p->l.store))
        {
            assert_int_equal(right(p, US_LIFE_READY,
                                   (unsigned) us_store_next_id(p->l.store)),
                             1);
            return;
        }
    }

    fail_msg("state %d, \"%s\" %s", us_life_state(&p->l), world.sh->reason,
             p->said);
}


static int
setup(void **state)
{
    (void) world_setup(state);

    world.conf.sync = US_SYNC_ALWAYS;
    world.conf.sync_name = "always";
    world.conf.replicate = &replicate;
    world.conf.snapshot = 1000000;

    return 0;
}


static int
teardown(void **state)
{
    world.write_errno = 0;
    node_stop();
    flog_remove();

    return world_teardown(state);
}


/* a restart reads from the log what came after, and nothing else */

static void
test_restart(void **state)
{
    proc_t           *p;
    uint64_t          had;
    unsigned          i, n;
    us_manifest_t     m;
    us_disk_error_t   e;

    world.conf.segment = 200;
    p = make(12);
    n = 12;

    for (i = 0; i < 6; i++) {

        if (i % 2) {
            level(p);
        }

        had = copier()->lsn;
        node_kill(p);

        p = start();
        comes(p, US_LIFE_READY, n);
        assert_int_equal(copier()->restarts, 0);
        assert_int_equal(world.sh->replicate.read,
                         flog.rows[flog.nrows - 1].row.next - had);
        assert_int_equal(flog.rows[flog.nrows - 1].row.term, i + 2);
        assert_int_equal(world.sh->snapshot_lsn > 0, 1);

        fill(p, n, 8);
        n += 8;
    }

    /* a worker alone: nothing is read again */

    level(p);
    had = world.sh->replicate.read;
    node_kill(p);
    p = proc_start(disk.dirfd, disk.lockfd);
    comes(p, US_LIFE_READY, n);
    fill(p, n, 4);
    level(p);
    assert_int_equal(world.sh->replicate.read, had);
    assert_int_equal(copier()->restarts, 0);
    assert_true(files("journal.") > 2);

    /* a term declares a mark */

    world.conf.store.nmarks = 1;
    world.conf.store.marks[0] = us_string("a");
    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, n + 4);
    level(p);
    assert_int_equal(us_manifest_read(disk.dirfd, &m, &e), US_MANIFEST_OK);
    assert_non_null(strstr(m.settings, "marks a\n"));
    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, n + 4);
    assert_int_equal(copier()->restarts, 0);
}


/* a standby's directory, too; a node that was deposed loads from it */

static void
test_standby(void **state)
{
    proc_t    *p;
    unsigned   rows, i;
    uint64_t   had;

    p = make(40);
    rows = flog.nrows;
    flog_other_stated("b 1");

    /* deposed: no more than the other one's row is read */

    had = world.sh->replicate.read;
    comes(p, US_LIFE_STANDBY, 40);
    assert_int_equal(world.sh->replicate.deposed, 1);
    assert_true(world.sh->replicate.read - had <= flog.rows[rows].len);
    level(p);

    /* with a new directory, as rows come */

    node_kill(p);
    flog.shown = rows - 9;

    for (i = 0; i < 2; i++) {
        world_clean();
        p = start();
        level(p);
        assert_int_equal(copier()->restarts, 1);

        while (flog.shown && flog.shown < flog.nrows - 3 * !i) {
            flog.shown++;
            pass(100);
        }

        level(p);
        had = copier()->lsn;
        node_kill(p);

        p = start();
        level(p);
        assert_int_equal(copier()->restarts, 0);
        assert_int_equal(world.sh->replicate.read, 0);
        assert_int_equal(copier()->lsn, had);
        node_kill(p);
    }

    flog.shown = 0;
    p = start();
    comes(p, US_LIFE_STANDBY, 40);
}


/* a snapshot when the journal has grown; files begin and end */

static void
test_snapshots(void **state)
{
    proc_t    *p;
    unsigned   i, n;

    world.conf.snapshot = 200;
    world.conf.segment = 300;
    p = make(4);
    n = 4;

    for (i = 0; i < 12; i++) {
        fill(p, n, 60);
        n += 60;
        level(p);

        if (i % 3 == 0) {
            node_kill(p);
            p = start();
            comes(p, US_LIFE_READY, n);
            assert_int_equal(copier()->restarts, 0);
            assert_true(world.sh->replicate.read < 100);
            level(p);
        }
    }

    pass(2000);
    assert_true(world.sh->snapshots > 0);

    /* of a standby as well */

    flog_other_stated("b 1");
    comes(p, US_LIFE_STANDBY, n);
    i = (unsigned) world.sh->snapshots;

    while (world.sh->snapshots == i) {
        flog_other("a node with a name that is quite long for a node's name");
        pass(500);
        assert_true(flog.nrows < 1000);
    }

    level(p);
    node_kill(p);
    p = start();
    comes(p, US_LIFE_STANDBY, n);
    assert_int_equal(copier()->restarts, 0);
}


/* what is not confirmed is in no file, whatever becomes of it */

static void
test_unconfirmed(void **state)
{
    int        was;
    proc_t    *p;
    uint64_t   lsn, rows;

    p = make(12);
    rows = flog.nrows;

    /* published, never confirmed, in a dump */

    flog.unsure = 1;
    (void) add_some(p, 12, 4);
    assert_int_equal(us_store_delete(p->l.store, 5, &was, &lsn), US_OK);
    us_release(&world.sh->snapshot_lsn, 0);
    pass(15000);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(flog.nrows, rows);
    assert_int_equal(copier()->off, 0);

    /* the other node's row is where they would have been */

    flog.unsure = 0;
    flog.away = 1;
    node_kill(p);
    flog.away = 0;
    flog_other_stated("b 1");
    p = start();
    comes(p, US_LIFE_STANDBY, 12);
    assert_int_equal(world.sh->replicate.read,
                     flog.rows[flog.nrows - 1].row.next
                     - flog.rows[rows - 1].row.next);
    assert_int_equal(copier()->restarts, 0);
}


/* with US_FULL each one, else some */

static unsigned
stride(unsigned n)
{
    return getenv("US_FULL") ? 1 : 1 + n / 30;
}


/* the same, as another node takes over while the snapshot waits */

static void
test_overtaken(void **state)
{
    int        was;
    proc_t    *p;
    uint64_t   lsn;

    p = make(12);

    flog.unsure = 1;
    (void) add_some(p, 12, 4);
    assert_int_equal(us_store_delete(p->l.store, 5, &was, &lsn), US_OK);
    us_release(&world.sh->snapshot_lsn, 0);
    flog.deposes = 3;
    comes(p, US_LIFE_STANDBY, 12);
    assert_int_equal(world.sh->replicate.deposed, 1);
    assert_true(flog.rows[flog.nrows - 1].row.next >= lsn);
    level(p);
    node_kill(p);

    p = start();
    comes(p, US_LIFE_STANDBY, 12);
    assert_int_equal(copier()->restarts, 0);
}


/*
 * What happens once while a snapshot is written, when its first piece is there:
 * the keeper asks then whether the process ends.
 */

static struct {
    proc_t    *p;
    void     (*happens)(proc_t *p);
    uint64_t   generation;
} dump;


static int
dump_stopping(void *data)
{
    void    (*happens)(proc_t *p);
    proc_t   *p = data;

    happens = dump.happens;

    if (happens && world.current == p
        && faccessat(disk.dirfd, "snapshot.tmp", F_OK, 0) == 0)
    {
        dump.happens = NULL;
        happens(p);
        world.current = p;
    }

    return p->stopping;
}


static void
dump_with(proc_t *p, void (*happens)(proc_t *p))
{
    p->l.env.stopping = dump_stopping;
    dump.happens = happens;
    us_release(&world.sh->snapshot_lsn, 0);
}


/* a mark is set, which the dump gets, and is not confirmed */

static void
dump_marks(proc_t *p)
{
    uint64_t  lsn;

    flog.unsure = 1;
    assert_int_equal(mark_put(p->l.store, 0, 5, 1, &lsn), US_OK);
}


/* the row that has the dump's LSN goes on past it */

static void
dump_grows(proc_t *p)
{
    (void) add_some(p, 16, 4);
    flog.unsure = 0;
}


/* another node takes over: the store is emptied when the dump has ended */

static void
dump_loses(proc_t *p)
{
    unsigned  i;

    dump.generation = us_share_generation(world.sh);
    flog_other_stated("b 1");

    for (i = 0; i < 20; i++) {
        fake_pause(p, 50);
    }

    assert_int_equal(us_share_state(world.sh), US_LIFE_LOADING);
    assert_int_equal(us_share_generation(world.sh), dump.generation);
}


static void
test_meanwhile(void **state)
{
    proc_t    *p;
    unsigned   n;

    world.conf.store.nmarks = 1;
    world.conf.store.marks[0] = us_string("a");
    p = make(12);

    dump_with(p, dump_marks);
    pass(15000);
    assert_null(dump.happens);
    assert_int_equal(mark_has(p->l.store, 0, 5), 1);
    assert_int_equal(world.sh->snapshots, 1);
    node_kill(p);
    flog.unsure = 0;
    p = start();
    comes(p, US_LIFE_READY, 12);
    assert_int_equal(mark_has(p->l.store, 0, 5), 0);
    assert_int_equal(copier()->restarts, 0);

    flog.unsure = 1;
    (void) add_some(p, 12, 4);
    dump_with(p, dump_grows);
    pass(3000);
    assert_null(dump.happens);
    comes(p, US_LIFE_READY, 20);
    assert_int_equal(world.sh->snapshots, 1);
    n = flog.nrows - 1;
    assert_true(world.sh->snapshot_lsn > flog.rows[n].row.lsn);
    assert_true(world.sh->snapshot_lsn < flog.rows[n].row.next);
    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 20);
    assert_int_equal(copier()->restarts, 0);

    dump_with(p, dump_loses);
    pass(3000);
    assert_null(dump.happens);
    comes(p, US_LIFE_STANDBY, 20);
    level(p);
    assert_true(us_share_generation(world.sh) > dump.generation);
    assert_int_equal(copier()->restarts, 0);
}


/* a URL is erased, and its record is gone */

static void
erase(proc_t *p)
{
    char                url[64];
    uint64_t            number, lsn;
    unsigned            i;
    us_sweep_t          sweep;
    us_store_t         *s;
    us_store_item_t     item;
    us_store_status_t   status;

    s = p->l.store;
    memset(&sweep, 0, sizeof(sweep));
    memset(&item, 0, sizeof(item));
    (void) snprintf(url, sizeof(url), "http://s%u.test/page/%u", 5, 5);
    item.url = us_str_of(url);
    world.current = p;

    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_URLS,
                                            us_str_of("why"),
                                            (const uint8_t *) "a key of a list",
                                            0, NULL, &number, &lsn), US_NEW);
    (void) us_store_erase(s, number, &item, 1);
    assert_int_equal(item.status, US_ERASED);
    assert_int_equal(item.id, 5);
    assert_int_equal(us_store_erasure_done(s, number, &lsn), US_OK);

    for (i = 0, status = US_NEW; i < 1000 && status != US_OK; i++) {
        status = us_store_sweep(s, &sweep);

        if (status == US_BUSY) {
            fake_pause(p, 50);
        }
    }

    assert_int_equal(status, US_OK);
    world.current = NULL;
}


/*
 * No file has the record of a URL that was erased, if a snapshot past that is
 * begun before the copy has come to it; nothing else is changed then.
 */

static void
test_erased(void **state)
{
    proc_t             *p;
    us_erasure_info_t   e;

    world.conf.store.erases = 1;
    p = make(12);

    /* this log takes no base of a term */

    us_release(&world.sh->replicate.erased_next, UINT64_MAX);
    p->l.held = 1 << US_ROLE_KEEPER;
    p->l.held_until = world.now + 10000;
    erase(p);
    us_release(&world.sh->snapshot_lsn, 0);
    pass(30000);
    assert_true(world.sh->snapshots > 1);
    assert_int_equal(us_store_erasure(p->l.store, 1, &e), 1);
    assert_true(e.gone > 0);
    assert_true(us_acquire(&world.sh->snapshot_lsn) >= e.gone);
    assert_int_equal(us_life_left(&p->l, &e) & US_LEFT_FILES, 0);
}


/* kills at each call: of the worker, or of the server */

static void
test_kills(void **state)
{
    static unsigned           at, all, n;
    static proc_t  *volatile  p;

    world.conf.snapshot = 150;
    world.conf.segment = 250;

    for (at = 1, all = 0; at < 20000; at += stride(all), all++) {
        flog_remove();
        world_clean();
        p = start();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            __lsan_disable();
            comes(p, US_LIFE_READY, 0);
            fill(p, 0, 8);
            level(p);
            us_release(&world.sh->snapshot_lsn, 0);
            fill(p, 8, 16);
            level(p);
            __lsan_enable();
            world.kill_at = 0;
            break;
        }

        __lsan_enable();
        world.kill_at = 0;
        node_kill(p);

        p = all % 2 ? start() : proc_start(disk.dirfd, disk.lockfd);
        settles(p);
        n = (unsigned) us_life_ids(&p->l);
        fill(p, n, 4);
        level(p);

        /* and what it has written since is good */

        node_kill(p);
        p = start();
        comes(p, US_LIFE_READY, n + 4);
        assert_int_equal(copier()->restarts, 0);
    }

    assert_true(at > 100);
}


/* kills at each call of a start */

static void
test_start_kills(void **state)
{
    static unsigned           at;
    static proc_t  *volatile  p;

    p = make(12);

    for (at = 1; at < 1000; at++) {
        node_kill(p);
        p = start();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            __lsan_disable();
            comes(p, US_LIFE_READY, 12);
            __lsan_enable();
            world.kill_at = 0;
            break;
        }

        __lsan_enable();
        world.kill_at = 0;
        node_kill(p);
        p = proc_start(disk.dirfd, disk.lockfd);
        comes(p, US_LIFE_READY, 12);
        level(p);
        assert_int_equal(copier()->restarts, 0);
    }

    assert_true(at > 20);
}


/* a byte of a file is changed, and a file is cut: nothing wrong comes of it */

static void
test_damage(void **state)
{
    int             fd;
    char            name[US_DISK_NAME];
    DIR            *d;
    off_t           at, size;
    proc_t         *p;
    uint8_t         byte;
    unsigned        i, cut;
    struct stat     st;
    struct dirent  *de;

    static const char  *const files[] = { "journal.", "snapshot." };

    p = make(12);

    for (i = 0; i < 2; i++) {
        for (at = 0, size = 1; at < size; at += 1 + size / 40) {
            for (cut = 0; cut < 2; cut++) {
                node_kill(p);
                d = opendir(world.path);

                while ((de = readdir(d)) != NULL
                       && strncmp(de->d_name, files[i], 8) != 0)
                {
                    /* void */
                }

                assert_non_null(de);
                snprintf(name, sizeof(name), "%.60s", de->d_name);
                (void) closedir(d);

                fd = world_open(name, O_RDWR);
                assert_int_equal(fstat(fd, &st), 0);
                size = st.st_size;

                if (cut) {
                    assert_int_equal(ftruncate(fd, at), 0);

                } else {
                    assert_int_equal(syscall(SYS_pread64, fd, &byte, 1, at),
                                     1);
                    byte ^= 1 << at % 8;
                    assert_int_equal(syscall(SYS_pwrite64, fd, &byte, 1, at),
                                     1);
                }

                (void) syscall(SYS_close, fd);

                p = start();
                comes(p, US_LIFE_READY, 12);
                level(p);
            }
        }
    }
}


/* a directory that the log does not have */

static void
test_others(void **state)
{
    unsigned          i, n;
    proc_t           *p;
    us_manifest_t     m;
    us_disk_error_t   e;

    static const char  *const why[] = {
        "it is of another store than the log",
        "it is of epoch 1, the log of 2",
        "it is a copy, but not of a log",
        "the log has no row that ends at LSN",
        "the log has no row that ends at LSN",
        "it has no snapshot so far",
        "the log has no row that ends at LSN",
        "it has no snapshot so far",
        "the log has no row that ends at LSN"
    };

    for (i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
        flog_remove();
        world_clean();
        p = make(12);
        node_kill(p);

        assert_int_equal(us_manifest_read(disk.dirfd, &m, &e),
                         US_MANIFEST_OK);

        switch (i) {

        case 0:
            flog_settings("uuid ", '0');
            flog.head.uuid[0] &= 0x0f;
            break;

        case 1:
            flog_settings("epoch ", '2');
            break;

        case 2:
            m.has_log = 0;
            break;

        case 3:

            /* the log has lost its end */

            flog_cut(flog.nrows - 1);
            break;

        case 4:

            /* and goes on otherwise, with as many bytes */

            flog_other_end();
            break;

        case 5:
            m.log.lsn++;
            m.has_log = 1;
            break;

        case 6:
            m.log.crc ^= 1;
            break;

        case 7:
            m.has_snapshot = 0;
            break;

        case 8:
            m.log.term++;
            break;
        }

        assert_int_equal(us_manifest_write(disk.dirfd, &m, &e), 0);

        p = start();

        if (i == 3 || i == 6 || i == 8) {

            /*
             * A loss, of the last row that the log has or had: all is kept,
             * and nobody appends until "forget".
             */

            for (n = 0;
                 n < 1000 && !strstr(p->said, "what was in the path is kept");
                 n++)
            {
                pass(50);
            }

            assert_non_null(strstr(p->said, "has lost what was confirmed"));
            assert_non_null(strstr(p->said, why[i]));
            assert_int_equal(count(p->said, "what was in the path is kept"),
                             1);
            assert_int_not_equal(us_life_state(&p->l), US_LIFE_READY);
            node_kill(p);
            continue;
        }

        level(p);
        assert_non_null(strstr(p->said, why[i]));
        assert_int_equal(count(p->said, "the path is not used"), 1);
        assert_int_equal(copier()->restarts, 1);
        assert_int_equal(count(p->said, "what was in the path is kept"),
                         i != 7);
        assert_int_equal(us_life_ids(&p->l), i == 4 ? 8 : 12);

        /* the next one has it */

        node_kill(p);
        p = start();
        level(p);
        assert_int_equal(copier()->restarts, 0);
        node_kill(p);
    }
}


/* a log that got a base, in place of all rows that the directory has */

static void
test_base(void **state)
{
    proc_t           *p;
    us_replog_row_t   base;

    p = make(12);
    node_kill(p);

    base = flog.rows[flog.nrows - 1].row;
    base.lsn = US_REPLOG_BASE;
    flog_cut(0);
    flog_put(&base, "", 0);
    flog.head.base = base.next;
    strcpy(flog.head.holder, "other");

    p = start();
    comes(p, US_LIFE_STANDBY, 12);
    assert_non_null(strstr(p->said, "the path has all up to LSN"));
    assert_int_equal(copier()->restarts, 0);
    flog_other_stated("b 1");
    level(p);
    node_kill(p);

    p = start();
    comes(p, US_LIFE_STANDBY, 12);
    assert_int_equal(copier()->restarts, 0);
    assert_int_equal(world.sh->replicate.read, 0);

    /* another base, which has removed a row that the keeper has not read */

    flog_other_stated("b 2");
    base = flog.rows[flog.nrows - 1].row;
    base.lsn = US_REPLOG_BASE;
    flog_cut(0);
    flog_put(&base, "", 0);
    flog.head.base = base.next;
    p->l.follow_next = world.now + 60000;
    pass(2000);
    assert_int_not_equal(copier()->restarts, 0);
    assert_non_null(strstr(p->said, "the path is begun anew: the log has a "
                                    "new base"));
    node_kill(p);
}


/* a disk that refuses takes nothing from the service */

static void
test_full(void **state)
{
    int      lock;
    proc_t  *p;

    p = make(12);
    world.write_errno = ENOSPC;
    fill(p, 12, 8);
    pass(20000);
    assert_int_equal(right(p, US_LIFE_READY, 20), 1);
    assert_int_equal(copier()->off != 0, 1);
    assert_true(copier()->failures > 1);
    assert_true(copier()->lsn < flog.rows[flog.nrows - 1].row.next);
    assert_int_equal(count(p->said, "the path is not written, a start reads "
                           "more from the log: a write to the copy failed"),
                     1);
    pass(600000);
    assert_int_equal(count(p->said, "the path is not written"), 2);

    /* a restart meanwhile */

    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 20);
    world.write_errno = 0;
    fill(p, 20, 4);
    level(p);
    assert_int_equal(copier()->off, 0);
    assert_int_equal(copier()->restarts, 0);

    /* a snapshot that has no room */

    us_release(&world.sh->snapshot_lsn, 0);
    world.write_errno = ENOSPC;
    pass(3000);
    assert_int_equal(copier()->off != 0, 1);
    world.write_errno = 0;
    pass(70000);
    assert_int_equal(copier()->off, 0);
    assert_int_equal(count(p->said, "the path is written again"), 2);

    /* files that somebody has removed */

    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 24);
    world_clean();
    fill(p, 24, 4);
    pass(20000);
    level(p);
    assert_int_equal(copier()->restarts, 1);
    assert_int_equal(syscall(SYS_unlinkat, disk.dirfd, "manifest", 0), 0);
    us_release(&world.sh->snapshot_lsn, 0);

    /* nothing says any more that the other files are of a copy */

    pass(70000);
    assert_int_equal(copier()->off != 0, 1);
    assert_int_equal(files("journal.") + files("snapshot.") > 1, 1);
    assert_non_null(strstr(p->said, "\"manifest\" could not be opened"));
    world_clean();
    pass(70000);
    level(p);
    assert_int_equal(copier()->restarts, 2);
    assert_int_equal(copier()->off, 0);
    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 28);
    assert_int_equal(copier()->restarts, 0);

    /* another server has it: all is read from the log */

    node_stop();
    lock = world_open("lock", O_RDWR);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    p = start();
    comes(p, US_LIFE_READY, 28);
    pass(3000);
    assert_int_equal(copier()->off != 0, 1);
    assert_non_null(strstr(p->said, "another server has"));
    assert_int_equal(files("lost-"), 0);
    (void) close(lock);
    pass(20000);
    level(p);
    assert_int_equal(copier()->off, 0);
    assert_int_equal(copier()->restarts, 0);
}


static us_store_status_t
add_one(proc_t *p, const char *url)
{
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url = us_str_of(url);
    us_store_add(p->l.store, &it, 1);

    return it.status;
}


/*
 * Nothing is added to the store of a node that is not the primary.  If an id
 * were given all the same, that is noticed before a row is answered from it, or
 * a term begins: all is read anew.
 */

static void
test_fenced(void **state)
{
    unsigned  i;
    proc_t   *p;

    p = start();
    assert_int_equal(add_one(p, "http://x.test/"), US_FENCED);
    node_stop();

    p = make(12);
    flog_other_stated("b 1");
    comes(p, US_LIFE_STANDBY, 12);
    assert_int_equal(add_one(p, "http://x.test/"), US_FENCED);

    for (i = 1; i <= 2; i++) {
        us_store_unfence(p->l.mem);
        assert_int_equal(add_one(p, "http://x.test/"), US_NEW);
        us_store_fence(p->l.mem);

        if (i == 1) {
            flog_other("c 1");
            comes(p, US_LIFE_STANDBY, 12);

        } else {
            us_replicate_promote(&p->l);
            comes(p, US_LIFE_READY, 12);
        }

        assert_int_equal(count(p->said, "the store has 13 ids and the log 12"),
                         i);
    }

    assert_int_equal(us_store_next_id(p->l.store), 12);
    fill(p, 12, 4);
    level(p);
}


/*
 * A worker has a request that waits, and is stopped twice.  Between the stops
 * it gives the store up, so that the second one holds up nobody: when it goes
 * on, the node is the primary again, with more than the request waits for, in a
 * store that was read anew.  Nothing of the store before is answered.
 */

static void
test_stops(void **state)
{
    proc_t          *p, *q;
    uint64_t         lsn;
    us_life_view_t   view;

    p = make(12);
    q = proc_start(disk.dirfd, disk.lockfd);
    assert_int_equal(us_life_refresh(&q->l), 0);
    assert_int_equal(us_life_state(&q->l), US_LIFE_READY);
    us_life_view(&q->l, &view);
    lsn = us_store_published(q->l.store);
    assert_false(us_life_overtaken(&q->l, &view, 0));

    q->stopped = 1;
    flog_other_stated("b 1");
    pass(60000);
    assert_int_equal(us_life_state(&p->l), US_LIFE_LOADING);
    assert_int_equal(us_share_generation(world.sh), view.generation);
    assert_int_equal(us_store_published(q->l.store) >= lsn, 1);

    (void) us_life_refresh(&q->l);
    assert_true(us_life_overtaken(&q->l, &view, 0));
    comes(p, US_LIFE_STANDBY, 12);
    us_replicate_promote(&p->l);
    comes(p, US_LIFE_READY, 12);
    fill(p, 12, 4);

    assert_int_not_equal(us_life_state(&q->l), US_LIFE_READY);
    assert_true(us_life_overtaken(&q->l, &view, 0));
    (void) us_life_refresh(&q->l);
    assert_int_equal(us_life_state(&q->l), US_LIFE_READY);
    assert_true(us_life_lsn(&q->l) >= lsn);
    assert_true(us_life_overtaken(&q->l, &view, 0));
    us_life_view(&q->l, &view);
    assert_false(us_life_overtaken(&q->l, &view, 0));
}


/* a primary notices it with a commit, and answers nothing more */

static void
test_differs(void **state)
{
    proc_t             *p;
    us_replog_place_t  *place;

    p = make(12);
    place = &world.sh->replicate.place;
    place->ends[place->at % 2].sure_ids++;
    place->ends[place->at % 2].last_ids++;
    (void) add_some(p, 12, 4);
    pass(1000);
    assert_int_equal(us_life_state(&p->l), US_LIFE_FAILED);
    assert_int_equal(us_life_answers(&p->l, 1), 0);
    assert_int_equal(add_one(p, "http://x.test/"), US_FENCED);
    assert_int_equal(count(p->said, "the store has 16 ids and the log 17"), 1);
    pass(60000);
    assert_int_equal(us_life_state(&p->l), US_LIFE_FAILED);

    /* the log is right */

    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 16);
}


/*
 * A row that does not fit the store: it is read anew, and with it the log, but
 * less and less often, up to once in a minute.
 */

static void
test_unfit(void **state)
{
    proc_t    *p;
    unsigned   rows;
    uint64_t   loads, end;

    p = make(12);
    flog_other("b");
    comes(p, US_LIFE_STANDBY, 12);

    rows = flog.nrows;
    flog_op(US_OP_DELETE, 1000, "", flog.head.term);
    loads = world.sh->load_generation;

    for (end = world.now + 300000; world.now < end; /* void */) {
        pass(50);
    }

    assert_in_range(world.sh->load_generation - loads, 5, 20);
    assert_non_null(strstr(world.sh->reason, "do not fit the store"));

    flog_cut(rows);

    for (end = world.now + 70000; world.now < end; /* void */) {
        pass(50);
    }

    comes(p, US_LIFE_STANDBY, 12);
}


/* what a process that ends, or cannot begin, leaves to the next one */

static void
test_roles(void **state)
{
    proc_t  *p;

    p = make(12);
    node_stop();
    assert_int_equal(flog.late, 0);

    flog.unopened = 1;
    p = start();
    pass(1000);
    assert_int_equal(us_life_state(&p->l), US_LIFE_COLD);
    p->stopping = 1;
    pass(1000);
    flog.unopened = 0;
    p = proc_start(disk.dirfd, disk.lockfd);
    comes(p, US_LIFE_READY, 12);

    /* its connection is there, though no beat is due yet */

    assert_int_equal(world.sh->roles[US_ROLE_WRITER].holder, p->l.self);
    assert_int_equal(world.sh->roles[US_ROLE_LOADER].holder, 0);
}


/* a node without keys= begins a term of a log that has keys */

static void
test_version(void **state)
{
    proc_t           *p;
    us_manifest_t     m;
    us_disk_error_t   e;

    world.conf.store.keys = 1 << 16;
    p = make(12);
    node_kill(p);
    world.conf.store.keys = 0;
    p = start();
    comes(p, US_LIFE_READY, 12);
    assert_int_equal(flog.head.term, 2);
    assert_non_null(strstr(flog.head.settings, "urlstore data 5\n"));
    level(p);
    assert_int_equal(us_manifest_read(disk.dirfd, &m, &e), US_MANIFEST_OK);
    assert_int_equal(m.version, 5);
}


/* the news of a term are read when its settings can be */

static void
test_news(void **state)
{
    proc_t  *p;

    p = make(12);
    flog_other_stated("b 1");
    comes(p, US_LIFE_STANDBY, 12);

    flog.head.settings[0] = 'U';
    flog_other("c 1");
    pass(1000);
    flog.head.settings[0] = 'u';
    flog_lost("7");
    pass(5000);
    assert_int_equal(world.sh->replicate.lost, 7);
    assert_int_equal(us_replicate_forget(&p->l), 0);
}


/*
 * The log has lost a row and cannot be changed for now: the directory is all
 * that says so, and stays until the log does.
 */

static void
test_unmarked(void **state)
{
    proc_t  *p;

    p = make(12);
    node_kill(p);
    flog_cut(flog.nrows - 1);
    flog.unsure = 1;
    p = start();
    pass(10000);
    assert_int_equal(count(p->said, "is not recorded there so far"), 1);
    assert_int_equal(files("lost-"), 0);

    node_kill(p);
    p = start();
    pass(1000);
    flog.unsure = 0;
    pass(10000);
    assert_int_equal(us_life_state(&p->l), US_LIFE_STANDBY);
    assert_non_null(strstr(p->said, "has lost what was confirmed"));
    assert_int_equal(count(p->said, "what was in the path is kept"), 1);
    assert_int_equal(us_acquire(&world.sh->replicate.lost) > 0, 1);
    assert_int_equal(us_life_ids(&p->l), 8);
}


/* whether DIR/lost... has a whole copy: with these files */

static int
kept(const char *name)
{
    int               fd;
    us_dir_t          dir;
    us_manifest_t     m;
    us_disk_error_t   e;

    fd = world_open(name, O_RDONLY|O_DIRECTORY);

    if (fd == -1) {
        return 0;
    }

    assert_int_equal(us_dir_read(fd, &dir, &e), 0);
    assert_int_equal(us_manifest_read(fd, &m, &e), US_MANIFEST_OK);
    assert_int_equal(m.state, US_STATE_REPLICA);
    assert_int_equal(dir.nsnapshots, 1);
    assert_int_equal(dir.snapshots[0], m.snapshot);
    assert_int_equal(dir.nsegments, 1);
    us_dir_free(&dir);
    (void) close(fd);

    return 1;
}


/* removes the directories below; how many there were */

static unsigned
kept_clean(void)
{
    int             fd;
    DIR            *d, *below;
    unsigned        n;
    struct dirent  *de, *file;

    d = opendir(world.path);
    assert_non_null(d);

    for (n = 0; (de = readdir(d)) != NULL; /* void */) {

        if (strncmp(de->d_name, "lost-", 5) != 0) {
            continue;
        }

        assert_int_equal(kept(de->d_name), 1);
        fd = world_open(de->d_name, O_RDONLY|O_DIRECTORY);
        below = fdopendir(fd);

        while ((file = readdir(below)) != NULL) {
            (void) syscall(SYS_unlinkat, fd, file->d_name, 0);
        }

        (void) closedir(below);
        assert_int_equal(syscall(SYS_unlinkat, dirfd(d), de->d_name,
                                 AT_REMOVEDIR), 0);
        n++;
    }

    (void) closedir(d);

    return n;
}


/* a second loss at the same LSN: what the first one has left stays */

static void
test_kept(void **state)
{
    proc_t    *p;
    unsigned   i;

    p = make(12);

    for (i = 0; i < 2; i++) {
        node_kill(p);
        flog_cut(flog.nrows - 1);
        p = start();
        pass(10000);
        assert_int_equal(count(p->said, "what was in the path is kept"), 1);
        assert_int_equal(files("lost-"), 2 * i + 1);
        assert_int_equal(us_replicate_forget(&p->l), 0);
        comes(p, US_LIFE_READY, 8);
        fill(p, 8, 4);
        level(p);
    }

    /* and so does what was begun since, in the epoch before */

    assert_int_equal(files("lost-moving"), 0);
    assert_int_equal(kept_clean(), 4);
}


/* the log, as it is restored later */

typedef struct {
    unsigned          rows;
    char              settings[sizeof(flog.head.settings)];
} before_t;


/* the log loses its last row */

static void
before_last(before_t *before)
{
    before->rows = flog.nrows - 1;
    strcpy(before->settings, flog.head.settings);
    flog_cut(before->rows);
}


/* a node that has given such a loss up, and has added in epoch 2 */

static proc_t *
second_epoch(before_t *before)
{
    proc_t  *p;

    flog_remove();
    world_clean();
    p = make(12);
    before_last(before);
    pass(10000);
    assert_int_equal(us_replicate_forget(&p->l), 0);
    comes(p, US_LIFE_READY, 8);
    fill(p, 8, 4);
    level(p);

    return p;
}


static void
flog_restored(const before_t *before)
{
    flog_cut(before->rows);
    strcpy(flog.head.settings, before->settings);
}


/*
 * The log loses an epoch, too: a loss, and the number does not return.  A node
 * that has the rows finds that by its store, in another process, or by its
 * directory, also if another one has found an earlier loss; a node that has
 * nothing is told by the log.
 */

static void
test_epoch_back(void **state)
{
    proc_t           *p;
    unsigned          i;
    before_t          before;
    us_store_conf_t   conf;

    for (i = 0; i < 5; i++) {
        p = second_epoch(&before);

        if (i == 1) {
            flog_other_stated("b 1");
            comes(p, US_LIFE_STANDBY, 12);
            p->stopping = 1;
            pass(1000);
            world_clean();

        } else if (i != 0) {
            node_kill(p);
        }

        flog_restored(&before);

        if (i == 4) {
            flog_lost("7");
        }

        /* with a directory, that is tried again until it is recorded */

        flog.unsure = i == 2;

        if (i == 1) {
            p = proc_start(disk.dirfd, disk.lockfd);

        } else if (i != 0) {
            p = start();
        }

        pass(10000);
        flog.unsure = 0;
        pass(10000);
        assert_int_equal(count(p->said, "has lost what was confirmed"),
                         i == 0 ? 2 : 1);

        if (i > 2) {
            node_kill(p);
            world_clean();
            p = start();
            pass(10000);
        }

        assert_int_equal(us_replicate_forget(&p->l), 0);
        comes(p, US_LIFE_READY, 8);
        us_store_conf(p->l.store, &conf);
        assert_int_equal(conf.epoch, 3);
        node_kill(p);
    }
}


/*
 * The same, and all rows that the node has read are there: those of the epoch
 * were not confirmed so far.
 */

static void
test_epoch_unread(void **state)
{
    proc_t           *p;
    unsigned          i;
    before_t          before;
    us_store_conf_t   conf;

    for (i = 0; i < 4; i++) {
        flog_remove();
        world_clean();
        p = i < 3 ? make(12) : start();
        pass(10000);
        before_last(&before);
        flog_settings("epoch ", '2');
        flog_other_stated("b 1");
        flog.head.acked = flog.rows[before.rows - 1].row.next;
        comes(p, US_LIFE_STANDBY, i < 3 ? 8 : 0);
        pass(10000);
        assert_int_equal(copier()->lsn, flog.head.acked);

        if (i == 1) {
            p->stopping = 1;
            pass(1000);
            world_clean();

        } else if (i == 2) {
            node_kill(p);
        }

        flog_restored(&before);
        flog.restarts++;

        if (i == 1) {
            p = proc_start(disk.dirfd, disk.lockfd);

        } else if (i == 2) {
            p = start();
        }

        pass(10000);
        assert_int_equal(count(p->said, "has lost what was confirmed"), 1);
        assert_int_equal(count(p->said, "what was in the path is kept"),
                         i != 1);
        node_kill(p);
        world_clean();
        p = start();
        pass(10000);
        assert_int_equal(us_replicate_forget(&p->l), 0);
        comes(p, US_LIFE_READY, i < 3 ? 8 : 0);
        us_store_conf(p->l.store, &conf);
        assert_int_equal(conf.epoch, 3);
        node_kill(p);
    }
}


/*
 * The rows that a primary, or a directory, has of a lost epoch are not there,
 * but a base that reaches further, and terms of such numbers.
 */

static void
test_epoch_based(void **state)
{
    char              name[120];
    proc_t           *p;
    unsigned          i, n;
    before_t          before;
    us_part_t         part;
    us_replog_row_t   base;

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';

    for (i = 0; i < 2; i++) {
        p = second_epoch(&before);

        if (i == 0) {
            world_clean();

        } else {
            node_kill(p);
        }

        base = flog.rows[flog.nrows - 1].row;
        flog_restored(&before);

        for (n = 1; n <= base.term; n++) {
            flog_other_stated(name);
        }

        assert_true(flog.rows[flog.nrows - 1].row.lsn >= base.next);
        base = flog.rows[flog.nrows - 1].row;
        base.lsn = US_REPLOG_BASE;
        flog_cut(0);
        flog_put(&base, "", 0);
        flog.head.base = base.next;

        part = (us_part_t) { .last = 1, .base = 1, .lsn = base.next,
                             .until = base.next };
        flog.parts[0].len = US_PART_HEAD;
        flog.parts[0].p = __real_malloc(US_PART_HEAD);
        us_part_seal(flog.parts[0].p, US_PART_HEAD, &part);
        flog.nparts = 1;
        flog.based = 1;

        p = i == 0 ? p : start();
        pass(10000);
        assert_non_null(strstr(flog.head.settings, "lost_epoch 2"));
        assert_int_equal(count(p->said, "what was in the path is kept"), 1);
        node_kill(p);
    }
}


/*
 * A start cannot read the directory, and loads the log, which has lost the last
 * row: the keeper finds that, and moves nothing before the log says so.
 */

static void
test_kept_late(void **state)
{
    proc_t  *p;

    p = make(12);
    node_kill(p);
    flog_cut(flog.nrows - 1);
    p = start();
    world.open_errno = EMFILE;
    comes(p, US_LIFE_READY, 8);
    flog.unsure = 1;
    world.open_errno = 0;
    pass(10000);
    assert_int_equal(files("lost-"), 0);
    flog.unsure = 0;
    pass(10000);
    assert_int_equal(count(p->said, "has lost what was confirmed"), 1);
    assert_int_equal(count(p->said, "what was in the path is kept"), 1);
    assert_int_equal(us_acquire(&world.sh->replicate.lost) > 0, 1);
    assert_int_equal(right(p, US_LIFE_STANDBY, 8), 1);
    assert_int_equal(us_replicate_forget(&p->l), 0);
    comes(p, US_LIFE_READY, 8);
    fill(p, 8, 4);
    level(p);
}


/* the command is done, though it is not known that its term has begun */

static void
test_forget_unknown(void **state)
{
    proc_t  *p;

    p = make(12);
    flog_cut(flog.nrows - 1);
    pass(10000);
    flog.unknown = 1;
    assert_int_equal(us_replicate_forget(&p->l), 0);
    comes(p, US_LIFE_READY, 8);
}


/* kills at each call of a keeper that moves files away */

static void
test_kept_kills(void **state)
{
    static unsigned           at;
    static proc_t  *volatile  p;

    for (at = 1; at < 4000; at += 3) {
        world_clean();
        flog_remove();
        p = make(12);
        node_kill(p);
        flog_cut(flog.nrows - 1);
        flog_lost("100000");
        p = start();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            __lsan_disable();
            level(p);
            __lsan_enable();
            world.kill_at = 0;
            assert_int_equal(kept_clean(), 1);
            break;
        }

        __lsan_enable();
        world.kill_at = 0;
        node_kill(p);
        p = start();
        level(p);
        assert_int_equal(files("lost-moving"), 0);
        assert_int_equal(kept_clean(), 1);
        node_kill(p);
    }

    assert_true(at > 60);
}


/*
 * Each call that can fail does so once; no descriptor stays open.  Of another C
 * library the fakes see fewer calls.
 */

#if defined(__GLIBC__)
#define TRIES  50
#else
#define TRIES  30
#endif

static void
fails(void (*before)(void), void (*work)(proc_t *p), void (*after)(void))
{
    proc_t    *p;
    unsigned   fds;

    for (fault_begin(); fault_next(3); /* void */) {
        node_stop();
        flog_remove();
        world_clean();
        before();

        p = start();
        fds = fake_open();
        fault_arm();
        work(p);
        world.fail_at = 0;
        proc_stop(p);

        if (fake_open() != fds) {
            fail_msg("%s, call %u: %u descriptors, %u before", fault.failed,
                     fault.at, fake_open(), fds);
        }

        after();
    }

    assert_true(fault.tries > TRIES);
}


/* a snapshot that has failed is taken again at once */

static void
level_soon(proc_t *p)
{
    pass(1000);

    if (fault.failed) {
        us_release(&world.sh->snapshot_next, 0);
    }

    level(p);
}


static void
write_begins(void)
{
    world.conf.snapshot = 150;
    world.conf.segment = 250;
}


static void
write_works(proc_t *p)
{
    comes(p, US_LIFE_READY, 0);
    fill(p, 0, 8);
    level_soon(p);
    us_release(&world.sh->snapshot_lsn, 0);
    fill(p, 8, 8);
    level_soon(p);
}


static void
write_ends(void)
{
    comes(start(), US_LIFE_READY, 16);
    assert_int_equal(copier()->restarts, 0);
    assert_int_equal(files("lost-"), 0);
}


static void
test_write_fails(void **state)
{
    fails(write_begins, write_works, write_ends);
}


static void
start_begins(void)
{
    node_kill(make(12));
}


static void
start_works(proc_t *p)
{
    comes(p, US_LIFE_READY, 12);
    fill(p, 12, 4);
    level_soon(p);
}


static void
test_start_fails(void **state)
{
    fails(start_begins, start_works, write_ends);
}


/* the files of a copy that has what the log has lost are moved away */

static void
kept_begins(void)
{
    start_begins();
    flog_cut(flog.nrows - 1);
    flog_lost("100000");
}


static void
kept_works(proc_t *p)
{
    uint64_t  end;

    end = world.now + FAKE_LATER;

    while (world.now < end && count(p->said, "the path is kept") == 0) {
        pass(50);
    }

    level_soon(p);
}


static void
kept_ends(void)
{
    assert_int_equal(files("lost-moving"), 0);
    assert_int_equal(kept_clean(), 1);
}


static void
test_kept_fails(void **state)
{
    fails(kept_begins, kept_works, kept_ends);
}


/* a log is made of a directory, which no server goes on with then */

static void
base_begins(void)
{
    proc_t  *p;

    world.conf.replicate = NULL;
    world.conf.path = world.path;
    replicate.base = world.path;

    p = start();
    pass(100);
    (void) add_some(p, 0, 12);
    pass(1000);
    assert_int_equal(us_life_durable_ids(&p->l), 12);
    node_stop();

    world.conf.replicate = &replicate;
    world.conf.path = NULL;
}


static void
base_works(proc_t *p)
{
    comes(p, US_LIFE_READY, 12);
    fill(p, 12, 4);
}


static void
base_ends(void)
{
    us_manifest_t     m;
    us_disk_error_t   e;

    comes(start(), US_LIFE_READY, 16);
    assert_int_equal(us_manifest_read(disk.dirfd, &m, &e), US_MANIFEST_OK);
    assert_int_equal(m.moved, 1);
}


static void
test_base_fails(void **state)
{
    fails(base_begins, base_works, base_ends);
    replicate.base = NULL;
}


/* a directory whose server runs is not read, nor one whose lock fails */

static void
test_base_lock(void **state)
{
    int      lock;
    proc_t  *p;

    base_begins();
    p = start();
    lock = us_disk_lock(disk.dirfd, "lock", O_RDWR, LOCK_EX|LOCK_NB);
    assert_true(lock != -1);
    pass(2000);
    assert_int_not_equal(us_life_state(&p->l), US_LIFE_READY);
    assert_int_equal(flog.nparts, 0);
    assert_non_null(strstr(p->said, "its server has to be stopped first"));

    world.lock_errno = ENOLCK;
    (void) close(lock);
    pass(5000);
    assert_int_equal(flog.nparts, 0);
    assert_non_null(strstr(p->said, "cannot be locked"));

    world.lock_errno = 0;
    comes(p, US_LIFE_READY, 12);
    replicate.base = NULL;
}


/* a fault that passes: the directory stays, and is read or gone on with */

static void
test_passing(void **state)
{
    unsigned  i;
    proc_t   *p;

    p = make(12);

    for (i = 0; i < 4; i++) {
        node_kill(p);
        p = start();
        world.open_errno = i < 2 ? EMFILE : 0;
        world.read_errno = i < 2 ? 0 : ENOMEM;
        pass(i % 2 ? 10000 : 300);
        world.open_errno = 0;
        world.read_errno = 0;
        comes(p, US_LIFE_READY, 12 + 4 * i);
        assert_int_equal(world.sh->replicate.read > 100, i % 2);
        fill(p, 12 + 4 * i, 4);
        level(p);
        assert_int_equal(copier()->restarts, 0);
        assert_int_equal(copier()->off, 0);
        assert_int_equal(files("lost-"), 0);
    }

    node_kill(p);
    p = start();
    comes(p, US_LIFE_READY, 28);
    assert_true(world.sh->replicate.read < 100);
}


/* a disk that hangs, as another node takes over: nobody looks at it */

static void
test_hung(void **state)
{
    proc_t           *p, *hung;
    unsigned          i;
    us_manifest_t     m;
    us_disk_error_t   e;

    p = make(12);

    for (i = 0; i < 2; i++) {
        hung = proc_start(disk.dirfd, disk.lockfd);
        hung->l.jobs[US_ROLE_KEEPER].active = 1;
        us_release(&world.sh->roles[US_ROLE_KEEPER].holder, hung->l.self);
        us_release(&world.sh->roles[US_ROLE_KEEPER].since, world.now);

        if (i == 1) {
            assert_int_equal(us_manifest_read(disk.dirfd, &m, &e),
                             US_MANIFEST_OK);
            m.log.crc ^= 1;
            assert_int_equal(us_manifest_write(disk.dirfd, &m, &e), 0);
        }

        flog_other_stated("b 1");
        comes(p, US_LIFE_STANDBY, 12);
        assert_int_equal(world.sh->replicate.deposed, i + 1);
        hung->l.jobs[US_ROLE_KEEPER].active = 0;
        us_role_release(world.sh, US_ROLE_KEEPER, hung->l.self);
        level(p);
        assert_int_equal(copier()->restarts, 1 + i);
        assert_int_equal(files("lost-"), i);
        node_kill(hung);

        if (i == 0) {
            us_replicate_promote(&p->l);
            comes(p, US_LIFE_READY, 12);
            level(p);
        }
    }

    assert_int_equal(kept_clean(), 1);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        test(test_restart),
        test(test_standby),
        test(test_snapshots),
        test(test_unconfirmed),
        test(test_overtaken),
        test(test_meanwhile),
        test(test_erased),
        test(test_kills),
        test(test_start_kills),
        test(test_damage),
        test(test_others),
        test(test_base),
        test(test_full),
        test(test_fenced),
        test(test_stops),
        test(test_differs),
        test(test_unfit),
        test(test_roles),
        test(test_version),
        test(test_news),
        test(test_unmarked),
        test(test_epoch_back),
        test(test_epoch_unread),
        test(test_epoch_based),
        test(test_kept_late),
        test(test_forget_unknown),
        test(test_kept),
        test(test_kept_kills),
        test(test_write_fails),
        test(test_start_fails),
        test(test_kept_fails),
        test(test_base_fails),
        test(test_base_lock),
        test(test_passing),
        test(test_hung)
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
