
/*
 * Nodes of a replicated store, as they are (us_life.h, us_replicate.c, the
 * store), in one process, over a log of two servers (replog_fake.h).  A
 * scheduler with a seed decides what happens next:
 *
 *     requests    admitted; pieces of their bodies come at any later steps, by
 *                 a worker that goes on where it was, also after its node was
 *                 deposed
 *     routers     of a cluster of two shards, that grows (router_fake.h), in a
 *                 quarter of the seeds
 *     erasers     of URLs and sites (eraser.h), in two thirds of the seeds
 *     replicas    of a node with a directory (follow_fake.h), instead of a log,
 *                 in an eighth of them
 *     clients     have no answer, or lose it, and send it again with the same
 *                 token, to any node, while earlier tries go on
 *     stops       of a worker, at any call, for up to an hour
 *     cuts        of a node from the log, while others go on and make a base
 *     kills       of a worker in a call, of a node
 *     exits       of a worker that is told to, of all of a node
 *     directories of two nodes, in a fifth of the seeds (disk_fake.h), whose
 *                 disks fail for a while, and lie
 *     power       that a machine with such a disk loses
 *     a loss      the server in charge is replaced by one that had less
 *     settings    leases differ between nodes
 *     clocks      jump, by up to three hours
 *
 * A URL that was answered as new has that id, is never denied, and no other URL
 * gets the id.  It is new to one request, however often that is sent, and in
 * the end to one; due once in a period; and what a loss has taken is given up
 * by command.  In the end all nodes have the same operations, byte for byte.
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
#include "store/us_erase.h"
#include "cluster/us_map.h"
#include "store/us_keys.h"
#include "store/us_ring.h"
#include "store/us_shard.h"
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
#define BATCH     4                   /* URLs of a request */
#define TRIES     64
#define RECENT    8
#define OLDER     5                   /* units: a claim is too old */
#define UNIT      60                  /* s */
#define IDS       8192
#define RING      (64 * 1024)
#define HOUR      3600000
#define CALM      20000               /* ms after a loss */
#define DUMP      (1024 * 1024)       /* bytes, at most */
#define LISTED    4096                /* erased URLs, at most */
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
    M_HALF_DELETED,
    M_LEFT,
    M_CLOSED,
    M_RESTARTED,
    M_PIECES,
    M_AGAIN,
    M_NEW_AGAIN,
    M_DUE,
    M_CLOCK,
    M_ANSWERED,
    M_ALONE,
    M_GROWN,
    M_RESTORED,
    M_REMAPPED,
    M_ROUTED_NEW,
    M_ROUTED_SEEN,
    M_ROUTED_DENIED,
    M_ROUTED_ERASED,
    M_ROUTED_REFUSED,
    M_ROUTED_UNSURE,
    M_ROUTED_UNAVAILABLE,
    M_UNANSWERED,
    M_ORPHAN,
    M_ERASED,
    M_ERASED_SITE,
    M_BARRED,
    M_LIFTED,
    M_ANEW,
    M_SWEPT,
    M_HELD,
    M_WIPED,
    M_NO_TEXT,
    M_FETCHED,
    M_RESUMED,
    M_SENT,
    M_STREAM_CUT,
    M_REPLICA,
    M_SNAPSHOT,
    M_COPY,
    M_KEPT,
    M_FAILED,
    M_POWER,
    M_TORN,
    M_LIED,
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
    { "losses", 12 },
    { "of these given up", 12 },
    { "keys looked at", 6 },
    { "workers killed in a call", 6 },
    { "workers killed in a delete", 100 },
    { "workers that ended when told to", 6 },
    { "directories that were closed", 100 },
    { "nodes restarted", 100 },
    { "later pieces of bodies", 6 },
    { "requests sent again", 6 },
    { "URLs new again to their token", 6 },
    { "URLs due", 6 },
    { "clocks that jumped", 6 },
    { "URLs that a client was sent to, in the end", 6 },
    { "servers of the log that commit alone", 6 },
    { "clusters that have grown", 40 },
    { "shards that were restored", 40 },
    { "requests of a router with the next map", 40 },
    { "URLs new by a router", 40 },
    { "URLs seen by a router", 40 },
    { "URLs denied by a router", 40 },
    { "URLs erased by a router", 40 },
    { "adds of a router refused as erased", 40 },
    { "URLs that a router is not sure of", 40 },
    { "URLs that no shard answered", 40 },
    { "calls without an answer", 40 },
    { "calls done after they were given up", 40 },
    { "URLs erased", 6 },
    { "URLs erased with their site", 40 },
    { "adds refused as erased", 6 },
    { "erasures lifted", 6 },
    { "URLs new after they were erased", 6 },
    { "sweeps over records", 6 },
    { "wipes that held a job", 40 },
    { "workers that have wiped", 6 },
    { "erased records without a text, in the end", 6 },
    { "replicas that fetched all", 12 },
    { "replicas that went on", 12 },
    { "parts of the journal sent to replicas", 12 },
    { "connections of replicas that ended", 12 },
    { "ids answered by replicas", 12 },
    { "snapshots in directories", 12 },
    { "replicas that began with their directory", 40 },
    { "directories that are kept after a loss", 100 },
    { "calls that a disk failed", 12 },
    { "losses of power", 12 },
    { "writes and names that these took back", 12 },
    { "of these said to be synced", 100 }
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


typedef struct node_s  node_t;


typedef enum {
    FREE = 0,
    ADMITTED,
    PARKED                            /* until what it saw is confirmed */
} stage_t;


typedef enum {
    ADD = 0,
    DUE,                              /* an add that claims what is too old */
    DELETE,
    MARK,
    CLAIM,
    ERASE,
    SITE,                             /* is erased */
    LIFT,
    LOOK,
    CHANGES = LOOK
} kind_t;


