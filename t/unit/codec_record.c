
/*
 * Records in a store: references, models learnt on the way, replay, and a
 * store whose bits are damaged.
 */


#include "store_zone.h"
#include "codec/us_prefix.h"
#include "codec/us_record.h"
#include "zone/us_arena.h"


#define URLS       40000

/* qemu keeps 32 bytes for each page: a build for it names fewer gigabytes */

#ifndef HUGE_GB
#define HUGE_GB    700
#endif

#define HUGE_ZONE  ((size_t) HUGE_GB << 30)


static uint64_t  first_id;            /* of URL 0 */


/* a small web: some hosts, sections that recur, numbers, names, ids */

static size_t
url_make(char *p, unsigned i)
{
    size_t    n;
    unsigned  k;

    static const char  *words[] = {
        "news", "politics", "sports", "the", "of", "story", "%C3%BCber", "2013"
    };

    zone_seed = i * 77 + 1;

    n = (size_t) sprintf(p, "http%s://%shost%u.example/",
                         rnd(3) ? "" : "s", rnd(4) ? "" : "www.", rnd(300));

    for (k = rnd(5); k; k--) {
        n += (size_t) sprintf(p + n, "%s%c", words[rnd(8)], "-/&."[rnd(4)]);
    }

    switch (rnd(4)) {

    case 0:
        n += (size_t) sprintf(p + n, "watch?v=");

        for (k = 0; k < 11; k++) {
            p[n++] = "ABCDEFGHabcdefgh01234567-_"[rnd(26)];
        }

        break;

    case 1:
        n += (size_t) sprintf(p + n, "thread.php?t=%u", i);
        break;

    default:
        n += (size_t) sprintf(p + n, "%u/%u.html", rnd(200), i);
    }

    p[n] = '\0';

    return n;
}


static void
assert_get(us_store_t *s, uint64_t id, const char *url)
{
    size_t    len;
    uint8_t   buf[US_URL_MAX + 8];

    assert_int_equal(us_store_get(s, id, buf, &len), US_OK);
    assert_string(buf, len, url);
}


static void
assert_all(us_store_t *s, unsigned n)
{
    char              url[256];
    unsigned          i;
    us_store_item_t   it;

    for (i = 0; i < n; i++) {
        url_make(url, i);
        it = lookup(s, url);

        assert_int_equal(it.status, US_SEEN);
        assert_int_equal(it.id, first_id + i);
        assert_get(s, first_id + i, url);

        strcat(url, "x");
        assert_int_equal(lookup(s, url).status, US_UNSEEN);
    }
}


/* adds URLs from .. to - 1 in batches of any size */

static void
add_all(us_store_t *s, unsigned from, unsigned to)
{
    char              url[US_STORE_GROUP][256];
    unsigned          i, n;
    us_store_item_t   items[US_STORE_GROUP];

    for ( /* void */ ; from < to; from += n) {
        zone_seed = from;
        n = 1 + rnd(US_STORE_GROUP);
        n = n < to - from ? n : to - from;

        for (i = 0; i < n; i++) {
            url_make(url[i], from + i);
            items[i] = item(url[i], 0);
        }

        us_store_add(s, items, n);

        for (i = 0; i < n; i++) {
            assert_int_equal(items[i].status, US_NEW);
            assert_int_equal(items[i].id, first_id + from + i);
        }
    }
}


/*
 * A model is learnt at 32 K records; another process goes on with the old one
 * for a while.  What the ring carried builds the same store again.
 */

