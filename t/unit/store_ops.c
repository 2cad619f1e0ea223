
/*
 * The stream of operations: what the ring carries, replayed, gives the same
 * store; so does a dump, followed by what came after it.
 */


#include "store_zone.h"
#include "corpus.h"
#include "same.h"
#include "stream.h"
#include "codec/us_record_private.h"
#include "store/us_store_private.h"


/* replays in pieces of any size; a copy of each, so that ASan sees its end */

static void
replay(us_store_t *s, const stream_t *st, size_t max)
{
    size_t    done, n;
    uint8_t  *p;
    ssize_t   rc;

    n = 0;

    for (done = 0; done < st->len; done += rc) {
        n += 1 + rnd(max);
        n = done + n < st->len ? n : st->len - done;

        p = malloc(n);
        memcpy(p, st->data + done, n);
        rc = us_store_apply(s, p, n);
        free(p);

        assert_true(rc >= 0);
        assert_true((size_t) rc <= n);
        n -= rc;
    }

    assert_int_equal(done, st->len);
    assert_int_equal(us_store_settle(s), 0);
}


static void
same(us_store_t *a, us_store_t *b)
{
    uint64_t         at;
    us_store_info_t  ia, ib;

    us_store_info(a, &ia);
    us_store_info(b, &ib);

    assert_int_equal(ia.parts[US_PART_LOG], ib.parts[US_PART_LOG]);
    assert_ptr_equal(same_store(a, b, 50, &at), NULL);
}


static void
step(us_store_t *s)
{
    int              was;
    char             url[6000];
    size_t           n;
    uint64_t         lsn;
    us_store_item_t  it;

    switch (rnd(10)) {

    case 0:
        us_store_delete(s, rnd(us_store_next_id(s) + 1), &was, &lsn);
        break;

    case 1:
    case 2:
        mark_put(s, rnd(2), rnd(us_store_next_id(s) + 1), rnd(2), &lsn);
        break;

    default:
        n = sprintf(url, "http%s://%ss%u.test/%u", rnd(2) ? "s" : "",
                    rnd(2) ? "www." : "", rnd(50), rnd(3000));

        if (rnd(100) == 0) {
            memset(url + n, 'a' + rnd(26), 5000);
            n += rnd(5000);
        }

        it = item(url, n);
        it.merge = 1;
        us_store_add(s, &it, 1);
        assert_true(it.status == US_NEW || it.status == US_SEEN);
    }
}


static void
replayed(void **state)
{
    size_t     i;
    zone_t    *a, *b;
    stream_t   st = { 0 };

    zone_conf.sites = 1;
    a = zone_create(4 << 20, 1 << 14);
    b = zone_create(4 << 20, 0);

    for (i = 0; i < 20000; i++) {
        step(a->store);

        if (rnd(4) == 0) {
            stream_drain(&st, a->store);
        }
    }

    stream_drain(&st, a->store);
    assert_int_equal(st.len, us_store_published(a->store));

    replay(b->store, &st, 5000);
    same(a->store, b->store);

    /* and goes on: the same operation gives the same answer */

    us_store_set_lsn(b->store, 12345);
    assert_int_equal(us_store_published(b->store), 12345);
    assert_int_equal(add(b->store, "http://new.test/").id,
                     add(a->store, "http://new.test/").id);

    free(st.data);
    zone_destroy(a);
    zone_destroy(b);
    zone_conf.sites = 0;
}


/*
 * A dump, and many deletes and some adds after it: a replay that merges them
 * makes the same store as one that does each by itself, under the lock.
 */

static void
many_deletes(int sites, unsigned deletes, unsigned adds)
{
    int         was;
    char        url[64];
    unsigned    i, n, id;
    uint64_t    lsn;
    zone_t     *a, *z[2];
    stream_t    dump = { 0 }, since = { 0 };

    /* so many that a replay in this small zone merges before the deletes */

    n = 20000;
    zone_conf.sites = sites;
    a = zone_create(1500 << 10, 1 << 14);

    for (i = 0; i < n + adds + deletes; i++) {

        if (i == n) {
            assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn),
                             0);
            assert_int_equal(lsn, since.len);
            since.len = 0;
        }

        if (i < n || rnd(deletes + adds) < adds) {
            sprintf(url, "http://s%u.test/%u", i % 1000, i);
            assert_int_equal(add(a->store, url).status, US_NEW);

        } else {
            id = rnd(us_store_next_id(a->store));
            assert_int_equal(us_store_delete(a->store, id, &was, &lsn),
                             US_OK);
        }

        stream_drain(&since, a->store);
    }

    for (i = 0; i < 2; i++) {
        z[i] = zone_create(1500 << 10, 0);
        assert_int_equal(us_store_apply(z[i]->store, dump.data, dump.len),
                         dump.len);

        /* from then on, nothing is merged */

        if (i == 1) {
            assert_int_equal(us_store_settle(z[i]->store), 0);
        }

        replay(z[i]->store, &since, 30000);
        same(a->store, z[i]->store);

        assert_int_equal(((us_head_t *) z[i]->mem)->entries,
                         ((us_head_t *) a->mem)->entries);
    }

    /* what was deleted is new in all of them, and all else is known */

    for (i = 0; i < n; i++) {
        sprintf(url, "http://s%u.test/%u", i % 1000, i);
        lsn = add(a->store, url).id;
        stream_drain(&since, a->store);
        assert_int_equal(add(z[0]->store, url).id, lsn);
        assert_int_equal(add(z[1]->store, url).id, lsn);
    }

    free(dump.data);
    free(since.data);
    zone_destroy(a);
    zone_destroy(z[0]);
    zone_destroy(z[1]);
    zone_conf.sites = 0;
}


