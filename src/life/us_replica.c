
/*
 * A replica: a store that is what another server's store is (follow=).
 *
 *     primary  --GET /log, us_stream.h-->  replica
 *
 *     LOADING    the store is built from nothing: the primary's snapshot and
 *                the journal up to where the primary was when it was asked
 *     REPLICA    what comes is applied at once.  Hits are answered; what is not
 *                found may be there already at the primary, so nothing is
 *                denied; nothing is written
 *     TOO_SMALL  the zone has no room for the primary's URLs
 *
 * The loader's role does all of it, in jobs of a tenth of a second, so that
 * messages are logged and a process that is to end ends soon.  Between two jobs
 * the role stays with its process, which has the connection.
 *
 * Invariants:
 *
 *  1. The shared place (us_share_t.replica.at) says what the store has, except
 *     while load_applying is set.  If a process is killed meanwhile, the next
 *     one empties the store (us_load_empty()), and begins from nothing, or with
 *     path= from what the directory has (us_sink.h).
 *  2. A stream goes on only at the place that was reached, in the store of that
 *     uuid and epoch, with the CRC of the block before it.  In any other case
 *     the store is emptied first.  So it never has URLs of two stores.
 *  3. Only what is durable at the primary is sent.  So the primary cannot lose
 *     what the replica has, unless its directory is lost or replaced; then its
 *     uuid, its epoch or its bytes differ.
 *
 *     us_replica_job()
 *         us_follow_prepare()       the store is empty, or has a place
 *         us_replica_load()         what a copy has, into an empty store
 *         us_replica_connect()      GET /log, or /log?at=PLACE
 *         us_replica_read()         bytes as they come
 *             us_replica_frame()        a whole frame
 *                 us_replica_settings()     is it a store that fits?
 *                 us_replica_beat()         how far is the primary?
 *                 us_replica_block()        operations, applied
 *         us_replica_keep()         a snapshot, of a copy
 */


#include "us_sink.h"
#include "us_follow.h"
#include "../journal/us_dir.h"
#include "../store/us_shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>


#define US_REPLICA_TURN   100         /* ms that a job goes on */
#define US_REPLICA_LAST   5000        /* ms between two tries */
#define US_REPLICA_BAD    3           /* streams that do not go on */


typedef struct {
    us_follow_t       f;
    us_peer_t         peer;
    us_stream_t       stream;
    us_copy_t         copy;           /* with path= */

    us_place_t        at;             /* what was read */
    unsigned          begun:1;        /* at is valid */
    unsigned          talked:1;       /* this connection has brought a frame */
    unsigned          looked:1;       /* the copy was loaded, or is none */
    uint64_t          target;         /* LSN up to which it is being built;
                                         UINT64_MAX: not known */
    uint64_t          pending;        /* LSN of a beat, and when it came */
    uint64_t          pending_at;
    uint64_t          erased;         /* LSN: said to the primary */
    unsigned          turn;           /* of the addresses */
    unsigned          bad;            /* streams in a row that did not go on */
} us_replica_t;


/* --- the source ----------------------------------------------------------- */

/* what is shared, if this process has just got the role */

static int
us_replica_init(us_follow_t *f)
{
    us_replica_t *r = (us_replica_t *) f;

    us_share_t  *sh;

    sh = f->life->sh;

    r->target = UINT64_MAX;
    us_peer_init(&r->peer, us_job_stopping, f->life);
    us_copy_init(&r->copy, f->life->dirfd);

    if (us_acquire(&sh->load_applying) == 0) {
        r->at = sh->replica.at;
        r->begun = us_acquire(&sh->load_placed) != 0;
        f->lsn = us_acquire(&sh->load_lsn);
        f->ids = us_acquire(&sh->load_ids);
    }

    us_release(&sh->replica.connected, 0);

    return 0;
}


static void
us_replica_disconnect(us_replica_t *r)
{
    us_peer_close(&r->peer);
    us_release(&r->f.life->sh->replica.connected, 0);
}


