
/*
 * The codec: what a learnt model encodes comes back, cores are checked, and
 * no bits lead the decoder astray.
 */


#include "codec/us_decoder.h"
#include "codec/us_parse.h"
#include "codec/us_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>


#define TEXTS  6000


typedef struct {
    uint8_t             *text;
    us_sample_t         *samples;
    uint8_t             *core;
    size_t               core_len;
    const us_model_t    *model;
    us_decoder_t        *decoder;
    us_encoder_t        *encoder;
} test_t;


static uint64_t  rnd = 1;


static unsigned
random_below(unsigned n)
{
    rnd = rnd * 6364136223846793005 + 1442695040888963407;

    return (unsigned) (rnd >> 33) % n;
}


/* a URL of a small web: hosts, words, numbers, video ids */

static size_t
make_text(uint8_t *p)
{
    size_t    n;
    unsigned  i, k;

    static const char  *hosts[] = {
        "example.com/", "youtube.com/watch?v=", "blog.example.org/2013/",
        "forum.test/showthread.php?t=", "xn--bcher-kva.example/", "a.b/"
    };
    static const char  *words[] = {
        "news", "politics", "index", "the", "of", "article", "%C3%BC", "x"
    };

    p[0] = (uint8_t) random_below(4);
    n = 1 + (size_t) sprintf((char *) p + 1, "%s", hosts[random_below(6)]);

    for (k = random_below(4); k; k--) {
        n += (size_t) sprintf((char *) p + n, "%s%c", words[random_below(8)],
                              "-/&."[random_below(4)]);
    }

    switch (random_below(4)) {

    case 0:
        n += (size_t) sprintf((char *) p + n, "%u", random_below(1000000));
        break;

    case 1:
        for (i = random_below(40); i; i--) {
            p[n++] = (uint8_t) "ABCDEFGHabcdefgh01234567-_"[random_below(26)];
        }
        break;

    case 2:
        n += (size_t) sprintf((char *) p + n, "%08x", random_below(1u << 31));
        break;

    default:
        break;
    }

    return n;
}


/* in memory of exactly the size that it is said to need */

static us_decoder_t *
make_decoder(const us_model_t *m)
{
    void  *p = NULL;

    assert_int_equal(posix_memalign(&p, US_DECODER_ALIGN, us_decoder_size(m)),
                     0);

    return us_decoder_build(p, m);
}


static int
setup(void **state)
{
    int          rc;
    size_t       i, used;
    test_t      *t;
    us_train_t   in;

    t = calloc(1, sizeof(test_t));
    t->text = malloc(TEXTS * 256);
    t->samples = calloc(TEXTS, sizeof(us_sample_t));

    for (i = 0, used = 0; i < TEXTS; i++) {
        t->samples[i].offset = (uint32_t) used;
        t->samples[i].len = (uint16_t) make_text(t->text + used);

        if (i % 3 == 0) {
            t->samples[i].cut = t->samples[i].len / 2;
            t->samples[i].price = 25 * US_PRICE_BIT;
        }

        used += t->samples[i].len;
    }

    memset(&in, 0, sizeof(us_train_t));

    in.text = t->text;
    in.samples = t->samples;
    in.nsamples = TEXTS;
    in.ntokens = 1500;
    in.ncontexts = 24;
    in.head[3] = 1000;

    t->core = us_train(&in, NULL, &t->core_len);
    assert_non_null(t->core);

    t->model = us_model_check(t->core, t->core_len);
    assert_non_null(t->model);
    assert_int_equal(us_model_bytes(t->model).len, t->core_len);

    t->decoder = make_decoder(t->model);

    t->encoder = us_encoder_create(t->model);
    assert_non_null(t->encoder);

    do {
        rc = us_encoder_build(t->encoder);
    } while (rc == 0);

    assert_int_equal(rc, 1);

    *state = t;

    return 0;
}


static int
teardown(void **state)
{
    test_t  *t = *state;

    us_encoder_destroy(t->encoder);
    free(t->decoder);
    free(t->core);
    free(t->samples);
    free(t->text);
    free(t);

    return 0;
}


/* encodes, pads, and appends US_BITS_SLACK of `fill`; returns bits */

