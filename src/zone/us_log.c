
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
 * A record is immutable from its publication (next_id) on, until it is erased.
 * Two places are written again when later records come: the byte that a record
 * shares with the next one, and the line.  A reader uses only the bits of its
 * own record there, which do not change.
 *
 *
 * Erasing.  The URL of a deleted id must be gone, but other records may refer
 * to its record for the first bytes of their texts.
 *
 *   log       |rec 0|111111111|rec 2|rec 3     |...    as many units as before
 *
 *   US_AREA_STUBS  | ... | word of 64 ids | ...       for ids 64 n .. 64 n + 63
 *                           |
 *   long area          ...| stub of id 64 n + 1 |--> another one of the 64
 *                         | "example.com/a/" |
 *
 * The record becomes ones, its part in the long area too; only the link to that
 * part stays.  Ones are no record (us_model.c), so a reader that finds them
 * looks for a stub, which has the bytes as they are.  Others pay nothing.
 *
 * FORMAT of a stub, in one chunk: 64 bits, then the bytes.
 *
 *   bits    0-5   id % 64
 *           7     1: the first byte is none that a URL has, so a text that is
 *                 before it ends there
 *           8-47  position of the next one and 1, or 0
 *          48-63  bytes
 *
 * Of several stubs of an id the first one counts; the others were longer, and
 * are ones now.
 *
 * A kill.  One commit publishes the new stub and makes `erasing` odd for
 * `erasing_id`.  Then the bits are set to ones, then `erasing` is made even.
 * Setting bits twice does no harm: the next process that takes the lock and
 * finds an odd number sets them all once more (us_log_enter_locked()).
 *
 * A reader without the lock may read bits while they change.  What it makes of
 * them is bounded, as of any bits, but it may be wrong about a record that
 * refers to the erased one: a false miss, another text, even a false hit, if
 * the URL that was asked for is what the nonsense says.  So a reader notes
 * `erasing` before it reads records, and compares it afterwards, before it uses
 * anything: if it has changed, or was odd, the reader reads again; after some
 * attempts under the lock.  Bits change while the word is odd, and never else.
 */


#include "us_log.h"
#include "../us_vector.h"


#define US_LONG_LINK     16           /* units */
#define US_LONG_POS      (((uint64_t) 1 << 40) - 1)

#define US_STUB_HEAD     8            /* bytes */


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


/* in units from the start of the zone */

