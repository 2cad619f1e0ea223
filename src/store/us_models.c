
/*
 * The models of a zone, and a process's encoders.
 *
 *   head->models     how many there are; number n was published before n + 1
 *   head->codec[n]   offset of model n:  | first id: 64 | us_model_t |
 *
 * A record is written under the newest model at its id: the one with the
 * greatest first id that is not above it.  A model is immutable, and it is
 * published before the first record with its first id is.
 *
 * A process builds its encoder for a new model in steps, one with every few
 * URLs that it adds, and meanwhile encodes with the one that it has; such
 * records name their model's number.
 */


#include "us_models.h"
#include "us_builtin.h"

#include <stdlib.h>


/* of 8 bytes: a model's tables are aligned to cache lines */
#define US_FIRST_WORDS  8


/* learns of models that were published since */

static void
us_models_update(us_models_t *ms)
{
    uint64_t         n;
    const uint64_t  *p;

    /*
     * Acquire: a model and its offset were written before it was counted.
     */

    n = us_acquire(&ms->arena->head->models);

    for ( /* void */ ; ms->n < n && ms->n < US_MODELS_MAX; ms->n++) {
        p = (const uint64_t *)
            (ms->arena->base + us_relaxed(&ms->arena->head->codec[ms->n]));

        ms->first[ms->n] = p[0];
        ms->model[ms->n] = (const us_model_t *) (p + US_FIRST_WORDS);
    }
}


int
us_models_open(us_models_t *ms, us_arena_t *a)
{
    memset(ms, 0, sizeof(us_models_t));

    ms->arena = a;
    ms->builtin = us_builtin_create();

    if (ms->builtin == NULL) {
        return -1;
    }

    us_models_update(ms);

    return 0;
}


void
us_models_close(us_models_t *ms)
{
    if (ms->encoder) {
        us_encoder_destroy(ms->encoder);
    }

    if (ms->next) {
        us_encoder_destroy(ms->next);
    }

    free(ms->builtin);
}


unsigned
us_models_number(us_models_t *ms, uint64_t id)
{
    unsigned  i;

    us_models_update(ms);

    for (i = ms->n; i > 0; i--) {
        if (ms->first[i - 1] <= id) {
            return i - 1;
        }
    }

    return US_MODEL_BUILTIN;
}


const us_model_t *
us_models_get(us_models_t *ms, unsigned number)
{
    if (number == US_MODEL_BUILTIN) {
        return ms->builtin;
    }

    return number < ms->n ? ms->model[number] : NULL;
}


/*
 * The first encoder is that of the built-in model, which is small, and built
 * at once: without one nothing can be written.
 */

int
us_models_step(us_models_t *ms)
{
    int       rc;
    unsigned  newest;

    newest = ms->encoder ? us_models_number(ms, US_STORE_NO_ID)
                         : US_MODEL_BUILTIN;

    if (ms->next && ms->next_number != newest) {
        us_encoder_destroy(ms->next);
        ms->next = NULL;
    }

    if (ms->next == NULL) {
        if (ms->encoder && ms->number == newest) {
            return 0;
        }

        ms->next = us_encoder_create(us_models_get(ms, newest));
        ms->next_number = newest;

        if (ms->next == NULL) {
            return ms->encoder ? 0 : -1;
        }
    }

    do {
        rc = us_encoder_build(ms->next);
    } while (rc == 0 && ms->encoder == NULL);

    if (rc == 0) {
        return 0;
    }

    if (rc == -1) {
        us_encoder_destroy(ms->next);
        ms->next = NULL;

        return ms->encoder ? 0 : -1;
    }

    if (ms->encoder) {
        us_encoder_destroy(ms->encoder);
    }

    ms->encoder = ms->next;
    ms->number = ms->next_number;
    ms->next = NULL;

    return 0;
}


int
us_models_install(us_models_t *ms, const us_model_t *m, size_t size)
{
    size_t       n, chunk;
    uint64_t     number, at, *p;
    us_head_t   *h;
    us_arena_t  *a;

    a = ms->arena;
    h = a->head;
    number = h->models;
    chunk = (size_t) 1 << a->chunk_shift;
    n = (size + US_FIRST_WORDS * sizeof(uint64_t) + chunk - 1)
        >> a->chunk_shift;

    if (number == US_MODELS_MAX) {
        return -1;
    }

    /* a kill between this and the commit loses these chunks, no more */

    at = h->area[US_AREA_MODELS].n << a->chunk_shift;

    if (us_arena_grow(a, US_AREA_MODELS, n) != 0) {
        return -1;
    }

    p = (uint64_t *) us_area_at(a, US_AREA_MODELS, at);

    p[0] = h->next_id;
    memcpy(p + US_FIRST_WORDS, m, size);

    us_intend(a, &h->codec[number], (uint64_t) ((uint8_t *) p - a->base));
    us_intend(a, &h->models, number + 1);

    return 0;
}
