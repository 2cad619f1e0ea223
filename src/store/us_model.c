
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
 * 4; symbols of one length ascend; symbols, contexts and text offsets are in
 * range; the core's checksum is right.  So no bits, however hostile, lead the
 * decoder out of the model.
 */


#include "us_model_format.h"
#include "us_atomic.h"

#include <endian.h>
#include <stdlib.h>


#if (__BYTE_ORDER != __LITTLE_ENDIAN)
#error "models are kept in little-endian byte order"
#endif


/* bits of a first-level table; tuned with bench/codec on reddit_submissions */
#define US_TABLE_BITS     9


/*
 * Codes are compared left aligned in 16 bits: those of length l are below
 * limit[l], and symbol number (code >> (16 - l)) + first[l] of the list.
 */

typedef struct {
    uint32_t      limit[US_HUFFMAN_MAX + 1];
    int32_t       first[US_HUFFMAN_MAX + 1];
    uint32_t      symbols;            /* offset of the code's list */
    uint32_t      entries;
    uint16_t      nsymbols;
    uint8_t       bits;               /* of the first level */
    uint8_t       pad;
} us_code_t;


/* an entry: symbol 16 | length 5 (0: a longer code) | context 7 | kind 2 */

#define US_ENTRY_LEN      16
#define US_ENTRY_CTX      21
#define US_ENTRY_KIND     28

#define US_KIND_TEXT      0
#define US_KIND_RUN       1
#define US_KIND_ESCAPE    2


static uint32_t us_model_sum(const us_model_t *m);
static unsigned us_model_code_symbols(const us_model_t *m, unsigned code);
static uint32_t us_model_entry(const us_model_t *m, unsigned code,
    unsigned symbol, unsigned len);


static inline const void *
us_model_at(const us_model_t *m, uint32_t offset)
{
    return (const uint8_t *) m + offset;
}


static inline const us_code_t *
us_model_codes(const us_model_t *m)
{
    return us_model_at(m, m->codes);
}


static inline unsigned
us_model_ncodes(const us_model_t *m)
{
    return (unsigned) m->ncontexts + US_CODES;
}


/* the next 57 bits or more, at the low end */

static inline uint64_t
us_bitin_peek(const us_bitin_t *b)
{
    return us_load64(b->base + (b->pos >> 3)) >> (b->pos & 7);
}


/* the first bit of a code is its highest, but lies lowest in a word */

static inline uint32_t
us_model_reverse(uint32_t v)
{
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0f0f) << 4 | (v >> 4 & 0x0f0f);

    return (v & 0xff) << 8 | v >> 8;
}


/*
 * Finds the symbol at the low end of w: its entry, with the length of its code.
 */

static inline uint32_t
us_model_find(const us_model_t *m, unsigned code, uint64_t w)
{
    unsigned          len;
    uint32_t          e, v;
    const uint16_t   *list;
    const uint32_t   *entries;
    const us_code_t  *c;

    c = us_model_codes(m) + code;

    entries = us_model_at(m, c->entries);
    e = entries[w & ((1u << c->bits) - 1)];

    if (e >> US_ENTRY_LEN & 31) {
        return e;
    }

    v = us_model_reverse((uint32_t) w & 0xffff);

    for (len = c->bits + 1u; v >= c->limit[len]; len++) { /* void */ }

    list = us_model_at(m, c->symbols);

    return us_model_entry(m, code,
                          list[(int32_t) (v >> (16 - len)) + c->first[len]],
                          len);
}


/*
 * Reads a token.  Returns its entry, or 0 with *end = 1 if it would end
 * beyond the bits, and *w the bits behind it (25 of them, at least).
 */

static inline uint32_t
us_model_next(const us_model_t *m, unsigned ctx, us_bitin_t *b, uint64_t *w,
    int *end)
{
    uint32_t  e, len;

    *w = us_bitin_peek(b);

    e = us_model_find(m, ctx, *w);
    len = e >> US_ENTRY_LEN & 31;

    if (len > b->end - b->pos) {
        *end = 1;
        return 0;
    }

    b->pos += len;
    *w >>= len;

    if (e >> US_ENTRY_KIND == US_KIND_ESCAPE) {
        e = us_model_find(m, m->ncontexts + US_CODE_ESCAPE, *w);
        len = e >> US_ENTRY_LEN & 31;

        if (len > b->end - b->pos) {
            *end = 1;
            return 0;
        }

        b->pos += len;
        *w >>= len;
    }

    return e;
}


int
us_model_symbol(const us_model_t *m, unsigned code, us_bitin_t *b)
{
    uint32_t  e, len;

    if (b->pos >= b->end) {
        return -1;
    }

    e = us_model_find(m, m->ncontexts + code, us_bitin_peek(b));
    len = e >> US_ENTRY_LEN & 31;

    if (len > b->end - b->pos) {
        return -1;
    }

    b->pos += len;

    return (int) (e & 0xffff);
}


