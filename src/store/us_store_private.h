
/*
 * What the files of the store share and nobody else sees.
 *
 *     us_store.c    a store opened; its journal's side, its trainer, its parts
 *     us_look.c     look-ups, which take no lock
 *     us_add.c      what is done under the lock: adds, deletes
 *     us_claims.c   claims, under the lock and without
 *     us_put.c      sets and the marks among them, the same
 *     us_erased.c   the list of what must not come back
 *     us_erasures.c what was erased
 *     us_shard.c    the map of a shard: what it may answer
 *     us_erase.c    records of deleted URLs, erased
 *     us_replay.c   operations from a journal or a dump
 *     us_dump.c     a store as such operations
 */


#ifndef _US_STORE_PRIVATE_H_INCLUDED_
#define _US_STORE_PRIVATE_H_INCLUDED_


#include "us_bulk.h"
#include "../us_hash.h"
#include "us_index.h"
#include "us_keys.h"
#include "us_maps.h"
#include "../zone/us_log.h"
#include "../codec/us_learn.h"
#include "../codec/us_prefix.h"
#include "../codec/us_record.h"
#include "us_ring.h"
#include "us_sets.h"
#include "us_sites.h"
#include "us_store.h"


/* the longest URL, less the shortest that stands before a host */
#define US_REST_MAX        (US_URL_MAX - (sizeof("http://") - 1))

#define US_DOMAIN_HTTP     0
#define US_DOMAIN_HTTPS    1
#define US_DOMAIN_SITE     2          /* and 3, 4: us_store_site_key() */
#define US_DOMAIN_CHECK    5          /* of sites once more, in a replay; 6 */


/*
 * A site that is looked for.  Its hash is that of the host without "www.", so
 * both spellings are found there.
 */

#define US_SITE_ANY        (-1)

typedef struct {
    us_str_t          text;           /* without a leading "www." */
    int               www;            /* US_SPELLING_WWW: with it, 0: without,
                                         or US_SITE_ANY */
    uint64_t          hash;
} us_sought_t;


/* an entry of the list of what was erased, or its hash: see us_erased.c */

#define US_ERASURES          ((uint64_t) 1 << 30)     /* numbers are below */
#define US_ERASED_SPELLINGS  ((uint64_t) 3 << 30)
#define US_ERASED_SHIFT      4
#define US_ERASED_EACH       (1 << US_ERASED_SHIFT)   /* bytes */
#define US_ERASED_WITHOUT    1
#define US_ERASED_WITH       2

typedef struct {
    uint64_t          hash;
    uint64_t          rest;
} us_erased_hash_t;


/* of a URL, and of its site */

typedef struct {
    us_erased_hash_t  url;
    us_erased_hash_t  site;
    unsigned          known:1;
} us_erased_t;


/* how far a dump of the list is; moves is UINT64_MAX at first, and ended 0 */

typedef struct {
    uint64_t          moves;
    uint64_t          at;
    unsigned          old:1;
    unsigned          ended:1;
} us_erased_dump_t;


/* a URL of the group that is being added */

typedef struct {
    us_sought_t       site;
    us_erased_t       erased;
    uint64_t          site_first;     /* or US_STORE_NO_ID: not known */
    unsigned          klass;          /* as encoded */
    unsigned          again;          /* its hash was in the group before */
} us_store_seat_t;


/* an id of a group, and its place there */

typedef struct {
    uint64_t          id;
    unsigned          at;
} us_store_pick_t;


/* what other files ask of a replay, which stands above them */

typedef struct us_replay_s  us_replay_t;

typedef struct {
    void            (*free)(us_store_t *s);

    /* 1: the store is built and has no index yet; below *ids are deletes */
    int             (*builds)(const us_store_t *s, uint64_t *ids);
} us_replay_ops_t;


struct us_store_s {
    us_arena_t        arena;
    us_codec_t       *codec;
    us_learn_t        learn;
    us_store_lock_t   lock;
    uint64_t          now;            /* s since 1970, or 0: not known */
    us_store_seat_t   seats[US_STORE_GROUP];
    us_store_pick_t   picks[US_STORE_GROUP];
    unsigned          npicks;
    uint64_t          sweep_delay;    /* s: see us_erasures.h */
    us_store_set_t    set;            /* ids are put into it; or number 0 */
    us_store_pick_t   puts[US_STORE_GROUP];
    unsigned          nputs;
    us_hot_t         *hot;            /* or NULL */
    uint64_t         *hits;           /* of it, shared; or NULL */
    uint32_t          owner;          /* in it */
    us_hot_key_t      hot_keys[US_STORE_GROUP];
    us_keys_past_t    keys_past;
    us_replay_t      *replay;         /* us_store_apply()'s, else NULL */
    const us_replay_ops_t
                     *replay_ops;     /* of it */
    uint64_t          under_version;  /* of the map that requests name, or 0 */
    uint8_t           under_digest[16];
    us_store_map_t    map;            /* of a shard */
    uint8_t           text[US_TEXT_BUFFER];
    uint8_t           url[US_TEXT_BUFFER];
    uint8_t           bits[US_RECORD_BUFFER];
};


