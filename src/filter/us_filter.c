
/*
 * A Bloom filter in blocks of one cache line (Putze, Sanders, Singler: "Cache-,
 * Hash- and Space-Efficient Bloom Filters", 2007, section 3): the hash of a URL
 * chooses a block, and all its bits lie there, so that a URL costs one cache
 * miss, not one for each hash.
 *
 *     +----------------+---------+---------+---------+--
 *     | header, 4096 B | block 0 | block 1 | block 2 |
 *     +----------------+---------+---------+---------+--
 *                        512 bits
 *
 *     h      = SipHash-1-3 of the URL under a secret key, 64 bits
 *     block  = h * blocks / 2^64
 *     bit i  = 9 bits of a mix of h: 3 choose the word, 6 the bit in it
 *
 * Blocks fill unevenly, by Poisson's law, so a URL needs some bits more than in
 * one large Bloom filter.  us_filter_error() computes the exact expectation of
 * the error.  us_filter_plan() chooses the bits for a URL by it, not by the
 * usual formula.
 *
 * FORMAT (version 1, native byte order; all integers as in us_filter_s):
 * header, zeros up to 4096 bytes, blocks of eight 64-bit words.
 *
 * Invariants: bits are only ever set; `urls` is at most the number of URLs
 * added.  A caller that is killed may have added URLs without counting them.
 *
 * Ordering: a bit says nothing about other memory, so relaxed accesses suffice.
 * All processes see the accesses to one word in the same order.  "No false
 * negative" needs no more: an add is answered after its bits are set.
 */


#include "us_filter.h"
#include "../journal/us_manifest.h"
#include "../url/us_normalize.h"
#include "../us_hash.h"
#include "../us_text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_FILTER_MAGIC     0x317265746c696675         /* "ufilter1" */
#define US_FILTER_BITS      512
#define US_FILTER_HASHES    21        /* 3 mixes of 7 x 9 bits */
#define US_FILTER_GROUP     32        /* prefetched together */
#define US_FILTER_SAMPLE    4096      /* blocks */


typedef struct {
    uint64_t          words[8];
} us_filter_block_t;


struct us_filter_s {
    uint64_t          magic;
    uint32_t          version;
    uint32_t          hashes;
    uint64_t          blocks;
    uint64_t          capacity;
    double            error;
    uint8_t           key[16];
    us_filter_mark_t  mark;
    uint64_t          norm_len;
    uint8_t           norm[US_FILTER_NORM_LEN];

    /* a cache line of its own: every add writes it */

    uint64_t          urls  __attribute__((aligned(64)));
};


static inline us_filter_block_t *
us_filter_blocks(const us_filter_t *f)
{
    return (us_filter_block_t *) ((uintptr_t) f + US_FILTER_HEADER);
}


/* the bits of a URL, by word of its block */

static inline void
us_filter_bits(uint64_t h, unsigned hashes, us_filter_block_t *bits)
{
    unsigned  i;
    uint64_t  x;

    memset(bits, 0, sizeof(us_filter_block_t));
    x = 0;

    for (i = 0; i < hashes; i++) {

        if (i % 7 == 0) {

            /* the finalizer of SplitMix64: another 64 bits from the same h */

            h += 0x9e3779b97f4a7c15;
            h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
            h = (h ^ h >> 27) * 0x94d049bb133111eb;
            h ^= h >> 31;
            x = h;
        }

        bits->words[x & 7] |= (uint64_t) 1 << (x >> 3 & 63);
        x >>= 9;
    }
}


uint64_t
us_filter_hash(const us_filter_t *f, unsigned domain, us_str_t url)
{
    return us_hash(f->key, domain, url.data, url.len);
}


/* asks for the blocks of a group */

static void
us_filter_prepare(const us_filter_t *f, const uint64_t *hashes, size_t n,
    us_filter_block_t **blocks)
{
    size_t  i;

    for (i = 0; i < n; i++) {

        blocks[i] = us_filter_blocks(f)
                    + (size_t) (((unsigned __int128) hashes[i] * f->blocks)
                                >> 64);

        __builtin_prefetch(blocks[i], 1);
    }
}


