
/*
 * Bulk loading: the index that it makes has what was collected, in one merge
 * or in many; and takes no more room than its bound, whatever the hash key.
 */


#include "store_zone.h"
#include "store/us_bulk.h"
#include "store/us_leaf.h"

#include <stdio.h>


#define ZONE   ((size_t) 4 << 20)
#define LARGE  ((size_t) 64 << 20)


/* ids that are looked for: hash number i of key `key` */

static uint64_t
hash_of(uint64_t key, uint64_t i)
{
    uint64_t  z;

    z = key + i * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


static uint64_t  test_key;
static uint64_t  test_step;


static void
test_hash(void *data, const uint64_t *ids, unsigned n, us_hashes_t *hashes)
{
    unsigned  i;

    for (i = 0; i < n; i++) {
        hashes[i].url = hash_of(test_key, ids[i] / test_step);
        hashes[i].site = hash_of(~test_key, ids[i] / test_step);
    }
}


static int
found(us_arena_t *a, uint64_t hash, uint64_t id)
{
    uint64_t    candidate;
    us_probe_t  p;

    us_index_start(a, &p, hash);

    while (us_index_next(a, &p, &candidate)) {
        if (candidate == id) {
            return 1;
        }
    }

    return 0;
}


/* takes chunks for something else, until so many are left */

static void
leave(us_arena_t *a, uint64_t chunks)
{
    while (us_arena_free(a) > chunks) {
        assert_int_equal(us_arena_grow_locked(a, US_AREA_OFFSETS, 1), 0);
    }

    assert_int_equal(us_arena_free(a), chunks);
}


/* n entries, of ids test_step apart, in so many merges; sites: some twice */

static int
load(us_bulk_t *b, uint64_t from, uint64_t n, unsigned merges, int sites)
{
    int       rc;
    uint64_t  i, part;

    part = n / merges + 1;

    for (i = from; i < from + n; i++) {
        assert_int_equal(us_bulk_put(b, rnd(US_BULK_THREADS),
                                     hash_of(test_key, i), i * test_step, 0),
                         0);

        if (sites && i % 5 == 0) {
            assert_int_equal(us_bulk_put(b, 0, hash_of(~test_key, i),
                                         i * test_step, 1),
                             0);
        }

        if ((i - from) % part == part - 1) {
            rc = us_bulk_merge(b, (i + 1) * test_step, 0, 0);

            if (rc != 0) {
                return rc;
            }
        }
    }

    return us_bulk_merge(b, (from + n) * test_step, 1, 0);
}


/* begins with an empty index and loads n entries into it: see load() */

static us_bulk_t *
loaded(us_arena_t *a, uint64_t n, unsigned merges, int sites)
{
    us_bulk_t  *b;

    b = us_bulk_create(a, test_hash, NULL);
    assert_non_null(b);
    assert_int_equal(load(b, 0, n, merges, sites), 0);

    return b;
}


static void
check(us_arena_t *a, uint64_t n, int sites)
{
    uint64_t  i;

    assert_int_equal(a->head->entries, n + (sites ? (n + 4) / 5 : 0));

    for (i = 0; i < n; i++) {
        assert_true(found(a, hash_of(test_key, i), i * test_step));

        if (sites && i % 5 == 0) {
            assert_true(found(a, hash_of(~test_key, i), i * test_step));
        }
    }
}


static void
merges(void **state)
{
    void        *mem;
    uint64_t     n;
    unsigned     k;
    us_bulk_t   *b;
    us_arena_t   a;

    test_step = 1;

    for (n = 1; n < 60000; n = n * 3 + rnd(100)) {
        for (k = 1; k <= 7; k += 2) {
            test_key = rnd64();
            mem = zone_map(&a, ZONE);
            b = loaded(&a, n, k, 1);
            check(&a, n, 1);
            assert_int_equal(us_bulk_memory(b), 0);

            us_bulk_destroy(b);
            munmap(mem, ZONE);
        }
    }
}


/*
 * The bound: with that many chunks free, and no more, there is room; for ids
 * near one another and far apart, in one merge or in many.
 */

static void
bound(void **state)
{
    void        *mem;
    uint64_t     n, chunks, leaves;
    unsigned     i, k;
    us_bulk_t   *b;
    us_arena_t   a;

    for (i = 0; i < 150; i++) {
        n = 1 + rnd(i % 3 ? 60000 : 3000);
        n = i % 50 ? n : 1500000;
        k = 1 + rnd(4);
        test_key = rnd64();
        test_step = (uint64_t) 1 << rnd(6);

        mem = zone_map(&a, LARGE);
        leaves = us_bulk_leaves(n);
        chunks = us_bulk_chunks(a.chunk_shift, a.head->leaf_shift, leaves, n,
                                n * test_step);
        leave(&a, chunks);

        b = loaded(&a, n, k, 0);
        check(&a, n, 0);
        assert_true(a.head->area[US_AREA_LEAVES].n
                    + a.head->area[US_AREA_DIRECTORY].n <= chunks);

        us_bulk_destroy(b);
        munmap(mem, LARGE);
    }
}


/* that bound is close to what is taken, or it would keep room from others */

static void
close_bound(void **state)
{
    void        *mem;
    uint64_t     n, chunks, taken;
    us_bulk_t   *b;
    us_arena_t   a;

    n = 150000;
    test_key = 1;
    test_step = 1;

    mem = zone_map(&a, ZONE);
    b = loaded(&a, n, 1, 0);

    chunks = us_bulk_chunks(a.chunk_shift, a.head->leaf_shift,
                            us_bulk_leaves(n), n, n);
    taken = a.head->area[US_AREA_LEAVES].n + a.head->area[US_AREA_DIRECTORY].n;

    assert_true(chunks <= taken + 2);

    us_bulk_destroy(b);
    munmap(mem, ZONE);
}


/*
 * One merge that makes the index grow by up to 16 levels: entries of the old
 * leaves have US_SPLIT_MAX split bits at most, and are hashed up to twice more.
 */

static void
steep(void **state)
{
    void        *mem;
    uint64_t     n;
    unsigned     levels;
    us_bulk_t   *b;
    us_arena_t   a;

    test_step = 1;
    n = 300;

    for (levels = 1; levels <= 16; levels++) {
        test_key = rnd64();
        mem = zone_map(&a, LARGE);
        b = loaded(&a, n, 1, 1);
        assert_int_equal(us_bulk_put(b, 0, hash_of(test_key, n), n, 0), 0);
        assert_int_equal(us_bulk_put(b, 0, hash_of(~test_key, n), n, 1), 0);
        assert_int_equal(us_bulk_merge(b, n + 1, 0, n << levels), 0);
        check(&a, n + 1, 1);

        assert_int_equal(load(b, n + 1, 4 * n + 4, 1, 1), 0);
        check(&a, 5 * n + 5, 1);

        us_bulk_destroy(b);
        munmap(mem, LARGE);
    }
}


static void
gone(us_bulk_t *b, uint64_t i)
{
    assert_int_equal(us_bulk_put(b, rnd(US_BULK_THREADS),
                                 hash_of(test_key, i), i, US_BULK_GONE),
                     0);
}


/*
 * Entries are removed, each twice, and some of other hashes, which are not
 * there: few of them or many, with new ones in the same merge or without.
 * Those of sites with the same ids stay.
 */

static void
removed(void **state)
{
    void        *mem;
    uint64_t     i, n, more, one;
    unsigned     k;
    us_bulk_t   *b;
    us_arena_t   a;

    test_step = 1;
    n = 20000;

    for (k = 0; k < 40; k++) {
        one = 1 + rnd(k % 2 ? 8 : 200);
        more = k % 4 < 2 ? 0 : rnd(k % 3 ? 2000 : 60000);
        test_key = rnd64();

        mem = zone_map(&a, ZONE);
        b = loaded(&a, n, 2, 1);

        for (i = 0; i < n; i++) {
            if (i % one == 0) {
                gone(b, i);
                gone(b, i);
            }
        }

        for (i = 0; i < 100; i++) {
            assert_int_equal(us_bulk_put(b, 0, rnd64(), rnd(n), US_BULK_GONE),
                             0);
        }

        assert_int_equal(load(b, n, more, 1, 0), 0);
        assert_int_equal(us_bulk_memory(b), 0);
        assert_int_equal(a.head->entries, n + n / 5 + more
                                          - (n + one - 1) / one);

        for (i = 0; i < n + more; i++) {

            /* an id that is there as a site may be taken for a URL */

            if (i >= n || i % 5) {
                assert_int_equal(found(&a, hash_of(test_key, i), i),
                                 i >= n || i % one != 0);

            } else {
                assert_true(found(&a, hash_of(~test_key, i), i));
            }
        }

        us_bulk_destroy(b);
        munmap(mem, ZONE);
    }
}


/*
 * As much is to be removed as there is, but none of it is there, and as much is
 * added: the leaves of the merge are not fewer than their entries need.
 */

static void
removed_in_vain(void **state)
{
    void        *mem;
    uint64_t     i, n;
    us_bulk_t   *b;
    us_arena_t   a;

    test_key = 5;
    test_step = 1;
    n = 40000;

    mem = zone_map(&a, ZONE);
    b = loaded(&a, n, 1, 0);

    for (i = 0; i < n; i++) {
        assert_int_equal(us_bulk_put(b, 0, hash_of(~test_key, i), i,
                                     US_BULK_GONE),
                         0);
    }

    assert_int_equal(load(b, n, n, 1, 0), 0);
    check(&a, 2 * n, 0);
    assert_true(a.head->leaves >= us_bulk_leaves(2 * n) / 4 * 3);

    us_bulk_destroy(b);
    munmap(mem, ZONE);
}


/* most of the entries are removed, and more come: chunks are given back */

static void
given_back(void **state)
{
    void        *mem;
    uint64_t     i, n, before;
    us_bulk_t   *b;
    us_arena_t   a;

    test_key = 7;
    test_step = 1;
    n = 50000;

    mem = zone_map(&a, ZONE);
    b = loaded(&a, n, 2, 0);
    before = a.head->area[US_AREA_LEAVES].n;

    for (i = 0; i < n; i++) {
        if (i % 8) {
            gone(b, i);
        }
    }

    assert_int_equal(load(b, n, 1000, 1, 0), 0);
    assert_int_equal(a.head->entries, n / 8 + 1000);
    assert_true(a.head->area[US_AREA_LEAVES].n < before / 2);
    assert_true(a.head->nspare > 0);

    for (i = 0; i < n + 1000; i++) {
        assert_int_equal(found(&a, hash_of(test_key, i), i),
                         i >= n || i % 8 == 0);
    }

    /* what was given back is zero when it is taken again */

    while (a.head->nspare) {
        i = us_arena_take_locked(&a, US_AREA_DELETED, 1);
        us_commit_locked(&a);
        assert_true(i > 0);

        for (n = 0; n < (uint64_t) 1 << a.chunk_shift; n++) {
            assert_int_equal(a.base[i + n], 0);
        }
    }

    us_bulk_destroy(b);
    munmap(mem, ZONE);
}


/* the low bits that a leaf chooses are the best, but for a bit or two */

static void
low_bits(void **state)
{
    unsigned  i, n, low;
    uint64_t  id, best, bits;

    for (i = 0; i < 200000; i++) {
        n = 1 + rnd(US_LEAF_MAX);
        id = rnd64() >> (24 + rnd(40));
        best = UINT64_MAX;

        for (low = 0; low < 40; low++) {
            bits = (uint64_t) n * low + (id >> low);
            best = bits < best ? bits : best;
        }

        low = us_leaf_low(n, id);
        assert_true((uint64_t) n * low + (id >> low) <= best + 1);
    }
}


/*
 * Where adds end, deletes go on: in a zone of any size there is room for the
 * bits of a 30th of the ids that it may have, wherever they lie.
 */

static void
spare(void **state)
{
    void        *mem;
    size_t       size, at;
    us_arena_t   a;

    for (size = (size_t) 64 << 20; size <= (size_t) 8 << 30; size *= 2) {
        mem = zone_map(&a, size);

        while (us_arena_fits(&a, us_arena_spare(&a) + 1, 0)) {
            assert_int_equal(us_arena_grow_locked(&a, US_AREA_OFFSETS, 1), 0);
        }

        for (at = 0; us_arena_allot_locked(&a, US_AREA_DELETED, at) == 0; at++)
        {
            /* void */
        }

        assert_true((at << a.chunk_shift) * 8 >= size / 20 / 30);
        munmap(mem, size);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(merges),
        cmocka_unit_test(bound),
        cmocka_unit_test(close_bound),
        cmocka_unit_test(steep),
        cmocka_unit_test(removed),
        cmocka_unit_test(removed_in_vain),
        cmocka_unit_test(given_back),
        cmocka_unit_test(low_bits),
        cmocka_unit_test(spare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