/*
 * The image of an index, in a dump: what US_OP_IMAGE says of those that follow.
 * It spares the adds below `ids` to be decoded and hashed once more.
 */

#define US_IMAGE_VERSION   4

typedef struct {
    uint64_t          version;        /* US_IMAGE_VERSION, else passed over */
    uint8_t           hash_key[16];
    uint64_t          ids;
    uint64_t          leaves;
    uint64_t          sites;
    uint64_t          cache;          /* bytes */
} us_store_image_t;


/* us_look.c */

/*
 * The text of a record, or its first `most` bytes, as us_record_decode_head();
 * never what is read of one that is being erased.  Also under the lock.
 */
size_t us_store_decode(us_store_t *s, uint64_t id, uint8_t *text, size_t most);

/* whether its bits are ones: others may need what is decoded then */
int us_store_is_erased(const us_store_t *s, uint64_t id);

/* one look-up; the caller holds the lock */
void us_store_look_locked(us_store_t *s, us_store_item_t *item);

/* item i of a group, answered: look-ups to come find it in the hot table */
void us_store_remember(us_store_t *s, const us_store_item_t *item, size_t i);

/* the site of an item, and of a record, whose class and rest these are */
us_sought_t us_store_item_site(us_store_t *s, const us_store_item_t *item);
us_sought_t us_store_record_site(us_store_t *s, unsigned klass, us_str_t rest);

/* 1: the site is known, out (but for its counter) is filled */
int us_store_site_find(us_store_t *s, const us_sought_t *site,
    us_store_site_t *out);

/* the same, if the hot table knows it */
int us_store_site_recall(us_store_t *s, const us_sought_t *site,
    us_store_site_t *out);

/* the hashes of a stored URL; and for the index, those of a leaf's entries */
void us_store_hashes(us_store_t *s, uint64_t id, us_hashes_t *hashes);
void us_store_hash_all(void *data, const uint64_t *ids, unsigned n,
    us_hashes_t *hashes);

/* us_claims.c: the array */

#define US_CLAIMS_UNIT_MAX  UINT32_MAX    /* of one minute: 8,000 years */

/* where the claim of an id is, or NULL: it was never claimed */

static inline uint32_t *
us_claims_at(const us_arena_t *a, uint64_t id)
{
    return (uint32_t *) us_sparse_at(a, US_AREA_CLAIMS, id * sizeof(uint32_t));
}


static inline uint32_t
us_claims_read(const us_arena_t *a, uint64_t id)
{
    uint32_t  *p;

    p = us_claims_at(a, id);

    /*
     * Acquire: the LSN of the operation that made the claim, and the clock's
     * value, were released before it.  So an answer that depends on the claim
     * waits for that LSN.
     */

    return p ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : 0;
}


/*
 * Claims below this unit, also 0, are older than `older` units.  `unit` is the
 * time; the clock may be ahead of it, and stands while nobody writes.
 */

static inline uint32_t
us_claims_before(uint64_t clock, uint64_t unit, uint64_t older)
{
    unit = unit > clock ? unit : clock;

    return unit > older ? (uint32_t) (unit - older) : 1;
}


/* the first id in [from, to) claimed before `before`, or `to`; no lock */
uint64_t us_claims_scan(const us_arena_t *a, uint32_t before, uint64_t from,
    uint64_t to);

/* under the lock, nothing intended: room for a claim; -1: there is none */
int us_claims_reserve_locked(us_arena_t *a, uint64_t id);

/* the claim of an id that no reader knows yet, for which there is room */
void us_claims_write_locked(us_arena_t *a, uint64_t id, uint32_t unit);

/* intends the claim of an id; 0 needs no room */
void us_claims_set_locked(us_arena_t *a, uint64_t id, uint32_t unit);

/*
 * The unit of a claim of 2 bytes, as older dumps have them (operation 14):
 *
 *     0            never, or long ago
 *     1 .. 65535   1 + unit % 65535
 *
 * The clock is the dump's.  An age above 65,512 units stands for a claim that
 * is newer than it.
 */
uint32_t us_claims_short(uint64_t clock, uint16_t value);

/* in order of ids, and of equal ids, of items */
void us_store_pick_one(us_store_pick_t *picks, unsigned *n, uint64_t id,
    size_t at);

