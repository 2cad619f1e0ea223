
/*
 * Clusters of 1 to 1,024 shards, by the map and slot code of the module:
 *
 *     build/bench/simulate balance [-m SHARDS] < URLS
 *         the fullest shard against the mean, by both keys, and by a map for
 *         which half of the URLs were the sample
 *     build/bench/simulate split -m SHARDS -k url|site -o PREFIX < URLS
 *         the URLs of each shard, in PREFIX0, PREFIX1 ...
 *     build/bench/simulate zipf [-n SITES]
 *         the same by site, of sites with Zipf sizes
 *     build/bench/simulate growth
 *         what former owners cost while a cluster grows
 *     build/bench/simulate paper [-u URLS] [-b BYTES] [-l BYTES]
 *         what a cluster for so many URLs needs
 *
 * URLS: canonical.  A line of figures is a row of a table (Markdown).
 */


#include "us_base.h"
#include "cluster/us_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define SHARDS     1024
#define BATCHES    20                 /* that are split, for a mean */


static const unsigned  sizes[] = { 2, 4, 7, 16, 64, 256, 1024 };

#define SIZES  (sizeof(sizes) / sizeof(sizes[0]))


static void
die(const char *why)
{
    fprintf(stderr, "simulate: %s\n", why);
    exit(1);
}


/* shards `from` to `to` - 1, whose uuids are made of their numbers */

static us_shard_t *
shards(unsigned from, unsigned to)
{
    char        *text, err[256];
    unsigned     i;
    us_shard_t  *s;

    s = calloc(to - from, sizeof(us_shard_t));
    text = calloc(to - from, 80);

    if (s == NULL || text == NULL) {
        die("out of memory");
    }

    for (i = from; i < to; i++, text += 80) {
        (void) snprintf(text, 80, "%u=%032x,us-%u", i, i + 1, i);

        if (us_shard_parse(&s[i - from],
                           (us_str_t) { strlen(text), (uint8_t *) text }, err,
                           sizeof(err))
            == -1)
        {
            die(err);
        }
    }

    return s;
}


/* of n shards; by weight, or NULL */

static us_map_t *
first(unsigned n, const uint32_t *weight)
{
    char            err[256];
    us_map_t       *map;
    static uint8_t  cluster[16];

    map = us_map_first(cluster, us_string("crawler/1"), US_KEY_URL,
                       shards(0, n), n, weight, err, sizeof(err));

    if (map == NULL) {
        die(err);
    }

    return map;
}


static us_map_t *
grow(us_map_t *map, unsigned to)
{
    char       err[256];
    us_map_t  *next;

    next = us_map_grow(map, shards(map->nshards, to), to - map->nshards, NULL,
                       err, sizeof(err));

    if (next == NULL) {
        die(err);
    }

    us_map_free(map);

    return next;
}


/* the fullest shard against the mean, of weights by slot */

static double
fullest(const us_map_t *map, const double *weight)
{
    double    load[SHARDS], sum, most;
    unsigned  i;

    memset(load, 0, sizeof(load));

    for (i = 0, sum = 0; i < US_SLOTS; i++) {
        load[map->slots[i].owner] += weight[i];
        sum += weight[i];
    }

    for (i = 0, most = 0; i < map->nshards; i++) {
        most = load[i] > most ? load[i] : most;
    }

    return most / (sum / map->nshards);
}


/* by a map of a sample, or NULL */

static void
print_balance(const char *name, const double *weight, const uint32_t *sample,
    unsigned only)
{
    unsigned   i;
    us_map_t  *map;

    printf("| %s |", name);

    for (i = 0; i < SIZES; i++) {
        if (only == 0 || only == sizes[i]) {
            map = first(sizes[i], sample);
            printf(" %.4f |", fullest(map, weight));
            us_map_free(map);
        }
    }

    printf("\n");
}


/*
 * Every second URL is the sample; the balance by it is that of the other half.
 */

