
/*
 * Counters, GET /stats and GET /metrics: the figures of a zone.  One table has
 * all plain numbers: the name of each in both formats, and its meaning.  Texts
 * and figures with labels follow.
 *
 * Each request adds up the workers' counters, and reads those of the store or a
 * sample of the filter.  Its cost does not depend on the number of URLs.
 *
 * /stats is JSON, for operators and the status page.  /metrics is Prometheus'
 * text format 0.0.4.
 */


#include "ngx_http_urlstore_request.h"
#include "ngx_http_urlstore_persist.h"


/* room for one member of /stats */
#define NGX_HTTP_URLSTORE_MEMBER  512

/* room for a line; the longest parts are the zone's name and a help text */
#define NGX_HTTP_URLSTORE_LINE  768

/* kinds of zones that have a figure */

#define NGX_HTTP_URLSTORE_OF_MEMORY   1   /* a store without path= */
#define NGX_HTTP_URLSTORE_OF_DISK     2   /* a store with path= */
#define NGX_HTTP_URLSTORE_OF_FILTER   4

#define DISK    NGX_HTTP_URLSTORE_OF_DISK
#define STORE   (NGX_HTTP_URLSTORE_OF_MEMORY|NGX_HTTP_URLSTORE_OF_DISK)
#define FILTER  NGX_HTTP_URLSTORE_OF_FILTER
#define ANY     (STORE|FILTER)

#define GAUGE    NGX_HTTP_URLSTORE_GAUGE
#define COUNTER  NGX_HTTP_URLSTORE_COUNTER
#define FLAG     NGX_HTTP_URLSTORE_FLAG
#define RATIO    NGX_HTTP_URLSTORE_RATIO
#define SECONDS  NGX_HTTP_URLSTORE_SECONDS

#define AT(field)  offsetof(ngx_http_urlstore_figures_t, field)


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
    uint64_t                        hot_hits;
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


typedef struct {
    ngx_uint_t                      of;
    ngx_http_urlstore_kind_t        kind;
    size_t                          offset;
    const char                     *stat;     /* NULL: not in /stats */
    const char                     *metric;   /* NULL: not in /metrics */
    const char                     *help;
} ngx_http_urlstore_figure_t;


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_out_t        *out;
    ngx_int_t                       rc;       /* the first error */

    const ngx_http_urlstore_endpoint_t
                                   *endpoints;
} ngx_http_urlstore_scrape_t;


static uint64_t ngx_http_urlstore_sum(ngx_http_urlstore_zone_t *zone,
    ngx_uint_t counter);
static ngx_uint_t ngx_http_urlstore_figures_of(
    ngx_http_urlstore_zone_t *zone);