/*
 * Under the lock, of a group that is being added: brings the clock up to the
 * handle's time; -1: the ring is full.  Claims those of the picked that are
 * still due, of items below n; there is room in the ring.
 */
int us_store_tick_locked(us_store_t *s);
void us_store_pick_locked(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older);

/*
 * us_put.c: under the lock, items of the first n that want it are put into
 * s->set; there is room in the ring.
 */
void us_store_put_locked(us_store_t *s, us_store_item_t *items, size_t n);

/*
 * us_erase.c: under the lock: erases the record of a deleted id; `text`, the
 * first bytes of its text, stay.  op: for the journal, or NULL.  US_OK or
 * US_FULL.
 */
us_store_status_t us_store_erase_locked(us_store_t *s, uint64_t id,
    us_str_t text, const us_op_t *op);

/*
 * us_shard.c: a shard's.  What looked-up items are answered under the map.
 * us_shard_replay() has the lock; 0 or US_REPLAY_*.
 */

void us_shard_seen(us_store_t *s, us_store_item_t *items, size_t n);
int us_shard_changed_locked(us_store_t *s);

/* the same: whether what is asked under a map is not asked under that one */
int us_shard_other_locked(us_store_t *s);
int us_shard_replay(us_store_t *s, const us_op_t *op);

/* us_erased.c: the list of what was erased; its functions need the lock */

/* FORMAT: of a row, in US_AREA_ERASURES */

typedef struct {
    uint64_t             created;     /* s since 1970, all three; 0: not yet */
    uint64_t             done;
    uint64_t             lifted;
    uint64_t             listed;      /* entries */
    uint64_t             deleted;     /* ids */
    uint64_t             what;        /* kind | bytes of the reason << 8
                                         | the LSN `gone` << 16 */
    uint64_t             reason;      /* its place */
    uint64_t             owner;       /* us_process_t, of the zone only */
} us_erasure_row_t;


static inline us_erasure_row_t *
us_erasure_row(const us_arena_t *a, uint64_t number)
{
    return (us_erasure_row_t *) us_area_at(a, US_AREA_ERASURES,
                                           (number - 1)
                                           * sizeof(us_erasure_row_t));
}


static inline uint64_t
us_erased_number(uint64_t rest)
{
    return rest & (US_ERASURES - 1);
}


static inline int
us_erased_lifted(const us_arena_t *a, uint64_t rest)
{
    return us_erasure_row(a, us_erased_number(rest))->lifted != 0;
}


static inline unsigned
us_erased_spelling(unsigned klass)
{
    return klass & US_SPELLING_WWW ? US_ERASED_WITH : US_ERASED_WITHOUT;
}


/*
 * The hashes of an item, of a record, and of a site alone; without the lock.
 * rest, and the site: after "www.", be it mergeable or not.
 */
void us_erased_item(const us_store_t *s, const us_store_item_t *item,
    us_erased_t *erased);
void us_erased_hashes(const us_store_t *s, unsigned klass, us_str_t rest,
    unsigned spellings, us_erased_t *erased);
us_erased_hash_t us_erased_site(const us_store_t *s, us_str_t site);

/* whether the erasure whose number is part of h has this entry */
int us_erased_has_locked(const us_arena_t *a, us_erased_hash_t h);

/* which erasure refuses what has these hashes; 0: none */
uint64_t us_erased_by_locked(const us_arena_t *a, const us_erased_t *erased);

/* whether an item must not be added; makes its hashes if they are not known */
int us_erased_refuses_locked(us_store_t *s, const us_store_item_t *item,
    us_erased_t *erased);

/*
 * Puts an entry on the list.  US_NEW; US_SEEN: it was there; US_FULL.  journal:
 * the operation goes to the ring, where there is room for it.
 */
us_store_status_t us_erased_enter_locked(us_arena_t *a, us_erased_hash_t h,
    int journal);

/* of a replay: the list has so many places, if it has none */
int us_erased_replay_table(us_arena_t *a, uint64_t bits);

/* up to n entries of erasures up to number `last`, until d->ended */
unsigned us_erased_dump(us_store_t *s, us_erased_dump_t *d, uint64_t last,
    us_erased_hash_t *out, unsigned n);

/*
 * us_erasures.c: the operation that a row is, whose bytes lie in buf; and what
 * a replay does with one, with entries of the list, and with the erasure for
 * which an id was deleted: 0 or US_REPLAY_*.
 */
us_op_t us_erasure_op(const us_arena_t *a, uint64_t number,
    const us_erasure_row_t *row, uint8_t buf[US_OP_ERASURE_MAX]);
int us_erasure_replay(us_store_t *s, const us_op_t *op);
int us_erasure_replay_urls(us_store_t *s, const us_op_t *op);
int us_erasure_replay_id(us_store_t *s, const us_op_t *op);

