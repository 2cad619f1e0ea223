
/*
 * An exact set of lines, any bytes, in the order in which they came.
 */


#ifndef _US_LINESET_H_INCLUDED_
#define _US_LINESET_H_INCLUDED_


#include "../store/us_store.h"


typedef struct us_lineset_s  us_lineset_t;


/*
 * limit: bytes that it may take, 0: no limit.  counting: keeps how often
 * each line came.  NULL: out of memory.
 */
us_lineset_t *us_lineset_create(size_t limit, int counting);
void us_lineset_destroy(us_lineset_t *set);

/*
 * Adds; answers[i] is 1 if lines[i] was new.  Returns n, or fewer if there was
 * no memory for the next one (errno ENOMEM, or ENOSPC for the limit).
 */
size_t us_lineset_add(us_lineset_t *set, const us_str_t *lines, size_t n,
    uint8_t *answers);

/*
 * How much of the input has been added, 0 to 1: the next growth takes the rest
 * into account.  0: unknown.
 */
void us_lineset_progress(us_lineset_t *set, double share);

/*
 * The lines in order: *pos is 0 first, then what the last call left there.
 * Returns 0 after the last one.  *count is 1 without counting.
 */
int us_lineset_walk(const us_lineset_t *set, size_t *pos, us_str_t *line,
    uint32_t *count);


/*
 * An exact set of canonical URLs, equal as a zone with www=first takes them:
 * "www." makes no difference where it is mergeable, and the first URL of a site
 * decides how the site is written.
 */

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


#endif /* _US_LINESET_H_INCLUDED_ */
