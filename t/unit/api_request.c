
/*
 * What a request brings: query arguments, ids, media types, origins.
 */


#include "api/us_request.h"
#include "cluster/us_map.h"
#include "us_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


/* a copy in memory of its own, so that each byte read past its end shows */

static us_str_t
text(const char *s)
{
    char    *p;
    size_t   len;

    len = strlen(s);
    p = malloc(len ? len : 1);
    memcpy(p, s, len);

    return (us_str_t) { len, (uint8_t *) p };
}


static void
text_free(us_str_t s)
{
    free((void *) s.data);
}


static int
is(us_str_t s, const char *expected)
{
    return s.len == strlen(expected)
           && memcmp(s.data, expected, s.len) == 0;
}


static void
args(void **state)
{
    int       i;
    us_str_t  query, name;

    static const struct {
        const char       *query;
        us_args_fault_t   fault;
        const char       *name;
    } cases[] = {
        { "", US_ARGS_OK, "" },
        { "&&", US_ARGS_OK, "" },
        { "url=1", US_ARGS_OK, "" },
        { "url=1&base=", US_ARGS_OK, "" },
        { "base=1&&url=2&", US_ARGS_OK, "" },
        { "last=u=v", US_ARGS_OK, "" },
        { "urls=1", US_ARGS_UNKNOWN, "urls" },
        { "ur=1", US_ARGS_UNKNOWN, "ur" },
        { "URL=1", US_ARGS_UNKNOWN, "URL" },
        { "=1", US_ARGS_UNKNOWN, "" },
        { "url base=1", US_ARGS_UNKNOWN, "url base" },
        { "url=1&x", US_ARGS_UNKNOWN, "x" },
        { "url", US_ARGS_NO_VALUE, "url" },
        { "base=1&url&last=3", US_ARGS_NO_VALUE, "url" },
        { "url=1&url=1", US_ARGS_TWICE, "url" },
        { "last=&base=1&last=", US_ARGS_TWICE, "last" },
        { "sites=1&url=2", US_ARGS_OK, "" },
        { "sites=0", US_ARGS_OK, "" },
        { "sites=", US_ARGS_OK, "" },
        { "base=1&sites=2&url=3", US_ARGS_FLAG, "sites=2" },
        { "sites=10", US_ARGS_FLAG, "sites=10" },
        { "sites=true", US_ARGS_FLAG, "sites=true" },
        { "url=1&site=2", US_ARGS_UNKNOWN, "site" },
    };

    for (i = 0; i < (int) (sizeof(cases) / sizeof(cases[0])); i++) {
        query = text(cases[i].query);

        assert_int_equal(us_args_check(query, "url base last sites", &name),
                         cases[i].fault);

        if (cases[i].fault != US_ARGS_OK) {
            assert_true(is(name, cases[i].name));
        }

        text_free(query);
    }

    assert_int_equal(us_args_check(us_string("a=1"), "", &name),
                     US_ARGS_UNKNOWN);
}


static void
find(void **state)
{
    us_str_t  query, value;

    query = text("xurl=0&url&url=&URL=1&url=2&b=%41");

    assert_int_equal(us_args_find(query, "url", &value), 1);
    assert_true(is(value, ""));
    assert_int_equal(us_args_find(query, "b", &value), 1);
    assert_true(is(value, "%41"));
    assert_int_equal(us_args_find(query, "rl", &value), 0);
    assert_int_equal(us_args_find(query, "%41", &value), 0);
    text_free(query);

    query = text("a=1&b=0&c=&d=10&f");

    assert_int_equal(us_args_flag(query, "a"), 1);
    assert_int_equal(us_args_flag(query, "b"), 0);
    assert_int_equal(us_args_flag(query, "c"), 0);
    assert_int_equal(us_args_flag(query, "d"), 0);
    assert_int_equal(us_args_flag(query, "f"), 0);
    assert_int_equal(us_args_flag(query, "g"), 0);
    text_free(query);
}


static us_id_rc_t
id(const char *s, uint64_t *n)
{
    us_str_t    t;
    us_id_rc_t  rc;

    t = text(s);
    rc = us_id_parse(t, n);
    text_free(t);

    return rc;
}