static void
deleted_many(void **state)
{
    int  sites;

    for (sites = 0; sites <= 1; sites++) {
        many_deletes(sites, 100, 0);
        many_deletes(sites, 10000, 0);
        many_deletes(sites, 100, 1000);
        many_deletes(sites, 10000, 8000);
    }
}


/*
 * A dump and the operations since it began.  Writers go on whenever the dump
 * takes the lock and puts out a piece: with sites, or with an image of the
 * index, whose leaves split while it is made.
 */

static stream_t    *after;
static us_store_t  *busy_store;
static unsigned     busy_steps;


static void
busy_lock(void *data)
{
    unsigned  i;

    for (i = 0; i < busy_steps; i++) {
        step(busy_store);
        stream_drain(after, busy_store);
    }
}


static void
busy_unlock(void *data)
{
}


static int
busy_put(void *data, const uint8_t *p, size_t len)
{
    busy_lock(NULL);

    return stream_put(data, p, len);
}


static void
dumped_while(int sites, unsigned before, unsigned steps)
{
    size_t           i;
    zone_t          *a, *b;
    uint64_t         lsn, ids;
    stream_t         dump = { 0 }, since = { 0 };
    us_store_t      *s;
    us_store_lock_t  lock = { busy_lock, busy_unlock, NULL };

    zone_conf.sites = sites;
    a = zone_create(8 << 20, 1 << 14);
    b = zone_create(8 << 20, 0);

    for (i = 0; i < before; i++) {
        step(a->store);
        stream_drain(&since, a->store);
    }

    after = &since;
    busy_store = a->store;
    busy_steps = steps;

    s = us_store_open(a->mem, &lock);
    assert_non_null(s);
    ids = us_store_next_id(a->store);
    assert_int_equal(us_store_dump(s, busy_put, &dump, &lsn), 0);
    us_store_close(s);

    assert_true(lsn < since.len);
    assert_true(us_store_next_id(a->store) > ids);

    for (i = 0; i < 1000; i++) {
        step(a->store);
        stream_drain(&since, a->store);
    }

    replay(b->store, &dump, 10000);

    memmove(since.data, since.data + lsn, since.len - lsn);
    since.len -= lsn;
    replay(b->store, &since, 1000);

    same(a->store, b->store);

    free(dump.data);
    free(since.data);
    zone_destroy(a);
    zone_destroy(b);
    zone_conf.sites = 0;
}


static void
dumped(void **state)
{
    dumped_while(1, 20000, 100);
}


static void
imaged(void **state)
{
    unsigned  i;

    for (i = 0; i < 4; i++) {
        dumped_while(0, 2000 + rnd(4000), 5 << i * 2);
    }
}


/*
 * Before the dump takes the lock for the second time, which is for the first
 * leaves of the image, a writer makes the index more than 2^US_SPLIT_MAX times
 * as large.
 */

static unsigned  late_locks;


static void
late_lock(void *data)
{
    char      url[64];
    unsigned  i;

    for (i = 20; late_locks == 1 && i < 40000; i++) {
        sprintf(url, "http://s%u.test/%u", i % 20000, i);
        assert_int_equal(add(busy_store, url).status, US_NEW);
        stream_drain(after, busy_store);
    }

    late_locks++;
}


static void
split_often(void **state)
{
    char             url[64];
    zone_t          *a, *b;
    unsigned         i;
    uint64_t         lsn;
    stream_t         dump = { 0 }, since = { 0 };
    us_store_t      *s;
    us_store_lock_t  lock = { late_lock, busy_unlock, NULL };

    a = zone_create(16 << 20, 1 << 14);
    b = zone_create(16 << 20, 0);

    for (i = 0; i < 20; i++) {
        sprintf(url, "http://s%u.test/%u", i, i);
        assert_int_equal(add(a->store, url).status, US_NEW);
    }

    us_store_set_written(a->store, us_store_published(a->store));

    after = &since;
    busy_store = a->store;
    late_locks = 0;

    s = us_store_open(a->mem, &lock);
    assert_non_null(s);
    assert_int_equal(us_store_dump(s, stream_put, &dump, &lsn), 0);
    us_store_close(s);

    assert_int_equal(us_store_next_id(a->store), 40000);
    assert_int_equal(lsn + since.len, us_store_published(a->store));

    replay(b->store, &dump, 10000);
    replay(b->store, &since, 100000);
    same(a->store, b->store);

    free(dump.data);
    free(since.data);
    zone_destroy(a);
    zone_destroy(b);
}


