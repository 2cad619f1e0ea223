
/*
 * Replay: operations from a journal or a dump.
 *
 * A store that is empty when the first operation comes is built in bulk, since
 * nobody reads it yet.  Records go to the log; deletes and marks are bits; the
 * index is made of many records at once (us_bulk.h), and of the last ones when
 * the store is settled.  From then on readers may be at work, and each further
 * add is put into the index by itself, under the lock.
 *
 *     records --> decoded, hashed --> collected --> merged into the index
 *                 16,384 at once,                   when there are enough,
 *                 on both cores                     or no more
 *
 * A record that is erased is needed before, if it was not merged yet, or if it
 * was deleted since.  So all is merged then; which is once for a pass, as its
 * ids were given and deleted before it (us_erase.c).
 *
 * When the zone turns out to be too small, no further operation is applied to
 * it.  If nobody has looked at the store yet, what it has is moved to private
 * memory of twice the size, where the replay goes on, perhaps from there to
 * memory that is larger again.  So a SIZE that suffices can be reported.
 *
 * Sites.  Two threads decode the records, without an index, so neither can
 * look up whether a URL is the first of its site.  Most URLs are not: a table
 * of the sites met last has theirs.  Every other URL is a candidate.  When a
 * merge begins, candidates are grouped by 128 bits of keyed hashes of their
 * sites, and each site is looked up once.
 */


#include "us_store_private.h"
#include "../us_process.h"
#include "../us_wipe.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


#define US_REPLAY_SITES   16384       /* sites met last, of a thread */
#define US_REPLAY_SITE    47          /* longer ones are not kept there */

/* records that are hashed at once, and in a piece; tuned with bench/replay */
#define US_REPLAY_BATCH   16384
#define US_REPLAY_PIECE   512

/* words of deleted ids in a piece */
#define US_REPLAY_WORDS   64

/* ids between two merges, beside the limit of their memory */
#define US_REPLAY_IDS     ((uint64_t) 1 << 24)

/* candidates are in parts by the first byte of their hash */
#define US_REPLAY_PARTS   256

/* entries of a cache that an image had, for each record that goes there, too */
#define US_REPLAY_CACHED  4


typedef struct {
    uint64_t            first;        /* id, or one that stands for it */
    uint8_t             len;          /* + 128: with "www." before it */
    uint8_t             text[US_REPLAY_SITE];
} us_replay_site_t;


/* a URL that may be the first of its site */

typedef struct {
    uint64_t            hash;         /* of the site */
    uint64_t            check;        /* another one */
    uint64_t            id;
} us_replay_first_t;


/* what a thread has of its own */

typedef struct {
    us_store_t         *store;        /* a handle; NULL: no such thread */
    us_replay_site_t   *sites;
    us_replay_first_t  *firsts;
    size_t              n;
    size_t              size;
    uint64_t            found;        /* sites that begin in this merge */
    int                 failed;
} us_replay_side_t;


/* a piece of some work: from .. to - 1; -1: no memory */
typedef int (*us_replay_pt)(us_store_t *s, unsigned side, uint64_t from,
    uint64_t to);


struct us_replay_s {
    int                 rc;           /* US_REPLAY_NO_ROOM: from then on, */
    us_store_t         *larger;       /* the replay goes on here, or NULL */
    uint64_t            map;          /* bytes of the longest one */

    /* until the store is settled */

    us_bulk_t          *bulk;
    us_replay_side_t    sides[US_BULK_THREADS];
    us_replay_pt        piece;        /* what both threads do */
    uint64_t            each;         /* of a piece */
    uint64_t            next;         /* atomic: the next piece begins here */
    uint64_t            end;

    uint64_t            hashed;       /* ids that have been collected */
    uint64_t            merged;       /* ids that the index has */
    uint64_t            image;        /* of these, by an image */
    unsigned            reading:1;    /* its leaves */
    unsigned            forget:1;     /* sites met may have no URL any more */
    uint64_t            ahead;        /* ids below were deleted beforehand */
    uint64_t            expect;
    uint8_t            *cache;        /* to be restored */
    uint64_t            cache_size;
    uint64_t           *first;        /* of an id's site; sites=on */

    us_replay_first_t  *all;          /* of a merge: by hash */
    size_t              parts[US_REPLAY_PARTS + 1];

    uint64_t           *gone;         /* bits: merged ids, deleted since */
    uint64_t            ngone;
    uint64_t           *less;         /* first ids of their sites; sites=on */
    uint64_t            nless;        /* atomic */
};


/* frees what is needed until the store is settled */

static void
us_replay_settled(us_store_t *s)
{
    unsigned           t;
    us_replay_t       *r;
    us_replay_side_t  *side;

    r = s->replay;

    for (t = 0; t < US_BULK_THREADS; t++) {
        side = &r->sides[t];

        if (t && side->store) {
            us_store_close(side->store);
        }

        free(side->sites);
        free(side->firsts);
    }

    us_bulk_destroy(r->bulk);
    free(r->cache);
    free(r->first);
    free(r->all);
    free(r->gone);

    memset(r->sides, 0, sizeof(r->sides));
    r->bulk = NULL;
    r->cache = NULL;
    r->first = NULL;
    r->all = NULL;
    r->gone = NULL;
    r->ngone = 0;
}


static void
us_replay_drop(us_replay_t *r)
{
    void    *mem;
    size_t   size;

    if (r->larger) {
        mem = r->larger->arena.base;
        size = us_head(r->larger)->size;
        us_store_close(r->larger);
        (void) munmap(mem, size);
        r->larger = NULL;
    }
}


static void
us_replay_free(us_store_t *s)
{
    if (s->replay) {
        us_replay_settled(s);
        us_replay_drop(s->replay);
        free(s->replay);
        s->replay = NULL;
    }
}


static int
us_replay_builds(const us_store_t *s, uint64_t *ids)
{
    *ids = s->replay->ahead;

    return s->replay->bulk != NULL;
}


static const us_replay_ops_t  us_replay_ops = {
    .free = us_replay_free,
    .builds = us_replay_builds
};


/* 0, or US_REPLAY_FAILED */

