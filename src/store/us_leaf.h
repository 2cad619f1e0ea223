
/*
 * A leaf of the index: which hashes it has, and its coding.  See us_index.c for
 * the whole, us_leaf.c for the format.  For the files of the index only.
 */


#ifndef _US_LEAF_H_INCLUDED_
#define _US_LEAF_H_INCLUDED_


#include "../zone/us_arena.h"


#define US_LEAF_MAX     255           /* entries */
#define US_LEAF_WORDS   4             /* the smallest leaf */
#define US_LEAF_WORDS_MAX  ((US_LEAF_SIZES << 5) / 8)
#define US_WIDTH_MAX    48            /* low + split */
#define US_SPLIT_FIRST  3             /* of the first leaves */


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


typedef struct {
    uint64_t         id;
    uint8_t          fingerprint;
    uint8_t          split;
} us_entry_t;


/* a header, taken apart */

typedef struct {
    unsigned         count;
    unsigned         slots;
    unsigned         low;
    unsigned         split;
    unsigned         size;            /* units */
    uint32_t         serial;

    unsigned         packed;          /* index of the first such word */
    unsigned         high;
} us_leaf_t;


/* where the parts of a leaf of so many slots begin */

static inline void
us_leaf_lay(us_leaf_t *l)
{
    l->packed = 1 + (l->slots + 7) / 8;
    l->high = l->packed + (l->slots * (l->low + l->split) + 63) / 64;
}


static inline us_leaf_t
us_leaf(uint64_t header)
{
    us_leaf_t  l;

    l.count = header & 0xff;
    l.slots = header >> 8 & 0xff;
    l.low = header >> 16 & 0x3f;
    l.split = header >> 22 & 7;
    l.size = header >> 25 & 0x7f;
    l.serial = header >> 32;

    us_leaf_lay(&l);

    return l;
}


static inline uint64_t
us_leaf_header(const us_leaf_t *l)
{
    return l->count | l->slots << 8 | l->low << 16 | l->split << 22
           | (uint64_t) l->size << 25 | (uint64_t) l->serial << 32;
}


static inline unsigned
us_leaf_words(const us_arena_t *a, const us_leaf_t *l)
{
    return (l->size << a->head->leaf_shift) / 8;
}


static inline uint64_t *
us_leaf_at(const us_arena_t *a, uint32_t address)
{
    return (uint64_t *) (a->base
                         + ((uint64_t) address << a->head->leaf_shift));
}


static inline unsigned
us_popcount(uint64_t v)
{
    v = v - (v >> 1 & 0x5555555555555555);
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f;

    return v * 0x0101010101010101 >> 56;
}


/*
 * The position of one number i of a word that has more than i ones: the byte
 * by the sums of all bytes up to it (Vigna: "Broadword implementation of
 * rank/select queries", 2008), the bit by halves.  It has no branch, as each
 * would be mispredicted.
 */

static inline unsigned
us_select_word(uint64_t v, unsigned i)
{
    unsigned  at, ones, right;
    uint64_t  twos, fours, sums, before;

    twos = v - (v >> 1 & 0x5555555555555555);
    fours = (twos & 0x3333333333333333) + (twos >> 2 & 0x3333333333333333);
    sums = ((fours + (fours >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101;

    /* bytes whose sum is not above i have their high bit */

    before = ((i * 0x0101010101010101 | 0x8080808080808080) - sums)
             & 0x8080808080808080;

    at = (unsigned) ((before >> 7) * 0x0101010101010101 >> 56) * 8;
    i -= (unsigned) (sums << 8 >> at) & 0xff;

    ones = (unsigned) (fours >> at) & 15;
    right = i >= ones;
    i -= right * ones;
    at += right * 4;

    ones = (unsigned) (twos >> at) & 3;
    right = i >= ones;
    i -= right * ones;
    at += right * 2;

    return at + (i >= (v >> at & 1));
}


/* the position of one number i of n words, or of their end */

static inline unsigned
us_nth_bit(const uint64_t *words, unsigned n, unsigned i)
{
    unsigned  w, ones;
    uint64_t  v;

    for (w = 0; w < n; w++) {
        v = us_acquire(&words[w]);
        ones = us_popcount(v);

        if (i < ones) {
            return w * 64 + us_select_word(v, i);
        }

        i -= ones;
    }

    return n * 64;
}


/* n < 64 bits from bit `at` on; they may lie in two words */

static inline uint64_t
us_packed_get(const uint64_t *words, unsigned at, unsigned n)
{
    unsigned  shift;
    uint64_t  v;

    words += at / 64;
    shift = at % 64;
    v = us_acquire(words) >> shift;

    if (shift + n > 64) {
        v |= us_acquire(words + 1) << (64 - shift);
    }

    return v & (((uint64_t) 1 << n) - 1);
}


/*
 * How many low bits of each id are packed, if the highest of n ids is id: so
 * many that the high bits are 2 to 3 for each.
 */

static inline unsigned
us_leaf_low(unsigned n, uint64_t id)
{
    unsigned  low;

    for (low = 0; (id + 1) >> (low + 1) >= n; low++) { /* void */ }

    return low;
}


/* the entries of a leaf of n words; 0 if the words cannot be those of one */
unsigned us_leaf_entries(const uint64_t *w, unsigned n, const us_leaf_t *leaf,
    us_entry_t *e);

/* the entries of a leaf; returns their number */
unsigned us_leaf_read(const us_arena_t *a, uint32_t address, us_entry_t *e,
    us_leaf_t *leaf);

/*
 * The smallest leaf for n entries, the highest of which is id: sets low and
 * size of l, which has its split bits.  -1: there is none.
 */
int us_leaf_measure(const us_arena_t *a, us_leaf_t *l, unsigned n,
    uint64_t id);

/*
 * Fills a leaf where no reader looks, which was measured for so many slots up
 * to id and may be larger, with n entries.
 */
void us_leaf_write_locked(us_arena_t *a, uint32_t address, us_leaf_t *l,
    const us_entry_t *e, unsigned n, unsigned slots, uint64_t id);

/* intends to put n bytes of free memory, if they can be a leaf, on a list */
void us_leaf_carve_locked(us_arena_t *a, uint64_t offset, uint64_t n);

/* intends to free a leaf: its header first, see the invariants */
void us_leaf_free_locked(us_arena_t *a, uint32_t address);

/*
 * Makes staged leaf `number` with n entries.  Returns its address; 0 for an
 * empty leaf, and 0 with *failed: no room.
 */
uint32_t us_leaf_make_locked(us_arena_t *a, const us_entry_t *e, unsigned n,
    unsigned split, unsigned number, int *failed);

/*
 * Makes staged leaf 0 with the entries of another one, or none if its address
 * is 0, and room for so many more, up to id.  Returns its address; 0: no room.
 */
uint32_t us_leaf_grow_locked(us_arena_t *a, uint32_t address, unsigned more,
    uint64_t id);


#endif /* _US_LEAF_H_INCLUDED_ */
