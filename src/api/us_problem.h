
/*
 * Problem documents (RFC 9457):
 *
 *     {"type":"about:blank","title":T,"status":N,"detail":D,MEMBERS}
 */


#ifndef _US_PROBLEM_H_INCLUDED_
#define _US_PROBLEM_H_INCLUDED_


#include "../us_base.h"
#include "../input/us_json.h"


/* "400 Bad Request"; of no bytes for a status that is not known */
us_str_t us_problem_line(unsigned status);


/*
 * All but the end of the object.  The detail is escaped; it may hold what a
 * client sent: if it is not UTF-8, it is changed so that it is.  No bytes: it
 * is left out.  members: more of them, such as "\"processed\":7", or NULL.
 */

#define us_problem_max(detail, members)                                       \
    (160 + us_json_quoted_max(detail) + (members))

uint8_t *us_problem_begin(uint8_t *p, unsigned status, uint8_t *detail,
    size_t len, const char *members);


#endif /* _US_PROBLEM_H_INCLUDED_ */
