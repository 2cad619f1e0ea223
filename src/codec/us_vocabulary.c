
/*
 * The vocabulary of a model.  It begins with bytes and runs.  Each round parses
 * the sample, drops the tokens that are hardly used, and joins the pairs of
 * neighbours that save most.
 *
 * A pair is worth the likelihood that it gains,
 * n12 * log2(n12 * T / (n1 * n2)), less the bytes of its token in the model.
 * If pairs were ranked by frequency alone, the vocabulary would fill with
 * pieces of random ids.
 */


#include "us_train_private.h"

#include <math.h>
#include <stdlib.h>


/*
 * Tuned with bench/codec on reddit_submissions and eot2024_A.
 */

#define US_TRAIN_ROUNDS    8          /* the vocabulary doubles in each */
#ifndef US_TRAIN_MORE
#define US_TRAIN_MORE      2          /* rounds in its full size */
#endif
#ifndef US_TRAIN_RUNS
#define US_TRAIN_RUNS      4          /* rounds before runs are allowed */
#endif
#ifndef US_TRAIN_TOKEN
#define US_TRAIN_TOKEN     20         /* bits that a token costs */
#endif
#ifndef US_TRAIN_BYTE
#define US_TRAIN_BYTE      3          /* and each of its bytes */
#endif

#define US_TRAIN_SET       (4 * US_TOKENS_MAX)


typedef struct {
    float                  worth;
    uint32_t               key;
    uint32_t               count;
} us_worth_t;


static int
us_train_cmp_count(const void *one, const void *two)
{
    const uint32_t  *a = one, *b = two;

    if (a[0] != b[0]) {
        return a[0] < b[0] ? 1 : -1;
    }

    return (a[1] > b[1]) - (a[1] < b[1]);
}


/* pairs of dropped tokens are left to the next round */

static void
us_train_renumber(us_trainer_t *t, const uint16_t *number)
{
    size_t      i;
    uint32_t    a, b;
    us_pair_t  *p;

    for (i = 0; i < US_TRAIN_PAIRS; i++) {
        p = &t->pairs[i];

        if (p->count == 0) {
            continue;
        }

        a = p->key >> 16;
        b = p->key & 0xffff;

        if ((a && number[a] == 0) || (b && number[b] == 0)) {
            p->count = 0;
            continue;
        }

        p->key = (uint32_t) number[a] << 16 | number[b];
    }
}


/* the same for the counts of first tokens, of which there were n */

static int
us_train_renumber_firsts(us_trainer_t *t, const uint16_t *number, unsigned n)
{
    unsigned   c, i;
    uint32_t  *old;

    old = malloc(US_CTX_GROUP * (n + 1u) * sizeof(uint32_t));

    if (old == NULL) {
        return -1;
    }

    memcpy(old, t->firsts, US_CTX_GROUP * (n + 1u) * sizeof(uint32_t));
    memset(t->firsts, 0, US_CTX_GROUP * (n + 1u) * sizeof(uint32_t));

    for (c = 0; c < US_CTX_GROUP; c++) {
        for (i = 0; i < n; i++) {
            if (i == 0 || number[i]) {
                t->firsts[c * (t->ntokens + 1u) + number[i]]
                    = old[c * (n + 1u) + i];
            }
        }
    }

    free(old);

    return 0;
}


/* drops the tokens that are hardly used, renumbers all, most used first */

static int
us_train_drop(us_trainer_t *t)
{
    int              rc;
    size_t           i, n;
    uint16_t        *number;
    uint32_t        (*order)[2];
    us_token_def_t  *tokens;

    n = t->ntokens - US_TOKEN_TEXT;

    number = malloc(t->ntokens * sizeof(uint16_t));
    order = malloc((n + 1) * sizeof(*order));
    tokens = malloc((n + 1) * sizeof(us_token_def_t));

    if (number == NULL || order == NULL || tokens == NULL) {
        free(number);
        free(order);
        free(tokens);
        return -1;
    }

    memcpy(tokens, t->tokens + US_TOKEN_TEXT, n * sizeof(us_token_def_t));

    for (i = 0; i < n; i++) {
        order[i][0] = t->counts[US_TOKEN_TEXT + i];
        order[i][1] = (uint32_t) i;
    }

    qsort(order, n, sizeof(*order), us_train_cmp_count);

    for (i = 0; i < t->ntokens; i++) {
        number[i] = i < US_TOKEN_TEXT ? (uint16_t) i : 0;
    }

    for (i = 0; i < n && order[i][0] >= US_TRAIN_SELDOM; i++) {
        number[US_TOKEN_TEXT + order[i][1]] = (uint16_t) (US_TOKEN_TEXT + i);
        t->tokens[US_TOKEN_TEXT + i] = tokens[order[i][1]];
        t->counts[US_TOKEN_TEXT + i] = order[i][0];
    }

    t->ntokens = US_TOKEN_TEXT + (unsigned) i;

    us_train_renumber(t, number);
    rc = us_train_renumber_firsts(t, number, US_TOKEN_TEXT + (unsigned) n);

    free(number);
    free(order);
    free(tokens);

    return rc;
}