static size_t
encode(test_t *t, const uint8_t *text, size_t len, size_t cut, uint8_t **bits,
    uint8_t fill)
{
    size_t        n;
    uint32_t      price;
    us_start_t    start;
    us_bitout_t   o;

    *bits = malloc(len * 8 + 16);
    memset(*bits, fill, len * 8 + 16);

    o.p = *bits;
    o.acc = 0;
    o.n = 0;

    start.at = (uint32_t) cut;
    start.price = 77;

    assert_int_equal(us_encoder_choose(t->encoder, text, len, &start, 1,
                                       &price), 0);
    us_encoder_tail(t->encoder, &o);

    n = (size_t) (o.p - *bits) * 8 + o.n;

    /* the price is what it took, and 1 more for each escape */

    if (price < 77 + 200 * US_PRICE_BIT) {
        assert_in_range(price, 77 + n * US_PRICE_BIT,
                        77 + n * US_PRICE_BIT + n / 8);
    }

    us_bitout_put(&o, (1u << (-n & 3)) - 1, (unsigned) (-n & 3));
    n += -n & 3;

    if (o.n) {
        *o.p = (uint8_t) ((*o.p & (0xff << o.n)) | o.acc);
    }

    return n;
}


/* compares with a copy, whose end is watched; by itself, and among others */

static int
equal(us_comparison_t *c, const uint8_t *text, size_t len, int begins)
{
    int               answer;
    uint8_t          *copy, first[8];
    unsigned          i;
    us_comparison_t   all[8];

    copy = malloc(len + 1);
    memcpy(copy + 1, text, len);

    c->text = copy + 1;
    c->len = len;
    c->begins = begins;
    c->first = NULL;

    answer = us_decode_equal(c);

    /* every other one with its first byte apart */

    for (i = 0; i < 8; i++) {
        all[i] = *c;
        all[i].first = i % 2 && len > 1 ? &first[i] : NULL;
    }

    us_decode_compare(all, 8);

    for (i = 0; i < 8; i++) {
        if (all[i].first) {

            /* the answer is about the others */

            all[i].answer = all[i].answer && first[i] == text[0];
        }

        assert_int_equal(all[i].answer, answer);
    }

    if (len && answer) {
        copy[1] ^= 1;
        c->first = first;
        assert_true(us_decode_equal(c));
        assert_int_equal(first[0], text[0]);
    }

    free(copy);

    return answer;
}


static void
check(test_t *t, const uint8_t *text, size_t len, size_t cut)
{
    ssize_t           n;
    uint8_t          *bits, *out, *other;
    unsigned          ctx, fill;
    us_bitin_t        b;
    us_comparison_t   c;

    out = malloc(US_URL_MAX + US_DECODE_SLACK);
    other = malloc(len + 1);
    memcpy(other, text, len);

    ctx = cut ? us_model_tail_ctx(text[cut - 1]) : US_CTX_START;

    for (fill = 0; fill < 256; fill += 85) {
        b.end = encode(t, text, len, cut, &bits, (uint8_t) fill);
        b.base = bits;
        b.pos = 0;

        n = us_decode(t->decoder, ctx, &b, out, US_URL_MAX, US_URL_MAX);
        assert_int_equal(n, len - cut);
        assert_memory_equal(out, text + cut, len - cut);

        c.decoder = t->decoder;
        c.ctx = ctx;
        c.bits = b;

        assert_true(equal(&c, text + cut, len - cut, 0));
        assert_true(equal(&c, text + cut, len - cut, 1));

        other[len] = 'x';
        assert_false(equal(&c, other + cut, len + 1 - cut, 0));
        assert_false(equal(&c, other + cut, len + 1 - cut, 1));

        if (len > cut) {
            assert_false(equal(&c, text + cut, len - 1 - cut, 0));
            assert_true(equal(&c, text + cut, len - 1 - cut, 1));

            other[len - 1] ^= 1;
            assert_false(equal(&c, other + cut, len - cut, 0));
            assert_false(equal(&c, other + cut, len - cut, 1));
            other[len - 1] ^= 1;
        }

        free(bits);
    }

    free(other);
    free(out);
}


static void
test_round_trip(void **state)
{
    size_t    i, len;
    test_t   *t = *state;
    uint8_t   text[512];

    for (i = 0; i < 2000; i++) {
        len = make_text(text);
        check(t, text, len, i % 2 ? random_below((unsigned) len + 1) : 0);
    }
}


/* any bytes, any length: what was never seen goes by the escape */

static void
test_any_bytes(void **state)
{
    size_t    i, k;
    test_t   *t = *state;
    uint8_t  *text;

    text = malloc(US_URL_MAX);

    for (k = 0; k < US_URL_MAX; k++) {
        text[k] = (uint8_t) random_below(256);
    }

    for (i = 0; i < 600; i++) {
        check(t, text + i, i, 0);
    }

    check(t, text, US_URL_MAX, 0);
    check(t, text, US_URL_MAX, 4000);

    memset(text, 'a', US_URL_MAX);
    check(t, text, US_URL_MAX, 0);

    memset(text, '7', US_URL_MAX);
    check(t, text, US_URL_MAX, 1);

    free(text);
}


