
/*
 * The front door of the store against a plain reference: arrays and strcmp().
 */


#include "store_zone.h"
#include "codec/us_record_private.h"
#include "store/us_store_private.h"


/* what the store must know */

typedef struct {
    char        *url;
    int          deleted;
    int          marked;
    size_t       next;                /* of its bucket, plus one */
} known_t;

static known_t   known[100000];
static size_t    nknown;
static size_t    buckets[65536];


static size_t *
bucket(const char *url)
{
    unsigned  h;

    for (h = 0; *url; url++) {
        h = h * 31 + *url;
    }

    return &buckets[h % 65536];
}


static size_t
find(const char *url)
{
    size_t  i;

    for (i = *bucket(url); i > 0; i = known[i - 1].next) {
        if (!known[i - 1].deleted && strcmp(known[i - 1].url, url) == 0) {
            return i - 1;
        }
    }

    return nknown;
}


static void
forget(void)
{
    while (nknown) {
        free(known[--nknown].url);
    }

    memset(buckets, 0, sizeof(buckets));
}


static void
check(us_store_t *s, size_t id)
{
    size_t             len;
    uint8_t            buf[US_URL_MAX + 8];
    us_store_status_t  status;

    status = us_store_get(s, id, buf, &len);

    if (known[id].deleted) {
        assert_int_equal(status, US_DELETED);
        return;
    }

    assert_int_equal(status, US_OK);
    assert_int_equal(len, strlen(known[id].url));
    assert_memory_equal(buf, known[id].url, len);
    assert_int_equal(mark_has(s, 1, id), known[id].marked);
}


/* few sites, short paths: many repetitions */

static char *
random_url(void)
{
    char    *url;
    size_t   i, n;

    url = malloc(100 + 600);
    i = sprintf(url, "http%s://site%u.test/", rnd(2) ? "s" : "", rnd(200));

    for (n = rnd(4); n; n--) {
        i += sprintf(url + i, "%c/", 'a' + rnd(5));
    }

    i += sprintf(url + i, "%u", rnd(300));

    if (rnd(50) == 0) {
        memset(url + i, 'x', 500);
        url[i + 500] = '\0';
    }

    return url;
}


static void
step(us_store_t *s)
{
    int              was;
    char            *url;
    size_t           id;
    uint64_t         lsn;
    us_store_item_t  item;

    url = random_url();
    id = find(url);

    switch (rnd(8)) {

    case 0:
        item = lookup(s, url);
        assert_int_equal(item.status, id < nknown ? US_SEEN : US_UNSEEN);
        break;

    case 1:
        if (nknown) {
            id = rnd(nknown);
            assert_int_equal(us_store_delete(s, id, &was, &lsn), US_OK);
            assert_int_equal(was, known[id].deleted);
            known[id].deleted = 1;
            known[id].marked = 0;
            check(s, id);
        }

        break;

    case 2:
        if (nknown) {
            id = rnd(nknown);
            was = rnd(2);
            assert_int_equal(mark_put(s, 1, id, was, &lsn),
                             known[id].deleted ? US_DELETED : US_OK);
            known[id].marked = was && !known[id].deleted;
            check(s, id);
        }

        break;

    default:
        item = add(s, url);
        assert_int_equal(item.status, id < nknown ? US_SEEN : US_NEW);
        assert_int_equal(item.id, id);

        if (id == nknown) {
            known[nknown].url = url;
            known[nknown].deleted = 0;
            known[nknown].next = *bucket(url);
            *bucket(url) = nknown + 1;
            known[nknown++].marked = 0;
            check(s, id);
            return;
        }
    }

    free(url);
}


static void
against_reference(void **state)
{
    size_t           i;
    zone_t          *z;
    us_store_info_t  info;

    z = zone_create(8 << 20, 1 << 16);

    for (i = 0; i < 60000; i++) {
        step(z->store);
        us_store_set_written(z->store, us_store_published(z->store));
    }

    for (i = 0; i < nknown; i++) {
        check(z->store, i);
    }

    assert_true(nknown > 10000);
    assert_int_equal(us_store_next_id(z->store), nknown);

    us_store_info(z->store, &info);
    assert_int_equal(info.urls, nknown);
    assert_int_equal(info.sites, 200);
    assert_int_equal(info.recoveries, 0);

    forget();
    zone_destroy(z);
}


