
/*
 * The cheapest way to cut a text into tokens.  See us_parse.c.
 */


#ifndef _US_PARSE_H_INCLUDED_
#define _US_PARSE_H_INCLUDED_


#include "us_model.h"


/* prices are in 1/8 bits; a token in a context costs at most 255 of them */

#define US_PRICE_BIT     8
#define US_PRICE_MAX     255


/* a way to begin: `at` bytes of the text come otherwise, for that price */

typedef struct {
    uint32_t     at;
    uint32_t     price;
} us_start_t;


typedef struct {
    uint16_t     token;
    uint8_t      len;
    uint8_t      ctx;                 /* under which it is coded */
} us_piece_t;


typedef struct us_parser_s  us_parser_t;


/*
 * tokens: texts, lengths and contexts, kept by the caller until the parser is
 * built.  All prices are 0 until us_parser_row() is filled.
 * NULL: no memory.
 */
us_parser_t *us_parser_create(const us_token_def_t *tokens, size_t ntokens,
    size_t ncontexts);
void us_parser_destroy(us_parser_t *p);

/*
 * Does a part of what is left of the building, well below 1 ms; 1: done, 0:
 * there is more to do, -1: no memory.
 */
int us_parser_build(us_parser_t *p);

/* prices of all tokens in a context, to be filled by the caller */
uint8_t *us_parser_row(us_parser_t *p, unsigned ctx);

/*
 * Fills a row by code lengths: lens has that of each token, 0 if the context's
 * code does not have it, and after them that of the escape, which the code in
 * `escape` follows.  Only the price of a token that needs an escape is no
 * multiple of US_PRICE_BIT: it has 1 more.
 */
void us_parser_price(us_parser_t *p, unsigned ctx, const uint8_t *lens,
    const uint8_t *escape);

/*
 * Finds the cheapest of all ways to begin with one of the starts and to go on
 * by tokens.  len <= US_URL_MAX.  Returns the number of pieces, *start is
 * the chosen start and *price what it all costs.  The pieces are valid until
 * the next call.  Not exact in one respect: at each byte only the cheapest way
 * up to there is followed, although a dearer one could leave a better context.
 */
size_t us_parse(us_parser_t *p, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, const us_piece_t **pieces,
    unsigned *start, uint32_t *price);


/*
 * The writing side of a model: private tables, made from the model in small
 * steps, and the cheapest code of a text.
 */


typedef struct us_encoder_s  us_encoder_t;


/* the model stays where it is as long as the encoder lives; NULL: no memory */
us_encoder_t *us_encoder_create(const us_model_t *model);
void us_encoder_destroy(us_encoder_t *e);

/* overwrites the text that it has encoded last */
void us_encoder_wipe(us_encoder_t *e);

/* at most about 1 ms of work; 1: ready, 0: not yet, -1: no memory */
int us_encoder_build(us_encoder_t *e);

/*
 * Writes the tail of a text: chosen from starts (us_parse()), its price with
 * the start's own in *price, to o, which needs room for 8 bytes for every
 * byte of text.  Returns the number of the start.
 */
unsigned us_encoder_choose(us_encoder_t *e, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, uint32_t *price);
void us_encoder_tail(us_encoder_t *e, us_bitout_t *o);

/* the price of those tokens of the tail chosen last that n bytes have whole */
uint32_t us_encoder_spent(const us_encoder_t *e, size_t n);


#endif /* _US_PARSE_H_INCLUDED_ */
