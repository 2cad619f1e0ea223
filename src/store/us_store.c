
/*
 * The store: what us_store.h promises, put together from its parts.
 *
 *     us_arena    memory, and updates that a kill cannot tear
 *     us_log      id -> bits of the record
 *     us_record   bits <-> text (the codec)
 *     us_index    hash -> candidate ids
 *     us_sites    sites and their counters
 *     us_marks    bits by id; deleted ids
 *     us_ring     operations for the journal
 *
 * A look-up takes no lock: hash, leaf, candidate, compare.
 *
 * An add looks up first, all URLs of a group at once, encodes those not found,
 * and only then takes the lock; there it looks again, asks every part for
 * room (steps that change nothing that anybody can see), writes where nobody
 * looks yet, and publishes with one commit.  The order of words in the commit
 * is: leaves, log, LSN, next_id.  A reader never uses an id that is not below
 * next_id, so whoever sees a URL also sees the LSN that covers it.
 */


#include "us_hash.h"
#include "us_index.h"
#include "us_log.h"
#include "us_marks.h"
#include "us_prefix.h"
#include "us_record.h"
#include "us_ring.h"
#include "us_sites.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>


#define US_LOOK_GROUP      32         /* look-ups whose cache misses overlap */
#define US_LOOK_RETRIES    8
#define US_CHUNKS_SPARE    3          /* kept from adds for other operations */

#define US_DOMAIN_HTTP     0
#define US_DOMAIN_HTTPS    1
#define US_DOMAIN_SITE     2


/* a URL of the group that is being added */

typedef struct {
    us_str_t          site;
    uint64_t          site_hash;
    uint64_t          site_first;     /* or US_STORE_NO_ID: not known */
    unsigned          klass;          /* as encoded */
} us_store_slot_t;


typedef struct us_replay_s  us_replay_t;


struct us_store_s {
    us_arena_t        arena;
    us_codec_t       *codec;
    us_store_lock_t   lock;
    us_store_slot_t   slots[US_STORE_GROUP];
    us_replay_t      *replay;         /* us_store_apply()'s, else NULL */
    uint8_t           text[US_TEXT_BUFFER];
    uint8_t           url[US_TEXT_BUFFER];
    uint8_t           bits[US_RECORD_BUFFER];
};


static inline us_head_t *
us_head(const us_store_t *s)
{
    return s->arena.head;
}


static void
us_store_enter(us_store_t *s)
{
    s->lock.lock(s->lock.data);

    us_arena_enter(&s->arena);
    us_index_enter(&s->arena);
}


static void
us_store_leave(us_store_t *s)
{
    s->lock.unlock(s->lock.data);
}


size_t
us_store_min_size(const us_store_conf_t *conf)
{
    return us_arena_min_size(conf);
}


int
us_store_format(void *mem, size_t size, const us_store_conf_t *conf)
{
    us_arena_t  a;

    if (us_arena_format(&a, mem, size, conf) != 0) {
        return -1;
    }

    us_index_format(&a);

    return 0;
}


us_store_t *
us_store_open(void *mem, const us_store_lock_t *lock)
{
    us_store_t  *s;

    s = calloc(1, sizeof(us_store_t));
    if (s == NULL) {
        return NULL;
    }

    if (us_arena_open(&s->arena, mem) != 0) {
        free(s);
        errno = EINVAL;
        return NULL;
    }

    s->lock = *lock;
    s->codec = us_codec_create(&s->arena);

    if (s->codec == NULL) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }

    return s;
}


void
us_store_close(us_store_t *s)
{
    us_codec_destroy(s->codec);
    free(s->replay);
    free(s);
}


void
us_store_conf(const us_store_t *s, us_store_conf_t *conf)
{
    unsigned    i;
    us_head_t  *h;

    h = us_head(s);

    memset(conf, 0, sizeof(us_store_conf_t));
    memcpy(conf->uuid, h->uuid, sizeof(conf->uuid));
    memcpy(conf->hash_key, h->hash_key, sizeof(conf->hash_key));

    conf->epoch = us_acquire(&h->epoch);
    conf->norm.data = h->norm;
    conf->norm.len = h->norm_len;
    conf->nmarks = h->nmarks;

    for (i = 0; i < h->nmarks; i++) {
        conf->marks[i].data = h->mark[i];
        conf->marks[i].len = h->mark_len[i];
    }

    conf->schemes_first = (h->flags & US_HEAD_SCHEMES_FIRST) != 0;
    conf->sites = (h->flags & US_HEAD_SITES) != 0;
    conf->lookup = (h->flags & US_HEAD_LOOKUP) != 0;
    conf->ring = h->ring_size;
}


static inline unsigned
us_store_domain(const us_store_t *s, unsigned klass)
{
    if (us_head(s)->flags & US_HEAD_SCHEMES_FIRST) {
        return US_DOMAIN_HTTP;
    }

    return klass & US_CLASS_HTTPS ? US_DOMAIN_HTTPS : US_DOMAIN_HTTP;
}


static inline uint64_t
us_store_hash(const us_store_t *s, unsigned klass, us_str_t rest)
{
    return us_hash(us_head(s)->hash_key, us_store_domain(s, klass), rest.data,
                   rest.len);
}


static inline uint64_t
us_store_site_hash(const us_store_t *s, us_str_t site)
{
    return us_hash(us_head(s)->hash_key, US_DOMAIN_SITE, site.data, site.len);
}


void
us_store_item_split(us_store_item_t *item)
{
    size_t  skip;

    item->spelling = 0;
    skip = sizeof("http://") - 1;

    if (item->url.len > 4 && item->url.data[4] == 's') {
        item->spelling = US_CLASS_HTTPS;
        skip++;
    }

    item->rest.data = item->url.data + skip;
    item->rest.len = item->url.len - skip;

    if (item->merge && item->rest.len > 4
        && memcmp(item->rest.data, "www.", 4) == 0)
    {
        item->spelling |= US_CLASS_WWW;
        item->rest.data += 4;
        item->rest.len -= 4;
    }

    item->id = US_STORE_NO_ID;
    item->new_site = 0;
}


/* splits and hashes a URL */

static void
us_store_prepare(const us_store_t *s, us_store_item_t *item)
{
    us_store_item_split(item);
    item->hash = us_store_hash(s, item->spelling, item->rest);
}


