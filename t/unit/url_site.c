
/*
 * Sites: which hosts are spellings of one, and that the bitmap in front of
 * the list of public suffixes never changes its answer.
 */


#include "corpus.h"
#include "url_norm.h"
#include "url/us_site.h"
#include "url/us_suffix_data.h"


#define LINES  60000


static us_site_t       *site;
static us_site_memo_t   memo;


static int
load(void **state)
{
    site = us_site_create();

    if (site == NULL) {
        return -1;
    }

    memset(&memo, 0, sizeof(memo));

    return 0;
}


static int
unload(void **state)
{
    us_site_destroy(site);

    return 0;
}


/* the same answer for both spellings */

static void
merged(const char *host, int want)
{
    char  www[300];

    snprintf(www, sizeof(www), "www.%s", host);

    if (us_site_merge(site, str(host), &memo) != want
        || us_site_merge(site, str(www), &memo) != want)
    {
        fail_msg("%s: %d, %s: %d, not %d", host,
                 us_site_merge(site, str(host), &memo), www,
                 us_site_merge(site, str(www), &memo), want);
    }
}


static void
sites(void **state)
{
    merged("example.com", 1);
    merged("sub.example.com", 1);
    merged("example.co.uk", 1);
    merged("xn--bcher-kva.de", 1);
    merged("blog.github.io", 1);
    merged("a.b", 1);
    merged("1.2.3.4.com", 1);
    merged("4.com", 1);
    merged("4x.4y", 1);

    /* public suffixes: www.co.uk is not "co.uk with www" */

    merged("com", 0);
    merged("co.uk", 0);
    merged("github.io", 0);
    merged("netlify.app", 0);
    merged("xn--55qx5d.cn", 0);

    /* *.ck is a suffix, www.ck is not (and is no www of ck) */

    merged("foo.ck", 0);
    merged("bar.foo.ck", 1);
    merged("city.kobe.jp", 1);
    merged("other.kobe.jp", 0);
    merged("a.other.kobe.jp", 1);

    /* addresses, dots, www of www */

    merged("127.0.0.1", 0);
    merged("1.2", 0);
    merged("[::1]", 0);
    merged("localhost", 0);
    merged("example.com.", 0);
    merged(".example.com", 0);
    merged("..", 0);
    merged("", 0);
    merged("www.www.example.com", 0);

    assert_int_equal(us_site_merge(site, str("www.www.example.com"), &memo), 0);
    assert_int_equal(us_site_merge(site, str("www.ck"), &memo), 0);
    assert_int_equal(us_site_merge(site, str("www."), &memo), 0);
}


/* the last host's answer serves that host only, in each spelling */

static void
again(void **state)
{
    int          k;
    size_t       i;
    char         host[80];
    us_str_t     name;

    static const struct {
        const char  *host;
        int          want;
    } list[] = {
        { "b.uk", 1 }, { "co.uk", 0 }, { "bo.uk", 1 }, { "co.uk.b.de", 1 },
        { "co.uk", 0 }, { "", 0 }, { "example.com", 1 }, { "", 0 },
        { "www.example.com", 1 }, { "www.www.example.com", 0 }
    };

    for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        for (k = 0; k < 3; k++) {
            assert_int_equal(us_site_merge(site, str(list[i].host), &memo),
                             list[i].want);
        }
    }

    /* around the longest host that is remembered */

    memset(host, 'a', sizeof(host));
    memcpy(host + 3, ".de", 3);
    name.data = (uint8_t *) host;

    for (name.len = 60; name.len < 66; name.len++) {
        for (k = 0; k < 2; k++) {
            host[name.len - 3] = '.';
            assert_int_equal(us_site_merge(site, name, &memo), 1);

            host[name.len - 1] = '.';
            assert_int_equal(us_site_merge(site, name, &memo), 0);

            assert_true(memo.last.len <= sizeof(memo.last.name));

            memset(host + name.len - 3, 'a', 3);
        }
    }
}


