
/*
 * The map of a shard in its zone.  See us_shard.h.
 *
 * FORMAT.  The area of maps has two places of the same size, which depends on
 * the zone's size only.  Map number n is in place n % 2:
 *
 *     | us_store_map_t | text |          | us_store_map_t | text |
 *
 * Of us_store_map_t, number and lsn are not used there: head has them.
 *
 * A map is written to the place that is not in use, while no reader looks
 * there: readers copy the current one, under the lock.  head->map is the last
 * word of the commit, after the LSN.  So a kill leaves the map before, or the
 * new one as a whole.
 *
 * The first map takes all chunks of the area.  So a replay takes as many as the
 * live store, whatever maps the stream has.
 */


#include "us_store_private.h"
#include "us_shard.h"


/* head->map_stale */
#define US_MAP_STALE    1
#define US_MAP_ADOPTED  2             /* since the store was restored */


_Static_assert(US_MAP_ROOM_MAX >= US_MAP_TEXT_MAX + sizeof(us_store_map_t),
               "the longest map fits the largest place");


int
us_store_is_shard(const us_store_t *s, uint32_t *number)
{
    uint64_t  shard;

    shard = us_acquire(&us_head(s)->shard);
    *number = shard ? (uint32_t) (shard - 1) : 0;

    return shard != 0;
}


uint64_t
us_store_first_id(const us_store_t *s)
{
    uint32_t  number;

    (void) us_store_is_shard(s, &number);

    return us_cluster_id(number, 0);
}


int
us_store_set_shard(us_store_t *s, uint32_t number)
{
    int         rc;
    us_head_t  *h;

    h = us_head(s);

    us_store_enter(s);

    rc = h->shard == 0 || h->shard == (uint64_t) number + 1 ? 0 : -1;

    if (rc == 0) {
        us_release(&h->shard, (uint64_t) number + 1);
    }

    us_store_leave(s);

    return rc;
}


/* where map number n begins in the area, and its text after it */

static uint64_t
us_shard_at(const us_store_t *s, uint64_t n)
{
    return n % 2 * (us_area_bytes(&s->arena, US_AREA_MAPS) / 2);
}


static us_store_map_t *
us_shard_place(const us_store_t *s, uint64_t n)
{
    return (us_store_map_t *) us_area_at(&s->arena, US_AREA_MAPS,
                                         us_shard_at(s, n));
}


/* 0: none, or a stale one */

static uint64_t
us_shard_number(const us_store_t *s)
{
    uint64_t  number;

    /* adopted again it has another number, which is stored last */

    number = us_store_map_number(s);

    return us_store_map_stale(s) ? 0 : number;
}


static void
us_shard_read_locked(us_store_t *s)
{
    uint64_t  number;

    memset(&s->map, 0, sizeof(us_store_map_t));
    number = us_shard_number(s);

    if (number) {
        s->map = *us_shard_place(s, number);
        s->map.number = number;
        s->map.lsn = us_head(s)->map_lsn;
    }
}


uint64_t
us_store_map_number(const us_store_t *s)
{
    return us_acquire(&us_head(s)->map);
}


int
us_store_map_stale(const us_store_t *s)
{
    return us_acquire(&us_head(s)->map_stale) == US_MAP_STALE;
}


void
us_store_map_restored(us_store_t *s)
{
    us_store_enter(s);

    if (us_head(s)->map_stale == 0) {
        us_release(&us_head(s)->map_stale, US_MAP_STALE);
    }

    us_store_leave(s);
}


/* whether a map is one to adopt: newer, or the stale one */

static int
us_shard_newer_locked(const us_store_t *s, const us_map_t *map)
{
    uint64_t          version;
    const us_head_t  *h;

    h = us_head(s);

    if (h->map == 0) {
        return 1;
    }

    version = us_shard_place(s, h->map)->version;

    return map->version > version
           || (map->version == version && us_store_map_stale(s));
}


