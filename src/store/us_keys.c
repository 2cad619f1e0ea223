
/*
 * The memory of keys.  See us_keys.h.
 */


#include "us_keys.h"
#include "us_ring.h"


/* entries that are looked at for the first one of new ids */
#define US_KEYS_LOW    16

/* entries in a row that a look-up passes over because they are dead */
#define US_KEYS_PASS   1024

/* entries of a bucket that a look-up reads, at most */
#define US_KEYS_STEPS  256


static inline us_keys_entry_t *
us_keys_entry(const us_arena_t *a, uint64_t at)
{
    return (us_keys_entry_t *) (a->base + a->head->keys)
           + at % a->head->keys_n;
}


static inline uint64_t *
us_keys_bucket(const us_arena_t *a, uint64_t name, uint64_t block)
{
    uint64_t  hash, n;

    n = a->head->keys_n;
    hash = (name ^ block * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;

    return (uint64_t *) ((us_keys_entry_t *) (a->base + a->head->keys) + n)
           + (hash >> 32) * n / ((uint64_t) 1 << 32);
}


static inline uint64_t
us_keys_block(us_keys_kind_t kind, uint64_t id)
{
    return id / 64 | (uint64_t) kind << 62;
}


/* what was put into a set: the names of a key differ by the set's number */

static inline uint64_t
us_keys_name(uint64_t name, uint64_t set)
{
    return name ^ set * 0x9e3779b97f4a7c15;
}


/* what is known until then is forgotten */

static void
us_keys_lose_locked(us_arena_t *a, uint64_t until)
{
    if (until > us_intended(a, &a->head->keys_lost)) {
        us_intend_locked(a, &a->head->keys_lost, until);
    }
}


/* intends the next entry; it is forgotten if the zone has no memory */

static void
us_keys_add_locked(us_arena_t *a, uint64_t name, uint64_t block,
    uint64_t bits, uint64_t until)
{
    uint64_t         end, newest, *bucket;
    us_head_t       *h;
    us_keys_entry_t  e, *p;

    h = a->head;

    if (h->keys_n == 0) {
        us_keys_lose_locked(a, until);
        return;
    }

    end = us_intended(a, &h->keys_end);
    bucket = us_keys_bucket(a, name, block);
    newest = us_intended(a, bucket);

    e.name = name;
    e.block = block;
    e.bits = bits;
    e.last = (uint32_t) until;

    if (newest && end - (newest - 1) < h->keys_n) {
        e.last |= (end - (newest - 1)) << 32;
    }

    /*
     * Release: a reader that finds a word of this entry in place of an older
     * one also finds that the older one is dead.
     */

    p = us_keys_entry(a, end);
    us_release(&p->name, e.name);
    us_release(&p->block, e.block);
    us_release(&p->bits, e.bits);
    us_release(&p->last, e.last);

    /* the one that dies with this commit */

    if (end >= h->keys_n - US_KEYS_SLACK) {
        p = us_keys_entry(a, end - (h->keys_n - US_KEYS_SLACK));
        us_keys_lose_locked(a, us_keys_until(p));
    }

    us_intend_locked(a, &h->keys_end, end + 1);
    us_intend_locked(a, bucket, end + 1);
}


void
us_keys_put_locked(us_arena_t *a, us_keys_kind_t kind, uint64_t set,
    uint64_t id)
{
    uint64_t          name, block, bits, end;
    us_head_t        *h;
    us_keys_entry_t  *e;

    h = a->head;

    if (h->key == 0) {
        return;
    }

    name = us_keys_name(h->key, set);
    block = us_keys_block(kind, id);
    bits = (uint64_t) 1 << id % 64;
    end = us_intended(a, &h->keys_end);

    if (end) {
        e = us_keys_entry(a, end - 1);

        if (e->name == name && e->block == block
            && us_keys_until(e) == h->key_until)
        {
            us_intend_locked(a, &e->bits, us_intended(a, &e->bits) | bits);
            return;
        }
    }

    us_keys_add_locked(a, name, block, bits, h->key_until);
}


void
us_keys_load_locked(us_arena_t *a, const us_keys_entry_t *e)
{
    if (e->bits) {
        us_keys_add_locked(a, e->name, e->block, e->bits, us_keys_until(e));

    } else {
        us_keys_lose_locked(a, us_keys_until(e));
    }

    us_commit_locked(a);
}


uint64_t
us_keys_first(const us_arena_t *a)
{
    uint64_t  end, n;

    end = us_acquire(&a->head->keys_end);
    n = a->head->keys_n;

    return n && end > n - US_KEYS_SLACK ? end - (n - US_KEYS_SLACK) : 0;
}


int
us_keys_read(const us_arena_t *a, uint64_t at, us_keys_entry_t *e)
{
    us_keys_entry_t  *p;

    /* acquire: the entries below it were written before */

    if (at >= us_acquire(&a->head->keys_end) || at < us_keys_first(a)) {
        return 0;
    }

    /* acquire, all: see us_keys_add_locked() */

    p = us_keys_entry(a, at);
    e->name = us_acquire(&p->name);
    e->block = us_acquire(&p->block);
    e->bits = us_acquire(&p->bits);
    e->last = us_acquire(&p->last);

    return at >= us_keys_first(a);
}


uint64_t
us_keys_low(const us_arena_t *a, us_keys_past_t *past, uint64_t now)
{
    uint64_t         at, end;
    us_keys_entry_t  e;

    /* a clock that goes back makes entries live again */

    at = now < past->now ? 0 : past->at;
    past->now = now;
    past->at = us_keys_first(a);
    past->at = at > past->at ? at : past->at;

    /* times need not ascend: it ends at the first entry that lives */

    for (end = past->at + US_KEYS_PASS; past->at < end; past->at++) {

        if (past->at >= us_acquire(&a->head->keys_end)) {
            return UINT64_MAX;
        }

        if (us_keys_read(a, past->at, &e) && us_keys_until(&e) > now) {
            break;
        }
    }

    /* blocks of new ids ascend */

    for (at = past->at, end = at + US_KEYS_LOW; at < end; at++) {

        if (at >= us_acquire(&a->head->keys_end)) {
            return UINT64_MAX;
        }

        if (!us_keys_read(a, at, &e)) {
            return 0;
        }

        if (e.block >> 62 == US_KEYS_NEW) {
            return e.block * 64;
        }
    }

    return 0;
}


int
us_keys_has(const us_arena_t *a, uint64_t name, us_keys_kind_t kind,
    uint64_t set, uint64_t id, uint64_t now)
{
    uint64_t         at, block;
    unsigned         i;
    us_keys_entry_t  e;

    if (a->head->keys_n == 0) {
        return 0;
    }

    name = us_keys_name(name, set);
    block = us_keys_block(kind, id);

    /* acquire: the entry that the bucket names was published before */

    at = us_acquire(us_keys_bucket(a, name, block));

    if (at-- == 0) {
        return 0;
    }

    for (i = 0; i < US_KEYS_STEPS && us_keys_read(a, at, &e); i++) {

        if (e.name == name && e.block == block && us_keys_until(&e) > now
            && (e.bits >> id % 64 & 1))
        {
            return 1;
        }

        if (us_keys_next(&e) == 0 || us_keys_next(&e) > at) {
            return 0;
        }

        at -= us_keys_next(&e);
    }

    return 0;
}


int
us_keys_turn_locked(us_arena_t *a, uint64_t name, uint64_t until)
{
    us_op_t     op;
    us_head_t  *h;

    h = a->head;

    /* an entry and the operation have 32 bits for it */

    if (until > UINT32_MAX) {
        until = UINT32_MAX;
    }

    if (h->key == name && (name == 0 || h->key_until == until)) {
        return 0;
    }

    op = name ? us_op(US_OP_KEY, until, &name, sizeof(name))
              : us_op(US_OP_KEY_END, 0, NULL, 0);

    if (!us_ring_fits(a, us_op_size(&op))) {
        return -1;
    }

    us_ring_put_locked(a, &op);
    us_intend_locked(a, &h->key, name);
    us_intend_locked(a, &h->key_until, until);
    us_commit_locked(a);

    return 0;
}
