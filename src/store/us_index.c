/*
 * The index: a growing array of small leaves of variable size.
 *
 *   hash --> path --> leaf number --> directory --> leaf
 *                                     (32 bits)
 *
 *   leaf:  | header | fingerprints | low, split | low, split ... | high |
 *            8 bytes  1 byte each    packed bits                   bits
 *
 * Memory follows content: a leaf has the size that its entries need, rounded
 * up to 8 bytes; it is replaced by a larger copy when it is full.
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
 * so one number, head->leaves, leads every reader to the leaf of its key, and
 * publishes a split: this is linear hashing (Litwin, 1980).  With uniform paths
 * all leaves of a round would fill at the same pace, and at the end of a round
 * no leaf would need the memory that large leaves free.  So paths are not
 * uniform, as in spiral storage (Martin, 1979): the path is (2x + x^2) / 3 of
 * the hash x, whose density falls from 1.5 to .75.  The leaf that is next to be
 * split has always twice the load of those just made.  There are always leaves
 * of every size between, and one of them soon uses a freed leaf's memory.
 *
 * `split` are the next bits of the path below the leaf.  They distinguish
 * entries as more bits of fingerprint would.  The first of them decides to
 * which of the two new leaves an entry goes when its leaf is split.  When none
 * is left, the leaf's records are decoded and hashed again.
 *
 *
 * The directory: leaf number -> address of the leaf.
 *
 *     head->area[US_AREA_DIRECTORY]     | 0 | 0 | c | d | e | 0 | ...
 *                                             ^           ^     a ring
 *                              directory_first     directory_last
 *
 *     a chunk                           | address | address | ...   32 bits
 *
 * Leaves n .. 2n-1 are in use when there are n of them.  So the
 * chunks in use move through the ring.  When growth needs a chunk, it is added
 * at the end; a chunk that lies wholly before head->leaves is removed, kept in
 * directory_spare, and used again.  A word that a reader gets from a chunk that
 * was just used again leads to another leaf; us_index_stale() detects that.
 *
 *
 * Invariants for readers, who take no lock:
 *
 *   - a leaf that the directory leads to is complete;
 *   - slots below the header's count do not change while the leaf is in use;
 *   - before its memory is written again, the directory word or head->leaves
 *     that led to it has changed, and then the serial number in the header.
 *
 * So a reader that found nothing reads again, in this order: head->leaves, the
 * directory word, the serial number in the header.  If all three are as before,
 * then it has searched the right leaf: the key was in no leaf when the reader
 * read the directory first.  An entry appended since then leaves the serial
 * number as it is.
 */


#include "us_index.h"
#include "../us_bit.h"
#include "../us_vector.h"


void
us_index_format(us_arena_t *a)
{
    a->head->leaves = US_FIRST_LEAF;
}


void
us_index_aim(const us_arena_t *a, us_probe_t *p, uint64_t hash)
{
    uint64_t  n;

    p->path = us_path(hash);
    p->fingerprint = us_fingerprint(hash);
    p->slot = 0;
    p->matches = 0;
    p->more = 0;
    p->header = 0;

    /*
     * Acquire: the number of leaves is released after the directory words of
     * the two newest; they must not be read before it.
     */

    n = us_acquire(&a->head->leaves);

    p->leaves = n;
    p->leaf = us_leaf_number(n, p->path);

    __builtin_prefetch(us_directory_word(a, p->leaf));
}


void
us_index_reach(const us_arena_t *a, us_probe_t *p)
{
    p->address = us_directory_get(a, p->leaf);
    p->words = NULL;

    if (p->address) {
        p->words = us_leaf_at(a, p->address);

        /* the header and the fingerprints */

        __builtin_prefetch(p->words);
        __builtin_prefetch(p->words + 8);
        __builtin_prefetch(p->words + 16);
    }
}


void
us_index_start(const us_arena_t *a, us_probe_t *p, uint64_t hash)
{
    us_index_aim(a, p, hash);
    us_index_reach(a, p);

    if (p->words) {
        __builtin_prefetch(p->words + 24);
    }
}


/*
 * Which of the 64 slots from a word on have the fingerprint.  A slot that
 * counts does not change while it is read; what others hold is not used.
 */

static inline uint64_t
us_leaf_matches(const uint64_t *w, uint8_t fingerprint)
{
    us_bytes_t  a, b, c, d;

    a = (us_bytes_t) (us_load_bytes(w) == fingerprint);
    b = (us_bytes_t) (us_load_bytes(w + 2) == fingerprint);
    c = (us_bytes_t) (us_load_bytes(w + 4) == fingerprint);
    d = (us_bytes_t) (us_load_bytes(w + 6) == fingerprint);

    /* us_index_stale() must not read before this; see there */

    us_fence();

    return us_bits64(a, b, c, d);
}