/*
 * An image of few URLs, and a journal that makes the index more than
 * 2^US_SPLIT_MAX times as large: the entries of the image are still found.
 */

static void
outgrown(void **state)
{
    char       url[64];
    zone_t    *a, *b;
    unsigned   i;
    uint64_t   lsn;
    stream_t   dump = { 0 }, since = { 0 };

    a = zone_create(16 << 20, 1 << 14);
    b = zone_create(16 << 20, 0);

    for (i = 0; i < 40000; i++) {

        if (i == 20) {
            assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn),
                             0);
            assert_int_equal(lsn, since.len);
            since.len = 0;
        }

        sprintf(url, "http://s%u.test/%u", i % 20000, i);
        assert_int_equal(add(a->store, url).status, US_NEW);
        stream_drain(&since, a->store);
    }

    assert_int_equal(stream_put(&dump, since.data, since.len), 0);
    replay(b->store, &dump, 100000);
    same(a->store, b->store);

    assert_int_equal(add(b->store, "http://s0.test/0").status, US_SEEN);
    assert_int_equal(add(b->store, "http://s0.test/new").new_site, 0);

    free(dump.data);
    free(since.data);
    zone_destroy(a);
    zone_destroy(b);
}


/* a dump that ends anywhere before its last id is damaged, and that is soon
   found, also by the threads that fill the cache */

static void
cut(void **state)
{
    size_t     i, n;
    zone_t    *a, *b;
    ssize_t    rc;
    uint64_t   lsn, next;
    stream_t   dump = { 0 };

    a = zone_create(4 << 20, 0);

    while (us_store_next_id(a->store) < 10000) {
        step(a->store);
        us_store_set_written(a->store, us_store_published(a->store));
    }

    next = us_store_next_id(a->store);
    assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn), 0);

    for (i = 0; i < 20; i++) {
        b = zone_create(4 << 20, 0);
        n = dump.len * i / 20;

        rc = us_store_apply(b->store, dump.data, n);
        assert_true(rc >= 0 && (size_t) rc <= n);
        rc = us_store_settle(b->store);

        if (i && us_store_next_id(b->store) < next) {
            assert_int_equal(rc, US_REPLAY_DAMAGED);
        }

        zone_destroy(b);
    }

    free(dump.data);
    zone_destroy(a);
}


/* retrieval only: ids, no index */

static void
lookup_mode(void **state)
{
    size_t           i, la, lb;
    zone_t          *a, *b;
    uint8_t          ua[US_URL_MAX + 8], ub[US_URL_MAX + 8];
    uint64_t         lsn;
    stream_t         dump = { 0 }, st = { 0 };
    us_store_info_t  info;

    a = zone_create(4 << 20, 1 << 14);
    zone_conf.lookup = 1;
    b = zone_create(4 << 20, 0);
    zone_conf.lookup = 0;

    for (i = 0; i < 10000; i++) {
        step(a->store);
        stream_drain(&st, a->store);
    }

    assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn), 0);
    replay(b->store, &dump, 10000);

    us_store_info(b->store, &info);
    assert_int_equal(info.urls, us_store_next_id(a->store));
    assert_int_equal(info.parts[US_PART_INDEX], 0);

    for (i = 0; i < info.urls; i++) {
        assert_int_equal(us_store_get(a->store, i, ua, &la),
                         us_store_get(b->store, i, ub, &lb));
        if (!us_store_deleted(b->store, i)) {
            assert_int_equal(la, lb);
            assert_memory_equal(ua, ub, la);
        }
    }

    assert_int_equal(add(b->store, "http://x.test/").status, US_UNKNOWN);

    free(dump.data);
    free(st.data);
    zone_destroy(a);
    zone_destroy(b);
}


/* a stream from a hostile disk: refused or applied, never worse */

static void
hostile(void **state)
{
    size_t    i, k, n;
    zone_t   *z;
    uint8_t  *p;
    ssize_t   size;

    for (i = 0; i < 2000; i++) {
        n = 1 + rnd(200);
        p = malloc(n);

        for (k = 0; k < n; k++) {
            p[k] = rnd(4) ? rnd64() : 0;
        }

        size = us_store_op_size(p, n);

        /* what a part says, more of it does not change */

        for (k = 0; k < n; k++) {
            ssize_t  part = us_store_op_size(p, k);
            assert_true(part == 0 || part == size);
        }

        free(p);
    }

    z = zone_create(1 << 20, 0);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\0\7\1", 3), -1);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\0\1\0", 3), -1);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\0\2\0\0", 4), -1);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\0\7\0", 3), 3);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\0\7", 2), 0);
    zone_destroy(z);

    /* deleted at the beginning of a dump, and never given */

    z = zone_create(1 << 20, 0);
    assert_int_equal(us_store_apply(z->store,
                                    (uint8_t *) "\0\6\0\1\1\0\0\0\0\0\0\0", 12),
                     12);
    assert_int_equal(us_store_settle(z->store), US_REPLAY_DAMAGED);
    zone_destroy(z);
}


/* an operation of id and bytes into a store; what us_store_apply() says */

