
/*
 * Erasures: what was erased, when and why, and the list of what must not come
 * back.  See us_erasures.c for how they lie in the zone.
 *
 * An erasure puts URLs on the list and deletes those that are stored, or does
 * so with all URLs of a site.  What is on the list is not added any more:
 * us_store_add() answers US_ERASED.  A look-up does not ask the list: the URL
 * is unseen.  An erasure that is lifted refuses nothing any more; its URLs get
 * new ids when they are added again.
 *
 *     us_store_erasure_begin() --> deleting --+--> done --> lifted
 *                                    |        |               ^
 *                                    |        `- us_store_erasure_done()
 *                                    `------------------------'
 *
 * An erasure that is done and gets other URLs, by a retry or another batch of
 * its request, is `deleting` again.
 *
 * An erasure has an owner, the process that gives its URLs to us_store_erase(),
 * or puts its site on the list.  One without a living owner is completed by
 * us_store_sweep(), which looks at every id.
 */


#ifndef _US_ERASURES_H_INCLUDED_
#define _US_ERASURES_H_INCLUDED_


#include "us_store.h"
#include "../us_process.h"


#ifdef __cplusplus
extern "C" {
#endif


#define US_ERASURE_REASON   200       /* bytes */


/* where bytes of erased URLs may be left */

#define US_LEFT_MEMORY   1            /* in the zone */
#define US_LEFT_WORKERS  2            /* in private memory of processes */
#define US_LEFT_FILES    4            /* in the directory */
#define US_LEFT_LOG      8            /* in the replicated log */
#define US_LEFT_REPLICAS  16          /* with a replica that is connected */
#define US_LEFT_AWAY     32           /* with one that is not */


typedef enum {
    US_ERASURE_URLS = 0,
    US_ERASURE_SITE
} us_erasure_kind_t;


typedef enum {
    US_ERASURE_DELETING = 0,
    US_ERASURE_DONE,
    US_ERASURE_LIFTED,
    US_ERASURE_UNKNOWN                /* of a cluster: a shard is away */
} us_erasure_state_t;


typedef struct {
    uint64_t             number;      /* 1, 2, 3, ... */
    us_erasure_kind_t    kind;
    us_erasure_state_t   state;
    uint64_t             created;     /* s since 1970 */
    uint64_t             done;        /* the same; 0: it is not */
    uint64_t             lifted;
    uint64_t             gone;        /* LSN: no record has its URLs; or 0 */
    uint64_t             listed;      /* URLs, or sites, on the list */
    uint64_t             deleted;     /* ids */
    us_str_t             reason;
    uint8_t              text[US_ERASURE_REASON];
} us_erasure_info_t;


/*
 * Begins one, at the handle's time; `random` is the key of the list's hashes,
 * if this is the first one.  owner: see above, 0: none.  US_NEW; US_SEEN: one
 * of this kind was begun with this key (or NULL) before; US_FULL, US_BUSY,
 * US_FENCED; US_UNKNOWN: there must be none.
 */
us_store_status_t us_store_erasure_begin(us_store_t *s, us_erasure_kind_t kind,
    us_str_t reason, const uint8_t random[16], us_process_t owner,
    const us_store_key_t *key, uint64_t *number, uint64_t *lsn);

/*
 * Puts URLs on the list and deletes them: US_ERASED, with the id of one that
 * was stored; US_FULL, US_BUSY, US_FENCED; US_GONE: the erasure is lifted;
 * US_MOVED, of a shard.  From an item on that is not done all that follow are
 * not done either: submit those that are busy again.  Returns the LSN that
 * covers the answers.
 */
uint64_t us_store_erase(us_store_t *s, uint64_t number, us_store_item_t *items,
    size_t n);

/*
 * Puts a site on the list, in both spellings; text is us_canon_site().  What is
 * stored of it is for a sweep, when the owner leaves.  US_OK, also if it is on
 * the list, or as us_store_erase(); US_GONE also of an erasure that is done, or
 * of another site; US_MOVED if it is asked under a map that is not the shard's,
 * as there may be shards which that map does not have.
 */
us_store_status_t us_store_erase_site(us_store_t *s, uint64_t number,
    us_str_t text, uint64_t *lsn);

/*
 * Of a shard, after us_store_seen() of a group: what is not found in a slot
 * that has another owner now, but is on the list, is US_ERASED.  That owner may
 * not have it on its list, and would add it.
 */
void us_store_refuse(us_store_t *s, us_store_item_t *items, size_t n);

/*
 * All that is to be deleted is; or, the URLs of an erasure may be added again.
 * US_OK, also if it was so before; US_UNKNOWN, US_BUSY, US_FENCED.
 */
us_store_status_t us_store_erasure_done(us_store_t *s, uint64_t number,
    uint64_t *lsn);
us_store_status_t us_store_erasure_lift(us_store_t *s, uint64_t number,
    uint64_t *lsn);

/* the owner has left it: a sweep completes it */
void us_store_erasure_leave(us_store_t *s, uint64_t number);

/*
 * Erasures that are done, but whose URLs may be in the records of deleted ids,
 * at most so many; returns their number.  *since: when the first one of them
 * was begun.  When a pass (us_erase.h) that began later has ended, their
 * records are gone: US_OK; US_BUSY, US_FENCED: not all of them are noted.
 * *lsn: of the pass, 0 before the first call.
 */
size_t us_store_erasures_left(const us_store_t *s, uint64_t *numbers,
    size_t most, uint64_t *since);
us_store_status_t us_store_erasures_gone(us_store_t *s,
    const uint64_t *numbers, size_t n, uint64_t *lsn);

/* files of the journal that begin below have records that are gone */
uint64_t us_store_erased_lsn(const us_store_t *s);

/* the number of the last one, 0: there is none; and what it is; no lock */
uint64_t us_store_erasures(const us_store_t *s);
int us_store_erasure(us_store_t *s, uint64_t number, us_erasure_info_t *info);

/*
 * The sweep completes erasures: it deletes what is on the list, then it erases
 * the records of deleted ids (us_erase.h), for all erasures together that were
 * begun up to `delay` seconds ago or earlier.  A sweep is of one process, and
 * of a caller that zeroes it.
 *
 * us_store_sweep_due(): whether there is anything to do; it is cheap.
 * us_store_sweep() looks at some hundred ids; an erasure of which all is
 * deleted is done then, its number in `done`.  US_OK: there is nothing to do;
 * US_NEW: there is more; US_BUSY, US_FENCED: not now; US_SEEN: another process
 * does it; US_FULL: no room to delete an id or for what must be left of a
 * record, or no memory: try again later.
 */
typedef struct {
    uint64_t             at;          /* the next id */
    uint64_t             end;
    uint64_t             done;        /* by this call; or 0 */
    struct us_erase_s   *pass;        /* over the records, or NULL */
    uint64_t            *numbers;     /* of the erasures that it completes;
                                         then of those of the pass */
    size_t               n;
    size_t               noted;       /* of them, that their records are gone */
    uint64_t             gone;        /* at this LSN; or 0 */
    uint64_t             lsn;         /* when its records were gone */
    uint64_t             ring;        /* bytes that are overwritten */
    unsigned             begun:1;
    unsigned             full:1;      /* some id was not deleted */
    unsigned             over:1;      /* the pass is */
} us_sweep_t;

/* of this handle; at first 0 */
void us_store_sweep_delay(us_store_t *s, uint64_t delay);

int us_store_sweep_due(const us_store_t *s);
us_store_status_t us_store_sweep(us_store_t *s, us_sweep_t *sweep);
void us_store_sweep_end(us_store_t *s, us_sweep_t *sweep);


#ifdef __cplusplus
}
#endif


#endif /* _US_ERASURES_H_INCLUDED_ */
