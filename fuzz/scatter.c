
/*
 * What shards answer to a router, as bytes that nobody wrote.  An input is two
 * bytes, and pieces that a zero divides:
 *
 *     byte 0  bits 0 and 1: adds, look-ups, marks and the like by id, a list of
 *             ids; 2 and 3: columns of sites and times; 4 and 5: the map, 6 and
 *             7: the next one
 *     byte 1  bits 0 and 1: how many URLs, 1 to 4; by id, there is an id after
 *             them; 2: parts of one item; 3: the ends of replies are not read;
 *             4: what byte 0 does by id is an erasure
 *     pieces  replies, a piece for each part, in the order of the lanes; no
 *             piece: no reply
 *
 *   line      a line that is read lies within the text, has its columns, and is
 *             read so without what follows it, and not without its newline
 *   summary   one is a line
 *   sent      whatever the shards say, what they are sent are lines, each a
 *             URL of the slot of the item, or an id of the shard
 *   denied    an add goes to the owner of a slot with former owners if all have
 *             denied the URL by the same map, or one of them says it is due
 *   erased    if all owners of the slot have said so, each of them was sent the
 *             URL, or the id
 *   ends      three rounds are enough for a map, and then each item has an
 *             answer to what was asked
 *   id        is one of the shard that answered
 *   moved     what is tried again by another map was added by no shard, and no
 *             reply about it is missing
 */


#include "cluster/us_scatter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define FUZZ_ITEMS   6                /* a local one, 4 URLs, an id */
#define FUZZ_ROUNDS  3

#define FUZZ_ID      (((uint64_t) 1 << US_SHARD_SHIFT) + 7)

#define FUZZ_ANSWERS (1u << US_ANSWER_SEEN | 1u << US_ANSWER_SET              \
                      | 1u << US_ANSWER_CLEAR | 1u << US_ANSWER_CLAIMED       \
                      | 1u << US_ANSWER_DAMAGED)


typedef struct {
    us_scatter_t     s;
    us_str_t         replies;         /* that are left */
    size_t           limit;           /* of the answers of a part */
    int              cut;

    /* by item, of one map */

    unsigned         denied[FUZZ_ITEMS];
    unsigned         erased[FUZZ_ITEMS];   /* a bit for each shard */
    unsigned         due[FUZZ_ITEMS];      /* a bit for each shard */
    unsigned         final[FUZZ_ITEMS];    /* an add, or a hit, or lost */
    uint64_t         ids[FUZZ_ITEMS];      /* that were sent */
} fuzz_t;


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static const char *const  fuzz_slots[] = {
    "[\"0-4095\",0]", "[\"0-4095\",1,0]", "[\"0-4095\",2,1,0]",
    "[\"0-2047\",1],[\"2048-4095\",0,2]"
};

static us_map_t  *fuzz_maps[4];


static void
law(int holds, const char *name)
{
    if (!holds) {
        fprintf(stderr, "%s\n", name);
        abort();
    }
}


static void
make_maps(void)
{
    char      text[1024], err[256];
    unsigned  i;

    for (i = 0; i < 4 && fuzz_maps[i] == NULL; i++) {
        (void) snprintf(text, sizeof(text), "{\"cluster\":\"%032d\","
                        "\"version\":1,\"norm\":\"c/1\",\"key\":\"url\","
                        "\"shards\":{"
                        "\"0\":{\"uuid\":\"%032d\",\"nodes\":[\"a\"]},"
                        "\"1\":{\"uuid\":\"%032d\",\"nodes\":[\"b\"]},"
                        "\"2\":{\"uuid\":\"%032d\",\"nodes\":[\"c\"]}},"
                        "\"slots\":[%s]}", 1, 2, 3, 4, fuzz_slots[i]);

        fuzz_maps[i] = us_map_read(us_str_of(text), err, sizeof(err));
        law(fuzz_maps[i] != NULL, err);
    }
}


static unsigned
tabs(us_str_t line)
{
    size_t    i;
    unsigned  n;

    for (i = 0, n = 0; i < line.len; i++) {
        n += line.data[i] == '\t';
    }

    return n;
}


