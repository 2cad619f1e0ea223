
/*
 * The cursor of a list over all shards: what is written is read back, and no
 * other bytes are.
 */


#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cluster/us_cursor.h"


static const uint8_t  cluster[16] = { 7, 8, 9, 10, 11 };
static us_cursor_t    c, back;
static uint8_t        buf[US_CURSOR_MAX];


static us_str_t
written(void)
{
    uint8_t  *p;

    p = us_cursor_put(buf, cluster, &c);
    assert_non_null(p);
    assert_true(p <= buf + US_CURSOR_MAX);

    return (us_str_t) { (size_t) (p - buf), buf };
}


static void
round_trip(void **state)
{
    unsigned  i, n;

    for (n = 0; n < 300; n++) {
        memset(&c, 0, sizeof(c));
        srand(n);
        c.turn = rand() % US_SHARDS;

        for (i = 0; i < n; i++) {
            c.local[rand() % US_SHARDS] = 1 + ((uint64_t) rand() << rand() % 10)
                                              % (US_LOCAL_MAX + 1);
        }

        assert_int_equal(us_cursor_read(&back, cluster, written()),
                         US_CURSOR_OK);
        assert_memory_equal(&back, &c, sizeof(c));
    }
}


static void
bounds(void **state)
{
    unsigned  i, n;

    memset(&c, 0, sizeof(c));
    c.turn = US_SHARDS - 1;
    c.local[0] = 1;
    c.local[US_SHARDS - 1] = US_LOCAL_MAX + 1;

    assert_int_equal(us_cursor_read(&back, cluster, written()), US_CURSOR_OK);
    assert_memory_equal(&back, &c, sizeof(c));

    /* of full shards: as many as fit, and no more */

    memset(&c, 0, sizeof(c));

    for (n = 0; n < US_SHARDS; n++) {
        c.local[n] = US_LOCAL_MAX;

        if (us_cursor_put(buf, cluster, &c) == NULL) {
            break;
        }
    }

    assert_in_range(n, 400, 500);

    /* 500 with a million URLs each */

    for (i = 0; i < US_SHARDS; i++) {
        c.local[i] = i < 500 ? 1000000 + i : 0;
    }

    assert_int_equal(us_cursor_read(&back, cluster, written()), US_CURSOR_OK);
    assert_memory_equal(&back, &c, sizeof(c));
}


static void
malformed(void **state)
{
    size_t    i, len;
    us_str_t  text;

    /* after the head: turn, then number and local in turns */

    static const struct {
        size_t   len;
        uint8_t  bytes[12];
    } bad[] = {
        { 0, { 0 } },
        { 2, { 0x80, 0x20 } },                       /* turn 4096 */
        { 2, { 0x80, 0x00 } },                       /* 0, too long */
        { 2, { 0, 1 } },                             /* no local */
        { 3, { 0, 1, 0 } },                          /* local 0 */
        { 4, { 0, 0x80, 0x20, 1 } },                 /* shard 4096 */
        { 6, { 0, 0xff, 0x1f, 1, 0, 1 } },           /* 4095, then 4096 */
        { 8, { 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f } },
        { 9, { 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 } },
        { 8, { 0, 0, 0x81, 0x80, 0x80, 0x80, 0x80, 0x20 } }
    };

    memset(&c, 0, sizeof(c));
    c.local[3] = 1000;
    text = written();

    assert_int_equal(us_cursor_read(&back, (const uint8_t *)
                                    "other cluster ..", text),
                     US_CURSOR_OTHER);

    for (len = 0; len < text.len; len++) {
        if (len != 6) {                              /* that is no shard */
            assert_int_equal(us_cursor_read(&back, cluster,
                                            (us_str_t) { len, buf }),
                             US_CURSOR_BAD);
        }
    }

    buf[0] = 2;
    assert_int_equal(us_cursor_read(&back, cluster, text), US_CURSOR_BAD);
    buf[0] = US_CURSOR_VERSION;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(buf + 5, bad[i].bytes, bad[i].len);
        assert_int_equal(us_cursor_read(&back, cluster,
                                        (us_str_t) { 5 + bad[i].len, buf }),
                         US_CURSOR_BAD);
    }

    assert_int_equal(us_cursor_read(&back, cluster,
                                    (us_str_t) { US_CURSOR_MAX + 1, buf }),
                     US_CURSOR_BAD);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(bounds),
        cmocka_unit_test(malformed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
