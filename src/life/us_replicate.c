
/*
 * See us_replicate.h.
 *
 *     us_replicate_job()              loader: one step of the standby
 *         us_follow_prepare()             the store is empty, or has a place
 *         us_replicate_create()           there is none so far
 *         us_replicate_begin()            is it a log of a store that fits?
 *         us_replicate_copied()           what the directory has of it
 *         us_replicate_apply()            a row
 *         us_replicate_ready()            a term of its own has begun
 *     us_replicate_write_job()        writer: steps of the primary
 *         us_replicate_confirmed()        what may be answered from now on
 *         us_replicate_deposed()
 */


#include "us_replicate.h"
#include "us_copier.h"
#include "us_follow.h"
#include "us_replicate_base.h"
#include "../journal/us_crc32c.h"
#include "../replog/us_standby.h"
#include "../store/us_erasures.h"
#include "../store/us_ring.h"
#include "../store/us_shard.h"
#include "../us_clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>


#define US_REPLICATE_TURN    50       /* ms that a job goes on */
#define US_REPLICATE_POLL    50       /* ms between two looks at the log */
#define US_REPLICATE_LAST    2000     /* ms between two tries */
#define US_REPLICATE_LOOK    2000     /* ms of a call that only reads: one that
                                         gets no answer is soon made at another
                                         server */
#define US_REPLICATE_CALL    5000     /* ms of one that commits */
#define US_REPLICATE_LOST    "lost"   /* a setting: us_replicate_forget() */
#define US_REPLICATE_EPOCH   "lost_epoch"
#define US_REPLICATE_SILENT  (3 * US_APPENDER_BEAT)   /* ms without a beat: the
                                         node that has this name has ended */
#define US_REPLICATE_STALL   2000     /* ms without a commit */


/* what a node has read, and the log has not */

typedef struct {
    uint64_t          lsn;            /* up to there */
    uint64_t          epoch;          /* of the node's store */
} us_replicate_loss_t;


typedef struct {
    us_follow_t       f;
    us_standby_t      standby;
    us_appender_t     appender;
    us_manifest_t     manifest;       /* as the log has it */
    char              settings[US_REPLOG_SETTINGS];     /* as this node's */

    unsigned          reading:1;      /* standby is set up */
    unsigned          writing:1;      /* appender is set up */
    unsigned          filled:1;       /* it has what the directory has, up to
                                         `copied`, not yet checked */
    unsigned          looked:1;       /* the directory was looked at */
    us_share_copied_t copied;
    uint64_t          lease;          /* ms: of a term of this node */
    uint64_t          beat;           /* of another process of its name */
    unsigned          beats;
    uint64_t          nonce;          /* of this process's next claim */
} us_replicate_t;


/* us_source_t */

static int
us_replicate_init(us_follow_t *f)
{
    us_replicate_t *r = (us_replicate_t *) f;

    f->log->look = US_REPLICATE_LOOK;

    return getrandom(&r->nonce, sizeof(r->nonce), 0) == sizeof(r->nonce)
           ? 0 : -1;
}


static void
us_replicate_close(us_follow_t *f)
{
    us_replicate_t *r = (us_replicate_t *) f;

    r->writing = 0;
    r->reading = 0;
    r->filled = 0;
    r->looked = 0;
}


static int
us_replicate_emptied(us_follow_t *f)
{
    us_release(&f->life->sh->deleted_lsn, 0);
    us_release(&f->life->sh->replicate.astray, 0);
    us_release(&f->life->follow_past, 0);
    us_release(&f->life->sh->replicate.erased, 0);
    us_release(&f->life->sh->replicate.erased_next, 0);

    return 0;
}


/*
 * Whether the store has given the ids that the log has, which it always has.
 * If not, 0: nothing is answered from it, and all is read anew.
 */

static int
us_replicate_whole(us_replicate_t *r)
{
    uint64_t  ids;

    ids = us_store_next_id(r->f.store);

    if (ids == r->f.ids) {
        return 1;
    }

    (void) us_follow_again(&r->f, "the store has %" PRIu64 " ids and the log %"
                           PRIu64, ids, r->f.ids);
    us_share_set_state(r->f.life->sh, US_LIFE_LOADING, NULL);

    return 0;
}


/* us_source_t: what the store has */

static int
us_replicate_place(us_follow_t *f)
{
    us_replicate_t *r = (us_replicate_t *) f;

    if (!us_replicate_whole(r)) {
        return -1;
    }

    f->lsn = r->standby.at.next;

    /* nothing is parked: what may be answered moves first */

    us_store_set_durable(f->store, f->lsn);
    us_store_set_written(f->store, f->lsn);
    (void) us_store_set_lsn(f->store, f->lsn);

    us_share_set_row(&f->life->sh->replicate.at, &r->standby.at);

    return 0;
}


static void
us_replicate_failed(us_follow_t *f)
{
    us_share_count(&f->life->sh->replicate.failures, 1);
}


static const us_source_t  us_replicate_source = {
    US_LIFE_STANDBY, US_REPLICATE_LAST, US_SAY_ALERT, us_replicate_init,
    us_replicate_close, us_replicate_emptied, us_replicate_place,
    us_replicate_failed, NULL
};


/* what this process has, for both roles */

static us_replicate_t *
us_replicate_open(us_job_t *job)
{
    return (us_replicate_t *) us_follow_open(job, &job->life->follow,
                                             sizeof(us_replicate_t),
                                             &us_replicate_source);
}


/*
 * The one place where `written` and `durable` move: the ids first, as replies
 * that wait for the LSN report them.  0; -1: the store has not given the ids
 * that the log has.  A standby reads all anew then.  A primary's answers are
 * out, so that it gives no more of them.
 */

