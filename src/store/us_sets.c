
/*
 * Sets of ids.
 *
 * A set is a radix tree over the ids.  Its leaves are containers of 65,536 ids,
 * and, where a container would be larger than 2 KB, eight parts of it.
 *
 *     row --> root                  2^(16 + 6k) ids
 *              |  64 entries
 *              v
 *             node ...
 *              |  64 entries
 *              v
 *             container             2^16 ids: nothing, all, values, runs, or
 *              |  8 entries
 *              v
 *             part                  2^13 ids: nothing, all, values, runs, or
 *                                   bits
 *
 * Values, runs and bits are the containers of Roaring bitmaps (S. Chambi,
 * D. Lemire, O. Kaser, R. Godin: Better bitmap performance with Roaring
 * bitmaps, 2016); docs/decisions/sets.md says in what this differs, and why.
 *
 * FORMAT of an entry, a word that leads to an object or needs none:
 *
 *     bits  0 .. 2    kind
 *           3 .. 15   n: values, runs, or the level of a node
 *          16 .. 63   offset of the object in the zone / 8
 *
 *     US_SET_EMPTY    no id                      US_SET_FULL   each id
 *     US_SET_VALUES   n times the low 16 bits of an id, ascending
 *     US_SET_RUNS     n times the low 16 bits of the first id and of the last
 *     US_SET_BITS     128 words
 *     US_SET_NODE     entries: 8 at level 1, 64 above
 *
 * FORMAT of an object: a word, and what the entry says.
 *
 *     bits  0 .. 8    bytes / 8
 *           9 .. 11   level: 0 a part, 1 a container, 2 and more a node
 *          12 .. 27   row
 *          28 .. 63   first id / ids of the level
 *
 * Of a container, or a part, the smallest kind is written.
 *
 *
 * Changes.  An object is not changed, with two exceptions: an entry of a node,
 * and a word of bits.  All else is written anew, and its entry replaced.  So a
 * change is written where no reader looks, and then published by one commit,
 * whose words are: LSN, keys, counters, entries and words of bits.
 *
 *
 * Memory is a log (M. Rosenblum, J. Ousterhout, The design and implementation
 * of a log-structured file system, 1992).  Objects are written one after the
 * other into a chunk.  An object is alive if its entry leads to it; its first
 * word says where that entry is.  When too much of the chunks is dead, the
 * living objects of a chunk that has few are moved to the end of the log, and
 * the chunk is given back.  How many bytes live in a chunk is only a hint,
 * which a kill may falsify: before a chunk is given back, all its objects are
 * looked at.
 *
 *
 * Readers take no lock.  As objects are replaced, not changed, and memory is
 * used again only when a whole chunk was given back, a reader that has found
 * members_reused the same before and after has read what was there when it
 * began, or is there now.  If the word has changed, the reader starts again.
 * It may have taken other bytes for an entry meanwhile, so it stays within the
 * zone, whatever it reads.
 *
 *
 * A set is known by its number, which no other set ever has: operations name
 * it, and who has found a set compares it under the lock.  The sets of marks
 * have the numbers 1 to 16, and exist as long as the store.
 */


#include "us_sets.h"
#include "../us_hash.h"


#define US_SET_LEVELS     8

/* ids of a level, bits: of a part, a container, nodes */
#define US_SET_PART       13
#define US_SET_CONTAINER  16

/* a container that has more than both is divided; tuned with bench/sets */
#define US_SET_MANY       1024        /* values */
#define US_SET_FEW        64          /* runs */

#define US_SET_WORDS      128         /* of bits */

/* words of bits that are changed in place, at most; else they are copied */
#define US_SET_IN_PLACE   16

/* spans that one change has, and those of a part, or of a container, then */
#define US_SET_SPANS_NEW  256
#define US_SET_SPANS_ALL  (US_SET_WORDS * 32 + US_SET_SPANS_NEW)

/* words of a commit: ids, or those of eight parts, whichever are more */
#define US_SET_PENDING    (8 * (US_SET_IN_PLACE + 1))

/* a 24th of all, and a chunk, may be dead before a chunk is cleaned */
#define US_SET_DEAD       24

/* chunks that are partly empty, and one into which is moved */
#define US_SET_CHUNKS     2

/* chunks of which the one with the fewest living bytes is cleaned */
#define US_SET_CHOICES    8


typedef enum {
    US_SET_EMPTY = 0,
    US_SET_FULL,
    US_SET_VALUES,
    US_SET_RUNS,
    US_SET_BITS,
    US_SET_NODE
} us_set_kind_t;


/* of a container: low 16 bits of ids */

typedef struct {
    uint16_t           first;
    uint16_t           last;
} us_set_span_t;


/* a change in progress */

typedef struct {
    us_arena_t        *a;
    uint32_t           row;
    uint64_t           at;            /* of the next object */
    uint64_t           members;       /* more, or fewer */
    uint64_t           bytes;         /* of living objects: the same */
    unsigned           n;
    struct {
        uint64_t      *word;
        uint64_t       value;
        uint64_t       dead;          /* an entry that is replaced, or 0 */
    } pending[US_SET_PENDING];
    struct us_set_spans_s  *spans;    /* NULL: it changes no container */
} us_set_work_t;


typedef struct us_set_spans_s {
    us_set_span_t      news[US_SET_SPANS_NEW];
    us_set_span_t      clipped[US_SET_SPANS_NEW];
    us_set_span_t      had[US_SET_SPANS_ALL];
    us_set_span_t      has[US_SET_SPANS_ALL];
    us_set_span_t      part[US_SET_MANY + US_SET_SPANS_NEW];
} us_set_spans_t;


static inline unsigned
us_set_shift(unsigned level)
{
    return level == 0 ? US_SET_PART : US_SET_CONTAINER + 6 * (level - 1);
}


static inline unsigned
us_set_kind(uint64_t e)
{
    return e & 7;
}


static inline unsigned
us_set_n(uint64_t e)
{
    return e >> 3 & 0x1fff;
}


static inline uint64_t
us_set_entry(us_set_kind_t kind, unsigned n, uint64_t at)
{
    return kind | n << 3 | at >> 3 << 16;
}


static inline uint64_t
us_set_at(uint64_t e)
{
    return e >> 16 << 3;
}


