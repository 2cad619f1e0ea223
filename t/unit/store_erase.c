
/*
 * Erased records: nothing of them is left but what remaining URLs need, all
 * other URLs answer as before, and a replay makes the same store.
 *
 * What must be left of an erased record is computed here once more, from the
 * headers of the live records and from the hosts of the live URLs.
 */


#include "store_zone.h"
#include "corpus.h"
#include "same.h"
#include "stream.h"
#include "codec/us_record_private.h"
#include "store/us_erase.h"
#include "store/us_erasures.h"
#include "store/us_store_private.h"

#define ZONE       ((size_t) 24 << 20)
#define RING       ((size_t) 1 << 20)
#define LINES      6000
#define GENERATED  4000
#define MADE       3000
#define MOST       60000

#define KEPT       16                 /* bytes of a record's bits */
#define PIECE      12                 /* of a text */
#define SEARCHED   30                 /* one of so many ids */


/* a URL by its id */

typedef struct {
    char        *url;
    uint8_t      text[US_TEXT_BUFFER];
    size_t       len;                 /* of text: class and rest */
    size_t       host;                /* bytes of text, and one more */
    int          again;               /* its URL was added once more */
    uint8_t      bits[KEPT];          /* of the record, from a byte on */
    size_t       nbits;               /* bytes of it */
} known_t;


static known_t   *known;
static unsigned   nknown;
static stream_t   journal;


/* every kind of URL: real ones, chains up to the limit, very long ones */

static void
made(unsigned i, char *url)
{
    size_t    n;
    unsigned  k;

    switch (i % 10) {

    case 0:
    case 1:
        n = sprintf(url, "https://deep%u.test/", i / 500);

        for (k = 0; k < i % 500 / 60; k++) {
            n += sprintf(url + n, "level-%u-of-%u/", k, i / 500);
        }

        sprintf(url + n, "%u", i);
        break;

    case 2:
        n = sprintf(url, "http://long.test/%u/", i);

        if (i % 100 == 2) {
            for (k = 0; k < 60 + i % 700; k++) {
                n += sprintf(url + n, "%x", rnd(1u << 31));
            }
        }

        break;

    case 3:
        sprintf(url, "http://www.s%u.test/Name-%u/", i / 30, i);
        break;

    case 4:
        sprintf(url, "http://host-that-has-a-url-by-itself-%u.test/", i);
        break;

    default:
        sprintf(url, "http://s%u.test/people/Some-Name-%u/photos?of=%u",
                i / 50, i / 20, i);
    }
}


/* remembers what a new id has, as a reader of records sees it */

static void
remember(zone_t *z, const char *url)
{
    known_t    *k;
    uint8_t     buf[US_RECORD_BUFFER];
    unsigned    klass;
    us_str_t    rest;
    us_bits_t   b;

    assert_true(nknown < MOST);

    k = &known[nknown];
    memset(k, 0, sizeof(known_t));
    k->url = strdup(url);
    k->len = us_record_decode(z->store->codec, nknown, k->text);

    klass = k->text[0];
    rest = (us_str_t) { k->len - 1, k->text + 1 };
    rest = us_store_bare(rest, &klass);
    k->host = (size_t) (rest.data - k->text) + us_site(rest).len + 1;

    us_log_get(&z->store->arena, nknown, buf, &b);
    k->nbits = b.units / 2 - (b.bit != 0);
    k->nbits = k->nbits < KEPT ? k->nbits : KEPT;
    memcpy(k->bits, b.data + (b.bit != 0), k->nbits);

    nknown++;
}


static void
drain(zone_t *z)
{
    if (us_head(z->store)->ring_size) {
        stream_drain(&journal, z->store);
    }
}


static void
put(zone_t *z, const char *url)
{
    us_store_item_t  it;

    it = add(z->store, url);
    drain(z);

    if (it.status == US_NEW) {
        assert_int_equal(it.id, nknown);
        remember(z, url);

    } else {
        assert_int_equal(it.status, US_SEEN);
    }
}


static void
model(zone_t *z)
{
    if (us_store_train_due(z->store)) {
        assert_int_equal(us_store_train(z->store, NULL), 1);
        drain(z);
    }
}


static zone_t *
fill(unsigned lines, unsigned generated, int ring, int sites)
{
    FILE      *f;
    size_t     n;
    zone_t    *z;
    unsigned   i;
    static char  line[US_URL_MAX + 16];

    zone_seed = 7;
    nknown = 0;
    journal.len = 0;
    zone_conf.sites = sites;
    z = zone_create(ZONE, ring ? RING : 0);
    zone_conf.sites = 0;

    f = corpus_open("reddit_submissions", lines, generated);

    for (i = 0; fgets(line, sizeof(line), f); i++) {
        n = strcspn(line, "\n");
        line[n] = '\0';

        if (n < US_URL_MAX && strncmp(line, "http", 4) == 0
            && strpbrk(line, "^\"<> `{}") == NULL)
        {
            put(z, line);
            model(z);
        }
    }

    corpus_close(f);

    for (i = 0; i < MADE; i++) {
        made(i, line);
        put(z, line);
    }

    model(z);

    return z;
}


static void
forget(void)
{
    while (nknown) {
        free(known[--nknown].url);
    }
}


static void
gone(zone_t *z, uint64_t id)
{
    int        was;
    uint64_t   lsn;

    assert_int_equal(us_store_delete(z->store, id, &was, &lsn), US_OK);
    drain(z);
}


/* a pass; *f is what it did */

static us_store_status_t
erase(zone_t *z, size_t most, unsigned step, us_erase_figures_t *f)
{
    uint64_t            retexts;
    us_erase_t         *e;
    us_store_status_t   rc;

    e = us_erase_create(z->store, most);
    assert_non_null(e);
    retexts = us_head(z->store)->retexts;

    do {
        rc = us_erase_step(e, step);
        drain(z);

        /* whether the pass goes on or is given up: what it did is counted */

        assert_int_equal(us_erase_figures(e)->models,
                         us_head(z->store)->retexts - retexts);
    } while (rc == US_NEW || rc == US_BUSY);

    *f = *us_erase_figures(e);
    us_erase_free(e);

    return rc;
}


/* what a live record refers to; 0: none */

static unsigned
refers(us_store_t *s, uint64_t id, uint64_t *ref)
{
    return us_record_reference(s->codec, id, ref);
}


static int
host_cmp(const void *one, const void *two)
{
    const known_t  *a, *b;
    int             rc;
    size_t          n;

    a = *(known_t *const *) one;
    b = *(known_t *const *) two;
    n = (a->host < b->host ? a->host : b->host) - 1;
    rc = memcmp(a->text + 1, b->text + 1, n - 1);
    rc = rc ? rc : (a->host > b->host) - (a->host < b->host);

    return rc ? rc : (a > b) - (a < b);
}


/* the bytes of each deleted id that must be left */