/* each run, alone and among others */

static void
test_runs(void **state)
{
    test_t       *t = *state;
    uint8_t       text[64], out[64];
    unsigned      a, n, i;
    us_bitout_t   o;

    static const char  *chars[] = {
        "0123456789", "0123456789abcdef",
        "0123456789abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
    };

    for (a = 0; a < US_RUN_ALPHABETS; a++) {
        for (n = 1; n <= US_RUN_MAX; n++) {
            for (i = 0; i < n; i++) {
                text[i] = (uint8_t)
                          chars[a][random_below((unsigned) strlen(chars[a]))];
                assert_true(us_run_classes[text[i]] & 1 << a);
            }

            check(t, text, n, 0);

            memset(out, 0, sizeof(out));
            o.p = out;
            o.acc = 0;
            o.n = 0;
            us_run_put(&o, a, text, n);
            i = (unsigned) (o.p - out) * 8 + o.n;
            assert_int_equal(i, us_run_bits(a, n));
        }
    }

    assert_int_equal(us_run_bits(0, 5), 17);
    assert_int_equal(us_run_bits(1, 5), 20);
    assert_int_equal(us_run_bits(2, 5), 27);
    assert_int_equal(us_run_bits(3, 5), 30);

}


/* the best of several beginnings is found */

static void
test_starts(void **state)
{
    test_t      *t = *state;
    size_t       len;
    uint8_t      text[512];
    uint32_t     each[3], best;
    unsigned     i, k, got;
    us_start_t   starts[3];

    for (i = 0; i < 500; i++) {
        len = make_text(text);

        starts[0].at = 0;
        starts[0].price = 8;
        starts[1].at = random_below((unsigned) len + 1);
        starts[1].price = 300 + random_below(400);
        starts[2].at = (uint32_t) len;
        starts[2].price = 300 + random_below(1200);

        for (k = 0; k < 3; k++) {
            us_encoder_choose(t->encoder, text, len, &starts[k], 1, &each[k]);
        }

        got = us_encoder_choose(t->encoder, text, len, starts, 3, &best);

        assert_int_equal(best, each[got]);

        /* not all ways are followed, but it is near the cheapest */

        for (k = 0; k < 3; k++) {
            assert_true(best <= each[k] + 32 * US_PRICE_BIT);
        }
    }
}


/* a text that begins like the one before, or not; its length */

static size_t
follow_text(uint8_t *text, size_t before)
{
    size_t   keep, len;
    uint8_t  other[512];

    keep = random_below(5) ? random_below((unsigned) before + 1) : 0;
    len = make_text(other);

    if (random_below(20) == 0) {
        return keep ? keep : 1;
    }

    memmove(text + keep, other, len);

    return keep + len < 300 ? keep + len : 300;
}


/* encodes a text; returns the price, and checks that its end comes back */

static uint32_t
check_text(test_t *t, const uint8_t *text, size_t len, const us_start_t *starts,
    size_t n)
{
    size_t        at;
    ssize_t       got;
    uint8_t       bits[4096], out[1024];
    uint32_t      price;
    unsigned      k;
    us_bitin_t    b;
    us_bitout_t   o;

    memset(bits, 0, sizeof(bits));
    o = (us_bitout_t) { bits, 0, 0 };

    k = us_encoder_choose(t->encoder, text, len, starts, n, &price);
    assert_true(k < n);
    us_encoder_tail(t->encoder, &o);

    b = (us_bitin_t) { bits, 0, (size_t) (o.p - bits) * 8 + o.n };
    assert_true(starts[k].price + b.end * US_PRICE_BIT
                < price + 16 * US_PRICE_BIT);

    us_bitout_put(&o, 0xff, 8);
    us_bitout_put(&o, 0, 32);

    at = starts[k].at;
    got = us_decode(t->decoder, at ? us_model_tail_ctx(text[at - 1])
                                   : US_CTX_START, &b, out, 1000, 1000);
    assert_int_equal(got, len - at);
    assert_memory_equal(out, text + at, len - at);

    return price;
}


/* what a text shares with the one before is not parsed again */

