
/*
 * Maps for the stress tests: shard 0 owns all slots.
 */


#ifndef _STRESS_MAP_H_INCLUDED_
#define _STRESS_MAP_H_INCLUDED_


#include "store/us_shard.h"

#include <stdio.h>
#include <unistd.h>


/* a map of so many shards, to be freed */

static inline us_map_t *
stress_map(unsigned version, unsigned shards)
{
    char      *p, err[256], text[1 << 16];
    unsigned   i;
    us_map_t  *m;

    p = text + sprintf(text, "{\"cluster\":\"%032x\",\"version\":%u,"
                       "\"norm\":\"stress\",\"key\":\"url\",\"shards\":{", 1,
                       version);

    for (i = 0; i < shards; i++) {
        p += sprintf(p, "%s\"%u\":{\"uuid\":\"%032x\",\"nodes\":[\"n%u\"]}",
                     i ? "," : "", i, i + 1, i);
    }

    p += sprintf(p, "},\"slots\":[[\"0-4095\",0]]}");

    m = us_map_read((us_str_t) { (size_t) (p - text), (uint8_t *) text }, err,
                    sizeof(err));

    if (m == NULL) {
        fprintf(stderr, "map %u: %s\n", version, err);
        _exit(2);
    }

    return m;
}


/* the text of the store's map, until the next call; empty: it has none */

static inline us_str_t
stress_map_text(us_store_t *s)
{
    uint64_t        number;
    us_str_t        have;
    static uint8_t  text[US_MAP_TEXT_MAX];

    have.data = text;
    have.len = us_store_map_text(s, text, &number);

    return have;
}


#endif /* _STRESS_MAP_H_INCLUDED_ */
