
/*
 * A node that reads a replicated log, and may become its primary.
 *
 *     READING -- promote() --> CLAIMED -- row there, beat --> WAITING --> ready
 *        ^                        |     confirmed                |
 *        `----- refused, gone ----'<------- a higher term -------'
 *
 *     READING  the base, if there is one, and rows are applied, up to the
 *              highest LSN that a primary has reported as confirmed (acked)
 *     CLAIMED  a TERM row was sent, and its outcome is unknown
 *     WAITING  it is confirmed, and with it all rows before.  They are applied,
 *              if this server has the TERM row; beats go on; the node is ready
 *              when a lease has passed since the last row or beat of the term
 *              before was first seen; in another session it counts anew
 *
 * A claim is made only by a node that has applied all up to acked: when it is
 * asked to (a command, or it was the primary before), when the log has had no
 * primary, or when none was seen for takeover=.  The caller can refuse that
 * (env.settings()).  A claim that fails leaves nothing to be undone: no row is
 * applied that is not confirmed.
 *
 * Each session begins with a look whether the last row that was applied is
 * there, and each row is checked to continue it, by its crc.  If not, the log
 * has LOST rows that were confirmed, or this server of it does not have them.
 * The log has LOST rows, too, if its epoch is lower than that of the store: the
 * row that began the epoch is gone.  In both cases nothing is applied, and the
 * next session looks again.
 *
 * A new base (us_rebase.h) may have removed that row, which the log's first row
 * shows:
 *
 *     its LSN, term and crc are the same       nothing is missing: go on
 *     a higher LSN, no lower term, and no      the base has all that was
 *     later term began below what was applied  applied, and more: read anew
 *     the same, but the log does not state     read anew, unless it was LOST
 *     where its terms began                    before
 *     all else                                 LOST
 *
 * If a later term began below what was applied, the log was shorter when it
 * began, and has gone on with other rows.  If nothing but a base was applied,
 * the log is read anew.
 *
 * The parts of a base are those of one base (us_part_t.base), wherever they
 * were read, and at the end that base and the log's first row are there in one
 * session.  A damaged part is not applied, and nothing that was built before it
 * is answered from.
 */


#ifndef _US_STANDBY_H_INCLUDED_
#define _US_STANDBY_H_INCLUDED_


#include "us_replog.h"


#define US_STANDBY_TERM   256         /* bytes of a TERM operation, at most */
#define US_STANDBY_TERMS  1024        /* bytes of a list of terms */
#define US_STANDBY_READ   (4 * 1024 * 1024)     /* bytes of one step */
#define US_STANDBY_QUIET  10000       /* ms without row or beat */


typedef enum {
    US_STANDBY_OK = 0,                /* it has all that is acked */
    US_STANDBY_MORE,                  /* not yet all of it */
    US_STANDBY_READY,                 /* it is the primary now */
    US_STANDBY_NONE,                  /* there is no log */
    US_STANDBY_AGAIN,                 /* error says why */
    US_STANDBY_STOP,                  /* begin from nothing: apply() or base()
                                         has returned -1, or the log has a new
                                         base, and error says so */
    US_STANDBY_LOST                   /* error says what */
} us_standby_rc_t;


typedef enum {
    US_STANDBY_READING = 0,
    US_STANDBY_CLAIMED,
    US_STANDBY_WAITING
} us_standby_state_t;


/* what an operation of the store's journal is made by, and applied */

typedef struct {
    /* the bytes of a TERM operation, which no other claim has */
    size_t           (*term)(void *data, uint64_t term, const char *holder,
                             uint8_t buf[US_STANDBY_TERM]);

    /*
     * The operations of a row, or those of it that follow the base; 0, or -1:
     * not, and the row is to be read again.
     */
    int              (*apply)(void *data, const us_replog_row_t *row,
                              const uint8_t *p, size_t len);

    /* a part of a base, NULL: it ends; 0, or -1: begin from nothing again */
    int              (*base)(void *data, const uint8_t *p, size_t len);

    /*
     * The settings of a term of this node, to follow that of head.  led: the
     * node of that term was the primary, so no lease of an earlier term lasts.
     * *lease: ms that a lease of another node may last.  NULL: this node is to
     * begin no term after head.
     */
    const char      *(*settings)(void *data, const us_replog_head_t *head,
                                 int led, uint64_t *lease);

    us_replog_follows_pt  follows;

    /* whether head has a lower epoch than what was applied; or NULL */
    int              (*fell)(void *data, const us_replog_head_t *head);

    uint64_t         (*now)(void *data);        /* ms, CLOCK_BOOTTIME */
    void              *data;
} us_standby_env_t;


/* the caller zeroes it and sets the first half, uuid if begun */

typedef struct {
    us_replog_t           *log;
    us_standby_env_t       env;
    const char            *holder;    /* this node's name */
    uint64_t               takeover;  /* ms without row or beat; 0: never */
    us_replog_row_t        at;        /* applied; of the base at first */
    uint8_t                uuid[16];  /* of the store */
    unsigned               begun:1;   /* at and uuid are valid */

    us_standby_state_t     state;
    unsigned               looked:1;  /* head is of an earlier step */
    us_replog_head_t       head;
    uint64_t               session;   /* that head, and all of a step, is of */
    uint64_t               found;     /* session in which `at` was there */
    uint64_t               seen;      /* ms: its last row and beat, before a
                                         term of its own */
    uint64_t               led;       /* term of which a row after its first
                                         one was read: its node was ready */
    us_replog_row_t        claim;     /* CLAIMED, WAITING */
    uint64_t               lease;     /* ms that one of before may last */
    uint64_t               sent;      /* ms: the claim, or its beat, was */
    const char            *why;       /* it was made */
    size_t                 len;
    uint8_t                term[US_STANDBY_TERM];
    us_replog_row_t        base;      /* whose parts are being read */
    uint32_t               parts;     /* that were applied */
    us_part_t              part;      /* the last one of them */
    unsigned               lost:1;    /* since the last row was found */
    us_standby_rc_t        rc;        /* of the rows of a step */
    char                   error[US_REPLOG_ERROR];
} us_standby_t;


/*
 * One step: what is there is read and applied, about US_STANDBY_READ bytes.
 * promote: this node is to become the primary; it also does if the log has had
 * no primary yet, or none was seen for `takeover`.  READY: claim is the term's
 * row, at is that row, and sent the time from which its lease counts.
 */
us_standby_rc_t us_standby_step(us_standby_t *sb, int promote);

/*
 * Where the last terms of a log began, as text: "TERM@LSN,...", the highest one
 * first.  Adds another one in front; the oldest goes if there is no room.
 */
void us_standby_terms(char terms[US_STANDBY_TERMS], uint64_t term,
    uint64_t lsn);

/* us_replog_follows_pt, by that text */
int us_standby_follows(const char *terms, const us_replog_row_t *row);


#endif /* _US_STANDBY_H_INCLUDED_ */
