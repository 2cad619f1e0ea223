
/*
 * Groups tokens by what follows them.
 */


#ifndef _US_KMEANS_H_INCLUDED_
#define _US_KMEANS_H_INCLUDED_


#include "../us_base.h"


/* token `next` was seen `count` times after token `prev` */

typedef struct {
    uint16_t   prev;
    uint16_t   next;
    uint32_t   count;
} us_kmeans_pair_t;


/*
 * follows is sorted by prev; group[token] < ngroups is the first guess on
 * entry (groups may be empty) and the answer on return.  0, or -1: no memory.
 */
int us_kmeans(const us_kmeans_pair_t *follows, size_t n, size_t ntokens,
    unsigned ngroups, uint8_t *group, const volatile int *cancel);


#endif /* _US_KMEANS_H_INCLUDED_ */
