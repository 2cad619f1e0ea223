
/*
 * Look-ups, which take no lock: the hot table; else hash, leaf, candidate,
 * compare.
 *
 * A reader uses only ids below next_id, which is the last word of an add's
 * commit.  If a writer has replaced or split the leaf meanwhile, a URL that was
 * not found may be in the store all the same.  Then the reader starts again,
 * and after some attempts it looks up under the lock (us_index_stale()).  The
 * same goes for a reader that has met records which were being erased
 * (us_log.c): neither what it found nor what it did not find counts.
 */


#include "us_store_private.h"
#include "us_shard.h"


#define US_LOOK_RETRIES    8

/* items whose words of the hot table are asked for together */
#define US_LOOK_GROUP      32

/* steps of a pipeline, in items before or after the one that is hashed */
#define US_LOOK_TEXT       8
#define US_LOOK_REACH      4
#define US_LOOK_SCAN       16

/* look-ups before the one whose candidate is read: its words are asked for */
#define US_LOOK_ASK        8


size_t
us_store_decode(us_store_t *s, uint64_t id, uint8_t *text, size_t most)
{
    size_t        len;
    us_reading_t  r = { 0, 0 };

    len = 0;

    while (us_store_reading(s, &r)) {
        len = us_record_decode_head(s->codec, id, text, most);
    }

    return len;
}


int
us_store_is_erased(const us_store_t *s, uint64_t id)
{
    uint8_t    buf[US_RECORD_BUFFER];
    us_bits_t  record;

    us_log_get(&s->arena, id, buf, &record);

    return us_bits_erased(&record);
}


void
us_store_item_split(us_store_item_t *item)
{
    size_t  skip;

    item->spelling = 0;
    skip = sizeof("http://") - 1;

    if (item->url.len > 4 && item->url.data[4] == 's') {
        item->spelling = US_SPELLING_HTTPS;
        skip++;
    }

    item->rest.data = item->url.data + skip;
    item->rest.len = item->url.len - skip;

    if (item->merge && us_has_www(item->rest)) {
        item->spelling |= US_SPELLING_WWW;
        item->rest.data += 4;
        item->rest.len -= 4;
    }

    item->id = US_STORE_NO_ID;
    item->claimed = 0;
    item->new_site = 0;
    item->again = 0;
}


/*
 * What else than the item's rest a record may have that has its URL: it was
 * stored when the host was, or was not, one of which "www." is mergeable.
 */

static inline unsigned
us_store_others(const us_store_item_t *item)
{
    return item->merge ? US_OTHER_WITH
           : us_has_www(item->rest) ? US_OTHER_WITHOUT : US_OTHER_NONE;
}


/* the class of such a record, as an item would be split that has it; else -1 */

static int
us_store_other(us_store_t *s, const us_store_item_t *item, uint64_t id)
{
    int       klass, www;
    us_str_t  rest;

    rest = item->rest;

    switch (us_store_others(item)) {

    case US_OTHER_WITH:
        memcpy(s->text + 1, "www.", 4);
        memcpy(s->text + 5, rest.data, rest.len);
        rest.data = s->text + 1;
        rest.len += 4;
        break;

    case US_OTHER_WITHOUT:
        rest.data += 4;
        rest.len -= 4;
        break;

    default:
        return -1;
    }

    klass = us_record_equal(s->codec, id, rest);

    /* the "www." goes from the rest to the class, or the other way */

    www = item->merge ? 0 : US_SPELLING_WWW;

    return klass >= 0 && (klass & US_SPELLING_WWW) == www
           ? klass ^ US_SPELLING_WWW : -1;
}


/* the answer, if record id, of that class, is the item's URL */

static inline int
us_store_accept(us_store_t *s, us_store_item_t *item, uint64_t id, int klass)
{
    if (klass < 0 || (!item->merge && (klass & US_SPELLING_WWW))
        || us_store_domain(s, klass) != us_store_domain(s, item->spelling)
        || us_deleted(&s->arena, id))
    {
        return 0;
    }

    item->id = id;
    item->spelling = klass;
    item->status = US_SEEN;

    return 1;
}


/* goes through what is left of a probe's candidates; 1: the item was found */

static int
us_store_confirm(us_store_t *s, us_probe_t *p, us_store_item_t *item)
{
    int       klass;
    uint64_t  id;

    while (us_index_next(&s->arena, p, &id)) {

        /*
         * Acquire: the record of an id below next_id is complete.
         */

        if (id < us_acquire(&us_head(s)->next_id)) {
            us_record_expect(s->codec, id);
            klass = us_record_equal(s->codec, id, item->rest);
            klass = klass >= 0 ? klass : us_store_other(s, item, id);

            if (us_store_accept(s, item, id, klass)) {
                return 1;
            }
        }
    }

    return 0;
}


