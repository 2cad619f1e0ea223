
/*
 * A model: the tokens and codes under which records are written, and the
 * decoder.
 *
 *     us_model_s   magic, version, sizes, checksum
 *     uint16_t     nlen[ncodes][18]    how many symbols of each code length
 *     uint32_t     tokens[ntokens]     text offset 19 | length 6 | context 7
 *     uint16_t     symbols[nsymbols]   by code, then by length
 *     uint8_t      text[text_size]     of bytes and learnt tokens
 *     ------------ the core ends here, padded to 8 bytes -----------------
 *     us_code_t    codes[ncodes]       limits of the canonical code
 *     uint32_t     entries[]           first-level tables, by code
 *
 * A text is cut into tokens: single bytes, learnt tokens, and runs (3 to 32
 * characters of a small alphabet, which follow packed).  Each token is coded
 * by the canonical Huffman code of its context; a context's code has the
 * tokens that were seen in it, and an escape (symbol `ntokens`) after which
 * the token follows in the code that has them all.  The context after a token
 * is kept with the token, so that in a table's entry the decoder finds all
 * that it needs to go on.
 *
 * A record says nothing of its end: its size is known in units of 4 bits, and
 * it is padded with ones.  Ones are the beginning of the longest code in each
 * context, whose length is at least 4 bits, so that the up to 3 ones never
 * make a token: a code that would end beyond the record is the end of it.
 *
 * Invariants, checked before a core is built and relied on ever after: every
 * code is complete (the sum of 2^-length is 1) and has a length of at least
 * 4; symbols of one length ascend, none is there twice, and none is missing
 * that a writer could need; symbols, contexts and text offsets are in range;
 * the core's checksum is right.  So no bits, however hostile, lead the decoder
 * out of the model, and there is a way to write any text.
 */


#include "us_model_format.h"
#include "us_atomic.h"

#include <endian.h>
#include <stdlib.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif


#if (__BYTE_ORDER != __LITTLE_ENDIAN)
#error "models are kept in little-endian byte order"
#endif


/* left to itself, the compiler calls what each token needs */
#define us_inline         inline __attribute__((always_inline))

/* bits of a first-level table; tuned with bench/codec on reddit_submissions */
#ifndef US_TABLE_BITS
#define US_TABLE_BITS     9
#endif

/* lengths of codes that are not in it */
#define US_TABLE_LONGER   (US_HUFFMAN_MAX - US_TABLE_BITS)


/*
 * What the decoder needs to know of a code: one cache line.  Codes that are
 * longer than the table's bits are compared left aligned in 16 bits: those of
 * the l-th length are below limit[l], and such a code is number
 * (code >> (16 - length)) + first[l], modulo 65536, of the code's list.  A
 * limit of 65536 is 65535 here; the code 65535 has the greatest length.
 */

typedef struct {
    uint16_t      limit[8];
    uint16_t      first[8];
    uint32_t      entries;            /* offset of the table */
    uint32_t      symbols;            /* and of the list, in the core */
    uint16_t      mask;               /* of the table's bits */
    uint8_t       bits;
    uint8_t       last;               /* the greatest l */
    uint8_t       pad[20];
} us_code_t;


/* an entry: symbol 16 | length 5 (0: a longer code) | context 7 | kind 2 */

#define US_ENTRY_LEN      16
#define US_ENTRY_LENGTH   (31u << US_ENTRY_LEN)
#define US_ENTRY_CTX      21
#define US_ENTRY_KIND     28

#define US_KIND_TEXT      0
#define US_KIND_RUN       1
#define US_KIND_ESCAPE    2
#define US_KIND_END       3           /* made by who reads */


static uint32_t us_model_sum(const us_model_t *m);
static unsigned us_model_code_symbols(const us_model_t *m, unsigned code);


/* bytes, the lowest bit first */

