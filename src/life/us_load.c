
/*
 * The loader: snapshot and journal into the store, in a thread, while the
 * service answers what it can.
 *
 *     LOADING    snapshot and journal are applied, up to their end as it is
 *                now
 *     FOLLOWING  another server owns the directory.  Each job tries its lock.
 *                Once we have the lock, no other process writes, and the rest
 *                of the journal is applied.  Until then a job reads on only if
 *                the owner has deleted something.  The role stays with the
 *                process, which holds a lock on the files that it has still to
 *                read
 *     READY      the directory is ours, the journal's end is settled, and the
 *                manifest records both
 *     TOO_SMALL  the zone has no room for the data; the reason names a SIZE
 *                that suffices, and no file was changed
 *
 * The loader gives the store its epoch: that of the manifest, or one more if
 * answered ids may have been lost (us_recovery.h).
 *
 * A job never waits.  A later job does what one cannot do now.
 *
 * A loader that is killed while it applies has left a store that is no
 * longer a prefix of anything.  The next one empties it first:
 *
 *     1. state LOADING, a new version, `emptying` is that version
 *     2. each process closes its handle and acts upon the version
 *     3. when all have, the memory is cleared and formatted, `emptying` is
 *        zero, and each process opens it by the new generation
 *
 * so that nobody ever reads memory that is being cleared.
 */


#include "us_job.h"
#include "../journal/us_dir.h"
#include "../store/us_shard.h"
#include "../url/us_normalize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>


#define US_LOAD_RETRY     1000        /* ms after a fault that may pass */
#define US_LOAD_AGAIN     200         /* ms until the end is read again */
#define US_LOAD_IDS       65536       /* looked at between two questions */
#define US_LOAD_PENDING   UINT64_MAX  /* `emptying`, its version comes next */


typedef struct {
    us_life_t        *l;
    us_job_t         *job;
    us_store_t       *store;
    us_recovery_t     recovery;
    int               own;            /* the directory is ours */
    int               past;           /* the snapshot has been applied */
} us_load_t;


/*
 * The lock belongs to an open file that all processes of this master share,
 * so trying it again succeeds once it is ours.
 */

static int
us_load_own(us_life_t *l)
{
    return !l->conf.store.lookup && flock(l->lockfd, LOCK_EX|LOCK_NB) == 0;
}


/* once, between the snapshot and the journal: us_job.h counts from there */

static void
us_load_past(us_load_t *ld)
{
    us_store_info_t  info;

    if (!ld->past) {
        ld->past = 1;
        us_store_info(ld->store, &info);
        us_release(&ld->l->sh->snapshot_deleted, info.deleted);
    }
}


/* a map that comes from here on was adopted since the store was restored */

static void
us_load_restored(us_load_t *ld)
{
    us_recovery_t  *r;

    r = &ld->recovery;

    if (r->manifest.has_restored && r->lsn >= r->manifest.restored) {
        us_store_map_restored(ld->store);
    }
}


static int
us_load_apply(void *data, const uint8_t *p, size_t len)
{
    us_load_t *ld = data;

    int         rc;
    us_life_t  *l;

    l = ld->l;

    if (l->env.stopping(l->env.data)) {
        return US_RECOVERY_STOP;
    }

    if (ld->recovery.started) {
        us_load_past(ld);
        us_load_restored(ld);
    }

    /* while FOLLOWING, requests read the store: it takes the lock */

    rc = us_data_apply(ld->store, p, len);

    us_release(&l->sh->load_done, ld->recovery.done);

    return rc;
}


/* the manifest, and whether the store can hold what it names */

static us_recovery_rc_t
us_load_open(us_load_t *ld)
{
    char              boot[US_BOOT_ID + 1];
    us_life_t        *l;
    us_recovery_t    *r;
    us_store_conf_t   conf;
    us_recovery_rc_t  rc;

    l = ld->l;
    r = &ld->recovery;

    us_manifest_boot(boot);

    rc = us_recovery_open(r, l->dirfd, &us_data_ops, us_load_apply, ld, boot);

    if (rc != US_RECOVERY_OK) {
        return rc;
    }

    us_store_conf(ld->store, &conf);

    return us_data_differs(&r->manifest, &conf, &r->error) == 0
           ? US_RECOVERY_OK : US_RECOVERY_FAILED;
}


