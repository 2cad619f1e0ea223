
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


#include "us_pg_private.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>


#define US_PG_SHORT  4                /* bytes of a secret */


static int
us_pg_is_address(const char *s)
{
    struct in_addr   in;
    struct in6_addr  in6;

    return inet_pton(AF_INET, s, &in) == 1
           || inet_pton(AF_INET6, s, &in6) == 1;
}


static int
us_pg_host_check(const us_pg_host_t *host, char *err, size_t size)
{
    char  *end;
    long   n;

    if (host->hostaddr && !us_pg_is_address(host->hostaddr)) {
        (void) snprintf(err, size, "\"hostaddr\" of the connection string is "
                        "no address: \"%.64s\"", host->hostaddr);
        return -1;
    }

    if (host->host && host->hostaddr == NULL && host->host[0] != '/'
        && host->host[0] != '@' && !us_pg_is_address(host->host))
    {
        (void) snprintf(err, size, "\"host\" of the connection string is a "
                        "name: \"%.64s\"; it needs \"hostaddr\" as well, "
                        "because looking it up would block", host->host);
        return -1;
    }

    if (host->port) {
        n = strtol(host->port, &end, 10);

        if (*end || n < 1 || n > 65535) {
            (void) snprintf(err, size, "\"port\" of the connection string is "
                            "\"%.64s\": 1 to 65535 is allowed", host->port);
            return -1;
        }
    }

    return 0;
}


/* the parts between commas; an empty one is NULL.  -1: too many */

