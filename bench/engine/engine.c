
/*
 * build/bench/engine --json [--shuffle SEED] [--limit N] [--zone SIZE]
 *     [--fill] [--huge] FILE
 *
 * Fills a store in shared memory with the URLs of a file, packed or not, and
 * prints one JSON object of sizes and times; then checks every URL and id, and
 * as many URLs that were never added.
 *
 * Times are CPU time of this thread in nanoseconds for one URL, the median of
 * US_BENCH_PASSES passes but for inserts; keys are laid out in the order of
 * the queries, so that fetching the query itself costs no memory access.
 * Training is timed apart.  longest_pause_us is the longest time for which the
 * lock was held, by a group of US_STORE_GROUP adds or by a model.
 *
 * --huge puts the store into private memory with huge pages, which the kernel
 * gives by default where it is asked for them.  A zone of huge=on gets the same
 * pages if /sys/kernel/mm/transparent_hugepage/shmem_enabled says "advise".
 *
 * Exit code: 0, all answers were right; 1, some were wrong; 2, wrong usage,
 * FILE could not be read, no memory.
 *
 * The texts of the URLs lie in one pool, in the order of the lines.  A hash
 * table of numbers finds equal URLs by the same key as the store's: what
 * follows the scheme, less a merged "www.".
 */


#include "cli/us_cli.h"
#include "cli/us_files.h"
#include "store/us_store.h"
#include "url/us_normalize.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>


#define US_BENCH_QUERIES   500000
#define US_BENCH_PASSES    3
#define US_BENCH_BATCH     1000
#define US_BENCH_OTHERS    1000000    /* non-members that are looked up */


/* a URL of the file, canonical */

typedef struct {
    uint64_t           text;          /* offset in the pool */
    uint32_t           len;
    uint32_t           spelling:2;    /* set by the caller after the add */
    uint32_t           merge:1;
} us_bench_url_t;


typedef struct {
    char              *pool;          /* texts */
    size_t             pool_len;
    size_t             pool_size;

    us_bench_url_t    *urls;          /* in order of first sight */
    size_t             n;
    size_t             max;

    size_t             lines;         /* that are URLs */
    size_t             invalid;       /* that are none */

    uint32_t          *set;           /* open hash table of numbers + 1 */
    size_t             set_mask;
} us_bench_urls_t;


/* where they come from: a packed file is unpacked, "-": standard input */

typedef struct {
    const char        *file;
    uint64_t           limit;         /* lines, or 0 */
    int                shuffle;
    uint64_t           seed;
} us_bench_source_t;


/* reads them */

typedef struct {
    us_bench_urls_t   *urls;
    us_norm_t         *norm;
    us_norm_ws_t      *ws;
    uint64_t           limit;         /* lines, or 0 */
    us_bench_url_t    *all;           /* of them, of the lines so far */
    size_t             max;
} us_bench_reader_t;


typedef struct {
    us_store_t        *store;
    void              *mem;
    size_t             size;

    us_bench_urls_t    urls;
    size_t             n;             /* of them in the store, by id */
    uint64_t           raw;           /* canonical bytes as stored */

    uint64_t           held_since;
    uint64_t           longest;

    uint64_t           insert_ns;     /* in all */
    uint64_t           train_ns;
    uint64_t           apply_ns;
    uint64_t           errors;

    uint8_t           *dump;
    size_t             dump_len;
    size_t             dump_size;

    double             hit, miss, get, batch_hit, batch_miss;
} us_bench_t;


typedef struct {
    int                fill;
    int                huge;
    uint64_t           zone;
    us_bench_source_t  source;
} us_bench_conf_t;


static uint64_t
us_bench_random(uint64_t *seed)
{
    uint64_t  z;

    /* SplitMix64 (Steele, Lea, Flood: 2014) */

    z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


static void *
us_bench_alloc(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        fprintf(stderr, "engine: out of memory\n");
        exit(US_CLI_USAGE);
    }

    return p;
}


/* the key of a canonical URL: what follows the scheme, less a merged www. */

static us_str_t
us_bench_key(const us_bench_urls_t *b, const us_bench_url_t *u, unsigned *https)
{
    us_store_item_t  item;

    item.url.data = (uint8_t *) b->pool + u->text;
    item.url.len = u->len;
    item.merge = u->merge;

    us_store_item_split(&item);
    *https = item.spelling & US_SPELLING_HTTPS;

    return item.rest;
}


