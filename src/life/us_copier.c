
/*
 * See us_copier.h.
 *
 *     us_copier_job()              keeper: the journal
 *         us_copier_mine()             has the loader had it meanwhile?
 *         us_copier_begin()            a new one
 *             us_copier_clear()            what lies there
 *         us_copier_step()
 *             us_copier_row()          a row, by us_standby.h
 *     us_copier_snapshot_job()     keeper: a snapshot
 *         us_copier_wait()             is all of it confirmed?
 *     us_copier_read(), _check()   loader
 */


#include "us_copier.h"
#include "us_follow.h"
#include "us_sink.h"
#include "../journal/us_crc32c.h"
#include "../journal/us_dir.h"
#include "../replog/us_standby.h"
#include "../store/us_erasures.h"
#include "../store/us_shard.h"

#include <inttypes.h>


#define US_COPIER_TURN    100          /* ms that a job goes on */
#define US_COPIER_POLL    500          /* ms between two looks at the log */
#define US_COPIER_AFTER   1000         /* ms after a log that does not answer */
#define US_COPIER_OFF     2000         /* ms after a disk that refuses */
#define US_COPIER_SAY     600000       /* ms until that is said again: it may be
                                          for another reason */
#define US_COPIER_LOOK    2000         /* ms of a call of the log */
#define US_COPIER_WAIT    10000        /* ms for an LSN to be confirmed */
#define US_COPIER_SOON    1000         /* ms after one that was given up */
#define US_COPIER_LEAVE   50           /* ms until the keeper has left */
#define US_COPIER_TRIES   4            /* to read, before the log is */


/* what has failed last: until it succeeds, the copier is off */

typedef enum {
    US_COPIER_ON = 0,
    US_COPIER_NO_JOURNAL,
    US_COPIER_NO_SNAPSHOT,
    US_COPIER_MISSING             /* from the log, which does not say so */
} us_copier_off_t;


typedef struct {
    us_follow_t         f;
    us_standby_t        standby;      /* its `at` is the last row */
    us_copy_t           copy;
    us_place_t          at;           /* the directory's end */
    us_manifest_t       manifest;     /* of the log */
    char                settings[US_REPLOG_SETTINGS];   /* that it is of */

    uint64_t            number;       /* of the copy that all this is of */
    unsigned            begun:1;      /* it has an end */
    unsigned            gone:1;       /* a part of the directory is not there */
    unsigned            asked:1;      /* what lies there was MISSING */
    uint64_t            said;         /* ms: why it is off, again */

    /* of a snapshot */
    uint64_t            want;         /* an LSN, and the log's place there */
    unsigned            known:1;
    us_manifest_log_t   place;
    us_disk_error_t     error;
} us_copier_t;


/* a snapshot that is being written */

typedef struct {
    us_copier_t        *copier;
    us_store_t         *store;
    us_life_state_t     state;        /* when it began */
    uint64_t            generation;
    uint64_t            lsn;          /* of a standby: applied */
    unsigned            begun:1;
    unsigned            left:1;       /* it was given up without an error */
} us_copier_dump_t;


/* the state in which the store has all that was confirmed, at some time */

static int
us_copier_works(us_life_state_t state)
{
    return state == US_LIFE_STANDBY || state == US_LIFE_READY;
}


static int
us_copier_init(us_follow_t *f)
{
    f->log->look = US_COPIER_LOOK;
    us_copy_init(&((us_copier_t *) f)->copy, f->life->dirfd);

    return 0;
}


static void
us_copier_close(us_follow_t *f)
{
    us_copy_close(&((us_copier_t *) f)->copy);
}


static const us_source_t  us_copier_source = {
    .open = us_copier_init, .close = us_copier_close
};


/* what this process has */

static us_copier_t *
us_copier_open(us_job_t *job)
{
    return (us_copier_t *) us_follow_open(job, &job->life->copier,
                                          sizeof(us_copier_t),
                                          &us_copier_source);
}


