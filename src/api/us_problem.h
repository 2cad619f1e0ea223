
/*
 * Problem documents (RFC 9457), and what they say of a URL that is refused and
 * of a store that does not answer:
 *
 *     {"type":"about:blank","title":T,"status":N,"detail":D,MEMBERS}
 */


#ifndef _US_PROBLEM_H_INCLUDED_
#define _US_PROBLEM_H_INCLUDED_


#include "../input/us_input.h"
#include "../url/us_normalize.h"
#include "../life/us_life.h"


/* "400 Bad Request"; of no bytes for a status that is not known */
us_str_t us_problem_line(unsigned status);


/*
 * All but the end of the object.  The detail is escaped; it may hold what a
 * client sent: if it is not UTF-8, it is changed so that it is.  No bytes: it
 * is left out.  members: more of them, such as "\"processed\":7", or NULL.
 */

#define us_problem_max(detail, members)                                       \
    (160 + us_json_quoted_max(detail) + (members))

uint8_t *us_problem_begin(uint8_t *p, unsigned status, uint8_t *detail,
    size_t len, const char *members);


/*
 * Why an input is no item of the store.  The reason has two forms: a word, for
 * an item of a batch in every format, and a sentence, for the problem document
 * of a single input.
 */


typedef struct {
    us_input_kind_t  kind;
    us_verdict_t     verdict;         /* of US_INPUT_URL */
    us_str_t         rule;            /* of US_URL_RULE: its name */
    const char      *why;             /* of US_INPUT_BAD */
    unsigned         erased:1;        /* nothing is wrong with it but that */
} us_refusal_t;


/* bytes of the longest word, "rule:NAME", and of the longest sentence */
#define US_REFUSAL_WORD      80
#define US_REFUSAL_SENTENCE  256


/* docs/api.md's word, at p; returns the end */
uint8_t *us_refusal_word(uint8_t *p, const us_refusal_t *refusal);

/* what was wrong, and what is allowed; max_url: bytes of a URL */
uint8_t *us_refusal_sentence(uint8_t *p, const us_refusal_t *refusal,
    uint64_t max_url);


/*
 * Why a store on disk does not answer now: the sentence of a problem document
 * (503), and whether it is worth to come again.
 */

typedef struct {
    unsigned    passes:1;             /* the client may come again soon */
    unsigned    loading:1;            /* progress is known */
    unsigned    primary:1;            /* a replica's primary may have it */
    unsigned    progress;             /* percent */
    char        detail[US_SHARE_REASON + 128];
} us_unready_t;


/* overtaken: the request had begun with other data, see us_life_overtaken() */
void us_unready(us_unready_t *u, const us_life_t *l, int overtaken);


#endif /* _US_PROBLEM_H_INCLUDED_ */
