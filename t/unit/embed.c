
/*
 * A store in a directory, for one process (us_embed.h): what a kill leaves,
 * snapshots, owners, settings.
 */


#include "us_base.h"
#include "life/us_embed.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>


#define NORM   us_string("crawler/1 www=first")
#define GROUP  100


static char             dir[] = "/tmp/us_embed.XXXXXX";
static us_embed_conf_t  conf = { .snapshot = 32 * 1024 };


static us_embed_t *
open_it(void)
{
    char         error[US_EMBED_ERROR];
    us_embed_t  *e;

    conf.norm = NORM;
    e = us_embed_open(dir, &conf, error);

    if (e == NULL) {
        fail_msg("%s", error);
    }

    return e;
}


static void
close_it(us_embed_t *e)
{
    char  error[US_EMBED_ERROR];

    if (us_embed_close(e, error) == -1) {
        fail_msg("%s", error);
    }
}


/* URLs number from .. to - 1 have these ids; those below `known` are there */

static void
add(us_embed_t *e, unsigned from, unsigned to, unsigned known)
{
    char             url[GROUP][64];
    unsigned         i, n;
    us_store_item_t  items[GROUP];

    for ( /* void */ ; from < to; from += n) {
        n = to - from < GROUP ? to - from : GROUP;

        for (i = 0; i < n; i++) {
            memset(&items[i], 0, sizeof(us_store_item_t));
            items[i].url.len = snprintf(url[i], 64, "http://h%u.example/%u/%u",
                                        (from + i) % 91, from + i,
                                        (from + i) * 2654435761U);
            items[i].url.data = (uint8_t *) url[i];
        }

        assert_int_equal(us_embed_add(e, items, n), 0);

        for (i = 0; i < n; i++) {
            assert_int_equal(items[i].status,
                             from + i < known ? US_SEEN : US_NEW);
            assert_int_equal(items[i].id, from + i);
        }
    }
}


static void
killed(void **state)
{
    int          status;
    pid_t        pid;
    us_embed_t  *e;

    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        add(open_it(), 0, 1000, 0);
        _exit(0);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);

    e = open_it();
    assert_int_equal(us_store_next_id(us_embed_store(e)), 1000);
    add(e, 0, 1100, 1000);
    close_it(e);
}


static void
snapshots(void **state)
{
    us_embed_t       *e;
    us_store_conf_t   c;

    e = open_it();
    add(e, 1100, 20000, 1100);
    assert_int_equal(us_embed_learn(e), 0);
    assert_int_equal(us_embed_sync(e), 0);
    close_it(e);

    e = open_it();
    us_store_conf(us_embed_store(e), &c);
    assert_int_equal(c.epoch, 1);
    add(e, 0, 20100, 20000);
    close_it(e);
}


static void
handle(void **state)
{
    size_t       len;
    uint8_t      url[US_URL_MAX + 8];
    us_embed_t  *e;
    us_store_t  *s;

    e = open_it();
    s = us_embed_handle(e);
    assert_non_null(s);
    assert_int_equal(us_store_get(s, 7, url, &len), US_OK);
    assert_int_equal(len, strlen("http://h7.example/7/") + 10);
    us_store_close(s);
    close_it(e);
}


/* a directory that counts sites goes on, whatever the next program asks for */

static void
sites(void **state)
{
    unsigned          on;
    us_embed_t       *e;
    us_store_conf_t   c;

    for (on = 2; on > 0; on--) {
        conf.sites = (on == 2);
        e = open_it();
        us_store_conf(us_embed_store(e), &c);
        assert_int_equal(c.sites, 1);
        close_it(e);
    }
}


/* a file of the directory whose name begins so: its path */

static char *
file_named(const char *begin)
{
    DIR            *d;
    struct dirent  *de;
    static char     path[sizeof(dir) + 256];

    d = opendir(dir);
    assert_non_null(d);

    while ((de = readdir(d)) != NULL
           && strncmp(de->d_name, begin, strlen(begin)) != 0)
    {
        /* void */
    }

    assert_non_null(de);
    snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
    (void) closedir(d);

    return path;
}


