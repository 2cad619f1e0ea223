
/*
 * The distinct canonical URLs of a file: see us_bench_urls.h.
 *
 * Texts lie in one pool, in the order of the lines.  A hash table of numbers
 * finds equal URLs by the same key as the store's: what follows the scheme,
 * less a merged "www.".
 */


#include "us_cli.h"
#include "us_bench_urls.h"
#include "us_lines.h"
#include "../url/us_normalize.h"

#include <stdio.h>
#include <stdlib.h>


#define US_BENCH_LINES  256


uint64_t
us_bench_random(uint64_t *seed)
{
    uint64_t  z;

    /* SplitMix64 (Steele, Lea, Flood: 2014) */

    z = *seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


void *
us_bench_alloc(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        fprintf(stderr, "urlstore bench: out of memory\n");
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


static void
us_bench_line(us_bench_urls_t *b, const us_norm_t *norm, us_norm_ws_t *ws,
    us_str_t line, us_bench_url_t **all, size_t *max)
{
    us_canon_t       canon;
    us_bench_url_t  *u;

    if (us_normalize(norm, ws, line, NULL, &canon) != US_URL_OK) {
        b->invalid++;
        return;
    }

    if (b->pool_len + canon.url.href.len > b->pool_size) {
        b->pool_size = (b->pool_size + canon.url.href.len) * 2;
        b->pool = us_bench_alloc(b->pool, b->pool_size);
    }

    if (b->lines == *max) {
        *max = *max * 2 + 1024;
        *all = us_bench_alloc(*all, *max * sizeof(us_bench_url_t));
    }

    u = &(*all)[b->lines++];
    u->text = b->pool_len;
    u->len = canon.url.href.len;
    u->spelling = 0;
    u->merge = canon.merge;

    memcpy(b->pool + b->pool_len, canon.url.href.data, canon.url.href.len);
    b->pool_len += canon.url.href.len;
}


/* the URLs of all lines, in order; 0, or -1 after a message */

static int
us_bench_lines(us_bench_urls_t *b, const us_bench_source_t *source,
    us_bench_url_t **all)
{
    int            rc;
    size_t         max;
    ssize_t        i, n;
    us_str_t       lines[US_BENCH_LINES];
    us_norm_t     *norm;
    us_lines_t     in;
    us_norm_ws_t  *ws;

    norm = us_norm_create(US_PROFILE_CRAWLER);

    if (norm == NULL || us_norm_seal(norm) != 0
        || (ws = us_norm_ws_create(norm)) == NULL
        || us_lines_init(&in) == -1)
    {
        fprintf(stderr, "urlstore bench: no normalizer\n");
        return -1;
    }

    rc = us_lines_open(&in, source->file);
    max = 0;
    n = 0;

    while (rc == 0 && (n = us_lines_next(&in, lines, US_BENCH_LINES)) > 0) {

        for (i = 0;
             i < n && (source->limit == 0 || b->lines < source->limit);
             i++)
        {
            us_bench_line(b, norm, ws, lines[i], all, &max);
        }

        if (i < n) {
            break;
        }
    }

    if (us_lines_close(&in) == -1 || n == -1) {
        rc = -1;
    }

    us_lines_free(&in);
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


us_store_item_t
us_bench_item(const us_bench_urls_t *b, size_t i)
{
    us_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.url.data = (uint8_t *) b->pool + b->urls[i].text;
    item.url.len = b->urls[i].len;
    item.merge = b->urls[i].merge;

    return item;
}


size_t
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


void
us_bench_free(us_bench_urls_t *b)
{
    free(b->pool);
    free(b->urls);
    free(b->set);

    b->pool = NULL;
    b->urls = NULL;
    b->set = NULL;
}
