
/*
 * The journal's end: bytes of operations from the ring to the newest segment,
 * and the segment to the disk.
 *
 *     ring      ....|<-- tail.lsn       published -->|....
 *     segment   ....|<-- tail.offset
 *
 *     writer    takes what is published, writes it in one write(), moves the
 *               tail and then `written`; under sync=always it syncs and moves
 *               `durable`.  What comes meanwhile is the next group
 *     syncer    under sync=TIME: syncs before the oldest byte that is not
 *               durable gets that old.  On request (sync_wanted) under any
 *               policy.  Once a second it checks that the directory and its
 *               newest segment are still there, also while nothing is written
 *
 * A process that is killed leaves no more than bytes past the tail, on which
 * no reply depends.  The next writer cuts them off.
 *
 * What fails is tried again, every US_WRITE_STALL ms, and requests that write
 * are refused until then (stalled).  A sync that fails ends the writing until
 * a restart (lost), as it is not known then what is on the disk.
 *
 * THE GAP.  If the newest segment is removed, replaced or cut, what it held is
 * still in the store.  The writer begins a new segment at the tail, and has a
 * snapshot taken.  Until that snapshot covers the tail, a start would find a
 * gap in the journal.  So until then requests that write are refused, too, and
 * no further operation is promised (us_life_lsn()).
 *
 * A start that finds the gap is damaged, and rightly so: all processes ended
 * before the snapshot was complete, and what the segment held was in memory
 * only.  An id is the number of an add, so what follows the gap is of no use.
 *
 *     sealed ... sealed   (gone)   |new segment
 *                                  |-- snapshot -->
 */


#include "us_job.h"
#include "../journal/us_dir.h"
#include "../store/us_erasures.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>


#define US_WRITE_STALL   250          /* ms between two tries */
#define US_WRITE_TURN    20           /* ms that a job goes on */
#define US_WRITE_GROUPS  4            /* appends before a sync */
#define US_SYNC_AHEAD    300          /* ms that a sync may take, as a rule */
#define US_SYNC_LOOK     700          /* ms between two looks at the files */


/*
 * Uuid and epoch are known once the store is READY, and stay.  Each process
 * opens its descriptors at once, as there may be none left when it has to
 * write.
 */

static void
us_write_open(us_life_t *l, us_writer_t *w)
{
    char             boot[US_BOOT_ID + 1];
    us_store_conf_t  conf;

    if (w->ops) {
        return;
    }

    us_manifest_boot(boot);
    us_store_conf(l->store, &conf);

    us_writer_init(w, l->dirfd, conf.uuid, conf.epoch, boot, &us_data_ops);

    w->watch = &l->sh->watch;

    if (l->conf.segment) {
        w->limit = l->conf.segment;
    }
}


/* takes the journal's end over; what must be before anything is appended */

static int
us_write_begin(us_life_t *l, us_store_t *store, us_tail_t *tail,
    us_disk_error_t *e)
{
    int  rc;

    us_write_open(l, &l->writer);

    if (us_write_look(l, e) != 0) {
        return -1;
    }

    if (us_acquire(&l->sh->unsettled)) {

        if (us_data_settle(store, l->dirfd, tail, l->conf.sync_name, e) != 0) {
            return -1;
        }

        us_release(&l->sh->unsettled, 0);
    }

    rc = us_writer_attach(&l->writer, tail);

    if (rc != 0) {
        *e = l->writer.error;
    }

    return rc;
}


/*
 * The one place where `written` moves, after the watermark file: another server
 * that reads the directory knows of a delete before its reply is sent.
 */

static int
us_write_written(us_life_t *l, us_store_t *store, const us_tail_t *tail,
    us_disk_error_t *e)
{
    uint64_t     deleted;
    us_share_t  *sh;

    sh = l->sh;

    /* one under way, whose LSN is not known yet, may be below the tail */

    deleted = us_members_deleting(sh) ? tail->lsn : 0;

    if (us_acquire(&sh->deleted_lsn) > deleted) {
        deleted = us_acquire(&sh->deleted_lsn);
    }

    if (us_writer_mark(&l->writer, tail, us_store_durable(store), deleted)
        != 0)
    {
        *e = l->writer.error;
        return -1;
    }

    /* the ids first: a reply that waits for the LSN reports them */

    us_release(&sh->written_ids, tail->ids);
    us_store_set_written(store, tail->lsn);

    return 0;
}


