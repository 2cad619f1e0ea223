
/*
 * Erasures.  See us_erasures.h, and us_erased.c for their list.
 *
 * An erasure is a row of US_AREA_ERASURES, number N the row N - 1.  Its reason
 * lies in US_AREA_REASONS, one after the other.  A row is written past the last
 * one and published by head->erasures.  After that only the words of its state
 * and its counters change, each by one store, so readers take no lock.
 *
 *
 * Operations.  26 has a whole row, of the state that it has then: a replay
 * makes the row or takes over what is later in it; one that is done is opened
 * again by an operation that is not, has no time, and counts no less.  27 has
 * entries.  28 deletes an id for an erasure, and has how many that has deleted.
 * 29 is found in dumps only: the size of the table, so that it does not grow,
 * which would take more chunks for a while than the store has that was dumped.
 * Any of them can be applied again.
 */


#include "us_store_private.h"
#include "us_erasures.h"
#include "us_erase.h"
#include "us_shard.h"

#include <stdlib.h>


/* URLs that are put on the list and deleted in one hold of the lock */
#define US_ERASE_GROUP      32

/* ids of one step of a sweep */
#define US_SWEEP_IDS        256

/* erasures whose records are noted to be gone in one hold of the lock */
#define US_GONE_HOLD        64

/* a row's owner that has left it, of pid 0 */
#define US_ERASURE_LEFT     ((us_process_t) 1 << US_PROCESS_PID_BITS)

/* numbers of erasures that are looked at for one of the same key */
#define US_ERASURE_RECENT   256

/* records that one URL may have: see us_store_others() */
#define US_ERASE_TWINS      4


/* FORMAT: the bytes of US_OP_ERASURE; the reason follows */

typedef struct {
    uint8_t              key[16];
    uint64_t             created;
    uint64_t             done;
    uint64_t             lifted;
    uint64_t             listed;
    uint64_t             deleted;
    uint64_t             gone;
    uint64_t             kind;
} us_erasure_op_t;

/* of a row's `what` */

#define us_erasure_kind(what)   ((what) & 0xff)
#define us_erasure_len(what)    ((what) >> 8 & 0xff)
#define us_erasure_gone(what)   ((what) >> 16)

_Static_assert(US_ERASURE_REASON < 256, "a row has a byte for its length");
_Static_assert(sizeof(us_erasure_op_t) + US_ERASURE_REASON
               == US_OP_ERASURE_MAX, "an operation has the longest reason");


us_op_t
us_erasure_op(const us_arena_t *a, uint64_t number,
    const us_erasure_row_t *row, uint8_t buf[US_OP_ERASURE_MAX])
{
    size_t           len;
    uint64_t         what;
    us_erasure_op_t  head;

    memcpy(head.key, a->head->erased_key, sizeof(head.key));
    head.created = row->created;
    head.done = us_acquire(&row->done);
    head.lifted = us_acquire(&row->lifted);
    head.listed = us_acquire(&row->listed);
    head.deleted = us_acquire(&row->deleted);
    what = us_acquire(&row->what);
    head.gone = us_erasure_gone(what);
    head.kind = us_erasure_kind(what);

    memcpy(buf, &head, sizeof(head));
    len = us_erasure_len(what);

    us_area_read(a, US_AREA_REASONS, row->reason, buf + sizeof(head), len);

    return us_op(US_OP_ERASURE, number, buf, sizeof(head) + len);
}


/*
 * Makes the row of op, the next one.  journal: it goes to the ring, where there
 * is room for it.  -1: the zone has no room.
 */

