
/*
 * The header of a record.
 *
 * FORMAT, lowest bit first; symbols are those of US_CODE_HEAD, _NEAR, _FAR:
 *
 *   | WHOLE |                                tokens ...
 *   | RAW   |                                8 bits for each byte ...
 *   | TAIL + n | n - 1 bits | prefix symbol |   tokens ...
 *   | OTHER | number: 3 |                    a header again, see below
 *
 * TAIL + n: the reference is `distance` records back, a number of n bits, of
 * which the highest is 1 and not written.  The prefix symbol is the common
 * prefix less US_CUT_MIN; near references (distance below US_NEAR) have a code
 * of their own, because neighbours share more.
 *
 * A header is written under the newest model at the record's id.  OTHER: model
 * `number` (US_MODEL_BUILTIN: the built-in one) has coded the rest of the
 * record, a header of its own included.
 */


#include "us_header.h"


#define US_HEADER_WHOLE  0
#define US_HEADER_RAW    1
#define US_HEADER_OTHER  2
#define US_HEADER_TAIL   3            /* + 1 .. US_DISTANCE_BITS */

#define US_DISTANCE_BITS 40
#define US_NEAR          16


static inline unsigned
us_header_width(uint64_t distance)
{
    return 64 - (unsigned) __builtin_clzll(distance);
}


static inline unsigned
us_header_prefix_code(uint64_t distance)
{
    return distance < US_NEAR ? US_CODE_NEAR : US_CODE_FAR;
}


int
us_header_read(us_models_t *ms, uint64_t id, const us_bits_t *record,
    us_header_t *h, us_bitin_t *b)
{
    int                       symbol, prefix;
    unsigned                  width;
    uint64_t                  distance;
    const us_decoder_t       *d;
    const us_model_tables_t  *t;

    b->base = record->data;
    b->pos = record->bit;
    b->end = record->bit + (uint64_t) record->units * 4;

    h->number = us_models_number(ms, id);
    d = ms->tables[h->number].decoder;

    symbol = us_decoder_symbol(d, US_CODE_HEAD, b);

    if (symbol == US_HEADER_OTHER) {
        if (b->end - b->pos < 3) {
            return -1;
        }

        h->number = us_bitin_peek(b) & 7;
        b->pos += 3;

        t = us_models_get(ms, h->number);
        if (t == NULL) {
            return -1;
        }

        d = t->decoder;
        symbol = us_decoder_symbol(d, US_CODE_HEAD, b);
    }

    if (symbol == US_HEADER_WHOLE) {
        h->kind = US_WHOLE;
        h->cut = 0;
        return 0;
    }

    if (symbol == US_HEADER_RAW) {
        h->kind = US_RAW;
        h->cut = 0;
        return 0;
    }

    if (symbol <= US_HEADER_TAIL
        || symbol > US_HEADER_TAIL + US_DISTANCE_BITS)
    {
        return -1;
    }

    width = (unsigned) symbol - US_HEADER_TAIL - 1;

    if (b->end - b->pos < width) {
        return -1;
    }

    distance = (us_bitin_peek(b) & (((uint64_t) 1 << width) - 1))
               | (uint64_t) 1 << width;
    b->pos += width;

    prefix = us_decoder_symbol(d, us_header_prefix_code(distance), b);

    if (prefix < 0 || distance > id) {
        return -1;
    }

    h->kind = US_TAIL;
    h->reference = id - distance;
    h->cut = (unsigned) prefix + US_CUT_MIN;

    return 0;
}


static inline void
us_header_put(us_bitout_t *o, uint32_t code)
{
    us_bitout_put(o, us_code_bits(code), us_code_len(code));
}


/* the code of a common prefix with a record at this distance */

static inline uint32_t
us_header_prefix(const us_header_codes_t *codes, uint64_t distance,
    unsigned cut)
{
    return distance < US_NEAR ? codes->near[cut - US_CUT_MIN]
                              : codes->far[cut - US_CUT_MIN];
}


void
us_header_write(us_models_t *ms, uint64_t id, const us_header_t *h,
    us_bitout_t *o)
{
    unsigned                  newest, width;
    uint64_t                  distance, low;
    const us_header_codes_t  *codes;

    newest = us_models_number(ms, id);

    if (h->number != newest) {
        us_header_put(o, ms->tables[newest].codes.head[US_HEADER_OTHER]);
        us_bitout_put(o, h->number, 3);
    }

    codes = &ms->tables[h->number].codes;

    if (h->kind != US_TAIL) {
        us_header_put(o, codes->head[h->kind == US_RAW ? US_HEADER_RAW
                                                       : US_HEADER_WHOLE]);
        return;
    }

    distance = id - h->reference;
    width = us_header_width(distance) - 1;

    us_header_put(o, codes->head[US_HEADER_TAIL + width + 1]);

    low = distance & (((uint64_t) 1 << width) - 1);
    us_bitout_put(o, (uint32_t) low & 0xfffff, width < 20 ? width : 20);

    if (width > 20) {
        us_bitout_put(o, (uint32_t) (low >> 20), width - 20);
    }

    us_header_put(o, us_header_prefix(codes, distance, h->cut));
}


unsigned
us_header_bits(const us_models_t *ms, uint64_t id, const us_header_t *h)
{
    unsigned                  width;
    uint64_t                  distance;
    const us_header_codes_t  *codes;

    if (ms->encoder == NULL) {
        return 0;
    }

    codes = &ms->tables[ms->number].codes;

    if (h->kind != US_TAIL) {
        return us_code_len(codes->head[h->kind == US_RAW ? US_HEADER_RAW
                                                         : US_HEADER_WHOLE]);
    }

    distance = id - h->reference;
    width = us_header_width(distance) - 1;

    return us_code_len(codes->head[US_HEADER_TAIL + width + 1]) + width
           + us_code_len(us_header_prefix(codes, distance, h->cut));
}


void
us_header_count(uint64_t id, const us_header_t *h, uint32_t *head,
    uint32_t *near, uint32_t *far)
{
    uint64_t  distance;

    if (h->kind != US_TAIL) {
        head[h->kind == US_RAW ? US_HEADER_RAW : US_HEADER_WHOLE]++;
        return;
    }

    distance = id - h->reference;

    head[US_HEADER_TAIL + us_header_width(distance)]++;

    if (distance < US_NEAR) {
        near[h->cut - US_CUT_MIN]++;

    } else {
        far[h->cut - US_CUT_MIN]++;
    }
}
