
/*
 * The store's sets: made, dropped and told, and which ids are put in, or taken
 * out.  us_sets.c has how they lie in the zone.
 *
 * A group that is being added to a set is looked at without the lock first.
 * Under the lock, after the adds, what was not in is looked at again and put
 * in.  So of any number of writers one is answered that a URL is new to a set.
 */


#include "us_store_private.h"


us_store_set_t
us_store_set(us_store_t *s, us_str_t name)
{
    us_store_set_t  set;

    set.number = us_set_find(&s->arena, name, &set.row);

    return set;
}


int
us_store_set_is(us_store_t *s, us_store_set_t set)
{
    return set.number
           && us_acquire(&us_set_row(&s->arena, set.row)->number)
              == set.number;
}


int
us_store_set_has(us_store_t *s, us_store_set_t set, uint64_t id)
{
    return set.number && us_set_has(&s->arena, set.row, id)
           && us_store_set_is(s, set);
}


uint64_t
us_store_set_next(us_store_t *s, us_store_set_t set, uint64_t from,
    uint64_t to)
{
    us_set_run_t  run;

    return us_set_next(&s->arena, set.row, from, to, &run)
           && us_store_set_is(s, set) ? run.first : to;
}


void
us_store_set_asked(us_store_t *s, us_store_set_t set, uint64_t n)
{
    if (us_store_set_is(s, set)) {
        us_count(&us_set_row(&s->arena, set.row)->asked, n);
    }
}


uint64_t
us_store_sets(const us_store_t *s)
{
    return us_relaxed(&us_head(s)->sets);
}


int
us_store_set_info(us_store_t *s, uint32_t *row, us_store_set_info_t *info)
{
    size_t         i;
    uint64_t       n, word;
    us_set_row_t  *r;

    n = us_acquire(&us_head(s)->sets_rows);

    for ( /* void */ ; *row < n; (*row)++) {
        r = us_set_row(&s->arena, *row);
        info->set.number = us_acquire(&r->number);
        info->set.row = *row;

        if (info->set.number == 0 || (info->set.number & US_SET_DROPPED)) {
            continue;
        }

        for (i = 0; i < US_STORE_SET_LEN / 8; i++) {
            word = us_acquire((uint64_t *) r->name + i);
            memcpy(info->text + 8 * i, &word, 8);
        }

        info->name.data = info->text;
        info->name.len = us_acquire(&r->len);
        info->members = us_acquire(&r->members);
        info->bytes = sizeof(us_set_row_t) + us_acquire(&r->bytes);
        info->created = us_acquire(&r->created);
        info->asked = us_acquire(&r->asked);

        if (us_store_set_is(s, info->set)) {
            (*row)++;
            return 1;
        }
    }

    return 0;
}


us_store_status_t
us_store_set_make(us_store_t *s, us_str_t name, unsigned most,
    us_store_set_t *set, uint64_t *lsn)
{
    uint8_t             bytes[US_OP_SET_MAX];
    us_op_t             op;
    uint64_t            number;
    us_head_t          *h;
    us_store_status_t   status;

    h = us_head(s);

    us_store_enter(s);

    number = h->sets_last > US_STORE_MARKS ? h->sets_last + 1
                                           : US_STORE_MARKS + 1;
    op = us_op(US_OP_SET, number, bytes, sizeof(s->now) + name.len);
    memcpy(bytes, &s->now, sizeof(s->now));
    memcpy(bytes + sizeof(s->now), name.data, name.len);

    *set = us_store_set(s, name);

    if (set->number) {
        status = US_SEEN;

    } else if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (h->sets >= most || !(h->flags & US_HEAD_NAMES)) {
        status = US_FULL;

    } else if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        us_bulk_keep_locked(&s->arena, 0);
        status = us_set_make_locked(&s->arena, number, name, s->now, &op,
                                    &set->row) == 0 ? US_NEW : US_FULL;
        set->number = status == US_NEW ? number : 0;
    }

    *lsn = h->published;
    us_store_leave(s);

    return status;
}


us_store_status_t
us_store_set_drop(us_store_t *s, us_store_set_t set, uint64_t *lsn)
{
    int                 more;
    us_op_t             op;
    us_set_row_t       *row;
    us_store_status_t   status;

    op = us_op(US_OP_SET_DROP, set.number, NULL, 0);
    row = us_set_row(&s->arena, set.row);
    more = 0;

    us_store_enter(s);

    if (!us_store_set_is(s, set)) {
        status = US_GONE;

    } else if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (set.number <= US_STORE_MARKS
               || us_store_mark_number(s, (us_str_t) { row->len, row->name })
                  != -1)
    {
        status = US_SEEN;

    } else if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        us_set_drop_locked(&s->arena, set.row, &op);
        status = US_OK;
        more = 1;
    }

    *lsn = us_head(s)->published;
    us_store_leave(s);

    while (more) {
        us_store_enter(s);
        more = us_sets_tend_locked(&s->arena);
        us_store_leave(s);
    }

    return status;
}


/*
 * Puts what is picked into s->set, or takes it out.  answers: of s->puts.  -1:
 * there was no room for some.
 */

