
/*
 * Numbers, ids and names, as maps and tags of maps have them.
 */


#include "us_map_private.h"


int
us_map_number(us_str_t text, uint64_t max, uint64_t *n)
{
    size_t    i;
    unsigned  digit;

    if (text.len == 0 || (text.len > 1 && text.data[0] == '0')) {
        return -1;
    }

    for (i = 0, *n = 0; i < text.len; i++) {
        digit = (unsigned) text.data[i] - '0';

        if (digit > 9 || *n > (max - digit) / 10) {
            return -1;
        }

        *n = *n * 10 + digit;
    }

    return 0;
}


int
us_map_uuid(us_str_t text, uint8_t uuid[16])
{
    size_t    i;
    uint8_t   c;
    unsigned  n, digit;

    if (text.len != 32 && text.len != 36) {
        return -1;
    }

    for (i = 0, n = 0; i < text.len; i++) {
        c = text.data[i];

        if (text.len == 36 && (i == 8 || i == 13 || i == 18 || i == 23)) {
            if (c != '-') {
                return -1;
            }

            continue;
        }

        digit = c >= '0' && c <= '9' ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                : 16;

        if (digit == 16) {
            return -1;
        }

        uuid[n / 2] = (uint8_t) (n % 2 ? uuid[n / 2] | digit : digit << 4);
        n++;
    }

    return 0;
}


int
us_map_is_node(us_str_t text)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if ((c >= 'a' && c <= 'z')
            || (i && ((c >= '0' && c <= '9') || c == '_' || c == '-'
                      || c == '.')))
        {
            continue;
        }

        return 0;
    }

    return text.len > 0 && text.len <= US_MAP_NODE_LEN;
}