void
us_filter_add_many(us_filter_t *f, const uint64_t *hashes, size_t n,
    uint8_t *answers)
{
    size_t              i, m;
    uint64_t            fresh, set, had, *word;
    unsigned            k;
    us_filter_block_t   bits, *blocks[US_FILTER_GROUP];

    fresh = 0;

    for ( /* void */ ; n; n -= m, hashes += m, answers += m) {
        m = n < US_FILTER_GROUP ? n : US_FILTER_GROUP;

        us_filter_prepare(f, hashes, m, blocks);

        for (i = 0; i < m; i++) {
            us_filter_bits(hashes[i], f->hashes, &bits);
            answers[i] = 0;

            for (k = 0; k < 8; k++) {
                word = &blocks[i]->words[k];
                set = bits.words[k];

                if ((__atomic_load_n(word, __ATOMIC_RELAXED) & set) != set) {
                    had = __atomic_fetch_or(word, set, __ATOMIC_RELAXED);
                    answers[i] |= (had & set) != set;
                }
            }

            fresh += answers[i];
        }
    }

    if (fresh) {
        __atomic_fetch_add(&f->urls, fresh, __ATOMIC_RELAXED);
    }
}


void
us_filter_seen_many(const us_filter_t *f, const uint64_t *hashes, size_t n,
    uint8_t *answers)
{
    size_t              i, m;
    unsigned            k;
    uint64_t            missing;
    us_filter_block_t   bits, *blocks[US_FILTER_GROUP];

    for ( /* void */ ; n; n -= m, hashes += m, answers += m) {
        m = n < US_FILTER_GROUP ? n : US_FILTER_GROUP;

        us_filter_prepare(f, hashes, m, blocks);

        for (i = 0; i < m; i++) {
            us_filter_bits(hashes[i], f->hashes, &bits);
            missing = 0;

            for (k = 0; k < 8; k++) {
                missing |= bits.words[k]
                           & ~__atomic_load_n(&blocks[i]->words[k],
                                              __ATOMIC_RELAXED);
            }

            answers[i] = (missing == 0);
        }
    }
}


/*
 * The expectation over blocks, whose numbers of URLs follow Poisson's law.  A
 * block with j URLs takes for seen the k-th power of the share x of bits set by
 * t = jk throws, of which x has mean and variance of the occupancy problem;
 * second order in the variance, as the k-th power is convex.
 */

static double
us_filter_error(double urls, double blocks, unsigned hashes)
{
    double    b, k, t, load, p, sum, one, two, mean, var, e;
    unsigned  j, from, to;

    b = US_FILTER_BITS;
    k = hashes;
    load = urls / blocks;

    from = load > 12 * sqrt(load) ? (unsigned) (load - 12 * sqrt(load)) : 0;
    to = (unsigned) (load + 12 * sqrt(load) + 12);
    sum = 0;

    for (j = from; j <= to; j++) {
        t = j * k;
        one = pow(1 - 1 / b, t);
        two = pow(1 - 2 / b, t);
        mean = 1 - one;

        if (mean <= 0) {
            continue;
        }

        var = (1 - 1 / b) * two + one / b - one * one;
        e = pow(mean, k);

        if (var > 0) {
            e += k * (k - 1) / 2 * pow(mean, k - 2) * var;
        }

        p = exp(j * log(load) - load - lgamma(j + 1.0));
        sum += p * (e < 1 ? e : 1);
    }

    return sum;
}


/* the number of hashes that errs least */

static unsigned
us_filter_hashes(uint64_t urls, uint64_t blocks, double *error)
{
    double    e;
    unsigned  k, best;

    best = 1;
    *error = 1;

    for (k = 1; k <= US_FILTER_HASHES; k++) {
        e = us_filter_error(urls, blocks, k);

        if (e < *error) {
            *error = e;
            best = k;
        }
    }

    return best;
}


