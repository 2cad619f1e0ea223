
/*
 * See us_pg.h.  The statements; a connection; the functions of a log.
 */


#include "us_pg.h"
#include "../us_clock.h"
#include "../us_version.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <libpq-fe.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define US_PG_HOSTS   16
#define US_PG_HOST    256             /* bytes of a name, which has 253 at most,
                                         or of a path, which has less */
#define US_PG_ARGS    14
#define US_PG_SLICE   50              /* ms of one poll(2) */
#define US_PG_AGAIN  2                /* ms between two looks at the standbys */
#define US_PG_RATE    8192            /* bytes of a row for which a call may
                                         last 1 ms longer */
#define US_PG_CONNECT  2000           /* ms until a connection is there and
                                         checked: a machine that is gone does
                                         not refuse it */
#define US_PG_CONNECT_MAX  600        /* s, of connect_timeout */
#define US_PG_GONE     "3000"         /* ms without an acknowledgement */
#define US_PG_SESSION  64             /* bytes of a name of a session, with 0 */
#define US_PG_LARGE   (8 * 1024 * 1024)       /* libpq keeps a buffer that has
                                         grown: after such a row it is closed */

#define US_PG_GONE_ON  "the log has gone on, or is another one"


/* the statements, prepared in each connection */

typedef enum {
    US_PG_HEAD = 0,
    US_PG_ROW,
    US_PG_READ,
    US_PG_BASE,
    US_PG_BASE_PART,
    US_PG_FLUSHED,
    US_PG_LEFT,
    US_PG_CREATE,
    US_PG_APPEND,
    US_PG_BEAT,
    US_PG_PROMOTE,
    US_PG_REBASE_FIRST,
    US_PG_REBASE_PART,
    US_PG_LOCK,
    US_PG_REBASE_END,
    US_PG_TRIM,
    US_PG_STATEMENTS
} us_pg_statement_t;


typedef struct {
    const char        *name;
    const char        *text;
} us_pg_sql_t;


/* the connection string; "host", "hostaddr" and "port" have one each */

typedef struct {
    PQconninfoOption  *options;
    unsigned           nhosts;
} us_pg_conninfo_t;


/* arguments of a statement; they point into the caller's memory, but numbers */

typedef struct {
    int                n;
    const char        *values[US_PG_ARGS];
    int                lengths[US_PG_ARGS];
    int                formats[US_PG_ARGS];
    uint64_t           numbers[US_PG_ARGS];
} us_pg_args_t;


/* what the server has reported of a change, and then of its standbys */

typedef struct {
    int                 changed;
    uint64_t            x;
    uint64_t            lsn;          /* not before the end of the commit */
    int                 standbys;     /* there are synchronous ones */
    int                 flushed;      /* and one of them has all up to lsn */
    char                names[128];
} us_pg_verdict_t;


typedef struct {
    us_replog_t        log;           /* first: what the caller has */

    us_replog_env_t    env;
    us_pg_conninfo_t   info;
    uint32_t           shard;
    int                single;

    PGconn            *conn;          /* NULL: none */
    unsigned           host;          /* that it leads, or would lead, to */
    unsigned long      timeline;      /* the highest of a server that it led to,
                                         or 0 */
    char               session[US_PG_SESSION];      /* at the server */
    char               left[US_PG_HOSTS][US_PG_SESSION];    /* of a change whose
                                         end was not seen, at each host */

    unsigned           timeout;       /* of this call, ms */
    int64_t            deadline;
    int64_t            asked;         /* when stopping() was called last, ms */
    int                ended;         /* the server has ended the session */
    us_pg_args_t       args;
    us_pg_verdict_t    verdict;
    char               state[6];      /* SQLSTATE of the statement, or "" */

    uint64_t           making;        /* number of the base that is made */
    uint64_t           reading;       /* of the one that is read */
    uint64_t           trimmed;       /* LSN below which no row is any more */
} us_pg_t;


/* a result with rows, in the order of the statements; -1: no more, please */

typedef int (*us_pg_result_pt)(us_pg_t *pg, const PGresult *res, void *data);


/* --- the statements ------------------------------------------------------- */

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


