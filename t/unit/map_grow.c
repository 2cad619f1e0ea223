
/*
 * Maps made by rule: the first one, and how it grows.
 */


#include "cluster/us_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


static const uint8_t  cluster[16] = { 1, 2, 3 };


static us_str_t
str(const char *s)
{
    return (us_str_t) { strlen(s), (const uint8_t *) s };
}


/* shard number: its uuid is made of the number */

static us_shard_t
shard(unsigned number, char *text, size_t size)
{
    char        err[256];
    us_shard_t  s;

    (void) snprintf(text, size, "%u=%032x,us_%u", number, number, number);
    assert_int_equal(us_shard_parse(&s, str(text), err, sizeof(err)), 0);

    return s;
}


static us_map_t *
first(unsigned n)
{
    char         err[256], (*text)[80];
    unsigned     i;
    us_map_t    *map;
    us_shard_t  *s;

    s = calloc(n, sizeof(us_shard_t));
    text = calloc(n, sizeof(*text));

    for (i = 0; i < n; i++) {
        s[i] = shard(i, text[i], sizeof(text[i]));
    }

    map = us_map_first(cluster, str("crawler/1"), US_KEY_SITE, s, n, NULL,
                       err, sizeof(err));

    if (map == NULL) {
        fail_msg("%s", err);
    }

    free(s);
    free(text);

    return map;
}


/* the next map has shards `from` up to `to`; the old one is freed */

static us_map_t *
grow(us_map_t *map, unsigned from, unsigned to)
{
    char         err[256], (*text)[80];
    unsigned     i;
    us_map_t    *next;
    us_shard_t  *s;

    s = calloc(to - from, sizeof(us_shard_t));
    text = calloc(to - from, sizeof(*text));

    for (i = from; i < to; i++) {
        s[i - from] = shard(i, text[i - from], sizeof(*text));
    }

    next = us_map_grow(map, s, to - from, NULL, err, sizeof(err));

    if (next == NULL) {
        fail_msg("%s", err);
    }

    assert_int_equal(us_map_follows(map, next, err, sizeof(err)), 0);
    us_map_free(map);
    free(s);
    free(text);

    return next;
}


static void
owned(const us_map_t *map, unsigned *n)
{
    unsigned  slot;

    memset(n, 0, map->nshards * sizeof(unsigned));

    for (slot = 0; slot < US_SLOTS; slot++) {
        n[map->slots[slot].shards[0]]++;
    }
}


static void
even(const us_map_t *map, unsigned spread)
{
    unsigned  i, least, most, n[US_SHARDS];

    owned(map, n);
    least = US_SLOTS;
    most = 0;

    for (i = 0; i < map->nshards; i++) {
        least = n[i] < least ? n[i] : least;
        most = n[i] > most ? n[i] : most;
    }

    assert_in_range(most - least, 0, spread);
}


static void
has(const us_map_t *map, const char *slots)
{
    if (memmem(map->text.data, map->text.len, slots, strlen(slots)) == NULL) {
        fail_msg("no %s in %.*s", slots, (int) map->text.len, map->text.data);
    }
}


static void
test_first(void **state)
{
    char         err[256];
    unsigned     n;
    us_map_t    *map;
    us_shard_t   s[2];

    for (n = 1; n <= US_SHARDS; n = n < 9 ? n + 1 : n * 2 - 1) {
        map = first(n);
        assert_int_equal(map->version, 1);
        assert_int_equal(map->key, US_KEY_SITE);
        assert_int_equal(map->nshards, n);
        assert_memory_equal(map->cluster, cluster, 16);
        even(map, 1);
        us_map_free(map);
    }

    assert_null(us_map_first(cluster, str("x"), US_KEY_URL, s, 0, NULL,
                             err, sizeof(err)));
    assert_string_equal(err, "0 shards; a cluster has 1 to 4096");

    assert_int_equal(us_shard_parse(&s[0], str("3=0123456789abcdef0123456789ab"
                                    "cdef,us_3"), err, sizeof(err)), 0);
    s[1] = s[0];
    assert_null(us_map_first(cluster, str("x"), US_KEY_URL, s, 2, NULL,
                             err, sizeof(err)));
    assert_string_equal(err, "shard 3 is there twice");

    s[1].number = 4;
    assert_null(us_map_first(cluster, str("x"), US_KEY_URL, s, 2, NULL,
                             err, sizeof(err)));
    assert_string_equal(err, "shards 3 and 4 have one uuid; each has a store "
                        "of its own");
}


/* as the picture in us_map.h */

