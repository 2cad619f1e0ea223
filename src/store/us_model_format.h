
/*
 * A model: the tokens and codes under which records are written.
 *
 *     us_model.c        decodes
 *     us_model_core.c   checks a core, builds its tables, answers its writers
 *     us_model_write.c  makes a core
 *
 * FORMAT:
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


#ifndef _US_MODEL_FORMAT_H_INCLUDED_
#define _US_MODEL_FORMAT_H_INCLUDED_


#include "us_model.h"


#define US_MODEL_MAGIC    0x6c646f6d  /* "modl" */

/* numbers of symbols by code length, 0 .. 16, and one unused */
#define US_NLEN           18

#define US_TEXT_BITS      19
#define US_LEN_BITS       6
#define US_LEN_MASK       ((1 << US_LEN_BITS) - 1)
#define US_CTX_SHIFT      (US_TEXT_BITS + US_LEN_BITS)
#define US_TEXT_MAX       (1 << US_TEXT_BITS)

/* the tables for decoding are aligned to cache lines, if the model is */
#define US_LINE           64u

/* copies of a token's text are made in pieces of 16 bytes */
#define US_TEXT_SLACK     64


struct us_model_s {
    uint32_t      magic;
    uint16_t      version;
    uint8_t       ncontexts;
    uint8_t       pad;
    uint32_t      core_size;
    uint32_t      ntokens;
    uint32_t      nsymbols;
    uint32_t      text_size;
    uint32_t      checksum;

    uint32_t      nlen;               /* offsets from the model's address */
    uint32_t      tokens;
    uint32_t      symbols;
    uint32_t      text;
    uint32_t      pad2[3];
};


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

extern const uint8_t  us_model_reversed[256];

static inline uint32_t
us_model_reverse(uint32_t v)
{
    return (uint32_t) us_model_reversed[v & 0xff] << 8
           | us_model_reversed[v >> 8];
}


/* completes the entry e, symbol and length, of a token */

static inline __attribute__((always_inline)) uint32_t
us_model_entry(const us_model_t *m, const uint32_t *tokens, unsigned symbol,
    uint32_t e)
{
    if (symbol == m->ntokens) {
        return e | (uint32_t) US_KIND_ESCAPE << US_ENTRY_KIND;
    }

    e |= tokens[symbol] >> US_CTX_SHIFT << US_ENTRY_CTX;

    if (us_token_is_run(symbol)) {
        e |= US_KIND_RUN << US_ENTRY_KIND;
    }

    return e;
}


#endif /* _US_MODEL_FORMAT_H_INCLUDED_ */
