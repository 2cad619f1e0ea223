
/*
 * A part of a base: the bytes that a log keeps as one payload.
 *
 *     FORMAT, little-endian
 *
 *        0   4  "USBP"
 *        4   4  CRC-32C of all that follows
 *        8   4  number of the part, from 0
 *       12   4  1: it is the last one; else 0
 *       16   8  number of the base, by chance: one for all of its parts
 *       24   8  in the last part the LSN of the base; else 0
 *       32   8  in the last part UNTIL; else 0
 *       40      whole operations, in the last part maybe none
 *
 *     LSN      the base is the store as of this LSN.  What follows it in the
 *              log is to be applied, and nothing before
 *     UNTIL    an LSN, not lower.  Marks, deletes and claims of the base may be
 *              as new as that.  The operations up to it are confirmed, and set
 *              them once more: a store is whole only when it has applied them
 */


#ifndef _US_PART_H_INCLUDED_
#define _US_PART_H_INCLUDED_


#include "us_replog.h"


#define US_PART_HEAD  40


typedef struct {
    uint32_t           number;
    int                last;
    uint64_t           base;
    uint64_t           lsn;
    uint64_t           until;
} us_part_t;


/* p: US_PART_HEAD bytes for the head, then the operations; len: of all */
void us_part_seal(uint8_t *p, size_t len, const us_part_t *part);

/*
 * Checks the part that is read as this number and fills in *part.  0; -1: err
 * names the part, and says what is wrong with it.
 */
int us_part_open(us_part_t *part, uint32_t number, const uint8_t *p,
    size_t len, char *err, size_t size);


#endif /* _US_PART_H_INCLUDED_ */