static void
models(void **state)
{
    zone_t           *z, *copy;
    size_t            used;
    uint64_t          lsn;
    us_str_t          pieces[2];
    us_store_t       *other;
    us_store_info_t   info;

    z = zone_create(16 << 20, 4 << 20);
    other = us_store_open(z->mem, &zone_no_lock);

    add_all(z->store, 0, 1000);
    add_all(other, 1000, 2000);
    assert_int_equal(us_store_train_due(z->store), 0);

    add_all(z->store, 2000, 33000);
    assert_int_equal(us_store_train_due(other), 1);

    us_store_info(z->store, &info);
    used = info.parts[US_PART_LOG];

    assert_int_equal(us_store_train(z->store, NULL), 1);
    assert_int_equal(us_store_train_due(z->store), 0);
    assert_int_equal(us_store_train(other, NULL), 0);

    add_all(other, 33000, 33010);
    add_all(z->store, 33010, 33500);
    add_all(other, 33500, URLS);

    assert_all(z->store, URLS);
    assert_all(other, URLS);

    /* the model pays: fewer bytes a record than before */

    us_store_info(z->store, &info);
    assert_true((info.parts[US_PART_LOG] - used) / (URLS - 33000)
                < used / 33000);

    us_store_close(other);

    copy = zone_create(16 << 20, 0);
    us_store_ops(z->store, 0, pieces);

    for (lsn = 0; lsn < us_store_published(z->store); /* void */) {
        ssize_t  n;

        us_store_ops(z->store, lsn, pieces);
        n = us_store_apply(copy->store, pieces[0].data, pieces[0].len);
        assert_true(n > 0);
        lsn += (uint64_t) n;
    }

    assert_int_equal(us_store_settle(copy->store), 0);
    assert_all(copy->store, URLS);
    add_all(copy->store, URLS, URLS + 1000);
    assert_all(copy->store, URLS + 1000);

    zone_destroy(copy);
    zone_destroy(z);
}


/* a URL that is the beginning of another; and one that differs in its end */

static void
beginnings(void **state)
{
    char      url[300];
    size_t    i;
    zone_t   *z;

    z = zone_create(4 << 20, 0);

    strcpy(url, "http://host.example/a/long/path/"
           "that/others/begin/with/x.html");

    for (i = strlen(url); i > 12; i--) {
        url[i] = '\0';
        assert_int_equal(add(z->store, url).status, US_NEW);
    }

    strcpy(url, "http://host.example/a/long/path/"
           "that/others/begin/with/x.html");

    for (i = strlen(url); i > 12; i--) {
        url[i] = '\0';
        assert_int_equal(lookup(z->store, url).status, US_SEEN);
        url[i - 1] ^= 1;
        assert_int_equal(add(z->store, url).status, US_NEW);
        assert_int_equal(lookup(z->store, url).status, US_SEEN);
        url[i - 1] ^= 1;
    }

    /* a, aa, aaa, ... */

    strcpy(url, "http://chain.example/");

    for (i = strlen(url); i < 299; i++) {
        url[i] = 'a';
        url[i + 1] = '\0';
        assert_int_equal(add(z->store, url).status, US_NEW);
        assert_get(z->store, us_store_next_id(z->store) - 1, url);
    }

    zone_destroy(z);
}


/* to 8 KB, of what compresses and of what does not */

static void
long_urls(void **state)
{
    char      *url;
    size_t     len, i;
    zone_t    *z;
    unsigned   kind;
    uint64_t   used;
    us_store_info_t   info;

    z = zone_create(16 << 20, 0);
    url = malloc(US_URL_MAX + 1);
    zone_seed = 5;

    us_store_info(z->store, &info);
    used = info.parts[US_PART_LOG];

    for (len = 100; len <= US_URL_MAX; len += len < 1100 ? 7 : 997) {
        for (kind = 0; kind < 3; kind++) {
            strcpy(url, "http://host.example/");

            for (i = strlen(url); i < len; i++) {
                url[i] = kind == 0 ? (char) (0x21 + rnd(0x5e))
                         : kind == 1 ? "0123456789"[rnd(10)]
                         : "/news/2013"[i % 10];
            }

            url[len] = '\0';

            assert_int_equal(add(z->store, url).status, US_NEW);
            assert_int_equal(lookup(z->store, url).status, US_SEEN);
            assert_get(z->store, us_store_next_id(z->store) - 1, url);

            url[len - 1] ^= 1;
            assert_int_equal(lookup(z->store, url).status, US_UNSEEN);

            /* raw size and 12 bytes at most, with chunks left open */

            us_store_info(z->store, &info);
            assert_true(info.parts[US_PART_LOG] - used < len + 12 + (64 << 10));
            used = info.parts[US_PART_LOG];
        }
    }

    free(url);
    zone_destroy(z);
}


