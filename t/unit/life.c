
/*
 * The life of a store on disk (src/life), with the clock, the threads, the
 * processes and the disk of t/unit/life_fake.h.
 */

#include "life_fake.h"
#include "life/us_data.h"
#include "store/us_shard.h"
#include "zone/us_arena.h"


static int  dirfd_, lockfd_;


static int
setup(void **state)
{
    (void) world_setup(state);

    dirfd_ = world_open(".", O_RDONLY|O_DIRECTORY);
    lockfd_ = world_open("lock", O_RDWR|O_CREAT);
    assert_true(dirfd_ >= 0 && lockfd_ >= 0);

    return 0;
}


static int
teardown(void **state)
{
    (void) close(dirfd_);
    (void) close(lockfd_);

    return world_teardown(state);
}


static us_life_state_t
state_of(proc_t *p)
{
    return us_life_state(&p->l);
}


static int
said(proc_t *p, const char *text)
{
    return strstr(p->said, text) != NULL;
}


static char *
newest(void)
{
    us_tail_t    tail;
    static char  name[US_DISK_NAME];

    us_share_tail(world.sh, &tail);
    us_segment_name(name, US_SEGMENT_JOURNAL, tail.segment);

    return name;
}


/* as after the end of all processes: one more, with an empty zone */

static proc_t *
restart(void)
{
    unsigned  i;

    for (i = 0; i < FAKE_PROCS; i++) {
        if (world.procs[i].alive) {
            proc_kill(&world.procs[i]);
        }
    }

    world_zone();

    return proc_start(dirfd_, lockfd_);
}


/* a directory is made, written, synced in time, closed, opened again */

static void
test_life(void **state)
{
    proc_t         *p;
    uint64_t        lsn;
    us_manifest_t   m;

    p = proc_start(dirfd_, lockfd_);
    assert_true(state_of(p) <= US_LIFE_LOADING);
    assert_int_equal(us_life_ids(&p->l), US_STORE_NO_ID);

    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(us_life_writable(&p->l, NULL));
    assert_int_equal(us_life_ids(&p->l), 0);

    lsn = add_some(p, 0, 100);
    assert_true(us_life_lsn(&p->l) < lsn);
    assert_int_equal(us_life_ids(&p->l), 0);

    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_life_lsn(&p->l), lsn);
    assert_int_equal(us_life_ids(&p->l), 100);
    assert_int_equal(us_life_durable_ids(&p->l), 0);
    assert_true(p->moved > 0);

    /* a second at most */

    pass(900);
    assert_int_equal(us_life_durable_ids(&p->l), 100);

    (void) add_some(p, 100, 50);
    proc_stop(p);
    world.current = p;
    assert_int_equal(us_life_close(&p->l, 1000), 0);
    world.current = NULL;
    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(m.state, US_STATE_CLEAN);
    assert_int_equal(m.end_ids, 150);

    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 150));
    assert_int_equal(us_life_ids(&p->l), 150);
}


/* the directory's keys are by this signature */

static void
signature(const char *text)
{
    us_manifest_t     m;
    us_store_conf_t   conf;
    us_disk_error_t   e;

    assert_int_equal(us_manifest_read(dirfd_, &m, &e), US_MANIFEST_OK);
    conf = world.conf.store;
    conf.norm = us_str_of(text);
    conf.epoch = m.epoch;
    memcpy(conf.uuid, m.uuid, sizeof(conf.uuid));
    assert_int_equal(us_data_describe(&m, &conf), 0);
    assert_int_equal(us_manifest_write(dirfd_, &m, &e), 0);
}


/* a process that stops while it looks at the URLs, all of which it has */

static int
stops_at_end(void *data)
{
    return world.sh->load_ids == 100;
}


/*
 * The directory gets another signature.  After a loader that has stopped, the
 * next one begins with an empty store.
 */

static void
test_ready_stops(void **state)
{
    proc_t         *p;
    int           (*stopping)(void *data);
    us_manifest_t   m;

    world.conf.store.norm = us_string("crawler/1 www=first");
    p = restart();
    pass(100);
    (void) add_some(p, 0, 100);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);

    signature("crawler/1 unicode=15.0 www=first");
    p = restart();
    stopping = p->l.env.stopping;
    p->l.env.stopping = stops_at_end;
    pass(1000);
    assert_int_equal(state_of(p), US_LIFE_LOADING);

    p->l.env.stopping = stopping;
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 100));
    assert_int_equal(world.sh->changed, 0);

    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_non_null(strstr(m.settings, "norm crawler/1 www=first\n"));
}


static void
test_ready_no_remove(void **state)
{
    world.no_remove = 1;
    test_ready_stops(state);
}


/*
 * A fault that may pass, when all was applied: there is no normalizer, so how
 * many URLs the signature changes is not known.
 */

static void
test_ready_fails(void **state)
{
    proc_t  *p;

    world.conf.store.norm = us_string("crawler/1 none");
    p = restart();
    pass(100);
    (void) add_some(p, 0, 100);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);

    signature("crawler/1 unicode=15.0 none");
    p = restart();
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_LOADING);
    assert_non_null(strstr(world.sh->reason, "normalizer"));

    signature("crawler/1 none");
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 100));
}


/* what the last process cannot write or sync is logged, and no clean end */

static void
close_fails(int *error, const char *text)
{
    proc_t         *p;
    us_manifest_t   m;

    p = proc_start(dirfd_, lockfd_);
    pass(1000);
    (void) add_some(p, 0, 10);
    proc_stop(p);

    *error = EIO;
    world.current = p;
    assert_int_equal(us_life_close(&p->l, 1000), -1);
    world.current = NULL;
    *error = 0;

    assert_true(said(p, text));
    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_int_not_equal(m.state, US_STATE_CLEAN);
}


static void
test_close_write_fails(void **state)
{
    close_fails(&world.write_errno, "(5: ");
}


static void
test_close_sync_fails(void **state)
{
    close_fails(&world.sync_errno, "(5: ");
}


/* a bit that has changed: good up to there, read-only, for good */

static void
test_damaged(void **state)
{
    int       fd;
    char      path[200], byte;
    proc_t   *p;

    world.conf.segment = 1500;
    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 100);
    pass(1500);
    (void) add_some(p, 100, 100);
    pass(1500);

    snprintf(path, sizeof(path), "%s/journal.%016x", world.path, 0);
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(syscall(SYS_pread64, fd, &byte, 1, 200), 1);
    byte ^= 1;
    assert_int_equal(syscall(SYS_pwrite64, fd, &byte, 1, 200), 1);
    (void) close(fd);

    p = restart();
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_DAMAGED);
    assert_false(us_life_whole(&p->l));
    assert_false(us_life_writable(&p->l, NULL));
    assert_int_equal(us_life_ids(&p->l), US_STORE_NO_ID);
    assert_true(us_store_next_id(p->l.store) < 200);
    assert_true(has_all(p, us_store_next_id(p->l.store)));
    assert_true(said(p, "journal.0000000000000000"));
}


/* nothing that can be read: no retry, as it would not pass */

static void
test_failed(void **state)
{
    int       fd;
    char      path[200];
    proc_t   *p;

    p = proc_start(dirfd_, lockfd_);
    pass(1000);

    snprintf(path, sizeof(path), "%s/manifest", world.path);
    fd = open(path, O_RDWR|O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "rubbish\n", 8), 8);
    (void) close(fd);

    p = restart();
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_FAILED);
    assert_false(us_life_writable(&p->l, NULL));
    assert_true(said(p, "manifest"));
}


/* --- two processes look at the state at once ---------------------------- */

static proc_t  *first;


/* asked after the look at the state: meanwhile the other loader ends */

static int
loads_first(void *data)
{
    proc_t  *self, *p;

    p = first;

    if (p) {
        first = NULL;
        self = world.current;
        proc_thread(p, US_ROLE_LOADER);
        world.current = self;
    }

    return 0;
}


/* what one process has loaded, another does not load once more */

static void
test_load_once(void **state)
{
    proc_t  *p, *q;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 50);
    pass(1500);

    p = restart();
    q = proc_start(dirfd_, lockfd_);
    proc_tick(p);
    assert_non_null(p->jobs[US_ROLE_LOADER]);

    first = p;
    q->l.env.stopping = loads_first;
    proc_tick(q);
    assert_null(first);
    assert_int_equal(state_of(q), US_LIFE_READY);
    assert_non_null(q->jobs[US_ROLE_LOADER]);

    proc_thread(q, US_ROLE_LOADER);
    assert_int_equal(state_of(q), US_LIFE_READY);
    assert_int_equal(us_store_next_id(q->l.store), 50);

    pass(1000);
    assert_true(us_life_writable(&p->l, NULL));
    assert_true(us_life_writable(&q->l, NULL));
    assert_true(has_all(q, 50));
}


