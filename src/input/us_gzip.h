
/*
 * Unpacks a gzip body as it arrives (RFC 1952): pieces in, windows of text out.
 *
 *     us_gzip_next(piece)   window    the piece is not used up, or
 *     us_gzip_next(piece)   window    us_gzip_more()
 *     us_gzip_next(piece)   less      the piece is used up
 *     ...
 *     the body ends                   us_gzip_open(): in the middle of a member
 *
 * A body is one member or several, one after the other.  A call returns at most
 * US_GZIP_WINDOW bytes, however well the body is packed: its caller counts
 * them, and stops where its limit is.
 */


#ifndef _US_GZIP_H_INCLUDED_
#define _US_GZIP_H_INCLUDED_


#include "../us_base.h"


#define US_GZIP_WINDOW  (16 * 1024)


typedef enum {
    US_GZIP_OK = 0,
    US_GZIP_BAD,                      /* it is not gzip */
    US_GZIP_NO_MEMORY
} us_gzip_rc_t;


typedef struct us_gzip_s  us_gzip_t;


/* NULL: no memory */
us_gzip_t *us_gzip_create(void);
void us_gzip_destroy(us_gzip_t *g);

/*
 * *in: the piece; what was read is cut off.  *out: what it unpacks to, perhaps
 * of no bytes; it stays until the next call.
 */
us_gzip_rc_t us_gzip_next(us_gzip_t *g, us_str_t *in, us_str_t *out);

/* whether the next call has text without another piece */
int us_gzip_more(const us_gzip_t *g);

/* whether a member has begun and not ended */
int us_gzip_open(const us_gzip_t *g);


#endif /* _US_GZIP_H_INCLUDED_ */