static int
us_erasure_make_locked(us_arena_t *a, const us_op_t *op, uint64_t owner,
    int journal)
{
    size_t             i, len;
    uint64_t           n;
    us_head_t         *h;
    us_erasure_op_t    head;
    us_erasure_row_t  *row;

    h = a->head;
    memcpy(&head, op->bytes.data, sizeof(head));
    len = op->bytes.len - sizeof(head);

    if ((op->id * sizeof(us_erasure_row_t)
         > us_area_bytes(a, US_AREA_ERASURES)
         && us_arena_grow_locked(a, US_AREA_ERASURES, 1) != 0)
        || (h->reasons_end + len > us_area_bytes(a, US_AREA_REASONS)
            && us_arena_grow_locked(a, US_AREA_REASONS, 1) != 0))
    {
        return -1;
    }

    /* nobody looks at either before the commit */

    us_area_write(a, US_AREA_REASONS, h->reasons_end,
                  op->bytes.data + sizeof(head), len);

    row = us_erasure_row(a, op->id);
    row->created = head.created;
    row->done = head.done;
    row->lifted = head.lifted;
    row->listed = head.lifted ? head.listed : 0;
    row->deleted = head.deleted;
    row->what = head.kind | len << 8 | head.gone << 16;
    row->reason = h->reasons_end;
    row->owner = owner;

    if (h->erasures == 0) {
        for (i = 0; i < 2; i++) {
            memcpy(&n, head.key + i * 8, 8);
            us_intend_locked(a, (uint64_t *) h->erased_key + i, n);
        }
    }

    if (journal) {
        us_ring_put_locked(a, op);
    }

    us_keys_put_locked(a, US_KEYS_ERASURE, 0, op->id);

    us_intend_locked(a, &h->reasons_end, h->reasons_end + len);
    us_intend_locked(a, &h->erasures_open,
                     h->erasures_open + (head.done == 0));
    us_intend_locked(a, &h->erasures_live,
                     h->erasures_live + (head.lifted == 0));
    us_intend_locked(a, &h->erasures_left,
                     h->erasures_left + (head.done && head.gone == 0));
    us_intend_locked(a, &h->erased_lsn,
                     head.gone > h->erased_lsn ? head.gone : h->erased_lsn);
    us_intend_locked(a, &h->erasures, op->id);
    us_commit_locked(a);

    return 0;
}


static int
us_erasure_is_left(const us_erasure_row_t *row)
{
    return row->done && us_erasure_gone(row->what) == 0;
}


/* a row's state becomes a later one: what is 0 leaves it as it is */

static void
us_erasure_turn_locked(us_arena_t *a, uint64_t number, uint64_t done,
    uint64_t lifted, uint64_t gone, int journal)
{
    uint8_t            buf[US_OP_ERASURE_MAX];
    us_op_t            op;
    us_head_t         *h;
    us_erasure_row_t  *row, next;

    h = a->head;
    row = us_erasure_row(a, number);
    next = *row;
    next.done = row->done ? row->done : done;
    next.lifted = row->lifted ? row->lifted : lifted;
    next.what |= us_erasure_gone(row->what) ? 0 : gone << 16;

    if (journal) {
        op = us_erasure_op(a, number, &next, buf);
        us_ring_put_locked(a, &op);
    }

    if (next.done != row->done) {
        us_intend_locked(a, &h->erasures_open, h->erasures_open - 1);
        us_intend_locked(a, &row->done, next.done);
    }

    if (next.lifted != row->lifted) {
        us_intend_locked(a, &h->erasures_live, h->erasures_live - 1);
        us_intend_locked(a, &h->erased_dead, h->erased_dead + row->listed);
        us_intend_locked(a, &row->lifted, next.lifted);
    }

    if (next.what != row->what) {
        us_intend_locked(a, &row->what, next.what);
        us_intend_locked(a, &h->erased_lsn,
                         gone > h->erased_lsn ? gone : h->erased_lsn);
    }

    us_intend_locked(a, &h->erasures_left,
                     h->erasures_left + us_erasure_is_left(&next)
                     - us_erasure_is_left(row));
    us_commit_locked(a);
}


/*
 * Of a retry, or of another batch with its key: more is to be deleted for an
 * erasure that was done, so it is not done, nor are its records gone.
 */

static void
us_erasure_reopen_locked(us_arena_t *a, uint64_t number, us_process_t owner,
    int journal)
{
    uint8_t            buf[US_OP_ERASURE_MAX];
    us_op_t            op;
    us_head_t         *h;
    us_erasure_row_t  *row, next;

    h = a->head;
    row = us_erasure_row(a, number);

    if (row->done == 0 || row->lifted) {
        return;
    }

    us_release(&row->owner, owner);

    if (journal) {
        next = *row;
        next.created = 0;
        next.done = 0;
        next.what = row->what & 0xffff;

        op = us_erasure_op(a, number, &next, buf);
        us_ring_put_locked(a, &op);
    }

    us_intend_locked(a, &h->erasures_open, h->erasures_open + 1);
    us_intend_locked(a, &h->erasures_left,
                     h->erasures_left - us_erasure_is_left(row));
    us_intend_locked(a, &row->what, row->what & 0xffff);
    us_intend_locked(a, &row->done, 0);
    us_commit_locked(a);
}


/*
 * One that was begun with this key, and is in force; 0: there is none.  A site
 * that was not put on the list before its process was killed is none: a sweep
 * may have done the erasure since, or be about to do so.
 */

