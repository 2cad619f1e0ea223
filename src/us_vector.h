
/*
 * Sixteen bytes at once.
 *
 *     us_bytes_t     16 bytes, with the compiler's operators: + - & | == <=
 *     us_load_bytes  from any address
 *     us_bits64()    a bit for each of 64 bytes that are 0 or 0xff
 *     us_bits16()    for each of 16
 *
 * gcc and clang make SSE2 or NEON of the operators.  Only the bits need other
 * instructions on each machine.
 *
 * A load of 16 bytes is no acquire: no such load exists.  On x86-64 loads are
 * made in order.  A weaker machine may make a later load first, and so one who
 * loads shared bytes, and then a word that says whether they were still the
 * right ones, puts us_fence() between (us_atomic.h).  The other direction, from
 * a word that was acquired to bytes that were written before, needs nothing.
 */


#ifndef _US_VECTOR_H_INCLUDED_
#define _US_VECTOR_H_INCLUDED_


#include "us_atomic.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif


typedef uint8_t   us_bytes_t  __attribute__((vector_size(16)));
typedef uint16_t  us_halves_t  __attribute__((vector_size(16)));
typedef uint64_t  us_longs_t  __attribute__((vector_size(16)));

typedef us_bytes_t  us_bytes_any_t  __attribute__((aligned(1), may_alias));


us_unsynchronized us_bytes_t
us_load_bytes(const void *p)
{
    return *(const us_bytes_any_t *) p;
}


/* the lowest bit is that of the first byte of a */

static inline uint64_t
us_bits64(us_bytes_t a, us_bytes_t b, us_bytes_t c, us_bytes_t d)
{
#if defined(__SSE2__)

    return (uint64_t) _mm_movemask_epi8((__m128i) a)
           | (uint64_t) _mm_movemask_epi8((__m128i) b) << 16
           | (uint64_t) _mm_movemask_epi8((__m128i) c) << 32
           | (uint64_t) _mm_movemask_epi8((__m128i) d) << 48;

#else

    static const us_bytes_t  bit = { 1, 2, 4, 8, 16, 32, 64, 128,
                                     1, 2, 4, 8, 16, 32, 64, 128 };

#if defined(__aarch64__)

    a = vpaddq_u8(vpaddq_u8(a & bit, b & bit), vpaddq_u8(c & bit, d & bit));

    return ((us_longs_t) vpaddq_u8(a, a))[0];

#else

    unsigned    i;
    uint64_t    bits;
    us_bytes_t  v[4] = { a, b, c, d };

    for (i = 0, bits = 0; i < 64; i++) {
        bits |= (uint64_t) (v[i / 16][i % 16] & bit[i % 8]) << (i & ~7u);
    }

    return bits;

#endif
#endif
}


static inline unsigned
us_bits16(us_bytes_t v)
{
#if defined(__SSE2__)
    return (unsigned) _mm_movemask_epi8((__m128i) v);
#else
    return us_bits64(v, v, v, v) & 0xffff;
#endif
}


/* the sum of 64 bytes */

static inline unsigned
us_sum64(us_bytes_t a, us_bytes_t b, us_bytes_t c, us_bytes_t d)
{
#if defined(__SSE2__)

    us_longs_t  sum;

    sum = (us_longs_t) _mm_sad_epu8((__m128i) a, _mm_setzero_si128())
          + (us_longs_t) _mm_sad_epu8((__m128i) b, _mm_setzero_si128())
          + (us_longs_t) _mm_sad_epu8((__m128i) c, _mm_setzero_si128())
          + (us_longs_t) _mm_sad_epu8((__m128i) d, _mm_setzero_si128());

    return (unsigned) (sum[0] + sum[1]);

#else

    us_longs_t   sums;
    us_halves_t  sum;

    sum = ((us_halves_t) a & 0xff) + ((us_halves_t) a >> 8)
          + ((us_halves_t) b & 0xff) + ((us_halves_t) b >> 8)
          + ((us_halves_t) c & 0xff) + ((us_halves_t) c >> 8)
          + ((us_halves_t) d & 0xff) + ((us_halves_t) d >> 8);
    sums = (us_longs_t) sum;

    return (unsigned) ((sums[0] + sums[1]) * 0x0001000100010001 >> 48);

#endif
}


/* from <= c <= to */

static inline us_bytes_t
us_within(us_bytes_t c, uint8_t from, uint8_t to)
{
    return (us_bytes_t) (c - from <= (uint8_t) (to - from));
}


#endif /* _US_VECTOR_H_INCLUDED_ */
