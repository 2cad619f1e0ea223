
/*
 * See us_scatter.h.
 */


#include "us_scatter.h"
#include "../us_text.h"

#include <stdlib.h>


#define US_SCATTER_TEXT   (64 * 1024)

/* lanes of a shard: what the client asked, and questions */
#define US_SCATTER_KINDS  2


/* texts are only added, so that pointers to them stay */

typedef struct us_scatter_text_s  us_scatter_text_t;

struct us_scatter_text_s {
    us_scatter_text_t  *next;
    size_t              used;
    size_t              size;
    uint8_t             data[];
};


int
us_scatter_init(us_scatter_t *s, const us_map_t *map,
    us_scatter_action_t action)
{
    memset(s, 0, sizeof(us_scatter_t));

    s->action = action;

    return us_scatter_remap(s, map);
}


void
us_scatter_free(us_scatter_t *s)
{
    us_scatter_text_t  *text;

    while (s->texts) {
        text = s->texts;
        s->texts = text->next;
        free(text);
    }

    free(s->items);
    free(s->lanes);
    free(s->order);
    free(s->shards);

    memset(s, 0, sizeof(us_scatter_t));
}


/* 0, or -1: no memory */

static int
us_scatter_copy(us_scatter_t *s, us_str_t text, us_str_t *copy)
{
    size_t              size;
    us_scatter_text_t  *t;

    t = s->texts;

    if (t == NULL || t->size - t->used < text.len) {

        /* a single URL costs no more than itself */

        size = s->n > 1 ? US_SCATTER_TEXT : 256;
        size = size < text.len ? text.len : size;

        t = malloc(sizeof(us_scatter_text_t) + size);
        if (t == NULL) {
            return -1;
        }

        t->next = s->texts;
        t->used = 0;
        t->size = size;
        s->texts = t;
    }

    copy->data = t->data + t->used;
    copy->len = text.len;

    (void) us_put_str(t->data + t->used, text);
    t->used += text.len;

    return 0;
}


/* one that no shard is asked about, so far */

static us_scatter_item_t *
us_scatter_item(us_scatter_t *s)
{
    size_t              room;
    us_scatter_item_t  *items;

    if (s->n == s->room) {
        room = s->room ? s->room * 2 : 16;

        items = realloc(s->items, room * sizeof(us_scatter_item_t));
        if (items == NULL) {
            return NULL;
        }

        s->items = items;
        s->room = room;
    }

    items = &s->items[s->n++];

    memset(items, 0, sizeof(us_scatter_item_t));
    items->id = US_WIRE_NO_ID;

    return items;
}


int
us_scatter_url(us_scatter_t *s, us_str_t url)
{
    us_scatter_item_t  *item;

    item = us_scatter_item(s);

    if (item == NULL || us_scatter_copy(s, url, &item->url) != 0) {
        return -1;
    }

    item->slot = us_slot(us_slot_key(s->map->key, item->url));
    item->stage = US_STAGE_FIRST;

    return 0;
}


int
us_scatter_local(us_scatter_t *s, us_answer_t status, us_str_t why)
{
    us_scatter_item_t  *item;

    item = us_scatter_item(s);

    if (item == NULL) {
        return -1;
    }

    item->status = status;

    return us_scatter_copy(s, why, &item->text);
}


int
us_scatter_ref(us_scatter_t *s, us_str_t ref)
{
    return us_scatter_copy(s, ref, &s->items[s->n - 1].ref);
}


/* what is sent of the item: its id */

static int
us_scatter_digits(us_scatter_t *s, us_scatter_item_t *item)
{
    us_str_t  text;
    uint8_t   digits[US_U64_LEN];

    text.data = digits;
    text.len = us_put_u64(digits, item->id) - digits;

    return us_scatter_copy(s, text, &item->url);
}


