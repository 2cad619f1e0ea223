
/*
 * A store that is a shard: what it answers under which map, and how the map
 * goes through journal, dump and replay.
 */


#include "store_zone.h"
#include "same.h"
#include "stream.h"
#include "store/us_shard.h"
#include "store/us_erasures.h"
#include "store/us_store_private.h"


#define UUID_0    "00000000000000000000000000000000"
#define UUID_1    "11111111111111111111111111111111"
#define UUID_2    "22222222222222222222222222222222"
#define CLUSTER   "0123456789abcdef0123456789abcdef"


static us_str_t
of(const char *text)
{
    return (us_str_t) { strlen(text), (const uint8_t *) text };
}


/* a map of shards 0, 1 and 2; slots: the JSON of its member */

static us_map_t *
map(unsigned version, const char *slots)
{
    int        n;
    char       text[4096], err[256];
    us_map_t  *m;

    n = snprintf(text, sizeof(text), "{\"cluster\":\"%s\",\"version\":%u,"
                 "\"norm\":\"test\",\"key\":\"url\",\"shards\":{"
                 "\"0\":{\"uuid\":\"%s\",\"nodes\":[\"a\"]},"
                 "\"1\":{\"uuid\":\"%s\",\"nodes\":[\"b\"]},"
                 "\"2\":{\"uuid\":\"%s\",\"nodes\":[\"c\"]}},"
                 "\"slots\":%s}", CLUSTER, version, UUID_0, UUID_1, UUID_2,
                 slots);

    m = us_map_read((us_str_t) { (size_t) n, (uint8_t *) text }, err,
                    sizeof(err));

    if (m == NULL) {
        fail_msg("%s", err);
    }

    return m;
}


/* of shard 0: a quarter is owned, one inherited, one sealed, one foreign */

#define QUARTERS  "[[\"0-1023\",0],[\"1024-2047\",0,1],[\"2048-3071\",1,0]," \
                  "[\"3072-4095\",2]]"


static const char *
url_in(unsigned quarter, unsigned i)
{
    unsigned     n;
    static char  buf[64];

    for (n = i * 1000; /* void */ ; n++) {
        sprintf(buf, "http://h%u.test/%u", n % 7, n);

        if (us_slot_of(US_KEY_URL, of(buf)) / 1024
            == quarter)
        {
            return buf;
        }
    }
}


static zone_t *
shard_create(unsigned number)
{
    zone_t  *z;

    zone_conf.is_shard = 1;
    zone_conf.shard = number;
    z = zone_create(16 << 20, 1 << 18);
    zone_conf.is_shard = 0;

    return z;
}


static void
adopt(zone_t *z, us_map_t *m)
{
    uint64_t  lsn;

    assert_int_equal(us_store_adopt(z->store, m,
                                    us_store_map_number(z->store), &lsn),
                     US_OK);
    assert_int_equal(lsn, us_store_published(z->store));
    assert_int_equal(us_store_map(z->store)->lsn, lsn);
    us_store_under(z->store, m->version, m->digest);
}


static void
ownership(void **state)
{
    unsigned   q, i;
    uint64_t   lsn;
    zone_t    *z;
    us_map_t  *m, *other;
    uint8_t    none[16] = { 0 };

    /* rows: owned, inherited, sealed, foreign; add, hit, denial */

    static const us_store_status_t  same[4][3] = {
        { US_NEW, US_SEEN, US_UNSEEN },
        { US_NEW, US_SEEN, US_UNSEEN },
        { US_MOVED, US_SEEN, US_UNSEEN },
        { US_MOVED, US_MOVED, US_MOVED }
    };
    static const us_store_status_t  another[4][3] = {
        { US_NEW, US_SEEN, US_UNSEEN },
        { US_MOVED, US_SEEN, US_MOVED },
        { US_MOVED, US_SEEN, US_MOVED },
        { US_MOVED, US_MOVED, US_MOVED }
    };

    z = shard_create(0);

    /* without a map nothing is answered */

    assert_int_equal(add(z->store, url_in(0, 0)).status, US_MOVED);
    assert_int_equal(lookup(z->store, url_in(0, 0)).status, US_MOVED);

    m = map(1, "[[\"0-4095\",0]]");
    adopt(z, m);
    us_map_free(m);

    for (q = 0; q < 4; q++) {
        assert_int_equal(add(z->store, url_in(q, 1)).status, US_NEW);
    }

    m = map(2, QUARTERS);
    adopt(z, m);

    for (i = 0; i < 4; i++) {

        /* the same map; another version, another digest, none */

        if (i == 1) {
            us_store_under(z->store, 1, m->digest);

        } else if (i == 2) {
            us_store_under(z->store, 2, none);

        } else if (i == 3) {
            us_store_under(z->store, 0, none);
        }

        for (q = 0; q < 4; q++) {
            assert_int_equal(lookup(z->store, url_in(q, 10 + i)).status,
                             i ? another[q][2] : same[q][2]);
            assert_int_equal(add(z->store, url_in(q, 10 + i)).status,
                             i ? another[q][0] : same[q][0]);
            assert_int_equal(lookup(z->store, url_in(q, 1)).status,
                             i ? another[q][1] : same[q][1]);
            assert_int_equal(add(z->store, url_in(q, 1)).status,
                             i ? another[q][1] : same[q][1]);
            assert_int_equal(us_store_denies(z->store,
                                             of(url_in(q, 10 + i))),
                             (i ? another : same)[q][2] == US_UNSEEN);
        }
    }

    /* the number of the map that was checked is another one by now */

    other = map(3, QUARTERS);
    assert_int_equal(us_store_adopt(z->store, other, 1, &lsn), US_MOVED);

    us_map_free(other);
    us_map_free(m);
    zone_destroy(z);
}


