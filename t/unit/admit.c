
/*
 * Which requests each state of a store lets pass (life/us_promise.c), and what
 * is answered to the others (api/us_problem.c), in the world of life_fake.h.
 */

#include "life_fake.h"
#include "api/us_problem.h"
#include "us_clock.h"


static int      dirfd_, lockfd_;
static proc_t  *proc;


/* a store of 10 URLs, all of them written and synced */

static int
setup(void **state)
{
    (void) world_setup(state);

    dirfd_ = world_open(".", O_RDONLY|O_DIRECTORY);
    lockfd_ = world_open("lock", O_RDWR|O_CREAT);

    proc = proc_start(dirfd_, lockfd_);
    pass(100);
    (void) add_some(proc, 0, 10);
    pass(2000);

    assert_int_equal(us_life_state(&proc->l), US_LIFE_READY);

    return 0;
}


static int
teardown(void **state)
{
    (void) close(dirfd_);
    (void) close(lockfd_);

    return world_teardown(state);
}


static void
state_is(us_life_state_t state)
{
    us_release(&world.sh->state, state);
}


/* a letter for each kind of request that may begin */

static void
admits(us_life_state_t state, const char *expected)
{
    unsigned  i;
    char      got[16], *p;

    static const struct {
        char      letter;
        unsigned  wants;
    } kinds[] = {
        { 'f', 0 },
        { 'i', US_WANTS_BY_ID },
        { 'l', US_WANTS_ALL },
        { 'L', US_WANTS_ALL|US_WANTS_BY_ID },
        { 'c', US_WANTS_CHANGE },
        { 'C', US_WANTS_CHANGE|US_WANTS_BY_ID }
    };

    state_is(state);
    p = got;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (us_life_admits(&proc->l, kinds[i].wants)) {
            *p++ = kinds[i].letter;
        }
    }

    *p = '\0';
    assert_string_equal(got, expected);
}


static void
test_admits(void **state)
{
    admits(US_LIFE_COLD, "");
    admits(US_LIFE_LOADING, "");
    admits(US_LIFE_FOLLOWING, "fi");
    admits(US_LIFE_READY, "filLcC");
    admits(US_LIFE_LOOKUP, "iL");
    admits(US_LIFE_REPLICA, "filL");
    admits(US_LIFE_STANDBY, "fi");
    admits(US_LIFE_STALLED, "fi");
    admits(US_LIFE_DAMAGED, "fi");
    admits(US_LIFE_TOO_SMALL, "");
    admits(US_LIFE_FAILED, "");

    /* the disk refuses, this process ends */

    us_release(&world.sh->lost, 1);
    admits(US_LIFE_READY, "filL");
    us_release(&world.sh->lost, 0);
    proc->l.ending = 1;
    admits(US_LIFE_READY, "filL");
    proc->l.ending = 0;

    /* the owner may have answered deletes that have not been read */

    assert_int_equal(unlinkat(dirfd_, "watermark", 0), 0);
    admits(US_LIFE_FOLLOWING, "");
    admits(US_LIFE_DAMAGED, "fi");
}


static void
test_answers(void **state)
{
    unsigned  i;

    static const char *const  expected[US_LIFE_STATES] = {
        [US_LIFE_COLD] = "--", [US_LIFE_LOADING] = "--",
        [US_LIFE_FOLLOWING] = "f-", [US_LIFE_READY] = "fa",
        [US_LIFE_LOOKUP] = "--", [US_LIFE_REPLICA] = "f-",
        [US_LIFE_STANDBY] = "f-", [US_LIFE_STALLED] = "f-",
        [US_LIFE_DAMAGED] = "f-", [US_LIFE_TOO_SMALL] = "--",
        [US_LIFE_FAILED] = "--"
    };

    for (i = 0; i < US_LIFE_STATES; i++) {
        state_is(i);
        assert_int_equal(us_life_answers(&proc->l, 1), expected[i][0] == 'f');
        assert_int_equal(us_life_answers(&proc->l, 0), expected[i][1] == 'a');
    }
}


/* hits without the log: for so long after it was heard of */

static void
test_stale(void **state)
{
    unsigned             i;
    us_replicate_conf_t  conf;

    static const struct {
        int              ago;         /* s */
        unsigned         recent;
        const char      *hits;
    } rows[] = {
        { -1, 1, "fi" },              /* another process, meanwhile */
        { 0, 1, "fi" },
        { 3, 0, "fi" },
        { 11, 0, "" }
    };

    memset(&conf, 0, sizeof(conf));
    conf.lease = 2000;
    proc->l.conf.replicate = &conf;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        us_release(&world.sh->replicate.seen,
                   us_clock_boottime() - 1000 * rows[i].ago);

        conf.stale = 10000;
        admits(US_LIFE_STALLED, rows[i].hits);
        admits(US_LIFE_STANDBY, rows[i].hits);
        assert_int_equal(us_life_recent(&proc->l), rows[i].recent);
        assert_int_equal(us_life_answers(&proc->l, 1), rows[i].hits[0] != 0);
        assert_false(us_life_answers(&proc->l, 0));

        conf.stale = 0;
        admits(US_LIFE_STANDBY, "fi");
    }
}


/* a reply that says "not there" ends with the data it was looked up in */