void
us_store_look_locked(us_store_t *s, us_store_item_t *item)
{
    us_probe_t  p;

    us_index_start(&s->arena, &p, item->hash);

    if (!us_store_confirm(s, &p, item)) {
        item->status = US_UNSEEN;
    }
}


/*
 * The same without the lock: for an item by itself, and for one of a group
 * whose first look met a writer.
 */

static void
us_store_look_alone(us_store_t *s, us_store_item_t *item)
{
    int         found;
    unsigned    i;
    uint64_t    then;
    us_probe_t  p;

    for (i = 0; i < US_LOOK_RETRIES; i++) {
        then = us_erasing(&s->arena);
        us_index_start(&s->arena, &p, item->hash);
        found = us_store_confirm(s, &p, item);

        if (us_erased_since(&s->arena, then)) {

            /* the spelling may be that of another URL */

            us_store_item_split(item);
            continue;
        }

        if (found) {
            return;
        }

        if (!us_index_stale(&s->arena, &p)) {
            item->status = US_UNSEEN;
            return;
        }
    }

    us_store_enter(s);
    us_store_look_locked(s, item);
    us_store_leave(s);
}


/* a look-up of a group */

typedef struct {
    us_probe_t        probe;
    us_store_item_t  *item;
} us_look_t;


static inline uint64_t
us_look_hash(us_store_t *s, us_store_item_t *item)
{
    us_str_t  rest;

    rest = item->rest;

    /* what us_store_bare() does for a record */

    if (!item->merge && us_has_www(rest)) {
        rest.data += 4;
        rest.len -= 4;
    }

    item->hash = us_store_hash(s, item->spelling, rest);
    item->status = US_UNSEEN;

    return item->hash;
}


/*
 * Compares k candidates.  Look-ups that they do not settle come to looks, which
 * has some already; returns how many it has then.
 */

static unsigned
us_store_try_some(us_store_t *s, us_look_t **of, us_candidate_t *tried,
    unsigned k, us_look_t **looks, unsigned left)
{
    unsigned  i;

    us_record_compare(s->codec, tried, k);

    for (i = 0; i < k; i++) {
        if (tried[i].klass < 0 && tried[i].other != US_OTHER_NONE) {
            tried[i].klass = us_store_other(s, of[i]->item, tried[i].id);
        }

        if (!us_store_accept(s, of[i]->item, tried[i].id, tried[i].klass)) {
            looks[left++] = of[i];
        }
    }

    return left;
}


/*
 * Compares the next candidates of n look-ups, US_CANDIDATE_GROUP at a time: few
 * of those that are open have one, since some bits of the hash are still to be
 * looked at.  Those that may have another candidate come to the front; returns
 * their number.
 */

static unsigned
us_store_try(us_store_t *s, us_look_t **looks, unsigned n)
{
    unsigned         i, k, left;
    uint64_t         id;
    us_look_t       *l, *of[US_CANDIDATE_GROUP];
    us_candidate_t   tried[US_CANDIDATE_GROUP];

    for (i = 0; i < n && i < US_LOOK_ASK; i++) {
        us_index_ask(&looks[i]->probe);
    }

    for (i = 0, k = 0, left = 0; i < n; i++) {
        l = looks[i];

        if (i + US_LOOK_ASK < n) {
            us_index_ask(&looks[i + US_LOOK_ASK]->probe);
        }

        if (!us_index_next(&s->arena, &l->probe, &id)) {
            continue;
        }

        /* next_id is acquired after the id was read: see us_store_confirm() */

        if (id >= us_store_next_id(s)) {
            looks[left++] = l;
            continue;
        }

        us_log_prefetch(&s->arena, id);

        tried[k].id = id;
        tried[k].rest = l->item->rest;
        tried[k].other = us_store_others(l->item);
        of[k++] = l;

        if (k == US_CANDIDATE_GROUP) {
            left = us_store_try_some(s, of, tried, k, looks, left);
            k = 0;
        }
    }

    return us_store_try_some(s, of, tried, k, looks, left);
}


/*
 * A group.  The fingerprints of all leaves are read in a pipeline: while one
 * item is hashed, the directory's word of another one and the leaf of a third
 * are fetched.  Then the first candidates of all are compared, then the second
 * ones.
 */