static const us_pg_sql_t  us_pg_sql[US_PG_STATEMENTS] = {

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


/* --- the connection string ------------------------------------------------ */

/*
 * A connection: made without blocking, host after host, then prepared and
 * checked by one transaction of statements; and statements on it, which are
 * sent and their results awaited, without blocking for longer than 50 ms.
 *
 * The connection string is taken as libpq reads it: KEYWORD=VALUE ... or a URI.
 * Its hosts are taken apart, because libpq, when it does not block, waits for
 * one that does not answer for ever and never tries the next.
 *
 * The connection is in libpq's pipeline mode: each transaction of statements
 * ends with a sync, and the server answers each sync.
 */

#define US_PG_SHORT  4                /* bytes of a secret */


static int
us_pg_is_address(const char *s)
{
    struct in6_addr  in;              /* or the shorter one */

    return inet_pton(AF_INET, s, &in) == 1 || inet_pton(AF_INET6, s, &in) == 1;
}


/* NULL: none, or empty */

static const char *
us_pg_option(const us_pg_conninfo_t *info, const char *keyword)
{
    const PQconninfoOption  *o;

    for (o = info->options; o && o->keyword; o++) {
        if (strcmp(o->keyword, keyword) == 0) {
            return o->val && o->val[0] ? o->val : NULL;
        }
    }

    return NULL;
}


static int
us_pg_count(const us_pg_conninfo_t *info, const char *keyword)
{
    int          n;
    const char  *p;

    p = us_pg_option(info, keyword);

    for (n = 0; p; n++) {
        p = strchr(p, ',');
        p = p ? p + 1 : NULL;
    }

    return n;
}


/* what host n has of a list, or all hosts have; NULL: none, libpq's default */

static const char *
us_pg_host(const us_pg_conninfo_t *info, const char *keyword, unsigned n,
    char buf[US_PG_HOST])
{
    const char  *p;

    p = us_pg_option(info, keyword);

    if (p == NULL) {
        return NULL;
    }

    for (n = strchr(p, ',') ? n : 0; n; n--) {
        p = strchr(p, ',') + 1;
    }

    (void) snprintf(buf, US_PG_HOST, "%.*s", (int) strcspn(p, ","), p);

    return buf[0] ? buf : NULL;
}


static int
us_pg_conninfo(us_pg_conninfo_t *info, const char *text, char *err,
    size_t size)
{
    int          i, nhost, naddr, nport, n;
    char        *why, *from, *to, *end, buf[3][US_PG_HOST];
    long         number;
    const char  *host, *addr, *port;

    memset(info, 0, sizeof(us_pg_conninfo_t));
    why = NULL;

    info->options = PQconninfoParse(text, &why);

    if (info->options == NULL) {

        /* what libpq quotes may be a part of a password */

        from = why ? strchr(why, '"') : NULL;
        to = why ? strrchr(why, '"') : NULL;

        (void) snprintf(err, size, "the connection string is not valid: %.*s%s"
                        "%.*s", from ? (int) (from - why) : 60,
                        why ? why : "no memory", from ? "\"...\"" : "",
                        to ? (int) strcspn(to + 1, "\n") : 0,
                        to ? to + 1 : "");
        PQfreemem(why);

        return -1;
    }

    if (us_pg_option(info, "service")) {
        (void) snprintf(err, size, "the connection string has \"service\": "
                        "write its hosts here");
        return -1;
    }

    nhost = us_pg_count(info, "host");
    naddr = us_pg_count(info, "hostaddr");
    nport = us_pg_count(info, "port");

    n = nhost > naddr ? nhost : naddr;
    n = n ? n : 1;
    info->nhosts = n;

    if (n > US_PG_HOSTS) {
        (void) snprintf(err, size, "the connection string has more than %d "
                        "hosts", US_PG_HOSTS);
        return -1;
    }

    if ((nhost && naddr && nhost != naddr) || (nport > 1 && nport != n)) {
        (void) snprintf(err, size, "the connection string has %d \"host\", "
                        "%d \"hostaddr\" and %d \"port\": it needs one of each "
                        "for each server, or one port for all", nhost, naddr,
                        nport);
        return -1;
    }

    for (i = 0; i < n; i++) {
        host = us_pg_host(info, "host", i, buf[0]);
        addr = us_pg_host(info, "hostaddr", i, buf[1]);
        port = us_pg_host(info, "port", i, buf[2]);

        if (addr && !us_pg_is_address(addr)) {
            (void) snprintf(err, size, "\"hostaddr\" of the connection string "
                            "is no address: \"%.64s\"", addr);
            return -1;
        }

        if (host && addr == NULL && host[0] != '/' && host[0] != '@'
            && !us_pg_is_address(host))
        {
            (void) snprintf(err, size, "\"host\" of the connection string is a "
                            "name: \"%.64s\"; it needs \"hostaddr\" as well, "
                            "because looking it up would block", host);
            return -1;
        }

        number = port ? strtol(port, &end, 10) : 1;

        if ((port && *end) || number < 1 || number > 65535) {
            (void) snprintf(err, size, "\"port\" of the connection string is "
                            "\"%.64s\": 1 to 65535 is allowed", port);
            return -1;
        }
    }

    return 0;
}


static void
us_pg_conninfo_free(us_pg_conninfo_t *info)
{
    PQconninfoOption  *o;

    for (o = info->options; o && o->keyword; o++) {
        if (o->val && strstr(o->keyword, "password")) {
            explicit_bzero(o->val, strlen(o->val));
        }
    }

    PQconninfoFree(info->options);
}


/*
 * Replaces a password in a text by asterisks.  A short one may be a part of any
 * word: it is hidden where it is a word.
 */

static void
us_pg_mask(const char *secret, char *text)
{
    char    *p;
    size_t   len;

    len = secret ? strlen(secret) : 0;

    for (p = text; len && (p = strstr(p, secret)) != NULL; p += len) {

        if (len < US_PG_SHORT && ((p > text && isalnum((uint8_t) p[-1]))
                                  || isalnum((uint8_t) p[len])))
        {
            continue;
        }

        memset(p, '*', len);
    }
}


static int64_t
us_pg_now(void)
{
    return (int64_t) us_clock_running();
}


/* --- arguments, all binary ---------------------------------------------- */

static void
us_pg_arg(us_pg_args_t *args, const void *p, size_t len)
{
    args->values[args->n] = len ? p : "";
    args->lengths[args->n] = (int) len;
    args->formats[args->n++] = 1;
}


static void
us_pg_u64(us_pg_args_t *args, uint64_t n)
{
    uint64_t  *to = &args->numbers[args->n];

    *to = htobe64(n);
    us_pg_arg(args, to, 8);
}


static void
us_pg_u32(us_pg_args_t *args, uint32_t n)
{
    uint64_t  *to = &args->numbers[args->n];

    n = htobe32(n);
    memcpy(to, &n, 4);
    us_pg_arg(args, to, 4);
}


static void
us_pg_text(us_pg_args_t *args, const char *s)
{
    us_pg_arg(args, s, strlen(s));
}


/* --- errors --------------------------------------------------------------- */

__attribute__((format(printf, 2, 3)))
static void
us_pg_error(us_pg_t *pg, const char *fmt, ...)
{
    char     *p;
    va_list   args;

    va_start(args, fmt);
    (void) vsnprintf(pg->log.error, sizeof(pg->log.error), fmt, args);
    va_end(args);

    us_pg_mask(us_pg_option(&pg->info, "password"), pg->log.error);
    us_pg_mask(us_pg_option(&pg->info, "sslpassword"), pg->log.error);
    us_pg_mask(pg->conn ? PQpass(pg->conn) : NULL, pg->log.error);

    for (p = pg->log.error; *p; p++) {
        if ((uint8_t) *p < 0x20 || *p == 0x7f) {
            *p = ' ';
        }
    }

    while (p > pg->log.error && p[-1] == ' ') {
        *--p = '\0';
    }
}


static void
us_pg_drop(us_pg_t *pg)
{
    PQfinish(pg->conn);
    pg->conn = NULL;
}


static void
us_pg_leave(us_pg_t *pg)
{
    us_pg_drop(pg);
    pg->host = (pg->host + 1) % pg->info.nhosts;
}


static int
us_pg_lost(us_pg_t *pg)
{
    const char  *text;

    text = pg->conn ? PQerrorMessage(pg->conn) : "";
    us_pg_error(pg, "the connection was lost: %s",
                text[0] ? text : "no reason given");
    us_pg_drop(pg);

    return -1;
}


/* of several errors the first one counts */

static void
us_pg_refused(us_pg_t *pg, const PGresult *res)
{
    const char  *state, *text, *severity, *hint;

    state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (severity && strcmp(severity, "ERROR") != 0) {
        pg->ended = 1;
    }

    if (pg->state[0]) {
        return;
    }

    /* an error without a state is one of libpq: the connection is lost */

    if (state == NULL) {
        pg->ended = 1;
    }

    (void) snprintf(pg->state, sizeof(pg->state), "%s", state ? state : "XX");

    hint = strcmp(pg->state, "42P01") == 0 || strcmp(pg->state, "42703") == 0
           ? " (urlstore-schema.sql creates the tables)" : "";

    us_pg_error(pg, "%s%s", text ? text : PQresultErrorMessage(res), hint);
}


static us_replog_rc_t
us_pg_undone(us_pg_t *pg)
{
    size_t                    i;
    us_replog_rc_t            rc;
    static const char *const  passing[] = {
        "08", "25", "40", "53", "54", "55", "57", "58", "0A", "26", "XX"
    };

    if (strcmp(pg->state, "23505") == 0) {
        us_pg_error(pg, US_PG_GONE_ON);
        return US_REPLOG_REFUSED;
    }

    if (strcmp(pg->state, "55P03") == 0) {
        us_pg_error(pg, "the primary's beat waits at the server");
    }

    rc = US_REPLOG_BAD;

    for (i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        if (strncmp(pg->state, passing[i], 2) == 0) {
            rc = US_REPLOG_AWAY;
        }
    }

    /* what was prepared may be gone, the server may have become read-only */

    us_pg_drop(pg);

    return rc;
}


/* --- the wire ------------------------------------------------------------- */

/*
 * Waits until the connection is ready for some of the events, 50 ms at most,
 * and returns those.  -1: the deadline has passed or the thread is to end;
 * error says which.
 */

static int
us_pg_poll(us_pg_t *pg, short events)
{
    int            ms;
    int64_t        now, left;
    struct pollfd  p;

    now = us_pg_now();
    left = pg->deadline - now;

    if (left <= 0) {
        us_pg_error(pg, "no answer from the server in time");
        return -1;
    }

    if (now - pg->asked >= US_PG_SLICE) {
        pg->asked = now;

        if (pg->env.stopping(pg->env.data)) {
            us_pg_error(pg, "the process is stopping");
            return -1;
        }
    }

    ms = left < US_PG_SLICE ? (int) left : US_PG_SLICE;

    p.fd = PQsocket(pg->conn);
    p.events = events;
    p.revents = 0;

    return poll(&p, 1, ms) == 1 ? p.revents : 0;
}


static int
us_pg_send(us_pg_t *pg, us_pg_statement_t statement, us_pg_args_t *args,
    int binary)
{
    return PQsendQueryPrepared(pg->conn, us_pg_sql[statement].name, args->n,
                               args->values, args->lengths, args->formats,
                               binary)
           ? 0 : us_pg_lost(pg);
}


static int
us_pg_sync(us_pg_t *pg)
{
    return PQpipelineSync(pg->conn) ? 0 : us_pg_lost(pg);
}


/* until a result is there; as long as it arrives, the deadline is put off */

static int
us_pg_ready(us_pg_t *pg)
{
    int      left, got;
    int64_t  later;

    for ( ;; ) {
        left = PQflush(pg->conn);

        if (left == -1) {
            return us_pg_lost(pg);
        }

        if (!PQisBusy(pg->conn)) {
            return 0;
        }

        got = us_pg_poll(pg, left ? POLLIN|POLLOUT : POLLIN);

        if (got == -1) {
            us_pg_drop(pg);
            return -1;
        }

        if (got & POLLIN) {
            later = us_pg_now() + pg->timeout;
            pg->deadline = later > pg->deadline ? later : pg->deadline;
        }

        if (!PQconsumeInput(pg->conn)) {
            return us_pg_lost(pg);
        }
    }
}


static int
us_pg_results(us_pg_t *pg, unsigned syncs, us_pg_result_pt take, void *data)
{
    int        more, none;
    PGresult  *res;

    more = 1;
    none = 0;
    pg->state[0] = '\0';

    while (syncs) {

        if (us_pg_ready(pg) == -1) {
            return -1;
        }

        res = PQgetResult(pg->conn);

        /* one NULL ends the results of a statement */

        none = res ? 0 : none + 1;

        if (none > 2) {
            return us_pg_lost(pg);
        }

        switch (res ? PQresultStatus(res) : PGRES_EMPTY_QUERY) {

        case PGRES_PIPELINE_SYNC:
            syncs--;
            break;

        case PGRES_TUPLES_OK:
        case PGRES_SINGLE_TUPLE:
            if (more && PQntuples(res) && take(pg, res, data) == -1) {
                more = 0;
            }

            break;

        case PGRES_FATAL_ERROR:
        case PGRES_BAD_RESPONSE:
            us_pg_refused(pg, res);
            break;

        default:
            break;
        }

        PQclear(res);

        if (pg->ended || PQstatus(pg->conn) != CONNECTION_OK) {
            if (pg->state[0] == '\0') {
                (void) us_pg_lost(pg);
            }

            us_pg_drop(pg);
            return -1;
        }
    }

    return 0;
}


/* --- the connection ----------------------------------------------------- */

/*
 * The session's settings; none of them that a server does not know.  A timeout
 * would cancel a statement.
 */

#define US_PG_SETTINGS                                                        \
    "SELECT set_config(v.name, v.value, false) FROM (VALUES"                  \
    " ('default_transaction_isolation', 'read committed'),"                   \
    " ('statement_timeout', '0'), ('lock_timeout', '0'),"                     \
    " ('idle_session_timeout', '0'), ('transaction_timeout', '0'),"           \
    " ('idle_in_transaction_session_timeout', '0')) v (name, value)"          \
    " WHERE current_setting(v.name, true) IS NOT NULL"

/*
 * The version of the tables, and which rights are missing; whether the role
 * sees what the standbys have; the session, and the server's timeline, which is
 * higher after each promotion
 */

#define US_PG_VERSION  1

/* of libpq's text about a server that is one */

#define US_PG_STANDBY  "read-only"

#define US_PG_RIGHTS                                                          \
    "SELECT (SELECT version FROM urlstore_schema)::text,"                     \
    " (SELECT string_agg(r.what || ' on ' || r.name, ', ') FROM (VALUES"      \
    " ('urlstore_shard', 'SELECT'), ('urlstore_shard', 'INSERT'),"            \
    " ('urlstore_shard', 'UPDATE'), ('urlstore_log', 'SELECT'),"              \
    " ('urlstore_log', 'INSERT'), ('urlstore_log', 'UPDATE'),"                \
    " ('urlstore_log', 'DELETE'), ('urlstore_base', 'SELECT'),"               \
    " ('urlstore_base', 'INSERT'), ('urlstore_base', 'UPDATE'),"              \
    " ('urlstore_base', 'DELETE')) r (name, what)"                            \
    " WHERE NOT CASE r.what WHEN 'DELETE'"                                    \
    " THEN has_table_privilege(r.name, r.what)"                               \
    " ELSE has_any_column_privilege(r.name, r.what) END),"                    \
    " pg_has_role('pg_read_all_stats', 'USAGE'),"                             \
    " (SELECT pid || ' ' || backend_start FROM pg_stat_activity"              \
    " WHERE pid = pg_backend_pid()),"                                         \
    " left(pg_walfile_name(pg_current_wal_flush_lsn()), 8)"


/*
 * Whether an idle connection still leads to its server: else the statement
 * that is sent next would be unknown for no reason.
 */

static int
us_pg_alive(us_pg_t *pg)
{
    struct pollfd  p;

    for ( ;; ) {
        p.fd = PQsocket(pg->conn);
        p.events = POLLIN;

        if (p.fd == -1 || pg->ended) {
            return 0;
        }

        if (poll(&p, 1, 0) != 1) {
            return 1;
        }

        if (!PQconsumeInput(pg->conn)) {
            return 0;
        }

        (void) PQisBusy(pg->conn);
    }
}


/*
 * The reason why there is no connection.  libpq has the SQLSTATE in its text
 * only: "FATAL:  28P01: password authentication failed".
 */

static us_replog_rc_t
us_pg_failed(us_pg_t *pg)
{
    char        text[US_REPLOG_ERROR];
    char       *p, *location;
    const char *state;

    (void) snprintf(text, sizeof(text), "%s", PQerrorMessage(pg->conn));

    location = strstr(text, "\nLOCATION:");

    if (location) {
        *location = '\0';
    }

    state = "";

    for (p = strstr(text, ":  "); p; p = strstr(p + 1, ":  ")) {
        if (strspn(p + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5
            && p[8] == ':')
        {
            state = p + 3;
        }
    }

    us_pg_error(pg, "%s", text);

    /* not authorized; no such database */

    if (strncmp(state, "28", 2) == 0 || strncmp(state, "3D", 2) == 0
        || strncmp(state, "42", 2) == 0
        || PQconnectionNeedsPassword(pg->conn))
    {
        return US_REPLOG_BAD;
    }

    return US_REPLOG_AWAY;
}


/* of the two results with rows, the second one */

static int
us_pg_checked(us_pg_t *pg, const PGresult *res, void *data)
{
    us_replog_rc_t *rc = data;

    unsigned long  timeline;

    if (PQnfields(res) != 5 || PQntuples(res) != 1) {
        return 0;
    }

    if (strcmp(PQgetvalue(res, 0, 0), "1") != 0) {
        us_pg_error(pg, "the tables have version %.20s: this module needs "
                    "version %d (urlstore-schema.sql)", PQgetvalue(res, 0, 0),
                    US_PG_VERSION);

    } else if (!PQgetisnull(res, 0, 1)) {
        us_pg_error(pg, "the role \"%.64s\" lacks rights: %s "
                    "(urlstore-schema.sql)", PQuser(pg->conn),
                    PQgetvalue(res, 0, 1));

    } else if (!pg->single && PQgetvalue(res, 0, 2)[0] != 't') {
        us_pg_error(pg, "the role \"%.64s\" cannot see what the standbys have: "
                    "GRANT pg_read_all_stats to it (urlstore-schema.sql)",
                    PQuser(pg->conn));

    } else {
        (void) snprintf(pg->session, sizeof(pg->session), "%s",
                        PQgetvalue(res, 0, 3));
        timeline = strtoul(PQgetvalue(res, 0, 4), NULL, 16);

        if (timeline < pg->timeline) {
            us_pg_error(pg, "a server is not the primary any more: it is "
                        "writable, on timeline %lu, but another one was "
                        "promoted to %lu", timeline, pg->timeline);
            *rc = US_REPLOG_AWAY;
            return 0;
        }

        pg->timeline = timeline;
        *rc = US_REPLOG_OK;
    }

    return 0;
}


static us_replog_rc_t
us_pg_setup(us_pg_t *pg)
{
    int             rc, i;
    us_replog_rc_t  checked;

    if (PQserverVersion(pg->conn) < 130000) {
        us_pg_error(pg, "PostgreSQL %d is too old: 13 or later is needed",
                    PQserverVersion(pg->conn) / 10000);
        return US_REPLOG_BAD;
    }

    if (PQsetnonblocking(pg->conn, 1) == -1
        || !PQenterPipelineMode(pg->conn))
    {
        return us_pg_failed(pg);
    }

    rc = PQsendQueryParams(pg->conn, US_PG_SETTINGS, 0, NULL, NULL, NULL, NULL,
                           0)
         && PQsendQueryParams(pg->conn, US_PG_RIGHTS, 0, NULL, NULL, NULL, NULL,
                              0);

    for (i = 0; rc && i < US_PG_STATEMENTS; i++) {
        rc = PQsendPrepare(pg->conn, us_pg_sql[i].name, us_pg_sql[i].text, 0,
                           NULL);
    }

    if (!rc || us_pg_sync(pg) == -1) {
        return us_pg_failed(pg);
    }

    checked = US_REPLOG_BAD;

    if (us_pg_results(pg, 1, us_pg_checked, &checked) == -1) {
        return US_REPLOG_AWAY;
    }

    if (pg->state[0]) {
        return us_pg_undone(pg);
    }

    return checked;
}


static void
us_pg_notice(void *data, const PGresult *res)
{
    us_pg_t  *pg = data;

    const char  *severity;

    /* NULL: of libpq itself, or of a server before 9.6 */

    severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (severity && (strcmp(severity, "FATAL") == 0
                     || strcmp(severity, "PANIC") == 0))
    {
        pg->ended = 1;
    }
}


static us_replog_rc_t
us_pg_reach(us_pg_t *pg)
{
    int                        ready;
    char                       host[3][US_PG_HOST];
    short                      events;
    unsigned                   n, i;
    const PQconninfoOption    *o;
    PostgresPollingStatusType  status;

    /*
     * What was sent and not acknowledged, or an idle connection that does not
     * answer, ends it.  A commit that waits for a standby is neither.
     */

    const char  *keys[64] = { "keepalives_idle", "keepalives_interval",
                              "tcp_user_timeout" };
    const char  *values[64] = { "1", "1", US_PG_GONE };

    /* the last of a keyword counts; an empty value is a default */

    const char  *last[][2] = {
        { "host", us_pg_host(&pg->info, "host", pg->host, host[0]) },
        { "hostaddr", us_pg_host(&pg->info, "hostaddr", pg->host, host[1]) },
        { "port", us_pg_host(&pg->info, "port", pg->host, host[2]) },
        { "gssencmode", "disable" },
        { "target_session_attrs", "read-write" },
        { "client_encoding", "UTF8" },
        { "fallback_application_name", "urlstore" }
    };

    n = 3;

    for (o = pg->info.options; o->keyword && n < 56; o++) {
        if (o->val && strcmp(o->keyword, "host") != 0
            && strcmp(o->keyword, "hostaddr") != 0
            && strcmp(o->keyword, "port") != 0)
        {
            keys[n] = o->keyword;
            values[n++] = o->val;
        }
    }

    for (i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
        keys[n] = last[i][0];
        values[n++] = last[i][1];
    }

    pg->ended = 0;
    pg->conn = PQconnectStartParams(keys, values, 0);

    if (pg->conn == NULL) {
        us_pg_error(pg, "no memory");
        return US_REPLOG_AWAY;
    }

    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        return us_pg_failed(pg);
    }

    (void) PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE);
    (void) PQsetNoticeReceiver(pg->conn, us_pg_notice, pg);
    status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK) {
        events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        ready = us_pg_poll(pg, events);

        if (ready == -1) {
            return US_REPLOG_AWAY;
        }

        /* a socket that is not ready would make libpq wait for it */

        if (ready == 0) {
            continue;
        }

        status = PQconnectPoll(pg->conn);

        if (status == PGRES_POLLING_FAILED) {
            return us_pg_failed(pg);
        }
    }

    return us_pg_setup(pg);
}


