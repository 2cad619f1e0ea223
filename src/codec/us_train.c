
/*
 * Learns a model from a sample of texts, in three steps:
 *
 *     vocabulary    the tokens
 *     contexts      tokens that are followed by similar tokens are put into
 *                   one group (us_kmeans)
 *     codes         by the pairs of the vocabulary's last round; then parse
 *                   under these codes, count, and make them again
 *
 * The vocabulary begins with bytes and runs.  Each round parses
 * the sample, drops the tokens that are hardly used, and joins the pairs of
 * neighbours that save most.
 *
 * A pair is worth the likelihood that it gains,
 * n12 * log2(n12 * T / (n1 * n2)), less the bytes of its token in the model.
 * If pairs were ranked by frequency alone, the vocabulary would fill with
 * pieces of random ids.
 */


#include "us_train.h"
#include "us_parse.h"
#include "../us_atomic.h"

#include <math.h>
#include <stdlib.h>


/*
 * Tuned with bench/codec on reddit_submissions and eot2024_A.
 */

#ifndef US_TRAIN_SELDOM
#define US_TRAIN_SELDOM    3          /* uses that keep a token, or a code */
#endif
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

#define US_TRAIN_NTH       2          /* but for the codes: of the sample */
#define US_TRAIN_LETTERS   16         /* of each context, used or not */
#define US_TRAIN_PAIRS     (1 << 20)  /* places for pairs, at most, */
#define US_TRAIN_LEAST     (1 << 14)  /* at least, */
#define US_TRAIN_TEXT      8          /* and between, for a text, at most */
#define US_TRAIN_PROBES    8          /* places that a pair may have */
#define US_TRAIN_SET       (4 * US_TOKENS_MAX)

#define US_KMEANS_ROUNDS   6
#define US_KMEANS_SELDOM   24         /* followers that are enough */
#define US_KMEANS_SMOOTH   40.0       /* weight of what follows any token */


/* two tokens in a row; count 0: a free place */

typedef struct {
    uint32_t               key;       /* token << 16 | next */
    uint32_t               count;
} us_pair_t;


typedef struct {
    const us_train_t      *in;
    us_sample_t           *samples;   /* in the order of their texts */
    const volatile int    *cancel;

    us_token_def_t        *tokens;
    unsigned               ntokens;
    uint8_t               *text;      /* of the tokens */
    size_t                 text_used;

    us_parser_t           *parser;
    unsigned               ncontexts; /* of the parser */

    /* by the last parse */
    uint32_t              *counts;    /* [ncontexts][ntokens + 1] */
    us_pair_t             *pairs;
    size_t                 npairs;    /* places: a power of two */
    uint32_t              *firsts;    /* [US_CTX_GROUP][ntokens + 1] */
    int                    pairing;   /* pairs and first tokens are counted */

    unsigned               ncodes;
    us_code_def_t         *codes;
    uint16_t              *symbols;
    uint64_t              *work;
} us_training_t;


/* token `next` was seen `count` times after token `prev` */

typedef struct {
    uint16_t               prev;
    uint16_t               next;
    uint32_t               count;
} us_kmeans_pair_t;


typedef struct {
    float                  loss;
    uint16_t               token;
} us_kmeans_loss_t;


typedef struct {
    us_kmeans_pair_t      *follows;   /* sorted by prev */
    size_t                 n;
    unsigned               ngroups;   /* 256 at most */
    uint8_t               *group;     /* of each token: below ngroups */
    double                *any;       /* p(u), whatever precedes */
    float                 *bits;      /* [ntokens][ngroups]: -log2 p(u | g) */
    us_kmeans_loss_t      *losses;
} us_kmeans_t;


static inline uint32_t *
us_train_counts(us_training_t *t, unsigned ctx)
{
    return t->counts + (size_t) ctx * (t->ntokens + 1);
}


/* a parser of the tokens as they are now; 0, or -1: no memory, or cancelled */

static int
us_train_prepare(us_training_t *t)
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


/* counts a pair; a rare pair is lost if there is no room */

