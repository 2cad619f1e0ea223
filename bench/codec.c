
/*
 * Measures the codec alone: texts without references, models learnt on the
 * way as the store would.
 *
 *     xz -dc CORPUS.txt.xz | build/bench/codec [-s SEED] [-n LINES] [-m TEXTS]
 *                                              [-k TOKENS] [-c CONTEXTS]
 */


#include "codec/us_decoder.h"
#include "codec/us_parse.h"
#include "codec/us_train.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>


#define SAMPLE  (1 << 17)


typedef struct {
    uint8_t   *text;
    uint32_t  *offsets;
    size_t     n;
} corpus_t;


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


/* SplitMix64 */

static uint64_t
next(uint64_t *x)
{
    uint64_t  z = (*x += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


/* a rough canonical form: the class byte, then from the host on */

static void
load(corpus_t *c, size_t limit, uint64_t seed)
{
    char      *line = NULL, *p;
    size_t     cap = 0, used = 0, room = 1 << 20, nmax = 1 << 16, i, j;
    ssize_t    len;
    uint64_t   h;
    size_t     mask = (1 << 23) - 1;
    uint32_t  *set = calloc(mask + 1, 4);

    c->text = malloc(room);
    c->offsets = malloc(nmax * 4);
    c->n = 0;

    while ((len = getline(&line, &cap, stdin)) > 0 && c->n < limit) {
        uint8_t  class = 0;

        if (line[len - 1] == '\n') {
            len--;
        }

        p = line;

        if (len > 7 && memcmp(p, "http://", 7) == 0) {
            p += 7; len -= 7;

        } else if (len > 8 && memcmp(p, "https://", 8) == 0) {
            p += 8; len -= 8; class = 1;

        } else {
            continue;
        }

        if (len > 4 && memcmp(p, "www.", 4) == 0) {
            p += 4; len -= 4; class |= 2;
        }

        if (len == 0 || len > 8000) {
            continue;
        }

        if (used + (size_t) len + 1 > room) {
            room *= 2;
            c->text = realloc(c->text, room);
        }

        if (c->n + 2 > nmax) {
            nmax *= 2;
            c->offsets = realloc(c->offsets, nmax * 4);
        }

        c->text[used] = class;
        memcpy(c->text + used + 1, p, (size_t) len);

        for (h = 1469598103934665603u, i = 0; i < (size_t) len + 1; i++) {
            h = (h ^ c->text[used + i]) * 1099511628211u;
        }

        for (h ^= h >> 31; set[h & mask]; h++) {
            j = set[h & mask] - 1;

            if (c->offsets[j + 1] - c->offsets[j] == (size_t) len + 1
                && memcmp(c->text + c->offsets[j], c->text + used,
                          (size_t) len + 1) == 0)
            {
                break;
            }
        }

        if (set[h & mask]) {
            continue;
        }

        set[h & mask] = (uint32_t) ++c->n;
        c->offsets[c->n - 1] = (uint32_t) used;
        used += (size_t) len + 1;
        c->offsets[c->n] = (uint32_t) used;
    }

    free(set);

    if (seed) {
        uint8_t   *text = malloc(used);
        uint32_t  *order = malloc(c->n * 4), *off = malloc((c->n + 1) * 4), t;

        for (i = 0; i < c->n; i++) {
            order[i] = (uint32_t) i;
        }

        for (i = c->n; i > 1; i--) {
            j = next(&seed) % i;
            t = order[i - 1]; order[i - 1] = order[j]; order[j] = t;
        }

        for (i = 0, used = 0; i < c->n; i++) {
            uint32_t  n;

            n = c->offsets[order[i] + 1] - c->offsets[order[i]];

            off[i] = (uint32_t) used;
            memcpy(text + used, c->text + c->offsets[order[i]], n);
            used += n;
        }

        off[c->n] = (uint32_t) used;
        c->text = text;
        c->offsets = off;
    }
}


int
main(int argc, char **argv)
{
    int            ch;
    double         t, train_ns = 0, enc_ns = 0, dec_ns = 0, build_ns = 0;
    size_t         i, limit = (size_t) -1, most = limit, at, len;
    size_t         done = 0, raw = 0;
    size_t         models = 0;
    uint64_t       seed = 0, bits = 0, part = 0, partn = 0;
    unsigned       ntokens = 16384, ncontexts = 64, k;
    corpus_t       c;
    us_decoder_t  *d = NULL;
    us_encoder_t  *e = NULL;

    const us_model_t  *model = NULL;
    uint8_t           *last = NULL;

    while ((ch = getopt(argc, argv, "s:n:m:k:c:")) != -1) {
        switch (ch) {
        case 's': seed = strtoull(optarg, NULL, 0); break;
        case 'n': limit = strtoull(optarg, NULL, 0); break;
        case 'm': most = strtoull(optarg, NULL, 0); break;
        case 'k': ntokens = (unsigned) atoi(optarg); break;
        case 'c': ncontexts = (unsigned) atoi(optarg); break;
        default: return 2;
        }
    }

    load(&c, limit, seed);

    if (c.n > most) {
        c.n = most;
    }

    printf("%zu texts, %.1f bytes\n", c.n, c.offsets[c.n] / (double) c.n);

    for (at = 1 << 15; at < c.n; at *= 8) {
        us_train_t    in;
        uint8_t      *core;
        us_sample_t  *s;
        size_t        n, to;

        n = at < SAMPLE ? at : SAMPLE;
        s = calloc(n, sizeof(us_sample_t));
        memset(&in, 0, sizeof(in));

        for (i = 0; i < n; i++) {
            s[i].offset = c.offsets[at - n + i];
            s[i].len = (uint16_t) (c.offsets[at - n + i + 1] - s[i].offset);
        }

        in.base = model;
        in.text = c.text;
        in.samples = s;
        in.nsamples = n;
        in.ntokens = at < 1 << 16 ? (ntokens < 4096 ? ntokens : 4096)
                                  : ntokens;
        in.ncontexts = at < 1 << 16 ? (ncontexts < 40 ? ncontexts : 40)
                                    : ncontexts;

        t = now();
        core = us_train(&in, NULL, &len);
        train_ns += now() - t;

        if (core == NULL || (model = us_model_check(core, len)) == NULL) {
            fprintf(stderr, "no model\n");
            return 1;
        }

        models += len;
        d = aligned_alloc(US_DECODER_ALIGN, us_decoder_size(model));

        t = now();
        us_decoder_build(d, model);
        build_ns = now() - t;

        printf("decoder %zu in %.1f ms, ", us_decoder_size(model),
               build_ns / 1e6);

        t = now();
        e = us_encoder_create(model);
        for (k = 0; us_encoder_build(e) == 0; k++) { /* void */ }
        build_ns = now() - t;

        printf("at %zu: %u tokens, model %zu, encoder in %.1f ms, "
               "%u slices; training %.2f s\n", at,
               us_model_ntokens(model), len, build_ns / 1e6, k,
               train_ns / 1e9);

        to = at * 8 < c.n ? at * 8 : c.n;
        part = 0;
        partn = to - at;

        {
            uint8_t     *buf = malloc(partn * 200 + (1 << 20));
            uint64_t    *pos = malloc((partn + 1) * sizeof(uint64_t));
            us_bitout_t  o = { buf, 0, 0 };
            size_t       bad = 0;
            uint64_t     eq = 0;

            t = now();

            for (i = at; i < to; i++) {
                uint32_t     price;
                us_start_t   start = { 0, 0 };
                size_t       n4;

                len = c.offsets[i + 1] - c.offsets[i];
                pos[i - at] = (uint64_t) (o.p - buf) * 8 + o.n;
                us_encoder_choose(e, c.text + c.offsets[i], len, &start, 1,
                                  &price);
                us_encoder_tail(e, &o);
                part += (uint64_t) (o.p - buf) * 8 + o.n - pos[i - at];
                n4 = (4 - (o.n & 3)) & 3;
                us_bitout_put(&o, (1 << n4) - 1, (unsigned) n4);
                raw += len;
            }

            enc_ns += now() - t;
            pos[i - at] = (uint64_t) (o.p - buf) * 8 + o.n;
            us_bitout_put(&o, 0xff, 8);

            t = now();

            for (i = at; i < to; i++) {
                uint8_t     out[9000];
                ssize_t     got;
                us_bitin_t  b = { buf, pos[i - at], pos[i - at + 1] };

                got = us_decode(d, US_CTX_START, &b, out, 8192, 8192);
                len = c.offsets[i + 1] - c.offsets[i];

                if (got != (ssize_t) len
                    || memcmp(out, c.text + c.offsets[i], len) != 0)
                {
                    bad++;
                }
            }

            dec_ns += now() - t;

            for (i = at; i < to; i++) {
                us_comparison_t  q = {
                    d, US_CTX_START, 0, { buf, pos[i - at], pos[i - at + 1] },
                    c.text + c.offsets[i], c.offsets[i + 1] - c.offsets[i],
                    NULL, 0
                };

                eq += (uint64_t) us_decode_equal(&q);
            }

            if (bad || eq != partn) {
                printf("BAD %zu, unequal %zu\n", bad, (size_t) (partn - eq));
            }

            free(buf);
            free(pos);
        }

        bits += part;
        done += partn;

        printf("  %zu texts: %.3f bytes\n", (size_t) partn,
               (double) part / 8 / (double) partn);

        us_encoder_destroy(e);
        free(d);
        free(last);
        last = core;
        free(s);
    }

    printf("all: %.3f B, models %.3f B, encode %.0f ns, decode %.0f ns, "
           "training %.0f ns\n", (double) bits / 8 / (double) done,
           (double) models / (double) c.n, enc_ns / (double) done,
           dec_ns / (double) done, train_ns / (double) c.n);

    return 0;
}