static int
us_pg_list(const char *text, char **list)
{
    int     n;
    size_t  len;

    memset(list, 0, US_PG_HOSTS * sizeof(char *));

    if (text == NULL) {
        return 0;
    }

    for (n = 0; n < US_PG_HOSTS; n++) {
        len = strcspn(text, ",");

        if (len) {
            list[n] = strndup(text, len);

            if (list[n] == NULL) {
                break;
            }
        }

        if (text[len] == '\0') {
            return n + 1;
        }

        text += len + 1;
    }

    while (n--) {
        free(list[n]);
        list[n] = NULL;
    }

    return -1;
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


int
us_pg_conninfo(us_pg_conninfo_t *info, const char *text, char *err,
    size_t size)
{
    int       i, nhost, naddr, nport, n;
    char     *why, *from, *to, *host[US_PG_HOSTS];
    char     *addr[US_PG_HOSTS], *port[US_PG_HOSTS];
    unsigned  k;

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

    nhost = us_pg_list(us_pg_option(info, "host"), host);
    naddr = us_pg_list(us_pg_option(info, "hostaddr"), addr);
    nport = us_pg_list(us_pg_option(info, "port"), port);

    n = nhost > naddr ? nhost : naddr;
    n = n ? n : 1;

    /* each list has its memory from here on */

    for (i = 0; i < US_PG_HOSTS; i++) {
        info->hosts[i].host = i < nhost ? host[i] : NULL;
        info->hosts[i].hostaddr = i < naddr ? addr[i] : NULL;
        info->hosts[i].port = i < nport ? port[i] : NULL;
    }

    info->nhosts = n;

    if (nhost < 0 || naddr < 0 || nport < 0) {
        (void) snprintf(err, size, "the connection string has more than %d "
                        "hosts, or there is no memory", US_PG_HOSTS);
        return -1;
    }

    if ((nhost && naddr && nhost != naddr) || (nport > 1 && nport != n)) {
        (void) snprintf(err, size, "the connection string has %d \"host\", "
                        "%d \"hostaddr\" and %d \"port\": it needs one of each "
                        "for each server, or one port for all", nhost, naddr,
                        nport);
        return -1;
    }

    for (i = 1; nport == 1 && i < n; i++) {
        info->hosts[i].port = port[0] ? strdup(port[0]) : NULL;
    }

    for (k = 0; k < info->nhosts; k++) {
        if (us_pg_host_check(&info->hosts[k], err, size) == -1) {
            return -1;
        }
    }

    return 0;
}


void
us_pg_conninfo_free(us_pg_conninfo_t *info)
{
    unsigned           i;
    PQconninfoOption  *o;

    for (o = info->options; o && o->keyword; o++) {
        if (o->val && strstr(o->keyword, "password")) {
            explicit_bzero(o->val, strlen(o->val));
        }
    }

    PQconninfoFree(info->options);
    info->options = NULL;

    for (i = 0; i < US_PG_HOSTS; i++) {
        free(info->hosts[i].host);
        free(info->hosts[i].hostaddr);
        free(info->hosts[i].port);
    }

    memset(info->hosts, 0, sizeof(info->hosts));
}


/* a short one may be a part of any word: it is hidden where it is a word */

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


/* replaces the passwords in a text by asterisks */

static void
us_pg_hide(const us_pg_conninfo_t *info, const char *password, char *text)
{
    us_pg_mask(us_pg_option(info, "password"), text);
    us_pg_mask(us_pg_option(info, "sslpassword"), text);
    us_pg_mask(password, text);
}


int64_t
us_pg_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


/* --- arguments, all binary ---------------------------------------------- */

static void
us_pg_arg(us_pg_args_t *args, const void *p, size_t len)
{
    args->values[args->n] = p;
    args->lengths[args->n] = (int) len;
    args->formats[args->n++] = 1;
}


void
us_pg_u64(us_pg_args_t *args, uint64_t n)
{
    uint64_t  *to = &args->numbers[args->n];

    *to = htobe64(n);
    us_pg_arg(args, to, 8);
}


void
us_pg_u32(us_pg_args_t *args, uint32_t n)
{
    uint64_t  *to = &args->numbers[args->n];

    n = htobe32(n);
    memcpy(to, &n, 4);
    us_pg_arg(args, to, 4);
}


void
us_pg_text(us_pg_args_t *args, const char *s)
{
    us_pg_arg(args, s, strlen(s));
}


void
us_pg_bytes(us_pg_args_t *args, const uint8_t *p, size_t len)
{
    us_pg_arg(args, len ? (const void *) p : "", len);
}


/* --- errors --------------------------------------------------------------- */

void
us_pg_error(us_pg_t *pg, const char *fmt, ...)
{
    char     *p;
    va_list   args;

    va_start(args, fmt);
    (void) vsnprintf(pg->log.error, sizeof(pg->log.error), fmt, args);
    va_end(args);

    us_pg_hide(&pg->info, pg->conn ? PQpass(pg->conn) : NULL, pg->log.error);

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
us_pg_lost(us_pg_t *pg)
{
    const char  *text;

    text = pg->conn ? PQerrorMessage(pg->conn) : "";
    us_pg_error(pg, "the connection was lost: %s",
                text[0] ? text : "no reason given");
    us_pg_drop(pg);
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


us_replog_rc_t
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


void
us_pg_drop(us_pg_t *pg)
{
    PQfinish(pg->conn);
    pg->conn = NULL;
}


void
us_pg_leave(us_pg_t *pg)
{
    us_pg_drop(pg);
    pg->host = (pg->host + 1) % pg->info.nhosts;
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


int
us_pg_send(us_pg_t *pg, us_pg_statement_t statement, us_pg_args_t *args,
    int binary)
{
    if (!PQsendQueryPrepared(pg->conn, us_pg_sql[statement].name, args->n,
                             args->values, args->lengths, args->formats,
                             binary))
    {
        us_pg_lost(pg);
        return -1;
    }

    return 0;
}


int
us_pg_sync(us_pg_t *pg)
{
    if (!PQpipelineSync(pg->conn)) {
        us_pg_lost(pg);
        return -1;
    }

    return 0;
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
            us_pg_lost(pg);
            return -1;
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
            us_pg_lost(pg);
            return -1;
        }
    }
}


int
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
            us_pg_lost(pg);
            return -1;
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
                us_pg_lost(pg);
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
