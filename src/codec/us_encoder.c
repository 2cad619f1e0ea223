
/*
 * The writing side of a model.
 *
 * An encoder is private to a process: a parser with the prices of all tokens in
 * all contexts (a byte each), and the codes of headers.  The code of a token is
 * looked up in the model's lists when the token is written.
 */


#include "us_encoder.h"

#include <stdlib.h>


#define US_ENCODER_ROWS  16           /* priced in a step */

/*
 * Codes that were written last: for most of those to be written, the search for
 * their rank in the model's list is spared.
 *
 *     entry    | 1 | token's high bits | context: 7 | bits of the code: 16 |
 *     number   low bits of the token, and US_CODES_FIRST for each context
 */
#define US_CODES_BITS    14
#define US_CODES         (1u << US_CODES_BITS)
#define US_CODES_KNOWN   (1u << 12)

/* places from one context's first token, the most used, to the next one's */
#define US_CODES_FIRST   (US_CODES / US_CTX_MAX)


struct us_encoder_s {
    const us_model_t   *model;
    us_parser_t        *parser;
    us_token_def_t     *tokens;

    unsigned            row;          /* the next row to be priced */
    uint8_t            *lens;         /* work: code lengths of all tokens */
    uint8_t            *escape;       /* lengths of the escape code */

    /* of each context, and of the escape code */
    const uint16_t     *symbols[US_CTX_MAX + 1];
    us_rank_t           ranks[US_CTX_MAX + 1][US_HUFFMAN_MAX + 1];
    uint32_t            escapes[US_CTX_MAX];    /* us_code_make() */
    uint32_t            codes[US_CODES];

    /* of the last us_encoder_choose() */
    const uint8_t      *text;
    const us_piece_t   *pieces;
    size_t              npieces;
};


us_encoder_t *
us_encoder_create(const us_model_t *model)
{
    unsigned       i, n, ncontexts;
    us_str_t       text;
    us_encoder_t  *e;

    e = calloc(1, sizeof(us_encoder_t));
    if (e == NULL) {
        return NULL;
    }

    n = us_model_ntokens(model);
    ncontexts = us_model_ncontexts(model);

    e->model = model;
    e->tokens = malloc(n * sizeof(us_token_def_t));
    e->lens = malloc(n + 1);
    e->escape = malloc(n);

    if (e->tokens == NULL || e->lens == NULL || e->escape == NULL) {
        us_encoder_destroy(e);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        text = us_model_token_text(model, i);

        e->tokens[i].text = text.data;
        e->tokens[i].len = (uint8_t) text.len;
        e->tokens[i].ctx = (uint8_t) us_model_token_ctx(model, i);
    }

    e->parser = us_parser_create(e->tokens, n, ncontexts);
    if (e->parser == NULL) {
        us_encoder_destroy(e);
        return NULL;
    }

    us_model_code_lengths(model, ncontexts + US_CODE_ESCAPE, e->escape, n);
    for (i = 0; i <= ncontexts + US_CODE_ESCAPE; i++) {
        e->symbols[i] = us_model_symbols(model, i);
        us_model_ranks(model, i, e->ranks[i]);
    }

    return e;
}


void
us_encoder_destroy(us_encoder_t *e)
{
    if (e->parser) {
        us_parser_destroy(e->parser);
    }

    free(e->tokens);
    free(e->lens);
    free(e->escape);
    free(e);
}


int
us_encoder_build(us_encoder_t *e)
{
    int       rc;
    unsigned  k, n;
    uint32_t  bits;

    n = us_model_ntokens(e->model);

    for (k = 0; k < US_ENCODER_ROWS; k++) {

        if (e->row == us_model_ncontexts(e->model)) {
            rc = us_parser_build(e->parser);

            if (rc == 1) {
                free(e->tokens);
                free(e->lens);

                e->tokens = NULL;
                e->lens = NULL;
            }

            return rc;
        }

        us_model_code_lengths(e->model, e->row, e->lens, n + 1);
        us_parser_price(e->parser, e->row, e->lens, e->escape);

        bits = us_model_code(&e->ranks[e->row][e->lens[n]],
                             e->symbols[e->row], n, e->lens[n]);
        e->escapes[e->row] = us_code_make(bits, e->lens[n]);
        e->row++;
    }

    return 0;
}


size_t
us_encoder_size(const us_encoder_t *e)
{
    return sizeof(us_encoder_t) + us_parser_size(e->parser)
           + us_model_ntokens(e->model);
}


unsigned
us_encoder_choose(us_encoder_t *e, const uint8_t *text, size_t len,
    const us_start_t *starts, size_t nstarts, uint32_t *price)
{
    unsigned  start;

    e->npieces = us_parse(e->parser, text, len, starts, nstarts, &e->pieces,
                          &start, price);
    e->text = text + starts[start].at;

    return start;
}


uint32_t
us_encoder_spent(const us_encoder_t *e, size_t n)
{
    size_t             i;
    uint32_t           price;
    const us_piece_t  *p;

    price = 0;

    for (i = 0; i < e->npieces; i++) {
        p = &e->pieces[i];

        if (p->len > n) {
            break;
        }

        n -= p->len;
        price += us_parser_token_price(e->parser, p->ctx, p->token);

        if (us_token_is_run(p->token)) {
            price += us_run_bits(us_token_run_alphabet(p->token), p->len)
                     * US_PRICE_BIT;
        }
    }

    return price;
}


static inline void
us_encoder_put(us_encoder_t *e, us_bitout_t *o, unsigned code,
    unsigned symbol, unsigned len)
{
    uint32_t   tag;
    uint32_t  *known;

    known = &e->codes[(symbol + code * US_CODES_FIRST) % US_CODES];
    tag = US_CODES_KNOWN | symbol >> US_CODES_BITS << 7 | code;

    if (*known >> 16 != tag) {
        *known = us_model_code(&e->ranks[code][len], e->symbols[code],
                               symbol, len) | tag << 16;
    }

    us_bitout_put(o, *known & 0xffff, len);
}


void
us_encoder_tail(us_encoder_t *e, us_bitout_t *o)
{
    size_t          i;
    unsigned        price, ctx, token, escape;
    const uint8_t  *p;

    p = e->text;
    escape = us_model_ncontexts(e->model) + US_CODE_ESCAPE;

    for (i = 0; i < e->npieces; i++) {
        ctx = e->pieces[i].ctx;
        token = e->pieces[i].token;
        price = us_parser_token_price(e->parser, ctx, token);

        if (price % US_PRICE_BIT == 0) {
            us_encoder_put(e, o, ctx, token, price / US_PRICE_BIT);

        } else {
            us_bitout_put(o, us_code_bits(e->escapes[ctx]),
                        us_code_len(e->escapes[ctx]));
            us_encoder_put(e, o, escape, token, e->escape[token]);
        }

        if (us_token_is_run(token)) {
            us_run_put(o, us_token_run_alphabet(token), p, e->pieces[i].len);
        }

        p += e->pieces[i].len;
    }
}