/* the one place where `durable` moves */

static int
us_write_durable(us_life_t *l, us_store_t *store, us_writer_t *w,
    const us_tail_t *tail, us_disk_error_t *e)
{
    int  rc;

    rc = us_writer_sync(w, tail);

    if (rc != 0) {
        *e = w->error;
        return rc;
    }

    us_share_count(&l->sh->syncs, 1);

    us_release(&l->sh->durable_ids, tail->ids);
    us_store_set_durable(store, tail->lsn);

    return 0;
}


/* one group: some appends, and a sync if replies wait for that */

static int
us_write_group(us_life_t *l, us_store_t *store, us_tail_t *tail,
    us_disk_error_t *e)
{
    int          rc;
    uint64_t     lsn;
    us_str_t     pieces[2];
    unsigned     i;
    us_share_t  *sh;

    sh = l->sh;

    for (i = 0; i < US_WRITE_GROUPS; i++) {

        lsn = tail->lsn;

        if (us_store_published(store) == lsn) {
            break;
        }

        us_store_ops(store, lsn, pieces);

        /* what was published by then is known */

        l->writer.roll = us_store_erased_lsn(store);

        rc = us_writer_append(&l->writer, tail, pieces,
                              us_store_durable(store));

        us_share_set_tail(sh, tail);

        if (rc != 0) {
            *e = l->writer.error;
            return rc;
        }

        if (tail->lsn == lsn) {
            us_disk_fail(e, 0, "half an operation at LSN %" PRIu64, lsn);
            return US_WRITER_LOST;
        }

        us_share_count(&sh->writes, 1);

        if (l->conf.sync != US_SYNC_ALWAYS
            && us_acquire(&sh->dirty_since) == 0)
        {
            us_release(&sh->dirty_since, us_job_now(l));
        }

        rc = us_write_written(l, store, tail, e);

        if (rc != 0) {
            return rc;
        }
    }

    if (l->conf.sync != US_SYNC_ALWAYS
        || us_store_durable(store) == tail->lsn)
    {
        return 0;
    }

    return us_write_durable(l, store, &l->writer, tail, e);
}


/* logs a failure when it begins, and not each time that it is repeated */

static void
us_write_failed(us_job_t *job, int rc, const us_disk_error_t *e)
{
    int         news;
    us_life_t  *l;

    l = job->life;

    news = (rc == US_WRITER_LOST)
           ? us_share_lose(l->sh, e->text)
           : us_share_stall(l->sh, job->role, us_job_now(l), e->text);

    if (news) {
        us_job_say(job, US_SAY_ALERT, "%s", e->text);
    }
}


static void
us_write_job(us_job_t *job)
{
    int               rc;
    uint64_t          start;
    us_life_t        *l;
    us_tail_t         tail;
    us_store_t       *store;
    us_disk_error_t   e;

    l = job->life;
    store = l->store;
    start = us_job_now(l);

    us_share_tail(l->sh, &tail);

    rc = us_write_begin(l, store, &tail, &e);

    if (rc == US_WRITER_GONE) {

        /* see THE GAP: until the keeper has closed it, that is what stalls */

        if (!us_share_stalled(l->sh, US_ROLE_KEEPER)) {
            us_release(&l->sh->gap_lsn, us_life_lsn(l));
            us_release(&l->sh->gap_ids, us_life_ids(l));
        }

        if (us_share_stall(l->sh, US_ROLE_KEEPER, start, e.text)) {
            us_job_say(job, US_SAY_ALERT, "%s; its data are in memory, a "
                       "snapshot is taken", e.text);
        }

        us_release(&l->sh->snapshot_next, 0);

        rc = us_writer_renew(&l->writer, &tail);

        if (rc == 0) {
            us_share_set_tail(l->sh, &tail);

        } else {
            e = l->writer.error;
        }
    }

    /* what a killed writer has appended, and moved the tail past */

    if (rc == 0 && us_store_written(store) < tail.lsn) {
        rc = us_write_written(l, store, &tail, &e);
    }

    while (rc == 0) {
        rc = us_write_group(l, store, &tail, &e);

        if (us_store_published(store) == tail.lsn
            || us_job_now(l) - start > US_WRITE_TURN)
        {
            break;
        }
    }

    if (rc != 0) {
        us_write_failed(job, rc, &e);

    } else if (us_share_resume(l->sh, US_ROLE_WRITER)) {
        us_job_say(job, US_SAY_WARN, "the disk accepts writes again");
    }
}


