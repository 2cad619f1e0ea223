
/*
 * Erasures: what is on the list is refused, in which spellings, until it is
 * lifted; what was stored is deleted; a list that grows and shrinks; a sweep
 * that completes what others have left; all of it after a restart, from the
 * journal cut anywhere and from a dump.  And a model, which random changes are
 * compared with.
 */


#include "store_zone.h"
#include "stream.h"
#include "store/us_erasures.h"
#include "store/us_store_private.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>


#define ZONE   ((size_t) 16 << 20)
#define RING   ((size_t) 1 << 18)
#define NOW    ((uint64_t) 1700000000)
#define TEXT(s)  ((us_str_t) { strlen(s), (const uint8_t *) (s) })


static const uint8_t  *list_key = (const uint8_t *) "the key of lists";

static stream_t  journal, dump;


static zone_t *
zone_of(size_t size, size_t ring)
{
    zone_t  *z;

    zone_conf.erases = 1;
    z = zone_create(size, ring);
    zone_conf.erases = 0;

    us_store_time(z->store, NOW);

    return z;
}


static zone_t *
zone(void)
{
    return zone_of(ZONE, RING);
}


static uint64_t
begin(us_store_t *s, us_erasure_kind_t kind, us_process_t owner)
{
    uint64_t  number, lsn;

    assert_int_equal(us_store_erasure_begin(s, kind, TEXT("why"), list_key,
                                            owner, NULL, &number, &lsn),
                     US_NEW);

    return number;
}


static us_store_item_t
merged(const char *url, unsigned merge)
{
    us_store_item_t  it;

    it = item(url, 0);
    it.merge = merge;

    return it;
}


static us_store_item_t
erase(us_store_t *s, uint64_t number, const char *url, unsigned merge)
{
    us_store_item_t  it;

    it = merged(url, merge);
    us_store_erase(s, number, &it, 1);

    return it;
}


static us_store_status_t
put(us_store_t *s, const char *url, unsigned merge)
{
    us_store_item_t  it;

    it = merged(url, merge);
    us_store_add(s, &it, 1);

    return it.status;
}


static us_erasure_info_t
info(us_store_t *s, uint64_t number)
{
    static us_erasure_info_t  i;    /* a copy's reason lies in this one */

    assert_true(us_store_erasure(s, number, &i));
    assert_int_equal(i.number, number);

    return i;
}


/* a zone of another key that the stream has made */

static zone_t *
replay(const stream_t *st, size_t len, size_t size)
{
    zone_t  *z;

    z = zone_of(size, 0);
    us_head(z->store)->hash_key[0] ^= 0xff;
    assert_int_equal(us_store_apply(z->store, st->data, len), len);
    assert_int_equal(us_store_settle(z->store), 0);

    return z;
}


/* both have the same erasures, in the same state */

static void
same(us_store_t *a, us_store_t *b)
{
    uint64_t           n;
    us_erasure_info_t  x, y;

    assert_int_equal(us_store_erasures(a), us_store_erasures(b));
    assert_int_equal(us_head(a)->erasures_open, us_head(b)->erasures_open);
    assert_int_equal(us_head(a)->erasures_live, us_head(b)->erasures_live);
    assert_int_equal(us_head(a)->deleted, us_head(b)->deleted);

    for (n = 1; n <= us_store_erasures(a); n++) {
        x = info(a, n);
        y = info(b, n);
        assert_int_equal(x.kind, y.kind);
        assert_int_equal(x.state, y.state);
        assert_int_equal(x.created, y.created);
        assert_int_equal(x.done, y.done);
        assert_int_equal(x.lifted, y.lifted);
        assert_int_equal(x.listed, y.listed);
        assert_int_equal(x.deleted, y.deleted);
        assert_int_equal(x.gone, y.gone);
        assert_int_equal(us_str_compare(x.reason, y.reason), 0);
    }
}


static void
test_one(void **state)
{
    zone_t             *z;
    uint64_t            n, lsn, before;
    us_store_t         *s;
    us_store_item_t     it;
    us_erasure_info_t   i;

    z = zone();
    s = z->store;

    assert_int_equal(add(s, "http://a.test/1").id, 0);
    assert_int_equal(add(s, "http://a.test/2").id, 1);
    assert_int_equal(us_store_erasures(s), 0);
    assert_false(us_store_erasure(s, 0, &i));
    assert_false(us_store_erasure(s, 1, &i));

    n = begin(s, US_ERASURE_URLS, 0);
    assert_int_equal(n, 1);
    i = info(s, 1);
    assert_int_equal(i.state, US_ERASURE_DELETING);
    assert_int_equal(i.created, NOW);
    assert_int_equal(us_str_compare(i.reason, TEXT("why")), 0);

    /* one that is stored, and one that never was */

    before = us_store_published(s);
    it = erase(s, n, "http://a.test/1", 0);
    assert_int_equal(it.status, US_ERASED);
    assert_int_equal(it.id, 0);
    assert_true(us_store_published(s) > before);

    it = erase(s, n, "http://never.test/", 0);
    assert_int_equal(it.status, US_ERASED);
    assert_true(it.id == US_STORE_NO_ID);

    assert_true(us_store_deleted(s, 0));
    assert_false(us_store_deleted(s, 1));
    assert_int_equal(lookup(s, "http://a.test/1").status, US_UNSEEN);
    assert_int_equal(lookup(s, "http://never.test/").status, US_UNSEEN);
    assert_int_equal(put(s, "http://a.test/1", 0), US_ERASED);
    assert_int_equal(put(s, "http://never.test/", 0), US_ERASED);
    assert_int_equal(put(s, "http://a.test/2", 0), US_SEEN);
    assert_int_equal(put(s, "http://a.test/3", 0), US_NEW);
    assert_int_equal(us_store_next_id(s), 3);

    /* the same again changes nothing */

    before = us_store_published(s);
    assert_int_equal(erase(s, n, "http://a.test/1", 0).status, US_ERASED);
    assert_int_equal(us_store_published(s), before);

    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    assert_int_equal(lsn, us_store_published(s));
    i = info(s, n);
    assert_int_equal(i.state, US_ERASURE_DONE);
    assert_int_equal(i.done, NOW);
    assert_int_equal(i.listed, 2);
    assert_int_equal(i.deleted, 1);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    assert_int_equal(us_store_erasure_done(s, 2, &lsn), US_UNKNOWN);
    assert_int_equal(us_store_erasure_lift(s, 0, &lsn), US_UNKNOWN);

    /* another erasure of the same URL: one that is lifted does not lift it */

    n = begin(s, US_ERASURE_URLS, 0);
    assert_int_equal(n, 2);
    assert_int_equal(erase(s, n, "http://a.test/1", 0).status, US_ERASED);
    assert_int_equal(info(s, 2).listed, 1);

    us_store_time(s, NOW + 10);
    assert_int_equal(us_store_erasure_lift(s, 1, &lsn), US_OK);
    i = info(s, 1);
    assert_int_equal(i.state, US_ERASURE_LIFTED);
    assert_int_equal(i.lifted, NOW + 10);
    assert_int_equal(i.done, NOW);
    assert_int_equal(erase(s, 1, "http://a.test/2", 0).status, US_GONE);
    assert_int_equal(put(s, "http://never.test/", 0), US_NEW);
    assert_int_equal(put(s, "http://a.test/1", 0), US_ERASED);

    assert_int_equal(us_store_erasure_lift(s, 2, &lsn), US_OK);
    assert_int_equal(us_store_erasure_lift(s, 2, &lsn), US_OK);
    assert_int_equal(info(s, 2).done, NOW + 10);
    assert_int_equal(us_head(s)->erasures_live, 0);
    assert_int_equal(us_head(s)->erasures_open, 0);
    it = add(s, "http://a.test/1");
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.id, 4);
    assert_true(us_store_deleted(s, 0));

    zone_destroy(z);
}


