
/*
 * See ngx_http_urlstore_persist.h: what a store on disk needs of nginx.  Jobs
 * run in the zone's thread pool, the tick is a timer, messages go to the
 * cycle's log; and at the end of the master, when no worker is left, a thread
 * closes the directory.
 *
 * A worker whose master is gone ends by itself: there is no master that would
 * restart it or release the zone's mutex, and a new one waits for the
 * directory.
 */


#include "ngx_http_urlstore_persist.h"
#include "ngx_http_urlstore_shard.h"

#include <pthread.h>


#define NGX_HTTP_URLSTORE_CLOSE  3000     /* ms, at the master's end */


static uint64_t ngx_http_urlstore_life_now(void *data);
static int ngx_http_urlstore_life_start(void *data, us_job_t *job);
static void ngx_http_urlstore_life_run(void *data, ngx_log_t *log);
static void ngx_http_urlstore_life_done(ngx_event_t *ev);
static void ngx_http_urlstore_life_pause(void *data, unsigned ms);
static int ngx_http_urlstore_life_stopping(void *data);
static int ngx_http_urlstore_life_quiet(void *data);
static void ngx_http_urlstore_life_moved(void *data);
static void ngx_http_urlstore_life_say(void *data, us_say_t level,
    const char *text);
static void ngx_http_urlstore_tick(ngx_event_t *ev);
static void *ngx_http_urlstore_close_thread(void *data);


/* what both a worker and the master need */

static void
ngx_http_urlstore_life_init(ngx_http_urlstore_zone_t *zone)
{
    us_life_t                    *l;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    l = &p->life;

    l->env.now = ngx_http_urlstore_life_now;
    l->env.start = ngx_http_urlstore_life_start;
    l->env.pause = ngx_http_urlstore_life_pause;
    l->env.stopping = ngx_http_urlstore_life_stopping;
    l->env.quiet = ngx_http_urlstore_life_quiet;
    l->env.moved = ngx_http_urlstore_life_moved;
    l->env.say = ngx_http_urlstore_life_say;
    l->env.data = p;

    l->mem = zone->sh->mem;
    l->size = zone->sh->size;
    l->dirfd = p->dir ? p->dir->dirfd : -1;
    l->lockfd = p->dir ? p->dir->lock : -1;
}


/* a worker */

ngx_int_t
ngx_http_urlstore_persist_start(ngx_http_urlstore_zone_t *zone)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return NGX_OK;
    }

    ngx_http_urlstore_life_init(zone);
    ngx_http_urlstore_zone_lock(zone, &p->life.lock);
    ngx_http_urlstore_park_init(p);

    for (i = 0; i < US_ROLES; i++) {
        p->tasks[i] = ngx_thread_task_alloc(p->cycle->pool,
                                            sizeof(us_job_t *));
        if (p->tasks[i] == NULL) {
            return NGX_ERROR;
        }
    }

    if (us_life_start(&p->life) != 0) {
        ngx_log_error(NGX_LOG_EMERG, ngx_cycle->log, ngx_errno,
                      "opening urlstore_zone \"%V\" failed", &zone->name);
        return NGX_ERROR;
    }

    zone->store = p->life.store;
    us_store_conf(zone->store, &zone->conf);
    ngx_http_urlstore_hot_attach(zone);

    p->tick.handler = ngx_http_urlstore_tick;
    p->tick.data = p;
    p->tick.log = ngx_cycle->log;

    ngx_add_timer(&p->tick, 1);

    return NGX_OK;
}


/* the end of a worker: its threads have ended */

void
ngx_http_urlstore_persist_stop(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p && p->life.store) {
        us_life_stop(&p->life);
        zone->store = NULL;
    }
}