static void
us_store_seen_group(us_store_t *s, us_look_t *looks, unsigned n)
{
    int         erased;
    unsigned    i, nopen;
    uint64_t    then;
    us_look_t  *l, *open[US_STORE_GROUP];

    then = us_erasing(&s->arena);

    for (i = 0; i < n + US_LOOK_SCAN; i++) {

        if (i < n) {
            l = &looks[i];
            us_index_aim(&s->arena, &l->probe, us_look_hash(s, l->item));
        }

        if (i >= US_LOOK_REACH && i - US_LOOK_REACH < n) {
            us_index_reach(&s->arena, &looks[i - US_LOOK_REACH].probe);
        }

        if (i >= US_LOOK_SCAN) {
            us_index_scan(&looks[i - US_LOOK_SCAN].probe);
        }
    }

    for (i = 0, nopen = 0; i < n; i++) {
        open[nopen] = &looks[i];
        nopen += us_index_open(&looks[i].probe);
    }

    while (nopen) {
        nopen = us_store_try(s, open, nopen);
    }

    erased = us_erased_since(&s->arena, then);

    for (i = 0; i < n; i++) {
        l = &looks[i];

        if (erased) {
            us_store_item_split(l->item);
            us_store_look_alone(s, l->item);

        } else if (l->item->status == US_UNSEEN
                   && us_index_stale(&s->arena, &l->probe))
        {
            us_store_look_alone(s, l->item);
        }
    }
}


void
us_store_remember(us_store_t *s, const us_store_item_t *item, size_t i)
{
    if (s->hot && (item->status == US_NEW || item->status == US_SEEN)) {
        us_hot_put(s->hot, &s->hot_keys[i], item->id, item->spelling);
    }
}


/*
 * Those of a group that the hot table does not know; returns their number.
 *
 * An entry of the table was right when it was made, and an id belongs to one
 * URL for ever.  Only a delete, by any process, changes the answer: the bit of
 * the deleted id is checked, as for a record that the index has found.
 */

static unsigned
us_store_recall(us_store_t *s, us_store_item_t *items, unsigned n,
    uint16_t *cold)
{
    uint64_t  id;
    unsigned  i, k, end, ncold, klass;

    for (i = 0, ncold = 0; i < n; i = end) {
        end = i + US_LOOK_GROUP < n ? i + US_LOOK_GROUP : n;

        for (k = i; k < end; k++) {
            us_store_item_split(&items[k]);
            us_hot_key(s->hot, &s->hot_keys[k], s->owner,
                       us_store_domain(s, items[k].spelling), items[k].rest);
        }

        for (k = i; k < end; k++) {
            us_hot_prefetch(s->hot, &s->hot_keys[k]);
        }

        for (k = i; k < end; k++) {
            if (!us_hot_find(s->hot, &s->hot_keys[k], &id, &klass)
                || !us_store_accept(s, &items[k], id, (int) klass))
            {
                cold[ncold++] = (uint16_t) k;
            }
        }
    }

    return ncold;
}


static void
us_store_seen_some(us_store_t *s, us_store_item_t *items, unsigned n)
{
    unsigned   i, ncold;
    uint16_t   cold[US_STORE_GROUP];
    us_look_t  looks[US_STORE_GROUP];

    if (s->hot) {
        ncold = us_store_recall(s, items, n, cold);

        if (s->hits && ncold < n) {
            us_count(s->hits, n - ncold);
        }

    } else {
        for (ncold = 0; ncold < n; ncold++) {
            if (ncold + US_LOOK_TEXT < n) {
                __builtin_prefetch(items[ncold + US_LOOK_TEXT].url.data);
            }

            us_store_item_split(&items[ncold]);
            cold[ncold] = (uint16_t) ncold;
        }
    }

    if (ncold == 1) {
        (void) us_look_hash(s, &items[cold[0]]);
        us_store_look_alone(s, &items[cold[0]]);

    } else {
        for (i = 0; i < ncold; i++) {
            looks[i].item = &items[cold[i]];
        }

        us_store_seen_group(s, looks, ncold);
    }

    for (i = 0; i < ncold; i++) {
        us_store_remember(s, &items[cold[i]], cold[i]);
    }
}


void
us_store_seen(us_store_t *s, us_store_item_t *items, size_t n)
{
    int       shard;
    unsigned  group;

    shard = us_head(s)->shard != 0;

    for ( /* void */ ; n; n -= group, items += group) {
        group = n < US_STORE_GROUP ? (unsigned) n : US_STORE_GROUP;

        if (shard) {
            /* before the look-ups: see us_shard.h */
            (void) us_store_map(s);
        }

        us_store_seen_some(s, items, group);

        if (shard) {
            us_shard_seen(s, items, group);
        }
    }
}


/*
 * One pass over the candidates for a site.  A URL of the site may be among
 * them by chance, but the first one has the lowest id.
 */

