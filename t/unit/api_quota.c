
/*
 * Quotas: rates, bursts, and buckets that drain by a clock of the test's own.
 */


#include "api/us_quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


#define URL  3600000                  /* units */


static us_str_t
str(const char *s)
{
    return (us_str_t) { strlen(s), (const uint8_t *) s };
}


static void
rates(void **state)
{
    size_t    i;
    uint64_t  n;

    static const char *const  bad[] = {
        "", "/", "/s", "1", "1s", "1/", "0/s", "1/d", "1/S", "-1/s", "1.5/s",
        "r/s", "1rr/s", "1 /s", "1000000001/s", "99999999999999999999999/h"
    };

    assert_int_equal(us_quota_rate(str("1/h"), &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(us_quota_rate(str("7/m"), &n), 0);
    assert_int_equal(n, 7 * 60);
    assert_int_equal(us_quota_rate(str("20r/s"), &n), 0);
    assert_int_equal(n, 20 * 3600);
    assert_int_equal(us_quota_rate(str("1000000000/s"), &n), 0);
    assert_int_equal(n, 3600000000000);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(us_quota_rate(str(bad[i]), &n), -1);
    }

    assert_int_equal(us_quota_burst(str("0"), &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(us_quota_burst(str("1000000000"), &n), 0);
    assert_int_equal(n, 1000000000ull * URL);
    assert_int_equal(us_quota_burst(str("1000000001"), &n), -1);
    assert_int_equal(us_quota_burst(str(""), &n), -1);
    assert_int_equal(us_quota_burst(str("-1"), &n), -1);
    assert_int_equal(us_quota_burst(str("5k"), &n), -1);
}


static void
drains(void **state)
{
    uint64_t     rate, a, b;
    us_quota_t   q;
    us_bucket_t  buckets[16];

    memset(buckets, 0, sizeof(buckets));
    memset(&q, 7, sizeof(q));
    us_quota_init(&q, buckets, sizeof(buckets));
    assert_int_equal(q.rows, 2);

    assert_int_equal(us_quota_rate(str("1/s"), &rate), 0);

    a = us_quota_tag(&q, str("a"));
    b = us_quota_tag(&q, str("b"));
    assert_int_not_equal(a, b);
    assert_int_equal(a, us_quota_tag(&q, str("a")));

    assert_int_equal(us_quota_level_locked(&q, rate, a, 1000), 0);
    us_quota_charge_locked(&q, rate, a, 1000, 5);
    assert_int_equal(us_quota_level_locked(&q, rate, a, 1000), 5 * URL);
    assert_int_equal(us_quota_level_locked(&q, rate, b, 1000), 0);

    /* a clock that is late changes nothing */
    assert_int_equal(us_quota_level_locked(&q, rate, a, 900), 5 * URL);

    assert_int_equal(us_quota_level_locked(&q, rate, a, 1001),
                     5 * URL - 3600);
    assert_int_equal(us_quota_level_locked(&q, rate, a, 3000), 3 * URL);
    us_quota_charge_locked(&q, rate, a, 3500, 1);
    assert_int_equal(us_quota_level_locked(&q, rate, a, 3500),
                     3 * URL + URL / 2);
    assert_int_equal(us_quota_level_locked(&q, rate, a, 7000), 0);
    assert_int_equal(us_quota_level_locked(&q, rate, a, UINT64_MAX), 0);

    /* a charge has a bound: the level does not turn over */

    us_quota_charge_locked(&q, rate, b, 7000, UINT64_MAX);
    assert_int_equal(us_quota_level_locked(&q, rate, b, 7000),
                     (uint64_t) US_QUOTA_MAX * URL);
}


/* debts are neither lost in an overflow nor to those of others */

static void
debts(void **state)
{
    int          i;
    char         name[24];
    uint64_t     rate, debtor, level;
    us_quota_t   q;
    us_bucket_t  buckets[8];

    memset(buckets, 0, sizeof(buckets));
    memset(&q, 0, sizeof(q));
    us_quota_init(&q, buckets, sizeof(buckets));

    rate = 1;
    debtor = us_quota_tag(&q, str("debtor"));

    for (i = 0; i < 10000; i++) {
        us_quota_charge_locked(&q, rate, debtor, 1, UINT64_MAX);
    }

    level = us_quota_level_locked(&q, rate, debtor, 1);
    assert_true(level >= (uint64_t) 1 << 63);

    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "client %d", i);
        us_quota_charge_locked(&q, rate, us_quota_tag(&q, str(name)), 1,
                               i + 1);
    }

    assert_int_equal(us_quota_level_locked(&q, rate, debtor, 1), level);

    /* of the others, the one that came last took the lowest bucket */

    assert_int_equal(us_quota_level_locked(&q, rate,
                                           us_quota_tag(&q, str(name)), 1),
                     100 * URL);
    assert_int_equal(us_quota_level_locked(&q, rate,
                                           us_quota_tag(&q, str("client 50")),
                                           1), 0);
}


static void
waits(void **state)
{
    assert_int_equal(us_quota_wait(1, 0, 3600), 1);
    assert_int_equal(us_quota_wait(URL, 0, 3600), 1);
    assert_int_equal(us_quota_wait(URL + 1, 0, 3600), 2);
    assert_int_equal(us_quota_wait(5 * URL, 2 * URL, 3600), 3);
    assert_int_equal(us_quota_wait(URL, 0, 1), 3600);

    assert_int_equal(us_quota_urls(0), 0);
    assert_int_equal(us_quota_urls(1), 1);
    assert_int_equal(us_quota_urls(URL), 1);
    assert_int_equal(us_quota_urls(URL + 1), 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(rates),
        cmocka_unit_test(drains),
        cmocka_unit_test(debts),
        cmocka_unit_test(waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
