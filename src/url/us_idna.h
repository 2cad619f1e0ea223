
/*
 * Domain to ASCII (UTS 46, as the WHATWG URL standard asks for it), by ICU.
 *
 * One handle for each normalizer, opened before workers fork; it is read-only
 * and may be used by any number of threads.  Only hosts with a non-ASCII byte
 * come here.
 */


#ifndef _US_IDNA_H_INCLUDED_
#define _US_IDNA_H_INCLUDED_


#include "../us_base.h"


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


#endif /* _US_IDNA_H_INCLUDED_ */
