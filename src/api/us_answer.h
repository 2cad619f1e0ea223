
/*
 * What an item is answered with.
 */


#ifndef _US_ANSWER_H_INCLUDED_
#define _US_ANSWER_H_INCLUDED_


#include "../us_base.h"


/* the first US_ANSWERS_COUNTED are in the order of their counters */

#define US_ANSWERS_COUNTED  6

typedef enum {
    US_ANSWER_NEW = 0,
    US_ANSWER_SEEN,
    US_ANSWER_UNSEEN,
    US_ANSWER_INVALID,
    US_ANSWER_REJECTED,
    US_ANSWER_FULL,
    US_ANSWER_SET,
    US_ANSWER_CLEAR,
    US_ANSWER_UNKNOWN,
    US_ANSWER_DELETED,
    US_ANSWERS
} us_answer_t;


/* the word for it */
us_str_t us_answer_word(us_answer_t answer);


#endif /* _US_ANSWER_H_INCLUDED_ */
