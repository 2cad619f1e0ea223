
/*
 * The cursor of a list over all shards: where each of them goes on.
 *
 *     | 1 | 4 bytes of the cluster's uuid | turn | number local | ... |
 *
 * The 1 is the version of the format.  All that follows the uuid are unsigned
 * LEB128 numbers.  Shards are in ascending order: a number is the difference to
 * the one before, less one (the first: from -1).  A shard that is left out
 * begins with its first id.  Clients get it as base64url.
 *
 * A cursor comes from a client: each byte is checked.
 */


#ifndef _US_CURSOR_H_INCLUDED_
#define _US_CURSOR_H_INCLUDED_


#include "us_map.h"


#define US_CURSOR_VERSION  1

/* bytes of a cursor, at most: some 500 shards; 4 KB of base64 */
#define US_CURSOR_MAX      3072


typedef struct {
    uint32_t  turn;                   /* the shard that is listed first */
    uint64_t  local[US_SHARDS];       /* by number: its next id, or 0 */
} us_cursor_t;


typedef enum {
    US_CURSOR_OK = 0,
    US_CURSOR_BAD,                    /* it was not made by us_cursor_put() */
    US_CURSOR_OTHER                   /* of another cluster */
} us_cursor_rc_t;


us_cursor_rc_t us_cursor_read(us_cursor_t *c, const uint8_t cluster[16],
    us_str_t bytes);

/* the end of the bytes, at most US_CURSOR_MAX; NULL: it would have more */
uint8_t *us_cursor_put(uint8_t *p, const uint8_t cluster[16],
    const us_cursor_t *c);


#endif /* _US_CURSOR_H_INCLUDED_ */
