
/*
 * The primary's side of a replicated log: it appends what the store has
 * published, one row at a time, and knows what is confirmed.
 *
 *     store's ring   ....|sure.next ......... last.next|...... published|
 *                        |<-- there, unconfirmed  ---->|<-- to append ->|
 *
 *     sure   the last row that is confirmed: what may be answered ends there
 *     last   the row after which the next one goes; it was appended or read
 *            back, and is confirmed by the next append or beat that is
 *
 * An append whose outcome is unknown is not repeated blindly.  The row that
 * begins at last.next is read first: it may be this append, or one of a process
 * of this node that was killed while its statement was running.  Both are of
 * our term and have our bytes, perhaps more or fewer of them, and are kept.
 *
 *     no such row           last is there    append again
 *                           last is gone     go on from `sure`
 *                           sure is gone     LOST: what was confirmed is gone
 *     of our term           our bytes        it is `last` now
 *                           others           LOST
 *     of a higher term                       DEPOSED
 *
 * If another term has begun, a base of it may have removed these rows: DEPOSED,
 * not LOST, unless that term began before their end.
 *
 * LEASE.  A new primary answers only when a lease has passed since the last row
 * or beat of the term before was seen.  A primary denies only if less than a
 * lease has passed since it *sent* its last confirmed append or beat.  So while
 * one denies, no later one has added anything.  Both measure by CLOCK_BOOTTIME.
 * Nodes may have different leases.  A term keeps the one that it began with,
 * and the log's settings state how long those before it may last.
 *
 * A primary that heard nothing for a lease may have missed a term, and a server
 * that lost that term may be in charge now.  So a lease passes in its next
 * session before anything is confirmed.  It appends meanwhile, so that no
 * standby takes over.
 *
 * The place (us_replog_place_t) is in memory that all processes of a node
 * share.  One process at a time is the primary's; it may be killed at any
 * instruction.
 */


#ifndef _US_APPENDER_H_INCLUDED_
#define _US_APPENDER_H_INCLUDED_


#include "us_replog.h"
#include "../journal/us_segment.h"


#define US_APPENDER_BEAT   500         /* ms without a confirmed commit */
#define US_REPLOG_DRIFT    100         /* clocks of two nodes differ by less
                                          than this part of a lease */


typedef struct {
    us_replog_row_t    last;
    us_replog_row_t    sure;
    uint64_t           last_ids;      /* given below last.next */
    uint64_t           sure_ids;
} us_replog_ends_t;


/* shared: `at` is turned when the other one has been filled */

typedef struct {
    uint64_t           at;
    us_replog_ends_t   ends[2];
    uint64_t           sent;          /* ms: lease; 0: none */
    uint64_t           lease;         /* ms: how long it lasts, in this term */
} us_replog_place_t;


typedef enum {
    US_APPENDER_OK = 0,                /* all that was asked for is confirmed */
    US_APPENDER_AGAIN,                 /* not yet: error says why */
    US_APPENDER_WAITS,                 /* the same: a lease passes first */
    US_APPENDER_DEPOSED,
    US_APPENDER_LOST
} us_appender_rc_t;


/* a process's part; the caller zeroes it and sets the first half */

typedef struct {
    us_replog_t        *log;
    us_replog_place_t  *place;
    const us_ops_t     *ops;
    us_replog_follows_pt  follows;
    uint64_t          (*now)(void *data);       /* ms, CLOCK_BOOTTIME */
    void               *data;
    uint64_t            cut;          /* LSN of an operation that begins a row;
                                         or 0 */

    unsigned            known:1;      /* no row follows `last`, as far as this
                                         process knows */
    uint64_t            session;      /* in which a change was made last */
    uint64_t            since;        /* ms: a lease passes from then; or 0 */

    /* of the step under way; freed at its end, as it has texts of URLs */
    us_str_t            pieces[2];
    uint8_t            *buf;

    char                error[US_REPLOG_ERROR];
} us_appender_t;


/*
 * A new term has begun: its row, below which so many ids were given, is
 * confirmed, and was sent at this time.
 */
void us_replog_place_begin(us_replog_place_t *place,
    const us_replog_row_t *row, uint64_t ids, uint64_t sent, uint64_t lease);

/* the node is the primary no longer: it has no lease */
void us_replog_place_end(us_replog_place_t *place);

/* whole, whatever the primary does meanwhile */
void us_replog_ends(const us_replog_place_t *place, us_replog_ends_t *ends);

/* whether a denial is allowed now */
int us_replog_lease(const us_replog_place_t *place, uint64_t now);

/* whether what was confirmed last was sent less than so many ms ago */
int us_replog_recent(const us_replog_place_t *place, uint64_t now, uint64_t ms);

/*
 * Appends one row of the operations in pieces, which begin at sure.next; or a
 * beat if there are none, and something is unconfirmed or a beat is due.  OK:
 * `sure` is at the end of the row, or of all that was there.
 */
us_appender_rc_t us_appender_step(us_appender_t *p, const us_str_t pieces[2]);


#endif /* _US_APPENDER_H_INCLUDED_ */
