
/*
 * A job: long work of a role, in a thread of the process that has the role.
 *
 *     event loop   us_job_start() ........................ us_job_done()
 *     thread                      `--> us_job_run() --'
 *
 * The caller's environment starts the thread, and brings its end to the event
 * loop (us_life_env_t).  A role has one job at a time, so the data of a role
 * need no lock.
 */


#ifndef _US_JOB_H_INCLUDED_
#define _US_JOB_H_INCLUDED_


#include "us_life.h"


/*
 * Takes the role and starts its job: run in a thread, then done in the event
 * loop (may be NULL).  0; -1: another process has the role, or there is no
 * thread.
 */
int us_job_start(us_life_t *l, us_role_t role, void (*run)(us_job_t *job),
    void (*done)(us_job_t *job));

/* of a thread: two messages at most, the caller logs them afterwards */
void us_job_say(us_job_t *job, us_say_t level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Whether the process ends, so that a thread is to return soon.  data: a
 * us_life_t.  Connections call it as their stopping().
 */
int us_job_stopping(void *data);

static inline uint64_t
us_job_now(const us_life_t *l)
{
    return l->env.now(l->env.data);
}


#endif /* _US_JOB_H_INCLUDED_ */
