
/*
 * The area of kept answers: see us_idem.h.
 *
 *     +------+---------+--------+--------+----------------------------------+
 *     | head | buckets | tags   | places | ring                             |
 *     +------+---------+--------+--------+----------------------------------+
 *
 * Answers are entries of a ring, in the order in which they were kept:
 *
 *     ring     .....|entry|entry|entry|entry|.........   at % ring size
 *                   ^tail                   ^head
 *     entry    | until, key, print, next, len | len bytes |
 *     bucket   the newest entry of its keys, as its `at` + 1; 0: none
 *     next     the next older entry of the bucket, in the same way
 *
 * tail and head count bytes since the area was made, so each `at` names one
 * entry for ever.  Moving tail drops the oldest entry: an `at` below tail is
 * the end of its bucket's list, whatever the ring has there now.  Nothing else
 * is taken out, and an entry never changes.
 *
 * A request under way has a place: its names, and the process that executes
 * it.  tags[i] is part of the key of places[i], or 0 if the place is free.  A
 * key is in one of the US_IDEM_PROBE places that follow its hash.
 *
 * All of it is read and written under the lock.  A process can be killed
 * between any two instructions of an update.  So each update is prepared
 * where nobody looks, and becomes visible by one store:
 *
 *     an entry is dropped     tail
 *     an entry is written     in front of head, then head, then its bucket
 *     a place is taken        its contents, then its tag
 *     a place is given up     its tag
 *
 * An update that is cut off leaves an entry that no bucket names, or the place
 * of a dead process.  The entry's turn to be dropped comes as that of all
 * others, and a place is given up when its process is found dead.
 */


#include "us_idem.h"
#include "../us_atomic.h"


#define US_IDEM_MAGIC   0x3130656d65646975      /* "uideme01" */

/* places that are tried for a key */
#define US_IDEM_PROBE   32

/* bytes of ring for one bucket, bytes of the area for one place */
#define US_IDEM_BUCKET  256
#define US_IDEM_PLACE   4096

/* the longest answer is this part of the ring */
#define US_IDEM_PART    8

/* expired entries that one update drops, so that no update takes long */
#define US_IDEM_EXPIRE  16


struct us_idem_head_s {
    uint64_t          magic;
    uint8_t           secret[16];
    uint64_t          size;           /* of the area */
    uint64_t          buckets;        /* a power of 2, as is places */
    uint64_t          places;
    uint64_t          ring;           /* bytes */
    uint64_t          tail;
    uint64_t          head;
    uint64_t          dropped;
};


typedef struct {
    us_idem_name_t    key;
    us_idem_name_t    print;
    uint64_t          owner;
} us_idem_place_t;


typedef struct {
    uint64_t          until;
    us_idem_name_t    key;
    us_idem_name_t    print;
    uint64_t          next;
    uint64_t          len;
} us_idem_entry_t;


/* what one look under the lock has found beside its status */

typedef struct {
    us_process_t      owner[US_IDEM_PROBE];
    unsigned          n;
} us_idem_owners_t;


static inline uint64_t *
us_idem_buckets(us_idem_head_t *h)
{
    return (uint64_t *) (h + 1);
}


static inline uint64_t *
us_idem_tags(us_idem_head_t *h)
{
    return us_idem_buckets(h) + h->buckets;
}


static inline us_idem_place_t *
us_idem_places(us_idem_head_t *h)
{
    return (us_idem_place_t *) (us_idem_tags(h) + h->places);
}


static inline uint8_t *
us_idem_ring(us_idem_head_t *h)
{
    return (uint8_t *) (us_idem_places(h) + h->places);
}


static inline int
us_idem_same(const us_idem_name_t *a, const us_idem_name_t *b)
{
    return a->w[0] == b->w[0] && a->w[1] == b->w[1];
}


/* bytes of the ring, of an answer of len bytes */

static inline uint64_t
us_idem_span(uint64_t len)
{
    return sizeof(us_idem_entry_t) + len;
}


/* bucket and place use different bits of the key */

static inline uint64_t *
us_idem_bucket(us_idem_head_t *h, const us_idem_name_t *key)
{
    return &us_idem_buckets(h)[key->w[0] & (h->buckets - 1)];
}