static int
us_store_site_look(us_store_t *s, us_probe_t *p, const us_sought_t *site,
    us_store_site_t *out)
{
    uint64_t  id;
    unsigned  klass;
    us_str_t  rest;

    us_index_start(&s->arena, p, site->hash);

    while (us_index_next(&s->arena, p, &id)) {

        if (id >= us_store_next_id(s)) {
            continue;
        }

        /* the class, "www.", and one byte more, which ends a site */

        rest.len = us_store_decode(s, id, s->text, site->text.len + 6) - 1;
        rest.data = s->text + 1;
        klass = s->text[0];
        rest = us_site(us_store_bare(rest, &klass));

        if (rest.len != site->text.len
            || memcmp(rest.data, site->text.data, rest.len) != 0
            || (site->www != US_SITE_ANY
                && (klass & US_SPELLING_WWW) != (unsigned) site->www))
        {
            continue;
        }

        out->first = id;
        out->last = id;
        out->spelling = site->www == US_SITE_ANY ? klass
                                                 : klass & ~US_SPELLING_WWW;
        out->urls = 0;

        return 1;
    }

    return 0;
}


static us_sought_t
us_store_sought(us_store_t *s, us_str_t text, int www)
{
    us_sought_t  site;

    site.text = text;
    site.www = www;
    site.hash = us_hash(us_head(s)->hash_key, US_DOMAIN_SITE, text.data,
                        text.len);
    return site;
}


us_sought_t
us_store_record_site(us_store_t *s, unsigned klass, us_str_t rest)
{
    return us_store_sought(s, us_site(rest), klass & US_SPELLING_WWW);
}


us_sought_t
us_store_item_site(us_store_t *s, const us_store_item_t *item)
{
    unsigned  klass;
    us_str_t  rest;

    klass = 0;
    rest = us_store_bare(item->rest, &klass);

    return us_store_sought(s, us_site(rest), item->merge == US_MERGE_FIRST
                                             ? US_SITE_ANY : (int) klass);
}


static void
us_store_site_key(us_store_t *s, us_hot_key_t *key, const us_sought_t *site)
{
    unsigned  domain;

    domain = US_DOMAIN_SITE;

    if (site->www != US_SITE_ANY) {
        domain += site->www == US_SPELLING_WWW ? 1 : 2;
    }

    us_hot_key(s->hot, key, s->owner, domain, site->text);
}


/*
 * A site's first URL is that for ever, even when it has been deleted; but not
 * when it was erased, and no other URL of the site was left.
 */

int
us_store_site_recall(us_store_t *s, const us_sought_t *site,
    us_store_site_t *out)
{
    unsigned      klass;
    us_hot_key_t  key;

    if (s->hot == NULL) {
        return 0;
    }

    us_store_site_key(s, &key, site);

    if (!us_hot_find(s->hot, &key, &out->first, &klass)
        || us_deleted(&s->arena, out->first))
    {
        return 0;
    }

    out->last = out->first;
    out->spelling = klass & 3;
    out->urls = 0;

    return 1;
}


int
us_store_site_find(us_store_t *s, const us_sought_t *site,
    us_store_site_t *out)
{
    int           found;
    unsigned      i;
    us_probe_t    p;
    us_hot_key_t  key;

    for (i = 0; i < US_LOOK_RETRIES; i++) {

        if (us_store_site_look(s, &p, site, out)) {

            if (s->hot) {
                us_store_site_key(s, &key, site);
                us_hot_put(s->hot, &key, out->first, out->spelling);
            }

            return 1;
        }

        if (!us_index_stale(&s->arena, &p)) {
            return 0;
        }
    }

    us_store_enter(s);
    found = us_store_site_look(s, &p, site, out);
    us_store_leave(s);

    return found;
}


/* the first URL of an item's site; 0: there is none */

static int
us_store_site_of(us_store_t *s, const us_store_item_t *item,
    us_store_site_t *out)
{
    us_sought_t  site;

    site = us_store_item_site(s, item);

    return us_store_site_recall(s, &site, out)
           || us_store_site_find(s, &site, out);
}


int
us_store_site_known(us_store_t *s, const us_store_item_t *item)
{
    us_store_site_t  out;

    return us_store_site_of(s, item, &out);
}


/*
 * Both spellings of a site can have URLs, and a counter, if they were two sites
 * before.
 */