static int
us_replicate_confirmed(us_replicate_t *r)
{
    uint64_t           ids;
    us_life_t         *l;
    us_share_t        *sh;
    us_disk_error_t    e;
    us_replog_ends_t   ends;

    l = r->f.life;
    sh = l->sh;

    us_replog_ends(&sh->replicate.place, &ends);

    if (ends.sure.next == us_store_durable(l->store)) {
        return 0;
    }

    ids = us_store_ids_at(l->store, ends.sure.next);

    if (ids != US_STORE_NO_ID && ids != ends.sure_ids) {
        us_store_fence(l->mem);
        us_replog_place_end(&sh->replicate.place);
        (void) us_disk_fail(&e, 0, "the store has %" PRIu64 " ids and the log %"
                            PRIu64, ids, ends.sure_ids);
        us_job_say(r->f.job, US_SAY_EMERG, "%s: this node answers nothing "
                   "until it is started again", e.text);
        us_share_set_state(sh, US_LIFE_FAILED, e.text);
        return -1;
    }

    us_share_count(&sh->replicate.rows, 1);
    us_share_count(&sh->writes, 1);
    us_release(&sh->replicate.acked, ends.sure.next);

    us_release(&sh->written_ids, ends.sure_ids);
    us_release(&sh->durable_ids, ends.sure_ids);
    us_store_set_durable(l->store, ends.sure.next);
    us_store_set_written(l->store, ends.sure.next);

    return 0;
}


/* nothing is confirmed: writes are refused once that has lasted for a while */

static void
us_replicate_stall(us_replicate_t *r, us_say_t level)
{
    us_life_t   *l;
    us_share_t  *sh;

    l = r->f.life;
    sh = l->sh;

    /*
     * News: why nobody answers, or that a restored log, which was away before,
     * has lost rows
     */

    if (strcmp(sh->why[US_ROLE_WRITER], r->appender.error) != 0) {
        (void) us_share_resume(sh, US_ROLE_WRITER);
    }

    if ((level == US_SAY_EMERG
         || !us_replog_recent(&sh->replicate.place, us_clock_boottime(),
                              US_REPLICATE_STALL))
        && us_share_stall(sh, US_ROLE_WRITER, us_job_now(l),
                          r->appender.error))
    {
        us_job_say(r->f.job, level, "the log does not confirm: %s",
                   r->appender.error);
    }

    us_replicate_failed(&r->f);
    us_follow_wait(&r->f);
}


/* another node is the primary: what this one has published may not be there */

static void
us_replicate_deposed(us_replicate_t *r)
{
    us_life_t   *l;
    us_share_t  *sh;

    l = r->f.life;
    sh = l->sh;

    us_store_fence(l->mem);

    us_share_count(&sh->replicate.deposed, 1);
    us_job_say(r->f.job, US_SAY_WARN, "deposed: %s; all is read from the log",
               r->appender.error);

    /* a killed process leaves a store that the next loader empties */

    us_replog_place_end(&sh->replicate.place);
    us_release(&sh->replicate.promote, 0);
    us_release(&sh->replicate.settled, 1);
    us_release(&sh->load_applying, 1);
    us_release(&sh->load_placed, 0);
    (void) us_share_resume(sh, US_ROLE_WRITER);
    us_share_set_state(sh, US_LIFE_LOADING, "another node is the primary");

    r->writing = 0;
}


/* 0: what the log is now, of this store; -1 */

static int
us_replicate_look(us_replicate_t *r, const uint8_t uuid[16],
    us_replog_head_t *head, us_manifest_t *m)
{
    us_disk_error_t  e;

    return r->f.log->ops->head(r->f.log, head) == US_REPLOG_OK
           && memcmp(head->uuid, uuid, sizeof(head->uuid)) == 0
           && us_follow_manifest(head, m, &e) == 0 ? 0 : -1;
}


static uint64_t
us_replicate_number(const us_manifest_t *m, const char *key)
{
    char  value[24];

    return us_manifest_setting(m, key, value, sizeof(value)) == 0
           ? strtoull(value, NULL, 10) : 0;
}


/* the highest epoch that the log has had, as far as it knows */

static uint64_t
us_replicate_epoch(const us_manifest_t *m)
{
    uint64_t  lost;

    lost = us_replicate_number(m, US_REPLICATE_EPOCH);

    return lost > m->epoch ? lost : m->epoch;
}


/*
 * us_standby_env_t: an epoch that the log does not have any more is a loss,
 * also if this node has read no row of it.  The writer has the process's store.
 */

static int
us_replicate_fell(void *data, const us_replog_head_t *head)
{
    us_replicate_t *r = data;

    us_manifest_t    m;
    us_store_conf_t  have;
    us_disk_error_t  e;

    us_store_conf(r->f.store ? r->f.store : r->f.life->store, &have);

    return us_follow_manifest(head, &m, &e) == 0 && m.epoch < have.epoch;
}


/* us_replog_follows_pt: no row of a lost epoch was replaced by a base */

static int
us_replicate_goes_on(void *data, const us_replog_head_t *head,
    const us_replog_row_t *row)
{
    return us_replicate_fell(data, head) ? 0
                                         : us_follow_goes_on(data, head, row);
}


/*
 * This node's settings, with the identity of a log's store, and whether its
 * base was restored, as the settings before have it: 0, or -1.
 *
 *     lease         ms of this node's term
 *     lease_before  ms that a lease of an earlier term may last, until this
 *                   term is ready
 *     replicas      0: a commit on one server is confirmed
 *     terms         TERM@LSN,...: where the last terms began, the highest one
 *                   first
 *     lost          the LSN up to which a node has read, and the log does not
 *                   go any more
 *     lost_epoch    the epoch of that node, if the log has lost that, too
 */