/* the set's cell that has the URL's number + 1, or the free cell for it */

static uint32_t *
us_bench_cell(us_bench_urls_t *b, const us_bench_url_t *u)
{
    size_t     i;
    uint64_t   h;
    unsigned   https, other;
    us_str_t   key, k;
    uint32_t  *cell;

    key = us_bench_key(b, u, &https);
    h = 0xcbf29ce484222325 ^ https;

    for (i = 0; i < key.len; i++) {
        h = (h ^ key.data[i]) * 0x100000001b3;
    }

    h ^= h >> 29;

    for ( ;; h++) {
        cell = &b->set[h & b->set_mask];

        if (*cell == 0) {
            return cell;
        }

        k = us_bench_key(b, &b->urls[*cell - 1], &other);

        if (other == https && k.len == key.len
            && memcmp(k.data, key.data, k.len) == 0)
        {
            return cell;
        }
    }
}


static void
us_bench_set_grow(us_bench_urls_t *b)
{
    size_t  i;

    free(b->set);
    b->set_mask = b->set_mask * 2 + 1;
    b->set = us_bench_alloc(NULL, (b->set_mask + 1) * sizeof(uint32_t));
    memset(b->set, 0, (b->set_mask + 1) * sizeof(uint32_t));

    for (i = 0; i < b->n; i++) {
        *us_bench_cell(b, &b->urls[i]) = i + 1;
    }
}


/* the text at the end of the pool becomes a URL if it is new */

static void
us_bench_first(us_bench_urls_t *b, us_bench_url_t *u)
{
    uint32_t  *cell;

    cell = us_bench_cell(b, u);

    if (*cell) {
        return;
    }

    if (b->n == b->max) {
        b->max = b->max * 2 + 1024;
        b->urls = us_bench_alloc(b->urls, b->max * sizeof(us_bench_url_t));
    }

    b->urls[b->n++] = *u;
    *cell = b->n;

    if (b->n * 2 > b->set_mask) {
        us_bench_set_grow(b);
    }
}


/* a group of lines; 1: there are enough */

static int
us_bench_take(void *data, us_str_t *lines, size_t n)
{
    us_bench_reader_t  *r = data;

    size_t            i;
    us_canon_t        canon;
    us_bench_url_t   *u;
    us_bench_urls_t  *b;

    b = r->urls;

    for (i = 0; i < n; i++) {

        if (r->limit && b->lines == r->limit) {
            return 1;
        }

        if (us_normalize(r->norm, r->ws, lines[i], NULL, &canon)
            != US_URL_OK)
        {
            b->invalid++;
            continue;
        }

        if (b->pool_len + canon.url.href.len > b->pool_size) {
            b->pool_size = (b->pool_size + canon.url.href.len) * 2;
            b->pool = us_bench_alloc(b->pool, b->pool_size);
        }

        if (b->lines == r->max) {
            r->max = r->max * 2 + 1024;
            r->all = us_bench_alloc(r->all, r->max * sizeof(us_bench_url_t));
        }

        u = &r->all[b->lines++];
        u->text = b->pool_len;
        u->len = canon.url.href.len;
        u->spelling = 0;
        u->merge = canon.merge;

        memcpy(b->pool + b->pool_len, canon.url.href.data,
               canon.url.href.len);
        b->pool_len += canon.url.href.len;
    }

    return 0;
}


/* the URLs of all lines, in order; 0, or -1 after a message */

static int
us_bench_lines(us_bench_urls_t *b, const us_bench_source_t *source,
    us_bench_url_t **all)
{
    int                rc;
    us_norm_t         *norm;
    us_files_t         files;
    us_norm_ws_t      *ws;
    us_bench_reader_t  r;

    norm = us_norm_create(US_PROFILE_CRAWLER);

    if (norm == NULL || (ws = us_norm_ws_create(norm)) == NULL) {
        fprintf(stderr, "engine: no normalizer\n");
        return -1;
    }

    memset(&r, 0, sizeof(us_bench_reader_t));
    r.urls = b;
    r.norm = norm;
    r.ws = ws;
    r.limit = source->limit;

    memset(&files, 0, sizeof(us_files_t));
    files.take = us_bench_take;
    files.data = &r;

    rc = us_files_init(&files);

    if (rc == 0) {
        (void) us_files_one(&files, source->file);
        rc = files.failed ? -1 : 0;
    }

    *all = r.all;
    us_files_end(&files);
    us_norm_ws_destroy(ws);
    us_norm_destroy(norm);

    return rc;
}


