
/*
 * What the hot table is made of: for us_hot.c, and for its test.
 */


#ifndef _US_HOT_PRIVATE_H_INCLUDED_
#define _US_HOT_PRIVATE_H_INCLUDED_


#include "us_hot.h"


#define US_HOT_WAYS      8
#define US_HOT_TAG       48           /* where it begins */
#define US_HOT_TAG_MASK  0xffff
#define US_HOT_POSITION  (((uint64_t) 1 << US_HOT_TAG) - 1)

#define US_HOT_CLASS     52           /* where it begins */
#define US_HOT_WORDS     2            /* of an entry, before its text */

/*
 * One part in six of the memory is buckets: calculated, not measured.  A word
 * of a bucket leads to one entry, and an entry takes 16 bytes and its text.
 */
#define US_HOT_BUCKETS   6


typedef struct {
    uint64_t      word[US_HOT_WAYS];
} us_hot_bucket_t;


struct us_hot_s {
    us_hot_bucket_t  *buckets;
    uint64_t         *ring;
    uint64_t          nbuckets;
    uint64_t          nring;          /* words */
    uint64_t          head;           /* position */
    uint64_t          at;             /* of head in the ring */
    size_t            size;
    uint32_t          owners;
};


#endif /* _US_HOT_PRIVATE_H_INCLUDED_ */
