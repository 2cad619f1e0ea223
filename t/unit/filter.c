
/*
 * The filter: what it promises (no false negative, the stated error), its
 * file (kill -9, power failure, strangers), on real and generated URLs.
 */


#include "corpus.h"
#include "us_base.h"
#include "filter/us_filter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>


#define LINES      60000
#define GENERATED  350000
#define KILLS      100
#define STORM      200


typedef struct {
    char      *text;
    us_str_t  *urls;                  /* distinct */
    size_t     n;
} corpus_t;


static corpus_t  corpus;
static uint8_t   key[16] = "0123456789abcdef";


/* one, under domain 0 */

static int
add(us_filter_t *f, us_str_t url)
{
    uint8_t   answer;
    uint64_t  h;

    h = us_filter_hash(f, 0, url);
    us_filter_add_many(f, &h, 1, &answer);

    return answer;
}


static int
seen(const us_filter_t *f, us_str_t url)
{
    uint8_t   answer;
    uint64_t  h;

    h = us_filter_hash(f, 0, url);
    us_filter_seen_many(f, &h, 1, &answer);

    return answer;
}


static int
compare(const void *a, const void *b)
{
    return us_str_compare(*(const us_str_t *) a, *(const us_str_t *) b);
}


/* sorted, so neighbours are alike: members and non-members are taken in turn */

static int
load(void **state)
{
    FILE    *f;
    char    *p, *end;
    size_t   n, size, room;

    f = corpus_open("tweetfeed_iocs", LINES, GENERATED);
    room = 40 << 20;
    corpus.text = malloc(room);
    size = fread(corpus.text, 1, room - 1, f);
    corpus_close(f);
    assert_true(size > 1000000 && size < room - 1);

    corpus.urls = malloc((LINES + GENERATED) * sizeof(us_str_t));
    n = 0;

    for (p = corpus.text; p < corpus.text + size; p = end + 1) {
        end = memchr(p, '\n', corpus.text + size - p);
        assert_non_null(end);
        assert_true(n < LINES + GENERATED);
        corpus.urls[n].data = (uint8_t *) p;
        corpus.urls[n++].len = end - p;
    }

    qsort(corpus.urls, n, sizeof(us_str_t), compare);

    for (corpus.n = 1, size = 1; size < n; size++) {
        if (compare(&corpus.urls[size], &corpus.urls[corpus.n - 1]) != 0) {
            corpus.urls[corpus.n++] = corpus.urls[size];
        }
    }

    return 0;
}


static int
unload(void **state)
{
    free(corpus.urls);
    free(corpus.text);

    return 0;
}


static us_filter_t *
make(const us_filter_plan_t *plan)
{
    void  *mem;

    mem = mmap(NULL, plan->size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);

    return us_filter_format(mem, plan, key, us_string(""));
}


static void
plans(void **state)
{
    size_t            need;
    us_filter_plan_t  plan;

    assert_int_equal(us_filter_plan(1000000, 0.01, 0, &plan), 0);
    need = plan.size;

    /* 9.6 bits a URL is the least that any Bloom filter can take */
    assert_true(need > 9.58 * 1000000 / 8 && need < 11.5 * 1000000 / 8);
    assert_true(plan.expected <= 0.01 && plan.expected > 0.0095);
    assert_int_equal((need - 4096) % 64, 0);

    /* a size is used whole, or the bytes that are needed are reported */
    assert_int_equal(us_filter_plan(1000000, 0.01, 2 * need, &plan), 0);
    assert_true(plan.size <= 2 * need && plan.size + 64 > 2 * need);
    assert_true(plan.expected < 0.001);
    assert_int_equal(us_filter_plan(1000000, 0.01, need - 64, &plan), -1);
    assert_int_equal(plan.size, need);

    assert_int_equal(us_filter_plan(0, 0.01, 0, &plan), -1);
    assert_int_equal(plan.size, 0);
    assert_int_equal(us_filter_plan(100, 0, 0, &plan), -1);
    assert_int_equal(us_filter_plan(100, 1, 0, &plan), -1);
    assert_int_equal(us_filter_plan(100, 0.0 / 0.0, 0, &plan), -1);
    assert_int_equal(us_filter_plan(UINT64_MAX, 0.01, 0, &plan), -1);

    /* the ends of the range */
    assert_int_equal(us_filter_plan(1, 1e-6, 0, &plan), 0);
    assert_int_equal(us_filter_plan(50000000, 1e-6, 0, &plan), 0);
    assert_int_equal(us_filter_plan(50000000, 0.5, 0, &plan), 0);
}