/*
 * Goes through the candidates of a probe from *id on, if it is one.  1: the
 * item was found.
 */

static int
us_store_confirm(us_store_t *s, us_probe_t *p, us_store_item_t *item,
    uint64_t id)
{
    int  klass;

    for ( ;; ) {

        /*
         * Acquire: the record of an id below next_id is complete.
         */

        if (id < us_acquire(&us_head(s)->next_id)) {
            klass = us_record_equal(s->codec, id, item->rest);

            if (klass >= 0
                && us_store_domain(s, klass)
                   == us_store_domain(s, item->spelling)
                && !us_marked(&s->arena, US_AREA_DELETED, id))
            {
                item->id = id;
                item->spelling = klass;
                item->status = US_SEEN;
                return 1;
            }
        }

        if (!us_index_next(&s->arena, p, &id)) {
            return 0;
        }
    }
}


/* looks one item up; locked: the caller holds the lock */

static void
us_store_look(us_store_t *s, us_store_item_t *item)
{
    uint64_t    id;
    us_probe_t  p;

    us_index_start(&s->arena, &p, item->hash);

    if (!us_index_next(&s->arena, &p, &id)
        || !us_store_confirm(s, &p, item, id))
    {
        item->status = US_UNSEEN;
    }
}


/* the same without the lock, for an item whose first look met a writer */

static void
us_store_look_again(us_store_t *s, us_store_item_t *item)
{
    unsigned    i;
    uint64_t    id;
    us_probe_t  p;

    for (i = 0; i < US_LOOK_RETRIES; i++) {
        us_index_start(&s->arena, &p, item->hash);

        if (us_index_next(&s->arena, &p, &id)
            && us_store_confirm(s, &p, item, id))
        {
            return;
        }

        if (!us_index_stale(&s->arena, &p)) {
            item->status = US_UNSEEN;
            return;
        }
    }

    us_store_enter(s);
    us_store_look(s, item);
    us_store_leave(s);
}


/* asks for the records of a group of candidates, and for their references */

static void
us_store_prefetch(us_store_t *s, const uint64_t *ids, unsigned n)
{
    unsigned  i;
    uint64_t  next, references[US_LOOK_GROUP];

    next = us_store_next_id(s);

    for (i = 0; i < n; i++) {
        if (ids[i] < next) {
            us_record_prefetch(s->codec, ids[i]);
        }
    }

    for (i = 0; i < n; i++) {
        references[i] = ids[i] < next ? us_record_reference(s->codec, ids[i])
                                : US_STORE_NO_ID;
    }

    for (i = 0; i < n; i++) {
        if (references[i] != US_STORE_NO_ID) {
            us_record_prefetch(s->codec, references[i]);
        }
    }
}


void
us_store_seen(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t      i, group;
    uint64_t    id[US_LOOK_GROUP];
    us_probe_t  p[US_LOOK_GROUP];

    for ( /* void */ ; n; n -= group, items += group) {
        group = n < US_LOOK_GROUP ? n : US_LOOK_GROUP;

        for (i = 0; i < group; i++) {
            us_store_prepare(s, &items[i]);
            us_index_start(&s->arena, &p[i], items[i].hash);
        }

        for (i = 0; i < group; i++) {
            if (!us_index_next(&s->arena, &p[i], &id[i])) {
                id[i] = US_STORE_NO_ID;

            } else if (id[i] < us_acquire(&us_head(s)->next_id)) {
                us_log_prefetch(&s->arena, id[i]);
            }
        }

        if (group > 1) {
            us_store_prefetch(s, id, group);
        }

        for (i = 0; i < group; i++) {
            if (id[i] != US_STORE_NO_ID
                && us_store_confirm(s, &p[i], &items[i], id[i]))
            {
                continue;
            }

            items[i].status = US_UNSEEN;

            if (us_index_stale(&s->arena, &p[i])) {
                us_store_look_again(s, &items[i]);
            }
        }
    }
}


/*
 * One pass over the candidates for a site.  A URL of the site may be among
 * them by chance, but the first one has the lowest id.
 */

static int
us_store_site_look(us_store_t *s, us_probe_t *p, us_str_t site, uint64_t hash,
    us_store_site_t *out)
{
    uint64_t  id;
    us_str_t  rest;

    us_index_start(&s->arena, p, hash);

    while (us_index_next(&s->arena, p, &id)) {

        if (id >= us_acquire(&us_head(s)->next_id)) {
            continue;
        }

        rest.len = us_record_decode(s->codec, id, s->text) - 1;
        rest.data = s->text + 1;
        rest = us_site(rest);

        if (rest.len != site.len || memcmp(rest.data, site.data, site.len)) {
            continue;
        }

        out->first = id;
        out->last = id;
        out->spelling = s->text[0];
        out->urls = 0;

        return 1;
    }

    return 0;
}


/* 1: the site is known, out (but for its counter) is filled */

static int
us_store_site_find(us_store_t *s, us_str_t site, uint64_t hash,
    us_store_site_t *out)
{
    int         found;
    unsigned    i;
    us_probe_t  p;

    for (i = 0; i < US_LOOK_RETRIES; i++) {

        if (us_store_site_look(s, &p, site, hash, out)) {
            return 1;
        }

        if (!us_index_stale(&s->arena, &p)) {
            return 0;
        }
    }

    us_store_enter(s);
    found = us_store_site_look(s, &p, site, hash, out);
    us_store_leave(s);

    return found;
}


us_store_status_t
us_store_site(us_store_t *s, us_str_t site, us_store_site_t *out)
{
    if (!us_store_site_find(s, site, us_store_site_hash(s, site), out)) {
        return US_UNKNOWN;
    }

    if (us_head(s)->flags & US_HEAD_SITES) {
        us_site_read(&s->arena, us_site_number(&s->arena, out->first),
                     &out->urls, &out->last);
    }

    return US_OK;
}


int
us_store_first_of_site(us_store_t *s, uint64_t id)
{
    us_str_t         site;
    us_store_site_t  out;

    if (id >= us_store_next_id(s)) {
        return 0;
    }

    site.len = us_record_decode(s->codec, id, s->url) - 1;
    site.data = s->url + 1;
    site = us_site(site);

    return us_store_site_find(s, site, us_store_site_hash(s, site), &out)
           && out.first == id;
}


/* the class under which an item is stored if its site has this one */