static uint64_t
us_erasure_again(us_store_t *s, us_erasure_kind_t kind,
    const us_store_key_t *key)
{
    uint64_t           n, last;
    us_erasure_row_t  *row;

    last = us_head(s)->erasures;

    for (n = last; key && n && last - n < US_ERASURE_RECENT; n--) {
        row = us_erasure_row(&s->arena, n);

        if (row->lifted == 0 && us_erasure_kind(row->what) == kind
            && (kind == US_ERASURE_URLS || row->listed)
            && us_keys_has(&s->arena, key->name, US_KEYS_ERASURE, 0, n,
                           s->now))
        {
            return n;
        }
    }

    return 0;
}


us_store_status_t
us_store_erasure_begin(us_store_t *s, us_erasure_kind_t kind, us_str_t reason,
    const uint8_t random[16], us_process_t owner, const us_store_key_t *key,
    uint64_t *number, uint64_t *lsn)
{
    uint8_t             bytes[US_OP_ERASURE_MAX];
    us_op_t             op;
    us_head_t          *h;
    us_arena_t         *a;
    us_erasure_op_t     head;
    us_store_status_t   status;

    a = &s->arena;
    h = a->head;

    head = (us_erasure_op_t) { .created = s->now ? s->now : 1, .kind = kind };

    us_store_enter(s);

    memcpy(head.key, h->erasures ? h->erased_key : random, sizeof(head.key));
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), reason.data, reason.len);

    op = us_op(US_OP_ERASURE, h->erasures + 1, bytes,
               sizeof(head) + reason.len);

    *number = us_erasure_again(s, kind, key);

    if (*number) {
        status = US_SEEN;

    } else if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (!(h->flags & US_HEAD_ERASES)) {
        status = US_UNKNOWN;

    } else if (us_keys_turn_locked(a, key ? key->name : 0,
                                   key ? key->until : 0)
               != 0
               || !us_ring_fits(a, us_op_size(&op)))
    {
        status = US_BUSY;

    } else {
        us_bulk_keep_locked(a, 0);
        status = op.id < US_ERASURES
                 && us_erasure_make_locked(a, &op, owner, 1) == 0
                 ? US_NEW : US_FULL;
        *number = status == US_NEW ? op.id : 0;
    }

    *lsn = h->published;
    us_store_leave(s);

    return status;
}


static us_store_status_t
us_store_erasure_turn(us_store_t *s, uint64_t number, int lift, uint64_t *lsn)
{
    uint64_t            now;
    us_arena_t         *a;
    us_store_status_t   status;

    a = &s->arena;
    now = s->now ? s->now : 1;
    status = US_OK;

    us_store_enter(s);

    if (number == 0 || number > a->head->erasures) {
        status = US_UNKNOWN;

    } else if (lift ? us_erasure_row(a, number)->lifted
                    : us_erasure_row(a, number)->done)
    {
        /* void */

    } else if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (!us_ring_fits(a, US_OP_HEAD_MAX + US_OP_ERASURE_MAX)) {
        status = US_BUSY;

    } else {
        us_erasure_turn_locked(a, number, now, lift ? now : 0, 0, 1);
    }

    *lsn = a->head->published;
    us_store_leave(s);

    return status;
}


us_store_status_t
us_store_erasure_done(us_store_t *s, uint64_t number, uint64_t *lsn)
{
    return us_store_erasure_turn(s, number, 0, lsn);
}


us_store_status_t
us_store_erasure_lift(us_store_t *s, uint64_t number, uint64_t *lsn)
{
    return us_store_erasure_turn(s, number, 1, lsn);
}


void
us_store_erasure_leave(us_store_t *s, uint64_t number)
{
    us_erasure_row_t  *row;

    if (number > us_store_erasures(s)) {
        return;
    }

    row = us_erasure_row(&s->arena, number);

    /* no process; and not 0, which a pass over the records looks for */

    if (us_acquire(&row->done) == 0) {
        us_release(&row->owner, US_ERASURE_LEFT);
    }
}


uint64_t
us_store_erased_lsn(const us_store_t *s)
{
    return us_acquire(&us_head(s)->erased_lsn);
}


