
/*
 * Answers that are kept for clients that retry: the same Idempotency-Key gets
 * the same answer.
 *
 * One area of memory is shared by the processes of a server.  A request has
 * two names in it, both 128 bits of a keyed hash (us_hash128_t):
 *
 *     key      the client's Idempotency-Key and the scope that it is valid in
 *     print    the fingerprint: all that makes the request what it is
 *
 * and its way is
 *
 *     us_idem_begin()  US_IDEM_NEW        the caller has a ticket, and executes
 *         |                               the request; then either
 *         |                us_idem_keep()     keeps its answer, or
 *         |                us_idem_release()  forgets the key
 *         |
 *         +----------- US_IDEM_KEPT       the answer: us_idem_copy()
 *         +----------- US_IDEM_UNDER_WAY  a live process executes it now
 *         +----------- US_IDEM_OTHER      the key has another print
 *         `----------- US_IDEM_BUSY       no place for one more ticket
 *
 * The oldest answers are dropped for new ones, and no answer is returned past
 * its time.  The area has a fixed size and takes no other memory.
 */


#ifndef _US_IDEM_H_INCLUDED_
#define _US_IDEM_H_INCLUDED_


#include "../us_hash.h"
#include "../us_process.h"


/* the longest Idempotency-Key, in bytes */
#define US_IDEM_KEY_MAX     255

/* of an area, in bytes */
#define US_IDEM_MIN         (64 * 1024)

/* the longest answer that is kept, whatever the size of the area */
#define US_IDEM_ANSWER_MAX  (4 * 1024 * 1024)


/*
 * Excludes the other processes.  It must open when its holder dies; what a
 * killed holder leaves needs no repair.
 */

typedef struct {
    void            (*lock)(void *data);
    void            (*unlock)(void *data);
    void             *data;
} us_idem_lock_t;


typedef struct us_idem_head_s  us_idem_head_t;


/* a process's handle on an area */

typedef struct {
    us_idem_head_t   *head;
    us_process_t      self;
    us_idem_lock_t    lock;
} us_idem_t;


typedef struct {
    uint64_t          w[2];
} us_idem_name_t;


typedef enum {
    US_IDEM_NEW = 0,
    US_IDEM_KEPT,
    US_IDEM_UNDER_WAY,
    US_IDEM_OTHER,
    US_IDEM_BUSY
} us_idem_status_t;


/* of US_IDEM_NEW: valid until us_idem_keep() or us_idem_release() */

typedef struct {
    uint64_t          place;
    us_idem_name_t    key;
    us_idem_name_t    print;
} us_idem_ticket_t;


/* of US_IDEM_KEPT */

typedef struct {
    uint64_t          at;
    size_t            len;
} us_idem_answer_t;


typedef struct {
    size_t            size;           /* of the area, in bytes */
    size_t            used;           /* by answers, expired ones included */
    uint64_t          dropped;        /* answers, before their time */
} us_idem_info_t;


/*
 * The key of a header's value: an sf-string of RFC 8941, section 3.3.3, or the
 * same text without quotes, as many clients send it.  Returns its length in
 * buf, which has US_IDEM_KEY_MAX bytes; 0: it is neither, empty, or too long.
 */
size_t us_idem_key(us_str_t value, uint8_t *buf);

/*
 * Lays out an empty area in size bytes, which are zero filled, 8 byte aligned
 * and not yet shared.  -1: size is less than US_IDEM_MIN.
 */
int us_idem_format(void *mem, size_t size, const uint8_t secret[16]);

/*
 * A handle of this process, which lives as long as the mapping.  The lock is
 * copied.  -1: mem is no area of this layout.
 */
int us_idem_open(us_idem_t *t, void *mem, const us_idem_lock_t *lock);

/* begins the hash of a name, under the area's secret */
void us_idem_name_init(const us_idem_t *t, us_hash128_t *h);

/* the longest answer that us_idem_keep() keeps here, in bytes */
size_t us_idem_answer_max(const us_idem_t *t);

/*
 * now: ms of a clock that all processes share and that does not go backwards.
 * Fills the ticket, or the answer.  The holder of a ticket that has died does
 * not count: its key is new.
 */
us_idem_status_t us_idem_begin(us_idem_t *t, const us_idem_name_t *key,
    const us_idem_name_t *print, uint64_t now, us_idem_ticket_t *ticket,
    us_idem_answer_t *answer);

/* copies answer->len bytes; -1: it has been dropped since us_idem_begin() */
int us_idem_copy(us_idem_t *t, const us_idem_answer_t *answer, uint8_t *p);

/*
 * Keeps an answer until the time `until`, in parts one after another, and ends
 * the ticket.  -1: it is longer than us_idem_answer_max(), and the key is
 * forgotten.
 */
int us_idem_keep(us_idem_t *t, const us_idem_ticket_t *ticket,
    const us_str_t *parts, size_t n, uint64_t now, uint64_t until);

/* ends the ticket without an answer: the next try is a new request */
void us_idem_release(us_idem_t *t, const us_idem_ticket_t *ticket);

void us_idem_info(us_idem_t *t, us_idem_info_t *info);

/* for tests: NULL, or what is inconsistent */
const char *us_idem_check(us_idem_t *t);


#endif /* _US_IDEM_H_INCLUDED_ */
