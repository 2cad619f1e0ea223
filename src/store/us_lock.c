
/*
 * The lock of a store.  A process that takes it first completes the update that
 * a killed holder has left.
 */


#include "us_store_private.h"


void
us_store_enter(us_store_t *s)
{
    s->lock.lock(s->lock.data);

    us_arena_enter(&s->arena);
    us_index_enter(&s->arena);
}


void
us_store_leave(us_store_t *s)
{
    s->lock.unlock(s->lock.data);
}


void
us_store_keep_locked(us_store_t *s, unsigned more)
{
    uint64_t     have, need, entries, bytes;
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;
    a->keep = 0;

    if (h->flags & US_HEAD_LOOKUP) {
        return;
    }

    entries = h->entries + more;

    /* far from full: no entry takes 8 bytes, no leaf 64 besides */

    bytes = entries * 8 + h->leaves * 64;

    if (us_arena_free(a) > (bytes >> a->chunk_shift) + 4) {
        return;
    }

    need = us_bulk_leaves(entries);
    need = us_bulk_chunks(a->chunk_shift, h->leaf_shift,
                          need > h->leaves ? need : h->leaves, entries,
                          h->next_id + 1);

    have = h->area[US_AREA_LEAVES].n + h->area[US_AREA_DIRECTORY].n
           + h->area[US_AREA_CACHE].n;

    if (need > have) {
        a->keep = need - have;
    }
}
