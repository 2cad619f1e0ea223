
/*
 * The answers of /add, /seen, /set, /mark, /claim and /erase, an item each:
 *
 *     text     ID STATUS URL [site-...] [TIME] [STORED] [INDEX], tabs between
 *     JSON     {"results": [{"id", "status", "url", ...}, ...], "new", ...}
 *     NDJSON   {"id", "status", "url", ...} a line
 *
 * A single item gets one object of JSON.  A list can end with a summary.
 */


#ifndef _US_ANSWER_H_INCLUDED_
#define _US_ANSWER_H_INCLUDED_


#include "us_request.h"
#include "../store/us_store.h"
#include "../input/us_json.h"
#include "../us_words.h"


/* what the text of a record is */

typedef enum {
    US_ANSWER_NO_TEXT = 0,            /* brief=1, or there is no URL */
    US_ANSWER_URL,
    US_ANSWER_LOOK_UP,                /* the URL of the id, not there yet */
    US_ANSWER_SAME,                   /* the URL that was sent; text: "=" */
    US_ANSWER_WHY                     /* the reason */
} us_answer_text_t;


/* what is kept of an answer until the reply; its text and its ref follow */

typedef struct {
    uint64_t         id;              /* US_STORE_NO_ID: null */
    uint64_t         claimed;         /* s since 1970; 0: null */
    uint32_t         index;           /* of the item */
    uint16_t         text_len;
    uint16_t         ref_len;
    uint8_t          answer;
    uint8_t          text;            /* us_answer_text_t */
    uint8_t          new_site;
    uint8_t          stored;          /* with a set: the store's, or NONE */
} us_answer_record_t;


/* a shard of a cluster, in the summary */

typedef struct {
    uint64_t         number;
    uint64_t         next_id;         /* US_STORE_NO_ID: not known there */
    uint64_t         epoch;
} us_answer_shard_t;


/* of a request */

typedef struct {
    us_format_t      format;
    unsigned         brief:1;         /* no URLs */
    unsigned         summary:1;
    unsigned         only_new:1;      /* and due ones, with their index */
    unsigned         sites:1;
    unsigned         same:1;          /* US_ANSWER_SAME is wanted */
    unsigned         unseen_sites:1;  /* of unseen URLs as well */
    unsigned         single:1;        /* one item: one object */
    unsigned         marks:1;         /* the summary is that of /mark */
    unsigned         ids:1;           /* the same of /set/NAME */
    unsigned         set:1;           /* the status is about one */
    unsigned         stored:1;        /* a column has the store's, too */
    unsigned         claims:1;        /* the same of /claim */
    unsigned         erases:1;        /* the same of /erase, with its number */
    unsigned         older:1;         /* the summary counts `due` */
    unsigned         times:1;         /* of the last claims */
    uint64_t         erasure;         /* 0: none was begun */
    us_str_t         erased;          /* of a cluster, the name of it */
    uint64_t         next_id;         /* US_STORE_NO_ID: not known here */
    uint64_t         epoch;
    us_answer_shard_t
                    *shards;          /* in place of both; NULL: no cluster */
    size_t           nshards;
    uint64_t         counts[US_ANSWERS];
    uint64_t         shown;           /* objects written so far */
} us_answers_t;


/* that of the store: US_OK is an id whose URL was found */
us_answer_t us_answer_of(us_store_status_t status);


/*
 * What only=new shows: the client is to fetch it; what was not answered, as
 * well, is to be sent again.
 */

static inline int
us_answer_shown(unsigned answer)
{
    return answer == US_ANSWER_NEW || answer == US_ANSWER_DUE
           || answer == US_ANSWER_UNAVAILABLE;
}


/* the URL was added, or was there */

static inline int
us_answer_known(unsigned answer)
{
    return answer == US_ANSWER_NEW || answer == US_ANSWER_DUE
           || answer == US_ANSWER_SEEN;
}


/* bytes of an answer, with its texts, and of the summary */
#define us_answer_max(text, ref)  (256 + us_json_quoted_max(text) + (ref))
#define US_ANSWER_SUMMARY         512
#define us_answer_shards_max(n)   (64 + (n) * 64)


/*
 * An answer in US_FORMAT_TEXT, or in one of the others; text and ref are those
 * of the record, ref is JSON.
 */
uint8_t *us_answer_line(uint8_t *p, const us_answers_t *a,
    const us_answer_record_t *rec, us_str_t text);
uint8_t *us_answer_object(uint8_t *p, us_answers_t *a,
    const us_answer_record_t *rec, us_str_t text, us_str_t ref);

/* the end of the list: nothing, if no summary is wanted */
uint8_t *us_answer_end(uint8_t *p, const us_answers_t *a);


#endif /* _US_ANSWER_H_INCLUDED_ */
