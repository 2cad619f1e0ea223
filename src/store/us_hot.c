
/*
 * The hot table: see us_hot.h.
 *
 *     buckets, a cache line each         ring of entries, the newest at head
 *     +----+----+----+---------+
 *     | tag, position | x 8    |         ... | entry | entry | entry |head ...
 *     +----+----+----+---------+               ^
 *              `-------------------------------'
 *
 *     entry    uint64_t  value 52 | class 4
 *              uint64_t  label: owner 32 | length 16 | domain 4
 *              text, up to the next 8 bytes
 *
 * Positions count 8 bytes and grow for ever: an entry is alive while its
 * position is within one ring's length of head, so that no word of a bucket
 * can lead into what has been written over.  The hash chooses the bucket and
 * the tag; whether an entry is the one is decided by its label and text.
 *
 * An entry that is found in the oldest quarter of the ring is written again at
 * head: those in use stay.  A full bucket gives up its oldest word.
 *
 * Positions end after 2^48 words: the table is emptied then.
 */


#include "us_hot.h"
#include "../us_huge.h"
#include "../us_vector.h"

#include <stdlib.h>
#include <sys/mman.h>


#define US_HOT_PAGE      4096
#define US_HOT_WAYS      8
#define US_HOT_TAG       48           /* where it begins */
#define US_HOT_TAG_MASK  0xffff
#define US_HOT_POSITION  (((uint64_t) 1 << US_HOT_TAG) - 1)

#define US_HOT_CLASS     52           /* where it begins */
#define US_HOT_WORDS     2            /* of an entry, before its text */

/*
 * One part in six of the memory is buckets: calculated, not measured.  A word
 * of a bucket leads to one entry, and an entry takes 16 bytes and its text.
 */
#define US_HOT_BUCKETS   6


typedef struct {
    uint64_t      word[US_HOT_WAYS];
} us_hot_bucket_t;


struct us_hot_s {
    us_hot_bucket_t  *buckets;
    uint64_t         *ring;
    uint64_t          nbuckets;
    uint64_t          nring;          /* words */
    uint64_t          head;           /* position */
    uint64_t          at;             /* of head in the ring */
    size_t            size;
    uint32_t          owners;
};


us_hot_t *
us_hot_create(size_t size)
{
    us_hot_t  *h;

    if (size < US_HOT_MIN) {
        return NULL;
    }

    h = calloc(1, sizeof(us_hot_t));
    if (h == NULL) {
        return NULL;
    }

    h->size = size & ~(size_t) (US_HOT_PAGE - 1);
    h->buckets = us_huge_map(h->size, h->size);

    if (h->buckets == NULL) {
        free(h);
        return NULL;
    }

    h->nbuckets = h->size / US_HOT_BUCKETS / sizeof(us_hot_bucket_t);
    h->ring = (uint64_t *) (h->buckets + h->nbuckets);
    h->nring = (h->size - h->nbuckets * sizeof(us_hot_bucket_t))
               / sizeof(uint64_t);

    /* position 0, that of a word never written, is not alive */

    h->head = h->nring + 1;

    return h;
}


void
us_hot_destroy(us_hot_t *h)
{
    (void) munmap(h->buckets, h->size);
    free(h);
}


void
us_hot_wipe(us_hot_t *h)
{
    uint64_t  used;

    /* before it has gone round once: it takes memory as it fills */

    used = h->head - (h->nring + 1);
    used = used < h->nring ? used : h->nring;

    explicit_bzero(h->buckets, h->nbuckets * sizeof(us_hot_bucket_t));
    explicit_bzero(h->ring, used * sizeof(uint64_t));

    h->head = h->nring + 1;
    h->at = 0;
}


uint32_t
us_hot_owner(us_hot_t *h)
{
    return ++h->owners;
}


/* the product's halves: wyhash (Wang Yi, 2019), whose mixing step this is */

static inline uint64_t
us_hot_mix(uint64_t a, uint64_t b)
{
    unsigned __int128  product;

    product = (unsigned __int128) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}


static inline uint64_t
us_hot_load(const uint8_t *p, size_t n)
{
    uint64_t  v;

    v = 0;
    memcpy(&v, p, n);

    return v;
}


/*
 * A client that finds texts with equal hashes can make one entry replace the
 * other.  It can do no more: what is not found here is looked up in the store.
 */

static uint64_t
us_hot_hash(const uint8_t *p, size_t len, uint64_t seed)
{
    uint64_t  h, a, b;

    h = seed ^ 0xa0761d6478bd642f;

    if (len > 16) {

        for ( /* void */ ; len > 16; p += 16, len -= 16) {
            h = us_hot_mix(us_hot_load(p, 8) ^ 0xe7037ed1a0b428db,
                           us_hot_load(p + 8, 8) ^ h);
        }

        /* the last 16, some of them again */

        a = us_hot_load(p + len - 16, 8);
        b = us_hot_load(p + len - 8, 8);

    } else if (len >= 8) {
        a = us_hot_load(p, 8);
        b = us_hot_load(p + len - 8, 8);

    } else {
        a = us_hot_load(p, len);
        b = 0;
    }

    return us_hot_mix(us_hot_mix(a ^ 0x8ebc6af09c88c6e3, b ^ h),
                      seed ^ 0x589965cc75374cc3);
}


static inline us_hot_bucket_t *
us_hot_bucket(const us_hot_t *h, const us_hot_key_t *key)
{
    return &h->buckets[(uint64_t) ((unsigned __int128) key->hash * h->nbuckets
                                   >> 64)];
}


