
/*
 * Records: the text of a URL to bits.  See us_record.c for what they are, and
 * us_reference.c for how they can begin.
 *
 * Encoding happens without the lock.  A reference is an id, which stays valid
 * whatever is added meanwhile, or an earlier seat of the same group, whose id
 * is known when the record is emitted.
 */


#include "us_record_private.h"


/*
 * A reference is clearly cheaper than none if the tokens that it spares have
 * cost so much more in the record that it names: the parse begins at its cut.
 */
#define US_CLEARLY        (6 * US_PRICE_BIT)

/* seats for which the encoder of a new model is built one step further */
#define US_STEP_SEATS     64


static void us_record_tail(us_codec_t *c, us_seat_t *s, const uint8_t *text,
    size_t len, const us_choice_t *choices, unsigned n);


void
us_record_begin(us_codec_t *c)
{
    c->tails_used = 0;
    c->last = US_SEAT_NONE;

    us_models_step(&c->models);
}


void
us_record_encode(us_codec_t *c, unsigned seat, unsigned klass, us_str_t rest)
{
    size_t        len;
    unsigned      i, n;
    uint64_t      next;
    us_seat_t    *s;
    us_choice_t   choices[US_CHOICES];

    if (seat % US_STEP_SEATS == US_STEP_SEATS - 1) {
        us_models_step(&c->models);
    }

    s = &c->seats[seat];

    c->own[0] = (uint8_t) klass;
    memcpy(c->own + 1, rest.data, rest.len);
    len = rest.len + 1;

    memset(s, 0, offsetof(us_seat_t, prefixes));

    s->klass = klass;
    s->rest = rest;
    s->nprefixes = us_prefixes(c->arena, c->own, len, US_CUT_MAX,
                               s->prefixes);

    for (i = 0; i < s->nprefixes; i++) {
        us_prefix_prefetch(c->arena, &s->prefixes[i]);
    }

    /* acquire: the records below, and the chunks that hold them, are there */

    next = us_acquire(&c->arena->head->next_id);

    n = us_references(c, s, seat, len, next, choices);
    us_record_tail(c, s, c->own, len, choices, n);

    c->last = seat;
}


/*
 * chooses a way and keeps its tail; a tail that tokens would not shorten stays
 * raw
 */

static void
us_record_tail(us_codec_t *c, us_seat_t *s, const uint8_t *text, size_t len,
    const us_choice_t *choices, unsigned n)
{
    size_t              i;
    uint32_t            price;
    us_start_t          starts[US_CHOICES];
    us_bitout_t         o;
    us_encoder_t       *e;
    const us_choice_t  *choice;

    e = c->models.encoder;
    choice = choices;
    price = UINT32_MAX;

    /* the first choice is no reference */

    for (i = 1; i < n && e; i++) {
        if (choices[i].start.price + US_CLEARLY < choices[i].spares) {
            choice = choices + 1;
        }
    }

    n -= (unsigned) (choice - choices);

    for (i = 0; i < n; i++) {
        starts[i] = choice[i].start;
    }

    if (e) {
        choice += us_encoder_choose(e, text, len, starts, n, &price);
    }

    s->header = choice->header;
    s->header.number = e ? c->models.number : US_MODEL_BUILTIN;
    s->seat = choice->seat;
    s->depth = choice->depth;
    s->spares = choice->spares;
    s->at = c->tails_used;

    o.p = c->tails + s->at;
    o.acc = 0;
    o.n = 0;

    if (price > len * 8 * US_PRICE_BIT) {
        s->header.kind = US_RAW;
        s->header.cut = 0;
        s->seat = US_SEAT_NONE;
        s->depth = 0;

        for (i = 0; i < len; i++) {
            us_bitout_put(&o, text[i], 8);
        }

    } else {
        us_encoder_tail(e, &o);
    }

    s->nbits = (size_t) (o.p - (c->tails + s->at)) * 8 + o.n;
    *o.p++ = (uint8_t) o.acc;

    c->tails_used = (size_t) (o.p - c->tails);
}


void
us_record_encode_locked(us_codec_t *c, unsigned seat, unsigned klass,
    us_str_t rest)
{
    us_seat_t    *s;
    us_choice_t   choice;

    s = &c->seats[seat];

    c->own[0] = (uint8_t) klass;
    memcpy(c->own + 1, rest.data, rest.len);

    s->klass = klass;
    s->rest = rest;
    s->nprefixes = us_prefixes(c->arena, c->own, rest.len + 1, US_CUT_MAX,
                               s->prefixes);

    memset(&choice, 0, sizeof(us_choice_t));
    choice.header.kind = US_WHOLE;
    choice.seat = US_SEAT_NONE;

    us_record_tail(c, s, c->own, rest.len + 1, &choice, 1);
}


/* a seat whose reference became a record as it was encoded */

static int
us_record_settled(us_codec_t *c, us_seat_t *s)
{
    us_seat_t  *ref;

    if (s->seat == US_SEAT_NONE) {
        return 1;
    }

    ref = &c->seats[s->seat];
    s->header.reference = ref->id;

    return ref->added && ref->klass == s->klass;
}


uint32_t
us_record_emit_locked(us_codec_t *c, unsigned seat, uint64_t id,
    const uint8_t **bits)
{
    size_t          n, i;
    uint32_t        word;
    us_seat_t      *s;
    us_bitout_t     o;
    const uint8_t  *tail;

    s = &c->seats[seat];

    if (!us_record_settled(c, s)) {
        us_record_encode_locked(c, seat, s->klass, s->rest);
    }

    o.p = c->bits;
    o.acc = 0;
    o.n = 0;

    us_header_write(&c->models, id, &s->header, &o);

    tail = c->tails + s->at;

    for (n = s->nbits; n >= 32; n -= 32, tail += 4) {
        memcpy(&word, tail, sizeof(uint32_t));
        us_bitout_put(&o, word, 32);
    }

    for (i = 0; i < n; i += 8) {
        us_bitout_put(&o, *tail++, n - i < 8 ? (unsigned) (n - i) : 8);
    }

    n = (size_t) (o.p - c->bits) * 8 + o.n;

    /* ones make no token, see us_model_private.h */

    us_bitout_put(&o, (1u << (-n & 3)) - 1, (unsigned) (-n & 3));
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
    us_prefix_grow_locked(c->arena);

    for ( /* void */ ; n; n--, p++) {
        if (p->len > cut) {
            us_prefix_put_locked(c->arena, p, id);
        }
    }
}


void
us_record_added_locked(us_codec_t *c, unsigned seat, uint64_t id)
{
    us_seat_t  *s;

    s = &c->seats[seat];

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
