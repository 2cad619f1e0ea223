
/*
 * The index: a growing array of small leaves of variable size.
 *
 *   hash --> path --> leaf number --> directory --> leaf
 *                                     (32 bits)
 *
 *   leaf:  | header | fingerprints | low, extra | low, extra ... | high |
 *            8 bytes  1 byte each    packed bits                   bits
 *
 * Memory follows content: a leaf has the size that its entries need, rounded
 * up to 16 bytes; it is replaced by a larger copy when it is full.
 *
 *
 * Which leaf.  Leaves are numbered like the nodes of a binary heap: the root
 * is 1, the children of n are 2n and 2n+1.  When the index has n leaves, they
 * are n .. 2n-1.  Growth splits the first one:
 *
 *       n=4        [4] 5  6  7                     the first bits of the path
 *       n=5            [5] 6  7  8  9              are the way from the root:
 *       n=6                [6] 7  8  9 10 11       0 left, 1 right
 *
 * so one number, head->leaves, tells every reader which leaf has its key, and
 * publishes a split: this is linear hashing (Litwin, 1980).  There, all leaves
 * of a round fill at the same pace, and the memory that large leaves free at
 * the end of a round has no user.  Hence, as in spiral storage (Martin, 1979),
 * paths are not uniform: the path is (2x + x^2) / 3 of the hash x, whose
 * density falls from 1.5 to .75, and the leaf that is next to be split has
 * always twice the load of those just made.  Leaves of every size between are
 * always about, and a freed one is soon taken again.
 *
 *
 * A leaf's entries are in ascending order of id, because ids are given in
 * order.  So the ids are a sorted list, and are kept as one (Elias, Fano:
 * 1974): the lowest `low` bits of each packed, and the rest as a bit vector
 * with a one for each entry i at position (id_i >> low) + i.  This takes
 * about log2(ids / entries) + 2 bits for an id instead of log2(ids).  A new
 * entry has the highest id: it is appended in place if there is room.
 *
 * `extra` are the next bits of the path below the leaf.  They tell entries
 * apart like more bits of fingerprint; and the first of them decides the side
 * on which an entry falls when its leaf is split.  Only when none is left
 * are the leaf's records decoded to hash them again.
 *
 * FORMAT of a header: bits 0-7 entries, 8-15 slots, 16-21 low, 22-24 extra,
 * 25-31 size in units of 1 << leaf_shift bytes, 32-63 times freed.  Then
 * (slots + 7) / 8 words of fingerprints, (slots * (low + extra) + 63) / 64
 * words packed, the rest high bits.  A leaf's size never changes: a freed one
 * has no entries, and the next free one of its size in its second word.
 *
 *
 * Invariants for readers, who take no lock:
 *
 *   - a leaf that the directory leads to is complete;
 *   - slots below the header's count do not change while the leaf is in use;
 *   - before a leaf is written again, the directory word or head->leaves that
 *     led to it has changed, and the header's last 32 bits have.
 *
 * So a reader that found nothing looks, in this order, at head->leaves, the
 * directory word and the header again: if all are as before, then the key was
 * in no leaf at the moment when the directory was read first.
 */


#include "us_index.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif


/*
 * Entries to a leaf, on average.  More: less memory, but more slots to scan,
 * and more of them with the right fingerprint by chance.
 */
#define US_LEAF_MEAN    45

#define US_LEAF_MAX     255
#define US_LEAF_WORDS   4             /* the smallest leaf */
#define US_EXTRA_BITS   3
#define US_FIRST_LEAF   2


typedef struct {
    uint64_t         id;
    uint8_t          print;
    uint8_t          extra;
} us_entry_t;


/* a header, taken apart */

typedef struct {
    unsigned         count;
    unsigned         slots;
    unsigned         low;
    unsigned         extra;
    unsigned         size;            /* units */
    uint32_t         freed;

    unsigned         packed;          /* index of the first such word */
    unsigned         high;
} us_leaf_t;


static inline uint64_t
us_path(uint64_t hash)
{
    uint64_t  square;

    square = (unsigned __int128) hash * hash >> 64;

    return hash - (hash - square) / 3;
}


static inline uint8_t
us_print(uint64_t hash)
{
    return hash;
}


/* the number of the leaf that has this path when there are n leaves */

