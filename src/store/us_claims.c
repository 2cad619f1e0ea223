
/*
 * Claims: when each id was claimed last, in units of head->revisit seconds;
 * which items of a batch are due, and who gets them.
 *
 * A claim is 4 bytes, in chunks that are allotted when the first claim in them
 * is made: a chunk of 16 KiB has 4,096 ids.
 *
 *     0       never
 *     unit    seconds since 1970 / revisit
 *
 *
 * The rule.  An add asks whether a claim is older than N units.  The age of a
 * claim is the clock less the claim's unit.
 *
 *     state                       answer    next state
 *
 *     URL unknown                 new       claimed at the clock
 *     claimed, age <= N           seen      the same
 *     claimed, age > N            due       claimed at the clock
 *     never claimed               due       claimed at the clock
 *
 * A claim may also be set to any earlier time, or cleared (us_store_claim()); a
 * delete clears it.  A claim of age n was made more than n - 1 and less than
 * n + 1 units ago.  So a URL is never due before N units have passed, and is
 * due when N + 1 have.
 *
 * Of any number of writers that ask at once, one is answered `due`: a claim is
 * checked and set under the store's lock.  A compare and swap of the 4 bytes
 * would not do.  The operation needs its place in the journal's stream, which
 * only the lock gives; and a writer killed after its swap would leave a claim
 * that no journal has.  Under the lock, the operation and the claims of a batch
 * are one commit.  The lock is taken only for what is due: a URL that is known
 * and claimed is answered without it.
 *
 *
 * The clock, head->clock, is the greatest time that a lock holder has seen.
 * When the machine's clock goes back, this one stands.  So no claim gets
 * younger than it was.  A claim that is newer than the clock which a reader has
 * is not due.
 *
 *
 * A group is looked at without the lock first.  What seems to be due is picked,
 * in order of ids.  Under the lock each is looked at again; those still due are
 * claimed by one operation and one commit, or by a few if the request has a
 * key.  The order of words in the commit is: LSN, key, claims.  So a reader
 * that sees a claim also sees the LSN that covers it, and the key that it is
 * due to.
 */


#include "us_store_private.h"


/* of claims of 2 bytes, in units */
#define US_CLAIMS_TURN    65535
#define US_CLAIMS_OLDEST  65512


uint32_t
us_claims_short(uint64_t clock, uint16_t value)
{
    uint64_t  age;

    if (value == 0) {
        return 0;
    }

    age = (clock % US_CLAIMS_TURN + US_CLAIMS_TURN - (value - 1))
          % US_CLAIMS_TURN;
    age = age > US_CLAIMS_OLDEST ? 0 : age;

    return age < clock ? (uint32_t) (clock - age) : 0;
}


uint64_t
us_claims_scan(const us_arena_t *a, uint32_t before, uint64_t from,
    uint64_t to)
{
    uint32_t  *p;
    uint64_t   end;

    for ( /* void */ ; from < to; from = end) {
        p = us_claims_at(a, from);
        end = ((from >> (a->chunk_shift - 2)) + 1) << (a->chunk_shift - 2);
        end = end < to ? end : to;

        /* acquire: see us_claims_read() */

        for ( /* void */ ; from < end; from++, p++) {
            if (p == NULL || __atomic_load_n(p, __ATOMIC_ACQUIRE) < before) {
                return from;
            }
        }
    }

    return to;
}


int
us_claims_reserve_locked(us_arena_t *a, uint64_t id)
{
    return us_arena_allot_locked(a, US_AREA_CLAIMS, id * sizeof(uint32_t));
}


void
us_claims_write_locked(us_arena_t *a, uint64_t id, uint32_t unit)
{
    /* relaxed: next_id is released after it */

    __atomic_store_n(us_claims_at(a, id), unit, __ATOMIC_RELAXED);
}


void
us_claims_set_locked(us_arena_t *a, uint64_t id, uint32_t unit)
{
    uint32_t  *p;

    p = us_claims_at(a, id);

    if (p) {
        us_intend32_locked(a, p, unit);
    }
}


uint32_t
us_store_revisit(const us_store_t *s)
{
    return (uint32_t) us_relaxed(&us_head(s)->revisit);
}


uint32_t
us_store_time(us_store_t *s, uint64_t now)
{
    s->now = now;

    return us_store_revisit(s);
}


