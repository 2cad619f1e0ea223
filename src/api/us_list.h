
/*
 * Lists of ids and their URLs: GET /url/7,9 and POST /url, GET /urls.
 *
 *     text     ID URL [TIME], tabs between; "-" and a word, if there is no URL
 *     JSON     {"results": [{"id", "url", ...}, ...], "next": ID}
 *     NDJSON   {"id", "url", ...} a line
 */


#ifndef _US_LIST_H_INCLUDED_
#define _US_LIST_H_INCLUDED_


#include "us_answer.h"
#include "../store/us_store.h"
#include "../input/us_json.h"


typedef struct {
    us_format_t      format;
    unsigned         times:1;         /* of the last claims, with URLs */
    uint64_t         claimed;         /* of the next line; 0: never */
    uint64_t         shown;           /* lines written so far */
} us_list_t;


/* digits of an id that is echoed; none above 2^52 is ever given */
#define US_LIST_DIGITS  32

/* bytes of a line: JSON, each byte of the URL escaped; and of both ends */
#define US_LIST_LINE    (us_json_quoted_max(US_URL_MAX) + 128)
#define US_LIST_END     64


/* whether it is an id of at most US_LIST_DIGITS digits, given or not */
int us_list_is_id(us_str_t id);


typedef enum {
    US_LIST_OK = 0,
    US_LIST_MANY,                     /* more than max */
    US_LIST_BAD                       /* *bad is no id */
} us_list_fault_t;


/* of "7,9,...": the first that is wrong */
us_list_fault_t us_list_check(us_str_t list, uint64_t max, us_str_t *bad);

/* cuts off the first id, and the comma after it; 1: there was one */
int us_list_cut(us_str_t *list, us_str_t *id);

uint8_t *us_list_begin(uint8_t *p, const us_list_t *list);

/* an id as the client wrote it; US_ANSWER_SEEN: its URL, and the word "ok" */
uint8_t *us_list_id(uint8_t *p, us_list_t *list, us_str_t id, us_str_t url,
    us_answer_t answer);

/* an id and its URL; NULL if that was deleted */
uint8_t *us_list_url(uint8_t *p, us_list_t *list, uint64_t id,
    const us_str_t *url);

/* the column, or the member, of times=1; nothing without */
uint8_t *us_list_claimed(uint8_t *p, const us_list_t *list);

/* the end of a list of ids */
uint8_t *us_list_end(uint8_t *p, const us_list_t *list);

/* the end of a list of URLs; the cursor is left out of text, unless wanted */
uint8_t *us_list_next(uint8_t *p, const us_list_t *list, uint64_t next,
    int wanted);


/* which URLs are wanted; zero: all that were not deleted */

typedef struct {
    us_str_t         site;            /* host[:port], without www. */
    us_str_t         prefix;
    us_store_set_t   set;             /* those that are in; number 0: all */
    unsigned         outside:1;       /* or those that are not */
    unsigned         merge:1;         /* www.site is the same site */
    unsigned         new_sites:1;     /* the first of each site */
    unsigned         deleted:1;       /* ids of deleted URLs, too */
    uint32_t         older;           /* whose claim is older; 0: any */
} us_select_t;


/* the first id in [from, to) to be looked at; or to */
uint64_t us_select_next(us_store_t *s, const us_select_t *select,
    uint64_t from, uint64_t to);


/*
 * US_OK: it is wanted, *url lies in buf, of US_URL_MAX + 8 bytes; US_DELETED:
 * its id is wanted; US_UNKNOWN: it is not.
 */
us_store_status_t us_select(us_store_t *s, const us_select_t *select,
    uint64_t id, uint8_t *buf, us_str_t *url);


#endif /* _US_LIST_H_INCLUDED_ */