/* a URL that the hot table of a handle knows */

static void
test_hot(void **state)
{
    zone_t           *z;
    uint64_t          n;
    us_hot_t         *hot;
    us_store_t       *s;
    us_store_item_t   it;

    z = zone();
    s = z->store;
    hot = us_hot_create(1 << 16);
    assert_non_null(hot);
    us_store_hot(s, hot, NULL);

    add(s, "http://a.test/1");
    add(s, "http://www.a.test/2");
    assert_int_equal(lookup(s, "http://a.test/1").status, US_SEEN);
    assert_int_equal(lookup(s, "http://www.a.test/2").status, US_SEEN);

    n = begin(s, US_ERASURE_URLS, 0);
    it = erase(s, n, "http://a.test/1", 0);
    assert_int_equal(it.status, US_ERASED);
    assert_int_equal(it.id, 0);
    assert_int_equal(erase(s, n, "http://www.a.test/2", 0).id, 1);
    assert_true(us_store_deleted(s, 0) && us_store_deleted(s, 1));
    assert_int_equal(lookup(s, "http://a.test/1").status, US_UNSEEN);
    assert_int_equal(put(s, "http://www.a.test/2", 0), US_ERASED);

    zone_destroy(z);
    us_hot_destroy(hot);
}


/* which URLs one entry is of */

static void
test_spellings(void **state)
{
    zone_t      *z;
    uint64_t     n;
    us_store_t  *s;

    z = zone();
    s = z->store;
    n = begin(s, US_ERASURE_URLS, 0);

    /* schemes are kept, and "www." counts */

    erase(s, n, "http://www.a.test/x", 0);
    assert_int_equal(put(s, "http://www.a.test/x", 0), US_ERASED);
    assert_int_equal(put(s, "http://a.test/x", 0), US_NEW);
    assert_int_equal(put(s, "https://www.a.test/x", 0), US_NEW);
    assert_int_equal(put(s, "http://www.a.test/x?", 0), US_NEW);

    erase(s, n, "http://b.test/x", 0);
    assert_int_equal(put(s, "http://b.test/x", 0), US_ERASED);
    assert_int_equal(put(s, "http://www.b.test/x", 0), US_NEW);

    /* it does not count: both, also when it counts later */

    erase(s, n, "http://www.c.test/x", US_MERGE_FIRST);
    assert_int_equal(put(s, "http://c.test/x", US_MERGE_FIRST), US_ERASED);
    assert_int_equal(put(s, "http://www.c.test/x", US_MERGE_FIRST), US_ERASED);
    assert_int_equal(put(s, "http://www.c.test/x", 0), US_ERASED);
    assert_int_equal(put(s, "http://c.test/x", 0), US_ERASED);

    erase(s, n, "https://d.test/", US_MERGE_STRIP);
    assert_int_equal(put(s, "https://www.d.test/", US_MERGE_STRIP), US_ERASED);
    assert_int_equal(put(s, "http://d.test/", US_MERGE_STRIP), US_NEW);

    /* it counted, and does not any more */

    erase(s, n, "http://e.test/", 0);
    assert_int_equal(put(s, "http://www.e.test/", US_MERGE_FIRST), US_ERASED);
    assert_int_equal(put(s, "http://www.e.test/", 0), US_NEW);

    /* one spelling after the other */

    erase(s, n, "http://f.test/", 0);
    erase(s, n, "http://www.f.test/", 0);
    assert_int_equal(put(s, "http://f.test/", 0), US_ERASED);
    assert_int_equal(put(s, "http://www.f.test/", 0), US_ERASED);
    assert_int_equal(info(s, n).listed, 6);

    /* two records, of when "www." counted: both are deleted */

    assert_int_equal(put(s, "http://www.g.test/", 0), US_NEW);
    assert_int_equal(put(s, "http://g.test/", 0), US_NEW);
    assert_int_equal(erase(s, n, "http://g.test/", US_MERGE_FIRST).status,
                     US_ERASED);
    assert_int_equal(info(s, n).deleted, 2);
    assert_int_equal(lookup(s, "http://www.g.test/").status, US_UNSEEN);
    assert_int_equal(lookup(s, "http://g.test/").status, US_UNSEEN);

    zone_destroy(z);

    zone_conf.schemes_first = 1;
    z = zone();
    zone_conf.schemes_first = 0;
    s = z->store;
    n = begin(s, US_ERASURE_URLS, 0);

    erase(s, n, "http://a.test/", 0);
    assert_int_equal(put(s, "https://a.test/", 0), US_ERASED);

    zone_destroy(z);
}


static void
sweep(us_store_t *s)
{
    unsigned            i;
    us_sweep_t          w;
    us_store_status_t   status;

    memset(&w, 0, sizeof(w));

    for (i = 0; i < 10000; i++) {
        status = us_store_sweep(s, &w);

        if (status == US_OK) {
            break;
        }

        assert_int_equal(status, US_NEW);
        stream_drain(&journal, s);
    }

    assert_int_equal(status, US_OK);
    assert_false(us_store_sweep_due(s));
    assert_int_equal(us_head(s)->sweeper, 0);
}


