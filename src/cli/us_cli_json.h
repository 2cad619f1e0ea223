
/*
 * As much JSON as a line of a command needs: an object with string members.
 */


#ifndef _US_CLI_JSON_H_INCLUDED_
#define _US_CLI_JSON_H_INCLUDED_


#include "../us_base.h"

#include <stdio.h>


/*
 * Reads one object and the string members named by keys, in any order; other
 * members are skipped.  A member that is absent or null has data NULL, others
 * are UTF-8 in memory to be freed; a lone surrogate becomes U+FFFD.  Returns
 * 0, or -1: not such an object, nothing to be freed.
 */
int us_json_object(us_str_t text, const us_str_t *keys, size_t n,
    us_str_t *values);

/* writes s, which is UTF-8, as a JSON string */
void us_json_write(FILE *f, us_str_t s);


#endif /* _US_CLI_JSON_H_INCLUDED_ */