/* the lowest n bits; n may be more than 64; without a branch, see below */

static inline uint64_t
us_ones(unsigned n)
{
    return ((uint64_t) (n < 64) << n % 64) - 1;
}


/*
 * Reads the header and the fingerprints, always twice 64 slots: a loop that
 * ends by the number of entries would be mispredicted, which costs more than
 * all the rest.  The words after a leaf are readable.
 */

void
us_index_scan(us_probe_t *p)
{
    unsigned         count, more;
    const uint64_t  *w;

    if (p->words == NULL) {
        return;
    }

    /*
     * Acquire: a slot is filled before the count that includes it is released.
     */

    p->header = us_acquire(p->words);
    count = p->header & 0xff;

    w = p->words + 1;
    p->matches = us_leaf_matches(w, p->fingerprint) & us_ones(count);

    /* the same words again if there are no more: no further line is read */

    more = count > 64;
    w += 8 * more;
    p->more = us_leaf_matches(w, p->fingerprint)
              & us_ones((count - 64) * more);
}


/* more than 128 entries: rare */

static int
us_index_scan_more(us_probe_t *p)
{
    unsigned  count, slot;

    count = p->header & 0xff;

    p->slot += 64;
    p->matches = p->more;
    p->more = 0;
    slot = p->slot + 64;

    if (slot < count) {
        p->more = us_leaf_matches(p->words + 1 + slot / 8, p->fingerprint)
                  & us_ones(count - slot);
    }

    return p->slot < count;
}


void
us_index_ask(const us_probe_t *p)
{
    unsigned   i;
    us_leaf_t  l;

    l = us_leaf(p->header);
    i = p->slot;

    if (p->matches) {
        i += __builtin_ctzll(p->matches);

    } else {
        i += 64 + (p->more ? __builtin_ctzll(p->more) : 0);
    }

    __builtin_prefetch(p->words + l.packed + i * (l.low + l.split) / 64);
    __builtin_prefetch(p->words + l.high);
}


int
us_index_next(const us_arena_t *a, us_probe_t *p, uint64_t *id)
{
    unsigned   i, at, width, words;
    uint64_t   v;
    us_leaf_t  l;

    if (p->header == 0) {

        if (p->words == NULL) {
            return 0;
        }

        us_index_scan(p);
    }

    for ( ;; ) {

        if (!us_index_open(p)) {
            return 0;
        }

        while (p->matches == 0) {
            if (!us_index_scan_more(p)) {
                return 0;
            }
        }

        i = p->slot + __builtin_ctzll(p->matches);
        p->matches &= p->matches - 1;

        l = us_leaf(p->header);
        width = l.low + l.split;
        words = us_leaf_words(a, &l);

        if (l.high >= words || width > US_WIDTH_MAX) {

            /* not a header: the memory has got another use meanwhile */

            p->slot = p->header & 0xff;
            p->matches = 0;
            p->more = 0;
            return 0;
        }

        v = us_packed_get(p->words + l.packed, i * width, width);

        if (v >> l.low != us_split_bits(p->leaf, p->path, l.split)) {
            continue;
        }

        at = us_nth_bit(p->words + l.high, words - l.high, i);

        *id = (uint64_t) (at - i) << l.low
              | (v & (((uint64_t) 1 << l.low) - 1));

        return 1;
    }
}


int
us_directory_extend_locked(us_arena_t *a, uint64_t leaf)
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
        chunk = us_arena_take_locked(a, US_AREA_DIRECTORY, 1) >> a->chunk_shift;

        if (chunk == 0) {
            return -1;
        }
    }

    us_intend_locked(a, &h->directory_spare, 0);
    us_intend32_locked(a, entry, chunk);
    us_intend_locked(a, &h->directory_last, number);
    us_commit_locked(a);

    return 0;
}


/*
 * Intends that staged leaf 0 replaces another one, which is freed (0: there was
 * none).
 */

static void
us_directory_replace_locked(us_arena_t *a, uint64_t leaf, uint32_t address,
    uint32_t old)
{
    us_intend32_locked(a, us_directory_word(a, leaf), address);
    us_leaf_free_locked(a, old);
    us_intend_locked(a, &a->head->staged[0], 0);
}


/*
 * An id is here as a URL, as a site, or as both.  If both hashes lead here and
 * have the same fingerprint, then both entries are here, next to each other,
 * unless the URL's was removed; which of them is which does not matter.
 */

