
/*
 * See us_watch.h.
 */


#include "us_watch.h"


int
us_watch_doubt(const us_watch_t *watch)
{
    unsigned  i;

    if (watch == NULL) {
        return 0;
    }

    /*
     * The descriptor was opened before the words are read.  A sync that begins
     * after that cannot take an error away from it.
     */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    for (i = 0; i < US_WATCH_MAX; i++) {
        if (__atomic_load_n(&watch->busy[i], __ATOMIC_SEQ_CST)) {
            return 1;
        }
    }

    return 0;
}


void
us_watch_begin(us_watch_t *watch, unsigned who)
{
    if (watch) {
        __atomic_store_n(&watch->busy[who], 1, __ATOMIC_SEQ_CST);
    }
}


void
us_watch_end(us_watch_t *watch, unsigned who, int failed)
{
    if (watch == NULL) {
        return;
    }

    if (failed) {
        __atomic_store_n(&watch->failed, 1, __ATOMIC_SEQ_CST);
    }

    __atomic_store_n(&watch->busy[who], 0, __ATOMIC_SEQ_CST);
}


int
us_watch_failed(const us_watch_t *watch)
{
    return watch && __atomic_load_n(&watch->failed, __ATOMIC_SEQ_CST);
}