static void
needs(us_store_t *s, unsigned *need)
{
    unsigned    i, k, cut;
    uint64_t    ref;
    known_t   **all, *first, *live;

    memset(need, 0, nknown * sizeof(unsigned));

    for (i = 0; i < nknown; i++) {
        if (us_store_deleted(s, i)) {
            continue;
        }

        cut = refers(s, i, &ref);

        if (cut && us_store_deleted(s, ref) && cut > need[ref]) {
            need[ref] = cut;
        }
    }

    /* the first one of a site of which others are left */

    all = malloc(nknown * sizeof(known_t *));
    assert_non_null(all);

    for (i = 0; i < nknown; i++) {
        all[i] = &known[i];
    }

    qsort(all, nknown, sizeof(known_t *), host_cmp);

    for (i = 0; i < nknown; i = k) {
        first = NULL;
        live = NULL;

        for (k = i;
             k < nknown && all[k]->host == all[i]->host
             && memcmp(all[k]->text + 1, all[i]->text + 1, all[i]->host - 2)
                == 0;
             k++)
        {
            if (us_store_first_of_site(s, (uint64_t) (all[k] - known))) {
                first = all[k];
            }

            if (!us_store_deleted(s, (uint64_t) (all[k] - known))) {
                live = all[k];
            }
        }

        if (first && live && first != live
            && us_store_deleted(s, (uint64_t) (first - known))
            && need[first - known] < first->host)
        {
            need[first - known] = (unsigned) first->host;
        }

        /* whoever has a live URL is found */

        if (live && first == NULL) {
            fail_msg("no first URL of the site of %s", live->url);
        }
    }

    free(all);
}


/* all live URLs answer; what is deleted is erased up to what is needed */

static void
check(zone_t *z)
{
    size_t           len, bytes;
    uint8_t          buf[US_RECORD_BUFFER], url[US_URL_MAX + 8];
    unsigned         i, *need, stubs;
    known_t         *k;
    us_str_t         stub;
    us_bits_t        b;
    us_store_t      *s;
    us_store_item_t  it;

    s = z->store;
    need = malloc(nknown * sizeof(unsigned));
    assert_non_null(need);
    needs(s, need);
    stubs = 0;
    bytes = 0;

    for (i = 0; i < nknown; i++) {
        k = &known[i];
        it = lookup(s, k->url);
        us_log_get(&s->arena, i, buf, &b);
        (void) us_log_stub(&s->arena, i, &stub);

        /* its head is no letter of the text before */

        assert_true(stub.len == 0 || stub.data[-8] & 0x80);

        if (!us_store_deleted(s, i)) {
            assert_int_equal(it.status, US_SEEN);
            assert_int_equal(it.id, i);
            assert_int_equal(us_store_get(s, i, url, &len), US_OK);
            assert_string(url, len, k->url);
            assert_false(us_bits_erased(&b));
            assert_int_equal(stub.len, 0);
            continue;
        }

        if (!k->again) {
            assert_int_equal(it.status, US_UNSEEN);
        }

        assert_int_equal(us_store_get(s, i, url, &len), US_DELETED);
        assert_int_equal(us_store_text(s, i, url, &len), US_DELETED);
        assert_true(us_bits_erased(&b));

        if (stub.len != need[i]) {
            fail_msg("stub of %u has %zu bytes of %u: %s", i, stub.len,
                     need[i], k->url);
        }

        assert_memory_equal(stub.len ? stub.data : k->text, k->text, stub.len);
        stubs += stub.len != 0;
        bytes += stub.len ? stub.len + 8 : 0;
    }

    if (stubs) {
        print_message("%u ids, %lu deleted, %u stubs of %.1f bytes\n", nknown,
                      (unsigned long) us_head(s)->deleted, stubs,
                      (double) bytes / stubs);
    }

    free(need);
}


/* whether a live URL has so many bytes anywhere */

static int
shared(us_store_t *s, const uint8_t *p, size_t len)
{
    unsigned  i;

    for (i = 0; i < nknown; i++) {
        if (!us_store_deleted(s, i)
            && memmem(known[i].text, known[i].len, p, len))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * No bits of erased records are anywhere in the zone: of those that were long
 * enough to be unlike others.  Nobody has added the same URLs again.
 */

static void
search_bits(zone_t *z)
{
    unsigned  i, n;
    known_t  *k;

    for (i = 0, n = 0; i < nknown; i++) {
        k = &known[i];

        if (us_store_deleted(z->store, i) && k->nbits >= 10
            && rnd(SEARCHED) == 0)
        {
            assert_null(memmem(z->mem, z->size, k->bits, k->nbits));
            n++;
        }
    }

    assert_true(n > 5);
}


/*
 * Nor is a piece of a text that no live URL has, as it is: at the end of what
 * is left, and at the end of the text.
 */

static void
search_texts(zone_t *z)
{
    size_t    from;
    unsigned  i, n;
    known_t  *k;
    us_str_t  stub;

    for (i = 0, n = 0; i < nknown; i++) {
        k = &known[i];

        if (!us_store_deleted(z->store, i) || k->again || rnd(SEARCHED)) {
            continue;
        }

        (void) us_log_stub(&z->store->arena, i, &stub);

        for (from = stub.len > PIECE - 1 ? stub.len - (PIECE - 1) : 0;
             from + PIECE <= k->len;
             from = from < k->len - PIECE ? k->len - PIECE : k->len)
        {
            if (!shared(z->store, k->text + from, PIECE)) {
                assert_null(memmem(z->mem, z->size, k->text + from, PIECE));
                n++;
            }
        }
    }

    assert_true(n > 20);
}


static void
apply(us_store_t *s, const stream_t *st)
{
    size_t   done, n;
    ssize_t  rc;

    for (done = 0; done < st->len; done += (size_t) rc) {
        n = st->len - done < 100000 ? st->len - done : 100000;
        rc = us_store_apply(s, st->data + done, n);
        assert_true(rc > 0);
    }

    assert_int_equal(us_store_settle(s), 0);
}


static zone_t *
other(zone_t *z, const stream_t *st)
{
    zone_t          *o;
    us_store_conf_t  conf;

    us_store_conf(z->store, &conf);
    zone_conf.sites = conf.sites;
    memcpy(zone_conf.hash_key, "another secret!", 15);
    o = zone_create(ZONE, RING);
    memcpy(zone_conf.hash_key, "a random secret", 15);
    zone_conf.sites = 0;

    apply(o->store, st);

    return o;
}


/* the same ids, sites and stubs */

static void
same(zone_t *a, zone_t *b)
{
    unsigned            i;
    us_str_t            one, two, host;
    const char         *what;
    us_store_site_t     sa, sb;

    assert_int_equal(us_store_next_id(a->store), us_store_next_id(b->store));
    assert_int_equal(us_head(a->store)->deleted, us_head(b->store)->deleted);

    for (i = 0; i < nknown; i++) {
        what = same_id(a->store, b->store, i);

        if (what) {
            fail_msg("%s %u: %s", what, i, known[i].url);
        }

        (void) us_log_stub(&a->store->arena, i, &one);
        (void) us_log_stub(&b->store->arena, i, &two);
        assert_int_equal(one.len, two.len);

        host.data = known[i].text + 1;
        host.len = known[i].host - 2;
        host = us_store_bare(host, &(unsigned) { 0 });

        memset(&sa, 0, sizeof(us_store_site_t));
        memset(&sb, 0, sizeof(us_store_site_t));

        if (us_store_site(a->store, host, 1, &sa)
            != us_store_site(b->store, host, 1, &sb)
            || sa.first != sb.first || sa.urls != sb.urls
            || (sa.last != sb.last && !us_store_deleted(a->store, sa.last)))
        {
            fail_msg("site of %u, %s: first %lu or %lu, %lu URLs or %lu, "
                     "last %lu or %lu", i, known[i].url,
                     (unsigned long) sa.first, (unsigned long) sb.first,
                     (unsigned long) sa.urls, (unsigned long) sb.urls,
                     (unsigned long) sa.last, (unsigned long) sb.last);
        }
    }
}


/* new URLs refer to nothing that was deleted, and old ones come back */

static void
go_on(zone_t *z)
{
    char       url[US_URL_MAX + 16];
    unsigned   i, n, before;
    uint64_t   ref;

    n = nknown;

    for (i = 0; i < n; i += 3) {
        if (strlen(known[i].url) < 2000) {
            sprintf(url, "%s%c%u", known[i].url,
                    strchr(known[i].url, '?') ? '&' : '?', i);
            put(z, url);
        }
    }

    for (i = 1; i < n; i += 7) {
        if (us_store_deleted(z->store, i)) {
            before = nknown;
            put(z, known[i].url);
            known[i].again = nknown > before;
        }
    }

    for (i = n; i < nknown; i++) {
        if (refers(z->store, i, &ref)) {
            assert_false(us_store_deleted(z->store, ref));
        }
    }
}


/* what is to be deleted: some of all, sites, what others refer to */

static int
some(us_store_t *s, unsigned i)
{
    switch (i / 500 % 5) {

    case 0:
        return i % 97 == 0;

    case 1:
        return i % 2;

    case 2:
        return strstr(known[i].url, "deep") != NULL
               || strstr(known[i].url, "people") != NULL
               || strstr(known[i].url, "reddit") != NULL;

    case 3:
        return i % 10 != 3;

    default:
        return strlen(known[i].url) > 300 || i % 3 == 0;
    }
}


static void
replays(zone_t *z)
{
    zone_t    *o;
    stream_t   dump = { NULL, 0, 0 };
    uint64_t   lsn;

    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn), 0);
    o = other(z, &dump);
    same(z, o);
    check(o);
    zone_destroy(o);
    free(dump.data);

    if (us_head(z->store)->ring_size) {
        o = other(z, &journal);
        same(z, o);
        check(o);
        zone_destroy(o);
    }
}


