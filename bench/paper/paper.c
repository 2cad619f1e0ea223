
/*
 * The table and the figure of "In-memory URL Compression", for the structure
 * that the paper describes and for the store, on the same URLs.
 *
 *     build/bench/paper [-n LIMIT] [-c CURVE] NAME  < URLS
 *     build/bench/paper -s  < URLS
 *
 * URLS: canonical, all different, one a line (urlstore dedup --normalize).
 * Two lines of output, the paper's structure and the store: name, bytes a
 * URL with and without the search structure and of the tails alone, then
 * minimum, mean and maximum in ns of storing one URL and of retrieving one by
 * its id at random.  CURVE gets a line at 24 points on the way: URLs, and the
 * mean of storing and of retrieving at that size, for both.
 *
 * -s prints one line as bench/peers/structures does, for the table of peers.
 *
 * Minimum and maximum are of one call on a monotonic clock, so that whatever
 * else the machine does is in the maximum; means are of CPU time.  Both have
 * the cost of the clock in them, about 25 ns.  The store is trained between two
 * calls when it asks for it: training is no part of storing (it happens
 * elsewhere, in the background) and is printed apart.
 *
 * Without the search structure: the paper's records alone; for the store, a
 * zone with mode=lookup that has read the other one's dump and gives each URL
 * back.
 */


#include "avl.h"
#include "store/us_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>


#define POINTS     24
#define RETRIEVED  20000


typedef struct {
    uint64_t      min;
    uint64_t      max;
    uint64_t      sum;
    uint64_t      n;
} times_t;


typedef struct {
    char         *text;
    us_str_t     *urls;
    size_t        n;

    avl_t        *avl;
    us_store_t   *store;
    size_t        size;               /* of its zone */
    double        train;              /* seconds */

    /* [0]: the paper's, [1]: ours */

    times_t       put[2];
    times_t       get[2];

    uint64_t      seed;
    FILE         *curve;
} paper_t;


typedef struct {
    uint8_t      *bytes;
    size_t        len;
    size_t        room;
} dump_t;


static uint64_t
clock_ns(clockid_t id)
{
    struct timespec  ts;

    (void) clock_gettime(id, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


static uint64_t
now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}


static uint64_t
cpu(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}


static uint64_t
next(uint64_t *seed)
{
    uint64_t  z;

    z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;

    return z ^ z >> 31;
}


static void
fail(const char *what)
{
    fprintf(stderr, "paper: %s\n", what);
    exit(1);
}


static void
count(times_t *t, uint64_t ns)
{
    t->min = t->n == 0 || ns < t->min ? ns : t->min;
    t->max = ns > t->max ? ns : t->max;
    t->n++;
}


static double
mean(const times_t *t)
{
    return t->n ? (double) t->sum / t->n : 0;
}


static void
nothing(void *data)
{
}


static void
load(paper_t *p, size_t limit)
{
    char     *end, *s;
    size_t    size, room, max;
    ssize_t   n;

    size = 0;
    room = 0;

    do {
        if (room - size < 1 << 20) {
            room = room * 2 + (8 << 20);
            p->text = realloc(p->text, room);
            if (p->text == NULL) {
                fail("out of memory");
            }
        }

        n = read(0, p->text + size, room - size);
        size += n > 0 ? n : 0;
    } while (n > 0);

    max = 0;

    for (s = p->text; s < p->text + size && p->n < limit; s = end + 1) {
        end = memchr(s, '\n', p->text + size - s);
        if (end == NULL) {
            break;
        }

        if (p->n == max) {
            max = max * 2 + 65536;
            p->urls = realloc(p->urls, max * sizeof(us_str_t));
            if (p->urls == NULL) {
                fail("out of memory");
            }
        }

        if ((size_t) (end - s) > US_URL_MAX) {
            fail("a URL is too long");
        }

        p->urls[p->n].data = (uint8_t *) s;
        p->urls[p->n++].len = end - s;
    }

    if (p->n == 0) {
        fail("no URLs");
    }
}


static us_store_t *
store(size_t size, const us_store_conf_t *conf)
{
    void             *mem;
    us_store_t       *s;
    us_store_lock_t   lock = { nothing, nothing, NULL };

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED || us_store_format(mem, size, conf) != 0
        || (s = us_store_open(mem, &lock)) == NULL)
    {
        fail("no store");
    }

    return s;
}