static int
manifest_has(const char *line)
{
    int    found;
    char   buf[512];
    FILE  *f;

    f = fopen(file_named("manifest"), "r");
    assert_non_null(f);

    for (found = 0; fgets(buf, sizeof(buf), f); /* void */) {
        found |= strncmp(buf, line, strlen(line)) == 0;
    }

    fclose(f);

    return found;
}


/* the kernel reports a failed sync once: it stays failed all the same */

static int  sync_fails;


int
fdatasync(int fd)
{
    if (sync_fails) {
        sync_fails = 0;
        errno = EIO;
        return -1;
    }

    return fsync(fd);
}


static void
sync_failed(void **state)
{
    char              error[US_EMBED_ERROR];
    uint64_t          durable;
    us_embed_t       *e;
    us_store_item_t   item;

    e = open_it();
    durable = us_store_durable(us_embed_store(e));
    memset(&item, 0, sizeof(item));
    item.url = us_string("http://sync.example/");
    assert_int_equal(us_embed_add(e, &item, 1), 0);

    sync_fails = 1;
    assert_int_equal(us_embed_sync(e), -1);
    assert_non_null(strstr(us_embed_error(e), "fdatasync of"));
    assert_int_equal(sync_fails, 0);
    assert_int_equal(us_embed_sync(e), -1);
    assert_non_null(strstr(us_embed_error(e), "fdatasync of"));
    assert_int_equal(us_store_durable(us_embed_store(e)), durable);
    assert_int_equal(us_embed_add(e, &item, 1), -1);
    assert_int_equal(us_embed_close(e, error), -1);
    assert_non_null(strstr(error, "fdatasync of"));
    assert_true(manifest_has("state open"));

    close_it(open_it());
    assert_true(manifest_has("state clean"));
}


/* the newest segment is removed: a snapshot has what it held */

static void
removed(void **state)
{
    us_embed_t       *e;
    us_store_item_t   item;

    e = open_it();
    memset(&item, 0, sizeof(item));
    item.url = us_string("http://removed.example/");
    assert_int_equal(us_embed_add(e, &item, 1), 0);
    assert_int_equal(unlink(file_named("journal.")), 0);
    item.url = us_string("http://removed.example/again");
    assert_int_equal(us_embed_add(e, &item, 1), 0);
    close_it(e);

    e = open_it();
    us_store_seen(us_embed_store(e), &item, 1);
    assert_int_equal(item.status, US_SEEN);
    add(e, 0, 1000, 1000);
    close_it(e);
}


static int
cleanup(void **state)
{
    char  command[64];

    snprintf(command, sizeof(command), "rm -rf '%s'", dir);

    return system(command);
}


static void
another(void **state)
{
    assert_int_equal(cleanup(state), 0);
    strcpy(dir, "/tmp/us_embed.XXXXXX");
    assert_non_null(mkdtemp(dir));
}


/*
 * Sessions each of which adds too little for a snapshot, and a program that
 * changes its own directory.
 */

static void
sessions(void **state)
{
    char              url[GROUP][300], there[200];
    unsigned          i, k, n;
    us_embed_t       *e;
    us_store_item_t   items[GROUP];

    another(state);
    assert_non_null(getcwd(there, sizeof(there)));
    conf.snapshot = 0;

    for (n = 0; n < 14; n++) {
        assert_int_equal(chdir("/tmp"), 0);
        e = us_embed_open(dir + strlen("/tmp/"), &conf, url[0]);
        assert_non_null(e);
        assert_int_equal(chdir("/"), 0);

        for (i = 0; i < 1000; i += GROUP) {
            for (k = 0; k < GROUP; k++) {
                memset(&items[k], 0, sizeof(us_store_item_t));
                items[k].url.data = (uint8_t *) url[k];
                items[k].url.len = sprintf(url[k], "http://a.example/%u/%u/",
                                           n, i + k);

                while (items[k].url.len < 250) {
                    items[k].url.len += sprintf(url[k] + items[k].url.len,
                                                "%lx", random());
                }
            }

            assert_int_equal(us_embed_add(e, items, GROUP), 0);
        }

        close_it(e);

        if (n == 2) {
            assert_false(manifest_has("snapshot"));
        }
    }

    assert_true(manifest_has("snapshot"));
    assert_int_equal(chdir(there), 0);
}


