
/*
 * What a store on disk may answer now, and what it has promised: by its state,
 * by its watermarks, and by a disk that refuses or hangs.  Which requests the
 * state lets pass, and whether their replies are still true when they are sent.
 * See us_life.h.
 *
 *     READY                all; changes while the disk takes them
 *     REPLICA              reads
 *     FOLLOWING, STANDBY, STALLED, DAMAGED
 *                          reads that find something: no lists, no counts
 *     LOOKUP               reads by id
 *     others               none
 */


#include "us_job.h"
#include "us_known.h"
#include "../store/us_shard.h"
#include "../us_clock.h"

#include <stdio.h>


us_life_state_t
us_life_state(const us_life_t *l)
{
    us_life_state_t  state;

    if (l->conf.memory) {
        return US_LIFE_READY;
    }

    state = us_share_state(l->sh);

    if (state == US_LIFE_READY && l->conf.replicate
        && !us_replog_lease(&l->sh->replicate.place, us_clock_boottime()))
    {
        state = US_LIFE_STALLED;
    }

    if (us_acquire(&l->sh->replicate.astray)) {
        state = US_LIFE_LOADING;
    }

    /* others have a new store already, this process not yet */

    if (l->member == NULL || l->empty
        || l->generation != us_acquire(&l->sh->load_generation))
    {
        return state == US_LIFE_FAILED || state == US_LIFE_TOO_SMALL
               ? state : US_LIFE_LOADING;
    }

    return state;
}


/* that the node has heard of its log for less than ms */

static int
us_life_heard(const us_life_t *l, uint64_t ms)
{
    uint64_t  seen;

    /* the clock last: another process may hear of it just now */

    seen = us_acquire(&l->sh->replicate.seen);

    return us_clock_boottime() < seen + ms;
}


/*
 * A server that does not own the directory: whether it has read all deletes
 * that may have been answered.  Its owner writes the watermark before that.  A
 * node without its log: whether they are few.
 */

int
us_life_current(const us_life_t *l)
{
    us_watermark_t   mark;
    us_life_state_t  state;
    us_store_conf_t  conf;

    state = us_life_state(l);

    if (l->conf.replicate
        && (state == US_LIFE_STANDBY || state == US_LIFE_STALLED))
    {
        return l->conf.replicate->stale == 0
               || us_life_heard(l, l->conf.replicate->stale);
    }

    if (state != US_LIFE_FOLLOWING) {
        return 1;
    }

    us_store_conf(l->store, &conf);

    if (us_watermark_read(l->dirfd, &mark) == -1
        || memcmp(mark.uuid, conf.uuid, 16) != 0)
    {
        return 0;
    }

    return mark.deleted <= us_acquire(&l->sh->load_lsn);
}


int
us_life_whole(const us_life_t *l)
{
    us_life_state_t  state;

    state = us_life_state(l);

    return state == US_LIFE_READY || state == US_LIFE_LOOKUP;
}


int
us_life_refuses(const us_life_t *l, char *reason)
{
    uint64_t           age, stalled, now, since;
    unsigned           i;
    const char        *why;
    const us_share_t  *sh;

    if (l->conf.memory) {
        return 0;
    }

    sh = l->sh;
    stalled = us_acquire(&sh->stalled);

    if (us_acquire(&sh->lost) || stalled) {

        why = us_acquire(&sh->lost) ? sh->reason
                                    : sh->why[__builtin_ctzll(stalled)];

        if (reason) {
            snprintf(reason, US_SHARE_REASON, "%s", why);
        }

        return 1;
    }

    /*
     * ms that the write or the sync has taken which began first, or that the
     * oldest byte is older than the zone promises to sync it.
     */

    now = us_job_now(l);
    age = 0;

    for (i = US_ROLE_WRITER; i <= US_ROLE_SYNCER; i++) {
        since = us_acquire(&sh->roles[i].since);

        if (since && since < now && us_acquire(&sh->roles[i].holder)) {
            age = now - since > age ? now - since : age;
        }
    }

    since = us_acquire(&sh->dirty_since);

    if (l->conf.sync == US_SYNC_TIME && since
        && since + l->conf.interval < now)
    {
        since = now - since - l->conf.interval;
        age = since > age ? since : age;
    }

    if (age > US_LIFE_HUNG) {

        if (reason) {
            snprintf(reason, US_SHARE_REASON, "a write or a sync has not "
                     "returned for %u seconds", (unsigned) (age / 1000));
        }

        return 1;
    }

    return 0;
}


