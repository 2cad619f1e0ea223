
/*
 * The map of a cluster: what is a map and what is none, its canonical form,
 * which map may follow which, slots, and the tag of a request.
 */


#include "cluster/us_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


#define A        "0123456789abcdef0123456789abcdef"
#define B        "b123456789abcdef0123456789abcdef"
#define C        "c123456789abcdef0123456789abcdef"

#define HEAD     "{\"cluster\":\"" A "\",\"version\":3,"                    \
                 "\"norm\":\"crawler/1\",\"key\":\"url\","
#define SHARD0   "\"0\":{\"uuid\":\"" B "\",\"nodes\":[\"us_0a\",\"us_0b\"]}"
#define SHARD7   "\"7\":{\"uuid\":\"" C "\",\"nodes\":[\"us_7\"]}"
#define SHARDS   "\"shards\":{" SHARD0 "," SHARD7 "}"
#define SLOTS    "\"slots\":[[\"0-1023\",0],[\"1024-4095\",7,0]]"
#define MAP      HEAD SHARDS "," SLOTS "}"

#define CANONICAL                                                             \
    "{\n"                                                                     \
    "  \"cluster\": \"" A "\",\n"                                             \
    "  \"version\": 3,\n"                                                     \
    "  \"norm\": \"crawler/1\",\n"                                            \
    "  \"key\": \"url\",\n"                                                   \
    "  \"shards\": {\n"                                                       \
    "    \"0\": {\"uuid\": \"" B "\", \"nodes\": [\"us_0a\", \"us_0b\"]},\n"  \
    "    \"7\": {\"uuid\": \"" C "\", \"nodes\": [\"us_7\"]}\n"               \
    "  },\n"                                                                  \
    "  \"slots\": [\n"                                                        \
    "    [\"0-1023\", 0],\n"                                                  \
    "    [\"1024-4095\", 7, 0]\n"                                             \
    "  ]\n"                                                                   \
    "}\n"


static us_str_t
str(const char *s)
{
    return (us_str_t) { strlen(s), (const uint8_t *) s };
}


static us_map_t *
map_of(const char *text)
{
    char       err[512];
    us_map_t  *map;

    map = us_map_read(str(text), err, sizeof(err));

    if (map == NULL) {
        fail_msg("\"%s\": %s", text, err);
    }

    return map;
}


static void
same_text(us_str_t text, const char *expected)
{
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);
}


static void
test_map(void **state)
{
    us_map_t  *map;

    map = map_of(MAP);

    assert_int_equal(map->version, 3);
    assert_int_equal(map->cluster[0], 0x01);
    assert_int_equal(map->cluster[15], 0xef);
    assert_int_equal(map->key, US_KEY_URL);
    same_text(map->norm, "crawler/1");

    assert_int_equal(map->nshards, 2);
    assert_int_equal(map->shards[0].number, 0);
    assert_int_equal(map->shards[0].nnodes, 2);
    same_text(map->shards[0].nodes[1], "us_0b");
    assert_int_equal(map->shards[1].number, 7);
    assert_int_equal(map->shards[1].uuid[0], 0xc1);

    assert_int_equal(map->slots[1023].shards[0], 0);
    assert_int_equal(map->slots[1023].n, 1);
    assert_int_equal(map->slots[1024].shards[0], 1);
    assert_int_equal(map->slots[4095].n, 2);
    assert_int_equal(map->slots[4095].shards[1], 0);

    assert_int_equal(us_map_shard(map, 0), 0);
    assert_int_equal(us_map_shard(map, 7), 1);
    assert_int_equal(us_map_shard(map, 1), -1);
    assert_int_equal(us_map_shard(map, 8), -1);
    assert_int_equal(us_map_shard(map, (uint64_t) 1 << 32), -1);
    assert_int_equal(us_map_node(map, str("us_0b")), 0);
    assert_int_equal(us_map_node(map, str("us_7")), 1);
    assert_int_equal(us_map_node(map, str("us_0")), -1);

    same_text(map->text, CANONICAL);

    us_map_free(map);
    us_map_free(NULL);
}


/* the same map in other words has the same text and digest */