static void
refused(const char *path, const us_embed_conf_t *c, const char *why)
{
    char  error[US_EMBED_ERROR];

    assert_null(us_embed_open(path, c, error));

    if (strstr(error, why) == NULL) {
        fail_msg("\"%s\" instead of \"%s\"", error, why);
    }
}


static void
refusals(void **state)
{
    char              empty[64], command[80];
    us_embed_t       *e;
    us_embed_conf_t   c;

    e = open_it();
    refused(dir, &conf, "is owned by another process");
    close_it(e);

    c = conf;
    c.norm = us_string("other/1");
    refused(dir, &c, "\"crawler/1 www=first\"");

    c = conf;
    c.size = 4096;
    refused(dir, &c, "4096 bytes are too few");
    c.size = SIZE_MAX / 2;
    refused(dir, &c, "mmap(9223372036854775807) failed");
    refused("/proc/none/dir", &conf, "its parent directory is not there");
    refused("/dev/null", &conf, strerror(ENOTDIR));

    snprintf(empty, sizeof(empty), "%s.empty", dir);
    c = conf;
    c.norm = us_string("");
    assert_int_equal(mkdir(empty, 0700), 0);
    refused(empty, &c, "there is no store in it");
    snprintf(command, sizeof(command), "rm -r '%s'", empty);
    assert_int_equal(system(command), 0);

    close_it(open_it());
}


/* made once and dropped once, over sessions, with what is new to them */

static void
sets(void **state)
{
    us_embed_t      *e;
    us_store_set_t   set, other;
    us_store_item_t  item;

    e = open_it();
    assert_int_equal(us_embed_make_set(e, us_string("a"), &set), -1);
    assert_non_null(strstr(us_embed_error(e), "no room"));
    close_it(e);

    conf.sets = 1;
    e = open_it();
    conf.sets = 0;
    assert_int_equal(us_embed_make_set(e, us_string("a"), &set), 1);
    assert_int_equal(us_embed_make_set(e, us_string("a"), &set), 0);
    assert_int_equal(us_embed_make_set(e, us_string("b"), &other), 1);

    memset(&item, 0, sizeof(us_store_item_t));
    item.url = us_string("http://sets.example/");
    assert_int_equal(us_embed_add_set(e, &item, 1, set), 0);
    assert_int_equal(item.status, US_NEW);
    assert_int_equal(item.stored, US_NEW);
    assert_int_equal(us_embed_add_set(e, &item, 1, set), 0);
    assert_int_equal(item.status, US_SEEN);
    assert_int_equal(us_embed_drop_set(e, other), 1);
    assert_int_equal(us_embed_drop_set(e, other), 0);
    assert_int_equal(us_embed_add_set(e, &item, 1, other), 0);
    assert_int_equal(item.status, US_GONE);
    close_it(e);

    e = open_it();
    assert_int_equal(us_store_set(us_embed_store(e), us_string("b")).number,
                     0);
    set = us_store_set(us_embed_store(e), us_string("a"));
    assert_int_equal(us_store_set_has(us_embed_store(e), set, item.id), 1);
    close_it(e);
}


/* of new URLs and by ids, of now and of then */

