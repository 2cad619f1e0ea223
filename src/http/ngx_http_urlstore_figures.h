
/*
 * The figures of a zone, for /stats and /metrics: one table says which there
 * are, what each is called in either, and what it means.
 */


#ifndef _NGX_HTTP_URLSTORE_FIGURES_H_INCLUDED_
#define _NGX_HTTP_URLSTORE_FIGURES_H_INCLUDED_


#include "ngx_http_urlstore.h"


/* one look at a zone; what it does not have is 0 */

typedef struct {
    uint64_t                        urls;
    uint64_t                        deleted;
    uint64_t                        sites;
    uint64_t                        next_id;
    uint64_t                        epoch;
    uint64_t                        uptime;

    uint64_t                        size;
    uint64_t                        used;
    uint64_t                        free;
    uint64_t                        content;
    uint64_t                        fit;
    uint64_t                        parts[US_PARTS];
    double                          bytes_per_url;  /* 0: not known yet */

    uint64_t                        ready;
    uint64_t                        writable;
    uint64_t                        full;

    uint64_t                        trainings;
    uint64_t                        recoveries;
    uint64_t                        lock_waits;
    uint64_t                        over_quota;
    uint64_t                        over_budget;
    uint64_t                        unready;
    uint64_t                        body_bytes;

    uint64_t                        published;      /* LSN */
    uint64_t                        written;
    uint64_t                        durable;
    uint64_t                        write_lag;
    uint64_t                        sync_lag;
    uint64_t                        unsynced;

    uint64_t                        ring_size;
    uint64_t                        progress;
    uint64_t                        stalled;
    uint64_t                        sync_failed;
    uint64_t                        segment;
    uint64_t                        writes;
    uint64_t                        syncs;
    uint64_t                        errors;
    uint64_t                        snapshots;
    uint64_t                        snapshot_lsn;
    uint64_t                        replay_bytes;
    double                          replay_seconds;
    uint64_t                        scrubbed;
    uint64_t                        takeovers;
    uint64_t                        cut_bytes;
    uint64_t                        lost_ids;

    uint64_t                        capacity;
    uint64_t                        hashes;
    double                          error;
    double                          expected_error;
    double                          filling;
} ngx_http_urlstore_figures_t;


typedef enum {
    NGX_HTTP_URLSTORE_GAUGE = 0,
    NGX_HTTP_URLSTORE_COUNTER,
    NGX_HTTP_URLSTORE_FLAG,               /* 0 or 1; false or true */
    NGX_HTTP_URLSTORE_RATIO,              /* a double */
    NGX_HTTP_URLSTORE_SECONDS             /* a double */
} ngx_http_urlstore_kind_t;


/* kinds of zones that have a figure */

#define NGX_HTTP_URLSTORE_OF_MEMORY   1   /* a store without path= */
#define NGX_HTTP_URLSTORE_OF_DISK     2   /* a store with path= */
#define NGX_HTTP_URLSTORE_OF_FILTER   4


typedef struct {
    ngx_uint_t                      of;
    ngx_http_urlstore_kind_t        kind;
    size_t                          offset;
    const char                     *stat;     /* NULL: not in /stats */
    const char                     *metric;   /* NULL: not in /metrics */
    const char                     *help;
} ngx_http_urlstore_figure_t;


/* a table that ends with a row of kind 0 zones */
extern const ngx_http_urlstore_figure_t  ngx_http_urlstore_figures[];

/* which of the three a zone is */
ngx_uint_t ngx_http_urlstore_figures_of(ngx_http_urlstore_zone_t *zone);

/* whether new URLs are refused for lack of room */
ngx_uint_t ngx_http_urlstore_full(ngx_http_urlstore_zone_t *zone);

void ngx_http_urlstore_figures_get(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);


/* answers of /add and /seen, in the order of their counters */

#define NGX_HTTP_URLSTORE_ANSWERS  6
extern const char  *ngx_http_urlstore_answers[NGX_HTTP_URLSTORE_ANSWERS];


#endif /* _NGX_HTTP_URLSTORE_FIGURES_H_INCLUDED_ */
