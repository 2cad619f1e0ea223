
/*
 * The engine of urlstore dedup: a group of lines in, the new ones out.
 */


#ifndef _US_DEDUP_H_INCLUDED_
#define _US_DEDUP_H_INCLUDED_


#include "us_files.h"
#include "us_lineset.h"
#include "us_urlset.h"
#include "filter/us_filter.h"
#include "url/us_normalize.h"

#define US_DEDUP_GROUP   US_FILES_GROUP


typedef struct us_dedup_s  us_dedup_t;


struct us_dedup_s {

    /* one group; returns 0, or an exit code after a message */

    int            (*take)(us_dedup_t *d, us_str_t *lines, size_t n);

    us_lineset_t    *set;             /* one of the three */
    us_urlset_t     *urls;
    us_filter_t     *filter;

    void            *mem;             /* of the filter */
    size_t           mem_size;

    us_norm_t       *norm;
    us_norm_ws_t    *ws;
    uint8_t         *text;            /* the canonical URLs of a group */

    unsigned         quiet:1;
    unsigned         count:1;
    unsigned         ids:1;
    int              profile;         /* -1: lines as they are */
    const char      *follow;
    size_t           memory;
    us_filter_plan_t plan;

    uint64_t         lines;
    uint64_t         fresh;
    uint64_t         refused[US_URL_BUDGET + 1];

    uint8_t         *out;
    size_t           out_len;

    us_files_t       files;
};


/*
 * Both return 0, or an exit code after a message.  us_dedup_open() takes the
 * options in d, the rest of which is zero; what it opened is freed by
 * us_dedup_free() whether it succeeded or not.
 */
int us_dedup_open(us_dedup_t *d);
int us_dedup_flush(us_dedup_t *d);
void us_dedup_free(us_dedup_t *d);

/* a line of output; number goes before it with ids or count; 0 or as above */
int us_dedup_print(us_dedup_t *d, us_str_t line, uint64_t number);
int us_dedup_print_url(us_dedup_t *d, const us_store_item_t *item,
    uint64_t number);


#endif /* _US_DEDUP_H_INCLUDED_ */
