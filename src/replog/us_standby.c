
/* See us_standby.h. */


#include "us_standby.h"
#include "us_appender.h"
#include "../journal/us_crc32c.h"

#include <inttypes.h>
#include <stdio.h>


static us_standby_rc_t
us_standby_fail(us_standby_t *sb, us_replog_rc_t rc)
{
    return us_replog_fail(sb->error, rc == US_REPLOG_REFUSED
                          ? US_STANDBY_MORE : US_STANDBY_AGAIN, "%s",
                          sb->log->error);
}


/* OK: *row, of this session; NONE: there it is not; else not known */

static us_standby_rc_t
us_standby_row(us_standby_t *sb, uint64_t lsn, us_replog_row_t *row)
{
    us_replog_rc_t  rc;

    rc = sb->log->ops->row(sb->log, lsn, us_replog_take_row, row);

    if (rc != US_REPLOG_OK && rc != US_REPLOG_NONE) {
        return us_standby_fail(sb, rc);
    }

    return sb->log->session != sb->session ? US_STANDBY_MORE
           : rc == US_REPLOG_OK ? US_STANDBY_OK : US_STANDBY_NONE;
}


static us_standby_rc_t
us_standby_lost(us_standby_t *sb, const char *what)
{
    sb->lost = 1;

    return us_replog_fail(sb->error, US_STANDBY_LOST, "the log does not "
                          "continue at LSN %" PRIu64 ": %s; it has lost rows, "
                          "or this server of it was replaced", sb->at.next,
                          what);
}


/*
 * A row is not there.  Was it removed by a base?  OK: only what was applied has
 * been; what: it was not.
 */

static us_standby_rc_t
us_standby_removed(us_standby_t *sb, const char *what)
{
    int              follows;
    us_standby_rc_t  rc;
    us_replog_row_t  row;

    rc = us_standby_row(sb, US_REPLOG_BASE, &row);

    if (rc != US_STANDBY_OK) {
        return rc;
    }

    if (row.next == sb->at.next && row.term == sb->at.term
        && row.crc == sb->at.crc)
    {
        sb->found = sb->session;
        sb->lost = 0;
        return US_STANDBY_OK;
    }

    /* at a base of which no row was applied, nothing was answered yet */

    follows = sb->env.follows(sb->env.data, &sb->head, &sb->at);

    if (sb->at.lsn == US_REPLOG_BASE
        || ((follows == 1 || (follows == -1 && !sb->lost))
            && row.next > sb->at.next && row.term >= sb->at.term))
    {
        return us_replog_fail(sb->error, US_STANDBY_STOP, "the log has a new "
                              "base, and its rows begin at LSN %" PRIu64
                              ", past LSN %" PRIu64 " up to which it was read",
                              row.next, sb->at.next);
    }

    return us_standby_lost(sb, what);
}


/* what was read of the base is of no use */

static us_standby_rc_t
us_standby_replaced(us_standby_t *sb)
{
    sb->parts = 0;

    return us_replog_fail(sb->error, US_STANDBY_STOP, "the base was replaced "
                          "while it was read");
}


/* whether the base that was read is that of this server, in one session */

static us_standby_rc_t
us_standby_in_force(us_standby_t *sb)
{
    us_part_t        part;
    us_replog_rc_t   rc;
    us_standby_rc_t  got;
    us_replog_row_t  row;

    got = us_standby_row(sb, US_REPLOG_BASE, &row);

    if (got != US_STANDBY_OK) {
        return got;
    }

    if (memcmp(&row, &sb->base, sizeof(us_replog_row_t)) != 0) {
        return us_standby_replaced(sb);
    }

    if (row.next) {
        memset(&part, 0, sizeof(us_part_t));
        rc = sb->log->ops->base(sb->log, 0, us_replog_take_part, &part);

        if (rc != US_REPLOG_OK && rc != US_REPLOG_NONE) {
            return us_standby_fail(sb, rc);
        }

        if (sb->log->session != sb->session) {
            return US_STANDBY_MORE;
        }

        if (part.base != sb->part.base || sb->part.lsn < row.next) {
            return us_standby_replaced(sb);
        }
    }

    return US_STANDBY_OK;
}


