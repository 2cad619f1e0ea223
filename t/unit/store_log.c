
/*
 * The record log and the index by themselves: records of every length at every
 * place of a line, leaves from empty to split, ids and positions past 2^32.
 */


#include "store_zone.h"
#include "codec/us_record_private.h"
#include "store/us_leaf.h"


#define HUGE_ZONE  ((size_t) 300 << 30)


/* a record whose bits follow from its id */

static uint32_t
record(uint64_t id, uint8_t *bits)
{
    size_t    i, n;
    uint32_t  units;
    uint64_t  seed;

    seed = zone_seed;
    zone_seed = id * 31 + 5;

    switch (rnd(8)) {

    case 0:
        units = 250 + rnd(10);
        break;

    case 1:
        units = 1 + rnd(US_RECORD_MAX * 2 - 1);
        break;

    default:
        units = 1 + rnd(100);
    }

    n = (units + 1) / 2;

    for (i = 0; i < n; i++) {
        bits[i] = rnd64();
    }

    if (units & 1) {
        bits[n - 1] &= 15;
    }

    zone_seed = seed;

    return units;
}


static void
put(us_arena_t *a, uint64_t id)
{
    uint8_t   bits[US_RECORD_BUFFER];
    uint32_t  units;

    units = record(id, bits);
    assert_int_equal(us_log_reserve_locked(a, id, units), 0);
    us_log_write_locked(a, id, bits, units);
    us_log_append_locked(a, units);
    us_commit_locked(a);
}


static void
check(us_arena_t *a, uint64_t id)
{
    size_t      i;
    uint8_t     bits[US_RECORD_BUFFER], buf[US_RECORD_BUFFER];
    uint8_t     got[US_RECORD_BUFFER];
    uint32_t    units;
    us_bits_t   b;

    units = record(id, bits);
    us_log_get(a, id, buf, &b);

    assert_int_equal(b.units, units);
    assert_int_equal(us_bits_copy(&b, got), (units + 1) / 2);
    assert_memory_equal(got, bits, (units + 1) / 2);

    for (i = 0; i + 8 <= units * 4 && i < 200; i += 5) {
        assert_int_equal(us_bits(&b, i, 8),
                         (bits[i / 8] >> i % 8
                          | (i % 8 ? bits[i / 8 + 1] << (8 - i % 8) : 0))
                         & 255);
    }
}


static void
log_lengths(void **state)
{
    void        *mem;
    uint64_t     id;
    us_arena_t   a;

    mem = zone_map(&a, 64 << 20);

    for (id = 0; id < 20 * US_LOG_GROUP; id++) {
        put(&a, id);
        check(&a, id);
    }

    for (id = 0; id < 20 * US_LOG_GROUP; id++) {
        check(&a, id);
    }

    munmap(mem, 64 << 20);
}


/* until it is full: nothing half done, nothing overwritten */

static void
log_full(void **state)
{
    void        *mem;
    uint8_t      bits[US_RECORD_BUFFER];
    size_t       size;
    uint64_t     id, n;
    us_arena_t   a;

    size = us_arena_min_size(&zone_conf);
    mem = zone_map(&a, size);

    for (n = 0; us_log_reserve_locked(&a, n, record(n, bits)) == 0; n++) {
        put(&a, n);
    }

    assert_true(n > 200);
    assert_true((a.head->log_end + 1) / 2
                <= a.head->chunks_low << a.chunk_shift);

    for (id = 0; id < n; id++) {
        check(&a, id);
    }

    munmap(mem, size);
}


/* the position of each one of a word, by a loop */

static void
select_word(void **state)
{
    unsigned  i, k, n;
    uint64_t  v, w;

    for (k = 0; k < 20000; k++) {
        v = rnd64();
        v = k % 3 == 0 ? v & rnd64() & rnd64() : v;
        v = k % 7 == 0 ? v | rnd64() | rnd64() : v;
        v = k == 0 ? UINT64_MAX : k == 1 ? 1 : k == 2 ? (uint64_t) 1 << 63 : v;

        n = us_popcount(v);

        for (i = 0, w = v; i < n; i++, w &= w - 1) {
            assert_int_equal(us_select_word(v, i), __builtin_ctzll(w));
            assert_int_equal(us_nth_bit(&v, 1, i), __builtin_ctzll(w));
        }

        assert_int_equal(us_nth_bit(&v, 1, n), 64);
    }
}


