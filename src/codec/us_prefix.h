
/*
 * The prefix cache: which record has this prefix?  See us_prefix.c.
 */


#ifndef _US_PREFIX_H_INCLUDED_
#define _US_PREFIX_H_INCLUDED_


#include "../zone/us_arena.h"


#define US_PREFIX_MIN   8             /* bytes, with the class */
#define US_PREFIXES     16            /* of a text, the longest ones */


typedef struct {
    uint32_t     hash;
    uint32_t     len;
} us_prefix_t;


/*
 * The prefixes of a text that end at a boundary, up to max bytes long; the
 * shortest first.  Returns their number.  16 bytes past the text can be read.
 */
unsigned us_prefixes(const us_arena_t *a, const uint8_t *text, size_t len,
    size_t max, us_prefix_t out[US_PREFIXES]);

/*
 * The record that may have this prefix, below `next`; or US_STORE_NO_ID.  Only
 * a hint.
 */
uint64_t us_prefix_find(const us_arena_t *a, const us_prefix_t *p,
    uint64_t next);
void us_prefix_prefetch(const us_arena_t *a, const us_prefix_t *p, unsigned n);

/*
 * Under the lock, nothing intended: those of n prefixes that are longer than
 * cut, which the record itself supplies, lead to record id.
 */
void us_prefix_put_locked(us_arena_t *a, const us_prefix_t *p, unsigned n,
    unsigned cut, uint64_t id);
void us_prefix_grow_locked(us_arena_t *a);

/*
 * The cache as bytes, for a dump: how many there are, and those from `at` on,
 * while others write.  Restoring one needs the hash key that it had, and
 * nobody else at work; -1: it cannot be, or there is no room.  No piece may
 * be longer than US_PREFIX_PIECE, or begin but at a multiple of it.
 */
#define US_PREFIX_PIECE  8192
#define US_PREFIX_MAX    ((uint64_t) 4 << 20)  /* bytes */

uint64_t us_prefix_bytes(const us_arena_t *a);
void us_prefix_copy(const us_arena_t *a, uint64_t at, uint8_t *p, size_t len);
int us_prefix_restore(us_arena_t *a, uint64_t bytes);
int us_prefix_paste(us_arena_t *a, uint64_t at, const uint8_t *p, size_t len);


#endif /* _US_PREFIX_H_INCLUDED_ */
