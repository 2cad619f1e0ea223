
/*
 * What a shard answers to a router: the text replies of docs/api.md, read back.
 *
 *     ID  STATUS  URL or reason  [site-...]  [TIME]  [STORED]
 *     ...
 *     # new=1 seen=0 ... next_id=7 epoch=1              the summary
 *
 *     ID  URL  [TIME]                                   of /url, a list
 *     ID  -  STATUS
 *
 *     ID  URL  [TIME]                                   of /urls
 *     ID  -    [-]                                       deleted
 *     # next=ID
 *
 * With same=1 the URL of an item is "=" if it is spelled as it was sent.
 *
 * A shard is trusted to be a shard, not to be right: each byte is checked, and
 * what is malformed counts as not answered.
 *
 * And what is done about a call that has no such answer.  One that failed
 * before anything was sent, or that a node has refused (Urlstore-Refused), is
 * tried at the shard's next node.  One that only reads is tried there after any
 * failure, and after a 503.  No other is sent again: a shard may have done what
 * it was asked, and a second try would answer `seen` for a new URL.
 */


#ifndef _US_WIRE_H_INCLUDED_
#define _US_WIRE_H_INCLUDED_


#include "../us_words.h"


#define US_WIRE_NO_ID  ((uint64_t) -1)


typedef enum {
    US_WIRE_NO_SITE = 0,
    US_WIRE_SITE_NEW,
    US_WIRE_SITE_KNOWN
} us_wire_site_t;


/* which columns the lines have beside the first three */

typedef struct {
    unsigned          sites:1;
    unsigned          times:1;
    unsigned          stored:1;
    unsigned          urls:1;         /* of /urls: no status after "-" */
    unsigned          same:1;         /* "=": the URL is as it was sent */
} us_wire_columns_t;


typedef struct {
    us_answer_t       status;
    us_answer_t       stored;         /* or US_ANSWER_NONE */
    us_wire_site_t    site;
    uint64_t          id;             /* or US_WIRE_NO_ID */
    uint64_t          time;           /* s since 1970; 0: none */
    us_str_t          text;           /* the URL, or the reason */
} us_wire_line_t;


/*
 * Reads the line at the beginning of text.  Returns its bytes, with the
 * newline; 0: it is malformed, or its newline is missing.
 */
size_t us_wire_line(us_str_t text, us_wire_columns_t columns,
    us_wire_line_t *line);

/* the same of /url and /urls: an id that has its URL is US_ANSWER_SEEN */
size_t us_wire_list_line(us_str_t text, us_wire_columns_t columns,
    us_wire_line_t *line);


typedef struct {
    uint64_t          next_id;        /* or US_WIRE_NO_ID */
    uint64_t          epoch;
    uint64_t          erasure;        /* 0: there is none */
} us_wire_summary_t;


/* reads the summary, which is all of text; 0: it is malformed */
int us_wire_summary(us_str_t text, us_wire_summary_t *s);

/* the same of /urls: where the list goes on */
int us_wire_next(us_str_t text, uint64_t *next);


/* how a call to a node has ended */

typedef struct {
    unsigned          status;         /* of the reply; 0: there is none */
    unsigned          code;           /* of what came of one; 0: nothing did */
    us_str_t          text;           /* of its body */
    unsigned          reads:1;        /* it changes nothing */
    unsigned          sent:1;         /* something was */
    unsigned          refused:1;      /* the node has done nothing */
} us_wire_end_t;


/* whether another node may have an answer, and may be asked */
int us_wire_again(const us_wire_end_t *end);

/* whether the shard may have done what it was asked, and has not said so */
int us_wire_unsure(const us_wire_end_t *end);

/*
 * Where the next call of the shard begins, after one that began at `first` and
 * ended at node: there if it has answered, past it if it has not.  A standby
 * refuses at once, so a wrong guess costs one more call.
 */
unsigned us_wire_node(const us_wire_end_t *end, unsigned node, unsigned first);


#endif /* _US_WIRE_H_INCLUDED_ */
