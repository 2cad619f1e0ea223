
/*
 * When a store learns a model, and from what.
 *
 *     records   built-in | model 0 | model 1 |        | model 2 | model 3
 *               0        32 K      256 K     1 M, 2 M 4 M       16 M
 *
 * The second line has the number of records at which each model is learnt.  A
 * model is learnt from the last records and from the tokens of the model before
 * it (but not from the built-in one).  The sample of a text has what its
 * reference supplies: the trainer prices the text with the reference and
 * without it.  Early models are small: they must pay in a store that may not
 * grow any further.
 *
 * If URLs have changed since the model before, its tokens are no help: they
 * are where the old texts were best cut, and what is new becomes runs.  The
 * newest records are then much longer than the first that this model coded.  In
 * this case the next model begins with no tokens.  At 1 M and 2 M records, a
 * model is learnt only in this case: else it would be hardly better than the
 * one before, and take more memory than it saves.
 *
 * A model reaches the journal as one operation, through the ring.  Where the
 * ring is small, so is the model: with half the tokens, or a quarter, ... .  If
 * even then there is no room, the store learns no model any more: memory is
 * never given back, so there would be no room later either.
 */


#include "us_learn.h"
#include "us_record_private.h"
#include "us_train.h"

#include <stdlib.h>


#define US_LEARN_TEXT     (24 << 20)  /* bytes */

#define US_LEARN_WINDOW   (1 << 14)   /* records by which a change is seen */

#define US_LEARN_TOKEN    20          /* bytes of a model for each, 19.1 used */
#define US_LEARN_LEAST    512         /* tokens */


/* from when on, from how many, and how large; tuned with make bench-engine */

typedef struct {
    uint64_t  records;
    uint64_t  sample;
    unsigned  ntokens;
    unsigned  ncontexts;
    int       changed;                /* only if URLs have changed */
} us_learn_model_t;

static const us_learn_model_t  us_learn_models[] = {
    { 1 << 15, 1 << 15, 4096, 32, 0 },
    { 1 << 18, 9 << 14, US_TOKENS_MAX, 48, 0 },
    { 1 << 20, 9 << 14, US_TOKENS_MAX, 48, 1 },
    { 1 << 21, 9 << 14, US_TOKENS_MAX, 48, 1 },
    { 1 << 22, 1 << 18, US_TOKENS_MAX, 64, 0 },
    { 1 << 24, 1 << 18, US_TOKENS_MAX, 64, 0 }
};

#define US_LEARN_ALWAYS   2           /* so many are learnt by their number */

#define US_LEARN_MODELS                                                      \
    (sizeof(us_learn_models) / sizeof(us_learn_models[0]))


/* the largest vocabulary, up to ntokens, whose model fits the ring; 0: none */

static unsigned
us_learn_tokens(const us_arena_t *a, unsigned ntokens)
{
    uint64_t  ring;

    ring = a->head->ring_size;

    while (ring && (uint64_t) ntokens * US_LEARN_TOKEN > ring) {
        ntokens /= 2;
    }

    return ntokens < US_LEARN_LEAST ? 0 : ntokens;
}


/*
 * What is learnt next, due or not, if there are n models and the newest one
 * codes the records from `first` on; NULL: nothing.  A store that grows faster
 * than it learns has its first two models late, not just one of them.
 */

static const us_learn_model_t *
us_learn_next(const us_arena_t *a, uint64_t n, uint64_t first)
{
    size_t    i;
    uint64_t  learnt;

    /* acquire: other words of the header that are read later are not older */

    learnt = us_acquire(&a->head->learnt);

    if (n >= US_LEARN_ALWAYS && first > learnt) {
        learnt = first;
    }

    i = n < US_LEARN_ALWAYS ? n : US_LEARN_ALWAYS;

    for ( ; i < US_LEARN_MODELS; i++) {
        if (us_learn_models[i].records > learnt) {
            return &us_learn_models[i];
        }
    }

    return NULL;
}


int
us_learn_due(const us_arena_t *a)
{
    uint64_t                 n;
    const us_learn_model_t  *next;

    /*
     * The result is a hint: the trainer asks again after it has taken its role.
     * So it does no harm that another model may lie there by now.
     */

    n = us_acquire(&a->head->models);
    next = us_learn_next(a, n, n ? us_models_first(a, n - 1) : 0);

    return n < US_MODELS_MAX && next
           && us_acquire(&a->head->next_id) >= next->records
           && us_learn_tokens(a, next->ntokens) != 0;
}


void
us_learn_give_up(us_learn_t *l, us_arena_t *a)
{
    us_release(&a->head->learnt, UINT64_MAX);
    us_learn_free(l);
}


/* the length of a window of records */

static uint64_t
us_learn_units(us_codec_t *c, uint64_t id)
{
    uint8_t    buf[US_RECORD_BUFFER];
    uint64_t   end, units;
    us_bits_t  record;

    units = 0;

    for (end = id + US_LEARN_WINDOW; id < end; id++) {
        us_log_get(c->arena, id, buf, &record);
        units += record.units;
    }

    return units;
}