/*
 * Whatever the bits of the log are, reading ends and stays inside.  What comes
 * out is nonsense, or said to be damaged.
 */

static void
damaged(void **state)
{
    char              url[256];
    size_t            len;
    zone_t           *z;
    uint8_t           buf[US_URL_MAX + 8], *log;
    unsigned          i, round, bad;
    us_store_info_t   info;

    z = zone_create(8 << 20, 0);
    add_all(z->store, 0, 5000);
    bad = 0;
    us_store_info(z->store, &info);

    /* the log is what follows the header */

    log = (uint8_t *) z->mem + info.parts[US_PART_HEADER];

    for (round = 0; round < 20; round++) {
        zone_seed = round;

        for (i = 0; i < 2000; i++) {
            log[rnd(info.parts[US_PART_LOG])] = (uint8_t) rnd(256);
        }

        for (i = 0; i < 5000; i++) {

            if (us_store_get(z->store, i, buf, &len) == US_OK) {
                assert_in_range(len, sizeof("http://"), US_URL_MAX + 8);

            } else {
                assert_int_equal(us_store_get(z->store, i, buf, &len),
                                 US_DAMAGED);
                bad++;
            }

            url_make(url, i);
            lookup(z->store, url);
        }
    }

    assert_true(bad > 1000);

    /* what is added to such a store is all right */

    add_all(z->store, 5000, 12000);

    for (i = 5000; i < 12000; i++) {
        url_make(url, i);
        assert_get(z->store, i, url);
        assert_int_equal(lookup(z->store, url).id, i);
    }

    zone_destroy(z);
}


/*
 * A record that no model decodes: its id is given, and says so; all others,
 * and look-ups, go on.  A thousand of them do not crowd a leaf of the index.
 */

static void
damaged_replay(void **state)
{
    int         was;
    size_t      len;
    zone_t     *z;
    uint8_t     buf[US_URL_MAX + 8];
    unsigned    i;
    uint64_t    lsn;

    z = zone_create(4 << 20, 0);
    assert_int_equal(add(z->store, "http://a.test/").status, US_NEW);

    for (i = 1; i <= 1000; i++) {
        assert_int_equal(us_store_apply(z->store,
                                        (const uint8_t *) "\4\377\377", 3), 3);
        assert_int_equal(us_store_get(z->store, i, buf, &len), US_DAMAGED);
    }

    assert_int_equal(us_store_first_of_site(z->store, 500), 0);
    assert_int_equal(us_store_delete(z->store, 500, &was, &lsn), US_OK);
    assert_int_equal(us_store_get(z->store, 500, buf, &len), US_DELETED);
    assert_int_equal(add(z->store, "http://a.test/b").id, 1001);
    assert_get(z->store, 1001, "http://a.test/b");
    assert_get(z->store, 0, "http://a.test/");

    zone_destroy(z);
}


/* a store whose next id, and whose log's end, lie far away */

