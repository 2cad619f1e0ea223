
/*
 * Replay: operations from a journal or a dump.
 *
 * A store that is empty when the first operation comes is built in bulk, since
 * nobody reads it yet.  Records go to the log; deletes and marks are bits; the
 * index is made of many records at once (us_replay_bulk.c), and of the last
 * ones when the store is settled.  From then on readers may be at work, and
 * each further add is put into the index by itself, under the lock.
 *
 * When the zone turns out to be too small, no further operation is applied to
 * it.  If nobody has looked at the store yet, what it has is moved to private
 * memory of twice the size, where the replay goes on, perhaps from there to
 * memory that is larger again.  So a SIZE that suffices can be reported.
 */


#include "us_replay_private.h"

#include "us_shard.h"
#include "../zone/us_log.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


/* records for each entry of the cache that is restored by them, at most */
#define US_REPLAY_CACHED  1


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


void
us_replay_free(us_store_t *s)
{
    if (s->replay) {
        us_replay_bulk_close(s);
        us_replay_drop(s->replay);
        free(s->replay);
        s->replay = NULL;
    }
}


int
us_replay_builds(const us_store_t *s, uint64_t *ids)
{
    *ids = s->replay ? s->replay->ahead : 0;

    return s->replay && s->replay->bulk;
}


/*
 * Adds of a settled store: the index of those whose leaves were asked for.  0,
 * or US_REPLAY_NO_ROOM.
 */

static int
us_replay_flush(us_store_t *s)
{
    unsigned          i, n;
    us_str_t          rest;
    us_replay_add_t  *add;
    us_store_site_t   site;

    n = s->replay->n;
    s->replay->n = 0;

    for (i = 0; i < n; i++) {
        add = &s->replay->adds[i];

        rest.len = us_record_decode(s->codec, add->id, s->url) - 1;
        rest.data = s->url + 1;
        site.first = US_STORE_NO_ID;

        (void) us_store_site_find(s, us_site(rest), add->hashes.site, &site);

        if (us_store_reserve_locked(s, add->id, &add->hashes,
                                    site.first == US_STORE_NO_ID)
            != 0)
        {
            return US_REPLAY_NO_ROOM;
        }

        us_store_index_locked(s, add->id, &add->hashes, site.first);
        us_commit_locked(&s->arena);

        us_record_replayed(s->codec, add->id, s->url, rest.len + 1);
    }

    return 0;
}


static int
us_replay_index(us_store_t *s, uint64_t id)
{
    us_probe_t        p;
    us_replay_add_t  *add;

    add = &s->replay->adds[s->replay->n];
    add->id = id;
    us_store_hashes(s, id, &add->hashes);

    /* a damaged record keeps its id, but no look-up finds it */

    if (us_record_decode(s->codec, id, s->url) == 1) {
        return 0;
    }

    us_index_start(&s->arena, &p, add->hashes.url);

    return ++s->replay->n == US_REPLAY_GROUP ? us_replay_flush(s) : 0;
}


static int
us_replay_add(us_store_t *s, const us_op_t *op)
{
    uint64_t     id;
    us_arena_t  *a;

    a = &s->arena;
    id = a->head->next_id;

    /* readers of bits may load 8 bytes past the end */

    memcpy(s->bits, op->bytes.data, op->bytes.len);

    if (us_log_reserve_locked(a, id, op->units) != 0
        || (a->head->clock && us_claims_reserve_locked(a, id) != 0))
    {
        return US_REPLAY_NO_ROOM;
    }

    us_log_write_locked(a, id, s->bits, op->units);

    if (a->head->clock) {
        us_claims_write_locked(a, id, (uint32_t) a->head->clock);
    }

    us_log_append_locked(a, op->units);
    us_intend_locked(a, &a->head->next_id, id + 1);
    us_commit_locked(a);

    if (a->head->flags & US_HEAD_LOOKUP) {
        return 0;
    }

    return s->replay->bulk ? us_replay_bulk_added(s)
                           : us_replay_index(s, id);
}