/* of an object, with its first word */

static size_t
us_set_bytes(uint64_t e)
{
    unsigned  n;

    n = us_set_n(e);

    switch (us_set_kind(e)) {

    case US_SET_VALUES:
        return 8 + (2 * n + 7) / 8 * 8;

    case US_SET_RUNS:
        return 8 + (4 * n + 7) / 8 * 8;

    case US_SET_BITS:
        return 8 + US_SET_WORDS * 8;

    case US_SET_NODE:
        return 8 + (n == 1 ? 8 : 64) * 8;

    default:
        return 0;
    }
}


static inline uint64_t *
us_set_words(const us_arena_t *a, uint64_t e)
{
    return (uint64_t *) (a->base + us_set_at(e) + 8);
}


/* entry i of a node */

static inline uint64_t *
us_set_child(const us_arena_t *a, uint64_t e, uint64_t id)
{
    unsigned  level;

    level = us_set_n(e);

    return us_set_words(a, e)
           + (id >> us_set_shift(level - 1) & (level == 1 ? 7 : 63));
}


/* the level of what the root leads to: its ids are 0 to 1 << shift */

static inline unsigned
us_set_top(uint64_t root)
{
    return us_set_kind(root) == US_SET_NODE ? us_set_n(root) : 1;
}


/* --- readers -------------------------------------------------------------- */

static inline unsigned
us_set_value(const uint64_t *words, unsigned i)
{
    return us_acquire(&words[i / 4]) >> i % 4 * 16 & 0xffff;
}


/* values: the first that is not below; runs: the first that ends not below */

static unsigned
us_set_bound(const uint64_t *words, unsigned n, unsigned runs, unsigned value)
{
    unsigned  low, middle;

    for (low = 0; low < n; /* void */ ) {
        middle = (low + n) / 2;

        if (us_set_value(words, runs ? 2 * middle + 1 : middle) < value) {
            low = middle + 1;

        } else {
            n = middle;
        }
    }

    return low;
}


/* the first run in what an entry leads to, whose ids end before `end` */

static int
us_set_run(const us_arena_t *a, uint64_t e, uint64_t from, uint64_t end,
    us_set_run_t *run)
{
    unsigned         i, n, at;
    uint64_t         word, high;
    const uint64_t  *words;

    words = us_set_words(a, e);
    n = us_set_n(e);
    high = from >> 16 << 16;

    switch (us_set_kind(e)) {

    case US_SET_FULL:
        run->first = from;
        run->last = end - 1;
        return 1;

    case US_SET_VALUES:
        i = us_set_bound(words, n, 0, from & 0xffff);

        if (i == n) {
            return 0;
        }

        run->first = high | us_set_value(words, i);
        run->last = run->first;
        return 1;

    case US_SET_RUNS:
        i = us_set_bound(words, n, 1, from & 0xffff);

        if (i == n) {
            return 0;
        }

        run->first = high | us_set_value(words, 2 * i);
        run->first = run->first > from ? run->first : from;
        run->last = high | us_set_value(words, 2 * i + 1);
        return 1;

    case US_SET_BITS:
        at = from % 64;

        for (i = from % (1 << US_SET_PART) / 64; i < US_SET_WORDS; i++) {
            word = us_acquire(&words[i]) >> at;

            if (word) {
                at += __builtin_ctzll(word);
                word >>= __builtin_ctzll(word);
                run->first = (from >> US_SET_PART << US_SET_PART) + i * 64
                             + at;
                run->last = run->first
                            + (~word ? __builtin_ctzll(~word) : 64) - 1;
                return 1;
            }

            at = 0;
        }

        return 0;

    default:
        return 0;
    }
}


static int
us_set_seek(const us_arena_t *a, uint32_t row, uint64_t from, uint64_t to,
    us_set_run_t *run)
{
    unsigned  level;
    uint64_t  e, end;

    while (from < to) {

        /*
         * Acquire, here and below: the object was written before the entry was
         * released; and so was the LSN of the operation.
         */

        e = us_acquire(&us_set_row(a, row)->root);
        level = us_set_top(e);

        if (level >= US_SET_LEVELS || from >> us_set_shift(level)) {
            return 0;
        }

        while (us_set_kind(e) == US_SET_NODE && us_set_n(e) == level
               && level && us_set_at(e) < a->head->size - US_SET_OBJECT)
        {
            e = us_acquire(us_set_child(a, e, from));
            level--;

            if (us_set_kind(e) != US_SET_NODE) {
                break;
            }
        }

        end = ((from >> us_set_shift(level)) + 1) << us_set_shift(level);

        if (us_set_bytes(e) <= US_SET_OBJECT
            && us_set_at(e) < a->head->size - US_SET_OBJECT
            && us_set_run(a, e, from, end, run))
        {
            run->last = run->last < to ? run->last : to - 1;
            return run->first < to;
        }

        from = end;
    }

    return 0;
}


int
us_set_next(const us_arena_t *a, uint32_t row, uint64_t from, uint64_t to,
    us_set_run_t *run)
{
    int       found;
    uint64_t  reused;

    do {
        reused = us_acquire(&a->head->members_reused);
        found = us_set_seek(a, row, from, to, run);
    } while (us_acquire(&a->head->members_reused) != reused);

    return found;
}


/* --- rows, by name and by number ----------------------------------------- */

/*
 * Rows hash in two ways, by their names and by their numbers, into as many
 * buckets as the largest power of two that is not above their count.  A bucket
 * is a list of rows, and its head is in the row that has the bucket's number.
 * So there is no memory beside the rows, but 64 bits in each:
 *
 *     bits  0 .. 15   by name: 1 + the first row of this bucket
 *          16 .. 31            1 + the row that follows this one in its bucket
 *          32 .. 63   the same by number
 *
 * The lists only say where to look: a set is there if its row says so.  While
 * they are changed, head->sets_links is odd, and a reader that has not found
 * what it looks for looks at each row.  A writer that is killed leaves it odd,
 * and the next change of any set makes all lists anew.
 */

typedef enum {
    US_SET_NAME = 0,
    US_SET_NUMBER = 32
} us_set_by_t;

#define US_SET_FIRST  0
#define US_SET_NEXT   16


