
/*
 * Counters, and GET /metrics in Prometheus' text format 0.0.4: the table of
 * ngx_http_urlstore_figures.c, then the figures with labels.
 */


#include "ngx_http_urlstore_figures.h"


/* room for a line; the longest parts are the zone's name and a help text */
#define NGX_HTTP_URLSTORE_LINE  768


typedef struct {
    ngx_http_urlstore_zone_t       *zone;
    ngx_http_urlstore_out_t        *out;
    ngx_int_t                       rc;       /* the first error */
} ngx_http_urlstore_scrape_t;


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


/* counts one batch that took so many microseconds */

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
    ngx_int_t                     rc;
    ngx_http_urlstore_ctx_t      *ctx;
    ngx_http_urlstore_scrape_t    s;
    ngx_http_urlstore_figures_t   f;

    ctx = ngx_http_get_module_ctx(r, ngx_http_urlstore_module);

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_urlstore_out_init(&ctx->out, r->pool, 16384) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s.zone = ctx->zone;
    s.out = &ctx->out;
    s.rc = NGX_OK;

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
    ngx_str_t   name;
    ngx_uint_t  i;

    ngx_http_urlstore_metric(s, "requests_total", "counter",
                             "Requests, by endpoint.");

    for (i = 0; ngx_http_urlstore_endpoint_name(i, &name); i++) {
        ngx_http_urlstore_sample(s, "requests_total", "endpoint",
                                 (char *) name.data,
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
                                 ngx_http_urlstore_answers[i],
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
