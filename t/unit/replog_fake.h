
/*
 * A log of two servers, in one process: what PostgreSQL may do to a client, by
 * chance.  One is in charge; the other, or a third one, is its synchronous
 * standby.
 *
 *     before    the call is not sent                          AWAY
 *     lost      it is done, the answer is lost                UNKNOWN
 *     late      it is done some time later                    UNKNOWN
 *     hung      its row or beat is on one server only, where nobody sees it
 *               until the servers are connected again, or that one is restarted
 *     moved     the connection was lost, and is made anew, maybe to the other
 *               server, within a call
 *
 * A server that was replaced (failover) still answers reads and takes writes,
 * which hang, until it is made a copy of the new one.
 */


#ifndef _REPLOG_FAKE_H_INCLUDED_
#define _REPLOG_FAKE_H_INCLUDED_


#include "replog/us_replog.h"

#include <stdio.h>
#include <stdlib.h>


#define FAKE_ROWS   8192
#define FAKE_LATE   64


typedef struct {
    us_replog_row_t  row;
    uint64_t         acked;
    size_t           len;
    uint8_t         *p;
    char             holder[US_REPLOG_HOLDER];  /* of a TERM row */
    int              hung;
} fake_row_t;


typedef struct {
    fake_row_t       rows[FAKE_ROWS];
    unsigned         nrows;
    uint64_t         beat;
    uint64_t         acked;
    int              hung_beat;       /* holds the lock that others need */
    uint64_t         hung_acked;
    int              primary;         /* it takes writes */
} fake_server_t;


typedef struct {
    int              server;
    int              promotes;
    us_replog_row_t  prev;
    uint64_t         old;
    fake_row_t       row;
} fake_late_t;


typedef struct {
    fake_server_t    servers[2];
    int              current;
    int              linked;          /* the other one is its standby */
    int              third;           /* a server that is not here is */
    fake_late_t      late[FAKE_LATE];
    unsigned         nlate;
    uint64_t         seed;
    unsigned         faults;          /* of 1000 calls; 0: none */
    unsigned         calls;

    /* of the test: while a call is under way */
    void           (*meanwhile)(void *node);
} fake_t;


typedef struct {
    us_replog_t      log;
    fake_t          *fake;
    void            *node;
    int              server;
    uint64_t         beat;            /* as of the last change */
} fake_log_t;


static uint64_t
fake_random(fake_t *f)
{
    f->seed ^= f->seed << 13;
    f->seed ^= f->seed >> 7;
    f->seed ^= f->seed << 17;

    return f->seed;
}


static int
fake_chance(fake_t *f, unsigned of_1000)
{
    return fake_random(f) % 1000 < of_1000;
}


static void
fake_free_rows(fake_server_t *s)
{
    unsigned  i;

    for (i = 0; i < s->nrows; i++) {
        free(s->rows[i].p);
    }

    s->nrows = 0;
}


static void
fake_put(fake_server_t *s, const fake_row_t *row)
{
    fake_row_t  *to;

    if (s->nrows == FAKE_ROWS) {
        abort();
    }

    to = &s->rows[s->nrows++];
    *to = *row;
    to->p = malloc(row->len + 1);

    if (to->p == NULL) {
        abort();
    }

    if (row->len) {
        memcpy(to->p, row->p, row->len);
    }
}


static void
fake_copy(fake_server_t *to, const fake_server_t *from)
{
    unsigned  i;

    fake_free_rows(to);

    for (i = 0; i < from->nrows; i++) {
        fake_put(to, &from->rows[i]);
        to->rows[i].hung = 0;
    }

    to->beat = from->beat;
    to->acked = from->acked;
}


/* what hung is there now, on this server alone */

static void
fake_show(fake_server_t *s)
{
    unsigned  i;

    for (i = 0; i < s->nrows; i++) {
        s->rows[i].hung = 0;
    }

    if (s->hung_beat) {
        s->hung_beat = 0;
        s->beat++;
        s->acked = s->hung_acked > s->acked ? s->hung_acked : s->acked;
    }
}