const us_store_map_t *
us_store_map(us_store_t *s)
{
    /*
     * Acquire: whatever was added before this map was adopted is found by the
     * look-ups that follow, and its LSN is at or below the published one.
     */

    if (us_shard_number(s) != s->map.number) {
        us_store_enter(s);
        us_shard_read_locked(s);
        us_store_leave(s);
    }

    return &s->map;
}


uint64_t
us_store_map_lsn(const us_store_t *s)
{
    return us_acquire(&us_head(s)->map_lsn);
}


uint64_t
us_store_promised(const us_store_t *s, int durable)
{
    uint64_t          lsn, map;
    const us_head_t  *h;

    h = us_head(s);
    lsn = us_acquire(durable ? &h->durable : &h->written);

    /* read once: all up to lsn was answered under this map, or an older one */

    map = us_acquire(&h->map_lsn);

    return lsn < map || map <= us_acquire(&h->durable) ? lsn : map - 1;
}


size_t
us_store_map_text(us_store_t *s, uint8_t *buf, uint64_t *number)
{
    size_t  len;

    len = 0;

    us_store_enter(s);

    *number = us_head(s)->map;

    if (*number) {
        len = us_shard_place(s, *number)->len;
        us_area_read(&s->arena, US_AREA_MAPS,
                     us_shard_at(s, *number) + sizeof(us_store_map_t), buf,
                     len);
    }

    us_store_leave(s);

    return len;
}


void
us_store_under(us_store_t *s, uint64_t version, const uint8_t digest[16])
{
    s->under_version = version;

    if (version) {
        memcpy(s->under_digest, digest, sizeof(s->under_digest));
    }
}


/* whether the calls of this handle are asked under the map that it has */

static int
us_shard_same(const us_store_t *s)
{
    return s->under_version && s->under_version == s->map.version
           && memcmp(s->under_digest, s->map.digest, 16) == 0;
}


static us_slot_state_t
us_shard_slot(const us_store_t *s, us_str_t url)
{
    unsigned  slot;

    slot = us_slot_of((us_key_t) s->map.key, url);

    return (us_slot_state_t) (s->map.slots[slot / 4] >> slot % 4 * 2 & 3);
}


us_slot_state_t
us_store_slot(us_store_t *s, us_str_t url)
{
    return us_store_map(s)->number ? us_shard_slot(s, url) : US_SLOT_FOREIGN;
}


int
us_store_denies(us_store_t *s, us_str_t url)
{
    us_slot_state_t  state;

    state = us_store_slot(s, url);

    return state == US_SLOT_OWNED
           || (state != US_SLOT_FOREIGN && us_shard_same(s));
}


void
us_shard_seen(us_store_t *s, us_store_item_t *items, size_t n)
{
    int     same;
    size_t  i;

    same = us_shard_same(s);

    for (i = 0; i < n; i++) {

        items[i].slot = s->map.number ? us_shard_slot(s, items[i].url)
                                      : US_SLOT_FOREIGN;

        if (items[i].slot == US_SLOT_FOREIGN) {
            items[i].status = US_MOVED;
            items[i].id = US_STORE_NO_ID;

        } else if (items[i].slot != US_SLOT_OWNED
                   && items[i].status == US_UNSEEN && !same)
        {
            items[i].status = US_MOVED;
        }
    }
}


/*
 * Under the lock: whether items were looked up under another map than the
 * store has now, or before the store became a shard, which adds nothing without
 * a map.
 */

int
us_shard_changed_locked(us_store_t *s)
{
    uint64_t  number;

    number = us_shard_number(s);

    return number != s->map.number || (us_head(s)->shard && number == 0);
}


int
us_shard_other_locked(us_store_t *s)
{
    return s->under_version
           && (us_shard_changed_locked(s) || !us_shard_same(s));
}


/*
 * Adopts a map in which the shard is `self`: writes it where nobody reads, and
 * publishes it; op: for the journal, or NULL.  -1: the zone has no room for it.
 */

