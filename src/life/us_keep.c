
/*
 * Keeping the directory.  Only the process with this role writes the manifest.
 *
 * Marks and claims that were added to the configuration are declared in the
 * manifest first, then in the store.
 *
 * A snapshot is taken when the journal has grown enough (us_policy_due(), the
 * rule is in us_job.h), and when the loader or the writer asks for one.  It
 * replaces the segments before it: deletes, and marks that were set and
 * cleared, are no longer on the disk then.
 *
 * When records of erased URLs are gone from memory, files have them still: the
 * segments below the LSN at which that was so, and the snapshot that goes with
 * them.  The writer begins a segment at this LSN, then a snapshot is taken; an
 * erasure is done on the disk when no file from before is left.  The copy of a
 * replica has the same segments, and its job does the rest (us_replica.c).
 *
 * A scrub reads sealed files from the disk, at most US_SCRUB_RATE bytes a
 * second.  When it finds damage, the data in memory are still whole: a snapshot
 * is taken at once and replaces the damaged file.
 */


#include "us_job.h"
#include "../journal/us_dir.h"
#include "../store/us_erasures.h"

#include <errno.h>
#include <inttypes.h>


#define US_SCRUB_RATE  (32 * 1024 * 1024)
#define US_SCRUB_STEP  (1024 * 1024)
#define US_KEEP_RETRY  (60 * 1000)    /* ms after a failure */
#define US_KEEP_GAP    1000           /* the same while requests are refused */
#define US_KEEP_WAIT   10000          /* ms in which nothing becomes durable */


/* a snapshot in the making */

typedef struct {
    us_life_t        *l;
    us_store_t       *store;
} us_keep_t;


static void
us_declare_job(us_job_t *job)
{
    int               rc;
    us_life_t        *l;
    us_store_t       *store;
    us_disk_error_t   e;

    l = job->life;
    l->declare_next = us_job_now(l) + US_KEEP_GAP;

    store = us_store_open(l->mem, &l->lock);

    if (store == NULL) {
        return;
    }

    rc = us_data_declare(store, l->dirfd, &l->conf.store, &e);

    us_store_close(store);

    if (rc == 0) {
        (void) us_share_change(l->sh);
        us_job_say(job, US_SAY_NOTICE, "the store has %u marks now, %s%s",
                   l->conf.store.nmarks,
                   l->conf.store.revisit ? "and claims" : "and no claims",
                   l->conf.store.is_shard ? ", and is a shard" : "");
        return;
    }

    if (rc == US_DISK_LOST && us_share_lose(l->sh, e.text)) {
        us_job_say(job, US_SAY_ALERT, "%s", e.text);
        return;
    }

    if (!l->declare_said) {
        l->declare_said = 1;
        us_job_say(job, US_SAY_ERROR, "marks, claims or the shard could not be "
                   "added: %s; it is tried again", e.text);
    }
}


/* at least `least`, and a twelfth of what is written again */

int
us_policy_due(const us_policy_t *p)
{
    uint64_t  weight;

    weight = p->journal + p->deletes * US_POLICY_DELETE;

    return weight >= p->least && weight * US_POLICY_SHARE >= p->size;
}


void
us_snapshot_counts(us_life_t *l, const us_manifest_t *m)
{
    us_release(&l->sh->snapshot_lsn, m->has_snapshot ? m->snapshot : 0);
    us_release(&l->sh->snapshot_size,
               m->has_snapshot
               ? us_dir_file_bytes(l->dirfd, US_SEGMENT_SNAPSHOT, m->snapshot)
               : 0);
}


int
us_snapshot_due(const us_life_t *l, uint64_t lsn, uint64_t deletes)
{
    us_policy_t  p;

    if (l->conf.snapshot == 0
        || us_job_now(l) < us_acquire(&l->sh->snapshot_next))
    {
        return 0;
    }

    p.least = l->conf.snapshot;
    p.journal = lsn - us_acquire(&l->sh->snapshot_lsn);
    p.size = us_acquire(&l->sh->snapshot_size);
    p.deletes = deletes;

    return us_policy_due(&p);
}


int
us_snapshot_take(us_job_t *job, us_store_t *store, us_data_wait_pt wait,
    void *data, const us_manifest_log_t *log, us_disk_error_t *e)
{
    int             rc;
    us_life_t      *l;
    us_manifest_t   m;

    l = job->life;
    rc = us_data_snapshot(store, l->dirfd, wait, data, log, &m, e);

    if (rc != 0) {
        us_release(&l->sh->snapshot_next, us_job_now(l) + US_KEEP_RETRY);
        return rc;
    }

    us_snapshot_counts(l, &m);
    us_release(&l->sh->snapshot_next, 0);
    us_share_count(&l->sh->snapshots, 1);

    us_job_say(job, US_SAY_NOTICE, "snapshot up to LSN %" PRIu64 ", %" PRIu64
               " bytes in the directory", m.snapshot, us_dir_bytes(l->dirfd));

    return 0;
}


