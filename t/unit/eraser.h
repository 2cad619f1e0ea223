
/*
 * Clients that erase, for t/unit/simulate.c, which includes it, in two thirds
 * of the seeds; by routers (router_fake.h), URLs alone:
 *
 *     ERASE    URLs, some with a token and sent again by it
 *     SITE     a site, whose request waits for the sweep
 *     LIFT     any erasure, also one that others go on with
 *
 * Any worker that is killed, stopped or deposed may be in the middle of one,
 * and its erasure is completed by a sweep, here or at the next primary.
 *
 * When an erasure was answered, none of the ids that a URL had is an answer any
 * more, and the URL is refused until somebody may have lifted the erasure; it
 * has a new id then.  An add is refused only if somebody has tried to erase it.
 * In the end all erasures are done at all nodes: no record has the URL, no
 * worker is left to wipe, and no row of the log is from before.
 */


#ifndef _ERASER_H_INCLUDED_
#define _ERASER_H_INCLUDED_


#define ERASE_WITHIN  40000           /* ms */
#define ERASE_SITE    "site7.test"    /* its host, */
#define ERASE_NUMBERS 1024


static struct {
    int        lifting[ERASE_NUMBERS];  /* somebody has tried to lift it */
    uint64_t   last;                    /* number that was answered */
    uint32_t   keys[RECENT];            /* that were erased last */
    unsigned   nkeys;
} eraser;


static void
eraser_begin(uint64_t seed)
{
    memset(&eraser, 0, sizeof(eraser));
    store.erases = seed % 4 == 1 || seed % 4 == 2 || seed % 16 == 7
                   || seed % 8 == 4;
}


static int
erases(kind_t kind)
{
    return kind == ERASE || kind == SITE || kind == LIFT;
}


/* whether an acknowledged erasure refuses this URL */

static int
eraser_bars(uint32_t key)
{
    uint64_t  number;

    number = urls[key].barred;

    return number && !eraser.lifting[number];
}


/* somebody tries to erase it, or all of the site */

static void
eraser_tries(const request_t *r, uint32_t key)
{
    if (r->kind == ERASE) {
        urls[key].erasing = 1;
        urls[key].undone++;
        return;
    }

    for (key = 0; key < KEYS; key++) {
        if (of_site(key)) {
            urls[key].erasing = 1;
            urls[key].undone++;
        }
    }
}


/* what a request erases */

static int
eraser_make(request_t *r)
{
    unsigned  i;

    if (!store.erases || !chance(250)) {
        return 0;
    }

    /* a cluster has no number for all shards, by which one is lifted */

    i = any(cluster.on ? 10 : 20);
    r->kind = i < 10 ? ERASE : i < 11 ? SITE : LIFT;
    r->n = r->kind == ERASE ? 1 + any(BATCH) : 1;

    if (r->kind == LIFT) {
        r->number = urls[eraser.keys[any(RECENT)]].barred;

        if (r->number == 0 || chance(200)) {
            r->number = 1 + any((unsigned) eraser.last + 1);
        }
    }

    for (i = 0; i < r->n; i++) {
        r->items[i].key = chance(500) ? recent[any(RECENT)] : any(KEYS);

        if (!deletable(r->items[i].key)) {
            r->items[i].key -= r->items[i].key % 8;
            r->items[i].key += any(3);
        }
    }

    return 1;
}


/* the end of a request that has no answer, as of its cleanup */

static void
request_drop(worker_t *w, request_t *r)
{
    r->stage = FREE;

    if ((r->kind == ERASE || r->kind == SITE) && r->number && w->l.store) {
        us_store_erasure_leave(w->l.store, r->number);
    }
}


/* US_OK: all of it is done, or the status of what was not */

