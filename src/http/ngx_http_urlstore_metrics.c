
/*
 * Counters, and GET /metrics in Prometheus' text format 0.0.4.  A scrape adds
 * up the workers' slots and asks the store for its figures: its cost does not
 * depend on the number of URLs.
 */


#include "ngx_http_urlstore.h"
#include "ngx_http_urlstore_endpoints.h"


typedef struct {
    ngx_http_urlstore_out_t        *out;
    ngx_str_t                      *zone;
    ngx_int_t                       rc;
} ngx_http_urlstore_scrape_t;


static void ngx_http_urlstore_metric(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *type, const char *help);
static void ngx_http_urlstore_sample(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *label, ngx_str_t *value, uint64_t n);
static void ngx_http_urlstore_gauge(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *help, uint64_t n);
static void ngx_http_urlstore_counter(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *help, uint64_t n);
static void ngx_http_urlstore_scrape_requests(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_scrape_batches(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_scrape_filter(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s);
static void ngx_http_urlstore_ratio(ngx_http_urlstore_scrape_t *s,
    const char *name, const char *help, double value);
static void ngx_http_urlstore_scrape_store(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s);


/* upper bounds of the batch histogram, in us; the last bucket has none */

static const uint64_t  ngx_http_urlstore_bounds[] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000
};


uint64_t
ngx_http_urlstore_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


/* one batch that took us microseconds */

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

uint64_t
ngx_http_urlstore_sum(ngx_http_urlstore_zone_t *zone, ngx_uint_t counter)
{
    uint64_t    sum;
    ngx_uint_t  i;

    sum = 0;

    for (i = 0; i < NGX_HTTP_URLSTORE_SLOTS; i++) {
        sum += zone->sh->slots[i].n[counter];
    }

    return sum;
}


ngx_int_t
ngx_http_urlstore_metrics_handler(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_urlstore_ctx_t     *ctx;
    ngx_http_urlstore_scrape_t   s;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 8192) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s.out = &ctx->out;
    s.zone = &ctx->zone->name;
    s.rc = NGX_OK;

    ngx_http_urlstore_scrape_requests(ctx->zone, &s);
    ngx_http_urlstore_scrape_batches(ctx->zone, &s);

    if (ctx->zone->filter) {
        ngx_http_urlstore_scrape_filter(ctx->zone, &s);

    } else {
        ngx_http_urlstore_scrape_store(ctx->zone, &s);
    }

    if (s.rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&ctx->type, "text/plain; version=0.0.4; charset=utf-8");

    return ngx_http_urlstore_send(r);
}


static void
ngx_http_urlstore_scrape_requests(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s)
{
    ngx_str_t   name;
    ngx_uint_t  i;

    static ngx_str_t  statuses[] = {
        ngx_string("new"),
        ngx_string("seen"),
        ngx_string("unseen"),
        ngx_string("invalid"),
        ngx_string("rejected"),
        ngx_string("full")
    };

    ngx_http_urlstore_metric(s, "requests_total", "counter",
                             "Requests by endpoint.");

    for (i = 0; ngx_http_urlstore_endpoint_name(i, &name); i++) {
        ngx_http_urlstore_sample(s, "requests_total", "endpoint", &name,
                                 ngx_http_urlstore_sum(zone,
                                     NGX_HTTP_URLSTORE_N_REQUESTS + i));
    }

    ngx_http_urlstore_metric(s, "answers_total", "counter",
                             "URLs of /add and /seen by what they were "
                             "answered.");

    for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        ngx_http_urlstore_sample(s, "answers_total", "status", &statuses[i],
                                 ngx_http_urlstore_sum(zone,
                                     NGX_HTTP_URLSTORE_N_NEW + i));
    }

    ngx_http_urlstore_counter(s, "body_bytes_total",
                              "Bytes of request bodies, inflated.",
                              ngx_http_urlstore_sum(zone,
                                      NGX_HTTP_URLSTORE_N_BYTES));

    ngx_http_urlstore_counter(s, "over_quota_total",
                              "Requests refused by urlstore_quota.",
                              ngx_http_urlstore_sum(zone,
                                      NGX_HTTP_URLSTORE_N_QUOTA));

    ngx_http_urlstore_counter(s, "unready_total",
                              "Requests answered 503: loading, not the "
                              "owner or read-only.",
                              ngx_http_urlstore_sum(zone,
                                      NGX_HTTP_URLSTORE_N_UNREADY));
}