/* the place of a record is guessed within its line, if that was read */

static void
log_guess(void **state)
{
    void        *mem;
    uint64_t     id, base, next, place;
    us_arena_t   a;
    us_guess_t   g;

    mem = zone_map(&a, 64 << 20);
    memset(&g, 0, sizeof(us_guess_t));

    for (id = 0; id <= 20 * US_LOG_GROUP; id++) {
        put(&a, id);
    }

    assert_int_equal(us_guess_place(&g, 0), 0);

    for (id = 0; id <= 20 * US_LOG_GROUP; id += US_LOG_GROUP) {
        us_guess_prefetch(&g, &a, id);
        us_guess_learn(&g, &a, id + (id ? 0 : 5));
    }

    for (id = 0; id < 20 * US_LOG_GROUP; id++) {
        place = us_guess_place(&g, id);
        base = us_log_base(&a, id);
        next = us_log_base(&a, id + US_LOG_GROUP);

        assert_true(place + US_GUESS_UNIT > base && place <= next);
        assert_true(id % US_LOG_GROUP < US_LOG_GROUP - 1
                    || place > base + (next - base) / 10 * 9);
        assert_true(id % US_LOG_GROUP == 0
                    || place >= us_guess_place(&g, id - 1));
    }

    /* the lines that are known stay known, others are not */

    place = us_guess_place(&g, 7);
    assert_int_equal(us_guess_grow(&g, 1000000), 0);
    assert_int_equal(us_guess_place(&g, 7), place);
    assert_int_equal(us_guess_place(&g, 1000000 * US_LOG_GROUP), 0);

    /* a wrong base is put right */

    g.bases[0]--;
    assert_int_not_equal(us_guess_place(&g, 7), place);
    us_guess_prefetch(&g, &a, 7);
    us_guess_learn(&g, &a, 7);
    assert_int_equal(us_guess_place(&g, 7), place);

    assert_int_equal(us_guess_grow(&g, (uint64_t) 1 << 40), -1);

    us_guess_free(&g);
    munmap(mem, 64 << 20);
}


/*
 * A writer killed after us_log_write_locked() leaves its record past the
 * log's end.  The chunk that is taken next must not have a byte of it.
 */

static void
log_killed(void **state)
{
    void           *mem;
    size_t          size, i, chunk, near;
    uint8_t         ones[US_RECORD_BUFFER], bits[US_RECORD_BUFFER];
    uint32_t        n;
    uint64_t        id;
    unsigned        round;
    us_arena_t      a;
    const uint8_t  *p;

    memset(ones, 0xff, sizeof(ones));
    memset(bits, 0x11, sizeof(bits));
    size = us_arena_min_size(&zone_conf);
    near = 0;

    for (round = 0; round < 20; round++) {
        mem = zone_map(&a, size);
        chunk = (size_t) 1 << a.chunk_shift;

        for (id = 0; ; id++) {

            /* of the greatest length there is in the log, and killed */

            if (us_log_reserve_locked(&a, id, US_RECORD_MAX * 2) != 0) {
                break;
            }

            us_log_write_locked(&a, id, ones, US_RECORD_MAX * 2);

            if (us_arena_fits(&a, 1, 0)) {
                p = a.base + ((a.head->chunks_low - 1) << a.chunk_shift);
                near += (a.head->log_end / 2 + 512
                         > (a.head->chunks_low - 1) << a.chunk_shift);

                for (i = 0; i < chunk; i++) {
                    assert_int_equal(p[i], 0);
                }
            }

            n = 1 + rnd(40);
            us_log_write_locked(&a, id, bits, n);
            us_log_append_locked(&a, n);
            us_commit_locked(&a);

            /* all but the last chunk is of no interest */

            while (a.head->log_end / 2 + 3 * chunk
                   < a.head->chunks_low << a.chunk_shift)
            {
                a.head->log_end += chunk;
            }
        }

        munmap(mem, size);
    }

    assert_true(near > 50);
}


