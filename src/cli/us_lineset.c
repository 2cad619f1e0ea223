
/*
 * A hash set of lines.
 *
 *     text    | record | record | ...     one after another, in order
 *     record  = [count, 4 bytes] length (7 bits a byte, low first) bytes
 *     cells   64 bits each: 40 offset of the record + 1, the high 24 of its
 *             hash, whose low bits chose the cell; 0: free
 *
 * Linear probing, at most three quarters full.  Most lines of a large input
 * miss every cache, so that lines come in groups: hash all and ask for their
 * cells, ask for the records that the cells name, then compare.
 *
 * Both arrays grow by mremap() and mmap(), which moves no byte of text; to
 * grow the cells, the text is read once in order and hashed again.  That would
 * be half of all the work if they only doubled each time: where the input's
 * length is known, they grow at once to what it will need if the rest of it
 * has as many new lines as its beginning.
 *
 * The store would take a third of the memory and ten times the time
 * (docs/decisions/dedup.md).
 */


#include "us_lineset.h"
#include "../us_hash.h"
#include "../store/us_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>


#define US_LINESET_CELLS  (1 << 16)
#define US_LINESET_TEXT   (4 << 20)
#define US_LINESET_TEXTS  ((uint64_t) 1 << 40)
#define US_LINESET_GROUP  32
#define US_LINESET_TAG    40


struct us_lineset_s {
    uint8_t       *text;
    size_t         used;
    size_t         size;

    uint64_t      *cells;
    size_t         mask;

    uint64_t       lines;
    double         share;             /* of the input that is in, or 0 */
    size_t         limit;
    size_t         count_len;         /* 4 if counting */
    uint8_t        key[16];
};


static void *
us_lineset_map(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1,
             0);

    return p == MAP_FAILED ? NULL : p;
}


us_lineset_t *
us_lineset_create(size_t limit, int counting)
{
    us_lineset_t  *set;

    set = calloc(1, sizeof(us_lineset_t));
    if (set == NULL) {
        return NULL;
    }

    set->limit = limit ? limit : SIZE_MAX;
    set->count_len = counting ? 4 : 0;
    set->size = US_LINESET_TEXT;
    set->mask = US_LINESET_CELLS - 1;
    set->text = us_lineset_map(set->size);
    set->cells = us_lineset_map(US_LINESET_CELLS * sizeof(uint64_t));

    if (set->text == NULL || set->cells == NULL
        || getrandom(set->key, 16, 0) != 16)
    {
        us_lineset_destroy(set);
        return NULL;
    }

    return set;
}


void
us_lineset_destroy(us_lineset_t *set)
{
    if (set->text) {
        (void) munmap(set->text, set->size);
    }

    if (set->cells) {
        (void) munmap(set->cells, (set->mask + 1) * sizeof(uint64_t));
    }

    free(set);
}


static size_t
us_lineset_memory(const us_lineset_t *set)
{
    return set->used + (set->mask + 1) * sizeof(uint64_t);
}


/* the line of the record at p; the next record is at its end */

static inline us_str_t
us_lineset_line(const us_lineset_t *set, const uint8_t *p)
{
    us_str_t  line;
    unsigned  shift;

    p += set->count_len;
    line.len = *p & 127;

    for (shift = 7; *p++ & 128; shift += 7) {
        line.len |= (size_t) (*p & 127) << shift;
    }

    line.data = p;

    return line;
}


int
us_lineset_walk(const us_lineset_t *set, size_t *pos, us_str_t *line,
    uint32_t *count)
{
    if (*pos >= set->used) {
        return 0;
    }

    *line = us_lineset_line(set, set->text + *pos);
    *count = 1;
    memcpy(count, set->text + *pos, set->count_len);
    *pos = line->data + line->len - set->text;

    return 1;
}


static inline uint64_t
us_lineset_cell(uint64_t hash, size_t offset)
{
    return (hash >> US_LINESET_TAG) << US_LINESET_TAG | (offset + 1);
}


static inline size_t
us_lineset_offset(uint64_t cell)
{
    return (cell & (US_LINESET_TEXTS - 1)) - 1;
}


void
us_lineset_progress(us_lineset_t *set, double share)
{
    set->share = share;
}