/* two handles: an add whose look-ups were made under the map before */

static us_store_t  *second;
static us_map_t    *next;


static void
lock_adopts(void *data)
{
    uint64_t   lsn;
    us_map_t  *m;

    m = next;
    next = NULL;

    if (m) {
        assert_int_equal(us_store_adopt(second, m, 1, &lsn), US_OK);
        us_map_free(m);
    }
}


static void
sealed_before_the_lock(void **state)
{
    zone_t           *z;
    us_map_t         *m;
    us_store_t       *s;
    us_store_lock_t   lock = { lock_adopts, zone_lock, NULL };

    z = shard_create(0);
    m = map(1, "[[\"0-4095\",0]]");
    adopt(z, m);
    us_map_free(m);

    second = z->store;
    s = us_store_open(z->mem, &lock);
    assert_non_null(s);
    (void) us_store_map(s);

    next = map(2, QUARTERS);
    assert_int_equal(add(s, url_in(2, 5)).status, US_MOVED);
    assert_null(next);
    assert_int_equal(us_store_next_id(s), 0);
    assert_int_equal(add(s, url_in(0, 5)).status, US_NEW);

    us_store_close(s);
    zone_destroy(z);
}


/* a store that becomes a shard after an add has looked its URL up */

static void
lock_becomes(void *data)
{
    if (second) {
        assert_int_equal(us_store_set_shard(second, 0), 0);
        second = NULL;
    }
}


static void
shard_before_the_lock(void **state)
{
    zone_t           *z;
    us_store_t       *s;
    us_store_lock_t   lock = { lock_becomes, zone_lock, NULL };

    z = zone_create(4 << 20, 1 << 17);
    s = us_store_open(z->mem, &lock);
    assert_non_null(s);

    second = z->store;
    assert_int_equal(add(s, url_in(0, 5)).status, US_MOVED);
    assert_null(second);
    assert_int_equal(us_store_next_id(s), 0);

    us_store_close(s);
    zone_destroy(z);
}


static uint64_t
erasure(us_store_t *s, us_erasure_kind_t kind)
{
    uint64_t  number, lsn;

    assert_int_equal(us_store_erasure_begin(s, kind, of(""),
                                            (const uint8_t *) UUID_0, 0, NULL,
                                            &number, &lsn),
                     US_NEW);

    return number;
}


/* of a URL that was erased under the first map, by the request of a router */

static us_store_status_t
asked(us_store_t *s, const char *url)
{
    us_store_item_t  it;

    it = lookup(s, url);
    us_store_refuse(s, &it, 1);

    return it.status;
}


/* what was erased is not denied in a slot that has another owner now */