/* reads, normalizes and shuffles the lines; keeps the first of equal URLs */

int
us_bench_read(us_bench_urls_t *b, const us_bench_source_t *source)
{
    size_t           i, k;
    uint64_t         seed;
    us_bench_url_t  *all, u;

    all = NULL;

    if (us_bench_lines(b, source, &all) == -1) {
        free(all);
        return -1;
    }

    seed = source->seed;

    for (i = b->lines; source->shuffle && i > 1; i--) {
        k = us_bench_random(&seed) % i;
        u = all[i - 1];
        all[i - 1] = all[k];
        all[k] = u;
    }

    b->set_mask = 1023;
    us_bench_set_grow(b);

    for (i = 0; i < b->lines; i++) {
        us_bench_first(b, &all[i]);
    }

    free(all);

    return 0;
}


static us_store_item_t
us_bench_item(const us_bench_urls_t *b, size_t i)
{
    us_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.url.data = (uint8_t *) b->pool + b->urls[i].text;
    item.url.len = b->urls[i].len;
    item.merge = b->urls[i].merge;

    return item;
}


/*
 * Copies `count` URLs, those of `order`, one after the other to text, which
 * has room for a byte more for each.  miss: changed in one character, and
 * left out if that makes it another one of the file.  Returns how many there
 * are.
 */

static size_t
us_bench_queries(us_bench_urls_t *b, us_store_item_t *items,
    const uint32_t *order, size_t count, int miss, uint64_t *seed, char *text)
{
    char            *p;
    size_t           i, n;
    us_bench_url_t   u;

    n = 0;

    for (i = 0; i < count; i++) {
        items[n] = us_bench_item(b, order[i]);
        p = text;
        memcpy(p, items[n].url.data, items[n].url.len);
        items[n].url.data = (uint8_t *) p;

        if (miss) {

            /* changes the last character, or appends one */

            u = b->urls[order[i]];

            if (i % 2 && p[u.len - 1] != '/') {
                p[u.len - 1] = 'a' + us_bench_random(seed) % 26;

            } else {
                p[u.len++] = 'a' + us_bench_random(seed) % 26;
                items[n].url.len++;
            }

            if (b->pool_len + u.len > b->pool_size) {
                b->pool_size = (b->pool_size + u.len) * 2;
                b->pool = us_bench_alloc(b->pool, b->pool_size);
            }

            u.text = b->pool_len;
            memcpy(b->pool + u.text, p, u.len);

            if (*us_bench_cell(b, &u)) {
                continue;
            }
        }

        text += items[n++].url.len;
    }

    return n;
}


static void
us_bench_free(us_bench_urls_t *b)
{
    free(b->pool);
    free(b->urls);
    free(b->set);

    b->pool = NULL;
    b->urls = NULL;
    b->set = NULL;
}


static uint64_t
us_bench_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}


static void
us_bench_lock(void *data)
{
    us_bench_t  *b = data;

    b->held_since = us_bench_now();
}


static void
us_bench_unlock(void *data)
{
    uint64_t     t;
    us_bench_t  *b = data;

    t = us_bench_now() - b->held_since;
    b->longest = t > b->longest ? t : b->longest;
}


static int
us_bench_create(us_bench_t *b, const us_bench_conf_t *conf)
{
    size_t           i, need;
    us_store_conf_t  sc;
    us_store_lock_t  lock = { us_bench_lock, us_bench_unlock, b };

    b->n = b->urls.n;

    memset(&sc, 0, sizeof(sc));
    memcpy(sc.hash_key, "bench bench bench", sizeof(sc.hash_key));

    /* a fifth of the text, 12 bytes for each URL, and the models */

    need = (size_t) 2 << 20;

    for (i = 0; i < b->n; i++) {
        need += b->urls.urls[i].len / 5 + 12;
    }

    b->size = conf->zone ? conf->zone : conf->fill ? need / 2 : need * 4;

    if (b->size < us_store_min_size(&sc)) {
        b->size = us_store_min_size(&sc);
    }

    b->mem = mmap(NULL, b->size, PROT_READ|PROT_WRITE,
                  MAP_ANONYMOUS | (conf->huge ? MAP_PRIVATE : MAP_SHARED), -1,
                  0);

    if (b->mem == MAP_FAILED) {
        fprintf(stderr, "engine: mmap(%zu): %s\n", b->size,
                strerror(errno));
        return -1;
    }

    if (conf->huge && madvise(b->mem, b->size, MADV_HUGEPAGE) == -1) {
        fprintf(stderr, "engine: no huge pages: %s\n",
                strerror(errno));
    }

    if (us_store_format(b->mem, b->size, &sc) != 0
        || (b->store = us_store_open(b->mem, &lock)) == NULL)
    {
        fprintf(stderr, "engine: no store\n");
        return -1;
    }

    return 0;
}