unsigned
us_index_rehash(uint64_t leaf, us_entry_t *e, unsigned n, us_leaf_t *l,
    unsigned bits, us_index_hash_pt hash, void *data)
{
    unsigned     i, k, out, both;
    uint64_t     h, path, known, id[US_LEAF_MAX];
    us_hashes_t  hashes[US_LEAF_MAX];

    id[0] = 0;
    out = 0;
    both = 0;

    for (i = 0; i < n; i++) {
        id[i] = e[i].id;
    }

    hash(data, id, n, hashes);

    for (i = 0; i < n; i++) {

        known = e[i].split;

        for (k = both && id[i] == id[i - 1]; k < 2; k++) {
            h = k ? hashes[i].site : hashes[i].url;
            path = us_path(h);

            if (h && us_fingerprint(h) == e[i].fingerprint
                && us_leaf_number(leaf, path) == leaf
                && us_split_bits(leaf, path, l->split) == known)
            {
                e[out] = e[i];
                e[out++].split = us_split_bits(leaf, path, bits);
                break;
            }
        }

        both = k == 0;
    }

    l->split = bits;

    return out;
}


void
us_index_grow_locked(us_arena_t *a, us_index_hash_pt hash, void *data)
{
    int          failed;
    unsigned     i, n, left, dropped;
    uint32_t     address, child[2];
    uint64_t     leaf, first;
    us_leaf_t    l;
    us_head_t   *h;
    us_entry_t   e[US_LEAF_MAX], side[2][US_LEAF_MAX];

    h = a->head;
    leaf = h->leaves;

    if (h->entries < leaf * US_LEAF_MEAN
        || us_directory_extend_locked(a, 2 * leaf + 1) != 0)
    {
        return;
    }

    address = us_directory_get(a, leaf);
    n = us_leaf_read(a, address, e, &l);

    dropped = n;

    if (l.split <= 1) {
        n = us_index_rehash(leaf, e, n, &l, US_SPLIT_BITS(leaf) + 1, hash,
                            data);
    }

    dropped -= n;

    /* the first split bit is the side */

    l.split--;

    for (i = 0, left = 0; i < n; i++) {
        if (e[i].split >> l.split) {
            side[1][i - left] = e[i];
            side[1][i - left].split &= ((unsigned) 1 << l.split) - 1;

        } else {
            side[0][left++] = e[i];
        }
    }

    failed = 0;

    child[0] = us_leaf_make_locked(a, side[0], left, l.split, 0, &failed);
    child[1] = us_leaf_make_locked(a, side[1], n - left, l.split, 1, &failed);

    if (failed) {
        us_index_enter(a);
        return;
    }

    us_intend32_locked(a, us_directory_word(a, 2 * leaf), child[0]);
    us_intend32_locked(a, us_directory_word(a, 2 * leaf + 1), child[1]);
    us_intend_locked(a, &h->leaves, leaf + 1);
    us_intend_locked(a, &h->entries, h->entries - dropped);
    us_leaf_free_locked(a, address);
    us_intend_locked(a, &h->staged[0], 0);
    us_intend_locked(a, &h->staged[1], 0);

    /* a chunk of the directory in which no leaf is any more */

    first = us_directory_chunk_number(a, leaf + 1);

    if (first != h->directory_first && h->directory_spare == 0) {
        us_intend_locked(a, &h->directory_spare,
                         *us_directory_chunk(a, h->directory_first));
        us_intend_locked(a, &h->directory_first, first);
    }

    us_commit_locked(a);
}


/* room for so many more entries of this hash */

