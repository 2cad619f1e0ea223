
/*
 * The protocols of the store under a weak memory model, for GenMC (C11: RC11,
 * and IMM, which is what the compiled loads and stores of arm64 may do).
 *
 *     tools/check-weak.sh      all of them, and their mutants
 *
 * A scenario is the shortest history in which its orders are needed.  An order
 * has the name of its place in the source; several scenarios may use it.
 * MUTANT=NAME makes that place relaxed, in all scenarios, and the checker has
 * to find an error in one of them at least.  Words that one process alone
 * writes under the lock are read by it as they are.  Where the source writes
 * bytes, the words here are not atomic, and the checker finds a race.
 *
 *     PUBLISH   a record, its entry, next_id
 *     CHUNK     memory that becomes a part of the directory
 *     STALE     a leaf whose memory is used again for another leaf
 *     APPEND    the same, and another process adds an entry to that leaf
 *     AGAIN     the same, and then again for a leaf at its first address
 *     SPLIT     head->leaves and two words of the directory
 *     INTENT    a snapshot's pair of LSN and next_id
 *     KILL      a commit that a killed writer left, completed
 *     RING      published, written, bytes used again
 *     SETS      members_reused around a walk
 *     SITE      a new site; two words that belong together
 *     ANSWER    a deletion and a claim, and the LSN for which an answer waits
 *     KEYS      a ring of entries that are written over
 *     TAIL      one of two copies, by its number
 */


#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>


enum {
    NONE,

    LIST,          /* us_commit_locked(): the number of intents */
    WORD,          /* us_arena_fulfil(): each word */
    DONE,          /* us_arena_fulfil(): no intents */
    ENTER,         /* us_arena_enter() */
    ZERO,          /* us_arena_take_locked(): a chunk that is used again */

    LEAF,          /* us_leaf_write_locked(), us_leaf_copy_words() */
    LEAF_HEADER,   /* the same, and us_leaf_grow_locked(): the header */
    SLOT,          /* us_packed_set(), us_slot_write() */

    AIM,           /* us_index_aim() */
    PLACE,         /* us_directory_word() */
    ADDRESS,       /* us_directory_get() */
    SCAN,          /* us_index_scan() */
    MATCHES,       /* us_leaf_matches(): the fence */
    PACKED,        /* us_packed_get(), us_nth_bit() */
    NEXT_ID,       /* us_store_next_id(), us_store_confirm() */

    PUBLISHED,     /* us_store_published() */
    AT_INTENTS,    /* us_store_ids_at(): intents */
    AT_NEXT,       /* us_store_ids_at(): next_id */

    WRITTEN,       /* us_store_set_written() */
    FITS,          /* us_ring_fits() */

    OBJECT,        /* us_sets.c: the words of an object */
    REUSED,        /* us_set_next() */
    SEEK,          /* us_set_seek(): root and nodes */
    RUN,           /* us_set_run(): the words of an object */

    SITES,         /* us_site_number() */
    SITE_LAST,     /* us_site_read(): the second word */
    SITE_FIRST,    /* us_site_read(): the first word */

    DELETED,       /* us_deleted() */
    CLAIM,         /* us_claims_read(), us_claims_scan() */

    ENTRY,         /* us_keys_add_locked() */
    BUCKET,        /* us_keys_has() */
    KEYS_END,      /* us_keys_read(): keys_end */
    KEYS_WORDS,    /* us_keys_read(): the entry */

    TAIL_BEFORE,   /* us_share_set_tail(): the fence */
    TAIL_SET,      /* us_share_set_tail(): tail_at */
    TAIL_GET,      /* us_share_tail(): tail_at */
    TAIL_AFTER     /* us_share_tail(): the fence */
};

#ifndef MUTANT
#define MUTANT  NONE
#endif

#define O(at, order)       (MUTANT == at ? memory_order_relaxed : order)

#define acquire(at, p)     atomic_load_explicit(p, O(at, memory_order_acquire))
#define release(at, p, v)                                                     \
    atomic_store_explicit(p, v, O(at, memory_order_release))
#define relaxed(p)         atomic_load_explicit(p, memory_order_relaxed)
#define store(p, v)        atomic_store_explicit(p, v, memory_order_relaxed)
#define fence(at, order)   if (MUTANT != at) atomic_thread_fence(order)

/* the lock, which another process has after this one */

#define unlock()           atomic_store_explicit(&lock, 1, memory_order_release)
#define is_unlocked()      atomic_load_explicit(&lock, memory_order_acquire)

typedef atomic_ulong  word_t;


#if defined(PUBLISH)

/* an entry is found before next_id says that its record is whole */

static word_t  record, header, slot, next_id;

static void *
writer(void *data)
{
    store(&record, 7);
    release(SLOT, &slot, 1);
    release(WORD, &header, 1);
    release(WORD, &next_id, 1);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  v;

    if (acquire(SCAN, &header) == 1) {
        v = relaxed(&slot);           /* 16 bytes at once */
        assert(v == 1);
    }

    if (acquire(NEXT_ID, &next_id) == 1) {
        assert(relaxed(&record) == 7);
    }

    return NULL;
}


