
/*
 * generate: any number of URLs with the statistics of the real corpora.
 *
 *     bench/generate -n 10000000 -s 1 > urls.txt
 *
 * A crawl is modelled as pages that link mostly within their own site:
 *
 *     rank of a site   r = c (u^(-1/a) - 1), u uniform: Zipf-Mandelbrot without
 *                      an end: new sites never stop coming, as n^(1 / (1 + a))
 *     run of links     geometric length, all on that site
 *     URL              a pure function of (seed, site, k), k = 0, 1, 2, ... the
 *                      number of the URL within its site
 *
 * so that nothing has to be kept but one counter for each site, a duplicate is
 * an earlier (site, k) said again, and equal seeds give equal bytes anywhere
 * (the arithmetic is on integers, but for pow() in the choice of the site).
 *
 * URLs are distinct by construction, unless -d asks for duplicates: the name
 * of a site holds a permutation of its rank, every path holds an increasing
 * number, a permutation of k in letters, or two vocabulary words that are a
 * permutation of k.
 *
 * What is imitated: kinds of sites (blog, news, forum, shop, wiki, media,
 * social, code, documents, small), path trees whose old directories
 * grow faster, dates that advance with the site, decimal and base 64 ids, slugs
 * of words drawn by Zipf, queries on about an eighth of the URLs, percent
 * codes on about 2 %.  bench/scale/check compares the result with the corpora;
 * a, c and the mean run were set by it.
 *
 * The names are made up; some will exist.  Never send requests to them.
 */


#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define WORD_BITS    16
#define VOCABULARY   (1 << WORD_BITS)
#define WORD_ROOM    20
#define DRAWS        (1 << 20)
#define OUT_SIZE     (1 << 20)
#define URL_ROOM     2048

#define SITE_A       0.30
#define SITE_C       6.0


typedef struct {
    uint64_t     rank;                /* + 1; 0: free */
    uint32_t     urls;
} counter_t;


typedef struct {
    uint64_t     h;                   /* hash of the rank: all its properties */
    uint64_t     rank;
    unsigned     kind;
} site_t;


typedef struct {
    uint64_t     seed;
    uint64_t     state;               /* SplitMix64 */
    double       run;                 /* mean links in a row on a site */
    double       dup;                 /* share of duplicates */

    counter_t   *sites;
    size_t       nsites;
    size_t       mask;

    char         words[VOCABULARY][WORD_ROOM];
    uint8_t      word_len[VOCABULARY];
    uint32_t     draw[DRAWS];         /* word numbers, as often as Zipf says */
    uint32_t     word_set[2 * VOCABULARY];    /* number + 1 by hash, or 0 */

    char        *out;
    size_t       len;
    uint64_t     bytes;
} generator_t;


enum {
    KIND_CODE = 0,
    KIND_MEDIA,
    KIND_SOCIAL,
    KIND_WIKI,
    KIND_NEWS,
    KIND_FORUM,
    KIND_DOCS,
    KIND_SHOP,
    KIND_BLOG,
    KIND_SMALL,
    KINDS
};


/* the most frequent words of paths and slugs, in this order */

static const char  *common[] = {
    "the", "to", "of", "in", "a", "for", "and", "on", "is", "with", "how",
    "news", "new", "from", "at", "you", "by", "about", "as", "it", "article",
    "world", "your", "what", "my", "an", "blog", "this", "not", "be", "2012",
    "are", "us", "after", "over", "that", "video", "why", "man", "will", "has",
    "up", "who", "was", "out", "home", "can", "no", "first", "one", "more",
    "says", "school", "game", "time", "police", "health", "music", "best",
    "day", "free", "get", "all", "science", "sports", "top", "business",
    "review", "guide", "data", "report", "state", "2013", "people", "make",
    "life", "year", "home", "technology", "back", "public", "services",
    "against", "city", "online", "tax", "work", "house", "web", "service",
    "black", "open", "local", "water", "high", "power", "food", "against",
    "family", "government", "women", "university", "support", "energy",
    "south", "north", "case", "story", "book", "law", "children", "history",
    "project", "study", "social", "media", "art", "design", "travel", "green",
    "international", "national", "policy", "research", "american", "group",
    "market", "money", "development", "games", "security", "software",
    "system", "party", "court", "war", "film", "climate", "production",
    "education", "program", "office", "council", "community", "politics",
    NULL
};