static inline uint64_t
us_idem_tag(const us_idem_name_t *key)
{
    return key->w[0] | 1;
}


/* the n-th place that the key may have */

static inline uint64_t
us_idem_probe(us_idem_head_t *h, const us_idem_name_t *key, uint64_t n)
{
    return (key->w[1] + n) & (h->places - 1);
}


static uint64_t
us_idem_power(uint64_t n)
{
    uint64_t  p;

    for (p = US_IDEM_PROBE; p * 2 <= n; p *= 2) { /* void */ }

    return p;
}


int
us_idem_format(void *mem, size_t size, const uint8_t secret[16])
{
    us_idem_head_t  *h;

    if (size < US_IDEM_MIN) {
        return -1;
    }

    h = mem;

    memcpy(h->secret, secret, 16);

    h->size = size;
    h->buckets = us_idem_power(size / US_IDEM_BUCKET);
    h->places = us_idem_power(size / US_IDEM_PLACE);
    h->ring = (uint8_t *) mem + size - us_idem_ring(h);
    h->magic = US_IDEM_MAGIC;

    return 0;
}


int
us_idem_open(us_idem_t *t, void *mem, const us_idem_lock_t *lock)
{
    us_idem_head_t  *h;

    h = mem;

    if (h->magic != US_IDEM_MAGIC) {
        return -1;
    }

    t->head = h;
    t->lock = *lock;
    t->self = us_process_self();

    return 0;
}


void
us_idem_name_init(const us_idem_t *t, us_hash128_t *h)
{
    us_hash128_init(h, t->head->secret);
}


size_t
us_idem_answer_max(const us_idem_t *t)
{
    size_t  max;

    max = t->head->ring / US_IDEM_PART - sizeof(us_idem_entry_t);

    return max < US_IDEM_ANSWER_MAX ? max : US_IDEM_ANSWER_MAX;
}


/* copies between the ring and other memory, past the ring's end as well */

static void
us_idem_read(us_idem_head_t *h, uint64_t at, void *p, size_t len)
{
    size_t  n;

    at %= h->ring;
    n = h->ring - at < len ? h->ring - at : len;

    memcpy(p, us_idem_ring(h) + at, n);
    memcpy((uint8_t *) p + n, us_idem_ring(h), len - n);
}


static void
us_idem_write(us_idem_head_t *h, uint64_t at, const void *p, size_t len)
{
    size_t  n;

    at %= h->ring;
    n = h->ring - at < len ? h->ring - at : len;

    memcpy(us_idem_ring(h) + at, p, n);
    memcpy(us_idem_ring(h), (const uint8_t *) p + n, len - n);
}


/* reads the head of the oldest entry; 0: there is none */

static int
us_idem_oldest_locked(us_idem_head_t *h, us_idem_entry_t *e)
{
    if (h->tail == h->head) {
        return 0;
    }

    us_idem_read(h, h->tail, e, sizeof(us_idem_entry_t));

    return 1;
}


static void
us_idem_drop_locked(us_idem_head_t *h, const us_idem_entry_t *e, uint64_t now)
{
    if (e->until > now) {
        h->dropped++;
    }

    /* release: the compiler stores no byte of the next entry before it */

    us_release(&h->tail, h->tail + us_idem_span(e->len));
}


static void
us_idem_expire_locked(us_idem_head_t *h, uint64_t now)
{
    unsigned         n;
    us_idem_entry_t  e;

    for (n = 0; n < US_IDEM_EXPIRE; n++) {

        if (!us_idem_oldest_locked(h, &e) || e.until > now) {
            return;
        }

        us_idem_drop_locked(h, &e, now);
    }
}


/* the newest answer of the key that has not expired; 0: there is none */

static int
us_idem_find_locked(us_idem_head_t *h, const us_idem_name_t *key,
    uint64_t now, uint64_t *at, us_idem_entry_t *e)
{
    uint64_t  next;

    next = *us_idem_bucket(h, key);

    while (next > h->tail) {
        *at = next - 1;

        us_idem_read(h, *at, e, sizeof(us_idem_entry_t));

        if (us_idem_same(&e->key, key)) {
            return e->until > now;
        }

        next = e->next;
    }

    return 0;
}


