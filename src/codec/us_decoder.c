
/*
 * The decoder: from the bits of a record to tokens, and to text.  See
 * us_model.c for what a model looks like.
 *
 * A code is found by two tables, without a branch: half of the codes are
 * longer than a single table of a useful size, so that a branch on it would be
 * mispredicted for every second token.
 *
 *   bits ...|c8 c7 c6 c5|c4 c3 c2 c1 c0|       c0 is read first
 *                |             |
 *                |             `-> first[context][c4 .. c0]
 *                |                   where | mask
 *                `------ & mask -------------|
 *                                            v
 *                             second[where + masked bits]
 *                                text | length of it | context | length
 *
 * A code of up to US_FIRST_BITS bits has a mask of 0 and one entry, wherever
 * its bits occur in the first table; longer ones that begin alike share a
 * table as large as the longest of them needs.  Since these differ little in
 * length, the second table has hardly more entries than there are codes: what
 * counts is that both are small, so that they stay in the cache.
 *
 * An entry has the context that follows, so the way from a token to the next
 * leads over these two loads; and where in the pool its text is, of which 16
 * bytes are copied, or compared, whatever its length.  An escape is a token
 * without text whose context is the code of all tokens.  Runs and long texts
 * (US_LEN_OTHER) have the token's number in place of the text.
 */


#include "us_decoder.h"
#include "../us_vector.h"


/* without it, the compiler does not inline what each token needs */
#define us_inline          inline __attribute__((always_inline))


#define US_LEN_OTHER       15         /* in an entry: the length is not */
#define US_TEXT_SHORT      16         /* bytes that are looked at */

/* tokens that are decoded from one word of bits */
#define US_WORD_TOKENS     3

/* comparisons that are done in turns; tuned with make bench-engine */
#ifndef US_LANES
#define US_LANES           4
#endif


static inline size_t
us_decoder_align(size_t n)
{
    return (n + US_DECODER_ALIGN - 1) & ~(size_t) (US_DECODER_ALIGN - 1);
}


/*
 * The greatest length among the codes that begin with these US_FIRST_BITS
 * bits, of which the first is the highest.
 */

static unsigned
us_decoder_longest(const uint16_t *nlen, unsigned prefix)
{
    unsigned  l;
    uint32_t  last, v;

    last = ((prefix + 1) << (US_HUFFMAN_MAX - US_FIRST_BITS)) - 1;

    for (l = 1, v = 0; l < US_HUFFMAN_MAX; l++) {
        v += (uint32_t) nlen[l] << (US_HUFFMAN_MAX - l);

        if (v > last) {
            break;
        }
    }

    return l;
}


size_t
us_decoder_size(const us_model_t *m)
{
    size_t           n;
    unsigned         i, l, prefix;
    const uint16_t  *nlen;

    /* entries in the second table */

    n = 0;

    for (i = 0; i < us_model_ncodes(m); i++) {
        nlen = us_model_nlen(m, i);

        for (l = 1; l <= US_FIRST_BITS; l++) {
            n += nlen[l];
        }

        for (prefix = 0; prefix < US_FIRST_SIZE; prefix++) {
            l = us_decoder_longest(nlen, prefix);
            n += l > US_FIRST_BITS ? (size_t) 1 << (l - US_FIRST_BITS) : 0;
        }
    }

    return us_decoder_align(sizeof(us_decoder_t))
           + us_decoder_align(us_model_ncodes(m) * US_FIRST_SIZE
                              * sizeof(uint32_t))
           + us_decoder_align(m->text_size)
           + us_decoder_align(n * sizeof(uint32_t));
}


/* the entry of a symbol, without the length of its code */

static uint32_t
us_decoder_symbol_entry(const us_model_t *m, unsigned code, unsigned symbol)
{
    uint32_t  t, at, len, ctx;

    if (code > m->ncontexts + US_CODE_ESCAPE) {
        return symbol << US_ENTRY_TEXT;
    }

    if (symbol == m->ntokens) {
        return (m->ncontexts + US_CODE_ESCAPE) << US_ENTRY_CTX;
    }

    t = ((const uint32_t *) us_model_at(m, m->tokens))[symbol];

    at = t & (US_TEXT_MAX - 1);
    len = t >> US_TEXT_BITS & US_LEN_MASK;
    ctx = t >> US_CTX_SHIFT;

    if (us_token_is_run(symbol) || len >= US_LEN_OTHER || at > UINT16_MAX) {
        at = symbol;
        len = US_LEN_OTHER;
    }

    return at << US_ENTRY_TEXT | len << US_ENTRY_LEN | ctx << US_ENTRY_CTX;
}


