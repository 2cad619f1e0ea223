
/*
 * Replay: the index of all that was added, before anybody looks.
 *
 * Records are put into the log as they come; us_replay_hash() decodes and
 * hashes many at once, on both cores, and collects their entries (us_bulk.h).
 * When there are enough, or no more, us_replay_bulk_merge() merges them.
 *
 * Sites.  Two threads decode the records, without an index, so neither can
 * look up whether a URL is the first of its site.  Most URLs are not: a table
 * of the sites met last has theirs.  Every other URL is a candidate.  When a
 * merge begins, candidates are grouped by 128 bits of keyed hashes of their
 * sites, and each site is looked up once.
 */


#include "us_replay_private.h"

#include <stdlib.h>


/* records that are hashed at once, and in a piece; tuned with bench/replay */
#define US_REPLAY_BATCH   16384
#define US_REPLAY_PIECE   512

/* words of deleted ids in a piece */
#define US_REPLAY_WORDS   64

/* ids between two merges, beside the limit of their memory */
#define US_REPLAY_IDS     ((uint64_t) 1 << 24)


int
us_replay_bulk_open(us_store_t *s)
{
    unsigned          t;
    us_replay_t      *r;
    us_store_lock_t   lock;

    r = s->replay;
    lock = s->lock;

    r->bulk = us_bulk_create(&s->arena, us_store_hash_all, s);
    r->work = us_work_create(US_BULK_THREADS);

    if (r->bulk == NULL || r->work == NULL) {
        return US_REPLAY_FAILED;
    }

    for (t = 0; t < us_work_threads(r->work); t++) {
        r->sides[t].store = t ? us_store_open(s->arena.base, &lock) : s;
        r->sides[t].sites = calloc(US_REPLAY_SITES, sizeof(us_replay_site_t));

        if (r->sides[t].store == NULL || r->sides[t].sites == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    return 0;
}


void
us_replay_bulk_close(us_store_t *s)
{
    unsigned      t;
    us_replay_t  *r;

    r = s->replay;

    us_work_destroy(r->work);
    us_bulk_destroy(r->bulk);

    for (t = 0; t < US_BULK_THREADS; t++) {
        if (r->sides[t].store && r->sides[t].store != s) {
            us_store_close(r->sides[t].store);
        }

        free(r->sides[t].sites);
        free(r->sides[t].firsts);
        free(r->sides[t].gone);
    }

    free(r->cache);
    free(r->first);
    free(r->all);
    free(r->gone);

    memset(r->sides, 0, sizeof(r->sides));
    r->work = NULL;
    r->bulk = NULL;
    r->cache = NULL;
    r->first = NULL;
    r->all = NULL;
    r->gone = NULL;
    r->ngone = 0;
}


static int
us_replay_candidate(us_replay_side_t *side, uint64_t id, us_str_t site)
{
    size_t              size;
    us_store_t         *s;
    us_replay_first_t  *p;

    s = side->store;

    if (side->n == side->size) {
        size = side->size * 2 + 1024;
        p = realloc(side->firsts, size * sizeof(us_replay_first_t));

        if (p == NULL) {
            return -1;
        }

        side->firsts = p;
        side->size = size;
    }

    p = &side->firsts[side->n++];
    p->id = id;
    p->hash = us_store_site_hash(s, site);
    p->check = us_hash(us_head(s)->hash_key, US_DOMAIN_CHECK, site.data,
                       site.len);

    return 0;
}


/* a place in the table: both ends together distinguish most sites */

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
us_replay_site(us_replay_side_t *side, uint64_t id, us_str_t site,
    uint64_t *first)
{
    us_replay_site_t  *known;

    *first = id;
    known = NULL;

    if (site.len && site.len <= US_REPLAY_SITE) {
        known = &side->sites[us_replay_place(site)];

        if (known->len == site.len
            && memcmp(known->text, site.data, site.len) == 0)
        {
            *first = known->first;
            return 0;
        }

        known->first = id;
        known->len = (uint8_t) site.len;
        memcpy(known->text, site.data, site.len);
    }

    return us_replay_candidate(side, id, site);
}


static int
us_replay_hash_one(us_replay_t *r, us_replay_side_t *side, unsigned t,
    uint64_t id)
{
    size_t       len;
    uint64_t     first;
    us_str_t     rest;
    us_store_t  *s;

    s = side->store;
    first = US_STORE_NO_ID;
    len = us_record_decode(s->codec, id, s->url);

    /* a damaged record keeps its id, but no look-up finds it */

    if (len > 1) {
        rest.len = len - 1;
        rest.data = s->url + 1;

        if (us_replay_site(side, id, us_site(rest), &first) != 0) {
            return -1;
        }

        if (!us_marked(&s->arena, US_AREA_DELETED, id)
            && us_bulk_put(r->bulk, t, us_store_hash(s, s->url[0], rest), id,
                           US_BULK_URL)
               != 0)
        {
            return -1;
        }
    }

    if (r->first) {
        r->first[id - r->merged] = first;
    }

    return 0;
}


static void
us_replay_hash_piece(void *data, unsigned t, size_t i)
{
    uint64_t           id, end;
    us_store_t        *s = data;
    us_replay_t       *r;
    us_replay_side_t  *side;

    r = s->replay;
    side = &r->sides[t];

    id = r->hashed + i * US_REPLAY_PIECE;
    end = id + US_REPLAY_PIECE;
    end = end < us_head(s)->next_id ? end : us_head(s)->next_id;

    for ( /* void */ ; id < end && !side->failed; id++) {
        if (us_replay_hash_one(r, side, t, id) != 0) {
            side->failed = 1;
        }
    }
}


/* decodes and collects what was added */

static int
us_replay_hash(us_store_t *s)
{
    unsigned      t;
    uint64_t      next;
    us_replay_t  *r;

    r = s->replay;
    next = us_head(s)->next_id;

    if (next <= r->hashed) {
        return 0;
    }

    if (r->first == NULL && (us_head(s)->flags & US_HEAD_SITES)) {
        r->first = malloc((US_REPLAY_IDS + US_REPLAY_BATCH)
                          * sizeof(uint64_t));

        if (r->first == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    us_work_run(r->work, us_replay_hash_piece, s,
                (next - r->hashed + US_REPLAY_PIECE - 1) / US_REPLAY_PIECE);

    r->hashed = next;

    for (t = 0; t < US_BULK_THREADS; t++) {
        if (r->sides[t].failed) {
            return US_REPLAY_FAILED;
        }
    }

    return 0;
}


/* whether enough is collected for a merge */

static int
us_replay_enough(us_store_t *s)
{
    size_t        bytes, limit;
    unsigned      t;
    us_replay_t  *r;

    r = s->replay;

    limit = us_head(s)->size / 4;
    limit = limit < US_BULK_MEMORY ? limit : US_BULK_MEMORY;

    bytes = us_bulk_memory(r->bulk) + r->ngone * US_BULK_ENTRY;

    if (r->gone) {
        bytes += (r->merged / 64 + 1) * sizeof(uint64_t);
    }

    if (us_head(s)->flags & US_HEAD_SITES) {
        bytes += r->ngone * sizeof(uint64_t);
    }

    for (t = 0; t < US_BULK_THREADS; t++) {
        bytes += r->sides[t].n * sizeof(us_replay_first_t);
    }

    if (r->first) {
        bytes += (r->hashed - r->merged) * sizeof(uint64_t);
    }

    return bytes >= limit || r->hashed - r->merged >= US_REPLAY_IDS;
}


int
us_replay_bulk_added(us_store_t *s)
{
    int           rc;
    us_replay_t  *r;

    r = s->replay;

    if (us_head(s)->next_id < r->hashed + US_REPLAY_BATCH) {
        return 0;
    }

    rc = us_replay_hash(s);

    if (rc != 0) {
        return rc;
    }

    return us_replay_enough(s) ? us_replay_bulk_merge(s, 0) : 0;
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


/* the first URL of the site of n candidates, of which p[0] came first */

static int
us_replay_resolve(us_replay_t *r, unsigned t, const us_replay_first_t *p,
    size_t n)
{
    size_t             i;
    us_str_t           rest;
    us_store_t        *s;
    us_store_site_t    out;
    us_replay_side_t  *side;

    side = &r->sides[t];
    s = side->store;
    out.first = US_STORE_NO_ID;

    if (us_head(s)->entries) {
        rest.len = us_record_decode(s->codec, p->id, s->url) - 1;
        rest.data = s->url + 1;
        (void) us_store_site_find(s, us_site(rest), p->hash, &out);
    }

    if (out.first == US_STORE_NO_ID) {
        out.first = p->id;
        side->found++;

        if (us_bulk_put(r->bulk, t, p->hash, p->id, US_BULK_SITE) != 0) {
            return -1;
        }
    }

    for (i = 0; r->first && i < n; i++) {
        r->first[p[i].id - r->merged] = out.first;
    }

    return 0;
}


/* the candidates of one part, which have the first byte of their hash */

static void
us_replay_part(void *data, unsigned t, size_t part)
{
    size_t              i, n, end;
    us_store_t         *s = data;
    us_replay_t        *r;
    us_replay_first_t  *p;

    r = s->replay;
    end = r->parts[part + 1];
    p = r->all + r->parts[part];

    qsort(p, end - r->parts[part], sizeof(us_replay_first_t),
          us_replay_first_cmp);

    for (i = r->parts[part]; i < end; i += n) {
        p = r->all + i;

        for (n = 1; i + n < end && p[n].hash == p->hash
                    && p[n].check == p->check; n++)
        {
            /* void */
        }

        if (us_replay_resolve(r, t, p, n) != 0) {
            r->sides[t].failed = 1;
        }
    }
}


/* brings the candidates of all threads together, and resolves them */

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

    for (part = 0, sum = 0; part < 257; part++) {
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

    us_work_run(r->work, us_replay_part, s, 256);

    for (t = 0; t < US_BULK_THREADS; t++) {
        if (r->sides[t].failed) {
            return US_REPLAY_FAILED;
        }
    }

    return 0;
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

        if (us_marked(a, US_AREA_DELETED, id)) {
            us_site_uncount_locked(a, us_site_number(a, first));
            us_commit_locked(a);
        }
    }

    return 0;
}


/* sites=on: the site of a deleted URL, which is counted less afterwards */

static int
us_replay_gone_site(us_replay_side_t *side, us_str_t site)
{
    size_t            size;
    uint64_t         *p;
    us_store_t       *s;
    us_store_site_t   out;

    s = side->store;

    if (!(us_head(s)->flags & US_HEAD_SITES)
        || !us_store_site_find(s, site, us_store_site_hash(s, site), &out))
    {
        return 0;
    }

    if (side->ngone == side->gone_size) {
        size = side->gone_size * 2 + 1024;
        p = realloc(side->gone, size * sizeof(uint64_t));

        if (p == NULL) {
            return -1;
        }

        side->gone = p;
        side->gone_size = size;
    }

    side->gone[side->ngone++] = out.first;

    return 0;
}


/*
 * Decodes what was deleted since the last merge, in the order of ids: records
 * near each other share lines and references.
 */

static void
us_replay_gone_piece(void *data, unsigned t, size_t i)
{
    uint64_t           id, word, n, end;
    us_str_t           rest;
    us_store_t        *s = data;
    us_replay_t       *r;
    us_replay_side_t  *side;

    r = s->replay;
    side = &r->sides[t];
    s = side->store;

    n = i * US_REPLAY_WORDS;
    end = n + US_REPLAY_WORDS;
    end = end < r->merged / 64 + 1 ? end : r->merged / 64 + 1;

    for ( /* void */ ; n < end; n++) {
        for (word = r->gone[n]; word; word &= word - 1) {
            id = n * 64 + (unsigned) __builtin_ctzll(word);

            rest.len = us_record_decode(s->codec, id, s->url) - 1;
            rest.data = s->url + 1;

            if (rest.len
                && (us_bulk_put(r->bulk, t, us_store_hash(s, s->url[0], rest),
                                id, US_BULK_GONE)
                    != 0
                    || us_replay_gone_site(side, us_site(rest)) != 0))
            {
                side->failed = 1;
            }
        }
    }
}


/* collects the entries of what was deleted since the last merge */

static int
us_replay_gone(us_store_t *s)
{
    size_t             i;
    uint64_t           words;
    unsigned           t;
    us_replay_t       *r;
    us_replay_side_t  *side;

    r = s->replay;

    if (r->ngone == 0) {
        return 0;
    }

    words = r->merged / 64 + 1;

    us_work_run(r->work, us_replay_gone_piece, s,
                (words + US_REPLAY_WORDS - 1) / US_REPLAY_WORDS);

    for (t = 0; t < US_BULK_THREADS; t++) {
        if (r->sides[t].failed) {
            return US_REPLAY_FAILED;
        }
    }

    for (t = 0; t < US_BULK_THREADS; t++) {
        side = &r->sides[t];

        for (i = 0; i < side->ngone; i++) {
            us_site_uncount_locked(&s->arena,
                                   us_site_number(&s->arena, side->gone[i]));
            us_commit_locked(&s->arena);
        }

        side->ngone = 0;
    }

    free(r->gone);
    r->gone = NULL;

    return 0;
}


int
us_replay_bulk_deleted(us_store_t *s, uint64_t id)
{
    us_replay_t  *r;

    r = s->replay;

    if (id >= r->merged) {
        return 0;
    }

    if (r->gone == NULL) {
        r->gone = calloc(r->merged / 64 + 1, sizeof(uint64_t));

        if (r->gone == NULL) {
            return US_REPLAY_FAILED;
        }
    }

    r->gone[id / 64] |= (uint64_t) 1 << id % 64;
    r->ngone++;

    return r->ngone % US_REPLAY_BATCH == 0 && us_replay_enough(s)
           ? us_replay_bulk_merge(s, 0) : 0;
}


int
us_replay_bulk_merge(us_store_t *s, int last)
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

    for (t = 0; t < us_work_threads(r->work); t++) {

        if (h->flags & US_HEAD_SITES) {

            /* ids that stand for others did so in this merge only */

            memset(r->sides[t].sites, 0,
                   US_REPLAY_SITES * sizeof(us_replay_site_t));

        } else {
            us_release(&h->sites, h->sites + r->sides[t].found);
        }
    }

    r->merged = r->hashed;
    r->ngone = 0;

    return rc;
}


/*
 * Entries of the cache are hints: it does not matter which thread writes one
 * last.  The cache has grown as far as it can, so no thread makes it grow.
 */

static void
us_replay_cache_piece(void *data, unsigned t, size_t i)
{
    size_t       len;
    uint64_t     id, end;
    us_store_t  *s = data, *side;

    side = s->replay->sides[t].store;

    id = s->replay->cached + i * US_REPLAY_PIECE;
    end = id + US_REPLAY_PIECE;
    end = end < us_head(s)->next_id ? end : us_head(s)->next_id;

    for ( /* void */ ; id < end; id++) {
        len = us_record_decode(side->codec, id, side->url);
        us_record_replayed(side->codec, id, side->url, len);
    }
}


void
us_replay_bulk_cache(us_store_t *s, uint64_t id)
{
    s->replay->cached = id;

    us_work_run(s->replay->work, us_replay_cache_piece, s,
                (us_head(s)->next_id - id + US_REPLAY_PIECE - 1)
                / US_REPLAY_PIECE);
}
