
/*
 * A batch divided among shards: what a shard's reply says, where each URL goes,
 * and what it is answered when shards have it, deny it, or say nothing.
 */


#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cluster/us_scatter.h"


#define TAG  ((uint64_t) 1 << US_SHARD_SHIFT)


static us_scatter_t  s;


static us_str_t
str(const char *text)
{
    return (us_str_t) { strlen(text), (const uint8_t *) text };
}


/* slots: the JSON of the member */

static us_map_t *
map_of(unsigned version, const char *slots)
{
    char       text[2048], err[256];
    us_map_t  *map;

    snprintf(text, sizeof(text), "{\"cluster\":\"%032d\",\"version\":%u,"
             "\"norm\":\"crawler/1\",\"key\":\"url\",\"shards\":{"
             "\"0\":{\"uuid\":\"%032d\",\"nodes\":[\"a\"]},"
             "\"1\":{\"uuid\":\"%032d\",\"nodes\":[\"b\"]},"
             "\"2\":{\"uuid\":\"%032d\",\"nodes\":[\"c\"]}},"
             "\"slots\":[%s]}", 1, version, 2, 3, 4, slots);

    map = us_map_read(str(text), err, sizeof(err));
    assert_non_null(map);

    return map;
}


/* the lane of a shard in this round; NULL: there is none */

static us_lane_t *
lane_of(unsigned shard, int ask)
{
    size_t  i;

    for (i = 0; i < s.nlanes; i++) {
        if (s.lanes[i].shard == shard && s.lanes[i].ask == ask) {
            return &s.lanes[i];
        }
    }

    return NULL;
}


/* the lane's only part, and its answer; NULL: none comes */

static void
answered(unsigned shard, int ask, const char *expected, const char *text)
{
    size_t      i, n;
    char        body[1024];
    us_str_t    url;
    us_lane_t  *lane;

    lane = lane_of(shard, ask);
    assert_non_null(lane);

    n = us_scatter_part(&s, lane, 1 << 20);
    assert_int_equal(n, strlen(expected));

    for (i = 0, n = 0; i < lane->part; i++) {
        url = s.items[lane->items[lane->at + i]].url;
        n += sprintf(body + n, "%.*s\n", (int) url.len, url.data);
    }

    assert_string_equal(body, expected);

    if (text) {
        us_scatter_reply(&s, lane, str(text));

    } else {
        us_scatter_failed(&s, lane);
    }

    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 0);
}


static void
item_is(size_t i, us_answer_t status, unsigned number, const char *url)
{
    assert_int_equal(s.items[i].status, status);
    assert_int_equal(s.items[i].number, number);

    if (url) {
        assert_int_equal(s.items[i].text.len, strlen(url));
        assert_memory_equal(s.items[i].text.data, url, strlen(url));
    }
}


static void
add(const char *url)
{
    assert_int_equal(us_scatter_url(&s, str(url)), 0);
}


static void
lines(void **state)
{
    size_t             i, len;
    us_wire_line_t     line;
    us_wire_columns_t  none = { 0 }, all = { .sites = 1, .times = 1 };

    static const char  whole[] = "7\tnew\thttp://a/\tsite-new\t99\n";

    static const char *const  bad[] = {
        "", "\n", "7\n", "7\tnew\n", "x\tnew\tu\n", "7\told\tu\n",
        "-1\tnew\tu\n", "\tnew\tu\n", "7\t\tu\n", "7\tnew\tu\tmore\n",
        "99999999999999999999\tnew\tu\n"
    };

    assert_int_equal(us_wire_line(str(whole), all, &line), strlen(whole));
    assert_int_equal(line.id, 7);
    assert_int_equal(line.status, US_ANSWER_NEW);
    assert_int_equal(line.site, US_WIRE_SITE_NEW);
    assert_int_equal(line.time, 99);
    assert_int_equal(line.text.len, 9);

    for (len = 0; len < strlen(whole); len++) {
        assert_int_equal(us_wire_line((us_str_t) { len,
                                      (const uint8_t *) whole }, all, &line),
                         0);
    }

    assert_int_equal(us_wire_line(str("-\tunavailable\tmoved\nrest"), none,
                                  &line), 20);
    assert_int_equal(line.id, US_WIRE_NO_ID);
    assert_int_equal(line.status, US_ANSWER_UNAVAILABLE);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(us_wire_line(str(bad[i]), none, &line), 0);
    }

    assert_int_equal(us_wire_line(str("7\tseen\t=\n"), none, &line), 9);
    assert_int_equal(line.text.len, 1);
    assert_int_equal(us_wire_line(str("7\tseen\t=\t-\t-\n"), all, &line), 13);
    assert_int_equal(us_wire_line(str("7\tseen\t=u\n"), none, &line), 10);
    assert_int_equal(line.text.len, 2);
    assert_int_equal(us_wire_line(str("7\tseen\t="), none, &line), 0);
    assert_int_equal(us_wire_line(str("7\tseen\t=\t"), none, &line), 0);
    assert_int_equal(us_wire_line(str("7\tnew\tu\t-\n"), all, &line), 0);
    assert_int_equal(us_wire_line(str("7\tnew\tu\tsite\t-\n"), all, &line), 0);
}


/* how a call has ended; asked again, and unsure; the next one's node after 1 */

