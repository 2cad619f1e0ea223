
/*
 * See us_replica.h.
 *
 *     us_replica_job()
 *         us_replica_prepare()      the store is empty, or has a place
 *         us_replica_load()         what a copy has, into an empty store
 *         us_replica_connect()      GET /log, or /log?at=PLACE
 *         us_replica_read()         bytes as they come
 *             us_replica_frames()       whole frames
 *                 us_replica_manifest()     is it a store that fits?
 *                 us_replica_beat()         how far is the primary?
 *                 us_replica_block()        operations, applied
 *         us_replica_settle()       what was built is answered from now on
 *         us_replica_keep()         a snapshot, of a copy
 */


#include "us_replica.h"
#include "us_replica_copy.h"
#include "us_build.h"
#include "us_load.h"
#include "../journal/us_dir.h"
#include "../store/us_shard.h"
#include "../us_fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>


#define US_REPLICA_TURN   100         /* ms that a job goes on */
#define US_REPLICA_STEP   50          /* ms of one wait */
#define US_REPLICA_FIRST  100         /* ms after a first failure */
#define US_REPLICA_LAST   5000        /* and at most */
#define US_REPLICA_SMALL  60000       /* ms until a store too small is tried,
                                         and between two loads at most */
#define US_REPLICA_BAD    3           /* streams that do not go on */

/* ms that a store is level until a next load counts as the first one */
#define US_REPLICA_STEADY 60000


struct us_replica_s {
    us_life_t        *life;
    us_job_t         *job;
    us_peer_t         peer;
    us_stream_t       stream;
    us_store_t       *store;
    us_copy_t         copy;           /* with path= */

    us_place_t        at;             /* what was read */
    unsigned          begun:1;        /* at is valid */
    unsigned          bulk:1;         /* the store is being built */
    unsigned          aimed:1;        /* target is known */
    unsigned          anew:1;         /* the store is to be emptied */
    unsigned          talked:1;       /* this connection has brought a frame */
    unsigned          looked:1;       /* the copy was loaded, or is none */
    uint64_t          lsn;            /* applied */
    uint64_t          ids;
    uint64_t          target;         /* LSN up to which it is being built */
    uint64_t          pending;        /* LSN of a beat, and when it came */
    uint64_t          pending_at;
    unsigned          turn;           /* of the addresses */
    unsigned          fails;          /* in a row, without a new block */
    unsigned          loads;          /* from nothing, in a row */
    uint64_t          settled;        /* ms: the last one ended; or 0 */
    unsigned          bad;            /* streams in a row that did not go on */
};


