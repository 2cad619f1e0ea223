
/*
 * Sets: a model of bits that random runs are compared with, in all kinds of
 * containers; what they take, and give back; the store's answers, which are
 * new to one only, with a key to its retries; a drop, after which nothing of
 * the old set is found; and the same of a journal and of a dump.
 */


#include "store_zone.h"
#include "stream.h"
#include "same.h"
#include "members.h"
#include "store/us_store_private.h"

#include <string.h>


#define IDS    ((uint64_t) 1 << 21)
#define FAR    ((uint64_t) 5 << 32)   /* ids of another part of the tree */
#define RING   ((size_t) 1 << 18)
#define NOW    ((uint64_t) 1700000000)


static stream_t  journal, dump;


static us_str_t
text(const char *p)
{
    return us_str_of(p);
}


/* --- a model -------------------------------------------------------------- */

static uint8_t   model[2][IDS];
static uint32_t  rows[2];


static uint64_t
model_members(unsigned m)
{
    uint64_t  i, n;

    for (i = 0, n = 0; i < IDS; i++) {
        n += model[m][i];
    }

    return n;
}


/* each run is maximal or ends with its container, so it is followed further */

static void
model_check(us_arena_t *a, unsigned m)
{
    uint64_t        i, from;
    us_set_run_t    run;

    assert_int_equal(us_set_row(a, rows[m])->members, model_members(m));

    for (i = 0, from = FAR; us_set_next(a, rows[m], from, FAR + IDS, &run);
         from = run.last + 1)
    {
        assert_true(run.first >= from && run.last >= run.first);

        for ( /* void */ ; i < run.first - FAR; i++) {
            assert_int_equal(model[m][i], 0);
        }

        for ( /* void */ ; i <= run.last - FAR; i++) {
            assert_int_equal(model[m][i], 1);
        }
    }

    for ( /* void */ ; i < IDS; i++) {
        assert_int_equal(model[m][i], 0);
    }

    for (i = 0; i < 1000; i++) {
        from = rnd64() % IDS;
        assert_int_equal(us_set_has(a, rows[m], FAR + from), model[m][from]);
        assert_int_equal(us_set_has(a, rows[m], from), 0);
    }
}


/* what the counters of memory say is there */

static void
memory_check(us_arena_t *a, unsigned n)
{
    unsigned    i;
    uint64_t    all;
    members_t   m;

    for (i = 0, all = 0; i < n; i++) {
        memset(&m, 0, sizeof(members_t));
        members_add(a, rows[i], &m);
        assert_int_equal(us_set_row(a, rows[i])->bytes, m.bytes);
        assert_int_equal(m.astray, 0);
        all += m.bytes;
    }

    assert_int_equal(a->head->members_live, all);
    assert_true(us_area_bytes(a, US_AREA_MEMBERS) >= all);
}


/* runs of some size, at some distance from each other; within the model */

static void
model_change(us_arena_t *a, unsigned m, unsigned size, unsigned gap, int in)
{
    size_t         n;
    uint64_t       at;
    us_set_run_t   runs[300];

    n = 0;

    for (at = rnd(IDS); n < 300; n++) {
        runs[n].first = at + rnd(gap) + (n ? 2 : 0);
        runs[n].last = runs[n].first + rnd(size);
        at = runs[n].last;

        if (at >= IDS) {
            break;
        }

        memset(&model[m][runs[n].first], in, at - runs[n].first + 1);
        runs[n].first += FAR;
        runs[n].last += FAR;
    }

    assert_int_equal(us_set_change_locked(a, rows[m], runs, n, in, 0), n);
}


