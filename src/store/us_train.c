
/*
 * Learns a model from a sample of texts.
 *
 *     vocabulary    bytes and runs; then in rounds: parse the sample, drop
 *                   the tokens that are hardly used, join the pairs of
 *                   neighbours that save most
 *     contexts      tokens that are followed by much the same are put into
 *                   one group (us_cluster.c)
 *     codes         parse under what is known of the contexts, count, twice
 *
 * A pair's worth is the likelihood it gains, n12 * log2(n12 * T / (n1 * n2)),
 * less what the token costs in the model.  By mere frequency the vocabulary
 * would fill with pieces of random ids.
 */


#include "us_train.h"
#include "us_cluster.h"
#include "us_parse.h"

#include <math.h>
#include <stdlib.h>


/*
 * Tuned with bench/codec on reddit_submissions and eot2024_A.
 */

#define US_TRAIN_GROWTH    2          /* vocabulary, from round to round */
#define US_TRAIN_ROUNDS    8
#ifndef US_TRAIN_MORE
#define US_TRAIN_MORE 2
#endif
#ifndef US_TRAIN_RUNS
#define US_TRAIN_RUNS 4
#endif
#ifndef US_TRAIN_SELDOM
#define US_TRAIN_SELDOM    3          /* uses that keep a token, or a code */
#endif
#ifndef US_TRAIN_TOKEN
#define US_TRAIN_TOKEN     20         /* bits that a token costs */
#endif
#ifndef US_TRAIN_BYTE
#define US_TRAIN_BYTE      3          /* and each of its bytes */
#endif
#define US_TRAIN_PAIRS     (1 << 20)
#define US_TRAIN_PROBES    8


#define US_MIN(a, b)       ((a) < (b) ? (a) : (b))


typedef struct {
    uint32_t               key;       /* token << 16 | next */
    uint32_t               count;
} us_pair_t;


typedef struct {
    float                  worth;
    uint32_t               key;
    uint32_t               count;
} us_worth_t;


typedef struct {
    const us_train_t      *in;
    const volatile int    *cancel;

    us_token_def_t        *tokens;
    unsigned               ntokens;
    uint8_t               *text;      /* of the tokens */
    size_t                 text_used;

    us_parser_t           *parser;
    unsigned               ncontexts; /* of the parser */

    uint32_t              *counts;    /* [ncontexts][ntokens + 1] */
    us_pair_t             *pairs;
    int                    pairing;   /* pairs are counted */

    unsigned               ncodes;
    us_code_def_t         *codes;
    uint16_t              *symbols;
    uint64_t              *work;
} us_trainer_t;


static int us_train_vocabulary(us_trainer_t *t);
static int us_train_prepare(us_trainer_t *t);
static void us_train_price(uint8_t *row, const uint32_t *counts, size_t n);
static int us_train_parse(us_trainer_t *t, unsigned nth);
static void us_train_pair(us_trainer_t *t, unsigned token, unsigned next);
static int us_train_drop(us_trainer_t *t);
static int us_train_join(us_trainer_t *t, unsigned target);
static int us_train_contexts(us_trainer_t *t);
static int us_train_codes(us_trainer_t *t, int last);
static void us_train_code(us_trainer_t *t, unsigned code, uint32_t *counts,
    unsigned n, unsigned max);
static void us_train_header(us_trainer_t *t, unsigned code,
    const uint32_t *counts, unsigned n);


/* what us_train_parse() keeps of a token that begins or ends a sample */

static inline uint32_t *
us_train_counts(us_trainer_t *t, unsigned ctx)
{
    return t->counts + (size_t) ctx * (t->ntokens + 1);
}


