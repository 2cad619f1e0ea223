
/*
 * The body reader: four formats, cut at every byte, give the same items.
 */


#include "../../src/input/us_input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


#define MAX  16


typedef struct {
    const char         *body;
    us_input_format_t   format;
    int                 ids;
    int                 single;
    const char         *want;         /* or "!" and the reason */
} sample_t;


/* an item: KIND TEXT [@BASE] [=REF], one a line */

static const sample_t  samples[] = {

    { "", US_INPUT_TEXT, 0, 0, "" },
    { "a\nb\r\n\n\r\nc", US_INPUT_TEXT, 0, 0, "u a\nu b\nu c\n" },
    { "a\rb\n", US_INPUT_TEXT, 0, 0, "u a\rb\n" },
    { "1234567890123456\nx\n", US_INPUT_TEXT, 0, 0,
      "u 1234567890123456\nu x\n" },
    { "1234567890123456\r\nx", US_INPUT_TEXT, 0, 0,
      "u 1234567890123456\nu x\n" },
    { "12345678901234567\nx\n", US_INPUT_TEXT, 0, 0, "l\nu x\n" },
    { "12345678901234567890123456789", US_INPUT_TEXT, 0, 0, "l\n" },

    { "{\"url\":\"a\"}\n\n{\"base\":\"b\",\"url\":\"c\"}", US_INPUT_NDJSON,
      0, 0, "u a\nu c @b\n" },
    { "{\"url\":\"a\",\"ref\":[1,{\"x\":null,\"y\":[]},\"\\n\"]}\n",
      US_INPUT_NDJSON, 0, 0, "u a =[1,{\"x\":null,\"y\":[]},\"\\n\"]\n" },
    { "{\"ref\":{},\"url\":\"a\"}\r\n{\"ref\":-1.5e3,\"url\":\"b\"}\n",
      US_INPUT_NDJSON, 0, 0, "u a ={}\nu b =-1.5e3\n" },
    { "{\"ref\":false,\"url\":\"a\",\"z\":{\"url\":\"q\"}}\n",
      US_INPUT_NDJSON, 0, 0, "u a =false\n" },
    { "x\n{\"url\":1\n[]\n\"a\"\n{}\n{\"url\":null}\n{\"url\":\"k\"}\n",
      US_INPUT_NDJSON, 0, 0, "b\nb\nb\nb\nb\nb\nu k\n" },
    { "{\"url\":\"a\",\"url\":\"b\"}\n{\"url\":\"c\"} {}\n{\"url\":\"d\"}\n",
      US_INPUT_NDJSON, 0, 0, "b\nb\nu d\n" },
    { "{\"base\":null,\"url\":\"a\"}\n{\"base\":7,\"url\":\"a\"}\n",
      US_INPUT_NDJSON, 0, 0, "u a\nb\n" },
    { "{\"url\":\"12345678901234567\",\"ref\":3}\n{\"url\":\"x\"}",
      US_INPUT_NDJSON, 0, 0, "l =3\nu x\n" },
    { "{\"url\":\"x\",\"base\":\"12345678901234567\"}\n", US_INPUT_NDJSON,
      0, 0, "l\n" },
    { "{\"ref\":[1,{\"12345678901234567\":1}]}\n", US_INPUT_NDJSON, 0, 0,
      "b\n" },
    { "{\"id\":7}\n{\"url\":\"x\"}\n{\"id\":\"8\"}\n", US_INPUT_NDJSON, 1, 0,
      "n 7\nu x\nn 8\n" },
    { "{\"id\":7}\n", US_INPUT_NDJSON, 0, 0, "b\n" },
    { "{\"url\":7}\n", US_INPUT_NDJSON, 0, 0, "n 7\n" },

    { "[]", US_INPUT_JSON, 0, 0, "" },
    { "[\"a\",\"b\"]", US_INPUT_JSON, 0, 0, "u a\nu b\n" },
    { "[\"a\",7,null,{\"url\":\"q\"},[\"r\"],\"b\"]", US_INPUT_JSON, 0, 0,
      "u a\nn 7\nb\nb\nb\nu b\n" },
    { "[\"12345678901234567\",\"\"]", US_INPUT_JSON, 0, 0, "l\nu \n" },
    { "{\"urls\":[\"a\",1,[\"x\"]],\"base\":\"b\"}", US_INPUT_JSON, 0, 0,
      "u a @b\nn 1 @b\nb\n" },
    { "{\"base\":\"b\",\"urls\":[\"a\",\"c\"],\"x\":[1]}", US_INPUT_JSON, 0, 0,
      "u a @b\nu c @b\n" },
    { "{\"urls\":[]}", US_INPUT_JSON, 0, 0, "" },
    { "{\"url\":\"a\",\"ref\":\"r\",\"base\":\"b\"}", US_INPUT_JSON, 0, 1,
      "u a @b =\"r\"\n" },
    { "{\"ids\":[1,2]}", US_INPUT_JSON, 1, 0, "n 1\nn 2\n" },
    { "{\"id\":1}", US_INPUT_JSON, 1, 1, "n 1\n" },
    { "{\"ids\":[1,2]}", US_INPUT_JSON, 0, 0,
      "!neither \"urls\" nor \"url\"" },
    { "{}", US_INPUT_JSON, 0, 0, "!neither \"urls\" nor \"url\"" },
    { "7", US_INPUT_JSON, 0, 0, "!an array or an object was expected" },
    { "{\"url\":[]}", US_INPUT_JSON, 0, 0, "!\"url\" must be a string" },
    { "{\"urls\":\"a\"}", US_INPUT_JSON, 0, 0, "!a list must be an array" },
    { "{\"urls\":[],\"url\":\"a\"}", US_INPUT_JSON, 0, 0,
      "!one item or a list, not both" },
    { "{\"url\":\"a\",\"url\":\"b\"}", US_INPUT_JSON, 0, 0,
      "!a key is there twice" },
    { "{\"url\":\"a\",\"ref\":[ 1 ,\n\"b c\\\" d\",{ \"x\" : 2 } ] }",
      US_INPUT_JSON, 0, 1, "u a =[1,\"b c\\\" d\",{\"x\":2}]\n" },
    { "{\"urls\":[{\"url\":[\"q\"]},[[]],\"a\"],\"ref\":[1]}", US_INPUT_JSON,
      0, 0, "b\nb\nu a\n" },
    { "[\"a\"", US_INPUT_JSON, 0, 0, "!the text ends too early" },
    { "[\"a\",\"b\"]]", US_INPUT_JSON, 0, 0, "!something follows the value" },
    { "", US_INPUT_JSON, 0, 0, "!the text ends too early" },

    { "url=a%20b+c&base=http%3A//x", US_INPUT_FORM, 0, 1,
      "u a b c @http://x\n" },
    { "base=x%26url%3Dy&url=a&url=b", US_INPUT_FORM, 0, 0,
      "u a @x&url=y\nu b @x&url=y\n" },
    { "url=a&ref=%C3%A9%22&z=1\r\n", US_INPUT_FORM, 0, 1,
      "u a =\"\xc3\xa9\\\"\"\n" },
    { "url=", US_INPUT_FORM, 0, 1, "u \n" },
    { "url=%zz%4", US_INPUT_FORM, 0, 1, "u %zz%4\n" },
    { "id=7", US_INPUT_FORM, 1, 1, "n 7\n" },
    { "id=", US_INPUT_FORM, 1, 1, "n \n" },
    { "id=", US_INPUT_FORM, 0, 0, "u id=\n" },
    { "bas", US_INPUT_FORM, 0, 0, "u bas\n" },
    { "url=12345678901234567&url=x", US_INPUT_FORM, 0, 0, "l\nu x\n" },
    { "http://a/\nb\n", US_INPUT_FORM, 0, 0, "u http://a/\nu b\n" },
    { "ab", US_INPUT_FORM, 0, 0, "u ab\n" },
    { "urls=1", US_INPUT_FORM, 0, 0, "u urls=1\n" },
    { "", US_INPUT_FORM, 0, 0, "" },
    { "base=x", US_INPUT_FORM, 0, 0, "!no \"url\"" },
    { "url=a&base=x&base=y", US_INPUT_FORM, 0, 0, "!more than one \"base\"" },
    { "url=a&base=12345678901234567&url=b", US_INPUT_FORM, 0, 0, "l\nl\n" },
    { "url=a&base="
      "12345678901234567890123456789012345678901234567890", US_INPUT_FORM, 0,
      1, "l\n" },
    { "u", US_INPUT_FORM, 0, 0, "u u\n" },
    { "\nurl=a", US_INPUT_FORM, 0, 0, "u url=a\n" },
    { "ref\nid=7", US_INPUT_FORM, 1, 0, "u ref\nu id=7\n" },
    { "url=a&url=b&ref=1", US_INPUT_FORM, 0, 0,
      "!\"ref\" is for a single URL in a form" }
};