/* one of a request's URLs */

typedef struct {
    uint32_t           key;
    int                known;         /* acknowledged before it was looked up */
    int                gone;          /* the delete of it was */
    int                barred;        /* an erasure of it was */
    int                again;
    us_store_status_t  status;
    uint64_t           id;
    uint32_t           shard;
    uint64_t           at;            /* of a claim, s since 1970 */
    unsigned           claims;        /* of the id before */
    unsigned           undone;        /* of the URL before */
} item_t;


typedef struct {
    stage_t            stage;
    kind_t             kind;
    int                asks;          /* whether the store was replaced, as the
                                         module does; else the store is relied
                                         upon alone */
    unsigned           n;
    unsigned           done;          /* the body has come so far */
    item_t             items[BATCH];
    uint32_t           token;         /* 0: none */
    int                routed;        /* by a router, which decides */
    const us_map_t    *map;           /* it is asked under; NULL: none */
    uint64_t           call;          /* of the router; 0: none waits for it */
    int                primary;
    us_life_view_t     view;
    uint64_t           lsn;
    uint64_t           epoch;
    uint64_t           number;        /* of its erasure */
    unsigned           erased;        /* of the items */
    uint64_t           top;           /* ids below are gone by it */
    uint64_t           since;         /* ms: its site is on the list */
    const node_t      *node;
} request_t;


/*
 * An add that its client sends again by the same token until it has an answer,
 * and once more after that: to any node, while other tries are under way.
 */

typedef struct {
    uint32_t           token;         /* 0: free */
    kind_t             kind;
    unsigned           n;
    uint32_t           keys[BATCH];
    unsigned           sent;
    int                answered;
    uint64_t           number;        /* of its erasure, which was answered */
} try_t;


typedef struct {
    us_life_t            l;
    node_t              *node;
    us_process_t         serial;
    uint64_t             until;       /* it is stopped (SIGSTOP) */
    int                  leaving;     /* it ends when its requests have */
    int                  busy;
    unsigned             pauses;      /* of its threads */
    int                  working;     /* in its event loop */
    us_replicate_wish_t  wish;
    request_t            requests[REQUESTS];
    us_job_t            *jobs[US_ROLES];  /* that tick() runs */
    unsigned             njobs;
    jmp_buf              kill;
} worker_t;


struct node_s {
    char                 name[8];
    void                *mem;
    us_share_t           sh;
    us_replicate_conf_t  conf;
    uint64_t             cut_from;    /* the log is not reached, */
    uint64_t             cut;         /* until then */
    int                  leaving;     /* its workers are, and none begins */
    int                  reads;       /* its clients only look */
    uint64_t             ahead;       /* s: its clock of 1970 */
    char                 path[64];    /* of its directory; or "" */
    int                  dirfd;
    int                  lockfd;
    uint64_t             sick;        /* its disk fails until then, */
    int                  failed;      /* or has failed since it was read */
    int                  lies;        /* its disk does */
    int                  lied;        /* and what it kept is not there */
    int                  torn;        /* nor is what was not synced */
    unsigned             boot;        /* of its machine, */
    int                  power;       /* which loses its power now */
    worker_t             workers[WORKERS];
};


typedef struct {
    uint64_t             id;          /* US_STORE_NO_ID: none was answered */
    int                  marked;
    int                  left;        /* a client did not come back for it */
    uint64_t             claimed;
    unsigned             undone;      /* tries to delete or to erase it */
    int                  erasing;     /* there was one to erase it */
    uint64_t             barred;      /* the last erasure, acknowledged; or 0 */
    uint64_t             barred_lsn;
} url_t;


typedef struct {
    uint32_t             key;         /* + 1; 0: not answered */
    uint64_t             lsn;         /* of its add, or of a later change */
    int                  gone;        /* its delete was acknowledged, */
    int                  erased;      /* or its erasure */
    unsigned             undone;      /* + 1: of the URL when it was added */
    int                  new;         /* an answer was, */
    uint32_t             token;       /* to this one */
    int                  fetched;     /* it was new or due to a client */
    uint64_t             due;         /* s: of the last claim that was due */
    unsigned             claims;      /* that may have gone back */
} given_t;


static us_store_conf_t  store = {
    .norm = { 4, (const uint8_t *) "test" },
    .marks = { { 7, (const uint8_t *) "visited" } },
    .nmarks = 1,
    .revisit = UNIT,
    .keys = 1 << 20,
    .epoch = 1,
    .ring = RING,
    .fenced = 1
};

static fake_t        fake;
static node_t        nodes[NODES];
static url_t         urls[KEYS];
static try_t         tries[TRIES];
static uint32_t      recent[RECENT];  /* keys */
static unsigned      nrecent;
static uint32_t      tokens;
static given_t       ids[IDS];
static given_t       others[IDS];     /* of shard 1 */
static uint64_t      clock_ms, epoch, lost, gave_lost, calm, serials, bytes;
static us_process_t  self;
static unsigned      depth, faults;
static int           quiet;
static size_t        zone_size;
static campaign_t   *campaign;
static int           says;            /* prints what happens */


