
/*
 * Claims: the rule, the clock, what a restart keeps, also of a dump and a
 * journal with claims of 2 bytes; and a model of all that, which random
 * operations are compared with.
 */


#include "store_zone.h"
#include "stream.h"
#include "store/us_store_private.h"

#include <string.h>


#define ZONE    ((size_t) 8 << 20)
#define RING    ((size_t) 1 << 18)
#define HOUR    3600
#define START   ((uint64_t) 490000 * HOUR)      /* of a unit */


static stream_t  journal, dump;
static uint64_t  dump_lsn;


static void
drain(us_store_t *s)
{
    stream_drain(&journal, s);
}


static zone_t *
zone(uint32_t revisit)
{
    zone_t  *z;

    zone_conf.revisit = revisit;
    z = zone_create(ZONE, RING);
    zone_conf.revisit = 0;

    return z;
}


static us_store_item_t
ask(us_store_t *s, const char *url, uint32_t older)
{
    us_store_item_t  it;

    it = item(url, 0);
    us_store_add_older(s, &it, 1, older);
    drain(s);

    return it;
}


static us_store_status_t
claim(us_store_t *s, uint64_t id, uint64_t at)
{
    us_store_claim_t  c = { id, US_OK };

    us_store_claim(s, &c, 1, at);
    drain(s);

    return c.status;
}


/* what the journal, and a dump if there is one, make of an empty zone */

static zone_t *
restart(zone_t *old, uint32_t revisit)
{
    size_t    from;
    ssize_t   rc;
    zone_t   *z;

    zone_destroy(old);
    z = zone(revisit);

    if (dump.len) {
        assert_int_equal(us_store_apply(z->store, dump.data, dump.len),
                         dump.len);
    }

    from = dump.len ? dump_lsn : 0;

    if (journal.len > from) {
        rc = us_store_apply(z->store, journal.data + from, journal.len - from);
        assert_int_equal(rc, journal.len - from);
    }

    assert_int_equal(us_store_set_lsn(z->store, journal.len), 0);

    return z;
}


static void
begin(void)
{
    journal.len = 0;
    dump.len = 0;
}


/* never before N units have passed, always after N + 1 */

static void
test_rule(void **state)
{
    zone_t           *z;
    us_store_item_t   it;

    begin();
    z = zone(HOUR);
    us_store_time(z->store, START + 100);

    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.claimed, 0);

    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_SEEN);

    us_store_time(z->store, START + 3 * HOUR - 1);
    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_SEEN);

    /* a look-up claims nothing */

    us_store_time(z->store, START + 3 * HOUR);
    it = lookup(z->store, "http://a/");
    assert_int_equal(us_store_due(z->store, &it, 1, 3), 0);
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(us_store_due(z->store, &it, 1, 2), 1);
    assert_int_equal(it.status, US_DUE);
    assert_int_equal(it.claimed, START);

    it = ask(z->store, "http://a/", 0);
    assert_int_equal(it.status, US_SEEN);

    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_DUE);
    assert_int_equal(it.claimed, START);

    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_SEEN);

    us_store_times(z->store, &it, 1);
    assert_int_equal(it.claimed, START + 3 * HOUR);

    zone_destroy(z);
}


static void
test_batch(void **state)
{
    zone_t           *z;
    unsigned          i;
    us_store_item_t   it[6];

    begin();
    z = zone(HOUR);
    us_store_time(z->store, START);
    (void) ask(z->store, "http://a/", 1);
    (void) ask(z->store, "http://b/", 1);

    us_store_time(z->store, START + 9 * HOUR);
    i = (unsigned) journal.len;

    it[0] = item("http://b/", 0);
    it[1] = item("http://new/", 0);
    it[2] = item("http://a/", 0);
    it[3] = item("http://b/", 0);
    it[4] = item("http://new/", 0);
    it[5] = item("http://b/", 0);

    us_store_add_older(z->store, it, 6, 1);
    drain(z->store);

    assert_int_equal(it[0].status, US_DUE);
    assert_int_equal(it[1].status, US_NEW);
    assert_int_equal(it[2].status, US_DUE);
    assert_int_equal(it[3].status, US_SEEN);
    assert_int_equal(it[4].status, US_SEEN);
    assert_int_equal(it[5].status, US_SEEN);

    /* one operation of the clock, one add, one of both claims */

    for (it[0].id = 0; i < journal.len; it[0].id++) {
        i += (unsigned) us_store_op_size(journal.data + i, journal.len - i);
    }

    assert_int_equal(it[0].id, 3);

    zone_destroy(z);
}


