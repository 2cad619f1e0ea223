
/*
 * The SIZE of a zone in which a stream of operations fits.  See us_size.c.
 */


#ifndef _US_SIZE_H_INCLUDED_
#define _US_SIZE_H_INCLUDED_


#include "../codec/us_models.h"
#include "us_ring.h"


/* bits that were set, by 16 KiB of them: of deleted ids, and of each mark */

typedef struct {
    uint64_t          *words;
    size_t             n;
} us_size_bits_t;


typedef struct {
    uint64_t           ids;
    uint64_t           units;         /* of the log */
    uint64_t           length;        /* bytes of the long area */
    uint64_t           deleted;
    uint64_t           known;         /* ids that were decoded, */
    uint64_t           sites;         /* and the sites that they begin */
    uint64_t           entries;       /* entries that the index has, */
    uint64_t           counted;       /* and the first ids that they cover */
    unsigned           nmodels;
    uint64_t           models[US_MODELS_MAX];     /* bytes */
    us_size_bits_t     bits[1 + US_STORE_MARKS];
    us_size_bits_t     claims;        /* the same, 16 KiB of them */
    unsigned           clock;         /* 1: adds are claimed from here on */
    uint64_t           map;           /* bytes of the longest one's place */
} us_size_t;


/* counts an operation that can be one; -1: no memory */
int us_size_add(us_size_t *z, const us_op_t *op);
void us_size_free(us_size_t *z);

/* all that was counted was loaded, and has so many entries and sites */
void us_size_exact(us_size_t *z, uint64_t entries, uint64_t sites);

/*
 * The size of the smallest zone that takes all that was counted, in a store of
 * this configuration, with a ring for its journal or without; 0: no zone does.
 */
uint64_t us_size_zone(const us_size_t *z, us_store_conf_t *conf, int journal);


#endif /* _US_SIZE_H_INCLUDED_ */