/* what the last look at the log has shown; 0, or -1 with c->error */

static int
us_copier_settings(us_copier_t *c)
{
    us_manifest_t  m;
    const char    *text;

    text = c->standby.head.settings;

    if (strcmp(text, c->settings) == 0) {
        return 0;
    }

    if (us_manifest_scan(&m, text, strlen(text), &c->error)
        != US_MANIFEST_OK)
    {
        return -1;
    }

    if (c->begun && (memcmp(m.uuid, c->at.uuid, sizeof(m.uuid)) != 0
                     || m.epoch != c->at.epoch))
    {
        return us_disk_fail(&c->error, 0, "the log is of another store, or "
                            "epoch");
    }

    if (c->begun && us_copy_settings(&c->copy, &m) == -1) {
        c->error = c->copy.error;
        return -1;
    }

    c->manifest = m;
    (void) strcpy(c->settings, text);

    return 0;
}


static void
us_copier_publish(us_copier_t *c, const us_replog_row_t *row)
{
    uint64_t            at;
    us_share_t         *sh;
    us_share_copier_t  *to;

    sh = c->f.life->sh;
    to = &sh->replicate.copier;

    at = us_relaxed(&to->end_at) + 1;
    to->end[at % 2].at = c->at;
    to->end[at % 2].row = *row;
    us_release(&to->end_at, at);
    us_release(&to->begun, c->number);

    /* without a snapshot nothing can be read */

    us_release(&to->lsn, us_acquire(&sh->snapshot_lsn) ? row->next : 0);
}


/* this has succeeded */

static void
us_copier_on(us_copier_t *c, us_copier_off_t off)
{
    us_share_copier_t  *sh;

    sh = &c->f.life->sh->replicate.copier;

    if (us_acquire(&sh->off) == off) {
        us_release(&sh->off, US_COPIER_ON);
        us_job_say(c->f.job, US_SAY_WARN, "the path is written again");
    }
}


static int
us_copier_row(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_copier_t *c = data;

    int        rc;
    uint64_t   ids, limit;

    limit = c->f.life->conf.segment ? c->f.life->conf.segment : US_SEGMENT_SIZE;

    if (us_copier_settings(c) == -1) {
        return -1;
    }

    if (len == 0 || len > US_BLOCK_MAX
        || us_block_ids(p, len, &us_data_ops, &ids) == -1)
    {
        return us_disk_fail(&c->error, 0, "a row of the log has %zu bytes, or "
                            "no whole operations", len);
    }

    rc = us_copy_append(&c->copy, &c->at, &c->manifest,
                        (us_str_t) { len, (uint8_t *) p }, ids, limit);

    if (rc != 0) {
        c->gone = rc == US_COPY_GONE;
        c->error = c->copy.error;
        return -1;
    }

    if (c->want > row->lsn && c->want <= row->next) {
        c->known = 1;
        c->place.term = row->term;
        c->place.crc = us_crc32c((uint32_t) c->standby.at.crc, p,
                                 c->want - row->lsn);
    }

    us_copier_publish(c, row);
    us_copier_on(c, US_COPIER_NO_JOURNAL);

    return 0;
}


/* a copy begins past the base */

static int
us_copier_base(void *data, const uint8_t *p, size_t len)
{
    return -1;
}


/*
 * Whether the directory is the keeper's.  What this process knows of it is
 * replaced if the loader, or another keeper, had it meanwhile.  The role was
 * taken before: the loader sees that, or the number here is 0.
 */

