
/*
 * See ngx_http_urlstore_persist.h: the options of urlstore_zone that name a
 * directory, the directory in the master, states and roles, and each worker's
 * tick, which looks every 100 ms at what there is to do for a zone.
 *
 * A worker whose master is gone ends by itself: nobody would restart it, nor
 * release the zone's mutex, and a new master waits for the directory.
 */


#include "ngx_http_urlstore_persist.h"
#include "../journal/us_dir.h"
#include "../us_fault.h"

#include <dirent.h>
#include <pthread.h>


#define NGX_HTTP_URLSTORE_FLUSH  3000     /* ms, at the master's end */


static ngx_http_urlstore_persist_t *ngx_http_urlstore_persist_of(
    ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone);
static void ngx_http_urlstore_dir_chown(ngx_http_urlstore_persist_t *p);
static ngx_int_t ngx_http_urlstore_dir_keep(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_dir_t *dir);
static void ngx_http_urlstore_dir_cleanup(void *data);
static void ngx_http_urlstore_tick(ngx_event_t *ev);
static ngx_int_t ngx_http_urlstore_retry_after(ngx_http_request_t *r);
static void *ngx_http_urlstore_flush_thread(void *data);


/* options */

static ngx_http_urlstore_persist_t *
ngx_http_urlstore_persist_of(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    if (zone->persist) {
        return zone->persist;
    }

    p = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_persist_t));
    if (p == NULL) {
        return NULL;
    }

    p->zone = zone;
    p->cycle = cf->cycle;
    p->interval = 1000;
    p->snapshot = NGX_HTTP_URLSTORE_SNAPSHOT;
    p->scrub = NGX_HTTP_URLSTORE_SCRUB;
    ngx_str_set(&p->sync_name, "1s");

    zone->persist = p;

    return p;
}


ngx_int_t
ngx_http_urlstore_opt_path(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len == 0) {
        return NGX_ERROR;
    }

#if !(NGX_THREADS)

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"path\" needs an nginx built with threads");
    return NGX_ERROR;

#else

    p->pool = ngx_thread_pool_add(cf, NULL);
    if (p->pool == NULL) {
        return NGX_ERROR;
    }

#endif

    p->path = *value;

    return ngx_conf_full_name(cf->cycle, &p->path, 0);
}


ngx_int_t
ngx_http_urlstore_opt_sync(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char                       *name;
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len > 15) {
        return NGX_ERROR;
    }

    name = ngx_pnalloc(cf->pool, value->len + 1);
    if (name == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(name, value->data, value->len + 1);

    p->sync_name.data = name;
    p->sync_name.len = value->len;

    if (ngx_strcmp(name, "always") == 0) {
        p->sync = NGX_HTTP_URLSTORE_SYNC_ALWAYS;
        return NGX_OK;
    }

    if (ngx_strcmp(name, "off") == 0) {
        p->sync = NGX_HTTP_URLSTORE_SYNC_OFF;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->interval = ms;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_mode(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "lookup") == 0) {
        zone->conf.lookup = 1;

    } else if (ngx_strcmp(value->data, "store") == 0) {
        zone->conf.lookup = 0;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* the least growth of the journal between two snapshots, or off */

ngx_int_t
ngx_http_urlstore_opt_snapshot(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->snapshot = 0;
        return NGX_OK;
    }

    p->snapshot = ngx_parse_offset(value);

    return p->snapshot > 0 ? NGX_OK : NGX_ERROR;
}


/* the time between two scrubs, or off */

ngx_int_t
ngx_http_urlstore_opt_scrub(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->scrub = 0;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->scrub = ms;

    return NGX_OK;
}


/* after all options: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_persist_conf(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    size_t                        most;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL || p->path.len == 0) {

        if (p || zone->conf.lookup) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "urlstore_zone \"%V\": its \"%s\" needs a "
                               "\"path\"", &zone->name,
                               zone->conf.lookup ? "mode" : "sync");
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (zone->conf.lookup) {
        return NGX_OK;
    }

    /*
     * A power of two, at most a 16th of the zone; up to 512 KB, which takes
     * any model that the first million URLs learn, an 8th.
     */

    most = ngx_min(size / 8, 512 * 1024);
    most = ngx_max(size / 16, most);

    zone->conf.ring = 64 * 1024;

    while (zone->conf.ring < 16 * 1024 * 1024
           && zone->conf.ring * 2 <= most)
    {
        zone->conf.ring *= 2;
    }

    return NGX_OK;
}


