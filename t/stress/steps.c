
/*
 * A writer that dies after each of its stores, one by one.
 *
 * For each kind of change a store is prepared.  While the writer that does the
 * change holds the lock, the zone can only be read.  An instruction that stores
 * to it is interrupted (SIGSEGV), the zone is opened, that instruction alone is
 * executed (SIGTRAP: the trap flag of x86-64, a breakpoint after it on arm64),
 * and the zone is closed again.
 * What is in it then is what the writer would have left, had it been killed
 * there.  A copy is looked at as
 *
 *     a reader        finds all that was there, and nothing that is not whole;
 *     the next writer completes the change or finds it undone, does it again,
 *                     and goes on;
 *     a restart       its journal makes the same store in a zone of the SAME
 *                     size.
 *
 *     steps [all | NAME]
 *
 * Sets get ids that no URL has, for these need millions of URLs.  A journal
 * with such ids is refused, so these copies are not restarted; but each change
 * is compared with what a set has to be, and their memory with its counters.
 *
 * Loops that store to one address after the other (a model, a very long record)
 * are interrupted now and then only, and few copies are restarted: `all` looks
 * at every copy in every way.
 */


#include "us_base.h"
#include "../unit/stream.h"
#include "map.h"
#include "store/us_erase.h"
#include "store/us_index.h"
#include "../unit/marks.h"
#include "../unit/members.h"
#include "store/us_erasures.h"
#include "store/us_keys.h"
#include "store/us_store_private.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define SMALL      ((size_t) 480 << 10)
#define MEDIUM     ((size_t) 2 << 20)
#define LARGE      ((size_t) 8 << 20)
#define RING       ((size_t) 1 << 16)

#define CHECKED    500                /* URLs that are looked up in a copy */
#define LOOP       500                /* one store of so many of a loop */
#define RESTART    16                 /* one copy of so many, and */
#define RESTARTED  2000               /* of one more for so many URLs */
#define PATIENCE   60                 /* seconds for a copy */

#define FULL       UINT_MAX           /* until no URL is taken any more */
#define NEARLY     (FULL - 1)         /* one URL less */


/* so many ids: first, first + step, ... */

typedef struct {
    uint64_t     first;
    unsigned     step;
    unsigned     n;
} some_t;


/* what a set has, which is not lost, and what is put in, or taken out */

typedef struct {
    some_t       had[4];
    some_t       ids[4];
    int          in;
} far_t;


/* which ids a change erases: the middle one, or all of its site */

#define ERASES_ID    1
#define ERASES_SITE  2


typedef struct {
    const char  *name;
    size_t       size;                /* of the zone */

    /* the URLs that it has: so many, or until it is ready */
    unsigned     before;
    int        (*ready)(const us_head_t *h);

    /* then */
    void       (*prepare)(us_store_t *s);

    /* what the writer does, and the next one again (NULL: the same) */
    void       (*change)(us_store_t *s);
    void       (*again)(us_store_t *s);

    int          erases;              /* ERASES_*; 0: it does not */
    int          claims;              /* the store keeps claims */
    int          keys;                /* it knows what keys have had */
    int          shard;               /* it is one; 2: it has a map */
    const far_t *far;                 /* a set of ids that no URL has */

    /* whether it is done; whether it has done what this case is about */
    int        (*done)(us_store_t *s);
    int        (*met)(const us_head_t *before, const us_head_t *after);
} change_t;


static const change_t  *change;
static unsigned         ids;          /* before the change */
static unsigned         gone;         /* that may be deleted: those below */
static int              all;
static unsigned         failures;

static uint8_t         *zone, *last, *trial, *second;
static stream_t         journal;      /* of the zone */
static stream_t         model;        /* the operation that publishes it */

static volatile int     stepping;
static uintptr_t        address;      /* of the last store */
static unsigned         loop;         /* stores that followed one another */
static unsigned         stores, copies, undone;


static void
fail(const char *what, unsigned i)
{
    if (failures++ < 10) {
        fprintf(stderr, "%s, killed after %u: %s %u\n", change->name, stores,
                what, i);
    }
}


static void
no_lock(void *data)
{
}


/* the lock of the writer that is interrupted */

static void
protect(void *at, size_t size, int prot)
{
    if (mprotect(at, size, prot) == -1) {
        perror("mprotect");
        _exit(2);
    }
}


/* where a store that begins at the address goes; all takes ten times as long */

static void
protect_pages(int prot)
{
    size_t     size, page;
    uintptr_t  end, first;

    page = (size_t) sysconf(_SC_PAGESIZE);
    first = address & -page;
    end = (uintptr_t) zone + change->size;
    size = end - first < 2 * page ? end - first : 2 * page;

    protect((void *) first, size, prot);
}


static void
lock(void *data)
{
    if (stepping) {
        protect(zone, change->size, PROT_READ);
    }
}


static void
unlock(void *data)
{
    protect(zone, change->size, PROT_READ|PROT_WRITE);
}


static const us_store_lock_t  writer = { lock, unlock, NULL };
static const us_store_lock_t  locks = { no_lock, no_lock, NULL };


static size_t
url(unsigned i, char *buf)
{
    size_t  n;

    n = sprintf(buf, "http://site%u.test/page/%u", i / 10, i);

    /* very long ones: not where they would leave room */

    if (i % 100 == 77 && i < 200) {
        memset(buf + n, 'x', 3000);
        n += 3000;
    }

    return n;
}


static us_store_item_t
add(us_store_t *s, unsigned i)
{
    static char      buf[4096];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_add(s, &it, 1);

    return it;
}


static uint64_t
seen(us_store_t *s, unsigned i)
{
    char             buf[4096];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_seen(s, &it, 1);

    return it.id;
}


static us_store_t *
open_zone(void *mem, const us_store_lock_t *l)
{
    us_store_t  *s;

    s = us_store_open(mem, l);

    if (s == NULL) {
        perror("no store");
        _exit(2);
    }

    return s;
}


/* the changes */

static void
change_add(us_store_t *s)
{
    add(s, ids);
}


static int
done_add(us_store_t *s)
{
    return us_store_next_id(s) == ids + 1;
}


/* a full zone does not take it, whatever was done for it */

static int
refused(us_store_t *s)
{
    return us_store_next_id(s) == ids;
}


static void
change_delete(us_store_t *s)
{
    int       was;
    uint64_t  lsn;

    us_store_delete(s, ids / 2, &was, &lsn);
}


static int
done_delete(us_store_t *s)
{
    return us_store_deleted(s, ids / 2);
}


static int
refused_delete(us_store_t *s)
{
    return !done_delete(s);
}


static void
change_mark(us_store_t *s)
{
    uint64_t  lsn;

    mark_put(s, 0, ids / 2, 1, &lsn);
}


static int
done_mark(us_store_t *s)
{
    return mark_has(s, 0, ids / 2);
}


static int
refused_mark(us_store_t *s)
{
    return !done_mark(s);
}


/* a pass over what is deleted */

static void
change_pass(us_store_t *s)
{
    us_erase_t         *e;
    us_store_status_t   rc;

    e = us_erase_create(s, 100);

    do {
        rc = us_erase_step(e, 1000);
    } while (rc == US_NEW);

    if (rc != US_OK) {
        fail("a pass has ended with", rc);
    }

    us_erase_free(e);
}


/* two known URLs, which are due, and a new one */

