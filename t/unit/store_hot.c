
/*
 * The hot table: alone against a plain map; and between a store and its
 * callers, where it never answers what the store would not.
 */


#include "store_zone.h"
#include "../../src/store/us_hot.c"


#define ZONE      ((size_t) 16 << 20)
#define HISTORY   20000
#define HANDLES   3                   /* the last one has no hot table */


/* --- alone */

#define TEXTS     4096
#define OWNERS    3
#define DOMAINS   3

typedef struct {
    char          text[200];
    size_t        len;
    uint64_t      value[OWNERS][DOMAINS];   /* 0: not entered */
} text_t;


static text_t  texts[TEXTS];


static void
make_texts(void)
{
    unsigned  i, k;

    memset(texts, 0, sizeof(texts));

    for (i = 0; i < TEXTS; i++) {
        texts[i].len = snprintf(texts[i].text, sizeof(texts[i].text), "%x", i);

        /* some differ in their length, some in a byte */

        for (k = i / 4 % 180; k > 0 && texts[i].len < 180; k--) {
            texts[i].text[texts[i].len++] = i & 1 ? 'a' : (char) rnd(256);
        }
    }
}


/* of one hash in `hashes`, if that is not 0 */

static us_hot_key_t
key_of(const us_hot_t *h, unsigned i, unsigned owner, unsigned domain,
    unsigned hashes)
{
    us_str_t      text;
    us_hot_key_t  key;

    text.data = (const uint8_t *) texts[i].text;
    text.len = texts[i].len;

    us_hot_key(h, &key, owner, domain, text);

    if (hashes) {
        key.hash %= hashes;
    }

    us_hot_prefetch(h, &key);

    return key;
}


/* random calls; what is found is what was entered last; returns how many are */

static unsigned
history(us_hot_t *h, unsigned steps, unsigned among, unsigned hashes)
{
    unsigned      i, o, d, n, found, klass, step;
    uint64_t      value, *known;
    us_hot_key_t  key;

    found = 0;

    for (step = 0; step < steps; step++) {
        i = rnd(among);
        o = rnd(OWNERS);
        d = rnd(DOMAINS);
        n = rnd(10);
        known = &texts[i].value[o][d];
        key = key_of(h, i, o + 1, d, hashes);

        if (us_hot_find(h, &key, &value, &klass)) {
            found++;
            assert_int_not_equal(*known, 0);
            assert_int_equal(value, *known);
            assert_int_equal(klass, *known % 16);
        }

        if (n < 5) {
            *known = (rnd64() & US_HOT_VALUE) | 1;
            us_hot_put(h, &key, *known, *known % 16);

            assert_true(us_hot_find(h, &key, &value, &klass));
            assert_int_equal(value, *known);
        }
    }

    return found;
}


static void
test_alone(void **state)
{
    us_hot_t  *h;
    unsigned   found;

    assert_null(us_hot_create(US_HOT_MIN - 1));

    h = us_hot_create(US_HOT_MIN);
    assert_non_null(h);

    make_texts();
    found = history(h, 200000, TEXTS, 0);
    assert_true(found > 1000);

    /* few of them all fit, and are found nearly always */

    make_texts();
    us_hot_destroy(h);
    h = us_hot_create(US_HOT_MIN);

    found = history(h, 40000, 16, 0);
    assert_true(found > 40000 * 3 / 4);

    /* one hash for two of three: the texts are compared */

    make_texts();
    us_hot_destroy(h);
    h = us_hot_create(US_HOT_MIN);

    (void) history(h, 40000, 64, 3);

    us_hot_destroy(h);
}


/* those in use stay, however many others pass through */

static void
test_in_use(void **state)
{
    us_hot_t      *h;
    unsigned       i, klass, lost;
    uint64_t       value;
    us_hot_key_t   key;

    h = us_hot_create(US_HOT_MIN);
    make_texts();
    lost = 0;

    for (i = 1; i < TEXTS; i++) {
        key = key_of(h, i, 1, 0, 0);
        us_hot_put(h, &key, i, 0);

        key = key_of(h, 0, 1, 0, 0);

        if (!us_hot_find(h, &key, &value, &klass)) {
            us_hot_put(h, &key, 7, 0);
            lost++;
        }
    }

    /* the first time, and a bucket that was full */

    assert_true(lost >= 1 && lost <= 3);

    us_hot_destroy(h);
}


