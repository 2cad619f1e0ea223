
/*
 * The statements.  $1 is the shard.
 *
 * A change is  WITH c AS (the change, which returns x) VERDICT:  one row that
 * has the number of changed rows, and x.  The transaction of the change sets
 * synchronous_commit for itself, so that its commit record is on this server's
 * disk when the commit returns, whatever a pooler has done to the session.
 *
 * Locks.  A row that is appended locks the row before it and that of the shard
 * FOR KEY SHARE, a part of a base the latter.  Nothing waits for that but a new
 * base, which locks the log's first row and that of the shard FOR UPDATE, for
 * one short statement.  So no late statement follows the first row as it was,
 * or changes a part of a base in force.
 */


#include "us_pg_private.h"


#define VERDICT                                                               \
    " SELECT (SELECT count(*) FROM c), (SELECT x FROM c),"                    \
    " set_config('synchronous_commit', 'on', true)"

/* about 16 MiB at most, of each, unless rows have long operations */

#define TRIM_ROWS   "256"
#define TRIM_PARTS  "16"

#define COLUMNS  "lsn, next_lsn, term, crc32c, payload"
#define INTO_LOG                                                              \
    "INSERT INTO urlstore_log"                                                \
    " (shard, lsn, next_lsn, term, acked, crc32c, payload) "

/* the row after which another one goes: $2 lsn, $3 next, $4 term, $5 crc */

#define PREVIOUS                                                              \
    "p.shard = $1::int AND p.lsn = $2::bigint AND p.next_lsn = $3::bigint"    \
    " AND p.term = $4::bigint AND p.crc32c = $5::bigint"


