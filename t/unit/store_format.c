
/*
 * The directories in t/data/v1, which the first version has written: snapshots
 * of version 1, with deletes at their end, and journals.  What is read from
 * them is what the same operations make today.
 *
 *     sites-off, sites-on    the operations of run(), with a snapshot after
 *                            FIRST of them and segments of 20,000 bytes
 */


#include "store_zone.h"
#include "same.h"
#include "data/us_data.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>


#define ZONE   ((size_t) 8 << 20)
#define RING   ((size_t) 1 << 18)
#define URLS   2000


static const char  boot[] = "00000000-0000-0000-0000-000000000000";


static size_t
url(unsigned i, char *buf)
{
    size_t  n;

    n = sprintf(buf, "http%s://%ss%u.test/%u", i & 1 ? "s" : "",
                i % 3 ? "" : "www.", i * i % 97, i);

    if (i % 500 == 499) {
        memset(buf + n, 'a' + i / 500, 5000);
        n += 5000;
    }

    return n;
}


static void
run(us_store_t *s)
{
    int              was;
    unsigned         i;
    uint64_t         lsn;
    us_store_item_t  it;
    static char      buf[US_URL_MAX];

    for (i = 0; i < URLS; i++) {
        memset(&it, 0, sizeof(it));
        it.url.len = url(i, buf);
        it.url.data = (uint8_t *) buf;
        it.merge = 1;

        us_store_add(s, &it, 1);
        assert_int_equal(it.status, US_NEW);
        assert_int_equal(it.id, i);

        if (i % 5 == 0) {
            us_store_mark(s, 0, i, 1, &lsn);
        }

        if (i % 11 == 0) {
            us_store_mark(s, 1, i / 2, 1, &lsn);
        }

        if (i % 22 == 0) {
            us_store_mark(s, 1, i / 4, 0, &lsn);
        }

        if (i % 7 == 3) {
            assert_int_equal(us_store_delete(s, i / 2, &was, &lsn), US_OK);
        }
    }
}


static void
same(us_store_t *a, us_store_t *b)
{
    uint64_t         at;
    us_store_info_t  info;

    us_store_info(b, &info);
    assert_int_equal(info.urls, URLS);
    assert_true(info.deleted > 200);
    assert_ptr_equal(same_store(a, b, 97, &at), NULL);
}


static void
read_back(const char *name, int sites)
{
    int               dirfd;
    zone_t           *a, *b;
    us_store_conf_t   conf;
    us_recovery_t     r;
    us_disk_error_t   e;

    zone_conf.sites = sites;
    zone_conf.norm = us_string("crawler/1");
    zone_conf.marks[1] = us_string("hot");

    a = zone_create(ZONE, 0);
    b = zone_create(ZONE, RING);
    run(a->store);

    dirfd = open(name, O_RDONLY|O_DIRECTORY);
    assert_true(dirfd >= 0);

    assert_int_equal(us_recovery_open(&r, dirfd, &us_data_ops, us_data_apply,
                                      b->store, boot),
                     US_RECOVERY_OK);
    assert_int_equal(r.manifest.has_snapshot, 1);

    us_store_conf(b->store, &conf);
    assert_int_equal(us_data_differs(&r.manifest, &conf, &e), 0);

    assert_int_equal(us_recovery_run(&r, 0), US_RECOVERY_OK);
    assert_int_equal(us_store_set_lsn(b->store, r.lsn), 0);
    us_recovery_close(&r);
    assert_int_equal(close(dirfd), 0);

    same(a->store, b->store);

    zone_destroy(a);
    zone_destroy(b);
}


static void
sites_off(void **state)
{
    read_back("t/data/v1/sites-off", 0);
}


static void
sites_on(void **state)
{
    read_back("t/data/v1/sites-on", 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sites_off),
        cmocka_unit_test(sites_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
