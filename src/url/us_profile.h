
/*
 * Profiles: which steps are done, in which order.
 *
 * A profile is a set of steps.  Steps of single bytes are done by the parser
 * in its one pass (US_STEP_PARSE, see us_whatwg.h); the others work on the
 * serialized URL, in the order of us_steps[].
 */


#ifndef _US_PROFILE_H_INCLUDED_
#define _US_PROFILE_H_INCLUDED_


#include "us_whatwg.h"


/* counted up when a profile makes another key of the same input */
#define US_PROFILE_VERSION  1


#define US_STEP_PATH_SESSION   0x0020  /* drop ;jsessionid=... */
#define US_STEP_SLASHES        0x0040  /* // -> / but for what follows a : */
#define US_STEP_ARGS           0x0080  /* drop listed arguments */
#define US_STEP_SESSION        0x0100  /* drop session ids in the query */
#define US_STEP_DUPLICATES     0x0200  /* drop equal pieces of the query */
#define US_STEP_SORT           0x0400  /* sort arguments by name */

#define US_STEP_PATH           0x0060
#define US_STEP_LATE           0x07e0


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
    uint8_t            text[US_URL_MAX];
} us_query_ws_t;


int us_args_add(us_args_t *args, us_str_t name);
void us_args_free(us_args_t *args);

int us_glob(us_str_t glob, us_str_t s);

/* takes bytes out of the path, or what is before it, or the query's end */
void us_url_remove(us_url_t *url, uint8_t *from, const uint8_t *to);

/* number of pieces that are not empty */
unsigned us_query_count(const us_url_t *url);

/*
 * A step changes url->href in place, which therefore is the workspace's, not
 * the caller's; the URL gets shorter or keeps its length.  An empty query loses
 * its '?'.
 */

typedef struct {
    const us_args_t  *args;
    us_query_ws_t    *query;
} us_step_ctx_t;


typedef struct {
    unsigned      step;
    const char   *name;               /* for explain */
    void        (*run)(us_url_t *url, const us_step_ctx_t *ctx);
} us_step_t;


/* in order; run is NULL for the steps of the parser; ends with step 0 */
extern const us_step_t  us_steps[];

unsigned us_profile_steps(us_profile_t profile);

/* the tracking arguments that crawler-clean drops; ends with NULL */
extern const char *const  us_tracking_args[];


#endif /* _US_PROFILE_H_INCLUDED_ */