static void
test_model(void **state)
{
    void         *mem;
    unsigned      i, round;
    uint32_t      row;
    us_arena_t    a;

    static const unsigned  sizes[] = { 1, 1, 1, 3, 100, 5000, 70000 };
    static const unsigned  gaps[] = { 1, 4, 30, 300, 3000, 60000 };

    memset(model, 0, sizeof(model));
    mem = zone_map(&a, (size_t) 64 << 20);

    for (i = 0; i < 2; i++) {
        assert_int_equal(us_set_make_locked(&a, 100 + i, text(i ? "b" : "a"),
                                            NOW, NULL, &rows[i]), 0);
    }

    for (round = 0; round < 12000; round++) {
        i = rnd(2);

        model_change(&a, i, sizes[rnd(7)], gaps[rnd(6)],
                     round % 4000 < 2500 ? rnd(5) > 0 : rnd(5) == 0);

        if (round % 1000 == 999) {
            model_check(&a, i);
            memory_check(&a, 2);
        }
    }

    model_check(&a, 0);
    model_check(&a, 1);

    /* all of it is moved at times, and some chunks are dead */

    assert_true(a.head->members_reused > 0);

    /* a set that is dropped gives everything back, slice after slice */

    us_set_drop_locked(&a, rows[0], NULL);
    assert_int_equal(us_set_find(&a, text("a"), &row), 0);

    while (us_sets_tend_locked(&a)) { /* void */ }

    assert_int_equal(a.head->sets_dropped, 0);
    model_check(&a, 1);
    assert_int_equal(a.head->members_live, us_set_row(&a, rows[1])->bytes);

    us_set_drop_locked(&a, rows[1], NULL);

    while (us_sets_tend_locked(&a)) { /* void */ }

    assert_int_equal(a.head->members_live, 0);
    assert_true(a.head->area[US_AREA_MEMBERS].n <= 2);

    /* the rows are free again, and have nothing of before */

    assert_int_equal(us_set_make_locked(&a, 102, text("a"), NOW, NULL, &row),
                     0);
    assert_true(row < 2);
    assert_int_equal(us_set_has(&a, row, FAR + 5), 0);

    munmap(mem, (size_t) 64 << 20);
}


/* --- the store ------------------------------------------------------------ */

static zone_t *
zone(void)
{
    zone_t  *z;

    zone_conf.sets = 1;
    zone_conf.keys = 1 << 20;
    z = zone_create((size_t) 16 << 20, RING);
    zone_conf.sets = 0;
    zone_conf.keys = 0;

    us_store_time(z->store, NOW);

    return z;
}


static us_store_set_t
make(us_store_t *s, const char *name)
{
    uint64_t        lsn;
    us_store_set_t  set;

    assert_int_equal(us_store_set_make(s, text(name), 64, &set, &lsn), US_NEW);

    return set;
}


/*
 * One change into three containers, in one commit if it is journaled: of a set
 * that is empty, or has the id 5, to which its root leads, or one in a node.
 */

static void
levels(us_arena_t *a, us_store_set_t set, uint64_t had, uint64_t far,
    int with_op)
{
    size_t        i;
    us_set_run_t  run = { had, had };
    us_set_run_t  runs[] = { { 100, 110 }, { far - 3, far - 2 },
                             { far + 70000, far + 70000 } };

    if (had) {
        assert_int_equal(us_set_change_locked(a, set.row, &run, 1, 1, 0), 1);
    }

    assert_int_equal(us_set_change_locked(a, set.row, runs, 3, 1, with_op), 3);

    for (i = 0; i < 3; i++) {
        assert_true(us_set_has(a, set.row, runs[i].first));
        assert_true(us_set_has(a, set.row, runs[i].last));
        assert_false(us_set_has(a, set.row, runs[i].last + 1));
    }

    assert_int_equal(us_set_has(a, set.row, had), had != 0);
    assert_int_equal(us_set_row(a, set.row)->members, had ? 15 : 14);
}


static void
test_levels(void **state)
{
    zone_t          *z;
    uint64_t         lsn;
    unsigned         i, shift;
    us_store_set_t   set;

    static const uint64_t  had[] = { 0, 5, 70000 };

    z = zone();

    for (i = 0; i < 6; i++) {
        for (shift = 16; shift <= 34; shift++) {
            set = make(z->store, "levels");
            levels(&z->store->arena, set, had[i / 2], (uint64_t) 1 << shift,
                   i % 2);
            assert_int_equal(us_store_set_drop(z->store, set, &lsn), US_OK);
        }
    }

    zone_destroy(z);
}


/*
 * Changes of 60 ids in as many containers, until there is no more room; then a
 * container is emptied.  What a part of a change has taken is counted, no more.
 */