int
us_filter_plan(uint64_t capacity, double error, size_t size,
    us_filter_plan_t *plan)
{
    double    e;
    uint64_t  low, high, mid;

    plan->size = 0;

    if (capacity == 0 || capacity > (uint64_t) 1 << 40
        || !(error >= US_FILTER_ERROR_MIN && error <= US_FILTER_ERROR_MAX))
    {
        return -1;
    }

    /* fewer than 2 bits a URL never do, and 128 always do */

    low = capacity / (US_FILTER_BITS / 2) + 1;
    high = capacity / 4 + 64;

    while (low < high) {
        mid = low + (high - low) / 2;
        (void) us_filter_hashes(capacity, mid, &e);

        if (e <= error) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }

    plan->size = US_FILTER_HEADER + low * US_FILTER_BLOCK;

    if (size) {
        if (size < plan->size) {
            return -1;
        }

        low = (size - US_FILTER_HEADER) / US_FILTER_BLOCK;
        plan->size = US_FILTER_HEADER + low * US_FILTER_BLOCK;
    }

    plan->capacity = capacity;
    plan->error = error;
    plan->blocks = low;
    plan->hashes = us_filter_hashes(capacity, low, &plan->expected);

    return 0;
}


us_filter_t *
us_filter_format(void *mem, const us_filter_plan_t *plan,
    const uint8_t key[16], us_str_t norm)
{
    us_filter_t  *f;

    f = mem;

    f->version = US_FILTER_VERSION;
    f->hashes = plan->hashes;
    f->blocks = plan->blocks;
    f->capacity = plan->capacity;
    f->error = plan->error;
    memcpy(f->key, key, 16);

    f->norm_len = norm.len < US_FILTER_NORM_LEN ? norm.len
                                                : US_FILTER_NORM_LEN;
    if (f->norm_len) {
        memcpy(f->norm, norm.data, f->norm_len);
    }

    /* last, so that a filter whose maker was killed is not valid */

    __atomic_store_n(&f->magic, US_FILTER_MAGIC, __ATOMIC_RELEASE);

    return f;
}


us_filter_mark_t *
us_filter_mark(us_filter_t *f)
{
    return &f->mark;
}


int
us_filter_full(const us_filter_t *f)
{
    return __atomic_load_n(&f->urls, __ATOMIC_RELAXED) >= f->capacity;
}


int
us_filter_nearly_full(const us_filter_t *f)
{
    return __atomic_load_n(&f->urls, __ATOMIC_RELAXED)
           >= f->capacity - f->capacity / 10;
}


void
us_filter_info(const us_filter_t *f, us_filter_info_t *info)
{
    double                    set, share, error;
    size_t                    i, step, n;
    unsigned                  j, ones;
    const us_filter_block_t  *b;

    b = us_filter_blocks(f);
    step = f->blocks / US_FILTER_SAMPLE + 1;
    set = 0;
    error = 0;
    n = 0;

    for (i = 0; i < f->blocks; i += step) {
        ones = 0;

        for (j = 0; j < 8; j++) {
            ones += __builtin_popcountll(__atomic_load_n(&b[i].words[j],
                                                         __ATOMIC_RELAXED));
        }

        share = (double) ones / US_FILTER_BITS;
        set += share;
        error += pow(share, f->hashes);
        n++;
    }

    info->capacity = f->capacity;
    info->error = f->error;
    info->urls = __atomic_load_n(&f->urls, __ATOMIC_RELAXED);
    info->size = US_FILTER_HEADER + f->blocks * US_FILTER_BLOCK;
    info->hashes = f->hashes;
    info->filling = set / n;
    info->expected = error / n;
}


/*
 * A filter in a mapped file.
 *
 *     DIR/filter        header and blocks
 *     DIR/filter.new    one that is being made
 *     DIR               flock: shared while it is used, exclusive to make it
 *                       and to close it last
 *
 * The mapping is the kernel's page cache, so bits that a killed process has set
 * are there for the next one, without any write.  Only a power failure or a
 * crash of the kernel can lose bits, and a lost bit is a false negative, which
 * a filter must not have.  So the header says:
 *
 *     clean = 1              closed: everything was on the disk
 *     clean = 0, boot = B    opened under boot B, and not closed since
 *
 * A file that was not closed is as good as one that was while the machine is
 * still in boot B.  After another boot it is refused, unless the user says
 * that missing bits do not matter.
 *
 * Bits are set atomically, so that any number of servers may use one file, as
 * the two masters of a binary upgrade do: each sees the URLs that the other
 * adds.  Only the mark "not closed" (clean = 0, boot = B) has an order.  Each
 * process sets it when it opens the file, which it has locked then; a process
 * that is alone when it closes the file clears it.  Invariant: while a process
 * has the file open, the mark is set with the present boot.
 *
 * The mark reaches the disk before the first bit can.  The blocks of the file
 * are allocated before it is used: a full disk must not become a SIGBUS.
 */