static void
ends(void **state)
{
    size_t         i;
    us_wire_end_t  end;

    static const struct {
        unsigned     status, code;
        const char  *text;
        const char  *how;             /* reads, sent, refused */
        int          again, unsure;
        unsigned     node;            /* of 1, begun at 5 */
    } rows[] = {
        { 200, 200, "", " s ",  0, 1, 1 },
        { 200, 200, "", "rs ",  0, 0, 1 },
        { 0,   0,   "", "   ",  1, 0, 2 },
        { 0,   0,   "", " s ",  0, 1, 2 },
        { 0,   0,   "", "rs ",  1, 0, 2 },
        { 0,   200, "", " s ",  0, 1, 2 },
        { 503, 503, "", " sr",  1, 0, 5 },
        { 0,   503, "", " sr",  1, 0, 5 },
        { 503, 503, "", " s ",  0, 1, 5 },
        { 503, 503, "", "rs ",  1, 0, 5 },
        { 500, 500, "", "rs ",  0, 0, 5 },
        { 507, 507, "", " s ",  0, 0, 5 },
        { 400, 400, "", " s ",  0, 0, 1 },
        { 408, 408, "", " s ",  0, 1, 1 },
        { 413, 413, "", " s ",  0, 1, 1 },
        { 404, 404, "", " s ",  0, 0, 1 },
        { 404, 404, "{\"results\":[", " s ",  0, 1, 1 },
        { 0,   404, "", " s ",  0, 1, 2 },
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        end.status = rows[i].status;
        end.code = rows[i].code;
        end.text = str(rows[i].text);
        end.reads = rows[i].how[0] == 'r';
        end.sent = rows[i].how[1] == 's';
        end.refused = rows[i].how[2] == 'r';

        if (us_wire_again(&end) != rows[i].again
            || us_wire_unsure(&end) != rows[i].unsure
            || us_wire_node(&end, 1, 5) != rows[i].node)
        {
            fail_msg("row %zu: again %d, unsure %d, node %u", i,
                     us_wire_again(&end), us_wire_unsure(&end),
                     us_wire_node(&end, 1, 5));
        }
    }
}


static void
summaries(void **state)
{
    size_t             i;
    us_wire_summary_t  last;

    static const char *const  bad[] = {
        "", "#\n", "# next_id=7 epoch=1", "next_id=7 epoch=1\n",
        "# next_id=7\n", "# next_id=x epoch=1\n", "# next_id=7 epoch=-\n",
        "# next_id=7 epoch=1\n\n", "# next_id=7 epoch=1 more\n",
        "# next_id=7 x=1 epoch=1\n", "# new=1\n next_id=7 epoch=1\n",
        "# erasure=x next_id=7 epoch=1\n", "# next_id=7\tepoch=1\n"
    };

    assert_true(us_wire_summary(str("# new=1 seen=0 next_id=7 epoch=12\n"),
                                &last));
    assert_int_equal(last.next_id, 7);
    assert_int_equal(last.epoch, 12);
    assert_int_equal(last.erasure, 0);

    assert_true(us_wire_summary(str("# next_id=- epoch=12\n"), &last));
    assert_int_equal(last.next_id, US_WIRE_NO_ID);

    assert_true(us_wire_summary(str("# erased=1 erasure=70 next_id=7 "
                                    "epoch=1\n"), &last));
    assert_int_equal(last.erasure, 70);
    assert_true(us_wire_summary(str("# erasure=- next_id=7 epoch=1\n"),
                                &last));
    assert_int_equal(last.erasure, 0);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(us_wire_summary(str(bad[i]), &last));
    }
}


/* URLs of one slot are enough: the map makes the difference */

static void
begin(us_map_t *map, us_scatter_action_t action)
{
    assert_int_equal(us_scatter_init(&s, map, action), 0);
}


static void
end(us_map_t *map)
{
    us_scatter_free(&s);
    us_map_free(map);
}


/* "=" is the URL that was sent, if that was asked for */

static void
same(void **state)
{
    us_map_t  *map;

    map = map_of(2, "[\"0-4095\",1,0]");
    begin(map, US_SCATTER_ADD);
    s.columns.same = 1;

    add("http://a/");
    add("http://b/");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 1, "http://a/\nhttp://b/\n",
             "1099511627776\tseen\t=\n-\tunseen\t=\n");

    /* the former owner is asked only for what the owner has not */

    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 1, "http://b/\n", "-\tunseen\thttp://www.b/\n");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 0, "http://www.b/\n", "1099511627777\tnew\t=\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_SEEN, 1, "http://a/");
    item_is(1, US_ANSWER_NEW, 1, "http://www.b/");

    end(map);

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_SEEN);
    add("http://a/");
    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 0, "http://a/\n", "1099511627776\tseen\t=\n");
    item_is(0, US_ANSWER_SEEN, 1, "=");

    end(map);
}