size_t
us_store_erasures_left(const us_store_t *s, uint64_t *numbers, size_t most,
    uint64_t *since)
{
    size_t             k;
    uint64_t           n, left;
    us_erasure_row_t  *row;

    left = us_acquire(&us_head(s)->erasures_left);

    for (n = us_store_erasures(s), k = 0; n && left; n--) {
        row = us_erasure_row(&s->arena, n);

        if (us_acquire(&row->done) == 0
            || us_erasure_gone(us_acquire(&row->what)))
        {
            continue;
        }

        *since = row->created;
        left--;

        if (k < most) {
            numbers[k++] = n;
        }
    }

    return k;
}


us_store_status_t
us_store_erasures_gone(us_store_t *s, const uint64_t *numbers, size_t n,
    uint64_t *lsn)
{
    size_t              i, end;
    us_arena_t         *a;
    us_erasure_row_t   *row;
    us_store_status_t   status;

    a = &s->arena;
    status = US_OK;

    for (i = 0; i < n && status == US_OK; /* void */ ) {
        us_store_enter(s);

        /*
         * A segment of the journal begins with the first of these operations.
         * Without a journal, all later ones have a greater number.
         */

        if (*lsn == 0) {
            *lsn = a->head->ring_size ? a->head->published
                                      : a->head->erased_lsn + 1;
        }

        end = n - i < US_GONE_HOLD ? n : i + US_GONE_HOLD;

        for ( /* void */ ; i < end && status == US_OK; i++) {
            row = us_erasure_row(a, numbers[i]);

            /* noted before the ring was full; or not what the pass was for */

            if (!us_erasure_is_left(row) || row->owner) {
                continue;
            }

            if (us_store_fenced_locked(s)) {
                status = US_FENCED;

            } else if (!us_ring_fits(a, US_OP_HEAD_MAX + US_OP_ERASURE_MAX)) {
                status = US_BUSY;

            } else {
                us_erasure_turn_locked(a, numbers[i], 0, 0, *lsn, 1);
            }
        }

        us_store_leave(s);
    }

    return status;
}


uint64_t
us_store_erasures(const us_store_t *s)
{
    /* acquire: the rows up to this one were written before */

    return us_acquire(&us_head(s)->erasures);
}


int
us_store_erasure(us_store_t *s, uint64_t number, us_erasure_info_t *info)
{
    us_op_t           op;
    uint8_t           buf[US_OP_ERASURE_MAX];
    us_erasure_op_t   head;

    if (number == 0 || number > us_store_erasures(s)) {
        return 0;
    }

    op = us_erasure_op(&s->arena, number, us_erasure_row(&s->arena, number),
                       buf);
    memcpy(&head, buf, sizeof(head));

    info->number = number;
    info->kind = (us_erasure_kind_t) head.kind;
    info->state = head.lifted ? US_ERASURE_LIFTED
                  : head.done ? US_ERASURE_DONE : US_ERASURE_DELETING;
    info->created = head.created;
    info->done = head.done;
    info->lifted = head.lifted;
    info->gone = head.gone;
    info->listed = head.listed;
    info->deleted = head.deleted;
    info->reason.len = op.bytes.len - sizeof(head);
    info->reason.data = info->text;
    memcpy(info->text, buf + sizeof(head), info->reason.len);

    return 1;
}


/* --- what is erased ------------------------------------------------------- */

/* deletes a live id for an erasure: US_OK, US_BUSY, US_FULL */

static us_store_status_t
us_erase_id_locked(us_store_t *s, uint64_t number, uint64_t id)
{
    size_t              n;
    uint8_t             bytes[2 * US_NUMBER_MAX];
    us_op_t             op;
    us_arena_t         *a;
    us_hashes_t         hashes;
    us_erasure_row_t   *row;

    a = &s->arena;
    row = us_erasure_row(a, number);

    n = us_number_write(bytes, number);
    n += us_number_write(bytes + n, row->deleted + 1);
    op = us_op(US_OP_ERASED_ID, id, bytes, n);

    if (!us_ring_fits(a, us_op_size(&op))) {
        return US_BUSY;
    }

    us_store_hashes(s, id, &hashes);

    return us_store_forget_locked(s, id, &hashes, &op, &row->deleted);
}


/*
 * One URL, which is not stored any more afterwards, or US_BUSY or US_FULL.  Two
 * records may have it: see us_store_others().
 */