static void
test_canonical(void **state)
{
    size_t     i;
    us_map_t  *map, *other;

    static const char *const  same[] = {
        CANONICAL,
        "\r\n\t " MAP "\n\n",

        /* the members in another order, a UUID, escapes, ranges cut */
        "{" SLOTS "," SHARDS ",\"key\":\"url\",\"norm\":\"crawler\\/1\","
        "\"version\":3,\"cluster\":\"01234567-89AB-CDEF-0123-456789abcdef\"}",

        HEAD "\"shards\":{" SHARD7 "," SHARD0 "},\"slots\":[[\"4095\",7,0],"
        "[\"0\",0],[\"1024-4094\",7,0],[\"1-1\",0],[\"2-1023\",0]]}"
    };

    static const char *const  others[] = {
        HEAD SHARDS ",\"slots\":[[\"0-1022\",0],[\"1023-4095\",7,0]]}",
        HEAD SHARDS ",\"slots\":[[\"0-1023\",0],[\"1024-4095\",0,7]]}",
        HEAD "\"shards\":{" SHARD7 ",\"0\":{\"uuid\":\"" B "\",\"nodes\":"
        "[\"us_0b\",\"us_0a\"]}}," SLOTS "}",
    };

    map = map_of(MAP);

    for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        other = map_of(same[i]);
        same_text(other->text, CANONICAL);
        assert_memory_equal(other->digest, map->digest, 16);
        us_map_free(other);
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        other = map_of(others[i]);
        assert_memory_not_equal(other->digest, map->digest, 16);
        us_map_free(other);
    }

    us_map_free(map);
}