static void
change_due(us_store_t *s)
{
    unsigned          i, k;
    us_store_item_t   it[3];
    static char       buf[3][4096];

    us_store_time(s, 1000);

    for (i = 0; i < 3; i++) {
        k = i == 0 ? ids / 2 : ids - 2 + i;
        memset(&it[i], 0, sizeof(us_store_item_t));
        it[i].url.len = url(k, buf[i]);
        it[i].url.data = (uint8_t *) buf[i];
    }

    us_store_add_older(s, it, 3, 5);
}


/* the claims of a batch are made as a whole, that of a new URL with it */

static int
done_due(us_store_t *s)
{
    uint64_t  one, two;

    one = us_store_claimed(s, ids / 2);
    two = us_store_claimed(s, ids - 1);

    if (one != two) {
        fail("one claim of two", ids);
    }

    if (us_store_next_id(s) > ids && us_store_claimed(s, ids) != 1000) {
        fail("a new URL without a claim", ids);
    }

    return one == 1000;
}


#define KEY  UINT64_C(0x1234567890abcdef)


static void
add_key(us_store_t *s, uint64_t name, us_store_item_t *items, size_t n)
{
    us_store_key_t  key = { name, 2000 };

    us_store_add_key(s, items, n, 5, &key);
}


static int
knows(const void *mem, us_keys_kind_t kind, uint64_t id)
{
    us_arena_t  a;

    us_arena_open(&a, (void *) mem);

    return us_keys_has(&a, KEY, kind, 0, id, 1000);
}


/* with a key: two known URLs, which may be due, two new ones, and one again */

static void
change_key(us_store_t *s)
{
    unsigned          i;
    us_store_item_t   it[5];
    static char       buf[5][4096];

    const unsigned    urls[5] = { ids / 2, ids, ids + 1, ids, ids - 1 };

    us_store_time(s, 1000);

    for (i = 0; i < 5; i++) {
        memset(&it[i], 0, sizeof(us_store_item_t));
        it[i].url.len = url(urls[i], buf[i]);
        it[i].url.data = (uint8_t *) buf[i];
    }

    add_key(s, KEY, it, 5);

    for (i = 0; i < 5; i++) {
        if (it[i].status != (urls[i] >= ids ? US_NEW
                             : change->claims ? US_DUE : US_SEEN))
        {
            fail("not what it was at first:", i);
        }
    }
}


/* no id and no claim of the change is there without its key */

static void
check_key(us_store_t *s, const uint8_t *mem)
{
    unsigned  i;

    for (i = ids; i < ids + 2 && i < us_store_next_id(s); i++) {
        if (!knows(mem, US_KEYS_NEW, i)) {
            fail("no key of id", i);
        }
    }

    for (i = ids / 2; change->claims; i = ids - 1) {

        if (us_store_claimed(s, i) == 1000 && !knows(mem, US_KEYS_DUE, i)) {
            fail("no key of the claim of", i);
        }

        if (i == ids - 1) {
            break;
        }
    }
}


static int
done_key(us_store_t *s)
{
    return us_store_next_id(s) >= ids + 2
           && (!change->claims || us_store_claimed(s, ids - 1) == 1000);
}


/* more keys than the memory has room for: the oldest are forgotten */

static void
prepare_keys(us_store_t *s)
{
    char             buf[4096];
    unsigned         i;
    us_store_item_t  it;

    for (i = 0; i < 500; i++) {
        us_store_time(s, 106 + i / 100 * 6);
        memset(&it, 0, sizeof(us_store_item_t));
        it.url.len = url(i % 100, buf);
        it.url.data = (uint8_t *) buf;
        add_key(s, i + 1, &it, 1);
    }
}


static int
met_wrapped(const us_head_t *before, const us_head_t *after)
{
    return before->keys_end == 500 && before->keys_lost == 2000
           && after->keys_end > 500;
}


static us_store_set_t
set(us_store_t *s)
{
    return us_store_set(s, us_string("a"));
}


static void
change_make(us_store_t *s)
{
    uint64_t        lsn;
    us_store_set_t  a;

    us_store_set_make(s, us_string("a"), 64, &a, &lsn);
}


static int
done_make(us_store_t *s)
{
    return set(s).number != 0;
}


/* every third id is in, or out again */

static void
put_some(us_store_t *s, int in)
{
    unsigned          i, n;
    us_store_claim_t  c[256];

    for (i = 0, n = 0; i < ids - 2 && n < 256; i += 3) {
        c[n++].id = i;
    }

    us_store_set_put(s, set(s), c, n, in, NULL);
}


/* three sets: "a" is the fourth, or takes the row of one that was dropped */

static void
prepare_three(us_store_t *s)
{
    unsigned        i;
    uint64_t        lsn;
    us_store_set_t  other;

    static const char  *names[] = { "x", "y", "z" };

    for (i = 0; i < 3; i++) {
        us_store_set_make(s, us_str_of(names[i]), 64, &other, &lsn);
    }
}


static void
prepare_row(us_store_t *s)
{
    uint64_t  lsn;

    prepare_three(s);
    us_store_set_drop(s, us_store_set(s, us_string("y")), &lsn);
}


static void
prepare_set(us_store_t *s)
{
    change_make(s);
    put_some(s, 1);
}


static void
change_drop(us_store_t *s)
{
    uint64_t  lsn;

    if (set(s).number) {
        us_store_set_drop(s, set(s), &lsn);
    }
}


static int
done_drop(us_store_t *s)
{
    return set(s).number == 0;
}


/* known ones and new ones, in and not in, of a request with a key */

static void
change_put(us_store_t *s)
{
    unsigned          i;
    us_store_key_t    key = { KEY, 2000 };
    us_store_item_t   it[4];
    static char       buf[4][4096];

    const unsigned    urls[4] = { 0, 1, ids, ids + 1 };

    us_store_time(s, 1000);

    for (i = 0; i < 4; i++) {
        memset(&it[i], 0, sizeof(us_store_item_t));
        it[i].url.len = url(urls[i], buf[i]);
        it[i].url.data = (uint8_t *) buf[i];
    }

    us_store_add_set(s, it, 4, set(s), &key);

    for (i = 0; i < 4; i++) {
        if (it[i].status != (i ? US_NEW : US_SEEN)) {
            fail("not what it was to the set at first:", i);
        }
    }
}


/* all of a batch is in, or nothing; and then it is the key's */

static int
done_put(us_store_t *s)
{
    unsigned        n;
    us_store_set_t  a;

    a = set(s);
    n = us_store_set_has(s, a, 1) + us_store_set_has(s, a, ids)
        + us_store_set_has(s, a, ids + 1);

    if (n % 3 || !us_store_set_has(s, a, 0)) {
        fail("ids of a set:", n);
    }

    return n == 3;
}


static int
met_reused(const us_head_t *before, const us_head_t *after)
{
    return after->members_reused > before->members_reused;
}


/* so much is dead that the change cleans: it did in a copy */

static void
prepare_dead(us_store_t *s)
{
    int                cleans;
    unsigned           i;
    us_store_t        *t;
    us_store_claim_t   c;

    prepare_set(s);

    for (i = 0, cleans = 0; !cleans && i < 1000; i++) {
        c.id = ids - 1;
        us_store_set_put(s, set(s), &c, 1, 1, NULL);
        us_store_set_put(s, set(s), &c, 1, 0, NULL);
        stream_drain(&journal, s);

        memcpy(trial, zone, change->size);
        t = open_zone(trial, &locks);
        change_put(t);
        cleans = met_reused((us_head_t *) zone, (us_head_t *) trial);
        us_store_close(t);
    }
}


static void
change_claim(us_store_t *s)
{
    unsigned          i;
    us_store_claim_t  c[20];

    us_store_time(s, 1000);

    for (i = 0; i < 20; i++) {
        c[i].id = ids - 1 - i;
    }

    us_store_claim(s, c, 20, 300);
}