/* what is looked for, and what a row has: len is 0 if it is a number */

typedef struct {
    us_set_by_t        by;
    uint64_t           number;
    uint64_t           len;
    uint64_t           text[US_STORE_SET_LEN / 8];
} us_set_key_t;


static us_set_key_t
us_set_named(us_str_t name)
{
    us_set_key_t  key;

    key = (us_set_key_t) { .by = US_SET_NAME, .len = name.len };
    memcpy(key.text, name.data, name.len);

    return key;
}


/* of n rows, n > 0 */

static uint32_t
us_set_bucket(const us_arena_t *a, const us_set_key_t *key, uint64_t n)
{
    uint64_t  hash;

    hash = key->by == US_SET_NUMBER
           ? key->number
           : us_hash(a->head->hash_key, 0, (const uint8_t *) key->text,
                     key->len);

    return hash & (((uint64_t) 1 << (63 - __builtin_clzll(n))) - 1);
}


/* 1 + a row, or 0 */

static inline uint32_t
us_set_link(const us_arena_t *a, uint64_t row, unsigned shift)
{
    return us_acquire(&us_set_row(a, row)->links) >> shift & 0xffff;
}


static void
us_set_link_to(us_arena_t *a, uint32_t row, unsigned shift, uint64_t link)
{
    uint64_t  *links;

    links = &us_set_row(a, row)->links;

    us_release(links, (*links & ~((uint64_t) 0xffff << shift)) | link << shift);
}


/* a row's name is written before its number, and stays as long as that */

static uint64_t
us_set_match(const us_arena_t *a, uint32_t row, const us_set_key_t *key)
{
    size_t         i;
    uint64_t       number;
    us_set_row_t  *r;

    r = us_set_row(a, row);
    number = us_acquire(&r->number);

    if (key->by == US_SET_NUMBER) {
        return number == key->number ? number : 0;
    }

    if (number == 0 || (number & US_SET_DROPPED)
        || us_acquire(&r->len) != key->len)
    {
        return 0;
    }

    for (i = 0; i < US_STORE_SET_LEN / 8; i++) {
        if (us_acquire((uint64_t *) r->name + i) != key->text[i]) {
            return 0;
        }
    }

    return us_acquire(&r->number) == number ? number : 0;
}


static uint64_t
us_set_search(const us_arena_t *a, const us_set_key_t *key, uint32_t *row)
{
    uint32_t  link;
    uint64_t  i, n, links, number;

    links = us_acquire(&a->head->sets_links);
    n = us_acquire(&a->head->sets_rows);

    if (n && !(links & 1)) {

        link = us_set_link(a, us_set_bucket(a, key, n),
                           key->by + US_SET_FIRST);

        /* a list that changes meanwhile may lead on to another one */

        for (i = 0; i < n && link; i++) {
            *row = link - 1;
            number = us_set_match(a, *row, key);

            if (number) {
                return number;
            }

            link = us_set_link(a, *row, key->by + US_SET_NEXT);
        }
    }

    if (!(links & 1) && us_acquire(&a->head->sets_links) == links) {
        return 0;
    }

    n = us_acquire(&a->head->sets_rows);

    for (*row = 0; *row < n; (*row)++) {
        number = us_set_match(a, *row, key);

        if (number) {
            return number;
        }
    }

    return 0;
}


uint64_t
us_set_find(const us_arena_t *a, us_str_t name, uint32_t *row)
{
    us_set_key_t  key;

    if (name.len == 0 || name.len > US_STORE_SET_LEN) {
        return 0;
    }

    key = us_set_named(name);

    return us_set_search(a, &key, row);
}


uint64_t
us_set_find_number(const us_arena_t *a, uint64_t number, uint32_t *row)
{
    us_set_key_t  key;

    if (number == 0) {
        return 0;
    }

    key = (us_set_key_t) { .by = US_SET_NUMBER, .number = number };

    return us_set_search(a, &key, row);
}


/* puts a row into its bucket, or takes it out */

static void
us_set_list(us_arena_t *a, uint32_t row, const us_set_key_t *key, int in)
{
    unsigned  shift;
    uint32_t  at;

    at = us_set_bucket(a, key, a->head->sets_rows);
    shift = key->by + US_SET_FIRST;

    if (in) {
        us_set_link_to(a, row, key->by + US_SET_NEXT,
                       us_set_link(a, at, shift));
        us_set_link_to(a, at, shift, row + 1);
        return;
    }

    while (us_set_link(a, at, shift) != row + 1) {
        at = us_set_link(a, at, shift) - 1;
        shift = key->by + US_SET_NEXT;
    }

    us_set_link_to(a, at, shift, us_set_link(a, row, key->by + US_SET_NEXT));
}


static void
us_set_list_both(us_arena_t *a, uint32_t row, int in)
{
    us_set_key_t   key;
    us_set_row_t  *r;

    r = us_set_row(a, row);

    key = us_set_named((us_str_t) { r->len, r->name });
    us_set_list(a, row, &key, in);

    key = (us_set_key_t) { .by = US_SET_NUMBER, .number = r->number };
    us_set_list(a, row, &key, in);
}


void
us_sets_link_locked(us_arena_t *a)
{
    uint32_t       row;
    us_head_t     *h;
    us_set_row_t  *r;

    h = a->head;
    us_release(&h->sets_links, h->sets_links | 1);

    for (row = 0; row < h->sets_rows; row++) {
        us_release(&us_set_row(a, row)->links, 0);
    }

    for (row = 0; row < h->sets_rows; row++) {
        r = us_set_row(a, row);

        if (r->number && !(r->number & US_SET_DROPPED)) {
            us_set_list_both(a, row, 1);
        }
    }

    us_release(&h->sets_links, h->sets_links + 1);
}


/* around a commit that changes which sets there are, and their lists */

static void
us_sets_links_begin(us_arena_t *a)
{
    us_head_t  *h;

    h = a->head;

    if (h->sets_links & 1) {
        us_sets_link_locked(a);
    }

    us_release(&h->sets_links, h->sets_links + 1);
}


static void
us_sets_links_end(us_arena_t *a)
{
    us_release(&a->head->sets_links, a->head->sets_links + 1);
}


/* --- memory --------------------------------------------------------------- */