static int
us_copier_mine(us_copier_t *c)
{
    unsigned                  begun;
    uint64_t                  number;
    us_share_copier_t        *sh;
    const us_share_copied_t  *end;

    sh = &c->f.life->sh->replicate.copier;
    number = __atomic_fetch_add(&sh->number, 0, __ATOMIC_SEQ_CST);
    begun = us_acquire(&sh->begun) == number;
    end = &sh->end[us_acquire(&sh->end_at) % 2];

    if (number == 0
        || (number == c->number && begun == c->begun
            && (!begun
                || (end->row.next == c->standby.at.next
                    && end->at.tail.segment == c->at.tail.segment
                    && end->at.tail.offset == c->at.tail.offset))))
    {
        return number != 0;
    }

    us_copy_close(&c->copy);
    us_release(&c->f.life->copier_past, 0);
    memset(&c->standby, 0, sizeof(us_standby_t));

    c->standby.log = c->f.log;
    c->standby.env.apply = us_copier_row;
    c->standby.env.base = us_copier_base;
    c->standby.env.follows = us_follow_goes_on;
    c->standby.env.now = us_follow_now;
    c->standby.env.data = c;
    c->settings[0] = '\0';
    c->number = number;
    c->begun = begun;

    if (begun) {
        c->at = end->at;
        c->standby.at = end->row;
        memcpy(c->standby.uuid, c->at.uuid, sizeof(c->at.uuid));
        c->standby.begun = 1;
    }

    return 1;
}


/* whether the store or the directory is not what it was */

static int
us_copier_left(us_copier_dump_t *d)
{
    us_life_t        *l;
    us_share_t       *sh;
    us_life_state_t   state;

    l = d->copier->f.life;
    sh = l->sh;
    state = us_share_state(sh);

    return us_job_stopping(l) || us_acquire(&sh->emptying)
           || !us_copier_works(state)
           || (d->state == US_LIFE_READY && state != US_LIFE_READY)
           || us_share_generation(sh) != d->generation
           || us_acquire(&sh->replicate.copier.number) != d->copier->number;
}


/* the directory is of no use: the next job begins another one */

static void
us_copier_again(us_copier_t *c)
{
    us_share_copier_t  *sh;

    sh = &c->f.life->sh->replicate.copier;

    us_copy_close(&c->copy);
    c->begun = 0;
    us_release(&sh->begun, 0);
    us_release(&sh->lsn, 0);
}


/* the disk refuses, or has lost a part of the directory (c->gone) */

static void
us_copier_fail(us_copier_t *c, us_copier_off_t off, const char *why)
{
    us_life_t          *l;
    us_share_copier_t  *sh;

    l = c->f.life;
    sh = &l->sh->replicate.copier;

    us_copy_close(&c->copy);
    us_share_count(&sh->failures, 1);
    l->copier_next = us_job_now(l) + US_COPIER_OFF;

    if (us_acquire(&sh->off) == US_COPIER_ON || us_job_now(l) >= c->said) {
        c->said = us_job_now(l) + US_COPIER_SAY;
        us_job_say(c->f.job, US_SAY_ERROR, "the path is not written, a start "
                   "reads more from the log: %.300s; it is tried again", why);
    }

    us_release(&sh->off, off);

    if (c->gone) {
        c->gone = 0;
        us_copier_again(c);
    }
}


/* what the log has more, some of it */

static us_standby_rc_t
us_copier_step(us_copier_t *c)
{
    us_life_t        *l;
    us_standby_rc_t   rc;

    l = c->f.life;
    c->error.text[0] = '\0';

    rc = us_standby_step(&c->standby, 0);

    switch (rc) {

    case US_STANDBY_OK:
    case US_STANDBY_MORE:
        break;

    case US_STANDBY_STOP:

        /* not by us_copier_row(): a new base has removed the last row */

        if (c->error.text[0] == '\0') {
            us_job_say(c->f.job, US_SAY_NOTICE, "the path is begun anew: %s",
                       c->standby.error);
            us_copier_again(c);
            break;
        }

        us_copier_fail(c, US_COPIER_NO_JOURNAL, c->error.text);
        break;

    case US_STANDBY_LOST:

        /* the directory has what this server of the log has not: it stays */

        us_copier_fail(c, US_COPIER_NO_JOURNAL, c->standby.error);
        l->copier_next = us_job_now(l) + US_COPIER_AFTER;
        break;

    default:
        l->copier_next = us_job_now(l) + US_COPIER_AFTER;
        break;
    }

    return rc;
}


