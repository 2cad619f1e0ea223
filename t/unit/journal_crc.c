
/* CRC-32C: published values, and the instruction against the table */

#include "journal_fake.h"
#include "journal/us_crc32c.h"


static void
test_published(void **state)
{
    int      i;
    uint8_t  p[32];

    /* RFC 3720, appendix B.4 */

    memset(p, 0, 32);
    assert_int_equal(us_crc32c(0, p, 32), 0x8a9136aa);
    assert_int_equal(us_crc32c_table(0, p, 32), 0x8a9136aa);

    memset(p, 0xff, 32);
    assert_int_equal(us_crc32c(0, p, 32), 0x62a8ab43);

    for (i = 0; i < 32; i++) {
        p[i] = (uint8_t) i;
    }

    assert_int_equal(us_crc32c(0, p, 32), 0x46dd794e);
    assert_int_equal(us_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(us_crc32c(0, p, 0), 0);
}


static void
test_same(void **state)
{
    size_t    i, at, len;
    uint8_t   p[600];
    uint32_t  sum;

    for (i = 0; i < sizeof(p); i++) {
        p[i] = (uint8_t) fake_mix(i);
    }

    for (at = 0; at < 9; at++) {
        for (len = 0; len < 500; len++) {
            sum = us_crc32c_table((uint32_t) at, p + at, len);
            assert_int_equal(us_crc32c((uint32_t) at, p + at, len), sum);

            /* in two pieces */
            assert_int_equal(us_crc32c(us_crc32c((uint32_t) at, p + at,
                                                 len / 3),
                                       p + at + len / 3, len - len / 3),
                             sum);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