uint64_t
us_store_clock(const us_store_t *s)
{
    return us_acquire(&us_head(s)->clock) * us_store_revisit(s);
}


/* the handle's time in units; 0: it is not known, or no claims are kept */

static uint64_t
us_store_unit(const us_store_t *s)
{
    uint64_t  revisit;

    revisit = us_store_revisit(s);

    return revisit ? s->now / revisit : 0;
}


/* claims below it are due, by the clock as it is now */

static uint32_t
us_store_before(const us_store_t *s, uint32_t older)
{
    return us_claims_before(us_acquire(&us_head(s)->clock), us_store_unit(s),
                            older);
}


size_t
us_store_due(us_store_t *s, us_store_item_t *items, size_t n, uint32_t older)
{
    size_t    i, due;
    uint32_t  unit, before;

    if (us_store_revisit(s) == 0) {
        return 0;
    }

    before = us_store_before(s, older);

    for (i = 0, due = 0; i < n; i++) {

        if (items[i].status != US_SEEN) {
            continue;
        }

        unit = us_claims_read(&s->arena, items[i].id);

        if (unit < before) {
            items[i].status = US_DUE;
            items[i].claimed = (uint64_t) unit * us_store_revisit(s);
            due++;
        }
    }

    return due;
}


uint64_t
us_store_claimed(us_store_t *s, uint64_t id)
{
    return (uint64_t) us_claims_read(&s->arena, id) * us_store_revisit(s);
}


void
us_store_times(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (items[i].status == US_SEEN) {
            items[i].claimed = us_store_claimed(s, items[i].id);
        }
    }
}


uint64_t
us_store_next_due(us_store_t *s, uint64_t from, uint64_t to, uint32_t older)
{
    uint32_t  before;
    uint64_t  id, end;

    end = us_store_next_id(s);
    end = to < end ? to : end;
    before = us_store_before(s, older);

    while (from < end) {
        id = us_claims_scan(&s->arena, before, from, end);

        if (id < end && !us_deleted(&s->arena, id)) {
            return id;
        }

        from = id + 1;
    }

    return to;
}


int
us_store_set_revisit(us_store_t *s, uint32_t revisit)
{
    int         rc;
    us_head_t  *h;

    h = us_head(s);

    us_store_enter(s);

    rc = (h->revisit && h->revisit != revisit) ? -1 : 0;

    if (rc == 0) {
        us_release(&h->revisit, revisit);
    }

    us_store_leave(s);

    return rc;
}


int
us_store_tick_locked(us_store_t *s)
{
    us_op_t      op;
    uint64_t     unit;
    us_arena_t  *a;

    a = &s->arena;
    unit = us_store_unit(s);

    if (unit <= a->head->clock || unit > US_CLAIMS_UNIT_MAX) {
        return 0;
    }

    op = us_op(US_OP_CLOCK, unit, NULL, 0);

    if (!us_ring_fits(a, us_op_size(&op))) {
        return -1;
    }

    us_intend_locked(a, &a->head->clock, unit);
    us_ring_put_locked(a, &op);
    us_commit_locked(a);

    return 0;
}


/* insertion sort of 256 at most */

void
us_store_pick_one(us_store_pick_t *picks, unsigned *n, uint64_t id, size_t at)
{
    unsigned  i;

    for (i = (*n)++; i && picks[i - 1].id > id; i--) {
        picks[i] = picks[i - 1];
    }

    picks[i].id = id;
    picks[i].at = (unsigned) at;
}


/*
 * Claims the first n picks, whose ids differ and which there is room for: by
 * one operation and one commit, or as many as a key can have in one.
 */

