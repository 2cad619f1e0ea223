
/*
 * The store: what us_store.h promises, put together from its parts.
 *
 *     us_arena    memory, and updates that a kill cannot tear
 *     us_log      id -> bits of the record
 *     us_record   bits <-> text (the codec)
 *     us_index    hash -> candidate ids
 *     us_sites    sites and their counters
 *     us_claims   times by id
 *     us_keys     what was new to the keys of requests
 *     us_sets     sets of ids, by name
 *     us_erased   the list of what must not come back
 *     us_erasures what was erased
 *     us_shard    of a cluster: what a shard owns
 *     us_erase    deleted URLs: their bytes
 *     us_ring     operations for the journal
 *     us_hot      what this process has looked up last
 *
 * See us_store_private.h for what is in which file.
 */


#include "us_store_private.h"
#include "us_shard.h"
#include "../us_process.h"

#include <errno.h>
#include <stdlib.h>


/* a store with fewer chunks does not know its bytes a URL, and assumes these */
#define US_STORE_CHUNKS  32
#define US_STORE_EACH    40


size_t
us_store_min_size(const us_store_conf_t *conf)
{
    return us_arena_min_size(conf);
}


size_t
us_store_ring(size_t size)
{
    size_t  ring, most;

    /*
     * A power of two, at most a 16th of the zone; up to 512 KB, which takes
     * any model that the first million URLs learn, an 8th.
     */

    most = size / 8 < 512 * 1024 ? size / 8 : 512 * 1024;
    most = size / 16 > most ? size / 16 : most;

    ring = 64 * 1024;

    while (ring < 16 * 1024 * 1024 && ring * 2 <= most) {
        ring *= 2;
    }

    return ring;
}


