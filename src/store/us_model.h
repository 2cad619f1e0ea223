
/*
 * A model: the tokens and codes under which records are written, and the
 * decoder.  See us_model_format.h for the picture.
 *
 * A text is a class byte (0 .. 3) and the URL from the host on.
 */


#ifndef _US_MODEL_H_INCLUDED_
#define _US_MODEL_H_INCLUDED_


#include "us_atomic.h"
#include "us_huffman.h"
#include "us_run.h"


#define US_MODEL_VERSION   1

/* symbols: bytes, then runs by (alphabet, length), then learnt tokens */

#define US_TOKEN_RUN       256
#define US_TOKEN_TEXT      (US_TOKEN_RUN + US_RUN_ALPHABETS * US_RUN_LENGTHS)
#define US_TOKENS_MAX      16384      /* with all of them */
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
    US_CODE_HEAD,                     /* kinds of header: us_header.c */
    US_CODE_NEAR,                     /* common prefix with a near record */
    US_CODE_FAR,                      /* common prefix with any other */
    US_CODES
} us_model_code_t;

#define US_HEAD_SYMBOLS    128
#define US_PREFIX_SYMBOLS  256

/* a text to be decoded may write that much beyond its end */
#define US_DECODE_SLACK    64

/* bits are read in words: that many bytes after their end can be read */
#define US_BITS_SLACK      8


typedef struct us_model_s  us_model_t;


/* where to read on; the lowest bit of a byte comes first */

typedef struct {
    const uint8_t  *base;
    uint64_t        pos;              /* bits */
    uint64_t        end;
} us_bitin_t;


/* the bits from pos on, at least 57; those behind the end mean nothing */

static inline uint64_t
us_bitin_peek(const us_bitin_t *b)
{
    return us_load64(b->base + (b->pos >> 3)) >> (b->pos & 7);
}


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
 * The core is what has to be kept and carried about, aligned to 8 bytes; the
 * tables for decoding follow from it.  us_model_core_size() is 0 if these len
 * bytes are no core.
 * us_model_build() copies a checked core to dst, which is aligned to 8 bytes,
 * and adds the tables: us_model_size(core) bytes in all.
 */
size_t us_model_core_size(const uint8_t *core, size_t len);
size_t us_model_size(const uint8_t *core);
void us_model_build(us_model_t *dst, const uint8_t *core);
us_str_t us_model_core(const us_model_t *m);

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


/* makes the checksum right (writers of cores, and fuzzers) */
void us_model_seal(uint8_t *core, size_t len);

/* makes a core, allocated with malloc(); NULL if there is no memory */
uint8_t *us_model_write(const us_model_def_t *def, size_t *len);


unsigned us_model_ncontexts(const us_model_t *m);
unsigned us_model_ntokens(const us_model_t *m);
unsigned us_model_token_ctx(const us_model_t *m, unsigned token);

/* the text of a byte or a learnt token */
us_str_t us_model_token_text(const us_model_t *m, unsigned token);

/* the context of a tail after this byte */
unsigned us_model_tail_ctx(uint8_t before);

/*
 * The code of a symbol in code number `code` (a context, or ncontexts +
 * US_CODE_*): its length, or 0 if the code does not have it.  Its first bit is
 * the lowest.
 */
unsigned us_model_code(const us_model_t *m, unsigned code, unsigned symbol,
    uint32_t *bits);

/* the same if the length may be known: 0 if there is no such code of it */
unsigned us_model_code_of(const us_model_t *m, unsigned code, unsigned symbol,
    unsigned len, uint32_t *bits);

/* the lengths of all symbols of a code, 0 where it has none */
void us_model_code_lengths(const us_model_t *m, unsigned code, uint8_t *lens,
    size_t n);


/*
 * Decoding.  None of these trusts the bits: they end at b->end, never write
 * beyond max (+ US_DECODE_SLACK) and never loop without eating bits.
 *
 * us_model_symbol() reads a symbol of US_CODE_HEAD, _NEAR or _FAR: -1 if none
 * ends before b->end.
 *
 * us_model_decode() writes what the rest of the bits say: a text's bytes from
 * there on, at least `need` of them if there are so many.  Returns their
 * number, or -1.
 *
 * us_model_equal() tells whether they say this text, us_model_begins() whether
 * what they say begins with it.  If first is not NULL, the text comes after
 * one more byte, which goes to *first.
 */
int us_model_symbol(const us_model_t *m, unsigned code, us_bitin_t *b);
ssize_t us_model_decode(const us_model_t *m, unsigned ctx,
    const us_bitin_t *b, uint8_t *out, size_t need, size_t max);
int us_model_equal(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first);
int us_model_begins(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, uint8_t *first);


#endif /* _US_MODEL_H_INCLUDED_ */
