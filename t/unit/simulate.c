
/*
 * Nodes of a replicated store, as they are (us_life.h, us_replicate.c, the
 * store), in one process, over a log of two servers (replog_fake.h).  A
 * scheduler with a seed decides what happens next:
 *
 *     requests    admitted, and executed at any later step, by a worker that
 *                 goes on where it was, also after its node was deposed
 *     stops       of a worker, at any call, for up to an hour
 *     cuts        of a node from the log, while others go on and make a base
 *     kills       of a worker in a call, of a node
 *     a loss      the server in charge is replaced by one that had less
 *     settings    leases differ between nodes
 *
 * A URL that was answered as new has that id, is never denied, and no other URL
 * gets the id; but what a loss has taken is given up by command.
 *
 *     make simulate-faults SEEDS=2000 FIRST=1     make simulate-faults SEED=7
 *
 * A history is a function of its seed.  One that fails is run once more, alone,
 * and prints what happens; SEED does the same.  What a campaign is for has to
 * happen in it: marks[] below are counted.
 */


#define FAKE_SETTINGS  2048

#include "life/us_follow.h"
#include "life/us_replicate.h"
#include "life/us_replicate_base.h"
#include "store/us_keys.h"
#include "us_atomic.h"
#include "us_process.h"
#include "replog_fake.h"
#include "lsan.h"
#include "marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>


#define NODES     3
#define WORKERS   2                   /* of a node */
#define REQUESTS  6                   /* of a worker */
#define KEYS      400
#define IDS       8192
#define RING      (64 * 1024)
#define HOUR      3600000
#define CALM      20000               /* ms after a loss */
#define JOBS      64                  /* processes, at most */
#define PATIENCE  600                 /* s, for one history */


/*
 * What has to happen in a campaign of so many seeds and more, or it proves
 * nothing.
 */

typedef enum {
    M_ADDED = 0,
    M_DENIED,
    M_DEPOSED,
    M_LATE,
    M_REFUSED,
    M_HOUR,
    M_REBASED,
    M_LOST,
    M_GAVE_UP,
    M_KEYS,
    M_KILLED,
    M_RESTARTED,
    MARKS
} mark_t;


static const struct {
    const char  *what;
    unsigned     seeds;
} marks[MARKS] = {
    { "ids answered", 6 },
    { "denials", 6 },
    { "depositions", 6 },
    { "requests went on late", 6 },
    { "of these refused", 6 },
    { "stops of an hour", 6 },
    { "new bases", 6 },
    { "losses", 6 },
    { "of these given up", 6 },
    { "keys looked at", 6 },
    { "workers killed in a call", 6 },
    { "nodes restarted", 100 }
};


/* of all processes that run histories */

typedef struct {
    uint64_t  next;                   /* seed */
    uint64_t  last;
    uint64_t  done;
    uint64_t  stop;                   /* one has failed */
    uint64_t  running[JOBS];          /* seed; 0: none */
    uint64_t  marks[MARKS];
} campaign_t;


typedef enum {
    FREE = 0,
    ADMITTED,
    PARKED                            /* until what it saw is confirmed */
} stage_t;


typedef enum {
    ADD = 0,
    DELETE,
    MARK,
    CLAIM,
    LOOK,
    CHANGES = LOOK
} kind_t;


typedef struct {
    stage_t            stage;
    kind_t             kind;
    int                asks;          /* whether the store was replaced, as the
                                         module does; else the store is relied
                                         upon alone */
    int                known;         /* acknowledged before it looked */
    int                gone;          /* the delete of it was */
    int                primary;
    uint32_t           key;
    us_life_view_t     view;
    us_store_status_t  status;
    uint64_t           id;
    uint64_t           lsn;
    uint64_t           epoch;
    uint64_t           at;            /* of a claim */
} request_t;


typedef struct node_s  node_t;

typedef struct {
    us_life_t            l;
    node_t              *node;
    us_process_t         serial;
    uint64_t             until;       /* it is stopped (SIGSTOP) */
    int                  busy;
    int                  working;     /* in its event loop */
    us_replicate_wish_t  wish;
    request_t            requests[REQUESTS];
    jmp_buf              kill;
} worker_t;


struct node_s {
    char                 name[8];
    void                *mem;
    us_share_t           sh;
    us_replicate_conf_t  conf;
    uint64_t             cut_from;    /* the log is not reached, */
    uint64_t             cut;         /* until then */
    int                  reads;       /* its clients only look */
    worker_t             workers[WORKERS];
};


typedef struct {
    uint64_t             id;          /* US_STORE_NO_ID: none was answered */
    int                  marked;
    uint64_t             claimed;
} url_t;


typedef struct {
    uint32_t             key;         /* + 1; 0: not answered */
    uint64_t             lsn;         /* of its add, or of a later change */
    int                  gone;        /* its delete was acknowledged */
} given_t;


