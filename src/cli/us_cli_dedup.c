
/*
 * urlstore dedup [-q] [--count] [--ids] [--filter N,RATE] [--normalize P]
 *                [--follow DIR] [--memory SIZE] [FILE...]
 *
 * Prints each line the first time it comes, in order.
 *
 *     without --normalize   lines are bytes; the answer is that of
 *                           awk '!seen[$0]++'                  (us_lineset)
 *     --normalize P         lines are URLs, taken as a zone with profile=P
 *                           and www=first takes them: printed canonical, and
 *                           one for both spellings of a site
 *     --filter N,RATE       either, approximately: up to N lines, of which
 *                           RATE may be missing                 (us_filter)
 *
 * Lines go through in groups, so that their cache misses overlap.
 */


#include "us_cli.h"
#include "us_files.h"
#include "../filter/us_filter.h"
#include "../store/us_sites.h"
#include "../store/us_store.h"
#include "../url/us_normalize.h"
#include "../us_hash.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_DEDUP_OUT   (1 << 20)
#define US_DEDUP_ROOM  (US_URL_MAX + 64)


static volatile sig_atomic_t  us_dedup_stop;


static void
us_dedup_signal(int signo)
{
    us_dedup_stop = 1;
}


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

#define US_LINESET_CELLS  (1 << 16)
#define US_LINESET_TEXT   (4 << 20)
#define US_LINESET_TEXTS  ((uint64_t) 1 << 40)
#define US_LINESET_GROUP  32
#define US_LINESET_TAG    40


typedef struct us_lineset_s  us_lineset_t;

struct us_lineset_s {
    uint8_t       *text;
    size_t         used;
    size_t         size;

    uint64_t      *cells;
    size_t         mask;

    uint64_t       lines;
    double         share;             /* of the input that is in, or 0 */
    size_t         limit;
    us_lineset_t  *beside;            /* draws on the same limit, or NULL */
    size_t         count_len;         /* 4 if counting */
    uint8_t        key[16];
};


/* only what is used of it takes memory: a filter may be larger than that */

static void *
us_lineset_map(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}


/*
 * limit: bytes that it, and the one beside it, may take, 0: no limit.
 * counting: keeps how often each line came.  NULL: out of memory.  It is freed
 * with the process.
 */

static us_lineset_t *
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

    return set->text && set->cells && getrandom(set->key, 16, 0) == 16
           ? set : NULL;
}


