
/*
 * URLs that somebody made to hurt: no kind of them takes more memory than its
 * text and 12 bytes each, none more time than its length allows, and whatever
 * is in the zone is reported by a part.
 */


#include "store_zone.h"
#include "zone/us_arena.h"
#include "us_hash.h"

#include <time.h>


#define BATCH        64
#define ZONE         ((size_t) 64 << 20)
#define PER_URL      12

/* offsets, long records, leaves, directory, cache: a chunk each, just begun */
#define BEGUN        (6 * (16 << 10))

/* ns of CPU time, with the sanitizers */
#define TIME_URL     2000000
#define TIME_BYTE    2000

/*
 * Eight times the bytes may take so many times the time; time that grew by the
 * square would take 64.
 */
#define TIME_RATIO   24
#define TIME_URLS    24
#define TIME_TRIES   5


/* URL i of a kind into p; returns its length; the same each time */
typedef size_t (*make_pt)(char *p, unsigned i);


static uint64_t
cpu_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static size_t
printable(char *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        p[i] = (char) (0x21 + rnd(0x5e));
    }

    return n;
}


static size_t
random_strings(char *p, unsigned i)
{
    size_t  n;

    zone_seed = i;
    n = (size_t) sprintf(p, "http://h%u.test/", i % 10);

    return n + printable(p + n, 8 + rnd(93));
}


static size_t
random_bytes(char *p, unsigned i)
{
    size_t  n, k, len;

    zone_seed = i;
    len = 10 + rnd(60);
    n = (size_t) sprintf(p, "https://");

    for (k = 0; k < len; k++) {
        p[n++] = (char) rnd(256);
    }

    return n;
}


static size_t
one_site(char *p, unsigned i)
{
    return (size_t) sprintf(p, "http://one.test/%u", i);
}


static size_t
site_each(char *p, unsigned i)
{
    zone_seed = i;

    return (size_t) sprintf(p, "http://%x%u.test/", (unsigned) rnd64(), i);
}


static size_t
chain(char *p, unsigned i)
{
    size_t  n;

    n = (size_t) sprintf(p, "http://chain.test/");
    memset(p + n, 'a', i + 1);

    return n + i + 1;
}


static size_t
path_chain(char *p, unsigned i)
{
    size_t    n;
    unsigned  k;

    n = (size_t) sprintf(p, "http://chain.test");

    for (k = 0; k <= i; k++) {
        p[n++] = '/';
        p[n++] = 'a' + k % 26;
    }

    return n;
}


static size_t
last_byte(char *p, unsigned i)
{
    size_t  n;

    zone_seed = i / 94;
    n = (size_t) sprintf(p, "http://last.test/");
    n += printable(p + n, 150);
    p[n++] = (char) (0x21 + i % 94);

    return n;
}


static size_t
long_random(char *p, unsigned i)
{
    size_t  n;

    zone_seed = i;
    n = (size_t) sprintf(p, "http://long.test/");

    return n + printable(p + n, US_URL_MAX - n);
}


static size_t
long_last_byte(char *p, unsigned i)
{
    zone_seed = 1;
    long_random(p, 1);
    p[US_URL_MAX - 1] = (char) (0x21 + i);

    return US_URL_MAX;
}


/* every byte is a boundary, and most of them look like the one before */

static size_t
long_boundaries(char *p, unsigned i)
{
    size_t  n;

    zone_seed = i;
    n = (size_t) sprintf(p, "http://long.test/%u", i);

    while (n < US_URL_MAX) {
        p[n++] = "/-_.?&=%+"[rnd(100) ? 0 : rnd(9)];
    }

    return n;
}


static size_t
long_same(char *p, unsigned i)
{
    size_t  n;

    n = (size_t) sprintf(p, "http://long.test/");
    memset(p + n, '0', US_URL_MAX - n);
    sprintf(p + US_URL_MAX - 8, "%08u", i);

    return US_URL_MAX;
}


static size_t
long_percent(char *p, unsigned i)
{
    size_t  n;

    zone_seed = i;
    n = (size_t) sprintf(p, "http://long.test/");

    while (n + 3 <= US_URL_MAX) {
        n += (size_t) sprintf(p + n, "%%%02X", rnd(256));
    }

    return n;
}


