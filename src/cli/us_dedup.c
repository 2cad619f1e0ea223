
/*
 * Three kinds of memory for what has been seen, one interface:
 *
 *     lines as they are      us_lineset   exact
 *     canonical URLs         us_urlset    exact, and as a zone would answer
 *     either, approximately  us_filter
 *
 * Lines go through in groups, so that their cache misses overlap.
 */


#include "us_cli.h"
#include "us_dedup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>


#define US_DEDUP_OUT     (1 << 20)
#define US_DEDUP_TEXT    (US_DEDUP_GROUP * (size_t) US_URL_MAX)
#define US_DEDUP_ROOM    (US_URL_MAX + 64)


int
us_dedup_flush(us_dedup_t *d)
{
    uint8_t  *p;
    ssize_t   n;

    for (p = d->out; d->out_len; p += n, d->out_len -= n) {
        n = write(1, p, d->out_len);

        if (n == -1) {
            if (errno == EINTR) {
                n = 0;
                continue;
            }

            fprintf(stderr, "urlstore: standard output could not be written: "
                    "%s\n", strerror(errno));
            return US_CLI_USAGE;
        }
    }

    return 0;
}


/* writes a line; number goes before it with --ids or --count */

int
us_dedup_print(us_dedup_t *d, us_str_t line, uint64_t number)
{
    if (d->out_len + line.len + 32 > US_DEDUP_OUT + US_LINES_BUFFER) {
        if (us_dedup_flush(d) != 0) {
            return US_CLI_USAGE;
        }
    }

    if (d->ids || d->count) {
        d->out_len += sprintf((char *) d->out + d->out_len, "%llu\t",
                              (unsigned long long) number);
    }

    memcpy(d->out + d->out_len, line.data, line.len);
    d->out_len += line.len;
    d->out[d->out_len++] = '\n';

    return d->out_len < US_DEDUP_OUT ? 0 : us_dedup_flush(d);
}


int
us_dedup_print_url(us_dedup_t *d, const us_store_item_t *item, uint64_t number)
{
    uint8_t   url[US_DEDUP_ROOM];
    us_str_t  line;

    line.data = url;
    line.len = us_store_item_url(item, url);

    return us_dedup_print(d, line, number);
}


static int
us_dedup_full(us_dedup_t *d)
{
    (void) us_dedup_flush(d);

    fprintf(stderr, "urlstore: %llu MB of memory are full after %llu lines, "
            "%llu of them different; the rest was not read: give more "
            "with --memory, or use --filter\n",
            (unsigned long long) d->memory >> 20,
            (unsigned long long) d->lines, (unsigned long long) d->fresh);

    return US_CLI_USAGE;
}


/* done == n: 0; else prints that memory had room for `done` of n lines */

static int
us_dedup_taken(us_dedup_t *d, size_t done, size_t n)
{
    d->lines += done;

    if (done == n) {
        return 0;
    }

    if (errno == ENOSPC) {
        return us_dedup_full(d);
    }

    fprintf(stderr, "urlstore: out of memory after %llu lines\n",
            (unsigned long long) d->lines);

    return US_CLI_USAGE;
}


static int
us_dedup_take_lines(us_dedup_t *d, us_str_t *lines, size_t n)
{
    size_t   i, done;
    uint8_t  answers[US_DEDUP_GROUP];

    done = us_lineset_add(d->set, lines, n, answers);

    for (i = 0; i < done; i++) {

        if (answers[i]) {
            if (!d->count && us_dedup_print(d, lines[i], d->fresh) != 0) {
                return US_CLI_USAGE;
            }

            d->fresh++;
        }
    }

    return us_dedup_taken(d, done, n);
}


static int
us_dedup_take_hashes(us_dedup_t *d, const us_str_t *lines,
    const uint64_t *hashes, size_t n)
{
    size_t   i;
    uint8_t  answers[US_DEDUP_GROUP];

    us_filter_add_many(d->filter, hashes, n, answers);

    for (i = 0; i < n; i++) {
        if (answers[i] && us_dedup_print(d, lines[i], d->fresh++) != 0) {
            return US_CLI_USAGE;
        }
    }

    d->lines += n;

    return 0;
}


static int
us_dedup_take_filter(us_dedup_t *d, us_str_t *lines, size_t n)
{
    size_t    i;
    uint64_t  hashes[US_DEDUP_GROUP];

    for (i = 0; i < n; i++) {
        hashes[i] = us_filter_hash(d->filter, 0, lines[i]);
    }

    return us_dedup_take_hashes(d, lines, hashes, n);
}


/*
 * The canonical URLs of a group, copied: a result of us_normalize() lives
 * until the next.  Refused lines are counted and left out; returns how many
 * remain.
 */

