
/*
 * Two hash functions for URLs: one of the site, one of the path, to divide
 * the URLs of a crawl among nodes.  Not keyed: everybody gets the same values,
 * so that clients may compute them; nothing in the store depends on them.
 */


#ifndef _US_TWO_HASH_H_INCLUDED_
#define _US_TWO_HASH_H_INCLUDED_


#include "us_normalize.h"


#define US_SITE_HASH_BITS  21
#define US_PATH_HASH_BITS  15


typedef struct {
    uint32_t      site;               /* below 2^21 */
    uint32_t      path;               /* below 2^15 */
} us_two_hash_t;


/* of a site, as GET /site has it: lower case, without a mergeable www. */
uint32_t us_site_hash(us_str_t site);

/* of all that follows the host: path and query */
uint32_t us_path_hash(us_str_t path);

/*
 * Both, of a canonical URL.  Their sum, modulo the number of nodes, is the node
 * that it belongs to: by the site alone the largest sites decide the load
 * (bench/hash).
 */
us_two_hash_t us_two_hash(const us_canon_t *canon);


#endif /* _US_TWO_HASH_H_INCLUDED_ */