/*
 * Whether URLs have changed since the last model, of which there is one.  If
 * the answer is wrong, records are 1 or 2 % longer, or learning takes up to
 * twice as long.  The half was chosen by the lists of docs/decisions/codec.md.
 */

static int
us_learn_changed(us_codec_t *c)
{
    uint64_t  first, next;

    /* acquire: the records below are complete */

    next = us_acquire(&c->arena->head->next_id);
    first = c->models.first[c->models.n - 1];

    return next >= first + 2 * US_LEARN_WINDOW
           && us_learn_units(c, next - US_LEARN_WINDOW)
              > us_learn_units(c, first) * 3 / 2;
}


/*
 * The sample, without damaged records: one of them must not keep a store from
 * learning for ever; and without what is deleted, or was read while others were
 * erased.  0, or -1: no memory, or it was cancelled.
 */

static int
us_learn_sample(us_train_t *t, us_codec_t *c, const volatile int *cancel,
    uint64_t most, uint8_t **text, us_sample_t **samples)
{
    size_t         used, len;
    uint64_t       id, next, then;
    uint8_t        buf[US_RECORD_BUFFER];
    us_bits_t      record;
    us_bitin_t     b;
    us_header_t    h;
    us_sample_t   *s;

    /* acquire: the records below are complete */

    next = us_acquire(&c->arena->head->next_id);
    id = next > most ? next - most : 0;

    *text = malloc(US_LEARN_TEXT + US_TEXT_BUFFER);
    *samples = malloc((size_t) (next - id) * sizeof(us_sample_t));

    if (*text == NULL || *samples == NULL) {
        return -1;
    }

    s = *samples;

    for (used = 0; id < next && used < US_LEARN_TEXT; id++) {

        if (us_cancelled(cancel)) {
            return -1;
        }

        then = us_erasing(c->arena);

        if (us_deleted(c->arena, id)) {
            continue;
        }

        us_log_get(c->arena, id, buf, &record);

        if (us_header_read(&c->models, id, &record, &h, &b) == -1) {
            continue;
        }

        len = us_record_decode(c, id, *text + used);

        if (len == 1 || us_erased_since(c->arena, then)) {
            continue;
        }

        us_header_count(id, &h, t->head, t->near, t->far);

        s->offset = (uint32_t) used;
        s->len = (uint16_t) len;
        s->cut = (uint16_t) h.cut;
        s->price = (uint16_t) ((b.pos - record.bit) * US_PRICE_BIT);

        s++;
        used += len;
    }

    t->text = *text;
    t->samples = *samples;
    t->nsamples = (size_t) (s - *samples);

    return 0;
}


/*
 * Changes when erasures go on: what was learnt before may have texts that must
 * go, and that whoever looks for them does not find any more.
 */

static uint64_t
us_learn_age(const us_arena_t *a)
{
    return us_acquire(&a->head->vetted) + us_acquire(&a->head->retexts);
}


int
us_learn(us_learn_t *l, us_codec_t *c, const volatile int *cancel,
    us_str_t *model)
{
    int           changed;
    uint8_t      *text;
    uint64_t      n, number;
    us_train_t   *t;
    us_sample_t  *samples;

    const us_learn_model_t  *next;

    number = us_acquire(&c->arena->head->models);

    /* it was learnt before, but the ring had no room to install it */

    if (l->model && l->number == number && l->age == us_learn_age(c->arena)) {
        goto done;
    }

    us_learn_free(l);
    l->age = us_learn_age(c->arena);

    us_record_refresh(c);
    n = c->models.n;
    next = us_learn_next(c->arena, n, n ? c->models.first[n - 1] : 0);
    changed = n && us_learn_changed(c);

    if (next == NULL || (next->changed && !changed)) {

        /* release: who reads it knows the models that were there before */

        if (next) {
            us_release(&c->arena->head->learnt, next->records);
        }

        return 0;
    }

    t = calloc(1, sizeof(us_train_t));
    if (t == NULL) {
        return 0;
    }

    text = NULL;
    samples = NULL;

    if (n && !changed) {
        t->base = c->models.tables[n - 1].model;
    }

    if (us_learn_sample(t, c, cancel, next->sample, &text, &samples) == 0) {
        t->ntokens = us_learn_tokens(c->arena, next->ntokens);
        t->ncontexts = next->ncontexts;

        l->model = us_train(t, cancel, &l->len);
    }

    free(samples);
    free(text);
    free(t);

    if (l->model == NULL) {
        return 0;
    }

    l->number = number;

done:

    model->data = l->model;
    model->len = l->len;

    return 1;
}


int
us_learn_install_locked(us_learn_t *l, us_codec_t *c)
{
    us_model_t  *m;

    if (l->age != us_learn_age(c->arena)) {
        return US_REPLAY_FAILED;
    }

    m = (us_model_t *) l->model;

    /* like an add, it leaves the chunks that marks and deletes may need */

    if (!us_arena_fits(c->models.arena, us_models_chunks(&c->models, m)
                                        + us_arena_spare(c->models.arena), 0))
    {
        return US_REPLAY_NO_ROOM;
    }

    return us_models_install_locked(&c->models, m);
}


void
us_learn_free(us_learn_t *l)
{
    free(l->model);
    l->model = NULL;
}