static void
test_site(void **state)
{
    char         url[64];
    zone_t      *z;
    uint64_t     i, n, lsn;
    us_store_t  *s;

    z = zone();
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 2000; i++) {
        sprintf(url, "%s://%ss%d.test%s/%d", i % 3 ? "http" : "https",
                i % 5 ? "" : "www.", (int) i % 7, i % 11 ? "" : ":81",
                (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
        stream_drain(&journal, s);
    }

    n = begin(s, US_ERASURE_SITE, 0);
    assert_int_equal(us_store_erase_site(s, n, TEXT("www.s3.test"), &lsn),
                     US_OK);
    assert_int_equal(lsn, us_store_published(s));
    assert_true(us_store_sweep_due(s));

    /* at once, and what was there by and by */

    assert_int_equal(put(s, "http://s3.test/new", 0), US_ERASED);
    assert_int_equal(put(s, "https://www.s3.test/new", US_MERGE_FIRST),
                     US_ERASED);
    assert_int_equal(put(s, "http://s3.test:81/new", 0), US_NEW);
    assert_int_equal(put(s, "http://x.s3.test/new", 0), US_NEW);
    assert_int_equal(put(s, "http://s33.test/new", 0), US_NEW);
    stream_drain(&journal, s);

    sweep(s);

    for (i = 0; i < 2000; i++) {
        assert_int_equal(us_store_deleted(s, i), i % 7 == 3 && i % 11 != 0);
    }

    assert_false(us_store_deleted(s, 2000));
    assert_int_equal(info(s, n).state, US_ERASURE_DONE);
    assert_int_equal(info(s, n).listed, 1);
    assert_int_equal(info(s, n).deleted, us_head(s)->deleted);

    zone_destroy(z);
}


/* who may sweep, when, and what it waits for */

static void
test_sweep(void **state)
{
    int                 ended;
    char                url[64];
    pid_t               child;
    zone_t             *z;
    uint64_t            i, n, lsn;
    us_sweep_t          w;
    us_store_t         *s;
    us_store_status_t   status;

    z = zone_of(ZONE, 1 << 16);
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 1000; i++) {
        sprintf(url, "http://s.test/%d", (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
        stream_drain(&journal, s);
    }

    /* an owner that lives has not done */

    memset(&w, 0, sizeof(w));
    assert_false(us_store_sweep_due(s));
    assert_int_equal(us_store_sweep(s, &w), US_OK);
    n = begin(s, US_ERASURE_URLS, us_process_self());
    assert_false(us_store_sweep_due(s));
    assert_int_equal(us_store_sweep(s, &w), US_OK);

    /* one that was killed between the list and the delete */

    child = fork();

    if (child == 0) {
        n = begin(s, US_ERASURE_URLS, us_process_self());
        _exit(erase(s, n, "http://s.test/1", 0).status == US_ERASED ? 0 : 1);
    }

    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(us_store_erasures(s), n + 1);
    assert_true(us_store_sweep_due(s));

    /* another one sweeps, and dies */

    child = fork();

    if (child == 0) {
        _exit(us_store_sweep(s, &w) == US_NEW ? 0 : 1);
    }

    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    us_head(s)->sweeper = 1;                 /* init, which lives */
    assert_int_equal(us_store_sweep(s, &w), US_SEEN);
    us_head(s)->sweeper = (us_process_t) child;
    assert_int_equal(us_store_sweep(s, &w), US_NEW);
    assert_int_equal(us_head(s)->sweeper, us_process_self());

    /* while it is fenced, or the ring is full, it stays where it is */

    assert_int_equal(us_store_erase_site(s, n + 1, TEXT("s.test"), &lsn),
                     US_OK);
    us_store_fence(z->mem);
    assert_int_equal(us_store_sweep(s, &w), US_FENCED);
    assert_int_equal(w.at, 0);
    us_store_unfence(z->mem);

    stream_drain(&journal, s);
    us_head(s)->written -= 65536 - 40;

    do {
        status = us_store_sweep(s, &w);
    } while (status == US_NEW);

    assert_int_equal(status, US_BUSY);
    i = us_head(s)->deleted;
    assert_true(i > 1 && i < 20);
    us_head(s)->written = us_store_published(s);

    do {
        status = us_store_sweep(s, &w);
        us_head(s)->written = us_store_published(s);
    } while (status == US_NEW);

    assert_int_equal(status, US_OK);
    assert_int_equal(us_head(s)->deleted, 1000);
    assert_int_equal(info(s, n + 1).deleted, 1000);
    assert_int_equal(info(s, n + 1).state, US_ERASURE_DONE);
    assert_int_equal(info(s, n).state, US_ERASURE_DELETING);

    /* its owner leaves it */

    us_store_erasure_leave(s, n);
    assert_true(us_store_sweep_due(s));

    for (i = 0; us_store_sweep(s, &w) == US_NEW && w.done == 0; i++) {
        assert_true(i < 100);
    }

    assert_int_equal(w.done, n);
    assert_int_equal(us_store_sweep(s, &w), US_NEW);
    assert_int_equal(w.done, 0);
    assert_int_equal(info(s, n).state, US_ERASURE_DONE);
    us_head(s)->written = us_store_published(s);

    /* one that is ended midway lets others */

    begin(s, US_ERASURE_SITE, 0);
    assert_int_equal(us_store_sweep(s, &w), US_NEW);
    us_store_sweep_end(s, &w);
    assert_int_equal(us_head(s)->sweeper, 0);
    us_store_sweep_end(s, &w);

    zone_destroy(z);
}


/*
 * What a sweep completes was to be completed when it began: it may be past ids
 * of what is put on the list, or left, after that.
 */

static void
test_meanwhile(void **state)
{
    char              url[64];
    zone_t           *z;
    uint64_t          i, n, lsn, site, left;
    us_sweep_t        w;
    us_store_t       *s;
    us_erased_t       erased;
    us_store_key_t    key = { 77, NOW + 300 };
    us_store_item_t   it;

    zone_conf.keys = 1 << 20;
    z = zone_of(ZONE, 0);
    zone_conf.keys = 0;
    s = z->store;

    for (i = 0; i < 600; i++) {
        sprintf(url, "http://s%d.test/%d", (int) i % 3, (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
    }

    /* a sweep for another one is past all ids */

    n = begin(s, US_ERASURE_URLS, 0);
    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_SITE, TEXT("x"),
                                            list_key, us_process_self(), &key,
                                            &site, &lsn), US_NEW);
    left = begin(s, US_ERASURE_URLS, us_process_self());
    memset(&w, 0, sizeof(w));

    do {
        assert_int_equal(us_store_sweep(s, &w), US_NEW);
    } while (w.at < w.end);

    /* the site is listed now; and one is killed that has listed, not deleted */

    assert_int_equal(us_store_erase_site(s, site, TEXT("s1.test"), &lsn),
                     US_OK);
    us_store_erasure_leave(s, site);

    it = merged("http://s0.test/3", 0);
    us_store_seen(s, &it, 1);
    us_erased_item(s, &it, &erased);
    erased.url.rest |= left;
    us_store_enter(s);
    assert_int_equal(us_erased_enter_locked(&s->arena, erased.url, 0), US_NEW);
    us_store_leave(s);
    us_store_erasure_leave(s, left);

    while (us_store_sweep(s, &w) == US_NEW && w.begun) { /* void */ }

    assert_int_equal(info(s, n).state, US_ERASURE_DONE);
    assert_int_equal(info(s, site).state, US_ERASURE_DELETING);
    assert_int_equal(info(s, left).state, US_ERASURE_DELETING);

    sweep(s);
    assert_int_equal(info(s, site).state, US_ERASURE_DONE);
    assert_int_equal(info(s, site).deleted, 200);
    assert_int_equal(info(s, left).state, US_ERASURE_DONE);
    assert_int_equal(info(s, left).deleted, 1);

    /* a retry finds its site on the list; no other site is the same erasure */

    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_SITE, TEXT("x"),
                                            list_key, us_process_self(), &key,
                                            &i, &lsn), US_SEEN);
    assert_int_equal(i, site);
    assert_int_equal(us_store_erase_site(s, site, TEXT("s1.test"), &lsn),
                     US_OK);
    assert_int_equal(us_store_erase_site(s, site, TEXT("s2.test"), &lsn),
                     US_GONE);
    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_URLS, TEXT("x"),
                                            list_key, us_process_self(), &key,
                                            &i, &lsn), US_NEW);

    /* one that was killed before it listed its site is not gone on with */

    key.name = 78;
    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_SITE, TEXT("x"),
                                            list_key, 0, &key, &n, &lsn),
                     US_NEW);
    sweep(s);
    assert_int_equal(info(s, n).state, US_ERASURE_DONE);
    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_SITE, TEXT("x"),
                                            list_key, 0, &key, &i, &lsn),
                     US_NEW);
    assert_int_equal(i, n + 1);
    assert_int_equal(us_store_erase_site(s, i, TEXT("s2.test"), &lsn), US_OK);
    assert_int_equal(us_store_erase_site(s, i, TEXT("s0.test"), &lsn),
                     US_GONE);
    sweep(s);
    assert_int_equal(info(s, i).deleted, 200);

    zone_destroy(z);
}