typedef struct {
    char         text[65536];
    size_t       len;
    size_t       known;
    size_t       rests;
} record_t;


static void
put(record_t *r, const char *mark, us_str_t s)
{
    assert_true(r->len + s.len + 8 < sizeof(r->text));

    r->len += sprintf(r->text + r->len, "%s", mark);
    memcpy(r->text + r->len, s.data ? (char *) s.data : "", s.len);
    r->len += s.len;
    r->text[r->len] = '\0';
}


static void
record(record_t *r, const us_input_item_t *item)
{
    static const char  *kinds[] = { "u ", "n ", "b", "l" };

    put(r, kinds[item->kind],
        item->kind <= US_INPUT_NUMBER ? item->text : us_string(""));

    assert_int_equal(item->kind == US_INPUT_BAD, item->why != NULL);

    if (item->base.data) {
        put(r, " @", item->base);
    }

    if (item->ref.data) {
        put(r, " =", item->ref);
    }

    put(r, "\n", us_string(""));
}


/* all items that there are now, with a rest after each `work` bytes */

static int
take(us_input_t *in, size_t work, record_t *r)
{
    us_input_rc_t     rc;
    us_input_item_t   item;

    do {
        in->work = work;
        rc = us_input_next(in, &item);

        if (rc == US_INPUT_ITEM) {
            record(r, &item);

        } else if (rc == US_INPUT_REST) {
            assert_int_equal(in->work, 0);
            r->rests++;
        }

    } while (rc == US_INPUT_ITEM || rc == US_INPUT_REST);

    return rc == US_INPUT_MORE ? 0 : -1;
}