static ssize_t
apply(us_store_t *s, us_op_type_t type, uint64_t id, const void *p, size_t len)
{
    size_t    n;
    us_op_t   op;
    uint8_t  *buf;
    ssize_t   rc;

    memset(&op, 0, sizeof(us_op_t));
    op.type = type;
    op.id = id;
    op.bytes = (us_str_t) { len, p };

    buf = malloc(US_OP_HEAD_MAX + len);
    n = us_op_head(&op, buf);

    if (len) {
        memcpy(buf + n, p, len);
    }

    rc = us_store_apply(s, buf, n + len);
    free(buf);

    return rc == (ssize_t) (n + len) ? 0 : -1;
}


/* a hundred URLs, and they are all there */

static void
assert_usable(us_store_t *s)
{
    char      url[64];
    unsigned  i;

    for (i = 0; i < 100; i++) {
        sprintf(url, "http://s%u.test/%u", i % 9, i);
        assert_int_equal(add(s, url).status, US_NEW);
        assert_int_equal(lookup(s, url).status, US_SEEN);
    }
}


static us_store_image_t
image_of(const zone_t *z, uint64_t ids, uint64_t leaves)
{
    us_store_image_t  im;

    memset(&im, 0, sizeof(us_store_image_t));
    im.version = US_IMAGE_VERSION;
    memcpy(im.hash_key, zone_conf.hash_key, 16);
    im.ids = ids;
    im.leaves = leaves;

    return im;
}


/*
 * A dump that expects more entries, or an image of a larger index, than the
 * zone can have: the index is as it was, and works.
 */

static void
too_large(void **state)
{
    zone_t            *z;
    uint64_t           n;
    us_store_image_t   im;

    for (n = 1; n < (uint64_t) 1 << 40; n *= 2) {
        z = zone_create(1 << 20, 0);
        assert_int_equal(apply(z->store, US_OP_EXPECT, n, NULL, 0), 0);
        assert_int_equal(us_store_settle(z->store), 0);
        assert_usable(z->store);
        zone_destroy(z);

        z = zone_create(1 << 20, 0);
        im = image_of(z, n, n);
        assert_int_equal(apply(z->store, US_OP_IMAGE, 0, &im, sizeof(im)), 0);

        if (us_store_settle(z->store) == 0) {
            assert_usable(z->store);
        }

        zone_destroy(z);
    }
}


/* a leaf whose ids do not ascend; one that begins where the zone has none */

static void
hostile_leaf(void **state)
{
    zone_t            *z;
    unsigned           low;
    uint64_t           words[8];
    us_store_image_t   im;

    for (low = 1; low <= 40; low++) {
        z = zone_create(1 << 20, 0);
        im = image_of(z, 1000, 4);
        assert_int_equal(apply(z->store, US_OP_IMAGE, 0, &im, sizeof(im)), 0);

        /* two entries: all ones, and zero */

        memset(words, 0, sizeof(words));
        words[0] = 7;
        words[1] = 2 | 2 << 8 | low << 16 | 3 << 22 | (uint64_t) 8 << 25;
        words[3] = ((uint64_t) 1 << low) - 1;
        words[3 + (2 * (low + 3) + 63) / 64] = 3;

        assert_int_equal(apply(z->store, US_OP_LEAVES, 4, words,
                               sizeof(words)), -1);
        zone_destroy(z);
    }

    z = zone_create(1 << 20, 0);
    im = image_of(z, 1000, 4);
    assert_int_equal(apply(z->store, US_OP_IMAGE, 0, &im, sizeof(im)), 0);
    assert_int_equal(apply(z->store, US_OP_LEAVES, 3, words, sizeof(words)),
                     -1);
    assert_int_equal(apply(z->store, US_OP_LEAVES, (uint64_t) 1 << 60, words,
                           sizeof(words)),
                     -1);
    zone_destroy(z);
}


/* an image of ids that are not given: the store is not to be written */

static void
image_alone(void **state)
{
    zone_t            *z;
    unsigned           given, i;
    us_store_image_t   im;

    for (given = 0; given <= 2; given++) {
        z = zone_create(1 << 20, 0);
        im = image_of(z, 2, 4);
        assert_int_equal(apply(z->store, US_OP_IMAGE, 0, &im, sizeof(im)), 0);

        /* records, whatever they are */

        for (i = 0; i < given; i++) {
            assert_int_equal(us_store_apply(z->store, (uint8_t *) "\4\1\1",
                                            3),
                             3);
        }

        assert_int_equal(us_store_set_lsn(z->store, 0),
                         given < 2 ? US_REPLAY_DAMAGED : 0);
        zone_destroy(z);
    }
}


/* a settled store, add by add: when one has no room, no later one is applied */