/*
 * The place of a key that is under way.  -1: there is none; *room is a free
 * place then, or -1.  owners has who is in the places that were looked at.
 */

static int64_t
us_idem_place_locked(us_idem_head_t *h, const us_idem_name_t *key,
    int64_t *room, us_idem_owners_t *owners)
{
    uint64_t          i, n, *tags;
    us_idem_place_t  *place;

    tags = us_idem_tags(h);

    *room = -1;
    owners->n = 0;

    for (n = 0; n < US_IDEM_PROBE; n++) {
        i = us_idem_probe(h, key, n);
        place = &us_idem_places(h)[i];

        if (tags[i] == 0) {
            if (*room == -1) {
                *room = i;
            }

            continue;
        }

        if (tags[i] == us_idem_tag(key) && us_idem_same(&place->key, key)) {
            owners->owner[0] = place->owner;
            owners->n = 1;
            return i;
        }

        owners->owner[owners->n++] = place->owner;
    }

    return -1;
}


static us_idem_status_t
us_idem_begin_locked(us_idem_t *t, us_idem_ticket_t *ticket,
    us_idem_answer_t *answer, uint64_t now, us_idem_owners_t *owners)
{
    int64_t           i, room;
    uint64_t          at;
    us_idem_head_t   *h;
    us_idem_entry_t   e;
    us_idem_place_t  *place;

    h = t->head;
    owners->n = 0;

    if (us_idem_find_locked(h, &ticket->key, now, &at, &e)) {

        if (!us_idem_same(&e.print, &ticket->print)) {
            return US_IDEM_OTHER;
        }

        answer->at = at;
        answer->len = e.len;

        return US_IDEM_KEPT;
    }

    i = us_idem_place_locked(h, &ticket->key, &room, owners);

    if (i != -1) {
        return us_idem_same(&us_idem_places(h)[i].print, &ticket->print)
               ? US_IDEM_UNDER_WAY : US_IDEM_OTHER;
    }

    if (room == -1) {
        return US_IDEM_BUSY;
    }

    place = &us_idem_places(h)[room];
    place->key = ticket->key;
    place->print = ticket->print;
    place->owner = t->self;

    /* release: the place has its contents */

    us_release(&us_idem_tags(h)[room], us_idem_tag(&ticket->key));

    ticket->place = room;

    return US_IDEM_NEW;
}


/* gives up what a dead process has of the places that the key may have */

static void
us_idem_bury(us_idem_t *t, const us_idem_name_t *key, us_process_t dead)
{
    uint64_t         i, n;
    us_idem_head_t  *h;

    h = t->head;

    t->lock.lock(t->lock.data);

    for (n = 0; n < US_IDEM_PROBE; n++) {
        i = us_idem_probe(h, key, n);

        if (us_idem_tags(h)[i] && us_idem_places(h)[i].owner == dead) {
            us_release(&us_idem_tags(h)[i], 0);
        }
    }

    t->lock.unlock(t->lock.data);
}


/*
 * The first dead process among the owners, or 0.  Whether a process lives
 * takes system calls, so the lock is not held.
 */

static us_process_t
us_idem_dead(const us_idem_t *t, const us_idem_owners_t *owners)
{
    unsigned      i;
    us_process_t  owner;

    for (i = 0; i < owners->n; i++) {
        owner = owners->owner[i];

        if (owner != t->self && (i == 0 || owner != owners->owner[i - 1])
            && !us_process_alive(owner))
        {
            return owner;
        }
    }

    return 0;
}


us_idem_status_t
us_idem_begin(us_idem_t *t, const us_idem_name_t *key,
    const us_idem_name_t *print, uint64_t now, us_idem_ticket_t *ticket,
    us_idem_answer_t *answer)
{
    unsigned           n;
    us_process_t       dead;
    us_idem_owners_t   owners;
    us_idem_status_t   status;

    ticket->key = *key;
    ticket->print = *print;
    n = 0;

    for ( ;; ) {
        t->lock.lock(t->lock.data);

        us_idem_expire_locked(t->head, now);
        status = us_idem_begin_locked(t, ticket, answer, now, &owners);

        t->lock.unlock(t->lock.data);

        /* a dead owner for each place that the key may have, at most */

        if (status < US_IDEM_UNDER_WAY || n++ == US_IDEM_PROBE) {
            return status;
        }

        dead = us_idem_dead(t, &owners);

        if (dead == 0) {
            return status;
        }

        us_idem_bury(t, key, dead);
    }
}


