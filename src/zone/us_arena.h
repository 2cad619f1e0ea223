
/*
 * The zone: its layout, which area owns which memory, and the intent by which
 * a killed writer's update is completed.
 *
 *   0        header: us_head_t, chunk directories of the areas, memory of
 *            retries, ring
 *   log      records, one after the other         ---->  grows upwards
 *            (free)
 *            chunks, each owned by one area       <----  taken downwards
 *   size
 *
 * The zone is full before the two meet: see the reserve.  Only the log is
 * contiguous; all else grows by chunks of 1 << chunk_shift bytes (a 24,576th to
 * a 49,152nd of the zone, 16 KiB to 1 MiB), which an area finds by its
 * directory of chunk numbers.  A chunk is zero when it is taken.
 *
 * While a store answers requests, only sets (us_sets.c) and the list of what
 * was erased (us_erased.c) give chunks back.  A replay has the zone to itself:
 * it builds the index anew and gives back the chunks that it no longer needs.
 * They form a list, head->spare; each of them begins with the number of the
 * next.
 *
 *
 * The reserve.  A store that is full must fit the same zone when it is
 * replayed, although a replay builds the index anew, under another hash key,
 * and its index and its sets may be packed less well.  So room is refused
 * before the two meet: each writer sets how many chunks such an index may need
 * beyond those that index and cache have now (a->keep: us_bulk_chunks() less
 * these), and how many such sets may (a->slack: us_sets_slack()).  Only the
 * index may take chunks of the former, only index and sets those of the latter.
 * All other areas need as many chunks in a replay as before, or fewer.
 *
 * The zone holds offsets from its start, never a pointer: processes may map it
 * at different addresses.
 *
 *
 * The intent.  A writer holds the lock and changes memory in two ways:
 *
 *   - it writes where no reader looks yet: past the end of the log, in slots
 *     past a leaf's count, in a staged leaf.  A kill leaves garbage that the
 *     next writer overwrites;
 *
 *   - it changes words that readers or the next writer rely on.  These never
 *     change one by one: us_intend_locked() collects (offset, value) pairs in
 *     the header, us_commit_locked() stores their number, then the words
 *     themselves in the order of collection, then zero for the number.
 *
 * A process that takes the lock and finds the number not zero stores the words
 * again (us_arena_enter()).  The values are absolute, so storing them twice
 * does no harm.  Hence an update is done as a whole or not at all, at whatever
 * instruction its writer was killed.
 */


#ifndef _US_ARENA_H_INCLUDED_
#define _US_ARENA_H_INCLUDED_


#include "us_conf.h"
#include "../us_atomic.h"


#define US_LAYOUT       15
#define US_MAGIC        0x00524f54534c5255ULL     /* "URLSTOR" */
#define US_BYTE_ORDER   0x01020304

#define US_INTENT_MAX   (US_STORE_GROUP + 64)
#define US_STAGED       2             /* leaves of one update */
#define US_CHUNKS_SPARE 3             /* kept from adds for other operations: */
#define US_CHUNKS_PART  4096          /* these, and one of so many; */
#define US_CHUNKS_SETS  2             /* and for sets, if there are any */
#define US_MAP_ROOM_MAX (1024 * 1024 + 4096)  /* bytes: see us_shard.c */
#define US_LEAF_SIZES   128           /* in units, see us_leaf.c */
#define US_KEYS_EACH    40            /* bytes of an entry: see us_keys.h */


/* owners of chunks; some are sparse: allotted where something is set */