static void
test_refused(void **state)
{
    char      err[512];
    size_t    i;

    static const struct {
        const char  *text;
        const char  *err;
    } bad[] = {
        { "", "the text ends too early" },
        { "[]", "line 1: a map is an object" },
        { "{}", "line 1: the map has no \"cluster\"" },
        { "{\"\":1", "line 1: unknown member \"\"; a map has cluster, version, "
          "norm, key, shards and slots" },
        { "{\n\"a\": 1", "line 2: unknown member \"a\"; a map has cluster, "
          "version, norm, key, shards and slots" },
        { "{\n\n,}", "line 3: a key was expected" },
        { MAP " 1", "line 1: something follows the value" },
        { HEAD "\"key\":\"url\"", "line 1: \"key\" is there twice" },
        { HEAD SHARDS "\n}", "line 2: the map has no \"slots\"" },

        { "{\"cluster\":\"" A "0\"", "line 1: \"cluster\" is \"" A "0\", but "
          "must be a string of 32 hex digits" },
        { "{\"cluster\":\"g123456789abcdef0123456789abcdef\"",
          "line 1: \"cluster\" is \"g123456789abcdef0123456789abcdef\", but "
          "must be a string of 32 hex digits" },
        { "{\"cluster\":\"01234567-89ab-cdef-01234-56789abcdef\"", NULL },
        { "{\"cluster\":null", "line 1: \"cluster\" is null, but must be a "
          "string of 32 hex digits" },
        { "{\"cluster\":{", "line 1: \"cluster\" is an object, but must be a "
          "string of 32 hex digits" },

        { "{\"version\":0,", "line 1: \"version\" is 0, but must be a number "
          "from 1 to 9007199254740991" },
        { "{\"version\":9007199254740992,", NULL },
        { "{\"version\":99999999999999999999999999,", NULL },
        { "{\"version\":1.0,", NULL },
        { "{\"version\":-1,", NULL },
        { "{\"version\":\"1\",", NULL },

        { "{\"norm\":\"\"", NULL },
        { "{\"norm\":\"a\\\"b\"", "line 1: \"norm\" is \"a\\\"b\", but must "
          "be the \"normalization\" that GET /stats reports: visible ASCII "
          "without quotes, at most 127 bytes" },
        { "{\"norm\":\"a\\\\b\"", NULL },
        { "{\"norm\":\"a\\u00e9\"", NULL },
        { "{\"key\":\"host\"", "line 1: \"key\" is \"host\", but must be "
          "\"url\" or \"site\"" },
        { "{\"key\":\"0123456789012345678901234567890123456789012345678901234"
          "56789\"", "line 1: \"key\" is \"01234567890123456789012345678901234"
          "5678901234567\"..., but must be \"url\" or \"site\"" },

        { HEAD "\"shards\":[", "line 1: \"shards\" is an array, but "
          "must be an object" },
        { HEAD "\"shards\":{}," SLOTS "}", "the map has no shard" },
        { HEAD "\"shards\":{\"00\":", "line 1: \"00\" is no number of a "
          "shard: 0 to 4095" },
        { HEAD "\"shards\":{\"4096\":", NULL },
        { HEAD "\"shards\":{\"\":", NULL },
        { HEAD "\"shards\":{\"0\":[", "line 1: shard 0 must be an object" },
        { HEAD "\"shards\":{\"0\":{}", "line 1: shard 0 has no \"uuid\"" },
        { HEAD "\"shards\":{\"0\":{\"uuid\":\"" B "\"}",
          "line 1: shard 0 has no \"nodes\"" },
        { HEAD "\"shards\":{\"0\":{\"uuid\":1", "line 1: \"uuid\" of shard 0 "
          "is 1, but must be a string of 32 hex digits" },
        { HEAD "\"shards\":{\"0\":{\"uuid\":\"" B "\",\"uuid\":",
          "line 1: \"uuid\" of shard 0 is there twice" },
        { HEAD "\"shards\":{\"0\":{\"host\":", "line 1: unknown member "
          "\"host\" of shard 0; a shard has uuid and nodes" },
        { HEAD "\"shards\":{\"0\":{\"nodes\":1", "line 1: \"nodes\" of shard "
          "0 is 1, but must be an array" },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[]", "line 1: shard 0 has no "
          "node" },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"\"", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[1", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[[", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"Us\"", "line 1: \"Us\" is no "
          "name of a node: a string of 1 to 63 characters a-z, 0-9, \"_\", "
          "\"-\" and \".\", the first a letter" },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"1a\"", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"a:80\"", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"a$b\"", NULL },
        { HEAD "\"shards\":{\"0\":{\"nodes\":[\"a\",\"b\",\"c\",\"d\",\"e\","
          "\"f\",\"g\",\"h\",\"i\"", "line 1: shard 0 has more than 8 nodes" },
        { HEAD "\"shards\":{" SHARD0 "," SHARD7 "," SHARD0 "}," SLOTS "}",
          "shard 0 is there twice" },
        { HEAD "\"shards\":{" SHARD0 ",\"7\":{\"uuid\":\"" B "\",\"nodes\":["
          "\"us_7\"]}}," SLOTS "}", "shards 0 and 7 have one uuid; each has a "
          "store of its own" },
        { HEAD "\"shards\":{" SHARD0 ",\"7\":{\"uuid\":\"" C "\",\"nodes\":["
          "\"us_0a\"]}}," SLOTS "}", "node \"us_0a\" is there twice" },

        { HEAD "\"slots\":{", "line 1: \"slots\" is an object, but must "
          "be an array" },
        { HEAD "\"slots\":[1", "line 1: an element of \"slots\" must be an "
          "array, such as [\"0-1023\", 0]" },
        { HEAD "\"slots\":[[]", "line 1: nothing is no slot and no range of "
          "slots: a string such as \"17\" or \"0-4095\"" },
        { HEAD "\"slots\":[[\"0-1\"]", "line 1: a range of slots has no "
          "owner; an element is such as [\"0-1023\", 0]" },
        { HEAD "\"slots\":[[0", "line 1: 0 is no slot and no range of slots: "
          "a string such as \"17\" or \"0-4095\"" },
        { HEAD "\"slots\":[[\"\"", NULL },
        { HEAD "\"slots\":[[\"-1\"", NULL },
        { HEAD "\"slots\":[[\"1-\"", NULL },
        { HEAD "\"slots\":[[\"2-1\"", NULL },
        { HEAD "\"slots\":[[\"0-4096\"", NULL },
        { HEAD "\"slots\":[[\"0-1-2\"", NULL },
        { HEAD "\"slots\":[[\"0\",\"0\"", NULL },
        { HEAD "\"slots\":[[\"0\",[", NULL },
        { HEAD "\"slots\":[[\"0\",4096", "line 1: 4096 is no number of a "
          "shard: 0 to 4095" },
        { HEAD "\"slots\":[[\"0\",1,1", "line 1: slot 0 has shard 1 twice" },
        { HEAD "\"slots\":[[\"0\",1,2,3,2", "line 1: slot 0 has shard 2 "
          "twice" },
        { HEAD "\"slots\":[[\"9\",0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
          "line 1: slot 9 has more than 16 former owners" },
        { HEAD "\"slots\":[[\"0-9\",0],[\"9\",1]",
          "line 1: slot 9 is there twice" },
        { HEAD SHARDS ",\"slots\":[[\"0-4094\",0]]}",
          "slot 4095 has no owner" },
        { HEAD SHARDS ",\"slots\":[]}", "slot 0 has no owner" },
        { HEAD SHARDS ",\"slots\":[[\"0-4095\",1]]}",
          "slot 0 has shard 1, which \"shards\" lacks" },
        { HEAD SHARDS ",\"slots\":[[\"0-4095\",0,3]]}",
          "slot 0 has shard 3, which \"shards\" lacks" }
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (us_map_read(str(bad[i].text), err, sizeof(err)) != NULL) {
            fail_msg("accepted: %s", bad[i].text);
        }

        if (bad[i].err) {
            assert_string_equal(err, bad[i].err);
        }

        assert_true(err[0] != '\0');
    }
}