static void
ids(void **state)
{
    uint64_t  n;

    assert_int_equal(id("0", &n), US_ID_OK);
    assert_int_equal(n, 0);
    assert_int_equal(id("9007199254740993", &n), US_ID_OK);
    assert_int_equal(n, 9007199254740993);
    assert_int_equal(id("10000000000000000", &n), US_ID_NEVER);
    assert_int_equal(id("99999999999999999999999999999999999999", &n),
                     US_ID_NEVER);
    assert_int_equal(n, UINT64_MAX);

    assert_int_equal(id("", &n), US_ID_BAD);
    assert_int_equal(id("00", &n), US_ID_BAD);
    assert_int_equal(id("07", &n), US_ID_BAD);
    assert_int_equal(id("-1", &n), US_ID_BAD);
    assert_int_equal(id("1 ", &n), US_ID_BAD);
    assert_int_equal(id("1/", &n), US_ID_BAD);
    assert_int_equal(id("1:", &n), US_ID_BAD);
    assert_int_equal(id("99999999999999999999x", &n), US_ID_BAD);

    /* what is meant to be one, even if it is none */

    assert_int_equal(us_id_digits(us_string("0")), 1);
    assert_int_equal(us_id_digits(us_string("0099999999999999999999")), 1);
    assert_int_equal(us_id_digits(us_string("")), 0);
    assert_int_equal(us_id_digits(us_string("7a")), 0);
    assert_int_equal(us_id_digits(us_string("/7")), 0);
    assert_int_equal(us_id_digits(us_string("7:")), 0);
}


/* refused input in a log: one line, whatever its bytes are */

static void
escaped(void **state)
{
    unsigned  i;
    char      text[4 * 256 + 1];
    uint8_t   all[256];

    *us_put_escaped((uint8_t *) text, us_string("a \"\\\n\x7f\xff~!")) = '\0';
    assert_string_equal(text, "a\\x20\\x22\\x5c\\x0a\\x7f\\xff~!");

    for (i = 0; i < 256; i++) {
        all[i] = i;
    }

    i = us_put_escaped((uint8_t *) text, (us_str_t) { 256, all })
        - (uint8_t *) text;

    /* 94 characters are printable; two of them are escaped all the same */

    assert_int_equal(i, 92 + 4 * (256 - 92));
    assert_null(memchr(text, '\n', i));
}


/* ids of shard 3 at that shard */

static void
ids_of_a_shard(void **state)
{
    uint64_t  n, first;

    first = (uint64_t) 3 << 40;

    assert_int_equal(us_id_parse_shard(us_string("3298534883328"), first, &n),
                     US_ID_OK);
    assert_int_equal(n, 0);
    assert_int_equal(us_id_parse_shard(us_string("4398046511103"), first, &n),
                     US_ID_OK);
    assert_int_equal(n, US_LOCAL_MAX);
    assert_int_equal(us_id_parse_shard(us_string("4398046511104"), first, &n),
                     US_ID_MOVED);
    assert_int_equal(us_id_parse_shard(us_string("3298534883327"), first, &n),
                     US_ID_MOVED);
    assert_int_equal(us_id_parse_shard(us_string("7"), first, &n),
                     US_ID_MOVED);
    assert_int_equal(us_id_parse_shard(us_string("7"), 0, &n), US_ID_OK);
    assert_int_equal(n, 7);
    assert_int_equal(us_id_parse_shard(us_string("07"), first, &n), US_ID_BAD);
    assert_int_equal(us_id_parse_shard(us_string("99999999999999999"), first,
                                       &n), US_ID_NEVER);
}


static void
bodies(void **state)
{
    int                i, rc;
    us_str_t           type;
    us_input_format_t  format;

    static const struct {
        const char         *type;
        int                 rc;
        us_input_format_t   format;
        us_format_t         reply;
    } cases[] = {
        { "text/plain", 0, US_INPUT_TEXT, US_FORMAT_TEXT },
        { "Text/PLAIN; charset=utf-8", 0, US_INPUT_TEXT, US_FORMAT_TEXT },
        { "application/json ;x", 0, US_INPUT_JSON, US_FORMAT_JSON },
        { "application/x-ndjson", 0, US_INPUT_NDJSON, US_FORMAT_NDJSON },
        { "application/ndjson", 0, US_INPUT_NDJSON, US_FORMAT_NDJSON },
        { "application/jsonl", 0, US_INPUT_NDJSON, US_FORMAT_NDJSON },
        { "application/x-www-form-urlencoded", 0, US_INPUT_FORM,
          US_FORMAT_JSON },
        { "", -1, 0, 0 },
        { ";", -1, 0, 0 },
        { "text", -1, 0, 0 },
        { "text/*", -1, 0, 0 },
        { "text/plainer", -1, 0, 0 },
        { "application/jso", -1, 0, 0 },
    };

    for (i = 0; i < (int) (sizeof(cases) / sizeof(cases[0])); i++) {
        type = text(cases[i].type);
        rc = us_media_body(type, &format);

        assert_int_equal(rc, cases[i].rc);

        if (rc == 0) {
            assert_int_equal(format, cases[i].format);
            assert_int_equal(us_media_reply(format), cases[i].reply);
        }

        text_free(type);
    }
}