static int
done_claim(us_store_t *s)
{
    unsigned  i, n;

    for (i = 0, n = 0; i < 20; i++) {
        n += us_store_claimed(s, ids - 1 - i) == 300;
    }

    if (n % 20) {
        fail("claims of 20:", n);
    }

    return n == 20;
}


/* the clock advances by a day, and one claim is set */

static void
change_clock(us_store_t *s)
{
    us_store_claim_t  c = { 1, US_OK };

    us_store_time(s, 70000);
    us_store_claim(s, &c, 1, 70000);
}


static int
done_clock(us_store_t *s)
{
    return us_store_claimed(s, 1) == 70000;
}


/*
 * A site that is deleted as a whole, the first ones of others, and those that
 * the last one of each site refers to.
 */

static void
prepare_pass(us_store_t *s)
{
    int       was;
    unsigned  i;
    uint64_t  lsn;

    gone = ids - 5;

    for (i = 0; i < gone; i++) {
        if (i / 10 == 1 || i % 10 != 9) {
            us_store_delete(s, i, &was, &lsn);
            stream_drain(&journal, s);
        }
    }
}


/* a very long one, and one whose text others have */

static void
prepare_pass_long(us_store_t *s)
{
    int       was;
    uint64_t  lsn;

    gone = 78;

    us_store_delete(s, 77, &was, &lsn);
    us_store_delete(s, 70, &was, &lsn);
}


/* a pass has ended, and now more is deleted: a stub becomes shorter */

static void
prepare_pass_more(us_store_t *s)
{
    int       was;
    uint64_t  lsn;

    prepare_pass(s);
    change_pass(s);
    us_store_delete(s, 9, &was, &lsn);
}


static int
done_pass(us_store_t *s)
{
    uint8_t    buf[US_RECORD_BUFFER];
    uint64_t   id;
    us_bits_t  b;

    for (id = 0; id < gone; id++) {
        us_log_get(&s->arena, id, buf, &b);

        if (us_store_deleted(s, id) && !us_bits_erased(&b)) {
            return 0;
        }
    }

    return 1;
}


/*
 * A model has words of sites that are deleted, of which a pass that was killed
 * has erased the records.
 */

static void
prepare_pass_tokens(us_store_t *s)
{
    int          was;
    uint64_t     id, lsn;
    us_erase_t  *e;

    stream_drain(&journal, s);

    if (us_store_train(s, NULL) != 1) {
        fail("no model is learnt", 0);
    }

    stream_drain(&journal, s);

    gone = 32000;

    for (id = 0; id < gone; id++) {
        us_store_delete(s, id, &was, &lsn);
        stream_drain(&journal, s);
    }

    e = us_erase_create(s, 100000);

    while (us_head(s)->vetted == 0) {
        (void) us_erase_step(e, 10);
        stream_drain(&journal, s);
    }

    us_erase_free(e);
}


static int
done_pass_tokens(us_store_t *s)
{
    return done_pass(s) && us_head(s)->retexts > 0;
}


static int
met_pass_tokens(const us_head_t *before, const us_head_t *after)
{
    return after->retexts > before->retexts;
}


static int
met_pass(const us_head_t *before, const us_head_t *after)
{
    return after->erasing > before->erasing && after->erasing % 2 == 0
           && after->long_end > before->long_end;
}


static void
change_names(us_store_t *s)
{
    us_str_t  names[2] = { us_string("visited"), us_string("todo") };

    if (us_store_add_marks(s, names, 2) != 0) {
        fail("marks are refused", 2);
    }
}


static int
done_names(us_store_t *s)
{
    return us_store_mark_number(s, us_string("todo")) == 1;
}


/* --- erasures ------------------------------------------------------------- */

/* the change: these are not the URL of an id */
#define NEVER  1000000

static void
change_begin(us_store_t *s)
{
    uint64_t  number, lsn;

    us_store_time(s, 100);

    if (us_store_erasure_begin(s, US_ERASURE_URLS, us_string("a reason"),
                               (const uint8_t *) "the key of lists", 0, NULL,
                               &number, &lsn)
        != US_NEW)
    {
        fail("an erasure is refused", (unsigned) number);
    }
}


static int
done_begin(us_store_t *s)
{
    us_erasure_info_t  info;

    if (us_store_erasures(s) == 0) {
        return 0;
    }

    if (!us_store_erasure(s, 1, &info) || info.created != 100
        || us_str_compare(info.reason, us_string("a reason")) != 0)
    {
        fail("another erasure", 1);
    }

    return 1;
}


static us_store_item_t
erase(us_store_t *s, uint64_t number, unsigned i)
{
    char             buf[4096];
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_erase(s, number, &it, 1);

    return it;
}


/* one that is stored, and one that is not */

static void
change_erase(us_store_t *s)
{
    if (erase(s, 1, ids / 2).status != US_ERASED
        || erase(s, 1, NEVER).status != US_ERASED)
    {
        fail("not erased", ids / 2);
    }
}


static int
refuses(us_store_t *s, unsigned i)
{
    int              rc;
    char             buf[4096];
    us_erased_t      erased;
    us_store_item_t  it;

    memset(&it, 0, sizeof(it));
    it.url.len = url(i, buf);
    it.url.data = (uint8_t *) buf;
    us_store_seen(s, &it, 1);
    erased.known = 0;

    us_store_enter(s);
    rc = us_erased_refuses_locked(s, &it, &erased);
    us_store_leave(s);

    return rc;
}


/* what is deleted is on the list, and counted; one URL after the other */

static int
done_erase(us_store_t *s)
{
    int                 one, two, deleted;
    us_erasure_info_t   info;

    one = refuses(s, ids / 2);
    two = refuses(s, NEVER);
    deleted = us_store_deleted(s, ids / 2);

    if (deleted > one || two > deleted) {
        fail("not in order:", one * 4 + deleted * 2 + two);
    }

    if (!us_store_erasure(s, 1, &info) || info.deleted != (unsigned) deleted) {
        fail("ids that an erasure has deleted:", (unsigned) info.deleted);
    }

    return two;
}


/* the erasure is done, and its records are gone; then others come to it */

static void
prepare_again(us_store_t *s)
{
    uint64_t  number, at, lsn;

    change_begin(s);
    number = 1;
    at = 0;

    if (us_store_erasure_done(s, 1, &lsn) != US_OK
        || us_store_erasures_gone(s, &number, 1, &at) != US_OK)
    {
        fail("an erasure is not done", 1);
    }
}


static int
done_again(us_store_t *s)
{
    us_erasure_info_t  info;

    if (!us_store_erasure(s, 1, &info)
        || ((refuses(s, ids / 2) || us_store_deleted(s, ids / 2))
            && (info.state != US_ERASURE_DELETING || info.gone)))
    {
        fail("an erasure is done, and has more:", (unsigned) info.listed);
    }

    return done_erase(s);
}


/* n URLs are on the list, and the next one is not */

static void
list(us_store_t *s, unsigned n)
{
    unsigned  i;

    for (i = 1; i <= n; i++) {
        if (erase(s, 1, NEVER + i).status != US_ERASED) {
            fail("not on the list", NEVER + i);
        }

        stream_drain(&journal, s);
    }
}


/* the first table is of 1,024 places: 768 are used before the next one */

static void
prepare_table(us_store_t *s)
{
    change_begin(s);
    list(s, 768);
}


static void
prepare_moving(us_store_t *s)
{
    change_begin(s);
    list(s, 780);
}


static void
prepare_moved(us_store_t *s)
{
    change_begin(s);
    list(s, 768 + 30);
}