static inline uint64_t
us_leaf_number(uint64_t n, uint64_t path)
{
    unsigned  depth;
    uint64_t  leaf;

    depth = 63 - __builtin_clzll(n);
    leaf = ((uint64_t) 1 << depth) | path >> (64 - depth);

    if (leaf < n) {
        leaf = ((uint64_t) 2 << depth) | path >> (63 - depth);
    }

    return leaf;
}


/* the bits of the path below a leaf */

static inline unsigned
us_extra(uint64_t leaf, uint64_t path, unsigned bits)
{
    unsigned  depth;

    depth = 63 - __builtin_clzll(leaf);

    return path << depth >> 1 >> (63 - bits);
}


static inline us_leaf_t
us_leaf(uint64_t header)
{
    us_leaf_t  l;

    l.count = header & 0xff;
    l.slots = header >> 8 & 0xff;
    l.low = header >> 16 & 0x3f;
    l.extra = header >> 22 & 7;
    l.size = header >> 25 & 0x7f;
    l.freed = header >> 32;

    l.packed = 1 + (l.slots + 7) / 8;
    l.high = l.packed + (l.slots * (l.low + l.extra) + 63) / 64;

    return l;
}


static inline uint64_t
us_leaf_header(const us_leaf_t *l)
{
    return l->count | l->slots << 8 | l->low << 16 | l->extra << 22
           | (uint64_t) l->size << 25 | (uint64_t) l->freed << 32;
}


static inline unsigned
us_leaf_words(const us_arena_t *a, const us_leaf_t *l)
{
    return (l->size << a->head->leaf_shift) / 8;
}


static inline uint64_t *
us_leaf_at(const us_arena_t *a, uint32_t address)
{
    return (uint64_t *) (a->base
                         + ((uint64_t) address << a->head->leaf_shift));
}


/*
 * The directory is a ring of chunks: those before head->leaves are taken out
 * and used again.  A word that a reader gets from a chunk that was just used
 * again leads to another leaf; us_index_stale() tells.
 */

static inline uint32_t *
us_directory_chunk(const us_arena_t *a, uint64_t number)
{
    us_area_t  *area;

    area = &a->head->area[US_AREA_DIRECTORY];

    return (uint32_t *) (a->base + area->directory)
           + (number & (area->max - 1));
}


static inline uint64_t
us_directory_chunk_number(const us_arena_t *a, uint64_t leaf)
{
    return leaf >> (a->chunk_shift - 2);
}


/* NULL: no leaf was ever made there */

static inline uint32_t *
us_directory_word(const us_arena_t *a, uint64_t leaf)
{
    uint32_t   chunk;

    chunk = __atomic_load_n(us_directory_chunk(a,
                                          us_directory_chunk_number(a, leaf)),
                            __ATOMIC_ACQUIRE);
    if (chunk == 0) {
        return NULL;
    }

    return (uint32_t *) (a->base + ((uint64_t) chunk << a->chunk_shift))
           + (leaf & (((uint64_t) 1 << (a->chunk_shift - 2)) - 1));
}


static inline uint32_t
us_directory_get(const us_arena_t *a, uint64_t leaf)
{
    uint32_t  *word;

    word = us_directory_word(a, leaf);

    /*
     * Acquire: the leaf was filled before its address was released; a reader
     * that follows the address must not see the leaf as it was before.
     */

    return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
}


static inline unsigned
us_popcount(uint64_t v)
{
    v = v - (v >> 1 & 0x5555555555555555);
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f;

    return v * 0x0101010101010101 >> 56;
}


/* the position of one number i of n words, or of their end */

static unsigned
us_select(const uint64_t *words, unsigned n, unsigned i)
{
    unsigned  w, ones;
    uint64_t  v;

    for (w = 0; w < n; w++) {
        v = us_acquire(&words[w]);
        ones = us_popcount(v);

        if (i < ones) {
            while (i--) {
                v &= v - 1;
            }

            return w * 64 + __builtin_ctzll(v);
        }

        i -= ones;
    }

    return n * 64;
}


/* n < 64 bits from bit `at` on; they may lie in two words */

static inline uint64_t
us_packed_get(const uint64_t *words, unsigned at, unsigned n)
{
    unsigned  shift;
    uint64_t  v;

    words += at / 64;
    shift = at % 64;
    v = us_acquire(words) >> shift;

    if (shift + n > 64) {
        v |= us_acquire(words + 1) << (64 - shift);
    }

    return v & (((uint64_t) 1 << n) - 1);
}


