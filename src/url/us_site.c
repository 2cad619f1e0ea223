
/*
 * Sites.  See us_site.h.
 *
 * "www." is mergeable unless the rest of the host is a public suffix, such as
 * co.uk.  Nearly every URL asks that, and nearly always the answer is no; two
 * searches of the list would take some 50 ns.  So a bitmap, which is made from
 * the list at start, answers "no" in a few nanoseconds:
 *
 *    rest of the host ---- h(rest) ----> 3 bits set? --+-- yes: search the list
 *         `-- after the first dot -- h'(parent) -> 3 bits set? --'
 *                                              else no public suffix
 *
 *    bitmap:  128 Ki bits = 16 KiB, fits in L1
 *             a rule "co.uk" sets h("co.uk"); a rule "*.kobe.jp" sets
 *             h'("kobe.jp"), and h("kobe.jp"), which counts as a suffix, too
 *             10,000 rules: 2 % of other hosts search the list in vain
 */


#include "us_site.h"
#include "us_suffix_data.h"

#include <stdlib.h>


#define US_BITMAP_SHIFT  17
#define US_BITMAP_BITS   (1 << US_BITMAP_SHIFT)
#define US_SITE_RULE   0x9e3779b97f4a7c15ull      /* odd, as good as any */
#define US_SITE_WILD   0xc2b2ae3d27d4eb4full


struct us_site_s {
    us_str_t  *except;                /* hosts without "www.", sorted */
    size_t     nexcept;

    uint64_t   bits[US_BITMAP_BITS / 64];
};


void
us_site_destroy(us_site_t *site)
{
    size_t  i;

    if (site == NULL) {
        return;
    }

    for (i = 0; i < site->nexcept; i++) {
        free((void *) site->except[i].data);
    }

    free(site->except);
    free(site);
}


static int
us_site_order(const void *a, const void *b)
{
    return us_str_compare(*(const us_str_t *) a, *(const us_str_t *) b);
}


int
us_site_except(us_site_t *site, us_str_t host)
{
    size_t     i;
    uint8_t   *copy;
    us_str_t  *list;

    copy = malloc(host.len + 1);

    if (copy == NULL) {
        return -1;
    }

    list = realloc(site->except, (site->nexcept + 1) * sizeof(us_str_t));

    if (list == NULL) {
        free(copy);
        return -1;
    }

    site->except = list;

    for (i = 0; i < host.len; i++) {
        copy[i] = (uint8_t) (host.data[i] - 'A') < 26 ? host.data[i] | 0x20
                                                      : host.data[i];
    }

    host.data = copy;

    if (us_has_www(host)) {
        host.len -= 4;
        memmove(copy, copy + 4, host.len);
    }

    for (i = site->nexcept++; i && us_site_order(&list[i - 1], &host) > 0; i--)
    {
        list[i] = list[i - 1];
    }

    list[i] = host;

    return 0;
}


/* 1 to 8 bytes as a number; the loads overlap, none is a loop */

static inline uint64_t
us_load(const uint8_t *p, size_t n)
{
    uint32_t  a, b;
    uint64_t  v;

    if (n == 8) {
        memcpy(&v, p, 8);
        return v;
    }

    if (n >= 4) {
        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        return (uint64_t) b << 32 | a;
    }

    return (uint64_t) p[0] << 16 | p[n / 2] << 8 | p[n - 1];
}


/* n > 0; the result is used by its upper bits */

static inline uint64_t
us_site_mix(const uint8_t *p, size_t n, uint64_t seed)
{
    uint64_t  h;

    if (n <= 8) {
        h = us_load(p, n) ^ n;

    } else {
        for (h = n; n > 16; p += 8, n -= 8) {
            h = (h ^ us_load(p, 8)) * seed;
            h ^= h >> 32;
        }

        h = (h ^ us_load(p, 8)) * seed;
        h ^= h >> 32 ^ us_load(p + n - 8, 8);
    }

    h *= seed;

    return (h ^ h >> 32) * seed;
}


/* the place of the i-th of a hash's three bits */

static inline uint64_t
us_site_bit(uint64_t h, int i)
{
    return h >> (64 - US_BITMAP_SHIFT * (i + 1)) & (US_BITMAP_BITS - 1);
}


static void
us_site_set(us_site_t *site, const us_suffixes_t *group, uint64_t seed)
{
    int             i;
    size_t          len;
    uint32_t        k;
    uint64_t        h, bit;
    const uint8_t  *name;

    for (len = 1; len <= US_SUFFIX_MAX; len++) {
        name = us_suffix_names + group[len].at;

        for (k = 0; k < group[len].n; k++, name += len) {
            h = us_site_mix(name, len, seed);

            for (i = 0; i < 3; i++) {
                bit = us_site_bit(h, i);
                site->bits[bit / 64] |= 1ull << (bit % 64);
            }
        }
    }
}


