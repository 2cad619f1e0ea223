
/*
 * The value of Idempotency-Key.
 */


#include "us_idem.h"


/* printable ASCII; without quotes, none that begins something else in a list */

static int
us_idem_key_char(uint8_t c, int quoted)
{
    if (c < ' ' || c > '~' || c == '"') {
        return 0;
    }

    return quoted || (c != ' ' && c != '\\' && c != ',' && c != ';');
}


size_t
us_idem_key(us_str_t value, uint8_t *buf)
{
    int             quoted;
    size_t          len;
    const uint8_t  *p, *end;

    p = value.data;
    end = p + value.len;

    quoted = (value.len >= 2 && p[0] == '"' && end[-1] == '"');

    if (quoted) {
        p++;
        end--;
    }

    for (len = 0; p < end; p++) {

        if (quoted && *p == '\\') {

            /* only these two are escaped, and the last quote is not */

            if (++p == end || (*p != '\\' && *p != '"')) {
                return 0;
            }

        } else if (!us_idem_key_char(*p, quoted)) {
            return 0;
        }

        if (len == US_IDEM_KEY_MAX) {
            return 0;
        }

        buf[len++] = *p;
    }

    return len;
}
