
/*
 * The record log: records of any length, one after the other, found by their
 * number.
 *
 *   log       |rec 0|rec 1  |rec 2|rec 3     |...       unit: 4 bits
 *              ^     <- 7 -> <- 5 ->
 *              |
 *   line      | base (8 bytes) | 5 | 7 | 5 | 9 |...| 56 length bytes |
 *
 * A line of 64 bytes, aligned, locates 56 records: 1.14 bytes for each.
 * Record i of a line begins at base + the sum of the i lengths before it,
 * which a few SAD instructions add up; so a record costs one memory access
 * for its line and one for itself.
 *
 * FORMAT of a line: base, a position in units from the start of the zone;
 * then a byte for each record:
 *
 *   1 .. 254   units in the log
 *   255        a very long record: 255 units in the log, which are
 *                64 bits   bits 0-39 position in the long area, bytes;
 *                          bits 40-63 units there
 *                238 units the record's first bits, 1 unit unused
 *              and the rest of the record in the long area
 *
 * A record is immutable from its publication (next_id) on.  Two places are
 * written again when later records come: the byte that a record shares with the
 * next one, and the line.  A reader uses only the bits of its own record there,
 * which do not change.
 */


#include "us_log.h"
#include "../us_vector.h"


#define US_LONG_LINK     16           /* units */
#define US_LONG_POS      (((uint64_t) 1 << 40) - 1)


/*
 * The sum of the first n length bytes of a line.  The others, which may be
 * written meanwhile, are masked out.
 */

/* from byte 56 - n on: ones for the base and n lengths, then zeros */

static const uint8_t  us_log_mask[64 + US_LOG_GROUP] = {
    [0 ... 63] = 0xff
};


static inline uint64_t
us_log_sum(const uint64_t *line, unsigned n)
{
    unsigned         i;
    us_bytes_t       v[4];
    const uint8_t   *mask;

    mask = us_log_mask + US_LOG_GROUP - n;

#pragma GCC unroll 4
    for (i = 0; i < 4; i++) {
        v[i] = us_load_bytes(line + 2 * i) & us_load_bytes(mask + 16 * i);
    }

    /* without the base */

    v[0] = (us_bytes_t) ((us_longs_t) v[0] & (us_longs_t) { 0, UINT64_MAX });

    return us_sum64(v[0], v[1], v[2], v[3]);
}


static inline uint8_t *
us_log_byte(uint64_t *line, uint64_t id)
{
    return (uint8_t *) (line + 1) + id % US_LOG_GROUP;
}


/* units of a very long record that lie in the long area */

static inline uint64_t
us_long_rest(uint32_t units)
{
    return units - US_LONG_HEAD;
}


/* copies n bytes from position pos of the long area, or to it */

static void
us_long_read(const us_arena_t *a, uint64_t pos, uint8_t *p, size_t n)
{
    size_t          piece;
    const uint8_t  *from;

    for ( /* void */ ; n; n -= piece, pos += piece, p += piece) {
        from = us_area_piece(a, US_AREA_LONG, pos, n, &piece);
        memcpy(p, from, piece);
    }
}


static void
us_long_write(us_arena_t *a, uint64_t pos, const uint8_t *p, size_t n)
{
    size_t    piece;
    uint8_t  *to;

    for ( /* void */ ; n; n -= piece, pos += piece, p += piece) {
        to = us_area_piece(a, US_AREA_LONG, pos, n, &piece);
        memcpy(to, p, piece);
    }
}


/* the number of bytes that hold so many units */

static inline size_t
us_unit_bytes(uint32_t units)
{
    return (units + 1) / 2;
}


int
us_log_find(const us_arena_t *a, uint64_t id, us_bits_t *record)
{
    uint64_t  pos, *line;

    line = us_log_line(a, id);
    pos = us_relaxed(line) + us_log_sum(line, id % US_LOG_GROUP);

    record->data = a->base + pos / 2;
    record->bit = (pos & 1) * 4;
    record->units = __atomic_load_n(us_log_byte(line, id), __ATOMIC_RELAXED);

    return record->units != US_LONG;
}


