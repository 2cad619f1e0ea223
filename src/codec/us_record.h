
/*
 * Records: the text of a URL to bits and back.
 *
 * The text of a record is a class and a rest:
 *
 *     class   its spelling: US_SPELLING_HTTPS, US_SPELLING_WWW
 *     rest    the canonical URL from the host on, without that "www."
 *
 * This is the seam between the codec and everything around it.  The codec
 * decides what the bits are: reference, common prefix, tail, models, cache.  It
 * does not know where they lie: us_log_get() gives it the bits of a record by
 * id.  Its shared memory are the areas US_AREA_CACHE and _MODELS and the words
 * of the codec in us_head_t; it changes them by us_intend_locked() as all other
 * rooms do, but for the cache, which holds hints only.
 *
 * A us_codec_t is one handle's private side (tables, scratch): for one thread.
 */


#ifndef _US_RECORD_H_INCLUDED_
#define _US_RECORD_H_INCLUDED_


#include "../zone/us_log.h"


/* a class and the longest rest, and slack for copies by words */
#define US_TEXT_BUFFER  (US_URL_MAX + 32)

typedef struct us_codec_s  us_codec_t;


us_codec_t *us_codec_create(us_arena_t *a);
void us_codec_destroy(us_codec_t *c);

/* between two groups: overwrites the texts that it has read and written */
void us_codec_wipe(us_codec_t *c);


/*
 * Reading, without a lock.  id is below an acquired next_id.
 */

/*
 * Class in text[0], then the rest; returns the length of both together.  A
 * damaged record has an empty rest.
 */
size_t us_record_decode(us_codec_t *c, uint64_t id, uint8_t *text);

/* the same, but only the first `most` bytes, if there are more */
size_t us_record_decode_head(us_codec_t *c, uint64_t id, uint8_t *text,
    size_t most);

/*
 * The bytes of its text for which it refers to another record, and which that
 * is; 0: it does not.
 */
unsigned us_record_reference(us_codec_t *c, uint64_t id, uint64_t *reference);

/*
 * The class if the record's rest equals this one, else -1, as soon as a byte
 * differs.  A byte before rest can be read.
 */
int us_record_equal(us_codec_t *c, uint64_t id, us_str_t rest);

/*
 * The same of several records at once, whose cache misses overlap.  The lines
 * of us_log_prefetch() have been asked for.
 *
 * other: in, what a record may have that has not the rest; out, US_OTHER_NONE
 * if the last part of this one, which was read in any case, says that it has
 * not.
 */
#define US_CANDIDATE_GROUP  32

#define US_OTHER_NONE     0
#define US_OTHER_WITH     1           /* "www." and the rest */
#define US_OTHER_WITHOUT  2           /* the rest less its "www." */

typedef struct {
    uint64_t    id;
    us_str_t    rest;
    unsigned    other;
    int         klass;                /* or -1 */
} us_candidate_t;

void us_record_compare(us_codec_t *c, us_candidate_t *all, unsigned n);

/*
 * Asks for a record to be decoded at once: for its line in the log, and, by a
 * guess, for its bits.
 */
void us_record_expect(us_codec_t *c, uint64_t id);

/* after us_log_prefetch(): asks for the bits of a record to be decoded soon */
void us_record_prefetch(us_codec_t *c, uint64_t id);


/*
 * Writing, a group at a time.  A seat (< US_STORE_GROUP) is one new URL of the
 * group.  In this order:
 *
 *     us_record_begin()    ends the group before
 *     us_record_encode()   for seats in ascending order; rest must not change
 *                          until the group ends
 *     us_record_emit_locked()
 *                          nothing intended: the final bits of a seat, which
 *                          is about to become record id
 *     us_record_added_locked()
 *                          nothing intended: the seat was published as id, or
 *                          its URL was found to have that id
 *
 * A seat may refer to an earlier seat of its group, if that one was added by
 * the time of us_record_emit_locked(); else the codec uses another reference,
 * or none.
 */
void us_record_begin(us_codec_t *c);
void us_record_encode(us_codec_t *c, unsigned seat, unsigned klass,
    us_str_t rest);

/*
 * Encodes a seat once more, because its class has changed, in short bounded
 * time, without a reference.
 */
void us_record_encode_locked(us_codec_t *c, unsigned seat, unsigned klass,
    us_str_t rest);

/*
 * Returns the units, and where the bits are (until the next call; bits past the
 * last one in its byte are zero, 8 bytes more are readable).
 */
uint32_t us_record_emit_locked(us_codec_t *c, unsigned seat, uint64_t id,
    const uint8_t **bits);
void us_record_added_locked(us_codec_t *c, unsigned seat, uint64_t id);


/*
 * Replay: record id has just been put into the log as it was; text is what
 * us_record_decode() gave for it.  Does for the cache what emit and
 * added have done when it was first written.
 */
void us_record_replayed(us_codec_t *c, uint64_t id, const uint8_t *text,
    size_t len);


/*
 * Models.  us_record_install_locked() intends to publish a model, the bytes of
 * an operation, for the records from next_id on; the lock is held until the
 * commit (0, or US_REPLAY_*: nothing intended).  us_record_model()
 * returns model number n and the first id that may use it (-1: there is no such
 * model).  The built-in model has no number.  How models are learnt:
 * us_learn.h.
 */
int us_record_install_locked(us_codec_t *c, us_str_t model);
int us_record_model(us_codec_t *c, unsigned n, uint64_t *first,
    us_str_t *model);

/*
 * Texts of models that no record has: us_tokens.h.  us_record_drop_locked()
 * does what an operation says, and commits it; 0, or US_REPLAY_*.
 * us_record_refresh(): outside of a group, the handle's models become those of
 * the zone, without what was dropped; under the lock it need not be.
 */
int us_record_drop_locked(us_codec_t *c, uint64_t number, us_str_t drop);
void us_record_refresh(us_codec_t *c);


#endif /* _US_RECORD_H_INCLUDED_ */
