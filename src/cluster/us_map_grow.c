
/*
 * See us_map_grow.h.
 *
 * A draft of the map is made and written; the map is what us_map_read() makes
 * of its text, so that it is checked as every other.
 */


#include "us_map_grow.h"

#include <inttypes.h>
#include <stdlib.h>


typedef struct {
    us_map_t          map;
    uint64_t          weight[US_SLOTS];
    uint64_t          total;
    uint64_t          load[US_SHARDS];    /* by index of the shard */
} us_draft_t;


int
us_shard_parse(us_shard_t *s, us_str_t text, char *err, size_t errlen)
{
    uint64_t        number;
    us_str_t        word;
    const uint8_t  *p, *end;

    memset(s, 0, sizeof(us_shard_t));
    end = text.data + text.len;
    p = memchr(text.data, '=', text.len);

    if (p == NULL
        || us_map_number((us_str_t) { p - text.data, text.data },
                         US_SHARDS - 1, &number) == -1)
    {
        goto failed;
    }

    s->number = (uint32_t) number;

    word.data = p + 1;
    p = memchr(word.data, ',', end - word.data);

    if (p == NULL) {
        goto failed;
    }

    word.len = p - word.data;

    if (us_map_uuid(word, s->uuid) == -1) {
        goto failed;
    }

    for ( /* void */ ; p; p = memchr(word.data, ',', end - word.data)) {
        word.data = p + 1;
        p = memchr(word.data, ',', end - word.data);
        word.len = (p ? p : end) - word.data;

        if (s->nnodes == US_MAP_NODES || !us_map_is_node(word)) {
            goto failed;
        }

        s->nodes[s->nnodes++] = word;
    }

    return 0;

failed:

    return us_map_refuse(err, errlen, "\"%.*s\" is no shard: NUMBER=UUID,NODE"
                         "[,NODE...], with a number from 0 to %d, 32 hex "
                         "digits, and 1 to %d names of nodes",
                         text.len < 80 ? (int) text.len : 80, text.data,
                         US_SHARDS - 1, US_MAP_NODES);
}


static void
us_draft_free(us_draft_t *d)
{
    free((void *) d->map.text.data);
    free(d->map.shards);
    free(d);
}


/* with the shards of both lists, in the order of their numbers */

static us_draft_t *
us_draft_create(const us_shard_t *old, uint32_t nold, const us_shard_t *shards,
    uint32_t n, const uint32_t *weight, char *err, size_t errlen)
{
    uint32_t     i;
    us_draft_t  *d;

    if (n == 0 || n > US_SHARDS - nold) {
        us_map_refuse(err, errlen, "%" PRIu64 " shards; a cluster has 1 to %d",
                      (uint64_t) nold + n, US_SHARDS);
        return NULL;
    }

    d = calloc(1, sizeof(us_draft_t));

    if (d) {
        d->map.shards = calloc(nold + n, sizeof(us_shard_t));
    }

    if (d == NULL || d->map.shards == NULL) {
        free(d);
        us_map_refuse(err, errlen, "out of memory");
        return NULL;
    }

    for (i = 0; i < US_SLOTS; i++) {
        d->weight[i] = weight ? weight[i] : 1;
        d->total += d->weight[i];
    }

    if (nold) {
        memcpy(d->map.shards, old, nold * sizeof(us_shard_t));
    }

    memcpy(d->map.shards + nold, shards, n * sizeof(us_shard_t));
    d->map.nshards = nold + n;

    if (us_map_sort(&d->map, err, errlen) == -1) {
        us_draft_free(d);
        return NULL;
    }

    return d;
}


static us_map_t *
us_draft_map(us_draft_t *d, char *err, size_t errlen)
{
    us_map_t  *map;

    map = NULL;

    if (us_map_write(&d->map) == -1) {
        us_map_refuse(err, errlen, "out of memory");

    } else {
        map = us_map_read(d->map.text, err, errlen);
    }

    us_draft_free(d);

    return map;
}


