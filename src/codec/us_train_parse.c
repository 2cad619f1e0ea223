
/*
 * The counts from which vocabulary and codes are learnt: the sample is parsed
 * under the tokens and prices known so far, and tokens and pairs are counted.
 */


#include "us_train_private.h"
#include "../us_atomic.h"

#include <math.h>


#define US_TRAIN_PROBES    8          /* places that a pair may have */


int
us_train_prepare(us_trainer_t *t)
{
    int  rc;

    if (t->parser) {
        us_parser_destroy(t->parser);
    }

    t->parser = us_parser_create(t->tokens, t->ntokens, t->ncontexts);
    if (t->parser == NULL) {
        return -1;
    }

    do {
        rc = us_parser_build(t->parser);
    } while (rc == 0);

    return rc == 1 ? 0 : -1;
}


void
us_train_price(uint8_t *row, const uint32_t *counts, size_t n)
{
    float   price, total;
    size_t  i;

    for (i = 0, total = 0; i < n; i++) {
        total += (float) counts[i] + .5f;
    }

    total = log2f(total);

    for (i = 0; i < n; i++) {
        price = (total - log2f((float) counts[i] + .5f)) * US_PRICE_BIT;
        row[i] = (uint8_t) (price < 1 ? 1
                            : price > US_PRICE_MAX ? US_PRICE_MAX : price);
    }
}


/* counts a pair; a rare pair is lost if there is no room */

static void
us_train_pair(us_trainer_t *t, unsigned token, unsigned next)
{
    uint32_t    key, h;
    unsigned    i;
    us_pair_t  *p;

    key = token << 16 | next;
    h = key * 0x9e3779b1u >> 12;

    for (i = 0; i < US_TRAIN_PROBES; i++) {
        p = &t->pairs[(h + i) & (US_TRAIN_PAIRS - 1)];

        if (p->key == key || p->count == 0) {
            p->key = key;
            p->count++;
            return;
        }
    }
}


int
us_train_parse(us_trainer_t *t, unsigned nth)
{
    size_t              i, k, n;
    uint32_t            price, *counts;
    unsigned            start;
    us_start_t          starts[2];
    const us_piece_t   *pieces;
    const us_sample_t  *s;

    memset(t->counts, 0,
           t->ncontexts * (t->ntokens + 1u) * sizeof(uint32_t));

    if (t->pairing) {
        memset(t->pairs, 0, US_TRAIN_PAIRS * sizeof(us_pair_t));
        memset(t->firsts, 0,
               US_CTX_GROUP * (t->ntokens + 1u) * sizeof(uint32_t));
    }

    for (i = 0; i < t->in->nsamples; i += nth) {

        if (i % 1024 < nth && us_cancelled(t->cancel)) {
            return -1;
        }

        s = &t->samples[i];

        starts[0].at = 0;
        starts[0].price = US_PRICE_BIT;
        starts[1].at = s->cut;
        starts[1].price = s->price;

        n = us_parse(t->parser, t->in->text + s->offset, s->len, starts,
                     s->cut ? 2 : 1, &pieces, &start, &price);

        if (t->pairing && n) {
            t->firsts[pieces[0].ctx * (t->ntokens + 1u) + pieces[0].token]++;
        }

        for (k = 0; k < n; k++) {
            counts = us_train_counts(t, t->ncontexts == 1 ? 0
                                        : pieces[k].ctx);
            counts[pieces[k].token]++;

            if (t->pairing && k + 1 < n) {
                us_train_pair(t, pieces[k].token, pieces[k + 1].token);
            }
        }
    }

    return 0;
}