#define US_FILTER_FILE_NAME  "filter"
#define US_FILTER_FILE_NEW   "filter.new"

#define US_FILTER_FILE_TRIES  16      /* to open it while others make it */


/* the machine's boot id; zeros where the kernel has none */

static void
us_filter_file_boot(uint8_t boot[16])
{
    int     digit;
    char   *p, text[US_BOOT_ID + 1];
    size_t  n;

    memset(boot, 0, 16);
    us_manifest_boot(text);

    /* 32 hexadecimal digits with some '-' between them */

    for (p = text, n = 0; *p && n < 32; p++) {
        digit = us_hex_value(*p);

        if (digit != -1) {
            boot[n / 2] = boot[n / 2] << 4 | digit;
            n++;
        }
    }
}


static void *
us_filter_file_map(int fd, size_t size, int prot)
{
    void  *mem;

    mem = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

    return mem == MAP_FAILED ? NULL : mem;
}


/* makes the complete empty file under a temporary name first */

static int
us_filter_file_create(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, us_disk_error_t *e)
{
    int      fd, rc;
    void    *mem;
    uint8_t  key[16];

    mem = NULL;

    fd = openat(file->dir, US_FILTER_FILE_NEW,
                O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC, 0600);
    if (fd == -1) {
        return us_disk_fail(e, errno, "cannot make a filter");
    }

    rc = posix_fallocate(fd, 0, plan->size);
    if (rc != 0) {
        rc = us_disk_fail(e, rc, "no room for a filter of %zu bytes",
                          plan->size);
        goto done;
    }

    mem = us_filter_file_map(fd, plan->size, PROT_READ|PROT_WRITE);

    if (mem == NULL || getrandom(key, 16, 0) != 16) {
        rc = us_disk_fail(e, errno, "cannot map a filter of %zu bytes",
                          plan->size);
        goto done;
    }

    us_filter_mark(us_filter_format(mem, plan, key, norm))->clean = 1;

    if (msync(mem, plan->size, MS_SYNC) == -1 || fsync(fd) == -1
        || renameat(file->dir, US_FILTER_FILE_NEW, file->dir,
                    US_FILTER_FILE_NAME) == -1
        || fsync(file->dir) == -1)
    {
        rc = us_disk_fail(e, errno, "cannot write a filter");
    }

done:

    if (mem) {
        (void) munmap(mem, plan->size);
    }

    if (rc == -1) {
        (void) unlinkat(file->dir, US_FILTER_FILE_NEW, 0);
    }

    (void) close(fd);
    file->created = (rc == 0);

    return rc;
}


/* maps what is there, unless it is no filter of this version */

static int
us_filter_file_attach(us_filter_file_t *file, int fd, int prot,
    us_disk_error_t *e)
{
    void         *mem;
    const char   *wrong;
    struct stat   st;
    us_filter_t  *f;

    mem = NULL;

    if (fstat(fd, &st) == 0
        && st.st_size >= US_FILTER_HEADER + US_FILTER_BLOCK)
    {
        mem = us_filter_file_map(fd, st.st_size, prot);
    }

    if (mem == NULL) {
        return us_disk_fail(e, 0, "cannot map \"%s\": it is too short or too "
                            "long", US_FILTER_FILE_NAME);
    }

    f = mem;
    file->size = st.st_size;

    if (__atomic_load_n(&f->magic, __ATOMIC_ACQUIRE) != US_FILTER_MAGIC) {
        wrong = "it is not a filter of this byte order";

    } else if (f->version != US_FILTER_VERSION) {
        wrong = "it is a filter of another version";

    } else if (f->blocks == 0 || f->blocks > (SIZE_MAX >> 7)
               || f->blocks * US_FILTER_BLOCK + US_FILTER_HEADER != file->size)
    {
        wrong = "its length is not what its header says";

    } else if (f->hashes == 0 || f->hashes > US_FILTER_HASHES
               || f->capacity == 0 || f->norm_len > US_FILTER_NORM_LEN)
    {
        wrong = "its header is damaged";

    } else {
        file->filter = f;
        return 0;
    }

    (void) munmap(mem, file->size);

    return us_disk_fail(e, 0, "\"%s\": %s", US_FILTER_FILE_NAME, wrong);
}