/* every second URL is added: no false negative, and errors as promised */

static void
errors(void **state)
{
    double             rate;
    size_t             i, n, r, wrong;
    us_filter_t       *f;
    us_filter_info_t   info;
    us_filter_plan_t   plan;

    static const double  rates[] = { 0.1, 0.01, 0.001 };

    for (r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
        n = corpus.n / 2;
        assert_int_equal(us_filter_plan(n, rates[r], 0, &plan), 0);
        f = make(&plan);

        for (i = 0, wrong = 0; i < n; i++) {
            wrong += !add(f, corpus.urls[2 * i]);
        }

        /* on the way to capacity it errs less than at capacity */
        assert_true(wrong < rates[r] * n / 2);

        for (i = 0; i < n; i++) {
            assert_int_equal(seen(f, corpus.urls[2 * i]), 1);
            assert_int_equal(add(f, corpus.urls[2 * i]), 0);
        }

        us_filter_info(f, &info);
        assert_false(us_filter_full(f));
        assert_int_equal(info.urls, n - wrong);
        assert_true(info.filling > 0.4 && info.filling < 0.6);

        for (i = 0, wrong = 0; i < n; i++) {
            wrong += seen(f, corpus.urls[2 * i + 1]);
        }

        rate = (double) wrong / n;

        for (i = 0; !us_filter_full(f); i++) {
            assert_true(i < n);
            add(f, corpus.urls[2 * i + 1]);
        }

        print_message("stated %.4f measured %.5f sampled %.5f, %.2f B/URL\n",
                      rates[r], rate, info.expected, (double) info.size / n);

        assert_true(rate < 1.3 * rates[r]);
        assert_true(rate > 0.6 * rates[r]);
        assert_true(info.expected < 1.15 * rates[r]);
        assert_true(info.expected > 0.85 * rates[r]);

        munmap(f, plan.size);
    }
}


/* grouped calls answer as single ones do, whatever the length */

static void
groups(void **state)
{
    size_t            i, n;
    uint8_t           answers[200];
    uint64_t          hashes[200];
    us_filter_t      *f, *g;
    us_filter_plan_t  plan;

    assert_int_equal(us_filter_plan(20000, 0.01, 0, &plan), 0);
    f = make(&plan);
    g = make(&plan);

    for (i = 0, n = 0; i + n < 20000; i += n, n = (n + 1) % 200) {
        for (size_t j = 0; j < n; j++) {
            hashes[j] = us_filter_hash(f, 0, corpus.urls[i + j]);
        }

        us_filter_add_many(f, hashes, n, answers);

        for (size_t j = 0; j < n; j++) {
            assert_int_equal(add(g, corpus.urls[i + j]),
                             answers[j]);
        }

        us_filter_seen_many(f, hashes, n, answers);

        for (size_t j = 0; j < n; j++) {
            assert_int_equal(answers[j], 1);
        }
    }

    assert_memory_equal(f, g, plan.size);

    /* the same URL twice in a group: new once */
    hashes[0] = us_filter_hash(f, 0, us_string("http://a.test/"));
    hashes[1] = hashes[0];
    us_filter_add_many(f, hashes, 2, answers);
    assert_int_equal(answers[0], 1);
    assert_int_equal(answers[1], 0);

    /* a domain makes it another one */
    hashes[0] = us_filter_hash(f, 1, us_string("http://a.test/"));
    assert_int_not_equal(hashes[0], hashes[1]);

    munmap(f, plan.size);
    munmap(g, plan.size);
}


