
/*
 * Leaves of the index: their coding, and the memory that they take.
 *
 *     | header | fingerprints | low, split | low, split ... | high |
 *       8 bytes  1 byte each    packed bits                   bits
 *
 * A leaf's entries are in ascending order of id, because ids are given in
 * order.  So the ids are a sorted list, and are kept as one (Elias, Fano:
 * 1974): the lowest `low` bits of each packed, and the rest as a bit vector
 * with a one for each entry i at position (id_i >> low) + i.  This takes
 * about log2(ids / entries) + 2 bits for an id instead of log2(ids).  A new
 * entry has the highest id, so it is appended in place if there is room.
 *
 * FORMAT of a header: bits 0-7 entries, 8-15 slots, 16-21 low, 22-24 split,
 * 25-31 size in units of 1 << leaf_shift bytes, 32-63 serial number.  Then
 * (slots + 7) / 8 words of fingerprints, (slots * (low + split) + 63) / 64
 * words packed, the rest high bits.  A free leaf has no entries; its second
 * word is the address of the next free leaf of the same size.
 *
 * A new leaf is staged: head->staged has its address, and no reader finds it.
 * us_index.c puts it into the directory.  If its writer is killed before that,
 * the next writer frees the leaf that head->staged names.
 */


#include "us_leaf.h"


/* units by which a leaf may be larger than needed rather than new memory */
#define US_LEAF_SLACK   3


unsigned
us_leaf_entries(const uint64_t *w, unsigned n, const us_leaf_t *leaf,
    us_entry_t *e)
{
    unsigned  i, at, width;
    uint64_t  v, high;

    width = leaf->low + leaf->split;
    at = leaf->high;
    high = us_relaxed(&w[at]);

    for (i = 0; i < leaf->count; i++) {

        while (high == 0) {
            if (++at == n) {
                return 0;
            }

            high = us_relaxed(&w[at]);
        }

        v = us_packed_get(w + leaf->packed, i * width, width);

        e[i].fingerprint = us_relaxed(&w[1 + i / 8]) >> (i % 8 * 8);
        e[i].split = v >> leaf->low;
        e[i].id = (uint64_t) ((at - leaf->high) * 64 + __builtin_ctzll(high)
                              - i) << leaf->low
                  | (v & (((uint64_t) 1 << leaf->low) - 1));

        high &= high - 1;
    }

    return leaf->count;
}


unsigned
us_leaf_read(const us_arena_t *a, uint32_t address, us_entry_t *e,
    us_leaf_t *leaf)
{
    uint64_t  *w;

    if (address == 0) {
        *leaf = (us_leaf_t) { .split = US_SPLIT_FIRST };
        return 0;
    }

    w = us_leaf_at(a, address);
    *leaf = us_leaf(us_relaxed(w));

    return us_leaf_entries(w, us_leaf_words(a, leaf), leaf, e);
}


int
us_leaf_measure(const us_arena_t *a, us_leaf_t *l, unsigned n, uint64_t id)
{
    unsigned  words, unit;

    if (n > US_LEAF_MAX) {
        return -1;
    }

    l->low = us_leaf_low(n, id);
    l->slots = n;
    words = us_leaf(us_leaf_header(l)).high + ((id >> l->low) + n + 63) / 64;
    words = words < US_LEAF_WORDS ? US_LEAF_WORDS : words;

    unit = ((unsigned) 1 << a->head->leaf_shift) / 8;
    l->size = (words + unit - 1) / unit;

    return l->size < US_LEAF_SIZES && words <= US_LEAF_WORDS_MAX ? 0 : -1;
}


/*
 * Sets the slots of a leaf that was measured for n entries up to id, and may
 * have become larger: all three parts get their share of what is to spare.
 */

static void
us_leaf_share(const us_arena_t *a, us_leaf_t *l, unsigned n, uint64_t id)
{
    unsigned   high, words;
    us_leaf_t  more;

    high = (id >> l->low) + n;
    words = us_leaf_words(a, l);

    more = *l;

    for (more.slots = n; more.slots <= US_LEAF_MAX; more.slots++) {
        us_leaf_lay(&more);

        if (more.high + (high * more.slots / n + 63) / 64 > words) {
            break;
        }

        *l = more;
    }
}


/*
 * A new serial number: the leaf differs by it from all that its memory was
 * before.  A killed writer may have used some up.
 */

static inline uint32_t
us_leaf_serial_locked(us_arena_t *a)
{
    /* release: no two headers may have the same number */

    us_release(&a->head->leaf_serial, a->head->leaf_serial + 1);

    return a->head->leaf_serial;
}


