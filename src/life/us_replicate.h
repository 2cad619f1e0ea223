
/*
 * A replicated store: its journal is a log that other nodes read as well
 * (replicate=), see us_replog.h.  A directory has a copy of it: us_copier.h.
 *
 *     LOADING   the store is built from the directory, if there is one, and the
 *               log
 *     STANDBY   what the log has confirmed is applied.  Hits are answered; what
 *               is not found may be there already at the primary, so nothing is
 *               denied; nothing is written
 *     READY     the primary: a term has begun, and a lease has passed
 *     STALLED   what us_life_state() returns for READY, while the log has not
 *               confirmed anything for so long that another primary may be
 *               there: hits only
 *
 *     loader    reads the log: us_standby.h
 *     writer    appends what is published: us_appender.h.  `written` and
 *               `durable` of the store are what the log has confirmed, so that
 *               a reply waits for it as it waits for the disk elsewhere
 *
 * A primary that is deposed empties its store and begins as a standby: what it
 * had published and the log has not is gone with it.
 *
 * Invariants:
 *
 *  1. The shared place (us_share_replicate_t.at) says what a standby's store
 *     has, except while load_applying is set.  If a process is killed
 *     meanwhile, the next one empties the store and begins from nothing.
 *  2. Nothing is applied that the log has not confirmed.
 *  3. READY is set by the loader only, after the place of the new term.
 */


#ifndef _US_REPLICATE_H_INCLUDED_
#define _US_REPLICATE_H_INCLUDED_


#include "us_life.h"


/* how it is doing, as far as this node knows; LSNs are the log's */

typedef struct {
    uint64_t          term;           /* the highest, or this primary's */
    char              holder[US_REPLOG_HOLDER];     /* of the term, or "" */
    uint64_t          acked;          /* confirmed up to here */
    uint64_t          end;            /* of the last row */
    uint64_t          lag;            /* bytes that a standby has not applied,
                                         or that are not confirmed */
    uint64_t          age;            /* ms since a primary sent what was
                                         confirmed last, or since a standby got
                                         an answer; US_STORE_NO_ID: never */
    uint64_t          base_lsn;       /* of the base that this node made last */
    uint64_t          base_bytes;
    uint64_t          off;            /* 1: its path cannot be written */
} us_replicate_info_t;


/* of each tick: starts the job that is due */
void us_replicate(us_life_t *l);

/*
 * The node is to become the primary, as soon as it has all that is confirmed.
 * The command is in force for US_REPLICATE_COMMAND ms, so that it does not take
 * effect when nobody expects it, such as after an outage of the log.
 */
#define US_REPLICATE_COMMAND  11000

void us_replicate_promote(us_life_t *l);

/*
 * LOSS.  A node that does not find in the log what was confirmed appends a term
 * of no node, whose settings have "lost LSN".  While they have it, nobody
 * appends and nobody begins a term, so no id of a lost row is given again.
 * This command gives those rows up: a term without it, and with a raised epoch.
 * All nodes read the log anew then, and this one becomes the primary.  0, or
 * -1: the log reports no loss.  As us_replicate_promote(), for some time.
 */
int us_replicate_forget(us_life_t *l);

void us_replicate_info(const us_life_t *l, us_replicate_info_t *info);


#endif /* _US_REPLICATE_H_INCLUDED_ */
