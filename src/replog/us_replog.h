
/*
 * The replicated log of a shard: what a primary appends to and what standbys
 * read.  This room has the protocol; a log itself is a table of functions
 * (us_replog_ops_t), such as that of PostgreSQL.
 *
 *     us_replog.h   rows, and the functions of a log              (public)
 *     us_appender.h append, confirm, lease, deposed
 *     us_standby.h  read, promote
 *     us_rebase.h   make a new base; a part of it
 *
 * A log is a chain of ROWS.  A row holds whole operations, the bytes of the
 * store's journal from LSN lsn up to next:
 *
 *     row (lsn, next, term, crc) -> row (next, ...) -> ...
 *
 * The first row of a chain has lsn US_REPLOG_BASE and no bytes: its next is the
 * LSN from which on rows follow, 0 if the log has no base.  crc is the CRC-32C
 * of the row's bytes, begun with the crc of the row before, so that it stands
 * for all bytes since the log began.  A new base (rebase) takes the place of
 * the rows before it: the first row then has term and crc of the last one of
 * them.  Nobody who has read that far notices.
 *
 *     TERM      number of a primary.  A term begins with a row that holds a
 *               TERM operation and nothing else
 *     ACKED     LSN up to which a primary knows that its rows are confirmed
 *     BEAT      a commit without a row, by which a primary renews its lease
 *
 * A log keeps these rules, by one transaction for each call:
 *
 *  1. A row is appended only after a row of the same term (append) or, with a
 *     new term, after the last row of the log (promote).  Two rows never have
 *     one lsn.
 *  2. A new term is higher than all before; a beat of another term than the
 *     highest is refused.
 *  3. What is confirmed stays, whatever happens to one server of the log.
 *  4. A beat names the last row of its term that the primary knows, and is
 *     refused if that row is not there.  So what is confirmed, an append or a
 *     beat, confirms all rows before it: they were there when it was done.
 *
 *
 * A part of a base: the bytes that a log keeps as one payload.
 *
 *     FORMAT, little-endian
 *
 *        0   4  "USBP"
 *        4   4  CRC-32C of all that follows
 *        8   4  number of the part, from 0
 *       12   4  1: it is the last one; else 0
 *       16   8  number of the base, by chance: one for all of its parts
 *       24   8  in the last part the LSN of the base; else 0
 *       32   8  in the last part UNTIL; else 0
 *       40      whole operations, in the last part maybe none
 *
 *     LSN      the base is the store as of this LSN.  What follows it in the
 *              log is to be applied, and nothing before
 *     UNTIL    an LSN, not lower.  Marks, deletes and claims of the base may be
 *              as new as that.  The operations up to it are confirmed, and set
 *              them once more: a store is whole only when it has applied them
 */


#ifndef _US_REPLOG_H_INCLUDED_
#define _US_REPLOG_H_INCLUDED_


#include "../us_base.h"


#define US_REPLOG_BASE      UINT64_MAX
#define US_REPLOG_BLOCK     (64 * 1024)     /* bytes of a row, unless one
                                               operation alone is longer */
#define US_REPLOG_MAX       (128 * 1024 * 1024)
#define US_REPLOG_HOLDER    64              /* bytes of a node's name, with 0 */
#define US_REPLOG_SETTINGS  8192            /* of a manifest's text */
#define US_REPLOG_ERROR     400


typedef struct {
    uint64_t           lsn;
    uint64_t           next;
    uint64_t           term;
    uint64_t           crc;
} us_replog_row_t;


/* what a log says of itself, as of one moment */

typedef struct {
    uint8_t            uuid[16];      /* of the store */
    char               settings[US_REPLOG_SETTINGS];
    uint64_t           term;          /* the highest */
    char               holder[US_REPLOG_HOLDER];    /* of it */
    uint64_t           beat;
    uint64_t           acked;         /* the highest of rows and beats */
    us_replog_row_t    last;          /* that with the highest lsn */
    uint64_t           base;          /* next of that at US_REPLOG_BASE */
} us_replog_head_t;


/*
 * Whether the log, as of head, has gone on after this row, which was confirmed:
 * no later term began before its end.  1; 0: it has lost the row; -1: head does
 * not state where those terms began.
 */

typedef int (*us_replog_follows_pt)(void *data, const us_replog_head_t *head,
    const us_replog_row_t *row);


typedef enum {
    US_REPLOG_OK = 0,                 /* done; of a change: confirmed */
    US_REPLOG_NONE,                   /* there is no such row, or no log */
    US_REPLOG_REFUSED,                /* by the rules: nothing was changed */
    US_REPLOG_UNKNOWN,                /* it may have been done, or will be, or
                                         is not confirmed */
    US_REPLOG_AWAY,                   /* nothing was sent */
    US_REPLOG_BAD                     /* it cannot be done: other tables, no
                                         right, not synchronous */
} us_replog_rc_t;


/* what a log needs of its caller; of a thread */

typedef struct {
    int              (*stopping)(void *data);   /* the thread is to end soon:
                                                   asked every 50 ms */
    void              *data;
} us_replog_env_t;


/*
 * A log that is open for one shard, of one thread.  error: of the last call
 * that did not return OK; for people.
 *
 * SESSION.  A call may make a connection, to another server than before, and
 * one that was replaced still answers.  What is seen in one session only grows:
 * no row goes and no beat comes twice.  Two sessions compare in nothing.
 */

typedef struct us_replog_s      us_replog_t;
typedef struct us_replog_ops_s  us_replog_ops_t;