static inline unsigned
us_store_class(const us_store_item_t *item, unsigned site)
{
    if (!item->merge) {
        return item->spelling;
    }

    return (item->spelling & ~US_CLASS_WWW) | (site & US_CLASS_WWW);
}


void
us_store_spell(us_store_t *s, us_store_item_t *item)
{
    us_str_t         site;
    us_store_site_t  out;

    site = us_site(item->rest);

    if (item->merge
        && us_store_site_find(s, site, us_store_site_hash(s, site), &out))
    {
        item->spelling = us_store_class(item, out.spelling);
    }
}


static size_t
us_store_url(unsigned klass, us_str_t rest, uint8_t *buf)
{
    uint8_t  *p;

    p = buf;

    memcpy(p, "https", 5);
    p += klass & US_CLASS_HTTPS ? 5 : 4;

    memcpy(p, "://www.", 7);
    p += klass & US_CLASS_WWW ? 7 : 3;

    memcpy(p, rest.data, rest.len);

    return p + rest.len - buf;
}


size_t
us_store_item_url(const us_store_item_t *item, uint8_t *buf)
{
    return us_store_url(item->spelling, item->rest, buf);
}


us_store_status_t
us_store_get(us_store_t *s, uint64_t id, uint8_t *buf, size_t *len)
{
    us_str_t  rest;

    if (id >= us_store_next_id(s)) {
        return US_UNKNOWN;
    }

    if (us_marked(&s->arena, US_AREA_DELETED, id)) {
        return US_DELETED;
    }

    rest.len = us_record_decode(s->codec, id, s->text) - 1;
    rest.data = s->text + 1;

    if (rest.len == 0) {
        return US_DAMAGED;
    }

    *len = us_store_url(s->text[0], rest, buf);

    return US_OK;
}


uint64_t
us_store_next_id(const us_store_t *s)
{
    /*
     * Acquire: all that there is to know of the ids below was written before
     * the number was released.
     */

    return us_acquire(&us_head(s)->next_id);
}


/* the hashes of a stored URL */

static void
us_store_hashes(us_store_t *s, uint64_t id, us_hashes_t *hashes)
{
    us_str_t  rest;

    rest.len = us_record_decode(s->codec, id, s->text) - 1;
    rest.data = s->text + 1;

    hashes->site = us_store_site_hash(s, us_site(rest));
    hashes->url = us_marked(&s->arena, US_AREA_DELETED, id)
                  ? 0 : us_store_hash(s, s->text[0], rest);
}


/* for the index: those of the entries of a leaf */

static void
us_store_hash_all(void *data, const uint64_t *ids, unsigned n,
    us_hashes_t *hashes)
{
    unsigned     i;
    us_store_t  *s;

    s = data;

    for (i = 0; i < n; i++) {
        us_log_prefetch(&s->arena, ids[i]);
    }

    for (i = 0; i < n; i++) {
        us_record_prefetch(s->codec, ids[i]);
    }

    for (i = 0; i < n; i++) {
        us_store_hashes(s, ids[i], &hashes[i]);
    }
}


/*
 * Room in the index and among the sites' counters for record id.  Nothing that
 * can be seen changes.
 */

static int
us_store_reserve_index(us_store_t *s, uint64_t id, const us_hashes_t *hashes,
    int new_site)
{
    unsigned     both;
    us_arena_t  *a;

    a = &s->arena;

    us_index_grow(a, us_store_hash_all, s);

    if (us_index_reserve(a, hashes->url, id, 1) != 0) {
        return -1;
    }

    if (!new_site) {
        return 0;
    }

    both = us_index_same(a, hashes->url, hashes->site);

    if (us_index_reserve(a, hashes->site, id, 1 + both) != 0) {
        return -1;
    }

    return us_head(s)->flags & US_HEAD_SITES ? us_site_reserve(a) : 0;
}


/* intends the entries of record id and what its site counts */

static void
us_store_index(us_store_t *s, uint64_t id, const us_hashes_t *hashes,
    uint64_t site_first)
{
    us_head_t   *h;
    us_arena_t  *a;

    a = &s->arena;
    h = a->head;

    us_index_put(a, hashes->url, id);

    if (site_first != US_STORE_NO_ID) {

        if (h->flags & US_HEAD_SITES) {
            us_site_count(a, us_site_number(a, site_first), id);
        }

        return;
    }

    us_index_put(a, hashes->site, id);

    if (h->flags & US_HEAD_SITES) {
        us_site_add(a, id);

    } else {
        us_intend(a, &h->sites, h->sites + 1);
    }
}


/* under the lock: an item that was unseen without it */

static void
us_store_put(us_store_t *s, us_store_item_t *item, unsigned slot)
{
    uint32_t          units;
    us_op_t           op;
    us_head_t        *h;
    us_arena_t       *a;
    us_hashes_t       hashes;
    us_store_site_t   site;
    us_store_slot_t  *sl;
    const uint8_t    *bits;

    a = &s->arena;
    h = a->head;
    sl = &s->slots[slot];

    us_store_look(s, item);

    if (item->status == US_SEEN) {
        us_record_added(s->codec, slot, item->id);
        return;
    }

    if (sl->site_first == US_STORE_NO_ID
        && us_store_site_find(s, sl->site, sl->site_hash, &site))
    {
        /* somebody, or an earlier URL of this group, was first */

        sl->site_first = site.first;
        item->spelling = us_store_class(item, site.spelling);

        if (item->spelling != sl->klass) {
            us_record_encode_plain(s->codec, slot, item->spelling,
                                   item->rest);
        }
    }

    units = us_record_emit(s->codec, slot, h->next_id, &bits);

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_ADD;
    op.units = units;
    op.bytes.data = bits;
    op.bytes.len = (units + 1) / 2;

    if (!us_ring_fits(a, us_op_size(&op))) {
        item->status = US_BUSY;
        return;
    }

    hashes.url = item->hash;
    hashes.site = sl->site_hash;

    /* the log twice: the index may have taken its room */

    if (!us_arena_fits(a, US_CHUNKS_SPARE, op.bytes.len)
        || us_log_reserve(a, h->next_id, units) != 0
        || us_store_reserve_index(s, h->next_id, &hashes,
                                  sl->site_first == US_STORE_NO_ID)
           != 0
        || us_log_reserve(a, h->next_id, units) != 0)
    {
        us_release(&h->full, 1);
        item->status = US_FULL;
        return;
    }

    item->id = h->next_id;
    item->new_site = sl->site_first == US_STORE_NO_ID;
    item->status = US_NEW;

    us_log_write(a, item->id, bits, units);

    us_store_index(s, item->id, &hashes, sl->site_first);
    us_log_append(a, units);
    us_ring_put(a, &op);
    us_intend(a, &h->next_id, item->id + 1);
    us_commit(a);

    us_release(&h->full, 0);
    us_record_added(s->codec, slot, item->id);
}


