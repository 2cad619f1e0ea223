
/*
 * Media types: what a body is, by its Content-Type, and what the client wants
 * in reply, by its Accept (RFC 9110, 8.3 and 12.5.1).
 */


#ifndef _US_MEDIA_H_INCLUDED_
#define _US_MEDIA_H_INCLUDED_


#include "../us_base.h"
#include "../input/us_input.h"


/* of a reply */

typedef enum {
    US_FORMAT_TEXT = 0,
    US_FORMAT_JSON,
    US_FORMAT_NDJSON
} us_format_t;


/* 0; -1: no such type is read */
int us_media_body(us_str_t content_type, us_input_format_t *format);

/* of the reply to such a body, unless Accept wants another one */
us_format_t us_media_reply(us_input_format_t body);

/* the best that the header names; preset if it names none that there is */
us_format_t us_media_accept(us_str_t accept, us_format_t preset);

/* its media type */
us_str_t us_media_type(us_format_t format);


#endif /* _US_MEDIA_H_INCLUDED_ */
