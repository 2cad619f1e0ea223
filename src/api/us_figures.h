
/*
 * The figures of a zone, for GET /stats and GET /metrics.
 *
 *     store, life, filter --look--> us_figures_t --> /stats    JSON
 *     counters                                   --> /metrics  Prometheus'
 *                                                    text format 0.0.4
 *
 * One table has all plain numbers: the place of each, in what was looked up or
 * in the words that the processes of a life share, its name in both formats,
 * and its meaning.  Texts and figures with labels follow.  A look does not
 * depend on the number of URLs: it reads the store's counters, or a sample of
 * the filter.
 */


#ifndef _US_FIGURES_H_INCLUDED_
#define _US_FIGURES_H_INCLUDED_


#include "us_request.h"
#include "../us_words.h"
#include "../filter/us_filter.h"
#include "../input/us_json.h"
#include "../life/us_replicate.h"


/*
 * The counters of a zone.  Each process has a tally of its own in shared
 * memory, so that counting costs no shared cache line; a reader adds the
 * tallies up.
 */

#define US_TALLIES      64
#define US_N_BUCKETS    13
#define US_N_ENDPOINTS  20            /* at most */


typedef enum {
    US_N_NEW = 0,                     /* URLs, by answer: us_counter_of() */

    US_N_LOCK_WAITS = US_N_NEW + US_ANSWERS_COUNTED,
    US_N_TRAININGS,
    US_N_QUOTA,                       /* requests refused by a quota */
    US_N_UNREADY,                     /* requests answered 503 */
    US_N_BYTES,                       /* of request bodies, inflated */
    US_N_BUDGET,                      /* URLs rejected: rules took too long */
    US_N_HOT,                         /* URLs that a hot table answered */
    US_N_CLAIMS,                      /* claims that /claim made */

    US_N_REPEATED,                    /* items, for Idempotency-Key */
    US_N_FORGOTTEN,                   /* requests with a key, not promised */

    US_N_UNAVAILABLE,                 /* items of a cluster not answered */

    US_N_SUM,                         /* of the batches' time, in us */
    US_N_BUCKET,                      /* batches, by time; the last: +Inf */

    US_N_REQUESTS = US_N_BUCKET + US_N_BUCKETS,

    US_N = 56                         /* seven cache lines */
} us_counter_t;

_Static_assert(US_N_REQUESTS + US_N_ENDPOINTS <= US_N,
               "a tally has no room for the counters");


/* that of an answer, one of the first US_ANSWERS_COUNTED */
#define us_counter_of(answer)  (US_N_NEW + (answer) - US_ANSWER_NEW)


/*
 * Two workers share a tally only while an old one drains, or beyond US_TALLIES,
 * so they are atomic all the same.
 */

typedef struct {
    uint64_t  n[US_N];
} us_tally_t;


static inline void
us_tally_add(us_tally_t *tally, unsigned counter, uint64_t n)
{
    (void) __atomic_fetch_add(&tally->n[counter], n, __ATOMIC_SEQ_CST);
}


/* one batch that took so long */
void us_tally_batch(us_tally_t *tally, uint64_t us);

/* the sums of US_TALLIES tallies */
void us_tally_sums(const us_tally_t *tallies, uint64_t n[US_N]);


/* kinds of zones, which differ in the figures that they have */

typedef enum {
    US_FIGURES_MEMORY = 1,            /* a store without a directory */
    US_FIGURES_DISK = 2,              /* a store with one */
    US_FIGURES_FILTER = 4,
    US_FIGURES_REPLICA = 8,           /* a store that follows another one */
    US_FIGURES_SHARD = 16,            /* beside one of these: of a cluster */
    US_FIGURES_REPLICATED = 32        /* a store whose journal is a log that
                                         other nodes read as well */
} us_figures_kind_t;


/* one look at a zone; what it does not have is 0 */

typedef struct {
    us_figures_kind_t       kind;
    us_str_t                zone;     /* its name: letters, digits, - and _ */
    const us_store_conf_t  *conf;
    const char             *sync;     /* sync=, of US_FIGURES_DISK */
    us_life_state_t         state;
    uint64_t                n[US_N];  /* counters */
    const char             *endpoints[US_N_ENDPOINTS];  /* up to a NULL */

    us_store_info_t         store;
    uint64_t                next_id;  /* US_STORE_NO_ID: not known */
    uint64_t                epoch;
    uint64_t                uptime;   /* s */
    double                  bytes_per_url;  /* 0: not known yet */
    uint64_t                free;
    uint64_t                sets;
    uint64_t                sets_most;
    uint64_t                erasures;
    uint64_t                revisit;  /* s */
    uint64_t                clock;
    uint64_t                clock_ahead;    /* s, of the machine's */

    uint64_t                ready;
    uint64_t                writable;
    uint64_t                full;

    uint64_t                published;      /* LSN */
    uint64_t                written;
    uint64_t                durable;
    uint64_t                write_lag;
    uint64_t                sync_lag;
    uint64_t                unsynced;

    const us_share_t       *share;    /* of all kinds but MEMORY and FILTER */
    us_life_info_t          life;
    uint64_t                replay_bytes;

    const uint8_t          *uuid;           /* NULL: it is not loaded yet */

    unsigned                is_shard;       /* the store is one */
    const uint8_t          *cluster;        /* uuid, or NULL: no map so far */
    uint64_t                shard;
    uint64_t                map_version;    /* 0: no map */

    const char             *primary;        /* of US_FIGURES_REPLICA */
    us_life_lag_t           lag;

    const char             *node;     /* of US_FIGURES_REPLICATED */
    us_replicate_info_t     log;
    uint64_t                is_primary;

    us_filter_info_t        filter;
} us_figures_t;


/*
 * The looks; the caller zeroes *f and sets what they do not.  That of the life
 * follows that of its store, after f->state and f->kind were set; it sets the
 * kind of a life that is on disk, or in a log.
 */

void us_figures_store(us_figures_t *f, us_store_t *store);
void us_figures_life(us_figures_t *f, const us_life_t *life);
void us_figures_filter(us_figures_t *f, const us_filter_t *filter);


/*
 * Both write piece n = 0, 1, ... at p, where US_FIGURES_PIECE bytes are free,
 * and return the end.  NULL: there are no more pieces.
 */

#define US_FIGURES_PIECE  8192

uint8_t *us_figures_stats(uint8_t *p, const us_figures_t *f, unsigned n);
uint8_t *us_figures_metrics(uint8_t *p, const us_figures_t *f, unsigned n);


/*
 * GET /health, for balancers: JSON, or the word alone as text.
 *
 *     {"status": S, "writable": B, "full": B, "epoch": N [, of its kind]}
 *
 * status: a word; life: of a zone with path=, follow= or replicate=, or NULL
 */

#define US_HEALTH_TEXT  (512 + us_json_quoted_max(US_SHARE_REASON)            \
                         + 2 * us_json_quoted_max(US_REPLOG_HOLDER))

uint8_t *us_health(uint8_t *p, us_format_t format, const char *status,
    int writable, int full, uint64_t epoch, const us_life_t *life);


#endif /* _US_FIGURES_H_INCLUDED_ */
