
/*
 * PUBLIC.  An exact dictionary of URLs in one piece of shared memory.
 *
 *     canonical URL -> id       dense, 0, 1, 2, ... in order of first sight
 *     id -> canonical URL
 *
 * us_store_format() lays out a fresh store in a mapping.  Any number of
 * processes open a private handle on it by us_store_open(), at any address.
 * A program of one process that only wants a store in a directory uses
 * us_embed.h instead.
 *
 * CAVEATS
 *
 *  - Input is trusted in one respect: item->url must be canonical, as
 *    us_normalize() returns it.  The mapping is trusted as well: its bytes are
 *    checked against damage, not against a process that writes to it.
 *  - A handle is for one thread, and is not inherited by fork().  It has some
 *    megabytes of private memory: tables of the models, and 4 bytes for each 56
 *    URLs.
 *  - Look-ups write nothing to the mapping and take no lock, with one
 *    exception: a look-up that meets writers at its leaf eight times in a row
 *    takes the lock once.
 *  - us_store_add(), _claim(), _delete() and the like take the lock given to
 *    us_store_open(), for bounded times: at most US_STORE_GROUP adds in one
 *    hold.  The caller's lock must become free when its holder dies (nginx
 *    unlocks for a dead worker).  A writer may be killed at any instruction:
 *    the next one to take the lock completes the update that it left.
 *  - Processes are recorded by pid and start time.  All that share a mapping
 *    must share a pid namespace.
 *  - Only sets, and the list of what was erased, give memory back.  A deleted
 *    URL keeps its bytes, as other records may refer to them, until it is
 *    erased (us_erase.h); then it keeps its room.
 *  - All processes must have the same US_LAYOUT (us_arena.h); us_store_open()
 *    refuses any other.
 *  - 64-bit little-endian machines only.
 */


#ifndef _US_STORE_H_INCLUDED_
#define _US_STORE_H_INCLUDED_


#include "../zone/us_conf.h"
#include "us_hot.h"