static void
direct(void **state)
{
    us_map_t  *map;

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_ADD);

    add("http://a/");
    assert_int_equal(us_scatter_local(&s, US_ANSWER_INVALID, str("port")), 0);
    assert_int_equal(us_scatter_ref(&s, str("7")), 0);
    add("http://b/");
    add("http://a/");

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);

    answered(1, 0, "http://a/\nhttp://b/\nhttp://a/\n",
             "1099511627776\tnew\thttp://www.a/\n"
             "-\trejected\tdepth\n"
             "1099511627776\tseen\thttp://www.a/\n"
             "# new=1 next_id=1099511627776 epoch=3\n");

    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_NEW, 1, "http://www.a/");
    assert_int_equal(s.items[0].id, TAG);
    item_is(1, US_ANSWER_INVALID, 0, "port");
    assert_memory_equal(s.items[1].ref.data, "7", 1);
    item_is(2, US_ANSWER_REJECTED, 1, NULL);
    assert_memory_equal(s.items[2].text.data, "depth", 5);
    item_is(3, US_ANSWER_SEEN, 1, "http://www.a/");
    assert_true(s.shards[1].answered);
    assert_int_equal(s.shards[1].first.next_id, TAG);
    assert_int_equal(s.shards[1].first.epoch, 3);
    assert_false(s.shards[0].answered);

    end(map);
}


/* what has come counts; an id of another shard is no answer */

static void
broken(void **state)
{
    us_map_t  *map;

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_ADD);

    add("http://a/");
    add("http://b/");
    add("http://c/");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 0, "http://a/\nhttp://b/\nhttp://c/\n",
             "1099511627776\tnew\thttp://a/\n"
             "7\tnew\thttp://b/\n"
             "1099511627777\tnew\thttp://c/\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_NEW, 1, "http://a/");
    item_is(1, US_ANSWER_UNAVAILABLE, 1, NULL);
    item_is(2, US_ANSWER_UNAVAILABLE, 1, NULL);
    assert_false(s.shards[1].answered);
    assert_int_equal(us_scatter_moved(&s), 0);

    end(map);
}


/* what a shard may have done without an answer: its part, and no other item */

static void
unsure(void **state)
{
    size_t      i;
    us_map_t   *map;
    us_lane_t  *lane;

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_ADD);

    for (i = 0; i < US_SCATTER_ITEMS + 1; i++) {
        add("http://a/");
    }

    assert_int_equal(us_scatter_round(&s), 1);
    lane = lane_of(1, 0);
    assert_non_null(lane);

    us_scatter_part(&s, lane, 1 << 30);
    assert_int_equal(lane->part, US_SCATTER_ITEMS);
    lane->unsure = 1;
    us_scatter_reply(&s, lane, str("1099511627776\tnew\thttp://a/\n"));

    us_scatter_part(&s, lane, 1 << 30);
    assert_int_equal(lane->part, 1);
    us_scatter_failed(&s, lane);

    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_NEW, 1, "http://a/");
    assert_false(s.items[0].unsure);

    for (i = 1; i < US_SCATTER_ITEMS + 1; i++) {
        item_is(i, US_ANSWER_UNAVAILABLE, 1, NULL);
        assert_int_equal(s.items[i].unsure, i < US_SCATTER_ITEMS);
    }

    end(map);
}


/* parts one after another, each as large as its answers may be */

static void
parts(void **state)
{
    size_t      i, n, limit;
    char        url[32];
    us_map_t   *map;
    us_lane_t  *lane;

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_SEEN);

    for (i = 0; i < 20000; i++) {
        sprintf(url, "http://a/%06zu", i);
        add(url);
    }

    assert_int_equal(us_scatter_round(&s), 1);
    lane = &s.lanes[0];

    /* five URLs of 15 bytes */

    limit = US_SCATTER_SUMMARY + 5 * (15 + US_SCATTER_ANSWER);

    assert_int_equal(us_scatter_part(&s, lane, limit), 5 * 16);
    us_scatter_failed(&s, lane);
    assert_int_equal(us_scatter_part(&s, lane, limit - 1), 4 * 16);
    us_scatter_failed(&s, lane);
    assert_int_equal(us_scatter_part(&s, lane, 0), 16);
    us_scatter_failed(&s, lane);

    for (n = 0; us_scatter_part(&s, lane, (size_t) -1); n++) {
        assert_int_equal(lane->at, 10 + n * 8192);
        us_scatter_failed(&s, lane);
    }

    assert_int_equal(n, 3);
    assert_int_equal(lane->at, 20000);

    end(map);
}


/*
 * an add with former owners: they are asked what the owner has denied, and then
 * the owner is sent the add
 */

#define ASKED  "[\"0-4095\",2,1,0]"


static void
begin_asked(us_map_t *map, us_scatter_action_t action, int sites)
{
    begin(map, action);
    s.columns.sites = sites;
    add("http://a/");
    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);
}


/* the answer of the owner, 2, after which the others are asked */

static void
owner(const char *text)
{
    answered(2, 1, "http://a/\n", text);
    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 2);
}


static void
denied_by_all(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_asked(map, US_SCATTER_ADD, 1);

    owner("-\tunseen\thttp://a/\tsite-new\n");
    answered(0, 1, "http://a/\n", "-\tunseen\thttp://a/\tsite-new\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://www.a/\tsite-known\n");

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);

    /* as the former owner spells the site, which it knows */

    answered(2, 0, "http://www.a/\n",
             "2199023255552\tnew\thttp://www.a/\tsite-new\n");

    assert_int_equal(us_scatter_round(&s), 0);
    item_is(0, US_ANSWER_NEW, 2, "http://www.a/");
    assert_int_equal(s.items[0].site, US_WIRE_SITE_KNOWN);

    end(map);
}


/* what could not be the URL is not sent in its place */