/* adds all, or until the zone is full: then n becomes smaller */

static void
us_bench_add(us_bench_t *b)
{
    size_t            i, k, group;
    uint64_t          t;
    us_store_item_t   items[US_STORE_GROUP];

    for (i = 0; i < b->n; i += group) {
        group = b->n - i < US_STORE_GROUP ? b->n - i : US_STORE_GROUP;

        for (k = 0; k < group; k++) {
            items[k] = us_bench_item(&b->urls, i + k);
        }

        t = us_bench_now();
        us_store_add(b->store, items, group);
        b->insert_ns += us_bench_now() - t;

        for (k = 0; k < group; k++) {

            if (items[k].status == US_FULL) {
                b->n = i + k;
                return;
            }

            b->urls.urls[i + k].spelling = items[k].spelling;
            b->errors += items[k].status != US_NEW || items[k].id != i + k;
        }

        if (us_store_train_due(b->store)) {
            t = us_bench_now();
            us_store_train(b->store, NULL);
            b->train_ns += us_bench_now() - t;
        }
    }
}


static int
us_bench_double_cmp(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


/* the median time of a look-up in batches of so many */

static double
us_bench_look(us_bench_t *b, us_store_item_t *items, size_t n, size_t batch)
{
    size_t    i, pass, k;
    double    ns[US_BENCH_PASSES];
    uint64_t  t;

    for (pass = 0; pass < US_BENCH_PASSES; pass++) {
        t = us_bench_now();

        for (i = 0; i < n; i += k) {
            k = n - i < batch ? n - i : batch;
            us_store_seen(b->store, items + i, k);
        }

        ns[pass] = (double) (us_bench_now() - t) / (n ? n : 1);
    }

    qsort(ns, US_BENCH_PASSES, sizeof(double), us_bench_double_cmp);

    return ns[US_BENCH_PASSES / 2];
}


static double
us_bench_get(us_bench_t *b, const uint32_t *order, size_t n)
{
    size_t    i, len, pass;
    double    ns[US_BENCH_PASSES];
    uint8_t   buf[US_URL_MAX + 8];
    uint64_t  t;

    for (pass = 0; pass < US_BENCH_PASSES; pass++) {
        t = us_bench_now();

        for (i = 0; i < n; i++) {
            us_store_get(b->store, order[i], buf, &len);
        }

        ns[pass] = (double) (us_bench_now() - t) / (n ? n : 1);
    }

    qsort(ns, US_BENCH_PASSES, sizeof(double), us_bench_double_cmp);

    return ns[US_BENCH_PASSES / 2];
}


/* numbers below n, the first `count` of a random order */

static uint32_t *
us_bench_order(size_t n, size_t count, uint64_t seed)
{
    size_t     i, k;
    uint32_t   t, *order;

    order = us_bench_alloc(NULL, (n + 1) * sizeof(uint32_t));

    for (i = 0; i < n; i++) {
        order[i] = i;
    }

    for (i = 0; i < count; i++) {
        k = i + us_bench_random(&seed) % (n - i);
        t = order[i];
        order[i] = order[k];
        order[k] = t;
    }

    return order;
}


static void
us_bench_measure(us_bench_t *b)
{
    char             *text;
    size_t            i, n, count, size;
    uint32_t         *order;
    uint64_t          seed;
    us_store_item_t  *items;

    count = b->n < US_BENCH_QUERIES ? b->n : US_BENCH_QUERIES;
    order = us_bench_order(b->n, count, 7);
    items = us_bench_alloc(NULL, (count + 1) * sizeof(us_store_item_t));
    seed = 11;
    size = US_URL_MAX + 8;

    for (i = 0; i < count; i++) {
        size += b->urls.urls[order[i]].len + 1;
    }

    text = us_bench_alloc(NULL, size);

    us_bench_queries(&b->urls, items, order, count, 0, &seed, text);
    b->hit = us_bench_look(b, items, count, 1);
    b->batch_hit = us_bench_look(b, items, count, US_BENCH_BATCH);
    b->get = us_bench_get(b, order, count);

    n = us_bench_queries(&b->urls, items, order, count, 1, &seed, text);
    b->miss = us_bench_look(b, items, n, 1);
    b->batch_miss = us_bench_look(b, items, n, US_BENCH_BATCH);

    free(text);
    free(items);
    free(order);
}


/* every URL gives its id, every id its URL, and no other URL an id */

static void
us_bench_verify(us_bench_t *b)
{
    char             *text;
    size_t            i, k, n, len, got;
    uint8_t           buf[US_URL_MAX + 8], want[US_URL_MAX + 8];
    uint32_t          order[US_BENCH_BATCH];
    uint64_t          seed;
    us_store_item_t   items[US_BENCH_BATCH];

    for (i = 0; i < b->n; i += n) {
        n = b->n - i < US_BENCH_BATCH ? b->n - i : US_BENCH_BATCH;

        for (k = 0; k < n; k++) {
            items[k] = us_bench_item(&b->urls, i + k);
        }

        us_store_seen(b->store, items, n);

        for (k = 0; k < n; k++) {
            b->errors += items[k].status != US_SEEN || items[k].id != i + k
                         || items[k].spelling != b->urls.urls[i + k].spelling;

            len = us_store_item_url(&items[k], want);
            b->raw += len;

            if (us_store_get(b->store, i + k, buf, &got) != US_OK
                || got != len || memcmp(buf, want, len) != 0)
            {
                b->errors++;
            }
        }
    }

    seed = 13;
    text = us_bench_alloc(NULL, US_BENCH_BATCH * (US_URL_MAX + 8));

    for (i = 0; b->n && i < US_BENCH_OTHERS; i += US_BENCH_BATCH) {

        for (k = 0; k < US_BENCH_BATCH; k++) {
            order[k] = us_bench_random(&seed) % b->n;
        }

        n = us_bench_queries(&b->urls, items, order, US_BENCH_BATCH, 1, &seed,
                             text);
        us_store_seen(b->store, items, n);

        for (k = 0; k < n; k++) {
            b->errors += items[k].status != US_UNSEEN;
        }
    }

    free(text);
}


static int
us_bench_dump(void *data, const uint8_t *p, size_t len)
{
    us_bench_t  *b = data;

    if (b->dump_len + len > b->dump_size) {
        b->dump_size = (b->dump_len + len) * 2;
        b->dump = us_bench_alloc(b->dump, b->dump_size);
    }

    memcpy(b->dump + b->dump_len, p, len);
    b->dump_len += len;

    return 0;
}


/*
 * How long it takes to build the store from its dump, as a start does.  The
 * URLs are freed first: with 100 million, memory has no room for both.
 */

static void
us_bench_replay(us_bench_t *b)
{
    void             *mem;
    uint64_t          t, lsn;
    us_store_t       *s;
    us_store_conf_t   sc;
    us_store_lock_t   lock = { us_bench_lock, us_bench_unlock, b };

    us_bench_free(&b->urls);

    us_store_conf(b->store, &sc);
    us_store_dump(b->store, us_bench_dump, b, &lsn);

    mem = mmap(NULL, b->size, PROT_READ|PROT_WRITE, MAP_ANONYMOUS|MAP_SHARED,
               -1, 0);

    if (mem == MAP_FAILED || us_store_format(mem, b->size, &sc) != 0
        || (s = us_store_open(mem, &lock)) == NULL)
    {
        b->errors++;
        return;
    }

    t = us_bench_now();

    if (us_store_apply(s, b->dump, b->dump_len) != (ssize_t) b->dump_len
        || us_store_next_id(s) != us_store_next_id(b->store))
    {
        b->errors++;
    }

    b->apply_ns = us_bench_now() - t;

    us_store_close(s);
    munmap(mem, b->size);
    free(b->dump);
}


static void
us_bench_print(us_bench_t *b, const us_bench_conf_t *conf)
{
    int              i;
    double           n;
    uint64_t         bytes;
    us_store_info_t  info;

    us_store_info(b->store, &info);
    n = b->n ? b->n : 1;

    /* of a zone that was filled all bytes count, used or not */

    bytes = conf->fill ? info.size : info.used;

    printf("{\"urls\": %zu, \"invalid\": %zu, \"sites\": %" PRIu64
           ", \"raw_bytes\": %" PRIu64 ", \"zone_size\": %" PRIu64
           ", \"zone_bytes\": %" PRIu64 ", \"bytes_per_url\": %.3f,\n"
           " \"parts\": {",
           b->n, b->urls.invalid, info.sites, b->raw, info.size, bytes,
           bytes / n);

    for (i = 0; i < US_PARTS; i++) {
        printf("%s\"%s\": %" PRIu64, i ? ", " : "", us_store_part_name(i),
               info.parts[i]);
    }

    if (conf->fill) {
        printf(", \"free\": %" PRIu64, info.size - info.used);
    }

    printf("},\n \"insert_ns\": %.0f, \"train_ns\": %.0f, \"hit_ns\": %.0f, "
           "\"miss_ns\": %.0f, \"get_ns\": %.0f,\n"
           " \"batch_hit_ns\": %.0f, \"batch_miss_ns\": %.0f, "
           "\"apply_ns\": %.0f, \"longest_pause_us\": %.1f, "
           "\"errors\": %" PRIu64 "}\n",
           b->insert_ns / n, b->train_ns / n, b->hit, b->miss, b->get,
           b->batch_hit, b->batch_miss, b->apply_ns / n, b->longest / 1e3,
           b->errors);
}


/* "64m" by 1,024, "2M" by 1,000; 0 if it is no such number */

static uint64_t
us_bench_number(const char *text, unsigned unit)
{
    char        *end;
    double       n;
    const char  *at;

    n = strtod(text, &end);

    for (at = "kmg"; *end && *at; at++) {
        n *= unit;

        if ((*end | 0x20) == *at) {
            end++;
            break;
        }
    }

    if (*end || !(n >= 1 && n <= 1e15)) {
        fprintf(stderr, "engine: \"%.40s\" is no number, such as 2M\n", text);
        return 0;
    }

    return n;
}


static int
us_bench_options(us_bench_conf_t *conf, int argc, char **argv)
{
    int  c;

    static const struct option  options[] = {
        { "json", no_argument, NULL, 'j' },
        { "shuffle", required_argument, NULL, 's' },
        { "limit", required_argument, NULL, 'l' },
        { "zone", required_argument, NULL, 'z' },
        { "fill", no_argument, NULL, 'f' },
        { "huge", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(conf, 0, sizeof(us_bench_conf_t));

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {

        switch (c) {

        case 'j':
            break;

        case 'f':
            conf->fill = 1;
            break;

        case 'h':
            conf->huge = 1;
            break;

        case 's':
            conf->source.shuffle = 1;
            conf->source.seed = strtoull(optarg, NULL, 10);
            break;

        case 'l':
            conf->source.limit = us_bench_number(optarg, 1000);

            if (conf->source.limit == 0) {
                return -1;
            }

            break;

        case 'z':
            conf->zone = us_bench_number(optarg, 1024);

            if (conf->zone == 0) {
                return -1;
            }

            break;

        default:
            return -1;
        }
    }

    if (optind != argc - 1) {
        fprintf(stderr, "usage: engine --json [--shuffle SEED] [--limit N] "
                "[--zone SIZE] [--fill] [--huge] FILE\n");
        return -1;
    }

    conf->source.file = argv[optind];

    return 0;
}


int
main(int argc, char **argv)
{
    int              rc;
    us_bench_t       b;
    us_bench_conf_t  conf;

    if (us_bench_options(&conf, argc, argv) != 0) {
        return US_CLI_USAGE;
    }

    memset(&b, 0, sizeof(b));
    rc = US_CLI_USAGE;

    if (us_bench_read(&b.urls, &conf.source) == 0
        && us_bench_create(&b, &conf) == 0)
    {
        us_bench_add(&b);
        us_bench_measure(&b);
        us_bench_verify(&b);
        us_bench_replay(&b);
        us_bench_print(&b, &conf);

        rc = b.errors ? US_CLI_REFUSED : US_CLI_DONE;

        us_store_close(b.store);
        munmap(b.mem, b.size);
    }

    us_bench_free(&b.urls);

    return rc;
}
