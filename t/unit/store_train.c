
/*
 * Models and the room that they need: a ring smaller than a model, a zone
 * that has no room for one, a journal that is late.  From what they are learnt.
 */


#include "store_zone.h"
#include "../../src/codec/us_learn.c"
#include "zone/us_arena.h"
#include "us_process.h"
#include "life/us_trainer.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>


/* enough for the first model, see us_learn.c */
#define URLS  33000


static unsigned  more_words;         /* that each URL has, of 4,000 */


static us_str_t
url_make(char *p, unsigned i)
{
    us_str_t  s;
    uint64_t  seed;
    unsigned  k;
    int       word;

    static const char  *words[] = {
        "news", "politics", "sports", "the", "of", "story", "%C3%BCber", "2013"
    };

    seed = zone_seed;
    zone_seed = i * 77 + 1;

    s.data = (uint8_t *) p;
    s.len = (size_t) sprintf(p, "http://host%u.example/%s/%s-%u?id=%08x",
                             rnd(300), words[rnd(8)], words[rnd(8)], i,
                             (unsigned) rnd64());

    for (k = 0; k < more_words; k++) {
        word = rnd(4000);
        s.len += (size_t) sprintf(p + s.len, "-%c%c%c%c%c",
                                  'b' + word % 20, "aeiou"[word / 20 % 5],
                                  'c' + word / 100 % 20,
                                  "aeiou"[word * 7 / 20 % 5],
                                  'a' + word / 2000);
    }

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

        us_store_fence(z->mem);
        assert_int_equal(us_store_train(z->store, NULL), 0);
        assert_int_equal(us_store_published(z->store), before);
        us_store_unfence(z->mem);

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
        assert_int_equal(us_store_settle(copy->store), 0);
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


/* adds until the zone is full; returns the number of URLs */

static unsigned
fill(us_store_t *s)
{
    char             url[128];
    unsigned         n;
    us_store_item_t  it;

    for (n = 0; ; n++) {
        url_make(url, n);
        it = add(s, url);

        if (it.status == US_FULL) {
            return n;
        }

        assert_int_equal(it.status, US_NEW);
    }
}


/*
 * A zone that became full has no room for a model, and never will: another
 * handle, of any process, must not learn it again for nothing.
 */

static void
full_zone(void **state)
{
    zone_t      *z;
    unsigned     n;
    uint64_t     lsn;
    us_store_t  *other;

    z = zone_create(2 << 20, 0);
    more_words = 2;
    n = fill(z->store);

    /* what adds leave is for marks, too */

    assert_int_equal(mark_put(z->store, 0, 0, 1, &lsn), US_OK);
    assert_int_equal(mark_put(z->store, 1, 0, 1, &lsn), US_OK);

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
    more_words = 0;
}


/*
 * The model of poorer URLs would fit into the chunks that adds leave: they are
 * for marks and deletes, also after the training.
 */

static void
full_zone_marks(void **state)
{
    int        was;
    zone_t    *z;
    unsigned   n;
    uint64_t   lsn;

    z = zone_create(2 << 20, 0);
    n = fill(z->store);

    assert_true(n >= 1 << 15);
    assert_int_equal(us_store_train_due(z->store), 1);
    assert_int_equal(us_store_train(z->store, NULL), 0);

    assert_int_equal(mark_put(z->store, 0, 0, 1, &lsn), US_OK);
    assert_int_equal(mark_put(z->store, 1, 0, 1, &lsn), US_OK);
    assert_int_equal(us_store_delete(z->store, n - 1, &was, &lsn), US_OK);

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


/* a record that no model decodes does not keep a store from learning */

static void
damaged(void **state)
{
    zone_t   *z;
    kept_t    kept = { NULL, 0 };

    z = zone_create(8 << 20, 0);
    add_to(z->store, 0, URLS, &kept);
    assert_int_equal(us_store_apply(z->store, (uint8_t *) "\4\377\377", 3), 3);

    assert_int_equal(us_store_train(z->store, NULL), 1);
    assert_int_equal(us_store_train_due(z->store), 0);

    free(kept.data);
    zone_destroy(z);
}


static uint64_t
models(const zone_t *z)
{
    us_arena_t  a;

    assert_int_equal(us_arena_open(&a, z->mem), 0);

    return a.head->models;
}


/* a handle that learns a model the moment another one asks for the lock */

static us_store_t  *rival;


static void
rival_lock(void *data)
{
    us_store_t  *s;

    if (rival) {
        s = rival;
        rival = NULL;
        assert_int_equal(us_store_train(s, NULL), 1);
    }
}


static void
two_trainers(void **state)
{
    zone_t           *z;
    kept_t            kept = { NULL, 0 };
    us_store_t       *other;
    us_store_lock_t   lock = { rival_lock, zone_lock, NULL };

    z = zone_create(8 << 20, 128 << 10);
    add_to(z->store, 0, URLS, &kept);

    other = us_store_open(z->mem, &lock);
    assert_non_null(other);

    rival = z->store;
    assert_int_equal(us_store_train(other, NULL), 0);
    assert_null(rival);
    assert_int_equal(models(z), 1);

    us_store_close(other);
    free(kept.data);
    zone_destroy(z);
}


static void
trainer_is(const zone_t *z, us_process_t process)
{
    us_arena_t  a;

    assert_int_equal(us_arena_open(&a, z->mem), 0);
    a.head->trainer = process;
}


/*
 * A trainer was killed and another process has its pid: the next one learns.
 * As long as the trainer lives, be it a thread of the same process, no other
 * one does.
 */

static void
dead_trainer(void **state)
{
    pid_t         pid;
    zone_t       *z;
    kept_t        kept = { NULL, 0 };
    us_process_t  self;

    z = zone_create(8 << 20, 128 << 10);
    add_to(z->store, 0, URLS, &kept);

    self = us_process_self();
    trainer_is(z, self);
    assert_int_equal(us_store_train(z->store, NULL), 0);
    assert_int_equal(us_store_train_due(z->store), 0);

    /* of another one that had the parent's pid, which is in use */

    pid = getppid();
    trainer_is(z, ((uint64_t) 1 << US_PROCESS_PID_BITS) | (uint64_t) pid);
    assert_int_equal(us_store_train_due(z->store), 1);
    assert_int_equal(us_store_train(z->store, NULL), 1);
    assert_int_equal(models(z), 1);

    free(kept.data);
    zone_destroy(z);
}


/* by a thread of its own: to its end; or cancelled, and the model stays due */

static void
trainer_thread(void **state)
{
    zone_t        *z;
    kept_t         kept = { NULL, 0 };
    sigset_t       mask;
    us_trainer_t  *t;

    static uint64_t  none[1 << 16] __attribute__((aligned(4096)));

    z = zone_create(8 << 20, 128 << 10);
    add_to(z->store, 0, URLS, &kept);

    /* memory in which there is no store */

    assert_int_equal(us_trainer_start(&t, none, &zone_no_lock), -1);

    assert_int_equal(us_trainer_start(&t, z->mem, &zone_no_lock), 0);
    assert_int_equal(us_trainer_end(t), 0);
    assert_int_equal(models(z), 0);
    assert_int_equal(us_store_train_due(z->store), 1);

    assert_int_equal(us_trainer_start(&t, z->mem, &zone_no_lock), 0);

    /* signals are blocked in the thread only */

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_int_equal(sigismember(&mask, SIGTERM), 0);

    while (!us_trainer_done(t)) {
        usleep(1000);
    }

    assert_int_equal(us_trainer_end(t), 1);
    assert_int_equal(models(z), 1);
    assert_int_equal(us_store_train_due(z->store), 0);

    free(kept.data);
    zone_destroy(z);
}


/*
 * A model is published while a dump is made, no URL is added meanwhile: it is
 * installed once, by the operation after the dump.
 */

typedef struct {
    zone_t       *z;
    us_store_t   *trainer;
    kept_t        dump;
    kept_t        since;
} dumped_t;


static int
dump_put(void *data, const uint8_t *p, size_t len)
{
    dumped_t  *d = data;

    if (us_store_train_due(d->trainer)) {
        assert_int_equal(us_store_train(d->trainer, NULL), 1);
        drain(d->z->store, &d->since);
    }

    d->dump.data = realloc(d->dump.data, d->dump.len + len);
    memcpy(d->dump.data + d->dump.len, p, len);
    d->dump.len += len;

    return 0;
}


static void
dumped(void **state)
{
    zone_t     *copy;
    uint64_t    lsn;
    dumped_t    d;

    memset(&d, 0, sizeof(dumped_t));
    d.z = zone_create(8 << 20, 128 << 10);
    d.trainer = us_store_open(d.z->mem, &zone_no_lock);
    add_to(d.z->store, 0, URLS, &d.since);

    assert_int_equal(us_store_dump(d.z->store, dump_put, &d, &lsn), 0);
    assert_int_equal(models(d.z), 1);
    assert_true(lsn < d.since.len);

    add_to(d.z->store, URLS, URLS + 1000, &d.since);

    copy = zone_create(8 << 20, 0);
    assert_int_equal(us_store_apply(copy->store, d.dump.data, d.dump.len),
                     d.dump.len);
    assert_int_equal(us_store_apply(copy->store, d.since.data + lsn,
                                    d.since.len - lsn),
                     d.since.len - lsn);
    assert_int_equal(us_store_settle(copy->store), 0);
    assert_int_equal(models(copy), 1);
    assert_all(copy->store, URLS + 1000);

    free(d.dump.data);
    free(d.since.data);
    us_store_close(d.trainer);
    zone_destroy(copy);
    zone_destroy(d.z);
}


/*
 * Models are learnt when they are due, the second at SECOND.  From `turn` on,
 * if it is not 0, URLs have a query that takes more than what is before it.
 */

#define SECOND  (1 << 18)


static void
add_urls(us_store_t *s, unsigned from, unsigned to, unsigned turn)
{
    char             text[64][128], *p;
    unsigned         i, k;
    us_store_item_t  items[64];

    zone_seed = from + 1;

    for (i = from; i < to; i += 64) {

        for (k = 0; k < 64; k++) {
            p = text[k];
            p += sprintf(p, "http://host%u.example/%u-%u", rnd(300),
                         rnd(100), i + k);

            if (turn && i >= turn) {
                p += sprintf(p, "?list_rank=%016llx",
                             (unsigned long long) rnd64());
            }

            items[k] = item(text[k], 0);
        }

        us_store_add(s, items, 64);

        for (k = 0; k < 64; k++) {
            assert_int_equal(items[k].status, US_NEW);
        }

        if (us_store_train_due(s)) {
            assert_int_equal(us_store_train(s, NULL), 1);
        }
    }
}


/*
 * The second model is the one that is learnt with, or without, the tokens of
 * the first, from so many records.
 */

static void
begins_with(unsigned turn, int tokens)
{
    zone_t       *z;
    size_t        len;
    uint8_t      *text, *core;
    us_str_t      published;
    us_train_t    t;
    us_arena_t    a;
    us_codec_t   *c;
    us_sample_t  *samples;

    z = zone_create(32 << 20, 0);
    add_urls(z->store, 0, SECOND, turn);

    assert_int_equal(us_arena_open(&a, z->mem), 0);
    c = us_codec_create(&a);
    assert_non_null(c);
    us_models_update(&c->models);
    assert_int_equal(c->models.n, 2);
    assert_int_equal(c->models.first[1], SECOND);

    memset(&t, 0, sizeof(us_train_t));
    assert_int_equal(us_learn_sample(&t, c, NULL,
                                     us_learn_models[1].sample, &text,
                                     &samples), 0);
    assert_int_equal(t.nsamples, us_learn_models[1].sample);

    t.ntokens = us_learn_models[1].ntokens;
    t.ncontexts = us_learn_models[1].ncontexts;
    t.base = tokens ? c->models.tables[0].model : NULL;

    core = us_train(&t, NULL, &len);
    assert_non_null(core);

    published = us_model_bytes(c->models.tables[1].model);
    assert_int_equal(published.len, len);
    assert_memory_equal(published.data, core, len);

    free(core);
    free(samples);
    free(text);
    us_codec_destroy(c);
    zone_destroy(z);
}


static void
same_urls(void **state)
{
    begins_with(0, 1);
}


static void
changed_urls(void **state)
{
    begins_with(SECOND / 2, 0);
}


/*
 * The third model is learnt at 1 M records if URLs have changed; if they have
 * not, it is looked at again at 2 M, and at 4 M it is learnt.  Here, the
 * second one is taken as left out.
 */

static void
third_model(unsigned turn, int learns, uint64_t next)
{
    zone_t      *z;
    us_str_t     model;
    us_learn_t   l;
    us_arena_t   a;
    us_codec_t  *c;

    z = zone_create(32 << 20, 0);
    add_urls(z->store, 0, SECOND / 4, turn);
    assert_int_equal(models(z), 1);

    assert_int_equal(us_arena_open(&a, z->mem), 0);
    a.head->learnt = SECOND;
    add_urls(z->store, SECOND / 4, SECOND / 2, turn);
    assert_int_equal(us_store_train_due(z->store), 0);

    c = us_codec_create(&a);
    assert_non_null(c);
    memset(&l, 0, sizeof(us_learn_t));

    assert_int_equal(us_learn(&l, c, NULL, &model), learns);
    assert_int_equal(us_learn_next(&a, 2, SECOND)->records, next);

    a.head->learnt = 1 << 21;
    assert_int_equal(us_learn_next(&a, 3, SECOND)->records, 1 << 22);
    assert_int_equal(us_learn_next(&a, 3, 5 << 20)->records, 1 << 24);
    assert_null(us_learn_next(&a, 4, 1 << 24));

    us_learn_free(&l);
    us_codec_destroy(c);
    zone_destroy(z);
}


static void
third_left_out(void **state)
{
    third_model(0, 0, 1 << 21);
}


static void
third_learnt(void **state)
{
    third_model(SECOND / 4, 1, 1 << 20);
}


/* URLs came faster than models: it learns the first two, at once */

static void
late(void **state)
{
    zone_t      *z;
    us_arena_t   a;

    z = zone_create(32 << 20, 0);
    assert_int_equal(us_arena_open(&a, z->mem), 0);
    a.head->learnt = UINT64_MAX;
    add_urls(z->store, 0, SECOND + SECOND / 8, 0);
    assert_int_equal(models(z), 0);

    a.head->learnt = 0;
    assert_int_equal(us_store_train(z->store, NULL), 1);
    assert_int_equal(us_store_train_due(z->store), 1);
    assert_int_equal(us_store_train(z->store, NULL), 1);
    assert_int_equal(models(z), 2);
    assert_int_equal(us_store_train_due(z->store), 0);

    zone_destroy(z);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(small_ring),
        cmocka_unit_test(tiny_ring),
        cmocka_unit_test(full_zone),
        cmocka_unit_test(full_zone_marks),
        cmocka_unit_test(late_journal),
        cmocka_unit_test(damaged),
        cmocka_unit_test(two_trainers),
        cmocka_unit_test(dead_trainer),
        cmocka_unit_test(trainer_thread),
        cmocka_unit_test(dumped),
        cmocka_unit_test(same_urls),
        cmocka_unit_test(changed_urls),
        cmocka_unit_test(third_left_out),
        cmocka_unit_test(third_learnt),
        cmocka_unit_test(late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