static const char  *sections[] = {
    "news", "sport", "politics", "world", "business", "tech", "opinion",
    "culture", "local", "science", "health", "entertainment", "travel",
    "lifestyle", "money", "weather"
};

static const char  *tlds[] = {
    "com", "com", "com", "com", "com", "com", "com", "com", "com", "com",
    "com", "com", "com", "com", "com", "com", "org", "org", "org", "org",
    "net", "net", "net", "de", "de", "co.uk", "co.uk", "ru", "fr", "info",
    "io", "ca", "com.au", "it", "nl", "es", "pl", "com.br", "jp", "cz", "edu",
    "gov", "eu", "se", "ch", "us", "tv", "me"
};

static const char  *prefixes[] = {
    "www.", "www.", "www.", "www.", "www.", "www.", "www.", "", "", "", "", "",
    "blog.", "en.", "m.", "shop."
};

static const char  *endings[] = {
    "", "", "", "", "", "", "", "", "", "", "news", "blog", "tech", "shop",
    "fans", "lists"
};

static const char  *hosting[] = {
    ".blogspot.com", ".wordpress.com", ".tumblr.com", ".github.io"
};

static const char  base64[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";


static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    x ^= x >> 31;

    return x;
}


/* SplitMix64 (Steele, Lea, Flood 2014) */

static uint64_t
next(generator_t *g)
{
    g->state += 0x9e3779b97f4a7c15;

    return mix(g->state);
}


/* uniform in (0, 1) */

static double
uniform(generator_t *g)
{
    return ((double) (next(g) >> 11) + 0.5) / 9007199254740992.0;
}


/* a permutation of 0 .. 2^bits - 1 chosen by key; bits is even, 8 to 62 */

static uint64_t
permute(uint64_t x, unsigned bits, uint64_t key)
{
    unsigned  i;
    uint64_t  mask;

    mask = ((uint64_t) 1 << bits) - 1;
    x &= mask;

    for (i = 0; i < 3; i++) {
        x = (x * (2 * mix(key + i) + 1) + (key >> 7)) & mask;
        x ^= x >> (bits / 2);
    }

    return x;
}


static char *
put(char *p, const char *s)
{
    while (*s) {
        *p++ = *s++;
    }

    return p;
}


static char *
put_number(char *p, uint64_t n, unsigned width)
{
    char      digits[24];
    unsigned  i;

    i = 0;

    do {
        digits[i++] = '0' + n % 10;
        n /= 10;
    } while (n || i < width);

    while (i) {
        *p++ = digits[--i];
    }

    return p;
}


static char *
put_word(const generator_t *g, char *p, unsigned w)
{
    memcpy(p, g->words[w], g->word_len[w]);

    return p + g->word_len[w];
}


/* n characters of base 64, 62 of them where `plain`, from the low bits of x */

static char *
put_id(char *p, uint64_t x, unsigned n)
{
    while (n--) {
        *p++ = base64[x & 63];
        x >>= 6;
    }

    return p;
}


/*
 * n words drawn by Zipf, then two that are a permutation of k; above 2^32 of
 * one site a number would follow.
 */

static char *
put_slug(const generator_t *g, char *p, const site_t *s, uint64_t k,
    unsigned n, char separator)
{
    uint64_t  x, r;

    r = mix(s->h ^ k * 0x9e3779b97f4a7c15);

    while (n--) {
        p = put_word(g, p, g->draw[r & (DRAWS - 1)]);
        *p++ = separator;
        r = mix(r);
    }

    x = permute(k, 2 * WORD_BITS, s->h);

    p = put_word(g, p, x >> WORD_BITS);
    *p++ = separator;
    p = put_word(g, p, x & (VOCABULARY - 1));

    if (k >> 2 * WORD_BITS) {
        *p++ = separator;
        p = put_number(p, k >> 2 * WORD_BITS, 1);
    }

    return p;
}


/*
 * The path of directory d: a tree in which d's parent is (d - 1) / branch, of
 * branch 3 to 18 by site.
 */

static char *
put_directory(const generator_t *g, char *p, const site_t *s, uint64_t d)
{
    uint64_t  r, up[8];
    unsigned  n, branch;

    branch = 3 + (s->h >> 40) % 16;

    for (n = 0; d && n < 8; n++) {
        up[n] = d;
        d = (d - 1) / branch;
    }

    while (n) {
        r = mix(s->h + up[--n]);
        p = put_word(g, p, g->draw[r & (DRAWS - 1)]);

        if ((r >> 16) % 4 == 0) {
            *p++ = (s->h & 1) ? '-' : '_';
            p = put_word(g, p, g->draw[(r >> 24) & (DRAWS - 1)]);
        }

        *p++ = '/';
    }

    return p;
}