static void
no_room_settled(void **state)
{
    zone_t    *a, *z;
    char       url[32];
    uint8_t    buf[256];
    uint64_t   n, next, i;
    us_str_t   pieces[2];

    a = zone_create(4 << 20, 1 << 12);
    z = zone_create(512 << 10, 0);
    assert_int_equal(us_store_set_lsn(z->store, 0), 0);

    for (i = 0, next = 0; i < 60000; i++) {
        sprintf(url, "http://%lu/", i);
        assert_int_equal(add(a->store, url).status, US_NEW);

        us_store_ops(a->store, us_store_written(a->store), pieces);
        n = pieces[0].len + pieces[1].len;
        memcpy(buf, pieces[0].data, pieces[0].len);
        memcpy(buf + pieces[0].len, pieces[1].data, pieces[1].len);
        us_store_set_written(a->store, us_store_published(a->store));

        if (us_store_apply(z->store, buf, n) == US_REPLAY_NO_ROOM) {
            next = next ? next : us_store_next_id(z->store);

        } else {
            assert_int_equal(next, 0);
        }
    }

    assert_in_range(next, 1000, i - 1000);
    assert_int_equal(us_store_next_id(z->store), next);
    assert_int_equal(us_store_size_needed(z->store, 0), 0);

    zone_destroy(a);
    zone_destroy(z);
}


/* words of ids that do not fit 64 bits are no ids */

static void
far_words(void **state)
{
    zone_t    *z;
    uint64_t   word;

    z = zone_create(1 << 20, 0);
    assert_int_equal(add(z->store, "http://a.test/").id, 0);

    word = 1;
    assert_int_equal(apply(z->store, US_OP_MARKS, (uint64_t) 1 << 58, &word,
                           8), -1);
    assert_int_equal(apply(z->store, US_OP_DELETED, (uint64_t) 1 << 58, &word,
                           8), -1);
    assert_int_equal(mark_has(z->store, 0, 0), 0);
    assert_int_equal(us_store_deleted(z->store, 0), 0);
    assert_int_equal(lookup(z->store, "http://a.test/").status, US_SEEN);
    zone_destroy(z);
}


/* a delete that a dump has twice counts once; marks are words */

static void
words_again(void **state)
{
    zone_t           *z;
    uint64_t          word;
    unsigned          i;
    us_store_info_t   info;

    z = zone_create(1 << 20, 0);
    word = 1;

    for (i = 0; i < 2; i++) {
        assert_int_equal(apply(z->store, US_OP_DELETED, 0, &word, 8), 0);
    }

    /* records, whatever they are */

    for (i = 0; i < 2; i++) {
        assert_int_equal(us_store_apply(z->store, (uint8_t *) "\4\1\1", 3), 3);
    }

    word = 3;
    assert_int_equal(apply(z->store, US_OP_MARKS, 0, &word, 8), 0);
    assert_int_equal(us_store_settle(z->store), 0);

    us_store_info(z->store, &info);
    assert_int_equal(info.deleted, 1);
    assert_int_equal(us_store_deleted(z->store, 0), 1);
    assert_int_equal(mark_has(z->store, 0, 1), 1);
    zone_destroy(z);
}


/* the term of a primary: nothing in the store depends on it */

static void
term(void **state)
{
    zone_t   *z;
    uint8_t   name[US_OP_TERM_MAX + 1];

    z = zone_create(1 << 20, 0);
    memset(name, 'n', sizeof(name));

    assert_int_equal(add(z->store, "http://a.test/").id, 0);
    assert_int_equal(apply(z->store, US_OP_TERM, 7, name, US_OP_TERM_MAX), 0);
    assert_int_equal(apply(z->store, US_OP_TERM, 8, name, US_OP_TERM_MAX + 1),
                     -1);
    assert_int_equal(us_store_next_id(z->store), 1);
    assert_int_equal(lookup(z->store, "http://a.test/").id, 0);

    zone_destroy(z);
}


/* the largest model may lose each of its tokens */

static void
drop_all_tokens(void **state)
{
    us_op_t  op, read;
    uint8_t  head[US_OP_HEAD_MAX];
    size_t   n;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_DROP;
    op.bytes.len = US_DROP_BYTES(US_TOKENS_MAX);

    n = us_op_head(&op, head);
    assert_int_equal(us_op_parse(head, n, &read), n + op.bytes.len);
    assert_int_equal(read.bytes.len, op.bytes.len);

    op.bytes.len++;
    assert_int_equal(us_op_parse(head, us_op_head(&op, head), &read), -1);
}


/* a record of the longest text that there is: with its scheme, no URL */