/* the servers are connected: what hung is committed on both */

static void
fake_link(fake_t *f)
{
    fake_show(&f->servers[f->current]);
    fake_copy(&f->servers[!f->current], &f->servers[f->current]);
    f->servers[!f->current].primary = 0;
    f->servers[!f->current].hung_beat = 0;
    f->linked = 1;
    f->third = 0;
}


/* a third server is the standby of the one in charge; the other goes on */

static void
fake_third(fake_t *f)
{
    fake_show(&f->servers[f->current]);
    f->linked = 0;
    f->third = 1;
}


static int
fake_confirms(const fake_t *f, int server)
{
    return (f->linked || f->third) && server == f->current;
}


static void
fake_restart(fake_t *f, int server)
{
    fake_show(&f->servers[server]);

    if (f->linked && server == f->current) {
        fake_link(f);
    }
}


static void
fake_failover(fake_t *f)
{
    /* the third one has all that is confirmed */

    if (f->third) {
        fake_link(f);
    }

    f->linked = 0;
    f->current = !f->current;
    f->servers[f->current].primary = 1;
}


static fake_row_t *
fake_find(fake_server_t *s, uint64_t lsn, int hung)
{
    unsigned  i;

    for (i = 0; i < s->nrows; i++) {
        if (s->rows[i].row.lsn == lsn && (hung || !s->rows[i].hung)) {
            return &s->rows[i];
        }
    }

    return NULL;
}


static int
fake_has(fake_server_t *s, const us_replog_row_t *row)
{
    fake_row_t  *found;

    found = fake_find(s, row->lsn, 0);

    return found && memcmp(&found->row, row, sizeof(*row)) == 0;
}


static fake_row_t *
fake_last(fake_server_t *s)
{
    unsigned     i;
    fake_row_t  *last;

    last = NULL;

    for (i = 0; i < s->nrows; i++) {
        if (!s->rows[i].hung
            && (last == NULL || s->rows[i].row.next >= last->row.next))
        {
            last = &s->rows[i];
        }
    }

    return last;
}


/* a statement that the server executes: OK, REFUSED or UNKNOWN (hung) */

static us_replog_rc_t
fake_insert(fake_t *f, int server, const us_replog_row_t *prev,
    const fake_row_t *row, int promotes, uint64_t old)
{
    fake_row_t      copy, *last;
    fake_server_t  *s;

    s = &f->servers[server];

    if (!s->primary) {
        return US_REPLOG_AWAY;
    }

    if (fake_find(s, row->row.lsn, 1) && !fake_find(s, row->row.lsn, 0)) {
        return US_REPLOG_UNKNOWN;     /* it waits for the one that hangs */
    }

    if (!fake_has(s, prev) || fake_find(s, row->row.lsn, 0)) {
        return US_REPLOG_REFUSED;
    }

    last = fake_last(s);

    if (promotes && last->row.term != old) {
        return US_REPLOG_REFUSED;
    }

    if (promotes && s->hung_beat) {
        return US_REPLOG_UNKNOWN;
    }

    copy = *row;
    copy.hung = !fake_confirms(f, server);
    fake_put(s, &copy);

    if (copy.hung) {
        return US_REPLOG_UNKNOWN;
    }

    if (row->acked > s->acked) {
        s->acked = row->acked;
    }

    if (f->linked) {
        fake_put(&f->servers[!server], &copy);
        f->servers[!server].acked = s->acked;
    }

    return US_REPLOG_OK;
}


/* one late statement is executed */

static void
fake_late(fake_t *f)
{
    unsigned      i;
    fake_late_t  *l;

    if (f->nlate == 0) {
        return;
    }

    i = fake_random(f) % f->nlate;
    l = &f->late[i];

    (void) fake_insert(f, l->server, &l->prev, &l->row, l->promotes, l->old);

    free(l->row.p);
    *l = f->late[--f->nlate];
}


