
/*
 * Whatever was in a zone restarts in a zone of the same SIZE.
 *
 *     room SEEDS [FIRST]
 *
 * For each seed a store is made: of some SIZE, with sites counted or not, with
 * up to 16 marks, with claims, without, or with claims from some time on.  It
 * is filled with URLs of few or many sites, of which up to nine tenths are
 * deleted again, marked everywhere or here and there, until nothing more is
 * taken, not even deletes and marks.  Then it is built again from its journal,
 * or from a dump and the journal from there on, in a zone of the same size,
 * under another hash key; it must be the same.  The new store is filled up
 * again, and so on, several times.  At last, what is in it must fit the zone
 * that us_store_size_needed() says, of less bytes or more; and that must not
 * be much more than the least that does.
 */


#include "us_base.h"
#include "store/us_bulk.h"
#include "../unit/same.h"
#include "../unit/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>


#define RESTARTS   5
#define URL        7000

/* us_store_size_needed() may exceed the least size by so many percent */
#define EXCESS     5


typedef struct {
    void         *mem;
    size_t        size;
    us_store_t   *s;
} zone_t;


/* what a seed stands for */

typedef struct {
    unsigned      sites;              /* different hosts */
    unsigned      deletes;            /* of a hundred operations */
    unsigned      marks;
    unsigned      longs;              /* of a thousand URLs */
    unsigned      dumps;              /* how many for a filling */
    unsigned      sparse;             /* marks on one id in so many */
    unsigned      bits;               /* some fillings are of marks alone */
    unsigned      later;              /* claims are kept from some time on */
    uint64_t      added;              /* URLs ever made */
} kind_t;


static uint64_t          seed;
static us_store_conf_t   conf;
static kind_t            kind;
static stream_t          journal, dump;
static uint64_t          dump_lsn;
static uint64_t          now;                  /* of claims: s, and units */
static unsigned          failures;


static void
no_lock(void *data)
{
}


static const us_store_lock_t  locks = { no_lock, no_lock, NULL };


static uint64_t
random64(void)
{
    uint64_t  z;

    z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


static unsigned
rnd(unsigned n)
{
    return random64() % n;
}


static void
fail(const char *what, uint64_t n)
{
    if (failures++ < 20) {
        fprintf(stderr, "%s %ld\n", what, (long) n);
    }
}


/* the least size of any */

static size_t
least(void)
{
    conf.ring = us_store_ring(0);

    return us_store_min_size(&conf);
}


static zone_t
zone_make(size_t size)
{
    unsigned  i;
    zone_t    z;

    /* always another one */

    for (i = 0; i < 16; i++) {
        conf.hash_key[i] = random64();
    }

    conf.ring = us_store_ring(size);

    z.size = size;
    z.mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                 -1, 0);

    if (z.mem == MAP_FAILED || us_store_format(z.mem, size, &conf) != 0
        || (z.s = us_store_open(z.mem, &locks)) == NULL)
    {
        fprintf(stderr, "no store of %zu bytes\n", size);
        exit(2);
    }

    us_store_time(z.s, now);

    return z;
}


static void
zone_end(zone_t *z)
{
    us_store_close(z->s);
    munmap(z->mem, z->size);
}


static size_t
url(uint64_t n, char *buf)
{
    size_t    len;
    uint64_t  h;

    h = n * 0x9e3779b97f4a7c15;
    h ^= h >> 29;

    len = sprintf(buf, "http%s://%ss%u.test/%s/%lx", h & 1 ? "s" : "",
                  h & 2 ? "www." : "", (unsigned) ((h >> 8) % kind.sites),
                  h & 4 ? "a/path/to" : "p", (unsigned long) n);

    if (h % 1000 < kind.longs) {
        memset(buf + len, 'a' + h % 26, 5000);
        len += 3000 + h % 2000;
    }

    return len;
}


/* 1: it was taken, 0: there was no room */

static int
add(us_store_t *s)
{
    static char      buf[URL];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(kind.added++, buf);
    it.url.data = (uint8_t *) buf;
    it.merge = 1;

    us_store_add(s, &it, 1);
    stream_drain(&journal, s);

    return it.status != US_FULL;
}


static int
delete(us_store_t *s)
{
    int                was;
    uint64_t           lsn, n;
    us_store_status_t  status;

    n = us_store_next_id(s);
    status = us_store_delete(s, rnd(n), &was, &lsn);
    stream_drain(&journal, s);

    return status != US_FULL;
}


static int
mark(us_store_t *s)
{
    uint64_t           lsn, id;
    us_store_status_t  status;

    id = rnd(us_store_next_id(s));
    id -= id % kind.sparse;

    status = mark_put(s, rnd(kind.marks), id, rnd(10) > 0, &lsn);
    stream_drain(&journal, s);

    return status != US_FULL;
}


/* 2 bytes for an id: an add of many takes a chunk, a claim of an old one too */