/* four processes add overlapping parts at once: all bits arrive */

static void
processes(void **state)
{
    int               status;
    pid_t             pid[4];
    size_t            i, n;
    us_filter_t      *f;
    us_filter_plan_t  plan;

    n = corpus.n;
    assert_int_equal(us_filter_plan(n, 0.01, 0, &plan), 0);
    f = make(&plan);

    for (size_t p = 0; p < 4; p++) {
        pid[p] = fork();

        if (pid[p] == 0) {
            for (i = p * n / 8; i < n && i < (p + 5) * n / 8; i++) {
                add(f, corpus.urls[i]);
            }
            _exit(0);
        }
    }

    for (size_t p = 0; p < 4; p++) {
        assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
        assert_int_equal(status, 0);
    }

    for (i = 0; i < n; i++) {
        assert_int_equal(seen(f, corpus.urls[i]), 1);
    }

    munmap(f, plan.size);
}


static void
clear(char *dir)
{
    char  path[256];

    snprintf(path, sizeof(path), "%s/filter", dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/filter.new", dir);
    unlink(path);
    rmdir(dir);
}


/*
 * A process adds and reports; it is killed meanwhile, a hundred times:
 * all that it has reported is there for the next one.
 */

static void
kills(void **state)
{
    int               pipes[2], status;
    char              dir[] = "/tmp/us-filter-XXXXXX";
    pid_t             pid;
    size_t            i, done, last;
    us_disk_error_t   err;
    us_filter_file_t  file;
    us_filter_plan_t  plan;

    assert_non_null(mkdtemp(dir));
    assert_int_equal(us_filter_plan(corpus.n, 0.001, 0, &plan), 0);
    done = 0;

    for (unsigned round = 0; round < KILLS; round++) {
        assert_int_equal(pipe(pipes), 0);
        pid = fork();

        if (pid == 0) {
            if (us_filter_file_open(&file, dir, &plan, us_string("n"), 0,
                                    &err) != 0)
            {
                fprintf(stderr, "%s\n", err.text);
                _exit(1);
            }

            for (i = done; i < corpus.n; i++) {
                add(file.filter, corpus.urls[i]);
                last = i + 1;
                if (write(pipes[1], &last, sizeof(last)) != sizeof(last)) {
                    _exit(2);
                }
            }

            _exit(0);
        }

        close(pipes[1]);

        for (i = 0; i < 1 + (round * 7919) % 1500; i++) {
            if (read(pipes[0], &last, sizeof(last)) != sizeof(last)) {
                break;
            }
            done = last;
        }

        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);

        /* on a busy machine it may have come to the end of the corpus */

        assert_true(WIFSIGNALED(status) || status == 0);

        while (read(pipes[0], &last, sizeof(last)) == sizeof(last)) {
            done = last;
        }

        close(pipes[0]);
    }

    assert_true(done > KILLS);
    assert_int_equal(us_filter_file_open(&file, dir, &plan, us_string("n"), 0,
                                         &err), 0);
    assert_false(file.created);

    for (i = 0; i < done; i++) {
        assert_int_equal(seen(file.filter, corpus.urls[i]), 1);
    }

    print_message("%u kills, %zu URLs reported\n", KILLS, done);
    assert_int_equal(us_filter_file_close(&file), 0);
    clear(dir);
}


static int
reopen(const char *dir, const us_filter_plan_t *plan, us_str_t norm, int force,
    const char *expected)
{
    int               rc;
    us_disk_error_t   err;
    us_filter_file_t  file;

    rc = us_filter_file_open(&file, dir, plan, norm, force, &err);

    if (rc == 0) {
        assert_null(expected);
        assert_int_equal(us_filter_file_close(&file), 0);
        return 0;
    }

    assert_non_null(expected);

    if (strstr(err.text, expected) == NULL) {
        fail_msg("said \"%s\", not \"%s\"", err.text, expected);
    }

    return rc;
}


/* the mark in the file of that name: the eighth word */