/*
 * The directory of the k-th document: neighbours lie together, and old
 * directories get more than new ones.
 */

static uint64_t
directory(const site_t *s, uint64_t k)
{
    double    u;
    uint64_t  r;

    r = mix(s->h ^ (k / 6) << 1);
    u = (double) (r >> 40) / 16777216.0;

    return (uint64_t) (u * u * (double) (k / 12 + 3));
}


static char *
put_date(char *p, const site_t *s, uint64_t k, char separator)
{
    uint64_t  day;

    /* 1 to 16 documents a day, from 2006 to 2012 on */

    day = (s->h >> 20) % 2500 + k / (1 + (s->h >> 50) % 16);

    p = put_number(p, 2006 + day / 360 % 20, 4);
    *p++ = separator;
    p = put_number(p, 1 + day / 30 % 12, 2);

    if (s->h & 0x100) {
        *p++ = separator;
        p = put_number(p, 1 + day % 30, 2);
    }

    return p;
}


/* increases with k, so that it is distinct within its site */

static uint64_t
number(const site_t *s, uint64_t k)
{
    uint64_t  step;

    step = 1 + (s->h >> 30) % 37;

    return (s->h >> 12) % 3000000 + k * step + mix(s->h + k) % step;
}


static char *
put_host(char *p, const generator_t *g, const site_t *s)
{
    uint64_t     x;
    unsigned     i, n;

    static const char  consonants[] = "bcdfghklmnprstvz";
    static const char  vowels[] = "aeio";

    p = put(p, (s->h >> 8) % 4 ? "https://" : "http://");

    n = s->rank >> 24 ? 6 : 4;
    x = permute(s->rank, 6 * n, g->seed);

    if (s->kind == KIND_BLOG && (s->h >> 16) % 3 == 0) {
        n |= 8;
    } else {
        p = put(p, prefixes[(s->h >> 10) % 16]);
    }

    for (i = 0; i < (n & 7); i++) {
        *p++ = consonants[x & 15];
        *p++ = vowels[(x >> 4) & 3];
        x >>= 6;
    }

    if (n & 8) {
        return put(p, hosting[(s->h >> 18) % 4]);
    }

    p = put(p, endings[(s->h >> 14) % 16]);
    *p++ = '.';

    return put(p, tlds[(s->h >> 24) % (sizeof(tlds) / sizeof(tlds[0]))]);
}


static char *
put_code(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    /* one user has a few projects in a row */

    p = put_word(g, p, mix(s->h ^ k / 3) & (VOCABULARY - 1));
    p = put_word(g, p, mix(s->h ^ k / 3) >> 20 & 4095);
    *p++ = '/';
    p = put_slug(g, p, s, k, r % 2, '-');

    switch ((r >> 8) % 16) {
    case 0:
        p = put(p, "/issues/");
        return put_number(p, (r >> 16) % 900, 1);
    case 1:
        return put(p, "/blob/master/README.md");
    case 2:
        return put(p, "/wiki");
    }

    return p;
}


static char *
put_media(char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    if (s->h & 0x200) {
        p = put(p, "watch?v=");
        p = put_id(p, permute(k, 60, s->h), 10);
        *p++ = base64[(r & 15) << 2];
        return r >> 8 & 7 ? p : put(p, "&feature=youtu.be");
    }

    p = put_id(p, permute(k, 36, s->h), 6);

    return r & 1 ? put(p, ".jpg") : p;
}


static char *
put_social(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    if (s->h & 0x200) {
        p = put_word(g, p, g->draw[r & (DRAWS - 1)]);
        p = put_word(g, p, (r >> 20) & (VOCABULARY - 1));
        p = put(p, "/status/");
        return put_number(p, 200000000000000000 + (number(s, k) << 32)
                             + (r >> 34), 1);
    }

    p = put(p, "r/");
    r = mix(s->h ^ (k / 5));
    p = put_word(g, p, g->draw[r & (DRAWS - 1)]);
    p = put_word(g, p, g->draw[r >> 24 & (DRAWS - 1)]);
    p = put(p, "/comments/");
    p = put_id(p, permute(k, 30, s->h), 5);
    *p++ = '/';
    p = put_slug(g, p, s, k, (r >> 32) % 6, '_');
    *p++ = '/';

    return p;
}


