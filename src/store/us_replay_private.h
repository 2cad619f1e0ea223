
/*
 * What the files of a replay share.
 *
 *     us_replay.c        operations, one by one
 *     us_replay_bulk.c   the index of what they have added, all at once
 */


#ifndef _US_REPLAY_PRIVATE_H_INCLUDED_
#define _US_REPLAY_PRIVATE_H_INCLUDED_


#include "us_bulk.h"
#include "us_store_private.h"
#include "us_work.h"


#define US_REPLAY_GROUP   16          /* adds of a settled store */

#define US_REPLAY_SITES   16384       /* sites met last, of a thread */
#define US_REPLAY_SITE    47          /* longer ones are not kept there */


typedef struct {
    uint64_t            first;        /* id, or one that stands for it */
    uint8_t             len;
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
    us_store_t         *store;        /* a handle */
    us_replay_site_t   *sites;
    us_replay_first_t  *firsts;
    size_t              n;
    size_t              size;
    uint64_t            found;        /* sites that begin in this merge */
    uint64_t           *gone;         /* first ids of sites, to count less */
    size_t              ngone;
    size_t              gone_size;
    int                 failed;
} us_replay_side_t;


/* an add whose leaf has been asked for */

typedef struct {
    uint64_t            id;
    us_hashes_t         hashes;
} us_replay_add_t;


struct us_replay_s {
    int                 rc;           /* US_REPLAY_NO_ROOM: from then on, */
    us_store_t         *larger;       /* the replay goes on here, or NULL */
    uint64_t            map;          /* bytes of the longest one */

    /* until the store is settled */

    us_bulk_t          *bulk;
    us_work_t          *work;
    us_replay_side_t    sides[US_BULK_THREADS];
    uint64_t            hashed;       /* ids that have been collected */
    uint64_t            merged;       /* ids that the index has */
    uint64_t            image;        /* of these, by an image */
    uint64_t            cached;       /* ids from here on go to the cache */
    unsigned            reading:1;    /* its leaves */
    uint64_t            ahead;        /* ids below were deleted beforehand */
    uint64_t            expect;
    uint8_t            *cache;        /* to be restored */
    uint64_t            cache_size;
    uint64_t           *first;        /* of an id's site; sites=on */

    us_replay_first_t  *all;          /* of a merge: by hash */
    size_t              parts[257];

    uint64_t           *gone;         /* bits: merged ids, deleted since */
    uint64_t            ngone;

    /* then */

    unsigned            n;
    us_replay_add_t     adds[US_REPLAY_GROUP];
};


/* us_replay_bulk.c: 0, or US_REPLAY_* */

int us_replay_bulk_open(us_store_t *s);
void us_replay_bulk_close(us_store_t *s);

/* after an add: collects and merges, if there is enough */
int us_replay_bulk_added(us_store_t *s);

/* collects and merges all that was added */
int us_replay_bulk_merge(us_store_t *s, int last);

/* what the records from id on have to give to the cache */
void us_replay_bulk_cache(us_store_t *s, uint64_t id);

/* after a delete: the next merge removes the entry */
int us_replay_bulk_deleted(us_store_t *s, uint64_t id);


#endif /* _US_REPLAY_PRIVATE_H_INCLUDED_ */