typedef enum {
    US_AREA_OFFSETS = 0,
    US_AREA_LONG,                     /* ends of records that are very long */
    US_AREA_LEAVES,
    US_AREA_DIRECTORY,                /* of leaves */
    US_AREA_SITES,
    US_AREA_CACHE,                    /* the codec's two */
    US_AREA_MODELS,
    US_AREA_CLAIMS,                   /* sparse, too: see us_claims.c */
    US_AREA_MAPS,                     /* of a shard: two, see us_shard.c */
    US_AREA_DELETED,                  /* sparse: a bit for an id */
    US_AREA_STUBS,                    /* sparse: a word for 64: see us_log.c */
    US_AREA_SETS,                     /* a row for a set: see us_sets.c */
    US_AREA_MEMBERS,                  /* its "directory" is by chunk */
    US_AREA_ERASURES,                 /* a row for each: see us_erasures.c */
    US_AREA_REASONS,                  /* of them */
    US_AREA_ERASED,                   /* sparse: their list, two tables */
    US_AREAS
} us_area_id_t;


typedef struct {
    uint64_t           n;             /* chunks owned */
    uint64_t           max;           /* entries of the directory */
    uint64_t           directory;     /* offset; uint32_t chunk numbers */
} us_area_t;


typedef struct {
    uint64_t           offset;
    uint64_t           value;
} us_intent_t;


/* FORMAT: the zone begins with this */

typedef struct {

    /*
     * Written by us_store_format() only; but nmarks grows, after the names have
     * been stored: see us_store_add_marks().  And revisit, if it is zero, gets
     * its value: see us_store_set_revisit().  The same goes for shard, and for
     * US_HEAD_NAMES and US_HEAD_ERASES of flags.
     */

    uint64_t           magic;
    uint32_t           layout;
    uint32_t           byte_order;

    uint8_t            uuid[16];
    uint8_t            hash_key[16];

    uint64_t           epoch;
    uint64_t           size;
    uint64_t           chunk_shift;
    uint64_t           leaf_shift;    /* unit of leaf addresses and sizes */
    uint64_t           log;           /* offset */
    uint64_t           ring;          /* offset, bytes (0: no journal) */
    uint64_t           ring_size;
    uint64_t           keys;          /* offset; and its entries, and bytes */
    uint64_t           keys_n;
    uint64_t           keys_most;     /* that it may have: conf->keys */
    uint64_t           nmarks;
    uint64_t           flags;         /* US_HEAD_* */
    uint64_t           revisit;       /* claims: seconds of a unit; 0: none */
    uint64_t           shard;         /* its number and 1; 0: it is none */

    /* read by everybody; it changes twice with each record that is erased */

    uint64_t           erasing;       /* odd: bits of records are changing */

    uint64_t           norm_len;
    uint8_t            norm[US_STORE_NORM_LEN];
    uint8_t            mark_len[US_STORE_MARKS];
    uint8_t            mark[US_STORE_MARKS][US_STORE_MARK_LEN];

    /* read by everybody, all the time; next_id is what publishes a record */

    uint64_t           next_id  __attribute__((aligned(64)));
    uint64_t           leaves;        /* index: the live ones are n .. 2n-1 */
    uint64_t           models;        /* the codec's: models published */
    uint64_t           clock;         /* claims: units since 1970 */
    uint64_t           map;           /* of a shard: maps adopted so far */
    uint64_t           sets_rows;     /* in use, or free between others */
    uint64_t           sets_links;    /* odd: they are being changed */
    uint64_t           members_reused;   /* memory of sets, so many times */
    uint64_t           erasures;      /* rows; and those that refuse URLs, */
    uint64_t           erasures_live;
    uint64_t           erasures_open; /* and those that are not done */
    uint64_t           erasures_left; /* those whose records may be there */
    uint64_t           erased_lsn;    /* the records of the others went by it */
    uint64_t           retexts;       /* the codec's: models whose texts went */
    uint64_t           vetted;        /* times that texts were looked through */

    /* the journal's watermarks: one writer each, see us_ring.h */

    uint64_t           published  __attribute__((aligned(64)));
    uint64_t           written;
    uint64_t           durable;

    /* the lock holder's */

    uint64_t           log_end  __attribute__((aligned(64)));  /* 4 bits each */
    uint64_t           long_end;      /* bytes in US_AREA_LONG */
    uint64_t           erasing_id;    /* while `erasing` is odd */
    uint64_t           chunks_low;    /* chunks from here on are taken */
    uint64_t           spare;         /* the first one given back, or 0 */
    uint64_t           nspare;
    uint64_t           entries;       /* index: slots in use */
    uint64_t           leaf_next;     /* bump allocation of leaves: offsets */
    uint64_t           leaf_end;
    uint64_t           leaf_serial;
    uint64_t           directory_first;  /* directory chunks in use: these */
    uint64_t           directory_last;
    uint64_t           directory_spare;
    uint64_t           sites;
    uint64_t           deleted;
    uint64_t           recoveries;
    uint64_t           full;
    uint64_t           fenced;        /* 1: changes are refused */
    uint64_t           settled;       /* a replay has ended: see us_replay.c */
    uint64_t           trainer;       /* us_process_t, or 0 */
    uint64_t           model[8];      /* the codec's: offsets of models */
    uint64_t           cache_bits;    /* 1 << it: entries of the prefix cache */
    uint64_t           learnt;        /* records: see us_learn.c */
    uint64_t           map_lsn;       /* at which the map was adopted */
    uint64_t           map_stale;     /* US_MAP_*: see us_shard.c */
    uint64_t           key;           /* retries: of the ids from here on */
    uint64_t           key_until;
    uint64_t           keys_end;      /* entries written so far */
    uint64_t           keys_lost;     /* the last until of those overwritten */
    uint64_t           sets;          /* not those that are being dropped: */
    uint64_t           sets_dropped;
    uint64_t           sets_last;     /* the highest number so far */
    uint64_t           members_at;    /* offsets: the next object goes here, */
    uint64_t           members_end;   /* in the chunk that ends here */
    uint64_t           members_live;  /* bytes */
    uint64_t           members_cursor;   /* the chunk looked at last */

    /* the list of what was erased: see us_erased.c */

    uint8_t            erased_key[16];
    uint64_t           erased_n;      /* entries of the table in use */
    uint64_t           erased_bits;   /* 1 << it: places; 0: none */
    uint64_t           erased_old;    /* the same of the other one, or 0 */
    uint64_t           erased_moved;  /* places of that one */
    uint64_t           erased_moves;  /* odd: the second half is in use */
    uint64_t           erased_dead;   /* entries of lifted ones, about */
    uint64_t           reasons_end;   /* bytes */
    uint64_t           sweeper;       /* us_process_t, or 0 */

    uint64_t           staged[US_STAGED];    /* leaves being filled */
    uint64_t           free[US_LEAF_SIZES];  /* leaves by size */

    us_area_t          area[US_AREAS];

    uint64_t           intents  __attribute__((aligned(64)));
    us_intent_t        intent[US_INTENT_MAX];
} us_head_t;