static const us_store_conf_t  store = {
    .norm = { 4, (const uint8_t *) "test" },
    .marks = { { 7, (const uint8_t *) "visited" } },
    .nmarks = 1,
    .revisit = 60,
    .keys = 1 << 20,
    .epoch = 1,
    .ring = RING,
    .fenced = 1
};

static fake_t        fake;
static node_t        nodes[NODES];
static url_t         urls[KEYS];
static given_t         ids[IDS];
static uint64_t      clock_ms, epoch, lost, gave_lost, calm, serials, bytes;
static us_process_t  self;
static unsigned      depth, faults;
static int           quiet;
static size_t        zone_size;
static campaign_t   *campaign;
static int           says;            /* prints what happens */


static void world(worker_t *w);
static void worker_step(worker_t *w);


/* the machine: clock, random bytes, processes */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    if (id != CLOCK_BOOTTIME) {
        return (int) syscall(SYS_clock_gettime, id, ts);
    }

    ts->tv_sec = (time_t) (clock_ms / 1000);
    ts->tv_nsec = (long) (clock_ms % 1000) * 1000000;

    return 0;
}


ssize_t
getrandom(void *buf, size_t len, unsigned flags)
{
    size_t    i;
    uint64_t  z;

    (void) flags;

    for (i = 0; i < len; i++) {
        z = bytes += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        ((uint8_t *) buf)[i] = (uint8_t) (z >> 40);
    }

    return (ssize_t) len;
}


us_process_t
us_process_self(void)
{
    return self;
}


int
us_process_alive(us_process_t process)
{
    unsigned  i;

    for (i = 0; i < NODES * WORKERS; i++) {
        if (nodes[i / WORKERS].workers[i % WORKERS].serial == process) {
            return 1;
        }
    }

    return 0;
}


uint64_t
us_process_memory(const char *root)
{
    (void) root;

    return (uint64_t) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}


/* half of the time would go into it, and nothing here looks at what it does */

void  __wrap_us_wipe_thread(void);

void
__wrap_us_wipe_thread(void)
{
}


static void
mark(mark_t m)
{
    (void) __atomic_fetch_add(&campaign->marks[m], 1, __ATOMIC_RELAXED);
}


