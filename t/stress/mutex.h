
/*
 * The lock of a store that the threads of one process share.
 */


#ifndef _MUTEX_H_INCLUDED_
#define _MUTEX_H_INCLUDED_


#include "store/us_store.h"

#include <pthread.h>


static pthread_mutex_t  mutex = PTHREAD_MUTEX_INITIALIZER;


static void
mutex_enter(void *data)
{
    pthread_mutex_lock(&mutex);
}


static void
mutex_leave(void *data)
{
    pthread_mutex_unlock(&mutex);
}


static const us_store_lock_t  mutex_lock = { mutex_enter, mutex_leave, NULL };


#endif /* _MUTEX_H_INCLUDED_ */