static void
test_counted(void **state)
{
    size_t           i, n;
    zone_t          *z;
    uint64_t         members, from;
    unsigned         full, parts;
    us_arena_t      *a;
    us_set_run_t     runs[60], run;
    us_set_row_t    *row;

    zone_conf.sets = 1;
    z = zone_create((size_t) 1 << 20, 0);
    zone_conf.sets = 0;
    a = &z->store->arena;
    rows[0] = make(z->store, "full").row;
    row = us_set_row(a, rows[0]);

    for (full = 0, parts = 0; full < 300; /* void */ ) {

        for (i = 0; i < 60; i++) {
            runs[i].first = (i * 4 + rnd(4)) << 16 | rnd(65536);
            runs[i].last = runs[i].first;
        }

        n = us_set_change_locked(a, rows[0], runs, 60, 1, 1);

        for (i = 0; i < n; i++) {
            assert_true(us_set_has(a, rows[0], runs[i].first));
        }

        if (n < 60) {
            full++;
            parts += n > 0;
            run.first = rnd(240) << 16;
            run.last = run.first | 0xffff;
            assert_int_equal(us_set_change_locked(a, rows[0], &run, 1, 0, 1),
                             1);
        }
    }

    assert_true(parts > 0);
    members = 0;

    for (from = 0; us_set_next(a, rows[0], from, FAR, &run);
         from = run.last + 1)
    {
        members += run.last - run.first + 1;
    }

    assert_int_equal(row->members, members);
    memory_check(a, 1);

    zone_destroy(z);
}


/*
 * A change for which there is room in part, again and again: chunks say then,
 * as before, that so much lives in them as there does.
 */

static void
test_cut(void **state)
{
    size_t         i;
    zone_t        *z;
    uint32_t      *chunks;
    uint64_t       living;
    us_arena_t    *a;
    us_set_run_t   runs[60], run;

    zone_conf.sets = 1;
    z = zone_create((size_t) 1 << 20, 0);
    zone_conf.sets = 0;
    a = &z->store->arena;
    rows[0] = make(z->store, "cut").row;

    /* a container in parts, each of which the change writes anew */

    for (i = 0; i < 3600; i++) {
        run.first = i * 18;
        run.last = run.first;
        assert_int_equal(us_set_change_locked(a, rows[0], &run, 1, 1, 0), 1);
    }

    for (i = 1; us_arena_fits(a, 1, 0)
                || a->head->members_end - a->head->members_at > 4000; i++)
    {
        run.first = i << 16;
        run.last = run.first;
        assert_int_equal(us_set_change_locked(a, rows[0], &run, 1, 1, 0), 1);
    }

    for (i = 0; i < 60; i++) {
        runs[i].first = i * 60 * 18 + 1;
        runs[i].last = runs[i].first;
    }

    for (i = 0; i < 100; i++) {
        assert_int_equal(us_set_change_locked(a, rows[0], runs, 60, 1, 1), 0);
    }

    chunks = (uint32_t *) (a->base + a->head->area[US_AREA_MEMBERS].directory);

    for (i = 0, living = 0; i < z->size >> a->chunk_shift; i++) {
        living += chunks[i] ? chunks[i] - 1 : 0;
    }

    assert_int_equal(living, a->head->members_live);
    memory_check(a, 1);

    zone_destroy(z);
}


static us_store_item_t
put(us_store_t *s, us_store_set_t set, const char *url, uint64_t name)
{
    us_store_key_t   key = { name, NOW + 300 };
    us_store_item_t  it;

    it = item(url, 0);
    us_store_add_set(s, &it, 1, set, name ? &key : NULL);

    return it;
}


