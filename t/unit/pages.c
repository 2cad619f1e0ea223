
/*
 * Memory on a machine whose pages are of 16 or of 64 KB: a kernel that pretends
 * so refuses addresses that this machine's kernel takes.
 */


#include "us_huge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>


static size_t   page, mapped;
static uint8_t  *last;


static void *
pages_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    uint8_t  *p;

    /* where no huge page begins */

    size = (size + page - 1) & -page;
    mapped += size;
    p = mmap(NULL, size + US_HUGE_PAGE + page, prot, flags, fd, offset);
    assert_ptr_not_equal(p, MAP_FAILED);
    p += (-(uintptr_t) p & (US_HUGE_PAGE - 1)) + page;
    last = p + size;

    return p;
}


static int
pages_munmap(void *at, size_t size)
{
    if ((uintptr_t) at % page) {
        errno = EINVAL;
        return -1;
    }

    size = (size + page - 1) & -page;
    assert_in_range((uintptr_t) at + size, 0, (uintptr_t) last);
    mapped -= size;

    return munmap(at, size);
}


#define mmap    pages_mmap
#define munmap  pages_munmap

#include "../../src/us_huge.c"


/* what is not needed for the alignment is given back */

static void
test_huge(void **state)
{
    size_t    size;
    uint8_t  *p;

    for (page = 4096; page <= 65536; page *= 4) {
        for (size = 3 * US_HUGE_PAGE; size < 3 * US_HUGE_PAGE + 2 * 65536;
             size += 4096)
        {
            mapped = 0;
            p = us_huge_map(size, size);
            assert_non_null(p);
            assert_int_equal((uintptr_t) p % US_HUGE_PAGE, 0);
            assert_in_range(mapped, size, size + 65535);

            p[0] = 1;
            p[size - 1] = 1;
            assert_int_equal(munmap(p, size), 0);
            assert_in_range(mapped, 0, 65535);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_huge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
