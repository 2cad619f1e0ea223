
/*
 * The list of what was erased, and must not come back.
 *
 * It has no URL, but 96 bits of a keyed hash of each: of a URL, of what
 * follows "http://" or "https://" and a "www."; of a site, of its host without
 * "www.".  Who reads it and does not have the key cannot try which URLs were
 * erased.  The key is in the zone and in the directory.
 * It is the list's own and never changes: that of the index changes at a start,
 * and no URL is there to be hashed again.
 *
 * FORMAT of an entry, two words:
 *
 *     hash     the first word of the hash; 1 for 0
 *     rest     bits  0 .. 29   number of the erasure
 *                   30 .. 31   spellings: 1 without "www.", 2 with it
 *                   32 .. 63   the low half of the second word of the hash
 *
 * A URL whose "www." makes no difference is on the list in both spellings, so
 * it stays there whatever becomes of the lists of public suffixes.  One hash
 * has an entry for each erasure that is of it.
 *
 *
 * Entries are in an open hash table with linear probing, in one half of
 * US_AREA_ERASED; chunks are allotted where there are entries.  When three
 * quarters of it are in use, the other half becomes a table of twice the size.
 * Each change moves some entries of the old one, and when all have been moved
 * its chunks are given back, some in each change.  Meanwhile both are searched.
 * Entries of erasures that were lifted are not moved; if they are many, the
 * other half gets the same size.
 *
 *     half 0   |e|.|e|e|.|e|.|.|          old, up to head->erased_moved: moved
 *     half 1   |.|.|e|.|.|.|e|.|.|.|e|.|.|.|.|.|
 *
 * The list is read and written under the lock only.  An entry is there when
 * its first word is, which is stored last: moving it needs no intent.
 */


#include "us_store_private.h"


/* hashes of URLs: US_DOMAIN_HTTP, US_DOMAIN_HTTPS; of sites: */
#define US_ERASED_SITE      US_DOMAIN_SITE

/* entries that one change moves, and chunks that it gives back */
#define US_ERASED_MOVES     32
#define US_ERASED_GIVES     16

/* places that a dump reads at once */
#define US_ERASED_LOOKED    4096


static us_erased_hash_t
us_erased_hash(const us_store_t *s, unsigned domain, us_str_t text,
    unsigned spellings)
{
    uint8_t            last;
    uint64_t           out[2];
    us_hash128_t       h;
    us_erased_hash_t   hash;

    last = (uint8_t) domain;

    us_hash128_init(&h, us_head(s)->erased_key);
    us_hash128_add(&h, text.data, text.len);
    us_hash128_add(&h, &last, 1);
    us_hash128_end(&h, out);

    hash.hash = out[0] ? out[0] : 1;
    hash.rest = out[1] << 32 | (uint64_t) spellings << 30;

    return hash;
}


us_erased_hash_t
us_erased_site(const us_store_t *s, us_str_t site)
{
    return us_erased_hash(s, US_ERASED_SITE, site,
                          US_ERASED_WITH|US_ERASED_WITHOUT);
}


void
us_erased_hashes(const us_store_t *s, unsigned klass, us_str_t rest,
    unsigned spellings, us_erased_t *erased)
{
    erased->url = us_erased_hash(s, us_store_domain(s, klass), rest,
                                 spellings);
    erased->site = us_erased_hash(s, US_ERASED_SITE, us_site(rest), spellings);
    erased->known = 1;
}


void
us_erased_item(const us_store_t *s, const us_store_item_t *item,
    us_erased_t *erased)
{
    unsigned  klass;
    us_str_t  rest;

    rest = item->rest;
    klass = 0;

    if (!item->merge) {
        rest = us_store_bare(rest, &klass);
    }

    us_erased_hashes(s, item->spelling, rest,
                     item->merge ? US_ERASED_WITH|US_ERASED_WITHOUT
                                 : us_erased_spelling(klass),
                     erased);
}


/* --- the table ------------------------------------------------------------ */

/* where place i of a half lies in the area */

static inline uint64_t
us_erased_pos(const us_arena_t *a, uint64_t half, uint64_t i)
{
    return (half * (a->head->area[US_AREA_ERASED].max / 2) << a->chunk_shift)
           + i * US_ERASED_EACH;
}


/* that place; NULL: it is free, and no chunk is allotted there */

static inline uint64_t *
us_erased_place(const us_arena_t *a, uint64_t half, uint64_t i)
{
    return (uint64_t *) us_sparse_at(a, US_AREA_ERASED,
                                     us_erased_pos(a, half, i));
}


/*
 * Searches 1 << bits places of a half.  With a number: the entry of that
 * erasure; 0: one that is in force, for one of the spellings of `h`.  NULL:
 * there is none, and *at is the first free place, or 1 << bits.
 */

