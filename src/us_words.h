
/*
 * What a URL or an id is answered: one table, of which the constants, the words
 * in texts, JSON and metrics, and what a router reads of a shard are made.
 */


#ifndef _US_WORDS_H_INCLUDED_
#define _US_WORDS_H_INCLUDED_


#include "us_base.h"


/* the answers that have a counter are the first ones, up to REFUSED */

#define US_ANSWER_TABLE(X)                                                    \
    X(NEW, "new")                                                             \
    X(SEEN, "seen")                                                           \
    X(UNSEEN, "unseen")                                                       \
    X(INVALID, "invalid")                                                     \
    X(REJECTED, "rejected")                                                   \
    X(FULL, "full")                                                           \
    X(DUE, "due")                                                             \
    X(REFUSED, "refused")             /* it was erased, and is not added */   \
    X(CLAIMED, "claimed")                                                     \
    X(SET, "set")                                                             \
    X(CLEAR, "clear")                                                         \
    X(UNKNOWN, "unknown")                                                     \
    X(DELETED, "deleted")                                                     \
    X(DAMAGED, "damaged")             /* of a list of ids */                  \
    X(UNAVAILABLE, "unavailable")     /* of a cluster: no shard said so */    \
    X(IN, "in")                       /* a set: put in, was in, taken out */  \
    X(WAS, "was")                                                             \
    X(OUT, "out")                                                             \
    X(ERASED, "erased")               /* on the list, and not stored */


#define US_ANSWER_CONSTANT(name, word)  US_ANSWER_##name,

typedef enum {
    US_ANSWER_NONE = 0,               /* no answer so far; not a word */
    US_ANSWER_TABLE(US_ANSWER_CONSTANT)
    US_ANSWERS
} us_answer_t;


#define US_ANSWERS_COUNTED  US_ANSWER_REFUSED


extern const us_str_t  us_answer_words[US_ANSWERS];

/* US_ANSWER_NONE: it is none of the words */
us_answer_t us_answer_parse(us_str_t word);


#endif /* _US_WORDS_H_INCLUDED_ */