#define US_R2(n)  n, n + 128, n + 64, n + 192
#define US_R4(n)  US_R2(n), US_R2(n + 32), US_R2(n + 16), US_R2(n + 48)
#define US_R6(n)  US_R4(n), US_R4(n + 8), US_R4(n + 4), US_R4(n + 12)

static const uint8_t  us_reversed[256] = {
    US_R6(0), US_R6(2), US_R6(1), US_R6(3)
};

#undef US_R2
#undef US_R4
#undef US_R6


static inline const void *
us_model_at(const us_model_t *m, uint32_t offset)
{
    return (const uint8_t *) m + offset;
}


static inline uint32_t
us_model_codes_at(const us_model_t *m)
{
    return (m->core_size + US_LINE - 1) & ~(US_LINE - 1);
}


static inline const us_code_t *
us_model_codes(const us_model_t *m)
{
    return us_model_at(m, us_model_codes_at(m));
}


static inline unsigned
us_model_ncodes(const us_model_t *m)
{
    return (unsigned) m->ncontexts + US_CODES;
}


static inline const uint16_t *
us_model_nlen(const us_model_t *m, unsigned code)
{
    return (const uint16_t *) us_model_at(m, m->nlen) + code * US_NLEN;
}


/* the first bit of a code is its highest, but lies lowest in a word */

static inline uint32_t
us_model_reverse(uint32_t v)
{
    return (uint32_t) us_reversed[v & 0xff] << 8 | us_reversed[v >> 8];
}


/* completes the entry e, symbol and length, of a token */

static us_inline uint32_t
us_model_entry(const us_model_t *m, const uint32_t *tokens, unsigned symbol,
    uint32_t e)
{
    if (symbol == m->ntokens) {
        return e | (uint32_t) US_KIND_ESCAPE << US_ENTRY_KIND;
    }

    e |= tokens[symbol] >> US_CTX_SHIFT << US_ENTRY_CTX;

    if (symbol - US_TOKEN_RUN < US_TOKEN_TEXT - US_TOKEN_RUN) {
        e |= US_KIND_RUN << US_ENTRY_KIND;
    }

    return e;
}


/*
 * A code longer than the table's bits, at the low end of w: its symbol and
 * length, as an entry has them.
 */

static us_inline uint32_t
us_model_longer(const us_model_t *m, const us_code_t *c, uint64_t w)
{
    unsigned         l;
    uint32_t         v;
    const uint16_t  *list;

    v = us_model_reverse((uint32_t) w & 0xffff);

#ifdef __SSE2__
    {
    __m128i  left;

    /*
     * Limit - v saturates to zero where the code is not below the limit.  No
     * branch: it would be mispredicted for every second code.
     */

    left = _mm_subs_epu16(_mm_loadu_si128((const __m128i *) c->limit),
                          _mm_set1_epi16((short) v));
    left = _mm_cmpeq_epi16(left, _mm_setzero_si128());

    l = (unsigned) __builtin_ctz(~(unsigned) _mm_movemask_epi8(left)) / 2;
    }
#else
    for (l = 0; l < US_TABLE_LONGER && v >= c->limit[l]; l++) { /* void */ }
#endif

    l = l < c->last ? l : c->last;
    list = us_model_at(m, c->symbols);

    return list[(uint16_t) ((v >> (US_TABLE_LONGER - 1 - l)) + c->first[l])]
           | (US_TABLE_BITS + 1 + l) << US_ENTRY_LEN;
}


/*
 * What reads tokens.  It is copied before use, so that the compiler keeps it
 * in registers: bytes that are written could be any of these.
 */

typedef struct {
    const us_model_t  *m;
    const us_code_t   *codes;
    const uint32_t    *tokens;
    const uint8_t     *pool;
    const uint8_t     *base;
    uint64_t           pos;
    uint64_t           end;
    unsigned           ctx;
} us_reader_t;


