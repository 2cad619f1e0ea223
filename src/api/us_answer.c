
/*
 * See us_answer.h.
 */


#include "us_answer.h"


us_str_t
us_answer_word(us_answer_t answer)
{
    static const us_str_t  words[US_ANSWERS] = {
        us_string("new"),
        us_string("seen"),
        us_string("unseen"),
        us_string("invalid"),
        us_string("rejected"),
        us_string("full"),
        us_string("set"),
        us_string("clear"),
        us_string("unknown"),
        us_string("deleted")
    };

    return words[answer];
}