static char *
put_news(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    if (s->h & 0x400) {
        p = put_date(p, s, k, '/');
        *p++ = '/';
        p = put(p, sections[mix(s->h + k / 4) % 16]);
        *p++ = '/';
        p = put_slug(g, p, s, k, 1 + r % 5, '-');

    } else {
        p = put(p, sections[mix(s->h + k / 4) % 16]);
        *p++ = '/';

        if (s->h & 0x800) {
            p = put(p, "article");
            *p++ = s->h & 0x1000 ? '-' : '/';
        }

        p = put_number(p, number(s, k), 1);
        *p++ = '/';
        p = put_slug(g, p, s, k, r % 5, '-');
        p = put(p, ".html");
    }

    if ((r >> 32) % 20 == 0) {
        p = put(p, "?utm_source=feed&utm_medium=rss");
    }

    return p;
}


static char *
put_forum(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    switch ((s->h >> 9) & 3) {

    case 0:
        p = put(p, "forum/showthread.php?t=");
        return put_number(p, number(s, k), 1);

    case 1:
        p = put(p, "viewtopic.php?f=");
        p = put_number(p, 1 + mix(s->h ^ k / 4) % 60, 1);
        p = put(p, "&t=");
        return put_number(p, number(s, k), 1);

    case 2:
        p = put(p, "threads/");
        p = put_slug(g, p, s, k, r % 4, '-');
        *p++ = '.';
        p = put_number(p, number(s, k), 1);
        *p++ = '/';
        return p;
    }

    p = put(p, "questions/");
    p = put_number(p, number(s, k), 1);
    *p++ = '/';

    return put_slug(g, p, s, k, 1 + r % 4, '-');
}


static char *
put_shop(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    r = mix(s->h + k);

    if (s->h & 0x400) {
        p = put(p, "product.php?id_product=");
        p = put_number(p, number(s, k), 1);
        return r % 3 ? p : put(p, "&id_lang=1");
    }

    p = put_directory(g, p, s, directory(s, k));
    p = put_slug(g, p, s, k, r % 3, '-');
    *p++ = '-';
    p = put_number(p, number(s, k), 1);

    return put(p, ".html");
}


static char *
put_wiki(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    char     *start;
    uint64_t  r;

    r = mix(s->h + k);
    p = put(p, "wiki/");
    start = p;

    if (r % 12 == 0) {
        p = put(p, r & 64 ? "File:" : "Category:");
    } else if (r % 12 == 1) {
        p = put(p, "%C3%89");
    }

    p = put_slug(g, p, s, k, (r >> 8) % 2, '_');

    if (*start >= 'a' && *start <= 'z') {
        *start -= 32;
    }

    return p;
}


static char *
put_docs(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    uint64_t  r;

    static const char  *ends[] = {
        ".html", ".html", "/", ".pdf", ".aspx", "", "", ".htm"
    };

    r = mix(s->h + k);

    p = put_directory(g, p, s, directory(s, k));

    if (r % 40 == 0) {
        p = put_word(g, p, g->draw[r >> 44]);
        p = put(p, "%20");
    }

    p = put_slug(g, p, s, k, (r >> 8) % 3, (s->h & 1) ? '-' : '_');
    p = put(p, ends[((s->h >> 9) + (r % 9 == 0)) & 7]);

    if ((r >> 32) % 16 == 0) {
        p = put(p, "?lang=");
        p = put(p, (r >> 40) & 1 ? "en" : "de");
    }

    return p;
}


/* the k-th URL of a site; p has URL_ROOM bytes */

static char *
put_url(const generator_t *g, char *p, const site_t *s, uint64_t k)
{
    p = put_host(p, g, s);
    *p++ = '/';

    if (k == 0 && (s->h >> 60) % 2) {
        return p;
    }

    switch (s->kind) {

    case KIND_CODE:
        return put_code(g, p, s, k);

    case KIND_MEDIA:
        return put_media(p, s, k);

    case KIND_SOCIAL:
        return put_social(g, p, s, k);

    case KIND_WIKI:
        return put_wiki(g, p, s, k);

    case KIND_NEWS:
        return put_news(g, p, s, k);

    case KIND_FORUM:
        return put_forum(g, p, s, k);

    case KIND_SHOP:
        return put_shop(g, p, s, k);

    case KIND_DOCS:
        return put_docs(g, p, s, k);

    case KIND_BLOG:
        p = put_date(p, s, k, '/');
        *p++ = '/';
        p = put_slug(g, p, s, k, 1 + mix(s->h + k) % 4, '-');
        return put(p, s->h & 0x800 ? ".html" : "/");
    }

    p = put_directory(g, p, s, directory(s, k));

    return put_slug(g, p, s, k, 0, '-');
}


