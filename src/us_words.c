
/*
 * See us_words.h.
 */


#include "us_words.h"


#define US_ANSWER_WORD(name, word)  us_string(word),

const us_str_t  us_answer_words[US_ANSWERS] = {
    us_string(""),
    US_ANSWER_TABLE(US_ANSWER_WORD)
};


us_answer_t
us_answer_parse(us_str_t word)
{
    unsigned  i;

    /* nearly all answers are one of these two, of one length each */

    if (word.len == 4 && memcmp(word.data, "seen", 4) == 0) {
        return US_ANSWER_SEEN;
    }

    if (word.len == 6 && memcmp(word.data, "unseen", 6) == 0) {
        return US_ANSWER_UNSEEN;
    }

    for (i = US_ANSWER_NONE + 1; i < US_ANSWERS; i++) {
        if (us_answer_words[i].len == word.len
            && memcmp(us_answer_words[i].data, word.data, word.len) == 0)
        {
            return i;
        }
    }

    return US_ANSWER_NONE;
}