/* settles the site and the spelling of an unseen item as far as known now */

static void
us_store_place(us_store_t *s, us_store_item_t *items, size_t i)
{
    size_t            k;
    us_store_site_t   site;
    us_store_slot_t  *sl;

    sl = &s->slots[i];

    sl->site = us_site(items[i].rest);
    sl->site_hash = us_store_site_hash(s, sl->site);
    sl->site_first = US_STORE_NO_ID;

    for (k = 0; k < i; k++) {
        if (items[k].status == US_UNSEEN
            && s->slots[k].site_hash == sl->site_hash)
        {
            sl->site_first = s->slots[k].site_first;
            items[i].spelling = us_store_class(&items[i],
                                               s->slots[k].klass);
            goto done;
        }
    }

    if (us_store_site_find(s, sl->site, sl->site_hash, &site)) {
        sl->site_first = site.first;
        items[i].spelling = us_store_class(&items[i], site.spelling);
    }

done:

    sl->klass = items[i].spelling;
}


static void
us_store_add_group(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t  i, unseen;

    us_store_seen(s, items, n);

    for (i = 0, unseen = 0; i < n; i++) {
        if (items[i].status != US_UNSEEN) {
            continue;
        }

        if (us_head(s)->flags & US_HEAD_LOOKUP) {
            items[i].status = US_UNKNOWN;
            continue;
        }

        if (unseen++ == 0) {
            us_record_begin(s->codec);
        }

        us_store_place(s, items, i);
        us_record_encode(s->codec, i, s->slots[i].klass, items[i].rest);
    }

    if (unseen == 0) {
        return;
    }

    us_store_enter(s);

    for (i = 0; i < n; i++) {
        if (items[i].status == US_UNSEEN) {
            us_store_put(s, &items[i], i);
        }
    }

    us_store_leave(s);
}


uint64_t
us_store_add(us_store_t *s, us_store_item_t *items, size_t n)
{
    size_t  group;

    for ( /* void */ ; n; n -= group, items += group) {
        group = n < US_STORE_GROUP ? n : US_STORE_GROUP;
        us_store_add_group(s, items, group);
    }

    return us_store_published(s);
}


/*
 * Under the lock: takes the URL of a live id out of the index, clears its
 * marks, and makes it deleted.
 */

static us_store_status_t
us_store_forget(us_store_t *s, uint64_t id, const us_op_t *op)
{
    unsigned          m;
    us_str_t          site;
    us_head_t        *h;
    us_arena_t       *a;
    us_hashes_t       hashes;
    us_removal_t      removal;
    us_store_site_t   out;

    a = &s->arena;
    h = a->head;

    if (us_mark_reserve(a, US_AREA_DELETED, id) != 0) {
        return US_FULL;
    }

    us_store_hashes(s, id, &hashes);

    if (!(h->flags & US_HEAD_LOOKUP)) {

        out.first = US_STORE_NO_ID;

        if (h->flags & US_HEAD_SITES) {
            site.len = us_record_decode(s->codec, id, s->url) - 1;
            site.data = s->url + 1;
            us_store_site_find(s, us_site(site), hashes.site, &out);
        }

        us_index_remove_prepare(a, hashes.url, id, &removal);

        if (out.first != US_STORE_NO_ID) {
            us_site_uncount(a, us_site_number(a, out.first));
        }
    }

    /*
     * The LSN before the bit: who sees the bit also sees what covers it.  The
     * bit before the index: a URL must not be unseen while its id still gives
     * it.
     */

    if (op) {
        us_ring_put(a, op);
    }

    us_mark_set(a, US_AREA_DELETED, id, 1);
    us_intend(a, &h->deleted, h->deleted + 1);

    for (m = 0; m < h->nmarks; m++) {
        if (us_marked(a, US_AREA_MARK + m, id)) {
            us_mark_set(a, US_AREA_MARK + m, id, 0);
        }
    }

    if (!(h->flags & US_HEAD_LOOKUP)) {
        us_index_remove(a, &removal);
    }

    us_commit(a);

    return US_OK;
}


us_store_status_t
us_store_delete(us_store_t *s, uint64_t id, int *was, uint64_t *lsn)
{
    us_op_t            op;
    us_head_t         *h;
    us_arena_t        *a;
    us_store_status_t  status;

    a = &s->arena;
    h = a->head;
    *was = 0;

    us_store_enter(s);

    if (id >= h->next_id) {
        status = US_UNKNOWN;
        goto done;
    }

    if (us_marked(a, US_AREA_DELETED, id)) {
        *was = 1;
        status = US_OK;
        goto done;
    }

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_DELETE;
    op.id = id;

    if (!us_ring_fits(a, us_op_size(&op))) {
        status = US_BUSY;
        goto done;
    }

    status = us_store_forget(s, id, &op);

done:

    *lsn = h->published;
    us_store_leave(s);

    return status;
}


/* under the lock: changes a mark of a live id */

static us_store_status_t
us_store_set_mark(us_store_t *s, unsigned m, uint64_t id, int on,
    const us_op_t *op)
{
    us_arena_t  *a;

    a = &s->arena;

    if (on && us_mark_reserve(a, US_AREA_MARK + m, id) != 0) {
        return US_FULL;
    }

    if (op) {
        us_ring_put(a, op);
    }

    us_mark_set(a, US_AREA_MARK + m, id, on);
    us_commit(a);

    return US_OK;
}


