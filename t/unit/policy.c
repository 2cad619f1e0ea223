
/*
 * When a snapshot is due: after as much journal as the option says, and as a
 * twelfth of the last snapshot.
 */


#include "us_base.h"
#include "life/us_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>


#define MB  ((uint64_t) 1 << 20)


static int
due(uint64_t least, uint64_t journal, uint64_t size)
{
    us_policy_t  p = { least, journal, size, 0 };

    return us_policy_due(&p);
}


static void
least(void **state)
{
    assert_false(due(32 * MB, 0, 0));
    assert_false(due(32 * MB, 32 * MB - 1, 0));
    assert_true(due(32 * MB, 32 * MB, 0));
    assert_false(due(12 * MB, 12 * MB - 1, 144 * MB));
    assert_true(due(12 * MB, 12 * MB, 144 * MB));
}


static void
twelfth(void **state)
{
    assert_false(due(12 * MB, 25 * MB - 1, 300 * MB));
    assert_true(due(12 * MB, 25 * MB, 300 * MB));
    assert_false(due(1, 250 * MB, 3001 * MB));
}


/* a delete counts as 20 bytes more than it has */

static void
deletes(void **state)
{
    us_policy_t  p = { 12 * MB, 2 * MB, 144 * MB, MB / 2 - 1 };

    assert_false(us_policy_due(&p));
    p.deletes = MB / 2;
    assert_true(us_policy_due(&p));

    p.size = 145 * MB;
    assert_false(us_policy_due(&p));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(least),
        cmocka_unit_test(twelfth),
        cmocka_unit_test(deletes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