/*
 * us_data_wait_pt: all that the dump holds has to be confirmed, by this
 * primary, before it gets its name.
 */

static int
us_copier_wait(void *data, uint64_t lsn, uint64_t until)
{
    us_copier_dump_t *d = data;

    int               rc;
    uint64_t          start;
    us_life_t        *l;
    us_share_t       *sh;
    us_copier_t      *c;
    us_standby_rc_t   got;

    c = d->copier;
    l = c->f.life;
    sh = l->sh;

    if (us_copier_left(d)
        || (lsn && (lsn < c->standby.at.next
                    || (d->state == US_LIFE_STANDBY && lsn != d->lsn))))
    {
        rc = -1;

    } else if (lsn) {

        /* the journal gets to the dump's LSN, and all of it is confirmed */

        rc = 0;
        start = us_job_now(l);
        c->want = lsn;
        c->known = lsn == c->standby.at.next;
        c->place.lsn = lsn;
        c->place.term = c->standby.at.term;
        c->place.crc = (uint32_t) c->standby.at.crc;

        while (rc == 0
               && (!c->known || us_store_durable(d->store) < until))
        {
            got = c->known ? US_STANDBY_OK : us_copier_step(c);

            if ((got != US_STANDBY_OK && got != US_STANDBY_MORE)
                || us_copier_left(d) || us_job_now(l) - start > US_COPIER_WAIT)
            {
                rc = -1;

            } else if (got == US_STANDBY_OK) {
                l->env.pause(l->env.data, 10);
            }
        }

        /* a primary that was deposed meanwhile has left this state first */

        rc = rc == 0 && us_copier_left(d) ? -1 : rc;

    } else if (d->begun || d->state == US_LIFE_READY) {
        rc = 0;

    } else {

        /*
         * The dump's number of ids and its LSN were read just now.  A standby
         * applies a row in pieces and moves its LSN then: they belong together
         * if it did nothing meanwhile.
         */

        rc = us_acquire(&sh->load_applying) == 0
             && us_acquire(&sh->load_lsn) == d->lsn ? 0 : -1;
        d->begun = 1;
    }

    d->left |= rc == -1;

    if (rc == 0 && lsn && us_copy_sync(&d->copier->copy) == -1) {
        return -1;
    }

    return rc;
}


static void
us_copier_snapshot_job(us_job_t *job)
{
    int                rc;
    uint64_t           gone;
    us_life_t         *l;
    us_share_t        *sh;
    us_copier_t       *c;
    us_replog_t       *log;
    us_manifest_t      m;
    us_copier_dump_t   d;
    us_disk_error_t    e, why;
    us_store_conf_t    conf;

    l = job->life;
    sh = l->sh;
    job->stays = 1;

    c = us_copier_open(job);

    if (c == NULL || !us_copier_mine(c) || !c->begun) {
        return;
    }

    memset(&d, 0, sizeof(us_copier_dump_t));
    d.copier = c;
    d.generation = us_share_generation(sh);
    d.state = us_share_state(sh);
    d.lsn = us_acquire(&sh->load_lsn);
    d.store = us_acquire(&sh->emptying) ? NULL : us_store_open(l->mem,
                                                               &l->lock);
    us_release(&sh->snapshot_next, us_job_now(l) + US_COPIER_SOON);

    if (d.store == NULL) {
        return;
    }

    us_store_conf(d.store, &conf);

    if (memcmp(conf.uuid, c->at.uuid, sizeof(conf.uuid)) != 0
        || conf.epoch != c->at.epoch)
    {
        goto done;
    }

    log = c->f.log;
    gone = us_store_erased_lsn(d.store);

    if (c->at.tail.segment < gone && c->at.tail.lsn >= gone) {

        /*
         * The segment has erased records: it ends, so that the snapshot
         * replaces it.  A process that has read nothing so far knows no
         * settings.
         */

        if (c->settings[0] == '\0'
            && (log->ops->head(log, &c->standby.head) != US_REPLOG_OK
                || us_copier_settings(c) == -1))
        {
            goto done;
        }

        rc = us_copy_roll(&c->copy, &c->at, &c->manifest, 0);

        if (rc != 0) {
            c->gone = rc == US_COPY_GONE;
            us_copier_fail(c, US_COPIER_NO_JOURNAL, c->copy.error.text);
            goto done;
        }

        us_copier_publish(c, &c->standby.at);

        /* if this snapshot fails, another one is due */

        if (us_acquire(&sh->snapshot_lsn) >= gone) {
            us_release(&sh->snapshot_lsn, gone - 1);
        }
    }

    rc = us_snapshot_take(job, d.store, us_copier_wait, &d, &c->place, &e);
    c->want = 0;

    if (rc == 0) {
        us_release(&sh->replicate.copier.lsn, c->standby.at.next);
        us_copier_on(c, US_COPIER_NO_SNAPSHOT);

    } else if (d.left) {
        us_release(&sh->snapshot_next, us_job_now(l) + US_COPIER_SOON);

    } else {
        c->gone = us_manifest_read(l->dirfd, &m, &why) == US_MANIFEST_NONE;
        us_copier_fail(c, US_COPIER_NO_SNAPSHOT, e.text);
    }

done:

    us_store_close(d.store);
}


