
/*
 * Keys of requests: what was new or due to a key is so again, and to no other;
 * for its time; after a restart, from the journal cut anywhere and from a
 * snapshot; as far as the memory goes.  And a model, which random requests are
 * compared with.
 */


#include "store_zone.h"
#include "stream.h"
#include "store/us_store_private.h"

#include <string.h>


#define ZONE   ((size_t) 64 << 20)
#define RING   ((size_t) 1 << 18)
#define NOW    ((uint64_t) 1700000000)
#define UNTIL  (NOW + 300)


static stream_t  journal, dump;


static zone_t *
zone(size_t keys, uint32_t revisit)
{
    zone_t  *z;

    zone_conf.keys = keys;
    zone_conf.revisit = revisit;
    z = zone_create(ZONE, RING);
    zone_conf.keys = 0;
    zone_conf.revisit = 0;

    us_store_time(z->store, NOW);

    return z;
}


/* one URL, as the status that it is answered; name 0: without a key */

static us_store_item_t
put(us_store_t *s, const char *url, uint64_t name, uint32_t older)
{
    us_store_key_t   key = { name, UNTIL };
    us_store_item_t  it;

    it = item(url, 0);
    us_store_add_key(s, &it, 1, older, name ? &key : NULL);

    return it;
}


static int
has(const zone_t *z, uint64_t name, us_keys_kind_t kind, uint64_t id)
{
    us_arena_t  a;

    us_arena_open(&a, z->mem);

    return us_keys_has(&a, name, kind, 0, id, NOW);
}


/* a zone that the stream has made */

static zone_t *
replay(const stream_t *st, size_t len, size_t keys, uint32_t revisit)
{
    zone_t  *z;

    z = zone(keys, revisit);
    assert_int_equal(us_store_apply(z->store, st->data, len), len);
    assert_int_equal(us_store_settle(z->store), 0);

    return z;
}


static void
test_again(void **state)
{
    zone_t           *z;
    us_store_item_t   it;

    z = zone(1 << 20, 0);

    assert_int_equal(put(z->store, "http://a/", 0, 0).status, US_NEW);
    it = put(z->store, "http://b/", 1, 0);
    assert_int_equal(it.status, US_NEW);
    assert_false(it.again);
    assert_true(it.new_site);

    it = put(z->store, "http://b/", 1, 0);
    assert_int_equal(it.status, US_NEW);
    assert_true(it.again);
    assert_true(it.new_site);
    assert_int_equal(it.id, 1);

    assert_int_equal(put(z->store, "http://b/", 2, 0).status, US_SEEN);
    assert_int_equal(put(z->store, "http://b/", 0, 0).status, US_SEEN);
    assert_int_equal(put(z->store, "http://a/", 1, 0).status, US_SEEN);
    assert_int_equal(lookup(z->store, "http://b/").status, US_SEEN);
    assert_true(us_store_repeats(z->store));

    /* another body: each item that was new to the key; and not of its site */

    it = put(z->store, "http://b/c", 1, 0);
    assert_int_equal(it.status, US_NEW);
    assert_false(it.again);
    it = put(z->store, "http://b/c", 1, 0);
    assert_true(it.again);
    assert_false(it.new_site);

    /* what follows without the key is not the key's */

    assert_int_equal(put(z->store, "http://d/", 0, 0).status, US_NEW);
    assert_int_equal(put(z->store, "http://d/", 1, 0).status, US_SEEN);

    /* its time */

    us_store_time(z->store, UNTIL - 1);
    assert_int_equal(put(z->store, "http://b/", 1, 0).status, US_NEW);
    us_store_time(z->store, UNTIL);
    assert_int_equal(put(z->store, "http://b/", 1, 0).status, US_SEEN);

    zone_destroy(z);
}


/* each add of a long request is remembered for its time, be that short */