#ifdef __cplusplus
extern "C" {
#endif


typedef struct us_store_s  us_store_t;


typedef struct {
    void        (*lock)(void *data);
    void        (*unlock)(void *data);
    void         *data;
} us_store_lock_t;


typedef enum {
    US_NEW = 0,
    US_SEEN,
    US_UNSEEN,
    US_FULL,                          /* no room: nothing was changed */
    US_BUSY,                          /* the ring is full: write it, again */
    US_DELETED,
    US_UNKNOWN,
    US_OK,
    US_DAMAGED,                       /* the bits of the record are no URL */
    US_DUE,                           /* known, and its claim was too old */
    US_MOVED,                         /* another shard's: see us_shard.h */
    US_FENCED,                        /* the store is: nothing was changed */
    US_GONE,                          /* the set is: the same */
    US_ERASED                         /* it is not added: us_erasures.h */
} us_store_status_t;


/*
 * One URL of a batch.  The caller fills url and merge and keeps the text alive
 * and unchanged during the call.
 */

typedef struct {
    us_str_t      url;                /* canonical, http or https */
    unsigned      merge:2;            /* us_canon_t.merge */

    /* answers */

    unsigned      status:4;           /* us_store_status_t */
    unsigned      new_site:1;         /* the first URL of its site */
    unsigned      again:1;            /* new or due to an earlier try */

    /*
     * The spelling under which the URL is stored (US_NEW, US_SEEN), or would
     * be by what is known of its site so far (after us_store_spell()).
     */
    unsigned      spelling:2;         /* US_SPELLING_* */

    unsigned      slot:2;             /* of a shard: us_slot_state_t */

    /* of a set: what `status` would be without; and the store's own */
    unsigned      stored:4;
    unsigned      wants:1;            /* it is to be put in */
    unsigned      put:4;              /* US_SEEN, US_NEW or US_FULL */

    uint64_t      id;                 /* or US_STORE_NO_ID */

    /* s since 1970, when it was claimed before; 0: never, or not asked */
    uint64_t      claimed;

    /* the store's own: the key is `rest` and, unless schemes_first, scheme */

    us_str_t      rest;               /* url from the host on, less a www. */
    uint64_t      hash;
} us_store_item_t;


/* bytes; the least SIZE that us_store_format() takes, by configuration */
size_t us_store_min_size(const us_store_conf_t *conf);

/* the ring of a zone of SIZE bytes that has a journal */
size_t us_store_ring(size_t size);

/*
 * mem: page aligned, zero filled.  Returns 0, or -1 if size is too small.  No
 * other process may see mem yet.
 */
int us_store_format(void *mem, size_t size, const us_store_conf_t *conf);

/*
 * NULL: out of memory, or not a store of this layout version (errno EINVAL).
 * lock is copied.  Never touches shared state beyond reading it.
 */
us_store_t *us_store_open(void *mem, const us_store_lock_t *lock);
void us_store_close(us_store_t *s);

/* outside all other calls: overwrites the texts that the handle has left */
void us_store_wipe(us_store_t *s);

/*
 * Look-ups through this handle, and the sites of new URLs, are answered by a
 * hot table where it knows them.  It is the caller's: one table can serve all
 * handles of a thread, and goes after them.  The URLs that it answered are
 * added to *hits, which other threads and processes may add to and read; NULL:
 * they are not counted.  The same table again keeps what it knows.
 */
void us_store_hot(us_store_t *s, us_hot_t *hot, uint64_t *hits);

/* reads the configuration back; the strings point into the mapping */
void us_store_conf(const us_store_t *s, us_store_conf_t *conf);

/* from now on there may be what conf has: sets beside marks, erasures */
void us_store_allow(us_store_t *s, const us_store_conf_t *conf);

/*
 * Looks n URLs up, overlapping their cache misses: US_SEEN or US_UNSEEN; of a
 * shard, US_MOVED as well, with or without an id.
 */
void us_store_seen(us_store_t *s, us_store_item_t *items, size_t n);

/*
 * Adds the URLs that are new, in order: US_NEW, US_SEEN, US_FULL or US_BUSY; or
 * US_ERASED, if the URL or its site was erased.
 * Once an item is busy, all later items are busy too: submit them again.  The
 * same goes for US_FENCED, but a later try is refused as well.  Of
 * two equal URLs in one batch the first is new, the second seen.  A store for
 * look-ups only returns US_UNKNOWN, a shard US_MOVED for what it may not
 * answer.  Returns the LSN that covers all that the
 * answers report (see us_store_published()).
 */
uint64_t us_store_add(us_store_t *s, us_store_item_t *items, size_t n);

/*
 * Claims: a store with conf.revisit records for each id when it was claimed
 * last.  See us_claims.c for the rule.
 *
 * us_store_time() gives the handle the time of the calls that follow, in
 * seconds since 1970; before that, nothing is claimed.  A store whose clock has
 * seen a later time keeps to that.  It returns the unit of claims in seconds; 0
 * if the store keeps none.
 *
 * us_store_add_older() is us_store_add(), which answers US_DUE for a known URL
 * whose claim is older than so many units, at most US_STORE_OLDER_MAX, and
 * claims it; `claimed` is when it was claimed before.  0 units: as
 * us_store_add().  US_FULL: there was no room for the claim.
 *
 * us_store_add_key() is us_store_add_older() of a request with a key.  An item
 * that was new or due to the key before, and is known, is so again, with
 * `again`; so is each of equal URLs.  us_store_repeats(): all was repeated that
 * the caller has added with a key until now; 0: the zone has no memory of keys,
 * or has forgotten some before their time.
 *
 * us_store_due() makes those of looked-up items that would be US_DUE so, claims
 * nothing, and returns their number; us_store_times() fills in `claimed` of
 * US_SEEN.
 */
uint32_t us_store_time(us_store_t *s, uint64_t now);
uint64_t us_store_add_older(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older);
size_t us_store_due(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older);
void us_store_times(us_store_t *s, us_store_item_t *items, size_t n);

typedef struct {
    uint64_t      name;               /* not 0 */
    uint64_t      until;              /* s since 1970: known so long */
} us_store_key_t;

uint64_t us_store_add_key(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older, const us_store_key_t *key);
int us_store_repeats(const us_store_t *s);

#define US_STORE_OLDER_MAX  65000     /* units */

/* what a unit can be, s */
#define US_STORE_REVISIT_MIN  60
#define US_STORE_REVISIT_MAX  86400

/*
 * Claims ids, in groups as adds: at a time, in seconds since 1970, or now if
 * that is later; 0 clears their claims, which are due then.  US_OK, US_UNKNOWN,
 * US_DELETED, US_FULL, US_BUSY or US_FENCED as of us_store_add().  Returns the
 * LSN that covers the answers.
 */
typedef struct {
    uint64_t           id;
    us_store_status_t  status;
} us_store_claim_t;

uint64_t us_store_claim(us_store_t *s, us_store_claim_t *claims, size_t n,
    uint64_t at);

/* when id was claimed: seconds since 1970; 0: never */
uint64_t us_store_claimed(us_store_t *s, uint64_t id);

/*
 * The first id in [from, to) that is given, not deleted, and whose claim is
 * older than so many units; or to.  Takes no lock: look at a few 100,000 ids
 * between two events.
 */
uint64_t us_store_next_due(us_store_t *s, uint64_t from, uint64_t to,
    uint32_t older);

/* seconds of a unit, 0: no claims are kept; and of the store's clock */
uint32_t us_store_revisit(const us_store_t *s);
uint64_t us_store_clock(const us_store_t *s);

/*
 * Claims are kept from now on: all ids are due.  0, or -1: the store keeps them
 * by another unit.
 */
int us_store_set_revisit(us_store_t *s, uint32_t revisit);

/*
 * Sets of ids, by name: see us_sets.c.  Who has found a set knows it by its
 * number, which no other set ever has.  After a drop, what is done to it is
 * answered US_GONE.  Deleted URLs stay in their sets, where nobody finds them.
 *
 * us_store_set(): the set of a name; number 0: there is none.
 * us_store_set_is(): whether it is still there.
 */
typedef struct {
    uint64_t      number;
    uint32_t      row;                /* the store's own */
} us_store_set_t;

us_store_set_t us_store_set(us_store_t *s, us_str_t name);
int us_store_set_is(us_store_t *s, us_store_set_t set);

/*
 * Makes the set of a name, of 1 to US_STORE_SET_LEN bytes, at the handle's
 * time: US_NEW, or US_SEEN: it was there.  US_FULL: there are `most` sets, or
 * there is no room; US_BUSY; US_FENCED.  Drops one: US_OK, US_GONE, US_BUSY or
 * US_FENCED; US_SEEN: it is a mark's, and stays.  *lsn covers the answer.
 */
us_store_status_t us_store_set_make(us_store_t *s, us_str_t name,
    unsigned most, us_store_set_t *set, uint64_t *lsn);
us_store_status_t us_store_set_drop(us_store_t *s, us_store_set_t set,
    uint64_t *lsn);

/*
 * us_store_add_set() is us_store_add_key() without claims, and puts all items
 * into a set.  US_NEW: the URL was not in it, to no more than one caller;
 * US_SEEN: it was.  `stored` is what the store alone would answer, US_NEW or
 * US_SEEN.  `again`: US_NEW to an earlier try of the key, which may be NULL.
 * us_store_members() answers looked-up items so: US_SEEN or US_UNSEEN.
 */
uint64_t us_store_add_set(us_store_t *s, us_store_item_t *items, size_t n,
    us_store_set_t set, const us_store_key_t *key);
void us_store_members(us_store_t *s, us_store_set_t set,
    us_store_item_t *items, size_t n);

/*
 * Puts ids into a set: US_NEW, US_SEEN; or takes them out: US_OK, US_UNSEEN (it
 * was not in).  US_UNKNOWN, US_DELETED, US_FULL, US_BUSY, US_FENCED or US_GONE.
 * key: of ids that are put in; or NULL.  Returns the LSN that covers the
 * answers.
 */
uint64_t us_store_set_put(us_store_t *s, us_store_set_t set,
    us_store_claim_t *ids, size_t n, int in, const us_store_key_t *key);

/* whether an id is in; the first one in [from, to) that is, or to; no lock */
int us_store_set_has(us_store_t *s, us_store_set_t set, uint64_t id);
uint64_t us_store_set_next(us_store_t *s, us_store_set_t set, uint64_t from,
    uint64_t to);

/* it was asked for n URLs */
void us_store_set_asked(us_store_t *s, us_store_set_t set, uint64_t n);

/* the set in *row, or the next one that there is, and the row after it; or 0 */
typedef struct {
    us_store_set_t  set;
    us_str_t        name;
    uint64_t        members;
    uint64_t        bytes;
    uint64_t        created;          /* s since 1970; 0: a mark's */
    uint64_t        asked;            /* URLs, since the zone was made */
    uint8_t         text[US_STORE_SET_LEN];
} us_store_set_info_t;

int us_store_set_info(us_store_t *s, uint32_t *row,
    us_store_set_info_t *info);
uint64_t us_store_sets(const us_store_t *s);

/*
 * Settles `spelling` of an unseen item by its site, if the site is known.
 */
void us_store_spell(us_store_t *s, us_store_item_t *item);

/*
 * Splits item->url into item->spelling and item->rest, as every look-up does;
 * for callers that keep URLs elsewhere (us_filter) under the same key.
 */
void us_store_item_split(us_store_item_t *item);

/*
 * Writes the canonical URL of an answered item; buf has US_URL_MAX + 8 bytes.
 * Returns its length.
 */
size_t us_store_item_url(const us_store_item_t *item, uint8_t *buf);

/* whether that is item->url */
int us_store_item_same(const us_store_item_t *item);

/*
 * id -> URL into buf, which has US_URL_MAX + 8 bytes: US_OK, US_UNKNOWN (not
 * given yet), US_DELETED or US_DAMAGED.
 */
us_store_status_t us_store_get(us_store_t *s, uint64_t id, uint8_t *buf,
    size_t *len);

/* the same of an id that may be deleted, but whose record is not erased yet */
us_store_status_t us_store_text(us_store_t *s, uint64_t id, uint8_t *buf,
    size_t *len);

/*
 * Whether "www." was mergeable in a URL's host when it was stored: 1 or 0; -1:
 * it has no "www.", or the id has no URL.
 */
int us_store_merged(us_store_t *s, uint64_t id);

/* the ids given so far are 0 .. next_id - 1 */
uint64_t us_store_next_id(const us_store_t *s);

/*
 * Forgets the URL of id: US_OK, US_UNKNOWN, US_FULL (no room for the bit of the
 * deleted id), US_BUSY or US_FENCED.  *was is 1 if the id was deleted before,
 * which is US_OK too.
 */
us_store_status_t us_store_delete(us_store_t *s, uint64_t id, int *was,
    uint64_t *lsn);
int us_store_deleted(us_store_t *s, uint64_t id);

/* Marks are sets that are declared: the number of one, or -1; how many. */
int us_store_mark_number(const us_store_t *s, us_str_t name);
unsigned us_store_nmarks(const us_store_t *s);

/*
 * Declares more marks: names begins with those that the store has, in their
 * order.  They hold for each process from then on.  0, or -1: it does not, or
 * there are too many; nothing was changed.
 */
int us_store_add_marks(us_store_t *s, const us_str_t *names, unsigned n);


/* a site: host[:port] without a mergeable www. */

typedef struct {
    uint64_t      first;              /* id of its first URL */
    unsigned      spelling:2;         /* US_SPELLING_* */
    uint64_t      urls;               /* sites=on only, else 0 */
    uint64_t      last;               /* sites=on only, else first */
} us_store_site_t;

/* whether the store has a URL of the site of a looked-up item */
int us_store_site_known(us_store_t *s, const us_store_item_t *item);

/*
 * US_OK or US_UNKNOWN.  merge: text is us_canon_site() of a canonical URL of
 * which "www." is mergeable, so URLs of both spellings are of the site.
 */
us_store_status_t us_store_site(us_store_t *s, us_str_t text, int merge,
    us_store_site_t *out);

/* whether id was the first URL of its site */
int us_store_first_of_site(us_store_t *s, uint64_t id);


/*
 * Models are learnt from the store's own records, in the background.
 * us_store_train_due() returns 1 if a model is due and no process learns it;
 * it may be asked at any time.  It is cheap: while a process learns, it reads
 * /proc/PID/stat of that one.  us_store_train() takes seconds, never holds the
 * lock for longer than one copy of a model, may run in a thread of its own with
 * its own handle, and may be killed.  At most one process trains at a time; it
 * is recorded in the zone by pid and start time, so that its death is noticed
 * (us_process.h).  us_store_train() returns 1 if a model was published, 0 if
 * not.  *cancel, if not NULL, ends it early.
 */
int us_store_train_due(us_store_t *s);
int us_store_train(us_store_t *s, const volatile int *cancel);


/*
 * A store that gets its operations from elsewhere, such as a standby's, is
 * fenced: us_store_apply() changes it, and nothing else does.  Each change
 * looks at the word under the lock, however long ago its caller was allowed to
 * make it.  A change that holds the lock while the fence goes up is completed.
 *
 * Set by us_store_format() for conf.fenced, and by us_store_fence(); cleared by
 * us_store_unfence(), when this node alone writes.  Neither takes the lock.
 */
void us_store_fence(void *mem);
void us_store_unfence(void *mem);


/*
 * The journal's side.  Every operation (add, delete, claim, set, model, map)
 * is appended to a stream of bytes under the lock.  Its LSN is the position
 * where it ends.
 *
 * The stream passes through a ring in the mapping.  One process at a time
 * takes bytes from it:
 *
 *     us_store_written()  <=  us_store_published()
 *
 * us_store_complete() completes what a killed writer has left, and returns an
 * LSN that covers all that a reader has found in the store so far.
 * us_store_ids_at() returns how many ids were given if all up to lsn is
 * published, and nothing past it; else, or if a writer is at work,
 * US_STORE_NO_ID.
 * us_store_ops() gives the bytes from `lsn` on (at most two pieces, both may
 * be empty), us_store_set_written() lets the ring reuse what lies below lsn,
 * us_store_set_durable() only keeps the number for everybody to read.
 * us_store_op_size() frames the stream: the size of the whole operation that
 * starts at p, 0 if it needs more than len bytes, or -1 if it cannot be one.
 */
uint64_t us_store_published(const us_store_t *s);
uint64_t us_store_complete(us_store_t *s);
uint64_t us_store_ids_at(const us_store_t *s, uint64_t lsn);
uint64_t us_store_written(const us_store_t *s);
uint64_t us_store_durable(const us_store_t *s);
void us_store_ops(us_store_t *s, uint64_t lsn, us_str_t pieces[2]);
void us_store_set_written(us_store_t *s, uint64_t lsn);
void us_store_set_durable(us_store_t *s, uint64_t lsn);
ssize_t us_store_op_size(const uint8_t *p, size_t len);

/* the ids that the whole operation at p gives: 1 or 0 */
unsigned us_store_op_ids(const uint8_t *p, size_t len);


/*
 * Replay, by one loader: builds a store from operations.
 *
 * us_store_apply() applies the whole operations at p and returns their bytes.
 * A store that is empty when the first of them comes must be settled before
 * anybody looks at it: us_store_settle() builds the index.  What is applied to
 * a store that has been settled, or was not empty, is added under the lock;
 * readers may be at work, other writers not.  Two threads are used, and private
 * memory: US_BULK_MEMORY (64 MB), and less than half of it besides.
 *
 * Both fail with US_REPLAY_* (us_conf.h).  After NO_ROOM the operations have to
 * be whole, and are applied to a store in private memory, which is as large as
 * it has to be.  When that was settled, too, with NO_ROOM again,
 * us_store_size_needed() is the size of a zone in which all of it fits, with
 * the ring of a journal or without; 0: there is no memory for so much.  After a
 * store was settled without NO_ROOM, it means that the store has to be loaded
 * from the beginning again: then it may fit.
 */

ssize_t us_store_apply(us_store_t *s, const uint8_t *p, size_t len);
int us_store_settle(us_store_t *s);
uint64_t us_store_size_needed(us_store_t *s, int journal);

/*
 * The stream's position after recovery, before the first new operation.
 * Settles the store: if that fails, it must not be written.
 */
int us_store_set_lsn(us_store_t *s, uint64_t lsn);

/*
 * What the data say of themselves, by their only writer: the uuid before
 * anybody reads, the epoch at any time.
 */
void us_store_set_identity(us_store_t *s, const uint8_t uuid[16],
    uint64_t epoch);

/*
 * A snapshot is the stream that would build the store up to `lsn` as it
 * is now, without what later operations made void: us_store_dump() writes it
 * in pieces of whole operations through `out` (which returns 0, or -1 to stop)
 * and returns the LSN that it covers in *lsn, while writers go on.
 * us_store_apply() reads it.
 */
typedef int (*us_store_out_pt)(void *data, const uint8_t *p, size_t len);
int us_store_dump(us_store_t *s, us_store_out_pt out, void *data,
    uint64_t *lsn);


/* memory and counters; every byte of the zone in use is in one of the parts */

typedef enum {
    US_PART_HEADER = 0,               /* and directories: fixed by SIZE */
    US_PART_RING,                     /* operations for the journal: fixed */
    US_PART_LOG,                      /* record bytes */
    US_PART_OFFSETS,
    US_PART_INDEX,
    US_PART_CACHES,
    US_PART_MODELS,
    US_PART_SITES,
    US_PART_CLAIMS,
    US_PART_MAPS,
    US_PART_DELETED,                  /* and where stubs of erased ids are */
    US_PART_SETS,
    US_PART_ERASURES,
    US_PARTS
} us_store_part_t;

typedef struct {
    uint64_t      size;               /* of the zone */
    uint64_t      used;               /* the sum of parts */
    uint64_t      content;            /* without header and ring: the URLs' */
    uint64_t      parts[US_PARTS];
    double        bytes_per_url;      /* of content; 0: not known yet */
    uint64_t      urls;               /* ids given */
    uint64_t      deleted;
    uint64_t      sites;
    uint64_t      fit;                /* estimate: URLs that still fit */
    uint64_t      recoveries;         /* half-done updates completed */
    uint64_t      full;               /* 1: the last add found no room */
} us_store_info_t;

void us_store_info(us_store_t *s, us_store_info_t *info);
const char *us_store_part_name(us_store_part_t part);


#ifdef __cplusplus
}
#endif


#endif /* _US_STORE_H_INCLUDED_ */