void
us_hot_key(const us_hot_t *h, us_hot_key_t *key, uint32_t owner,
    unsigned domain, us_str_t text)
{
    key->text = text;
    key->label = (uint64_t) owner << 32 | (uint64_t) text.len << 16 | domain;
    key->hash = us_hot_hash(text.data, text.len, key->label);

    __builtin_prefetch(us_hot_bucket(h, key));
}


/*
 * The words of a bucket that have the key's tag: a set of bits, of which
 * us_hot_way() is the number of the lowest one's word.  Nearly always it has
 * one bit, or none.  A tag is the high half of a word's two: bytes 6 and 7, or
 * 14 and 15, of the 16 that hold two words.
 */

static inline us_longs_t
us_hot_tags(const us_hot_bucket_t *b, uint16_t tag, unsigned i)
{
    us_halves_t  v;

    v = (us_halves_t) us_load_bytes(&b->word[2 * i]);

    return (us_longs_t) (v == tag)
           & (uint64_t) 1 << (US_HOT_TAG + i);
}


static inline unsigned
us_hot_ways(const us_hot_bucket_t *b, const us_hot_key_t *key)
{
    uint16_t    tag;
    us_longs_t  v;

    tag = key->hash & US_HOT_TAG_MASK;
    v = us_hot_tags(b, tag, 0) | us_hot_tags(b, tag, 1)
        | us_hot_tags(b, tag, 2) | us_hot_tags(b, tag, 3);

    return (unsigned) (v[0] >> US_HOT_TAG | v[1] >> (US_HOT_TAG - 4));
}


static inline unsigned
us_hot_way(unsigned ways)
{
    unsigned  bit;

    bit = (unsigned) __builtin_ctz(ways);

    return 2 * (bit % 4) + bit / 4;
}


/* the entry that a word leads to, or NULL: it was written over */

static inline uint64_t *
us_hot_entry(const us_hot_t *h, uint64_t word)
{
    uint64_t  age;

    age = h->head - (word & US_HOT_POSITION);

    if (age > h->nring) {
        return NULL;
    }

    return &h->ring[h->at >= age ? h->at - age : h->at + h->nring - age];
}


void
us_hot_prefetch(const us_hot_t *h, const us_hot_key_t *key)
{
    unsigned          ways;
    uint64_t         *entry;
    us_hot_bucket_t  *b;

    b = us_hot_bucket(h, key);

    for (ways = us_hot_ways(b, key); ways; ways &= ways - 1) {
        entry = us_hot_entry(h, b->word[us_hot_way(ways)]);

        if (entry) {
            __builtin_prefetch(entry);
            __builtin_prefetch((char *) entry + 64);
            return;
        }
    }
}


/* the word that leads to the key's entry, or NULL */

static uint64_t *
us_hot_look(us_hot_t *h, const us_hot_key_t *key, uint64_t **entry)
{
    unsigned          ways;
    uint64_t         *e, *word;
    us_hot_bucket_t  *b;

    b = us_hot_bucket(h, key);

    for (ways = us_hot_ways(b, key); ways; ways &= ways - 1) {
        word = &b->word[us_hot_way(ways)];
        e = us_hot_entry(h, *word);

        if (e && e[1] == key->label
            && memcmp(e + US_HOT_WORDS, key->text.data, key->text.len) == 0)
        {
            *entry = e;
            return word;
        }
    }

    return NULL;
}


/* writes an entry at head, and the word that leads to it */

static void
us_hot_write(us_hot_t *h, const us_hot_key_t *key, uint64_t value,
    uint64_t *word)
{
    uint64_t  n, *entry;

    n = US_HOT_WORDS + (key->text.len + 7) / 8;

    /* positions end after years of writing */

    if (h->head > US_HOT_POSITION - 2 * h->nring) {
        memset(h->buckets, 0, h->nbuckets * sizeof(us_hot_bucket_t));
        h->head = h->nring + 1;
        h->at = 0;
    }

    /* an entry is in one piece */

    if (n > h->nring - h->at) {
        h->head += h->nring - h->at;
        h->at = 0;
    }

    entry = &h->ring[h->at];

    entry[0] = value;
    entry[1] = key->label;
    memcpy(entry + US_HOT_WORDS, key->text.data, key->text.len);

    *word = (key->hash & US_HOT_TAG_MASK) << US_HOT_TAG | h->head;

    h->head += n;
    h->at += n;
}


int
us_hot_find(us_hot_t *h, const us_hot_key_t *key, uint64_t *value,
    unsigned *klass)
{
    uint64_t  *word, *entry;

    word = us_hot_look(h, key, &entry);

    if (word == NULL) {
        return 0;
    }

    *value = entry[0] & US_HOT_VALUE;
    *klass = (unsigned) (entry[0] >> US_HOT_CLASS);

    if (h->head - (*word & US_HOT_POSITION) > h->nring / 4 * 3) {
        us_hot_write(h, key, entry[0], word);
    }

    return 1;
}


void
us_hot_put(us_hot_t *h, const us_hot_key_t *key, uint64_t value,
    unsigned klass)
{
    unsigned          i;
    uint64_t         *word, *entry;
    us_hot_bucket_t  *b;

    if (value > US_HOT_VALUE || key->text.len > US_URL_MAX) {
        return;
    }

    value |= (uint64_t) klass << US_HOT_CLASS;
    word = us_hot_look(h, key, &entry);

    if (word) {
        entry[0] = value;
        return;
    }

    /* a word that leads nowhere, else the oldest */

    b = us_hot_bucket(h, key);
    word = &b->word[0];

    for (i = 1; i < US_HOT_WAYS; i++) {
        if ((b->word[i] & US_HOT_POSITION) < (*word & US_HOT_POSITION)) {
            word = &b->word[i];
        }
    }

    us_hot_write(h, key, value, word);
}
