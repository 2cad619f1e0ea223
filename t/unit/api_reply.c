
/*
 * What is answered: problem documents, and reasons of refused input.
 */


#include "api/us_problem.h"
#include "api/us_refusal.h"

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

    r.kind = US_INPUT_BAD;
    p = malloc(US_REFUSAL_SENTENCE);
    assert_int_equal(us_refusal_sentence(p, &r, 0) - p, US_REFUSAL_SENTENCE);
    free(p);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(problems),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