uint8_t *
us_train(const us_train_t *in, const volatile int *cancel, size_t *len)
{
    size_t          i, max;
    uint8_t        *core;
    us_trainer_t    t;
    us_model_def_t  def;

    core = NULL;

    memset(&t, 0, sizeof(us_trainer_t));

    t.in = in;
    t.cancel = cancel;
    t.ncodes = in->ncontexts + US_CODES;

    max = in->ntokens + 1;

    t.tokens = calloc(max, sizeof(us_token_def_t));
    t.text = malloc(max * US_TOKEN_MAX);
    t.counts = malloc(in->ncontexts * max * sizeof(uint32_t));
    t.pairs = malloc(US_TRAIN_PAIRS * sizeof(us_pair_t));
    t.codes = calloc(t.ncodes, sizeof(us_code_def_t));
    t.symbols = malloc(t.ncodes * max * sizeof(uint16_t));
    t.work = malloc(2 * max * sizeof(uint64_t));

    if (t.tokens == NULL || t.text == NULL || t.counts == NULL
        || t.pairs == NULL || t.codes == NULL || t.symbols == NULL
        || t.work == NULL)
    {
        goto done;
    }

    for (i = 0; i < t.ncodes; i++) {
        t.codes[i].symbols = t.symbols + i * max;
    }

    t.ntokens = US_TOKEN_TEXT;

    for (i = 0; i < US_TOKEN_TEXT; i++) {
        t.tokens[i].text = t.text + i;
        t.tokens[i].len = i < US_TOKEN_RUN
                          ? 1
                          : (i - US_TOKEN_RUN) % US_RUN_LENGTHS + US_RUN_MIN;
        t.text[i] = (uint8_t) i;
    }

    t.text_used = US_TOKEN_TEXT;

    if (us_train_vocabulary(&t) == -1
        || us_train_contexts(&t) == -1
        || us_train_codes(&t, 0) == -1
        || us_train_codes(&t, 1) == -1)
    {
        goto done;
    }

    us_train_header(&t, US_CODE_HEAD, in->head, US_HEAD_SYMBOLS);
    us_train_header(&t, US_CODE_NEAR, in->near, US_PREFIX_SYMBOLS);
    us_train_header(&t, US_CODE_FAR, in->far, US_PREFIX_SYMBOLS);

    def.ncontexts = in->ncontexts;
    def.ntokens = t.ntokens;
    def.tokens = t.tokens;
    def.codes = t.codes;

    core = us_model_write(&def, len);

done:

    if (t.parser) {
        us_parser_destroy(t.parser);
    }

    free(t.work);
    free(t.symbols);
    free(t.codes);
    free(t.pairs);
    free(t.counts);
    free(t.text);
    free(t.tokens);

    return core;
}


/*
 * Early rounds look at a part of the sample: what they look for is common.
 */

static int
us_train_vocabulary(us_trainer_t *t)
{
    unsigned  round, nth, target, learnt;

    learnt = t->in->ntokens - US_TOKEN_TEXT;
    t->ncontexts = 1;

    for (round = 0; round <= US_TRAIN_ROUNDS + US_TRAIN_MORE; round++) {

        nth = round + 4 < US_TRAIN_ROUNDS ? 8
              : round + 1 < US_TRAIN_ROUNDS ? 2 : 1;

        t->pairing = round < US_TRAIN_ROUNDS + US_TRAIN_MORE;

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

        /* while letters are dear, everything would look like a run */

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
            target = round < US_TRAIN_ROUNDS
                     ? learnt >> (US_TRAIN_ROUNDS - 1 - round) : learnt;

            if (us_train_join(t, US_TOKEN_TEXT + target) == -1) {
                return -1;
            }
        }
    }

    return 0;
}


static int
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


/* prices by the counts of the last parse; what was not seen has half a use */

static void
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


/* parses each nth sample and counts */

