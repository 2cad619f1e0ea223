
/*
 * See us_job.h.
 */


#include "us_job.h"
#include "../us_wipe.h"

#include <stdarg.h>
#include <stdio.h>


void
us_job_start(us_life_t *l, us_role_t role, void (*run)(us_job_t *job),
    void (*done)(us_job_t *job))
{
    us_job_t  *job;

    job = &l->jobs[role];

    if (job->active
        || (l->held >> role & 1 && us_job_now(l) < l->held_until)
        || us_role_take(l->sh, role, l->self, us_job_now(l)) != 0)
    {
        return;
    }

    job->life = l;
    job->role = role;
    job->active = 1;
    job->stays = 0;
    job->run = run;
    job->done = done;
    job->nsaid = 0;

    if (l->env.start(l->env.data, job) != 0) {
        job->active = 0;
        us_role_release(l->sh, role, l->self);
    }
}


void
us_job_run(us_job_t *job)
{
    us_life_t  *l;

    l = job->life;

    job->run(job);

    /*
     * It may be one of a pool, whose next job is for another thread.  Those of
     * the writer and the syncer are many, and free nothing; but for a log.
     */

    if (l->conf.replicate
        || (job->role != US_ROLE_WRITER && job->role != US_ROLE_SYNCER))
    {
        us_wipe_thread();
    }

    if (job->stays) {
        us_role_rest(l->sh, job->role, l->self);

    } else {
        us_role_release(l->sh, job->role, l->self);
    }
}


void
us_job_done(us_job_t *job)
{
    unsigned    i;
    us_life_t  *l;

    l = job->life;
    job->active = 0;

    for (i = 0; i < job->nsaid; i++) {
        l->env.say(l->env.data, job->said[i].level, job->said[i].e.text);
    }

    if (job->done) {
        job->done(job);
    }
}


void
us_job_say(us_job_t *job, us_say_t level, const char *fmt, ...)
{
    va_list         args;
    us_job_said_t  *said;

    /* if there are too many, the newest message replaces the one before */

    if (job->nsaid < US_JOB_SAYS) {
        job->nsaid++;
    }

    said = &job->said[job->nsaid - 1];

    said->level = level;

    va_start(args, fmt);
    (void) vsnprintf(said->e.text, sizeof(said->e.text), fmt, args);
    va_end(args);
}


int
us_job_stopping(void *data)
{
    us_life_t *l = data;

    return l->ending || l->env.stopping(l->env.data);
}
