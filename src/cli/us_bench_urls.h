
/*
 * The distinct canonical URLs of a file, for `urlstore bench`, and URLs that
 * are not among them.
 */


#ifndef _US_BENCH_URLS_H_INCLUDED_
#define _US_BENCH_URLS_H_INCLUDED_


#include "../store/us_store.h"


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


/* All end the process, with a message, if there is no memory. */

/* b is zero; 0, or -1 after a message */
int us_bench_read(us_bench_urls_t *b, const us_bench_source_t *source);
void us_bench_free(us_bench_urls_t *b);

/* URL i as an item of the store's; its text is the pool's */
us_store_item_t us_bench_item(const us_bench_urls_t *b, size_t i);

/*
 * Copies `count` URLs, those of `order`, one after the other to text, which
 * has room for a byte more for each.  miss: changed in one character, and
 * left out if that makes it another one of the file.  Returns how many there
 * are.
 */
size_t us_bench_queries(us_bench_urls_t *b, us_store_item_t *items,
    const uint32_t *order, size_t count, int miss, uint64_t *seed, char *text);

void *us_bench_alloc(void *p, size_t size);
uint64_t us_bench_random(uint64_t *seed);


#endif /* _US_BENCH_URLS_H_INCLUDED_ */
