
/*
 * Three nodes on a log of two servers, with faults of all of them: a URL that
 * was answered as new is never lost, never gets a second id, and is never
 * denied.
 *
 *     US_SEEDS=10000 build/unit/replog        (make test-cluster)
 */


#include "us_base.h"
#include "us_atomic.h"
#include "journal/us_crc32c.h"
#include "replog/us_appender.h"
#include "replog/us_rebase.h"
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
#define LONG_KEY 0xfffffffeu          /* so many bytes follow the number */
#define LONG     (3 * US_REPLOG_BLOCK)


typedef struct {
    int                number;
    char               name[8];
    fake_log_t         log;
    us_replog_place_t  place;
    us_standby_t       standby;
    us_appender_t      appender;
    uint64_t           lease;
    char               settings[FAKE_SETTINGS];
    fake_log_t         rebase_log;
    us_rebase_t        rebase;
    us_replog_row_t    at;            /* of a standby: survives a kill */
    int                begun;
    int                primary;
    int                settled;
    int                busy;          /* in a step */
    uint64_t           until;         /* it is stopped (SIGSTOP) */

    uint8_t            bytes[BYTES];  /* its journal */
    uint64_t           published;
    uint64_t           replied;       /* adds below were answered */
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
static uint32_t  number, claims;
static unsigned  depth, depositions, denials, adds, losses;
static unsigned  rebases, reloads;
static int       quiet;               /* no faults any more */
static int       without_terms;       /* as logs of earlier versions */
static int       applied_moves;       /* after a row, to server 0 */


static void node_step(node_t *n);
static void node_move(node_t *n, int server);
static void world(node_t *n);


static size_t
op_len(const uint8_t *p)
{
    uint32_t  key;

    memcpy(&key, p, 4);

    return key == LONG_KEY ? OP + LONG : OP;
}


static ssize_t
op_size(const uint8_t *p, size_t len)
{
    return len < OP ? 0 : (ssize_t) op_len(p);
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
    (void) t;
    (void) holder;

    key = TERM_KEY;
    value = ++claims;
    memcpy(buf, &key, 4);
    memcpy(buf + 4, &value, 4);

    return OP;
}


/* "LEASE BEFORE", as us_replicate_declare() has them */

static const char *
settings(void *data, const us_replog_head_t *head, int led, uint64_t *lease)
{
    node_t *n = data;

    char                terms[US_STANDBY_TERMS];
    unsigned long long  other, before;

    other = 0;
    before = 0;
    terms[0] = '\0';
    (void) sscanf(head->settings, "%llu %llu %s", &other, &before, terms);

    *lease = n->lease;
    *lease = *lease < other ? other : *lease;
    *lease = !led && *lease < before ? before : *lease;

    us_standby_terms(terms, head->term + 1, head->last.next);

    /* as much of them as a row of the test has room for */

    terms[sizeof(n->settings) - 44] = '\0';

    if (strlen(terms) == sizeof(n->settings) - 44) {
        *strrchr(terms, ',') = '\0';
    }

    snprintf(n->settings, sizeof(n->settings), "%llu %llu %.200s",
             (unsigned long long) n->lease, (unsigned long long) *lease,
             without_terms ? "" : terms);

    return n->settings;
}


static int
follows(void *data, const us_replog_head_t *head, const us_replog_row_t *row)
{
    char                terms[US_STANDBY_TERMS];
    unsigned long long  other, before;

    (void) data;

    return sscanf(head->settings, "%llu %llu %s", &other, &before, terms) == 3
           ? us_standby_follows(terms, row) : -1;
}


static int
apply(void *data, const us_replog_row_t *row, const uint8_t *p, size_t len)
{
    node_t *n = data;

    assert_true(row->next - len == n->published && row->next <= BYTES);

    memcpy(n->bytes + n->published, p, len);
    n->published = row->next;
    n->at = *row;

    if (applied_moves) {
        applied_moves = 0;
        node_move(n, 0);
    }

    return 0;
}


static int
base(void *data, const uint8_t *p, size_t len)
{
    node_t *n = data;

    assert_true(n->published + len <= BYTES);

    if (len) {
        memcpy(n->bytes + n->published, p, len);
    }

    n->published += len;

    return 0;
}


/* the LSN at which the add of a key ends; 0: the node does not have it */

static uint64_t
node_find(const node_t *n, uint32_t key, uint32_t *value)
{
    uint64_t  lsn;

    for (lsn = 0; lsn < n->published; lsn += op_len(n->bytes + lsn)) {
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

    while (n->replied < ends.sure.next) {
        memcpy(&key, n->bytes + n->replied, 4);
        memcpy(&value, n->bytes + n->replied + 4, 4);

        if (key < KEYS) {
            answered(key, n->replied + OP, value);
        }

        n->replied += op_len(n->bytes + n->replied);
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

        /* a standby answers what it finds, once it has been built */

        if (!n->begun) {
            return;
        }

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

        if (us_replog_lease(&n->place, clock_ms)) {

            /* it may deny: no client has an answer that has it */

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
    /* a step that a kill has ended frees nothing */

    free(n->appender.buf);
    us_rebase_free(&n->rebase);
    memset(&n->appender, 0, sizeof(n->appender));
    memset(&n->standby, 0, sizeof(n->standby));

    n->log.server = -1;
    n->rebase_log.server = -1;

    /* what is half made is given up */

    if (!n->primary && !n->begun) {
        n->published = 0;
    }

    n->appender.log = &n->log.log;
    n->appender.place = &n->place;
    n->appender.ops = &ops;
    n->appender.follows = follows;
    n->appender.now = now;

    n->standby.log = &n->log.log;
    n->standby.env.term = term;
    n->standby.env.apply = apply;
    n->standby.env.base = base;
    n->standby.env.now = now;
    n->standby.env.data = n;
    n->standby.holder = n->name;
    n->standby.env.settings = settings;
    n->standby.env.follows = follows;
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
    n->replied = 0;
    memset(&n->at, 0, sizeof(n->at));
    memset(&n->place, 0, sizeof(n->place));
    node_process(n);
}


static void
node_start(node_t *n, int i)
{
    free(n->appender.buf);
    us_rebase_free(&n->rebase);
    memset(n, 0, sizeof(*n));
    n->number = i;
    n->lease = quiet ? LEASE : LEASE / 2 + fake_random(&fake) % (2 * LEASE);
    snprintf(n->name, sizeof(n->name), "node%d", i);
    n->log.log.ops = &fake_ops;
    n->log.fake = &fake;
    n->log.node = n;
    n->rebase_log = n->log;
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

    fake_events(&fake);

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

    if (rc == US_STANDBY_OK || rc == US_STANDBY_READY) {
        n->begun = 1;
        n->at = n->standby.at;
    }

    if (n->standby.looked && n->standby.head.term
        && strcmp(n->standby.head.holder, n->name) != 0)
    {
        n->settled = 1;
    }

    /* a shorter log: that of a server that was replaced */

    if (rc == US_STANDBY_LOST) {
        losses++;
    }

    if (rc == US_STANDBY_STOP) {
        reloads++;
        node_empty(n);
    }

    if (rc == US_STANDBY_READY) {
        us_replog_place_begin(&n->place, &n->standby.claim, 0,
                              n->standby.sent, n->lease);
        n->replied = n->published;
        n->settled = 1;
        n->primary = 1;
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

    /* what it has sent does not stay in memory */

    assert_null(n->appender.buf);

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


static int
node_pause(void *data, unsigned ms)
{
    node_t *n = data;

    clock_ms += ms;
    world(n);

    return 0;
}


/* the base of a primary, as of an LSN that is confirmed; 0, or -1 */

static int
node_make(node_t *n, uint64_t lsn)
{
    uint64_t           at;
    us_rebase_t       *rb;
    us_replog_ends_t   ends;

    us_replog_ends(&n->place, &ends);

    rb = &n->rebase;
    us_rebase_free(rb);
    memset(rb, 0, sizeof(*rb));

    rb->log = &n->rebase_log.log;
    rb->term = ends.sure.term;
    rb->base = fake_random(&fake);
    rb->size = US_PART_HEAD + 8192;
    rb->pause = node_pause;
    rb->data = n;

    for (at = 0; at < lsn; at += OP) {
        if (us_rebase_put(rb, n->bytes + at, OP) == -1) {
            return -1;
        }
    }

    return us_rebase_end(rb, lsn, ends.sure.next);
}


static void
node_rebase(node_t *n)
{
    uint64_t          lsn, keep;
    us_replog_ends_t  ends;

    if (n->until > clock_ms) {
        return;
    }

    n->busy = 1;

    us_replog_ends(&n->place, &ends);
    keep = fake_random(&fake) % 2 * (fake_random(&fake) % 2000);
    lsn = fake.servers[fake.current].rows[0].row.next / OP;

    if (ends.sure.next / OP > lsn) {
        lsn += 1 + fake_random(&fake) % (ends.sure.next / OP - lsn);
    }

    lsn *= OP;

    if (node_make(n, lsn) == 0) {
        n->rebase.keep = keep;

        if (us_rebase_force(&n->rebase) == 0) {
            rebases++;
            (void) us_rebase_trim(&n->rebase);
        }
    }

    n->busy = 0;
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

        if (n->primary && fake_chance(&fake, 20)) {
            node_rebase(n);

        } else {
            node_step(n);
        }
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
        print_error("seed %llu: no primary in the end: %s\n",
                    (unsigned long long) seed, nodes[0].standby.error);
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
        free(nodes[i].appender.buf);
        us_rebase_free(&nodes[i].rebase);
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

        run(seed, 1500);
        check(seed);
    }

    print_message("%llu seeds: %u adds answered, %u denials, %u depositions, "
                  "%u new bases, %u stores loaded anew, %u reads of a shorter "
                  "log\n", (unsigned long long) seeds, adds, denials,
                  depositions, rebases, reloads, losses);

    assert_true(seeds < 10
                || (adds && denials && depositions && rebases && reloads));
}


/* --- one fault after another -------------------------------------------- */

static void
calm(void *node)
{
    (void) node;
}


/* the connection of a node leads to this server from now on */

static void
node_move(node_t *n, int server)
{
    n->log.server = server;
    n->log.log.session++;
}


static void
node_add(node_t *n, uint32_t key)
{
    number++;
    memcpy(n->bytes + n->published, &key, 4);
    memcpy(n->bytes + n->published + 4, &number, 4);
    n->published += OP;
}


static void
steps(node_t *n, uint64_t ms)
{
    uint64_t  until;

    for (until = clock_ms + ms; clock_ms < until; clock_ms += 50) {
        node_step(n);
    }
}


static int
leased(const node_t *n)
{
    return us_replog_lease(&n->place, clock_ms);
}


/* node 0 is the primary and has two rows; node 1 has all that is confirmed */

static void
stage(void)
{
    int  i;

    memset(answers, 0, sizeof(answers));
    clock_ms = 1000000;
    quiet = 1;

    fake_init(&fake, 1, calm);

    for (i = 0; i < NODES; i++) {
        node_start(&nodes[i], i);
        nodes[i].standby.takeover = 0;
    }

    steps(&nodes[0], 3 * LEASE);
    assert_true(nodes[0].primary && leased(&nodes[0]));

    node_add(&nodes[0], 1);
    steps(&nodes[0], 1000);
    steps(&nodes[1], 100);

    assert_int_equal(nodes[1].published, 2 * OP);
    assert_memory_equal(nodes[0].bytes, nodes[1].bytes, 2 * OP);
}


static void
end(void)
{
    int  i;

    for (i = 0; i < NODES; i++) {
        free(nodes[i].appender.buf);
        us_rebase_free(&nodes[i].rebase);
    }

    fake_done(&fake);
}


static void
promote(node_t *n)
{
    n->settled = 0;
    snprintf(n->standby.head.holder, sizeof(n->standby.head.holder), "%s",
             n->name);
    node_step(n);
}


/* the other server takes over; what server 0 alone has is seen there */

static void
split(void)
{
    fake_failover(&fake);
    fake_restart(&fake, 0);
    fake_third(&fake);
}


/* row or beat: what node 1 saw on the old server, node 0 makes anew */

static void
seen_twice(int row)
{
    stage();

    fake.linked = 0;

    if (row) {
        node_add(&nodes[0], 2);
    }

    clock_ms += US_APPENDER_BEAT;
    node_step(&nodes[0]);
    split();

    /* node 1 sees it now, and no more of it for a long time */

    node_move(&nodes[1], 0);
    steps(&nodes[1], 100);
    clock_ms += 2 * LEASE;

    node_move(&nodes[0], 1);
    steps(&nodes[0], 2 * LEASE);
    assert_true(leased(&nodes[0]));

    node_move(&nodes[1], 1);
    promote(&nodes[1]);
    promote(&nodes[1]);

    for ( /* void */ ; leased(&nodes[0]); clock_ms += 50) {
        promote(&nodes[1]);
        assert_false(nodes[1].primary);
    }

    steps(&nodes[1], 2 * LEASE);
    assert_true(nodes[1].primary);
    end();
}


static void
beat_seen_twice(void **state)
{
    (void) state;

    seen_twice(0);
}


static void
row_seen_twice(void **state)
{
    (void) state;

    seen_twice(1);
}


/*
 * The log loses the term of a node that took over while node 0 was stopped.
 * Until its lease is over that node denies; so nothing is confirmed to node 0.
 */

static void
term_missed(void **state)
{
    unsigned  n;

    (void) state;

    stage();

    clock_ms += 2 * LEASE;
    promote(&nodes[1]);
    steps(&nodes[1], 3 * LEASE);
    assert_true(nodes[1].primary && leased(&nodes[1]));

    fake_lose(&fake, 2 * OP);
    node_add(&nodes[0], 2);

    for (n = 0; leased(&nodes[1]); n++) {
        node_step(&nodes[0]);
        assert_int_equal(nodes[0].replied, 2 * OP);
        assert_false(leased(&nodes[0]));
        clock_ms += 50;
    }

    assert_true(n > 0);
    assert_int_equal(fake_last(&fake.servers[fake.current])->row.next, 3 * OP);

    steps(&nodes[0], LEASE);
    assert_int_equal(nodes[0].replied, 3 * OP);
    assert_true(leased(&nodes[0]));

    /* a session that breaks within a lease costs nothing */

    fake_lose(&fake, 3 * OP);
    node_add(&nodes[0], 3);
    node_step(&nodes[0]);
    assert_int_equal(nodes[0].replied, 4 * OP);
    end();
}


/*
 * The log loses a term that began after the one for which node 1 waits: that is
 * its last row now, and the lease before it has long passed.
 */

static void
term_waits(void **state)
{
    unsigned  n;

    (void) state;

    stage();

    promote(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);
    clock_ms += 2 * LEASE;

    steps(&nodes[2], 100);
    promote(&nodes[2]);
    steps(&nodes[2], 3 * LEASE);
    assert_true(nodes[2].primary && leased(&nodes[2]));

    fake_lose(&fake, 3 * OP);

    for (n = 0; leased(&nodes[2]); n++) {
        node_step(&nodes[1]);
        assert_false(nodes[1].primary);
        clock_ms += 50;
    }

    assert_true(n > 0);
    steps(&nodes[1], LEASE);
    assert_true(nodes[1].primary);
    end();
}


static unsigned  calls, calls_until;


/* at its third turn the connection of the node leads to server 0 */

static void
calls_move(void *data)
{
    node_t *n = data;

    if (++calls == 3) {
        node_move(n, 0);
    }
}


/* a row that one server alone has, and shows */

static void
row_alone(void)
{
    fake.linked = 0;
    node_add(&nodes[0], 2);
    node_step(&nodes[0]);
    fake_restart(&fake, 0);
}


static void
unconfirmed(void)
{
    stage();
    row_alone();
    assert_true(fake_last(&fake.servers[0])->row.next == 3 * OP);
}


/* a node that waits is connected to a server that has not its claim */

static void
wait_elsewhere(void **state)
{
    (void) state;

    unconfirmed();
    split();

    node_move(&nodes[1], 1);
    steps(&nodes[1], 100);

    calls = 0;                          /* head, claim, its end */
    fake.meanwhile = calls_move;
    promote(&nodes[1]);
    fake.meanwhile = calm;
    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);

    steps(&nodes[1], 200);
    assert_int_equal(nodes[1].published, 2 * OP);

    node_move(&nodes[1], 1);
    steps(&nodes[1], 2 * LEASE);
    assert_true(nodes[1].primary);
    end();
}


/* the look goes to one server, and the rows come from the other */

static void
read_elsewhere(void **state)
{
    (void) state;

    unconfirmed();
    split();

    /* node 2 gets another row there confirmed */

    node_move(&nodes[2], 1);
    steps(&nodes[2], 100);
    promote(&nodes[2]);
    steps(&nodes[2], 2 * LEASE);
    assert_true(nodes[2].primary);
    node_add(&nodes[2], 3);
    steps(&nodes[2], 1000);

    /* a new session: the look, the last row, and then the rows */

    node_move(&nodes[1], 1);
    calls = 0;
    fake.meanwhile = calls_move;
    node_step(&nodes[1]);
    fake.meanwhile = calm;

    assert_true(calls >= 3);
    assert_int_equal(nodes[1].published, 2 * OP);

    node_move(&nodes[1], 1);
    steps(&nodes[1], 200);
    assert_int_equal(nodes[1].published, 4 * OP);
    assert_memory_equal(nodes[1].bytes, nodes[2].bytes, 4 * OP);
    end();
}


/*
 * A node was the primary, has restarted, and claims the same term again at a
 * server that was replaced: its earlier row is not that claim.
 */

static void
claimed_before(void **state)
{
    (void) state;

    stage();

    split();
    node_move(&nodes[1], 1);
    promote(&nodes[1]);
    steps(&nodes[1], 2 * LEASE);
    node_add(&nodes[1], 2);
    steps(&nodes[1], 1000);
    assert_true(nodes[1].primary && leased(&nodes[1]));

    node_start(&nodes[1], 1);
    nodes[1].standby.takeover = 0;
    node_move(&nodes[1], 0);
    steps(&nodes[1], 100);
    promote(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_CLAIMED);

    node_move(&nodes[1], 1);
    node_step(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_READING);

    steps(&nodes[1], 200);
    assert_int_equal(nodes[1].published, 4 * OP);
    end();
}


/* a row that no node has made follows the last one of a server */

static void
another(int server)
{
    fake_row_t  row;

    row = *fake_last(&fake.servers[server]);
    row.row.lsn = row.row.next;
    row.row.next += OP;
    row.row.crc = us_crc32c(row.row.crc, (uint8_t *) "another!", OP);
    row.p = (uint8_t *) "another!";
    row.len = OP;
    row.holder[0] = '\0';
    fake_put(&fake.servers[server], &row);
}


/* a row of the primary's own term that has other bytes */

static void
other_bytes(void **state)
{
    (void) state;

    stage();
    another(0);

    losses = 0;
    node_add(&nodes[0], 2);
    node_step(&nodes[0]);               /* is refused: it looks why */

    assert_int_equal(losses, 1);
    assert_false(leased(&nodes[0]));
    end();
}


static void
not_applied(void **state)
{
    (void) state;

    unconfirmed();

    node_move(&nodes[1], 0);
    steps(&nodes[1], 200);
    assert_int_equal(nodes[1].published, 2 * OP);

    /* one that has nothing reads it with the rows before */

    node_move(&nodes[2], 0);
    steps(&nodes[2], 200);
    assert_int_equal(nodes[2].published, 2 * OP);
    end();
}


/* the primary has read it back, and goes on at the other server */

static void
row_gone(void **state)
{
    (void) state;

    unconfirmed();

    node_step(&nodes[0]);
    assert_int_equal(nodes[0].place.ends[nodes[0].place.at % 2].last.next,
                     3 * OP);
    nodes[0].appender.known = 1;
    split();

    node_move(&nodes[0], 1);
    node_add(&nodes[0], 3);
    node_step(&nodes[0]);
    assert_true(fake_last(&fake.servers[1])->row.next == 2 * OP);

    steps(&nodes[0], 200);
    assert_true(fake_last(&fake.servers[1])->row.next == 4 * OP);
    assert_true(nodes[0].replied == 4 * OP);
    end();
}


/* a server that is cut off answers, and gives no lease */

static void
cut_off(void **state)
{
    (void) state;

    stage();

    fake.linked = 0;
    steps(&nodes[0], LEASE + US_APPENDER_BEAT);
    assert_false(leased(&nodes[0]));
    end();
}


static void
slow(void *data)
{
    (void) data;

    clock_ms += LEASE;
}


/* an answer that comes after a lease gives none */

static void
slow_answer(void **state)
{
    (void) state;

    stage();

    node_add(&nodes[0], 2);
    fake.meanwhile = slow;
    node_step(&nodes[0]);
    fake.meanwhile = calm;

    assert_int_equal(nodes[0].replied, 3 * OP);
    assert_false(leased(&nodes[0]));
    end();
}


/* a claim that one server alone has */

static void
claim_alone(void **state)
{
    (void) state;

    stage();

    fake.linked = 0;
    promote(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_CLAIMED);
    fake_restart(&fake, 0);

    steps(&nodes[1], 3 * LEASE);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_CLAIMED);
    assert_false(nodes[1].primary);
    end();
}


static void
calls_beat(void *data)
{
    (void) data;

    /* a head, and then the claim begins */

    if (++calls == 2) {
        fake.meanwhile = calm;
        node_step(&nodes[0]);
        assert_true(leased(&nodes[0]));
    }
}


/* a beat that comes between the look and the claim */

static void
beat_unseen(void **state)
{
    (void) state;

    stage();

    node_step(&nodes[1]);
    clock_ms += 2 * LEASE;
    calls = 0;
    fake.meanwhile = calls_beat;
    promote(&nodes[1]);
    fake.meanwhile = calm;

    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);
    assert_true(leased(&nodes[0]) && !nodes[1].primary);
    end();
}


/* bytes of a row that are not those of its crc */

static void
damaged(void **state)
{
    (void) state;

    stage();

    fake.servers[0].rows[2].p[5] ^= 1;
    losses = 0;
    node_move(&nodes[2], 0);
    steps(&nodes[2], 100);
    assert_true(losses > 0);
    assert_int_equal(nodes[2].published, OP);
    end();
}


/* a node waits for the end of a lease, and another one claims the next term */

static void
overtaken(void **state)
{
    (void) state;

    stage();
    steps(&nodes[2], 100);

    promote(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);

    promote(&nodes[2]);
    assert_int_equal(nodes[2].standby.state, US_STANDBY_WAITING);
    assert_true(nodes[2].standby.claim.term > nodes[1].standby.claim.term);

    node_step(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_READING);
    steps(&nodes[1], 2 * LEASE);
    assert_false(nodes[1].primary);

    steps(&nodes[2], 2 * LEASE);
    assert_true(nodes[2].primary);
    end();
}


/* the same, and it is stopped meanwhile: it has not seen that one for long */

static void
overtaken_long(void **state)
{
    (void) state;

    stage();
    steps(&nodes[2], 100);
    nodes[1].standby.takeover = LEASE;

    promote(&nodes[1]);
    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);

    promote(&nodes[2]);
    steps(&nodes[2], 4 * LEASE);
    assert_true(nodes[2].primary && leased(&nodes[2]));

    for ( /* void */ ; leased(&nodes[2]); clock_ms += 50) {
        node_step(&nodes[1]);
        assert_false(nodes[1].primary);
    }

    steps(&nodes[1], 3 * LEASE);
    assert_true(nodes[1].primary);
    end();
}


static void
drop_last(int server)
{
    fake_server_t  *s;

    s = &fake.servers[server];
    free(s->rows[--s->nrows].p);
}


/* the servers are restored as they were before the last row */

static void
restored(void **state)
{
    (void) state;

    stage();
    drop_last(0);
    drop_last(1);

    losses = 0;
    clock_ms += US_APPENDER_BEAT;
    node_step(&nodes[0]);               /* is refused: it looks why */
    assert_int_equal(losses, 1);
    assert_false(leased(&nodes[0]));

    node_step(&nodes[1]);
    assert_int_equal(losses, 2);

    /* another row is there instead */

    another(0);
    another(1);
    node_step(&nodes[1]);
    assert_int_equal(losses, 3);
    drop_last(0);
    drop_last(1);

    /* the same, and more of them */

    steps(&nodes[2], 100);
    promote(&nodes[2]);
    steps(&nodes[2], 2 * LEASE);
    node_add(&nodes[2], 3);
    steps(&nodes[2], 1000);

    losses = 0;
    node_move(&nodes[1], 0);
    node_step(&nodes[1]);
    assert_int_equal(losses, 1);
    end();
}


/* an operation that is longer than a row usually is, and n after it */

static void
long_and(unsigned n)
{
    size_t  at;

    stage();

    at = nodes[0].published;
    node_add(&nodes[0], LONG_KEY);
    nodes[0].published += LONG;
    memset(nodes[0].bytes + at + OP, 7, LONG);

    while (n--) {
        node_add(&nodes[0], 2);
    }

    steps(&nodes[0], 1000);
    assert_true(nodes[0].place.ends[nodes[0].place.at % 2].sure.next
                == nodes[0].published);

    steps(&nodes[1], 200);
    assert_int_equal(nodes[1].published, nodes[0].published);
    assert_memory_equal(nodes[0].bytes, nodes[1].bytes, nodes[0].published);
    end();
}


static void
long_operation(void **state)
{
    (void) state;

    long_and(1);
    long_and(0);
}


/* it is the primary one ms after a lease and the drift of two clocks */

static void
lease_edges(void **state)
{
    uint64_t  at;

    (void) state;

    stage();

    at = nodes[0].place.sent;
    assert_true(us_replog_lease(&nodes[0].place, at + LEASE - 1));
    assert_false(us_replog_lease(&nodes[0].place, at + LEASE));
    us_replog_place_end(&nodes[0].place);
    assert_false(us_replog_lease(&nodes[0].place, at));
    assert_false(us_replog_lease(&nodes[0].place, LEASE - 1));

    node_move(&nodes[1], 0);
    node_step(&nodes[1]);
    at = clock_ms;
    promote(&nodes[1]);
    clock_ms = at + LEASE + LEASE / US_REPLOG_DRIFT;
    node_step(&nodes[1]);
    assert_false(nodes[1].primary);

    clock_ms++;
    node_step(&nodes[1]);
    assert_true(nodes[1].primary && leased(&nodes[1]));
    end();
}


/*
 * Nodes have different leases: a claimer waits for the longest one that may be
 * there, also for that of a node before one that was never ready.
 */

static void
lease_others(void **state)
{
    uint64_t  seen;

    (void) state;

    stage();
    nodes[0].lease = 8 * LEASE;
    node_move(&nodes[1], 0);
    steps(&nodes[1], 200);

    /* node 0 begins another term, with the long lease */

    nodes[0].primary = 0;
    nodes[0].at = nodes[0].place.ends[nodes[0].place.at % 2].sure;
    nodes[0].begun = 1;
    node_process(&nodes[0]);
    node_step(&nodes[0]);
    promote(&nodes[0]);
    steps(&nodes[0], 10 * LEASE);
    assert_true(nodes[0].primary && leased(&nodes[0]));
    node_add(&nodes[0], 3);
    steps(&nodes[0], 1000);
    steps(&nodes[1], 200);
    steps(&nodes[2], 200);

    /* node 1 claims, then node 2 does, before node 1 is ready */

    seen = clock_ms;
    promote(&nodes[1]);
    steps(&nodes[1], 2 * LEASE);
    assert_false(nodes[1].primary);

    promote(&nodes[2]);
    assert_int_equal(nodes[2].standby.state, US_STANDBY_WAITING);
    steps(&nodes[2], 2 * LEASE);
    assert_false(nodes[2].primary);
    assert_true(leased(&nodes[0]));

    steps(&nodes[2], 8 * LEASE);
    assert_true(nodes[2].primary);
    assert_true(clock_ms - seen > 8 * LEASE);
    assert_false(leased(&nodes[0]));

    /* a term that was ready ends the long one */

    node_add(&nodes[2], 4);
    steps(&nodes[2], 1000);
    node_move(&nodes[1], 0);
    steps(&nodes[1], 500);
    promote(&nodes[1]);
    steps(&nodes[1], 2 * LEASE);
    assert_true(nodes[1].primary);
    end();
}


/* --- a new base ----------------------------------------------------------- */

/* so many rows of one operation each, which are confirmed */

static void
node_rows(node_t *n, unsigned count)
{
    for ( /* void */ ; count; count--) {
        node_add(n, 2 + number % 1000);
        steps(n, 100);
    }

    /* a beat reports the last one as confirmed */

    steps(n, 2 * US_APPENDER_BEAT);
}


/* the base up to an LSN is in force, and the rows before it are gone */

static void
rebase(node_t *n, uint64_t lsn)
{
    assert_int_equal(node_make(n, lsn), 0);
    assert_int_equal(us_rebase_force(&n->rebase), 0);
    assert_int_equal(us_rebase_trim(&n->rebase), 0);
}


static void
same_as_primary(const node_t *n)
{
    assert_int_equal(n->published, nodes[0].published);
    assert_memory_equal(n->bytes, nodes[0].bytes, n->published);
}


/* a standby that is behind loads the base, in a session of its own or not */

static void
base_behind(void **state)
{
    int  moved;

    (void) state;

    for (moved = 0; moved < 2; moved++) {
        stage();
        node_rows(&nodes[0], 5);
        rebase(&nodes[0], 5 * OP);
        assert_int_equal(fake.servers[0].rows[0].row.next, 4 * OP);
        assert_int_equal(fake.servers[0].nrows, 4);

        if (moved) {
            node_move(&nodes[1], 0);
        }

        losses = 0;
        reloads = 0;
        steps(&nodes[1], 300);
        assert_int_equal(losses, 0);
        assert_int_equal(reloads, 1);
        same_as_primary(&nodes[1]);

        /* one that has nothing, and the primary, which goes on */

        steps(&nodes[2], 200);
        same_as_primary(&nodes[2]);
        node_rows(&nodes[0], 1);
        assert_true(nodes[0].replied == nodes[0].published);
        steps(&nodes[1], 200);
        same_as_primary(&nodes[1]);
        end();
    }
}


/* nobody notices who has read up to the base, or further */

static void
base_level(void **state)
{
    int  at;

    (void) state;

    for (at = 2; at < 5; at++) {
        stage();
        node_rows(&nodes[0], at - 2);
        steps(&nodes[1], 100);
        assert_int_equal(nodes[1].published, at * OP);
        node_rows(&nodes[0], 5 - at);

        /* rows from 2 * OP on stay */

        rebase(&nodes[0], 2 * OP + OP);
        assert_null(fake_find(&fake.servers[0], OP, 0));
        assert_non_null(fake_find(&fake.servers[0], 2 * OP, 0));

        losses = 0;
        reloads = 0;
        node_move(&nodes[1], 0);
        steps(&nodes[1], 200);
        assert_int_equal(losses + reloads, 0);
        same_as_primary(&nodes[1]);
        end();
    }
}


static void
calls_rebase(void *data)
{
    (void) data;

    if (++calls == calls_until) {
        fake.meanwhile = calm;
        rebase(&nodes[0], nodes[0].published);
    }
}


/* at each call of a node that reads the base, another one takes its place */

static void
base_replaced(void **state)
{
    unsigned  i;

    (void) state;

    for (i = 1; i < 9; i++) {
        stage();
        node_rows(&nodes[0], 5);
        rebase(&nodes[0], 4 * OP);
        node_rows(&nodes[0], 2);

        calls = 0;
        calls_until = i;
        fake.meanwhile = calls_rebase;
        node_step(&nodes[2]);
        fake.meanwhile = calm;

        steps(&nodes[2], 300);
        same_as_primary(&nodes[2]);
        end();
    }
}


/* the same between two steps: REFUSED is no reason to go on as before */

static void
base_refused(void **state)
{
    us_standby_t  *sb;

    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    rebase(&nodes[0], 4 * OP);

    sb = &nodes[2].standby;
    node_step(&nodes[2]);
    node_start(&nodes[2], 2);
    nodes[2].standby.takeover = 0;
    node_move(&nodes[2], 0);

    /* part 0 was read, and was not the last one */

    sb->base = fake.servers[0].rows[0].row;
    sb->parts = 1;
    nodes[2].log.reading = fake.servers[0].base;
    rebase(&nodes[0], 5 * OP);

    assert_int_equal(us_standby_step(sb, 0), US_STANDBY_STOP);
    node_empty(&nodes[2]);
    steps(&nodes[2], 200);
    same_as_primary(&nodes[2]);
    end();
}


/* after the part, and before the look whether it is that of the log */

static void
calls_other(void *data)
{
    if (++calls == 4) {
        node_move(data, 1);
    }
}


/*
 * The base ends inside a row, and its primary is gone before it reports the row
 * as confirmed: another node reads the row, and becomes the primary.
 */

static void
base_inside(void **state)
{
    unsigned      i;
    fake_part_t  *p;

    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    rebase(&nodes[0], 5 * OP);

    for (i = 0; i < 2; i++) {
        p = &fake.servers[i].parts[0];
        us_part_seal(p->p, p->len, &(us_part_t) { .last = 1, .base = 1,
                     .lsn = 5 * OP, .until = 6 * OP + 1 });
    }

    node_rows(&nodes[0], 1);
    nodes[0].until = UINT64_MAX;

    for (i = 0; i < 2; i++) {
        fake.servers[i].acked = 6 * OP;
        fake.servers[i].rows[fake.servers[i].nrows - 1].acked = 6 * OP;
    }

    steps(&nodes[2], 2 * LEASE);
    promote(&nodes[2]);
    steps(&nodes[2], 4 * LEASE);
    assert_true(nodes[2].primary);
    assert_memory_equal(nodes[2].bytes, nodes[0].bytes, 8 * OP);
    end();
}


/* parts of one server and the first row of another one, which is the same */

static void
base_elsewhere(void **state)
{
    fake_part_t  *p;

    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    rebase(&nodes[0], 5 * OP);

    fake.linked = 0;
    fake.servers[1].primary = 1;
    p = &fake.servers[1].parts[0];
    us_part_seal(p->p, p->len, &(us_part_t) { .last = 1, .base = 7,
                 .lsn = 5 * OP, .until = 5 * OP });

    reloads = 0;
    calls = 0;
    node_move(&nodes[2], 0);
    fake.meanwhile = calls_other;
    node_step(&nodes[2]);
    assert_int_equal(reloads, 0);
    node_step(&nodes[2]);
    fake.meanwhile = calm;
    assert_int_equal(reloads, 1);

    node_move(&nodes[2], 1);
    steps(&nodes[2], 200);
    same_as_primary(&nodes[2]);
    end();
}


/*
 * Rows up to `until` of a base were confirmed before it was.  On a server that
 * was replaced before that, other rows may be at these LSNs.
 */

static void
base_unconfirmed(void **state)
{
    (void) state;

    stage();
    node_rows(&nodes[0], 3);
    steps(&nodes[1], 100);
    row_alone();
    split();
    assert_true(fake_last(&fake.servers[0])->row.next == 6 * OP);

    node_move(&nodes[1], 1);
    promote(&nodes[1]);
    steps(&nodes[1], 3 * LEASE);
    assert_true(nodes[1].primary);
    node_rows(&nodes[1], 3);

    nodes[1].rebase_log.server = 1;
    assert_int_equal(node_make(&nodes[1], 3 * OP), 0);
    nodes[1].rebase.keep = OP;
    assert_int_equal(us_rebase_force(&nodes[1].rebase), 0);
    assert_int_equal(fake.servers[1].rows[0].row.next, OP);

    losses = 0;
    node_move(&nodes[2], 1);
    applied_moves = 1;
    node_step(&nodes[2]);
    assert_int_equal(nodes[2].standby.part.until, nodes[1].published);
    assert_int_equal(nodes[2].standby.at.next, 4 * OP);

    steps(&nodes[2], 200);
    assert_int_equal(nodes[2].published, 5 * OP);

    node_move(&nodes[2], 1);
    steps(&nodes[2], 200);
    assert_int_equal(losses, 0);
    assert_int_equal(nodes[2].published, nodes[1].published);
    assert_memory_equal(nodes[2].bytes, nodes[1].bytes, nodes[1].published);
    end();
}


/* the look, and then the claim, which goes to server 1 */

static void
calls_claim(void *data)
{
    if (++calls == 2) {
        node_move(data, 1);
    }
}


/* a claim in another session than the look: its beat is not the one seen */

static void
claim_elsewhere(void **state)
{
    (void) state;

    stage();

    fake.linked = 0;
    clock_ms += US_APPENDER_BEAT;
    node_step(&nodes[0]);
    split();
    node_move(&nodes[1], 0);
    steps(&nodes[1], 100);

    /* its lease lasts just until it goes on elsewhere */

    while (us_replog_lease(&nodes[0].place, clock_ms + 50)) {
        clock_ms += 50;
    }

    node_move(&nodes[0], 1);
    node_step(&nodes[0]);
    assert_int_equal(fake.servers[0].beat, fake.servers[1].beat);
    clock_ms += LEASE / 2;

calls = 0;
    fake.meanwhile = calls_claim;
    promote(&nodes[1]);
    fake.meanwhile = calm;
    assert_int_equal(nodes[1].standby.state, US_STANDBY_WAITING);

    for ( /* void */ ; leased(&nodes[0]); clock_ms += 50) {
        node_step(&nodes[1]);
        assert_false(nodes[1].primary);
    }

    end();
}


/*
 * The log was LOST, and has gone on otherwise: a base does not change that,
 * whether a node has looked at the log while it was shorter or not.
 */

static void
base_lost(void **state)
{
    int  seen;

    (void) state;

    for (seen = 0; seen < 2; seen++) {
        stage();
        node_rows(&nodes[0], 2);
        steps(&nodes[1], 100);
        fake_lose(&fake, 3 * OP);

        losses = 0;
        reloads = 0;
        depositions = 0;

        if (seen) {
            steps(&nodes[1], 100);
            assert_true(losses > 0);
        }

        steps(&nodes[2], 100);
        promote(&nodes[2]);
        steps(&nodes[2], 2 * LEASE);
        assert_true(nodes[2].primary);
        node_rows(&nodes[2], 5);
        rebase(&nodes[2], nodes[2].published);

        losses = 0;
        node_move(&nodes[1], 0);
        steps(&nodes[1], 500);
        assert_true(losses > 5);
        assert_int_equal(reloads, 0);
        assert_int_equal(nodes[1].published, 4 * OP);

        losses = 0;
        steps(&nodes[0], 500);
        assert_true(losses > 5);
        assert_int_equal(depositions, 0);
        end();
    }
}


/* a primary that was away finds its last row removed by a base: deposed */

static void
base_deposed(void **state)
{
    (void) state;

    for (without_terms = 0; without_terms < 2; without_terms++) {
        stage();
        node_rows(&nodes[0], 2);
        steps(&nodes[1], 100);
        promote(&nodes[1]);
        steps(&nodes[1], 2 * LEASE);
        assert_true(nodes[1].primary);
        node_rows(&nodes[1], 5);
        rebase(&nodes[1], nodes[1].published);

        losses = 0;
        depositions = 0;
        steps(&nodes[0], 200);
        assert_int_equal(losses, 0);
        assert_int_equal(depositions, 1);
        steps(&nodes[0], 500);
        assert_int_equal(nodes[0].at.next, nodes[1].published);
        end();
    }

    without_terms = 0;
}


/* a base of a term before, or of another store, is none that has it all */

static void
base_other(void **state)
{
    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    rebase(&nodes[0], 5 * OP);

    fake.servers[0].rows[0].row.term = 0;
    losses = 0;
    reloads = 0;
    node_move(&nodes[1], 0);
    steps(&nodes[1], 200);
    assert_true(losses && reloads == 0);

    fake.servers[0].rows[0].row.term = 1;
    node_process(&nodes[1]);
    nodes[1].standby.uuid[0] = 1;
    losses = 0;
    steps(&nodes[1], 200);
    assert_true(losses && reloads == 0);
    assert_non_null(strstr(nodes[1].standby.error, "of another store"));
    end();
}


/* a part with other bytes, another part in its place, one that is missing */

static void
base_damaged(void **state)
{
    int           kind;
    fake_part_t  *p, was;

    (void) state;

    for (kind = 0; kind < 4; kind++) {
        stage();
        node_rows(&nodes[0], 5);
        rebase(&nodes[0], 5 * OP);

        p = &fake.servers[0].parts[0];
        was = *p;
        assert_int_equal(p->base, fake.servers[0].base);

        switch (kind) {

        case 0:
            p->p[US_PART_HEAD + 3] ^= 1;
            break;

        case 1:
            p->len = US_PART_HEAD - 1;
            break;

        case 2:
            us_part_seal(p->p, p->len, &(us_part_t) { .number = 1, .last = 1 });
            break;

        default:
            p->part = 7;
        }

        losses = 0;
        steps(&nodes[2], 200);
        assert_true(losses);
        assert_int_equal(nodes[2].published, 0);
        assert_int_equal(nodes[2].begun, 0);
        assert_non_null(strstr(nodes[2].standby.error, "part 0 of the base"));

        if (kind == 0) {
            p->p[US_PART_HEAD + 3] ^= 1;
            steps(&nodes[2], 200);
            same_as_primary(&nodes[2]);
        }

        p->len = was.len;
        p->part = was.part;
        end();
    }
}


/* the middle of a row; and a base that is newer than what is acked */

static void
base_within(void **state)
{
    (void) state;

    stage();

    node_add(&nodes[0], 10);
    node_add(&nodes[0], 11);
    node_add(&nodes[0], 12);

    steps(&nodes[0], 1000);
    assert_int_equal(fake_last(&fake.servers[0])->row.lsn, 2 * OP);
    rebase(&nodes[0], 3 * OP);
    assert_int_equal(fake.servers[0].rows[0].row.next, 2 * OP);

    /* the row is applied, as far as the base does not have it */

    fake.servers[0].acked = 0;
    fake_last(&fake.servers[0])->acked = 0;
    node_move(&nodes[2], 0);
    node_step(&nodes[2]);
    assert_int_equal(nodes[2].published, 5 * OP);
    same_as_primary(&nodes[2]);
    end();
}


/* rows before the base that are kept: standbys that need them have them */

static void
base_keeps(void **state)
{
    (void) state;

    stage();
    node_rows(&nodes[0], 8);
    assert_int_equal(node_make(&nodes[0], 10 * OP), 0);
    nodes[0].rebase.keep = 7 * OP;
    assert_int_equal(us_rebase_force(&nodes[0].rebase), 0);
    assert_int_equal(us_rebase_trim(&nodes[0].rebase), 0);
    assert_int_equal(fake.servers[0].rows[0].row.next, 2 * OP);

    losses = 0;
    reloads = 0;
    node_move(&nodes[1], 0);
    steps(&nodes[1], 200);
    assert_int_equal(losses + reloads, 0);
    same_as_primary(&nodes[1]);

    /* one that has nothing applies none of them twice */

    steps(&nodes[2], 200);
    same_as_primary(&nodes[2]);
    end();
}


/* parts without the last step are nothing, and go with the next base */

static void
base_given_up(void **state)
{
    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    assert_int_equal(node_make(&nodes[0], 5 * OP), 0);
    assert_int_equal(fake.servers[0].nparts, 1);

    steps(&nodes[2], 200);
    same_as_primary(&nodes[2]);

    rebase(&nodes[0], 5 * OP);
    assert_int_equal(fake.servers[0].nparts, 1);
    assert_int_equal(fake.servers[0].parts[0].base, fake.servers[0].base);

    /* a primary of an older term makes no base */

    node_move(&nodes[1], 0);
    steps(&nodes[1], 200);
    promote(&nodes[1]);
    assert_int_equal(node_make(&nodes[0], 5 * OP), -1);
    assert_non_null(strstr(nodes[0].rebase.error, "not the primary"));
    end();
}


static void
calls_cut(void *data)
{
    fake_log_t *l = &((node_t *) data)->rebase_log;

    /* the answer to rebase() is lost: it is done, and refused the next time */

    if (++calls == calls_until) {
        fake.linked = 0;
        l->server = 0;
    }
}


/* rebase() hangs, and is there when the servers are connected again */

static int
pause_link(void *data, unsigned ms)
{
    (void) data;

    if (ms) {
        fake_link(&fake);
    }

    clock_ms += ms;

    return 0;
}


static void
base_unknown(void **state)
{
    (void) state;

    stage();
    node_rows(&nodes[0], 5);
    assert_int_equal(node_make(&nodes[0], 5 * OP), 0);

    nodes[0].rebase.pause = pause_link;
    calls = 0;
    calls_until = 1;
    fake.meanwhile = calls_cut;
    assert_int_equal(us_rebase_force(&nodes[0].rebase), 0);
    fake.meanwhile = calm;
    assert_true(calls > 2);
    assert_int_equal(fake.servers[0].base, fake.servers[0].tries);

    node_move(&nodes[0], 0);
    node_rows(&nodes[0], 1);
    steps(&nodes[2], 200);
    same_as_primary(&nodes[2]);
    end();
}


/* whether a log, by where its terms began, has a row */

static void
test_follows(void **state)
{
    us_replog_row_t  row;

    (void) state;

    row = (us_replog_row_t) { .lsn = 80, .next = 90, .term = 3 };

    assert_int_equal(us_standby_follows("3@70,2@10", &row), 1);
    assert_int_equal(us_standby_follows("4@90,3@70", &row), 1);
    assert_int_equal(us_standby_follows("4@89,3@70", &row), 0);
    assert_int_equal(us_standby_follows("5@95,4@89", &row), 0);
    assert_int_equal(us_standby_follows("5@95,4@90", &row), -1);
    assert_int_equal(us_standby_follows("", &row), -1);

    /* it ends with a term before the row's */

    assert_int_equal(us_standby_follows("2@10,1@0", &row), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_follows),
        cmocka_unit_test(beat_seen_twice),
        cmocka_unit_test(row_seen_twice),
        cmocka_unit_test(term_missed),
        cmocka_unit_test(term_waits),
        cmocka_unit_test(wait_elsewhere),
        cmocka_unit_test(read_elsewhere),
        cmocka_unit_test(claimed_before),
        cmocka_unit_test(not_applied),
        cmocka_unit_test(row_gone),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(slow_answer),
        cmocka_unit_test(claim_alone),
        cmocka_unit_test(beat_unseen),
        cmocka_unit_test(damaged),
        cmocka_unit_test(other_bytes),
        cmocka_unit_test(overtaken),
        cmocka_unit_test(overtaken_long),
        cmocka_unit_test(restored),
        cmocka_unit_test(long_operation),
        cmocka_unit_test(lease_edges),
        cmocka_unit_test(lease_others),
        cmocka_unit_test(base_behind),
        cmocka_unit_test(base_level),
        cmocka_unit_test(base_replaced),
        cmocka_unit_test(base_refused),
        cmocka_unit_test(claim_elsewhere),
        cmocka_unit_test(base_inside),
        cmocka_unit_test(base_elsewhere),
        cmocka_unit_test(base_unconfirmed),
        cmocka_unit_test(base_lost),
        cmocka_unit_test(base_deposed),
        cmocka_unit_test(base_other),
        cmocka_unit_test(base_damaged),
        cmocka_unit_test(base_within),
        cmocka_unit_test(base_keeps),
        cmocka_unit_test(base_given_up),
        cmocka_unit_test(base_unknown),
        cmocka_unit_test(simulation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