static void
test_claim(void **state)
{
    int               was;
    zone_t           *z;
    uint64_t          lsn;
    us_store_item_t   it;
    us_store_claim_t  c[4];

    begin();
    z = zone(HOUR);
    us_store_time(z->store, START);
    (void) ask(z->store, "http://a/", 1);
    (void) ask(z->store, "http://b/", 1);
    (void) ask(z->store, "http://c/", 1);

    us_store_time(z->store, START + 5 * HOUR);

    assert_int_equal(us_store_delete(z->store, 1, &was, &lsn), US_OK);
    assert_int_equal(us_store_claimed(z->store, 1), 0);

    memset(c, 0, sizeof(c));
    c[0].id = 2;
    c[1].id = 1;
    c[2].id = 3;
    c[3].id = 2;
    us_store_claim(z->store, c, 4, START + 2 * HOUR + 7);
    assert_int_equal(c[0].status, US_OK);
    assert_int_equal(c[1].status, US_DELETED);
    assert_int_equal(c[2].status, US_UNKNOWN);
    assert_int_equal(c[3].status, US_OK);
    assert_int_equal(us_store_claimed(z->store, 2), START + 2 * HOUR);

    /* a time to come is now; clearing makes due at once */

    assert_int_equal(claim(z->store, 0, START + 500 * HOUR), US_OK);
    assert_int_equal(us_store_claimed(z->store, 0), START + 5 * HOUR);

    it = lookup(z->store, "http://a/");
    assert_int_equal(us_store_due(z->store, &it, 1, 65000), 0);
    assert_int_equal(claim(z->store, 0, 0), US_OK);
    assert_int_equal(us_store_claimed(z->store, 0), 0);
    assert_int_equal(us_store_due(z->store, &it, 1, 65000), 1);

    /* however long ago */

    assert_int_equal(claim(z->store, 0, HOUR), US_OK);
    assert_int_equal(us_store_claimed(z->store, 0), HOUR);
    it = lookup(z->store, "http://a/");
    assert_int_equal(us_store_due(z->store, &it, 1, 65000), 1);

    drain(z->store);
    z = restart(z, HOUR);
    assert_int_equal(us_store_claimed(z->store, 0), HOUR);
    assert_int_equal(us_store_claimed(z->store, 1), 0);
    assert_int_equal(us_store_claimed(z->store, 2), START + 2 * HOUR);

    zone_destroy(z);
}


/* the machine's clock goes back: no claim gets younger, none is due early */

static void
test_back(void **state)
{
    zone_t           *z;
    us_store_item_t   it;

    begin();
    z = zone(HOUR);
    us_store_time(z->store, START);
    (void) ask(z->store, "http://a/", 2);

    us_store_time(z->store, START + 3 * HOUR);
    (void) ask(z->store, "http://b/", 2);

    us_store_time(z->store, START - 100 * HOUR);
    it = lookup(z->store, "http://a/");
    assert_int_equal(us_store_due(z->store, &it, 1, 2), 1);
    it = lookup(z->store, "http://b/");
    assert_int_equal(us_store_due(z->store, &it, 1, 2), 0);

    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_DUE);
    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(us_store_claimed(z->store, 0), START + 3 * HOUR);

    z = restart(z, HOUR);
    us_store_time(z->store, START - 100 * HOUR);
    assert_int_equal(us_store_clock(z->store), START + 3 * HOUR);
    it = ask(z->store, "http://a/", 2);
    assert_int_equal(it.status, US_SEEN);

    zone_destroy(z);
}


/* revisit= of a store that had none: all are due; another unit is refused */