struct us_replog_s {
    const us_replog_ops_t  *ops;
    unsigned                timeout;  /* ms, the caller's: after it a change
                                         gives up, UNKNOWN if it was sent */
    unsigned                look;     /* ms: after it a call that only reads */
    uint64_t                session;  /* number of connections made so far: the
                                         last one is that of the last call */
    char                    error[US_REPLOG_ERROR];
};


/* a row that was read; p is valid during the call.  -1 ends the reading */

typedef int (*us_replog_take_pt)(void *data, const us_replog_row_t *row,
    const uint8_t *p, size_t len);


struct us_replog_ops_s {
    const char        *name;          /* of the kind: "postgres" */
    const char        *version;       /* US_VERSION of who has compiled it */

    /*
     * Checks the text after "KIND:" of replicate=, without any connection.
     * -1: err says why.
     */
    int              (*check)(const char *conninfo, char *err, size_t size);

    /*
     * Makes no connection: each call does, if there is none.  single: a commit
     * on one server alone is confirmed.  NULL: no memory.
     */
    us_replog_t     *(*open)(const char *conninfo, uint32_t shard, int single,
                             const us_replog_env_t *env);
    void             (*close)(us_replog_t *log);

    /* NONE: the log of this shard is to be created */
    us_replog_rc_t   (*head)(us_replog_t *log, us_replog_head_t *head);

    /* makes the log of an empty store: term 0, row (US_REPLOG_BASE, 0, 0, 0) */
    us_replog_rc_t   (*create)(us_replog_t *log, const uint8_t uuid[16],
                               const char *settings);

    /* the row that begins at lsn */
    us_replog_rc_t   (*row)(us_replog_t *log, uint64_t lsn,
                            us_replog_take_pt take, void *data);

    /* rows from the one that has the byte at lsn on, about max bytes */
    us_replog_rc_t   (*read)(us_replog_t *log, uint64_t lsn, size_t max,
                             us_replog_take_pt take, void *data);

    /* row->lsn is prev->next, row->term prev->term; prev is checked whole */
    us_replog_rc_t   (*append)(us_replog_t *log, const us_replog_row_t *prev,
                               const us_replog_row_t *row, const uint8_t *p,
                               size_t len, uint64_t acked);

    /* last: a row that must be there, of the term */
    us_replog_rc_t   (*beat)(us_replog_t *log, const us_replog_row_t *last,
                             uint64_t acked);

    /*
     * Begins row->term after the term `old`, by a row that follows prev, with
     * these settings.  *beat is that of the term before, as it was when the row
     * was appended.
     */
    us_replog_rc_t   (*promote)(us_replog_t *log, const us_replog_row_t *prev,
                                uint64_t old, const us_replog_row_t *row,
                                const uint8_t *p, size_t len,
                                const char *holder, const char *settings,
                                uint64_t *beat);

    /*
     * The base: the store as of an LSN, in parts 0, 1, ... (below).  base()
     * returns NONE past the last part, and REFUSED if the base was replaced
     * after its part 0 was read.
     *
     * rebase_part() makes a part of a new base under the given term; part 0
     * begins another one, and ends what an earlier try has begun.  rebase()
     * puts the base of so many parts, as of an LSN, in force, all at once.
     * REFUSED: the LSN is not past US_REPLOG_BASE's next, or is past the last
     * row.  The row with the byte before LSN `first` (at most lsn) stays, and
     * all after it: US_REPLOG_BASE's next is the lsn of that row then.  If
     * there is no row, it is lsn.
     *
     * trim() then removes some of what is of no use any more: rows before the
     * base, and parts of other bases.  OK: there may be more; NONE: nothing is
     * left.  A reader that does not find a row looks at US_REPLOG_BASE's again.
     */
    us_replog_rc_t   (*base)(us_replog_t *log, uint32_t part,
                             us_replog_take_pt take, void *data);
    us_replog_rc_t   (*rebase_part)(us_replog_t *log, uint64_t term,
                                    uint32_t part, const uint8_t *p,
                                    size_t len);
    us_replog_rc_t   (*rebase)(us_replog_t *log, uint64_t term, uint64_t first,
                               uint64_t lsn, uint32_t parts);
    us_replog_rc_t   (*trim)(us_replog_t *log);

    /* the next call begins at another server, if there are several; or NULL */
    void             (*leave)(us_replog_t *log);

    /* the next call makes a connection: what this one has in memory is freed */
    void             (*drop)(us_replog_t *log);
};


/* an error as text; returns rc */
int us_replog_fail(char error[US_REPLOG_ERROR], int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));


#define US_PART_HEAD  40


typedef struct {
    uint32_t           number;
    int                last;
    uint64_t           base;
    uint64_t           lsn;
    uint64_t           until;
} us_part_t;


/* p: US_PART_HEAD bytes for the head, then the operations; len: of all */
void us_part_seal(uint8_t *p, size_t len, const us_part_t *part);

/*
 * Checks the part that is read as this number and fills in *part.  0; -1: err
 * names the part, and says what is wrong with it.
 */
int us_part_open(us_part_t *part, uint32_t number, const uint8_t *p,
    size_t len, char err[US_REPLOG_ERROR]);

/*
 * us_replog_take_pt: the row alone, to a us_replog_row_t; the first part of a
 * base alone, to a us_part_t, which is zeroed if that is damaged.
 */
int us_replog_take_row(void *data, const us_replog_row_t *row,
    const uint8_t *p, size_t len);
int us_replog_take_part(void *data, const us_replog_row_t *row,
    const uint8_t *p, size_t len);


#endif /* _US_REPLOG_H_INCLUDED_ */
