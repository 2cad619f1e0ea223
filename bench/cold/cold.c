
/*
 * A store that is larger than memory: what a page of the log that is not there
 * costs.  For bench/cold/run.pl.
 *
 *     cold make FILE N < URLS      fills a store for N URLs, writes it to FILE
 *     cold disk FILE               how long it takes to read a page of it
 *     cold HOW SHARE DIR FILE PAGES NAME
 *                                  a stream of links: prints a line of figures
 *
 * FILE is the zone as it is in memory, with holes where it is empty.  Nothing
 * of the store's code knows of it.  The log grows upwards and everything else
 * downwards (us_arena.h), so that one range of addresses has all records:
 *
 *     header, ring | log: FILE, mapped      |  free  | chunks of the index, ...
 *     memory       | but for the last page  | memory | memory
 *
 * The records behind that range are read from FILE by the kernel when they are
 * touched, which is what sealed chunks of the log in files would do; what is
 * added goes to memory.
 *
 * HOW is one of
 *
 *     memory      nothing is mapped: the store as it ships
 *     kernel      the kernel reads around each page that is missing
 *     fault       it reads that page only
 *     group       the same, but the pages of the records that a batch of links
 *                 needs are asked for before it is looked up: of all candidates
 *                 at once, then of all records to which those refer, and so on
 *
 * and the cgroup DIR limits the memory of this process: what it has besides the
 * store, and SHARE percent of that.  Its own tables grow with the first
 * batches, so the limit is set after half of the US_COLD_WARM ones that do not
 * count; the others fill the memory that is left to the log.  A stream is cut
 * off after some time, and killed by SIGALRM if a batch takes much longer.
 *
 * PAGES has the links: batches end with an empty line.  They are added, and
 * known; a line before a batch says that it is new: `+`, or that it is new and
 * looked up: `?`.  Any other answer is an error.
 *
 * Exit code: 0, or 2 after a message.
 */


#define _GNU_SOURCE

#include "store/us_store_private.h"
#include "codec/us_record_private.h"
#include "url/us_normalize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>


#define US_COLD_WARM    100           /* batches */
#define US_COLD_TIME    15            /* s, of a stream; it is cut off then */
#define US_COLD_MOST    1024          /* links of one */
#define US_COLD_PAGE    4096
#define US_COLD_READS   1000
#define US_COLD_HOT     (16 << 20)    /* as of a worker */

/* of the zone: for a URL, and besides */
#define US_COLD_EACH    40
#define US_COLD_ROOM    (256 << 20)

/* what new URLs may take, and the kernel for its tables */
#define US_COLD_SLACK   (4 << 20)


typedef enum {
    US_COLD_MEMORY = 0,
    US_COLD_KERNEL,
    US_COLD_FAULT,
    US_COLD_GROUP
} us_cold_how_t;


static const char  *us_cold_hows[] = { "memory", "kernel", "fault", "group" };


typedef struct {
    us_norm_t         *norm;
    us_norm_ws_t      *ws;
    char              *line;
    size_t             line_size;

    us_store_item_t    items[US_COLD_MOST];
    uint8_t           *texts[US_COLD_MOST];
} us_cold_reader_t;


/* while the store's lock is held */

typedef struct {
    double             since;
    double             longest;       /* s */
    long               before;
    long               faults;
} us_cold_held_t;


typedef struct {
    us_store_t        *store;
    us_cold_held_t     held;
    us_cold_how_t      how;
    const char        *group;         /* that limits, to so many bytes */
    uint64_t           log_share;     /* of the log */
    uint8_t           *low;           /* the part that is mapped */
    uint8_t           *high;
    int                pidfd;

    /* of a group that is asked for */

    uint64_t           ids[US_COLD_MOST * US_PROBE_SLOTS];
    unsigned           nids;
    uintptr_t          pages[2 * US_COLD_MOST * US_PROBE_SLOTS];
    unsigned           npages;
} us_cold_t;


