
/*
 * The protocols of the store under a weak memory model, for GenMC (C11: RC11,
 * and IMM, which is what the compiled loads and stores of arm64 may do).
 *
 *     tools/check-weak.sh      all of them, and their mutants
 *
 * A scenario is the shortest history in which each order is needed.  Each order
 * is a place with a number, O(n, order): MUTANT=n makes it relaxed, and the
 * checker has to find the fault, but where another order of the same scenario
 * does the work (tools/check-weak.sh lists those).  The names are those of the
 * source.  Words
 * that one process alone writes under the lock are read by it as they are.
 *
 *     PUBLISH   us_log.c, us_arena.c: a record, its entry, next_id
 *     STALE     us_index.c: a leaf whose memory is used again for another
 *     SPLIT     us_index.c: head->leaves and two words of the directory
 *     INTENT    us_store_ids_at(): a snapshot's pair of LSN and next_id
 *     KILL      us_arena.c: a commit that a killed writer left, completed
 *     RING      us_ring.c, us_write.c: published, written, bytes used again
 *     SETS      us_sets.c: members_reused around a walk
 *     SITE      us_sites.c: two words that belong together
 *     TAIL      us_share.c: one of two copies, by its number
 *     HOT       us_look.c: a cached id and the bit that says it was deleted
 */


#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef MUTANT
#define MUTANT  0
#endif

#define O(n, order)      (MUTANT == n ? memory_order_relaxed : order)

#define acquire(n, p)    atomic_load_explicit(p, O(n, memory_order_acquire))
#define release(n, p, v) atomic_store_explicit(p, v, O(n, memory_order_release))
#define relaxed(p)       atomic_load_explicit(p, memory_order_relaxed)
#define store(p, v)      atomic_store_explicit(p, v, memory_order_relaxed)
#define fence(n, order)  if (MUTANT != n) atomic_thread_fence(order)

typedef atomic_ulong  word_t;


#if defined(PUBLISH)

/* an entry is found before next_id says that its record is whole */

static word_t  record, header, slot, next_id;

static void *
writer(void *data)
{
    store(&record, 7);
    release(5, &slot, 1);
    release(1, &header, 1);
    release(2, &next_id, 1);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  v;

    if (acquire(3, &header) == 1) {
        v = relaxed(&slot);           /* 16 bytes at once */
        assert(v == 1);
    }

    if (acquire(4, &next_id) == 1) {
        assert(relaxed(&record) == 7);
    }

    return NULL;
}


#elif defined(STALE)

/*
 * The key 1 is in the index all the time: in leaf A, then in B.  A is used
 * again for the key 2.  The header is a serial number.
 */

static word_t  leaves = 1, directory, header[2] = { 1, 0 }, slot[2] = { 1, 0 };
static word_t  word1[2];              /* the second of a leaf: the free list */

static void *
writer(void *data)
{
    /* B, a copy of A */

    release(11, &slot[1], 1);
    release(1, &header[1], 2);

    /* one commit: B replaces A, and A is free */

    release(2, &directory, 1);
    release(3, &header[0], 3);
    release(12, &word1[0], 9);

    /* A is another leaf; readers who still are in it see its new words */

    release(4, &slot[0], 2);
    release(5, &header[0], 4);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  n, d, h, v;

    n = acquire(13, &leaves);
    d = acquire(6, &directory);
    h = acquire(7, &header[d]);

    v = relaxed(&slot[d]);
    fence(8, memory_order_acquire);

    if (v != 1) {

        /* us_index_stale() */

        assert(acquire(14, &leaves) != n || acquire(9, &directory) != d
               || acquire(10, &header[d]) != h);
    }

    return NULL;
}


#elif defined(SPLIT)

/* leaf 1 is split: 2 and 3, then head->leaves; then its memory is used again */

static word_t  leaves = 1, directory[4] = { 0, 1, 0, 0 };
static word_t  slot[4] = { 0, 1, 0, 0 }, header[4] = { 0, 1, 0, 0 };

static void *
writer(void *data)
{
    release(8, &slot[2], 1);
    release(9, &header[2], 2);
    release(1, &directory[2], 2);
    release(2, &leaves, 2);
    release(3, &header[1], 3);
    release(4, &slot[1], 2);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  n, d, h, v, leaf;

    n = acquire(5, &leaves);
    leaf = n == 1 ? 1 : 2;
    d = acquire(6, &directory[leaf]);
    assert(d != 0);

    h = acquire(10, &header[d]);
    v = relaxed(&slot[d]);
    fence(7, memory_order_acquire);

    if (v != 1) {
        assert(acquire(11, &leaves) != n
               || acquire(12, &directory[leaf]) != d
               || acquire(13, &header[d]) != h);
    }

    return NULL;
}


