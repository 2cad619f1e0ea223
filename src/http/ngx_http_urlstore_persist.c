
/*
 * See ngx_http_urlstore_persist.h: states and roles, each worker's tick, which
 * looks every 100 ms at what there is to do for a zone, and the master's end.
 *
 * A worker whose master is gone ends by itself: nobody would restart it, nor
 * release the zone's mutex, and a new master waits for the directory.
 */


#include "ngx_http_urlstore_persist.h"
#include "../us_fault.h"

#include <pthread.h>


#define NGX_HTTP_URLSTORE_FLUSH  3000     /* ms, at the master's end */


static void ngx_http_urlstore_tick(ngx_event_t *ev);
static void ngx_http_urlstore_role_free(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role);
static void ngx_http_urlstore_role_sweep(ngx_http_urlstore_persist_t *p);
static void *ngx_http_urlstore_flush_thread(void *data);


/* a worker */

ngx_int_t
ngx_http_urlstore_persist_start(ngx_http_urlstore_zone_t *zone)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_job_t      *job;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->sh == NULL) {
        return NGX_OK;
    }

    p->writer.fd = -1;
    p->writer.mark_fd = -1;
    p->syncer.fd = -1;
    p->syncer.mark_fd = -1;
    p->generation = p->sh->load_generation;

    ngx_http_urlstore_park_init(p);

    for (i = 0; i < NGX_HTTP_URLSTORE_ROLES; i++) {
        job = &p->jobs[i];
        job->data = p;
        job->role = i;
        job->task = ngx_thread_task_alloc(p->cycle->pool, sizeof(job));

        if (job->task == NULL) {
            return NGX_ERROR;
        }

        *(ngx_http_urlstore_job_t **) job->task->ctx = job;
    }

    p->tick.handler = ngx_http_urlstore_tick;
    p->tick.data = p;
    p->tick.log = ngx_cycle->log;

    ngx_add_timer(&p->tick, 1);

    return NGX_OK;
}


/*
 * At the end of a worker: its threads have ended.  Whoever looks next finds
 * the roles free without waiting for the process to be gone.
 */

void
ngx_http_urlstore_persist_stop(ngx_http_urlstore_zone_t *zone)
{
    ngx_uint_t                    i;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->sh == NULL) {
        return;
    }

    for (i = 0; i < NGX_HTTP_URLSTORE_ROLES; i++) {
        ngx_http_urlstore_role_release(p, i);
    }

    us_writer_close(&p->writer);
    us_writer_close(&p->syncer);
    p->opened = 0;
}


static void
ngx_http_urlstore_tick(ngx_event_t *ev)
{
    ngx_http_urlstore_persist_t *p = ev->data;

    ngx_uint_t  i;
    ngx_msec_t  next;

    if (ngx_process == NGX_PROCESS_WORKER && !p->orphan
        && getppid() != ngx_parent)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "the master process is gone, this worker ends");
        p->orphan = 1;
        ngx_http_urlstore_park_wake(p);
        ngx_terminate = 1;
        return;
    }

    ngx_http_urlstore_refresh(p->zone);
    ngx_http_urlstore_role_sweep(p);

    switch (p->sh->state) {

    case NGX_HTTP_URLSTORE_COLD:
    case NGX_HTTP_URLSTORE_LOADING:
    case NGX_HTTP_URLSTORE_FOLLOWING:
        ngx_http_urlstore_load(p);
        break;

    case NGX_HTTP_URLSTORE_READY:
        ngx_http_urlstore_write(p);
        ngx_http_urlstore_sync(p);
        ngx_http_urlstore_keep(p);
        break;

    case NGX_HTTP_URLSTORE_LOOKUP:
        if (p->sh->load_wanted) {
            p->sh->load_wanted = 0;
            ngx_http_urlstore_load(p);
        }

        break;

    default:
        break;
    }

    next = ngx_min(NGX_HTTP_URLSTORE_TICK, ngx_max(p->interval / 4, 5));

    /* a worker that left its loop would wait for its thread in another one */

    ev->cancelable = 1;

    for (i = 0; i < NGX_HTTP_URLSTORE_ROLES; i++) {
        if (p->jobs[i].active) {
            ev->cancelable = 0;
        }
    }

    ngx_add_timer(ev, next);
}


/* what other processes have changed since */

void
ngx_http_urlstore_refresh(ngx_http_urlstore_zone_t *zone)
{
    us_store_t                   *store;
    us_store_lock_t               lock;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return;
    }

    if (p->generation != p->sh->load_generation) {

        ngx_http_urlstore_zone_lock(p->zone, &lock);
        store = us_store_open(p->zone->sh->mem, &lock);

        if (store) {
            us_store_close(p->zone->store);
            p->zone->store = store;
            p->generation = p->sh->load_generation;
            p->version = 0;
        }
    }

    if (p->version != p->sh->version) {
        p->version = p->sh->version;
        us_store_conf(p->zone->store, &p->zone->conf);
    }
}


/* states, roles, jobs */

