
/*
 * See us_map_tag.h.
 */


#include "us_map_tag.h"
#include "../us_text.h"


us_map_tag_t
us_map_tag(const us_map_t *map, uint32_t shard)
{
    us_map_tag_t  tag;

    memcpy(tag.cluster, map->cluster, 16);
    memcpy(tag.digest, map->digest, 16);
    tag.shard = shard;
    tag.version = map->version;

    return tag;
}


uint8_t *
us_map_tag_put(uint8_t *p, const us_map_tag_t *tag)
{
    p = us_put_hex(p, tag->cluster, 16);
    *p++ = ' ';
    p = us_put_u64(p, tag->shard);
    *p++ = ' ';
    p = us_put_u64(p, tag->version);
    *p++ = ' ';

    return us_put_hex(p, tag->digest, 16);
}


int
us_map_tag_parse(us_map_tag_t *tag, us_str_t text)
{
    uint8_t         again[US_MAP_TAG_LEN];
    uint64_t        shard;
    us_str_t        words[4];
    unsigned        n;
    const uint8_t  *p, *end;

    p = text.data;
    end = p + text.len;

    for (n = 0; n < 4; n++) {
        words[n].data = p;

        while (p < end && *p != ' ') {
            p++;
        }

        words[n].len = p - words[n].data;
        p += p < end;
    }

    if (us_map_uuid(words[0], tag->cluster) == -1
        || us_map_number(words[1], US_SHARDS - 1, &shard) == -1
        || us_map_number(words[2], US_MAP_VERSION_MAX, &tag->version) == -1
        || us_map_uuid(words[3], tag->digest) == -1)
    {
        return -1;
    }

    tag->shard = (uint32_t) shard;

    /* one spelling: no hyphens, no upper case, nothing after it */

    if (us_map_tag_put(again, tag) - again != (ptrdiff_t) text.len
        || memcmp(again, text.data, text.len) != 0)
    {
        return -1;
    }

    return 0;
}
