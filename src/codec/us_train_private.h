
/*
 * What the files of learning share.
 *
 *     us_vocabulary.c    finds the tokens
 *     us_train.c         finds contexts and codes
 *     us_train_parse.c   parses the sample and counts, for both
 */


#ifndef _US_TRAIN_PRIVATE_H_INCLUDED_
#define _US_TRAIN_PRIVATE_H_INCLUDED_


#include "us_train.h"
#include "us_parse.h"


/*
 * Tuned with bench/codec on reddit_submissions and eot2024_A.
 */

#ifndef US_TRAIN_SELDOM
#define US_TRAIN_SELDOM    3          /* uses that keep a token, or a code */
#endif
#define US_TRAIN_PAIRS     (1 << 20)
#define US_TRAIN_NTH       2          /* but for the codes: of the sample */


/* two tokens in a row; count 0: a free place */

typedef struct {
    uint32_t               key;       /* token << 16 | next */
    uint32_t               count;
} us_pair_t;


typedef struct {
    const us_train_t      *in;
    us_sample_t           *samples;   /* in the order of their texts */
    const volatile int    *cancel;

    us_token_def_t        *tokens;
    unsigned               ntokens;
    uint8_t               *text;      /* of the tokens */
    size_t                 text_used;

    us_parser_t           *parser;
    unsigned               ncontexts; /* of the parser */

    /* by the last parse */
    uint32_t              *counts;    /* [ncontexts][ntokens + 1] */
    us_pair_t             *pairs;     /* US_TRAIN_PAIRS places */
    uint32_t              *firsts;    /* [US_CTX_GROUP][ntokens + 1] */
    int                    pairing;   /* pairs and first tokens are counted */

    unsigned               ncodes;
    us_code_def_t         *codes;
    uint16_t              *symbols;
    uint64_t              *work;
} us_trainer_t;


static inline uint32_t *
us_train_counts(us_trainer_t *t, unsigned ctx)
{
    return t->counts + (size_t) ctx * (t->ntokens + 1);
}


/* us_vocabulary.c; 0, or -1: no memory, or it was cancelled */

int us_train_vocabulary(us_trainer_t *t);


/* us_train_parse.c; the same */

/* a parser of the tokens as they are now */
int us_train_prepare(us_trainer_t *t);

/* prices by the counts of the last parse; what was not seen has half a use */
void us_train_price(uint8_t *row, const uint32_t *counts, size_t n);

/* parses each nth sample and counts */
int us_train_parse(us_trainer_t *t, unsigned nth);


#endif /* _US_TRAIN_PRIVATE_H_INCLUDED_ */
