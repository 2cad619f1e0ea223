
/*
 * The models of a zone, and a process's tables for them.  See us_models.c.
 */


#ifndef _US_MODELS_H_INCLUDED_
#define _US_MODELS_H_INCLUDED_


#include "../zone/us_arena.h"
#include "us_decoder.h"
#include "us_parse.h"


#define US_MODELS_MAX     6
#define US_MODEL_BUILTIN  7           /* its number in an escape, of 3 bits */

/* bytes before a model in the zone */
#define US_MODEL_FIRST    64

/* codes of a header's symbols, as us_code_make() makes them */

typedef struct {
    uint32_t             head[US_HEAD_SYMBOLS];
    uint32_t             near[US_PREFIX_SYMBOLS];
    uint32_t             far[US_PREFIX_SYMBOLS];
} us_header_codes_t;


typedef struct {
    const us_model_t    *model;
    const us_decoder_t  *decoder;
    us_header_codes_t    codes;
} us_model_tables_t;


typedef struct {
    us_arena_t          *arena;
    us_model_t          *builtin;

    /*
     * What is known of head->models.  Records below `limit` have one of these
     * models: number i from id first[i] on.
     */
    uint64_t             limit;
    unsigned             n;
    uint64_t             first[US_MODELS_MAX];
    us_model_tables_t    tables[US_MODEL_BUILTIN + 1];

    uint8_t             *memory;      /* of decoders */
    size_t               used;
    uint8_t             *copies;      /* of models, US_MODEL_COPY each */
    uint64_t             retexts;     /* they are as they were then */

    us_encoder_t        *encoder;     /* ready */
    unsigned             number;      /* its model's */
    us_encoder_t        *next;        /* being built */
    unsigned             next_number;
} us_models_t;


/* 0, or -1: no memory */
int us_models_open(us_models_t *ms, us_arena_t *a);
void us_models_close(us_models_t *ms);

/*
 * Overwrites the texts that encoders have of URLs, and models that were
 * replaced.  No group is begun.
 */
void us_models_wipe(us_models_t *ms);

/* takes a step towards an encoder for the newest model; 0, -1: no memory */
int us_models_step(us_models_t *ms);

/* looks for models that were published since */
void us_models_update(us_models_t *ms);

/* whether texts of models went that this handle still has */

static inline int
us_models_stale(const us_models_t *ms)
{
    return us_acquire(&ms->arena->head->retexts) != ms->retexts;
}


/*
 * If so, forgets these; there is no encoder then for a moment.  Nobody uses any
 * model of this handle.
 */
void us_models_refresh(us_models_t *ms);


/*
 * The number of the newest model when id, which is not US_STORE_NO_ID, was or
 * will be written.
 */

static inline unsigned
us_models_number(us_models_t *ms, uint64_t id)
{
    unsigned  i;

    if (id >= ms->limit) {
        us_models_update(ms);
    }

    for (i = ms->n; i > 0 && ms->first[i - 1] > id; i--) { /* void */ }

    return i ? i - 1 : US_MODEL_BUILTIN;
}


/*
 * Under the lock, nothing intended: copies a model to the zone and intends to
 * publish it for ids from next_id on.  US_REPLAY_NO_ROOM, or US_REPLAY_DAMAGED:
 * there are as many as there can be, or its tables would be too large.
 */
int us_models_install_locked(us_models_t *ms, const us_model_t *m);

/* under the lock: model `number` as the zone has it */

static inline const us_model_t *
us_models_shared(const us_arena_t *a, uint64_t number)
{
    return (const us_model_t *) (a->base + a->head->model[number]
                                 + US_MODEL_FIRST);
}


/* without a lock: the first record of a model; any number if its text goes */

static inline uint64_t
us_models_first(const us_arena_t *a, uint64_t number)
{
    return us_acquire((const uint64_t *)
                      (a->base + us_acquire(&a->head->model[number])));
}


/*
 * Under the lock, nothing intended: the same for a model that takes the place
 * of model `number`, and is the same but for texts that no record has.  Some
 * commits later, us_models_clear_locked() overwrites what is not used any more.
 */
int us_models_replace_locked(us_models_t *ms, unsigned number,
    const us_model_t *m);
void us_models_clear_locked(us_models_t *ms);

/* chunks that it takes */
size_t us_models_chunks(const us_models_t *ms, const us_model_t *m);


#endif /* _US_MODELS_H_INCLUDED_ */