us_store_status_t
us_store_site(us_store_t *s, us_str_t text, int merge, us_store_site_t *out)
{
    uint64_t          urls, last;
    unsigned          klass;
    us_sought_t       site;
    us_store_site_t   other;

    klass = 0;
    text = us_store_bare(text, &klass);
    site = us_store_sought(s, text, merge ? US_SITE_ANY : (int) klass);

    if (!us_store_site_find(s, &site, out)) {
        return US_UNKNOWN;
    }

    if (!(us_head(s)->flags & US_HEAD_SITES)) {
        return US_OK;
    }

    us_site_read(&s->arena, us_site_number(&s->arena, out->first),
                 &out->urls, &out->last);

    site.www = ~out->spelling & US_SPELLING_WWW;

    if (merge && us_store_site_find(s, &site, &other)) {
        us_site_read(&s->arena, us_site_number(&s->arena, other.first),
                     &urls, &last);
        out->urls += urls;
        out->last = out->last > last ? out->last : last;
    }

    return US_OK;
}


int
us_store_first_of_site(us_store_t *s, uint64_t id)
{
    unsigned         klass;
    us_str_t         rest;
    us_sought_t      site;
    us_store_site_t  out;

    if (id >= us_store_next_id(s)) {
        return 0;
    }

    rest = us_store_rest(s, id, s->url, &klass);
    site = us_store_record_site(s, klass, rest);

    return us_store_site_find(s, &site, &out) && out.first == id;
}


void
us_store_spell(us_store_t *s, us_store_item_t *item)
{
    us_store_site_t  out;

    if (item->merge && us_store_site_of(s, item, &out)) {
        item->spelling = us_store_class(item, out.spelling);
    }
}


static size_t
us_store_url(unsigned klass, us_str_t rest, uint8_t *buf)
{
    uint8_t  *p;

    p = buf;

    memcpy(p, "https", 5);
    p += klass & US_SPELLING_HTTPS ? 5 : 4;

    memcpy(p, "://www.", 7);
    p += klass & US_SPELLING_WWW ? 7 : 3;

    memcpy(p, rest.data, rest.len);

    return p + rest.len - buf;
}


size_t
us_store_item_url(const us_store_item_t *item, uint8_t *buf)
{
    return us_store_url(item->spelling, item->rest, buf);
}


/* both end with the rest, and no two of what stands before it are as long */

int
us_store_item_same(const us_store_item_t *item)
{
    static const uint8_t  before[4] = {
        [0] = sizeof("http://") - 1,
        [US_SPELLING_HTTPS] = sizeof("https://") - 1,
        [US_SPELLING_WWW] = sizeof("http://www.") - 1,
        [US_SPELLING_HTTPS|US_SPELLING_WWW] = sizeof("https://www.") - 1
    };

    return item->url.len == before[item->spelling] + item->rest.len;
}


us_store_status_t
us_store_get(us_store_t *s, uint64_t id, uint8_t *buf, size_t *len)
{
    return id < us_store_next_id(s) && us_deleted(&s->arena, id)
           ? US_DELETED : us_store_text(s, id, buf, len);
}


us_store_status_t
us_store_text(us_store_t *s, uint64_t id, uint8_t *buf, size_t *len)
{
    unsigned  klass;
    us_str_t  rest;

    if (id >= us_store_next_id(s)) {
        return US_UNKNOWN;
    }

    us_record_expect(s->codec, id);
    rest = us_store_rest(s, id, s->text, &klass);

    /* what is left of it is no URL; a record that is whole now was so before */

    if (us_deleted(&s->arena, id) && us_store_is_erased(s, id)) {
        return US_DELETED;
    }

    if (rest.len == 0 || rest.len > US_REST_MAX) {
        return US_DAMAGED;
    }

    *len = us_store_url(klass, rest, buf);

    return US_OK;
}


int
us_store_merged(us_store_t *s, uint64_t id)
{
    us_str_t  rest;

    if (id >= us_store_next_id(s) || us_deleted(&s->arena, id)) {
        return -1;
    }

    rest.len = us_store_decode(s, id, s->text, 6) - 1;
    rest.data = s->text + 1;

    return s->text[0] & US_SPELLING_WWW ? 1 : us_has_www(rest) ? 0 : -1;
}


uint64_t
us_store_next_id(const us_store_t *s)
{
    /*
     * Acquire: all data of the ids below the number were written before it was
     * released.
     */

    return us_acquire(&us_head(s)->next_id);
}


void
us_store_hashes(us_store_t *s, uint64_t id, us_hashes_t *hashes)
{
    unsigned  klass;
    us_str_t  rest;

    rest = us_store_rest(s, id, s->text, &klass);
    hashes->site = us_store_record_site(s, klass, rest).hash;
    hashes->url = us_deleted(&s->arena, id)
                  ? 0 : us_store_hash(s, klass, rest);
}


void
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