static void
passes(int ring, int sites, unsigned lines, unsigned generated, size_t most,
    unsigned step)
{
    zone_t              *z;
    unsigned             i, n, all;
    us_erase_figures_t   f;

    z = fill(lines, generated, ring, sites);

    for (i = 0, n = 0; i < nknown; i++) {
        if (some(z->store, i)) {
            gone(z, i);
            n++;
        }
    }

    assert_int_equal(erase(z, most, step, &f), US_OK);
    assert_int_equal(f.erased, n);
    check(z);

    if (!ring) {
        search_bits(z);
        search_texts(z);
    }

    assert_int_equal(erase(z, most, step, &f), US_OK);
    assert_int_equal(f.erased + f.stubs, 0);

    replays(z);
    go_on(z);
    check(z);

    /* some of those that were added, and some that needed stubs; then all */

    for (all = 0; all < 2; all++) {
        for (i = 0; i < nknown; i++) {
            if ((all || i % 5 == 2) && !us_store_deleted(z->store, i)) {
                gone(z, i);
            }
        }

        assert_int_equal(erase(z, most, step, &f), US_OK);
        check(z);

        if (!ring) {
            search_texts(z);
        }

        replays(z);
    }

    forget();
    zone_destroy(z);
}


static void
erase_all_at_once(void **state)
{
    passes(0, 0, LINES, GENERATED, US_ERASE_MOST, 1000000);
}


static void
erase_in_rounds(void **state)
{
    passes(1, 0, LINES, GENERATED, 500, 300);
}


static void
erase_with_sites(void **state)
{
    passes(1, 1, LINES, GENERATED, 3000, 77);
}


static void
erase_after_models(void **state)
{
    passes(1, 0, 10000, 30000, US_ERASE_MOST, 4096);
}


static void
erase_few(void **state)
{
    passes(0, 1, 0, 0, 1, 1);
}


/* ones are no record, however many, of any id, under any model */

static void
assert_ones(us_store_t *s, uint64_t id)
{
    uint8_t       buf[256];
    unsigned      bit;
    uint32_t      units;
    us_bits_t     record;
    us_bitin_t    b;
    us_header_t   h;

    memset(buf, 0xff, sizeof(buf));

    for (units = 1; units < 400; units++) {
        for (bit = 0; bit < 8; bit += 4) {
            record = (us_bits_t) { buf, bit, units };
            assert_true(us_bits_erased(&record));
            assert_int_equal(us_header_read(&s->codec->models, id, &record, &h,
                                            &b),
                             -1);
        }
    }
}


/* an id is written under the newest model before it: so under each of them */

static void
ones_are_no_record(void **state)
{
    char       url[64];
    zone_t    *z;
    unsigned   i;

    z = zone_create(ZONE, 0);
    assert_ones(z->store, 0);

    for (i = 0; i < 270000 && us_head(z->store)->models < 2; i++) {
        sprintf(url, "http://s%u.test/a/%u", i % 1000, i);
        add(z->store, url);

        if (us_store_train_due(z->store)) {
            assert_int_equal(us_store_train(z->store, NULL), 1);
            assert_ones(z->store, i + 1);
        }
    }

    assert_int_equal(us_head(z->store)->models, 2);
    assert_ones(z->store, 0);
    assert_ones(z->store, 100000);
    assert_ones(z->store, (uint64_t) 1 << 40);

    zone_destroy(z);
}


/* a model that would read ones as another symbol is none */

static void
ones_of_a_model(void **state)
{
    uint8_t      *core;
    size_t        i, l, n, first;
    us_str_t      bytes;
    us_model_t   *m;
    uint16_t     *symbols, was, *nlen;

    m = us_builtin_create();
    assert_non_null(m);
    bytes = us_model_bytes(m);
    core = malloc(bytes.len);
    memcpy(core, bytes.data, bytes.len);
    free(m);
    m = (us_model_t *) core;

    n = us_model_ncontexts(m) + US_CODE_HEAD;
    nlen = (uint16_t *) us_model_nlen(m, (unsigned) n);
    symbols = (uint16_t *) us_model_symbols(m, (unsigned) n);

    us_model_seal(core, bytes.len);
    assert_non_null(us_model_check(core, bytes.len));
    assert_int_equal(symbols[US_HEAD_SYMBOLS - 1], US_HEAD_SYMBOLS - 1);

    /* the last symbol of the first length gives its place to the greatest */

    for (l = 1; nlen[l] == 0; l++) { /* void */ }

    first = nlen[l] - 1;
    was = symbols[first];
    symbols[first] = US_HEAD_SYMBOLS - 1;

    for (i = US_HEAD_SYMBOLS - 1, l = US_HUFFMAN_MAX; nlen[l] == 0; l--) {
        /* void */
    }

    for (n = nlen[l]; n > 1 && symbols[i - 1] > was; n--, i--) {
        symbols[i] = symbols[i - 1];
    }

    symbols[i] = was;
    us_model_seal(core, bytes.len);
    assert_null(us_model_check(core, bytes.len));

    free(core);
}