static void
claims(void **state)
{
    uint64_t          before;
    us_embed_t       *e;
    us_store_item_t   item;
    us_store_claim_t  ids[] = { { .id = 3 }, { .id = 2000 }, { .id = 5 } };

    another(state);
    conf.revisit = 60;
    e = open_it();
    conf.revisit = 0;
    add(e, 0, 1000, 0);
    assert_int_equal(us_embed_claim(e, ids, 3, 0), 0);
    assert_int_equal(ids[0].status, US_OK);
    assert_int_equal(ids[1].status, US_UNKNOWN);
    assert_int_equal(ids[2].status, US_OK);
    assert_int_equal(us_store_claimed(us_embed_store(e), 3), 0);

    before = (uint64_t) time(NULL);
    assert_int_equal(us_embed_claim(e, &ids[2], 1, before), 0);
    memset(&item, 0, sizeof(us_store_item_t));
    item.url = us_string("http://claims.example/");
    assert_int_equal(us_embed_add_older(e, &item, 1, 1), 0);
    assert_int_equal(item.status, US_NEW);
    close_it(e);

    e = open_it();
    assert_in_range(us_store_claimed(us_embed_store(e), 5), before - 60,
                    before);
    assert_in_range(us_store_claimed(us_embed_store(e), item.id), before - 60,
                    (uint64_t) time(NULL));
    assert_int_equal(us_store_claimed(us_embed_store(e), 3), 0);
    close_it(e);
}


/* URLs, a site, and what is lifted again, over sessions */

static void
erasures(void **state)
{
    uint64_t           number;
    us_embed_t        *e;
    us_store_item_t    items[3];
    us_erasure_info_t  info;

    another(state);
    conf.erases = 1;
    e = open_it();
    conf.erases = 0;
    add(e, 0, 1000, 0);

    assert_int_equal(us_embed_erase_begin(e, US_ERASURE_URLS,
                                          us_string("order 7"), &number), 0);
    assert_int_equal(number, 1);
    memset(items, 0, sizeof(items));
    items[0].url = us_string("http://h0.example/0/0");
    items[1].url = us_string("http://h1.example/1/2654435761");
    items[2].url = us_string("http://nobody.example/");
    assert_int_equal(us_embed_erase(e, 1, items, 3), 0);
    assert_int_equal(items[2].status, US_ERASED);
    assert_int_equal(us_embed_erase_end(e, 1), 0);
    assert_true(us_store_erasure(us_embed_store(e), 1, &info));
    assert_int_equal(info.state, US_ERASURE_DONE);
    assert_int_equal(info.listed, 3);
    assert_int_equal(info.deleted, 2);
    assert_int_equal(us_embed_left(e, &info), 0);
    assert_int_equal(us_embed_erase_site(e, 1, us_string("h9.example")), -1);
    assert_non_null(strstr(us_embed_error(e), "the erasure is over"));

    assert_int_equal(us_embed_erase_begin(e, US_ERASURE_SITE, us_string(""),
                                          &number), 0);
    assert_int_equal(us_embed_erase_site(e, number, us_string("h9.example")),
                     0);
    close_it(e);

    /* what a session has begun the next one completes */

    e = open_it();
    assert_int_equal(us_embed_erase_end(e, number), 0);
    assert_true(us_store_erasure(us_embed_store(e), number, &info));
    assert_int_equal(info.state, US_ERASURE_DONE);
    assert_int_equal(info.deleted, 11);
    assert_int_equal(us_embed_left(e, &info), 0);

    items[2].url = us_string("http://h9.example/new");
    assert_int_equal(us_embed_add(e, items, 3), 0);
    assert_int_equal(items[0].status, US_ERASED);
    assert_int_equal(items[2].status, US_ERASED);

    assert_int_equal(us_embed_erase_lift(e, 7), 0);
    assert_int_equal(us_embed_erase_lift(e, 1), 1);
    assert_int_equal(us_embed_add(e, items, 3), 0);
    assert_int_equal(items[0].status, US_NEW);
    assert_int_equal(items[0].id, 1000);
    assert_int_equal(items[2].status, US_ERASED);
    close_it(e);
}


static int
setup(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(killed),
        cmocka_unit_test(snapshots),
        cmocka_unit_test(handle),
        cmocka_unit_test(sites),
        cmocka_unit_test(refusals),
        cmocka_unit_test(sets),
        cmocka_unit_test(sync_failed),
        cmocka_unit_test(removed),
        cmocka_unit_test(sessions),
        cmocka_unit_test(claims),
        cmocka_unit_test(erasures),
    };

    return cmocka_run_group_tests(tests, setup, cleanup);
}