static void
test_long(void **state)
{
    char             url[32];
    zone_t          *z;
    uint64_t         keep, i;
    us_store_key_t   key = { 1, 0 };
    us_store_item_t  it;

    z = zone(1 << 20, 0);

    for (keep = 1; keep < 20; keep++) {

        for (i = 0; i < 40; i++) {
            us_store_time(z->store, NOW + i);
            key.until = NOW + i + keep;
            sprintf(url, "http://%d/%d", (int) keep, (int) i);

            it = item(url, 0);
            us_store_add_key(z->store, &it, 1, 0, &key);
            assert_int_equal(it.status, US_NEW);

            us_store_time(z->store, NOW + i + keep - 1);
            it = item(url, 0);
            us_store_add_key(z->store, &it, 1, 0, &key);
            assert_int_equal(it.status, US_NEW);
            assert_true(it.again);
        }

        stream_drain(&journal, z->store);
    }

    zone_destroy(z);
}


/* for ever: a time of more than 32 bits */

static void
test_ever(void **state)
{
    zone_t           *z, *r;
    unsigned          i;
    us_store_key_t    key = { 1, UINT64_MAX };
    us_store_item_t   it;

    z = zone(1 << 20, 0);

    for (i = 0; i < 40; i++) {
        us_store_time(z->store, NOW + i);
        it = item(i % 2 ? "http://a/" : "http://b/", 0);
        us_store_add_key(z->store, &it, 1, 0, &key);
        assert_int_equal(it.status, US_NEW);
        assert_int_equal(it.again, i >= 2);
    }

    stream_drain(&journal, z->store);
    r = replay(&journal, journal.len, 1 << 20, 0);
    assert_true(has(r, 1, US_KEYS_NEW, 0));
    assert_true(has(r, 1, US_KEYS_NEW, 1));
    zone_destroy(r);

    zone_destroy(z);
}


/* the first id that can be new to a key */

static void
test_low(void **state)
{
    char             url[32];
    zone_t          *z;
    uint64_t         i, low;
    us_arena_t       a;
    us_keys_past_t   past = { 0, 0 };
    us_store_key_t   key;
    us_store_item_t  it;

    z = zone(1 << 20, 0);
    us_arena_open(&a, z->mem);
    assert_int_equal(us_keys_low(&a, &past, NOW), UINT64_MAX);

    for (i = 0; i < 6000; i++) {
        sprintf(url, "http://low/%d", (int) i);
        it = item(url, 0);
        key.name = 1 + i / 3;
        key.until = NOW + i / 7;
        us_store_time(z->store, NOW);
        us_store_add_key(z->store, &it, 1, 0, i % 4 ? &key : NULL);
        stream_drain(&journal, z->store);
    }

    for (i = 0; i < 6000 / 7 + 40; i += 11) {
        low = us_keys_low(&a, &past, NOW + i);
        assert_true(i < 6000 / 7 - 1 ? low <= i * 7 + 140 && low + 140 >= i * 7
                                     : low == UINT64_MAX || i < 6000 / 7 + 12);
    }

    zone_destroy(z);
}


/*
 * Requests whose times do not ascend: of workers that stood still between the
 * clock and the lock, after a reload with a shorter `keep`, and with a clock
 * that goes back.  Each id is known to its key until its time.
 */

static void
test_order(void **state)
{
    char             url[32];
    zone_t          *z;
    uint64_t         i, now, until[3000];
    us_store_key_t   key;
    us_store_item_t  it;

    z = zone(1 << 20, 0);

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://order/%d", (int) i);
        it = item(url, 0);
        now = NOW + i / 10;
        until[i] = now + (i < 2000 ? 300 : 10);
        until[i] -= i % 500 < 100 ? rnd64() % 400 : 0;
        key.name = i + 1;
        key.until = until[i];
        us_store_time(z->store, until[i] - 300);
        us_store_add_key(z->store, &it, 1, 0, &key);
        assert_int_equal(it.status, US_NEW);
        stream_drain(&journal, z->store);
    }

    for (now = NOW + 600; now > NOW; now -= 100) {

        for (i = 0; i < 3000; i++) {
            sprintf(url, "http://order/%d", (int) i);
            us_store_time(z->store, now);
            it = item(url, 0);
            key.name = i + 1;
            key.until = now + 300;
            us_store_add_key(z->store, &it, 1, 0, &key);

            if (until[i] > now) {
                assert_int_equal(it.status, US_NEW);
            }
        }
    }

    zone_destroy(z);
}