static void
balance(unsigned only)
{
    char             *line;
    size_t            size, n;
    ssize_t           len;
    us_str_t          url;
    unsigned          slot;
    static double     by_url[US_SLOTS], by_site[US_SLOTS], rest[US_SLOTS];
    static uint32_t   sample[US_SLOTS];

    for (n = 0, line = NULL; (len = getline(&line, &size, stdin)) > 0; n++) {
        len -= line[len - 1] == '\n';
        url = (us_str_t) { (size_t) len, (uint8_t *) line };
        by_url[us_slot_of(US_KEY_URL, url)]++;
        slot = us_slot_of(US_KEY_SITE, url);
        by_site[slot]++;
        rest[slot] += n % 2;
        sample[slot] += n % 2 == 0;
    }

    free(line);

    if (n == 0) {
        die("no URLs");
    }

    for (slot = 0; slot < US_SLOTS; slot++) {
        sample[slot]++;
    }

    print_balance("url", by_url, NULL, only);
    print_balance("site", by_site, NULL, only);
    print_balance("site, by a sample", rest, sample, only);
}


static void
split(unsigned n, us_key_t key, const char *prefix)
{
    char       name[1024], *line;
    FILE      *files[SHARDS];
    size_t     size;
    ssize_t    len;
    unsigned   i;
    us_map_t  *map;
    us_str_t   url;

    if (n == 0 || n > SHARDS || prefix == NULL) {
        die("split needs -m and -o");
    }

    for (i = 0; i < n; i++) {
        (void) snprintf(name, sizeof(name), "%s%u", prefix, i);
        files[i] = fopen(name, "w");

        if (files[i] == NULL) {
            die("a file could not be made");
        }
    }

    map = first(n, NULL);

    for (line = NULL; (len = getline(&line, &size, stdin)) > 0; /* void */ ) {
        url = (us_str_t) { (size_t) len - (line[len - 1] == '\n'),
                           (uint8_t *) line };
        (void) fwrite(line, 1, (size_t) len,
                      files[map->slots[us_slot_of(key, url)].owner]);
    }

    for (i = 0; i < n; i++) {
        if (fclose(files[i]) != 0) {
            die("a file could not be written");
        }
    }

    free(line);
    us_map_free(map);
}


static void
zipf(unsigned sites)
{
    int                   n;
    char                  name[64];
    double                sum;
    unsigned              i, k;
    static double         weight[US_SLOTS];
    static const double   power[] = { 0.8, 1.0, 1.2 };

    for (k = 0; k < sizeof(power) / sizeof(power[0]); k++) {

        memset(weight, 0, sizeof(weight));

        for (i = 1, sum = 0; i <= sites; i++) {
            n = snprintf(name, sizeof(name), "site%u.example", i);
            weight[us_slot((us_str_t) { (size_t) n, (uint8_t *) name })]
                += pow(i, -power[k]);
            sum += pow(i, -power[k]);
        }

        (void) snprintf(name, sizeof(name), "%.1f, the largest site %.2f %%",
                        power[k], 100 / sum);
        print_balance(name, weight, NULL, 0);
    }
}


static double
questions(const us_map_t *map)
{
    double    n;
    unsigned  i;

    for (i = 0, n = 0; i < US_SLOTS; i++) {
        n += map->slots[i].nformer;
    }

    return n / US_SLOTS;
}


static unsigned
most_former(const us_map_t *map)
{
    unsigned  i, most;

    for (i = 0, most = 0; i < US_SLOTS; i++) {
        most = map->slots[i].nformer > most ? map->slots[i].nformer : most;
    }

    return most;
}


/*
 * subrequests for a batch of links, of which a tenth is new and the owners have
 * the others
 */

static double
subrequests(const us_map_t *map, unsigned batch)
{
    int                 n;
    char                url[64];
    uint8_t             rounds[4][SHARDS];
    unsigned            i, k, b;
    static unsigned     serial;
    unsigned long       sent;
    const us_owners_t  *o;

    for (b = 0, sent = 0; b < BATCHES; b++) {

        memset(rounds, 0, sizeof(rounds));

        for (i = 0; i < batch; i++) {
            n = snprintf(url, sizeof(url), "http://a.example/%u", serial++);
            o = us_map_owners(map, (us_str_t) { (size_t) n, (uint8_t *) url });

            /* without former owners, one /add is enough */

            rounds[o->nformer ? 1 : 0][o->owner] = 1;

            if (o->nformer == 0 || i % 10) {
                continue;
            }

            for (k = 0; k < o->nformer; k++) {
                rounds[2][o->former[k]] = 1;
            }

            rounds[3][o->owner] = 1;
        }

        for (k = 0; k < 4; k++) {
            for (i = 0; i < map->nshards; i++) {
                sent += rounds[k][i];
            }
        }
    }

    return (double) sent / BATCHES;
}


