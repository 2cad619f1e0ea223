
/*
 * The map of a shard, in a handle and, with its text after it, in the zone: see
 * us_shard.c.
 */


#ifndef _US_MAPS_H_INCLUDED_
#define _US_MAPS_H_INCLUDED_


#include "../cluster/us_map.h"


typedef struct {
    uint64_t      number;             /* of maps adopted; 0: none, or stale */
    uint64_t      lsn;                /* it has been adopted at */
    uint64_t      version;
    uint8_t       digest[16];
    uint8_t       cluster[16];
    uint64_t      key;                /* us_key_t */
    uint64_t      len;                /* of its text */
    uint8_t       slots[US_SLOTS / 4];
} us_store_map_t;


#endif /* _US_MAPS_H_INCLUDED_ */
