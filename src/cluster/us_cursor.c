
/*
 * See us_cursor.h.
 */


#include "us_cursor.h"


/* version and uuid */
#define US_CURSOR_HEAD  5

/* bytes of the longest number, of 41 bits */
#define US_CURSOR_LEB   6


/* cuts off a number up to max, in its shortest form */

static int
us_cursor_number(us_str_t *bytes, uint64_t max, uint64_t *n)
{
    unsigned  i;
    uint8_t   byte;

    *n = 0;

    for (i = 0; i < bytes->len && i < US_CURSOR_LEB; i++) {
        byte = bytes->data[i];
        *n |= (uint64_t) (byte & 0x7f) << 7 * i;

        if (!(byte & 0x80)) {
            bytes->data += i + 1;
            bytes->len -= i + 1;

            return *n <= max && (byte || i == 0);
        }
    }

    return 0;
}


us_cursor_rc_t
us_cursor_read(us_cursor_t *c, const uint8_t cluster[16], us_str_t bytes)
{
    uint64_t  n, number, local;

    memset(c, 0, sizeof(us_cursor_t));

    if (bytes.len < US_CURSOR_HEAD || bytes.len > US_CURSOR_MAX
        || bytes.data[0] != US_CURSOR_VERSION)
    {
        return US_CURSOR_BAD;
    }

    if (memcmp(bytes.data + 1, cluster, US_CURSOR_HEAD - 1) != 0) {
        return US_CURSOR_OTHER;
    }

    bytes.data += US_CURSOR_HEAD;
    bytes.len -= US_CURSOR_HEAD;

    if (!us_cursor_number(&bytes, US_SHARDS - 1, &n)) {
        return US_CURSOR_BAD;
    }

    c->turn = (uint32_t) n;

    for (number = 0; bytes.len; number++) {

        if (!us_cursor_number(&bytes, US_SHARDS - 1, &n)
            || !us_cursor_number(&bytes, US_LOCAL_MAX + 1, &local)
            || number + n >= US_SHARDS || local == 0)
        {
            return US_CURSOR_BAD;
        }

        number += n;
        c->local[number] = local;
    }

    return US_CURSOR_OK;
}


static uint8_t *
us_cursor_leb(uint8_t *p, uint64_t n)
{
    for ( /* void */ ; n > 0x7f; n >>= 7) {
        *p++ = (uint8_t) (n | 0x80);
    }

    *p++ = (uint8_t) n;

    return p;
}


uint8_t *
us_cursor_put(uint8_t *p, const uint8_t cluster[16], const us_cursor_t *c)
{
    uint8_t   *end;
    uint32_t   i, next;

    end = p + US_CURSOR_MAX;

    *p++ = US_CURSOR_VERSION;
    memcpy(p, cluster, US_CURSOR_HEAD - 1);
    p = us_cursor_leb(p + US_CURSOR_HEAD - 1, c->turn);

    for (i = 0, next = 0; i < US_SHARDS; i++) {

        if (c->local[i] == 0) {
            continue;
        }

        if (end - p < 2 * US_CURSOR_LEB) {
            return NULL;
        }

        p = us_cursor_leb(p, i - next);
        p = us_cursor_leb(p, c->local[i]);
        next = i + 1;
    }

    return p;
}
