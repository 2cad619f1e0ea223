
/*
 * The writing side of a model: private tables, made from the model in small
 * steps, and the cheapest code of a text.
 */


#ifndef _US_ENCODER_H_INCLUDED_
#define _US_ENCODER_H_INCLUDED_


#include "us_parse.h"


typedef struct us_encoder_s  us_encoder_t;


/* the model stays where it is as long as the encoder lives; NULL: no memory */
us_encoder_t *us_encoder_create(const us_model_t *model);
void us_encoder_destroy(us_encoder_t *e);

/* at most about 1 ms of work; 1: ready, 0: not yet, -1: no memory */
int us_encoder_build(us_encoder_t *e);

/* bytes of memory, when it is built */
size_t us_encoder_size(const us_encoder_t *e);

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


#endif /* _US_ENCODER_H_INCLUDED_ */
