
/*
 * A zone with path=: what its processes share beside the store, and who does
 * what.
 *
 *     ngx_http_urlstore_path.c      options, the directory in the master
 *     ngx_http_urlstore_persist.c   roles, each worker's tick, the end
 *     ngx_http_urlstore_state.c     what requests are told of the state
 *     ngx_http_urlstore_load.c      loading; following another owner
 *     ngx_http_urlstore_write.c     the journal's end: writing and syncing
 *     ngx_http_urlstore_keep.c      snapshots and scrubbing
 *     ngx_http_urlstore_park.c      requests that wait for the disk
 *
 * The master opens the directory and its lock file and tries to own it
 * (flock(2)); workers inherit both, so the lock is free when the last process
 * of this master is gone.  Everything else is done by workers, in threads of
 * nginx's pool, in roles: a role is a word in shared memory with the pid of
 * the worker that has it.  Each worker looks at all roles in its tick and
 * takes over what a dead one has left.
 *
 *     COLD --> LOADING --> FOLLOWING --lock--> READY
 *                 |            |                 `-- stalled: no space, goes on
 *                 |            |                 `-- lost: a sync has failed
 *                 |            `--> LOOKUP (mode=lookup: retrieval only)
 *                 `--> DAMAGED (read-only, good up to a place)
 *                 `--> FAILED  (nothing could be read)
 */


#ifndef _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_


#include "ngx_http_urlstore.h"
#include "../data/us_data.h"


#define NGX_HTTP_URLSTORE_TICK        100                 /* ms */
#define NGX_HTTP_URLSTORE_TROUBLE     512                 /* bytes of why */

/* presets of snapshot=, bytes, and scrub=, ms */
#define NGX_HTTP_URLSTORE_SNAPSHOT    (64 * 1024 * 1024)
#define NGX_HTTP_URLSTORE_SCRUB       (3600 * 1000)


typedef enum {
    NGX_HTTP_URLSTORE_COLD = 0,
    NGX_HTTP_URLSTORE_LOADING,
    NGX_HTTP_URLSTORE_FOLLOWING,
    NGX_HTTP_URLSTORE_READY,
    NGX_HTTP_URLSTORE_LOOKUP,
    NGX_HTTP_URLSTORE_DAMAGED,
    NGX_HTTP_URLSTORE_FAILED
} ngx_http_urlstore_state_e;


typedef enum {
    NGX_HTTP_URLSTORE_LOADER = 0,
    NGX_HTTP_URLSTORE_WRITER,
    NGX_HTTP_URLSTORE_SYNCER,
    NGX_HTTP_URLSTORE_KEEPER,
    NGX_HTTP_URLSTORE_ROLES
} ngx_http_urlstore_role_e;


typedef enum {
    NGX_HTTP_URLSTORE_SYNC_TIME = 0,
    NGX_HTTP_URLSTORE_SYNC_ALWAYS,
    NGX_HTTP_URLSTORE_SYNC_OFF
} ngx_http_urlstore_sync_e;


/* in the zone's slab pool */

typedef struct {
    ngx_atomic_t                    state;
    ngx_atomic_t                    version;  /* grows with each change */
    ngx_atomic_t                    stalled;
    ngx_atomic_t                    lost;
    ngx_atomic_t                    roles[NGX_HTTP_URLSTORE_ROLES];

    /*
     * The journal's end.  The writer fills the other one and then turns the
     * index, so that whoever follows after a kill finds a whole tail.
     */
    ngx_atomic_t                    tail_at;
    us_tail_t                       tail[2];

    /* loading; load_applying: a killed loader has left a half-made store */
    ngx_atomic_t                    load_applying;
    ngx_atomic_t                    load_generation;
    uint64_t                        load_lsn;
    uint64_t                        load_ids;
    ngx_atomic_t                    load_done;
    ngx_atomic_t                    load_total;
    ngx_atomic_t                    load_wanted;  /* lookup: at reload */
    uint64_t                        load_began;   /* ms, monotonic */
    uint64_t                        load_ms;      /* what it took */

    /* ids below are; deletes under way, and the last one's LSN */
    ngx_atomic_t                    written_ids;
    ngx_atomic_t                    durable_ids;
    ngx_atomic_t                    deleting;
    ngx_atomic_t                    deleted_lsn;

    /* ms, monotonic: when the oldest byte that is not durable was written */
    ngx_atomic_t                    dirty_since;
    ngx_atomic_t                    stalled_at;

    uint64_t                        snapshot_lsn;
    uint64_t                        snapshot_size; /* of its stream */
    ngx_atomic_t                    snapshot_next; /* ms: not before */
    ngx_atomic_t                    snapshot_now;  /* to repair the disk */
    ngx_atomic_t                    scrub_next;    /* ms */

    /* for /stats and /metrics */
    ngx_atomic_t                    writes;
    ngx_atomic_t                    syncs;
    ngx_atomic_t                    snapshots;
    ngx_atomic_t                    scrubbed;     /* bytes */
    ngx_atomic_t                    errors;
    ngx_atomic_t                    takeovers;    /* of a dead one's role */
    uint64_t                        cut_bytes;
    uint64_t                        lost_ids;

    u_char                          reason[NGX_HTTP_URLSTORE_TROUBLE];
} ngx_http_urlstore_persist_sh_t;