static void
say(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

static void
say(const char *fmt, ...)
{
    va_list  args;

    if (!says) {
        return;
    }

    printf("%10llu  ", (unsigned long long) clock_ms);
    va_start(args, fmt);
    (void) vprintf(fmt, args);
    va_end(args);
    putchar('\n');

    /* it may be the last one */
    (void) fflush(stdout);
}


static unsigned
chance(unsigned of_1000)
{
    return fake_chance(&fake, of_1000);
}


static unsigned
any(unsigned n)
{
    return (unsigned) (fake_random(&fake) % n);
}


/* of all nodes, s since 1970 */

static uint64_t
now_s(void)
{
    return 1000000000 + clock_ms / 1000;
}


static int
is_cut(const node_t *n)
{
    return n->cut_from <= clock_ms && clock_ms < n->cut;
}


/* the log of a worker */

static int
reaches(void *data)
{
    worker_t *w = data;

    return !is_cut(w->node);
}


static us_replog_t *
log_open(const char *conninfo, uint32_t shard, int single,
    const us_replog_env_t *env)
{
    fake_log_t  *log;

    (void) conninfo;
    (void) shard;
    (void) single;

    log = calloc(1, sizeof(fake_log_t));

    if (log == NULL) {
        abort();
    }

    log->log.ops = ((us_life_t *) env->data)->conf.replicate->ops;
    log->fake = &fake;
    log->node = env->data;
    log->server = -1;

    return &log->log;
}


static void
log_close(us_replog_t *log)
{
    free(log);
}


static us_replog_ops_t  log_ops;


/* whether a node is cut off */

static int
away(void)
{
    unsigned  i;

    for (i = 0; i < NODES && !is_cut(&nodes[i]); i++) { /* void */ }

    return i < NODES;
}


/* us_life_env_t */

static uint64_t
env_now(void *data)
{
    (void) data;

    return clock_ms;
}


static int
env_start(void *data, us_job_t *job)
{
    (void) data;

    us_job_run(job);
    us_job_done(job);

    return 0;
}


static void
env_pause(void *data, unsigned ms)
{
    worker_t *w = data;

    clock_ms += ms;
    world(w);
    (void) us_life_refresh(&w->l);
    (void) us_life_tick(&w->l);
}


static int
env_no(void *data)
{
    (void) data;

    return 0;
}


static int
env_yes(void *data)
{
    (void) data;

    return 1;
}


static void
env_moved(void *data)
{
    (void) data;
}


static void
env_say(void *data, us_say_t level, const char *text)
{
    worker_t *w = data;

    say("%s.%d logs %s", w->node->name, (int) (w - w->node->workers), text);

    if (strstr(text, "deposed: ")) {
        mark(M_DEPOSED);
    }

    if (strstr(text, "a new base of the log: ")) {
        mark(M_REBASED);
    }

    /* nothing is wrong with a store, and a loss is only seen where one was */

    assert_null(strstr(text, " ids and the log "));
    assert_null(strstr(text, "is damaged"));

    if (lost == 0) {
        assert_null(strstr(text, "has lost what was confirmed"));
    }
}


/* what was answered */

static const char  *kind_words[] = { "add", "delete", "mark", "claim",
                                     "look-up" };

static const char  *status_words[] = {
    "new", "seen", "unseen", "full", "busy", "deleted", "unknown", "ok",
    "damaged", "due", "moved", "fenced", "gone", "erased"
};


static void
text_of(uint32_t key, char url[64])
{
    (void) snprintf(url, 64, "http://site%u.test/a/long/path/%u", key % 7, key);
}


/* one that clients delete, so that it may have several ids */

static int
deletable(uint32_t key)
{
    return key % 8 == 0;
}


static us_store_item_t
item_of(uint32_t key, char url[64])
{
    us_store_item_t  item;

    text_of(key, url);
    memset(&item, 0, sizeof(item));
    item.url = us_str_of(url);

    return item;
}


static uint64_t
epoch_of(const us_store_t *s)
{
    us_store_conf_t  conf;

    us_store_conf(s, &conf);

    return conf.epoch;
}


static void
answered(const request_t *r, uint64_t id)
{
    url_t  *u;

    assert_true(id < IDS);
    u = &urls[r->key];

    /* one id, one URL */

    if (ids[id].key) {
        assert_int_equal(ids[id].key, r->key + 1);

    } else {
        ids[id].key = r->key + 1;
        ids[id].lsn = r->lsn;
        mark(M_ADDED);
    }

    if (u->id == id) {
        return;
    }

    /* one URL, one id; a standby may not know of a delete yet */

    assert_true(u->id == US_STORE_NO_ID || deletable(r->key));

    u->id = id;
    u->marked = 0;
    u->claimed = 0;
}


/* its reply is sent */

static void
reply(request_t *r)
{
    url_t  *u;

    r->stage = FREE;
    u = &urls[r->key];

    say("is answered, %s of url %u: %s id %lld, lsn %llu, epoch %llu",
        kind_words[r->kind], r->key, status_words[r->status],
        (long long) r->id, (unsigned long long) r->lsn,
        (unsigned long long) r->epoch);

    if (r->epoch != epoch) {
        return;
    }

    switch (r->status) {

    case US_NEW:
        assert_true(r->kind == ADD);

        /* fall through */

    case US_SEEN:
        answered(r, r->id);
        assert_false(r->gone);
        return;

    case US_UNSEEN:
        assert_false(r->known);
        mark(M_DENIED);
        return;

    default:
        break;
    }

    if (u->id != r->id) {
        return;
    }

    if (ids[r->id].lsn < r->lsn) {
        ids[r->id].lsn = r->lsn;
    }

    switch (r->kind) {

    case DELETE:
        ids[r->id].gone = 1;
        break;

    case MARK:
        u->marked = 1;
        break;

    case CLAIM:
        u->claimed = r->at > u->claimed ? r->at : u->claimed;
        break;

    default:
        break;
    }
}


/* the reply waits, or is refused */

static void
park(worker_t *w, request_t *r)
{
    int         denies;
    us_life_t  *l;

    l = &w->l;
    denies = r->status == US_UNSEEN;

    if (r->stage == PARKED
        && (us_life_state(l) != US_LIFE_READY
            || us_life_overtaken(l, &r->view, denies)))
    {
        r->stage = FREE;
        return;
    }

    if (us_life_overtaken(l, &r->view, denies)) {
        r->stage = FREE;
        return;
    }

    r->primary = us_life_state(l) == US_LIFE_READY;

    if (us_life_promised(l, r->lsn, US_STORE_NO_ID, denies)) {
        reply(r);
        return;
    }

    r->stage = r->primary ? PARKED : FREE;
}


/* others go on, and this worker stands still for up to an hour */

static void
stop(worker_t *w)
{
    unsigned   i;
    worker_t  *other;

    depth++;

    for (i = 40 + any(200); i; i--) {
        clock_ms += any(100);
        other = &nodes[any(NODES)].workers[any(WORKERS)];

        if (!other->busy && other != w) {
            worker_step(other);
        }
    }

    if (chance(500)) {
        clock_ms += HOUR;
        mark(M_HOUR);
    }

    depth--;
}


/* it has come so far that the store is changed, or looked into */

static void
request_run(worker_t *w, request_t *r)
{
    int               was;
    char              url[64];
    url_t            *u;
    us_life_t        *l;
    us_store_key_t    name;
    us_store_item_t   item;
    us_store_claim_t  claim;

    l = &w->l;
    u = &urls[r->key];

    if (r->asks && us_life_overtaken(l, &r->view, 0)) {
        mark(M_REFUSED);
        r->stage = FREE;
        return;
    }

    if (!quiet && calm == 0 && depth < 2 && chance(2)) {
        stop(w);
    }

    if (!r->asks) {
        us_life_view(l, &r->view);
    }

    r->epoch = epoch_of(l->store);
    r->known = u->id != US_STORE_NO_ID && !deletable(r->key);

    item = item_of(r->key, url);
    us_store_time(l->store, now_s());

    if (r->kind == ADD) {
        name.name = r->key + 1;
        name.until = UINT32_MAX;
        r->lsn = us_store_add_key(l->store, &item, 1, 0,
                                  r->key % 2 ? &name : NULL);
        r->status = item.again ? US_SEEN : item.status;
        r->id = item.id;
        item.status = r->status;

    } else {
        us_store_seen(l->store, &item, 1);
        r->lsn = us_store_published(l->store);
        r->status = item.status;
        r->id = item.id;
    }

    r->gone = item.status == US_SEEN && item.id < IDS && ids[item.id].gone
              && us_life_whole(l);

    if (r->kind != ADD && r->kind != LOOK && item.status == US_SEEN) {
        r->status = US_OK;

        switch (r->kind) {

        case DELETE:
            us_life_deleting(l);
            r->lsn = 0;
            r->status = us_store_delete(l->store, r->id, &was, &r->lsn);
            us_life_deleted(l, r->lsn);
            break;

        case MARK:
            r->status = mark_put(l->store, 0, r->id, 1, &r->lsn);
            break;

        default:
            claim.id = r->id;
            r->at = now_s() - 60;
            r->lsn = us_store_claim(l->store, &claim, 1, now_s());
            r->status = claim.status;
        }
    }

    switch (r->status) {

    case US_BUSY:
        break;

    case US_FENCED:
        mark(M_REFUSED);

        /* fall through */

    case US_FULL:
    case US_UNKNOWN:
    case US_DELETED:
        r->stage = FREE;
        break;

    default:
        assert_true(r->status != US_DAMAGED);
        r->stage = ADMITTED;
        park(w, r);
    }
}


/* a client asks for the URL of an id */

static void
get(worker_t *w)
{
    char               url[64];
    size_t             len;
    uint8_t            buf[US_URL_MAX + 8];
    uint64_t           id;
    us_store_status_t  status;

    id = any(IDS / 16);

    if (!us_life_admits(&w->l, US_WANTS_BY_ID)
        || !us_life_promised(&w->l, us_store_published(w->l.store), id + 1, 0))
    {
        return;
    }

    status = us_store_get(w->l.store, id, buf, &len);
    assert_true(status != US_DAMAGED);

    if (ids[id].key == 0 || epoch_of(w->l.store) != epoch) {
        return;
    }

    if (status == US_OK) {
        text_of(ids[id].key - 1, url);
        assert_int_equal(len, strlen(url));
        assert_memory_equal(buf, url, len);

    } else if (status == US_UNKNOWN) {
        assert_false(us_life_whole(&w->l));
    }
}


/* the epoch that the log has now */

static uint64_t
log_epoch(void)
{
    unsigned          i;
    us_manifest_t     m;
    us_disk_error_t   e;
    fake_server_t    *s;

    s = &fake.servers[fake.current];

    for (i = s->nrows; i; i--) {
        if (!s->rows[i - 1].hung && s->rows[i - 1].settings[0]) {
            break;
        }
    }

    if (i == 0) {
        return epoch;
    }

    assert_int_equal(us_manifest_scan(&m, s->rows[i - 1].settings,
                                      strlen(s->rows[i - 1].settings), &e),
                     US_MANIFEST_OK);

    return m.epoch;
}


/*
 * What a loss has taken is of no account in the epoch that follows it.  That
 * may not be confirmed, and be gone again.
 */

static void
given_up(void)
{
    unsigned  i;
    uint64_t  now;

    now = lost || gave_lost ? log_epoch() : epoch;

    if (now < epoch) {
        epoch = now;
        lost = gave_lost;
    }

    if (now == epoch) {
        return;
    }

    epoch = now;
    gave_lost = lost;
    lost = 0;
    mark(M_GAVE_UP);

    for (i = 0; i < IDS; i++) {
        if (ids[i].key && ids[i].lsn > gave_lost) {
            urls[ids[i].key - 1].id = US_STORE_NO_ID;
            memset(&ids[i], 0, sizeof(given_t));
        }
    }
}


/* the event loop of a worker: its requests */

static void
requests(worker_t *w)
{
    unsigned    i, kind;
    us_life_t  *l;
    request_t  *r;

    l = &w->l;

    if (w->working || l->store == NULL) {
        return;
    }

    w->working = 1;
    given_up();
    (void) us_life_refresh(l);

    for (i = 0; i < REQUESTS; i++) {
        r = &w->requests[i];

        if (r->stage == PARKED) {
            park(w, r);

        } else if (r->stage == ADMITTED) {

            if (chance(quiet ? 1000 : 30)
                && (r->kind == LOOK || !w->node->reads))
            {
                mark(M_LATE);
                request_run(w, r);
            }

        } else if (!quiet && chance(250)) {
            kind = any(20);
            memset(r, 0, sizeof(request_t));
            r->key = any(KEYS);
            r->kind = kind < 9 ? ADD : kind < 17 ? LOOK : kind < 18 ? MARK
                      : kind < 19 ? CLAIM : DELETE;
            r->kind = w->node->reads ? LOOK : r->kind;
            r->key -= r->kind == DELETE ? r->key % 8 : 0;

            if (!us_life_admits(l, r->kind < CHANGES ? US_WANTS_CHANGE : 0)) {
                continue;
            }

            r->asks = r->kind == LOOK || chance(500);
            us_life_view(l, &r->view);
            r->stage = ADMITTED;

            if (r->kind == LOOK || chance(800)) {
                request_run(w, r);
            }
        }
    }

    get(w);
    w->working = 0;
}


/* a worker begins, or its successor */

static void
worker_start(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;
    memset(w->requests, 0, sizeof(w->requests));
    memset(&w->wish, 0, sizeof(w->wish));
    memset(l, 0, sizeof(us_life_t));

    w->until = 0;
    w->busy = 0;
    w->working = 0;
    w->serial = ++serials << US_PROCESS_PID_BITS | 1;

    l->env = (us_life_env_t) { env_now, env_start, env_pause, env_no, env_yes,
                               env_moved, env_say, w };
    l->sh = &w->node->sh;
    l->mem = w->node->mem;
    l->size = zone_size;
    l->lock = (us_store_lock_t) { env_moved, env_moved, NULL };
    l->dirfd = -1;
    l->lockfd = -1;
    l->conf.sync_name = "always";
    l->conf.sync = US_SYNC_ALWAYS;
    l->conf.replicate = &w->node->conf;
    l->conf.store = store;

    self = w->serial;
    assert_int_equal(us_life_start(l), 0);
}


/* what the kernel takes back; nothing that is shared is changed */

static void
worker_end(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;
    w->serial = 0;
    us_follow_stop(&l->follow);

    if (l->store) {
        us_store_close(l->store);
    }

    if (l->empty_mem) {
        (void) munmap(l->empty_mem, l->empty_size);
    }

    memset(l, 0, sizeof(us_life_t));
}


static void
node_end(node_t *n)
{
    unsigned  i;

    for (i = 0; i < WORKERS; i++) {
        if (n->workers[i].l.sh) {
            worker_end(&n->workers[i]);
        }
    }

    if (n->mem) {
        (void) munmap(n->mem, zone_size);
        n->mem = NULL;
    }
}


static void
node_start(node_t *n)
{
    unsigned  i, number;

    node_end(n);

    number = (unsigned) (n - nodes);
    memset(&n->sh, 0, sizeof(us_share_t));
    (void) snprintf(n->name, sizeof(n->name), "node%u", number);

    n->cut = 0;
    n->conf.ops = &log_ops;
    n->conf.conninfo = "";
    n->conf.node = n->name;
    n->conf.lease = quiet ? 2000 : 800 + any(7000);
    n->conf.takeover = 4000 + 700 * number;

    n->mem = mmap(NULL, zone_size, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n->mem, MAP_FAILED);
    assert_int_equal(us_store_format(n->mem, zone_size, &store), 0);

    for (i = 0; i < WORKERS; i++) {
        n->workers[i].node = n;
        worker_start(&n->workers[i]);
    }
}


static void
worker_step(worker_t *w)
{
    if (w->until > clock_ms || w->busy) {
        return;
    }

    w->busy = 1;
    self = w->serial;
    requests(w);

    if (!quiet && calm == 0) {

        if (!is_cut(w->node) && chance(away() ? 80 : 2)) {
            us_replicate_promote(&w->l);
        }

        if (chance(10) && w->node->cut <= clock_ms) {
            w->node->reads = 0;
        }

        if (us_share_state(w->l.sh) == US_LIFE_READY && chance(away() ? 30 : 8)
            && us_replicate_wants_base(&w->l, &w->wish) != 0)
        {
            memset(&w->wish, 0, sizeof(w->wish));
        }
    }

    if (lost && calm == 0 && us_acquire(&w->l.sh->replicate.lost)
        && chance(quiet ? 500 : 5))
    {
        (void) us_replicate_forget(&w->l);
    }

    self = w->serial;
    (void) us_life_tick(&w->l);
    w->busy = 0;
}


/* the primary, more often than another node */

static void
cut(node_t *n)
{
    unsigned  i;

    for (i = 0; i < NODES && chance(700); i++) {
        if (us_share_state(&nodes[i].sh) == US_LIFE_READY) {
            n = &nodes[i];
        }
    }

    /* half of the time nothing of it is under way then, and it may deny */

    n->cut_from = clock_ms + 200 + any(1000);
    n->cut = n->cut_from + 3000 + any(40000);
    n->reads = any(2);
    say("%s is cut off until %llu", n->name, (unsigned long long) n->cut);
}


/* what happens to the servers of the log */

static void
servers(void)
{
    int  current, linked, third;

    current = fake.current;
    linked = fake.linked;
    third = fake.third;

    fake_events(&fake);

    if (current != fake.current || linked != fake.linked
        || third != fake.third)
    {
        say("server %d is in charge of the log, its standby is %s",
            fake.current, fake.linked ? "the other one"
                          : fake.third ? "a third one" : "away");
    }
}


/* what happens while a call is under way, or between two of them */

static void
world(worker_t *w)
{
    worker_t  *other;

    clock_ms += any(away() ? 24 : 12);

    if (quiet) {
        return;
    }

    other = &nodes[any(NODES)].workers[any(WORKERS)];

    if (calm == 0) {
        servers();

        if (chance(1)) {
            cut(other->node);
        }

        if (!other->busy && other->until <= clock_ms && chance(2)) {
            other->until = clock_ms + (chance(200) ? HOUR : any(5000));
            say("%s.%d stops until %llu", other->node->name,
                (int) (other - other->node->workers),
                (unsigned long long) other->until);
        }
    }

    if (w == NULL) {
        return;
    }

    if (depth < 3 && chance(300) && !other->busy) {
        depth++;
        worker_step(other);
        depth--;
    }

    if (calm) {
        return;
    }

    if (chance(4)) {
        clock_ms += any(1500);
    }

    if (depth < 2 && chance(1)) {
        stop(w);
    }
}


static void
meanwhile(void *data)
{
    worker_t *w = data;

    us_process_t  was;

    was = self;
    world(w);
    self = w->serial;
    requests(w);
    self = was;

    /* the innermost one can be killed */

    if (!quiet && calm == 0 && depth == 0 && chance(3)) {
        longjmp(w->kill, 1);
    }
}


static uint64_t
node_has(const node_t *n)
{
    us_replog_ends_t  ends;
    us_replog_row_t   row;

    switch (us_share_state(&n->sh)) {

    case US_LIFE_READY:
        us_replog_ends(&n->sh.replicate.place, &ends);
        return ends.sure.next;

    case US_LIFE_STANDBY:
        us_share_row(&n->sh.replicate.at, &row);
        return row.next;

    default:
        return UINT64_MAX;
    }
}


/*
 * The server in charge had less.  All nodes run, and find it: one that had what
 * is lost says so, before another gives the ids again.
 */

static void
lose(void)
{
    unsigned        i, j;
    uint64_t        most, has;
    fake_server_t  *s;

    most = 0;

    for (i = 0; i < NODES; i++) {
        has = node_has(&nodes[i]);

        if (has == UINT64_MAX
            || us_acquire(&nodes[i].sh.replicate.promote) > clock_ms
            || us_acquire(&nodes[i].sh.replicate.forget) > clock_ms)
        {
            return;
        }

        most = has > most ? has : most;
    }

    s = &fake.servers[fake.current];
    i = s->nrows - 1 - any(4);

    if (s->nrows < 8 || s->rows[i].row.lsn < s->based
        || s->rows[i].row.next > most)
    {
        return;
    }

    lost = s->rows[i].row.lsn;
    mark(M_LOST);
    fake_lose(&fake, lost);
    say("the log has lost what follows %llu", (unsigned long long) lost);

    calm = clock_ms + CALM;
    faults = fake.faults;
    fake.faults = 0;

    for (i = 0; i < NODES; i++) {
        nodes[i].cut = 0;

        for (j = 0; j < WORKERS; j++) {
            nodes[i].workers[j].until = 0;
        }
    }
}


static void
found(void)
{
    unsigned        i, j;
    fake_server_t  *s;

    calm = 0;
    fake.faults = faults;
    s = &fake.servers[fake.current];

    for (i = s->nrows; i && s->rows[i - 1].settings[0] == '\0'; i--);

    assert_true(i && strstr(s->rows[i - 1].settings, "store lost "));
    assert_int_equal(i, s->nrows);

    for (j = 0; j < NODES; j++) {
        for (i = 0; i < WORKERS; i++) {
            assert_false(us_life_whole(&nodes[j].workers[i].l));
        }
    }
}


static void
begin(uint64_t seed)
{
    char             *text;
    size_t            len;
    unsigned          i;
    us_manifest_t     m;
    us_disk_error_t   e;

    memset(ids, 0, sizeof(ids));
    memset(urls, 0, sizeof(urls));

    for (i = 0; i < KEYS; i++) {
        urls[i].id = US_STORE_NO_ID;
    }

    log_ops = fake_ops;
    log_ops.open = log_open;
    log_ops.close = log_close;
    clock_ms = 1000000;
    bytes = seed;
    serials = 0;
    epoch = 1;
    lost = 0;
    gave_lost = 0;
    calm = 0;
    quiet = 0;
    depth = 0;

    fake_init(&fake, seed, meanwhile);
    fake.reaches = reaches;

    zone_size = us_store_min_size(&store) + 256 * 1024;

    for (i = 0; i < NODES; i++) {
        node_start(&nodes[i]);
    }

    memset(&m, 0, sizeof(m));
    assert_int_equal(us_data_describe(&m, &store), 0);
    assert_int_equal(us_manifest_print(&m, &text, &len, &e), 0);
    assert_true(len < FAKE_SETTINGS);

    for (i = 0; i < 2; i++) {
        (void) snprintf(fake.servers[i].settings, FAKE_SETTINGS, "%s", text);
    }

    free(text);
    fake.faults = 3 + seed % 40;
}


static void
run(uint64_t seed, unsigned steps)
{
    unsigned            i, step;
    worker_t *volatile  w;

    begin(seed);

    for (step = 0; step < steps; step++) {
        w = &nodes[any(NODES)].workers[any(WORKERS)];

        world(NULL);

        if (calm && calm <= clock_ms) {
            found();
        }

        if (calm == 0 && lost == 0 && step > 200 && seed % 2 && chance(5)) {
            lose();
        }

        if (calm == 0 && chance(1) && chance(500)) {
            say("%s restarts", w->node->name);
            mark(M_RESTARTED);
            node_start(w->node);
            continue;
        }

        if (setjmp(w->kill)) {
            say("%s.%d is killed", w->node->name,
                (int) (w - w->node->workers));
            mark(M_KILLED);
            depth = 0;
            worker_end(w);
            worker_start(w);
            continue;
        }

        worker_step(w);
    }

    /* all faults are over, and what runs comes right by itself */

    say("all faults are over");
    quiet = 1;
    calm = 0;
    fake.faults = 0;

    if (!fake.linked) {
        fake_link(&fake);
    }

    for (i = 0; i < NODES; i++) {
        nodes[i].cut = 0;
        nodes[i].reads = 0;

        for (step = 0; step < WORKERS; step++) {
            nodes[i].workers[step].until = 0;
        }

        if (seed % 3 == 0) {
            node_start(&nodes[i]);
        }
    }

    for (step = 0; step < 6000; step++) {
        clock_ms += 10;
        worker_step(&nodes[step % NODES].workers[step / NODES % WORKERS]);
    }
}


/* all nodes are well, and have what was answered */

static void
check(void)
{
    char               url[64];
    size_t             len;
    uint8_t            buf[US_URL_MAX + 8];
    unsigned           i, primaries;
    uint64_t           id;
    us_life_t         *l;
    us_arena_t         a;
    us_keys_past_t     past;
    us_store_item_t    item;
    us_store_status_t  status;

    primaries = 0;
    given_up();

    for (i = 0; i < NODES; i++) {
        l = &nodes[i].workers[0].l;
        (void) us_life_refresh(l);

        if (us_life_state(l) == US_LIFE_READY) {
            primaries++;

        } else if (us_life_state(l) != US_LIFE_STANDBY) {
            print_error("%s is %s: %s %s\n", nodes[i].name,
                        us_life_state_word(us_life_state(l)),
                        nodes[i].sh.reason, nodes[i].sh.why[US_ROLE_WRITER]);
            fail();
        }

        assert_int_equal(us_store_next_id(l->store),
                         us_store_next_id(nodes[0].workers[0].l.store));
        assert_int_equal(epoch_of(l->store), epoch);
        us_arena_open(&a, l->mem);
        memset(&past, 0, sizeof(past));

        for (id = 0; id < us_store_next_id(l->store); id++) {
            status = us_store_get(l->store, id, buf, &len);
            assert_true(status == US_OK || status == US_DELETED);

            if (status == US_OK && id < IDS && ids[id].key) {
                text_of(ids[id].key - 1, url);
                assert_int_equal(len, strlen(url));
                assert_memory_equal(buf, url, len);
            }

            /* what was new to a request with a key */

            if (id >= 64 && id < IDS && ids[id].key
                && us_keys_low(&a, &past, 0) <= id - 64)
            {
                assert_int_equal(us_keys_has(&a, ids[id].key, US_KEYS_NEW, 0,
                                             id, 0),
                                 (ids[id].key - 1) % 2);
                mark(M_KEYS);
            }
        }

        for (id = 0; id < KEYS; id++) {
            item = item_of((uint32_t) id, url);
            us_store_seen(l->store, &item, 1);

            if (urls[id].id == US_STORE_NO_ID) {
                continue;
            }

            if (!deletable(id)) {
                assert_int_equal(item.status, US_SEEN);
                assert_int_equal(item.id, urls[id].id);
                assert_true(!urls[id].marked
                            || mark_has(l->store, 0, item.id));
                assert_true(us_store_claimed(l->store, item.id)
                            >= urls[id].claimed);

            } else if (item.status == US_SEEN) {
                assert_false(ids[item.id].gone);
            }
        }
    }

    assert_int_equal(primaries, 1);
}


static void
history(uint64_t seed)
{
    unsigned  i;

    run(seed, 2500);
    check();

    for (i = 0; i < NODES; i++) {
        node_end(&nodes[i]);
    }

    fake_done(&fake);
}


/* histories of one process, whose death is a failure */

static void
job(unsigned number)
{
    uint64_t  seed;

    (void) setenv("CMOCKA_TEST_ABORT", "1", 1);
    __lsan_disable();                 /* what a killed process has */

    /* zones and models are small and short-lived here */
    (void) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);

    while (!us_acquire(&campaign->stop)) {
        seed = __atomic_fetch_add(&campaign->next, 1, __ATOMIC_RELAXED);

        if (seed > campaign->last) {
            break;
        }

        us_release(&campaign->running[number], seed);
        (void) alarm(PATIENCE);
        history(seed);
        us_release(&campaign->running[number], 0);
        (void) __atomic_fetch_add(&campaign->done, 1, __ATOMIC_RELAXED);
    }

    exit(0);
}