static int
us_replay_open(us_store_t *s)
{
    unsigned           t;
    us_head_t         *h;
    us_replay_t       *r;
    us_replay_side_t  *side;

    h = us_head(s);

    r = calloc(1, sizeof(us_replay_t));
    s->replay = r;
    s->replay_ops = &us_replay_ops;

    if (r == NULL) {
        return US_REPLAY_FAILED;
    }

    if (h->next_id || h->settled || (h->flags & US_HEAD_LOOKUP)) {
        return 0;
    }

    r->bulk = us_bulk_create(&s->arena, us_store_hash_all, s);

    if (r->bulk == NULL) {
        return US_REPLAY_FAILED;
    }

    for (t = 0; t < US_BULK_THREADS; t++) {

        if (t && sysconf(_SC_NPROCESSORS_ONLN) <= (long) t) {
            break;
        }

        side = &r->sides[t];
        side->store = t ? us_store_open(s->arena.base, &s->lock) : s;
        side->sites = calloc(US_REPLAY_SITES, sizeof(us_replay_site_t));

        if (side->store == NULL || side->sites == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    return 0;
}


static void
us_replay_pieces(us_store_t *s, unsigned side)
{
    uint64_t      from, to;
    us_replay_t  *r;

    r = s->replay;

    for ( ;; ) {
        from = __atomic_fetch_add(&r->next, r->each, __ATOMIC_RELAXED);

        if (from >= r->end) {
            return;
        }

        to = r->end - from < r->each ? r->end : from + r->each;

        if (r->piece(s, side, from, to) != 0) {
            r->sides[side].failed = 1;
        }
    }
}


static void *
us_replay_helper(void *data)
{
    us_replay_pieces(data, 1);

    /* the C library keeps some of it for the next thread */

    us_wipe_stack();

    return NULL;
}


/*
 * Work on both cores: from .. to - 1 in pieces of `each`, which are done by the
 * next free thread.  One thread does all if the system refuses a second one.
 * 0, or US_REPLAY_FAILED.
 */

static int
us_replay_work(us_store_t *s, us_replay_pt piece, uint64_t from, uint64_t to,
    uint64_t each)
{
    int           two;
    sigset_t      signals, old;
    pthread_t     helper;
    us_replay_t  *r;

    r = s->replay;
    r->piece = piece;
    r->each = each;
    r->next = from;
    r->end = to;
    helper = pthread_self();

    /* signals are for the threads that wait for them */

    (void) sigfillset(&signals);
    (void) pthread_sigmask(SIG_BLOCK, &signals, &old);

    two = to - from > each && r->sides[1].store
          && pthread_create(&helper, NULL, us_replay_helper, s) == 0;

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    us_replay_pieces(s, 0);

    if (two) {
        (void) pthread_join(helper, NULL);
    }

    return r->sides[0].failed || r->sides[1].failed ? US_REPLAY_FAILED : 0;
}


/* a place in the table of sites: both ends together distinguish most sites */

static inline size_t
us_replay_place(us_str_t site)
{
    uint64_t  head, tail;
    size_t    n;

    head = 0;
    tail = 0;
    n = site.len < 8 ? site.len : 8;

    memcpy(&head, site.data, n);
    memcpy(&tail, site.data + site.len - n, n);

    head = (head ^ site.len) * 0x9e3779b97f4a7c15 + tail;
    head = (head ^ head >> 32) * 0xff51afd7ed558ccd;

    return head >> 32 & (US_REPLAY_SITES - 1);
}


/*
 * The site of an id that is met: an id that stands for its first URL, be it
 * this one, which is then a candidate.
 */

static int
us_replay_site(us_replay_side_t *side, uint64_t id, unsigned klass,
    us_str_t rest, uint64_t *first)
{
    size_t              size;
    uint8_t             len;
    us_str_t            site;
    us_store_t         *s;
    us_replay_site_t   *known;
    us_replay_first_t  *p;

    s = side->store;
    site = us_site(rest);
    *first = id;

    if (site.len && site.len <= US_REPLAY_SITE) {
        known = &side->sites[us_replay_place(site)];
        len = (uint8_t) (site.len + (klass & US_SPELLING_WWW ? 128 : 0));

        if (known->len == len
            && memcmp(known->text, site.data, site.len) == 0)
        {
            *first = known->first;
            return 0;
        }

        known->first = id;
        known->len = len;
        memcpy(known->text, site.data, site.len);
    }

    if (side->n == side->size) {
        size = 2 * side->size + 1024;
        p = realloc(side->firsts, size * sizeof(us_replay_first_t));

        if (p == NULL) {
            return -1;
        }

        side->firsts = p;
        side->size = size;
    }

    p = &side->firsts[side->n++];
    p->id = id;
    p->hash = us_store_record_site(s, klass, rest).hash;
    p->check = us_hash(us_head(s)->hash_key,
                       US_DOMAIN_CHECK + ((klass & US_SPELLING_WWW) != 0),
                       site.data, site.len);

    return 0;
}


static int
us_replay_hash_piece(us_store_t *s, unsigned t, uint64_t id, uint64_t end)
{
    int           deleted;
    uint64_t      first;
    unsigned      klass;
    us_str_t      rest;
    us_replay_t  *r;

    r = s->replay;
    s = r->sides[t].store;

    for ( /* void */ ; id < end; id++) {
        first = US_STORE_NO_ID;
        rest = us_store_rest(s, id, s->url, &klass);
        deleted = us_deleted(&s->arena, id);

        /* what is left of an erased record may end within its site */

        if (deleted && us_site(rest).len == rest.len) {
            rest.len = 0;
        }

        /* a damaged record keeps its id, but no look-up finds it */

        if (rest.len
            && us_replay_site(&r->sides[t], id, klass, rest, &first) != 0)
        {
            return -1;
        }

        if (rest.len && !deleted
            && us_bulk_put(r->bulk, t, us_store_hash(s, klass, rest), id,
                           US_BULK_URL)
               != 0)
        {
            return -1;
        }

        if (r->first) {
            r->first[id - r->merged] = first;
        }
    }

    return 0;
}


static void
us_replay_forget_sites(us_replay_t *r)
{
    unsigned  t;

    for (t = 0; t < US_BULK_THREADS && r->sides[t].store; t++) {
        memset(r->sides[t].sites, 0,
               US_REPLAY_SITES * sizeof(us_replay_site_t));
    }
}


/* decodes and collects what was added */

static int
us_replay_hash(us_store_t *s)
{
    int           rc;
    uint64_t      next;
    us_replay_t  *r;

    r = s->replay;
    next = us_head(s)->next_id;

    if (next <= r->hashed) {
        return 0;
    }

    if (r->forget) {
        us_replay_forget_sites(r);
        r->forget = 0;
    }

    if (r->first == NULL && (us_head(s)->flags & US_HEAD_SITES)) {
        r->first = malloc((US_REPLAY_IDS + US_REPLAY_BATCH)
                          * sizeof(uint64_t));

        if (r->first == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    rc = us_replay_work(s, us_replay_hash_piece, r->hashed, next,
                        US_REPLAY_PIECE);

    r->hashed = next;

    return rc;
}


/* whether enough is collected for a merge */

static int
us_replay_enough(us_store_t *s)
{
    size_t        bytes, limit;
    us_replay_t  *r;

    r = s->replay;

    limit = us_head(s)->size / 4;
    limit = limit < US_BULK_MEMORY ? limit : US_BULK_MEMORY;

    bytes = us_bulk_memory(r->bulk) + r->ngone * US_BULK_ENTRY
            + (r->sides[0].n + r->sides[1].n) * sizeof(us_replay_first_t);

    if (r->gone) {
        bytes += (r->merged / 64 + 1) * sizeof(uint64_t);
    }

    if (us_head(s)->flags & US_HEAD_SITES) {
        bytes += r->ngone * sizeof(uint64_t);
    }

    if (r->first) {
        bytes += (r->hashed - r->merged) * sizeof(uint64_t);
    }

    return bytes >= limit || r->hashed - r->merged >= US_REPLAY_IDS;
}


static int
us_replay_first_cmp(const void *one, const void *two)
{
    const us_replay_first_t *a = one, *b = two;

    if (a->hash != b->hash) {
        return a->hash < b->hash ? -1 : 1;
    }

    if (a->check != b->check) {
        return a->check < b->check ? -1 : 1;
    }

    return a->id < b->id ? -1 : a->id > b->id;
}


/*
 * The candidates of some parts: those of a site follow one another, and the
 * first of them came first.
 */

static int
us_replay_part(us_store_t *s, unsigned t, uint64_t part, uint64_t to)
{
    unsigned            klass;
    us_str_t            rest;
    us_sought_t         site;
    us_replay_t        *r;
    us_store_site_t     out;
    us_replay_first_t  *p, *q, *end;

    r = s->replay;
    s = r->sides[t].store;
    p = r->all + r->parts[part];
    end = r->all + r->parts[to];

    qsort(p, end - p, sizeof(us_replay_first_t), us_replay_first_cmp);

    for ( /* void */ ; p < end; p = q) {
        out.first = US_STORE_NO_ID;

        if (us_head(s)->entries) {
            rest = us_store_rest(s, p->id, s->url, &klass);
            site = us_store_record_site(s, klass, rest);
            (void) us_store_site_find(s, &site, &out);
        }

        if (out.first == US_STORE_NO_ID) {
            out.first = p->id;
            r->sides[t].found++;

            if (us_bulk_put(r->bulk, t, p->hash, p->id, US_BULK_SITE) != 0) {
                return -1;
            }
        }

        for (q = p;
             q < end && q->hash == p->hash && q->check == p->check;
             q++)
        {
            if (r->first) {
                r->first[q->id - r->merged] = out.first;
            }
        }
    }

    return 0;
}


/* brings the candidates of all threads together, and finds their sites */

static int
us_replay_firsts(us_store_t *s)
{
    size_t             i, n, sum;
    unsigned           t, part;
    us_replay_t       *r;
    us_replay_side_t  *side;

    r = s->replay;
    memset(r->parts, 0, sizeof(r->parts));
    n = 0;

    for (t = 0; t < US_BULK_THREADS; t++) {
        side = &r->sides[t];
        n += side->n;

        for (i = 0; i < side->n; i++) {
            r->parts[side->firsts[i].hash >> 56]++;
        }
    }

    free(r->all);
    r->all = malloc((n + 1) * sizeof(us_replay_first_t));

    if (r->all == NULL) {
        return US_REPLAY_FAILED;
    }

    for (part = 0, sum = 0; part <= US_REPLAY_PARTS; part++) {
        sum += r->parts[part];
        r->parts[part] = sum;
    }

    for (t = 0; t < US_BULK_THREADS; t++) {
        side = &r->sides[t];

        for (i = 0; i < side->n; i++) {
            r->all[--r->parts[side->firsts[i].hash >> 56]] = side->firsts[i];
        }

        side->n = 0;
        side->found = 0;
    }

    return us_replay_work(s, us_replay_part, 0, US_REPLAY_PARTS, 1);
}


/* sites=on: counts the URLs that were merged, in the order of their ids */

static int
us_replay_count(us_store_t *s)
{
    uint64_t      id, first;
    us_arena_t   *a;
    us_replay_t  *r;

    a = &s->arena;
    r = s->replay;

    for (id = r->merged; id < r->hashed; id++) {
        first = r->first[id - r->merged];

        if (first == US_STORE_NO_ID) {
            continue;
        }

        /* a candidate stood for it, whose own first one is known by now */

        if (first >= r->merged) {
            first = r->first[first - r->merged];
        }

        if (first == id) {
            if (us_site_reserve_locked(a) != 0) {
                return US_REPLAY_NO_ROOM;
            }

            us_site_add_locked(a, id);

        } else {
            us_site_count_locked(a, us_site_number(a, first), id);
        }

        us_commit_locked(a);

        if (us_deleted(a, id)) {
            us_site_uncount_locked(a, us_site_number(a, first));
            us_commit_locked(a);
        }
    }

    return 0;
}


/*
 * Decodes what was deleted since the last merge, in the order of ids: records
 * near each other share lines and references.  With sites=on, their sites are
 * counted less afterwards.
 */

static int
us_replay_gone_piece(us_store_t *s, unsigned t, uint64_t n, uint64_t end)
{
    uint64_t          id, word;
    unsigned          klass;
    us_str_t          rest;
    us_sought_t       site;
    us_replay_t      *r;
    us_store_site_t   out;

    r = s->replay;
    s = r->sides[t].store;

    for ( /* void */ ; n < end; n++) {
        for (word = r->gone[n]; word; word &= word - 1) {
            id = n * 64 + (unsigned) __builtin_ctzll(word);
            rest = us_store_rest(s, id, s->url, &klass);

            if (rest.len == 0) {
                continue;
            }

            if (us_bulk_put(r->bulk, t, us_store_hash(s, klass, rest), id,
                            US_BULK_GONE)
                != 0)
            {
                return -1;
            }

            site = us_store_record_site(s, klass, rest);

            if (r->less && us_store_site_find(s, &site, &out)) {
                r->less[__atomic_fetch_add(&r->nless, 1, __ATOMIC_RELAXED)]
                    = out.first;
            }
        }
    }

    return 0;
}


/* collects the entries of what was deleted since the last merge */

static int
us_replay_gone(us_store_t *s)
{
    int           rc;
    uint64_t      i;
    us_replay_t  *r;

    r = s->replay;

    if (r->ngone == 0) {
        return 0;
    }

    if (us_head(s)->flags & US_HEAD_SITES) {
        r->less = malloc(r->ngone * sizeof(uint64_t));
        r->nless = 0;

        if (r->less == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    rc = us_replay_work(s, us_replay_gone_piece, 0, r->merged / 64 + 1,
                        US_REPLAY_WORDS);

    for (i = 0; rc == 0 && r->less && i < r->nless; i++) {
        us_site_uncount_locked(&s->arena,
                               us_site_number(&s->arena, r->less[i]));
        us_commit_locked(&s->arena);
    }

    free(r->less);
    free(r->gone);
    r->less = NULL;
    r->gone = NULL;

    return rc;
}


/* collects and merges all that was added and deleted; 0, or US_REPLAY_* */

static int
us_replay_merge(us_store_t *s, int last)
{
    int           rc;
    unsigned      t;
    us_head_t    *h;
    us_replay_t  *r;

    r = s->replay;
    h = us_head(s);

    rc = us_replay_gone(s);

    if (rc == 0) {
        rc = us_replay_hash(s);
    }

    if (rc != 0 || (r->hashed == r->merged && r->ngone == 0)) {
        return rc;
    }

    rc = us_replay_firsts(s);

    if (rc == 0) {
        rc = us_bulk_merge(r->bulk, r->hashed, last, r->expect);
    }

    if (rc == 0 && (h->flags & US_HEAD_SITES)) {
        rc = us_replay_count(s);
    }

    if (h->flags & US_HEAD_SITES) {

        /* ids that stand for others did so in this merge only */

        us_replay_forget_sites(r);

    } else {
        for (t = 0; t < US_BULK_THREADS; t++) {
            us_release(&h->sites, h->sites + r->sides[t].found);
        }
    }

    r->merged = r->hashed;
    r->ngone = 0;

    return rc;
}


/* an add of a settled store; 0, or US_REPLAY_NO_ROOM */

static int
us_replay_index(us_store_t *s, uint64_t id)
{
    unsigned          klass;
    us_str_t          rest;
    us_hashes_t       hashes;
    us_sought_t       sought;
    us_store_site_t   site;

    rest = us_store_rest(s, id, s->url, &klass);

    /* a damaged record keeps its id, but no look-up finds it */

    if (rest.len == 0) {
        return 0;
    }

    sought = us_store_record_site(s, klass, rest);
    hashes.site = sought.hash;
    hashes.url = us_deleted(&s->arena, id) ? 0 : us_store_hash(s, klass, rest);
    site.first = US_STORE_NO_ID;

    (void) us_store_site_find(s, &sought, &site);

    if (us_store_reserve_locked(s, id, &hashes, site.first == US_STORE_NO_ID)
        != 0)
    {
        return US_REPLAY_NO_ROOM;
    }

    us_store_index_locked(s, id, &hashes, site.first);
    us_commit_locked(&s->arena);

    us_record_replayed(s->codec, id, s->url,
                       (size_t) (rest.data - s->url) + rest.len);

    return 0;
}


static int
us_replay_add(us_store_t *s, const us_op_t *op)
{
    int           rc;
    uint64_t      id;
    us_head_t    *h;
    us_arena_t   *a;
    us_replay_t  *r;

    a = &s->arena;
    h = a->head;
    r = s->replay;
    id = h->next_id;

    /* not after an add: a stub may follow it, which is read in its place */

    if (r->bulk && id >= r->hashed + US_REPLAY_BATCH) {
        rc = us_replay_hash(s);

        if (rc == 0 && us_replay_enough(s)) {
            rc = us_replay_merge(s, 0);
        }

        if (rc != 0) {
            return rc;
        }
    }

    /* readers of bits may load 8 bytes past the end */

    memcpy(s->bits, op->bytes.data, op->bytes.len);

    if (us_log_reserve_locked(a, id, op->units) != 0
        || (h->clock && us_claims_reserve_locked(a, id) != 0))
    {
        return US_REPLAY_NO_ROOM;
    }

    us_log_write_locked(a, id, s->bits, op->units);

    if (h->clock) {
        us_claims_write_locked(a, id, (uint32_t) h->clock);
    }

    /*
     * No commit: nobody reads a store that is built in bulk, and if this
     * process is killed, it is emptied.
     */

    if (r->bulk && op->units < US_LONG && h->key == 0) {
        us_release(&h->log_end, h->log_end + op->units);
        us_release(&h->next_id, id + 1);
        return 0;
    }

    us_keys_put_locked(a, US_KEYS_NEW, 0, id);
    us_log_append_locked(a, op->units);
    us_intend_locked(a, &h->next_id, id + 1);
    us_commit_locked(a);

    return (h->flags & US_HEAD_LOOKUP) || r->bulk ? 0 : us_replay_index(s, id);
}


static int
us_replay_delete(us_store_t *s, uint64_t id)
{
    us_replay_t  *r;
    us_hashes_t   hashes;

    r = s->replay;

    if (id >= us_head(s)->next_id) {
        return US_REPLAY_DAMAGED;
    }

    if (us_deleted(&s->arena, id)) {
        return 0;
    }

    if (r->bulk == NULL) {
        us_store_hashes(s, id, &hashes);
    }

    if (us_store_forget_locked(s, id, r->bulk ? NULL : &hashes, NULL, NULL)
        != US_OK)
    {
        return US_REPLAY_NO_ROOM;
    }

    if (r->bulk == NULL || id >= r->merged) {
        return 0;
    }

    /* the next merge removes the entry */

    if (r->gone == NULL) {
        r->gone = calloc(r->merged / 64 + 1, sizeof(uint64_t));

        if (r->gone == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    r->gone[id / 64] |= (uint64_t) 1 << id % 64;
    r->ngone++;

    return r->ngone % US_REPLAY_BATCH == 0 && us_replay_enough(s)
           ? us_replay_merge(s, 0) : 0;
}


/* a dump has the record erased already */

static int
us_replay_erased(us_store_t *s, const us_op_t *op)
{
    int           rc, erased;
    uint64_t      id;
    us_str_t      stub;
    us_replay_t  *r;

    r = s->replay;
    id = op->id;
    rc = us_replay_delete(s, id);

    if (rc != 0) {
        return rc;
    }

    erased = us_store_is_erased(s, id);

    if (r->bulk && !erased
        && (id >= r->merged
            || (r->gone && r->gone[id / 64] >> id % 64 & 1)))
    {
        rc = us_replay_merge(s, 0);

        if (rc != 0) {
            return rc;
        }
    }

    (void) us_log_stub(&s->arena, id, &stub);

    if (erased && stub.len == op->bytes.len
        && (stub.len == 0 || memcmp(stub.data, op->bytes.data, stub.len) == 0))
    {
        return 0;
    }

    r->forget = 1;

    return us_store_erase_locked(s, id, op->bytes, NULL) == US_OK
           ? 0 : US_REPLAY_NO_ROOM;
}


/* runs, which ascend, into a set or out of it */

static int
us_replay_runs(us_store_t *s, uint64_t number, const us_set_run_t *runs,
    size_t n, int in)
{
    uint32_t  row;

    if (n && runs[n - 1].last >= us_head(s)->next_id) {
        return US_REPLAY_DAMAGED;
    }

    /* a set that was dropped later need not be there */

    if (!us_set_find_number(&s->arena, number, &row)) {
        return number && number <= us_head(s)->sets_last ? 0
                                                         : US_REPLAY_DAMAGED;
    }

    return us_set_change_locked(&s->arena, row, runs, n, in, 0) == n
           ? 0 : US_REPLAY_NO_ROOM;
}


/* US_OP_SET; a mark's set has another number here if it was made as a set */

static int
us_replay_set(us_store_t *s, const us_op_t *op)
{
    uint32_t       row;
    uint64_t       created;
    us_str_t       name;
    us_arena_t    *a;

    a = &s->arena;

    if (op->bytes.len <= sizeof(created) || op->id <= US_STORE_MARKS
        || op->id >= US_SET_NUMBERS)
    {
        return US_REPLAY_DAMAGED;
    }

    memcpy(&created, op->bytes.data, sizeof(created));
    name.data = op->bytes.data + sizeof(created);
    name.len = op->bytes.len - sizeof(created);

    if (us_set_find_number(a, op->id, &row)) {
        return 0;
    }

    if (us_set_find(a, name, &row)
        && us_set_row(a, row)->number <= US_STORE_MARKS)
    {
        us_set_renumber_locked(a, row, op->id, created);
        return 0;
    }

    return us_set_make_locked(a, op->id, name, created, NULL, &row) == 0
           ? 0 : US_REPLAY_NO_ROOM;
}


/* no later set has the number; one that a mark is called is made again */

static int
us_replay_drop_set(us_store_t *s, uint64_t number)
{
    int            m;
    uint8_t        text[US_STORE_SET_LEN];
    uint32_t       row;
    us_str_t       name;
    us_arena_t    *a;

    a = &s->arena;

    if (number >= US_SET_NUMBERS) {
        return US_REPLAY_DAMAGED;
    }

    if (number > a->head->sets_last) {
        us_release(&a->head->sets_last, number);
    }

    if (!us_set_find_number(a, number, &row)) {
        return 0;
    }

    name.data = text;
    name.len = us_set_row(a, row)->len;
    memcpy(text, us_set_row(a, row)->name, sizeof(text));
    m = us_store_mark_number(s, name);

    us_set_drop_locked(a, row, NULL);

    while (us_sets_tend_locked(a)) { /* void */ }

    return m == -1 || us_set_make_locked(a, m + 1, name, 0, NULL, &row) == 0
           ? 0 : US_REPLAY_NO_ROOM;
}


/* US_OP_SET_IN, US_OP_SET_OUT */

static int
us_replay_put(us_store_t *s, const us_op_t *op)
{
    int             rc, more;
    size_t          n;
    uint64_t        last, id, ids;
    us_arena_t     *a;
    us_set_run_t    runs[US_SET_AT_ONCE];
    const uint8_t  *p, *end;

    a = &s->arena;
    p = op->bytes.data;
    end = p + op->bytes.len;
    last = US_STORE_NO_ID;
    ids = 0;

    do {
        for (n = 0, more = 1; n < US_SET_AT_ONCE; n++) {
            more = us_set_run_read(&p, end, last, &runs[n]);

            if (more <= 0) {
                break;
            }

            last = runs[n].last;
            ids += last - runs[n].first + 1;

            /* those of a key are few, and ids */

            if (op->type == US_OP_SET_IN && a->head->key) {

                if (ids > US_KEYS_AT_ONCE) {
                    return US_REPLAY_DAMAGED;
                }

                for (id = runs[n].first; id <= last; id++) {
                    us_keys_put_locked(a, US_KEYS_IN, op->id, id);
                }
            }
        }

        us_commit_locked(a);

        rc = more < 0 ? US_REPLAY_DAMAGED
                      : us_replay_runs(s, op->id, runs, n,
                                       op->type == US_OP_SET_IN);
    } while (rc == 0 && more);

    return rc;
}


/* a claim of an id that was deleted later is void */

static int
us_replay_claim(us_store_t *s, const us_op_t *op)
{
    int             rc;
    uint64_t        id;
    us_arena_t     *a;
    const uint8_t  *p, *end;

    a = &s->arena;
    p = op->bytes.data;
    end = p + op->bytes.len;

    if (op->id > a->head->clock) {
        return US_REPLAY_DAMAGED;
    }

    for (id = US_STORE_NO_ID;
         (rc = us_op_id_read(&p, end, id, &id)) > 0;
         us_commit_locked(a))
    {
        if (id >= a->head->next_id) {
            return US_REPLAY_DAMAGED;
        }

        if (us_deleted(a, id)) {
            continue;
        }

        if (op->id) {
            if (us_claims_reserve_locked(a, id) != 0) {
                return US_REPLAY_NO_ROOM;
            }

            us_keys_put_locked(a, US_KEYS_DUE, 0, id);
        }

        us_claims_set_locked(a, id, (uint32_t) op->id);
    }

    return rc == 0 ? 0 : US_REPLAY_DAMAGED;
}


/*
 * The 4 or 2 claims of a word, of ids that are given.  No intent: each is a
 * store of its own, and a load that does not end begins anew.
 */

static int
us_replay_claim_word(us_store_t *s, us_op_type_t type, uint64_t number,
    uint64_t word)
{
    uint16_t     shorts[4];
    uint32_t     unit, units[2];
    uint64_t     id;
    unsigned     i, n;
    us_arena_t  *a;

    a = &s->arena;
    n = type == US_OP_CLAIMS ? 2 : 4;

    if (a->head->clock == 0) {
        return US_REPLAY_DAMAGED;
    }

    memcpy(units, &word, sizeof(word));
    memcpy(shorts, &word, sizeof(word));

    for (i = 0; i < n; i++) {
        id = number * n + i;
        unit = n == 2 ? units[i] : us_claims_short(a->head->clock, shorts[i]);

        if (unit && id >= a->head->next_id) {
            return US_REPLAY_DAMAGED;
        }

        if (unit == 0 || us_deleted(a, id)) {
            continue;
        }

        if (us_claims_reserve_locked(a, id) != 0) {
            return US_REPLAY_NO_ROOM;
        }

        us_claims_write_locked(a, id, unit);
    }

    return 0;
}


/* 64 marks, in dumps of before sets */

static int
us_replay_mark_word(us_store_t *s, const us_op_t *op, uint64_t number,
    uint64_t word)
{
    size_t         n;
    us_set_run_t   runs[64];

    for (n = 0; word; n++, word &= word - 1) {
        runs[n].first = number * 64 + (unsigned) __builtin_ctzll(word);
        runs[n].last = runs[n].first;
    }

    return us_replay_runs(s, op->mark + 1, runs, n, 1);
}


/*
 * 64 deleted ids, which come at the beginning of a dump, and are not given yet:
 * their bits keep them out of the index.
 */

static int
us_replay_deleted_word(us_store_t *s, uint64_t number, uint64_t word)
{
    uint64_t     end, *p;
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;
    end = number * 64 + 64 - __builtin_clzll(word);

    if (h->next_id != 0) {
        return US_REPLAY_DAMAGED;
    }

    p = us_deleted_word(a, number);
    word &= ~(p ? us_relaxed(p) : 0);

    if (word == 0) {
        return 0;
    }

    if (us_arena_allot_locked(a, US_AREA_DELETED, number * sizeof(uint64_t))
        != 0)
    {
        return US_REPLAY_NO_ROOM;
    }

    p = us_deleted_word(a, number);
    us_intend_locked(a, p, us_relaxed(p) | word);
    us_intend_locked(a, &h->deleted,
                     h->deleted + __builtin_popcountll(word));
    s->replay->ahead = end > s->replay->ahead ? end : s->replay->ahead;
    us_commit_locked(a);

    return 0;
}


static int
us_replay_words(us_store_t *s, const us_op_t *op)
{
    int       rc;
    size_t    i;
    uint64_t  word;

    if (op->id > UINT64_MAX / 64 - US_OP_WORDS_MAX) {
        return US_REPLAY_DAMAGED;
    }

    for (i = 0, rc = 0; i < op->bytes.len / 8 && rc == 0; i++) {
        memcpy(&word, op->bytes.data + i * 8, 8);

        if (word == 0) {
            continue;
        }

        rc = op->type == US_OP_DELETED
             ? us_replay_deleted_word(s, op->id + i, word)
             : op->type == US_OP_MARKS
             ? us_replay_mark_word(s, op, op->id + i, word)
             : us_replay_claim_word(s, op->type, op->id + i, word);
    }

    return rc;
}


/*
 * An image of another version, or with more leaves than the zone may have room
 * for (of a store that was larger before deletes), is passed over: its adds are
 * hashed then like all others.
 */

static int
us_replay_image(us_store_t *s, const us_op_t *op)
{
    int                rc;
    us_head_t         *h;
    us_replay_t       *r;
    us_store_image_t   im;

    h = us_head(s);
    r = s->replay;

    if (op->bytes.len != sizeof(us_store_image_t) || h->next_id) {
        return US_REPLAY_DAMAGED;
    }

    memcpy(&im, op->bytes.data, sizeof(us_store_image_t));

    if (im.version != US_IMAGE_VERSION || r->bulk == NULL || r->image
        || (h->flags & US_HEAD_SITES) || im.leaves < h->leaves
        || im.leaves > h->size || im.ids > h->size
        || !us_bulk_fits(r->bulk, im.leaves, r->expect, im.ids))
    {
        return 0;
    }

    memcpy(h->hash_key, im.hash_key, sizeof(h->hash_key));
    us_sets_link_locked(&s->arena);

    r->image = im.ids;
    r->hashed = im.ids;
    r->merged = im.ids;
    r->reading = 1;

    us_release(&h->sites, im.sites);

    rc = us_bulk_image_begin(r->bulk, im.leaves, im.ids);

    if (rc == 0 && im.cache && im.cache <= US_PREFIX_MAX) {
        r->cache = calloc(1, im.cache);
        r->cache_size = r->cache ? im.cache : 0;
    }

    return rc;
}


static int
us_replay_leaves(us_store_t *s, const us_op_t *op)
{
    int             rc;
    size_t          left;
    uint64_t        n, leaf;
    const uint8_t  *p;

    if (!s->replay->reading) {
        return 0;
    }

    p = op->bytes.data;
    left = op->bytes.len / sizeof(uint64_t);

    for (leaf = op->id, rc = 0; left && rc == 0; leaf++) {
        memcpy(&n, p, sizeof(uint64_t));
        p += sizeof(uint64_t);
        left--;

        if (n > left) {
            return US_REPLAY_DAMAGED;
        }

        rc = us_bulk_image_leaf(s->replay->bulk, leaf, p, n);
        p += n * sizeof(uint64_t);
        left -= n;
    }

    return rc;
}


/* US_OP_KEY, US_OP_KEY_END */

static int
us_replay_key(us_store_t *s, const us_op_t *op)
{
    uint64_t     name;
    us_arena_t  *a;

    a = &s->arena;
    name = 0;
    memcpy(&name, op->bytes.data, op->bytes.len);

    if (op->id > UINT32_MAX || (op->type == US_OP_KEY && name == 0)) {
        return US_REPLAY_DAMAGED;
    }

    us_intend_locked(a, &a->head->key, name);
    us_intend_locked(a, &a->head->key_until, op->id);
    us_commit_locked(a);

    return 0;
}


static int
us_replay_keys(us_store_t *s, const us_op_t *op)
{
    size_t           i;
    us_keys_entry_t  e;

    if (op->bytes.len % sizeof(us_keys_entry_t)) {
        return US_REPLAY_DAMAGED;
    }

    for (i = 0; i < op->bytes.len; i += sizeof(us_keys_entry_t)) {
        memcpy(&e, op->bytes.data + i, sizeof(us_keys_entry_t));
        us_keys_load_locked(&s->arena, &e);
    }

    return 0;
}


static int
us_replay_op(us_store_t *s, const us_op_t *op)
{
    int            rc;
    us_head_t     *h;
    us_replay_t   *r;
    us_set_run_t   run;

    h = us_head(s);
    r = s->replay;
    rc = 0;

    /* the leaves of an image end with the first operation that is none */

    if (r->reading && op->type != US_OP_LEAVES && op->type != US_OP_IMAGE) {
        r->reading = 0;
        rc = us_bulk_image_end(r->bulk);
    }

    if (rc != 0) {
        return rc;
    }

    switch (op->type) {

    case US_OP_ADD:
        return us_replay_add(s, op);

    case US_OP_DELETE:
        return us_replay_delete(s, op->id);

    case US_OP_ERASED:
        return us_replay_erased(s, op);

    case US_OP_MARK:
    case US_OP_UNMARK:

        /* in journals of before sets: mark m is set m + 1 */

        run.first = op->id;
        run.last = op->id;
        return us_replay_runs(s, op->mark + 1, &run, 1,
                              op->type == US_OP_MARK);

    case US_OP_CLOCK:

        if (op->id == 0 || op->id > US_CLAIMS_UNIT_MAX || h->revisit == 0) {
            return US_REPLAY_DAMAGED;
        }

        us_release(&h->clock, op->id > h->clock ? op->id : h->clock);
        return 0;

    case US_OP_CLAIM:
        return us_replay_claim(s, op);

    case US_OP_MARKS:
    case US_OP_DELETED:
    case US_OP_CLAIMS:
    case US_OP_CLAIMS_SHORT:
        return us_replay_words(s, op);

    case US_OP_MODEL:
        rc = us_record_install_locked(s->codec, op->bytes);

        if (rc == 0) {
            us_commit_locked(&s->arena);
        }

        return rc;

    case US_OP_DROP:
        return us_record_drop_locked(s->codec, op->id, op->bytes);

    case US_OP_AT:
        return op->id == h->next_id ? 0 : US_REPLAY_DAMAGED;

    case US_OP_EXPECT:
        r->expect = op->id < h->size ? op->id : 0;
        return 0;

    case US_OP_IMAGE:
        return us_replay_image(s, op);

    case US_OP_LEAVES:
        return us_replay_leaves(s, op);

    case US_OP_CACHE:

        /* it is restored at the end, if there is room for it then */

        if (!r->image || r->cache == NULL) {
            return 0;
        }

        if (op->id > r->cache_size
            || op->bytes.len > r->cache_size - op->id)
        {
            return US_REPLAY_DAMAGED;
        }

        memcpy(r->cache + op->id, op->bytes.data, op->bytes.len);
        return 0;

    case US_OP_MAP:
        r->map = op->bytes.len > r->map ? op->bytes.len : r->map;
        return us_shard_replay(s, op);

    case US_OP_KEY:
    case US_OP_KEY_END:
        return us_replay_key(s, op);

    case US_OP_KEYS:
        return us_replay_keys(s, op);

    case US_OP_TERM:
        return 0;

    case US_OP_SET:
        return us_replay_set(s, op);

    case US_OP_SET_DROP:
        return us_replay_drop_set(s, op->id);

    case US_OP_SET_IN:
    case US_OP_SET_OUT:
        return us_replay_put(s, op);

    case US_OP_ERASED_ID:
        rc = us_replay_delete(s, op->id);

        return rc == 0 ? us_erasure_replay_id(s, op) : rc;

    case US_OP_ERASURE:
        return us_erasure_replay(s, op);

    case US_OP_ERASED_URLS:
        return us_erasure_replay_urls(s, op);

    case US_OP_ERASED_TABLE:
        return us_erased_replay_table(&s->arena, op->id);

    default:
        return US_REPLAY_DAMAGED;
    }
}


/*
 * Operations for the larger store, or len 0: their end.  If that store is too
 * small, too, it has moved to one that is larger again.
 */

static int
us_replay_larger(void *data, const uint8_t *p, size_t len)
{
    ssize_t       rc;
    us_store_t   *next;
    us_replay_t  *r = data;

    if (r->larger == NULL) {
        return 0;
    }

    rc = len ? us_store_apply(r->larger, p, len) : us_store_settle(r->larger);

    if (rc == US_REPLAY_NO_ROOM) {
        next = r->larger->replay->larger;
        r->larger->replay->larger = NULL;
        us_replay_drop(r);
        r->larger = next;

    } else if (rc == US_REPLAY_FAILED) {
        us_replay_drop(r);
    }

    return rc == US_REPLAY_DAMAGED ? -1 : 0;
}


static void
us_replay_no_lock(void *data)
{
}


/*
 * There is no room, and nobody looks at the store: all that it has goes to a
 * larger one.  If there is no memory for that one, r->larger is NULL: of the
 * memory that there is, three quarters are for the zone and the larger store.
 */

static int
us_replay_move(us_store_t *s)
{
    void             *mem;
    size_t            size, most;
    uint64_t          lsn;
    us_replay_t      *r;
    us_store_conf_t   conf;

    static const us_store_lock_t  no_lock = {
        us_replay_no_lock, us_replay_no_lock, NULL
    };

    r = s->replay;
    r->rc = US_REPLAY_NO_ROOM;

    size = us_head(s)->size;
    most = (size_t) us_process_memory("") / 4 * 3;

    if (us_head(s)->settled || most / 2 <= size) {
        return 0;
    }

    size = most / 3 < size ? most - size : size * 2;
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED) {
        return 0;
    }

    us_store_conf(s, &conf);
    conf.ring = 0;

    if (us_store_format(mem, size, &conf) != 0
        || (r->larger = us_store_open(mem, &no_lock)) == NULL)
    {
        (void) munmap(mem, size);
        return 0;
    }

    if (us_replay_open(r->larger) != 0) {
        us_replay_drop(r);
        return 0;
    }

    r->larger->replay->map = r->map;

    return us_store_dump(s, us_replay_larger, r, &lsn);
}


ssize_t
us_store_apply(us_store_t *s, const uint8_t *p, size_t len)
{
    int           rc, bulk;
    size_t        done, before;
    ssize_t       n;
    us_op_t       op;
    uint64_t      next;
    unsigned      left;
    us_replay_t  *r;

    if (s->replay == NULL) {
        rc = us_replay_open(s);

        if (rc != 0) {
            us_replay_free(s);
            return rc;
        }
    }

    r = s->replay;
    rc = r->rc;
    bulk = r->bulk != NULL;
    done = 0;

    while (rc == 0) {
        before = done;

        if (bulk) {
            us_arena_enter(&s->arena);

        } else {
            us_store_enter(s);
        }

        for (left = bulk ? UINT32_MAX : US_STORE_GROUP;
             rc == 0 && done < len && left;
             left--)
        {
            n = us_op_parse(p + done, len - done, &op);

            if (n == 0 || n > (ssize_t) (len - done)) {
                break;
            }

            next = us_head(s)->next_id;
            rc = n < 0 ? US_REPLAY_DAMAGED : us_replay_op(s, &op);

            /* an add may have failed when its record was there */

            if (rc == 0 || us_head(s)->next_id > next) {
                done += (size_t) n;
            }
        }

        if (!bulk) {
            us_store_leave(s);
        }

        if (done == before || done == len) {
            break;
        }
    }

    if (rc != US_REPLAY_NO_ROOM) {
        return rc ? rc : (ssize_t) done;
    }

    if ((r->rc == 0 && us_replay_move(s) != 0)
        || us_replay_larger(r, p + done, len - done) != 0)
    {
        return US_REPLAY_DAMAGED;
    }

    return rc;
}


/*
 * Entries of the cache are hints: it does not matter which thread writes one
 * last.  The cache has grown as far as it can, so no thread makes it grow.
 */

static int
us_replay_cache_piece(us_store_t *s, unsigned t, uint64_t id, uint64_t end)
{
    s = s->replay->sides[t].store;

    for ( /* void */ ; id < end; id++) {
        us_record_replayed(s->codec, id, s->url,
                           us_record_decode(s->codec, id, s->url));
    }

    return 0;
}


/* the cache of an image, and what later records have to give */

static void
us_replay_restore(us_store_t *s)
{
    int           had;
    uint64_t      id, n, at;
    us_arena_t   *a;
    us_replay_t  *r;

    a = &s->arena;
    r = s->replay;
    had = r->cache && us_prefix_restore(a, r->cache_size) == 0;

    if (had) {
        for (at = 0; at < r->cache_size; at += US_PREFIX_PIECE) {
            (void) us_prefix_paste(a, at, r->cache + at, US_PREFIX_PIECE);
        }
    }

    do {
        n = us_prefix_bytes(a);
        us_prefix_grow_locked(a);
    } while (us_prefix_bytes(a) > n);

    n = n / sizeof(uint32_t) / (had ? US_REPLAY_CACHED : 1);
    id = us_head(s)->next_id;
    id = id > n ? id - n : 0;
    id = id > r->image ? id : r->image;

    if (n) {
        (void) us_replay_work(s, us_replay_cache_piece, id,
                              us_head(s)->next_id, US_REPLAY_PIECE);
    }
}


int
us_store_settle(us_store_t *s)
{
    int           lacks;
    us_head_t    *h;
    us_replay_t  *r;

    h = us_head(s);
    r = s->replay;

    if (r == NULL) {
        us_release(&h->settled, 1);
        return 0;
    }

    if (r->rc == 0 && r->bulk) {
        us_arena_enter(&s->arena);

        if (r->reading) {
            r->reading = 0;
            r->rc = us_bulk_image_end(r->bulk);
        }

        if (r->rc == 0) {
            r->rc = us_replay_merge(s, 1);
        }

        if (r->rc == US_REPLAY_NO_ROOM && us_replay_move(s) != 0) {
            r->rc = US_REPLAY_DAMAGED;
        }
    }

    /* an image has ids, or ids were deleted, that no operation has given */

    lacks = h->next_id < r->image || h->next_id < r->ahead;

    if (r->rc == 0 && r->bulk && lacks) {
        r->rc = US_REPLAY_DAMAGED;

    } else if (r->rc == 0 && r->bulk) {
        us_replay_restore(s);
    }

    us_replay_settled(s);

    if (r->rc == US_REPLAY_NO_ROOM && us_replay_larger(r, NULL, 0) != 0) {
        r->rc = US_REPLAY_DAMAGED;
    }

    us_release(&h->settled, r->rc == 0 && !lacks);

    return r->rc == 0 && lacks ? US_REPLAY_DAMAGED : r->rc;
}


/*
 * Most areas take as many bytes in a smaller zone, or less, as its chunks are
 * not larger.  But the index is built anew, the prefix cache takes what is left
 * then, and the places of maps depend on SIZE.
 */

uint64_t
us_store_size_needed(us_store_t *s, int journal)
{
    uint64_t          i, size, log, bytes, maps, chunks;
    us_head_t        *h;
    us_layout_t       l;
    us_replay_t      *r;
    us_store_conf_t   conf;

    r = s->replay;

    if (r && r->rc) {
        return r->larger ? us_store_size_needed(r->larger, journal) : 0;
    }

    h = us_head(s);
    log = (h->log_end + 1) / 2 - h->log + US_LOG_GUARD;
    maps = h->area[US_AREA_MAPS].n ? sizeof(us_store_map_t) + r->map : 0;
    bytes = 0;

    for (i = 0; i < US_AREAS; i++) {
        if (i != US_AREA_LEAVES && i != US_AREA_DIRECTORY
            && i != US_AREA_CACHE && i != US_AREA_MAPS && i != US_AREA_MEMBERS)
        {
            bytes += us_area_bytes(&s->arena, i);
        }
    }

    us_store_conf(s, &conf);
    conf.ring = journal ? us_store_ring(0) : 0;
    size = us_arena_min_size(&conf);

    for ( /* void */ ; /* void */ ; size += (uint64_t) 1 << l.chunk_shift) {

        /* the zone has more bytes than its store: the next larger ring */

        conf.ring = journal ? us_store_ring(size + size / 16) : 0;

        if (us_arena_layout(size, &conf, &l) != 0
            || l.area[US_AREA_MAPS].max / 2 << l.chunk_shift < maps)
        {
            continue;
        }

        chunks = bytes >> l.chunk_shift;
        chunks += maps ? l.area[US_AREA_MAPS].max : 0;
        chunks += us_sets_chunks(&s->arena, l.chunk_shift);

        if (!conf.lookup) {
            chunks += us_bulk_chunks(l.chunk_shift, l.leaf_shift,
                                     us_bulk_more_leaves(h, h->entries),
                                     h->entries, h->next_id);
        }

        if (l.log + log + (chunks << l.chunk_shift)
            <= l.chunks << l.chunk_shift)
        {
            return size;
        }
    }
}


int
us_store_set_lsn(us_store_t *s, uint64_t lsn)
{
    us_release(&us_head(s)->published, lsn);
    us_release(&us_head(s)->written, lsn);
    us_release(&us_head(s)->durable, lsn);

    return us_store_settle(s);
}
