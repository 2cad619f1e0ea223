
/*
 * Arguments of a query, and ids in it: NAME=VALUE, '&' between them.
 *
 * An argument is one of the endpoint's, is there once and has a value: a
 * misspelt one, left out, would change what is answered.  A flag is NAME=1;
 * NAME=0 and NAME= are as without it.
 */


#ifndef _US_ARGS_H_INCLUDED_
#define _US_ARGS_H_INCLUDED_


#include "../us_base.h"


typedef enum {
    US_ARGS_OK = 0,
    US_ARGS_UNKNOWN,
    US_ARGS_TWICE,
    US_ARGS_NO_VALUE,
    US_ARGS_FLAG                      /* a flag with another value */
} us_args_fault_t;


typedef enum {
    US_ID_BAD = -1,                   /* not a number, or a leading zero */
    US_ID_OK = 0,
    US_ID_NEVER = 1,                  /* too large to have been given */
    US_ID_MOVED = 2                   /* another shard's */
} us_id_rc_t;


/*
 * known: at most 64 words with a space between.  *name is that of the first
 * argument that is at fault; of US_ARGS_FLAG, NAME=VALUE.
 */
us_args_fault_t us_args_check(us_str_t query, const char *known,
    us_str_t *name);

/* the first NAME=VALUE, as it was sent; 0: there is none */
int us_args_find(us_str_t query, const char *name, us_str_t *value);

/* of a query that us_args_check() has passed */
int us_args_flag(us_str_t query, const char *name);

/* *id is set unless the result is US_ID_BAD */
us_id_rc_t us_id_parse(us_str_t text, uint64_t *id);

/*
 * The same at a shard whose ids begin with `first`: *id is the one of its
 * store.
 */
us_id_rc_t us_id_parse_shard(us_str_t text, uint64_t first, uint64_t *id);

/* digits only, and not none: an id, or meant to be one */
int us_id_digits(us_str_t text);


#endif /* _US_ARGS_H_INCLUDED_ */