/* before a call: 0, or AWAY; the server is chosen anew after a failure */

static us_replog_rc_t
fake_begin(us_replog_t *log)
{
    int          i;
    fake_t      *f;
    fake_log_t  *l;

    l = (fake_log_t *) log;
    f = l->fake;

    f->calls++;
    f->meanwhile(l->node);

    if (fake_chance(f, f->faults)) {
        l->server = -1;
    }

    if (l->server == -1) {
        i = fake_random(f) & 1;
        l->server = f->servers[i].primary ? i : !i;
        log->session++;
    }

    if (fake_chance(f, f->faults) || !f->servers[l->server].primary) {
        l->server = -1;
        snprintf(log->error, sizeof(log->error), "away");
        return US_REPLOG_AWAY;
    }

    return US_REPLOG_OK;
}


/* after one: what its client hears */

static us_replog_rc_t
fake_end(us_replog_t *log, us_replog_rc_t rc)
{
    fake_t      *f;
    fake_log_t  *l;

    l = (fake_log_t *) log;
    f = l->fake;

    f->meanwhile(l->node);

    if (fake_chance(f, f->faults) && rc != US_REPLOG_AWAY) {
        rc = US_REPLOG_UNKNOWN;
    }

    if (rc == US_REPLOG_UNKNOWN) {
        l->server = -1;
    }

    snprintf(log->error, sizeof(log->error), "outcome %d", (int) rc);

    return rc;
}