static int
us_shard_adopt_locked(us_store_t *s, const us_map_t *map, int self,
    const us_op_t *op)
{
    size_t              i, k, n;
    uint64_t            number;
    unsigned            state;
    us_area_t          *area;
    us_head_t          *h;
    us_arena_t         *a;
    us_store_map_t     *to;
    const us_owners_t  *o;

    a = &s->arena;
    h = a->head;
    area = &h->area[US_AREA_MAPS];
    n = area->max - area->n;

    /* both places, of which each takes a text so long */

    if (sizeof(us_store_map_t) + map->text.len > area->max / 2 << a->chunk_shift
        || (n && !us_arena_fits(a, n, 0)))
    {
        return -1;
    }

    for ( /* void */ ; n; n--) {
        if (us_arena_grow_locked(a, US_AREA_MAPS, 1) != 0) {
            return -1;
        }
    }

    number = h->map + 1;
    to = us_shard_place(s, number);

    to->version = map->version;
    memcpy(to->digest, map->digest, sizeof(to->digest));
    memcpy(to->cluster, map->cluster, sizeof(to->cluster));
    to->key = map->key;
    to->len = map->text.len;
    memset(to->slots, 0, sizeof(to->slots));

    for (i = 0; i < US_SLOTS; i++) {
        o = &map->slots[i];
        state = US_SLOT_FOREIGN;

        for (k = 0; k < o->n; k++) {
            if (o->shards[k] == self) {
                state = k ? US_SLOT_SEALED
                        : o->n > 1 ? US_SLOT_INHERITED : US_SLOT_OWNED;
            }
        }

        to->slots[i / 4] |= (uint8_t) (state << i % 4 * 2);
    }

    us_area_write(a, US_AREA_MAPS,
                  us_shard_at(s, number) + sizeof(us_store_map_t),
                  map->text.data, map->text.len);

    /* the LSN first: who sees the map sees that it has to become durable */

    if (op) {
        us_ring_put_locked(a, op);
        us_intend_locked(a, &h->map_lsn, us_intended(a, &h->published));
    }

    /* a stale map is none any more */

    if (h->map_stale) {
        us_intend_locked(a, &h->map_stale, US_MAP_ADOPTED);
    }

    us_intend_locked(a, &h->map, number);
    us_commit_locked(a);

    return 0;
}


us_store_status_t
us_store_adopt(us_store_t *s, const us_map_t *map, uint64_t number,
    uint64_t *lsn)
{
    int                self;
    us_op_t            op;
    us_head_t         *h;
    us_store_status_t  status;

    h = us_head(s);

    op = us_op(US_OP_MAP, h->shard - 1, map->text.data, map->text.len);
    self = us_map_shard(map, op.id);

    us_store_enter(s);

    if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (h->map != number || h->shard == 0 || self < 0
               || !us_shard_newer_locked(s, map))
    {
        status = US_MOVED;

    } else if (h->ring_size && us_op_size(&op) > h->ring_size) {
        status = US_FULL;

    } else if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        us_bulk_keep_locked(&s->arena, 0);
        status = us_shard_adopt_locked(s, map, self, &op) == 0 ? US_OK
                                                               : US_FULL;
    }

    if (status == US_OK) {
        us_shard_read_locked(s);
    }

    *lsn = status == US_OK ? h->map_lsn : h->published;
    us_store_leave(s);

    return status;
}


int
us_shard_replay(us_store_t *s, const us_op_t *op)
{
    int         rc, self;
    char        err[128];
    us_map_t   *map;
    us_head_t  *h;

    h = us_head(s);

    if (h->shard == 0 || op->id != h->shard - 1) {
        return US_REPLAY_DAMAGED;
    }

    map = us_map_read(op->bytes, err, sizeof(err));

    if (map == NULL) {
        return US_REPLAY_DAMAGED;
    }

    self = us_map_shard(map, op->id);

    if (self < 0) {
        rc = US_REPLAY_DAMAGED;

    } else if (!us_shard_newer_locked(s, map)) {

        /* a dump has the map that an operation past its LSN has adopted */

        rc = 0;

    } else {
        rc = us_shard_adopt_locked(s, map, self, NULL) == 0
             ? 0 : US_REPLAY_NO_ROOM;
    }

    us_map_free(map);

    return rc;
}
