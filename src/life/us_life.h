
/*
 * The life of a store on disk: loaded, written, synced, kept, handed over.  The
 * life of a store in memory alone (conf.memory) is READY from its start, and
 * promises all that is done at once.
 *
 *     us_life.h     what a process does and may answer             (public)
 *     us_share.h    what the processes share: state, roles, members, tail
 *     us_job.h      work of a role, in a thread; why snapshots are taken
 *     us_load.c     files -> store; waiting for another owner
 *     us_write.c    store -> journal, journal -> disk
 *     us_keep.c     snapshots, when they are due, scrubs, repairs
 *     us_promise.c  what is promised, and which requests may pass
 *     us_sweep.c    what follows erasures
 *     us_known.h    a primary's replicas, and what they have said of erasures
 *     us_follow.c   operations that somebody else has logged
 *     us_replica.c    of another server's store (follow=)
 *     us_peer.c       the connection to that server
 *     us_replicate.c  of a log that other nodes read as well (replicate=)
 *     us_replicate_base.c  the base of that log
 *     us_copier.c     of that log, into a directory
 *     us_sink.c       the directory of a follower
 *     us_data.c     what ties a store to a directory, for the command as well
 *
 * STATES, of a store, shared by its processes:
 *
 *              .--------.  a fault that passes: no descriptor, no memory
 *              v        |
 *     COLD -> LOADING --+-> FOLLOWING --lock--> READY
 *                |              |                 stalled  the disk refuses
 *                |              |                 lost     a sync failed
 *                |              v
 *                +--------> DAMAGED   good up to a place, read-only
 *                +--------> TOO_SMALL the data do not fit SIZE
 *                +--------> FAILED    nothing could be read
 *                +--------> LOOKUP    mode=lookup: id to URL only
 *                `--------> REPLICA   follow=: see us_replica.c
 *
 *     FOLLOWING  another server owns the directory.  What was read is
 *                answered, nothing is denied and nothing is written
 *     READY      the directory is ours and all of it is in the store
 *
 * ROLES.  Work on the directory is done by one process at a time:
 *
 *     loader     reads the directory; while FOLLOWING, waits for its lock
 *     writer     takes operations from the store's ring and appends them
 *     syncer     makes durable what was appended (sync=TIME, or on request),
 *                and looks whether the files are still there
 *     keeper     takes snapshots, and reads what is sealed
 *     base       makes a base of a log (us_replicate_base.h)
 *
 * Each process looks for work in us_life_tick(), takes the role and starts a
 * job in a thread.  A process may be killed at any instruction: the next one
 * that looks takes its role over, and begins at the place in the shared words.
 *
 * WATERMARKS, in LSNs of the journal:
 *
 *     durable  <=  written = tail.lsn  <=  published
 *
 *     published  in the store, and in its ring
 *     written    in the file: survives every process
 *     durable    synced: survives the machine
 *
 * Invariants:
 *
 *  1. An operation is promised when its LSN is at or below us_life_lsn(): when
 *     it is written, under sync=always when it is durable.  A reply is sent
 *     when all that it reports is promised, and refused if that takes too long.
 *  2. durable moves after a sync by a descriptor that would have reported each
 *     error since the bytes were written (us_writer.h).  A sync that fails ends
 *     the writing for good (lost), whichever process made it.
 *  3. Any other failure is tried again, and no reply is given meanwhile.
 *  4. Only an owner writes, and only an owner's READY store denies anything.
 *     In other states the store refuses changes by itself: us_store_fence().
 *  5. The store's memory is replaced when no process reads it (us_share.h).
 */


#ifndef _US_LIFE_H_INCLUDED_
#define _US_LIFE_H_INCLUDED_


#include "us_share.h"
#include "../store/us_erasures.h"
#include "us_data.h"
#include "us_peer.h"
#include "../journal/us_stream.h"


#define US_LIFE_TICK  100             /* ms between two looks, at most */
#define US_LIFE_HUNG  5000            /* ms that a write or a sync may take */
#define US_LIFE_WANTED  1000          /* ms between two syncs for replicas */
#define US_LIFE_BEAT    2500          /* ms that a primary's beat is news */
#define US_LIFE_HOLD    1000          /* ms that jobs wait for a wipe, at most:
                                         some ticks of a follower */


typedef enum {
    US_SYNC_TIME = 0,
    US_SYNC_ALWAYS,
    US_SYNC_OFF
} us_sync_t;


