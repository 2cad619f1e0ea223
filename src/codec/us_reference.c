
/*
 * How the text of a new record can begin: with tokens, or with the common
 * prefix that it has with an earlier one, which then is its reference.
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
 * costs a later look-up of the URL a cache miss.  This file makes the list of
 * beginnings with their prices; the parser (us_parse.c) chooses the one that
 * makes the whole record cheapest.  Often it is the one without a reference.
 */


#include "us_record_private.h"


/* price of a hop in 1/8 bits; tuned with make bench-engine */
#define US_HOP_PRICE      (10 * US_PRICE_BIT)


/* how many of len bytes a record has that is kept as it is */

static size_t
us_chain_same_raw(const us_link_t *l, const uint8_t *text, size_t len)
{
    size_t      n, same;
    us_bitin_t  b;

    b = l->bits;
    n = (b.end - b.pos) / 8;
    n = n < len ? n : len;

    for (same = 0; same < n; same++, b.pos += 8) {
        if ((uint8_t) us_bitin_peek(&b) != text[same]) {
            break;
        }
    }

    return same;
}


/*
 * The common prefix of a text and that of a chain, read from the inside; *price
 * is about what the tokens there cost.
 */

static size_t
us_chain_same(us_codec_t *c, us_chain_t *chain, const uint8_t *text,
    size_t len, uint32_t *price)
{
    size_t      cut, limit, same, begin;
    unsigned    k, ctx;
    us_link_t  *l;

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
            same = cut + us_chain_same_raw(l, text, limit);

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
 * none.
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

    same = us_chain_same(c, &chain, c->own, len, &choice->spares);
    same = same < US_CUT_MAX ? same : US_CUT_MAX;

    if (same < US_CUT_MIN) {
        return 0;
    }

    for (k = 0; k + 1 < chain.n && chain.links[k].header.cut >= same; k++) {
        /* void */
    }

    choice->seat = US_SEAT_NONE;

    return us_reference_choice(c, same, chain.links[k].id, chain.n - k, id,
                               choice) ? same : 0;
}


/* how many bytes of the text that is being encoded a seat has, too */

static size_t
us_seat_same(const us_codec_t *c, const us_seat_t *s, size_t len)
{
    size_t  i, n;

    n = s->rest.len + 1 < len ? s->rest.len + 1 : len;
    n = n < US_CUT_MAX ? n : US_CUT_MAX;

    if (c->own[0] != s->klass) {
        return 0;
    }

    for (i = 1; i < n && c->own[i] == s->rest.data[i - 1]; i++) { /* void */ }

    return i;
}


/*
 * The same for the seat before, whose text is at hand; the encoder still knows
 * its tokens.
 */

static size_t
us_reference_seat(us_codec_t *c, size_t len, uint64_t id, uint64_t next,
    us_choice_t *choice)
{
    size_t      same;
    unsigned    seat;
    us_seat_t  *s;

    seat = c->last;
    s = &c->seats[seat];
    same = us_seat_same(c, s, len);

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


static void
us_reference_none(us_codec_t *c, us_choice_t *choice)
{
    memset(choice, 0, sizeof(us_choice_t));

    choice->header.kind = US_WHOLE;
    choice->seat = US_SEAT_NONE;
    choice->start.price = us_header_bits(&c->models, 0, &choice->header)
                          * US_PRICE_BIT;
}


/*
 * The seat before, or the record before the group.  Then the records that the
 * cache knows of the longest prefixes, as long as these are longer than what
 * was found.
 */

unsigned
us_references(us_codec_t *c, const us_seat_t *s, unsigned seat, size_t len,
    uint64_t next, us_choice_t choices[US_CHOICES])
{
    size_t    same, longest;
    unsigned  i, n, tried;
    uint64_t  id, last;

    us_reference_none(c, &choices[0]);

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