static void ngx_http_urlstore_figures_get(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_figures_store(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_figures_disk(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_figures_filter(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static ngx_int_t ngx_http_urlstore_stats_zone(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_stats_figures(
    ngx_http_urlstore_out_t *out, ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f);
static ngx_int_t ngx_http_urlstore_stats_lists(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_scrape_figures(ngx_http_urlstore_scrape_t *s,
    ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_scrape_states(ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_scrape_parts(ngx_http_urlstore_scrape_t *s,
    ngx_http_urlstore_figures_t *f);
static void ngx_http_urlstore_scrape_requests(
    ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_scrape_answers(ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_scrape_batches(ngx_http_urlstore_scrape_t *s);

static void ngx_http_urlstore_metric(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *type, const char *help);
static void ngx_http_urlstore_sample(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *label, const char *value, uint64_t n);
static void ngx_http_urlstore_decimal(ngx_http_urlstore_scrape_t *s,
    const char *name, double n);


static const ngx_http_urlstore_figure_t  ngx_http_urlstore_figures[] = {

    { ANY, FLAG, AT(ready), "ready", "ready",
      "1 if look-ups are answered, 0 in any state but \"ready\"." },
    { ANY, FLAG, AT(writable), "writable", "writable",
      "1 if new URLs are accepted." },
    { ANY, FLAG, AT(full), "full", "full",
      "1 if new URLs are refused for lack of room." },
    { ANY, GAUGE, AT(epoch), "epoch", "epoch",
      "Epoch of the ids: it changes when ids may have been cut or given "
      "anew." },
    { ANY, GAUGE, AT(uptime), "uptime", NULL, NULL },

    /* URLs */

    { STORE, GAUGE, AT(urls), "urls", "urls",
      "Ids given, those of deleted URLs included." },
    { STORE, GAUGE, AT(next_id), "next_id", NULL, NULL },
    { STORE, GAUGE, AT(deleted), "deleted", "deleted_ids",
      "Ids whose URL was deleted." },
    { STORE, GAUGE, AT(sites), "sites", "sites", "Sites." },
    { STORE, GAUGE, AT(fit), "fit", "fit_urls",
      "URLs that still fit, an estimate." },

    { FILTER, GAUGE, AT(urls), "urls", "filter_urls",
      "URLs that were new to the filter." },
    { FILTER, GAUGE, AT(capacity), "capacity", "filter_capacity_urls",
      "URLs for which the filter is configured." },
    { FILTER, RATIO, AT(filling), "filling", "filter_filling_ratio",
      "Share of the filter's bits that are set, by a sample." },
    { FILTER, RATIO, AT(expected_error), "expected_error",
      "filter_error_ratio",
      "Share of new URLs that are answered as seen now, by a sample." },
    { FILTER, RATIO, AT(error), "error", "filter_stated_error_ratio",
      "Share of new URLs that are answered as seen at capacity, as "
      "configured." },
    { FILTER, GAUGE, AT(hashes), "hashes", NULL, NULL },

    /* memory */

    { STORE, GAUGE, AT(size), "size", "zone_size_bytes",
      "Size of the zone." },
    { STORE, GAUGE, AT(used), "used", NULL, NULL },
    { STORE, GAUGE, AT(free), "free", "zone_free_bytes",
      "Bytes of the zone that are not in use." },
    { STORE, GAUGE, AT(content), "store_bytes", "store_bytes",
      "Bytes in use for URLs: all but the zone's header and the journal's "
      "ring." },
    { FILTER, GAUGE, AT(size), "size", "filter_size_bytes",
      "Size of the filter." },

    /* work */

    { STORE, COUNTER, AT(trainings), "trainings", "trainings_total",
      "Models learnt from the store's records." },
    { STORE, COUNTER, AT(recoveries), "recoveries", "lock_recoveries_total",
      "Updates of a killed writer that the next writer completed." },
    { STORE, COUNTER, AT(lock_waits), "lock_waits", "lock_waits_total",
      "Times that a writer waited for the lock." },
    { STORE, COUNTER, AT(hot_hits), "hot_hits", "hot_hits_total",
      "URLs that a worker's hot table answered." },
    { ANY, COUNTER, AT(over_quota), "over_quota", "over_quota_total",
      "Requests refused by urlstore_quota." },
    { ANY, COUNTER, AT(over_budget), "over_budget", "over_budget_total",
      "URLs rejected because the rules had taken too long for their request." },
    { ANY, COUNTER, AT(unready), "unready", "unready_total",
      "Requests answered 503: loading, not the owner of the directory, or "
      "read-only." },
    { ANY, COUNTER, AT(body_bytes), "body_bytes", "body_bytes_total",
      "Bytes of request bodies, inflated." },

    /* the journal, by LSN: bytes of operations since the store was made */

    { STORE, GAUGE, AT(published), "published", "published_lsn",
      "LSN up to which operations are visible to readers." },
    { STORE, GAUGE, AT(written), "written", NULL, NULL },
    { STORE, GAUGE, AT(durable), "durable", NULL, NULL },
    { DISK, GAUGE, AT(write_lag), "lag_bytes", "write_lag_bytes",
      "Bytes of operations that are not written yet: they wait in the "
      "ring." },
    { DISK, GAUGE, AT(ring_size), NULL, "ring_size_bytes",
      "Size of the journal's ring: adds wait while it is full." },
    { DISK, GAUGE, AT(unsynced), "unsynced_bytes", NULL, NULL },
    { DISK, GAUGE, AT(sync_lag), NULL, "sync_lag_bytes",
      "Bytes of operations that are not on disk yet." },

    { DISK, FLAG, AT(stalled), "stalled", "stalled",
      "1 if a write to the journal has failed and is tried again." },
    { DISK, FLAG, AT(sync_failed), "sync_failed", "sync_failed",
      "1 if a sync has failed: the store is read-only until a restart." },
    { DISK, COUNTER, AT(errors), "journal_errors", "journal_errors_total",
      "Writes and syncs of the journal that failed." },
    { DISK, COUNTER, AT(writes), "journal_writes", "journal_writes_total",
      "Writes to the journal." },
    { DISK, COUNTER, AT(syncs), "journal_syncs", "journal_syncs_total",
      "Syncs of the journal." },
    { DISK, GAUGE, AT(segment), "segment", NULL, NULL },
    { DISK, COUNTER, AT(takeovers), "takeovers", "takeovers_total",
      "Roles of dead workers that another worker took over." },

    { DISK, COUNTER, AT(snapshots), "snapshots", "snapshots_total",
      "Snapshots written." },
    { DISK, GAUGE, AT(snapshot_lsn), "snapshot_lsn", NULL, NULL },
    { DISK, COUNTER, AT(scrubbed), "scrubbed_bytes", "scrubbed_bytes_total",
      "Bytes of the directory read again and found whole." },

    { DISK, GAUGE, AT(progress), "progress", NULL, NULL },
    { DISK, SECONDS, AT(replay_seconds), "replay_seconds", "replay_seconds",
      "Time that the last start took to load the directory: snapshot and "
      "journal." },
    { DISK, GAUGE, AT(replay_bytes), "replay_bytes", "replay_bytes",
      "Bytes of operations past the newest snapshot, which a start "
      "replays." },
    { DISK, GAUGE, AT(cut_bytes), "cut_bytes", "cut_bytes",
      "Bytes of the journal's torn end that the last start cut off." },
    { DISK, GAUGE, AT(lost_ids), "lost_ids", "lost_ids",
      "Ids in the part cut off that had been answered." },

    { 0, 0, 0, NULL, NULL, NULL }
};


/* upper bounds of the batch histogram, in us; the last bucket has none */

static const uint64_t  ngx_http_urlstore_bounds[] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000
};


void
ngx_http_urlstore_observe(ngx_http_urlstore_zone_t *zone, uint64_t us)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_URLSTORE_BUCKETS - 1; i++) {
        if (us <= ngx_http_urlstore_bounds[i]) {
            break;
        }
    }

    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_BUCKET + i, 1);
    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_SUM, us);
}


/* a counter over all workers */

static uint64_t
ngx_http_urlstore_sum(ngx_http_urlstore_zone_t *zone, ngx_uint_t counter)
{
    uint64_t    sum;
    ngx_uint_t  i;

    sum = 0;

    for (i = 0; i < NGX_HTTP_URLSTORE_TALLIES; i++) {
        sum += zone->sh->tallies[i].n[counter];
    }

    return sum;
}


ngx_int_t
ngx_http_urlstore_stats_handler(ngx_http_request_t *r)
{
    ngx_http_urlstore_out_t      *out;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_figures_t   f;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    out = &ctx->out;

    ngx_http_urlstore_figures_get(ctx->zone, &f);

    if (ngx_http_urlstore_out_init(out, r->pool, 4096) != NGX_OK
        || ngx_http_urlstore_stats_zone(out, ctx->zone) != NGX_OK
        || ngx_http_urlstore_stats_figures(out, ctx->zone, &f) != NGX_OK
        || ngx_http_urlstore_stats_lists(out, ctx->zone, &f) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_urlstore_type(ctx, US_FORMAT_JSON);

    return ngx_http_urlstore_send(r);
}


/* what the zone is, in strings */

static ngx_int_t
ngx_http_urlstore_stats_zone(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone)
{
    u_char                       *p, uuid[37];
    ngx_int_t                     rc;
    ngx_uint_t                    i;
    ngx_http_urlstore_persist_t  *persist;

    rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                      "{\"zone\":\"%V\",\"normalization\":"
                                      "\"%*s\",\"state\":\"%s\"",
                                      &zone->name, zone->conf.norm.len,
                                      zone->conf.norm.data,
                                      ngx_http_urlstore_state_name(zone));

    if (rc != NGX_OK || zone->filter) {
        return rc == NGX_OK ? ngx_http_urlstore_out_printf(out, 16,
                                                   ",\"filter\":true")
                            : NGX_ERROR;
    }

    p = uuid;

    for (i = 0; i < 16; i++) {
        p = ngx_hex_dump(p, &zone->conf.uuid[i], 1);

        if (i == 3 || i == 5 || i == 7 || i == 9) {
            *p++ = '-';
        }
    }

    *p = '\0';

    persist = zone->persist;

    if (persist == NULL) {
        return ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                            ",\"uuid\":\"%s\","
                                            "\"persistent\":false", uuid);
    }

    return ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                        ",\"uuid\":\"%s\",\"persistent\":true,"
                                        "\"sync\":\"%V\"", uuid,
                                        &persist->sync_name);
}


static ngx_int_t
ngx_http_urlstore_stats_figures(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f)
{
    u_char                            *p;
    ngx_int_t                          rc;
    ngx_uint_t                         of;
    const ngx_http_urlstore_figure_t  *row;

    of = ngx_http_urlstore_figures_of(zone);

    for (row = ngx_http_urlstore_figures; row->of; row++) {

        if (row->stat == NULL || !(row->of & of)) {
            continue;
        }

        p = (u_char *) f + row->offset;

        switch (row->kind) {

        case NGX_HTTP_URLSTORE_FLAG:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%s", row->stat,
                                              *(uint64_t *) p ? "true"
                                                              : "false");
            break;

        case NGX_HTTP_URLSTORE_RATIO:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%.9f", row->stat,
                                              *(double *) p);
            break;

        case NGX_HTTP_URLSTORE_SECONDS:
            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%.3f", row->stat,
                                              *(double *) p);
            break;

        default:

            if (*(uint64_t *) p == US_STORE_NO_ID) {
                rc = ngx_http_urlstore_out_printf(out,
                                                  NGX_HTTP_URLSTORE_MEMBER,
                                                  ",\"%s\":null", row->stat);
                break;
            }

            rc = ngx_http_urlstore_out_printf(out, NGX_HTTP_URLSTORE_MEMBER,
                                              ",\"%s\":%uL", row->stat,
                                              *(uint64_t *) p);
            break;
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* bytes_per_url, parts, marks and answers */

static ngx_int_t
ngx_http_urlstore_stats_lists(ngx_http_urlstore_out_t *out,
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_figures_t *f)
{
    ngx_uint_t  i;

    /* room for all of it: names are at most US_STORE_MARK_LEN long */

    if (ngx_http_urlstore_out_room(out, 4096) != NGX_OK) {
        return NGX_ERROR;
    }

    if (f->bytes_per_url) {
        out->pos = ngx_sprintf(out->pos, ",\"bytes_per_url\":%.2f",
                               f->bytes_per_url);

    } else {
        out->pos = ngx_sprintf(out->pos, ",\"bytes_per_url\":null");
    }

    if (zone->filter == NULL) {
        out->pos = ngx_sprintf(out->pos, ",\"parts\":");

        for (i = 0; i < US_PARTS; i++) {
            out->pos = ngx_sprintf(out->pos, "%c\"%s\":%uL", i ? ',' : '{',
                                   us_store_part_name(i), f->parts[i]);
        }

        out->pos = ngx_sprintf(out->pos, "},\"marks\":[");

        for (i = 0; i < zone->conf.nmarks; i++) {
            out->pos = ngx_sprintf(out->pos, "%s\"%*s\"", i ? "," : "",
                                   zone->conf.marks[i].len,
                                   zone->conf.marks[i].data);
        }

        *out->pos++ = ']';
    }

    out->pos = ngx_sprintf(out->pos, ",\"answers\":");

    for (i = 0; i < NGX_HTTP_URLSTORE_ANSWERS; i++) {
        out->pos = ngx_sprintf(out->pos, "%c\"%V\":%uL", i ? ',' : '{',
                               &ngx_http_urlstore_answers[i],
                               ngx_http_urlstore_sum(zone,
                                             NGX_HTTP_URLSTORE_N_NEW + i));
    }

    out->pos = ngx_sprintf(out->pos, "}}\n");

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_metrics_handler(ngx_http_request_t *r)
{
    ngx_http_urlstore_ctx_t        *ctx;
    ngx_http_urlstore_scrape_t      s;
    ngx_http_urlstore_figures_t     f;
    ngx_http_urlstore_main_conf_t  *umcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);
    umcf = ngx_http_get_module_main_conf(r, ngx_http_urlstore_module);

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 16384) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s.zone = ctx->zone;
    s.out = &ctx->out;
    s.rc = NGX_OK;
    s.endpoints = umcf->endpoints;

    ngx_http_urlstore_figures_get(s.zone, &f);

    ngx_http_urlstore_scrape_figures(&s, &f);
    ngx_http_urlstore_scrape_states(&s);

    if (s.zone->filter == NULL) {
        ngx_http_urlstore_scrape_parts(&s, &f);
    }

    ngx_http_urlstore_scrape_requests(&s);
    ngx_http_urlstore_scrape_answers(&s);
    ngx_http_urlstore_scrape_batches(&s);

    if (s.rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&ctx->type, "text/plain; version=0.0.4; charset=utf-8");

    return ngx_http_urlstore_send(r);
}


static void
ngx_http_urlstore_scrape_figures(ngx_http_urlstore_scrape_t *s,
    ngx_http_urlstore_figures_t *f)
{
    u_char                            *p;
    ngx_uint_t                         of;
    const ngx_http_urlstore_figure_t  *row;

    of = ngx_http_urlstore_figures_of(s->zone);

    for (row = ngx_http_urlstore_figures; row->of; row++) {

        if (row->metric == NULL || !(row->of & of)) {
            continue;
        }

        p = (u_char *) f + row->offset;

        ngx_http_urlstore_metric(s, row->metric,
                                 row->kind == NGX_HTTP_URLSTORE_COUNTER
                                 ? "counter" : "gauge", row->help);

        if (row->kind == NGX_HTTP_URLSTORE_RATIO
            || row->kind == NGX_HTTP_URLSTORE_SECONDS)
        {
            ngx_http_urlstore_decimal(s, row->metric, *(double *) p);

        } else {
            ngx_http_urlstore_sample(s, row->metric, NULL, NULL,
                                     *(uint64_t *) p);
        }
    }
}


/* a state set: 1 for the present state, 0 for all others */

static void
ngx_http_urlstore_scrape_states(ngx_http_urlstore_scrape_t *s)
{
    ngx_uint_t   i;
    const char  *now, *name, *last;

    ngx_http_urlstore_metric(s, "state", "gauge",
                             "State of the zone: 1 for the present one.");

    now = ngx_http_urlstore_state_name(s->zone);
    last = "";

    for (i = 0; /* void */ ; i++) {
        name = ngx_http_urlstore_state_word(s->zone, i);

        if (name == NULL) {
            break;
        }

        if (ngx_strcmp(name, last) != 0) {
            ngx_http_urlstore_sample(s, "state", "state", name,
                                     ngx_strcmp(name, now) == 0);
            last = name;
        }
    }
}


static void
ngx_http_urlstore_scrape_parts(ngx_http_urlstore_scrape_t *s,
    ngx_http_urlstore_figures_t *f)
{
    ngx_uint_t  i;

    ngx_http_urlstore_metric(s, "zone_used_bytes", "gauge",
                             "Bytes of the zone in use, by part.");

    for (i = 0; i < US_PARTS; i++) {
        ngx_http_urlstore_sample(s, "zone_used_bytes", "part",
                                 us_store_part_name(i), f->parts[i]);
    }
}


static void
ngx_http_urlstore_scrape_requests(ngx_http_urlstore_scrape_t *s)
{
    ngx_uint_t                           i;
    const char                          *name;
    const ngx_http_urlstore_endpoint_t  *ep;

    ngx_http_urlstore_metric(s, "requests_total", "counter",
                             "Requests, by endpoint.");

    ep = s->endpoints;

    for (i = 0; ep[i].handler; i++) {

        /* an empty label would be none */

        name = ep[i].name.len ? (char *) ep[i].name.data : "page";

        ngx_http_urlstore_sample(s, "requests_total", "endpoint", name,
                                 ngx_http_urlstore_sum(s->zone,
                                     NGX_HTTP_URLSTORE_N_REQUESTS + i));
    }
}


static void
ngx_http_urlstore_scrape_answers(ngx_http_urlstore_scrape_t *s)
{
    ngx_uint_t  i;

    ngx_http_urlstore_metric(s, "answers_total", "counter",
                             "URLs in requests of /add and /seen, by the "
                             "status answered.");

    for (i = 0; i < NGX_HTTP_URLSTORE_ANSWERS; i++) {
        ngx_http_urlstore_sample(s, "answers_total", "status",
                                 (char *) ngx_http_urlstore_answers[i].data,
                                 ngx_http_urlstore_sum(s->zone,
                                     NGX_HTTP_URLSTORE_N_NEW + i));
    }
}


static void
ngx_http_urlstore_scrape_batches(ngx_http_urlstore_scrape_t *s)
{
    char        le[32];
    u_char     *p;
    uint64_t    n, us;
    ngx_uint_t  i;

    ngx_http_urlstore_metric(s, "batch_seconds", "histogram",
                             "Time from a request's first item to its "
                             "reply, the wait for its client included.");

    n = 0;

    for (i = 0; i < NGX_HTTP_URLSTORE_BUCKETS - 1; i++) {
        us = ngx_http_urlstore_bounds[i];
        n += ngx_http_urlstore_sum(s->zone, NGX_HTTP_URLSTORE_N_BUCKET + i);

        p = ngx_sprintf((u_char *) le, "%uL.%06uL", us / 1000000,
                        us % 1000000);

        /* 0.05 and 1.0, not 0.050000 and 1.000000 */

        while (p[-1] == '0' && p[-2] != '.') {
            p--;
        }

        *p = '\0';

        ngx_http_urlstore_sample(s, "batch_seconds_bucket", "le", le, n);
    }

    n += ngx_http_urlstore_sum(s->zone, NGX_HTTP_URLSTORE_N_BUCKET + i);
    us = ngx_http_urlstore_sum(s->zone, NGX_HTTP_URLSTORE_N_SUM);

    ngx_http_urlstore_sample(s, "batch_seconds_bucket", "le", "+Inf", n);
    ngx_http_urlstore_decimal(s, "batch_seconds_sum", us / 1e6);
    ngx_http_urlstore_sample(s, "batch_seconds_count", NULL, NULL, n);
}


static void
ngx_http_urlstore_metric(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *type, const char *help)
{
    if (s->rc == NGX_OK) {
        s->rc = ngx_http_urlstore_out_printf(s->out, NGX_HTTP_URLSTORE_LINE,
                                             "# HELP urlstore_%s %s\n"
                                             "# TYPE urlstore_%s %s\n",
                                             name, help, name, type);
    }
}


/* label may be NULL; names of zones and values of labels are plain words */

static void
ngx_http_urlstore_sample(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *label, const char *value, uint64_t n)
{
    if (s->rc != NGX_OK) {
        return;
    }

    if (label) {
        s->rc = ngx_http_urlstore_out_printf(s->out, NGX_HTTP_URLSTORE_LINE,
                                             "urlstore_%s{zone=\"%V\","
                                             "%s=\"%s\"} %uL\n", name,
                                             &s->zone->name, label, value, n);

    } else {
        s->rc = ngx_http_urlstore_out_printf(s->out, NGX_HTTP_URLSTORE_LINE,
                                             "urlstore_%s{zone=\"%V\"} %uL\n",
                                             name, &s->zone->name, n);
    }
}


/* nine digits: the errors of filters go down to a millionth */

static void
ngx_http_urlstore_decimal(ngx_http_urlstore_scrape_t *s, const char *name,
    double n)
{
    if (s->rc == NGX_OK) {
        s->rc = ngx_http_urlstore_out_printf(s->out, NGX_HTTP_URLSTORE_LINE,
                                             "urlstore_%s{zone=\"%V\"} %.9f\n",
                                             name, &s->zone->name, n);
    }
}


static ngx_uint_t
ngx_http_urlstore_figures_of(ngx_http_urlstore_zone_t *zone)
{
    return zone->filter ? NGX_HTTP_URLSTORE_OF_FILTER
                        : zone->persist ? NGX_HTTP_URLSTORE_OF_DISK
                                        : NGX_HTTP_URLSTORE_OF_MEMORY;
}


static void
ngx_http_urlstore_figures_get(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f)
{
    ngx_memzero(f, sizeof(ngx_http_urlstore_figures_t));

    if (zone->filter) {
        ngx_http_urlstore_figures_filter(zone, f);

    } else {
        ngx_http_urlstore_figures_store(zone, f);
    }

    if (zone->persist) {
        ngx_http_urlstore_figures_disk(zone, f);
    }

    f->epoch = zone->conf.epoch;
    f->uptime = ngx_time() - zone->sh->started;
    f->ready = ngx_http_urlstore_is_ready(zone);
    f->full = ngx_http_urlstore_full(zone);
    f->writable = !f->full && ngx_http_urlstore_writable(zone);

    f->trainings = ngx_http_urlstore_sum(zone,
                                         NGX_HTTP_URLSTORE_N_TRAININGS);
    f->lock_waits = ngx_http_urlstore_sum(zone,
                                          NGX_HTTP_URLSTORE_N_LOCK_WAITS);
    f->hot_hits = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_HOT);
    f->over_quota = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_QUOTA);
    f->over_budget = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_BUDGET);
    f->unready = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_UNREADY);
    f->body_bytes = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_BYTES);
}


