
/*
 * Makes src/codec/us_builtin_data.h: a model of the URLs on stdin, one a
 * line, as a core in base 64.
 *
 *     builtin TOKENS CONTEXTS < URLS > us_builtin_data.h
 */


#include "codec/us_parse.h"
#include "codec/us_train.h"

#include <stdio.h>
#include <stdlib.h>


static const char  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789+/";


/* to the text that a store codes: a class byte and what follows the scheme */

static size_t
inner(uint8_t *out, const char *line, size_t len)
{
    size_t   skip;
    uint8_t  class;

    while (len && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
        len--;
    }

    class = 0;
    skip = 7;

    if (len > 8 && memcmp(line, "https://", 8) == 0) {
        class = 1;
        skip = 8;

    } else if (len <= 7 || memcmp(line, "http://", 7) != 0) {
        return 0;
    }

    if (len > skip + 4 && memcmp(line + skip, "www.", 4) == 0) {
        class |= 2;
        skip += 4;
    }

    if (len - skip >= US_URL_MAX) {
        return 0;
    }

    out[0] = class;
    memcpy(out + 1, line + skip, len - skip);

    return len - skip + 1;
}


int
main(int argc, char **argv)
{
    char         *line;
    size_t        cap, len, i, used, room, nmax, same;
    ssize_t       n;
    uint8_t      *core, *text, *last;
    uint32_t      bits;
    us_train_t    in;
    us_sample_t  *samples, *s;

    if (argc != 3) {
        fprintf(stderr, "usage: builtin TOKENS CONTEXTS < URLS\n");
        return 2;
    }

    memset(&in, 0, sizeof(us_train_t));

    in.ntokens = (unsigned) atoi(argv[1]);
    in.ncontexts = (unsigned) atoi(argv[2]);

    line = NULL;
    cap = 0;
    used = 0;
    nmax = 1 << 18;
    room = 64 << 20;
    text = malloc(room);
    samples = calloc(nmax, sizeof(us_sample_t));

    if (text == NULL || samples == NULL) {
        return 2;
    }

    while (in.nsamples < nmax && room - used > 2 * US_URL_MAX
           && (n = getline(&line, &cap, stdin)) > 0)
    {
        len = inner(text + used, line, (size_t) n);

        if (len == 0) {
            continue;
        }

        s = &samples[in.nsamples];
        s->offset = (uint32_t) used;
        s->len = (uint16_t) len;

        /* each other one is a tail after what it shares with the last */

        if (in.nsamples % 2) {
            last = text + s[-1].offset;

            for (same = 0; same < len && same < s[-1].len
                           && last[same] == text[used + same]; same++)
            {
                /* void */
            }

            s->cut = (uint16_t) (same > 8 ? same : 0);
            s->price = 8 * US_PRICE_BIT;
        }

        in.nsamples++;
        used += len;
    }

    in.text = text;
    in.samples = samples;

    /* a record mostly has no reference, or a short distance or number */

    in.head[0] = 64;

    for (i = 1; i < 32; i++) {
        in.head[i] = 2;
        in.near[i + 8] = 4;
        in.far[i + 8] = 4;
    }

    core = us_train(&in, NULL, &len);

    if (core == NULL) {
        fprintf(stderr, "builtin: no memory\n");
        return 2;
    }

    printf("\n/*\n * The built-in model in base 64.  Made by tools/builtin.c: "
           "do not edit.\n */\n\n\n"
           "static const size_t  us_builtin_size = %zu;\n\n"
           "static const char    us_builtin_data[] =\n", len);

    for (i = 0; i < len; i += 3) {
        bits = (uint32_t) core[i] << 16
               | (uint32_t) (i + 1 < len ? core[i + 1] : 0) << 8
               | (uint32_t) (i + 2 < len ? core[i + 2] : 0);

        printf("%s%c%c%c%c%s", i % 54 == 0 ? "    \"" : "",
               digits[bits >> 18], digits[bits >> 12 & 63],
               digits[bits >> 6 & 63], digits[bits & 63],
               i + 3 >= len ? "\";\n" : i % 54 == 51 ? "\"\n" : "");
    }

    free(core);
    free(samples);
    free(text);
    free(line);

    return 0;
}