static void world(worker_t *w);
static void worker_step(worker_t *w);
static void follow_says(const node_t *n, const char *text);
static void follow_answered(const node_t *n, uint64_t id);
static worker_t *disk_acts(worker_t *w);
static void disk_loaded(node_t *n, uint64_t now);
static void disk_empty(node_t *n);


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
        if (process
            && nodes[i / WORKERS].workers[i % WORKERS].serial == process)
        {
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


/* of a node, s since 1970 */

static uint64_t
now_s(const node_t *n)
{
    return 1000000000 + clock_ms / 1000 + n->ahead;
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
    worker_t *w = data;

    assert_true(w->njobs < US_ROLES);
    w->jobs[w->njobs++] = job;

    return 0;
}


/* a tick of a worker, and the jobs that it starts, one after the other */

static void
tick(worker_t *w)
{
    unsigned   n;
    us_job_t  *job;

    (void) us_life_tick(&w->l);

    for (n = w->njobs; n && w->njobs; n--) {
        job = w->jobs[0];
        w->njobs--;
        memmove(w->jobs, w->jobs + 1, w->njobs * sizeof(us_job_t *));

        us_job_run(job);
        self = w->serial;
        us_job_done(job);
    }
}


static void
env_pause(void *data, unsigned ms)
{
    worker_t *w = data;

    unsigned   i;
    worker_t  *other;

    clock_ms += ms;
    world(w);
    w->pauses++;

    /* what it waits for is maybe another's, whose threads may wait as well */

    for (i = 0; i < (quiet ? NODES * WORKERS : 0); i++) {
        other = &nodes[i / WORKERS].workers[i % WORKERS];

        if (other->pauses && other != w) {
            self = other->serial;
            (void) disk_acts(other);
            (void) us_life_refresh(&other->l);
            tick(other);

        } else {
            worker_step(other);
        }
    }

    self = w->serial;
    (void) disk_acts(w);
    (void) us_life_refresh(&w->l);
    tick(w);
    w->pauses--;
}


static int
env_stopping(void *data)
{
    return ((worker_t *) data)->leaving;
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

    unsigned long long  e;

    say("%s.%d logs %s", w->node->name, (int) (w - w->node->workers), text);

    if (sscanf(text, "loaded, and writable: %*u ids, epoch %llu;", &e) == 1) {
        disk_loaded(w->node, e);
    }

    if (strstr(text, "deposed: ")) {
        mark(M_DEPOSED);
    }

    if (strstr(text, "a new base of the log: ")) {
        mark(M_REBASED);
    }

    if (strstr(text, "snapshot up to LSN ")) {
        mark(M_SNAPSHOT);
    }

    if (strstr(text, "closed: ")) {
        mark(M_CLOSED);
    }

    if (strstr(text, "the copy of ")) {
        mark(M_COPY);
    }

    if (strstr(text, "what was in the path is kept")) {
        mark(M_KEPT);
    }

    follow_says(w->node, text);

    /* nothing is wrong with a store, and a loss is only seen where one was */

    assert_null(strstr(text, " ids and the log "));

    /* but with a copy of which a disk has kept a part */

    if (strstr(text, "is damaged")) {
        assert_true(w->node->torn
                    && (w->l.conf.follow || w->l.conf.replicate));
    }

    if (strstr(text, "\"manifest\" is damaged")
        || strstr(text, "but no \"manifest\""))
    {
        assert_true(w->node->lied);
        disk_empty(w->node);
    }

    if (lost == 0) {
        assert_null(strstr(text, "has lost what was confirmed"));
    }
}


/* what was answered */

static const char  *kind_words[] = { "add", "add older=", "delete", "mark",
                                     "claim", "erase", "erase site=", "lift",
                                     "look-up" };

static const char  *status_words[] = {
    "new", "seen", "unseen", "full", "busy", "deleted", "unknown", "ok",
    "damaged", "due", "moved", "fenced", "gone", "erased"
};


/* one of the site that is erased */

static int
of_site(uint32_t key)
{
    return store.erases && key % 8 == 2;
}


static void
text_of(uint32_t key, char url[64])
{
    (void) snprintf(url, 64, "http://site%u.test/a/long/path/%u",
                    of_site(key) ? 7 : key % 7, key);
}


/* one that clients delete, or erase, so that it may have several ids */

static int
deletable(uint32_t key)
{
    return key % 8 == 0 || (store.erases && key % 8 < 3);
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
answered(const request_t *r, const item_t *it)
{
    url_t     *u;
    given_t   *g;
    uint64_t   id;

    assert_true(it->id < IDS);
    u = &urls[it->key];
    g = it->shard ? &others[it->id] : &ids[it->id];
    id = us_cluster_id(it->shard, it->id);

    /* one id, one URL */

    if (g->key) {
        assert_int_equal(g->key, it->key + 1);

    } else {
        g->key = it->key + 1;
        g->lsn = r->lsn;
        mark(M_ADDED);
    }

    if (it->status == US_SEEN) {
        follow_answered(r->node, it->id);
    }

    g->fetched |= it->status == US_NEW || it->status == US_DUE;

    /* new to one request, and each time that one is sent */

    if (it->status == US_NEW) {
        assert_true(!g->new || (r->token && g->token == r->token));
        assert_false(it->barred && !it->again);

        if (g->new) {
            mark(M_NEW_AGAIN);
        }

        if (!it->again) {
            g->undone = it->undone + 1;
        }

        if (u->erasing && u->id != US_STORE_NO_ID && u->id != id) {
            mark(M_ANEW);
        }

        g->new = 1;
        g->token = r->token;
        recent[nrecent++ % RECENT] = it->key;

    } else if (it->status == US_SEEN && r->kind != LOOK) {
        assert_false(g->new && g->token && g->token == r->token);
    }

    /* due once in a period */

    if ((it->status == US_DUE || it->status == US_NEW) && !it->again
        && it->claims == g->claims)
    {
        assert_false(it->status == US_DUE && it->at < g->due + OLDER * UNIT
                     && g->due < it->at + OLDER * UNIT);
        g->due = it->at > g->due ? it->at : g->due;

        if (it->status == US_DUE) {
            mark(M_DUE);
        }
    }

    if (u->id == id) {
        return;
    }

    /* one URL, one id; a standby may not know of a delete yet */

    assert_true(u->id == US_STORE_NO_ID || deletable(it->key));

    u->id = id;
    u->marked = 0;
    u->claimed = 0;
}


static void
reply_item(const request_t *r, const item_t *it)
{
    url_t    *u;
    given_t  *g;

    u = &urls[it->key];

    say("  %s url %u: %s%s id %lld", kind_words[r->kind], it->key,
        status_words[it->status], it->again ? " again," : "",
        (long long) it->id);

    switch (it->status) {

    case US_NEW:
    case US_DUE:
        assert_true(r->kind == ADD || r->kind == DUE);

        /* fall through */

    case US_SEEN:
        answered(r, it);
        assert_false(it->gone);
        return;

    case US_UNSEEN:
        assert_false(it->known && !r->routed);
        mark(M_DENIED);
        return;

    case US_ERASED:
        assert_true(u->erasing);
        mark(M_BARRED);
        return;

    case US_FULL:
    case US_MOVED:
        return;

    default:
        break;
    }

    if (u->id != it->id) {
        return;
    }

    g = &ids[it->id];

    if (g->lsn < r->lsn) {
        g->lsn = r->lsn;
    }

    switch (r->kind) {

    case DELETE:
        g->gone = 1;
        break;

    case MARK:
        u->marked = 1;
        break;

    case CLAIM:
        if (it->claims == g->claims) {
            u->claimed = it->at;
        }

        break;

    default:
        break;
    }
}


/* the try of this token; NULL: its client has done with it */

static try_t *
try_of(uint32_t token)
{
    unsigned  i;

    for (i = 0; token && i < TRIES; i++) {
        if (tries[i].token == token) {
            return &tries[i];
        }
    }

    return NULL;
}


static int   request_make(request_t *r, int reads);

#include "router_fake.h"
#include "disk_fake.h"
#include "follow_fake.h"
#include "eraser.h"


/* its reply is sent, and may be lost */

static void
reply(request_t *r)
{
    unsigned   i;
    try_t     *t;

    r->stage = FREE;

    say("an answer, lsn %llu, epoch %llu, token %u",
        (unsigned long long) r->lsn, (unsigned long long) r->epoch, r->token);

    if (r->epoch != epoch) {
        return;
    }

    if (erases(r->kind)) {
        eraser_reply(r);

    } else {
        for (i = 0; i < r->n; i++) {
            reply_item(r, &r->items[i]);
        }
    }

    call_reply(r, IDS);
    t = r->routed ? NULL : try_of(r->token);

    if (t && (quiet || chance(600))) {
        t->token = t->answered || chance(700) ? 0 : t->token;
        t->answered = 1;
    }
}


/* the reply waits, or is refused */

static void
park(worker_t *w, request_t *r)
{
    int         denies;
    unsigned    i;
    us_life_t  *l;

    l = &w->l;

    for (i = 0, denies = 0; i < r->n; i++) {
        denies |= r->items[i].status == US_UNSEEN;
    }

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
    self = w->serial;
}


/* a kill between two instructions, of the innermost one */

static void
kill_some(worker_t *w, unsigned of_1000, mark_t m)
{
    if (!quiet && calm == 0 && depth == 0 && chance(of_1000)) {
        mark(m);
        w->node->power = w->node->dirfd != -1 && chance(500);
        longjmp(w->kill, 1);
    }
}


/* adds what has come of a body, with the token of the request */

static void
request_add(worker_t *w, request_t *r, unsigned n)
{
    char             url[BATCH][64];
    item_t          *it;
    unsigned         i;
    uint64_t         lsn;
    us_store_t      *s;
    us_store_key_t   name;
    us_store_item_t  items[BATCH];

    s = w->l.store;
    name.name = r->token;
    name.until = UINT32_MAX;

    for (i = 0; i < n; i++) {
        items[i] = item_of(r->items[r->done + i].key, url[i]);
    }

    lsn = us_store_add_key(s, items, n, r->kind == DUE ? OLDER : 0,
                           r->token ? &name : NULL);
    r->lsn = lsn > r->lsn ? lsn : r->lsn;

    for (i = 0; i < n && items[i].status != US_BUSY; i++) {
        it = &r->items[r->done++];
        it->status = items[i].status;
        it->id = items[i].id;
        it->again = items[i].again;
        it->undone = urls[it->key].undone;

        if (it->status == US_FENCED) {
            break;
        }

        if (it->status == US_NEW && !it->again) {
            call_adds(r->call, it->key);
        }

        if (it->id < IDS) {
            it->at = us_store_claimed(s, it->id);
            it->claims = ids[it->id].claims;
            it->gone = it->status == US_SEEN && ids[it->id].gone
                       && us_life_whole(&w->l);
        }
    }
}


/* looks them up, and changes what is found */

static void
request_look(worker_t *w, request_t *r, unsigned n)
{
    int               was;
    char              url[64];
    item_t           *it;
    uint64_t          lsn;
    us_life_t        *l;
    us_store_item_t   item;
    us_store_claim_t  claim;

    l = &w->l;

    for ( /* void */ ; n; n--) {
        it = &r->items[r->done++];
        item = item_of(it->key, url);
        us_store_seen(l->store, &item, 1);

        if (r->routed) {
            us_store_refuse(l->store, &item, 1);
        }

        lsn = us_store_published(l->store);
        r->lsn = lsn > r->lsn ? lsn : r->lsn;
        it->status = item.status;
        it->id = item.id;

        if (item.status != US_SEEN || item.id >= IDS) {
            continue;
        }

        it->gone = ids[it->id].gone && us_life_whole(l);

        if (r->kind == LOOK) {
            continue;
        }

        it->status = US_OK;

        switch (r->kind) {

        case DELETE:
            us_life_deleting(l);
            urls[it->key].undone++;
            r->lsn = 0;
            it->status = us_store_delete(l->store, it->id, &was, &r->lsn);
            kill_some(w, 200, M_HALF_DELETED);
            us_life_deleted(l, r->lsn);
            break;

        case MARK:
            it->status = mark_put(l->store, 0, it->id, 1, &r->lsn);
            break;

        default:

            /* what was due may be so again, and what was claimed is not */

            it->claims = ++ids[it->id].claims;
            ids[it->id].due = 0;
            urls[it->key].claimed = 0;
            claim.id = it->id;
            it->at = now_s(w->node) - UNIT;
            r->lsn = us_store_claim(l->store, &claim, 1, it->at);
            it->status = claim.status;
        }

        if (it->status == US_BUSY) {
            r->done--;
            return;
        }
    }
}


/* a piece of the body has come: the store is changed, or looked into */

static void
request_run(worker_t *w, request_t *r)
{
    unsigned    i, n;
    us_life_t  *l;

    l = &w->l;

    if (r->asks && us_life_overtaken(l, &r->view, 0)) {
        mark(M_REFUSED);
        request_drop(w, r);
        return;
    }

    if (!quiet && calm == 0 && depth < 2 && chance(erases(r->kind) ? 40 : 2)) {
        stop(w);
    }

    if (!r->asks && r->done == 0) {
        us_life_view(l, &r->view);
    }

    if (r->epoch && r->epoch != epoch_of(l->store)) {
        request_drop(w, r);
        return;
    }

    if (r->done) {
        mark(M_PIECES);
    }

    r->node = w->node;
    r->epoch = epoch_of(l->store);
    n = r->n - r->done;
    n = r->routed || chance(600) ? n : 1 + any(n);

    for (i = r->done; i < r->done + n; i++) {
        r->items[i].known = urls[r->items[i].key].id != US_STORE_NO_ID
                            && !deletable(r->items[i].key);
        r->items[i].barred = eraser_bars(r->items[i].key);
    }

    us_store_time(l->store, now_s(w->node));
    us_store_under(l->store, r->map ? r->map->version : 0,
                   r->map ? r->map->digest : NULL);
    i = r->done;

    if (r->kind == ADD || r->kind == DUE) {
        request_add(w, r, n);

    } else if (erases(r->kind)) {
        eraser_run(w, r);
        i = r->done;

    } else {
        request_look(w, r, n);
    }

    for ( /* void */ ; i < r->done; i++) {

        switch (r->items[i].status) {

        case US_FENCED:
            mark(M_REFUSED);

            /* fall through */

        case US_UNKNOWN:
        case US_DELETED:
            r->stage = FREE;
            return;

        default:
            assert_true(r->items[i].status != US_DAMAGED);
        }
    }

    if (r->stage != FREE && r->done == r->n) {
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
        assert_false(ids[id].gone && us_life_whole(&w->l));
        follow_answered(w->node, id);

    } else if (status == US_UNKNOWN) {
        assert_false(us_life_whole(&w->l));
        assert_true(id >= follow.had[w->node - nodes]);
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
        lost = lost && lost < gave_lost ? lost : gave_lost;
    }

    if (now == epoch) {
        return;
    }

    epoch = now;
    gave_lost = lost;
    lost = 0;
    mark(M_GAVE_UP);
    eraser_lost(gave_lost);

    for (i = 0; i < IDS; i++) {
        ids[i].due = 0;

        if (ids[i].key && ids[i].lsn > gave_lost) {
            urls[ids[i].key - 1].id = US_STORE_NO_ID;
            urls[ids[i].key - 1].claimed = 0;
            urls[ids[i].key - 1].left = 1;
            memset(&ids[i], 0, sizeof(given_t));
        }
    }
}


/* anything but an erasure */

static void
request_any(request_t *r, int reads)
{
    unsigned  i, kind;

    /* at a node that is cut off: what another one may have added since */

    if (reads && chance(700)) {
        r->kind = LOOK;
        r->n = 1;
        r->items[0].key = recent[(nrecent + RECENT - 1 - any(3)) % RECENT];
        return;
    }

    kind = any(20);
    r->kind = kind < 7 ? ADD : kind < 9 ? DUE : kind < 17 ? LOOK
              : kind < 18 ? MARK : kind < 19 ? CLAIM : DELETE;
    r->kind = reads ? LOOK : r->kind;
    r->n = r->kind < DELETE || r->kind == LOOK ? 1 + any(BATCH) : 1;
    r->items[0].key = any(KEYS);
    r->items[0].key -= r->kind == DELETE ? r->items[0].key % 8 : 0;

    /* what another client has just added */

    if (r->kind == LOOK && chance(500)) {
        r->items[0].key = recent[any(RECENT)];
    }

    /* what was erased, and may have been lifted since */

    if (store.erases && r->kind == ADD && chance(250)) {
        r->items[0].key = eraser.keys[any(RECENT)];
    }

    for (i = 1; i < r->n; i++) {
        r->items[i].key = (r->items[i - 1].key + 2 * (1 + any(20))) % KEYS;
    }
}


/*
 * What a request of a client is: of one kind, URLs that differ.  Those of odd
 * keys are added with a token, and some are erased with one.  All faults being
 * over, clients only send again what they have no answer to.
 */

static int
request_make(request_t *r, int reads)
{
    try_t     *t;
    unsigned   i, j;

    memset(r, 0, sizeof(request_t));

    t = &tries[any(TRIES)];

    for (i = 0; quiet && i < TRIES && (t->token == 0 || t->answered); i++) {
        t = &tries[i];
    }

    if (!reads && t->token && (quiet ? !t->answered : chance(300))) {
        r->kind = t->kind;
        r->token = t->token;
        r->n = t->n;

        for (i = 0; i < r->n; i++) {
            r->items[i].key = t->keys[i];
        }

        return 1;
    }

    if (quiet) {
        return 0;
    }

    if (reads || !eraser_make(r)) {
        request_any(r, reads);
    }

    for (i = 0; i < r->n; i++) {
        for (j = 0; j < i; j++) {
            if (r->items[i].key == r->items[j].key) {
                return 0;
            }
        }
    }

    if (r->kind == ERASE ? chance(500)
                         : r->kind >= DELETE || r->items[0].key % 2 == 0)
    {
        return 1;
    }

    for (i = 0; t->token && i < TRIES; i++) {
        t = &tries[i];
    }

    if (t->token && chance(980)) {
        return 0;
    }

    r->token = ++tokens;

    /* nobody sends it again */

    for (i = 0; t->token && r->kind != ERASE && i < r->n; i++) {
        urls[r->items[i].key].left = 1;
    }

    if (t->token == 0) {
        t->token = r->token;
        t->kind = r->kind;
        t->n = r->n;
        t->answered = 0;
        t->sent = 0;
        t->number = 0;

        for (i = 0; i < r->n; i++) {
            t->keys[i] = r->items[i].key;
        }
    }

    return 1;
}


static void
request_begin(worker_t *w, request_t *r)
{
    int  changes;

    if (!request_make(r, w->node->reads)) {
        return;
    }

    changes = r->kind < CHANGES;

    if (!us_life_admits(&w->l, changes ? US_WANTS_CHANGE : 0)) {
        return;
    }

    if (try_of(r->token) && try_of(r->token)->sent++) {
        mark(M_AGAIN);
    }

    r->asks = r->kind == LOOK || erases(r->kind) || chance(500);
    us_life_view(&w->l, &r->view);
    r->stage = ADMITTED;

    if (r->kind == LOOK || chance(800)) {
        request_run(w, r);
    }
}


/* the event loop of a worker: its requests */

static void
requests(worker_t *w)
{
    unsigned    i;
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

        } else if (w->leaving) {
            continue;

        } else if (call_take(w, r)) {

            if (r->stage == ADMITTED) {
                request_run(w, r);
            }

        } else if (chance(quiet ? 60 : 250)) {
            request_begin(w, r);
        }
    }

    if (cluster.on && chance(100)) {
        map_apply_at(w);
    }

    eraser_tick(w);
    get(w);
    w->working = 0;
}