static void
not_a_spelling(void **state)
{
    size_t     i;
    char       line[64];
    us_map_t  *map;

    static const char *const  bad[] = {
        "", "a/", "ftp://a/", "http://b/", "http:// @a/",
        "http://\r@a/", "http://a/ x"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        map = map_of(1, ASKED);
        begin_asked(map, US_SCATTER_ADD, 0);

        sprintf(line, "-\tunseen\t%s\n", bad[i]);

        owner("-\tunseen\thttp://a/\n");
        answered(0, 1, "http://a/\n", line);
        answered(1, 1, "http://a/\n", line);

        assert_int_equal(us_scatter_round(&s), 1);
        answered(2, 0, "http://a/\n", "2199023255552\tnew\thttp://a/\n");
        assert_int_equal(us_scatter_round(&s), 0);

        end(map);
    }
}


/* each status is an answer to some questions only */

static void
other_questions(void **state)
{
    size_t     i, k;
    char       line[64];
    us_map_t  *map;

    static const struct {
        us_answer_t  status;
        const char       *word;
        int               of[3];      /* /add, /seen, and a former owner's */
    } words[] = {
        { US_ANSWER_NEW, "1099511627776\tnew", { 1, 0, 0 } },
        { US_ANSWER_SEEN, "1099511627776\tseen", { 1, 1, 1 } },
        { US_ANSWER_DUE, "1099511627776\tdue", { 1, 1, 1 } },
        { US_ANSWER_UNSEEN, "-\tunseen", { 0, 1, 1 } },
        { US_ANSWER_FULL, "-\tfull", { 1, 0, 0 } },
        { US_ANSWER_INVALID, "-\tinvalid", { 1, 1, 1 } },
        { US_ANSWER_REJECTED, "-\trejected", { 1, 1, 1 } },
        { US_ANSWER_REFUSED, "-\trefused", { 1, 0, 1 } },
        { US_ANSWER_UNKNOWN, "-\tunknown", { 0, 0, 0 } }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (k = 0; k < 3; k++) {
            map = map_of(1, k == 2 ? "[\"0-4095\",0,1]" : "[\"0-4095\",1]");
            begin(map, k == 1 ? US_SCATTER_SEEN : US_SCATTER_ADD);
            add("http://a/");
            assert_int_equal(us_scatter_round(&s), 1);

            if (k == 2) {
                answered(0, 1, "http://a/\n", "-\tunseen\thttp://a/\n");
                assert_int_equal(us_scatter_round(&s), 1);
            }

            sprintf(line, "%s\thttp://a/\n", words[i].word);
            answered(1, k == 2, "http://a/\n", line);

            assert_int_equal(s.items[0].status == words[i].status,
                             words[i].of[k]);
            assert_int_equal(s.items[0].lost, !words[i].of[k]);

            end(map);
        }
    }
}


/* a former owner has erased it: nobody adds it, whatever the others say */

static void
refused_by_one(void **state)
{
    size_t     i;
    us_map_t  *map;

    static const char *const  others[] = {
        "-\tunseen\thttp://a/\n", "-\tunavailable\tmoved\n", NULL,
        "1099511627776\tseen\thttp://a/\n"
    };

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        map = map_of(1, ASKED);
        begin_asked(map, US_SCATTER_ADD, 0);

        owner("-\tunseen\thttp://a/\n");

        if (i & 1) {
            answered(1, 1, "http://a/\n", others[i]);
        }

        answered(0, 1, "http://a/\n", "-\trefused\terased\n");

        if (!(i & 1)) {
            answered(1, 1, "http://a/\n", others[i]);
        }

        assert_int_equal(us_scatter_round(&s), 0);
        assert_int_equal(s.items[0].status, i == 3 ? US_ANSWER_SEEN
                                                   : US_ANSWER_REFUSED);

        /* nobody adds it: it is not there */

        us_scatter_free(&s);
        begin_asked(map, US_SCATTER_SEEN, 0);

        owner(NULL);
        answered(0, 1, "http://a/\n", "-\trefused\terased\n");
        answered(1, 1, "http://a/\n", "-\tunseen\thttp://a/\n");
        assert_int_equal(us_scatter_round(&s), 0);
        item_is(0, US_ANSWER_UNAVAILABLE, 2, NULL);

        us_scatter_free(&s);
        begin_asked(map, US_SCATTER_SEEN, 0);

        owner("-\tunseen\thttp://a/\n");
        answered(0, 1, "http://a/\n", "-\trefused\terased\n");
        answered(1, 1, "http://a/\n", "-\trefused\terased\n");
        assert_int_equal(us_scatter_round(&s), 0);
        item_is(0, US_ANSWER_UNSEEN, 2, "http://a/");

        end(map);
    }
}


/* the longest reason is one: a rule whose name has 64 bytes */

static void
long_reason(void **state)
{
    size_t     n;
    char       line[160];
    us_map_t  *map;

    map = map_of(1, "[\"0-4095\",1]");
    begin(map, US_SCATTER_ADD);
    add("http://a/");
    add("http://b/");
    assert_int_equal(us_scatter_round(&s), 1);

    n = sprintf(line, "-\trejected\trule:%064d\n", 0);
    assert_in_range(n, 0, strlen("http://a/") + US_SCATTER_ANSWER);
    strcat(line, "1099511627776\tnew\thttp://b/\n");
    answered(1, 0, "http://a/\nhttp://b/\n", line);

    item_is(0, US_ANSWER_REJECTED, 1, NULL);
    item_is(1, US_ANSWER_NEW, 1, "http://b/");

    end(map);
}