/*
 * The largest sites have one kind each, so that a seed does not decide what
 * most URLs look like; the long tail is small sites and blogs.
 */

static void
make_site(const generator_t *g, uint64_t rank, site_t *s)
{
    unsigned  x;

    static const uint8_t  tail[] = {
        KIND_SMALL, KIND_SMALL, KIND_SMALL, KIND_SMALL, KIND_BLOG, KIND_BLOG,
        KIND_BLOG, KIND_NEWS, KIND_NEWS, KIND_DOCS, KIND_DOCS, KIND_DOCS,
        KIND_FORUM, KIND_SHOP, KIND_SHOP, KIND_WIKI
    };

    s->rank = rank;
    s->h = mix(g->seed ^ mix(rank + 1));

    if (rank < 40) {
        s->kind = rank % (KINDS - 1);
        return;
    }

    x = (s->h >> 32) % 32;

    s->kind = x < 16 ? tail[x] : rank < 2000 ? x % (KINDS - 1) : tail[x - 16];
}


static counter_t *
count_site(generator_t *g, uint64_t rank)
{
    size_t      i, j, mask;
    counter_t  *c, *old;

    if (2 * (g->nsites + 1) > g->mask) {
        old = g->sites;
        mask = g->mask ? 2 * g->mask + 1 : 65535;

        c = calloc(mask + 1, sizeof(counter_t));
        if (c == NULL) {
            fprintf(stderr, "generate: out of memory\n");
            exit(2);
        }

        for (i = 0; old && i <= g->mask; i++) {
            if (old[i].rank) {
                for (j = mix(old[i].rank) & mask; c[j].rank; ) {
                    j = (j + 1) & mask;
                }

                c[j] = old[i];
            }
        }

        free(old);
        g->sites = c;
        g->mask = mask;
    }

    i = mix(rank + 1) & g->mask;

    while (g->sites[i].rank && g->sites[i].rank != rank + 1) {
        i = (i + 1) & g->mask;
    }

    if (g->sites[i].rank == 0) {
        g->sites[i].rank = rank + 1;
        g->nsites++;
    }

    return &g->sites[i];
}


static void
flush(generator_t *g)
{
    char     *p;
    ssize_t   n;

    for (p = g->out; g->len; p += n, g->len -= n) {
        n = write(1, p, g->len);

        if (n < 0) {
            if (errno == EINTR) {
                n = 0;
                continue;
            }

            fprintf(stderr, "generate: write: %s\n", strerror(errno));
            exit(2);
        }

        g->bytes += n;
    }
}


static void
emit(generator_t *g, const site_t *s, uint64_t k)
{
    char  *p;

    if (g->len + URL_ROOM > OUT_SIZE) {
        flush(g);
    }

    p = put_url(g, g->out + g->len, s, k);
    *p++ = '\n';

    g->len = p - g->out;
}


static uint64_t
draw_rank(generator_t *g)
{
    double  r;

    r = SITE_C * (pow(uniform(g), -1 / SITE_A) - 1);

    return r < 6e10 ? (uint64_t) r : (uint64_t) 6e10;
}


/* of a site's n URLs: half the time a recent one, half one of the oldest */

static uint64_t
draw_known(generator_t *g, uint64_t n)
{
    double  u;

    u = uniform(g);
    u = u * u * u * (double) n;

    return next(g) & 1 ? (uint64_t) u : n - 1 - (uint64_t) u;
}


static void
generate(generator_t *g, uint64_t n)
{
    double      stop;
    site_t      s;
    uint64_t    left;
    counter_t  *c;

    c = NULL;
    left = 0;
    stop = g->run > 1 ? log(1 - 1 / g->run) : 0;

    while (n--) {

        if (left == 0) {
            make_site(g, draw_rank(g), &s);
            c = count_site(g, s.rank);
            left = stop < 0 ? 1 + (uint64_t) (log(uniform(g)) / stop) : 1;
        }

        left--;

        if (g->dup > 0 && c->urls && uniform(g) < g->dup) {
            emit(g, &s, draw_known(g, c->urls));
            continue;
        }

        emit(g, &s, c->urls++);
    }

    flush(g);
}