static void
long_record(void **state)
{
    size_t        i, len, rest;
    zone_t       *z;
    us_op_t       op;
    us_arena_t    a;
    us_models_t   ms;
    us_header_t   h;
    us_bitout_t   o;
    uint8_t      *url, bits[US_RECORD_BUFFER], stream[US_RECORD_BUFFER + 32];

    /* ASan reports the first byte after them */

    url = malloc(US_URL_MAX + 8);
    z = zone_create(1 << 20, 0);
    assert_int_equal(us_arena_open(&a, z->mem), 0);
    assert_int_equal(us_models_open(&ms, &a), 0);

    for (rest = US_URL_MAX - 16; rest <= US_URL_MAX; rest++) {
        memset(&h, 0, sizeof(us_header_t));
        h.kind = US_RAW;
        h.number = US_MODEL_BUILTIN;

        memset(&o, 0, sizeof(us_bitout_t));
        o.p = bits;
        us_header_write(&ms, us_store_next_id(z->store), &h, &o);
        us_bitout_put(&o, US_SPELLING_HTTPS | US_SPELLING_WWW, 8);

        for (i = 0; i < rest; i++) {
            us_bitout_put(&o, 'a', 8);
        }

        memset(&op, 0, sizeof(us_op_t));
        op.type = US_OP_ADD;
        op.units = ((o.p - bits) * 8 + o.n + 3) / 4;
        *o.p = (uint8_t) o.acc;

        len = us_op_head(&op, stream);
        memcpy(stream + len, bits, (op.units + 1) / 2);
        len += (op.units + 1) / 2;
        assert_int_equal(us_store_apply(z->store, stream, len), len);

        if (us_store_get(z->store, us_store_next_id(z->store) - 1, url, &len)
            == US_OK)
        {
            assert_int_equal(len, rest + 12);
            assert_true(rest <= US_URL_MAX - 7);

        } else {
            assert_true(rest > US_URL_MAX - 7);
        }
    }

    us_models_close(&ms);
    free(url);
    zone_destroy(z);
}


/* asks for a URL, or adds it; its id, whose URL must be this one */

static us_store_item_t
asked(us_store_t *s, int adds, int merge, const char *url, uint64_t id,
    const char *text)
{
    size_t           len;
    uint8_t          buf[US_URL_MAX + 8];
    us_store_item_t  it;

    it = item(url, 0);
    it.merge = merge;

    if (adds) {
        us_store_add(s, &it, 1);

    } else {
        us_store_seen(s, &it, 1);
    }

    assert_int_equal(it.id, id);

    if (text) {
        assert_string(buf, us_store_item_url(&it, buf), text);
        assert_int_equal(us_store_get(s, id, buf, &len), US_OK);
        assert_string(buf, len, text);
    }

    return it;
}


static us_store_status_t
site_of(us_store_t *s, const char *name, int merge, us_store_site_t *site)
{
    us_str_t  text;

    text.data = (const uint8_t *) name;
    text.len = strlen(name);

    return us_store_site(s, text, merge, site);
}


/* URLs of these hosts, by a list of suffixes of before */

static void
suffixes_before(us_store_t *s)
{
    static const struct {
        int          merge;
        const char  *url;
        const char  *text;
    } urls[] = {
        { 0, "http://www.homeoffice.gov.uk/a", NULL },
        { 0, "http://homeoffice.gov.uk/b", NULL },
        { 0, "http://homeoffice.gov.uk/a", NULL },
        { 1, "http://www.gitbook.io/a", NULL },
        { 1, "http://gitbook.io/b", "http://www.gitbook.io/b" },
        { 0, "https://www.homeoffice.gov.uk/c", NULL }
    };

    unsigned  i;

    for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_int_equal(asked(s, 1, urls[i].merge, urls[i].url, i,
                               urls[i].text ? urls[i].text : urls[i].url)
                         .status, US_NEW);
    }
}


/* the same hosts by a list of today, on which they have changed places */

static void
suffixes_after(us_store_t *s)
{
    int              was;
    uint64_t         lsn;
    us_store_site_t  site;

    /* one site now, spelled as its first URL; of two ids the smaller one */

    asked(s, 0, 1, "http://www.homeoffice.gov.uk/a", 0,
          "http://www.homeoffice.gov.uk/a");
    asked(s, 0, 1, "http://homeoffice.gov.uk/a", 0,
          "http://www.homeoffice.gov.uk/a");
    asked(s, 0, 1, "http://www.homeoffice.gov.uk/b", 1,
          "http://homeoffice.gov.uk/b");
    asked(s, 0, 1, "https://homeoffice.gov.uk/c", 5,
          "https://www.homeoffice.gov.uk/c");
    asked(s, 0, 1, "http://homeoffice.gov.uk/c", US_STORE_NO_ID, NULL);
    asked(s, 0, US_MERGE_STRIP, "http://homeoffice.gov.uk/a", 0,
          "http://www.homeoffice.gov.uk/a");

    assert_int_equal(site_of(s, "homeoffice.gov.uk", 1, &site), US_OK);
    assert_int_equal(site.first, 0);
    assert_int_equal(site.spelling, US_SPELLING_WWW);
    assert_int_equal(site.urls, 4);
    assert_int_equal(site.last, 5);

    assert_false(asked(s, 1, 1, "http://homeoffice.gov.uk/d", 6,
                       "http://www.homeoffice.gov.uk/d").new_site);

    /* two sites: each URL belongs to the one that its text names */

    asked(s, 0, 0, "http://www.gitbook.io/a", 3, "http://www.gitbook.io/a");
    asked(s, 0, 0, "http://www.gitbook.io/b", 4, "http://www.gitbook.io/b");
    asked(s, 0, 0, "http://gitbook.io/a", US_STORE_NO_ID, NULL);
    asked(s, 0, 0, "http://gitbook.io/b", US_STORE_NO_ID, NULL);

    assert_int_equal(site_of(s, "gitbook.io", 0, &site), US_UNKNOWN);
    assert_int_equal(site_of(s, "www.gitbook.io", 0, &site), US_OK);
    assert_int_equal(site.first, 3);
    assert_int_equal(site.spelling, 0);
    assert_int_equal(site.urls, 2);

    assert_true(asked(s, 1, 0, "http://gitbook.io/b", 7,
                      "http://gitbook.io/b").new_site);
    assert_false(asked(s, 1, 0, "http://www.gitbook.io/c", 8,
                       "http://www.gitbook.io/c").new_site);
    assert_int_equal(us_store_first_of_site(s, 3), 1);
    assert_int_equal(us_store_first_of_site(s, 7), 1);
    assert_int_equal(us_store_first_of_site(s, 8), 0);

    /* www=strip: new ones are stored without, whatever the site's first has */

    assert_true(asked(s, 1, US_MERGE_STRIP, "http://gov.uk.test/", 9,
                      "http://gov.uk.test/").new_site);
    asked(s, 1, US_MERGE_STRIP, "http://homeoffice.gov.uk/e", 10,
          "http://homeoffice.gov.uk/e");

    /* after a delete of the smaller id the other one is found */

    assert_int_equal(us_store_delete(s, 0, &was, &lsn), US_OK);
    asked(s, 0, 1, "http://www.homeoffice.gov.uk/a", 2,
          "http://homeoffice.gov.uk/a");
    assert_int_equal(site_of(s, "homeoffice.gov.uk", 1, &site), US_OK);
    assert_int_equal(site.first, 0);
    assert_int_equal(site.urls, 5);
}