static void
exceptions(void **state)
{
    assert_int_equal(us_site_except(site, str("Example.COM")), 0);
    assert_int_equal(us_site_except(site, str("www.pony.at")), 0);
    assert_int_equal(us_site_except(site, str("WWW.Pony.NET")), 0);
    assert_int_equal(us_site_except(site, str("a.org")), 0);
    assert_int_equal(us_site_except(site, str("a.org")), 0);

    merged("example.com", 0);
    merged("pony.at", 0);
    merged("pony.net", 0);
    merged("a.org", 0);
    merged("b.org", 1);
    merged("sub.example.com", 1);
}


/* the list without bitmap, order or memory */

static int
listed(const us_suffixes_t *group, const char *name)
{
    size_t          len;
    uint32_t        k;
    const uint8_t  *p;

    len = strlen(name);

    for (k = 0; len <= US_SUFFIX_MAX && k < group[len].n; k++) {
        p = us_suffix_names + group[len].at + k * len;

        if (memcmp(p, name, len) == 0) {
            return 1;
        }
    }

    return 0;
}


/* "www.www.x" is no spelling of "www.x" */

static int
reference(const char *rest)
{
    const char  *dot;

    dot = strchr(rest, '.');

    return strncmp(rest, "www.", 4) != 0 && !listed(us_suffix_rule, rest)
           && (dot == NULL || !listed(us_suffix_wild, dot + 1)
               || listed(us_suffix_except, rest));
}


/* every rule of the list, and its neighbours */

static void
filter_on_rules(void **state)
{
    char      host[300];
    size_t    i, len, n;
    uint32_t  k;

    static const us_suffixes_t *const  groups[] = {
        us_suffix_rule, us_suffix_wild, us_suffix_except
    };

    for (n = 0, i = 0; i < 3; i++) {
        for (len = 1; len <= US_SUFFIX_MAX; len++) {
            for (k = 0; k < groups[i][len].n; k++) {
                snprintf(host, sizeof(host), "x.%.*s", (int) len,
                         us_suffix_names + groups[i][len].at + k * len);
                merged(host, reference(host));

                if (strchr(host + 2, '.')) {
                    merged(host + 2, reference(host + 2));
                    n++;
                }
            }
        }
    }

    assert_true(n > 5000);
}


/* the hosts of a corpus that has hardly one twice */

static void
filter_on_hosts(void **state)
{
    FILE           *f;
    char           *line, *rest;
    size_t          size, n, suffixes;
    us_str_t        in, host;
    us_canon_t      out;

    open_profile(US_PROFILE_CRAWLER);

    f = corpus_open("tweetfeed_iocs", LINES, 0);
    line = NULL;
    size = 0;
    suffixes = 0;

    for (n = 0; getline(&line, &size, f) > 0; n++) {
        in.data = (uint8_t *) line;
        in.len = strcspn(line, "\n");

        if (us_normalize(norm, ws, in, NULL, &out) != US_URL_OK) {
            continue;
        }

        host = us_url_hostname(&out.url);
        rest = strndup((char *) host.data, host.len);
        assert_non_null(rest);

        if (strncmp(rest, "www.", 4) == 0) {
            memmove(rest, rest + 4, strlen(rest) - 3);
        }

        if (out.merge) {
            if (!reference(rest)) {
                fail_msg("%s is a public suffix", rest);
            }

        } else {
            suffixes++;
            if (reference(rest) && strchr(rest, '.')
                && strspn(rest, "0123456789.") < strlen(rest))
            {
                fail_msg("%s is no public suffix", rest);
            }
        }

        free(rest);
    }

    assert_int_equal(n, LINES);
    assert_true(suffixes > 0);

    corpus_close(f);
    free(line);
    teardown(NULL);
}


int
main(void)
{
#define T(f)  cmocka_unit_test_setup_teardown(f, load, unload)

    const struct CMUnitTest  tests[] = {
        T(sites), T(again), T(exceptions), T(filter_on_rules),
        T(filter_on_hosts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
