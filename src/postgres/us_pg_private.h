
/*
 * What the files of src/postgres share.
 */


#ifndef _US_PG_PRIVATE_H_INCLUDED_
#define _US_PG_PRIVATE_H_INCLUDED_


#include "us_pg.h"

#include <libpq-fe.h>


#define US_PG_HOSTS   16
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


/* a server of the connection string; NULL: libpq's default */

typedef struct {
    char              *host;
    char              *hostaddr;
    char              *port;
} us_pg_host_t;


typedef struct {
    PQconninfoOption  *options;
    us_pg_host_t       hosts[US_PG_HOSTS];
    unsigned           nhosts;
} us_pg_conninfo_t;


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
    char               state[6];      /* SQLSTATE of the statement, or "" */

    uint64_t           making;        /* number of the base that is made */
    uint64_t           reading;       /* of the one that is read */
    uint64_t           trimmed;       /* LSN below which no row is any more */
} us_pg_t;


/* arguments of a statement; they point into the caller's memory, but numbers */

typedef struct {
    int                n;
    const char        *values[US_PG_ARGS];
    int                lengths[US_PG_ARGS];
    int                formats[US_PG_ARGS];
    uint64_t           numbers[US_PG_ARGS];
} us_pg_args_t;


/* a result with rows, in the order of the statements; -1: no more, please */

typedef int (*us_pg_result_pt)(us_pg_t *pg, const PGresult *res, void *data);


extern const us_pg_sql_t  us_pg_sql[US_PG_STATEMENTS];


/*
 * The connection string: what it says, or why it is not one.  err has no value
 * of it.  us_pg_conninfo_free() also overwrites passwords.
 */
int us_pg_conninfo(us_pg_conninfo_t *info, const char *text, char *err,
    size_t size);
void us_pg_conninfo_free(us_pg_conninfo_t *info);


/*
 * A connection that was checked, there already or made now; OK, AWAY, BAD.
 * The call's deadline is set.
 */
us_replog_rc_t us_pg_connect(us_pg_t *pg);

/* closes it, in whatever state it is */
void us_pg_drop(us_pg_t *pg);

/* and the next one is tried with the next host first */
void us_pg_leave(us_pg_t *pg);


int64_t us_pg_now(void);

void us_pg_u64(us_pg_args_t *args, uint64_t n);
void us_pg_u32(us_pg_args_t *args, uint32_t n);
void us_pg_text(us_pg_args_t *args, const char *s);
void us_pg_bytes(us_pg_args_t *args, const uint8_t *p, size_t len);

/* for people: passwords and control characters are removed */
__attribute__((format(printf, 2, 3)))
void us_pg_error(us_pg_t *pg, const char *fmt, ...);

/* sends a statement; results have numbers as 8 bytes if binary.  -1: lost */
int us_pg_send(us_pg_t *pg, us_pg_statement_t statement, us_pg_args_t *args,
    int binary);

/* ends a transaction of statements.  -1: lost */
int us_pg_sync(us_pg_t *pg);

/*
 * Takes the results of so many transactions.  0: the server has answered all,
 * state has the SQLSTATE of the first error, and error its text.  -1: the
 * connection is lost, or was closed because of the deadline.
 */
int us_pg_results(us_pg_t *pg, unsigned syncs, us_pg_result_pt take,
    void *data);

/* what an error of a statement means, when all was undone */
us_replog_rc_t us_pg_undone(us_pg_t *pg);


#endif /* _US_PG_PRIVATE_H_INCLUDED_ */