/* however early a map ends, it is none; the message fits into any room */

static void
test_cut(void **state)
{
    char      err[64], *copy;
    size_t    n;
    us_str_t  text;

    for (n = 0; n < sizeof(MAP) - 1; n++) {

        /* memory of its own: a byte read past the end is seen */

        copy = malloc(n + 1);
        assert_non_null(copy);
        memcpy(copy, MAP, n);
        copy = realloc(copy, n ? n : 1);
        text = (us_str_t) { n, (uint8_t *) copy };

        memset(err, 'x', sizeof(err));
        assert_null(us_map_read(text, err, 1 + n % sizeof(err)));
        assert_non_null(memchr(err, '\0', 1 + n % sizeof(err)));
        free(copy);
    }
}


/* the largest maps, as small as they can be written */

static char *
largest(unsigned nodes, unsigned former)
{
    char      *text, *p;
    unsigned   i, n;

    text = malloc(4 * US_MAP_TEXT_MAX);
    assert_non_null(text);
    p = text + sprintf(text, "%s\"shards\":{", HEAD);

    for (i = 0; i < US_SHARDS; i++) {
        p += sprintf(p, "%s\"%u\":{\"uuid\":\"%032x\",\"nodes\":[",
                     i ? "," : "", i, i);

        for (n = 0; n < nodes; n++) {
            p += sprintf(p, "%s\"n%u\"", n ? "," : "", i * nodes + n);
        }

        p += sprintf(p, "]}");
    }

    p += sprintf(p, "},\"slots\":[");

    for (i = 0; i < US_SLOTS; i++) {
        p += sprintf(p, "%s[\"%u\",%u", i ? "," : "", i, i % US_SHARDS);

        for (n = 0; n < former; n++) {
            p += sprintf(p, ",%u", (i + n + 1) % US_SHARDS);
        }

        p += sprintf(p, "]");
    }

    (void) strcpy(p, "]}");

    return text;
}


static void
test_largest(void **state)
{
    char       err[256], *text;
    us_map_t  *map, *again;

    text = largest(2, 16);
    map = map_of(text);
    assert_int_equal(map->nshards, US_SHARDS);
    assert_int_equal(map->slots[7].shards[16], 23);
    again = us_map_read(map->text, err, sizeof(err));
    assert_non_null(again);
    assert_memory_equal(map->digest, again->digest, 16);
    us_map_free(again);
    us_map_free(map);
    free(text);

    /* less than 1 MiB without blanks, and more in its canonical form */

    text = largest(8, 16);
    assert_true(strlen(text) < US_MAP_TEXT_MAX);
    assert_null(us_map_read(str(text), err, sizeof(err)));
    assert_non_null(strstr(err, "the map in its canonical form has"));
    free(text);

    text = calloc(1, US_MAP_TEXT_MAX + 2);
    assert_non_null(text);
    memset(text, ' ', US_MAP_TEXT_MAX + 1);
    assert_null(us_map_read(str(text), err, sizeof(err)));
    assert_string_equal(err, "the map has 1048577 bytes, at most 1048576 are "
                        "allowed");
    free(text);
}


