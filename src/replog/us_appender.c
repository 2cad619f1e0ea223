
/* See us_appender.h. */


#include "us_appender.h"
#include "../us_atomic.h"
#include "../journal/us_crc32c.h"

#include <inttypes.h>
#include <stdlib.h>


typedef struct {
    us_appender_t           *p;
    const us_replog_ends_t  *ends;
    us_replog_row_t          row;
    uint64_t                 ids;     /* that it gives */
    int                      ours;    /* term and bytes */
    int                      follows; /* what is appended: by its crc */
} us_appender_back_t;


/*
 * A reader that sees a word of the call after the next one sees `at` turned as
 * well: the words are released, and acquired.
 */

static void
us_replog_set_ends(us_replog_place_t *place, const us_replog_ends_t *ends)
{
    size_t           i;
    uint64_t         at, *to;
    const uint64_t  *from;

    at = us_relaxed(&place->at) + 1;

    from = (const uint64_t *) ends;
    to = (uint64_t *) &place->ends[at % 2];

    for (i = 0; i < sizeof(*ends) / sizeof(uint64_t); i++) {
        us_release(&to[i], from[i]);
    }

    us_release(&place->at, at);
}


void
us_replog_place_begin(us_replog_place_t *place, const us_replog_row_t *row,
    uint64_t ids, uint64_t sent, uint64_t lease)
{
    us_replog_ends_t  ends;

    ends.last = *row;
    ends.sure = *row;
    ends.last_ids = ids;
    ends.sure_ids = ids;

    us_replog_set_ends(place, &ends);
    us_release(&place->lease, lease);
    us_release(&place->sent, sent);
}


void
us_replog_place_end(us_replog_place_t *place)
{
    us_release(&place->sent, 0);
}


void
us_replog_ends(const us_replog_place_t *place, us_replog_ends_t *ends)
{
    size_t           i;
    uint64_t         at, *to;
    const uint64_t  *from;

    to = (uint64_t *) ends;

    do {
        at = us_acquire(&place->at);
        from = (const uint64_t *) &place->ends[at % 2];

        for (i = 0; i < sizeof(*ends) / sizeof(uint64_t); i++) {
            to[i] = us_acquire(&from[i]);
        }

    } while (us_relaxed(&place->at) != at);
}


int
us_replog_lease(const us_replog_place_t *place, uint64_t now)
{
    return us_replog_recent(place, now, us_acquire(&place->lease));
}


int
us_replog_recent(const us_replog_place_t *place, uint64_t now, uint64_t ms)
{
    uint64_t  sent;

    sent = us_acquire(&place->sent);

    return sent && now < sent + ms;
}


/* the last confirmed row was removed by a later term, or it is lost */

static us_appender_rc_t
us_appender_gone(us_appender_t *p, const us_replog_row_t *sure)
{
    uint64_t          session;
    us_replog_rc_t    rc;
    us_replog_head_t  head;

    session = p->log->session;
    rc = p->log->ops->head(p->log, &head);

    if (rc != US_REPLOG_OK && rc != US_REPLOG_NONE) {
        return us_replog_fail(p->error, US_APPENDER_AGAIN, "%s",
                              p->log->error);
    }

    if (p->log->session != session) {
        return us_replog_fail(p->error, US_APPENDER_AGAIN, "a new connection "
                              "was made while the log was read");
    }

    if (rc == US_REPLOG_OK && head.term > sure->term
        && head.base >= sure->next
        && p->follows(p->data, &head, sure) != 0)
    {
        return us_replog_fail(p->error, US_APPENDER_DEPOSED, "another node has "
                              "begun term %" PRIu64 ", and a base that begins "
                              "at LSN %" PRIu64, head.term, head.base);
    }

    return us_replog_fail(p->error, US_APPENDER_LOST, "the log has lost the "
                          "row of LSN %" PRId64 " to %" PRIu64 ", which was "
                          "confirmed, or this server of it was replaced",
                          (int64_t) sure->lsn, sure->next);
}


/* no row follows: known, if `last` is there; else `sure` is the last one */

