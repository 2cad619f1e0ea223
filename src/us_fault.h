
/*
 * Numbered points where a test build kills its own process.  The environment
 * names the point, and how often it is passed before the SIGKILL:
 *
 *     US_FAULT=POINT:N
 *
 * Such a build also reads some limits from the environment that are constants
 * otherwise (us_fault_number()).
 *
 * Without US_FAULT_POINTS nothing of it is compiled.  The points of all rooms
 * are listed here, so that each number means one point.
 */


#ifndef _US_FAULT_H_INCLUDED_
#define _US_FAULT_H_INCLUDED_


typedef enum {
    US_FAULT_APPEND = 1,              /* before a group is written */
    US_FAULT_WRITTEN,                 /* written, no reply sent */
    US_FAULT_TAIL,                    /* the next tail half stored */
    US_FAULT_SYNC,                    /* before fdatasync() of the journal */
    US_FAULT_SYNCED,                  /* durable, no reply sent */
    US_FAULT_SEAL,                    /* the footer is written, not synced */
    US_FAULT_SEALED,                  /* synced, no next segment yet */
    US_FAULT_SEGMENT,                 /* next segment written as temporary */
    US_FAULT_RENAMED,                 /* renamed, directory not synced */
    US_FAULT_REPLACE,                 /* manifest written as temporary */
    US_FAULT_SNAPSHOT,                /* in the middle of a snapshot */
    US_FAULT_SNAPSHOT_DONE,           /* renamed, manifest still old */
    US_FAULT_DROP,                    /* manifest new, old files still there */
    US_FAULT_LOAD,                    /* in the middle of loading */
    US_FAULT_LOADED,                  /* loaded, tail not yet settled; or the
                                         store of a replica was built */
    US_FAULT_ROLE,                    /* a role was just taken */
    US_FAULT_DECLARE,                 /* new marks are in the manifest only */
    US_FAULT_DECLARED,                /* and in the store, no claims yet */
    US_FAULTS
} us_fault_t;


#if (US_FAULT_POINTS)

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>


static inline void
us_fault(us_fault_t point)
{
    static int   want, left;
    const char  *env;
    char        *end;

    if (want == 0) {
        env = getenv("US_FAULT");
        want = -1;

        if (env) {
            want = (int) strtol(env, &end, 10);
            left = (*end == ':') ? atoi(end + 1) : 1;
        }
    }

    if (want == (int) point && __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED)
                               == 0)
    {
        (void) kill(getpid(), SIGKILL);
    }
}


static inline unsigned long
us_fault_number(const char *name, unsigned long preset)
{
    const char  *env;

    env = getenv(name);

    return env ? strtoul(env, NULL, 10) : preset;
}

#else

#define us_fault(point)
#define us_fault_number(name, preset)  (preset)

#endif


#endif /* _US_FAULT_H_INCLUDED_ */
