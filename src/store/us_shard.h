
/*
 * A store that is a shard of a cluster: which URLs it may answer, by the map
 * that it has adopted (docs/cluster.md).
 *
 * The store of a shard answers nothing about URLs before it has a map.  It
 * adopts one by a MAP operation, under the lock that adds use.  So each add
 * stands before or after it in the journal.
 *
 *     slot on this shard             add     found   not found
 *
 *     US_SLOT_OWNED      no former   yes     yes     yes
 *     US_SLOT_INHERITED  former      same    yes     same
 *     US_SLOT_SEALED     owned once  moved   yes     same
 *     US_SLOT_FOREIGN    never       moved   moved   moved
 *
 * "same": only a request that names the map which the store has (version and
 * digest), else US_MOVED.  In a sealed slot nothing is added any more, so what
 * is not found there under the same map is not found later either.  What was
 * erased there is refused in place of that (us_store_refuse()).
 *
 * The map of a store that was restored may be one of before others took slots
 * over.  It is stale: the store answers as if it had none, until the same or a
 * newer one is adopted.
 *
 * A handle has a private copy of the map's table.  It is read again under the
 * lock when the number of maps adopted (head->map) has changed.  A look-up
 * reads that number first: it finds all that was added before that map was
 * adopted.  An add compares the number again under the lock.
 */


#ifndef _US_SHARD_H_INCLUDED_
#define _US_SHARD_H_INCLUDED_


#include "us_store.h"
#include "us_maps.h"


typedef enum {
    US_SLOT_FOREIGN = 0,
    US_SLOT_SEALED,
    US_SLOT_INHERITED,
    US_SLOT_OWNED
} us_slot_state_t;


/* whether the store is a shard, and of which number */
int us_store_is_shard(const us_store_t *s, uint32_t *number);

/* of a shard, the id in its cluster of the store's id 0; else 0 */
uint64_t us_store_first_id(const us_store_t *s);

/*
 * The store becomes shard `number`: 0, or -1: it is another one.  By the one
 * process that writes the manifest.
 */
int us_store_set_shard(us_store_t *s, uint32_t number);

/*
 * The map that the store has now.  It is valid until the next call with this
 * handle.  May take the lock.
 */
const us_store_map_t *us_store_map(us_store_t *s);

/*
 * The number of the map, stale or not, and whether it is stale.  A recovery
 * that has come to the LSN up to which the store was restored says so, as often
 * as it likes: a map that was adopted since stays.
 */
uint64_t us_store_map_number(const us_store_t *s);
int us_store_map_stale(const us_store_t *s);
void us_store_map_restored(us_store_t *s);

/* the LSN at which it has been adopted, 0 after a start; takes no lock */
uint64_t us_store_map_lsn(const us_store_t *s);

/*
 * The LSN up to which all was written, or is durable, and was answered under a
 * map that is durable.
 */
uint64_t us_store_promised(const us_store_t *s, int durable);

/*
 * Copies the text of the map, of at most US_MAP_TEXT_MAX bytes, to buf, and
 * returns its length; 0: there is none.  *number is that of us_store_map_t.
 */
size_t us_store_map_text(us_store_t *s, uint8_t *buf, uint64_t *number);

/*
 * The map under which the calls that follow are asked: its version and digest,
 * or version 0 for none.
 */
void us_store_under(us_store_t *s, uint64_t version, const uint8_t digest[16]);

/*
 * Of a canonical URL: the state of its slot, and whether the answer "not found"
 * is allowed.
 */
us_slot_state_t us_store_slot(us_store_t *s, us_str_t url);
int us_store_denies(us_store_t *s, us_str_t url);

/*
 * Adopts a map in which the shard is, after the caller has checked it against
 * the one with this number (us_map_follows()).  A stale one may be adopted
 * again.  US_OK: *lsn is that of the
 * operation; answers under the map wait until it is durable.  US_MOVED: the
 * store has another map now, check again.  US_BUSY: the ring is full.  US_FULL:
 * the map fits neither the zone nor its ring.  US_FENCED: see us_store_fence().
 */
us_store_status_t us_store_adopt(us_store_t *s, const us_map_t *map,
    uint64_t number, uint64_t *lsn);


#endif /* _US_SHARD_H_INCLUDED_ */