int
us_idem_copy(us_idem_t *t, const us_idem_answer_t *answer, uint8_t *p)
{
    int              rc;
    us_idem_head_t  *h;

    h = t->head;
    rc = -1;

    t->lock.lock(t->lock.data);

    if (answer->at >= h->tail) {
        us_idem_read(h, answer->at + sizeof(us_idem_entry_t), p, answer->len);
        rc = 0;
    }

    t->lock.unlock(t->lock.data);

    return rc;
}


int
us_idem_keep(us_idem_t *t, const us_idem_ticket_t *ticket,
    const us_str_t *parts, size_t n, uint64_t now, uint64_t until)
{
    size_t            i, len;
    uint64_t          at, span, *bucket;
    us_idem_head_t   *h;
    us_idem_entry_t   e, old;

    for (len = 0, i = 0; i < n; i++) {
        len += parts[i].len;
    }

    if (len > us_idem_answer_max(t)) {
        us_idem_release(t, ticket);
        return -1;
    }

    h = t->head;
    bucket = us_idem_bucket(h, &ticket->key);
    span = us_idem_span(len);

    e.until = until;
    e.key = ticket->key;
    e.print = ticket->print;
    e.len = len;

    t->lock.lock(t->lock.data);

    while (h->ring - (h->head - h->tail) < span
           && us_idem_oldest_locked(h, &old))
    {
        us_idem_drop_locked(h, &old, now);
    }

    at = h->head;
    e.next = *bucket;

    us_idem_write(h, at, &e, sizeof(us_idem_entry_t));
    at += sizeof(us_idem_entry_t);

    for (i = 0; i < n; i++) {
        us_idem_write(h, at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }

    /*
     * release, three times: the entry is whole before it is in the ring, and
     * in the ring before it can be found; the key is under way until then.
     */

    at = h->head;
    us_release(&h->head, at + span);
    us_release(bucket, at + 1);
    us_release(&us_idem_tags(h)[ticket->place], 0);

    t->lock.unlock(t->lock.data);

    return 0;
}


void
us_idem_release(us_idem_t *t, const us_idem_ticket_t *ticket)
{
    t->lock.lock(t->lock.data);

    us_release(&us_idem_tags(t->head)[ticket->place], 0);

    t->lock.unlock(t->lock.data);
}


void
us_idem_info(us_idem_t *t, us_idem_info_t *info)
{
    us_idem_head_t  *h;

    h = t->head;

    t->lock.lock(t->lock.data);

    info->size = h->size;
    info->used = h->head - h->tail;
    info->dropped = h->dropped;

    t->lock.unlock(t->lock.data);
}


static const char *
us_idem_check_locked(us_idem_head_t *h)
{
    uint64_t         i, at, next;
    us_idem_entry_t  e;

    if (h->head - h->tail > h->ring) {
        return "more bytes than the ring has";
    }

    for (at = h->tail; at < h->head; at += us_idem_span(e.len)) {
        us_idem_read(h, at, &e, sizeof(us_idem_entry_t));

        if (e.len > h->ring || us_idem_span(e.len) > h->head - at) {
            return "an entry ends past the head";
        }
    }

    if (at != h->head) {
        return "the last entry does not end at the head";
    }

    for (i = 0; i < h->buckets; i++) {
        at = h->head + 1;

        for (next = us_idem_buckets(h)[i]; next > h->tail; next = e.next) {

            if (next >= at) {
                return "a list does not go towards the tail";
            }

            at = next;
            us_idem_read(h, at - 1, &e, sizeof(us_idem_entry_t));

            if (us_idem_bucket(h, &e.key) != &us_idem_buckets(h)[i]) {
                return "an entry is in the list of another bucket";
            }
        }
    }

    return NULL;
}


const char *
us_idem_check(us_idem_t *t)
{
    const char  *why;

    t->lock.lock(t->lock.data);
    why = us_idem_check_locked(t->head);
    t->lock.unlock(t->lock.data);

    return why;
}