static us_replog_rc_t
us_pg_connect(us_pg_t *pg)
{
    int             bad, own;
    char            why[US_REPLOG_ERROR];
    int64_t         end, call, share, limit;
    unsigned        i;
    const char     *timeout;
    us_replog_rc_t  rc;

    if (pg->conn && us_pg_alive(pg)) {
        return US_REPLOG_OK;
    }

    us_pg_drop(pg);

    bad = 0;
    why[0] = '\0';
    end = pg->deadline;
    call = end - us_pg_now();

    /*
     * ms for a connection: libpq's own limit is not for PQconnectPoll().  What
     * the connection string says is no part of the call's time, or a server
     * that takes longer than a call may is never connected.
     */

    timeout = us_pg_option(&pg->info, "connect_timeout");
    limit = timeout ? strtol(timeout, NULL, 10) : 0;
    own = limit > 0 && limit <= US_PG_CONNECT_MAX;

    if (own) {
        limit *= 1000;
        end = us_pg_now() + limit * pg->info.nhosts;

    } else {
        limit = US_PG_CONNECT;
    }

    /* each host has its share of the time that is left, and a limit */

    for (i = 0; i < pg->info.nhosts; i++) {
        share = (end - us_pg_now()) / (pg->info.nhosts - i);
        pg->deadline = us_pg_now() + (share < limit ? share : limit);
        rc = us_pg_reach(pg);

        if (rc == US_REPLOG_OK) {
            pg->deadline = own ? us_pg_now() + call : end;
            pg->log.session++;
            pg->log.error[0] = '\0';
            return rc;
        }

        bad |= rc == US_REPLOG_BAD;
        us_pg_drop(pg);

        if (pg->env.stopping(pg->env.data)) {
            return US_REPLOG_AWAY;
        }

        us_pg_leave(pg);

        /* that a standby is read-only explains nothing */

        if (why[0] == '\0' || strstr(why, US_PG_STANDBY)) {
            (void) strcpy(why, pg->log.error);
        }
    }

    /* what is on an earlier timeline, as after a restore, is used next time */

    pg->timeline = 0;
    (void) strcpy(pg->log.error, why);

    return bad ? US_REPLOG_BAD : US_REPLOG_AWAY;
}


