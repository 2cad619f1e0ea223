
/*
 * Runs: stretches of a few characters without meaning (numbers, hashes, video
 * ids), packed.
 */


#include "us_run.h"


/*
 * Digits go 3 to 10 bits (2: 7, 1: 4), hexadecimal digits 4 bits each,
 * [0-9a-z] 3 to 16 bits (2: 11, 1: 6), [0-9A-Za-z_-] 6 bits each.
 */

static const uint8_t  us_run_group[US_RUN_ALPHABETS][4] = {
    { 0, 4, 7, 10 }, { 0, 4, 8, 12 }, { 0, 6, 11, 16 }, { 0, 6, 12, 18 }
};

static const uint8_t  us_run_radix[US_RUN_ALPHABETS] = { 10, 16, 36, 64 };

static const char     us_run_chars[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

#define D  US_RUN_DIGIT
#define H  US_RUN_HEX
#define L  US_RUN_LOWER
#define U  US_RUN_UPPER

const uint8_t  us_run_classes[256] = {
    ['0'] = D, D, D, D, D, D, D, D, D, D,
    ['a'] = H, H, H, H, H, H, L, L, L, L, L, L, L,
            L, L, L, L, L, L, L, L, L, L, L, L, L,
    ['A'] = U, U, U, U, U, U, U, U, U, U, U, U, U,
            U, U, U, U, U, U, U, U, U, U, U, U, U,
    ['-'] = US_RUN_OTHER,
    ['_'] = US_RUN_OTHER
};

#undef D
#undef H
#undef L
#undef U


unsigned
us_run_bits(unsigned alphabet, unsigned len)
{
    return len / 3 * us_run_group[alphabet][3]
           + us_run_group[alphabet][len % 3];
}


static unsigned
us_run_value(uint8_t c)
{
    if (c <= '9') {
        return c == '-' ? 62 : (unsigned) c - '0';
    }

    if (c >= 'a') {
        return (unsigned) c - 'a' + 10;
    }

    return c == '_' ? 63 : (unsigned) c - 'A' + 36;
}


void
us_run_put(us_bitout_t *o, unsigned alphabet, const uint8_t *text,
    unsigned len)
{
    unsigned  i, n, v;

    for ( /* void */ ; len; len -= n) {
        n = len < 3 ? len : 3;

        for (i = 0, v = 0; i < n; i++) {
            v = v * us_run_radix[alphabet] + us_run_value(*text++);
        }

        us_bitout_put(o, v, us_run_group[alphabet][n]);
    }
}


/*
 * Values beyond the largest of a group come from damaged bits only: they are
 * made characters of some kind.
 */

void
us_run_get(uint64_t w, unsigned alphabet, unsigned len, uint8_t *out)
{
    unsigned  i, n, v, radix;

    radix = us_run_radix[alphabet];

    for ( /* void */ ; len; len -= n) {
        n = len < 3 ? len : 3;

        v = (unsigned) w & ((1u << us_run_group[alphabet][n]) - 1);
        w >>= us_run_group[alphabet][n];

        for (i = n; i-- > 0; /* void */) {
            out[i] = (uint8_t) us_run_chars[v % radix];
            v /= radix;
        }

        out += n;
    }
}
