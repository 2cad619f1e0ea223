
/*
 * A model: whether some bytes are one, and what its writers ask: texts,
 * contexts, and the code of a symbol.
 */


#include "us_model_private.h"

#include <endian.h>


#if (__BYTE_ORDER != __LITTLE_ENDIAN)
#error "models are kept in little-endian byte order"
#endif


/* bytes, the lowest bit first */

#define US_R2(n)  n, n + 128, n + 64, n + 192
#define US_R4(n)  US_R2(n), US_R2(n + 32), US_R2(n + 16), US_R2(n + 48)
#define US_R6(n)  US_R4(n), US_R4(n + 8), US_R4(n + 4), US_R4(n + 12)

const uint8_t  us_model_reversed[256] = {
    US_R6(0), US_R6(2), US_R6(1), US_R6(3)
};

#undef US_R2
#undef US_R4
#undef US_R6


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


/* the fields before the checksum, one by one, and the checksum; 0 or -1 */

static int
us_model_head_check(const us_model_t *m, size_t len)
{
    unsigned  ncodes;

    if (len < sizeof(us_model_t)
        || m->magic != US_MODEL_MAGIC || m->version != US_MODEL_VERSION
        || m->pad || m->pad2[0] || m->pad2[1] || m->pad2[2]
        || m->core_size > len
        || m->ncontexts <= US_CTX_GROUP || m->ncontexts > US_CTX_MAX
        || m->ntokens < US_TOKEN_TEXT || m->ntokens > US_TOKENS_MAX
        || m->nsymbols > (US_CTX_MAX + US_CODES) * (US_TOKENS_MAX + 1)
        || m->text_size > US_TEXT_MAX || m->text_size < US_TEXT_SLACK)
    {
        return -1;
    }

    ncodes = us_model_ncodes(m);

    if (m->nlen != sizeof(us_model_t)
        || m->tokens != m->nlen + ncodes * sizeof(uint16_t) * US_NLEN
        || m->symbols != m->tokens + m->ntokens * sizeof(uint32_t)
        || m->text != m->symbols + m->nsymbols * sizeof(uint16_t)
        || m->core_size != ((m->text + m->text_size + 7) & ~7u)
        || m->checksum != us_model_sum(m))
    {
        return -1;
    }

    return 0;
}


/* texts are within the pool, contexts are in range; 0 or -1 */

static int
us_model_tokens_check(const us_model_t *m)
{
    unsigned         i;
    uint32_t         t;
    const uint32_t  *tokens;

    tokens = us_model_at(m, m->tokens);

    for (i = 0; i < m->ntokens; i++) {
        t = tokens[i];

        if (t >> US_CTX_SHIFT >= m->ncontexts
            || (t >> US_TEXT_BITS & US_LEN_MASK) == 0
            || (t >> US_TEXT_BITS & US_LEN_MASK) > US_TOKEN_MAX
            || (t & (US_TEXT_MAX - 1)) + US_TEXT_SLACK > m->text_size)
        {
            return -1;
        }
    }

    return 0;
}


/* all codes: complete, long enough, and their symbols; 0 or -1 */

static int
us_model_codes_check(const us_model_t *m)
{
    unsigned         i, l, n;
    uint32_t         kraft, sum;
    const uint16_t  *nlen, *list;

    list = us_model_at(m, m->symbols);
    sum = 0;

    for (i = 0; i < us_model_ncodes(m); i++) {
        nlen = us_model_nlen(m, i);
        kraft = 0;
        n = 0;

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            kraft += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);
            n += nlen[l];
        }

        for (l = US_HUFFMAN_MAX; l && nlen[l] == 0; l--) { /* void */ }

        if (kraft != 1 << US_HUFFMAN_MAX || l < 4 || n > m->nsymbols - sum
            || us_model_code_check(m, i, list + sum) == -1)
        {
            return -1;
        }

        sum += n;
    }

    return sum == m->nsymbols ? 0 : -1;
}


const us_model_t *
us_model_check(const uint8_t *p, size_t len)
{
    const us_model_t  *m;

    m = (const us_model_t *) p;

    if (us_model_head_check(m, len) == -1
        || us_model_tokens_check(m) == -1
        || us_model_codes_check(m) == -1)
    {
        return NULL;
    }

    return m;
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


us_str_t
us_model_bytes(const us_model_t *m)
{
    us_str_t  bytes;

    bytes.data = (const uint8_t *) m;
    bytes.len = m->core_size;

    return bytes;
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


const uint16_t *
us_model_symbols(const us_model_t *m, unsigned code)
{
    unsigned         i, l;
    const uint16_t  *list, *nlen;

    list = us_model_at(m, m->symbols);

    for (i = 0; i < code; i++) {
        nlen = us_model_nlen(m, i);

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            list += nlen[l];
        }
    }

    return list;
}


/* the place of a symbol that is among the n of one length, which ascend */

static inline unsigned
us_model_search(const uint16_t *list, unsigned n, unsigned symbol)
{
    unsigned  low, half;

    /* without a branch, which would be mispredicted in every other round */

    for (low = 0; n > 1; n -= half) {
        half = n / 2;
        low += list[low + half] <= symbol ? half : 0;
    }

    return low;
}


void
us_model_ranks(const us_model_t *m, unsigned code,
    us_rank_t ranks[US_HUFFMAN_MAX + 1])
{
    unsigned         l, at;
    uint32_t         v;
    const uint16_t  *nlen;

    nlen = us_model_nlen(m, code);
    memset(ranks, 0, sizeof(us_rank_t));

    for (l = 1, v = 0, at = 0; l <= US_HUFFMAN_MAX; l++) {
        ranks[l].first = (uint16_t) v;
        ranks[l].at = (uint16_t) at;
        ranks[l].n = nlen[l];

        v += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);
        at += nlen[l];
    }
}


uint32_t
us_model_code(const us_rank_t *rank, const uint16_t *list, unsigned symbol,
    unsigned len)
{
    unsigned  i;

    i = us_model_search(list + rank->at, rank->n, symbol);

    return us_model_reverse(rank->first + (i << (US_HUFFMAN_MAX - len)));
}


void
us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n)
{
    unsigned          l, i;
    const uint16_t   *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_symbols(m, code);

    memset(lens, 0, n);

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, list++) {
            if (*list < n) {
                lens[*list] = (uint8_t) l;
            }
        }
    }
}


void
us_model_codes(const us_model_t *m, unsigned code, uint32_t *codes, size_t n)
{
    unsigned         l, i;
    uint32_t         v;
    const uint16_t  *list, *nlen;

    nlen = us_model_nlen(m, code);
    list = us_model_symbols(m, code);
    v = 0;

    memset(codes, 0, n * sizeof(uint32_t));

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (i = 0; i < nlen[l]; i++, list++) {
            if (*list < n) {
                codes[*list] = us_code_make(us_model_reverse(v), l);
            }

            v += 1u << (US_HUFFMAN_MAX - l);
        }
    }
}


/* 7 less the class of the byte before a tail: 0 is the class of the rest */

const uint8_t  us_model_before[256] = {
    ['/'] = 7,
    ['='] = 6, ['&'] = 6, ['?'] = 6,
    ['-'] = 5, ['_'] = 5, ['+'] = 5, ['%'] = 5,
    ['.'] = 4,
    ['0' ... '9'] = 3,
    ['a' ... 'z'] = 2,
    ['A' ... 'Z'] = 1
};