static us_store_status_t
eraser_step(worker_t *w, request_t *r)
{
    char                url[64];
    item_t             *it;
    uint8_t             random[16];
    uint64_t            lsn;
    us_life_t          *l;
    us_store_t         *s;
    us_store_key_t      name;
    us_store_item_t     item;
    us_store_status_t   status;
    us_erasure_info_t   e;

    l = &w->l;
    s = l->store;
    lsn = 0;

    if (r->kind == LIFT) {
        eraser.lifting[r->number] = 1;
        status = us_store_erasure_lift(s, r->number, &r->lsn);
        return status;
    }

    if (r->number == 0) {
        name.name = r->token;
        name.until = UINT32_MAX;
        (void) getrandom(random, sizeof(random), 0);

        status = us_store_erasure_begin(s, r->kind == SITE ? US_ERASURE_SITE
                                                           : US_ERASURE_URLS,
                                        us_str_of("a reason"), random, l->self,
                                        r->token ? &name : NULL, &r->number,
                                        &r->lsn);

        if (status != US_NEW && status != US_SEEN) {
            return status;
        }

        assert_true(r->number < ERASE_NUMBERS);
    }

    if (r->kind == SITE) {

        if (r->since == 0) {
            eraser_tries(r, 0);
        }

        status = us_life_erase_site(l, r->number, us_str_of(ERASE_SITE),
                                    &r->since, &r->lsn);

        if (status == US_OK) {
            (void) us_store_erasure(s, r->number, &e);
            r->top = e.state == US_ERASURE_DONE ? us_store_next_id(s) : 0;
        }

        return status;
    }

    while (r->erased < r->n) {
        it = &r->items[r->erased];
        item = item_of(it->key, url);

        eraser_tries(r, it->key);
        us_life_deleting(l);
        lsn = us_store_erase(s, r->number, &item, 1);
        us_life_deleted(l, lsn);

        if (item.status != US_ERASED && item.status != US_MOVED) {
            return item.status;
        }

        it->status = item.status;
        it->id = item.id;
        r->lsn = lsn > r->lsn ? lsn : r->lsn;
        r->top = us_store_next_id(s);
        r->erased++;

        /* what follows comes later, maybe */

        if (!quiet && chance(100)) {
            return US_BUSY;
        }
    }

    status = us_store_erasure_done(s, r->number, &lsn);
    r->lsn = lsn > r->lsn ? lsn : r->lsn;

    return status;
}


/* the request is done, goes on later, or is refused */

static void
eraser_run(worker_t *w, request_t *r)
{
    switch (eraser_step(w, r)) {

    case US_OK:
        r->done = r->n;
        return;

    case US_BUSY:
        return;

    case US_FENCED:
        mark(M_REFUSED);
        break;

    /* it was lifted meanwhile, or there is no such erasure */

    case US_GONE:
    case US_UNKNOWN:
        break;

    default:
        fail();
    }

    request_drop(w, r);
}


static void
eraser_barred(uint32_t key, uint64_t number, uint64_t lsn)
{
    eraser.keys[eraser.nkeys++ % RECENT] = key;

    if (!eraser.lifting[number]) {
        urls[key].barred = number;
        urls[key].barred_lsn = lsn;
    }
}


/* all that a URL was, up to an id, is gone; it is refused, here at least */

static void
eraser_gone(const request_t *r, uint32_t key)
{
    unsigned  id;

    for (id = 0; id < r->top; id++) {
        if (ids[id].key == key + 1) {
            ids[id].gone = 1;
            ids[id].erased = 1;
            ids[id].lsn = ids[id].lsn > r->lsn ? ids[id].lsn : r->lsn;
        }
    }

    if (!cluster.on) {
        eraser_barred(key, r->number, r->lsn);
    }
}


/* the same in all of a cluster; the backup of shard 1 may be from before */

static void
eraser_all(uint32_t key, uint64_t id)
{
    given_t  *g;

    g = id >> US_SHARD_SHIFT ? others : ids;
    g += id & ((UINT64_C(1) << US_SHARD_SHIFT) - 1);

    if (id != US_STORE_NO_ID && g->key == key + 1) {
        g->gone = 1;
    }

    eraser_barred(key, 1, cluster.has_backup);
}


