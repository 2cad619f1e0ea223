
/*
 * Domain to ASCII: UTS #46 with the options of the WHATWG URL standard
 * (section 3.3, beStrict false).  A pure function of its tables, which are of
 * Unicode 17.0 and part of what a profile's version means: no host ever gets
 * another key on another system.
 */


#ifndef _US_IDNA_H_INCLUDED_
#define _US_IDNA_H_INCLUDED_


#include "../us_base.h"


/*
 * Longer hosts are no domains here: the time of Punycode grows with the square
 * of a label.  Any name that DNS could know has less bytes, in UTF-8.
 */
#define US_IDNA_MAX  1024

/*
 * host is UTF-8 of at most US_IDNA_MAX bytes; out has size bytes.  Returns the
 * length written, which is 0 if all letters were ignored, or -1: the host is
 * no domain, or does not fit.  It may be called by any number of threads and
 * needs 50 KB of the stack.
 */
ssize_t us_idna_to_ascii(us_str_t host, uint8_t *out, size_t size);


#endif /* _US_IDNA_H_INCLUDED_ */