/* of a list of ids, or not */

static size_t
wire_line(us_str_t text, int list, us_wire_columns_t columns,
    us_wire_line_t *line)
{
    return list ? us_wire_list_line(text, columns, line)
                : us_wire_line(text, columns, line);
}


static size_t
read_line(us_str_t text, int list, us_wire_columns_t columns,
    us_wire_line_t *line)
{
    size_t          n;
    us_str_t        whole, cut;
    us_wire_line_t  again;

    n = wire_line(text, list, columns, line);

    if (n == 0) {
        return 0;
    }

    law(n <= text.len && text.data[n - 1] == '\n'
        && memchr(text.data, '\n', n) == text.data + n - 1, "line: end");
    law(line->status > US_ANSWER_NONE && line->status < US_ANSWERS,
        "line: status");
    law(line->text.data > text.data
        && line->text.data + line->text.len < text.data + n
        && memchr(line->text.data, '\t', line->text.len) == NULL,
        "line: text");

    whole = (us_str_t) { n, text.data };
    cut = (us_str_t) { n - 1, text.data };

    law(tabs(whole) == (list ? line->text.len == 1 && *line->text.data == '-'
                               ? 2u : 1u + columns.times
                             : 2u + columns.sites + columns.times),
        "line: columns");
    law(wire_line(whole, list, columns, &again) == n
        && again.status == line->status && again.site == line->site
        && again.id == line->id && again.time == line->time
        && us_str_compare(again.text, line->text) == 0, "line: alone");
    law(wire_line(cut, list, columns, &again) == 0, "line: cut");

    return n;
}


static void
summary(us_str_t text)
{
    us_wire_summary_t  s;

    if (us_wire_summary(text, &s)) {
        law(text.data[0] == '#'
            && memchr(text.data, '\n', text.len) == text.data + text.len - 1,
            "summary");
    }
}


/* what a shard is sent for an item */

static void
sent(fuzz_t *f, const us_lane_t *lane, uint32_t i)
{
    char                      id[32];
    size_t                    k;
    const us_owners_t        *owners;
    const us_scatter_item_t  *item;

    item = &f->s.items[i];
    owners = &f->s.map->slots[item->slot];

    for (k = 0; k < item->url.len; k++) {
        law(item->url.data[k] > ' ', "sent: a line");
    }

    law(i != 0 && item->stage != US_STAGE_DONE, "sent: to a shard");

    if (!lane->ask && (f->s.action == US_SCATTER_BY_ID
                       || (f->s.action == US_SCATTER_ERASE
                           && item->stage == US_STAGE_LAST)))
    {
        (void) snprintf(id, sizeof(id), "%" PRIu64, item->id);
        law(us_str_compare(item->url, us_str_of(id)) == 0, "sent: an id");
        law(item->id >> US_SHARD_SHIFT == f->s.map->shards[lane->shard].number,
            "sent: of the shard");
        f->ids[i] = item->id;
        return;
    }

    law(us_slot_of(f->s.map->key, item->url) == item->slot, "sent: the slot");

    if (owners->n > 1 && !lane->ask && f->s.action != US_SCATTER_ERASE) {
        law(f->s.action == US_SCATTER_ADD, "sent: a look-up once more");
        law(f->due[i] >> lane->shard & 1
            || (f->denied[i] == owners->n
                && lane->shard == owners->shards[0]), "denied");
    }
}


/* of the items from `at`, the first n are answered by these lines */