static void
worker_init(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;
    memset(w->requests, 0, sizeof(w->requests));
    memset(&w->wish, 0, sizeof(w->wish));
    memset(l, 0, sizeof(us_life_t));

    w->until = 0;
    w->leaving = 0;
    w->busy = 0;
    w->pauses = 0;
    w->working = 0;
    w->njobs = 0;
    w->serial = ++serials << US_PROCESS_PID_BITS | 1;

    l->env = (us_life_env_t) { env_now, env_start, env_pause, env_stopping,
                               env_yes, env_moved, env_say, w };
    l->sh = &w->node->sh;
    l->mem = w->node->mem;
    l->size = zone_size;
    l->lock = (us_store_lock_t) { env_moved, env_moved, NULL };
    l->dirfd = -1;
    l->lockfd = -1;
    l->conf.sync_name = "always";
    l->conf.sync = US_SYNC_ALWAYS;
    l->conf.replicate = &w->node->conf;
    l->conf.erase_within = ERASE_WITHIN;
    l->conf.store = store;

    disk_conf(w);

    if (follow.on) {
        follow_conf(w);
    }
}


/* a worker begins, or its successor */

static void
worker_start(worker_t *w)
{
    worker_init(w);

    self = w->serial;
    assert_int_equal(us_life_start(&w->l), 0);
}