/*
 * The tables of a code, whose entries in the second one are numbered from at
 * on.  Returns the number after the last.
 */

static uint32_t
us_decoder_code(uint32_t *first, uint32_t *second, const us_model_t *m,
    unsigned code, const uint16_t **list, uint32_t at)
{
    unsigned         l, k, longest, prefix, n;
    uint32_t         v, e, low, bits;
    const uint16_t  *nlen;

    nlen = us_model_nlen(m, code);
    longest = 0;
    n = 0;
    v = 0;

    for (l = 1; l <= US_HUFFMAN_MAX; l++) {
        for (k = 0; k < nlen[l]; k++, v += 1u << (US_HUFFMAN_MAX - l)) {

            e = us_decoder_symbol_entry(m, code, *(*list)++) | l;
            low = us_model_reverse(v);

            if (l <= US_FIRST_BITS) {
                for (bits = low; bits < US_FIRST_SIZE; bits += 1u << l) {
                    first[bits] = at << US_MASK_BITS;
                }

                second[at++] = e;
                continue;
            }

            prefix = v >> (US_HUFFMAN_MAX - US_FIRST_BITS);

            if ((v & ((1u << (US_HUFFMAN_MAX - US_FIRST_BITS)) - 1)) == 0) {
                at += n;
                longest = us_decoder_longest(nlen, prefix);
                n = 1u << (longest - US_FIRST_BITS);
                first[low & (US_FIRST_SIZE - 1)] = at << US_MASK_BITS
                                                   | (n - 1);
            }

            for (bits = low >> US_FIRST_BITS; bits < n;
                 bits += 1u << (l - US_FIRST_BITS))
            {
                second[at + bits] = e;
            }
        }
    }

    return at + n;
}


us_decoder_t *
us_decoder_build(void *dst, const us_model_t *m)
{
    uint8_t         *p;
    uint32_t         at, *first, *second;
    unsigned         i;
    us_decoder_t    *d;
    const uint16_t  *list;

    p = dst;
    d = dst;

    p += us_decoder_align(sizeof(us_decoder_t));
    first = (uint32_t *) p;
    p += us_decoder_align(us_model_ncodes(m) * US_FIRST_SIZE
                          * sizeof(uint32_t));
    d->pool = memcpy(p, us_model_at(m, m->text), m->text_size);
    p += us_decoder_align(m->text_size);
    second = (uint32_t *) p;

    d->codes = m->ncontexts;
    d->tokens = us_model_at(m, m->tokens);
    d->first = first;
    d->second = second;

    list = us_model_at(m, m->symbols);
    at = 0;

    for (i = 0; i < us_model_ncodes(m); i++) {
        at = us_decoder_code(first + i * US_FIRST_SIZE, second, m, i, &list,
                             at);
    }

    return d;
}


/*
 * What reads tokens.  It lives in registers: bytes that are written could be
 * any of the decoder's fields, so these are copied.
 */

typedef struct {
    us_decoder_t       d;
    const uint8_t     *base;
    uint64_t           pos;
    uint64_t           end;
    uint64_t           word;          /* the bits from pos on */
    uint32_t           entry;         /* the last token's */
} us_decoding_t;


static us_inline us_decoding_t
us_decoding(const us_decoder_t *d, unsigned ctx, const us_bitin_t *b)
{
    us_decoding_t  r;

    r.d = *d;
    r.base = b->base;
    r.pos = b->pos;
    r.end = b->end;
    r.word = 0;
    r.entry = ctx << US_ENTRY_CTX;

    return r;
}


static us_inline void
us_decoding_load(us_decoding_t *r)
{
    r->word = us_load64(r->base + (r->pos >> 3)) >> (r->pos & 7);
}


/* steps over a token: its entry */

static us_inline uint32_t
us_decoding_next(us_decoding_t *r)
{
    uint32_t  e;

    e = us_decoder_entry(&r->d, r->entry, r->word);

    r->word >>= e & US_ENTRY_LENGTH;
    r->pos += e & US_ENTRY_LENGTH;
    r->entry = e;

    return e;
}


/* there are no more tokens: see us_model.c for how a record ends */

