
/*
 * Routers of a cluster of two shards, for t/unit/simulate.c, which includes it:
 *
 *     shard 0    the nodes of the log
 *     shard 1    a store that never fails, but goes back to a backup
 *
 * A router's request is a us_scatter_t, by the map that the router has.  Its
 * calls wait, are lost, or come to a node that has stopped; what the router has
 * given up may still be done.
 *
 * One of the shards begins alone.  The operator applies the map with both, in
 * any order and as often as it takes, and routers get it before or after.
 *
 * What a router has erased, each shard that has or had the URL's slot refuses
 * from then on, unless a backup from before comes back.
 */


#ifndef _ROUTER_FAKE_H_INCLUDED_
#define _ROUTER_FAKE_H_INCLUDED_


#include "api/us_answer.h"
#include "cluster/us_scatter.h"
#include "cluster/us_wire.h"
#include "store/us_shard.h"


#define ROUTERS       2
#define ROUTED        4               /* requests of all routers */
#define CALLS         4               /* of one, at a time */
#define CALL_TIMEOUT  4000            /* ms */
#define CALL_TEXT     2048
#define ORPHANS       8
#define REMAPS        2
#define PLAIN_SIZE    (4 * 1024 * 1024)


typedef enum {
    CALL_NONE = 0,
    CALL_WAITS,                       /* on its way to the node */
    CALL_RUNS
} call_stage_t;


typedef struct call_s {
    call_stage_t      stage;
    us_lane_t        *lane;
    uint32_t          shard;          /* its number */
    kind_t            kind;           /* ADD, LOOK or ERASE */
    unsigned          n;
    uint32_t          keys[BATCH];
    uint32_t          token;
    const us_map_t   *map;
    unsigned          node;
    unsigned          tries;
    uint64_t          at;             /* ms: it comes there */
    uint64_t          until;
    uint64_t          serial;         /* of this try */
    request_t        *request;        /* of a worker */
    char             *text;           /* the reply, or NULL */
} call_t;


typedef struct {
    int               active;
    us_scatter_t      s;
    unsigned          router;
    kind_t            kind;
    unsigned          n;
    uint32_t          keys[BATCH];
    uint64_t          known[BATCH];   /* ids that were acknowledged before */
    int               done[BATCH];    /* a shard has added it */
    uint32_t          token;
    unsigned          remaps;
    unsigned          restores;       /* of shard 1, before */
    call_t            calls[CALLS];
    char             *texts[64];
    unsigned          ntexts;
} routed_t;


static struct {
    int               on;
    const us_map_t   *maps[2];        /* before growth, and after */
    unsigned          applied;        /* maps that the operator applies */
    const us_map_t   *published;      /* of the routers' file */
    const us_map_t   *have[ROUTERS];
    unsigned          node[ROUTERS];  /* of shard 0, to be asked first */
    routed_t          routed[ROUTED];
    call_t            orphans[ORPHANS];
    uint64_t          serials;

    void             *mem;            /* shard 1 */
    void             *backup;
    uint64_t          backed;         /* ids in it; there is one */
    int               has_backup;
    unsigned          restores;
    us_store_t       *store;
} cluster;


static int eraser_bars(uint32_t key);
static void eraser_tries(const request_t *r, uint32_t key);
static void eraser_all(uint32_t key, uint64_t id);
static void eraser_lost(uint64_t lsn);


static us_str_t
cluster_str(const char *text)
{
    return (us_str_t) { strlen(text), (const uint8_t *) text };
}


static const us_map_t *
cluster_next(const us_map_t *map, uint32_t number)
{
    char        text[80], err[256];
    us_map_t   *m;
    us_shard_t  s;

    static const uint8_t  name[16] = { 1 };

    (void) snprintf(text, sizeof(text), "%u=%032x,us_%u", number, number + 1,
                    number);
    assert_int_equal(us_shard_parse(&s, cluster_str(text), err, sizeof(err)),
                     0);

    m = map ? us_map_grow(map, &s, 1, NULL, err, sizeof(err))
        : us_map_first(name, cluster_str("test"), US_KEY_URL, &s, 1, NULL,
                       err, sizeof(err));
    assert_non_null(m);

    return m;
}


static void
cluster_lock(void *data)
{
    (void) data;
}


static void
cluster_open(void)
{
    us_store_lock_t  lock = { cluster_lock, cluster_lock, NULL };

    cluster.store = us_store_open(cluster.mem, &lock);
    assert_non_null(cluster.store);
}