static int
us_store_put_picks_locked(us_store_t *s, int in, us_store_status_t *answers)
{
    size_t             k, n, done;
    unsigned           i;
    us_set_run_t       runs[US_STORE_GROUP];
    us_store_pick_t   *p;
    us_store_status_t  change;

    change = in ? US_NEW : US_OK;

    /* an id that comes twice is one run */

    for (i = 0, k = 0; i < s->nputs; i++) {
        p = &s->puts[i];
        answers[i] = in ? US_SEEN : US_UNSEEN;

        if ((i == 0 || p->id != p[-1].id)
            && us_set_has(&s->arena, s->set.row, p->id) != in)
        {
            answers[i] = change;
            runs[k].first = p->id;
            runs[k++].last = p->id;
        }
    }

    us_bulk_keep_locked(&s->arena, 0);

    done = us_set_change_locked(&s->arena, s->set.row, runs, k, in, 1);

    /* if it has no room, neither has room */

    for (i = 0, n = 0; i < s->nputs; i++) {
        p = &s->puts[i];

        if (answers[i] == change) {
            answers[i] = n++ < done ? change : US_FULL;

        } else if (i && p->id == p[-1].id && answers[i - 1] == US_FULL) {
            answers[i] = US_FULL;
        }
    }

    return done < k ? -1 : 0;
}


static us_store_status_t
us_store_put_group(us_store_t *s, us_store_claim_t *c, size_t n, int in,
    const us_store_key_t *key)
{
    size_t             i;
    us_store_status_t  status, answers[US_STORE_GROUP];

    us_store_enter(s);

    status = us_store_fenced_locked(s) ? US_FENCED
             : !us_store_set_is(s, s->set) ? US_GONE
             : us_keys_turn_locked(&s->arena, key ? key->name : 0,
                                   key ? key->until : 0) != 0
               || !us_ring_fits(&s->arena, us_set_op_bytes(n)) ? US_BUSY
             : US_OK;

    if (status != US_OK) {
        us_store_leave(s);
        return status;
    }

    s->nputs = 0;

    for (i = 0; i < n; i++) {

        if (c[i].id >= us_store_next_id(s)) {
            c[i].status = US_UNKNOWN;

        } else if (us_deleted(&s->arena, c[i].id)) {
            c[i].status = US_DELETED;

        } else {
            us_store_pick_one(s->puts, &s->nputs, c[i].id, i);
        }
    }

    (void) us_store_put_picks_locked(s, in, answers);

    us_store_leave(s);

    for (i = 0; i < s->nputs; i++) {
        c[s->puts[i].at].status = answers[i];
    }

    for (i = 0; key && in && i < n; i++) {
        if (c[i].status == US_SEEN
            && us_keys_has(&s->arena, key->name, US_KEYS_IN, s->set.number,
                           c[i].id, s->now))
        {
            c[i].status = US_NEW;
        }
    }

    return US_OK;
}


uint64_t
us_store_set_put(us_store_t *s, us_store_set_t set, us_store_claim_t *ids,
    size_t n, int in, const us_store_key_t *key)
{
    size_t             group;
    us_store_status_t  status;

    s->set = set;

    for (status = US_OK; n; n -= group, ids += group) {
        group = n < US_STORE_GROUP ? n : US_STORE_GROUP;
        status = us_store_put_group(s, ids, group, in, key);

        if (status != US_OK) {
            break;
        }
    }

    while (n--) {
        ids++->status = status;
    }

    s->set.number = 0;

    return us_acquire(&us_head(s)->published);
}


/* --- of a group that is being added to a set ------------------------------ */

void
us_store_put_locked(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t             i;
    us_store_status_t  answers[US_STORE_GROUP];

    s->nputs = 0;

    for (i = 0; i < n; i++) {
        if (items[i].wants
            && (items[i].status == US_NEW || items[i].status == US_SEEN))
        {
            us_store_pick_one(s->puts, &s->nputs, items[i].id, i);
        }
    }

    if (us_store_put_picks_locked(s, 1, answers) != 0) {
        us_release(&us_head(s)->full, 1);
    }

    for (i = 0; i < s->nputs; i++) {
        items[s->puts[i].at].put = answers[i];
    }

    s->nputs = 0;
}


void
us_store_members(us_store_t *s, us_store_set_t set, us_store_item_t *items,
    size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        items[i].stored = items[i].status;

        if (items[i].status == US_SEEN
            && !us_store_set_has(s, set, items[i].id))
        {
            items[i].status = US_UNSEEN;
        }
    }
}


unsigned
us_store_nmarks(const us_store_t *s)
{
    /* acquire: the names were stored before */

    return (unsigned) us_acquire(&us_head(s)->nmarks);
}


int
us_store_add_marks(us_store_t *s, const us_str_t *names, unsigned n)
{
    int         rc;
    unsigned    i;
    uint32_t    row;
    us_head_t  *h;

    h = us_head(s);

    us_store_enter(s);

    rc = (n < h->nmarks || n > US_STORE_MARKS) ? -1 : 0;

    for (i = 0; rc == 0 && i < n; i++) {

        if (names[i].len > US_STORE_MARK_LEN
            || (i < h->nmarks
                && us_str_compare(names[i], (us_str_t) { h->mark_len[i],
                                                         h->mark[i] }) != 0))
        {
            rc = -1;
        }
    }

    /*
     * A writer that is killed before the last line has declared nothing.  A set
     * that has the name is the mark's.
     */

    for (i = h->nmarks; rc == 0 && i < n; i++) {
        h->mark_len[i] = names[i].len;
        memcpy(h->mark[i], names[i].data, names[i].len);

        if (us_set_find(&s->arena, names[i], &row) == 0) {
            rc = us_set_make_locked(&s->arena, i + 1, names[i], 0, NULL, &row);
        }
    }

    if (rc == 0) {
        us_release(&h->nmarks, n);
    }

    us_store_leave(s);

    return rc;
}


int
us_store_mark_number(const us_store_t *s, us_str_t name)
{
    unsigned    i, n;
    us_head_t  *h;

    h = us_head(s);
    n = us_store_nmarks(s);

    for (i = 0; i < n; i++) {
        if (h->mark_len[i] == name.len
            && memcmp(h->mark[i], name.data, name.len) == 0)
        {
            return i;
        }
    }

    return -1;
}