void
us_log_get(const us_arena_t *a, uint64_t id, uint8_t *buf, us_bits_t *record)
{
    size_t     head;
    uint64_t   link;
    us_bits_t  part;

    if (us_log_find(a, id, record)) {
        return;
    }

    link = us_bits(record, 0, 32) | us_bits(record, 32, 32) << 32;

    part = *record;
    part.data += US_LONG_LINK / 2;
    part.units = US_LONG_HEAD;

    head = us_bits_copy(&part, buf);

    record->data = buf;
    record->bit = 0;
    record->units = US_LONG_HEAD + (link >> 40);

    us_long_read(a, link & US_LONG_POS, buf + head,
                 us_unit_bytes(link >> 40));
}


size_t
us_bits_copy(const us_bits_t *record, uint8_t *buf)
{
    size_t    i, n;
    uint64_t  v;

    n = us_unit_bytes(record->units);

    for (i = 0; i + 7 <= n; i += 7) {
        v = us_load64(record->data + i) >> record->bit;
        memcpy(buf + i, &v, 8);
    }

    if (i < n) {
        v = us_load64(record->data + i) >> record->bit;
        memcpy(buf + i, &v, n - i);
    }

    if (record->units & 1) {
        buf[n - 1] &= 0x0f;
    }

    return n;
}


int
us_log_reserve_locked(us_arena_t *a, uint64_t id, uint32_t units)
{
    size_t  chunks, bytes;

    chunks = (id / US_LOG_GROUP * 64) >> a->chunk_shift;

    if (chunks >= a->head->area[US_AREA_OFFSETS].n
        && us_arena_grow_locked(a, US_AREA_OFFSETS, 1) != 0)
    {
        return -1;
    }

    if (units >= US_LONG) {
        bytes = a->head->long_end + us_unit_bytes(us_long_rest(units));

        if (bytes > US_LONG_POS) {
            return -1;
        }

        while (us_area_bytes(a, US_AREA_LONG) < bytes) {
            if (us_arena_grow_locked(a, US_AREA_LONG, 1) != 0) {
                return -1;
            }
        }

        units = US_LONG;
    }

    return us_arena_fits(a, 0, us_unit_bytes(units)) ? 0 : -1;
}


/* writes units at position pos; what follows them is overwritten with zero */

static void
us_units_write(us_arena_t *a, uint64_t pos, const uint8_t *bits, uint32_t units)
{
    size_t    n;
    uint8_t  *p;
    uint64_t  v, carry;

    p = a->base + pos / 2;

    if ((pos & 1) == 0) {
        memcpy(p, bits, us_unit_bytes(units));
        return;
    }

    /* the low half of the first byte belongs to the record before */

    carry = us_load64(p) & 0x0f;

    for (n = us_unit_bytes(units + 1); n > 7; n -= 7) {
        v = us_load64(bits);
        us_store64(p, v << 4 | carry);
        carry = v >> 52 & 0x0f;
        bits += 7;
        p += 7;
    }

    us_store64(p, (us_load64(bits) & (((uint64_t) 1 << (n * 8 - 4)) - 1)) << 4
                  | carry);
}


void
us_log_write_locked(us_arena_t *a, uint64_t id, const uint8_t *bits,
    uint32_t units)
{
    uint8_t   link[16];
    uint64_t  pos, end, rest, *line;

    line = us_log_line(a, id);
    pos = a->head->log_end;
    end = a->head->long_end;

    if (id % US_LOG_GROUP == 0) {
        __atomic_store_n(line, pos, __ATOMIC_RELAXED);
    }

    if (units >= US_LONG) {
        rest = us_long_rest(units);

        us_store64(link, end | rest << 40);

        us_units_write(a, pos, link, US_LONG_LINK);
        us_units_write(a, pos + US_LONG_LINK, bits, US_LONG_HEAD);
        us_long_write(a, end, bits + US_LONG_HEAD / 2, us_unit_bytes(rest));

        units = US_LONG;

    } else {
        us_units_write(a, pos, bits, units);
    }

    /*
     * Relaxed: a reader uses this byte only for an id below next_id, or as
     * part of a sum that ends before it.
     */

    __atomic_store_n(us_log_byte(line, id), (uint8_t) units,
                     __ATOMIC_RELAXED);
}


void
us_log_append_locked(us_arena_t *a, uint32_t units)
{
    us_head_t  *h;

    h = a->head;

    if (units >= US_LONG) {
        us_intend_locked(a, &h->long_end,
                         h->long_end + us_unit_bytes(us_long_rest(units)));
        units = US_LONG;
    }

    us_intend_locked(a, &h->log_end, h->log_end + units);
}