static inline void
us_packed_set(uint64_t *words, unsigned at, unsigned n, uint64_t v)
{
    unsigned  shift;
    uint64_t  mask;

    words += at / 64;
    shift = at % 64;
    mask = ((uint64_t) 1 << n) - 1;

    /*
     * Release, here and wherever a word of a leaf is written: if the leaf was
     * freed, a reader that sees the new word must find the header changed
     * when it looks again.  Bits of other slots in the word stay as they are.
     */

    us_release(words, (us_relaxed(words) & ~(mask << shift)) | v << shift);

    if (shift + n > 64) {
        words++;
        us_release(words, (us_relaxed(words) & ~(mask >> (64 - shift)))
                          | v >> (64 - shift));
    }
}


void
us_index_format(us_arena_t *a)
{
    a->head->leaves = US_FIRST_LEAF;
}


void
us_index_start(const us_arena_t *a, us_probe_t *p, uint64_t hash)
{
    uint64_t  n;

    p->path = us_path(hash);
    p->print = us_print(hash);
    p->slot = 0;
    p->matches = 0;
    p->header = 0;
    p->words = NULL;

    /*
     * Acquire: the number of leaves is released after the directory words of
     * the two newest; they must not be read before it.
     */

    n = us_acquire(&a->head->leaves);

    p->leaf = us_leaf_number(n, p->path);
    p->address = us_directory_get(a, p->leaf);

    if (p->address) {
        p->words = us_leaf_at(a, p->address);
        __builtin_prefetch(p->words);
        __builtin_prefetch(p->words + 8);
        __builtin_prefetch(p->words + 16);
    }
}


/* the slots, of 16 from `slot` on, that have the fingerprint */

static inline uint32_t
us_leaf_matches(const us_probe_t *p, unsigned count)
{
    uint32_t         mask;
    const uint64_t  *w;

    w = p->words + 1 + p->slot / 8;

#ifdef __SSE2__
    {
    __m128i  v;

    v = _mm_set_epi64x(us_acquire(w + 1), us_acquire(w));
    mask = _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(p->print)));
    }
#else
    {
    unsigned  i;

    mask = 0;

    for (i = 0; i < 16; i++) {
        mask |= (uint32_t) ((uint8_t) (us_acquire(w + i / 8) >> (i % 8 * 8))
                            == p->print) << i;
    }
    }
#endif

    if (count - p->slot < 16) {
        mask &= ((uint32_t) 1 << (count - p->slot)) - 1;
    }

    return mask;
}


int
us_index_next(const us_arena_t *a, us_probe_t *p, uint64_t *id)
{
    unsigned   i, at, width, words;
    uint64_t   v;
    us_leaf_t  l;

    if (p->words == NULL) {
        return 0;
    }

    if (p->header == 0) {

        /*
         * Acquire: a slot is filled before the count that includes it is
         * released.
         */

        p->header = us_acquire(p->words);
        l = us_leaf(p->header);

        if (l.count == 0) {
            return 0;
        }

        p->matches = us_leaf_matches(p, l.count);
    }

    l = us_leaf(p->header);

    for ( ;; ) {

        while (p->matches == 0) {
            p->slot += 16;

            if (p->slot >= l.count) {
                p->slot = l.count;
                return 0;
            }

            p->matches = us_leaf_matches(p, l.count);
        }

        i = p->slot + __builtin_ctz(p->matches);
        p->matches &= p->matches - 1;

        width = l.low + l.extra;
        v = us_packed_get(p->words + l.packed, i * width, width);

        if (v >> l.low != us_extra(p->leaf, p->path, l.extra)) {
            continue;
        }

        words = us_leaf_words(a, &l);

        at = us_select(p->words + l.high, words - l.high, i);

        *id = (uint64_t) (at - i) << l.low
              | (v & (((uint64_t) 1 << l.low) - 1));

        return 1;
    }
}