static void
test_follows(void **state)
{
    char       err[512];
    size_t     i;
    us_map_t  *old, *next;

#define NEXT     "{\"cluster\":\"" A "\",\"version\":5,"                    \
                 "\"norm\":\"crawler/1\",\"key\":\"url\","
#define SHARD2   "\"2\":{\"uuid\":\"" A "\",\"nodes\":[\"us_2\"]}"

    static const struct {
        const char  *text;
        const char  *err;             /* NULL: it may */
    } cases[] = {
        { MAP, NULL },
        { NEXT SHARDS "," SLOTS "}", NULL },
        { NEXT "\"shards\":{" SHARD0 "," SHARD7 "," SHARD2 "},\"slots\":["
          "[\"0-1023\",2,0],[\"1024-2047\",2,7,0],[\"2048-4095\",0,7]]}",
          NULL },

        /* more former owners than there were: a version was skipped */
        { NEXT SHARDS ",\"slots\":[[\"0-4095\",0,7]]}", NULL },

        { HEAD SHARDS ",\"slots\":[[\"0-4095\",0,7]]}", "the map has version "
          "3, as the one that is there, and another content" },
        { "{\"cluster\":\"" A "\",\"version\":2,\"norm\":\"crawler/1\","
          "\"key\":\"url\"," SHARDS "," SLOTS "}", "the map has version 2, "
          "lower than the 3 that is there" },
        { "{\"cluster\":\"" B "\",\"version\":5,\"norm\":\"crawler/1\","
          "\"key\":\"url\"," SHARDS "," SLOTS "}",
          "the map is one of another cluster" },
        { "{\"cluster\":\"" A "\",\"version\":5,\"norm\":\"crawler/2\","
          "\"key\":\"url\"," SHARDS "," SLOTS "}", "\"norm\" is "
          "\"crawler/2\", and was \"crawler/1\"; it cannot change" },
        { "{\"cluster\":\"" A "\",\"version\":5,\"norm\":\"crawler/1\","
          "\"key\":\"site\"," SHARDS "," SLOTS "}", "\"key\" is \"site\", and "
          "was \"url\"; it cannot change" },
        { NEXT "\"shards\":{" SHARD0 "},\"slots\":[[\"0-4095\",0]]}",
          "shard 7 is missing; a shard stays in the map for ever" },
        { NEXT "\"shards\":{" SHARD0 ",\"7\":{\"uuid\":\"" A "\",\"nodes\":["
          "\"us_7\"]}}," SLOTS "}", "shard 7 has another uuid; the number of "
          "a shard is never used for another store" },
        { NEXT SHARDS ",\"slots\":[[\"0-4095\",0]]}", "slot 1024 has lost "
          "shard 7; an owner of a slot stays one of its former owners for "
          "ever" },
        { NEXT SHARDS ",\"slots\":[[\"0-1023\",7],[\"1024-4095\",7,0]]}",
          "slot 0 has lost shard 0; an owner of a slot stays one of its "
          "former owners for ever" },
        { NEXT SHARDS ",\"slots\":[[\"0-1023\",0],[\"1024-4095\",7]]}",
          "slot 1024 has lost shard 0; an owner of a slot stays one of its "
          "former owners for ever" }
    };

    old = map_of(MAP);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        next = map_of(cases[i].text);
        err[0] = '\0';
        assert_int_equal(us_map_follows(old, next, err, sizeof(err)),
                         cases[i].err ? -1 : 0);
        assert_string_equal(err, cases[i].err ? cases[i].err : "");
        us_map_free(next);
    }

    us_map_free(old);
}


static void
key(const char *url, const char *site, const char *all)
{
    same_text(us_slot_key(US_KEY_SITE, str(url)), site);
    same_text(us_slot_key(US_KEY_URL, str(url)), all);
}