static inline int
us_decoding_ended(const us_decoding_t *r)
{
    uint64_t  left, ones;

    /* a great number if pos is beyond the end */

    left = r->end - r->pos;

    if (left >= 4) {
        return 0;
    }

    ones = ((uint64_t) 1 << left) - 1;

    return (us_load64(r->base + (r->pos >> 3)) >> (r->pos & 7) & ones) == ones;
}


/* unpacks the run of a token; its length, or 0 if it ends beyond the bits */

static __attribute__((noinline)) unsigned
us_decode_run(const uint8_t *base, uint64_t pos, uint64_t end, unsigned token,
    uint8_t *out)
{
    unsigned  alphabet, len, n, part;

    alphabet = us_token_run_alphabet(token);
    len = us_token_run_len(token);

    if (us_run_bits(alphabet, len) > end - pos) {
        return 0;
    }

    /* 6 characters of any alphabet are whole groups, of at most 36 bits */

    for (part = 0; part < len; part += 6) {
        n = len - part < 6 ? len - part : 6;

        us_run_get(us_load64(base + (pos >> 3)) >> (pos & 7), alphabet, n,
                   out + part);
        pos += us_run_bits(alphabet, n);
    }

    return len;
}


/*
 * The text of a token that is not simple: a run's is unpacked to buf, which has
 * US_RUN_MAX bytes, and read over.  NULL: it ends beyond the bits.
 */

static const uint8_t *
us_decode_text(us_decoding_t *r, uint8_t *buf, unsigned *len)
{
    uint32_t  t;
    unsigned  token;

    token = r->entry >> US_ENTRY_TEXT;

    if (!us_token_is_run(token)) {
        t = r->d.tokens[token];
        *len = t >> US_TEXT_BITS & US_LEN_MASK;

        return r->d.pool + (t & (US_TEXT_MAX - 1));
    }

    *len = us_decode_run(r->base, r->pos, r->end, token, buf);

    if (*len == 0) {
        return NULL;
    }

    r->pos += us_run_bits(us_token_run_alphabet(token), *len);

    return buf;
}


static inline unsigned
us_entry_len(uint32_t e)
{
    return e >> US_ENTRY_LEN & US_ENTRY_LEN_MASK;
}


ssize_t
us_decode(const us_decoder_t *d, unsigned ctx, const us_bitin_t *b,
    uint8_t *out, size_t need, size_t max)
{
    uint8_t        *p, *stop, run[US_RUN_MAX];
    uint32_t        e, last;
    unsigned        i, len;
    us_decoding_t   r, copy;
    const uint8_t  *from;

    if (b->pos > b->end) {
        return -1;
    }

    p = out;
    stop = out + (need <= max ? need : max + 1);
    r = us_decoding(d, ctx, b);

    while (p < stop) {
        us_decoding_load(&r);

        for (i = 0; i < US_WORD_TOKENS; i++) {
            last = r.entry;
            e = us_decoding_next(&r);

            if (r.pos > r.end) {

                /* no token may be missing after an escape */

                r.pos -= e & US_ENTRY_LENGTH;

                return us_decoding_ended(&r)
                       && (last & US_ENTRY_CTX_MASK)
                          != d->codes << US_ENTRY_CTX ? p - out : -1;
            }

            len = us_entry_len(e);

            if (len == US_LEN_OTHER) {
                copy = r;
                from = us_decode_text(&copy, run, &len);

                if (from == NULL) {
                    return -1;
                }

                r.pos = copy.pos;
                memcpy(p, from, len);
                p += len;
                break;
            }

            memcpy(p, r.d.pool + (e >> US_ENTRY_TEXT), US_TEXT_SHORT);
            p += len;

            if (p >= stop) {
                break;
            }
        }
    }

    return (size_t) (p - out) <= max ? p - out : -1;
}


/* which of 16 readable bytes are equal */

static us_inline unsigned
us_short_equal(const uint8_t *p, const uint8_t *q)
{
    return us_bits16((us_bytes_t) (us_load_bytes(p) == us_load_bytes(q)));
}


/*
 * The rest of a text that is being compared.  US_TEXT_SHORT bytes can be read
 * up to stop: a short text is copied.
 */

typedef struct {
    const uint8_t     *p;
    const uint8_t     *stop;
} us_text_t;

#define US_TEXT_DIFFERS    0
#define US_TEXT_GOES_ON    1
#define US_TEXT_DONE       2          /* equal up to the end */