/*
 * A fault that may pass is logged once, and loading is tried again.  What was
 * applied so far stays, if the next loader can go on from it; else that loader
 * empties the store.  A file that is missing may have been removed by the
 * owner, after this process had looked which there are: then all is read once
 * more.
 */

static void
us_load_failed(us_load_t *ld, us_life_state_t state)
{
    int               removed, following;
    us_life_t        *l;
    us_share_t       *sh;
    us_disk_error_t  *e;

    l = ld->l;
    sh = l->sh;
    e = &ld->recovery.error;

    following = us_share_state(sh) == US_LIFE_FOLLOWING;
    removed = e->err == ENOENT && (!ld->own || following);

    if (us_disk_passing(e->err) || removed) {
        us_release(&sh->load_next, us_job_now(l) + US_LOAD_RETRY);

        /* whole blocks were applied: others may go on reading, and we later */

        if (removed) {
            us_release(&sh->load_applying, 1);

        } else if (following) {
            us_release(&sh->load_applying, 0);
        }

        if (us_share_reason(sh, e->text)) {
            us_job_say(ld->job, US_SAY_ERROR, "%s; it is tried again",
                       e->text);
        }

        return;
    }

    us_job_say(ld->job, US_SAY_EMERG, "%s", e->text);
    us_share_set_state(sh, state, e->text);
    us_release(&sh->load_applying, 0);
}


/* what was read, and from where */

static void
us_load_say(us_load_t *ld, const char *what)
{
    char            snapshot[64];
    uint64_t        lsn;
    us_recovery_t  *r;

    r = &ld->recovery;
    lsn = r->manifest.has_snapshot ? r->manifest.snapshot : 0;

    (void) snprintf(snapshot, sizeof(snapshot), lsn ? "a snapshot up to LSN %"
                    PRIu64 ", then" : "no snapshot,", lsn);

    us_job_say(ld->job, US_SAY_NOTICE, "%s: %" PRIu64 " ids, epoch %" PRIu64
               "; from %s %" PRIu64 " bytes of journal, in %" PRIu64 " ms",
               what, r->ids, r->manifest.epoch + r->lost, snapshot,
               r->lsn - lsn,
               us_job_now(ld->l) - us_acquire(&ld->l->sh->load_began));
}


/*
 * The store has all, and the directory is opened for writing.  If that fails,
 * for want of room perhaps, the writer does it later, before all else.
 */

static void
us_load_settle(us_load_t *ld, const us_tail_t *tail)
{
    us_life_t        *l;
    us_share_t       *sh;
    us_disk_error_t   e;

    l = ld->l;
    sh = l->sh;

    us_release(&sh->written_ids, tail->ids);
    us_release(&sh->durable_ids, tail->ids);
    us_watch_append(&sh->watch, tail->lsn);
    us_watch_durable(&sh->watch, tail->lsn);
    us_share_set_tail(sh, tail);

    if (us_data_settle(ld->store, l->dirfd, tail, l->conf.sync_name, &e) != 0)
    {
        us_release(&sh->unsettled, 1);

        if (us_share_stall(sh, US_ROLE_WRITER, us_job_now(l), e.text)) {
            us_job_say(ld->job, US_SAY_ALERT, "%s", e.text);
        }
    }

    us_store_unfence(l->mem);
    us_share_set_state(sh, US_LIFE_READY, NULL);
}


/*
 * The directory's signature is another one, and becomes that of this version.
 * No key has to be made anew for it: see us_store_hash().  Counts the URLs that
 * it changes.  0; or -1: the process is stopping, or us_load_failed().
 */