static void
test_added(void **state)
{
    zone_t           *z;
    us_store_item_t   it;
    us_store_conf_t   conf;
    us_store_info_t   info;

    begin();
    z = zone(0);
    us_store_time(z->store, START);
    (void) ask(z->store, "http://a/", 0);

    it = ask(z->store, "http://a/", 1);
    assert_int_equal(it.status, US_SEEN);
    us_store_info(z->store, &info);
    assert_int_equal(info.parts[US_PART_CLAIMS], 0);

    assert_int_equal(us_store_set_revisit(z->store, HOUR), 0);
    assert_int_equal(us_store_set_revisit(z->store, HOUR), 0);
    assert_int_equal(us_store_set_revisit(z->store, 60), -1);
    assert_int_equal(us_store_set_revisit(z->store, 0), -1);

    us_store_conf(z->store, &conf);
    assert_int_equal(conf.revisit, HOUR);

    it = ask(z->store, "http://a/", 65000);
    assert_int_equal(it.status, US_DUE);
    it = ask(z->store, "http://a/", 1);
    assert_int_equal(it.status, US_SEEN);

    z = restart(z, HOUR);
    assert_int_equal(us_store_claimed(z->store, 0), START);
    us_store_info(z->store, &info);
    assert_true(info.parts[US_PART_CLAIMS] > 0);

    /* the journal of claims in a store that keeps none */

    zone_destroy(z);
    z = zone(0);
    assert_int_equal(us_store_apply(z->store, journal.data, journal.len),
                     US_REPLAY_DAMAGED);

    zone_destroy(z);
}


/* a full zone has no room for the claim of a URL that it has: it says so */

static void
test_full(void **state)
{
    char              url[64];
    int               was;
    zone_t           *z;
    uint64_t          lsn;
    unsigned          i, n;
    us_head_t        *h;
    us_store_item_t   it;
    us_store_info_t   info;

    begin();
    z = zone(0);
    h = z->mem;
    us_store_time(z->store, START);

    for (i = 0; h->full == 0; i++) {
        snprintf(url, sizeof(url), "http://a/%u", i);
        (void) ask(z->store, url, 0);
    }

    assert_int_equal(us_store_set_revisit(z->store, HOUR), 0);

    /* chunks that are kept from adds are taken by marks, a delete, claims */

    h->full = 0;
    assert_int_equal(mark_put(z->store, 0, 0, 1, &lsn), US_OK);
    assert_int_equal(mark_put(z->store, 1, 0, 1, &lsn), US_OK);
    (void) us_store_delete(z->store, i - 2, &was, &lsn);

    for (n = i - 2; n; n--) {
        snprintf(url, sizeof(url), "http://a/%u", n - 1);
        it = ask(z->store, url, 1);

        if (it.status == US_FULL) {
            break;
        }

        assert_int_equal(it.status, US_DUE);
        assert_int_equal(h->full, 0);
    }

    assert_int_equal(it.status, US_FULL);
    us_store_info(z->store, &info);
    assert_int_equal(info.full, 1);

    h->full = 0;
    assert_int_equal(claim(z->store, n - 1, START), US_FULL);
    us_store_info(z->store, &info);
    assert_int_equal(info.full, 1);

    zone_destroy(z);
}


/* claims take 4 bytes for a URL, and none if they are off */

static void
test_size(void **state)
{
    char              url[64];
    zone_t           *z[2];
    unsigned          i, n;
    us_store_item_t   it;
    us_store_info_t   info[2];

    begin();

    for (i = 0; i < 2; i++) {
        z[i] = zone(i ? HOUR : 0);
        us_store_time(z[i]->store, START);

        for (n = 0; n < 50000; n++) {
            snprintf(url, sizeof(url), "http://s%u.test/%u", n % 97, n);
            it = item(url, 0);
            us_store_add(z[i]->store, &it, 1);
            drain(z[i]->store);
            assert_int_equal(it.status, US_NEW);
        }

        us_store_info(z[i]->store, &info[i]);
    }

    assert_int_equal(info[0].parts[US_PART_CLAIMS], 0);
    assert_in_range(info[1].parts[US_PART_CLAIMS], 4 * n, 4 * n + 16384);
    assert_int_equal(info[1].content - info[0].content,
                     info[1].parts[US_PART_CLAIMS]);

    zone_destroy(z[0]);
    zone_destroy(z[1]);
}