static void
had_by_one(void **state)
{
    unsigned   who, i;
    us_map_t  *map;
    char       hit[64];

    for (who = 0; who < 3; who++) {
        map = map_of(1, ASKED);
        begin_asked(map, who == 1 ? US_SCATTER_SEEN : US_SCATTER_ADD, 0);

        sprintf(hit, "%llu\tseen\thttp://www.a/\n",
                (unsigned long long) (who * TAG + 5));

        /* nobody else needs to answer, or is asked if the owner has it */

        if (who == 2) {
            answered(2, 1, "http://a/\n", hit);

        } else {
            owner(NULL);

            for (i = 0; i < 2; i++) {
                answered(i, 1, "http://a/\n", i == who ? hit : NULL);
            }
        }

        assert_int_equal(us_scatter_round(&s), 0);
        item_is(0, US_ANSWER_SEEN, who, "http://www.a/");
        assert_int_equal(s.items[0].id, who * TAG + 5);

        end(map);
    }
}


static void
one_says_nothing(void **state)
{
    unsigned   who, i;
    us_map_t  *map;

    for (who = 0; who < 3; who++) {
        map = map_of(1, ASKED);
        begin_asked(map, US_SCATTER_ADD, 0);

        owner(who == 2 ? NULL : "-\tunseen\thttp://a/\n");

        for (i = 0; i < 2; i++) {
            answered(i, 1, "http://a/\n",
                     i == who ? NULL : "-\tunseen\thttp://a/\n");
        }

        assert_int_equal(us_scatter_round(&s), 0);
        item_is(0, US_ANSWER_UNAVAILABLE, who, NULL);
        assert_int_equal(us_scatter_moved(&s), 0);

        end(map);
    }
}


static void
seen_denied(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_asked(map, US_SCATTER_SEEN, 0);

    owner("-\tunseen\thttp://a/\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://www.a/\n");
    answered(0, 1, "http://a/\n", "-\tunseen\thttp://www.a/\n");

    assert_int_equal(us_scatter_round(&s), 0);
    assert_int_equal(s.items[0].status, US_ANSWER_UNSEEN);

    /* the number is that of the owner, whoever was first */

    item_is(0, US_ANSWER_UNSEEN, 2, "http://www.a/");

    end(map);
}


/* no former owner knows the site: as the owner spells it */

static void
seen_denied_by_owner(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_asked(map, US_SCATTER_SEEN, 0);

    owner("-\tunseen\thttp://www.a/\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://a/\n");
    answered(0, 1, "http://a/\n", "-\tunseen\t=\n");

    assert_int_equal(us_scatter_round(&s), 0);
    item_is(0, US_ANSWER_UNSEEN, 2, "http://www.a/");

    end(map);
}


/* a shard does not own the URL: another map, and once more */

static void
moved(void **state)
{
    us_map_t  *map, *next;

    map = map_of(1, "[\"0-4095\",0]");
    next = map_of(2, "[\"0-4095\",2,0]");

    begin(map, US_SCATTER_ADD);
    add("http://a/");
    add("http://b/");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 0, "http://a/\nhttp://b/\n",
             "7\tseen\thttp://a/\n-\tunavailable\tmoved\n"
             "# next_id=9 epoch=1\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(1, US_ANSWER_UNAVAILABLE, 0, NULL);
    assert_int_equal(us_scatter_moved(&s), 1);

    assert_int_equal(us_scatter_remap(&s, next), 0);
    assert_int_equal(us_scatter_moved(&s), 0);
    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);

    answered(2, 1, "http://b/\n", "-\tunseen\thttp://b/\n");
    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 1, "http://b/\n", "-\tunseen\thttp://b/\n");
    assert_int_equal(us_scatter_round(&s), 1);
    answered(2, 0, "http://b/\n", "2199023255552\tnew\thttp://b/\n"
                                  "# next_id=2199023255552 epoch=4\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_SEEN, 0, "http://a/");
    item_is(1, US_ANSWER_NEW, 2, "http://b/");
    assert_int_equal(s.shards[0].first.next_id, 9);
    assert_int_equal(s.shards[2].first.epoch, 4);

    us_map_free(map);
    end(next);
}


/* what shards of the map before know of the site is forgotten */

static void
moved_and_known(void **state)
{
    us_map_t  *map, *next;

    map = map_of(1, ASKED);
    next = map_of(2, ASKED);
    begin_asked(map, US_SCATTER_ADD, 1);

    owner("-\tunseen\thttp://a/\tsite-new\n");
    answered(0, 1, "http://a/\n", "-\tunavailable\tmoved\t-\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://www.a/\tsite-known\n");

    assert_int_equal(us_scatter_round(&s), 0);
    assert_int_equal(us_scatter_moved(&s), 1);
    assert_int_equal(us_scatter_remap(&s, next), 0);
    assert_int_equal(us_scatter_round(&s), 1);

    owner("-\tunseen\thttp://b/\tsite-new\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://a/\tsite-new\n");
    answered(0, 1, "http://a/\n", "-\tunseen\thttp://a/\tsite-new\n");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(2, 0, "http://a/\n",
             "2199023255552\tnew\thttp://a/\tsite-new\n");
    assert_int_equal(us_scatter_round(&s), 0);
    item_is(0, US_ANSWER_NEW, 2, "http://a/");
    assert_int_equal(s.items[0].site, US_WIRE_SITE_NEW);

    us_map_free(map);
    end(next);
}