static int
us_load_changed(us_load_t *ld)
{
    int               stop;
    char              was[US_MANIFEST_SETTINGS];
    us_str_t          now;
    uint64_t          id, n, changed;
    us_life_t        *l;
    us_norm_t        *own;
    us_norm_ws_t     *ws;
    const us_norm_t  *norm;

    l = ld->l;
    now = l->conf.store.norm;

    if (us_manifest_setting(&ld->recovery.manifest, "norm", was, sizeof(was))
        == -1 || us_str_compare(us_str_of(was), now) == 0)
    {
        return 0;
    }

    /* the zone's, which has exceptions of "www.", or one without them */

    own = l->conf.norm ? NULL : us_norm_of(now);
    norm = l->conf.norm ? l->conf.norm : own;
    ws = norm ? us_norm_ws_create(norm) : NULL;
    n = us_store_next_id(ld->store);
    changed = 0;
    stop = 0;

    if (ws == NULL) {
        us_norm_destroy(own);
        us_disk_fail(&ld->recovery.error, ENOMEM, "normalizer");
        us_load_failed(ld, US_LIFE_FAILED);
        return -1;
    }

    for (id = 0; !stop && id < n; id++) {
        changed += us_data_changed(ld->store, norm, ws, id);
        stop = id % US_LOAD_IDS == 0 && us_job_stopping(l);
    }

    us_norm_ws_destroy(ws);
    us_norm_destroy(own);

    if (stop) {
        return -1;
    }

    us_release(&l->sh->changed, changed);

    us_job_say(ld->job, US_SAY_NOTICE, "keys made by \"%s\" are those of "
               "\"%.*s\" now; of %" PRIu64 " URLs \"www.\" counts otherwise "
               "than before", was, (int) now.len, (const char *) now.data,
               changed);

    return 0;
}


/* everything is applied and the directory is ours; -1: it is not READY */

static int
us_load_ready(us_load_t *ld)
{
    us_share_t     *sh;
    us_recovery_t  *r;

    sh = ld->l->sh;
    r = &ld->recovery;

    if (us_store_next_id(ld->store) != r->ids) {
        us_disk_fail(&r->error, 0, "the files give %" PRIu64 " ids, the store %"
                     PRIu64, r->ids, us_store_next_id(ld->store));
        us_load_failed(ld, US_LIFE_DAMAGED);
        return -1;
    }

    (void) us_store_set_lsn(ld->store, r->lsn);

    if (us_load_changed(ld) == -1) {
        return -1;
    }

    us_load_restored(ld);

    us_store_set_identity(ld->store, r->manifest.uuid,
                          r->manifest.epoch + r->lost);

    us_snapshot_counts(ld->l, &r->manifest);
    us_release(&sh->cut_bytes, r->cut);
    us_release(&sh->lost_ids, r->lost_ids);

    if (r->instead.text[0]) {
        us_job_say(ld->job, US_SAY_WARN, "%.400s; a snapshot replaces it",
                   r->instead.text);
        us_release(&sh->snapshot_now, 1);
    }

    if (r->cut) {
        us_job_say(ld->job, US_SAY_WARN, "the journal's torn end was cut: %"
                   PRIu64 " bytes, %" PRIu64 " ids that had been answered; "
                   "%.280s", r->cut, r->lost_ids, r->torn.text);
    }

    if (r->lost) {
        us_job_say(ld->job, US_SAY_WARN, "answered ids may have been lost, by "
                   "a failure of the machine or of its disk: epoch %" PRIu64 " "
                   "begins, at %" PRIu64 " ids", r->manifest.epoch + 1, r->ids);
    }

    us_load_say(ld, "loaded, and writable");

    us_load_settle(ld, &r->tail);

    us_dir_clean(ld->l->dirfd);

    return 0;
}


