
/*
 * Keys: which ids were new to a request with an Idempotency-Key, and which
 * claims due, so that a retry with the key is answered so again: an add asks
 * us_keys_has() of each URL that is there (us_store_repeat() in us_add.c).
 *
 * The store knows a key by its name, 64 bits of a hash that its caller makes,
 * until the time that its request gave (keep=), or until newer entries have
 * taken its place: the memory is a ring of entries in the zone.
 *
 *     entries  | dead |.....|entry|entry|entry|entry| dead |   at % n
 *                            n - SLACK ago       end
 *     entry    | name | block | bits | until, next |
 *     bucket   the newest entry of its hash, as its `at` + 1; 0: there is none
 *     next     how far back the next older entry of the bucket is; 0: none
 *
 * `at` counts the entries since the zone was made.  A block is 64 ids that
 * follow one another, and bits says which of them.  So an entry has up to 64
 * ids of a batch, whose new ids mostly follow one another.
 *
 * A request's key is a word of the header, head->key.  While it is set, each
 * add and each claim is the key's: the bit is set by the commit that publishes
 * the id or the claim.  So a writer that is killed at any instruction leaves
 * neither without the other.  In the journal, one operation sets the word for
 * all that follows it, and a request without a key clears it before its first
 * add.  So an add needs no byte of its own, and a stream that is cut anywhere
 * has of each id what the store had.
 *
 * Readers take no lock.  A new entry is written in a slot whose entry has been
 * dead for at least SLACK - AT_ONCE entries, and is published by head->keys_end
 * and its bucket.  A reader that has copied an entry looks once more whether it
 * is dead.
 */


#ifndef _US_KEYS_H_INCLUDED_
#define _US_KEYS_H_INCLUDED_


#include "../zone/us_arena.h"


#define US_KEYS_SLACK    128
#define US_KEYS_AT_ONCE  64           /* claims of a key in one commit */


typedef enum {
    US_KEYS_NEW = 0,
    US_KEYS_IN,                       /* put into a set */
    US_KEYS_DUE,
    US_KEYS_ERASURE                   /* `id` is the number of one */
} us_keys_kind_t;


/* FORMAT: of the zone, and but for us_keys_next() of US_OP_KEYS */

typedef struct {
    uint64_t           name;
    uint64_t           block;         /* id / 64; the top 2 bits: kind */
    uint64_t           bits;
    uint64_t           last;          /* us_keys_until(), us_keys_next() */
} us_keys_entry_t;


/* s since 1970 */

static inline uint64_t
us_keys_until(const us_keys_entry_t *e)
{
    return (uint32_t) e->last;
}


/* entries back to the next one of the bucket; 0: none */

static inline uint64_t
us_keys_next(const us_keys_entry_t *e)
{
    return e->last >> 32;
}


/* of a handle: entries below `at` are dead at `now`; zeroed at first */

typedef struct {
    uint64_t           at;
    uint64_t           now;
} us_keys_past_t;


/*
 * Under the lock, before an add or a claim: what follows is that key's, or if
 * name is 0, no key's.  -1: the journal's ring is full.
 */
int us_keys_turn_locked(us_arena_t *a, uint64_t name, uint64_t until);

/*
 * Under the lock, in the commit that publishes an id, its claim, or that it is
 * in a set (else set is 0): intends that it is that of head->key.  No more than
 * US_KEYS_AT_ONCE in one commit.
 */
void us_keys_put_locked(us_arena_t *a, us_keys_kind_t kind, uint64_t set,
    uint64_t id);

/*
 * A replay's: puts an entry of a dump, and commits.  One without bits says that
 * others which live until then are forgotten.
 */
void us_keys_load_locked(us_arena_t *a, const us_keys_entry_t *e);

/* 1: e is the entry `at`; 0: it is dead, or not written so far */
int us_keys_read(const us_arena_t *a, uint64_t at, us_keys_entry_t *e);

/* the first entry that may live */
uint64_t us_keys_first(const us_arena_t *a);

/*
 * No id below it was new to a key that is known at `now`; may be too low.  Each
 * entry is passed over once by each handle.
 */
uint64_t us_keys_low(const us_arena_t *a, us_keys_past_t *past, uint64_t now);

/* whether an id was new, due or put in for a key that is known at `now` */
int us_keys_has(const us_arena_t *a, uint64_t name, us_keys_kind_t kind,
    uint64_t set, uint64_t id, uint64_t now);


#endif /* _US_KEYS_H_INCLUDED_ */
