
/*
 * The journal's end: bytes of operations from the ring to the newest segment,
 * and the segment to the disk.
 *
 *     ring      ....|<-- tail.lsn       published -->|....
 *     segment   ....|<-- tail.offset
 *
 *     writer    takes what is published, writes it in one write(), moves the
 *               tail, tells everybody (written); under sync=always it syncs
 *               and tells that (durable).  What comes meanwhile is the next
 *               group.
 *     syncer    under sync=TIME: syncs before the oldest byte that is not
 *               durable gets that old.
 *
 * Both are roles: one process each at a time, in a thread.  Nobody who is
 * killed takes more with him than bytes behind the tail that nobody was told
 * of; the next one cuts them off.
 *
 * A failed write is tried again (a full disk gets room); a failed sync ends
 * the writing until a restart, as what is on the disk is not known then.
 */


#include "ngx_http_urlstore_persist.h"
#include "../us_fault.h"


#define NGX_HTTP_URLSTORE_STALL   250     /* ms between two tries */
#define NGX_HTTP_URLSTORE_TURN    20      /* ms that a thread goes on */
#define NGX_HTTP_URLSTORE_GROUPS  4       /* appends before a sync */


static void ngx_http_urlstore_write_thread(void *data, ngx_log_t *log);
static void ngx_http_urlstore_write_done(ngx_event_t *ev);
static int ngx_http_urlstore_write_group(ngx_http_urlstore_persist_t *p,
    us_store_t *store, us_tail_t *tail, us_disk_error_t *e);
static void ngx_http_urlstore_sync_thread(void *data, ngx_log_t *log);
static void ngx_http_urlstore_sync_done(ngx_event_t *ev);
static void ngx_http_urlstore_open(ngx_http_urlstore_persist_t *p,
    us_store_t *store);
static void ngx_http_urlstore_write_failed(ngx_http_urlstore_persist_t *p,
    int rc, us_disk_error_t *e);


void
ngx_http_urlstore_tail_get(ngx_http_urlstore_persist_sh_t *sh,
    us_tail_t *tail)
{
    ngx_atomic_uint_t  at;

    do {
        /* acquire: the tail was stored before its number */

        at = __atomic_load_n(&sh->tail_at, __ATOMIC_ACQUIRE);
        *tail = sh->tail[at & 1];

        /*
         * Acquire: the copy is made before the number is read again.  It is
         * whole if that is the same: the writer is at most in the other one.
         */

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&sh->tail_at, __ATOMIC_RELAXED) != at);
}


void
ngx_http_urlstore_tail_set(ngx_http_urlstore_persist_sh_t *sh,
    const us_tail_t *tail)
{
    ngx_atomic_uint_t  next;

    next = sh->tail_at + 1;
    sh->tail[next & 1] = *tail;

    us_fault(US_FAULT_TAIL);

    /* release: whoever reads the number finds the whole tail */

    __atomic_store_n(&sh->tail_at, next, __ATOMIC_RELEASE);
}


/* starts a writer if there is something to write and nobody does */

void
ngx_http_urlstore_write(ngx_http_urlstore_persist_t *p)
{
    us_tail_t                        tail;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;

    if (p->orphan || sh->lost || sh->state != NGX_HTTP_URLSTORE_READY
        || p->jobs[NGX_HTTP_URLSTORE_WRITER].active)
    {
        return;
    }

    if (sh->stalled
        && ngx_http_urlstore_ms() - sh->stalled_at < NGX_HTTP_URLSTORE_STALL)
    {
        return;
    }

    ngx_http_urlstore_tail_get(sh, &tail);

    if (us_store_published(p->zone->store) == tail.lsn
        && us_store_written(p->zone->store) == tail.lsn
        && (p->sync != NGX_HTTP_URLSTORE_SYNC_ALWAYS
            || us_store_durable(p->zone->store) == tail.lsn))
    {
        return;
    }

    if (ngx_http_urlstore_role_take(p, NGX_HTTP_URLSTORE_WRITER) == NGX_OK) {
        ngx_http_urlstore_open(p, p->zone->store);
        (void) ngx_http_urlstore_job_start(p, NGX_HTTP_URLSTORE_WRITER,
                                           ngx_http_urlstore_write_thread,
                                           ngx_http_urlstore_write_done);
    }
}