#define US_HEAD_SCHEMES_FIRST  1
#define US_HEAD_SITES          2
#define US_HEAD_LOOKUP         4
#define US_HEAD_NAMES          8      /* there may be sets beside marks */
#define US_HEAD_ERASES         16     /* there may be erasures */


/* one process's (thread's) view of the zone */

typedef struct {
    uint8_t           *base;
    us_head_t         *head;
    unsigned           chunk_shift;
    unsigned           intents;       /* collected, not committed */
    uint64_t           keep;          /* chunks that are for the index only */
    uint64_t           slack;         /* and for members of sets only */
} us_arena_t;


/* how a zone of some size is laid out */

typedef struct {
    unsigned           chunk_shift;
    unsigned           leaf_shift;
    uint64_t           chunks;        /* whole ones, which areas can take */
    uint64_t           keys_n;        /* entries */
    uint64_t           keys;          /* offsets */
    uint64_t           ring;
    uint64_t           log;
    us_area_t          area[US_AREAS];
} us_layout_t;

/*
 * Bytes past the log's end in which no chunk begins.  A writer that is killed
 * after us_log_write_locked() leaves a record there, of up to 128 bytes written
 * in whole words; and readers of records load whole words.
 */
#define US_LOG_GUARD   192

/* -1: too small */
int us_arena_layout(size_t size, const us_store_conf_t *conf, us_layout_t *l);