static void
test_slots(void **state)
{
    us_map_t  *map;

    key("http://example.com/", "example.com", "example.com/");
    key("https://www.example.com/a?b#c", "example.com", "example.com/a?b#c");
    key("http://www.example.com:8080/www.", "example.com:8080",
        "example.com:8080/www.");
    key("http://www.www.example.com/", "www.example.com",
        "www.example.com/");
    key("http://me:pw@www.example.com/@", "example.com", "example.com/@");
    key("http://me@b.c@www.example.com/", "example.com", "example.com/");
    key("http://example.com/me@www.a", "example.com",
        "example.com/me@www.a");
    key("http://example.com?me@www.a", "example.com",
        "example.com?me@www.a");
    key("http://[::1]:80/", "[::1]:80", "[::1]:80/");
    key("http://www.com/", "com", "com/");
    key("http://wwww.example.com/", "wwww.example.com",
        "wwww.example.com/");
    key("http://http://a/", "http:", "http://a/");

    /* whatever it is, nothing is read past its end */

    key("http://www.", "", "");
    key("http://", "", "");
    key("http:/", "http:", "http:/");
    key("", "", "");
    same_text(us_slot_key(US_KEY_URL, (us_str_t) { 0, NULL }), "");

    /* printf %s KEY | gzip -c | tail -c8 | od -An -N4 -tx4: cbf43926 */

    assert_int_equal(us_slot(str("123456789")), 0xcbf);
    assert_int_equal(us_slot(str("")), 0);
    assert_int_equal(us_slot((us_str_t) { 0, NULL }), 0);
    assert_int_equal(us_slot_of(US_KEY_SITE, str("https://www.123456789/x")),
                     0xcbf);

    map = map_of(MAP);
    assert_int_equal(us_map_owners(map, str("http://123456789"))->shards[0], 1);
    us_map_free(map);

    assert_true(us_cluster_id(7, 5) == 7 * ((uint64_t) 1 << 40) + 5);
    assert_true(us_cluster_id(0, US_LOCAL_MAX) < us_cluster_id(1, 0));
    assert_true(us_cluster_id(US_SHARDS - 1, US_LOCAL_MAX)
                == ((uint64_t) 1 << 52) - 1);
}


static void
test_tag(void **state)
{
    char           text[US_MAP_TAG_LEN + 2];
    size_t         i, n;
    us_map_t      *map;
    us_map_tag_t   tag, again;

    static const char *const  bad[] = {
        "", " ", A, A " 1 1", A " 1 1 ", A " 1 1 " B " ", " " A " 1 1 " B,
        A "  1 1 " B, A " 01 1 " B, A " 4096 1 " B, A " -1 1 " B,
        A " 1 9007199254740992 " B, A " 1 1 " B "0", A " 1 1 " B " 1",
        "01234567-89ab-cdef-0123-456789abcdef 1 1 " B,
        "0123456789ABCDEF0123456789ABCDEF 1 1 " B
    };

    map = map_of(MAP);
    tag = us_map_tag(map, 7);
    n = us_map_tag_put((uint8_t *) text, &tag) - (uint8_t *) text;
    assert_memory_equal(text, A " 7 3 ", 37);
    assert_int_equal(us_map_tag_parse(&again, (us_str_t) { n,
                                      (uint8_t *) text }), 0);
    assert_memory_equal(again.cluster, map->cluster, 16);
    assert_memory_equal(again.digest, map->digest, 16);
    assert_int_equal(again.shard, 7);
    assert_int_equal(again.version, 3);

    for (i = 0; i < n; i++) {
        assert_int_equal(us_map_tag_parse(&again, (us_str_t) { i,
                                          (uint8_t *) text }), -1);
    }

    tag.version = US_MAP_VERSION_MAX;
    tag.shard = US_SHARDS - 1;
    assert_int_equal(us_map_tag_put((uint8_t *) text, &tag)
                     - (uint8_t *) text, US_MAP_TAG_LEN);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (us_map_tag_parse(&again, str(bad[i])) != -1) {
            fail_msg("accepted: %s", bad[i]);
        }
    }

    us_map_free(map);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_tag)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