static void
ngx_http_urlstore_write_thread(void *data, ngx_log_t *log)
{
    ngx_http_urlstore_job_t *job = *(ngx_http_urlstore_job_t **) data;

    int                              rc;
    uint64_t                         start;
    us_tail_t                        tail;
    us_store_t                      *store;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = job->data;
    sh = p->sh;
    store = p->zone->store;

    start = ngx_http_urlstore_ms();

    ngx_http_urlstore_tail_get(sh, &tail);

    rc = us_writer_attach(&p->writer, &tail);

    /* what a killed writer has written and not told */

    if (rc == 0 && us_store_written(store) < tail.lsn) {
        sh->written_ids = tail.ids;
        us_store_set_written(store, tail.lsn);
    }

    while (rc == 0) {
        rc = ngx_http_urlstore_write_group(p, store, &tail, &job->error);

        if (rc == 0
            && (us_store_published(store) == tail.lsn
                || ngx_http_urlstore_ms() - start > NGX_HTTP_URLSTORE_TURN))
        {
            break;
        }
    }

    if (rc != 0) {
        if (job->error.text[0] == '\0') {
            job->error = p->writer.error;
        }

        ngx_http_urlstore_write_failed(p, rc, &job->error);
        job->level = NGX_LOG_ALERT;

    } else if (sh->stalled) {
        sh->stalled = 0;
        ngx_atomic_fetch_add(&sh->version, 1);
        us_disk_fail(&job->note, 0, "the disk takes writes again");
    }

    ngx_http_urlstore_role_release(p, NGX_HTTP_URLSTORE_WRITER);
}


/* one group: some appends, and a sync if that is what answers wait for */

static int
ngx_http_urlstore_write_group(ngx_http_urlstore_persist_t *p,
    us_store_t *store, us_tail_t *tail, us_disk_error_t *e)
{
    int                              rc;
    uint64_t                         lsn;
    us_str_t                         pieces[2];
    ngx_uint_t                       i;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;

    for (i = 0; i < NGX_HTTP_URLSTORE_GROUPS; i++) {

        lsn = tail->lsn;

        if (us_store_published(store) == lsn) {
            break;
        }

        us_store_ops(store, lsn, pieces);

        rc = us_writer_append(&p->writer, tail, pieces,
                              us_store_durable(store));

        ngx_http_urlstore_tail_set(sh, tail);

        if (rc != 0) {
            *e = p->writer.error;
            return rc;
        }

        if (tail->lsn == lsn) {
            us_disk_fail(e, 0, "half an operation at LSN %llu",
                         (unsigned long long) lsn);
            return US_WRITER_LOST;
        }

        ngx_atomic_fetch_add(&sh->writes, 1);

        us_writer_mark(&p->writer, tail->lsn, us_store_durable(store),
                       tail->ids);

        if (p->sync != NGX_HTTP_URLSTORE_SYNC_ALWAYS) {
            (void) ngx_atomic_cmp_set(&sh->dirty_since, 0,
                                      ngx_http_urlstore_ms());
        }

        /* the ids first: who is told by the LSN is believed by them */

        sh->written_ids = tail->ids;
        us_store_set_written(store, tail->lsn);
    }

    if (p->sync != NGX_HTTP_URLSTORE_SYNC_ALWAYS
        || us_store_durable(store) == tail->lsn)
    {
        return 0;
    }

    rc = us_writer_sync(&p->writer, tail);

    if (rc != 0) {
        *e = p->writer.error;
        return rc;
    }

    ngx_atomic_fetch_add(&sh->syncs, 1);

    sh->durable_ids = tail->ids;
    us_store_set_durable(store, tail->lsn);

    return 0;
}


static void
ngx_http_urlstore_write_done(ngx_event_t *ev)
{
    ngx_http_urlstore_job_t      *job = ev->data;
    ngx_http_urlstore_persist_t  *p;

    p = job->data;
    job->active = 0;

    ngx_http_urlstore_job_log(job);
    ngx_http_urlstore_park_wake(p);
    ngx_http_urlstore_write(p);
}


/*
 * sync=TIME: if the oldest byte is old enough; or if nobody says how old it
 * is, because he who was going to sync it was killed.
 */

void
ngx_http_urlstore_sync(ngx_http_urlstore_persist_t *p)
{
    uint64_t                         since, now;
    ngx_msec_t                       margin;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;
    since = sh->dirty_since;

    if (p->sync != NGX_HTTP_URLSTORE_SYNC_TIME || p->orphan || sh->lost
        || sh->state != NGX_HTTP_URLSTORE_READY
        || p->jobs[NGX_HTTP_URLSTORE_SYNCER].active)
    {
        return;
    }

    if (since == 0
        && us_store_durable(p->zone->store) >= us_store_written(p->zone->store))
    {
        return;
    }

    /* so early that it is over, as a rule, when it has to be */

    margin = ngx_min(p->interval / 2, 3 * NGX_HTTP_URLSTORE_TICK);
    now = ngx_http_urlstore_ms();

    if (since && now < since + p->interval - margin) {
        return;
    }

    if (ngx_http_urlstore_role_take(p, NGX_HTTP_URLSTORE_SYNCER) == NGX_OK) {
        ngx_http_urlstore_open(p, p->zone->store);
        (void) ngx_http_urlstore_job_start(p, NGX_HTTP_URLSTORE_SYNCER,
                                           ngx_http_urlstore_sync_thread,
                                           ngx_http_urlstore_sync_done);
    }
}


