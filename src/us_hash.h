
/*
 * SipHash-1-3: the keyed hash of everything that a stranger may choose.
 */


#ifndef _US_HASH_H_INCLUDED_
#define _US_HASH_H_INCLUDED_


#include "us_base.h"


/*
 * The same text under another domain is another text: sites and URLs live in
 * one index.  domain < 256.
 */

uint64_t us_hash(const uint8_t key[16], unsigned domain, const uint8_t *p,
    size_t len);


#endif /* _US_HASH_H_INCLUDED_ */