static int
us_replicate_settings(us_replicate_t *r, const us_manifest_t *was,
    uint64_t epoch, uint64_t before, const char *terms,
    const us_replicate_loss_t *lost)
{
    int                         rc;
    char                       *text;
    size_t                      len;
    us_manifest_t               m;
    us_store_conf_t             conf;
    us_disk_error_t             e;
    const us_replicate_conf_t  *own;

    own = r->f.life->conf.replicate;
    conf = r->f.life->conf.store;
    memcpy(conf.uuid, was->uuid, sizeof(conf.uuid));
    conf.epoch = epoch;

    memset(&m, 0, sizeof(us_manifest_t));
    m.version = was->version;
    m.has_restored = was->has_restored;
    m.restored = was->restored;
    rc = -1;

    if (us_data_describe(&m, &conf) == 0
        && us_manifest_set_number(&m, "lease", own->lease) == 0
        && us_manifest_set_number(&m, "lease_before", before) == 0
        && us_manifest_set_number(&m, "replicas", !own->single) == 0
        && us_manifest_set(&m, "terms", us_str_of(terms)) == 0
        && (lost == NULL
            || us_manifest_set_number(&m, US_REPLICATE_LOST, lost->lsn) == 0)
        && (lost == NULL || lost->epoch <= epoch
            || us_manifest_set_number(&m, US_REPLICATE_EPOCH,
                                      lost->epoch) == 0)
        && us_manifest_print(&m, &text, &len, &e) == 0)
    {
        rc = len < sizeof(r->settings) ? 0 : -1;
        (void) snprintf(r->settings, sizeof(r->settings), "%s", text);
        free(text);
    }

    if (rc == -1) {
        (void) us_follow_fail(&r->f, US_SAY_ERROR, "the settings are too "
                              "long");
    }

    return rc;
}


/* the settings of a term that follows head, and how long leases may last */

static int
us_follow_next(us_replicate_t *r, const us_replog_head_t *head,
    const us_manifest_t *m, int led, uint64_t epoch,
    const us_replicate_loss_t *lost, uint64_t *lease)
{
    char           terms[US_STANDBY_TERMS];
    uint64_t       other;
    us_manifest_t  was;

    r->lease = r->f.life->conf.replicate->lease;
    *lease = r->lease;

    other = us_replicate_number(m, "lease");
    *lease = *lease < other ? other : *lease;

    other = led ? 0 : us_replicate_number(m, "lease_before");
    *lease = *lease < other ? other : *lease;

    if (us_manifest_setting(m, "terms", terms, sizeof(terms)) == -1) {
        terms[0] = '\0';
    }

    us_standby_terms(terms, head->term + 1, head->last.next);

    was = *m;
    was.restored = was.restored < head->last.next ? was.restored
                                                  : head->last.next;

    return us_replicate_settings(r, &was, epoch, *lease, terms, lost);
}


/*
 * A row is ours by its bytes.  The nonce tells a claim from an earlier one of
 * this node, which another server may have, and from one of another node that
 * was given the same name by mistake, or for as long as a binary upgrade takes.
 */

static size_t
us_replicate_term(void *data, uint64_t term, const char *holder,
    uint8_t buf[US_STANDBY_TERM])
{
    us_replicate_t *r = data;

    char      name[US_REPLOG_HOLDER + 20];
    size_t    n;
    us_op_t   op;

    (void) snprintf(name, sizeof(name), "%s %016" PRIx64, holder, r->nonce++);

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_TERM;
    op.id = term;
    op.bytes = us_str_of(name);

    n = us_op_head(&op, buf);
    memcpy(buf + n, op.bytes.data, op.bytes.len);

    return n + op.bytes.len;
}


/* a term that nobody is the primary of yet */

static us_replog_rc_t
us_replicate_begin_term(us_replicate_t *r, const us_replog_head_t *head,
    const us_manifest_t *m, const char *holder, uint64_t epoch,
    const us_replicate_loss_t *lost)
{
    size_t           len;
    uint8_t          buf[US_STANDBY_TERM];
    uint64_t         lease, beat;
    us_replog_row_t  row;

    if (us_follow_next(r, head, m, 0, epoch, lost, &lease) == -1) {
        return US_REPLOG_BAD;
    }

    row.lsn = head->last.next;
    row.term = head->term + 1;
    len = us_replicate_term(r, row.term, r->f.life->conf.replicate->node, buf);
    row.next = row.lsn + len;
    row.crc = us_crc32c(head->last.crc, buf, len);

    return r->f.log->ops->promote(r->f.log, &head->last, head->term, &row, buf,
                                len, holder, r->settings, &beat);
}


/*
 * The log does not have this row of a store, which was confirmed: that is to be
 * in its settings, see us_replicate.h.  0: it is, since *term; or *term is 0:
 * the log has lost nothing; 1: the rows were given up since, and all is to be
 * read anew; -1: not known.
 */

static int
us_replicate_report(us_replicate_t *r, const uint8_t uuid[16], uint64_t epoch,
    const us_replog_row_t *row, uint64_t *term)
{
    uint64_t             last;
    us_manifest_t        m;
    us_replog_head_t     head;
    us_replicate_loss_t  lost;

    *term = 0;

    if (us_replicate_look(r, uuid, &head, &m) == -1) {
        return -1;
    }

    if (m.epoch > epoch) {
        return 1;
    }

    lost.lsn = us_replicate_number(&m, US_REPLICATE_LOST);
    lost.epoch = us_replicate_epoch(&m);

    if (lost.lsn == 0 || epoch > lost.epoch) {

        /* it may be damaged, or be another server: it says nothing then */

        if (m.epoch == epoch
            && us_follow_goes_on(r, &head, row) != 0
            && (head.last.next > row->next
                || (head.last.next == row->next
                    && head.last.term == row->term
                    && head.last.crc == row->crc)))
        {
            return 0;
        }

        /* at least the row that began its epoch followed */

        last = row->next + (m.epoch < epoch);
        lost.lsn = last > lost.lsn ? last : lost.lsn;
        lost.epoch = epoch;

        if (us_replicate_begin_term(r, &head, &m, "", m.epoch, &lost)
            != US_REPLOG_OK)
        {
            return -1;
        }

        us_job_say(r->f.job, US_SAY_EMERG, "the log of shard %u has lost what "
                   "was confirmed from LSN %" PRIu64 " to %" PRIu64 ": no node "
                   "appends to it until \"urlstore cluster forget\"; save what "
                   "this node has first", r->f.life->conf.replicate->shard,
                   head.last.next, lost.lsn);
        head.term++;
    }

    *term = head.term;
    us_release(&r->f.life->sh->replicate.lost, lost.lsn);

    return 0;
}


