
/*
 * Why a store on disk does not answer now: the sentence of a problem document
 * (503), and whether it is worth to come again.
 */


#ifndef _US_UNREADY_H_INCLUDED_
#define _US_UNREADY_H_INCLUDED_


#include "../life/us_life.h"


typedef struct {
    unsigned    passes:1;             /* the client may come again soon */
    unsigned    loading:1;            /* progress is known */
    unsigned    primary:1;            /* a replica's primary may have it */
    unsigned    progress;             /* percent */
    char        detail[US_SHARE_REASON + 128];
} us_unready_t;


/* overtaken: the request had begun with other data, see us_life_overtaken() */
void us_unready(us_unready_t *u, const us_life_t *l, int overtaken);


#endif /* _US_UNREADY_H_INCLUDED_ */