/*
 * Records go after a while, for all erasures together; then no byte of the adds
 * is left in the ring, and the journal says from where on it has none.
 */

static void
test_gone(void **state)
{
    char           url[64];
    size_t         k, len, pending;
    zone_t        *z, *r;
    uint8_t        text[US_TEXT_BUFFER];
    uint64_t       i, n, lsn, written;
    us_sweep_t     w;
    us_store_t    *s;
    us_head_t     *h;
    const uint8_t *ring;

    z = zone();
    s = z->store;
    h = us_head(s);
    journal.len = 0;
    us_store_sweep_delay(s, 100);

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://s%d.test/%d", (int) i % 9, (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
        stream_drain(&journal, s);
    }

    for (i = 0; i < 2; i++) {
        us_store_time(s, NOW + 90 * i);
        n = begin(s, US_ERASURE_URLS, us_process_self());
        sprintf(url, "http://s%d.test/%d", (int) i + 5, (int) i + 5);
        assert_int_equal(erase(s, n, url, 0).status, US_ERASED);
        assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    }

    stream_drain(&journal, s);
    assert_false(us_store_sweep_due(s));
    assert_int_equal(us_store_text(s, 5, text, &len), US_OK);

    us_store_time(s, NOW + 100);
    assert_true(us_store_sweep_due(s));
    memset(&w, 0, sizeof(w));

    /* not before the journal has what is in the ring */

    assert_int_equal(put(s, "http://x.test/late", 0), US_NEW);

    for (i = 0; i < 100; i++) {
        if (us_store_sweep(s, &w) == US_BUSY) {
            break;
        }
    }

    assert_true(i < 100);
    assert_int_equal(us_store_erased_lsn(s), 0);
    stream_drain(&journal, s);
    lsn = us_store_published(s);
    assert_int_equal(put(s, "http://x.test/later", 0), US_NEW);
    lsn = us_store_published(s);

    for (i = 0; i < 100 && us_store_sweep(s, &w) == US_NEW; i++) { /* void */ }

    assert_int_equal(us_store_erased_lsn(s), lsn);
    assert_int_equal(info(s, 1).gone, lsn);
    assert_int_equal(info(s, 2).gone, lsn);
    assert_false(us_store_sweep_due(s));

    /* but what is not written yet */

    ring = s->arena.base + h->ring;
    written = us_acquire(&h->written);
    pending = us_store_published(s) - written;

    for (k = 0, len = 0; k < RING; k++) {
        if (((k - written) & (RING - 1)) >= pending) {
            len += ring[k] != 0;
        }
    }

    assert_true(pending > 0);
    assert_int_equal(len, 0);
    stream_drain(&journal, s);

    for (i = 5; i < 7; i++) {
        assert_int_equal(us_store_text(s, i, text, &len), US_DELETED);
    }

    r = replay(&journal, journal.len, ZONE);
    same(s, r->store);
    assert_int_equal(us_store_erased_lsn(r->store), lsn);
    assert_int_equal(us_head(r->store)->erasures_left, 0);
    zone_destroy(r);

    /* of a journal that was cut before */

    r = replay(&journal, lsn, ZONE);
    assert_int_equal(us_store_erased_lsn(r->store), 0);
    assert_int_equal(us_head(r->store)->erasures_left, 2);
    us_store_time(r->store, NOW + 200);
    sweep(r->store);
    assert_int_equal(us_head(r->store)->erasures_left, 0);
    zone_destroy(r);

    zone_destroy(z);
}


/* a clock that was ahead, and is not any more, keeps no record */

static void
test_clock(void **state)
{
    zone_t      *z;
    uint64_t     n, lsn;
    us_store_t  *s;

    z = zone();
    s = z->store;
    journal.len = 0;
    us_store_sweep_delay(s, 100);
    assert_int_equal(put(s, "http://a.test/1", 0), US_NEW);

    us_store_time(s, NOW + 3600);
    n = begin(s, US_ERASURE_URLS, 0);
    assert_int_equal(erase(s, n, "http://a.test/1", 0).status, US_ERASED);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    assert_false(us_store_sweep_due(s));

    us_store_time(s, NOW);
    assert_true(us_store_sweep_due(s));
    sweep(s);
    assert_true(info(s, n).gone > 0);
    assert_true(us_store_is_erased(s, 0));

    zone_destroy(z);
}


/*
 * Others come to an erasure that is done: it is not, and its records are not
 * gone, also if they come while a pass goes on.
 */

