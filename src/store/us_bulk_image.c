
/*
 * Bulk loading: the leaves of an image, see us_index.h for its format.
 */


#include "us_bulk_private.h"


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
 * 64 bits: us_bulk_image_leaf() refuses a part that is deeper than 48 levels.
 */

static int
us_bulk_image_join(us_bulk_t *b, uint64_t leaf, const us_leaf_t *l,
    const us_entry_t *e, unsigned n)
{
    unsigned  i, below, split, all;

    below = us_leaf_depth(leaf) - us_leaf_depth(b->leaf);
    all = below + l->split;
    split = all < US_SPLIT_MAX ? all : US_SPLIT_MAX;

    if (b->n + n > US_LEAF_MAX) {
        return US_REPLAY_DAMAGED;
    }

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

    for (i = 0; i < n; i++) {
        b->entries[b->n] = e[i];
        b->entries[b->n++].split
            = ((leaf & (((uint64_t) 1 << below) - 1)) << l->split | e[i].split)
              >> (all - split);
    }

    return 0;
}


/* the entries of n words that are said to be a leaf's; 0: they are not */

static unsigned
us_bulk_image_entries(const us_bulk_t *b, const uint8_t *words, size_t n,
    us_leaf_t *l, us_entry_t *e)
{
    unsigned  i, count;
    uint64_t  w[US_LEAF_WORDS_MAX + 1];

    memcpy(w, words, n * sizeof(uint64_t));
    w[n] = 0;
    *l = us_leaf(w[0]);

    if (l->count > l->slots || l->low + l->split > US_WIDTH_MAX
        || l->high >= n)
    {
        return 0;
    }

    count = us_leaf_entries(w, (unsigned) n, l, e);

    for (i = 1; i < count; i++) {
        if (e[i].id < e[i - 1].id) {
            return 0;
        }
    }

    return count;
}


int
us_bulk_image_leaf(us_bulk_t *b, uint64_t leaf, const uint8_t *words,
    size_t n)
{
    int         rc;
    unsigned    count;
    uint64_t    number;
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

    count = us_bulk_image_entries(b, words, n, &l, e);

    if (count == 0) {
        return US_REPLAY_DAMAGED;
    }

    while (count && e[count - 1].id >= b->end) {
        count--;
    }

    return us_bulk_image_join(b, leaf, &l, e, count);
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
