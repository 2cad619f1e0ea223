
/*
 * What the processes of a store on disk share beside the store: its state, the
 * roles and their holders, the end of the journal.  This memory outlives each
 * process.  So an update is one store instruction, or the next process repeats
 * the whole update.
 *
 *     state      us_life_state_t, see us_life.h
 *     version    grows with each change that a process has to look at
 *     roles      the process that has a role, and since when its job runs
 *     members    the processes that use the store, and the version they know
 *     tail       the end of the journal, for its next writer
 *
 * A role is a lock that its holder's death opens: its word identifies the
 * process (us_process.h), so that another one with the same pid is never taken
 * for it.
 *
 * A member is a process that reads the store.  Its event loop stores the
 * version that it has acted upon (us_life_refresh()), at a moment when none of
 * its threads is inside the store.  A process that has to replace the store
 * makes a new version and waits until every live member knows it: then no
 * process reads the old store any more.
 */


#ifndef _US_SHARE_H_INCLUDED_
#define _US_SHARE_H_INCLUDED_


#include "../us_process.h"
#include "../journal/us_stream.h"
#include "../replog/us_appender.h"
#include "../us_atomic.h"


#define US_SHARE_MEMBERS  512         /* processes, those that drain included */
#define US_SHARE_REASON   512         /* bytes */
#define US_KNOWN          64          /* replicas: us_known.h */


/* in shared memory: other numbers are another US_LAYOUT */

typedef enum {
    US_LIFE_COLD = 0,
    US_LIFE_LOADING,
    US_LIFE_FOLLOWING,
    US_LIFE_READY,
    US_LIFE_LOOKUP,
    US_LIFE_REPLICA,
    US_LIFE_STANDBY,
    US_LIFE_STALLED,
    US_LIFE_DAMAGED,
    US_LIFE_TOO_SMALL,
    US_LIFE_FAILED,
    US_LIFE_STATES
} us_life_state_t;


typedef enum {
    US_ROLE_LOADER = 0,
    US_ROLE_WRITER,
    US_ROLE_SYNCER,
    US_ROLE_KEEPER,
    US_ROLE_BASE,
    US_ROLES
} us_role_t;


typedef struct {
    uint64_t          holder;         /* us_process_self(), or 0 */
    uint64_t          since;          /* ms: its job began; 0: it has none */
} us_role_word_t;


typedef struct {
    uint64_t          process;        /* 0: a free place */
    uint64_t          version;        /* that it has acted upon */
    uint64_t          deleting;       /* deletes that it has under way */
    uint64_t          wiped;          /* an LSN: see us_life_wiped() */
} us_member_t;


/* of a replica: us_replica.c; LSNs are the primary's */

typedef struct {
    us_place_t        at;
    uint64_t          connected;
    uint64_t          connects;
    uint64_t          failures;
    uint64_t          restarts;       /* from nothing */
    uint64_t          bytes;          /* that came */
    uint64_t          beat;           /* ms: when the last one came; or 0 */
    uint64_t          published;      /* by it */
    uint64_t          durable;
    uint64_t          ids;
    uint64_t          level;          /* ms: the store had what was published */
    uint64_t          id;             /* for the primary: us_known.h; or 0 */
} us_share_replica_t;


/* of a primary: a replica; see us_known.h */

typedef struct {
    uint64_t          id;             /* 0: a free place */
    uint64_t          erased;         /* LSN: nothing is left up to it */
    uint64_t          keeps;          /* it has a directory */
    uint64_t          seen;           /* ms: when it was last connected */
} us_known_t;


/* where a copy of a log ends: in the directory, and in the log */

typedef struct {
    us_place_t        at;
    us_replog_row_t   row;
} us_share_copied_t;


/*
 * Of a replicated store with path=: us_copier.h.  The keeper fills the other
 * end and then turns the index, so that the next keeper after a kill finds a
 * whole one.
 */

typedef struct {
    uint64_t          number;         /* of the copy; 0: the loader has it */
    uint64_t          numbers;        /* the last one that was given */
    uint64_t          begun;          /* the number whose end is known */
    uint64_t          end_at;
    us_share_copied_t end[2];

    uint64_t          lsn;            /* up to which a start would read it */
    uint64_t          off;            /* why it stands still: us_copier.c */
    uint64_t          failures;
    uint64_t          restarts;       /* from nothing */
} us_share_copier_t;