static void
test_again(void **state)
{
    char              url[64];
    size_t            len, late;
    zone_t           *z, *r;
    uint8_t           text[US_TEXT_BUFFER];
    uint64_t          i, n, gone, lsn;
    us_sweep_t        w;
    us_store_t       *s;

    z = zone();
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://s%d.test/%d", (int) i % 9, (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
        stream_drain(&journal, s);
    }

    n = begin(s, US_ERASURE_URLS, us_process_self());
    assert_int_equal(erase(s, n, "http://s5.test/5", 0).status, US_ERASED);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    stream_drain(&journal, s);

    /* the pass begins, and goes down; it is past the last ids */

    memset(&w, 0, sizeof(w));

    for (i = 0; i < 4; i++) {
        assert_int_equal(us_store_sweep(s, &w), US_NEW);
    }

    assert_non_null(w.pass);
    assert_int_equal(erase(s, n, "http://s2.test/2999", 0).status, US_ERASED);
    assert_int_equal(info(s, n).state, US_ERASURE_DELETING);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);

    while (us_store_sweep(s, &w) == US_NEW && w.begun) {
        stream_drain(&journal, s);
    }

    assert_false(w.begun);
    assert_int_equal(us_head(s)->erasures_left, 1);
    assert_int_equal(info(s, n).gone, 0);
    assert_true(us_store_sweep_due(s));
    sweep(s);
    gone = info(s, n).gone;
    assert_true(gone > 0);
    assert_true(us_store_is_erased(s, 2999));

    /* nothing new is nothing */

    lsn = us_store_published(s);
    assert_int_equal(erase(s, n, "http://s5.test/5", 0).status, US_ERASED);
    assert_int_equal(info(s, n).gone, gone);
    assert_int_equal(us_store_published(s), lsn);

    /* after it all: a restart in between completes it */

    stream_drain(&journal, s);
    late = journal.len;
    assert_int_equal(erase(s, n, "http://s0.test/9", 0).status, US_ERASED);
    stream_drain(&journal, s);
    assert_int_equal(info(s, n).gone, 0);

    for (i = late; i <= journal.len; i++) {
        r = zone();
        us_head(r->store)->hash_key[0] ^= 0xff;
        len = us_store_apply(r->store, journal.data, i);
        assert_true(len >= late && len <= i);
        assert_int_equal(us_store_settle(r->store), 0);

        if (len > late) {
            assert_int_equal(info(r->store, n).state, US_ERASURE_DELETING);
            assert_true(us_store_sweep_due(r->store));
        }

        i = i == late || i == journal.len ? i : journal.len - 1;
        zone_destroy(r);
    }

    dump.len = 0;
    assert_int_equal(us_store_dump(s, stream_put, &dump, &lsn), 0);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    sweep(s);
    stream_drain(&journal, s);
    assert_true(info(s, n).gone > gone);
    assert_int_equal(us_store_text(s, 9, text, &len), US_DELETED);
    assert_true(us_store_is_erased(s, 9));

    r = replay(&journal, journal.len, ZONE);
    same(s, r->store);
    assert_int_equal(us_head(r->store)->erasures_left, 0);
    assert_int_equal(us_store_erased_lsn(r->store), info(s, n).gone);
    zone_destroy(r);

    /* the dump is ahead of the journal */

    r = replay(&dump, dump.len, ZONE);
    assert_int_equal(info(r->store, n).state, US_ERASURE_DELETING);
    zone_destroy(r);

    zone_destroy(z);
}


/* the same, and it is left, and lifted, before the pass ends */

static void
test_again_lifted(void **state)
{
    char         url[64];
    zone_t      *z;
    uint64_t     i, n, lsn;
    us_sweep_t   w;
    us_store_t  *s;

    z = zone();
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://s.test/%d", (int) i);
        assert_int_equal(put(s, url, 0), US_NEW);
        stream_drain(&journal, s);
    }

    n = begin(s, US_ERASURE_URLS, us_process_self());
    assert_int_equal(erase(s, n, "http://s.test/5", 0).status, US_ERASED);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_OK);
    stream_drain(&journal, s);
    memset(&w, 0, sizeof(w));

    for (i = 0; i < 4; i++) {
        assert_int_equal(us_store_sweep(s, &w), US_NEW);
    }

    assert_int_equal(erase(s, n, "http://s.test/2999", 0).status, US_ERASED);
    us_store_erasure_leave(s, n);
    assert_int_equal(us_store_erasure_lift(s, n, &lsn), US_OK);

    while (us_store_sweep(s, &w) == US_NEW && w.begun) {
        stream_drain(&journal, s);
    }

    assert_false(us_store_is_erased(s, 2999));
    assert_int_equal(info(s, n).gone, 0);
    sweep(s);
    assert_true(us_store_is_erased(s, 2999));
    assert_true(info(s, n).gone > 0);

    zone_destroy(z);
}


/* a full ring: what is noted stays so, and is not noted again */

static void
test_gone_full(void **state)
{
    zone_t      *z;
    us_sweep_t   w;
    uint64_t     i, gone, lsn, numbers[400], since;
    us_store_t  *s;

    z = zone_of(ZONE, 1 << 14);
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 400; i++) {
        begin(s, US_ERASURE_URLS, 0);
        assert_int_equal(us_store_erasure_done(s, i + 1, &lsn), US_OK);
        stream_drain(&journal, s);
    }

    assert_int_equal(us_store_erasures_left(s, numbers, 400, &since), 400);

    for (i = 0, gone = 0;
         us_store_erasures_gone(s, numbers, 400, &gone) == US_BUSY; i++)
    {
        assert_true(i < 10);
        stream_drain(&journal, s);
    }

    assert_true(i > 0);
    assert_int_equal(us_head(s)->erasures_left, 0);
    assert_int_equal(us_store_erased_lsn(s), gone);
    zone_destroy(z);

    /* one pass is for all of them, and notes some in each step, of one LSN */

    z = zone();
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 6000; i++) {
        begin(s, US_ERASURE_URLS, 0);
        assert_int_equal(us_store_erasure_done(s, i + 1, &lsn), US_OK);
        stream_drain(&journal, s);
    }

    memset(&w, 0, sizeof(w));

    do {
        gone = us_head(s)->erasures_left;
        assert_int_equal(us_store_sweep(s, &w), US_NEW);
        assert_true(gone - us_head(s)->erasures_left <= 512);
        stream_drain(&journal, s);
    } while (w.begun);

    assert_int_equal(us_head(s)->erasures_left, 0);
    assert_int_equal(info(s, 1).gone, us_store_erased_lsn(s));
    assert_int_equal(info(s, 6000).gone, us_store_erased_lsn(s));
    zone_destroy(z);
}


/* a long list, whose table grows, and becomes no larger when it is lifted */