static us_inline us_reader_t
us_reader(const us_model_t *m, unsigned ctx, const us_bitin_t *b)
{
    us_reader_t  r;

    r.m = m;
    r.codes = us_model_codes(m);
    r.tokens = us_model_at(m, m->tokens);
    r.pool = us_model_at(m, m->text);
    r.base = b->base;
    r.pos = b->pos;
    r.end = b->end;
    r.ctx = ctx;

    return r;
}


/* the entry of the token at the low end of w */

static us_inline uint32_t
us_reader_find(const us_reader_t *r, unsigned code, uint64_t w)
{
    uint32_t          e;
    const uint32_t   *entries;
    const us_code_t  *c;

    c = r->codes + code;

    entries = us_model_at(r->m, c->entries);
    e = entries[w & c->mask];

    if (e & US_ENTRY_LENGTH) {
        return e;
    }

    e = us_model_longer(r->m, c, w);

    return us_model_entry(r->m, r->tokens, e & 0xffff, e);
}


/*
 * Reads a token, an escape before it included: its entry, or one of kind
 * US_KIND_END if it would end beyond the bits.
 */

static us_inline uint32_t
us_reader_next(us_reader_t *r)
{
    uint32_t  e;
    uint64_t  w, pos;

    pos = r->pos;
    w = us_load64(r->base + (pos >> 3)) >> (pos & 7);
    e = us_reader_find(r, r->ctx, w);

    if (e >> US_ENTRY_KIND == US_KIND_ESCAPE) {
        e >>= US_ENTRY_LEN;
        e &= 31;

        w >>= e;
        pos += e;

        e = us_reader_find(r, r->m->ncontexts + US_CODE_ESCAPE, w);
    }

    pos += e >> US_ENTRY_LEN & 31;

    if (pos > r->end) {
        return (uint32_t) US_KIND_END << US_ENTRY_KIND;
    }

    r->pos = pos;
    r->ctx = e >> US_ENTRY_CTX & 127;

    return e;
}


/* that there are no more tokens because there are no more bits */

static inline int
us_reader_ended(const us_reader_t *r)
{
    return r->end - r->pos < 4;
}


int
us_model_symbol(const us_model_t *m, unsigned code, us_bitin_t *b)
{
    uint32_t          e, len;
    uint64_t          w;
    const uint32_t   *entries;
    const us_code_t  *c;

    if (b->pos >= b->end) {
        return -1;
    }

    c = us_model_codes(m) + m->ncontexts + code;
    w = us_load64(b->base + (b->pos >> 3)) >> (b->pos & 7);

    entries = us_model_at(m, c->entries);
    e = entries[w & c->mask];

    if ((e & US_ENTRY_LENGTH) == 0) {
        e = us_model_longer(m, c, w);
    }

    len = e >> US_ENTRY_LEN & 31;

    if (len > b->end - b->pos) {
        return -1;
    }

    b->pos += len;

    return (int) (e & 0xffff);
}


/* unpacks the run of a token; its length, or 0 if it ends beyond the bits */

static unsigned
us_reader_run(const us_reader_t *r, unsigned token, uint64_t *next,
    uint8_t *out)
{
    unsigned  alphabet, len, n, part;
    uint64_t  pos;

    alphabet = (token - US_TOKEN_RUN) / US_RUN_LENGTHS;
    len = (token - US_TOKEN_RUN) % US_RUN_LENGTHS + US_RUN_MIN;
    pos = r->pos;

    if (us_run_bits(alphabet, len) > r->end - pos) {
        return 0;
    }

    /* 6 characters of any alphabet are whole groups, of at most 36 bits */

    for (part = 0; part < len; part += 6) {
        n = len - part < 6 ? len - part : 6;

        us_run_get(us_load64(r->base + (pos >> 3)) >> (pos & 7), alphabet, n,
                   out + part);
        pos += us_run_bits(alphabet, n);
    }

    *next = pos;

    return len;
}