typedef enum {
    US_SAY_NOTICE = 0,
    US_SAY_WARN,
    US_SAY_ERROR,
    US_SAY_ALERT,
    US_SAY_EMERG
} us_say_t;


typedef struct us_job_s   us_job_t;
typedef struct us_life_s  us_life_t;
typedef struct us_follow_s  us_follow_t;


/* what a process does for its us_life_t; data is the caller's */

typedef struct {
    /* ms, monotonic, the same for all processes of the machine */
    uint64_t        (*now)(void *data);

    /* us_job_run() in a thread and then us_job_done() in the loop; or -1 */
    int             (*start)(void *data, us_job_t *job);

    /* of a thread: waits so many ms */
    void            (*pause)(void *data, unsigned ms);

    /* whether threads are to end soon, for the process ends */
    int             (*stopping)(void *data);

    /* whether no other thread of the process is inside the store */
    int             (*quiet)(void *data);

    /* in the loop: watermarks have moved, or will not any more */
    void            (*moved)(void *data);

    void            (*say)(void *data, us_say_t level, const char *text);

    void             *data;
} us_life_env_t;


/* of a replicated store: us_replicate.h */

typedef struct {
    const us_replog_ops_t  *ops;
    const char             *conninfo;
    const char             *node;     /* the name of this one */
    uint32_t                shard;
    int                     single;   /* replicas=0 */
    uint64_t                lease;    /* ms */
    uint64_t                takeover; /* ms; 0: by command only */
    uint64_t                stale;    /* ms that hits are answered without the
                                         log; 0: no limit */
    const char             *base;     /* a directory, of which a log is made
                                         that is not there; NULL: none */
} us_replicate_conf_t;


/* a zone's options */

typedef struct {
    int               memory;         /* nothing of it is on disk */
    const char       *path;
    const char       *sync_name;
    us_sync_t         sync;
    uint64_t          interval;       /* ms, of US_SYNC_TIME */
    uint64_t          snapshot;       /* bytes; 0: never */
    uint64_t          scrub;          /* ms; 0: never */
    uint64_t          segment;        /* bytes; 0: US_SEGMENT_SIZE */
    uint64_t          zone;           /* SIZE, for messages; 0: the store's */
    uint64_t          erase_within;   /* ms: bytes of erased URLs go */
    const us_primary_t  *follow;      /* of a replica; NULL: it is none */
    const us_replicate_conf_t  *replicate;  /* NULL: it is not replicated */
    const struct us_norm_s  *norm;    /* the zone's; NULL: without exceptions
                                         of www. */
    us_store_conf_t   store;
} us_life_conf_t;


/* one message of a job, which has at most so many: threads do not log */

#define US_JOB_SAYS  4

typedef struct {
    us_say_t          level;
    us_disk_error_t   e;
} us_job_said_t;


struct us_job_s {
    us_life_t        *life;
    us_role_t         role;
    int               active;
    int               stays;          /* the role is kept after the job */
    void            (*run)(us_job_t *job);
    void            (*done)(us_job_t *job);
    unsigned          nsaid;
    us_job_said_t     said[US_JOB_SAYS];
};


/*
 * A process's part.  The caller zeroes it, sets the first half and calls
 * us_life_start(); all but the thread's side of jobs belongs to its event loop.
 */

struct us_life_s {
    us_life_env_t     env;
    us_life_conf_t    conf;
    us_share_t       *sh;
    void             *mem;            /* the store's */
    size_t            size;
    us_store_lock_t   lock;
    int               dirfd;          /* the directory */
    int               lockfd;         /* its lock: of all our processes */

    us_process_t      self;
    us_member_t      *member;
    us_store_t       *store;          /* for the event loop */
    uint64_t          generation;     /* of store */
    uint64_t          version;
    uint64_t          reap_next;      /* ms */
    uint64_t          declare_next;   /* ms: not before */
    int               declare_said;   /* that something could not be added */
    uint64_t          wanted_next;    /* ms: of the next sync for a replica */
    us_follow_t      *follow;         /* of the loader's and writer's jobs */
    uint64_t          follow_next;    /* ms: not before */
    uint64_t          follow_past;    /* LSN: see us_life_past() */
    us_follow_t      *copier;         /* of the keeper's jobs */
    uint64_t          copier_next;    /* ms: not before */
    uint64_t          copier_gone;    /* LSN: of its next job */
    uint64_t          copier_past;    /* LSN: see us_life_past() */
    us_sweep_t        sweep;
    uint64_t          sweep_next;     /* ms: not before */
    uint64_t          wiping;         /* LSN: wiped once, see us_life_wiped() */
    uint64_t          wipe_next;      /* ms: not before */
    unsigned          held;           /* roles: see us_life_hold() */
    uint64_t          held_until;     /* ms */
    int               empty;          /* store stands in, see us_join.c */
    void             *empty_mem;
    size_t            empty_size;

