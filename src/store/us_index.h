
/*
 * The index: keyed hash -> ids that may have it.  See us_index.c.
 */


#ifndef _US_INDEX_H_INCLUDED_
#define _US_INDEX_H_INCLUDED_


#include "us_leaf.h"


void us_index_format(us_arena_t *a);


/* a look-up in progress; it has the matches of so many slots */

#define US_PROBE_SLOTS   128

typedef struct {
    uint64_t         path;            /* of the hash: which leaf */
    uint64_t         leaf;            /* its number */
    uint64_t         leaves;          /* their number then */
    uint64_t         header;
    const uint64_t  *words;           /* NULL: an empty leaf */
    uint32_t         address;
    uint64_t         matches;         /* bits: slots from `slot` on */
    uint64_t         more;            /* the 64 after those */
    unsigned         slot;
    uint8_t          fingerprint;
} us_probe_t;


/*
 * Without a lock.
 *
 *     us_index_start()    reads where the leaf lies and asks for its lines
 *     us_index_next()     1 and the next candidate in ascending order, else 0
 *     us_index_stale()    after nothing was found: 1 if that proves nothing,
 *                         because a writer was at work: start again
 *
 * A candidate is any id: it counts only if it is below next_id, its record is
 * the text that was asked for, and it is not deleted.
 *
 * Many look-ups go in smaller steps, each of which asks for the lines that the
 * following one reads:
 *
 *     us_index_aim()      which leaf
 *     us_index_reach()    where it lies
 *     us_index_scan()     its fingerprints
 *     us_index_open()     0: there is no candidate (any more)
 *     us_index_ask()      asks for what us_index_next() reads, if it is open
 */
void us_index_start(const us_arena_t *a, us_probe_t *p, uint64_t hash);
int us_index_next(const us_arena_t *a, us_probe_t *p, uint64_t *id);

void us_index_aim(const us_arena_t *a, us_probe_t *p, uint64_t hash);
void us_index_reach(const us_arena_t *a, us_probe_t *p);
void us_index_scan(us_probe_t *p);
void us_index_ask(const us_probe_t *p);

static inline int
us_index_open(const us_probe_t *p)
{
    return (p->matches | p->more) != 0
           || (p->header & 0xff) > US_PROBE_SLOTS + p->slot;
}


/*
 * The hashes under which id may be found: as a URL, and as the first of its
 * site.
 */

typedef struct {
    uint64_t         url;
    uint64_t         site;
} us_hashes_t;

/* all n at once, so that their cache misses overlap */
typedef void (*us_index_hash_pt)(void *data, const uint64_t *ids, unsigned n,
    us_hashes_t *hashes);


/* Under the lock, nothing intended; 0, or -1: no room, nothing was changed. */

/* splits one leaf, if it is time; that there is no room for it does no harm */
void us_index_grow_locked(us_arena_t *a, us_index_hash_pt hash, void *data);

/* room for entries of the URL, and of the site, of id or of one below it */
int us_index_reserve_locked(us_arena_t *a, const us_hashes_t *hashes,
    uint64_t id, int both);


/* Under the lock: intends; the caller commits. */

/* after us_index_reserve_locked(); no id in the index is above this one */
void us_index_put_locked(us_arena_t *a, const us_hashes_t *hashes, uint64_t id,
    int both);

/*
 * Forgetting the entry of a deleted URL: first, nothing intended, a copy of its
 * leaf without it is staged; then the copy takes the leaf's place.  There need
 * not be such an entry.  Without room for the copy the entry stays until its
 * leaf is hashed again: a look-up that is led to it finds the id deleted.
 */

typedef struct {
    uint64_t         leaf;
    uint32_t         address;         /* of the leaf; 0: nothing to do */
    uint32_t         copy;            /* the leaf without the entry */
} us_removal_t;

void us_index_remove_prepare_locked(us_arena_t *a, uint64_t hash, uint64_t id,
    us_removal_t *r);
void us_index_remove_locked(us_arena_t *a, const us_removal_t *r);