static void
log_far(void **state)
{
    void        *mem;
    uint64_t     id, first;
    us_arena_t   a;

    mem = zone_map(&a, HUGE_ZONE);
    first = ((uint64_t) 1 << 33) - 100;

    assert_int_equal(us_arena_grow_locked(&a, US_AREA_OFFSETS,
                                          (first / US_LOG_GROUP * 64
                                           >> a.chunk_shift) + 1), 0);

    a.head->log_end = ((uint64_t) 200 << 30) * 2 + 1;
    a.head->long_end = 0;
    first -= first % US_LOG_GROUP;

    for (id = first; id < first + 300; id++) {
        put(&a, id);
    }

    for (id = first; id < first + 300; id++) {
        check(&a, id);
    }

    munmap(mem, HUGE_ZONE);
}


static uint64_t
mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


#define SITE  ((uint64_t) 1 << 63)

static uint8_t  gone[300000];
static uint64_t index_first;


/* one in ten is the first of its site */

static void
hashes(void *data, const uint64_t *ids, unsigned n, us_hashes_t *h)
{
    for ( /* void */ ; n; n--, ids++, h++) {
        h->url = gone[*ids - index_first] ? 0 : mix(*ids + 1);
        h->site = mix((*ids + 1) | SITE);
    }
}


static int
find(us_arena_t *a, uint64_t hash, uint64_t id)
{
    int         found;
    uint64_t    candidate, last;
    us_probe_t  p;

    us_index_start(a, &p, hash);
    found = 0;
    last = 0;

    while (us_index_next(a, &p, &candidate)) {
        assert_true(candidate >= last);
        last = candidate;
        found += candidate == id;
    }

    assert_int_equal(us_index_stale(a, &p), 0);

    return found;
}


static void
insert(us_arena_t *a, uint64_t id, int site)
{
    us_hashes_t  h;

    hashes(NULL, &id, 1, &h);
    us_index_grow_locked(a, hashes, NULL);

    assert_int_equal(us_index_reserve_locked(a, &h, id, site), 0);

    us_index_put_locked(a, &h, id, site);
    us_commit_locked(a);
}


static void
forget(us_arena_t *a, uint64_t id)
{
    us_removal_t  r;

    us_index_remove_prepare_locked(a, mix(id + 1), id, &r);
    us_index_remove_locked(a, &r);
    us_commit_locked(a);
}


static void
index_at(uint64_t first, size_t zone)
{
    void         *mem;
    size_t        n, wrong;
    uint64_t      id, old;
    us_arena_t    a;

    mem = zone_map(&a, zone);
    index_first = first;
    memset(gone, 0, sizeof(gone));
    n = 0;

    for (id = first; id < first + 150000; id++) {
        insert(&a, id, id % 10 == 0);

        if (id % 7 == 3) {
            old = id - id % 5;

            if (old >= first && !gone[old - first]) {
                forget(&a, old);
                gone[old - first] = 1;
                n++;
            }
        }
    }

    assert_int_equal(a.head->entries, 150000 + 15000 - n);

    wrong = 0;

    for (id = first; id < first + 150000; id++) {
        wrong += find(&a, mix(id + 1), id) != !gone[id - first];
        wrong += find(&a, mix((id + 1) | SITE), id) != (id % 10 == 0);
    }

    /*
     * A wrong one is an entry that chance made look like another: the leaf,
     * the fingerprint, and the id of both.
     */

    assert_true(wrong < 3);

    munmap(mem, zone);
}


static void
index_low(void **state)
{
    index_at(0, 16 << 20);
}


static void
index_past_32_bits(void **state)
{
    index_at(((uint64_t) 1 << 32) - 75000, 16 << 20);
}


static void
index_high(void **state)
{
    index_at(((uint64_t) 1 << 40) - 150001, 16 << 20);
}


/* leaves far from the beginning of a zone that needs larger units */

static void
index_huge_zone(void **state)
{
    index_at(1000, HUGE_ZONE);
}


/*
 * All memory gone: reserving fails.  Entries of leaves of which there is no
 * room for a copy stay, and are counted.
 */