static void
test_again(void **state)
{
    test_t      *t = *state;
    size_t       len;
    uint8_t      text[1024];
    uint32_t     again, anew;
    uint64_t     sums[2];
    unsigned     i, n, k;
    us_start_t   starts[3], end;

    for (k = 0; k < 2; k++) {
        rnd = 7;
        len = 0;
        sums[k] = 0;

        for (i = 0; i < 5000; i++) {
            len = follow_text(text, len);

            starts[0].at = 0;
            starts[0].price = random_below(50) ? 8 : 16;

            for (n = 1; n < 1 + random_below(4) % 3; n++) {
                starts[n].at = random_below((unsigned) len + 1);
                starts[n].price = 20 + random_below(500);
            }

            if (random_below(30) == 0) {
                starts[0] = starts[n - 1];
            }

            /* a text whose second byte is a start has nothing to be kept */

            if (k) {
                end.at = 1;
                end.price = 0;
                us_encoder_choose(t->encoder, text, len, &end, 1, &anew);
            }

            sums[k] += check_text(t, text, len, starts, n);
        }
    }

    again = (uint32_t) (sums[0] / i);
    anew = (uint32_t) (sums[1] / i);

    /* ways that were found for another text can only make it cheaper */

    assert_true(again <= anew + 2 && anew <= again + US_PRICE_BIT);
}


/* random bits: whatever comes out, it ends and stays within its bounds */

static void
test_hostile_bits(void **state)
{
    test_t           *t = *state;
    ssize_t           n;
    uint8_t          *bits, *out;
    unsigned          i, k, ctx, len;
    us_bitin_t        b;
    us_comparison_t   c;

    for (i = 0; i < 20000; i++) {
        len = random_below(64);
        bits = malloc(len + US_BITS_SLACK);

        for (k = 0; k < len + US_BITS_SLACK; k++) {
            bits[k] = i % 3 ? (uint8_t) random_below(256)
                            : (uint8_t) (i % 2 ? 0 : 0xff);
        }

        k = random_below(100);
        out = malloc(k + US_DECODE_SLACK);
        ctx = random_below(us_model_ncontexts(t->model));

        b.base = bits;
        b.pos = len ? random_below(len * 8) : 0;
        b.end = len * 8;

        n = us_decode(t->decoder, ctx, &b, out, k, k);
        assert_true(n >= -1 && n <= (ssize_t) k);

        /* what decodes is equal to itself */

        c.decoder = t->decoder;
        c.ctx = ctx;
        c.bits = b;

        if (n > 0 && n < (ssize_t) k) {
            assert_true(equal(&c, out, (size_t) n, 0));
        }

        b.pos = 0;
        (void) us_decoder_symbol(t->decoder,
                                 US_CODE_HEAD + random_below(3), &b);
        (void) equal(&c, (uint8_t *) "abc", 3, (int) random_below(2));

        free(out);
        free(bits);
    }
}


/* a core with any byte changed is refused, and so is a part of one */

static void
test_damaged_core(void **state)
{
    test_t    *t = *state;
    size_t     i;
    uint8_t   *core;

    core = malloc(t->core_len);
    memcpy(core, t->core, t->core_len);

    for (i = 0; i < t->core_len; i++) {
        if (i > 400 && random_below(16)) {
            continue;
        }

        core[i] ^= (uint8_t) (1 + random_below(255));

        assert_null(us_model_check(core, t->core_len));

        core[i] = t->core[i];
    }

    for (i = 0; i < t->core_len; i += 1 + random_below(97)) {
        assert_null(us_model_check(core, i));
    }

    free(core);
}


/*
 * A core whose checksum is right, from a strange hand: two tokens have the same
 * text, and one has that of a byte.  An encoder is built, finds one of each.
 */

static void
test_same_tokens(void **state)
{
    test_t        *t = *state;
    int            rc;
    uint8_t       *core;
    uint32_t      *tokens;
    unsigned       i, n;
    us_model_t    *m;
    us_encoder_t  *e;

    core = malloc(t->core_len);
    memcpy(core, t->core, t->core_len);

    m = (us_model_t *) core;
    tokens = (uint32_t *) (core + m->tokens);
    n = m->ntokens - US_TOKEN_TEXT;

    assert_true(n > 100);

    for (i = 0; i < n / 2; i++) {
        tokens[US_TOKEN_TEXT + n / 2 + i] = tokens[US_TOKEN_TEXT + i];
    }

    tokens[US_TOKEN_TEXT + 5] = tokens['a'];
    us_model_seal(core, t->core_len);

    assert_non_null(us_model_check(core, t->core_len));

    e = us_encoder_create(m);
    assert_non_null(e);

    do {
        rc = us_encoder_build(e);
    } while (rc == 0);

    assert_int_equal(rc, 1);

    us_encoder_destroy(e);
    free(core);
}


