
/*
 * Words that several processes share.  Three accesses are enough for the
 * whole store; each use says in its paragraph which reordering it prevents.
 *
 *     us_acquire()  what was written before the value was released is seen by
 *                   every later read
 *     us_release()  everything written before is seen after us_acquire()
 *     us_relaxed()  the word alone matters, or the lock is held
 *
 * On x86-64 all three are plain moves: they restrict the compiler only.  There
 * is no read-modify-write, because one writer at a time holds a lock.
 * us_count() is the exception: nothing depends on its counters.  So is
 * us_raise(), for words of the life of a store.
 *
 * What cannot be an acquire, a load of 16 bytes, is followed by us_fence().
 * ThreadSanitizer does not see fences: it does not see those loads either.
 */


#ifndef _US_ATOMIC_H_INCLUDED_
#define _US_ATOMIC_H_INCLUDED_


#include "us_base.h"


/*
 * Record bytes are immutable once published, but a reader loads whole words
 * and so touches bytes after its record, which a writer may be filling at the
 * moment; it never uses their bits.  The same goes for the fingerprints of a
 * leaf, which a reader loads 16 at a time.  There are no other unsynchronized
 * accesses in the store, and ThreadSanitizer learns of these here.
 */

#if defined(__SANITIZE_THREAD__)
#define US_SANITIZE_THREAD  1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define US_SANITIZE_THREAD  1
#endif
#endif

#ifdef US_SANITIZE_THREAD
#define us_unsynchronized  static __attribute__((noinline, unused,            \
                                                 no_sanitize("thread")))
#else
#define us_unsynchronized  static inline
#endif


static inline uint64_t
us_acquire(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}


static inline void
us_release(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}


static inline uint64_t
us_relaxed(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}


/*
 * Loads before it, of whatever kind, are made before loads after it.  The loads
 * of x86-64 are; there it restricts the compiler only.
 */

static inline void
us_fence(void)
{
#if defined(__x86_64__) || defined(US_SANITIZE_THREAD)
    __atomic_signal_fence(__ATOMIC_ACQUIRE);
#else
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}


/* relaxed: several processes may count, and the sum alone matters */

static inline void
us_count(uint64_t *p, uint64_t n)
{
    (void) __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}


/* a word that only grows, by several processes; sequentially consistent */

static inline void
us_raise(uint64_t *word, uint64_t value)
{
    uint64_t  old;

    old = __atomic_load_n(word, __ATOMIC_SEQ_CST);

    while (old < value
           && !__atomic_compare_exchange_n(word, &old, value, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST))
    {
        /* void */
    }
}


/*
 * Whether the thread that waits for a long job wants it to end; cancel may be
 * NULL.  Relaxed: the word alone matters.
 */

static inline int
us_cancelled(const volatile int *cancel)
{
    return cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED);
}


#endif /* _US_ATOMIC_H_INCLUDED_ */
