
/*
 * Models and the room that they need: a ring smaller than a model, a zone
 * that has no room for one, a journal that is late.
 */


#include "store_zone.h"

#include <unistd.h>


/* enough for the first model, see us_learn.c */
#define URLS  33000


static us_str_t
url_make(char *p, unsigned i)
{
    us_str_t  s;
    uint64_t  seed;

    static const char  *words[] = {
        "news", "politics", "sports", "the", "of", "story", "%C3%BCber", "2013"
    };

    seed = zone_seed;
    zone_seed = i * 77 + 1;

    s.data = (uint8_t *) p;
    s.len = (size_t) sprintf(p, "http://host%u.example/%s/%s-%u?id=%08x",
                             rnd(300), words[rnd(8)], words[rnd(8)], i,
                             (unsigned) rnd64());
    zone_seed = seed;

    return s;
}


/* the stream, as the journal would have it */

typedef struct {
    uint8_t  *data;
    size_t    len;
} kept_t;


static void
drain(us_store_t *s, kept_t *kept)
{
    unsigned  i;
    us_str_t  pieces[2];

    us_store_ops(s, us_store_written(s), pieces);

    for (i = 0; i < 2; i++) {
        if (pieces[i].len) {
            kept->data = realloc(kept->data, kept->len + pieces[i].len);
            memcpy(kept->data + kept->len, pieces[i].data, pieces[i].len);
            kept->len += pieces[i].len;
        }
    }

    us_store_set_written(s, us_store_published(s));
}


static void
add_to(us_store_t *s, unsigned from, unsigned to, kept_t *kept)
{
    char             text[64][128];
    unsigned         i, n;
    us_store_item_t  items[64];

    for ( /* void */ ; from < to; from += n) {
        n = to - from < 64 ? to - from : 64;

        for (i = 0; i < n; i++) {
            url_make(text[i], from + i);
            items[i] = item(text[i], 0);
        }

        us_store_add(s, items, n);
        drain(s, kept);

        for (i = 0; i < n; i++) {
            assert_int_equal(items[i].status, US_NEW);
        }
    }
}


static void
assert_all(us_store_t *s, unsigned n)
{
    char             url[128];
    size_t           len;
    uint8_t          buf[US_URL_MAX + 8];
    unsigned         i;
    us_store_item_t  it;

    assert_int_equal(us_store_next_id(s), n);

    for (i = 0; i < n; i++) {
        url_make(url, i);
        it = lookup(s, url);
        assert_int_equal(it.status, US_SEEN);
        assert_int_equal(it.id, i);
        assert_int_equal(us_store_get(s, i, buf, &len), US_OK);
        assert_string(buf, len, url);
    }
}


/*
 * With rings of 64 KB and less, the first model, of 68 KB, was learnt over and
 * over and never published: a smaller one is learnt.
 */

static void
small_ring(void **state)
{
    size_t            ring;
    zone_t           *z, *copy;
    kept_t            kept;
    uint64_t          before;
    us_store_info_t   info;

    for (ring = 64 << 10; ring >= 16 << 10; ring /= 4) {
        memset(&kept, 0, sizeof(kept));
        z = zone_create(8 << 20, ring);
        add_to(z->store, 0, URLS, &kept);

        assert_int_equal(us_store_train_due(z->store), 1);
        before = us_store_published(z->store);
        assert_int_equal(us_store_train(z->store, NULL), 1);
        assert_in_range(us_store_published(z->store) - before, 1000, ring);
        assert_int_equal(us_store_train_due(z->store), 0);

        us_store_info(z->store, &info);
        assert_true(info.parts[US_PART_MODELS] > 0);

        add_to(z->store, URLS, URLS + 2000, &kept);
        assert_all(z->store, URLS + 2000);

        copy = zone_create(8 << 20, 0);
        assert_int_equal(us_store_apply(copy->store, kept.data, kept.len),
                         kept.len);
        assert_all(copy->store, URLS + 2000);

        free(kept.data);
        zone_destroy(copy);
        zone_destroy(z);
    }
}


/* a ring that no model passes: nothing is learnt, and nobody tries */

static void
tiny_ring(void **state)
{
    zone_t   *z;
    kept_t    kept = { NULL, 0 };

    z = zone_create(8 << 20, 4096);
    add_to(z->store, 0, URLS, &kept);

    assert_int_equal(us_store_train_due(z->store), 0);
    assert_int_equal(us_store_train(z->store, NULL), 0);
    assert_all(z->store, URLS);

    free(kept.data);
    zone_destroy(z);
}


/*
 * A zone that became full has no room for a model, and never will: another
 * handle, of any process, must not learn it again for nothing.
 */

static void
full_zone(void **state)
{
    char              url[128];
    zone_t           *z;
    unsigned          n;
    us_store_t       *other;
    us_store_item_t   it;

    z = zone_create(2 << 20, 0);

    for (n = 0; ; n++) {
        url_make(url, n);
        it = add(z->store, url);

        if (it.status == US_FULL) {
            break;
        }

        assert_int_equal(it.status, US_NEW);
    }

    assert_true(n >= 1 << 15);
    assert_int_equal(us_store_train_due(z->store), 1);
    assert_int_equal(us_store_train(z->store, NULL), 0);

    other = us_store_open(z->mem, &zone_no_lock);
    assert_int_equal(us_store_train_due(other), 0);
    assert_int_equal(us_store_train(other, NULL), 0);
    us_store_close(other);

    assert_int_equal(us_store_train_due(z->store), 0);
    assert_all(z->store, n);

    zone_destroy(z);
}


/* the journal is late: the model is kept, and published later */

static void
late_journal(void **state)
{
    zone_t           *z;
    kept_t            kept = { NULL, 0 };
    unsigned          n;
    us_store_item_t   it;
    char              url[128];

    z = zone_create(8 << 20, 128 << 10);
    add_to(z->store, 0, URLS, &kept);

    for (n = URLS; ; n++) {
        url_make(url, n);
        it = add(z->store, url);

        if (it.status == US_BUSY) {
            break;
        }
    }

    assert_int_equal(us_store_train(z->store, NULL), 0);
    assert_int_equal(us_store_train_due(z->store), 1);

    drain(z->store, &kept);
    assert_int_equal(us_store_train(z->store, NULL), 1);

    add_to(z->store, n, n + 100, &kept);
    assert_all(z->store, n + 100);

    free(kept.data);
    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(small_ring),
        cmocka_unit_test(tiny_ring),
        cmocka_unit_test(full_zone),
        cmocka_unit_test(late_journal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