static void
test_grow(void **state)
{
    unsigned      slot;
    us_map_t     *map;
    us_owners_t  *was;

    map = first(1);
    has(map, "  \"slots\": [\n    [\"0-4095\", 0]\n  ]\n");

    map = grow(map, 1, 2);
    assert_int_equal(map->version, 2);
    has(map, "[\n    [\"0-2047\", 0],\n    [\"2048-4095\", 1, 0]\n  ]\n");

    map = grow(map, 2, 3);
    has(map, "[\n    [\"0-1364\", 0],\n    [\"1365-2047\", 2, 0],\n"
             "    [\"2048-3413\", 1, 0],\n    [\"3414-4095\", 2, 1, 0]\n"
             "  ]\n");

    /* a lower number than those that are there; owners stay who they are */

    us_map_free(map);
    map = first(1);
    map = grow(map, 7, 8);
    was = malloc(sizeof(map->slots));
    assert_non_null(was);
    memcpy(was, map->slots, sizeof(map->slots));
    map = grow(map, 3, 4);
    assert_int_equal(map->shards[1].number, 3);

    for (slot = 0; slot < US_SLOTS; slot++) {
        if (map->slots[slot].shards[0] != 1) {
            assert_int_equal(map->slots[slot].shards[0],
                             was[slot].shards[0] ? 2 : 0);
        }
    }

    even(map, 1);
    us_map_free(map);
    free(was);
}


/* one by one to 1,024 shards: even, and with room for more former owners */

static void
test_history(void **state)
{
    unsigned   n, slot, most;
    us_map_t  *map;

    map = first(1);

    for (n = 1; n < 200; n++) {
        map = grow(map, n, n + 1);
        even(map, 2);
    }

    for ( /* void */ ; n < 1024; n += n / 8) {
        map = grow(map, n, n + n / 8 < 1024 ? n + n / 8 : 1024);
    }

    for (slot = 0, most = 0; slot < US_SLOTS; slot++) {
        most = map->slots[slot].n > most ? map->slots[slot].n : most;
    }

    assert_int_equal(map->nshards, 1024);
    even(map, 1);
    assert_in_range(most, 7, 13);
    us_map_free(map);
}


static void
test_refused(void **state)
{
    char         err[256], text[80];
    size_t       i;
    us_map_t    *map;
    us_shard_t   s;

    static const char *const  bad[] = {
        "", "=", "0", "0=", "0=x", "-1=0123456789abcdef0123456789abcdef,a",
        "4096=0123456789abcdef0123456789abcdef,a",
        "1=0123456789abcdef0123456789abcdef",
        "1=0123456789abcdef0123456789abcdef,",
        "1=0123456789abcdef0123456789abcdef,a,",
        "1=0123456789abcdef0123456789abcdef,,a",
        "1=0123456789abcdef0123456789abcdef,A",
        "1=0123456789abcdef0123456789abcdef,a\"b",
        "1=0123456789abcdef0123456789abcdef,a,b,c,d,e,f,g,h,i"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (us_shard_parse(&s, str(bad[i]), err, sizeof(err)) != -1) {
            fail_msg("accepted: %s", bad[i]);
        }
    }

    assert_string_equal(err, "\"1=0123456789abcdef0123456789abcdef,a,b,c,d,e,"
                        "f,g,h,i\" is no shard: NUMBER=UUID,NODE[,NODE...], "
                        "with a number from 0 to 4095, 32 hex digits, and 1 "
                        "to 8 names of nodes");

    assert_int_equal(us_shard_parse(&s, str("12=0123456789abcdef0123456789"
                                    "abcdef,a,b"), err, sizeof(err)), 0);
    assert_int_equal(s.number, 12);
    assert_int_equal(s.nnodes, 2);
    assert_int_equal(s.uuid[15], 0xef);
    assert_memory_equal(s.nodes[1].data, "b", 1);

    map = first(3);
    s = shard(2, text, sizeof(text));
    assert_null(us_map_grow(map, &s, 1, NULL, err, sizeof(err)));
    assert_string_equal(err, "shard 2 is there twice");
    us_map_free(map);
}


/* slots with all the former owners that there may be stay where they are */