static size_t
us_lineset_memory(const us_lineset_t *set)
{
    return set->used + (set->mask + 1) * sizeof(uint64_t)
           + (set->beside ? set->beside->used + (set->beside->mask + 1)
                                               * sizeof(uint64_t) : 0);
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


/*
 * The lines in order: *pos is 0 first, then what the last call left there.
 * Returns 0 after the last one.  *count is 1 without counting.
 */

static int
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


static int
us_lineset_grow_cells(us_lineset_t *set)
{
    size_t     mask, has, i, k, n, pos, offset[US_LINESET_GROUP];
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

    has = us_lineset_memory(set);

    while (mask > 2 * set->mask + 1
           && has + (mask + 1) * sizeof(uint64_t) > set->limit)
    {
        mask /= 2;
    }

    if (has + (mask + 1) * sizeof(uint64_t) > set->limit) {
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


/*
 * Adds; answers[i] is 1 if lines[i] was new.  Returns n, or fewer if there was
 * no memory for the next one (errno ENOMEM, or ENOSPC for the limit).
 */

static size_t
us_lineset_add(us_lineset_t *set, const us_str_t *lines, size_t n,
    uint8_t *answers)
{
    size_t    i, m, done, bytes;
    uint8_t  *p;
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
 * The files of a directory as they are finished.
 *
 * A file is finished when its writer has closed it or moved it into the
 * directory (inotify reports both, and keeps the events while a file is read).
 * A file that was there before is finished when it has not changed for two
 * seconds.  Names that begin with '.' or end with .tmp or .part are left to
 * their writers.
 *
 * Each version of a file is read once: its name, inode, size and time of change
 * are remembered.  A file that grows after it was read, and is closed again, is
 * read again.
 */

#define US_FOLLOW_QUIET  2            /* seconds */


typedef struct {
    const char     *dir;
    int             fd;
    us_files_t     *files;
    us_lineset_t   *known;
    unsigned        scan:1;           /* it may have more than was read */
} us_follow_t;


/*
 * Reads a file unless this version of it was read, or it was changed after
 * `latest`; an exit code.
 */

static int
us_follow_read(us_follow_t *f, const char *name, time_t latest)
{
    int          n;
    char         path[PATH_MAX], text[NAME_MAX + 128];
    size_t       len;
    uint8_t      fresh;
    us_str_t     key;
    struct stat  st;

    len = strlen(name);
    n = snprintf(path, sizeof(path), "%s/%s", f->dir, name);

    if (name[0] == '.' || (len > 4 && strcmp(name + len - 4, ".tmp") == 0)
        || (len > 5 && strcmp(name + len - 5, ".part") == 0)
        || (size_t) n >= sizeof(path) || stat(path, &st) == -1
        || !S_ISREG(st.st_mode))
    {
        return US_CLI_DONE;
    }

    if (st.st_mtime > latest) {
        f->scan = 1;
        return US_CLI_DONE;
    }

    key.data = (uint8_t *) text;
    key.len = snprintf(text, sizeof(text), "%ju %jd %jd.%09ld %s",
                       (uintmax_t) st.st_ino, (intmax_t) st.st_size,
                       (intmax_t) st.st_mtim.tv_sec, st.st_mtim.tv_nsec, name);

    return us_lineset_add(f->known, &key, 1, &fresh) == 1 && fresh
           ? us_files_one(f->files, path) : US_CLI_DONE;
}


/* reads, by name, the files that nobody has changed lately; an exit code */

static int
us_follow_scan(us_follow_t *f)
{
    int              i, n, rc;
    time_t           latest;
    struct dirent  **names;

    n = scandir(f->dir, &names, NULL, alphasort);

    if (n == -1) {
        return us_cli_fail("cannot read %s: %s", f->dir, strerror(errno));
    }

    f->scan = 0;
    latest = time(NULL) - US_FOLLOW_QUIET;
    rc = US_CLI_DONE;

    for (i = 0; i < n; i++) {
        if (rc == US_CLI_DONE && !us_dedup_stop) {
            rc = us_follow_read(f, names[i]->d_name, latest);
        }

        free(names[i]);
    }

    free(names);

    return rc;
}


/* reads the files of the events that there are; an exit code */

static int
us_follow_events(us_follow_t *f)
{
    int                          rc;
    char                        *p, buf[8192] __attribute__((aligned(8)));
    ssize_t                      n;
    const struct inotify_event  *e;

    n = read(f->fd, buf, sizeof(buf));

    if (n == -1) {
        return us_cli_fail("inotify: %s", strerror(errno));
    }

    rc = US_CLI_DONE;

    for (p = buf;
         p < buf + n && rc == US_CLI_DONE && !us_dedup_stop;
         p += sizeof(*e) + e->len)
    {
        e = (const struct inotify_event *) p;

        if (e->mask & IN_Q_OVERFLOW) {
            f->scan = 1;

        } else if (e->mask & IN_IGNORED) {
            rc = us_cli_fail("%s is gone", f->dir);

        } else if (e->len) {
            rc = us_follow_read(f, e->name, INT64_MAX);
        }
    }

    return rc;
}


/* reads the files as they are finished, until a signal comes; an exit code */

static int
us_follow_run(const char *dir, us_files_t *files)
{
    int               rc;
    us_follow_t       f;
    struct pollfd     p;
    struct sigaction  sa;

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = us_dedup_signal;
    sa.sa_flags = SA_RESTART;
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);

    f.dir = dir;
    f.fd = inotify_init1(IN_CLOEXEC);
    f.files = files;
    f.known = us_lineset_create(0, 0);

    rc = f.fd == -1 || f.known == NULL
         || inotify_add_watch(f.fd, dir, IN_CLOSE_WRITE|IN_MOVED_TO|IN_ONLYDIR)
            == -1
         ? us_cli_fail("cannot follow %s: %s", dir, strerror(errno))
         : us_follow_scan(&f);

    p.fd = f.fd;
    p.events = POLLIN;

    while (rc == US_CLI_DONE && !us_dedup_stop) {

        if (poll(&p, 1, f.scan ? 500 : 60000) > 0) {
            rc = us_follow_events(&f);
        }

        if (rc == US_CLI_DONE && f.scan) {
            rc = us_follow_scan(&f);
        }
    }

    return rc;
}


typedef struct {
    us_lineset_t    *set;             /* or the filter */
    us_lineset_t    *sites;           /* beside a set of URLs */
    us_filter_t     *filter;
    void            *mem;             /* of the filter */

    us_norm_t       *norm;
    us_norm_ws_t    *ws;

    int              quiet;
    int              count;
    int              ids;
    int              profile;         /* -1: lines as they are */
    const char      *follow;
    size_t           memory;
    us_filter_plan_t plan;

    uint64_t         lines;
    uint64_t         fresh;
    uint64_t         refused[US_URL_BUDGET + 1];

    us_files_t       files;
} us_dedup_t;


static us_dedup_t  us_dedup = { .profile = -1 };


/* writes a line; number goes before it with --ids or --count */

static void
us_dedup_print(us_dedup_t *d, us_str_t line, uint64_t number)
{
    if (d->ids || d->count) {
        printf("%" PRIu64 "\t", number);
    }

    (void) fwrite_unlocked(line.data, 1, line.len, stdout);
    (void) putchar_unlocked('\n');
}


static void
us_dedup_print_url(us_dedup_t *d, const us_store_item_t *item, uint64_t number)
{
    uint8_t   url[US_DEDUP_ROOM];
    us_str_t  line;

    line.data = url;
    line.len = us_store_item_url(item, url);

    us_dedup_print(d, line, number);
}


/*
 * URLs are two sets of lines:
 *
 *     set      'h' or 's', rest     rest: the URL from its host on, less a
 *                                   mergeable "www."
 *     sites    host[:port]          with a number: whether it has a "www."
 *
 * Whether "www." is mergeable depends on the host without it, so all URLs with
 * one rest agree on it, and the number of a site suffices to write its URLs.
 *
 * The letter of the scheme overwrites the byte before rest, which is the last
 * byte of "//" or of "www.".
 */


/* spells the site as its first URL does, which may be this one; 0 or -1 */

static int
us_dedup_spell(us_lineset_t *sites, us_store_item_t *item)
{
    uint8_t   *p;
    uint32_t   www;
    uint64_t   h, *cell;
    us_str_t   site;

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


/*
 * As us_lineset_add(), of items of which the caller has filled url and merge;
 * the texts are scratch from then on.  The new ones get their spelling, for
 * us_store_item_url().
 */

static size_t
us_dedup_add_urls(us_dedup_t *d, us_store_item_t *items, size_t n,
    uint8_t *answers)
{
    size_t    i, added;
    uint8_t  *key;
    us_str_t  keys[US_FILES_GROUP];

    for (i = 0; i < n; i++) {
        us_store_item_split(&items[i]);

        key = (uint8_t *) items[i].rest.data - 1;
        *key = items[i].spelling & US_SPELLING_HTTPS ? 's' : 'h';
        keys[i] = (us_str_t) { items[i].rest.len + 1, key };
    }

    added = us_lineset_add(d->set, keys, n, answers);

    for (i = 0; i < added; i++) {
        if (answers[i] && us_dedup_spell(d->sites, &items[i]) == -1) {
            return i;
        }
    }

    return added;
}


/* a group of lines */

static int
us_dedup_take(void *data, us_str_t *lines, size_t n)
{
    us_dedup_t *d = data;

    size_t            i, m, done;
    uint8_t           answers[US_FILES_GROUP];
    uint64_t          hashes[US_FILES_GROUP];
    us_files_urls_t  *urls;
    us_store_item_t  *items;

    m = n;
    items = NULL;

    if (d->norm) {
        urls = us_files_normalize(d->norm, d->ws, lines, n);
        items = urls->items;
        m = urls->n;

        for (i = 0; i < n; i++) {
            d->refused[urls->verdicts[i]] += (urls->verdicts[i] != US_URL_OK);
        }

        for (i = 0; i < m; i++) {
            lines[i] = items[i].url;
        }
    }

    d->lines += n - m;

    if (d->filter) {
        for (i = 0; i < m; i++) {

            if (items == NULL) {
                hashes[i] = us_filter_hash(d->filter, 0, lines[i]);
                continue;
            }

            us_store_item_split(&items[i]);
            hashes[i] = us_filter_hash(d->filter,
                                       items[i].spelling & US_SPELLING_HTTPS,
                                       items[i].rest);
        }

        us_filter_add_many(d->filter, hashes, m, answers);
        done = m;

    } else if (d->sites) {
        done = us_dedup_add_urls(d, items, m, answers);

    } else {
        done = us_lineset_add(d->set, lines, m, answers);
    }

    for (i = 0; i < done; i++) {

        if (answers[i] && !d->count && d->sites) {
            us_dedup_print_url(d, &items[i], d->fresh);

        } else if (answers[i] && !d->count) {
            us_dedup_print(d, lines[i], d->fresh);
        }

        d->fresh += answers[i];
    }

    d->lines += done;

    if (done == m) {
        return us_cli_output();
    }

    if (errno != ENOSPC) {
        return us_cli_fail("out of memory after %llu lines",
                           (unsigned long long) d->lines);
    }

    (void) fflush(stdout);

    return us_cli_fail("%llu MB of memory are full after %llu lines, %llu of "
                       "them different; the rest was not read: give more with "
                       "--memory, or use --filter",
                       (unsigned long long) d->memory >> 20,
                       (unsigned long long) d->lines,
                       (unsigned long long) d->fresh);
}


/*
 * Returns 0, or an exit code after a message.  Takes the options in d, the rest
 * of which is zero.
 */

static int
us_dedup_open(us_dedup_t *d)
{
    int          ready;
    uint8_t      key[16];
    static char  out[US_DEDUP_OUT];

    if (us_files_init(&d->files) != US_CLI_DONE) {
        return US_CLI_USAGE;
    }

    if (d->memory && d->memory < d->plan.size) {
        return us_cli_fail("this filter needs %zu MB",
                           (d->plan.size >> 20) + 1);
    }

    (void) setvbuf(stdout, out, _IOFBF, sizeof(out));
    ready = 1;

    if (d->profile != -1) {
        d->norm = us_norm_create(d->profile);
        d->ws = d->norm ? us_norm_ws_create(d->norm) : NULL;
        ready = d->ws != NULL;
    }

    if (d->plan.size) {
        d->mem = us_lineset_map(d->plan.size);
        ready &= d->mem && getrandom(key, 16, 0) == 16;

    } else {
        d->set = us_lineset_create(d->memory, d->count);
        d->sites = d->norm ? us_lineset_create(d->memory, 1) : NULL;
        ready &= d->set && (d->sites || d->norm == NULL);
    }

    if (ready && d->sites) {
        d->set->beside = d->sites;
        d->sites->beside = d->set;
    }

    if (!ready) {
        return us_cli_fail("out of memory");
    }

    if (d->mem) {
        (void) madvise(d->mem, d->plan.size, MADV_HUGEPAGE);
        d->filter = us_filter_format(d->mem, &d->plan, key, us_string(""));
    }

    return 0;
}


static int
us_dedup_filter_option(const us_cli_option_t *o, void *value, const char *arg)
{
    char    *end;
    double   capacity, rate;

    capacity = us_cli_count(arg, &end);

    if (*end == ',' && capacity) {
        rate = strtod(end + 1, &end);

        if (*end == '\0'
            && us_filter_plan((uint64_t) capacity, rate, 0, value) == 0)
        {
            return 0;
        }
    }

    (void) us_cli_fail("--filter \"%s\" is not N,RATE: a number of lines up to "
                       "1e12, and an error between %g and %g, such as "
                       "50M,0.001", arg, US_FILTER_ERROR_MIN,
                       US_FILTER_ERROR_MAX);

    return -1;
}


static int
us_dedup_memory_option(const us_cli_option_t *o, void *value, const char *arg)
{
    return us_cli_size(o, value, arg, 1 << 20);
}


static const us_cli_option_t  us_dedup_list[] = {
    { 'q', "quiet", NULL, "Print no progress, and no reasons for refused "
      "lines.",
      NULL, offsetof(us_dedup_t, quiet) },
    { 'c', "count", NULL, "Print each line once, at the end, after the number "
      "of times that it came and a tab.",
      NULL, offsetof(us_dedup_t, count) },
    { 'i', "ids", NULL, "Print before each line its number, from 0, and a "
      "tab.",
      NULL, offsetof(us_dedup_t, ids) },
    { 'f', "filter", "N,RATE", "Approximately, in a fixed amount of memory: "
      "up to N lines (50M), of which RATE (0.001) may be missing.",
      us_dedup_filter_option, offsetof(us_dedup_t, plan) },
    { 'n', "normalize", "P", "Lines are URLs: print them canonical, by the "
      "rules of profile P, once for both spellings of a site (www.).",
      us_cli_profile, offsetof(us_dedup_t, profile) },
    { 'F', "follow", "DIR", "Read the files of DIR as they are finished, "
      "until a signal comes.",
      us_cli_text, offsetof(us_dedup_t, follow) },
    { 'm', "memory", "SIZE", "Use at most SIZE (64k, 512M, 4G) for the "
      "lines.",
      us_dedup_memory_option, offsetof(us_dedup_t, memory) },
    { .name = NULL }
};


/* the set chooses its next size by the share that was read */

static void
us_dedup_progress(void *data, double share)
{
    us_dedup_t *d = data;

    if (d->set) {
        d->set->share = share;
    }
}


static int
us_dedup_run(const us_cli_command_t *c, int n, char **args)
{
    us_dedup_t *d = c->own;

    int               rc, code;
    size_t            pos;
    unsigned          i;
    us_str_t          line;
    uint32_t          count;
    us_store_item_t   item;
    us_filter_info_t  info;

    if (d->count && (d->ids || d->plan.size)) {
        return us_cli_fail("--count does not go with --ids or --filter");
    }

    if (d->ids && d->plan.size) {
        return us_cli_fail("--ids does not go with --filter");
    }

    if (d->follow && n) {
        return us_cli_fail("files do not go with --follow");
    }

    d->files.take = us_dedup_take;
    d->files.flush = us_cli_flush;
    d->files.share = us_dedup_progress;
    d->files.data = d;
    d->files.fresh = &d->fresh;
    d->files.progress = !d->quiet;
    d->files.urls = d->profile != -1;

    rc = us_dedup_open(d);

    if (rc == US_CLI_DONE && d->follow) {
        rc = us_follow_run(d->follow, &d->files);

    } else if (rc == US_CLI_DONE) {
        rc = us_files_run(&d->files, n, args);
    }

    /* the lines with their counts, after all input was read */

    pos = 0;

    while (rc == 0 && d->count
           && us_lineset_walk(d->set, &pos, &line, &count))
    {
        if (d->sites == NULL) {
            us_dedup_print(d, line, count);
            continue;
        }

        item.spelling = *line.data == 's' ? US_SPELLING_HTTPS : 0;
        item.rest = (us_str_t) { line.len - 1, line.data + 1 };

        /* its site is known: this needs no memory */

        (void) us_dedup_spell(d->sites, &item);
        us_dedup_print_url(d, &item, count);
    }

    rc = rc ? rc : us_cli_flush(NULL);

    us_files_end(&d->files);

    /* what was left out, and why */

    code = us_files_code(&d->files);

    for (i = 0; i < sizeof(d->refused) / sizeof(d->refused[0]); i++) {
        if (d->refused[i]) {
            code = code ? code : US_CLI_REFUSED;

            if (!d->quiet) {
                fprintf(stderr, "urlstore: %llu lines refused: %s\n",
                        (unsigned long long) d->refused[i],
                        us_verdict_name(i));
            }
        }
    }

    if (d->filter) {
        us_filter_info(d->filter, &info);

        if (info.urls > info.capacity) {
            code = code ? code : US_CLI_REFUSED;
            fprintf(stderr, "urlstore: the filter was made for %llu lines "
                    "and got %llu: its error has grown from %g to %.2g\n",
                    (unsigned long long) info.capacity,
                    (unsigned long long) info.urls, info.error,
                    info.expected);
        }
    }

    return rc ? rc : code;
}


const us_cli_command_t  us_cli_dedup = {
    .name = "dedup",
    .run = us_dedup_run,
    .args = "[FILE...]",
    .summary = "print each line the first time it comes",
    .text =
        "Prints the different lines of files, or of standard input (\"-\"), "
        "in their order. Files packed by gzip, xz or zstd are unpacked by "
        "these programs. On a terminal it shows the progress.",
    .options = us_dedup_list,
    .own = &us_dedup,
    .exits =
        " 0   all was done\n"
        " 1   lines were refused, too long, or more than the filter was made "
        "for\n"
        " 2   wrong usage, some input or the output failed, no memory"
};