/* by chunk of the zone: 0: it is no chunk of sets; else living bytes, and 1 */

static inline uint32_t *
us_set_living(const us_arena_t *a, uint64_t chunk)
{
    return us_area_entry(a, US_AREA_MEMBERS, chunk);
}


static void
us_set_live(us_arena_t *a, uint64_t at, int64_t bytes)
{
    int64_t    n;
    uint32_t  *living;

    living = us_set_living(a, at >> a->chunk_shift);
    n = (int64_t) *living + bytes;

    __atomic_store_n(living, n > 1 ? (uint32_t) n : 1, __ATOMIC_RELAXED);
}


/* memory for an object, at w->at, which then is past it; 0: there is none */

static uint64_t
us_set_alloc(us_set_work_t *w, size_t size, unsigned level, uint64_t id)
{
    uint64_t     at, chunk;
    us_head_t   *h;
    us_arena_t  *a;

    a = w->a;
    h = a->head;

    if (w->at + size > h->members_end) {

        chunk = us_arena_take_locked(a, US_AREA_MEMBERS, 1);

        if (chunk == 0) {
            return 0;
        }

        /* the end of the objects of the chunk before */

        if (w->at < h->members_end) {
            us_release((uint64_t *) (a->base + w->at), 0);
        }

        us_intend32_locked(a, us_set_living(a, chunk >> a->chunk_shift), 1);
        us_intend_locked(a, &h->members_at, chunk);
        us_intend_locked(a, &h->members_end,
                         chunk + ((uint64_t) 1 << a->chunk_shift));
        us_commit_locked(a);

        w->at = chunk;
    }

    at = w->at;
    w->at += size;

    us_release((uint64_t *) (a->base + at),
               size / 8 | level << 9 | (uint64_t) w->row << 12
               | id >> us_set_shift(level) << 28);

    us_set_live(a, at, size);
    w->bytes += size;

    return at;
}


/* intends what a change of a set always has */

static void
us_set_count(us_set_work_t *w)
{
    us_head_t     *h;
    us_arena_t    *a;
    us_set_row_t  *row;

    a = w->a;
    h = a->head;
    row = us_set_row(a, w->row);

    us_intend_locked(a, &h->members_at, w->at);
    us_intend_locked(a, &h->members_live, h->members_live + w->bytes);
    us_intend_locked(a, &row->bytes, row->bytes + w->bytes);
    us_intend_locked(a, &row->members, row->members + w->members);

    w->bytes = 0;
    w->members = 0;
}


static void
us_set_begin(us_set_work_t *w, us_arena_t *a, uint32_t row,
    us_set_spans_t *spans)
{
    w->a = a;
    w->spans = spans;
    w->row = row;
    w->at = a->head->members_at;
    w->members = 0;
    w->bytes = 0;
    w->n = 0;
}


static void
us_set_later(us_set_work_t *w, uint64_t *word, uint64_t value, uint64_t dead)
{
    w->pending[w->n].word = word;
    w->pending[w->n].value = value;
    w->pending[w->n++].dead = dead;
    w->bytes -= us_set_bytes(dead);
}


/* commits; what is intended comes before it */

static void
us_set_commit(us_set_work_t *w)
{
    unsigned  i;

    us_set_count(w);

    for (i = 0; i < w->n; i++) {
        us_intend_locked(w->a, w->pending[i].word, w->pending[i].value);
    }

    us_commit_locked(w->a);

    for (i = 0; i < w->n; i++) {
        if (us_set_bytes(w->pending[i].dead)) {
            us_set_live(w->a, us_set_at(w->pending[i].dead),
                        -(int64_t) us_set_bytes(w->pending[i].dead));
        }
    }

    w->n = 0;
}


/* where the entry of such an object is, or would be; NULL: there is no node */

static uint64_t *
us_set_place(const us_arena_t *a, uint32_t row, unsigned level, uint64_t id)
{
    unsigned   top;
    uint64_t  *p;

    p = &us_set_row(a, row)->root;
    top = us_set_top(*p);

    if (level > top || id >> us_set_shift(top)) {
        return NULL;
    }

    for ( /* void */ ; top > level; top--) {

        if (us_set_kind(*p) != US_SET_NODE) {
            return NULL;
        }

        p = us_set_child(a, *p, id);
    }

    return p;
}


/*
 * The chunk to clean, of some that follow the last one; 0: there is none.
 * Objects that are moved may leave the end of another chunk unused, which has
 * less than US_SET_OBJECT bytes.  So a chunk is cleaned only if more than these
 * are dead in it, and a 64th of the chunk unless memory is short: each cleaning
 * then gives memory back, and cleaning ends.
 */

static uint64_t
us_sets_victim(us_arena_t *a, int spare)
{
    uint32_t    n, least;
    unsigned    choices;
    uint64_t    i, chunk, max, victim;
    us_head_t  *h;

    h = a->head;
    max = h->area[US_AREA_MEMBERS].max;
    chunk = h->members_cursor;
    victim = 0;
    least = ((uint32_t) 1 << a->chunk_shift) - US_SET_OBJECT
            - (spare ? (uint32_t) 1 << a->chunk_shift >> 6 : 0);
    choices = 0;

    for (i = 0; i < max && choices < US_SET_CHOICES; i++) {
        chunk = chunk >= h->chunks_low && chunk + 1 < max ? chunk + 1
                                                          : h->chunks_low;
        n = *us_set_living(a, chunk);

        if (n == 0
            || chunk == (h->members_end - 1) >> a->chunk_shift)
        {
            continue;
        }

        choices++;

        if (n < least) {
            least = n;
            victim = chunk;
        }
    }

    us_release(&h->members_cursor, chunk);

    return victim;
}


/*
 * Moves what lives in a chunk to the end of the log, and gives it back.
 * Returns the bytes that it moved; -1: there is no room for them.
 */