static void
test_batch(void **state)
{
    char             (*buf)[64];
    zone_t            *z, *r;
    size_t             i, n = 1000;
    uint64_t           lsn, entries;
    us_head_t         *h;
    us_store_key_t     key = { 7, UNTIL };
    us_store_item_t   *it;

    z = zone(1 << 20, 0);
    h = z->mem;
    buf = calloc(n, sizeof(*buf));
    it = calloc(n, sizeof(us_store_item_t));

    for (i = 0; i < 10; i++) {
        sprintf(buf[0], "http://old/%zu", i);
        add(z->store, buf[0]);
    }

    lsn = us_store_published(z->store);

    for (i = 0; i < n; i++) {
        sprintf(buf[i], "http://h%zu/%zu", i / 10, i);
        it[i] = item(buf[i], 0);
    }

    it[n - 1] = it[0];
    us_store_add_key(z->store, it, n, 0, &key);

    for (i = 0; i < n; i++) {
        assert_int_equal(it[i].status, US_NEW);
        assert_int_equal(it[i].again, i == n - 1);
    }

    /* 16 bytes for all, and an entry for each 64 ids */

    entries = h->keys_end;
    assert_int_equal(entries, 16);
    stream_drain(&journal, z->store);
    assert_int_equal(us_op_parse(journal.data + lsn, 16, &(us_op_t) { 0 }),
                     16);

    /* the same, and older and newer ones among them */

    it[3] = item("http://old/3", 0);
    it[5] = item("http://h0/5?", 0);
    us_store_add_key(z->store, it, n, 0, &key);

    for (i = 0; i < n; i++) {
        assert_int_equal(it[i].status, i == 3 ? US_SEEN : US_NEW);
        assert_int_equal(it[i].again, i != 3 && i != 5);
    }

    /* nothing was due to it; and it is in the journal */

    stream_drain(&journal, z->store);
    r = replay(&journal, journal.len, 1 << 20, 0);

    for (i = 0; i < n + 11; i++) {
        assert_int_equal(has(r, 7, US_KEYS_NEW, i), has(z, 7, US_KEYS_NEW, i));
        assert_int_equal(has(r, 7, US_KEYS_NEW, i), i >= 10 && i < n + 10);
        assert_false(has(r, 7, US_KEYS_DUE, i));
    }

    zone_destroy(r);
    zone_destroy(z);
    free(buf);
    free(it);
}


static void
test_due(void **state)
{
    char               buf[500][32];
    zone_t            *z, *r;
    size_t             i;
    uint64_t           lsn;
    us_store_key_t     key = { 9, UNTIL + 7200 };
    us_store_claim_t   c = { 0, US_OK };
    us_store_item_t    it[500];

    z = zone(1 << 20, 60);

    for (i = 0; i < 500; i++) {
        sprintf(buf[i], "http://due/%zu", i * 7 % 500);
        it[i] = add(z->store, buf[i]);
    }

    /* every other one is claimed meanwhile */

    us_store_time(z->store, NOW + 7200);

    for (i = 0; i < 500; i += 2) {
        c.id = i;
        us_store_claim(z->store, &c, 1, NOW + 7200);
    }

    stream_drain(&journal, z->store);
    us_store_add_key(z->store, it, 500, 5, &key);
    stream_drain(&journal, z->store);

    for (i = 0; i < 500; i++) {
        assert_int_equal(it[i].status, it[i].id % 2 ? US_DUE : US_SEEN);
        assert_false(it[i].again);
    }

    us_store_add_key(z->store, it, 500, 5, &key);

    for (i = 0; i < 500; i++) {
        assert_int_equal(it[i].status, it[i].id % 2 ? US_DUE : US_SEEN);
        assert_int_equal(it[i].again, it[i].id % 2);
    }

    /* a request that does not ask is not answered so */

    us_store_add_key(z->store, it, 500, 0, &key);

    for (i = 0; i < 500; i++) {
        assert_int_equal(it[i].status, US_SEEN);
    }

    /* /claim has no key */

    put(z->store, "http://due/0", 9, 5);
    us_store_claim(z->store, &c, 1, NOW + 7200);
    stream_drain(&journal, z->store);
    assert_false(has(z, 9, US_KEYS_DUE, c.id));

    /* the journal, and a snapshot */

    dump.len = 0;
    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn), 0);

    for (i = 0; i < 2; i++) {
        r = replay(i ? &dump : &journal, i ? dump.len : journal.len, 1 << 20,
                   60);

        for (c.id = 0; c.id < 500; c.id++) {
            assert_int_equal(has(r, 9, US_KEYS_DUE, c.id), c.id % 2);
            assert_false(has(r, 9, US_KEYS_NEW, c.id));
            assert_int_equal(us_store_claimed(r->store, c.id),
                             us_store_claimed(z->store, c.id));
        }

        zone_destroy(r);
    }

    zone_destroy(z);
}