/* the directory is the keeper's; end: NULL, it is to begin anew */

static void
us_copier_give(us_life_t *l, const us_share_copied_t *end)
{
    uint64_t            at, number;
    us_share_copier_t  *sh;

    sh = &l->sh->replicate.copier;
    number = us_relaxed(&sh->numbers) + 1;
    us_release(&sh->numbers, number);
    us_release(&sh->lsn, end ? end->row.next : 0);

    if (end) {
        at = us_relaxed(&sh->end_at) + 1;
        sh->end[at % 2] = *end;
        us_release(&sh->end_at, at);
        us_release(&sh->begun, number);
    }

    us_release(&sh->number, number);
}


/*
 * Reads the directory into an empty store; NULL: its end is looked for only.
 * OK: `end` is that; else e says why.
 */

static us_sink_rc_t
us_copier_end(us_life_t *l, us_store_t *store, const us_manifest_t *m,
    us_share_copied_t *end, us_disk_error_t *e)
{
    us_sink_t             c;
    us_sink_rc_t          rc;
    const us_manifest_t  *have;

    if (us_dir_moving(l->dirfd)) {
        (void) us_disk_fail(e, 0, "its files were being moved away");
        return US_SINK_USELESS;
    }

    rc = us_sink_open(&c, l);

    if (rc == US_SINK_OK) {

        /* can it be of this log? */

        have = &c.recovery.manifest;
        rc = US_SINK_USELESS;

        if (memcmp(have->uuid, m->uuid, sizeof(m->uuid)) != 0) {
            (void) us_disk_fail(&c.recovery.error, 0, "it is of another store "
                                "than the log");

        } else if (have->epoch < m->epoch) {
            (void) us_disk_fail(&c.recovery.error, 0, "it is of epoch %" PRIu64
                                ", the log of %" PRIu64, have->epoch, m->epoch);

        } else if (!have->has_log) {
            (void) us_disk_fail(&c.recovery.error, 0, "it is a copy, but not "
                                "of a log");

        } else if (!have->has_snapshot || have->snapshot != have->log.lsn) {
            (void) us_disk_fail(&c.recovery.error, 0, "it has no snapshot so "
                                "far");

        } else {
            rc = US_SINK_OK;
        }
    }

    if (rc == US_SINK_OK) {
        c.more = 1;
        rc = us_sink_read(&c, store);
    }

    if (rc == US_SINK_OK) {
        us_copy_place(&end->at, &c.recovery);
        end->row.lsn = 0;
        end->row.next = c.log.lsn;
        end->row.term = c.log.term;
        end->row.crc = c.log.crc;
    }

    *e = c.recovery.error;
    us_recovery_close(&c.recovery);

    return rc;
}