int
us_life_writable(const us_life_t *l, char *reason)
{
    return us_life_state(l) == US_LIFE_READY && !l->ending
           && !us_life_refuses(l, reason);
}


/* while the journal has a gap, no more than had been promised before */

static uint64_t
us_life_least(const us_life_t *l, uint64_t value, const uint64_t *gap)
{
    uint64_t  most;

    if (!us_share_stalled(l->sh, US_ROLE_KEEPER)) {
        return value;
    }

    most = us_acquire(gap);

    return value < most ? value : most;
}


int
us_life_map_durable(const us_life_t *l)
{
    return us_store_map_lsn(l->store) <= us_store_durable(l->store);
}


uint64_t
us_life_lsn(const us_life_t *l)
{
    return l->conf.memory ? UINT64_MAX
           : us_life_least(l, us_store_promised(l->store, l->conf.sync
                                                == US_SYNC_ALWAYS),
                           &l->sh->gap_lsn);
}


uint64_t
us_life_ids(const us_life_t *l)
{
    if (l->conf.memory) {
        return us_store_next_id(l->store);
    }

    switch (us_life_state(l)) {

    case US_LIFE_READY:
    case US_LIFE_STALLED:
        return us_life_least(l, us_acquire(l->conf.sync == US_SYNC_ALWAYS
                                           ? &l->sh->durable_ids
                                           : &l->sh->written_ids),
                             &l->sh->gap_ids);

    case US_LIFE_LOOKUP:
        return us_store_next_id(l->store);

    case US_LIFE_REPLICA:
    case US_LIFE_STANDBY:
        return us_acquire(&l->sh->written_ids);

    default:
        return US_STORE_NO_ID;
    }
}


uint64_t
us_life_durable_ids(const us_life_t *l)
{
    return us_acquire(&l->sh->durable_ids);
}


int
us_life_recent(const us_life_t *l)
{
    switch (us_life_state(l)) {

    case US_LIFE_STALLED:
        return 0;

    case US_LIFE_STANDBY:
        return us_life_heard(l, l->conf.replicate->lease);

    default:
        return 1;
    }
}


void
us_life_journal(us_life_t *l, us_tail_t *tail, us_beat_t *beat)
{
    us_share_t  *sh;

    sh = l->sh;

    /* the tail last: it is at or past the LSN that is durable */

    beat->durable = us_life_least(l, us_store_durable(l->store),
                                  &sh->gap_lsn);
    beat->published = us_store_published(l->store);
    beat->ids = us_acquire(&sh->written_ids);

    us_share_tail(sh, tail);

    if (beat->durable < us_store_written(l->store)
        && us_job_now(l) >= l->wanted_next)
    {
        l->wanted_next = us_job_now(l) + US_LIFE_WANTED;
        us_raise(&sh->sync_wanted, us_store_written(l->store));
    }
}


/*
 * Counted before the delete, so that nobody takes its effect for durable: the
 * LSN is known afterwards only.
 */

void
us_life_deleting(us_life_t *l)
{
    if (!l->conf.memory) {
        us_share_count(&l->member->deleting, 1);
    }
}


void
us_life_deleted(us_life_t *l, uint64_t lsn)
{
    if (!l->conf.memory) {
        us_raise(&l->sh->deleted_lsn, lsn);
        us_share_count(&l->member->deleting, -1);
    }
}


unsigned
us_life_left(const us_life_t *l, const us_erasure_info_t *e)
{
    unsigned  left;

    left = e->gone ? 0 : US_LEFT_MEMORY;

    if (left || us_members_wiped(l->sh) < e->gone) {
        left |= US_LEFT_WORKERS;
    }

    if (l->conf.path
        && (e->gone == 0 || us_acquire(&l->sh->erased) < e->gone))
    {
        left |= US_LEFT_FILES;
    }

    if (l->conf.replicate
        && (e->gone == 0 || us_acquire(&l->sh->replicate.erased) < e->gone))
    {
        left |= US_LEFT_LOG;
    }

    return left | us_known_left(l->sh, e->gone, us_job_now(l));
}


int
us_life_deletes_promised(const us_life_t *l)
{
    return !us_members_deleting(l->sh)
           && us_acquire(&l->sh->deleted_lsn) <= us_life_lsn(l);
}


/* states of one word stand together */

