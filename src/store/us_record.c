
/*
 * Records: the text of a URL to bits and back.
 *
 *   text of record 93   \3 example.com/news/2013/05/    a.html
 *                       \____________ cut ________/\____ tail ____/
 *                          supplied by record 71
 *
 *   record 93           | header: TAIL, 22 back, cut | tokens of the tail |
 *   record 71           | header: WHOLE              | tokens of the text |
 *
 * The text is a class byte and the rest.  A record has the whole of it, or
 * what follows the first `cut` bytes of an earlier record's text.  The
 * reference is the record that really supplies the last of these bytes, so
 * each hop of a chain contributes; chains have at most US_HOPS records.
 *
 * See us_record_write.c for how a reference is chosen.
 */


#include "us_record_private.h"

#include <stdlib.h>


us_codec_t *
us_codec_create(us_arena_t *a)
{
    us_codec_t  *c;

    c = calloc(1, sizeof(us_codec_t));
    if (c == NULL) {
        return NULL;
    }

    c->arena = a;
    c->last = US_SLOT_NONE;

    c->tails = malloc(US_TAILS_SIZE);

    if (c->tails == NULL || us_models_open(&c->models, a) == -1) {
        free(c->tails);
        free(c);
        return NULL;
    }

    return c;
}


void
us_codec_destroy(us_codec_t *c)
{
    us_models_close(&c->models);
    us_learn_free(&c->learn);
    free(c->tails);
    free(c);
}


/* the context of what follows the header, if `before` precedes it */

static inline unsigned
us_record_ctx(const us_header_t *h, uint8_t before)
{
    return h->kind == US_TAIL ? us_model_tail_ctx(before) : US_CTX_START;
}


/* writes what the rest of a record says; its length, or -1 */

static ssize_t
us_record_put(us_codec_t *c, const us_header_t *h, us_bitin_t *b,
    uint8_t *text, size_t need)
{
    size_t  i, n;

    if (h->kind == US_RAW) {
        n = (b->end - b->pos) / 8;

        if (n > US_URL_MAX + 1) {
            return -1;
        }

        for (i = 0; i < n; i++, b->pos += 8) {
            text[i] = (uint8_t) us_bitin_peek(b);
        }

        return (ssize_t) n;
    }

    return us_model_decode(us_models_get(&c->models, h->number),
                           us_record_ctx(h, h->cut ? text[h->cut - 1] : 0),
                           b, text + h->cut, need - h->cut,
                           US_URL_MAX + 1 - h->cut);
}


size_t
us_record_text(us_codec_t *c, uint64_t id, uint8_t *text, us_chain_t *chain)
{
    size_t        need;
    ssize_t       n;
    unsigned      k;
    us_header_t  *h;

    for (k = 0; ; k++) {
        if (k == US_HOPS_READ) {
            return 0;
        }

        h = &chain->header[k];
        chain->id[k] = id;

        if (us_record_open(c, id, h, &chain->bits[k]) == -1) {
            return 0;
        }

        if (h->kind != US_TAIL) {
            break;
        }

        id = h->reference;
        us_log_prefetch(c->arena, id);
    }

    chain->n = k + 1;

    for ( ;; ) {
        h = &chain->header[k];
        need = k ? chain->header[k - 1].cut : US_URL_MAX + 1;

        /* a very long record has been overwritten by the next one's */

        if (chain->bits[k].base == c->buf && chain->n > 1
            && us_record_open(c, chain->id[k], h, &chain->bits[k]) == -1)
        {
            return 0;
        }

        /* a reference that supplies nothing here */

        if (need <= h->cut) {
            k--;
            continue;
        }

        n = us_record_put(c, h, &chain->bits[k], text, need);

        if (n < 0 || (k && h->cut + (size_t) n < need)) {
            return 0;
        }

        if (k-- == 0) {
            return h->cut + (size_t) n;
        }
    }
}


size_t
us_record_decode(us_codec_t *c, uint64_t id, uint8_t *text)
{
    size_t      len;
    us_chain_t  chain;

    len = us_record_text(c, id, c->text, &chain);

    if (len == 0) {
        text[0] = 0;
        return 1;
    }

    memcpy(text, c->text, len);

    return len;
}


/* whether bytes that are kept as they are are, or begin with, a text */