static void
open_store(paper_t *p)
{
    size_t           i;
    us_store_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    memcpy(conf.hash_key, "a paper of 2001.", 16);
    conf.norm = us_string("crawler");

    /* four times what is needed, as bench/engine/engine.c has it */

    p->size = 8 << 20;

    for (i = 0; i < p->n; i++) {
        p->size += 4 * (p->urls[i].len / 5 + 12);
    }

    if (p->size < us_store_min_size(&conf)) {
        p->size = us_store_min_size(&conf);
    }

    p->size = (p->size + 4095) & ~(size_t) 4095;
    p->store = store(p->size, &conf);
}


static void
put_avl(paper_t *p, size_t i, size_t end)
{
    uint64_t  t, start;
    uint32_t  id;

    start = cpu();

    for ( /* void */ ; i < end; i++) {
        t = now();
        id = avl_add(p->avl, p->urls[i]);
        count(&p->put[0], now() - t);

        if (id != i) {
            fail("the URLs are not all different");
        }
    }

    p->put[0].sum += cpu() - start;
}


static void
put_store(paper_t *p, size_t i, size_t end)
{
    uint64_t         t, start;
    us_store_item_t  item;

    start = cpu();

    for ( /* void */ ; i < end; i++) {
        memset(&item, 0, sizeof(item));
        item.url = p->urls[i];

        t = now();
        (void) us_store_add(p->store, &item, 1);
        count(&p->put[1], now() - t);

        if (item.status != US_NEW || item.id != i) {
            fail("the store did not take a URL");
        }

        if (i % 1024 == 0 && us_store_train_due(p->store)) {
            t = cpu();
            (void) us_store_train(p->store, NULL);
            t = cpu() - t;
            p->train += t / 1e9;
            start += t;
        }
    }

    p->put[1].sum += cpu() - start;
}


/* which: 0, the tree, or 1, the store */

static void
get(paper_t *p, size_t known, int which)
{
    size_t    i, n, len;
    uint8_t   buf[US_URL_MAX + 8];
    uint64_t  t, start;

    start = cpu();

    for (n = 0; n < RETRIEVED; n++) {
        i = next(&p->seed) % known;
        t = now();

        if (which) {
            (void) us_store_get(p->store, i, buf, &len);
        } else {
            len = avl_get(p->avl, i, buf);
        }

        count(&p->get[which], now() - t);

        if (len != p->urls[i].len || memcmp(buf, p->urls[i].data, len) != 0) {
            fail("another URL came back");
        }
    }

    p->get[which].sum += cpu() - start;
}


static void
add(times_t *to, const times_t *t)
{
    if (t->n) {
        to->min = to->n == 0 || t->min < to->min ? t->min : to->min;
        to->max = t->max > to->max ? t->max : to->max;
        to->sum += t->sum;
        to->n += t->n;
    }
}


static void
run(paper_t *p)
{
    size_t   i, end, point;
    times_t  put_sum[2];

    memset(put_sum, 0, sizeof(put_sum));

    for (i = 0, point = 1; point <= POINTS; point++) {
        memset(p->put, 0, sizeof(p->put));
        memset(p->get, 0, sizeof(p->get));

        end = p->n * point / POINTS;

        put_avl(p, i, end);
        put_store(p, i, end);
        get(p, end, 0);
        get(p, end, 1);
        i = end;

        if (p->curve) {
            fprintf(p->curve, "%zu %.0f %.0f %.0f %.0f\n", i,
                    mean(&p->put[0]), mean(&p->get[0]), mean(&p->put[1]),
                    mean(&p->get[1]));
        }

        add(&put_sum[0], &p->put[0]);
        add(&put_sum[1], &p->put[1]);
    }

    memcpy(p->put, put_sum, sizeof(put_sum));
}


static void
row(const char *name, const char *what, const paper_t *p, int which,
    double with, double without, double tails, double hops)
{
    size_t    i;
    uint64_t  raw;

    for (raw = 0, i = 0; i < p->n; i++) {
        raw += p->urls[i].len;
    }

    printf("%s\t%s\t%zu\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f"
           "\t%llu\t%.0f\t%llu\t%llu\t%.0f\t%llu\n", name, what, p->n,
           (double) raw / p->n, with / p->n, without / p->n, tails / p->n, hops,
           (unsigned long long) p->put[which].min, mean(&p->put[which]),
           (unsigned long long) p->put[which].max,
           (unsigned long long) p->get[which].min, mean(&p->get[which]),
           (unsigned long long) p->get[which].max);
}