/*
 * A writer was killed while it erased: readers find nothing in between, an
 * encoder trusts nothing that it reads, and the next one to take the lock ends
 * it.
 */

static void
killed_while_erasing(void **state)
{
    int              was;
    char             url[3][128];
    size_t           len;
    zone_t          *z;
    uint8_t          buf[US_URL_MAX + 8];
    uint64_t         id, lsn, ref;
    unsigned         i;
    us_arena_t      *a;
    us_codec_t      *c;
    us_store_t      *s;
    us_store_item_t  it;

    z = zone_create(ZONE, RING);
    s = z->store;
    a = &s->arena;

    for (i = 0; i < 3; i++) {
        sprintf(url[i], "http://a.test/a-long-way/that-all/of-them/have/%u", i);
        it = add(s, url[i]);
        assert_int_equal(it.id, i);
    }

    assert_true(refers(s, 1, &ref) > 4);
    assert_int_equal(ref, 0);
    assert_true(refers(s, 2, &ref) > 4);

    assert_int_equal(us_store_delete(s, 0, &was, &lsn), US_OK);
    assert_int_equal(us_log_erase_reserve_locked(a, 0, 40), 0);
    us_record_decode(s->codec, 0, buf);
    us_log_erase_locked(a, 0, (us_str_t) { 45, buf });
    us_commit_locked(a);
    assert_int_equal(a->head->erasing & 1, 1);

    /* nothing that is read now is trusted */

    c = s->codec;
    us_record_begin(c);
    us_record_encode(c, 0, 0, us_string("a.test/a-long-way/that-all/of-them/"
                                        "have/x"));
    assert_int_not_equal(c->seats[0].header.kind, US_TAIL);

    it = lookup(s, url[1]);
    assert_int_equal(it.status, US_SEEN);
    assert_int_equal(a->head->erasing & 1, 0);

    for (id = 1; id < 3; id++) {
        assert_int_equal(us_store_get(s, id, buf, &len), US_OK);
        assert_string(buf, len, url[id]);
    }

    us_record_begin(c);
    us_record_encode(c, 0, 0, us_string("a.test/a-long-way/that-all/of-them/"
                                        "have/x"));
    assert_int_equal(c->seats[0].header.kind, US_TAIL);

    zone_destroy(z);
}


/* a reference that is deleted between choice and add is none */

static void
deleted_reference(void **state)
{
    int              was;
    zone_t          *z;
    uint64_t         lsn, ref;
    us_codec_t      *c;
    us_bits_t        record;
    us_bitin_t       b;
    us_header_t      h;
    const uint8_t   *bits;

    z = zone_create(ZONE, 0);
    c = z->store->codec;

    add(z->store, "http://a.test/a-long-way/that-all/of-them/have/0");

    us_record_begin(c);
    us_record_encode(c, 0, 0, us_string("a.test/a-long-way/that-all/of-them/"
                                        "have/x"));
    assert_int_equal(c->seats[0].header.kind, US_TAIL);
    assert_int_equal(us_store_delete(z->store, 0, &was, &lsn), US_OK);

    record.units = us_record_emit_locked(c, 0, 1, &bits);
    record.data = bits;
    record.bit = 0;
    assert_int_equal(us_header_read(&c->models, 1, &record, &h, &b), 0);
    assert_int_not_equal(h.kind, US_TAIL);

    /* nor is it chosen: the one before it in the chain is */

    add(z->store, "http://b.test/a-long-way/that-all/of-them/have/0");
    add(z->store, "http://b.test/a-long-way/that-all/of-them/have/1");
    add(z->store, "http://b.test/a-long-way/that-all/of-them/have/1/more");
    assert_true(refers(z->store, 2, &ref) > 4);
    assert_int_equal(ref, 1);
    assert_int_equal(us_store_delete(z->store, 1, &was, &lsn), US_OK);
    add(z->store, "http://b.test/a-long-way/that-all/of-them/haven");
    assert_true(refers(z->store, 4, &ref) > 4);
    assert_true(ref > 1);

    zone_destroy(z);
}


/* before a writer gets the lock, the last URL of a site is erased */

static void
erased_before_lock(void *data)
{
    zone_t              **armed = data;
    zone_t               *z;
    us_erase_figures_t    f;

    z = *armed;
    *armed = NULL;

    if (z) {
        gone(z, 0);
        assert_int_equal(erase(z, 10, 10, &f), US_OK);
        assert_int_equal(f.stubs, 0);
    }
}


static void
site_ends_meanwhile(void **state)
{
    zone_t           *z, *armed;
    us_store_t       *s;
    us_erase_t       *e;
    us_store_item_t   it;
    us_store_site_t   site;
    us_store_lock_t   lock = { erased_before_lock, zone_lock, &armed };

    zone_conf.sites = 1;
    z = zone_create(ZONE, 0);
    zone_conf.sites = 0;
    s = us_store_open(z->mem, &lock);
    armed = NULL;

    add(s, "http://a.test/a");
    armed = z;
    it = add(s, "http://a.test/b");
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.new_site, 1);
    assert_int_equal(us_store_site(z->store, us_string("a.test"), 0, &site),
                     US_OK);
    assert_int_equal(site.first, 1);
    assert_int_equal(site.urls, 1);

    /* or it gets another one, after a pass has looked for such */

    gone(z, 1);
    e = us_erase_create(z->store, 10);
    assert_int_equal(us_erase_step(e, 100), US_NEW);
    assert_int_equal(us_erase_step(e, 100), US_NEW);
    assert_int_equal(us_erase_figures(e)->erased, 0);
    assert_int_equal(add(s, "http://a.test/c").new_site, 0);
    assert_int_equal(us_erase_step(e, 100), US_NEW);
    assert_int_equal(us_erase_figures(e)->erased, 1);
    assert_int_equal(us_erase_figures(e)->stubs, 1);
    us_erase_free(e);

    assert_int_equal(us_store_site(z->store, us_string("a.test"), 0, &site),
                     US_OK);
    assert_int_equal(site.first, 1);
    assert_int_equal(add(s, "http://a.test/d").new_site, 0);

    us_store_close(s);
    zone_destroy(z);
}


/* of ids that begin a site, a round has fewer: it sorts their sites at once */