/*
 * Hosts of which "www." was not mergeable and is, and the other way round: in
 * the store as it is, with a hot table, and replayed from a journal and from a
 * dump, whose image has the index.
 */

static void
suffixes(void **state)
{
    zone_t     *a, *b;
    unsigned    way;
    uint64_t    lsn, at;
    us_hot_t   *hot;
    stream_t    st = { 0 }, dump = { 0 };

    hot = us_hot_create(US_HOT_MIN);

    for (way = 0; way < 5; way++) {
        zone_conf.sites = way < 4;
        a = zone_create(4 << 20, 1 << 14);
        b = zone_create(4 << 20, 1 << 14);
        st.len = 0;
        dump.len = 0;

        suffixes_before(a->store);
        stream_drain(&st, a->store);

        if (way == 1) {
            us_store_hot(a->store, hot, NULL);
        }

        switch (way) {

        case 0:
        case 1:
            suffixes_after(a->store);
            break;

        case 2:
            replay(b->store, &st, 5000);
            suffixes_after(b->store);
            break;

        case 3:
            assert_int_equal(us_store_settle(b->store), 0);
            replay(b->store, &st, 5000);
            suffixes_after(b->store);
            break;

        default:
            assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn),
                             0);
            replay(b->store, &dump, 5000);
            asked(b->store, 0, 1, "http://homeoffice.gov.uk/a", 0,
                  "http://www.homeoffice.gov.uk/a");
            asked(b->store, 0, 0, "http://gitbook.io/a", US_STORE_NO_ID, NULL);
            assert_ptr_equal(same_store(a->store, b->store, 0, &at), NULL);
        }

        /* what was done since gives the same store, too */

        if (way < 2) {
            stream_drain(&st, a->store);
            replay(b->store, &st, 5000);
            assert_ptr_equal(same_store(a->store, b->store, 0, &at), NULL);
        }

        zone_destroy(a);
        zone_destroy(b);
    }

    us_hot_destroy(hot);
    free(st.data);
    free(dump.data);
    zone_conf.sites = 0;
}


/*
 * Lists of suffixes that know nothing of each other: a host's bytes decide, a
 * bit for each list.  Look-ups are compared with all URLs that are stored.
 */

#define LISTED  1200

typedef struct {
    char      url[512];
    uint64_t  id;                     /* what is expected; of a record: gone */
} listed_t;


static const char *
host_of(const char *url)
{
    return strstr(url, "://") + 3;
}


static int
with_www(const char *url)
{
    return strncmp(host_of(url), "www.", 4) == 0;
}


static int
listed(const char *url, unsigned list)
{
    uint32_t     h;
    const char  *p;

    p = host_of(url) + 4 * with_www(url);

    for (h = 1; *p && *p != '/'; p++) {
        h = (h ^ (uint8_t) *p) * 16777619;
    }

    return h >> (8 + list) & 1;
}


/* whether they are one URL, by a list */

static int
listed_same(const char *a, const char *b, unsigned list)
{
    if (strncmp(a, b, 5) != 0) {
        return 0;
    }

    if (listed(a, list)) {
        a = host_of(a) + 4 * with_www(a);
        b = host_of(b) + 4 * with_www(b);
    }

    return strcmp(a, b) == 0;
}


/* a URL in the other spelling */

static void
respell(char *to, const char *url)
{
    int  scheme = (int) (host_of(url) - url);

    snprintf(to, sizeof(((listed_t *) 0)->url), "%.*s%s%s", scheme, url,
             with_www(url) ? "" : "www.", url + scheme + 4 * with_www(url));
}


/* real URLs, each in the spelling that it has or in the other one */

