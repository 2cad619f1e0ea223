
/*
 * The model of the first records, before any can be learnt.
 *
 * Its core comes with the program.  Records refer to it for ever: a change of
 * the data makes another store format (US_LAYOUT).
 */


#include "us_builtin.h"

#include <stdlib.h>


static unsigned us_builtin_digit(char c);


us_model_t *
us_builtin_create(void)
{
    size_t       i, n;
    uint8_t     *core;
    uint32_t     bits;
    us_model_t  *m;

    m = NULL;
    n = (us_builtin_size + 2) / 3;

    core = malloc(n * 3);
    if (core == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        bits = us_builtin_digit(us_builtin_data[4 * i]) << 18
               | us_builtin_digit(us_builtin_data[4 * i + 1]) << 12
               | us_builtin_digit(us_builtin_data[4 * i + 2]) << 6
               | us_builtin_digit(us_builtin_data[4 * i + 3]);

        core[3 * i] = (uint8_t) (bits >> 16);
        core[3 * i + 1] = (uint8_t) (bits >> 8);
        core[3 * i + 2] = (uint8_t) bits;
    }

    if (us_model_core_size(core, us_builtin_size) == us_builtin_size) {
        m = malloc(us_model_size(core));
    }

    if (m) {
        us_model_build(m, core);
    }

    free(core);

    return m;
}


/* base 64 as in RFC 4648 */

static unsigned
us_builtin_digit(char c)
{
    if (c >= 'a') {
        return (unsigned) (c - 'a') + 26;
    }

    if (c >= 'A') {
        return (unsigned) (c - 'A');
    }

    if (c >= '0') {
        return (unsigned) (c - '0') + 52;
    }

    return c == '+' ? 62 : 63;
}