/* it is not tried again if a shard may have done it */

static void
moved_or_lost(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_asked(map, US_SCATTER_ADD, 0);

    owner("-\tunseen\thttp://a/\n");
    answered(0, 1, "http://a/\n", "-\tunavailable\tmoved\n");
    answered(1, 1, "http://a/\n", NULL);

    assert_int_equal(us_scatter_round(&s), 0);
    assert_int_equal(s.items[0].status, US_ANSWER_UNAVAILABLE);
    assert_int_equal(us_scatter_moved(&s), 0);

    us_scatter_free(&s);
    begin_asked(map, US_SCATTER_ADD, 0);

    owner("-\tunavailable\tmoved\n");
    answered(0, 1, "http://a/\n", "-\tunseen\thttp://a/\n");
    answered(1, 1, "http://a/\n", "-\tunseen\thttp://a/\n");

    assert_int_equal(us_scatter_round(&s), 0);
    assert_int_equal(s.items[0].status, US_ANSWER_UNAVAILABLE);
    assert_int_equal(us_scatter_moved(&s), 1);

    end(map);
}


/* ids go to their shards; URLs are looked up, and then they have ids */

static void
begin_by_id(us_map_t *map)
{
    begin(map, US_SCATTER_BY_ID);
    s.answers = 1 << US_ANSWER_SET;
}


static void
by_id(void **state)
{
    us_map_t  *map;

    map = map_of(1, "[\"0-4095\",1]");
    begin_by_id(map);

    assert_int_equal(us_scatter_id(&s, TAG + 7), 0);
    add("http://a/");
    assert_int_equal(us_scatter_id(&s, 9), 0);
    add("http://b/");
    assert_int_equal(us_scatter_id(&s, 3 * TAG), 0);

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 3);

    answered(0, 0, "9\n", "-\tunknown\t-\n# next_id=0 epoch=1\n");
    answered(1, 0, "1099511627783\n", "1099511627783\tset\thttp://c/\n");
    answered(1, 1, "http://a/\nhttp://b/\n",
             "1099511627777\tseen\thttp://www.a/\n-\tunseen\thttp://b/\n");

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);
    answered(1, 0, "1099511627777\n", "1099511627777\tset\t-\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_SET, 1, "http://c/");
    assert_int_equal(s.items[0].id, TAG + 7);
    item_is(1, US_ANSWER_SET, 1, "http://www.a/");
    assert_int_equal(s.items[1].id, TAG + 1);
    item_is(2, US_ANSWER_UNKNOWN, 0, NULL);
    assert_int_equal(s.items[2].id, US_WIRE_NO_ID);
    item_is(3, US_ANSWER_UNKNOWN, 1, "http://b/");

    /* a shard that is not in the map, which may be old */

    item_is(4, US_ANSWER_UNAVAILABLE, 3, NULL);
    assert_int_equal(s.items[4].id, US_WIRE_NO_ID);
    assert_int_equal(us_scatter_moved(&s), 0);

    end(map);
}


/* a former owner has the URL, or does not answer */

static void
by_id_asked(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_by_id(map);

    add("http://a/");
    add("http://b/");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(2, 1, "http://a/\nhttp://b/\n",
             "-\tunseen\thttp://a/\n-\tunseen\thttp://b/\n");
    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 1, "http://a/\nhttp://b/\n",
             "7\tseen\thttp://a/\n-\tunseen\thttp://b/\n");
    answered(1, 1, "http://a/\nhttp://b/\n", NULL);

    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 0, "7\n", "7\tdeleted\t-\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_DELETED, 0, "http://a/");
    item_is(1, US_ANSWER_UNAVAILABLE, 1, NULL);

    end(map);
}


/* what is not about this id, or does not answer the question, is no answer */

static void
by_id_other(void **state)
{
    size_t     i;
    us_map_t  *map;

    static const char *const  bad[] = {
        "1099511627778\tset\thttp://c/\n", "-\tset\thttp://c/\n",
        "1099511627777\tclear\thttp://c/\n",
        "1099511627777\tseen\thttp://c/\n", "-\tdeleted\t-\n",
        "1099511627777\tset\n", ""
    };

    map = map_of(1, "[\"0-4095\",1]");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin_by_id(map);
        assert_int_equal(us_scatter_id(&s, TAG + 1), 0);

        assert_int_equal(us_scatter_round(&s), 1);
        answered(1, 0, "1099511627777\n", bad[i]);
        assert_int_equal(us_scatter_round(&s), 0);

        item_is(0, US_ANSWER_UNAVAILABLE, 1, NULL);
        us_scatter_free(&s);
    }

    us_map_free(map);
}


/* all owners erase a URL at once; an id's shard first, which has its URL */

static void
begin_erase(us_map_t *map)
{
    begin(map, US_SCATTER_ERASE);
    s.answers = 1 << US_ANSWER_ERASED | 1 << US_ANSWER_FULL;
}


