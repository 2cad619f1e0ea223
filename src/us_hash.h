
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


/*
 * The same function with 128 bits of output, of a text in pieces.  Two texts
 * with one hash are found by about 2^64 tries, if the key is not known.
 */

typedef struct {
    uint64_t  v[4];
    uint64_t  rest;                   /* the last len & 7 bytes */
    uint64_t  len;
} us_hash128_t;


void us_hash128_init(us_hash128_t *h, const uint8_t key[16]);
void us_hash128_add(us_hash128_t *h, const uint8_t *p, size_t len);
void us_hash128_end(us_hash128_t *h, uint64_t out[2]);


#endif /* _US_HASH_H_INCLUDED_ */
