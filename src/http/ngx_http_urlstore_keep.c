
/*
 * Keeping the directory: snapshots while the service runs, and scrubbing.
 *
 * A snapshot is taken when the journal has grown by a quarter of the directory,
 * at least by snapshot=SIZE: what was deleted, and marks that were
 * set and cleared, then leave the disk, and the segments before it go.
 *
 * A scrub reads what is sealed, at most NGX_HTTP_URLSTORE_SCRUB_RATE bytes a
 * second.  What it finds damaged is still whole in memory: a snapshot is
 * taken at once, and with it the damaged file leaves the disk.
 */


#include "ngx_http_urlstore_persist.h"
#include "../journal/us_dir.h"


#define NGX_HTTP_URLSTORE_SCRUB_RATE  (32 * 1024 * 1024)
#define NGX_HTTP_URLSTORE_SCRUB_STEP  (1024 * 1024)
#define NGX_HTTP_URLSTORE_KEEP_RETRY  (60 * 1000)   /* ms after a failure */
#define NGX_HTTP_URLSTORE_KEEP_WAIT   10000         /* ms for an LSN */


typedef struct {
    ngx_http_urlstore_persist_t    *p;
    us_store_t                     *store;
    us_writer_t                     sync;
} ngx_http_urlstore_keep_t;


static void ngx_http_urlstore_snapshot_thread(void *data, ngx_log_t *log);
static int ngx_http_urlstore_snapshot_wait(void *data, uint64_t lsn);
static void ngx_http_urlstore_scrub_thread(void *data, ngx_log_t *log);
static ngx_int_t ngx_http_urlstore_scrub_file(ngx_http_urlstore_persist_t *p,
    us_segment_kind_t kind, uint64_t lsn, us_disk_error_t *e);
static void ngx_http_urlstore_keep_done(ngx_event_t *ev);


void
ngx_http_urlstore_keep(ngx_http_urlstore_persist_t *p)
{
    uint64_t                         now, grown;
    us_tail_t                        tail;
    ngx_uint_t                       snapshot, scrub;
    ngx_http_urlstore_persist_sh_t  *sh;

    sh = p->sh;

    if (p->orphan || sh->lost || sh->stalled || ngx_http_urlstore_stopping()
        || p->jobs[NGX_HTTP_URLSTORE_KEEPER].active)
    {
        return;
    }

    ngx_http_urlstore_tail_get(sh, &tail);

    now = ngx_http_urlstore_ms();
    grown = tail.lsn - sh->snapshot_lsn;

    /* one that is to repair may have nothing new: it replaces the last one */

    snapshot = p->snapshot && now >= sh->snapshot_next
               && (sh->snapshot_now
                   || (grown >= (uint64_t) p->snapshot
                       && grown * 4 >= sh->snapshot_size));

    if (sh->scrub_next == 0) {
        sh->scrub_next = now + p->scrub;
    }

    scrub = p->scrub && now >= sh->scrub_next;

    if (!snapshot && !scrub) {
        return;
    }

    if (ngx_http_urlstore_role_take(p, NGX_HTTP_URLSTORE_KEEPER) == NGX_OK) {
        (void) ngx_http_urlstore_job_start(p, NGX_HTTP_URLSTORE_KEEPER,
                                   snapshot
                                   ? ngx_http_urlstore_snapshot_thread
                                   : ngx_http_urlstore_scrub_thread,
                                   ngx_http_urlstore_keep_done);
    }
}


static void
ngx_http_urlstore_keep_done(ngx_event_t *ev)
{
    ngx_http_urlstore_job_t *job = ev->data;

    job->active = 0;

    ngx_http_urlstore_job_log(job);
}


static void
ngx_http_urlstore_snapshot_thread(void *data, ngx_log_t *log)
{
    ngx_http_urlstore_job_t *job = *(ngx_http_urlstore_job_t **) data;

    us_manifest_t                    m;
    us_store_lock_t                  lock;
    us_store_conf_t                  conf;
    ngx_http_urlstore_keep_t         k;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = job->data;
    sh = p->sh;
    k.p = p;

    ngx_http_urlstore_zone_lock(p->zone, &lock);
    k.store = us_store_open(p->zone->sh->mem, &lock);

    if (k.store == NULL) {
        goto done;
    }

    us_store_conf(k.store, &conf);
    us_writer_init(&k.sync, p->dir->dirfd, conf.uuid, conf.epoch, "",
                   &us_data_ops);

    if (us_data_snapshot(k.store, p->dir->dirfd,
                         ngx_http_urlstore_snapshot_wait, &k, &job->error)
        == 0
        && us_manifest_read(p->dir->dirfd, &m, &job->error) == US_MANIFEST_OK)
    {
        sh->snapshot_lsn = m.snapshot;
        sh->snapshot_size = us_dir_bytes(p->dir->dirfd);
        sh->snapshot_now = 0;
        sh->snapshot_next = 0;
        ngx_atomic_fetch_add(&sh->snapshots, 1);

        us_disk_fail(&job->error, 0, "snapshot up to LSN %llu, %llu bytes in "
                     "the directory", (unsigned long long) m.snapshot,
                     (unsigned long long) sh->snapshot_size);
        job->level = NGX_LOG_NOTICE;

    } else {
        sh->snapshot_next = ngx_http_urlstore_ms()
                            + NGX_HTTP_URLSTORE_KEEP_RETRY;
        job->level = ngx_http_urlstore_stopping() ? NGX_LOG_NOTICE
                                                   : NGX_LOG_ERR;
    }

    us_writer_close(&k.sync);
    us_store_close(k.store);

done:

    ngx_http_urlstore_role_release(p, NGX_HTTP_URLSTORE_KEEPER);
}