/* the least size that us_arena_format() takes */
size_t us_arena_min_size(const us_store_conf_t *conf);

/* mem is zero; lays out the areas; -1: too small */
int us_arena_format(us_arena_t *a, void *mem, size_t size,
    const us_store_conf_t *conf);
int us_arena_open(us_arena_t *a, void *mem);

/* first thing under the lock: completes what a killed holder left */
void us_arena_enter(us_arena_t *a);

/*
 * Under the lock, nothing intended: gives n more contiguous chunks to a listed
 * area (the last n entries of its directory then ascend by one), or one to a
 * sparse one, where byte `pos` lies.  -1: no room, nothing was changed.
 */
int us_arena_grow_locked(us_arena_t *a, us_area_id_t id, size_t n);
int us_arena_allot_locked(us_arena_t *a, us_area_id_t id, uint64_t pos);

/*
 * Under the lock: intends to take n chunks, which the caller commits together
 * with what makes them reachable.  Returns their offset, or 0: no room.
 */
uint64_t us_arena_take_locked(us_arena_t *a, us_area_id_t id, size_t n);

/*
 * Takes a chunk from an area and puts it on the list, by a commit with what is
 * intended.  A replay alone; or under the lock, if all readers of the area
 * notice that its memory is used again.
 */
void us_arena_give(us_arena_t *a, us_area_id_t id, uint64_t chunk);

/* us_intend_locked() of one half of a word: directories have 32-bit entries */
void us_intend32_locked(us_arena_t *a, uint32_t *half, uint32_t value);

void us_commit_locked(us_arena_t *a);


/* free chunks if the log grows by so much, or -1: not even the log fits */

static inline int64_t
us_arena_gap(const us_arena_t *a, size_t log)
{
    uint64_t  end, low;

    end = (a->head->log_end + 1) / 2 + log + US_LOG_GUARD;
    low = a->head->chunks_low << a->chunk_shift;

    return end <= low ? (int64_t) ((low - end) >> a->chunk_shift) : -1;
}


/* how many chunks are free */

static inline uint64_t
us_arena_free(const us_arena_t *a)
{
    int64_t  gap;

    gap = us_arena_gap(a, 0);

    return (gap > 0 ? (uint64_t) gap : 0) + a->head->nspare;
}


/*
 * Whether so many chunks and bytes of log still fit together, beside those
 * that are kept.
 */

static inline int
us_arena_fits(const us_arena_t *a, size_t chunks, size_t log)
{
    int64_t  gap;

    gap = us_arena_gap(a, log);

    return gap >= 0
           && (uint64_t) gap + a->head->nspare
              >= chunks + a->keep + a->slack;
}


/* so many chunks that an add leaves them to other operations */

static inline size_t
us_arena_spare(const us_arena_t *a)
{
    return US_CHUNKS_SPARE + (a->head->size >> a->chunk_shift) / US_CHUNKS_PART
           + (a->head->sets_rows ? US_CHUNKS_SETS : 0);
}


/* under the lock: collects a word of the update, see above; reads it back */

static inline void
us_intend_locked(us_arena_t *a, uint64_t *word, uint64_t value)
{
    us_intent_t  *w;

    if (a->intents == US_INTENT_MAX) {
        __builtin_trap();
    }

    w = &a->head->intent[a->intents++];
    w->offset = (uint8_t *) word - a->base;
    w->value = value;
}


static inline uint64_t
us_intended(const us_arena_t *a, const uint64_t *word)
{
    unsigned  i;
    uint64_t  offset;

    offset = (const uint8_t *) word - a->base;

    for (i = a->intents; i > 0; i--) {
        if (a->head->intent[i - 1].offset == offset) {
            return a->head->intent[i - 1].value;
        }
    }

    return us_relaxed(word);
}


