
/* See us_replicate_base.h. */


#include "us_replicate_base.h"
#include "us_follow.h"
#include "us_job.h"
#include "../journal/us_dir.h"
#include "../replog/us_rebase.h"
#include "../store/us_erasures.h"
#include "../store/us_ring.h"
#include "../store/us_shard.h"
#include "../us_clock.h"
#include "../us_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_BASE_CALL   10000          /* ms of a call, at first */
#define US_BASE_WAIT   60000          /* ms for an LSN to be confirmed */
#define US_BASE_PAUSE  5              /* ms between two looks */
#define US_BASE_GRACE  1000           /* ms before rows are removed */
#define US_BASE_KEEP   (16 * 1024 * 1024)     /* bytes of rows that stay, and */
#define US_BASE_SHARE  4              /* at most this part of the base */
#define US_BASE_TIMES  2              /* bases within erase_within=, at most */
#define US_BASE_RETRY  60000          /* ms after a failure, for erasures */


/* a base in the making */

typedef struct {
    us_life_t        *life;
    us_store_t       *store;          /* NULL: of a directory */
    us_rebase_t       rebase;
    uint64_t          gone;           /* LSN: erased records were gone by it */
    unsigned          copied:1;       /* the base in force is a directory's */
} us_maker_t;


int
us_replicate_wants_base(us_life_t *l, us_replicate_wish_t *w)
{
    uint64_t               was, done, failed;
    us_share_replicate_t  *sh;

    sh = &l->sh->replicate;

    /* in this order: the job counts, and then clears the word */

    was = us_acquire(&sh->rebase);
    done = us_acquire(&sh->rebases);
    failed = us_acquire(&sh->rebases_failed);

    if (!w->begun) {
        w->begun = 1;
        w->done = done;
        w->failed = failed;
    }

    if (done != w->done) {
        return 1;
    }

    if (failed != w->failed || us_share_state(l->sh) != US_LIFE_READY) {
        return -1;
    }

    (void) __atomic_compare_exchange_n(&sh->rebase, &was, us_clock_boottime()
                                       + US_REPLICATE_WISH, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);

    return 0;
}


const char *
us_replicate_base_why(const us_life_t *l)
{
    return us_share_state(l->sh) == US_LIFE_READY
           ? l->sh->replicate.rebase_why : "this node is not the primary";
}


static void
us_base_failed(us_job_t *job, const char *why)
{
    us_life_t             *l;
    us_share_replicate_t  *sh;

    l = job->life;
    sh = &l->sh->replicate;

    us_job_say(job, us_job_stopping(l) ? US_SAY_NOTICE : US_SAY_ERROR,
               "no new base of the log was made: %s", why);

    /* another process begins anew */

    if (us_job_stopping(l) && us_share_state(l->sh) == US_LIFE_READY) {
        return;
    }

    (void) snprintf(sh->rebase_why, sizeof(sh->rebase_why), "%s", why);

    us_release(&sh->erased_next, us_job_now(l) + US_BASE_RETRY);
    us_share_count(&sh->rebases_failed, 1);
    us_release(&sh->rebase, 0);
}


/* waits, in pieces; -1: the process ends, or the term has */

static int
us_base_pause(void *data, unsigned ms)
{
    us_maker_t *b = data;

    unsigned           n;
    us_life_t         *l;
    us_replog_ends_t   ends;

    l = b->life;

    for ( ;; ) {

        if (us_job_stopping(l)) {
            return -1;
        }

        if (b->store) {
            us_replog_ends(&l->sh->replicate.place, &ends);

            if (us_share_state(l->sh) != US_LIFE_READY
                || ends.sure.term != b->rebase.term)
            {
                return -1;
            }
        }

        if (ms == 0) {
            return 0;
        }

        n = ms < 10 * US_BASE_PAUSE ? ms : 10 * US_BASE_PAUSE;
        l->env.pause(l->env.data, n);
        ms -= n;
    }
}


