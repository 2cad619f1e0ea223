
/*
 * Three nodes on a log of two servers, with faults of all of them: a URL that
 * was answered as new is never lost, never gets a second id, and is never
 * denied.
 *
 *     US_SEEDS=10000 build/unit/replog        (make test-cluster)
 */


#include "us_base.h"
#include "us_atomic.h"
#include "replog/us_appender.h"
#include "replog/us_standby.h"
#include "replog_fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>


#define NODES    3
#define KEYS     4096
#define OP       8                    /* bytes: key, number */
#define BYTES    (256 * 1024)
#define LEASE    2000
#define TERM_KEY 0xffffffffu


typedef struct {
    int                number;
    char               name[8];
    fake_log_t         log;
    us_replog_place_t  place;
    us_standby_t       standby;
    us_appender_t      appender;
    us_replog_row_t    at;            /* of a standby: survives a kill */
    int                begun;
    int                primary;
    int                settled;
    int                busy;          /* in a step */
    uint64_t           until;         /* it is stopped (SIGSTOP) */

    uint8_t            bytes[BYTES];  /* its journal */
    uint64_t           published;
    uint64_t           told;          /* adds below were answered */
    jmp_buf            kill;
} node_t;


typedef struct {
    uint64_t           lsn;           /* where the op ends; 0: not answered */
    uint32_t           number;
    uint64_t           when;
} answer_t;


static fake_t    fake;
static node_t    nodes[NODES];
static answer_t  answers[KEYS];
static uint64_t  clock_ms;
static uint32_t  number;
static unsigned  depth, promotions, depositions, denials, adds, losses;
static int       quiet;               /* no faults any more */


static void node_step(node_t *n);


static ssize_t
op_size(const uint8_t *p, size_t len)
{
    (void) p;

    return len < OP ? 0 : OP;
}


static unsigned
op_ids(const uint8_t *p, size_t len)
{
    uint32_t  key;

    (void) len;
    memcpy(&key, p, 4);

    return key != TERM_KEY;
}


static const us_ops_t  ops = { op_size, op_ids };


static uint64_t
now(void *data)
{
    (void) data;

    return clock_ms;
}


static size_t
term(void *data, uint64_t t, const char *holder, uint8_t buf[US_STANDBY_TERM])
{
    uint32_t  key, value;

    (void) data;

    key = TERM_KEY;
    value = (uint32_t) t * NODES + (uint32_t) (holder[4] - '0');
    memcpy(buf, &key, 4);
    memcpy(buf + 4, &value, 4);

    return OP;
}


static int
apply(void *data, const us_replog_row_t *row, const uint8_t *p, size_t len)
{
    node_t *n = data;

    assert_true(row->lsn == n->published && row->next <= BYTES);

    memcpy(n->bytes + row->lsn, p, len);
    n->published = row->next;
    n->at = *row;

    return 0;
}


static int
base(void *data, const uint8_t *p, size_t len)
{
    node_t *n = data;

    (void) p;
    (void) len;

    n->published = 0;

    return 0;
}


/* the LSN at which the add of a key ends; 0: the node does not have it */

static uint64_t
node_find(const node_t *n, uint32_t key, uint32_t *value)
{
    uint64_t  lsn;

    for (lsn = 0; lsn < n->published; lsn += OP) {
        if (memcmp(n->bytes + lsn, &key, 4) == 0) {
            memcpy(value, n->bytes + lsn + 4, 4);
            return lsn + OP;
        }
    }

    return 0;
}


static void
answered(uint32_t key, uint64_t lsn, uint32_t value)
{
    answer_t  *a;

    a = &answers[key];

    if (a->lsn == 0) {
        a->lsn = lsn;
        a->number = value;
        a->when = clock_ms;
        adds++;
        return;
    }

    /* one URL, one id */

    assert_int_equal(a->lsn, lsn);
    assert_int_equal(a->number, value);
}


/* what a primary has answered since: adds whose LSN is confirmed */

static void
node_answers(node_t *n)
{
    uint32_t          key, value;
    us_replog_ends_t  ends;

    us_replog_ends(&n->place, &ends);

    for ( /* void */ ; n->told < ends.sure.next; n->told += OP) {
        memcpy(&key, n->bytes + n->told, 4);
        memcpy(&value, n->bytes + n->told + 4, 4);

        if (key != TERM_KEY) {
            answered(key, n->told + OP, value);
        }
    }
}


/* clients of a node that believes to be the primary */