int
us_scatter_id(us_scatter_t *s, uint64_t id)
{
    int                 shard;
    us_scatter_item_t  *item;

    item = us_scatter_item(s);

    if (item == NULL) {
        return -1;
    }

    item->by_id = 1;
    item->id = id;
    item->number = (uint16_t) (id >> US_SHARD_SHIFT);

    shard = us_map_shard(s->map, id >> US_SHARD_SHIFT);

    if (shard == -1) {
        item->id = US_WIRE_NO_ID;
        item->status = US_ANSWER_UNAVAILABLE;
        item->lost = 1;

        return 0;
    }

    if (us_scatter_digits(s, item) != 0) {
        return -1;
    }

    item->shard = (uint16_t) shard;
    item->stage = US_STAGE_LAST;

    return 0;
}


/* whether a shard has the URL of an item: it may be in no set */

static int
us_scatter_hit(const us_scatter_item_t *item)
{
    return item->status == US_ANSWER_SEEN || item->status == US_ANSWER_DUE
           || item->stored == US_ANSWER_SEEN;
}


/* the owner was asked, or all former owners as well; 0, or -1: no memory */

static int
us_scatter_settle(us_scatter_t *s, us_scatter_item_t *item)
{
    const us_owners_t  *owners;

    owners = &s->map->slots[item->slot];

    if (s->action == US_SCATTER_BY_ID && us_scatter_hit(item)) {

        /* the URL has an id, and its shard is asked by that */

        item->stage = US_STAGE_LAST;
        item->status = US_ANSWER_NONE;
        item->moved = 0;
        item->lost = 0;

        return us_scatter_digits(s, item);
    }

    if (s->action == US_SCATTER_ADD && us_scatter_hit(item)
        && item->status != US_ANSWER_SEEN)
    {
        /*
         * the shard that has the URL claims it, or puts it into the set; that
         * may be done by now
         */

        item->stage = US_STAGE_LAST;
        item->status = US_ANSWER_NONE;
        item->stored = US_ANSWER_NONE;
        return 0;
    }

    if (!us_scatter_hit(item)
        && (item->status == US_ANSWER_UNSEEN
            || item->status == US_ANSWER_NONE))
    {

        if (item->stage == US_STAGE_ASK && owners->n > 1) {

            /* the owner has denied it, or has not answered: others may hit */

            item->stage = US_STAGE_FORMER;
            return 0;
        }

        if (item->lost || item->moved) {
            item->status = US_ANSWER_UNAVAILABLE;

        } else if (s->action == US_SCATTER_ADD) {
            item->stage = US_STAGE_LAST;
            item->status = US_ANSWER_NONE;
            item->shard = owners->shards[0];

            if (item->spelled) {
                item->url = item->text;
            }

            return 0;

        } else {

            /* all have denied it: next_id is that of the shard to add it */

            item->status = s->action == US_SCATTER_BY_ID ? US_ANSWER_UNKNOWN
                                                         : US_ANSWER_UNSEEN;
            item->number = s->map->shards[owners->shards[0]].number;
        }
    }

    if (item->status != US_ANSWER_UNAVAILABLE) {
        item->moved = 0;
    }

    item->stage = US_STAGE_DONE;

    return 0;
}


/* the lanes that an item goes to in this round, shard * 2 + ask */

static unsigned
us_scatter_targets(const us_scatter_t *s, const us_scatter_item_t *item,
    uint32_t *lanes)
{
    unsigned            i, n, shard;
    const us_owners_t  *owners;

    owners = &s->map->slots[item->slot];

    switch (item->stage) {

    case US_STAGE_LAST:
        lanes[0] = item->shard * US_SCATTER_KINDS;
        return 1;

    case US_STAGE_ASK:
        lanes[0] = owners->shards[0] * US_SCATTER_KINDS + 1;
        return 1;

    case US_STAGE_FORMER:

        for (i = 1; i < owners->n; i++) {
            lanes[i - 1] = owners->shards[i] * US_SCATTER_KINDS + 1;
        }

        return i - 1;

    case US_STAGE_OWNERS:

        for (i = 0, n = 0; i < owners->n; i++) {
            shard = owners->shards[i];

            if (!item->by_id || s->map->shards[shard].number
                                != item->id >> US_SHARD_SHIFT)
            {
                lanes[n++] = shard * US_SCATTER_KINDS;
            }
        }

        return n;

    default:
        return 0;
    }
}


/* items that are to be sent, by lane: counted, then placed */