static void
accepts(void **state)
{
    int       i;
    us_str_t  accept;

    static const struct {
        const char   *accept;
        us_format_t   preset;
        us_format_t   format;
    } cases[] = {
        { "", US_FORMAT_NDJSON, US_FORMAT_NDJSON },
        { "application/json", US_FORMAT_TEXT, US_FORMAT_JSON },
        { "APPLICATION/Json", US_FORMAT_TEXT, US_FORMAT_JSON },
        { "text/*", US_FORMAT_JSON, US_FORMAT_TEXT },
        { "*/*", US_FORMAT_NDJSON, US_FORMAT_NDJSON },
        { "application/*", US_FORMAT_NDJSON, US_FORMAT_NDJSON },
        { "application/*", US_FORMAT_TEXT, US_FORMAT_TEXT },
        { "application/*,application/json;q=.1", US_FORMAT_TEXT,
          US_FORMAT_TEXT },
        { "application/*, application/json;q=0.1", US_FORMAT_TEXT,
          US_FORMAT_JSON },
        { "image/png", US_FORMAT_JSON, US_FORMAT_JSON },
        { "text/plain;q=0.5, application/jsonl;q=0.501", US_FORMAT_JSON,
          US_FORMAT_NDJSON },
        { "text/plain;q=0.5,application/json;q=0.5", US_FORMAT_NDJSON,
          US_FORMAT_TEXT },
        { "text/plain;q=0", US_FORMAT_JSON, US_FORMAT_JSON },
        { "text/plain;q=0;1", US_FORMAT_JSON, US_FORMAT_JSON },
        { "text/plain;q=0.0001", US_FORMAT_JSON, US_FORMAT_JSON },
        { "text/plain ; x=1 ; Q=1.0", US_FORMAT_JSON, US_FORMAT_TEXT },
        { "text/plain;q=", US_FORMAT_JSON, US_FORMAT_TEXT },
        { "text/plain;q=9", US_FORMAT_JSON, US_FORMAT_JSON },
        { "text/html,\ttext/plain;q=0.9,*/*;q=0.8", US_FORMAT_JSON,
          US_FORMAT_TEXT },
        { ",,text/plain", US_FORMAT_JSON, US_FORMAT_TEXT },
    };

    for (i = 0; i < (int) (sizeof(cases) / sizeof(cases[0])); i++) {
        accept = text(cases[i].accept);

        assert_int_equal(us_media_accept(accept, cases[i].preset),
                         cases[i].format);
        text_free(accept);
    }

    assert_true(is(us_media_type(US_FORMAT_TEXT), "text/plain"));
    assert_true(is(us_media_type(US_FORMAT_JSON), "application/json"));
    assert_true(is(us_media_type(US_FORMAT_NDJSON), "application/x-ndjson"));
}


static void
origins(void **state)
{
    int       i;
    us_str_t  origin, host;

    static const struct {
        const char  *origin;
        int          valid;
    } valid[] = {
        { "*", 1 }, { "https://a", 1 }, { "https://a:8", 1 },
        { "x://[::1]", 1 }, { "", 0 }, { "a", 0 }, { "://a", 0 },
        { "https://", 0 }, { "https://a/", 0 }, { "https:/a", 0 },
        { "**", 0 },
    };

    static const struct {
        const char  *origin;
        const char  *host;
        int          own;
    } hosts[] = {
        { "http://a", "a", 1 }, { "https://a", "a", 1 },
        { "HTTP://A", "a", 1 }, { "http://a", "a:80", 1 },
        { "https://a", "a:443", 1 }, { "http://a:8", "a:8", 1 },
        { "http://a", "a:443", 0 }, { "https://a", "a:80", 0 },
        { "http://a", "b", 0 }, { "http://ab", "a", 0 },
        { "http://a:80", "a:80", 0 }, { "ftp://a", "a", 0 },
        { "null", "null", 0 }, { "http://", "", 0 }, { "http://", ":80", 0 },
        { "http", "http", 0 }, { "a", "a", 0 },
    };

    for (i = 0; i < (int) (sizeof(valid) / sizeof(valid[0])); i++) {
        origin = text(valid[i].origin);
        assert_int_equal(us_origin_valid(origin), valid[i].valid);
        text_free(origin);
    }

    for (i = 0; i < (int) (sizeof(hosts) / sizeof(hosts[0])); i++) {
        origin = text(hosts[i].origin);
        host = text(hosts[i].host);
        assert_int_equal(us_origin_is_host(origin, host), hosts[i].own);
        text_free(origin);
        text_free(host);
    }

    assert_true(us_origin_matches(us_string("*"), us_string("null")));
    assert_true(us_origin_matches(us_string("http://A"),
                                  us_string("HTTP://a")));
    assert_false(us_origin_matches(us_string("http://a"),
                                   us_string("http://a:8")));
    assert_false(us_origin_matches(us_string("http://*"),
                                   us_string("http://a")));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(args),
        cmocka_unit_test(find),
        cmocka_unit_test(ids),
        cmocka_unit_test(ids_of_a_shard),
        cmocka_unit_test(escaped),
        cmocka_unit_test(bodies),
        cmocka_unit_test(accepts),
        cmocka_unit_test(origins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
