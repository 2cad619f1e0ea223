
/*
 * Sites: host[:port] without a mergeable "www.".
 *
 * Each site has an entry in the index: the hash of the site's text, in a domain
 * of its own, leads to the id of the site's first URL.  If the store counts
 * URLs by site (sites=on), there is also an array of counters.  They are in the
 * order in which the sites came, so they are sorted by first id, and found by
 * binary search.
 *
 * FORMAT of a counter, 16 bytes: a word of 40 bits first id and the low 24
 * bits of the number of URLs, a word of 40 bits last id and the high 24.
 */


#ifndef _US_SITES_H_INCLUDED_
#define _US_SITES_H_INCLUDED_


#include "../zone/us_arena.h"


#define US_SITE_SIZE   16             /* bytes of a counter */


/* the site at the beginning of a record's rest */
us_str_t us_site(us_str_t rest);

/* the number of the counter of the site whose first URL is id */
uint64_t us_site_number(const us_arena_t *a, uint64_t first);

void us_site_read(const us_arena_t *a, uint64_t number, uint64_t *urls,
    uint64_t *last);

/* under the lock, nothing intended: room for one more counter */
int us_site_reserve_locked(us_arena_t *a);

/* intends a new counter for a site that begins with id */
void us_site_add_locked(us_arena_t *a, uint64_t id);

/* intends to count one URL more, id, or one less */
void us_site_count_locked(us_arena_t *a, uint64_t number, uint64_t id);
void us_site_uncount_locked(us_arena_t *a, uint64_t number);


#endif /* _US_SITES_H_INCLUDED_ */