void
us_leaf_free_locked(us_arena_t *a, uint32_t address)
{
    uint64_t   *w, *list;
    us_leaf_t   l;

    if (address == 0) {
        return;
    }

    w = us_leaf_at(a, address);
    l = us_leaf(us_relaxed(w));
    list = &a->head->free[l.size];

    l.serial = us_leaf_serial_locked(a);
    l.count = 0;

    us_intend_locked(a, w, us_leaf_header(&l));
    us_intend_locked(a, w + 1, us_intended(a, list));
    us_intend_locked(a, list, address);
}


void
us_leaf_carve_locked(us_arena_t *a, uint64_t offset, uint64_t n)
{
    uint64_t   *w;
    us_leaf_t   l;

    if (n < US_LEAF_WORDS * 8) {
        return;
    }

    memset(&l, 0, sizeof(us_leaf_t));
    l.size = n >> a->head->leaf_shift;
    l.serial = us_leaf_serial_locked(a);

    w = (uint64_t *) (a->base + offset);

    us_release(w, us_leaf_header(&l));
    us_release(w + 1, a->head->free[l.size]);
    us_intend_locked(a, &a->head->free[l.size], offset >> a->head->leaf_shift);
}


/*
 * Intends to take the first leaf of a list; what it has more than n bytes is
 * made a leaf of its own.  Returns the offset.
 */

static uint64_t
us_leaf_pop_locked(us_arena_t *a, unsigned size, uint64_t n)
{
    uint64_t  address, offset;

    address = a->head->free[size];
    offset = address << a->head->leaf_shift;

    us_intend_locked(a, &a->head->free[size],
                     us_relaxed(us_leaf_at(a, address) + 1));
    us_leaf_carve_locked(a, offset + n,
                         ((uint64_t) size << a->head->leaf_shift) - n);

    return offset;
}


/* the first size in [size, end) of which there is a free leaf, or `end` */

static unsigned
us_leaf_larger(const us_arena_t *a, unsigned size, unsigned end)
{
    while (size < end && a->head->free[size] == 0) {
        size++;
    }

    return size;
}


/*
 * Stages a leaf of l->size, or a little larger, by a commit of its own.  It can
 * then be filled without regard to a kill.  0: no room.
 *
 * Its memory is, in this order: a free leaf that is at most a little larger (it
 * will be grown into, and l->size is what it has); a part of one of which the
 * rest is a useful leaf; new memory; the zone being full, any.
 */

static uint32_t
us_leaf_take_locked(us_arena_t *a, us_leaf_t *l, unsigned number)
{
    unsigned    larger, end;
    uint64_t    n, offset;
    us_head_t  *h;
    us_leaf_t   empty;

    h = a->head;
    n = (uint64_t) l->size << h->leaf_shift;
    end = l->size + US_LEAF_SLACK + 1;
    end = end < US_LEAF_SIZES ? end : US_LEAF_SIZES;

    larger = us_leaf_larger(a, l->size, end);

    if (larger < end) {
        l->size = larger;
        offset = us_leaf_pop_locked(a, larger,
                                    (uint64_t) larger << h->leaf_shift);
        goto found;
    }

    larger = us_leaf_larger(a, l->size * 15 / 8, US_LEAF_SIZES);

    if (larger < US_LEAF_SIZES) {
        offset = us_leaf_pop_locked(a, larger, n);
        goto found;
    }

    if (h->leaf_end - h->leaf_next >= n) {
        offset = h->leaf_next;
        us_intend_locked(a, &h->leaf_next, offset + n);
        goto found;
    }

    offset = us_arena_take_locked(a, US_AREA_LEAVES, 1);

    if (offset) {
        us_leaf_carve_locked(a, h->leaf_next, h->leaf_end - h->leaf_next);
        us_intend_locked(a, &h->leaf_end,
                         offset + ((uint64_t) 1 << a->chunk_shift));
        us_intend_locked(a, &h->leaf_next, offset + n);
        goto found;
    }

    larger = us_leaf_larger(a, l->size, US_LEAF_SIZES);

    if (larger == US_LEAF_SIZES) {
        return 0;
    }

    offset = us_leaf_pop_locked(a, larger, n);

found:

    /* a killed writer's successor reads the size here, to free the leaf */

    memset(&empty, 0, sizeof(us_leaf_t));
    empty.size = l->size;
    empty.serial = us_leaf_serial_locked(a);

    us_intend_locked(a, (uint64_t *) (a->base + offset),
                     us_leaf_header(&empty));
    us_intend_locked(a, &h->staged[number], offset >> h->leaf_shift);
    us_commit_locked(a);

    return offset >> h->leaf_shift;
}