static void
test_overtaken(void **state)
{
    us_life_view_t  whole, partial;

    us_life_view(&proc->l, &whole);
    assert_false(us_life_overtaken(&proc->l, &whole, 0));
    assert_false(us_life_overtaken(&proc->l, &whole, 1));

    state_is(US_LIFE_FOLLOWING);
    us_life_view(&proc->l, &partial);
    assert_false(us_life_overtaken(&proc->l, &partial, 0));
    assert_true(us_life_overtaken(&proc->l, &partial, 1));
    assert_true(us_life_overtaken(&proc->l, &whole, 1));

    /* the directory is whole now, but was not when the URL was looked up */

    state_is(US_LIFE_READY);
    assert_false(us_life_overtaken(&proc->l, &partial, 0));
    assert_true(us_life_overtaken(&proc->l, &partial, 1));

    state_is(US_LIFE_LOADING);
    assert_true(us_life_overtaken(&proc->l, &whole, 0));
    state_is(US_LIFE_READY);

    whole.generation--;
    assert_true(us_life_overtaken(&proc->l, &whole, 0));
}


static void
test_promised(void **state)
{
    int         was;
    uint64_t    lsn;
    us_life_t  *l;

    l = &proc->l;
    lsn = us_store_published(l->store);

    assert_true(us_life_promised(l, lsn, US_STORE_NO_ID, 1));

    /* one more URL, and nothing of it in the journal */

    (void) add_some(proc, 10, 1);
    lsn = us_store_published(l->store);

    assert_false(us_life_promised(l, lsn, US_STORE_NO_ID, 0));
    assert_true(us_life_promised(l, lsn, 10, 0));
    assert_true(us_life_promised(l, lsn, 10, 1));
    assert_false(us_life_promised(l, lsn, 11, 0));
    assert_true(us_life_promised(l, lsn, 0, 1));

    /* where next_id is not known, either */

    state_is(US_LIFE_FOLLOWING);
    assert_false(us_life_promised(l, lsn, US_STORE_NO_ID, 0));
    state_is(US_LIFE_READY);

    /* a delete under way, and then done, but not written */

    us_life_deleting(l);
    assert_true(us_life_promised(l, lsn, 10, 0));
    assert_false(us_life_promised(l, lsn, 10, 1));

    assert_int_equal(us_store_delete(l->store, 3, &was, &lsn), US_OK);
    us_life_deleted(l, lsn);
    assert_true(us_life_promised(l, lsn, 10, 0));
    assert_false(us_life_promised(l, lsn, 10, 1));

    pass(2000);
    assert_true(us_life_promised(l, lsn, 10, 1));
    assert_true(us_life_promised(l, lsn, US_STORE_NO_ID, 1));
}


static void
unready(int overtaken, const char *flags, const char *detail)
{
    us_unready_t  u;

    memset(&u, 0xff, sizeof(u));
    us_unready(&u, &proc->l, overtaken);

    assert_string_equal(u.detail, detail);
    assert_int_equal(u.passes, strchr(flags, 'p') != NULL);
    assert_int_equal(u.loading, strchr(flags, 'l') != NULL);
    assert_int_equal(u.primary, strchr(flags, 'r') != NULL);
}


static void
test_unready(void **state)
{
    us_unready_t  u;

    snprintf(world.sh->reason, US_SHARE_REASON, "the reason");

    state_is(US_LIFE_COLD);
    unready(0, "pl", "loading: 0%, the reason");
    us_release(&world.sh->load_total, 200);
    us_release(&world.sh->load_done, 30);
    state_is(US_LIFE_LOADING);
    world.sh->reason[0] = '\0';
    unready(0, "pl", "loading: 15%");
    us_unready(&u, &proc->l, 0);
    assert_int_equal(u.progress, 15);
    snprintf(world.sh->reason, US_SHARE_REASON, "the reason");

    state_is(US_LIFE_FOLLOWING);
    unready(0, "p", "another server owns the directory");
    state_is(US_LIFE_LOOKUP);
    unready(0, "", "this zone answers /url and /urls only (mode=lookup)");
    state_is(US_LIFE_REPLICA);
    unready(0, "pr", "this replica does not have it, or not yet");
    state_is(US_LIFE_DAMAGED);
    unready(0, "", "the directory is damaged; the zone is read-only and has "
            "what was stored before the damage: the reason");
    state_is(US_LIFE_TOO_SMALL);
    unready(0, "", "the reason");
    state_is(US_LIFE_FAILED);
    unready(0, "", "the directory cannot be read: the reason");

    state_is(US_LIFE_READY);
    unready(1, "p", "the directory was loaded meanwhile");
    unready(0, "p", "the disk is late: no write or sync has returned in time");
    snprintf(world.sh->why[US_ROLE_WRITER], US_SHARE_REASON, "no space");
    us_release(&world.sh->stalled, 1 << US_ROLE_WRITER);
    unready(0, "p", "the disk is late: no space");
    us_release(&world.sh->stalled, 0);
    proc->l.ending = 1;
    unready(1, "p", "this process is ending");
    proc->l.ending = 0;

    us_release(&world.sh->lost, 1);
    unready(0, "", "read-only until a restart: the reason");
    state_is(US_LIFE_LOADING);
    unready(0, "", "read-only until a restart: the reason");

    /* the longest reason has room after the longest text */

    memset(world.sh->reason, 'x', US_SHARE_REASON - 1);
    state_is(US_LIFE_DAMAGED);
    us_unready(&u, &proc->l, 0);
    assert_int_equal(u.detail[strlen(u.detail) - 1], 'x');
    assert_true(strlen(u.detail) > US_SHARE_REASON + 80);
    us_release(&world.sh->lost, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_admits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_promised, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unready, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