/* what of the options cannot change at a reload, or NULL */

const char *
ngx_http_urlstore_persist_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_persist_t  *a, *b;

    a = zone->persist;
    b = old->persist;

    if ((a == NULL) != (b == NULL)) {
        return "path";
    }

    if (a == NULL) {
        return NULL;
    }

    if (a->path.len != b->path.len
        || ngx_memcmp(a->path.data, b->path.data, a->path.len) != 0)
    {
        return "path";
    }

    if (a->sync != b->sync || a->interval != b->interval) {
        return "sync";
    }

    return NULL;
}


/*
 * Of the zone's init callback, in the master: a new mapping (old is NULL), or
 * one that goes on.
 */

ngx_int_t
ngx_http_urlstore_persist_init(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return NGX_OK;
    }

    p->conf = zone->conf;

    if (ngx_test_config) {
        return NGX_OK;
    }

    if (old) {
        p->sh = zone->sh->persist;
        (void) ngx_atomic_fetch_add(&p->sh->load_wanted, 1);

        return ngx_http_urlstore_dir_keep(p, old->persist->dir);
    }

    p->sh = ngx_slab_calloc(zone->shpool,
                            sizeof(ngx_http_urlstore_persist_sh_t));
    if (p->sh == NULL) {
        return NGX_ERROR;
    }

    zone->sh->persist = p->sh;

    if (ngx_http_urlstore_dir_open(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_dir_check(zone);
}


/* made if it is not there, with an owner who may write to it */

static ngx_int_t
ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone)
{
    ngx_log_t                    *log;
    ngx_http_urlstore_dir_t      *dir;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    log = zone->shm_zone->shm.log;

    if (!zone->conf.lookup
        && ngx_create_dir(p->path.data, 0700) == NGX_FILE_ERROR
        && ngx_errno != NGX_EEXIST)
    {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      ngx_create_dir_n " \"%V\" failed", &p->path);
        return NGX_ERROR;
    }

    dir = ngx_calloc(sizeof(ngx_http_urlstore_dir_t), log);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    dir->lock = -1;
    dir->dirfd = open((char *) p->path.data, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dir->dirfd == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening urlstore_zone \"%V\"'s path \"%V\" failed",
                      &zone->name, &p->path);
        ngx_free(dir);
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_dir_keep(p, dir) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->conf.lookup) {
        return NGX_OK;
    }

    dir->lock = openat(dir->dirfd, US_DIR_LOCK, O_RDWR|O_CREAT|O_CLOEXEC,
                       0600);

    if (dir->lock == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening \"%V/%s\" failed", &p->path, US_DIR_LOCK);
        return NGX_ERROR;
    }

    ngx_http_urlstore_dir_chown(p);

    return NGX_OK;
}


/* tells at once, before anything is loaded, what would never load */

static ngx_int_t
ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone)
{
    us_manifest_t                 m;
    us_disk_error_t               e;
    us_manifest_rc_t              rc;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    rc = us_manifest_read(p->dir->dirfd, &m, &e);

    if (rc == US_MANIFEST_NONE) {
        return NGX_OK;
    }

    if (rc == US_MANIFEST_OK && us_data_differs(&m, &zone->conf, &e) == 0) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\", \"%V\": %s", &zone->name, &p->path,
                  e.text);

    return NGX_ERROR;
}


/* what root has made or imported belongs to the workers */

