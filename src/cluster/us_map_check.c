
/*
 * What only the whole map shows: no shard, store or node is there twice, and
 * each slot has owners that are there.
 */


#include "us_map_private.h"

#include <stdlib.h>


static int us_map_by_number(const void *a, const void *b);
static int us_map_by_uuid(const void *a, const void *b);
static int us_map_by_name(const void *a, const void *b);
static int us_map_check_uuids(const us_map_t *map, char *err, size_t errlen);
static int us_map_check_nodes(const us_map_t *map, char *err, size_t errlen);
static int us_map_check_slots(us_map_t *map, char *err, size_t errlen);
static int us_map_index(const us_map_t *map, unsigned slot, uint16_t *owner,
    char *err, size_t errlen);


int
us_map_check(us_map_t *map, char *err, size_t errlen)
{
    if (map->nshards == 0) {
        return us_map_refuse(err, errlen, "the map has no shard");
    }

    if (us_map_sort(map, err, errlen) == -1
        || us_map_check_uuids(map, err, errlen) == -1
        || us_map_check_nodes(map, err, errlen) == -1)
    {
        return -1;
    }

    return us_map_check_slots(map, err, errlen);
}


int
us_map_sort(us_map_t *map, char *err, size_t errlen)
{
    uint32_t  i;

    qsort(map->shards, map->nshards, sizeof(us_shard_t), us_map_by_number);

    for (i = 1; i < map->nshards; i++) {
        if (map->shards[i].number == map->shards[i - 1].number) {
            return us_map_refuse(err, errlen, "shard %u is there twice",
                                 map->shards[i].number);
        }
    }

    return 0;
}


static int
us_map_by_number(const void *a, const void *b)
{
    const us_shard_t *x = a;
    const us_shard_t *y = b;

    return (x->number > y->number) - (x->number < y->number);
}


static int
us_map_by_uuid(const void *a, const void *b)
{
    const us_shard_t *const *x = a;
    const us_shard_t *const *y = b;

    return memcmp((*x)->uuid, (*y)->uuid, 16);
}


static int
us_map_by_name(const void *a, const void *b)
{
    return us_str_compare(*(const us_str_t *) a, *(const us_str_t *) b);
}


static int
us_map_check_uuids(const us_map_t *map, char *err, size_t errlen)
{
    int                 rc;
    uint32_t            i;
    const us_shard_t  **order;

    order = malloc(map->nshards * sizeof(us_shard_t *));

    if (order == NULL) {
        return us_map_refuse(err, errlen, "out of memory");
    }

    for (i = 0; i < map->nshards; i++) {
        order[i] = &map->shards[i];
    }

    qsort(order, map->nshards, sizeof(us_shard_t *), us_map_by_uuid);

    for (rc = 0, i = 1; i < map->nshards && rc == 0; i++) {
        if (memcmp(order[i]->uuid, order[i - 1]->uuid, 16) == 0) {
            rc = us_map_refuse(err, errlen, "shards %u and %u have one uuid; "
                               "each has a store of its own",
                               order[i - 1]->number, order[i]->number);
        }
    }

    free(order);

    return rc;
}


static int
us_map_check_nodes(const us_map_t *map, char *err, size_t errlen)
{
    int        rc;
    size_t     i, n;
    us_str_t  *names;

    names = malloc(map->nshards * US_MAP_NODES * sizeof(us_str_t));

    if (names == NULL) {
        return us_map_refuse(err, errlen, "out of memory");
    }

    for (i = 0, n = 0; i < map->nshards; i++) {
        memcpy(&names[n], map->shards[i].nodes,
               map->shards[i].nnodes * sizeof(us_str_t));
        n += map->shards[i].nnodes;
    }

    qsort(names, n, sizeof(us_str_t), us_map_by_name);

    for (rc = 0, i = 1; i < n && rc == 0; i++) {
        if (us_str_compare(names[i], names[i - 1]) == 0) {
            rc = us_map_refuse(err, errlen, "node \"%.*s\" is there twice",
                               (int) names[i].len, names[i].data);
        }
    }

    free(names);

    return rc;
}


/* numbers of shards become indexes */

static int
us_map_check_slots(us_map_t *map, char *err, size_t errlen)
{
    unsigned      slot, n;
    us_owners_t  *o;

    for (slot = 0; slot < US_SLOTS; slot++) {
        o = &map->slots[slot];

        if (o->owner == US_MAP_NOBODY) {
            return us_map_refuse(err, errlen, "slot %u has no owner", slot);
        }

        if (us_map_index(map, slot, &o->owner, err, errlen) == -1) {
            return -1;
        }

        for (n = 0; n < o->nformer; n++) {
            if (us_map_index(map, slot, &o->former[n], err, errlen) == -1) {
                return -1;
            }
        }
    }

    return 0;
}


static int
us_map_index(const us_map_t *map, unsigned slot, uint16_t *owner, char *err,
    size_t errlen)
{
    int  i;

    i = us_map_shard(map, *owner);

    if (i == -1) {
        return us_map_refuse(err, errlen, "slot %u has shard %u, which "
                             "\"shards\" lacks", slot, (unsigned) *owner);
    }

    *owner = (uint16_t) i;

    return 0;
}