/* the same, of the last row of this store */

static int
us_replicate_mark(us_replicate_t *r, const us_store_t *store,
    const us_replog_row_t *row)
{
    int                    rc;
    uint64_t               term;
    us_store_conf_t        have;
    us_share_replicate_t  *sh;

    sh = &r->f.life->sh->replicate;
    us_store_conf(store, &have);
    rc = us_replicate_report(r, have.uuid, have.epoch, row, &term);

    /* nobody changes anything: what is found here is there */

    if (term) {
        us_release(&sh->seen, us_clock_boottime());
    }

    if (term > row->term + 1 && us_acquire(&sh->astray) == 0) {
        us_release(&sh->astray, 1);
        (void) us_share_change(r->f.life->sh);
        us_job_say(r->f.job, US_SAY_EMERG, "other nodes have given the ids of "
                   "rows that the log has lost again: this node answers "
                   "nothing any more");
    }

    return rc;
}


/* the same, of what only the directory has */

static void
us_replicate_missing(us_replicate_t *r)
{
    uint64_t                  term;
    const us_share_copied_t  *end;

    end = us_copier_missing(r->f.life);

    if (end && us_replicate_report(r, end->at.uuid, end->at.epoch, &end->row,
                                   &term) != -1)
    {
        us_copier_reported(r->f.life);
    }
}


/* that command, if there is one.  1: all is to be read anew */

static int
us_replicate_forgotten(us_replicate_t *r, const us_store_t *store)
{
    uint64_t               epoch;
    us_manifest_t          m;
    us_store_conf_t        have;
    us_replog_head_t       head;
    us_share_replicate_t  *sh;

    sh = &r->f.life->sh->replicate;

    if (us_clock_boottime() >= us_acquire(&sh->forget)) {
        return 0;
    }

    us_store_conf(store, &have);

    if (us_replicate_look(r, have.uuid, &head, &m) == -1) {
        return 0;
    }

    if (us_replicate_number(&m, US_REPLICATE_LOST) == 0) {

        /* it may be done, by a call whose outcome was unknown */

        if (strcmp(head.holder, r->f.life->conf.replicate->node) == 0) {
            us_release(&sh->settled, 0);
            us_release(&sh->forget, 0);
        }

        return 0;
    }

    /* the log may have lost an earlier command, too */

    epoch = us_replicate_epoch(&m);
    epoch = (epoch > have.epoch ? epoch : have.epoch) + 1;

    if (us_replicate_begin_term(r, &head, &m,
                                r->f.life->conf.replicate->node, epoch, NULL)
        != US_REPLOG_OK)
    {
        return 0;
    }

    us_release(&sh->forget, 0);
    us_job_say(r->f.job, US_SAY_WARN, "the log of shard %u goes on without "
               "what it has lost, by command: epoch %" PRIu64,
               r->f.life->conf.replicate->shard, epoch);

    return 1;
}


static void
us_replicate_write_job(us_job_t *job)
{
    us_str_t           pieces[2];
    uint64_t           until, gone;
    us_life_t         *l;
    us_replicate_t    *r;
    us_appender_rc_t   rc;
    us_replog_ends_t   ends;

    l = job->life;
    until = us_job_now(l) + US_REPLICATE_TURN;

    if (us_job_stopping(l)) {
        return;
    }

    job->stays = 1;

    r = us_replicate_open(job);

    if (r == NULL) {
        l->follow_next = until;
        return;
    }

    if (!r->writing) {
        memset(&r->appender, 0, sizeof(us_appender_t));

        r->appender.log = r->f.log;
        r->appender.place = &l->sh->replicate.place;
        r->appender.ops = &us_data_ops;
        r->appender.follows = us_replicate_goes_on;
        r->appender.now = us_follow_now;
        r->appender.data = r;
        r->f.log->timeout = US_REPLICATE_CALL;
        r->writing = 1;
    }

    do {
        us_replog_ends(&l->sh->replicate.place, &ends);
        us_store_ops(l->store, ends.sure.next, pieces);

        /* what was published by then is known */

        r->appender.cut = us_store_erased_lsn(l->store);
        rc = us_appender_step(&r->appender, pieces);

        /* also what a killed process had confirmed */

        if (us_replicate_confirmed(r) == -1) {
            return;
        }

    } while (rc == US_APPENDER_OK && us_job_now(l) < until
             && us_store_published(l->store) != us_store_durable(l->store)
             && !us_job_stopping(l));

    switch (rc) {

    case US_APPENDER_OK:
        r->f.fails = 0;
        us_release(&l->sh->replicate.seen, us_clock_boottime());

        if (us_share_resume(l->sh, US_ROLE_WRITER)) {
            us_job_say(job, US_SAY_WARN, "the log confirms again");
        }

        gone = us_store_erased_lsn(l->store);

        if (us_store_durable(l->store) >= gone) {
            us_release(&l->follow_past, gone);
        }

        us_replicate_missing(r);
        break;

    case US_APPENDER_WAITS:
        r->f.fails = 0;
        /* fall through */

    case US_APPENDER_AGAIN:
        us_replicate_stall(r, US_SAY_ALERT);
        break;

    case US_APPENDER_DEPOSED:
        us_replicate_deposed(r);
        break;

    case US_APPENDER_LOST:
        us_replog_place_end(&l->sh->replicate.place);
        us_replicate_stall(r, US_SAY_EMERG);
        us_replog_ends(&l->sh->replicate.place, &ends);

        if (us_replicate_mark(r, l->store, &ends.sure) == 1) {
            us_replicate_deposed(r);

        } else if (us_replicate_forgotten(r, l->store)) {
            us_replicate_deposed(r);
            us_release(&l->sh->replicate.settled, 0);
        }

        break;
    }
}