int
us_store_format(void *mem, size_t size, const us_store_conf_t *conf)
{
    unsigned    i;
    uint32_t    row;
    us_arena_t  a;

    if (us_arena_format(&a, mem, size, conf) != 0) {
        return -1;
    }

    us_index_format(&a);

    for (i = 0; i < conf->nmarks; i++) {
        if (us_set_make_locked(&a, i + 1, conf->marks[i], 0, NULL, &row) != 0)
        {
            return -1;
        }
    }

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
us_store_wipe(us_store_t *s)
{
    us_codec_wipe(s->codec);

    explicit_bzero(s->text, sizeof(s->text));
    explicit_bzero(s->url, sizeof(s->url));
    explicit_bzero(s->bits, sizeof(s->bits));
}


void
us_store_close(us_store_t *s)
{
    if (s->replay) {
        s->replay_ops->free(s);
    }

    us_learn_free(&s->learn);
    us_codec_destroy(s->codec);
    free(s);
}


void
us_store_hot(us_store_t *s, us_hot_t *hot, uint64_t *hits)
{
    /* another owner would know nothing of what the table has */

    if (s->hot != hot) {
        s->hot = hot;
        s->owner = us_hot_owner(hot);
    }

    s->hits = hits;
}


void
us_store_conf(const us_store_t *s, us_store_conf_t *conf)
{
    unsigned    i;
    uint32_t    number;
    us_head_t  *h;

    h = us_head(s);

    memset(conf, 0, sizeof(us_store_conf_t));
    memcpy(conf->uuid, h->uuid, sizeof(conf->uuid));
    memcpy(conf->hash_key, h->hash_key, sizeof(conf->hash_key));

    conf->epoch = us_acquire(&h->epoch);
    conf->norm.data = h->norm;
    conf->norm.len = h->norm_len;
    conf->nmarks = us_store_nmarks(s);

    for (i = 0; i < conf->nmarks; i++) {
        conf->marks[i].data = h->mark[i];
        conf->marks[i].len = h->mark_len[i];
    }

    conf->schemes_first = (h->flags & US_HEAD_SCHEMES_FIRST) != 0;
    conf->sites = (h->flags & US_HEAD_SITES) != 0;
    conf->lookup = (h->flags & US_HEAD_LOOKUP) != 0;
    conf->sets = (us_acquire(&h->flags) & US_HEAD_NAMES) != 0;
    conf->erases = (us_acquire(&h->flags) & US_HEAD_ERASES) != 0;
    conf->ring = h->ring_size;
    conf->keys = h->keys_most;
    conf->revisit = us_store_revisit(s);
    conf->is_shard = us_store_is_shard(s, &number) != 0;
    conf->shard = number;
}


void
us_store_allow(us_store_t *s, const us_store_conf_t *conf)
{
    us_store_enter(s);
    us_release(&us_head(s)->flags,
               us_head(s)->flags | (conf->sets ? US_HEAD_NAMES : 0)
               | (conf->erases ? US_HEAD_ERASES : 0));
    us_store_leave(s);
}


int
us_store_repeats(const us_store_t *s)
{
    return us_head(s)->keys_n != 0
           && us_acquire(&us_head(s)->keys_lost) <= s->now;
}


int
us_store_train_due(us_store_t *s)
{
    return us_learn_due(&s->arena)
           && !us_process_alive(us_acquire(&us_head(s)->trainer));
}


/*
 * The trainer word is a lock that the death of its holder opens.  /proc is not
 * read while the store's lock is held: the word is compared once more under
 * it.
 */

int
us_store_train(us_store_t *s, const volatile int *cancel)
{
    int           rc, done;
    us_op_t       op;
    us_head_t    *h;
    us_process_t  held, self;

    h = us_head(s);
    held = us_acquire(&h->trainer);

    if (!us_learn_due(&s->arena) || us_process_alive(held)) {
        return 0;
    }

    self = us_process_self();

    us_store_enter(s);

    if (h->trainer != held) {
        us_store_leave(s);
        return 0;
    }

    us_release(&h->trainer, self);
    us_store_leave(s);

    op = us_op(US_OP_MODEL, 0, NULL, 0);
    done = 0;

    /* once more: somebody may have learnt it between the two */

    if (us_learn_due(&s->arena)
        && us_learn(&s->learn, s->codec, cancel, &op.bytes))
    {
        us_store_enter(s);

        if (us_store_fenced_locked(s)) {

            /* void */

        } else if (h->ring_size && us_op_size(&op) > h->ring_size) {
            us_learn_give_up(&s->learn, &s->arena);

        } else if (us_ring_fits(&s->arena, us_op_size(&op))) {

            us_bulk_keep_locked(&s->arena, 0);

            rc = us_learn_install_locked(&s->learn, s->codec);

            if (rc == 0) {
                us_ring_put_locked(&s->arena, &op);
                us_commit_locked(&s->arena);
                done = 1;

            } else if (rc != US_REPLAY_FAILED) {
                us_learn_give_up(&s->learn, &s->arena);
            }
        }

        us_store_leave(s);
    }

    /* release: the next one finds the model that this one has published */

    us_release(&h->trainer, 0);

    return done;
}


void
us_store_fence(void *mem)
{
    us_release(&((us_head_t *) mem)->fenced, 1);
}


void
us_store_unfence(void *mem)
{
    /* release: what was applied is there for the first change */

    us_release(&((us_head_t *) mem)->fenced, 0);
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
us_store_complete(us_store_t *s)
{
    uint64_t  lsn;

    us_store_enter(s);
    lsn = us_store_published(s);
    us_store_leave(s);

    return lsn;
}


uint64_t
us_store_ids_at(const us_store_t *s, uint64_t lsn)
{
    uint64_t          next;
    const us_head_t  *h;

    h = us_head(s);

    /*
     * Acquire, in this order: next_id is stored after `published`, and the
     * number of intents is zero when both are.  If nothing is published past
     * lsn afterwards either, next_id was that of lsn.
     */

    if (us_acquire(&h->intents) || us_acquire(&h->published) != lsn) {
        return US_STORE_NO_ID;
    }

    next = us_acquire(&h->next_id);

    return us_acquire(&h->published) == lsn ? next : US_STORE_NO_ID;
}


uint64_t
us_store_written(const us_store_t *s)
{
    /*
     * Acquire, here and in us_store_durable(): replies that depend on the value
     * are sent only after that write, or sync, has completed.
     */

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
     * may use those bytes again.
     */

    us_release(&us_head(s)->written, lsn);
}


void
us_store_set_durable(us_store_t *s, uint64_t lsn)
{
    /* release: see us_store_written() */

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


/* the part to which an area counts */

static const us_store_part_t  us_store_area_parts[US_AREAS] = {
    [US_AREA_OFFSETS] = US_PART_OFFSETS,
    [US_AREA_LONG] = US_PART_LOG,
    [US_AREA_LEAVES] = US_PART_INDEX,
    [US_AREA_DIRECTORY] = US_PART_INDEX,
    [US_AREA_SITES] = US_PART_SITES,
    [US_AREA_CACHE] = US_PART_CACHES,
    [US_AREA_MODELS] = US_PART_MODELS,
    [US_AREA_CLAIMS] = US_PART_CLAIMS,
    [US_AREA_MAPS] = US_PART_MAPS,
    [US_AREA_DELETED] = US_PART_DELETED,
    [US_AREA_STUBS] = US_PART_DELETED,
    [US_AREA_SETS] = US_PART_SETS,
    [US_AREA_MEMBERS] = US_PART_SETS,
    [US_AREA_ERASURES] = US_PART_ERASURES,
    [US_AREA_REASONS] = US_PART_ERASURES,
    [US_AREA_ERASED] = US_PART_ERASURES,
};


void
us_store_info(us_store_t *s, us_store_info_t *info)
{
    unsigned          i;
    us_head_t        *h;
    double            each;

    h = us_head(s);

    memset(info, 0, sizeof(us_store_info_t));

    info->size = h->size;
    info->urls = us_store_next_id(s);
    info->deleted = us_relaxed(&h->deleted);
    info->sites = us_relaxed(&h->sites);
    info->recoveries = us_relaxed(&h->recoveries);
    info->full = us_relaxed(&h->full);

    info->parts[US_PART_HEADER] = h->log - h->ring_size;
    info->parts[US_PART_RING] = h->ring_size;
    info->parts[US_PART_LOG] = (us_relaxed(&h->log_end) + 1) / 2 - h->log;

    for (i = 0; i < US_AREAS; i++) {
        info->parts[us_store_area_parts[i]] += us_area_bytes(&s->arena, i);
    }

    for (i = 0; i < US_PARTS; i++) {
        info->used += info->parts[i];
    }

    info->content = info->used - h->log;

    /*
     * Areas grow by whole chunks, and the last chunk of each is partly empty.
     * So the bytes of a URL are not known while there are few chunks.
     */

    if (info->urls && info->content >> h->chunk_shift >= US_STORE_CHUNKS) {
        info->bytes_per_url = (double) info->content / info->urls;
    }

    each = info->bytes_per_url ? info->bytes_per_url : US_STORE_EACH;
    info->fit = (info->size - info->used) / each;
}


static const char  *us_store_part_names[US_PARTS] = {
    [US_PART_HEADER] = "header",
    [US_PART_RING] = "ring",
    [US_PART_LOG] = "log",
    [US_PART_OFFSETS] = "offsets",
    [US_PART_INDEX] = "index",
    [US_PART_CACHES] = "caches",
    [US_PART_MODELS] = "models",
    [US_PART_SITES] = "sites",
    [US_PART_CLAIMS] = "claims",
    [US_PART_MAPS] = "maps",
    [US_PART_DELETED] = "deleted",
    [US_PART_SETS] = "sets",
    [US_PART_ERASURES] = "erasures",
};


const char *
us_store_part_name(us_store_part_t part)
{
    return us_store_part_names[part];
}
