
/*
 * What /normalize answers: the URL, its parts, and the steps that made it.
 *
 *     {"url": .., "scheme", "host", "port", "path", "file", "query",
 *      "steps": [{"step", "before", "after"}, ...,
 *                {"step": "spell as first seen", .., "first": ID}]}
 */


#ifndef _US_EXPLAIN_H_INCLUDED_
#define _US_EXPLAIN_H_INCLUDED_


#include "../store/us_store.h"
#include "../url/us_normalize.h"
#include "../input/us_json.h"


/* bytes of the parts of a URL of so many bytes */
#define us_explain_max(len)  (us_json_quoted_max((len) * 3) + 256)

/* the members of the URL, without the end of the object */
uint8_t *us_explain_parts(uint8_t *p, const us_canon_t *canon);


/* bytes that an element of "steps" adds */
#define us_explain_step_max(step, before, after)                              \
    (us_json_quoted_max(step) + us_json_quoted_max(before)                    \
     + us_json_quoted_max(after) + 64)
#define US_EXPLAIN_STEPS  16          /* of us_explain_begin() */
#define US_EXPLAIN_FIRST  36          /* that us_explain_first() adds */

/* the member "steps", with a comma before it and no element yet */
uint8_t *us_explain_begin(uint8_t *p);

/*
 * p: the end of the member, whose last byte is the bracket.  Texts may hold any
 * byte before the host is checked, names the expression of a rule.
 */
uint8_t *us_explain_step(uint8_t *p, us_str_t step, us_str_t before,
    us_str_t after);

/* the last element gets the id of the URL whose spelling it takes */
uint8_t *us_explain_first(uint8_t *p, uint64_t id);


/*
 * The spelling under which the URL is stored, or would be: www, and the scheme
 * where the first one stays, are those of the URL with id *first.  Returns 1
 * and *text, in buf of len + US_EXPLAIN_SPELL bytes, if it differs from the
 * URL's.
 */

#define US_EXPLAIN_SPELL  5           /* "s", "www." */

int us_explain_spelling(us_store_t *s, const us_canon_t *canon, uint8_t *buf,
    us_str_t *text, uint64_t *first);

/* u gets the text: the same URL with or without www., or of another scheme */
void us_explain_respell(us_url_t *u, us_str_t text);


#endif /* _US_EXPLAIN_H_INCLUDED_ */