static const char  *us_life_words[US_LIFE_STATES] = {
    [US_LIFE_COLD] = "loading",
    [US_LIFE_LOADING] = "loading",
    [US_LIFE_FOLLOWING] = "not-owner",
    [US_LIFE_READY] = "ready",
    [US_LIFE_LOOKUP] = "ready",
    [US_LIFE_REPLICA] = "replica",
    [US_LIFE_STANDBY] = "standby",
    [US_LIFE_STALLED] = "stalled",
    [US_LIFE_DAMAGED] = "damaged",
    [US_LIFE_TOO_SMALL] = "too-small",
    [US_LIFE_FAILED] = "failed",
};


const char *
us_life_state_word(us_life_state_t state)
{
    return us_life_words[state];
}


void
us_life_info(const us_life_t *l, us_life_info_t *info)
{
    uint64_t           total, share;
    us_tail_t          tail;
    const us_share_t  *sh;

    sh = l->sh;
    memset(info, 0, sizeof(us_life_info_t));

    total = us_acquire(&sh->load_total);
    share = total ? us_acquire(&sh->load_done) * 100 / total : 0;
    info->progress = us_share_state(sh) > US_LIFE_LOADING ? 100
                     : share < 99 ? share : 99;
    info->sync_failed = us_acquire(&sh->lost) != 0;
    info->stalled = us_life_refuses(l, info->reason) && !info->sync_failed;

    if (us_share_state(sh) != US_LIFE_READY) {
        snprintf(info->reason, sizeof(info->reason), "%s", sh->reason);
    }

    us_share_tail(sh, &tail);
    info->segment = tail.segment;

    /* a filter has a life without a store, and without a clock */

    if (l->mem) {
        info->replicas = us_known_count(sh, us_job_now(l),
                                        &info->replicas_away);
    }
}


void
us_life_lag(const us_life_t *l, us_life_lag_t *lag)
{
    uint64_t                   now, beat, level;
    const us_share_replica_t  *r;

    r = &l->sh->replica;
    beat = us_acquire(&r->beat);
    level = us_acquire(&r->level);

    /* the clock last: no time that was read above is later */

    now = us_job_now(l);

    lag->connected = us_acquire(&r->connected) != 0;
    lag->lsn = us_acquire(&l->sh->load_lsn);
    lag->published = us_acquire(&r->published);
    lag->bytes = lag->published > lag->lsn ? lag->published - lag->lsn : 0;

    if (us_share_state(l->sh) != US_LIFE_REPLICA || level == 0) {
        lag->ms = UINT64_MAX;

    } else if (lag->connected && lag->bytes == 0 && now - beat < US_LIFE_BEAT) {
        lag->ms = 0;

    } else {
        lag->ms = now - level;
    }
}


int
us_life_admits(const us_life_t *l, unsigned wants)
{
    if (wants & US_WANTS_CHANGE) {
        return us_life_writable(l, NULL);
    }

    switch (us_life_state(l)) {

    case US_LIFE_READY:
    case US_LIFE_REPLICA:
        return 1;

    case US_LIFE_FOLLOWING:
    case US_LIFE_STANDBY:
    case US_LIFE_STALLED:
    case US_LIFE_DAMAGED:
        return !(wants & US_WANTS_ALL) && us_life_current(l);

    case US_LIFE_LOOKUP:
        return (wants & US_WANTS_BY_ID) != 0;

    default:
        return 0;
    }
}


int
us_life_answers(const us_life_t *l, int found)
{
    return found ? us_life_admits(l, 0) : us_life_state(l) == US_LIFE_READY;
}


void
us_life_view(const us_life_t *l, us_life_view_t *view)
{
    view->partial = !us_life_whole(l);
    view->generation = l->generation;
}


/*
 * A URL that was not found before the store owned its directory may be there
 * now.  If the store has begun anew since, those that were found do not count
 * either.
 */

int
us_life_overtaken(const us_life_t *l, const us_life_view_t *view, int denies)
{
    return view->generation != us_share_generation(l->sh)
           || us_life_state(l) <= US_LIFE_LOADING
           || (denies && (view->partial || !us_life_whole(l)));
}


/*
 * An add under way causes no absence, as its URL is found; a delete under way
 * does.  So does a map: under it, a URL is denied that another shard may add.
 */

int
us_life_promised(const us_life_t *l, uint64_t lsn, uint64_t top, int absent)
{
    return us_life_lsn(l) >= lsn
           || (top != US_STORE_NO_ID && top <= us_life_ids(l)
               && (!absent || (us_life_deletes_promised(l)
                               && us_life_map_durable(l))));
}
