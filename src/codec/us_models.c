
/*
 * The models of a zone, and a process's tables for them.
 *
 *   head->models     how many there are; number n was published before n + 1
 *   head->model[n]   offset of model n:  | first id: 64 | us_model_t |
 *
 * A record is written under the newest model at its id: the one with the
 * greatest first id that is not above it.  A model is immutable, and it is
 * published before the first record with its first id is.
 *
 * The tables for decoding are private to a handle: they follow from the models,
 * and are laid out for speed.  They are made when the first record is read, and
 * when a new model is seen (about 1 ms for each), in memory that was reserved
 * when the store was opened, so that a look-up cannot fail for want of it.  A
 * huge page holds the first 2 MB of them.
 *
 * A process builds its encoder for a new model in steps, one with every few
 * URLs that it adds, and meanwhile encodes with the one that it has; such
 * records name their model's number.
 */


#include "us_models.h"
#include "../us_huge.h"

#include <stdlib.h>
#include <sys/mman.h>


#define US_FIRST_WORDS    (US_MODEL_FIRST / sizeof(uint64_t))

/*
 * Bytes of a model's tables.  Those that the trainer makes take less than .7
 * MB.
 */
#define US_TABLES_MAX     ((size_t) 1 << 20)

#define US_TABLES_SIZE    ((US_MODELS_MAX + 1) * US_TABLES_MAX)


/* the tables of a model, in memory that is there */

static void
us_models_add(us_models_t *ms, unsigned number, const us_model_t *m)
{
    unsigned            codes;
    us_model_tables_t  *t;

    t = &ms->tables[number];
    codes = us_model_ncontexts(m);

    t->decoder = us_decoder_build(ms->memory + ms->used, m);
    ms->used += us_decoder_size(m);

    us_model_codes(m, codes + US_CODE_HEAD, t->codes.head, US_HEAD_SYMBOLS);
    us_model_codes(m, codes + US_CODE_NEAR, t->codes.near, US_PREFIX_SYMBOLS);
    us_model_codes(m, codes + US_CODE_FAR, t->codes.far, US_PREFIX_SYMBOLS);

    t->model = m;
}


void
us_models_update(us_models_t *ms)
{
    uint64_t         n, limit;
    const uint64_t  *p;

    /*
     * Acquire, in this order: the models of all records below next_id were
     * counted before it was released, and a model and its offset were written
     * before it was counted.
     */

    limit = us_acquire(&ms->arena->head->next_id);
    n = us_acquire(&ms->arena->head->models);

    if (ms->tables[US_MODEL_BUILTIN].model == NULL) {
        us_models_add(ms, US_MODEL_BUILTIN, ms->builtin);
    }

    for ( /* void */ ; ms->n < n && ms->n < US_MODELS_MAX; ms->n++) {
        p = (const uint64_t *)
            (ms->arena->base + us_relaxed(&ms->arena->head->model[ms->n]));

        us_models_add(ms, ms->n, (const us_model_t *) (p + US_FIRST_WORDS));
        ms->first[ms->n] = p[0];
    }

    ms->limit = limit;
}


int
us_models_open(us_models_t *ms, us_arena_t *a)
{
    memset(ms, 0, sizeof(us_models_t));

    ms->arena = a;

    ms->memory = us_huge_map(US_TABLES_SIZE, US_HUGE_PAGE);

    if (ms->memory == NULL) {
        return -1;
    }

    ms->builtin = us_builtin_create();

    if (ms->builtin == NULL) {
        munmap(ms->memory, US_TABLES_SIZE);
        return -1;
    }

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

    munmap(ms->memory, US_TABLES_SIZE);
    free(ms->builtin);
}


void
us_models_wipe(us_models_t *ms)
{
    if (ms->encoder) {
        us_encoder_wipe(ms->encoder);
    }

    if (ms->next) {
        us_encoder_wipe(ms->next);
    }
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

    newest = us_models_newest(ms);

    if (ms->encoder == NULL) {
        newest = US_MODEL_BUILTIN;
    }

    if (ms->next && ms->next_number != newest) {
        us_encoder_destroy(ms->next);
        ms->next = NULL;
    }

    if (ms->next == NULL) {
        if (ms->encoder && ms->number == newest) {
            return 0;
        }

        ms->next = us_encoder_create(ms->tables[newest].model);
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


size_t
us_models_chunks(const us_models_t *ms, const us_model_t *m)
{
    size_t  chunk;

    chunk = (size_t) 1 << ms->arena->chunk_shift;

    return (us_model_bytes(m).len + US_MODEL_FIRST + chunk - 1)
           >> ms->arena->chunk_shift;
}


int
us_models_install_locked(us_models_t *ms, const us_model_t *m)
{
    size_t       n;
    us_str_t     bytes;
    uint64_t     number, at, *p;
    us_head_t   *h;
    us_arena_t  *a;

    a = ms->arena;
    h = a->head;
    number = h->models;
    bytes = us_model_bytes(m);
    n = us_models_chunks(ms, m);

    if (number == US_MODELS_MAX || us_decoder_size(m) > US_TABLES_MAX) {
        return US_REPLAY_DAMAGED;
    }

    /*
     * a kill between this and the commit loses these chunks, and nothing else
     */

    at = h->area[US_AREA_MODELS].n << a->chunk_shift;

    if (us_arena_grow_locked(a, US_AREA_MODELS, n) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    p = (uint64_t *) us_area_at(a, US_AREA_MODELS, at);

    p[0] = h->next_id;
    memcpy(p + US_FIRST_WORDS, bytes.data, bytes.len);

    us_intend_locked(a, &h->model[number],
                     (uint64_t) ((uint8_t *) p - a->base));
    us_intend_locked(a, &h->models, number + 1);

    return 0;
}
