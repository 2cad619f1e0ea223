
/*
 * See us_figures.h: the formats.
 *
 * Names of zones and values of labels are plain words, so nothing is escaped.
 */


#include "us_figures.h"
#include "us_answer.h"
#include "us_figures_private.h"
#include "../input/us_json.h"
#include "../us_text.h"


typedef uint8_t *(*us_figures_pt)(uint8_t *p, const us_figures_t *f);


/* whether the zone has this figure */

static int
us_figures_has(const us_figures_t *f, const us_figure_t *row)
{
    return (row->kinds & f->kind)
           || (f->is_shard && (row->kinds & US_FIGURES_SHARD));
}


static uint8_t *
us_stats_uuid(uint8_t *p, const uint8_t *uuid)
{
    if (uuid == NULL) {
        return us_put(p, "null");
    }

    *p++ = '"';
    p = us_put_hex(p, uuid, 4);
    *p++ = '-';
    p = us_put_hex(p, uuid + 4, 2);
    *p++ = '-';
    p = us_put_hex(p, uuid + 6, 2);
    *p++ = '-';
    p = us_put_hex(p, uuid + 8, 2);
    *p++ = '-';

    p = us_put_hex(p, uuid + 10, 6);
    *p++ = '"';

    return p;
}


static uint8_t *
us_stats_zone(uint8_t *p, const us_figures_t *f)
{
    p = us_put(p, "{\"zone\":\"");
    p = us_put_str(p, f->zone);
    p = us_put(p, "\",\"normalization\":\"");
    p = us_put_str(p, f->conf->norm);
    p = us_put(p, "\",\"state\":\"");
    p = us_put(p, us_life_state_word(f->state));

    if (f->kind == US_FIGURES_FILTER) {
        return us_put(p, "\",\"filter\":true");
    }

    p = us_put(p, "\",\"uuid\":");
    p = us_stats_uuid(p, f->uuid);

    if (f->cluster) {
        p = us_put(p, ",\"cluster\":");
        p = us_stats_uuid(p, f->cluster);
    }

    if (f->kind == US_FIGURES_MEMORY) {
        return us_put(p, ",\"persistent\":false");
    }

    if (f->kind == US_FIGURES_REPLICA) {
        p = us_put(p, ",\"persistent\":false,\"primary\":");

        return us_json_quote_bytes(p, us_str_of(f->primary));
    }

    if (f->kind == US_FIGURES_REPLICATED) {
        p = us_put(p, ",\"persistent\":true,\"node\":");
        p = us_json_quote_bytes(p, us_str_of(f->node));
        p = us_put(p, ",\"holder\":");

        return us_json_quote_bytes(p, us_str_of(f->log.holder));
    }

    p = us_put(p, ",\"persistent\":true,\"sync\":\"");
    p = us_put(p, f->sync);

    return us_put(p, "\"");
}


/* where a figure is, and its decimals */

static const void *
us_figure_at(const us_figures_t *f, const us_figure_t *row)
{
    return (row->shared ? (const uint8_t *) f->share : (const uint8_t *) f)
           + row->offset;
}


static double
us_figure_decimal(const us_figures_t *f, const us_figure_t *row)
{
    uint64_t  ms;

    if (row->type == US_FIGURE_RATIO) {
        return *(const double *) us_figure_at(f, row);
    }

    ms = *(const uint64_t *) us_figure_at(f, row);

    return ms == UINT64_MAX ? (double) f->uptime : ms / 1000.0;
}


static uint8_t *
us_stats_figure(uint8_t *p, const us_figures_t *f, const us_figure_t *row)
{
    const uint64_t  *n;

    n = us_figure_at(f, row);

    p = us_put(p, ",\"");
    p = us_put(p, row->stat);
    p = us_put(p, "\":");

    switch (row->type) {

    case US_FIGURE_FLAG:
        return us_put(p, *n ? "true" : "false");

    case US_FIGURE_RATIO:
        return us_put_decimal(p, us_figure_decimal(f, row), 9);

    case US_FIGURE_SECONDS:
        return us_put_decimal(p, us_figure_decimal(f, row), 3);

    default:
        return *n == US_STORE_NO_ID ? us_put(p, "null") : us_put_u64(p, *n);
    }
}


static uint8_t *
us_stats_member(uint8_t *p, int first, us_str_t name, uint64_t n)
{
    p = us_put(p, first ? "{\"" : ",\"");
    p = us_put_str(p, name);
    p = us_put(p, "\":");

    return us_put_u64(p, n);
}


/* bytes_per_url, parts, marks and answers */

