
/*
 * A model: the tokens and codes under which records are written.
 *
 *     us_model_write.c  writes a model
 *     us_model.c        checks one
 *     us_decoder.c      reads records with it
 *     us_encoder.c      writes them
 *
 * FORMAT:
 *
 *     us_model_s   magic, version, sizes, checksum
 *     uint16_t     nlen[ncodes][18]    how many symbols of each code length
 *     uint32_t     tokens[ntokens]     text offset 19 | length 6 | context 7
 *     uint16_t     symbols[nsymbols]   by code, then by length
 *     uint8_t      text[text_size]     of bytes and learnt tokens
 *
 * padded to a multiple of 8 bytes.
 *
 * A text is cut into tokens: single bytes, learnt tokens, and runs (3 to 32
 * characters of a small alphabet, which follow packed).  Each token is coded
 * by the canonical Huffman code of its context; a context's code has the
 * tokens that were seen in it, and an escape (symbol `ntokens`) after which
 * the token follows in the code that has them all.  The context after a token
 * is kept with the token.
 *
 * A record has no end symbol: its size is known in units of 4 bits, and up to 3
 * ones pad it.  In each context, ones are the beginning of the longest code,
 * which has at least 4 bits.  So the padding is never a whole token: a code
 * that would end beyond the record marks the end of the tokens.
 *
 * Invariants, checked when a model is installed and relied on ever after: every
 * code is complete (the sum of 2^-length is 1) and its longest length is at
 * least 4; symbols of one length ascend, none occurs twice, and none is missing
 * that a writer could need; symbols, contexts and text offsets are in range;
 * the checksum is right.  So no bits, however hostile, lead the decoder
 * out of the model, and any text can be written.
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


static inline const void *
us_model_at(const us_model_t *m, uint32_t offset)
{
    return (const uint8_t *) m + offset;
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


#endif /* _US_MODEL_FORMAT_H_INCLUDED_ */
