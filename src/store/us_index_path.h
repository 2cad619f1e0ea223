
/*
 * Paths and leaf numbers of the index: which leaf has a hash.  See us_index.c
 * for the picture.  For the files of the index only.
 */


#ifndef _US_INDEX_PATH_H_INCLUDED_
#define _US_INDEX_PATH_H_INCLUDED_


#include "us_leaf.h"


/*
 * Entries to a leaf, on average.  More: less memory, but more slots to scan,
 * and more of them with the right fingerprint by chance.
 */
#ifndef US_LEAF_MEAN
#define US_LEAF_MEAN    64
#endif

/*
 * A leaf whose entries were hashed again has so many split bits.  The numbers
 * are mixed so that at any time every third leaf is about to be hashed again,
 * and leaves of all sizes go on being used.
 */
#ifndef US_SPLIT_BITS
#define US_SPLIT_BITS(leaf)  (2 + (leaf) % 3)
#endif
#define US_SPLIT_MAX    7

#define US_FIRST_LEAF   2


static inline uint64_t
us_path(uint64_t hash)
{
    uint64_t  square;

    square = (unsigned __int128) hash * hash >> 64;

    return hash - (hash - square) / 3;
}


static inline uint8_t
us_fingerprint(uint64_t hash)
{
    return hash;
}


/* the bits of a path that lead to a leaf */

static inline unsigned
us_leaf_depth(uint64_t leaf)
{
    return 63 - __builtin_clzll(leaf);
}


/* the number of the leaf that has this path when there are n leaves */

static inline uint64_t
us_leaf_number(uint64_t n, uint64_t path)
{
    unsigned  depth;
    uint64_t  leaf;

    depth = us_leaf_depth(n);
    leaf = ((uint64_t) 1 << depth) | path >> (64 - depth);

    /* no branch: it would be mispredicted for half of the paths */

    depth += leaf < n;

    return ((uint64_t) 1 << depth) | path >> (64 - depth);
}


/*
 * The paths of a leaf: the first, and the first past them, which is 0 after
 * the last leaf.
 */

static inline uint64_t
us_leaf_path(uint64_t leaf)
{
    return leaf << (64 - us_leaf_depth(leaf));
}


static inline uint64_t
us_leaf_path_end(uint64_t leaf)
{
    return us_leaf_path(leaf) + ((uint64_t) 1 << (64 - us_leaf_depth(leaf)));
}


/* the bits of the path below a leaf */

static inline unsigned
us_split_bits(uint64_t leaf, uint64_t path, unsigned bits)
{
    return path << us_leaf_depth(leaf) >> 1 >> (63 - bits);
}


/*
 * Hashes n entries of a leaf, whose split bits are used up: afterwards they
 * have so many of them.  Returns the number of entries: those that lead
 * nowhere are left out.
 */
unsigned us_index_rehash(uint64_t leaf, us_entry_t *e, unsigned n,
    us_leaf_t *l, unsigned bits, us_index_hash_pt hash, void *data);


/* a leaf without one of its entries */

typedef struct {
    uint64_t         leaf;            /* its number */
    uint32_t         address;
    us_leaf_t        layout;          /* with the entry */
    unsigned         n;               /* others */
    us_entry_t       entries[US_LEAF_MAX];
} us_index_rest_t;

/*
 * Under the lock, or by a replay alone: reads the leaf that has the entry of
 * this hash and id.  1, or 0: there is no such entry.
 */
int us_index_rest(const us_arena_t *a, uint64_t hash, uint64_t id,
    us_index_rest_t *r);


#endif /* _US_INDEX_PATH_H_INCLUDED_ */