/* entry n of an area's directory */

static inline uint32_t *
us_area_entry(const us_arena_t *a, us_area_id_t id, uint64_t n)
{
    return (uint32_t *) (a->base + a->head->area[id].directory) + n;
}


/*
 * Address of byte `pos` of an area.  The entry of the directory is immutable
 * from its publication on.  Relaxed: the caller has acquired (next_id, a model
 * number, ...) something that was released after the entry was stored.
 */

static inline uint8_t *
us_area_at(const us_arena_t *a, us_area_id_t id, uint64_t pos)
{
    uint32_t  chunk;

    chunk = __atomic_load_n(us_area_entry(a, id, pos >> a->chunk_shift),
                            __ATOMIC_RELAXED);

    return a->base + ((uint64_t) chunk << a->chunk_shift)
           + (pos & (((uint64_t) 1 << a->chunk_shift) - 1));
}


/* the same, and how many of n bytes from there on lie in its chunk */

static inline uint8_t *
us_area_piece(const us_arena_t *a, us_area_id_t id, uint64_t pos, size_t n,
    size_t *piece)
{
    uint64_t  chunk;

    chunk = (uint64_t) 1 << a->chunk_shift;
    *piece = chunk - (pos & (chunk - 1));
    *piece = *piece < n ? *piece : n;

    return us_area_at(a, id, pos);
}


/* copies n bytes from there, or to there */
void us_area_read(const us_arena_t *a, us_area_id_t id, uint64_t pos,
    uint8_t *p, size_t n);
void us_area_write(us_arena_t *a, us_area_id_t id, uint64_t pos,
    const uint8_t *p, size_t n);


/* the same address of a sparse area; NULL: no chunk is allotted there */

static inline uint8_t *
us_sparse_at(const us_arena_t *a, us_area_id_t id, uint64_t pos)
{
    uint32_t  chunk;

    if (pos >> a->chunk_shift >= a->head->area[id].max) {
        return NULL;
    }

    chunk = __atomic_load_n(us_area_entry(a, id, pos >> a->chunk_shift),
                            __ATOMIC_RELAXED);

    return chunk ? a->base + ((uint64_t) chunk << a->chunk_shift)
                   + (pos & (((uint64_t) 1 << a->chunk_shift) - 1))
                 : NULL;
}


static inline uint64_t
us_area_bytes(const us_arena_t *a, us_area_id_t id)
{
    return us_relaxed(&a->head->area[id].n) << a->chunk_shift;
}


/*
 * Whether records were being erased while some were read: see us_log.c.
 *
 *     then = us_erasing(a);
 *     ... reads records ...
 *     us_erased_since(a, then)       1: what was read may be of no record
 */

static inline uint64_t
us_erasing(const us_arena_t *a)
{
    /* acquire: no bit is read before */

    return us_acquire(&a->head->erasing);
}


static inline int
us_erased_since(const us_arena_t *a, uint64_t then)
{
    /* a reader that has met a bit that was changed sees that the word was */

    us_fence();

    return us_relaxed(&a->head->erasing) != then || (then & 1);
}


/*
 * Deleted ids: one bit for an id.  A chunk of 16 KiB has 131,072 ids.
 */

/* 64 ids, NULL: none of them is deleted */

static inline uint64_t *
us_deleted_word(const us_arena_t *a, uint64_t word)
{
    return (uint64_t *) us_sparse_at(a, US_AREA_DELETED,
                                     word * sizeof(uint64_t));
}


static inline int
us_deleted(const us_arena_t *a, uint64_t id)
{
    uint64_t  *word;

    word = us_deleted_word(a, id / 64);

    /*
     * Acquire: the LSN of the operation that set the bit was released before
     * it, so an answer that depends on the bit waits for that LSN.
     */

    return word && us_acquire(word) >> id % 64 & 1;
}


#endif /* _US_ARENA_H_INCLUDED_ */
