
/*
 * Sites.  See us_site.h.
 *
 * "www." is mergeable unless the rest of the host is a public suffix, such as
 * co.uk.  Nearly every URL asks that, and nearly always the answer is no;
 * libpsl needs 300 ns for it.  So at start the list that libpsl reads is hashed
 * into a bitmap, which answers "no" in a few nanoseconds:
 *
 *    rest of the host ---- h(rest) ----> 3 bits set? --+-- yes: ask libpsl
 *         `-- after the first dot -- h'(parent) -> 3 bits set? --'
 *                                              else no public suffix
 *
 *    bitmap:  128 Ki bits = 16 KiB, fits in L1
 *             a rule "co.uk" sets h("co.uk"); a rule "*.kobe.jp" sets
 *             h'("kobe.jp"), and h("kobe.jp") because libpsl calls that a
 *             suffix, too
 *             9,000 rules: 0.7 % of other hosts ask libpsl in vain
 *
 * If the list is not a file (but built into libpsl), every bit is set, and
 * libpsl is asked each time.
 */


#include "us_site.h"

#include <libpsl.h>
#include <stdio.h>
#include <stdlib.h>


#define US_BITMAP_SHIFT  17
#define US_BITMAP_BITS   (1 << US_BITMAP_SHIFT)
#define US_SITE_RULE   0x9e3779b97f4a7c15ull      /* odd, as good as any */
#define US_SITE_WILD   0xc2b2ae3d27d4eb4full


struct us_site_s {
    const psl_ctx_t  *psl;
    psl_ctx_t        *owned;          /* to be freed, or NULL: built in */

    us_str_t         *except;         /* hosts without "www.", sorted */
    size_t            nexcept;

    uint64_t          bits[US_BITMAP_BITS / 64];
};


us_site_t *
us_site_create(void)
{
    us_site_t  *site;

    site = calloc(1, sizeof(us_site_t));

    if (site) {
        memset(site->bits, 0xff, sizeof(site->bits));
    }

    return site;
}


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

    psl_free(site->owned);
    free(site->except);
    free(site);
}


static int
us_site_compare(us_str_t a, us_str_t b)
{
    if (a.len != b.len) {
        return a.len < b.len ? -1 : 1;
    }

    return memcmp(a.data, b.data, a.len);
}


int
us_site_except(us_site_t *site, us_str_t host)
{
    size_t     i;
    uint8_t   *copy;
    us_str_t  *list;

    if (us_has_www(host)) {
        host.data += 4;
        host.len -= 4;
    }

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

    for (i = site->nexcept++; i && us_site_compare(list[i - 1], host) > 0; i--)
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
us_site_set(us_site_t *site, us_str_t name, uint64_t seed)
{
    int       i;
    uint64_t  h, bit;

    h = us_site_mix(name.data, name.len, seed);

    for (i = 0; i < 3; i++) {
        bit = us_site_bit(h, i);
        site->bits[bit / 64] |= 1ull << (bit % 64);
    }
}


/* one line of the list: a rule ends at white space, "//" begins a comment */

static void
us_site_rule(us_site_t *site, const us_idna_t *idna, char *line)
{
    int        wild;
    ssize_t    n;
    uint8_t    ascii[256];
    us_str_t   name;

    name.data = (uint8_t *) line;
    name.len = strcspn(line, " \t\r\n");

    /* an exception "!www.ck" only excludes a host that "*.ck" includes */

    if (name.len == 0 || *line == '!' || strncmp(line, "//", 2) == 0) {
        return;
    }

    wild = name.len > 2 && line[0] == '*' && line[1] == '.';

    if (wild) {
        name.data += 2;
        name.len -= 2;
    }

    n = us_idna_to_ascii(idna, name, ascii, sizeof(ascii));

    if (n <= 0) {
        return;
    }

    name.data = ascii;
    name.len = n;

    us_site_set(site, name, US_SITE_RULE);

    if (wild) {
        us_site_set(site, name, US_SITE_WILD);
    }
}


void
us_site_load(us_site_t *site, const us_idna_t *idna)
{
    FILE    *f;
    char    *line;
    size_t   size;

    f = fopen(psl_builtin_filename(), "r");
    site->owned = f ? psl_load_fp(f) : NULL;

    if (site->owned == NULL) {
        site->psl = psl_builtin();
        goto done;
    }

    site->psl = site->owned;

    rewind(f);
    memset(site->bits, 0, sizeof(site->bits));

    line = NULL;
    size = 0;

    while (getline(&line, &size, f) > 0) {
        us_site_rule(site, idna, line);
    }

    free(line);

done:

    if (f) {
        fclose(f);
    }
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
us_site_is_suffix(const us_site_t *site, us_str_t rest, us_site_answer_t *a)
{
    int   suffix;
    char  name[256];

    if (us_site_recall(a, rest)) {
        return a->answer;
    }

    if (rest.len >= sizeof(name)) {
        return 0;
    }

    memcpy(name, rest.data, rest.len);
    name[rest.len] = '\0';

    suffix = psl_is_public_suffix2(site->psl, name, PSL_TYPE_ANY);

    us_site_remember(a, rest, suffix);

    return suffix;
}


static int
us_site_is_except(const us_site_t *site, us_str_t rest)
{
    int     rc;
    size_t  lo, hi, mid;

    for (lo = 0, hi = site->nexcept; lo < hi; /* void */ ) {
        mid = (lo + hi) / 2;
        rc = us_site_compare(rest, site->except[mid]);

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
        && us_site_is_suffix(site, rest, &suffixes[h % US_SITE_MEMO]))
    {
        return 0;
    }

    return site->nexcept == 0 || !us_site_is_except(site, rest);
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
