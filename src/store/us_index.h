
/*
 * The index: keyed hash -> ids that may have it.  See us_index.c.
 */


#ifndef _US_INDEX_H_INCLUDED_
#define _US_INDEX_H_INCLUDED_


#include "../zone/us_arena.h"


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
int us_index_stale(const us_arena_t *a, const us_probe_t *p);

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

/* makes room for n more entries of this hash, none of which is above id */
int us_index_reserve_locked(us_arena_t *a, uint64_t hash, uint64_t id,
    unsigned n);

/* whether two hashes have the same leaf */
int us_index_same(const us_arena_t *a, uint64_t h1, uint64_t h2);

/* after us_arena_enter(): frees the leaves that a killed writer had staged */
void us_index_enter(us_arena_t *a);


/* Under the lock: intends; the caller commits. */

/* after us_index_reserve_locked(); no id in the index is above this one */
void us_index_put_locked(us_arena_t *a, uint64_t hash, uint64_t id);

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


#endif /* _US_INDEX_H_INCLUDED_ */