static void
index_full(void **state)
{
    void         *mem;
    size_t        size, wrong, stay;
    uint64_t      id, n;
    us_arena_t    a;
    us_hashes_t   h;

    size = us_arena_min_size(&zone_conf);
    mem = zone_map(&a, size);
    index_first = 0;
    memset(gone, 0, sizeof(gone));

    for (n = 0; ; n++) {
        hashes(NULL, &n, 1, &h);
        us_index_grow_locked(&a, hashes, NULL);

        if (us_index_reserve_locked(&a, &h, n, 0) != 0) {
            break;
        }

        us_index_put_locked(&a, &h, n, 0);
        us_commit_locked(&a);
    }

    assert_true(n > 10000);
    assert_int_equal(us_arena_fits(&a, 1, 0), 0);

    for (id = 0, wrong = 0, stay = 0; id < n; id++) {
        wrong += find(&a, mix(id + 1), id) != 1;
        forget(&a, id);
        stay += find(&a, mix(id + 1), id);
    }

    assert_int_equal(wrong, 0);
    assert_in_range(stay, 1, n / 10);
    assert_int_equal(a.head->entries, stay);

    munmap(mem, size);
}


/* keys that all lead to one leaf: an end, not a loop */

static void
index_one_leaf(void **state)
{
    void        *mem;
    uint64_t     id;
    us_arena_t   a;
    us_hashes_t  five = { .url = 5 };

    mem = zone_map(&a, 4 << 20);

    for (id = 0; id < 1000; id++) {
        if (us_index_reserve_locked(&a, &five, id, 0) != 0) {
            break;
        }

        us_index_put_locked(&a, &five, id, 0);
        us_commit_locked(&a);
    }

    assert_int_equal(id, 255);
    assert_int_equal(find(&a, 5, 254), 1);

    munmap(mem, 4 << 20);
}


/*
 * A killed writer leaves its intents, or leaves in hand: the next one
 * completes the first and gives the second back.
 */

static void
recovery(void **state)
{
    void        *mem;
    uint64_t     size, serial;
    us_arena_t   a;

    mem = zone_map(&a, 4 << 20);
    insert(&a, 0, 0);

    /* died while it was collecting: nothing has happened */

    us_intend_locked(&a, &a.head->next_id, 77);
    us_arena_enter(&a);
    assert_int_equal(a.head->next_id, 0);
    assert_int_equal(a.head->recoveries, 0);

    /* died between the decision and the last word */

    us_intend_locked(&a, &a.head->next_id, 78);
    us_intend_locked(&a, &a.head->deleted, 3);
    us_intend_locked(&a, &a.head->next_id, 79);
    assert_int_equal(us_intended(&a, &a.head->next_id), 79);
    us_release(&a.head->intents, 3);
    us_arena_enter(&a);
    assert_int_equal(a.head->next_id, 79);
    assert_int_equal(a.head->deleted, 3);
    assert_int_equal(a.head->recoveries, 1);
    assert_int_equal(a.head->intents, 0);

    /* died with a leaf in hand */

    a.head->staged[0] = a.head->leaf_next >> a.head->leaf_shift;
    size = 5;
    serial = a.head->leaf_serial;
    *(uint64_t *) (a.base + a.head->leaf_next) = size << 25;
    a.head->leaf_next += size << a.head->leaf_shift;

    us_arena_enter(&a);
    us_index_enter(&a);
    assert_int_equal(a.head->staged[0], 0);
    assert_int_not_equal(a.head->free[5], 0);
    assert_true(a.head->leaf_serial > serial);
    assert_int_equal(find(&a, mix(1), 0), 1);

    munmap(mem, 4 << 20);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(log_lengths),
        cmocka_unit_test(log_full),
        cmocka_unit_test(log_guess),
        cmocka_unit_test(log_killed),
        cmocka_unit_test(log_far),
        cmocka_unit_test(select_word),
        cmocka_unit_test(index_low),
        cmocka_unit_test(index_past_32_bits),
        cmocka_unit_test(index_high),
        cmocka_unit_test(index_huge_zone),
        cmocka_unit_test(index_full),
        cmocka_unit_test(index_one_leaf),
        cmocka_unit_test(recovery),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