static void
us_replicate_write_done(us_job_t *job)
{
    us_life_t  *l;

    l = job->life;

    if (us_share_state(l->sh) != US_LIFE_READY) {
        us_role_release(l->sh, US_ROLE_WRITER, l->self);
    }

    l->env.moved(l->env.data);
    us_replicate(l);
}


static int
us_replicate_apply(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_replicate_t *r = data;

    if (us_follow_apply(&r->f, p, len) == -1) {
        return -1;
    }

    r->f.lsn = row->next;
    us_release(&r->f.life->sh->load_done, row->next);
    us_share_count(&r->f.life->sh->replicate.read, len);

    if (r->f.bulk) {
        return 0;
    }

    r->standby.at = *row;

    return us_follow_publish(&r->f);
}


/* a base of a restored directory; one made since has a map that was adopted */

static int
us_replicate_base(void *data, const uint8_t *p, size_t len)
{
    us_replicate_t *r = data;

    us_manifest_t    m;
    us_disk_error_t  e;

    if (p) {
        return us_follow_apply(&r->f, p, len);
    }

    if (us_follow_manifest(&r->standby.head, &m, &e) == 0
        && m.has_restored && r->standby.part.lsn <= m.restored)
    {
        us_store_map_restored(r->f.store);
    }

    return 0;
}


/* a commit on one server is enough for this node, and was not for the term */

static int
us_replicate_single(us_replicate_t *r, const us_manifest_t *m)
{
    return r->f.life->conf.replicate->single
           && us_replicate_number(m, "replicas") != 0;
}


/* us_standby_env_t: the log's identity, this node's marks, and its lease */

static const char *
us_replicate_declare(void *data, const us_replog_head_t *head, int led,
    uint64_t *lease)
{
    us_replicate_t *r = data;

    us_manifest_t    m;
    us_store_conf_t  have;
    us_disk_error_t  e;

    if (us_follow_manifest(head, &m, &e) == -1) {
        (void) us_follow_fail(&r->f, US_SAY_ALERT, "its %s", e.text);
        return NULL;
    }

    us_store_conf(r->f.store, &have);

    if (us_replicate_number(&m, US_REPLICATE_LOST) || m.epoch != have.epoch
        || (us_replicate_single(r, &m)
            && us_clock_boottime()
               >= us_acquire(&r->f.life->sh->replicate.promote)))
    {
        return NULL;
    }

    return us_follow_next(r, head, &m, led, m.epoch, NULL, lease) == 0
           ? r->settings : NULL;
}


/*
 * The log's store must fit this node's configuration.  Marks are declared as it
 * has them; those that this node has beside them are declared with its term.
 */

static int
us_replicate_begin(us_replicate_t *r)
{
    us_share_t        *sh;
    us_data_text_t     text;
    us_store_conf_t    conf, want, have;
    us_disk_error_t    e;

    sh = r->f.life->sh;

    if (us_follow_manifest(&r->standby.head, &r->manifest, &e) == -1
        || us_data_conf(&r->manifest, &conf, &text, &e) == -1)
    {
        return us_follow_fail(&r->f, US_SAY_ALERT, "its %s", e.text);
    }

    want = r->f.life->conf.store;

    if (us_data_differs(&r->manifest, &want, &e) == -1) {
        return us_follow_fail(&r->f, US_SAY_ALERT, "%s", e.text);
    }

    us_store_conf(r->f.store, &have);

    /* by a lower one rows are lost, and are found missing */

    if (!r->f.bulk && conf.epoch > have.epoch) {
        r->f.anew = 1;
        r->f.life->follow_next = us_job_now(r->f.life) + 1;
        return -1;
    }

    if (r->f.bulk) {
        us_follow_begin(&r->f, conf.uuid, conf.epoch);
    }

    /* the store may have what this node declares, beside what the log has */

    if ((conf.nmarks > us_store_nmarks(r->f.store)
         && us_store_add_marks(r->f.store, conf.marks, conf.nmarks) == -1)
        || (conf.revisit
            && us_store_set_revisit(r->f.store, conf.revisit) == -1)
        || (conf.is_shard && us_store_set_shard(r->f.store, conf.shard) == -1))
    {
        return us_follow_again(&r->f, "its marks, claims or shard are others "
                               "than the store has");
    }

    (void) us_share_change(sh);

    return 0;
}


/*
 * Before the first step: the log's settings, or a log of this node's, which may
 * be made of a store that is there already.  0; -1: not now.
 */

