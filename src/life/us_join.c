
/*
 * See us_life.h: a process joins a store on disk, looks for work, and leaves.
 *
 * While the store is emptied (us_load.c), a process uses a private, empty store
 * instead.  A request that began before finds nothing in it.  Its reply is
 * refused, because the state is not READY then.
 */


#include "us_life.h"
#include "us_copier.h"
#include "us_follow.h"
#include "us_job.h"
#include "us_replicate.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>


#define US_LIFE_FOLLOW  20            /* ms between two tries of the lock */
#define US_LIFE_REAP    1000          /* ms between two looks at the dead */


/*
 * The places of dead members are free.  One may have deleted something, and not
 * have stored its LSN; or it may have left the delete half done.
 */

static void
us_life_reap(us_life_t *l)
{
    us_member_t  *m;

    if (us_job_now(l) < l->reap_next || l->empty || l->store == NULL) {
        return;
    }

    l->reap_next = us_job_now(l) + US_LIFE_REAP;

    while ((m = us_member_inherit(l->sh, l->self)) != NULL) {

        if (us_acquire(&m->deleting)) {
            us_raise(&l->sh->deleted_lsn, us_store_complete(l->store));
        }

        us_member_leave(m);
    }

    if (l->member == NULL) {
        l->member = us_member_join(l->sh, l->self);
    }
}


int
us_life_start(us_life_t *l)
{
    unsigned  i;

    l->self = us_process_self();
    l->readers = -1;

    /* left by an earlier process with the same identity */

    for (i = 0; i < US_ROLES; i++) {
        us_role_release(l->sh, i, l->self);
    }

    /* a process becomes a member before it reads the store, or its stand-in */

    l->member = us_member_join(l->sh, l->self);

    (void) us_life_refresh(l);

    if (l->store == NULL) {
        return -1;
    }

    if (l->member == NULL) {
        us_life_reap(l);
    }

    if (l->conf.memory) {

        /* what the configuration has added */

        (void) us_store_add_marks(l->store, l->conf.store.marks,
                                  l->conf.store.nmarks);
        (void) us_store_set_revisit(l->store, l->conf.store.revisit);
        us_store_allow(l->store, &l->conf.store);
    }

    return 0;
}


void
us_life_stop(us_life_t *l)
{
    unsigned  i;

    /* first: it stores words of the role, which the next holder may store */

    us_follow_stop(&l->follow);
    us_follow_stop(&l->copier);

    for (i = 0; i < US_ROLES; i++) {
        us_role_release(l->sh, i, l->self);
    }

    if (l->writer.ops) {
        us_writer_close(&l->writer);
        l->writer.ops = NULL;
    }

    if (l->syncer.ops) {
        us_writer_close(&l->syncer);
        l->syncer.ops = NULL;
    }

    if (l->readers != -1) {
        (void) close(l->readers);
        l->readers = -1;
    }

    if (l->store) {
        us_store_sweep_end(l->store, &l->sweep);
        us_store_close(l->store);
        l->store = NULL;
    }

    if (l->empty_mem) {
        (void) munmap(l->empty_mem, l->empty_size);
        l->empty_mem = NULL;
    }

    if (l->member) {
        us_member_leave(l->member);
        l->member = NULL;
    }
}


unsigned
us_life_tick(us_life_t *l)
{
    uint64_t  next;

    us_role_sweep(l->sh);

    if (l->member == NULL || us_members_deleting(l->sh)) {
        us_life_reap(l);
    }

    if (l->conf.follow) {
        us_replica(l);
        return US_LIFE_FOLLOW;
    }

    if (l->conf.replicate) {
        us_replicate(l);
        us_copier(l);
        return US_LIFE_FOLLOW;
    }

    switch (us_share_state(l->sh)) {

    case US_LIFE_COLD:
    case US_LIFE_LOADING:
    case US_LIFE_LOOKUP:
        us_load(l);
        break;

    case US_LIFE_FOLLOWING:
        us_load(l);
        return US_LIFE_FOLLOW;

    case US_LIFE_READY:

        if (!us_life_map_durable(l)) {
            us_raise(&l->sh->sync_wanted, us_store_published(l->store));
        }

        us_write(l);
        us_sync(l);
        us_keep(l);
        break;

    default:
        break;
    }

    if (l->conf.sync != US_SYNC_TIME) {
        return US_LIFE_TICK;
    }

    next = l->conf.interval / 4;
    next = next > 5 ? next : 5;

    return next < US_LIFE_TICK ? (unsigned) next : US_LIFE_TICK;
}