static uint8_t *
us_stats_lists(uint8_t *p, const us_figures_t *f)
{
    unsigned     i;
    const char  *part;

    p = us_put(p, ",\"bytes_per_url\":");
    p = f->bytes_per_url ? us_put_decimal(p, f->bytes_per_url, 2)
                         : us_put(p, "null");

    if (f->kind != US_FIGURES_FILTER) {
        p = us_put(p, ",\"parts\":");

        for (i = 0; i < US_PARTS; i++) {
            part = us_store_part_name(i);
            p = us_stats_member(p, i == 0, us_str_of(part), f->store.parts[i]);
        }

        p = us_put(p, "},\"marks\":[");

        for (i = 0; i < f->conf->nmarks; i++) {
            p = us_put(p, i ? ",\"" : "\"");
            p = us_put_str(p, f->conf->marks[i]);
            p = us_put(p, "\"");
        }

        p = us_put(p, "]");
    }

    p = us_put(p, ",\"answers\":");

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        p = us_stats_member(p, i == US_ANSWER_NEW, us_answer_words[i],
                            f->n[us_counter_of(i)]);
    }

    return us_put(p, "}}\n");
}


/* the figures in the order of the table, between what a zone is and lists */

uint8_t *
us_figures_stats(uint8_t *p, const us_figures_t *f, unsigned n)
{
    const us_figure_t  *row;

    if (n == 0) {
        return us_stats_zone(p, f);
    }

    for (row = us_figures_table; row->kinds; row++) {
        if (row->stat && us_figures_has(f, row) && --n == 0) {
            return us_stats_figure(p, f, row);
        }
    }

    return n == 1 ? us_stats_lists(p, f) : NULL;
}


static uint8_t *
us_metric(uint8_t *p, const char *name, const char *type, const char *help)
{
    p = us_put(p, "# HELP urlstore_");
    p = us_put(p, name);
    *p++ = ' ';
    p = us_put(p, help);
    p = us_put(p, "\n# TYPE urlstore_");
    p = us_put(p, name);
    *p++ = ' ';
    p = us_put(p, type);
    *p++ = '\n';

    return p;
}


/* urlstore_NAME{zone="ZONE", of a shard with its number */

static uint8_t *
us_metric_name(uint8_t *p, const us_figures_t *f, const char *name)
{
    p = us_put(p, "urlstore_");
    p = us_put(p, name);
    p = us_put(p, "{zone=\"");
    p = us_put_str(p, f->zone);

    if (f->is_shard) {
        p = us_put(p, "\",shard=\"");
        p = us_put_u64(p, f->shard);
    }

    *p++ = '"';

    return p;
}


static uint8_t *
us_sample(uint8_t *p, const us_figures_t *f, const char *name, uint64_t n)
{
    p = us_metric_name(p, f, name);
    p = us_put(p, "} ");
    p = us_put_u64(p, n);
    *p++ = '\n';

    return p;
}


/* nine digits: the errors of filters go down to a millionth */

static uint8_t *
us_sample_decimal(uint8_t *p, const us_figures_t *f, const char *name,
    double n)
{
    p = us_metric_name(p, f, name);
    p = us_put(p, "} ");
    p = us_put_decimal(p, n, 9);
    *p++ = '\n';

    return p;
}


static uint8_t *
us_metrics_figure(uint8_t *p, const us_figures_t *f, const us_figure_t *row)
{
    p = us_metric(p, row->metric,
                  row->type == US_FIGURE_COUNTER ? "counter" : "gauge",
                  row->help);

    return row->type == US_FIGURE_RATIO || row->type == US_FIGURE_SECONDS
           ? us_sample_decimal(p, f, row->metric, us_figure_decimal(f, row))
           : us_sample(p, f, row->metric,
                       *(const uint64_t *) us_figure_at(f, row));
}


/* whether zones of a kind can be in a state */

static int
us_metrics_state(us_figures_kind_t kind, us_life_state_t state)
{
    switch (kind) {

    case US_FIGURES_DISK:
        return state != US_LIFE_REPLICA && state != US_LIFE_STANDBY
               && state != US_LIFE_STALLED;

    case US_FIGURES_REPLICA:
        return state <= US_LIFE_LOADING || state == US_LIFE_REPLICA
               || state == US_LIFE_TOO_SMALL;

    case US_FIGURES_REPLICATED:
        return state <= US_LIFE_LOADING || state == US_LIFE_READY
               || state == US_LIFE_STANDBY || state == US_LIFE_STALLED
               || state == US_LIFE_TOO_SMALL;

    default:
        return state == US_LIFE_READY;
    }
}