static void
ngx_http_urlstore_tick(ngx_event_t *ev)
{
    ngx_http_urlstore_persist_t *p = ev->data;

    ngx_uint_t  i;
    ngx_msec_t  next;

    if (ngx_process == NGX_PROCESS_WORKER && !p->life.ending
        && getppid() != ngx_parent)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "the master process is gone, this worker ends");
        p->life.ending = 1;
        ngx_http_urlstore_park_wake(p);
        ngx_terminate = 1;
        return;
    }

    ngx_http_urlstore_refresh(p->zone);

    next = us_life_tick(&p->life);

    ngx_http_urlstore_shard_tick(p->zone);
    ngx_http_urlstore_clock(p->zone);

    /* a worker that left its loop would wait for its thread in another one */

    ev->cancelable = 1;

    for (i = 0; i < US_ROLES; i++) {
        if (p->life.jobs[i].active) {
            ev->cancelable = 0;
        }
    }

    ngx_add_timer(ev, next);
}


void
ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p && us_life_refresh(&p->life)) {
        zone->store = p->life.store;
        us_store_conf(zone->store, &zone->conf);
        ngx_http_urlstore_hot_attach(zone);

        /* a store that was loaded anew counts its maps from one again */

        ngx_http_urlstore_shard_exit(zone);
    }
}


/* the environment of us_life_t; data: the zone's ngx_http_urlstore_persist_t */

static uint64_t
ngx_http_urlstore_life_now(void *data)
{
    return ngx_http_urlstore_now() / 1000;
}


static int
ngx_http_urlstore_life_start(void *data, us_job_t *job)
{
    ngx_http_urlstore_persist_t *p = data;

    ngx_thread_task_t  *task;

    task = p->tasks[job->role];

    *(us_job_t **) task->ctx = job;

    task->handler = ngx_http_urlstore_life_run;
    task->event.handler = ngx_http_urlstore_life_done;
    task->event.data = job;
    task->event.complete = 0;

    return ngx_thread_task_post(p->pool, task) == NGX_OK ? 0 : -1;
}


static void
ngx_http_urlstore_life_run(void *data, ngx_log_t *log)
{
    us_job_run(*(us_job_t **) data);
}


static void
ngx_http_urlstore_life_done(ngx_event_t *ev)
{
    us_job_done(ev->data);
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
    ngx_http_urlstore_persist_t *p = data;

    return p->zone->train == NULL;
}


static void
ngx_http_urlstore_life_moved(void *data)
{
    ngx_http_urlstore_park_wake(data);
}


static void
ngx_http_urlstore_life_say(void *data, us_say_t level, const char *text)
{
    ngx_http_urlstore_persist_t *p = data;

    static ngx_uint_t  levels[] = {
        [US_SAY_NOTICE] = NGX_LOG_NOTICE,
        [US_SAY_WARN] = NGX_LOG_WARN,
        [US_SAY_ERROR] = NGX_LOG_ERR,
        [US_SAY_ALERT] = NGX_LOG_ALERT,
        [US_SAY_EMERG] = NGX_LOG_EMERG
    };

    if (p->path.len == 0) {
        ngx_log_error(levels[level], ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": %s", &p->zone->name, text);
        return;
    }

    ngx_log_error(levels[level], ngx_cycle->log, 0,
                  "urlstore_zone \"%V\", \"%V\": %s", &p->zone->name, &p->path,
                  text);
}


/*
 * The master's end, after that of all workers.  In a thread, because a disk may
 * not come back, and an init system would not wait.
 */

void
ngx_http_urlstore_persist_exit(ngx_http_urlstore_zone_t *zone)
{
    pthread_t                     thread;
    struct timespec               until;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->life.sh == NULL || p->path.len == 0
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

    l = &zone->persist->life;

    ngx_http_urlstore_life_init(zone);

    l->lock.lock = ngx_http_urlstore_no_lock;
    l->lock.unlock = ngx_http_urlstore_no_lock;

    (void) us_life_close(l, NGX_HTTP_URLSTORE_CLOSE);

    return NULL;
}