/* mode=lookup: no lock, no writing; what is newer is read at a reload */

static void
test_lookup(void **state)
{
    proc_t    *p;
    uint64_t   generation;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 50);
    pass(1500);

    world.conf.store.lookup = 1;
    world.conf.store.ring = 0;
    p = restart();
    pass(500);
    assert_int_equal(state_of(p), US_LIFE_LOOKUP);
    assert_true(us_life_whole(&p->l));
    assert_false(us_life_writable(&p->l, NULL));
    assert_int_equal(us_life_ids(&p->l), 50);
    assert_true(has_all(p, 50));
    assert_int_equal(flock(lockfd_, LOCK_EX|LOCK_NB), 0);

    generation = us_share_generation(world.sh);
    us_release(&world.sh->load_wanted, 1);
    pass(500);
    assert_int_equal(us_share_generation(world.sh), generation + 1);
    assert_int_equal(state_of(p), US_LIFE_LOOKUP);
    assert_true(has_all(p, 50));
}


/* sync=always: one job writes and syncs; sync=off: on request only */

static void
test_policies(void **state)
{
    proc_t    *p;
    uint64_t   lsn;

    world.conf.sync = US_SYNC_ALWAYS;
    p = proc_start(dirfd_, lockfd_);
    pass(100);

    lsn = add_some(p, 0, 10);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_life_lsn(&p->l), lsn);
    assert_int_equal(us_store_durable(p->l.store), lsn);

    p->l.conf.sync = US_SYNC_OFF;
    lsn = add_some(p, 10, 10);
    pass(5000);
    assert_int_equal(us_store_written(p->l.store), lsn);
    assert_true(us_store_durable(p->l.store) < lsn);

    us_raise(&world.sh->sync_wanted, lsn);
    pass(100);
    assert_int_equal(us_store_durable(p->l.store), lsn);
}


/* --- A2: an error of write-back is everybody's -------------------------- */

static void
test_sync_error(void **state)
{
    char      reason[US_SHARE_REASON];
    proc_t   *p, *q;
    uint64_t  durable;

    p = proc_start(dirfd_, lockfd_);
    q = proc_start(dirfd_, lockfd_);
    pass(100);

    (void) add_some(p, 0, 10);
    pass(1000);
    durable = us_store_durable(p->l.store);

    (void) add_some(p, 10, 10);
    pass(100);
    fake_writeback_fails(newest(), 20);
    pass(1000);

    assert_int_equal(us_store_durable(p->l.store), durable);
    assert_false(us_life_writable(&p->l, NULL));
    assert_false(us_life_writable(&q->l, reason));
    assert_non_null(strstr(reason, "fdatasync of journal."));
    assert_true(said(p, "fdatasync") || said(q, "fdatasync"));

    /* and for good */

    pass(5000);
    assert_false(us_life_writable(&p->l, NULL));
    assert_int_equal(us_store_durable(p->l.store), durable);
}


/*
 * The error is reported to a process that is killed before it can say so.  The
 * next one's descriptor is younger: the kernel reports nothing to it.
 */

static void
swallowed(int lost)
{
    char      reason[US_SHARE_REASON];
    proc_t   *p, *q;
    uint64_t  lsn;

    p = proc_start(dirfd_, lockfd_);
    pass(100);

    (void) add_some(p, 0, 10);
    pass(1000);
    lsn = add_some(p, 10, 10);
    pass(100);

    if (lost) {
        fake_writeback_fails(newest(), 20);
    }

    /* to the return of the sync that reports it */

    world.now += 1000;
    proc_tick(p);
    assert_non_null(p->jobs[US_ROLE_SYNCER]);

    world.calls = 0;
    world.kill_at = 2;

    __lsan_disable();

    if (setjmp(world.killed) == 0) {
        proc_thread(p, US_ROLE_SYNCER);
        fail();
    }

    __lsan_enable();
    proc_kill(p);

    assert_int_equal(us_share_state(world.sh), US_LIFE_READY);
    assert_int_equal(world.sh->lost, 0);
    assert_int_equal(world.sh->watch.failed, 0);

    q = proc_start(dirfd_, lockfd_);
    pass(1500);

    if (lost) {
        assert_true(us_store_durable(q->l.store) < lsn);
        assert_false(us_life_writable(&q->l, reason));
        assert_non_null(strstr(reason, "is not on the disk as it was written"));

    } else {
        assert_int_equal(us_store_durable(q->l.store), lsn);
        assert_true(us_life_writable(&q->l, NULL));
    }
}


static void
test_sync_swallowed(void **state)
{
    swallowed(1);
}


static void
test_sync_killed(void **state)
{
    swallowed(0);
}


/* the same where reads past the cache are made by dropping it */

static void
test_sync_swallowed_no_direct(void **state)
{
    world.no_direct = 1;
    swallowed(1);
}


/* the same, and the error went to a process that is none of ours */

static void
test_sync_told_elsewhere(void **state)
{
    proc_t    *p, *q;
    uint64_t   durable;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(1000);
    durable = us_store_durable(p->l.store);
    (void) add_some(p, 10, 10);
    pass(100);

    fake_writeback_fails(newest(), 20);
    world.files[fake_index(newest())].seen = 1;
    proc_kill(p);

    q = proc_start(dirfd_, lockfd_);
    pass(1500);
    assert_int_equal(us_store_durable(q->l.store), durable);
    assert_int_equal(world.sh->lost, 1);
}


/*
 * A descriptor that was opened while something was not durable is no more in
 * doubt once that is: it is not read back without need.
 */

static void
test_sync_doubt_ends(void **state)
{
    proc_t   *p, *q;
    uint64_t  lsn;

    p = proc_start(dirfd_, lockfd_);
    pass(1000);
    (void) add_some(p, 0, 10);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);

    q = proc_start(dirfd_, lockfd_);
    proc_step(q);
    assert_true(q->l.syncer.doubt > world.sh->watch.durable);

    /* p syncs; from here on q does, whose reads from the disk would fail */

    world.now += 1000;
    proc_step(p);
    assert_true(q->l.syncer.doubt <= world.sh->watch.durable);
    p->stopping = 1;
    p->l.ending = 1;

    lsn = add_some(q, 10, 10);
    us_life_write(&q->l);
    proc_thread(q, US_ROLE_WRITER);
    world.read_errno = EIO;
    world.now += 1000;
    proc_step(q);
    world.read_errno = 0;
    assert_int_equal(us_store_durable(q->l.store), lsn);
}


/* the deletes past a snapshot are those of its journal, also after a start */

static void
test_snapshot_deletes(void **state)
{
    int        was;
    proc_t    *p;
    uint64_t   id, lsn;

    world.conf.snapshot = 1000000;
    p = proc_start(dirfd_, lockfd_);
    pass(100);

    (void) add_some(p, 0, 200);

    for (id = 0; id < 30; id++) {
        assert_int_equal(us_store_delete(p->l.store, id, &was, &lsn), US_OK);
    }

    us_release(&world.sh->snapshot_now, 1);
    pass(1500);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(world.sh->snapshot_deleted, 30);

    for (id = 30; id < 50; id++) {
        assert_int_equal(us_store_delete(p->l.store, id, &was, &lsn), US_OK);
    }

    pass(1500);
    p = restart();
    assert_int_equal(world.sh->snapshot_deleted, 0);
    pass(1500);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_int_equal(world.sh->snapshot_deleted, 30);
    assert_int_equal(world.sh->snapshots, 0);

    /* a journal of deletes is due when one of adds is not */

    p->l.conf.snapshot = 1000;

    for (id = 50; id < 200; id++) {
        assert_int_equal(us_store_delete(p->l.store, id, &was, &lsn), US_OK);
    }

    pass(1500);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(world.sh->snapshot_deleted, 200);

    /* and those that the snapshot has count no more */

    (void) add_some(p, 200, 80);
    pass(1500);
    assert_int_equal(world.sh->snapshots, 1);
}


/* the keeper's snapshot waits for the syncer, and makes no sync of its own */

static void
test_snapshot_syncs(void **state)
{
    proc_t   *p;
    unsigned  syncs;

    world.conf.snapshot = 100;
    world.conf.sync = US_SYNC_OFF;
    p = proc_start(dirfd_, lockfd_);
    pass(100);

    (void) add_some(p, 0, 50);
    pass(50);
    syncs = world.syncs;
    pass(200);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(world.syncs, syncs + 1);
    assert_int_equal(world.sh->syncs, 1);

    (void) add_some(p, 50, 50);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    fake_writeback_fails(newest(), 20);
    us_release(&world.sh->snapshot_now, 1);
    pass(15000);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(world.sh->lost, 1);
}


/* --- A4, V6: roles ------------------------------------------------------ */