static void
us_store_claim_locked(us_store_t *s, unsigned n, uint32_t unit)
{
    uint8_t      ids[US_OP_CLAIM_MAX];
    us_op_t      op;
    uint64_t     last;
    unsigned     i, from, to, most;
    us_arena_t  *a;

    a = &s->arena;
    most = us_head(s)->key ? US_KEYS_AT_ONCE : US_STORE_GROUP;
    op = us_op(US_OP_CLAIM, unit, ids, 0);

    for (from = 0; from < n; from = to) {
        to = n - from < most ? n : from + most;
        op.bytes.len = 0;

        for (i = from, last = US_STORE_NO_ID; i < to; i++) {
            op.bytes.len += us_op_id_write(ids + op.bytes.len, last,
                                           s->picks[i].id);
            last = s->picks[i].id;
        }

        us_ring_put_locked(a, &op);

        /* the keys first: who finds a claim finds whose it is */

        for (i = from; i < to; i++) {
            us_keys_put_locked(a, US_KEYS_DUE, 0, s->picks[i].id);
        }

        for (i = from; i < to; i++) {
            us_claims_set_locked(a, s->picks[i].id, unit);
        }

        us_commit_locked(a);
    }
}


void
us_store_pick_locked(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older)
{
    unsigned          i, k;
    uint32_t          unit, before;
    uint64_t          last;
    us_head_t        *h;
    us_store_pick_t  *p;
    us_store_item_t  *item;

    h = us_head(s);
    before = us_store_before(s, older);
    us_bulk_keep_locked(&s->arena, 0);

    for (i = 0, k = 0, last = US_STORE_NO_ID; i < s->npicks; i++) {
        p = &s->picks[i];

        if (p->at >= n) {
            continue;
        }

        item = &items[p->at];
        unit = us_claims_read(&s->arena, p->id);

        /* the second of two equal URLs is seen */

        if (p->id == last || unit >= before) {
            item->status = US_SEEN;
            item->claimed = 0;

        } else if (us_claims_reserve_locked(&s->arena, p->id) != 0) {
            us_release(&h->full, 1);
            item->status = US_FULL;

        } else {
            item->claimed = unit * h->revisit;
            last = p->id;
            s->picks[k++] = *p;
        }
    }

    us_store_claim_locked(s, k, (uint32_t) h->clock);

    s->npicks = 0;
}


/* US_OK; or US_BUSY, US_FENCED: nothing was done */

static us_store_status_t
us_store_claim_group(us_store_t *s, us_store_claim_t *claims, size_t n,
    uint64_t at)
{
    size_t             i;
    unsigned           k;
    uint64_t           unit, last;
    us_store_pick_t   *p;
    us_store_claim_t  *c;
    us_store_status_t  status;

    for (i = 0, s->npicks = 0; i < n; i++) {
        us_store_pick_one(s->picks, &s->npicks, claims[i].id, i);
    }

    us_store_enter(s);

    status = us_store_fenced_locked(s) ? US_FENCED
             : us_store_tick_locked(s) != 0
               || us_keys_turn_locked(&s->arena, 0, 0) != 0
               || !us_ring_fits(&s->arena, us_store_pick_bytes(s)) ? US_BUSY
             : US_OK;

    if (status != US_OK) {
        us_store_leave(s);
        return status;
    }

    unit = us_store_revisit(s) ? at / us_store_revisit(s) : 0;
    unit = unit < us_head(s)->clock ? unit : us_head(s)->clock;

    us_bulk_keep_locked(&s->arena, 0);

    for (i = 0, k = 0, last = US_STORE_NO_ID; i < n; i++) {
        p = &s->picks[i];
        c = &claims[p->at];

        if (p->id >= us_store_next_id(s)) {
            c->status = US_UNKNOWN;

        } else if (us_deleted(&s->arena, p->id)) {
            c->status = US_DELETED;

        } else if (p->id == last) {
            c->status = US_OK;

        } else if (unit && us_claims_reserve_locked(&s->arena, p->id) != 0) {
            us_release(&us_head(s)->full, 1);
            c->status = US_FULL;

        } else {
            c->status = US_OK;
            last = p->id;
            s->picks[k++] = *p;
        }
    }

    us_store_claim_locked(s, k, (uint32_t) unit);

    s->npicks = 0;
    us_store_leave(s);

    return US_OK;
}


uint64_t
us_store_claim(us_store_t *s, us_store_claim_t *claims, size_t n, uint64_t at)
{
    size_t             group;
    us_store_status_t  status;

    for (status = US_OK; n; n -= group, claims += group) {
        group = n < US_STORE_GROUP ? n : US_STORE_GROUP;
        status = us_store_claim_group(s, claims, group, at);

        if (status != US_OK) {
            break;
        }
    }

    while (n--) {
        claims++->status = status;
    }

    return us_acquire(&us_head(s)->published);
}