/* --- the functions of a log ----------------------------------------------- */

#define US_PG_TIMEOUT  2000           /* ms, unless the caller sets others */


/* what a reading function hands on */

typedef struct {
    us_replog_take_pt   take;
    void               *data;
    us_replog_head_t   *head;
    uint32_t            part;
    unsigned            rows;
    int                 large;        /* there was such a row */
    int                 bad;          /* what was read cannot be */
} us_pg_reader_t;


static int
us_pg_check(const char *conninfo, char *err, size_t size)
{
    int               rc;
    us_pg_conninfo_t  info;

    rc = us_pg_conninfo(&info, conninfo, err, size);

    us_pg_conninfo_free(&info);

    return rc;
}


static void
us_pg_close(us_replog_t *log)
{
    us_pg_t  *pg = (us_pg_t *) log;

    us_pg_drop(pg);
    us_pg_conninfo_free(&pg->info);
    free(pg);
}


static us_replog_t *
us_pg_open(const char *conninfo, uint32_t shard, int single,
    const us_replog_env_t *env)
{
    us_pg_t  *pg;

    pg = calloc(1, sizeof(us_pg_t));

    if (pg == NULL) {
        return NULL;
    }

    if (us_pg_conninfo(&pg->info, conninfo, pg->log.error,
                       sizeof(pg->log.error))
        == -1)
    {
        us_pg_close(&pg->log);
        return NULL;
    }

    pg->log.ops = &us_pg_ops;
    pg->log.timeout = US_PG_TIMEOUT;
    pg->log.look = US_PG_TIMEOUT;
    pg->env = *env;
    pg->shard = shard;
    pg->single = single;

    return &pg->log;
}


