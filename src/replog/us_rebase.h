
/*
 * A new base of a replicated log: the operations that make the store as it is,
 * in parts, and then in force instead of the rows before it.
 *
 *     us_rebase_put() ...     operations, whole ones, collected to parts
 *     us_rebase_end()         the last part: as of an LSN
 *                             the caller waits until all that the operations
 *                             may depend on is confirmed
 *     us_rebase_force()       the base is in force
 *     us_rebase_trim()        what it has replaced is removed
 *
 * Until us_rebase_force() nothing but parts has been written, which nobody
 * reads.  A process may be killed at any instruction: the next base removes
 * them.  Only the primary of the term can put a base in force; with term 0,
 * a node that makes the log of a store which is there already.
 *
 * The log is one that nobody else uses meanwhile: it remembers the base that it
 * makes.  A call that fails is tried again, US_REBASE_TRIES times in a row.
 */


#ifndef _US_REBASE_H_INCLUDED_
#define _US_REBASE_H_INCLUDED_


#include "us_replog.h"


#define US_REBASE_PART    (1024 * 1024)       /* bytes, or one operation */
#define US_REBASE_TRIES   20
#define US_REBASE_FIRST   100         /* ms after the first failure */
#define US_REBASE_LAST    2000        /* and at most */


/* the caller zeroes it and sets the first half */

typedef struct {
    us_replog_t       *log;
    uint64_t           term;
    uint64_t           base;          /* its number, by chance */
    size_t             size;          /* of a part; 0: US_REBASE_PART */
    uint64_t           keep;          /* bytes of rows before the base that stay
                                         for standbys that are a bit behind */

    /* waits; -1: all is to end.  Also asked before each call, with 0 */
    int              (*pause)(void *data, unsigned ms);
    void              *data;

    uint32_t           parts;         /* written */
    uint64_t           bytes;         /* of operations */
    uint64_t           lsn;
    uint8_t           *buf;           /* the next part */
    size_t             len;
    size_t             room;
    char               error[US_REPLOG_ERROR];
} us_rebase_t;


/* each: 0, or -1 with error */

int us_rebase_put(us_rebase_t *rb, const uint8_t *p, size_t len);
int us_rebase_end(us_rebase_t *rb, uint64_t lsn, uint64_t until);
int us_rebase_force(us_rebase_t *rb);
int us_rebase_trim(us_rebase_t *rb);

void us_rebase_free(us_rebase_t *rb);


#endif /* _US_REBASE_H_INCLUDED_ */
