
/*
 * Statements are sent and their results awaited, without blocking for longer
 * than 50 ms.  The connection is in libpq's pipeline mode: each transaction of
 * statements ends with a sync, and the server answers each sync.
 */


#include "us_pg_private.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>


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

int
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