static void
test_roles(void **state)
{
    proc_t   *p, *q;
    uint64_t  lsn;

    p = proc_start(dirfd_, lockfd_);
    pass(100);

    /* killed with its job; the next process has the same pid */

    lsn = add_some(p, 0, 10);
    us_life_write(&p->l);
    assert_non_null(p->jobs[US_ROLE_WRITER]);
    proc_kill(p);

    q = proc_start(dirfd_, lockfd_);
    assert_int_equal(us_process_pid(q->l.self), us_process_pid(p->l.self));
    pass(100);
    assert_int_equal(us_life_lsn(&q->l), lsn);
    assert_int_equal(world.sh->takeovers, 1);

    /* cannot be distinguished from the dead one at all, say without /proc */

    lsn = add_some(q, 10, 10);
    us_life_write(&q->l);
    proc_kill(q);
    world.serial--;

    p = proc_start(dirfd_, lockfd_);
    assert_int_equal(world.sh->roles[US_ROLE_WRITER].holder, 0);
    pass(100);
    assert_int_equal(us_life_lsn(&p->l), lsn);

    /* a live one is left alone */

    lsn = add_some(p, 20, 10);
    us_life_write(&p->l);
    q = proc_start(dirfd_, lockfd_);
    proc_tick(q);
    us_life_write(&q->l);
    assert_null(q->jobs[US_ROLE_WRITER]);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_life_lsn(&q->l), lsn);
}


/* --- A9: a store is emptied when nobody reads it any more --------------- */

static void
test_emptying(void **state)
{
    char        url[] = "http://s0.test/page/0";
    proc_t     *p, *q, *r;
    uint64_t    id, lsn;
    us_store_t *old;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 100);
    pass(1000);

    /* a loader is killed while it applies */

    p = restart();
    q = proc_start(dirfd_, lockfd_);
    r = proc_start(dirfd_, lockfd_);
    proc_tick(p);
    proc_tick(q);
    proc_tick(r);
    old = q->l.store;

    us_share_set_state(world.sh, US_LIFE_LOADING, NULL);
    us_release(&world.sh->load_applying, 1);
    proc_kill(p);
    p = proc_start(dirfd_, lockfd_);

    /* q is held up: as long as that may be, it may be inside of the store */

    world.now += 100000;
    r->quiet = 0;
    proc_step(p);
    proc_step(r);
    proc_step(p);
    proc_step(p);
    assert_int_equal(us_share_generation(world.sh), 0);
    assert_true(p->l.empty);
    assert_ptr_equal(q->l.store, old);

    proc_step(q);
    assert_true(q->l.empty);
    assert_int_equal(state_of(q), US_LIFE_LOADING);
    proc_step(p);
    assert_int_equal(us_share_generation(world.sh), 0);

    /* what goes on meanwhile finds nothing, and changes nothing */

    assert_int_equal(add(q, url, &id, &lsn), US_FENCED);

    /* r's other thread is in the store; then r is killed */

    proc_step(r);
    proc_step(p);
    assert_int_equal(us_share_generation(world.sh), 0);
    proc_kill(r);
    pass(200);
    assert_int_equal(us_share_generation(world.sh), 1);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_int_equal(state_of(q), US_LIFE_READY);
    assert_true(has_all(p, 100));
    assert_true(has_all(q, 100));

    /* one that comes when it is all over */

    r = proc_start(dirfd_, lockfd_);
    assert_int_equal(state_of(r), US_LIFE_READY);
    assert_true(has_all(r, 100));
}


/* more processes than there are places, most of them dead */

static void
test_members(void **state)
{
    int           was;
    proc_t       *p, *q;
    uint64_t      lsn;
    unsigned      i;
    us_member_t  *m;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);

    /* one is killed around a delete: its LSN is not known to anybody */

    q = proc_start(dirfd_, lockfd_);
    us_life_deleting(&q->l);
    assert_int_equal(us_store_delete(q->l.store, 3, &was, &lsn), US_OK);
    proc_kill(q);
    assert_false(us_life_deletes_promised(&p->l));

    for (i = 0; i < US_SHARE_MEMBERS; i++) {
        m = &world.sh->members[i];
        m->process = m->process ? m->process
                                : (uint64_t) 1000 << US_PROCESS_PID_BITS;
    }

    world.sh->members_top = US_SHARE_MEMBERS;

    q = proc_start(dirfd_, lockfd_);
    assert_non_null(q->l.member);
    assert_int_equal(state_of(q), US_LIFE_READY);
    assert_int_equal(world.sh->deleted_lsn, lsn);
    pass(100);
    assert_true(us_life_deletes_promised(&p->l));
}


/*
 * A deleter is killed after its commit is certain, and before the first word of
 * it is stored: what it has not stored is as it was before.
 */

static void
test_delete_half(void **state)
{
    int            was;
    proc_t        *p, *q;
    uint8_t       *before;
    uint64_t       lsn;
    unsigned       i;
    us_head_t     *h;
    us_arena_t     a;
    us_intent_t   *w;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(100);

    us_arena_open(&a, world.mem);
    h = a.head;
    before = malloc(world.size);
    assert_non_null(before);
    memcpy(before, world.mem, world.size);

    q = proc_start(dirfd_, lockfd_);
    us_life_deleting(&q->l);
    assert_int_equal(us_store_delete(q->l.store, 3, &was, &lsn), US_OK);

    for (i = 0; i < US_INTENT_MAX; i++) {
        w = &h->intent[i];

        if (us_relaxed((uint64_t *) (a.base + w->offset)) != w->value) {
            break;
        }
    }

    h->intents = i;
    assert_true(i > 0);

    while (i--) {
        w = &h->intent[i];
        memcpy(a.base + w->offset, before + w->offset, sizeof(w->value));
    }

    proc_kill(q);
    free(before);
    assert_false(us_store_deleted(p->l.store, 3));
    assert_true(us_store_published(p->l.store) < lsn);

    /* whoever takes its place over completes the delete */

    world.now += 2000;
    proc_tick(p);
    assert_true(us_store_deleted(p->l.store, 3));
    assert_int_equal(world.sh->deleted_lsn, lsn);
    assert_false(us_life_deletes_promised(&p->l));
    pass(100);
    assert_true(us_life_deletes_promised(&p->l));
}


/* a snapshot waits for a slow disk as long as something becomes durable */

static void
slow(proc_t *p)
{
    uint64_t  lsn;

    lsn = us_store_durable(p->l.store) + 100;
    world.now += US_LIFE_HUNG + 4000;

    us_store_set_durable(p->l.store, lsn < us_store_published(p->l.store)
                                     ? lsn : us_store_published(p->l.store));
}


static void
stuck(proc_t *p)
{
    world.now += US_LIFE_HUNG + 4000;
}


static void
test_slow(void **state)
{
    proc_t    *p;
    uint64_t   began;

    world.conf.snapshot = 1000000;
    world.conf.sync = US_SYNC_OFF;
    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 400);
    pass(100);
    assert_true(us_store_published(p->l.store) > 1000);
    assert_true(us_store_durable(p->l.store) < 100);

    world.slow = slow;
    us_release(&world.sh->snapshot_now, 1);
    began = world.now;
    proc_tick(p);
    assert_non_null(p->jobs[US_ROLE_KEEPER]);
    proc_thread(p, US_ROLE_KEEPER);
    assert_true(said(p, "snapshot up to LSN"));
    assert_false(said(p, "did not become durable"));
    assert_true(world.now - began > 60000);

    /* and no longer, if nothing does */

    world.slow = stuck;
    (void) add_some(p, 400, 100);
    proc_tick(p);
    proc_thread(p, US_ROLE_WRITER);
    us_release(&world.sh->snapshot_now, 1);
    proc_tick(p);
    assert_non_null(p->jobs[US_ROLE_KEEPER]);
    proc_thread(p, US_ROLE_KEEPER);
    assert_true(said(p, "did not become durable"));
    world.slow = NULL;
}


/* --- B4: a disk that hangs ---------------------------------------------- */

static void
test_hung(void **state)
{
    proc_t          *p, *q;
    us_life_info_t   info;

    p = proc_start(dirfd_, lockfd_);
    q = proc_start(dirfd_, lockfd_);
    pass(100);

    (void) add_some(p, 0, 10);
    us_life_write(&p->l);
    world.now += US_LIFE_HUNG - 100;
    proc_tick(q);
    assert_true(us_life_writable(&q->l, NULL));

    world.now += 200;
    proc_tick(q);
    assert_false(us_life_writable(&q->l, NULL));
    assert_true(us_life_refuses(&q->l, NULL));
    us_life_info(&q->l, &info);
    assert_true(info.stalled);
    assert_non_null(strstr(info.reason, "has not returned for 5 seconds"));

    /* it comes back */

    proc_thread(p, US_ROLE_WRITER);
    assert_true(us_life_writable(&q->l, NULL));
    assert_int_equal(us_life_ids(&q->l), 10);

    /* the same with a sync; a kill ends it, too */

    world.now += 900;
    proc_tick(q);
    assert_non_null(q->jobs[US_ROLE_SYNCER]);
    world.now += US_LIFE_HUNG + 1000;
    proc_tick(p);
    assert_false(us_life_writable(&p->l, NULL));
    proc_kill(q);
    pass(100);
    assert_true(us_life_writable(&p->l, NULL));
}