/*
 * The SIZE for a journal of adds alone has room for their claims: so much more
 * than without claims, and the journal fits.
 */

static void
test_size_needed(void **state)
{
    char              url[64];
    size_t            need[2];
    zone_t           *z;
    unsigned          i, n;
    us_store_item_t   it;

    for (i = 0; i < 2; i++) {
        begin();
        z = zone(i ? HOUR : 0);
        us_store_time(z->store, START);

        for (n = 0; n < 50000; n++) {
            snprintf(url, sizeof(url), "http://s%u.test/%u", n % 97, n);
            it = item(url, 0);
            us_store_add(z->store, &it, 1);
            drain(z->store);
            assert_int_equal(it.status, US_NEW);
        }

        zone_destroy(z);
        z = zone(i ? HOUR : 0);
        assert_int_equal(us_store_apply(z->store, journal.data, journal.len),
                         journal.len);
        assert_int_equal(us_store_settle(z->store), 0);
        need[i] = us_store_size_needed(z->store, 0);
        assert_in_range(need[i], 1 << 19, ZONE);
        zone_destroy(z);
    }

    assert_true(need[1] >= need[0] + 4 * n);

    /* a zone that is too small says the same, by a larger store of its own */

    zone_conf.revisit = HOUR;
    z = zone_create(512 << 10, 0);
    assert_int_equal(us_store_apply(z->store, journal.data, journal.len),
                     US_REPLAY_NO_ROOM);
    assert_int_equal(us_store_settle(z->store), US_REPLAY_NO_ROOM);
    assert_int_equal(us_store_size_needed(z->store, 0), need[1]);
    zone_destroy(z);

    zone_conf.revisit = HOUR;
    z = zone_create(need[1], 0);
    zone_conf.revisit = 0;
    assert_int_equal(us_store_apply(z->store, journal.data, journal.len),
                     journal.len);
    assert_int_equal(us_store_settle(z->store), 0);
    assert_int_equal(us_store_next_id(z->store), n);
    assert_int_equal(us_store_claimed(z->store, n - 1), START);

    zone_destroy(z);
}


/* below which unit claims are due: the store's clock stands, or is ahead */

static void
test_before(void **state)
{
    uint64_t  clock, now, older, unit, last;

    for (clock = 1; clock < 30; clock++) {
        for (now = 0; now < 40; now++) {
            for (older = 0; older < 50; older++) {
                last = now > clock ? now : clock;

                for (unit = 0; unit <= clock + 3; unit++) {
                    if ((unit < us_claims_before(clock, now, older))
                        != (unit == 0 || (last > unit && last - unit > older)))
                    {
                        fail_msg("clock %lu now %lu older %lu unit %lu", clock,
                                 now, older, unit);
                    }
                }
            }
        }
    }
}


/*
 * The clock advances, by one unit or by years: nothing but the clock changes,
 * however many ids there are, and each claim keeps its time.
 */

static void
test_tick(void **state)
{
    char       url[40];
    zone_t    *z;
    uint64_t  *was;
    uint64_t   now;
    unsigned   i, words;
    size_t     at;

    begin();
    z = zone(1);
    now = 70000;

    for (i = 0; i < 20000; i++) {
        us_store_time(z->store, now + i);
        snprintf(url, sizeof(url), "http://a/%u", i);
        (void) ask(z->store, url, 1);
    }

    now += i;
    was = malloc(ZONE);
    assert_non_null(was);

    for (i = 0; i < 8; i++) {
        memcpy(was, z->mem, ZONE);
        now += i % 2 ? 1 : 300000;
        us_store_time(z->store, now);
        assert_int_equal(claim(z->store, 20000, now), US_UNKNOWN);
        assert_int_equal(us_store_clock(z->store), now);

        for (words = 0, at = 0; at < ZONE / 8; at++) {
            words += was[at] != ((uint64_t *) z->mem)[at];
        }

        assert_in_range(words, 1, 16);
    }

    for (i = 0; i < 20000; i++) {
        assert_int_equal(us_store_claimed(z->store, i), 70000 + i);
    }

    free(was);
    zone_destroy(z);
}


