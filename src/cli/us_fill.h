
/*
 * A data directory filled with the URLs of lines, by groups: import, size.
 *
 *     line --> us_normalize() --> a group --> us_embed_add() --> directory
 *
 * After an error, which is printed, nothing more can be added.
 */


#ifndef _US_FILL_H_INCLUDED_
#define _US_FILL_H_INCLUDED_


#include "us_files.h"
#include "../data/us_embed.h"
#include "../url/us_normalize.h"


typedef struct {
    const char       *dir;
    const char       *full;           /* what to do when memory is full */

    us_norm_t        *norm;
    us_norm_ws_t     *ws;
    us_embed_t       *embed;          /* NULL: not open */

    unsigned          n;              /* items waiting */
    us_store_item_t   items[US_STORE_GROUP];
    uint8_t           text[US_STORE_GROUP][US_URL_MAX];
    uint64_t          times[US_STORE_GROUP];
    uint64_t          time;           /* see us_fill_time() */

    uint64_t          added;
    uint64_t          seen;
    uint64_t          refused;        /* no URLs, or those of other shards */
} us_fill_t;


/*
 * Opens the zeroed f for a directory, which is made if it does not exist; dir
 * and full stay the caller's.  conf->norm is set.  US_CLI_DONE, or an exit
 * code.  us_fill_close() is called after both.
 */
int us_fill_open(us_fill_t *f, const char *dir, us_profile_t profile,
    us_www_t www, us_embed_conf_t *conf);

/* US_CLI_DONE, or an exit code; a line that is no URL is counted */
int us_fill_line(us_fill_t *f, us_str_t line);

/*
 * The URLs of the lines that follow were claimed at that time, in seconds since
 * 1970, 0: never; US_FILL_NOW: new ones now.  A store without claims ignores
 * it.
 */
#define US_FILL_NOW  UINT64_MAX
void us_fill_time(us_fill_t *f, uint64_t time);

/* adds the group that waits, and learns a model if one is due */
int us_fill_flush(us_fill_t *f);

/* all that was added is on the disk afterwards: US_CLI_DONE, or an exit code */
int us_fill_close(us_fill_t *f);


#endif /* _US_FILL_H_INCLUDED_ */
