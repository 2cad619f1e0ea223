
/*
 * See us_follow.h.
 */


#include "us_follow.h"
#include "us_data.h"
#include "us_job.h"
#include "../replog/us_standby.h"
#include "../us_clock.h"
#include "../us_fault.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


int
us_follow_due(us_life_t *l, us_follow_t **f, unsigned roles)
{
    int       own, other;
    unsigned  i;
    uint64_t  holder;

    for (i = 0, own = 0, other = 0; i < US_ROLES; i++) {

        if (!(roles >> i & 1)) {
            continue;
        }

        if (l->jobs[i].active) {
            return 0;
        }

        holder = us_acquire(&l->sh->roles[i].holder);
        own |= holder == l->self;
        other |= holder && holder != l->self;
    }

    if (!us_job_stopping(l)) {

        /* who was killed, or is stopped, may still have the one before ours */

        if (other && !own) {
            us_follow_stop(f);
        }

        return 1;
    }

    us_follow_stop(f);

    for (i = 0; i < US_ROLES; i++) {
        if (roles >> i & 1) {
            us_role_release(l->sh, i, l->self);
        }
    }

    return 0;
}


void
us_follow_close(us_follow_t *f)
{
    f->source->close(f);
    f->bulk = 0;

    if (f->store) {
        us_store_close(f->store);
        f->store = NULL;
    }
}


void
us_follow_stop(us_follow_t **f)
{
    if (*f) {
        us_follow_close(*f);

        if ((*f)->log) {
            (*f)->log->ops->close((*f)->log);
        }

        free(*f);
        *f = NULL;
    }
}


void
us_follow_passed(us_follow_t *f)
{
    /* a store that is built is going to be freed */

    if (f->store && !f->bulk) {
        us_release(&f->life->follow_past, us_store_erased_lsn(f->store));
    }
}


static int
us_life_follows(const us_life_t *l)
{
    return l->conf.follow || l->conf.replicate;
}


int
us_life_past(const us_life_t *l, uint64_t lsn)
{
    return (l->follow == NULL || us_acquire(&l->follow_past) >= lsn)
           && (l->copier == NULL || us_acquire(&l->copier_past) >= lsn);
}


unsigned
us_life_busy(const us_life_t *l)
{
    unsigned  i, roles;

    for (i = 0, roles = 0; i < US_ROLES; i++) {
        if (l->jobs[i].active) {
            roles |= 1 << i;
        }
    }

    return us_life_follows(l) ? roles & (US_ROLES_SHORT | US_ROLES_LONG) : 0;
}


void
us_life_hold(us_life_t *l, unsigned busy)
{
    if (us_life_follows(l)) {

        /* for a long one, a short one does not wait */

        l->held = busy & US_ROLES_LONG ? US_ROLES_LONG
                                       : US_ROLES_LONG | US_ROLES_SHORT;
        l->held_until = us_job_now(l) + US_LIFE_HOLD;
    }
}


static void
us_follow_forget(us_follow_t *f)
{
    if (f == NULL) {
        return;
    }

    if (f->store) {
        us_store_wipe(f->store);
    }

    if (f->log) {
        f->log->ops->drop(f->log);
    }

    if (f->source->forget) {
        f->source->forget(f);
    }
}


void
us_life_forget(us_life_t *l)
{
    l->held = 0;

    us_follow_forget(l->follow);
    us_follow_forget(l->copier);
}


us_replog_t *
us_follow_log(us_life_t *l)
{
    us_replog_env_t             env = { us_job_stopping, l };
    const us_replicate_conf_t  *conf;

    conf = l->conf.replicate;

    return conf->ops->open(conf->conninfo, conf->shard, conf->single, &env);
}