int
us_erased_due(const us_life_t *l, const us_store_t *store, uint64_t segment)
{
    uint64_t  gone;

    gone = us_store_erased_lsn(store);

    return gone > us_acquire(&l->sh->snapshot_lsn) && gone <= segment
           && us_job_now(l) >= us_acquire(&l->sh->snapshot_next);
}


int
us_erased_wanted(const us_life_t *l, const us_store_t *store)
{
    uint64_t  gone;

    gone = us_store_erased_lsn(store);

    return gone > us_acquire(&l->sh->erased)
           && gone <= us_acquire(&l->sh->snapshot_lsn)
           && us_job_now(l) >= us_acquire(&l->sh->erased_next);
}


/*
 * us_data_wait_pt: waits until an LSN is durable; 0 is at once, if the keeper
 * may go on.  The keeper syncs nothing itself.  The syncer does, and
 * its failure counts for all processes.
 */

static int
us_snapshot_wait(void *data, uint64_t lsn, uint64_t until)
{
    us_keep_t *k = data;

    uint64_t     start, durable, before;
    us_life_t   *l;
    us_share_t  *sh;

    l = k->l;
    sh = l->sh;
    start = us_job_now(l);
    before = us_store_durable(k->store);

    us_raise(&sh->sync_wanted, until);

    for ( ;; ) {

        if (l->env.stopping(l->env.data) || us_acquire(&sh->lost)) {
            return -1;
        }

        durable = us_store_durable(k->store);

        if (durable >= until) {
            return 0;
        }

        /* what was written for minutes is not thrown away for a slow disk */

        if (durable != before) {
            before = durable;
            start = us_job_now(l);
        }

        if (us_job_now(l) - start > US_KEEP_WAIT) {
            return -1;
        }

        l->env.pause(l->env.data, 5);
    }
}


static void
us_snapshot_job(us_job_t *job)
{
    int               rc;
    us_keep_t         k;
    us_life_t        *l;
    us_share_t       *sh;
    us_disk_error_t   e;
    us_store_info_t   info;

    l = job->life;
    sh = l->sh;

    k.l = l;
    k.store = us_store_open(l->mem, &l->lock);

    if (k.store == NULL) {
        return;
    }

    us_store_info(k.store, &info);

    rc = us_snapshot_take(job, k.store, us_snapshot_wait, &k, NULL, &e);

    us_store_close(k.store);

    if (rc == 0) {
        us_release(&sh->snapshot_deleted, info.deleted);
        us_release(&sh->snapshot_now, 0);

        if (us_share_resume(sh, US_ROLE_KEEPER)) {
            us_job_say(job, US_SAY_WARN, "the directory is whole again");
        }

        return;
    }

    if (us_share_stalled(sh, US_ROLE_KEEPER)) {
        us_release(&sh->snapshot_next, us_job_now(l) + US_KEEP_GAP);
    }

    if (rc == US_DISK_LOST && us_share_lose(sh, e.text)) {
        us_job_say(job, US_SAY_ALERT, "%s", e.text);
        return;
    }

    us_job_say(job, l->env.stopping(l->env.data) ? US_SAY_NOTICE
                                                 : US_SAY_ERROR,
               "a snapshot failed: %s", e.text);
}


void
us_erased_look(us_life_t *l)
{
    uint64_t         lsn;
    us_dir_t         dir;
    us_manifest_t    m;
    us_disk_error_t  e;

    us_release(&l->sh->erased_next, us_job_now(l) + US_KEEP_GAP);

    if (us_manifest_read(l->dirfd, &m, &e) != US_MANIFEST_OK) {
        return;
    }

    /* somebody may have read the directory when the snapshot was taken */

    (void) us_snapshot_drop(l->dirfd, &m);

    if (us_dir_read(l->dirfd, &dir, &e) == -1) {
        return;
    }

    /* the LSN at which the first file begins */

    lsn = dir.nsegments ? dir.segments[0] : 0;
    lsn = dir.nsnapshots && dir.snapshots[0] < lsn ? dir.snapshots[0] : lsn;

    us_dir_free(&dir);
    us_raise(&l->sh->erased, lsn);
}


static void
us_erased_job(us_job_t *job)
{
    us_erased_look(job->life);
}