static void
test_full(void **state)
{
    char         err[256], text[80], *p;
    size_t       i;
    us_map_t    *map, *next;
    us_shard_t   s;
    static char  json[8192];

    p = json + sprintf(json, "{\"cluster\":\"%032x\",\"version\":9,"
                       "\"norm\":\"x\",\"key\":\"url\",\"shards\":{", 1);

    for (i = 0; i <= US_MAP_FORMER; i++) {
        p += sprintf(p, "%s\"%zu\":{\"uuid\":\"%032zx\",\"nodes\":[\"n%zu\"]}",
                     i ? "," : "", i, i + 100, i);
    }

    p += sprintf(p, "},\"slots\":[[\"0-4000\",0");

    for (i = 1; i <= US_MAP_FORMER; i++) {
        p += sprintf(p, ",%zu", i);
    }

    (void) sprintf(p, "],[\"4001-4095\",0]]}");

    /* those that may move, do */

    map = us_map_read(str(json), err, sizeof(err));
    assert_non_null(map);
    s = shard(77, text, sizeof(text));
    next = us_map_grow(map, &s, 1, NULL, err, sizeof(err));
    assert_non_null(next);
    assert_int_equal(next->slots[4000].shards[0], 0);
    assert_int_equal(next->slots[4001].shards[0], 17);
    assert_int_equal(next->slots[4095].shards[0], 17);
    assert_int_equal(next->slots[4095].shards[1], 0);
    us_map_free(next);
    us_map_free(map);

    (void) memcpy(strstr(json, "0-4000"), "0-4095", 6);
    (void) strcpy(strstr(json, ",[\"4001"), "]}");
    map = us_map_read(str(json), err, sizeof(err));
    assert_non_null(map);
    assert_null(us_map_grow(map, &s, 1, NULL, err, sizeof(err)));
    assert_string_equal(err, "no slot may move to shard 77: all have 16 "
                        "former owners, or more than its part of the URLs");
    us_map_free(map);
}


static uint64_t
load(const us_map_t *map, const uint32_t *weight, uint32_t shard)
{
    uint64_t  n;
    unsigned  slot;

    for (slot = 0, n = 0; slot < US_SLOTS; slot++) {
        n += map->slots[slot].shards[0] == shard ? weight[slot] : 0;
    }

    return n;
}


/* by weight: shards have as much, not as many slots */

static void
test_weights(void **state)
{
    char         err[256], text[4][80];
    unsigned     i, slot, former;
    uint32_t     weight[US_SLOTS];
    uint64_t     total;
    us_map_t    *map, *next;
    us_shard_t   s[4];

    for (slot = 0, total = 0; slot < US_SLOTS; slot++) {
        weight[slot] = 1 + slot % 7 + (slot < 500 ? 90 : 0);
        total += weight[slot];
    }

    for (i = 0; i < 4; i++) {
        s[i] = shard(i, text[i], sizeof(text[i]));
    }

    map = us_map_first(cluster, str("x"), US_KEY_SITE, s, 3, weight, err,
                       sizeof(err));
    assert_non_null(map);

    for (i = 0; i < 3; i++) {
        assert_in_range(load(map, weight, i), total / 3 - 97, total / 3 + 97);
    }

    next = us_map_grow(map, &s[3], 1, weight, err, sizeof(err));
    assert_non_null(next);
    assert_int_equal(us_map_follows(map, next, err, sizeof(err)), 0);

    for (i = 0; i < 4; i++) {
        assert_in_range(load(next, weight, i), total / 4 - 97,
                        total / 4 + 97);
    }

    us_map_free(next);
    us_map_free(map);

    /* one slot that has more than all others together */

    weight[100] = 1000000;
    map = us_map_first(cluster, str("x"), US_KEY_SITE, s, 3, weight, err,
                       sizeof(err));
    assert_non_null(map);

    for (i = 0, former = 0; i < 3; i++) {
        assert_true(load(map, weight, i) > 0);
        former += load(map, weight, i) > 1000000;
    }

    assert_in_range(former, 0, 1);

    /* it does not move; the others share what there is without it */

    next = us_map_grow(map, &s[3], 1, weight, err, sizeof(err));
    assert_non_null(next);
    assert_int_equal(next->slots[100].shards[0], map->slots[100].shards[0]);
    assert_int_equal(next->slots[100].n, 1);
    assert_in_range(load(next, weight, 3), total / 3, total / 2);
    us_map_free(next);
    us_map_free(map);

    /* nor does one whose weight, doubled, has more than 32 bits */

    weight[4000] = 1u << 31;
    map = us_map_first(cluster, str("x"), US_KEY_SITE, s, 1, weight, err,
                       sizeof(err));
    assert_non_null(map);
    next = us_map_grow(map, &s[1], 1, weight, err, sizeof(err));
    assert_non_null(next);
    assert_int_equal(next->slots[4000].shards[0], 0);
    us_map_free(next);
    us_map_free(map);

    /* all in the first and in the last slot: each shard has one at least */

    for (slot = 0; slot < US_SLOTS; slot++) {
        weight[slot] = slot % (US_SLOTS - 1) ? 1 : UINT32_MAX;
    }

    map = us_map_first(cluster, str("x"), US_KEY_SITE, s, 4, weight, err,
                       sizeof(err));
    assert_non_null(map);

    for (i = 0; i < 4; i++) {
        assert_true(load(map, weight, i) > 0);
    }

    us_map_free(map);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_weights)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