static int
us_train_cmp_worth(const void *one, const void *two)
{
    const us_worth_t  *a = one, *b = two;

    if (a->worth != b->worth) {
        return a->worth < b->worth ? 1 : -1;
    }

    return (a->key > b->key) - (a->key < b->key);
}


static uint32_t
us_train_hash(const uint8_t *p, unsigned len)
{
    uint32_t  h;

    for (h = 2166136261u; len; len--) {
        h = (h ^ *p++) * 16777619u;
    }

    return h ^ h >> 15;
}


/*
 * Whether there is such a token; if not, its place in the set becomes that of
 * token number `next`.
 */

static int
us_train_known(us_trainer_t *t, uint16_t *set, unsigned next,
    const uint8_t *text, unsigned len)
{
    uint32_t               h;
    const us_token_def_t  *d;

    for (h = us_train_hash(text, len) % US_TRAIN_SET;
         set[h];
         h = (h + 1) % US_TRAIN_SET)
    {
        d = &t->tokens[set[h]];

        if (d->len == len && memcmp(d->text, text, len) == 0) {
            return 1;
        }
    }

    set[h] = (uint16_t) next;

    return 0;
}


/* the pairs that are worth a token, the best first; returns their number */

static size_t
us_train_rank(us_trainer_t *t, us_worth_t *list)
{
    float       total, n12, worth;
    size_t      i, n;
    uint32_t    a, b, len;
    us_pair_t  *p;

    for (i = 0, total = 0; i < t->ntokens; i++) {
        total += (float) t->counts[i];
    }

    n = 0;

    for (i = 0; i < US_TRAIN_PAIRS && n < US_TRAIN_PAIRS / 2; i++) {
        p = &t->pairs[i];

        if (p->count < US_TRAIN_SELDOM) {
            continue;
        }

        a = p->key >> 16;
        b = p->key & 0xffff;

        if (us_token_is_run(a) || us_token_is_run(b)) {
            continue;
        }

        len = t->tokens[a].len + t->tokens[b].len;

        if (len > US_TOKEN_MAX) {
            continue;
        }

        n12 = (float) p->count;
        worth = n12 * log2f(n12 * total
                            / ((float) t->counts[a] * (float) t->counts[b]))
                - US_TRAIN_TOKEN - (float) (US_TRAIN_BYTE * len);

        if (worth > 0) {
            list[n].worth = worth;
            list[n].key = p->key;
            list[n++].count = p->count;
        }
    }

    qsort(list, n, sizeof(us_worth_t), us_train_cmp_worth);

    return n;
}


/*
 * Packs the tokens' texts into new memory, so that those of dropped tokens are
 * gone, and puts them into the set.
 */

static void
us_train_pack(us_trainer_t *t, uint8_t *text, uint16_t *set)
{
    unsigned         i;
    us_token_def_t  *d;

    for (i = 0, t->text_used = 0; i < t->ntokens; i++) {
        d = &t->tokens[i];

        if (us_token_is_run(i)) {
            continue;
        }

        memcpy(text + t->text_used, d->text, d->len);
        d->text = text + t->text_used;
        t->text_used += d->len;

        us_train_known(t, set, i, d->text, d->len);
    }

    free(t->text);
    t->text = text;
}


static inline void
us_train_uncount(uint32_t *count, uint32_t n)
{
    *count -= *count < n ? *count : n;
}


/* makes a token of a pair, unless there is one of the same text */

static void
us_train_add(us_trainer_t *t, const us_worth_t *w, uint16_t *set)
{
    uint8_t         *text;
    uint32_t         a, b;
    us_token_def_t  *d;

    a = w->key >> 16;
    b = w->key & 0xffff;

    text = t->text + t->text_used;

    d = &t->tokens[t->ntokens];
    d->text = text;
    d->len = (uint8_t) (t->tokens[a].len + t->tokens[b].len);
    d->ctx = 0;

    memcpy(text, t->tokens[a].text, t->tokens[a].len);
    memcpy(text + t->tokens[a].len, t->tokens[b].text, t->tokens[b].len);

    if (us_train_known(t, set, t->ntokens, d->text, d->len)) {
        return;
    }

    /* what the next parse may find, for the prices */

    t->counts[t->ntokens++] = w->count;
    us_train_uncount(&t->counts[a], w->count);
    us_train_uncount(&t->counts[b], w->count);
    t->text_used += d->len;
}


