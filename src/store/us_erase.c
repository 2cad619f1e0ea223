
/*
 * Erases the records of deleted URLs.
 *
 *   record    text                        after /people/ada is erased
 *   12        example.com/                example.com/
 *   40        12 + people/ada             stub: example.com/people/
 *   57        40 up to people/ + bob      the same: example.com/people/bob
 *
 * A record that is erased becomes ones.  What other records need of its text
 * becomes a stub (us_log.c): as many bytes as the largest common prefix with
 * which a record refers to it that is not erased itself; and the name of its
 * site, if it was the site's first URL and another one is left, for the index
 * finds a site by the text of its first URL.  So each byte that stays is one
 * that a remaining URL has at the same place.
 *
 *
 * A pass goes through the ids from the last one down, in rounds:
 *
 *     collect   the next ids that are deleted and not ones, or have a stub,
 *               up to `most` of them, less if many begin sites: the list
 *     scan      all records above the last id of the list: who refers to one
 *               of the list?  whose site has a first URL in the list?
 *     write     from the first id of the list down: the stub, then the bits
 *
 * Why nothing is missed.  A reference is to a lower id.  So the records that
 * need the text of an id are above it.  Those of them that are deleted as well
 * are in the same list, or were erased in a round before.  No record refers to
 * an id that was deleted before the record was added (us_record_emit_locked()).
 * So after an id was collected, fewer records need it, never more.  Its site
 * can get more URLs: ids that were given after the scan are looked at under the
 * lock.
 *
 * Why nothing is lost.  Records are erased from the highest id down, in the
 * list as well.  A record depends on lower ids only, so its text is there until
 * it is erased.  If a pass ends early, some records are ones and all others are
 * as they were.  Stubs may be longer then than they have to be; the next pass
 * finds them, as ids with stubs, and makes them shorter.
 *
 * The list has no ids of those deleted since it was collected: they count as
 * others do.  The next pass erases them and looks after their references.
 *
 * Then the texts of all records that are left are looked at, for tokens of
 * models that no URL has any more (us_tokens.c): first those that are there,
 * without the lock, then, under the lock in which a model is replaced, those
 * that were added since.
 *
 * An id for whose stub there is no room stays as it is, and counts as one that
 * is left.
 *
 * A kill at any moment: see us_log.c.
 *
 * A site of which all URLs were erased is not found any more.  It counts as a
 * site until the index is built anew.
 */


#include "us_erase.h"
#include "us_store_private.h"
#include "../codec/us_tokens.h"

#include <limits.h>
#include <stdlib.h>


/* bytes that a site has mostly, with what stands around it */
#define US_ERASE_SITE  64

/*
 * Of a round, one id in so many can be the first one of a site: these are
 * sorted in one step, a million of them in 0.2 s.
 */
#define US_ERASE_FIRST 32

/* bytes of a text after which it counts as one more */
#define US_ERASE_TEXT  128

/* times that the lock is given up because many texts were added meanwhile */
#define US_ERASE_TRIES 16


typedef struct {
    uint64_t            id:47;
    uint64_t            site:1;       /* another URL of its site is left */
    uint64_t            need:16;      /* others refer to so many bytes */
} us_erase_id_t;


/* the site of an id of the list that is the first one of it */

typedef struct {
    uint64_t            hash;         /* another one with "www." */
    size_t              at;           /* in the list */
} us_erase_site_t;


typedef enum {
    US_ERASE_COLLECT = 0,
    US_ERASE_SCAN,
    US_ERASE_WRITE,
    US_ERASE_TEXTS,
    US_ERASE_DROP
} us_erase_phase_t;


struct us_erase_s {
    us_store_t         *store;
    us_erase_phase_t    phase;
    us_erase_figures_t  figures;

    uint64_t            low;          /* all from here on have been collected */

    /* of a round */
    us_erase_id_t      *list;         /* descending */
    size_t              n;
    size_t              most;
    us_erase_site_t    *sites;        /* by hash, when the scan begins */
    size_t              nsites;
    size_t              room;
    uint64_t            scanned;      /* all below were looked at, */
    size_t              left;         /* of the list, these are above it */
    size_t              written;      /* of the list */
    int                 full;         /* some could not be erased */

    us_tokens_t        *tokens;       /* after the last round */
};


us_erase_t *
us_erase_create(us_store_t *s, size_t most)
{
    us_erase_t  *e;

    e = calloc(1, sizeof(us_erase_t));

    if (e == NULL) {
        return NULL;
    }

    e->store = s;
    e->most = most;
    e->low = us_store_next_id(s);
    e->list = malloc(most * sizeof(us_erase_id_t));

    if (e->list == NULL) {
        free(e);
        return NULL;
    }

    return e;
}