static void __attribute__((noreturn, format(printf, 1, 2)))
us_cold_die(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    fprintf(stderr, "cold: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);

    exit(2);
}


static double
us_cold_time(clockid_t clock)
{
    struct timespec  ts;

    clock_gettime(clock, &ts);

    return ts.tv_sec + ts.tv_nsec / 1e9;
}


static long
us_cold_faults(void)
{
    struct rusage  u;

    getrusage(RUSAGE_SELF, &u);

    return u.ru_majflt;
}


static void
us_cold_lock(void *data)
{
    us_cold_held_t  *held = data;

    held->before = us_cold_faults();
    held->since = us_cold_time(CLOCK_MONOTONIC);
}


static void
us_cold_unlock(void *data)
{
    double           t;
    us_cold_held_t  *held = data;

    t = us_cold_time(CLOCK_MONOTONIC) - held->since;
    held->longest = t > held->longest ? t : held->longest;
    held->faults += us_cold_faults() - held->before;
}


static us_store_t *
us_cold_open(void *mem, us_cold_held_t *held)
{
    us_store_t       *s;
    us_store_lock_t   lock = { us_cold_lock, us_cold_unlock, held };

    s = us_store_open(mem, &lock);

    if (s == NULL) {
        us_cold_die("no store: %s", strerror(errno));
    }

    return s;
}


static void *
us_cold_map(size_t size)
{
    void  *mem;

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_ANONYMOUS|MAP_PRIVATE|MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED) {
        us_cold_die("mmap(%zu): %s", size, strerror(errno));
    }

    return mem;
}


/* --- links --------------------------------------------------------------- */


static void
us_cold_reader_init(us_cold_reader_t *r)
{
    memset(r, 0, sizeof(us_cold_reader_t));
    r->norm = us_norm_create(US_PROFILE_CRAWLER);
    r->ws = r->norm ? us_norm_ws_create(r->norm) : NULL;

    if (r->ws == NULL) {
        us_cold_die("no normalizer");
    }
}


/*
 * Reads links until a line is empty, or there are `most`; their canonical URLs
 * are valid until the next call.  Returns how many there are; 0: the end.
 * *status is what they should be.
 */

static unsigned
us_cold_read(us_cold_reader_t *r, FILE *in, unsigned most,
    us_store_status_t *status)
{
    ssize_t            len;
    unsigned           n;
    us_str_t           text;
    us_canon_t         canon;
    us_store_item_t   *item;

    n = 0;
    *status = US_SEEN;

    while (n < most && (len = getline(&r->line, &r->line_size, in)) > 0) {

        if (strcmp(r->line, "\n") == 0) {

            if (n) {
                break;
            }

            continue;
        }

        if (strcmp(r->line, "?\n") == 0) {
            *status = US_UNSEEN;
            continue;
        }

        if (strcmp(r->line, "+\n") == 0) {
            *status = US_NEW;
            continue;
        }

        text.data = (uint8_t *) r->line;
        text.len = r->line[len - 1] == '\n' ? len - 1 : len;

        if (us_normalize(r->norm, r->ws, text, NULL, &canon) != US_URL_OK) {
            continue;
        }

        item = &r->items[n];
        memset(item, 0, sizeof(us_store_item_t));

        free(r->texts[n]);
        r->texts[n] = malloc(canon.url.href.len);

        if (r->texts[n] == NULL) {
            us_cold_die("out of memory");
        }

        memcpy(r->texts[n], canon.url.href.data, canon.url.href.len);
        item->url.data = r->texts[n];
        item->url.len = canon.url.href.len;
        item->merge = canon.merge;
        n++;
    }

    return n;
}


/* --- the store in a file ------------------------------------------------- */


static void
us_cold_write(int fd, const uint8_t *mem, uint64_t from, uint64_t to)
{
    ssize_t  n;

    while (from < to) {
        n = pwrite(fd, mem + from, to - from < 1 << 24 ? to - from : 1 << 24,
                   from);

        if (n <= 0) {
            us_cold_die("pwrite(): %s", strerror(errno));
        }

        from += n;
    }
}


static uint64_t
us_cold_chunks(const us_head_t *h)
{
    return h->chunks_low << h->chunk_shift;
}


