
/*
 * The replicas that a primary knows (src/life/us_known.h).
 */

#include "life/us_known.h"
#include "store/us_erasures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>


#define NOW  1000000


static us_share_t  share;


static int
setup(void **state)
{
    memset(&share, 0, sizeof(share));

    return 0;
}


/* 1: it is news */

static int
enter(uint64_t id, uint64_t erased, int keeps, uint64_t now, unsigned *row)
{
    int         news;
    us_known_t  said;

    said.id = id;
    said.erased = erased;
    said.keeps = keeps;
    said.seen = now;
    *row = us_known_enter_locked(&share, &said, &news);

    return news;
}


static void
test_says(void **state)
{
    unsigned  row, other;
    uint64_t  away;

    assert_int_equal(us_known_left(&share, 0, NOW), 0);
    assert_int_equal(us_known_left(&share, 100, NOW), 0);

    assert_true(enter(7, 0, 1, NOW, &row));
    assert_int_equal(us_known_left(&share, 100, NOW), US_LEFT_REPLICAS);

    /* the same one, by another connection */

    assert_false(enter(7, 100, 1, NOW + 1, &other));
    assert_int_equal(other, row);
    assert_int_equal(us_known_left(&share, 100, NOW), 0);
    assert_int_equal(us_known_left(&share, 101, NOW), US_LEFT_REPLICAS);
    assert_int_equal(us_known_left(&share, 0, NOW), US_LEFT_REPLICAS);

    /* what it says last counts, also if it is less */

    assert_false(enter(7, 99, 1, NOW + 2, &row));
    assert_int_equal(us_known_left(&share, 100, NOW), US_LEFT_REPLICAS);

    assert_true(enter(8, 100, 0, NOW, &row));
    assert_int_equal(us_known_count(&share, NOW, &away), 2);
    assert_int_equal(away, 0);
}


/* one that is away is waited for, for as long as its bytes may be somewhere */

static void
test_away(void **state)
{
    unsigned  row, memory;
    uint64_t  away;

    (void) enter(7, 0, 1, NOW, &row);
    (void) enter(8, 0, 0, NOW, &memory);

    us_known_beat(&share, row, 7, NOW + 5000);
    us_known_beat(&share, memory, 7, NOW + 5000);       /* not its id */

    assert_int_equal(us_known_left(&share, 1, NOW + US_KNOWN_AWAY - 1),
                     US_LEFT_REPLICAS);
    assert_int_equal(us_known_left(&share, 1, NOW + US_KNOWN_AWAY),
                     US_LEFT_REPLICAS|US_LEFT_AWAY);
    assert_int_equal(us_known_left(&share, 1, NOW + US_KNOWN_AWAY + 5000),
                     US_LEFT_AWAY);

    assert_int_equal(us_known_count(&share, NOW + US_KNOWN_MEMORY - 1, &away),
                     2);
    assert_int_equal(away, 2);
    assert_int_equal(us_known_count(&share, NOW + US_KNOWN_MEMORY, &away), 1);

    assert_int_equal(us_known_left(&share, 1,
                                   NOW + 5000 + US_KNOWN_KEEPS - 1),
                     US_LEFT_AWAY);
    assert_int_equal(us_known_left(&share, 1, NOW + 5000 + US_KNOWN_KEEPS), 0);

    /* it comes back after that */

    assert_true(enter(7, 0, 1, NOW + 5000 + US_KNOWN_KEEPS, &row));
    assert_int_equal(us_known_left(&share, 1, NOW + 5000 + US_KNOWN_KEEPS),
                     US_LEFT_REPLICAS);
}


/* there are so many at most, and those that are connected stay */

static void
test_bounds(void **state)
{
    unsigned  i, row;
    uint64_t  away, later;

    for (i = 0; i < US_KNOWN; i++) {
        assert_true(enter(100 + i, 50, 1, NOW + i, &row));
        assert_int_equal(row, i);
    }

    /* all are there: one more has no place, and counts as it is there */

    assert_int_equal(us_known_left(&share, 50, NOW), 0);
    assert_true(enter(1, 50, 1, NOW, &row));
    assert_int_equal(row, US_KNOWN);
    assert_int_equal(us_known_left(&share, 50, NOW), US_LEFT_REPLICAS);
    us_known_beat(&share, row, 1, NOW + 3000);
    assert_int_equal(us_known_left(&share, 50, NOW + US_KNOWN_AWAY - 1),
                     US_LEFT_REPLICAS);

    for (i = 0; i < US_KNOWN; i++) {
        us_known_beat(&share, i, 100 + i, NOW + 5000 + i);
    }

    assert_int_equal(us_known_left(&share, 50, NOW + 3000 + US_KNOWN_AWAY), 0);

    /* the one that was away for longest makes room, and only one that is */

    later = NOW + 5000 + US_KNOWN_AWAY;
    us_known_beat(&share, 0, 100, later);
    us_known_beat(&share, 9, 109, NOW);

    assert_true(enter(2, 0, 1, later + 100, &row));
    assert_int_equal(row, 9);
    assert_true(enter(3, 0, 1, later + 100, &row));
    assert_int_equal(row, 1);
    assert_false(enter(100, 0, 1, later + 100, &row));
    assert_int_equal(row, 0);

    /* but a place of one that is forgotten comes first */

    share.known[20].keeps = 0;
    later += US_KNOWN_MEMORY;
    us_known_beat(&share, 20, 120, later - US_KNOWN_MEMORY);
    assert_int_equal(us_known_count(&share, later, &away), US_KNOWN - 1);
    assert_true(enter(4, 0, 1, later, &row));
    assert_int_equal(row, 20);
    assert_int_equal(us_known_count(&share, later, &away), US_KNOWN);
    assert_int_equal(away, US_KNOWN - 1);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_says, setup),
        cmocka_unit_test_setup(test_away, setup),
        cmocka_unit_test_setup(test_bounds, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
