
/*
 * A model: the tokens and codes under which records are written.  See
 * us_model.c for the picture.
 *
 * A text is a class byte (0 .. 3) and the URL from the host on.
 */


#ifndef _US_MODEL_H_INCLUDED_
#define _US_MODEL_H_INCLUDED_


#include "../us_atomic.h"
#include "../us_bit.h"


#define US_MODEL_VERSION   1

#define US_HUFFMAN_MAX     16         /* bits of the longest code */


/*
 * Runs: stretches of a few characters without meaning (numbers, hashes, video
 * ids), packed.
 */

#define US_RUN_MIN         3
#define US_RUN_MAX         32
#define US_RUN_LENGTHS     (US_RUN_MAX - US_RUN_MIN + 1)

/* alphabets: [0-9], [0-9a-f], [0-9a-z], [0-9A-Za-z_-] */

#define US_RUN_ALPHABETS   4

/* us_run_classes[c] has bit a set if c is in alphabet a; bit 4: '-' and '_' */

#define US_RUN_DIGIT       15
#define US_RUN_HEX         14
#define US_RUN_LOWER       12
#define US_RUN_UPPER       8
#define US_RUN_OTHER       24

extern const uint8_t  us_run_classes[256];


/* runs are numbered by alphabet, then length; and the bits that one takes */
unsigned us_run_bits(unsigned alphabet, unsigned len);

void us_run_put(us_bitout_t *o, unsigned alphabet, const uint8_t *text,
    unsigned len);

/* unpacks up to 6 characters from the low end of w */
void us_run_get(uint64_t w, unsigned alphabet, unsigned len, uint8_t *out);


/* symbols: bytes, then runs by (alphabet, length), then learnt tokens */

#define US_TOKEN_RUN       256
#define US_TOKEN_TEXT      (US_TOKEN_RUN + US_RUN_ALPHABETS * US_RUN_LENGTHS)
#define US_TOKENS_MAX      24576      /* with all of them */
#define US_TOKEN_MAX       48         /* bytes of a token's text */

/*
 * contexts: the beginning of a text, a tail by the class of the byte before
 * it, then groups of tokens
 */

#define US_CTX_START       0
#define US_CTX_TAIL        1
#define US_CTX_TAILS       8
#define US_CTX_GROUP       (US_CTX_TAIL + US_CTX_TAILS)
#define US_CTX_MAX         96

/* codes: one for each context, then these */

typedef enum {
    US_CODE_ESCAPE = 0,               /* all tokens, whatever the context */
    US_CODE_HEAD,                     /* kinds of header: us_record.c */
    US_CODE_NEAR,                     /* common prefix with a near record */
    US_CODE_FAR,                      /* common prefix with any other */
    US_CODES
} us_model_code_t;

#define US_HEAD_SYMBOLS    128
#define US_PREFIX_SYMBOLS  256

typedef struct us_model_s  us_model_t;


/* one code, as the trainer hands it over */

typedef struct {
    uint16_t        nlen[US_HUFFMAN_MAX + 1];
    uint16_t       *symbols;          /* by length */
} us_code_def_t;


typedef struct {
    const uint8_t  *text;             /* of learnt tokens */
    uint8_t         len;
    uint8_t         ctx;              /* after the token */
} us_token_def_t;


/* ctx of all tokens; text and len of those from US_TOKEN_TEXT on */

typedef struct {
    unsigned               ncontexts;
    unsigned               ntokens;
    const us_token_def_t  *tokens;
    const us_code_def_t   *codes;     /* ncontexts + US_CODES */
} us_model_def_t;


/*
 * The model that these bytes are, aligned to 8; or NULL: they are none.  Only
 * a model that was checked by this function may be given to any other.
 */
const us_model_t *us_model_check(const uint8_t *p, size_t len);

/* the bytes of a model */
us_str_t us_model_bytes(const us_model_t *m);

/* tokens of runs; one comparison, as it is asked for each token */

static inline int
us_token_is_run(unsigned token)
{
    return token - US_TOKEN_RUN < US_TOKEN_TEXT - US_TOKEN_RUN;
}


static inline unsigned
us_token_run(unsigned alphabet, unsigned len)
{
    return US_TOKEN_RUN + alphabet * US_RUN_LENGTHS + (len - US_RUN_MIN);
}


static inline unsigned
us_token_run_alphabet(unsigned token)
{
    return (token - US_TOKEN_RUN) / US_RUN_LENGTHS;
}


static inline unsigned
us_token_run_len(unsigned token)
{
    return (token - US_TOKEN_RUN) % US_RUN_LENGTHS + US_RUN_MIN;
}