/* of a replicated store: us_replicate.h */

typedef struct {
    us_replog_place_t place;          /* of a primary */
    us_replog_row_t   at;             /* of a standby: applied */
    uint64_t          settled;        /* this node has been a primary, or knows
                                         that another one is */
    uint64_t          promote;        /* ms, of us_clock_boottime(): until then
                                         it is to become the primary */

    /*
     * lost: the log once went up to this LSN, and does not any more; nobody
     * appends.  astray: others gave ids meanwhile that this node has given, and
     * nothing is answered.  forget: ms, of us_clock_boottime(): until then what
     * is lost is to be given up
     */
    uint64_t          lost;
    uint64_t          astray;
    uint64_t          forget;

    uint64_t          term;           /* of the log, as far as is known */
    uint64_t          acked;
    uint64_t          end;            /* LSN of its last row */
    uint64_t          seen;           /* ms, of us_clock_boottime(): the last
                                         answer of the log */
    char              holder[US_REPLOG_HOLDER];     /* of the term */
    us_share_copier_t copier;
    uint64_t          base;           /* LSN at which the rows begin */

    uint64_t          rebase;         /* ms, of us_clock_boottime(): until then
                                         a new base is wanted */
    uint64_t          base_lsn;       /* of the one that this node made last */
    uint64_t          base_bytes;
    char              rebase_why[US_REPLOG_ERROR];  /* that none was made */
    uint64_t          erased;         /* an LSN: the log has nothing from before
                                         it but a base that is as of later */
    uint64_t          erased_next;    /* ms: not before */

    /* counters */
    uint64_t          rows;           /* appended and confirmed */
    uint64_t          read;           /* bytes of rows that were applied */
    uint64_t          failures;
    uint64_t          promotions;
    uint64_t          deposed;
    uint64_t          rebases;
    uint64_t          rebases_failed;
} us_share_replicate_t;


typedef struct {
    uint64_t          state;
    uint64_t          version;

    /* the disk: refuses (tried again), has lost a sync (final) */
    uint64_t          stalled;
    uint64_t          stalled_at[US_ROLES];     /* ms: the last try */
    uint64_t          lost;

    uint64_t          unsettled;      /* the manifest is to be written first */

    /* what had been promised when the journal got a gap: see us_write.c */
    uint64_t          gap_lsn;
    uint64_t          gap_ids;

    us_role_word_t    roles[US_ROLES];
    us_watch_t        watch;          /* of the journal's syncs */
    uint64_t          members_top;    /* places below have been used */
    us_member_t       members[US_SHARE_MEMBERS];

    /*
     * The journal's end.  The writer fills the other one and then turns the
     * index, so that the next writer after a kill finds a whole tail.
     */
    uint64_t          tail_at;
    us_tail_t         tail[2];

    /*
     * Loading.  load_applying: a killed loader has left a half-made store.
     * placed: the place of a replica or a standby is valid.
     * emptying: from this version on nobody is to read the store.
     */
    uint64_t          load_applying;
    uint64_t          load_placed;
    uint64_t          load_generation;
    uint64_t          load_lsn;
    uint64_t          load_ids;
    uint64_t          load_done;
    uint64_t          load_total;
    uint64_t          load_wanted;    /* lookup: at reload */
    uint64_t          load_next;      /* ms: not before */
    uint64_t          load_began;     /* ms */
    uint64_t          load_ms;        /* what it took */
    uint64_t          emptying;

    us_share_replica_t  replica;
    us_share_replicate_t  replicate;

    /* ids below are; the last delete's LSN */
    uint64_t          written_ids;
    uint64_t          durable_ids;
    uint64_t          deleted_lsn;

    uint64_t          dirty_since;    /* ms: of the oldest byte not durable */
    uint64_t          sync_wanted;    /* an LSN, for the syncer */
    uint64_t          look_next;      /* ms: of the syncer at the files */

    uint64_t          snapshot_lsn;
    uint64_t          snapshot_size;  /* of its file */
    uint64_t          snapshot_deleted;   /* ids in it, or fewer */
    uint64_t          snapshot_next;  /* ms: not before */
    uint64_t          snapshot_now;   /* to repair the disk */
    uint64_t          scrub_next;     /* ms */
    uint64_t          erased;         /* an LSN: no file begins below */
    uint64_t          erased_next;    /* ms: not before */

    us_known_t        known[US_KNOWN];
    uint64_t          stranger;       /* ms: one was connected; or 0 */

    /* counters */
    uint64_t          writes;
    uint64_t          syncs;
    uint64_t          snapshots;
    uint64_t          scrubbed;       /* bytes */
    uint64_t          errors;
    uint64_t          takeovers;      /* of a dead process's role */
    uint64_t          cut_bytes;
    uint64_t          lost_ids;
    uint64_t          changed;        /* URLs, by a new signature */

    char              reason[US_SHARE_REASON];      /* of state, or lost */
    char              why[US_ROLES][US_SHARE_REASON];    /* of stalled */
} us_share_t;