/* of the stream cut after any operation: what the store had then */

static void
test_cut(void **state)
{
    char      url[32];
    zone_t   *z, *r;
    size_t    at, i;
    uint64_t  id, name[300];
    us_op_t   op;

    z = zone(1 << 20, 0);

    for (i = 0; i < 300; i++) {
        name[i] = rnd64() % 3;
        sprintf(url, "http://cut/%zu", i);
        assert_int_equal(put(z->store, url, name[i], 0).id, i);
    }

    stream_drain(&journal, z->store);

    for (at = 0, i = 0; at < journal.len; i++) {
        at += us_op_parse(journal.data + at, journal.len - at, &op);

        if (i % 7 && i % 11) {
            continue;
        }

        r = replay(&journal, at, 1 << 20, 0);

        for (id = 0; id < us_store_next_id(r->store); id++) {
            assert_int_equal(has(r, 1, US_KEYS_NEW, id), name[id] == 1);
            assert_int_equal(has(r, 2, US_KEYS_NEW, id), name[id] == 2);
        }

        /* and what is added then without a key is no key's */

        put(r->store, "http://after/", 0, 0);
        assert_false(has(r, 1, US_KEYS_NEW, id));
        assert_false(has(r, 2, US_KEYS_NEW, id));
        zone_destroy(r);
    }

    zone_destroy(z);
}


/* a snapshot in the middle of a request: the rest of it follows */

static int
stream_late(void *data, const uint8_t *p, size_t len)
{
    static int  late;

    if (!late) {
        late = 1;
        put(data, "http://late/", 3, 0);
        put(data, "http://later/", 4, 0);
    }

    return stream_put(&dump, p, len);
}


static void
test_snapshot(void **state)
{
    zone_t    *z, *r;
    uint64_t   lsn, cut;

    z = zone(1 << 20, 0);

    put(z->store, "http://one/", 3, 0);
    stream_drain(&journal, z->store);

    dump.len = 0;
    assert_int_equal(us_store_dump(z->store, stream_late, z->store, &lsn), 0);
    assert_int_equal(lsn, journal.len);
    stream_drain(&journal, z->store);

    /* what came after the LSN is not there; and then it follows */

    cut = dump.len;
    r = replay(&dump, cut, 1 << 20, 0);
    assert_true(has(r, 3, US_KEYS_NEW, 0));
    assert_false(has(r, 3, US_KEYS_NEW, 1));
    assert_false(has(r, 4, US_KEYS_NEW, 2));
    zone_destroy(r);

    stream_put(&dump, journal.data + lsn, journal.len - lsn);
    r = replay(&dump, dump.len, 1 << 20, 0);
    assert_true(has(r, 3, US_KEYS_NEW, 0));
    assert_true(has(r, 3, US_KEYS_NEW, 1));
    assert_true(has(r, 4, US_KEYS_NEW, 2));
    assert_false(has(r, 3, US_KEYS_NEW, 2));
    zone_destroy(r);

    /* what is past its time is left out */

    us_store_time(z->store, UNTIL);
    dump.len = 0;
    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn), 0);
    r = replay(&dump, dump.len, 1 << 20, 0);
    assert_int_equal(((us_head_t *) r->mem)->keys_end, 0);
    zone_destroy(r);

    zone_destroy(z);
}


/* the memory is too small: the oldest is forgotten, and the store says so */