ssize_t
us_model_decode(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    uint8_t *out, size_t need, size_t max)
{
    uint8_t        *p, *last;
    uint32_t        e, t, len, i;
    uint64_t        next;
    us_reader_t     r, copy;
    const uint8_t  *from;

    if (b->pos > b->end) {
        return -1;
    }

    p = out;
    last = out + max;
    r = us_reader(m, ctx, b);

    while ((size_t) (p - out) < need) {
        e = us_reader_next(&r);

        if (e >> US_ENTRY_KIND == US_KIND_TEXT) {
            t = r.tokens[e & 0xffff];
            len = t >> US_TEXT_BITS & US_LEN_MASK;
            from = r.pool + (t & (US_TEXT_MAX - 1));

            memcpy(p, from, 16);

            for (i = 16; i < len; i += 16) {
                memcpy(p + i, from + i, 16);
            }

        } else if (e >> US_ENTRY_KIND == US_KIND_RUN) {
            copy = r;
            len = us_reader_run(&copy, e & 0xffff, &next, p);

            if (len == 0) {
                return -1;
            }

            r.pos = next;

        } else {
            return us_reader_ended(&r) ? p - out : -1;
        }

        p += len;

        if (p > last) {
            return -1;
        }
    }

    return p - out;
}


/*
 * Whether the first n bytes differ; 8 more of both can be read.  A call of
 * memcmp() for each token costs more than its work.
 */

static inline int
us_model_differ(const uint8_t *p, const uint8_t *q, size_t n)
{
    uint64_t  d;

    for ( /* void */ ; n > 8; n -= 8, p += 8, q += 8) {
        if (us_load64(p) != us_load64(q)) {
            return 1;
        }
    }

    d = us_load64(p) ^ us_load64(q);

    return n && d << (64 - 8 * n);
}


/*
 * Compares token by token, up to the first difference.  US_MODEL_MORE: the
 * text has ended and there is more.
 */

#define US_MODEL_DIFFERS  0
#define US_MODEL_EQUAL    1
#define US_MODEL_MORE     2

static inline int
us_model_compare(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    uint8_t         run[US_DECODE_SLACK];
    size_t          left;
    uint32_t        e, t, n;
    uint64_t        next;
    us_reader_t     r, copy;
    const uint8_t  *p, *from;

    if (b->pos > b->end) {
        return US_MODEL_DIFFERS;
    }

    p = text;
    left = len;
    r = us_reader(m, ctx, b);

    for ( ;; ) {
        e = us_reader_next(&r);

        if (e >> US_ENTRY_KIND == US_KIND_TEXT) {
            t = r.tokens[e & 0xffff];
            n = t >> US_TEXT_BITS & US_LEN_MASK;
            from = r.pool + (t & (US_TEXT_MAX - 1));

        } else if (e >> US_ENTRY_KIND == US_KIND_RUN) {
            copy = r;
            n = us_reader_run(&copy, e & 0xffff, &next, run);
            from = run;

            if (n == 0) {
                return US_MODEL_DIFFERS;
            }

            r.pos = next;

        } else {
            return left == 0 && first == NULL && us_reader_ended(&r)
                   ? US_MODEL_EQUAL : US_MODEL_DIFFERS;
        }

        if (first) {
            *first = *from++;
            first = NULL;
            n--;
        }

        if (left >= n + 8) {
            if (us_model_differ(p, from, n)) {
                return US_MODEL_DIFFERS;
            }

        } else if (left < n) {
            return memcmp(p, from, left) == 0 ? US_MODEL_MORE
                                              : US_MODEL_DIFFERS;

        } else if (memcmp(p, from, n) != 0) {
            return US_MODEL_DIFFERS;
        }

        p += n;
        left -= n;
    }
}


int
us_model_equal(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    return us_model_compare(m, ctx, b, text, len, first) == US_MODEL_EQUAL;
}


int
us_model_begins(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    return us_model_compare(m, ctx, b, text, len, first) != US_MODEL_DIFFERS;
}


/*
 * The symbols of a code are in range, those of one length ascend, none is there
 * twice; and none is missing that a writer could need: a context has its
 * escape, all other codes have all their symbols.  0 or -1.
 */