static int
us_scatter_lanes(us_scatter_t *s)
{
    size_t     i, lanes, total;
    unsigned   j, n;
    uint32_t  *count;
    uint32_t   to[1 + US_MAP_FORMER];

    lanes = (size_t) s->map->nshards * US_SCATTER_KINDS;

    free(s->lanes);
    free(s->order);

    s->order = NULL;
    s->nlanes = 0;
    s->lanes = calloc(lanes, sizeof(us_lane_t));
    count = calloc(lanes, sizeof(uint32_t));

    if (s->lanes == NULL || count == NULL) {
        free(count);
        return -1;
    }

    total = 0;

    for (i = 0; i < s->n; i++) {
        n = us_scatter_targets(s, &s->items[i], to);
        total += n;

        for (j = 0; j < n; j++) {
            count[to[j]]++;
        }
    }

    s->order = total ? malloc(total * sizeof(uint32_t)) : NULL;

    if (s->order == NULL) {
        free(count);
        return total ? -1 : 0;
    }

    /* count becomes the index of a lane that is not empty */

    total = 0;

    for (i = 0; i < lanes; i++) {
        if (count[i] == 0) {
            continue;
        }

        s->lanes[s->nlanes].shard = i / US_SCATTER_KINDS;
        s->lanes[s->nlanes].ask = i % US_SCATTER_KINDS;
        s->lanes[s->nlanes].items = s->order + total;

        total += count[i];
        count[i] = s->nlanes++;
    }

    for (i = 0; i < s->n; i++) {
        n = us_scatter_targets(s, &s->items[i], to);

        for (j = 0; j < n; j++) {
            s->lanes[count[to[j]]].items[s->lanes[count[to[j]]].n++] = i;
        }
    }

    free(count);

    return 1;
}


int
us_scatter_round(us_scatter_t *s)
{
    size_t              i;
    us_scatter_item_t  *item;
    const us_owners_t  *owners;

    for (i = 0; i < s->n; i++) {
        item = &s->items[i];

        if (item->stage == US_STAGE_ASK || item->stage == US_STAGE_FORMER) {
            if (us_scatter_settle(s, item) != 0) {
                return -1;
            }

        } else if (item->stage == US_STAGE_OWNERS) {

            /* all but the shard of an id, which has erased it before */

            item->stage = US_STAGE_DONE;

            if (item->lost || item->moved) {
                item->status = US_ANSWER_UNAVAILABLE;

            } else if (item->status == US_ANSWER_NONE) {
                item->status = US_ANSWER_ERASED;
            }

        } else if (item->stage == US_STAGE_FIRST) {
            owners = &s->map->slots[item->slot];
            item->shard = owners->shards[0];
            item->status = US_ANSWER_NONE;

            /* if nobody has it, next_id is that of the shard to add it */

            if (!item->by_id) {
                item->number = s->map->shards[item->shard].number;
            }

            item->stage = s->action == US_SCATTER_ERASE ? US_STAGE_OWNERS
                          : owners->n > 1 || s->action == US_SCATTER_BY_ID
                          ? US_STAGE_ASK : US_STAGE_LAST;
        }
    }

    return us_scatter_lanes(s);
}


/* whether the shard is asked by the id of the item */

static int
us_scatter_of_id(const us_scatter_t *s, const us_lane_t *lane,
    const us_scatter_item_t *item)
{
    return !lane->ask
           && (s->action == US_SCATTER_BY_ID
               || (s->action == US_SCATTER_ERASE
                   && item->stage == US_STAGE_LAST));
}


size_t
us_scatter_part(us_scatter_t *s, us_lane_t *lane, size_t limit)
{
    size_t              i, len, body, answers;
    us_scatter_item_t  *item;

    body = 0;
    answers = US_SCATTER_SUMMARY;

    for (i = lane->at; i < lane->n; i++) {
        item = &s->items[lane->items[i]];
        len = item->url.len;
        answers += US_SCATTER_ANSWER
                   + (us_scatter_of_id(s, lane, item) ? US_SCATTER_URL : len);

        if (i > lane->at
            && (answers > limit || i - lane->at == US_SCATTER_ITEMS))
        {
            break;
        }

        body += len + 1;
    }

    lane->part = i - lane->at;
    lane->unsure = 0;

    return body;
}