/*
 * An image: all leaves, copied for a dump while others add and delete.
 *
 *     | number of words | the words of a leaf |  ...  leaves n, n + 1, ...
 *
 * us_index_image() copies some leaves with consecutive numbers into im->words,
 * in the order of their paths, and returns 1, or 0 if there are no more.  It is
 * called under the lock, with im zero at first.  The memory is the caller's,
 * and bounded.
 *
 * What was in the index when the image was begun and was not removed since is
 * in it.  Ids that were given meanwhile may be there.
 */

#define US_IMAGE_LEAVES  128          /* copied in one hold of the lock */
#define US_IMAGE_WORDS   (US_IMAGE_LEAVES * (1 + (128 << 5) / 8))

typedef struct {
    uint64_t         path;            /* of the next one */
    unsigned         done:1;
    uint64_t         leaf;            /* number of the first one copied */
    size_t           n;               /* words */
    uint64_t         words[US_IMAGE_WORDS];
} us_index_image_t;

int us_index_image(const us_arena_t *a, us_index_image_t *im);


/* For us_bulk.c: the directory, see us_index.c. */

static inline uint32_t *
us_directory_chunk(const us_arena_t *a, uint64_t number)
{
    return us_area_entry(a, US_AREA_DIRECTORY,
                         number & (a->head->area[US_AREA_DIRECTORY].max - 1));
}


static inline uint64_t
us_directory_chunk_number(const us_arena_t *a, uint64_t leaf)
{
    return leaf >> (a->chunk_shift - 2);
}


/* NULL: no leaf was ever made there */

static inline uint32_t *
us_directory_word(const us_arena_t *a, uint64_t leaf)
{
    uint32_t   chunk;

    /*
     * Acquire: a chunk was given its place after it was zeroed, or after the
     * leaves that it led to before were gone; its words must not be read as
     * they were then.
     */

    chunk = __atomic_load_n(us_directory_chunk(a,
                                          us_directory_chunk_number(a, leaf)),
                            __ATOMIC_ACQUIRE);
    if (chunk == 0) {
        return NULL;
    }

    return (uint32_t *) (a->base + ((uint64_t) chunk << a->chunk_shift))
           + (leaf & (((uint64_t) 1 << (a->chunk_shift - 2)) - 1));
}


static inline uint32_t
us_directory_get(const us_arena_t *a, uint64_t leaf)
{
    uint32_t  *word;

    word = us_directory_word(a, leaf);

    /*
     * Acquire: the leaf was filled before its address was released; a reader
     * that follows the address must not see the leaf as it was before.
     */

    return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
}


static inline int
us_index_stale(const us_arena_t *a, const us_probe_t *p)
{
    uint64_t  n;

    /*
     * The order of the three loads, each of them an acquire, is that of the
     * proof at the top of us_index.c.  Were the header looked at before the
     * directory, the leaf could be freed and given back to the same place of
     * the directory between the two, and nobody would notice.  None of the
     * loads of the leaf's words moves below either: each is an acquire, or
     * stands before the fence of us_leaf_matches().
     */

    n = us_acquire(&a->head->leaves);

    if (n != p->leaves && us_leaf_number(n, p->path) != p->leaf) {
        return 1;
    }

    if (us_directory_get(a, p->leaf) != p->address) {
        return 1;
    }

    return p->words && (us_acquire(p->words) ^ p->header) >> 32 != 0;
}


/* after us_arena_enter(): frees the leaves that a killed writer had staged */

static inline void
us_index_enter(us_arena_t *a)
{
    unsigned  i;

    for (i = 0; i < US_STAGED; i++) {
        if (a->head->staged[i]) {
            us_leaf_free_locked(a, a->head->staged[i]);
            us_intend_locked(a, &a->head->staged[i], 0);
            us_commit_locked(a);
        }
    }
}


/* chunks for the words of leaves n .. 2n-1 */

static inline uint64_t
us_directory_chunks(const us_arena_t *a, uint64_t n)
{
    return us_directory_chunk_number(a, 2 * n - 1)
           - us_directory_chunk_number(a, n) + 1;
}


/*
 * Under the lock, nothing intended: makes sure that there is a word for this
 * leaf, the last one or the next.  -1: no room, nothing was changed.
 */
int us_directory_extend_locked(us_arena_t *a, uint64_t leaf);

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


#endif /* _US_INDEX_H_INCLUDED_ */