/* unpacks the run of a token; its length, or 0 if it ends beyond the bits */

static unsigned
us_model_run(unsigned token, us_bitin_t *b, uint8_t *out)
{
    unsigned  alphabet, len, bits, part;

    alphabet = (token - US_TOKEN_RUN) / US_RUN_LENGTHS;
    len = (token - US_TOKEN_RUN) % US_RUN_LENGTHS + US_RUN_MIN;

    if (us_run_bits(alphabet, len) > b->end - b->pos) {
        return 0;
    }

    /* 6 characters of any alphabet are whole groups, of at most 36 bits */

    for (part = 0; part < len; part += 6) {
        bits = len - part < 6 ? len - part : 6;

        us_run_get(us_bitin_peek(b), alphabet, bits, out + part);
        b->pos += us_run_bits(alphabet, bits);
    }

    return len;
}


ssize_t
us_model_decode(const us_model_t *m, unsigned ctx, us_bitin_t *b, uint8_t *out,
    size_t need, size_t max)
{
    int              end;
    uint8_t         *p, *last;
    uint32_t         e, t, len, i;
    uint64_t         w;
    const uint8_t   *text, *from;
    const uint32_t  *tokens;

    if (b->pos > b->end) {
        return -1;
    }

    p = out;
    last = out + max;
    end = 0;
    text = us_model_at(m, m->text);
    tokens = us_model_at(m, m->tokens);

    while ((size_t) (p - out) < need) {
        e = us_model_next(m, ctx, b, &w, &end);

        if (end) {
            return b->end - b->pos < 4 ? p - out : -1;
        }

        ctx = e >> US_ENTRY_CTX & 127;

        if (e >> US_ENTRY_KIND == US_KIND_TEXT) {
            t = tokens[e & 0xffff];
            len = t >> US_TEXT_BITS & US_LEN_MASK;
            from = text + (t & (US_TEXT_MAX - 1));

            memcpy(p, from, 16);

            for (i = 16; i < len; i += 16) {
                memcpy(p + i, from + i, 16);
            }

        } else {
            len = us_model_run(e & 0xffff, b, p);

            if (len == 0) {
                return -1;
            }
        }

        p += len;

        if (p > last) {
            return -1;
        }
    }

    return p - out;
}


/*
 * Compares token by token, up to the first difference.  US_MODEL_MORE: the
 * text has ended and there is more.
 */

#define US_MODEL_DIFFERS  0
#define US_MODEL_EQUAL    1
#define US_MODEL_MORE     2

static inline int
us_model_compare(const us_model_t *m, unsigned ctx, us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    int              end;
    uint8_t          run[US_DECODE_SLACK];
    uint32_t         e, t, n;
    uint64_t         w;
    const uint8_t   *p, *last, *from, *pool;
    const uint32_t  *tokens;

    if (b->pos > b->end) {
        return US_MODEL_DIFFERS;
    }

    p = text;
    last = text + len;
    end = 0;
    pool = us_model_at(m, m->text);
    tokens = us_model_at(m, m->tokens);

    for ( ;; ) {
        e = us_model_next(m, ctx, b, &w, &end);

        if (end) {
            return p == last && first == NULL && b->end - b->pos < 4
                   ? US_MODEL_EQUAL : US_MODEL_DIFFERS;
        }

        ctx = e >> US_ENTRY_CTX & 127;

        if (e >> US_ENTRY_KIND == US_KIND_TEXT) {
            t = tokens[e & 0xffff];
            n = t >> US_TEXT_BITS & US_LEN_MASK;
            from = pool + (t & (US_TEXT_MAX - 1));

        } else {
            n = us_model_run(e & 0xffff, b, run);
            from = run;

            if (n == 0) {
                return US_MODEL_DIFFERS;
            }
        }

        if (first) {
            *first = *from++;
            first = NULL;
            n--;
        }

        if (n > (size_t) (last - p)) {
            return memcmp(p, from, (size_t) (last - p)) == 0
                   ? US_MODEL_MORE : US_MODEL_DIFFERS;
        }

        if (memcmp(p, from, n) != 0) {
            return US_MODEL_DIFFERS;
        }

        p += n;
    }
}


int
us_model_equal(const us_model_t *m, unsigned ctx, us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    return us_model_compare(m, ctx, b, text, len, first) == US_MODEL_EQUAL;
}


int
us_model_begins(const us_model_t *m, unsigned ctx, us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first)
{
    return us_model_compare(m, ctx, b, text, len, first) != US_MODEL_DIFFERS;
}