/*
 * The beginning of each call: its deadline, which is later by so many ms than
 * the timeout, and the first arguments.
 */

static us_pg_t *
us_pg_begin(us_replog_t *log, int change, uint64_t more)
{
    us_pg_t  *pg = (us_pg_t *) log;

    pg->asked = us_pg_now();
    pg->timeout = change ? log->timeout : log->look;
    pg->deadline = pg->asked + pg->timeout + (int64_t) more;
    pg->log.error[0] = '\0';

    pg->args.n = 0;
    us_pg_u32(&pg->args, pg->shard);

    return pg;
}


/* 8 bytes: the statements make no others */

static uint64_t
us_pg_number(const PGresult *res, int column)
{
    uint64_t  n;

    n = 0;

    if (PQgetlength(res, 0, column) == (int) sizeof(n)) {
        memcpy(&n, PQgetvalue(res, 0, column), sizeof(n));
    }

    return be64toh(n);
}


static int
us_pg_head_result(us_pg_t *pg, const PGresult *res, void *data)
{
    us_pg_reader_t  *reader = data;

    us_replog_head_t  *head;

    head = reader->head;
    reader->rows = 1;

    if (PQgetlength(res, 0, 0) != (int) sizeof(head->uuid)
        || PQgetlength(res, 0, 1) >= US_REPLOG_SETTINGS
        || PQgetlength(res, 0, 2) >= US_REPLOG_HOLDER
        || PQgetisnull(res, 0, 6))
    {
        us_pg_error(pg, "the row of shard %u is not valid, or its log has no "
                    "rows", pg->shard);
        reader->bad = 1;
        return -1;
    }

    memcpy(head->uuid, PQgetvalue(res, 0, 0), sizeof(head->uuid));
    (void) strcpy(head->settings, PQgetvalue(res, 0, 1));
    (void) strcpy(head->holder, PQgetvalue(res, 0, 2));

    head->term = us_pg_number(res, 3);
    head->beat = us_pg_number(res, 4);
    head->acked = us_pg_number(res, 5);
    head->last.lsn = us_pg_number(res, 6);
    head->last.next = us_pg_number(res, 7);
    head->last.term = us_pg_number(res, 8);
    head->last.crc = us_pg_number(res, 9);
    head->base = us_pg_number(res, 10);

    return 0;
}


