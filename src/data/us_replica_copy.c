
/*
 * See us_replica_copy.h.
 */


#include "us_replica_copy.h"
#include "us_job.h"
#include "us_policy.h"
#include "../journal/us_dir.h"

#include <sys/file.h>


#define US_REPLICA_KEEP   60000       /* ms after a snapshot that failed */


static int us_replica_copy_apply(void *data, const uint8_t *p, size_t len);
static int us_replica_copy_wait(void *data, uint64_t lsn);
static void us_replica_copy_snapshot(us_life_t *l, const us_manifest_t *m);


us_recovery_rc_t
us_replica_copy_open(us_replica_copy_t *c, us_life_t *l)
{
    char              boot[US_BOOT_ID + 1];
    us_recovery_rc_t  rc;

    memset(c, 0, sizeof(us_replica_copy_t));

    c->life = l;
    c->recovery.readers = -1;

    /* all processes of this master share the open file that has the lock */

    if (flock(l->lockfd, LOCK_EX|LOCK_NB) == -1) {
        (void) us_disk_fail(&c->recovery.error, 0, "another server has \"%s\"",
                            l->conf.path);
        return US_RECOVERY_STOP;
    }

    us_manifest_boot(boot);

    rc = us_recovery_open(&c->recovery, l->dirfd, &us_data_ops,
                          us_replica_copy_apply, c, boot);

    /* nginx refuses another one at its start; it was put there since */

    return rc == US_RECOVERY_OK
           && us_data_copied(&c->recovery.manifest, &c->recovery.error) == -1
           ? US_RECOVERY_STOP : rc;
}


void
us_replica_copy_end(us_replica_copy_t *c)
{
    us_recovery_close(&c->recovery);
}


us_recovery_rc_t
us_replica_copy_read(us_replica_copy_t *c, us_store_t *store)
{
    us_recovery_rc_t  rc;

    c->store = store;
    us_release(&c->life->sh->load_total, c->recovery.total);

    rc = us_recovery_run(&c->recovery, 1);

    if (rc == US_RECOVERY_OK) {
        us_replica_copy_snapshot(c->life, &c->recovery.manifest);
    }

    return rc;
}


static int
us_replica_copy_apply(void *data, const uint8_t *p, size_t len)
{
    us_replica_copy_t *c = data;

    if (us_job_stopping(c->life)) {
        return US_RECOVERY_STOP;
    }

    us_release(&c->life->sh->load_done, c->recovery.done);

    return us_data_apply(c->store, p, len);
}


/* what us_policy.h counts from */

static void
us_replica_copy_snapshot(us_life_t *l, const us_manifest_t *m)
{
    us_release(&l->sh->snapshot_lsn, m->has_snapshot ? m->snapshot : 0);
    us_release(&l->sh->snapshot_size,
               m->has_snapshot
               ? us_dir_snapshot_bytes(l->dirfd, m->snapshot) : 0);
}


int
us_replica_copy_remove(us_life_t *l, us_copy_t *copy, us_disk_error_t *e)
{
    us_copy_close(copy);

    if (l->conf.path == NULL) {
        return 0;
    }

    us_release(&l->sh->snapshot_lsn, 0);
    us_release(&l->sh->snapshot_size, 0);

    return us_dir_remove(l->dirfd, e);
}


/* what one snapshot waits for: the life, and what is to be synced */

typedef struct {
    us_life_t  *life;
    us_copy_t  *copy;
} us_replica_wait_t;


int
us_replica_copy_keep(us_life_t *l, us_copy_t *copy, us_store_t *store,
    uint64_t lsn, us_manifest_t *m, us_disk_error_t *e)
{
    us_policy_t        p;
    us_replica_wait_t  wait;

    if (l->conf.path == NULL || l->conf.snapshot == 0
        || us_job_now(l) < us_acquire(&l->sh->snapshot_next))
    {
        return 0;
    }

    p.least = l->conf.snapshot;
    p.journal = lsn - us_acquire(&l->sh->snapshot_lsn);
    p.size = us_acquire(&l->sh->snapshot_size);
    p.deletes = 0;

    if (!us_policy_due(&p) || us_store_set_lsn(store, lsn) == -1) {
        return 0;
    }

    wait.life = l;
    wait.copy = copy;

    if (us_data_snapshot(store, l->dirfd, us_replica_copy_wait, &wait, m, e)
        != 0)
    {
        us_release(&l->sh->snapshot_next, us_job_now(l) + US_REPLICA_KEEP);
        return us_job_stopping(l) ? 0 : -1;
    }

    us_replica_copy_snapshot(l, m);
    us_share_count(&l->sh->snapshots, 1);

    return 1;
}


/* us_data_wait_pt: nothing is applied meanwhile, so what there is, is synced */

static int
us_replica_copy_wait(void *data, uint64_t lsn)
{
    us_replica_wait_t *wait = data;

    if (us_job_stopping(wait->life)) {
        return -1;
    }

    return lsn ? us_copy_sync(wait->copy) : 0;
}