static void
us_load_run(us_load_t *ld)
{
    us_share_t        *sh;
    us_recovery_t     *r;
    us_recovery_rc_t   rc;

    sh = ld->l->sh;
    r = &ld->recovery;

    us_release(&sh->load_total, r->total);
    us_release(&sh->load_applying, 1);

    rc = us_recovery_run(r, ld->own);

    if (rc == US_RECOVERY_STOP) {
        return;
    }

    us_load_past(ld);

    us_release(&sh->load_lsn, r->lsn);
    us_release(&sh->load_ids, r->ids);

    if (rc == US_RECOVERY_NO_ROOM) {

        /*
         * While FOLLOWING, the index has grown URL by URL, which takes more
         * room than building it: all is loaded once more.
         */

        if (us_share_state(sh) == US_LIFE_FOLLOWING) {
            us_release(&sh->load_next, us_job_now(ld->l) + US_LOAD_RETRY);
            return;
        }

        us_load_small(ld->l, ld->store, r->error.text, sizeof(r->error.text));
        r->error.err = 0;
        us_load_failed(ld, US_LIFE_TOO_SMALL);
        return;
    }

    if (rc != US_RECOVERY_OK) {
        (void) us_store_set_lsn(ld->store, r->lsn);
        us_load_failed(ld, US_LIFE_DAMAGED);
        return;
    }

    if (ld->l->conf.store.lookup) {
        (void) us_store_set_lsn(ld->store, r->lsn);
        us_load_say(ld, "loaded for look-ups");
        us_share_set_state(sh, US_LIFE_LOOKUP, NULL);

    } else if (ld->own) {

        if (us_load_ready(ld) == -1) {
            return;
        }

    } else {

        /*
         * The next loader goes on from here only by this state.  If this one
         * is killed before the state is set, nothing must be applied twice.
         */

        if (us_share_state(sh) != US_LIFE_FOLLOWING) {
            us_load_say(ld, "loaded, and another server owns the directory");
        }

        us_share_set_state(sh, US_LIFE_FOLLOWING, NULL);
        us_release(&sh->load_next, us_job_now(ld->l) + US_LOAD_AGAIN);
    }

    us_release(&sh->load_applying, 0);
}


static void
us_load_begin(us_load_t *ld)
{
    us_tail_t        tail;
    us_store_conf_t  conf;

    /* first: after it, the files that another owner has made are there */

    ld->own = us_load_own(ld->l);

    switch (us_load_open(ld)) {

    case US_RECOVERY_FRESH:

        /* nothing there: it is ours to make, or its owner is making it */

        if (!ld->own) {
            return;
        }

        /*
         * One that nobody but root may enter looks empty, too: other files
         * may lie there, so nothing is denied.
         */

        if (us_write_look(ld->l, &ld->recovery.error) != 0) {
            us_load_failed(ld, US_LIFE_FAILED);
            return;
        }

        us_store_conf(ld->store, &conf);

        us_store_set_identity(ld->store, conf.uuid, 1);
        (void) us_store_set_lsn(ld->store, 0);

        memset(&tail, 0, sizeof(us_tail_t));

        us_job_say(ld->job, US_SAY_NOTICE, "a new store begins, epoch 1");

        us_load_settle(ld, &tail);

        return;

    case US_RECOVERY_OK:
        us_store_set_identity(ld->store, ld->recovery.manifest.uuid,
                              ld->recovery.manifest.epoch);
        us_load_run(ld);
        return;

    default:
        us_load_failed(ld, US_LIFE_FAILED);
        return;
    }
}


static void
us_load_job(us_job_t *job)
{
    us_load_t        ld;
    us_life_t       *l;
    us_share_t      *sh;
    us_manifest_t    m;
    us_life_state_t  state;
    us_disk_error_t  e;

    l = job->life;
    sh = l->sh;

    memset(&ld, 0, sizeof(us_load_t));
    ld.l = l;
    ld.job = job;
    ld.recovery.readers = -1;

    state = us_share_state(sh);

    /*
     * The role is ours only since now.  Between the look at the state that
     * led here and this one, another process may have loaded all and let the
     * role go.
     */

    if (state != US_LIFE_COLD && state != US_LIFE_LOADING
        && state != US_LIFE_LOOKUP && state != US_LIFE_FOLLOWING)
    {
        return;
    }

    if (state == US_LIFE_LOOKUP) {
        us_release(&sh->load_wanted, 0);

        /* is there something, before what is in memory is given up? */

        if (us_manifest_read(l->dirfd, &m, &e) != US_MANIFEST_OK
            || us_data_differs(&m, &l->conf.store, &e) != 0)
        {
            us_job_say(job, US_SAY_ERROR, "%s", e.text);
            return;
        }
    }

    if (state == US_LIFE_FOLLOWING && us_acquire(&sh->load_applying) == 0
        && l->readers != -1 && us_life_current(l) && !us_load_own(l))
    {
        job->stays = 1;
        return;
    }

    if ((state == US_LIFE_LOOKUP || us_acquire(&sh->load_applying)
         || us_acquire(&sh->emptying))
        && us_load_empty(l) != 0)
    {
        return;
    }

    ld.store = us_store_open(l->mem, &l->lock);

    if (ld.store == NULL) {
        us_release(&sh->load_next, us_job_now(l) + US_LOAD_RETRY);
        return;
    }

    if (us_share_state(sh) != US_LIFE_FOLLOWING) {
        us_share_set_state(sh, US_LIFE_LOADING, NULL);
        us_release(&sh->load_began, us_job_now(l));
        us_load_begin(&ld);
        us_release(&sh->load_ms,
                   us_job_now(l) - us_acquire(&sh->load_began));

    } else {
        ld.own = us_load_own(l);

        if (us_load_open(&ld) == US_RECOVERY_OK) {

            /* continues where the loader before has stopped */

            ld.recovery.started = 1;
            ld.recovery.lsn = us_acquire(&sh->load_lsn);
            ld.recovery.ids = us_acquire(&sh->load_ids);
            ld.past = 1;

            us_load_run(&ld);

        } else {
            us_load_failed(&ld, US_LIFE_DAMAGED);
        }
    }

    us_store_close(ld.store);

    /* the lock on the files is kept as long as they are to be read on */

    if (us_share_state(l->sh) == US_LIFE_FOLLOWING) {
        job->stays = 1;

        if (l->readers == -1) {
            l->readers = ld.recovery.readers;
            ld.recovery.readers = -1;
        }

    } else if (l->readers != -1) {
        (void) close(l->readers);
        l->readers = -1;
    }

    us_recovery_close(&ld.recovery);
}