int
us_index_stale(const us_arena_t *a, const us_probe_t *p)
{
    /*
     * The order of the three loads, each of them an acquire, is that of the
     * proof at the top of this file.  Were the header looked at before the
     * directory, the leaf could be freed and given back to the same place of
     * the directory between the two, and nobody would notice.  The loads of
     * the leaf's words are acquires as well, so none of them moves below.
     */

    if (us_leaf_number(us_acquire(&a->head->leaves), p->path) != p->leaf) {
        return 1;
    }

    if (us_directory_get(a, p->leaf) != p->address) {
        return 1;
    }

    return p->words && (us_acquire(p->words) ^ p->header) >> 32 != 0;
}


/* the entries of a leaf; returns their number */

static unsigned
us_leaf_read(const us_arena_t *a, uint32_t address, us_entry_t *e,
    us_leaf_t *leaf)
{
    unsigned   i, at, width;
    uint64_t   v, high, *w;

    if (address == 0) {
        memset(leaf, 0, sizeof(us_leaf_t));
        leaf->extra = US_EXTRA_BITS;
        return 0;
    }

    w = us_leaf_at(a, address);
    *leaf = us_leaf(us_relaxed(w));
    width = leaf->low + leaf->extra;
    at = leaf->high;
    high = us_relaxed(&w[at]);

    for (i = 0; i < leaf->count; i++) {

        while (high == 0) {
            high = us_relaxed(&w[++at]);
        }

        v = us_packed_get(w + leaf->packed, i * width, width);

        e[i].print = us_relaxed(&w[1 + i / 8]) >> (i % 8 * 8);
        e[i].extra = v >> leaf->low;
        e[i].id = (uint64_t) ((at - leaf->high) * 64 + __builtin_ctzll(high)
                              - i) << leaf->low
                  | (v & (((uint64_t) 1 << leaf->low) - 1));

        high &= high - 1;
    }

    return leaf->count;
}


/*
 * Writes slot i, behind the leaf's count or in a leaf in hand; the slots before
 * it use so many high bits.  Returns how many it and they use.
 */

static unsigned
us_slot_write(uint64_t *w, const us_leaf_t *l, unsigned i,
    const us_entry_t *e, unsigned used)
{
    unsigned  at, word, width;
    uint64_t  low;

    us_packed_set(w + 1, i * 8, 8, e->print);

    width = l->low + l->extra;
    low = e->id & (((uint64_t) 1 << l->low) - 1);

    us_packed_set(w + l->packed, i * width, width,
                  (uint64_t) e->extra << l->low | low);

    /*
     * Ones behind those in use were left by a killed writer.  It wrote an id
     * not above this one into this slot, so its one is not behind this one.
     */

    at = (e->id >> l->low) + i;
    w += l->high;

    for (word = used / 64; word <= at / 64; word++) {
        low = 0;

        if (word == used / 64) {
            low = us_relaxed(&w[word]) & (((uint64_t) 1 << used % 64) - 1);
        }

        if (word == at / 64) {
            low |= (uint64_t) 1 << at % 64;
        }

        us_release(&w[word], low);
    }

    return at + 1;
}


/*
 * The smallest leaf for n entries, the highest of which is id: sets low,
 * slots and size.  -1: there is none.
 */

static int
us_leaf_measure(const us_arena_t *a, us_leaf_t *l, unsigned n, uint64_t id)
{
    unsigned  words, unit, high;

    if (n > US_LEAF_MAX) {
        return -1;
    }

    for (l->low = 0; (id + 1) >> (l->low + 1) >= n; l->low++) { /* void */ }

    high = (id >> l->low) + n;
    unit = ((unsigned) 1 << a->head->leaf_shift) / 8;

    l->slots = n;
    words = us_leaf(us_leaf_header(l)).high + (high + 63) / 64;
    words = words < US_LEAF_WORDS ? US_LEAF_WORDS : words;

    l->size = (words + unit - 1) / unit;

    if (l->size >= US_CLASSES) {
        return -1;
    }

    /* what rounding up gives is shared out among all three parts */

    words = l->size * unit;

    while (l->slots < US_LEAF_MAX) {
        l->slots++;

        if (us_leaf(us_leaf_header(l)).high
            + (high * l->slots / n + 63) / 64 > words)
        {
            l->slots--;
            break;
        }
    }

    return 0;
}


/* intends to free a leaf: its header first, see the invariants */

static void
us_leaf_free(us_arena_t *a, uint32_t address)
{
    uint64_t   *w, *list;
    us_leaf_t   l;

    if (address == 0) {
        return;
    }

    w = us_leaf_at(a, address);
    l = us_leaf(us_relaxed(w));
    list = &a->head->free[l.size];

    l.freed++;
    l.count = 0;

    us_intend(a, w, us_leaf_header(&l));
    us_intend(a, w + 1, us_intended(a, list));
    us_intend(a, list, address);
}