static void
many_sites(void **state)
{
    char                 url[64];
    zone_t              *z;
    unsigned             i;
    uint64_t             was;
    us_erase_t          *e;
    us_store_status_t    rc;

    z = zone_create(ZONE, 0);

    for (i = 0; i < 200; i++) {
        sprintf(url, "http://a-site-of-its-own-%u.test/", i);
        assert_int_equal(add(z->store, url).status, US_NEW);
        gone(z, i);
    }

    e = us_erase_create(z->store, 320);

    do {
        was = us_erase_figures(e)->erased;
        rc = us_erase_step(e, 1000);
        assert_in_range(us_erase_figures(e)->erased - was, 0, 10);
    } while (rc == US_NEW);

    assert_int_equal(rc, US_OK);
    assert_int_equal(us_erase_figures(e)->erased, 200);
    us_erase_free(e);
    zone_destroy(z);
}


/* a dump, while records are erased */

typedef struct {
    stream_t     out;
    us_erase_t  *e;
    zone_t      *z;
} beside_t;


static int
beside(void *data, const uint8_t *p, size_t len)
{
    unsigned   i;
    beside_t  *b = data;

    for (i = 0; i < 3; i++) {
        if (us_erase_step(b->e, 400) == US_OK) {
            us_erase_free(b->e);
            b->e = us_erase_create(b->z->store, US_ERASE_MOST);
        }

        /* more of them, of which the dump knows nothing */

        if (nknown > 3 && i == 0) {
            gone(b->z, rnd(nknown));
        }
    }

    drain(b->z);

    return stream_put(&b->out, p, len);
}


static void
dump_beside(void **state)
{
    int                  sites;
    zone_t              *z, *o;
    unsigned             i;
    uint64_t             lsn;
    beside_t             b;
    us_erase_figures_t   f;

    for (sites = 0; sites < 2; sites++) {
        z = fill(LINES, 0, 1, sites);

        for (i = 0; i < nknown; i += 3) {
            gone(z, i);
        }

        memset(&b, 0, sizeof(beside_t));
        b.z = z;
        b.e = us_erase_create(z->store, US_ERASE_MOST);
        assert_int_equal(us_store_dump(z->store, beside, &b, &lsn), 0);
        us_erase_free(b.e);

        assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_OK);
        check(z);

        /* and all that followed its LSN */

        stream_put(&b.out, journal.data + lsn, journal.len - lsn);
        o = other(z, &b.out);
        same(z, o);
        check(o);

        free(b.out.data);
        zone_destroy(o);
        forget();
        zone_destroy(z);
    }
}


/* there is no room for stubs: what needs none is erased, all others stay */

static void
full(void **state)
{
    int                  was;
    char                 url[300];
    size_t               len;
    zone_t              *z;
    uint8_t              buf[US_URL_MAX + 8];
    uint64_t             low, lsn, ref;
    unsigned             i;
    us_head_t           *h;
    us_erase_figures_t   f;

    z = zone_create(1 << 20, 0);
    h = us_head(z->store);

    for (i = 0; i < 2000; i++) {
        sprintf(url, "http://a.test/%s/%u", i % 2 ? "one/of/many" : "", i);
        add(z->store, url);
    }

    add(z->store, "http://f.test/");

    /* nobody refers to the first one but the second one, which cannot go */

    add(z->store, "http://f.test/some/way/to/a/page");
    add(z->store, "http://f.test/some/way/to/another/with/a/long/name");
    add(z->store, "http://f.test/some/way/to/another/with/a/long/one");
    assert_true(refers(z->store, 2002, &ref) && ref == 2001);
    assert_true(refers(z->store, 2003, &ref) && ref == 2002);

    for (i = 0; i < 2003; i += i < 1998 ? 2 : 1) {
        if (i != 2000) {
            assert_int_equal(us_store_delete(z->store, i, &was, &lsn), US_OK);
        }
    }

    low = h->chunks_low;
    h->chunks_low = (h->log_end / 2 >> h->chunk_shift) + 1;

    assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_FULL);
    assert_true(f.erased > 100);
    assert_true(f.erased < 1003);
    assert_int_equal(f.stubs, 0);
    assert_int_equal(us_store_get(z->store, 2003, buf, &len), US_OK);
    assert_string(buf, len,
                  "http://f.test/some/way/to/another/with/a/long/one");

    for (i = 1; i < 1998; i += 2) {
        sprintf(url, "http://a.test/%s/%u", i % 2 ? "one/of/many" : "", i);
        assert_int_equal(us_store_get(z->store, i, buf, &len), US_OK);
        assert_string(buf, len, url);
    }

    h->chunks_low = low;
    i = (unsigned) f.erased;
    assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_OK);
    assert_int_equal(i + f.erased, 1003);
    assert_true(f.stubs > 0);
    assert_int_equal(us_store_get(z->store, 2003, buf, &len), US_OK);
    assert_string(buf, len,
                  "http://f.test/some/way/to/another/with/a/long/one");

    for (i = 1; i < 1998; i += 2) {
        sprintf(url, "http://a.test/%s/%u", i % 2 ? "one/of/many" : "", i);
        assert_int_equal(us_store_get(z->store, i, buf, &len), US_OK);
        assert_string(buf, len, url);
    }

    zone_destroy(z);
}


/* a small ring, and a fence */

static void
busy_and_fenced(void **state)
{
    int          was;
    char         url[64];
    zone_t      *z;
    unsigned     i;
    uint64_t     lsn;
    us_erase_t  *e;

    z = zone_create(ZONE, 4096);
    journal.len = 0;

    for (i = 0; i < 3000; i++) {
        sprintf(url, "http://a.test/%u", i);
        add(z->store, url);
        us_store_delete(z->store, i, &was, &lsn);
        drain(z);
    }

    e = us_erase_create(z->store, US_ERASE_MOST);
    us_store_fence(z->mem);
    assert_int_equal(us_erase_step(e, 10000), US_NEW);
    assert_int_equal(us_erase_step(e, 10000), US_NEW);
    assert_int_equal(us_erase_step(e, 10000), US_FENCED);
    assert_int_equal(us_erase_figures(e)->erased, 0);

    us_store_unfence(z->mem);
    assert_int_equal(us_erase_step(e, 10000), US_BUSY);
    assert_true(us_erase_figures(e)->erased > 0);
    assert_true(us_erase_figures(e)->erased < 3000);
    us_erase_free(e);

    zone_destroy(z);
}


/* what a killed writer left past the ends of the log goes, too */

static void
clears_ends(void **state)
{
    uint8_t              bits[US_RECORD_BUFFER];
    zone_t              *z;
    uint64_t             long_end;
    us_arena_t          *a;
    us_erase_figures_t   f;

    z = zone_create(ZONE, 0);
    a = &z->store->arena;
    add(z->store, "http://a.test/");

    memset(bits, 0xaa, sizeof(bits));
    assert_int_equal(us_log_reserve_locked(a, 1, US_RECORD_MAX * 2), 0);
    us_log_write_locked(a, 1, bits, US_RECORD_MAX * 2);

    long_end = a->head->long_end;
    assert_int_equal(*us_area_at(a, US_AREA_LONG, long_end), 0xaa);
    assert_int_equal(a->base[(a->head->log_end + 1) / 2 + 40], 0xaa);

    assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_OK);
    memset(bits, 0xaa, 16);
    assert_null(memmem(z->mem, z->size, bits, 16));
    assert_int_equal(lookup(z->store, "http://a.test/").status, US_SEEN);

    zone_destroy(z);
}


