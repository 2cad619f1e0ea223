
/*
 * The models of a zone, and a process's tables for them.
 *
 *   head->models     how many there are; number n was published before n + 1
 *   head->model[n]   offset of model n:  | first id: 64 | us_model_t |
 *
 * A record is written under the newest model at its id: the one with the
 * greatest first id that is not above it.  It is published before the first
 * record with its first id is.  What it decodes a record to never changes.
 *
 * Texts.  A model is replaced by one that has the same codes, but not the texts
 * of some tokens that no record has (us_tokens.c): the new one is written where
 * no model is, one commit sets head->model[n] and counts head->retexts, and
 * then all chunks that have no model are overwritten.  So wherever the writer
 * is killed, there is the old model or the new one; what is left to be
 * overwritten is left to the next one.
 *
 * A handle has private copies of all models, and uses only these.  It makes
 * them without the lock: if retexts has changed meanwhile, it copies again.  A
 * copy with texts that went decodes all records as before.  But a writer that
 * has one must not use the tokens: a record that was encoded with it is refused
 * under the lock and becomes raw (us_record_emit_locked()), and the handle gets
 * new copies before the next group, or when it is wiped.
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

/*
 * Bytes of a model whose tables are not larger.  Those have its text, too, and
 * for each of its symbols twice as much; each token is such a symbol.
 */
#define US_MODEL_COPY     (US_TABLES_MAX + 2 * US_TOKENS_MAX)

#define US_COPIES_SIZE    (US_MODELS_MAX * US_MODEL_COPY)


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


/*
 * A private copy of model `number`.  It is copied again as often as texts of
 * any model went meanwhile: for each time all records are read before.
 */

static const us_model_t *
us_models_copy(us_models_t *ms, unsigned number)
{
    size_t           size, i;
    uint64_t         then, *copy;
    us_head_t       *h;
    us_model_t      *m;
    const uint64_t  *p;

    h = ms->arena->head;
    copy = (uint64_t *) (ms->copies + number * US_MODEL_COPY);
    m = (us_model_t *) copy;

    do {

        /* acquire: the place is not older than the number */

        then = us_acquire(&h->retexts);

        p = (const uint64_t *)
            (ms->arena->base + us_acquire(&h->model[number]));
        ms->first[number] = us_relaxed(p);
        p += US_FIRST_WORDS;

        for (i = 0; i < sizeof(us_model_t) / sizeof(uint64_t); i++) {
            copy[i] = us_relaxed(p + i);
        }

        size = m->core_size < US_MODEL_COPY ? m->core_size : US_MODEL_COPY;

        for ( /* void */ ; i < size / sizeof(uint64_t); i++) {
            copy[i] = us_relaxed(p + i);
        }

        us_fence();

    } while (us_relaxed(&h->retexts) != then);

    return m;
}


void
us_models_update(us_models_t *ms)
{
    uint64_t  n, limit;

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

    /* before any is copied: a later copy may be newer, never older */

    if (ms->n == 0) {
        ms->retexts = us_acquire(&ms->arena->head->retexts);
    }

    for ( /* void */ ; ms->n < n && ms->n < US_MODELS_MAX; ms->n++) {
        us_models_add(ms, ms->n, us_models_copy(ms, ms->n));
    }

    ms->limit = limit;
}


static void
us_models_drop_encoders(us_models_t *ms)
{
    us_encoder_destroy(ms->encoder);
    us_encoder_destroy(ms->next);

    ms->encoder = NULL;
    ms->next = NULL;
}


void
us_models_refresh(us_models_t *ms)
{
    unsigned  i;

    if (!us_models_stale(ms)) {
        return;
    }

    us_models_drop_encoders(ms);

    for (i = 0; i < ms->n; i++) {
        explicit_bzero(ms->copies + i * US_MODEL_COPY,
                       us_model_bytes(ms->tables[i].model).len);
        ms->tables[i].model = NULL;
    }

    ms->tables[US_MODEL_BUILTIN].model = NULL;
    explicit_bzero(ms->memory, ms->used);
    ms->used = 0;
    ms->limit = 0;
    ms->n = 0;

    us_models_update(ms);
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

    ms->copies = us_huge_map(US_COPIES_SIZE, 0);
    ms->builtin = us_builtin_create();

    if (ms->copies == NULL || ms->builtin == NULL) {
        us_models_close(ms);
        return -1;
    }

    return 0;
}


void
us_models_close(us_models_t *ms)
{
    us_models_drop_encoders(ms);
    munmap(ms->memory, US_TABLES_SIZE);

    if (ms->copies) {
        munmap(ms->copies, US_COPIES_SIZE);
    }

    free(ms->builtin);
}