const us_pg_sql_t  us_pg_sql[US_PG_STATEMENTS] = {

    [US_PG_HEAD] = { "head",
        "SELECT s.uuid, s.settings, s.holder, s.term, s.beat,"
        " greatest(s.acked, l.acked), l.lsn, l.next_lsn, l.term, l.crc32c,"
        " (SELECT next_lsn FROM urlstore_log WHERE shard = s.shard"
        " AND lsn = -1)"
        " FROM urlstore_shard s LEFT JOIN LATERAL"
        " (SELECT lsn, next_lsn, term, crc32c, acked FROM urlstore_log"
        " WHERE shard = s.shard ORDER BY lsn DESC LIMIT 1) l ON true"
        " WHERE s.shard = $1::int" },

    [US_PG_ROW] = { "row",
        "SELECT " COLUMNS " FROM urlstore_log"
        " WHERE shard = $1::int AND lsn = $2::bigint" },

    /* LSNs are positions of bytes: from $2 to below $3 is a number of bytes */

    [US_PG_READ] = { "read",
        "SELECT " COLUMNS " FROM urlstore_log"
        " WHERE shard = $1::int AND lsn < $3::bigint AND lsn >="
        " (SELECT lsn FROM (SELECT lsn, next_lsn FROM urlstore_log"
        " WHERE shard = $1::int AND lsn >= 0 AND lsn <= $2::bigint"
        " ORDER BY lsn DESC LIMIT 1) f WHERE f.next_lsn > $2::bigint)"
        " ORDER BY lsn" },

    /* the base that is in force, and whether it has this part */

    [US_PG_BASE] = { "base",
        "SELECT s.base, b.payload FROM urlstore_shard s"
        " LEFT JOIN urlstore_base b ON b.shard = s.shard AND b.base = s.base"
        " AND b.part = 0 WHERE s.shard = $1::int" },

    [US_PG_BASE_PART] = { "base_part",
        "SELECT s.base, b.payload FROM urlstore_shard s"
        " LEFT JOIN urlstore_base b ON b.shard = s.shard AND b.base = s.base"
        " AND b.base = $3::bigint AND b.part = $2::int"
        " WHERE s.shard = $1::int" },

    /*
     * After a commit: up to which LSN this server has written to its disk,
     * which is at least the end of the commit's record; and which of the
     * synchronous standbys have that LSN on theirs.  $1: that LSN, in a later
     * look, or 0.  pg_receivewal, which reports no replay_lsn, and a logical
     * subscriber count as standbys for PostgreSQL, but cannot take the server's
     * place.
     */

    [US_PG_FLUSHED] = { "flushed",
        "WITH p AS MATERIALIZED (SELECT coalesce(nullif($1::pg_lsn, '0/0'),"
        " pg_current_wal_flush_lsn()) AS lsn)"
        " SELECT p.lsn - '0/0'::pg_lsn, count(r.pid),"
        " count(r.pid) FILTER (WHERE r.flush_lsn >= p.lsn),"
        " current_setting('synchronous_standby_names')"
        " FROM p LEFT JOIN pg_stat_get_wal_senders() r"
        " ON r.sync_state IN ('sync', 'quorum') AND r.replay_lsn IS NOT NULL"
        " AND NOT EXISTS (SELECT FROM pg_get_replication_slots() s"
        " WHERE s.active_pid = r.pid AND s.slot_type = 'logical')"
        " GROUP BY p.lsn" },

    /* whether a session is there: what it waits for */

    [US_PG_LEFT] = { "left",
        "SELECT coalesce(wait_event, ''),"
        " current_setting('synchronous_standby_names') FROM pg_stat_activity"
        " WHERE pid || ' ' || backend_start = $1::text" },

    /* $2 uuid, $3 settings */

    [US_PG_CREATE] = { "create",
        "WITH s AS (INSERT INTO urlstore_shard"
        " (shard, uuid, settings, term, holder, beat, acked, base, tries)"
        " SELECT $1::int, $2::uuid, $3::text, 0, '', 0, 0, 0, 0"
        " RETURNING 1), c AS (" INTO_LOG
        "SELECT $1::int, -1, 0, 0, 0, 0, '' FROM s RETURNING 0 AS x)"
        VERDICT },

    /* $6 next, $7 crc, $8 payload, $9 acked */

    [US_PG_APPEND] = { "append",
        "WITH c AS (" INTO_LOG
        "SELECT $1::int, $3::bigint, $6::bigint, $4::bigint, $9::bigint,"
        " $7::bigint, $8::bytea FROM urlstore_log p, urlstore_shard s"
        " WHERE " PREVIOUS " AND s.shard = $1::int"
        " FOR KEY SHARE OF p, s RETURNING 0 AS x)"
        VERDICT },

    /* $6 acked */

    [US_PG_BEAT] = { "beat",
        "WITH c AS (UPDATE urlstore_shard s SET beat = s.beat + 1,"
        " acked = greatest(s.acked, $6::bigint) FROM urlstore_log p"
        " WHERE " PREVIOUS " AND s.shard = $1::int AND s.term = p.term"
        " RETURNING 0 AS x)"
        VERDICT },

    /*
     * $6 next, $7 crc, $8 payload, $9 old term, $10 new term, $11 holder,
     * $12 settings.  A beat that waits for a standby has the row of the shard
     * locked: its primary lives, and is not deposed because PostgreSQL is slow
     */

    [US_PG_PROMOTE] = { "promote",
        "WITH n AS MATERIALIZED (SELECT shard FROM urlstore_shard"
        " WHERE shard = $1::int FOR NO KEY UPDATE NOWAIT),"
        " p AS MATERIALIZED (SELECT p.next_lsn FROM n, urlstore_log p"
        " WHERE " PREVIOUS " FOR KEY SHARE OF p),"
        " s AS (UPDATE urlstore_shard SET term = $10::bigint,"
        " holder = $11::text, settings = $12::text FROM p"
        " WHERE shard = $1::int"
        " AND term = $9::bigint AND term < $10::bigint"
        " RETURNING beat), c AS (" INTO_LOG
        "SELECT $1::int, $3::bigint, $6::bigint, $10::bigint, 0, $7::bigint,"
        " $8::bytea FROM s RETURNING (SELECT beat FROM s) AS x)"
        VERDICT },

    /* part 0: $2 term, $3 payload.  What an earlier try has made is trimmed */

    [US_PG_REBASE_FIRST] = { "rebase_first",
        "WITH s AS (UPDATE urlstore_shard SET tries = tries + 1"
        " WHERE shard = $1::int AND term = $2::bigint"
        " RETURNING tries),"
        " c AS (INSERT INTO urlstore_base (shard, base, part, payload)"
        " SELECT $1::int, s.tries, 0, $3::bytea FROM s RETURNING base AS x)"
        VERDICT },

    /* $2 term, $3 payload, $4 part, $5 number of the base */

    [US_PG_REBASE_PART] = { "rebase_part",
        "WITH c AS (INSERT INTO urlstore_base (shard, base, part, payload)"
        " SELECT $1::int, s.tries, $4::int, $3::bytea FROM urlstore_shard s"
        " WHERE s.shard = $1::int AND s.term = $2::bigint"
        " AND s.tries = $5::bigint AND s.base <> s.tries"
        " FOR KEY SHARE OF s ON CONFLICT (shard, base, part)"
        " DO UPDATE SET payload = EXCLUDED.payload RETURNING 0 AS x)"
        VERDICT },

    [US_PG_LOCK] = { "lock",
        "SELECT s.shard FROM urlstore_log p, urlstore_shard s"
        " WHERE p.shard = $1::int AND p.lsn = -1 AND s.shard = $1::int"
        " FOR UPDATE OF p, s" },

    /*
     * $2 term, $3 LSN, $4 parts, $5 number of the base, $6 first.  b: the first
     * row as it is; f: the row with the byte before `first`, or that at which
     * the rows begin; p: the one before that
     */

    [US_PG_REBASE_END] = { "rebase",
        "WITH b AS (SELECT next_lsn FROM urlstore_log"
        " WHERE shard = $1::int AND lsn = -1),"
        " f AS (SELECT l.lsn FROM urlstore_log l, b WHERE l.shard = $1::int"
        " AND l.lsn >= 0 AND l.lsn < greatest($6::bigint, b.next_lsn + 1)"
        " ORDER BY l.lsn DESC LIMIT 1),"
        " p AS (SELECT l.term, l.crc32c FROM urlstore_log l, f"
        " WHERE l.shard = $1::int AND l.lsn < f.lsn"
        " ORDER BY l.lsn DESC LIMIT 1),"
        " s AS (UPDATE urlstore_shard SET base = tries"
        " WHERE shard = $1::int AND term = $2::bigint"
        " AND tries = $5::bigint AND base <> tries"
        " AND $6::bigint <= $3::bigint"
        " AND $3::bigint > (SELECT next_lsn FROM b)"
        " AND NOT EXISTS (SELECT FROM (SELECT next_lsn FROM urlstore_log"
        " WHERE shard = $1::int AND lsn >= 0 ORDER BY lsn DESC LIMIT 1) e"
        " WHERE e.next_lsn < $3::bigint)"
        " AND $4::int = (SELECT count(*) FROM urlstore_base"
        " WHERE shard = $1::int AND base = $5::bigint AND part < $4::int)"
        " RETURNING base),"
        " c AS (UPDATE urlstore_log l SET acked = 0,"
        " next_lsn = coalesce((SELECT lsn FROM f), $3::bigint),"
        " term = coalesce((SELECT term FROM p), 0),"
        " crc32c = coalesce((SELECT crc32c FROM p), 0) FROM s"
        " WHERE l.shard = $1::int AND l.lsn = -1 RETURNING 0 AS x)"
        VERDICT },

    /*
     * From the lowest LSN on: what is left is a chain.  Few enough at once that
     * others do not wait.  $2: an LSN below which there is nothing any more; x
     * is the next one.  Rows that were removed would be walked again as long as
     * an old snapshot keeps them from being vacuumed
     */

    [US_PG_TRIM] = { "trim",
        "WITH b AS (SELECT p.next_lsn, s.base, s.tries FROM urlstore_shard s"
        " JOIN urlstore_log p ON p.shard = s.shard AND p.lsn = -1"
        " WHERE s.shard = $1::int),"
        " l AS (DELETE FROM urlstore_log WHERE shard = $1::int AND lsn IN"
        " (SELECT r.lsn FROM urlstore_log r, b WHERE r.shard = $1::int"
        " AND r.lsn >= $2::bigint AND r.lsn < b.next_lsn ORDER BY r.lsn LIMIT "
        TRIM_ROWS ") RETURNING lsn),"
        " d AS (DELETE FROM urlstore_base WHERE shard = $1::int"
        " AND (base, part) IN (SELECT r.base, r.part FROM urlstore_base r, b"
        " WHERE r.shard = $1::int AND r.base <> b.base AND r.base <> b.tries"
        " LIMIT " TRIM_PARTS ") RETURNING 0),"
        " c AS (SELECT coalesce((SELECT max(lsn) FROM l), $2::bigint) AS x"
        " WHERE EXISTS (SELECT FROM l) OR EXISTS (SELECT FROM d))"
        VERDICT },
};