void
us_erase_free(us_erase_t *e)
{
    us_tokens_free(e->tokens);
    free(e->sites);
    free(e->list);
    free(e);
}


const us_erase_figures_t *
us_erase_figures(const us_erase_t *e)
{
    return &e->figures;
}


us_store_status_t
us_store_erase_locked(us_store_t *s, uint64_t id, us_str_t text,
    const us_op_t *op)
{
    us_arena_t  *a;

    a = &s->arena;

    if (us_log_erase_reserve_locked(a, id, text.len) != 0) {
        return US_FULL;
    }

    if (op) {
        us_ring_put_locked(a, op);
    }

    us_log_erase_locked(a, id, text);
    us_commit_locked(a);
    us_log_enter_locked(a);

    return US_OK;
}


static int
us_erase_site_cmp(const void *one, const void *two)
{
    const us_erase_site_t  *a = one, *b = two;

    return (a->hash > b->hash) - (a->hash < b->hash);
}


static inline uint64_t
us_erase_hash(const us_sought_t *site)
{
    return site->hash ^ (site->www == US_SPELLING_WWW);
}


/* appends an id to the list; -1: no memory */

static int
us_erase_put(us_erase_t *e, uint64_t id)
{
    size_t            room;
    unsigned          klass;
    us_str_t          rest;
    us_store_t       *s;
    us_sought_t       sought;
    us_store_site_t   site;
    us_erase_site_t  *p;

    s = e->store;
    rest = us_store_rest(s, id, s->url, &klass);
    sought = us_store_record_site(s, klass, rest);

    e->list[e->n].id = id & UINT64_MAX >> 17;
    e->list[e->n].site = 0;
    e->list[e->n].need = 0;
    e->n++;

    if (rest.len == 0 || !us_store_site_find(s, &sought, &site)
        || site.first != id)
    {
        return 0;
    }

    if (e->nsites == e->room) {
        room = 2 * e->room + 64;
        p = realloc(e->sites, room * sizeof(us_erase_site_t));

        if (p == NULL) {
            e->n--;
            return -1;
        }

        e->sites = p;
        e->room = room;
    }

    p = &e->sites[e->nsites++];
    p->hash = us_erase_hash(&sought);
    p->at = e->n - 1;

    return 0;
}


/* whether the round can have another id */

static inline int
us_erase_room(const us_erase_t *e)
{
    return e->n < e->most
           && (e->nsites == 0 || e->nsites < e->most / US_ERASE_FIRST);
}


/* there are no more records to be erased: their words in models are next */

static us_store_status_t
us_erase_tokens(us_erase_t *e)
{
    us_store_t  *s;

    s = e->store;

    us_tokens_free(e->tokens);

    us_store_enter(s);
    e->tokens = us_tokens_create_locked(s->codec);
    us_store_leave(s);

    if (e->tokens == NULL) {
        return US_FULL;
    }

    e->scanned = 0;
    e->phase = US_ERASE_TEXTS;

    return US_NEW;
}


/*
 * Words of deleted ids, downwards.  A chunk that is not there has no deleted
 * ids, and is passed over.
 */

static us_store_status_t
us_erase_collect(us_erase_t *e, unsigned n)
{
    uint64_t     id, word, *p;
    us_str_t     stub;
    us_arena_t  *a;

    a = &e->store->arena;

    for ( /* void */ ; n && e->low && us_erase_room(e); n--) {

        /* of ids below low: the highest one, or its whole chunk */

        id = e->low - 1;
        p = us_deleted_word(a, id / 64);

        if (p == NULL) {
            e->low = id >> (a->chunk_shift + 3) << (a->chunk_shift + 3);
            continue;
        }

        /* acquire: as in us_deleted() */

        word = us_acquire(p) & UINT64_MAX >> (63 - id % 64);

        if (word == 0) {
            e->low = id / 64 * 64;
            continue;
        }

        id = id / 64 * 64 + 63 - (unsigned) __builtin_clzll(word);

        if ((!us_store_is_erased(e->store, id) || us_log_stub(a, id, &stub))
            && us_erase_put(e, id) != 0)
        {
            return US_FULL;
        }

        e->low = id;
    }

    if (us_erase_room(e) && e->low) {
        return US_NEW;
    }

    if (e->n == 0) {
        us_store_enter(e->store);
        us_log_clear_locked(a);
        us_store_leave(e->store);

        return us_erase_tokens(e);
    }

    if (e->nsites) {
        qsort(e->sites, e->nsites, sizeof(us_erase_site_t),
              us_erase_site_cmp);
    }

    e->phase = US_ERASE_SCAN;
    e->scanned = e->list[e->n - 1].id;
    e->left = e->n;

    return US_NEW;
}


