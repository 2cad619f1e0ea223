
/*
 * SipHash (Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012) with
 * one round for a word and three at the end, as most hash tables take it.
 *
 *     v0 v1 v2 v3   <- key ^ "somepseudorandomlygeneratedbytes"
 *     each 8 bytes m:   v3 ^= m, one round, v0 ^= m
 *     the last word:    the rest of the bytes, and the length in the top byte
 *     v2 ^= 0xff, three rounds, v0 ^ v1 ^ v2 ^ v3
 *
 * The domain is mixed into the key part of v2, where the paper's longer
 * variant has its own marker: a text hashed under two domains gives two
 * unrelated values, and domain 0 is SipHash-1-3 as published.
 *
 * With 128 bits of output v1 begins with ^ 0xee, the end is v2 ^= 0xee instead
 * of 0xff, and after the first word of output v1 ^= 0xdd and three rounds more
 * give the second (the authors' reference code, 2014).
 */


#include "us_hash.h"


#define us_rotl(x, b)  (((x) << (b)) | ((x) >> (64 - (b))))


static inline void
us_sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = us_rotl(v[1], 13);
    v[3] = us_rotl(v[3], 16);
    v[1] ^= v[0];
    v[3] ^= v[2];
    v[0] = us_rotl(v[0], 32);

    v[2] += v[1];
    v[0] += v[3];
    v[1] = us_rotl(v[1], 17);
    v[3] = us_rotl(v[3], 21);
    v[1] ^= v[2];
    v[3] ^= v[0];
    v[2] = us_rotl(v[2], 32);
}


static inline uint64_t
us_sip_word(const uint8_t *p, size_t len)
{
    uint64_t  m;

    m = 0;
    memcpy(&m, p, len);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    m = __builtin_bswap64(m);
#endif

    return m;
}


/* the last len & 7 bytes, at p, as the low ones of a word */

static inline uint64_t
us_sip_rest(const uint8_t *p, size_t len)
{
    uint64_t  m;
    unsigned  n;

    n = len & 7;

    if (len < 8) {
        return us_sip_word(p, n);
    }

    /* no loop: its end would be mispredicted */

    m = us_sip_word(p + n - 8, 8);

    return m >> 8 >> (56 - 8 * n);
}


static inline void
us_sip_init(uint64_t v[4], const uint8_t key[16])
{
    uint64_t  k0, k1;

    k0 = us_sip_word(key, 8);
    k1 = us_sip_word(key + 8, 8);

    v[0] = k0 ^ 0x736f6d6570736575;
    v[1] = k1 ^ 0x646f72616e646f6d;
    v[2] = k0 ^ 0x6c7967656e657261;
    v[3] = k1 ^ 0x7465646279746573;
}


static inline void
us_sip_add(uint64_t v[4], uint64_t m)
{
    v[3] ^= m;
    us_sip_round(v);
    v[0] ^= m;
}


uint64_t
us_hash(const uint8_t key[16], unsigned domain, const uint8_t *p, size_t len)
{
    uint64_t        v[4];
    const uint8_t  *end;

    us_sip_init(v, key);
    v[2] ^= domain;

    for (end = p + (len & ~(size_t) 7); p < end; p += 8) {
        us_sip_add(v, us_sip_word(p, 8));
    }

    us_sip_add(v, (uint64_t) len << 56 | us_sip_rest(p, len));

    v[2] ^= 0xff;
    us_sip_round(v);
    us_sip_round(v);
    us_sip_round(v);

    return v[0] ^ v[1] ^ v[2] ^ v[3];
}


void
us_hash128_init(us_hash128_t *h, const uint8_t key[16])
{
    us_sip_init(h->v, key);

    h->v[1] ^= 0xee;
    h->rest = 0;
    h->len = 0;
}


void
us_hash128_add(us_hash128_t *h, const uint8_t *p, size_t len)
{
    unsigned        have, n;
    const uint8_t  *end;

    have = h->len & 7;
    h->len += len;

    if (have) {
        n = 8 - have;

        if (len < n) {
            h->rest |= us_sip_word(p, len) << (8 * have);
            return;
        }

        us_sip_add(h->v, h->rest | us_sip_word(p, n) << (8 * have));

        p += n;
        len -= n;
    }

    for (end = p + (len & ~(size_t) 7); p < end; p += 8) {
        us_sip_add(h->v, us_sip_word(p, 8));
    }

    h->rest = us_sip_word(p, len & 7);
}


void
us_hash128_end(us_hash128_t *h, uint64_t out[2])
{
    unsigned  i, k;

    us_sip_add(h->v, h->len << 56 | h->rest);

    h->v[2] ^= 0xee;

    for (i = 0; i < 2; i++) {

        for (k = 0; k < 3; k++) {
            us_sip_round(h->v);
        }

        out[i] = h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3];
        h->v[1] ^= 0xdd;
    }
}
