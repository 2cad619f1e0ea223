
/*
 * The founding structure, which the benchmarks measure ours against: four
 * URLs by hand, and its tree on a corpus.
 *
 * The paper explains itself by four URLs of its university; its text is not
 * to be had any more, so that these four only follow its manner: a site, a
 * directory of it, a page there, and a page that shares more with the third
 * than with its neighbour on the other side.
 */


#include "../../bench/paper/avl.c"

#include "corpus.h"
#include "store/us_store.h"

#include <sys/mman.h>


#define LINES  100000


static const us_str_t  four[] = {
    us_string("http://www.example.ac.th/"),
    us_string("http://www.example.ac.th/library/"),
    us_string("http://www.example.ac.th/library/index.html"),
    us_string("http://www.example.ac.th/library/info/hours.html")
};


static void
expect(const avl_t *t, uint32_t id, uint32_t ref, uint32_t lcp,
    const char *tail)
{
    uint32_t  r, n;
    us_str_t  text;

    text = avl_record(t, id, &r, &n);

    assert_int_equal(r, ref);
    assert_int_equal(n, lcp);
    assert_int_equal(text.len, strlen(tail));
    assert_memory_equal(text.data, tail, text.len);
}


/* each refers to the longest prefix that there was before it */

static void
references(void **state)
{
    avl_t    *t;
    uint8_t   buf[US_URL_MAX];

    t = avl_create();

    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(avl_add(t, four[i]), i);
        assert_true(avl_check(t));
    }

    expect(t, 0, AVL_NONE, 0, "http://www.example.ac.th/");
    expect(t, 1, 0, 25, "library/");
    expect(t, 2, 1, 33, "index.html");
    expect(t, 3, 2, 35, "fo/hours.html");

    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(avl_get(t, i, buf), four[i].len);
        assert_memory_equal(buf, four[i].data, four[i].len);
        assert_int_equal(avl_add(t, four[i]), i);
        assert_int_equal(avl_find(t, four[i]), i);
    }

    assert_int_equal(avl_find(t, us_string("http://www.example.ac.th/l")),
                     AVL_NONE);

    /* three in ascending order: one rotation has made the second the root */
    assert_int_equal(t->root, 1);
    avl_destroy(t);
}


/* the last one first: references follow the order of arrival */

static void
arrivals(void **state)
{
    avl_t  *t;

    t = avl_create();

    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(avl_add(t, four[3 - i]), i);
    }

    expect(t, 1, 0, 35, "dex.html");
    expect(t, 2, 0, 33, "");
    expect(t, 3, 1, 25, "");
    assert_true(avl_check(t));
    avl_destroy(t);
}


static void
nothing(void *data)
{
}


/* the store, on the same four: what it answers is the same */

static void
store(void **state)
{
    void              *mem;
    size_t             size, len;
    uint8_t            buf[US_URL_MAX + 8];
    us_store_t        *s;
    us_store_conf_t    conf;
    us_store_lock_t    lock;
    us_store_item_t    items[4];

    memset(&conf, 0, sizeof(conf));
    lock.lock = nothing;
    lock.unlock = nothing;
    lock.data = NULL;
    memset(items, 0, sizeof(items));
    conf.norm = us_string("");

    size = us_store_min_size(&conf) + (4 << 20);
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,
               -1, 0);
    assert_true(mem != MAP_FAILED);
    assert_int_equal(us_store_format(mem, size, &conf), 0);

    s = us_store_open(mem, &lock);
    assert_non_null(s);

    for (unsigned i = 0; i < 4; i++) {
        items[i].url = four[i];
        items[i].merge = 1;
    }

    us_store_add(s, items, 4);

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(items[i].status, US_NEW);
        assert_int_equal(items[i].id, i);
        assert_int_equal(us_store_get(s, i, buf, &len), US_OK);
        assert_int_equal(len, four[i].len);
        assert_memory_equal(buf, four[i].data, len);
    }

    us_store_close(s);
    munmap(mem, size);
}


static void
corpus(void **state)
{
    FILE         *f;
    char         *line;
    avl_t        *t;
    size_t        size, n, known;
    uint8_t       buf[US_URL_MAX];
    ssize_t       len;
    us_str_t      url;
    uint32_t      id, added;
    avl_info_t    info;

    f = corpus_open("html_news_blogs_pages", LINES, 0);
    t = avl_create();
    line = NULL;
    size = 0;
    known = 0;

    for (n = 0; (len = getline(&line, &size, f)) > 0; n++) {
        url.data = (uint8_t *) line;
        url.len = len - 1;
        assert_true(url.len <= US_URL_MAX);

        id = avl_find(t, url);
        known += id != AVL_NONE;
        added = avl_add(t, url);
        assert_int_equal(added, id == AVL_NONE ? t->n - 1 : id);
        assert_int_equal(avl_get(t, avl_find(t, url), buf), url.len);
        assert_memory_equal(buf, url.data, url.len);
    }

    free(line);
    corpus_close(f);

    assert_int_equal(n, LINES);
    assert_true(avl_check(t));

    avl_info(t, &info);
    assert_int_equal(info.urls, n - known);
    assert_true(info.height < 1.45 * 17 + 2);
    print_message("%u URLs, height %u, %.2f records a URL, %.1f B/URL\n",
                  info.urls, info.height, info.hops,
                  (double) (info.tree + info.records) / info.urls);

    avl_destroy(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(references),
        cmocka_unit_test(arrivals),
        cmocka_unit_test(store),
        cmocka_unit_test(corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
