
/*
 * Replay: operations from a journal or a dump into a store that nobody else
 * uses.  An add may be done in two halves: the log at once, because the next
 * record may refer to it; the index later, for a group of records whose leaves
 * have been asked for meanwhile.
 *
 * Most records have a site that was met before: a table of those met last
 * spares the look-up.
 */


#include "us_store_private.h"

#include <stdlib.h>


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

    if (op->id > UINT64_MAX / 64 - US_OP_WORDS_MAX) {
        return -1;
    }

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
        || im.ids > h->size
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


int
us_store_set_lsn(us_store_t *s, uint64_t lsn)
{
    us_release(&us_head(s)->published, lsn);
    us_release(&us_head(s)->written, lsn);
    us_release(&us_head(s)->durable, lsn);

    return s->replay && us_head(s)->next_id < s->replay->indexed ? -1 : 0;
}
