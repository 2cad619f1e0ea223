
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
 * How a reference is chosen: candidates are the record before and what the
 * prefix cache knows of the longest prefixes.  They are decoded, and the
 * common prefix with each becomes a beginning for the parser, with the price
 * of its header and of its depth (every hop is a cache miss for whoever looks
 * the URL up).  The cheapest way wins; often it is the one without.
 *
 * Encoding happens without the lock.  What it refers to is an id, which can
 * be used whatever is added meanwhile, or an earlier slot of the same group,
 * whose id is known once it is emitted.
 */


#include "us_record.h"
#include "us_header.h"
#include "us_learn.h"
#include "us_prefix.h"

#include <stdlib.h>


/* records in a chain; prices of a hop in 1/8 bits; tuned with urlstore bench */
#define US_HOPS           4
#define US_HOP_PRICE      (10 * US_PRICE_BIT)

/* a damaged store could have longer chains: they are not followed */
#define US_HOPS_READ      16

#define US_CANDIDATES     2           /* from the cache */

/*
 * Tails of a group: none is longer than its text, and two more bytes; each may
 * be encoded twice.  Only what is used costs memory.
 */
#define US_TAILS_SIZE     (2 * US_STORE_GROUP * US_TEXT_BUFFER)

#define US_SLOT_NONE      ((unsigned) -1)

/* slots for which the encoder of a new model is built one step further */
#define US_STEP_SLOTS     64


typedef struct {
    us_header_t       header;
    unsigned          slot;           /* the reference is that slot */
    unsigned          depth;          /* references to follow */
    unsigned          klass;
    us_str_t          rest;
    size_t            at;             /* of the tail in c->tails */
    size_t            nbits;

    unsigned          emitted:1;      /* as id */
    unsigned          added:1;
    uint64_t          id;

    unsigned          nprefixes;
    us_prefix_t       prefixes[US_PREFIXES];
} us_slot_t;


/* what a chain supplies: record k has the bytes from cut[k] on */

typedef struct {
    unsigned          n;
    uint64_t          id[US_HOPS_READ];
    us_header_t       header[US_HOPS_READ];
    us_bitin_t        bits[US_HOPS_READ];
} us_chain_t;


/* a possible reference */

typedef struct {
    us_header_t       header;
    unsigned          slot;
    unsigned          depth;
} us_choice_t;


struct us_codec_s {
    us_arena_t       *arena;
    us_models_t       models;
    us_learn_t        learn;

    us_slot_t         slots[US_STORE_GROUP];
    unsigned          last;           /* slot encoded last, or none */

    uint8_t          *tails;
    size_t            tails_used;

    uint8_t           own[US_TEXT_BUFFER];     /* the text being encoded */
    uint8_t           text[US_TEXT_BUFFER + US_DECODE_SLACK];
    uint8_t           bits[US_RECORD_BUFFER + US_HEADER_BYTES];
    uint8_t           buf[US_RECORD_BUFFER];
};


static void us_record_tail(us_codec_t *c, us_slot_t *s, const uint8_t *text,
    size_t len, const us_choice_t *choices, us_start_t *starts, unsigned n);


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


/* reads a record's header; 0, or -1: it is damaged */

static inline int
us_record_open(us_codec_t *c, uint64_t id, us_header_t *h, us_bitin_t *b)
{
    us_bits_t  record;

    us_log_get(c->arena, id, c->buf, &record);

    return us_header_read(&c->models, id, &record, h, b);
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
            text[i] = (uint8_t) (us_load64(b->base + (b->pos >> 3))
                                 >> (b->pos & 7));
        }

        return (ssize_t) n;
    }

    return us_model_decode(us_models_get(&c->models, h->number),
                           us_record_ctx(h, h->cut ? text[h->cut - 1] : 0),
                           b, text + h->cut, need - h->cut,
                           US_URL_MAX + 1 - h->cut);
}


/*
 * Decodes a record and tells its chain, from the record itself inwards.
 * Returns the length, 0: it is damaged.
 */

static size_t
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


/*
 * Compares from the record itself inwards, up to the first difference; the
 * class is the first byte of all, which rest does not have.
 */