/* descending */

static int
us_erase_id_cmp(const void *one, const void *two)
{
    const us_erase_id_t  *a = one, *b = two;

    return (a->id < b->id) - (a->id > b->id);
}


/* id is left: its site is */

static void
us_erase_live(us_erase_t *e, uint64_t id)
{
    size_t       low, high, middle;
    unsigned     klass;
    uint64_t     hash;
    us_str_t     rest;
    us_store_t  *s;
    us_sought_t  sought;

    s = e->store;

    rest.len = us_store_decode(s, id, s->url, US_ERASE_SITE) - 1;
    rest.data = s->url + 1;

    if (us_site(rest).len == rest.len) {
        rest.len = us_store_decode(s, id, s->url, US_URL_MAX + 1) - 1;
    }

    klass = s->url[0];
    rest = us_store_bare(rest, &klass);
    sought = us_store_record_site(s, klass, rest);
    hash = us_erase_hash(&sought);

    low = 0;
    high = e->nsites;

    while (low < high) {
        middle = (low + high) / 2;

        if (e->sites[middle].hash < hash) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    for ( /* void */ ; low < e->nsites && e->sites[low].hash == hash; low++) {
        e->list[e->sites[low].at].site = 1;
    }
}


/* id is left, or could not be erased: others may be needed for it */

static void
us_erase_need(us_erase_t *e, uint64_t id)
{
    unsigned        cut;
    uint64_t        reference;
    us_store_t     *s;
    us_reading_t    r = { 0, 0 };
    us_erase_id_t   key, *one;

    s = e->store;
    cut = 0;

    while (us_store_reading(s, &r)) {
        cut = us_record_reference(s->codec, id, &reference);
    }

    if (cut == 0 || !us_deleted(&s->arena, reference)) {
        return;
    }

    key.id = reference & UINT64_MAX >> 17;
    one = bsearch(&key, e->list, e->n, sizeof(us_erase_id_t), us_erase_id_cmp);

    if (one && one->need < cut) {
        one->need = cut & UINT16_MAX;
    }
}


/* looks at up to n records below end */

static void
us_erase_scan(us_erase_t *e, unsigned n, uint64_t end)
{
    uint64_t     id;
    us_store_t  *s;

    s = e->store;

    for ( /* void */ ; n && e->scanned < end; n--, e->scanned++) {
        id = e->scanned;

        if (e->left && e->list[e->left - 1].id == id) {
            e->left--;
            continue;
        }

        us_erase_need(e, id);

        if (e->nsites && !us_deleted(&s->arena, id)) {
            us_erase_live(e, id);
        }
    }
}


static us_store_status_t
us_erase_one_locked(us_erase_t *e, const us_erase_id_t *one)
{
    int          done;
    size_t       len, need, end;
    us_op_t      op;
    unsigned     klass;
    us_str_t     site, stub;
    us_store_t  *s;

    s = e->store;
    done = us_store_is_erased(s, one->id);
    len = us_store_decode(s, one->id, s->url, US_URL_MAX + 1);
    need = one->need;

    if (one->site) {

        /* up to the end of its site, and one byte more, which ends it */

        klass = s->url[0];
        site.data = s->url + 1;
        site.len = len - 1;
        site = us_site(us_store_bare(site, &klass));
        end = (size_t) (site.data - s->url) + site.len + 1;
        need = need > end ? need : end;
    }

    /* a record that cannot be read has no text: nobody has its bytes */

    need = len == 1 ? 0 : need < len ? need : len;

    (void) us_log_stub(&s->arena, one->id, &stub);

    if (done && stub.len <= need) {
        return US_NEW;
    }

    op = us_op(US_OP_ERASED, one->id, s->url, need);

    if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        return US_BUSY;
    }

    us_bulk_keep_locked(&s->arena, 0);

    if (us_store_erase_locked(s, one->id, op.bytes, &op) != US_OK) {
        us_erase_need(e, one->id);
        e->full = 1;

        return US_NEW;
    }

    e->figures.erased += !done;
    e->figures.stubs += need != 0;
    e->figures.stub_bytes += need;

    return US_NEW;
}