static void
test_forgets(void **state)
{
    char        url[32];
    zone_t     *z, *r;
    uint64_t    i, n, lsn;

    z = zone(16 * 1024, 0);
    n = ((us_head_t *) z->mem)->keys_n;
    assert_int_equal(n, 16 * 1024 / 40);

    for (i = 0; i < 3 * n; i++) {
        assert_int_equal(us_store_repeats(z->store), i <= n - US_KEYS_SLACK);
        sprintf(url, "http://f/%d", (int) i);
        put(z->store, url, i + 1, 0);
    }

    for (i = 0; i < 3 * n; i++) {
        assert_int_equal(has(z, i + 1, US_KEYS_NEW, i),
                         i >= 2 * n + US_KEYS_SLACK);
    }

    /* less memory than its slack is none */

    for (i = 0; i < 8 * 1024; i += 1000) {
        r = zone(i, 0);
        assert_int_equal(((us_head_t *) r->mem)->keys_n, 0);
        put(r->store, "http://f/1", 1, 0);
        assert_false(has(r, 1, US_KEYS_NEW, 0));
        assert_false(us_store_repeats(r->store));
        zone_destroy(r);
    }

    /* until all that was forgotten would be past its time */

    us_store_time(z->store, UNTIL - 1);
    assert_false(us_store_repeats(z->store));
    us_store_time(z->store, UNTIL);
    assert_true(us_store_repeats(z->store));

    /* a journal, or a snapshot, into less memory, or into none */

    us_store_time(z->store, NOW);
    stream_drain(&journal, z->store);
    dump.len = 0;
    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn), 0);

    r = replay(&journal, journal.len, 16 * 1024, 0);
    assert_false(us_store_repeats(r->store));
    assert_true(has(r, 3 * n, US_KEYS_NEW, 3 * n - 1));
    assert_false(has(r, 1, US_KEYS_NEW, 0));
    zone_destroy(r);

    r = replay(&dump, dump.len, 16 * 1024, 0);
    assert_true(has(r, 3 * n, US_KEYS_NEW, 3 * n - 1));
    assert_true(has(r, 2 * n + US_KEYS_SLACK + 1, US_KEYS_NEW,
                    2 * n + US_KEYS_SLACK));
    assert_false(us_store_repeats(r->store));
    us_store_time(r->store, UNTIL);
    assert_true(us_store_repeats(r->store));
    zone_destroy(r);

    r = replay(&journal, journal.len, 0, 0);
    assert_false(us_store_repeats(r->store));
    assert_int_equal(put(r->store, "http://f/1", 2, 0).status, US_SEEN);
    assert_int_equal(put(r->store, "http://new/", 2, 0).status, US_NEW);
    assert_int_equal(put(r->store, "http://new/", 2, 0).status, US_SEEN);

    /* and what had no memory is not remembered with some */

    dump.len = 0;
    assert_int_equal(us_store_dump(r->store, stream_put, &dump, &lsn), 0);
    zone_destroy(r);

    r = replay(&dump, dump.len, 1 << 20, 0);
    assert_false(us_store_repeats(r->store));
    us_store_time(r->store, UNTIL);
    assert_true(us_store_repeats(r->store));
    zone_destroy(r);

    zone_destroy(z);
}


/* no ring: as without a key, nothing was done */

static void
test_busy(void **state)
{
    char               url[32], again[32];
    zone_t            *z;
    uint64_t           i;
    us_store_item_t    it;

    z = zone(1 << 20, 0);

    for (i = 0; ; i++) {
        sprintf(url, "http://busy/%d", (int) i);
        it = put(z->store, url, 1 + i % 2, 0);

        if (it.status == US_BUSY) {
            break;
        }

        assert_int_equal(it.status, US_NEW);
    }

    assert_int_equal(us_store_next_id(z->store), i);
    sprintf(again, "http://busy/%d", (int) i - 1);
    assert_int_equal(put(z->store, again, 1 + (i - 1) % 2, 0).status, US_NEW);

    stream_drain(&journal, z->store);
    assert_int_equal(put(z->store, url, 1 + i % 2, 0).status, US_NEW);

    zone_destroy(z);
}