static uint8_t *
us_sample_label(uint8_t *p, const us_figures_t *f, const char *name,
    const char *label, us_str_t value, uint64_t n)
{
    p = us_metric_name(p, f, name);
    *p++ = ',';
    p = us_put(p, label);
    p = us_put(p, "=\"");
    p = us_put_str(p, value);
    p = us_put(p, "\"} ");
    p = us_put_u64(p, n);
    *p++ = '\n';

    return p;
}


/* a state set: 1 for the present state, 0 for all others */

static uint8_t *
us_metrics_states(uint8_t *p, const us_figures_t *f)
{
    unsigned     i;
    const char  *now, *word, *last;

    p = us_metric(p, "state", "gauge",
                  "State of the zone: 1 for the present one.");

    now = us_life_state_word(f->state);
    last = "";

    for (i = 0; i < US_LIFE_STATES; i++) {
        word = us_life_state_word(i);

        if (strcmp(word, last) == 0 || !us_metrics_state(f->kind, i)) {
            continue;
        }

        p = us_sample_label(p, f, "state", "state",
                            us_str_of(word), strcmp(word, now) == 0);
        last = word;
    }

    return p;
}


static uint8_t *
us_metrics_parts(uint8_t *p, const us_figures_t *f)
{
    unsigned     i;
    const char  *part;

    if (f->kind == US_FIGURES_FILTER) {
        return p;
    }

    p = us_metric(p, "zone_used_bytes", "gauge",
                  "Bytes of the zone in use, by part.");

    for (i = 0; i < US_PARTS; i++) {
        part = us_store_part_name(i);
        p = us_sample_label(p, f, "zone_used_bytes", "part",
                            us_str_of(part), f->store.parts[i]);
    }

    return p;
}


static uint8_t *
us_metrics_requests(uint8_t *p, const us_figures_t *f)
{
    unsigned     i;
    const char  *name;

    p = us_metric(p, "requests_total", "counter", "Requests, by endpoint.");

    for (i = 0; i < US_N_ENDPOINTS && f->endpoints[i]; i++) {
        name = f->endpoints[i];
        p = us_sample_label(p, f, "requests_total", "endpoint",
                            us_str_of(name), f->n[US_N_REQUESTS + i]);
    }

    return p;
}


static uint8_t *
us_metrics_answers(uint8_t *p, const us_figures_t *f)
{
    unsigned  i;

    p = us_metric(p, "answers_total", "counter",
                  "URLs in requests of /add and /seen, by the status "
                  "answered.");

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        p = us_sample_label(p, f, "answers_total", "status",
                            us_answer_words[i], f->n[us_counter_of(i)]);
    }

    return p;
}


/* in seconds: 0.05 and 1.0, not 0.050000 and 1.000000 */

static uint8_t *
us_metrics_bound(uint8_t *p, uint64_t us)
{
    p = us_put_u64(p, us / 1000000);
    *p++ = '.';
    p = us_put_digits(p, us % 1000000, 6);

    while (p[-1] == '0' && p[-2] != '.') {
        p--;
    }

    return p;
}


static uint8_t *
us_metrics_batches(uint8_t *p, const us_figures_t *f)
{
    uint64_t  n;
    unsigned  i;
    us_str_t  le;
    uint8_t   bound[2 * US_U64_LEN + 1];

    p = us_metric(p, "batch_seconds", "histogram",
                  "Time from a request's first item to its reply, the wait "
                  "for its client included.");

    n = 0;

    for (i = 0; i < US_N_BUCKETS; i++) {
        n += f->n[US_N_BUCKET + i];

        if (i < US_N_BUCKETS - 1) {
            le.data = bound;
            le.len = us_metrics_bound(bound, us_counter_bounds[i]) - bound;

        } else {
            le = us_string("+Inf");
        }

        p = us_sample_label(p, f, "batch_seconds_bucket", "le", le, n);
    }

    p = us_sample_decimal(p, f, "batch_seconds_sum", f->n[US_N_SUM] / 1e6);

    return us_sample(p, f, "batch_seconds_count", n);
}


uint8_t *
us_figures_metrics(uint8_t *p, const us_figures_t *f, unsigned n)
{
    const us_figure_t  *row;

    static const us_figures_pt  lists[] = {
        us_metrics_states,
        us_metrics_parts,
        us_metrics_requests,
        us_metrics_answers,
        us_metrics_batches
    };

    for (row = us_figures_table; row->kinds; row++) {
        if (row->metric && us_figures_has(f, row) && n-- == 0) {
            return us_metrics_figure(p, f, row);
        }
    }

    return n < sizeof(lists) / sizeof(lists[0]) ? lists[n](p, f) : NULL;
}
