
/*
 * Sites as clients name them, and the replies of /site, /prefix and /health.
 */


#include "us_base.h"
#include "api/us_figures.h"
#include "api/us_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>


static us_norm_t     *norm;
static us_norm_ws_t  *ws;


static int
setup(void **state)
{
    norm = us_norm_create(US_PROFILE_CRAWLER);
    ws = us_norm_ws_create(norm);

    return 0;
}


static int
teardown(void **state)
{
    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return 0;
}


/* key: NULL, if it is no host; in memory of its own, as it came */

static void
site_is(const char *name, const char *key)
{
    int          rc;
    us_str_t     text, got;
    uint8_t     *p;
    us_canon_t   canon;
    uint8_t      buf[US_LOOKUP_BUF];

    text.len = strlen(name);
    p = malloc(text.len);
    text.data = memcpy(p, name, text.len);

    rc = us_lookup_site(norm, ws, text, buf, &canon);
    free(p);

    assert_int_equal(rc, key ? 0 : -1);

    if (key) {
        got = us_canon_site(&canon);
        assert_int_equal(got.len, strlen(key));
        assert_memory_equal(got.data, key, got.len);
    }
}


static void
sites(void **state)
{
    size_t  len;
    char    name[US_LOOKUP_NAME + 2];

    site_is("example.com", "example.com");
    site_is("www.example.com", "example.com");
    site_is("WWW.Example.COM", "example.com");
    site_is("example.com:80", "example.com");
    site_is("www.example.com:8080", "example.com:8080");
    site_is("www.co.uk", "www.co.uk");
    site_is("b\xc3\xbc" "cher.de", "xn--bcher-kva.de");
    site_is("192.0.2.1", "192.0.2.1");
    site_is("[2001:DB8::1]:81", "[2001:db8::1]:81");

    site_is("", NULL);
    site_is("a/b", NULL);
    site_is("user@a", NULL);
    site_is("a b", NULL);
    site_is("a:99999", NULL);
    site_is(":80", NULL);

    /* the longest that is looked at, in a buffer that is just as long */

    for (len = US_LOOKUP_NAME - 1; len <= US_LOOKUP_NAME + 1; len++) {
        memset(name, 'a', len);
        name[len] = '\0';
        name[len - 2] = ':';
        name[len - 1] = len > US_LOOKUP_NAME ? '1' : 'x';
        site_is(name, NULL);
    }
}


static void
is(uint8_t *p, uint8_t *end, const char *expected)
{
    assert_int_equal(end - p, strlen(expected));
    assert_memory_equal(p, expected, end - p);
    free(p);
}


static void
site_reply(const char *key, unsigned spelling, int counts,
    const char *expected)
{
    us_str_t         k;
    uint8_t         *p;
    us_store_site_t  site;

    k.data = (const uint8_t *) key;
    k.len = strlen(key);

    memset(&site, 0, sizeof(site));
    site.first = 7;
    site.spelling = spelling;
    site.urls = 3;
    site.last = 12;

    p = malloc(us_lookup_site_max(k.len));
    is(p, us_lookup_site_reply(p, k, &site, counts), expected);
}


static void
site_replies(void **state)
{
    site_reply("a.com", 0, 0,
               "{\"site\":\"a.com\",\"first\":7,\"spelling\":\"a.com\","
               "\"www\":false}\n");
    site_reply("a.com", US_SPELLING_WWW|US_SPELLING_HTTPS, 1,
               "{\"site\":\"a.com\",\"first\":7,\"spelling\":\"www.a.com\","
               "\"www\":true,\"urls\":3,\"last\":12}\n");
    site_reply("a\"b", US_SPELLING_WWW, 0,
               "{\"site\":\"a\\\"b\",\"first\":7,"
               "\"spelling\":\"www.a\\\"b\",\"www\":true}\n");
}


static void
prefix_reply(us_format_t format, const us_str_t *url, const char *expected)
{
    uint8_t  *p;

    p = malloc(us_lookup_url_max(url ? url->len : 0));
    is(p, us_lookup_prefix_reply(p, format, 18446744073709551614u, url),
       expected);
}