static us_store_status_t
us_erase_item_locked(us_store_t *s, uint64_t number, us_store_item_t *item,
    us_erased_hash_t h)
{
    unsigned            i, done;
    uint64_t            id;
    us_store_status_t   status;

    done = us_erasure_row(&s->arena, number)->done != 0;

    if (!us_ring_fits(&s->arena, US_OP_HEAD_MAX + US_ERASED_EACH
                                 + done * (US_OP_HEAD_MAX
                                           + US_OP_ERASURE_MAX)))
    {
        return US_BUSY;
    }

    us_bulk_keep_locked(&s->arena, 0);

    h.rest |= number;

    if (done) {
        us_store_look_locked(s, item);

        if (item->status == US_SEEN || !us_erased_has_locked(&s->arena, h)) {
            us_erasure_reopen_locked(&s->arena, number, us_process_self(), 1);
        }
    }

    if (us_erased_enter_locked(&s->arena, h, 1) == US_FULL) {
        return US_FULL;
    }

    id = US_STORE_NO_ID;

    for (i = 0; i < US_ERASE_TWINS; i++) {
        us_store_look_locked(s, item);

        if (item->status != US_SEEN) {
            break;
        }

        id = id == US_STORE_NO_ID ? item->id : id;
        status = us_erase_id_locked(s, number, item->id);

        if (status != US_OK) {
            return status;
        }
    }

    item->id = id;

    return US_ERASED;
}


/* US_OK, or why nothing can be erased now */

static us_store_status_t
us_erase_allowed_locked(us_store_t *s, uint64_t number)
{
    return us_store_fenced_locked(s) ? US_FENCED
           : us_erasure_row(&s->arena, number)->lifted ? US_GONE : US_OK;
}


static us_store_status_t
us_store_erase_group(us_store_t *s, uint64_t number, us_store_item_t *items,
    size_t n)
{
    size_t              i, moved;
    unsigned            klass;
    us_str_t            rest;
    us_erased_t         erased[US_ERASE_GROUP];
    us_store_status_t   status;

again:

    us_store_seen(s, items, n);

    for (i = 0, moved = 0; i < n; i++) {
        us_erased_item(s, &items[i], &erased[i]);
        moved += (items[i].status == US_MOVED);

        /* one that the hot table knows has not been hashed */

        rest = items[i].rest;
        klass = 0;
        rest = items[i].merge ? rest : us_store_bare(rest, &klass);
        items[i].hash = us_store_hash(s, items[i].spelling, rest);
    }

    if (moved == n) {
        return US_OK;
    }

    us_store_enter(s);

    status = us_erase_allowed_locked(s, number);

    if (status == US_OK && us_shard_changed_locked(s)) {
        us_store_leave(s);
        goto again;
    }

    for (i = 0; i < n && status == US_OK; i++) {

        if (items[i].status == US_MOVED) {
            continue;
        }

        items[i].status = us_erase_item_locked(s, number, &items[i],
                                               erased[i].url);

        if (items[i].status != US_ERASED) {
            status = items[i].status;
        }
    }

    us_store_leave(s);

    for (i = status == US_OK || i == 0 ? i : i - 1; i < n; i++) {
        items[i].status = status;
    }

    return status;
}


uint64_t
us_store_erase(us_store_t *s, uint64_t number, us_store_item_t *items,
    size_t n)
{
    size_t             group;
    us_store_status_t  status;

    for (status = US_OK; n && status == US_OK; n -= group, items += group) {
        group = n < US_ERASE_GROUP ? n : US_ERASE_GROUP;
        status = us_store_erase_group(s, number, items, group);
    }

    while (n--) {
        items++->status = status;
    }

    return us_acquire(&us_head(s)->published);
}


us_store_status_t
us_store_erase_site(us_store_t *s, uint64_t number, us_str_t text,
    uint64_t *lsn)
{
    unsigned            klass;
    us_erased_hash_t    h;
    us_erasure_row_t   *row;
    us_store_status_t   status;

    klass = 0;
    h = us_erased_site(s, us_store_bare(text, &klass));
    h.rest |= number;
    (void) us_store_map(s);

    us_store_enter(s);

    status = us_shard_other_locked(s) ? US_MOVED
                                      : us_erase_allowed_locked(s, number);
    row = us_erasure_row(&s->arena, number);

    if (status != US_OK || us_erased_has_locked(&s->arena, h)) {
        /* void */

    } else if (row->done || (us_erasure_kind(row->what) == US_ERASURE_SITE
                             && row->listed))
    {
        /* a sweep may be over, or past some of the site's ids */

        status = US_GONE;

    } else if (!us_ring_fits(&s->arena, US_OP_HEAD_MAX + US_ERASED_EACH)) {
        status = US_BUSY;

    } else {
        us_bulk_keep_locked(&s->arena, 0);
        status = us_erased_enter_locked(&s->arena, h, 1) == US_FULL ? US_FULL
                                                                    : US_OK;
    }

    *lsn = us_head(s)->published;
    us_store_leave(s);

    return status;
}