static ssize_t
us_sets_clean(us_arena_t *a, uint64_t chunk)
{
    size_t          i, size;
    ssize_t         moved;
    unsigned        level;
    uint64_t        at, to, end, head, e, id, *p, *from;
    us_head_t      *h;
    us_set_work_t   w;

    h = a->head;
    at = chunk << a->chunk_shift;
    end = at + ((uint64_t) 1 << a->chunk_shift);

    for (moved = 0; at < end; at += size) {
        from = (uint64_t *) (a->base + at);
        head = *from;
        size = (head & 0x1ff) * 8;

        if (size == 0 || size > end - at) {
            break;
        }

        level = head >> 9 & 7;
        id = head >> 28 << us_set_shift(level);

        if ((head >> 12 & 0xffff) >= h->sets_rows) {
            continue;
        }

        us_set_begin(&w, a, head >> 12 & 0xffff, NULL);
        p = us_set_place(a, w.row, level, id);

        if (p == NULL || us_set_at(*p) != at) {
            continue;
        }

        e = *p;
        to = us_set_alloc(&w, size, level, id);

        if (to == 0) {
            return -1;
        }

        for (i = 1; i < size / 8; i++) {
            us_release((uint64_t *) (a->base + to) + i, from[i]);
        }

        us_set_later(&w, p, us_set_entry(us_set_kind(e), us_set_n(e), to), e);
        us_set_commit(&w);

        moved += size;
    }

    /*
     * A commit of its own: a reader that finds other bytes in the chunk also
     * finds that the number has changed.
     */

    us_intend_locked(a, &h->members_reused, h->members_reused + 1);
    us_commit_locked(a);

    us_intend32_locked(a, us_set_living(a, chunk), 0);
    us_arena_give(a, US_AREA_MEMBERS, chunk);

    return moved;
}


/*
 * Cleans while too much is dead, or anything in a zone that is nearly full.
 * What it does at once is bounded; 1: there is more to do.
 */

static int
us_sets_tidy(us_arena_t *a)
{
    int         spare;
    size_t      done;
    ssize_t     n;
    uint64_t    most, chunk;
    us_head_t  *h;

    h = a->head;
    most = (uint64_t) 1 << a->chunk_shift;
    spare = us_arena_fits(a, US_SET_AT_ONCE, 0);

    if (spare) {
        most += us_area_bytes(a, US_AREA_MEMBERS) / US_SET_DEAD;
    }

    for (done = 0; done < US_SET_MOVED; done += n + US_SET_MOVED / 64) {

        /* bytes that are dead, or past the last object of a chunk before */

        if (us_area_bytes(a, US_AREA_MEMBERS) - h->members_live
            - (h->members_end - h->members_at) <= most)
        {
            return 0;
        }

        chunk = us_sets_victim(a, spare);
        n = chunk ? us_sets_clean(a, chunk) : -1;

        if (n == -1) {
            return 0;
        }
    }

    return 1;
}


/* chunks of this size that suffice, however the objects lie in them */

uint64_t
us_sets_chunks(const us_arena_t *a, unsigned chunk_shift)
{
    return a->head->members_live
           ? a->head->members_live
             / (((uint64_t) 1 << chunk_shift) - US_SET_OBJECT)
             + US_SET_CHUNKS : 0;
}


uint64_t
us_sets_slack(const us_arena_t *a)
{
    uint64_t  need, have;

    need = us_sets_chunks(a, a->chunk_shift);
    have = a->head->area[US_AREA_MEMBERS].n;

    return need > have ? need - have : 0;
}


/* --- changes -------------------------------------------------------------- */

/* the spans of a container, or of the part that begins with `base` */

static unsigned
us_set_decode(const us_arena_t *a, uint64_t e, unsigned level, unsigned base,
    us_set_span_t *spans)
{
    unsigned       n;
    unsigned       i;
    uint64_t       from, end;
    us_set_run_t   run;

    from = base;
    end = base + ((uint64_t) 1 << us_set_shift(level));

    for (n = 0, i = 0; from < end; from = run.last + 1, i++) {

        if (us_set_kind(e) != US_SET_VALUES) {

            if (!us_set_run(a, e, from, end, &run)) {
                break;
            }

        } else if (i == us_set_n(e)) {
            break;

        } else {
            run.first = us_set_value(us_set_words(a, e), i);
            run.last = run.first;
        }

        if (n && spans[n - 1].last + 1u == run.first) {
            spans[n - 1].last = (uint16_t) run.last;

        } else {
            spans[n].first = (uint16_t) run.first;
            spans[n++].last = (uint16_t) run.last;
        }
    }

    return n;
}


static unsigned
us_set_values(const us_set_span_t *spans, unsigned n)
{
    unsigned  i, values;

    for (i = 0, values = 0; i < n; i++) {
        values += spans[i].last - spans[i].first + 1;
    }

    return values;
}


/* what is in one of the two */

static unsigned
us_set_union(const us_set_span_t *x, unsigned nx, const us_set_span_t *y,
    unsigned ny, us_set_span_t *out)
{
    unsigned              n;
    const us_set_span_t  *next;

    for (n = 0; nx || ny; /* void */ ) {

        if (ny == 0 || (nx && x->first <= y->first)) {
            next = x++;
            nx--;

        } else {
            next = y++;
            ny--;
        }

        if (n && next->first <= out[n - 1].last + 1u) {
            out[n - 1].last = next->last > out[n - 1].last ? next->last
                                                           : out[n - 1].last;
        } else {
            out[n++] = *next;
        }
    }

    return n;
}


/* what is in the first and not in the second */

static unsigned
us_set_less(const us_set_span_t *x, unsigned nx, const us_set_span_t *y,
    unsigned ny, us_set_span_t *out)
{
    unsigned  i, n, first;

    for (i = 0, n = 0; i < nx; i++) {
        first = x[i].first;

        while (ny && y->last < first) {
            y++;
            ny--;
        }

        for ( /* void */ ; ny && y->first <= x[i].last; y++, ny--) {

            if (y->first > first) {
                out[n].first = (uint16_t) first;
                out[n++].last = y->first - 1;
            }

            first = y->last + 1u;

            if (y->last >= x[i].last) {
                break;
            }
        }

        if (first <= x[i].last) {
            out[n].first = (uint16_t) first;
            out[n++].last = x[i].last;
        }
    }

    return n;
}


/* the spans in the part that begins with `base` */