static void
test_answers(void **state)
{
    zone_t               *z;
    uint64_t              lsn;
    uint32_t              row;
    us_store_t           *s;
    us_store_set_t        a, b, c;
    us_store_item_t       it, two[2];
    us_store_set_info_t   info;

    z = zone();
    s = z->store;
    a = make(s, "a");
    b = make(s, "b");
    assert_int_equal(us_store_set_make(s, text("a"), 64, &c, &lsn), US_SEEN);
    assert_int_equal(c.number, a.number);
    assert_int_equal(us_store_set_make(s, text("c"), 4, &c, &lsn), US_FULL);

    /* one is new to each set, and to the store once */

    it = put(s, a, "http://x.test/1", 0);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.stored, US_NEW);
    it = put(s, b, "http://x.test/1", 0);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.stored, US_SEEN);
    it = put(s, a, "http://x.test/1", 0);
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(it.stored, US_SEEN);
    assert_int_equal(it.id, 0);

    /* of two equal ones in a batch the first */

    two[0] = item("http://x.test/2", 0);
    two[1] = two[0];
    us_store_add_set(s, two, 2, a, NULL);
    assert_int_equal(two[0].status, US_NEW);
    assert_int_equal(two[1].status, US_SEEN);
    assert_int_equal(two[1].id, 1);

    two[0] = item("http://x.test/2", 0);
    two[1] = two[0];
    us_store_add_set(s, two, 2, b, NULL);
    assert_int_equal(two[0].status, US_NEW);
    assert_int_equal(two[0].stored, US_SEEN);
    assert_int_equal(two[1].status, US_SEEN);

    /* looked up */

    add(s, "http://x.test/3");
    two[0] = lookup(s, "http://x.test/3");
    two[1] = lookup(s, "http://x.test/2");
    us_store_members(s, a, two, 2);
    assert_int_equal(two[0].status, US_UNSEEN);
    assert_int_equal(two[0].stored, US_SEEN);
    assert_int_equal(two[1].status, US_SEEN);

    /* to a key again, and to no other; in its set only */

    it = put(s, a, "http://x.test/4", 77);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.again, 0);
    it = put(s, a, "http://x.test/4", 77);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.stored, US_NEW);
    assert_int_equal(it.again, 1);
    it = put(s, a, "http://x.test/4", 78);
    assert_int_equal(it.status, US_SEEN);
    it = put(s, a, "http://x.test/4", 0);
    assert_int_equal(it.status, US_SEEN);

    it = put(s, b, "http://x.test/4", 78);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.again, 0);
    it = put(s, b, "http://x.test/4", 77);
    assert_int_equal(it.status, US_SEEN);

    /* a mark is a set that is there */

    c = us_store_set(s, text("todo"));
    assert_int_equal(c.number, 2);
    assert_int_equal(put(s, c, "http://x.test/4", 0).status, US_NEW);
    assert_true(mark_has(s, 1, 3));

    /* what a set is told as */

    row = a.row;
    assert_int_equal(us_store_set_info(s, &row, &info), 1);
    assert_string(info.name.data, info.name.len, "a");
    assert_int_equal(info.members, 3);
    assert_int_equal(info.created, NOW);
    assert_int_equal(us_store_sets(s), 4);

    /* dropped: nobody who has found it changes anything */

    assert_int_equal(us_store_set_drop(s, a, &lsn), US_OK);
    assert_int_equal(us_store_set_drop(s, a, &lsn), US_GONE);
    assert_int_equal(put(s, a, "http://x.test/9", 0).status, US_GONE);
    assert_int_equal(us_store_next_id(s), 4);
    assert_int_equal(us_store_set(s, text("a")).number, 0);

    c = make(s, "a");
    assert_int_equal(c.row, a.row);
    assert_true(c.number > b.number);
    assert_int_equal(put(s, a, "http://x.test/1", 0).status, US_GONE);
    assert_int_equal(put(s, c, "http://x.test/1", 0).status, US_NEW);
    assert_int_equal(put(s, a, "http://x.test/1", 0).status, US_GONE);
    assert_int_equal(us_store_set_has(s, a, 0), 0);
    us_store_set_asked(s, a, 7);
    us_store_set_asked(s, c, 2);
    row = c.row;
    assert_int_equal(us_store_set_info(s, &row, &info), 1);
    assert_int_equal(info.asked, 2);

    /* nor does a key of the old one find the new one's */

    it = put(s, c, "http://x.test/4", 77);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.again, 0);

    us_store_fence(z->mem);
    assert_int_equal(put(s, c, "http://x.test/2", 0).status, US_FENCED);
    assert_int_equal(put(s, c, "http://x.test/1", 0).status, US_SEEN);
    assert_int_equal(us_store_set_drop(s, c, &lsn), US_FENCED);

    zone_destroy(z);
}


/* --- journal and dump ----------------------------------------------------- */

/* each set of the one is there in the other, of the same name and number */

static void
sets_same(us_store_t *x, us_store_t *y)
{
    uint32_t              row, n;
    uint64_t              id;
    us_store_set_t        set;
    us_store_set_info_t   info, other;

    assert_int_equal(us_store_sets(x), us_store_sets(y));

    for (row = 0; us_store_set_info(x, &row, &info); ) {
        set = us_store_set(y, info.name);
        assert_int_equal(set.number, info.set.number);

        n = set.row;
        assert_int_equal(us_store_set_info(y, &n, &other), 1);
        assert_int_equal(other.members, info.members);
        assert_int_equal(other.created, info.created);
        assert_true(other.bytes <= info.bytes);

        for (id = 0; id < us_store_next_id(x); id++) {
            assert_int_equal(us_store_set_has(y, set, id),
                             us_store_set_has(x, info.set, id));
        }
    }

    assert_true(us_head(y)->sets_last >= us_head(x)->sets_last);
}


static void
replay_to(us_store_t *s, const stream_t *st, uint64_t from, uint64_t to)
{
    ssize_t  n;

    for ( /* void */ ; from < to; from += n) {
        n = us_store_apply(s, st->data + from, to - from);
        assert_true(n > 0);
    }
}


