
/*
 * Bits in bytes, the lowest bit of a byte first.
 *
 *     us_bits_t      the bits of a record: found at a place, of known length
 *     us_bitin_t     reads bits, one field after the other
 *     us_bitout_t    writes bits
 *
 * Bits are loaded in whole words: up to US_BITS_SLACK bytes past the end must
 * be readable.  Their contents do not matter.
 */


#ifndef _US_BIT_H_INCLUDED_
#define _US_BIT_H_INCLUDED_


#include "us_atomic.h"


/* bits are read in words: that many bytes after their end can be read */
#define US_BITS_SLACK      8


typedef uint64_t  us_unaligned_t  __attribute__((aligned(1), may_alias));


us_unsynchronized uint64_t
us_load64(const uint8_t *p)
{
    return *(const us_unaligned_t *) p;
}


us_unsynchronized void
us_store64(uint8_t *p, uint64_t v)
{
    *(us_unaligned_t *) p = v;
}


/*
 * The bits of a record: they begin at bit `bit` (0 or 4) of *data, the lowest
 * bit of a byte first, and there are units * 4 of them.  Eight bytes past them
 * may be read, but mean nothing.
 */

typedef struct {
    const uint8_t  *data;
    unsigned        bit;
    uint32_t        units;
} us_bits_t;


/* n <= 56 bits from bit `at` on */

static inline uint64_t
us_bits(const us_bits_t *b, uint64_t at, unsigned n)
{
    at += b->bit;

    return us_load64(b->data + (at >> 3)) >> (at & 7)
           & (((uint64_t) 1 << n) - 1);
}


/* reads on from pos */

typedef struct {
    const uint8_t  *base;
    uint64_t        pos;              /* bits */
    uint64_t        end;
} us_bitin_t;


/* the bits from pos on, at least 57; bits past the end mean nothing */

static inline uint64_t
us_bitin_peek(const us_bitin_t *b)
{
    return us_load64(b->base + (b->pos >> 3)) >> (b->pos & 7);
}


/*
 * Writes bits.  The caller has made sure that there is room, and for
 * US_BITS_SLACK bytes more, which are written too.
 */

typedef struct {
    uint8_t   *p;
    uint64_t   acc;                   /* n bits */
    unsigned   n;                     /* less than 8 between the calls */
} us_bitout_t;


static inline void
us_bitout_put(us_bitout_t *o, uint32_t bits, unsigned n)
{
    o->acc |= (uint64_t) bits << o->n;
    o->n += n;

    us_store64(o->p, o->acc);

    o->p += o->n / 8;
    o->acc >>= o->n & ~7u;
    o->n &= 7;
}


#endif /* _US_BIT_H_INCLUDED_ */