static void
print_growth(const char *history, const us_map_t *map)
{
    size_t         memory;
    unsigned       i;
    static double  even[US_SLOTS];

    for (i = 0; i < US_SLOTS; i++) {
        even[i] = 1;
    }

    memory = sizeof(us_map_t) + map->nshards * sizeof(us_shard_t);

    printf("| %s | %u | %.4f | %.2f | %u | %.1f | %.1f | %.0f | %.0f |\n",
           history, map->nshards, fullest(map, even), questions(map),
           most_former(map), subrequests(map, 1000), subrequests(map, 10000),
           memory / 1024., map->text.len / 1024.);
}


static void
growth(void)
{
    us_map_t  *map;
    unsigned   n;

    for (map = first(1, NULL), n = 1; n < SHARDS; n *= 2) {
        print_growth("doubled", map);
        map = grow(map, n * 2);
    }

    print_growth("doubled", map);
    us_map_free(map);

    for (map = first(1, NULL), n = 1; n <= 256; n++) {
        if ((n & (n - 1)) == 0) {
            print_growth("one by one", map);
        }

        map = grow(map, n + 1);
    }

    us_map_free(map);

    for (n = 4; n <= SHARDS; n *= 4) {
        map = first(n, NULL);
        print_growth("none", map);
        us_map_free(map);
    }
}


/*
 * A cluster that began as one shard and was doubled.  A link is sent to the
 * owner, which has it, and comes back as a line of text; a tenth of the links
 * is new, and goes to all former owners and to the owner once more.
 */

static void
paper(double urls, double bytes, double length)
{
    double     line, sent;
    unsigned   n;
    us_map_t  *map;

    line = length + 16;               /* "123456789012\tseen\t" and the URL */
    map = first(1, NULL);

    for (n = 1; n <= SHARDS; n *= 2) {

        sent = 1 + 0.1 * (questions(map) + (questions(map) > 0));

        if (urls / n <= (double) US_LOCAL_MAX && n >= 16) {
            printf("| %u | %.1f | %.0f | %.2f | %.0f |\n", n, urls / n / 1e6,
                   urls / n * bytes / 1e9, sent, 1e6 * sent * (length + line)
                   / 1e6);
        }

        map = n < SHARDS ? grow(map, n * 2) : map;
    }

    us_map_free(map);
}


int
main(int argc, char **argv)
{
    int          c;
    double       urls, bytes, length;
    unsigned     only, sites;
    us_key_t     key;
    const char  *prefix;

    urls = 100e9;
    bytes = 25;
    length = 75;
    only = 0;
    sites = 1000000;
    key = US_KEY_URL;
    prefix = NULL;

    if (argc < 2) {
        die("balance, split, zipf, growth or paper?");
    }

    optind = 2;

    while ((c = getopt(argc, argv, "b:k:l:m:n:o:u:")) != -1) {
        if (c == 'b') {
            bytes = atof(optarg);

        } else if (c == 'k') {
            key = strcmp(optarg, "site") == 0 ? US_KEY_SITE : US_KEY_URL;

        } else if (c == 'o') {
            prefix = optarg;

        } else if (c == 'l') {
            length = atof(optarg);

        } else if (c == 'm') {
            only = (unsigned) atoi(optarg);

        } else if (c == 'n') {
            sites = (unsigned) atoi(optarg);

        } else if (c == 'u') {
            urls = atof(optarg);

        } else {
            die("unknown option");
        }
    }

    if (strcmp(argv[1], "balance") == 0) {
        balance(only);

    } else if (strcmp(argv[1], "split") == 0) {
        split(only, key, prefix);

    } else if (strcmp(argv[1], "zipf") == 0) {
        zipf(sites);

    } else if (strcmp(argv[1], "growth") == 0) {
        growth();

    } else if (strcmp(argv[1], "paper") == 0) {
        paper(urls, bytes, length);

    } else {
        die("balance, split, zipf, growth or paper?");
    }

    return 0;
}