/* the body in pieces of n bytes, to a reader of URLs of max bytes */

static int
read_max(const sample_t *s, size_t n, size_t max, record_t *r, int *single)
{
    int          rc;
    size_t       i, k, len;
    uint8_t     *copy;
    us_input_t   in;

    r->len = 0;
    r->rests = 0;
    r->text[0] = '\0';

    len = strlen(s->body);

    us_input_init(&in, s->format, max);
    in.ids = s->ids;

    rc = 0;

    for (i = 0; i < len && rc == 0; i += n) {
        k = len - i < n ? len - i : n;

        copy = malloc(k);
        memcpy(copy, s->body + i, k);

        us_input_piece(&in, copy, k);
        rc = take(&in, n, r);

        free(copy);
    }

    if (rc == 0) {
        us_input_piece(&in, NULL, 0);
        us_input_end(&in);
        rc = take(&in, n, r);

        /* there is nothing after the end */

        assert_int_equal(us_input_next(&in, NULL), rc == 0 ? US_INPUT_MORE
                                                          : US_INPUT_ERROR);
    }

    assert_int_equal(rc != 0, in.error != NULL);

    if (rc != 0) {
        r->len = sprintf(r->text, "!%s", in.error);
    }

    *single = in.single;
    r->known = in.known;

    us_input_free(&in);

    return rc;
}


static int
read_body(const sample_t *s, size_t n, record_t *r, int *single)
{
    return read_max(s, n, MAX, r, single);
}


static void
test_samples(void **state)
{
    int              single;
    size_t           i, n;
    record_t         r;
    const sample_t  *s;

    memset(&r, 0, sizeof(r));

    for (i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        s = &samples[i];

        for (n = 1; n <= strlen(s->body) + 1; n++) {
            read_body(s, n, &r, &single);

            if (strcmp(r.text, s->want) != 0) {
                fail_msg("%s in pieces of %zu:\n%s\ninstead of\n%s", s->body,
                         n, r.text, s->want);
            }

            if (s->want[0] != '!') {
                assert_int_equal(single, s->single);
            }
        }
    }
}


/* how many items there will be is known where they are kept until the end */

static void
test_known(void **state)
{
    int       single;
    size_t    i;
    record_t  r;

    static const struct {
        sample_t  s;
        size_t    known;
    } known[] = {
        { { "url=a&url=b&base=c&url=d", US_INPUT_FORM, 0, 0, NULL }, 3 },
        { { "{\"urls\":[\"a\",\"b\"],\"base\":\"c\"}", US_INPUT_JSON, 0,
            0, NULL }, 2 },
        { { "{\"base\":\"c\",\"urls\":[\"a\",\"b\"]}", US_INPUT_JSON, 0,
            0, NULL }, 2 },
        { { "[\"a\",7,{\"b\":[1,2]}]", US_INPUT_JSON, 0, 0, NULL }, 3 },
        { { "a\nb\n", US_INPUT_TEXT, 0, 0, NULL }, 0 }
    };

    memset(&r, 0, sizeof(r));

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_int_equal(read_body(&known[i].s, 3, &r, &single), 0);
        assert_int_equal(r.known, known[i].known);
    }
}


/* what holds no item, or many, is left after some work, and taken up again */

