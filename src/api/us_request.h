
/*
 * What a request says: the arguments of its query, the media type of its body,
 * those that it accepts for the reply, and the page that a browser sends it
 * for.
 *
 * Arguments, and ids in them, are NAME=VALUE with '&' between them.  An
 * argument is one of the endpoint's, is there once and has a value: a misspelt
 * one, left out, would change what is answered.  A flag is NAME=1; NAME=0 and
 * NAME= are as without it.
 */


#ifndef _US_REQUEST_H_INCLUDED_
#define _US_REQUEST_H_INCLUDED_


#include "../us_base.h"
#include "../us_text.h"
#include "../input/us_input.h"


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


/* its number among words with a space between; -1: it is none of them */
int us_word_number(const char *words, us_str_t word);

/*
 * known: at most 64 words, as above.  *name is that of the first argument that
 * is at fault; of US_ARGS_FLAG, NAME=VALUE.
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


/*
 * Media types: what a body is, by its Content-Type, and what the client wants
 * in reply, by its Accept (RFC 9110, 8.3 and 12.5.1).
 */

typedef enum {
    US_FORMAT_TEXT = 0,
    US_FORMAT_JSON,
    US_FORMAT_NDJSON
} us_format_t;


/* a number; - or null: it is `none` */

static inline uint8_t *
us_put_known(uint8_t *p, us_format_t format, uint64_t n, uint64_t none)
{
    return n != none ? us_put_u64(p, n)
                     : us_put(p, format == US_FORMAT_TEXT ? "-" : "null");
}


/* 0; -1: no such type is read */
int us_media_body(us_str_t content_type, us_input_format_t *format);

/* of the reply to such a body, unless Accept wants another one */

static inline us_format_t
us_media_reply(us_input_format_t body)
{
    return body == US_INPUT_TEXT ? US_FORMAT_TEXT
           : body == US_INPUT_NDJSON ? US_FORMAT_NDJSON : US_FORMAT_JSON;
}


/* the best that the header names; preset if it names none that there is */
us_format_t us_media_accept(us_str_t accept, us_format_t preset);

/* its media type */
us_str_t us_media_type(us_format_t format);


/*
 * Origins, as browsers send them: SCHEME://HOST[:PORT], without a port that is
 * the scheme's (RFC 6454, section 6).
 */

/* whether it can be one, or is "*" */
int us_origin_valid(us_str_t origin);

/* whether allowed is the origin, in any case, or "*" */
int us_origin_matches(us_str_t allowed, us_str_t origin);

/* whether the origin is the server of this Host header, by any scheme */
int us_origin_is_host(us_str_t origin, us_str_t host);


#endif /* _US_REQUEST_H_INCLUDED_ */
