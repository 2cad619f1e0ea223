
/*
 * Loading: the directory's data into the store, in a thread, after listen.
 *
 *     LOADING    snapshot and journal are applied, up to their end as it is
 *                now; everything but operations answers 503 with progress
 *     FOLLOWING  another master owns the directory: hits are answered.  The
 *                lock is tried now and then; once it is ours nobody writes any
 *                more, and what has come since is applied
 *     READY      it is ours, the end is settled, the manifest says so
 *
 * A loader that is killed while it applies has left a store that is no longer
 * a prefix of anything: the next one begins with an empty one.  Workers open
 * it anew by load_generation.
 */


#include "ngx_http_urlstore_persist.h"
#include "../journal/us_dir.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>


#define NGX_HTTP_URLSTORE_LOCK_TRY  20    /* ms */
#define NGX_HTTP_URLSTORE_QUIET     200   /* ms until all have seen a state */


typedef struct {
    ngx_http_urlstore_persist_t    *p;
    us_store_t                     *store;
    us_recovery_t                   recovery;
} ngx_http_urlstore_load_t;


static void ngx_http_urlstore_load_thread(void *data, ngx_log_t *log);
static void ngx_http_urlstore_load_done(ngx_event_t *ev);
static us_recovery_rc_t ngx_http_urlstore_load_open(
    ngx_http_urlstore_load_t *l);
static void ngx_http_urlstore_load_run(ngx_http_urlstore_load_t *l,
    ngx_http_urlstore_job_t *job);
static int ngx_http_urlstore_load_apply(void *data, const uint8_t *p,
    size_t len);
static ngx_int_t ngx_http_urlstore_load_own(ngx_http_urlstore_load_t *l);
static ngx_int_t ngx_http_urlstore_load_fresh(ngx_http_urlstore_load_t *l);
static ngx_int_t ngx_http_urlstore_load_ready(ngx_http_urlstore_load_t *l,
    ngx_http_urlstore_job_t *job);
static ngx_int_t ngx_http_urlstore_load_newer(ngx_http_urlstore_persist_t *p,
    us_disk_error_t *e);
static ngx_int_t ngx_http_urlstore_load_empty(
    ngx_http_urlstore_persist_t *p);


/* starts a loader if nobody loads */

void
ngx_http_urlstore_load(ngx_http_urlstore_persist_t *p)
{
    if (p->orphan || ngx_http_urlstore_stopping()
        || p->jobs[NGX_HTTP_URLSTORE_LOADER].active)
    {
        return;
    }

    if (ngx_http_urlstore_role_take(p, NGX_HTTP_URLSTORE_LOADER) == NGX_OK) {
        (void) ngx_http_urlstore_job_start(p, NGX_HTTP_URLSTORE_LOADER,
                                           ngx_http_urlstore_load_thread,
                                           ngx_http_urlstore_load_done);
    }
}


static void
ngx_http_urlstore_load_thread(void *data, ngx_log_t *log)
{
    ngx_http_urlstore_job_t *job = *(ngx_http_urlstore_job_t **) data;

    us_store_lock_t               lock;
    us_recovery_rc_t              rc;
    ngx_http_urlstore_load_t      l;
    ngx_http_urlstore_persist_t  *p;

    p = job->data;

    ngx_memzero(&l, sizeof(ngx_http_urlstore_load_t));
    l.p = p;
    l.recovery.readers = -1;

    if (p->sh->state == NGX_HTTP_URLSTORE_LOOKUP
        && ngx_http_urlstore_load_newer(p, &job->error) != NGX_OK)
    {
        job->level = NGX_LOG_ERR;
        goto done;
    }

    if (p->sh->load_applying || p->sh->state == NGX_HTTP_URLSTORE_LOOKUP) {

        if (ngx_http_urlstore_load_empty(p) != NGX_OK) {
            goto done;
        }
    }

    ngx_http_urlstore_zone_lock(p->zone, &lock);
    l.store = us_store_open(p->zone->sh->mem, &lock);

    if (l.store == NULL) {
        goto done;
    }

    if (p->sh->state == NGX_HTTP_URLSTORE_COLD) {
        ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_LOADING, NULL);
    }

    for ( ;; ) {
        rc = ngx_http_urlstore_load_open(&l);

        if (rc != US_RECOVERY_FRESH) {
            break;
        }

        /* nothing there: it is ours to make, or somebody else is making it */

        if (ngx_http_urlstore_load_own(&l) == NGX_OK) {

            if (ngx_http_urlstore_load_fresh(&l) != NGX_OK) {
                rc = US_RECOVERY_FAILED;
            }

            break;
        }

        us_recovery_close(&l.recovery);

        if (ngx_http_urlstore_stopping()) {
            goto done;
        }

        ngx_msleep(NGX_HTTP_URLSTORE_LOCK_TRY);
    }

    if (rc == US_RECOVERY_OK) {
        ngx_http_urlstore_load_run(&l, job);

    } else if (rc != US_RECOVERY_FRESH) {
        job->error = l.recovery.error;
        job->level = NGX_LOG_EMERG;
        ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_FAILED,
                                l.recovery.error.text);
    }

