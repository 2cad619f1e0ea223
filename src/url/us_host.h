
/*
 * The host parser of the WHATWG URL standard (section 3.5): domains, IPv4 in
 * all its spellings, IPv6, opaque hosts of schemes that are not special.
 */


#ifndef _US_HOST_H_INCLUDED_
#define _US_HOST_H_INCLUDED_


#include "us_normalize.h"


/*
 * Domain to ASCII (UTS 46, as the standard asks for it), by ICU.  One handle
 * for each normalizer, opened before workers fork; it is read-only and may be
 * used by any number of threads.  Only hosts with a non-ASCII byte come here.
 */

typedef struct UIDNA  us_idna_t;

us_idna_t *us_idna_open(void);
void us_idna_close(us_idna_t *idna);

/*
 * host is UTF-8; out has size bytes.  Returns the length written, or -1: the
 * host is no domain, or does not fit.
 */
ssize_t us_idna_to_ascii(const us_idna_t *idna, us_str_t host, uint8_t *out,
    size_t size);

/* the version of the tables of the library that is linked, e.g. "15.0" */
#define US_IDNA_VERSION_LEN  20
void us_idna_unicode(char out[US_IDNA_VERSION_LEN]);


/* no host that ICU writes is longer; there are no limits in the standard */
#define US_HOST_MAX  US_URL_MAX

/*
 * Nor is a longer one given to ICU, whose time grows with the square of a
 * label: 53 ms for 28 KB.  Any name that DNS could know has less, in UTF-8.
 */
#define US_IDNA_MAX  1024


/*
 * Parse [p, end) and write the serialized host to *out, which has room for
 * 3 * (end - p) + US_HOST_MAX bytes, and move *out past it.  tmp has room for
 * as many bytes as [p, end).
 */

us_verdict_t us_host_domain(const us_idna_t *idna, const uint8_t *p,
    const uint8_t *end, uint8_t **out, uint8_t *tmp);
us_verdict_t us_host_opaque(const uint8_t *p, const uint8_t *end,
    uint8_t **out);
us_verdict_t us_host_ipv6(const uint8_t *p, const uint8_t *end,
    uint8_t **out);

/* the last label is a number: such a host is an IPv4 address or an error */
int us_host_ends_in_number(const uint8_t *p, const uint8_t *end);


#endif /* _US_HOST_H_INCLUDED_ */
