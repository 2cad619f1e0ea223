
/*
 * A follower: a store, or a directory, that is made of operations which
 * somebody else has logged.
 *
 *     source                                         sink
 *     us_replica.c    another server's journal       directory, then store
 *     us_replicate.c  the log that nodes share       store
 *     us_copier.c      the same, by its own session   directory
 *
 * A follower of another server's journal (follow=) never claims the right to
 * write.  A node of a log (replicate=) may.  What follows is the same for all:
 *
 *             .-- anew: emptied ---.
 *             v                    |
 *     COLD -> LOADING -- settle -> REPLICA, STANDBY
 *                `---------------> TOO_SMALL
 *
 * The role stays with its process from one job to the next, as the process has
 * the connection.  A failure makes the next job wait, for longer each time.
 *
 * From the first operation on, load_applying says that the store is no prefix
 * of anything; us_follow_publish() ends that.  The shared place of the source
 * says what the store has, except meanwhile.  If a process is killed then, the
 * next one empties the store, and begins from nothing.
 */


#ifndef _US_FOLLOW_H_INCLUDED_
#define _US_FOLLOW_H_INCLUDED_


#include "us_job.h"
#include "../store/us_store.h"


#define US_FOLLOW_FIRST   100         /* ms after a first failure */
#define US_FOLLOW_LOAD    60000       /* ms until a store too small is tried,
                                         and between two loads at most */

/* ms that a store is level until a next load counts as the first one */
#define US_FOLLOW_STEADY  60000


/* what a source has of its own */

typedef struct {
    us_life_state_t    state;         /* of a store that is answered from */
    unsigned           most;          /* ms between two tries */
    us_say_t           level;         /* why all is read anew */

    /* the rest of a us_follow_t that is zeroed, with its log; 0, or -1 */
    int              (*open)(us_follow_t *f);

    /* forgets what this process has read: a place is in the shared words */
    void             (*close)(us_follow_t *f);

    /* the store is empty; anew: what it was made of is of no use.  0, or -1 */
    int              (*emptied)(us_follow_t *f);

    /* stores f->lsn and the shared place of what the store has; 0, or -1 */
    int              (*place)(us_follow_t *f);

    /* nothing comes for now */
    void             (*failed)(us_follow_t *f);

    /* of the event loop: wipes what jobs have left in its memory; or NULL */
    void             (*forget)(us_follow_t *f);
} us_source_t;


struct us_follow_s {
    const us_source_t *source;
    us_life_t         *life;
    us_job_t          *job;
    us_replog_t       *log;           /* of a log; or NULL */
    char               name[320];     /* of the source, for messages */

    us_store_t        *store;
    uint64_t           lsn;           /* applied */
    uint64_t           ids;
    unsigned           bulk:1;        /* the store is being built */
    unsigned           anew:1;        /* the store is to be emptied */
    unsigned           fails;         /* in a row */
    unsigned           loads;         /* from nothing, in a row */
    uint64_t           settled;       /* ms: the last one ended; or 0 */
};


/*
 * Of the event loop: whether a job may be started, of these roles (bits).  A
 * process that is to end stops following, as another one may have the roles at
 * once.  So does one whose roles another one has.
 */
int us_follow_due(us_life_t *l, us_follow_t **f, unsigned roles);

/* of the end of a job that fills the store: see us_life_past() */
void us_follow_passed(us_follow_t *f);

/* us_replica.c, of each tick: starts a job, if one is due */
void us_replica(us_life_t *l);

/* the end of the process */
void us_follow_stop(us_follow_t **f);

/*
 * What this process has, which is made if there is none: so many bytes, which
 * begin with a us_follow_t.  NULL: no memory.
 */
us_follow_t *us_follow_open(us_job_t *job, us_follow_t **f, size_t size,
    const us_source_t *source);


/* a session with the log, of a job; NULL: no memory */
us_replog_t *us_follow_log(us_life_t *l);

/* us_standby_env_t, us_appender_t: us_clock_boottime() */
uint64_t us_follow_now(void *data);

/* the settings of a log: 0, or -1 with e */
int us_follow_manifest(const us_replog_head_t *head, us_manifest_t *m,
    us_disk_error_t *e);

/* us_replog_follows_pt: by the settings of the log's last term */
int us_follow_goes_on(void *data, const us_replog_head_t *head,
    const us_replog_row_t *row);


/* of the loader's job */

/*
 * 0: the store is as the shared place says, or empty; -1: it is not yet.  A
 * store that a killed process, or this one, has left half made is emptied.
 */
int us_follow_prepare(us_follow_t *f);

/* a store begins, of which an operation comes next */
void us_follow_begin(us_follow_t *f, const uint8_t uuid[16], uint64_t epoch);

/*
 * Applies whole operations.  While the store is built, those for which there is
 * no room are counted only.  0; -1: all is read anew.
 */
int us_follow_apply(us_follow_t *f, const uint8_t *p, size_t len);

/* all has come that there was: the store is answered from.  0, or -1 */
int us_follow_settle(us_follow_t *f, const char *what);

/* what the store has, and its state, for everybody; 0, or -1 */
int us_follow_publish(us_follow_t *f);

/* the store has all that there is */
void us_follow_level(us_follow_t *f);

/* SIZE is too small for what has come; -1 */
int us_follow_small(us_follow_t *f);

/* closes store and source */
void us_follow_close(us_follow_t *f);

/* the source fails, and is tried again later; a new reason is logged once */
int us_follow_fail(us_follow_t *f, us_say_t level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* the same, and all is read anew */
int us_follow_again(us_follow_t *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The next job waits.  The wait doubles with each failure in a row.  To read
 * all is costly for the source, so loads have a row of their own, which what
 * could be applied does not end.
 */
void us_follow_wait(us_follow_t *f);


#endif /* _US_FOLLOW_H_INCLUDED_ */