static void
us_replica_close(us_follow_t *f)
{
    us_replica_t *r = (us_replica_t *) f;

    us_replica_disconnect(r);
    us_peer_free(&r->peer);
    us_copy_close(&r->copy);

    r->begun = 0;
    r->target = UINT64_MAX;
    r->looked = 0;
}


static void
us_replica_forget(us_follow_t *f)
{
    us_peer_wipe(&((us_replica_t *) f)->peer);
}


static int
us_replica_emptied(us_follow_t *f)
{
    us_replica_t *r = (us_replica_t *) f;

    us_disk_error_t      e;
    us_share_replica_t  *sh;

    sh = &f->life->sh->replica;
    us_release(&sh->level, 0);
    us_release(&f->life->follow_past, 0);

    if (f->anew && us_sink_remove(f->life, &r->copy, NULL, &e) == -1) {
        return us_follow_fail(f, US_SAY_WARN, "is not asked: %s", e.text);
    }

    us_share_count(&sh->restarts, f->anew || f->life->conf.path == NULL);

    return 0;
}


static int
us_replica_place(us_follow_t *f)
{
    us_replica_t *r = (us_replica_t *) f;

    f->life->sh->replica.at = r->at;

    return 0;
}


static void
us_replica_failed(us_follow_t *f)
{
    us_replica_disconnect((us_replica_t *) f);
    us_share_count(&f->life->sh->replica.failures, 1);
}


static const us_source_t  us_replica_source = {
    US_LIFE_REPLICA, US_REPLICA_LAST, US_SAY_WARN, us_replica_init,
    us_replica_close, us_replica_emptied, us_replica_place, us_replica_failed,
    us_replica_forget
};


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
        return us_follow_fail(&r->f, US_SAY_WARN, "its %s", e.text);
    }

    want = r->f.life->conf.store;
    memcpy(want.marks, conf.marks, sizeof(want.marks));
    want.nmarks = conf.nmarks;
    want.revisit = conf.revisit;

    /* what it is of is only read */

    want.lookup = 1;

    if (us_data_differs(m, &want, &e) == -1) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", e.text);
    }

    if (us_store_add_marks(r->f.store, conf.marks, conf.nmarks) == -1
        || us_store_set_revisit(r->f.store, conf.revisit) == -1
        || (conf.is_shard && us_store_set_shard(r->f.store, conf.shard) == -1))
    {
        return us_follow_again(&r->f, "its marks, claims or shard are others "
                               "than the store has");
    }

    return 0;
}


/* --- the directory -------------------------------------------------------- */

/* a store that is whole now, but for what the primary has published since */

static int
us_replica_settle(us_replica_t *r, const char *what)
{
    char  text[320];

    (void) snprintf(text, sizeof(text), "%s \"%.280s\"", what,
                    r->f.life->conf.follow->name);

    return us_follow_settle(&r->f, text);
}


/* what a copy has, into the empty store; 0, or -1: not now */

static int
us_replica_load(us_replica_t *r)
{
    int            rc;
    us_life_t     *l;
    us_sink_t      c;
    us_sink_rc_t   got;

    l = r->f.life;

    if (l->conf.path == NULL || r->looked) {
        return 0;
    }

    rc = 0;
    got = us_sink_open(&c, l);

    if (got == US_SINK_OK) {
        us_follow_begin(&r->f, c.recovery.manifest.uuid,
                        c.recovery.manifest.epoch);

        rc = us_replica_settings(r, &c.recovery.manifest);
        r->f.anew |= rc == -1;

        if (rc == 0) {
            got = us_sink_read(&c, r->f.store);
        }
    }

    switch (got) {

    case US_SINK_FRESH:
        break;

    case US_SINK_OK:

        if (rc == 0) {
            us_copy_place(&r->at, &c.recovery);
            r->begun = 1;
            r->f.lsn = c.recovery.lsn;
            r->f.ids = c.recovery.ids;
            rc = us_replica_settle(r, "the copy of");
        }

        break;

    case US_SINK_NO_ROOM:
        rc = us_follow_small(&r->f);
        break;

    case US_SINK_PASSING:
        rc = us_job_stopping(l) ? -1
             : us_follow_fail(&r->f, US_SAY_WARN, "is not asked: %s",
                              c.recovery.error.text);
        break;

    case US_SINK_USELESS:
        rc = -1;
        us_job_say(r->f.job, US_SAY_WARN, "the copy is removed, all is "
                   "fetched: %s", c.recovery.error.text);
        r->f.anew = 1;
        break;
    }

    us_recovery_close(&c.recovery);
    r->looked = (rc == 0);

    return rc;
}