static int
us_model_code_check(const us_model_t *m, unsigned code, const uint16_t *list)
{
    unsigned         l, i, n, limit;
    uint64_t         seen[(US_TOKENS_MAX + 1 + 63) / 64], bit;
    const uint16_t  *nlen;

    nlen = us_model_nlen(m, code);
    limit = us_model_code_symbols(m, code);
    n = 0;

    memset(seen, 0, sizeof(seen));

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, n++) {

            if (list[n] >= limit || (i && list[n] <= list[n - 1])) {
                return -1;
            }

            bit = (uint64_t) 1 << list[n] % 64;

            if (seen[list[n] / 64] & bit) {
                return -1;
            }

            seen[list[n] / 64] |= bit;
        }
    }

    if (code >= m->ncontexts) {
        return n == limit ? 0 : -1;
    }

    return seen[m->ntokens / 64] >> m->ntokens % 64 & 1 ? 0 : -1;
}


size_t
us_model_core_size(const uint8_t *core, size_t len)
{
    unsigned           i, l, ncodes, n;
    uint32_t           kraft, sum, t;
    const uint16_t    *nlen, *list;
    const uint32_t    *tokens;
    const us_model_t  *m;

    m = (const us_model_t *) core;

    if (len < sizeof(us_model_t)
        || m->magic != US_MODEL_MAGIC || m->version != US_MODEL_VERSION
        || m->pad || m->pad2[0] || m->pad2[1] || m->pad2[2]
        || m->core_size > len
        || m->ncontexts <= US_CTX_GROUP || m->ncontexts > US_CTX_MAX
        || m->ntokens < US_TOKEN_TEXT || m->ntokens > US_TOKENS_MAX
        || m->nsymbols > (US_CTX_MAX + US_CODES) * (US_TOKENS_MAX + 1)
        || m->text_size > US_TEXT_MAX || m->text_size < US_TEXT_SLACK)
    {
        return 0;
    }

    ncodes = us_model_ncodes(m);

    if (m->nlen != sizeof(us_model_t)
        || m->tokens != m->nlen + ncodes * sizeof(uint16_t) * US_NLEN
        || m->symbols != m->tokens + m->ntokens * sizeof(uint32_t)
        || m->text != m->symbols + m->nsymbols * sizeof(uint16_t)
        || m->core_size != ((m->text + m->text_size + 7) & ~7u)
        || m->checksum != us_model_sum(m))
    {
        return 0;
    }

    tokens = us_model_at(m, m->tokens);

    for (i = 0; i < m->ntokens; i++) {
        t = tokens[i];

        if (t >> US_CTX_SHIFT >= m->ncontexts
            || (t >> US_TEXT_BITS & US_LEN_MASK) == 0
            || (t >> US_TEXT_BITS & US_LEN_MASK) > US_TOKEN_MAX
            || (t & (US_TEXT_MAX - 1)) + US_TEXT_SLACK > m->text_size)
        {
            return 0;
        }
    }

    list = us_model_at(m, m->symbols);
    sum = 0;

    for (i = 0; i < ncodes; i++) {
        nlen = us_model_nlen(m, i);
        kraft = 0;
        n = 0;

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            kraft += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);
            n += nlen[l];
        }

        for (l = US_HUFFMAN_MAX; l && nlen[l] == 0; l--) { /* void */ }

        if (kraft != 1 << US_HUFFMAN_MAX || l < 4 || n > m->nsymbols - sum) {
            return 0;
        }

        if (us_model_code_check(m, i, list + sum) == -1) {
            return 0;
        }

        sum += n;
    }

    return sum == m->nsymbols ? m->core_size : 0;
}


/* symbols that a code may have are below that */

static unsigned
us_model_code_symbols(const us_model_t *m, unsigned code)
{
    if (code < m->ncontexts) {
        return m->ntokens + 1;
    }

    switch (code - m->ncontexts) {

    case US_CODE_ESCAPE:
        return m->ntokens;

    case US_CODE_HEAD:
        return US_HEAD_SYMBOLS;

    default:
        return US_PREFIX_SYMBOLS;
    }
}


