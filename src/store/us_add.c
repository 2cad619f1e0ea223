
/*
 * Operations that change the store, all under the lock: adds and deletes.
 * Claims are in us_claims.c, but that of a new URL is part of its add.  A group
 * that goes to a set is put in by operations that follow those of its adds.
 *
 * An add looks up all URLs of a group at once and encodes those not found, both
 * without the lock.  Then it takes the lock, looks up again those that can have
 * been added meanwhile, asks every part for room (which changes nothing that a
 * reader can see), writes where no reader looks yet, and publishes with one
 * commit.  The order of words in the commit is: leaves, key, log, LSN, next_id.
 * So a reader that sees a URL also sees the LSN that covers it, that it is
 * claimed, and the key that it is new to.
 */


#include "us_store_private.h"
#include "us_shard.h"


int
us_store_reserve_locked(us_store_t *s, uint64_t id, const us_hashes_t *hashes,
    int new_site)
{
    us_arena_t  *a;

    a = &s->arena;

    us_index_grow_locked(a, us_store_hash_all, s);

    if (us_index_reserve_locked(a, hashes, id, new_site) != 0) {
        return -1;
    }

    return new_site && us_head(s)->flags & US_HEAD_SITES
           ? us_site_reserve_locked(a) : 0;
}


void
us_store_index_locked(us_store_t *s, uint64_t id, const us_hashes_t *hashes,
    uint64_t site_first)
{
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;

    us_index_put_locked(a, hashes, id, site_first == US_STORE_NO_ID);

    if (site_first != US_STORE_NO_ID) {

        if (h->flags & US_HEAD_SITES) {
            us_site_count_locked(a, us_site_number(a, site_first), id);
        }

        return;
    }

    if (h->flags & US_HEAD_SITES) {
        us_site_add_locked(a, id);

    } else {
        us_intend_locked(a, &h->sites, h->sites + 1);
    }
}


/*
 * Under the lock: an item that was unseen without it.  moved: there have been
 * adds since it was looked up.
 */

static void
us_store_put(us_store_t *s, us_store_item_t *item, unsigned seat, int moved)
{
    uint32_t          units;
    us_op_t           op;
    us_head_t        *h;
    us_arena_t       *a;
    us_hashes_t       hashes;
    us_store_site_t   site;
    us_store_seat_t  *sl;
    const uint8_t    *bits;

    a = &s->arena;
    h = a->head;
    sl = &s->seats[seat];

    if (moved || sl->again) {
        us_store_look_locked(s, item);
    }

    if (item->status == US_SEEN) {
        us_record_added_locked(s->codec, seat, item->id);
        return;
    }

    if (us_erased_refuses_locked(s, item, &sl->erased)) {
        item->status = US_ERASED;
        return;
    }

    if (sl->site_first != US_STORE_NO_ID
        && us_deleted(a, sl->site_first))
    {
        /* it may have been erased since, as the last URL of the site */

        sl->site_first = US_STORE_NO_ID;
    }

    if (sl->site_first == US_STORE_NO_ID) {

        /*
         * No URL of the site was known when the group was looked up.  By now an
         * earlier item of the group, or another writer, may have added the
         * first one.  If not (the earlier item found no room), this URL is the
         * first, in its own spelling.
         */

        us_store_item_split(item);

        if (us_store_site_find(s, &sl->site, &site)) {
            sl->site_first = site.first;
            item->spelling = us_store_class(item, site.spelling);
        }

        if (item->spelling != sl->klass) {
            us_record_encode_locked(s->codec, seat, item->spelling,
                                    item->rest);
        }
    }

    units = us_record_emit_locked(s->codec, seat, h->next_id, &bits);

    op = us_op(US_OP_ADD, 0, bits, (units + 1) / 2);
    op.units = units;

    if (!us_ring_fits(a, us_op_size(&op) + us_store_pick_bytes(s))) {
        item->status = US_BUSY;
        return;
    }

    hashes.url = item->hash;
    hashes.site = sl->site.hash;

    us_bulk_keep_locked(&s->arena, 2);

    /* the log twice: the index may have taken its room */

    if (!us_arena_fits(a, us_arena_spare(a), op.bytes.len)
        || us_log_reserve_locked(a, h->next_id, units) != 0
        || us_store_reserve_locked(s, h->next_id, &hashes,
                                   sl->site_first == US_STORE_NO_ID)
           != 0
        || (h->clock && us_claims_reserve_locked(a, h->next_id) != 0)
        || us_log_reserve_locked(a, h->next_id, units) != 0)
    {
        /* the word alone matters, here and below */

        us_release(&h->full, 1);
        item->status = US_FULL;
        return;
    }

    item->id = h->next_id;
    item->new_site = sl->site_first == US_STORE_NO_ID;
    item->status = US_NEW;

    us_log_write_locked(a, item->id, bits, units);

    if (h->clock) {
        us_claims_write_locked(a, item->id, (uint32_t) h->clock);
    }

    us_store_index_locked(s, item->id, &hashes, sl->site_first);
    us_keys_put_locked(a, US_KEYS_NEW, 0, item->id);
    us_log_append_locked(a, units);
    us_ring_put_locked(a, &op);
    us_intend_locked(a, &h->next_id, item->id + 1);
    us_commit_locked(a);

    us_release(&h->full, 0);
    us_record_added_locked(s->codec, seat, item->id);
}