static inline uint64_t
us_log_position(const us_arena_t *a, const us_bits_t *record)
{
    return (uint64_t) (record->data - a->base) * 2 + record->bit / 4;
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


/* copies n bytes from position pos of the long area */

static void
us_long_read(const us_arena_t *a, uint64_t pos, uint8_t *p, size_t n)
{
    size_t          i, piece;
    const uint8_t  *from;

    for ( /* void */ ; n; n -= piece, pos += piece, p += piece) {
        from = us_area_piece(a, US_AREA_LONG, pos, n, &piece);

        /* in words, as all bits that may be erased meanwhile; p has slack */

        for (i = 0; i < piece; i += 8) {
            us_store64(p + i, us_load64(from + i));
        }
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
        us_area_write(a, US_AREA_LONG, end, bits + US_LONG_HEAD / 2,
                      us_unit_bytes(rest));

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


/* sets so many units, from a position in units from the zone's start on */

static void
us_units_erase(us_arena_t *a, uint64_t pos, uint64_t units)
{
    uint64_t  n, ones, *word;

    for ( /* void */ ; units; units -= n, pos += n) {
        n = 16 - pos % 16;
        n = n < units ? n : units;
        ones = UINT64_MAX >> (64 - 4 * n) << pos % 16 * 4;
        word = (uint64_t *) (a->base + pos / 16 * 8);

        /*
         * Release: `erasing` was made odd before; a reader that sees a one
         * here sees that, too.  Bits of other records stay as they are.
         */

        us_release(word, us_relaxed(word) | ones);
    }
}


static inline uint64_t *
us_stub_word(const us_arena_t *a, uint64_t id)
{
    return (uint64_t *) us_sparse_at(a, US_AREA_STUBS,
                                     id / 64 * sizeof(uint64_t));
}


/* where a stub of so many bytes would be: not across chunks */

static uint64_t
us_stub_place(const us_arena_t *a, size_t len)
{
    uint64_t  at, left;

    at = a->head->long_end;
    left = ((uint64_t) 1 << a->chunk_shift)
           - (at & (((uint64_t) 1 << a->chunk_shift) - 1));

    return left < US_STUB_HEAD + len ? at + left : at;
}


/*
 * The stub of id at *at, or the next one that it has in the list; *at is the
 * one after it then.  0: there is none.
 */

static uint8_t *
us_stub_next(const us_arena_t *a, uint64_t id, uint64_t *at, size_t *len)
{
    uint8_t   *p;
    uint64_t   head;

    while (*at) {
        p = us_area_at(a, US_AREA_LONG, *at - 1);
        head = us_load64(p);
        *at = head >> 8 & US_LONG_POS;

        if ((head & 63) == id % 64) {
            *len = head >> 48;
            return p + US_STUB_HEAD;
        }
    }

    return NULL;
}


int
us_log_stub(const us_arena_t *a, uint64_t id, us_str_t *text)
{
    uint64_t  at, *word;

    word = us_stub_word(a, id);

    /* acquire: the stubs of the list were written before */

    at = word ? us_acquire(word) : 0;
    text->len = 0;
    text->data = us_stub_next(a, id, &at, &text->len);

    return text->len != 0;
}


int
us_log_erase_reserve_locked(us_arena_t *a, uint64_t id, size_t len)
{
    uint64_t  end;
    us_str_t  was;

    /* an empty one is written in place of another only */

    if (len == 0 && !us_log_stub(a, id, &was)) {
        return 0;
    }

    end = us_stub_place(a, len) + US_STUB_HEAD + len;

    if (len > US_STUB_MAX || end > US_LONG_POS) {
        return -1;
    }

    while (us_area_bytes(a, US_AREA_LONG) < end) {
        if (us_arena_grow_locked(a, US_AREA_LONG, 1) != 0) {
            return -1;
        }
    }

    return us_arena_allot_locked(a, US_AREA_STUBS,
                                 id / 64 * sizeof(uint64_t));
}


void
us_log_erase_locked(us_arena_t *a, uint64_t id, us_str_t text)
{
    uint8_t    *p;
    uint64_t    at, *word;
    us_str_t    was;
    us_head_t  *h;

    h = a->head;

    if (text.len || us_log_stub(a, id, &was)) {
        at = us_stub_place(a, text.len);
        word = us_stub_word(a, id);
        p = us_area_at(a, US_AREA_LONG, at);

        if (at != h->long_end) {
            memset(us_area_at(a, US_AREA_LONG, h->long_end), 0,
                   at - h->long_end);
        }

        us_store64(p, id % 64 | 0x80 | us_relaxed(word) << 8
                      | (uint64_t) text.len << 48);
        memcpy(p + US_STUB_HEAD, text.data, text.len);

        us_intend_locked(a, word, at + 1);
        us_intend_locked(a, &h->long_end, at + US_STUB_HEAD + text.len);
    }

    us_intend_locked(a, &h->erasing_id, id);
    us_intend_locked(a, &h->erasing, h->erasing + 1);
}


void
us_log_erase_bits_locked(us_arena_t *a)
{
    size_t      len, piece;
    uint8_t    *p;
    uint64_t    id, at, link, pos, n, *word;
    us_bits_t   record;

    id = a->head->erasing_id;

    if (us_log_find(a, id, &record)) {
        us_units_erase(a, us_log_position(a, &record), record.units);

    } else {
        link = us_bits(&record, 0, 32) | us_bits(&record, 32, 32) << 32;
        pos = link & US_LONG_POS;

        for (n = us_unit_bytes(link >> 40); n; n -= piece, pos += piece) {
            p = us_area_piece(a, US_AREA_LONG, pos, n, &piece);
            us_units_erase(a, (uint64_t) (p - a->base) * 2, piece * 2);
        }

        us_units_erase(a, us_log_position(a, &record) + US_LONG_LINK,
                       US_LONG_HEAD);
    }

    word = us_stub_word(a, id);
    at = word ? us_relaxed(word) : 0;

    /* the first one counts */

    (void) us_stub_next(a, id, &at, &len);

    while ((p = us_stub_next(a, id, &at, &len)) != NULL) {
        us_units_erase(a, (uint64_t) (p - a->base) * 2, len * 2);
    }

    /* release: all bits are ones */

    us_release(&a->head->erasing, a->head->erasing + 1);
}


int
us_bits_erased(const us_bits_t *record)
{
    unsigned  n;
    uint64_t  at, left;

    left = (uint64_t) record->units * 4;

    for (at = 0; left; left -= n, at += n) {
        n = left < 56 ? (unsigned) left : 56;

        if (us_bits(record, at, n) != UINT64_MAX >> (64 - n)) {
            return 0;
        }
    }

    return 1;
}


void
us_log_clear_locked(us_arena_t *a)
{
    size_t      n, piece;
    uint8_t    *p;
    uint64_t    end;
    us_head_t  *h;

    h = a->head;
    end = h->log_end;

    if (end & 1) {
        a->base[end / 2] &= 0x0f;
    }

    memset(a->base + (end + 1) / 2, 0, US_LOG_GUARD);

    end = h->long_end;
    n = us_area_bytes(a, US_AREA_LONG) - end;
    n = n < US_RECORD_BUFFER ? n : US_RECORD_BUFFER;

    for ( /* void */ ; n; n -= piece, end += piece) {
        p = us_area_piece(a, US_AREA_LONG, end, n, &piece);
        memset(p, 0, piece);
    }
}