static void
us_cold_make(const char *file, uint64_t urls)
{
    int                fd;
    size_t             size;
    unsigned           n, i;
    uint8_t           *mem;
    uint64_t           full;
    us_head_t         *h;
    us_store_t        *s;
    us_cold_held_t     held;
    us_store_conf_t    conf;
    us_cold_reader_t   r;
    us_store_status_t  status;

    size = urls * US_COLD_EACH + US_COLD_ROOM;
    mem = us_cold_map(size);

    (void) madvise(mem, size, MADV_HUGEPAGE);

    memset(&conf, 0, sizeof(us_store_conf_t));
    memcpy(conf.hash_key, "bench bench bench", sizeof(conf.hash_key));

    if (us_store_format(mem, size, &conf) != 0) {
        us_cold_die("no store in %zu bytes", size);
    }

    memset(&held, 0, sizeof(us_cold_held_t));
    s = us_cold_open(mem, &held);
    full = 0;
    us_cold_reader_init(&r);

    while ((n = us_cold_read(&r, stdin, US_STORE_GROUP, &status)) > 0) {
        us_store_add(s, r.items, n);

        for (i = 0; i < n; i++) {
            full += r.items[i].status == US_FULL;
        }

        if (us_store_train_due(s)) {
            us_store_train(s, NULL);
        }
    }

    if (full) {
        us_cold_die("the zone is full");
    }

    h = (us_head_t *) mem;

    fd = open(file, O_CREAT|O_TRUNC|O_RDWR, 0600);

    if (fd == -1 || ftruncate(fd, size) == -1) {
        us_cold_die("%s: %s", file, strerror(errno));
    }

    us_cold_write(fd, mem, 0, (h->log_end + 1) / 2);
    us_cold_write(fd, mem, us_cold_chunks(h), size);

    if (fsync(fd) == -1) {
        us_cold_die("fsync(%s): %s", file, strerror(errno));
    }

    printf("%" PRIu64 " URLs, %.2f bytes each: log %.2f, all else %.2f\n",
           h->next_id,
           (double) (h->log_end / 2 + size - us_cold_chunks(h)) / h->next_id,
           (double) (h->log_end / 2 - h->log) / h->next_id,
           (double) (size - us_cold_chunks(h) + h->log) / h->next_id);
}


static void
us_cold_fill(int fd, uint8_t *mem, uint64_t from, uint64_t to)
{
    ssize_t  n;

    while (from < to) {
        n = pread(fd, mem + from, to - from < 1 << 24 ? to - from : 1 << 24,
                  from);

        if (n <= 0) {
            us_cold_die("pread(): %s", n ? strerror(errno) : "a short file");
        }

        from += n;
    }
}


/* the store of a file; returns the bytes that it has in all */

static uint64_t
us_cold_load(us_cold_t *c, const char *file)
{
    int           fd;
    void         *p;
    uint8_t      *mem;
    us_hot_t     *hot;
    uint64_t      low, high, size;
    us_head_t    *h;
    struct stat   st;

    fd = open(file, O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1) {
        us_cold_die("%s: %s", file, strerror(errno));
    }

    size = st.st_size;
    mem = us_cold_map(size);
    h = (us_head_t *) mem;
    us_cold_fill(fd, mem, 0, sizeof(us_head_t));

    low = (h->log + US_COLD_PAGE - 1) / US_COLD_PAGE * US_COLD_PAGE;
    high = h->log_end / 2 / US_COLD_PAGE * US_COLD_PAGE;

    if (c->how == US_COLD_MEMORY) {
        low = high;
    }

    us_cold_fill(fd, mem, 0, low);
    us_cold_fill(fd, mem, high, (h->log_end + 1) / 2);
    us_cold_fill(fd, mem, us_cold_chunks(h), size);

    /* what is left in the page cache would be read for nothing */

    if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
        us_cold_die("posix_fadvise(%s)", file);
    }

    if (low < high) {
        p = mmap(mem + low, high - low, PROT_READ, MAP_SHARED|MAP_FIXED, fd,
                 low);

        if (p == MAP_FAILED
            || madvise(p, high - low, c->how == US_COLD_KERNEL
                       ? MADV_NORMAL : MADV_RANDOM) == -1)
        {
            us_cold_die("mmap(%s): %s", file, strerror(errno));
        }
    }

    close(fd);

    c->low = mem + low;
    c->high = mem + high;
    c->store = us_cold_open(mem, &c->held);

    /* all of the table's memory is taken at once */

    hot = us_hot_create(US_COLD_HOT);

    if (hot == NULL) {
        us_cold_die("no hot table");
    }

    us_hot_wipe(hot);
    us_store_hot(c->store, hot, NULL);

    return h->log_end / 2 + size - us_cold_chunks(h);
}