static void
test_hostile(void **state)
{
    size_t    i;
    zone_t   *z;

    static const struct {
        const char  *bytes;
        size_t       len;
        ssize_t      rc;
    } ops[] = {
        { "\0\22\1\1\0\0\0\0\0\0\0\0", 12, US_REPLAY_DAMAGED },
        { "\0\22\1\2\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 20, US_REPLAY_DAMAGED },
        { "\0\22\1\0", 4, US_REPLAY_DAMAGED },
        { "\0\22\377\377\377\377\37\1\1\0\0\0\0\0\0\0", 16,
          US_REPLAY_DAMAGED },
        { "\0\24\1\1\0\0\0\0\0\0\0", 11, US_REPLAY_DAMAGED },
        { "\0\24\0", 3, US_REPLAY_DAMAGED },
        { "\0\24\377\377\1", 5, US_REPLAY_DAMAGED },
        { "\0\22\1\1\1\0\0\0\0\0\0\0\0\23", 14, 14 },
    };

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        z = zone(1 << 20, 0);
        assert_int_equal(us_store_apply(z->store,
                                        (const uint8_t *) ops[i].bytes,
                                        ops[i].len), ops[i].rc);
        zone_destroy(z);
    }
}


#define URLS   400
#define KEYS   5

static void
test_model(void **state)
{
    char              buf[16][32];
    zone_t           *z, *r;
    uint8_t           new[KEYS][URLS], due[KEYS][URLS];
    uint64_t          name, ids, id, lsn, at;
    unsigned          round, i, n, url;
    us_store_key_t    key;
    us_store_item_t   it[16];

    z = zone(1 << 20, 60);
    memset(new, 0, sizeof(new));
    memset(due, 0, sizeof(due));
    dump.len = 0;
    lsn = 0;

    for (round = 0; round < 1000; round++) {
        us_store_time(z->store, NOW + round * 30);
        name = rnd64() % KEYS;
        key.name = name;
        key.until = NOW + 100000;
        n = 1 + rnd64() % 16;
        ids = us_store_next_id(z->store);

        for (i = 0; i < n; i++) {
            url = rnd64() % (round < 500 ? URLS / 2 : URLS);
            sprintf(buf[i], "http://m%u/%u", url % 9, url);
            it[i] = item(buf[i], 0);
        }

        us_store_add_key(z->store, it, n, 20, name ? &key : NULL);
        stream_drain(&journal, z->store);

        for (i = 0; i < n; i++) {
            id = it[i].id;

            if (it[i].again) {
                assert_true(it[i].status == US_NEW ? new[name][id]
                                                   : due[name][id]);

            } else if (it[i].status == US_NEW) {
                assert_true(id >= ids);
                new[name][id] = name != 0;

            } else if (it[i].status == US_DUE) {
                due[name][id] = name != 0;

            } else {
                assert_int_equal(it[i].status, US_SEEN);
                assert_false(new[name][id]);
                assert_false(due[name][id]);
            }
        }

        if (round == 700) {
            us_store_time(z->store, NOW);
            assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn),
                             0);
        }
    }

    stream_put(&dump, journal.data + lsn, journal.len - lsn);

    for (i = 0; i < 2; i++) {
        r = i ? replay(&dump, dump.len, 1 << 20, 60)
              : replay(&journal, journal.len, 1 << 20, 60);

        for (at = 0; at < KEYS * URLS; at++) {
            name = at / URLS;
            id = at % URLS;
            assert_int_equal(has(r, name, US_KEYS_NEW, id), new[name][id]);
            assert_int_equal(has(r, name, US_KEYS_DUE, id), due[name][id]);
        }

        zone_destroy(r);
    }

    zone_destroy(z);
}


static int
setup(void **state)
{
    journal.len = 0;
    dump.len = 0;

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(test_again, setup),
        cmocka_unit_test_setup(test_long, setup),
        cmocka_unit_test_setup(test_ever, setup),
        cmocka_unit_test_setup(test_low, setup),
        cmocka_unit_test_setup(test_order, setup),
        cmocka_unit_test_setup(test_batch, setup),
        cmocka_unit_test_setup(test_due, setup),
        cmocka_unit_test_setup(test_cut, setup),
        cmocka_unit_test_setup(test_snapshot, setup),
        cmocka_unit_test_setup(test_forgets, setup),
        cmocka_unit_test_setup(test_busy, setup),
        cmocka_unit_test_setup(test_hostile, setup),
        cmocka_unit_test_setup(test_model, setup),
    };
    int  rc;

    rc = cmocka_run_group_tests(tests, NULL, NULL);
    free(journal.data);
    free(dump.data);

    return rc;
}