static us_appender_rc_t
us_appender_no_next(us_appender_t *p, us_replog_ends_t *ends)
{
    us_replog_rc_t   rc;
    us_replog_row_t  row;

    rc = p->log->ops->row(p->log, ends->last.lsn, us_replog_take_row, &row);

    if (rc == US_REPLOG_OK && memcmp(&row, &ends->last, sizeof(row)) == 0) {
        p->known = 1;
        return US_APPENDER_OK;
    }

    if (rc != US_REPLOG_OK && rc != US_REPLOG_NONE) {
        return us_replog_fail(p->error, US_APPENDER_AGAIN, "%s",
                              p->log->error);
    }

    if (ends->last.lsn == ends->sure.lsn) {
        return us_appender_gone(p, &ends->sure);
    }

    ends->last = ends->sure;
    ends->last_ids = ends->sure_ids;
    us_replog_set_ends(p->place, ends);

    return US_APPENDER_OK;
}


/* len bytes of the pieces, from skip on, which are there: into buf */

/* whether we have published these bytes, after the first `skip` */

static int
us_appender_published(const us_appender_t *p, size_t skip, const uint8_t *bytes,
    size_t len)
{
    size_t    n;
    unsigned  i;

    for (i = 0; i < 2 && len; i++) {

        if (skip >= p->pieces[i].len) {
            skip -= p->pieces[i].len;
            continue;
        }

        n = p->pieces[i].len - skip;
        n = n < len ? n : len;

        if (memcmp(p->pieces[i].data + skip, bytes, n) != 0) {
            return 0;
        }

        bytes += n;
        len -= n;
        skip = 0;
    }

    return len == 0;
}


/* a row that follows ends->last: whether it has bytes that we published */

static int
us_appender_take(void *data, const us_replog_row_t *row, const uint8_t *bytes,
    size_t len)
{
    us_appender_back_t *back = data;

    uint64_t                 skip;
    us_appender_t           *p;
    const us_replog_ends_t  *ends;

    p = back->p;
    ends = back->ends;
    back->row = *row;

    skip = ends->last.next - ends->sure.next;

    back->follows = row->next == row->lsn + len && row->lsn == ends->last.next
                    && row->crc == us_crc32c(ends->last.crc, bytes, len);

    if (row->term == ends->last.term && back->follows
        && us_appender_published(p, skip, bytes, len))
    {
        back->ours = us_block_ids(bytes, len, p->ops, &back->ids) == 0;
    }

    return 0;
}


/* reads on until no row follows ends->last, and that is there */

static us_appender_rc_t
us_appender_learn(us_appender_t *p, us_replog_ends_t *ends)
{
    us_replog_rc_t      rc;
    us_appender_rc_t    none;
    us_appender_back_t  back;

    back.p = p;
    back.ends = ends;

    for ( ;; ) {
        back.ours = 0;

        rc = p->log->ops->row(p->log, ends->last.next, us_appender_take, &back);

        switch (rc) {

        case US_REPLOG_OK:

            if (back.row.term > ends->last.term && !back.follows) {
                none = us_appender_no_next(p, ends);

                if (none != US_APPENDER_OK) {
                    return none;
                }

                if (!p->known) {
                    break;
                }

                p->known = 0;

            } else if (back.row.term > ends->last.term) {
                return us_replog_fail(p->error, US_APPENDER_DEPOSED, "another "
                                      "node has begun term %" PRIu64 " at LSN "
                                      "%" PRIu64, back.row.term,
                                      back.row.lsn);
            }

            if (!back.ours) {
                return us_replog_fail(p->error, US_APPENDER_LOST, "the log has "
                                      "another row of term %" PRIu64 " at LSN "
                                      "%" PRIu64, back.row.term,
                                      back.row.lsn);
            }

            ends->last = back.row;
            ends->last_ids += back.ids;
            us_replog_set_ends(p->place, ends);
            break;

        case US_REPLOG_NONE:
            none = us_appender_no_next(p, ends);

            if (none != US_APPENDER_OK) {
                return none;
            }

            if (p->known) {
                return US_APPENDER_OK;
            }

            break;

        default:
            return us_replog_fail(p->error, US_APPENDER_AGAIN, "%s",
                                  p->log->error);
        }
    }
}


/* what a commit has come to; row: what it has appended, with ids; or NULL */