static int
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
    }

    for (i = 0; i < t->in->nsamples; i += nth) {

        if (i % 1024 < nth && t->cancel && *t->cancel) {
            return -1;
        }

        s = &t->in->samples[i];

        starts[0].at = 0;
        starts[0].price = US_PRICE_BIT;
        starts[1].at = s->cut;
        starts[1].price = s->price;

        n = us_parse(t->parser, t->in->text + s->offset, s->len, starts,
                     s->cut ? 2 : 1, &pieces, &start, &price);

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


/* counts a pair; a rare one may find no room */

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


/* drops the tokens that are hardly used, renumbers all, most used first */

static int
us_train_cmp_count(const void *one, const void *two)
{
    const uint32_t  *a = one, *b = two;

    if (a[0] != b[0]) {
        return a[0] < b[0] ? 1 : -1;
    }

    return (a[1] > b[1]) - (a[1] < b[1]);
}


static int
us_train_drop(us_trainer_t *t)
{
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

    /* pairs of dropped tokens are left to the next round */

    if (t->pairing) {
        for (i = 0; i < US_TRAIN_PAIRS; i++) {
            uint32_t  a, b;

            if (t->pairs[i].count == 0) {
                continue;
            }

            a = t->pairs[i].key >> 16;
            b = t->pairs[i].key & 0xffff;

            if ((a && number[a] == 0) || (b && number[b] == 0)) {
                t->pairs[i].count = 0;
                continue;
            }

            t->pairs[i].key = (uint32_t) number[a] << 16 | number[b];
        }
    }

    free(number);
    free(order);
    free(tokens);

    return 0;
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


static int
us_train_is_run(unsigned token)
{
    return token >= US_TOKEN_RUN && token < US_TOKEN_TEXT;
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
us_train_known(us_trainer_t *t, uint16_t *set, uint32_t mask, unsigned next,
    const uint8_t *text, unsigned len)
{
    uint32_t               h;
    const us_token_def_t  *d;

    for (h = us_train_hash(text, len) & mask; set[h]; h = (h + 1) & mask) {
        d = &t->tokens[set[h]];

        if (d->len == len && memcmp(d->text, text, len) == 0) {
            return 1;
        }
    }

    set[h] = (uint16_t) next;

    return 0;
}


static int
us_train_join(us_trainer_t *t, unsigned target)
{
    int              rc;
    float            total, n12, worth;
    size_t           i, nworth;
    uint8_t         *text;
    uint16_t        *set;
    uint32_t         a, b, len;
    us_worth_t      *list;
    us_token_def_t  *d;

    rc = -1;
    nworth = 0;

    for (i = 0, total = 0; i < t->ntokens; i++) {
        total += (float) t->counts[i];
    }

    set = calloc(4 * US_TOKENS_MAX, sizeof(uint16_t));
    list = malloc(US_TRAIN_PAIRS / 2 * sizeof(us_worth_t));
    text = malloc(t->in->ntokens * (size_t) US_TOKEN_MAX);

    if (set == NULL || list == NULL || text == NULL) {
        free(text);
        goto done;
    }

    for (i = 0; i < US_TRAIN_PAIRS && nworth < US_TRAIN_PAIRS / 2; i++) {

        if (t->pairs[i].count < US_TRAIN_SELDOM) {
            continue;
        }

        a = t->pairs[i].key >> 16;
        b = t->pairs[i].key & 0xffff;

        if (us_train_is_run(a) || us_train_is_run(b)) {
            continue;
        }

        len = t->tokens[a].len + t->tokens[b].len;

        if (len > US_TOKEN_MAX) {
            continue;
        }

        n12 = (float) t->pairs[i].count;
        worth = n12 * log2f(n12 * total
                            / ((float) t->counts[a] * (float) t->counts[b]))
                - US_TRAIN_TOKEN - (float) (US_TRAIN_BYTE * len);

        if (worth > 0) {
            list[nworth].worth = worth;
            list[nworth].key = t->pairs[i].key;
            list[nworth++].count = t->pairs[i].count;
        }
    }

    qsort(list, nworth, sizeof(us_worth_t), us_train_cmp_worth);

    /* texts are packed anew, so that those of dropped tokens are gone */

    for (i = 0, t->text_used = 0; i < t->ntokens; i++) {
        d = &t->tokens[i];

        if (us_train_is_run((unsigned) i)) {
            continue;
        }

        memcpy(text + t->text_used, d->text, d->len);
        d->text = text + t->text_used;
        t->text_used += d->len;

        us_train_known(t, set, 4 * US_TOKENS_MAX - 1, (unsigned) i, d->text,
                       d->len);
    }

    free(t->text);
    t->text = text;

    for (i = 0; i < nworth && t->ntokens < target; i++) {
        a = list[i].key >> 16;
        b = list[i].key & 0xffff;

        d = &t->tokens[t->ntokens];
        d->text = text + t->text_used;
        d->len = (uint8_t) (t->tokens[a].len + t->tokens[b].len);
        d->ctx = 0;

        memcpy(text + t->text_used, t->tokens[a].text, t->tokens[a].len);
        memcpy(text + t->text_used + t->tokens[a].len, t->tokens[b].text,
               t->tokens[b].len);

        if (us_train_known(t, set, 4 * US_TOKENS_MAX - 1, t->ntokens,
                           d->text, d->len))
        {
            continue;
        }

        /* what the next parse may find, for the prices */

        t->counts[t->ntokens++] = list[i].count;
        t->counts[a] -= US_MIN(t->counts[a], list[i].count);
        t->counts[b] -= US_MIN(t->counts[b], list[i].count);
        t->text_used += d->len;
    }

    rc = 0;

done:

    free(set);
    free(list);

    return rc;
}


/*
 * The first guess: tokens that end in the same common byte, the rest, runs.
 */

static int
us_train_cmp_follow(const void *one, const void *two)
{
    const us_follow_t  *a = one, *b = two;

    if (a->prev != b->prev) {
        return a->prev < b->prev ? -1 : 1;
    }

    return (a->next > b->next) - (a->next < b->next);
}


static int
us_train_contexts(us_trainer_t *t)
{
    int           rc;
    size_t        i, n;
    uint8_t      *group, of[256], last;
    unsigned      ngroups, g, k, best;
    uint64_t      ends[256];
    us_follow_t  *follows;

    rc = -1;
    ngroups = t->in->ncontexts - US_CTX_GROUP;

    /* pairs under the final vocabulary */

    t->pairing = 1;

    if (us_train_prepare(t) == -1) {
        return -1;
    }

    us_train_price(us_parser_row(t->parser, 0), t->counts, t->ntokens);

    if (us_train_parse(t, 1) == -1) {
        return -1;
    }

    group = calloc(t->ntokens, 1);
    follows = malloc(US_TRAIN_PAIRS * sizeof(us_follow_t));

    if (group == NULL || follows == NULL) {
        goto done;
    }

    for (i = 0, n = 0; i < US_TRAIN_PAIRS; i++) {
        if (t->pairs[i].count) {
            follows[n].prev = (uint16_t) (t->pairs[i].key >> 16);
            follows[n].next = (uint16_t) t->pairs[i].key;
            follows[n++].count = t->pairs[i].count;
        }
    }

    qsort(follows, n, sizeof(us_follow_t), us_train_cmp_follow);

    memset(ends, 0, sizeof(ends));
    memset(of, 0, sizeof(of));

    for (i = 0; i < t->ntokens; i++) {
        if (!us_train_is_run((unsigned) i)) {
            ends[t->tokens[i].text[t->tokens[i].len - 1]] += t->counts[i];
        }
    }

    /* group 0: the rest, 1: runs; a good half of the others: by last byte */

    for (g = 2; g < 2 + (ngroups - 2) * 5 / 8; g++) {
        for (k = 1, best = 0; k < 256; k++) {
            if (ends[k] > ends[best]) {
                best = k;
            }
        }

        of[best] = (uint8_t) g;
        ends[best] = 0;
    }

    for (i = 0; i < t->ntokens; i++) {
        if (us_train_is_run((unsigned) i)) {
            group[i] = 1;

        } else {
            last = t->tokens[i].text[t->tokens[i].len - 1];
            group[i] = of[last];
        }
    }

    if (us_cluster(follows, n, t->ntokens, ngroups, group, t->cancel) == -1) {
        goto done;
    }

    for (i = 0; i < t->ntokens; i++) {
        t->tokens[i].ctx = (uint8_t) (US_CTX_GROUP + group[i]);
    }

    /* contexts are numbered by now: count in each, under prices of all */

    t->ncontexts = t->in->ncontexts;
    t->pairing = 0;

    {
        uint32_t  *all;

        all = malloc(t->ntokens * sizeof(uint32_t));
        if (all == NULL) {
            goto done;
        }

        memcpy(all, t->counts, t->ntokens * sizeof(uint32_t));

        if (us_train_prepare(t) == 0) {
            for (k = 0; k < t->ncontexts; k++) {
                us_train_price(us_parser_row(t->parser, k), all, t->ntokens);
            }

            rc = us_train_parse(t, 1);
        }

        free(all);
    }

done:

    free(follows);
    free(group);

    return rc;
}


/*
 * Makes the codes by the counts; unless they are the last ones, parses and
 * counts again under their prices.
 */

static int
us_train_codes(us_trainer_t *t, int last)
{
    uint8_t        *row, *lens;
    size_t          i;
    unsigned        c, k, l, esc, price;
    uint32_t       *counts, *all;
    us_code_def_t  *code;

    all = calloc(t->ntokens + 1u, sizeof(uint32_t));
    lens = malloc(t->ntokens + 1u);

    if (all == NULL || lens == NULL) {
        free(all);
        free(lens);
        return -1;
    }

    /* what is rare in a context goes by the escape, and counts there */

    for (i = 0; i < t->ntokens; i++) {
        all[i] = 1;
    }

    for (c = 0; c < t->ncontexts; c++) {
        counts = us_train_counts(t, c);
        counts[t->ntokens] = 1;

        for (i = 0; i < t->ntokens; i++) {
            if (counts[i] && counts[i] < US_TRAIN_SELDOM) {
                all[i] += counts[i];
                counts[t->ntokens] += counts[i];
                counts[i] = 0;
            }
        }

        /* a code has a length of 4 bits at least: 9 symbols make sure */

        for (i = 0; i < 16; i++) {
            if (counts['a' + i] == 0) {
                counts['a' + i] = 1;
            }
        }

        us_train_code(t, c, counts, t->ntokens + 1, 15);
    }

    us_train_code(t, t->ncontexts + US_CODE_ESCAPE, all, t->ntokens, 16);

    if (last) {
        free(all);
        free(lens);
        return 0;
    }

    memset(lens, 0, t->ntokens + 1u);
    code = &t->codes[t->ncontexts + US_CODE_ESCAPE];

    for (l = 1, i = 0; l <= US_HUFFMAN_MAX; l++) {
        for (k = 0; k < code->nlen[l]; k++) {
            lens[code->symbols[i++]] = (uint8_t) l;
        }
    }

    for (c = 0; c < t->ncontexts; c++) {
        row = us_parser_row(t->parser, c);
        code = &t->codes[c];
        memset(row, 0, t->ntokens);
        esc = 0;

        for (l = 1, i = 0; l <= US_HUFFMAN_MAX; l++) {
            for (k = 0; k < code->nlen[l]; k++, i++) {
                if (code->symbols[i] == t->ntokens) {
                    esc = l;

                } else {
                    row[code->symbols[i]] = (uint8_t) (l * US_PRICE_BIT);
                }
            }
        }

        for (i = 0; i < t->ntokens; i++) {
            if (row[i] == 0) {
                price = (esc + lens[i]) * US_PRICE_BIT;
                row[i] = (uint8_t) (price < US_PRICE_MAX ? price
                                                         : US_PRICE_MAX);
            }
        }
    }

    free(all);
    free(lens);

    return us_train_parse(t, 1);
}


static void
us_train_code(us_trainer_t *t, unsigned code, uint32_t *counts, unsigned n,
    unsigned max)
{
    unsigned        i, used;
    us_code_def_t  *c;

    c = &t->codes[code];

    for (i = 0, used = 0; i < n; i++) {
        if (counts[i]) {
            c->symbols[used++] = (uint16_t) i;
        }
    }

    us_huffman_lengths(counts, c->symbols, used, max, c->nlen, t->work);
}


/* header symbols can all be needed some day */

static void
us_train_header(us_trainer_t *t, unsigned code, const uint32_t *counts,
    unsigned n)
{
    unsigned  i;
    uint32_t  all[US_PREFIX_SYMBOLS];

    for (i = 0; i < n; i++) {
        all[i] = counts[i] + 1;
    }

    us_train_code(t, t->ncontexts + code, all, n, 15);
}
