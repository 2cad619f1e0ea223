
/*
 * What the files of the JSON reader share and nobody else sees.
 *
 *     us_json.c           the machine: structure, words, strings
 *     us_json_number.c    numbers, a machine of their own
 *     us_json_token.c     the token that is being read
 *
 * A token that the end of a piece has cut goes to j->buf, j->len bytes of it,
 * and j->state says what of it has been read.  Between tokens j->len is 0.
 * Functions return 0, or -1 (NULL) after us_json_fail().
 */


#ifndef _US_JSON_PRIVATE_H_INCLUDED_
#define _US_JSON_PRIVATE_H_INCLUDED_


#include "us_json.h"


/*
 * States.  A number is a small machine of its own: the names say what has
 * been read of it.
 */

typedef enum {
    US_JSON_S_VALUE = 0,              /* a value must come */
    US_JSON_S_FIRST,                  /* after [ : a value or ] */
    US_JSON_S_FIELD,                  /* after { : a key or } */
    US_JSON_S_KEY,                    /* after , in an object: a key */
    US_JSON_S_COLON,
    US_JSON_S_NEXT,                   /* after a value: , or the end */
    US_JSON_S_DONE,                   /* nothing but white space */
    US_JSON_S_STRING,
    US_JSON_S_ESCAPE,                 /* after \ */
    US_JSON_S_HEX,
    US_JSON_S_LOW,                    /* after a high surrogate: \ */
    US_JSON_S_LOW_U,                  /* and then u */
    US_JSON_S_LITERAL,
    US_JSON_S_MINUS,
    US_JSON_S_ZERO,
    US_JSON_S_INT,
    US_JSON_S_DOT,
    US_JSON_S_FRAC,
    US_JSON_S_E,
    US_JSON_S_ESIGN,
    US_JSON_S_EXP
} us_json_state_t;


/* us_json_token.c */

/* -1 */
int us_json_fail(us_json_t *j, const char *error);

/* to the token; a string that outgrows max is dropped, and only checked */
int us_json_append(us_json_t *j, const uint8_t *p, size_t len);

/*
 * Hands a scalar over, from where it lies or from the buffer if a part of it
 * went there, and says what may follow.
 */
int us_json_emit(us_json_t *j, us_json_event_t event, const uint8_t *start,
    const uint8_t *end);

/* calls the user's function; a result < 0 ends the reading, > 0 pauses it */
int us_json_event(us_json_t *j, us_json_event_t event, us_str_t text,
    int cut);

/* us_json_number.c */

/* returns where to go on: past the number, or at the end */
const uint8_t *us_json_number(us_json_t *j, const uint8_t *p,
    const uint8_t *end);


#endif /* _US_JSON_PRIVATE_H_INCLUDED_ */