/* descriptors that outlive a cycle, in the master and inherited by workers */

typedef struct {
    int                             dirfd;
    int                             lock;
    ngx_uint_t                      refs;
} ngx_http_urlstore_dir_t;


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_role_e        role;
    ngx_thread_task_t              *task;
    ngx_uint_t                      active;

    /* what the thread says: it must not log */
    ngx_uint_t                      level;
    us_disk_error_t                 error;
    us_disk_error_t                 note;         /* a second message */

    void                           *data;
} ngx_http_urlstore_job_t;


struct ngx_http_urlstore_persist_s {
    /* configuration */
    ngx_str_t                       path;
    ngx_http_urlstore_sync_e        sync;
    ngx_msec_t                      interval;     /* of sync=TIME */
    ngx_str_t                       sync_name;
    off_t                           snapshot;     /* bytes; 0: never */
    ngx_msec_t                      scrub;        /* 0: never */
    ngx_cycle_t                    *cycle;
    ngx_thread_pool_t              *pool;
    ngx_http_urlstore_dir_t        *dir;
    us_store_conf_t                 conf;         /* strings of ours */

    ngx_http_urlstore_persist_sh_t *sh;

    /* of one worker */
    ngx_http_urlstore_zone_t       *zone;
    ngx_event_t                     tick;
    ngx_event_t                     wake;
    ngx_queue_t                     parked;
    ngx_uint_t                      version;
    ngx_uint_t                      generation;
    ngx_uint_t                      orphan;       /* its master is gone */
    us_writer_t                     writer;
    us_writer_t                     syncer;
    ngx_uint_t                      opened;       /* the writers are */
    ngx_http_urlstore_job_t         jobs[NGX_HTTP_URLSTORE_ROLES];
};


/* ngx_http_urlstore_persist.c */

/*
 * A role is taken by one job of one worker.  NGX_OK: it is ours, and job may
 * be started; NGX_DECLINED: a live one has it.
 */
ngx_int_t ngx_http_urlstore_role_take(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role);
void ngx_http_urlstore_role_release(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role);

/* runs in a thread; done() in the event loop afterwards */
ngx_int_t ngx_http_urlstore_job_start(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_role_e role, void (*run)(void *data, ngx_log_t *log),
    ngx_event_handler_pt done);
void ngx_http_urlstore_job_log(ngx_http_urlstore_job_t *job);

void ngx_http_urlstore_state(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_state_e state, const char *reason);
uint64_t ngx_http_urlstore_ms(void);

/* a thread must end soon */
ngx_uint_t ngx_http_urlstore_stopping(void);

/* ngx_http_urlstore_load.c */

void ngx_http_urlstore_load(ngx_http_urlstore_persist_t *p);

/* ngx_http_urlstore_write.c */

void ngx_http_urlstore_write(ngx_http_urlstore_persist_t *p);
void ngx_http_urlstore_sync(ngx_http_urlstore_persist_t *p);
void ngx_http_urlstore_tail_get(ngx_http_urlstore_persist_sh_t *sh,
    us_tail_t *tail);
void ngx_http_urlstore_tail_set(ngx_http_urlstore_persist_sh_t *sh,
    const us_tail_t *tail);

/*
 * Writes and syncs all, in this thread, in the master at its end or wherever
 * nobody else can: bounded to so many ms.  1: everything is on disk.
 */
ngx_int_t ngx_http_urlstore_flush(ngx_http_urlstore_persist_t *p,
    us_store_t *store, ngx_msec_t bound);

/* ngx_http_urlstore_keep.c */

void ngx_http_urlstore_keep(ngx_http_urlstore_persist_t *p);

/* ngx_http_urlstore_park.c */

void ngx_http_urlstore_park_init(ngx_http_urlstore_persist_t *p);

/* answers those that need not wait any more */
void ngx_http_urlstore_park_wake(ngx_http_urlstore_persist_t *p);


#endif /* _NGX_HTTP_URLSTORE_PERSIST_H_INCLUDED_ */