/* intends to put n bytes of new memory, if they can be a leaf, on a list */

static void
us_leaf_carve(us_arena_t *a, uint64_t offset, uint64_t n)
{
    uint64_t   *w;
    us_leaf_t   l;

    memset(&l, 0, sizeof(us_leaf_t));
    l.size = n >> a->head->leaf_shift;

    if (n < US_LEAF_WORDS * 8) {
        return;
    }

    w = (uint64_t *) (a->base + offset);

    us_release(w, us_leaf_header(&l));
    us_release(w + 1, a->head->free[l.size]);
    us_intend(a, &a->head->free[l.size], offset >> a->head->leaf_shift);
}


/*
 * Takes a leaf of so many units into a hand (a commit of its own), where it
 * can be filled without regard to a kill.  0: no room.
 */

static uint32_t
us_leaf_take(us_arena_t *a, unsigned size, unsigned hand)
{
    uint64_t    address, chunk, n, *w;
    us_head_t  *h;
    us_leaf_t   l;

    h = a->head;
    address = h->free[size];
    n = (uint64_t) size << h->leaf_shift;

    if (address == 0) {

        if (h->leaf_end - h->leaf_next >= n) {
            address = h->leaf_next;

        } else {
            chunk = us_arena_take(a, US_AREA_LEAVES, 1);

            if (chunk) {
                us_leaf_carve(a, h->leaf_next, h->leaf_end - h->leaf_next);
                us_intend(a, &h->leaf_end,
                          chunk + ((uint64_t) 1 << a->chunk_shift));
                address = chunk;
            }
        }

        if (address) {
            us_intend(a, &h->leaf_next, address + n);

            memset(&l, 0, sizeof(us_leaf_t));
            l.size = size;
            us_release((uint64_t *) (a->base + address), us_leaf_header(&l));

            us_intend(a, &h->hand[hand], address >> h->leaf_shift);
            us_commit(a);

            return address >> h->leaf_shift;
        }

        /* the zone is full: a larger one will do */

        while (address == 0) {
            if (++size == US_CLASSES) {
                return 0;
            }

            address = h->free[size];
        }
    }

    w = us_leaf_at(a, address);

    us_intend(a, &h->free[size], us_relaxed(w + 1));
    us_intend(a, &h->hand[hand], address);
    us_commit(a);

    return address;
}


/*
 * Fills a new leaf, in a hand, with n entries; room: the leaf takes so many
 * more, up to id.  0 and *failed: no room.  An empty leaf is 0, too.
 */

static uint32_t
us_leaf_make(us_arena_t *a, us_entry_t *e, unsigned n, unsigned extra,
    unsigned room, uint64_t id, unsigned hand, int *failed)
{
    unsigned   i, used;
    uint32_t   address;
    uint64_t  *w;
    us_leaf_t  l, old;

    if (n + room == 0) {
        return 0;
    }

    memset(&l, 0, sizeof(us_leaf_t));
    l.extra = extra;

    if (us_leaf_measure(a, &l, n + room, id) != 0) {
        *failed = 1;
        return 0;
    }

    address = us_leaf_take(a, l.size, hand);

    if (address == 0) {
        *failed = 1;
        return 0;
    }

    w = us_leaf_at(a, address);
    old = us_leaf(us_relaxed(w));

    l.size = old.size;
    l.freed = old.freed;
    l.count = n;
    l = us_leaf(us_leaf_header(&l));

    for (i = l.high; i < us_leaf_words(a, &l); i++) {
        us_release(&w[i], 0);
    }

    for (i = 0, used = 0; i < n; i++) {
        used = us_slot_write(w, &l, i, &e[i], used);
    }

    /*
     * Release: a reader that came here by an old address and takes this
     * header for the leaf's must at least find the leaf that it describes.
     */

    us_release(w, us_leaf_header(&l));

    return address;
}


/* intends to put a leaf in hand into the directory, in place of another */

static void
us_index_replace(us_arena_t *a, uint64_t leaf, uint32_t address, uint32_t old)
{
    us_intend32(a, us_directory_word(a, leaf), address);
    us_leaf_free(a, old);
    us_intend(a, &a->head->hand[0], 0);
}


