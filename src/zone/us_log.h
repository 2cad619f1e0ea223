
/*
 * The record log, and where in it a record lies.  See us_log.c.
 */


#ifndef _US_LOG_H_INCLUDED_
#define _US_LOG_H_INCLUDED_


#include "us_arena.h"
#include "../us_bit.h"


#define US_LOG_GROUP      56          /* records that share a base */

/* the longest record: bytes, and the slack that us_log_get() may touch */
#define US_RECORD_MAX     (US_URL_MAX + US_URL_MAX / 8 + 64)
#define US_RECORD_BUFFER  (US_RECORD_MAX + 16)


/* a longer record is in two parts: so many of its units are in the log */
#define US_LONG           255
#define US_LONG_HEAD      238


/*
 * Finds the record of id, which must be below an acquired next_id.  buf, of
 * US_RECORD_BUFFER bytes, is used for very long records only.
 */
void us_log_get(const us_arena_t *a, uint64_t id, uint8_t *buf,
    us_bits_t *record);

/* the same; 0: it is a very long record, of which *record is not the whole */
int us_log_find(const us_arena_t *a, uint64_t id, us_bits_t *record);

/*
 * Under the lock, nothing intended.  Makes room for a record of so many units
 * as number id: 0, or -1 if there is none.
 */
int us_log_reserve_locked(us_arena_t *a, uint64_t id, uint32_t units);

/*
 * After us_log_reserve_locked(): writes the record where nobody looks yet;
 * us_log_get() finds it from here on.  8 bytes past the bits must be
 * readable.
 */
void us_log_write_locked(us_arena_t *a, uint64_t id, const uint8_t *bits,
    uint32_t units);

/* intends what makes the record that was written part of the log */
void us_log_append_locked(us_arena_t *a, uint32_t units);

/* copies the bits so that they begin at bit 0 of buf; returns bytes */
size_t us_bits_copy(const us_bits_t *record, uint8_t *buf);


/*
 * Erasing: a record's bits become ones, a stub keeps what others need of its
 * text.  See us_log.c, also for what readers must do.
 *
 * Under the lock, nothing intended: us_log_erase_reserve_locked() makes room
 * for a stub of len bytes, at most US_STUB_MAX (-1: there is none), and
 * us_log_erase_locked() intends the erasure.  After the commit,
 * us_log_enter_locked() does it; whoever takes the lock does so first of all.
 */
#define US_STUB_MAX       (US_URL_MAX + 1)

int us_log_erase_reserve_locked(us_arena_t *a, uint64_t id, size_t len);
void us_log_erase_locked(us_arena_t *a, uint64_t id, us_str_t text);
void us_log_erase_bits_locked(us_arena_t *a);

static inline void
us_log_enter_locked(us_arena_t *a)
{
    if (us_relaxed(&a->head->erasing) & 1) {
        us_log_erase_bits_locked(a);
    }
}


/* whether all bits are ones, as those of no record are */
int us_bits_erased(const us_bits_t *record);

/* the stub of an erased record: 1, or 0: it has none, or an empty one */
int us_log_stub(const us_arena_t *a, uint64_t id, us_str_t *text);

/* under the lock: clears what killed writers left past the ends of the log */
void us_log_clear_locked(us_arena_t *a);


static inline uint64_t *
us_log_line(const us_arena_t *a, uint64_t id)
{
    return (uint64_t *) us_area_at(a, US_AREA_OFFSETS, id / US_LOG_GROUP * 64);
}


/* asks for the line that us_log_get() and us_log_find() need first */

static inline void
us_log_prefetch(const us_arena_t *a, uint64_t id)
{
    __builtin_prefetch(us_log_line(a, id));
}


/*
 * The position of the first record in the line of id, in units from the start
 * of the zone.
 */

static inline uint64_t
us_log_base(const us_arena_t *a, uint64_t id)
{
    return us_relaxed(us_log_line(a, id));
}


#endif /* _US_LOG_H_INCLUDED_ */