/* us_data_wait_pt: nothing is applied meanwhile, so what there is, is synced */

static int
us_replica_wait(void *data, uint64_t lsn, uint64_t until)
{
    us_replica_t *r = data;

    return us_job_stopping(r->f.life) ? -1 : lsn ? us_copy_sync(&r->copy) : 0;
}


/* between two blocks: a snapshot of the store at an LSN, if one is due */

static void
us_replica_keep(us_replica_t *r)
{
    us_life_t        *l;
    us_disk_error_t   e;

    l = r->f.life;

    /* no memory: the store is not open before the next job */

    if (l->conf.path == NULL || r->f.bulk || !r->begun || r->f.store == NULL) {
        return;
    }

    if (us_erased_wanted(l, r->f.store)) {
        us_erased_look(l);
    }

    if (r->at.kind != US_SEGMENT_JOURNAL
        || !(us_snapshot_due(l, r->f.lsn, 0)
             || us_erased_due(l, r->f.store, r->at.tail.segment))
        || us_store_set_lsn(r->f.store, r->f.lsn) == -1)
    {
        return;
    }

    if (us_snapshot_take(r->f.job, r->f.store, us_replica_wait, r, NULL, &e)
            != 0
        && !us_job_stopping(l))
    {
        us_job_say(r->f.job, US_SAY_ERROR, "a snapshot failed: %s", e.text);
    }
}


/* --- what it says to the primary ------------------------------------------ */

/* see us_known.h; a disk that refuses makes an id that a restart changes */

static uint64_t
us_replica_id(us_life_t *l)
{
    uint64_t  id, random;

    id = us_acquire(&l->sh->replica.id);

    if (id == 0 && l->conf.path) {
        id = us_dir_id(l->lockfd);
    }

    if (id == 0 && getrandom(&random, sizeof(random), 0) == sizeof(random)) {
        id = random >> 12 | 1;
    }

    us_release(&l->sh->replica.id, id);

    return id;
}


/* the LSN up to which nothing is left of erasures; 0: some may be */

static uint64_t
us_replica_erased(us_replica_t *r)
{
    us_erasure_info_t  e;

    if (r->f.bulk || !r->begun) {
        return 0;
    }

    e.gone = us_store_erased_lsn(r->f.store);

    return e.gone && us_life_left(r->f.life, &e) == 0 ? e.gone : 0;
}


/* a primary sends only what is durable, and a snapshot of that */

static int
us_replica_beat(us_replica_t *r, const us_beat_t *beat)
{
    us_manifest_t       *m;
    us_share_replica_t  *sh;

    sh = &r->f.life->sh->replica;
    m = &r->stream.manifest;

    if (beat->durable > beat->published || beat->durable < r->f.lsn
        || (m->has_snapshot && beat->durable < m->snapshot))
    {
        return us_follow_fail(&r->f, US_SAY_WARN, "its beat has LSN %" PRIu64
                              " published, %" PRIu64 " durable, which is less "
                              "than it has sent", beat->published,
                              beat->durable);
    }

    us_release(&sh->published, beat->published);
    us_release(&sh->durable, beat->durable);
    us_release(&sh->ids, beat->ids);
    us_release(&sh->beat, us_job_now(r->f.life));

    if (r->pending_at == 0) {
        r->pending = beat->published;
        r->pending_at = us_job_now(r->f.life);
    }

    if (r->target == UINT64_MAX) {
        r->target = beat->durable;
    }

    us_release(&r->f.life->sh->load_total, r->target);

    return 0;
}


