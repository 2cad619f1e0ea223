
/*
 * The slot of a URL: one of 4,096, to which the shards of a cluster are
 * assigned (us_map.h).
 *
 *     https://user@www.example.com:8080/a?b      the canonical URL
 *                      `-------------'           key=site
 *                      `------------------'      key=url
 *
 *     slot = crc32(key) >> 20
 *
 * Scheme, user and one leading "www." are never part of the key, whatever
 * urlstore_www says: all spellings of one URL have one slot.  In other
 * languages, what is left out is ^https?://([^/?#]*@)?(www\.)?, and crc32 is
 * the one of zlib.
 */


#ifndef _US_SLOT_H_INCLUDED_
#define _US_SLOT_H_INCLUDED_


#include "../us_base.h"


#define US_SLOTS  4096


typedef enum {
    US_KEY_URL = 0,
    US_KEY_SITE                       /* host and port */
} us_key_t;


/* the key of a canonical URL; points into url */
us_str_t us_slot_key(us_key_t kind, us_str_t url);

/* crc32 (IEEE 802.3, as in zlib) of the key, its upper 12 bits */
unsigned us_slot(us_str_t key);


/*
 * The URL by which a site (host and port) has its slot: its front page.  It is
 * in buf, of US_SLOT_FRONT bytes.
 */
#define US_SLOT_FRONT  (sizeof("http:///") + US_URL_MAX)

us_str_t us_slot_front(us_str_t site, uint8_t *buf);


static inline unsigned
us_slot_of(us_key_t kind, us_str_t url)
{
    return us_slot(us_slot_key(kind, url));
}


#endif /* _US_SLOT_H_INCLUDED_ */
