
/*
 * The life of a map, look-ups in it, and which map may follow which.
 */


#include "us_map_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


static int us_map_shards_follow(const us_map_t *old, const us_map_t *next,
    char *err, size_t errlen);
static int us_map_slots_follow(const us_map_t *old, const us_map_t *next,
    char *err, size_t errlen);


void
us_map_free(us_map_t *map)
{
    if (map == NULL) {
        return;
    }

    free((void *) map->text.data);
    free(map->names);
    free(map->shards);
    free(map);
}


int
us_map_shard(const us_map_t *map, uint64_t number)
{
    uint32_t  low, high, mid;

    low = 0;
    high = map->nshards;

    while (low < high) {
        mid = (low + high) / 2;

        if (map->shards[mid].number < number) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low < map->nshards && map->shards[low].number == number
           ? (int) low : -1;
}


int
us_map_node(const us_map_t *map, us_str_t node)
{
    uint32_t  i, n;

    for (i = 0; i < map->nshards; i++) {
        for (n = 0; n < map->shards[i].nnodes; n++) {
            if (us_str_compare(map->shards[i].nodes[n], node) == 0) {
                return (int) i;
            }
        }
    }

    return -1;
}


int
us_map_follows(const us_map_t *old, const us_map_t *next, char *err,
    size_t errlen)
{
    if (memcmp(old->cluster, next->cluster, 16) != 0) {
        return us_map_refuse(err, errlen, "the map is one of another cluster");
    }

    if (next->version < old->version) {
        return us_map_refuse(err, errlen, "the map has version %" PRIu64
                             ", lower than the %" PRIu64 " that is there",
                             next->version, old->version);
    }

    if (next->version == old->version) {
        return memcmp(old->digest, next->digest, 16) == 0 ? 0
               : us_map_refuse(err, errlen, "the map has version %" PRIu64
                               ", as the one that is there, and another "
                               "content", next->version);
    }

    if (next->key != old->key) {
        return us_map_refuse(err, errlen, "\"key\" is \"%s\", and was \"%s\"; "
                             "it cannot change",
                             next->key == US_KEY_URL ? "url" : "site",
                             old->key == US_KEY_URL ? "url" : "site");
    }

    if (us_str_compare(old->norm, next->norm) != 0) {
        return us_map_refuse(err, errlen, "\"norm\" is \"%.*s\", and was "
                             "\"%.*s\"; it cannot change",
                             (int) next->norm.len, next->norm.data,
                             (int) old->norm.len, old->norm.data);
    }

    if (us_map_shards_follow(old, next, err, errlen) == -1) {
        return -1;
    }

    return us_map_slots_follow(old, next, err, errlen);
}


int
us_map_refuse(char *err, size_t errlen, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(err, errlen, fmt, args);
    va_end(args);

    return -1;
}


static int
us_map_shards_follow(const us_map_t *old, const us_map_t *next, char *err,
    size_t errlen)
{
    int                i;
    uint32_t           n;
    const us_shard_t  *was;

    for (n = 0; n < old->nshards; n++) {
        was = &old->shards[n];
        i = us_map_shard(next, was->number);

        if (i == -1) {
            return us_map_refuse(err, errlen, "shard %u is missing; a shard "
                                 "stays in the map for ever", was->number);
        }

        if (memcmp(was->uuid, next->shards[i].uuid, 16) != 0) {
            return us_map_refuse(err, errlen, "shard %u has another uuid; the "
                                 "number of a shard is never used for another "
                                 "store", was->number);
        }
    }

    return 0;
}


/*
 * An owner stays one of the slot's owners or former owners: it can have URLs
 * of the slot, and has to be asked.
 */

static int
us_map_slots_follow(const us_map_t *old, const us_map_t *next, char *err,
    size_t errlen)
{
    uint32_t            number;
    unsigned            slot, n;
    const us_owners_t  *was;

    for (slot = 0; slot < US_SLOTS; slot++) {
        was = &old->slots[slot];

        for (n = 0; n <= was->nformer; n++) {
            number = old->shards[n ? was->former[n - 1] : was->owner].number;

            if (!us_map_has_owner(next, slot, number)) {
                return us_map_refuse(err, errlen, "slot %u has lost shard %u; "
                                     "an owner of a slot stays one of its "
                                     "former owners for ever", slot, number);
            }
        }
    }

    return 0;
}


int
us_map_has_owner(const us_map_t *map, unsigned slot, uint32_t number)
{
    unsigned            n;
    const us_owners_t  *o;

    o = &map->slots[slot];

    if (map->shards[o->owner].number == number) {
        return 1;
    }

    for (n = 0; n < o->nformer; n++) {
        if (map->shards[o->former[n]].number == number) {
            return 1;
        }
    }

    return 0;
}