/* --- limited memory ------------------------------------------------------ */


static FILE *
us_cold_file(const char *dir, const char *mode, const char *v1, const char *v2)
{
    char   path[4096];
    FILE  *f;

    snprintf(path, sizeof(path), "%s/%s", dir, v2);
    f = fopen(path, mode);

    if (f == NULL) {
        snprintf(path, sizeof(path), "%s/%s", dir, v1);
        f = fopen(path, mode);
    }

    if (f == NULL) {
        us_cold_die("%s: %s", path, strerror(errno));
    }

    return f;
}


/* the process becomes one of the group */

static void
us_cold_join(const char *dir)
{
    FILE  *f;

    f = us_cold_file(dir, "w", "cgroup.procs", "cgroup.procs");

    if (fprintf(f, "%d\n", getpid()) < 0 || fclose(f) != 0) {
        us_cold_die("%s: %s", dir, strerror(errno));
    }
}


/* bytes of pages of files */

static uint64_t
us_cold_cached(const char *dir)
{
    char       name[64];
    FILE      *f;
    uint64_t   n;

    f = us_cold_file(dir, "r", "memory.stat", "memory.stat");

    while (fscanf(f, "%63s %" SCNu64, name, &n) == 2) {

        if (strcmp(name, "cache") == 0 || strcmp(name, "file") == 0) {
            fclose(f);
            return n;
        }
    }

    us_cold_die("%s/memory.stat: no pages of files", dir);
}


/* the group has what is in memory besides files, and its share of the log */

static void
us_cold_limit(const us_cold_t *c)
{
    FILE      *f;
    uint64_t   now;

    f = us_cold_file(c->group, "r", "memory.usage_in_bytes", "memory.current");

    if (fscanf(f, "%" SCNu64, &now) != 1) {
        us_cold_die("%s: no usage", c->group);
    }

    fclose(f);

    now += c->log_share + US_COLD_SLACK - us_cold_cached(c->group);

    f = us_cold_file(c->group, "w", "memory.limit_in_bytes", "memory.max");

    if (fprintf(f, "%" PRIu64 "\n", now) < 0 || fclose(f) != 0) {
        us_cold_die("%s: no limit: %s", c->group, strerror(errno));
    }
}


/* --- pages that are asked for -------------------------------------------- */


static int
us_cold_compare(const void *a, const void *b)
{
    uintptr_t  x = *(const uintptr_t *) a, y = *(const uintptr_t *) b;

    return (x > y) - (x < y);
}


/* asks for the pages of all records, by one call */

static void
us_cold_ask(us_cold_t *c)
{
    unsigned       i, n;
    uint64_t       last;
    us_bits_t      record;
    uintptr_t      page, end;
    struct iovec   v[IOV_MAX];

    c->npages = 0;

    for (i = 0; i < c->nids; i++) {
        (void) us_log_find(&c->store->arena, c->ids[i], &record);

        if (record.data < c->low || record.data >= c->high) {
            continue;
        }

        last = (record.bit + (uint64_t) record.units * 4) / 8;
        page = (uintptr_t) record.data & ~(uintptr_t) (US_COLD_PAGE - 1);
        end = (uintptr_t) record.data + last;

        for ( /* void */ ; page <= end && page < (uintptr_t) c->high;
              page += US_COLD_PAGE)
        {
            c->pages[c->npages++] = page;
        }
    }

    qsort(c->pages, c->npages, sizeof(uintptr_t), us_cold_compare);

    for (i = 0; i < c->npages; /* void */ ) {

        for (n = 0; n < IOV_MAX && i < c->npages; i++) {

            if (n && c->pages[i] == (uintptr_t) v[n - 1].iov_base) {
                continue;
            }

            v[n].iov_base = (void *) c->pages[i];
            v[n++].iov_len = US_COLD_PAGE;
        }

        if (syscall(SYS_process_madvise, c->pidfd, v, n, MADV_WILLNEED, 0)
            == -1)
        {
            us_cold_die("process_madvise(): %s", strerror(errno));
        }
    }
}


