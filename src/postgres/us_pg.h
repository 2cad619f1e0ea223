
/*
 * The replicated log of a shard in PostgreSQL, by libpq: the functions of
 * us_replog.h, kind "postgres".
 *
 *     us_pg.c            the functions
 *     us_pg_sql.c        their statements
 *     us_pg_run.c        a statement is sent, its results are awaited
 *     us_pg_connect.c    a connection is made and checked
 *     us_pg_conninfo.c   the connection string; passwords
 *
 * The tables are made by conf/urlstore-schema.sql.
 *
 * A change is one statement, or several in one transaction.  It is confirmed
 * (US_REPLOG_OK) if
 *
 *  1. the statement found its conditions met, and the server reported the
 *     commit without any warning: a warning is how PostgreSQL reports that a
 *     wait for the standby was cancelled;
 *  2. synchronous_standby_names was not empty, and synchronous_commit was on
 *     or stronger, when the statement was executed;
 *  3. the server did not read its configuration between the statement and the
 *     end of the commit, nor in the half second before: when the names are
 *     emptied, each commit that waits for a standby ends as if it was there.
 *     An idle session reads the configuration with its next statement: the
 *     changes of the half second after that are AWAY.
 *
 * With single, the names and the time of the configuration do not matter.
 *
 * Other results of a change:
 *
 *     REFUSED   the statement's conditions were not met, or a row with this
 *               lsn is there already; nothing was changed
 *     UNKNOWN   sent, and no answer in time; or 1. or 3. failed after it
 *     AWAY      no connection; or the server has undone it for a passing reason
 *     BAD       nothing was changed: no tables, no right, 2. failed, a wrong
 *               password
 *
 * A reading function returns AWAY where a change returns UNKNOWN.  read()
 * returns NONE if no row has the byte at lsn.
 *
 * No statement is ever cancelled.  A connection with a statement whose end was
 * not seen is closed, and the server ends the statement when it can.
 *
 * A call blocks its thread, with poll(2) of at most 50 ms, until stopping()
 * returns 1.  At most, a change does so for timeout (and 1 ms for each 8 KiB of
 * its row), a reading function for look.  While an answer arrives, that is the
 * time between two pieces of it.  Each call tries the hosts of the connection
 * string, from the one that was connected last, one after the other, each for
 * at most US_PG_CONNECT.  A host is an address or the folder of a socket:
 * nothing looks names up, which would block.
 *
 * An error text has no password.
 */


#ifndef _US_PG_H_INCLUDED_
#define _US_PG_H_INCLUDED_


#include "../replog/us_replog.h"


extern const us_replog_ops_t  us_pg_ops;


#endif /* _US_PG_H_INCLUDED_ */