/* ids are given in order, in batches, with repetitions inside */

static void
batches(void **state)
{
    size_t           i, n;
    zone_t          *z;
    char             text[1000][64];
    us_store_item_t  items[1000];

    z = zone_create(4 << 20, 0);

    for (n = 0; n < 10; n++) {
        for (i = 0; i < 1000; i++) {
            items[i] = item(text[i], sprintf(text[i],
                                             "http://a.test/%zu",
                                             (n * 500 + i / 2)));
        }

        us_store_add(z->store, items, 1000);

        for (i = 0; i < 1000; i++) {
            assert_int_equal(items[i].id, n * 500 + i / 2);
            assert_int_equal(items[i].status, i % 2 ? US_SEEN : US_NEW);
            assert_int_equal(items[i].new_site, n == 0 && i == 0);
        }
    }

    zone_destroy(z);
}


/* look-ups of a group, of any size; every other URL is known */

static void
groups(void **state)
{
    size_t           i, n, id;
    zone_t          *z;
    char             text[1000][64];
    us_store_item_t  items[1000];

    z = zone_create(4 << 20, 0);

    for (id = 0; id < 20000; id++) {
        (void) sprintf(text[0], "http://a.test/%zu", id);
        (void) add(z->store, text[0]);
    }

    for (n = 1; n <= 1000; n = n < 100 ? n + 1 : n + 100) {
        id = n * 17;

        for (i = 0; i < n; i++) {
            items[i] = item(text[i], sprintf(text[i], "http://a.test/%s%zu",
                                             i % 2 ? "-" : "", id + i));
        }

        us_store_seen(z->store, items, n);

        for (i = 0; i < n; i++) {
            assert_int_equal(items[i].status, i % 2 ? US_UNSEEN : US_SEEN);
            assert_true(i % 2 || items[i].id == id + i);
        }
    }

    zone_destroy(z);
}


/* the spelling of a site is that of its first URL, for ever */

static void
spelling(void **state)
{
    int               was;
    zone_t           *z;
    uint8_t           buf[US_URL_MAX + 8];
    uint64_t          lsn;
    us_store_item_t   items[3];
    us_store_site_t   site;

    z = zone_create(1 << 20, 0);

    items[0] = item("http://www.a.test/1", 0);
    items[1] = item("http://a.test/2", 0);
    items[2] = item("https://a.test/1", 0);
    items[0].merge = items[1].merge = items[2].merge = 1;

    us_store_add(z->store, items, 3);

    assert_int_equal(items[0].new_site, 1);
    assert_int_equal(items[1].new_site, 0);
    assert_int_equal(items[2].status, US_NEW);
    assert_string(buf, us_store_item_url(&items[0], buf),
                  "http://www.a.test/1");
    assert_string(buf, us_store_item_url(&items[1], buf),
                  "http://www.a.test/2");
    assert_string(buf, us_store_item_url(&items[2], buf),
                  "https://www.a.test/1");

    assert_int_equal(us_store_delete(z->store, 0, &was, &lsn), US_OK);

    items[0] = item("http://a.test/3", 0);
    items[0].merge = 1;
    us_store_seen(z->store, items, 1);
    assert_int_equal(items[0].status, US_UNSEEN);
    us_store_spell(z->store, items);
    assert_string(buf, us_store_item_url(&items[0], buf),
                  "http://www.a.test/3");

    assert_int_equal(us_store_site(z->store, us_string("a.test"), 1, &site),
                     US_OK);
    assert_int_equal(site.first, 0);
    assert_int_equal(site.spelling, 2);
    assert_int_equal(us_store_site(z->store, us_string("a.tes"), 1, &site),
                     US_UNKNOWN);
    assert_int_equal(us_store_site(z->store, us_string("www.a.tes"), 0, &site),
                     US_UNKNOWN);
    assert_int_equal(us_store_first_of_site(z->store, 0), 1);
    assert_int_equal(us_store_first_of_site(z->store, 1), 0);

    /* not to be merged: two sites */

    items[0] = item("http://www.b.test/", 0);
    items[1] = item("http://b.test/", 0);
    us_store_add(z->store, items, 2);
    assert_int_equal(items[0].new_site, 1);
    assert_int_equal(items[1].new_site, 1);
    assert_string(buf, us_store_item_url(&items[1], buf), "http://b.test/");

    assert_int_equal(add(z->store, "http://www.c.test/").new_site, 1);
    items[0] = item("http://www.c.test/1", 0);
    items[1] = item("http://c.test/", 0);
    us_store_add(z->store, items, 2);
    assert_int_equal(items[0].new_site, 0);
    assert_int_equal(items[1].new_site, 1);

    zone_destroy(z);
}


