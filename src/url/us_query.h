
/*
 * Steps on the pieces of a query: arguments and duplicates are removed, and the
 * rest is sorted.
 *
 * A piece is what stands between two '&'; its name ends at the first '='.
 * Names are compared as they are written, case matters.
 */


#ifndef _US_QUERY_H_INCLUDED_
#define _US_QUERY_H_INCLUDED_


#include "us_url.h"


/* pieces of a query of US_URL_MAX bytes, none of them empty */
#define US_QUERY_PIECES  (US_URL_MAX / 2)


/*
 * Names to strip: exact, or a glob with '*'.  A list for each first byte; the
 * list of '*' is for names that begin with a glob.
 */

typedef struct us_arg_s  us_arg_t;

typedef struct {
    us_arg_t          *first[256];
} us_args_t;


/* scratch for sorting */

typedef struct {
    us_str_t           piece[US_QUERY_PIECES];
    us_str_t           other[US_QUERY_PIECES];
    uint8_t            text[US_URL_MAX];
} us_query_ws_t;


int us_args_add(us_args_t *args, us_str_t name);
void us_args_free(us_args_t *args);

int us_glob(us_str_t glob, us_str_t s);

/* number of pieces that are not empty */
unsigned us_query_count(const us_url_t *url);

/*
 * These change url->href in place, which therefore is the workspace's, not
 * the caller's; the query gets shorter or keeps its length.  An empty query
 * loses its '?'.
 */

void us_query_strip(us_url_t *url, const us_args_t *args);
void us_query_strip_sessions(us_url_t *url);
void us_query_drop_duplicates(us_url_t *url, us_query_ws_t *ws);
void us_query_sort(us_url_t *url, us_query_ws_t *ws);


#endif /* _US_QUERY_H_INCLUDED_ */
