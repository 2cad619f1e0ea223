
/*
 * A batch that a router divides among shards, and what they answer.
 *
 *     items        u0 u1 u2 u3 ...      in the order of the input
 *        |
 *     round        lanes: a shard, and what it is asked
 *        |           shard 0  /add   u0 u3 ...   | part | part | ...
 *        |           shard 2  /add   u1 ...      | part | ...
 *        |           shard 2  /seen  u2 ...      | part | ...
 *        |
 *     replies      each answers the items of one part
 *        |
 *     next round, if there is one
 *
 * Lanes run at the same time, the parts of a lane one after another: equal URLs
 * are in one lane, and so the first of them is the one that is new.
 *
 * The slot of a URL decides which shards it goes to (us_map.h):
 *
 *     no former owners    the owner is asked what the client has asked
 *     former owners       round 1: the owner looks the URL up
 *                         round 2: if it has not hit, all former owners do
 *                         round 3: an add goes to the owner, if all of them
 *                                  have answered, none has the URL, and none
 *                                  refuses it because it was erased there
 *
 * What is done by id (sets, claims, id -> URL) goes to the shard of the id.  A
 * URL is looked up first, as above, and then it has an id or is `unknown`.
 *
 * A URL is erased by all owners of its slot at once, former ones included: one
 * of them may have it, and each refuses it from then on.  An id is erased by
 * its shard, which answers with the URL.  The others are sent that.
 *
 * A shard that does not answer has not denied: without a hit the item is
 * `unavailable` then.  A URL that a shard does not own (`moved`) can be tried
 * again with another map; nothing else is tried twice, because a shard may have
 * done what it was asked although its answer is missing: the caller sets that
 * as `unsure` of the lane, and it is in the items.  The end of a reply
 * that was too long to be read is no such case: but for adds, what has no line
 * there is asked again.
 *
 * A caller's loop:
 *
 *     us_scatter_url() for each, or us_scatter_id()
 *     while us_scatter_round():
 *         for each lane, for each us_scatter_part():
 *             us_scatter_reply() or us_scatter_failed()
 *
 * No locks: a scatter belongs to one thread.
 */


#ifndef _US_SCATTER_H_INCLUDED_
#define _US_SCATTER_H_INCLUDED_


#include "us_map.h"
#include "us_wire.h"


/* items of a part: a shard accepts as many, whatever a client may send */
#define US_SCATTER_ITEMS   8192

/* bytes of an answer beside its URL: ids, words, tabs; and of a reason */
#define US_SCATTER_ANSWER  80

/*
 * of a URL that is not known before it is answered: most are shorter, and if
 * none is, a router still reads the reply to its end
 */
#define US_SCATTER_URL     512

/* and of the summary */
#define US_SCATTER_SUMMARY 256


typedef enum {
    US_SCATTER_ADD = 0,
    US_SCATTER_SEEN,
    US_SCATTER_BY_ID,                 /* what us_scatter_t's answers are for */
    US_SCATTER_ERASE
} us_scatter_action_t;


typedef enum {
    US_STAGE_DONE = 0,                /* no shard is asked any more */
    US_STAGE_FIRST,                   /* not asked so far */
    US_STAGE_ASK,                     /* the owner is asked, to look it up */
    US_STAGE_FORMER,                  /* all former owners are */
    US_STAGE_LAST,                    /* one shard is, and none after it */
    US_STAGE_OWNERS                   /* the owner and all former owners are */
} us_stage_t;