static int
met_table(const us_head_t *before, const us_head_t *after)
{
    return before->erased_bits == 10 && after->erased_bits == 11
           && after->erased_old == 10;
}


static int
met_moving(const us_head_t *before, const us_head_t *after)
{
    return before->erased_old == 10 && after->erased_old == 10
           && after->erased_moved > before->erased_moved;
}


static int
met_moved(const us_head_t *before, const us_head_t *after)
{
    return before->erased_old == 10 && after->erased_old == 0
           && after->erased_bits == 11;
}


static void
change_lift(us_store_t *s)
{
    uint64_t  lsn;

    us_store_erasure_lift(s, 1, &lsn);
}


static int
done_lift(us_store_t *s)
{
    us_erasure_info_t  info;

    if (!us_store_erasure(s, 1, &info)
        || (info.state != US_ERASURE_LIFTED
            && info.state != US_ERASURE_DELETING))
    {
        fail("lifted and not done", 1);
    }

    return info.state == US_ERASURE_LIFTED;
}


/* a site of ten URLs goes on the list, and a sweep deletes them */

static void
change_site(us_store_t *s)
{
    char         name[32];
    unsigned     i;
    uint64_t     lsn;
    us_sweep_t   w;

    memset(&w, 0, sizeof(w));
    sprintf(name, "site%u.test", ids / 2 / 10);

    (void) us_store_erase_site(s, 1, us_str_of(name), &lsn);

    for (i = 0; us_store_sweep(s, &w) == US_NEW && i < 1000; i++) {
        /* void */
    }
}


static int
done_site(us_store_t *s)
{
    unsigned            i, n;
    us_erasure_info_t   info;

    for (i = 0, n = 0; i < 10; i++) {
        n += us_store_deleted(s, ids / 2 / 10 * 10 + i);
    }

    if (!us_store_erasure(s, 1, &info) || info.deleted != n
        || (info.state == US_ERASURE_DONE && n != 10))
    {
        fail("ids of a site that were deleted:", n);
    }

    return info.state == US_ERASURE_DONE;
}


static void
change_train(us_store_t *s)
{
    us_store_train(s, NULL);
}


static void
adopt(us_store_t *s, unsigned version, unsigned shards)
{
    uint64_t   lsn;
    us_map_t  *m;

    m = stress_map(version, shards);

    /* as its callers: what has been adopted before the kill is not again */

    if (us_store_map(s)->version != version
        && us_store_adopt(s, m, us_store_map(s)->number, &lsn) != US_OK)
    {
        fail("the map is refused", version);
    }

    us_map_free(m);
}


static void
change_map(us_store_t *s)
{
    adopt(s, 2, 3);
}


static void
change_large(us_store_t *s)
{
    adopt(s, 2, 300);
}


/* the map before, or this one, with its text */

static int
done_map(us_store_t *s)
{
    unsigned   version;
    us_str_t   have;
    us_map_t  *m;

    have = stress_map_text(s);
    version = us_store_map(s)->version;

    if (version) {
        m = stress_map(version, version == 1 ? 2
                                : change->change == change_large ? 300 : 3);

        if (us_str_compare(m->text, have) != 0) {
            fail("another text of map", version);
        }

        us_map_free(m);
    }

    return version == 2;
}


/* --- ids that no URL has, in many containers ------------------------------ */

#define FAR_MAX    1600               /* ids of a set, or of a change */
#define FAR_SMALL  1200               /* bytes that are left, at most */

static unsigned  far_most;            /* ids that have room */


static unsigned
far_ids(const some_t *some, uint64_t *list)
{
    unsigned  i, k, n;

    for (k = 0, n = 0; k < 4; k++) {
        for (i = 0; i < some[k].n; i++) {
            list[n++] = some[k].first + i * some[k].step;
        }
    }

    return n;
}


/* puts ids that are not in, or takes out those that are; how many it did */

static size_t
far_put(us_store_t *s, us_store_set_t to, const some_t *some, int in)
{
    size_t         n, done;
    unsigned       i, k;
    uint64_t       list[FAR_MAX];
    us_set_run_t   runs[FAR_MAX];

    k = far_ids(some, list);

    us_store_enter(s);

    for (i = 0, n = 0; i < k; i++) {
        if (us_set_has(&s->arena, to.row, list[i]) != in) {
            runs[n].first = list[i];
            runs[n++].last = list[i];
        }
    }

    us_bulk_keep_locked(&s->arena, 0);
    done = us_set_change_locked(&s->arena, to.row, runs, n, in, 1);

    us_store_leave(s);

    return done;
}


static void
change_far(us_store_t *s)
{
    far_put(s, set(s), change->far->ids, change->far->in);
}


static int
far_has(const uint64_t *list, unsigned n, uint64_t id)
{
    unsigned  i;

    for (i = 0; i < n && list[i] != id; i++) { /* void */ }

    return i < n;
}


/* all that a commit has, or nothing, and one commit after the other */

static int
done_far(us_store_t *s)
{
    unsigned        i, n, had, most, done;
    uint64_t        list[FAR_MAX], before[FAR_MAX];
    us_store_set_t  a;

    a = set(s);
    had = far_ids(change->far->had, before);
    most = far_ids(change->far->ids, list);

    for (i = 0; i < had; i++) {
        if (!us_store_set_has(s, a, before[i])
            && (change->far->in || !far_has(list, most, before[i])))
        {
            fail("a set has lost id", before[i]);
        }
    }

    for (i = 0, n = 0, done = 0; i < most; i++) {
        if (us_store_set_has(s, a, list[i]) == change->far->in) {
            n++;
            done = i + 1;
        }
    }

    if (n != done || (n % US_SET_AT_ONCE && n != far_most && n != most)) {
        fail("ids of a set:", n);
    }

    return n == far_most || n == most;
}


/* what the writer will have done is what another one does to a copy */

static void
prepare_far(us_store_t *s)
{
    us_store_t  *t;

    change_make(s);
    far_put(s, set(s), change->far->had, 1);

    memcpy(trial, zone, change->size);
    t = open_zone(trial, &locks);
    far_most = far_put(t, set(t), change->far->ids, change->far->in);
    us_store_close(t);
}


/* another set takes all memory but a little */

static void
prepare_little(us_store_t *s)
{
    some_t           one[4] = { { 0, 0, 1 } };
    uint64_t         lsn;
    us_head_t       *h;
    us_arena_t       a;
    us_store_set_t   other;

    us_arena_open(&a, zone);
    h = a.head;

    us_store_set_make(s, us_string("b"), 64, &other, &lsn);

    do {
        one[0].first += 1 << 16;
        stream_drain(&journal, s);

        if (far_put(s, other, one, 1) == 0) {
            fail("no room to prepare", one[0].first >> 16);
            break;
        }

        us_bulk_keep_locked(&a, 0);

    } while (us_arena_free(&a) > a.keep
             || h->members_end - h->members_at > FAR_SMALL);

    prepare_far(s);
}


/* which is dropped then */

static void
again_little(us_store_t *s)
{
    uint64_t        n, lsn, list[FAR_MAX];
    us_store_set_t  other;

    other = us_store_set(s, us_string("b"));
    us_store_set_drop(s, other, &lsn);

    us_store_enter(s);

    for (n = 0; us_sets_tend_locked(&s->arena) && n < 10000; n++) { /* void */ }

    us_store_leave(s);

    change_far(s);

    n = far_ids(change->far->ids, list);

    if (!us_store_set_has(s, set(s), list[n - 1])) {
        fail("no room after a drop, of", n);
    }
}