static void
ngx_http_urlstore_dir_chown(ngx_http_urlstore_persist_t *p)
{
    DIR              *d;
    struct stat       st;
    struct dirent    *de;
    ngx_core_conf_t  *ccf;

    if (geteuid() != 0) {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(p->cycle->conf_ctx,
                                           ngx_core_module);

    if (ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return;
    }

    (void) fchown(p->dir->dirfd, ccf->user, -1);

    d = opendir((char *) p->path.data);

    if (d == NULL) {
        return;
    }

    while ((de = readdir(d)) != NULL) {

        if (fstatat(p->dir->dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && S_ISREG(st.st_mode) && st.st_uid != ccf->user)
        {
            (void) fchownat(p->dir->dirfd, de->d_name, ccf->user, -1,
                            AT_SYMLINK_NOFOLLOW);
        }
    }

    (void) closedir(d);
}


/*
 * Cycles share the descriptors: a configuration that is given up, and the one
 * that goes on, each drop their part.
 */

static ngx_int_t
ngx_http_urlstore_dir_keep(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_dir_t *dir)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(p->cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    dir->refs++;
    p->dir = dir;

    cln->handler = ngx_http_urlstore_dir_cleanup;
    cln->data = dir;

    return NGX_OK;
}


static void
ngx_http_urlstore_dir_cleanup(void *data)
{
    ngx_http_urlstore_dir_t *dir = data;

    if (--dir->refs) {
        return;
    }

    if (dir->lock != -1) {
        (void) close(dir->lock);
    }

    (void) close(dir->dirfd);

    ngx_free(dir);
}


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
    p->tick.cancelable = 1;

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
                    NGX_HTTP_URLSTORE_REASON_LEN);
    }

    /* release: what a state promises was stored before */

    __atomic_store_n(&p->sh->state, state, __ATOMIC_RELEASE);
    (void) ngx_atomic_fetch_add(&p->sh->version, 1);
}


ngx_int_t
ngx_http_urlstore_role_take(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role)
{
    ngx_atomic_t       *word;
    ngx_atomic_uint_t   holder;

    word = &p->sh->roles[role];
    holder = *word;

    if (holder) {

        /*
         * A zombie counts as alive until the master has reaped it, and then
         * all its threads are gone.
         */

        if (kill(holder, 0) == 0 || ngx_errno != NGX_ESRCH) {
            return NGX_DECLINED;
        }

        (void) ngx_atomic_fetch_add(&p->sh->takeovers, 1);
    }

    if (!ngx_atomic_cmp_set(word, holder, (ngx_atomic_uint_t) ngx_pid)) {
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


/* what requests ask */

ngx_uint_t
ngx_http_urlstore_writes(ngx_http_request_t *r,
    const ngx_http_urlstore_endpoint_t *ep)
{
    return r->method == NGX_HTTP_DELETE
           || (ep->name.len == 3 && ngx_strncmp(ep->name.data, "add", 3) == 0)
           || (ep->name.len == 4 && ngx_strncmp(ep->name.data, "mark", 4)
                                    == 0);
}


/* by id, which mode=lookup can */

static ngx_uint_t
ngx_http_urlstore_by_id(const ngx_http_urlstore_endpoint_t *ep)
{
    return (ep->name.len == 3 || (ep->name.len == 4 && ep->name.data[3] == 's'))
           && ngx_strncmp(ep->name.data, "url", 3) == 0;
}


ngx_int_t
ngx_http_urlstore_ready(ngx_http_request_t *r, ngx_http_urlstore_zone_t *zone,
    const ngx_http_urlstore_endpoint_t *ep)
{
    ngx_uint_t                       writes;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = zone->persist;

    if (p == NULL) {
        return NGX_DECLINED;
    }

    sh = p->sh;
    writes = ngx_http_urlstore_writes(r, ep);

    switch (sh->state) {

    case NGX_HTTP_URLSTORE_READY:

        if (!writes || ngx_http_urlstore_writable(zone)) {
            return NGX_DECLINED;
        }

        break;

    case NGX_HTTP_URLSTORE_FOLLOWING:
    case NGX_HTTP_URLSTORE_DAMAGED:

        if (!writes) {
            return NGX_DECLINED;
        }

        break;

    case NGX_HTTP_URLSTORE_LOOKUP:

        if (!writes && ngx_http_urlstore_by_id(ep)) {
            return NGX_DECLINED;
        }

        break;

    default:
        break;
    }

    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_UNREADY, 1);

    return ngx_http_urlstore_unready(r, zone);
}


ngx_uint_t
ngx_http_urlstore_writable(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    return p == NULL
           || (p->sh->state == NGX_HTTP_URLSTORE_READY && !p->orphan
               && !p->sh->stalled && !p->sh->lost);
}


/* the state in API.md's word */

const char *
ngx_http_urlstore_state_name(ngx_http_urlstore_zone_t *zone)
{
    if (zone->persist == NULL) {
        return "ready";
    }

    switch (zone->persist->sh->state) {

    case NGX_HTTP_URLSTORE_COLD:
    case NGX_HTTP_URLSTORE_LOADING:
        return "loading";

    case NGX_HTTP_URLSTORE_FOLLOWING:
        return "not-owner";

    case NGX_HTTP_URLSTORE_DAMAGED:
        return "damaged";

    case NGX_HTTP_URLSTORE_FAILED:
        return "failed";

    default:
        return "ready";
    }
}


/* of loading, 0 .. 100 */

ngx_uint_t
ngx_http_urlstore_progress(ngx_http_urlstore_zone_t *zone)
{
    ngx_http_urlstore_persist_sh_t  *sh;

    if (zone->persist == NULL) {
        return 100;
    }

    sh = zone->persist->sh;

    if (sh->state > NGX_HTTP_URLSTORE_LOADING) {
        return 100;
    }

    return sh->load_total ? ngx_min(99, sh->load_done * 100 / sh->load_total)
                          : 0;
}


/* 503 with the reason */

ngx_int_t
ngx_http_urlstore_unready(ngx_http_request_t *r,
    ngx_http_urlstore_zone_t *zone)
{
    u_char                           extra[64];
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = zone->persist;
    sh = p->sh;

    switch (sh->state) {

    case NGX_HTTP_URLSTORE_DAMAGED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "read-only, good up to a damage of the "
                       "directory: %s", sh->reason);

    case NGX_HTTP_URLSTORE_FAILED:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "the directory cannot be read: %s", sh->reason);

    case NGX_HTTP_URLSTORE_LOOKUP:
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "this zone answers /url and /urls only "
                       "(mode=lookup)");

    default:
        break;
    }

    if (sh->lost) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "read-only until a restart: %s", sh->reason);
    }

    if (ngx_http_urlstore_retry_after(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (sh->state <= NGX_HTTP_URLSTORE_LOADING) {
        ngx_sprintf(extra, "\"progress\":%ui%Z",
                    ngx_http_urlstore_progress(zone));

        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       (char *) extra, "loading: %ui%%",
                       ngx_http_urlstore_progress(zone));
    }

    if (sh->state == NGX_HTTP_URLSTORE_FOLLOWING) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "another server owns the directory");
    }

    if (p->orphan) {
        return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                       NULL, "this process is ending");
    }

    return ngx_http_urlstore_problem(r, NGX_HTTP_SERVICE_UNAVAILABLE, NULL,
                                     "the disk is behind: %s",
                                     sh->stalled ? (char *) sh->reason
                                                 : "it did not answer in a "
                                                   "second");
}


