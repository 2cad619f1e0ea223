
/*
 * Quotas: how many new URLs a client may add.  A leaky bucket for each client.
 *
 *     buckets   | row of 8 buckets | row of 8 buckets | ...
 *     bucket    tag      keyed hash of the client's key; 0: free
 *               level    new URLs that have not drained yet, in units
 *               drained  the time up to which the rate has drained it, ms
 *
 * A tag belongs to one row.  A unit is the 3,600,000th part of a URL: N/h
 * drains N units a millisecond, N/m 60 N, N/s 3600 N, all of them exactly.
 *
 * If a row is full, the bucket with the lowest level is forgotten, so that a
 * client cannot get rid of its debt by naming many others.  Tags are keyed
 * (SipHash), so that nobody can choose the client with which to share a row.
 *
 * A process that is killed while it holds the lock leaves one bucket with a
 * wrong level and nothing else.
 */


#ifndef _US_QUOTA_H_INCLUDED_
#define _US_QUOTA_H_INCLUDED_


#include "../us_base.h"


/* the greatest number of a rate or a burst, URLs */
#define US_QUOTA_MAX  1000000000


typedef struct {
    uint64_t         tag;
    uint64_t         level;
    uint64_t         drained;
} us_bucket_t;


/* in shared memory; the caller has a lock for it */

typedef struct {
    uint8_t          key[16];         /* of the tags, random and secret */
    size_t           rows;
    us_bucket_t     *buckets;         /* at the same address everywhere */
} us_quota_t;


/* "N/s", "N/m", "N/h", or "Nr/s": *rate in units a millisecond; or -1 */
int us_quota_rate(us_str_t text, uint64_t *rate);

/* "N": *burst in units; or -1 */
int us_quota_burst(us_str_t text, uint64_t *burst);

/* q->key is set; the buckets' size bytes are zero, and there is a row */
void us_quota_init(us_quota_t *q, void *buckets, size_t size);

/* of a client, by its key */
uint64_t us_quota_tag(const us_quota_t *q, us_str_t key);

/* what the client's bucket holds at a time, ms */
uint64_t us_quota_level_locked(us_quota_t *q, uint64_t rate, uint64_t tag,
    uint64_t now);

/* charges n URLs that were new */
void us_quota_charge_locked(us_quota_t *q, uint64_t rate, uint64_t tag,
    uint64_t now, uint64_t n);

/* seconds until a level above burst is no more than that */
uint64_t us_quota_wait(uint64_t level, uint64_t burst, uint64_t rate);

/* a level in URLs, rounded up */
uint64_t us_quota_urls(uint64_t level);


#endif /* _US_QUOTA_H_INCLUDED_ */
