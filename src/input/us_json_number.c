
/*
 * Numbers of the JSON reader.  See us_json_private.h.
 *
 *     -   0 | 1-9 digits   . digits   e +- digits
 *     MINUS ZERO  INT      DOT FRAC   E ESIGN EXP
 *
 * A number is handed over as it was written.  It is the only token without an
 * end of its own: the byte after it ends it, or us_json_end().
 */


#include "us_json_private.h"


static int us_json_number_byte(us_json_t *j, uint8_t c);


const uint8_t *
us_json_number(us_json_t *j, const uint8_t *p, const uint8_t *end)
{
    int             rc;
    const uint8_t  *start, *last;

    start = p;
    last = p + (US_JSON_NUMBER - j->len);

    /* us_json_value() has settled the first byte's state */

    if (j->len == 0) {
        p++;
    }

    for ( /* void */ ; p < end; p++) {
        rc = us_json_number_byte(j, *p);

        if (rc < 0) {
            us_json_fail(j, "a malformed number");
            return NULL;
        }

        if (rc > 0) {
            break;
        }

        if (p == last) {
            us_json_fail(j, "a number that is too long");
            return NULL;
        }
    }

    if (p == end) {
        return us_json_append(j, start, p - start) == 0 ? p : NULL;
    }

    return us_json_emit(j, US_JSON_NUM, start, p) == 0 ? p : NULL;
}


/* 0: goes on, 1: the number ended before c, -1: it cannot end here */

static int
us_json_number_byte(us_json_t *j, uint8_t c)
{
    int  digit;

    digit = (c >= '0' && c <= '9');

    switch (j->state) {

    case US_JSON_S_MINUS:
        j->state = (c == '0') ? US_JSON_S_ZERO : US_JSON_S_INT;
        return digit ? 0 : -1;

    case US_JSON_S_INT:
        if (digit) {
            return 0;
        }

        /* fall through */

    case US_JSON_S_ZERO:
        if (digit) {
            return -1;
        }

        if (c == '.') {
            j->state = US_JSON_S_DOT;
            return 0;
        }

        break;

    case US_JSON_S_DOT:
        j->state = US_JSON_S_FRAC;
        return digit ? 0 : -1;

    case US_JSON_S_FRAC:
        if (digit) {
            return 0;
        }

        break;

    case US_JSON_S_E:
        if (c == '+' || c == '-') {
            j->state = US_JSON_S_ESIGN;
            return 0;
        }

        /* fall through */

    case US_JSON_S_ESIGN:
        j->state = US_JSON_S_EXP;
        return digit ? 0 : -1;

    case US_JSON_S_EXP:
        return digit ? 0 : 1;
    }

    if (c == 'e' || c == 'E') {
        j->state = US_JSON_S_E;
        return 0;
    }

    return 1;
}
