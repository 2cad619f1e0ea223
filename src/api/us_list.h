
/*
 * What is answered about URLs that are there: lists of ids and their URLs (GET
 * /url/7,9 and POST /url, GET /urls), sites, prefixes, and how a URL came
 * about.
 *
 *     text     ID URL [TIME], tabs between; "-" and a word, if there is no URL
 *     JSON     {"results": [{"id", "url", ...}, ...], "next": ID}
 *     NDJSON   {"id", "url", ...} a line
 */


#ifndef _US_LIST_H_INCLUDED_
#define _US_LIST_H_INCLUDED_


#include "us_answer.h"
#include "../store/us_erasures.h"
#include "../store/us_store.h"
#include "../input/us_json.h"
#include "../url/us_normalize.h"


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


/*
 * A set: {"name", "members", "bytes", "created", "asked"}, or these in columns.
 * With a comma before it, in a list.
 */
#define US_LIST_SET  (US_STORE_SET_LEN + 160)

uint8_t *us_list_set(uint8_t *p, us_format_t format,
    const us_store_set_info_t *set);

/* reads the columns of a set; 1: text was a line of one */
int us_list_set_read(us_str_t *text, us_store_set_info_t *set);


/*
 * An erasure: {"erasure", "kind", "state", "listed", "deleted", "created",
 * "done", "lifted", "left", "reason"}, or these in columns.  left: US_LEFT_*,
 * of which those that are not known are left out.  name: of a cluster, in place
 * of the number; p has room for it as well.
 */
#define US_LIST_ERASURE  (us_json_quoted_max(US_ERASURE_REASON) + 320)

uint8_t *us_list_erasure(uint8_t *p, us_format_t format,
    const us_erasure_info_t *erasure, unsigned left, us_str_t name);

/* reads the columns of an erasure; 1: text was a line of one */
int us_list_erasure_read(us_str_t *text, us_erasure_info_t *erasure,
    unsigned *left);

/* whether a reason can be kept: UTF-8, without control bytes, not too long */
int us_list_is_reason(us_str_t reason);


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


/*
 * GET /site/HOST and GET /prefix: the site that a client names, and the
 * replies.
 *
 *     /site     {"site", "first", "spelling", "www", ["urls", "last"]}
 *     /prefix   {"id", "status", "url"}, or ID STATUS URL with tabs between
 */


/* bytes of a client's name for a site, at most, and of the buffer for it */
#define US_LOOKUP_NAME  512
#define US_LOOKUP_BUF   (US_LOOKUP_NAME + 8)

/*
 * A host in any spelling, perhaps with "www." or a port: us_canon_site(canon)
 * is the key of its site.  That lies in buf or in ws.  0; -1: it is no host.
 */
int us_lookup_site(const us_norm_t *norm, us_norm_ws_t *ws, us_str_t name,
    uint8_t buf[US_LOOKUP_BUF], us_canon_t *canon);

/* bytes of a reply about a site, of the URL of a prefix */
#define us_lookup_site_max(key)   (us_json_quoted_max(key)                    \
                                   + us_json_quoted_max(4 + (key)) + 256)
#define us_lookup_url_max(url)    (us_json_quoted_max(url) + 64)

/* counts: the store has an index of sites */
uint8_t *us_lookup_site_reply(uint8_t *p, us_str_t key,
    const us_store_site_t *site, int counts);

/* NULL: nothing that is stored begins like the URL */
uint8_t *us_lookup_prefix_reply(uint8_t *p, us_format_t format, uint64_t id,
    const us_str_t *url);


/*
 * What /normalize answers: the URL, its parts, and the steps that made it.
 *
 *     {"url": .., "scheme", "host", "port", "path", "file", "query",
 *      "steps": [{"step", "before", "after"}, ...,
 *                {"step": "spell as first seen", .., "first": ID}]}
 */


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


#endif /* _US_LIST_H_INCLUDED_ */