/* an open hash table of a group's seats, number + 1 */

#define US_PLACES  (2 * US_STORE_GROUP)

typedef struct {
    uint16_t  seats[US_PLACES];
    uint64_t  hashes[US_STORE_GROUP];
} us_store_places_t;


/* the first seat of the group with this hash; i: there was none before */

static size_t
us_store_place(us_store_places_t *p, uint64_t hash, size_t i)
{
    size_t  at;

    for (at = hash % US_PLACES; p->seats[at]; at = (at + 1) % US_PLACES) {
        if (p->hashes[p->seats[at] - 1] == hash) {
            return p->seats[at] - 1;
        }
    }

    p->seats[at] = (uint16_t) (i + 1);
    p->hashes[i] = hash;

    return i;
}


/*
 * Looks a group up and encodes what is unseen; returns how much that is.  The
 * site and the spelling of an unseen item are settled as far as known now.
 * Known URLs that are due are picked.
 */

static size_t
us_store_add_look(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older)
{
    size_t              i, first, unseen;
    us_store_site_t     site;
    us_store_seat_t    *sl;
    us_store_item_t    *item;
    us_store_places_t   sites, urls;

    us_store_seen(s, items, n);
    s->npicks = 0;

    if (older && us_store_due(s, items, n, older)) {
        for (i = 0; i < n; i++) {
            if (items[i].status == US_DUE) {
                us_store_pick_one(s->picks, &s->npicks, items[i].id, i);
            }
        }
    }

    for (i = 0, unseen = 0; i < n; i++) {
        item = &items[i];
        sl = &s->seats[i];

        if (item->status != US_UNSEEN) {
            continue;
        }

        if (s->map.number && item->slot == US_SLOT_SEALED) {
            item->status = US_MOVED;
            continue;
        }

        if (us_head(s)->flags & US_HEAD_LOOKUP) {
            item->status = US_UNKNOWN;
            continue;
        }

        if (unseen++ == 0) {
            us_record_begin(s->codec);
            memset(sites.seats, 0, sizeof(sites.seats));
            memset(urls.seats, 0, sizeof(urls.seats));
        }

        sl->site = us_store_item_site(s, item);
        sl->site_first = US_STORE_NO_ID;
        sl->erased.known = 0;

        if (us_relaxed(&us_head(s)->erasures_live)) {
            us_erased_item(s, item, &sl->erased);
        }

        sl->again = us_store_place(&urls, item->hash, i) != i;
        first = us_store_place(&sites, sl->site.hash
                                       ^ (sl->site.www == US_SPELLING_WWW), i);

        if (first != i) {
            sl->site_first = s->seats[first].site_first;
            item->spelling = us_store_class(item, s->seats[first].klass);

        } else if (us_store_site_recall(s, &sl->site, &site)
                   || us_store_site_find(s, &sl->site, &site))
        {
            sl->site_first = site.first;
            item->spelling = us_store_class(item, site.spelling);
        }

        sl->klass = item->spelling;
        us_record_encode(s->codec, i, sl->klass, item->rest);
    }

    return unseen;
}


/* not done yet: to be added, claimed or put into a set */

static inline int
us_store_undone(const us_store_item_t *item)
{
    return item->status == US_UNSEEN || item->status == US_DUE || item->wants;
}


/* whether an item that is to be claimed, or put into a set, was deleted */

static int
us_store_gone_locked(us_store_t *s, const us_store_item_t *items, size_t n)
{
    size_t  i;

    for (i = 0; i < s->npicks; i++) {
        if (us_deleted(&s->arena, s->picks[i].id)) {
            return 1;
        }
    }

    for (i = 0; s->nputs && i < n; i++) {
        if (items[i].wants && items[i].status == US_SEEN
            && us_deleted(&s->arena, items[i].id))
        {
            return 1;
        }
    }

    return 0;
}


/* answers known items that were new or due to the key before, so again */

