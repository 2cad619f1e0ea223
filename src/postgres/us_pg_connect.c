
/*
 * A connection: made without blocking, host after host, then prepared and
 * checked by one transaction of statements.
 */


#include "us_pg_private.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


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


/* ms for a connection: libpq's own limit is not for PQconnectPoll() */

static int64_t
us_pg_limit(const us_pg_t *pg)
{
    long                     s;
    const PQconninfoOption  *o;

    for (o = pg->info.options; o->keyword; o++) {
        if (o->val && strcmp(o->keyword, "connect_timeout") == 0) {
            s = strtol(o->val, NULL, 10);

            if (s > 0 && s <= US_PG_CONNECT_MAX) {
                return s * 1000;
            }
        }
    }

    return US_PG_CONNECT;
}


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
    us_pg_sql_t     setup[] = { { "", US_PG_SETTINGS }, { "", US_PG_RIGHTS } };
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

    rc = 1;

    for (i = 0; rc && i < 2; i++) {
        rc = PQsendQueryParams(pg->conn, setup[i].text, 0, NULL, NULL, NULL,
                               NULL, 0);
    }

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
    short                      events;
    unsigned                   n;
    const char                *keys[64], *values[64];
    const us_pg_host_t        *host;
    const PQconninfoOption    *o;
    PostgresPollingStatusType  status;

    n = 0;
    host = &pg->info.hosts[pg->host];

    /*
     * What was sent and not acknowledged, or an idle connection that does not
     * answer, ends it.  A commit that waits for a standby is neither.
     */

    keys[n] = "keepalives_idle";
    values[n++] = "1";
    keys[n] = "keepalives_interval";
    values[n++] = "1";
    keys[n] = "tcp_user_timeout";
    values[n++] = US_PG_GONE;

    for (o = pg->info.options; o->keyword && n < 56; o++) {
        if (o->val && strcmp(o->keyword, "host") != 0
            && strcmp(o->keyword, "hostaddr") != 0
            && strcmp(o->keyword, "port") != 0)
        {
            keys[n] = o->keyword;
            values[n++] = o->val;
        }
    }

    /* the last of a keyword counts; an empty value is a default */

    keys[n] = "host";
    values[n++] = host->host;
    keys[n] = "hostaddr";
    values[n++] = host->hostaddr;
    keys[n] = "port";
    values[n++] = host->port;
    keys[n] = "gssencmode";
    values[n++] = "disable";
    keys[n] = "target_session_attrs";
    values[n++] = "read-write";
    keys[n] = "client_encoding";
    values[n++] = "UTF8";
    keys[n] = "fallback_application_name";
    values[n++] = "urlstore";
    keys[n] = NULL;
    values[n] = NULL;

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


us_replog_rc_t
us_pg_connect(us_pg_t *pg)
{
    int             bad;
    char            why[US_REPLOG_ERROR];
    int64_t         end, share, limit;
    unsigned        i;
    us_replog_rc_t  rc;

    if (pg->conn && us_pg_alive(pg)) {
        return US_REPLOG_OK;
    }

    us_pg_drop(pg);

    bad = 0;
    why[0] = '\0';
    end = pg->deadline;
    limit = us_pg_limit(pg);

    /* each host has its share of the time that is left, and a limit */

    for (i = 0; i < pg->info.nhosts; i++) {
        share = (end - us_pg_now()) / (pg->info.nhosts - i);
        pg->deadline = us_pg_now() + (share < limit ? share : limit);
        rc = us_pg_reach(pg);

        if (rc == US_REPLOG_OK) {
            pg->deadline = end;
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