static int
met_little(const us_head_t *before, const us_head_t *after)
{
    uint64_t  list[FAR_MAX];

    return far_most && far_most < far_ids(change->far->ids, list)
           && us_relaxed(&after->published) > us_relaxed(&before->published);
}


static int
done_train(us_store_t *s)
{
    us_arena_t  a;

    us_arena_open(&a, trial);

    return a.head->models == 1;
}


/* learning takes long: as a replay would */

static void
again_train(us_store_t *s)
{
    if (!done_train(s)
        && us_store_apply(s, model.data, model.len) != (ssize_t) model.len)
    {
        fail("the model is refused", 0);
    }
}


/* what a zone is prepared for */

static void
prepare_model(us_store_t *s)
{
    us_store_t  *t;

    memcpy(trial, zone, change->size);
    t = open_zone(trial, &locks);

    if (us_store_train(t, NULL) != 1) {
        fail("no model is learnt", 0);
    }

    model.len = 0;
    stream_drain(&model, t);
    us_store_close(t);
}


static void
prepare_delete(us_store_t *s)
{
    int       was;
    uint64_t  lsn;

    us_store_delete(s, 0, &was, &lsn);
}


/* the last chunks are taken, so nothing else can have any */

static void
prepare_no_chunks(us_store_t *s)
{
    us_arena_t  a;

    us_arena_open(&a, zone);

    while (us_arena_grow_locked(&a, US_AREA_OFFSETS, 1) == 0) { /* void */ }
}


/* the same after a delete, and all memory of leaves is in use */

static void
prepare_no_leaves(us_store_t *s)
{
    us_arena_t  a;

    prepare_delete(s);
    prepare_no_chunks(s);

    us_arena_open(&a, zone);
    memset(a.head->free, 0, sizeof(a.head->free));
    a.head->leaf_next = a.head->leaf_end;
}


/* deleted URLs whose entries stay, in a zone that has room again */

static void
prepare_entries(us_store_t *s)
{
    int          was;
    uint64_t     lsn;
    us_head_t   *h, had;
    us_arena_t   a;

    us_arena_open(&a, zone);
    us_arena_allot_locked(&a, US_AREA_DELETED, 0);

    h = a.head;
    had = *h;
    memset(h->free, 0, sizeof(h->free));
    h->leaf_next = h->leaf_end;
    h->chunks_low = 0;

    for (gone = 0; gone < 100; gone++) {
        us_store_delete(s, gone, &was, &lsn);
    }

    memcpy(h->free, had.free, sizeof(h->free));
    h->leaf_next = had.leaf_next;
    h->chunks_low = had.chunks_low;
}


static int
is_directory_full(const us_head_t *h)
{
    return h->leaves == 2048 && h->entries == 2048 * 64;
}


static int
is_directory_old(const us_head_t *h)
{
    return h->leaves == 4095 && h->entries == 4095 * 64;
}


static int
is_directory_spare(const us_head_t *h)
{
    return h->leaves == 4096 && h->entries == 4096 * 64;
}


static int
met_split(const us_head_t *before, const us_head_t *after)
{
    return after->leaves > before->leaves;
}


/* and deleted URLs leave the leaf, which is hashed again */

static int
met_dropped(const us_head_t *before, const us_head_t *after)
{
    return before->deleted == 100 && met_split(before, after)
           && after->entries <= before->entries;
}


static int
met_directory(const us_head_t *before, const us_head_t *after)
{
    return after->directory_last > before->directory_last
           && after->chunks_low < before->chunks_low;
}


static int
met_drop(const us_head_t *before, const us_head_t *after)
{
    return after->directory_first > before->directory_first
           && after->directory_spare;
}


static int
met_spare(const us_head_t *before, const us_head_t *after)
{
    return after->directory_last > before->directory_last
           && before->directory_spare && after->directory_spare == 0;
}


static int
met_log(const us_head_t *before, const us_head_t *after)
{
    return after->area[US_AREA_OFFSETS].n == 2
           && before->area[US_AREA_OFFSETS].n == 1;
}


static int
met_long(const us_head_t *before, const us_head_t *after)
{
    return after->long_end > before->long_end;
}


static int
met_cache(const us_head_t *before, const us_head_t *after)
{
    return after->cache_bits > before->cache_bits;
}


static int
met_model(const us_head_t *before, const us_head_t *after)
{
    return after->models > before->models;
}


static int
met_full(const us_head_t *before, const us_head_t *after)
{
    return after->full;
}


/* the entry of the deleted URL stays: no room for a copy of its leaf */

static int
met_stays(const us_head_t *before, const us_head_t *after)
{
    return before->full && after->deleted > before->deleted
           && after->entries == before->entries;
}


static int
met_copy(const us_head_t *before, const us_head_t *after)
{
    return before->full && after->deleted > before->deleted
           && after->entries == before->entries - 1;
}


static int
met_no_room(const us_head_t *before, const us_head_t *after)
{
    return us_relaxed(&after->published) == us_relaxed(&before->published);
}


/* a set is empty, and gets ids at three levels */

static const far_t  far_empty = {
    .ids = { { 100, 1, 11 }, { 2 << 16, 3, 5 }, { 5 << 22, 1000, 7 } }, .in = 1
};

/* the root leads to a container of values, of parts, and of all ids */

static const far_t  far_values = {
    .had = { { 5, 3, 40 } },
    .ids = { { 10000, 1, 20 }, { 70000, 7, 20 }, { 1 << 28, 3, 10 } }, .in = 1
};

static const far_t  far_parts = {
    .had = { { 0, 2, 500 }, { 8192, 2, 500 }, { 16384, 2, 500 } },
    .ids = { { 1, 2, 10 }, { 9001, 10, 10 }, { 40000, 1, 10 },
             { 1 << 22, 65536, 5 } }, .in = 1
};

/* more than a commit has, some of them in a container that is there */

static const far_t  far_many = {
    .had = { { 1 << 16, 10, 100 } },
    .ids = { { 7, 70, 100 }, { (1 << 16) + 1001, 1, 50 },
             { 3 << 16, 1, 50 }, { 1 << 23, 1 << 16, 10 } }, .in = 1
};

/* out of three containers, one of which is emptied, and of parts */

static const far_t  far_out = {
    .had = { { 10, 10, 100 }, { 1 << 16, 1, 30 }, { 5 << 16, 1, 50 },
             { 1 << 28, 100, 100 } },
    .ids = { { 20, 30, 20 }, { 1 << 16, 1, 30 }, { (5 << 16) + 10, 2, 10 },
             { 1 << 28, 200, 40 } }
};

/* in 60 containers, for most of which there is no room */

static const far_t  far_little = {
    .had = { { 1 << 16, 1, 10 } },
    .ids = { { 3, 1, 1 }, { (1 << 16) + 20, 1, 5 }, { 2 << 16, 1 << 16, 60 } },
    .in = 1
};


/*
 * A line of lengths has 56 records, and a chunk of them 14,336.  Number 77 is
 * very long.  The index has 2 leaves, and splits one when it has 128 entries
 * (URLs and sites), 192, 256 and so on; at 512 for the first time one that
 * must be hashed again.  A chunk of its directory has 4,096 leaves.
 */

