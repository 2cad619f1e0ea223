
/*
 * The reading side of a model: from bits to text.  See us_decoder.c.
 */


#ifndef _US_DECODER_H_INCLUDED_
#define _US_DECODER_H_INCLUDED_


#include "us_model.h"
#include "../us_bit.h"


/* a text to be decoded may write that much beyond its end */
#define US_DECODE_SLACK    64


/*
 * The tables: see us_decoder.c.  Entries of the first one: where 21 | mask 11;
 * of the second one: length 5 | context 7 | bytes of text 4 | text, or symbol,
 * 16.
 */

typedef struct {
    unsigned           codes;         /* that of US_CODE_ESCAPE */
    const uint32_t    *first;         /* [codes][US_FIRST_SIZE] */
    const uint32_t    *second;
    const uint8_t     *pool;          /* of texts, as in the model */
    const uint32_t    *tokens;        /* of the model */
} us_decoder_t;


#define US_FIRST_BITS      5
#define US_FIRST_SIZE      (1 << US_FIRST_BITS)

#define US_MASK_BITS       (US_HUFFMAN_MAX - US_FIRST_BITS)
#define US_MASK            ((1 << US_MASK_BITS) - 1)

#define US_ENTRY_LENGTH    31
#define US_ENTRY_CTX       US_FIRST_BITS
#define US_ENTRY_CTX_MASK  (127 << US_ENTRY_CTX)
#define US_ENTRY_LEN       12
#define US_ENTRY_LEN_MASK  15
#define US_ENTRY_TEXT      16


/*
 * The entry of the code at the low end of a word; last is that of the token
 * before, or a context << US_ENTRY_CTX.
 */

static inline uint32_t
us_decoder_entry(const us_decoder_t *d, uint32_t last, uint64_t word)
{
    uint32_t  e;

    e = d->first[(last & US_ENTRY_CTX_MASK) | (word & (US_FIRST_SIZE - 1))];

    return d->second[(e >> US_MASK_BITS)
                     + (word >> US_FIRST_BITS & e & US_MASK)];
}


/*
 * The tables of a model, for one process: us_decoder_size() bytes at dst, which
 * is aligned to US_DECODER_ALIGN.  The model was checked, and stays where it is
 * as long as they are used.
 */
#define US_DECODER_ALIGN   64

size_t us_decoder_size(const us_model_t *m);
us_decoder_t *us_decoder_build(void *dst, const us_model_t *m);


/*
 * Reads a symbol of US_CODE_HEAD, _NEAR or _FAR: -1 if none ends before b->end.
 */

static inline int
us_decoder_symbol(const us_decoder_t *d, us_model_code_t code, us_bitin_t *b)
{
    uint32_t  e;

    if (b->pos >= b->end) {
        return -1;
    }

    e = us_decoder_entry(d, (d->codes + code) << US_ENTRY_CTX,
                         us_bitin_peek(b));
    b->pos += e & US_ENTRY_LENGTH;

    return b->pos <= b->end ? (int) (e >> US_ENTRY_TEXT) : -1;
}


/*
 * Decoding.  None of these trusts the bits: they end at b->end, never write
 * beyond max (+ US_DECODE_SLACK) and never loop without consuming bits.
 *
 * us_decode() writes the text that the rest of the bits encode, until there are
 * `need` bytes of it.  Returns their number, or -1.
 *
 * us_decode_equal() returns whether they encode a text, or, with `begins`, one
 * that begins with it.  If first is not NULL, the first byte of the text is not
 * compared; what the bits say for it goes to *first.
 */
ssize_t us_decode(const us_decoder_t *d, unsigned ctx, const us_bitin_t *b,
    uint8_t *out, size_t need, size_t max);

typedef struct {
    const us_decoder_t  *decoder;
    unsigned             ctx;
    int                  begins;
    us_bitin_t           bits;
    const uint8_t       *text;
    size_t               len;
    uint8_t             *first;
    int                  answer;      /* us_decode_compare()'s */
} us_comparison_t;

int us_decode_equal(us_comparison_t *c);

/*
 * Several comparisons.  A token leads to the next over loads that depend on
 * each other; so a few are done in turns, and while one waits, others go on.
 */
void us_decode_compare(us_comparison_t *all, unsigned n);


/*
 * How many bytes of a text the bits encode, up to the first difference; the
 * tokens that are wholly equal end at b->pos.  After the text US_DECODE_SLACK
 * bytes can be read.
 */

size_t us_decode_same(const us_decoder_t *d, unsigned ctx, us_bitin_t *b,
    const uint8_t *text, size_t len);


#endif /* _US_DECODER_H_INCLUDED_ */
