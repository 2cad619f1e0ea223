
/*
 * See us_map_grow.h.
 *
 * A draft of the map is made and written; the map is what us_map_read() makes
 * of its text, so that it is checked as every other.
 */


#include "us_map_grow.h"
#include "us_map_private.h"

#include <inttypes.h>
#include <stdlib.h>


typedef struct {
    us_map_t          map;
    uint32_t          owned[US_SHARDS];   /* slots, by index of the shard */
} us_draft_t;


static us_draft_t *us_draft_create(const us_shard_t *old, uint32_t nold,
    const us_shard_t *shards, uint32_t n, char *err, size_t errlen);
static us_map_t *us_draft_map(us_draft_t *d, char *err, size_t errlen);
static void us_draft_free(us_draft_t *d);
static void us_draft_move(us_draft_t *d, const us_map_t *old);
static int us_draft_give(us_draft_t *d, uint16_t to);
static int us_draft_choose(const us_draft_t *d, uint32_t owner);
static int us_draft_by_number(const void *a, const void *b);


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


us_map_t *
us_map_first(const uint8_t cluster[16], us_str_t norm, us_key_t key,
    const us_shard_t *shards, uint32_t n, char *err, size_t errlen)
{
    unsigned     slot;
    us_draft_t  *d;

    d = us_draft_create(NULL, 0, shards, n, err, errlen);

    if (d == NULL) {
        return NULL;
    }

    memcpy(d->map.cluster, cluster, 16);
    d->map.version = 1;
    d->map.norm = norm;
    d->map.key = key;

    for (slot = 0; slot < US_SLOTS; slot++) {
        d->map.slots[slot].owner = (uint16_t) (slot * n / US_SLOTS);
    }

    return us_draft_map(d, err, errlen);
}


us_map_t *
us_map_grow(const us_map_t *map, const us_shard_t *shards, uint32_t n,
    char *err, size_t errlen)
{
    uint32_t     i, part, owners;
    unsigned     left;
    us_draft_t  *d;

    d = us_draft_create(map->shards, map->nshards, shards, n, err, errlen);

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
        owners += d->owned[i] > 0;
    }

    part = US_SLOTS / owners;

    for (i = 0; i < n; i++) {
        for (left = part; left; left--) {
            if (us_draft_give(d, (uint16_t) us_map_shard(&d->map,
                                                         shards[i].number))
                == -1)
            {
                us_draft_free(d);
                us_map_refuse(err, errlen, "no slot may move to shard %u: all "
                              "have %d former owners", shards[i].number,
                              US_MAP_FORMER);
                return NULL;
            }
        }
    }

    return us_draft_map(d, err, errlen);
}


/* with the shards of both lists, in the order of their numbers */

static us_draft_t *
us_draft_create(const us_shard_t *old, uint32_t nold, const us_shard_t *shards,
    uint32_t n, char *err, size_t errlen)
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

    if (nold) {
        memcpy(d->map.shards, old, nold * sizeof(us_shard_t));
    }

    memcpy(d->map.shards + nold, shards, n * sizeof(us_shard_t));
    d->map.nshards = nold + n;
    qsort(d->map.shards, nold + n, sizeof(us_shard_t), us_draft_by_number);

    for (i = 1; i < nold + n; i++) {
        if (d->map.shards[i].number == d->map.shards[i - 1].number) {
            us_map_refuse(err, errlen, "shard %u is there twice",
                          d->map.shards[i].number);
            us_draft_free(d);
            return NULL;
        }
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


static void
us_draft_free(us_draft_t *d)
{
    free((void *) d->map.text.data);
    free(d->map.shards);
    free(d);
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

        d->owned[o->owner]++;
    }
}


/* one slot; 0, or -1: none may move */

static int
us_draft_give(us_draft_t *d, uint16_t to)
{
    int           slot, chosen;
    uint32_t      i, most;
    us_owners_t  *o;

    for (i = 0, most = 0, chosen = -1; i < d->map.nshards; i++) {

        if (i == to || d->owned[i] <= most) {
            continue;
        }

        slot = us_draft_choose(d, i);

        if (slot != -1) {
            most = d->owned[i];
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
    d->owned[o->owner]--;
    d->owned[to]++;
    o->owner = to;

    return 0;
}


/* of the slots with the fewest former owners the last; -1: all are full */

static int
us_draft_choose(const us_draft_t *d, uint32_t owner)
{
    int                 slot, chosen;
    unsigned            least;
    const us_owners_t  *o;

    for (slot = US_SLOTS - 1, chosen = -1, least = US_MAP_FORMER;
         slot >= 0;
         slot--)
    {
        o = &d->map.slots[slot];

        if (o->owner == owner && o->nformer < least) {
            least = o->nformer;
            chosen = slot;
        }
    }

    return chosen;
}


static int
us_draft_by_number(const void *a, const void *b)
{
    const us_shard_t *x = a;
    const us_shard_t *y = b;

    return (x->number > y->number) - (x->number < y->number);
}
