
/*
 * Lengths of a prefix code from counts.
 *
 * Two queues build the tree over the sorted counts (van Leeuwen, 1976): the
 * leaves, and the inner nodes, which come into being in ascending order by
 * themselves.  Depths are then read off from the root down.  Codes longer
 * than the limit are cut to it, which overfills the code; as long as it is
 * overfull, one of the longest codes that can be split below the limit makes
 * room (the heuristic of zlib's trees.c, gen_bitlen).  Since n <= 2^(max-1),
 * it ends.
 */


#include "us_huffman.h"

#include <stdlib.h>


static void us_huffman_tree(uint64_t *w, uint64_t *up, size_t n,
    uint32_t *depths);
static void us_huffman_limit(const uint32_t *depths, size_t n, unsigned max,
    uint16_t *nlen);
static int us_huffman_cmp(const void *one, const void *two);


void
us_huffman_lengths(const uint32_t *counts, uint16_t *sym, size_t n,
    unsigned max, uint16_t nlen[US_HUFFMAN_MAX + 1], uint64_t *work)
{
    size_t     i;
    uint64_t  *w;
    uint32_t   depths[US_HUFFMAN_MAX + 1];

    w = work;

    for (i = 0; i < n; i++) {
        w[i] = (uint64_t) counts[sym[i]] << 16 | (uint16_t) ~sym[i];
    }

    qsort(w, n, sizeof(uint64_t), us_huffman_cmp);

    for (i = 0; i < n; i++) {
        sym[n - 1 - i] = (uint16_t) ~w[i];
        w[i] >>= 16;
    }

    us_huffman_tree(w, work + n, n, depths);
    us_huffman_limit(depths, n, max, nlen);
}


/* from the weights of n leaves, ascending, to the inner nodes by depth */

static void
us_huffman_tree(uint64_t *w, uint64_t *up, size_t n, uint32_t *depths)
{
    size_t    j, k, leaf, node;
    uint32_t  l;
    uint64_t  sum;

    /* w[k] becomes the weight of inner node k; leaf >= k always */

    leaf = 0;
    node = 0;

    for (k = 0; k < n - 1; k++) {
        sum = 0;

        for (j = 0; j < 2; j++) {
            if (node < k && (leaf == n || w[node] < w[leaf])) {
                sum += w[node];
                w[node++] = k;

            } else {
                sum += w[leaf++];
            }
        }

        w[k] = sum;
    }

    /* w[k] is now the parent of inner node k, up[k] becomes its depth */

    memset(depths, 0, (US_HUFFMAN_MAX + 1) * sizeof(uint32_t));

    up[n - 2] = 0;
    depths[0] = 1;

    for (k = n - 2; k-- > 0; /* void */) {
        l = (uint32_t) up[w[k]] + 1;

        if (l > US_HUFFMAN_MAX) {
            l = US_HUFFMAN_MAX;       /* longer codes are cut in any case */
        }

        up[k] = l;
        depths[l]++;
    }
}


/* from inner nodes by depth to leaves by depth, none below max */

static void
us_huffman_limit(const uint32_t *depths, size_t n, unsigned max,
    uint16_t *nlen)
{
    size_t    i, k;
    uint32_t  l, kraft, full;

    memset(nlen, 0, sizeof(uint16_t) * (US_HUFFMAN_MAX + 1));

    for (l = 1, i = 0; i < n; l++) {
        k = 2 * (size_t) depths[l - 1] - depths[l];

        if (l >= max) {
            nlen[max] += (uint16_t) (n - i);
            break;
        }

        nlen[l] = (uint16_t) k;
        i += k;
    }

    kraft = 0;
    full = (uint32_t) 1 << max;

    for (l = 1; l <= max; l++) {
        kraft += (uint32_t) nlen[l] << (max - l);
    }

    while (kraft > full) {
        for (l = max - 1; nlen[l] == 0; l--) { /* void */ }

        nlen[l]--;
        nlen[l + 1] += 2;
        nlen[max]--;

        kraft--;
    }
}


static int
us_huffman_cmp(const void *one, const void *two)
{
    uint64_t  a = *(const uint64_t *) one, b = *(const uint64_t *) two;

    return (a > b) - (a < b);
}