#elif defined(CHUNK)

/* 99 is what the memory was before: no address */

static word_t  place, directory = 99;

static void *
writer(void *data)
{
    release(ZERO, &directory, 0);
    release(WORD, &place, 1);
    release(WORD, &directory, 5);

    return NULL;
}


static void *
reader(void *data)
{
    if (acquire(PLACE, &place)) {
        assert(acquire(ADDRESS, &directory) != 99);
    }

    return NULL;
}


#elif defined(STALE) || defined(APPEND) || defined(AGAIN) || defined(SPLIT)

/*
 * The key 1 is in the index all the time: in leaf A, number 1, then in leaf B.
 * A is used again for a leaf X with the key 2.  A leaf has its header, which is
 * a serial number, a word of fingerprints, the first of which is the link of
 * the free list, and a word of what is packed.
 */

enum { NO_LEAF, A, B };

static word_t  leaves = 1, directory[3] = { NO_LEAF, A, NO_LEAF };
static word_t  header[3] = { 0, 1, 0 };
static word_t  prints[3] = { 0, 1, 0 }, packed[3] = { 0, 1, 0 };

#ifdef APPEND
static word_t  lock;
#endif


static void
leaf_write(unsigned long leaf, unsigned long key, unsigned long serial)
{
    release(LEAF, &prints[leaf], key);
    release(LEAF, &packed[leaf], key);
    release(LEAF_HEADER, &header[leaf], serial);
}


/* words of a commit */

static void
leaf_free(unsigned long leaf, unsigned long serial)
{
    release(WORD, &header[leaf], serial);
    release(WORD, &prints[leaf], 9);
}


static void *
writer(void *data)
{
    leaf_write(B, 1, 2);

    /* one commit: B is where A was, and A is free */

#ifdef SPLIT
    release(WORD, &directory[2], B);
    release(WORD, &leaves, 2);
#else
    release(WORD, &directory[1], B);
#endif
    leaf_free(A, 3);

    /* A is X; those who still read it see the words of X */

    release(WORD, &header[A], 4);
    leaf_write(A, 2, 5);

#if defined(APPEND)

    unlock();

#elif defined(AGAIN)

    /* X is free; A is the leaf of the key 1 again, instead of B */

    leaf_free(A, 6);
    release(WORD, &header[A], 7);
    leaf_write(A, 1, 8);

    release(WORD, &directory[1], A);
    release(WORD, &header[B], 9);

#endif

    return NULL;
}


#ifdef APPEND

/* a third key in X, in the same words */

static void *
other(void *data)
{
    if (is_unlocked()) {
        release(SLOT, &prints[A], 3);
        release(SLOT, &packed[A], 3);
        release(WORD, &header[A], 6);
    }

    return NULL;
}

#endif


static void *
reader(void *data)
{
    unsigned long  n, d, h, v, leaf;

    n = acquire(AIM, &leaves);
    leaf = n == 1 ? 1 : 2;

    d = acquire(ADDRESS, &directory[leaf]);
    assert(d != NO_LEAF);

    h = acquire(SCAN, &header[d]);
    v = relaxed(&prints[d]);
    fence(MATCHES, memory_order_acquire);

    if (v == 1 && acquire(PACKED, &packed[d]) == 1) {
        return NULL;
    }

    /* not found: us_index_stale() */

    assert(relaxed(&leaves) != n || acquire(ADDRESS, &directory[leaf]) != d
           || relaxed(&header[d]) != h);

    return NULL;
}


#elif defined(INTENT)

/* two operations; the LSN of each is its number, and so is next_id */

static word_t  intents, published, next_id;