us_follow_t *
us_follow_open(us_job_t *job, us_follow_t **slot, size_t size,
    const us_source_t *source)
{
    us_life_t    *l;
    us_follow_t  *f;

    f = *slot;
    l = job->life;

    if (f == NULL) {
        f = calloc(1, size);

        if (f == NULL) {
            return NULL;
        }

        f->source = source;
        f->life = l;

        if (l->conf.replicate) {
            f->log = us_follow_log(l);

            if (f->log == NULL) {
                free(f);
                return NULL;
            }

            (void) snprintf(f->name, sizeof(f->name), "the log of shard %u "
                            "(%s)", l->conf.replicate->shard,
                            f->log->ops->name);

        } else {
            (void) snprintf(f->name, sizeof(f->name), "the primary \"%s\"",
                            l->conf.follow->name);
        }

        if (source->open(f) == -1) {
            us_follow_stop(&f);
            return NULL;
        }

        *slot = f;
    }

    f->job = job;

    return f;
}


uint64_t
us_follow_now(void *data)
{
    return us_clock_boottime();
}


int
us_follow_manifest(const us_replog_head_t *head, us_manifest_t *m,
    us_disk_error_t *e)
{
    return us_manifest_scan(m, head->settings, strlen(head->settings), e)
           == US_MANIFEST_OK ? 0 : -1;
}


int
us_follow_goes_on(void *data, const us_replog_head_t *head,
    const us_replog_row_t *row)
{
    char             terms[US_STANDBY_TERMS];
    us_manifest_t    m;
    us_disk_error_t  e;

    return us_follow_manifest(head, &m, &e) == 0
           && us_manifest_setting(&m, "terms", terms, sizeof(terms)) == 0
           ? us_standby_follows(terms, row) : -1;
}


int
us_follow_prepare(us_follow_t *f)
{
    us_share_t  *sh;

    sh = f->life->sh;

    if (f->anew || us_acquire(&sh->emptying)
        || (us_acquire(&sh->load_applying) && !f->bulk))
    {
        us_follow_close(f);
        us_release(&sh->load_placed, 0);

        f->lsn = 0;
        f->ids = 0;

        if (us_load_empty(f->life) == -1 || f->source->emptied(f) == -1) {
            return -1;
        }

        f->anew = 0;
    }

    if (us_share_state(sh) == US_LIFE_COLD) {
        us_share_set_state(sh, US_LIFE_LOADING, NULL);
    }

    if (f->store == NULL) {
        f->store = us_store_open(f->life->mem, &f->life->lock);
    }

    return f->store ? 0 : -1;
}


void
us_follow_begin(us_follow_t *f, const uint8_t uuid[16], uint64_t epoch)
{
    us_release(&f->life->sh->load_applying, 1);
    us_release(&f->life->sh->load_began, us_job_now(f->life));
    us_store_set_identity(f->store, uuid, epoch);
}


void
us_follow_wait(us_follow_t *f)
{
    unsigned  n;
    uint64_t  wait, most;

    n = f->anew ? f->loads++ : f->fails++;
    most = f->anew ? US_FOLLOW_LOAD : f->source->most;
    wait = (uint64_t) US_FOLLOW_FIRST << (n < 10 ? n : 10);

    f->life->follow_next = us_job_now(f->life) + (wait < most ? wait : most);
}


int
us_follow_fail(us_follow_t *f, us_say_t level, const char *fmt, ...)
{
    char     text[US_SHARE_REASON], what[400];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    f->source->failed(f);
    us_follow_wait(f);

    (void) snprintf(text, sizeof(text), "%.*s: %s",
                    (int) (sizeof(text) - sizeof(what) - 3), f->name, what);

    if (us_share_reason(f->life->sh, text)) {
        us_job_say(f->job, level, "%s; it is tried again", text);
    }

    return -1;
}


int
us_follow_again(us_follow_t *f, const char *fmt, ...)
{
    char     text[400];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    f->anew = 1;

    return us_follow_fail(f, f->source->level, "%s", text);
}