/* a core under which some text could not be written is none */

static void
test_missing_symbols(void **state)
{
    test_t            *t = *state;
    uint8_t           *core;
    uint16_t          *list;
    unsigned           code, l, at, refused;
    const uint16_t    *nlen;
    const us_model_t  *m;

    core = malloc(t->core_len);
    memcpy(core, t->core, t->core_len);

    m = (us_model_t *) core;
    list = (uint16_t *) (core + m->symbols);
    nlen = (uint16_t *) (core + m->nlen);
    refused = 0;

    for (code = 0; code < (unsigned) m->ncontexts + US_CODES; code++) {
        for (l = 1; l <= US_HUFFMAN_MAX; l++) {

            if (nlen[l] == 0) {
                continue;
            }

            /* the last symbol of a length becomes the one before, if it can */

            at = nlen[l] - 1;

            if (list[at] && (at == 0 || list[at - 1] + 1 < list[at])) {
                list[at]--;
                us_model_seal(core, t->core_len);

                if (us_model_check(core, t->core_len) == NULL) {
                    refused++;

                } else {
                    /* a context may have any symbols, but for its escape */
                    assert_true(code < m->ncontexts);
                    assert_int_not_equal(list[at] + 1, m->ntokens);
                }

                list[at]++;
            }

            list += nlen[l];
        }

        nlen += US_NLEN;
    }

    assert_true(refused > m->ncontexts);

    us_model_seal(core, t->core_len);
    assert_non_null(us_model_check(core, t->core_len));
    free(core);
}


static void
test_header_symbols(void **state)
{
    test_t       *t = *state;
    int           got;
    uint8_t       bits[8 + US_BITS_SLACK];
    unsigned      i, code, n;
    uint32_t      codes[US_PREFIX_SYMBOLS];
    us_bitin_t    b;
    us_bitout_t   o;

    for (code = US_CODE_HEAD; code <= US_CODE_FAR; code++) {
        n = code == US_CODE_HEAD ? US_HEAD_SYMBOLS : US_PREFIX_SYMBOLS;
        us_model_codes(t->model, us_model_ncontexts(t->model) + code, codes,
                       n);

        for (i = 0; i < n; i++) {
            memset(bits, 0, sizeof(bits));
            o.p = bits;
            o.acc = 0;
            o.n = 0;

            us_bitout_put(&o, us_code_bits(codes[i]), us_code_len(codes[i]));
            us_bitout_put(&o, 0, 7);

            b.base = bits;
            b.pos = 0;
            b.end = 32;

            got = us_decoder_symbol(t->decoder, code, &b);
            assert_int_equal(got, i);
            assert_int_equal(b.pos, us_code_len(codes[i]));

            /* it ends beyond the bits */

            b.pos = 0;
            b.end = us_code_len(codes[i]) - 1;
            assert_int_equal(us_decoder_symbol(t->decoder, code, &b), -1);
        }

        /* what was seen often is cheap */

        if (code == US_CODE_HEAD) {
            assert_true(us_code_len(codes[3]) <= 2);
        }
    }
}


static void
test_cancel(void **state)
{
    test_t       *t = *state;
    size_t        len;
    volatile int  cancel = 1;
    us_train_t    in;

    memset(&in, 0, sizeof(us_train_t));

    in.text = t->text;
    in.samples = t->samples;
    in.nsamples = TEXTS;
    in.ntokens = 1500;
    in.ncontexts = 24;

    assert_null(us_train(&in, &cancel, &len));
}


/* the same sample gives the same model; hardly any sample gives one, too */

static void
test_repeatable(void **state)
{
    test_t      *t = *state;
    size_t       len, n;
    uint8_t     *core, *again;
    us_train_t   in;

    for (n = 0; n < 64; n = n ? n * 8 : 1) {
        memset(&in, 0, sizeof(us_train_t));

        in.text = t->text;
        in.samples = t->samples;
        in.nsamples = n;
        in.base = n % 2 ? t->model : NULL;
        in.ntokens = 600;
        in.ncontexts = US_CTX_GROUP + 3;

        core = us_train(&in, NULL, &len);
        assert_non_null(core);
        assert_non_null(us_model_check(core, len));

        again = us_train(&in, NULL, &len);
        assert_memory_equal(core, again, len);

        free(core);
        free(again);
    }
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_hostile_bits),
        cmocka_unit_test(test_damaged_core),
        cmocka_unit_test(test_same_tokens),
        cmocka_unit_test(test_missing_symbols),
        cmocka_unit_test(test_header_symbols),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_repeatable),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
