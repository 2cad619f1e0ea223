
/*
 * The site hash and the path hash: ranges, what they hash, and the load of
 * seven nodes on a corpus.
 */


#include "corpus.h"
#include "url_norm.h"
#include "url/us_two_hash.h"


#define LINES   100000
#define NODES   7


static us_two_hash_t
hash(const char *url)
{
    us_canon_t  canon;

    assert_int_equal(us_normalize(norm, ws, str(url), NULL, &canon),
                     US_URL_OK);

    return us_two_hash(&canon);
}


static int
same(us_two_hash_t a, us_two_hash_t b)
{
    return a.site == b.site && a.path == b.path;
}


/* by hand: 31 h + c, modulo the ranges */

static void
values(void **state)
{
    assert_int_equal(us_site_hash(us_string("")), 0);
    assert_int_equal(us_site_hash(us_string("a.b")), 97 * 961 + 46 * 31 + 98);
    assert_int_equal(us_path_hash(us_string("/")), 47);
    assert_int_equal(us_path_hash(us_string("/ab")),
                     (47 * 961 + 97 * 31 + 98) % 32768);

    /* bytes above 127 count as such */
    assert_int_equal(us_path_hash(us_string("\xff")), 255);

    assert_int_equal(hash("http://a.test/ab").path,
                     us_path_hash(us_string("/ab")));
    assert_int_equal(hash("http://a.test:81/ab?c=d").site,
                     us_site_hash(us_string("a.test:81")));
    assert_int_equal(hash("http://a.test:81/ab?c=d").path,
                     us_path_hash(us_string("/ab?c=d")));
}


/* what is one URL to the store goes to one node */

static void
spellings(void **state)
{
    assert_true(same(hash("http://www.example.com/x"),
                     hash("https://EXAMPLE.com:443/./x")));
    assert_true(same(hash("http://example.com"),
                     hash("http://example.com/#top")));
    assert_false(same(hash("http://example.com/x"),
                      hash("http://example.com/y")));
    assert_false(same(hash("http://example.com/x"),
                      hash("http://example.org/x")));

    /* www. is the site itself here */
    assert_int_equal(hash("http://www.com/").site,
                     us_site_hash(us_string("www.com")));
}


static void
loads(void **state)
{
    FILE           *f;
    char           *line;
    size_t          n, size, load[NODES];
    ssize_t         len;
    us_str_t        in;
    us_canon_t      canon;
    us_two_hash_t   h;

    /* nearly all of them are different */

    f = corpus_open("reddit_submissions", LINES, 0);

    memset(load, 0, sizeof(load));
    line = NULL;
    size = 0;
    n = 0;

    while ((len = getline(&line, &size, f)) > 0) {
        in.data = (uint8_t *) line;
        in.len = len - 1;

        if (us_normalize(norm, ws, in, NULL, &canon) != US_URL_OK) {
            continue;
        }

        h = us_two_hash(&canon);
        assert_true(h.site < 1 << 21 && h.path < 1 << 15);
        load[(h.site + h.path) % NODES]++;
        n++;
    }

    free(line);
    corpus_close(f);
    assert_true(n > 0.99 * LINES);

    /* four standard deviations of a uniform hash, sqrt(6 / n): 3.1 % */

    for (size_t i = 0; i < NODES; i++) {
        assert_true(load[i] * (double) NODES / n < 1.031);
        assert_true(load[i] * (double) NODES / n > 0.969);
    }
}


static int
setup(void **state)
{
    open_profile(US_PROFILE_CRAWLER);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(spellings),
        cmocka_unit_test(loads)
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