us_copier_rc_t
us_copier_check(us_follow_t *f, const us_manifest_t *m, us_share_copied_t *end)
{
    us_replog_t      *log;
    us_replog_rc_t    rc;
    us_replog_row_t   row;

    log = f->log;

    /* a base that nothing follows is no row with bytes */

    rc = log->ops->read(log, end->row.next - 1, 1, us_replog_take_row, &row);

    if (rc == US_REPLOG_NONE) {
        rc = log->ops->row(log, US_REPLOG_BASE, us_replog_take_row, &row);
    }

    if (rc != US_REPLOG_OK && rc != US_REPLOG_NONE) {
        return US_COPIER_AGAIN;
    }

    if (rc == US_REPLOG_OK && row.next == end->row.next
        && row.term == end->row.term && row.crc == end->row.crc
        && m->epoch == end->at.epoch)
    {
        end->row = row;
        us_copier_give(f->life, end);

        us_job_say(f->job, US_SAY_NOTICE, "the path has all up to LSN %" PRIu64
                   ", the rest is read from the log", row.next);
        return US_COPIER_OK;
    }

    return US_COPIER_BAD;
}


/*
 * What lies in the directory before a copy begins.  0: nothing any more.  -1:
 * not now; or the log has it all, and the next job goes on from it, as after
 * another server that had the directory, or a disk that hung.
 */

static int
us_copier_clear(us_copier_t *c)
{
    int                 kept;
    char                name[US_DISK_NAME];
    us_life_t          *l;
    us_sink_rc_t        rc;
    us_manifest_t       m;
    us_disk_error_t     e;
    us_share_copied_t   end;
    us_share_copier_t  *sh;

    l = c->f.life;
    rc = us_copier_end(l, NULL, &c->manifest, &end, &e);

    if (rc == US_SINK_PASSING) {

        if (!us_job_stopping(l)) {
            us_copier_fail(c, US_COPIER_NO_JOURNAL, e.text);
        }

        return -1;
    }

    if (rc == US_SINK_OK) {

        switch (us_copier_check(&c->f, &c->manifest, &end)) {

        case US_COPIER_OK:
            us_copier_on(c, US_COPIER_NO_JOURNAL);
            return -1;

        case US_COPIER_AGAIN:
            return -1;

        default:
            break;
        }

        /* a base has replaced it, or it is the only one that has its rows */

        kept = end.at.epoch > c->manifest.epoch
               || us_follow_goes_on(c, &c->standby.head, &end.row) == 0
               || c->standby.head.base < end.row.next;

        if (kept && !c->asked) {
            c->asked = 1;
            sh = &l->sh->replicate.copier;
            sh->end[(us_relaxed(&sh->end_at) + 1) % 2] = end;
            us_release(&sh->off, US_COPIER_MISSING);
            return -1;
        }

    } else {
        kept = rc == US_SINK_USELESS
               && (us_dir_moving(l->dirfd)
                   || (us_manifest_read(l->dirfd, &m, &e) == US_MANIFEST_OK
                       && m.has_snapshot));
    }

    if (us_sink_remove(l, &c->copy, kept ? name : NULL, &e) == -1) {
        us_copier_fail(c, US_COPIER_NO_JOURNAL, e.text);
        return -1;
    }

    if (kept) {
        us_job_say(c->f.job, US_SAY_ALERT, "what was in the path is kept in "
                   "\"%s/%s\"", l->conf.path, name);
    }

    return 0;
}


/* a copy, from a row on that is confirmed; 0, or -1: not now */

