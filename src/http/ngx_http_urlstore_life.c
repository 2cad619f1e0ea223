/*
 * A zone in a worker, and at the end of the master: its life on the event loop
 * (life/us_life.h), its store's lock, hot table and training, and what follows
 * erasures: a sweep, then a wipe.
 *
 * Jobs run in the zone's thread pool, the tick is a timer, messages go to the
 * cycle's log.  At the end of the master, when no worker is left, a thread
 * closes the directory.
 *
 * A worker whose master is gone ends by itself: there is no master that would
 * restart it or release the zone's mutex, and a new one waits for the
 * directory.
 *
 * One worker at a time sweeps (life/us_sweep.c), a turn of the event loop after
 * the other.  When the records of erased URLs are gone, the tick of each worker
 * wipes what its requests have left in its memory (us_wipe.h).
 *
 * The hot table (store/us_hot.h) is one for the stores of all zones.  It is
 * private to the worker, so a look-up in it takes no lock and waits for no
 * cache line of another worker.  Each worker has the links that it was asked
 * for.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../journal/us_dir.h"
#include "../us_clock.h"
#include "../us_wipe.h"

#include <pthread.h>


/* a turn of the event loop sweeps for so long, us */
#define NGX_HTTP_URLSTORE_SWEEP_TURN  1000

#define NGX_HTTP_URLSTORE_TICK   1000     /* ms, of a zone without a disk */
#define NGX_HTTP_URLSTORE_CLOSE  3000     /* ms, at the master's end */

/* ms after the audit could not be written */
#define NGX_HTTP_URLSTORE_AUDIT_AGAIN  (60 * 1000)

/* a time of day that has moved by so many seconds has not been slewed */
#define NGX_HTTP_URLSTORE_JUMP    86400


/* the environment of us_life_t; data: the zone */

static uint64_t
ngx_http_urlstore_life_now(void *data)
{
    return ngx_http_urlstore_now() / 1000;
}


static void
ngx_http_urlstore_life_run(void *data, ngx_log_t *log)
{
    us_job_run(data);
}


static void
ngx_http_urlstore_life_done(ngx_event_t *ev)
{
    us_job_done(ev->data);
}


static int
ngx_http_urlstore_life_start(void *data, us_job_t *job)
{
    ngx_http_urlstore_zone_t *zone = data;

    ngx_thread_task_t  *task;

    task = &zone->tasks[job->role];

    task->ctx = job;
    task->handler = ngx_http_urlstore_life_run;
    task->event.handler = ngx_http_urlstore_life_done;
    task->event.data = job;
    task->event.complete = 0;

    return ngx_thread_task_post(zone->pool, task) == NGX_OK ? 0 : -1;
}


static void
ngx_http_urlstore_life_pause(void *data, unsigned ms)
{
    ngx_msleep(ms);
}


static int
ngx_http_urlstore_life_stopping(void *data)
{
    return ngx_terminate || ngx_quit || ngx_exiting;
}


/* a training has a handle of its own on the store */

static int
ngx_http_urlstore_life_quiet(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    return zone->train == NULL;
}


static void
ngx_http_urlstore_life_say(void *data, us_say_t level, const char *text)
{
    ngx_http_urlstore_zone_t *zone = data;

    static ngx_uint_t  levels[] = {
        [US_SAY_NOTICE] = NGX_LOG_NOTICE,
        [US_SAY_WARN] = NGX_LOG_WARN,
        [US_SAY_ERROR] = NGX_LOG_ERR,
        [US_SAY_ALERT] = NGX_LOG_ALERT,
        [US_SAY_EMERG] = NGX_LOG_EMERG
    };

    ngx_log_error(levels[level], ngx_cycle->log, 0,
                  "urlstore_zone \"%V\"%s%V%s: %s", &zone->name,
                  zone->path.len ? ", \"" : "", &zone->path,
                  zone->path.len ? "\"" : "", text);
}


/* what both a worker and the master need */