static void
commit(unsigned long n)
{
    release(LIST, &intents, 2);
    release(WORD, &published, n);
    release(WORD, &next_id, n);
    release(DONE, &intents, 0);
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

    /* the log's end, which another process read from `published` */

    lsn = acquire(PUBLISHED, &published);

    if (acquire(AT_INTENTS, &intents) || relaxed(&published) != lsn) {
        return NULL;
    }

    next = acquire(AT_NEXT, &next_id);

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

static unsigned long  value;
static word_t         intents, word;

static void *
writer(void *data)
{
    value = 5;
    release(LIST, &intents, 1);
    release(WORD, &word, 5);

    return NULL;
}


static void *
reader(void *data)
{
    if (acquire(ENTER, &intents) == 1) {
        release(WORD, &word, value);
        assert(relaxed(&word) == 5);
    }

    return NULL;
}


#elif defined(RING)

/* a ring of one word; the second operation uses the place of the first again */

static unsigned long  byte;
static word_t         published, written;

static void *
writer(void *data)
{
    byte = 1;
    release(WORD, &published, 1);

    if (acquire(FITS, &written) == 1) {
        byte = 2;
        release(WORD, &published, 2);
    }

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  v;

    if (acquire(PUBLISHED, &published) == 1) {
        v = byte;
        release(WRITTEN, &written, 1);
        assert(v == 1);
    }

    return NULL;
}


#elif defined(SETS)

/*
 * An object moves from place 0 to 1.  The chunk of place 0 is free, is zeroed,
 * and gets another object, by another process.
 */

static word_t  root, object[2] = { 7, 0 }, members_reused, lock;

static void *
writer(void *data)
{
    release(OBJECT, &object[1], 7);
    release(WORD, &root, 1);
    release(WORD, &members_reused, 1);
    release(ZERO, &object[0], 0);
    unlock();

    return NULL;
}


static void *
other(void *data)
{
    if (is_unlocked()) {
        release(OBJECT, &object[0], 8);
    }

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  reused, e, v;

    reused = acquire(REUSED, &members_reused);
    e = acquire(SEEK, &root);
    v = acquire(RUN, &object[e]);

    if (relaxed(&members_reused) == reused) {
        assert(v == 7);
    }

    return NULL;
}


#elif defined(SITE)

/* counts of a site: the first word never is behind the second */

static word_t  w[2], sites;

static void *
writer(void *data)
{
    release(WORD, &w[0], 1);
    release(WORD, &w[1], 1);
    release(WORD, &sites, 1);

    release(WORD, &w[0], 2);
    release(WORD, &w[1], 2);

    release(WORD, &w[0], 3);
    release(WORD, &w[1], 3);

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  w0, w1;

    if (acquire(SITES, &sites) == 0) {
        return NULL;
    }

    assert(relaxed(&w[0]) != 0);

    w1 = acquire(SITE_LAST, &w[1]);
    w0 = acquire(SITE_FIRST, &w[0]);

    if (relaxed(&w[1]) == w1) {
        assert(w0 == w1 || w0 == w1 + 1);
    }

    return NULL;
}


#elif defined(ANSWER)

/* the answer of who finds the bit, or the claim, waits for their LSN */

static word_t  published, bit, claim;

static void *
writer(void *data)
{
    release(WORD, &published, 1);
    release(WORD, &bit, 1);
    release(WORD, &claim, 1);

    return NULL;
}


static void *
reader(void *data)
{
    if (acquire(CLAIM, &claim) == 1) {
        assert(relaxed(&published) == 1);
    }

    if (acquire(DELETED, &bit) == 1) {
        assert(relaxed(&published) == 1);
    }

    return NULL;
}


#elif defined(KEYS)

/*
 * A ring of two entries, one of which is the next to be written over and dead.
 * Entry n is two words with the value n + 1, and so is its bucket.
 */

#define SIZE   2
#define SLACK  1

static word_t  keys_end = 1, bucket = 1;
static word_t  entry[SIZE][2] = { { 1, 1 }, { 0, 0 } };

static void *
writer(void *data)
{
    unsigned long  n;

    for (n = 1; n < 3; n++) {
        release(ENTRY, &entry[n % SIZE][0], n + 1);
        release(ENTRY, &entry[n % SIZE][1], n + 1);

        release(WORD, &keys_end, n + 1);
        release(WORD, &bucket, n + 1);
    }

    return NULL;
}


/* us_keys_read(); 0: there is no such entry */

static int
entry_read(unsigned long at)
{
    unsigned long  v, w;

    if (at >= acquire(KEYS_END, &keys_end)) {
        return 0;
    }

    v = acquire(KEYS_WORDS, &entry[at % SIZE][0]);
    w = acquire(KEYS_WORDS, &entry[at % SIZE][1]);

    if (at >= relaxed(&keys_end) - (SIZE - SLACK)) {
        assert(v == at + 1 && w == at + 1);
    }

    return 1;
}


static void *
reader(void *data)
{
    unsigned long  at;

    /* us_keys_low() goes through the ring, us_keys_has() begins at a bucket */

    (void) entry_read(1);

    at = acquire(BUCKET, &bucket) - 1;
    assert(entry_read(at));

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
        fence(TAIL_BEFORE, memory_order_release);
        store(&tail[next & 1][0], next);
        store(&tail[next & 1][1], next);
        release(TAIL_SET, &tail_at, next);
    }

    return NULL;
}


static void *
reader(void *data)
{
    unsigned long  at, a, b;

    at = acquire(TAIL_GET, &tail_at);
    a = relaxed(&tail[at & 1][0]);
    b = relaxed(&tail[at & 1][1]);
    fence(TAIL_AFTER, memory_order_acquire);

    if (relaxed(&tail_at) == at) {
        assert(a == at && b == at);
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
#if defined(APPEND) || defined(SETS)
    pthread_t  c;

    pthread_create(&c, NULL, other, NULL);
#endif

    pthread_create(&a, NULL, writer, NULL);
    pthread_create(&b, NULL, reader, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);

#if defined(APPEND) || defined(SETS)
    pthread_join(c, NULL);
#endif

    return 0;
}