void
us_store_refuse(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t            i, asked;
    us_store_seat_t  *sl;

    if (s->map.number == 0 || us_relaxed(&us_head(s)->erasures_live) == 0) {
        return;
    }

    for (i = 0, asked = 0; i < n; i++) {
        sl = &s->seats[i];
        sl->erased.known = items[i].status == US_UNSEEN
                           && items[i].slot == US_SLOT_SEALED;

        if (sl->erased.known) {
            us_erased_item(s, &items[i], &sl->erased);
            asked++;
        }
    }

    if (asked == 0) {
        return;
    }

    us_store_enter(s);

    for (i = 0; i < n; i++) {
        if (s->seats[i].erased.known
            && us_erased_by_locked(&s->arena, &s->seats[i].erased))
        {
            items[i].status = US_ERASED;
        }
    }

    us_store_leave(s);
}


/* --- the sweep ------------------------------------------------------------ */

/*
 * Erasures that one sweep completes, at most; and those whose records one pass
 * erases, which are noted so many in a step: a pass reads all records, and is
 * followed by a snapshot, so there should not be one for each few.
 */
#define US_SWEEP_NUMBERS    4096
#define US_SWEEP_PASS       (1 << 20)
#define US_SWEEP_NOTED      512

/* bytes of the ring that are overwritten in one hold of the lock */
#define US_SWEEP_RING       (64 << 10)


void
us_store_sweep_delay(us_store_t *s, uint64_t delay)
{
    s->sweep_delay = delay;
}


/*
 * Whether a pass over the records is due.  One that seems to begin in the
 * future is of another clock, or of this one before it was set back: nobody
 * knows for how long it has waited.
 */

static int
us_sweep_left(const us_store_t *s)
{
    uint64_t  since, number;

    if (us_acquire(&us_head(s)->erasures_left) == 0) {
        return 0;
    }

    since = 0;
    (void) us_store_erasures_left(s, &number, 1, &since);

    return since + s->sweep_delay <= s->now || since > s->now;
}


/*
 * The erasures for which ids are to be deleted by whoever comes, at most so
 * many.
 */

static size_t
us_sweep_open(const us_store_t *s, uint64_t *numbers, size_t most)
{
    size_t             k;
    uint64_t           n, open;
    us_erasure_row_t  *row;

    open = us_acquire(&us_head(s)->erasures_open);

    for (n = us_store_erasures(s), k = 0; n && open && k < most; n--) {
        row = us_erasure_row(&s->arena, n);

        if (us_acquire(&row->done)) {
            continue;
        }

        if (!us_process_alive(us_acquire(&row->owner))) {
            numbers[k++] = n;
        }

        open--;
    }

    return k;
}


int
us_store_sweep_due(const us_store_t *s)
{
    uint64_t  number;

    return us_sweep_open(s, &number, 1) || us_sweep_left(s);
}


static us_store_status_t
us_sweep_begin(us_store_t *s, us_sweep_t *sweep)
{
    size_t         n;
    uint64_t      *numbers;
    us_head_t     *h;
    us_process_t   held, self;

    h = us_head(s);

    if (!us_store_sweep_due(s)) {
        return US_OK;
    }

    held = us_acquire(&h->sweeper);
    self = us_process_self();

    if (held != self && us_process_alive(held)) {
        return US_SEEN;
    }

    numbers = malloc(US_SWEEP_NUMBERS * sizeof(uint64_t));

    if (numbers == NULL) {
        return US_FULL;
    }

    /*
     * Those that lose their owner from here on are for the next sweep: this one
     * may be past an id that is to be deleted for them.
     */

    n = us_sweep_open(s, numbers, US_SWEEP_NUMBERS);

    us_store_enter(s);

    if (h->sweeper != held) {
        us_store_leave(s);
        free(numbers);
        return US_SEEN;
    }

    us_release(&h->sweeper, self);

    /* nothing that is on the list now gets an id from here on */

    sweep->end = h->next_id;
    sweep->at = n ? 0 : sweep->end;
    sweep->numbers = numbers;
    sweep->n = n;
    sweep->begun = 1;
    sweep->full = 0;

    us_store_leave(s);

    return US_NEW;
}


