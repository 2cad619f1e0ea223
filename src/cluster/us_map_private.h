
/*
 * What the files of the map share and nobody else sees.
 *
 *     us_map.c            the life of a map, and which may follow which
 *     us_map_read.c       JSON to a map
 *     us_map_parse.c      its numbers, ids and names
 *     us_map_check.c      what only the whole map shows
 *     us_map_write.c      a map to its canonical text, and the digest
 *     us_map_grow.c       the first map, and the next with more shards
 */


#ifndef _US_MAP_PRIVATE_H_INCLUDED_
#define _US_MAP_PRIVATE_H_INCLUDED_


#include "us_map.h"


/* the owner of a slot that has none yet */
#define US_MAP_NOBODY  UINT16_MAX


/* digits without leading zeros; 0, or -1: no number, or greater than max */
int us_map_number(us_str_t text, uint64_t max, uint64_t *n);

/* 32 hex digits, or 8-4-4-4-12 of them; 0, or -1 */
int us_map_uuid(us_str_t text, uint8_t uuid[16]);

/* whether it is the name of an upstream, which nginx compares without case */
int us_map_is_node(us_str_t text);

/*
 * Puts map->shards in the order of their numbers.  Returns 0, or -1 with a
 * message in err: a number is there twice.
 */
int us_map_sort(us_map_t *map, char *err, size_t errlen);

/*
 * Sorts map->shards, checks the whole, and makes indexes of the numbers in
 * map->slots.  Returns 0, or -1 with a message in err.
 */
int us_map_check(us_map_t *map, char *err, size_t errlen);

/*
 * Makes map->text and map->digest from the rest.  Returns 0, or -1: out of
 * memory.  The text can be longer than US_MAP_TEXT_MAX.
 */
int us_map_write(us_map_t *map);

/* writes a message; returns -1 */
int us_map_refuse(char *err, size_t errlen, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));


#endif /* _US_MAP_PRIVATE_H_INCLUDED_ */