static unsigned
us_set_clip(const us_set_span_t *spans, unsigned n, unsigned base,
    us_set_span_t *out)
{
    unsigned  i, k, last;

    last = base + (1 << US_SET_PART) - 1;

    for (i = 0, k = 0; i < n && spans[i].first <= last; i++) {

        if (spans[i].last < base) {
            continue;
        }

        out[k].first = spans[i].first > base ? spans[i].first
                                             : (uint16_t) base;
        out[k++].last = spans[i].last < last ? spans[i].last : (uint16_t) last;
    }

    return k;
}


/* the smallest kind of a container or a part, as an entry without an offset */

static uint64_t
us_set_choose(const us_set_span_t *spans, unsigned n, unsigned level)
{
    int       runs;
    unsigned  values;

    values = us_set_values(spans, n);
    runs = 2 * n < values;

    if (values == 0 || values == 1u << us_set_shift(level)) {
        return values ? US_SET_FULL : US_SET_EMPTY;
    }

    if (level && values > US_SET_MANY && n > US_SET_FEW) {
        return us_set_entry(US_SET_NODE, 1, 0);
    }

    if (level == 0 && (runs ? 4 * n : 2 * values) >= US_SET_WORDS * 8) {
        return us_set_entry(US_SET_BITS, 0, 0);
    }

    return runs ? us_set_entry(US_SET_RUNS, n, 0)
                : us_set_entry(US_SET_VALUES, values, 0);
}


/* writes spans as what `e` says; the entry that leads to it, or 0: no room */

static uint64_t
us_set_write(us_set_work_t *w, uint64_t e, unsigned level, uint64_t id,
    const us_set_span_t *spans, unsigned n)
{
    size_t     i, k, v, size;
    uint64_t   at, *words, out[US_SET_OBJECT / 8];
    uint16_t  *values;

    size = us_set_bytes(e);
    at = us_set_alloc(w, size, level, id);

    if (at == 0) {
        return 0;
    }

    memset(out, 0, size);
    values = (uint16_t *) out;

    for (i = 0, k = 0; i < n; i++) {

        if (us_set_kind(e) == US_SET_RUNS) {
            values[k++] = spans[i].first;
            values[k++] = spans[i].last;
            continue;
        }

        for (v = spans[i].first; v <= spans[i].last; v++) {

            if (us_set_kind(e) == US_SET_VALUES) {
                values[k++] = (uint16_t) v;

            } else {
                out[v % (1 << US_SET_PART) / 64] |= (uint64_t) 1 << v % 64;
            }
        }
    }

    words = (uint64_t *) (w->a->base + at) + 1;

    for (i = 0; i < size / 8 - 1; i++) {
        us_release(&words[i], out[i]);
    }

    return e | us_set_entry(0, 0, at);
}


/* a container as eight parts */

static uint64_t
us_set_split(us_set_work_t *w, uint64_t id, const us_set_span_t *spans,
    unsigned n)
{
    unsigned   i, k, base;
    uint64_t   e, at, *words;

    at = us_set_alloc(w, 8 + 8 * 8, 1, id);

    if (at == 0) {
        return 0;
    }

    words = (uint64_t *) (w->a->base + at) + 1;

    for (i = 0; i < 8; i++) {
        base = i << US_SET_PART;
        k = us_set_clip(spans, n, base, w->spans->part);
        e = us_set_choose(w->spans->part, k, 0);

        if (us_set_kind(e) > US_SET_FULL) {
            e = us_set_write(w, e, 0, id + base, w->spans->part, k);

            if (e == 0) {
                return 0;
            }
        }

        us_release(&words[i], e);
    }

    return us_set_entry(US_SET_NODE, 1, at);
}


/*
 * Puts spans into a part that is bits, where they are.  0: it is better copied,
 * as they are many, or it would be full then.
 */

static int
us_set_bits(us_set_work_t *w, uint64_t e, const us_set_span_t *spans,
    unsigned n)
{
    unsigned   i, k, v, end, count;
    uint64_t   all, mask, *words;

    struct {
        unsigned  at;
        uint64_t  value;
    } changed[US_SET_IN_PLACE];

    words = us_set_words(w->a, e);

    for (i = 0, k = 0; i < n; i++) {
        end = spans[i].last % (1 << US_SET_PART) + 1;

        for (v = spans[i].first % (1 << US_SET_PART); v < end;
             v = v / 64 * 64 + 64)
        {
            mask = ~(uint64_t) 0 << v % 64;
            mask &= end - v / 64 * 64 < 64
                    ? ((uint64_t) 1 << end % 64) - 1 : ~(uint64_t) 0;

            if (k == 0 || changed[k - 1].at != v / 64) {

                if (k == US_SET_IN_PLACE) {
                    return 0;
                }

                changed[k].at = v / 64;
                changed[k++].value = words[v / 64];
            }

            changed[k - 1].value |= mask;
        }
    }

    for (i = 0, all = 0; i < k; i++) {
        all |= ~changed[i].value ? 0 : 1;
    }

    for (i = 0, count = k; all && i < US_SET_WORDS; i++) {
        count += ~words[i] == 0;
    }

    if (count >= US_SET_WORDS) {
        return 0;
    }

    for (i = 0; i < k; i++) {
        all = words[changed[i].at];

        if (changed[i].value != all) {
            w->members += __builtin_popcountll(changed[i].value ^ all);
            us_set_later(w, &words[changed[i].at], changed[i].value, 0);
        }
    }

    return 1;
}


/* spans in or out of what the entry at p leads to; -1: there is no room */

static int
us_set_change(us_set_work_t *w, uint64_t *p, unsigned level, uint64_t id,
    const us_set_span_t *spans, unsigned n, int in)
{
    unsigned         i, k, had, has, base;
    uint64_t         e, to;
    us_set_spans_t  *sp;

    e = *p;
    sp = w->spans;

    if (us_set_kind(e) == US_SET_NODE) {

        for (i = 0; i < 8; i++) {
            base = i << US_SET_PART;
            k = us_set_clip(spans, n, base, sp->clipped);

            if (k && us_set_change(w, us_set_child(w->a, e, id + base), 0,
                                   id + base, sp->clipped, k, in)
                     != 0)
            {
                return -1;
            }
        }

        return 0;
    }

    if (in && us_set_kind(e) == US_SET_BITS && us_set_bits(w, e, spans, n)) {
        return 0;
    }

    had = us_set_decode(w->a, e, level, id & 0xffff, sp->had);
    has = in ? us_set_union(sp->had, had, spans, n, sp->has)
             : us_set_less(sp->had, had, spans, n, sp->has);

    i = us_set_values(sp->had, had);
    k = us_set_values(sp->has, has);

    if (i == k) {
        return 0;
    }

    to = us_set_choose(sp->has, has, level);

    if (us_set_kind(to) == US_SET_NODE) {
        to = us_set_split(w, id, sp->has, has);

    } else if (us_set_kind(to) > US_SET_FULL) {
        to = us_set_write(w, to, level, id, sp->has, has);
    }

    if (to == 0 && k) {
        return -1;
    }

    w->members += (uint64_t) k - i;
    us_set_later(w, p, to, e);

    return 0;
}