static void
ngx_http_urlstore_sync_thread(void *data, ngx_log_t *log)
{
    ngx_http_urlstore_job_t *job = *(ngx_http_urlstore_job_t **) data;

    us_tail_t                        tail;
    us_store_t                      *store;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = job->data;
    sh = p->sh;
    store = p->zone->store;

    /* first: what is written from here on makes it dirty again */

    sh->dirty_since = 0;
    ngx_memory_barrier();

    ngx_http_urlstore_tail_get(sh, &tail);

    if (us_writer_sync(&p->syncer, &tail) != 0) {
        job->error = p->syncer.error;
        job->level = NGX_LOG_ALERT;
        ngx_http_urlstore_write_failed(p, US_WRITER_LOST, &job->error);

    } else {
        ngx_atomic_fetch_add(&sh->syncs, 1);
        sh->durable_ids = tail.ids;
        us_store_set_durable(store, tail.lsn);
    }

    ngx_http_urlstore_role_release(p, NGX_HTTP_URLSTORE_SYNCER);
}


static void
ngx_http_urlstore_sync_done(ngx_event_t *ev)
{
    ngx_http_urlstore_job_t *job = ev->data;

    job->active = 0;

    ngx_http_urlstore_job_log(job);
    ngx_http_urlstore_park_wake(job->data);
}


/*
 * Uuid and epoch are known once the zone is loaded.  In the event loop, before
 * a thread is started: the writer's and the syncer's may run at once.
 */

static void
ngx_http_urlstore_open(ngx_http_urlstore_persist_t *p, us_store_t *store)
{
    char             boot[US_BOOT_ID + 1];
    us_store_conf_t  conf;

    if (p->opened) {
        return;
    }

    p->opened = 1;

    us_manifest_boot(boot);
    us_store_conf(store, &conf);

    us_writer_init(&p->writer, p->dir->dirfd, conf.uuid, conf.epoch, boot,
                   &us_data_ops);
    us_writer_init(&p->syncer, p->dir->dirfd, conf.uuid, conf.epoch, boot,
                   &us_data_ops);
}


/* the first one who fails says why */

static void
ngx_http_urlstore_write_failed(ngx_http_urlstore_persist_t *p, int rc,
    us_disk_error_t *e)
{
    ngx_uint_t                       first;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;

    ngx_atomic_fetch_add(&sh->errors, 1);

    sh->stalled_at = ngx_http_urlstore_ms();
    first = !sh->stalled && !sh->lost;

    if (first || rc == US_WRITER_LOST) {
        ngx_cpystrn(sh->reason, (u_char *) e->text,
                    NGX_HTTP_URLSTORE_TROUBLE);
        ngx_memory_barrier();
    }

    if (rc == US_WRITER_LOST) {
        sh->lost = 1;
        ngx_atomic_fetch_add(&sh->version, 1);
        return;
    }

    if (first) {
        sh->stalled = 1;
        ngx_atomic_fetch_add(&sh->version, 1);

    } else {
        /* it has been said */
        e->text[0] = '\0';
    }
}


ngx_int_t
ngx_http_urlstore_flush(ngx_http_urlstore_persist_t *p, us_store_t *store,
    ngx_msec_t bound)
{
    uint64_t         start, before;
    us_tail_t        tail;
    us_disk_error_t  e;

    start = ngx_http_urlstore_ms();

    ngx_http_urlstore_open(p, store);
    ngx_http_urlstore_tail_get(p->sh, &tail);

    if (us_writer_attach(&p->writer, &tail) != 0) {
        return 0;
    }

    while (us_store_published(store) != tail.lsn) {
        before = tail.lsn;

        if (ngx_http_urlstore_write_group(p, store, &tail, &e) != 0
            || tail.lsn == before
            || ngx_http_urlstore_ms() - start > bound)
        {
            return 0;
        }
    }

    if (us_writer_sync(&p->writer, &tail) != 0) {
        return 0;
    }

    us_store_set_durable(store, tail.lsn);

    return us_recovery_clean(p->dir->dirfd, tail.lsn, tail.ids, &e) == 0;
}
