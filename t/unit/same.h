
/*
 * Whether two stores have the same content.  For tests of replays and dumps.
 */


#ifndef _SAME_H_INCLUDED_
#define _SAME_H_INCLUDED_


#include "us_base.h"
#include "store/us_store.h"
#include "marks.h"

#include <stdio.h>


/* what differs at an id: NULL if nothing does */

static inline const char *
same_id(us_store_t *a, us_store_t *b, uint64_t id)
{
    size_t             la, lb;
    uint8_t            ua[US_URL_MAX + 8], ub[US_URL_MAX + 8];
    unsigned           m;
    us_store_item_t    it;
    us_store_status_t  status;

    status = us_store_get(a, id, ua, &la);

    if (us_store_get(b, id, ub, &lb) != status
        || (status == US_OK && (la != lb || memcmp(ua, ub, la) != 0)))
    {
        return "text of";
    }

    for (m = 0; m < us_store_nmarks(a); m++) {
        if (mark_has(a, m, id) != mark_has(b, m, id)) {
            return "mark of";
        }
    }

    if (us_store_claimed(a, id) != us_store_claimed(b, id)) {
        return "claim of";
    }

    if (us_store_first_of_site(a, id) != us_store_first_of_site(b, id)) {
        return "site of";
    }

    if (status != US_OK) {
        return NULL;
    }

    memset(&it, 0, sizeof(it));
    it.url = (us_str_t) { la, ua };
    us_store_seen(b, &it, 1);

    return it.status == US_SEEN && it.id == id ? NULL : "not seen:";
}


/*
 * What differs first, and *at which number: NULL if nothing does.  Of the sites
 * s0.test, s1.test and so on, so many are compared.
 */

static inline const char *
same_store(us_store_t *a, us_store_t *b, unsigned sites, uint64_t *at)
{
    char               host[32];
    us_str_t           name;
    const char        *what;
    us_store_info_t    ia, ib;
    us_store_site_t    sa, sb;
    us_store_status_t  status;

    us_store_info(a, &ia);
    us_store_info(b, &ib);
    *at = ib.urls;

    if (ia.urls != ib.urls || ia.deleted != ib.deleted || ia.sites != ib.sites)
    {
        return "counters";
    }

    for (*at = 0; *at < ia.urls; (*at)++) {
        what = same_id(a, b, *at);

        if (what) {
            return what;
        }
    }

    for (*at = 0; *at < sites; (*at)++) {
        name.len = (size_t) sprintf(host, "s%u.test", (unsigned) *at);
        name.data = (uint8_t *) host;
        status = us_store_site(a, name, 1, &sa);

        if (us_store_site(b, name, 1, &sb) != status
            || (status == US_OK
                && (sa.first != sb.first || sa.last != sb.last
                    || sa.urls != sb.urls || sa.spelling != sb.spelling)))
        {
            return "site";
        }
    }

    return NULL;
}


/* of the sets, which are in any order, their numbers and members */

static inline uint64_t
same_sets_sum(us_store_t *s)
{
    uint32_t              row;
    uint64_t              id, one, sum;
    us_store_set_info_t   info;

    for (row = 0, sum = 0; us_store_set_info(s, &row, &info); sum += one) {
        one = info.set.number * 0x9e3779b97f4a7c15;

        for (id = 0; id < us_store_next_id(s); id++) {
            one = (one ^ us_store_set_has(s, info.set, id))
                  * 0x100000001b3;
        }
    }

    return sum;
}


#endif /* _SAME_H_INCLUDED_ */