/* a zone with so many URLs, or as many as there is room for; returns these */

static zone_t *
spelling_fill(size_t *n)
{
    size_t   i, len;
    char     url[512];
    zone_t  *z;

    z = zone_create(1 << 20, 0);
    zone_seed = 5;

    for (i = 0; i < *n; i++) {
        len = sprintf(url, "http://long.test/");

        while (len < 200) {
            len += sprintf(url + len, "%016llx", (unsigned long long) rnd64());
        }

        if (add(z->store, url).status != US_NEW) {
            break;
        }
    }

    *n = i;

    return z;
}


/*
 * The first URL of a site finds no room, a shorter one of the other spelling
 * after it does: it is the first one, as it is spelled.  There is room for one
 * more URL, but not for a very long one.
 */

static void
spelling_full(void **state)
{
    size_t           i, len;
    zone_t          *z;
    uint8_t          buf[US_URL_MAX + 8];
    static char      text[4096];
    us_store_item_t  items[3];

    len = SIZE_MAX;
    z = spelling_fill(&len);
    zone_destroy(z);

    len--;
    z = spelling_fill(&len);

    len = sprintf(text, "http://www.a.test/");

    while (len < 2000) {
        len += sprintf(text + len, "%016llx", (unsigned long long) rnd64());
    }

    items[0] = item(text, len);
    items[1] = item("http://a.test/1", 0);
    items[2] = item("http://www.a.test/2", 0);

    for (i = 0; i < 3; i++) {
        items[i].merge = 1;
    }

    us_store_add(z->store, items, 3);

    assert_int_equal(items[0].status, US_FULL);
    assert_int_equal(items[1].status, US_NEW);
    assert_int_equal(items[1].new_site, 1);
    assert_string(buf, us_store_item_url(&items[1], buf), "http://a.test/1");
    assert_int_equal(items[2].status, US_NEW);
    assert_int_equal(items[2].new_site, 0);
    assert_string(buf, us_store_item_url(&items[2], buf), "http://a.test/2");

    for (i = 1; i < 3; i++) {
        assert_int_equal(us_store_get(z->store, items[i].id, buf, &len),
                         US_OK);
        assert_int_equal(len, 15);
        assert_memory_equal(buf, i == 1 ? "http://a.test/1"
                                        : "http://a.test/2", len);
    }

    zone_destroy(z);
}


/*
 * What URLs cost is apart from what SIZE and the ring cost: an empty store has
 * no content, and the same URLs have as much with a ring as without.
 */

static void
parts(void **state)
{
    char             url[64];
    size_t           ring;
    zone_t          *z;
    unsigned         i;
    uint64_t         content[2];
    us_store_info_t  info;

    for (ring = 0; ring <= 1 << 16; ring += 1 << 16) {
        z = zone_create(4 << 20, ring);

        us_store_info(z->store, &info);
        assert_int_equal(info.parts[US_PART_RING], ring);
        assert_in_range(info.parts[US_PART_HEADER], 1, 1 << 16);
        assert_int_equal(info.content, info.parts[US_PART_SETS]);
        assert_int_equal(info.used,
                         info.content + info.parts[US_PART_HEADER] + ring);

        for (i = 0; i < 2000; i++) {
            sprintf(url, "http://h%u.test/%u", i / 10, i);
            assert_int_equal(add(z->store, url).status, US_NEW);
            us_store_set_written(z->store, us_store_published(z->store));
        }

        us_store_info(z->store, &info);
        assert_int_equal(info.content, info.used - ring
                                       - info.parts[US_PART_HEADER]);
        content[ring != 0] = info.content;
        zone_destroy(z);
    }

    assert_int_equal(content[0], content[1]);
}