static us_replog_rc_t
us_pg_query(us_pg_t *pg, us_pg_statement_t statement, us_pg_result_pt result,
    us_pg_reader_t *reader)
{
    us_replog_rc_t  rc;

    rc = us_pg_connect(pg);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    if (us_pg_send(pg, statement, &pg->args, 1) == -1
        || !PQsetSingleRowMode(pg->conn)
        || us_pg_sync(pg) == -1
        || us_pg_results(pg, 1, result, reader) == -1)
    {
        us_pg_drop(pg);
        return US_REPLOG_AWAY;
    }

    if (pg->state[0]) {
        return us_pg_undone(pg);
    }

    if (reader->large) {
        us_pg_drop(pg);
    }

    return reader->bad ? US_REPLOG_BAD
           : reader->rows ? US_REPLOG_OK : US_REPLOG_NONE;
}


/* --- reading -------------------------------------------------------------- */

static us_replog_rc_t
us_pg_head(us_replog_t *log, us_replog_head_t *head)
{
    us_pg_t         *pg;
    us_pg_reader_t   reader = { .head = head };

    memset(head, 0, sizeof(us_replog_head_t));
    pg = us_pg_begin(log, 0, 0);

    return us_pg_query(pg, US_PG_HEAD, us_pg_head_result, &reader);
}


static int
us_pg_row_result(us_pg_t *pg, const PGresult *res, void *data)
{
    us_pg_reader_t  *reader = data;

    us_replog_row_t  row;

    reader->rows++;
    reader->large |= PQgetlength(res, 0, 4) > US_PG_LARGE;

    row.lsn = us_pg_number(res, 0);
    row.next = us_pg_number(res, 1);
    row.term = us_pg_number(res, 2);
    row.crc = us_pg_number(res, 3);

    return reader->take(reader->data, &row,
                        (const uint8_t *) PQgetvalue(res, 0, 4),
                        PQgetlength(res, 0, 4));
}


static us_replog_rc_t
us_pg_row(us_replog_t *log, uint64_t lsn, us_replog_take_pt take, void *data)
{
    us_pg_t         *pg;
    us_pg_reader_t   reader = { .take = take, .data = data };

    pg = us_pg_begin(log, 0, 0);
    us_pg_u64(&pg->args, lsn);

    return us_pg_query(pg, US_PG_ROW, us_pg_row_result, &reader);
}


static us_replog_rc_t
us_pg_read(us_replog_t *log, uint64_t lsn, size_t max, us_replog_take_pt take,
    void *data)
{
    us_pg_t         *pg;
    us_pg_reader_t   reader = { .take = take, .data = data };

    pg = us_pg_begin(log, 0, 0);

    if (lsn > INT64_MAX - max) {
        return US_REPLOG_NONE;
    }

    us_pg_u64(&pg->args, lsn);
    us_pg_u64(&pg->args, lsn + (max ? max : 1));

    return us_pg_query(pg, US_PG_READ, us_pg_row_result, &reader);
}


static int
us_pg_base_result(us_pg_t *pg, const PGresult *res, void *data)
{
    us_pg_reader_t  *reader = data;

    uint64_t         base;
    us_replog_row_t  row = { .lsn = US_REPLOG_BASE };

    base = us_pg_number(res, 0);

    if (reader->part == 0) {
        pg->reading = base;

    } else if (base != pg->reading) {
        us_pg_error(pg, "the base was replaced while it was read");
        reader->bad = 1;
        return -1;
    }

    if (PQgetisnull(res, 0, 1)) {
        return 0;
    }

    reader->rows++;
    reader->large |= PQgetlength(res, 0, 1) > US_PG_LARGE;

    return reader->take(reader->data, &row,
                        (const uint8_t *) PQgetvalue(res, 0, 1),
                        PQgetlength(res, 0, 1));
}


