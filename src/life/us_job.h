
/*
 * A job: long work of a role, in a thread of the process that has the role.
 *
 *     event loop   us_job_start() ........................ us_job_done()
 *     thread                      `--> us_job_run() --'
 *
 * The caller's environment starts the thread, and brings its end to the event
 * loop (us_life_env_t).  A role has one job at a time, so the data of a role
 * need no lock.
 *
 * The jobs of a store in a directory:
 *
 *     loader    a directory's data into the store                us_load.c
 *     writer    the store's operations into the journal          us_write.c
 *     syncer    the journal to the disk                          us_write.c
 *     keeper    snapshots while the service runs, and scrubs     us_keep.c
 *
 *
 * When a snapshot is worth its price.
 *
 * A start reads the snapshot and then replays the journal past it.  A URL of
 * the journal costs a start several times the time of a URL of the snapshot,
 * whose index is ready.  So the length of the journal past the snapshot bounds
 * the time of a start.  But a snapshot writes the whole store again.  If one is
 * taken when the journal has grown to a twelfth of the snapshot, all snapshots
 * together write twelve bytes for each byte that is added.  us_keep() asks that
 * at each tick of each worker (us_policy_due(), us_keep.c).  The worker that
 * gets the role of the keeper writes the snapshot, in a thread.
 *
 * With the default option a start replays at most 12 MiB, or a twelfth of a
 * snapshot of more than 144 MiB, and what is added while the snapshot is being
 * written; of deletes, half as much.  `make bench-durability` measures that;
 * docs/decisions/durability.md has the figures of other shares.
 */


#ifndef _US_JOB_H_INCLUDED_
#define _US_JOB_H_INCLUDED_


#include "us_life.h"


/*
 * Takes the role and starts its job: run in a thread, then done in the event
 * loop (may be NULL).  Does nothing if another process has the role, if it is
 * held (us_life_hold()), or if there is no thread.
 */
void us_job_start(us_life_t *l, us_role_t role, void (*run)(us_job_t *job),
    void (*done)(us_job_t *job));

/* of a thread: two messages at most, the caller logs them afterwards */
void us_job_say(us_job_t *job, us_say_t level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Whether the process ends, so that a thread is to return soon.  data: a
 * us_life_t.  Connections call it as their stopping().
 */
int us_job_stopping(void *data);

static inline uint64_t
us_job_now(const us_life_t *l)
{
    return l->env.now(l->env.data);
}


/* the loader: starts one if there is something to load, and nobody loads */
void us_load(us_life_t *l);

/*
 * By the loader's job: begins again with an empty store of the same
 * configuration.  0: done; -1: processes are still reading the one that is
 * there, or nothing can be done.
 */
int us_load_empty(us_life_t *l);

/*
 * That SIZE is too small for what came, and what suffices, unless
 * that is more than the machine's memory.
 */
void us_load_small(const us_life_t *l, us_store_t *s, char *text, size_t len);


/* each starts a job if there is something to do, and nobody does it */
void us_write(us_life_t *l);
void us_sync(us_life_t *l);
void us_keep(us_life_t *l);

/*
 * Records of erased URLs are gone from memory (us_store_erased_lsn()), but
 * files that begin below that LSN have them.  us_erased_due(): whether a
 * snapshot is, to replace them, as the newest segment begins at `segment` and
 * has none.  us_erased_wanted(): whether it is to be looked, after a snapshot,
 * whether they are removed; us_erased_look(), of the job that takes snapshots,
 * does.
 */
int us_erased_due(const us_life_t *l, const us_store_t *store,
    uint64_t segment);
int us_erased_wanted(const us_life_t *l, const us_store_t *store);
void us_erased_look(us_life_t *l);

/*
 * In this thread, by the last process: writes and syncs all that the store has
 * published, until the time `until` (ms).  0: done, tail is the end; or -1
 * with e.
 */
int us_write_all(us_life_t *l, us_store_t *store, uint64_t until,
    us_tail_t *tail, us_disk_error_t *e);

/*
 * Whether path= is still this directory, and its lock still the file that we
 * have locked: 0, or -1 with e.
 */
int us_write_look(us_life_t *l, us_disk_error_t *e);


/* a snapshot is due when the journal has one byte for so many of the last */
#define US_POLICY_SHARE   12

/*
 * A delete costs a start as much as so many bytes of added URLs, beside its
 * own: its record is somewhere in the log.  By make bench-durability.
 */
#define US_POLICY_DELETE  20

typedef struct {
    uint64_t          least;          /* option snapshot=, bytes */
    uint64_t          journal;        /* bytes past the last snapshot */
    uint64_t          size;           /* bytes of its file, or 0 */
    uint64_t          deletes;        /* in these bytes of the journal */
} us_policy_t;


/* while the service runs */
int us_policy_due(const us_policy_t *p);

/* what that counts from: the manifest's snapshot, or none */
void us_snapshot_counts(us_life_t *l, const us_manifest_t *m);

/* the same of a journal that ends at this LSN, with so many deletes */
int us_snapshot_due(const us_life_t *l, uint64_t lsn, uint64_t deletes);

/*
 * Writes one, and reports it; as us_data_snapshot().  After a failure the next
 * one is due in a minute.
 */
int us_snapshot_take(us_job_t *job, us_store_t *store, us_data_wait_pt wait,
    void *data, const us_manifest_log_t *log, us_disk_error_t *e);


#endif /* _US_JOB_H_INCLUDED_ */