static void
test_growth(void **state)
{
    char         url[64];
    zone_t      *z, *r;
    uint64_t     i, k, n, lsn, bits, chunks, room;
    us_head_t   *h;
    us_store_t  *s;

    z = zone();
    s = z->store;
    h = z->mem;
    journal.len = 0;
    n = begin(s, US_ERASURE_URLS, 0);

    for (i = 0; i < 40000; i++) {
        sprintf(url, "http://g%d.test/%d", (int) i % 9, (int) i);
        assert_int_equal(erase(s, n, url, 0).status, US_ERASED);
        assert_int_equal(info(s, n).listed, i + 1);

        /* a table that is being moved has all as well */

        if (h->erased_old && i % 97 == 0) {
            for (k = 0; k <= i; k += 1 + i / 200) {
                sprintf(url, "http://g%d.test/%d", (int) k % 9, (int) k);
                assert_int_equal(put(s, url, 0), US_ERASED);
            }
        }

        stream_drain(&journal, s);
    }

    for (k = 0; k < i; k++) {
        sprintf(url, "http://g%d.test/%d", (int) k % 9, (int) k);
        assert_int_equal(put(s, url, 0), US_ERASED);
    }

    assert_int_equal(put(s, "http://g0.test/1", 0), US_NEW);

    bits = h->erased_bits;
    chunks = h->area[US_AREA_ERASED].n;
    assert_int_equal(bits, 16);
    assert_int_equal(h->erased_old, 0);
    assert_int_equal(chunks, ((uint64_t) 16 << bits) >> h->chunk_shift);

    /* a dump makes as large a table at once */

    dump.len = 0;
    assert_int_equal(us_store_dump(s, stream_put, &dump, &lsn), 0);
    r = replay(&dump, dump.len, ZONE);
    same(s, r->store);
    assert_int_equal(us_head(r->store)->erased_bits, bits);
    assert_int_equal(us_head(r->store)->erased_moves, 1);
    assert_int_equal(us_head(r->store)->area[US_AREA_ERASED].n, chunks);
    zone_destroy(r);

    /* lifted entries go with the next table, which is as large */

    assert_int_equal(us_store_erasure_lift(s, n, &lsn), US_OK);
    n = begin(s, US_ERASURE_URLS, 0);
    room = us_arena_free(&s->arena);

    for (i = 0; i < 20000; i++) {
        sprintf(url, "http://h.test/%d", (int) i);
        assert_int_equal(erase(s, n, url, 0).status, US_ERASED);
        stream_drain(&journal, s);
    }

    assert_int_equal(h->erased_bits, bits);
    assert_int_equal(h->erased_old, 0);
    assert_int_equal(h->erased_n, 20000);
    assert_int_equal(h->area[US_AREA_ERASED].n, chunks);
    assert_int_equal(us_arena_free(&s->arena), room);
    assert_int_equal(put(s, "http://g1.test/1", 0), US_NEW);
    assert_int_equal(put(s, "http://h.test/19999", 0), US_ERASED);

    r = replay(&journal, journal.len, ZONE);
    same(s, r->store);
    assert_int_equal(put(r->store, "http://h.test/1", 0), US_ERASED);
    assert_int_equal(put(r->store, "http://g2.test/2", 0), US_NEW);
    zone_destroy(r);

    zone_destroy(z);
}


/* of a dump: the list becomes longer between two pieces */

typedef struct {
    us_store_t  *store;
    unsigned     n;
    unsigned     more;
    unsigned     most;
} longer_t;


static void
lengthen(us_store_t *s, unsigned from, unsigned to)
{
    char  url[64];

    for ( /* void */ ; from < to; from++) {
        sprintf(url, "http://l.test/%u", from);
        assert_int_equal(erase(s, 1, url, 0).status, US_ERASED);
        us_store_set_written(s, us_store_published(s));
    }
}


static int
longer(void *data, const uint8_t *p, size_t len)
{
    longer_t  *l = data;

    if (l->n < l->most) {
        lengthen(l->store, l->n, l->n + l->more);
        l->n += l->more;
    }

    return stream_put(&dump, p, len);
}


/* tables that are begun, moved and given back while a dump reads them */

static void
test_dump(void **state)
{
    char        url[64];
    zone_t     *z, *r;
    longer_t    l;
    uint64_t    lsn;
    unsigned    i, before;

    for (before = 900; before < 40000; before *= 3) {
        z = zone();
        l.store = z->store;
        l.n = before;
        l.more = before / 5;
        l.most = before * 4;
        begin(z->store, US_ERASURE_URLS, 0);
        lengthen(z->store, 0, before);
        dump.len = 0;
        assert_int_equal(us_store_dump(z->store, longer, &l, &lsn), 0);
        assert_true(l.n > before);

        r = replay(&dump, dump.len, ZONE);

        for (i = 0; i < before; i++) {
            sprintf(url, "http://l.test/%u", i);
            assert_int_equal(put(r->store, url, 0), US_ERASED);
        }

        zone_destroy(r);
        zone_destroy(z);
    }
}


/* rows and reasons, over the ends of chunks */

static void
test_rows(void **state)
{
    zone_t             *z, *r;
    uint64_t            i, number, lsn;
    uint8_t             text[US_ERASURE_REASON];
    us_store_t         *s;
    us_erasure_info_t   e;

    z = zone();
    s = z->store;
    journal.len = 0;

    for (i = 0; i < 1000; i++) {
        memset(text, 'a' + i % 26, sizeof(text));
        us_store_time(s, NOW + i);
        assert_int_equal(us_store_erasure_begin(s, i % 2, (us_str_t) {
                                                i % 201, text }, list_key, 0,
                                                NULL, &number, &lsn), US_NEW);
        assert_int_equal(number, i + 1);
        stream_drain(&journal, s);
    }

    r = replay(&journal, journal.len, ZONE);

    for (i = 0; i < 1000; i++) {
        memset(text, 'a' + i % 26, sizeof(text));
        e = info(s, i + 1);
        assert_int_equal(e.created, NOW + i);
        assert_int_equal(e.kind, i % 2);
        assert_int_equal(e.reason.len, i % 201);
        assert_memory_equal(e.reason.data, text, i % 201);
    }

    same(s, r->store);

    /* the key of the list is the first one's, and survives */

    assert_memory_equal(us_head(r->store)->erased_key, list_key, 16);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT(""),
                                            (const uint8_t *)
                                            "another key here", 0, NULL,
                                            &number, &lsn), US_NEW);
    assert_memory_equal(us_head(s)->erased_key, list_key, 16);

    zone_destroy(r);
    zone_destroy(z);
}


/* a request with a key begins one erasure, however often it is sent */