/* us_add.c: under the lock */

/*
 * Room in the index and among the sites' counters for record id.  Nothing that
 * can be seen changes.
 */
int us_store_reserve_locked(us_store_t *s, uint64_t id,
    const us_hashes_t *hashes, int new_site);

/* intends the entries of record id and what its site counts */
void us_store_index_locked(us_store_t *s, uint64_t id,
    const us_hashes_t *hashes, uint64_t site_first);

/*
 * Takes the URL of a live id out of the index and makes it deleted.  hashes:
 * NULL if it is in no index.  op: for the journal; NULL in a replay, which
 * keeps no reserve.  count: rises by one with it, or NULL.
 */
us_store_status_t us_store_forget_locked(us_store_t *s, uint64_t id,
    const us_hashes_t *hashes, const us_op_t *op, uint64_t *count);


static inline us_head_t *
us_head(const us_store_t *s)
{
    return s->arena.head;
}


/* completes what a killed holder of the lock has left, before all else */

static inline void
us_store_enter(us_store_t *s)
{
    s->lock.lock(s->lock.data);

    us_arena_enter(&s->arena);
    us_index_enter(&s->arena);
    us_log_enter_locked(&s->arena);
}


static inline void
us_store_leave(us_store_t *s)
{
    s->lock.unlock(s->lock.data);
}


/*
 * Reads records, again if some were erased meanwhile, in the end under the
 * lock.  A caller that has the lock reads once, as nothing changes.
 *
 *     us_reading_t  r = { 0, 0 };
 *
 *     while (us_store_reading(s, &r)) {
 *         ... reads; what it reads counts when the loop has ended
 *     }
 */

#define US_READ_RETRIES    8

typedef struct {
    unsigned          reads;
    uint64_t          then;
} us_reading_t;


static inline int
us_store_reading(us_store_t *s, us_reading_t *r)
{
    if (r->reads > US_READ_RETRIES) {
        us_store_leave(s);
        return 0;
    }

    if (r->reads && !us_erased_since(&s->arena, r->then)) {
        return 0;
    }

    if (r->reads++ == US_READ_RETRIES) {
        us_store_enter(s);
    }

    r->then = us_erasing(&s->arena);

    return 1;
}


/* whether the caller, who holds the lock, must not change anything */

static inline int
us_store_fenced_locked(const us_store_t *s)
{
    return us_acquire(&us_head(s)->fenced) != 0;
}


/*
 * "www." may be part of the rest, because it was not mergeable when the URL was
 * stored: then it goes from the rest to the class.
 */

static inline us_str_t
us_store_bare(us_str_t rest, unsigned *klass)
{
    if (us_has_www(rest)) {
        *klass |= US_SPELLING_WWW;
        rest.data += 4;
        rest.len -= 4;
    }

    return rest;
}


/*
 * The URL of a record: its class, always with US_SPELLING_WWW if it has a
 * "www.", and what follows that.  No bytes: it is damaged.
 */

static inline us_str_t
us_store_rest(us_store_t *s, uint64_t id, uint8_t *text, unsigned *klass)
{
    us_str_t  rest;

    rest.len = us_store_decode(s, id, text, US_URL_MAX + 1) - 1;
    rest.data = text + 1;
    *klass = text[0];

    return us_store_bare(rest, klass);
}


static inline unsigned
us_store_domain(const us_store_t *s, unsigned klass)
{
    if (us_head(s)->flags & US_HEAD_SCHEMES_FIRST) {
        return US_DOMAIN_HTTP;
    }

    return klass & US_SPELLING_HTTPS ? US_DOMAIN_HTTPS : US_DOMAIN_HTTP;
}


/*
 * Of a URL without "www.": whether it makes a difference is not for ever, as
 * lists of public suffixes change.  It is decided when a record is compared
 * with a URL that is asked for, whose normalizer knows the list.
 */

static inline uint64_t
us_store_hash(const us_store_t *s, unsigned klass, us_str_t rest)
{
    return us_hash(us_head(s)->hash_key, us_store_domain(s, klass), rest.data,
                   rest.len);
}


/* the class under which an item is stored if its site has this one */

static inline unsigned
us_store_class(const us_store_item_t *item, unsigned site)
{
    if (!item->merge) {
        return item->spelling;
    }

    return (item->spelling & ~US_SPELLING_WWW) | (site & US_SPELLING_WWW);
}


/* room in the ring for what is picked, and put into a set */

static inline size_t
us_store_pick_bytes(const us_store_t *s)
{
    return us_set_op_bytes(s->npicks) + us_set_op_bytes(s->nputs);
}


#endif /* _US_STORE_PRIVATE_H_INCLUDED_ */