static void
replay(us_store_t *s, const stream_t *st, uint64_t from)
{
    replay_to(s, st, from, st->len);
}


/*
 * A power failure leaves the operations up to some point (journal_power.c):
 * there the sets are what they were.
 */

#define POINTS  120

static struct {
    uint64_t  len, sum;
} points[POINTS];


static void
replay_points(us_store_t *s, uint64_t from)
{
    unsigned  i;

    for (i = 0; i < POINTS; i++) {
        if (points[i].len >= from) {
            replay_to(s, &journal, from, points[i].len);
            assert_true(same_sets_sum(s) == points[i].sum);
            from = points[i].len;
        }
    }

    replay(s, &journal, from);
}


static void
test_replay(void **state)
{
    char               url[64], name[8];
    zone_t            *z, *y;
    unsigned           i, k, n, in;
    uint64_t           lsn, dumped;
    us_store_t        *s;
    us_store_set_t     set;
    us_store_key_t     key;
    us_store_claim_t   c[300];
    us_store_item_t    it[40];
    char               urls[40][64];

    z = zone();
    s = z->store;
    journal.len = 0;
    dumped = 0;

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://x.test/%u", i);
        add(s, url);
        stream_drain(&journal, s);
    }

    for (i = 0; i < 6000; i++) {
        sprintf(name, "s%u", rnd(12));
        set = us_store_set(s, text(name));

        if (set.number == 0) {
            make(s, name);

        } else if (rnd(100) == 0) {
            assert_int_equal(us_store_set_drop(s, set, &lsn), US_OK);

        } else if (rnd(3)) {
            key.name = rnd(3) ? 0 : 1 + rnd(1000);
            key.until = NOW + 300;
            n = 1 + rnd(40);

            for (k = 0; k < n; k++) {
                sprintf(urls[k], "http://x.test/%u", rnd(4000));
                it[k] = item(urls[k], 0);
            }

            us_store_add_set(s, it, n, set, key.name ? &key : NULL);

        } else {
            n = 1 + rnd(300);
            in = rnd(3) > 0;

            for (k = 0; k < n; k++) {
                c[k].id = rnd(2) ? i % 1000 + k : rnd(3000);
            }

            us_store_set_put(s, set, c, n, in, NULL);
        }

        stream_drain(&journal, s);

        if (i % (6000 / POINTS) == 0) {
            points[i / (6000 / POINTS)].len = journal.len;
            points[i / (6000 / POINTS)].sum = same_sets_sum(s);
        }

        if (i == 3000) {
            dump.len = 0;
            assert_int_equal(us_store_dump(s, stream_put, &dump, &dumped), 0);
        }
    }

    y = zone();
    replay_points(y->store, 0);
    assert_int_equal(us_store_set_lsn(y->store, journal.len), 0);
    sets_same(s, y->store);
    zone_destroy(y);

    y = zone();
    replay(y->store, &dump, 0);
    replay_points(y->store, dumped);
    assert_int_equal(us_store_set_lsn(y->store, journal.len), 0);
    sets_same(s, y->store);

    /* twice the same, as after a dump that is newer than its LSN */

    replay(y->store, &journal, dumped);
    sets_same(s, y->store);
    zone_destroy(y);
    zone_destroy(z);
}


/* a mark that is declared when a set of its name is there is that set */

static void
test_marks(void **state)
{
    zone_t           *z, *y;
    unsigned          i;
    uint64_t          lsn, dumped;
    us_str_t          names[3];
    us_store_set_t    set;
    us_store_conf_t   conf;

    z = zone();
    journal.len = 0;
    set = make(z->store, "later");
    assert_int_equal(put(z->store, set, "http://x.test/", 0).status, US_NEW);

    names[0] = text("visited");
    names[1] = text("todo");
    names[2] = text("later");
    assert_int_equal(us_store_add_marks(z->store, names, 3), 0);
    assert_int_equal(us_store_set(z->store, names[2]).number, set.number);
    assert_int_equal(us_store_set_has(z->store, set, 0), 1);
    assert_int_equal(us_store_set_drop(z->store, set, &lsn), US_SEEN);
    stream_drain(&journal, z->store);

    dump.len = 0;
    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &dumped), 0);

    /*
     * A restart knows all marks from the beginning.  A dump brings its key, by
     * which they are found then.
     */

    for (i = 0; i < 8; i++) {
        us_store_conf(z->store, &conf);
        conf.hash_key[0] += i;
        y = malloc(sizeof(zone_t));
        y->size = (size_t) 16 << 20;
        y->mem = mmap(NULL, y->size, PROT_READ|PROT_WRITE,
                      MAP_ANONYMOUS|MAP_SHARED, -1, 0);
        assert_int_equal(us_store_format(y->mem, y->size, &conf), 0);
        y->store = us_store_open(y->mem, &zone_no_lock);
        replay(y->store, i ? &dump : &journal, 0);
        assert_int_equal(us_store_set_lsn(y->store, journal.len), 0);
        sets_same(z->store, y->store);
        set = us_store_set(y->store, names[2]);
        assert_int_equal(us_store_set_has(y->store, set, 0), 1);
        zone_destroy(y);
    }

    zone_destroy(z);
}