int
us_filter_file_match(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, us_disk_error_t *e)
{
    us_str_t          had;
    us_filter_info_t  info;

    us_filter_info(file->filter, &info);

    if (info.capacity != plan->capacity || info.error != plan->error
        || info.size != plan->size)
    {
        return us_disk_fail(e, 0,
            "it was made for %zu bytes, capacity=%llu error=%g; a filter "
            "cannot be resized: remove it or name another path",
            info.size, (unsigned long long) info.capacity, info.error);
    }

    had.data = file->filter->norm;
    had.len = file->filter->norm_len;

    if (!us_norm_same(had, norm)) {
        return us_disk_fail(e, 0,
            "its URLs were normalized as \"%.*s\", not as \"%.*s\"",
            (int) had.len, had.data, (int) norm.len, norm.data);
    }

    return 0;
}


/*
 * Whether the bits can be trusted: 0, or US_FILTER_UNCLEAN.  file->doubtful:
 * they cannot, and force accepts that.  Where the kernel has no boot id, a mark
 * "not closed" is trusted if others use the file: it is theirs.
 */

static int
us_filter_file_trust(us_filter_file_t *file, int force, us_disk_error_t *e)
{
    uint8_t                  boot[16];
    const us_filter_mark_t  *mark;

    static const uint8_t  unknown[16];

    mark = us_filter_mark(file->filter);
    us_filter_file_boot(boot);

    /* one that opens the file beside us sets `clean` after `boot` */

    file->doubtful = (__atomic_load_n(&mark->clean, __ATOMIC_ACQUIRE) != 1
                      && (memcmp(mark->boot, boot, 16) != 0
                          || (memcmp(boot, unknown, 16) == 0
                              && !file->shared)));

    if (!file->doubtful || force) {
        return 0;
    }

    (void) us_disk_fail(e, 0,
        "the machine went down while it was in use: bits may be missing, and "
        "URLs that were seen would be taken for new ones; remove it, or "
        "accept that");

    return US_FILTER_UNCLEAN;
}


/* maps what the descriptor has, and closes it; as us_filter_file_open() */

static int
us_filter_file_accept(us_filter_file_t *file, int fd, int prot,
    const us_filter_plan_t *plan, us_str_t norm, int force, us_disk_error_t *e)
{
    int  rc;

    rc = us_filter_file_attach(file, fd, prot, e);
    (void) close(fd);

    if (rc == 0) {
        rc = us_filter_file_match(file, plan, norm, e);
    }

    return rc ? rc : us_filter_file_trust(file, force, e);
}


/*
 * The descriptor of the file, which is made if nobody has made it, under a
 * shared lock, or -1.
 */

static int
us_filter_file_lock(us_filter_file_t *file, const us_filter_plan_t *plan,
    us_str_t norm, us_disk_error_t *e)
{
    int       fd, rc;
    unsigned  i;

    file->shared = (flock(file->dir, LOCK_EX|LOCK_NB) == -1);

    for (i = 0; i < US_FILTER_FILE_TRIES; i++) {

        do {
            rc = flock(file->dir, LOCK_SH);
        } while (rc == -1 && errno == EINTR);

        if (rc == -1) {
            return us_disk_fail(e, errno, "cannot lock it");
        }

        fd = openat(file->dir, US_FILTER_FILE_NAME, O_RDWR|O_CLOEXEC);

        if (fd != -1) {
            return fd;
        }

        if (errno != ENOENT) {
            return us_disk_fail(e, errno, "cannot open \"%s\"",
                                US_FILTER_FILE_NAME);
        }

        /* alone, and it is not there: nobody else makes or uses it */

        if (flock(file->dir, LOCK_EX|LOCK_NB) == 0
            && faccessat(file->dir, US_FILTER_FILE_NAME, F_OK, 0) == -1
            && us_filter_file_create(file, plan, norm, e) == -1)
        {
            return -1;
        }

        (void) usleep(i * 1000);
    }

    return us_disk_fail(e, 0, "cannot open \"%s\", which others use",
                        US_FILTER_FILE_NAME);
}