/*
 * A site of which nothing is left begins anew; a process that remembers its
 * first URL does not count that.  Each spelling is a site of its own.
 */

static void
site_begins_anew(void **state)
{
    zone_t              *z;
    us_hot_t            *hot;
    us_store_t          *s;
    us_store_item_t      it;
    us_store_site_t      site;
    us_erase_figures_t   f;

    zone_conf.sites = 1;
    z = zone_create(ZONE, 0);
    zone_conf.sites = 0;
    s = us_store_open(z->mem, &zone_no_lock);
    hot = us_hot_create(1 << 20);
    us_store_hot(s, hot, NULL);

    it = add(s, "http://www.a.test/a");
    assert_int_equal(it.new_site, 1);
    assert_int_equal(add(s, "http://a.test/b").new_site, 1);
    assert_int_equal(add(s, "http://www.a.test/c").new_site, 0);
    assert_int_equal(lookup(s, "http://www.a.test/a").id, 0);

    gone(z, 0);
    assert_int_equal(erase(z, 10, 10, &f), US_OK);
    assert_int_equal(f.stubs, 1);
    assert_int_equal(add(s, "http://www.a.test/d").new_site, 0);

    gone(z, 2);
    gone(z, 3);
    assert_int_equal(erase(z, 10, 10, &f), US_OK);
    assert_int_equal(us_store_site(z->store, us_string("www.a.test"), 0,
                                   &site),
                     US_UNKNOWN);

    it = item("http://www.a.test/e", 0);
    us_store_seen(s, &it, 1);
    assert_int_equal(us_store_site_known(s, &it), 0);

    it = add(s, "http://www.a.test/e");
    assert_int_equal(it.status, US_NEW);
    assert_int_equal(it.new_site, 1);
    assert_int_equal(us_store_site(z->store, us_string("www.a.test"), 0,
                                   &site),
                     US_OK);
    assert_int_equal(site.first, it.id);
    assert_int_equal(site.urls, 1);
    assert_int_equal(add(z->store, "http://www.a.test/f").new_site, 0);

    us_store_close(s);
    us_hot_destroy(hot);
    zone_destroy(z);
}


/* --- tokens of models ----------------------------------------------------- */

#define TOKENS     40000              /* URLs */
#define FILTER     ((size_t) 1 << 24)  /* bits */


/* texts that must not be there: all pieces of the erased that no other has */

typedef struct {
    char      *gone;
    char      *live;
    size_t     ngone;
    size_t     nlive;
    uint8_t   *filter;
} pieces_t;


static void
token_url(unsigned i, char *url)
{
    static const char  *words[] = {
        "summer", "family", "holiday", "archive", "garden", "winter", "report",
        "letter"
    };

    unsigned  a, b;

    a = i * 7 % 8;
    b = i / 8 * 5 % 8;

    switch (i % 8) {

    case 0:
        sprintf(url, "http://host%u.test/%s/the-lovelace-diaries/%s-%u",
                rnd(300), words[a], words[b], i);
        break;

    case 1:
        sprintf(url, "http://host%u.test/%s-%s/secret-family-letters-%u.html",
                rnd(300), words[b], words[a], i);
        break;

    case 2:
        sprintf(url, "http://host%u.test/%s/family-garden/%s-letters/%u",
                rnd(300), words[b], words[a], i);
        break;

    default:
        sprintf(url, "http://host%u.test/%s/%s-holiday-%u", rnd(300),
                words[a], words[b], i);
    }
}


static int
token_gone(unsigned i)
{
    return i % 8 < 2;
}


static zone_t *
tokens_fill(size_t ring, int learns)
{
    char       url[128];
    zone_t    *z;
    unsigned   i;

    nknown = 0;
    journal.len = 0;
    z = zone_create(ZONE, ring);

    for (i = 0; i < TOKENS; i++) {
        token_url(i, url);
        put(z, url);

        if (learns && i == 36000) {
            model(z);
            assert_int_equal(us_head(z->store)->models, 1);
        }
    }

    return z;
}