static void
eraser_reply(const request_t *r)
{
    try_t         *t;
    unsigned       i;
    uint32_t       key;
    const item_t  *it;

    say("  %s, erasure %llu, of ids below %llu", kind_words[r->kind],
        (unsigned long long) r->number, (unsigned long long) r->top);

    assert_true(r->top <= IDS);
    eraser.last = r->number > eraser.last ? r->number : eraser.last;

    if (r->kind == LIFT) {
        mark(M_LIFTED);
        return;
    }

    for (key = 0; r->kind == SITE && r->top && key < KEYS; key++) {
        if (of_site(key)) {
            mark(M_ERASED_SITE);
            eraser_gone(r, key);
        }
    }

    if (r->kind == SITE) {
        return;
    }

    for (i = 0; i < r->n; i++) {
        it = &r->items[i];

        if (it->status == US_MOVED) {
            continue;
        }

        say("  erases url %u: id %lld", it->key, (long long) it->id);

        if (it->id < IDS) {
            assert_true(ids[it->id].key == 0
                        || ids[it->id].key == it->key + 1);
            ids[it->id].key = it->key + 1;
            mark(M_ERASED);
        }

        eraser_gone(r, it->key);
    }

    /* one erasure to a token, unless it was lifted before a retry */

    t = try_of(r->token);

    if (t && !eraser.lifting[r->number]) {
        assert_true(t->number == 0 || eraser.lifting[t->number]
                    || t->number == r->number);
        t->number = r->number;
    }
}


/* what follows an LSN is lost */

static void
eraser_lost(uint64_t lsn)
{
    unsigned  i;

    for (i = 0; i < KEYS; i++) {
        if (urls[i].barred_lsn > lsn) {
            urls[i].barred = 0;
        }
    }

    for (i = 0; i < TRIES; i++) {
        tries[i].number = 0;
    }
}


static void
eraser_sweep(us_life_t *l)
{
    int                 passes;
    unsigned            n;
    us_store_status_t   status;

    if (!us_life_sweep_due(l)) {
        return;
    }

    n = 1 + any(8);

    do {
        passes = l->sweep.pass != NULL;
        status = us_life_sweep(l);
        assert_true(status != US_FULL);

        if (passes && status == US_NEW && !l->sweep.begun) {
            mark(M_SWEPT);
        }

    } while (status == US_NEW && --n);
}


static void
eraser_wipe(us_life_t *l)
{
    uint64_t  lsn;

    lsn = us_life_wipe_due(l);

    if (lsn == 0) {
        return;
    }

    if (us_life_busy(l)) {
        us_life_hold(l, us_life_busy(l));
        mark(M_HELD);
        return;
    }

    us_life_forget(l);
    us_store_wipe(l->store);
    us_life_wiped(l, lsn);

    if (l->member->wiped == lsn) {
        mark(M_WIPED);
    }
}


/* of a worker, in its event loop */

static void
eraser_tick(worker_t *w)
{
    if (store.erases) {
        us_store_time(w->l.store, now_s(w->node));
        eraser_sweep(&w->l);
        eraser_wipe(&w->l);
    }
}


/* the worker has died: what was its own alone */

static void
eraser_end(worker_t *w)
{
    if (w->l.sweep.pass) {
        us_erase_free(w->l.sweep.pass);
    }

    free(w->l.sweep.numbers);
}


/* all is done, at this node, too */

static void
eraser_check(us_life_t *l)
{
    size_t              len;
    uint8_t             buf[US_URL_MAX + 8];
    unsigned            i, left;
    uint64_t            id, n;
    fake_server_t      *s;
    us_erasure_info_t   e;

    for (n = 1; n <= us_store_erasures(l->store); n++) {
        assert_int_equal(us_store_erasure(l->store, n, &e), 1);
        left = us_life_left(l, &e);

        if (us_life_state(l) != US_LIFE_READY) {
            left &= ~US_LEFT_LOG;
        }

        if (e.done == 0 || left) {
            print_error("erasure %llu of %llu, done %llu, gone %llu, left %x\n",
                        (unsigned long long) n, (unsigned long long) e.created,
                        (unsigned long long) e.done,
                        (unsigned long long) e.gone, left);
            fail();
        }
    }

    for (id = 0; id < us_store_next_id(l->store); id++) {
        if (id < IDS && ids[id].erased) {
            assert_int_equal(us_store_text(l->store, id, buf, &len),
                             US_DELETED);
            mark(M_NO_TEXT);
        }
    }

    s = &fake.servers[fake.current];

    for (i = 1; !follow.on && i < s->nrows; i++) {
        assert_true(s->rows[i].row.lsn >= us_store_erased_lsn(l->store));
    }
}


#endif /* _ERASER_H_INCLUDED_ */