static void
refuses_where_sealed(void **state)
{
    unsigned          q;
    uint64_t          number;
    zone_t           *z;
    us_map_t         *m;
    us_store_item_t   it;

    zone_conf.erases = 1;
    z = shard_create(0);
    zone_conf.erases = 0;
    m = map(1, "[[\"0-4095\",0]]");
    adopt(z, m);

    number = erasure(z->store, US_ERASURE_URLS);

    for (q = 0; q < 4; q++) {
        it = item(url_in(q, 1), 0);
        (void) us_store_erase(z->store, number, &it, 1);
        assert_int_equal(it.status, US_ERASED);
        assert_int_equal(asked(z->store, url_in(q, 1)), US_UNSEEN);
    }

    us_map_free(m);
    m = map(2, QUARTERS);
    adopt(z, m);

    for (q = 0; q < 4; q++) {
        assert_int_equal(asked(z->store, url_in(q, 1)),
                         q == 2 ? US_ERASED : q == 3 ? US_MOVED : US_UNSEEN);
        assert_int_equal(asked(z->store, url_in(q, 2)),
                         q == 3 ? US_MOVED : US_UNSEEN);
    }

    us_store_under(z->store, 1, m->digest);
    assert_int_equal(asked(z->store, url_in(2, 1)), US_MOVED);

    us_map_free(m);
    zone_destroy(z);
}


/* a site is erased by all shards of one map */

static void
site_under(void **state)
{
    uint64_t          number, lsn;
    zone_t           *z;
    us_map_t         *m;
    us_store_t       *s;
    us_store_lock_t   lock = { lock_adopts, zone_lock, NULL };

    zone_conf.erases = 1;
    z = shard_create(0);
    zone_conf.erases = 0;
    m = map(1, "[[\"0-4095\",0]]");
    adopt(z, m);

    second = z->store;
    s = us_store_open(z->mem, &lock);
    assert_non_null(s);

    number = erasure(s, US_ERASURE_SITE);
    us_store_under(s, 1, m->digest);

    /* the next one is adopted before the lock is taken */

    next = map(2, QUARTERS);
    (void) us_store_map(s);
    assert_int_equal(us_store_erase_site(s, number, of("a.test"), &lsn),
                     US_MOVED);
    assert_null(next);
    assert_int_equal(us_store_erase_site(s, number, of("a.test"), &lsn),
                     US_MOVED);

    us_store_under(s, 2, us_store_map(s)->digest);
    assert_int_equal(us_store_erase_site(s, number, of("a.test"), &lsn),
                     US_OK);

    /* a client that knows no map */

    us_store_under(s, 0, m->digest);
    assert_int_equal(us_store_erase_site(s, number, of("a.test"), &lsn),
                     US_OK);

    us_map_free(m);
    us_store_close(s);
    zone_destroy(z);
}


/* whoever checked an older map against the one before */

static void
older(void **state)
{
    zone_t    *z;
    uint64_t   lsn;
    us_map_t  *m, *same;

    z = shard_create(0);
    m = map(2, QUARTERS);
    same = map(2, "[[\"0-4095\",0]]");
    adopt(z, m);

    assert_int_equal(us_store_adopt(z->store, same, 1, &lsn), US_MOVED);
    assert_int_equal(us_store_map(z->store)->number, 1);
    assert_memory_equal(us_store_map(z->store)->digest, m->digest, 16);

    us_map_free(same);
    us_map_free(m);
    zone_destroy(z);
}


static void
text_is(zone_t *z, const us_map_t *m)
{
    uint8_t   *buf;
    uint64_t   number;

    buf = malloc(US_MAP_TEXT_MAX);

    assert_int_equal(us_store_map_text(z->store, buf, &number), m->text.len);
    assert_memory_equal(buf, m->text.data, m->text.len);
    assert_int_equal(us_store_map(z->store)->version, m->version);
    assert_memory_equal(us_store_map(z->store)->digest, m->digest, 16);
    assert_memory_equal(us_store_map(z->store)->cluster, m->cluster, 16);

    free(buf);
}


/* maps among adds; a dump between them; replayed in bulk, and when settled */