static void
prefix_replies(void **state)
{
    us_str_t  url;

    url = us_string("http://a/\"");

    prefix_reply(US_FORMAT_TEXT, &url,
                 "18446744073709551614\tseen\thttp://a/\"\n");
    prefix_reply(US_FORMAT_TEXT, NULL, "-\tunseen\t-\n");
    prefix_reply(US_FORMAT_JSON, &url, "{\"id\":18446744073709551614,"
                 "\"status\":\"seen\",\"url\":\"http://a/\\\"\"}\n");
    prefix_reply(US_FORMAT_NDJSON, NULL,
                 "{\"id\":null,\"status\":\"unseen\",\"url\":null}\n");
}


static uint64_t
now(void *data)
{
    return 5432;
}


static void
health_is(us_format_t format, const us_life_t *l, const char *expected)
{
    uint8_t  *p;

    p = malloc(US_HEALTH_TEXT);
    is(p, us_health(p, format, "replica", 0, 1, 1763800000000, l), expected);
}


static void
health(void **state)
{
    uint8_t     *p, *end;
    us_life_t   *l;
    us_share_t  *sh;

    static const us_primary_t         primary;
    static const us_replicate_conf_t  conf = { .node = "b" };

    health_is(US_FORMAT_TEXT, NULL, "replica\n");
    health_is(US_FORMAT_JSON, NULL, "{\"status\":\"replica\","
              "\"writable\":false,\"full\":true,\"epoch\":1763800000000}\n");

    l = calloc(1, sizeof(us_life_t));
    sh = calloc(1, sizeof(us_share_t));
    l->sh = sh;
    l->env.now = now;
    l->conf.follow = &primary;
    sh->state = US_LIFE_REPLICA;
    sh->load_lsn = 100;
    sh->replica.published = 150;

    health_is(US_FORMAT_JSON, l, "{\"status\":\"replica\","
              "\"writable\":false,\"full\":true,\"epoch\":1763800000000,"
              "\"connected\":false,\"lsn\":100,\"primary_lsn\":150,"
              "\"lag_bytes\":50,\"lag_seconds\":null}\n");

    sh->replica.connected = 1;
    sh->replica.level = 5400 - 1000;
    snprintf(sh->reason, US_SHARE_REASON, "a \"b\"");

    health_is(US_FORMAT_JSON, l, "{\"status\":\"replica\","
              "\"writable\":false,\"full\":true,\"epoch\":1763800000000,"
              "\"connected\":true,\"lsn\":100,\"primary_lsn\":150,"
              "\"lag_bytes\":50,\"lag_seconds\":1.032,"
              "\"reason\":\"a \\\"b\\\"\"}\n");

    /* what another server says, each byte of it escaped, has room */

    memset(sh->reason, 1, US_SHARE_REASON - 1);
    sh->load_lsn = UINT64_MAX;
    sh->replica.published = UINT64_MAX;
    p = malloc(US_HEALTH_TEXT);
    end = us_health(p, US_FORMAT_JSON, "replica", 1, 0, UINT64_MAX, l);
    assert_true(end - p > 6 * (US_SHARE_REASON - 1));
    free(p);

    /* a node of a replicated log, whose names are as hostile */

    l->conf.follow = NULL;
    l->conf.replicate = &conf;
    sh->state = US_LIFE_STANDBY;
    sh->replicate.term = 7;
    sh->replicate.end = 120;
    sh->load_placed = 1;
    sh->load_lsn = 100;
    sh->reason[0] = '\0';

    health_is(US_FORMAT_JSON, l, "{\"status\":\"replica\","
              "\"writable\":false,\"full\":true,\"epoch\":1763800000000,"
              "\"node\":\"b\",\"holder\":\"\",\"term\":7,"
              "\"lag_bytes\":20}\n");

    memset(sh->reason, 1, US_SHARE_REASON - 1);
    memset(sh->replicate.holder, 1, US_REPLOG_HOLDER);
    sh->replicate.term = UINT64_MAX;
    sh->replicate.end = UINT64_MAX;
    p = malloc(US_HEALTH_TEXT);
    end = us_health(p, US_FORMAT_JSON, "standby", 1, 0, UINT64_MAX, l);
    assert_true(end - p > 6 * (US_SHARE_REASON + US_REPLOG_HOLDER - 2));
    free(p);

    free(sh);
    free(l);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sites),
        cmocka_unit_test(site_replies),
        cmocka_unit_test(prefix_replies),
        cmocka_unit_test(health),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