us_store_status_t
us_store_mark(us_store_t *s, unsigned m, uint64_t id, int on, uint64_t *lsn)
{
    us_op_t            op;
    us_head_t         *h;
    us_store_status_t  status;

    h = us_head(s);

    us_store_enter(s);

    memset(&op, 0, sizeof(us_op_t));
    op.type = on ? US_OP_MARK : US_OP_UNMARK;
    op.mark = m;
    op.id = id;

    if (id >= h->next_id) {
        status = US_UNKNOWN;

    } else if (us_marked(&s->arena, US_AREA_DELETED, id)) {
        status = US_DELETED;

    } else if (us_marked(&s->arena, US_AREA_MARK + m, id) == on) {
        status = US_OK;

    } else if (!us_ring_fits(&s->arena, us_op_size(&op))) {
        status = US_BUSY;

    } else {
        status = us_store_set_mark(s, m, id, on, &op);
    }

    *lsn = h->published;
    us_store_leave(s);

    return status;
}


int
us_store_marked(us_store_t *s, unsigned m, uint64_t id)
{
    return us_marked(&s->arena, US_AREA_MARK + m, id);
}


int
us_store_deleted(us_store_t *s, uint64_t id)
{
    return us_marked(&s->arena, US_AREA_DELETED, id);
}


int
us_store_mark_number(const us_store_t *s, us_str_t name)
{
    unsigned    i;
    us_head_t  *h;

    h = us_head(s);

    for (i = 0; i < h->nmarks; i++) {
        if (h->mark_len[i] == name.len
            && memcmp(h->mark[i], name.data, name.len) == 0)
        {
            return i;
        }
    }

    return -1;
}


int
us_store_train_due(us_store_t *s)
{
    return us_record_train_due(s->codec);
}


/* the trainer's pid is a lock that a death opens; 1: it is ours */

static int
us_store_train_enter(us_store_t *s)
{
    int        got;
    pid_t      pid;

    us_store_enter(s);

    pid = us_head(s)->trainer;
    got = pid == 0 || pid == getpid()
          || (kill(pid, 0) == -1 && errno == ESRCH);

    if (got) {
        us_release(&us_head(s)->trainer, getpid());
    }

    us_store_leave(s);

    return got;
}


/* publishes what was learnt: 1; 0: not now (the ring is full), or never */

static int
us_store_train_publish(us_store_t *s, us_str_t model)
{
    int         done;
    us_op_t     op;
    us_head_t  *h;

    h = us_head(s);
    done = 0;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_MODEL;
    op.bytes = model;

    us_store_enter(s);

    if (h->ring_size && us_op_size(&op) > h->ring_size) {
        us_record_give_up(s->codec);

    } else if (us_ring_fits(&s->arena, us_op_size(&op))) {

        if (us_record_install(s->codec, op.bytes) == 0) {
            us_ring_put(&s->arena, &op);
            us_commit(&s->arena);
            done = 1;

        } else {
            us_record_give_up(s->codec);
        }
    }

    us_store_leave(s);

    return done;
}


int
us_store_train(us_store_t *s, const volatile int *cancel)
{
    int       done;
    us_str_t  model;

    if (!us_record_train_due(s->codec) || !us_store_train_enter(s)) {
        return 0;
    }

    done = us_record_train(s->codec, cancel, &model)
           && us_store_train_publish(s, model);

    us_release(&us_head(s)->trainer, 0);

    return done;
}


uint64_t
us_store_published(const us_store_t *s)
{
    /*
     * Acquire: the bytes of the ring below this LSN were written before.
     */

    return us_acquire(&us_head(s)->published);
}


uint64_t
us_store_written(const us_store_t *s)
{
    return us_acquire(&us_head(s)->written);
}


uint64_t
us_store_durable(const us_store_t *s)
{
    return us_acquire(&us_head(s)->durable);
}


void
us_store_ops(us_store_t *s, uint64_t lsn, us_str_t pieces[2])
{
    uint64_t    n, at, part;
    us_head_t  *h;

    h = us_head(s);

    memset(pieces, 0, 2 * sizeof(us_str_t));
    n = us_store_published(s);

    if (h->ring_size == 0 || lsn >= n) {
        return;
    }

    n -= lsn;
    at = lsn & (h->ring_size - 1);
    part = h->ring_size - at;
    part = part < n ? part : n;

    pieces[0].data = s->arena.base + h->ring + at;
    pieces[0].len = part;
    pieces[1].data = s->arena.base + h->ring;
    pieces[1].len = n - part;
}


void
us_store_set_written(us_store_t *s, uint64_t lsn)
{
    /*
     * Release: the reads of the ring below lsn must be over before a writer
     * is told that it may use those bytes again.
     */

    us_release(&us_head(s)->written, lsn);
}


void
us_store_set_durable(us_store_t *s, uint64_t lsn)
{
    us_release(&us_head(s)->durable, lsn);
}


void
us_store_set_lsn(us_store_t *s, uint64_t lsn)
{
    us_release(&us_head(s)->published, lsn);
    us_release(&us_head(s)->written, lsn);
    us_release(&us_head(s)->durable, lsn);
}


void
us_store_set_identity(us_store_t *s, const uint8_t uuid[16], uint64_t epoch)
{
    memcpy(us_head(s)->uuid, uuid, 16);
    us_release(&us_head(s)->epoch, epoch);
}


unsigned
us_store_op_ids(const uint8_t *p, size_t len)
{
    us_op_t  op;

    return us_op_parse(p, len, &op) > 0 && op.type == US_OP_ADD;
}


ssize_t
us_store_op_size(const uint8_t *p, size_t len)
{
    us_op_t  op;

    return us_op_parse(p, len, &op);
}


/*
 * Replay.  Nobody else uses the store, so an add may be done in two halves:
 * the log at once, because the next record may refer to it; the index later,
 * for a group of records whose leaves have been asked for meanwhile.
 *
 * Most records have a site that was met before: a table of those met last
 * spares the look-up.
 */

#define US_REPLAY_GROUP  16
#define US_REPLAY_SITES  4096
#define US_REPLAY_SITE   47           /* longer ones are looked up */


typedef struct {
    uint64_t          first;
    uint8_t           len;
    uint8_t           text[US_REPLAY_SITE];
} us_replay_site_t;


typedef struct {
    uint64_t          id;
    us_hashes_t       hashes;
    size_t            site_len;
    uint8_t           site[US_REPLAY_SITE];
} us_replay_add_t;


/*
 * The image of an index, in a dump: what US_OP_IMAGE says of those that follow.
 * It spares the adds below `ids` to be decoded and hashed once more.
 */

typedef struct {
    uint64_t          layout;         /* US_LAYOUT */
    uint8_t           hash_key[16];
    uint64_t          ids;
    uint64_t          leaves;
    uint64_t          sites;
    uint64_t          cache;          /* bytes */
} us_store_image_t;