static void
count(fuzz_t *f, const us_lane_t *lane, size_t at, size_t n, us_str_t reply)
{
    int             list;
    size_t          i, len;
    uint32_t        item;
    us_wire_line_t  line;

    list = f->s.lists && !lane->ask;

    for (i = at; i < lane->at; i++) {
        item = lane->items[i];

        if (i - at >= n) {
            f->final[item] = 1;
            continue;
        }

        len = read_line(reply, list, f->s.columns, &line);
        law(len > 0, "count");
        law(lane->ask || f->s.action != US_SCATTER_BY_ID
            || line.id == US_WIRE_NO_ID || line.id == f->ids[item],
            "another id");
        reply.data += len;
        reply.len -= len;

        f->denied[item] += line.status == US_ANSWER_UNSEEN;
        f->erased[item] |= (line.status == US_ANSWER_ERASED) << lane->shard;
        f->due[item] |= (line.status == US_ANSWER_DUE) << lane->shard;
        f->final[item] |= line.status == US_ANSWER_NEW
                          || line.status == US_ANSWER_SEEN
                          || (line.status == US_ANSWER_DUE && !lane->ask);
    }
}


/* the next piece, or nothing */

static us_str_t
next_reply(fuzz_t *f)
{
    us_str_t        reply;
    const uint8_t  *end;

    reply = f->replies;
    end = memchr(reply.data, '\0', reply.len);
    reply.len = end ? (size_t) (end - reply.data) : reply.len;
    f->replies.data += reply.len + (end != NULL);
    f->replies.len -= reply.len + (end != NULL);

    return reply;
}


static void
answer(fuzz_t *f, us_lane_t *lane)
{
    size_t    i, n, at;
    us_str_t  reply = { 0, NULL };

    for (i = 0; i < lane->part; i++) {
        sent(f, lane, lane->items[lane->at + i]);
    }

    at = lane->at;
    n = 0;

    if (f->replies.len == 0) {
        us_scatter_failed(&f->s, lane);

    } else {
        reply = next_reply(f);
        n = f->cut ? us_scatter_reply_cut(&f->s, lane, reply)
                   : us_scatter_reply(&f->s, lane, reply);
    }

    law(lane->part == 0 && lane->at > at && (f->cut || n <= lane->at - at),
        "reply");
    count(f, lane, at, n, reply);
}


static void
rounds(fuzz_t *f)
{
    int        rc;
    size_t     n;
    unsigned   i;

    memset(f->denied, 0, sizeof(f->denied));
    memset(f->erased, 0, sizeof(f->erased));
    memset(f->due, 0, sizeof(f->due));
    memset(f->final, 0, sizeof(f->final));

    for (i = 0; (rc = us_scatter_round(&f->s)) == 1; i++) {
        law(i < FUZZ_ROUNDS, "rounds");

        for (n = 0; n < f->s.nlanes; n++) {
            while (us_scatter_part(&f->s, &f->s.lanes[n], f->limit)) {
                answer(f, &f->s.lanes[n]);
            }

            law(f->s.lanes[n].at == f->s.lanes[n].n, "lane");
        }
    }

    law(rc == 0, "memory");
}


/* whether the status is an answer to what was asked */

static int
answers(const us_scatter_t *s, us_answer_t status)
{
    unsigned  allowed;

    allowed = 1u << US_ANSWER_INVALID | 1u << US_ANSWER_REJECTED
              | 1u << US_ANSWER_UNAVAILABLE;

    if (s->action == US_SCATTER_BY_ID) {
        allowed |= FUZZ_ANSWERS | 1u << US_ANSWER_UNKNOWN
                   | 1u << US_ANSWER_DELETED;

    } else if (s->action == US_SCATTER_ERASE) {
        allowed |= 1u << US_ANSWER_ERASED | 1u << US_ANSWER_FULL
                   | 1u << US_ANSWER_UNKNOWN | 1u << US_ANSWER_DELETED;

    } else {
        allowed |= 1u << US_ANSWER_SEEN | 1u << US_ANSWER_DUE;
        allowed |= s->action == US_SCATTER_SEEN ? 1u << US_ANSWER_UNSEEN
                   : 1u << US_ANSWER_NEW | 1u << US_ANSWER_FULL
                     | 1u << US_ANSWER_REFUSED;
    }

    return allowed >> status & 1;
}