/* a full zone refuses adds, and everything else goes on */

static void
full(void **state)
{
    int               was;
    char              url[64];
    size_t            i, n;
    zone_t           *z;
    uint64_t          lsn;
    us_store_info_t   info;
    us_store_item_t   it;

    z = zone_create(us_store_min_size(&zone_conf), 0);

    for (n = 0; n < 1000000; n++) {
        sprintf(url, "http://h%zu.test/%zu", n / 10, n);
        it = add(z->store, url);

        if (it.status == US_FULL) {
            break;
        }

        assert_int_equal(it.status, US_NEW);
    }

    assert_int_equal(it.status, US_FULL);
    assert_true(n > 1000);

    us_store_info(z->store, &info);
    assert_int_equal(info.full, 1);
    assert_int_equal(us_store_next_id(z->store), n);
    assert_true(info.used <= info.size);

    for (i = 0; i < n; i++) {
        sprintf(url, "http://h%zu.test/%zu", i / 10, i);
        it = lookup(z->store, url);
        assert_int_equal(it.status, US_SEEN);
        assert_int_equal(it.id, i);
    }

    for (i = 0; i < n; i++) {
        assert_int_equal(mark_put(z->store, 0, i, 1, &lsn), US_OK);
        assert_int_equal(us_store_delete(z->store, i, &was, &lsn), US_OK);
        sprintf(url, "http://h%zu.test/%zu", i / 10, i);
        it = lookup(z->store, url);
        assert_int_equal(it.status, US_UNSEEN);
    }

    zone_destroy(z);
}


/* a ring that nobody empties: busy, and nothing is half done */

static void
busy(void **state)
{
    char              url[64];
    size_t            n;
    zone_t           *z;
    us_str_t          pieces[2];
    us_store_item_t   it;

    z = zone_create(1 << 20, 4096);

    for (n = 0; n < 10000; n++) {
        sprintf(url, "http://h%zu.test/%zu", n / 10, n);
        it = add(z->store, url);

        if (it.status == US_BUSY) {
            break;
        }
    }

    assert_int_equal(it.status, US_BUSY);
    assert_int_equal(us_store_next_id(z->store), n);

    us_store_ops(z->store, 0, pieces);
    assert_true(pieces[0].len + pieces[1].len <= 4096);
    assert_true(pieces[0].len + pieces[1].len > 4000);

    us_store_set_written(z->store, us_store_published(z->store));
    assert_int_equal(add(z->store, url).status, US_NEW);

    zone_destroy(z);
}


/*
 * Long and short URLs of one batch in a small ring: after one that does not
 * fit none is added, or the next round would call it seen.
 */

static void
busy_in_order(void **state)
{
    size_t           i, k, done, rounds;
    zone_t          *z;
    static char      text[600][520];
    us_store_item_t  items[600];

    z = zone_create(1 << 20, 4096);

    for (i = 0; i < 600; i++) {
        k = sprintf(text[i], "http://h%zu.test/%zu/", i / 10, i);

        while (i % 3 == 0 && k < 500) {
            k += sprintf(text[i] + k, "%x", (unsigned) (k * i * 2654435761u));
        }

        items[i] = item(text[i], k);
    }

    for (done = 0, rounds = 0; done < 600; rounds++) {

        us_store_add(z->store, items + done, 600 - done);

        for (i = done; i < 600 && items[i].status != US_BUSY; i++) {
            assert_int_equal(items[i].status, US_NEW);
            assert_int_equal(items[i].id, i);
        }

        assert_true(i > done);
        assert_int_equal(us_store_next_id(z->store), i);
        done = i;

        for ( /* void */ ; i < 600; i++) {
            assert_int_equal(items[i].status, US_BUSY);
        }

        us_store_set_written(z->store, us_store_published(z->store));
    }

    assert_true(rounds > 5);

    zone_destroy(z);
}


/* marks that are declared later, by another handle: all or none of them */

