
/*
 * Which map a request was made by: the value of the header Urlstore-Map.
 *
 *     Urlstore-Map: 6f1c0a52d3f94f0e8c2b7a9d1e5f4c3b 1 3 9a77...
 *                   cluster                          |  | digest
 *                                                shard  version
 */


#ifndef _US_MAP_TAG_H_INCLUDED_
#define _US_MAP_TAG_H_INCLUDED_


#include "us_map.h"


/* bytes of the longest, without a zero */
#define US_MAP_TAG_LEN  (32 + 1 + 4 + 1 + 16 + 1 + 32)


typedef struct {
    uint8_t           cluster[16];
    uint32_t          shard;          /* its number */
    uint64_t          version;
    uint8_t           digest[16];
} us_map_tag_t;


us_map_tag_t us_map_tag(const us_map_t *map, uint32_t shard);

/* p has room for US_MAP_TAG_LEN bytes; returns the end */
uint8_t *us_map_tag_put(uint8_t *p, const us_map_tag_t *tag);

/* 0, or -1: the text is no tag, as us_map_tag_put() writes it */
int us_map_tag_parse(us_map_tag_t *tag, us_str_t text);


#endif /* _US_MAP_TAG_H_INCLUDED_ */