us_map_t *
us_map_first(const uint8_t cluster[16], us_str_t norm, us_key_t key,
    const us_shard_t *shards, uint32_t n, const uint32_t *weight, char *err,
    size_t errlen)
{
    uint32_t     i, left;
    uint64_t     load, rest;
    unsigned     slot;
    us_draft_t  *d;

    d = us_draft_create(NULL, 0, shards, n, weight, err, errlen);

    if (d == NULL) {
        return NULL;
    }

    memcpy(d->map.cluster, cluster, 16);
    d->map.version = 1;
    d->map.norm = norm;
    d->map.key = key;

    /*
     * A range for each shard: slots up to its part of what is left, at least
     * one, and one for each shard after it.
     */

    rest = d->total;
    slot = 0;

    for (i = 0; i < d->map.nshards; i++) {
        left = d->map.nshards - i;
        load = 0;

        /* the slot that crosses the part is in, if most of it is */

        while (slot + left <= US_SLOTS
               && (load == 0 || left == 1
                   || (2 * load + d->weight[slot]) * left <= 2 * rest))
        {
            load += d->weight[slot];
            d->map.slots[slot++].owner = (uint16_t) i;
        }

        rest -= load;
    }

    return us_draft_map(d, err, errlen);
}


/* the old owners, by their indexes in the draft */

static void
us_draft_move(us_draft_t *d, const us_map_t *old)
{
    uint16_t      to[US_SHARDS];
    uint32_t      i;
    unsigned      slot, n;
    us_owners_t  *o;

    for (i = 0; i < old->nshards; i++) {
        to[i] = (uint16_t) us_map_shard(&d->map, old->shards[i].number);
    }

    for (slot = 0; slot < US_SLOTS; slot++) {
        o = &d->map.slots[slot];
        *o = old->slots[slot];
        o->owner = to[o->owner];

        for (n = 0; n < o->nformer; n++) {
            o->former[n] = to[o->former[n]];
        }

        d->load[o->owner] += d->weight[slot];
    }
}


/*
 * Of the slots that may move, and after which their owner has no less than
 * `to`, the last one with the fewest former owners; -1: there is none.
 */

static int
us_draft_choose(const us_draft_t *d, uint32_t owner, uint16_t to,
    uint64_t part)
{
    int                 slot, chosen;
    unsigned            least;
    const us_owners_t  *o;

    for (slot = US_SLOTS - 1, chosen = -1, least = US_MAP_FORMER;
         slot >= 0;
         slot--)
    {
        o = &d->map.slots[slot];

        if (o->owner == owner && o->nformer < least
            && 2 * d->load[to] + d->weight[slot] <= 2 * part
            && d->load[owner] >= d->load[to] + 2 * d->weight[slot])
        {
            least = o->nformer;
            chosen = slot;
        }
    }

    return chosen;
}


/* one slot, if the part of `to` has room for it; 0, or -1: none may move */

static int
us_draft_give(us_draft_t *d, uint16_t to, uint64_t part)
{
    int           slot, chosen;
    uint32_t      i;
    uint64_t      most;
    us_owners_t  *o;

    if (d->load[to] >= part) {
        return -1;
    }

    for (i = 0, most = 0, chosen = -1; i < d->map.nshards; i++) {

        if (i == to || d->load[i] <= most) {
            continue;
        }

        slot = us_draft_choose(d, i, to, part);

        if (slot != -1) {
            most = d->load[i];
            chosen = slot;
        }
    }

    if (chosen == -1) {
        return -1;
    }

    o = &d->map.slots[chosen];
    memmove(o->former + 1, o->former, o->nformer * sizeof(o->former[0]));
    o->former[0] = o->owner;
    o->nformer++;
    d->load[o->owner] -= d->weight[chosen];
    d->load[to] += d->weight[chosen];
    o->owner = to;

    return 0;
}


us_map_t *
us_map_grow(const us_map_t *map, const us_shard_t *shards, uint32_t n,
    const uint32_t *weight, char *err, size_t errlen)
{
    uint16_t     to;
    uint32_t     i, owners;
    uint64_t     part;
    us_draft_t  *d;

    d = us_draft_create(map->shards, map->nshards, shards, n, weight, err,
                        errlen);

    if (d == NULL) {
        return NULL;
    }

    memcpy(d->map.cluster, map->cluster, 16);
    d->map.version = map->version + 1;
    d->map.norm = map->norm;
    d->map.key = map->key;
    us_draft_move(d, map);

    /* a shard without slots was emptied by its operators, and stays so */

    for (i = 0, owners = n; i < d->map.nshards; i++) {
        owners += d->load[i] > 0;
    }

    part = d->total / owners;

    for (i = 0; i < n; i++) {
        to = (uint16_t) us_map_shard(&d->map, shards[i].number);

        while (us_draft_give(d, to, part) == 0) {
            /* void */
        }

        if (d->load[to] == 0) {
            us_draft_free(d);
            us_map_refuse(err, errlen, "no slot may move to shard %u: all "
                          "have %d former owners, or more than its part of "
                          "the URLs", shards[i].number, US_MAP_FORMER);
            return NULL;
        }
    }

    return us_draft_map(d, err, errlen);
}
