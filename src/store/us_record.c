
/*
 * Records, the plain codec: an earlier record, a common prefix, and the
 * characters of the tail as they are.
 *
 * FORMAT, lowest bit first:
 *
 *   | 0 | class: 2 | 0 | rest: 8 each |
 *   | 1 | class: 2 | 0 | distance - 1: 8 | prefix: 8 | tail: 8 each |
 *
 * The length of the tail follows from that of the record.  A chain has at most
 * US_RECORD_HOPS references.
 */


#include "us_record.h"

#include <stdlib.h>


#define US_RECORD_HOPS    4
#define US_RECORD_BACK    4           /* records tried as a reference */


typedef struct {
    uint64_t          reference;
    unsigned          prefix;
    unsigned          klass;
    us_str_t          rest;
} us_slot_t;


struct us_codec_s {
    us_arena_t       *arena;
    us_slot_t         slots[US_STORE_GROUP];
    uint8_t           text[US_TEXT_BUFFER];
    uint8_t           bits[US_RECORD_BUFFER];
    uint8_t           buf[US_RECORD_BUFFER];
};


us_codec_t *
us_codec_create(us_arena_t *a)
{
    us_codec_t  *c;

    c = calloc(1, sizeof(us_codec_t));

    if (c) {
        c->arena = a;
    }

    return c;
}


void
us_codec_destroy(us_codec_t *c)
{
    free(c);
}


/* decodes; depth is the number of references followed, if not NULL */

static size_t
us_record_text(us_codec_t *c, uint64_t id, uint8_t *text, unsigned *depth)
{
    size_t     i, n, prefix, done, total;
    unsigned   hops;
    uint64_t   at;
    us_bits_t  b;

    /* from the outermost tail inwards, each fills what is before it */

    total = 0;
    done = SIZE_MAX;

    for (hops = 0; ; hops++) {
        us_log_get(c->arena, id, c->buf, &b);

        at = 4;
        prefix = 0;

        if (hops == 0) {
            text[0] = us_bits(&b, 1, 2);
        }

        if (us_bits(&b, 0, 1)) {
            id -= us_bits(&b, 4, 8) + 1;
            prefix = us_bits(&b, 12, 8);
            at = 20;
        }

        n = prefix + (b.units * 4 - at) / 8;

        if (hops == 0) {
            total = n;
        }

        for (i = prefix; i < n && i < done; i++) {
            text[1 + i] = us_bits(&b, at + (i - prefix) * 8, 8);
        }

        done = prefix < done ? prefix : done;

        if (prefix == 0) {
            break;
        }
    }

    if (depth) {
        *depth = hops;
    }

    return total + 1;
}


size_t
us_record_decode(us_codec_t *c, uint64_t id, uint8_t *text)
{
    return us_record_text(c, id, text, NULL);
}


int
us_record_equal(us_codec_t *c, uint64_t id, us_str_t rest)
{
    size_t  len;

    len = us_record_text(c, id, c->text, NULL) - 1;

    return len == rest.len && memcmp(c->text + 1, rest.data, len) == 0
           ? c->text[0] : -1;
}


void
us_record_prefetch(us_codec_t *c, uint64_t id)
{
    us_bits_t  b;

    us_log_get(c->arena, id, c->buf, &b);
    __builtin_prefetch(b.data);
}


void
us_record_begin(us_codec_t *c)
{
}


void
us_record_encode(us_codec_t *c, unsigned slot, unsigned klass, us_str_t rest)
{
    size_t      len, i;
    unsigned    depth;
    uint64_t    id, next;
    us_slot_t  *s;

    us_record_encode_plain(c, slot, klass, rest);

    s = &c->slots[slot];
    next = us_acquire(&c->arena->head->next_id);

    for (id = next; id > 0 && id > next - US_RECORD_BACK; id--) {
        len = us_record_text(c, id - 1, c->text, &depth) - 1;
        len = len < 255 ? len : 255;
        len = len < rest.len ? len : rest.len;

        for (i = 0; i < len && c->text[1 + i] == rest.data[i]; i++) {
            /* void */
        }

        if (depth < US_RECORD_HOPS && i > s->prefix && i > 2) {
            s->reference = id - 1;
            s->prefix = i;
        }
    }
}


void
us_record_encode_plain(us_codec_t *c, unsigned slot, unsigned klass,
    us_str_t rest)
{
    us_slot_t  *s;

    s = &c->slots[slot];

    s->reference = US_STORE_NO_ID;
    s->prefix = 0;
    s->klass = klass;
    s->rest = rest;
}


uint32_t
us_record_emit(us_codec_t *c, unsigned slot, uint64_t id,
    const uint8_t **bits)
{
    size_t      i, at;
    uint64_t    header;
    us_slot_t  *s;

    s = &c->slots[slot];

    if (s->reference == US_STORE_NO_ID || id - s->reference > 256) {
        s->prefix = 0;
        header = s->klass << 1;
        at = 4;

    } else {
        header = 1 | s->klass << 1 | (id - s->reference - 1) << 4
                 | (uint64_t) s->prefix << 12;
        at = 20;
    }

    us_store64(c->bits, header);

    for (i = s->prefix; i < s->rest.len; i++) {
        us_store64(c->bits + at / 8, (us_load64(c->bits + at / 8) & 0x0f)
                                     | (uint64_t) s->rest.data[i] << 4);
        at += 8;
    }

    *bits = c->bits;

    return at / 4;
}


void
us_record_added(us_codec_t *c, unsigned slot, uint64_t id)
{
}


void
us_record_replayed(us_codec_t *c, uint64_t id, const uint8_t *text, size_t len)
{
}


int
us_record_train_due(us_codec_t *c)
{
    return 0;
}


int
us_record_train(us_codec_t *c, const volatile int *cancel, us_str_t *model)
{
    return 0;
}


int
us_record_install(us_codec_t *c, us_str_t model)
{
    return -1;
}


int
us_record_model(us_codec_t *c, unsigned n, uint64_t *first, us_str_t *model)
{
    return -1;
}