static void
ngx_http_urlstore_life_init(ngx_http_urlstore_zone_t *zone)
{
    us_life_t  *l;

    l = &zone->life;

    l->env.now = ngx_http_urlstore_life_now;
    l->env.start = ngx_http_urlstore_life_start;
    l->env.pause = ngx_http_urlstore_life_pause;
    l->env.stopping = ngx_http_urlstore_life_stopping;
    l->env.quiet = ngx_http_urlstore_life_quiet;
    l->env.moved = ngx_http_urlstore_park_wake;
    l->env.say = ngx_http_urlstore_life_say;
    l->env.data = zone;

    l->mem = zone->sh->mem;
    l->size = zone->sh->size;
    l->dirfd = zone->dir ? zone->dir->dirfd : -1;
    l->lockfd = zone->dir ? zone->dir->lock : -1;
}


/*
 * Threads of the worker take the lock as well: that of a training, and jobs of
 * us_job.h.  ngx_shmtx_t is an atomic word with the pid of its holder, and a
 * semaphore on which others wait, so two threads of one process exclude each
 * other as two processes do.  Nothing in it belongs to a thread.  When a worker
 * is killed, the master releases the lock by its pid, whichever thread had it.
 * The main thread holds the lock only within a call of the store, and never
 * joins a thread meanwhile.
 */

static void
ngx_http_urlstore_lock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    if (ngx_shmtx_trylock(&zone->shpool->mutex)) {
        return;
    }

    us_tally_add(zone->tally, US_N_LOCK_WAITS, 1);

    ngx_shmtx_lock(&zone->shpool->mutex);
}


static void
ngx_http_urlstore_unlock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


static us_hot_t  *ngx_http_urlstore_hot;


void
ngx_http_urlstore_hot_init(size_t size, ngx_log_t *log)
{
    if (size == 0) {
        return;
    }

    ngx_http_urlstore_hot = us_hot_create(size);

    if (ngx_http_urlstore_hot == NULL) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "no memory for \"urlstore_hot\" %uz, this worker goes "
                      "on without", size);
    }
}


static void
ngx_http_urlstore_hot_attach(ngx_http_urlstore_zone_t *zone)
{
    if (ngx_http_urlstore_hot) {
        us_store_hot(zone->store, ngx_http_urlstore_hot,
                     &zone->tally->n[US_N_HOT]);
    }
}


/* the stores have been closed */

void
ngx_http_urlstore_hot_exit(void)
{
    if (ngx_http_urlstore_hot) {
        us_hot_destroy(ngx_http_urlstore_hot);
        ngx_http_urlstore_hot = NULL;
    }
}


/*
 * Ends a training that is done, and starts one that is due; cheap.  Nothing
 * wakes the event loop at the end of a training: each batch that adds calls
 * this.
 */

void
ngx_http_urlstore_train(ngx_http_urlstore_zone_t *zone)
{
    int  err;

    if (zone->train) {

        if (!us_trainer_done(zone->train)) {
            return;
        }

        if (us_trainer_end(zone->train)) {
            us_tally_add(zone->tally, US_N_TRAININGS, 1);

            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "urlstore_zone \"%V\": learnt a new model",
                          &zone->name);
        }

        zone->train = NULL;
    }

    if (!us_store_train_due(zone->store)) {
        return;
    }

    err = us_trainer_start(&zone->train, zone->sh->mem, &zone->life.lock);

    if (err > 0) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                      "pthread_create() failed");
    }
}


void
ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone)
{
    /* a filter and a router have no store */

    if (zone->store && us_life_refresh(&zone->life)) {
        zone->store = zone->life.store;
        us_store_conf(zone->store, &zone->conf);
        ngx_http_urlstore_hot_attach(zone);

        /* a store that was loaded anew counts its maps from one again */

        ngx_http_urlstore_shard_exit(zone);
    }
}


/*
 * Gives the store the time of the calls that follow.  The clock of claims never
 * goes back, so a time that is far ahead is logged: once by all workers when
 * the machine's clock jumps, and once when the store's clock is ahead of it,
 * after it was corrected, or as the clock of another node is.
 */