static void
test_damage(void **state)
{
    zone_t       *z;
    us_store_t   *s;

    z = zone();
    s = z->store;
    add(s, "http://x.test/");

    assert_int_equal(apply_op(s, US_OP_SET, 17, "12345678a", 9), 0);
    assert_int_equal(apply_op(s, US_OP_SET, 16, "12345678a", 9),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET, 18, "12345678", 8),
                     US_REPLAY_DAMAGED);

    /* numbers after which none would be left */

    assert_int_equal(apply_op(s, US_OP_SET, ((uint64_t) 1 << 63) - 1,
                           "12345678a", 9), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET_DROP, ((uint64_t) 1 << 63) - 1, "",
                              0), US_REPLAY_DAMAGED);
    assert_true(us_head(s)->sets_last == 17);

    assert_int_equal(apply_op(s, US_OP_SET_IN, 17, "\0", 1), 0);
    assert_int_equal(us_store_set_has(s, us_store_set(s, text("a")), 0), 1);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 17, "\2", 1), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 17, "\1", 1), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 17, "\1\1", 2),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 99, "\0", 1), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 17,
                           "\377\377\377\377\377\377\377\377\177\377", 10),
                     US_REPLAY_DAMAGED);

    /* a set that is gone: later operations of it are void */

    assert_int_equal(apply_op(s, US_OP_SET_DROP, 17, "", 0), 0);
    assert_int_equal(apply_op(s, US_OP_SET_IN, 17, "\0", 1), 0);
    assert_int_equal(us_store_set(s, text("a")).number, 0);
    assert_int_equal(apply_op(s, US_OP_SET_DROP, (uint64_t) 1 << 63, "", 0),
                     US_REPLAY_DAMAGED);

    zone_destroy(z);
}


/* URLs until the zone is full; returns how many */

static uint64_t
fill(us_store_t *s)
{
    char              url[64];
    uint64_t          n;
    us_store_item_t   it;

    for (n = 0; /* void */ ; n++) {
        snprintf(url, sizeof(url), "http://x.test/%llu",
                 (unsigned long long) (n * n));
        it = item(url, 0);
        us_store_add(s, &it, 1);

        if (it.status == US_FULL) {
            return n;
        }
    }
}


/*
 * A zone that is full has room for a first set and a member, and for more of
 * them if there was a set before; with less URLs then.  Without room, each of
 * two equal ids of a batch is one that is not in.
 */

static void
test_full(void **state)
{
    char               url[64];
    zone_t            *z;
    uint64_t           id, n, with;
    unsigned           i, full, added;
    us_store_t        *s;
    us_store_set_t     set;
    us_store_item_t    items[2];
    us_store_claim_t   ids[2];

    zone_conf.sets = 1;
    zone_conf.nmarks = 0;
    z = zone_create((size_t) 1 << 20, 0);
    make(z->store, "before");
    with = fill(z->store);
    zone_destroy(z);

    z = zone_create((size_t) 1 << 20, 0);
    zone_conf.sets = 0;
    zone_conf.nmarks = 2;
    s = z->store;
    n = fill(s);
    assert_true(n > with);

    ids[0].id = 0;
    us_store_set_put(s, make(s, "first"), ids, 1, 1, NULL);
    assert_int_equal(ids[0].status, US_NEW);

    for (i = 0, full = 0, added = 0; i < 64 && full < 1000; i++) {
        snprintf(url, sizeof(url), "set%u", i);
        set = make(s, url);

        for (id = i % 3; id < n; id += 3) {
            ids[0].id = id;
            ids[1].id = id;
            us_store_set_put(s, set, ids, 2, 1, NULL);
            assert_int_equal(ids[0].status != US_FULL,
                             us_store_set_has(s, set, id));
            assert_int_equal(ids[1].status,
                             ids[0].status == US_FULL ? US_FULL : US_SEEN);
            full += ids[0].status == US_FULL;

            if (id % 64 != 0) {
                continue;
            }

            /* the same of an add */

            snprintf(url, sizeof(url), "http://x.test/%llu",
                     (unsigned long long) ((id + 1) * (id + 1)));
            items[0] = item(url, 0);
            items[1] = items[0];
            us_store_add_set(s, items, 2, set, NULL);
            assert_int_equal(items[0].status != US_FULL,
                             us_store_set_has(s, set, id + 1));
            assert_int_equal(items[1].status,
                             items[0].status == US_FULL ? US_FULL : US_SEEN);
            added += items[0].status == US_FULL;
        }
    }

    assert_true(full > 0 && added > 0);
    zone_destroy(z);
}


