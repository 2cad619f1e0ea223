
/*
 * The JSON reader: what RFC 8259 takes and refuses, with a rest after any
 * number of bytes.
 */


#include "../../src/input/us_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


#define BYTES(s)  { (s), sizeof(s) - 1 }


typedef struct {
    const char  *text;
    size_t       len;
} sample_t;


/* what the events of a text look like, written down */

typedef struct {
    char         text[65536];
    size_t       len;
    int          lone;
    const char  *error;
} record_t;


static const sample_t  accepted[] = {
    BYTES("{}"), BYTES("[]"), BYTES(" [ ] "), BYTES("\t\r\n{ \n}\n"),
    BYTES("null"), BYTES("true"), BYTES("false"), BYTES("\"\""),
    BYTES("0"), BYTES("-0"), BYTES("7"), BYTES("10"), BYTES("-1"),
    BYTES("0.5"), BYTES("-0.0"), BYTES("1e5"), BYTES("1E5"), BYTES("1e+5"),
    BYTES("1e-5"), BYTES("0e0"), BYTES("0e+1"), BYTES("1.5e10"),
    BYTES("123456789012345678901234567890"), BYTES("1.0E+2 "),
    BYTES("20e1"), BYTES("[20e1,1]"), BYTES("[-123]"), BYTES("[-0]"),
    BYTES("-0.0000000000000000000000000000000000000000000000000000000000000"
          "0000000000000001"),
    BYTES("[1,2,3]"), BYTES("[1 ,\n 2]"), BYTES("[[],[[]]]"),
    BYTES("[null,1,\"1\",{}]"), BYTES("[1,null,null,null,2]"),
    BYTES("{\"a\":1}"), BYTES("{\"a\":{\"b\":[{\"c\":null}]}}"),
    BYTES("{\"a\":1,\"a\":2}"), BYTES("{\"\":0}"), BYTES("{\"a\" : [ ] }"),
    BYTES("\"a/b\""), BYTES("\"\\/\\\"\\\\\\b\\f\\n\\r\\t\""),
    BYTES("\"\\u0041\\u00e9\\u20ac\""), BYTES("\"\\uD801\\uDC37\""),
    BYTES("\"\\ud83d\\ude39\\ud83d\\udc8d\""), BYTES("\"\\u0000\""),
    BYTES("\"\\uDBFF\\uDFFF\""), BYTES("\"\\uFFFF\""), BYTES("\"\\u2028\""),
    BYTES("\"\x7f\""), BYTES("\"\xc3\xa9\""), BYTES("\"\xe2\x82\xac\""),
    BYTES("\"\xf0\x9f\x98\xb9\""), BYTES("\"\xed\x9f\xbf\""),
    BYTES("\"\xee\x80\x80\""), BYTES("\"\xf4\x8f\xbf\xbf\""),
    BYTES("\"\xe0\xa0\x80\""), BYTES("\"\xf0\x90\x80\x80\""),
    BYTES("\"\xef\xbf\xbf\""), BYTES("\"\xc2\x80\""),
    BYTES("{\"min\": -1.0e+28, \"max\": 1.0e+28}"),
    BYTES("[\"\\\\u0000\"]"), BYTES("[\"a\xcc\x80\"]"),
    BYTES("[\"\\\"\"]"), BYTES("[false]"), BYTES("[\"asd \"]"),
    BYTES("{\"asd\":\"sdf\", \"dfg\":\"fgh\"}")
};