/* answers, a bit each: to an id without one; with a reason; of what is there */

#define US_SCATTER_NO_ID                                                      \
    (1 << US_ANSWER_UNKNOWN | 1 << US_ANSWER_FULL | 1 << US_ANSWER_UNAVAILABLE)
#define US_SCATTER_WHY                                                        \
    (1 << US_ANSWER_INVALID | 1 << US_ANSWER_REJECTED                         \
     | 1 << US_ANSWER_UNAVAILABLE)
#define US_SCATTER_THERE  (1 << US_ANSWER_SEEN | 1 << US_ANSWER_DUE)


/*
 * A status that is no answer to the question, an id of another shard, or none
 * where there must be one, is no answer.
 */

static int
us_scatter_fits(const us_scatter_t *s, const us_lane_t *lane,
    const us_wire_line_t *line)
{
    int                       has_id;
    unsigned                  bit, allowed;
    const us_scatter_item_t  *item;

    item = &s->items[lane->items[lane->at]];
    bit = 1u << line->status;

    if (us_scatter_of_id(s, lane, item)) {
        allowed = s->answers | 1 << US_ANSWER_UNKNOWN | 1 << US_ANSWER_DELETED
                  | 1 << US_ANSWER_UNAVAILABLE;

        return (allowed & bit) && line->text.len <= US_URL_MAX
               && (line->id == item->id || (line->id == US_WIRE_NO_ID
                                            && (US_SCATTER_NO_ID & bit)));
    }

    allowed = s->action == US_SCATTER_ERASE
              ? 1 << US_ANSWER_ERASED | 1 << US_ANSWER_FULL
              : lane->ask
              ? US_SCATTER_THERE | 1 << US_ANSWER_UNSEEN
                | 1 << US_ANSWER_REFUSED
              : s->action == US_SCATTER_SEEN
              ? US_SCATTER_THERE | 1 << US_ANSWER_UNSEEN
              : US_SCATTER_THERE | 1 << US_ANSWER_NEW | 1 << US_ANSWER_FULL
                | 1 << US_ANSWER_REFUSED;

    if ((US_SCATTER_WHY | (allowed & 1 << US_ANSWER_REFUSED)) & bit) {
        return line->text.len <= US_SCATTER_ANSWER;
    }

    /* what is there has an id, and what was erased if it was there */

    has_id = (US_SCATTER_THERE | 1 << US_ANSWER_NEW) & bit
             || (line->status == US_ANSWER_ERASED && line->id != US_WIRE_NO_ID)
             || (line->status != US_ANSWER_FULL
                 && line->stored == US_ANSWER_SEEN);

    return (allowed & bit) && line->text.len <= US_URL_MAX
           && (!has_id
               || (line->id != US_WIRE_NO_ID && line->id >> US_SHARD_SHIFT
                                     == s->map->shards[lane->shard].number));
}


/* whether a shard's text is a URL that can be sent: a line of its own */

static int
us_scatter_is_url(us_str_t text)
{
    size_t  i;

    if (text.len < 4 || text.len > US_URL_MAX
        || memcmp(text.data, "http", 4) != 0)
    {
        return 0;
    }

    for (i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ') {
            return 0;
        }
    }

    return 1;
}


static void
us_scatter_take(const us_scatter_t *s, us_scatter_item_t *item,
    const us_lane_t *lane, const us_wire_line_t *line)
{
    item->status = line->status;
    item->shard = lane->shard;
    item->number = s->map->shards[lane->shard].number;
    item->id = line->id;
    item->time = line->time;
    item->site = line->site;
    item->stored = line->stored;
    item->text = line->text;
}


/* one of several answers to the question whether a URL is there */