static us_replog_rc_t
fake_change(us_replog_t *log, const us_replog_row_t *prev,
    const us_replog_row_t *row, const uint8_t *p, size_t len, uint64_t acked,
    int promotes, uint64_t old, const char *holder)
{
    fake_t          *f;
    fake_row_t       made;
    fake_log_t      *l;
    fake_late_t     *late;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    f = l->fake;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    l->beat = f->servers[l->server].beat;

    memset(&made, 0, sizeof(made));
    made.row = *row;
    made.acked = acked;
    made.len = len;
    made.p = (uint8_t *) p;

    if (holder) {
        snprintf(made.holder, sizeof(made.holder), "%s", holder);
    }

    if (fake_chance(f, f->faults) && f->nlate < FAKE_LATE) {
        late = &f->late[f->nlate++];
        late->server = l->server;
        late->promotes = promotes;
        late->prev = *prev;
        late->old = old;
        late->row = made;
        late->row.p = malloc(len + 1);

        if (late->row.p == NULL) {
            abort();
        }

        memcpy(late->row.p, p, len);

        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    return fake_end(log, fake_insert(f, l->server, prev, &made, promotes, old));
}


static us_replog_rc_t
fake_append(us_replog_t *log, const us_replog_row_t *prev,
    const us_replog_row_t *row, const uint8_t *p, size_t len, uint64_t acked)
{
    return fake_change(log, prev, row, p, len, acked, 0, 0, NULL);
}


static us_replog_rc_t
fake_promote(us_replog_t *log, const us_replog_row_t *prev, uint64_t old,
    const us_replog_row_t *row, const uint8_t *p, size_t len,
    const char *holder, const char *settings, uint64_t *beat)
{
    fake_log_t      *l;
    us_replog_rc_t   rc;

    (void) settings;

    l = (fake_log_t *) log;
    l->beat = 0;
    rc = fake_change(log, prev, row, p, len, 0, 1, old, holder);
    *beat = l->beat;

    return rc;
}


static us_replog_rc_t
fake_beat(us_replog_t *log, const us_replog_row_t *last, uint64_t acked)
{
    fake_t          *f;
    fake_log_t      *l;
    fake_server_t   *s;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    f = l->fake;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    s = &f->servers[l->server];

    if (!fake_has(s, last) || fake_last(s)->row.term != last->term) {
        return fake_end(log, US_REPLOG_REFUSED);
    }

    if (!fake_confirms(f, l->server)) {

        if (!s->hung_beat) {
            s->hung_beat = 1;
            s->hung_acked = acked;
        }

        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    s->beat++;
    s->acked = acked > s->acked ? acked : s->acked;

    if (f->linked) {
        f->servers[!l->server].beat = s->beat;
        f->servers[!l->server].acked = s->acked;
    }

    return fake_end(log, US_REPLOG_OK);
}


static us_replog_rc_t
fake_head(us_replog_t *log, us_replog_head_t *head)
{
    unsigned         i;
    fake_row_t      *last;
    fake_log_t      *l;
    fake_server_t   *s;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    memset(head, 0, sizeof(*head));
    s = &l->fake->servers[l->server];
    last = fake_last(s);

    head->term = last->row.term;
    head->beat = s->beat;
    head->acked = s->acked;
    head->last = last->row;

    for (i = 0; i < s->nrows; i++) {
        if (s->rows[i].row.term == head->term && s->rows[i].holder[0]) {
            memcpy(head->holder, s->rows[i].holder, sizeof(head->holder));
        }

        if (!s->rows[i].hung && s->rows[i].acked > head->acked) {
            head->acked = s->rows[i].acked;
        }
    }

    return US_REPLOG_OK;
}


static us_replog_rc_t
fake_row(us_replog_t *log, uint64_t lsn, us_replog_take_pt take, void *data)
{
    fake_log_t      *l;
    fake_row_t      *row;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    row = fake_find(&l->fake->servers[l->server], lsn, 0);

    if (row == NULL) {
        return US_REPLOG_NONE;
    }

    (void) take(data, &row->row, row->p, row->len);

    return US_REPLOG_OK;
}


static us_replog_rc_t
fake_read(us_replog_t *log, uint64_t lsn, size_t max, us_replog_take_pt take,
    void *data)
{
    unsigned         n;
    fake_log_t      *l;
    fake_row_t      *row;
    us_replog_rc_t   rc;

    (void) max;

    l = (fake_log_t *) log;
    rc = fake_begin(log);

    for (n = 0; rc == US_REPLOG_OK && n < 3; n++) {
        row = fake_find(&l->fake->servers[l->server], lsn, 0);

        if (row == NULL || take(data, &row->row, row->p, row->len) == -1) {
            break;
        }

        lsn = row->row.next;
    }

    return rc;
}


static us_replog_rc_t
fake_create(us_replog_t *log, const uint8_t uuid[16], const char *settings)
{
    (void) log;
    (void) uuid;
    (void) settings;

    return US_REPLOG_REFUSED;
}


static us_replog_rc_t
fake_base(us_replog_t *log, uint32_t part, us_replog_take_pt take, void *data)
{
    (void) log;
    (void) part;
    (void) take;
    (void) data;

    return US_REPLOG_NONE;
}


static const us_replog_ops_t  fake_ops = {
    .name = "fake",
    .head = fake_head,
    .create = fake_create,
    .row = fake_row,
    .read = fake_read,
    .append = fake_append,
    .beat = fake_beat,
    .promote = fake_promote,
    .base = fake_base,
};


static void
fake_init(fake_t *f, uint64_t seed, void (*meanwhile)(void *node))
{
    fake_row_t  base;

    memset(f, 0, sizeof(*f));
    memset(&base, 0, sizeof(base));
    base.row.lsn = US_REPLOG_BASE;

    f->seed = seed * 0x9e3779b97f4a7c15 + 1;
    f->meanwhile = meanwhile;
    f->servers[0].primary = 1;

    fake_put(&f->servers[0], &base);
    fake_link(f);
}


static void
fake_done(fake_t *f)
{
    while (f->nlate) {
        free(f->late[--f->nlate].row.p);
    }

    fake_free_rows(&f->servers[0]);
    fake_free_rows(&f->servers[1]);
}


#endif /* _REPLOG_FAKE_H_INCLUDED_ */