static int
us_record_compare(us_codec_t *c, uint64_t id, us_str_t rest, int whole)
{
    size_t             limit, i, n;
    uint8_t            klass;
    unsigned           hops;
    us_bitin_t         b;
    us_header_t        h;
    const us_model_t  *m;

    limit = rest.len + 1;

    for (hops = 0; hops < US_HOPS_READ; hops++) {

        if (us_record_open(c, id, &h, &b) == -1) {
            return -1;
        }

        m = us_models_get(&c->models, h.number);

        switch (h.kind) {

        case US_RAW:
            n = (b.end - b.pos) / 8;

            if (whole ? n != limit : n < limit) {
                return -1;
            }

            for (i = 0; i < limit; i++, b.pos += 8) {
                uint8_t  byte;

                byte = (uint8_t) (us_load64(b.base + (b.pos >> 3))
                                  >> (b.pos & 7));
                if (i == 0) {
                    klass = byte;

                } else if (byte != rest.data[i - 1]) {
                    return -1;
                }
            }

            return klass;

        case US_WHOLE:
            n = whole
                ? us_model_equal(m, US_CTX_START, &b, rest.data, limit - 1,
                                 &klass)
                : us_model_begins(m, US_CTX_START, &b, rest.data, limit - 1,
                                  &klass);

            return n ? klass : -1;

        case US_TAIL:
            us_log_prefetch(c->arena, h.reference);

            if (h.cut > limit && whole) {
                return -1;
            }

            /* the tail can be empty */

            if (h.cut < limit || whole) {
                unsigned  ctx;

                ctx = us_model_tail_ctx(rest.data[h.cut - 2]);

                n = whole
                    ? us_model_equal(m, ctx, &b, rest.data + h.cut - 1,
                                     limit - h.cut, NULL)
                    : us_model_begins(m, ctx, &b, rest.data + h.cut - 1,
                                      limit - h.cut, NULL);

                if (n == 0) {
                    return -1;
                }

                limit = h.cut;
            }

            id = h.reference;
            whole = 0;
            break;
        }
    }

    return -1;
}


