
/*
 * What is answered: answers, problem documents, and reasons of refused input.
 */


#include "api/us_answer.h"
#include "api/us_problem.h"
#include "zone/us_conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


static void
problem(unsigned status, const char *detail, const char *members,
    const char *expected)
{
    size_t    len, n;
    uint8_t  *p, *text, *end;

    len = strlen(detail);
    n = us_problem_max(len, members ? strlen(members) : 0);

    text = malloc(len + 1);
    memcpy(text, detail, len);

    p = malloc(n);
    end = us_problem_begin(p, status, text, len, members);

    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);

    /* and room for the end of the object */
    assert_true((size_t) (end - p) + 2 <= n);

    free(p);
    free(text);
}


static void
problems(void **state)
{
    problem(404, "", NULL,
            "{\"type\":\"about:blank\",\"title\":\"Not Found\","
            "\"status\":404");
    problem(422, "no \"url\"", "\"id\":null",
            "{\"type\":\"about:blank\",\"title\":\"Unprocessable Content\","
            "\"status\":422,\"detail\":\"no \\\"url\\\"\",\"id\":null");
    problem(418, "\x01", NULL,
            "{\"type\":\"about:blank\",\"title\":\"Error\",\"status\":418,"
            "\"detail\":\"\\u0001\"");
    problem(500, "\xc3\xa9", NULL,
            "{\"type\":\"about:blank\",\"title\":\"Internal Server Error\","
            "\"status\":500,\"detail\":\"\xc3\xa9\"");
    problem(500, "\xc3\xa9\xff.", NULL,
            "{\"type\":\"about:blank\",\"title\":\"Internal Server Error\","
            "\"status\":500,\"detail\":\"???.\"");

    assert_int_equal(us_problem_line(418).len, 0);
    assert_int_equal(us_problem_line(507).len, 24);
}


static void
refusal(us_input_kind_t kind, us_verdict_t verdict, const char *word,
    const char *sentence)
{
    uint8_t       *p, *end;
    us_refusal_t   refusal;

    memset(&refusal, 0, sizeof(refusal));
    refusal.kind = kind;
    refusal.verdict = verdict;
    refusal.rule = us_string("calendar");
    refusal.why = "it is no string";

    p = malloc(US_REFUSAL_WORD);
    end = us_refusal_word(p, &refusal);
    assert_int_equal(end - p, strlen(word));
    assert_memory_equal(p, word, end - p);
    free(p);

    p = malloc(US_REFUSAL_SENTENCE);
    end = us_refusal_sentence(p, &refusal, 2048);
    assert_int_equal(end - p, strlen(sentence));
    assert_memory_equal(p, sentence, end - p);
    free(p);
}


static void
refusals(void **state)
{
    int            verdict;
    char           rule[200], why[300];
    uint8_t       *p;
    us_refusal_t   r;

    refusal(US_INPUT_BAD, US_URL_OK, "json", "it is no string");
    refusal(US_INPUT_LONG, US_URL_OK, "length",
            "a URL, or its base, has at most 2048 bytes (urlstore_max_url)");
    refusal(US_INPUT_URL, US_URL_LENGTH, "length",
            "a URL, or its base, has at most 2048 bytes (urlstore_max_url)");
    refusal(US_INPUT_URL, US_URL_RULE, "rule:calendar",
            "the rule \"calendar\" of the zone refuses the URL");
    refusal(US_INPUT_URL, US_URL_SCHEME, us_verdict_name(US_URL_SCHEME),
            "the scheme is neither http nor https");
    refusal(US_INPUT_URL, US_URL_BUDGET, us_verdict_name(US_URL_BUDGET),
            "the rules of the zone have used up the time of the request: "
            "send fewer URLs at a time");

    /* every verdict has both, and none is longer than its room */

    memset(&r, 0, sizeof(r));
    memset(rule, 'r', sizeof(rule));
    memset(why, 'w', sizeof(why));
    why[sizeof(why) - 1] = '\0';

    r.rule = (us_str_t) { sizeof(rule), (uint8_t *) rule };
    r.why = why;

    for (verdict = US_URL_SCHEME; verdict <= US_URL_BUDGET; verdict++) {
        r.kind = US_INPUT_URL;
        r.verdict = verdict;

        p = malloc(US_REFUSAL_WORD);
        assert_true(us_refusal_word(p, &r) > p);
        free(p);

        p = malloc(US_REFUSAL_SENTENCE);
        assert_true(us_refusal_sentence(p, &r, UINT64_MAX) > p);
        free(p);
    }

    r.erased = 1;
    p = malloc(US_REFUSAL_SENTENCE);
    assert_int_equal(us_refusal_word(p, &r) - p, 6);
    assert_memory_equal(p, "erased", 6);
    assert_true(us_refusal_sentence(p, &r, UINT64_MAX) - p > 40);
    free(p);

    r.erased = 0;
    r.kind = US_INPUT_BAD;
    p = malloc(US_REFUSAL_SENTENCE);
    assert_int_equal(us_refusal_sentence(p, &r, 0) - p, US_REFUSAL_SENTENCE);
    free(p);
}