size_t
us_model_core_size(const uint8_t *core, size_t len)
{
    unsigned           i, l, ncodes, n, limit;
    uint32_t           kraft, sum, t;
    const uint16_t    *nlen, *list;
    const uint32_t    *tokens;
    const us_model_t  *m;

    m = (const us_model_t *) core;

    if (len < sizeof(us_model_t)
        || m->magic != US_MODEL_MAGIC || m->version != US_MODEL_VERSION
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
        || m->codes != m->core_size
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
        nlen = (const uint16_t *) us_model_at(m, m->nlen) + i * US_NLEN;
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

        limit = us_model_code_symbols(m, i);

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            for (n = 0; n < nlen[l]; n++, sum++) {
                if (list[sum] >= limit
                    || (n && list[sum] <= list[sum - 1]))
                {
                    return 0;
                }
            }
        }
    }

    if (sum != m->nsymbols || m->size != us_model_size(core)) {
        return 0;
    }

    return m->core_size;
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
    size = m->core_size + us_model_ncodes(m) * sizeof(us_code_t);

    for (i = 0; i < us_model_ncodes(m); i++) {
        size += sizeof(uint32_t)
                << us_model_table_bits((const uint16_t *)
                                       us_model_at(m, m->nlen) + i * US_NLEN);
    }

    return (size + 7) & ~(size_t) 7;
}


void
us_model_build(us_model_t *dst, const uint8_t *core)
{
    unsigned         i, l, k;
    uint32_t         code, index, at, symbols, *entries;
    us_code_t       *c;
    const uint16_t  *nlen, *list;

    memcpy(dst, core, ((const us_model_t *) core)->core_size);

    c = (us_code_t *) us_model_at(dst, dst->codes);
    at = dst->codes + us_model_ncodes(dst) * (uint32_t) sizeof(us_code_t);
    symbols = dst->symbols;

    for (i = 0; i < us_model_ncodes(dst); i++, c++) {
        nlen = (const uint16_t *) us_model_at(dst, dst->nlen) + i * US_NLEN;

        memset(c, 0, sizeof(us_code_t));

        c->bits = (uint8_t) us_model_table_bits(nlen);
        c->symbols = symbols;
        c->entries = at;

        entries = (uint32_t *) us_model_at(dst, at);
        list = us_model_at(dst, symbols);

        memset(entries, 0, sizeof(uint32_t) << c->bits);

        code = 0;
        index = 0;

        for (l = 1; l <= US_HUFFMAN_MAX; l++) {
            c->first[l] = (int32_t) index - (int32_t) (code >> (16 - l));

            for (k = 0; k < nlen[l]; k++) {
                if (l <= c->bits) {
                    uint32_t  e, n;

                    e = us_model_entry(dst, i, list[index], l);

                    for (n = us_model_reverse(code);
                         n < 1u << c->bits;
                         n += 1u << l)
                    {
                        entries[n] = e;
                    }
                }

                code += 1u << (16 - l);
                index++;
            }

            c->limit[l] = code;
        }

        c->nsymbols = (uint16_t) index;
        symbols += index * (uint32_t) sizeof(uint16_t);
        at += (uint32_t) sizeof(uint32_t) << c->bits;
    }

}


static uint32_t
us_model_entry(const us_model_t *m, unsigned code, unsigned symbol,
    unsigned len)
{
    uint32_t         e;
    const uint32_t  *tokens;

    e = symbol | len << US_ENTRY_LEN;

    if (code > m->ncontexts + US_CODE_ESCAPE) {
        return e;
    }

    if (symbol == m->ntokens) {
        return e | US_KIND_ESCAPE << US_ENTRY_KIND;
    }

    tokens = us_model_at(m, m->tokens);
    e |= (tokens[symbol] >> US_CTX_SHIFT) << US_ENTRY_CTX;

    if (symbol - US_TOKEN_RUN < US_TOKEN_TEXT - US_TOKEN_RUN) {
        e |= US_KIND_RUN << US_ENTRY_KIND;
    }

    return e;
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


unsigned
us_model_code_of(const us_model_t *m, unsigned code, unsigned symbol,
    unsigned len, uint32_t *bits)
{
    uint32_t          next;
    unsigned          low, high, mid;
    const uint16_t   *list;
    const us_code_t  *c;

    c = us_model_codes(m) + code;
    next = c->limit[len - 1];

    list = us_model_at(m, c->symbols);
    list += (int32_t) (next >> (16 - len)) + c->first[len];

    low = 0;
    high = (c->limit[len] - next) >> (16 - len);

    while (low < high) {
        mid = (low + high) / 2;

        if (list[mid] < symbol) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    if (low == (c->limit[len] - next) >> (16 - len) || list[low] != symbol) {
        return 0;
    }

    *bits = us_model_reverse(next + (low << (16 - len)));

    return len;
}


unsigned
us_model_code(const us_model_t *m, unsigned code, unsigned symbol,
    uint32_t *bits)
{
    unsigned  len;

    for (len = 1; len <= US_HUFFMAN_MAX; len++) {
        if (us_model_code_of(m, code, symbol, len, bits)) {
            return len;
        }
    }

    return 0;
}


void
us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n)
{
    unsigned          l, i;
    const uint16_t   *list, *nlen;

    nlen = (const uint16_t *) us_model_at(m, m->nlen) + code * US_NLEN;
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