static void
more_marks(void **state)
{
    zone_t      *z;
    uint64_t     lsn;
    us_str_t     names[US_STORE_MARKS + 1];
    unsigned     i;
    us_store_t  *other;

    z = zone_create(1024 * 1024, 0);
    other = us_store_open(z->mem, &zone_no_lock);
    assert_non_null(other);
    (void) add(z->store, "http://a.test/");

    names[0] = us_string("visited");
    names[1] = us_string("todo");

    for (i = 2; i <= US_STORE_MARKS; i++) {
        names[i] = us_string("more");
    }

    assert_int_equal(us_store_add_marks(z->store, names, 1), -1);
    assert_int_equal(us_store_add_marks(z->store, names,
                                        US_STORE_MARKS + 1), -1);
    assert_int_equal(us_store_add_marks(z->store, names, 2), 0);
    assert_int_equal(us_store_nmarks(other), 2);

    names[2] = us_string("a name of more than thirty-two bytes");
    assert_int_equal(us_store_add_marks(z->store, names, 3), -1);

    names[2] = us_string("third");
    names[1] = us_string("tod");
    assert_int_equal(us_store_add_marks(z->store, names, 3), -1);
    assert_int_equal(us_store_mark_number(other, names[2]), -1);

    names[1] = us_string("todo");
    assert_int_equal(us_store_add_marks(z->store, names, 3), 0);
    assert_int_equal(us_store_mark_number(other, names[2]), 2);

    assert_int_equal(mark_has(other, 2, 0), 0);
    assert_int_equal(mark_put(other, 2, 0, 1, &lsn), US_OK);
    assert_int_equal(mark_has(z->store, 2, 0), 1);

    assert_int_equal(us_store_add_marks(z->store, names,
                                        US_STORE_MARKS), 0);
    assert_int_equal(mark_put(other, US_STORE_MARKS - 1, 0, 1, &lsn),
                     US_OK);

    us_store_close(other);
    zone_destroy(z);
}


/* the list of marks in a configuration */

static void
marks_list(void **state)
{
    char             many[US_STORE_MARKS * 2 + 2], *p;
    unsigned         i;
    us_store_conf_t  conf;

    static const char *const  bad[] = {
        "", ",", "a,", ",a", "a,,b", "a b", "a,b,a", "\xc3\xa9", "a/b",
        "abcdefghijklmnopqrstuvwxyz0123456"
    };

    memset(&conf, 0, sizeof(conf));
    assert_int_equal(us_conf_marks(&conf, us_string("a,B-2,c_d,aa")), 0);
    assert_int_equal(conf.nmarks, 4);
    assert_int_equal(us_str_compare(conf.marks[1], us_string("B-2")), 0);
    assert_int_equal(conf.marks[3].len, 2);

    assert_int_equal(us_conf_marks(&conf, us_string("x,B-2")), -1);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&conf, 0, sizeof(conf));
        assert_int_equal(us_conf_marks(&conf,
                             (us_str_t) { strlen(bad[i]),
                                          (const uint8_t *) bad[i] }), -1);
    }

    for (i = 0, p = many; i <= US_STORE_MARKS; i++) {
        *p++ = 'a' + i;
        *p++ = ',';
    }

    memset(&conf, 0, sizeof(conf));
    assert_int_equal(us_conf_marks(&conf,
                         (us_str_t) { US_STORE_MARKS * 2 - 1,
                                      (uint8_t *) many }), 0);
    assert_int_equal(conf.nmarks, US_STORE_MARKS);

    memset(&conf, 0, sizeof(conf));
    assert_int_equal(us_conf_marks(&conf,
                         (us_str_t) { US_STORE_MARKS * 2 + 1,
                                      (uint8_t *) many }), -1);

    assert_int_equal(us_conf_is_name(us_string("abc"), 3), 1);
    assert_int_equal(us_conf_is_name(us_string("abcd"), 3), 0);
}


/* the tables for decoding are there when a process takes the lock */

static void
has_tables(void *data)
{
    us_store_t  **s = data;

    assert_non_null((*s)->codec->models.tables[US_MODEL_BUILTIN].decoder);
}


static void
tables_first(void **state)
{
    int              was;
    zone_t          *z;
    uint64_t         lsn;
    us_store_t      *s;
    us_store_lock_t  lock = { has_tables, zone_lock, &s };

    z = zone_create(1 << 20, 0);
    assert_int_equal(add(z->store, "http://a.test/").status, US_NEW);

    s = us_store_open(z->mem, &lock);
    assert_non_null(s);
    assert_int_equal(us_store_delete(s, 1, &was, &lsn), US_UNKNOWN);
    assert_int_equal(us_store_delete(s, 0, &was, &lsn), US_OK);
    us_store_close(s);

    s = us_store_open(z->mem, &lock);
    assert_non_null(s);
    assert_int_equal(add(s, "http://b.test/").status, US_NEW);
    us_store_close(s);

    zone_destroy(z);
}