struct us_replay_s {
    uint64_t          indexed;        /* ids that an image has, or 0 */
    unsigned          n;
    us_replay_add_t   adds[US_REPLAY_GROUP];
    us_replay_site_t  sites[US_REPLAY_SITES];
};


/* the id of the first URL of an add's site, or US_STORE_NO_ID */

static uint64_t
us_replay_site(us_store_t *s, us_replay_add_t *add)
{
    us_str_t           site;
    us_store_site_t    out;
    us_replay_site_t  *known;

    if (add->site_len == 0 || add->site_len > US_REPLAY_SITE) {
        site.len = us_record_decode(s->codec, add->id, s->url) - 1;
        site.data = s->url + 1;

        return us_store_site_find(s, us_site(site), add->hashes.site, &out)
               ? out.first : US_STORE_NO_ID;
    }

    known = &s->replay->sites[add->hashes.site % US_REPLAY_SITES];

    if (known->len == add->site_len
        && memcmp(known->text, add->site, add->site_len) == 0)
    {
        return known->first;
    }

    site.len = add->site_len;
    site.data = add->site;

    known->len = add->site_len;
    memcpy(known->text, add->site, add->site_len);
    known->first = add->id;

    if (us_store_site_find(s, site, add->hashes.site, &out)) {
        known->first = out.first;
        return out.first;
    }

    return US_STORE_NO_ID;
}


/* the second half of the adds that wait for it */

static int
us_replay_flush(us_store_t *s)
{
    unsigned          i, n;
    uint64_t          first;
    us_replay_add_t  *add;

    n = s->replay->n;
    s->replay->n = 0;

    for (i = 0; i < n; i++) {
        add = &s->replay->adds[i];
        first = us_replay_site(s, add);

        if (us_store_reserve_index(s, add->id, &add->hashes,
                                   first == US_STORE_NO_ID)
            != 0)
        {
            return -1;
        }

        us_store_index(s, add->id, &add->hashes, first);
        us_commit(&s->arena);
    }

    return 0;
}


static int
us_replay_add(us_store_t *s, const us_op_t *op)
{
    size_t            len;
    uint64_t          id;
    us_str_t          rest, site;
    us_arena_t       *a;
    us_probe_t        p;
    us_replay_add_t  *add;

    a = &s->arena;
    id = a->head->next_id;

    /* who reads bits may look at 8 bytes more than there are */

    memcpy(s->bits, op->bytes.data, op->bytes.len);

    if (us_log_reserve(a, id, op->units) != 0) {
        return -1;
    }

    us_log_write(a, id, s->bits, op->units);
    us_log_append(a, op->units);
    us_intend(a, &a->head->next_id, id + 1);
    us_commit(a);

    if ((a->head->flags & US_HEAD_LOOKUP) || id < s->replay->indexed) {
        return 0;
    }

    len = us_record_decode(s->codec, id, s->url);
    us_record_replayed(s->codec, id, s->url, len);

    /* a damaged record has its id, but nothing to be found by */

    if (len == 1) {
        return 0;
    }

    rest.len = len - 1;
    rest.data = s->url + 1;
    site = us_site(rest);

    add = &s->replay->adds[s->replay->n++];

    add->id = id;
    add->hashes.url = us_store_hash(s, s->url[0], rest);
    add->hashes.site = us_store_site_hash(s, site);
    add->site_len = site.len;

    if (site.len <= US_REPLAY_SITE) {
        memcpy(add->site, site.data, site.len);
    }

    us_index_start(a, &p, add->hashes.url);

    return s->replay->n == US_REPLAY_GROUP ? us_replay_flush(s) : 0;
}


static int
us_store_apply_delete(us_store_t *s, uint64_t id)
{
    if (id >= us_head(s)->next_id) {
        return -1;
    }

    if (us_marked(&s->arena, US_AREA_DELETED, id)) {
        return 0;
    }

    return us_store_forget(s, id, NULL) == US_OK ? 0 : -1;
}


/* a mark that was set on an id which was deleted later is void */

static int
us_store_apply_mark(us_store_t *s, unsigned m, uint64_t id, int on)
{
    if (id >= us_head(s)->next_id || m >= us_head(s)->nmarks) {
        return -1;
    }

    if (us_marked(&s->arena, US_AREA_DELETED, id)) {
        return 0;
    }

    return us_store_set_mark(s, m, id, on, NULL) == US_OK ? 0 : -1;
}


static int
us_store_apply_words(us_store_t *s, const us_op_t *op)
{
    int       rc;
    size_t    i;
    uint64_t  id, word;

    rc = 0;

    for (i = 0; i < op->bytes.len / 8; i++) {
        memcpy(&word, op->bytes.data + i * 8, 8);

        for ( /* void */ ; word && rc == 0; word &= word - 1) {
            id = (op->id + i) * 64 + __builtin_ctzll(word);

            rc = op->type == US_OP_DELETED
                 ? us_store_apply_delete(s, id)
                 : us_store_apply_mark(s, op->mark, id, 1);
        }
    }

    return rc;
}


/*
 * An image that does not fit this zone, or is of another layout, is passed
 * over: its adds are hashed then like all others.
 */

static int
us_replay_image(us_store_t *s, const us_op_t *op)
{
    us_head_t         *h;
    us_store_image_t   im;

    h = us_head(s);

    if (op->bytes.len != sizeof(us_store_image_t) || h->next_id) {
        return -1;
    }

    memcpy(&im, op->bytes.data, sizeof(us_store_image_t));

    if (im.layout != US_LAYOUT || (h->flags & (US_HEAD_LOOKUP|US_HEAD_SITES))
        || us_index_begin(&s->arena, im.leaves) != 0
        || us_prefix_restore(&s->arena, im.cache) != 0)
    {
        return 0;
    }

    memcpy(h->hash_key, im.hash_key, sizeof(h->hash_key));

    us_intend(&s->arena, &h->sites, im.sites);
    us_commit(&s->arena);

    s->replay->indexed = im.ids;

    return 0;
}