/* claims of 2 bytes: every age, at each point of the turn that matters */

static void
test_short(void **state)
{
    uint64_t  clock, age;

    for (clock = 65535 * 2 - 70000; clock < 65535 * 2 + 3;
         clock += clock % 65535 > 2 && clock % 65535 < 65535 - 40 ? 499 : 1)
    {
        assert_int_equal(us_claims_short(clock, 0), 0);

        for (age = 0; age <= 65512 && age < clock; age++) {
            if (us_claims_short(clock, (uint16_t) (1 + (clock - age) % 65535))
                != clock - age)
            {
                fail_msg("clock %lu age %lu", clock, age);
            }
        }

        /* newer than the clock of the dump: the journal sets them again */

        for (age = 1; age <= 22; age++) {
            assert_int_equal(us_claims_short(clock, (uint16_t)
                                             (1 + (clock + age) % 65535)),
                             clock);
        }
    }
}


/*
 * t/data/v2/claims: the dump of a store, and its journal from there on, written
 * by a version that had claims of 2 bytes.  Id i was claimed at 60000 + 30 * i;
 * then some at an earlier time, others not at all; the dump is of 200 ids.
 */

static void
test_v2(void **state)
{
    FILE            *f;
    size_t           n;
    zone_t          *z;
    uint8_t          buf[8192];
    uint64_t         want;
    unsigned         i;
    us_store_item_t  it;
    us_store_info_t  info;

    f = fopen("t/data/v2/claims", "r");
    assert_non_null(f);
    n = fread(buf, 1, sizeof(buf), f);
    assert_in_range(n, 2000, sizeof(buf) - 1);
    fclose(f);

    zone_conf.sites = 1;
    z = zone(1);
    zone_conf.sites = 0;

    assert_int_equal(us_store_apply(z->store, buf, n), n);
    assert_int_equal(us_store_settle(z->store), 0);
    assert_int_equal(us_store_next_id(z->store), 300);
    assert_int_equal(us_store_clock(z->store), 60000 + 30 * 299);

    for (i = 0; i < 300; i++) {
        want = i % 50 == 9 || i % 10 == 7 ? 0
               : i % 10 == 3 ? 50000 + i : 60000 + 30 * i;
        assert_int_equal(us_store_claimed(z->store, i), want);
    }

    it = lookup(z->store, "http://s5.test/250");
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(it.id, 250);

    us_store_info(z->store, &info);
    assert_int_equal(info.deleted, 6);

    zone_destroy(z);
}


/* writers go on during a dump: they add, claim, and their clock advances */

static us_store_t  *busy, *racer;
static uint64_t     busy_time;


static int
put_busy(void *data, const uint8_t *p, size_t len)
{
    char      url[40];
    unsigned  i;

    us_store_time(busy, ++busy_time);

    for (i = 0; i < 7; i++) {
        snprintf(url, sizeof(url), "http://late/%lu/%u", busy_time, i);
        (void) ask(busy, url, 1);
    }

    (void) claim(busy, busy_time % 1000, UINT64_MAX);

    return stream_put(data, p, len);
}


/*
 * The same just after the dump's LSN was read: id 5 is claimed, then deleted.
 * The dump has the delete, and both operations follow it.
 */

static void
leave_busy(void *data)
{
    int          was;
    uint64_t     lsn;
    us_store_t  *s;

    s = racer;
    racer = NULL;

    if (s) {
        assert_int_equal(claim(s, 5, UINT64_MAX), US_OK);
        assert_int_equal(us_store_delete(s, 5, &was, &lsn), US_OK);
        drain(s);
    }
}