static inline size_t
piece_hash(const char *p)
{
    uint32_t  tail;
    uint64_t  head;

    memcpy(&head, p, sizeof(head));
    memcpy(&tail, p + sizeof(head), sizeof(tail));

    return ((head ^ tail * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9) >> 40;
}


static void
pieces_of(zone_t *z, pieces_t *p)
{
    char      **list;
    size_t     *n, i, len;
    unsigned    k;

    memset(p, 0, sizeof(pieces_t));
    p->gone = malloc((size_t) nknown * 128);
    p->live = malloc((size_t) nknown * 128);
    p->filter = calloc(1, FILTER / 8);

    for (k = 0; k < nknown; k++) {
        list = us_store_deleted(z->store, k) ? &p->gone : &p->live;
        n = list == &p->gone ? &p->ngone : &p->nlive;
        len = strlen(known[k].url) + 1;
        memcpy(*list + *n, known[k].url, len);
        *n += len;

        if (list == &p->live) {
            continue;
        }

        for (i = 0; i + PIECE < len; i++) {
            p->filter[piece_hash(known[k].url + i) / 8]
                |= (uint8_t) (1 << piece_hash(known[k].url + i) % 8);
        }
    }
}


static void
pieces_free(pieces_t *p)
{
    free(p->gone);
    free(p->live);
    free(p->filter);
}


/* a piece that is there, or NULL */

static const char *
pieces_in(const pieces_t *p, const void *mem, size_t size)
{
    size_t       i, h;
    const char  *m = mem;

    for (i = 0; i + PIECE <= size; i++) {
        h = piece_hash(m + i);

        if ((p->filter[h / 8] >> h % 8 & 1)
            && memmem(p->gone, p->ngone, m + i, PIECE)
            && memmem(p->live, p->nlive, m + i, PIECE) == NULL)
        {
            return m + i;
        }
    }

    return NULL;
}


/* no chunk of models has one, used or not */

static void
assert_nowhere(const pieces_t *p, us_store_t *s)
{
    size_t       chunk;
    uint64_t     i, n;
    const char  *found;

    chunk = (size_t) 1 << s->arena.chunk_shift;
    n = s->arena.head->area[US_AREA_MODELS].n;
    assert_true(n > 0);

    for (i = 0; i < n; i++) {
        found = pieces_in(p, us_area_at(&s->arena, US_AREA_MODELS, i * chunk),
                          chunk);

        if (found) {
            fail_msg("a model has %.*s", PIECE, found);
        }
    }
}


/* whether the private tables of a handle have one */

static int
pieces_private(const pieces_t *p, us_store_t *s)
{
    unsigned      i;
    us_str_t      bytes;
    us_models_t  *ms;

    ms = &s->codec->models;

    for (i = 0; i < ms->n; i++) {
        bytes = us_model_bytes(ms->tables[i].model);

        if (pieces_in(p, bytes.data, bytes.len)) {
            return 1;
        }
    }

    return pieces_in(p, ms->memory, 4 << 20) != NULL;
}


/*
 * Words of a model that lie side by side spell nothing: so many bytes lie
 * within a token's text, or have one between them that no URL has.
 */

static void
assert_apart(us_store_t *s)
{
    size_t             i;
    uint8_t           *within;
    unsigned           k;
    us_str_t           text, bytes;
    uint64_t           first;
    const uint8_t     *pool;
    const us_model_t  *m;

    assert_int_equal(us_record_model(s->codec, 0, &first, &bytes), 0);
    m = (const us_model_t *) bytes.data;
    pool = us_model_at(m, m->text);
    within = calloc(m->text_size, 1);

    for (k = US_TOKEN_TEXT; k < us_model_ntokens(m); k++) {
        text = us_model_token_text(m, k);

        for (i = 0; i + PIECE <= text.len; i++) {
            within[text.data - pool + i] = 1;
        }
    }

    for (i = 256; i + PIECE <= m->text_size - US_TEXT_SLACK; i++) {
        assert_true(within[i] || memchr(pool + i, US_TOKEN_BLANK, PIECE));
    }

    free(within);
}


static void
erase_tokens(void **state)
{
    zone_t              *z, *o;
    unsigned             i;
    pieces_t             p;
    us_str_t             was, now;
    uint64_t             first, lsn;
    us_store_t          *s;
    stream_t             dump = { NULL, 0, 0 };
    us_store_item_t      it;
    us_erase_figures_t   f;

    z = tokens_fill(RING, 1);
    s = us_store_open(z->mem, &zone_no_lock);

    for (i = 0; i < nknown; i++) {
        if (token_gone(i)) {
            gone(z, i);
        }
    }

    pieces_of(z, &p);
    assert_int_equal(lookup(s, known[39999].url).status, US_SEEN);
    assert_true(pieces_private(&p, s));
    assert_true(pieces_private(&p, z->store));

    /* a model that was learnt does not change its codes */

    assert_int_equal(us_record_model(s->codec, 0, &first, &was), 0);

    assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_OK);
    assert_int_equal(f.models, 1);
    assert_nowhere(&p, z->store);

    /* whoever has the old texts reads all, and has them until it is wiped */

    for (i = 0; i < nknown; i++) {
        it = lookup(s, known[i].url);
        assert_int_equal(it.status, token_gone(i) ? US_UNSEEN : US_SEEN);
    }

    assert_true(pieces_private(&p, s));
    us_store_wipe(s);
    assert_false(pieces_private(&p, s));
    us_store_wipe(z->store);
    assert_false(pieces_private(&p, z->store));

    assert_int_equal(us_record_model(s->codec, 0, &first, &now), 0);
    assert_true(now.len <= was.len);
    assert_apart(s);
    assert_non_null(us_model_check(now.data, now.len));

    check(z);

    /* nothing more */

    assert_int_equal(erase(z, US_ERASE_MOST, 1000, &f), US_OK);
    assert_int_equal(f.models, 0);

    replays(z);
    o = other(z, &journal);
    us_store_wipe(o->store);
    assert_nowhere(&p, o->store);
    assert_false(pieces_private(&p, o->store));
    zone_destroy(o);

    assert_int_equal(us_store_dump(z->store, stream_put, &dump, &lsn), 0);
    o = other(z, &dump);
    assert_nowhere(&p, o->store);
    zone_destroy(o);
    free(dump.data);

    go_on(z);
    check(z);
    replays(z);

    pieces_free(&p);
    us_store_close(s);
    forget();
    zone_destroy(z);
}


/* a lock in whose taking a pass comes between */

typedef struct {
    zone_t    *z;
    unsigned   wait;
    int        deletes;
    int        passed;
} between_t;


static void
between(void *data)
{
    unsigned             i;
    between_t           *b = data;
    us_erase_figures_t   f;

    if (b->wait && --b->wait == 0) {
        for (i = 0; i < TOKENS && b->deletes; i++) {
            if (token_gone(i)) {
                gone(b->z, i);
            }
        }

        assert_int_equal(erase(b->z, US_ERASE_MOST, 1000, &f), US_OK);
        assert_true(b->deletes || f.models > 0);
        b->passed = 1;
    }
}


/*
 * URLs that are encoded with tokens which are then dropped, before they are
 * added.
 */

static void
encoded_before(void **state)
{
    char              text[64][128];
    size_t            len;
    zone_t           *z, *o;
    uint8_t           url[US_URL_MAX + 8];
    unsigned          i, n;
    between_t         b;
    us_store_t       *s, *r;
    us_store_lock_t   lock = { between, zone_lock, &b };
    us_store_item_t   items[64];

    z = tokens_fill(RING, 1);
    memset(&b, 0, sizeof(between_t));
    b.z = z;
    s = us_store_open(z->mem, &lock);

    /* its encoder is the model's */

    for (i = 0; i < 5000; i++) {
        sprintf(text[0], "http://host%u.test/summer/%u", rnd(300), TOKENS + i);
        assert_int_equal(add(s, text[0]).status, US_NEW);
        drain(z);
        remember(z, text[0]);
    }

    assert_int_equal(s->codec->models.number, 0);

    for (i = 0; i < TOKENS; i++) {
        if (token_gone(i)) {
            gone(z, i);
        }
    }

    for (i = 0; i < 64; i++) {
        sprintf(text[i], "http://host%u.test/summer/the-lovelace-diaries/"
                         "secret-family-letters-%u.html", rnd(300), i);
        items[i] = item(text[i], 0);
    }

    b.wait = 1;
    us_store_add(s, items, 64);
    assert_true(b.passed);
    drain(z);
    r = us_store_open(z->mem, &zone_no_lock);

    for (i = 0, n = nknown; i < 64; i++) {
        assert_int_equal(items[i].status, US_NEW);
        assert_int_equal(items[i].id, n + i);
        assert_int_equal(us_store_get(r, n + i, url, &len), US_OK);
        assert_string(url, len, text[i]);
        assert_int_equal(lookup(r, text[i]).id, n + i);
        remember(z, text[i]);
    }

    /* those that follow are encoded with what the model has now */

    for (i = 0; i < 5000; i++) {
        sprintf(text[0], "http://host%u.test/the-lovelace-diaries/again-%u",
                rnd(300), i);
        assert_int_equal(add(s, text[0]).status, US_NEW);
        drain(z);
        assert_int_equal(us_store_get(r, nknown, url, &len), US_OK);
        assert_string(url, len, text[0]);
        remember(z, text[0]);
    }

    assert_int_equal(s->codec->models.number, 0);
    check(z);
    o = other(z, &journal);
    same(z, o);

    zone_destroy(o);
    us_store_close(r);
    us_store_close(s);
    forget();
    zone_destroy(z);
}


/* a lock before whose taking URLs are added, once all texts were looked at */

typedef struct {
    zone_t      *z;
    us_store_t  *s;
    uint64_t     vetted;
    int          waits;
    uint64_t     retexts;             /* when they were added; or */
#define ADDED_NONE  UINT64_MAX
} adding_t;