static void
us_store_repeat(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older, const us_store_key_t *key)
{
    size_t       i;
    uint64_t     low;
    us_arena_t  *a;

    a = &s->arena;
    low = key ? us_keys_low(a, &s->keys_past, s->now) : 0;

    for (i = 0; key && i < n; i++) {

        if (items[i].status != US_SEEN) {
            continue;
        }

        if (items[i].id >= low
            && us_keys_has(a, key->name, US_KEYS_NEW, 0, items[i].id, s->now))
        {
            items[i].status = US_NEW;
            items[i].new_site = us_store_first_of_site(s, items[i].id);

        } else if (older && us_keys_has(a, key->name, US_KEYS_DUE, 0,
                                        items[i].id, s->now))
        {
            items[i].status = US_DUE;

        } else {
            continue;
        }

        items[i].again = 1;
    }
}


/*
 * Of a set: what each item is to it.  An item that was put in for the key is
 * so again.
 */

static void
us_store_answer_set(us_store_t *s, us_store_item_t *items, size_t n,
    const us_store_key_t *key)
{
    us_store_item_t  *item;

    for (item = items; s->set.number && item < items + n; item++) {

        item->stored = item->status;

        if (item->status != US_NEW && item->status != US_SEEN) {
            continue;
        }

        item->again = key && item->put == US_SEEN
                      && us_keys_has(&s->arena, key->name, US_KEYS_IN,
                                     s->set.number, item->id, s->now);
        item->status = item->again ? US_NEW : item->put;
    }
}


/* whether an id is in s->set: in the run that was found last, or another one */

static int
us_store_in_run(us_store_t *s, uint64_t id, us_set_run_t *run)
{
    if (id >= run->first && id <= run->last) {
        return 1;
    }

    if (us_set_next(&s->arena, s->set.row, id, (id | 0xffff) + 1, run)
        && run->first == id)
    {
        return 1;
    }

    run->first = 1;
    run->last = 0;

    return 0;
}


/*
 * For s->set, without the lock: which items are not in it, and the number of
 * those.  Links of pages lie together: a run that one is in has others, too.
 */

static size_t
us_store_want(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t        i;
    us_set_run_t  run;

    s->nputs = 0;
    run.first = 1;
    run.last = 0;                            /* none */

    for (i = 0; i < n; i++) {
        items[i].put = US_SEEN;
        items[i].wants = s->set.number
                         && (items[i].status == US_UNSEEN
                             || (items[i].status == US_SEEN
                                 && !us_store_in_run(s, items[i].id, &run)));
        s->nputs += items[i].wants;
    }

    return s->nputs;
}


/* US_OK; or what an item is, and all that follow it: US_BUSY, _FENCED, _GONE */

static us_store_status_t
us_store_add_group(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older, const us_store_key_t *key)
{
    int                busy, moved;
    size_t             i, k, unseen;
    uint64_t           next;
    us_store_status_t  status;

again:

    /* acquire: the look-ups read what was added below this id, or more */

    next = us_acquire(&us_head(s)->next_id);
    unseen = us_store_add_look(s, items, n, older);

    if (us_store_want(s, items, n) + unseen + s->npicks == 0
        && (s->set.number == 0 || us_store_set_is(s, s->set)))
    {
        us_store_repeat(s, items, n, older, key);
        us_store_answer_set(s, items, n, key);
        return US_OK;
    }

    us_store_enter(s);

    /* what was looked at in a row that is another set's now counts for none */

    status = s->set.number && !us_store_set_is(s, s->set) ? US_GONE
             : us_store_fenced_locked(s) ? US_FENCED : US_OK;

    if (status != US_OK) {
        us_store_leave(s);

        while (status == US_FENCED && !us_store_undone(items)) {
            items++;
        }

        return items->status = status;
    }

    if (us_shard_changed_locked(s) || us_store_gone_locked(s, items, n)) {

        /*
         * Nothing was done yet: the slots have other owners now; or that URL is
         * unseen now, or known by a new id.
         */

        us_store_leave(s);
        goto again;
    }

    moved = us_head(s)->next_id != next;

    /* the picked are claimed last: their operation must find its room then */

    busy = us_store_tick_locked(s) != 0
           || us_keys_turn_locked(&s->arena, key ? key->name : 0,
                                  key ? key->until : 0)
              != 0
           || !us_ring_fits(&s->arena, us_store_pick_bytes(s));

    for (i = 0; i < n; i++) {

        if (items[i].status == US_UNSEEN && !busy) {
            us_store_put(s, &items[i], i, moved);
            busy = items[i].status == US_BUSY;
        }

        if (busy && us_store_undone(&items[i])) {
            items[i].status = US_BUSY;
        }

        if (items[i].status == US_BUSY) {
            break;
        }
    }

    if (s->npicks) {
        us_store_pick_locked(s, items, i, older);
    }

    if (s->nputs) {
        us_store_put_locked(s, items, i);
    }

    us_store_leave(s);

    for (k = 0; k < i; k++) {
        if (items[k].status == US_NEW) {
            us_store_remember(s, &items[k], k);
        }
    }

    us_store_repeat(s, items, i, older, key);
    us_store_answer_set(s, items, i, key);

    return i < n ? US_BUSY : US_OK;
}