int
us_record_equal(us_codec_t *c, uint64_t id, us_str_t rest)
{
    return us_record_compare(c, id, rest, 1);
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


void
us_record_begin(us_codec_t *c)
{
    c->tails_used = 0;
    c->last = US_SLOT_NONE;

    us_models_step(&c->models);
}


/* fits a reference to the first `same` bytes of a decoded candidate */

static int
us_record_candidate(const us_chain_t *chain, size_t same, us_choice_t *choice)
{
    unsigned  k;

    for (k = 0; k + 1 < chain->n && chain->header[k].cut >= same; k++) {
        /* void */
    }

    choice->header.kind = US_TAIL;
    choice->header.reference = chain->id[k];
    choice->header.cut = (unsigned) same;
    choice->slot = US_SLOT_NONE;
    choice->depth = chain->n - k;

    return choice->depth < US_HOPS;
}


static size_t
us_record_same(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
    size_t  i, n;

    n = alen < blen ? alen : blen;
    n = n < US_CUT_MAX ? n : US_CUT_MAX;

    for (i = 0; i < n && a[i] == b[i]; i++) { /* void */ }

    return i;
}


/* the slot before, or the one that supplies what both begin with */

static int
us_record_candidate_slot(us_codec_t *c, const uint8_t *text, size_t len,
    us_choice_t *choice)
{
    size_t      same;
    us_slot_t  *s;

    s = &c->slots[c->last];

    if (s->klass != text[0]) {
        return 0;
    }

    same = 1 + us_record_same(s->rest.data, s->rest.len, text + 1, len - 1);

    if (same > US_CUT_MAX) {
        same = US_CUT_MAX;
    }

    if (same < US_CUT_MIN) {
        return 0;
    }

    choice->slot = c->last;
    choice->header.kind = US_TAIL;
    choice->header.reference = 0;
    choice->header.cut = (unsigned) same;

    while (s->header.kind == US_TAIL && s->header.cut >= same) {
        choice->slot = s->slot;
        choice->header.reference = s->header.reference;

        if (s->slot == US_SLOT_NONE) {
            choice->depth = s->depth;
            return choice->depth < US_HOPS;
        }

        s = &c->slots[s->slot];
    }

    choice->depth = s->depth + 1;

    return choice->depth < US_HOPS;
}


void
us_record_encode(us_codec_t *c, unsigned slot, unsigned klass, us_str_t rest)
{
    size_t        len, same, n;
    int           i;
    unsigned      k, nchoices, found;
    uint64_t      id, next, tried[US_CANDIDATES + 1];
    us_slot_t    *s;
    us_chain_t    chain;
    us_start_t    starts[US_CANDIDATES + 2];
    us_choice_t   choices[US_CANDIDATES + 2], *choice;

    if (slot % US_STEP_SLOTS == US_STEP_SLOTS - 1) {
        us_models_step(&c->models);
    }

    s = &c->slots[slot];

    c->own[0] = (uint8_t) klass;
    memcpy(c->own + 1, rest.data, rest.len);
    len = rest.len + 1;

    memset(s, 0, offsetof(us_slot_t, prefixes));

    s->klass = klass;
    s->rest = rest;
    s->nprefixes = us_prefixes(c->arena, c->own, len, US_CUT_MAX,
                               s->prefixes);

    for (i = 0; i < (int) s->nprefixes; i++) {
        us_prefix_prefetch(c->arena, &s->prefixes[i]);
    }

    memset(&choices[0], 0, sizeof(us_choice_t));
    choices[0].header.kind = US_WHOLE;
    choices[0].slot = US_SLOT_NONE;
    nchoices = 1;

    next = us_acquire(&c->arena->head->next_id);
    found = 0;

    if (c->last != US_SLOT_NONE) {
        nchoices += (unsigned) us_record_candidate_slot(c, c->own, len,
                                                        &choices[nchoices]);

    } else if (next) {
        tried[found++] = next - 1;
    }

    for (i = (int) s->nprefixes - 1; i >= 0 && found < US_CANDIDATES; i--) {
        id = us_prefix_find(c->arena, &s->prefixes[i], next);

        if (id != US_STORE_NO_ID && (found == 0 || tried[0] != id)) {
            us_log_prefetch(c->arena, id);
            tried[found++] = id;
        }
    }

    for (k = 0; k < found; k++) {
        n = us_record_text(c, tried[k], c->text, &chain);
        same = us_record_same(c->text, n, c->own, len);

        if (same < US_CUT_MIN) {
            continue;
        }

        nchoices += (unsigned) us_record_candidate(&chain, same,
                                                   &choices[nchoices]);
    }

    for (k = 0; k < nchoices; k++) {
        us_header_t  h;

        choice = &choices[k];
        h = choice->header;

        if (choice->slot != US_SLOT_NONE) {
            h.reference = next + choice->slot;
        }

        starts[k].at = h.cut;
        starts[k].price = us_header_bits(&c->models, next + slot, &h)
                          * US_PRICE_BIT + choice->depth * US_HOP_PRICE;
    }

    us_record_tail(c, s, c->own, len, choices, starts, nchoices);

    c->last = slot;
}


/* chooses, and keeps the tail; what tokens cannot shorten is kept as it is */

static void
us_record_tail(us_codec_t *c, us_slot_t *s, const uint8_t *text, size_t len,
    const us_choice_t *choices, us_start_t *starts, unsigned n)
{
    size_t              i;
    uint32_t            price;
    us_bitout_t         o;
    us_encoder_t       *e;
    const us_choice_t  *choice;

    e = c->models.encoder;
    choice = choices;
    price = UINT32_MAX;

    if (e) {
        choice += us_encoder_choose(e, text, len, starts, n, &price);
    }

    s->header = choice->header;
    s->header.number = e ? c->models.number : US_MODEL_BUILTIN;
    s->slot = choice->slot;
    s->depth = choice->depth;
    s->at = c->tails_used;

    o.p = c->tails + s->at;
    o.acc = 0;
    o.n = 0;

    if (price > len * 8 * US_PRICE_BIT) {
        s->header.kind = US_RAW;
        s->header.cut = 0;
        s->slot = US_SLOT_NONE;
        s->depth = 0;

        for (i = 0; i < len; i++) {
            us_bits_put(&o, text[i], 8);
        }

    } else {
        us_encoder_tail(e, &o);
    }

    s->nbits = (size_t) (o.p - (c->tails + s->at)) * 8 + o.n;
    *o.p++ = (uint8_t) o.acc;

    c->tails_used = (size_t) (o.p - c->tails);
}


void
us_record_encode_plain(us_codec_t *c, unsigned slot, unsigned klass,
    us_str_t rest)
{
    us_slot_t    *s;
    us_start_t    start;
    us_choice_t   choice;

    s = &c->slots[slot];

    c->own[0] = (uint8_t) klass;
    memcpy(c->own + 1, rest.data, rest.len);

    s->klass = klass;
    s->rest = rest;
    s->nprefixes = us_prefixes(c->arena, c->own, rest.len + 1, US_CUT_MAX,
                               s->prefixes);

    memset(&choice, 0, sizeof(us_choice_t));
    choice.header.kind = US_WHOLE;
    choice.slot = US_SLOT_NONE;

    start.at = 0;
    start.price = 0;

    us_record_tail(c, s, c->own, rest.len + 1, &choice, &start, 1);
}


/* a slot whose reference became a record as it was encoded */

static int
us_record_settled(us_codec_t *c, us_slot_t *s)
{
    us_slot_t  *ref;

    if (s->slot == US_SLOT_NONE) {
        return 1;
    }

    ref = &c->slots[s->slot];
    s->header.reference = ref->id;

    return ref->added && ref->klass == s->klass;
}


uint32_t
us_record_emit(us_codec_t *c, unsigned slot, uint64_t id,
    const uint8_t **bits)
{
    size_t          n, i;
    uint32_t        word;
    us_slot_t      *s;
    us_bitout_t     o;
    const uint8_t  *tail;

    s = &c->slots[slot];

    if (!us_record_settled(c, s)) {
        us_record_encode_plain(c, slot, s->klass, s->rest);
    }

    o.p = c->bits;
    o.acc = 0;
    o.n = 0;

    us_header_write(&c->models, id, &s->header, &o);

    tail = c->tails + s->at;

    for (n = s->nbits; n >= 32; n -= 32, tail += 4) {
        memcpy(&word, tail, sizeof(uint32_t));
        us_bits_put(&o, word, 32);
    }

    for (i = 0; i < n; i += 8) {
        us_bits_put(&o, *tail++, n - i < 8 ? (unsigned) (n - i) : 8);
    }

    n = (size_t) (o.p - c->bits) * 8 + o.n;

    /* ones make no token, see us_model.c */

    us_bits_put(&o, (1u << (-n & 3)) - 1, (unsigned) (-n & 3));
    *o.p = (uint8_t) o.acc;

    s->emitted = 1;
    s->id = id;
    *bits = c->bits;

    return (uint32_t) ((n + 3) / 4);
}


/* prefixes that the record itself supplies lead to it */

static void
us_record_cache(us_codec_t *c, const us_prefix_t *p, unsigned n,
    unsigned cut, uint64_t id)
{
    us_prefix_grow(c->arena);

    for ( /* void */ ; n; n--, p++) {
        if (p->len > cut) {
            us_prefix_put(c->arena, p, id);
        }
    }
}


void
us_record_added(us_codec_t *c, unsigned slot, uint64_t id)
{
    us_slot_t  *s;

    s = &c->slots[slot];

    if (!s->emitted || s->id != id) {
        return;
    }

    s->added = 1;

    if (s->depth + 1 < US_HOPS) {
        us_record_cache(c, s->prefixes, s->nprefixes, s->header.cut, id);
    }
}


void
us_record_replayed(us_codec_t *c, uint64_t id, const uint8_t *text, size_t len)
{
    unsigned      n;
    us_bitin_t    b;
    us_header_t   h;
    us_prefix_t   p[US_PREFIXES];

    if (us_record_open(c, id, &h, &b) == 0) {
        n = us_prefixes(c->arena, text, len, US_CUT_MAX, p);
        us_record_cache(c, p, n, h.cut, id);
    }
}


int
us_record_train_due(us_codec_t *c)
{
    return us_learn_due(&c->learn, c->arena);
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