static int
us_base_begin(us_maker_t *b, us_life_t *l, us_replog_t *log)
{
    memset(b, 0, sizeof(us_maker_t));

    log->timeout = US_BASE_CALL;

    b->life = l;
    b->rebase.log = log;
    b->rebase.pause = us_base_pause;
    b->rebase.data = b;
    b->rebase.size = us_fault_number("US_BASE_PART", 0);

    if (getrandom(&b->rebase.base, sizeof(b->rebase.base), 0)
        != sizeof(b->rebase.base))
    {
        return us_replog_fail(b->rebase.error, -1, "no random bytes");
    }

    return 0;
}


/* us_store_out_pt: whole operations, into parts */

static int
us_base_out(void *data, const uint8_t *p, size_t len)
{
    us_maker_t *b = data;

    size_t   used;
    ssize_t  n;
    us_op_t  op;

    us_fault(US_FAULT_SNAPSHOT);

    for (used = 0; used < len; used += n) {
        n = us_op_parse(p + used, len - used, &op);

        if (n <= 0 || (size_t) n > len - used) {
            return us_replog_fail(b->rebase.error, -1, "the store has "
                                  "something that is no operation");
        }

        if (op.type != US_OP_IMAGE && op.type != US_OP_LEAVES
            && op.type != US_OP_CACHE
            && us_rebase_put(&b->rebase, p + used, n) == -1)
        {
            return -1;
        }
    }

    return 0;
}


/* 0: in force */

static int
us_base_make(us_maker_t *b, uint64_t *lsn)
{
    uint64_t      until, end;
    us_rebase_t  *rb;

    rb = &b->rebase;

    if (us_store_dump(b->store, us_base_out, b, lsn) != 0) {
        return -1;
    }

    until = us_store_complete(b->store);

    rb->keep = rb->bytes / US_BASE_SHARE < US_BASE_KEEP
               ? rb->bytes / US_BASE_SHARE : US_BASE_KEEP;

    /* a row begins at b->gone (us_appender_t.cut): none before it stays */

    if (b->copied) {
        rb->keep = 0;

    } else if (b->gone && b->gone < *lsn && *lsn - b->gone <= rb->keep) {
        rb->keep = *lsn - b->gone - 1;
    }

    if (us_rebase_end(rb, *lsn, until) == -1) {
        return -1;
    }

    end = us_job_now(b->life) + US_BASE_WAIT;

    while (us_store_durable(b->store) < until) {

        if (us_base_pause(b, US_BASE_PAUSE) == -1
            || us_job_now(b->life) > end)
        {
            return us_replog_fail(rb->error, -1, "LSN %" PRIu64 " was not "
                                  "confirmed", until);
        }
    }

    return us_rebase_force(rb) == -1 ? -1 : 0;
}


/*
 * What the base in force has replaced is removed.  If that fails, it is when
 * the next base is made, or soon, if there are erasures.
 */

static void
us_base_trim(us_job_t *job, us_maker_t *b)
{
    uint64_t               next;
    us_life_t             *l;
    us_rebase_t            trim;
    us_share_replicate_t  *sh;

    l = job->life;
    sh = &l->sh->replicate;

    us_fault(US_FAULT_SNAPSHOT_DONE);

    /* standbys that are nearly level read the last rows before these go */

    (void) us_base_pause(b, US_BASE_GRACE);

    trim = b->rebase;

    if (us_rebase_trim(&trim) == -1) {
        us_job_say(job, US_SAY_WARN, "a new base is in force, but not all that "
                   "it has replaced was removed from the log: %s", trim.error);
        next = us_job_stopping(l) ? 0 : US_BASE_RETRY;

    } else {
        us_raise(&sh->erased, b->gone);
        next = l->conf.erase_within / US_BASE_TIMES;
    }

    us_release(&sh->erased_next, us_job_now(l) + next);
}


static void
us_base_free(us_maker_t *b)
{
    if (b->store) {
        us_store_close(b->store);
    }

    us_rebase_free(&b->rebase);
}


/* by command */

