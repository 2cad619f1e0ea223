
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
 * is no fence, because ThreadSanitizer does not see fences.  There is no
 * read-modify-write, because one writer at a time holds a lock.  us_count() is
 * the exception: nothing depends on its counters.
 */


#ifndef _US_ATOMIC_H_INCLUDED_
#define _US_ATOMIC_H_INCLUDED_


#include "us_base.h"


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


/* relaxed: several processes may count, and the sum alone matters */

static inline void
us_count(uint64_t *p, uint64_t n)
{
    (void) __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
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