static void
test_dump_busy(void **state)
{
    char         url[40];
    zone_t      *z;
    unsigned     i;
    uint64_t     id, next, *claimed;
    us_store_t  *s;

    static const us_store_lock_t  lock = { zone_lock, leave_busy, NULL };

    begin();
    z = zone(1);
    busy = z->store;
    busy_time = 70000;
    us_store_time(z->store, busy_time);

    for (i = 0; i < 9001; i++) {
        snprintf(url, sizeof(url), "http://a/%u", i);
        (void) ask(z->store, url, 1);
    }

    s = us_store_open(z->mem, &lock);
    assert_non_null(s);
    racer = z->store;
    assert_int_equal(us_store_dump(s, put_busy, &dump, &dump_lsn), 0);
    us_store_close(s);
    assert_null(racer);

    next = us_store_next_id(z->store);
    assert_true(next > i + 20);
    claimed = malloc(next * sizeof(uint64_t));
    assert_non_null(claimed);

    for (id = 0; id < next; id++) {
        claimed[id] = us_store_claimed(z->store, id);
        assert_int_equal(claimed[id] != 0, id != 5);
    }

    z = restart(z, 1);
    assert_int_equal(us_store_next_id(z->store), next);

    for (id = 0; id < next; id++) {
        assert_int_equal(us_store_claimed(z->store, id), claimed[id]);
    }

    assert_int_equal(us_claims_read(&z->store->arena, 5), 0);

    free(claimed);
    zone_destroy(z);
}


/*
 * A ring that has no room: what is due, or new, is busy from the first item on
 * that does not fit, none of it is claimed, and a retry gets it.
 */

static void
test_busy(void **state)
{
    char               url[400];
    zone_t            *z;
    size_t             k, n, first;
    uint64_t           now, was;
    unsigned           i, full;
    us_store_item_t    it[3];
    us_store_status_t  status;

    begin();
    zone_conf.revisit = 1;
    z = zone_create(ZONE, 1 << 14);
    zone_conf.revisit = 0;

    now = 70000;
    us_store_time(z->store, now);
    (void) ask(z->store, "http://a/", 1);
    (void) ask(z->store, "http://b/", 1);

    for (i = 0, full = 0; full < 60; i++) {
        was = now;
        now += 2;
        us_store_time(z->store, now);

        /* two that are due; in half of the rings a new one between them */

        n = 0;
        it[n++] = item("http://a/", 0);

        if (full % 2) {
            k = (size_t) sprintf(url, "http://c/%u/", i);
            memset(url + k, 'a' + i % 26, sizeof(url) - k);
            it[n++] = item(url, k + rnd(300));
        }

        it[n++] = item("http://b/", 0);

        us_store_add_older(z->store, it, n, 1);
        assert_true(us_store_published(z->store) - us_store_written(z->store)
                    <= 1 << 14);

        for (first = 0; first < n && it[first].status != US_BUSY; first++) {
            /* void */
        }

        for (k = 0; k < n; k++) {
            status = k == 1 && n == 3 ? US_NEW : US_DUE;
            assert_int_equal(it[k].status, k < first ? status : US_BUSY);
        }

        assert_int_equal(us_store_claimed(z->store, 0), first > 0 ? now : was);
        assert_int_equal(us_store_claimed(z->store, 1), first == n ? now
                                                                   : was);

        if (first < n) {
            full++;
            drain(z->store);
            us_store_add_older(z->store, it + first, n - first, 1);
            assert_int_equal(us_store_claimed(z->store, 0), now);
            assert_int_equal(us_store_claimed(z->store, 1), now);
        }
    }

    zone_destroy(z);
}


/*
 * Between the look-up and the lock another writer deletes a URL that is due: it
 * is added again, and its old id is not claimed.
 */

static void
race(void *data)
{
    int          was;
    uint64_t     lsn;
    us_store_t  *s;

    s = racer;
    racer = NULL;

    if (s) {
        assert_int_equal(us_store_delete(s, 0, &was, &lsn), US_OK);
    }
}


static void
test_deleted_meanwhile(void **state)
{
    zone_t           *z;
    us_store_t       *s;
    us_store_item_t   it;

    static const us_store_lock_t  lock = { race, zone_lock, NULL };

    begin();
    z = zone(HOUR);
    us_store_time(z->store, START);
    (void) ask(z->store, "http://a/", 1);

    s = us_store_open(z->mem, &lock);
    assert_non_null(s);
    us_store_time(s, START + 5 * HOUR);
    racer = z->store;

    it = ask(s, "http://a/", 1);
    assert_null(racer);
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.id, 1);
    assert_int_equal(us_store_claimed(s, 0), 0);
    assert_int_equal(us_store_claimed(s, 1), START + 5 * HOUR);

    us_store_close(s);
    zone_destroy(z);
}


