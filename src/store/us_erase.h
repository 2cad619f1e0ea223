
/*
 * Erases the records of deleted URLs, while others read and add.  See
 * us_erase.c.
 */


#ifndef _US_ERASE_H_INCLUDED_
#define _US_ERASE_H_INCLUDED_


#include "us_store.h"


/*
 * A pass: erases the record of every id that is deleted when the pass comes to
 * it.  What it has to do follows from the store, so a pass that was ended early
 * is followed by a new one.  Two passes at a time do no harm, and no good.
 *
 * `most` ids are looked after at once.  Each takes 8 bytes of private memory,
 * and 16 more if it is the first of its site.  The store's records are read
 * once for each `most` deleted ids.  At the end all texts are read once more,
 * for tokens of models that none of them has (us_tokens.h).
 */
#define US_ERASE_MOST  ((size_t) 1 << 20)

typedef struct {
    uint64_t  erased;                 /* records */
    uint64_t  stubs;                  /* written */
    uint64_t  stub_bytes;             /* of texts */
    uint64_t  models;                 /* replaced, without some texts */
} us_erase_figures_t;


typedef struct us_erase_s  us_erase_t;

/* s: the caller's handle, which is used by us_erase_step(); NULL: no memory */
us_erase_t *us_erase_create(us_store_t *s, size_t most);
void us_erase_free(us_erase_t *e);

/*
 * Looks at about n records, or erases so many; of these, US_ERASE_HOLD in one
 * hold of the lock.  US_NEW: there is more to do; US_OK: the pass is over;
 * US_BUSY: the ring is full, again later; US_FULL: no memory, or, at the end of
 * the pass, no room in the zone for a stub; US_FENCED.
 */
#define US_ERASE_HOLD  32

us_store_status_t us_erase_step(us_erase_t *e, unsigned n);
const us_erase_figures_t *us_erase_figures(const us_erase_t *e);


#endif /* _US_ERASE_H_INCLUDED_ */