/* --- V3: a start on a full disk ------------------------------------------ */

static void
test_start_full(void **state)
{
    char      reason[US_SHARE_REASON];
    proc_t   *p;
    uint64_t  lsn;

    /* an empty directory */

    world.write_errno = ENOSPC;
    p = proc_start(dirfd_, lockfd_);
    pass(1000);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_false(us_life_writable(&p->l, reason));
    assert_non_null(strstr(reason, strerror(ENOSPC)));
    assert_int_equal(us_life_ids(&p->l), 0);

    world.write_errno = 0;
    pass(300);
    assert_true(us_life_writable(&p->l, NULL));
    lsn = add_some(p, 0, 10);
    pass(50);
    assert_int_equal(us_life_lsn(&p->l), lsn);

    /* one with data */

    p = restart();
    world.write_errno = ENOSPC;
    pass(1000);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 10));
    assert_false(us_life_writable(&p->l, NULL));

    /* the process that found it out is killed: another one goes on */

    proc_kill(p);
    p = proc_start(dirfd_, lockfd_);
    pass(500);
    assert_false(us_life_writable(&p->l, NULL));
    world.write_errno = 0;
    pass(300);
    assert_true(us_life_writable(&p->l, NULL));

    /* one failing sync of the manifest */

    p = restart();
    world.manifest_errno = EIO;
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_false(us_life_writable(&p->l, reason));
    assert_non_null(strstr(reason, "manifest.tmp"));
    world.manifest_errno = 0;
    pass(300);
    assert_true(us_life_writable(&p->l, NULL));
    assert_int_equal(world.sh->lost, 0);
    lsn = add_some(p, 10, 10);
    pass(50);
    assert_int_equal(us_life_lsn(&p->l), lsn);

    p = restart();
    pass(100);
    assert_true(has_all(p, 20));
}


/* --- V4: no descriptor is no failed sync ---------------------------------- */

static void
test_no_descriptor(void **state)
{
    proc_t   *p, *q;
    uint64_t  lsn;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(1000);

    /* all is open already */

    world.open_errno = EMFILE;
    lsn = add_some(p, 10, 10);
    pass(1500);
    assert_int_equal(us_store_durable(p->l.store), lsn);
    assert_true(us_life_writable(&p->l, NULL));

    /* of a process that comes now nothing is */

    q = proc_start(dirfd_, lockfd_);
    proc_kill(p);
    (void) add_some(q, 20, 10);
    pass(2000);
    assert_false(us_life_writable(&q->l, NULL));
    assert_int_equal(world.sh->lost, 0);
    assert_true(said(q, strerror(EMFILE)));

    world.open_errno = 0;
    pass(500);
    assert_true(us_life_writable(&q->l, NULL));
    lsn = add_some(q, 30, 10);
    pass(1500);
    assert_int_equal(us_store_durable(q->l.store), lsn);

    /* at a start */

    p = restart();
    world.open_errno = EMFILE;
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_LOADING);
    assert_true(said(p, strerror(EMFILE)));
    assert_null(strstr(strstr(p->said, strerror(EMFILE)) + 1,
                       strerror(EMFILE)));
    world.open_errno = 0;
    pass(1100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 40));
}


/* --- V12: what somebody removes while it is in use ------------------------ */

static void
gone(const char *how)
{
    int       fd;
    char      path[200] = "", aside[200];
    proc_t   *p, *q;
    uint64_t  lsn;

    world.conf.snapshot = 1000000;
    p = proc_start(dirfd_, lockfd_);
    q = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 50);
    pass(1000);

    snprintf(path, sizeof(path), "%s/%s", world.path, newest());
    snprintf(aside, sizeof(aside), "%s/journal.tmp", world.path);

    if (strcmp(how, "cut") == 0) {
        assert_int_equal(truncate(path, 100), 0);

    } else {
        assert_int_equal(rename(path, aside), 0);
    }

    if (strcmp(how, "replaced") == 0) {
        fd = open(path, O_RDWR|O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, path, sizeof(path)), sizeof(path));
        (void) close(fd);
    }

    /* within a second, though nothing is written */

    world.now += 1000;
    proc_step(p);
    proc_step(q);
    assert_false(us_life_writable(&p->l, NULL));
    assert_true(said(p, "journal.") || said(q, "journal."));

    /* what is in memory closes the gap */

    pass(3000);
    assert_true(us_life_writable(&q->l, NULL));
    assert_int_equal(world.sh->snapshots, 1);
    lsn = add_some(q, 50, 50);
    pass(1500);
    assert_int_equal(us_store_durable(q->l.store), lsn);

    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 100));
}


static void
test_segment_removed(void **state)
{
    gone("removed");
}


static void
test_segment_replaced(void **state)
{
    gone("replaced");
}


static void
test_segment_cut(void **state)
{
    gone("cut");
}


/*
 * All processes end while the journal has a gap: what the removed segment held
 * was in memory only, and is lost.  The directory is damaged, not loaded in
 * part, and stays as it is.  The remedy: the segment is put back, and the one
 * after the gap, of which nothing was promised, is removed.
 */

static void
test_gap_stop(void **state)
{
    char        path[200], aside[200], after[200];
    proc_t     *p;
    uint64_t    lsn;
    us_beat_t   beat;
    us_tail_t   tail;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    lsn = add_some(p, 0, 50);
    pass(1000);

    snprintf(path, sizeof(path), "%s/%s", world.path, newest());
    snprintf(aside, sizeof(aside), "%s/aside", world.path);
    assert_int_equal(rename(path, aside), 0);

    world.now += 1000;
    proc_step(p);
    proc_step(p);
    (void) add_some(p, 50, 10);
    proc_step(p);
    assert_int_equal(us_life_ids(&p->l), 50);
    assert_int_equal(world.sh->snapshots, 0);

    /* what is past the gap is durable, and is not sent to a replica */

    world.now += 1500;
    proc_step(p);
    proc_step(p);
    assert_true(us_store_durable(p->l.store) > lsn);
    us_life_journal(&p->l, &tail, &beat);
    assert_int_equal(beat.durable, lsn);

    snprintf(after, sizeof(after), "%s/%s", world.path, newest());
    assert_string_not_equal(path, after);

    p = restart();
    pass(5000);
    assert_int_equal(state_of(p), US_LIFE_DAMAGED);
    assert_true(said(p, "the journal from LSN"));
    assert_true(said(p, "is missing"));
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(unlink(after), 0);

    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(has_all(p, 50));
    assert_int_equal(us_store_next_id(p->l.store), 50);
}


/* the next add finds it out, too: it is not answered */

static void
test_segment_removed_add(void **state)
{
    char      path[200];
    proc_t   *p;
    uint64_t  lsn;

    p = proc_start(dirfd_, lockfd_);
    pass(1000);
    (void) add_some(p, 0, 50);
    pass(50);

    snprintf(path, sizeof(path), "%s/%s", world.path, newest());
    assert_int_equal(unlink(path), 0);

    lsn = add_some(p, 50, 1);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_true(us_life_refuses(&p->l, NULL));

    /* written to a new segment: not answered before the gap is closed */

    assert_true(us_store_written(p->l.store) >= lsn);
    assert_true(us_life_lsn(&p->l) < lsn);
    assert_int_equal(us_life_ids(&p->l), 50);

    pass(3000);
    assert_true(us_life_writable(&p->l, NULL));
    assert_true(us_life_lsn(&p->l) >= lsn);
    assert_int_equal(us_life_ids(&p->l), 51);

    p = restart();
    pass(100);
    assert_true(has_all(p, 51));
}


/*
 * The syncer of the removed segment tries again and again: because it has no
 * descriptor of it, or because the one that it has is in doubt.  The writer
 * repairs all the same, and no sync has failed.
 */