/*
 * Random operations, and a model.  Time passes by steps of a unit, by weeks and
 * by years of them; ids come when they come.
 */

#define URLS  9000


static struct {
    uint64_t  unit;                   /* of the last claim, 0: never */
    int       gone;
} model[2 * URLS];

static uint64_t  nmodel, now;
static unsigned  top;                 /* URLs there can be */


static int
model_due(uint64_t id, uint64_t older)
{
    uint64_t  age;

    age = now - model[id].unit;

    return model[id].unit == 0 || age > older;
}


static void
model_check(us_store_t *s, uint64_t id)
{
    if (us_store_claimed(s, id) != model[id].unit) {
        fail_msg("id %lu: claimed %lu, not %lu, at %lu", id,
                 us_store_claimed(s, id), model[id].unit, now);
    }
}


static void
model_add(us_store_t *s)
{
    int              due;
    char             urls[40][40];
    unsigned         i, n, older;
    uint64_t         id;
    us_store_item_t  it[40];

    n = 1 + rnd(40);
    older = rnd(3) ? 1 + rnd(300) : 1 + rnd(65000);

    for (i = 0; i < n; i++) {
        top += top < URLS && rnd(8) == 0;
        id = rnd(4) ? rnd(top) : top - 1 - rnd(top < 9 ? top : 9);
        snprintf(urls[i], sizeof(urls[i]), "http://s%lu.test/%lu", id % 7, id);
        it[i] = item(urls[i], 0);
    }

    us_store_add_older(s, it, n, older);
    drain(s);

    for (i = 0; i < n; i++) {
        id = it[i].id;

        if (it[i].status == US_NEW) {
            assert_int_equal(id, nmodel);
            assert_true(nmodel < 2 * URLS);
            model[nmodel].gone = 0;
            model[nmodel++].unit = now;
            continue;
        }

        assert_true(id < nmodel);
        due = model_due(id, older);

        if (it[i].status != (due ? US_DUE : US_SEEN)) {
            fail_msg("id %lu: status %u at %lu, claimed %lu, older %u", id,
                     it[i].status, now, model[id].unit, older);
        }

        if (due) {
            assert_int_equal(it[i].claimed, model[id].unit);
            model[id].unit = now;
        }
    }
}


static void
model_claim(us_store_t *s)
{
    unsigned          i, n;
    uint64_t          at;
    us_store_claim_t  c[30];

    n = 1 + rnd(30);
    at = rnd(4) == 0 ? 0 : rnd(2) ? now - rnd(1000) : now - rnd(70000);

    for (i = 0; i < n; i++) {
        c[i].id = rnd((unsigned) nmodel + 1);
    }

    us_store_claim(s, c, n, at);
    drain(s);

    for (i = 0; i < n; i++) {

        if (c[i].id >= nmodel) {
            assert_int_equal(c[i].status, US_UNKNOWN);

        } else if (model[c[i].id].gone) {
            assert_int_equal(c[i].status, US_DELETED);

        } else {
            assert_int_equal(c[i].status, US_OK);
            model[c[i].id].unit = at;
        }
    }
}


static void
model_scan(us_store_t *s)
{
    uint64_t  id, from, to, older;

    older = 1 + rnd(65000);
    from = rnd((unsigned) nmodel + 1);
    to = from + rnd(3000);

    for (id = from; id < to && id < nmodel; id++) {
        if (model[id].gone || !model_due(id, older)) {
            continue;
        }

        assert_int_equal(us_store_next_due(s, from, to, (uint32_t) older), id);
        from = id + 1;
    }

    assert_int_equal(us_store_next_due(s, from, to, (uint32_t) older), to);
}


