
/*
 * The JSON writer: text as a JSON string (RFC 8259, section 7).
 *
 *     a"b<LF>\xc3\xa9     "a\"b\n\xc3\xa9"
 *
 * Only what must be is escaped: ", \ and control bytes.  UTF-8 stays as it
 * is.  So each byte becomes one, two or six.
 */


#ifndef _US_JSON_QUOTE_H_INCLUDED_
#define _US_JSON_QUOTE_H_INCLUDED_


#include "../us_base.h"


/* bytes that stand in a string as they are: ASCII, but for " and \ */
extern const uint8_t  us_json_plain[256];


/*
 * Writes text as a JSON string with its quotes; dst has room for
 * us_json_quoted_max(len) bytes.  text is UTF-8.  Returns the end.
 */
#define us_json_quoted_max(len)  ((len) * 6 + 2)
uint8_t *us_json_quote(uint8_t *dst, us_str_t text);

/* the bytes that us_json_quote() writes */
size_t us_json_quoted_len(us_str_t text);

/* the same for text of any bytes: U+FFFD for each that is broken or near */
uint8_t *us_json_quote_bytes(uint8_t *dst, us_str_t text);


#endif /* _US_JSON_QUOTE_H_INCLUDED_ */