static int
us_replay_delete(us_store_t *s, uint64_t id)
{
    unsigned      m;
    us_head_t    *h;
    us_arena_t   *a;
    us_hashes_t   hashes;

    a = &s->arena;
    h = a->head;

    if (id >= h->next_id) {
        return US_REPLAY_DAMAGED;
    }

    if (us_marked(a, US_AREA_DELETED, id)) {
        return 0;
    }

    if (s->replay->bulk == NULL) {
        us_store_hashes(s, id, &hashes);

        return us_store_forget_locked(s, id, &hashes, NULL) == US_OK
               ? 0 : US_REPLAY_NO_ROOM;
    }

    if (us_mark_reserve_locked(a, US_AREA_DELETED, id) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    us_mark_set_locked(a, US_AREA_DELETED, id, 1);
    us_intend_locked(a, &h->deleted, h->deleted + 1);

    for (m = 0; m < h->nmarks; m++) {
        if (us_marked(a, US_AREA_MARK + m, id)) {
            us_mark_set_locked(a, US_AREA_MARK + m, id, 0);
        }
    }

    us_claims_set_locked(a, id, 0);
    us_commit_locked(a);

    return us_replay_bulk_deleted(s, id);
}


static int
us_replay_clock(us_store_t *s, uint64_t unit)
{
    us_arena_t  *a;

    a = &s->arena;

    if (unit == 0 || unit > US_CLAIMS_UNIT_MAX || a->head->revisit == 0) {
        return US_REPLAY_DAMAGED;
    }

    if (unit > a->head->clock) {
        us_intend_locked(a, &a->head->clock, unit);
        us_commit_locked(a);
    }

    return 0;
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

        if (us_marked(a, US_AREA_DELETED, id)) {
            continue;
        }

        if (op->id && us_claims_reserve_locked(a, id) != 0) {
            return US_REPLAY_NO_ROOM;
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

        if (unit == 0 || us_marked(a, US_AREA_DELETED, id)) {
            continue;
        }

        if (us_claims_reserve_locked(a, id) != 0) {
            return US_REPLAY_NO_ROOM;
        }

        us_claims_write_locked(a, id, unit);
    }

    return 0;
}


/* a mark that was set on an id which was deleted later is void */

static int
us_replay_mark(us_store_t *s, unsigned m, uint64_t id, int on)
{
    if (id >= us_head(s)->next_id || m >= us_head(s)->nmarks) {
        return US_REPLAY_DAMAGED;
    }

    if (us_marked(&s->arena, US_AREA_DELETED, id)) {
        return 0;
    }

    return us_store_mark_locked(s, m, id, on, NULL) == US_OK
           ? 0 : US_REPLAY_NO_ROOM;
}


/* 64 marks, of ids that are given */

static int
us_replay_mark_word(us_store_t *s, unsigned m, uint64_t number, uint64_t word)
{
    uint64_t     *p, next;
    us_arena_t   *a;

    a = &s->arena;
    next = us_head(s)->next_id;

    if (number * 64 + 63 - __builtin_clzll(word) >= next
        || m >= us_head(s)->nmarks)
    {
        return US_REPLAY_DAMAGED;
    }

    p = us_marks_word(a, US_AREA_DELETED, number);
    word &= ~(p ? us_relaxed(p) : 0);

    if (word == 0) {
        return 0;
    }

    if (us_mark_reserve_locked(a, US_AREA_MARK + m, number * 64) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    p = us_marks_word(a, US_AREA_MARK + m, number);
    us_intend_locked(a, p, us_relaxed(p) | word);
    us_commit_locked(a);

    return 0;
}


/*
 * 64 deleted ids, which come at the beginning of a dump.  They are not given
 * yet: their bits keep them out of the index.
 */

static int
us_replay_delete_word(us_store_t *s, uint64_t number, uint64_t word)
{
    uint64_t    *p;
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;

    if (h->next_id) {
        return US_REPLAY_DAMAGED;
    }

    if (us_mark_reserve_locked(a, US_AREA_DELETED, number * 64) != 0) {
        return US_REPLAY_NO_ROOM;
    }

    p = us_marks_word(a, US_AREA_DELETED, number);
    word &= ~us_relaxed(p);

    if (word == 0) {
        return 0;
    }

    us_intend_locked(a, p, us_relaxed(p) | word);
    us_intend_locked(a, &h->deleted, h->deleted + __builtin_popcountll(word));
    us_commit_locked(a);

    number = number * 64 + 64 - __builtin_clzll(word);

    if (number > s->replay->ahead) {
        s->replay->ahead = number;
    }

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

        switch (op->type) {

        case US_OP_DELETED:
            rc = us_replay_delete_word(s, op->id + i, word);
            break;

        case US_OP_CLAIMS:
        case US_OP_CLAIMS_SHORT:
            rc = us_replay_claim_word(s, op->type, op->id + i, word);
            break;

        default:
            rc = us_replay_mark_word(s, op->mark, op->id + i, word);
        }
    }

    return rc;
}


static int
us_replay_model(us_store_t *s, const us_op_t *op)
{
    int  rc;

    rc = us_record_install_locked(s->codec, op->bytes);

    if (rc == 0) {
        us_commit_locked(&s->arena);
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

    for (leaf = op->id; left; leaf++) {
        memcpy(&n, p, sizeof(uint64_t));
        p += sizeof(uint64_t);
        left--;

        if (n > left) {
            return US_REPLAY_DAMAGED;
        }

        rc = us_bulk_image_leaf(s->replay->bulk, leaf, p, n);

        if (rc != 0) {
            return rc;
        }

        p += n * sizeof(uint64_t);
        left -= n;
    }

    return 0;
}


/* the cache is restored at the end, if there is room for it then */

static int
us_replay_cache(us_store_t *s, const us_op_t *op)
{
    us_replay_t  *r;

    r = s->replay;

    if (!r->image || r->cache == NULL) {
        return 0;
    }

    if (op->id > r->cache_size || op->bytes.len > r->cache_size - op->id) {
        return US_REPLAY_DAMAGED;
    }

    memcpy(r->cache + op->id, op->bytes.data, op->bytes.len);

    return 0;
}


static int
us_replay_op(us_store_t *s, const us_op_t *op)
{
    int           rc;
    us_replay_t  *r;

    r = s->replay;

    /* the leaves of an image end with the first operation that is none */

    if (r->reading && op->type != US_OP_LEAVES && op->type != US_OP_IMAGE) {
        r->reading = 0;
        rc = us_bulk_image_end(r->bulk);

        if (rc != 0) {
            return rc;
        }
    }

    if (op->type == US_OP_ADD) {
        return us_replay_add(s, op);
    }

    rc = us_replay_flush(s);

    if (rc != 0) {
        return rc;
    }

    switch (op->type) {

    case US_OP_DELETE:
        return us_replay_delete(s, op->id);

    case US_OP_MARK:
        return us_replay_mark(s, op->mark, op->id, 1);

    case US_OP_UNMARK:
        return us_replay_mark(s, op->mark, op->id, 0);

    case US_OP_CLOCK:
        return us_replay_clock(s, op->id);

    case US_OP_CLAIM:
        return us_replay_claim(s, op);

    case US_OP_MARKS:
    case US_OP_DELETED:
    case US_OP_CLAIMS:
    case US_OP_CLAIMS_SHORT:
        return us_replay_words(s, op);

    case US_OP_MODEL:
        return us_replay_model(s, op);

    case US_OP_AT:
        return op->id == us_head(s)->next_id ? 0 : US_REPLAY_DAMAGED;

    case US_OP_EXPECT:
        r->expect = op->id < us_head(s)->size ? op->id : 0;
        return 0;

    case US_OP_IMAGE:
        return us_replay_image(s, op);

    case US_OP_LEAVES:
        return us_replay_leaves(s, op);

    case US_OP_CACHE:
        return us_replay_cache(s, op);

    case US_OP_MAP:
        r->map = op->bytes.len > r->map ? op->bytes.len : r->map;
        return us_shard_replay(s, op);

    case US_OP_TERM:
        return 0;

    default:
        return US_REPLAY_DAMAGED;
    }
}


/* 0, or US_REPLAY_* */

static int
us_replay_open(us_store_t *s)
{
    us_head_t  *h;

    h = us_head(s);
    s->replay = calloc(1, sizeof(us_replay_t));

    if (s->replay == NULL) {
        return US_REPLAY_FAILED;
    }

    if (h->next_id || h->settled || (h->flags & US_HEAD_LOOKUP)) {
        return 0;
    }

    return us_replay_bulk_open(s);
}


/*
 * The operations of a part.  They end by its end, or with a failure; those up
 * to *done are in the store then.
 */

static int
us_replay_run(us_store_t *s, const uint8_t *p, size_t len, size_t *done,
    unsigned max)
{
    int       rc;
    ssize_t   n;
    us_op_t   op;
    uint64_t  next;

    for ( /* void */ ; *done < len && max; *done += n, max--) {
        n = us_op_parse(p + *done, len - *done, &op);

        if (n < 0) {
            return US_REPLAY_DAMAGED;
        }

        if (n == 0 || n > (ssize_t) (len - *done)) {
            break;
        }

        next = us_head(s)->next_id;
        rc = us_replay_op(s, &op);

        /* an add may have failed when its record was there */

        if (rc != 0) {
            *done += us_head(s)->next_id > next ? (size_t) n : 0;
            return rc;
        }
    }

    return us_replay_flush(s);
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
 * machine's memory, three quarters are for the zone and the larger store.
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
    most = (size_t) sysconf(_SC_PHYS_PAGES) / 4 * 3
           * (size_t) sysconf(_SC_PAGESIZE);

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
    int           rc;
    size_t        done, before;
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
    done = 0;

    if (rc == 0 && r->bulk) {
        us_arena_enter(&s->arena);
        rc = us_replay_run(s, p, len, &done, UINT32_MAX);

    } else if (rc == 0) {

        do {
            before = done;
            us_store_enter(s);
            rc = us_replay_run(s, p, len, &done, US_STORE_GROUP);
            us_store_leave(s);
        } while (rc == 0 && done > before && done < len);
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


/* the cache of an image, and what later records have to give */

static void
us_replay_restore(us_store_t *s)
{
    uint64_t      id, n, at;
    us_arena_t   *a;
    us_replay_t  *r;

    a = &s->arena;
    r = s->replay;

    if (r->cache && us_prefix_restore(a, r->cache_size) == 0) {
        for (at = 0; at < r->cache_size; at += US_PREFIX_PIECE) {
            (void) us_prefix_paste(a, at, r->cache + at, US_PREFIX_PIECE);
        }
    }

    do {
        n = us_prefix_bytes(a);
        us_prefix_grow_locked(a);
    } while (us_prefix_bytes(a) > n);

    n = n / sizeof(uint32_t) * US_REPLAY_CACHED;
    id = us_head(s)->next_id;
    id = id > n ? id - n : 0;
    id = id > r->image ? id : r->image;

    if (n) {
        us_replay_bulk_cache(s, id);
    }
}


/* an image has ids, or ids were deleted, that no operation has given */

static int
us_replay_lacks_ids(us_store_t *s)
{
    uint64_t      n;
    us_replay_t  *r;

    r = s->replay;
    n = us_head(s)->next_id;

    return n < r->image || n < r->ahead ? US_REPLAY_DAMAGED : 0;
}


/*
 * What is left to be done in bulk.  The cache is filled from the ids past the
 * image: there are none if ids are lacking.
 */

static int
us_replay_build(us_store_t *s)
{
    int           rc;
    us_replay_t  *r;

    r = s->replay;
    rc = 0;

    us_arena_enter(&s->arena);

    if (r->reading) {
        r->reading = 0;
        rc = us_bulk_image_end(r->bulk);
    }

    if (rc == 0) {
        rc = us_replay_bulk_merge(s, 1);
    }

    if (rc == 0) {
        rc = us_replay_lacks_ids(s);
    }

    if (rc == 0) {
        us_replay_restore(s);
    }

    return rc;
}


int
us_store_settle(us_store_t *s)
{
    int           rc;
    us_replay_t  *r;

    r = s->replay;
    rc = 0;

    if (r) {

        if (r->rc == 0 && r->bulk) {
            r->rc = us_replay_build(s);

            if (r->rc == US_REPLAY_NO_ROOM && us_replay_move(s) != 0) {
                r->rc = US_REPLAY_DAMAGED;
            }

            us_replay_bulk_close(s);
        }

        if (r->rc == US_REPLAY_NO_ROOM && us_replay_larger(r, NULL, 0) != 0) {
            r->rc = US_REPLAY_DAMAGED;
        }

        rc = r->rc ? r->rc : us_replay_lacks_ids(s);
    }

    us_release(&us_head(s)->settled, rc == 0);

    return rc;
}


/*
 * Most areas take as many bytes in a smaller zone, or less, as its chunks are
 * not larger.  But the index is built anew, the prefix cache takes what is left
 * then, and the places of maps depend on SIZE.
 */

uint64_t
us_store_size_needed(us_store_t *s, int journal)
{
    uint64_t          i, size, log, bytes, maps, chunks, leaves;
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
            && i != US_AREA_CACHE && i != US_AREA_MAPS)
        {
            bytes += us_area_bytes(&s->arena, i);
        }
    }

    leaves = us_bulk_leaves(h->entries);
    leaves = leaves > h->leaves ? leaves : h->leaves;

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

        if (!conf.lookup) {
            chunks += us_bulk_chunks(l.chunk_shift, l.leaf_shift, leaves,
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
