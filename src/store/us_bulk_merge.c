
/*
 * Bulk loading: collected entries, sorted by leaf, and old leaves, in the order
 * of their paths, are merged into new leaves.  See us_bulk.c.
 */


#include "us_bulk_private.h"

#include <stdlib.h>


/* chunks of old leaves that are read ahead of those that are filled */
#define US_BULK_AHEAD  2

/* an entry of so many: with less to remove, all leaves are not made anew */
#define US_BULK_FEW    32


/* a merge in progress */

typedef struct {
    us_bulk_t         *bulk;
    uint64_t           leaves;
    int                last;
    int                gone;          /* entries are removed, too */
    unsigned           most;          /* split bits that there is room for */

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


/* whether an entry is not wanted any more */

static inline int
us_bulk_void(const us_bulk_t *b, const us_bulk_entry_t *e)
{
    return e->kind == US_BULK_URL && b->arena->head->deleted
           && us_marked(b->arena, US_AREA_DELETED, e->id);
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


/* removes one by one, part by part, so that few leaves are in use at a time */

static void
us_bulk_remove_all(us_bulk_t *b)
{
    unsigned                t, part, i;
    us_bulk_block_t        *block;
    const us_bulk_entry_t  *e;

    for (part = 0; part < US_BULK_PARTS; part++) {
        for (t = 0; t < US_BULK_THREADS; t++) {
            block = b->sides[t].last[part];

            for ( /* void */ ; block; block = block->before) {
                for (i = 0; i < block->n; i++) {
                    e = &block->entries[i];

                    if (e->kind == US_BULK_GONE) {
                        us_bulk_remove(b, e->hash, e->id);
                    }
                }
            }
        }
    }
}


/* appends the entries of one list to m->unsorted */

static int
us_bulk_gather(us_bulk_merge_t *m, const us_bulk_block_t *block)
{
    int                     i;
    size_t                  n;
    us_bulk_item_t         *items;
    const us_bulk_entry_t  *e;

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

        /* the last first: the sort turns it round */

        for (i = (int) block->n - 1; i >= 0; i--) {
            e = &block->entries[i];

            if (us_bulk_void(m->bulk, e) || (e->kind == US_BULK_GONE
                                             && !m->gone))
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

    return 0;
}


/* sorts by the bits that distinguish leaves; reverses the order of ids */

static void
us_bulk_sort_items(us_bulk_merge_t *m)
{
    size_t     i, sum, n;
    unsigned   depth, bits;
    uint64_t   key;

    depth = us_leaf_depth(m->leaves) + 1;
    bits = depth > US_BULK_PART_BITS ? depth - US_BULK_PART_BITS : 0;

    memset(m->counts, 0, sizeof(uint32_t) << bits);

    for (i = 0; i < m->n; i++) {
        key = bits ? m->unsorted[i].path << US_BULK_PART_BITS >> (64 - bits)
                   : 0;
        m->counts[key]++;
    }

    for (i = 0, sum = 0; i < (size_t) 1 << bits; i++) {
        n = m->counts[i];
        sum += n;
        m->counts[i] = sum;
    }

    for (i = 0; i < m->n; i++) {
        key = bits ? m->unsorted[i].path << US_BULK_PART_BITS >> (64 - bits)
                   : 0;
        m->items[--m->counts[key]] = m->unsorted[i];
    }
}


/* the next list that is not empty; at the end, m->n is 0 */

static int
us_bulk_next_part(us_bulk_merge_t *m)
{
    int       rc;
    unsigned  t;

    m->n = 0;
    m->at = 0;

    while (m->n == 0 && m->part < US_BULK_PARTS) {

        for (t = US_BULK_THREADS; t > 0; t--) {
            rc = us_bulk_gather(m, m->bulk->sides[t - 1].last[m->part]);

            if (rc != 0) {
                return rc;
            }
        }

        m->part++;
    }

    us_bulk_sort_items(m);

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


/* makes m->old the old leaf that has the paths of this one */

static void
us_bulk_old(us_bulk_merge_t *m, uint64_t leaf)
{
    size_t    n;
    uint64_t  number, *w;

    number = us_leaf_number(m->old_leaves, us_leaf_path(leaf));

    if (m->number == number) {
        return;
    }

    us_bulk_ahead(m);

    m->number = number;
    m->nold = 0;

    n = m->words[m->head++];
    w = m->words + m->head;
    m->head += n;

    if (n) {
        m->layout = us_leaf(w[0]);
        m->nold = us_leaf_entries(w, n, &m->layout, m->old);
    }
}


/*
 * Copies those of n entries of a leaf that belong to the one `below` levels
 * below it, and takes that many of their split bits.  Returns their number.
 */

static unsigned
us_bulk_pick(us_entry_t *to, const us_entry_t *from, unsigned n,
    unsigned split, uint64_t leaf, unsigned below)
{
    unsigned  i, k, left;

    left = split - below;

    for (i = 0, k = 0; i < n; i++) {
        if ((uint64_t) from[i].split >> left
            == (leaf & (((uint64_t) 1 << below) - 1)))
        {
            to[k] = from[i];
            to[k++].split &= ((unsigned) 1 << left) - 1;
        }
    }

    return k;
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
    unsigned     i, n, below, step;
    us_bulk_t   *b;
    us_leaf_t    l;
    us_entry_t  *e;

    b = m->bulk;
    us_bulk_old(m, leaf);

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

        n = us_bulk_pick(b->entries, e, n, l.split, leaf >> below, step);
        e = b->entries;
        l.split -= step;

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


/* removes an entry of the leaf that is put together */

static void
us_bulk_leave(us_bulk_t *b, uint64_t leaf, const us_bulk_item_t *item)
{
    unsigned     i, split;
    us_entry_t  *e;

    e = b->entries;
    split = us_split_bits(leaf, item->path, b->split);

    for (i = 0; i < b->n; i++) {
        if (e[i].id == item->id && e[i].fingerprint == item->fingerprint
            && e[i].split == split)
        {
            b->n--;
            memmove(&e[i], &e[i + 1], (b->n - i) * sizeof(us_entry_t));
            return;
        }
    }
}


/* appends the collected entries of a leaf, or removes them */

static int
us_bulk_receive(us_bulk_merge_t *m, uint64_t leaf)
{
    int              rc;
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

        if (item->gone) {
            us_bulk_leave(b, leaf, item);
            continue;
        }

        if (b->n == US_LEAF_MAX) {
            return US_REPLAY_NO_ROOM;
        }

        e = &b->entries[b->n++];
        e->id = item->id;
        e->fingerprint = item->fingerprint;
        e->split = us_split_bits(leaf, item->path, b->split);
    }
}


static int
us_bulk_merge_leaves(us_bulk_merge_t *m)
{
    int         rc;
    unsigned    split;
    uint64_t    leaf, path;
    us_bulk_t  *b;

    b = m->bulk;
    path = 0;

    do {
        leaf = us_leaf_number(m->leaves, path);

        /*
         * Growth leaves two on average.  Before the last merge, none: chunks
         * that are given back later are of no use to the log, which may need
         * them.
         */

        split = m->last ? 1 + (unsigned) (leaf % 3) : 0;

        b->split = split < m->most ? split : m->most;
        b->n = 0;

        us_bulk_inherit(m, leaf);
        rc = us_bulk_receive(m, leaf);

        if (rc == 0) {
            rc = us_bulk_leaf(b, leaf);
        }

        if (rc != 0) {
            return rc;
        }

        path = us_leaf_path_end(leaf);
    } while (path);

    return 0;
}


/* private memory of a merge, and where the old leaves are */

static int
us_bulk_merge_open(us_bulk_merge_t *m)
{
    size_t       i;
    unsigned     depth;
    us_arena_t  *a;

    a = m->bulk->arena;

    /* twice, so that moving what is there costs no more than reading it */

    m->room = 2 * ((size_t) US_BULK_AHEAD << a->chunk_shift) / 8
              + 2 * (1 + US_LEAF_WORDS_MAX);
    m->words = malloc(m->room * sizeof(uint64_t));

    m->old_leaves = a->head->leaves;
    m->addresses = malloc(m->old_leaves * sizeof(uint32_t));

    depth = us_leaf_depth(m->leaves) + 1;
    m->counts = malloc(sizeof(uint32_t)
                       << (depth > US_BULK_PART_BITS
                           ? depth - US_BULK_PART_BITS : 0));

    if (m->words == NULL || m->addresses == NULL || m->counts == NULL) {
        return US_REPLAY_FAILED;
    }

    for (i = 0; i < m->old_leaves; i++) {
        m->addresses[i] = us_directory_get(a, m->old_leaves + i);
    }

    return 0;
}


static void
us_bulk_merge_close(us_bulk_merge_t *m)
{
    free(m->words);
    free(m->addresses);
    free(m->counts);
    free(m->items);
    free(m->unsorted);
}


/* leaves for so many entries; there are never less than before */

static uint64_t
us_bulk_merge_leaf_count(const us_head_t *h, uint64_t entries)
{
    uint64_t  leaves;

    leaves = us_bulk_leaves(entries);

    return leaves > h->leaves ? leaves : h->leaves;
}


/*
 * Whether entries are removed one by one before the merge, or without any: they
 * are few, and nothing is added; or the merge might make too few leaves,
 * because not each entry that is to be removed need be there.
 */

static int
us_bulk_remove_first(const us_head_t *h, uint64_t adds, uint64_t gone)
{
    uint64_t  left;

    if (adds == 0 && gone < h->entries / US_BULK_FEW) {
        return 1;
    }

    left = gone < h->entries ? h->entries - gone : 0;

    return us_bulk_merge_leaf_count(h, left + adds)
           < us_bulk_leaves(h->entries + adds) / 4 * 3;
}


int
us_bulk_merge(us_bulk_t *b, uint64_t to, int last, uint64_t expect)
{
    int               rc;
    uint64_t          adds, gone, left;
    us_head_t        *h;
    us_bulk_merge_t   m;

    h = b->arena->head;
    us_bulk_count(b, &adds, &gone);

    if (gone && us_bulk_remove_first(h, adds, gone)) {
        us_bulk_remove_all(b);
        gone = 0;
    }

    if (adds == 0 && gone == 0) {
        goto done;
    }

    left = (gone < h->entries ? h->entries - gone : 0) + adds;

    memset(&m, 0, sizeof(us_bulk_merge_t));
    m.bulk = b;
    m.last = last;
    m.gone = gone != 0;
    m.leaves = us_bulk_merge_leaf_count(h, expect > left && !last ? expect
                                                                  : left);
    adds += h->entries;
    rc = us_bulk_merge_open(&m);

    if (rc == 0) {
        rc = us_bulk_begin(b, m.leaves);
    }

    if (rc == 0) {
        m.most = us_bulk_most(b, m.leaves, adds, to);
        rc = us_bulk_merge_leaves(&m);
    }

    us_bulk_merge_close(&m);

    if (rc != 0) {
        return rc;
    }

    us_bulk_end(b);

done:

    us_bulk_forget(b);

    return 0;
}