static int
claim(us_store_t *s)
{
    unsigned          i, n;
    us_store_claim_t  c[8];

    us_store_time(s, now += rnd(1000) ? rnd(3) : rnd(90000));
    n = 1 + rnd(8);

    for (i = 0; i < n; i++) {
        c[i].id = rnd(us_store_next_id(s));
    }

    us_store_claim(s, c, n, rnd(5) ? now - rnd(1000) : 0);
    stream_drain(&journal, s);

    return c[0].status != US_FULL;
}


static void
take_dump(us_store_t *s)
{
    dump.len = 0;

    if (us_store_dump(s, stream_put, &dump, &dump_lsn) != 0) {
        fail("dump", 0);
    }
}


/*
 * The reserve: what is free, or could be had by building the index anew, is
 * enough to do so.
 */

static void
reserved(const zone_t *z)
{
    uint64_t     need, have, leaves;
    us_head_t   *h;
    us_arena_t   a;

    us_arena_open(&a, z->mem);
    h = a.head;

    leaves = us_bulk_leaves(h->entries);
    leaves = leaves > h->leaves ? leaves : h->leaves;

    need = us_bulk_chunks(a.chunk_shift, h->leaf_shift, leaves,
                          h->entries, h->next_id);
    have = us_arena_free(&a) + h->area[US_AREA_LEAVES].n
           + h->area[US_AREA_DIRECTORY].n + h->area[US_AREA_CACHE].n;

    if (need > have) {
        fail("chunks missing for a new index:", need - have);
    }
}


/* until nothing is taken any more, whatever it is */

static void
fill(us_store_t *s)
{
    unsigned  i, tries, full, dumps;
    uint64_t  began, lsn, id;

    full = kind.bits && us_store_next_id(s) && rnd(2);
    began = us_store_next_id(s);
    dumps = kind.dumps;

    while (!full) {
        i = rnd(100);

        if (us_store_next_id(s) && i < kind.deletes) {
            delete(s);

        } else if (us_store_next_id(s) && kind.marks && i > 95) {
            mark(s);

        } else if (us_store_next_id(s) && conf.revisit && i > 90) {
            claim(s);

        } else {
            full = !add(s);
        }

        if (dumps && rnd(5000) == 0) {
            dumps--;
            take_dump(s);
        }

        if (us_store_next_id(s) > began + 100000) {
            break;
        }
    }

    /* what adds leave is for deletes and marks */

    for (tries = 0; tries < 300; tries++) {
        if (kind.deletes) {
            delete(s);
        }

        if (kind.marks) {
            mark(s);
        }

        if (conf.revisit) {
            claim(s);
        }
    }

    for (i = 0; i < kind.marks; i++) {
        for (id = 0; id < us_store_next_id(s); id += 1 << 17) {
            mark_put(s, i, id, 1, &lsn);
            stream_drain(&journal, s);
        }
    }

    for (i = 0; i < 20; i++) {
        add(s);
    }

    if (dumps && rnd(2)) {
        take_dump(s);
    }
}


static int
feed(us_store_t *s, const stream_t *st, size_t from)
{
    size_t   n;
    ssize_t  rc;

    for ( /* void */ ; from < st->len; from += n) {
        n = st->len - from < 100000 ? st->len - from : 100000;
        rc = us_store_apply(s, st->data + from, n);

        if (rc <= 0 && rc != US_REPLAY_NO_ROOM) {
            return (int) rc;
        }

        /* the whole operations of what was applied, here or in a larger one */

        if (rc == US_REPLAY_NO_ROOM) {
            for (n = 0; n < 100000; n += rc) {
                rc = us_store_op_size(st->data + from + n,
                                      st->len - from - n);

                if (rc <= 0 || from + n + rc > st->len || n + rc > 100000) {
                    break;
                }
            }

        } else {
            n = rc;
        }
    }

    return 0;
}


/* 0, or US_REPLAY_* */

static int
load(us_store_t *s)
{
    int  rc;

    rc = dump.len ? feed(s, &dump, 0) : 0;

    if (rc == 0) {
        rc = feed(s, &journal, dump.len ? dump_lsn : 0);
    }

    return rc ? rc : us_store_set_lsn(s, journal.len);
}


static void
same(us_store_t *a, us_store_t *b)
{
    uint64_t     at;
    const char  *what;

    what = same_store(a, b, kind.sites < 300 ? kind.sites : 300, &at);

    if (what) {
        fail(what, at);
    }
}


static int
fits(size_t size)
{
    int     rc;
    zone_t  z;

    z = zone_make(size);
    rc = load(z.s);
    zone_end(&z);

    return rc == 0;
}


/*
 * The size that is said to be needed suffices, whether all could be loaded or
 * the zone was too small, and is not much more than the least.  The ring grows
 * with SIZE by powers of 2: if it is larger in the one than in the other, then
 * no size between them is enough by the bound, and the step of the ring does
 * not count.
 */

