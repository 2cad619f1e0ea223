
/*
 * The reader of maps, on texts that nobody wrote.  An input is one map, or two
 * that a zero divides:
 *
 *   refused    no map comes without a message
 *   sound      each slot has an owner and former owners that are there, none
 *              twice; shards are in order, their nodes have names
 *   canonical  the text of a map is a map of the same text and digest
 *   follows    a map follows another only if its version is higher and no
 *              shard, uuid or owner of a slot was dropped; written down here
 *              once more
 *   tag        what is parsed as a tag is written as it was read
 *   slot       each text has a key within it and a slot
 */


#include "cluster/us_map.h"

#include <stdio.h>
#include <stdlib.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
law(int holds, const char *name)
{
    if (!holds) {
        fprintf(stderr, "%s\n", name);
        abort();
    }
}


static int
same(us_str_t a, us_str_t b)
{
    return us_str_compare(a, b) == 0;
}


static unsigned
owner(const us_map_t *map, unsigned slot, unsigned i)
{
    const us_owners_t  *o;

    o = &map->slots[slot];

    return map->shards[o->shards[i]].number;
}


static void
sound(const us_map_t *map)
{
    unsigned            i, j, slot;
    const us_owners_t  *o;

    law(map->version > 0 && map->nshards > 0 && map->norm.len > 0, "sound");

    for (i = 0; i < map->nshards; i++) {
        law(us_map_shard(map, map->shards[i].number) == (int) i, "shard");
        law(i == 0 || map->shards[i - 1].number < map->shards[i].number,
            "order");
        law(map->shards[i].nnodes > 0, "nodes");

        for (j = 0; j < map->shards[i].nnodes; j++) {
            law(map->shards[i].nodes[j].len > 0, "name");
            law(us_map_node(map, map->shards[i].nodes[j]) == (int) i, "node");
        }
    }

    for (slot = 0; slot < US_SLOTS; slot++) {
        o = &map->slots[slot];
        law(o->n >= 1 && o->n <= 1 + US_MAP_FORMER, "owners");

        for (i = 0; i < o->n; i++) {
            law(o->shards[i] < map->nshards, "owner");

            for (j = 0; j < i; j++) {
                law(o->shards[i] != o->shards[j], "twice");
            }
        }
    }
}


static us_map_t *
read_map(us_str_t text)
{
    char       err[256];
    us_map_t  *map, *again;

    memset(err, 'x', sizeof(err));
    map = us_map_read(text, err, sizeof(err));

    if (map == NULL) {
        law(err[0] != '\0' && memchr(err, '\0', sizeof(err)) != NULL,
            "refused");
        return NULL;
    }

    sound(map);
    again = us_map_read(map->text, err, sizeof(err));
    law(again != NULL && same(map->text, again->text)
        && memcmp(map->digest, again->digest, 16) == 0, "canonical");
    us_map_free(again);

    return map;
}


static int
has(const us_map_t *map, unsigned slot, unsigned number)
{
    unsigned  i;

    for (i = 0; i < map->slots[slot].n; i++) {
        if (owner(map, slot, i) == number) {
            return 1;
        }
    }

    return 0;
}


static int
may_follow(const us_map_t *old, const us_map_t *next)
{
    int       to;
    unsigned  i, slot;

    if (same(old->text, next->text)) {
        return 1;
    }

    if (memcmp(old->cluster, next->cluster, 16) != 0
        || next->version <= old->version || old->key != next->key
        || !same(old->norm, next->norm))
    {
        return 0;
    }

    for (i = 0; i < old->nshards; i++) {
        to = us_map_shard(next, old->shards[i].number);

        if (to == -1
            || memcmp(old->shards[i].uuid, next->shards[to].uuid, 16) != 0)
        {
            return 0;
        }
    }

    for (slot = 0; slot < US_SLOTS; slot++) {
        for (i = 0; i < old->slots[slot].n; i++) {
            if (!has(next, slot, owner(old, slot, i))) {
                return 0;
            }
        }
    }

    return 1;
}


static void
follows(const us_map_t *old, const us_map_t *next)
{
    int   rc;
    char  err[512];

    err[0] = '\0';
    rc = us_map_follows(old, next, err, sizeof(err));

    law(rc == (may_follow(old, next) ? 0 : -1), "follows");
    law((rc == -1) == (err[0] != '\0'), "follows: message");
}


static void
tag(us_str_t text)
{
    uint8_t       again[US_MAP_TAG_LEN];
    us_map_tag_t  t;

    if (us_map_tag_parse(&t, text) == 0) {
        law(same(text, (us_str_t) { us_map_tag_put(again, &t) - again,
                                    again }), "tag");
    }
}


static void
slot(us_str_t url)
{
    us_str_t  all, site;

    all = us_slot_key(US_KEY_URL, url);
    site = us_slot_key(US_KEY_SITE, url);

    law(all.data >= url.data && all.data + all.len == url.data + url.len,
        "key");
    law(site.data == all.data || site.len == 0 || all.data > site.data, "site");
    law(site.data >= url.data && site.data + site.len <= url.data + url.len,
        "site: within");
    law(us_slot(all) < US_SLOTS && us_slot(site) < US_SLOTS, "slot");
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    us_map_t       *a, *b;
    us_str_t        text;
    const uint8_t  *end;

    end = memchr(data, '\0', size);
    text = (us_str_t) { end ? (size_t) (end - data) : size, data };

    tag(text);
    slot(text);

    a = read_map(text);

    if (a) {
        follows(a, a);
    }

    if (a && end) {
        text = (us_str_t) { data + size - end - 1, end + 1 };
        b = read_map(text);

        if (b) {
            follows(a, b);
            follows(b, a);
        }

        us_map_free(b);
    }

    us_map_free(a);

    return 0;
}
