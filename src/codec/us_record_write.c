
/*
 * Records: the text of a URL to bits.  See us_record.c for what they are.
 *
 * Encoding happens without the lock.  A reference is an id, which stays valid
 * whatever is added meanwhile, or an earlier seat of the same group, whose id
 * is known when the record is emitted.
 *
 * A text begins with tokens, or with the common prefix that it has with an
 * earlier one, which then is its reference.
 *
 * Candidates are the seat or record before the new one, and the records that
 * the prefix cache names for the longest prefixes.  The text of a record is
 * read along its chain, from the record that has no reference on, up to the
 * first byte that differs.  That of a seat is at hand.
 *
 *     candidate   | example.com/ | news/ | 2013/ | 05 | .html
 *     new text      example.com/   news/   2013/  06.html
 *                 `------ common prefix -------'
 *
 * The price of a beginning is that of its header, and of its depth: each hop
 * costs a later look-up of the URL a cache miss.  us_references() makes the
 * list of beginnings with their prices; the parser (us_parse.c) chooses the one
 * that makes the whole record cheapest.  Often it is the one without a
 * reference.
 */


#include "us_record_private.h"


/*
 * A reference is clearly cheaper than none if the tokens that it spares have
 * cost so much more in the record that it names: the parse begins at its cut.
 */
#define US_CLEARLY        (6 * US_PRICE_BIT)

/* seats for which the encoder of a new model is built one step further */
#define US_STEP_SEATS     64

/* price of a hop in 1/8 bits; tuned with make bench-engine */
#define US_HOP_PRICE      (10 * US_PRICE_BIT)

#define US_CANDIDATES     2           /* records that are looked at */

/* choices that are made again because records were erased meanwhile */
#define US_CHOICE_RETRIES 4

/* these, the seat before, and no reference */
#define US_CHOICES        (US_CANDIDATES + 2)

/* how a text can begin */

typedef struct {
    us_header_t       header;
    unsigned          seat;
    unsigned          depth;
    uint32_t          spares;         /* about the price of these bytes */
    us_start_t        start;
} us_choice_t;


/*
 * The common prefix of a text and that of a chain, read from the inside; *price
 * is about what the tokens there cost.
 */

static size_t
us_chain_same(us_codec_t *c, us_chain_t *chain, size_t len, uint32_t *price)
{
    size_t          cut, limit, same, begin, n;
    unsigned        k, ctx;
    us_link_t      *l;
    const uint8_t  *text;

    text = c->own;
    same = 0;
    *price = 0;

    for (k = chain->n; k-- > 0; /* void */) {
        l = &chain->links[k];
        cut = l->header.cut;
        limit = k ? chain->links[k - 1].header.cut : len;
        limit = limit < len ? limit : len;

        if (us_chain_again(c, chain, l) == -1 || same < cut) {
            return same;
        }

        if (limit <= cut) {
            continue;
        }

        if (l->header.kind == US_RAW) {
            n = (l->bits.end - l->bits.pos) / 8;
            n = n < limit ? n : limit;

            for (same = 0;
                 same < n && (uint8_t) us_bitin_peek(&l->bits) == text[same];
                 same++)
            {
                l->bits.pos += 8;
            }

        } else {
            ctx = cut ? us_model_tail_ctx(text[cut - 1]) : US_CTX_START;
            begin = l->bits.pos;
            same = cut + us_decode_same(c->models.tables[l->header.number]
                                        .decoder, ctx, &l->bits, text + cut,
                                        limit - cut);

            if (l->header.number == c->models.number) {
                *price += (uint32_t) (l->bits.pos - begin) * US_PRICE_BIT;
            }
        }
    }

    return same;
}


/*
 * Fills in a reference for the first `same` bytes, to record `reference`, at so
 * many hops from the end of its chain.  0: the chain would be too deep.
 */

static unsigned
us_reference_choice(us_codec_t *c, size_t same, uint64_t reference,
    unsigned depth, uint64_t id, us_choice_t *choice)
{
    us_header_t  *h;

    if (depth >= US_HOPS) {
        return 0;
    }

    h = &choice->header;
    h->kind = US_TAIL;
    h->reference = reference;
    h->cut = (unsigned) same;

    choice->depth = depth;
    choice->start.at = h->cut;
    choice->start.price = us_header_bits(&c->models, id, h) * US_PRICE_BIT
                          + depth * US_HOP_PRICE;

    return 1;
}