static void
adding(void *data)
{
    char       url[128];
    unsigned   i;
    adding_t  *a = data;

    if (!a->waits || us_head(a->s)->vetted == a->vetted) {
        return;
    }

    a->waits--;
    a->retexts = us_head(a->s)->retexts;

    for (i = 0; i < 64; i++) {
        sprintf(url, a->waits ? "http://host%u.test/summer/%u"
                              : "http://host%u.test/summer/the-lovelace-diaries"
                                "/secret-family-letters-%u.html",
                rnd(300), nknown + TOKENS);
        assert_int_equal(add(a->s, url).status, US_NEW);
        drain(a->z);
        remember(a->z, url);
    }
}


/* they are too many to be looked at in this hold of the lock */

static void
added(void *data)
{
    adding_t  *a = data;

    if (a->retexts != ADDED_NONE) {
        assert_int_equal(us_head(a->s)->retexts, a->retexts);
        a->retexts = ADDED_NONE;
    }
}


/*
 * URLs are added by a process that has the tokens, when a pass has looked at
 * the texts of all records and is about to drop some: they are not lost.
 */

static void
added_meanwhile(void **state)
{
    char                 url[128];
    size_t               len;
    zone_t              *z;
    uint8_t              text[US_URL_MAX + 8];
    unsigned             i, n;
    adding_t             a;
    us_store_t          *s, *r;
    us_erase_t          *e;
    us_store_lock_t      lock = { adding, added, &a };
    us_store_status_t    rc;

    z = tokens_fill(RING, 1);
    memset(&a, 0, sizeof(adding_t));
    a.z = z;
    a.retexts = ADDED_NONE;
    a.s = us_store_open(z->mem, &zone_no_lock);
    s = us_store_open(z->mem, &lock);

    for (i = 0; i < 5000; i++) {
        sprintf(url, "http://host%u.test/summer/%u", rnd(300), TOKENS + i);
        assert_int_equal(add(a.s, url).status, US_NEW);
        drain(z);
        remember(z, url);
    }

    assert_int_equal(a.s->codec->models.number, 0);

    for (i = 0; i < TOKENS; i++) {
        if (token_gone(i)) {
            gone(z, i);
        }
    }

    n = nknown;
    a.waits = 2;
    a.vetted = us_head(s)->vetted;
    e = us_erase_create(s, US_ERASE_MOST);

    do {
        rc = us_erase_step(e, 1000);
        drain(z);
    } while (rc == US_NEW);

    assert_int_equal(rc, US_OK);
    assert_int_equal(us_erase_figures(e)->models, 1);
    assert_int_equal(nknown, n + 128);
    us_erase_free(e);

    r = us_store_open(z->mem, &zone_no_lock);

    for (i = n; i < nknown; i++) {
        assert_int_equal(us_store_get(r, i, text, &len), US_OK);
        assert_string(text, len, known[i].url);
    }

    us_store_close(r);
    us_store_close(s);
    us_store_close(a.s);
    check(z);
    forget();
    zone_destroy(z);
}


/*
 * A model that was learnt before is installed when a pass has just begun: the
 * ring has its texts, and keeps them until they are in the journal, for longer
 * than the pass takes.
 */

static void
learnt_meanwhile(void **state)
{
    int                 learnt;
    zone_t             *z;
    us_str_t            model;
    uint64_t            number, lsn;
    unsigned            i;
    pieces_t            p;
    us_store_t         *s;
    us_sweep_t          w;
    us_store_item_t     it;
    us_store_status_t   status;

    zone_conf.erases = 1;
    z = tokens_fill(RING, 0);
    zone_conf.erases = 0;
    s = z->store;
    assert_int_equal(us_learn(&s->learn, s->codec, NULL, &model), 1);

    assert_int_equal(us_store_erasure_begin(s, US_ERASURE_URLS, us_string(""),
                                            (const uint8_t *) zone_conf.uuid,
                                            0, NULL, &number, &lsn), US_NEW);

    for (i = 0; i < TOKENS; i++) {
        if (token_gone(i)) {
            it = item(known[i].url, 0);
            us_store_erase(s, number, &it, 1);
            assert_int_equal(it.status, US_ERASED);
            drain(z);
        }
    }

    assert_int_equal(us_store_erasure_done(s, number, &lsn), US_OK);
    drain(z);
    pieces_of(z, &p);
    assert_non_null(pieces_in(&p, model.data, model.len));

    memset(&w, 0, sizeof(us_sweep_t));
    learnt = 0;

    do {
        status = us_store_sweep(s, &w);

        if (w.pass && !learnt) {
            drain(z);
            learnt = us_store_train(s, NULL);
            assert_int_equal(learnt, 1);
        }

        if (status == US_BUSY) {
            drain(z);
        }
    } while (status == US_NEW || status == US_BUSY);

    assert_int_equal(status, US_OK);
    assert_int_equal(learnt, 1);
    drain(z);
    assert_nowhere(&p, s);
    assert_null(pieces_in(&p, s->arena.base + us_head(s)->ring, RING));

    pieces_free(&p);
    forget();
    zone_destroy(z);
}


/* a model whose sample has what is erased meanwhile is not installed */

static void
learnt_before(void **state)
{
    zone_t           *z;
    unsigned          i;
    pieces_t          p;
    between_t         b;
    us_store_t       *s;
    us_store_lock_t   lock = { between, zone_lock, &b };

    z = tokens_fill(0, 0);
    memset(&b, 0, sizeof(between_t));
    b.z = z;
    b.deletes = 1;
    b.wait = 2;
    s = us_store_open(z->mem, &lock);

    assert_int_equal(us_store_train(s, NULL), 0);
    assert_true(b.passed);
    assert_int_equal(us_head(s)->models, 0);

    /* the next one is learnt from what is left */

    for (i = 0; i < TOKENS; i++) {
        assert_int_equal(us_store_deleted(s, i), token_gone(i));
    }

    assert_int_equal(us_store_train_due(s), 1);
    assert_int_equal(us_store_train(s, NULL), 1);

    pieces_of(z, &p);
    assert_nowhere(&p, z->store);
    pieces_free(&p);

    us_store_close(s);
    forget();
    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(erase_tokens),
        cmocka_unit_test(encoded_before),
        cmocka_unit_test(added_meanwhile),
        cmocka_unit_test(learnt_meanwhile),
        cmocka_unit_test(learnt_before),
        cmocka_unit_test(ones_are_no_record),
        cmocka_unit_test(ones_of_a_model),
        cmocka_unit_test(killed_while_erasing),
        cmocka_unit_test(deleted_reference),
        cmocka_unit_test(full),
        cmocka_unit_test(busy_and_fenced),
        cmocka_unit_test(clears_ends),
        cmocka_unit_test(site_begins_anew),
        cmocka_unit_test(site_ends_meanwhile),
        cmocka_unit_test(many_sites),
        cmocka_unit_test(dump_beside),
        cmocka_unit_test(erase_few),
        cmocka_unit_test(erase_all_at_once),
        cmocka_unit_test(erase_in_rounds),
        cmocka_unit_test(erase_with_sites),
        cmocka_unit_test(erase_after_models)
    };

    int  rc;

    known = calloc(MOST, sizeof(known_t));
    rc = known ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(known);
    free(journal.data);

    return rc;
}