static int
us_lineset_grow_cells(us_lineset_t *set)
{
    size_t     mask, i, k, n, pos, offset[US_LINESET_GROUP];
    double     expected;
    uint64_t  *cells, h[US_LINESET_GROUP];
    uint32_t   count;
    us_str_t   line;

    mask = 2 * set->mask + 1;
    expected = set->share > 0 ? set->lines / set->share : 0;

    while (expected / 3 * 4 > mask && mask < set->mask << 5) {
        mask = 2 * mask + 1;
    }

    /* fewer cells, if memory has room for doubling but not for this */

    while (mask > 2 * set->mask + 1
           && set->used + (set->mask + mask + 2) * sizeof(uint64_t)
              > set->limit)
    {
        mask /= 2;
    }

    if (set->used + (set->mask + mask + 2) * sizeof(uint64_t) > set->limit) {
        errno = ENOSPC;
        return -1;
    }

    cells = us_lineset_map((mask + 1) * sizeof(uint64_t));
    if (cells == NULL) {
        return -1;
    }

    (void) madvise(cells, (mask + 1) * sizeof(uint64_t), MADV_HUGEPAGE);

    /* hashes all lines into cells, in groups for the sake of the cache */

    pos = 0;

    do {
        for (n = 0; n < US_LINESET_GROUP; n++) {
            offset[n] = pos;

            if (!us_lineset_walk(set, &pos, &line, &count)) {
                break;
            }

            h[n] = us_hash(set->key, 0, line.data, line.len);
            __builtin_prefetch(&cells[h[n] & mask], 1);
        }

        for (i = 0; i < n; i++) {

            for (k = h[i] & mask; cells[k]; k = (k + 1) & mask) {
                /* void */
            }

            cells[k] = us_lineset_cell(h[i], offset[i]);
        }

    } while (n == US_LINESET_GROUP);

    (void) munmap(set->cells, (set->mask + 1) * sizeof(uint64_t));
    set->cells = cells;
    set->mask = mask;

    return 0;
}


static void
us_lineset_count(us_lineset_t *set, uint8_t *record)
{
    uint32_t  count;

    if (set->count_len) {
        memcpy(&count, record, 4);
        count += (count != UINT32_MAX);
        memcpy(record, &count, 4);
    }
}


/* appends the record of a new line; there is room for it */

static size_t
us_lineset_append(us_lineset_t *set, us_str_t line)
{
    size_t    n, offset;
    uint8_t  *p;

    offset = set->used;
    p = set->text + offset;

    memset(p, 0, set->count_len);
    us_lineset_count(set, p);
    p += set->count_len;

    for (n = line.len; n > 127; n >>= 7) {
        *p++ = 128 | (n & 127);
    }

    *p++ = n;
    memcpy(p, line.data, line.len);

    set->used = p + line.len - set->text;
    set->lines++;

    return offset;
}


/* the record of a line; NULL: there is none, and this is the cell for it */

static uint8_t *
us_lineset_find(const us_lineset_t *set, us_str_t line, uint64_t h,
    uint64_t **cell)
{
    size_t     i;
    uint8_t   *p;
    us_str_t   known;

    for (i = h & set->mask; set->cells[i]; i = (i + 1) & set->mask) {

        if (set->cells[i] >> US_LINESET_TAG != h >> US_LINESET_TAG) {
            continue;
        }

        p = set->text + us_lineset_offset(set->cells[i]);
        known = us_lineset_line(set, p);

        if (known.len == line.len
            && memcmp(known.data, line.data, line.len) == 0)
        {
            return p;
        }
    }

    *cell = &set->cells[i];

    return NULL;
}


/* room for n more lines of `bytes` bytes in all; 0 or -1 */

static int
us_lineset_reserve(us_lineset_t *set, size_t n, size_t bytes)
{
    void    *p;
    size_t   size;

    bytes += n * (10 + set->count_len);

    if (us_lineset_memory(set) + bytes > set->limit) {
        errno = ENOSPC;
        return -1;
    }

    if (set->used + bytes > set->size) {
        size = set->size + (bytes > set->size / 4 ? bytes : set->size / 4);
        size = (size + 4095) & ~(size_t) 4095;

        if (size > US_LINESET_TEXTS) {
            errno = ENOMEM;
            return -1;
        }

        p = mremap(set->text, set->size, size, MREMAP_MAYMOVE);
        if (p == MAP_FAILED) {
            return -1;
        }

        set->text = p;
        set->size = size;

        (void) madvise(p, size, MADV_HUGEPAGE);
    }

    if ((set->lines + n) / 3 * 4 > set->mask) {
        return us_lineset_grow_cells(set);
    }

    return 0;
}


size_t
us_lineset_add(us_lineset_t *set, const us_str_t *lines, size_t n,
    uint8_t *answers)
{
    size_t    i, m, done, bytes;
    uint8_t   *p;
    uint64_t  cell, *to, h[US_LINESET_GROUP];

    for (done = 0; done < n; done += m) {
        m = n - done < US_LINESET_GROUP ? n - done : US_LINESET_GROUP;
        bytes = 0;

        for (i = 0; i < m; i++) {
            bytes += lines[done + i].len;
        }

        if (us_lineset_reserve(set, m, bytes) == -1) {
            break;
        }

        for (i = 0; i < m; i++) {
            h[i] = us_hash(set->key, 0, lines[done + i].data,
                           lines[done + i].len);
            __builtin_prefetch(&set->cells[h[i] & set->mask], 1);
        }

        for (i = 0; i < m; i++) {
            cell = set->cells[h[i] & set->mask];

            if (cell && cell >> US_LINESET_TAG == h[i] >> US_LINESET_TAG) {
                __builtin_prefetch(set->text + us_lineset_offset(cell));
            }
        }

        for (i = 0; i < m; i++) {
            p = us_lineset_find(set, lines[done + i], h[i], &to);
            answers[done + i] = p == NULL;

            if (p) {
                us_lineset_count(set, p);

            } else {
                *to = us_lineset_cell(h[i],
                                      us_lineset_append(set, lines[done + i]));
            }
        }
    }

    return done;
}