static int
us_replicate_create(us_replicate_t *r)
{
    char                        node[US_REPLOG_HOLDER];
    uint8_t                     uuid[16];
    us_replog_t                *log;
    us_manifest_t               m;
    us_replog_rc_t              rc;
    us_store_conf_t             have;
    us_disk_error_t             e;
    us_replog_head_t           *head;
    const us_replicate_conf_t  *own;

    log = r->f.log;
    head = &r->standby.head;
    own = r->f.life->conf.replicate;

    rc = log->ops->head(log, head);

    if (rc == US_REPLOG_OK) {

        if (own->base && us_replicate_base_same(r->f.job, head, &e) == -1) {
            return us_follow_fail(&r->f, US_SAY_ALERT, "%s", e.text);
        }

        if (head->term || head->last.next
            || us_follow_manifest(head, &m, &e) == -1
            || us_manifest_setting(&m, US_REPLICATE_BASE, node, sizeof(node))
               == -1)
        {
            return us_replicate_begin(r);
        }

        /* its base is not there so far */

        if (own->base == NULL || strcmp(node, own->node) != 0) {
            return us_follow_fail(&r->f, US_SAY_WARN, "node \"%s\" makes its "
                                  "base of a store that is there", node);
        }

        if (us_replicate_import(r->f.job, log, &e) == -1) {
            (void) us_follow_fail(&r->f, US_SAY_ALERT, "%s", e.text);
        }

        return -1;
    }

    if (rc != US_REPLOG_NONE) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", log->error);
    }

    /*
     * A new log has this node's settings, with the identity of its store, or of
     * the one that its base is to be made of.
     */

    if (own->base) {
        if (us_replicate_base_settings(r->f.life, r->settings,
                                       sizeof(r->settings), uuid, &e)
            == -1)
        {
            return us_follow_fail(&r->f, US_SAY_ALERT, "%s", e.text);
        }

    } else {
        us_store_conf(r->f.store, &have);
        memcpy(uuid, have.uuid, sizeof(uuid));
        memset(&m, 0, sizeof(us_manifest_t));
        memcpy(m.uuid, uuid, sizeof(m.uuid));

        if (us_replicate_settings(r, &m, 1, 0, "", NULL) == -1) {
            return -1;
        }
    }

    rc = log->ops->create(log, uuid, r->settings);

    if (rc != US_REPLOG_OK && rc != US_REPLOG_REFUSED) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", log->error);
    }

    if (rc == US_REPLOG_OK) {
        us_job_say(r->f.job, US_SAY_NOTICE, "a new log begins, of shard %u",
                   own->shard);
    }

    /* the next step reads what is there now */

    return -1;
}


/*
 * Before the first step: what the directory has comes first, if the log has it,
 * too.  0; -1: not now.
 */

static int
us_replicate_copied(us_replicate_t *r)
{
    char           why[160];
    us_life_t     *l;
    us_standby_t  *sb;

    l = r->f.life;
    sb = &r->standby;

    if (l->conf.path == NULL || !r->f.bulk || r->looked) {
        return 0;
    }

    if (!r->filled) {

        switch (us_copier_read(&r->f, &r->manifest, &r->copied)) {

        case US_COPIER_OK:
            r->filled = 1;
            break;

        case US_COPIER_NONE:
            r->looked = 1;
            return 0;

        default:
            return -1;
        }
    }

    switch (us_copier_check(&r->f, &r->manifest, &r->copied)) {

    case US_COPIER_OK:
        r->f.ids = r->copied.at.tail.ids;
        sb->at = r->copied.row;
        memcpy(sb->uuid, r->manifest.uuid, sizeof(sb->uuid));
        sb->begun = 1;
        r->looked = 1;

        return 0;

    case US_COPIER_AGAIN:
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", r->f.log->error);

    default:
        (void) snprintf(why, sizeof(why), "the log has no row that ends at LSN "
                        "%" PRIu64 ", with epoch %" PRIu64 ", term %" PRIu64
                        " and CRC %08" PRIx64, r->copied.row.next,
                        r->copied.at.epoch, r->copied.row.term,
                        r->copied.row.crc);

        /* its epoch may be lost, too; each try gives the store the log's */

        us_store_set_identity(r->f.store, r->manifest.uuid,
                              r->copied.at.epoch);

        /* until the log says so, the directory is the only one that does */

        if (us_replicate_mark(r, r->f.store, &r->copied.row) == -1) {
            return us_follow_fail(&r->f, US_SAY_ALERT, "%s; what it has lost "
                                  "is not recorded there so far", why);
        }

        (void) us_copier_drop(&r->f, why);
        return -1;
    }
}


/*
 * A node that was the primary when it ended is it again, if nobody else is.  If
 * its term goes on, another process has its name: one of before an upgrade, or
 * of a configuration that was copied.
 */

static int
us_replicate_wanted(us_replicate_t *r)
{
    uint64_t               now;
    us_life_t             *l;
    us_standby_t          *sb;
    us_share_replicate_t  *sh;

    l = r->f.life;
    sb = &r->standby;
    sh = &l->sh->replicate;
    now = us_clock_boottime();

    if (now < us_acquire(&sh->promote)) {
        return 1;
    }

    if (!sb->looked || us_acquire(&sh->settled)
        || strcmp(sb->head.holder, sb->holder) != 0)
    {
        return 0;
    }

    if (now - sb->seen >= US_REPLICATE_SILENT) {
        return 1;
    }

    /* one more may be of a statement that its process did not live to see */

    if (sb->head.beat != r->beat) {
        r->beat = sb->head.beat;

        if (++r->beats == 4) {
            us_job_say(r->f.job, US_SAY_WARN, "another process is the primary "
                       "by the name of this node, \"%s\", which stands by; "
                       "each node needs a name of its own", sb->holder);
        }
    }

    return 0;
}


/*
 * What is known of the log, for everybody; whether another node has it, and the
 * news that the settings of its term are.
 */