/* a node, whose first entry is given; commits it; -1: no room */

static int
us_set_node(us_set_work_t *w, uint64_t *p, unsigned level, uint64_t id,
    uint64_t first)
{
    unsigned   i;
    uint64_t   at, *words;

    at = us_set_alloc(w, 8 + 64 * 8, level, id);

    if (at == 0) {
        return -1;
    }

    words = (uint64_t *) (w->a->base + at) + 1;

    for (i = 0; i < 64; i++) {
        us_release(&words[i], i ? 0 : first);
    }

    us_intend_locked(w->a, p, us_set_entry(US_SET_NODE, level, at));
    us_set_count(w);
    us_commit_locked(w->a);

    return 0;
}


/* where the entry of an id's container is; NULL: no room for its nodes */

static uint64_t *
us_set_reach(us_set_work_t *w, uint64_t id)
{
    unsigned   top;
    uint64_t  *p, *root;

    root = &us_set_row(w->a, w->row)->root;

    for (top = us_set_top(*root); id >> us_set_shift(top); top++) {

        if (*root == 0) {
            continue;
        }

        if (us_set_node(w, root, top + 1, 0, *root) != 0) {
            return NULL;
        }
    }

    for (p = root; top > 1; top--) {

        if (*p == 0 && us_set_node(w, p, top, id, 0) != 0) {
            return NULL;
        }

        p = us_set_child(w->a, *p, id);
    }

    return p;
}


/*
 * The nodes that lead to these runs, all of them before any change is pending:
 * a new level moves what the root leads to, and the commit of a node counts
 * what is pending.  Returns to how many runs nodes lead.
 */

static size_t
us_set_lead(us_set_work_t *w, const us_set_run_t *runs, size_t n)
{
    size_t    i;
    uint64_t  id;

    for (i = 0; i < n; i++) {
        for (id = runs[i].first; id <= runs[i].last; id = (id | 0xffff) + 1) {

            if (us_set_reach(w, id) == NULL) {
                return i;
            }
        }
    }

    return n;
}


size_t
us_set_run_write(uint8_t *p, uint64_t last, const us_set_run_t *run)
{
    size_t  n;

    n = us_number_write(p, (run->first - (last + 1)) << 1
                           | (run->last != run->first));

    if (run->last != run->first) {
        n += us_number_write(p + n, run->last - run->first);
    }

    return n;
}


int
us_set_run_read(const uint8_t **p, const uint8_t *end, uint64_t last,
    us_set_run_t *run)
{
    uint64_t  n, more;

    if (*p == end) {
        return 0;
    }

    more = 0;

    if (us_number_read(p, end, &n) <= 0
        || ((n & 1) && us_number_read(p, end, &more) <= 0)
        || n >> 1 >= US_SET_ID_MAX || more >= US_SET_ID_MAX)
    {
        return -1;
    }

    run->first = last + 1 + (n >> 1);
    run->last = run->first + more;

    return run->last < US_SET_ID_MAX ? 1 : -1;
}


/* commits the operation of ids, and their change */

static void
us_set_publish(us_set_work_t *w, const us_set_run_t *ids, size_t n, int in)
{
    size_t    i;
    uint8_t   bytes[US_SET_AT_ONCE * 10];
    us_op_t   op;
    uint64_t  last;

    op = us_op(in ? US_OP_SET_IN : US_OP_SET_OUT,
               us_set_row(w->a, w->row)->number, bytes, 0);
    last = US_STORE_NO_ID;

    for (i = 0; i < n; i++) {
        op.bytes.len += us_set_run_write(bytes + op.bytes.len, last, &ids[i]);
        last = ids[i].last;
    }

    us_ring_put_locked(w->a, &op);

    /* the keys first: who finds a member finds whose it is */

    for (i = 0; in && i < n; i++) {
        us_keys_put_locked(w->a, US_KEYS_IN, op.id, ids[i].first);
    }

    us_set_commit(w);
}


/*
 * The spans of one container, from id *first in run *k on, both of which then
 * are what follows.
 */

static unsigned
us_set_gather(const us_set_run_t *runs, size_t n, size_t *k, uint64_t *first,
    us_set_span_t *spans)
{
    unsigned  i;
    uint64_t  last;

    last = *first | 0xffff;

    for (i = 0; i < US_SET_SPANS_NEW && *k < n && *first <= last; i++) {
        spans[i].first = (uint16_t) *first;
        spans[i].last = runs[*k].last < last ? (uint16_t) runs[*k].last
                                             : 0xffff;

        if (runs[*k].last > last) {
            *first = last + 1;

        } else if (++*k < n) {
            *first = runs[*k].first;
        }
    }

    return i;
}


