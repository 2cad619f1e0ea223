
/*
 * A log of two servers, in one process: what PostgreSQL may do to a client, by
 * chance.  One is in charge; the other, or a third one, is its synchronous
 * standby.
 *
 *     before    the call is not sent                          AWAY
 *     lost      it is done, the answer is lost                UNKNOWN
 *     late      it is done some time later                    UNKNOWN
 *     hung      its row, beat or base is on one server only, where nobody sees
 *               it until the servers are connected again, or that one is
 *               restarted
 *     alone     as hung, but everybody sees it: the server does not wait for a
 *               standby, as its names are empty, or its checkpointer has not
 *               read them so far                                UNKNOWN
 *     moved     the connection was lost, and is made anew, maybe to the other
 *               server, within a call
 *
 * A server that was replaced (failover) still answers reads and takes writes,
 * which hang, until it is made a copy of the new one.  A server that had less
 * than was confirmed may come to be in charge: fake_lose().
 */


#ifndef _REPLOG_FAKE_H_INCLUDED_
#define _REPLOG_FAKE_H_INCLUDED_


#include "replog/us_replog.h"

#include <stdio.h>
#include <stdlib.h>


#define FAKE_ROWS   8192
#define FAKE_LATE   64
#define FAKE_PARTS  512

#ifndef FAKE_SETTINGS
#define FAKE_SETTINGS  240
#endif


typedef struct {
    us_replog_row_t  row;
    uint64_t         acked;
    size_t           len;
    uint8_t         *p;
    char             holder[US_REPLOG_HOLDER];  /* of a TERM row */
    char             settings[FAKE_SETTINGS];
    int              hung;
} fake_row_t;


typedef struct {
    uint64_t         base;
    uint32_t         part;
    size_t           len;
    uint8_t         *p;
} fake_part_t;


typedef struct {
    fake_row_t       rows[FAKE_ROWS];
    unsigned         nrows;
    fake_part_t      parts[FAKE_PARTS];
    unsigned         nparts;
    uint64_t         base;            /* in force */
    uint64_t         based;           /* the LSN at which the log ended then */
    uint64_t         tries;
    uint64_t         beat;
    uint64_t         acked;
    int              hung_beat;       /* holds the lock that others need */
    uint64_t         hung_acked;
    uint64_t         hung_lsn;        /* of a new base, 0: none */
    uint64_t         hung_first;
    char             holder[US_REPLOG_HOLDER];  /* of a TERM row trimmed last */
    char             settings[FAKE_SETTINGS];
    uint64_t         holder_term;
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
    int              alone;           /* the one in charge waits for none */
    fake_late_t      late[FAKE_LATE];
    unsigned         nlate;
    uint64_t         seed;
    unsigned         faults;          /* of 1000 calls; 0: none */
    unsigned         calls;
    unsigned         era;             /* connections of an older one are gone */

    /* of the test: while a call is under way */
    void           (*meanwhile)(void *node);

    /* whether a node is connected to the log; NULL: all are */
    int            (*reaches)(void *node);
} fake_t;