static void
test_rests(void **state)
{
    int          single;
    char         body[20000];
    size_t       i;
    sample_t     s;
    record_t     r;

    static const struct {
        us_input_format_t   format;
        const char         *first;
        const char         *part;
        const char         *last;
        const char         *want;
    } t[] = {
        { US_INPUT_FORM, "url=a", "&", "", "u a\n" },
        { US_INPUT_FORM, "url=a", "&x", "&base=b", "u a @b\n" },
        { US_INPUT_JSON, "{\"x\":[0", ",0", "],\"url\":\"a\"}", "u a\n" },
        { US_INPUT_JSON, "{\"x\":\"", "xy", "\",\"url\":\"a\"}", "u a\n" },
        { US_INPUT_JSON, "[\"", "\\ud83d\\ude39", "\",\"a\"]", "l\nu a\n" },
        { US_INPUT_JSON, "{\"url\":", " \n", "\"a\"}", "u a\n" },
        { US_INPUT_JSON, "[[0", ",\"\xc3\xa9\"", "],\"a\"]", "b\nu a\n" },
        { US_INPUT_NDJSON, "{\"x\":[0", ",0", "],\"url\":\"a\"}\n", "u a\n" }
    };

    memset(&r, 0, sizeof(r));
    memset(&s, 0, sizeof(s));

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        strcpy(body, t[i].first);

        while (strlen(body) < 10000) {
            strcat(body, t[i].part);
        }

        strcat(body, t[i].last);

        s.body = body;
        s.format = t[i].format;

        assert_int_equal(read_body(&s, 100, &r, &single), 0);
        assert_string_equal(r.text, t[i].want);
        assert_true(r.rests >= 100);
    }
}


/* what was wrong with an item that is none */

static void
test_why(void **state)
{
    size_t           i;
    us_input_t       in;
    us_input_item_t  item;

    static const struct {
        us_input_format_t   format;
        const char         *body;
        const char         *why;
    } bad[] = {
        { US_INPUT_NDJSON, "{\"url\":[]}", "\"url\" must be a string" },
        { US_INPUT_NDJSON, "{\"url\":\"a\",\"base\":1}",
          "\"base\" must be a string" },
        { US_INPUT_NDJSON, "{\"link\":\"a\"}", "no \"url\"" },
        { US_INPUT_NDJSON, "[\"a\"]", "the line is no object" },
        { US_INPUT_NDJSON, "{\"url\" \"a\"}", "a colon was expected" },
        { US_INPUT_NDJSON, "{\"url\":\"a\"", "the text ends too early" },
        { US_INPUT_JSON, "[{\"url\":\"a\"}]",
          "an element of the list must be a string" },
        { US_INPUT_JSON, "{\"urls\":[null]}",
          "an element of the list must be a string" }
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        us_input_init(&in, bad[i].format, MAX);
        us_input_piece(&in, (const uint8_t *) bad[i].body,
                       strlen(bad[i].body));
        us_input_end(&in);

        assert_int_equal(us_input_next(&in, &item), 1);
        assert_int_equal(item.kind, US_INPUT_BAD);
        assert_string_equal(item.why, bad[i].why);

        us_input_free(&in);
    }
}


static void
test_long_ref(void **state)
{
    char       body[2 * US_INPUT_REF];
    int        single;
    sample_t   s = { body, US_INPUT_NDJSON, 0, 0, NULL };
    record_t   r;

    memset(&r, 0, sizeof(r));

    /* a string over the limit of an item, and many short ones */

    strcpy(body, "{\"url\":\"a\",\"ref\":\"12345678901234567\"}\n");
    assert_int_equal(read_body(&s, 5, &r, &single), 0);
    assert_string_equal(r.text, "u a =\"12345678901234567\"\n");

    strcpy(body, "{\"url\":\"a\",\"ref\":[1");

    while (strlen(body) < US_INPUT_REF + 30) {
        strcat(body, ",\"1234\"");
    }

    strcat(body, "]}\n{\"url\":\"b\",\"ref\":1}\n");

    assert_int_equal(read_body(&s, 100, &r, &single), 0);
    assert_string_equal(r.text, "l\nu b =1\n");

    /* what counts are the bytes as they were sent */

    snprintf(body, sizeof(body), "{\"ref\":\"%04000d\",\"url\":\"a\"}\n", 7);
    assert_int_equal(read_max(&s, 100, 8192, &r, &single), 0);
    assert_memory_equal(r.text, "u a =\"000", 9);
    assert_int_equal(strlen(r.text), 4000 + 8);

    strcpy(body, "{\"url\":\"a\",\"ref\":\"");

    while (strlen(body) < 5000) {
        strcat(body, "\\u0001");
    }

    strcat(body, "\"}\n");
    assert_int_equal(read_max(&s, 100, 8192, &r, &single), 0);
    assert_string_equal(r.text, "l\n");
}


static void
test_unescape(void **state)
{
    uint8_t  buf[64];
    size_t   len;

    len = us_input_unescape(buf, (uint8_t *) "a+b%2Bc%00%g1%2", 15);
    assert_int_equal(len, 11);
    assert_memory_equal(buf, "a b+c\0%g1%2", 11);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_rests),
        cmocka_unit_test(test_why),
        cmocka_unit_test(test_long_ref),
        cmocka_unit_test(test_unescape)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