static us_answers_t  as;


static uint8_t *
put(uint8_t *p, const us_answer_record_t *rec, us_str_t text, us_str_t ref)
{
    return as.format == US_FORMAT_TEXT
           ? us_answer_line(p, &as, rec, text)
           : us_answer_object(p, &as, rec, text, ref);
}


static void
answer(us_answer_record_t rec, const char *text, const char *ref,
    const char *expected)
{
    size_t    n;
    uint8_t  *p, *end;

    n = us_answer_max(strlen(text), strlen(ref));
    p = malloc(n);

    end = put(p, &rec, (us_str_t) { strlen(text), (const uint8_t *) text },
              (us_str_t) { strlen(ref), (const uint8_t *) ref });

    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);
    free(p);
}


static us_answer_record_t
record(uint64_t id, us_answer_t what, us_answer_text_t text)
{
    us_answer_record_t  rec;

    memset(&rec, 0, sizeof(rec));
    rec.id = id;
    rec.index = 17;
    rec.answer = what;
    rec.text = text;

    return rec;
}


static us_answer_record_t
new_site(us_answer_record_t rec)
{
    rec.new_site = 1;

    return rec;
}


static void
lines(void **state)
{
    us_answer_record_t  seen, fresh, bad, gone;

    memset(&as, 0, sizeof(as));

    seen = record(7, US_ANSWER_SEEN, US_ANSWER_URL);
    fresh = new_site(record(8, US_ANSWER_NEW, US_ANSWER_URL));
    bad = record(US_STORE_NO_ID, US_ANSWER_INVALID, US_ANSWER_WHY);
    gone = record(9, US_ANSWER_DELETED, US_ANSWER_NO_TEXT);

    answer(seen, "http://a/", "\"r\"", "7\tseen\thttp://a/\n");
    answer(bad, "scheme", "", "-\tinvalid\tscheme\n");
    answer(gone, "", "", "9\tdeleted\t-\n");

    as.sites = 1;
    answer(seen, "http://a/", "", "7\tseen\thttp://a/\tsite-known\n");
    answer(fresh, "http://b/", "", "8\tnew\thttp://b/\tsite-new\n");
    answer(bad, "scheme", "", "-\tinvalid\tscheme\t-\n");

    as.only_new = 1;
    as.brief = 1;
    answer(fresh, "", "", "8\tnew\tsite-new\t17\n");

    as.single = 1;
    answer(fresh, "", "", "8\tnew\tsite-new\n");
}


static void
objects(void **state)
{
    us_answer_record_t  seen, fresh, bad, gone;

    memset(&as, 0, sizeof(as));

    seen = record(7, US_ANSWER_SEEN, US_ANSWER_URL);
    fresh = new_site(record(8, US_ANSWER_NEW, US_ANSWER_URL));
    bad = record(US_STORE_NO_ID, US_ANSWER_INVALID, US_ANSWER_WHY);
    gone = record(9, US_ANSWER_DELETED, US_ANSWER_NO_TEXT);

    as.format = US_FORMAT_JSON;
    answer(seen, "http://a/?\"", "[1]",
           "{\"id\":7,\"status\":\"seen\",\"url\":\"http://a/?\\\"\","
           "\"ref\":[1]}");
    answer(gone, "", "", ",{\"id\":9,\"status\":\"deleted\",\"url\":null}");

    as.format = US_FORMAT_NDJSON;
    as.sites = 1;
    as.only_new = 1;
    answer(fresh, "http://b/", "",
           "{\"id\":8,\"status\":\"new\",\"url\":\"http://b/\","
           "\"new_site\":true,\"index\":17}\n");
    answer(bad, "scheme", "",
           "{\"id\":null,\"status\":\"invalid\",\"reason\":\"scheme\","
           "\"index\":17}\n");

    memset(&as, 0, sizeof(as));
    as.format = US_FORMAT_JSON;
    as.single = 1;
    as.brief = 1;
    as.epoch = 3;
    as.next_id = 10;
    answer(gone, "", "", "{\"id\":9,\"status\":\"deleted\",\"next_id\":10,"
                         "\"epoch\":3}\n");
    as.shown = 0;
    as.next_id = US_STORE_NO_ID;
    answer(gone, "", "", "{\"id\":9,\"status\":\"deleted\","
                         "\"next_id\":null,\"epoch\":3}\n");
}


