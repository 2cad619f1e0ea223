
/*
 * How the text of a new record can begin: with tokens, or with the common
 * prefix that it has with an earlier one, which then is its reference.
 *
 * Candidates are the seat or record before the new one, and the records that
 * the prefix cache names for the longest prefixes.  The text of a candidate is
 * read along its chain, from the record that has no reference on, up to the
 * first byte that differs.
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


/* price of a hop in 1/8 bits; tuned with urlstore bench */
#define US_HOP_PRICE      (10 * US_PRICE_BIT)


/* a seat and those that it refers to, and the record that the last refers to */

static int
us_chain_seats(us_codec_t *c, us_chain_t *chain, unsigned seat)
{
    us_link_t        *l;
    const us_seat_t  *s;

    for ( ;; ) {
        if (chain->n == US_HOPS_READ) {
            return -1;
        }

        s = &c->seats[seat];
        l = &chain->links[chain->n++];

        l->id = 0;
        l->seat = seat;
        l->header = s->header;
        l->bits.base = c->tails + s->at;
        l->bits.pos = 0;
        l->bits.end = s->nbits;

        if (s->header.kind != US_TAIL) {
            return 0;
        }

        if (s->seat == US_SEAT_NONE) {
            return us_chain_records(c, chain, s->header.reference);
        }

        seat = s->seat;
    }
}


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
 * The reference for the first `same` bytes of a chain: the link that supplies
 * the last of these bytes itself.  0: the chain would be too deep.
 */

static int
us_reference_tail(us_codec_t *c, const us_chain_t *chain, size_t same,
    unsigned seat, uint64_t next, us_choice_t *choice)
{
    unsigned          k;
    us_header_t       h;
    const us_link_t  *l;

    for (k = 0; k + 1 < chain->n && chain->links[k].header.cut >= same; k++) {
        /* void */
    }

    choice->depth = chain->n - k;

    if (choice->depth >= US_HOPS) {
        return 0;
    }

    l = &chain->links[k];

    choice->seat = l->seat;
    choice->header.kind = US_TAIL;
    choice->header.reference = l->id;
    choice->header.cut = (unsigned) same;

    h = choice->header;

    if (choice->seat != US_SEAT_NONE) {
        h.reference = next + choice->seat;
    }

    choice->start.at = h.cut;
    choice->start.price = us_header_bits(&c->models, next + seat, &h)
                          * US_PRICE_BIT + choice->depth * US_HOP_PRICE;

    return 1;
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
 * Records below next to look at: the one before, if no seat is, and those that
 * the cache knows of the longest prefixes.  Returns their number.
 */

static unsigned
us_references_find(us_codec_t *c, const us_seat_t *s, uint64_t next,
    uint64_t ids[US_CANDIDATES])
{
    int       i;
    unsigned  n;
    uint64_t  id;

    n = 0;

    if (c->last == US_SEAT_NONE && next) {
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


unsigned
us_references(us_codec_t *c, const us_seat_t *s, unsigned seat, size_t len,
    uint64_t next, us_choice_t choices[US_CHOICES])
{
    int         i, rc;
    size_t      same;
    unsigned    n, found;
    uint64_t    ids[US_CANDIDATES];
    us_chain_t  chain;

    us_reference_none(c, &choices[0]);
    n = 1;

    found = us_references_find(c, s, next, ids);

    for (i = -1; i < (int) found; i++) {
        chain.n = 0;

        if (i >= 0) {
            rc = us_chain_records(c, &chain, ids[i]);

        } else if (c->last != US_SEAT_NONE) {
            rc = us_chain_seats(c, &chain, c->last);

        } else {
            continue;
        }

        if (rc == -1) {
            continue;
        }

        same = us_chain_same(c, &chain, c->own, len, &choices[n].spares);
        same = same < US_CUT_MAX ? same : US_CUT_MAX;

        if (same >= US_CUT_MIN) {
            n += (unsigned) us_reference_tail(c, &chain, same, seat, next,
                                              &choices[n]);
        }
    }

    return n;
}