static us_replog_rc_t
us_pg_base(us_replog_t *log, uint32_t part, us_replog_take_pt take,
    void *data)
{
    us_pg_t         *pg;
    us_replog_rc_t   rc;
    us_pg_reader_t   reader = { .take = take, .data = data, .part = part };

    pg = us_pg_begin(log, 0, 0);

    if (part) {
        us_pg_u32(&pg->args, part);
        us_pg_u64(&pg->args, pg->reading);
    }

    rc = us_pg_query(pg, part ? US_PG_BASE_PART : US_PG_BASE,
                     us_pg_base_result, &reader);

    return reader.bad ? US_REPLOG_REFUSED : rc;
}


static void
us_pg_unconfirmed(us_pg_t *pg, const char *names)
{
    if (names[0]) {
        us_pg_error(pg, "waits for a synchronous standby "
                    "(synchronous_standby_names = \"%s\")", names);

    } else {
        us_pg_error(pg, "\"synchronous_standby_names\" of the server is empty: "
                    "a commit is on one server only, which needs "
                    "\"replicas=0\"");
    }
}


static int
us_pg_left_result(us_pg_t *pg, const PGresult *res, void *data)
{
    if (strcmp(PQgetvalue(res, 0, 0), "SyncRep") == 0) {
        us_pg_unconfirmed(pg, PQgetvalue(res, 0, 1));

    } else {
        us_pg_error(pg, "an earlier change has not ended at the server");
    }

    return 0;
}


/*
 * Whether a change may be sent: a session that was left with one may wait for a
 * standby as long as that is away, and would be joined by one for each try.
 */

static us_replog_rc_t
us_pg_left(us_pg_t *pg)
{
    char          *left;
    us_pg_args_t   args;

    left = pg->left[pg->host];

    if (left[0] == '\0') {
        return US_REPLOG_OK;
    }

    args.n = 0;
    us_pg_text(&args, left);

    /* us_pg_left_result() has an error if the session is there */

    if (us_pg_send(pg, US_PG_LEFT, &args, 0) == -1
        || us_pg_sync(pg) == -1
        || us_pg_results(pg, 1, us_pg_left_result, NULL) == -1
        || pg->log.error[0])
    {
        us_pg_leave(pg);
        return US_REPLOG_AWAY;
    }

    left[0] = '\0';

    return US_REPLOG_OK;
}


static int
us_pg_verdict(us_pg_t *pg, const PGresult *res, void *data)
{
    us_pg_verdict_t  *v = data;

    switch (PQnfields(res)) {

    case 3:
        v->changed = strcmp(PQgetvalue(res, 0, 0), "0") != 0;
        v->x = strtoull(PQgetvalue(res, 0, 1), NULL, 10);
        break;

    case 4:
        v->lsn = strtoull(PQgetvalue(res, 0, 0), NULL, 10);
        v->standbys = strcmp(PQgetvalue(res, 0, 1), "0") != 0;
        v->flushed = strcmp(PQgetvalue(res, 0, 2), "0") != 0;
        (void) snprintf(v->names, sizeof(v->names), "%s",
                        PQgetvalue(res, 0, 3));
        break;
    }

    return 0;
}


/* the results, also of so many transactions before.  -1: see us_pg_results() */

static int
us_pg_flushed(us_pg_t *pg, unsigned before, us_pg_verdict_t *v)
{
    us_pg_args_t  args;

    args.n = 0;
    us_pg_u64(&args, v->lsn);

    if (!pg->single && (us_pg_send(pg, US_PG_FLUSHED, &args, 0) == -1
                        || us_pg_sync(pg) == -1))
    {
        return -1;
    }

    return us_pg_results(pg, before + !pg->single, us_pg_verdict, v);
}


/*
 * The statement, in a transaction of its own; and then, in the same packet, a
 * look whether a standby has it.
 */

static us_replog_rc_t
us_pg_change(us_pg_t *pg, us_pg_statement_t statement, size_t len)
{
    int64_t           end;
    us_pg_args_t      lock;
    us_replog_rc_t    rc;
    us_pg_verdict_t  *v;

    v = &pg->verdict;
    memset(v, 0, sizeof(us_pg_verdict_t));

    rc = us_pg_connect(pg);

    if (rc != US_REPLOG_OK || (rc = us_pg_left(pg)) != US_REPLOG_OK) {
        return rc;
    }

    end = pg->deadline;

    lock.n = 0;
    us_pg_u32(&lock, pg->shard);

    if ((statement == US_PG_REBASE_END
         && us_pg_send(pg, US_PG_LOCK, &lock, 0) == -1)
        || us_pg_send(pg, statement, &pg->args, 0) == -1
        || us_pg_sync(pg) == -1
        || us_pg_flushed(pg, 1, v) == -1)
    {
        (void) strcpy(pg->left[pg->host], pg->session);
        us_pg_leave(pg);
        return US_REPLOG_UNKNOWN;
    }

    while (pg->state[0] == '\0' && v->changed && v->standbys
           && v->flushed == 0 && us_pg_now() + US_PG_SLICE < end)
    {
        (void) poll(NULL, 0, US_PG_AGAIN);
        pg->deadline = end;

        if (us_pg_flushed(pg, 0, v) == -1) {
            us_pg_leave(pg);
            return US_REPLOG_UNKNOWN;
        }
    }

    if (pg->state[0]) {
        rc = us_pg_undone(pg);

        /* the commit failed, or what came after it */

        return v->changed ? US_REPLOG_UNKNOWN : rc;
    }

    if (len > US_PG_LARGE) {
        us_pg_drop(pg);
    }

    if (!v->changed) {
        us_pg_error(pg, US_PG_GONE_ON);
        return US_REPLOG_REFUSED;
    }

    if (pg->single || v->flushed) {
        return US_REPLOG_OK;
    }

    us_pg_unconfirmed(pg, v->names);
    us_pg_leave(pg);

    return US_REPLOG_UNKNOWN;
}


