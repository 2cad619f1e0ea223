
/*
 * Groups tokens by what follows them, so that one code for the group's tokens
 * loses least against a code for each (k-means under Kullback-Leibler
 * divergence; Dhillon, Mallela, Kumar, 2003).
 *
 *     bits(t, g) = sum over u of  n(t,u) * -log2 p(u | g)
 *
 * Each round moves every token to the group where it is cheapest, then counts
 * the groups again.  Tokens that were seen seldom stay where the first guess
 * put them.  Empty groups are given to the tokens that lose most where they
 * are.
 */


#include "us_kmeans.h"
#include "../us_atomic.h"

#include <math.h>
#include <stdlib.h>


#define US_KMEANS_ROUNDS  6
#define US_KMEANS_SELDOM  24         /* followers that are enough */
#define US_KMEANS_SMOOTH  40.0       /* weight of what follows any token */


typedef struct {
    float     loss;
    uint16_t  token;
} us_kmeans_loss_t;


typedef struct {
    const us_kmeans_pair_t  *follows;
    size_t                   n;
    size_t                   ntokens;
    unsigned                 ngroups;
    uint8_t                 *group;
    double                  *any;     /* p(u), whatever precedes */
    float                   *bits;    /* [ntokens][ngroups]: -log2 p(u | g) */
    us_kmeans_loss_t        *losses;
} us_kmeans_t;


static int
us_kmeans_count(us_kmeans_t *c)
{
    float                   *row;
    double                  *sum;
    size_t                   i, u;
    unsigned                 g;
    const us_kmeans_pair_t  *f;

    sum = calloc(c->ngroups, sizeof(double));
    if (sum == NULL) {
        return -1;
    }

    memset(c->bits, 0, c->ntokens * c->ngroups * sizeof(float));

    for (i = 0; i < c->n; i++) {
        f = &c->follows[i];
        g = c->group[f->prev];

        c->bits[f->next * c->ngroups + g] += (float) f->count;
        sum[g] += f->count;
    }

    for (u = 0; u < c->ntokens; u++) {
        row = c->bits + u * c->ngroups;

        for (g = 0; g < c->ngroups; g++) {
            row[g] = -log2f((row[g]
                             + (float) (US_KMEANS_SMOOTH * c->any[u]))
                            / (float) (sum[g] + US_KMEANS_SMOOTH));
        }
    }

    free(sum);

    return 0;
}


/* the followers of one token: the first, and one past the last */

static size_t
us_kmeans_token(const us_kmeans_t *c, size_t i, double *total)
{
    uint16_t  prev;

    prev = c->follows[i].prev;
    *total = 0;

    for ( /* void */ ; i < c->n && c->follows[i].prev == prev; i++) {
        *total += c->follows[i].count;
    }

    return i;
}


static int
us_kmeans_cmp(const void *one, const void *two)
{
    float  a = ((const us_kmeans_loss_t *) one)->loss;
    float  b = ((const us_kmeans_loss_t *) two)->loss;

    return (a < b) - (a > b);
}


/* gives the empty groups to the tokens that lose most */

static void
us_kmeans_seed(us_kmeans_t *c)
{
    float      loss;
    size_t     i, next, nlosses;
    double     total, p;
    uint8_t    used[256];
    unsigned   g, left;
    uint16_t   token;

    memset(used, 0, sizeof(used));

    for (i = 0; i < c->n; i++) {
        used[c->group[c->follows[i].prev]] = 1;
    }

    for (g = 0, left = 0; g < c->ngroups; g++) {
        left += !used[g];
    }

    nlosses = 0;

    for (i = 0; i < c->n; i = next) {
        loss = 0;
        token = c->follows[i].prev;
        next = us_kmeans_token(c, i, &total);

        for ( /* void */ ; i < next; i++) {
            p = (c->follows[i].count
                 + US_KMEANS_SMOOTH * c->any[c->follows[i].next])
                / (total + US_KMEANS_SMOOTH);
            loss += (float) (c->follows[i].count
                             * (c->bits[c->follows[i].next * c->ngroups
                                        + c->group[token]] + log2(p)));
        }

        if (total >= US_KMEANS_SELDOM) {
            c->losses[nlosses].loss = loss;
            c->losses[nlosses++].token = token;
        }
    }

    qsort(c->losses, nlosses, sizeof(us_kmeans_loss_t), us_kmeans_cmp);

    /* half of the empty groups now, the rest in later rounds */

    left = (left + 1) / 2;

    for (g = 0, i = 0; g < c->ngroups && left && i < nlosses; g++) {
        if (!used[g]) {
            c->group[c->losses[i++].token] = (uint8_t) g;
            left--;
        }
    }
}


static void
us_kmeans_move(us_kmeans_t *c)
{
    float        bits[256], *row, count;
    size_t       i, next;
    double       total;
    unsigned     g, best;
    uint16_t     token;

    for (i = 0; i < c->n; i = next) {
        token = c->follows[i].prev;
        next = us_kmeans_token(c, i, &total);

        if (total < US_KMEANS_SELDOM) {
            continue;
        }

        memset(bits, 0, sizeof(bits));

        for ( /* void */ ; i < next; i++) {
            row = c->bits + c->follows[i].next * c->ngroups;
            count = (float) c->follows[i].count;

            for (g = 0; g < c->ngroups; g++) {
                bits[g] += count * row[g];
            }
        }

        best = c->group[token];

        for (g = 0; g < c->ngroups; g++) {
            if (bits[g] < bits[best]) {
                best = g;
            }
        }

        c->group[token] = (uint8_t) best;
    }
}


int
us_kmeans(const us_kmeans_pair_t *follows, size_t n, size_t ntokens,
    unsigned ngroups, uint8_t *group, const volatile int *cancel)
{
    int           rc;
    size_t        i;
    double        total;
    unsigned      round;
    us_kmeans_t  c;

    c.follows = follows;
    c.n = n;
    c.ntokens = ntokens;
    c.ngroups = ngroups;
    c.group = group;
    c.any = calloc(ntokens, sizeof(double));
    c.bits = malloc(ntokens * ngroups * sizeof(float));
    c.losses = malloc(ntokens * sizeof(us_kmeans_loss_t));

    rc = -1;

    if (c.any == NULL || c.bits == NULL || c.losses == NULL) {
        goto done;
    }

    for (i = 0, total = 0; i < n; i++) {
        c.any[follows[i].next] += follows[i].count;
        total += follows[i].count;
    }

    for (i = 0; i < ntokens; i++) {
        c.any[i] = (c.any[i] + .5) / (total + (double) ntokens / 2);
    }

    for (round = 0; round < US_KMEANS_ROUNDS; round++) {
        if (us_kmeans_count(&c) == -1) {
            goto done;
        }

        if (us_cancelled(cancel)) {
            break;
        }

        if (round % 2 == 0 && round + 2 < US_KMEANS_ROUNDS) {
            us_kmeans_seed(&c);

        } else {
            us_kmeans_move(&c);
        }
    }

    rc = 0;

done:

    free(c.losses);
    free(c.bits);
    free(c.any);

    return rc;
}
