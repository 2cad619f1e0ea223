
/*
 * Bulk loading of the index: entries are collected by the first bits of their
 * paths, and merged into all leaves at once, in the order of the leaves' paths.
 *
 *   hash, id --> 1,024 lists --> sorted by leaf --\
 *                                                   leaf by leaf --> new leaves
 *   old leaves, in the order of their paths ------/
 *
 * Entries that are to be removed are collected in the same way, and leave their
 * leaf when it is made anew.
 *
 * An entry costs a few writes to memory in sequence.  To add it to its leaf
 * would cost cache misses and, each time that the leaf is full, a copy.  The
 * leaves are as small as they can be: they have no slots to spare.  Since
 * nobody reads them meanwhile, they follow each other without gaps.
 *
 *   zone     | ... | leaf 7 | leaf 6 | leaf 5 | leaf 4 | ...     <---- filled
 *            | chunk          | chunk            | chunk |          downwards
 *
 * Chunks are taken downwards, so those of one merge are mostly adjacent, and a
 * leaf may lie across them.  Old leaves are read some chunks ahead: a chunk
 * that was read is filled again.  So a merge takes no more chunks than the
 * index has afterwards.
 *
 *
 * The bound.  The bits of a leaf of n entries with ids below `ids`:
 *
 *     64  header          8 n  fingerprints        x n  split
 *     n low + ids / 2^low + n                      ids (Elias, Fano)
 *
 * each part rounded up to words.  Each leaf has the low that is best for its n,
 * or nearly.  So with one low for all leaves they would take as much, or more.
 * That larger sum is the bound: it depends on the number of leaves and entries
 * only, not on how a hash key spreads entries over leaves.  With x = 0 (split
 * bits only save hashing) the bound is less than the bytes of the same leaves
 * when they grew one by one.
 */


#include "us_bulk.h"
#include "us_sets.h"

#include <stdlib.h>


#define US_BULK_PART_BITS  10
#define US_BULK_PARTS      (1u << US_BULK_PART_BITS)

#define US_BULK_ID_BITS    46

#define US_BULK_BLOCK      62         /* entries in a block */
#define US_BULK_SLAB       344        /* blocks that are allocated at once */

/* chunks of old leaves that are read ahead of those that are filled */
#define US_BULK_AHEAD      2

/* an entry of so many: with less to remove, all leaves are not made anew */
#define US_BULK_FEW        32


typedef struct {
    uint64_t           hash;
    uint64_t           id:US_BULK_ID_BITS;
    uint64_t           kind:2;        /* us_bulk_kind_t */
} __attribute__((packed)) us_bulk_entry_t;


typedef struct us_bulk_block_s  us_bulk_block_t;

struct us_bulk_block_s {
    us_bulk_block_t   *before;
    uint32_t           n;
    us_bulk_entry_t    entries[US_BULK_BLOCK];
};


typedef struct us_bulk_slab_s  us_bulk_slab_t;

struct us_bulk_slab_s {
    us_bulk_slab_t    *before;
    us_bulk_block_t    blocks[US_BULK_SLAB];
};


/* what one thread has collected */

typedef struct {
    us_bulk_slab_t    *slab;
    unsigned           used;          /* blocks of it */
    size_t             nslabs;
    us_bulk_block_t   *last[US_BULK_PARTS];
} us_bulk_side_t;


/* a growing list of chunk numbers */

typedef struct {
    uint32_t          *chunks;
    size_t             n;
    size_t             size;
} us_bulk_chunks_t;


/* an entry on its way to a leaf, or out of it */

typedef struct {
    uint64_t           path;
    uint64_t           id:US_BULK_ID_BITS;
    uint64_t           gone:1;
    uint64_t           fingerprint:8;
} us_bulk_item_t;


struct us_bulk_s {
    us_arena_t        *arena;
    us_index_hash_pt   hash;
    void              *data;

    us_bulk_side_t     sides[US_BULK_THREADS];

    us_bulk_chunks_t   chunks;        /* of the leaves, as they were filled */
    us_bulk_chunks_t   old;           /* of those that are being replaced */
    size_t             read;          /* of old: read, and filled again */
    size_t             filled;
    uint64_t           top;           /* leaves end here, in a region that */
    uint64_t           bottom;        /* begins here */
    int                failed;        /* US_REPLAY_* */