static void
test_model(void **state)
{
    int        was;
    zone_t    *z;
    uint64_t   id, lsn;
    unsigned   i;

    begin();
    nmodel = 0;
    top = 1;
    now = 70000;
    z = zone(1);

    for (i = 0; i < 30000; i++) {

        us_store_time(z->store, now);

        switch (rnd(12)) {

        case 0:
            now += rnd(20) ? rnd(3) : rnd(10) ? rnd(700) : rnd(140000);
            break;

        case 1:
            if (nmodel) {
                model_claim(z->store);
            }
            break;

        case 2:
            if (nmodel) {
                model_scan(z->store);
            }
            break;

        case 3:
            if (nmodel && rnd(3) == 0) {
                id = rnd((unsigned) nmodel);
                assert_int_equal(us_store_delete(z->store, id, &was, &lsn),
                                 US_OK);
                drain(z->store);
                model[id].gone = 1;
                model[id].unit = 0;
            }
            break;

        case 4:
            if (rnd(50) == 0) {
                dump.len = 0;
                assert_int_equal(us_store_dump(z->store, stream_put, &dump,
                                               &dump_lsn), 0);
            }

            if (rnd(100) == 0) {
                z = restart(z, 1);
            }
            break;

        default:
            model_add(z->store);
        }

        if (i % 500 == 0) {
            for (id = 0; id < nmodel; id++) {
                model_check(z->store, id);
            }
        }
    }

    print_message("%lu URLs, journal of %zu bytes, %lu units\n", nmodel,
                  journal.len, now);

    zone_destroy(z);
}


/* bytes that are no such operations are refused */

static void
test_hostile(void **state)
{
    zone_t    *z;
    unsigned   i;

    static const struct {
        const char  *bytes;
        size_t       len;
        ssize_t      rc;
    } ops[] = {
        { "\0\x0c\x05", 3, 3 },
        { "\0\x0c\x00", 3, US_REPLAY_DAMAGED },
        { "\0\x0c\xff\xff\xff\xff\xff\xff\x7f", 9, US_REPLAY_DAMAGED },
        { "\0\x0d\x05\x01\x00", 5, US_REPLAY_DAMAGED },     /* no such id */
        { "\0\x0c\x05\0\x0d\x06\x01\x00", 8, US_REPLAY_DAMAGED },
        { "\0\x0d\x05\x00", 4, US_REPLAY_DAMAGED },
        { "\0\x0d\x05\x01\x80", 5, US_REPLAY_DAMAGED },     /* half a number */
        { "\0\x0e\x00\x01\x01\0\0\0\0\0\0\0", 12, US_REPLAY_DAMAGED },
        { "\0\x11\x00\x01\x01\0\0\0\0\0\0\0", 12, US_REPLAY_DAMAGED },
        { "\0\x0c\x05\0\x11\x00\x01\x01\0\0\0\0\0\0\0", 15,
          US_REPLAY_DAMAGED },
    };

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        begin();
        z = zone(HOUR);
        assert_int_equal(us_store_apply(z->store,
                                        (const uint8_t *) ops[i].bytes,
                                        ops[i].len),
                         ops[i].rc);
        zone_destroy(z);
    }
}


/* the ids of an operation are coded by their distance */

static void
test_ids(void **state)
{
    uint8_t         buf[10];
    uint64_t        id, last, next;
    unsigned        i;
    const uint8_t  *p;

    for (i = 0; i < 1000; i++) {
        last = rnd(2) ? US_STORE_NO_ID : rnd64() >> (12 + rnd(50));
        next = last + 1 + (rnd64() >> (12 + rnd(50)));

        p = buf;
        assert_true(us_op_id_write(buf, last, next) <= sizeof(buf));
        assert_int_equal(us_op_id_read(&p, buf + sizeof(buf), last, &id), 1);
        assert_int_equal(id, next);
    }

    /* the highest id there can be, and a distance that leads past it */

    for (i = 0; i < 2; i++) {
        p = buf;
        last = (uint64_t) 1 << 63;
        (void) us_op_id_write(buf, US_STORE_NO_ID, last - 3 + i);
        assert_int_equal(us_op_id_read(&p, buf + sizeof(buf), last, &id),
                         i ? -1 : 1);
    }

    assert_int_equal(id, US_STORE_NO_ID - 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_size_needed),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_tick),
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_v2),
        cmocka_unit_test(test_dump_busy),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_deleted_meanwhile),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