static void
us_replicate_head(us_replicate_t *r)
{
    uint64_t               lost;
    us_standby_t          *sb;
    us_manifest_t          m;
    us_store_conf_t        have;
    us_disk_error_t        e;
    us_share_replicate_t  *sh;

    sb = &r->standby;
    sh = &r->f.life->sh->replicate;

    if (!sb->looked) {
        return;
    }

    if (us_relaxed(&sh->term) != sb->head.term) {

        if (us_follow_manifest(&sb->head, &m, &e) == -1) {
            return;
        }

        if (us_replicate_single(r, &m)) {
            us_job_say(r->f.job, US_SAY_WARN, "the nodes of shard %u differ: "
                       "this one has \"replicas=0\", \"%.63s\" began term %"
                       PRIu64 " without it; this node takes over by command "
                       "only", r->f.life->conf.replicate->shard,
                       sb->head.holder, sb->head.term);
        }

        lost = us_replicate_number(&m, US_REPLICATE_LOST);

        if (lost && us_acquire(&sh->lost) == 0) {
            us_job_say(r->f.job, US_SAY_ALERT, "a node reports that the log of "
                       "shard %u has lost rows up to LSN %" PRIu64 ", which "
                       "were confirmed: no node appends to it until \"urlstore "
                       "cluster forget\"", r->f.life->conf.replicate->shard,
                       lost);
        }

        us_release(&sh->lost, lost);

        us_store_conf(r->f.store, &have);

        if (sb->begun && have.epoch < m.epoch) {
            r->f.anew = 1;
            us_job_say(r->f.job, US_SAY_WARN, "the log has epoch %" PRIu64 "; "
                       "all is read anew", m.epoch);
        }

        /* last: a process that is killed before it leaves the news to do */

        memcpy(sh->holder, sb->head.holder, sizeof(sh->holder));
        us_release(&sh->term, sb->head.term);
    }

    us_release(&sh->acked, sb->head.acked);
    us_release(&sh->end, sb->head.last.next);
    us_release(&sh->base, sb->head.base);

    if (sb->head.term && strcmp(sb->head.holder, sb->holder) != 0) {
        us_release(&sh->settled, 1);
    }
}


/* a term of this node has begun, and nobody else denies or adds */

static void
us_replicate_ready(us_replicate_t *r)
{
    us_life_t        *l;
    us_share_t       *sh;
    us_standby_t     *sb;
    us_store_conf_t  *want;

    l = r->f.life;
    sh = l->sh;
    sb = &r->standby;
    want = &l->conf.store;

    /* a process that is killed before READY leaves a store that is emptied */

    us_release(&sh->load_applying, 1);

    if (!us_replicate_whole(r)) {
        return;
    }

    (void) us_store_set_lsn(r->f.store, sb->at.next);
    (void) us_store_add_marks(r->f.store, want->marks, want->nmarks);
    (void) us_store_set_revisit(r->f.store, want->revisit);
    us_store_allow(r->f.store, want);
    (void) us_share_change(sh);

    us_replog_place_begin(&sh->replicate.place, &sb->claim, r->f.ids, sb->sent,
                          r->lease);

    us_share_count(&sh->replicate.promotions, 1);
    (void) us_share_resume(sh, US_ROLE_WRITER);

    us_job_say(r->f.job, US_SAY_NOTICE, "the primary now, because %s: term %"
               PRIu64 " begins at LSN %" PRIu64 ", %" PRIu64 " ids", sb->why,
               sb->claim.term, sb->claim.lsn, r->f.ids);

    us_store_unfence(l->mem);
    us_follow_close(&r->f);

    /*
     * The state first: a process that is killed before it leaves a standby that
     * still has its reasons to become the primary.
     */

    us_share_set_state(sh, US_LIFE_READY, NULL);
    us_release(&sh->load_applying, 0);
    us_release(&sh->replicate.settled, 1);
    us_release(&sh->replicate.promote, 0);
}


/* one step of the standby */

static void
us_replicate_read(us_replicate_t *r)
{
    us_life_t        *l;
    us_standby_t     *sb;
    us_standby_rc_t   rc;

    l = r->f.life;
    sb = &r->standby;

    if (!sb->looked && (us_replicate_create(r) == -1
                        || us_replicate_copied(r) == -1))
    {
        return;
    }

    if (us_replicate_forgotten(r, r->f.store)) {
        us_release(&l->sh->replicate.settled, 0);
        r->f.anew = 1;
        l->follow_next = us_job_now(l) + 1;
        return;
    }

    rc = us_standby_step(sb, us_replicate_wanted(r));

    us_replicate_head(r);

    if (r->f.anew) {
        l->follow_next = l->follow_next ? l->follow_next : us_job_now(l) + 1;
        return;
    }

    if (rc <= US_STANDBY_READY) {
        us_release(&l->sh->replicate.seen, us_clock_boottime());
    }

    switch (rc) {

    case US_STANDBY_MORE:
        r->f.fails = 0;
        break;

    case US_STANDBY_OK:
    case US_STANDBY_READY:
        us_follow_level(&r->f);
        (void) us_share_reason(l->sh, us_acquire(&l->sh->replicate.lost)
                               ? "the log has lost what was confirmed; no node "
                                 "appends to it until \"urlstore cluster "
                                 "forget\"" : "");

        if (r->f.bulk
            && us_follow_settle(&r->f, "loaded from the log") == -1)
        {
            return;
        }

        if (rc == US_STANDBY_READY) {
            us_replicate_ready(r);
            return;
        }

        us_replicate_missing(r);
        l->follow_next = us_job_now(l) + US_REPLICATE_POLL;
        break;

    case US_STANDBY_LOST:
        (void) us_follow_fail(&r->f, US_SAY_ALERT, "%s", sb->error);
        r->f.anew = us_replicate_mark(r, r->f.store, &sb->at) == 1;
        break;

    case US_STANDBY_STOP:

        /* it was said why; or the log has a new base */

        if (!r->f.anew) {
            r->f.anew = 1;
            l->follow_next = us_job_now(l) + US_REPLICATE_POLL;
            us_job_say(r->f.job, US_SAY_WARN, "%s; all is read anew",
                       sb->error);
        }

        break;

    default:
        (void) us_follow_fail(&r->f, US_SAY_WARN, "%s", sb->error);
    }
}