void
us_leaf_write_locked(us_arena_t *a, uint32_t address, us_leaf_t *l,
    const us_entry_t *e, unsigned n, unsigned slots, uint64_t id)
{
    unsigned   i, at, width;
    uint64_t  *w, v, out[US_LEAF_WORDS_MAX];

    l->count = n;
    l->serial = us_leaf_serial_locked(a);
    us_leaf_share(a, l, slots, id);

    width = l->low + l->split;
    memset(out, 0, us_leaf_words(a, l) * 8);

    for (i = 0; i < n; i++) {
        out[1 + i / 8] |= (uint64_t) e[i].fingerprint << i % 8 * 8;

        v = (uint64_t) e[i].split << l->low
            | (e[i].id & (((uint64_t) 1 << l->low) - 1));
        at = l->packed * 64 + i * width;

        out[at / 64] |= v << at % 64;
        out[at / 64 + 1] |= v >> 1 >> (63 - at % 64);

        at = l->high * 64 + (e[i].id >> l->low) + i;
        out[at / 64] |= (uint64_t) 1 << at % 64;
    }

    /*
     * Release, each of them: a reader that has come here by an old address
     * and sees one of the new words must find the serial number changed.  The
     * header last: a reader that takes it for the leaf's must find the leaf
     * that it describes.
     */

    w = us_leaf_at(a, address);

    for (i = 1; i < us_leaf_words(a, l); i++) {
        us_release(&w[i], out[i]);
    }

    us_release(w, us_leaf_header(l));
}


/* writes the first n of some words, and zeros up to the size of their part */

static uint64_t *
us_leaf_copy_words(uint64_t *to, unsigned size, const uint64_t *from,
    unsigned n)
{
    unsigned  i;

    n = n < size ? n : size;

    /* release: see us_leaf_write_locked() */

    for (i = 0; i < size; i++) {
        us_release(&to[i], i < n ? us_relaxed(&from[i]) : 0);
    }

    return to + size;
}


uint32_t
us_leaf_make_locked(us_arena_t *a, const us_entry_t *e, unsigned n,
    unsigned split, unsigned number, int *failed)
{
    uint32_t   address;
    us_leaf_t  l;

    if (n == 0) {
        return 0;
    }

    l = (us_leaf_t) { .split = split };

    if (us_leaf_measure(a, &l, n, e[n - 1].id) != 0) {
        *failed = 1;
        return 0;
    }

    address = us_leaf_take_locked(a, &l, number);

    if (address == 0) {
        *failed = 1;
        return 0;
    }

    us_leaf_write_locked(a, address, &l, e, n, n, e[n - 1].id);

    return address;
}


uint32_t
us_leaf_grow_locked(us_arena_t *a, uint32_t address, unsigned more,
    uint64_t id)
{
    unsigned         n;
    uint32_t         larger;
    uint64_t        *w, *to;
    us_leaf_t        l, old;
    us_entry_t       e[US_LEAF_MAX];
    const uint64_t  *from;

    old = (us_leaf_t) { .split = US_SPLIT_FIRST };

    if (address) {
        old = us_leaf(us_relaxed(us_leaf_at(a, address)));
    }

    n = old.count + more;
    l = old;

    if (us_leaf_measure(a, &l, n, id) != 0) {
        return 0;
    }

    larger = us_leaf_take_locked(a, &l, 0);

    if (larger == 0) {
        return 0;
    }

    if (address == 0 || l.low != old.low) {
        us_leaf_read(a, address, e, &old);
        us_leaf_write_locked(a, larger, &l, e, old.count, n, id);
        return larger;
    }

    /* the width is the same: each part begins with the same words */

    from = us_leaf_at(a, address);
    l.count = old.count;
    l.serial = us_leaf_serial_locked(a);
    us_leaf_share(a, &l, n, id);

    w = us_leaf_at(a, larger);

    to = us_leaf_copy_words(w + 1, l.packed - 1, from + 1, old.packed - 1);
    to = us_leaf_copy_words(to, l.high - l.packed, from + old.packed,
                            old.high - old.packed);
    us_leaf_copy_words(to, us_leaf_words(a, &l) - l.high, from + old.high,
                       us_leaf_words(a, &old) - old.high);

    us_release(w, us_leaf_header(&l));

    return larger;
}
