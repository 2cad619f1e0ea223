
/*
 * The replicated log of a shard in PostgreSQL, by libpq: the functions of
 * us_replog.h, kind "postgres".
 *
 * The tables are made by conf/urlstore-schema.sql.
 *
 * A change is one statement, or several in one transaction.  It is confirmed
 * (US_REPLOG_OK) if
 *
 *  1. the statement found its conditions met, and the server reported the
 *     commit;
 *  2. after that, the server reported that one of its synchronous standbys has
 *     on its disk what the server had on its own: the commit, and perhaps more.
 *
 * 2. is asked for in the packet of the statement, and is the case at once if
 * nothing else was written to the server meanwhile.  Else it is asked again.
 * Nothing is concluded from a commit that returns, or from settings: PostgreSQL
 * ends the wait for a standby when it is cancelled or when
 * synchronous_standby_names becomes empty, and begins to wait minutes after the
 * names were set, when its checkpointer has read them.
 *
 * With single, 1. is enough.
 *
 * Other results of a change:
 *
 *     REFUSED   the statement's conditions were not met, or a row with this
 *               lsn is there already; nothing was changed
 *     UNKNOWN   sent, and no answer in time; or 2. is not so in time, or there
 *               is no synchronous standby
 *     AWAY      no connection; or the server has undone it for a passing
 *               reason; or an earlier change is still in a session there
 *     BAD       nothing was changed: no tables, no right, a wrong password
 *
 * A reading function returns AWAY where a change returns UNKNOWN.  read()
 * returns NONE if no row has the byte at lsn.
 *
 * No statement is ever cancelled.  A connection with a statement whose end was
 * not seen is closed, and the server ends the statement when it can.  Until
 * then it gets no other change.
 *
 * A call blocks its thread, with poll(2) of at most 50 ms, until stopping()
 * returns 1.  At most, a change does so for timeout (and 1 ms for each 8 KiB of
 * its row), a reading function for look.  While an answer arrives, that is the
 * time between two pieces of it.  Each call tries the hosts of the connection
 * string, from the one that was connected last, one after the other, each for
 * at most US_PG_CONNECT; or for connect_timeout= of the string, beside the time
 * of the call.  A change that is not confirmed makes the next host the first
 * one: an old primary may be writable for ever.  Of two writable servers the
 * one on the higher timeline is used, if this log has seen both.  A host is an
 * address or the folder of a socket: nothing looks names up, which would block.
 *
 * An error text has no password.
 */


#ifndef _US_PG_H_INCLUDED_
#define _US_PG_H_INCLUDED_


#include "../replog/us_replog.h"


extern const us_replog_ops_t  us_pg_ops;


#endif /* _US_PG_H_INCLUDED_ */