/* how the log is now, and since when */

static us_standby_rc_t
us_standby_look(us_standby_t *sb)
{
    const char       *what;
    us_replog_rc_t    rc;
    us_replog_row_t   row;
    us_standby_rc_t   got;
    us_replog_head_t  was;

    was = sb->head;
    rc = sb->log->ops->head(sb->log, &sb->head);

    if (rc != US_REPLOG_OK) {
        sb->head = was;

        if (rc == US_REPLOG_NONE && !sb->begun) {
            return US_STANDBY_NONE;
        }

        return us_standby_fail(sb, rc);
    }

    /*
     * After the answer: what it shows was there before.  Another server may
     * show the same row or beat, made anew; or it has less, and a node of a
     * higher term, which has more, is given a lease to find that.  While this
     * node waits in a session, they are its own until a higher term has begun.
     */

    if (!sb->looked || sb->log->session != sb->session
        || ((sb->state != US_STANDBY_WAITING
             || sb->head.term > sb->claim.term)
            && (sb->head.beat != was.beat || sb->head.term != was.term
                || memcmp(&sb->head.last, &was.last, sizeof(us_replog_row_t))
                   != 0)))
    {
        sb->seen = sb->env.now(sb->env.data);
    }

    sb->session = sb->log->session;
    sb->looked = 1;

    if (!sb->begun) {
        memcpy(sb->uuid, sb->head.uuid, sizeof(sb->uuid));
        return US_STANDBY_OK;
    }

    if (memcmp(sb->uuid, sb->head.uuid, sizeof(sb->uuid)) != 0) {
        return us_standby_lost(sb, "it is that of another store");
    }

    if (sb->head.last.next < sb->at.next) {
        return us_standby_lost(sb, "its end is before what was read");
    }

    if (sb->head.last.next == sb->at.next
        && memcmp(&sb->head.last, &sb->at, sizeof(us_replog_row_t)) != 0)
    {
        return us_standby_lost(sb, "its last row is another one than was "
                                   "read");
    }

    if (sb->found == sb->session) {
        return US_STANDBY_OK;
    }

    if (sb->env.fell && sb->env.fell(sb->env.data, &sb->head)) {
        return us_standby_lost(sb, "its epoch is lower than it was");
    }

    /* once in a session: whether it has the row that was applied last */

    got = us_standby_row(sb, sb->at.lsn, &row);

    if (got != US_STANDBY_OK && got != US_STANDBY_NONE) {
        return got;
    }

    if (got == US_STANDBY_NONE
        || memcmp(&row, &sb->at, sizeof(us_replog_row_t)) != 0)
    {
        what = "the last row that was read is not there";

        return got == US_STANDBY_NONE || sb->at.lsn == US_REPLOG_BASE
               ? us_standby_removed(sb, what) : us_standby_lost(sb, what);
    }

    /* rows up to `until` are confirmed, if this server has the base */

    if (sb->at.next < sb->part.until) {
        got = us_standby_in_force(sb);

        if (got != US_STANDBY_OK) {
            return got;
        }
    }

    sb->found = sb->session;
    sb->lost = 0;

    return US_STANDBY_OK;
}


static int
us_standby_part(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_standby_t *sb = data;

    us_part_t  part;

    if (us_part_open(&part, sb->parts, p, len, sb->error) == -1) {
        sb->rc = US_STANDBY_LOST;
        return -1;
    }

    if (sb->parts && part.base != sb->part.base) {
        sb->rc = us_standby_replaced(sb);
        return -1;
    }

    if (len > US_PART_HEAD
        && sb->env.base(sb->env.data, p + US_PART_HEAD, len - US_PART_HEAD)
           == -1)
    {
        sb->parts = 0;
        sb->rc = US_STANDBY_STOP;
        return -1;
    }

    sb->part = part;
    sb->len = len;

    return 0;
}