/* the operations of a block that are past f.lsn, or a part of the snapshot */

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
    r->bad = 0;

    if (r->stream.at.kind == US_SEGMENT_JOURNAL) {

        if (b->lsn + b->len <= r->f.lsn) {
            return 0;
        }

        skip = r->f.lsn - b->lsn;

        if (us_block_ids(p, skip, &us_data_ops, &ids) == -1
            || b->ids + ids != r->f.ids)
        {
            return us_follow_again(&r->f, "its journal does not follow its "
                                   "snapshot, at LSN %" PRIu64, b->lsn);
        }
    }

    if (us_follow_apply(&r->f, p + skip, b->len - skip) == -1) {
        return -1;
    }

    r->f.fails = 0;

    if (r->stream.at.kind == US_SEGMENT_JOURNAL) {
        r->f.lsn = b->lsn + b->len;
    }

    us_release(&r->f.life->sh->load_done, r->f.lsn);

    return 0;
}


static int
us_replica_frame(us_replica_t *r, const us_frame_t *f)
{
    int                   rc;
    us_share_t           *sh;
    const us_manifest_t  *m;

    sh = r->f.life->sh;
    m = &r->stream.manifest;

    if (f->type == US_FRAME_MANIFEST) {

        if (!r->begun) {
            us_follow_begin(&r->f, m->uuid, m->epoch);
            r->f.bulk = 1;
            r->target = UINT64_MAX;
        }

        if (us_replica_settings(r, m) == -1) {
            return -1;
        }

        if (!r->talked) {
            r->talked = 1;
            us_share_count(&sh->replica.connects, 1);
            us_release(&sh->replica.connected, 1);
            (void) us_share_reason(sh, "");
            us_job_say(r->f.job, US_SAY_NOTICE, "connected to %s, at LSN %"
                       PRIu64, r->f.name, r->f.lsn);
        }

        (void) us_share_change(sh);
    }

    /* with path=: a frame is written before it is applied */

    if (r->f.life->conf.path && f->type != US_FRAME_BEAT) {

        rc = f->type == US_FRAME_MANIFEST
             ? us_copy_settings(&r->copy, m)
             : us_copy_frame(&r->copy, &r->at, &r->stream.at, f, m);

        if (rc == US_COPY_GONE) {
            return us_follow_again(&r->f, "goes on, but not the copy: %s",
                                   r->copy.error.text);
        }

        if (rc != 0) {
            return us_follow_fail(&r->f, US_SAY_WARN, "is not asked: %s",
                                  r->copy.error.text);
        }
    }

    if ((f->type == US_FRAME_BEAT && us_replica_beat(r, &f->beat) == -1)
        || (f->type == US_FRAME_BLOCK && us_replica_block(r, f) == -1))
    {
        return -1;
    }

    if (f->type == US_FRAME_FOOTER
        && r->stream.at.kind == US_SEGMENT_SNAPSHOT)
    {
        r->f.lsn = r->stream.at.tail.lsn;
    }

    r->at = r->stream.at;
    r->begun |= f->type != US_FRAME_MANIFEST && f->type != US_FRAME_BEAT;

    if (r->f.bulk && r->f.lsn >= r->target) {
        r->begun = 1;

        if (us_replica_settle(r, "a replica of") == -1) {
            return -1;
        }

    } else if (!r->f.bulk
               && (us_acquire(&sh->load_applying)
                   || !us_acquire(&sh->load_placed)
                   || memcmp(&sh->replica.at, &r->at, sizeof(us_place_t)) != 0)
               && us_follow_publish(&r->f) == -1)
    {
        return -1;
    }

    /* whether the store has what was published when a beat came */

    if (r->pending_at && !r->f.bulk && r->f.lsn >= r->pending) {
        us_release(&sh->replica.level, r->pending_at);
        r->pending_at = 0;
        us_follow_level(&r->f);
    }

    return 0;
}


