
/*
 * The header of a record.  See us_header.c for its format.
 */


#ifndef _US_HEADER_H_INCLUDED_
#define _US_HEADER_H_INCLUDED_


#include "../zone/us_log.h"
#include "us_models.h"


/* common prefixes that a header can express */

#define US_CUT_MIN      4
#define US_CUT_MAX      (US_CUT_MIN + US_PREFIX_SYMBOLS - 1)


typedef enum {
    US_WHOLE = 0,                     /* the whole text, in tokens */
    US_RAW,                           /* the whole text, as it is */
    US_TAIL                           /* what follows a reference's prefix */
} us_header_kind_t;


typedef struct {
    us_header_kind_t   kind;
    unsigned           number;        /* of the model */
    uint64_t           reference;     /* US_TAIL: an earlier record */
    unsigned           cut;           /* US_TAIL: the prefix, with the class */
} us_header_t;


/*
 * Reads the header of record id: 0, and *b is where the tail begins, or -1:
 * these bits are no record.
 */
int us_header_read(us_models_t *ms, uint64_t id, const us_bits_t *record,
    us_header_t *h, us_bitin_t *b);

/* writes it for record id; at most US_HEADER_BYTES */
#define US_HEADER_BYTES  24

void us_header_write(us_models_t *ms, uint64_t id, const us_header_t *h,
    us_bitout_t *o);

/* bits that the header of a record around id would take */
unsigned us_header_bits(const us_models_t *ms, uint64_t id,
    const us_header_t *h);

/* counts its symbols, for a model to be learnt */
void us_header_count(uint64_t id, const us_header_t *h, uint32_t *head,
    uint32_t *near, uint32_t *far);


#endif /* _US_HEADER_H_INCLUDED_ */
