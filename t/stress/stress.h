
/*
 * What the stress tests share: URLs that follow from a number, what a writer
 * does, and what a reader must find at any moment.
 *
 *     ack[k]   id + 1 of the last answer that URL k got from an add
 *
 * A published URL may only disappear by a delete, and "deleted" never goes
 * back.  So at any moment, for any URL k with an answer id:
 *
 *     look-up of k gives id, or id is deleted
 *     get of id gives exactly URL k, or id is deleted
 */


#ifndef _STRESS_H_INCLUDED_
#define _STRESS_H_INCLUDED_


#include "us_base.h"
#include "store/us_store.h"

#include <stdio.h>
#include <stdlib.h>


#define STRESS_KEYS   400000
#define STRESS_URL    (US_URL_MAX + 8)
#define STRESS_BATCH  300


typedef struct {
    uint64_t     ack[STRESS_KEYS];
    uint64_t     adds;
    uint64_t     deletes;
    uint64_t     looks;
    uint64_t     failed;              /* what a check found */
} stress_t;


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


/* some share much with their neighbours, some are long, a few very long */

static inline size_t
stress_url(unsigned k, char *buf)
{
    size_t    n;
    uint64_t  seed;

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


/* one round of a writer; returns 0 if the zone is full */

static inline int
stress_write(us_store_t *s, stress_t *st, uint64_t *seed, char *text)
{
    int               was, room;
    size_t            i, n;
    unsigned          k[STRESS_BATCH];
    uint64_t          id, lsn;
    us_store_item_t   items[STRESS_BATCH];

    room = 1;

    switch (stress_random(seed) % 10) {

    case 0:
        id = stress_random(seed) % (us_store_next_id(s) + 1);
        us_store_delete(s, id, &was, &lsn);
        stress_count(&st->deletes);
        break;

    case 1:
        id = stress_random(seed) % (us_store_next_id(s) + 1);
        us_store_mark(s, 0, id, stress_random(seed) & 1, &lsn);
        break;

    default:
        n = stress_random(seed) % 4 ? 1 + stress_random(seed) % 20
                                    : STRESS_BATCH;

        for (i = 0; i < n; i++) {
            k[i] = stress_random(seed) % STRESS_KEYS;
            items[i] = stress_item(k[i], text + i * STRESS_URL);
        }

        us_store_add(s, items, n);

        for (i = 0; i < n; i++) {
            if (items[i].status == US_NEW || items[i].status == US_SEEN) {
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

        if (next) {
            id = stress_random(seed) % next;

            if (stress_random(seed) & 1) {
                id = next - 1 - id % 100 % next;
            }

            if (us_store_get(s, id, buf, &len) == US_OK) {

                /* the number is in the text: is it the text of the number? */

                buf[len < 200 ? len : 200] = '\0';
                k = strtoul(strrchr((char *) buf, '/') + 1, NULL, 10);

                if (k >= STRESS_KEYS) {
                    stress_fail(st, "id %lu: \"%s\"", (unsigned long) id, buf);

                } else {
                    stress_check(s, st, k, id);
                }
            }
        }

        it = stress_item(k, url);
        it.url.len += sprintf(url + it.url.len, "?");
        us_store_seen(s, &it, 1);

        if (it.status != US_UNSEEN) {
            stress_fail(st, "url %u: seen, but never was", k);
        }

        stress_count(&st->looks);
    }
}


/*
 * Nobody else at work: ids are dense, each live URL has one id and gives it,
 * and every answer holds.  Returns the number of ids.
 */

static inline uint64_t
stress_verify(us_store_t *s, stress_t *st)
{
    size_t            len;
    uint8_t           buf[STRESS_URL];
    uint64_t          id, next, dead, *owner;
    unsigned          k;
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
            buf[len < 200 ? len : 200] = '\0';
            k = strtoul(strrchr((char *) buf, '/') + 1, NULL, 10);

            if (k >= STRESS_KEYS || owner[k]) {
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

    free(owner);

    return next;
}


#endif /* _STRESS_H_INCLUDED_ */