size_t
us_set_change_locked(us_arena_t *a, uint32_t row, const us_set_run_t *runs,
    size_t n, int in, int journal)
{
    int              full;
    size_t           i, k, end, was, led;
    unsigned         ns, pending;
    uint64_t         first, id, at, members, bytes, *p;
    us_set_work_t    w;
    us_set_spans_t   spans;

    first = n ? runs[0].first : 0;
    full = 0;

    for (i = 0; i < n && !full; i = k) {

        (void) us_sets_tend_locked(a);
        us_set_begin(&w, a, row, &spans);

        end = a->head->key ? US_KEYS_AT_ONCE : US_SET_AT_ONCE;
        end = !journal || n - i < end ? n : i + end;

        if (journal && in) {
            led = us_set_lead(&w, &runs[i], end - i);
            full = led < end - i;
            end = i + led;
        }

        for (k = i; k < end; /* void */ ) {
            was = k;
            members = w.members;
            bytes = w.bytes;
            pending = w.n;
            id = first >> US_SET_CONTAINER << US_SET_CONTAINER;
            ns = us_set_gather(runs, end, &k, &first, spans.news);

            p = in ? us_set_reach(&w, id) : us_set_place(a, row, 1, id);
            at = w.at;

            if (p == NULL ? in
                          : us_set_change(&w, p, 1, id, spans.news, ns, in)
                            != 0)
            {
                /* what is written since is dead; its chunk has counted it */

                if ((w.at - 1) >> a->chunk_shift == at >> a->chunk_shift) {
                    us_set_live(a, at, -(int64_t) (w.at - at));
                }

                w.members = members;
                w.bytes = bytes;
                w.n = pending;
                k = was;
                full = 1;
                break;
            }

            if (!journal) {
                break;
            }
        }

        if (k < n && k == end) {
            first = runs[k].first;
        }

        if (!journal) {
            us_set_commit(&w);

        } else if (k > i) {
            us_set_publish(&w, &runs[i], k - i, in);
        }
    }

    return i;
}


/* --- sets ----------------------------------------------------------------- */

/* commits a row's number, with what is intended */

static void
us_set_number(us_arena_t *a, uint32_t row, uint64_t number)
{
    us_head_t  *h;

    h = a->head;

    us_intend_locked(a, &h->sets_last,
                     number > h->sets_last ? number : h->sets_last);
    us_intend_locked(a, &us_set_row(a, row)->number, number);
    us_commit_locked(a);
}


int
us_set_make_locked(us_arena_t *a, uint64_t number, us_str_t name,
    uint64_t created, const us_op_t *op, uint32_t *row)
{
    size_t          i;
    uint64_t        n, text[US_STORE_SET_LEN / 8];
    us_head_t      *h;
    us_set_row_t   *r;

    h = a->head;
    n = h->sets_rows;
    *row = h->sets + h->sets_dropped < n ? 0 : n;

    while (*row < n && us_set_row(a, *row)->number) {
        (*row)++;
    }

    if (*row == n
        && (n == US_SET_ROWS
            || ((n + 1) * sizeof(us_set_row_t) > us_area_bytes(a, US_AREA_SETS)
                && us_arena_grow_locked(a, US_AREA_SETS, 1) != 0)))
    {
        return -1;
    }

    /* no reader looks at a row without a number */

    r = us_set_row(a, *row);
    memset(text, 0, sizeof(text));
    memcpy(text, name.data, name.len);

    for (i = 0; i < US_STORE_SET_LEN / 8; i++) {
        us_release((uint64_t *) r->name + i, text[i]);
    }

    us_release(&r->len, name.len);
    us_release(&r->root, 0);
    us_release(&r->members, 0);
    us_release(&r->bytes, 0);
    us_release(&r->created, created);
    us_release(&r->asked, 0);

    if (op) {
        us_ring_put_locked(a, op);
    }

    us_sets_links_begin(a);

    us_intend_locked(a, &h->sets, h->sets + 1);
    us_intend_locked(a, &h->sets_rows, *row == n ? n + 1 : n);
    us_set_number(a, *row, number);

    if (*row == n && (n & (n + 1)) == 0) {
        us_sets_link_locked(a);              /* twice as many buckets */

    } else {
        us_set_list_both(a, *row, 1);
        us_sets_links_end(a);
    }

    return 0;
}


void
us_set_renumber_locked(us_arena_t *a, uint32_t row, uint64_t number,
    uint64_t created)
{
    us_sets_links_begin(a);
    us_set_list_both(a, row, 0);

    us_intend_locked(a, &us_set_row(a, row)->created, created);
    us_set_number(a, row, number);

    us_set_list_both(a, row, 1);
    us_sets_links_end(a);
}


void
us_set_drop_locked(us_arena_t *a, uint32_t row, const us_op_t *op)
{
    us_head_t     *h;
    us_set_row_t  *r;

    h = a->head;
    r = us_set_row(a, row);

    if (op) {
        us_ring_put_locked(a, op);
    }

    us_sets_links_begin(a);
    us_set_list_both(a, row, 0);

    us_intend_locked(a, &r->number, r->number | US_SET_DROPPED);
    us_intend_locked(a, &h->sets, h->sets - 1);
    us_intend_locked(a, &h->sets_dropped, h->sets_dropped + 1);
    us_commit_locked(a);

    us_sets_links_end(a);
}


/* frees an object of a dropped set; 0: it has none */

static int
us_set_prune(us_arena_t *a, uint32_t row)
{
    unsigned        i, n;
    uint64_t       *p, *child;
    us_set_work_t   w;

    p = &us_set_row(a, row)->root;

    if (*p == 0) {
        return 0;
    }

    for ( /* void */ ; us_set_kind(*p) == US_SET_NODE; p = child + i) {
        child = us_set_words(a, *p);
        n = us_set_n(*p) == 1 ? 8 : 64;

        for (i = 0; i < n && child[i] == 0; i++) { /* void */ }

        if (i == n) {
            break;
        }
    }

    us_set_begin(&w, a, row, NULL);
    us_set_later(&w, p, 0, *p);
    us_set_commit(&w);

    return 1;
}


int
us_sets_tend_locked(us_arena_t *a)
{
    unsigned       i;
    uint32_t       row;
    us_head_t     *h;
    us_set_row_t  *r;

    h = a->head;

    if (h->sets_links & 1) {
        us_sets_link_locked(a);
    }

    for (row = 0, i = 0;
         h->sets_dropped && row < h->sets_rows && i < US_SET_SLICE;
         row++)
    {
        r = us_set_row(a, row);

        if (!(r->number & US_SET_DROPPED)) {
            continue;
        }

        while (i < US_SET_SLICE && us_set_prune(a, row)) {
            i++;
        }

        if (r->root == 0) {
            us_intend_locked(a, &h->sets_dropped, h->sets_dropped - 1);
            us_intend_locked(a, &r->number, 0);
            us_commit_locked(a);
        }
    }

    return i || us_sets_tidy(a) || h->sets_dropped;
}
