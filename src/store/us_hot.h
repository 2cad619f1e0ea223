
/*
 * The hot table: what a process has looked up last, exactly.
 *
 * It holds texts with the number that the store has found for each.  Links of
 * pages repeat: most are answered from this table, without the store's hash,
 * its index and its records.  The table does not notice deletes: the caller
 * checks that the number which it returns is still valid.
 *
 * A table is private to a thread.  Several stores can share one: each entry
 * belongs to an owner, and is returned for that owner only.
 */


#ifndef _US_HOT_H_INCLUDED_
#define _US_HOT_H_INCLUDED_


#include "../us_base.h"


#ifdef __cplusplus
extern "C" {
#endif


typedef struct us_hot_s  us_hot_t;


/* bytes of the smallest table */
#define US_HOT_MIN    (64 << 10)

/* the greatest value that a table can keep: 52 bits */
#define US_HOT_VALUE  (((uint64_t) 1 << 52) - 1)


/* what is asked for: filled by us_hot_key() */

typedef struct {
    us_str_t    text;                 /* at most US_URL_MAX bytes */
    uint64_t    label;                /* the owner, the length, the domain */
    uint64_t    hash;
} us_hot_key_t;


/*
 * A table of at most size bytes, all of it, at least US_HOT_MIN; memory is
 * taken as it fills, 2 MB at a time where the kernel gives huge pages.  NULL:
 * out of memory, or too small.
 */
us_hot_t *us_hot_create(size_t size);
void us_hot_destroy(us_hot_t *h);

/* overwrites all of it: it is empty then */
void us_hot_wipe(us_hot_t *h);

/* a new owner; an owner that is gone leaves entries that nobody finds */
uint32_t us_hot_owner(us_hot_t *h);

/*
 * A key, and what it will touch is prefetched: domains (below 16) keep equal
 * texts of one owner apart.  The text stays alive while the key is used.
 */
void us_hot_key(const us_hot_t *h, us_hot_key_t *key, uint32_t owner,
    unsigned domain, us_str_t text);

/* the next step of a look-up, after which us_hot_find() misses no cache line */
void us_hot_prefetch(const us_hot_t *h, const us_hot_key_t *key);

/* 1: found, with its value and its class (below 16) */
int us_hot_find(us_hot_t *h, const us_hot_key_t *key, uint64_t *value,
    unsigned *klass);

/* enters or replaces; the oldest ones give way */
void us_hot_put(us_hot_t *h, const us_hot_key_t *key, uint64_t value,
    unsigned klass);


#ifdef __cplusplus
}
#endif


#endif /* _US_HOT_H_INCLUDED_ */
