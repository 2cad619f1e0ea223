
/*
 * A parsed and serialized URL: one buffer and where its parts begin.
 *
 *   https://user:pass@example.com:1234/foo/bar?baz#quux
 *         |     |    |          | ^^^^|       |   |
 *         |     |    |          | |   |       |   `----- hash_start
 *         |     |    |          | |   |       `--------- search_start
 *         |     |    |          | |   `----------------- pathname_start
 *         |     |    |          | `--------------------- port
 *         |     |    |          `----------------------- host_end
 *         |     |    `---------------------------------- host_start (the @)
 *         |     `--------------------------------------- username_end
 *         `--------------------------------------------- protocol_end
 */


#ifndef _US_URL_H_INCLUDED_
#define _US_URL_H_INCLUDED_


#include "../us_base.h"


#ifdef __cplusplus
extern "C" {
#endif


#define US_URL_OMITTED  ((uint32_t) -1)


typedef struct {
    us_str_t      href;

    uint32_t      protocol_end;       /* after the ':' */
    uint32_t      username_end;
    uint32_t      host_start;         /* at the '@' if there is one */
    uint32_t      host_end;
    uint32_t      port;               /* US_URL_OMITTED: none shown */
    uint32_t      pathname_start;
    uint32_t      search_start;       /* at the '?', or US_URL_OMITTED */
    uint32_t      hash_start;         /* at the '#', or US_URL_OMITTED */
} us_url_t;


us_str_t us_url_hostname(const us_url_t *u);   /* without port */
us_str_t us_url_host(const us_url_t *u);       /* host, with :port if shown */
us_str_t us_url_pathname(const us_url_t *u);
us_str_t us_url_search(const us_url_t *u);     /* with the '?', or empty */


static inline int
us_url_has_authority(const us_url_t *u)
{
    return u->username_end > u->protocol_end;
}


#ifdef __cplusplus
}
#endif


#endif /* _US_URL_H_INCLUDED_ */
