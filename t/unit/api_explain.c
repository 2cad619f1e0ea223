
/*
 * /normalize: the parts of a URL, the steps that made it, and its spelling.
 */


#include "store_zone.h"
#include "api/us_list.h"


static us_norm_t     *norm;
static us_norm_ws_t  *ws;


static us_canon_t
canonical(const char *url)
{
    us_canon_t  canon;

    assert_int_equal(us_normalize(norm, ws, (us_str_t) { strlen(url),
                                                    (const uint8_t *) url },
                                  NULL, &canon), US_URL_OK);

    return canon;
}


static void
parts_are(const char *url, const char *expected)
{
    uint8_t     *p, *end;
    us_canon_t   canon;

    canon = canonical(url);

    p = malloc(us_explain_max(canon.url.href.len));
    end = us_explain_parts(p, &canon);

    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);
    free(p);
}


static void
parts(void **state)
{
    parts_are("http://a.com:81/x/y.html?q=1",
              "{\"url\":\"http://a.com:81/x/y.html?q=1\","
              "\"scheme\":\"http\",\"host\":\"a.com\",\"port\":81,"
              "\"path\":\"/x/y.html\",\"file\":\"y.html\",\"query\":\"q=1\"");
    parts_are("https://a.com/",
              "{\"url\":\"https://a.com/\",\"scheme\":\"https\","
              "\"host\":\"a.com\",\"port\":null,\"path\":\"/\","
              "\"file\":null,\"query\":null");
}


static void
steps(void **state)
{
    size_t    n;
    uint8_t  *p, *end;
    us_str_t  name, before, after;

    static const char  expected[] = ",\"steps\":["
        "{\"step\":\"a\",\"before\":\"\\\"\",\"after\":\"\\ufffd\"},"
        "{\"step\":\"a\",\"before\":\"\\\"\",\"after\":\"\\ufffd\","
        "\"first\":18446744073709551615}]";

    name = us_string("a");
    before = us_string("\"");
    after = us_string("\xff");

    n = US_EXPLAIN_STEPS + 2 * us_explain_step_max(1, 1, 1)
        + US_EXPLAIN_FIRST;

    p = malloc(n);
    end = us_explain_begin(p);
    assert_true(end - p <= US_EXPLAIN_STEPS);
    end = us_explain_step(end, name, before, after);
    end = us_explain_step(end, name, before, after);
    end = us_explain_first(end, UINT64_MAX);

    assert_int_equal(end - p, sizeof(expected) - 1);
    assert_memory_equal(p, expected, end - p);
    free(p);
}


/* text is what url becomes: by respell() its parts are those of the text */

static void
spelt(us_store_t *s, const char *url, const char *expected, uint64_t id)
{
    uint8_t     *buf;
    uint64_t     first;
    us_str_t     text;
    us_canon_t   canon, other;

    canon = canonical(url);
    buf = malloc(canon.url.href.len + US_EXPLAIN_SPELL);

    if (expected == NULL) {
        assert_int_equal(us_explain_spelling(s, &canon, buf, &text, &first),
                         0);
        free(buf);
        return;
    }

    assert_int_equal(us_explain_spelling(s, &canon, buf, &text, &first), 1);
    assert_int_equal(first, id);
    assert_int_equal(text.len, strlen(expected));
    assert_memory_equal(text.data, expected, text.len);

    us_explain_respell(&canon.url, text);
    other = canonical(expected);

    assert_int_equal(canon.url.protocol_end, other.url.protocol_end);
    assert_int_equal(canon.url.username_end, other.url.username_end);
    assert_int_equal(canon.url.host_start, other.url.host_start);
    assert_int_equal(canon.url.host_end, other.url.host_end);
    assert_int_equal(canon.url.pathname_start, other.url.pathname_start);
    assert_int_equal(canon.url.search_start, other.url.search_start);
    assert_int_equal(canon.url.hash_start, other.url.hash_start);

    free(buf);
}


static void
spelling(void **state)
{
    zone_t           *z;
    us_store_item_t   it;

    zone_conf.schemes_first = 1;
    z = zone_create(4 << 20, 0);
    zone_conf.schemes_first = 0;

    it = item("https://www.a.com/x?q", 0);
    it.merge = 1;
    us_store_add(z->store, &it, 1);
    it = item("http://b.com/", 0);
    it.merge = 1;
    us_store_add(z->store, &it, 1);

    /* known: as it was seen first */

    spelt(z->store, "http://a.com/x?q", "https://www.a.com/x?q", 0);
    spelt(z->store, "http://www.a.com/x?q", "https://www.a.com/x?q", 0);
    spelt(z->store, "https://www.a.com/x?q", NULL, 0);
    spelt(z->store, "https://www.b.com/", "http://b.com/", 1);

    /* not known: www as the site has it */

    spelt(z->store, "http://a.com/new", "http://www.a.com/new", 0);
    spelt(z->store, "http://www.b.com/y?z", "http://b.com/y?z", 1);
    spelt(z->store, "http://c.com/", NULL, 0);

    zone_destroy(z);
}


static int
setup(void **state)
{
    norm = us_norm_create(US_PROFILE_CRAWLER);
    us_norm_set_www(norm, US_WWW_FIRST);
    ws = us_norm_ws_create(norm);

    return norm && ws ? 0 : -1;
}


static int
teardown(void **state)
{
    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(steps),
        cmocka_unit_test(spelling),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
