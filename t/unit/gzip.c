
/*
 * The reader of gzip: whatever way the body is cut, and whatever it unpacks to,
 * the text is the same.
 */


#include "us_base.h"
#include "input/us_gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <zlib.h>


#define MOST  (4 * US_GZIP_WINDOW + 8)


static uint8_t  text[MOST];
static uint8_t  packed[2 * MOST];


static size_t
pack(uint8_t *to, const uint8_t *from, size_t len)
{
    z_stream  z;

    memset(&z, 0, sizeof(z));

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8,
                                  Z_DEFAULT_STRATEGY), Z_OK);

    z.next_in = (Bytef *) from;
    z.avail_in = len;
    z.next_out = to;
    z.avail_out = MOST;

    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);

    return MOST - z.avail_out;
}


/*
 * Reads packed in pieces of so many bytes, each in memory of its own; *open is
 * whether its end is that of a member.  The length of the text, which is
 * compared; or -1.
 */

static long
unpack(size_t len, size_t piece, int *open)
{
    size_t        n, got;
    uint8_t      *copy;
    us_str_t      in, out;
    us_gzip_t    *g;
    us_gzip_rc_t  rc;

    g = us_gzip_create();
    assert_non_null(g);

    rc = US_GZIP_OK;
    got = 0;

    for (size_t at = 0; at < len && rc == US_GZIP_OK; at += n) {
        n = len - at < piece ? len - at : piece;

        copy = malloc(n);
        in.data = memcpy(copy, packed + at, n);
        in.len = n;

        do {
            rc = us_gzip_next(g, &in, &out);

            if (rc != US_GZIP_OK) {
                break;
            }

            assert_true(out.len <= US_GZIP_WINDOW);
            assert_true(got + out.len <= MOST);
            assert_memory_equal(text + got, out.data, out.len);
            got += out.len;

        } while (in.len || us_gzip_more(g));

        free(copy);
    }

    *open = us_gzip_open(g);
    us_gzip_destroy(g);

    return rc == US_GZIP_OK ? (long) got : -1;
}


static void
fill(size_t len)
{
    for (size_t i = 0; i < len; i++) {
        text[i] = "http://a/\n"[i % 10] + (i / 999) % 3;
    }
}


static void
cuts(void **state)
{
    int     open;
    size_t  n, i, j;

    static const size_t  lens[] = {
        0, 1, 9, US_GZIP_WINDOW - 1, US_GZIP_WINDOW, US_GZIP_WINDOW + 1,
        2 * US_GZIP_WINDOW, 4 * US_GZIP_WINDOW
    };

    static const size_t  pieces[] = { 1, 2, 7, 100, 2 * MOST };

    for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        fill(lens[i]);
        n = pack(packed, text, lens[i]);

        for (j = 0; j < sizeof(pieces) / sizeof(pieces[0]); j++) {
            assert_int_equal(unpack(n, pieces[j], &open), lens[i]);
            assert_int_equal(open, 0);

            /* without its end */

            assert_true(unpack(n - 1, pieces[j], &open) <= (long) lens[i]);
            assert_int_equal(open, 1);
        }

        /* the text has ended, perhaps with its window; the checksum is next */

        assert_int_equal(unpack(n, n - 8, &open), lens[i]);
        assert_int_equal(open, 0);
    }
}


/* bodies of several members, as "cat a.gz b.gz" makes them */

static void
members(void **state)
{
    int     open;
    size_t  n;

    fill(3000);

    n = pack(packed, text, 1000);
    n += pack(packed + n, text + 1000, 0);
    n += pack(packed + n, text + 1000, 2000);

    assert_int_equal(unpack(n, 1, &open), 3000);
    assert_int_equal(open, 0);
    assert_int_equal(unpack(n, 2 * MOST, &open), 3000);
    assert_int_equal(open, 0);
    assert_int_equal(unpack(n - 9, 2 * MOST, &open), 3000);
    assert_int_equal(open, 1);
}


/* one window a call, of a body that unpacks to a thousand times its length */

static void
bomb(void **state)
{
    size_t      n, calls, got;
    us_str_t    in, out;
    us_gzip_t  *g;

    memset(text, '\n', MOST);
    n = pack(packed, text, MOST);
    assert_true(n < 200);

    g = us_gzip_create();
    in.data = packed;
    in.len = n;
    calls = 0;
    got = 0;

    do {
        assert_int_equal(us_gzip_next(g, &in, &out), US_GZIP_OK);
        got += out.len;
        calls++;

    } while (in.len || us_gzip_more(g));

    assert_int_equal(got, MOST);
    assert_int_equal(calls, 5);

    us_gzip_destroy(g);

    /* all that has come is read, and most of its text is still to come */

    g = us_gzip_create();
    in.data = packed;
    in.len = n - 8 - 1;
    got = 0;

    do {
        assert_int_equal(us_gzip_next(g, &in, &out), US_GZIP_OK);
        got += out.len;

    } while (us_gzip_more(g));

    assert_int_equal(in.len, 0);
    assert_true(got > 3 * US_GZIP_WINDOW);
    assert_int_equal(us_gzip_open(g), 1);

    us_gzip_destroy(g);
}


static void
broken(void **state)
{
    int     open;
    size_t  n;

    memcpy(packed, "http://a/\n", 10);
    assert_int_equal(unpack(10, 1, &open), -1);
    assert_int_equal(unpack(10, 10, &open), -1);

    fill(5000);

    /* the checksum, the data, what follows a member */

    n = pack(packed, text, 5000);
    packed[n - 6] ^= 1;
    assert_int_equal(unpack(n, 100, &open), -1);
    packed[n - 6] ^= 1;
    assert_int_equal(unpack(n, 100, &open), 5000);
    memset(packed + 10, 0xff, 8);
    assert_int_equal(unpack(n, 100, &open), -1);

    n = pack(packed, text, 5000);
    memcpy(packed + n, "rubbish", 7);
    assert_int_equal(unpack(n + 7, 100, &open), -1);

    /* a header of zlib is none of gzip */

    memcpy(packed, "\x78\x9c\x03\x00\x00\x00\x00\x01", 8);
    assert_int_equal(unpack(8, 8, &open), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(cuts),
        cmocka_unit_test(members),
        cmocka_unit_test(bomb),
        cmocka_unit_test(broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
