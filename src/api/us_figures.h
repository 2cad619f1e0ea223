
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


#include "us_counters.h"
#include "../life/us_replicate.h"
#include "../filter/us_filter.h"


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


#endif /* _US_FIGURES_H_INCLUDED_ */