static void us_replica_job(us_job_t *job);
static void us_replica_done(us_job_t *job);
static us_replica_t *us_replica_open(us_life_t *l);
static int us_replica_prepare(us_replica_t *r);
static int us_replica_load(us_replica_t *r);
static int us_replica_loaded(us_replica_t *r, us_replica_copy_t *c);
static int us_replica_unread(us_replica_t *r, const us_disk_error_t *e);
static void us_replica_close(us_replica_t *r);
static int us_replica_connect(us_replica_t *r);
static int us_replica_read(us_replica_t *r);
static int us_replica_frames(us_replica_t *r, size_t *need);
static int us_replica_frame(us_replica_t *r, const us_frame_t *f);
static int us_replica_manifest(us_replica_t *r);
static int us_replica_settings(us_replica_t *r, const us_manifest_t *m);
static int us_replica_beat(us_replica_t *r, const us_beat_t *beat);
static int us_replica_copy(us_replica_t *r, const us_frame_t *f);
static int us_replica_block(us_replica_t *r, const us_frame_t *f);
static int us_replica_apply(us_replica_t *r, const uint8_t *p, size_t len);
static int us_replica_settle(us_replica_t *r, const char *from);
static int us_replica_small(us_replica_t *r);
static void us_replica_publish(us_replica_t *r);
static void us_replica_level(us_replica_t *r);
static int us_replica_again(us_replica_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static int us_replica_fail(us_replica_t *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void us_replica_wait(us_replica_t *r);
static void us_replica_keep(us_replica_t *r);


void
us_replica(us_life_t *l)
{
    if (l->jobs[US_ROLE_LOADER].active) {
        return;
    }

    if (us_job_stopping(l)) {

        /* another process may have it at once */

        if (l->replica) {
            us_replica_stop(l);
            us_role_release(l->sh, US_ROLE_LOADER, l->self);
        }

        return;
    }

    if (us_job_now(l) >= l->replica_next) {
        (void) us_job_start(l, US_ROLE_LOADER, us_replica_job,
                            us_replica_done);
    }
}


void
us_replica_stop(us_life_t *l)
{
    us_replica_t  *r;

    r = l->replica;

    if (r) {
        us_release(&l->sh->replica.connected, 0);
        us_replica_close(r);
        us_peer_free(&r->peer);
        us_copy_close(&r->copy);
        free(r);
        l->replica = NULL;
    }
}


static void
us_replica_done(us_job_t *job)
{
    us_replica(job->life);
}


static void
us_replica_job(us_job_t *job)
{
    uint64_t       until;
    us_life_t     *l;
    us_replica_t  *r;

    l = job->life;
    until = us_job_now(l) + US_REPLICA_TURN;

    if (us_job_stopping(l)) {
        return;
    }

    job->stays = 1;
    l->replica_next = us_job_now(l) + US_REPLICA_STEP;

    r = us_replica_open(l);

    if (r == NULL) {
        return;
    }

    r->job = job;

    if (us_replica_prepare(r) == -1) {
        return;
    }

    l->replica_next = 0;

    if (!r->begun && !r->bulk && us_replica_load(r) == -1) {
        return;
    }

    if (r->peer.fd == -1 && us_replica_connect(r) == -1) {
        return;
    }

    while (us_replica_read(r) == 0 && us_job_now(l) < until
           && !us_job_stopping(l))
    {
        /* void */
    }

    us_replica_keep(r);
}


/* what this process has, from what is shared if it has just got the role */

static us_replica_t *
us_replica_open(us_life_t *l)
{
    us_replica_t        *r;
    us_share_replica_t  *sh;

    if (l->replica) {
        return l->replica;
    }

    r = calloc(1, sizeof(us_replica_t));

    if (r == NULL) {
        return NULL;
    }

    sh = &l->sh->replica;

    r->life = l;
    us_peer_init(&r->peer, us_job_stopping, l);
    us_copy_init(&r->copy, l->dirfd);

    if (us_acquire(&l->sh->load_applying) == 0) {
        r->at = sh->at;
        r->begun = us_acquire(&sh->begun) != 0;
        r->lsn = us_acquire(&l->sh->load_lsn);
        r->ids = us_acquire(&l->sh->load_ids);
    }

    us_release(&sh->connected, 0);
    l->replica = r;

    return r;
}


/*
 * 0: the store is as r->at says, or empty; -1: it is not yet.  A store that a
 * killed process, or this one, has left half made is emptied.
 */

static int
us_replica_prepare(us_replica_t *r)
{
    us_life_t        *l;
    us_share_t       *sh;
    us_disk_error_t   e;

    l = r->life;
    sh = l->sh;

    if (r->anew || us_acquire(&sh->emptying)
        || (us_acquire(&sh->load_applying) && !r->bulk))
    {
        us_replica_close(r);
        r->begun = 0;
        r->bulk = 0;
        r->aimed = 0;
        r->looked = 0;
        r->lsn = 0;
        r->ids = 0;

        us_release(&sh->replica.begun, 0);
        us_release(&sh->replica.level, 0);

        if (us_load_empty(l) == -1) {
            return -1;
        }

        if (r->anew && us_replica_copy_remove(l, &r->copy, &e) == -1) {
            return us_replica_fail(r, "is not asked: %s", e.text);
        }

        us_share_count(&sh->replica.restarts,
                       r->anew || l->conf.path == NULL);
        r->anew = 0;
    }

    if (us_share_state(sh) == US_LIFE_COLD) {
        us_share_set_state(sh, US_LIFE_LOADING, NULL);
    }

    if (r->store == NULL) {
        r->store = us_store_open(l->mem, &l->lock);
    }

    return r->store ? 0 : -1;
}


/* what a copy has, into the empty store; 0, or -1: not now */

static int
us_replica_load(us_replica_t *r)
{
    int                rc;
    us_replica_copy_t  c;

    if (r->life->conf.path == NULL || r->looked) {
        return 0;
    }

    switch (us_replica_copy_open(&c, r->life)) {

    case US_RECOVERY_FRESH:
        rc = 0;
        break;

    case US_RECOVERY_OK:
        us_release(&r->life->sh->load_applying, 1);
        us_release(&r->life->sh->load_began, us_job_now(r->life));
        us_store_set_identity(r->store, c.recovery.manifest.uuid,
                              c.recovery.manifest.epoch);

        rc = us_replica_settings(r, &c.recovery.manifest);

        if (rc == -1) {
            r->anew = 1;
            break;
        }

        rc = us_replica_loaded(r, &c);
        break;

    case US_RECOVERY_STOP:
        rc = us_replica_fail(r, "is not asked: %s", c.recovery.error.text);
        break;

    default:
        rc = us_replica_unread(r, &c.recovery.error);
        break;
    }

    us_replica_copy_end(&c);
    r->looked = (rc == 0);

    return rc;
}


static int
us_replica_loaded(us_replica_t *r, us_replica_copy_t *c)
{
    us_recovery_t  *recovery;

    recovery = &c->recovery;

    switch (us_replica_copy_read(c, r->store)) {

    case US_RECOVERY_OK:
        us_copy_place(&r->at, recovery);
        r->lsn = recovery->lsn;
        r->ids = recovery->ids;

        return us_replica_settle(r, "the copy of");

    case US_RECOVERY_STOP:
        return -1;

    case US_RECOVERY_NO_ROOM:
        return us_replica_small(r);

    case US_RECOVERY_NO_MEMORY:
        return us_replica_fail(r, "is not asked: %s", recovery->error.text);

    default:
        return us_replica_unread(r, &recovery->error);
    }
}


/*
 * A copy that could not be read.  A fault that may pass leaves it as it is.
 * Else the next job removes it, and all is fetched.
 */

static int
us_replica_unread(us_replica_t *r, const us_disk_error_t *e)
{
    if (us_disk_passing(e->err)) {
        return us_replica_fail(r, "is not asked: %s", e->text);
    }

    us_job_say(r->job, US_SAY_WARN, "the copy is removed, all is fetched: %s",
               e->text);
    r->anew = 1;

    return -1;
}


static void
us_replica_close(us_replica_t *r)
{
    us_peer_close(&r->peer);
    us_release(&r->life->sh->replica.connected, 0);

    if (r->store) {
        us_store_close(r->store);
        r->store = NULL;
    }
}


static int
us_replica_connect(us_replica_t *r)
{
    char                 target[US_PLACE_TEXT + 16];
    us_peer_t           *p;
    const us_primary_t  *primary;

    p = &r->peer;
    primary = r->life->conf.follow;

    (void) strcpy(target, "log");

    if (r->begun) {
        (void) strcpy(target, "log?at=");
        us_place_print(&r->at, target + strlen(target));
    }

    r->talked = 0;
    r->pending = 0;
    r->pending_at = 0;

    if (us_peer_get(p, primary, r->turn++, target) == -1) {
        return us_replica_fail(r, "%s", p->error);
    }

    /* 410 without a problem document is a proxy's */

    if (p->status == 410 && p->detail && r->begun) {
        r->anew = 1;
        us_job_say(r->job, US_SAY_WARN, "the primary \"%s\" does not go on "
                   "from here, all is fetched anew: %s", primary->name,
                   p->error);
        us_replica_wait(r);
        return -1;
    }

    if (p->status != 200) {
        return us_replica_fail(r, "%s", p->error);
    }

    us_stream_init(&r->stream, &us_data_ops, r->begun ? &r->at : NULL);

    return 0;
}


/* 0: it goes on; -1: not now */

static int
us_replica_read(us_replica_t *r)
{
    int         rc;
    size_t      had, need;
    us_peer_t  *p;

    p = &r->peer;
    need = 0;

    if (p->len > p->pos && us_replica_frames(r, &need) == -1) {
        return -1;
    }

    had = p->len - p->pos;
    rc = us_peer_read(p, need, US_REPLICA_STEP);

    if (rc == -1) {
        return us_replica_fail(r, "%s", p->error);
    }

    us_share_count(&r->life->sh->replica.bytes, p->len - p->pos - had);

    return 0;
}


/* all whole frames that are there; *need: bytes for the next one */

static int
us_replica_frames(us_replica_t *r, size_t *need)
{
    ssize_t      n;
    us_peer_t   *p;
    us_frame_t   f;

    p = &r->peer;

    for ( ;; ) {
        n = us_stream_next(&r->stream, p->buf + p->pos, p->len - p->pos, &f,
                           need);

        if (n == 0) {
            return 0;
        }

        if (n == -1) {

            /*
             * Bytes were changed on the way.  But what does not begin with the
             * store's manifest is no stream of it: a proxy's page, for example.
             */

            r->anew = r->begun && r->stream.named
                      && ++r->bad >= US_REPLICA_BAD;
            r->bad = r->anew ? 0 : r->bad;

            return us_replica_fail(r, "%s", r->stream.error.text);
        }

        if (us_replica_frame(r, &f) == -1) {
            return -1;
        }

        p->pos += n;
    }
}


static int
us_replica_frame(us_replica_t *r, const us_frame_t *f)
{
    int  rc;

    rc = 0;

    if (f->type == US_FRAME_MANIFEST) {
        rc = us_replica_manifest(r);
    }

    if (rc == 0 && f->type != US_FRAME_BEAT) {
        rc = us_replica_copy(r, f);
    }

    if (rc == -1) {
        return -1;
    }

    switch (f->type) {

    case US_FRAME_BEAT:
        rc = us_replica_beat(r, &f->beat);
        break;

    case US_FRAME_BLOCK:
        r->bad = 0;
        rc = us_replica_block(r, f);
        break;

    case US_FRAME_FOOTER:

        if (r->stream.at.kind == US_SEGMENT_SNAPSHOT) {
            r->lsn = r->stream.at.tail.lsn;
        }

        break;

    default:
        break;
    }

    if (rc == -1) {
        return -1;
    }

    r->at = r->stream.at;
    r->begun |= f->type != US_FRAME_MANIFEST && f->type != US_FRAME_BEAT;

    if (r->bulk && r->aimed && r->lsn >= r->target) {
        return us_replica_settle(r, "a replica of");
    }

    if (!r->bulk) {
        us_replica_publish(r);
    }

    us_replica_level(r);

    return 0;
}


static int
us_replica_manifest(us_replica_t *r)
{
    us_share_t           *sh;
    const us_manifest_t  *m;

    sh = r->life->sh;
    m = &r->stream.manifest;

    if (!r->begun) {
        r->bulk = 1;
        r->aimed = 0;
        us_release(&sh->load_applying, 1);
        us_release(&sh->load_began, us_job_now(r->life));
        us_store_set_identity(r->store, m->uuid, m->epoch);
    }

    if (us_replica_settings(r, m) == -1) {
        return -1;
    }

    if (!r->talked) {
        r->talked = 1;
        us_share_count(&sh->replica.connects, 1);
        us_release(&sh->replica.connected, 1);
        (void) us_share_reason(sh, "");
        us_job_say(r->job, US_SAY_NOTICE, "connected to the primary \"%s\", "
                   "at LSN %llu", r->life->conf.follow->name,
                   (unsigned long long) r->lsn);
    }

    (void) us_share_change(sh);

    return 0;
}


/*
 * Marks and claims are declared as the manifest has them; how URLs are
 * normalized must be the same, because this server normalizes too.
 */

static int
us_replica_settings(us_replica_t *r, const us_manifest_t *m)
{
    us_data_text_t    text;
    us_store_conf_t   conf, want;
    us_disk_error_t   e;

    if (us_data_conf(m, &conf, &text, &e) == -1) {
        return us_replica_fail(r, "its %s", e.text);
    }

    want = r->life->conf.store;
    memcpy(want.marks, conf.marks, sizeof(want.marks));
    want.nmarks = conf.nmarks;
    want.revisit = conf.revisit;

    /* what it is of is only read */

    want.lookup = 1;

    if (us_data_differs(m, &want, &e) == -1) {
        return us_replica_fail(r, "%s", e.text);
    }

    if (us_store_add_marks(r->store, conf.marks, conf.nmarks) == -1
        || us_store_set_revisit(r->store, conf.revisit) == -1
        || (conf.is_shard && us_store_set_shard(r->store, conf.shard) == -1))
    {
        return us_replica_again(r, "its marks, claims or shard are others than "
                                "the store has");
    }

    return 0;
}


/* a primary sends only what is durable, and a snapshot of that */

static int
us_replica_beat(us_replica_t *r, const us_beat_t *beat)
{
    us_manifest_t       *m;
    us_share_replica_t  *sh;

    sh = &r->life->sh->replica;
    m = &r->stream.manifest;

    if (beat->durable > beat->published || beat->durable < r->lsn
        || (m->has_snapshot && beat->durable < m->snapshot))
    {
        return us_replica_fail(r, "its beat has LSN %llu published, %llu "
                               "durable, which is less than it has sent",
                               (unsigned long long) beat->published,
                               (unsigned long long) beat->durable);
    }

    us_release(&sh->published, beat->published);
    us_release(&sh->durable, beat->durable);
    us_release(&sh->ids, beat->ids);
    us_release(&sh->beat, us_job_now(r->life));

    if (r->pending_at == 0) {
        r->pending = beat->published;
        r->pending_at = us_job_now(r->life);
    }

    if (!r->aimed) {
        r->aimed = 1;
        r->target = beat->durable;
    }

    us_release(&r->life->sh->load_total, r->target);

    return 0;
}


/* with path=: a frame is written before it is applied */

static int
us_replica_copy(us_replica_t *r, const us_frame_t *f)
{
    int  rc;

    if (r->life->conf.path == NULL) {
        return 0;
    }

    rc = f->type == US_FRAME_MANIFEST
         ? us_copy_settings(&r->copy, &r->stream.manifest)
         : us_copy_frame(&r->copy, &r->at, &r->stream.at, f,
                         &r->stream.manifest);

    if (rc == US_COPY_GONE) {
        return us_replica_again(r, "goes on, but not the copy: %s",
                                r->copy.error.text);
    }

    return rc == 0 ? 0 : us_replica_fail(r, "is not asked: %s",
                                         r->copy.error.text);
}


/* the operations of a block that are past r->lsn, or a part of the snapshot */

static int
us_replica_block(us_replica_t *r, const us_frame_t *f)
{
    size_t             skip;
    uint64_t           ids;
    const uint8_t     *p;
    const us_block_t  *b;

    b = &f->block;
    p = f->p + US_BLOCK_HEADER;
    skip = 0;

    if (r->stream.at.kind == US_SEGMENT_JOURNAL) {

        if (b->lsn + b->len <= r->lsn) {
            return 0;
        }

        skip = r->lsn - b->lsn;

        if (us_block_ids(p, skip, &us_data_ops, &ids) == -1
            || b->ids + ids != r->ids)
        {
            return us_replica_again(r, "its journal does not follow its "
                                    "snapshot, at LSN %llu",
                                    (unsigned long long) b->lsn);
        }
    }

    (void) us_block_ids(p + skip, b->len - skip, &us_data_ops, &ids);

    if (us_replica_apply(r, p + skip, b->len - skip) == -1) {
        return -1;
    }

    r->ids += ids;
    r->fails = 0;

    if (r->stream.at.kind == US_SEGMENT_JOURNAL) {
        r->lsn = b->lsn + b->len;
    }

    us_release(&r->life->sh->load_done, r->lsn);

    return 0;
}


static int
us_replica_apply(us_replica_t *r, const uint8_t *p, size_t len)
{
    const char  *why;

    if (us_build_apply(r->life, r->store, p, len, r->bulk, &why) == -1) {
        return us_replica_again(r, "%s, at LSN %llu", why,
                                (unsigned long long) r->lsn);
    }

    return 0;
}


/* the store has all up to the target: it is answered from */

static int
us_replica_settle(us_replica_t *r, const char *from)
{
    us_life_t   *l;
    us_share_t  *sh;

    l = r->life;
    sh = l->sh;

    switch (us_build_settle(r->store, r->lsn, r->ids)) {

    case 0:
        break;

    case US_RECOVERY_NO_ROOM:
        return us_replica_small(r);

    default:
        return us_replica_again(r, "what it sent is no whole store: %llu ids "
                                "of %llu",
                                (unsigned long long)
                                    us_store_next_id(r->store),
                                (unsigned long long) r->ids);
    }

    r->bulk = 0;
    r->begun = 1;
    r->settled = us_job_now(l);
    us_release(&sh->load_ms, us_job_now(l) - us_acquire(&sh->load_began));
    us_replica_publish(r);

    us_fault(US_FAULT_LOADED);

    us_replica_level(r);

    us_job_say(r->job, US_SAY_NOTICE, "%s \"%s\": %llu ids, epoch %llu, LSN "
               "%llu, in %llu ms", from, l->conf.follow->name,
               (unsigned long long) r->ids,
               (unsigned long long) r->at.epoch,
               (unsigned long long) r->lsn,
               (unsigned long long) us_acquire(&sh->load_ms));

    /* the handle has the memory of building */

    us_store_close(r->store);
    r->store = us_store_open(l->mem, &l->lock);

    return r->store ? 0 : us_replica_fail(r, "no memory");
}


/* SIZE is too small: it is tried again, as the primary may have less by then */

static int
us_replica_small(us_replica_t *r)
{
    us_build_small(r->job, r->store, 0, "the primary's data");
    us_replica_close(r);

    /* a copy stays: the next SIZE may suffice */

    r->anew = r->bulk;
    r->life->replica_next = us_job_now(r->life) + US_REPLICA_SMALL;

    return -1;
}


/* what the store has, and that it is answered from */

static void
us_replica_publish(us_replica_t *r)
{
    us_share_t  *sh;

    sh = r->life->sh;

    if (us_acquire(&sh->load_applying) == 0
        && us_acquire(&sh->replica.begun)
        && memcmp(&sh->replica.at, &r->at, sizeof(us_place_t)) == 0)
    {
        return;
    }

    us_release(&sh->load_applying, 1);

    sh->replica.at = r->at;
    us_release(&sh->replica.begun, 1);
    us_build_publish(sh, US_LIFE_REPLICA, r->lsn, r->ids);
}


/* whether the store has what was published when a beat came */

static void
us_replica_level(us_replica_t *r)
{
    if (r->pending_at == 0 || r->bulk || r->lsn < r->pending) {
        return;
    }

    us_release(&r->life->sh->replica.level, r->pending_at);
    r->pending_at = 0;
    r->fails = 0;

    if (us_job_now(r->life) - r->settled >= US_REPLICA_STEADY) {
        r->loads = 0;
    }
}


/* all is fetched anew */

static int
us_replica_again(us_replica_t *r, const char *fmt, ...)
{
    char     text[400];
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    r->anew = 1;

    return us_replica_fail(r, "%s", text);
}


/* the connection is given up, for some time that grows; news is said once */

static int
us_replica_fail(us_replica_t *r, const char *fmt, ...)
{
    char        text[US_SHARE_REASON], what[400];
    va_list     args;
    us_life_t  *l;

    l = r->life;

    va_start(args, fmt);
    (void) vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    us_peer_close(&r->peer);
    us_release(&l->sh->replica.connected, 0);
    us_share_count(&l->sh->replica.failures, 1);

    us_replica_wait(r);

    (void) snprintf(text, sizeof(text), "the primary \"%s\": %s",
                    l->conf.follow->name, what);

    if (us_share_reason(l->sh, text)) {
        us_job_say(r->job, US_SAY_WARN, "%s; it is tried again", text);
    }

    return -1;
}


/*
 * When the primary is asked again.  The wait doubles with each failure in a
 * row.  A load from nothing costs the primary all of its data, so loads have a
 * row of their own, which a block that could be applied does not end.
 */

static void
us_replica_wait(us_replica_t *r)
{
    unsigned  n;
    uint64_t  wait, most;

    n = r->anew ? r->loads++ : r->fails++;
    most = r->anew ? US_REPLICA_SMALL : US_REPLICA_LAST;
    wait = (uint64_t) US_REPLICA_FIRST << (n < 10 ? n : 10);

    r->life->replica_next = us_job_now(r->life) + (wait < most ? wait : most);
}


/* between two blocks */

static void
us_replica_keep(us_replica_t *r)
{
    us_manifest_t    m;
    us_disk_error_t  e;

    if (r->bulk || !r->begun || r->at.kind != US_SEGMENT_JOURNAL) {
        return;
    }

    switch (us_replica_copy_keep(r->life, &r->copy, r->store, r->lsn, &m, &e))
    {

    case 1:
        us_job_say(r->job, US_SAY_NOTICE, "snapshot up to LSN %llu, %llu "
                   "bytes in the directory", (unsigned long long) m.snapshot,
                   (unsigned long long) us_dir_bytes(r->life->dirfd));
        break;

    case -1:
        us_job_say(r->job, US_SAY_ERROR, "a snapshot failed: %s", e.text);
        break;

    default:
        break;
    }
}