/* what the kernel takes back; nothing that is shared is changed */

static void
worker_end(worker_t *w)
{
    uint64_t    connected;
    us_life_t  *l;

    l = &w->l;
    w->serial = 0;
    eraser_end(w);
    connected = us_acquire(&l->sh->replica.connected);
    us_follow_stop(&l->follow);
    us_follow_stop(&l->copier);
    us_release(&l->sh->replica.connected, connected);
    free(l->writer.buf);
    free(l->syncer.buf);
    follow_killed(w);
    disk_killed(w);

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
        disk_close(n);
    }
}


static void
node_start(node_t *n)
{
    unsigned  i, number;

    node_end(n);

    if (n->power) {
        disk_power(n);
        n->power = 0;
    }

    number = (unsigned) (n - nodes);
    memset(&n->sh, 0, sizeof(us_share_t));
    n->leaving = 0;
    (void) snprintf(n->name, sizeof(n->name), "node%u", number);

    n->cut = 0;
    n->ahead = 0;
    n->conf.ops = &log_ops;
    n->conf.conninfo = "";
    n->conf.node = n->name;
    n->conf.lease = quiet ? 2000 : 800 + any(7000);
    n->conf.takeover = 4000 + 700 * number;

    n->mem = mmap(NULL, zone_size, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n->mem, MAP_FAILED);
    assert_int_equal(us_store_format(n->mem, zone_size, &store), 0);

    n->dirfd = -1;

    if (disk.on && number != 1) {
        disk_open(n);
    }

    for (i = 0; i < WORKERS; i++) {
        n->workers[i].node = n;
        worker_start(&n->workers[i]);
    }
}


