
/*
 * Durations and times of requests: what is one, what is none.
 */


#include "us_base.h"
#include "us_text.h"
#include "api/us_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>


#define NONE  UINT64_MAX


typedef struct {
    const char  *text;
    uint64_t     value;               /* or NONE */
} case_t;


static const case_t  durations[] = {
    { "90s", 90 }, { "15m", 900 }, { "12h", 43200 }, { "30d", 2592000 },
    { "1y", 31536000 }, { "2w", 1209600 }, { "1M", 2592000 },
    { "1d12h", 129600 }, { "1h30", 3630 }, { "3600", 3600 }, { "0", 0 },
    { "0s", 0 }, { "1y1M1w1d1h1m1s", 34822861 }, { "007d", 604800 },
    { "1099511627776", 1099511627776 },
    { "", NONE }, { "d", NONE }, { "1x", NONE }, { "-1d", NONE },
    { "+1d", NONE }, { "1.5h", NONE }, { "1h1d", NONE }, { "1d1d", NONE },
    { "1 d", NONE }, { " 1d", NONE }, { "1d ", NONE }, { "10ms", NONE },
    { "1D", NONE }, { "1dx", NONE }, { "1s1", NONE }, { "0x10", NONE },
    { "1099511627777", NONE }, { "99999999999999999999d", NONE },
    { "1099511627776y", NONE }, { "34866y", NONE },
    { "34865y", 1099502640000 }, { "34865y34866d", NONE },
};


static const case_t  points[] = {
    { "0", 0 }, { "1763800098", 1763800098 },
    { "1970-01-01T00:00:00Z", 0 },
    { "2026-11-22T08:28:18Z", 1795336098 },
    { "2026-11-22t08:28:18z", 1795336098 },
    { "2026-11-22 08:28:18Z", 1795336098 },
    { "2026-11-22T08:28:18.999Z", 1795336098 },
    { "2026-11-22T09:28:18+01:00", 1795336098 },
    { "2026-11-22T02:58:18.5-05:30", 1795336098 },
    { "2024-02-29T00:00:00Z", 1709164800 },
    { "2000-02-29T23:59:60Z", 951868800 },
    { "2026-02-29T00:00:00Z", NONE }, { "2100-02-29T00:00:00Z", NONE },
    { "2026-04-31T00:00:00Z", NONE }, { "2026-13-01T00:00:00Z", NONE },
    { "2026-00-01T00:00:00Z", NONE }, { "2026-01-00T00:00:00Z", NONE },
    { "2026-01-01T24:00:00Z", NONE }, { "2026-01-01T00:60:00Z", NONE },
    { "2026-01-01T00:00:61Z", NONE }, { "2026-01-01T00:00:00", NONE },
    { "2026-01-01T00:00:00.Z", NONE }, { "2026-01-01T00:00:00+24:00", NONE },
    { "2026-01-01T00:00:00+0100", NONE }, { "2026-01-01T00:00Z", NONE },
    { "2026-01-01", NONE }, { "2026-1-1T00:00:00Z", NONE },
    { "1969-12-31T23:59:59Z", NONE }, { "1970-01-01T00:00:00+00:01", NONE },
    { "", NONE }, { "now", NONE }, { "-1", NONE }, { "1e9", NONE },
    { "1.5", NONE }, { "1099511627777", NONE }, { "2026-11-22T08:28:18Zx",
      NONE },
};


static us_str_t
str(const char *s)
{
    return (us_str_t) { strlen(s), (const uint8_t *) s };
}


static void
run(const case_t *cases, size_t n, int (*parse)(us_str_t, uint64_t *))
{
    int       rc;
    char     *copy;
    size_t    i;
    uint64_t  s;

    for (i = 0; i < n; i++) {

        /* without the byte that ends it, for the sanitizer */

        copy = test_malloc(strlen(cases[i].text) + 1);
        memcpy(copy, cases[i].text, strlen(cases[i].text));
        rc = parse((us_str_t) { strlen(cases[i].text),
                                (const uint8_t *) copy }, &s);

        if (rc != (cases[i].value == NONE ? -1 : 0)
            || (rc == 0 && s != cases[i].value))
        {
            fail_msg("\"%s\": %d, %lu", cases[i].text, rc, (unsigned long) s);
        }

        test_free(copy);
    }
}


static void
test_durations(void **state)
{
    run(durations, sizeof(durations) / sizeof(case_t), us_time_duration);
}


static void
test_points(void **state)
{
    run(points, sizeof(points) / sizeof(case_t), us_time_point);
}


/* every 100,003rd second up to the year 2130, as the C library writes it */

static void
test_calendar(void **state)
{
    char       text[32];
    time_t     t;
    uint64_t   s;
    struct tm  tm;

    for (t = 0; t < 5049129600; t += 100003) {
        gmtime_r(&t, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        assert_int_equal(us_time_point(str(text), &s), 0);
        assert_int_equal(s, t);
    }
}


static void
test_put(void **state)
{
    size_t    i;
    uint8_t   buf[US_TIME_TEXT + 1];
    uint64_t  s;

    static const case_t  texts[] = {
        { "0s", 0 }, { "59s", 59 }, { "1m", 60 }, { "90m", 5400 },
        { "1h", 3600 }, { "65000h", 234000000 }, { "30d", 2592000 },
        { "18446744073709551615s", UINT64_MAX },
    };

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *us_time_put(buf, texts[i].value) = '\0';
        assert_string_equal((char *) buf, texts[i].text);

        if (texts[i].value < UINT64_MAX) {
            assert_int_equal(us_time_duration(str((char *) buf), &s), 0);
            assert_int_equal(s, texts[i].value);
        }
    }
}


/* the numbers that they are made of: none wraps to one that is allowed */

static void
test_numbers(void **state)
{
    size_t    i, at;
    uint64_t  n;

    static const struct {
        const char  *text;
        uint64_t     max;
        int          rc;
    } numbers[] = {
        { "0", 0, 0 },
        { "1", 0, -1 },
        { "7", 6, -1 },
        { "100", 100, 0 },
        { "101", 100, -1 },
        { "18446744073709551615", UINT64_MAX, 0 },
        { "18446744073709551616", UINT64_MAX, -1 },
        { "18446744073709551617", UINT64_MAX, -1 },
        { "36893488147419103233", UINT64_MAX, -1 },
        { "", 9, -1 },
        { "x", 9, -1 }
    };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        at = 0;
        assert_int_equal(us_read_u64(str(numbers[i].text), &at, numbers[i].max,
                                     &n),
                         numbers[i].rc);
        assert_true(numbers[i].rc == -1 || n == numbers[i].max);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