static void
replayed(void **state)
{
    int         bulk;
    char        url[64];
    unsigned    i;
    uint64_t    lsn, at;
    zone_t     *a, *b;
    us_map_t   *m[4];
    stream_t    all = { 0 }, dump = { 0 }, since = { 0 };

    a = shard_create(1);

    for (i = 0; i < 4; i++) {
        m[i] = map(i + 1, i % 2 ? "[[\"0-4095\",1,0]]"
                                : "[[\"0-99\",0,1],[\"100-4095\",1,0]]");
    }

    for (i = 0; i < 4000; i++) {

        if (i % 1000 == 0) {
            adopt(a, m[i / 1000]);
        }

        if (i == 2500) {
            assert_int_equal(us_store_dump(a->store, stream_put, &dump, &lsn),
                             0);
            stream_drain(&all, a->store);
            assert_int_equal(lsn, all.len);
        }

        sprintf(url, "http://s%u.test/%u", i % 50, i);
        add(a->store, url);
        stream_drain(&all, a->store);
    }

    stream_put(&since, all.data + lsn, all.len - lsn);
    assert_true(us_store_next_id(a->store) > 3900);
    assert_true(us_store_next_id(a->store) < 4000);

    for (bulk = 0; bulk < 4; bulk++) {
        b = shard_create(1);

        if (bulk & 1) {
            assert_int_equal(us_store_apply(b->store, all.data, all.len),
                             all.len);

        } else {
            assert_int_equal(us_store_apply(b->store, dump.data, dump.len),
                             dump.len);

            if (bulk & 2) {
                assert_int_equal(us_store_settle(b->store), 0);
            }

            assert_int_equal(us_store_apply(b->store, since.data, since.len),
                             since.len);
        }

        assert_int_equal(us_store_settle(b->store), 0);
        text_is(b, m[3]);
        us_store_under(b->store, m[3]->version, m[3]->digest);
        assert_ptr_equal(same_store(a->store, b->store, 50, &at), NULL);
        zone_destroy(b);
    }

    /* a map that the dump has already, or an older one, changes nothing */

    b = shard_create(1);
    assert_int_equal(us_store_apply(b->store, all.data, all.len), all.len);
    assert_int_equal(us_store_settle(b->store), 0);
    at = us_store_map(b->store)->number;
    lsn = us_store_op_size(all.data, all.len);
    assert_int_equal(us_store_apply(b->store, all.data, lsn), lsn);
    assert_int_equal(us_store_map(b->store)->number, at);

    /* of another shard, and of a store that is none */

    zone_destroy(b);
    b = shard_create(2);
    assert_int_equal(us_store_apply(b->store, all.data, all.len),
                     US_REPLAY_DAMAGED);
    zone_destroy(b);
    b = zone_create(4 << 20, 0);
    assert_int_equal(us_store_apply(b->store, all.data, all.len),
                     US_REPLAY_DAMAGED);
    zone_destroy(b);

    for (i = 0; i < 4; i++) {
        us_map_free(m[i]);
    }

    free(all.data);
    free(dump.data);
    free(since.data);
    zone_destroy(a);
}


/* a map of so many shards, which has each slot in turn */

static us_map_t *
large(unsigned version, unsigned shards)
{
    char      *text, *p, err[256];
    unsigned   i;
    us_map_t  *m;

    text = malloc(US_MAP_TEXT_MAX * 2);
    p = text + sprintf(text, "{\"cluster\":\"%s\",\"version\":%u,\"norm\":"
                       "\"test\",\"key\":\"site\",\"shards\":{", CLUSTER,
                       version);

    for (i = 0; i < shards; i++) {
        p += sprintf(p, "%s\"%u\":{\"uuid\":\"%032x\",\"nodes\":[\"n%u\"]}",
                     i ? "," : "", i, i + 1, i);
    }

    p += sprintf(p, "},\"slots\":[");

    for (i = 0; i < US_SLOTS; i++) {
        p += sprintf(p, "%s[\"%u\",%u]", i ? "," : "", i, i % shards);
    }

    p += sprintf(p, "]}");

    m = us_map_read((us_str_t) { (size_t) (p - text), (uint8_t *) text }, err,
                    sizeof(err));

    if (m == NULL) {
        fail_msg("%s", err);
    }

    free(text);

    return m;
}


static uint64_t
maps_bytes(zone_t *z)
{
    us_store_info_t  info;

    us_store_info(z->store, &info);

    return info.parts[US_PART_MAPS];
}


/* a replay of `all` from byte `from` on, after a dump if there is one */

static void
again(const stream_t *dump, const stream_t *all, size_t from, us_map_t *m,
    uint64_t bytes)
{
    zone_t    *z;
    uint64_t   size;

    z = shard_create(0);

    if (dump->len) {
        assert_int_equal(us_store_apply(z->store, dump->data, dump->len),
                         dump->len);
    }

    assert_int_equal(us_store_apply(z->store, all->data + from,
                                    all->len - from),
                     all->len - from);
    assert_int_equal(us_store_settle(z->store), 0);
    text_is(z, m);
    assert_int_equal(maps_bytes(z), bytes);

    size = us_store_size_needed(z->store, 1);
    assert_true(size > 0 && size < 16 << 20);

    zone_destroy(z);
}


/*
 * Maps that get longer and shorter: the first one takes what all of them need,
 * and a replay takes as much, also one that begins with a short map.
 */