static ngx_int_t
ngx_http_urlstore_retry_after(ngx_http_request_t *r)
{
    ngx_str_t  value;

    ngx_str_set(&value, "1");

    return ngx_http_urlstore_header(r, "Retry-After", &value);
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


u_char *
ngx_http_urlstore_persist_stats(u_char *p, ngx_http_urlstore_zone_t *zone)
{
    us_tail_t                        tail;
    ngx_http_urlstore_persist_t     *persist;
    ngx_http_urlstore_persist_sh_t  *sh;

    persist = zone->persist;

    if (persist == NULL) {
        return ngx_sprintf(p, ",\"persistent\":false");
    }

    sh = persist->sh;
    ngx_http_urlstore_tail_get(sh, &tail);

    return ngx_sprintf(p, ",\"persistent\":true,\"sync\":\"%V\","
                       "\"state\":\"%s\",\"progress\":%ui,"
                       "\"writable\":%s,\"stalled\":%s,\"sync_failed\":%s,"
                       "\"lag_bytes\":%uL,\"unsynced_bytes\":%uL,"
                       "\"segment\":%uL,\"journal_writes\":%uA,"
                       "\"journal_syncs\":%uA,\"journal_errors\":%uA,"
                       "\"snapshots\":%uA,\"snapshot_lsn\":%uL,"
                       "\"scrubbed_bytes\":%uA,\"takeovers\":%uA,"
                       "\"cut_bytes\":%uL,\"lost_ids\":%uL",
                       &persist->sync_name,
                       ngx_http_urlstore_state_name(zone),
                       ngx_http_urlstore_progress(zone),
                       ngx_http_urlstore_writable(zone) ? "true" : "false",
                       sh->stalled ? "true" : "false",
                       sh->lost ? "true" : "false",
                       us_store_published(zone->store)
                       - us_store_written(zone->store),
                       us_store_written(zone->store)
                       - us_store_durable(zone->store),
                       tail.segment, sh->writes, sh->syncs, sh->errors,
                       sh->snapshots, sh->snapshot_lsn, sh->scrubbed,
                       sh->takeovers, sh->cut_bytes, sh->lost_ids);
}