/* erases up to n ids of the list */

static us_store_status_t
us_erase_write(us_erase_t *e, unsigned n)
{
    unsigned            k;
    us_store_t         *s;
    us_store_status_t   rc;

    s = e->store;
    rc = US_NEW;

    while (n && e->written < e->n && rc == US_NEW) {

        /* most of those that were added meanwhile, before the lock is taken */

        us_erase_scan(e, UINT_MAX, us_store_next_id(s));

        us_store_enter(s);

        if (us_store_fenced_locked(s)) {
            rc = US_FENCED;
        }

        us_erase_scan(e, UINT_MAX, us_store_next_id(s));

        for (k = 0;
             k < US_ERASE_HOLD && n && e->written < e->n
             && rc == US_NEW;
             k++, n--)
        {
            rc = us_erase_one_locked(e, &e->list[e->written]);
            e->written += rc == US_NEW;
        }

        us_store_leave(s);
    }

    if (e->written == e->n) {
        e->n = 0;
        e->nsites = 0;
        e->written = 0;
        e->phase = US_ERASE_COLLECT;
    }

    return rc;
}


/*
 * Looks at the texts of up to n records below end, unless nothing is left; a
 * long one counts as several.
 */

static void
us_erase_texts(us_erase_t *e, unsigned n, uint64_t end)
{
    size_t       len;
    unsigned     many;
    us_store_t  *s;

    s = e->store;

    if (us_tokens_left(e->tokens) == 0) {
        e->scanned = end;
    }

    for (many = 1; n && e->scanned < end; n -= many, e->scanned++, many = 1) {

        if (us_store_is_erased(s, e->scanned)) {
            continue;
        }

        len = us_store_decode(s, e->scanned, s->url, US_URL_MAX + 1);
        us_tokens_text(e->tokens, s->url, len);

        many += (unsigned) (len / US_ERASE_TEXT);
        many = many < n ? many : n;
    }
}


/* replaces a model, or ends */

static us_store_status_t
us_erase_drop(us_erase_t *e)
{
    int                 rc;
    us_op_t             op;
    unsigned            tries;
    us_store_t         *s;
    us_store_status_t   status;

    s = e->store;
    op = us_op(US_OP_DROP, 0, NULL, 0);

    us_erase_texts(e, UINT_MAX, us_store_next_id(s));
    rc = us_tokens_next(e->tokens, &op.id, &op.bytes);

    if (rc == -1) {
        return US_FULL;
    }

    /*
     * Takes the lock when all texts were looked at but for a few, which are
     * then.  If many were added between the two, that is tried again.
     */

    for (tries = US_ERASE_TRIES; /* void */ ; tries--) {
        us_erase_texts(e, UINT_MAX, us_store_next_id(s));

        us_store_enter(s);

        us_erase_texts(e, tries ? US_ERASE_HOLD : UINT_MAX,
                       us_store_next_id(s));

        if (e->scanned == us_store_next_id(s)) {
            break;
        }

        us_store_leave(s);
    }

    status = US_NEW;

    if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (us_tokens_lost_locked(e->tokens)) {
        us_store_leave(s);
        return us_erase_tokens(e);

    } else if (rc == 0) {
        us_tokens_clear_locked(e->tokens);
        status = e->full ? US_FULL : US_OK;

    } else if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        us_bulk_keep_locked(&s->arena, 0);
        rc = us_tokens_replace_locked(e->tokens);

        if (rc == 0) {
            us_ring_put_locked(&s->arena, &op);
            us_commit_locked(&s->arena);
            e->figures.models++;

        } else if (rc != 1) {
            status = US_FULL;
        }
    }

    us_store_leave(s);

    return status;
}


us_store_status_t
us_erase_step(us_erase_t *e, unsigned n)
{
    switch (e->phase) {

    case US_ERASE_COLLECT:
        return us_erase_collect(e, n);

    case US_ERASE_SCAN:
        us_erase_scan(e, n, us_store_next_id(e->store));

        if (e->scanned == us_store_next_id(e->store)) {
            e->phase = US_ERASE_WRITE;
        }

        return US_NEW;

    case US_ERASE_TEXTS:
        us_erase_texts(e, n, us_store_next_id(e->store));

        if (e->scanned == us_store_next_id(e->store)) {
            e->phase = US_ERASE_DROP;
        }

        return US_NEW;

    case US_ERASE_DROP:
        return us_erase_drop(e);

    default:
        return us_erase_write(e, n);
    }
}
