
/*
 * The decoder: from the bits of a record to tokens, and to text.  See
 * us_model_format.h for what a model looks like.
 *
 * Bits are read a word at a time.  The next code indexes the table of its
 * context; the entry there tells symbol, length, what kind of token it is and
 * the context behind it.  Longer codes are found by their lengths' limits.
 */


#include "us_model_format.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif


/* left to itself, the compiler calls what each token needs */
#define us_inline         inline __attribute__((always_inline))


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
} us_cursor_t;


static us_inline us_cursor_t
us_cursor(const us_model_t *m, unsigned ctx, const us_bitin_t *b)
{
    us_cursor_t  r;

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
us_cursor_find(const us_cursor_t *r, unsigned code, uint64_t w)
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
us_cursor_next(us_cursor_t *r)
{
    uint32_t  e;
    uint64_t  w, pos;

    pos = r->pos;
    w = us_load64(r->base + (pos >> 3)) >> (pos & 7);
    e = us_cursor_find(r, r->ctx, w);

    if (e >> US_ENTRY_KIND == US_KIND_ESCAPE) {
        e >>= US_ENTRY_LEN;
        e &= 31;

        w >>= e;
        pos += e;

        e = us_cursor_find(r, r->m->ncontexts + US_CODE_ESCAPE, w);
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
us_cursor_ended(const us_cursor_t *r)
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
    w = us_bitin_peek(b);

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
us_cursor_run(const us_cursor_t *r, unsigned token, uint64_t *next,
    uint8_t *out)
{
    unsigned  alphabet, len, n, part;
    uint64_t  pos;

    alphabet = us_token_run_alphabet(token);
    len = us_token_run_len(token);
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
    us_cursor_t     r, copy;
    const uint8_t  *from;

    if (b->pos > b->end) {
        return -1;
    }

    p = out;
    last = out + max;
    r = us_cursor(m, ctx, b);

    while ((size_t) (p - out) < need) {
        e = us_cursor_next(&r);

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
            len = us_cursor_run(&copy, e & 0xffff, &next, p);

            if (len == 0) {
                return -1;
            }

            r.pos = next;

        } else {
            return us_cursor_ended(&r) ? p - out : -1;
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
    us_cursor_t     r, copy;
    const uint8_t  *p, *from;

    if (b->pos > b->end) {
        return US_MODEL_DIFFERS;
    }

    p = text;
    left = len;
    r = us_cursor(m, ctx, b);

    for ( ;; ) {
        e = us_cursor_next(&r);

        if (e >> US_ENTRY_KIND == US_KIND_TEXT) {
            t = r.tokens[e & 0xffff];
            n = t >> US_TEXT_BITS & US_LEN_MASK;
            from = r.pool + (t & (US_TEXT_MAX - 1));

        } else if (e >> US_ENTRY_KIND == US_KIND_RUN) {
            copy = r;
            n = us_cursor_run(&copy, e & 0xffff, &next, run);
            from = run;

            if (n == 0) {
                return US_MODEL_DIFFERS;
            }

            r.pos = next;

        } else {
            return left == 0 && first == NULL && us_cursor_ended(&r)
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