void
ngx_http_urlstore_clock(ngx_http_urlstore_zone_t *zone)
{
    int64_t                  now, ahead, offset, was;
    uint64_t                 unit;
    ngx_atomic_uint_t        far;
    ngx_http_urlstore_sh_t  *sh;

    if (zone->store == NULL) {
        return;
    }

    now = ngx_time();
    unit = us_store_time(zone->store, now);

    if (unit == 0 || now == zone->clock) {
        return;
    }

    zone->clock = now;
    sh = zone->sh;

    was = (int64_t) sh->clock_offset;
    offset = now - (int64_t) (us_clock_boottime() / 1000);

    if (was == 0) {
        (void) ngx_atomic_cmp_set(&sh->clock_offset, 0, offset);

    } else if (llabs(offset - was) > NGX_HTTP_URLSTORE_JUMP
               && ngx_atomic_cmp_set(&sh->clock_offset, was, offset))
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the time of day has jumped by %L "
                      "seconds; claims are dated by it",
                      &zone->name, offset - was);
    }

    ahead = (int64_t) us_store_clock(zone->store) - now;
    far = ahead > (int64_t) unit;

    if (far != sh->clock_ahead
        && ngx_atomic_cmp_set(&sh->clock_ahead, !far, far) && far)
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": its clock of claims is %L seconds "
                      "ahead of this machine's; no claim gets older until the "
                      "time of day has reached it", &zone->name, ahead);
    }
}


/*
 * An audit line.  It has no URL, so it is not of the request's log, which adds
 * the request line.
 */

void
ngx_http_urlstore_erasure_log(ngx_http_urlstore_zone_t *zone, uint64_t number,
    const char *what)
{
    ngx_str_t           reason;
    us_erasure_info_t   e;
    u_char              buf[us_json_quoted_max(US_ERASURE_REASON)];

    if (!us_store_erasure(zone->store, number, &e)) {
        return;
    }

    reason.data = buf;
    reason.len = us_json_quote(buf, e.reason) - buf;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "urlstore_zone \"%V\": erasure %uL of %s was %s: listed=%uL "
                  "deleted=%uL reason=%V", &zone->name, number,
                  e.kind == US_ERASURE_SITE ? "a site" : "URLs", what,
                  e.listed, e.deleted, &reason);
}


/*
 * The sweep begins when an erasure of a site was begun, when a worker starts,
 * and at each tick.  Each turn of the event loop sweeps for a millisecond at
 * most.
 */

static void
ngx_http_urlstore_sweep_run(ngx_event_t *ev)
{
    ngx_http_urlstore_zone_t *zone = ev->data;

    uint64_t            start;
    us_store_status_t   status;

    start = ngx_http_urlstore_now();

    ngx_http_urlstore_clock(zone);

    do {
        status = us_life_sweep(&zone->life);

        if (zone->life.sweep.done) {
            ngx_http_urlstore_erasure_log(zone, zone->life.sweep.done, "done");
        }

    } while (status == US_NEW
             && ngx_http_urlstore_now() - start < NGX_HTTP_URLSTORE_SWEEP_TURN);

    /* else the tick, or a request that waits, comes again */

    if (status == US_NEW) {
        ngx_post_event(ev, &ngx_posted_next_events);

    } else if (status == US_FULL) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\" is full: it has no room to delete "
                      "all URLs that were erased", &zone->name);
    }
}


void
ngx_http_urlstore_sweep(ngx_http_urlstore_zone_t *zone)
{
    ngx_event_t  *ev;

    ev = &zone->sweep;

    if (ev->posted || !us_life_sweep_due(&zone->life)) {
        return;
    }

    ev->handler = ngx_http_urlstore_sweep_run;
    ev->data = zone;
    ev->log = ngx_cycle->log;

    ngx_post_event(ev, &ngx_posted_next_events);
}


/*
 * Requests leave texts of URLs in the memory that they free, in the pieces that
 * a worker keeps for the next ones, and in its tables.  Not wiped are blocks
 * that are in use for longer, and what other modules keep.
 *
 * Jobs of followers wipe their stacks.  What they keep goes each time, with
 * their connections, while no such job is under way.
 *
 * NGX_AGAIN: jobs are held until the next try.
 */