    us_entry_t         entries[US_LEAF_MAX];
    unsigned           n;
    unsigned           split;         /* bits that they have */

    /* an image: the leaf that is being put together */
    uint64_t           leaf;
    uint64_t           leaves;
    uint64_t           end;
};


/* a merge in progress */

typedef struct {
    us_bulk_t         *bulk;
    uint64_t           leaves;
    int                gone;          /* entries are removed, too */

    /* entries of the lists, sorted by leaf, list after list */
    unsigned           part;
    size_t             at;
    size_t             n;
    size_t             size;
    us_bulk_item_t    *items;
    us_bulk_item_t    *unsorted;
    uint32_t          *counts;

    /* old leaves read ahead: number of words, words, ... */
    uint64_t           old_leaves;
    uint32_t          *addresses;
    uint64_t           path;          /* up to which they were read */
    int                done;
    uint64_t          *words;
    size_t             head;
    size_t             tail;
    size_t             room;

    /* the old leaf of which parts are still to come */
    uint64_t           number;
    unsigned           nold;
    us_leaf_t          layout;
    us_entry_t         old[US_LEAF_MAX];
} us_bulk_merge_t;


us_bulk_t *
us_bulk_create(us_arena_t *a, us_index_hash_pt hash, void *data)
{
    us_bulk_t  *b;

    b = calloc(1, sizeof(us_bulk_t));

    if (b) {
        b->arena = a;
        b->hash = hash;
        b->data = data;
    }

    return b;
}


/* drops what is collected */

static void
us_bulk_forget(us_bulk_t *b)
{
    unsigned         t;
    us_bulk_slab_t  *slab;

    for (t = 0; t < US_BULK_THREADS; t++) {

        while (b->sides[t].slab) {
            slab = b->sides[t].slab;
            b->sides[t].slab = slab->before;
            free(slab);
        }

        memset(&b->sides[t], 0, sizeof(us_bulk_side_t));
    }
}


void
us_bulk_destroy(us_bulk_t *b)
{
    if (b == NULL) {
        return;
    }

    us_bulk_forget(b);

    free(b->chunks.chunks);
    free(b->old.chunks);
    free(b);
}


int
us_bulk_put(us_bulk_t *b, unsigned t, uint64_t hash, uint64_t id,
    us_bulk_kind_t kind)
{
    unsigned          part;
    us_bulk_side_t   *side;
    us_bulk_slab_t   *slab;
    us_bulk_block_t  *block;
    us_bulk_entry_t  *e;

    side = &b->sides[t];
    part = us_path(hash) >> (64 - US_BULK_PART_BITS);
    block = side->last[part];

    if (block == NULL || block->n == US_BULK_BLOCK) {

        if (side->slab == NULL || side->used == US_BULK_SLAB) {
            slab = malloc(sizeof(us_bulk_slab_t));

            if (slab == NULL) {
                return -1;
            }

            slab->before = side->slab;
            side->slab = slab;
            side->nslabs++;
            side->used = 0;
        }

        block = &side->slab->blocks[side->used++];
        block->before = side->last[part];
        block->n = 0;
        side->last[part] = block;
    }

    e = &block->entries[block->n++];
    e->hash = hash;
    e->id = id & (((uint64_t) 1 << US_BULK_ID_BITS) - 1);
    e->kind = kind;

    return 0;
}


size_t
us_bulk_memory(const us_bulk_t *b)
{
    size_t    bytes;
    unsigned  t;

    bytes = 0;

    for (t = 0; t < US_BULK_THREADS; t++) {
        bytes += b->sides[t].nslabs * sizeof(us_bulk_slab_t);
    }

    return bytes;
}


uint64_t
us_bulk_leaves(uint64_t entries)
{
    uint64_t  leaves;

    leaves = entries / US_LEAF_MEAN + 1;

    return leaves < US_FIRST_LEAF ? US_FIRST_LEAF : leaves;
}