static const struct {
    const char   *name;
    make_pt       make;
    unsigned      n;
} kinds[] = {
    { "random strings", random_strings, 40000 },
    { "random bytes", random_bytes, 40000 },
    { "one site", one_site, 80000 },
    { "a site each", site_each, 40000 },
    { "a, aa, aaa", chain, 2500 },
    { "/a, /a/b, /a/b/c", path_chain, 1500 },
    { "last byte", last_byte, 20000 },
    { "8 KB, random", long_random, 1000 },
    { "8 KB, last byte", long_last_byte, 94 },
    { "8 KB, boundaries", long_boundaries, 1000 },
    { "8 KB, the same", long_same, 1000 },
    { "8 KB, percent", long_percent, 1000 }
};


/* what the parts say is what the arena has given away */

static void
assert_parts(zone_t *z, us_store_info_t *info)
{
    unsigned     i;
    uint64_t     sum, chunks;
    us_arena_t   a;

    us_store_info(z->store, info);
    assert_int_equal(us_arena_open(&a, z->mem), 0);

    for (i = 0, sum = 0; i < US_PARTS; i++) {
        sum += info->parts[i];
    }

    /* the last chunk is not complete: something guards the zone's end */

    chunks = (z->size >> a.chunk_shift) - 1 - a.head->chunks_low;

    assert_int_equal(sum, info->used);
    assert_int_equal(info->used, (a.head->log_end + 1) / 2
                                 + (chunks << a.chunk_shift));
    assert_true(info->used <= info->size);
}


static void
assert_time(const char *name, uint64_t start, size_t n, size_t bytes)
{
    uint64_t  t;

    t = cpu_ns() - start;

    if (t > n * TIME_URL + bytes * TIME_BYTE) {
        fail_msg("%s: %zu URLs of %zu bytes took %zu us", name, n, bytes,
                 (size_t) t / 1000);
    }
}


static void
attack(unsigned kind)
{
    char             *text;
    size_t            len, raw, bytes, used;
    zone_t           *z;
    uint8_t           buf[US_URL_MAX + 8];
    unsigned          i, k, n;
    uint64_t          t;
    us_store_item_t   items[BATCH];
    us_store_info_t   info;

    z = zone_create(ZONE, 0);
    text = malloc(BATCH * (US_URL_MAX + 8));
    raw = 0;

    assert_parts(z, &info);
    used = info.used;

    for (i = 0; i < kinds[kind].n; i += n) {
        n = kinds[kind].n - i < BATCH ? kinds[kind].n - i : BATCH;
        bytes = 0;

        for (k = 0; k < n; k++) {
            len = kinds[kind].make(text + k * (US_URL_MAX + 8), i + k);
            items[k] = item(text + k * (US_URL_MAX + 8), len);
            bytes += len;
        }

        raw += bytes;

        t = cpu_ns();
        us_store_add(z->store, items, n);
        assert_time(kinds[kind].name, t, n, bytes);

        for (k = 0; k < n; k++) {
            assert_int_equal(items[k].status, US_NEW);
            assert_int_equal(items[k].id, i + k);
        }

        if (us_store_train_due(z->store)) {
            assert_int_equal(us_store_train(z->store, NULL), 1);
        }

        if (i % (BATCH * 16) == 0) {
            assert_parts(z, &info);
        }
    }

    assert_parts(z, &info);

    if (info.used - used > raw + kinds[kind].n * PER_URL + BEGUN) {
        fail_msg("%s: %zu bytes for %zu", kinds[kind].name,
                 (size_t) info.used - used, raw);
    }

    print_message("    %-18s %6u URLs of %6.1f bytes take %6.1f\n",
                  kinds[kind].name, kinds[kind].n,
                  (double) raw / kinds[kind].n,
                  (double) (info.used - used) / kinds[kind].n);

    for (i = 0; i < kinds[kind].n; i++) {
        len = kinds[kind].make(text, i);

        t = cpu_ns();
        items[0] = item(text, len);
        us_store_seen(z->store, items, 1);
        assert_int_equal(items[0].status, US_SEEN);
        assert_int_equal(items[0].id, i);

        assert_int_equal(us_store_get(z->store, i, buf, &bytes), US_OK);
        assert_int_equal(bytes, len);
        assert_memory_equal(buf, text, len);

        text[len - 1] ^= 0x80;
        us_store_seen(z->store, items, 1);
        assert_int_equal(items[0].status, US_UNSEEN);
        assert_time(kinds[kind].name, t, 3, 3 * len);
    }

    free(text);
    zone_destroy(z);
}


static void
hostile(void **state)
{
    unsigned  i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        attack(i);
    }
}


/* the least CPU time of several, for URLs of n bytes that end as a kind's do */