static void
us_scatter_asked(us_scatter_t *s, us_scatter_item_t *item,
    const us_lane_t *lane, const us_wire_line_t *line)
{
    us_str_t     text;
    us_answer_t  status;

    text = line->text;
    status = line->stored == US_ANSWER_SEEN ? US_ANSWER_SEEN : line->status;

    if (status == US_ANSWER_REFUSED && s->action != US_SCATTER_ADD) {

        /* what was erased is not there; nobody adds it */

        text = item->url;
        status = US_ANSWER_UNSEEN;
    }

    item->known |= (line->site == US_WIRE_SITE_KNOWN);

    switch (status) {

    case US_ANSWER_SEEN:
    case US_ANSWER_DUE:

        if (!us_scatter_hit(item)) {
            us_scatter_take(s, item, lane, line);
        }

        break;

    case US_ANSWER_UNSEEN:

        if (item->status == US_ANSWER_NONE) {
            item->status = US_ANSWER_UNSEEN;
            item->text = text;

            if (!item->lost) {
                item->number = s->map->shards[lane->shard].number;
            }
        }

        /* what differs from what was sent is how the site is known there */

        if (item->stage == US_STAGE_FORMER
            && item->status == US_ANSWER_UNSEEN && !item->spelled
            && us_str_compare(text, item->url) != 0
            && us_scatter_is_url(text)
            && us_slot(us_slot_key(s->map->key, text)) == item->slot)
        {
            item->text = text;
            item->spelled = 1;
        }

        break;

    case US_ANSWER_UNAVAILABLE:
        item->moved = 1;
        break;

    default: /* US_ANSWER_INVALID, _REJECTED, _REFUSED */

        if (item->status == US_ANSWER_NONE
            || item->status == US_ANSWER_UNSEEN)
        {
            us_scatter_take(s, item, lane, line);
        }

        break;
    }
}


static void
us_scatter_answer(us_scatter_t *s, us_scatter_item_t *item,
    const us_lane_t *lane, const us_wire_line_t *line)
{
    if (item->stage == US_STAGE_ASK || item->stage == US_STAGE_FORMER) {
        us_scatter_asked(s, item, lane, line);
        return;
    }

    if (item->stage == US_STAGE_OWNERS) {

        if (line->status == US_ANSWER_UNAVAILABLE) {
            item->moved = 1;

        } else if (line->status != US_ANSWER_ERASED) {

            /* US_ANSWER_FULL, _INVALID, _REJECTED */

            item->status = line->status;
            item->text = line->text;

        } else if (!item->by_id
                   && (line->id != US_WIRE_NO_ID || item->text.len == 0))
        {
            item->text = line->text;

            if (line->id != US_WIRE_NO_ID) {
                item->id = line->id;
                item->number = s->map->shards[lane->shard].number;
            }
        }

        return;
    }

    if (us_scatter_of_id(s, lane, item)) {
        item->stage = US_STAGE_DONE;
        item->status = line->status;
        item->time = line->time;
        item->lost |= line->status == US_ANSWER_UNAVAILABLE;

        if (US_SCATTER_NO_ID & 1 << line->status) {
            item->id = US_WIRE_NO_ID;
        }

        if (s->action == US_SCATTER_ERASE) {

            /* what was sent as an id is answered without its URL */

            if (line->status == US_ANSWER_ERASED
                && us_scatter_is_url(line->text))
            {
                item->url = line->text;
                item->slot = us_slot(us_slot_key(s->map->key, item->url));
                item->stage = s->map->slots[item->slot].n > 1
                              ? US_STAGE_FIRST : US_STAGE_DONE;
            }

        } else if (item->by_id) {

            /* a URL that was looked up has its text already */

            item->text = line->text;
        }

        return;
    }

    us_scatter_take(s, item, lane, line);
    item->moved = (line->status == US_ANSWER_UNAVAILABLE);

    if (item->known && item->status == US_ANSWER_NEW) {
        item->site = US_WIRE_SITE_KNOWN;
    }

    item->stage = US_STAGE_DONE;
}


/* the answers that text begins with, which are cut off; how many */