static void
us_write_done(us_job_t *job)
{
    us_life_t  *l;

    l = job->life;

    l->env.moved(l->env.data);
    us_write(l);
}


void
us_write(us_life_t *l)
{
    us_tail_t   tail;
    us_share_t  *sh;

    sh = l->sh;

    if (l->ending || us_acquire(&sh->lost) || l->jobs[US_ROLE_WRITER].active
        || us_share_state(sh) != US_LIFE_READY)
    {
        return;
    }

    if (us_share_stalled(sh, US_ROLE_WRITER)) {

        if (us_share_rests(sh, US_ROLE_WRITER, us_job_now(l), US_WRITE_STALL)) {
            return;
        }

    } else if (us_acquire(&sh->unsettled) == 0 && l->writer.ops) {
        us_share_tail(sh, &tail);

        if (us_store_published(l->store) == tail.lsn
            && us_store_written(l->store) == tail.lsn
            && (l->conf.sync != US_SYNC_ALWAYS
                || us_store_durable(l->store) == tail.lsn))
        {
            return;
        }
    }

    us_job_start(l, US_ROLE_WRITER, us_write_job, us_write_done);
}


/*
 * sync=TIME: if the oldest byte is old enough; or if its age is not known,
 * because the syncer was killed.
 */

static int
us_sync_due(const us_life_t *l, uint64_t now)
{
    uint64_t           since, ahead;
    const us_share_t  *sh;

    sh = l->sh;

    if (us_store_durable(l->store) >= us_store_written(l->store)) {
        return 0;
    }

    if (us_acquire(&sh->sync_wanted) > us_store_durable(l->store)) {
        return 1;
    }

    if (l->conf.sync != US_SYNC_TIME) {
        return 0;
    }

    /* so early that the sync has usually ended when it has to */

    ahead = l->conf.interval / 2;
    ahead = ahead < US_SYNC_AHEAD ? ahead : US_SYNC_AHEAD;

    since = us_acquire(&sh->dirty_since);

    return since == 0 || now + ahead >= since + l->conf.interval;
}


/* the writer judges and repairs it, at once: requests are refused until then */

static void
us_sync_gone(us_job_t *job, const us_disk_error_t *e)
{
    if (us_share_stall(job->life->sh, US_ROLE_WRITER, 0, e->text)) {
        us_job_say(job, US_SAY_ALERT, "%s", e->text);
    }
}