static size_t
us_dedup_canonical(us_dedup_t *d, const us_str_t *lines, size_t n,
    us_str_t *urls, uint8_t *merge)
{
    size_t        i, m;
    uint8_t      *p;
    us_str_t      line;
    us_canon_t    canon;
    us_verdict_t  rc;

    p = d->text;
    m = 0;

    for (i = 0; i < n; i++) {
        line = lines[i];

        if (line.len && line.data[line.len - 1] == '\r') {
            line.len--;
        }

        if (line.len == 0) {
            continue;
        }

        rc = us_normalize(d->norm, d->ws, line, NULL, &canon);

        if (rc != US_URL_OK) {
            d->refused[rc]++;
            continue;
        }

        urls[m].data = p;
        urls[m].len = canon.url.href.len;
        merge[m++] = canon.merge;
        p = mempcpy(p, canon.url.href.data, canon.url.href.len);
    }

    return m;
}


static int
us_dedup_take_filter_urls(us_dedup_t *d, us_str_t *lines, size_t n)
{
    size_t            i, m;
    uint8_t           merge[US_DEDUP_GROUP];
    uint64_t          hashes[US_DEDUP_GROUP];
    us_str_t          urls[US_DEDUP_GROUP];
    us_store_item_t   item;

    m = us_dedup_canonical(d, lines, n, urls, merge);
    d->lines += n - m;

    for (i = 0; i < m; i++) {
        item.url = urls[i];
        item.merge = merge[i];
        us_store_item_split(&item);

        hashes[i] = us_filter_hash(d->filter,
                                   item.spelling & US_SPELLING_HTTPS,
                                   item.rest);
    }

    return us_dedup_take_hashes(d, urls, hashes, m);
}


static int
us_dedup_take_urls(us_dedup_t *d, us_str_t *lines, size_t n)
{
    size_t            i, m, done;
    uint8_t           merge[US_DEDUP_GROUP];
    us_str_t          urls[US_DEDUP_GROUP];
    us_store_item_t   items[US_DEDUP_GROUP];

    m = us_dedup_canonical(d, lines, n, urls, merge);
    d->lines += n - m;

    for (i = 0; i < m; i++) {
        items[i].url = urls[i];
        items[i].merge = merge[i];
    }

    done = us_urlset_add(d->urls, items, m);

    for (i = 0; i < done; i++) {

        if (items[i].status == US_NEW) {
            if (!d->count && us_dedup_print_url(d, &items[i], d->fresh) != 0) {
                return US_CLI_USAGE;
            }

            d->fresh++;
        }
    }

    return us_dedup_taken(d, done, m);
}


static int
us_dedup_memory(void)
{
    fprintf(stderr, "urlstore: out of memory\n");

    return US_CLI_USAGE;
}


static void *
us_dedup_map(size_t size)
{
    void  *mem;

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    return mem == MAP_FAILED ? NULL : mem;
}


static int
us_dedup_open_filter(us_dedup_t *d)
{
    uint8_t    key[16];
    us_str_t   norm;

    if (d->memory && d->memory < d->plan.size) {
        fprintf(stderr, "urlstore: this filter needs %zu MB\n",
                (d->plan.size >> 20) + 1);
        return US_CLI_USAGE;
    }

    d->mem = us_dedup_map(d->plan.size);
    d->mem_size = d->plan.size;

    if (d->mem == NULL || getrandom(key, 16, 0) != 16) {
        return us_dedup_memory();
    }

    (void) madvise(d->mem, d->plan.size, MADV_HUGEPAGE);

    norm.len = 0;
    norm.data = NULL;
    d->filter = us_filter_format(d->mem, &d->plan, key, norm);

    return 0;
}


int
us_dedup_open(us_dedup_t *d)
{
    if (us_files_init(&d->files) == -1) {
        return US_CLI_USAGE;
    }

    d->out = malloc(US_DEDUP_OUT + 2 * US_LINES_BUFFER);

    if (d->out == NULL) {
        return us_dedup_memory();
    }

    if (d->profile != -1) {
        d->text = us_dedup_map(US_DEDUP_TEXT);
        d->norm = us_norm_create(d->profile);

        if (d->text == NULL || d->norm == NULL || us_norm_seal(d->norm) != 0
            || (d->ws = us_norm_ws_create(d->norm)) == NULL)
        {
            return us_dedup_memory();
        }
    }

    if (d->plan.size) {
        d->take = d->profile == -1 ? us_dedup_take_filter
                                   : us_dedup_take_filter_urls;
        return us_dedup_open_filter(d);
    }

    if (d->profile != -1) {
        d->take = us_dedup_take_urls;
        d->urls = us_urlset_create(d->memory, d->count);

        return d->urls ? 0 : us_dedup_memory();
    }

    d->take = us_dedup_take_lines;
    d->set = us_lineset_create(d->memory, d->count);

    return d->set ? 0 : us_dedup_memory();
}


void
us_dedup_free(us_dedup_t *d)
{
    if (d->set) {
        us_lineset_destroy(d->set);
    }

    if (d->urls) {
        us_urlset_destroy(d->urls);
    }

    if (d->mem) {
        (void) munmap(d->mem, d->mem_size);
    }

    if (d->text) {
        (void) munmap(d->text, US_DEDUP_TEXT);
    }

    if (d->ws) {
        us_norm_ws_destroy(d->ws);
    }

    us_norm_destroy(d->norm);
    us_files_free(&d->files);
    free(d->out);
}