static void
ngx_http_urlstore_figures_store(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f)
{
    us_store_info_t  info;

    us_store_info(zone->store, &info);

    f->urls = info.urls;
    f->deleted = info.deleted;
    f->sites = info.sites;
    f->next_id = ngx_http_urlstore_promised_ids(zone);

    f->size = info.size;
    f->used = info.used;
    f->free = info.size - info.used;
    f->content = info.content;
    f->fit = info.fit;
    f->bytes_per_url = info.bytes_per_url;
    ngx_memcpy(f->parts, info.parts, sizeof(f->parts));

    f->ring_size = info.parts[US_PART_RING];
    f->recoveries = info.recoveries;

    /*
     * The last in the order of an operation's life is read first: otherwise
     * an operation in between would make a difference negative.
     */

    f->durable = us_store_durable(zone->store);
    f->written = us_store_written(zone->store);
    f->published = us_store_published(zone->store);

    f->write_lag = f->published - ngx_min(f->written, f->published);
    f->sync_lag = f->published - ngx_min(f->durable, f->published);
    f->unsynced = f->written - ngx_min(f->durable, f->written);
}


static void
ngx_http_urlstore_figures_disk(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f)
{
    us_share_t      *sh;
    us_life_info_t   info;

    sh = zone->persist->life.sh;

    us_life_info(&zone->persist->life, &info);

    f->segment = info.segment;
    f->progress = info.progress;
    f->stalled = info.stalled;
    f->sync_failed = info.sync_failed;
    f->writes = sh->writes;
    f->syncs = sh->syncs;
    f->errors = sh->errors;
    f->snapshots = sh->snapshots;
    f->snapshot_lsn = sh->snapshot_lsn;
    f->replay_bytes = f->published - ngx_min(f->snapshot_lsn, f->published);
    f->replay_seconds = sh->load_ms / 1000.0;
    f->scrubbed = sh->scrubbed;
    f->takeovers = sh->takeovers;
    f->cut_bytes = sh->cut_bytes;
    f->lost_ids = sh->lost_ids;
}


static void
ngx_http_urlstore_figures_filter(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_figures_t *f)
{
    us_filter_info_t  info;

    us_filter_info(zone->filter->set, &info);

    f->urls = info.urls;
    f->capacity = info.capacity;
    f->hashes = info.hashes;
    f->error = info.error;
    f->expected_error = info.expected;
    f->filling = info.filling;
    f->size = info.size;
    f->bytes_per_url = (double) info.size / info.capacity;
}