/*
 * A site that is not in the store, and sites whose names begin with its name:
 * it is not found, also where its hash is that of such a site as far as the
 * index has it, which happens under some of these hash keys.
 */

static void
longer_sites(void **state)
{
    char              host[32], url[64];
    zone_t           *z;
    unsigned          i, key;
    us_store_site_t   site;

    for (key = 0; key < 100; key++) {
        zone_conf.hash_key[0] = (uint8_t) key;
        z = zone_create(1 << 20, 0);

        for (i = 10; i < 100; i++) {
            sprintf(url, "http://h%u/", i);
            assert_int_equal(add(z->store, url).new_site, 1);
        }

        for (i = 1; i < 100; i++) {
            us_str_t  name = { (size_t) sprintf(host, "h%u", i),
                               (const uint8_t *) host };

            assert_int_equal(us_store_site(z->store, name, 1, &site),
                             i < 10 ? US_UNKNOWN : US_OK);
            assert_true(i < 10 || site.first == i - 10);
        }

        zone_destroy(z);
    }

    zone_conf.hash_key[0] = 'a';
}


/* another writer adds URLs after a group was looked up, before its lock */

static us_store_t  *between_other;
static char         between_urls[3][32];

static void
between_lock(void *data)
{
    unsigned  i;

    for (i = 0; i < 3; i++) {
        if (between_urls[i][0]) {
            (void) add(between_other, between_urls[i]);
            between_urls[i][0] = '\0';
        }
    }
}


static void
between(void **state)
{
    zone_t           *z;
    unsigned          i;
    us_store_t       *s;
    us_store_item_t   items[4];
    us_store_lock_t   lock = { between_lock, zone_lock, NULL };

    z = zone_create(1 << 20, 0);
    between_other = z->store;

    s = us_store_open(z->mem, &lock);
    assert_non_null(s);

    strcpy(between_urls[0], "http://c.test/");
    strcpy(between_urls[1], "http://x.test/");
    strcpy(between_urls[2], "http://b.test/1");

    items[0] = item("http://b.test/1", 0);
    items[1] = item("http://b.test/2", 0);
    items[2] = item("http://b.test/2", 0);
    items[3] = item("http://c.test/", 0);

    us_store_add(s, items, 4);

    assert_int_equal(items[0].status, US_SEEN);
    assert_int_equal(items[0].id, 2);
    assert_int_equal(items[1].status, US_NEW);
    assert_int_equal(items[1].id, 3);
    assert_int_equal(items[2].status, US_SEEN);
    assert_int_equal(items[2].id, 3);
    assert_int_equal(items[3].status, US_SEEN);
    assert_int_equal(items[3].id, 0);

    /* and with nobody else at work: twice in a group, far apart */

    for (i = 0; i < 4; i++) {
        items[i] = item(i % 2 ? "http://d.test/" : "http://e.test/", 0);
    }

    us_store_add(s, items, 4);

    assert_int_equal(items[0].status, US_NEW);
    assert_int_equal(items[1].status, US_NEW);
    assert_int_equal(items[2].status, US_SEEN);
    assert_int_equal(items[2].id, items[0].id);
    assert_int_equal(items[3].status, US_SEEN);
    assert_int_equal(items[3].id, items[1].id);

    us_store_close(s);
    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(against_reference),
        cmocka_unit_test(batches),
        cmocka_unit_test(groups),
        cmocka_unit_test(spelling),
        cmocka_unit_test(spelling_full),
        cmocka_unit_test(parts),
        cmocka_unit_test(full),
        cmocka_unit_test(busy),
        cmocka_unit_test(busy_in_order),
        cmocka_unit_test(more_marks),
        cmocka_unit_test(marks_list),
        cmocka_unit_test(tables_first),
        cmocka_unit_test(longer_sites),
        cmocka_unit_test(between),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