static int
us_base_wanted(const us_life_t *l)
{
    return us_clock_boottime() < us_acquire(&l->sh->replicate.rebase);
}


/* of a primary: by command, or for erasures */

static void
us_base_job(us_job_t *job)
{
    int                    done, wanted;
    uint64_t               lsn, start;
    us_maker_t             b;
    us_life_t             *l;
    us_replog_t           *log;
    us_rebase_t           *rb;
    us_replog_row_t        row;
    us_replog_ends_t       ends;
    us_replog_head_t       head;
    us_share_replicate_t  *sh;

    l = job->life;
    sh = &l->sh->replicate;
    wanted = us_base_wanted(l);
    start = us_job_now(l);
    log = us_follow_log(l);

    if (log == NULL) {
        us_base_failed(job, "no memory");
        return;
    }

    rb = &b.rebase;

    if (us_base_begin(&b, l, log) == -1) {
        goto failed;
    }

    us_replog_ends(&sh->place, &ends);

    rb->term = ends.sure.term;
    b.store = us_store_open(l->mem, &l->lock);

    if (b.store == NULL || us_store_map_stale(b.store)) {
        (void) us_replog_fail(rb->error, -1, b.store ? "the shard was "
                              "restored, and needs the newest map first"
                              : "no memory");
        goto failed;
    }

    b.gone = us_store_erased_lsn(b.store);
    done = 0;

    if (!wanted) {

        /*
         * The base in force may have been made since erased records were gone,
         * maybe by a process that was killed then.  No row begins before that
         * LSN then, so that a node which has just become the primary sees it.
         * A base that is the copy of a directory, by no term, may have what its
         * journal had.
         */

        if (log->ops->row(log, US_REPLOG_BASE, us_replog_take_row, &row)
            != US_REPLOG_OK)
        {
            (void) us_replog_fail(rb->error, -1, "%s", log->error);
            goto failed;
        }

        b.copied = row.term == 0;
        done = row.next >= b.gone && !b.copied;
    }

    if (!done && us_base_make(&b, &lsn) == -1) {
        goto failed;
    }

    start = us_job_now(l) - start;
    us_base_trim(job, &b);

    if (!done) {
        us_job_say(job, US_SAY_NOTICE, "a new base of the log: LSN %" PRIu64
                   ", %" PRIu64 " bytes in %u parts, in %" PRIu64 " ms", lsn,
                   rb->bytes, rb->parts, start);

        if (log->ops->head(log, &head) == US_REPLOG_OK) {
            us_release(&sh->base, head.base);
        }

        us_release(&sh->base_lsn, lsn);
        us_release(&sh->base_bytes, rb->bytes);
        us_share_count(&sh->rebases, 1);
        us_release(&sh->rebase, 0);
    }

    goto done;

failed:

    us_base_failed(job, rb->error);

done:

    us_base_free(&b);
    log->ops->close(log);
}


void
us_replicate_rebase(us_life_t *l)
{
    const us_share_replicate_t  *sh;

    sh = &l->sh->replicate;

    /* by command; or the log has what was erased, and a base may be made */

    if (!l->jobs[US_ROLE_BASE].active
        && (us_base_wanted(l)
            || (us_store_erased_lsn(l->store) > us_acquire(&sh->erased)
                && us_job_now(l) >= us_acquire(&sh->erased_next)
                && !us_share_stalled(l->sh, US_ROLE_WRITER)
                && !us_store_map_stale(l->store))))
    {
        us_job_start(l, US_ROLE_BASE, us_base_job, NULL);
    }
}


/* --- of a directory ------------------------------------------------------- */

static int
us_base_dir(const us_life_t *l, us_disk_error_t *e)
{
    int          dirfd, saved;
    char         owner[80];
    const char  *path;
    struct stat  st;

    path = l->conf.replicate->base;
    dirfd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dirfd == -1) {
        saved = errno;
        owner[0] = '\0';

        if (saved == EACCES && stat(path, &st) == 0) {
            (void) snprintf(owner, sizeof(owner), ", which belongs to user %u "
                            "with mode %04o, by user %u", (unsigned) st.st_uid,
                            (unsigned) st.st_mode & 07777,
                            (unsigned) geteuid());
        }

        return us_disk_fail(e, saved, "the directory of \"base\" \"%s\"%s "
                            "cannot be opened", path, owner);
    }

    return dirfd;
}