    int               ending;         /* this process must not write */
    int               readers;        /* while FOLLOWING; or -1 */
    us_writer_t       writer;
    us_writer_t       syncer;
    us_job_t          jobs[US_ROLES];
};


/* how it is doing, for people; the counters are in the shared words */

typedef struct {
    uint64_t          progress;       /* of loading, percent */
    uint64_t          stalled;
    uint64_t          sync_failed;
    uint64_t          segment;
    uint64_t          replicas;       /* that are known: us_known.h */
    uint64_t          replicas_away;  /* of these */
    char              reason[US_SHARE_REASON];  /* why it is not well, or "" */
} us_life_info_t;


/* for us_life_env_t.start */
void us_job_run(us_job_t *job);
void us_job_done(us_job_t *job);


/*
 * 0, or -1 with errno; l->dirfd and l->lockfd stay the caller's.  With
 * conf.memory the life needs no more than this, us_life_refresh() and
 * us_life_stop(); without a store in it (l->mem), not even that.
 */
int us_life_start(us_life_t *l);

/* the end of the process: no job is active any more, roles are free */
void us_life_stop(us_life_t *l);

/*
 * What there is to do, after us_life_refresh(); returns the ms until it wants
 * to be called again.
 */
unsigned us_life_tick(us_life_t *l);

/*
 * Acts upon what other processes have changed: at each tick and before each
 * request, outside the store.  Returns 1 if l->store is another one now, or
 * its configuration has changed.
 */
int us_life_refresh(us_life_t *l);

/* somebody waits for the disk: writes now, if nobody does */
void us_life_write(us_life_t *l);

/*
 * The last process, without any other: writes and syncs all that is published
 * and closes the directory in order, in at most so many ms.  0: done; or -1,
 * and why is logged.
 */
int us_life_close(us_life_t *l, uint64_t ms);


/* what may be answered; in the event loop, after us_life_refresh() */

us_life_state_t us_life_state(const us_life_t *l);

/* docs/api.md's word for it; states of one word stand together */
const char *us_life_state_word(us_life_state_t state);

/* all that there is, so that a denial is true: READY or LOOKUP */
int us_life_whole(const us_life_t *l);

/*
 * Whether what is found is there still: no delete was missed (FOLLOWING), or
 * none can have been for longer than stale= (STANDBY, STALLED)
 */
int us_life_current(const us_life_t *l);

/* whether a write may begin; reason (US_SHARE_REASON bytes, or NULL): if not */
int us_life_writable(const us_life_t *l, char *reason);

/* whether what waits for the disk is to be refused */
int us_life_refuses(const us_life_t *l, char *reason);

/* operations below this LSN are there as far as the zone promises */
uint64_t us_life_lsn(const us_life_t *l);

/*
 * Whether the map that a shard has adopted is durable.  Until then no operation
 * from its LSN on is promised, whatever the zone's policy is.
 */
int us_life_map_durable(const us_life_t *l);

/*
 * The ids that a reply may report as given are below; the one source of
 * next_id.  US_STORE_NO_ID: this process does not know, as another one owns
 * the directory.
 */
uint64_t us_life_ids(const us_life_t *l);

/* ids below are durable */
uint64_t us_life_durable_ids(const us_life_t *l);


/*
 * Whether claims and their times are news.  Not so at a node that hears nothing
 * of its log for longer than a lease: others claim meanwhile.
 */
int us_life_recent(const us_life_t *l);


/* what a request wants of the store */

#define US_WANTS_CHANGE  1            /* to change it */
#define US_WANTS_ALL     2            /* a list or a count, which denies all
                                         that is not in it */
#define US_WANTS_BY_ID   4            /* the URL of an id */

/* whether such a request may begin */
int us_life_admits(const us_life_t *l, unsigned wants);

/* whether a caller that cannot wait may answer a look-up, found or not */
int us_life_answers(const us_life_t *l, int found);


/* the data that a request begins with */

typedef struct {
    uint64_t          generation;
    int               partial;        /* some of it was not there */
} us_life_view_t;