static int
us_replica_connect(us_replica_t *r)
{
    char                 target[US_PLACE_TEXT + 96];
    us_life_t           *l;
    us_peer_t           *p;
    const us_primary_t  *primary;

    l = r->f.life;
    p = &r->peer;
    primary = l->conf.follow;
    r->erased = us_replica_erased(r);

    (void) snprintf(target, sizeof(target), "log?replica=%" PRIu64 "&erased=%"
                    PRIu64 "&keeps=%d%s", us_replica_id(l), r->erased,
                    l->conf.path != NULL, r->begun ? "&at=" : "");

    if (r->begun) {
        us_place_print(&r->at, target + strlen(target));
    }

    r->talked = 0;
    r->pending = 0;
    r->pending_at = 0;

    if (us_peer_get(p, primary, r->turn++, target) == -1) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", p->error);
    }

    /* 410 without a problem document is a proxy's */

    if (p->status == 410 && p->detail && r->begun) {
        r->f.anew = 1;
        us_job_say(r->f.job, US_SAY_WARN, "%s does not go on from here, all "
                   "is fetched anew: %s", r->f.name, p->error);
        us_follow_wait(&r->f);
        return -1;
    }

    if (p->status != 200) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", p->error);
    }

    us_stream_init(&r->stream, &us_data_ops, r->begun ? &r->at : NULL);

    return 0;
}


/* whole frames that are there, and more bytes; 0: it goes on; -1: not now */

static int
us_replica_read(us_replica_t *r)
{
    int          rc;
    size_t       had, need;
    ssize_t      n;
    us_peer_t   *p;
    us_frame_t   f;

    p = &r->peer;
    need = 0;

    while (p->len > p->pos) {
        n = us_stream_next(&r->stream, p->buf + p->pos, p->len - p->pos, &f,
                           &need);

        if (n == 0) {
            break;
        }

        if (n == -1) {

            /*
             * Bytes were changed on the way.  But what does not begin with the
             * store's manifest is no stream of it: a proxy's page, for example.
             */

            r->f.anew = r->begun && r->stream.named
                        && ++r->bad >= US_REPLICA_BAD;
            r->bad = r->f.anew ? 0 : r->bad;

            return us_follow_fail(&r->f, US_SAY_WARN, "%s",
                                  r->stream.error.text);
        }

        if (us_replica_frame(r, &f) == -1) {
            return -1;
        }

        p->pos += n;
    }

    had = p->len - p->pos;
    rc = us_peer_read(p, need);

    if (rc == -1) {
        return us_follow_fail(&r->f, US_SAY_WARN, "%s", p->error);
    }

    us_share_count(&r->f.life->sh->replica.bytes, p->len - p->pos - had);

    return 0;
}


static void
us_replica_job(us_job_t *job)
{
    uint64_t       until;
    us_life_t     *l;
    us_replica_t  *r;

    l = job->life;

    if (us_job_stopping(l)) {
        return;
    }

    job->stays = 1;
    until = us_job_now(l) + US_REPLICA_TURN;
    l->follow_next = us_job_now(l) + US_PEER_STEP;

    r = (us_replica_t *) us_follow_open(job, &l->follow, sizeof(us_replica_t),
                                        &us_replica_source);

    if (r == NULL) {
        return;
    }

    if (us_follow_prepare(&r->f) == -1) {
        goto done;
    }

    l->follow_next = 0;

    if (!r->begun && !r->f.bulk && us_replica_load(r) == -1) {
        goto done;
    }

    /* a connection says it once */

    if (r->peer.fd != -1 && us_replica_erased(r) > r->erased) {
        us_replica_disconnect(r);
    }

    if (r->peer.fd == -1 && us_replica_connect(r) == -1) {
        goto done;
    }

    while (us_replica_read(r) == 0 && us_job_now(l) < until
           && !us_job_stopping(l))
    {
        /* void */
    }

    us_replica_keep(r);

done:

    us_follow_passed(&r->f);
}


static void
us_replica_done(us_job_t *job)
{
    us_replica(job->life);
}


void
us_replica(us_life_t *l)
{
    if (us_follow_due(l, &l->follow, 1 << US_ROLE_LOADER)
        && us_job_now(l) >= l->follow_next)
    {
        us_job_start(l, US_ROLE_LOADER, us_replica_job, us_replica_done);
    }
}