static int
clean(const char *path)
{
    int       fd;
    uint64_t  mark;

    fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, &mark, sizeof(mark), 56), sizeof(mark));
    close(fd);

    return mark;
}


static void
marks(void **state)
{
    int               fd;
    char              dir[] = "/tmp/us-filter-XXXXXX", path[256];
    us_disk_error_t   err;
    us_filter_file_t  file, other;
    us_filter_plan_t  plan, wider;
    us_str_t          norm = us_string("crawler/1");

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/filter", dir);
    assert_int_equal(us_filter_plan(1000, 0.01, 0, &plan), 0);
    assert_int_equal(us_filter_plan(2000, 0.01, 0, &wider), 0);

    assert_int_equal(us_filter_file_open(&file, dir, &plan, norm, 0, &err), 0);
    assert_true(file.created);
    assert_int_equal(us_filter_mark(file.filter)->clean, 0);
    add(file.filter, us_string("http://a.test/"));

    /* two at a time: each sees what the other adds, the last one marks it */
    assert_int_equal(us_filter_file_open(&other, dir, &plan, norm, 0, &err), 0);
    assert_false(other.created);
    assert_int_equal(seen(other.filter,
                                    us_string("http://a.test/")), 1);
    add(other.filter, us_string("http://b.test/"));
    assert_int_equal(us_filter_file_close(&other), 0);
    assert_int_equal(us_filter_mark(file.filter)->clean, 0);
    assert_int_equal(seen(file.filter,
                                    us_string("http://b.test/")), 1);

    assert_int_equal(us_filter_file_open(&other, dir, &plan, norm, 0, &err), 0);
    assert_int_equal(us_filter_file_close(&file), 0);
    assert_int_equal(us_filter_mark(other.filter)->clean, 0);
    assert_int_equal(us_filter_file_close(&other), 0);
    assert_int_equal(clean(path), 1);

    /* both want the same filter */
    assert_int_equal(us_filter_file_open(&file, dir, &plan, norm, 0, &err), 0);
    reopen(dir, &wider, norm, 0, "a filter cannot be resized");

    /* a file that was removed while it is used is not made a second time */
    assert_int_equal(unlink(path), 0);
    reopen(dir, &plan, norm, 0, "which others use");
    us_filter_file_drop(&file);
    assert_int_equal(us_filter_file_open(&file, dir, &plan, norm, 0, &err), 0);
    add(file.filter, us_string("http://a.test/"));

    /* not closed, same boot: nothing is lost */
    us_filter_file_drop(&file);
    assert_int_equal(us_filter_file_open(&file, dir, &plan, norm, 0, &err), 0);
    assert_false(file.created);
    assert_false(file.doubtful);
    assert_int_equal(seen(file.filter,
                                    us_string("http://a.test/")), 1);

    /* not closed, another boot: refused, unless forced */
    us_filter_mark(file.filter)->boot[3] ^= 1;
    us_filter_file_drop(&file);
    assert_int_equal(reopen(dir, &plan, norm, 0, "bits may be missing"),
                     US_FILTER_UNCLEAN);
    reopen(dir, &plan, norm, 1, NULL);
    reopen(dir, &plan, norm, 0, NULL);

    /* closed, another boot */
    assert_int_equal(us_filter_file_open(&file, dir, &plan, norm, 0, &err), 0);
    us_filter_mark(file.filter)->boot[3] ^= 1;
    assert_int_equal(us_filter_file_close(&file), 0);
    reopen(dir, &plan, norm, 0, NULL);

    /* another configuration */
    reopen(dir, &wider, norm, 0, "a filter cannot be resized");
    reopen(dir, &plan, us_string("crawler/2"), 1, "were normalized as");
    reopen("/nonexistent/a/b", &plan, norm, 0, "cannot make");

    /* a file cut short, and one that is something else */
    assert_int_equal(truncate(path, plan.size - 64), 0);
    reopen(dir, &plan, norm, 0, "length");
    assert_int_equal(truncate(path, 100), 0);
    reopen(dir, &plan, norm, 0, "too short");
    fd = open(path, O_WRONLY|O_TRUNC);
    assert_int_equal(posix_fallocate(fd, 0, plan.size), 0);
    close(fd);
    reopen(dir, &plan, norm, 0, "not a filter");

    clear(dir);
}