static zone_t *
far_zone(uint64_t id)
{
    zone_t      *z;
    us_arena_t   a;

    z = malloc(sizeof(zone_t));
    z->size = HUGE_ZONE;
    z->mem = mmap(NULL, z->size, PROT_READ|PROT_WRITE,
                  MAP_ANONYMOUS|MAP_PRIVATE|MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(z->mem, MAP_FAILED);
    assert_int_equal(us_store_format(z->mem, z->size, &zone_conf), 0);

    z->store = us_store_open(z->mem, &zone_no_lock);
    assert_non_null(z->store);

    assert_int_equal(us_arena_open(&a, z->mem), 0);
    assert_int_equal(us_arena_grow_locked(&a, US_AREA_OFFSETS,
                                          (id / 56 * 64 >> a.chunk_shift) + 1),
                     0);

    a.head->next_id = id - id % 56;
    first_id = a.head->next_id;

    if (id) {
        a.head->log_end = ((uint64_t) HUGE_GB * 6 / 7 << 30) * 2 + 1;
    }

    return z;
}


/* the bytes that URLS URLs take in the log, all of which are there */

static uint64_t
far_bytes(uint64_t id)
{
    zone_t           *z;
    uint64_t          before;
    us_store_info_t   info;

    z = far_zone(id);
    us_store_info(z->store, &info);
    before = info.parts[US_PART_LOG];

    add_all(z->store, 0, URLS);
    assert_all(z->store, URLS);

    us_store_info(z->store, &info);
    zone_destroy(z);
    first_id = 0;

    return info.parts[US_PART_LOG] - before;
}


/*
 * The prefix cache keeps 24 bits of an id.  Across the places where they begin
 * again, and where 32 bits do, the same URLs take the same bytes.
 */

static void
high_ids(void **state)
{
    unsigned  i;
    uint64_t  low, high;

    static const uint64_t  ids[] = {
        ((uint64_t) 1 << 24) - URLS / 2,
        5 * ((uint64_t) 1 << 24) - URLS / 2,
        ((uint64_t) 1 << 32) - URLS / 2,
        (uint64_t) 1 << 33
    };

    low = far_bytes(0);
    assert_true(low > URLS * 4);

    for (i = 0; i < 4; i++) {
        high = far_bytes(ids[i]);
        assert_in_range(high, low - low / 100, low + low / 100);
    }
}


/*
 * 2^24 records later a hint means another record: nothing comes out wrong.  The
 * ids between have no records, as if all were damaged.
 */

static void
old_hints(void **state)
{
    char          url[256];
    zone_t       *z;
    unsigned      i;
    us_arena_t    a;

    z = far_zone(1 << 20);
    add_all(z->store, 0, URLS);

    assert_int_equal(us_arena_open(&a, z->mem), 0);
    assert_int_equal(us_arena_grow_locked(&a, US_AREA_OFFSETS,
                                          ((1 << 24) / 56 * 64
                                           >> a.chunk_shift) + 1),
                     0);

    a.head->next_id += 1 << 24;
    a.head->next_id -= a.head->next_id % 56;
    i = a.head->next_id - first_id;

    add_all(z->store, i, i + URLS);

    for ( /* void */ ; i < a.head->next_id - first_id; i++) {
        url_make(url, i);
        assert_int_equal(lookup(z->store, url).id, first_id + i);
        assert_get(z->store, first_id + i, url);
    }

    for (i = 0; i < URLS; i++) {
        url_make(url, i);
        assert_int_equal(lookup(z->store, url).id, first_id + i);
        assert_get(z->store, first_id + i, url);
    }

    first_id = 0;
    zone_destroy(z);
}


/*
 * Prefixes end at these bytes and at no other, and their hashes depend on all
 * bytes up to there and on none after; wherever they lie in a text.
 */

static void
prefixes(void **state)
{
    void         *mem;
    size_t        at;
    uint8_t       text[US_TEXT_BUFFER];
    unsigned      c, end;
    us_arena_t    a;
    us_prefix_t   one[US_PREFIXES], two[US_PREFIXES];

    mem = zone_map(&a, 1 << 20);

    for (at = 0; at < 70; at++) {
        for (c = 0; c < 256; c++) {
            memset(text, 'x', sizeof(text));
            text[at] = (uint8_t) c;
            end = c && strchr("/?=&.-_%+", (int) c) && at + 1 >= US_PREFIX_MIN;

            assert_int_equal(us_prefixes(&a, text, 70, 260, one), end);
            assert_int_equal(us_prefixes(&a, text, at, 260, two), 0);
            assert_int_equal(us_prefixes(&a, text, 70, at, two), 0);

            if (end) {
                assert_int_equal(one[0].len, at + 1);

                text[at + 1] = 'y';
                assert_int_equal(us_prefixes(&a, text, 70, 260, two), 1);
                assert_int_equal(one[0].hash, two[0].hash);

                text[at / 2] ^= 1;
                assert_int_equal(us_prefixes(&a, text, 70, 260, two), 1);
                assert_int_not_equal(one[0].hash, two[0].hash);
            }
        }
    }

    munmap(mem, 1 << 20);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(beginnings),
        cmocka_unit_test(long_urls),
        cmocka_unit_test(high_ids),
        cmocka_unit_test(old_hints),
        cmocka_unit_test(damaged),
        cmocka_unit_test(damaged_replay),
        cmocka_unit_test(prefixes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