/*
 * Adds record `tried` to the choices of a record that is going to be number id,
 * if their common prefix is worth it: the reference is the link of its chain
 * that supplies the last of these bytes itself.  Returns the bytes; 0: it is
 * none, or deleted.
 */

static size_t
us_reference_record(us_codec_t *c, uint64_t tried, size_t len, uint64_t id,
    us_choice_t *choice)
{
    size_t      same;
    unsigned    k;
    us_chain_t  chain;

    chain.n = 0;

    if (us_chain_records(c, &chain, tried) == -1) {
        return 0;
    }

    same = us_chain_same(c, &chain, len, &choice->spares);
    same = same < US_CUT_MAX ? same : US_CUT_MAX;

    if (same < US_CUT_MIN) {
        return 0;
    }

    for (k = 0; k + 1 < chain.n && chain.links[k].header.cut >= same; k++) {
        /* void */
    }

    /* what is deleted is going to be erased: one before it will do */

    while (us_deleted(c->arena, chain.links[k].id)) {
        if (k-- == 0) {
            return 0;
        }
    }

    choice->seat = US_SEAT_NONE;

    return us_reference_choice(c, same, chain.links[k].id, chain.n - k, id,
                               choice) ? same : 0;
}


/*
 * The same for the seat before, whose text is at hand; the encoder still knows
 * its tokens.
 */

static size_t
us_reference_seat(us_codec_t *c, size_t len, uint64_t id, uint64_t next,
    us_choice_t *choice)
{
    size_t      n, same;
    unsigned    seat;
    us_seat_t  *s;

    seat = c->last;
    s = &c->seats[seat];

    if (c->own[0] != s->klass) {
        return 0;
    }

    n = s->rest.len + 1 < len ? s->rest.len + 1 : len;
    n = n < US_CUT_MAX ? n : US_CUT_MAX;

    for (same = 1; same < n && c->own[same] == s->rest.data[same - 1]; same++)
    {
        /* void */
    }

    if (same < US_CUT_MIN) {
        return 0;
    }

    choice->spares = 0;

    if (s->header.number == c->models.number && c->models.encoder) {
        choice->spares = s->header.cut <= same ? s->spares : 0;

        if (s->header.cut < same) {
            choice->spares += us_encoder_spent(c->models.encoder,
                                               same - s->header.cut);
        }
    }

    while (s->header.kind == US_TAIL && s->header.cut >= same) {

        if (s->seat == US_SEAT_NONE) {
            return us_reference_record(c, s->header.reference, len, id,
                                       choice);
        }

        seat = s->seat;
        s = &c->seats[seat];
    }

    choice->seat = seat;

    return us_reference_choice(c, same, next + seat, s->depth + 1, id, choice)
           ? same : 0;
}


/*
 * c->own is a text of len bytes, to be written as record next + seat, if all
 * before it in the group are.  Returns the number of choices.
 *
 * They are the seat before, or the record before the group.  Then the records
 * that the cache knows of the longest prefixes, as long as these are longer
 * than what was found.
 */

static unsigned
us_references(us_codec_t *c, const us_seat_t *s, unsigned seat, size_t len,
    uint64_t next, us_choice_t choices[US_CHOICES])
{
    size_t    same, longest;
    unsigned  i, n, tried;
    uint64_t  id, last;

    memset(choices, 0, sizeof(us_choice_t));

    choices->header.kind = US_WHOLE;
    choices->seat = US_SEAT_NONE;
    choices->start.price = us_header_bits(&c->models, 0, &choices->header)
                           * US_PRICE_BIT;
    n = 1;
    last = US_STORE_NO_ID;
    longest = 0;

    if (c->last != US_SEAT_NONE) {
        longest = us_reference_seat(c, len, next + seat, next, &choices[n]);

    } else if (next) {
        last = next - 1;
        longest = us_reference_record(c, last, len, next + seat, &choices[n]);
    }

    n += longest > 0;

    for (i = s->nprefixes, tried = 0;
         i-- > 0 && tried < US_CANDIDATES && s->prefixes[i].len > longest;
         /* void */)
    {
        id = us_prefix_find(c->arena, &s->prefixes[i], next);

        if (id == US_STORE_NO_ID || id == last) {
            continue;
        }

        same = us_reference_record(c, id, len, next + seat, &choices[n]);

        n += same > 0;
        longest = same > longest ? same : longest;
        last = id;
        tried++;
    }

    return n;
}


