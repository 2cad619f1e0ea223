
/*
 * Records are erased while others are read that refer to them.
 *
 *     URL of group g     http://g.test/ and 200 letters / a     erased
 *                                                       / b     stays
 *                                                       / ...   added meanwhile
 *
 * The eraser waits before each record until readers are at its group: they look
 * up and decode the URL that stays, and a writer adds one more, which may refer
 * to it.  A false miss, another text or an add that is not what was added is a
 * failure.
 *
 *     erase GROUPS
 */


#include "us_base.h"
#include "mutex.h"
#include "store/us_erase.h"
#include "store/us_store.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define ZONE     ((size_t) 64 << 20)
#define READERS  1
#define THREADS  (READERS + 1)
#define ROUNDS   2                    /* of each thread, before a record goes */
#define PATIENCE 5000000              /* ns that a thread may be away */


static void      *mem;
static unsigned   ngroups;
static unsigned   group;              /* whose record is next */
static unsigned   rounds[THREADS];    /* since that */
static int        stop;
static unsigned   failed, looks, adds;


#define load(p)      __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v)  __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define count(p)     __atomic_fetch_add(p, 1, __ATOMIC_RELAXED)


static size_t
url(unsigned g, unsigned i, char *buf)
{
    size_t    n, k;
    uint64_t  x;

    n = (size_t) sprintf(buf, "http://%u.test/", g);
    x = g;

    for (k = 0; k < 200; k++) {
        x = x * 6364136223846793005 + 1442695040888963407;
        buf[n++] = (char) ('a' + (x >> 33) % 26);
    }

    return n + (size_t) sprintf(buf + n, "/%u", i);
}


static void
fail(const char *what, unsigned g, int status)
{
    if (count(&failed) < 10) {
        fprintf(stderr, "group %u: %s, %d\n", g, what, status);
    }
}


static us_store_item_t
item(unsigned g, unsigned i, char *buf)
{
    us_store_item_t  it;

    memset(&it, 0, sizeof(us_store_item_t));
    it.url.len = url(g, i, buf);
    it.url.data = (uint8_t *) buf;

    return it;
}


static void
get(us_store_t *s, uint64_t id, us_str_t want, unsigned g, const char *what)
{
    size_t             len;
    uint8_t            buf[US_URL_MAX + 8];
    us_store_status_t  status;

    status = us_store_get(s, id, buf, &len);

    if (status != US_OK || len != want.len
        || memcmp(buf, want.data, len) != 0)
    {
        fail(what, g, status);
    }
}


/* alone, and as one of a group of two */

static void
look(us_store_t *s, unsigned g)
{
    char             buf[2][300];
    us_store_item_t  it[2];

    it[0] = item(g, 1, buf[0]);
    us_store_seen(s, it, 1);

    if (it[0].status != US_SEEN || it[0].id != 2 * g + 1) {
        fail("not seen", g, it[0].status);
    }

    get(s, 2 * g + 1, it[0].url, g, "another text");

    it[0] = item(g, 1, buf[0]);
    it[1] = item((g + 1) % ngroups, 1, buf[1]);
    us_store_seen(s, it, 2);

    if (it[0].status != US_SEEN || it[1].status != US_SEEN) {
        fail("not seen in a group", g, it[0].status);
    }

    count(&looks);
}


static void
put(us_store_t *s, unsigned g, unsigned i)
{
    char             buf[300];
    us_store_item_t  it;

    it = item(g, i, buf);
    us_store_add(s, &it, 1);

    if (it.status != US_NEW) {
        fail("not new", g, it.status);
        return;
    }

    get(s, it.id, it.url, g, "another text was added");
    count(&adds);
}


static void *
thread(void *data)
{
    unsigned     g, last, i, n;
    us_store_t  *s;

    n = (unsigned) (uintptr_t) data;
    s = us_store_open(mem, &mutex_lock);
    last = ngroups;
    i = 2;

    while (!load(&stop)) {
        g = load(&group);

        if (n < READERS) {
            look(s, g);

        } else if (g != last || i < 6) {
            i = g != last ? 2 : i;
            put(s, g, i++);
        }

        last = g;
        count(&rounds[n]);
    }

    us_store_close(s);

    return NULL;
}


static uint64_t
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


/* all threads are at the group, or one of them does not run */

static void
meet(unsigned g)
{
    unsigned  i;
    uint64_t  until;

    store(&group, g);

    for (i = 0; i < THREADS; i++) {
        store(&rounds[i], 0);
    }

    until = now() + PATIENCE;

    for (i = 0; i < THREADS; i++) {
        while (load(&rounds[i]) < ROUNDS && now() < until) {
            sched_yield();
        }
    }
}


int
main(int argc, char **argv)
{
    int                 was;
    char                buf[300];
    unsigned            g, i;
    uint64_t            lsn;
    pthread_t           t[THREADS];
    us_store_t         *s;
    us_erase_t         *e;
    us_store_item_t     it;
    us_store_conf_t     conf;
    us_store_status_t   rc;

    ngroups = argc > 1 ? (unsigned) atoi(argv[1]) : 1000;
    mem = mmap(NULL, ZONE, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
               0);

    memset(&conf, 0, sizeof(us_store_conf_t));
    memcpy(conf.hash_key, "eraseeraseeraser", 16);

    if (mem == MAP_FAILED || us_store_format(mem, ZONE, &conf) != 0) {
        return 2;
    }

    s = us_store_open(mem, &mutex_lock);

    for (g = 0; g < ngroups; g++) {
        for (i = 0; i < 2; i++) {
            it = item(g, i, buf);
            us_store_add(s, &it, 1);
        }
    }

    for (g = 0; g < ngroups; g++) {
        us_store_delete(s, 2 * g, &was, &lsn);
    }

    /* one round for all: of its ids, one in 32 can begin a site, as these do */

    e = us_erase_create(s, (size_t) 32 * ngroups);
    group = ngroups - 1;

    /* up to where it writes: see us_erase.c */

    rc = us_erase_step(e, UINT32_MAX);
    rc = rc == US_NEW ? us_erase_step(e, UINT32_MAX) : rc;

    for (i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, thread, (void *) (uintptr_t) i);
    }

    for (g = ngroups; g-- > 0 && rc == US_NEW; /* void */) {
        meet(g);
        rc = us_erase_step(e, 1);
    }

    if (us_erase_figures(e)->erased != ngroups) {
        fail("not erased", g, rc);
    }

    store(&stop, 1);

    for (i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }

    for (g = 0; g < ngroups; g++) {
        look(s, g);
    }

    printf("%lu erased, %lu stubs; %u look-ups, %u adds, %u failed\n",
           (unsigned long) us_erase_figures(e)->erased,
           (unsigned long) us_erase_figures(e)->stubs, looks, adds, failed);

    us_erase_free(e);
    us_store_close(s);

    return failed != 0;
}