static const sample_t  refused[] = {
    BYTES(""), BYTES(" "), BYTES("["), BYTES("]"), BYTES("{"), BYTES("}"),
    BYTES("[1"), BYTES("[1,"), BYTES("[1,]"), BYTES("[,1]"), BYTES("[,]"),
    BYTES("[1,,2]"), BYTES("[1 2]"), BYTES("[1]]"), BYTES("[1]x"),
    BYTES("[1}"), BYTES("{\"a\":1]"), BYTES("[\"\",]"), BYTES("[x"),
    BYTES("[\"x\"]]"), BYTES("[1]2"), BYTES("1 2"), BYTES("{}{}"),
    BYTES("{\"a\"}"), BYTES("{\"a\":}"), BYTES("{\"a\":1,}"), BYTES("{,}"),
    BYTES("{1:1}"), BYTES("{a:1}"), BYTES("{'a':1}"), BYTES("{\"a\" 1}"),
    BYTES("{\"a\"::1}"), BYTES("{\"a\":1,,\"b\":2}"), BYTES("{null:1}"),
    BYTES("{\"a\":1 \"b\":2}"), BYTES("{\"a\":\"b\"}/**/"),
    BYTES("[1]//"), BYTES("{\"a\":1}#"), BYTES("{\"a\":"),
    BYTES("{\"a\":1,1"), BYTES("{[: \"x\"}"), BYTES("{\"x\", null}"),
    BYTES("nul"), BYTES("nulll"), BYTES("Null"), BYTES("tru"),
    BYTES("TRUE"), BYTES("fals"), BYTES("falsx"), BYTES("nan"),
    BYTES("NaN"), BYTES("Infinity"), BYTES("-Infinity"), BYTES("-"),
    BYTES("+1"), BYTES("01"), BYTES("-01"), BYTES("00"), BYTES(".5"),
    BYTES("1."), BYTES("-1."), BYTES("1.e5"), BYTES("1e"), BYTES("1e+"),
    BYTES("1e-"), BYTES("1eE2"), BYTES("1.5e"), BYTES("0x1"), BYTES("0xF"),
    BYTES("1_0"), BYTES("--1"), BYTES("-a"), BYTES("1.2.3"), BYTES("2.e3"),
    BYTES("0.e1"), BYTES("0e"), BYTES("0E+"), BYTES("1 000"),
    BYTES("[-]"), BYTES("[1+2]"), BYTES("[0.3e]"), BYTES("[9.e+]"),
    BYTES("[-2.]"), BYTES("[1ea]"), BYTES("[- 1]"), BYTES("[++1234]"),
    BYTES("\""), BYTES("\"a"), BYTES("a\""), BYTES("'a'"),
    BYTES("\"\\\""), BYTES("\"\\x00\""), BYTES("\"\\a\""), BYTES("\"\\u\""),
    BYTES("\"\\u00\""), BYTES("\"\\u00A\""), BYTES("\"\\u00G0\""),
    BYTES("\"\\U0041\""), BYTES("\"\\uD800\""), BYTES("\"\\uD800x\""),
    BYTES("\"\\uD800\\n\""), BYTES("\"\\uD800\\u0041\""),
    BYTES("\"\\uD800\\uD800\""), BYTES("\"\\uDC00\""),
    BYTES("\"\\uDC00\\uD800\""), BYTES("\"\\uD800\\u\""),
    BYTES("\"\\\xf0\x9f\x8c\x80\""), BYTES("\"\\\x00\""),
    BYTES("\"\n\""), BYTES("\"\t\""), BYTES("\"\x1f\""), BYTES("\"\0\""),
    BYTES("\"\x80\""), BYTES("\"\xff\""), BYTES("\"\xc0\xaf\""),
    BYTES("\"\xc1\xbf\""), BYTES("\"\xc3\""), BYTES("\"\xc3\x28\""),
    BYTES("\"\xe0\x80\xaf\""), BYTES("\"\xe0\x9f\xbf\""),
    BYTES("\"\xe2\x82\""), BYTES("\"\xed\xa0\x80\""),
    BYTES("\"\xed\xbf\xbf\""), BYTES("\"\xf0\x80\x80\x80\""),
    BYTES("\"\xf0\x8f\xbf\xbf\""), BYTES("\"\xf4\x90\x80\x80\""),
    BYTES("\"\xf5\x80\x80\x80\""), BYTES("\"\xf8\x88\x80\x80\x80\""),
    BYTES("\"\xfc\x83\xbf\xbf\xbf\xbf\""), BYTES("\"\xe9\""),
    BYTES("\xef\xbb\xbf{}"), BYTES("\xef\xbb\xbf"), BYTES("\xe5"),
    BYTES("[\xff]"), BYTES("[a\xe5]"), BYTES("[1\xe5]"),
    BYTES("{\"\xb9\":\"0\",}"), BYTES("[\x0c]"), BYTES("[\"a\x00\"]"),
    BYTES("\v[]"), BYTES("\xc2\xa0[]"), BYTES("[]\xe2\x81\xa0"),
    BYTES("<null>"), BYTES("[<null>]"), BYTES("*"), BYTES("[*]"),
    BYTES("\\u0020\"asd\""), BYTES("[\\n]"), BYTES("[True]"),
    BYTES("{\"a\":true} \"x\""), BYTES("[\"a\":1]"), BYTES("[:]"),
    BYTES("[3[4]]"), BYTES("[\"x\"\"y\"]"), BYTES("{}}"), BYTES("[][]")
};


static void
record(record_t *r, const us_json_t *j, us_json_event_t event)
{
    us_str_t  text;