static const change_t  changes[] = {
    { "first add", SMALL, .before = 0, .change = change_add,
      .done = done_add },
    { "add", SMALL, .before = 30, .change = change_add, .done = done_add },
    { "add, new line", SMALL, .before = 56, .change = change_add,
      .done = done_add },
    { "add, very long", SMALL, .before = 77, .change = change_add,
      .done = done_add, .met = met_long },
    { "add, new site", SMALL, .before = 90, .change = change_add,
      .done = done_add },
    { "add, split", SMALL, .before = 116, .change = change_add,
      .done = done_add, .met = met_split },
    { "add, split", SMALL, .before = 232, .change = change_add,
      .done = done_add, .met = met_split },
    { "add, split, hash again", SMALL, .before = 465, .change = change_add,
      .done = done_add, .met = met_split },
    { "add, split, deleted leave", SMALL, .before = 465,
      .prepare = prepare_entries, .change = change_add, .done = done_add,
      .met = met_dropped },
    { "add, log allots", MEDIUM, .before = 14336, .change = change_add,
      .done = done_add, .met = met_log },
    { "add, cache grows", LARGE, .before = 98303, .change = change_add,
      .done = done_add, .met = met_cache },
    { "add, directory allots", LARGE, .ready = is_directory_full,
      .change = change_add, .done = done_add, .met = met_directory },
    { "add, directory drops", LARGE, .ready = is_directory_old,
      .change = change_add, .done = done_add, .met = met_drop },
    { "add, directory moves", LARGE, .ready = is_directory_spare,
      .change = change_add, .done = done_add, .met = met_spare },
    { "delete", SMALL, .before = 100, .change = change_delete,
      .done = done_delete },
    { "delete", SMALL, .before = 3, .change = change_delete,
      .done = done_delete },
    { "pass", SMALL, .before = 35, .prepare = prepare_pass,
      .change = change_pass, .done = done_pass, .met = met_pass },
    { "pass, very long", SMALL, .before = 100,
      .prepare = prepare_pass_long, .change = change_pass,
      .done = done_pass, .met = met_pass },
    { "pass, shorter stubs", SMALL, .before = 35,
      .prepare = prepare_pass_more, .change = change_pass,
      .done = done_pass, .met = met_pass },
    { "mark", SMALL, .before = 100, .change = change_mark,
      .done = done_mark },
    { "add, due", SMALL, .before = 100, .claims = 1, .change = change_due,
      .done = done_due },
    { "claim", SMALL, .before = 100, .claims = 1, .change = change_claim,
      .done = done_claim },
    { "key, add", SMALL, .before = 100, .keys = 1, .change = change_key,
      .done = done_key },
    { "key, add, two blocks", SMALL, .before = 127, .keys = 1,
      .change = change_key, .done = done_key },
    { "key, add, due", SMALL, .before = 100, .claims = 1, .keys = 1,
      .change = change_key, .done = done_key },
    { "key, memory full", SMALL, .before = 100, .claims = 1, .keys = 1,
      .prepare = prepare_keys, .change = change_key, .done = done_key,
      .met = met_wrapped },
    { "set", SMALL, .before = 100, .change = change_make, .done = done_make },
    { "set, fourth", SMALL, .before = 100, .prepare = prepare_three,
      .change = change_make, .done = done_make },
    { "set, row", SMALL, .before = 100, .prepare = prepare_row,
      .change = change_make, .done = done_make },
    { "set, drop", SMALL, .before = 1000, .prepare = prepare_set,
      .change = change_drop, .done = done_drop },
    { "set, add", SMALL, .before = 100, .keys = 1, .prepare = prepare_set,
      .change = change_put, .done = done_put },
    { "set, add, dead", SMALL, .before = 1000, .keys = 1,
      .prepare = prepare_dead, .change = change_put, .done = done_put,
      .met = met_reused },
    { "set, empty, levels", SMALL, .before = 100, .prepare = prepare_far,
      .change = change_far, .done = done_far, .far = &far_empty },
    { "set, new levels", SMALL, .before = 100, .prepare = prepare_far,
      .change = change_far, .done = done_far, .far = &far_values },
    { "set, parts, new levels", SMALL, .before = 100, .prepare = prepare_far,
      .change = change_far, .done = done_far, .far = &far_parts },
    { "set, two commits", SMALL, .before = 100, .prepare = prepare_far,
      .change = change_far, .done = done_far, .far = &far_many },
    { "set, out of containers", SMALL, .before = 100, .prepare = prepare_far,
      .change = change_far, .done = done_far, .far = &far_out },
    { "full, set, little room", SMALL, .before = FULL,
      .prepare = prepare_little, .change = change_far, .again = again_little,
      .done = done_far, .met = met_little, .far = &far_little },
    { "erasure", SMALL, .before = 100, .change = change_begin,
      .done = done_begin },
    { "erasure, second", SMALL, .before = 100, .keys = 1,
      .prepare = change_begin, .change = change_begin, .done = done_begin },
    { "erase", SMALL, .before = 100, .prepare = change_begin,
      .change = change_erase, .done = done_erase, .erases = ERASES_ID },
    { "erase, again", SMALL, .before = 100, .prepare = prepare_again,
      .change = change_erase, .done = done_again, .erases = ERASES_ID },
    { "erase, next table", SMALL, .before = 100, .prepare = prepare_table,
      .change = change_erase, .done = done_erase, .erases = ERASES_ID,
      .met = met_table },
    { "erase, moving", SMALL, .before = 100, .prepare = prepare_moving,
      .change = change_erase, .done = done_erase, .erases = ERASES_ID,
      .met = met_moving },
    { "erase, moved", SMALL, .before = 100, .prepare = prepare_moved,
      .change = change_erase, .done = done_erase, .erases = ERASES_ID,
      .met = met_moved },
    { "erase, lift", SMALL, .before = 100, .prepare = prepare_moving,
      .change = change_lift, .done = done_lift },
    { "erase, site", SMALL, .before = 100, .prepare = change_begin,
      .change = change_site, .done = done_site, .erases = ERASES_SITE },
    { "full, erase", SMALL, .before = FULL, .prepare = change_begin,
      .change = change_erase, .done = done_erase, .erases = ERASES_ID },
    { "clock", SMALL, .before = 100, .claims = 1, .change = change_clock,
      .done = done_clock },
    { "new mark", SMALL, .before = 100, .change = change_names,
      .done = done_names },
    { "first map", SMALL, .before = 0, .shard = 1, .change = change_map,
      .done = done_map },
    { "map", SMALL, .before = 100, .shard = 2, .change = change_map,
      .done = done_map },
    { "map of two chunks", LARGE, .before = 100, .shard = 2,
      .change = change_large, .done = done_map },
    { "model", MEDIUM, .before = 32768, .prepare = prepare_model,
      .change = change_train, .again = again_train, .done = done_train,
      .met = met_model },
    { "full, add", SMALL, .before = FULL, .change = change_add,
      .done = refused, .met = met_full },
    { "full, last add", SMALL, .before = NEARLY, .change = change_add,
      .done = done_add },
    { "full, delete", SMALL, .before = FULL, .change = change_delete,
      .done = done_delete, .met = met_copy },
    { "full, next delete", SMALL, .before = FULL, .prepare = prepare_delete,
      .change = change_delete, .done = done_delete, .met = met_copy },
    { "pass, tokens", MEDIUM, .before = 32768,
      .prepare = prepare_pass_tokens, .change = change_pass,
      .done = done_pass_tokens, .met = met_pass_tokens },
    { "full, pass", SMALL, .before = FULL, .prepare = prepare_pass_long,
      .change = change_pass, .done = done_pass, .met = met_pass },
    { "full, mark", SMALL, .before = FULL, .change = change_mark,
      .done = done_mark, .met = met_full },
    { "no chunk, delete", SMALL, .before = FULL, .prepare = prepare_no_chunks,
      .change = change_delete, .done = refused_delete, .met = met_no_room },
    { "no chunk, mark", SMALL, .before = FULL, .prepare = prepare_no_chunks,
      .change = change_mark, .done = refused_mark, .met = met_no_room },
    { "no leaf, delete", SMALL, .before = FULL, .prepare = prepare_no_leaves,
      .change = change_delete, .done = done_delete, .met = met_stays },
    { NULL }
};


