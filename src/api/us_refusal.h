
/*
 * Why an input is no item of the store.  The reason has two forms: a word, for
 * an item of a batch in every format, and a sentence, for the problem document
 * of a single input.
 */


#ifndef _US_REFUSAL_H_INCLUDED_
#define _US_REFUSAL_H_INCLUDED_


#include "../input/us_input.h"
#include "../url/us_normalize.h"


typedef struct {
    us_input_kind_t  kind;
    us_verdict_t     verdict;         /* of US_INPUT_URL */
    us_str_t         rule;            /* of US_URL_RULE: its name */
    const char      *why;             /* of US_INPUT_BAD */
} us_refusal_t;


/* bytes of the longest word, "rule:NAME", and of the longest sentence */
#define US_REFUSAL_WORD      80
#define US_REFUSAL_SENTENCE  256


/* docs/api.md's word, at p; returns the end */
uint8_t *us_refusal_word(uint8_t *p, const us_refusal_t *refusal);

/* what was wrong, and what is allowed; max_url: bytes of a URL */
uint8_t *us_refusal_sentence(uint8_t *p, const us_refusal_t *refusal,
    uint64_t max_url);


#endif /* _US_REFUSAL_H_INCLUDED_ */