static void
rooms(void **state)
{
    unsigned          i, shards;
    uint64_t          lsn, bytes, since;
    zone_t           *a;
    us_map_t         *m;
    stream_t          all = { 0 }, dump = { 0 };

    static const unsigned  lengths[] = { 1, 32, 4, 1, 2, 8, 16, 32, 64 };

    a = shard_create(0);
    assert_int_equal(maps_bytes(a), 0);
    since = 0;
    bytes = 0;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        shards = lengths[i];
        m = shards == 1 ? map(i + 1, "[[\"0-4095\",0]]") : large(i + 1, shards);
        adopt(a, m);
        text_is(a, m);

        bytes = i ? bytes : maps_bytes(a);
        assert_int_equal(maps_bytes(a), bytes);
        assert_in_range(bytes, 16 << 13, 16 << 14);

        stream_drain(&all, a->store);
        again(&(stream_t) { 0 }, &all, 0, m, bytes);

        if (i == 3) {
            assert_int_equal(us_store_dump(a->store, stream_put, &dump, &since),
                             0);
        }

        if (dump.len) {
            again(&dump, &all, since, m, bytes);
        }

        us_map_free(m);
    }

    /* longer than a place */

    m = large(100, 1200);
    assert_true(m->text.len > bytes / 2 && m->text.len < 1 << 18);
    assert_int_equal(us_store_adopt(a->store, m, i, &lsn), US_FULL);
    us_map_free(m);

    /* larger than the ring, or than what the ring has free */

    m = large(100, 4000);
    assert_true(m->text.len > 1 << 18);
    assert_int_equal(us_store_adopt(a->store, m, i, &lsn), US_FULL);
    us_map_free(m);

    for (i = 100; i < 110; i++) {
        m = large(i, 32);

        if (us_store_adopt(a->store, m, us_store_map(a->store)->number, &lsn)
            == US_BUSY)
        {
            us_map_free(m);
            break;
        }

        us_map_free(m);
    }

    assert_in_range(i, 101, 109);

    free(all.data);
    free(dump.data);
    zone_destroy(a);
}


/* each change of a fenced store: refused, and no byte of the zone is another */

static void
refused(zone_t *z, us_map_t *m)
{
    int               was;
    char              url[64];
    uint64_t          lsn;
    uint8_t          *before;
    us_store_item_t   items[3];
    us_store_claim_t  claims[2] = { { .id = 0 }, { .id = 99 } };

    before = malloc(z->size);
    memcpy(before, z->mem, z->size);

    /* what is known is answered, up to the first change */

    sprintf(url, "%s", url_in(0, 7));
    items[0] = item("http://s0.test/0", 0);
    items[1] = item(url, 0);
    items[2] = items[0];
    us_store_add(z->store, items, 3);
    assert_int_equal(items[0].status, US_SEEN);
    assert_int_equal(items[1].status, US_FENCED);
    assert_int_equal(items[2].status, US_FENCED);

    us_store_time(z->store, 3600 * 1000);
    items[0] = item("http://s0.test/0", 0);
    us_store_add_older(z->store, items, 1, 1);
    assert_int_equal(items[0].status, US_FENCED);

    us_store_claim(z->store, claims, 2, 3600 * 1000);
    assert_int_equal(claims[0].status, US_FENCED);
    assert_int_equal(claims[1].status, US_FENCED);

    assert_int_equal(mark_put(z->store, 0, 0, 1, &lsn), US_FENCED);
    assert_int_equal(mark_put(z->store, 1, 1, 0, &lsn), US_FENCED);
    assert_int_equal(us_store_delete(z->store, 0, &was, &lsn), US_FENCED);
    assert_int_equal(us_store_adopt(z->store, m,
                                    us_store_map(z->store)->number, &lsn),
                     US_FENCED);

    assert_memory_equal(before, z->mem, z->size);
    free(before);
}


/*
 * A store that follows another one: what comes from there is applied, before it
 * is settled and after, and nothing else changes it.  When its term begins, it
 * gives the id that is next there.
 */

