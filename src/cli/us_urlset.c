
/*
 * Two sets of lines:
 *
 *     urls     'h' or 's', rest     rest: the URL from its host on, less a
 *                                   mergeable "www."
 *     sites    host[:port]          with a number: whether it has a "www."
 *
 * Whether "www." is mergeable depends on the host without it, so all URLs with
 * one rest agree on it, and the number of a site suffices to write its URLs.
 *
 * The letter of the scheme overwrites the byte before rest, which is the last
 * byte of "//" or of "www.".
 */


#include "us_urlset.h"
#include "../store/us_sites.h"

#include <stdlib.h>


#define US_URLSET_GROUP  256


struct us_urlset_s {
    us_lineset_t  *urls;
    us_lineset_t  *sites;
    size_t         limit;
};


us_urlset_t *
us_urlset_create(size_t limit, int counting)
{
    us_urlset_t  *set;

    set = calloc(1, sizeof(us_urlset_t));
    if (set == NULL) {
        return NULL;
    }

    set->limit = limit ? limit : SIZE_MAX;
    set->urls = us_lineset_create(limit, counting);
    set->sites = us_lineset_create(limit, 1);

    if (set->urls == NULL || set->sites == NULL) {
        us_urlset_destroy(set);
        return NULL;
    }

    return set;
}


void
us_urlset_destroy(us_urlset_t *set)
{
    if (set->urls) {
        us_lineset_destroy(set->urls);
    }

    if (set->sites) {
        us_lineset_destroy(set->sites);
    }

    free(set);
}


void
us_urlset_progress(us_urlset_t *set, double share)
{
    us_lineset_progress(set->urls, share);
}


/* both sets draw on one limit */

static void
us_urlset_share(us_urlset_t *set)
{
    size_t  urls, sites;

    urls = us_lineset_memory(set->urls);
    sites = us_lineset_memory(set->sites);

    us_lineset_limit(set->urls, set->limit > sites ? set->limit - sites : 0);
    us_lineset_limit(set->sites, set->limit > urls ? set->limit - urls : 0);
}


/* spells the site as its first URL does, which may be this one; 0 or -1 */

static int
us_urlset_spell(us_urlset_t *set, us_store_item_t *item)
{
    uint32_t  www;

    www = item->spelling & US_SPELLING_WWW;

    if (us_lineset_number(set->sites, us_site(item->rest), &www) == -1) {
        return -1;
    }

    item->spelling = (item->spelling & ~US_SPELLING_WWW) | www;

    return 0;
}


static size_t
us_urlset_add_group(us_urlset_t *set, us_store_item_t *items, size_t n)
{
    size_t    i, done;
    uint8_t  *key, answers[US_URLSET_GROUP];
    us_str_t  keys[US_URLSET_GROUP];

    for (i = 0; i < n; i++) {
        us_store_item_split(&items[i]);

        key = (uint8_t *) items[i].rest.data - 1;
        *key = items[i].spelling & US_SPELLING_HTTPS ? 's' : 'h';

        keys[i].data = key;
        keys[i].len = items[i].rest.len + 1;
    }

    us_urlset_share(set);

    done = us_lineset_add(set->urls, keys, n, answers);

    us_urlset_share(set);

    for (i = 0; i < done; i++) {
        items[i].status = answers[i] ? US_NEW : US_SEEN;

        if (answers[i] && us_urlset_spell(set, &items[i]) == -1) {
            return i;
        }
    }

    return done;
}


size_t
us_urlset_add(us_urlset_t *set, us_store_item_t *items, size_t n)
{
    size_t  m, done, added;

    for (done = 0; done < n; done += m) {
        m = n - done < US_URLSET_GROUP ? n - done : US_URLSET_GROUP;

        added = us_urlset_add_group(set, items + done, m);

        if (added < m) {
            return done + added;
        }
    }

    return n;
}


int
us_urlset_walk(us_urlset_t *set, size_t *pos, us_store_item_t *item,
    uint32_t *count)
{
    us_str_t  key;

    if (!us_lineset_walk(set->urls, pos, &key, count)) {
        return 0;
    }

    item->spelling = key.data[0] == 's' ? US_SPELLING_HTTPS : 0;
    item->rest.data = key.data + 1;
    item->rest.len = key.len - 1;

    /* its site is known: this needs no memory */

    return us_urlset_spell(set, item) == 0;
}