/* everything that was there is there, whole */

static void
check_one(us_store_t *s, unsigned i)
{
    char               want[4096];
    size_t             len, wlen;
    uint8_t            buf[US_URL_MAX + 8];
    us_store_status_t  status;

    status = us_store_get(s, i, buf, &len);
    wlen = url(i, want);

    if (status == US_DELETED) {
        if (i >= gone && (change->change != change_delete || i != ids / 2)
            && (change->erases != ERASES_ID || i != ids / 2)
            && (change->erases != ERASES_SITE || i / 10 != ids / 2 / 10))
        {
            fail("deleted", i);
        }

        return;
    }

    if (status != US_OK || len != wlen || memcmp(buf, want, len) != 0) {
        fail("wrong text of", i);
    }

    if (seen(s, i) != i) {
        fail("not seen", i);
    }
}


static void
check(us_store_t *s, unsigned n)
{
    unsigned  i, step;

    step = n / CHECKED + 1;

    for (i = copies % step; i < n; i += step) {
        check_one(s, i);
    }

    for (i = n > 20 ? n - 20 : 0; i < n; i++) {
        check_one(s, i);
    }
}


static us_store_t *
format(uint8_t *mem, const char *key)
{
    us_store_conf_t  conf = {
        .marks = { us_string("visited"), us_string("todo") },
        .nmarks = mem == zone ? 1 : 2,
        .sites = 1,
        .revisit = change->claims,
        .is_shard = change->shard != 0,
        .ring = RING,
        .sets = 1,
        .erases = 1,
        .keys = change->keys ? 1 << 20 : 0
    };
    us_store_t       *s;

    memset(mem, 0, change->size);
    memcpy(conf.hash_key, key, 16);

    if (us_store_format(mem, change->size, &conf) != 0) {
        fprintf(stderr, "no store\n");
        _exit(2);
    }

    s = open_zone(mem, mem == zone ? &writer : &locks);
    us_store_time(s, 100);

    return s;
}


static void
check_sets(us_store_t *s, us_store_t *r)
{
    uint32_t              row;
    uint64_t              id;
    us_store_set_t        other;
    us_store_set_info_t   info;

    for (row = 0; us_store_set_info(s, &row, &info); ) {
        other = us_store_set(s, info.name);

        if (other.number != info.set.number) {
            fail("a set is not found by its name", info.set.number);
        }

        other = us_store_set(r, info.name);

        if (other.number != info.set.number) {
            fail("another set after a restart, not", info.set.number);
        }

        for (id = 0; id < us_store_next_id(s); id++) {
            if (us_store_set_has(s, info.set, id)
                != us_store_set_has(r, other, id))
            {
                fail("another member after a restart", id);
            }
        }
    }
}


/* r has the erasures of s */

static void
check_erasures(us_store_t *s, us_store_t *r)
{
    uint64_t            n;
    us_erasure_info_t   one, two;

    if (us_store_erasures(s) != us_store_erasures(r)) {
        fail("erasures after a restart:", (unsigned) us_store_erasures(r));
    }

    for (n = 1; us_store_erasure(s, n, &one) && us_store_erasure(r, n, &two);
         n++)
    {
        if (one.state != two.state || one.listed != two.listed
            || one.deleted != two.deleted)
        {
            fail("another erasure after a restart", (unsigned) n);
        }
    }
}


/* the list has as many entries of each erasure as that counts */

static void
check_list(void)
{
    uint64_t            n, listed;
    us_store_t         *s;
    us_erased_dump_t    d;
    us_erased_hash_t    h[64];
    us_erasure_info_t   info;
    static uint64_t     seen_now[4096];
    unsigned            i, k, all_of, of;

    s = open_zone(trial, &locks);
    memset(&d, 0, sizeof(d));
    d.moves = UINT64_MAX;
    all_of = 0;

    /* each once: an entry that was moved is in both tables */

    while (!d.ended) {
        n = us_erased_dump(s, &d, US_ERASURES, h, 64);

        for (i = 0; i < n && all_of < 4096; i++) {
            for (k = 0; k < all_of && seen_now[k] != h[i].hash; k++) {
                /* void */
            }

            seen_now[k] = h[i].hash;
            all_of += k == all_of;
        }
    }

    for (n = 1, listed = 0; us_store_erasure(s, n, &info); n++) {
        listed += info.state == US_ERASURE_LIFTED ? 0 : info.listed;
    }

    of = (unsigned) listed;

    if (all_of != of) {
        fail("entries of the list:", all_of);
    }

    us_store_close(s);
}


/* the journal of s makes the same store */

static void
restart(us_store_t *s)
{
    size_t            n;
    uint64_t          id;
    us_store_t       *r;
    us_store_info_t   one, two;

    n = journal.len;
    stream_drain(&journal, s);

    r = format(second, "another key here");

    if (us_store_apply(r, journal.data, journal.len) != (ssize_t) journal.len
        || us_store_settle(r) != 0)
    {
        fail("does not restart", 0);

    } else {
        us_store_info(s, &one);
        us_store_info(r, &two);

        if (one.urls != two.urls || one.deleted != two.deleted
            || one.sites != two.sites || done_mark(s) != done_mark(r)
            || us_store_map(s)->version != us_store_map(r)->version)
        {
            fail("another store after a restart", two.urls);
        }

        for (id = 0; change->claims && id < one.urls; id++) {
            if (us_store_claimed(s, id) != us_store_claimed(r, id)) {
                fail("another claim after a restart", id);
            }
        }

        for (id = 0; change->keys && id < one.urls; id++) {
            if (knows(trial, US_KEYS_NEW, id) != knows(second, US_KEYS_NEW, id)
                || knows(trial, US_KEYS_DUE, id)
                   != knows(second, US_KEYS_DUE, id))
            {
                fail("another key after a restart", id);
            }
        }

        check(r, two.urls);
        check_sets(s, r);
        check_erasures(s, r);
    }

    us_store_close(r);
    journal.len = n;
}


/*
 * No chunk of the directory is lost, and none is there twice.  The entries of
 * all leaves are those that the zone counts.
 */

static void
check_index(void)
{
    uint32_t     leaf;
    uint64_t     i, n;
    us_head_t   *h;
    us_arena_t   a;

    us_arena_open(&a, trial);
    h = a.head;
    n = h->directory_spare != 0;

    for (i = h->directory_first; i <= h->directory_last; i++) {
        n += *us_directory_chunk(&a, i) != 0;
    }

    if (n != h->area[US_AREA_DIRECTORY].n) {
        fail("chunks of the directory:", n);
    }

    for (i = h->leaves, n = 0; i < 2 * h->leaves; i++) {
        leaf = us_directory_get(&a, i);
        n += leaf ? us_leaf(us_relaxed(us_leaf_at(&a, leaf))).count : 0;
    }

    if (n != h->entries) {
        fail("entries of the leaves:", n);
    }
}


/*
 * Sets have as many members as they count, and as much memory.  Of a chunk no
 * less is known to live than does.
 */