void
us_index_enter(us_arena_t *a)
{
    unsigned  i;

    for (i = 0; i < US_HANDS; i++) {
        if (a->head->hand[i]) {
            us_leaf_free(a, a->head->hand[i]);
            us_intend(a, &a->head->hand[i], 0);
            us_commit(a);
        }
    }
}


/* makes sure that the directory has a word for this leaf; -1: no room */

static int
us_directory_extend(us_arena_t *a, uint64_t leaf)
{
    uint32_t   *entry;
    uint64_t    number, chunk;
    us_head_t  *h;

    h = a->head;
    number = us_directory_chunk_number(a, leaf);
    entry = us_directory_chunk(a, number);

    if (number < h->directory_last
        || (number == h->directory_last && *entry))
    {
        return 0;
    }

    if (number - h->directory_first >= h->area[US_AREA_DIRECTORY].max) {
        return -1;
    }

    chunk = h->directory_spare;

    if (chunk == 0) {
        chunk = us_arena_take(a, US_AREA_DIRECTORY, 1) >> a->chunk_shift;

        if (chunk == 0) {
            return -1;
        }
    }

    us_intend(a, &h->directory_spare, 0);
    us_intend32(a, entry, chunk);
    us_intend(a, &h->directory_last, number);
    us_commit(a);

    return 0;
}


/*
 * Hashes the entries of a leaf again: afterwards extra has the US_EXTRA_BITS
 * bits behind the leaf's first child bit, and that bit on top.
 *
 * An id is here as a URL, as a site, or as both.  If both hashes lead here and
 * have the same fingerprint, then both entries are here, next to each other,
 * unless the URL's was removed; which of them is which does not matter.
 */

static unsigned
us_index_rehash(uint64_t leaf, us_entry_t *e, unsigned n, us_leaf_t *l,
    us_index_hash_pt hash, void *data)
{
    unsigned     i, k, out, both;
    uint64_t     h, path, known;
    us_hashes_t  hashes;

    out = 0;
    both = 0;

    for (i = 0; i < n; i++) {

        hash(data, e[i].id, &hashes);
        known = e[i].extra;

        for (k = both && i && e[i].id == e[i - 1].id; k < 2; k++) {
            h = k ? hashes.site : hashes.url;
            path = us_path(h);

            if (h && us_print(h) == e[i].print
                && us_leaf_number(leaf, path) == leaf
                && us_extra(leaf, path, l->extra) == known)
            {
                e[out] = e[i];
                e[out++].extra = us_extra(leaf, path, US_EXTRA_BITS + 1);
                break;
            }
        }

        both = k == 0;
    }

    l->extra = US_EXTRA_BITS + 1;

    return out;
}


void
us_index_grow(us_arena_t *a, us_index_hash_pt hash, void *data)
{
    int          failed;
    unsigned     i, n, left;
    uint32_t     address, child[2], *chunk;
    uint64_t     leaf, first;
    us_leaf_t    l;
    us_head_t   *h;
    us_entry_t   e[US_LEAF_MAX], side[2][US_LEAF_MAX];

    h = a->head;
    leaf = h->leaves;

    if (h->entries < leaf * US_LEAF_MEAN
        || us_directory_extend(a, 2 * leaf + 1) != 0)
    {
        return;
    }

    address = us_directory_get(a, leaf);
    n = us_leaf_read(a, address, e, &l);

    if (l.extra <= 1) {
        n = us_index_rehash(leaf, e, n, &l, hash, data);
    }

    /* the first extra bit is the side */

    l.extra--;

    for (i = 0, left = 0; i < n; i++) {
        if (e[i].extra >> l.extra) {
            side[1][i - left] = e[i];
            side[1][i - left].extra &= ((unsigned) 1 << l.extra) - 1;

        } else {
            side[0][left++] = e[i];
        }
    }

    failed = 0;

    child[0] = us_leaf_make(a, side[0], left, l.extra, 0,
                            left ? side[0][left - 1].id : 0, 0, &failed);
    child[1] = us_leaf_make(a, side[1], n - left, l.extra, 0,
                            n - left ? side[1][n - left - 1].id : 0, 1,
                            &failed);
    if (failed) {
        us_index_enter(a);
        return;
    }

    us_intend32(a, us_directory_word(a, 2 * leaf), child[0]);
    us_intend32(a, us_directory_word(a, 2 * leaf + 1), child[1]);
    us_intend(a, &h->leaves, leaf + 1);
    us_leaf_free(a, address);
    us_intend(a, &h->hand[0], 0);
    us_intend(a, &h->hand[1], 0);

    first = us_directory_chunk_number(a, leaf + 1);

    if (first != h->directory_first && h->directory_spare == 0) {
        chunk = us_directory_chunk(a, h->directory_first);
        us_intend(a, &h->directory_spare, *chunk);
        us_intend(a, &h->directory_first, first);
    }

    us_commit(a);
}