    static const char  names[] = "{}[]ks#tfn";

    text = event == US_JSON_KEY || event == US_JSON_STRING
           || event == US_JSON_NUM ? j->text : us_string("");

    r->len += snprintf(r->text + r->len, sizeof(r->text) - r->len,
                       "%c%d:%zu:", names[event], j->cut, text.len);

    assert_true(r->len + text.len < sizeof(r->text));

    memcpy(r->text + r->len, text.data, text.len);
    r->len += text.len;
}


/* with a rest after each n bytes, or a few more */

static int
parse(const char *text, size_t len, size_t n, size_t max, record_t *r)
{
    int               rc;
    uint8_t          *copy;
    us_str_t          s;
    us_json_t         j;
    us_json_event_t   event;

    r->len = 0;

    copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    s.data = copy;
    s.len = len;

    us_json_init(&j, max);
    j.lone = r->lone;

    us_json_text(&j, s);

    do {
        j.work = n;
        event = us_json_next(&j);

        if (event < US_JSON_END) {
            record(r, &j, event);
        }

    } while (event != US_JSON_END && event != US_JSON_ERROR);

    /* it stays at its end */

    assert_int_equal(us_json_next(&j), event);

    rc = event == US_JSON_END ? 0 : -1;
    r->error = j.error;

    assert_int_equal(rc == 0, j.error == NULL);

    us_json_free(&j);
    free(copy);

    return rc;
}


static void
test_accepted(void **state)
{
    size_t    i, n;
    record_t  whole, cut;

    memset(&whole, 0, sizeof(whole));
    memset(&cut, 0, sizeof(cut));

    for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {

        if (parse(accepted[i].text, accepted[i].len, 65536, 8192, &whole)) {
            fail_msg("refused: %s", accepted[i].text);
        }

        for (n = 1; n <= accepted[i].len; n++) {
            assert_int_equal(parse(accepted[i].text, accepted[i].len, n, 8192,
                                   &cut), 0);
            assert_int_equal(whole.len, cut.len);
            assert_memory_equal(whole.text, cut.text, whole.len);
        }
    }
}


static void
test_refused(void **state)
{
    size_t    i, n;
    record_t  r;

    memset(&r, 0, sizeof(r));

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        for (n = 1; n <= refused[i].len + 1; n++) {
            if (parse(refused[i].text, refused[i].len, n, 8192, &r) == 0) {
                fail_msg("accepted: %s", refused[i].text);
            }
        }
    }
}


static void
test_decoding(void **state)
{
    size_t    n;
    record_t  r;

    static const char  text[] =
        "\"a\\u00e9\\ud83d\\ude39\\n\\/\xe2\x82\xac\\\"z\"";
    static const char  want[] =
        "s0:14:a\xc3\xa9\xf0\x9f\x98\xb9\n/\xe2\x82\xac\"z";

    memset(&r, 0, sizeof(r));

    for (n = 1; n < sizeof(text); n++) {
        assert_int_equal(parse(text, sizeof(text) - 1, n, 8192, &r), 0);
        r.text[r.len] = '\0';
        assert_string_equal(r.text, want);
    }
}


/* half a pair is U+FFFD, and takes nothing of what follows it */

static void
test_lone(void **state)
{
    size_t    i, n;
    char      want[64];
    record_t  r;

    static const struct {
        const char  *text;
        const char  *want;
    } texts[] = {
        { "\"\\ud800\"", "\xef\xbf\xbd" },
        { "\"\\udc00x\"", "\xef\xbf\xbdx" },
        { "\"\\ud800x\"", "\xef\xbf\xbdx" },
        { "\"\\ud800\\n\"", "\xef\xbf\xbd\n" },
        { "\"\\ud800\\u0041\"", "\xef\xbf\xbd" "A" },
        { "\"\\ud800\\ud83d\\ude39\"", "\xef\xbf\xbd\xf0\x9f\x98\xb9" },
        { "\"\\udc00\\ud800\"", "\xef\xbf\xbd\xef\xbf\xbd" }
    };

    memset(&r, 0, sizeof(r));
    r.lone = 1;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        snprintf(want, sizeof(want), "s0:%zu:%s", strlen(texts[i].want),
                 texts[i].want);

        for (n = 1; n <= strlen(texts[i].text); n++) {
            assert_int_equal(parse(texts[i].text, strlen(texts[i].text), n,
                                   8192, &r), 0);
            r.text[r.len] = '\0';
            assert_string_equal(r.text, want);
        }
    }

    assert_int_equal(parse("\"\\ud800\\q\"", 10, 1, 8192, &r), -1);
    assert_int_equal(parse("\"\\ud800", 7, 1, 8192, &r), -1);
}