/*
 * A worker has ended, and another one begins; or, as the last of a node that
 * was told to end, the master closes the directory, and the node starts again.
 */

static void
worker_gone(worker_t *w)
{
    unsigned  i;
    node_t   *n;

    n = w->node;
    worker_end(w);

    if (!n->leaving) {
        worker_start(w);
        return;
    }

    for (i = 0; i < WORKERS; i++) {
        if (n->workers[i].serial) {
            return;
        }
    }

    (void) disk_acts(NULL);
    disk.opens = w;
    worker_init(w);
    assert_true(us_life_close(&w->l, US_LIFE_HUNG) == 0 || n->failed);
    n->power = n->dirfd != -1 && chance(200);
    node_start(n);
}


/* a worker that was told to ends */

static void
worker_leave(worker_t *w)
{
    unsigned  i;

    for (i = 0; i < REQUESTS; i++) {
        if (w->requests[i].stage != FREE) {
            return;
        }
    }

    say("%s.%d ends", w->node->name, (int) (w - w->node->workers));
    mark(M_LEFT);
    us_life_stop(&w->l);
    worker_gone(w);
}


static void
worker_step(worker_t *w)
{
    worker_t  *acts;

    if (w->until > clock_ms || w->busy || w->serial == 0) {
        return;
    }

    acts = disk_acts(w);
    w->busy = 1;
    self = w->serial;
    requests(w);

    if (!quiet && calm == 0 && !follow.on) {

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
    tick(w);
    w->busy = 0;

    if (w->leaving) {
        worker_leave(w);
    }

    (void) disk_acts(acts);
}


/* the primary, more often than another node */

static void
cut(node_t *n)
{
    unsigned  i;

    for (i = 0; i < NODES; i++) {
        if (us_share_state(&nodes[i].sh) == US_LIFE_READY && chance(800)) {
            n = &nodes[i];
        }
    }

    if (us_share_state(&n->sh) != US_LIFE_READY && chance(700)) {
        return;
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
    int  current, linked, third, alone;

    current = fake.current;
    linked = fake.linked;
    third = fake.third;
    alone = fake.alone;

    fake_events(&fake);

    /* with names that are empty, or a setting that it has not read so far */

    if (fake_chance(&fake, 2)) {
        fake_alone(&fake);
    }

    if (alone != fake.alone) {
        mark(M_ALONE);
    }

    if (current != fake.current || linked != fake.linked
        || third != fake.third || alone != fake.alone)
    {
        say("server %d is in charge of the log%s, its standby is %s",
            fake.current, fake.alone ? ", commits without a standby" : "",
            fake.linked ? "the other one" : fake.third ? "a third one"
            : "away");
    }
}


/* what happens while a call is under way, or between two of them */

static void
world(worker_t *w)
{
    worker_t  *other;

    clock_ms += any(away() ? 24 : 12);
    routers();

    if (quiet) {
        return;
    }

    other = &nodes[any(NODES)].workers[any(WORKERS)];

    if (calm == 0) {
        servers();

        if (chance(2)) {
            cut(other->node);
        }

        if (chance(1)) {
            disk_sickens(other->node);
        }

        if (chance(1) && chance(300)) {
            other->node->ahead = chance(500) ? any(3 * HOUR / 1000) : 0;
            say("the clock of %s is %llu s ahead", other->node->name,
                (unsigned long long) other->node->ahead);
            mark(M_CLOCK);
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

    kill_some(w, w->node->sick > clock_ms ? 20 : 3, M_KILLED);
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

        if (has == UINT64_MAX || nodes[i].leaving
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
    memset(others, 0, sizeof(others));
    memset(urls, 0, sizeof(urls));
    memset(tries, 0, sizeof(tries));
    memset(recent, 0, sizeof(recent));
    nrecent = 0;
    tokens = 0;

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

    eraser_begin(seed);
    follow_begin(seed);
    disk_begin(seed);
    cluster_begin(seed);
    store.is_shard = cluster.on;
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
    int                 restart;
    unsigned            i, step;
    worker_t *volatile  w;

    begin(seed);

    for (step = 0; step < steps; step++) {
        w = &nodes[any(NODES)].workers[any(WORKERS)];

        world(NULL);

        if (calm && calm <= clock_ms) {
            found();
        }

        if (calm == 0 && lost == 0 && step > 200 && seed % 2 && !follow.on
            && chance(5))
        {
            lose();
        }

        if (calm == 0
            && (disk_ended(w->node) ? chance(20) : chance(1) && chance(500)))
        {
            say("%s restarts", w->node->name);
            mark(M_RESTARTED);
            w->node->power = w->node->dirfd != -1 && chance(500);
            node_start(w->node);
            continue;
        }

        if (calm == 0 && chance(2)) {
            w->leaving = 1;

            if (chance(follow.on ? 600 : 200)) {
                w->node->leaving = 1;

                for (i = 0; i < WORKERS; i++) {
                    w->node->workers[i].leaving = 1;
                }
            }
        }

        if (setjmp(w->kill)) {
            say("%s.%d is killed", w->node->name,
                (int) (w - w->node->workers));
            depth = 0;
            (void) disk_acts(NULL);

            if (w->node->power) {
                node_start(w->node);

            } else {
                worker_gone(w);
            }

            continue;
        }

        worker_step(w);
    }

    /* all faults are over, and what runs comes right by itself */

    say("all faults are over");
    quiet = 1;
    restart = seed % 3 == 0 && calm == 0;
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

        nodes[i].sick = 0;

        /* not all at once after a loss, of which they alone know */

        if (restart || disk_ended(&nodes[i])) {
            node_start(&nodes[i]);
        }
    }

    /*
     * The primary forgets replicas that were started anew, or whose directory
     * could not keep their id.
     */

    clock_ms += follow.on ? US_KNOWN_KEEPS : 0;

    /* a base that failed is tried again after a minute */

    for (step = 0; step < 6000; step++) {
        clock_ms += store.erases ? 30 : 10;
        routers();
        worker_step(&nodes[step % NODES].workers[step / NODES % WORKERS]);

        /* why a copy is not written is only logged when that begins */

        if (step == 3000) {
            disk_look();
        }
    }
}


/*
 * The operations that would make a store as it is: records, models, deletes,
 * claims, keys, sets, erasures.  Its index goes its own way, as leaves divide
 * by what has been in them, and so does the order of what was erased.
 */

typedef struct {
    size_t    len;
    uint8_t   p[DUMP];
    size_t    nlisted;
    uint64_t  listed[LISTED][2];
} dump_t;


static int
dump_put(void *data, const uint8_t *p, size_t len)
{
    dump_t *d = data;

    ssize_t  n;
    us_op_t  op;

    for ( /* void */ ; len; p += n, len -= n) {
        n = us_op_parse(p, len, &op);
        assert_true(n > 0 && (size_t) n <= len);

        if (op.type == US_OP_EXPECT || op.type == US_OP_IMAGE
            || op.type == US_OP_LEAVES || op.type == US_OP_CACHE)
        {
            continue;
        }

        if (op.type == US_OP_ERASED_URLS) {
            assert_true(op.bytes.len / 16 <= LISTED - d->nlisted);
            memcpy(d->listed[d->nlisted], op.bytes.data, op.bytes.len);
            d->nlisted += op.bytes.len / 16;
            continue;
        }

        assert_true((size_t) n <= DUMP - d->len);
        memcpy(d->p + d->len, p, n);
        d->len += n;
    }

    return 0;
}


static int
listed_cmp(const void *one, const void *two)
{
    return memcmp(one, two, 16);
}


static void
dump_of(us_store_t *s, dump_t *d, uint64_t *lsn)
{
    d->len = 0;
    d->nlisted = 0;
    us_store_time(s, 1000000000);
    assert_int_equal(us_store_dump(s, dump_put, d, lsn), 0);
    qsort(d->listed, d->nlisted, 16, listed_cmp);
}


/* all nodes have the same, byte for byte */

static void
same(void)
{
    unsigned       i;
    uint64_t       lsn, first;

    static dump_t  a, b;

    dump_of(nodes[0].workers[0].l.store, &a, &first);

    for (i = 1; i < NODES; i++) {
        dump_of(nodes[i].workers[0].l.store, &b, &lsn);

        /* a replica's store counts for itself */

        lsn = follow.on ? us_acquire(&nodes[i].sh.load_lsn) : lsn;
        assert_int_equal(lsn, first);
        assert_int_equal(b.len, a.len);
        assert_memory_equal(b.p, a.p, a.len);
        assert_int_equal(b.nlisted, a.nlisted);
        assert_memory_equal(b.listed, a.listed, a.nlisted * 16);
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

    for (i = 0; i < TRIES; i++) {
        assert_true(tries[i].token == 0 || tries[i].answered);
    }

    for (i = 0; i < NODES; i++) {
        l = &nodes[i].workers[0].l;
        (void) us_life_refresh(l);

        if (us_life_state(l) == US_LIFE_READY) {
            primaries++;

        } else if (us_life_state(l) != (follow.on ? US_LIFE_REPLICA
                                                  : US_LIFE_STANDBY))
        {
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
        eraser_check(l);

        for (id = 0; id < us_store_next_id(l->store); id++) {
            status = us_store_get(l->store, id, buf, &len);
            assert_true(status == US_OK || status == US_DELETED);

            if (status == US_OK && id < IDS && ids[id].key) {
                text_of(ids[id].key - 1, url);
                assert_int_equal(len, strlen(url));
                assert_memory_equal(buf, url, len);
            }

            /* what was new to a request with a token */

            if (id >= 64 && id < IDS && ids[id].new && ids[id].token
                && us_keys_low(&a, &past, 0) <= id - 64)
            {
                assert_int_equal(us_keys_has(&a, ids[id].token, US_KEYS_NEW, 0,
                                             id, 0), 1);
                mark(M_KEYS);
            }
        }

        for (id = 0; id < KEYS; id++) {
            item = item_of((uint32_t) id, url);
            us_store_seen(l->store, &item, 1);

            /*
             * Not only stored: a client has been sent to it.  If it was erased,
             * a late try of a request that was answered, be it `erased`, may
             * have added it again.
             */

            if (id % 2 && item.status == US_SEEN && !urls[id].left
                && !urls[id].erasing && !cluster.on)
            {
                assert_true(ids[item.id].fetched);
                mark(M_ANSWERED);
            }

            if (urls[id].id == US_STORE_NO_ID) {
                continue;
            }

            if (urls[id].id >> US_SHARD_SHIFT) {

                if (urls[id].erasing) {
                    continue;
                }

                assert_true(item.status != US_SEEN);
                us_store_seen(cluster.store, &item, 1);
                assert_int_equal(item.status, US_SEEN);
                assert_int_equal(us_cluster_id(1, item.id), urls[id].id);
                continue;
            }

            if (!deletable(id)) {
                assert_int_equal(item.status, US_SEEN);
                assert_int_equal(item.id, urls[id].id);
                assert_true(!urls[id].marked
                            || mark_has(l->store, 0, item.id));
                assert_true(us_store_claimed(l->store, item.id) + UNIT
                            > urls[id].claimed);

            } else if (item.status == US_SEEN) {
                assert_false(ids[item.id].gone);
            }

            /* since it was new, nobody has tried to take it away */

            if (ids[urls[id].id].undone == urls[id].undone + 1) {
                assert_int_equal(item.status, US_SEEN);
                assert_int_equal(item.id, urls[id].id);
            }
        }
    }

    assert_int_equal(primaries, 1);
    same();
}


static void
history(uint64_t seed)
{
    unsigned  i;

    run(seed, 2500);
    check();

    for (i = 0; i < NODES; i++) {
        node_end(&nodes[i]);
        disk_remove(&nodes[i]);
    }

    fake_done(&fake);
    cluster_end();
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
    seeds = says ? 1 : number("US_SEEDS", 12);
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