static void
ngx_http_urlstore_scrape_batches(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s)
{
    u_char      buf[32];
    uint64_t    n, us;
    ngx_str_t   le;
    ngx_uint_t  i;

    ngx_http_urlstore_metric(s, "batch_seconds", "histogram",
                             "Time from a request's first item to its "
                             "answer, the wait for its client included.");

    n = 0;
    le.data = buf;

    for (i = 0; i < NGX_HTTP_URLSTORE_BUCKETS; i++) {
        n += ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_BUCKET + i);

        if (i < NGX_HTTP_URLSTORE_BUCKETS - 1) {
            us = ngx_http_urlstore_bounds[i];
            le.len = ngx_sprintf(buf, "%uL.%06uL", us / 1000000, us % 1000000)
                     - buf;

            /* 0.05, not 0.050000 */

            while (buf[le.len - 1] == '0') {
                le.len--;
            }

            if (buf[le.len - 1] == '.') {
                buf[le.len++] = '0';
            }

        } else {
            le.len = ngx_sprintf(buf, "+Inf") - buf;
        }

        ngx_http_urlstore_sample(s, "batch_seconds_bucket", "le", &le, n);
    }

    us = ngx_http_urlstore_sum(zone, NGX_HTTP_URLSTORE_N_SUM);

    if (ngx_http_urlstore_out_printf(s->out, 512,
                           "urlstore_batch_seconds_sum{zone=\"%V\"} "
                           "%uL.%06uL\n", s->zone, us / 1000000, us % 1000000)
        != NGX_OK)
    {
        s->rc = NGX_ERROR;
    }

    ngx_http_urlstore_sample(s, "batch_seconds_count", NULL, NULL, n);
}


static void
ngx_http_urlstore_scrape_store(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s)
{
    uint64_t         published, written, durable;
    ngx_str_t        name;
    ngx_uint_t       i;
    us_store_info_t  info;

    us_store_info(zone->store, &info);

    ngx_http_urlstore_gauge(s, "urls", "Ids given.", info.urls);
    ngx_http_urlstore_gauge(s, "deleted_ids", "Ids deleted.", info.deleted);
    ngx_http_urlstore_gauge(s, "sites", "Sites.", info.sites);
    ngx_http_urlstore_gauge(s, "zone_size_bytes", "Size of the zone.",
                            info.size);
    ngx_http_urlstore_gauge(s, "zone_free_bytes", "Bytes not in use.",
                            info.size - info.used);

    ngx_http_urlstore_metric(s, "zone_used_bytes", "gauge",
                             "Bytes in use by part.");

    for (i = 0; i < US_PARTS; i++) {
        name.data = (u_char *) us_store_part_name(i);
        name.len = ngx_strlen(name.data);

        ngx_http_urlstore_sample(s, "zone_used_bytes", "part", &name,
                                 info.parts[i]);
    }

    ngx_http_urlstore_gauge(s, "fit_urls",
                            "Estimate of the URLs that still fit.", info.fit);
    ngx_http_urlstore_gauge(s, "full", "1 if the last add found no room.",
                            info.full);

    ngx_http_urlstore_counter(s, "lock_waits_total",
                              "Times that the writers' lock was waited "
                              "for.",
                              ngx_http_urlstore_sum(zone,
                                      NGX_HTTP_URLSTORE_N_LOCK_WAITS));
    ngx_http_urlstore_counter(s, "lock_recoveries_total",
                              "Updates of a killed writer that the next one "
                              "completed.", info.recoveries);
    ngx_http_urlstore_counter(s, "trainings_total",
                              "Models learnt from the store's records.",
                              ngx_http_urlstore_sum(zone,
                                      NGX_HTTP_URLSTORE_N_TRAININGS));

    /* the later ones first: an operation between would make a lag negative */

    durable = us_store_durable(zone->store);
    written = us_store_written(zone->store);
    published = us_store_published(zone->store);

    ngx_http_urlstore_gauge(s, "published_lsn",
                            "Position that readers see.", published);

    if (zone->conf.ring == 0) {
        return;
    }

    ngx_http_urlstore_gauge(s, "write_lag_bytes",
                            "Bytes of operations not yet written.",
                            published - ngx_min(written, published));
    ngx_http_urlstore_gauge(s, "sync_lag_bytes",
                            "Bytes of operations not yet on disk.",
                            published - ngx_min(durable, published));
}