/* the base's parts, some in each step; at is its row then */

static us_standby_rc_t
us_standby_begin(us_standby_t *sb)
{
    size_t           len;
    us_replog_rc_t   rc;
    us_standby_rc_t  got;

    if (sb->parts == 0) {
        got = us_standby_row(sb, US_REPLOG_BASE, &sb->base);

        if (got != US_STANDBY_OK) {
            return got;
        }

        memset(&sb->part, 0, sizeof(us_part_t));
        sb->part.last = sb->base.next == 0;
    }

    for (len = 0; !sb->part.last && len < US_STANDBY_READ; len += sb->len) {
        sb->rc = US_STANDBY_OK;
        rc = sb->log->ops->base(sb->log, sb->parts, us_standby_part, sb);

        if (sb->rc != US_STANDBY_OK) {
            return sb->rc;
        }

        switch (rc) {

        case US_REPLOG_OK:
            sb->parts++;
            break;

        case US_REPLOG_NONE:
            return us_replog_fail(sb->error, US_STANDBY_LOST, "part %u of the "
                                  "base is not there", sb->parts);

        case US_REPLOG_REFUSED:
            return us_standby_replaced(sb);

        default:
            return us_standby_fail(sb, rc);
        }
    }

    if (!sb->part.last) {
        return US_STANDBY_MORE;
    }

    /* all parts are applied */

    got = us_standby_in_force(sb);

    if (got != US_STANDBY_OK) {
        return got;
    }

    sb->parts = 0;

    if (sb->env.base(sb->env.data, NULL, 0) == -1) {
        return US_STANDBY_STOP;
    }

    sb->at = sb->base;
    sb->begun = 1;

    return US_STANDBY_OK;
}


static int
us_standby_take(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_standby_t *sb = data;

    size_t  skip;

    /* `until` is of another session than this row */

    if (sb->log->session != sb->session) {
        sb->rc = US_STANDBY_MORE;
        return -1;
    }

    if (row->lsn != sb->at.next || row->next != row->lsn + len
        || row->term < sb->at.term
        || row->crc != us_crc32c(sb->at.crc, p, len))
    {
        sb->rc = us_standby_lost(sb, "a row does not continue what was read");
        return -1;
    }

    /* a row of which the base has a part was confirmed before the base was */

    if (row->next > sb->head.acked && row->lsn >= sb->part.until) {
        return -1;
    }

    /* the base has its first operations, or all of them */

    skip = sb->part.lsn > row->lsn ? sb->part.lsn - row->lsn : 0;

    if (skip < len
        && sb->env.apply(sb->env.data, row, p + skip, len - skip) == -1)
    {
        sb->rc = US_STANDBY_STOP;
        return -1;
    }

    if (row->term == sb->at.term) {
        sb->led = row->term;
    }

    sb->at = *row;

    return 0;
}


/* applies the rows up to an LSN; OK: it has them all */

static us_standby_rc_t
us_standby_read(us_standby_t *sb, uint64_t until)
{
    us_replog_rc_t   rc;
    us_standby_rc_t  got;

    if (sb->at.next >= until) {
        return US_STANDBY_OK;
    }

    sb->rc = US_STANDBY_OK;
    sb->head.acked = until > sb->head.acked ? until : sb->head.acked;

    rc = sb->log->ops->read(sb->log, sb->at.next, US_STANDBY_READ,
                            us_standby_take, sb);

    if (sb->rc != US_STANDBY_OK) {
        return sb->rc;
    }

    if (rc == US_REPLOG_NONE && sb->log->session == sb->session) {
        got = us_standby_removed(sb, "no row follows what was read");

        return got == US_STANDBY_OK ? us_standby_fail(sb, rc) : got;
    }

    if (rc != US_REPLOG_OK) {
        return us_standby_fail(sb, rc);
    }

    return sb->at.next >= until ? US_STANDBY_OK : US_STANDBY_MORE;
}