/* us_data_wait_pt: an LSN that is to be durable, or 0: may it go on? */

static int
ngx_http_urlstore_snapshot_wait(void *data, uint64_t lsn)
{
    ngx_http_urlstore_keep_t *k = data;

    uint64_t                      start;
    us_tail_t                     tail;
    ngx_http_urlstore_persist_t  *p;

    p = k->p;

    start = ngx_http_urlstore_ms();

    do {
        if (ngx_http_urlstore_stopping() || p->sh->lost) {
            return -1;
        }

        if (lsn == 0) {
            return 0;
        }

        ngx_http_urlstore_tail_get(p->sh, &tail);

        if (tail.lsn >= lsn) {

            if (us_writer_sync(&k->sync, &tail) == 0) {
                return 0;
            }

            /* the writer will find the same: here it is only one snapshot */
            return -1;
        }

        ngx_msleep(1);

    } while (ngx_http_urlstore_ms() - start < NGX_HTTP_URLSTORE_KEEP_WAIT);

    return -1;
}


static void
ngx_http_urlstore_scrub_thread(void *data, ngx_log_t *log)
{
    ngx_http_urlstore_job_t *job = *(ngx_http_urlstore_job_t **) data;

    size_t                           i;
    us_dir_t                         dir;
    us_manifest_t                    m;
    ngx_int_t                        rc;
    ngx_http_urlstore_persist_t     *p;
    ngx_http_urlstore_persist_sh_t  *sh;

    p = job->data;
    sh = p->sh;

    sh->scrub_next = ngx_http_urlstore_ms() + p->scrub;

    if (us_manifest_read(p->dir->dirfd, &m, &job->error) != US_MANIFEST_OK
        || us_dir_read(p->dir->dirfd, &dir, &job->error) == -1)
    {
        job->level = NGX_LOG_ALERT;
        goto done;
    }

    rc = NGX_OK;

    if (m.has_snapshot) {
        rc = ngx_http_urlstore_scrub_file(p, US_SEGMENT_SNAPSHOT, m.snapshot,
                                          &job->error);
    }

    for (i = 0; rc == NGX_OK && i + 1 < dir.nsegments; i++) {
        rc = ngx_http_urlstore_scrub_file(p, US_SEGMENT_JOURNAL,
                                          dir.segments[i], &job->error);
    }

    if (rc == NGX_ERROR) {
        ngx_atomic_fetch_add(&sh->errors, 1);
        job->level = NGX_LOG_ALERT;

        us_disk_fail(&job->note, 0, "what is in memory is not touched by the "
                     "damage; %s", p->snapshot ? "a snapshot replaces the file"
                                               : "snapshots are off");
        sh->snapshot_now = 1;
        sh->snapshot_next = 0;
    }

    us_dir_free(&dir);

done:

    ngx_http_urlstore_role_release(p, NGX_HTTP_URLSTORE_KEEPER);
}


/* a sealed file: NGX_OK, NGX_ERROR (damaged), NGX_ABORT (told to stop) */

static ngx_int_t
ngx_http_urlstore_scrub_file(ngx_http_urlstore_persist_t *p,
    us_segment_kind_t kind, uint64_t lsn, us_disk_error_t *e)
{
    char            name[US_DISK_NAME];
    uint64_t        since;
    us_read_t       rc;
    us_block_t      b;
    us_reader_t     r;
    const uint8_t  *payload;

    us_segment_name(name, kind, lsn);

    rc = us_reader_open(&r, p->dir->dirfd, name, kind, NULL, &us_data_ops);

    /* dropped by a snapshot meanwhile */

    if (rc == US_READ_FAILED && r.error.err == NGX_ENOENT) {
        us_reader_close(&r);
        return NGX_OK;
    }

    since = 0;

    while (rc == US_READ_BLOCK) {
        rc = us_reader_next(&r, &b, &payload);

        if (r.offset - since < NGX_HTTP_URLSTORE_SCRUB_STEP) {
            continue;
        }

        ngx_atomic_fetch_add(&p->sh->scrubbed, r.offset - since);
        since = r.offset;

        ngx_msleep(NGX_HTTP_URLSTORE_SCRUB_STEP * 1000
                   / NGX_HTTP_URLSTORE_SCRUB_RATE);

        if (ngx_http_urlstore_stopping()) {
            us_reader_close(&r);
            return NGX_ABORT;
        }
    }

    ngx_atomic_fetch_add(&p->sh->scrubbed, r.offset - since);

    if (rc == US_READ_FOOTER) {
        us_reader_close(&r);
        return NGX_OK;
    }

    if (rc == US_READ_END) {
        us_disk_fail(e, 0, "\"%s\" has no footer", name);

    } else {
        *e = r.error;
    }

    us_reader_close(&r);

    return NGX_ERROR;
}