static void
test_key(void **state)
{
    zone_t          *z, *r;
    unsigned         i;
    uint64_t         number, lsn;
    us_store_t      *s;
    us_store_key_t   key = { 77, NOW + 300 }, other = { 78, NOW + 300 };
    us_store_key_t   last = { 79, NOW + 300 };
    us_store_conf_t  conf = { .erases = 1 };

    zone_conf.keys = 1 << 20;
    z = zone();
    s = z->store;
    journal.len = 0;

    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &key, &number, &lsn), US_NEW);
    assert_int_equal(number, 1);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &other, &number, &lsn), US_NEW);
    assert_int_equal(number, 2);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            NULL, &number, &lsn), US_NEW);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &key, &number, &lsn), US_SEEN);
    assert_int_equal(number, 1);

    stream_drain(&journal, s);
    r = replay(&journal, journal.len, ZONE);
    us_store_allow(r->store, &conf);
    assert_int_equal(us_store_erasure_begin(r->store, 0, TEXT("x"), list_key,
                                            0, &other, &number, &lsn),
                     US_SEEN);
    assert_int_equal(number, 2);
    zone_destroy(r);

    dump.len = 0;
    assert_int_equal(us_store_dump(s, stream_put, &dump, &lsn), 0);
    r = replay(&dump, dump.len, ZONE);
    assert_int_equal(us_store_erasure_begin(r->store, 0, TEXT("x"), list_key,
                                            0, &key, &number, &lsn),
                     US_SEEN);
    assert_int_equal(number, 1);
    zone_destroy(r);

    /* a retry opens the first one again; the key of another is in force */

    assert_int_equal(us_store_erasure_done(s, 1, &lsn), US_OK);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &last, &number, &lsn), US_NEW);
    assert_int_equal(number, 4);
    assert_int_equal(erase(s, 1, "http://a.test/", 0).status, US_ERASED);
    assert_int_equal(info(s, 1).state, US_ERASURE_DELETING);
    assert_int_equal(us_store_erasure_lift(s, 4, &lsn), US_OK);
    stream_drain(&journal, s);

    for (i = 0; i < 2; i++) {
        r = i ? replay(&journal, journal.len, ZONE) : z;
        us_store_allow(r->store, &conf);
        assert_int_equal(us_store_erasure_begin(r->store, 0, TEXT("x"),
                                                list_key, 0, &last, &number,
                                                &lsn), US_NEW);
        assert_int_equal(number, 5);
    }

    zone_destroy(r);
    zone_conf.keys = 0;

    /* not one that was lifted, nor for longer */

    assert_int_equal(us_store_erasure_lift(s, 1, &lsn), US_OK);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &key, &number, &lsn), US_NEW);
    assert_int_equal(number, 6);
    us_store_time(s, NOW + 301);
    other.until = NOW + 600;
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT("x"), list_key, 0,
                                            &other, &number, &lsn), US_NEW);
    assert_int_equal(number, 7);

    zone_destroy(z);
}


/* when it cannot be: the store is fenced, has none, or is full; or the ring */

static void
test_refused(void **state)
{
    char             url[64];
    zone_t          *z;
    uint64_t         i, n, lsn, number;
    us_store_t      *s;
    us_store_item_t  it[3];

    z = zone_create(ZONE, RING);
    assert_int_equal(us_store_erasure_begin(z->store, 0, TEXT(""), list_key, 0,
                                            NULL, &number, &lsn), US_UNKNOWN);
    assert_int_equal(number, 0);
    zone_destroy(z);

    z = zone_of(ZONE, 1 << 16);
    s = z->store;
    add(s, "http://a.test/");
    n = begin(s, 0, 0);

    us_store_fence(z->mem);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT(""), list_key, 0, NULL,
                                            &number, &lsn), US_FENCED);
    assert_int_equal(erase(s, n, "http://a.test/", 0).status, US_FENCED);
    assert_int_equal(us_store_erase_site(s, n, TEXT("a.test"), &lsn),
                     US_FENCED);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_FENCED);
    assert_int_equal(us_store_erasure_lift(s, n, &lsn), US_FENCED);
    us_store_unfence(z->mem);
    assert_false(us_store_deleted(s, 0));

    /* the ring has room for an entry, and not for the delete */

    us_head(s)->written = us_store_published(s) + 50 - 65536;
    it[0] = item("http://b.test/", 0);
    it[1] = item("http://a.test/", 0);
    it[2] = item("http://c.test/", 0);
    us_store_erase(s, n, it, 3);
    assert_int_equal(it[0].status, US_ERASED);
    assert_int_equal(it[1].status, US_BUSY);
    assert_int_equal(it[2].status, US_BUSY);
    assert_int_equal(us_store_erasure_done(s, n, &lsn), US_BUSY);
    assert_int_equal(us_store_erase_site(s, n, TEXT("a.test"), &lsn), US_BUSY);
    assert_int_equal(us_store_erasure_begin(s, 0, TEXT(""), list_key, 0, NULL,
                                            &number, &lsn), US_BUSY);

    us_head(s)->written = us_store_published(s);
    us_store_erase(s, n, it + 1, 2);
    assert_int_equal(it[1].status, US_ERASED);
    assert_int_equal(it[1].id, 0);
    assert_int_equal(it[2].status, US_ERASED);
    assert_true(us_store_deleted(s, 0));
    assert_int_equal(info(s, n).listed, 3);

    zone_destroy(z);

    /* a full zone still takes what adds have left to others */

    z = zone_of((size_t) 600 << 10, 0);
    s = z->store;

    for (i = 0; ; i++) {
        sprintf(url, "http://f%d.test/%d", (int) i % 20, (int) i);

        if (put(s, url, 0) == US_FULL) {
            break;
        }
    }

    n = begin(s, 0, 0);

    for (i = 0; i < 500; i++) {
        sprintf(url, "http://f%d.test/%d", (int) i % 20, (int) i);
        assert_int_equal(erase(s, n, url, 0).status, US_ERASED);
        assert_int_equal(put(s, url, 0), US_ERASED);
    }

    /* in the end it refuses, and keeps what it has */

    for (i = 0; i < 100000; i++) {
        sprintf(url, "http://more.test/%d", (int) i);

        if (erase(s, n, url, 0).status == US_FULL) {
            break;
        }
    }

    assert_true(i > 100 && i < 100000);
    assert_int_equal(put(s, "http://more.test/0", 0), US_ERASED);
    assert_int_equal(put(s, "http://f1.test/1", 0), US_ERASED);

    zone_destroy(z);
}


static void
test_damage(void **state)
{
    zone_t      *z;
    uint64_t     row[9], entry[2];
    us_store_t  *s;

    z = zone();
    s = z->store;
    add(s, "http://x.test/");

    memset(row, 0, sizeof(row));
    row[2] = NOW;

    assert_int_equal(apply_op(s, US_OP_ERASURE, 0, row, 72), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASURE, 2, row, 72), US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASURE, 1, row, 71), US_REPLAY_DAMAGED);
    row[8] = 2;                              /* a kind that there is not */
    assert_int_equal(apply_op(s, US_OP_ERASURE, 1, row, 72), US_REPLAY_DAMAGED);
    row[8] = 0;
    row[7] = (uint64_t) 1 << 48;             /* too large an LSN */
    assert_int_equal(apply_op(s, US_OP_ERASURE, 1, row, 72), US_REPLAY_DAMAGED);
    row[7] = 0;
    row[4] = NOW;                            /* lifted, but not done */
    assert_int_equal(apply_op(s, US_OP_ERASURE, 1, row, 72), US_REPLAY_DAMAGED);
    row[4] = 0;
    assert_int_equal(us_store_erasures(s), 0);

    entry[0] = 5;
    entry[1] = 1 | (uint64_t) 1 << 30;
    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 16),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_ID, 0, "\1\1", 2),
                     US_REPLAY_DAMAGED);

    assert_int_equal(apply_op(s, US_OP_ERASURE, 1, row, 72), 0);
    row[0] = 1;                              /* another key */
    assert_int_equal(apply_op(s, US_OP_ERASURE, 2, row, 72), US_REPLAY_DAMAGED);

    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 8),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 16), 0);
    entry[0] = 0;
    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 16),
                     US_REPLAY_DAMAGED);
    entry[0] = 5;
    entry[1] = 1;                            /* no spelling */
    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 16),
                     US_REPLAY_DAMAGED);
    entry[1] = (uint64_t) 1 << 30;           /* no number */
    assert_int_equal(apply_op(s, US_OP_ERASED_URLS, 0, entry, 16),
                     US_REPLAY_DAMAGED);
    assert_int_equal(info(s, 1).listed, 1);

    assert_int_equal(apply_op(s, US_OP_ERASED_ID, 0, "\2\1", 2),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_ID, 0, "\1", 1),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_ID, 7, "\1\1", 2),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_ID, 0, "\1\1", 2), 0);
    assert_int_equal(info(s, 1).deleted, 1);

    /* the store that was dumped had smaller chunks */

    assert_int_equal(apply_op(s, US_OP_ERASED_TABLE, 1, "", 0), 0);
    assert_int_equal(apply_op(s, US_OP_ERASED_TABLE, 63, "", 0),
                     US_REPLAY_DAMAGED);
    assert_int_equal(apply_op(s, US_OP_ERASED_TABLE, 12, "", 0), 0);
    assert_int_equal(us_head(s)->erased_bits, 10);

    zone_destroy(z);
}