static uint64_t
time_of(make_pt make, size_t n)
{
    char             *text, *p;
    size_t            len;
    zone_t           *z;
    unsigned          i, try;
    uint64_t          t, best;
    us_store_item_t   it;

    best = UINT64_MAX;
    text = malloc(US_URL_MAX + 8);

    for (try = 0; try < TIME_TRIES; try++) {
        z = zone_create(1 << 20, 0);
        t = 0;

        for (i = 0; i < TIME_URLS; i++) {
            len = make(text, i);
            p = text + len - n;
            memcpy(p, "http://long.test/", 17);
            it = item(p, n);

            t -= cpu_ns();
            us_store_add(z->store, &it, 1);
            us_store_seen(z->store, &it, 1);
            t += cpu_ns();

            assert_int_equal(it.status, US_SEEN);
        }

        best = t < best ? t : best;
        zone_destroy(z);
    }

    free(text);

    return best;
}


static void
linear(void **state)
{
    unsigned  i;
    uint64_t  one, eight;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strncmp(kinds[i].name, "8 KB", 4) == 0) {
            one = time_of(kinds[i].make, 1000);
            eight = time_of(kinds[i].make, 8000);

            print_message("    %-18s 1,000 bytes %lu us, 8,000 bytes %lu us\n",
                          kinds[i].name, one / 1000 / TIME_URLS,
                          eight / 1000 / TIME_URLS);

            assert_true(eight < one * TIME_RATIO);
        }
    }
}


/*
 * SipHash-1-3 under a key of zeros: what Python 3.11 gives as the hash of
 * these bytes with PYTHONHASHSEED=0.
 */

static void
sip_hash(void **state)
{
    unsigned   i;
    uint8_t    key[16] = { 0 }, text[63];

    static const struct {
        size_t     len;
        uint64_t   hash;
    } known[] = {
        { 1, 0x68a914128e01e473 },
        { 2, 0x010bac45c41e3669 },
        { 7, 0x2f098ab0c751325a },
        { 8, 0xead411e67ebe2eea },
        { 9, 0x75927f9d95124362 },
        { 15, 0xf30eb725bb91c9ea },
        { 16, 0x8972188433a5c5b7 },
        { 63, 0x385d3e39e5f37359 }
    };

    for (i = 0; i < sizeof(text); i++) {
        text[i] = (uint8_t) i;
    }

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_true(us_hash(key, 0, text, known[i].len) == known[i].hash);
        assert_true(us_hash(key, 1, text, known[i].len) != known[i].hash);
    }
}


/*
 * URLs aimed at one bucket of a store whose key is known are spread by every
 * other key: by any 6 bits of the hash, no bucket of 64 gets three times its
 * share.
 */

static void
aimed(void **state)
{
    char       url[64];
    size_t     n;
    uint8_t    one[16] = "the known key of", other[16] = "another, unknown";
    unsigned   i, k, shift, hits, count[10][64];
    uint64_t   h;

    memset(count, 0, sizeof(count));
    hits = 0;

    for (i = 0; hits < 4096; i++) {
        n = (size_t) sprintf(url, "aimed.test/%u", i);

        if (us_hash(one, 0, (uint8_t *) url, n) >> 58 != 5) {
            continue;
        }

        h = us_hash(other, 0, (uint8_t *) url, n);
        hits++;

        for (k = 0, shift = 0; k < 10; k++, shift += 6) {
            count[k][h >> shift & 63]++;
        }
    }

    for (k = 0; k < 10; k++) {
        for (i = 0; i < 64; i++) {
            assert_in_range(count[k][i], 4096 / 64 / 3, 4096 / 64 * 3);
        }
    }
}


/*
 * Who takes anything for a leaf's header, at any address in the zone, looks at
 * nothing past the zone; whatever its size.
 */

static void
guard(void **state)
{
    void        *mem;
    size_t       size;
    uint64_t     i;
    us_arena_t   a;

    size = ((size_t) 1 << 40) + (64 << 10);
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_ANONYMOUS|MAP_PRIVATE|MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(mem, MAP_FAILED);

    for (i = 20; i <= 40; i++) {
        size = ((size_t) 1 << i) + 4096 + rnd(8192);

        memset(mem, 0, 4096);
        assert_int_equal(us_arena_format(&a, mem, size, &zone_conf), 0);
        assert_true((a.head->chunks_low << a.chunk_shift)
                    + ((uint64_t) US_LEAF_SIZES << a.head->leaf_shift) <= size);
        assert_true(size >> a.head->leaf_shift <= UINT32_MAX);
    }

    munmap(mem, ((size_t) 1 << 40) + (64 << 10));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(hostile),
        cmocka_unit_test(linear),
        cmocka_unit_test(sip_hash),
        cmocka_unit_test(aimed),
        cmocka_unit_test(guard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