static void
ngx_http_urlstore_scrape_filter(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_scrape_t *s)
{
    us_filter_info_t  info;

    us_filter_info(zone->filter->set, &info);

    ngx_http_urlstore_gauge(s, "filter_urls",
                            "URLs that were new to the filter.", info.urls);
    ngx_http_urlstore_gauge(s, "filter_capacity_urls",
                            "URLs that the filter was made for.",
                            info.capacity);
    ngx_http_urlstore_gauge(s, "filter_size_bytes", "Size of the filter.",
                            info.size);
    ngx_http_urlstore_ratio(s, "filter_filling_ratio",
                            "Share of its bits that are set, by a sample.",
                            info.filling);
    ngx_http_urlstore_ratio(s, "filter_error_ratio",
                            "Share of new URLs that are taken for seen ones "
                            "now, by a sample.", info.expected);
    ngx_http_urlstore_ratio(s, "filter_stated_error_ratio",
                            "That share at capacity, as configured.",
                            info.error);
    ngx_http_urlstore_gauge(s, "full", "1 if adds are refused.",
                            us_filter_full(zone->filter->set));
}


static void
ngx_http_urlstore_ratio(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *help, double value)
{
    ngx_http_urlstore_metric(s, name, "gauge", help);

    if (ngx_http_urlstore_out_printf(s->out, 512,
                                     "urlstore_%s{zone=\"%V\"} %.9f\n",
                                     name, s->zone, value)
        != NGX_OK)
    {
        s->rc = NGX_ERROR;
    }
}


static void
ngx_http_urlstore_counter(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *help, uint64_t n)
{
    ngx_http_urlstore_metric(s, name, "counter", help);
    ngx_http_urlstore_sample(s, name, NULL, NULL, n);
}


static void
ngx_http_urlstore_gauge(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *help, uint64_t n)
{
    ngx_http_urlstore_metric(s, name, "gauge", help);
    ngx_http_urlstore_sample(s, name, NULL, NULL, n);
}


static void
ngx_http_urlstore_metric(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *type, const char *help)
{
    if (ngx_http_urlstore_out_printf(s->out, 512,
                                     "# HELP urlstore_%s %s\n"
                                     "# TYPE urlstore_%s %s\n",
                                     name, help, name, type)
        != NGX_OK)
    {
        s->rc = NGX_ERROR;
    }
}


/* label may be NULL; zone names are words of the configuration */

static void
ngx_http_urlstore_sample(ngx_http_urlstore_scrape_t *s, const char *name,
    const char *label, ngx_str_t *value, uint64_t n)
{
    ngx_int_t  rc;

    if (label) {
        rc = ngx_http_urlstore_out_printf(s->out, 512,
                              "urlstore_%s{zone=\"%V\",%s=\"%V\"} %uL\n",
                              name, s->zone, label, value, n);

    } else {
        rc = ngx_http_urlstore_out_printf(s->out, 512,
                              "urlstore_%s{zone=\"%V\"} %uL\n",
                              name, s->zone, n);
    }

    if (rc != NGX_OK) {
        s->rc = NGX_ERROR;
    }
}
