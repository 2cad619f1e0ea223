
#include "us_pg_private.h"

#include "../us_version.h"

#include <endian.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>


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


/* what the server has reported of a change, and then of its standbys */

typedef struct {
    int                 changed;
    uint64_t            x;
    uint64_t            lsn;          /* not before the end of the commit */
    int                 standbys;     /* there are synchronous ones */
    int                 flushed;      /* and one of them has all up to lsn */
    char                names[128];
} us_pg_verdict_t;


static int us_pg_check(const char *conninfo, char *err, size_t size);
static us_replog_t *us_pg_open(const char *conninfo, uint32_t shard,
    int single, const us_replog_env_t *env);
static void us_pg_close(us_replog_t *log);

static us_replog_rc_t us_pg_head(us_replog_t *log, us_replog_head_t *head);
static us_replog_rc_t us_pg_row(us_replog_t *log, uint64_t lsn,
    us_replog_take_pt take, void *data);
static us_replog_rc_t us_pg_read(us_replog_t *log, uint64_t lsn, size_t max,
    us_replog_take_pt take, void *data);
static us_replog_rc_t us_pg_base(us_replog_t *log, uint32_t part,
    us_replog_take_pt take, void *data);

static us_replog_rc_t us_pg_create(us_replog_t *log, const uint8_t uuid[16],
    const char *settings);
static us_replog_rc_t us_pg_append(us_replog_t *log,
    const us_replog_row_t *prev, const us_replog_row_t *row, const uint8_t *p,
    size_t len, uint64_t acked);
static us_replog_rc_t us_pg_beat(us_replog_t *log, const us_replog_row_t *last,
    uint64_t acked);
static us_replog_rc_t us_pg_promote(us_replog_t *log,
    const us_replog_row_t *prev, uint64_t old, const us_replog_row_t *row,
    const uint8_t *p, size_t len, const char *holder, const char *settings,
    uint64_t *beat);
static us_replog_rc_t us_pg_rebase_part(us_replog_t *log, uint64_t term,
    uint32_t part, const uint8_t *p, size_t len);
static us_replog_rc_t us_pg_rebase(us_replog_t *log, uint64_t term,
    uint64_t first, uint64_t lsn, uint32_t parts);
static us_replog_rc_t us_pg_trim(us_replog_t *log);
static void us_pg_other(us_replog_t *log);


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
    .leave = us_pg_other
};


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
us_pg_begin(us_replog_t *log, us_pg_args_t *args, int change, uint64_t more)
{
    us_pg_t  *pg = (us_pg_t *) log;

    pg->asked = us_pg_now();
    pg->timeout = change ? log->timeout : log->look;
    pg->deadline = pg->asked + pg->timeout + (int64_t) more;
    pg->log.error[0] = '\0';

    args->n = 0;
    us_pg_u32(args, pg->shard);

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
us_pg_query(us_pg_t *pg, us_pg_statement_t statement, us_pg_args_t *args,
    us_pg_result_pt result, us_pg_reader_t *reader)
{
    us_replog_rc_t  rc;

    rc = us_pg_connect(pg);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    if (us_pg_send(pg, statement, args, 1) == -1
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
    us_pg_args_t     args;
    us_pg_reader_t   reader = { .head = head };

    memset(head, 0, sizeof(us_replog_head_t));
    pg = us_pg_begin(log, &args, 0, 0);

    return us_pg_query(pg, US_PG_HEAD, &args, us_pg_head_result, &reader);
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
    us_pg_args_t     args;
    us_pg_reader_t   reader = { .take = take, .data = data };

    pg = us_pg_begin(log, &args, 0, 0);
    us_pg_u64(&args, lsn);

    return us_pg_query(pg, US_PG_ROW, &args, us_pg_row_result, &reader);
}


static us_replog_rc_t
us_pg_read(us_replog_t *log, uint64_t lsn, size_t max, us_replog_take_pt take,
    void *data)
{
    us_pg_t         *pg;
    us_pg_args_t     args;
    us_pg_reader_t   reader = { .take = take, .data = data };

    pg = us_pg_begin(log, &args, 0, 0);

    if (lsn > INT64_MAX - max) {
        return US_REPLOG_NONE;
    }

    us_pg_u64(&args, lsn);
    us_pg_u64(&args, lsn + (max ? max : 1));

    return us_pg_query(pg, US_PG_READ, &args, us_pg_row_result, &reader);
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
    us_pg_args_t     args;
    us_replog_rc_t   rc;
    us_pg_reader_t   reader = { .take = take, .data = data, .part = part };

    pg = us_pg_begin(log, &args, 0, 0);

    if (part) {
        us_pg_u32(&args, part);
        us_pg_u64(&args, pg->reading);
    }

    rc = us_pg_query(pg, part ? US_PG_BASE_PART : US_PG_BASE, &args,
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
    (void) data;

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

    (void) pg;

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
us_pg_change(us_pg_t *pg, us_pg_statement_t statement, us_pg_args_t *args,
    size_t len, us_pg_verdict_t *v)
{
    int64_t         end;
    us_pg_args_t    lock;
    us_replog_rc_t  rc;

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
        || us_pg_send(pg, statement, args, 0) == -1
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
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, 0);
    us_pg_bytes(&args, uuid, 16);
    us_pg_text(&args, settings);

    return us_pg_change(pg, US_PG_CREATE, &args, 0, &v);
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

    us_pg_error(pg, "a row of LSN %llu to %llu does not follow one that ends "
                "at %llu", (unsigned long long) row->lsn,
                (unsigned long long) row->next,
                (unsigned long long) prev->next);

    return 0;
}


static us_replog_rc_t
us_pg_append(us_replog_t *log, const us_replog_row_t *prev,
    const us_replog_row_t *row, const uint8_t *p, size_t len, uint64_t acked)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, len / US_PG_RATE);

    if (!us_pg_follows(pg, prev, row, len) || row->term != prev->term) {
        return US_REPLOG_REFUSED;
    }

    us_pg_previous(&args, prev);
    us_pg_u64(&args, row->next);
    us_pg_u64(&args, row->crc);
    us_pg_bytes(&args, p, len);
    us_pg_u64(&args, acked);

    return us_pg_change(pg, US_PG_APPEND, &args, len, &v);
}


static us_replog_rc_t
us_pg_beat(us_replog_t *log, const us_replog_row_t *last, uint64_t acked)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, 0);
    us_pg_previous(&args, last);
    us_pg_u64(&args, acked);

    return us_pg_change(pg, US_PG_BEAT, &args, 0, &v);
}