static int
keep(void *data, const uint8_t *piece, size_t len)
{
    dump_t  *d = data;

    if (d->room - d->len < len) {
        d->room = (d->len + len) * 2;
        d->bytes = realloc(d->bytes, d->room);

        if (d->bytes == NULL) {
            return -1;
        }
    }

    memcpy(d->bytes + d->len, piece, len);
    d->len += len;

    return 0;
}


/* the bytes of a zone with mode=lookup that has read the same URLs */

static uint64_t
lookup(paper_t *p)
{
    size_t            i, len;
    uint8_t           buf[US_URL_MAX + 8];
    uint64_t          lsn;
    dump_t            d;
    us_store_t       *s;
    us_store_info_t   info;
    us_store_conf_t   conf;

    memset(&d, 0, sizeof(d));
    us_store_conf(p->store, &conf);
    conf.lookup = 1;

    s = store(p->size, &conf);

    if (us_store_dump(p->store, keep, &d, &lsn) != 0
        || us_store_apply(s, d.bytes, d.len) != (ssize_t) d.len)
    {
        fail("the store cannot be read back");
    }

    for (i = 0; i < p->n; i++) {
        if (us_store_get(s, i, buf, &len) != US_OK || len != p->urls[i].len
            || memcmp(buf, p->urls[i].data, len) != 0)
        {
            fail("mode=lookup gives another URL");
        }
    }

    us_store_info(s, &info);
    us_store_close(s);
    free(d.bytes);

    return info.used;
}


static void
rows(const char *name, paper_t *p)
{
    avl_info_t        a;
    us_store_info_t   s;

    avl_info(p->avl, &a);
    us_store_info(p->store, &s);

    row(name, "avl", p, 0, a.tree + a.records, a.records, a.tails, a.hops);
    row(name, "store", p, 1, s.used, lookup(p), s.parts[US_PART_LOG], 0);

    fprintf(stderr, "%s: trained for %.1f s apart, tree of height %u\n", name,
            p->train, a.height);
}


/* as bench/peers/structures: sizes, insert, hit and miss in random order */

static void
structure(paper_t *p)
{
    size_t      i, k;
    uint64_t    t, ns;
    uint8_t     buf[US_URL_MAX + 1];
    double      hit, miss;
    us_str_t    url;
    avl_info_t  info;

    put_avl(p, 0, p->n);

    for (ns = 0, i = 0; i < 100000; i++) {
        k = next(&p->seed) % p->n;
        t = now();

        if (avl_find(p->avl, p->urls[k]) != k) {
            fail("a URL is not found");
        }

        ns += now() - t;
    }

    hit = ns / 1e5;

    for (ns = 0, i = 0; i < 100000; i++) {
        url = p->urls[next(&p->seed) % p->n];
        memcpy(buf, url.data, url.len);
        buf[url.len] = 0x7f;
        url.data = buf;
        url.len += url.len < US_URL_MAX;

        t = now();

        if (avl_find(p->avl, url) != AVL_NONE) {
            fail("a URL is found that is not there");
        }

        ns += now() - t;
    }

    miss = ns / 1e5;
    avl_info(p->avl, &info);

    printf("AVL + delta, the paper of 2001\tyes\tyes\tyes"
           "\t%.1f\t%.0f\t%.0f\t%.0f\n",
           (double) (info.tree + info.records) / p->n, mean(&p->put[0]), hit,
           miss);
}


int
main(int argc, char **argv)
{
    int       c, single;
    size_t    limit;
    paper_t   p;

    memset(&p, 0, sizeof(p));
    p.seed = 1;
    limit = SIZE_MAX;
    single = 0;

    while ((c = getopt(argc, argv, "n:c:s")) != -1) {
        switch (c) {
        case 'n':
            limit = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            p.curve = fopen(optarg, "w");
            if (p.curve == NULL) {
                fail("cannot write the curve");
            }
            break;
        case 's':
            single = 1;
            break;
        default:
            fail("usage: paper [-n LIMIT] [-c CURVE] NAME, or paper -s");
        }
    }

    if (optind + !single != argc) {
        fail("usage: paper [-n LIMIT] [-c CURVE] NAME, or paper -s");
    }

    load(&p, limit);

    p.avl = avl_create();
    if (p.avl == NULL) {
        fail("out of memory");
    }

    if (single) {
        structure(&p);
        return 0;
    }

    open_store(&p);
    run(&p);
    rows(argv[optind], &p);

    if (p.curve && fclose(p.curve) != 0) {
        fail("cannot write the curve");
    }

    return 0;
}