static ngx_int_t
ngx_http_urlstore_wipe(ngx_http_urlstore_zone_t *zone)
{
    uint64_t                        lsn;
    unsigned                        busy;
    ngx_uint_t                      i;
    ngx_http_urlstore_zone_t      **zp;
    ngx_http_urlstore_main_conf_t  *umcf;

    lsn = us_life_wipe_due(&zone->life);

    if (lsn == 0) {
        return NGX_OK;
    }

    /* a training has URLs of the store, until it has ended */

    if (zone->train && us_trainer_done(zone->train)) {
        ngx_http_urlstore_train(zone);
    }

    if (zone->train) {
        return NGX_OK;
    }

    umcf = ngx_http_cycle_get_module_main_conf(zone->cycle,
                                               ngx_http_urlstore_module);
    zp = umcf->zones.elts;
    busy = 0;

    for (i = 0; i < umcf->zones.nelts; i++) {
        busy |= us_life_busy(&zp[i]->life);
    }

    for (i = 0; i < umcf->zones.nelts; i++) {

        /* while some jobs are under way, no other starts */

        if (busy) {
            us_life_hold(&zp[i]->life, busy);

        } else {
            us_life_forget(&zp[i]->life);
        }
    }

    if (busy) {
        return NGX_AGAIN;
    }

    us_store_wipe(zone->store);
    us_norm_ws_wipe(zone->ws);

    if (ngx_http_urlstore_hot) {
        us_hot_wipe(ngx_http_urlstore_hot);
    }

    ngx_http_urlstore_out_exit();
    us_wipe_stack();

    us_life_wiped(&zone->life, us_wipe_heap() == 0 ? lsn : 0);

    return NGX_OK;
}


/*
 * Of all processes that serve the zone, one has the file, and the next one when
 * that has ended.  If somebody has moved or changed the file, it is opened
 * again.
 */

static void
ngx_http_urlstore_audit(ngx_http_urlstore_zone_t *zone)
{
    ngx_err_t        err;
    ngx_msec_t       wait;
    us_life_state_t  state;

    /* before, rows are those of a directory that is being read */

    state = us_life_state(&zone->life);

    if (zone->life.conf.path == NULL
        || (state != US_LIFE_READY && state != US_LIFE_REPLICA
            && state != US_LIFE_STANDBY)
        || (ngx_msec_int_t) (ngx_current_msec - zone->audit_next) < 0
        || us_store_erasures(zone->store) == 0)
    {
        return;
    }

    wait = NGX_HTTP_URLSTORE_TICK;

    if (zone->audit.fd != -1
        && !us_audit_is(&zone->audit, zone->life.dirfd))
    {
        us_audit_close(&zone->audit);
    }

    if ((zone->audit.fd == -1
         && us_audit_open(&zone->audit, zone->life.dirfd) == -1)
        || us_audit_look(&zone->audit, &zone->life) == -1)
    {
        err = ngx_errno;
        us_audit_close(&zone->audit);

        if (err != NGX_EAGAIN) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, err,
                          "urlstore_zone \"%V\": \"" US_DIR_AUDIT "\" could "
                          "not be written", &zone->name);
            wait = NGX_HTTP_URLSTORE_AUDIT_AGAIN;
        }
    }

    zone->audit_next = ngx_current_msec + wait;
}