static void
us_train_pair(us_training_t *t, unsigned token, unsigned next)
{
    uint32_t    key, h;
    unsigned    i;
    us_pair_t  *p;

    key = token << 16 | next;
    h = key * 0x9e3779b1u >> 12;      /* of 20 bits, as US_TRAIN_PAIRS */

    for (i = 0; i < US_TRAIN_PROBES; i++) {
        p = &t->pairs[(h + i) & (t->npairs - 1)];

        if (p->key == key || p->count == 0) {
            p->key = key;
            p->count++;
            return;
        }
    }
}


/* parses each nth sample and counts; 0, or -1: no memory, or cancelled */

static int
us_train_parse(us_training_t *t, unsigned nth)
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
        memset(t->pairs, 0, t->npairs * sizeof(us_pair_t));
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
us_train_renumber(us_training_t *t, const uint16_t *number)
{
    size_t      i;
    uint32_t    a, b;
    us_pair_t  *p;

    for (i = 0; i < t->npairs; i++) {
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
us_train_renumber_firsts(us_training_t *t, const uint16_t *number, unsigned n)
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
us_train_drop(us_training_t *t)
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
us_train_known(us_training_t *t, uint16_t *set, unsigned next,
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
us_train_rank(us_training_t *t, us_worth_t *list)
{
    float       total, n12, worth;
    size_t      i, n;
    uint32_t    a, b, len;
    us_pair_t  *p;

    for (i = 0, total = 0; i < t->ntokens; i++) {
        total += (float) t->counts[i];
    }

    n = 0;

    for (i = 0; i < t->npairs && n < t->npairs / 2; i++) {
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
us_train_pack(us_training_t *t, uint8_t *text, uint16_t *set)
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
us_train_add(us_training_t *t, const us_worth_t *w, uint16_t *set)
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
us_train_join(us_training_t *t, unsigned target)
{
    size_t       i, n;
    uint8_t     *text;
    uint16_t    *set;
    us_worth_t  *list;

    set = calloc(US_TRAIN_SET, sizeof(uint16_t));
    list = malloc(t->npairs / 2 * sizeof(us_worth_t));
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
us_train_base(us_training_t *t)
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
us_train_target(const us_training_t *t, unsigned round)
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

static int
us_train_vocabulary(us_training_t *t)
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
              : round < US_TRAIN_ROUNDS ? 4 : US_TRAIN_NTH;

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


static int
us_train_cmp_sample(const void *one, const void *two, void *text)
{
    int                 rc;
    size_t              len;
    const us_sample_t  *a = one, *b = two;

    len = a->len < b->len ? a->len : b->len;
    rc = memcmp((uint8_t *) text + a->offset, (uint8_t *) text + b->offset,
                len);

    if (rc == 0) {
        rc = a->len - b->len;
    }

    return rc ? rc : a->offset < b->offset ? -1 : a->offset > b->offset;
}


/*
 * Sorted, each text shares with the one before what the parser need not look
 * at again, and each nth one is a fair sample.
 */

static int
us_train_sort(us_training_t *t)
{
    size_t  n;

    n = t->in->nsamples;

    t->samples = malloc((n + 1) * sizeof(us_sample_t));

    if (t->samples == NULL) {
        return -1;
    }

    memcpy(t->samples, t->in->samples, n * sizeof(us_sample_t));
    qsort_r(t->samples, n, sizeof(us_sample_t), us_train_cmp_sample,
            (void *) t->in->text);

    return 0;
}


/* single bytes and runs are tokens from the start */

static int
us_trainer_init(us_training_t *t, const us_train_t *in,
    const volatile int *cancel)
{
    size_t  i, max;

    memset(t, 0, sizeof(us_training_t));

    t->in = in;
    t->cancel = cancel;
    t->ncodes = in->ncontexts + US_CODES;

    max = in->ntokens + 1;
    t->npairs = US_TRAIN_PAIRS;

    while (t->npairs > US_TRAIN_TEXT * in->nsamples
           && t->npairs > US_TRAIN_LEAST)
    {
        t->npairs /= 2;
    }

    t->tokens = calloc(max, sizeof(us_token_def_t));
    t->text = malloc(max * US_TOKEN_MAX);
    t->counts = malloc(in->ncontexts * max * sizeof(uint32_t));
    t->pairs = malloc(t->npairs * sizeof(us_pair_t));
    t->firsts = malloc(US_CTX_GROUP * max * sizeof(uint32_t));
    t->codes = calloc(t->ncodes, sizeof(us_code_def_t));
    t->symbols = malloc(t->ncodes * max * sizeof(uint16_t));
    t->work = malloc(2 * max * sizeof(uint64_t));

    if (t->tokens == NULL || t->text == NULL || t->counts == NULL
        || t->pairs == NULL || t->firsts == NULL || t->codes == NULL
        || t->symbols == NULL || t->work == NULL || us_train_sort(t) == -1)
    {
        return -1;
    }

    for (i = 0; i < t->ncodes; i++) {
        t->codes[i].symbols = t->symbols + i * max;
    }

    for (i = 0; i < US_TOKEN_TEXT; i++) {
        t->tokens[i].text = t->text + i;
        t->tokens[i].len = i < US_TOKEN_RUN
                           ? 1 : (uint8_t) us_token_run_len((unsigned) i);
        t->text[i] = (uint8_t) i;
    }

    t->ntokens = US_TOKEN_TEXT;
    t->text_used = US_TOKEN_TEXT;

    return 0;
}


static int
us_train_cmp_follow(const void *one, const void *two)
{
    const us_kmeans_pair_t  *a = one, *b = two;

    if (a->prev != b->prev) {
        return a->prev < b->prev ? -1 : 1;
    }

    return (a->next > b->next) - (a->next < b->next);
}


/* the pairs in order; returns their number */

static size_t
us_train_follows(const us_training_t *t, us_kmeans_pair_t *follows)
{
    size_t  i, n;

    for (i = 0, n = 0; i < t->npairs; i++) {
        if (t->pairs[i].count) {
            follows[n].prev = (uint16_t) (t->pairs[i].key >> 16);
            follows[n].next = (uint16_t) t->pairs[i].key;
            follows[n++].count = t->pairs[i].count;
        }
    }

    qsort(follows, n, sizeof(us_kmeans_pair_t), us_train_cmp_follow);

    return n;
}


/*
 * The first guess: tokens that end in the same common byte, the rest (group 0),
 * runs (group 1).  A good half of the groups: the others are left empty.
 */

static void
us_train_guess(const us_training_t *t, uint8_t *group, unsigned ngroups)
{
    size_t    i;
    uint8_t   of[256], last;
    unsigned  g, k, best;
    uint64_t  ends[256];

    memset(ends, 0, sizeof(ends));
    memset(of, 0, sizeof(of));

    for (i = 0; i < t->ntokens; i++) {
        if (!us_token_is_run((unsigned) i)) {
            ends[t->tokens[i].text[t->tokens[i].len - 1]] += t->counts[i];
        }
    }

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
        if (us_token_is_run((unsigned) i)) {
            group[i] = 1;

        } else {
            last = t->tokens[i].text[t->tokens[i].len - 1];
            group[i] = of[last];
        }
    }
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


/*
 * Groups tokens by what follows them, so that one code for the group's tokens
 * loses least against a code for each (k-means under Kullback-Leibler
 * divergence; Dhillon, Mallela, Kumar, 2003).
 *
 *     bits(t, g) = sum over u of  n(t,u) * -log2 p(u | g)
 *
 * Each round counts the groups, then moves every token to the group where it is
 * cheapest.  Tokens that were seen seldom stay where the first guess put them.
 * Empty groups are given to the tokens that lose most where they are.
 *
 * group is the first guess on entry (groups may be empty) and the answer on
 * return.  0, or -1: no memory.
 */

static int
us_kmeans(us_training_t *t, us_kmeans_pair_t *follows, size_t n,
    unsigned ngroups, uint8_t *group)
{
    int          rc;
    float        bits[256], *row, count;
    size_t       i, u, next;
    double       sum[256], total;
    unsigned     g, best, round;
    uint16_t     token;
    us_kmeans_t  c;

    c.follows = follows;
    c.n = n;
    c.ngroups = ngroups;
    c.group = group;
    c.any = calloc(t->ntokens, sizeof(double));
    c.bits = malloc((size_t) t->ntokens * ngroups * sizeof(float));
    c.losses = malloc(t->ntokens * sizeof(us_kmeans_loss_t));

    rc = -1;

    if (c.any == NULL || c.bits == NULL || c.losses == NULL) {
        goto done;
    }

    for (i = 0, total = 0; i < n; i++) {
        c.any[follows[i].next] += follows[i].count;
        total += follows[i].count;
    }

    for (u = 0; u < t->ntokens; u++) {
        c.any[u] = (c.any[u] + .5) / (total + (double) t->ntokens / 2);
    }

    for (round = 0; round < US_KMEANS_ROUNDS; round++) {
        memset(c.bits, 0, (size_t) t->ntokens * ngroups * sizeof(float));
        memset(sum, 0, sizeof(sum));

        for (i = 0; i < n; i++) {
            g = group[follows[i].prev];

            c.bits[follows[i].next * ngroups + g] += (float) follows[i].count;
            sum[g] += follows[i].count;
        }

        for (u = 0; u < t->ntokens; u++) {
            row = c.bits + u * ngroups;

            for (g = 0; g < ngroups; g++) {
                row[g] = -log2f((row[g]
                                 + (float) (US_KMEANS_SMOOTH * c.any[u]))
                                / (float) (sum[g] + US_KMEANS_SMOOTH));
            }
        }

        if (us_cancelled(t->cancel)) {
            break;
        }

        if (round % 2 == 0 && round + 2 < US_KMEANS_ROUNDS) {
            us_kmeans_seed(&c);
            continue;
        }

        for (i = 0; i < n; i = next) {
            token = follows[i].prev;
            next = us_kmeans_token(&c, i, &total);

            if (total < US_KMEANS_SELDOM) {
                continue;
            }

            memset(bits, 0, sizeof(bits));

            for ( /* void */ ; i < next; i++) {
                row = c.bits + follows[i].next * ngroups;
                count = (float) follows[i].count;

                for (g = 0; g < ngroups; g++) {
                    bits[g] += count * row[g];
                }
            }

            for (g = 0, best = group[token]; g < ngroups; g++) {
                if (bits[g] < bits[best]) {
                    best = g;
                }
            }

            group[token] = (uint8_t) best;
        }
    }

    rc = 0;

done:

    free(c.losses);
    free(c.bits);
    free(c.any);

    return rc;
}


/*
 * Counts in each context, now that there are some: by the pairs, and by the
 * first tokens, whose contexts have always been there.
 */

static int
us_train_count(us_training_t *t)
{
    size_t            i;
    uint32_t         *counts;
    const us_pair_t  *p;

    t->ncontexts = t->in->ncontexts;
    t->pairing = 0;

    counts = us_train_counts(t, 0);
    memset(counts, 0, t->ncontexts * (t->ntokens + 1u) * sizeof(uint32_t));
    memcpy(counts, t->firsts,
           US_CTX_GROUP * (t->ntokens + 1u) * sizeof(uint32_t));

    for (i = 0; i < t->npairs; i++) {
        p = &t->pairs[i];

        if (p->count) {
            counts = us_train_counts(t, t->tokens[p->key >> 16].ctx);
            counts[p->key & 0xffff] += p->count;
        }
    }

    return us_train_prepare(t);
}


static int
us_train_contexts(us_training_t *t)
{
    int                rc;
    size_t             i, n;
    uint8_t           *group;
    unsigned           ngroups;
    us_kmeans_pair_t  *follows;

    rc = -1;
    ngroups = t->in->ncontexts - US_CTX_GROUP;
    group = calloc(t->ntokens, 1);
    follows = malloc(t->npairs * sizeof(us_kmeans_pair_t));

    if (group && follows) {
        n = us_train_follows(t, follows);
        us_train_guess(t, group, ngroups);

        rc = us_kmeans(t, follows, n, ngroups, group);
    }

    for (i = 0; i < t->ntokens && rc == 0; i++) {
        t->tokens[i].ctx = (uint8_t) (US_CTX_GROUP + group[i]);
    }

    free(follows);
    free(group);

    return rc == 0 ? us_train_count(t) : -1;
}


static void
us_train_code(us_training_t *t, unsigned code, uint32_t *counts, unsigned n,
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


/*
 * Makes the codes by the counts.  What is rare in a context goes by the escape,
 * and counts there.
 */

static int
us_train_codes(us_training_t *t)
{
    size_t     i;
    unsigned   c;
    uint32_t  *counts, *all;

    all = malloc((t->ntokens + 1u) * sizeof(uint32_t));
    if (all == NULL) {
        return -1;
    }

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

        /*
         * The longest code must have 4 bits, as it has with 9 symbols: so many
         * letters are always there.
         */

        for (i = 0; i < US_TRAIN_LETTERS; i++) {
            if (counts['a' + i] == 0) {
                counts['a' + i] = 1;
            }
        }

        us_train_code(t, c, counts, t->ntokens + 1, 15);
    }

    us_train_code(t, t->ncontexts + US_CODE_ESCAPE, all, t->ntokens, 16);

    free(all);

    return 0;
}


/* the length of each symbol of a code; 0: it is not in it */

static void
us_train_lengths(const us_code_def_t *code, uint8_t *lens, size_t n)
{
    size_t    i;
    unsigned  l, k;

    memset(lens, 0, n);

    for (l = 1, i = 0; l <= US_HUFFMAN_MAX; l++) {
        for (k = 0; k < code->nlen[l]; k++) {
            lens[code->symbols[i++]] = (uint8_t) l;
        }
    }
}


/* parses and counts again, under the prices of the codes */

static int
us_train_recount(us_training_t *t)
{
    uint8_t   *lens, *escape;
    unsigned   c;

    lens = malloc(2 * (t->ntokens + 1u));
    if (lens == NULL) {
        return -1;
    }

    escape = lens + t->ntokens + 1;
    us_train_lengths(&t->codes[t->ncontexts + US_CODE_ESCAPE], escape,
                     t->ntokens + 1u);

    for (c = 0; c < t->ncontexts; c++) {
        us_train_lengths(&t->codes[c], lens, t->ntokens + 1u);
        us_parser_price(t->parser, c, lens, escape);
    }

    free(lens);

    return us_train_parse(t, 1);
}


/* header symbols can all be needed some day */

static void
us_train_header(us_training_t *t, unsigned code, const uint32_t *counts,
    unsigned n)
{
    unsigned  i;
    uint32_t  all[US_PREFIX_SYMBOLS];

    for (i = 0; i < n; i++) {
        all[i] = counts[i] + 1;
    }

    us_train_code(t, t->ncontexts + code, all, n, 15);
}


static void
us_trainer_free(us_training_t *t)
{
    if (t->parser) {
        us_parser_destroy(t->parser);
    }

    free(t->samples);
    free(t->work);
    free(t->symbols);
    free(t->codes);
    free(t->firsts);
    free(t->pairs);
    free(t->counts);
    free(t->text);
    free(t->tokens);
}


uint8_t *
us_train(const us_train_t *in, const volatile int *cancel, size_t *len)
{
    uint8_t        *core;
    us_training_t   t;
    us_model_def_t  def;

    core = NULL;

    if (us_trainer_init(&t, in, cancel) == -1
        || us_train_vocabulary(&t) == -1
        || us_train_contexts(&t) == -1
        || us_train_codes(&t) == -1
        || us_train_recount(&t) == -1
        || us_train_codes(&t) == -1)
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

    us_trainer_free(&t);

    return core;
}