static void
erased(void **state)
{
    us_map_t  *map;

    map = map_of(1, ASKED);
    begin_erase(map);

    add("http://a/");
    assert_int_equal(us_scatter_id(&s, TAG + 7), 0);
    assert_int_equal(us_scatter_id(&s, 9), 0);
    add("http://b/");
    add("http://d/");

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 3);
    answered(0, 0, "http://a/\n9\nhttp://b/\nhttp://d/\n",
             "7\terased\thttp://www.a/\n9\tdeleted\t-\n"
             "-\terased\thttp://b/\n-\terased\thttp://d/\n"
             "# erasure=3 next_id=9 epoch=1\n");
    answered(1, 0, "http://a/\n1099511627783\nhttp://b/\nhttp://d/\n",
             "-\terased\thttp://a/\n1099511627783\terased\thttp://c/\n"
             "-\terased\thttp://b/\n-\terased\thttp://d/\n"
             "# erasure=- next_id=9 epoch=1\n");
    answered(2, 0, "http://a/\nhttp://b/\nhttp://d/\n",
             "-\terased\thttp://a/\n-\tfull\thttp://b/\n"
             "-\terased\thttp://d/\n");

    assert_int_equal(s.shards[0].erasure, 3);
    assert_int_equal(s.shards[1].erasure, 0);

    /* what the id had, to the others */

    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 2);
    answered(0, 0, "http://c/\n", "-\terased\thttp://c/\n");
    answered(2, 0, "http://c/\n", "-\terased\thttp://c/\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_ERASED, 0, "http://www.a/");
    assert_int_equal(s.items[0].id, 7);
    item_is(1, US_ANSWER_ERASED, 1, NULL);
    assert_int_equal(s.items[1].id, TAG + 7);
    assert_int_equal(s.items[1].text.len, 0);
    item_is(2, US_ANSWER_DELETED, 0, NULL);

    /* not had by any: whoever answers first, the numbers of the owner count */

    item_is(3, US_ANSWER_FULL, 2, NULL);
    item_is(4, US_ANSWER_ERASED, 2, "http://d/");
    assert_int_equal(s.items[4].id, US_WIRE_NO_ID);

    end(map);
}


/* all of them have to, under one map */

static void
erased_not(void **state)
{
    us_map_t  *map, *next;

    map = map_of(1, ASKED);
    next = map_of(2, "[\"0-4095\",1]");
    begin_erase(map);

    add("http://a/");
    assert_int_equal(us_scatter_id(&s, 7), 0);
    assert_int_equal(us_scatter_round(&s), 1);
    answered(0, 0, "http://a/\n7\n",
             "7\terased\thttp://a/\n7\terased\thttp://b/\n");
    answered(1, 0, "http://a/\n", NULL);
    answered(2, 0, "http://a/\n", "-\terased\thttp://a/\n");

    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 0, "http://b/\n", "-\terased\thttp://b/\n");
    answered(2, 0, "http://b/\n", "-\tunavailable\tmoved\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_UNAVAILABLE, 1, NULL);
    item_is(1, US_ANSWER_UNAVAILABLE, 0, NULL);

    /* what has moved is sent to the owners of another map */

    assert_int_equal(us_scatter_moved(&s), 1);
    assert_int_equal(us_scatter_remap(&s, next), 0);
    assert_int_equal(us_scatter_round(&s), 1);
    assert_int_equal(s.nlanes, 1);
    answered(1, 0, "http://b/\n", "-\terased\thttp://b/\n");
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(1, US_ANSWER_ERASED, 0, NULL);
    assert_int_equal(s.items[1].id, 7);

    us_scatter_free(&s);
    begin_erase(next);

    /* an id of another shard, another word */

    add("http://a/");
    add("http://b/");
    assert_int_equal(us_scatter_round(&s), 1);
    answered(1, 0, "http://a/\nhttp://b/\n",
             "1099511627783\terased\thttp://a/\n7\terased\thttp://b/\n");
    assert_int_equal(us_scatter_round(&s), 0);
    item_is(0, US_ANSWER_ERASED, 1, "http://a/");
    item_is(1, US_ANSWER_UNAVAILABLE, 1, NULL);

    us_scatter_free(&s);
    us_map_free(map);
    us_map_free(next);
}


/*
 * Whatever word a shard answers, an item that has no answer is UNAVAILABLE: the
 * reply of a router to a batch without any answer is made from such an item.
 */

static void
words(void **state)
{
    char                 text[64];
    unsigned             a;
    us_map_t            *map;
    us_answer_t          status;
    us_scatter_action_t  action;

    map = map_of(1, "[\"0-4095\",1]");

    for (action = US_SCATTER_ADD; action <= US_SCATTER_ERASE; action++) {
        for (a = 0; a < US_ANSWERS; a++) {
            begin(map, action);

            if (action == US_SCATTER_BY_ID) {
                s.answers = 1 << US_ANSWER_SET;
                assert_int_equal(us_scatter_id(&s, TAG), 0);

            } else {
                add("http://a/");
            }

            snprintf(text, sizeof(text), "1099511627776\t%.*s\thttp://a/\n",
                     (int) us_answer_words[a].len, us_answer_words[a].data);

            assert_int_equal(us_scatter_round(&s), 1);
            answered(1, 0, action == US_SCATTER_BY_ID ? "1099511627776\n"
                                                      : "http://a/\n", text);
            assert_int_equal(us_scatter_round(&s), 0);

            status = s.items[0].status;
            assert_true(status == US_ANSWER_UNAVAILABLE
                        || (status == a && a != US_ANSWER_NONE
                            && a != US_ANSWER_DAMAGED));
            us_scatter_free(&s);
        }
    }

    us_map_free(map);
}


