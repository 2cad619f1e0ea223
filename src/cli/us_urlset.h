
/*
 * An exact set of canonical URLs, equal as a zone with www=first takes them:
 * "www." makes no difference where it is mergeable, and the first URL of a site
 * decides how the site is written.
 */


#ifndef _US_URLSET_H_INCLUDED_
#define _US_URLSET_H_INCLUDED_


#include "us_lineset.h"
#include "../store/us_store.h"


typedef struct us_urlset_s  us_urlset_t;


/* as us_lineset_create() */
us_urlset_t *us_urlset_create(size_t limit, int counting);
void us_urlset_destroy(us_urlset_t *set);

/*
 * Adds items, of which the caller has filled url and merge; the texts are
 * scratch from then on.  Settles their status, US_NEW or US_SEEN, and the
 * spelling of the new ones: us_store_item_url().  Returns n, or fewer if there
 * was no memory for the next one (errno ENOMEM, or ENOSPC for the limit).
 */
size_t us_urlset_add(us_urlset_t *set, us_store_item_t *items, size_t n);

/* as us_lineset_progress() */
void us_urlset_progress(us_urlset_t *set, double share);

/* as us_lineset_walk(); item is one for us_store_item_url() */
int us_urlset_walk(us_urlset_t *set, size_t *pos, us_store_item_t *item,
    uint32_t *count);


#endif /* _US_URLSET_H_INCLUDED_ */
