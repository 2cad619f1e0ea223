
/*
 * Bulk loading: the leaves, and the chunks that they are put into.  See
 * us_bulk.c.
 */


#include "us_bulk_private.h"

#include <stdlib.h>


static int
us_bulk_chunk_add(us_bulk_chunks_t *list, uint64_t chunk)
{
    size_t     size;
    uint32_t  *p;

    if (list->n == list->size) {
        size = list->size * 2 + 64;
        p = realloc(list->chunks, size * sizeof(uint32_t));

        if (p == NULL) {
            return -1;
        }

        list->chunks = p;
        list->size = size;
    }

    list->chunks[list->n++] = (uint32_t) chunk;

    return 0;
}


/* the next chunk to be filled: one that was read, or a new one; 0: none */

static uint64_t
us_bulk_chunk(us_bulk_t *b)
{
    uint64_t     chunk;
    us_arena_t  *a;

    a = b->arena;

    if (b->filled < b->read) {
        chunk = b->old.chunks[b->filled++];

    } else {
        chunk = us_arena_take_locked(a, US_AREA_LEAVES, 1) >> a->chunk_shift;

        if (chunk == 0) {
            b->failed = US_REPLAY_NO_ROOM;
            return 0;
        }

        us_commit_locked(a);
    }

    if (us_bulk_chunk_add(&b->chunks, chunk) != 0) {
        b->failed = US_REPLAY_FAILED;
        return 0;
    }

    return chunk;
}


/* memory of n bytes below the leaf before; its offset, or 0: failed */

static uint64_t
us_bulk_alloc(us_bulk_t *b, uint64_t n)
{
    uint64_t     chunk, bytes;
    us_arena_t  *a;

    a = b->arena;
    bytes = (uint64_t) 1 << a->chunk_shift;

    while (b->top - b->bottom < n) {
        chunk = us_bulk_chunk(b);

        if (chunk == 0) {
            return 0;
        }

        if (((chunk + 1) << a->chunk_shift) != b->bottom) {
            us_leaf_carve_locked(a, b->bottom, b->top - b->bottom);
            us_commit_locked(a);
            b->top = (chunk << a->chunk_shift) + bytes;
        }

        b->bottom = chunk << a->chunk_shift;
    }

    b->top -= n;

    return b->top;
}


/* entries are mostly in order of their ids: pieces are, that follow */

static void
us_bulk_sort(us_entry_t *e, unsigned n)
{
    unsigned    i, k;
    us_entry_t  one;

    for (i = 1; i < n; i++) {
        if (e[i].id >= e[i - 1].id) {
            continue;
        }

        one = e[i];

        for (k = i; k > 0 && e[k - 1].id > one.id; k--) {
            e[k] = e[k - 1];
        }

        e[k] = one;
    }
}


int
us_bulk_leaf(us_bulk_t *b, uint64_t leaf)
{
    uint64_t     offset, id;
    us_leaf_t    l;
    us_arena_t  *a;

    a = b->arena;

    if (b->n == 0) {
        return 0;
    }

    us_bulk_sort(b->entries, b->n);
    id = b->entries[b->n - 1].id;

    memset(&l, 0, sizeof(us_leaf_t));
    l.split = b->split;

    if (us_leaf_measure(a, &l, b->n, id) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    offset = us_bulk_alloc(b, (uint64_t) l.size << a->head->leaf_shift);

    if (offset == 0) {
        return b->failed;
    }

    us_leaf_write_locked(a, offset >> a->head->leaf_shift, &l, b->entries,
                         b->n, b->n, id);

    us_intend32_locked(a, us_directory_word(a, leaf),
                       offset >> a->head->leaf_shift);
    us_intend_locked(a, &a->head->entries, a->head->entries + b->n);
    us_commit_locked(a);

    return 0;
}


int
us_bulk_begin(us_bulk_t *b, uint64_t leaves)
{
    us_head_t         *h;
    us_bulk_chunks_t   list;

    h = b->arena->head;

    list = b->old;
    b->old = b->chunks;
    b->chunks = list;
    b->chunks.n = 0;

    b->read = 0;
    b->filled = 0;
    b->top = 0;
    b->bottom = 0;

    memset(h->free, 0, sizeof(h->free));
    h->leaf_next = 0;
    h->leaf_end = 0;
    h->entries = 0;

    us_release(&h->leaves, leaves);

    return us_directory_begin(b->arena, leaves) == 0 ? 0 : US_REPLAY_NO_ROOM;
}


void
us_bulk_end(us_bulk_t *b)
{
    us_head_t  *h;

    h = b->arena->head;

    while (b->filled < b->old.n) {
        us_arena_give(b->arena, US_AREA_LEAVES, b->old.chunks[b->filled++]);
    }

    b->old.n = 0;

    h->leaf_next = b->bottom;
    h->leaf_end = b->top;
}


void
us_bulk_remove(us_bulk_t *b, uint64_t hash, uint64_t id)
{
    us_arena_t       *a;
    us_index_rest_t   rest;

    a = b->arena;

    if (!us_index_rest(a, hash, id, &rest)) {
        return;
    }

    us_intend_locked(a, &a->head->entries, a->head->entries - 1);

    if (rest.n == 0) {
        us_intend32_locked(a, us_directory_word(a, rest.leaf), 0);
        us_leaf_free_locked(a, rest.address);
        us_commit_locked(a);
        return;
    }

    us_commit_locked(a);

    /* in its place, with as many low bits: nobody looks */

    rest.layout.slots = rest.n;
    us_leaf_write_locked(a, rest.address, &rest.layout, rest.entries, rest.n,
                         rest.n, rest.entries[rest.n - 1].id);
}