static us_appender_rc_t
us_appender_done(us_appender_t *p, us_replog_rc_t rc, us_replog_ends_t *ends,
    const us_replog_row_t *row, uint64_t ids, uint64_t sent)
{
    uint64_t          now, lease;
    us_appender_rc_t  learnt;

    if (rc != US_REPLOG_OK) {
        learnt = us_replog_fail(p->error, US_APPENDER_AGAIN, "%s",
                                p->log->error);

        /* nothing was sent: what is known stays known */

        p->known = (rc == US_REPLOG_AWAY);

        if (rc == US_REPLOG_REFUSED) {
            learnt = us_appender_learn(p, ends);
            learnt = learnt == US_APPENDER_OK ? US_APPENDER_AGAIN : learnt;
        }

        return learnt;
    }

    if (row) {
        ends->last = *row;
        ends->last_ids += ids;
    }

    /*
     * Another server may have lost the term of a node that took over while this
     * one heard nothing: its lease passes first.  In each session it counts
     * anew.
     */

    now = p->now(p->data);
    lease = us_relaxed(&p->place->lease);

    if (p->session != p->log->session) {
        p->session = p->log->session;
        p->since = us_replog_lease(p->place, now) ? 0 : now;
    }

    if (p->since && now - p->since <= lease + lease / US_REPLOG_DRIFT) {
        us_replog_set_ends(p->place, ends);
        return us_replog_fail(p->error, US_APPENDER_WAITS, "it was away for "
                              "longer than a lease: another one passes");
    }

    ends->sure = ends->last;
    ends->sure_ids = ends->last_ids;

    us_replog_set_ends(p->place, ends);
    us_release(&p->place->sent, sent);

    return US_APPENDER_OK;
}


static us_appender_rc_t
us_appender_next(us_appender_t *p)
{
    size_t            len;
    ssize_t           n;
    uint64_t          sent, skip, ids;
    us_replog_rc_t    rc;
    us_replog_row_t   row;
    us_appender_rc_t  learnt;
    us_replog_ends_t  ends;

    us_replog_ends(p->place, &ends);

    if (!p->known) {
        learnt = us_appender_learn(p, &ends);

        if (learnt != US_APPENDER_OK) {
            return learnt;
        }
    }

    /* the bytes of the next row into buf */

    skip = ends.last.next - ends.sure.next;
    len = us_pieces_group(p->pieces, skip, US_REPLOG_BLOCK, p->ops);

    if (p->cut > ends.last.next && p->cut - ends.last.next < len) {
        len = p->cut - ends.last.next;
    }

    n = 0;

    if (len) {
        p->buf = malloc(len);

        if (p->buf == NULL) {
            return us_replog_fail(p->error, US_APPENDER_AGAIN, "no memory for "
                                  "%zu bytes", len);
        }

        us_pieces_copy(p->buf, p->pieces, skip, len);

        n = us_block_fill(p->buf, len, p->ops, &ids);

        if (n <= 0) {
            return us_replog_fail(p->error, US_APPENDER_AGAIN, "half an "
                                  "operation is published");
        }
    }

    sent = p->now(p->data);

    if (n == 0) {

        if (skip == 0
            && us_replog_recent(p->place, sent, US_APPENDER_BEAT))
        {
            return US_APPENDER_OK;
        }

        rc = p->log->ops->beat(p->log, &ends.last, ends.sure.next);

        return us_appender_done(p, rc, &ends, NULL, 0, sent);
    }

    row.lsn = ends.last.next;
    row.next = row.lsn + n;
    row.term = ends.last.term;
    row.crc = us_crc32c(ends.last.crc, p->buf, n);

    rc = p->log->ops->append(p->log, &ends.last, &row, p->buf, n,
                             ends.sure.next);

    return us_appender_done(p, rc, &ends, &row, ids, sent);
}


us_appender_rc_t
us_appender_step(us_appender_t *p, const us_str_t pieces[2])
{
    us_appender_rc_t  rc;

    p->pieces[0] = pieces[0];
    p->pieces[1] = pieces[1];

    rc = us_appender_next(p);

    free(p->buf);
    p->buf = NULL;

    return rc;
}