static void
listed_read(const char *name, listed_t *urls)
{
    FILE      *f;
    char       line[480], *end, *host;
    unsigned   n;

    f = corpus_open(name, 4 * LISTED, 0);
    n = 0;

    while (fgets(line, sizeof(line), f)) {
        end = strchr(line, '\n');
        host = strstr(line, "://");

        if (n == LISTED || end == NULL || host == NULL || rnd(3) == 0
            || strncmp(line, "http", 4) != 0 || strchr(host + 3, '/') == NULL
            || strncmp(host + 3, "www.www.", 8) == 0)
        {
            continue;
        }

        *end = '\0';

        if (rnd(2)) {
            strcpy(urls[n++].url, line);

        } else {
            respell(urls[n++].url, line);
        }
    }

    corpus_close(f);
    assert_int_equal(n, LISTED);
}


static void
suffixes_any(const char *name)
{
    int               was;
    size_t            len;
    zone_t           *z[3];
    stream_t          st = { 0 };
    unsigned          i, k, n, way, next, round, asks;
    uint64_t          id, lsn;
    listed_t         *have, *ask;
    us_store_item_t   items[64];

    have = calloc(LISTED, sizeof(listed_t));
    ask = calloc(4 * LISTED, sizeof(listed_t));

    for (way = 0; way < 3; way++) {
        z[way] = zone_create(8 << 20, way ? 0 : 1 << 16);
    }


    listed_read(name, have);

    for (i = 0; i < LISTED; i += n) {
        n = 1 + rnd(64);
        n = i + n < LISTED ? n : LISTED - i;

        for (k = 0; k < n; k++) {
            items[k] = item(have[i + k].url, 0);
            items[k].merge = listed(have[i + k].url, 0);
        }

        us_store_add(z[0]->store, items, n);
        stream_drain(&st, z[0]->store);
    }

    /* its index is made as a whole, or an add at a time */

    replay(z[1]->store, &st, 5000);
    assert_int_equal(us_store_settle(z[2]->store), 0);
    replay(z[2]->store, &st, 5000);

    next = us_store_next_id(z[0]->store);
    assert_in_range(next, LISTED / 2, LISTED);

    for (id = 0; id < next; id++) {
        assert_int_equal(us_store_get(z[0]->store, id, (uint8_t *) have[id].url,
                                      &len), US_OK);
        have[id].url[len] = '\0';
    }

    for (round = 0; round < 2; round++) {

        /* each URL in both spellings, and one that is longer */

        for (id = 0, asks = 0; id < next; id++) {
            strcpy(ask[asks++].url, have[id].url);
            respell(ask[asks++].url, have[id].url);
            snprintf(ask[asks++].url, sizeof(ask->url), "%.490s%c",
                     have[id].url, 'a' + rnd(26));
        }

        for (i = 0; i < asks; i++) {
            ask[i].id = US_STORE_NO_ID;

            for (id = 0; id < next; id++) {
                if (have[id].id == 0
                    && listed_same(have[id].url, ask[i].url, 1))
                {
                    ask[i].id = id;
                    break;
                }
            }
        }

        for (i = 0; i < asks; i += n) {
            n = rnd(2) ? 64 : 1 + rnd(64);
            n = i + n < asks ? n : asks - i;

            for (k = 0; k < n; k++) {
                items[k] = item(ask[i + k].url, 0);
                items[k].merge = listed(ask[i + k].url, 1);
            }

            way = rnd(3);
            us_store_seen(z[way]->store, items, n);

            for (k = 0; k < n; k++) {
                if (items[k].id != ask[i + k].id) {
                    print_error("%s\n", ask[i + k].url);
                }

                assert_int_equal(items[k].id, ask[i + k].id);
            }
        }

        /* of two ids of a URL, the other one is found then */

        for (id = 0; id < next; id++) {
            if (rnd(3) == 0) {
                have[id].id = 1;

                for (way = 0; way < 3; way++) {
                    us_store_delete(z[way]->store, id, &was, &lsn);
                }
            }
        }
    }

    for (way = 0; way < 3; way++) {
        zone_destroy(z[way]);
    }

    free(st.data);
    free(have);
    free(ask);
}


static void
suffixes_in_groups(void **state)
{
    unsigned  i;

    for (i = 0; i < 2; i++) {
        suffixes_any("alphagov_old_urls");
        suffixes_any("reddit_submissions");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(replayed),
        cmocka_unit_test(deleted_many),
        cmocka_unit_test(dumped),
        cmocka_unit_test(imaged),
        cmocka_unit_test(split_often),
        cmocka_unit_test(outgrown),
        cmocka_unit_test(cut),
        cmocka_unit_test(lookup_mode),
        cmocka_unit_test(hostile),
        cmocka_unit_test(too_large),
        cmocka_unit_test(hostile_leaf),
        cmocka_unit_test(image_alone),
        cmocka_unit_test(no_room_settled),
        cmocka_unit_test(far_words),
        cmocka_unit_test(words_again),
        cmocka_unit_test(term),
        cmocka_unit_test(drop_all_tokens),
        cmocka_unit_test(long_record),
        cmocka_unit_test(suffixes),
        cmocka_unit_test(suffixes_in_groups),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