static uint64_t *
us_erased_find(const us_arena_t *a, uint64_t half, uint64_t bits,
    us_erased_hash_t h, uint64_t number, uint64_t *at)
{
    uint64_t  i, mask, rest, *p;

    mask = ((uint64_t) 1 << bits) - 1;

    for (i = 0; i <= mask; i++) {
        *at = (h.hash + i) & mask;
        p = us_erased_place(a, half, *at);

        if (p == NULL || p[0] == 0) {
            return NULL;
        }

        rest = p[1];

        if (p[0] == h.hash && rest >> 32 == h.rest >> 32
            && (number ? us_erased_number(rest) == number
                       : (rest & h.rest & US_ERASED_SPELLINGS)
                         && !us_erased_lifted(a, rest)))
        {
            return p;
        }
    }

    *at = mask + 1;

    return NULL;
}


/* in both halves */

static uint64_t *
us_erased_look(const us_arena_t *a, us_erased_hash_t h, uint64_t number)
{
    uint64_t    at, half, *p;
    us_head_t  *head;

    head = a->head;
    half = head->erased_moves & 1;

    if (head->erased_bits == 0) {
        return NULL;
    }

    p = us_erased_find(a, half, head->erased_bits, h, number, &at);

    return p == NULL && head->erased_old
           ? us_erased_find(a, half ^ 1, head->erased_old, h, number, &at) : p;
}


int
us_erased_has_locked(const us_arena_t *a, us_erased_hash_t h)
{
    return us_erased_look(a, h, us_erased_number(h.rest)) != NULL;
}


uint64_t
us_erased_by_locked(const us_arena_t *a, const us_erased_t *erased)
{
    uint64_t  *p;

    p = us_erased_look(a, erased->url, 0);
    p = p ? p : us_erased_look(a, erased->site, 0);

    return p ? us_erased_number(p[1]) : 0;
}


int
us_erased_refuses_locked(us_store_t *s, const us_store_item_t *item,
    us_erased_t *erased)
{
    if (us_head(s)->erasures_live == 0) {
        return 0;
    }

    if (!erased->known) {
        us_erased_item(s, item, erased);
    }

    return us_erased_by_locked(&s->arena, erased) != 0;
}


/*
 * Writes an entry into a free place of the half in use, and intends the word
 * that publishes it.  -1: there is no room, and nothing is intended.
 */

static int
us_erased_put_locked(us_arena_t *a, us_erased_hash_t h)
{
    uint64_t    at, half, *p;
    us_head_t  *head;

    head = a->head;
    half = head->erased_moves & 1;

    (void) us_erased_find(a, half, head->erased_bits, h,
                          us_erased_number(h.rest), &at);

    if (at >> head->erased_bits
        || us_arena_allot_locked(a, US_AREA_ERASED,
                                 us_erased_pos(a, half, at)) != 0)
    {
        return -1;
    }

    p = us_erased_place(a, half, at);
    us_release(&p[1], h.rest);

    us_intend_locked(a, &p[0], h.hash);
    us_intend_locked(a, &head->erased_n, head->erased_n + 1);

    return 0;
}


/* gives the chunks of the half back that is not in use; 0: all are given */

static int
us_erased_give_locked(us_arena_t *a)
{
    unsigned   n;
    uint32_t  *directory;
    uint64_t   i, chunk, chunks;

    chunks = a->head->area[US_AREA_ERASED].max / 2;
    directory = us_area_entry(a, US_AREA_ERASED,
                              (~a->head->erased_moves & 1) * chunks);

    for (i = 0, n = 0; i < chunks && n < US_ERASED_GIVES; i++) {
        chunk = directory[i];

        if (chunk) {
            us_intend32_locked(a, &directory[i], 0);
            us_arena_give(a, US_AREA_ERASED, chunk);
            n++;
        }
    }

    return n == US_ERASED_GIVES;
}


/* moves some entries of the old half, if there is one */

static void
us_erased_move_locked(us_arena_t *a)
{
    unsigned           n;
    uint64_t           at, half, *p;
    us_head_t         *head;
    us_erased_hash_t   h;

    head = a->head;
    half = ~head->erased_moves & 1;

    if (head->erased_old == 0) {
        return;
    }

    for (n = 0; n < US_ERASED_MOVES && !(head->erased_moved
                                         >> head->erased_old); n++)
    {
        p = us_erased_place(a, half, head->erased_moved);

        if (p && p[0] && !us_erased_lifted(a, p[1])) {
            h.hash = p[0];
            h.rest = p[1];

            /* a writer that was killed may have moved it before */

            if (us_erased_find(a, half ^ 1, head->erased_bits, h,
                               us_erased_number(h.rest), &at)
                == NULL)
            {
                if (us_erased_put_locked(a, h) != 0) {
                    return;
                }

                us_commit_locked(a);
            }
        }

        us_release(&head->erased_moved, head->erased_moved + 1);
    }

    if (head->erased_moved >> head->erased_old
        && !us_erased_give_locked(a))
    {
        us_release(&head->erased_old, 0);
    }
}