int
us_index_reserve(us_arena_t *a, uint64_t hash, uint64_t id, unsigned more)
{
    int          failed;
    unsigned     n;
    uint32_t     address;
    uint64_t     leaf;
    us_leaf_t    l;
    us_entry_t   e[US_LEAF_MAX];

    leaf = us_leaf_number(a->head->leaves, us_path(hash));

    if (us_directory_extend(a, leaf) != 0) {
        return -1;
    }

    address = us_directory_get(a, leaf);

    if (address) {
        l = us_leaf(us_relaxed(us_leaf_at(a, address)));

        if (l.count + more <= l.slots
            && (id >> l.low) + l.count + more
               <= (us_leaf_words(a, &l) - l.high) * 64)
        {
            return 0;
        }
    }

    failed = 0;
    n = us_leaf_read(a, address, e, &l);

    hash = us_leaf_make(a, e, n, l.extra, more, id, 0, &failed);

    if (failed) {
        return -1;
    }

    us_index_replace(a, leaf, hash, address);
    us_commit(a);

    return 0;
}


int
us_index_same(const us_arena_t *a, uint64_t h1, uint64_t h2)
{
    uint64_t  n;

    n = a->head->leaves;

    return us_leaf_number(n, us_path(h1)) == us_leaf_number(n, us_path(h2));
}


void
us_index_put(us_arena_t *a, uint64_t hash, uint64_t id)
{
    unsigned     used;
    uint64_t     leaf, path, *w;
    us_leaf_t    l;
    us_entry_t   e;

    path = us_path(hash);
    leaf = us_leaf_number(a->head->leaves, path);
    w = us_leaf_at(a, us_directory_get(a, leaf));
    l = us_leaf(us_intended(a, w));

    e.id = id;
    e.print = us_print(hash);
    e.extra = us_extra(leaf, path, l.extra);

    used = l.count ? us_select(w + l.high, us_leaf_words(a, &l) - l.high,
                               l.count - 1) + 1
                   : 0;

    us_slot_write(w, &l, l.count, &e, used);

    l.count++;
    us_intend(a, w, us_leaf_header(&l));

    us_intend(a, &a->head->entries, us_intended(a, &a->head->entries) + 1);
}


void
us_index_remove(us_arena_t *a, uint64_t hash, uint64_t id)
{
    int          failed;
    unsigned     i, n;
    uint32_t     address;
    uint64_t     leaf, candidate, *w;
    us_leaf_t    l;
    us_probe_t   p;
    us_entry_t   e[US_LEAF_MAX];

    us_index_start(a, &p, hash);

    do {
        if (!us_index_next(a, &p, &candidate)) {
            return;
        }
    } while (candidate != id);

    leaf = p.leaf;
    address = p.address;
    n = us_leaf_read(a, address, e, &l);

    for (i = 0; e[i].id != id || e[i].print != p.print
                || e[i].extra != us_extra(leaf, p.path, l.extra); i++)
    {
        /* void */
    }

    failed = 0;

    memmove(&e[i], &e[i + 1], (n - i - 1) * sizeof(us_entry_t));
    hash = us_leaf_make(a, e, n - 1, l.extra, 0, n > 1 ? e[n - 2].id : 0, 0,
                        &failed);

    if (!failed) {
        us_index_replace(a, leaf, hash, address);

    } else {

        /* not even room for a copy: a wrong fingerprint makes it forgotten */

        w = us_leaf_at(a, address) + 1 + i / 8;
        us_intend(a, w, us_relaxed(w) ^ (uint64_t) 1 << (i % 8 * 8));
    }

    us_intend(a, &a->head->entries, a->head->entries - 1);
}
