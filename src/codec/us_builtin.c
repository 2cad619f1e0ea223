
/*
 * The model of the first records, before any can be learnt.
 *
 * It comes with the program.  Records refer to it for ever: a change of the
 * data makes another store format (US_LAYOUT).
 */


#include "us_model.h"
#include "us_builtin_data.h"

#include <stdlib.h>


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


us_model_t *
us_builtin_create(void)
{
    size_t    i, n;
    uint8_t  *p;
    uint32_t  bits;

    n = (us_builtin_size + 2) / 3;

    p = malloc(n * 3);
    if (p == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        bits = us_builtin_digit(us_builtin_data[4 * i]) << 18
               | us_builtin_digit(us_builtin_data[4 * i + 1]) << 12
               | us_builtin_digit(us_builtin_data[4 * i + 2]) << 6
               | us_builtin_digit(us_builtin_data[4 * i + 3]);

        p[3 * i] = (uint8_t) (bits >> 16);
        p[3 * i + 1] = (uint8_t) (bits >> 8);
        p[3 * i + 2] = (uint8_t) bits;
    }

    if (us_model_check(p, us_builtin_size) == NULL) {
        free(p);
        return NULL;
    }

    return (us_model_t *) p;
}