static int
us_standby_found(void *data, const us_replog_row_t *row, const uint8_t *p,
    size_t len)
{
    us_standby_t *sb = data;

    if (memcmp(row, &sb->claim, sizeof(*row)) == 0 && len == sb->len
        && memcmp(p, sb->term, len) == 0)
    {
        sb->rc = US_STANDBY_OK;
    }

    return 0;
}


/* the claim is confirmed: the rest is applied, the lease passes */

static us_standby_rc_t
us_standby_wait(us_standby_t *sb)
{
    uint64_t         now;
    us_replog_rc_t   beat;
    us_standby_rc_t  rc;

    if (sb->head.term > sb->claim.term) {
        sb->state = US_STANDBY_READING;
        return US_STANDBY_MORE;
    }

    now = sb->env.now(sb->env.data);

    if (now - sb->sent >= US_APPENDER_BEAT) {

        /* a node that waits is not taken for one that is gone */

        beat = sb->log->ops->beat(sb->log, &sb->claim, sb->at.next);

        if (beat != US_REPLOG_OK) {
            return us_standby_fail(sb, beat);
        }

        sb->sent = now;
    }

    /* a server that has the claim has the rows before it */

    sb->rc = US_STANDBY_LOST;

    switch (sb->log->ops->row(sb->log, sb->claim.lsn, us_standby_found, sb)) {

    case US_REPLOG_OK:
    case US_REPLOG_NONE:
        break;

    default:
        return us_standby_fail(sb, US_REPLOG_AWAY);
    }

    if (sb->log->session != sb->session) {
        return US_STANDBY_MORE;
    }

    if (sb->rc != US_STANDBY_OK) {
        return us_standby_lost(sb, "it does not have this node's term");
    }

    rc = us_standby_read(sb, sb->claim.next);

    if (rc != US_STANDBY_OK) {
        return rc;
    }

    if (memcmp(&sb->at, &sb->claim, sizeof(us_replog_row_t)) != 0) {
        return us_standby_lost(sb, "it has another row than this node's term");
    }

    if (sb->env.now(sb->env.data) - sb->seen
        <= sb->lease + sb->lease / US_REPLOG_DRIFT)
    {
        return US_STANDBY_OK;
    }

    sb->state = US_STANDBY_READING;

    return US_STANDBY_READY;
}


/* a new term, by a row that follows the last one */

static us_standby_rc_t
us_standby_claim(us_standby_t *sb)
{
    uint64_t          beat;
    const char       *settings;
    us_replog_rc_t    rc;
    us_replog_row_t  *row;

    settings = sb->env.settings(sb->env.data, &sb->head,
                                sb->led == sb->head.term, &sb->lease);

    if (settings == NULL) {
        return US_STANDBY_OK;
    }

    row = &sb->claim;
    row->lsn = sb->head.last.next;
    row->term = sb->head.term + 1;

    sb->len = sb->env.term(sb->env.data, row->term, sb->holder, sb->term);

    row->next = row->lsn + sb->len;
    row->crc = us_crc32c(sb->head.last.crc, sb->term, sb->len);

    beat = sb->head.beat;
    sb->sent = sb->env.now(sb->env.data);

    rc = sb->log->ops->promote(sb->log, &sb->head.last, sb->head.term, row,
                               sb->term, sb->len, sb->holder, settings,
                               &beat);

    switch (rc) {

    case US_REPLOG_OK:

        /* a beat that was not seen before came at the latest just now */

        if (sb->log->session != sb->session || beat != sb->head.beat) {
            sb->seen = sb->env.now(sb->env.data);
        }

        sb->state = US_STANDBY_WAITING;
        return us_standby_wait(sb);

    case US_REPLOG_UNKNOWN:
        sb->state = US_STANDBY_CLAIMED;
        break;

    default:
        break;
    }

    return us_standby_fail(sb, rc);
}