void us_life_view(const us_life_t *l, us_life_view_t *view);

/* whether its reply is not true any more; denies: it says that a URL is not */
int us_life_overtaken(const us_life_t *l, const us_life_view_t *view,
    int denies);

/*
 * Whether the reply to a read may be sent: all operations that it can depend on
 * are below lsn, and promised.  It also may if the ids that it reports are
 * promised, and it reports no absence or no delete is under way.  Those ids are
 * below top; US_STORE_NO_ID: it reports more than ids and their URLs.
 */
int us_life_promised(const us_life_t *l, uint64_t lsn, uint64_t top,
    int absent);

/*
 * The journal for a replica: its end now, and how far the store is.  What is
 * not durable becomes so within a second, whatever the zone's policy is, if
 * this is called again and again.
 */
void us_life_journal(us_life_t *l, us_tail_t *tail, us_beat_t *beat);

/* around us_store_delete(), with its LSN or 0 */
void us_life_deleting(us_life_t *l);
void us_life_deleted(us_life_t *l, uint64_t lsn);

/*
 * Erases a site (us_store_erase_site()).  US_BUSY: the caller comes again, as
 * the ring is full, or the sweep has not ended.  US_OK: it has, or was waited
 * for long enough.  *since is the caller's: 0, then when the site was listed,
 * ms.
 */
us_store_status_t us_life_erase_site(us_life_t *l, uint64_t number,
    us_str_t site, uint64_t *since, uint64_t *lsn);

/*
 * The sweep that completes erasures is of one process, whichever looks first;
 * in the event loop.  Records are erased for all erasures of a quarter of
 * erase_within together, as each pass reads all records and is followed by a
 * snapshot.  us_life_sweep_due(): whether there is anything to do; cheap.
 * us_life_sweep() looks at some hundred ids, as us_store_sweep(); US_FENCED:
 * not now.  An erasure that it has completed: sweep.done.
 */
int us_life_sweep_due(const us_life_t *l);
us_store_status_t us_life_sweep(us_life_t *l);

/*
 * A process wipes its memory after records were gone at an LSN; in the event
 * loop.
 *
 * us_life_wipe_due(): that LSN, if it is to do so now, or 0.  What its jobs
 * will read from a log, a primary or the ring is from past it then
 * (us_life_past()).
 *
 * us_life_busy(): the roles, a bit for each, that have a job now which may have
 * a connection.  There must be none, in any life of the process: a connection
 * that is made while another one goes begins in the memory of that one, and
 * keeps it.  us_life_hold(), in each life, with those of all: until the next
 * try none of the roles that are waited for starts a job.  Jobs of
 * US_ROLES_LONG may take minutes; those of US_ROLES_SHORT end soon, and the
 * store is not confirmed, or not up to date, while they are held.
 *
 * us_life_forget(): closes the connections and wipes what jobs keep; jobs may
 * start again.
 *
 * us_life_wiped(): this process has wiped its memory, once more since that LSN;
 * 0: a part of it could not be.  us_life_left(): where URLs of an erasure may
 * be left, US_LEFT_*.
 */

#define US_ROLES_SHORT  (1 << US_ROLE_LOADER | 1 << US_ROLE_WRITER)
#define US_ROLES_LONG   (1 << US_ROLE_KEEPER | 1 << US_ROLE_BASE)

uint64_t us_life_wipe_due(const us_life_t *l);
int us_life_past(const us_life_t *l, uint64_t lsn);
unsigned us_life_busy(const us_life_t *l);
void us_life_hold(us_life_t *l, unsigned busy);
void us_life_forget(us_life_t *l);
void us_life_wiped(us_life_t *l, uint64_t lsn);
unsigned us_life_left(const us_life_t *l, const us_erasure_info_t *e);

/* whether an answer "deleted", or "not found", is as good as us_life_lsn() */
int us_life_deletes_promised(const us_life_t *l);

void us_life_info(const us_life_t *l, us_life_info_t *info);

/* how far a replica is behind its primary, as far as it knows */

typedef struct {
    uint64_t          connected;
    uint64_t          lsn;            /* applied */
    uint64_t          published;      /* at the primary */
    uint64_t          bytes;          /* of the journal between the two */
    uint64_t          ms;             /* since it had all; UINT64_MAX: never */
} us_life_lag_t;

void us_life_lag(const us_life_t *l, us_life_lag_t *lag);


#endif /* _US_LIFE_H_INCLUDED_ */
