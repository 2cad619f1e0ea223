
/*
 * Learns a model from a sample of texts.
 *
 *     vocabulary    the tokens (us_vocabulary.c)
 *     contexts      tokens that are followed by similar tokens are put into
 *                   one group (us_cluster.c)
 *     codes         by the pairs of the vocabulary's last round; then parse
 *                   under these codes, count, and make them again
 */


#include "us_train_private.h"
#include "../us_atomic.h"
#include "us_cluster.h"

#include <math.h>
#include <stdlib.h>


#define US_TRAIN_LETTERS  16          /* of each context, used or not */


static int us_trainer_init(us_trainer_t *t, const us_train_t *in,
    const volatile int *cancel);
static void us_trainer_free(us_trainer_t *t);
static int us_train_contexts(us_trainer_t *t);
static int us_train_codes(us_trainer_t *t);
static int us_train_recount(us_trainer_t *t);
static void us_train_code(us_trainer_t *t, unsigned code, uint32_t *counts,
    unsigned n, unsigned max);
static void us_train_header(us_trainer_t *t, unsigned code,
    const uint32_t *counts, unsigned n);


uint8_t *
us_train(const us_train_t *in, const volatile int *cancel, size_t *len)
{
    uint8_t        *core;
    us_trainer_t    t;
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
us_train_sort(us_trainer_t *t)
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
us_trainer_init(us_trainer_t *t, const us_train_t *in,
    const volatile int *cancel)
{
    size_t  i, max;

    memset(t, 0, sizeof(us_trainer_t));

    t->in = in;
    t->cancel = cancel;
    t->ncodes = in->ncontexts + US_CODES;

    max = in->ntokens + 1;

    t->tokens = calloc(max, sizeof(us_token_def_t));
    t->text = malloc(max * US_TOKEN_MAX);
    t->counts = malloc(in->ncontexts * max * sizeof(uint32_t));
    t->pairs = malloc(US_TRAIN_PAIRS * sizeof(us_pair_t));
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


static void
us_trainer_free(us_trainer_t *t)
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


static int
us_train_cmp_follow(const void *one, const void *two)
{
    const us_follow_t  *a = one, *b = two;

    if (a->prev != b->prev) {
        return a->prev < b->prev ? -1 : 1;
    }

    return (a->next > b->next) - (a->next < b->next);
}


/* the pairs in order, US_TRAIN_PAIRS at most; returns their number */

static size_t
us_train_follows(const us_trainer_t *t, us_follow_t *follows)
{
    size_t  i, n;

    for (i = 0, n = 0; i < US_TRAIN_PAIRS; i++) {
        if (t->pairs[i].count) {
            follows[n].prev = (uint16_t) (t->pairs[i].key >> 16);
            follows[n].next = (uint16_t) t->pairs[i].key;
            follows[n++].count = t->pairs[i].count;
        }
    }

    qsort(follows, n, sizeof(us_follow_t), us_train_cmp_follow);

    return n;
}


/*
 * The first guess: tokens that end in the same common byte, the rest (group 0),
 * runs (group 1).  A good half of the groups: the others are left empty.
 */

static void
us_train_guess(const us_trainer_t *t, uint8_t *group, unsigned ngroups)
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


/*
 * Counts in each context, now that there are some: by the pairs, and by the
 * first tokens, whose contexts have always been there.
 */

static int
us_train_count(us_trainer_t *t)
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

    for (i = 0; i < US_TRAIN_PAIRS; i++) {
        p = &t->pairs[i];

        if (p->count) {
            counts = us_train_counts(t, t->tokens[p->key >> 16].ctx);
            counts[p->key & 0xffff] += p->count;
        }
    }

    return us_train_prepare(t);
}


static int
us_train_contexts(us_trainer_t *t)
{
    int           rc;
    size_t        i, n;
    uint8_t      *group;
    unsigned      ngroups;
    us_follow_t  *follows;

    rc = -1;
    ngroups = t->in->ncontexts - US_CTX_GROUP;
    group = calloc(t->ntokens, 1);
    follows = malloc(US_TRAIN_PAIRS * sizeof(us_follow_t));

    if (group && follows) {
        n = us_train_follows(t, follows);
        us_train_guess(t, group, ngroups);

        rc = us_cluster(follows, n, t->ntokens, ngroups, group, t->cancel);
    }

    for (i = 0; i < t->ntokens && rc == 0; i++) {
        t->tokens[i].ctx = (uint8_t) (US_CTX_GROUP + group[i]);
    }

    free(follows);
    free(group);

    return rc == 0 ? us_train_count(t) : -1;
}


/*
 * Makes the codes by the counts.  What is rare in a context goes by the escape,
 * and counts there.
 */

static int
us_train_codes(us_trainer_t *t)
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
us_train_recount(us_trainer_t *t)
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