int
us_filter_file_open(us_filter_file_t *file, const char *dir,
    const us_filter_plan_t *plan, us_str_t norm, int force, us_disk_error_t *e)
{
    int                fd, rc;
    uint8_t            boot[16];
    us_filter_mark_t  *mark;

    memset(file, 0, sizeof(us_filter_file_t));

    file->dir = -1;

    if (mkdir(dir, 0700) == -1 && errno != EEXIST) {
        return us_disk_fail(e, errno, "cannot make \"%s\"", dir);
    }

    file->dir = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (file->dir == -1) {
        return us_disk_fail(e, errno, "cannot open \"%s\"", dir);
    }

    rc = -1;
    fd = us_filter_file_lock(file, plan, norm, e);

    if (fd != -1) {
        rc = us_filter_file_accept(file, fd, PROT_READ|PROT_WRITE, plan, norm,
                                   force, e);
    }

    if (rc == 0) {

        /*
         * It is marked as used under this boot.  The header is a page: it is on
         * the disk before this run sets a bit.
         */

        mark = us_filter_mark(file->filter);
        us_filter_file_boot(boot);
        memcpy(mark->boot, boot, 16);
        __atomic_store_n(&mark->clean, 0, __ATOMIC_RELEASE);

        if (msync(file->filter, US_FILTER_HEADER, MS_SYNC) == -1) {
            rc = us_disk_fail(e, errno, "cannot write its mark");
        }
    }

    if (rc != 0) {
        us_filter_file_drop(file);
    }

    return rc;
}


/* dir is not there, but it can be made if only it itself is missing */

static int
us_filter_file_parent(const char *dir, us_disk_error_t *e)
{
    char  parent[PATH_MAX];

    (void) snprintf(parent, sizeof(parent), "%s", dir);

    if (access(dirname(parent), F_OK) == 0) {
        return 0;
    }

    return us_disk_fail(e, errno, "cannot make \"%s\"", dir);
}


int
us_filter_file_check(const char *dir, const us_filter_plan_t *plan,
    us_str_t norm, int force, us_disk_error_t *e)
{
    int                fd, rc;
    us_filter_file_t   file;

    memset(&file, 0, sizeof(us_filter_file_t));

    file.dir = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (file.dir == -1) {
        return errno == ENOENT ? us_filter_file_parent(dir, e)
               : us_disk_fail(e, errno, "cannot open \"%s\"", dir);
    }

    fd = openat(file.dir, US_FILTER_FILE_NAME, O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        rc = us_filter_file_accept(&file, fd, PROT_READ, plan, norm, force, e);

    } else {
        rc = errno == ENOENT ? 0
             : us_disk_fail(e, errno, "cannot open \"%s\"",
                            US_FILTER_FILE_NAME);
    }

    us_filter_file_drop(&file);

    return rc;
}


int
us_filter_file_close(us_filter_file_t *file)
{
    int                rc;
    us_filter_mark_t  *mark;

    rc = 0;
    mark = us_filter_mark(file->filter);

    /* the bits first: the mark must not be on the disk before them */

    if (flock(file->dir, LOCK_EX|LOCK_NB) == 0) {
        rc = msync(file->filter, file->size, MS_SYNC);

        if (rc == 0) {
            mark->clean = 1;
            rc = msync(file->filter, US_FILTER_HEADER, MS_SYNC);
            mark->clean = (rc == 0);
        }

    } else if (errno != EWOULDBLOCK) {
        rc = -1;
    }

    us_filter_file_drop(file);

    return rc;
}


void
us_filter_file_drop(us_filter_file_t *file)
{
    if (file->filter) {
        (void) munmap(file->filter, file->size);
        file->filter = NULL;
    }

    if (file->dir != -1) {
        (void) close(file->dir);
        file->dir = -1;
    }
}