uint64_t
us_bulk_more_leaves(const us_head_t *h, uint64_t entries)
{
    uint64_t  leaves;

    leaves = us_bulk_leaves(entries);

    return leaves > h->leaves ? leaves : h->leaves;
}


/* bytes of so many leaves with x split bits, see the top of this file */

static uint64_t
us_bulk_bytes(unsigned leaf_shift, uint64_t leaves, uint64_t entries,
    uint64_t ids, unsigned x)
{
    unsigned  low;
    uint64_t  each, bits;

    if (entries == 0) {
        return 0;
    }

    /* header, what rounding adds to each part, and to the whole */

    each = 64 + 56 + 63 + 63 + 1 + (((uint64_t) 8 << leaf_shift) - 64);
    low = us_leaf_low(entries / leaves + 1, ids);

    bits = leaves * (each + (ids >> low)) + entries * (8 + x + low + 1);

    return bits / 8 + 1;
}


uint64_t
us_bulk_chunks(unsigned chunk_shift, unsigned leaf_shift, uint64_t leaves,
    uint64_t entries, uint64_t ids)
{
    uint64_t  directory;

    directory = ((2 * leaves - 1) >> (chunk_shift - 2))
                - (leaves >> (chunk_shift - 2)) + 1;

    /*
     * The last chunk is not full, and a leaf that does not fit leaves a gap
     * where two chunks are not adjacent.
     */

    return directory + 2
           + (us_bulk_bytes(leaf_shift, leaves, entries, ids, 0)
              >> chunk_shift);
}


int
us_bulk_fits(const us_bulk_t *b, uint64_t leaves, uint64_t entries,
    uint64_t ids)
{
    us_arena_t  *a;

    a = b->arena;

    return us_directory_chunks(a, leaves)
           <= a->head->area[US_AREA_DIRECTORY].max
           && us_bulk_chunks(a->chunk_shift, a->head->leaf_shift, leaves,
                             entries, ids)
              <= us_arena_free(a);
}


void
us_bulk_keep_locked(us_arena_t *a, unsigned more)
{
    uint64_t    have, need, entries, bytes;
    us_head_t  *h;

    h = a->head;
    a->keep = 0;
    a->slack = us_sets_slack(a);
    entries = h->entries + more;

    /* far from full: no entry takes 8 bytes, no leaf 64 besides */

    bytes = entries * 8 + h->leaves * 64;

    if (us_arena_free(a) > (bytes >> a->chunk_shift) + 4 + a->slack) {
        return;
    }

    need = us_bulk_chunks(a->chunk_shift, h->leaf_shift,
                          us_bulk_more_leaves(h, entries), entries,
                          h->next_id + 1);

    have = h->area[US_AREA_LEAVES].n + h->area[US_AREA_DIRECTORY].n
           + h->area[US_AREA_CACHE].n;

    if (need > have) {
        a->keep = need - have;
    }
}


/*
 * An empty index of so many leaves; what it had is going to be replaced.  0, or
 * US_REPLAY_NO_ROOM.
 */

static int
us_bulk_begin(us_bulk_t *b, uint64_t leaves)
{
    uint32_t           chunk, *entry;
    uint64_t           number, last;
    us_head_t         *h;
    us_arena_t        *a;
    us_bulk_chunks_t   list;

    a = b->arena;
    h = a->head;

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

    /* the directory gives all chunks back, and gets zero ones */

    for (number = h->directory_first; number <= h->directory_last; number++) {
        entry = us_directory_chunk(a, number);
        chunk = *entry;

        if (chunk) {
            us_intend32_locked(a, entry, 0);
            us_commit_locked(a);
            us_arena_give(a, US_AREA_DIRECTORY, chunk);
        }
    }

    if (h->directory_spare) {
        number = h->directory_spare;
        us_intend_locked(a, &h->directory_spare, 0);
        us_commit_locked(a);
        us_arena_give(a, US_AREA_DIRECTORY, number);
    }

    number = us_directory_chunk_number(a, leaves);
    last = us_directory_chunk_number(a, 2 * leaves - 1);

    us_intend_locked(a, &h->directory_first, number);
    us_intend_locked(a, &h->directory_last, number);
    us_commit_locked(a);

    if (last - number >= h->area[US_AREA_DIRECTORY].max) {
        return US_REPLAY_NO_ROOM;
    }

    for ( /* void */ ; number <= last; number++) {
        if (us_directory_extend_locked(a, number << (a->chunk_shift - 2))
            != 0)
        {
            return US_REPLAY_NO_ROOM;
        }
    }

    return 0;
}