/*
 * Two sets of lines:
 *
 *     urls     'h' or 's', rest     rest: the URL from its host on, less a
 *                                   mergeable "www."
 *     sites    host[:port]          with a number: whether it has a "www."
 *
 * Whether "www." is mergeable depends on the host without it, so all URLs with
 * one rest agree on it, and the number of a site suffices to write its URLs.
 *
 * The letter of the scheme overwrites the byte before rest, which is the last
 * byte of "//" or of "www.".
 */

#define US_URLSET_GROUP  256


struct us_urlset_s {
    us_lineset_t  *urls;
    us_lineset_t  *sites;
    size_t         limit;
};


us_urlset_t *
us_urlset_create(size_t limit, int counting)
{
    us_urlset_t  *set;

    set = calloc(1, sizeof(us_urlset_t));
    if (set == NULL) {
        return NULL;
    }

    set->limit = limit ? limit : SIZE_MAX;
    set->urls = us_lineset_create(limit, counting);
    set->sites = us_lineset_create(limit, 1);

    if (set->urls == NULL || set->sites == NULL) {
        us_urlset_destroy(set);
        return NULL;
    }

    return set;
}


void
us_urlset_destroy(us_urlset_t *set)
{
    if (set->urls) {
        us_lineset_destroy(set->urls);
    }

    if (set->sites) {
        us_lineset_destroy(set->sites);
    }

    free(set);
}


void
us_urlset_progress(us_urlset_t *set, double share)
{
    us_lineset_progress(set->urls, share);
}


/* both sets draw on one limit */

static void
us_urlset_share(us_urlset_t *set)
{
    size_t  urls, sites;

    urls = us_lineset_memory(set->urls);
    sites = us_lineset_memory(set->sites);

    set->urls->limit = set->limit > sites ? set->limit - sites : 0;
    set->sites->limit = set->limit > urls ? set->limit - urls : 0;
}


/* spells the site as its first URL does, which may be this one; 0 or -1 */

static int
us_urlset_spell(us_urlset_t *set, us_store_item_t *item)
{
    uint8_t       *p;
    uint32_t       www;
    uint64_t       h, *cell;
    us_str_t       site;
    us_lineset_t  *sites;

    sites = set->sites;
    site = us_site(item->rest);
    www = item->spelling & US_SPELLING_WWW;

    /* in place of a count there is whether the site has a "www." */

    h = us_hash(sites->key, 0, site.data, site.len);
    p = us_lineset_find(sites, site, h, &cell);

    if (p) {
        memcpy(&www, p, sites->count_len);

    } else {
        if (us_lineset_reserve(sites, 1, site.len) == -1) {
            return -1;
        }

        /* the cells may have been moved */

        (void) us_lineset_find(sites, site, h, &cell);

        *cell = us_lineset_cell(h, us_lineset_append(sites, site));
        memcpy(sites->text + us_lineset_offset(*cell), &www,
               sites->count_len);
    }

    item->spelling = (item->spelling & ~US_SPELLING_WWW) | www;

    return 0;
}


size_t
us_urlset_add(us_urlset_t *set, us_store_item_t *items, size_t n)
{
    size_t    i, m, done, added;
    uint8_t  *key, answers[US_URLSET_GROUP];
    us_str_t  keys[US_URLSET_GROUP];

    for (done = 0; done < n; done += m, items += m) {
        m = n - done < US_URLSET_GROUP ? n - done : US_URLSET_GROUP;

        for (i = 0; i < m; i++) {
            us_store_item_split(&items[i]);

            key = (uint8_t *) items[i].rest.data - 1;
            *key = items[i].spelling & US_SPELLING_HTTPS ? 's' : 'h';

            keys[i].data = key;
            keys[i].len = items[i].rest.len + 1;
        }

        us_urlset_share(set);

        added = us_lineset_add(set->urls, keys, m, answers);

        us_urlset_share(set);

        for (i = 0; i < added; i++) {
            items[i].status = answers[i] ? US_NEW : US_SEEN;

            if (answers[i] && us_urlset_spell(set, &items[i]) == -1) {
                return done + i;
            }
        }

        if (added < m) {
            return done + added;
        }
    }

    return n;
}


int
us_urlset_walk(us_urlset_t *set, size_t *pos, us_store_item_t *item,
    uint32_t *count)
{
    us_str_t  key;

    if (!us_lineset_walk(set->urls, pos, &key, count)) {
        return 0;
    }

    item->spelling = key.data[0] == 's' ? US_SPELLING_HTTPS : 0;
    item->rest.data = key.data + 1;
    item->rest.len = key.len - 1;

    /* its site is known: this needs no memory */

    return us_urlset_spell(set, item) == 0;
}