static void
fenced(void **state)
{
    int              was;
    char             url[64];
    size_t           len;
    unsigned         i;
    uint64_t         lsn, at;
    uint8_t          buf[US_URL_MAX + 8];
    zone_t          *a, *b;
    us_map_t        *m, *m2;
    stream_t         all = { 0 };
    us_store_claim_t claim = { .id = 2 };

    zone_conf.revisit = 3600;
    a = shard_create(0);
    zone_conf.fenced = 1;
    b = shard_create(0);
    zone_conf.fenced = 0;
    zone_conf.revisit = 0;

    m = map(1, "[[\"0-4095\",0]]");
    m2 = map(2, "[[\"0-4095\",0,1]]");
    adopt(a, m);

    for (i = 0; i < 3; i++) {
        us_store_time(a->store, 3600 * (100 + i));
        sprintf(url, "http://s%u.test/%u", i, i);
        assert_int_equal(add(a->store, url).status, US_NEW);
        mark_put(a->store, 1, i, 1, &lsn);
        stream_drain(&all, a->store);
    }

    assert_int_equal(us_store_apply(b->store, all.data, all.len), all.len);
    assert_int_equal(us_store_set_lsn(b->store, all.len), 0);
    us_store_under(b->store, m->version, m->digest);
    refused(b, m2);

    /* all kinds of operations, to a settled store */

    len = all.len;
    us_store_time(a->store, 3600 * 200);
    assert_int_equal(add(a->store, "http://s4.test/").status, US_NEW);
    us_store_claim(a->store, &claim, 1, 3600 * 200);
    mark_put(a->store, 0, 1, 1, &lsn);
    mark_put(a->store, 1, 1, 0, &lsn);
    assert_int_equal(us_store_delete(a->store, 2, &was, &lsn), US_OK);
    adopt(a, m2);
    stream_drain(&all, a->store);

    assert_int_equal(us_store_apply(b->store, all.data + len, all.len - len),
                     all.len - len);
    assert_int_equal(us_store_set_lsn(b->store, all.len), 0);
    assert_null(same_store(a->store, b->store, 5, &at));
    assert_int_equal(us_store_map(b->store)->version, 2);
    us_map_free(m);
    m = map(3, "[[\"0-4095\",0,1]]");
    us_store_under(b->store, m2->version, m2->digest);
    refused(b, m);

    us_store_unfence(b->mem);
    assert_int_equal(add(b->store, "http://s5.test/").id, 4);
    assert_int_equal(us_store_get(b->store, 4, buf, &len), US_OK);

    us_store_fence(b->mem);
    assert_int_equal(add(b->store, "http://s6.test/").status, US_FENCED);
    assert_int_equal(us_store_next_id(b->store), 5);

    us_map_free(m);
    us_map_free(m2);
    free(all.data);
    zone_destroy(a);
    zone_destroy(b);
}


/* a backup's map is none until it is posted again, and is not taken back */

static void
restored(void **state)
{
    zone_t    *z;
    us_map_t  *m;

    z = shard_create(0);
    m = map(1, "[[\"0-4095\",0]]");
    adopt(z, m);
    assert_int_equal(add(z->store, url_in(0, 1)).status, US_NEW);

    us_store_map_restored(z->store);
    assert_int_equal(us_store_map_stale(z->store), 1);
    assert_int_equal(add(z->store, url_in(0, 2)).status, US_MOVED);
    assert_int_equal(lookup(z->store, url_in(0, 1)).status, US_MOVED);

    adopt(z, m);
    assert_int_equal(us_store_map_stale(z->store), 0);
    assert_int_equal(add(z->store, url_in(0, 1)).status, US_SEEN);

    us_store_map_restored(z->store);
    assert_int_equal(us_store_map_stale(z->store), 0);
    assert_int_equal(add(z->store, url_in(0, 2)).status, US_NEW);

    us_map_free(m);
    zone_destroy(z);
}


/* settings: which directory can become which shard */

static void
become(void **state)
{
    uint32_t  n;
    zone_t   *z;

    z = zone_create(1 << 20, 0);
    assert_int_equal(us_store_is_shard(z->store, &n), 0);
    assert_int_equal(us_store_set_shard(z->store, 3), 0);
    assert_int_equal(us_store_set_shard(z->store, 3), 0);
    assert_int_equal(us_store_set_shard(z->store, 0), -1);
    assert_int_equal(us_store_is_shard(z->store, &n), 1);
    assert_int_equal(n, 3);
    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ownership),
        cmocka_unit_test(sealed_before_the_lock),
        cmocka_unit_test(shard_before_the_lock),
        cmocka_unit_test(refuses_where_sealed),
        cmocka_unit_test(site_under),
        cmocka_unit_test(older),
        cmocka_unit_test(replayed),
        cmocka_unit_test(rooms),
        cmocka_unit_test(fenced),
        cmocka_unit_test(restored),
        cmocka_unit_test(become),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