static void
node_clients(node_t *n)
{
    unsigned          i;
    uint32_t          key, value;
    uint64_t          lsn;
    us_replog_ends_t  ends;

    if (n->until > clock_ms) {
        return;
    }

    if (!n->primary) {

        /* a standby answers what it finds */

        key = fake_random(&fake) % KEYS;
        lsn = node_find(n, key, &value);

        if (lsn) {
            answered(key, lsn, value);
        }

        return;
    }

    for (i = fake_random(&fake) % 4; i; i--) {
        key = fake_random(&fake) % KEYS;
        lsn = node_find(n, key, &value);
        us_replog_ends(&n->place, &ends);

        if (lsn) {

            if (lsn <= ends.sure.next) {
                answered(key, lsn, value);
            }

            continue;
        }

        if (us_replog_lease(&n->place, clock_ms, LEASE)) {

            /* it may deny: nobody was told that it is there */

            assert_int_equal(answers[key].lsn, 0);
            denials++;
        }

        if (n->published + OP <= BYTES) {
            number++;
            memcpy(n->bytes + n->published, &key, 4);
            memcpy(n->bytes + n->published + 4, &number, 4);
            n->published += OP;
        }
    }
}


/* another process of the node, which has what is shared */

static void
node_process(node_t *n)
{
    us_appender_free(&n->appender);
    memset(&n->appender, 0, sizeof(n->appender));
    memset(&n->standby, 0, sizeof(n->standby));

    n->log.server = -1;

    n->appender.log = &n->log.log;
    n->appender.place = &n->place;
    n->appender.ops = &ops;
    n->appender.now = now;

    n->standby.log = &n->log.log;
    n->standby.env.term = term;
    n->standby.env.apply = apply;
    n->standby.env.base = base;
    n->standby.env.now = now;
    n->standby.env.data = n;
    n->standby.holder = n->name;
    n->standby.settings = "";
    n->standby.lease = LEASE;
    n->standby.takeover = 2000 + 500 * n->number;
    n->standby.at = n->at;
    n->standby.begun = n->begun;
}


static void
node_empty(node_t *n)
{
    n->begun = 0;
    n->primary = 0;
    n->published = 0;
    n->told = 0;
    memset(&n->at, 0, sizeof(n->at));
    memset(&n->place, 0, sizeof(n->place));
    node_process(n);
}


static void
node_start(node_t *n, int i)
{
    us_appender_free(&n->appender);
    memset(n, 0, sizeof(*n));
    n->number = i;
    snprintf(n->name, sizeof(n->name), "node%d", i);
    n->log.log.ops = &fake_ops;
    n->log.fake = &fake;
    n->log.node = n;
    node_empty(n);
}


/* what happens while a call of a node is under way, or between two of them */

static void
world(node_t *n)
{
    int  i;

    clock_ms += fake_random(&fake) % 12;

    if (quiet) {
        return;
    }

    if (fake_chance(&fake, 12)) {
        fake_late(&fake);
    }

    if (fake_chance(&fake, 3)) {

        if (!fake.linked) {
            fake_link(&fake);

        } else if (fake_chance(&fake, 300)) {
            fake.linked = 0;

        } else if (fake_chance(&fake, 400)) {
            fake_restart(&fake, fake.current);

        } else {
            fake_failover(&fake);
        }
    }

    /* a server that was cut off can be replaced while writes hang there */

    if (!fake.linked && !fake.servers[!fake.current].primary
        && fake_chance(&fake, 5))
    {
        fake_failover(&fake);
    }

    i = fake_random(&fake) % NODES;

    if (!nodes[i].busy && nodes[i].until <= clock_ms && fake_chance(&fake, 3)) {
        nodes[i].until = clock_ms + fake_random(&fake) % 5000;
    }

    /* one call takes long, and others go on */

    if (n && depth < 3 && fake_chance(&fake, 400)) {
        i = fake_random(&fake) % NODES;

        if (!nodes[i].busy) {
            depth++;
            node_step(&nodes[i]);
            depth--;
        }
    }

    if (n && fake_chance(&fake, 5)) {
        clock_ms += fake_random(&fake) % 1500;
    }
}


static void
meanwhile(void *data)
{
    node_t *n = data;

    world(n);
    node_clients(n);

    /* its process is killed in the call; only the innermost one can be */

    if (!quiet && depth == 0 && fake_chance(&fake, 4)) {
        longjmp(n->kill, 1);
    }
}