typedef struct {
    us_str_t             url;         /* as it is sent */
    us_str_t             text;        /* of the answer: a URL, or a reason */
    us_str_t             ref;         /* the client's, for the answer */
    uint64_t             id;          /* or US_WIRE_NO_ID */
    uint64_t             time;
    uint16_t             slot;        /* of a URL */
    uint16_t             shard;       /* to be asked: index in map->shards */
    uint16_t             number;      /* of the shard that answered, or not */
    uint8_t              status;      /* us_answer_t */
    uint8_t              stage;       /* us_stage_t */
    uint8_t              site;        /* us_wire_site_t */
    uint8_t              stored;      /* with a set: us_answer_t, or NONE */
    unsigned             moved:1;     /* unavailable: a shard does not own it */
    unsigned             spelled:1;   /* a former owner knows its site */
    unsigned             known:1;     /* so does any of those asked */
    unsigned             lost:1;      /* one of those asked did not answer */
    unsigned             unsure:1;    /* it may have done it nevertheless */
    unsigned             by_id:1;     /* us_scatter_id() */
} us_scatter_item_t;


/* a shard, what it is asked, and which items */

typedef struct {
    uint32_t             shard;       /* index in map->shards */
    uint8_t              ask;         /* 1: to look up; 0: the action */
    uint32_t            *items;
    size_t               n;
    size_t               at;          /* those before it are done */
    size_t               part;        /* of these, those on their way */
    unsigned             unsure:1;    /* they may be done without an answer */
} us_lane_t;


/* what a shard reported of itself in this batch, if it answered at all */

typedef struct {
    us_wire_summary_t    first;       /* of the first part that it answered */
    uint64_t             erasure;     /* of the last part; 0: none */
    unsigned             answered:1;
} us_scatter_shard_t;


typedef struct {
    const us_map_t      *map;
    us_scatter_action_t  action;
    us_wire_columns_t    columns;
    unsigned             lists:1;     /* the action's lines are of /url */
    unsigned             answers;     /* of an id: a bit for each status */

    us_scatter_item_t   *items;
    size_t               n;
    size_t               room;

    us_lane_t           *lanes;       /* of this round */
    size_t               nlanes;
    uint32_t            *order;       /* their items */

    us_scatter_shard_t  *shards;      /* by index in the map */

    struct us_scatter_text_s
                        *texts;       /* of the URLs */
} us_scatter_t;


/* map must live as long; 0, or -1: no memory */
int us_scatter_init(us_scatter_t *s, const us_map_t *map,
    us_scatter_action_t action);
void us_scatter_free(us_scatter_t *s);

/* the next item: a canonical URL, which is copied.  0, or -1: no memory */
int us_scatter_url(us_scatter_t *s, us_str_t url);

/* the same: an id, which goes to its shard if the map has that */
int us_scatter_id(us_scatter_t *s, uint64_t id);

/* the same: an item that goes to no shard, with its answer, which is copied */
int us_scatter_local(us_scatter_t *s, us_answer_t status, us_str_t why);

/* a ref for the last item, which is copied */
int us_scatter_ref(us_scatter_t *s, us_str_t ref);

/*
 * Begins the next round.  Returns 1 if lanes have items; 0: all items are
 * answered, or moved; -1: no memory.
 */
int us_scatter_round(us_scatter_t *s);

/*
 * The next part of a lane: lane->part items from lane->items[lane->at].  Their
 * answers have at most `limit` bytes, unless it is one item.  Returns the bytes
 * that their URLs have, with a newline each; 0: the lane has no more.
 */
size_t us_scatter_part(us_scatter_t *s, us_lane_t *lane, size_t limit);

/*
 * The shard has answered the part; text must live as long as the scatter.
 * Items without a whole line are unavailable.  Returns how many were answered.
 */
size_t us_scatter_reply(us_scatter_t *s, us_lane_t *lane, us_str_t text);

/* the same of the beginning of a reply, whose end was not read */
size_t us_scatter_reply_cut(us_scatter_t *s, us_lane_t *lane, us_str_t text);

/* the shard has not answered it */
void us_scatter_failed(us_scatter_t *s, us_lane_t *lane);

/*
 * Another map, of which the texts and nothing else of the old one is used:
 * moved items are tried again in the next round.  0, or -1: no memory.
 */
int us_scatter_remap(us_scatter_t *s, const us_map_t *map);

/* how many items are moved */
size_t us_scatter_moved(const us_scatter_t *s);


#endif /* _US_SCATTER_H_INCLUDED_ */