/* --- a model of random changes ------------------------------------------- */

#define URLS   300
#define SITES  10
#define MOST   60                     /* erasures */

typedef struct {
    unsigned  n;                      /* erasures; from 1 on: */
    int       lifted[MOST + 1];
    int       url[MOST + 1][URLS];
    int       site[MOST + 1][SITES];
} model_t;


static int
model_refuses(const model_t *m, unsigned url)
{
    unsigned  e;

    for (e = 1; e <= m->n; e++) {
        if (!m->lifted[e] && (m->url[e][url] || m->site[e][url % SITES])) {
            return 1;
        }
    }

    return 0;
}


static size_t
model_url(unsigned url, char *buf)
{
    return (size_t) sprintf(buf, "http://%ss%d.test/%d", url % 4 ? "" : "www.",
                            (int) url % SITES, (int) url);
}


/* each URL is refused, or not; this adds those that are not */

static void
model_check(us_store_t *s, const model_t *m)
{
    char      buf[64];
    unsigned  i;

    for (i = 0; i < URLS; i++) {
        model_url(i, buf);

        if (model_refuses(m, i)) {
            assert_int_equal(lookup(s, buf).status, US_UNSEEN);
            assert_int_equal(put(s, buf, US_MERGE_FIRST), US_ERASED);

        } else {
            assert_int_not_equal(put(s, buf, US_MERGE_FIRST), US_ERASED);
        }
    }
}


static void
model_change(us_store_t *s, model_t *m)
{
    char                buf[64];
    int                 open;
    unsigned            e, i;
    uint64_t            lsn;
    us_store_status_t   status;

    e = m->n ? 1 + rnd(m->n) : 0;
    i = rnd(URLS);
    model_url(i, buf);

    switch (rnd(12)) {

    case 0:
        if (m->n < MOST) {
            assert_int_equal(begin(s, rnd(2), 0), ++m->n);
        }

        break;

    case 1:
        if (e && rnd(3) == 0) {
            assert_int_equal(us_store_erasure_lift(s, e, &lsn), US_OK);
            m->lifted[e] = 1;
        }

        break;

    case 2:
        if (e && rnd(4) == 0) {
            sprintf(buf, "s%d.test", (int) i % SITES);
            open = info(s, e).done == 0
                   && (info(s, e).kind == US_ERASURE_URLS
                       || info(s, e).listed == 0);
            status = us_store_erase_site(s, e, TEXT(buf), &lsn);
            assert_int_equal(status, open || (m->site[e][i % SITES]
                                              && !m->lifted[e])
                                     ? US_OK : US_GONE);

            if (open) {
                m->site[e][i % SITES] = 1;
                us_store_erasure_leave(s, e);
                sweep(s);
            }
        }

        break;

    case 3:
        if (e) {
            assert_int_equal(us_store_erasure_done(s, e, &lsn), US_OK);
        }

        break;

    case 4:
    case 5:
    case 6:
        if (e) {
            status = erase(s, e, buf, US_MERGE_FIRST).status;
            assert_int_equal(status, m->lifted[e] ? US_GONE : US_ERASED);
            m->url[e][i] |= status == US_ERASED;
        }

        break;

    default:
        assert_int_equal(put(s, buf, US_MERGE_FIRST) == US_ERASED,
                         model_refuses(m, i));
    }
}


typedef struct {
    us_store_t  *store;
    model_t     *model;
    stream_t     out;
    unsigned     changes;
} ahead_t;


/* of a dump: changes go on between its pieces */

static int
ahead(void *data, const uint8_t *p, size_t len)
{
    unsigned  i;
    ahead_t  *a = data;

    for (i = 0; i < a->changes; i++) {
        model_change(a->store, a->model);
        stream_drain(&journal, a->store);
    }

    return stream_put(&a->out, p, len);
}


static void
test_random(void **state)
{
    zone_t    *z, *r;
    size_t     at, from;
    ssize_t    n;
    uint64_t   lsn;
    unsigned   i, round;
    us_op_t    op;
    model_t   *m;

    static ahead_t  a;

    for (round = 0; round < 30; round++) {
        zone_seed = round + 1;
        z = zone();
        m = calloc(1, sizeof(model_t));
        journal.len = 0;

        for (i = 0; i < 600; i++) {
            model_change(z->store, m);
            stream_drain(&journal, z->store);
        }

        /* a dump while others go on, and what follows its LSN */

        a.store = z->store;
        a.model = m;
        a.out.len = 0;
        a.changes = round % 3 * 20;
        assert_int_equal(us_store_dump(z->store, ahead, &a, &lsn), 0);
        n = (ssize_t) (journal.len - lsn);
        stream_put(&a.out, journal.data + lsn, (size_t) n);

        r = replay(&a.out, a.out.len, ZONE);
        same(z->store, r->store);
        model_check(r->store, m);
        zone_destroy(r);

        r = replay(&journal, journal.len, ZONE);
        same(z->store, r->store);
        model_check(r->store, m);

        /* the end of the journal once more changes nothing */

        for (at = 0, from = 0; at < journal.len; at += (size_t) n) {
            n = us_op_parse(journal.data + at, journal.len - at, &op);
            assert_true(n > 0);
            from = op.type == US_OP_ADD ? at + (size_t) n : from;
        }

        assert_int_equal(us_store_apply(r->store, journal.data + from,
                                        journal.len - from),
                         journal.len - from);
        same(z->store, r->store);
        zone_destroy(r);

        model_check(z->store, m);
        free(m);
        zone_destroy(z);
    }
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_hot),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_meanwhile),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_again_lifted),
        cmocka_unit_test(test_gone_full),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_dump),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_key),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
