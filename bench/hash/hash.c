
/*
 * The load of crawler nodes under hash functions for URLs, and how often two
 * URLs have equal hashes.
 *
 *     build/bench/hash [-n URLS] [-m NODES]  < URLS
 *
 * URLS: canonical, all different.  For each function and each way to take the
 * node from it: the load of each node, the fullest against the mean, and the
 * matches, that is URLs whose hash an earlier one had: of site and path
 * (36 bits) for the ways by site and path, of 32 bits for the whole URL.
 */


#include "us_base.h"
#include "us_hash.h"
#include "url/us_two_hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>


#define NODES  64


typedef uint32_t (*hash_pt)(us_str_t s);


typedef struct {
    const char   *name;
    hash_pt       hash;
} function_t;


/* Aho, Sethi, Ullman: Compilers, 1986, section 7.6, by P. J. Weinberger */

static uint32_t
hash_pjw(us_str_t s)
{
    size_t    i;
    uint32_t  h, g;

    for (h = 0, i = 0; i < s.len; i++) {
        h = (h << 4) + s.data[i];
        g = h & 0xf0000000;

        if (g) {
            h ^= g >> 24;
            h ^= g;
        }
    }

    return h;
}


/* Li, Feng: "Two Effective Functions on Hashing URL", 2004: bytes by turns */

static uint32_t
hash_hfip(us_str_t s)
{
    size_t    i;
    uint32_t  h;

    for (h = 0, i = 0; i < s.len; i++) {
        h ^= (uint32_t) s.data[i] << 8 * (i % 4);
    }

    return h;
}


/* the other of the two: bytes weighted by their place */

static uint32_t
hash_hf(us_str_t s)
{
    size_t    i;
    uint32_t  h;

    for (h = 0, i = 0; i < s.len; i++) {
        h += s.data[i] * 3 * (uint32_t) (i + 1);
    }

    return h;
}


/* ours; see us_two_hash.c: the ranges are taken below */

static uint32_t
hash_kr(us_str_t s)
{
    size_t    i;
    uint32_t  h;

    for (h = 0, i = 0; i < s.len; i++) {
        h = 31 * h + s.data[i];
    }

    return h;
}


static uint32_t
hash_crc32(us_str_t s)
{
    return crc32(0, s.data, s.len);
}


static uint32_t
hash_sip(us_str_t s)
{
    static const uint8_t  key[16] = "a fixed hash key";

    return (uint32_t) us_hash(key, 0, s.data, s.len);
}


static const function_t  functions[] = {
    { "31 h + c (ours)", hash_kr },
    { "PJW", hash_pjw },
    { "hfip", hash_hfip },
    { "hf", hash_hf },
    { "crc32", hash_crc32 },
    { "SipHash-1-3", hash_sip },
    { NULL, NULL }
};

static const char  *ways[] = { "site", "path", "site+path", "whole URL" };


static int
compare(const void *a, const void *b)
{
    const uint64_t  *x, *y;

    x = a;
    y = b;

    return (*x > *y) - (*x < *y);
}


static size_t
matches(uint64_t *values, size_t n)
{
    size_t  i, same;

    qsort(values, n, sizeof(uint64_t), compare);

    for (same = 0, i = 1; i < n; i++) {
        same += values[i] == values[i - 1];
    }

    return same;
}


/* the matches that a uniform hash of so many bits would have */

static double
uniform_matches(double n, double bits)
{
    double  m;

    m = pow(2, bits);

    return n + m * expm1(-n / m);
}


int
main(int argc, char **argv)
{
    int                c;
    char              *line, *host, *path;
    size_t             n, max, size, i, way, best, load[NODES];
    ssize_t            len;
    uint32_t           node;
    uint64_t          *values;
    unsigned           nodes, k;
    us_str_t          *urls, site, rest;
    us_two_hash_t      h;
    const function_t  *f;

    nodes = 7;
    max = 246951;

    while ((c = getopt(argc, argv, "n:m:")) != -1) {
        switch (c) {
        case 'n':
            max = strtoull(optarg, NULL, 10);
            break;
        case 'm':
            nodes = atoi(optarg);
            break;
        default:
            return 2;
        }
    }

    if (nodes < 1 || nodes > NODES || max == 0) {
        return 2;
    }

    urls = calloc(max, sizeof(us_str_t));
    values = calloc(max, sizeof(uint64_t));
    line = NULL;
    size = 0;

    for (n = 0; n < max && (len = getline(&line, &size, stdin)) > 0; n++) {
        urls[n].data = (uint8_t *) strndup(line, len - 1);
        urls[n].len = len - 1;
    }

    printf("%-16s %-10s", "", "node by");

    for (k = 0; k < nodes; k++) {
        printf(" %7u", k);
    }

    printf("  %8s %9s\n", "max/mean", "matches");

    for (f = functions; f->name; f++) {
        for (way = 0; way < 4; way++) {
            memset(load, 0, sizeof(load));

            for (i = 0; i < n; i++) {
                host = strstr((char *) urls[i].data, "://");
                host = host ? host + 3 : (char *) urls[i].data;
                path = host + strcspn(host, "/?");

                site.data = (uint8_t *) host;
                site.len = path - host;
                rest.data = (uint8_t *) path;
                rest.len = urls[i].data + urls[i].len - rest.data;

                h.site = f->hash(site) & ((1 << US_SITE_HASH_BITS) - 1);
                h.path = f->hash(rest) & ((1 << US_PATH_HASH_BITS) - 1);
                values[i] = (uint64_t) h.site << US_PATH_HASH_BITS | h.path;

                switch (way) {
                case 0:
                    node = h.site % nodes;
                    break;
                case 1:
                    node = h.path % nodes;
                    break;
                case 2:
                    node = (h.site + h.path) % nodes;
                    break;
                default:
                    values[i] = f->hash(urls[i]);
                    node = values[i] % nodes;
                }

                load[node]++;
            }

            printf("%-16s %-10s", way ? "" : f->name, ways[way]);

            for (best = 0, k = 0; k < nodes; k++) {
                printf(" %7zu", load[k]);
                best = load[k] > best ? load[k] : best;
            }

            printf("  %8.4f", best * (double) nodes / n);

            if (way == 0 || way == 1) {
                printf("\n");
                continue;
            }

            printf(" %9zu\n", matches(values, n));
        }
    }

    printf("%-16s %-10s %*s  %8.4f %9.1f  of 36 bits, %.1f of 32\n",
           "uniform", "", 8 * nodes - 1, "expected", 1 + sqrt((nodes - 1.0) / n)
           * (nodes == 7 ? 1.352 : sqrt(2 * log(nodes))),
           uniform_matches(n, 36), uniform_matches(n, 32));

    return 0;
}