static void
us_sync_job(us_job_t *job)
{
    int               rc;
    char              name[US_DISK_NAME];
    uint64_t          now;
    us_life_t        *l;
    us_tail_t         tail, newest;
    us_share_t       *sh;
    struct stat       st;
    us_disk_error_t   e;

    l = job->life;
    sh = l->sh;
    now = us_job_now(l);

    us_share_tail(sh, &tail);

    if (now >= us_acquire(&sh->look_next)) {
        us_release(&sh->look_next, now + US_SYNC_LOOK);
        us_segment_name(name, US_SEGMENT_JOURNAL, tail.segment);

        if (us_write_look(l, &e) == -1) {
            us_sync_gone(job, &e);

        } else if (tail.offset
                   && (fstatat(l->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == -1
                       || (uint64_t) st.st_size < tail.offset))
        {
            /* else it was sealed since, and is covered by a snapshot */

            us_share_tail(sh, &newest);

            if (newest.segment == tail.segment) {
                us_disk_fail(&e, 0, "\"%s\" is not there, or shorter than it "
                             "was", name);
                us_sync_gone(job, &e);
            }
        }
    }

    us_write_open(l, &l->syncer);

    if (!us_sync_due(l, now)) {

        /*
         * The descriptor is opened early: later there may be none left, and it
         * gets only the errors of what is written after it was opened.
         */

        (void) us_writer_ready(&l->syncer, &tail);
        return;
    }

    /* first: what is written from here on makes it dirty again */

    us_release(&sh->dirty_since, 0);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    us_share_tail(sh, &tail);

    rc = us_write_durable(l, l->store, &l->syncer, &tail, &e);

    if (rc == US_WRITER_GONE) {
        us_sync_gone(job, &e);

    } else if (rc != 0) {
        us_write_failed(job, rc, &e);

    } else {
        (void) us_share_resume(sh, US_ROLE_SYNCER);
    }
}


static void
us_sync_done(us_job_t *job)
{
    job->life->env.moved(job->life->env.data);
}


void
us_sync(us_life_t *l)
{
    uint64_t     now;
    us_tail_t    tail;
    us_share_t  *sh;

    sh = l->sh;

    if (l->ending || us_acquire(&sh->lost) || l->jobs[US_ROLE_SYNCER].active
        || us_share_state(sh) != US_LIFE_READY)
    {
        return;
    }

    now = us_job_now(l);

    if (us_share_rests(sh, US_ROLE_SYNCER, now, US_WRITE_STALL)) {
        return;
    }

    us_share_tail(sh, &tail);

    if (l->syncer.ops == NULL || us_writer_stale(&l->syncer, &tail)
        || us_sync_due(l, now) || now >= us_acquire(&sh->look_next))
    {
        us_job_start(l, US_ROLE_SYNCER, us_sync_job, us_sync_done);
    }
}


int
us_write_look(us_life_t *l, us_disk_error_t *e)
{
    struct stat  st, now;

    if (fstat(l->dirfd, &st) == -1 || stat(l->conf.path, &now) == -1) {
        return us_disk_fail(e, errno, errno == EACCES
                            ? "the user of the workers may not enter the "
                              "directory, or one above it"
                            : "the directory is not there any more");
    }

    if (st.st_ino != now.st_ino || st.st_dev != now.st_dev) {
        return us_disk_fail(e, 0, "there is another directory now: what this "
                            "server has open was moved or replaced");
    }

    if (fstat(l->lockfd, &st) == -1
        || fstatat(l->dirfd, US_DIR_LOCK, &now, AT_SYMLINK_NOFOLLOW) == -1)
    {
        return us_disk_fail(e, errno, "the directory's \"" US_DIR_LOCK
                            "\" is not there any more");
    }

    if (st.st_ino != now.st_ino || st.st_dev != now.st_dev) {
        return us_disk_fail(e, 0, "the directory's \"" US_DIR_LOCK "\" was "
                            "replaced: another server may own it as well");
    }

    return 0;
}


int
us_write_all(us_life_t *l, us_store_t *store, uint64_t until, us_tail_t *tail,
    us_disk_error_t *e)
{
    int  rc;

    if (us_acquire(&l->sh->lost)) {
        return us_disk_fail(e, 0, "%.470s", l->sh->reason);
    }

    us_share_tail(l->sh, tail);

    rc = us_write_begin(l, store, tail, e);

    while (rc == 0 && us_store_published(store) != tail->lsn) {
        rc = us_write_group(l, store, tail, e);

        if (rc == 0 && us_job_now(l) > until) {
            return us_disk_fail(e, 0, "the end of the journal was not written "
                                "in time: %" PRIu64 " bytes are missing",
                                us_store_published(store) - tail->lsn);
        }
    }

    if (rc == 0) {
        rc = us_write_durable(l, store, &l->writer, tail, e);
    }

    if (rc == US_WRITER_LOST) {
        (void) us_share_lose(l->sh, e->text);
    }

    return rc == 0 ? 0 : -1;
}