/* the handle of this process: 0, or -1 */

static int
us_life_use(us_life_t *l, void *mem, int empty)
{
    us_store_t  *store;

    store = us_store_open(mem, &l->lock);

    if (store == NULL) {
        return -1;
    }

    if (l->store) {
        us_store_close(l->store);
    }

    l->store = store;
    l->empty = empty;
    us_store_sweep_delay(store, l->conf.erase_within / 4000);

    /* of another store, whose LSNs may be others; or URLs were there again */

    us_store_sweep_end(store, &l->sweep);
    l->wiping = 0;

    if (l->member) {
        us_release(&l->member->wiped, 0);
    }

    return 0;
}


int
us_life_refresh(us_life_t *l)
{
    int               news;
    uint64_t          version, generation;
    us_share_t       *sh;
    us_store_conf_t   conf;

    sh = l->sh;
    news = 0;

    /* acquire: what the version is about was stored before it */

    version = us_acquire(&sh->version);

    if (us_acquire(&sh->emptying)) {

        if (!l->empty && l->empty_mem == NULL) {
            conf = l->conf.store;
            conf.ring = 0;
            conf.fenced = 1;

            l->empty_size = us_store_min_size(&conf);
            l->empty_mem = mmap(NULL, l->empty_size, PROT_READ|PROT_WRITE,
                                MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

            if (l->empty_mem == MAP_FAILED) {
                l->empty_mem = NULL;

            } else if (us_store_format(l->empty_mem, l->empty_size, &conf)
                       != 0)
            {
                (void) munmap(l->empty_mem, l->empty_size);
                l->empty_mem = NULL;
            }
        }

        if (!l->empty && l->empty_mem && us_life_use(l, l->empty_mem, 1) == 0)
        {
            news = 1;
        }

    } else {
        generation = us_acquire(&sh->load_generation);

        if ((l->store == NULL || l->empty || l->generation != generation)
            && us_life_use(l, l->mem, 0) == 0)
        {
            l->generation = generation;
            news = 1;
        }
    }

    if (version != l->version) {
        l->version = version;
        news = 1;
    }

    /*
     * Release: the last read of a store that was given up, by this thread or
     * another one, came before.  Who makes a base, or a snapshot of a copy,
     * reads it, too.
     */

    if (l->member && us_relaxed(&l->member->version) != version
        && (l->empty || us_acquire(&sh->emptying) == 0)
        && !l->jobs[US_ROLE_BASE].active && l->env.quiet(l->env.data)
        && !us_copier_inside(l))
    {
        us_release(&l->member->version, version);
    }

    return news;
}


int
us_life_close(us_life_t *l, uint64_t ms)
{
    int              rc;
    char             text[160];
    uint64_t         until, lsn;
    us_tail_t        tail;
    us_disk_error_t  e;

    /* the directory of a replicated store is a copy, which is never closed */

    if (us_share_state(l->sh) != US_LIFE_READY || us_acquire(&l->sh->lost)
        || l->conf.replicate)
    {
        return 0;
    }

    until = us_job_now(l) + ms;

    l->store = us_store_open(l->mem, &l->lock);

    if (l->store == NULL) {
        return -1;
    }

    rc = us_write_all(l, l->store, until, &tail, &e);

    if (rc == 0) {
        rc = us_recovery_clean(l->dirfd, tail.lsn, tail.ids, &e);
    }

    us_writer_close(&l->writer);
    us_store_close(l->store);
    l->store = NULL;

    if (rc != 0) {
        l->env.say(l->env.data, US_SAY_ALERT, e.text);
        return -1;
    }

    /* the counterpart of what the loader says */

    lsn = us_acquire(&l->sh->snapshot_lsn);

    (void) snprintf(text, sizeof(text), "closed: %" PRIu64 " ids; the next "
                    "start reads %s%" PRIu64 " bytes of journal", tail.ids,
                    lsn ? "a snapshot and " : "", tail.lsn - lsn);

    l->env.say(l->env.data, US_SAY_NOTICE, text);

    return 0;
}


void
us_life_write(us_life_t *l)
{
    if (l->conf.replicate) {
        us_replicate(l);

    } else {
        us_write(l);
    }
}