static int
us_base_manifest(const us_life_t *l, us_manifest_t *m, us_disk_error_t *e)
{
    int               dirfd;
    us_manifest_rc_t  rc;

    dirfd = us_base_dir(l, e);

    if (dirfd == -1) {
        return -1;
    }

    rc = us_manifest_read(dirfd, m, e);
    (void) close(dirfd);

    if (rc == US_MANIFEST_NONE) {
        return us_disk_fail(e, 0, "there is no store in the directory of "
                            "\"base\" \"%s\"", l->conf.replicate->base);
    }

    return rc == US_MANIFEST_OK ? 0 : -1;
}


int
us_replicate_base_settings(const us_life_t *l, char *text, size_t size,
    uint8_t uuid[16], us_disk_error_t *e)
{
    char            *printed, shard[16];
    size_t           len;
    us_manifest_t    m, to;
    us_store_conf_t  conf;
    us_disk_error_t  why;

    conf = l->conf.store;
    conf.lookup = 1;                  /* a backup will do */

    if (us_base_manifest(l, &m, e) == -1) {
        return -1;
    }

    if (us_data_differs(&m, &conf, &why) == -1) {
        return us_disk_fail(e, 0, "\"base\" \"%.100s\": %.280s",
                            l->conf.replicate->base, why.text);
    }

    conf = l->conf.store;
    memcpy(conf.uuid, m.uuid, sizeof(conf.uuid));
    memcpy(uuid, m.uuid, sizeof(conf.uuid));
    conf.epoch = m.epoch;

    /* a map of its day: nobody has to have posted the newest one since */

    memset(&to, 0, sizeof(us_manifest_t));
    to.version = m.version;
    to.has_restored = us_manifest_setting(&m, "shard", shard, sizeof(shard))
                      == 0
                      && (m.has_restored || m.state == US_STATE_BACKUP);
    to.restored = UINT64_MAX;         /* up to the first term */

    if (us_data_describe(&to, &conf) == -1
        || us_manifest_set(&to, US_REPLICATE_BASE,
                           us_str_of(l->conf.replicate->node)) == -1
        || us_manifest_print(&to, &printed, &len, e) == -1)
    {
        return us_disk_fail(e, 0, "the settings are too long");
    }

    (void) snprintf(text, size, "%s", printed);
    free(printed);

    return len < size ? 0 : us_disk_fail(e, 0, "the settings are too long");
}


/* the directory, and its lock: nobody adds to it meanwhile; -1 with e */

static int
us_base_open(const us_life_t *l, int *lock, us_disk_error_t *e)
{
    int  dirfd;

    dirfd = us_base_dir(l, e);

    if (dirfd == -1) {
        return -1;
    }

    /* a backup has no such file */

    *lock = us_disk_lock(dirfd, US_DIR_LOCK, O_RDONLY, LOCK_SH|LOCK_NB);

    if (*lock != -1 || errno == ENOENT) {
        return dirfd;
    }

    (void) us_disk_fail(e, errno == EWOULDBLOCK ? 0 : errno, "the directory of "
                        "\"base\" \"%s\" %s", l->conf.replicate->base,
                        errno == EWOULDBLOCK
                        ? "is in use: its server has to be stopped first"
                        : "cannot be locked");
    (void) close(dirfd);

    return -1;
}


static void
us_base_close(int dirfd, int lock)
{
    if (dirfd != -1) {
        (void) close(dirfd);

        if (lock != -1) {
            (void) close(lock);
        }
    }
}