static int
us_copier_begin(us_copier_t *c)
{
    uint64_t           ids;
    us_life_t         *l;
    us_share_t        *sh;
    us_manifest_t      m;
    us_replog_row_t    row;
    us_replog_ends_t   ends;

    l = c->f.life;
    sh = l->sh;

    if (c->f.log->ops->head(c->f.log, &c->standby.head) != US_REPLOG_OK) {
        return -1;
    }

    if (us_copier_settings(c) == -1) {
        us_copier_fail(c, US_COPIER_NO_JOURNAL, c->error.text);
        return -1;
    }

    if (us_copier_clear(c) == -1) {
        return -1;
    }

    /*
     * The last row that the store has and that is confirmed, with the ids given
     * below its end.  The place of a standby moves while load_applying is set.
     */

    if (us_share_state(sh) == US_LIFE_READY) {
        us_replog_ends(&sh->replicate.place, &ends);
        row = ends.sure;
        ids = ends.sure_ids;

    } else {
        if (us_acquire(&sh->load_applying) || !us_acquire(&sh->load_placed)) {
            return -1;
        }

        us_share_row(&sh->replicate.at, &row);
        ids = us_acquire(&sh->load_ids);

        if (us_acquire(&sh->load_applying) || row.next == 0
            || us_acquire(&sh->load_lsn) != row.next)
        {
            return -1;
        }
    }

    m = c->manifest;
    m.has_log = 1;
    m.log.lsn = row.next;
    m.log.term = row.term;
    m.log.crc = (uint32_t) row.crc;

    if (us_copy_start(&c->copy, &c->at, &m, row.next, ids) == -1) {
        us_copier_fail(c, US_COPIER_NO_JOURNAL, c->copy.error.text);
        return -1;
    }

    us_share_count(&l->sh->replicate.copier.restarts, 1);
    us_release(&l->sh->snapshot_next, 0);

    c->standby.at = row;
    memcpy(c->standby.uuid, c->manifest.uuid, sizeof(c->manifest.uuid));
    c->standby.begun = 1;
    c->standby.looked = 0;
    c->begun = 1;
    c->asked = 0;
    us_copier_publish(c, &row);
    us_copier_on(c, US_COPIER_NO_JOURNAL);

    return 0;
}


static void
us_copier_job(us_job_t *job)
{
    uint64_t          until;
    us_life_t        *l;
    us_copier_t      *c;
    us_standby_rc_t   rc;

    l = job->life;
    job->stays = 1;
    l->copier_next = us_job_now(l) + US_COPIER_POLL;
    until = us_job_now(l) + US_COPIER_TURN;

    c = us_copier_open(job);

    if (c == NULL) {
        return;
    }

    if (us_copier_mine(c) && (c->begun || us_copier_begin(c) == 0)) {

        do {
            rc = us_copier_step(c);

        } while (rc == US_STANDBY_MORE && us_job_now(l) < until
                 && !us_job_stopping(l));

        if (rc == US_STANDBY_MORE) {
            l->copier_next = 0;
        }
    }

    /* rows from before are not read any more */

    if (!c->begun || c->standby.at.next > l->copier_gone) {
        us_release(&l->copier_past, l->copier_gone);
    }
}


static void
us_copier_look_job(us_job_t *job)
{
    us_copier_t  *c;

    job->stays = 1;
    c = us_copier_open(job);

    if (c && us_copier_mine(c)) {
        us_erased_look(job->life);
    }
}