uint64_t
us_store_add_set(us_store_t *s, us_store_item_t *items, size_t n,
    us_store_set_t set, const us_store_key_t *key)
{
    uint64_t  lsn;

    s->set = set;
    lsn = us_store_add_key(s, items, n, 0, key);
    s->set.number = 0;

    return lsn;
}


uint64_t
us_store_add(us_store_t *s, us_store_item_t *items, size_t n)
{
    return us_store_add_older(s, items, n, 0);
}


uint64_t
us_store_add_older(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older)
{
    return us_store_add_key(s, items, n, older, NULL);
}


uint64_t
us_store_add_key(us_store_t *s, us_store_item_t *items, size_t n,
    uint32_t older, const us_store_key_t *key)
{
    size_t             group;
    us_store_status_t  status;

    for (status = US_OK; n; n -= group, items += group) {
        group = n < US_STORE_GROUP ? n : US_STORE_GROUP;
        status = us_store_add_group(s, items, group, older, key);

        if (status != US_OK) {
            break;
        }
    }

    /*
     * All items after the busy one are busy too, though a shorter one may fit.
     * The caller submits them again, and would get US_SEEN for one that was
     * added here.
     */

    while (n && items->status != status) {
        items++;
        n--;
    }

    while (n--) {
        items++->status = status;
    }

    return us_acquire(&us_head(s)->published);
}


us_store_status_t
us_store_forget_locked(us_store_t *s, uint64_t id, const us_hashes_t *hashes,
    const us_op_t *op, uint64_t *count)
{
    uint64_t         *word;
    us_head_t        *h;
    us_arena_t       *a;
    unsigned          klass;
    us_str_t          rest;
    us_sought_t       site;
    us_removal_t      removal;
    us_store_site_t   out;

    a = &s->arena;
    h = a->head;

    if (op) {
        us_bulk_keep_locked(&s->arena, 0);
    }

    if (us_arena_allot_locked(a, US_AREA_DELETED, id / 64 * sizeof(uint64_t))
        != 0)
    {
        return US_FULL;
    }

    if (hashes) {

        out.first = US_STORE_NO_ID;

        if (h->flags & US_HEAD_SITES) {
            rest = us_store_rest(s, id, s->url, &klass);
            site = us_store_record_site(s, klass, rest);
            us_store_site_find(s, &site, &out);
        }

        us_index_remove_prepare_locked(a, hashes->url, id, &removal);

        if (out.first != US_STORE_NO_ID) {
            us_site_uncount_locked(a, us_site_number(a, out.first));
        }
    }

    /*
     * The LSN before the bit: a reader that sees the bit also sees the LSN that
     * covers it.  The bit before the index: no URL may be unseen while its id
     * still returns it.
     */

    if (op) {
        us_ring_put_locked(a, op);
    }

    word = us_deleted_word(a, id / 64);
    us_intend_locked(a, word, us_relaxed(word) | (uint64_t) 1 << id % 64);
    us_intend_locked(a, &h->deleted, h->deleted + 1);
    us_claims_set_locked(a, id, 0);

    if (count) {
        us_intend_locked(a, count, *count + 1);
    }

    if (hashes) {
        us_index_remove_locked(a, &removal);
    }

    us_commit_locked(a);

    return US_OK;
}


us_store_status_t
us_store_delete(us_store_t *s, uint64_t id, int *was, uint64_t *lsn)
{
    us_op_t            op;
    us_head_t         *h;
    us_arena_t        *a;
    us_hashes_t        hashes;
    us_store_status_t  status;

    a = &s->arena;
    h = a->head;
    *was = 0;

    if (id >= us_store_next_id(s)) {
        *lsn = us_acquire(&us_head(s)->published);
        return US_UNKNOWN;
    }

    /* without the lock: the first record that a process reads takes 1 ms */

    us_store_hashes(s, id, &hashes);

    us_store_enter(s);

    op = us_op(US_OP_DELETE, id, NULL, 0);

    if (us_store_fenced_locked(s)) {
        status = US_FENCED;

    } else if (us_deleted(a, id)) {
        *was = 1;
        status = US_OK;

    } else if (!us_ring_fits(a, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        status = us_store_forget_locked(s, id, &hashes, &op, NULL);
    }

    *lsn = h->published;
    us_store_leave(s);

    return status;
}


int
us_store_deleted(us_store_t *s, uint64_t id)
{
    return us_deleted(&s->arena, id);
}