/* the seeds from first to last; returns the lowest that has failed, or 0 */

static uint64_t
histories(uint64_t first, uint64_t last, unsigned jobs)
{
    int       status;
    pid_t     pid;
    unsigned  i;
    uint64_t  seed, failed;

    memset(campaign, 0, sizeof(campaign_t));
    campaign->next = first;
    campaign->last = last;
    (void) fflush(stdout);

    for (i = 0; i < jobs; i++) {
        pid = fork();
        assert_int_not_equal(pid, -1);

        if (pid == 0) {
            job(i);
        }
    }

    while (wait(&status) > 0) {
        if (status) {
            us_release(&campaign->stop, 1);
        }
    }

    failed = 0;

    for (i = 0; i < jobs; i++) {
        seed = campaign->running[i];
        failed = seed && (failed == 0 || seed < failed) ? seed : failed;
    }

    assert_true(failed || campaign->done == last - first + 1);

    return failed;
}


static uint64_t
number(const char *name, uint64_t preset)
{
    char  *env;

    env = getenv(name);

    return env && *env ? strtoull(env, NULL, 10) : preset;
}


static void
simulation(void **state)
{
    unsigned  m;
    uint64_t  first, seeds, failed;

    (void) state;

    campaign = mmap(NULL, sizeof(campaign_t), PROT_READ|PROT_WRITE,
                    MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(campaign, MAP_FAILED);

    first = number("US_SEED", 0);
    says = first != 0;
    seeds = says ? 1 : number("US_SEEDS", 6);
    first = says ? first : number("US_FIRST", 1);

    failed = histories(first, first + seeds - 1,
                       (unsigned) number("US_JOBS", 1) % JOBS);

    if (failed && !says) {
        print_message("seed %llu fails; alone:\n",
                      (unsigned long long) failed);
        says = 1;

        if (histories(failed, failed, 1) == 0) {
            print_message("it does not fail alone\n");
        }
    }

    if (failed) {
        fail_msg("make simulate-faults SEED=%llu", (unsigned long long) failed);
    }

    print_message("%llu seeds from %llu on:\n", (unsigned long long) seeds,
                  (unsigned long long) first);

    for (m = 0; m < MARKS; m++) {
        print_message("%12llu %s\n", (unsigned long long) campaign->marks[m],
                      marks[m].what);
    }

    for (m = 0; m < MARKS; m++) {
        if (campaign->marks[m] == 0 && marks[m].seeds <= seeds) {
            fail_msg("none: %s", marks[m].what);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(simulation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
