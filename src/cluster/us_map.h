
/*
 * The map of a cluster: which shard owns a URL, and which owned it before.
 *
 *     canonical URL --us_slot_key()--> key --us_slot()--> slot, 0 .. 4095
 *
 *     slot --us_map_t--> owner, former owners          shards, their nodes
 *
 *     id of the cluster = shard << 40 | id that the shard's store assigned
 *
 * FORMAT.  A map is a JSON text of at most 1 MiB, in UTF-8:
 *
 *     {
 *       "cluster": "6f1c0a52d3f94f0e8c2b7a9d1e5f4c3b",
 *       "version": 3,
 *       "norm": "crawler/1 www=first",
 *       "key": "site",
 *       "shards": {
 *         "0": {"uuid": "0b7e...", "nodes": ["us_0a", "us_0b"]},
 *         "1": {"uuid": "94d2...", "nodes": ["us_1a"]}
 *       },
 *       "slots": [
 *         ["0-1023", 0],
 *         ["1024-4095", 1, 0]
 *       ]
 *     }
 *
 *     cluster   who made it: 32 hex digits, or a UUID with its hyphens
 *     version   1 and more; another content needs a higher version
 *     norm      the "normalization" that GET /stats of each shard reports
 *     key       what decides the slot: "url" or "site"
 *     shards    by number: uuid of the store, and the nodes that have it, by
 *               the names of their upstreams; the first is asked first,
 *               until another one has answered
 *     slots     each slot once, alone ("17") or in a range; the owner, and
 *               then all former owners, the latest first
 *
 * Members may be in any order.  None may be missing, unknown or there twice.
 * The canonical form is the one above, with a line for each shard and for each
 * longest range: us_map_t's text.  The digest is the one of that text.
 *
 * A map is read and checked as a whole.  After that it does not change, and
 * threads may read it without a lock.
 *
 *
 * The slot of a URL: one of 4,096, to which the shards of a cluster are
 * assigned.
 *
 *     https://user@www.example.com:8080/a?b      the canonical URL
 *                      `-------------'           key=site
 *                      `------------------'      key=url
 *
 *     slot = crc32(key) >> 20
 *
 * Scheme, user and one leading "www." are never part of the key, whatever
 * urlstore_www says: all spellings of one URL have one slot.  In other
 * languages, what is left out is ^https?://([^/?#]*@)?(www\.)?, and crc32 is
 * the one of zlib.
 *
 *
 * Which map a request was made by: the value of the header Urlstore-Map.
 *
 *     Urlstore-Map: 6f1c0a52d3f94f0e8c2b7a9d1e5f4c3b 1 3 9a77...
 *                   cluster                          |  | digest
 *                                                shard  version
 */


#ifndef _US_MAP_H_INCLUDED_
#define _US_MAP_H_INCLUDED_


#include "../us_base.h"


#define US_SLOTS  4096


typedef enum {
    US_KEY_URL = 0,
    US_KEY_SITE                       /* host and port */
} us_key_t;


/* the key of a canonical URL; points into url */
us_str_t us_slot_key(us_key_t kind, us_str_t url);

/* crc32 (IEEE 802.3, as in zlib) of the key, its upper 12 bits */
unsigned us_slot(us_str_t key);


/*
 * The URL by which a site (host and port) has its slot: its front page.  It is
 * in buf, of US_SLOT_FRONT bytes.
 */
#define US_SLOT_FRONT  (sizeof("http:///") + US_URL_MAX)

us_str_t us_slot_front(us_str_t site, uint8_t *buf);


static inline unsigned
us_slot_of(us_key_t kind, us_str_t url)
{
    return us_slot(us_slot_key(kind, url));
}


#define US_SHARDS           4096      /* shard numbers are below */
#define US_SHARD_SHIFT      40
#define US_LOCAL_MAX        (((uint64_t) 1 << US_SHARD_SHIFT) - 1)

#define US_MAP_VERSION_MAX  (((uint64_t) 1 << 53) - 1)

#define US_MAP_TEXT_MAX     (1024 * 1024)
#define US_MAP_NORM_LEN     127
#define US_MAP_NODES        8         /* nodes of a shard */
#define US_MAP_NODE_LEN     63        /* bytes of a node's name */
#define US_MAP_FORMER       16        /* former owners of a slot */


typedef struct {
    uint32_t          number;
    uint8_t           uuid[16];       /* of its store */
    uint32_t          nnodes;         /* from 1 */
    us_str_t          nodes[US_MAP_NODES];
} us_shard_t;


/*
 * Of a slot: the owner, then all former owners, the latest first.  They are
 * indexes into map->shards, not shard numbers.
 */

typedef struct {
    uint16_t          n;              /* from 1 */
    uint16_t          shards[1 + US_MAP_FORMER];
} us_owners_t;


typedef struct {
    uint8_t           cluster[16];
    uint64_t          version;        /* 1 .. US_MAP_VERSION_MAX */
    uint8_t           digest[16];     /* of the text in its canonical form */
    us_key_t          key;
    us_str_t          norm;           /* visible ASCII and blanks */

    uint32_t          nshards;        /* from 1 */
    us_shard_t       *shards;         /* in the order of their numbers */

    us_str_t          text;           /* in the canonical form */
    us_owners_t       slots[US_SLOTS];

    uint8_t          *names;          /* what norm and nodes point into */
    unsigned          holders;        /* beside its owner */
} us_map_t;


/*
 * Reads a map.  Returns a map that us_map_free() frees, or NULL with a message
 * in err (at most errlen bytes with its zero): the line, what is wrong, the
 * value, and what is allowed.
 */
us_map_t *us_map_read(us_str_t text, char *err, size_t errlen);

/* the map goes with the last of its holders and its owner; may be NULL */
void us_map_free(us_map_t *map);

/* one more holder, which frees it, too */
static inline us_map_t *
us_map_hold(us_map_t *map)
{
    map->holders++;

    return map;
}


/*
 * Whether a shard that has the map old may adopt next: same cluster, key and
 * norm; a higher version, or the same version and digest; no shard is missing
 * or has another uuid; no owner or former owner of a slot was dropped from it.
 * Returns 0, or -1 with a message in err.
 */
int us_map_follows(const us_map_t *old, const us_map_t *next, char *err,
    size_t errlen);

/* whether the shard of this number owns the slot, or has owned it */
int us_map_has_owner(const us_map_t *map, unsigned slot, uint32_t number);

/* the index of a shard's number in map->shards, or -1 */
int us_map_shard(const us_map_t *map, uint64_t number);

/* the index of the shard that has this node, or -1 */
int us_map_node(const us_map_t *map, us_str_t node);


static inline const us_owners_t *
us_map_owners(const us_map_t *map, us_str_t url)
{
    return &map->slots[us_slot_of(map->key, url)];
}


static inline uint64_t
us_cluster_id(uint64_t shard, uint64_t local)
{
    return shard << US_SHARD_SHIFT | local;
}


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


#endif /* _US_MAP_H_INCLUDED_ */
