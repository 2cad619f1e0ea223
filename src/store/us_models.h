
/*
 * The models of a zone, and a process's encoders.  See us_models.c.
 */


#ifndef _US_MODELS_H_INCLUDED_
#define _US_MODELS_H_INCLUDED_


#include "us_arena.h"
#include "us_encoder.h"


#define US_MODELS_MAX     6
#define US_MODEL_BUILTIN  7           /* its number in an escape, of 3 bits */


typedef struct {
    us_arena_t         *arena;
    us_model_t         *builtin;

    /* what is known of head->models */
    unsigned            n;
    const us_model_t   *model[US_MODELS_MAX];
    uint64_t            first[US_MODELS_MAX];

    us_encoder_t       *encoder;      /* ready */
    unsigned            number;       /* its model's */
    us_encoder_t       *next;         /* being built */
    unsigned            next_number;
} us_models_t;


/* 0, or -1: no memory */
int us_models_open(us_models_t *ms, us_arena_t *a);
void us_models_close(us_models_t *ms);

/* takes a step towards an encoder for the newest model; 0, -1: no memory */
int us_models_step(us_models_t *ms);

/* the number of the newest model when id was or will be written */
unsigned us_models_number(us_models_t *ms, uint64_t id);

/* NULL: there is no such model */
const us_model_t *us_models_get(us_models_t *ms, unsigned number);

/*
 * Under the lock, nothing intended: copies a built model to the zone and
 * intends to publish it for ids from next_id on.  -1: no room.
 */
int us_models_install(us_models_t *ms, const us_model_t *m, size_t size);


#endif /* _US_MODELS_H_INCLUDED_ */
