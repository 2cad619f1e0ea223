
/*
 * What the stress tests share: URLs that follow from a number, what a writer
 * does, and what a reader must find at any moment.
 *
 *     URL k        line k of a corpus, if one was read and has so many lines;
 *                  else made up
 *
 *     ack[k]   id + 1 of the last answer that URL k got from an add
 *
 * A published URL may only disappear by a delete, and "deleted" never goes
 * back.  So at any moment, for any URL k with an answer id:
 *
 *     look-up of k gives id, or id is deleted
 *     get of id gives exactly URL k, or id is deleted
 *
 * The store is a shard.  Its maps differ in version and length.  Each gives it
 * all slots, so no answer depends on the map.
 *
 * Claims are only made later, by writers: so of all answers `due`, no two have
 * the same id and the same earlier claim.
 */


#ifndef _STRESS_H_INCLUDED_
#define _STRESS_H_INCLUDED_


#include "us_base.h"
#include "store/us_erase.h"
#include "store/us_store.h"
#include "../unit/marks.h"
#include "map.h"

#include <stdlib.h>


#define STRESS_KEYS   400000
#define STRESS_URL    (US_URL_MAX + 16)
#define STRESS_BATCH  300
#define STRESS_HOT    (1 << 20)       /* a hot table: some 10,000 URLs */
#define STRESS_DUES   (1 << 16)
#define STRESS_EPOCH  1000000000      /* claims: s, which are units here */
#define STRESS_MAPS   4               /* one, for so many changes of a mark */
#define STRESS_PASSES 50              /* one, for so many deletes of a few */


typedef struct {
    uint64_t     ack[STRESS_KEYS];
    uint64_t     adds;
    uint64_t     deletes;
    uint64_t     erased;
    uint64_t     looks;
    uint64_t     hits;                /* URLs that a hot table answered */
    uint64_t     time;                /* claims: s since the test began */
    uint64_t     claims;
    uint64_t     due;
    uint64_t     maps;                /* that were adopted */
    uint64_t     dues[STRESS_DUES];   /* answers, where their hash says */
    uint64_t     failed;              /* what a check found */
} stress_t;


/* distinct URLs; read before anybody else starts */

typedef struct {
    char        *text;
    size_t       used;
    size_t      *at;                  /* URL k ends where k + 1 begins */
    unsigned     n;
    unsigned    *set;                 /* k + 1 by hash, or 0 */
} stress_corpus_t;


static stress_corpus_t  stress_corpus;

#define STRESS_SET  (1u << 20)


#define stress_load(p)       __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define stress_store(p, v)   __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define stress_count(p)      __atomic_fetch_add(p, 1, __ATOMIC_RELAXED)