static void
list_lines(void **state)
{
    size_t             i;
    us_wire_line_t     line;
    uint64_t           next;
    us_wire_columns_t  none = { 0 }, times = { .times = 1 };
    us_wire_columns_t  urls = { .urls = 1 };
    us_wire_columns_t  both = { .urls = 1, .times = 1 };

    static const char *const  bad[] = {
        "", "\n", "7\n", "-\thttp://a/\n", "7\t-\n", "7\t-\tx\n",
        "7\thttp://a/\t9\n", "7\thttp://a/", "7\t-\tdeleted\t9\n"
    };

    assert_int_equal(us_wire_list_line(str("7\thttp://a/\n8"), none, &line),
                     12);
    assert_int_equal(line.id, 7);
    assert_int_equal(line.status, US_ANSWER_SEEN);
    assert_int_equal(line.text.len, 9);

    assert_int_equal(us_wire_list_line(str("7\t-\tdamaged\n"), times, &line),
                     12);
    assert_int_equal(line.status, US_ANSWER_DAMAGED);

    assert_int_equal(us_wire_list_line(str("7\thttp://a/\t9\n"), times,
                                       &line), 14);
    assert_int_equal(line.time, 9);
    assert_int_equal(us_wire_list_line(str("7\thttp://a/\t-\n"), times,
                                       &line), 14);
    assert_int_equal(line.time, 0);
    assert_int_equal(us_wire_list_line(str("7\thttp://a/\n"), times, &line),
                     0);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(us_wire_list_line(str(bad[i]), none, &line), 0);
    }

    assert_int_equal(us_wire_list_line(str("7\t-\n"), urls, &line), 4);
    assert_int_equal(line.status, US_ANSWER_DELETED);
    assert_int_equal(us_wire_list_line(str("7\t-\tdeleted\n"), urls, &line),
                     0);
    assert_int_equal(us_wire_list_line(str("7\t-\t-\n"), both, &line), 6);
    assert_int_equal(line.status, US_ANSWER_DELETED);

    assert_true(us_wire_next(str("# next=70\n"), &next));
    assert_int_equal(next, 70);
    assert_false(us_wire_next(str("# next=70"), &next));
    assert_false(us_wire_next(str("# next=\n"), &next));
    assert_false(us_wire_next(str("# next=7\n\n"), &next));
    assert_false(us_wire_next(str("7\thttp://a/\n"), &next));
}


/* what is past the end of a reply that was cut is asked again, but for adds */

static void
cut(void **state)
{
    us_map_t   *map;
    us_lane_t  *lane;

    map = map_of(1, "[\"0-4095\",1]");
    begin_by_id(map);
    s.lists = 1;
    s.answers = 1 << US_ANSWER_SEEN;

    assert_int_equal(us_scatter_id(&s, TAG), 0);
    assert_int_equal(us_scatter_id(&s, TAG + 1), 0);
    assert_int_equal(us_scatter_id(&s, TAG + 2), 0);
    assert_int_equal(us_scatter_round(&s), 1);

    lane = lane_of(1, 0);

    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 3 * 14);
    assert_int_equal(us_scatter_reply_cut(&s, lane,
                         str("1099511627776\thttp://a/\n109951")), 3);
    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 2 * 14);
    assert_int_equal(us_scatter_reply_cut(&s, lane,
                         str("1099511627777\thttp://b/\nx\n")), 1);
    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 0);
    assert_int_equal(us_scatter_round(&s), 0);

    item_is(0, US_ANSWER_SEEN, 1, "http://a/");
    item_is(1, US_ANSWER_SEEN, 1, "http://b/");
    item_is(2, US_ANSWER_UNAVAILABLE, 1, NULL);

    us_scatter_free(&s);
    begin(map, US_SCATTER_ADD);
    add("http://a/");
    add("http://b/");
    assert_int_equal(us_scatter_round(&s), 1);

    lane = lane_of(1, 0);

    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 20);
    assert_int_equal(us_scatter_reply_cut(&s, lane,
                         str("1099511627776\tnew\thttp://a/\n1")), 1);
    assert_int_equal(us_scatter_part(&s, lane, 1 << 20), 0);
    assert_int_equal(us_scatter_round(&s), 0);
    item_is(1, US_ANSWER_UNAVAILABLE, 1, NULL);

    end(map);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(ends),
        cmocka_unit_test(summaries),
        cmocka_unit_test(same),
        cmocka_unit_test(direct),
        cmocka_unit_test(broken),
        cmocka_unit_test(unsure),
        cmocka_unit_test(parts),
        cmocka_unit_test(denied_by_all),
        cmocka_unit_test(not_a_spelling),
        cmocka_unit_test(other_questions),
        cmocka_unit_test(refused_by_one),
        cmocka_unit_test(long_reason),
        cmocka_unit_test(had_by_one),
        cmocka_unit_test(one_says_nothing),
        cmocka_unit_test(seen_denied),
        cmocka_unit_test(seen_denied_by_owner),
        cmocka_unit_test(moved),
        cmocka_unit_test(moved_and_known),
        cmocka_unit_test(moved_or_lost),
        cmocka_unit_test(by_id),
        cmocka_unit_test(by_id_asked),
        cmocka_unit_test(by_id_other),
        cmocka_unit_test(erased),
        cmocka_unit_test(erased_not),
        cmocka_unit_test(words),
        cmocka_unit_test(list_lines),
        cmocka_unit_test(cut)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