static int
us_replay_leaves(us_store_t *s, const us_op_t *op)
{
    size_t          left;
    uint64_t        n, leaf;
    const uint8_t  *p;

    if (s->replay->indexed == 0) {
        return 0;
    }

    p = op->bytes.data;
    left = op->bytes.len / sizeof(uint64_t);

    for (leaf = op->id; left; leaf++) {
        memcpy(&n, p, sizeof(uint64_t));
        p += sizeof(uint64_t);
        left--;

        if (n > left
            || us_index_leaf(&s->arena, leaf, p, n, s->replay->indexed) != 0)
        {
            return -1;
        }

        p += n * sizeof(uint64_t);
        left -= n;
    }

    return 0;
}


static int
us_store_apply_op(us_store_t *s, const us_op_t *op)
{
    if (op->type == US_OP_ADD) {
        return us_replay_add(s, op);
    }

    if (us_replay_flush(s) != 0) {
        return -1;
    }

    switch (op->type) {

    case US_OP_DELETE:
        return us_store_apply_delete(s, op->id);

    case US_OP_MARK:
        return us_store_apply_mark(s, op->mark, op->id, 1);

    case US_OP_UNMARK:
        return us_store_apply_mark(s, op->mark, op->id, 0);

    case US_OP_MARKS:
    case US_OP_DELETED:
        return us_store_apply_words(s, op);

    case US_OP_MODEL:
        if (us_record_install(s->codec, op->bytes) != 0) {
            return -1;
        }

        us_commit(&s->arena);
        return 0;

    case US_OP_AT:
        return op->id == us_head(s)->next_id ? 0 : -1;

    case US_OP_EXPECT:
        if (!(us_head(s)->flags & US_HEAD_LOOKUP)) {
            us_index_presize(&s->arena, op->id);
        }

        return 0;

    case US_OP_IMAGE:
        return us_replay_image(s, op);

    case US_OP_LEAVES:
        return us_replay_leaves(s, op);

    case US_OP_CACHE:
        return s->replay->indexed
               ? us_prefix_paste(&s->arena, op->id, op->bytes.data,
                                 op->bytes.len)
               : 0;

    default:
        return -1;
    }
}


ssize_t
us_store_apply(us_store_t *s, const uint8_t *p, size_t len)
{
    size_t   done;
    ssize_t  n;
    us_op_t  op;

    if (s->replay == NULL) {
        s->replay = calloc(1, sizeof(us_replay_t));

        if (s->replay == NULL) {
            return -1;
        }
    }

    us_arena_enter(&s->arena);
    us_index_enter(&s->arena);

    for (done = 0; done < len; done += n) {
        n = us_op_parse(p + done, len - done, &op);

        if (n == 0 || n > (ssize_t) (len - done)) {
            break;
        }

        if (n < 0 || us_store_apply_op(s, &op) != 0) {
            return -1;
        }
    }

    return us_replay_flush(s) == 0 ? (ssize_t) done : -1;
}


/* a dump in progress: operations are collected in pieces */

#define US_IMAGE_TRIES  3
#define US_IMAGE_WORDS  512           /* of leaves in an operation, at least */

typedef struct {
    us_store_out_pt   out;
    void             *data;
    int               failed;
    size_t            n;
    uint8_t           buf[16384];
} us_dump_t;


static void
us_dump_flush(us_dump_t *d)
{
    if (d->n && !d->failed && d->out(d->data, d->buf, d->n) != 0) {
        d->failed = 1;
    }

    d->n = 0;
}


static void
us_dump_op(us_dump_t *d, const us_op_t *op)
{
    if (d->n + US_OP_HEAD_MAX + op->bytes.len > sizeof(d->buf)) {
        us_dump_flush(d);
    }

    d->n += us_op_head(op, d->buf + d->n);

    if (op->bytes.len <= sizeof(d->buf) - US_OP_HEAD_MAX) {
        memcpy(d->buf + d->n, op->bytes.data, op->bytes.len);
        d->n += op->bytes.len;
        return;
    }

    us_dump_flush(d);

    if (!d->failed && d->out(d->data, op->bytes.data, op->bytes.len) != 0) {
        d->failed = 1;
    }
}


/*
 * A copy of the index, which goes on growing: once it overtook the copy, from
 * the beginning again.  0, or -1: the dump goes without.
 */

static int
us_dump_copy(us_store_t *s, us_index_image_t *im)
{
    int       rc;
    unsigned  i;

    for (i = 0; i < US_IMAGE_TRIES; i++) {
        memset(im, 0, sizeof(us_index_image_t));

        do {
            rc = us_index_image_room(im);

            if (rc == 0) {
                us_store_enter(s);
                rc = us_index_image(&s->arena, im);
                us_store_leave(s);
            }
        } while (rc == 1);

        if (rc == 0) {
            return 0;
        }

        us_index_image_free(im);
    }

    return -1;
}


/* counters of sites would count what follows: with them, no image */

static void
us_dump_image(us_store_t *s, us_dump_t *d, uint64_t n, uint64_t sites)
{
    us_op_t            op;
    size_t             at, end;
    uint8_t            piece[US_PREFIX_PIECE];
    uint64_t           leaf, pos;
    us_head_t         *h;
    us_index_image_t   im;
    us_store_image_t   out;

    h = us_head(s);

    if (n == 0 || (h->flags & (US_HEAD_SITES|US_HEAD_LOOKUP))
        || us_dump_copy(s, &im) != 0)
    {
        return;
    }

    memset(&out, 0, sizeof(us_store_image_t));
    out.layout = US_LAYOUT;
    memcpy(out.hash_key, h->hash_key, sizeof(out.hash_key));
    out.ids = n;
    out.leaves = im.leaves;
    out.sites = sites;
    out.cache = us_prefix_bytes(&s->arena);

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_IMAGE;
    op.bytes.data = (uint8_t *) &out;
    op.bytes.len = sizeof(us_store_image_t);
    us_dump_op(d, &op);

    op.type = US_OP_LEAVES;

    for (at = 0, leaf = im.leaves; at < im.n && !d->failed; at = end) {
        op.id = leaf;

        for (end = at; end < im.n && end - at < US_IMAGE_WORDS; leaf++) {
            end += 1 + im.words[end];
        }

        op.bytes.data = (uint8_t *) &im.words[at];
        op.bytes.len = (end - at) * sizeof(uint64_t);
        us_dump_op(d, &op);
    }

    us_index_image_free(&im);

    op.type = US_OP_CACHE;
    op.bytes.data = piece;
    op.bytes.len = sizeof(piece);

    for (pos = 0; pos < out.cache && !d->failed; pos += sizeof(piece)) {
        us_prefix_copy(&s->arena, pos, piece, sizeof(piece));
        op.id = pos;
        us_dump_op(d, &op);
    }
}