static void
removed_dirty(int opened)
{
    char      path[200];
    proc_t   *p;
    uint64_t  lsn;

    world.conf.interval = 200;
    p = proc_start(dirfd_, lockfd_);
    pass(1000);
    (void) add_some(p, 0, 50);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);

    if (opened) {
        proc_step(p);
        assert_true(p->l.syncer.doubt > world.sh->watch.durable);
    }

    snprintf(path, sizeof(path), "%s/%s", world.path, newest());
    assert_int_equal(unlink(path), 0);

    if (opened) {

        /* the look at the files comes later than the sync */

        us_release(&world.sh->look_next, world.now + 2000);
    }

    pass(3000);
    assert_int_equal(world.sh->lost, 0);
    assert_true(us_life_writable(&p->l, NULL));
    lsn = add_some(p, 50, 10);
    pass(500);
    assert_int_equal(us_store_durable(p->l.store), lsn);

    p = restart();
    pass(100);
    assert_true(has_all(p, 60));
}


static void
test_segment_removed_dirty(void **state)
{
    removed_dirty(0);
}


static void
test_segment_removed_in_doubt(void **state)
{
    removed_dirty(1);
}


static void
test_directory_moved(void **state)
{
    int      fd;
    char     aside[100], name[100];
    proc_t  *p;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(1000);

    snprintf(aside, sizeof(aside), "%s-aside", world.path);
    assert_int_equal(rename(world.path, aside), 0);
    pass(1000);
    assert_false(us_life_writable(&p->l, NULL));
    assert_true(said(p, "the directory is not there any more"));

    assert_int_equal(mkdir(world.path, 0700), 0);
    pass(1000);
    assert_false(us_life_writable(&p->l, NULL));
    assert_int_equal(rmdir(world.path), 0);

    assert_int_equal(rename(aside, world.path), 0);
    pass(300);
    assert_true(us_life_writable(&p->l, NULL));

    /* another lock file: another server could own it */

    snprintf(name, sizeof(name), "%s/lock", world.path);
    assert_int_equal(unlink(name), 0);
    fd = open(name, O_RDWR|O_CREAT, 0600);
    (void) close(fd);
    pass(1000);
    assert_false(us_life_writable(&p->l, NULL));
    assert_true(said(p, "another server may own it"));
    assert_int_equal(world.sh->lost, 0);
}


/* --- A5: a scrub reads the disk ------------------------------------------- */

static void
scrub(void)
{
    char           name[US_DISK_NAME];
    proc_t        *p;
    us_manifest_t  m;

    world.conf.snapshot = 500;
    world.conf.scrub = 10000;
    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 200);
    pass(3000);
    assert_int_equal(world.sh->snapshots, 1);
    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    us_segment_name(name, US_SEGMENT_SNAPSHOT, m.snapshot);

    pass(9000);
    assert_true(world.sh->scrubbed > 0);
    assert_int_equal(world.sh->snapshots, 1);

    /* the cache has it as it was written */

    fake_writeback_fails(name, 100);
    pass(10100);
    assert_true(said(p, name));
    assert_true(said(p, "a snapshot replaces the file"));
    pass(1000);
    assert_int_equal(world.sh->snapshots, 2);
    assert_true(us_life_writable(&p->l, NULL));
}


static void
test_scrub(void **state)
{
    scrub();
}


static void
test_scrub_no_direct(void **state)
{
    world.no_direct = 1;
    scrub();
}


/* --- U1: marks ------------------------------------------------------------ */

static void
test_marks(void **state)
{
    proc_t          *p;
    uint64_t         lsn;
    us_manifest_t    m;
    us_store_conf_t  conf;
    us_data_text_t   text;
    us_disk_error_t  e;

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(1000);

    /* two are added, before any is set the manifest has them */

    world.conf.store.marks[0] = us_string("visited");
    world.conf.store.marks[1] = us_string("hot");
    world.conf.store.nmarks = 2;
    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);

    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(us_data_conf(&m, &conf, &text, &e), 0);
    assert_int_equal(conf.nmarks, 2);

    assert_int_equal(mark_put(p->l.store, 1, 3, 1, &lsn), US_OK);
    pass(1000);

    /* removed: refused, and by its name */

    world.conf.store.nmarks = 1;
    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_FAILED);
    assert_true(said(p, "visited,hot"));

    world.conf.store.nmarks = 2;
    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_true(mark_has(p->l.store, 1, 3));
}


/* in memory alone: all is there and promised at once, whoever is killed */

static void
test_memory(void **state)
{
    int              was;
    proc_t          *p, *q;
    uint64_t         lsn;
    us_life_info_t   info;
    us_life_view_t   view;

    world.conf.memory = 1;
    world.conf.path = NULL;
    world.conf.store.ring = 0;
    world.conf.store.fenced = 0;
    world_zone();

    world.conf.store.marks[0] = us_string("visited");
    world.conf.store.nmarks = 1;
    world.conf.store.revisit = 3600;

    p = proc_start(-1, -1);
    q = proc_start(-1, -1);

    assert_int_equal(state_of(p), US_LIFE_READY);
    us_life_view(&p->l, &view);
    (void) add_some(p, 0, 10);

    assert_int_equal(us_life_ids(&q->l), 10);
    assert_int_equal(us_life_durable_ids(&q->l), 0);
    assert_true(us_life_promised(&p->l, us_store_published(p->l.store), 0, 1));
    assert_true(us_life_admits(&p->l, US_WANTS_CHANGE|US_WANTS_ALL));
    assert_false(us_life_overtaken(&p->l, &view, 1));

    assert_int_equal(mark_put(p->l.store, 0, 3, 1, &lsn), US_OK);
    assert_int_equal(us_store_revisit(q->l.store), 3600);

    /* no delete is waited for */

    us_life_deleting(&q->l);
    assert_int_equal(us_store_delete(q->l.store, 3, &was, &lsn), US_OK);
    proc_kill(q);

    assert_true(us_life_promised(&p->l, lsn, US_STORE_NO_ID, 1));

    world.now += 100000;
    assert_true(us_life_writable(&p->l, NULL));
    us_life_info(&p->l, &info);
    assert_string_equal(info.reason, "");

    (void) us_life_refresh(&p->l);
    assert_int_equal(us_store_next_id(p->l.store), 10);
}


/* a process of a new store whose keeper is about to declare them */

static proc_t *
declaring(void **state)
{
    proc_t  *p;

    (void) teardown(state);
    (void) setup(state);

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    p->l.conf.store.marks[0] = us_string("visited");
    p->l.conf.store.nmarks = 1;
    p->l.conf.store.revisit = 60;
    p->l.conf.store.is_shard = 1;
    proc_tick(p);
    assert_non_null(p->jobs[US_ROLE_KEEPER]);

    return p;
}


/* a kill at any call while they are declared: the manifest has them first */

static void
test_declare_kills(void **state)
{
    uint32_t          shard;
    proc_t *volatile  p;
    us_manifest_t     m;
    us_store_conf_t   conf;
    us_data_text_t    text;
    us_disk_error_t   e;

    static int        done;
    static unsigned   at;

    for (at = 1; !done; at++) {
        p = declaring(state);

        __lsan_disable();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            proc_thread(p, US_ROLE_KEEPER);
            assert_int_equal(us_store_nmarks(p->l.store), 1);
            assert_int_equal(us_store_revisit(p->l.store), 60);
            assert_int_equal(us_store_is_shard(p->l.store, &shard), 1);
            world.kill_at = 0;
            done = 1;

        } else {
            proc_kill(p);
            p = proc_start(dirfd_, lockfd_);
        }

        __lsan_enable();

        assert_int_equal(us_manifest_read(dirfd_, &m, &e), US_MANIFEST_OK);
        assert_int_equal(us_data_conf(&m, &conf, &text, &e), 0);
        assert_true(conf.nmarks >= us_store_nmarks(p->l.store));
        assert_true(conf.revisit >= us_store_revisit(p->l.store));
        assert_true(conf.is_shard || !us_store_is_shard(p->l.store, &shard));
    }

    assert_true(at > 5);
}


/*
 * Each call fails once while they are declared: they are declared later, and
 * once it is said why not yet; or nothing is written any more until a start.
 */

static void
test_declare_faults(void **state)
{
    proc_t    *p;
    unsigned   later, lost;

    later = 0;
    lost = 0;

    for (fault_begin(); fault_next(1); /* void */) {
        p = declaring(state);
        world.conf.store = p->l.conf.store;

        fault_arm();
        proc_thread(p, US_ROLE_KEEPER);
        world.fail_at = 0;

        if (us_store_nmarks(p->l.store) == 0 && world.sh->lost == 0) {
            assert_true(said(p, "it is tried again") || fault.err == ENOMEM);
            later++;
        }

        lost += world.sh->lost != 0;
        pass(3000);
        assert_int_equal(us_store_nmarks(p->l.store), world.sh->lost == 0);

        proc_kill(p);
        p = restart();
        pass(100);
        assert_int_equal(state_of(p), US_LIFE_READY);
        assert_int_equal(us_store_nmarks(p->l.store), 1);
    }

    assert_true(later > 3);
    print_message("%u calls failed: declared later %u, lost %u\n",
                  fault.tries, later, lost);
}