static void
us_replicate_job(us_job_t *job)
{
    uint64_t          until;
    us_life_t        *l;
    us_share_t       *sh;
    us_standby_t     *sb;
    us_replicate_t   *r;
    us_store_conf_t   have;

    l = job->life;
    until = us_job_now(l) + US_REPLICATE_TURN;

    if (us_job_stopping(l)) {
        return;
    }

    job->stays = 1;
    l->follow_next = until;

    r = us_replicate_open(job);

    if (r == NULL) {
        return;
    }

    /* the store is what the standby's place says, or empty */

    sh = l->sh;
    sb = &r->standby;
    r->writing = 0;

    if (us_follow_prepare(&r->f) == -1) {
        return;
    }

    if (!r->reading) {
        memset(sb, 0, sizeof(us_standby_t));

        r->f.log->timeout = US_REPLICATE_CALL;

        sb->log = r->f.log;
        sb->env.term = us_replicate_term;
        sb->env.apply = us_replicate_apply;
        sb->env.base = us_replicate_base;
        sb->env.settings = us_replicate_declare;
        sb->env.follows = us_follow_goes_on;
        sb->env.fell = us_replicate_fell;
        sb->env.now = us_follow_now;
        sb->env.data = r;
        sb->holder = l->conf.replicate->node;
        sb->takeover = l->conf.replicate->takeover;
        sb->begun = us_acquire(&sh->load_placed) != 0;
        us_share_row(&sh->replicate.at, &sb->at);

        us_store_conf(r->f.store, &have);
        memcpy(sb->uuid, have.uuid, sizeof(sb->uuid));

        r->f.lsn = sb->begun ? us_acquire(&sh->load_lsn) : 0;
        r->f.ids = sb->begun ? us_acquire(&sh->load_ids) : 0;
        r->f.bulk = !sb->begun;
        r->reading = 1;
    }

    do {
        l->follow_next = 0;
        us_replicate_read(r);

    } while (l->follow_next == 0 && us_job_now(l) < until
             && us_share_state(l->sh) != US_LIFE_READY
             && !us_job_stopping(l));

    us_follow_passed(&r->f);
}


static void
us_replicate_done(us_job_t *job)
{
    us_life_t  *l;

    l = job->life;

    /*
     * It goes on by the connection that it has: to make one takes another
     * process a part of the lease.
     */

    if (us_share_state(l->sh) == US_LIFE_READY) {
        us_role_release(l->sh, US_ROLE_LOADER, l->self);
        l->env.moved(l->env.data);
        us_job_start(l, US_ROLE_WRITER, us_replicate_write_job,
                     us_replicate_write_done);
    }
}


void
us_replicate(us_life_t *l)
{
    us_replog_ends_t  ends;

    if (!us_job_stopping(l) && us_share_state(l->sh) == US_LIFE_READY) {
        us_replicate_rebase(l);
    }

    if (!us_follow_due(l, &l->follow,
                       1 << US_ROLE_LOADER | 1 << US_ROLE_WRITER)
        || us_job_now(l) < l->follow_next
        || us_share_state(l->sh) == US_LIFE_FAILED)
    {
        return;
    }

    if (us_share_state(l->sh) != US_LIFE_READY) {
        us_job_start(l, US_ROLE_LOADER, us_replicate_job, us_replicate_done);
        return;
    }

    /* if there is something to append, or a beat is due */

    us_replog_ends(&l->sh->replicate.place, &ends);

    if (us_store_published(l->store) != ends.sure.next
        || us_store_durable(l->store) != ends.sure.next
        || memcmp(&ends.last, &ends.sure, sizeof(us_replog_row_t)) != 0
        || !us_replog_recent(&l->sh->replicate.place, us_clock_boottime(),
                             US_APPENDER_BEAT))
    {
        us_job_start(l, US_ROLE_WRITER, us_replicate_write_job,
                     us_replicate_write_done);
    }
}


void
us_replicate_promote(us_life_t *l)
{
    us_release(&l->sh->replicate.promote,
               us_clock_boottime() + US_REPLICATE_COMMAND);
}


void
us_replicate_info(const us_life_t *l, us_replicate_info_t *info)
{
    uint64_t                     at, now, since;
    us_replog_ends_t             ends;
    const us_share_replicate_t  *sh;

    sh = &l->sh->replicate;
    now = us_clock_boottime();

    memset(info, 0, sizeof(us_replicate_info_t));

    if (us_share_state(l->sh) == US_LIFE_READY) {
        us_replog_ends(&sh->place, &ends);

        info->term = ends.sure.term;
        (void) snprintf(info->holder, sizeof(info->holder), "%s",
                        l->conf.replicate->node);
        info->acked = ends.sure.next;
        info->end = ends.last.next;
        at = us_store_published(l->store);
        info->lag = at > info->acked ? at - info->acked : 0;
        since = us_acquire(&sh->place.sent);

    } else {
        info->term = us_acquire(&sh->term);
        memcpy(info->holder, sh->holder, sizeof(info->holder) - 1);
        info->acked = us_acquire(&sh->acked);
        info->end = us_acquire(&sh->end);
        at = us_acquire(&l->sh->load_placed)
             ? us_acquire(&l->sh->load_lsn) : 0;
        info->lag = info->end > at ? info->end - at : 0;
        since = us_acquire(&sh->seen);
    }

    info->age = since == 0 ? US_STORE_NO_ID : now > since ? now - since : 0;
    info->base_lsn = us_acquire(&sh->base_lsn);
    info->base_bytes = us_acquire(&sh->base_bytes);
    info->off = us_relaxed(&sh->copier.off) != 0;
}


int
us_replicate_forget(us_life_t *l)
{
    /* a node that loads does not know yet */

    if (us_acquire(&l->sh->replicate.lost) == 0
        && us_life_state(l) != US_LIFE_LOADING)
    {
        return -1;
    }

    us_release(&l->sh->replicate.forget,
               us_clock_boottime() + US_REPLICATE_COMMAND);

    return 0;
}