static inline uint64_t
stress_random(uint64_t *seed)
{
    uint64_t  z;

    z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


/* where a text is in the set, or would be */

static inline unsigned *
stress_slot(const char *p, size_t len)
{
    size_t            i, k;
    uint64_t          h;
    stress_corpus_t  *c;

    c = &stress_corpus;
    h = 0;

    for (i = 0; i < len; i++) {
        h = (h ^ (uint8_t) p[i]) * 0x9e3779b97f4a7c15;
        h ^= h >> 29;
    }

    for ( /* void */ ; c->set[h % STRESS_SET]; h++) {
        k = c->set[h % STRESS_SET] - 1;

        if (c->at[k + 1] - c->at[k] == len
            && memcmp(c->text + c->at[k], p, len) == 0)
        {
            break;
        }
    }

    return &c->set[h % STRESS_SET];
}


/* reads canonical URLs, `max` at most; returns how many distinct ones */

static inline unsigned
stress_corpus_read(FILE *f, unsigned max)
{
    char             *line;
    size_t            size;
    ssize_t           n;
    unsigned         *slot;
    stress_corpus_t  *c;

    c = &stress_corpus;
    c->set = calloc(STRESS_SET, sizeof(unsigned));
    c->at = calloc(max + 1, sizeof(size_t));
    line = NULL;
    size = 0;

    while (c->n < max && (n = getline(&line, &size, f)) > 1) {
        n -= line[n - 1] == '\n';
        slot = stress_slot(line, n);

        if (strncmp(line, "http", 4) != 0 || n > US_URL_MAX || *slot) {
            continue;
        }

        c->text = realloc(c->text, c->used + n);
        memcpy(c->text + c->used, line, n);
        c->used += n;
        c->at[++c->n] = c->used;
        *slot = c->n;
    }

    free(line);

    return c->n;
}


/* some share much with their neighbours, some are long, a few very long */

static inline size_t
stress_url(unsigned k, char *buf)
{
    size_t    n;
    uint64_t  seed;

    if (k < stress_corpus.n) {
        n = stress_corpus.at[k + 1] - stress_corpus.at[k];
        memcpy(buf, stress_corpus.text + stress_corpus.at[k], n);
        return n;
    }

    seed = k;
    n = sprintf(buf, "http%s://%ssite%u.test/%s/%u", k & 1 ? "s" : "",
                k & 2 ? "www." : "", (unsigned) (stress_random(&seed) % 5000),
                k % 3 ? "some/path/to/a/page" : "p", k);

    if (k % 499 == 0) {
        while (n < (k % 1497 == 0 ? 6000 : 300) + k % 100) {
            buf[n++] = 'a' + stress_random(&seed) % 26;
        }
    }

    return n;
}


/* a handle with a hot table of its own, as a worker has */

static inline us_store_t *
stress_open(void *mem, const us_store_lock_t *lock, stress_t *st,
    us_hot_t **hot)
{
    us_store_t  *s;

    s = us_store_open(mem, lock);
    *hot = us_hot_create(STRESS_HOT);

    if (s == NULL || *hot == NULL) {
        perror("stress_open");
        exit(2);
    }

    us_store_hot(s, *hot, &st->hits);

    return s;
}


/* the number of a text that a store gave, or STRESS_KEYS: it has none */

static inline unsigned
stress_number(const uint8_t *text, size_t len)
{
    char           *p, buf[200];
    unsigned        k;

    k = stress_corpus.n ? *stress_slot((const char *) text, len) : 0;

    if (k) {
        return k - 1;
    }

    len = len < sizeof(buf) ? len : sizeof(buf) - 1;
    memcpy(buf, text, len);
    buf[len] = '\0';

    p = strstr(buf, ".test/");
    p = p ? strrchr(p, '/') : NULL;
    k = p ? strtoul(p + 1, NULL, 10) : STRESS_KEYS;

    return k < STRESS_KEYS && k >= stress_corpus.n ? k : STRESS_KEYS;
}


static inline us_store_item_t
stress_item(unsigned k, char *buf)
{
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = stress_url(k, buf);
    it.url.data = (uint8_t *) buf;

    return it;
}


/* says what is wrong, once */

#define stress_fail(st, ...)                                                  \
    do {                                                                      \
        if (stress_count(&(st)->failed) < 10) {                               \
            fprintf(stderr, __VA_ARGS__);                                     \
            fprintf(stderr, "\n");                                            \
        }                                                                     \
    } while (0)


/* the machine's clock: goes on, now and then a bit back, for one writer */

static inline void
stress_clock(us_store_t *s, stress_t *st, uint64_t *seed)
{
    uint64_t  t;

    if (stress_random(seed) % 20 == 0) {
        stress_count(&st->time);
    }

    t = STRESS_EPOCH + stress_load(&st->time);
    us_store_time(s, stress_random(seed) % 20 ? t : t - 5);
}


/* an answer `due`: nobody else got it */

static inline void
stress_due(stress_t *st, const us_store_item_t *it)
{
    uint64_t  due, *slot;

    due = (it->id << 24 | (it->claimed ? it->claimed - STRESS_EPOCH + 100 : 0))
          + 1;
    slot = &st->dues[(due * 0x9e3779b97f4a7c15) >> 48];

    if (__atomic_exchange_n(slot, due, __ATOMIC_RELAXED) == due) {
        stress_fail(st, "id %lu: due twice since %lu", (unsigned long) it->id,
                    (unsigned long) it->claimed);
    }

    stress_count(&st->due);
}


static inline void
stress_claim(us_store_t *s, stress_t *st, uint64_t *seed)
{
    unsigned          i, n;
    us_store_claim_t  c[40];

    n = 1 + stress_random(seed) % 40;

    for (i = 0; i < n; i++) {
        c[i].id = stress_random(seed) % (us_store_next_id(s) + 1);
    }

    us_store_claim(s, c, n, UINT32_MAX);
    stress_count(&st->claims);
}


/* the map of a version; the longest ones need a larger place in the zone */

static inline us_map_t *
stress_map_of(unsigned version)
{
    return stress_map(version, 1 + version % 7 * 40);
}


static inline void
stress_adopt(us_store_t *s, stress_t *st)
{
    uint64_t               lsn;
    us_map_t              *m;
    us_store_status_t      status;
    const us_store_map_t  *now;

    now = us_store_map(s);
    m = stress_map_of((unsigned) now->version + 1);
    status = us_store_adopt(s, m, now->number, &lsn);

    if (status == US_OK) {
        stress_count(&st->maps);

    } else if (status != US_MOVED && status != US_BUSY && status != US_FULL) {
        stress_fail(st, "map %lu: status %u", (unsigned long) m->version,
                    status);
    }

    us_map_free(m);
}


/* a pass; it ends early if the journal is slow, and the next one begins anew */

static inline void
stress_erase(us_store_t *s, stress_t *st)
{
    us_erase_t         *e;
    us_store_status_t   rc;

    e = us_erase_create(s, 1000);

    if (e == NULL) {
        perror("us_erase_create");
        exit(2);
    }

    do {
        rc = us_erase_step(e, 1000);
    } while (rc == US_NEW);

    __atomic_fetch_add(&st->erased, us_erase_figures(e)->erased,
                       __ATOMIC_RELAXED);
    us_erase_free(e);
}


/* one round of a writer; returns 0 if the zone is full */

static inline int
stress_write(us_store_t *s, stress_t *st, uint64_t *seed, char *text)
{
    int               was, room;
    size_t            i, n;
    uint32_t          older;
    unsigned          k[STRESS_BATCH];
    uint64_t          id, lsn;
    us_store_item_t   items[STRESS_BATCH];

    room = 1;
    stress_clock(s, st, seed);

    switch (stress_random(seed) % 10) {

    case 0:
        for (n = 1 + stress_random(seed) % 8; n; n--) {
            id = stress_random(seed) % (us_store_next_id(s) + 1);
            us_store_delete(s, id, &was, &lsn);
            stress_count(&st->deletes);
        }

        if (stress_random(seed) % STRESS_PASSES == 0) {
            stress_erase(s, st);
        }

        break;

    case 1:
        id = stress_random(seed) % (us_store_next_id(s) + 1);
        mark_put(s, 0, id, stress_random(seed) & 1, &lsn);

        if (stress_random(seed) % STRESS_MAPS == 0) {
            stress_adopt(s, st);
        }

        break;

    case 2:
        stress_claim(s, st, seed);
        break;

    default:
        n = stress_random(seed) % 4 ? 1 + stress_random(seed) % 20
                                    : STRESS_BATCH;

        for (i = 0; i < n; i++) {
            k[i] = stress_random(seed) % STRESS_KEYS;
            items[i] = stress_item(k[i], text + i * STRESS_URL);
        }

        older = stress_random(seed) % 4;
        us_store_add_older(s, items, n, older);

        for (i = 0; i < n; i++) {
            if (items[i].status == US_DUE && older) {
                stress_due(st, &items[i]);
            }

            if (items[i].status == US_NEW || items[i].status == US_SEEN
                || items[i].status == US_DUE)
            {
                stress_store(&st->ack[k[i]], items[i].id + 1);
                stress_count(&st->adds);

            } else if (items[i].status == US_FULL) {
                room = 0;

            } else if (items[i].status != US_BUSY) {
                stress_fail(st, "add %u: status %u", k[i], items[i].status);
            }
        }
    }

    return room;
}


/* whether two URLs are one if "www." makes no difference */

static inline int
stress_merged(const uint8_t *p, size_t len, us_str_t url)
{
    us_str_t         a, b;
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.data = p;
    it.url.len = len;
    it.merge = US_MERGE_FIRST;
    us_store_item_split(&it);
    a = it.rest;

    it.url = url;
    us_store_item_split(&it);
    b = it.rest;

    return us_str_compare(a, b) == 0;
}


/* URL k was answered with id: is it so still? */

static inline void
stress_check(us_store_t *s, stress_t *st, unsigned k, uint64_t id)
{
    char               url[STRESS_URL];
    size_t             len;
    uint8_t            buf[STRESS_URL];
    us_store_item_t    it;
    us_store_status_t  status;

    it = stress_item(k, url);
    us_store_seen(s, &it, 1);

    if ((it.status != US_SEEN || it.id != id) && !us_store_deleted(s, id)) {
        stress_fail(st, "url %u of id %lu: status %u id %ld", k,
                    (unsigned long) id, it.status, (long) it.id);
    }

    /* and by a list of suffixes of which "www." makes no difference */

    it = stress_item(k, url);
    it.merge = US_MERGE_FIRST;
    us_store_seen(s, &it, 1);

    if (it.status != US_SEEN) {
        if (!us_store_deleted(s, id)) {
            stress_fail(st, "url %u of id %lu: status %u, merged", k,
                        (unsigned long) id, it.status);
        }

    } else if (us_store_get(s, it.id, buf, &len) == US_OK
               && !stress_merged(buf, len, it.url))
    {
        stress_fail(st, "url %u: id %ld, merged", k, (long) it.id);
    }

    status = us_store_get(s, id, buf, &len);

    if (status == US_DELETED) {
        if (!us_store_deleted(s, id)) {
            stress_fail(st, "id %lu: not deleted", (unsigned long) id);
        }

    } else if (status != US_OK || len != it.url.len
               || memcmp(buf, url, len) != 0)
    {
        stress_fail(st, "id %lu of url %u: status %u \"%.*s\"",
                    (unsigned long) id, k, status, (int) len, buf);
    }
}


/* one round of a reader: answered URLs, ids, URLs that never were */

static inline void
stress_read(us_store_t *s, stress_t *st, uint64_t *seed)
{
    char              url[STRESS_URL];
    size_t            len;
    uint8_t           buf[STRESS_URL];
    uint64_t          id, next;
    unsigned          i, k;
    us_store_item_t   it;

    for (i = 0; i < 64; i++) {
        k = stress_random(seed) % STRESS_KEYS;
        id = stress_load(&st->ack[k]);

        if (id) {
            stress_check(s, st, k, id - 1);
        }

        next = us_store_next_id(s);
        (void) us_store_next_due(s, next / 2, next, 2);

        if (next) {
            id = stress_random(seed) % next;

            if (stress_random(seed) & 1) {
                id = next - 1 - id % 100 % next;
            }

            if (us_store_claimed(s, id) > us_store_clock(s)) {
                stress_fail(st, "id %lu: a claim to come", (unsigned long) id);
            }

            if (us_store_get(s, id, buf, &len) == US_OK) {

                /* a text has a number: is it the text of the number? */

                k = stress_number(buf, len);

                if (k == STRESS_KEYS) {
                    stress_fail(st, "id %lu: \"%.*s\"", (unsigned long) id,
                                (int) len, buf);
                    k = 0;

                } else {
                    stress_check(s, st, k, id);
                }
            }
        }

        /* no URL ends so */

        it = stress_item(k, url);
        it.url.len += sprintf(url + it.url.len, "<");
        us_store_seen(s, &it, 1);

        if (it.status != US_UNSEEN) {
            stress_fail(st, "url %u: seen, but never was", k);
        }

        stress_count(&st->looks);
    }
}


/*
 * Nobody else at work: ids are dense, each live URL has one id and gives it,
 * every answer holds, and the map has its text.  Returns the number of ids.
 */

static inline uint64_t
stress_verify(us_store_t *s, stress_t *st)
{
    size_t            len;
    uint8_t           buf[STRESS_URL];
    uint64_t          id, next, dead, *owner;
    unsigned          k;
    us_str_t          text;
    us_map_t         *m;
    us_store_info_t   info;

    next = us_store_next_id(s);
    owner = calloc(STRESS_KEYS, sizeof(uint64_t));
    dead = 0;

    for (id = 0; id < next; id++) {
        switch (us_store_get(s, id, buf, &len)) {

        case US_DELETED:
            dead++;
            break;

        case US_OK:
            k = stress_number(buf, len);

            if (k == STRESS_KEYS || owner[k]) {
                stress_fail(st, "id %lu: url %u twice", (unsigned long) id, k);
                break;
            }

            owner[k] = id + 1;
            stress_check(s, st, k, id);
            break;

        default:
            stress_fail(st, "id %lu: missing", (unsigned long) id);
        }
    }

    for (k = 0; k < STRESS_KEYS; k++) {
        id = st->ack[k];

        if (id && owner[k] != id && !us_store_deleted(s, id - 1)) {
            stress_fail(st, "url %u: answered %lu, is %lu", k,
                        (unsigned long) id - 1, (unsigned long) owner[k] - 1);
        }
    }

    us_store_info(s, &info);

    if (info.deleted != dead) {
        stress_fail(st, "%lu deleted, not %lu", (unsigned long) dead,
                    (unsigned long) info.deleted);
    }

    text = stress_map_text(s);
    m = stress_map_of((unsigned) us_store_map(s)->version);

    if (us_str_compare(m->text, text) != 0) {
        stress_fail(st, "map %lu: another text", (unsigned long) m->version);
    }

    us_map_free(m);
    free(owner);

    return next;
}


#endif /* _STRESS_H_INCLUDED_ */