/* FNV-1a over words; the fields before the checksum are checked one by one */

static uint32_t
us_model_sum(const us_model_t *m)
{
    size_t    i;
    uint64_t  sum, w;

    sum = 0xcbf29ce484222325;

    for (i = sizeof(us_model_t); i < m->core_size; i += 8) {
        memcpy(&w, (const uint8_t *) m + i, sizeof(uint64_t));
        sum = (sum ^ w) * 0x100000001b3;
        sum ^= sum >> 29;
    }

    return (uint32_t) (sum ^ sum >> 32);
}


void
us_model_seal(uint8_t *core, size_t len)
{
    us_model_t  *m;

    m = (us_model_t *) core;

    if (m->core_size <= len && m->core_size % 8 == 0) {
        m->checksum = us_model_sum(m);
    }
}


static unsigned
us_model_table_bits(const uint16_t *nlen)
{
    unsigned  l;

    for (l = US_HUFFMAN_MAX; l > 4 && nlen[l] == 0; l--) { /* void */ }

    return l < US_TABLE_BITS ? l : US_TABLE_BITS;
}


size_t
us_model_size(const uint8_t *core)
{
    size_t             size;
    unsigned           i;
    const us_model_t  *m;

    m = (const us_model_t *) core;
    size = us_model_codes_at(m) + us_model_ncodes(m) * sizeof(us_code_t);

    for (i = 0; i < us_model_ncodes(m); i++) {
        size += sizeof(uint32_t) << us_model_table_bits(us_model_nlen(m, i));
    }

    return (size + 7) & ~(size_t) 7;
}


/*
 * The tables of a code, whose symbols are in the core from list on; returns
 * their number.
 */

static unsigned
us_model_build_code(us_model_t *m, unsigned code, us_code_t *c,
    const uint16_t *list)
{
    unsigned         i, k, l, index;
    uint32_t         v, e, n, *entries;
    const uint16_t  *nlen;

    nlen = us_model_nlen(m, code);
    entries = (uint32_t *) us_model_at(m, c->entries);

    memset(entries, 0, sizeof(uint32_t) << c->bits);

    v = 0;
    index = 0;

    for (l = 1; l <= c->bits; l++) {
        for (k = 0; k < nlen[l]; k++, v += 1u << (16 - l)) {
            e = list[index++] | (uint32_t) l << US_ENTRY_LEN;

            if (code <= m->ncontexts + US_CODE_ESCAPE) {
                e = us_model_entry(m, us_model_at(m, m->tokens), e & 0xffff,
                                   e);
            }

            for (n = us_model_reverse(v); n < 1u << c->bits; n += 1u << l) {
                entries[n] = e;
            }
        }
    }

    for (i = 0; c->bits == US_TABLE_BITS && i < US_TABLE_LONGER; i++) {
        l = US_TABLE_BITS + 1 + i;
        c->first[i] = (uint16_t) (index - (v >> (16 - l)));

        index += nlen[l];
        v += (uint32_t) nlen[l] << (16 - l);

        c->limit[i] = (uint16_t) (v < 65535 ? v : 65535);

        if (nlen[l]) {
            c->last = (uint8_t) i;
        }
    }

    return index;
}


void
us_model_build(us_model_t *dst, const uint8_t *core)
{
    unsigned         i;
    uint32_t         at, symbols;
    us_code_t       *c;

    memcpy(dst, core, ((const us_model_t *) core)->core_size);

    c = (us_code_t *) us_model_codes(dst);
    at = us_model_codes_at(dst)
         + us_model_ncodes(dst) * (uint32_t) sizeof(us_code_t);
    symbols = dst->symbols;

    for (i = 0; i < us_model_ncodes(dst); i++, c++) {
        memset(c, 0, sizeof(us_code_t));

        c->bits = (uint8_t) us_model_table_bits(us_model_nlen(dst, i));
        c->mask = (uint16_t) ((1u << c->bits) - 1);
        c->symbols = symbols;
        c->entries = at;

        symbols += us_model_build_code(dst, i, c, us_model_at(dst, symbols))
                   * (uint32_t) sizeof(uint16_t);
        at += (uint32_t) sizeof(uint32_t) << c->bits;
    }
}