static int
us_scrub_file(us_life_t *l, us_segment_kind_t kind, uint64_t lsn,
    us_disk_error_t *e)
{
    int             stop;
    char            name[US_DISK_NAME];
    uint64_t        since;
    us_read_t       rc;
    us_block_t      b;
    us_reader_t     r;
    const uint8_t  *payload;

    us_segment_name(name, kind, lsn);

    rc = us_reader_open(&r, l->dirfd, name, kind, NULL, &us_data_ops,
                        US_READ_DISK);
    since = 0;
    stop = 0;

    while (rc == US_READ_BLOCK && !stop) {
        rc = us_reader_next(&r, &b, &payload);

        if (r.at.offset - since >= US_SCRUB_STEP) {
            us_share_count(&l->sh->scrubbed, r.at.offset - since);
            since = r.at.offset;

            l->env.pause(l->env.data, US_SCRUB_STEP * 1000 / US_SCRUB_RATE);
            stop = l->env.stopping(l->env.data);
        }
    }

    us_share_count(&l->sh->scrubbed, r.at.offset - since);
    us_reader_close(&r);

    if (stop) {
        return 1;
    }

    /* dropped by a snapshot meanwhile, or not to be opened for now */

    if (rc == US_READ_FOOTER
        || (rc == US_READ_FAILED && (r.error.err == ENOENT
                                     || us_disk_passing(r.error.err))))
    {
        return 0;
    }

    if (rc == US_READ_END) {
        return us_disk_fail(e, 0, "\"%s\" has no footer", name);
    }

    *e = r.error;

    return -1;
}


static void
us_scrub_job(us_job_t *job)
{
    int              rc;
    size_t           i;
    us_dir_t         dir;
    us_life_t       *l;
    us_share_t      *sh;
    us_manifest_t    m;
    us_disk_error_t  e;

    l = job->life;
    sh = l->sh;

    us_release(&sh->scrub_next, us_job_now(l) + l->conf.scrub);

    if (us_manifest_read(l->dirfd, &m, &e) != US_MANIFEST_OK
        || us_dir_read(l->dirfd, &dir, &e) == -1)
    {
        us_job_say(job, US_SAY_ALERT, "%s", e.text);
        return;
    }

    /* 0; -1: damaged, with e; 1: there is no time any more */

    rc = 0;

    if (m.has_snapshot) {
        rc = us_scrub_file(l, US_SEGMENT_SNAPSHOT, m.snapshot, &e);
    }

    for (i = 0; rc == 0 && i + 1 < dir.nsegments; i++) {
        rc = us_scrub_file(l, US_SEGMENT_JOURNAL, dir.segments[i], &e);
    }

    us_dir_free(&dir);

    if (rc == -1) {
        us_share_count(&sh->errors, 1);

        us_job_say(job, US_SAY_ALERT, "%s", e.text);
        us_job_say(job, US_SAY_WARN, "the data in memory are whole; %s",
                   l->conf.snapshot ? "a snapshot replaces the file"
                                    : "no snapshot replaces the file, as "
                                      "snapshot=off");

        us_release(&sh->snapshot_next, 0);
        us_release(&sh->snapshot_now, 1);
    }
}


void
us_keep(us_life_t *l)
{
    int              due;
    uint64_t         now;
    us_tail_t        tail;
    us_share_t      *sh;
    us_store_info_t  info;

    sh = l->sh;

    if (l->ending || us_acquire(&sh->lost) || l->jobs[US_ROLE_KEEPER].active
        || us_share_state(sh) != US_LIFE_READY
        || us_acquire(&sh->unsettled)
        || us_share_stalled(sh, US_ROLE_WRITER)
        || us_share_stalled(sh, US_ROLE_SYNCER)
        || l->env.stopping(l->env.data))
    {
        return;
    }

    now = us_job_now(l);

    if (us_data_lacks(l->store, &l->conf.store) && now >= l->declare_next) {
        us_job_start(l, US_ROLE_KEEPER, us_declare_job, NULL);
        return;
    }

    due = 0;

    if (now >= us_acquire(&sh->snapshot_next)) {
        us_share_tail(sh, &tail);

        /* one that is to repair may have nothing new: it replaces the last */

        due = us_share_stalled(sh, US_ROLE_KEEPER)
              || us_erased_due(l, l->store, tail.segment)
              || (l->conf.snapshot && us_acquire(&sh->snapshot_now));

        if (!due && l->conf.snapshot) {
            us_store_info(l->store, &info);
            due = us_snapshot_due(l, tail.lsn, info.deleted
                                  - us_acquire(&sh->snapshot_deleted));
        }
    }

    if (due) {
        us_job_start(l, US_ROLE_KEEPER, us_snapshot_job, NULL);
        return;
    }

    if (us_erased_wanted(l, l->store)) {
        us_job_start(l, US_ROLE_KEEPER, us_erased_job, NULL);
        return;
    }

    if (us_acquire(&sh->scrub_next) == 0) {
        us_release(&sh->scrub_next, now + l->conf.scrub);
    }

    if (l->conf.scrub && now >= us_acquire(&sh->scrub_next)) {
        us_job_start(l, US_ROLE_KEEPER, us_scrub_job, NULL);
    }
}