int
us_follow_apply(us_follow_t *f, const uint8_t *p, size_t len)
{
    int          rc;
    uint64_t     ids;
    const char  *why;

    if (us_block_ids(p, len, &us_data_ops, &ids) == -1) {
        return us_follow_again(f, "what it has is not made of whole "
                               "operations");
    }

    us_release(&f->life->sh->load_applying, 1);

    us_fault(US_FAULT_LOAD);

    rc = us_data_apply(f->store, p, len);

    if (rc == 0 || (rc == US_RECOVERY_NO_ROOM && f->bulk)) {
        f->ids += ids;
        return 0;
    }

    why = rc == US_RECOVERY_NO_ROOM
          ? "the zone has no room for what came: it is loaded anew, which "
            "takes less"
          : rc == US_RECOVERY_NO_MEMORY ? "no memory for what came"
                                        : "operations do not fit the store";

    return us_follow_again(f, "%s, at LSN %" PRIu64, why, f->lsn);
}


/*
 * The last line ends what us_follow_apply() began: a process that is killed
 * before it leaves a store that is emptied.  So the state is set before: no
 * later process sets it.
 */

int
us_follow_publish(us_follow_t *f)
{
    us_share_t  *sh;

    sh = f->life->sh;

    us_release(&sh->load_applying, 1);

    if (f->source->place(f) == -1) {
        return -1;
    }

    us_release(&sh->load_placed, 1);
    us_release(&sh->load_lsn, f->lsn);
    us_release(&sh->load_ids, f->ids);
    us_release(&sh->written_ids, f->ids);
    us_release(&sh->durable_ids, f->ids);
    us_share_set_state(sh, f->source->state, NULL);

    us_release(&sh->load_applying, 0);

    return 0;
}


/* it is tried again, as the source may have less by then */

int
us_follow_small(us_follow_t *f)
{
    char        text[160];
    us_life_t  *l;

    l = f->life;

    us_load_small(l, f->store, text, sizeof(text));
    us_share_set_state(l->sh, US_LIFE_TOO_SMALL, text);
    us_job_say(f->job, US_SAY_EMERG, "%s", text);

    /* a directory that was being read stays: the next SIZE may suffice */

    f->anew = f->bulk;
    us_follow_close(f);
    l->follow_next = us_job_now(l) + US_FOLLOW_LOAD;

    return -1;
}


int
us_follow_settle(us_follow_t *f, const char *what)
{
    int              rc;
    us_life_t       *l;
    us_share_t      *sh;
    us_store_conf_t  conf;

    l = f->life;
    sh = l->sh;
    rc = us_data_apply(f->store, NULL, 0);

    if (rc == US_RECOVERY_NO_ROOM) {
        return us_follow_small(f);
    }

    if (rc != 0 || us_store_next_id(f->store) != f->ids
        || us_store_set_lsn(f->store, f->lsn) == -1)
    {
        return us_follow_again(f, "it has no whole store: %" PRIu64 " ids of %"
                               PRIu64, us_store_next_id(f->store), f->ids);
    }

    f->bulk = 0;
    f->settled = us_job_now(l);
    us_release(&sh->load_ms, us_job_now(l) - us_acquire(&sh->load_began));

    if (us_follow_publish(f) == -1) {
        return -1;
    }

    us_fault(US_FAULT_LOADED);

    us_store_conf(f->store, &conf);
    us_job_say(f->job, US_SAY_NOTICE, "%s: %" PRIu64 " ids, epoch %" PRIu64 ", "
               "LSN %" PRIu64 ", in %" PRIu64 " ms", what, f->ids, conf.epoch,
               f->lsn, us_acquire(&sh->load_ms));

    /* the handle has the memory of building */

    us_store_close(f->store);
    f->store = us_store_open(l->mem, &l->lock);

    return f->store ? 0 : us_follow_fail(f, US_SAY_ERROR, "no memory");
}


void
us_follow_level(us_follow_t *f)
{
    f->fails = 0;

    if (us_job_now(f->life) - f->settled >= US_FOLLOW_STEADY) {
        f->loads = 0;
    }
}