void
us_record_begin(us_codec_t *c)
{
    if (c->tails_used > c->tails_most) {
        c->tails_most = c->tails_used;
    }

    c->tails_used = 0;
    c->last = US_SEAT_NONE;

    us_models_refresh(&c->models);
    us_models_step(&c->models);
}


void
us_codec_wipe(us_codec_t *c)
{
    explicit_bzero(c->tails, c->tails_most > c->tails_used ? c->tails_most
                                                           : c->tails_used);
    explicit_bzero(c->own, sizeof(c->own));
    explicit_bzero(c->text, sizeof(c->text));
    explicit_bzero(c->bits, sizeof(c->bits));
    explicit_bzero(c->buf, sizeof(c->buf));

    us_models_wipe(&c->models);
}


/*
 * chooses a way and keeps its tail; a tail that tokens would not shorten stays
 * raw
 */

static void
us_record_tail(us_codec_t *c, us_seat_t *s, const us_choice_t *choices,
    unsigned n)
{
    size_t              i, len;
    uint32_t            price;
    us_start_t          starts[US_CHOICES];
    us_bitout_t         o;
    us_encoder_t       *e;
    const us_choice_t  *choice;

    e = us_models_stale(&c->models) ? NULL : c->models.encoder;
    len = s->rest.len + 1;
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
        choice += us_encoder_choose(e, c->own, len, starts, n, &price);
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
            us_bitout_put(&o, c->own[i], 8);
        }

    } else {
        us_encoder_tail(e, &o);
    }

    s->nbits = (size_t) (o.p - (c->tails + s->at)) * 8 + o.n;
    *o.p++ = (uint8_t) o.acc;

    c->tails_used = (size_t) (o.p - c->tails);
}


void
us_record_encode(us_codec_t *c, unsigned seat, unsigned klass, us_str_t rest)
{
    size_t        len;
    unsigned      n, tries;
    uint64_t      next, then;
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

    us_prefix_prefetch(c->arena, s->prefixes, s->nprefixes);

    /* acquire: the records below, and the chunks that hold them, are there */

    next = us_acquire(&c->arena->head->next_id);

    /* a common prefix with nonsense would be another text: rather none */

    for (tries = 0, n = 1; tries < US_CHOICE_RETRIES; tries++, n = 1) {
        then = us_erasing(c->arena);
        n = us_references(c, s, seat, len, next, choices);

        if (!us_erased_since(c->arena, then)) {
            break;
        }
    }

    us_record_tail(c, s, choices, n);

    c->last = seat;
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

    us_record_tail(c, s, &choice, 1);
}


uint32_t
us_record_emit_locked(us_codec_t *c, unsigned seat, uint64_t id,
    const uint8_t **bits)
{
    int             again;
    size_t          n, i;
    uint32_t        word;
    us_seat_t      *s, *ref;
    us_bitout_t     o;
    const uint8_t  *tail;

    s = &c->seats[seat];

    /* its tokens may have been dropped since: it becomes raw */

    again = s->header.kind != US_RAW && us_models_stale(&c->models);

    if (s->seat != US_SEAT_NONE) {
        ref = &c->seats[s->seat];
        s->header.reference = ref->id;

        /* the reference is no record, or not as it was encoded */

        again |= !ref->added || ref->klass != s->klass;

    } else if (s->header.kind == US_TAIL) {

        /* it was deleted since: an erasure has seen who refers to it */

        again |= us_deleted(c->arena, s->header.reference);
    }

    if (again) {
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

    /* ones make no token, see us_model.c */

    us_bitout_put(&o, (1u << (-n & 3)) - 1, (unsigned) (-n & 3));
    *o.p = (uint8_t) o.acc;

    s->emitted = 1;
    s->id = id;
    *bits = c->bits;

    return (uint32_t) ((n + 3) / 4);
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
        us_prefix_put_locked(c->arena, s->prefixes, s->nprefixes,
                             s->header.cut, id);
    }
}


void
us_record_replayed(us_codec_t *c, uint64_t id, const uint8_t *text, size_t len)
{
    unsigned      n;
    us_bitin_t    b;
    us_header_t   h;
    us_prefix_t   p[US_PREFIXES];

    if (!us_deleted(c->arena, id) && us_record_open(c, id, &h, &b) == 0) {
        n = us_prefixes(c->arena, text, len, US_CUT_MAX, p);
        us_prefix_put_locked(c->arena, p, n, h.cut, id);
    }
}