static void
test_limits(void **state)
{
    size_t    i, n;
    char      deep[2 * US_JSON_DEPTH + 2], number[US_JSON_NUMBER + 2];
    record_t  r;

    memset(&r, 0, sizeof(r));

    for (i = 0; i <= US_JSON_DEPTH; i++) {
        deep[i] = '[';
        deep[2 * US_JSON_DEPTH + 1 - i] = ']';
    }

    assert_int_equal(parse(deep + 1, 2 * US_JSON_DEPTH, 7, 64, &r), 0);
    assert_int_equal(parse(deep, 2 * US_JSON_DEPTH + 2, 7, 64, &r), -1);

    memset(number, '1', sizeof(number));

    for (n = 1; n < 300; n += 37) {
        assert_int_equal(parse(number, US_JSON_NUMBER, n, 8192, &r), 0);
        assert_int_equal(parse(number, US_JSON_NUMBER + 1, n, 8192, &r), -1);
        assert_string_equal(r.error, "a number that is too long");
    }

    /* so is a number, whatever the limit of a string is */

    for (n = 1; n < 20; n++) {
        assert_int_equal(parse("[1234567890.5e7]", 16, n, 8, &r), 0);
        r.text[r.len] = '\0';
        assert_string_equal(r.text, "[0:0:#0:14:1234567890.5e7]0:0:");

        assert_int_equal(parse("[123456789x]", 12, n, 8, &r), -1);
    }

    /* a string over the limit is checked, and comes without its text */

    for (n = 1; n < 20; n++) {
        assert_int_equal(parse("[\"12345678\",\"123456789\",\"x\"]", 28, n, 8,
                               &r), 0);
        r.text[r.len] = '\0';
        assert_string_equal(r.text, "[0:0:s0:8:12345678s1:0:s0:1:x]0:0:");

        assert_int_equal(parse("[\"123456789\xff\"]", 14, n, 8, &r), -1);
    }
}


static void
test_quote(void **state)
{
    uint8_t   buf[64], *end;
    us_str_t  s;

    s = us_string("a\"\\\n\t\r\x01/\xc3\xa9");
    end = us_json_quote(buf, s);
    *end = '\0';
    assert_string_equal((char *) buf,
                        "\"a\\\"\\\\\\n\\t\\r\\u0001/\xc3\xa9\"");

    s = us_string("a\xff\"");
    end = us_json_quote_bytes(buf, s);
    *end = '\0';
    assert_string_equal((char *) buf, "\"a\\ufffd\\\"\"");
}


static void
test_utf8(void **state)
{
    size_t    i, n, valid;
    uint8_t   text[3];
    us_str_t  s;

    static const struct {
        const char  *s;
        int          valid;
    } t[] = {
        { "", 1 }, { "a", 1 }, { "\xc3\xa9", 1 }, { "\xe2\x82\xac", 1 },
        { "\xf0\x9f\x98\x80", 1 }, { "\xf4\x8f\xbf\xbf", 1 },
        { "\x80", 0 }, { "\xc3", 0 }, { "\xc0\x80", 0 }, { "\xc1\xbf", 0 },
        { "\xe0\x9f\xbf", 0 }, { "\xed\xa0\x80", 0 }, { "\xe2\x82", 0 },
        { "\xf0\x8f\xbf\xbf", 0 }, { "\xf4\x90\x80\x80", 0 },
        { "\xf5\x80\x80\x80", 0 }, { "\xe2\x82\x41", 0 }, { "a\xff", 0 },
        { "\xf0\x9f\x98", 0 }, { "\xe2\x82\xac\xe2", 0 }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        s.data = (uint8_t *) t[i].s;
        s.len = strlen(t[i].s);

        if (us_utf8_valid(s) != t[i].valid) {
            fail_msg("case %zu", i);
        }
    }

    /* all of two and three bytes: there are 128, 1920 and 61440 characters */

    for (n = 2; n <= 3; n++) {
        valid = 0;
        s.data = text;
        s.len = n;

        for (i = 0; i < (size_t) 1 << 8 * n; i++) {
            text[0] = i;
            text[1] = i >> 8;
            text[2] = i >> 16;
            valid += us_utf8_valid(s);
        }

        assert_int_equal(valid, n == 2 ? 128 * 128 + 1920
                                : 128 * 128 * 128 + 2 * 128 * 1920 + 61440);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_lone),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_utf8)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