void
us_load(us_life_t *l)
{
    us_share_t  *sh;

    sh = l->sh;

    if (us_job_stopping(l) || us_job_now(l) < us_acquire(&sh->load_next)
        || (us_share_state(sh) == US_LIFE_LOOKUP
            && us_acquire(&sh->load_wanted) == 0))
    {
        return;
    }

    us_job_start(l, US_ROLE_LOADER, us_load_job, NULL);
}


void
us_load_small(const us_life_t *l, us_store_t *s, char *text, size_t len)
{
    char      need[40];
    uint64_t  size, unit;

    size = us_store_size_needed(s, l->conf.store.ring != 0);
    (void) strcpy(need, "none for which there is memory");

    if (size) {

        /* the zone's own part grows with it, and not faster */

        if (l->conf.zone) {
            size = (uint64_t) ((double) size * (double) l->conf.zone
                               / (double) l->size);
        }

        unit = size < (uint64_t) 64 << 20 ? 1024 : 1024 * 1024;
        (void) snprintf(need, sizeof(need), "%" PRIu64 "%c", size / unit + 1,
                        unit == 1024 ? 'k' : 'm');
    }

    (void) snprintf(text, len, "SIZE is too small for the %sdata: %s suffices",
                    l->conf.follow ? "primary's " : "", need);
}


int
us_load_empty(us_life_t *l)
{
    us_share_t       *sh;
    us_store_conf_t   conf;

    sh = l->sh;
    conf = l->conf.store;
    conf.fenced = 1;

    if (us_acquire(&sh->emptying) == 0
        || us_acquire(&sh->emptying) == US_LOAD_PENDING)
    {
        /*
         * Stored before the version is made: a process that knows the version
         * has seen it.
         */

        us_release(&sh->emptying, US_LOAD_PENDING);
        us_share_set_state(sh, US_LIFE_LOADING, NULL);
        us_release(&sh->emptying, us_share_change(sh));
    }

    if (!us_members_know(sh, us_acquire(&sh->emptying))
        || getrandom(conf.hash_key, 16, 0) != 16)
    {
        return -1;
    }

    us_release(&sh->load_applying, 1);

    /*
     * The first word shows whether the memory was removed: the user mode of
     * qemu ignores the advice, and reports success.
     */

    us_release(l->mem, 1);

    if (madvise(l->mem, l->size, MADV_REMOVE) == -1 || us_acquire(l->mem)) {
        memset(l->mem, 0, l->size);
    }

    if (us_store_format(l->mem, l->size, &conf) != 0) {
        return -1;
    }

    us_release(&sh->load_done, 0);
    us_release(&sh->load_lsn, 0);
    us_release(&sh->load_ids, 0);
    us_release(&sh->load_applying, 0);

    (void) __atomic_add_fetch(&sh->load_generation, 1, __ATOMIC_SEQ_CST);

    us_release(&sh->emptying, 0);
    (void) us_share_change(sh);

    return 0;
}
