
/*
 * The canonical text of a map, and its digest.
 */


#include "us_map_private.h"
#include "../us_hash.h"
#include "../us_text.h"

#include <stdlib.h>


/* bytes of the longest lines, without norm and the nodes' names */

#define US_MAP_HEAD    256
#define US_MAP_SHARD   80
#define US_MAP_QUOTES  4                  /* of a node: "", */
#define US_MAP_SLOTS   (24 + 6 * (1 + US_MAP_FORMER))


static int us_map_same_owners(const us_owners_t *a, const us_owners_t *b);
static size_t us_map_room(const us_map_t *map);
static uint8_t *us_map_put_shard(uint8_t *p, const us_shard_t *s);
static uint8_t *us_map_put_slots(uint8_t *p, const us_map_t *map,
    unsigned first, unsigned last);
static void us_map_digest(us_map_t *map);


int
us_map_write(us_map_t *map)
{
    uint32_t   i;
    uint8_t   *text, *p;
    unsigned   first, last;

    text = malloc(us_map_room(map));

    if (text == NULL) {
        return -1;
    }

    p = us_put(text, "{\n  \"cluster\": \"");
    p = us_put_hex(p, map->cluster, 16);
    p = us_put(p, "\",\n  \"version\": ");
    p = us_put_u64(p, map->version);
    p = us_put(p, ",\n  \"norm\": \"");
    p = us_put_str(p, map->norm);
    p = us_put(p, "\",\n  \"key\": \"");
    p = us_put(p, map->key == US_KEY_URL ? "url" : "site");
    p = us_put(p, "\",\n  \"shards\": {\n");

    for (i = 0; i < map->nshards; i++) {
        p = us_map_put_shard(p, &map->shards[i]);
        p = us_put(p, i + 1 < map->nshards ? ",\n" : "\n");
    }

    p = us_put(p, "  },\n  \"slots\": [\n");

    for (first = 0; first < US_SLOTS; first = last + 1) {

        for (last = first; last + 1 < US_SLOTS; last++) {
            if (!us_map_same_owners(&map->slots[first], &map->slots[last + 1]))
            {
                break;
            }
        }

        p = us_map_put_slots(p, map, first, last);
        p = us_put(p, last + 1 < US_SLOTS ? ",\n" : "\n");
    }

    p = us_put(p, "  ]\n}\n");

    map->text.data = text;
    map->text.len = p - text;
    us_map_digest(map);

    return 0;
}


static size_t
us_map_room(const us_map_t *map)
{
    size_t    room;
    uint32_t  i, n;

    room = US_MAP_HEAD + map->norm.len + US_SLOTS * US_MAP_SLOTS;

    for (i = 0; i < map->nshards; i++) {
        room += US_MAP_SHARD;

        for (n = 0; n < map->shards[i].nnodes; n++) {
            room += map->shards[i].nodes[n].len + US_MAP_QUOTES;
        }
    }

    return room;
}


static uint8_t *
us_map_put_shard(uint8_t *p, const us_shard_t *s)
{
    uint32_t  n;

    p = us_put(p, "    \"");
    p = us_put_u64(p, s->number);
    p = us_put(p, "\": {\"uuid\": \"");
    p = us_put_hex(p, s->uuid, 16);
    p = us_put(p, "\", \"nodes\": [");

    for (n = 0; n < s->nnodes; n++) {
        p = us_put(p, n ? ", \"" : "\"");
        p = us_put_str(p, s->nodes[n]);
        *p++ = '"';
    }

    return us_put(p, "]}");
}


static uint8_t *
us_map_put_slots(uint8_t *p, const us_map_t *map, unsigned first,
    unsigned last)
{
    unsigned            n;
    const us_owners_t  *o;

    o = &map->slots[first];
    p = us_put(p, "    [\"");
    p = us_put_u64(p, first);

    if (last > first) {
        *p++ = '-';
        p = us_put_u64(p, last);
    }

    p = us_put(p, "\", ");
    p = us_put_u64(p, map->shards[o->owner].number);

    for (n = 0; n < o->nformer; n++) {
        p = us_put(p, ", ");
        p = us_put_u64(p, map->shards[o->former[n]].number);
    }

    *p++ = ']';

    return p;
}


/*
 * SipHash without a secret: it tells maps apart that people made, and protects
 * from no forger, who could post a map of a higher version as well.
 */

static void
us_map_digest(us_map_t *map)
{
    uint64_t              h[2];
    unsigned              i;
    us_hash128_t          hash;
    static const uint8_t  key[16];

    us_hash128_init(&hash, key);
    us_hash128_add(&hash, map->text.data, map->text.len);
    us_hash128_end(&hash, h);

    for (i = 0; i < 16; i++) {
        map->digest[i] = (uint8_t) (h[i / 8] >> (56 - i % 8 * 8));
    }
}


static int
us_map_same_owners(const us_owners_t *a, const us_owners_t *b)
{
    return a->owner == b->owner && a->nformer == b->nformer
           && memcmp(a->former, b->former, a->nformer * sizeof(a->former[0]))
              == 0;
}