/* --- changes -------------------------------------------------------------- */

static us_replog_rc_t
us_pg_create(us_replog_t *log, const uint8_t uuid[16], const char *settings)
{
    us_pg_t  *pg;

    pg = us_pg_begin(log, 1, 0);
    us_pg_arg(&pg->args, uuid, 16);
    us_pg_text(&pg->args, settings);

    return us_pg_change(pg, US_PG_CREATE, 0);
}


static void
us_pg_previous(us_pg_args_t *args, const us_replog_row_t *prev)
{
    us_pg_u64(args, prev->lsn);
    us_pg_u64(args, prev->next);
    us_pg_u64(args, prev->term);
    us_pg_u64(args, prev->crc);
}


static int
us_pg_follows(us_pg_t *pg, const us_replog_row_t *prev,
    const us_replog_row_t *row, size_t len)
{
    if (row->lsn == prev->next && row->next > row->lsn
        && row->next <= INT64_MAX && row->term <= INT64_MAX
        && len <= US_REPLOG_MAX)
    {
        return 1;
    }

    us_pg_error(pg, "a row of LSN %" PRIu64 " to %" PRIu64 " does not follow "
                "one that ends at %" PRIu64, row->lsn, row->next, prev->next);

    return 0;
}


static us_replog_rc_t
us_pg_append(us_replog_t *log, const us_replog_row_t *prev,
    const us_replog_row_t *row, const uint8_t *p, size_t len, uint64_t acked)
{
    us_pg_t  *pg;

    pg = us_pg_begin(log, 1, len / US_PG_RATE);

    if (!us_pg_follows(pg, prev, row, len) || row->term != prev->term) {
        return US_REPLOG_REFUSED;
    }

    us_pg_previous(&pg->args, prev);
    us_pg_u64(&pg->args, row->next);
    us_pg_u64(&pg->args, row->crc);
    us_pg_arg(&pg->args, p, len);
    us_pg_u64(&pg->args, acked);

    return us_pg_change(pg, US_PG_APPEND, len);
}


static us_replog_rc_t
us_pg_beat(us_replog_t *log, const us_replog_row_t *last, uint64_t acked)
{
    us_pg_t  *pg;

    pg = us_pg_begin(log, 1, 0);
    us_pg_previous(&pg->args, last);
    us_pg_u64(&pg->args, acked);

    return us_pg_change(pg, US_PG_BEAT, 0);
}


static us_replog_rc_t
us_pg_promote(us_replog_t *log, const us_replog_row_t *prev, uint64_t old,
    const us_replog_row_t *row, const uint8_t *p, size_t len,
    const char *holder, const char *settings, uint64_t *beat)
{
    us_pg_t         *pg;
    us_replog_rc_t   rc;

    pg = us_pg_begin(log, 1, len / US_PG_RATE);

    if (!us_pg_follows(pg, prev, row, len)) {
        return US_REPLOG_REFUSED;
    }

    us_pg_previous(&pg->args, prev);
    us_pg_u64(&pg->args, row->next);
    us_pg_u64(&pg->args, row->crc);
    us_pg_arg(&pg->args, p, len);
    us_pg_u64(&pg->args, old);
    us_pg_u64(&pg->args, row->term);
    us_pg_text(&pg->args, holder);
    us_pg_text(&pg->args, settings);

    rc = us_pg_change(pg, US_PG_PROMOTE, len);

    *beat = pg->verdict.x;

    return rc;
}


static us_replog_rc_t
us_pg_rebase_part(us_replog_t *log, uint64_t term, uint32_t part,
    const uint8_t *p, size_t len)
{
    us_pg_t         *pg;
    us_replog_rc_t   rc;

    pg = us_pg_begin(log, 1, len / US_PG_RATE);
    us_pg_u64(&pg->args, term);
    us_pg_arg(&pg->args, p, len);

    if (part) {
        us_pg_u32(&pg->args, part);
        us_pg_u64(&pg->args, pg->making);

        return us_pg_change(pg, US_PG_REBASE_PART, len);
    }

    pg->making = 0;
    rc = us_pg_change(pg, US_PG_REBASE_FIRST, len);
    pg->making = pg->verdict.x;

    return rc;
}


static us_replog_rc_t
us_pg_rebase(us_replog_t *log, uint64_t term, uint64_t first, uint64_t lsn,
    uint32_t parts)
{
    us_pg_t  *pg;

    pg = us_pg_begin(log, 1, 0);
    us_pg_u64(&pg->args, term);
    us_pg_u64(&pg->args, lsn);
    us_pg_u32(&pg->args, parts);
    us_pg_u64(&pg->args, pg->making);
    us_pg_u64(&pg->args, first);

    return us_pg_change(pg, US_PG_REBASE_END, 0);
}


static us_replog_rc_t
us_pg_trim(us_replog_t *log)
{
    us_pg_t         *pg;
    us_replog_rc_t   rc;

    pg = us_pg_begin(log, 1, 0);
    us_pg_u64(&pg->args, pg->trimmed);
    rc = us_pg_change(pg, US_PG_TRIM, 0);

    if (rc == US_REPLOG_REFUSED) {
        pg->trimmed = 0;
        return US_REPLOG_NONE;
    }

    if (rc == US_REPLOG_OK) {
        pg->trimmed = pg->verdict.x;
    }

    return rc;
}


static void
us_pg_other(us_replog_t *log)
{
    us_pg_t *pg = (us_pg_t *) log;

    if (pg->info.nhosts > 1) {
        us_pg_leave(pg);
    }
}


static void
us_pg_forget(us_replog_t *log)
{
    us_pg_drop((us_pg_t *) log);
}


const us_replog_ops_t  us_pg_ops = {
    .name = "postgres",
    .version = US_VERSION,
    .check = us_pg_check,
    .open = us_pg_open,
    .close = us_pg_close,
    .head = us_pg_head,
    .create = us_pg_create,
    .row = us_pg_row,
    .read = us_pg_read,
    .append = us_pg_append,
    .beat = us_pg_beat,
    .promote = us_pg_promote,
    .base = us_pg_base,
    .rebase_part = us_pg_rebase_part,
    .rebase = us_pg_rebase,
    .trim = us_pg_trim,
    .leave = us_pg_other,
    .drop = us_pg_forget
};