/* --- shards -------------------------------------------------------------- */

/* shard 0 has half of the slots from then on; the LSN of that */

static uint64_t
adopt(proc_t *p, unsigned version)
{
    char       text[1024], err[256];
    uint64_t   lsn;
    us_map_t  *m;

    snprintf(text, sizeof(text), "{\"cluster\":\"%032x\",\"version\":%u,"
             "\"norm\":\"crawler/1\",\"key\":\"url\",\"shards\":{"
             "\"0\":{\"uuid\":\"%032x\",\"nodes\":[\"a\"]},"
             "\"1\":{\"uuid\":\"%032x\",\"nodes\":[\"b\"]}},"
             "\"slots\":"
             "[[\"0-2047\",0],[\"2048-4095\",1,0]]}", 1, version, 1, 2);

    m = us_map_read((us_str_t) { strlen(text), (uint8_t *) text }, err,
                    sizeof(err));
    assert_non_null(m);
    assert_int_equal(us_store_adopt(p->l.store, m,
                                    us_store_map(p->l.store)->number, &lsn),
                     US_OK);
    us_map_free(m);

    return lsn;
}


/*
 * A zone with data becomes shard 0.  Whatever the policy is, nothing is
 * promised from the map on before the map is durable; a kill keeps both.
 */

static void
test_shard(void **state)
{
    proc_t          *p;
    uint32_t         shard;
    uint64_t         before, lsn;
    us_manifest_t    m;

    world.conf.sync = US_SYNC_OFF;
    p = proc_start(dirfd_, lockfd_);
    pass(100);
    before = add_some(p, 0, 10);
    pass(1000);
    assert_int_equal(us_store_durable(p->l.store), 0);
    assert_int_equal(us_life_lsn(&p->l), before);
    assert_int_equal(us_life_map_durable(&p->l), 1);

    /* declared as marks are: at a reload */

    p->l.conf.store.is_shard = 1;
    world.conf.store.is_shard = 1;
    pass(1000);
    assert_int_equal(us_store_is_shard(p->l.store, &shard), 1);
    assert_int_equal(us_manifest_read(dirfd_, &m, NULL), US_MANIFEST_OK);
    assert_int_equal(m.version, 3);

    before = us_store_written(p->l.store);
    lsn = adopt(p, 1);
    assert_true(lsn > before);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_store_written(p->l.store), lsn);
    assert_int_equal(us_life_map_durable(&p->l), 0);
    assert_int_equal(us_life_lsn(&p->l), lsn - 1);
    assert_int_equal(us_life_promised(&p->l, lsn, 10, 0), 1);
    assert_int_equal(us_life_promised(&p->l, lsn, 10, 1), 0);

    pass(100);
    assert_int_equal(us_life_map_durable(&p->l), 1);
    assert_int_equal(us_life_lsn(&p->l), lsn);
    assert_int_equal(us_life_promised(&p->l, lsn, 10, 1), 1);

    /* the next one, by a process that is killed before it is written */

    (void) adopt(p, 2);
    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_READY);
    assert_int_equal(us_store_map(p->l.store)->version, 1);
    assert_int_equal(us_store_map(p->l.store)->slots[0], 0xff);
    assert_int_equal(us_store_map(p->l.store)->slots[512], 0x55);
    assert_int_equal(us_life_map_durable(&p->l), 1);

    /* it stays a shard */

    world.conf.store.is_shard = 0;
    p = restart();
    pass(100);
    assert_int_equal(state_of(p), US_LIFE_FAILED);
    assert_true(said(p, "shard 0 of a cluster"));
}


/* --- V5, V10: a server that does not own the directory -------------------- */

static void
test_follow(void **state)
{
    int              was, dirfd, lockfd;
    void            *mem;
    proc_t          *p, *q;
    uint64_t         lsn;
    us_share_t      *sh;

    world.conf.segment = 150;
    p = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(p, 0, 10);
    pass(1000);

    /* another server: a zone of its own */

    sh = world.sh;
    mem = world.mem;
    world.sh = calloc(1, sizeof(us_share_t));
    world.mem = NULL;
    world_zone();

    dirfd = world_open(".", O_RDONLY|O_DIRECTORY);
    lockfd = world_open("lock", O_RDWR);
    q = proc_start(dirfd, lockfd);
    pass(1000);

    assert_int_equal(state_of(q), US_LIFE_FOLLOWING);
    assert_false(us_life_whole(&q->l));
    assert_int_equal(us_life_ids(&q->l), US_STORE_NO_ID);
    assert_true(us_life_current(&q->l));
    assert_true(has_all(q, 10));

    /* adds do not matter to it, a delete does, before it is answered */

    lsn = add_some(p, 10, 10);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_life_lsn(&p->l), lsn);
    assert_true(us_life_current(&q->l));

    us_life_deleting(&p->l);
    assert_int_equal(us_store_delete(p->l.store, 3, &was, &lsn), US_OK);

    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);
    assert_int_equal(us_life_lsn(&p->l), lsn);
    assert_false(us_life_current(&q->l));
    us_life_deleted(&p->l, lsn);

    pass(300);
    assert_true(us_life_current(&q->l));
    assert_true(us_store_deleted(q->l.store, 3));
    assert_int_equal(us_store_next_id(q->l.store), 20);
    assert_int_equal(state_of(q), US_LIFE_FOLLOWING);

    /*
     * The process that held the files is killed, the owner removes some of
     * them: all is read from the beginning.
     */

    proc_kill(q);
    p->l.conf.snapshot = 1;

    for (lsn = 20; lsn < 40; lsn += 10) {
        (void) add_some(p, lsn, 10);
        us_release(&sh->snapshot_now, 1);
        pass(2000);
    }

    assert_true(sh->snapshots > 0);

    q = proc_start(dirfd, lockfd);
    assert_int_equal(state_of(q), US_LIFE_FOLLOWING);
    pass(500);
    lsn = us_share_generation(world.sh);

    /* the owner ends */

    proc_kill(p);
    (void) flock(lockfd_, LOCK_UN);
    pass(3000);
    assert_int_equal(state_of(q), US_LIFE_READY);
    assert_int_equal(us_share_generation(world.sh), lsn + 1);
    assert_int_equal(us_life_ids(&q->l), 40);
    assert_true(us_life_writable(&q->l, NULL));

    proc_kill(q);
    (void) close(dirfd);
    (void) close(lockfd);
    free(sh);
    (void) munmap(mem, FAKE_ZONE);
}


/*
 * --- a kill before and after each call that touches the disk --------------
 *
 * US_FULL=1: each of them, otherwise every third.
 */

static unsigned
each(void)
{
    return getenv("US_FULL") ? 1 : 3;
}


typedef struct {
    unsigned          added;
    unsigned          answered;
    uint64_t          lsn[400];
} client_t;


static void
work(proc_t *p, client_t *c)
{
    if (us_life_writable(&p->l, NULL)
        && c->added < sizeof(c->lsn) / sizeof(c->lsn[0]))
    {
        c->lsn[c->added] = add_some(p, c->added, 1);
        c->added++;
    }

    world.now += 50;
    proc_all(p);

    while (c->answered < c->added
           && c->lsn[c->answered] <= us_life_lsn(&p->l))
    {
        c->answered++;
    }
}


static void
test_kills(void **state)
{
    unsigned          n;
    proc_t *volatile  p;

    /* not in registers: a killed process comes back by longjmp() */

    static int        done;
    static unsigned   at, kills, after;
    static client_t   c;

    for (at = 1; !done; at += each()) {
        (void) teardown(state);
        (void) setup(state);

        world.conf.snapshot = 400;
        world.conf.interval = 100;
        world.conf.segment = 1500;
        world.size = us_store_min_size(&world.conf.store) + 256 * 1024;
        world_zone();
        memset(&c, 0, sizeof(c));

        __lsan_disable();
        p = proc_start(dirfd_, lockfd_);
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            for (n = 0; n < 60; n++) {
                work(p, &c);
            }

            done = 1;
            world.kill_at = 0;

        } else {
            kills++;
            proc_kill(p);
        }

        __lsan_enable();

        /* others go on, or all are gone: each answer stays */

        if (at & 2) {
            p = proc_start(dirfd_, lockfd_);

        } else {
            p = restart();
            pass(200);
            assert_int_equal(state_of(p), US_LIFE_READY);
            assert_in_range(us_store_next_id(p->l.store), c.answered,
                            c.added);
            assert_true(has_all(p, us_store_next_id(p->l.store)));
            c.added = us_store_next_id(p->l.store);
            c.answered = c.added;
        }

        for (n = 0; n < 20; n++) {
            work(p, &c);
        }

        after += c.answered;
        assert_int_equal(c.answered, c.added);

        p = restart();
        pass(200);
        if (state_of(p) != US_LIFE_READY) {
            print_message("kill %u: %s", at, p->said);
        }

        assert_int_equal(state_of(p), US_LIFE_READY);
        assert_true(has_all(p, c.added));
        assert_int_equal(world.sh->lost_ids, 0);
    }

    print_message("%u kills, %u answers\n", kills, after);
    assert_true(kills * each() > 300);
}