/* joins the best pairs until there are `target` tokens */

static int
us_train_join(us_trainer_t *t, unsigned target)
{
    size_t       i, n;
    uint8_t     *text;
    uint16_t    *set;
    us_worth_t  *list;

    set = calloc(US_TRAIN_SET, sizeof(uint16_t));
    list = malloc(US_TRAIN_PAIRS / 2 * sizeof(us_worth_t));
    text = malloc(t->in->ntokens * (size_t) US_TOKEN_MAX);

    if (set == NULL || list == NULL || text == NULL) {
        free(set);
        free(list);
        free(text);
        return -1;
    }

    n = us_train_rank(t, list);
    us_train_pack(t, text, set);

    for (i = 0; i < n && t->ntokens < target; i++) {
        us_train_add(t, &list[i], set);
    }

    free(set);
    free(list);

    return 0;
}


/* the tokens of an earlier model, counted as often as their codes say */

static int
us_train_base(us_trainer_t *t)
{
    size_t             i, n;
    uint8_t           *lens;
    us_str_t           text;
    us_token_def_t    *d;
    const us_model_t  *m;

    m = t->in->base;
    n = us_model_ntokens(m) < t->in->ntokens ? us_model_ntokens(m)
                                             : t->in->ntokens;
    lens = malloc(n);

    if (lens == NULL) {
        return -1;
    }

    us_model_code_lengths(m, us_model_ncontexts(m) + US_CODE_ESCAPE, lens, n);

    for (i = 0; i < n; i++) {
        text = us_model_token_text(m, (unsigned) i);

        if (i < US_TOKEN_TEXT) {
            t->counts[i] = 1u << (US_HUFFMAN_MAX - lens[i]);
            continue;
        }

        if (text.len < 2 || text.len > US_TOKEN_MAX) {
            continue;
        }

        d = &t->tokens[t->ntokens];
        d->text = memcpy(t->text + t->text_used, text.data, text.len);
        d->len = (uint8_t) text.len;

        t->counts[t->ntokens++] = 1u << (US_HUFFMAN_MAX - lens[i]);
        t->text_used += text.len;
    }

    free(lens);

    return 0;
}


static unsigned
us_train_target(const us_trainer_t *t, unsigned round)
{
    unsigned  learnt;

    learnt = t->in->ntokens - US_TOKEN_TEXT;

    return US_TOKEN_TEXT + (round < US_TRAIN_ROUNDS
                            ? learnt >> (US_TRAIN_ROUNDS - 1 - round)
                            : learnt);
}


/*
 * All rounds look at a part of the sample, early ones at less: what they look
 * for is common.  With the tokens of an earlier model, the rounds are left
 * out in which there would be fewer.
 */

int
us_train_vocabulary(us_trainer_t *t)
{
    unsigned  round, nth;

    round = 0;
    t->ncontexts = 1;
    t->pairing = 1;

    if (t->in->base) {
        if (us_train_base(t) == -1) {
            return -1;
        }

        while (round < US_TRAIN_ROUNDS - 1
               && us_train_target(t, round) < t->ntokens)
        {
            round++;
        }
    }

    for ( /* void */ ; round <= US_TRAIN_ROUNDS + US_TRAIN_MORE; round++) {

        nth = round + 4 < US_TRAIN_ROUNDS ? 8
              : round + 1 < US_TRAIN_ROUNDS ? 4 : US_TRAIN_NTH;

        if (us_train_prepare(t) == -1) {
            return -1;
        }

        if (round == 0) {
            memset(us_parser_row(t->parser, 0), 8 * US_PRICE_BIT,
                   t->ntokens);

        } else {
            us_train_price(us_parser_row(t->parser, 0), t->counts,
                           t->ntokens);
        }

        /*
         * as long as letters have a high price, everything would look like a
         * run
         */

        if (round < US_TRAIN_RUNS) {
            memset(us_parser_row(t->parser, 0) + US_TOKEN_RUN, US_PRICE_MAX,
                   US_TOKEN_TEXT - US_TOKEN_RUN);
        }

        if (us_train_parse(t, nth) == -1
            || us_train_drop(t) == -1)
        {
            return -1;
        }

        if (round < US_TRAIN_ROUNDS + US_TRAIN_MORE) {
            if (us_train_join(t, us_train_target(t, round)) == -1) {
                return -1;
            }
        }
    }

    return 0;
}
