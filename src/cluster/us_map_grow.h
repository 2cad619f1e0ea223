
/*
 * Maps that are made by rule: the first one of a cluster, and the next one
 * with more shards.
 *
 *     0: 0-4095    -->    0: 0-2047    -->    0: 0-1364   and so on
 *                         1: 2048-4095        1: 2048-3413
 *                                             2: 1365-2047, 3414-4095
 *
 * Each new shard gets its part of N shards that own slots, slot by slot from
 * the shard that has the most; of its slots the one with the fewest former
 * owners, because each former owner is asked about each new URL; of those the
 * last.  Nothing else moves.
 *
 * A slot counts 1, or its weight: the URLs of a sample that are in it.  By site
 * a slot can have more than a shard's part.  It is then the shard's only slot
 * in a first map, and stays where it is when the cluster grows.
 */


#ifndef _US_MAP_GROW_H_INCLUDED_
#define _US_MAP_GROW_H_INCLUDED_


#include "us_map.h"


/*
 * Reads NUMBER=UUID,NODE[,NODE...]; the names of the nodes point into text.
 * Returns 0, or -1 with a message in err.
 */
int us_shard_parse(us_shard_t *s, us_str_t text, char *err, size_t errlen);

/*
 * The first map of a cluster, version 1, with n shards that share the slots
 * evenly, in ranges.  weight: US_SLOTS weights of at least 1, or NULL.  NULL
 * with a message in err, as us_map_read().
 */
us_map_t *us_map_first(const uint8_t cluster[16], us_str_t norm, us_key_t key,
    const us_shard_t *shards, uint32_t n, const uint32_t *weight, char *err,
    size_t errlen);

/* a map of the next version, with n more shards; weight and NULL as above */
us_map_t *us_map_grow(const us_map_t *map, const us_shard_t *shards,
    uint32_t n, const uint32_t *weight, char *err, size_t errlen);


#endif /* _US_MAP_GROW_H_INCLUDED_ */