static us_inline us_text_t
us_text(const uint8_t *text, size_t len, uint8_t end[2 * US_TEXT_SHORT])
{
    us_text_t  t;

    if (len < US_TEXT_SHORT) {
        end += US_TEXT_SHORT - len;
        text = memcpy(end, text, len);
    }

    t.p = text;
    t.stop = text + len;

    return t;
}


/*
 * Compares a short token, but for its first bytes if `skip` has their bits.
 * Near the end of the text both sides are read from so many bytes before that
 * nothing past the end is read; before the texts of the pool are other tables.
 */

static us_inline int
us_text_compare(us_text_t *t, const uint8_t *from, unsigned len, unsigned skip)
{
    size_t    left, back;
    unsigned  equal, same;

    left = (size_t) (t->stop - t->p);
    back = left < US_TEXT_SHORT ? US_TEXT_SHORT - left : 0;

    equal = us_short_equal(t->p - back, from - back) >> back | skip;
    same = (unsigned) __builtin_ctz(~equal);

    if (same < len && same < left) {
        return US_TEXT_DIFFERS;
    }

    t->p += len;

    return len < left ? US_TEXT_GOES_ON : US_TEXT_DONE;
}


/* compares a token that is not short; *first, if not NULL: its first byte */

static __attribute__((noinline)) int
us_text_compare_other(us_decoding_t *r, us_text_t *t, uint8_t *first)
{
    size_t          left, n, skip;
    uint8_t         run[US_RUN_MAX];
    unsigned        len;
    const uint8_t  *from;

    if (r->pos > r->end) {
        return US_TEXT_DIFFERS;
    }

    from = us_decode_text(r, run, &len);

    if (from == NULL) {
        return US_TEXT_DIFFERS;
    }

    if (first) {
        *first = from[0];
    }

    skip = first != NULL;
    left = (size_t) (t->stop - t->p);
    n = len < left ? len : left;

    if (memcmp(t->p + skip, from + skip, n - skip) != 0) {
        return US_TEXT_DIFFERS;
    }

    t->p += len;

    return len < left ? US_TEXT_GOES_ON : US_TEXT_DONE;
}


/* compares the token of an entry; *first, if not NULL: its first byte */

static us_inline int
us_decode_token(us_decoding_t *r, us_text_t *t, uint32_t e, uint8_t *first)
{
    int             rc;
    us_text_t       rest;
    us_decoding_t   copy;
    const uint8_t  *from;

    if (us_entry_len(e) == US_LEN_OTHER) {
        copy = *r;
        rest = *t;

        rc = us_text_compare_other(&copy, &rest, first);

        if (rc != US_TEXT_DIFFERS) {
            t->p = rest.p;
            r->pos = copy.pos;
            us_decoding_load(r);
        }

        return rc;
    }

    from = r->d.pool + (e >> US_ENTRY_TEXT);

    if (first) {
        *first = from[0];
    }

    return us_text_compare(t, from, us_entry_len(e), first != NULL);
}


/*
 * A comparison in progress: token by token, up to the first difference.  The
 * end of the bits is looked for once in a word: beyond it there are no tokens,
 * but what is found there does no harm.
 */

typedef struct {
    us_decoding_t     r;
    us_text_t         t;
    us_comparison_t  *c;
} us_turn_t;


/*
 * Begins a comparison.  The token whose first byte is read, not compared, is
 * done here: a branch on it in each step would be mispredicted.
 */

static us_inline int
us_turn(us_turn_t *lane, us_comparison_t *c, uint8_t end[2 * US_TEXT_SHORT])
{
    int            rc;
    uint32_t       e;
    us_text_t      t;
    us_decoding_t  r;

    r = us_decoding(c->decoder, c->ctx, &c->bits);
    t = us_text(c->text, c->len, end);
    rc = US_TEXT_GOES_ON;

    if (c->first) {
        us_decoding_load(&r);
        e = us_decoding_next(&r);

        if (us_entry_len(e) == 0) {

            /* an escape */

            e = us_decoding_next(&r);
        }

        rc = us_decode_token(&r, &t, e, c->first);
    }

    lane->r = r;
    lane->t = t;
    lane->c = c;

    return rc;
}


/* compares the tokens of a word; returns US_TEXT_* */

