
/*
 * The host parser of the WHATWG URL standard (section 3.5): domains, IPv4 in
 * all its spellings, IPv6, opaque hosts of schemes that are not special.
 */


#ifndef _US_HOST_H_INCLUDED_
#define _US_HOST_H_INCLUDED_


#include "us_normalize.h"


/* no host is longer as ASCII; there are no limits in the standard */
#define US_HOST_MAX  US_URL_MAX

/*
 * Parse [p, end) and write the serialized host to *out, which has room for
 * 3 * (end - p) + US_HOST_MAX bytes, and move *out past it.  tmp has room for
 * as many bytes as [p, end).
 */

us_verdict_t us_host_domain(const uint8_t *p, const uint8_t *end,
    uint8_t **out, uint8_t *tmp);
us_verdict_t us_host_opaque(const uint8_t *p, const uint8_t *end,
    uint8_t **out);
us_verdict_t us_host_ipv6(const uint8_t *p, const uint8_t *end,
    uint8_t **out);

/* the last label is a number: such a host is an IPv4 address or an error */
int us_host_ends_in_number(const uint8_t *p, const uint8_t *end);


#endif /* _US_HOST_H_INCLUDED_ */