typedef struct {
    us_replog_t      log;
    fake_t          *fake;
    void            *node;
    int              server;
    unsigned         era;
    uint64_t         beat;            /* as of the last change */
    uint64_t         making;
    uint64_t         reading;
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
fake_free_parts(fake_server_t *s)
{
    while (s->nparts) {
        free(s->parts[--s->nparts].p);
    }
}


/* replaces itself */

static void
fake_put_part(fake_server_t *s, uint64_t base, uint32_t part, const uint8_t *p,
    size_t len)
{
    unsigned      i;
    fake_part_t  *to;

    for (i = 0; i < s->nparts; i++) {
        if (s->parts[i].base == base && s->parts[i].part == part) {
            break;
        }
    }

    if (i == FAKE_PARTS) {
        abort();
    }

    to = &s->parts[i];

    if (i == s->nparts) {
        s->nparts++;

    } else {
        free(to->p);
    }

    to->base = base;
    to->part = part;
    to->len = len;
    to->p = malloc(len);

    if (to->p == NULL) {
        abort();
    }

    memcpy(to->p, p, len);
}


static void
fake_copy(fake_server_t *to, const fake_server_t *from)
{
    unsigned  i;

    fake_free_rows(to);
    fake_free_parts(to);

    for (i = 0; i < from->nparts; i++) {
        fake_put_part(to, from->parts[i].base, from->parts[i].part,
                      from->parts[i].p, from->parts[i].len);
    }

    to->base = from->base;
    to->based = from->based;
    to->tries = from->tries;
    to->holder_term = from->holder_term;
    memcpy(to->holder, from->holder, sizeof(to->holder));
    memcpy(to->settings, from->settings, sizeof(to->settings));

    for (i = 0; i < from->nrows; i++) {
        fake_put(to, &from->rows[i]);
        to->rows[i].hung = 0;
    }

    to->beat = from->beat;
    to->acked = from->acked;
}


/* the row with the byte before an LSN stays, and is the first one */

static void
fake_rebase_show(fake_server_t *s, uint64_t lsn, uint64_t from)
{
    unsigned          i, first;
    us_replog_row_t  *row, before;

    first = 0;
    from = from > s->rows[0].row.next ? from : s->rows[0].row.next + 1;

    for (i = 1; i < s->nrows; i++) {
        if (s->rows[i].row.lsn < from
            && (first == 0 || s->rows[i].row.lsn > s->rows[first].row.lsn))
        {
            first = i;
        }
    }

    row = &s->rows[0].row;
    before = *row;
    s->base = s->tries;
    s->based = s->rows[s->nrows - 1].row.next;

    if (first == 0) {
        row->next = lsn;
        return;
    }

    for (i = 0; i < s->nrows; i++) {
        if (s->rows[i].row.next == s->rows[first].row.lsn) {
            before = s->rows[i].row;
        }
    }

    row->next = s->rows[first].row.lsn;
    row->term = before.term;
    row->crc = before.crc;
}


/* what hung is there now, on this server alone */

static void
fake_show(fake_server_t *s)
{
    unsigned  i;

    if (s->hung_lsn) {
        fake_rebase_show(s, s->hung_lsn, s->hung_first);
        s->hung_lsn = 0;
    }

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
    f->servers[!f->current].hung_lsn = 0;
    f->linked = 1;
    f->third = 0;
    f->alone = 0;
}


/* a third server is the standby of the one in charge; the other goes on */

static void
fake_third(fake_t *f)
{
    fake_show(&f->servers[f->current]);
    f->linked = 0;
    f->third = 1;
    f->alone = 0;
}


static int
fake_confirms(const fake_t *f, int server)
{
    return (f->linked || f->third) && server == f->current;
}


/* the server in charge commits without a standby, or waits for it again */

static inline void
fake_alone(fake_t *f)
{
    if (f->alone) {
        fake_link(f);

    } else {

        /* the third one has all that is confirmed */

        if (f->third) {
            fake_link(f);
        }

        fake_show(&f->servers[f->current]);
        f->linked = 0;
        f->alone = 1;
    }
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
    f->alone = 0;
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

    if (s->hung_lsn
        || (fake_find(s, row->row.lsn, 1) && !fake_find(s, row->row.lsn, 0)))
    {
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
    copy.hung = !fake_confirms(f, server)
                && !(f->alone && server == f->current);
    fake_put(s, &copy);

    if (!fake_confirms(f, server)) {
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


/* what happens to the servers between two calls */

static void
fake_events(fake_t *f)
{
    if (fake_chance(f, 12)) {
        fake_late(f);
    }

    if (fake_chance(f, 3)) {

        if (!f->linked && !f->third && f->servers[!f->current].primary
            && fake_chance(f, 500))
        {
            fake_third(f);

        } else if (!f->linked) {
            fake_link(f);

        } else if (fake_chance(f, 300)) {
            f->linked = 0;

        } else if (fake_chance(f, 400)) {
            fake_restart(f, f->current);

        } else {
            fake_failover(f);
        }
    }

    /* a server that was cut off can be replaced while writes hang there */

    if (!f->linked && !f->third && !f->servers[!f->current].primary
        && fake_chance(f, 5))
    {
        fake_failover(f);
    }
}


/*
 * The servers are replaced by one that had the log up to an LSN only, and its
 * copy: no connection and no late statement lives through that.
 */

static inline void
fake_lose(fake_t *f, uint64_t end)
{
    unsigned        i;
    fake_server_t  *s;

    while (f->nlate) {
        free(f->late[--f->nlate].row.p);
    }

    s = &f->servers[f->current];
    s->hung_beat = 0;
    s->hung_lsn = 0;
    s->acked = s->acked < end ? s->acked : end;

    for (i = 1; i < s->nrows; i++) {
        if (s->rows[i].row.next > end) {
            free(s->rows[i].p);
            s->nrows--;
            memmove(&s->rows[i], &s->rows[i + 1],
                    (s->nrows - i) * sizeof(fake_row_t));
            i--;
        }
    }

    f->era++;
    fake_link(f);
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

    if (fake_chance(f, f->faults) || l->era != f->era) {
        l->era = f->era;
        l->server = -1;
    }

    if (f->reaches && !f->reaches(l->node)) {
        l->server = -1;
        snprintf(log->error, sizeof(log->error), "cut off");
        return US_REPLOG_AWAY;
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
    int promotes, uint64_t old, const char *holder, const char *settings)
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
        snprintf(made.settings, sizeof(made.settings), "%s", settings);
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
    return fake_change(log, prev, row, p, len, acked, 0, 0, NULL,
                       NULL);
}


static us_replog_rc_t
fake_promote(us_replog_t *log, const us_replog_row_t *prev, uint64_t old,
    const us_replog_row_t *row, const uint8_t *p, size_t len,
    const char *holder, const char *settings, uint64_t *beat)
{
    fake_log_t      *l;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    l->beat = 0;
    rc = fake_change(log, prev, row, p, len, 0, 1, old, holder, settings);
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

    if (s->hung_lsn) {
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    if (!fake_has(s, last) || fake_last(s)->row.term != last->term) {
        return fake_end(log, US_REPLOG_REFUSED);
    }

    if (f->alone && l->server == f->current) {
        s->beat++;
        return fake_end(log, US_REPLOG_UNKNOWN);
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
    head->base = s->rows[0].row.next;

    if (s->holder_term == head->term) {
        memcpy(head->holder, s->holder, sizeof(head->holder));
        memcpy(head->settings, s->settings, sizeof(s->settings));
    }

    for (i = 0; i < s->nrows; i++) {
        if (s->rows[i].row.term == head->term && s->rows[i].settings[0]) {
            memcpy(head->holder, s->rows[i].holder, sizeof(head->holder));
            memcpy(head->settings, s->rows[i].settings,
                   sizeof(s->rows[i].settings));
        }

        if (!s->rows[i].hung && s->rows[i].acked > head->acked) {
            head->acked = s->rows[i].acked;
        }
    }

    return US_REPLOG_OK;
}


/* a copy of it, as the log may change while it is taken */

static int
fake_take(us_replog_take_pt take, void *data, const us_replog_row_t *row,
    const uint8_t *p, size_t len)
{
    int               rc;
    uint8_t          *bytes;
    us_replog_row_t   copy;

    bytes = malloc(len + 1);

    if (bytes == NULL) {
        abort();
    }

    if (len) {
        memcpy(bytes, p, len);
    }

    copy = *row;
    rc = take(data, &copy, bytes, len);
    free(bytes);

    return rc;
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

    (void) fake_take(take, data, &row->row, row->p, row->len);

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

    if (rc == US_REPLOG_OK
        && fake_find(&l->fake->servers[l->server], lsn, 0) == NULL)
    {
        return US_REPLOG_NONE;
    }

    for (n = 0; rc == US_REPLOG_OK && n < 3; n++) {
        row = fake_find(&l->fake->servers[l->server], lsn, 0);

        if (row == NULL) {
            break;
        }

        lsn = row->row.next;

        if (fake_take(take, data, &row->row, row->p, row->len) == -1) {
            break;
        }
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
    unsigned          i;
    fake_log_t       *l;
    fake_server_t    *s;
    us_replog_rc_t    rc;
    us_replog_row_t   row;

    l = (fake_log_t *) log;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    s = &l->fake->servers[l->server];

    if (part == 0) {
        l->reading = s->base;

    } else if (l->reading != s->base) {
        return US_REPLOG_REFUSED;
    }

    memset(&row, 0, sizeof(row));
    row.lsn = US_REPLOG_BASE;

    for (i = 0; i < s->nparts; i++) {
        if (s->parts[i].base == s->base && s->parts[i].part == part) {
            (void) fake_take(take, data, &row, s->parts[i].p,
                             s->parts[i].len);
            return US_REPLOG_OK;
        }
    }

    return US_REPLOG_NONE;
}


/*
 * A part is of no effect, so that one which hangs is there at once, on its
 * server alone.
 */

static us_replog_rc_t
fake_rebase_part(us_replog_t *log, uint64_t term, uint32_t part,
    const uint8_t *p, size_t len)
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

    if (s->hung_beat || s->hung_lsn) {
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    if (fake_last(s)->row.term != term
        || (part && (s->tries != l->making || s->base == s->tries)))
    {
        return fake_end(log, US_REPLOG_REFUSED);
    }

    if (part == 0) {
        l->making = ++s->tries;
    }

    fake_put_part(s, s->tries, part, p, len);

    if (!fake_confirms(f, l->server)) {
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    if (f->linked) {
        fake_put_part(&f->servers[!l->server], s->tries, part, p, len);
        f->servers[!l->server].tries = s->tries;
    }

    return fake_end(log, US_REPLOG_OK);
}


static us_replog_rc_t
fake_rebase(us_replog_t *log, uint64_t term, uint64_t first, uint64_t lsn,
    uint32_t parts)
{
    fake_t          *f;
    unsigned         i, n;
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

    if (s->hung_beat || s->hung_lsn) {
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    for (i = 0, n = 0; i < s->nparts; i++) {
        n += s->parts[i].base == s->tries;
    }

    if (fake_last(s)->row.term != term || s->tries != l->making
        || s->base == s->tries || n != parts || lsn <= s->rows[0].row.next
        || fake_last(s)->row.next < lsn)
    {
        return fake_end(log, US_REPLOG_REFUSED);
    }

    if (!fake_confirms(f, l->server)) {
        s->hung_lsn = lsn;
        s->hung_first = first;
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    fake_rebase_show(s, lsn, first);

    if (f->linked) {
        fake_rebase_show(&f->servers[!l->server], lsn, first);
    }

    return fake_end(log, US_REPLOG_OK);
}


/* a few at once, from the lowest LSN on */

static unsigned
fake_trim_server(fake_server_t *s)
{
    unsigned  i, n, low;

    for (n = 0; n < 3; n++) {

        for (i = 1, low = 0; i < s->nrows; i++) {
            if (s->rows[i].row.lsn < s->rows[0].row.next
                && (low == 0 || s->rows[i].row.lsn < s->rows[low].row.lsn))
            {
                low = i;
            }
        }

        if (low == 0) {
            break;
        }

        if (s->rows[low].settings[0]) {
            memcpy(s->holder, s->rows[low].holder, sizeof(s->holder));
            memcpy(s->settings, s->rows[low].settings, sizeof(s->settings));
            s->holder_term = s->rows[low].row.term;
        }

        free(s->rows[low].p);
        s->nrows--;
        memmove(&s->rows[low], &s->rows[low + 1],
                (s->nrows - low) * sizeof(fake_row_t));
    }

    for (i = 0; i < s->nparts; i++) {
        if (s->parts[i].base != s->base && s->parts[i].base != s->tries) {
            free(s->parts[i].p);
            s->parts[i--] = s->parts[--s->nparts];
            n++;
        }
    }

    return n;
}


static us_replog_rc_t
fake_trim(us_replog_t *log)
{
    fake_t          *f;
    fake_log_t      *l;
    us_replog_rc_t   rc;

    l = (fake_log_t *) log;
    f = l->fake;
    rc = fake_begin(log);

    if (rc != US_REPLOG_OK) {
        return rc;
    }

    if (!fake_confirms(f, l->server)) {
        return fake_end(log, US_REPLOG_UNKNOWN);
    }

    rc = fake_trim_server(&f->servers[l->server]) ? US_REPLOG_OK
                                                  : US_REPLOG_NONE;

    if (f->linked) {
        (void) fake_trim_server(&f->servers[!l->server]);
    }

    return fake_end(log, rc);
}


static void
fake_drop(us_replog_t *log)
{
    ((fake_log_t *) log)->server = -1;
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
    .rebase_part = fake_rebase_part,
    .rebase = fake_rebase,
    .trim = fake_trim,
    .drop = fake_drop
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
    fake_free_parts(&f->servers[0]);
    fake_free_parts(&f->servers[1]);
}


#endif /* _REPLOG_FAKE_H_INCLUDED_ */