/* reason: why, or NULL */
void us_share_set_state(us_share_t *sh, us_life_state_t state,
    const char *reason);

/* the same without another state: 1, if the reason is news */
int us_share_reason(us_share_t *sh, const char *reason);

/* a change that each process has to act upon: returns the new version */
uint64_t us_share_change(us_share_t *sh);

/* a row that one process stores and others read, maybe while it is stored */
void us_share_row(const us_replog_row_t *from, us_replog_row_t *to);
void us_share_set_row(us_replog_row_t *to, const us_replog_row_t *from);

/* a counter of several processes */
void us_share_count(uint64_t *counter, uint64_t n);


/* roles: 0, it is ours; -1, a live process has it */
int us_role_take(us_share_t *sh, us_role_t role, us_process_t self,
    uint64_t now);

/* of `self` only: no job runs, but the role stays; or it goes, too */
void us_role_rest(us_share_t *sh, us_role_t role, us_process_t self);
void us_role_release(us_share_t *sh, us_role_t role, us_process_t self);

/* the roles of the dead are free */
void us_role_sweep(us_share_t *sh);


/* a free place among the members, or NULL: there are too many processes */
us_member_t *us_member_join(us_share_t *sh, us_process_t self);
void us_member_leave(us_member_t *m);

/* takes over the place of a dead member, as that has left it; NULL: none */
us_member_t *us_member_inherit(us_share_t *sh, us_process_t self);

/* whether all live members have acted upon this version */
int us_members_know(const us_share_t *sh, uint64_t version);

/* the LSN up to which all live members have wiped their memory */
uint64_t us_members_wiped(const us_share_t *sh);

/* whether a delete may be under way, of a dead member as well */
int us_members_deleting(const us_share_t *sh);


/* a whole tail, whatever its writer does meanwhile */
void us_share_tail(const us_share_t *sh, us_tail_t *tail);

/* the writer only */
void us_share_set_tail(us_share_t *sh, const us_tail_t *tail);


/*
 * A role cannot go on for now, by a try at that time; it can again; a sync has
 * failed.  Each returns 1 if that is news.
 */
int us_share_stall(us_share_t *sh, us_role_t role, uint64_t now,
    const char *why);
int us_share_resume(us_share_t *sh, us_role_t role);
int us_share_lose(us_share_t *sh, const char *reason);


/* the state as it is; acquire: what it promises was stored before it */

static inline us_life_state_t
us_share_state(const us_share_t *sh)
{
    return (us_life_state_t) us_acquire(&sh->state);
}


static inline int
us_share_stalled(const us_share_t *sh, us_role_t role)
{
    return (us_acquire(&sh->stalled) >> role) & 1;
}


/* and its last try is less than so many ms ago */

static inline int
us_share_rests(const us_share_t *sh, us_role_t role, uint64_t now,
    unsigned ms)
{
    return us_share_stalled(sh, role)
           && now < us_acquire(&sh->stalled_at[role]) + ms;
}


/* grows each time that the store is emptied */

static inline uint64_t
us_share_generation(const us_share_t *sh)
{
    return us_acquire(&sh->load_generation);
}


#endif /* _US_SHARE_H_INCLUDED_ */