static int
us_index_room_locked(us_arena_t *a, uint64_t hash, uint64_t id, unsigned more)
{
    uint32_t     address, larger;
    uint64_t     leaf;
    us_leaf_t    l;

    leaf = us_leaf_number(a->head->leaves, us_path(hash));

    if (us_directory_extend_locked(a, leaf) != 0) {
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

    larger = us_leaf_grow_locked(a, address, more, id);

    if (larger == 0) {
        return -1;
    }

    us_directory_replace_locked(a, leaf, larger, address);
    us_commit_locked(a);

    return 0;
}


int
us_index_reserve_locked(us_arena_t *a, const us_hashes_t *hashes, uint64_t id,
    int both)
{
    uint64_t  n;
    unsigned  same;

    if (us_index_room_locked(a, hashes->url, id, 1) != 0) {
        return -1;
    }

    if (!both) {
        return 0;
    }

    n = a->head->leaves;
    same = us_leaf_number(n, us_path(hashes->url))
           == us_leaf_number(n, us_path(hashes->site));

    return us_index_room_locked(a, hashes->site, id, 1 + same);
}


static void
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


/*
 * Writes slot i, past the leaf's count; the slots before it use so many high
 * bits.
 */

static void
us_slot_write(uint64_t *w, const us_leaf_t *l, unsigned i,
    const us_entry_t *e, unsigned used)
{
    unsigned  at, word, width;
    uint64_t  low;

    us_packed_set(w + 1, i * 8, 8, e->fingerprint);

    width = l->low + l->split;
    low = e->id & (((uint64_t) 1 << l->low) - 1);

    us_packed_set(w + l->packed, i * width, width,
                  (uint64_t) e->split << l->low | low);

    /*
     * Ones past those in use were left by a killed writer.  It wrote an id not
     * above this one to this slot, so its one is not past this one.
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
}


static void
us_index_entry_locked(us_arena_t *a, uint64_t hash, uint64_t id)
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
    e.fingerprint = us_fingerprint(hash);
    e.split = us_split_bits(leaf, path, l.split);

    used = l.count ? us_nth_bit(w + l.high, us_leaf_words(a, &l) - l.high,
                                l.count - 1) + 1
                   : 0;

    us_slot_write(w, &l, l.count, &e, used);

    l.count++;
    us_intend_locked(a, w, us_leaf_header(&l));

    us_intend_locked(a, &a->head->entries,
                     us_intended(a, &a->head->entries) + 1);
}


void
us_index_put_locked(us_arena_t *a, const us_hashes_t *hashes, uint64_t id,
    int both)
{
    us_index_entry_locked(a, hashes->url, id);

    if (both) {
        us_index_entry_locked(a, hashes->site, id);
    }
}


int
us_index_rest(const us_arena_t *a, uint64_t hash, uint64_t id,
    us_index_rest_t *r)
{
    unsigned     split;
    uint64_t     candidate;
    us_probe_t   p;
    us_entry_t  *e;

    us_index_start(a, &p, hash);

    do {
        if (!us_index_next(a, &p, &candidate)) {
            return 0;
        }
    } while (candidate != id);

    r->leaf = p.leaf;
    r->address = p.address;
    r->n = us_leaf_read(a, p.address, r->entries, &r->layout) - 1;

    split = us_split_bits(p.leaf, p.path, r->layout.split);

    for (e = r->entries;
         e->id != id || e->fingerprint != p.fingerprint || e->split != split;
         e++)
    {
        /* void */
    }

    memmove(e, e + 1, (r->entries + r->n - e) * sizeof(us_entry_t));

    return 1;
}


void
us_index_remove_prepare_locked(us_arena_t *a, uint64_t hash, uint64_t id,
    us_removal_t *r)
{
    int              failed;
    us_index_rest_t  rest;

    memset(r, 0, sizeof(us_removal_t));

    if (!us_index_rest(a, hash, id, &rest)) {
        return;
    }

    failed = 0;
    r->leaf = rest.leaf;
    r->copy = us_leaf_make_locked(a, rest.entries, rest.n, rest.layout.split,
                                  0, &failed);
    r->address = failed ? 0 : rest.address;
}


void
us_index_remove_locked(us_arena_t *a, const us_removal_t *r)
{
    if (r->address) {
        us_directory_replace_locked(a, r->leaf, r->copy, r->address);
        us_intend_locked(a, &a->head->entries, a->head->entries - 1);
    }
}


/*
 * The copy is made in steps, and writers go on between the steps.  Growth
 * splits leaves and changes their numbers, but never moves an entry to another
 * path.  So the copy proceeds by paths: entries from the current path on were
 * not copied yet, in whichever leaf they are now.
 */

int
us_index_image(const us_arena_t *a, us_index_image_t *im)
{
    unsigned         i, n;
    uint32_t         address;
    uint64_t         leaf;
    us_leaf_t        l;
    const uint64_t  *w;

    im->n = 0;
    im->leaf = us_leaf_number(a->head->leaves, im->path);

    for (i = 0; i < US_IMAGE_LEAVES && !im->done; i++) {

        leaf = us_leaf_number(a->head->leaves, im->path);

        if (leaf != im->leaf + i) {
            break;
        }

        address = us_directory_get(a, leaf);
        w = address ? us_leaf_at(a, address) : NULL;
        n = 0;

        /* the words that are used */

        if (w && us_relaxed(w) & 0xff) {
            l = us_leaf(us_relaxed(w));
            n = l.high + us_nth_bit(w + l.high, us_leaf_words(a, &l) - l.high,
                                    l.count - 1) / 64 + 1;
        }

        im->words[im->n++] = n;

        if (n) {
            memcpy(&im->words[im->n], w, n * sizeof(uint64_t));
            im->n += n;
        }

        im->path = us_leaf_path_end(leaf);
        im->done = im->path == 0;
    }

    return i > 0;
}