/* each field at its longest, each byte of the URL escaped */

static void
answer_longest(void **state)
{
    int                  format, what;
    char                *url;
    uint8_t             *p;
    us_answer_record_t   rec;
    us_answer_shard_t    shards[2];

    memset(&as, 0xff, sizeof(as));

    url = malloc(US_URL_MAX);
    memset(url, 1, US_URL_MAX);
    url[0] = '"';
    as.erased.data = (uint8_t *) url;

    for (format = US_FORMAT_TEXT; format <= US_FORMAT_NDJSON; format++) {
        for (what = US_ANSWER_NEW; what < US_ANSWERS; what++) {
            as.format = format;
            as.only_new = as.single = what & 1;
            as.brief = 0;
            as.erased.len = (what & 2) ? US_URL_MAX : 0;
            as.next_id = as.epoch = UINT64_MAX - 1;
            rec = new_site(record(UINT64_MAX - 1, what, US_ANSWER_URL));
            rec.index = UINT32_MAX;
            rec.claimed = UINT64_MAX;

            p = malloc(us_answer_max(US_URL_MAX, 100) + as.erased.len);
            (void) put(p, &rec, (us_str_t) { US_URL_MAX, (uint8_t *) url },
                       (us_str_t) { 100, (uint8_t *) url });
            free(p);
        }

        memset(as.counts, 0xff, sizeof(as.counts));
        as.summary = 1;
        as.erased.len = 0;
        as.shards = NULL;
        p = malloc(US_ANSWER_SUMMARY);
        (void) us_answer_end(p, &as);
        free(p);

        memset(shards, 0xff, sizeof(shards));
        shards[1].next_id = UINT64_MAX - 1;
        as.shards = shards;
        as.nshards = 2;
        as.erased.len = US_URL_MAX;
        p = malloc(US_ANSWER_SUMMARY + as.erased.len + us_answer_shards_max(2));
        (void) us_answer_end(p, &as);
        free(p);
    }

    as.shards = NULL;

    free(url);
}


static void
ends(const char *expected)
{
    uint8_t  *p, *end;

    p = malloc(US_ANSWER_SUMMARY);
    end = us_answer_end(p, &as);

    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);
    free(p);
}


static void
summaries(void **state)
{
    int  i;

    memset(&as, 0, sizeof(as));
    as.next_id = 5;
    as.epoch = 6;

    for (i = US_ANSWER_NEW; i < US_ANSWERS; i++) {
        as.counts[i] = i;
    }

    ends("");
    as.summary = 1;
    ends("# new=1 seen=2 unseen=3 errors=38 next_id=5 epoch=6\n");
    as.format = US_FORMAT_NDJSON;
    ends("{\"new\":1,\"seen\":2,\"unseen\":3,\"errors\":38,\"next_id\":5,"
         "\"epoch\":6}\n");
    as.summary = 0;
    ends("");
    as.format = US_FORMAT_JSON;
    as.marks = 1;
    as.next_id = US_STORE_NO_ID;
    ends("],\"set\":10,\"clear\":11,\"unknown\":12,\"deleted\":13,"
         "\"errors\":38,\"next_id\":null,\"epoch\":6}\n");
    as.format = US_FORMAT_TEXT;
    as.summary = 1;
    ends("# set=10 clear=11 unknown=12 deleted=13 errors=38 next_id=- "
         "epoch=6\n");
    as.marks = 0;
    as.claims = 1;
    ends("# claimed=9 unknown=12 deleted=13 errors=38 next_id=- "
         "epoch=6\n");
    as.claims = 0;
    as.older = 1;
    ends("# new=1 seen=2 unseen=3 due=7 errors=38 next_id=- epoch=6\n");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(objects),
        cmocka_unit_test(answer_longest),
        cmocka_unit_test(summaries),
        cmocka_unit_test(problems),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