static size_t
us_scatter_lines(us_scatter_t *s, us_lane_t *lane, us_str_t *text)
{
    size_t              len, n;
    us_wire_line_t      line;
    us_scatter_item_t  *item;

    for (n = 0; lane->part; n++) {

        len = s->lists && !lane->ask
              ? us_wire_list_line(*text, s->columns, &line)
              : us_wire_line(*text, s->columns, &line);

        if (len == 0 || !us_scatter_fits(s, lane, &line)) {
            break;
        }

        text->data += len;
        text->len -= len;

        item = &s->items[lane->items[lane->at]];

        if (s->columns.same && line.text.len == 1 && line.text.data[0] == '=')
        {
            line.text = item->url;
        }

        us_scatter_answer(s, item, lane, &line);

        lane->at++;
        lane->part--;
    }

    return n;
}


size_t
us_scatter_reply(us_scatter_t *s, us_lane_t *lane, us_str_t text)
{
    size_t               n;
    us_wire_summary_t    last;
    us_scatter_shard_t  *shard;

    n = us_scatter_lines(s, lane, &text);

    shard = &s->shards[lane->shard];
    shard->erasure = 0;

    if (lane->part == 0 && us_wire_summary(text, &last)) {
        shard->first = shard->answered ? shard->first : last;
        shard->erasure = last.erasure;
        shard->answered = 1;
    }

    us_scatter_failed(s, lane);

    return n;
}


size_t
us_scatter_reply_cut(us_scatter_t *s, us_lane_t *lane, us_str_t text)
{
    size_t  n;

    if (s->action == US_SCATTER_ADD && !lane->ask) {
        return us_scatter_reply(s, lane, text);
    }

    n = us_scatter_lines(s, lane, &text);

    /*
     * The rest is a part of its own, if the reply was cut within a line: what
     * is no line at all would be answered so again.
     */

    if (n == 0 || (text.len && memchr(text.data, '\n', text.len))) {
        us_scatter_failed(s, lane);
        return n;
    }

    n += lane->part;
    lane->part = 0;

    return n;
}


void
us_scatter_failed(us_scatter_t *s, us_lane_t *lane)
{
    us_scatter_item_t  *item;

    for ( /* void */ ; lane->part; lane->part--) {
        item = &s->items[lane->items[lane->at++]];
        item->lost = 1;
        item->unsure |= lane->unsure;

        if (item->stage == US_STAGE_ASK || item->stage == US_STAGE_FORMER
            || item->stage == US_STAGE_OWNERS)
        {

            /* another one may have it */

            if (item->status == US_ANSWER_NONE
                || item->status == US_ANSWER_UNSEEN)
            {
                item->number = s->map->shards[lane->shard].number;
            }

            continue;
        }

        item->status = US_ANSWER_UNAVAILABLE;
        item->number = s->map->shards[lane->shard].number;
        item->stage = US_STAGE_DONE;
        item->id = US_WIRE_NO_ID;
    }
}


/* nothing was done for it, and each shard that was asked has said so */

static int
us_scatter_again(const us_scatter_item_t *item)
{
    return item->stage == US_STAGE_DONE && item->moved && !item->lost
           && item->status == US_ANSWER_UNAVAILABLE;
}


int
us_scatter_remap(us_scatter_t *s, const us_map_t *map)
{
    size_t               i;
    us_scatter_item_t   *item;
    us_scatter_shard_t  *shards;

    shards = calloc(map->nshards, sizeof(us_scatter_shard_t));
    if (shards == NULL) {
        return -1;
    }

    /* the numbers of shards go on, their indexes do not */

    for (i = 0; s->map && i < s->map->nshards; i++) {
        if (us_map_shard(map, s->map->shards[i].number) != -1) {
            shards[us_map_shard(map, s->map->shards[i].number)] = s->shards[i];
        }
    }

    for (i = 0; i < s->n; i++) {
        item = &s->items[i];

        if (us_scatter_again(item)) {
            item->stage = US_STAGE_FIRST;
            item->moved = 0;
            item->known = 0;
            item->spelled = 0;
        }
    }

    free(s->shards);

    s->shards = shards;
    s->map = map;

    return 0;
}


size_t
us_scatter_moved(const us_scatter_t *s)
{
    size_t  i, n;

    for (i = 0, n = 0; i < s->n; i++) {
        n += us_scatter_again(&s->items[i]);
    }

    return n;
}