static int
us_record_is_raw(us_bitin_t *b, us_str_t rest, size_t limit, int whole,
    uint8_t *klass)
{
    size_t   i, n;
    uint8_t  byte;

    n = (b->end - b->pos) / 8;

    if (whole ? n != limit : n < limit) {
        return 0;
    }

    for (i = 0; i < limit; i++, b->pos += 8) {
        byte = (uint8_t) us_bitin_peek(b);

        if (i == 0) {
            *klass = byte;

        } else if (byte != rest.data[i - 1]) {
            return 0;
        }
    }

    return 1;
}


/* the same of tokens; see us_model_equal() */

static inline int
us_record_is(const us_model_t *m, unsigned ctx, const us_bitin_t *b,
    const uint8_t *text, size_t len, int whole, uint8_t *klass)
{
    return whole ? us_model_equal(m, ctx, b, text, len, klass)
                 : us_model_begins(m, ctx, b, text, len, klass);
}


/*
 * Compares from the record itself inwards, up to the first difference; the
 * class is the first byte of all, which rest does not have.  `limit` bytes of
 * the text are left to be compared; of a reference's text, more may follow.
 */

int
us_record_equal(us_codec_t *c, uint64_t id, us_str_t rest)
{
    int                whole;
    size_t             limit;
    uint8_t            klass;
    unsigned           hops;
    us_bitin_t         b;
    us_header_t        h;
    const us_model_t  *m;

    klass = 0;
    limit = rest.len + 1;

    for (hops = 0, whole = 1; hops < US_HOPS_READ; hops++, whole = 0) {

        if (us_record_open(c, id, &h, &b) == -1) {
            return -1;
        }

        if (h.kind == US_RAW) {
            return us_record_is_raw(&b, rest, limit, whole, &klass) ? klass
                                                                    : -1;
        }

        m = us_models_get(&c->models, h.number);

        if (h.kind == US_WHOLE) {
            return us_record_is(m, US_CTX_START, &b, rest.data, limit - 1,
                                whole, &klass) ? klass : -1;
        }

        us_log_prefetch(c->arena, h.reference);
        id = h.reference;

        if (h.cut > limit && whole) {
            return -1;
        }

        /* the tail can be empty */

        if (h.cut < limit || whole) {

            if (!us_record_is(m, us_model_tail_ctx(rest.data[h.cut - 2]), &b,
                              rest.data + h.cut - 1, limit - h.cut, whole,
                              NULL))
            {
                return -1;
            }

            limit = h.cut;
        }
    }

    return -1;
}


void
us_record_prefetch(us_codec_t *c, uint64_t id)
{
    us_bits_t  b;

    us_log_get(c->arena, id, c->buf, &b);
    __builtin_prefetch(b.data);
}


uint64_t
us_record_reference(us_codec_t *c, uint64_t id)
{
    us_bitin_t   b;
    us_header_t  h;

    if (us_record_open(c, id, &h, &b) == -1 || h.kind != US_TAIL) {
        return US_STORE_NO_ID;
    }

    us_log_prefetch(c->arena, h.reference);

    return h.reference;
}


int
us_record_train_due(us_codec_t *c)
{
    return us_learn_due(c->arena);
}


int
us_record_train(us_codec_t *c, const volatile int *cancel, us_str_t *model)
{
    return us_learn(&c->learn, c, &c->models, cancel, model);
}


void
us_record_give_up(us_codec_t *c)
{
    us_learn_give_up(&c->learn, c->arena);
}


/* a model that was learnt here is there already as it is going to be */

int
us_record_install(us_codec_t *c, us_str_t model)
{
    int          rc;
    size_t       size;
    uint8_t     *core;
    us_model_t  *m;

    if (c->learn.model && model.data == c->learn.core) {
        return us_models_install(&c->models, c->learn.model, c->learn.size);
    }

    /* an operation's bytes lie anywhere */

    rc = -1;
    m = NULL;
    size = 0;
    core = malloc(model.len + 1);

    if (core == NULL) {
        return -1;
    }

    memcpy(core, model.data, model.len);

    if (us_model_core_size(core, model.len) != 0) {
        size = us_model_size(core);
        m = malloc(size);
    }

    if (m) {
        us_model_build(m, core);
        rc = us_models_install(&c->models, m, size);
    }

    free(m);
    free(core);

    return rc;
}


int
us_record_model(us_codec_t *c, unsigned n, uint64_t *first, us_str_t *model)
{
    us_models_number(&c->models, 0);

    if (n >= c->models.n) {
        return -1;
    }

    *first = c->models.first[n];
    *model = us_model_core(c->models.model[n]);

    return 0;
}