static void
test_lengths(void **state)
{
    size_t         len;
    uint8_t        buf[US_URL_MAX + 1];
    us_hot_t      *h;
    unsigned       klass;
    uint64_t       value;
    us_str_t       text;
    us_hot_key_t   key;

    h = us_hot_create(US_HOT_MIN);
    memset(buf, 'x', sizeof(buf));
    text.data = buf;

    for (len = 0; len <= US_URL_MAX; len += len < 200 ? 1 : 333) {
        text.len = len;
        us_hot_key(h, &key, 1, 0, text);
        assert_false(us_hot_find(h, &key, &value, &klass));
        us_hot_put(h, &key, len, 3);
        assert_true(us_hot_find(h, &key, &value, &klass));
        assert_int_equal(value, len);
        assert_int_equal(klass, 3);
    }

    text.len = US_URL_MAX + 1;
    us_hot_key(h, &key, 1, 0, text);
    us_hot_put(h, &key, 1, 0);
    assert_false(us_hot_find(h, &key, &value, &klass));

    /* nor what does not fit into an entry */

    text.len = US_URL_MAX - 1;
    us_hot_key(h, &key, 2, 0, text);
    us_hot_put(h, &key, US_HOT_VALUE + 1, 0);
    assert_false(us_hot_find(h, &key, &value, &klass));

    us_hot_destroy(h);
}


/* nothing is found any more, and nothing is left; also of a full one */

static void
test_wipe(void **state)
{
    size_t         i;
    unsigned       k, n, klass;
    uint64_t       value;
    us_hot_t      *h;
    us_hot_key_t   key;

    make_texts();
    h = us_hot_create(US_HOT_MIN);
    assert_non_null(h);

    for (n = 1; n <= TEXTS; n *= 8) {
        for (k = 0; k < n; k++) {
            key = key_of(h, k, 1, 0, 0);
            us_hot_put(h, &key, k, 0);
        }

        assert_true(us_hot_find(h, &key, &value, &klass));
        us_hot_wipe(h);

        for (k = 0; k < n; k++) {
            key = key_of(h, k, 1, 0, 0);
            assert_false(us_hot_find(h, &key, &value, &klass));
        }

        for (i = 0; i < h->size; i++) {
            assert_int_equal(((uint8_t *) h->buckets)[i], 0);
        }
    }

    us_hot_destroy(h);
}


static void
test_positions_end(void **state)
{
    us_hot_t  *h;

    h = us_hot_create(US_HOT_MIN);
    make_texts();

    h->head = US_HOT_POSITION - 3 * h->nring;

    assert_true(history(h, 100000, TEXTS, 0) > 500);
    assert_true(h->head < US_HOT_POSITION / 2);

    us_hot_destroy(h);
}


/* --- before a store */

static void
test_delete(void **state)
{
    int               was;
    zone_t           *z;
    uint64_t          lsn, id;
    us_hot_t         *hot;
    us_store_t       *other;
    us_store_item_t   it;

    z = zone_create(ZONE, 0);
    hot = us_hot_create(US_HOT_MIN);
    us_store_hot(z->store, hot, NULL);

    other = us_store_open(z->mem, &zone_no_lock);

    id = add(z->store, "http://example.com/a").id;
    it = lookup(z->store, "http://example.com/a");
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(it.id, id);

    /* by another worker; the table of this one still has the URL */

    assert_int_equal(us_store_delete(other, id, &was, &lsn), US_OK);

    it = lookup(z->store, "http://example.com/a");
    assert_int_equal(it.status, US_UNSEEN);
    assert_int_equal(it.id, US_STORE_NO_ID);

    /* and added again by the other one: another id */

    assert_int_equal(add(other, "http://example.com/a").status, US_NEW);

    it = lookup(z->store, "http://example.com/a");
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(it.id, id + 1);
    assert_int_equal(add(z->store, "http://example.com/a").status, US_SEEN);

    us_store_close(other);
    zone_destroy(z);
    us_hot_destroy(hot);
}


