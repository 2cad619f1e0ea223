
/*
 * For tests: mark m of an id is set, cleared, or asked for.  It is the set of
 * the mark's name.
 */


#ifndef _MARKS_H_INCLUDED_
#define _MARKS_H_INCLUDED_


#include "store/us_store.h"


static inline us_store_set_t
mark_set(us_store_t *s, unsigned m)
{
    us_store_conf_t  conf;

    us_store_conf(s, &conf);

    return us_store_set(s, conf.marks[m]);
}


/* US_OK if it is so now */

static inline us_store_status_t
mark_put(us_store_t *s, unsigned m, uint64_t id, int on, uint64_t *lsn)
{
    us_store_claim_t  c;

    c.id = id;
    *lsn = us_store_set_put(s, mark_set(s, m), &c, 1, on, NULL);

    return c.status == US_NEW || c.status == US_SEEN || c.status == US_UNSEEN
           ? US_OK : c.status;
}


static inline int
mark_has(us_store_t *s, unsigned m, uint64_t id)
{
    return us_store_set_has(s, mark_set(s, m), id);
}


#endif /* _MARKS_H_INCLUDED_ */
