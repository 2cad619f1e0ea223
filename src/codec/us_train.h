
/*
 * Learns a model from a sample of texts.
 */


#ifndef _US_TRAIN_H_INCLUDED_
#define _US_TRAIN_H_INCLUDED_


#include "us_model.h"


/*
 * One text.  If a reference would supply its first `cut` bytes, `price` is
 * what that would cost, in 1/8 bits (us_parse.h); cut 0: there is none.
 */

typedef struct {
    uint32_t             offset;
    uint16_t             len;
    uint16_t             cut;
    uint16_t             price;
} us_sample_t;


typedef struct {
    const uint8_t       *text;
    const us_sample_t   *samples;
    size_t               nsamples;

    const us_model_t    *base;        /* whose tokens it begins with; or NULL */

    unsigned             ntokens;     /* at most, US_TOKENS_MAX or less */
    unsigned             ncontexts;   /* US_CTX_GROUP + 2 .. US_CTX_MAX */

    /* how often each symbol of a header was used; may all be 0 */
    uint32_t             head[US_HEAD_SYMBOLS];
    uint32_t             near[US_PREFIX_SYMBOLS];
    uint32_t             far[US_PREFIX_SYMBOLS];
} us_train_t;


/*
 * Returns a model's core (to be freed) and its length; NULL: no memory, or
 * *cancel was set.  The same input gives the same core.
 */
uint8_t *us_train(const us_train_t *in, const volatile int *cancel,
    size_t *len);


#endif /* _US_TRAIN_H_INCLUDED_ */