void
ngx_http_urlstore_state(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_state_e state, const char *reason)
{
    if (p->sh->state == (ngx_atomic_uint_t) state) {
        return;
    }

    if (reason) {
        ngx_cpystrn(p->sh->reason, (u_char *) reason,
                    NGX_HTTP_URLSTORE_TROUBLE);
    }

    if (state == NGX_HTTP_URLSTORE_LOADING) {
        p->sh->load_began = ngx_http_urlstore_ms();

    } else if (p->sh->state == NGX_HTTP_URLSTORE_LOADING) {
        p->sh->load_ms = ngx_http_urlstore_ms() - p->sh->load_began;
    }

    /* release: what a state promises was stored before */

    __atomic_store_n(&p->sh->state, state, __ATOMIC_RELEASE);
    (void) ngx_atomic_fetch_add(&p->sh->version, 1);
}


/*
 * The role of a dead worker is free.  A zombie counts as alive until the master
 * has reaped it, and then all its threads are gone.
 */

static void
ngx_http_urlstore_role_free(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role)
{
    ngx_atomic_uint_t  holder;

    holder = p->sh->roles[role];

    if (holder && kill(holder, 0) == -1 && ngx_errno == NGX_ESRCH
        && ngx_atomic_cmp_set(&p->sh->roles[role], holder, 0))
    {
        (void) ngx_atomic_fetch_add(&p->sh->takeovers, 1);
    }
}


/* before another process gets the pid of a dead one, and seems to have it */

static void
ngx_http_urlstore_role_sweep(ngx_http_urlstore_persist_t *p)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_URLSTORE_ROLES; i++) {
        ngx_http_urlstore_role_free(p, i);
    }
}


ngx_int_t
ngx_http_urlstore_role_take(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role)
{
    ngx_http_urlstore_role_free(p, role);

    if (!ngx_atomic_cmp_set(&p->sh->roles[role], 0,
                            (ngx_atomic_uint_t) ngx_pid))
    {
        return NGX_DECLINED;
    }

    us_fault(US_FAULT_ROLE);

    return NGX_OK;
}


void
ngx_http_urlstore_role_release(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role)
{
    (void) ngx_atomic_cmp_set(&p->sh->roles[role],
                              (ngx_atomic_uint_t) ngx_pid, 0);
}


ngx_int_t
ngx_http_urlstore_job_start(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role, void (*run)(void *data, ngx_log_t *log),
    ngx_event_handler_pt done)
{
    ngx_http_urlstore_job_t  *job;

    job = &p->jobs[role];

    job->active = 1;
    job->level = 0;
    job->error.text[0] = '\0';
    job->note.text[0] = '\0';

    job->task->handler = run;
    job->task->event.handler = done;
    job->task->event.data = job;
    job->task->event.complete = 0;

    if (ngx_thread_task_post(p->pool, job->task) != NGX_OK) {
        job->active = 0;
        ngx_http_urlstore_role_release(p, role);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* an error is never lost: each message once */

void
ngx_http_urlstore_job_log(ngx_http_urlstore_job_t *job)
{
    ngx_http_urlstore_persist_t  *p;

    p = job->data;

    if (job->level && job->error.text[0]) {
        ngx_log_error(job->level, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\", \"%V\": %s", &p->zone->name,
                      &p->path, job->error.text);
    }

    if (job->note.text[0]) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\", \"%V\": %s", &p->zone->name,
                      &p->path, job->note.text);
    }
}


uint64_t
ngx_http_urlstore_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


ngx_uint_t
ngx_http_urlstore_stopping(void)
{
    return ngx_terminate || ngx_quit || ngx_exiting;
}


/*
 * The master's end, after all workers': what is published goes to the disk,
 * and the manifest says that it was closed in order.  In a thread, because a
 * disk may not come back, and an init system would not wait.
 */

void
ngx_http_urlstore_persist_exit(ngx_http_urlstore_zone_t *zone)
{
    pthread_t                     thread;
    struct timespec               until;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->sh == NULL || p->sh->lost
        || p->sh->state != NGX_HTTP_URLSTORE_READY)
    {
        return;
    }

    if (pthread_create(&thread, NULL, ngx_http_urlstore_flush_thread, zone)
        != 0)
    {
        return;
    }

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += NGX_HTTP_URLSTORE_FLUSH / 1000 + 1;

    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "urlstore_zone \"%V\": the disk did not take the "
                      "journal's end in time", &zone->name);
    }
}


static void
ngx_http_urlstore_no_lock(void *data)
{
    /* all others are gone, and nothing is added */
}


static void *
ngx_http_urlstore_flush_thread(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    us_store_t       *store;
    us_store_lock_t   lock = { ngx_http_urlstore_no_lock,
                               ngx_http_urlstore_no_lock, NULL };

    store = us_store_open(zone->sh->mem, &lock);

    if (store) {
        (void) ngx_http_urlstore_flush(zone->persist, store,
                                       NGX_HTTP_URLSTORE_FLUSH);
        us_store_close(store);
    }

    return NULL;
}