static void
cluster_begin(uint64_t seed)
{
    unsigned         i, first;
    us_store_conf_t  conf;

    memset(&cluster, 0, sizeof(cluster));

    cluster.on = seed % 4 == 0;

    if (!cluster.on) {
        return;
    }

    first = any(2);
    cluster.maps[0] = cluster_next(NULL, first);
    cluster.maps[1] = cluster_next(cluster.maps[0], !first);
    cluster.applied = 1;
    cluster.published = cluster.maps[0];

    for (i = 0; i < ROUTERS; i++) {
        cluster.have[i] = cluster.published;
    }

    cluster.mem = mmap(NULL, PLAIN_SIZE, PROT_READ|PROT_WRITE,
                       MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    cluster.backup = malloc(PLAIN_SIZE);
    assert_ptr_not_equal(cluster.mem, MAP_FAILED);
    assert_non_null(cluster.backup);

    conf = store;
    conf.is_shard = 1;
    conf.shard = 1;
    conf.ring = 0;
    conf.fenced = 0;

    assert_int_equal(us_store_format(cluster.mem, PLAIN_SIZE, &conf), 0);
    cluster_open();
}


static void
routed_free(routed_t *q)
{
    us_scatter_free(&q->s);

    while (q->ntexts) {
        free(q->texts[--q->ntexts]);
    }

    q->active = 0;
}


static void
cluster_end(void)
{
    unsigned  i;

    if (!cluster.on) {
        return;
    }

    for (i = 0; i < ROUTED; i++) {
        if (cluster.routed[i].active) {
            routed_free(&cluster.routed[i]);
        }
    }

    us_store_close(cluster.store);
    (void) munmap(cluster.mem, PLAIN_SIZE);
    free(cluster.backup);
    us_map_free((us_map_t *) cluster.maps[0]);
    us_map_free((us_map_t *) cluster.maps[1]);
}


/* the lines that a shard answers */

static char *
reply_text(const request_t *r, uint64_t next_id)
{
    char                url[64];
    uint8_t            *p, *text;
    unsigned            i;
    us_answers_t        a;
    us_answer_record_t  rec;

    text = malloc(CALL_TEXT);
    assert_non_null(text);

    memset(&a, 0, sizeof(a));
    a.format = US_FORMAT_TEXT;
    a.summary = 1;
    a.next_id = next_id;
    a.epoch = 1;
    a.erases = r->kind == ERASE;
    a.erasure = r->number;

    for (i = 0, p = text; i < r->n; i++) {
        memset(&rec, 0, sizeof(rec));
        text_of(r->items[i].key, url);
        rec.answer = a.erases && r->items[i].status == US_ERASED
                     ? US_ANSWER_ERASED : us_answer_of(r->items[i].status);
        rec.id = (us_answer_known(rec.answer) || rec.answer == US_ANSWER_ERASED)
                 && r->items[i].id != US_STORE_NO_ID
                 ? us_cluster_id(r->items[i].shard, r->items[i].id)
                 : US_STORE_NO_ID;
        rec.text = US_ANSWER_URL;
        a.counts[rec.answer]++;
        p = us_answer_line(p, &a, &rec, cluster_str(url));
    }

    *us_answer_end(p, &a) = '\0';

    return (char *) text;
}


/* a call has added a URL, whether its reply comes or not */

static void
call_added(const call_t *c, uint32_t key)
{
    unsigned   i;
    routed_t  *q;

    i = (unsigned) (((const char *) c - (const char *) cluster.routed)
                    / sizeof(routed_t));
    q = &cluster.routed[i];

    for (i = 0; i < q->n; i++) {
        q->done[i] |= q->keys[i] == key;
    }
}


/* the same, by the number of the call, if its router still waits */

static void
call_adds(uint64_t serial, uint32_t key)
{
    unsigned  i;
    call_t   *c;

    for (i = 0; serial && i < ROUTED * CALLS; i++) {
        c = &cluster.routed[i / CALLS].calls[i % CALLS];

        if (cluster.routed[i / CALLS].active && c->serial == serial) {
            call_added(c, key);
        }
    }
}


static void
plain_erase(request_t *r, const us_store_key_t *name, us_store_item_t *item)
{
    uint64_t  lsn;
    uint8_t   random[16];

    if (r->number == 0) {
        (void) getrandom(random, sizeof(random), 0);
        (void) us_store_erasure_begin(cluster.store, US_ERASURE_URLS,
                                      us_str_of("a reason"), random, self,
                                      name, &r->number, &lsn);
        assert_true(r->number > 0);
    }

    (void) us_store_erase(cluster.store, r->number, item, 1);
    assert_int_equal(us_store_erasure_done(cluster.store, r->number, &lsn),
                     US_OK);
}


/* shard 1 does what it is asked, at once; 0: it does not have the map so far */

static int
plain_run(call_t *c)
{
    char                   url[64];
    unsigned               i;
    item_t                *it;
    request_t              r;
    us_store_key_t         name;
    us_store_item_t        item;
    const us_store_map_t  *map;

    map = us_store_map(cluster.store);

    if (map->number == 0 || map->version < c->map->version) {
        return 0;
    }

    us_store_under(cluster.store, c->map->version, c->map->digest);
    us_store_time(cluster.store, 1000000000 + clock_ms / 1000);

    memset(&r, 0, sizeof(r));
    r.kind = c->kind;
    r.n = c->n;
    r.token = c->token;
    r.routed = 1;
    name.name = c->token;
    name.until = UINT32_MAX;

    say("shard 1 answers");

    for (i = 0; i < c->n; i++) {
        it = &r.items[i];
        it->key = c->keys[i];
        it->shard = 1;
        it->barred = eraser_bars(it->key);
        item = item_of(it->key, url);

        if (c->kind == ADD) {
            (void) us_store_add_key(cluster.store, &item, 1, 0,
                                    c->token ? &name : NULL);
            it->at = us_store_claimed(cluster.store, item.id);

        } else if (c->kind == ERASE) {
            eraser_tries(&r, it->key);
            plain_erase(&r, &name, &item);

        } else {
            us_store_seen(cluster.store, &item, 1);
            us_store_refuse(cluster.store, &item, 1);
        }

        it->status = item.status;
        it->id = item.id;
        it->again = item.again;
        it->gone = item.status == US_SEEN && others[item.id].gone;

        if (c->kind != ERASE) {
            reply_item(&r, it);
        }

        if (it->status == US_NEW && !it->again) {
            call_added(c, it->key);
        }
    }

    c->text = reply_text(&r, us_store_next_id(cluster.store));

    return 1;
}


/* it goes back to what it was, by the steps of docs/cluster.md */

static void
plain_restore(void)
{
    unsigned         i;
    us_store_conf_t  conf;

    us_store_close(cluster.store);
    memcpy(cluster.mem, cluster.backup, PLAIN_SIZE);
    cluster_open();

    cluster.restores++;
    us_store_conf(cluster.store, &conf);
    us_store_set_identity(cluster.store, conf.uuid,
                          conf.epoch + cluster.restores);
    us_store_map_restored(cluster.store);

    /* as is the file of a router on its machine */

    cluster.have[1] = cluster.maps[0];

    say("shard 1 is restored, with %llu ids",
        (unsigned long long) cluster.backed);
    mark(M_RESTORED);

    eraser_lost(0);

    for (i = 0; i < IDS; i++) {
        others[i].due = 0;
        others[i].gone = 0;

        if (others[i].key && i >= cluster.backed) {
            urls[others[i].key - 1].id = US_STORE_NO_ID;
            memset(&others[i], 0, sizeof(given_t));
        }
    }
}


static void
plain_events(void)
{
    if (!cluster.has_backup && nrecent > 10 && chance(3)) {
        memcpy(cluster.backup, cluster.mem, PLAIN_SIZE);
        cluster.backed = us_store_next_id(cluster.store);
        cluster.has_backup = 1;
        say("a backup of shard 1 is made");

    } else if (cluster.has_backup && cluster.restores == 0
               && cluster.published == cluster.maps[1] && chance(2))
    {
        plain_restore();
    }
}


/* of the operator: gives a shard the newest map, if it has not got it */

static int
map_apply(us_store_t *s)
{
    uint64_t               lsn;
    const us_map_t        *map;
    const us_store_map_t  *have;

    map = cluster.maps[cluster.applied - 1];
    have = us_store_map(s);

    if (have->number && have->version == map->version) {
        return 1;
    }

    (void) us_store_adopt(s, map, us_store_map_number(s), &lsn);

    return 0;
}


/* at a worker of shard 0, which may be no primary */

static void
map_apply_at(worker_t *w)
{
    us_life_t  *l;

    l = &w->l;

    if (!us_life_admits(l, US_WANTS_CHANGE)
        || us_map_shard(cluster.maps[cluster.applied - 1], 0) < 0)
    {
        return;
    }

    if (map_apply(l->store) && us_life_map_durable(l)
        && us_life_promised(l, us_store_published(l->store), US_STORE_NO_ID, 0)
        && us_store_map(cluster.store)->number
        && us_store_map(cluster.store)->version == cluster.applied
        && cluster.published != cluster.maps[cluster.applied - 1])
    {
        cluster.published = cluster.maps[cluster.applied - 1];
        say("routers can have map %u", cluster.applied);
        mark(M_GROWN);
    }
}


static void
operator_events(void)
{
    unsigned  i;

    if (cluster.applied == 1 && nrecent > 5 && chance(10)) {
        say("the cluster grows");
        cluster.applied = 2;

        if (chance(300)) {
            cluster.published = cluster.maps[1];
        }
    }

    if (chance(quiet ? 100 : cluster.restores ? 1 : 10)
        && us_map_shard(cluster.maps[cluster.applied - 1], 1) >= 0)
    {
        (void) map_apply(cluster.store);
    }

    /* one of them seldom looks */

    i = any(ROUTERS);

    if (chance(quiet ? 100 : 2) && (i == 0 || chance(50))) {
        cluster.have[i] = cluster.published;
    }
}


static void
call_ended(routed_t *q, call_t *c, const us_wire_end_t *end)
{
    if (c->shard == 0) {
        cluster.node[q->router] = us_wire_node(end, c->node,
                                               cluster.node[q->router]);
    }

    c->stage = CALL_NONE;
    c->lane->unsure = us_wire_unsure(end);
}


/* a call has no reply, or a node has refused it (503) */

static void
call_failed(routed_t *q, call_t *c, int sent, int refused)
{
    us_wire_end_t  end;

    memset(&end, 0, sizeof(end));
    end.code = refused ? 503 : 0;
    end.reads = c->kind == LOOK;
    end.sent = sent;
    end.refused = refused;

    c->serial = ++cluster.serials;
    c->request = NULL;

    if (c->shard == 0 && us_wire_again(&end) && c->tries < NODES) {
        c->node = (c->node + 1) % NODES;
        c->tries++;
        c->stage = CALL_WAITS;
        c->at = clock_ms + any(20);
        c->until = c->at + CALL_TIMEOUT;
        return;
    }

    if (!refused) {
        mark(M_UNANSWERED);
    }

    call_ended(q, c, &end);
    us_scatter_failed(&q->s, c->lane);
}


static void
call_replied(routed_t *q, call_t *c)
{
    us_wire_end_t  end;

    memset(&end, 0, sizeof(end));
    end.status = 200;
    end.code = 200;
    end.text = cluster_str(c->text);
    end.reads = c->kind == LOOK;
    end.sent = 1;

    assert_true(q->ntexts < 64);
    q->texts[q->ntexts++] = c->text;
    c->text = NULL;
    call_ended(q, c, &end);
    us_scatter_reply(&q->s, c->lane, end.text);
}


/* what the router does not wait for any more, and a node has before it */

static void
call_orphan(const call_t *c)
{
    call_t  *o;

    o = &cluster.orphans[any(ORPHANS)];
    *o = *c;
    o->stage = CALL_WAITS;
}


static void
call_step(routed_t *q, call_t *c)
{
    int  sent;

    if (c->stage == CALL_NONE || c->at > clock_ms) {
        return;
    }

    if (c->text) {
        call_replied(q, c);
        return;
    }

    if (c->shard == 1) {

        /* neither the call nor its reply is sure to come */

        if (!quiet && chance(20)) {
            call_failed(q, c, 1, 0);

        } else if (!plain_run(c)) {
            call_failed(q, c, 1, 1);

        } else if (!quiet && chance(20)) {
            free(c->text);
            c->text = NULL;
            call_failed(q, c, 1, 0);

        } else {
            call_replied(q, c);
        }

        return;
    }

    if (c->until <= clock_ms) {

        /* it was not even sent, or the node may have it any time later */

        sent = c->stage == CALL_RUNS || !chance(300);

        if (sent && c->stage == CALL_WAITS) {
            call_orphan(c);
        }

        call_failed(q, c, sent, 0);
        return;
    }

    /* the worker has refused it, or has died */

    if (c->stage == CALL_RUNS && c->request->call != c->serial) {
        call_failed(q, c, 1, 0);
    }
}


/* the next part of a lane */

static void
call_begin(routed_t *q, call_t *c, us_lane_t *lane)
{
    unsigned  i;

    if (us_scatter_part(&q->s, lane, 1 << 16) == 0) {
        return;
    }

    c->lane = lane;
    c->shard = q->s.map->shards[lane->shard].number;
    c->kind = lane->ask ? LOOK : q->kind;
    c->n = (unsigned) lane->part;
    c->map = q->s.map;
    c->token = c->kind == LOOK ? 0 : q->token;
    c->node = cluster.node[q->router] % NODES;
    c->tries = 1;
    c->stage = CALL_WAITS;
    c->at = clock_ms + (chance(50) ? any(3000) : any(30));
    c->until = c->at + CALL_TIMEOUT;
    c->serial = ++cluster.serials;
    c->text = NULL;
    c->request = NULL;

    for (i = 0; i < c->n; i++) {
        c->keys[i] = q->keys[lane->items[lane->at + i]];
    }
}


/* what its client is answered */

static void
routed_done(routed_t *q)
{
    unsigned            i;
    url_t              *u;
    us_scatter_item_t  *it;

    say("a router answers, token %u", q->token);

    for (i = 0; i < q->n && q->restores == cluster.restores; i++) {
        it = &q->s.items[i];
        u = &urls[q->keys[i]];

        say("  %s url %u: %s id %lld%s", kind_words[q->kind], q->keys[i],
            (const char *) us_answer_words[it->status].data,
            (long long) it->id, it->unsure ? ", or it may be done"
                                : it->moved ? ", it has moved" : "");

        switch (it->status) {

        case US_ANSWER_NEW:
        case US_ANSWER_SEEN:
            assert_int_equal(it->id >> US_SHARD_SHIFT, it->number);

            if (q->known[i] != US_STORE_NO_ID && !deletable(q->keys[i])) {
                assert_int_equal(it->id, q->known[i]);
            }

            assert_true(u->id == it->id || deletable(q->keys[i]));
            mark(it->status == US_ANSWER_NEW ? M_ROUTED_NEW : M_ROUTED_SEEN);
            break;

        case US_ANSWER_UNSEEN:
            assert_true(q->known[i] == US_STORE_NO_ID
                        || deletable(q->keys[i]));
            mark(M_ROUTED_DENIED);
            break;

        case US_ANSWER_ERASED:
            eraser_all(q->keys[i], q->known[i]);
            mark(M_ROUTED_ERASED);
            break;

        case US_ANSWER_REFUSED:
            assert_true(u->erasing);
            mark(M_ROUTED_REFUSED);
            break;

        default:

            /* this alone says that nothing was done */

            assert_false(q->done[i] && !it->unsure);
            mark(it->unsure ? M_ROUTED_UNSURE : M_ROUTED_UNAVAILABLE);
        }
    }

    routed_free(q);
}


static void
routed_step(routed_t *q)
{
    int       rc;
    unsigned  i, under_way;

    for (i = 0, under_way = 0; i < CALLS; i++) {
        call_step(q, &q->calls[i]);

        if (q->calls[i].stage == CALL_NONE && q->calls[i].lane) {
            call_begin(q, &q->calls[i], q->calls[i].lane);
        }

        under_way += q->calls[i].stage != CALL_NONE;
    }

    if (under_way) {
        return;
    }

    memset(q->calls, 0, sizeof(q->calls));
    rc = us_scatter_round(&q->s);
    assert_int_not_equal(rc, -1);

    if (rc == 1) {
        assert_true(q->s.nlanes <= CALLS);

        for (i = 0; i < q->s.nlanes; i++) {
            call_begin(q, &q->calls[i], &q->s.lanes[i]);
        }

        return;
    }

    if (us_scatter_moved(&q->s) && q->remaps < REMAPS
        && cluster.published->version > q->s.map->version)
    {
        q->remaps++;
        cluster.have[q->router] = cluster.published;
        mark(M_REMAPPED);
        assert_int_equal(us_scatter_remap(&q->s, cluster.published), 0);
        return;
    }

    routed_done(q);
}


static void
routed_begin(routed_t *q)
{
    char       url[64];
    unsigned   i;
    request_t  r;

    if (!request_make(&r, chance(400))
        || (r.kind != ADD && r.kind != LOOK && r.kind != ERASE))
    {
        return;
    }

    memset(q, 0, sizeof(*q));
    q->active = 1;
    q->router = any(ROUTERS);
    q->kind = r.kind;
    q->n = r.n;
    q->token = r.token || r.kind != ERASE ? r.token : ++tokens;
    q->restores = cluster.restores;

    assert_int_equal(us_scatter_init(&q->s, cluster.have[q->router],
                                     r.kind == ADD ? US_SCATTER_ADD
                                     : r.kind == ERASE ? US_SCATTER_ERASE
                                                       : US_SCATTER_SEEN), 0);

    for (i = 0; i < q->n; i++) {
        q->keys[i] = r.items[i].key;
        q->known[i] = urls[q->keys[i]].id;
        text_of(q->keys[i], url);
        assert_int_equal(us_scatter_url(&q->s, cluster_str(url)), 0);
    }
}


static void
routers(void)
{
    unsigned   i;
    routed_t  *q;

    if (!cluster.on) {
        return;
    }

    operator_events();

    if (!quiet) {
        plain_events();
    }

    for (i = 0; i < ROUTED; i++) {
        q = &cluster.routed[i];

        if (q->active) {
            routed_step(q);

        } else if (!quiet && chance(100)) {
            routed_begin(q);
        }
    }
}


/* a worker's next request: a call that has come to its node; NULL: none has */

static call_t *
call_for(const worker_t *w)
{
    unsigned  i;
    call_t   *c;

    for (i = 0; i < ROUTED * CALLS; i++) {
        c = &cluster.routed[i / CALLS].calls[i % CALLS];

        if (cluster.routed[i / CALLS].active && c->stage == CALL_WAITS
            && c->shard == 0 && c->at <= clock_ms
            && &nodes[c->node] == w->node)
        {
            return c;
        }
    }

    for (i = 0; i < ORPHANS; i++) {
        c = &cluster.orphans[i];

        if (c->stage == CALL_WAITS && &nodes[c->node] == w->node) {
            return c;
        }
    }

    return NULL;
}


static int
is_orphan(const call_t *c)
{
    return c >= cluster.orphans && c < cluster.orphans + ORPHANS;
}


/* 1: the slot has it now, or it was refused */

static int
call_take(worker_t *w, request_t *r)
{
    int                    i, refused;
    call_t                *c;
    us_life_t             *l;
    const us_store_map_t  *map;

    c = cluster.on ? call_for(w) : NULL;

    if (c == NULL) {
        return 0;
    }

    l = &w->l;
    refused = !us_life_admits(l, c->kind == LOOK ? 0 : US_WANTS_CHANGE);

    if (!refused) {
        map = us_store_map(l->store);
        refused = map->number == 0 || map->version < c->map->version;
    }

    if (refused) {

        if (is_orphan(c)) {
            c->stage = CALL_NONE;
            return 1;
        }

        i = (int) (((char *) c - (char *) cluster.routed) / sizeof(routed_t));
        call_failed(&cluster.routed[i], c, 1, 1);
        return 1;
    }

    memset(r, 0, sizeof(request_t));
    r->kind = c->kind;
    r->n = c->n;
    r->token = c->token;
    r->map = c->map;
    r->routed = 1;
    r->asks = 1;

    for (i = 0; i < (int) c->n; i++) {
        r->items[i].key = c->keys[i];
    }

    us_life_view(l, &r->view);
    r->stage = ADMITTED;

    if (is_orphan(c)) {
        c->stage = CALL_NONE;
        mark(M_ORPHAN);

    } else {
        r->call = c->serial;
        c->request = r;
        c->stage = CALL_RUNS;
    }

    return 1;
}


/* a worker has sent the reply to a call, which may not get there */

static void
call_reply(const request_t *r, uint64_t next_id)
{
    unsigned  i;
    call_t   *c;

    for (i = 0; r->call && i < ROUTED * CALLS; i++) {
        c = &cluster.routed[i / CALLS].calls[i % CALLS];

        if (cluster.routed[i / CALLS].active && c->serial == r->call
            && c->stage == CALL_RUNS && (quiet || chance(980)))
        {
            c->text = reply_text(r, next_id);
            return;
        }
    }
}


#endif /* _ROUTER_FAKE_H_INCLUDED_ */
