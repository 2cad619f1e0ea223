
/*
 * See us_sink.h.
 */


#include "us_sink.h"
#include "us_job.h"
#include "../journal/us_crc32c.h"
#include "../journal/us_dir.h"
#include "../store/us_ring.h"

#include <sys/file.h>


/*
 * Whether the directory is no other server's, and a copy: 0, or -1 with e.  All
 * processes of this master share the open file that has the lock.  nginx
 * refuses another store at its start, but it may have been put there since.
 */

static int
us_sink_ours(us_life_t *l, us_disk_error_t *e)
{
    if (flock(l->lockfd, LOCK_EX|LOCK_NB) == -1) {
        return us_disk_fail(e, 0, "another server has \"%s\"",
                            l->conf.path);
    }

    return us_data_copied(l->dirfd, e);
}


static int
us_sink_apply(void *data, const uint8_t *p, size_t len)
{
    us_sink_t *c = data;

    int      rc;
    us_op_t  op;

    if (us_job_stopping(c->life)) {
        return US_RECOVERY_STOP;
    }

    us_release(&c->life->sh->load_done, c->recovery.done);

    if (c->more && len == 0) {
        return 0;
    }

    if (c->recovery.started) {

        /*
         * The journal goes on: a block is a row of the log, or its rest past
         * the snapshot, and a term begins with a row that has nothing else.
         */

        if (us_op_parse(p, len, &op) > 0 && op.type == US_OP_TERM) {
            c->log.term = op.id;
        }

        c->log.lsn += len;
        c->log.crc = us_crc32c(c->log.crc, p, len);
    }

    rc = c->store ? us_data_apply(c->store, p, len) : 0;

    return rc == US_RECOVERY_NO_ROOM && c->more ? 0 : rc;
}


static us_sink_rc_t
us_sink_result(us_sink_t *c, us_recovery_rc_t rc)
{
    switch (rc) {

    case US_RECOVERY_OK:
        return US_SINK_OK;

    case US_RECOVERY_FRESH:
        return US_SINK_FRESH;

    case US_RECOVERY_NO_ROOM:
        return US_SINK_NO_ROOM;

    case US_RECOVERY_NO_MEMORY:
    case US_RECOVERY_STOP:
        return US_SINK_PASSING;

    default:
        return us_disk_passing(c->recovery.error.err) ? US_SINK_PASSING
                                                      : US_SINK_USELESS;
    }
}


us_sink_rc_t
us_sink_open(us_sink_t *c, us_life_t *l)
{
    char  boot[US_BOOT_ID + 1];

    memset(c, 0, sizeof(us_sink_t));

    c->life = l;
    c->recovery.readers = -1;

    if (us_sink_ours(l, &c->recovery.error) == -1) {
        return US_SINK_PASSING;
    }

    us_manifest_boot(boot);

    return us_sink_result(c, us_recovery_open(&c->recovery, l->dirfd,
                                              &us_data_ops, us_sink_apply, c,
                                              boot));
}


us_sink_rc_t
us_sink_read(us_sink_t *c, us_store_t *store)
{
    us_recovery_rc_t  rc;

    c->store = store;
    c->log = c->recovery.manifest.log;
    us_release(&c->life->sh->load_total, c->recovery.total);

    rc = us_recovery_run(&c->recovery, 1);

    if (rc == US_RECOVERY_OK) {
        us_snapshot_counts(c->life, &c->recovery.manifest);
    }

    return us_sink_result(c, rc);
}


int
us_sink_remove(us_life_t *l, us_copy_t *copy, char *kept, us_disk_error_t *e)
{
    us_copy_close(copy);

    if (l->conf.path == NULL) {
        return 0;
    }

    if (us_sink_ours(l, e) == -1) {
        return -1;
    }

    us_release(&l->sh->snapshot_lsn, 0);
    us_release(&l->sh->snapshot_size, 0);
    us_release(&l->sh->erased, 0);

    return kept ? us_dir_keep(l->dirfd, kept, e) : us_dir_remove(l->dirfd, e);
}