/* whether word w differs from those before; it is one of them then */

static int
new_word(generator_t *g, size_t w)
{
    char      *p;
    size_t     i;
    uint64_t   h;

    h = 0;

    for (p = g->words[w]; *p; p++) {
        h = mix(h + (uint8_t) *p);
    }

    for (i = h % (2 * VOCABULARY); g->word_set[i]; ) {
        if (strcmp(g->words[g->word_set[i] - 1], g->words[w]) == 0) {
            return 0;
        }

        i = (i + 1) % (2 * VOCABULARY);
    }

    g->word_set[i] = w + 1;

    return 1;
}


/*
 * After the common words, pseudo-words of one to four syllables: rare words
 * are longer.  Distinct: a repetition is drawn again.
 */

static void
make_words(generator_t *g)
{
    char     *p;
    double    sum, acc;
    size_t    i, n, w;

    static const char  *heads[] = {
        "b", "br", "c", "ch", "d", "f", "g", "h", "l", "m", "n", "p", "pr",
        "r", "s", "st", "t", "tr", "v", "w", "", "", "k", "sh"
    };
    static const char  *cores[] = {
        "a", "e", "i", "o", "u", "ea", "er", "ar", "in", "on", "an", "en",
        "al", "or", "es", "at"
    };
    static const char  *tails[] = {
        "", "", "", "s", "n", "t", "d", "ng", "ck", "st", "ll", "y"
    };

    w = 0;

    for (i = 0; common[i]; i++) {
        strcpy(g->words[w], common[i]);
        w += new_word(g, w);
    }

    while (w < VOCABULARY) {
        p = g->words[w];
        n = 1 + next(g) % (1 + 3 * w / VOCABULARY);

        do {
            p = put(p, heads[next(g) % 24]);
            p = put(p, cores[next(g) % 16]);
        } while (n--);

        p = put(p, tails[next(g) % 12]);
        *p = '\0';

        w += (p - g->words[w] > 2 && new_word(g, w));
    }

    sum = 0;

    for (w = 0; w < VOCABULARY; w++) {
        g->word_len[w] = strlen(g->words[w]);
        sum += 1 / (w + 4.0);
    }

    acc = 0;
    i = 0;

    for (w = 0; w < VOCABULARY; w++) {
        acc += 1 / (w + 4.0) / sum;

        while (i < DRAWS && (i + 0.5) / DRAWS < acc) {
            g->draw[i++] = w;
        }
    }

    while (i < DRAWS) {
        g->draw[i++] = VOCABULARY - 1;
    }
}


static void
usage(void)
{
    fprintf(stderr,
            "usage: generate [-n URLS] [-s SEED] [-r RUN] [-d SHARE] [-v]\n"
            "  -n  how many lines (1000000)\n"
            "  -s  equal seeds give equal output (1)\n"
            "  -r  mean links in a row on one site (4)\n"
            "  -d  share of duplicates, 0 to 0.99 (0: all are distinct)\n"
            "  -v  sums to standard error at the end\n");
    exit(2);
}


int
main(int argc, char **argv)
{
    int           opt, verbose;
    uint64_t      n;
    generator_t  *g;

    g = calloc(1, sizeof(generator_t));
    if (g == NULL) {
        return 2;
    }

    n = 1000000;
    verbose = 0;
    g->seed = 1;
    g->run = 4;

    while ((opt = getopt(argc, argv, "n:s:r:d:v")) != -1) {
        switch (opt) {
        case 'n':
            n = strtoull(optarg, NULL, 10);
            break;
        case 's':
            g->seed = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            g->run = strtod(optarg, NULL);
            break;
        case 'd':
            g->dup = strtod(optarg, NULL);
            break;
        case 'v':
            verbose = 1;
            break;
        default:
            usage();
        }
    }

    if (optind != argc || g->run < 1 || g->dup < 0 || g->dup > 0.99) {
        usage();
    }

    g->out = malloc(OUT_SIZE);
    if (g->out == NULL) {
        return 2;
    }

    /* the words are the same whatever the seed: language does not change */

    g->state = 20011101;
    make_words(g);

    g->state = mix(g->seed);
    g->seed = mix(~g->seed);

    generate(g, n);

    if (verbose) {
        fprintf(stderr, "urls %llu sites %zu bytes %llu\n",
                (unsigned long long) n, g->nsites,
                (unsigned long long) g->bytes);
    }

    return 0;
}