void
us_copier(us_life_t *l)
{
    uint64_t                  number;
    const us_copier_t        *c;
    const us_share_copier_t  *sh;

    if (l->conf.path == NULL
        || !us_follow_due(l, &l->copier, 1 << US_ROLE_KEEPER)
        || !us_copier_works(us_share_state(l->sh)) || us_copier_missing(l)

        /* a snapshot does not have that its map was restored */

        || us_store_map_stale(l->store))
    {
        return;
    }

    l->copier_gone = us_store_erased_lsn(l->store);
    c = (const us_copier_t *) l->copier;
    sh = &l->sh->replicate.copier;
    number = us_acquire(&sh->number);

    /*
     * A snapshot may be due for erasures, also if the last one is past erased
     * records that the segment has: when it was begun, the copy had not come to
     * them, or they were not erased.
     */

    if (number && us_acquire(&sh->begun) == number
        && us_acquire(&sh->off) != US_COPIER_NO_JOURNAL
        && us_job_now(l) >= us_acquire(&l->sh->snapshot_next)
        && (us_acquire(&l->sh->snapshot_lsn) == 0
            || us_snapshot_due(l, us_acquire(&sh->lsn), 0)
            || us_erased_due(l, l->store, us_acquire(&sh->lsn))
            || (c && c->begun && c->at.tail.segment < l->copier_gone
                && c->at.tail.lsn >= l->copier_gone)))
    {
        us_job_start(l, US_ROLE_KEEPER, us_copier_snapshot_job, NULL);

    } else if (us_erased_wanted(l, l->store)) {
        us_job_start(l, US_ROLE_KEEPER, us_copier_look_job, NULL);

    } else if (us_job_now(l) >= l->copier_next) {
        us_job_start(l, US_ROLE_KEEPER, us_copier_job, NULL);
    }
}


/* of the event loop, which starts the job */

int
us_copier_inside(const us_life_t *l)
{
    const us_job_t  *job;

    job = &l->jobs[US_ROLE_KEEPER];

    return job->active && job->run == us_copier_snapshot_job;
}


const us_share_copied_t *
us_copier_missing(const us_life_t *l)
{
    const us_share_copier_t  *sh;

    sh = &l->sh->replicate.copier;

    return us_acquire(&sh->off) == US_COPIER_MISSING
           ? &sh->end[(us_relaxed(&sh->end_at) + 1) % 2] : NULL;
}


void
us_copier_reported(us_life_t *l)
{
    us_release(&l->sh->replicate.copier.off, US_COPIER_NO_JOURNAL);
}


us_copier_rc_t
us_copier_drop(us_follow_t *f, const char *why)
{
    us_job_say(f->job, US_SAY_WARN, "the path is not used, all is read from "
               "the log: %s", why);

    us_copier_give(f->life, NULL);

    f->anew = 1;
    f->life->follow_next = us_job_now(f->life) + 1;

    return US_COPIER_AGAIN;
}


us_copier_rc_t
us_copier_read(us_follow_t *f, const us_manifest_t *m, us_share_copied_t *end)
{
    uint64_t            number, since, holder;
    us_life_t          *l;
    us_disk_error_t     e;
    us_share_copier_t  *sh;

    l = f->life;
    sh = &l->sh->replicate.copier;
    number = us_acquire(&sh->number);

    /* nothing is there to be read, as the keeper has not begun */

    if (number && us_acquire(&sh->begun) != number) {
        return US_COPIER_NONE;
    }

    /* the keeper is to leave the directory; it hangs if its disk does */

    (void) __atomic_exchange_n(&sh->number, 0, __ATOMIC_SEQ_CST);

    since = us_acquire(&l->sh->roles[US_ROLE_KEEPER].since);
    holder = us_acquire(&l->sh->roles[US_ROLE_KEEPER].holder);

    if (holder && since && us_process_alive(holder)) {

        if (us_job_now(l) < since + US_LIFE_HUNG) {
            l->follow_next = us_job_now(l) + US_COPIER_LEAVE;
            return US_COPIER_AGAIN;
        }

        return us_copier_drop(f, "a write to it has not returned");
    }

    switch (us_copier_end(l, f->store, m, end, &e)) {

    case US_SINK_OK:
        return US_COPIER_OK;

    case US_SINK_FRESH:
        us_copier_give(l, NULL);
        return US_COPIER_NONE;

    case US_SINK_PASSING:

        if (us_job_stopping(l)) {
            return US_COPIER_AGAIN;
        }

        if (f->loads < US_COPIER_TRIES) {
            (void) us_follow_again(f, "is not read so far: %s", e.text);
            return US_COPIER_AGAIN;
        }

        break;

    default:
        break;
    }

    return us_copier_drop(f, e.text);
}