/* --- names and numbers ---------------------------------------------------- */

#define NAMES  400

static uint64_t  numbers[NAMES];      /* 0: there is no such set */


static void
names_check(us_arena_t *a, unsigned n)
{
    char      name[16];
    uint32_t  row, same;

    sprintf(name, "crawl-%u", n);
    assert_int_equal(us_set_find(a, text(name), &row), numbers[n]);

    if (numbers[n]) {
        assert_int_equal(us_set_find_number(a, numbers[n], &same), numbers[n]);
        assert_int_equal(same, row);
        assert_int_equal(us_set_row(a, row)->number, numbers[n]);
    }
}


/*
 * Sets are found by name and by number while they come, go, and get other
 * numbers; after writers that were killed, which leave any lists; and by these
 * lists, not by a look at each row.
 */

static void
test_names(void **state)
{
    char          name[16];
    void         *mem;
    unsigned      i, n, round;
    uint32_t      row;
    uint64_t      number, gone;
    us_arena_t    a;
    us_head_t    *h;

    mem = zone_map(&a, (size_t) 16 << 20);
    h = a.head;
    memset(numbers, 0, sizeof(numbers));

    for (round = 0, number = 20, gone = 1; round < 30000; round++) {
        n = rnd(round % 10000 < 5000 ? NAMES : 40);
        sprintf(name, "crawl-%u", n);

        if (numbers[n] == 0) {
            numbers[n] = number++;
            assert_int_equal(us_set_make_locked(&a, numbers[n], text(name),
                                                NOW, NULL, &row), 0);
        } else {
            assert_int_equal(us_set_find(&a, text(name), &row), numbers[n]);
            gone = numbers[n];

            if (rnd(4)) {
                us_set_drop_locked(&a, row, NULL);
                numbers[n] = 0;

            } else {
                us_set_renumber_locked(&a, row, number, NOW);
                numbers[n] = number++;
            }
        }

        if (rnd(3) == 0) {
            while (us_sets_tend_locked(&a)) { /* void */ }
        }

        if (rnd(500) == 0) {
            h->sets_links |= 1;

            for (i = 0; i < h->sets_rows; i++) {
                us_set_row(&a, i)->links = rnd64();
            }

            names_check(&a, rnd(NAMES));
            assert_int_equal(us_set_find_number(&a, gone, &row), 0);

            if (rnd(2)) {
                (void) us_sets_tend_locked(&a);
                assert_int_equal(h->sets_links & 1, 0);
            }
        }

        names_check(&a, n);
        names_check(&a, rnd(NAMES));
        assert_int_equal(us_set_find_number(&a, gone, &row), 0);

        for (i = 0; round % 1000 == 999 && i < NAMES; i++) {
            names_check(&a, i);
        }
    }

    assert_true(h->sets > 100 && h->sets_rows <= NAMES + 1);
    (void) us_sets_tend_locked(&a);

    for (i = 0; i < h->sets_rows; i++) {
        us_set_row(&a, i)->links = 0;
    }

    for (i = 0; i < NAMES; i++) {
        sprintf(name, "crawl-%u", i);
        assert_int_equal(us_set_find(&a, text(name), &row), 0);
        assert_int_equal(us_set_find_number(&a, numbers[i], &row), 0);
    }

    munmap(mem, (size_t) 16 << 20);
}


/*
 * As many sets as there may be, and not one more, also in a replay; the place
 * of one that is dropped is for another one.
 */