static us_replog_rc_t
us_pg_promote(us_replog_t *log, const us_replog_row_t *prev, uint64_t old,
    const us_replog_row_t *row, const uint8_t *p, size_t len,
    const char *holder, const char *settings, uint64_t *beat)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_replog_rc_t    rc;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, len / US_PG_RATE);

    if (!us_pg_follows(pg, prev, row, len)) {
        return US_REPLOG_REFUSED;
    }

    us_pg_previous(&args, prev);
    us_pg_u64(&args, row->next);
    us_pg_u64(&args, row->crc);
    us_pg_bytes(&args, p, len);
    us_pg_u64(&args, old);
    us_pg_u64(&args, row->term);
    us_pg_text(&args, holder);
    us_pg_text(&args, settings);

    rc = us_pg_change(pg, US_PG_PROMOTE, &args, len, &v);

    *beat = v.x;

    return rc;
}


static us_replog_rc_t
us_pg_rebase_part(us_replog_t *log, uint64_t term, uint32_t part,
    const uint8_t *p, size_t len)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_replog_rc_t    rc;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, len / US_PG_RATE);
    us_pg_u64(&args, term);
    us_pg_bytes(&args, p, len);

    if (part) {
        us_pg_u32(&args, part);
        us_pg_u64(&args, pg->making);

        return us_pg_change(pg, US_PG_REBASE_PART, &args, len, &v);
    }

    pg->making = 0;
    rc = us_pg_change(pg, US_PG_REBASE_FIRST, &args, len, &v);
    pg->making = v.x;

    return rc;
}


static us_replog_rc_t
us_pg_rebase(us_replog_t *log, uint64_t term, uint64_t first, uint64_t lsn,
    uint32_t parts)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, 0);
    us_pg_u64(&args, term);
    us_pg_u64(&args, lsn);
    us_pg_u32(&args, parts);
    us_pg_u64(&args, pg->making);
    us_pg_u64(&args, first);

    return us_pg_change(pg, US_PG_REBASE_END, &args, 0, &v);
}


static us_replog_rc_t
us_pg_trim(us_replog_t *log)
{
    us_pg_t          *pg;
    us_pg_args_t      args;
    us_replog_rc_t    rc;
    us_pg_verdict_t   v;

    pg = us_pg_begin(log, &args, 1, 0);
    us_pg_u64(&args, pg->trimmed);
    rc = us_pg_change(pg, US_PG_TRIM, &args, 0, &v);

    if (rc == US_REPLOG_REFUSED) {
        pg->trimmed = 0;
        return US_REPLOG_NONE;
    }

    if (rc == US_REPLOG_OK) {
        pg->trimmed = v.x;
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
