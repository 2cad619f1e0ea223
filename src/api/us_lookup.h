
/*
 * GET /site/HOST and GET /prefix: the site that a client names, and the
 * replies.
 *
 *     /site     {"site", "first", "spelling", "www", ["urls", "last"]}
 *     /prefix   {"id", "status", "url"}, or ID STATUS URL with tabs between
 */


#ifndef _US_LOOKUP_H_INCLUDED_
#define _US_LOOKUP_H_INCLUDED_


#include "us_media.h"
#include "../input/us_json.h"
#include "../store/us_store.h"
#include "../url/us_normalize.h"


/* bytes of a client's name for a site, at most, and of the buffer for it */
#define US_LOOKUP_NAME  512
#define US_LOOKUP_BUF   (US_LOOKUP_NAME + 8)

/*
 * A host in any spelling, perhaps with "www." or a port: us_canon_site(canon)
 * is the key of its site.  That lies in buf or in ws.  0; -1: it is no host.
 */
int us_lookup_site(const us_norm_t *norm, us_norm_ws_t *ws, us_str_t name,
    uint8_t buf[US_LOOKUP_BUF], us_canon_t *canon);

/* bytes of a reply about a site, of the URL of a prefix */
#define us_lookup_site_max(key)   (us_json_quoted_max(key)                    \
                                   + us_json_quoted_max(4 + (key)) + 256)
#define us_lookup_url_max(url)    (us_json_quoted_max(url) + 64)

/* counts: the store has an index of sites */
uint8_t *us_lookup_site_reply(uint8_t *p, us_str_t key,
    const us_store_site_t *site, int counts);

/* NULL: nothing that is stored begins like the URL */
uint8_t *us_lookup_prefix_reply(uint8_t *p, us_format_t format, uint64_t id,
    const us_str_t *url);


#endif /* _US_LOOKUP_H_INCLUDED_ */