static void
us_dump_adds(us_store_t *s, us_dump_t *d, uint64_t n)
{
    int        more;
    uint8_t    buf[US_RECORD_BUFFER];
    us_op_t    op, model;
    unsigned   number;
    uint64_t   id, first;
    us_bits_t  b;

    memset(&op, 0, sizeof(us_op_t));
    memset(&model, 0, sizeof(us_op_t));
    model.type = US_OP_MODEL;
    number = 0;
    more = us_record_model(s->codec, number, &first, &model.bytes) == 0;

    for (id = 0; id < n && !d->failed; id++) {

        while (more && first <= id) {
            us_dump_op(d, &model);
            more = us_record_model(s->codec, ++number, &first, &model.bytes)
                   == 0;
        }

        us_log_get(&s->arena, id, buf, &b);

        op.type = US_OP_ADD;
        op.units = b.units;
        op.bytes.data = s->bits;
        op.bytes.len = us_bits_copy(&b, s->bits);

        us_dump_op(d, &op);
    }

    /* models that no record of the dump has: what follows the LSN may */

    while (more && first <= n) {
        us_dump_op(d, &model);
        more = us_record_model(s->codec, ++number, &first, &model.bytes) == 0;
    }
}


/* the ids below n that are deleted, or have a mark, in runs of words */

static void
us_dump_marks(us_store_t *s, us_dump_t *d, us_area_id_t area, uint64_t n)
{
    uint64_t   i, k, w, *p, words[512];
    us_op_t    op;

    memset(&op, 0, sizeof(us_op_t));

    op.type = area == US_AREA_DELETED ? US_OP_DELETED : US_OP_MARKS;
    op.mark = area == US_AREA_DELETED ? 0 : area - US_AREA_MARK;
    op.bytes.data = (uint8_t *) words;

    for (i = 0, k = 0; i * 64 < n && !d->failed; i++) {
        p = us_marks_word(&s->arena, area, i);
        w = p ? us_relaxed(p) : 0;

        if (i == n / 64) {
            w &= ((uint64_t) 1 << n % 64) - 1;
        }

        if (w && k == 0) {
            op.id = i;
        }

        if (w) {
            words[k++] = w;
        }

        if (k && (w == 0 || k == 512)) {
            op.bytes.len = k * 8;
            us_dump_op(d, &op);
            k = 0;
        }
    }

    if (k) {
        op.bytes.len = k * 8;
        us_dump_op(d, &op);
    }
}


int
us_store_dump(us_store_t *s, us_store_out_pt out, void *data, uint64_t *lsn)
{
    unsigned    m;
    us_op_t     op;
    uint64_t    n, sites;
    us_dump_t   d;

    us_store_enter(s);

    n = us_store_next_id(s);
    sites = us_head(s)->sites;
    *lsn = us_store_published(s);

    us_store_leave(s);

    d.out = out;
    d.data = data;
    d.failed = 0;
    d.n = 0;

    memset(&op, 0, sizeof(us_op_t));
    op.type = US_OP_AT;
    op.bytes.data = d.buf;            /* none, but memcpy() wants a pointer */
    us_dump_op(&d, &op);

    us_dump_image(s, &d, n, sites);
    us_dump_adds(s, &d, n);

    /*
     * Marks may be newer than the LSN: an operation that follows it sets them
     * once more, or undoes them.  Deletes come last, as they clear marks.
     */

    for (m = 0; m < us_head(s)->nmarks; m++) {
        us_dump_marks(s, &d, US_AREA_MARK + m, n);
    }

    us_dump_marks(s, &d, US_AREA_DELETED, n);

    us_dump_flush(&d);

    return d.failed ? -1 : 0;
}


/* the part to which an area counts; marks: all others */

static const us_store_part_t  us_store_area_parts[US_AREA_DELETED] = {
    [US_AREA_OFFSETS] = US_PART_OFFSETS,
    [US_AREA_LONG] = US_PART_LOG,
    [US_AREA_LEAVES] = US_PART_INDEX,
    [US_AREA_DIRECTORY] = US_PART_INDEX,
    [US_AREA_SITES] = US_PART_SITES,
    [US_AREA_CACHE] = US_PART_CACHES,
    [US_AREA_NODES] = US_PART_NODES,
    [US_AREA_MODELS] = US_PART_MODELS,
};


void
us_store_info(us_store_t *s, us_store_info_t *info)
{
    unsigned          i;
    uint64_t          content;
    us_head_t        *h;
    us_store_part_t   part;

    h = us_head(s);

    memset(info, 0, sizeof(us_store_info_t));

    info->size = h->size;
    info->urls = us_store_next_id(s);
    info->deleted = us_relaxed(&h->deleted);
    info->sites = us_relaxed(&h->sites);
    info->recoveries = us_relaxed(&h->recoveries);
    info->full = us_relaxed(&h->full);

    info->parts[US_PART_HEADER] = h->log;
    info->parts[US_PART_LOG] = (us_relaxed(&h->log_end) + 1) / 2 - h->log;

    for (i = 0; i < US_AREAS; i++) {
        part = i < US_AREA_DELETED ? us_store_area_parts[i] : US_PART_MARKS;
        info->parts[part] += us_area_bytes(&s->arena, i);
    }

    for (i = 0; i < US_PARTS; i++) {
        info->used += info->parts[i];
    }

    /* as many bytes for each as so far; 40 as long as there are few */

    content = info->used - h->log;
    info->fit = (info->size - info->used)
                / (info->urls > 1000 ? content / info->urls + 1 : 40);
}


static const char  *us_store_part_names[US_PARTS] = {
    [US_PART_HEADER] = "header",
    [US_PART_LOG] = "log",
    [US_PART_OFFSETS] = "offsets",
    [US_PART_INDEX] = "index",
    [US_PART_CACHES] = "caches",
    [US_PART_NODES] = "nodes",
    [US_PART_MODELS] = "models",
    [US_PART_SITES] = "sites",
    [US_PART_MARKS] = "marks",
};


const char *
us_store_part_name(us_store_part_t part)
{
    return us_store_part_names[part];
}