static void
ends(const us_scatter_t *s, const us_scatter_item_t *item)
{
    law(item->stage == US_STAGE_DONE, "ends: stage");
    law(answers(s, item->status), "ends: answer");
    law(us_map_shard(s->map, item->number) != -1, "ends: number");

    if (item->status == US_ANSWER_NEW || item->status == US_ANSWER_SEEN
        || item->status == US_ANSWER_DUE || item->status == US_ANSWER_SET
        || item->status == US_ANSWER_CLEAR || item->status == US_ANSWER_CLAIMED)
    {
        law(item->id >> US_SHARD_SHIFT == item->number, "id");
    }

    /* each byte is there */

    law(item->text.len == 0 || us_str_compare(item->text, item->text) == 0,
        "text");
}


/* a bit for each owner of the item's slot, former ones included */

static unsigned
owners_of(const us_scatter_t *s, const us_scatter_item_t *item)
{
    unsigned            i, bits;
    const us_owners_t  *owners;

    owners = &s->map->slots[item->slot];

    for (i = 0, bits = 0; i < owners->n; i++) {
        bits |= 1u << owners->shards[i];
    }

    return bits;
}


/* the items that data asks for, of which the first is the router's */

static void
begin(fuzz_t *f, const uint8_t *data)
{
    char                 url[32];
    unsigned             i;
    us_scatter_action_t  action;

    action = data[0] & 2 ? data[1] & 16 ? US_SCATTER_ERASE : US_SCATTER_BY_ID
             : data[0] & 1 ? US_SCATTER_SEEN : US_SCATTER_ADD;

    law(us_scatter_init(&f->s, fuzz_maps[data[0] >> 4 & 3], action) == 0,
        "memory");

    f->s.lists = action == US_SCATTER_BY_ID && (data[0] & 1);
    f->s.answers = action == US_SCATTER_ERASE
                   ? 1 << US_ANSWER_ERASED | 1 << US_ANSWER_FULL
                   : FUZZ_ANSWERS;
    f->s.columns.sites = data[0] >> 2 & 1;
    f->s.columns.times = data[0] >> 3 & 1;
    f->limit = data[1] & 4 ? 1 : 1 << 20;
    f->cut = data[1] >> 3 & 1;

    law(us_scatter_local(&f->s, US_ANSWER_INVALID, us_string("port")) == 0,
        "memory");

    for (i = 0; i <= (data[1] & 3u); i++) {
        (void) snprintf(url, sizeof(url), "http://%c/", (int) ('a' + i));
        law(us_scatter_url(&f->s, us_str_of(url)) == 0, "memory");
    }

    if (action == US_SCATTER_BY_ID || action == US_SCATTER_ERASE) {
        law(us_scatter_id(&f->s, FUZZ_ID) == 0, "memory");
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int     again;
    size_t  i, moved;
    fuzz_t  f;

    if (size < 2) {
        return 0;
    }

    make_maps();

    memset(&f, 0, sizeof(fuzz_t));
    f.replies = (us_str_t) { size - 2, data + 2 };
    summary(f.replies);

    begin(&f, data);
    rounds(&f);

    for (i = 1, moved = 0; i < f.s.n; i++) {
        ends(&f.s, &f.s.items[i]);
        again = f.s.items[i].status == US_ANSWER_UNAVAILABLE
                && f.s.items[i].moved && !f.s.items[i].lost;
        law(!again || !f.final[i], "moved");
        moved += again;
    }

    for (i = 1; i < f.s.n; i++) {
        law(f.s.items[i].status != US_ANSWER_ERASED || f.s.items[i].by_id
            || f.erased[i] == owners_of(&f.s, &f.s.items[i]), "erased");
    }

    law(us_scatter_moved(&f.s) == moved, "moved: how many");
    law(us_scatter_remap(&f.s, fuzz_maps[data[0] >> 6]) == 0, "memory");
    rounds(&f);

    for (i = 1; i < f.s.n; i++) {
        ends(&f.s, &f.s.items[i]);
    }

    law(f.s.items[0].status == US_ANSWER_INVALID
        && us_str_compare(f.s.items[0].text, us_string("port")) == 0, "local");
    us_scatter_free(&f.s);

    return 0;
}