/* whether a table of so many bits fits a half */

static int
us_erased_fits(const us_arena_t *a, uint64_t bits)
{
    return (uint64_t) US_ERASED_EACH << bits
           <= a->head->area[US_AREA_ERASED].max / 2 << a->chunk_shift;
}


/* the table becomes one of so many bits; the old one is moved by and by */

static void
us_erased_table_locked(us_arena_t *a, uint64_t bits)
{
    us_head_t  *head;

    head = a->head;

    us_intend_locked(a, &head->erased_old, head->erased_bits);
    us_intend_locked(a, &head->erased_bits, bits);
    us_intend_locked(a, &head->erased_moved, 0);
    us_intend_locked(a, &head->erased_moves, head->erased_moves + 1);
    us_intend_locked(a, &head->erased_n, 0);
    us_intend_locked(a, &head->erased_dead, 0);
    us_commit_locked(a);
}


/* room for one more entry, if it can be had; some are always left free */

static int
us_erased_room_locked(us_arena_t *a)
{
    uint64_t    n, bits;
    us_head_t  *head;

    head = a->head;

    us_erased_move_locked(a);

    n = head->erased_n + 1;
    bits = head->erased_bits;

    if (bits == 0) {
        us_erased_table_locked(a, a->chunk_shift - US_ERASED_SHIFT);

    } else if (n > (uint64_t) 3 << (bits - 2) && head->erased_old == 0) {

        bits += head->erased_dead < n / 2;

        if (us_erased_fits(a, bits)) {
            us_erased_table_locked(a, bits);
            us_erased_move_locked(a);
        }
    }

    return head->erased_n < (uint64_t) 15 << (head->erased_bits - 4) ? 0 : -1;
}


us_store_status_t
us_erased_enter_locked(us_arena_t *a, us_erased_hash_t h, int journal)
{
    uint64_t          *p;
    us_op_t            op;
    us_erasure_row_t  *row;

    p = us_erased_look(a, h, us_erased_number(h.rest));

    if (p) {
        h.rest |= p[1];

        if (h.rest == p[1]) {
            return US_SEEN;
        }

        us_intend_locked(a, &p[1], h.rest);

    } else if (us_erased_room_locked(a) != 0
               || us_erased_put_locked(a, h) != 0)
    {
        return US_FULL;
    }

    if (journal) {
        op = us_op(US_OP_ERASED_URLS, 0, &h, sizeof(h));
        us_ring_put_locked(a, &op);
    }

    if (p == NULL) {
        row = us_erasure_row(a, us_erased_number(h.rest));
        us_intend_locked(a, &row->listed, row->listed + 1);
    }

    us_commit_locked(a);

    return p ? US_SEEN : US_NEW;
}


int
us_erased_replay_table(us_arena_t *a, uint64_t bits)
{
    uint64_t  least;

    if (bits >= 64 - US_ERASED_SHIFT) {
        return US_REPLAY_DAMAGED;
    }

    /* the store that was dumped may have had smaller chunks */

    least = a->chunk_shift - US_ERASED_SHIFT;
    bits = bits > least ? bits : least;

    if (a->head->erased_bits == 0 && us_erased_fits(a, bits)) {
        us_erased_table_locked(a, bits);
    }

    return 0;
}


unsigned
us_erased_dump(us_store_t *s, us_erased_dump_t *d, uint64_t last,
    us_erased_hash_t *out, unsigned n)
{
    unsigned     k, looked;
    uint64_t     half, bits, *p;
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;

    us_store_enter(s);

    /* another table has begun: entries not read so far may have moved */

    if (d->moves != h->erased_moves) {
        d->moves = h->erased_moves;
        d->old = 1;
        d->at = 0;
    }

    for (k = 0, looked = 0; k < n && looked < US_ERASED_LOOKED; looked++) {

        half = (h->erased_moves ^ d->old) & 1;
        bits = d->old ? h->erased_old : h->erased_bits;

        if (bits == 0 || d->at >> bits) {

            if (!d->old) {
                d->ended = 1;
                break;
            }

            d->old = 0;
            d->at = 0;
            continue;
        }

        p = us_erased_place(a, half, d->at++);

        if (p && p[0] && us_erased_number(p[1]) <= last
            && !us_erased_lifted(a, p[1]))
        {
            out[k].hash = p[0];
            out[k++].rest = p[1];
        }
    }

    us_store_leave(s);

    return k;
}