/*
 * The records that a batch of links needs.  A chain has US_HOPS records, and
 * where one refers to is in its bits: each step waits for the one before.
 */

static void
us_cold_group(us_cold_t *c, us_store_item_t *items, unsigned n)
{
    unsigned      i, k, hop;
    uint64_t      id, next;
    us_str_t      rest;
    us_probe_t    probe;
    us_store_t   *s;

    s = c->store;
    c->nids = 0;

    for (i = 0; i < n; i++) {
        us_store_item_split(&items[i]);
        rest = items[i].rest;

        if (!items[i].merge && us_has_www(rest)) {
            rest.data += 4;
            rest.len -= 4;
        }

        us_index_start(&s->arena, &probe,
                       us_store_hash(s, items[i].spelling, rest));

        while (us_index_next(&s->arena, &probe, &id)) {

            if (id < us_acquire(&us_head(s)->next_id)) {
                c->ids[c->nids++] = id;
            }
        }
    }

    for (hop = 0; c->nids && hop < US_HOPS; hop++) {
        us_cold_ask(c);

        for (i = 0, k = 0; i < c->nids; i++) {

            if (us_record_reference(s->codec, c->ids[i], &next)) {
                c->ids[k++] = next;
            }
        }

        c->nids = k;
    }

    us_cold_ask(c);
}


/* --- figures ------------------------------------------------------------- */