static void
check_members(void)
{
    uint32_t        row, *chunks;
    uint64_t        i, n, from, bytes;
    us_head_t      *h;
    members_t       m;
    us_arena_t      a;
    us_set_row_t   *r;
    us_set_run_t    run;
    static uint64_t living[LARGE >> 14];

    us_arena_open(&a, trial);
    h = a.head;
    memset(living, 0, sizeof(living));
    memset(&m, 0, sizeof(members_t));
    m.living = living;

    for (row = 0; row < h->sets_rows; row++) {
        r = us_set_row(&a, row);
        bytes = m.bytes;
        members_add(&a, row, &m);

        for (n = 0, from = 0;
             us_set_next(&a, row, from, US_SET_ID_MAX, &run);
             from = run.last + 1)
        {
            n += run.last - run.first + 1;
        }

        if (r->bytes != m.bytes - bytes) {
            fail("bytes of a set:", r->bytes);
        }

        /* one that is dropped counts none any more */

        if (r->number && !(r->number & US_SET_DROPPED) && r->members != n) {
            fail("members of a set:", r->members);
        }
    }

    if (m.astray) {
        fail("objects of sets that are lost when they are moved:", m.astray);
    }

    if (h->members_live != m.bytes) {
        fail("bytes of all sets:", h->members_live);
    }

    chunks = (uint32_t *) (trial + h->area[US_AREA_MEMBERS].directory);

    for (i = 0, n = 0; i < h->area[US_AREA_MEMBERS].max; i++) {
        n += chunks[i] != 0;

        if (living[i] && chunks[i] < living[i] + 1) {
            fail("a chunk has less than lives in it:", i);
        }
    }

    if (n != h->area[US_AREA_MEMBERS].n) {
        fail("chunks of sets:", n);
    }
}


/* goes on as if nothing had happened, if there is room */

static void
go_on(us_store_t *s)
{
    int       was;
    unsigned  i;
    uint64_t  lsn;

    for (i = ids; i < ids + 150; i++) {
        add(s, i);
    }

    us_store_delete(s, ids + 5, &was, &lsn);
    add(s, ids + 5);

    if (us_store_next_id(s) != ids + 151) {
        fail("ids", us_store_next_id(s));
    }

    check(s, ids + 5);
}


/* a copy of the zone; ended: the writer has unlocked */

static void
try(int ended)
{
    int          done;
    uint64_t     lsn;
    us_store_t  *s;

    copies++;
    alarm(PATIENCE);
    memcpy(trial, zone, change->size);
    s = open_zone(trial, &locks);

    /* a reader, before any writer comes */

    check(s, us_store_next_id(s));

    if (change->keys) {
        check_key(s, trial);
    }

    /* any other writer: completes it, or not */

    mark_put(s, 0, 1 << 30, 1, &lsn);
    done = change->done(s);
    undone += !done;
    check_index();
    check_members();
    check_list();

    if (ended && !done) {
        fail("answered, but not done", 0);
    }

    if (change->far == NULL
        && (all || ended || copies % (RESTART + ids / RESTARTED) == 0))
    {
        restart(s);
    }

    /* the same again, and others */

    if (change->again == NULL) {
        change->change(s);

    } else {
        change->again(s);
    }

    /* a chunk that the last add got is one of those that adds must leave */

    if (!change->done(s) && change->before != NEARLY) {
        fail("cannot be done again", 0);
    }

    if (change->before < NEARLY) {
        go_on(s);
    }

    check(s, ids);
    check_members();
    us_store_close(s);
    alarm(0);
}


/* the instruction at which a signal came is executed alone, or no longer */

#if defined(__x86_64__)

#define TRAP_FLAG  0x100

static void
step(ucontext_t *uc, int alone)
{
    uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    uc->uc_mcontext.gregs[REG_EFL] |= alone ? TRAP_FLAG : 0;
}

#elif defined(__aarch64__)

/* a store does not branch: the next instruction becomes a breakpoint */

#define BREAKPOINT  0xd4200000

static void
step(ucontext_t *uc, int alone)
{
    uintptr_t         page;
    static uint32_t  *next, instruction;

    page = (uintptr_t) sysconf(_SC_PAGESIZE);

    if (alone) {
        next = (uint32_t *) uc->uc_mcontext.pc + 1;
        instruction = *next;

        if (mprotect((void *) ((uintptr_t) next & -page), page,
                     PROT_READ|PROT_WRITE|PROT_EXEC)
            == -1)
        {
            perror("mprotect");
            _exit(2);
        }
    }

    *next = alone ? BREAKPOINT : instruction;
    __builtin___clear_cache((char *) next, (char *) (next + 1));
}

#else
#error "step() is of x86-64 and arm64"
#endif


/* an instruction is about to store to the zone */

static void
closed(int sig, siginfo_t *info, void *context)
{
    uintptr_t  at;

    at = (uintptr_t) info->si_addr;

    if (!stepping || at - (uintptr_t) zone >= change->size) {
        fprintf(stderr, "%s, killed after %u: signal %d\n", change->name,
                stores, sig);
        _exit(1);
    }

    loop = at - address <= 64 ? loop + 1 : 0;
    address = at;

    protect_pages(PROT_READ|PROT_WRITE);
    step(context, 1);
}


/* it has stored */

static void
stored(int sig, siginfo_t *info, void *context)
{
    step(context, 0);
    stores++;

    if ((all || loop < 4 || loop % LOOP == 0)
        && memcmp(last, zone, change->size) != 0)
    {
        memcpy(last, zone, change->size);
        stepping = 0;
        try(0);
        stepping = 1;
    }

    protect_pages(PROT_READ);
}


/* adds URLs until it is ready, or there are so many, or it is full */

static void
fill(us_store_t *s, unsigned n)
{
    us_head_t  *h;

    h = (us_head_t *) zone;

    for (ids = 0;
         change->ready ? !change->ready(h) : ids < n;
         ids++)
    {
        if (add(s, ids).status == US_FULL) {
            break;
        }

        stream_drain(&journal, s);
    }
}


static us_store_t *
make(unsigned n)
{
    us_store_t  *s;

    gone = 1;
    journal.len = 0;
    s = format(zone, "stepsstepssteps");

    if (change->shard == 2) {
        adopt(s, 1, 2);
    }

    fill(s, n);

    return s;
}


static void
steps(void)
{
    us_head_t    before;
    us_store_t  *s;

    s = make(change->before);

    if (change->before == NEARLY) {
        us_store_close(s);
        s = make(ids - 1);
    }

    if (change->prepare) {
        change->prepare(s);
    }

    stream_drain(&journal, s);

    memcpy(&before, zone, sizeof(us_head_t));
    memcpy(last, zone, change->size);
    stores = 0;
    copies = 0;
    undone = 0;
    address = 0;

    stepping = 1;
    change->change(s);
    stepping = 0;

    try(1);
    us_store_close(s);

    if (change->met && !change->met(&before, (us_head_t *) zone)) {
        fail("this is another case", 0);
    }

    printf("%-26s %6u URLs: %5u stores, %4u copies, %4u undone, %4u done\n",
           change->name, ids, stores, copies, undone, copies - undone);
    fflush(stdout);
}


static uint8_t *
map(void)
{
    void  *p;

    p = mmap(NULL, LARGE, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
             0);

    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }

    return p;
}


int
main(int argc, char **argv)
{
    struct sigaction  sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_flags = SA_SIGINFO;
    sa.sa_sigaction = closed;
    sigaction(SIGSEGV, &sa, NULL);
    sa.sa_sigaction = stored;
    sigaction(SIGTRAP, &sa, NULL);

    zone = map();
    last = map();
    trial = map();
    second = map();
    all = argc > 1 && strcmp(argv[1], "all") == 0;

    for (change = changes; change->name; change++) {
        if (argc < 2 || all || strcmp(argv[1], change->name) == 0) {
            steps();
        }
    }

    printf("%u failures\n", failures);

    return failures != 0;
}