int
us_replicate_base_same(us_job_t *job, const us_replog_head_t *head,
    us_disk_error_t *e)
{
    int              dirfd, lock;
    us_life_t       *l;
    us_manifest_t    m;
    us_disk_error_t  why;

    l = job->life;

    if (us_base_manifest(l, &m, e) == -1) {
        return 0;
    }

    if (memcmp(m.uuid, head->uuid, sizeof(m.uuid)) != 0) {
        return us_disk_fail(e, 0, "it is there already%s%s%s, and is not that "
                            "of the store in \"base\" \"%.150s\": to begin "
                            "it with that, stop all nodes and delete what is "
                            "there", head->holder[0] ? ", of node \"" : "",
                            head->holder, head->holder[0] ? "\"" : "",
                            l->conf.replicate->base);
    }

    if (head->term == 0 && head->last.next == 0) {
        return 0;
    }

    /*
     * The log has the base: no server is to go on with the directory.  A backup
     * has none that would.
     */

    why.text[0] = '\0';
    dirfd = us_base_open(l, &lock, &why);

    if (dirfd != -1 && us_manifest_read(dirfd, &m, &why) == US_MANIFEST_OK) {
        why.text[0] = '\0';

        if (m.state != US_STATE_BACKUP && !m.moved) {
            m.moved = 1;
            (void) us_manifest_write(dirfd, &m, &why);
        }
    }

    if (why.text[0]) {
        us_job_say(job, US_SAY_WARN, "the directory \"%s\" is in the log now, "
                   "and does not say so: %.300s; start no server with it as "
                   "its \"path\"", l->conf.replicate->base, why.text);
    }

    us_base_close(dirfd, lock);

    return 0;
}


static int
us_base_apply(void *data, const uint8_t *p, size_t len)
{
    return len == 0 || us_base_out(data, p, len) == 0 ? 0 : US_RECOVERY_STOP;
}


/* all of the directory into the base, and that in force */

int
us_replicate_import(us_job_t *job, us_replog_t *log, us_disk_error_t *e)
{
    int                dirfd, lock, made;
    char               boot[US_BOOT_ID + 1];
    unsigned           timeout;
    us_maker_t         b;
    us_life_t         *l;
    us_recovery_t      r;
    us_recovery_rc_t   rc;

    l = job->life;
    timeout = log->timeout;
    dirfd = us_base_open(l, &lock, e);

    if (dirfd == -1) {
        return -1;
    }

    made = -1;
    e->text[0] = '\0';

    if (us_base_begin(&b, l, log) == -1) {
        goto done;
    }

    us_job_say(job, US_SAY_NOTICE, "the log's base is made of \"%s\"",
               l->conf.replicate->base);

    us_manifest_boot(boot);

    rc = us_recovery_open(&r, dirfd, &us_data_ops, us_base_apply, &b, boot);

    if (rc == US_RECOVERY_OK) {
        r.whole = 1;
        rc = us_recovery_run(&r, 0);
    }

    if (rc != US_RECOVERY_OK && rc != US_RECOVERY_STOP) {
        (void) us_disk_fail(e, 0, "the directory of \"base\": %.200s",
                            rc == US_RECOVERY_FRESH ? "it is empty"
                                                    : r.error.text);

    } else if (rc == US_RECOVERY_OK && r.lsn == 0) {
        (void) us_disk_fail(e, 0, "the directory of \"base\" has no store with "
                            "URLs: the log begins without it");
        rc = US_RECOVERY_STOP;
    }

    us_recovery_close(&r);

    if (rc == US_RECOVERY_OK
        && us_rebase_end(&b.rebase, r.lsn, r.lsn) == 0
        && us_rebase_force(&b.rebase) == 0)
    {
        made = 0;
        us_job_say(job, US_SAY_NOTICE, "the log's base is made: LSN %" PRIu64
                   ", %" PRIu64 " bytes in %u parts", b.rebase.lsn,
                   b.rebase.bytes, b.rebase.parts);
    }

done:

    if (made == -1 && e->text[0] == '\0') {
        (void) us_disk_fail(e, 0, "%s", b.rebase.error);
    }

    us_base_free(&b);
    log->timeout = timeout;
    us_base_close(dirfd, lock);

    return made;
}
