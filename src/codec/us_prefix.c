
/*
 * The prefix cache: which record has this prefix?
 *
 *   entry     | tag: 8 | id + 1, low 24 bits |      0: empty
 *
 *   number of entries: 1 << head->cache_bits, 0: none yet
 *
 * A hash table of hints, without chains: the last record with a prefix
 * overwrites the entry.  The caller compares the texts.  An
 * entry is one aligned word of 32 bits, so it is always whole; a reader that
 * knows an old size looks in the wrong place, and finds nothing, or a hint
 * that the comparison refutes.
 *
 * The table doubles as the store grows, and no entry is moved.  A hash whose
 * entry in the new half is empty is looked up in the old half, in the entry
 * that it had before the table doubled.
 *
 * Prefixes end at the bytes where URLs part: / ? = & . - _ % +
 */


#include "us_prefix.h"
#include "../us_bit.h"
#include "../us_vector.h"


#define US_CACHE_MAX      20          /* bits of the number of entries */

/* one entry for so many records; tuned with make bench-engine */
#define US_CACHE_RECORDS  24

#define US_CACHE_ID       0xffffff


static inline uint64_t
us_prefix_mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15;

    return h ^ h >> 29;
}


/* hashes the bytes between two boundaries, by words */

static inline uint64_t
us_prefix_part(uint64_t h, const uint8_t *p, size_t n)
{
    for ( /* void */ ; n > 8; n -= 8, p += 8) {
        h = us_prefix_mix(h, us_load64(p));
    }

    return us_prefix_mix(h, us_load64(p) & UINT64_MAX >> (64 - 8 * n));
}


/* which of 16 bytes end a prefix */

static inline unsigned
us_prefix_ends(const uint8_t *p)
{
    us_bytes_t  v;

    v = us_load_bytes(p);

    return us_bits16(us_within(v, '%', '&') | us_within(v, '-', '/')
                     | (us_bytes_t) ((v | ('=' ^ '?')) == '?')
                     | (us_bytes_t) (v == '_') | (us_bytes_t) (v == '+'));
}


unsigned
us_prefixes(const us_arena_t *a, const uint8_t *text, size_t len, size_t max,
    us_prefix_t out[US_PREFIXES])
{
    size_t       i, at, begin;
    unsigned     n, ends;
    uint64_t     h, v;
    us_prefix_t  ring[US_PREFIXES];

    n = 0;
    begin = 0;
    max = len < max ? len : max;

    memcpy(&h, a->head->hash_key, sizeof(uint64_t));

    for (at = 0; at < max; at += 16) {

        for (ends = us_prefix_ends(text + at); ends; ends &= ends - 1) {
            i = at + (unsigned) __builtin_ctz(ends);

            if (i + 1 < US_PREFIX_MIN) {
                continue;
            }

            if (i >= max) {
                break;
            }

            h = us_prefix_part(h, text + begin, i + 1 - begin);
            v = h * 0xff51afd7ed558ccd;

            ring[n % US_PREFIXES].hash = (uint32_t) (v >> 32);
            ring[n % US_PREFIXES].len = (uint32_t) i + 1;
            begin = i + 1;
            n++;
        }
    }

    if (n <= US_PREFIXES) {
        memcpy(out, ring, n * sizeof(us_prefix_t));
        return n;
    }

    for (i = 0; i < US_PREFIXES; i++) {
        out[i] = ring[(n + i) % US_PREFIXES];
    }

    return US_PREFIXES;
}


static inline uint32_t *
us_prefix_entry(const us_arena_t *a, const us_prefix_t *p, uint64_t bits)
{
    uint64_t  i;

    i = p->hash & (((uint32_t) 1 << bits) - 1);

    return (uint32_t *) us_area_at(a, US_AREA_CACHE, i * sizeof(uint32_t));
}


static inline uint32_t
us_prefix_tag(const us_prefix_t *p)
{
    return p->hash & 0xff000000;
}


void
us_prefix_prefetch(const us_arena_t *a, const us_prefix_t *p, unsigned n)
{
    uint64_t  bits;

    /* acquire: see us_prefix_find() */

    bits = us_acquire(&a->head->cache_bits);

    for ( /* void */ ; bits && n; n--, p++) {
        __builtin_prefetch(us_prefix_entry(a, p, bits));
    }
}


