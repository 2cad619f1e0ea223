
/*
 * What the tests of the store share: a zone in shared memory, a store in it,
 * and short names for what they do most.
 */


#ifndef _STORE_ZONE_H_INCLUDED_
#define _STORE_ZONE_H_INCLUDED_


#include "us_base.h"
#include "store/us_index.h"
#include "store/us_store.h"
#include "marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>


typedef struct {
    void         *mem;
    size_t        size;
    us_store_t   *store;
} zone_t;


static us_store_conf_t  zone_conf = {
    .uuid = "0123456789abcde",
    .hash_key = "a random secret",
    .epoch = 7,
    .norm = { 4, (const uint8_t *) "test" },
    .marks = { { 7, (const uint8_t *) "visited" },
               { 4, (const uint8_t *) "todo" } },
    .nmarks = 2
};


static void
zone_lock(void *data)
{
}


static const us_store_lock_t  zone_no_lock = { zone_lock, zone_lock, NULL };


static inline zone_t *
zone_create(size_t size, size_t ring)
{
    zone_t  *z;

    z = malloc(sizeof(zone_t));
    z->size = size;
    z->mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_ANONYMOUS|MAP_SHARED,
                  -1, 0);
    assert_ptr_not_equal(z->mem, MAP_FAILED);

    zone_conf.ring = ring;
    assert_int_equal(us_store_format(z->mem, size, &zone_conf), 0);
    zone_conf.ring = 0;

    z->store = us_store_open(z->mem, &zone_no_lock);
    assert_non_null(z->store);

    return z;
}


static inline void
zone_destroy(zone_t *z)
{
    us_store_close(z->store);
    munmap(z->mem, z->size);
    free(z);
}


/* an arena with an empty index, in memory that the caller unmaps */

static inline void *
zone_map(us_arena_t *a, size_t size)
{
    void  *mem;

    mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_ANONYMOUS|MAP_PRIVATE|MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(mem, MAP_FAILED);
    assert_int_equal(us_arena_format(a, mem, size, &zone_conf), 0);
    us_index_format(a);

    return mem;
}


/* len 0: up to the end of the string */

static inline us_store_item_t
item(const char *url, size_t len)
{
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.data = (const uint8_t *) url;
    it.url.len = len ? len : strlen(url);

    return it;
}


static inline us_store_item_t
lookup(us_store_t *s, const char *url)
{
    us_store_item_t  it;

    it = item(url, 0);
    us_store_seen(s, &it, 1);

    return it;
}


static inline us_store_item_t
add(us_store_t *s, const char *url)
{
    us_store_item_t  it;

    it = item(url, 0);
    us_store_add(s, &it, 1);

    return it;
}


static uint64_t  zone_seed = 1;


/* SplitMix64 */

static inline uint64_t
rnd64(void)
{
    uint64_t  z;

    z = zone_seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


static inline unsigned
rnd(unsigned n)
{
    return rnd64() % n;
}


#define assert_string(buf, len, s)                                            \
    do {                                                                      \
        size_t  len_ = (len);                                                 \
                                                                              \
        assert_int_equal(len_, strlen(s));                                    \
        assert_memory_equal(buf, s, len_);                                    \
    } while (0)


#endif /* _STORE_ZONE_H_INCLUDED_ */