void
us_models_wipe(us_models_t *ms)
{
    us_models_refresh(ms);

    us_encoder_wipe(ms->encoder);
    us_encoder_wipe(ms->next);
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

    us_models_update(ms);

    newest = ms->encoder && ms->n ? ms->n - 1 : US_MODEL_BUILTIN;

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

    us_encoder_destroy(ms->encoder);

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


/*
 * Writes a model to the chunks of the area from number `at` on; returns where
 * that is.
 *
 * Release, here and where models are overwritten: somebody may be copying what
 * was there, and finds, if he has met a word that is new, that retexts is.
 */

static uint64_t
us_models_write_locked(us_models_t *ms, uint64_t at, uint64_t first,
    const us_model_t *m)
{
    size_t           i;
    uint64_t        *p;
    const uint64_t  *words;

    words = (const uint64_t *) m;
    p = (uint64_t *) us_area_at(ms->arena, US_AREA_MODELS,
                                at << ms->arena->chunk_shift);

    us_release(p, first);

    for (i = 0; i < us_model_bytes(m).len / sizeof(uint64_t); i++) {
        us_release(p + US_FIRST_WORDS + i, words[i]);
    }

    return (uint64_t) ((uint8_t *) p - ms->arena->base);
}


int
us_models_install_locked(us_models_t *ms, const us_model_t *m)
{
    uint64_t     number, at;
    us_head_t   *h;
    us_arena_t  *a;

    a = ms->arena;
    h = a->head;
    number = h->models;

    if (number == US_MODELS_MAX || us_decoder_size(m) > US_TABLES_MAX) {
        return US_REPLAY_DAMAGED;
    }

    /*
     * a kill between this and the commit loses these chunks, and nothing else
     */

    at = h->area[US_AREA_MODELS].n;

    if (us_arena_grow_locked(a, US_AREA_MODELS, us_models_chunks(ms, m)) != 0)
    {
        return US_REPLAY_NO_ROOM;
    }

    at = us_models_write_locked(ms, at, h->next_id, m);

    us_intend_locked(a, &h->model[number], at);
    us_intend_locked(a, &h->models, number + 1);

    return 0;
}


/* whether a chunk of the area has a part of a model */

static int
us_models_used(us_models_t *ms, const uint8_t *chunk)
{
    size_t          n;
    uint64_t        i;
    us_head_t      *h;
    const uint8_t  *p;

    h = ms->arena->head;

    for (i = 0; i < h->models && i < US_MODELS_MAX; i++) {
        p = ms->arena->base + h->model[i];
        n = us_models_chunks(ms, us_models_shared(ms->arena, i));

        if (chunk >= p && chunk < p + (n << ms->arena->chunk_shift)) {
            return 1;
        }
    }

    return 0;
}


/* the first of n chunks without a model, one after the other; or that of all */

static uint64_t
us_models_place(us_models_t *ms, size_t n)
{
    size_t       run;
    uint64_t     i;
    us_arena_t  *a;
    uint8_t     *chunk, *last;

    a = ms->arena;
    last = NULL;

    for (i = 0, run = 0; i < a->head->area[US_AREA_MODELS].n; i++) {
        chunk = us_area_at(a, US_AREA_MODELS, i << a->chunk_shift);

        if (us_models_used(ms, chunk)) {
            run = 0;
            continue;
        }

        run = run && chunk == last + ((size_t) 1 << a->chunk_shift) ? run + 1
                                                                    : 1;
        last = chunk;

        if (run == n) {
            return i + 1 - n;
        }
    }

    return i;
}


int
us_models_replace_locked(us_models_t *ms, unsigned number, const us_model_t *m)
{
    size_t       n;
    uint64_t     at, first;
    us_head_t   *h;
    us_arena_t  *a;

    a = ms->arena;
    h = a->head;
    n = us_models_chunks(ms, m);

    if (number >= h->models || us_decoder_size(m) > US_TABLES_MAX) {
        return US_REPLAY_DAMAGED;
    }

    /* as for a new one, a kill loses nothing: the next one finds the chunks */

    at = us_models_place(ms, n);

    if (at == h->area[US_AREA_MODELS].n
        && us_arena_grow_locked(a, US_AREA_MODELS, n) != 0)
    {
        return US_REPLAY_NO_ROOM;
    }

    first = *(uint64_t *) (a->base + h->model[number]);
    at = us_models_write_locked(ms, at, first, m);

    us_intend_locked(a, &h->model[number], at);
    us_intend_locked(a, &h->retexts, h->retexts + 1);

    return 0;
}


void
us_models_clear_locked(us_models_t *ms)
{
    size_t       k, n;
    uint64_t     i, *chunk;
    us_arena_t  *a;

    a = ms->arena;
    n = ((size_t) 1 << a->chunk_shift) / sizeof(uint64_t);

    for (i = 0; i < a->head->area[US_AREA_MODELS].n; i++) {
        chunk = (uint64_t *) us_area_at(a, US_AREA_MODELS,
                                        i << a->chunk_shift);

        if (us_models_used(ms, (uint8_t *) chunk)) {
            continue;
        }

        for (k = 0; k < n; k++) {
            us_release(chunk + k, 0);
        }
    }
}