void
us_store_sweep_end(us_store_t *s, us_sweep_t *sweep)
{
    if (sweep->begun) {

        /* a store that has begun anew may have another one */

        if (us_acquire(&us_head(s)->sweeper) == us_process_self()) {
            us_release(&us_head(s)->sweeper, 0);
        }

        if (sweep->pass) {
            us_erase_free(sweep->pass);
        }

        free(sweep->numbers);
        memset(sweep, 0, sizeof(us_sweep_t));
    }
}


/*
 * All ids were looked at: an erasure that waited for that is done; or, if there
 * is none any more, the pass over the records begins.
 */

static us_store_status_t
us_sweep_finish(us_store_t *s, us_sweep_t *sweep)
{
    size_t              i, most;
    uint64_t            since, lsn, *numbers;
    us_store_status_t   status;

    status = sweep->full ? US_FULL : US_OK;

    if (status == US_OK && sweep->n) {
        status = us_store_erasure_done(s, sweep->numbers[sweep->n - 1], &lsn);

        if (status == US_OK) {
            sweep->done = sweep->numbers[--sweep->n];
            return US_NEW;
        }

    } else if (status == US_OK && us_sweep_left(s)) {
        most = us_acquire(&us_head(s)->erasures_left);
        most = most < US_SWEEP_PASS ? most : US_SWEEP_PASS;
        numbers = realloc(sweep->numbers, (most + 1) * sizeof(uint64_t));

        sweep->numbers = numbers ? numbers : sweep->numbers;
        sweep->pass = numbers ? us_erase_create(s, US_ERASE_MOST) : NULL;

        if (sweep->pass) {
            sweep->n = us_store_erasures_left(s, numbers, most, &since);

            /* whoever adds to one of them from here on is its owner again */

            for (i = 0; i < sweep->n; i++) {
                us_release(&us_erasure_row(&s->arena, numbers[i])->owner, 0);
            }

            return US_NEW;
        }

        status = US_FULL;
    }

    if (status != US_BUSY) {
        us_store_sweep_end(s, sweep);
    }

    return status == US_OK ? US_NEW : status;
}


/* ids are deleted: their records go, and then the erasures are gone */

static us_store_status_t
us_sweep_pass(us_store_t *s, us_sweep_t *sweep)
{
    size_t              i;
    us_store_status_t   status;

    status = US_OK;

    if (!sweep->over) {
        status = us_erase_step(sweep->pass, US_SWEEP_IDS);

        if (status == US_NEW) {
            return US_NEW;
        }

        /* a model may have been installed since the pass has begun */

        sweep->over = status == US_OK;
        sweep->lsn = us_store_published(s);
    }

    /* adds and models are in the journal, and go from the ring */

    if (sweep->over && sweep->ring < us_head(s)->ring_size) {

        if (us_store_written(s) < sweep->lsn) {
            return US_BUSY;
        }

        us_store_enter(s);
        us_ring_clear_locked(&s->arena, sweep->ring, US_SWEEP_RING);
        us_store_leave(s);

        sweep->ring += US_SWEEP_RING;
        return US_NEW;
    }

    if (sweep->over) {
        i = sweep->n - sweep->noted;
        i = i < US_SWEEP_NOTED ? i : US_SWEEP_NOTED;
        status = us_store_erasures_gone(s, sweep->numbers + sweep->noted, i,
                                        &sweep->gone);

        if (status == US_OK) {
            sweep->noted += i;
        }

        if (status == US_OK && sweep->noted < sweep->n) {
            return US_NEW;
        }
    }

    if (status != US_BUSY) {
        us_store_sweep_end(s, sweep);
    }

    return status == US_OK ? US_NEW : status;
}


us_store_status_t
us_store_sweep(us_store_t *s, us_sweep_t *sweep)
{
    size_t              i, n;
    uint64_t            id, end, number, ids[US_SWEEP_IDS];
    unsigned            klass;
    us_str_t            rest;
    us_erased_t         erased[US_SWEEP_IDS];
    us_store_status_t   status;

    sweep->done = 0;

    if (!sweep->begun) {
        return us_sweep_begin(s, sweep);
    }

    if (sweep->pass) {
        return us_sweep_pass(s, sweep);
    }

    if (sweep->at == sweep->end) {
        return us_sweep_finish(s, sweep);
    }

    end = sweep->at + US_SWEEP_IDS;
    end = end < sweep->end ? end : sweep->end;

    for (id = sweep->at, n = 0; id < end; id++) {

        if (us_deleted(&s->arena, id)) {
            continue;
        }

        rest = us_store_rest(s, id, s->text, &klass);
        us_erased_hashes(s, klass, rest, us_erased_spelling(klass),
                         &erased[n]);
        ids[n++] = id;
    }

    us_store_enter(s);

    status = us_store_fenced_locked(s) ? US_FENCED : US_OK;

    for (i = 0; i < n && status == US_OK; i++) {
        number = us_erased_by_locked(&s->arena, &erased[i]);

        if (number && !us_deleted(&s->arena, ids[i])) {
            status = us_erase_id_locked(s, number, ids[i]);

            if (status == US_FULL) {
                sweep->full = 1;
                status = US_OK;
            }
        }
    }

    us_store_leave(s);

    /* the one that was not deleted is the next again */

    if (status == US_OK) {
        sweep->at = end;

    } else if (i) {
        sweep->at = ids[i - 1];
    }

    return status == US_OK ? US_NEW : status;
}