done:

    us_recovery_close(&l.recovery);

    if (l.store) {
        us_store_close(l.store);
    }

    ngx_http_urlstore_role_release(p, NGX_HTTP_URLSTORE_LOADER);
}


static void
ngx_http_urlstore_load_done(ngx_event_t *ev)
{
    ngx_http_urlstore_job_t *job = ev->data;

    job->active = 0;

    ngx_http_urlstore_job_log(job);
}


/* the manifest; goes on where a loader before has come to */

static us_recovery_rc_t
ngx_http_urlstore_load_open(ngx_http_urlstore_load_t *l)
{
    char                          boot[US_BOOT_ID + 1];
    us_store_conf_t               conf;
    us_recovery_t                *r;
    us_recovery_rc_t              rc;
    ngx_http_urlstore_persist_t  *p;

    p = l->p;
    r = &l->recovery;

    us_manifest_boot(boot);

    rc = us_recovery_open(r, p->dir->dirfd, &us_data_ops,
                          ngx_http_urlstore_load_apply, l, boot);

    if (rc != US_RECOVERY_OK) {
        return rc;
    }

    us_store_conf(l->store, &conf);

    if (us_data_differs(&r->manifest, &conf, &r->error) == -1) {
        return US_RECOVERY_FAILED;
    }

    if (p->sh->state == NGX_HTTP_URLSTORE_FOLLOWING) {
        r->started = 1;
        r->lsn = p->sh->load_lsn;
        r->ids = p->sh->load_ids;

    } else {
        us_store_set_identity(l->store, r->manifest.uuid, r->manifest.epoch);
    }

    return US_RECOVERY_OK;
}


static void
ngx_http_urlstore_load_run(ngx_http_urlstore_load_t *l,
    ngx_http_urlstore_job_t *job)
{
    ngx_int_t                        own;
    us_recovery_t                   *r;
    us_recovery_rc_t                 rc;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = l->p;
    sh = p->sh;
    r = &l->recovery;

    own = ngx_http_urlstore_load_own(l);

    for ( ;; ) {
        sh->load_total = r->total;
        sh->load_applying = 1;

        rc = us_recovery_run(r, own == NGX_OK);

        if (rc == US_RECOVERY_STOP) {
            return;
        }

        sh->load_lsn = r->lsn;
        sh->load_ids = r->ids;

        if (rc != US_RECOVERY_OK) {
            job->error = r->error;
            job->level = NGX_LOG_EMERG;
            (void) us_store_set_lsn(l->store, r->lsn);
            ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_DAMAGED,
                                    r->error.text);
            return;
        }

        if (p->zone->conf.lookup) {
            (void) us_store_set_lsn(l->store, r->lsn);
            ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_LOOKUP, NULL);
            return;
        }

        if (own == NGX_OK) {
            break;
        }

        /*
         * Only a state that says so lets the next loader go on from here: one
         * that is killed before must not have it all applied once more.
         */

        ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_FOLLOWING, NULL);
        ngx_memory_barrier();
        sh->load_applying = 0;

        while (own != NGX_OK) {

            if (ngx_http_urlstore_stopping()) {
                return;
            }

            ngx_msleep(NGX_HTTP_URLSTORE_LOCK_TRY);

            own = ngx_http_urlstore_load_own(l);
        }
    }

    if (ngx_http_urlstore_load_ready(l, job) != NGX_OK) {
        job->error = r->error;
        job->level = NGX_LOG_EMERG;
        ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_DAMAGED, r->error.text);
    }
}


static int
ngx_http_urlstore_load_apply(void *data, const uint8_t *p, size_t len)
{
    ngx_http_urlstore_load_t *l = data;

    if (ngx_http_urlstore_stopping()) {
        return US_RECOVERY_STOP;
    }

    if (us_data_apply(l->store, p, len) != 0) {
        return -1;
    }

    l->p->sh->load_done = l->recovery.done;

    return 0;
}


/*
 * The lock belongs to an open file that all processes of this master share,
 * so trying it again succeeds once it is ours.
 */