/*
 * Each call that can fail does so once (see fault): at a start, writing,
 * rolling, in a snapshot, and closing.  What was answered is there after a
 * restart, and no descriptor stays open.
 */

static void
test_fails(void **state)
{
    unsigned   n, fds, fails[2];
    proc_t    *p;
    client_t   c;

    memset(fails, 0, sizeof(fails));

    for (fault_begin(); fault_next(each()); /* void */) {
        (void) teardown(state);
        (void) setup(state);

        world.conf.snapshot = 400;
        world.conf.interval = 100;
        world.conf.segment = 1500;
        memset(&c, 0, sizeof(c));
        p = proc_start(dirfd_, lockfd_);

        for (n = 0; n < 30; n++) {
            work(p, &c);
        }

        proc_kill(p);
        world_zone();

        fds = fake_open();
        fault_arm();
        p = proc_start(dirfd_, lockfd_);

        for (n = 0; n < 25 && !us_life_writable(&p->l, NULL); n++) {
            world.now += 50;
            proc_all(p);
        }

        if (us_life_writable(&p->l, NULL)) {
            assert_in_range(us_store_next_id(p->l.store), c.answered, c.added);
            c.added = us_store_next_id(p->l.store);
            c.answered = c.added;
        }

        for (n = 0; n < 40; n++) {
            work(p, &c);

            if (n == 20) {
                us_release(&world.sh->snapshot_now, 1);
                us_release(&world.sh->snapshot_next, 0);
            }
        }

        /* an error that passes, or what goes on after it */

        pass(500);
        fails[world.sh->lost != 0]++;

        if (state_of(p) != US_LIFE_READY) {
            assert_int_equal(fault.err, EIO);
            assert_true(said(p, strerror(EIO)));

        } else if (world.sh->lost == 0) {
            assert_true(us_life_writable(&p->l, NULL));
            assert_true(world.sh->snapshots > 0 || said(p, "snapshot"));
        }

        proc_stop(p);
        world.current = p;
        (void) us_life_close(&p->l, 1000);
        world.current = NULL;
        world.fail_at = 0;

        if (fake_open() != fds) {
            fail_msg("%s, call %u: %u descriptors, %u before", fault.failed,
                     fault.at, fake_open(), fds);
        }

        p = restart();
        pass(300);

        if (state_of(p) != US_LIFE_READY) {
            fail_msg("%s, call %u: %s", fault.failed, fault.at, p->said);
        }

        assert_true(us_life_writable(&p->l, NULL));
        assert_int_equal(world.sh->lost_ids, 0);
        assert_in_range(us_store_next_id(p->l.store), c.answered, c.added);
        assert_true(has_all(p, us_store_next_id(p->l.store)));
    }

    print_message("%u calls failed, %u ended the writing\n",
                  fails[0] + fails[1], fails[1]);
    assert_true(fails[0] * each() > 500 && fails[1] * each() > 20);
}


/*
 * A writer is killed at each call, and one of the first calls of the next
 * writer fails, which finds what the first one has left past the tail; or all
 * are gone, and one of the first calls of a start fails.
 */

static void
test_fails_killed(void **state)
{
    proc_t          *q;
    unsigned         n;

    static unsigned  at, call, lost, failed;
    static client_t  c;

    lost = 0;
    failed = 0;

    for (at = 1, call = 1; at < 60; call = call % 12 + 1, at += call == 1) {
        (void) teardown(state);
        (void) setup(state);

        world.conf.segment = 700;
        world.conf.snapshot = 1000000;
        memset(&c, 0, sizeof(c));
        fault_begin();

        __lsan_disable();
        q = proc_start(dirfd_, lockfd_);
        pass(100);
        world.current = NULL;
        (void) proc_start(dirfd_, lockfd_);
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            for (n = 0; n < 20; n++) {
                work(&world.procs[1], &c);
            }

            world.kill_at = 0;
        }

        proc_kill(&world.procs[1]);
        __lsan_enable();

        q = &world.procs[0];
        assert_true(q->alive);
        fault.err = call % 2 ? EIO : ENOSPC;

        /* an append has four calls: each of them in both halves */

        if (at & 4) {
            fault.at = call;
            fault_arm();

        } else {
            proc_kill(q);
            world_zone();
            fault.at = call * 4;
            fault_arm();
            q = proc_start(dirfd_, lockfd_);
            pass(200);

            if (state_of(q) == US_LIFE_READY) {
                assert_in_range(us_store_next_id(q->l.store), c.answered,
                                c.added);
                c.added = us_store_next_id(q->l.store);
                c.answered = c.added;
            }
        }

        for (n = 0; n < 20 && state_of(q) == US_LIFE_READY; n++) {
            work(q, &c);
        }

        world.fail_at = 0;
        pass(1500);
        failed += fault.failed != NULL;
        lost += world.sh->lost != 0;

        /* nothing but a sync that has failed ends the writing */

        if (world.sh->lost) {
            assert_string_equal(fault.failed, "fsync");
        }

        if (state_of(q) != US_LIFE_READY) {
            assert_true(said(q, strerror(EIO)));

        } else if (world.sh->lost == 0) {
            assert_true(us_life_writable(&q->l, NULL));
        }

        q = restart();
        pass(300);

        if (state_of(q) != US_LIFE_READY) {
            fail_msg("kill %u, then %s, call %u: %s", at, fault.failed, call,
                     q->said);
        }

        assert_int_equal(world.sh->lost_ids, 0);
        assert_in_range(us_store_next_id(q->l.store), c.answered, c.added);
        assert_true(has_all(q, us_store_next_id(q->l.store)));
    }

    print_message("%u calls failed after a kill, %u ended the writing\n",
                  failed, lost);
    assert_true(failed > 200);
}


/*
 * The same while a server takes the directory over from another one: the
 * process of either that touches the disk is killed.
 */

typedef struct {
    int               dirfd;
    int               lockfd;
    void             *mem;
    size_t            mapped;
    us_share_t       *sh;
} server_t;


/* from here on processes are those of a new server; the old one's are kept */

static void
server_new(server_t *s, server_t *old)
{
    old->sh = world.sh;
    old->mem = world.mem;
    old->mapped = world.mapped;

    world.sh = calloc(1, sizeof(us_share_t));
    world.mem = NULL;
    world_zone();

    s->dirfd = world_open(".", O_RDONLY|O_DIRECTORY);
    s->lockfd = world_open("lock", O_RDWR);
}


static void
server_free(server_t *s, server_t *old)
{
    (void) close(s->dirfd);
    (void) close(s->lockfd);
    (void) munmap(old->mem, old->mapped);
    free(old->sh);
}


static void
takeover(proc_t *p, const server_t *s, unsigned *answered)
{
    proc_t    *q;
    uint64_t   lsn;
    unsigned   n;

    q = proc_start(s->dirfd, s->lockfd);

    /* beside the owner, which adds something and ends */

    for (n = 0; n < 8; n++) {
        world.now += 50;
        proc_all(q);
    }

    assert_int_equal(state_of(q), US_LIFE_FOLLOWING);
    lsn = add_some(p, 120, 10);
    us_life_write(&p->l);
    proc_thread(p, US_ROLE_WRITER);

    if (us_life_lsn(&p->l) >= lsn) {
        *answered = 130;
    }

    proc_kill(p);
    (void) flock(lockfd_, LOCK_UN);

    for (n = 0; n < 30; n++) {
        world.now += 50;
        proc_all(q);
    }

    assert_true(us_life_writable(&q->l, NULL));
}