uint64_t
us_prefix_find(const us_arena_t *a, const us_prefix_t *p, uint64_t next)
{
    uint32_t  e;
    uint64_t  id, bits;

    /*
     * Acquire: the chunks of a cache of this size are in the directory.
     */

    bits = us_acquire(&a->head->cache_bits);

    if (bits == 0) {
        return US_STORE_NO_ID;
    }

    e = __atomic_load_n(us_prefix_entry(a, p, bits), __ATOMIC_RELAXED);

    if (e == 0) {
        e = __atomic_load_n(us_prefix_entry(a, p, bits - 1),
                            __ATOMIC_RELAXED);
    }

    if (e == 0 || (e & ~US_CACHE_ID) != us_prefix_tag(p)) {
        return US_STORE_NO_ID;
    }

    /* the latest id with these low bits */

    id = ((next & ~(uint64_t) US_CACHE_ID) | (e & US_CACHE_ID)) - 1;

    if (id + 1 > next) {
        id -= US_CACHE_ID + 1;
    }

    return id < next ? id : US_STORE_NO_ID;
}


/* 0, or -1: no room */

static int
us_prefix_resize(us_arena_t *a, uint64_t bits)
{
    uint64_t  bytes, chunk, have;

    bytes = sizeof(uint32_t) << bits;
    chunk = (uint64_t) 1 << a->chunk_shift;
    have = us_area_bytes(a, US_AREA_CACHE);

    if (have < bytes
        && (!us_arena_fits(a, ((bytes - have) >> a->chunk_shift)
                              + us_arena_spare(a), 0)
            || us_arena_grow_locked(a, US_AREA_CACHE,
                                    (bytes - have + chunk - 1)
                                    >> a->chunk_shift) != 0))
    {
        return -1;
    }

    /*
     * Release: the new chunks are in the directory before the size includes
     * them.
     */

    us_release(&a->head->cache_bits, bits);

    return 0;
}


void
us_prefix_grow_locked(us_arena_t *a)
{
    uint64_t    bits;
    us_head_t  *h;

    h = a->head;
    bits = h->cache_bits;

    if (bits == US_CACHE_MAX
        || h->next_id < (bits ? (uint64_t) US_CACHE_RECORDS << bits : 1))
    {
        return;
    }

    (void) us_prefix_resize(a, bits ? bits + 1 : a->chunk_shift - 2);
}


void
us_prefix_put_locked(us_arena_t *a, const us_prefix_t *p, unsigned n,
    unsigned cut, uint64_t id)
{
    uint64_t  bits;

    us_prefix_grow_locked(a);

    bits = us_relaxed(&a->head->cache_bits);

    for ( /* void */ ; bits && n; n--, p++) {

        if (p->len > cut) {

            /* relaxed: a hint */

            __atomic_store_n(us_prefix_entry(a, p, bits),
                             us_prefix_tag(p)
                             | ((uint32_t) (id + 1) & US_CACHE_ID),
                             __ATOMIC_RELAXED);
        }
    }
}


uint64_t
us_prefix_bytes(const us_arena_t *a)
{
    uint64_t  bits;

    bits = us_acquire(&a->head->cache_bits);

    return bits ? sizeof(uint32_t) << bits : 0;
}


void
us_prefix_copy(const us_arena_t *a, uint64_t at, uint8_t *p, size_t len)
{
    size_t     i;
    uint32_t  *from, e;

    from = (uint32_t *) us_area_at(a, US_AREA_CACHE, at);

    for (i = 0; i < len / sizeof(uint32_t); i++) {
        e = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
        memcpy(p + i * sizeof(uint32_t), &e, sizeof(uint32_t));
    }
}


int
us_prefix_restore(us_arena_t *a, uint64_t bytes)
{
    uint64_t  bits;

    if (bytes == 0) {
        return 0;
    }

    bits = 63 - __builtin_clzll(bytes / sizeof(uint32_t) | 1);

    if (bits > US_CACHE_MAX || bytes != sizeof(uint32_t) << bits
        || bytes % US_PREFIX_PIECE || a->head->cache_bits)
    {
        return -1;
    }

    return us_prefix_resize(a, bits);
}


int
us_prefix_paste(us_arena_t *a, uint64_t at, const uint8_t *p, size_t len)
{
    if (len > US_PREFIX_PIECE || at % US_PREFIX_PIECE
        || at > us_prefix_bytes(a) || len > us_prefix_bytes(a) - at)
    {
        return -1;
    }

    memcpy(us_area_at(a, US_AREA_CACHE, at), p, len);

    return 0;
}