us_site_t *
us_site_create(void)
{
    us_site_t  *site;

    site = calloc(1, sizeof(us_site_t));

    if (site) {
        us_site_set(site, us_suffix_rule, US_SITE_RULE);
        us_site_set(site, us_suffix_wild, US_SITE_WILD);
    }

    return site;
}


/* without branches: which bit is clear cannot be predicted */

static inline uint64_t
us_site_maybe(const us_site_t *site, uint64_t h)
{
    int       i;
    uint64_t  bit, all;

    for (all = 1, i = 0; i < 3; i++) {
        bit = us_site_bit(h, i);
        all &= site->bits[bit / 64] >> (bit % 64);
    }

    return all;
}


static inline int
us_site_recall(const us_site_answer_t *a, us_str_t name)
{
    return a->len == name.len && memcmp(a->name, name.data, name.len) == 0;
}


static inline void
us_site_remember(us_site_answer_t *a, us_str_t name, int answer)
{
    if (name.len <= sizeof(a->name)) {
        memcpy(a->name, name.data, name.len);
        a->len = (uint8_t) name.len;
        a->answer = answer != 0;
    }
}


static int
us_suffix_has(const us_suffixes_t *group, const uint8_t *p, size_t len)
{
    int             rc;
    size_t          lo, hi, mid;
    const uint8_t  *names;

    if (len > US_SUFFIX_MAX) {
        return 0;
    }

    names = us_suffix_names + group[len].at;

    for (lo = 0, hi = group[len].n; lo < hi; /* void */ ) {
        mid = (lo + hi) / 2;
        rc = memcmp(p, names + mid * len, len);

        if (rc == 0) {
            return 1;
        }

        if (rc < 0) {
            hi = mid;

        } else {
            lo = mid + 1;
        }
    }

    return 0;
}


/* parent is what follows the first dot of rest */

static int
us_site_is_suffix(us_str_t rest, const uint8_t *parent, us_site_answer_t *a)
{
    int     suffix;
    size_t  len;

    if (us_site_recall(a, rest)) {
        return a->answer;
    }

    len = rest.data + rest.len - parent;

    suffix = us_suffix_has(us_suffix_rule, rest.data, rest.len)
             || (us_suffix_has(us_suffix_wild, parent, len)
                 && !us_suffix_has(us_suffix_except, rest.data, rest.len));

    us_site_remember(a, rest, suffix);

    return suffix;
}


/* the last label, after a dot, is a number */

static inline int
us_site_is_number(const uint8_t *dot, const uint8_t *end)
{
    while ((uint8_t) (end[-1] - '0') <= 9 && end - 1 > dot) {
        end--;
    }

    return end[-1] == '.' && (uint8_t) (*end - '0') <= 9;
}


/*
 * "www.www.example.com" is not merged with "www.example.com", which is a
 * spelling of "example.com" already; nor are hosts that end in a dot, and IP
 * addresses.
 */

static int
us_site_decide(const us_site_t *site, us_str_t host,
    us_site_answer_t suffixes[US_SITE_MEMO])
{
    uint64_t        h;
    us_str_t        rest;
    const uint8_t  *dot, *end;

    rest = host;

    if (us_has_www(host)) {
        rest.data += 4;
        rest.len -= 4;
    }

    dot = memchr(rest.data, '.', rest.len);

    if (dot == NULL || dot == rest.data) {
        return 0;
    }

    end = rest.data + rest.len;

    if (end[-1] == '.' || end[-1] == ']' || us_has_www(rest)
        || us_site_is_number(dot, end))
    {
        return 0;
    }

    dot++;

    h = us_site_mix(rest.data, rest.len, US_SITE_RULE);

    if ((us_site_maybe(site, h)
         | us_site_maybe(site, us_site_mix(dot, end - dot, US_SITE_WILD)))
        && us_site_is_suffix(rest, dot, &suffixes[h % US_SITE_MEMO]))
    {
        return 0;
    }

    return site->nexcept == 0
           || bsearch(&rest, site->except, site->nexcept, sizeof(us_str_t),
                      us_site_order) == NULL;
}


int
us_site_merge(const us_site_t *site, us_str_t host, us_site_memo_t *memo)
{
    int  answer;

    if (us_site_recall(&memo->last, host)) {
        return memo->last.answer;
    }

    answer = us_site_decide(site, host, memo->suffixes);

    us_site_remember(&memo->last, host, answer);

    return answer;
}