#elif defined(INTENT)

/* two operations; the LSN of each is its number, and so is next_id */

static word_t  intents, published, next_id;

static void
commit(unsigned long n)
{
    release(6, &intents, 2);
    release(1, &published, n);
    release(2, &next_id, n);
    release(3, &intents, 0);
}


static void *
writer(void *data)
{
    commit(1);
    commit(2);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  lsn, next;

    /* the log's end, which another process took from `published` */

    lsn = acquire(4, &published);

    if (acquire(7, &intents) || acquire(8, &published) != lsn) {
        return NULL;
    }

    next = acquire(5, &next_id);

    if (relaxed(&published) == lsn) {
        assert(next == lsn);
    }

    return NULL;
}


#elif defined(KILL)

/*
 * The writer is killed: it ends after any of its stores.  The next one has the
 * lock by the kernel, not from the first: it reads the number of intents.
 */

static word_t  intents, value, word;

static void *
writer(void *data)
{
    store(&value, 5);
    release(1, &intents, 1);
    release(3, &word, 5);

    return NULL;
}


static void *
reader(void *data)
{
    if (acquire(2, &intents) == 1) {
        store(&word, relaxed(&value));
        assert(relaxed(&word) == 5);
    }

    return NULL;
}


#elif defined(RING)

/* a ring of one word; the second operation uses the place of the first again */

static word_t  byte, published, written;

static void *
writer(void *data)
{
    store(&byte, 1);
    release(1, &published, 1);

    if (acquire(2, &written) == 1) {
        store(&byte, 2);
        store(&published, 2);
    }

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  v;

    if (acquire(3, &published) == 1) {
        v = relaxed(&byte);
        release(4, &written, 1);
        assert(v == 1);
    }

    return NULL;
}


#elif defined(SETS)

/* an object moves from place 0 to 1, and its memory becomes another's */

static word_t  root, object[2] = { 7, 0 }, members_reused;

static void *
writer(void *data)
{
    release(6, &object[1], 7);
    release(1, &root, 1);
    release(2, &members_reused, 1);
    release(3, &object[0], 8);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  reused, e, v;

    reused = acquire(7, &members_reused);
    e = acquire(4, &root);
    v = acquire(5, &object[e]);

    if (acquire(8, &members_reused) == reused) {
        assert(v == 7);
    }

    return NULL;
}


#elif defined(SITE)

/* counts of a site: the first word never is behind the second */

static word_t  w[2];

static void *
writer(void *data)
{
    release(5, &w[0], 1);
    release(1, &w[1], 1);
    release(2, &w[0], 2);
    release(6, &w[1], 2);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  w0, w1;

    w1 = acquire(3, &w[1]);
    w0 = acquire(4, &w[0]);

    if (relaxed(&w[1]) == w1) {
        assert(w0 == w1 || w0 == w1 + 1);
    }

    return NULL;
}


#elif defined(TAIL)

/* three tails of two words each */

static word_t  tail[2][2], tail_at;

static void *
writer(void *data)
{
    unsigned long  next;

    for (next = 1; next < 4; next++) {
        fence(1, memory_order_release);
        store(&tail[next & 1][0], next);
        store(&tail[next & 1][1], next);
        release(2, &tail_at, next);
    }

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  at, a, b;

    at = acquire(3, &tail_at);
    a = relaxed(&tail[at & 1][0]);
    b = relaxed(&tail[at & 1][1]);
    fence(4, memory_order_acquire);

    if (relaxed(&tail_at) == at) {
        assert(a == at && b == at);
    }

    return NULL;
}


#elif defined(HOT)

/*
 * The table is private to its owner.  An id comes into it from a look-up, and
 * is taken from it while its bit says that it was not deleted.  A delete that
 * another process was told of is not answered from the table.
 */

static word_t  bit, told;

static void *
writer(void *data)
{
    release(3, &bit, 1);
    release(1, &told, 1);             /* by a message, after the commit */

    return NULL;
}


static void *
reader(void *data)
{
    if (acquire(2, &told) == 1) {
        assert(relaxed(&bit) == 1);
    }

    return NULL;
}

#else
#error "which scenario?"
#endif


int
main(void)
{
    pthread_t  a, b;

    pthread_create(&a, NULL, writer, NULL);
    pthread_create(&b, NULL, reader, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);

    return 0;
}