static us_standby_rc_t
us_standby_once(us_standby_t *sb, int promote)
{
    us_replog_rc_t   got;
    us_standby_rc_t  rc;

    if (sb->state == US_STANDBY_CLAIMED) {

        /* is the TERM row there?  Then a beat of its term confirms it */

        sb->rc = US_STANDBY_LOST;

        got = sb->log->ops->row(sb->log, sb->claim.lsn, us_standby_found, sb);

        if (got == US_REPLOG_OK && sb->rc == US_STANDBY_OK) {
            sb->sent = sb->env.now(sb->env.data);
            got = sb->log->ops->beat(sb->log, &sb->claim, sb->at.next);

            if (got == US_REPLOG_OK) {
                sb->seen = sb->env.now(sb->env.data);
                sb->state = US_STANDBY_WAITING;

            } else if (got == US_REPLOG_REFUSED) {
                got = US_REPLOG_NONE;
            }
        }

        if (got != US_REPLOG_OK && got != US_REPLOG_NONE) {
            return us_standby_fail(sb, got);
        }

        /* it is not there: if it comes late, it only ends one more term */

        if (sb->state == US_STANDBY_CLAIMED) {
            sb->state = US_STANDBY_READING;
        }
    }

    rc = us_standby_look(sb);

    if (rc != US_STANDBY_OK) {
        return rc;
    }

    if (!sb->begun) {
        rc = us_standby_begin(sb);

        if (rc != US_STANDBY_OK) {
            return rc;
        }
    }

    if (sb->state == US_STANDBY_WAITING) {
        return us_standby_wait(sb);
    }

    /* marks of a base may be those of operations that are past acked */

    rc = us_standby_read(sb, sb->part.until > sb->head.acked
                             ? sb->part.until : sb->head.acked);

    if (rc != US_STANDBY_OK) {
        return rc;
    }

    if (promote) {
        sb->why = "it was asked for, or this node was the primary before";

    } else if (sb->head.term == 0) {
        sb->why = "the log had no primary";

    } else if (sb->takeover
               && sb->env.now(sb->env.data) - sb->seen >= sb->takeover)
    {
        sb->why = "no sign of the primary was seen for takeover=";

    } else {
        return US_STANDBY_OK;
    }

    return us_standby_claim(sb);
}


/*
 * A server that was replaced, and lives, lacks what was read, or has nothing
 * new.  A node that claims notices: nothing is confirmed there.
 */

us_standby_rc_t
us_standby_step(us_standby_t *sb, int promote)
{
    us_standby_rc_t  rc;

    rc = us_standby_once(sb, promote);

    if (sb->log->ops->leave
        && (rc == US_STANDBY_LOST
            || (rc == US_STANDBY_OK && sb->takeover == 0
                && sb->env.now(sb->env.data) - sb->seen >= US_STANDBY_QUIET)))
    {
        sb->log->ops->leave(sb->log);
    }

    return rc;
}


void
us_standby_terms(char terms[US_STANDBY_TERMS], uint64_t term, uint64_t lsn)
{
    char  old[US_STANDBY_TERMS];
    char  *end;

    (void) strcpy(old, terms);

    if (snprintf(terms, US_STANDBY_TERMS, "%" PRIu64 "@%" PRIu64 "%s%s", term,
                 lsn, old[0] ? "," : "", old)
        >= US_STANDBY_TERMS)
    {
        end = strrchr(terms, ',');
        *end = '\0';
    }
}


int
us_standby_follows(const char *terms, const us_replog_row_t *row)
{
    uint64_t  next, term, lsn;

    for (next = UINT64_MAX;
         terms && sscanf(terms, "%" SCNu64 "@%" SCNu64, &term, &lsn) == 2;
         terms = terms ? terms + 1 : NULL)
    {
        if (term <= row->term) {

            /* the log has not come to the row's term, or has lost it */

            return next >= row->next
                   && (next != UINT64_MAX || term == row->term);
        }

        next = lsn;
        terms = strchr(terms, ',');
    }

    return next < row->next ? 0 : -1;
}