/* --- replay and dump ------------------------------------------------------ */

int
us_erasure_replay(us_store_t *s, const us_op_t *op)
{
    us_head_t         *h;
    us_arena_t        *a;
    us_erasure_op_t    head;
    us_erasure_row_t  *row;

    a = &s->arena;
    h = a->head;

    if (op->bytes.len < sizeof(head) || op->id == 0 || op->id >= US_ERASURES
        || op->id > h->erasures + 1)
    {
        return US_REPLAY_DAMAGED;
    }

    memcpy(&head, op->bytes.data, sizeof(head));

    if (head.kind > US_ERASURE_SITE || (head.lifted && head.done == 0)
        || head.gone >> 48
        || (h->erasures && memcmp(head.key, h->erased_key,
                                  sizeof(head.key)) != 0))
    {
        return US_REPLAY_DAMAGED;
    }

    if (op->id > h->erasures) {
        return us_erasure_make_locked(a, op, 0, 0) == 0 ? 0
                                                        : US_REPLAY_NO_ROOM;
    }

    /* a dump may be ahead of the operations that follow it */

    row = us_erasure_row(a, op->id);

    if (head.deleted >= row->deleted && head.listed >= row->listed) {

        if (head.done == 0) {
            us_erasure_reopen_locked(a, op->id, 0, 0);
        }

    } else if (head.lifted == 0) {

        /* it has been opened again since then */

        head.done = 0;
        head.gone = 0;
    }

    /* the key of its begin may be missing; that of a retry is not this one */

    if (head.done == 0 && head.created) {
        us_keys_put_locked(a, US_KEYS_ERASURE, 0, op->id);
    }

    if (head.deleted > row->deleted) {
        us_intend_locked(a, &row->deleted, head.deleted);
    }

    if (head.lifted && head.listed > row->listed) {
        us_intend_locked(a, &row->listed, head.listed);
    }

    us_erasure_turn_locked(a, op->id, head.done, head.lifted, head.gone, 0);

    return 0;
}


int
us_erasure_replay_urls(us_store_t *s, const us_op_t *op)
{
    size_t             i;
    us_arena_t        *a;
    us_erased_hash_t   h;

    a = &s->arena;

    if (op->bytes.len % US_ERASED_EACH) {
        return US_REPLAY_DAMAGED;
    }

    for (i = 0; i < op->bytes.len; i += US_ERASED_EACH) {
        memcpy(&h, op->bytes.data + i, US_ERASED_EACH);

        if (h.hash == 0 || (h.rest & US_ERASED_SPELLINGS) == 0
            || us_erased_number(h.rest) == 0
            || us_erased_number(h.rest) > a->head->erasures)
        {
            return US_REPLAY_DAMAGED;
        }

        /* of a lifted one the row has the number, and nothing is needed */

        if (!us_erased_lifted(a, h.rest)
            && us_erased_enter_locked(a, h, 0) == US_FULL)
        {
            return US_REPLAY_NO_ROOM;
        }
    }

    return 0;
}


int
us_erasure_replay_id(us_store_t *s, const us_op_t *op)
{
    uint64_t           number, n;
    us_arena_t        *a;
    const uint8_t     *p, *end;
    us_erasure_row_t  *row;

    a = &s->arena;
    p = op->bytes.data;
    end = p + op->bytes.len;

    if (us_number_read(&p, end, &number) <= 0
        || us_number_read(&p, end, &n) <= 0
        || number == 0 || number > a->head->erasures)
    {
        return US_REPLAY_DAMAGED;
    }

    row = us_erasure_row(a, number);

    if (n > row->deleted) {
        us_intend_locked(a, &row->deleted, n);
        us_commit_locked(a);
    }

    return 0;
}