/*
 * Memory of n bytes below the leaf before; its offset, or 0: b->failed.  Chunks
 * that were read are filled again before new ones are taken.
 */

static uint64_t
us_bulk_alloc(us_bulk_t *b, uint64_t n)
{
    size_t             size;
    uint32_t          *p;
    uint64_t           chunk, bytes;
    us_arena_t        *a;
    us_bulk_chunks_t  *list;

    a = b->arena;
    list = &b->chunks;
    bytes = (uint64_t) 1 << a->chunk_shift;

    while (b->top - b->bottom < n) {

        if (b->filled < b->read) {
            chunk = b->old.chunks[b->filled++];

        } else {
            chunk = us_arena_take_locked(a, US_AREA_LEAVES, 1)
                    >> a->chunk_shift;

            if (chunk == 0) {
                b->failed = US_REPLAY_NO_ROOM;
                return 0;
            }

            us_commit_locked(a);
        }

        if (list->n == list->size) {
            size = list->size * 2 + 64;
            p = realloc(list->chunks, size * sizeof(uint32_t));

            if (p == NULL) {
                b->failed = US_REPLAY_FAILED;
                return 0;
            }

            list->chunks = p;
            list->size = size;
        }

        list->chunks[list->n++] = (uint32_t) chunk;

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


/* makes the leaf of b->entries */

static int
us_bulk_leaf(us_bulk_t *b, uint64_t leaf)
{
    unsigned     i, k;
    uint64_t     offset, id;
    us_leaf_t    l;
    us_arena_t  *a;
    us_entry_t  *e, one;

    a = b->arena;
    e = b->entries;

    if (b->n == 0) {
        return 0;
    }

    /* entries are mostly in order of their ids: pieces are, that follow */

    for (i = 1; i < b->n; i++) {
        if (e[i].id >= e[i - 1].id) {
            continue;
        }

        one = e[i];

        for (k = i; k > 0 && e[k - 1].id > one.id; k--) {
            e[k] = e[k - 1];
        }

        e[k] = one;
    }

    id = e[b->n - 1].id;
    l = (us_leaf_t) { .split = b->split };

    if (us_leaf_measure(a, &l, b->n, id) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    offset = us_bulk_alloc(b, (uint64_t) l.size << a->head->leaf_shift);

    if (offset == 0) {
        return b->failed;
    }

    us_leaf_write_locked(a, offset >> a->head->leaf_shift, &l, e, b->n, b->n,
                         id);

    us_intend32_locked(a, us_directory_word(a, leaf),
                       offset >> a->head->leaf_shift);
    us_intend_locked(a, &a->head->entries, a->head->entries + b->n);
    us_commit_locked(a);

    return 0;
}


/* chunks that the leaves no longer need go back to the arena */

static void
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


/* whether an entry is not wanted any more */

static inline int
us_bulk_void(const us_bulk_t *b, const us_bulk_entry_t *e)
{
    return e->kind == US_BULK_URL && b->arena->head->deleted
           && us_deleted(b->arena, e->id);
}


/* counts what is collected and still wanted: entries to be added, removed */

static void
us_bulk_count(us_bulk_t *b, uint64_t *adds, uint64_t *gone)
{
    unsigned                t, part, i;
    us_bulk_block_t        *block;
    const us_bulk_entry_t  *e;

    *adds = 0;
    *gone = 0;

    for (t = 0; t < US_BULK_THREADS; t++) {
        for (part = 0; part < US_BULK_PARTS; part++) {
            block = b->sides[t].last[part];

            for ( /* void */ ; block; block = block->before) {
                for (i = 0; i < block->n; i++) {
                    e = &block->entries[i];
                    *gone += e->kind == US_BULK_GONE;
                    *adds += e->kind != US_BULK_GONE && !us_bulk_void(b, e);
                }
            }
        }
    }
}


/*
 * Removes entries from their leaves, one by one, part by part, so that few
 * leaves are in use at a time.
 */

static void
us_bulk_remove(us_bulk_t *b)
{
    unsigned                t, part, i;
    us_arena_t             *a;
    us_index_rest_t         r;
    us_bulk_block_t        *block;
    const us_bulk_entry_t  *e;

    a = b->arena;

    for (part = 0; part < US_BULK_PARTS; part++) {
        for (t = 0; t < US_BULK_THREADS; t++) {
            block = b->sides[t].last[part];

            for ( /* void */ ; block; block = block->before) {
                for (i = 0; i < block->n; i++) {
                    e = &block->entries[i];

                    if (e->kind != US_BULK_GONE
                        || !us_index_rest(a, e->hash, e->id, &r))
                    {
                        continue;
                    }

                    us_intend_locked(a, &a->head->entries,
                                     a->head->entries - 1);

                    if (r.n == 0) {
                        us_intend32_locked(a, us_directory_word(a, r.leaf), 0);
                        us_leaf_free_locked(a, r.address);
                        us_commit_locked(a);
                        continue;
                    }

                    us_commit_locked(a);

                    /* in its place, with as many low bits: nobody looks */

                    r.layout.slots = r.n;
                    us_leaf_write_locked(a, r.address, &r.layout, r.entries,
                                         r.n, r.n, r.entries[r.n - 1].id);
                }
            }
        }
    }
}


/*
 * The next list that is not empty: entries that are still wanted, sorted by the
 * bits that distinguish leaves.  At the end, m->n is 0.
 */

static int
us_bulk_next_part(us_bulk_merge_t *m)
{
    int                     k;
    size_t                  i, n, sum;
    unsigned                t, depth, bits;
    uint64_t                key;
    us_bulk_item_t         *items;
    us_bulk_block_t        *block;
    const us_bulk_entry_t  *e;

    m->n = 0;
    m->at = 0;

    for ( /* void */ ; m->n == 0 && m->part < US_BULK_PARTS; m->part++) {

        /* the last first: the sort turns the order of ids round */

        for (t = US_BULK_THREADS; t > 0; t--) {
            block = m->bulk->sides[t - 1].last[m->part];

            for ( /* void */ ; block; block = block->before) {

                if (m->n + US_BULK_BLOCK > m->size) {
                    n = m->size * 2 + 1024;
                    items = realloc(m->unsorted, n * sizeof(us_bulk_item_t));

                    if (items) {
                        m->unsorted = items;
                        items = realloc(m->items, n * sizeof(us_bulk_item_t));
                    }

                    if (items == NULL) {
                        return US_REPLAY_FAILED;
                    }

                    m->items = items;
                    m->size = n;
                }

                for (k = (int) block->n - 1; k >= 0; k--) {
                    e = &block->entries[k];

                    if (us_bulk_void(m->bulk, e)
                        || (e->kind == US_BULK_GONE && !m->gone))
                    {
                        continue;
                    }

                    items = &m->unsorted[m->n++];
                    items->path = us_path(e->hash);
                    items->id = e->id;
                    items->gone = e->kind == US_BULK_GONE;
                    items->fingerprint = us_fingerprint(e->hash);
                }
            }
        }
    }

    depth = us_leaf_depth(m->leaves) + 1;
    bits = depth > US_BULK_PART_BITS ? depth - US_BULK_PART_BITS : 0;

    memset(m->counts, 0, sizeof(uint32_t) << bits);

    for (i = 0; i < m->n; i++) {
        key = m->unsorted[i].path << US_BULK_PART_BITS >> 1 >> (63 - bits);
        m->counts[key]++;
    }

    for (i = 0, sum = 0; i < (size_t) 1 << bits; i++) {
        sum += m->counts[i];
        m->counts[i] = sum;
    }

    for (i = 0; i < m->n; i++) {
        key = m->unsorted[i].path << US_BULK_PART_BITS >> 1 >> (63 - bits);
        m->items[--m->counts[key]] = m->unsorted[i];
    }

    return 0;
}


/* reads old leaves, until there is one and some chunks are read */

static void
us_bulk_ahead(us_bulk_merge_t *m)
{
    size_t           n;
    uint32_t         address;
    uint64_t         leaf, chunk;
    us_bulk_t       *b;
    us_leaf_t        l;
    us_arena_t      *a;
    const uint64_t  *w;

    b = m->bulk;
    a = b->arena;

    while (!m->done
           && (m->tail == m->head
               || (m->tail - m->head) * 8
                  < (size_t) US_BULK_AHEAD << a->chunk_shift))
    {
        if (m->room - m->tail < 1 + US_LEAF_WORDS_MAX) {
            memmove(m->words, m->words + m->head,
                    (m->tail - m->head) * sizeof(uint64_t));
            m->tail -= m->head;
            m->head = 0;
        }

        leaf = us_leaf_number(m->old_leaves, m->path);
        address = m->addresses[leaf - m->old_leaves];
        n = 0;

        if (address) {
            w = us_leaf_at(a, address);
            l = us_leaf(us_relaxed(w));
            n = us_leaf_words(a, &l);
            memcpy(m->words + m->tail + 1, w, n * sizeof(uint64_t));

            /* leaves that lie above this one were read: they fill downwards */

            chunk = (uint64_t) address << a->head->leaf_shift
                    >> a->chunk_shift;

            while (b->read < b->old.n && b->old.chunks[b->read] != chunk) {
                b->read++;
            }
        }

        m->words[m->tail] = n;
        m->tail += 1 + n;

        m->path = us_leaf_path_end(leaf);
        m->done = m->path == 0;
    }

    if (m->done) {
        b->read = b->old.n;
    }
}


/*
 * The entries of the old leaf that belong to the new one, into b->entries.
 *
 * The new leaf may be more than US_SPLIT_MAX levels below the old one: a dump
 * of few URLs was followed by a long journal.  The split bits of an entry do
 * not lead down so far.  Entries whose bits are used up are hashed again.
 */

static void
us_bulk_inherit(us_bulk_merge_t *m, uint64_t leaf)
{
    size_t       words;
    unsigned     i, k, n, below, step;
    uint64_t     number, *w;
    us_bulk_t   *b;
    us_leaf_t    l;
    us_entry_t  *e;

    b = m->bulk;
    number = us_leaf_number(m->old_leaves, us_leaf_path(leaf));

    if (m->number != number) {

        /* the next old leaf */

        us_bulk_ahead(m);

        words = m->words[m->head++];
        w = m->words + m->head;
        m->head += words;

        m->number = number;
        m->nold = 0;

        if (words) {
            m->layout = us_leaf(w[0]);
            m->nold = us_leaf_entries(w, words, &m->layout, m->old);
        }
    }

    if (m->nold == 0) {
        return;
    }

    below = us_leaf_depth(leaf) - us_leaf_depth(m->number);

    if (m->layout.split < below && m->layout.split < US_SPLIT_MAX) {
        m->nold = us_index_rehash(m->number, m->old, m->nold, &m->layout,
                                  US_SPLIT_MAX, b->hash, b->data);
    }

    l = m->layout;
    e = m->old;
    n = m->nold;

    for ( ;; ) {
        step = below < l.split ? below : l.split;
        below -= step;
        l.split -= step;

        /* those whose next bits lead down that many levels to the leaf */

        for (i = 0, k = 0; i < n; i++) {
            if ((uint64_t) e[i].split >> l.split
                == (leaf >> below & (((uint64_t) 1 << step) - 1)))
            {
                b->entries[k] = e[i];
                b->entries[k++].split &= ((unsigned) 1 << l.split) - 1;
            }
        }

        e = b->entries;
        n = k;

        if (below == 0) {
            break;
        }

        n = us_index_rehash(leaf >> below, e, n, &l, US_SPLIT_MAX, b->hash,
                            b->data);
    }

    b->n = n;

    if (l.split < b->split) {
        b->split = l.split;
    }

    for (i = 0; i < n; i++) {
        e[i].split >>= l.split - b->split;
    }
}


/* appends the collected entries of a leaf, or removes them */

static int
us_bulk_receive(us_bulk_merge_t *m, uint64_t leaf)
{
    int              rc;
    unsigned         i, split;
    us_bulk_t       *b;
    us_entry_t      *e;
    us_bulk_item_t  *item;

    b = m->bulk;

    for ( ;; ) {

        if (m->at == m->n) {

            if (m->part == US_BULK_PARTS) {
                return 0;
            }

            rc = us_bulk_next_part(m);

            if (rc != 0) {
                return rc;
            }

            continue;
        }

        item = &m->items[m->at];

        if (us_leaf_number(m->leaves, item->path) != leaf) {
            return 0;
        }

        m->at++;
        split = us_split_bits(leaf, item->path, b->split);

        for (i = 0; item->gone && i < b->n; i++) {
            e = &b->entries[i];

            if (e->id == item->id && e->fingerprint == item->fingerprint
                && e->split == split)
            {
                b->n--;
                memmove(e, e + 1, (b->n - i) * sizeof(us_entry_t));
                break;
            }
        }

        if (item->gone) {
            continue;
        }

        if (b->n == US_LEAF_MAX) {
            return US_REPLAY_NO_ROOM;
        }

        e = &b->entries[b->n++];
        e->id = item->id;
        e->fingerprint = item->fingerprint;
        e->split = split;
    }
}


int
us_bulk_merge(us_bulk_t *b, uint64_t to, int last, uint64_t expect)
{
    int               rc;
    unsigned          x, split, depth;
    uint64_t          i, adds, gone, left, have, leaf, path;
    us_head_t        *h;
    us_arena_t       *a;
    us_bulk_merge_t   m;

    a = b->arena;
    h = a->head;
    us_bulk_count(b, &adds, &gone);
    left = (gone < h->entries ? h->entries - gone : 0) + adds;

    /*
     * Entries are removed one by one before the merge, or without any, if they
     * are few, and nothing is added; or if the merge might make too few leaves,
     * because not each entry that is to be removed need be there.
     */

    if (gone
        && ((adds == 0 && gone < h->entries / US_BULK_FEW)
            || us_bulk_more_leaves(h, left)
               < us_bulk_leaves(h->entries + adds) / 4 * 3))
    {
        us_bulk_remove(b);
        gone = 0;
        left = h->entries + adds;
    }

    if (adds == 0 && gone == 0) {
        us_bulk_forget(b);
        return 0;
    }

    memset(&m, 0, sizeof(us_bulk_merge_t));
    m.bulk = b;
    m.gone = gone != 0;
    m.leaves = us_bulk_more_leaves(h, expect > left && !last ? expect : left);
    adds += h->entries;

    /* twice, so that moving what is there costs no more than reading it */

    m.room = 2 * ((size_t) US_BULK_AHEAD << a->chunk_shift) / 8
             + 2 * (1 + US_LEAF_WORDS_MAX);
    m.words = malloc(m.room * sizeof(uint64_t));

    m.old_leaves = h->leaves;
    m.addresses = malloc(m.old_leaves * sizeof(uint32_t));

    depth = us_leaf_depth(m.leaves) + 1;
    m.counts = malloc(sizeof(uint32_t) << (depth > US_BULK_PART_BITS
                                           ? depth - US_BULK_PART_BITS : 0));

    rc = US_REPLAY_FAILED;

    if (m.words && m.addresses && m.counts) {

        for (i = 0; i < m.old_leaves; i++) {
            m.addresses[i] = us_directory_get(a, m.old_leaves + i);
        }

        rc = us_bulk_begin(b, m.leaves);
    }

    if (rc == 0) {

        /* the most split bits with which the leaves are sure to fit */

        have = us_arena_free(a) + h->area[US_AREA_LEAVES].n;

        for (x = US_SPLIT_MAX; x > 0; x--) {
            if ((us_bulk_bytes(h->leaf_shift, m.leaves, adds, to, x)
                 >> a->chunk_shift) + 2 <= have)
            {
                break;
            }
        }

        path = 0;

        do {
            leaf = us_leaf_number(m.leaves, path);

            /*
             * Growth leaves two on average.  Before the last merge, none:
             * chunks that are given back later are of no use to the log, which
             * may need them.
             */

            split = last ? 1 + (unsigned) (leaf % 3) : 0;

            b->split = split < x ? split : x;
            b->n = 0;

            us_bulk_inherit(&m, leaf);
            rc = us_bulk_receive(&m, leaf);

            if (rc == 0) {
                rc = us_bulk_leaf(b, leaf);
            }

            path = us_leaf_path_end(leaf);
        } while (rc == 0 && path);
    }

    free(m.words);
    free(m.addresses);
    free(m.counts);
    free(m.items);
    free(m.unsorted);

    if (rc == 0) {
        us_bulk_end(b);
        us_bulk_forget(b);
    }

    return rc;
}


int
us_bulk_image_begin(us_bulk_t *b, uint64_t leaves, uint64_t end)
{
    b->end = end;
    b->leaves = leaves;
    b->leaf = 0;
    b->n = 0;

    return us_bulk_begin(b, leaves);
}


/* the leaf that was put together, if there is one */

static int
us_bulk_image_flush(us_bulk_t *b)
{
    int  rc;

    rc = b->leaf ? us_bulk_leaf(b, b->leaf) : 0;

    b->n = 0;
    b->leaf = 0;

    return rc;
}


/*
 * A leaf may have been split while the image was made, even several times: its
 * parts follow one another, and the bits of the path between its number and
 * theirs are split bits.  The first US_SPLIT_MAX of all are kept.  All fit into
 * 64 bits, as a part that is deeper than 48 levels is refused.
 */

int
us_bulk_image_leaf(us_bulk_t *b, uint64_t leaf, const uint8_t *words,
    size_t n)
{
    int         rc;
    unsigned    i, count, below, split, all;
    uint64_t    number, w[US_LEAF_WORDS_MAX + 1];
    us_leaf_t   l;
    us_entry_t  e[US_LEAF_MAX];

    if (leaf < b->leaves || us_leaf_depth(leaf) > 48
        || n > US_LEAF_WORDS_MAX)
    {
        return US_REPLAY_DAMAGED;
    }

    number = us_leaf_number(b->leaves, us_leaf_path(leaf));

    if (number != b->leaf) {
        rc = us_bulk_image_flush(b);

        if (rc != 0) {
            return rc;
        }

        if (us_directory_get(b->arena, number)) {
            return US_REPLAY_DAMAGED;
        }

        b->leaf = number;
    }

    if (n == 0) {
        return 0;
    }

    memcpy(w, words, n * sizeof(uint64_t));
    w[n] = 0;
    l = us_leaf(w[0]);

    if (l.count > l.slots || l.low + l.split > US_WIDTH_MAX || l.high >= n) {
        return US_REPLAY_DAMAGED;
    }

    count = us_leaf_entries(w, (unsigned) n, &l, e);

    if (count == 0) {
        return US_REPLAY_DAMAGED;
    }

    for (i = 1; i < count; i++) {
        if (e[i].id < e[i - 1].id) {
            return US_REPLAY_DAMAGED;
        }
    }

    while (count && e[count - 1].id >= b->end) {
        count--;
    }

    if (b->n + count > US_LEAF_MAX) {
        return US_REPLAY_DAMAGED;
    }

    below = us_leaf_depth(leaf) - us_leaf_depth(number);
    all = below + l.split;
    split = all < US_SPLIT_MAX ? all : US_SPLIT_MAX;

    if (b->n == 0) {
        b->split = split;
    }

    if (split > b->split) {
        split = b->split;
    }

    for (i = 0; i < b->n; i++) {
        b->entries[i].split >>= b->split - split;
    }

    b->split = split;

    for (i = 0; i < count; i++) {
        b->entries[b->n] = e[i];
        b->entries[b->n++].split
            = ((leaf & (((uint64_t) 1 << below) - 1)) << l.split | e[i].split)
              >> (all - split);
    }

    return 0;
}


int
us_bulk_image_end(us_bulk_t *b)
{
    int  rc;

    rc = us_bulk_image_flush(b);

    if (rc == 0) {
        us_bulk_end(b);
    }

    return rc;
}