us_str_t
us_model_core(const us_model_t *m)
{
    us_str_t  core;

    core.data = (const uint8_t *) m;
    core.len = m->core_size;

    return core;
}


unsigned
us_model_ncontexts(const us_model_t *m)
{
    return m->ncontexts;
}


unsigned
us_model_ntokens(const us_model_t *m)
{
    return m->ntokens;
}


unsigned
us_model_token_ctx(const us_model_t *m, unsigned token)
{
    return ((const uint32_t *) us_model_at(m, m->tokens))[token]
           >> US_CTX_SHIFT;
}


us_str_t
us_model_token_text(const us_model_t *m, unsigned token)
{
    uint32_t  t;
    us_str_t  text;

    t = ((const uint32_t *) us_model_at(m, m->tokens))[token];

    text.len = t >> US_TEXT_BITS & US_LEN_MASK;
    text.data = (const uint8_t *) us_model_at(m, m->text)
                + (t & (US_TEXT_MAX - 1));

    return text;
}


unsigned
us_model_tail_ctx(uint8_t before)
{
    unsigned  class;

    switch (before) {

    case '/':
        class = 0;
        break;

    case '=': case '&': case '?':
        class = 1;
        break;

    case '-': case '_': case '+': case '%':
        class = 2;
        break;

    case '.':
        class = 3;
        break;

    default:
        switch (us_run_classes[before]) {

        case 0:
            class = 7;
            break;

        case US_RUN_DIGIT:
            class = 4;
            break;

        case US_RUN_UPPER:
            class = 6;
            break;

        default:
            class = 5;
        }
    }

    return US_CTX_TAIL + class;
}


/* a symbol among the n of one length, which ascend: its place, or n */

static unsigned
us_model_search(const uint16_t *list, unsigned n, unsigned symbol)
{
    unsigned  low, high, mid;

    for (low = 0, high = n; low < high; /* void */) {
        mid = (low + high) / 2;

        if (list[mid] < symbol) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low < n && list[low] == symbol ? low : n;
}


unsigned
us_model_code_of(const us_model_t *m, unsigned code, unsigned symbol,
    unsigned len, uint32_t *bits)
{
    uint32_t         next;
    unsigned         l, i;
    const uint16_t  *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_at(m, us_model_codes(m)[code].symbols);
    next = 0;

    for (l = 1; l < len; l++) {
        next += (uint32_t) nlen[l] << (16 - l);
        list += nlen[l];
    }

    i = us_model_search(list, nlen[len], symbol);

    if (i == nlen[len]) {
        return 0;
    }

    *bits = us_model_reverse(next + (i << (16 - len)));

    return len;
}


unsigned
us_model_code(const us_model_t *m, unsigned code, unsigned symbol,
    uint32_t *bits)
{
    uint32_t         next;
    unsigned         l, i;
    const uint16_t  *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_at(m, us_model_codes(m)[code].symbols);
    next = 0;

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        i = us_model_search(list, nlen[l], symbol);

        if (i < nlen[l]) {
            *bits = us_model_reverse(next + (i << (16 - l)));
            return l;
        }

        next += (uint32_t) nlen[l] << (16 - l);
        list += nlen[l];
    }

    return 0;
}


void
us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n)
{
    unsigned          l, i;
    const uint16_t   *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_at(m, us_model_codes(m)[code].symbols);

    memset(lens, 0, n);

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, list++) {
            if (*list < n) {
                lens[*list] = (uint8_t) l;
            }
        }
    }
}