static void
sizes(size_t size)
{
    size_t    low, high, mid;
    uint64_t  guess, need;
    zone_t    z;

    z = zone_make(least());

    if (load(z.s) == 0) {
        zone_end(&z);
        return;
    }

    guess = us_store_size_needed(z.s, 1);
    zone_end(&z);

    z = zone_make(size);
    load(z.s);
    need = us_store_size_needed(z.s, 1);
    zone_end(&z);

    if (guess < need || !fits(need) || !fits(guess)) {
        fail("does not suffice:", need);
        return;
    }

    low = least();
    high = need;

    while (high - low > 16384) {
        mid = low + (high - low) / 2;

        if (fits(mid)) {
            high = mid;

        } else {
            low = mid;
        }
    }

    printf("    guess %lu, needed %lu, the least %zu, it was %zu\n",
           (unsigned long) guess, (unsigned long) need, high, size);

    high += us_store_ring(need) - us_store_ring(high);

    need = need > guess ? need : guess;

    if (need > high + high * EXCESS / 100 + 65536) {
        fail("too much:", need);
    }
}


static void
run(uint64_t number)
{
    size_t           size;
    zone_t           z, next;
    unsigned         i;
    char             names[US_STORE_MARKS][8];
    us_store_info_t  info;

    seed = number * 1000003;
    memset(&conf, 0, sizeof(conf));
    memset(&kind, 0, sizeof(kind));

    conf.sites = rnd(2);
    conf.nmarks = rnd(3) ? rnd(US_STORE_MARKS + 1) : 0;

    for (i = 0; i < conf.nmarks; i++) {
        conf.marks[i].len = sprintf(names[i], "m%u", i);
        conf.marks[i].data = (uint8_t *) names[i];
    }

    kind.sites = rnd(2) ? 1 + rnd(50) : 1 + rnd(100000);
    kind.deletes = rnd(3) ? rnd(48) : 0;
    kind.marks = conf.nmarks;
    kind.longs = rnd(4) ? 0 : rnd(20);
    kind.dumps = rnd(3) ? 1 + rnd(5) : 0;
    kind.sparse = rnd(2) ? 1 : 1 + rnd(1000);
    kind.bits = rnd(2);
    kind.later = rnd(2);
    conf.revisit = kind.later ? 0 : rnd(2);
    now = 1000000 + rnd(100000);

    size = least();
    size += rnd(3) ? rnd(1 << 20) : rnd(4 << 20);

    journal.len = 0;
    dump.len = 0;

    z = zone_make(size);

    for (i = 0; i < RESTARTS && !failures; i++) {
        fill(z.s);
        reserved(&z);

        next = zone_make(size);

        if (load(next.s) != 0) {
            fail("does not load, restart", i);
            fprintf(stderr, "    needs %lu of %zu\n",
                    (unsigned long) us_store_size_needed(next.s, 1), size);
        } else {
            same(z.s, next.s);
        }

        zone_end(&z);
        z = next;

        if (kind.later && rnd(2)) {
            conf.revisit = 1;
            us_store_set_revisit(z.s, 1);
        }
    }

    us_store_info(z.s, &info);

    printf("%lu: %zu bytes, %lu URLs, %u sites%s, %lu deleted, %u marks%s, "
           "%s\n",
           (unsigned long) number, size, (unsigned long) info.urls,
           (unsigned) info.sites, conf.sites ? " counted" : "",
           (unsigned long) info.deleted, conf.nmarks,
           conf.revisit ? ", claims" : "", dump.len ? "dump" : "journal");

    zone_end(&z);

    if (!failures && number % 8 == 0) {
        sizes(size);
    }

    if (failures) {
        printf("FAILED: seed %lu\n", (unsigned long) number);
    }

    fflush(stdout);
}


/*
 * After a restart the index is as small as it can be.  What that has freed is
 * then taken by marks, to the last chunk that they get, in zones of many sizes.
 */

static void
tight(size_t size)
{
    zone_t    z, next;
    unsigned  i, m;
    char      names[US_STORE_MARKS][8];
    uint64_t  lsn;

    memset(&conf, 0, sizeof(conf));
    memset(&kind, 0, sizeof(kind));
    conf.nmarks = US_STORE_MARKS;
    kind.sites = 30;
    seed = size;

    for (m = 0; m < conf.nmarks; m++) {
        conf.marks[m].len = sprintf(names[m], "m%u", m);
        conf.marks[m].data = (uint8_t *) names[m];
    }

    journal.len = 0;
    dump.len = 0;
    z = zone_make(least() + size);

    while (add(z.s)) { /* void */ }

    for (i = 0; i < 3; i++) {
        next = zone_make(z.size);

        if (load(next.s) != 0) {
            fail("does not load, tight zone of", z.size);
        }

        zone_end(&z);
        z = next;

        for (m = 0; m < conf.nmarks; m++) {
            mark_put(z.s, m, 0, 1, &lsn);
            stream_drain(&journal, z.s);
        }

        reserved(&z);
    }

    zone_end(&z);
}


int
main(int argc, char **argv)
{
    uint64_t  i, n, first;

    n = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

    for (i = first; i < first + n && !failures; i++) {
        tight(i * 7000 % 500000);
        run(i);
    }

    printf("%u failures in %lu seeds\n", failures, (unsigned long) (i - first));

    return failures != 0;
}