static ngx_int_t
ngx_http_urlstore_load_own(ngx_http_urlstore_load_t *l)
{
    ngx_http_urlstore_persist_t  *p;

    p = l->p;

    if (p->zone->conf.lookup) {
        return NGX_DECLINED;
    }

    return flock(p->dir->lock, LOCK_EX|LOCK_NB) == 0 ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_urlstore_load_fresh(ngx_http_urlstore_load_t *l)
{
    us_tail_t                     tail;
    us_recovery_t                *r;
    us_store_conf_t               conf;
    ngx_http_urlstore_persist_t  *p;

    p = l->p;
    r = &l->recovery;

    us_store_conf(l->store, &conf);
    conf.epoch = 1;

    if (us_data_describe(&r->manifest, &conf) == -1) {
        us_disk_fail(&r->error, 0, "the settings are too long");
        return NGX_ERROR;
    }

    if (us_recovery_create(p->dir->dirfd, &r->manifest, r->boot,
                           (char *) p->sync_name.data, &r->error)
        == -1)
    {
        return NGX_ERROR;
    }

    us_store_set_identity(l->store, conf.uuid, conf.epoch);
    (void) us_store_set_lsn(l->store, 0);

    ngx_memzero(&tail, sizeof(us_tail_t));
    ngx_http_urlstore_tail_set(p->sh, &tail);

    ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_READY, NULL);

    return NGX_OK;
}


/* everything is applied and the directory is ours */

static ngx_int_t
ngx_http_urlstore_load_ready(ngx_http_urlstore_load_t *l,
    ngx_http_urlstore_job_t *job)
{
    us_recovery_t                   *r;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = l->p;
    sh = p->sh;
    r = &l->recovery;

    if (us_store_next_id(l->store) != r->ids) {
        us_disk_fail(&r->error, 0, "the files give %llu ids, the store %llu",
                     (unsigned long long) r->ids,
                     (unsigned long long) us_store_next_id(l->store));
        return NGX_ERROR;
    }

    if (us_store_set_lsn(l->store, r->lsn) == -1) {
        us_disk_fail(&r->error, 0, "the snapshot's index has more ids than "
                     "the snapshot gives");
        return NGX_ERROR;
    }

    if (us_recovery_finish(r, (char *) p->sync_name.data) == -1) {
        return NGX_ERROR;
    }

    us_store_set_identity(l->store, r->manifest.uuid, r->manifest.epoch);

    sh->written_ids = r->ids;
    sh->durable_ids = r->ids;
    sh->snapshot_lsn = r->manifest.has_snapshot ? r->manifest.snapshot : 0;
    sh->cut_bytes = r->cut;
    sh->lost_ids = r->lost_ids;

    if (r->cut) {
        us_disk_fail(&job->error, 0, "the journal's torn end was cut: %llu "
                     "bytes, %llu ids that had been answered; %.280s",
                     (unsigned long long) r->cut,
                     (unsigned long long) r->lost_ids, r->torn.text);
        job->level = NGX_LOG_WARN;
    }

    if (r->lost) {
        us_disk_fail(&job->note, 0, "answered ids may have been lost, by a "
                     "failure of the machine or of its disk: epoch %llu "
                     "begins, at %llu ids",
                     (unsigned long long) r->manifest.epoch,
                     (unsigned long long) r->ids);
    }

    ngx_http_urlstore_tail_set(sh, &r->tail);

    (void) us_dir_clean(p->dir->dirfd);

    ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_READY, NULL);

    return NGX_OK;
}


/*
 * mode=lookup at a reload: whether there is something to load, before what
 * there is in memory is given up.
 */

static ngx_int_t
ngx_http_urlstore_load_newer(ngx_http_urlstore_persist_t *p,
    us_disk_error_t *e)
{
    us_manifest_t  m;

    if (us_manifest_read(p->dir->dirfd, &m, e) != US_MANIFEST_OK) {
        return NGX_ERROR;
    }

    return us_data_differs(&m, &p->conf, e) == 0 ? NGX_OK : NGX_ERROR;
}


/* begins again with an empty store, of the same configuration */

static ngx_int_t
ngx_http_urlstore_load_empty(ngx_http_urlstore_persist_t *p)
{
    us_store_conf_t                  conf;
    ngx_http_urlstore_sh_t          *zsh;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;
    zsh = p->zone->sh;
    conf = p->conf;

    if (getrandom(conf.hash_key, 16, 0) != 16) {
        return NGX_ERROR;
    }

    ngx_http_urlstore_state(p, NGX_HTTP_URLSTORE_LOADING, NULL);
    ngx_msleep(NGX_HTTP_URLSTORE_QUIET);

    sh->load_applying = 1;

    if (madvise(zsh->mem, zsh->size, MADV_REMOVE) == -1) {
        ngx_memzero(zsh->mem, zsh->size);
    }

    if (us_store_format(zsh->mem, zsh->size, &conf) != 0) {
        return NGX_ERROR;
    }

    sh->load_done = 0;
    sh->load_lsn = 0;
    sh->load_ids = 0;
    ngx_memory_barrier();
    sh->load_applying = 0;

    (void) ngx_atomic_fetch_add(&sh->load_generation, 1);

    return NGX_OK;
}
