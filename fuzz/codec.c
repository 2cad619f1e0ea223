
/*
 * The decoder and the reader of models, on bits that nobody wrote.
 *
 *   input   | kind: 1 | ...
 *
 * kind 0: a record's tail under the built-in model: context 1, then the bits.
 * kind 1: a core.  Its checksum is made right first, or nothing would get
 * beyond it; if it is accepted, the rest of the input is decoded with it.
 * kind 2: a text, which must come back.
 */


#include "codec/us_decoder.h"
#include "codec/us_parse.h"

#include <stdlib.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static us_model_t    *builtin;
static us_decoder_t  *decoder;
static us_encoder_t  *encoder;


static us_decoder_t *
make_decoder(const us_model_t *m)
{
    void  *p;

    if (posix_memalign(&p, US_DECODER_ALIGN, us_decoder_size(m)) != 0) {
        abort();
    }

    return us_decoder_build(p, m);
}


/* a copy whose end is watched, but for the slack that is allowed */

static void
decode(const us_decoder_t *d, unsigned ctx, const uint8_t *data, size_t size)
{
    uint8_t          *bits, *out, *copy, first;
    ssize_t           n;
    unsigned          code, i;
    us_bitin_t        b;
    us_comparison_t   all[3];

    bits = malloc(size + US_BITS_SLACK);
    out = malloc(US_URL_MAX + US_DECODE_SLACK);

    memcpy(bits, data, size);
    memset(bits + size, 0xff, US_BITS_SLACK);

    b.base = bits;
    b.pos = 0;
    b.end = size * 8;

    n = us_decode(d, ctx, &b, out, US_URL_MAX, US_URL_MAX);

    if (n > US_URL_MAX) {
        abort();
    }

    /* what decodes is equal to itself, and begins as it does */

    if (n > 0 && n < US_URL_MAX) {
        copy = malloc((size_t) n);
        memcpy(copy, out, (size_t) n);

        for (i = 0; i < 3; i++) {
            all[i].decoder = d;
            all[i].ctx = ctx;
            all[i].begins = i == 2;
            all[i].bits = b;
            all[i].text = copy;
            all[i].len = i == 2 ? (size_t) n / 2 : (size_t) n;
            all[i].first = i == 1 ? &first : NULL;

            if (!us_decode_equal(&all[i])) {
                abort();
            }
        }

        us_decode_compare(all, 3);

        if (!all[0].answer || !all[1].answer || !all[2].answer
            || first != copy[0])
        {
            abort();
        }

        free(copy);
    }

    for (code = US_CODE_HEAD; code < US_CODES; code++) {
        b.pos = 0;
        while (us_decoder_symbol(d, code, &b) >= 0) { /* void */ }
    }

    free(out);
    free(bits);
}


static void
core(const uint8_t *data, size_t size)
{
    size_t             fixed;
    uint8_t           *copy;
    us_str_t           seed;
    us_decoder_t      *d;
    const us_model_t  *m;

    /* the input changes bytes of a good core: | offset: 2 | byte: 1 | ... */

    seed = us_model_bytes(builtin);
    copy = malloc(seed.len);
    memcpy(copy, seed.data, seed.len);

    fixed = 0;

    while (size - fixed >= 3 && fixed < 48) {
        copy[(data[fixed] | (size_t) data[fixed + 1] << 8) % seed.len]
            ^= data[fixed + 2];
        fixed += 3;
    }

    us_model_seal(copy, seed.len);
    m = us_model_check(copy, seed.len);

    if (m) {
        d = make_decoder(m);
        decode(d, US_CTX_START, data + fixed, size - fixed);
        free(d);
    }

    free(copy);
}


static void
text(const uint8_t *data, size_t size)
{
    size_t        nbits;
    uint8_t      *bits, *out;
    uint32_t      price;
    us_bitin_t    b;
    us_start_t    start = { 0, 0 };
    us_bitout_t   o = { NULL, 0, 0 };

    if (size > US_URL_MAX) {
        return;
    }

    bits = calloc(1, size * 8 + 16);
    out = malloc(US_URL_MAX + US_DECODE_SLACK);
    o.p = bits;

    us_encoder_choose(encoder, data, size, &start, 1, &price);
    us_encoder_tail(encoder, &o);

    nbits = (size_t) (o.p - bits) * 8 + o.n;
    us_bitout_put(&o, (1u << (-nbits & 3)) - 1, (unsigned) (-nbits & 3));
    *o.p = (uint8_t) o.acc;

    b.base = bits;
    b.pos = 0;
    b.end = (nbits + 3) & ~(size_t) 3;

    if (us_decode(decoder, US_CTX_START, &b, out, US_URL_MAX, US_URL_MAX)
        != (ssize_t) size
        || memcmp(out, data, size) != 0)
    {
        abort();
    }

    free(out);
    free(bits);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (builtin == NULL) {
        builtin = us_builtin_create();
        decoder = make_decoder(builtin);
        encoder = us_encoder_create(builtin);

        while (us_encoder_build(encoder) == 0) { /* void */ }
    }

    if (size < 2) {
        return 0;
    }

    switch (data[0] % 3) {

    case 0:
        decode(decoder, data[1] % us_model_ncontexts(builtin), data + 2,
               size - 2);
        break;

    case 1:
        core(data + 1, size - 1);
        break;

    default:
        text(data + 1, size - 1);
    }

    return 0;
}