static int
us_cold_double_cmp(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


static void
us_cold_stream(us_cold_t *c, const char *share, const char *file,
    const char *name)
{
    FILE              *in;
    double             cpu, start, begin, *ms;
    size_t             links, batches, most;
    unsigned           n, i, warm;
    us_cold_reader_t   r;
    struct rusage      before, after;
    long               faults, blocks;
    us_store_status_t  status;

    in = fopen(file, "r");

    if (in == NULL) {
        us_cold_die("%s: %s", file, strerror(errno));
    }

    us_cold_reader_init(&r);
    most = 0;
    ms = NULL;
    links = 0;
    batches = 0;
    cpu = 0;
    faults = 0;
    blocks = 0;
    warm = US_COLD_WARM;

    begin = us_cold_time(CLOCK_MONOTONIC);

    while ((n = us_cold_read(&r, in, US_COLD_MOST, &status)) > 0) {

        if (warm < US_COLD_WARM / 2
            && us_cold_time(CLOCK_MONOTONIC) - begin > US_COLD_TIME)
        {

            if (batches) {
                break;
            }

            warm = 0;
        }

        if (batches == most) {
            most = most * 2 + 1024;
            ms = realloc(ms, most * sizeof(double));

            if (ms == NULL) {
                us_cold_die("out of memory");
            }
        }

        getrusage(RUSAGE_SELF, &before);
        cpu -= us_cold_time(CLOCK_THREAD_CPUTIME_ID);
        start = us_cold_time(CLOCK_MONOTONIC);

        if (c->how == US_COLD_GROUP) {
            us_cold_group(c, r.items, n);
        }

        if (status == US_UNSEEN) {
            us_store_seen(c->store, r.items, n);

        } else {
            us_store_add(c->store, r.items, n);
        }

        ms[batches] = (us_cold_time(CLOCK_MONOTONIC) - start) * 1e3;
        cpu += us_cold_time(CLOCK_THREAD_CPUTIME_ID);
        getrusage(RUSAGE_SELF, &after);

        for (i = 0; i < n; i++) {

            if (r.items[i].status != status) {
                us_cold_die("%s: status %u, not %u: %.*s", name,
                            r.items[i].status, status,
                            (int) r.items[i].url.len, r.items[i].url.data);
            }
        }

        if (warm) {

            if (warm-- == US_COLD_WARM / 2 && c->how != US_COLD_MEMORY) {
                us_cold_limit(c);
                begin = us_cold_time(CLOCK_MONOTONIC);
            }

            cpu = 0;
            memset(&c->held, 0, sizeof(us_cold_held_t));
            continue;
        }

        faults += after.ru_majflt - before.ru_majflt;
        blocks += after.ru_inblock - before.ru_inblock;
        batches++;
        links += n;
    }

    fclose(in);

    if (batches == 0) {
        us_cold_die("%s: %u batches are needed", file, US_COLD_WARM + 1);
    }

    qsort(ms, batches, sizeof(double), us_cold_double_cmp);

    printf("%-18s %-7s%4s %7zu %8.3f %8.3f %8.2f %8.3f %8.3f %8.3f %8.3f"
           " %8.3f\n", name,
           us_cold_hows[c->how], share, links, (double) faults / links,
           blocks * 512.0 / US_COLD_PAGE / links, cpu / links * 1e6,
           ms[(batches - 1) / 2], ms[(batches - 1) * 99 / 100],
           ms[batches - 1], (double) c->held.faults / links,
           c->held.longest * 1e3);

    free(ms);
}


/* the time of a read of a page at random, past all caches of this system */

static void
us_cold_disk(const char *file)
{
    int           fd;
    void         *page;
    double        us[US_COLD_READS], start;
    unsigned      i;
    uint64_t      seed, log, pages;
    us_head_t     h;

    fd = open(file, O_RDONLY);

    if (fd == -1 || pread(fd, &h, sizeof(h), 0) != sizeof(h)) {
        us_cold_die("%s: %s", file, strerror(errno));
    }

    close(fd);
    fd = open(file, O_RDONLY|O_DIRECT);

    if (fd == -1 || posix_memalign(&page, US_COLD_PAGE, US_COLD_PAGE) != 0) {
        us_cold_die("%s: %s", file, strerror(errno));
    }

    seed = 1;
    log = h.log / US_COLD_PAGE;
    pages = h.log_end / 2 / US_COLD_PAGE - log;

    for (i = 0; i < US_COLD_READS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        start = us_cold_time(CLOCK_MONOTONIC);

        if (pread(fd, page, US_COLD_PAGE,
                  (log + (seed >> 33) % pages) * US_COLD_PAGE)
            != US_COLD_PAGE)
        {
            us_cold_die("pread(%s): %s", file, strerror(errno));
        }

        us[i] = (us_cold_time(CLOCK_MONOTONIC) - start) * 1e6;
    }

    qsort(us, US_COLD_READS, sizeof(double), us_cold_double_cmp);
    printf("a page of the disk, read at random: %.0f us in the median, %.0f at"
           " the 99th percentile\n", us[US_COLD_READS / 2],
           us[US_COLD_READS * 99 / 100]);
}


int
main(int argc, char **argv)
{
    unsigned           how;
    uint64_t           all, log, share;
    static us_cold_t   c;

    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        us_cold_make(argv[2], strtoull(argv[3], NULL, 10));
        return 0;
    }

    if (argc == 3 && strcmp(argv[1], "disk") == 0) {
        us_cold_disk(argv[2]);
        return 0;
    }

    for (how = 0; argc == 7 && how < 4; how++) {

        if (strcmp(argv[1], us_cold_hows[how]) == 0) {
            break;
        }
    }

    if (argc != 7 || how == 4) {
        us_cold_die("usage: cold make FILE N | disk FILE"
                    " | HOW SHARE DIR FILE PAGES NAME");
    }

    c.how = how;
    alarm(4 * US_COLD_TIME);

    if (how != US_COLD_MEMORY) {
        us_cold_join(argv[3]);
    }

    c.pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    all = us_cold_load(&c, argv[4]);
    log = c.high - c.low;

    if (how != US_COLD_MEMORY) {
        share = all / 100 * strtoull(argv[2], NULL, 10);

        if (share <= all - log) {
            us_cold_die("SHARE=%s: all but the log is %" PRIu64 " %% of the"
                        " store", argv[2], (all - log) * 100 / all);
        }

        c.group = argv[3];
        c.log_share = share - (all - log);
    }

    us_cold_stream(&c, argv[2], argv[5], argv[6]);

    return 0;
}
