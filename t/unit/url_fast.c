
/*
 * The fast path: its masks of bytes, and that it copies nothing.  That it
 * answers what the parser answers is a law (fuzz/laws.c).
 */


#include "url_norm.h"
#include "../../src/url/us_fast.c"


/* SIMD against the tables: every byte, in every place */

static void
fast_masks(void **state)
{
    unsigned    c, i, want, got, dot;
    uint8_t     block[US_BLOCK];
    us_masks_t  m;

    for (c = 0; c < 256; c++) {
        for (i = 0; i < 16; i++) {
            memset(block, 'a', sizeof(block));
            block[i] = (uint8_t) c;

            us_masks(block, &m);
            got = m.attention;
            want = us_is(c, US_SET_UNIQUE_PATH | US_SET_UNIQUE_QUERY) ? 1 : 0;

            /* more attention than needed is allowed for one byte only */

            assert_int_equal(got & ~(1u << i), 0);
            assert_true((got >> i) >= want);
            assert_true((got >> i) == want || c == '~');

            got = us_host_masks(block, &dot);
            assert_int_equal(got, us_is(c, US_CH_HOST) ? 0 : 1u << i);
        }
    }

    /* the set covers what the standard encodes */

    for (c = 0; c < 256; c++) {
        assert_true(!us_is(c, US_SET_PATH | US_SET_SPECIAL_QUERY)
                    || us_is(c, US_SET_UNIQUE_PATH | US_SET_UNIQUE_QUERY));
    }
}


/* what needs no change is answered where it lies */

static void
canonical_is_not_copied(void **state)
{
    us_str_t    in;
    us_canon_t  out;

    open_profile(US_PROFILE_CRAWLER);

    in = us_string("https://www.example.com/a/b.html?c=%20d#fragment");
    assert_int_equal(us_normalize(norm, ws, in, NULL, &out), US_URL_OK);
    assert_ptr_equal(out.url.href.data, in.data);
    assert_int_equal(out.url.href.len, in.len - strlen("#fragment"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(fast_masks),
        cmocka_unit_test_teardown(canonical_is_not_copied, teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