static void
test_kills_takeover(void **state)
{
    unsigned         i, n;
    proc_t          *p;

    static int       done;
    static unsigned  at, kills, answered;
    static server_t  s, old;

    for (at = 1; !done; at += each()) {
        (void) teardown(state);
        (void) setup(state);

        world.conf.segment = 1500;
        world.conf.snapshot = 1000000;
        p = proc_start(dirfd_, lockfd_);
        pass(100);
        (void) add_some(p, 0, 60);
        us_release(&world.sh->snapshot_now, 1);
        pass(1500);
        assert_int_equal(world.sh->snapshots, 1);
        (void) add_some(p, 60, 60);
        pass(1500);
        answered = 120;
        server_new(&s, &old);

        __lsan_disable();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            takeover(p, &s, &answered);
            done = world.kill_at != 0;
            world.kill_at = 0;

        } else {
            kills++;
            proc_kill(world.current);
            world.current = NULL;
        }

        __lsan_enable();

        /* whoever is left; the first server ends now at the latest */

        for (i = 0; i < FAKE_PROCS; i++) {
            if (world.procs[i].alive && world.procs[i].l.sh == old.sh) {
                proc_kill(&world.procs[i]);
            }
        }

        (void) flock(lockfd_, LOCK_UN);

        p = proc_start(s.dirfd, s.lockfd);
        pass(3000);

        if (state_of(p) != US_LIFE_READY) {
            print_message("kill %u: %s", at, p->said);
        }

        assert_int_equal(state_of(p), US_LIFE_READY);
        assert_true(us_life_writable(&p->l, NULL));
        assert_int_equal(world.sh->lost_ids, 0);

        n = us_store_next_id(p->l.store);
        assert_true(n == 120 || n == 130);
        assert_true(n >= answered);
        assert_true(has_all(p, n));

        (void) add_some(p, n, 10);
        pass(1500);
        assert_int_equal(us_life_durable_ids(&p->l), n + 10);

        for (i = 0; i < FAKE_PROCS; i++) {
            if (world.procs[i].alive) {
                proc_kill(&world.procs[i]);
            }
        }

        server_free(&s, &old);
    }

    print_message("%u kills\n", kills);
    assert_true(kills * each() > 80);
}


/* each call fails once, as above, in the server that takes over */

static void
test_fails_takeover(void **state)
{
    unsigned   n, fds;
    proc_t    *p, *q;
    server_t   s, old;

    for (fault_begin(); fault_next(each()); /* void */) {
        (void) teardown(state);
        (void) setup(state);

        world.conf.segment = 1500;
        p = proc_start(dirfd_, lockfd_);
        pass(100);
        (void) add_some(p, 0, 60);
        pass(1500);
        server_new(&s, &old);
        fds = fake_open();

        fault_arm();
        q = proc_start(s.dirfd, s.lockfd);

        for (n = 0; n < 80; n++) {
            world.now += 50;
            proc_all(q);

            if (n == 40) {
                fds -= fake_open();
                proc_kill(p);
                fds += fake_open();
                (void) flock(lockfd_, LOCK_UN);
            }
        }

        if (state_of(q) != US_LIFE_READY) {
            assert_int_equal(fault.err, EIO);
            assert_true(said(q, strerror(EIO)));
        }

        proc_stop(q);
        world.fail_at = 0;

        if (fake_open() != fds) {
            fail_msg("%s, call %u: %u descriptors, %u before", fault.failed,
                     fault.at, fake_open(), fds);
        }

        world_zone();
        q = proc_start(s.dirfd, s.lockfd);
        pass(300);
        assert_int_equal(state_of(q), US_LIFE_READY);
        assert_int_equal(world.sh->lost_ids, 0);
        assert_true(has_all(q, 60));
        proc_kill(q);
        server_free(&s, &old);
    }

    assert_true(fault.tries > 60);
}


/* and in a zone that is full, while URLs are deleted and marked */

static unsigned
fill(proc_t *p)
{
    char               url[64];
    uint64_t           id, lsn;
    unsigned           n;
    us_store_status_t  status;

    for (n = 0; ; /* void */ ) {
        snprintf(url, sizeof(url), "http://s%u.test/page/%u", n % 7, n);
        status = add(p, url, &id, &lsn);

        if (status == US_FULL) {
            pass(100);
            return n;
        }

        if (status == US_BUSY) {
            world.now += 50;
            proc_step(p);
            continue;
        }

        assert_int_equal(status, US_NEW);
        n++;
    }
}


typedef struct {
    unsigned          deleted;        /* ids 0, 7, 14, ... below */
    unsigned          marked;         /* ids 1, 8, 15, ... below */
    unsigned          answered;       /* of both */
} full_t;


static void
delete_some(proc_t *p, full_t *f)
{
    int       was;
    uint64_t  lsn, top;
    unsigned  i;

    for (i = 0; i < 4; i++) {
        us_life_deleting(&p->l);
        assert_int_equal(us_store_delete(p->l.store, f->deleted, &was, &lsn),
                         US_OK);
        us_life_deleted(&p->l, lsn);
        assert_int_equal(mark_put(p->l.store, 0, f->deleted + 1, 1, &top),
                         US_OK);

        f->deleted += 7;
        lsn = top ? top : lsn;

        world.now += 50;
        proc_all(p);

        if (us_life_lsn(&p->l) >= lsn) {
            f->answered = f->deleted;
        }

        if (i == 1) {
            us_release(&world.sh->snapshot_now, 1);
        }
    }
}


static void
test_kills_full(void **state)
{
    unsigned          id;
    proc_t *volatile  p;

    static unsigned   at, kills, n;
    static full_t     f;

    world.conf.store.marks[0] = us_string("hot");
    world.conf.store.nmarks = 1;
    world.conf.snapshot = 1000000;
    world.conf.interval = 100;
    world.conf.segment = 4000;
    world.size = us_store_min_size(&world.conf.store) + 128 * 1024;
    world_zone();

    p = proc_start(dirfd_, lockfd_);
    pass(100);
    n = fill(p);
    assert_true(n > 1000);

    for (at = 1; at < 120; at += 3) {
        __lsan_disable();
        world.calls = 0;
        world.kill_at = at;

        if (setjmp(world.killed) == 0) {
            delete_some(p, &f);
            world.kill_at = 0;

        } else {
            kills++;
            proc_kill(p);
            world.current = NULL;
        }

        __lsan_enable();

        p = at & 1 ? restart() : proc_start(dirfd_, lockfd_);
        pass(300);

        if (state_of(p) != US_LIFE_READY) {
            print_message("kill %u: %s", at, p->said);
        }

        assert_int_equal(state_of(p), US_LIFE_READY);
        assert_int_equal(us_store_next_id(p->l.store), n);
        assert_true(us_life_writable(&p->l, NULL));

        for (id = 0; id < f.answered; id += 7) {
            assert_true(us_store_deleted(p->l.store, id));
            assert_true(mark_has(p->l.store, 0, id + 1));
        }

        for (id = f.deleted + 14; id < n; id += 7) {
            assert_false(us_store_deleted(p->l.store, id));
            assert_false(mark_has(p->l.store, 0, id + 1));
        }

        assert_true(f.deleted + 100 < n);

        /* what was not answered is tried again */

        f.deleted = f.answered;
    }

    print_message("%u URLs, %u kills, %u deletes answered\n", n, kills,
                  f.answered / 7);
    assert_true(kills > 20);
}


/* what another thread stores while the clock is read */

static uint64_t
lag_now(void *data)
{
    uint64_t  now;

    now = world.now++;

    world.sh->replica.beat = world.now;
    world.sh->replica.level = world.now;

    return now;
}


static void
test_lag(void **state)
{
    proc_t         *p;
    us_life_lag_t   lag;

    p = proc_start(dirfd_, lockfd_);
    us_share_set_state(world.sh, US_LIFE_REPLICA, NULL);

    world.sh->replica.published = 1;
    world.sh->replica.level = world.now - 10;
    p->l.env.now = lag_now;

    us_life_lag(&p->l, &lag);
    assert_int_equal(lag.ms, 10);

    us_life_lag(&p->l, &lag);
    assert_int_equal(lag.ms, 0);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        test(test_life),
        test(test_ready_stops),
        test(test_ready_no_remove),
        test(test_ready_fails),
        test(test_close_write_fails),
        test(test_close_sync_fails),
        test(test_damaged),
        test(test_failed),
        test(test_load_once),
        test(test_lookup),
        test(test_policies),
        test(test_sync_error),
        test(test_sync_swallowed),
        test(test_sync_killed),
        test(test_sync_swallowed_no_direct),
        test(test_sync_told_elsewhere),
        test(test_sync_doubt_ends),
        test(test_snapshot_deletes),
        test(test_snapshot_syncs),
        test(test_roles),
        test(test_emptying),
        test(test_members),
        test(test_delete_half),
        test(test_lag),
        test(test_hung),
        test(test_slow),
        test(test_start_full),
        test(test_no_descriptor),
        test(test_segment_removed),
        test(test_segment_replaced),
        test(test_segment_cut),
        test(test_gap_stop),
        test(test_segment_removed_add),
        test(test_segment_removed_dirty),
        test(test_segment_removed_in_doubt),
        test(test_directory_moved),
        test(test_scrub),
        test(test_scrub_no_direct),
        test(test_marks),
        test(test_memory),
        test(test_declare_kills),
        test(test_declare_faults),
        test(test_shard),
        test(test_follow),
        test(test_kills),
        test(test_fails),
        test(test_fails_killed),
        test(test_fails_takeover),
        test(test_kills_takeover),
        test(test_kills_full),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }

    return cmocka_run_group_tests(tests, NULL, NULL);
}
