
/*
 * Records: the text of a URL to bits.  See us_record.c for what they are.
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


#include "us_record_private.h"


/* records in a chain; prices of a hop in 1/8 bits; tuned with urlstore bench */
#define US_HOPS           4
#define US_HOP_PRICE      (10 * US_PRICE_BIT)

#define US_CANDIDATES     2           /* records that are decoded */

/* these, the slot before, and no reference */
#define US_CHOICES        (US_CANDIDATES + 2)

/* slots for which the encoder of a new model is built one step further */
#define US_STEP_SLOTS     64


/* a possible reference */

typedef struct {
    us_header_t       header;
    unsigned          slot;
    unsigned          depth;
} us_choice_t;


static void us_record_tail(us_codec_t *c, us_slot_t *s, const uint8_t *text,
    size_t len, const us_choice_t *choices, us_start_t *starts, unsigned n);


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


/*
 * Records below next to try as references: the one before, if no slot is, and
 * those that the cache knows of the longest prefixes.  Returns their number.
 */

static unsigned
us_record_find(us_codec_t *c, const us_slot_t *s, uint64_t next,
    uint64_t ids[US_CANDIDATES])
{
    int       i;
    unsigned  n;
    uint64_t  id;

    n = 0;

    if (c->last == US_SLOT_NONE && next) {
        ids[n++] = next - 1;
    }

    for (i = (int) s->nprefixes - 1; i >= 0 && n < US_CANDIDATES; i--) {
        id = us_prefix_find(c->arena, &s->prefixes[i], next);

        if (id != US_STORE_NO_ID && (n == 0 || ids[0] != id)) {
            us_log_prefetch(c->arena, id);
            ids[n++] = id;
        }
    }

    return n;
}


/*
 * The ways to begin the text in c->own, without a reference first; returns
 * their number.
 */

static unsigned
us_record_choices(us_codec_t *c, const us_slot_t *s, size_t len, uint64_t next,
    us_choice_t *choices)
{
    size_t      n, same;
    unsigned    i, nchoices, found;
    uint64_t    tried[US_CANDIDATES];
    us_chain_t  chain;

    memset(&choices[0], 0, sizeof(us_choice_t));
    choices[0].header.kind = US_WHOLE;
    choices[0].slot = US_SLOT_NONE;
    nchoices = 1;

    if (c->last != US_SLOT_NONE) {
        nchoices += (unsigned) us_record_candidate_slot(c, c->own, len,
                                                        &choices[nchoices]);
    }

    found = us_record_find(c, s, next, tried);

    for (i = 0; i < found; i++) {
        n = us_record_text(c, tried[i], c->text, &chain);
        same = us_record_same(c->text, n, c->own, len);

        if (same >= US_CUT_MIN) {
            nchoices += (unsigned) us_record_candidate(&chain, same,
                                                       &choices[nchoices]);
        }
    }

    return nchoices;
}


/* what each costs: its header, as of record next + slot, and its hops */

static void
us_record_prices(us_codec_t *c, uint64_t next, unsigned slot,
    const us_choice_t *choices, us_start_t *starts, unsigned n)
{
    unsigned     i;
    us_header_t  h;

    for (i = 0; i < n; i++) {
        h = choices[i].header;

        if (choices[i].slot != US_SLOT_NONE) {
            h.reference = next + choices[i].slot;
        }

        starts[i].at = h.cut;
        starts[i].price = us_header_bits(&c->models, next + slot, &h)
                          * US_PRICE_BIT + choices[i].depth * US_HOP_PRICE;
    }
}


void
us_record_encode(us_codec_t *c, unsigned slot, unsigned klass, us_str_t rest)
{
    size_t        len;
    unsigned      i, n;
    uint64_t      next;
    us_slot_t    *s;
    us_start_t    starts[US_CHOICES];
    us_choice_t   choices[US_CHOICES];

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

    for (i = 0; i < s->nprefixes; i++) {
        us_prefix_prefetch(c->arena, &s->prefixes[i]);
    }

    /* acquire: the records below, and the chunks that hold them, are there */

    next = us_acquire(&c->arena->head->next_id);

    n = us_record_choices(c, s, len, next, choices);
    us_record_prices(c, next, slot, choices, starts, n);

    us_record_tail(c, s, c->own, len, choices, starts, n);

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

    /* ones make no token, see us_model_private.h */

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