static void
node_read(node_t *n)
{
    int              promote;
    us_standby_rc_t  rc;

    promote = (n->standby.looked && !n->settled
               && strcmp(n->standby.head.holder, n->name) == 0)
              || fake_chance(&fake, quiet ? 0 : 2);

    rc = us_standby_step(&n->standby, promote);

    n->begun = n->standby.begun;

    if (n->standby.looked && n->standby.head.term
        && strcmp(n->standby.head.holder, n->name) != 0)
    {
        n->settled = 1;
    }

    /* what a client was answered is never gone from the servers in charge */

    if (rc == US_STANDBY_LOST) {
        losses++;
    }

    if (rc == US_STANDBY_READY) {
        us_replog_place_begin(&n->place, &n->standby.claim, 0,
                              n->standby.sent);
        n->told = n->published;
        n->settled = 1;
        n->primary = 1;
        promotions++;
    }
}


static void
node_write(node_t *n)
{
    us_str_t           pieces[2];
    us_appender_rc_t   rc;
    us_replog_ends_t   ends;

    us_replog_ends(&n->place, &ends);

    pieces[0].data = n->bytes + ends.sure.next;
    pieces[0].len = (n->published - ends.sure.next) / 2 / OP * OP;
    pieces[1].data = pieces[0].data + pieces[0].len;
    pieces[1].len = n->published - ends.sure.next - pieces[0].len;

    rc = us_appender_step(&n->appender, pieces);

    node_answers(n);

    switch (rc) {

    case US_APPENDER_DEPOSED:
        depositions++;
        node_empty(n);
        break;

    case US_APPENDER_LOST:
        losses++;
        us_replog_place_end(&n->place);
        break;

    default:
        break;
    }
}


static void
node_step(node_t *n)
{
    if (n->until > clock_ms) {
        return;
    }

    n->busy = 1;

    if (n->primary) {
        node_write(n);

    } else {
        node_read(n);
    }

    n->busy = 0;
}


static void
run(uint64_t seed, unsigned steps)
{
    int       i;
    node_t   *n;
    unsigned  step;

    memset(answers, 0, sizeof(answers));
    clock_ms = 1000000;
    number = 0;
    quiet = 0;

    fake_init(&fake, seed, meanwhile);
    fake.faults = 5 + seed % 60;

    for (i = 0; i < NODES; i++) {
        node_start(&nodes[i], i);
    }

    for (step = 0; step < steps; step++) {
        n = &nodes[fake_random(&fake) % NODES];

        world(NULL);

        if (fake_chance(&fake, 1)) {
            node_start(n, n->number);
            continue;
        }

        if (setjmp(n->kill)) {
            n->busy = 0;
            node_process(n);
            continue;
        }

        node_clients(n);
        node_step(n);
    }

    /* all faults are over: what was answered is in the log, where it was */

    quiet = 1;
    fake.faults = 0;

    if (!fake.linked) {
        fake_link(&fake);
    }

    for (i = 0; i < NODES; i++) {
        node_start(&nodes[i], i);
    }

    for (step = 0; step < 4000; step++) {
        clock_ms += 10;
        node_step(&nodes[step % NODES]);
    }
}


static void
check(uint64_t seed)
{
    uint32_t   key, value;
    uint64_t   lsn;
    unsigned   i;
    node_t    *n;

    n = NULL;

    for (i = 0; i < NODES; i++) {
        if (nodes[i].primary) {
            assert_null(n);
            n = &nodes[i];
        }
    }

    if (n == NULL) {
        print_error("seed %llu: no primary in the end\n",
                    (unsigned long long) seed);
    }

    assert_non_null(n);

    for (key = 0; key < KEYS; key++) {
        lsn = node_find(n, key, &value);

        if (answers[key].lsn) {
            assert_int_equal(answers[key].lsn, lsn);
            assert_int_equal(answers[key].number, value);
        }
    }

    for (i = 0; i < NODES; i++) {
        us_appender_free(&nodes[i].appender);
        nodes[i].appender.buf = NULL;
    }

    fake_done(&fake);
}


static void
simulation(void **state)
{
    char      *env;
    uint64_t   seed, seeds, first;

    (void) state;

    env = getenv("US_SEEDS");
    seeds = env ? strtoull(env, NULL, 10) : 10;
    env = getenv("US_SEED");
    first = env ? strtoull(env, NULL, 10) : 1;
    seeds = env ? 1 : seeds;

    for (seed = first; seed < first + seeds; seed++) {

        if (getenv("US_SAY")) {
            print_message("seed %llu\n", (unsigned long long) seed);
        }

        promotions = 0;
        run(seed, 1500);
        check(seed);
    }

    print_message("%llu seeds: %u adds answered, %u denials, %u depositions, "
                  "%u reads of a shorter log\n", (unsigned long long) seeds,
                  adds, denials, depositions, losses);

    assert_true(seeds < 20 || (adds && denials && depositions));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(simulation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
