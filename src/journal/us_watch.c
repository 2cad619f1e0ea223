
/*
 * See us_watch.h.
 */


#include "us_watch.h"


static void
us_watch_raise(uint64_t *word, uint64_t value)
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


void
us_watch_append(us_watch_t *watch, uint64_t lsn)
{
    if (watch) {
        us_watch_raise(&watch->appended, lsn);
    }
}


uint64_t
us_watch_opened(const us_watch_t *watch)
{
    if (watch == NULL) {
        return 0;
    }

    /* the file was opened before the word is read */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    return __atomic_load_n(&watch->appended, __ATOMIC_SEQ_CST);
}


int
us_watch_doubt(const us_watch_t *watch, uint64_t lsn)
{
    return watch && __atomic_load_n(&watch->durable, __ATOMIC_SEQ_CST) < lsn;
}


void
us_watch_durable(us_watch_t *watch, uint64_t lsn)
{
    if (watch) {
        us_watch_raise(&watch->durable, lsn);
    }
}


void
us_watch_fail(us_watch_t *watch)
{
    if (watch) {
        __atomic_store_n(&watch->failed, 1, __ATOMIC_SEQ_CST);
    }
}


int
us_watch_failed(const us_watch_t *watch)
{
    return watch && __atomic_load_n(&watch->failed, __ATOMIC_SEQ_CST);
}