static void
test_most(void **state)
{
    char              name[16];
    zone_t           *z;
    unsigned          i;
    uint32_t          row;
    uint64_t          lsn;
    us_store_t       *s;
    us_store_set_t    set, last;

    zone_conf.sets = 1;
    zone_conf.nmarks = 0;
    z = zone_create((size_t) 64 << 20, 0);
    zone_conf.sets = 0;
    zone_conf.nmarks = 2;
    s = z->store;

    for (i = 0; i <= US_STORE_SETS; i++) {
        sprintf(name, "crawl-%u", i);
        assert_int_equal(us_store_set_make(s, text(name), US_STORE_SETS, &set,
                                           &lsn),
                         i < US_STORE_SETS ? US_NEW : US_FULL);
        last = i < US_STORE_SETS ? set : last;
    }

    assert_int_equal(put(s, last, "http://x.test/1", 0).status, US_NEW);

    for (i = 0; i < US_STORE_SETS; i += 4369) {
        sprintf(name, "crawl-%u", i);
        set = us_store_set(s, text(name));
        assert_int_not_equal(set.number, 0);
        assert_int_equal(us_store_set_has(s, set, 0), 0);
    }

    /* an operation of a journal makes no more, either */

    assert_int_not_equal(us_set_make_locked(&s->arena, last.number + 1,
                                            text("more"), NOW, NULL, &row), 0);

    assert_int_equal(us_store_set_drop(s, last, &lsn), US_OK);

    while (us_sets_tend_locked(&s->arena)) { /* void */ }

    assert_int_equal(us_store_set_make(s, text("more"), US_STORE_SETS, &set,
                                       &lsn), US_NEW);
    assert_int_equal(us_store_set_has(s, set, 0), 0);
    assert_int_equal(us_store_set(s, text("crawl-65534")).number, 0);

    zone_destroy(z);
}


/* bytes of a member, in the figures of docs/decisions/sets.md */

static void
test_bytes(void **state)
{
    void           *mem;
    char            name[8];
    size_t          size;
    uint32_t        row;
    uint64_t        i, k, n, id;
    us_arena_t      a;
    us_set_run_t    run, some[512];

    mem = zone_map(&a, (size_t) 2 << 30);
    assert_int_equal(us_set_make_locked(&a, 20, text("a"), NOW, NULL,
                                        &rows[0]), 0);

    /* what was stored in a day; then it is dropped */

    n = 1000 * 1000;
    run.first = 77 * n;
    run.last = run.first + n - 1;
    assert_int_equal(us_set_change_locked(&a, rows[0], &run, 1, 1, 0), 1);
    assert_true(us_area_bytes(&a, US_AREA_MEMBERS) < n * 15 / 100);
    us_set_drop_locked(&a, rows[0], NULL);

    while (us_sets_tend_locked(&a)) { /* void */ }

    /* empty sets */

    for (i = 0; i < 1000; i++) {
        sprintf(name, "s%u", (unsigned) i);
        assert_int_equal(us_set_make_locked(&a, 21 + i, text(name), NOW, NULL,
                                            &row), 0);
        rows[0] = i ? rows[0] : row;
    }

    assert_true(us_area_bytes(&a, US_AREA_SETS) < 1000 * 256);

    /* 1 % of all, at random */

    for (i = 0; i < n; i++) {
        run.first = rnd64() % (100 * 1000 * 1000);
        run.last = run.first;
        (void) us_set_change_locked(&a, rows[0], &run, 1, 1, 0);
    }

    assert_true(us_area_bytes(&a, US_AREA_MEMBERS)
                < us_set_row(&a, rows[0])->members * 26 / 10);

    us_set_drop_locked(&a, rows[0], NULL);

    while (us_sets_tend_locked(&a)) { /* void */ }

    munmap(mem, (size_t) 2 << 30);

    /*
     * Half of all, in order, in chunks of 16 KB and of 64 KB.  Cleaning ends,
     * also where more than a 24th of 4 MB are ends of chunks.
     */

    for (size = (size_t) 512 << 20; size <= (size_t) 2 << 30; size *= 4) {
        mem = zone_map(&a, size);
        assert_int_equal(us_set_make_locked(&a, 20, text("a"), NOW, NULL,
                                            &rows[0]), 0);

        for (i = 0; i < (size >> 30 ? 20 : 32) * n; i += 512) {
            for (k = 0, id = i; id < i + 512; id++) {
                if (rnd(2)) {
                    some[k].first = id;
                    some[k++].last = id;
                }
            }

            (void) us_set_change_locked(&a, rows[0], some, k, 1, 0);
        }

        for (i = 0; us_sets_tend_locked(&a); i++) {
            assert_true(i < 1000);
        }

        assert_true(us_area_bytes(&a, US_AREA_MEMBERS)
                    < us_set_row(&a, rows[0])->members
                      * (size >> 30 ? 28 : 29) / 100);

        munmap(mem, size);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