static us_inline int
us_turn_step(us_turn_t *lane)
{
    int            rc;
    uint32_t       e;
    unsigned       i;
    us_text_t      t;
    us_decoding_t  r;

    r = lane->r;
    t = lane->t;

    if (r.pos > r.end) {
        return US_TEXT_DIFFERS;
    }

    us_decoding_load(&r);
    rc = US_TEXT_GOES_ON;

#pragma GCC unroll 3
    for (i = 0; i < US_WORD_TOKENS; i++) {
        e = us_decoding_next(&r);
        rc = us_decode_token(&r, &t, e, NULL);

        if (rc != US_TEXT_GOES_ON) {
            break;
        }
    }

    lane->r = r;
    lane->t = t;

    return rc;
}


/* the answer, after the last step */

static us_inline int
us_turn_answer(const us_turn_t *lane, int rc)
{
    if (rc == US_TEXT_DIFFERS) {
        return 0;
    }

    return lane->c->begins ? lane->r.pos <= lane->r.end
                           : lane->t.p == lane->t.stop
                             && us_decoding_ended(&lane->r);
}


/* nothing to compare: the tail can be empty */

static us_inline int
us_turn_empty(us_comparison_t *c)
{
    us_decoding_t  r;

    r = us_decoding(c->decoder, c->ctx, &c->bits);

    return c->begins || us_decoding_ended(&r);
}


/* begins the next comparison that goes on after its begin; 0: none */

static us_inline int
us_turn_next(us_turn_t *lane, us_comparison_t *all, unsigned n, unsigned *next,
    uint8_t end[2 * US_TEXT_SHORT])
{
    int               rc;
    us_comparison_t  *c;

    while (*next < n) {
        c = &all[(*next)++];

        if (c->len == 0) {
            c->answer = us_turn_empty(c);
            continue;
        }

        rc = us_turn(lane, c, end);

        if (rc == US_TEXT_GOES_ON) {
            return 1;
        }

        c->answer = us_turn_answer(lane, rc);
    }

    return 0;
}


int
us_decode_equal(us_comparison_t *c)
{
    int        rc;
    uint8_t    end[2 * US_TEXT_SHORT];
    us_turn_t  lane;

    if (c->len == 0) {
        return us_turn_empty(c);
    }

    rc = us_turn(&lane, c, end);

    while (rc == US_TEXT_GOES_ON) {
        rc = us_turn_step(&lane);
    }

    return us_turn_answer(&lane, rc);
}


void
us_decode_compare(us_comparison_t *all, unsigned n)
{
    int        rc;
    uint8_t    ends[US_LANES][2 * US_TEXT_SHORT];
    unsigned   i, k, live, next;
    unsigned   busy[US_LANES];
    us_turn_t  lanes[US_LANES];

    next = 0;
    live = 0;

    for (k = 0; k < US_LANES; k++) {
        if (us_turn_next(&lanes[k], all, n, &next, ends[k])) {
            busy[live++] = k;
        }
    }

    while (live) {
        for (i = 0; i < live; i++) {
            k = busy[i];
            rc = us_turn_step(&lanes[k]);

            if (rc == US_TEXT_GOES_ON) {
                continue;
            }

            lanes[k].c->answer = us_turn_answer(&lanes[k], rc);

            if (!us_turn_next(&lanes[k], all, n, &next, ends[k])) {
                busy[i--] = busy[--live];
            }
        }
    }
}


size_t
us_decode_same(const us_decoder_t *d, unsigned ctx, us_bitin_t *b,
    const uint8_t *text, size_t len)
{
    size_t          p, same;
    uint8_t         run[US_RUN_MAX];
    uint32_t        e;
    unsigned        n;
    us_decoding_t   r, copy;
    const uint8_t  *from;

    r = us_decoding(d, ctx, b);

    for (p = 0; p < len; p += n) {
        us_decoding_load(&r);
        e = us_decoding_next(&r);

        if (r.pos > r.end) {
            return p;
        }

        n = us_entry_len(e);

        if (n == US_LEN_OTHER) {
            copy = r;
            from = us_decode_text(&copy, run, &n);

            if (from == NULL) {
                return p;
            }

            r.pos = copy.pos;

            for (same = 0;
                 same < n && p + same < len && text[p + same] == from[same];
                 same++)
            {
                /* void */
            }

        } else {

            /* 16 bytes, or less before the first that differs */

            same = (unsigned) __builtin_ctz(
                       ~us_short_equal(text + p,
                                       r.d.pool + (e >> US_ENTRY_TEXT)));
        }

        if (same < n) {
            p += same;
            break;
        }

        b->pos = r.pos;
    }

    return p < len ? p : len;
}
