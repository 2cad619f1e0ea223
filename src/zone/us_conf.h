
/*
 * The settings of a store, and the constants that its parts share.  Public:
 * us_store.h includes it.
 */


#ifndef _US_CONF_H_INCLUDED_
#define _US_CONF_H_INCLUDED_


#include "../us_base.h"


#define US_STORE_GROUP      256       /* adds in one hold of the lock */
#define US_STORE_MARKS      16        /* marks that a store can declare */
#define US_STORE_MARK_LEN   32
#define US_STORE_SETS       65535     /* sets that a store can have */
#define US_STORE_SET_LEN    64
#define US_STORE_NORM_LEN   128
#define US_STORE_NO_ID      ((uint64_t) -1)

/* what a record does not say of its URL */

#define US_SPELLING_HTTPS   1         /* else http */
#define US_SPELLING_WWW     2         /* "www." stands before it */


/* what a store is made with; all of it is kept in its header */

typedef struct {
    uint8_t       uuid[16];
    uint8_t       hash_key[16];       /* random and secret */
    uint64_t      epoch;

    us_str_t      norm;               /* us_norm_signature() */
    us_str_t      marks[US_STORE_MARKS];
    unsigned      nmarks;

    unsigned      schemes_first;      /* the scheme is not part of the key */
    unsigned      sites;              /* count URLs by site */
    unsigned      lookup;             /* retrieval only: no index is kept */
    unsigned      fenced:1;           /* made so: see us_store_fence() */
    unsigned      sets:1;             /* there may be others than marks */
    unsigned      erases:1;           /* there may be erasures */

    /* seconds of a unit in which claims are dated; 0: none are kept */
    uint32_t      revisit;

    /* of a cluster: see us_shard.h */
    unsigned      is_shard:1;
    uint32_t      shard;              /* its number */

    /*
     * Bytes of the ring that carries operations to the journal, a power of
     * two; 0: there is no journal.
     */
    size_t        ring;

    /* bytes of the memory of retries, at most (us_keys.h); 0: there is none */
    size_t        keys;
} us_store_conf_t;


/* whether it is a name, of letters, digits, - and _ only, of 1 to max bytes */
int us_conf_is_name(us_str_t name, size_t max);

/* the same of a set: letters, digits and _ - . :, but no segment of a path */
int us_conf_is_set(us_str_t name);

/*
 * Adds the marks of "NAME,NAME,...", which stays where it is.  0; or -1: one is
 * no name of at most US_STORE_MARK_LEN bytes, or is there already, or they are
 * too many.
 */
int us_conf_marks(us_store_conf_t *conf, us_str_t list);


/* why a replay fails: us_store_apply() */

#define US_REPLAY_DAMAGED  -1         /* an operation that cannot be */
#define US_REPLAY_NO_ROOM  -2         /* the zone is too small */
#define US_REPLAY_FAILED   -3         /* the process has no memory */


#endif /* _US_CONF_H_INCLUDED_ */