/* one table, two stores; then a store that takes the place of another */

static void
test_owners(void **state)
{
    zone_t    *a, *b;
    uint64_t   hits;
    us_hot_t  *hot;

    hits = 0;
    hot = us_hot_create(US_HOT_MIN);

    a = zone_create(ZONE, 0);
    b = zone_create(ZONE, 0);
    us_store_hot(a->store, hot, NULL);
    us_store_hot(b->store, hot, NULL);

    (void) add(b->store, "http://example.com/0");
    assert_int_equal(add(a->store, "http://example.com/1").id, 0);
    assert_int_equal(lookup(b->store, "http://example.com/1").status,
                     US_UNSEEN);
    assert_int_equal(add(b->store, "http://example.com/1").id, 1);
    assert_int_equal(lookup(a->store, "http://example.com/1").id, 0);

    zone_destroy(a);
    a = zone_create(ZONE, 0);
    us_store_hot(a->store, hot, NULL);

    assert_int_equal(lookup(a->store, "http://example.com/1").status,
                     US_UNSEEN);

    /* the table again, of the same handle: it still answers */

    assert_int_equal(add(a->store, "http://example.com/2").id, 0);
    assert_int_equal(lookup(a->store, "http://example.com/2").id, 0);
    us_store_hot(a->store, hot, &hits);
    assert_int_equal(lookup(a->store, "http://example.com/2").id, 0);
    assert_int_equal(hits, 1);

    zone_destroy(a);
    zone_destroy(b);
    us_hot_destroy(hot);
}


/*
 * An answer from the table is covered by the LSN that comes with it, as one of
 * the store is: a worker waits for that before it replies under sync=always.
 */

static void
test_lsn(void **state)
{
    zone_t           *z;
    uint64_t          lsn;
    us_hot_t         *hot;
    us_store_t       *other;
    us_store_item_t   it;

    z = zone_create(ZONE, 1 << 16);
    hot = us_hot_create(US_HOT_MIN);
    us_store_hot(z->store, hot, NULL);
    other = us_store_open(z->mem, &zone_no_lock);

    it = item("http://example.com/new", 0);
    lsn = us_store_add(z->store, &it, 1);
    assert_int_equal(it.status, US_NEW);
    assert_true(us_store_durable(z->store) < lsn);

    it = item("http://example.com/new", 0);
    assert_true(us_store_add(z->store, &it, 1) >= lsn);
    assert_int_equal(it.status, US_SEEN);

    assert_int_equal(us_store_durable(z->store), 0);

    us_store_close(other);
    zone_destroy(z);
    us_hot_destroy(hot);
}


/* once an item is busy all later ones are, also those that the table knows */

static void
test_busy(void **state)
{
    char              url[3][200];
    zone_t           *z;
    unsigned          i;
    us_hot_t         *hot;
    us_store_item_t   it[3];

    z = zone_create(ZONE, 1 << 12);
    hot = us_hot_create(US_HOT_MIN);
    us_store_hot(z->store, hot, NULL);

    (void) add(z->store, "http://example.com/known");

    for (i = 0; ; i++) {
        memset(url[0], 0, sizeof(url[0]));
        snprintf(url[0], sizeof(url[0]), "http://%08x%08x.example.com/%x",
                 rnd(1u << 31), rnd(1u << 31), rnd(1u << 31));
        it[0] = add(z->store, url[0]);

        if (it[0].status == US_BUSY) {
            break;
        }

        assert_int_equal(it[0].status, US_NEW);
        assert_true(i < 1000);
    }

    assert_int_equal(lookup(z->store, url[0]).status, US_UNSEEN);

    it[0] = item("http://example.com/known", 0);
    it[1] = item(url[0], 0);
    it[2] = item("http://example.com/known", 0);

    (void) us_store_add(z->store, it, 3);

    assert_int_equal(it[0].status, US_SEEN);
    assert_int_equal(it[1].status, US_BUSY);
    assert_int_equal(it[2].status, US_BUSY);

    us_store_set_written(z->store, us_store_published(z->store));
    (void) us_store_add(z->store, it + 1, 2);

    assert_int_equal(it[1].status, US_NEW);
    assert_int_equal(it[2].status, US_SEEN);

    zone_destroy(z);
    us_hot_destroy(hot);
}