/*
 * Lengths of a prefix code from counts.  Sorts sym[0 .. n-1] by descending
 * counts[sym], cuts it into runs of equal length and returns their sizes:
 * nlen[l] symbols of l bits, shortest first.  n is at least 2 and at most
 * 2^(max - 1), counts are at least 1, work has 2 * n elements.  The code is
 * complete.
 */
void us_huffman_lengths(const uint32_t *counts, uint16_t *sym, size_t n,
    unsigned max, uint16_t nlen[US_HUFFMAN_MAX + 1], uint64_t *work);

/* makes the checksum right (writers of cores, and fuzzers) */
void us_model_seal(uint8_t *core, size_t len);

/* makes a core, allocated with malloc(); NULL if there is no memory */
uint8_t *us_model_write(const us_model_def_t *def, size_t *len);


/*
 * Learnt tokens of which only erased URLs had the text get another one, as long
 * as theirs: bytes that no text has.  Shorter tokens say nothing, and keep
 * theirs.
 */
#define US_TOKEN_BLANK     0x1f
#define US_BLANK_MIN       4

/*
 * The same model, but blank are the tokens that have a bit in `drop`: lowest
 * bit first, US_DROP_BYTES(ntokens) of them.  As from us_model_write().
 */
#define US_DROP_BYTES(n)   (((n) + 7) / 8)

uint8_t *us_model_without(const us_model_t *m, const uint8_t *drop,
    size_t *len);

static inline int
us_model_dropped(const uint8_t *drop, unsigned token)
{
    return drop[token / 8] >> token % 8 & 1;
}


unsigned us_model_ntokens(const us_model_t *m);
unsigned us_model_token_ctx(const us_model_t *m, unsigned token);

/* the text of a byte or a learnt token */
us_str_t us_model_token_text(const us_model_t *m, unsigned token);

/* the context of a tail after this byte */

extern const uint8_t  us_model_before[256];

static inline unsigned
us_model_tail_ctx(uint8_t before)
{
    return US_CTX_TAIL + US_CTX_TAILS - 1 - us_model_before[before];
}


/*
 * Codes are numbered: contexts, then ncontexts + US_CODE_*.  The first bit of
 * a symbol's code is the lowest.
 *
 * us_model_code_lengths() and us_model_codes() fill in the lengths, or the
 * codes with their lengths, of all symbols below n; 0 where the code has none.
 * us_model_symbols() is the list of a code's symbols, by length; in it
 * us_model_code() finds the bits of one whose length is known, by what
 * us_model_ranks() has filled in for that length.
 */

#define us_code_make(bits, len)  ((uint32_t) (len) << 16 | (bits))
#define us_code_bits(code)       ((code) & 0xffff)
#define us_code_len(code)        ((code) >> 16)

void us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n);
void us_model_codes(const us_model_t *m, unsigned code, uint32_t *codes,
    size_t n);
const uint16_t *us_model_symbols(const us_model_t *m, unsigned code);

typedef struct {
    uint16_t     first;               /* the code of the first, highest bit */
    uint16_t     at;                  /* in the list */
    uint16_t     n;
} us_rank_t;

void us_model_ranks(const us_model_t *m, unsigned code,
    us_rank_t ranks[US_HUFFMAN_MAX + 1]);


/* the layout, for the decoder */

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


static inline unsigned
us_model_ncontexts(const us_model_t *m)
{
    return m->ncontexts;
}


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


/*
 * The model of the first records, before any can be learnt.
 * Allocated with malloc(); NULL: no memory.
 */
us_model_t *us_builtin_create(void);


/* the first bit of a code is its highest, but lies lowest in a word */

extern const uint8_t  us_model_reversed[256];

static inline uint32_t
us_model_reverse(uint32_t v)
{
    return (uint32_t) us_model_reversed[v & 0xff] << 8
           | us_model_reversed[v >> 8];
}


static inline uint32_t
us_model_code(const us_rank_t *rank, const uint16_t *list, unsigned symbol,
    unsigned len)
{
    unsigned  i, n, half;

    list += rank->at;

    /*
     * Its place among those of one length, which ascend: without a branch,
     * which would be mispredicted in every other round.
     */

    for (i = 0, n = rank->n; n > 1; n -= half) {
        half = n / 2;
        i += list[i + half] <= symbol ? half : 0;
    }

    return us_model_reverse(rank->first + (i << (US_HUFFMAN_MAX - len)));
}


#endif /* _US_MODEL_H_INCLUDED_ */