/*
 * Four processes open, add, and close or die, over and over: whenever one has
 * the file open it is marked as used, and when all have closed it is clean.
 */

static void
storm(void **state)
{
    int               status;
    char              dir[] = "/tmp/us-filter-XXXXXX", path[256];
    char              url[64];
    pid_t             pids[4];
    unsigned          i, k, n;
    us_disk_error_t   err;
    us_filter_file_t  file;
    us_filter_plan_t  plan;
    us_str_t          text;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/filter", dir);
    assert_int_equal(us_filter_plan(100000, 0.001, 0, &plan), 0);

    for (k = 0; k < 4; k++) {
        pids[k] = fork();

        for (i = 0; pids[k] == 0; i++) {
            if (i == STORM) {
                _exit(0);
            }

            if (us_filter_file_open(&file, dir, &plan, us_string("n"), 0,
                                    &err) != 0)
            {
                fprintf(stderr, "%s\n", err.text);
                _exit(1);
            }

            n = snprintf(url, sizeof(url), "http://%u.test/%u", k, i);
            text.data = (uint8_t *) url;
            text.len = n;
            add(file.filter, text);

            if (us_filter_mark(file.filter)->clean != 0) {
                _exit(2);
            }

            if (i % 8 == 7) {
                us_filter_file_drop(&file);

            } else if (us_filter_file_close(&file) != 0) {
                _exit(3);
            }
        }
    }

    for (k = 0; k < 4; k++) {
        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_int_equal(status, 0);
    }

    assert_int_equal(us_filter_file_open(&file, dir, &plan, us_string("n"), 0,
                                         &err), 0);

    for (k = 0; k < 4; k++) {
        for (i = 0; i < STORM; i++) {
            n = snprintf(url, sizeof(url), "http://%u.test/%u", k, i);
            text.data = (uint8_t *) url;
            text.len = n;
            assert_int_equal(seen(file.filter, text), 1);
        }
    }

    assert_int_equal(us_filter_file_close(&file), 0);
    assert_int_equal(clean(path), 1);
    clear(dir);
}


/*
 * Without /proc no boot is known: one that opens the file beside another one,
 * as the new master of a binary upgrade does, may trust the mark of that; one
 * that is alone may not.
 */

#define NO_CHROOT  77


static int
bootless(const char *root, const us_filter_plan_t *plan)
{
    us_str_t          norm = us_string("n");
    us_disk_error_t   err;
    us_filter_file_t  file, other;

    if (chroot(root) == -1) {
        return NO_CHROOT;
    }

    if (us_filter_file_open(&file, "/f", plan, norm, 0, &err) != 0
        || us_filter_file_open(&other, "/f", plan, norm, 0, &err) != 0)
    {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }

    us_filter_file_drop(&other);
    us_filter_file_drop(&file);

    return us_filter_file_open(&file, "/f", plan, norm, 0, &err)
           == US_FILTER_UNCLEAN ? 0 : 2;
}


static void
boots(void **state)
{
    int               status;
    char              dir[] = "/tmp/us-filter-XXXXXX", path[256];
    pid_t             pid;
    us_filter_plan_t  plan;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/f", dir);
    assert_int_equal(us_filter_plan(1000, 0.01, 0, &plan), 0);

    pid = fork();

    if (pid == 0) {
        _exit(bootless(dir, &plan));
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);

    if (status == NO_CHROOT << 8) {
        assert_int_equal(rmdir(dir), 0);
        skip();
    }

    assert_int_equal(status, 0);
    clear(path);
    assert_int_equal(rmdir(dir), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(plans),
        cmocka_unit_test(errors),
        cmocka_unit_test(groups),
        cmocka_unit_test(processes),
        cmocka_unit_test(kills),
        cmocka_unit_test(marks),
        cmocka_unit_test(boots),
        cmocka_unit_test(storm),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