static void
ngx_http_urlstore_tick(ngx_event_t *ev)
{
    ngx_http_urlstore_zone_t *zone = ev->data;

    ngx_uint_t  i;
    ngx_msec_t  next;

    if (ngx_process == NGX_PROCESS_WORKER && !zone->life.ending
        && getppid() != ngx_parent)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "the master process is gone, this worker ends");
        zone->life.ending = 1;
        ngx_http_urlstore_park_wake(zone);
        ngx_terminate = 1;
        return;
    }

    ngx_http_urlstore_refresh(zone);

    next = zone->life.conf.memory ? NGX_HTTP_URLSTORE_TICK
           : us_life_tick(&zone->life);

    ngx_http_urlstore_shard_tick(zone);
    ngx_http_urlstore_clock(zone);
    ngx_http_urlstore_sweep(zone);

    /* jobs of other zones wait, whose ticks are shorter than that of memory */

    if (ngx_http_urlstore_wipe(zone) == NGX_AGAIN) {
        next = ngx_min(next, US_LIFE_TICK);
    }

    ngx_http_urlstore_audit(zone);

    /* a worker that left its loop would wait for its thread in another one */

    ev->cancelable = 1;

    for (i = 0; i < US_ROLES; i++) {
        if (zone->life.jobs[i].active) {
            ev->cancelable = 0;
        }
    }

    ngx_add_timer(ev, next);
}


/* in a worker, once */

ngx_int_t
ngx_http_urlstore_zone_open(ngx_http_urlstore_zone_t *zone, ngx_log_t *log)
{
    ngx_http_urlstore_park_init(zone);

    zone->audit.fd = -1;
    zone->tally = &zone->sh->tallies[ngx_worker % US_TALLIES];
    zone->ws = us_norm_ws_create(zone->norm);

    if (zone->ws == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "no memory for the normalizer of urlstore_zone \"%V\"",
                      &zone->name);
        return NGX_ERROR;
    }

    return zone->kind->open ? zone->kind->open(zone, log) : NGX_OK;
}


ngx_int_t
ngx_http_urlstore_store_open(ngx_http_urlstore_zone_t *zone, ngx_log_t *log)
{
    ngx_http_urlstore_life_init(zone);

    zone->life.lock.lock = ngx_http_urlstore_lock;
    zone->life.lock.unlock = ngx_http_urlstore_unlock;
    zone->life.lock.data = zone;

    if (us_life_start(&zone->life) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening urlstore_zone \"%V\" failed", &zone->name);
        return NGX_ERROR;
    }

    zone->store = zone->life.store;
    us_store_conf(zone->store, &zone->conf);
    ngx_http_urlstore_hot_attach(zone);

    zone->tick.handler = ngx_http_urlstore_tick;
    zone->tick.data = zone;
    zone->tick.log = ngx_cycle->log;

    ngx_add_timer(&zone->tick, 1);

    return NGX_OK;
}


/* the end of a worker: its threads have ended */

void
ngx_http_urlstore_zone_close(ngx_http_urlstore_zone_t *zone)
{
    if (zone->store) {
        us_audit_close(&zone->audit);
        us_life_stop(&zone->life);
        zone->store = NULL;
    }

    if (zone->train) {
        (void) us_trainer_end(zone->train);
        zone->train = NULL;
    }

    ngx_http_urlstore_shard_exit(zone);

    us_norm_ws_destroy(zone->ws);
    zone->ws = NULL;
}


static void
ngx_http_urlstore_no_lock(void *data)
{
    /* all others are gone, and nothing is added */
}


static void *
ngx_http_urlstore_close_thread(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    us_life_t  *l;

    l = &zone->life;

    ngx_http_urlstore_life_init(zone);

    l->lock.lock = ngx_http_urlstore_no_lock;
    l->lock.unlock = ngx_http_urlstore_no_lock;

    (void) us_life_close(l, NGX_HTTP_URLSTORE_CLOSE);

    return NULL;
}


/*
 * The master's end, after that of all workers.  In a thread, because a disk may
 * not come back, and an init system would not wait.
 */

void
ngx_http_urlstore_zone_exit(ngx_http_urlstore_zone_t *zone)
{
    pthread_t        thread;
    struct timespec  until;

    if (zone->life.conf.path == NULL || zone->life.sh == NULL
        || pthread_create(&thread, NULL, ngx_http_urlstore_close_thread, zone)
           != 0)
    {
        return;
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += NGX_HTTP_URLSTORE_CLOSE / 1000 + 1;

    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the end of the journal was not "
                      "written in time", &zone->name);
    }
}