static us_store_item_t
random_item(char *buf, size_t size)
{
    us_store_item_t  it;

    snprintf(buf, size, "http%s://%ssite%u.example/%u",
             rnd(4) ? "" : "s", rnd(2) ? "www." : "", rnd(20), rnd(60));

    it = item(buf, 0);
    it.merge = 1;

    return it;
}


/*
 * Handles of one store, two of them with a table, change it in turn; what they
 * answer is what the one without a table answers.
 */

static void
play(us_store_t *stores[HANDLES], unsigned batch)
{
    int               was;
    char              buf[US_STORE_GROUP * 2][80];
    uint64_t          lsn, id;
    unsigned          i, k, n;
    us_store_t       *s, *plain;
    us_store_site_t   site[2];
    us_store_item_t   it[US_STORE_GROUP * 2], same[US_STORE_GROUP * 2];

    s = stores[rnd(HANDLES)];
    plain = stores[HANDLES - 1];
    n = 1 + rnd(batch);

    for (i = 0; i < n; i++) {
        it[i] = random_item(buf[i], sizeof(buf[i]));
        same[i] = it[i];
    }

    switch (rnd(5)) {

    case 0:
        us_store_add(s, it, n);
        us_store_seen(plain, same, n);

        for (i = 0; i < n; i++) {
            assert_true(it[i].status == US_NEW || it[i].status == US_SEEN);
            assert_int_equal(same[i].status, US_SEEN);
            assert_int_equal(it[i].id, same[i].id);
            assert_int_equal(it[i].spelling, same[i].spelling);
        }

        return;

    case 1:
        for (i = 0; i < n / 8 + 1 && us_store_next_id(s); i++) {
            id = us_store_next_id(s);
            id -= 1 + rnd(id < 2000 ? (unsigned) id : 2000);
            assert_int_equal(us_store_delete(s, id, &was, &lsn), US_OK);
        }

        break;

    default:
        break;
    }

    for (k = 0; k < HANDLES - 1; k++) {
        us_store_seen(stores[k], it, n);
        us_store_seen(plain, same, n);

        for (i = 0; i < n; i++) {
            assert_int_equal(it[i].status, same[i].status);
            assert_int_equal(it[i].id, same[i].id);

            us_store_spell(stores[k], &it[i]);
            us_store_spell(plain, &same[i]);
            assert_int_equal(it[i].spelling, same[i].spelling);

            /* "siteNN.example" */

            it[i].rest.len = strcspn((char *) it[i].rest.data, "/");
            assert_int_equal(us_store_site(stores[k], it[i].rest, 1, &site[0]),
                             us_store_site(plain, it[i].rest, 1, &site[1]));
        }
    }
}


static void
test_history(void **state)
{
    zone_t      *z;
    unsigned     i, k;
    us_hot_t    *hot[HANDLES];
    us_store_t  *stores[HANDLES];

    z = zone_create(ZONE, 0);

    for (k = 0; k < HANDLES; k++) {
        stores[k] = us_store_open(z->mem, &zone_no_lock);
        hot[k] = us_hot_create(US_HOT_MIN);

        if (k < HANDLES - 1) {
            us_store_hot(stores[k], hot[k], NULL);
        }
    }

    for (i = 0; i < HISTORY; i++) {
        play(stores, i % 100 ? 4 : US_STORE_GROUP * 2);
    }

    /* the tables were asked, and had answers */

    assert_true(hot[0]->head > hot[0]->nring * 2);

    for (k = 0; k < HANDLES; k++) {
        us_store_close(stores[k]);
        us_hot_destroy(hot[k]);
    }

    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_in_use),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_positions_end),
        cmocka_unit_test(test_wipe),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_lsn),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_history)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
