
/*
 * See us_figures.h: counters, the table of figures, the looks, the formats.
 *
 * Names of zones and values of labels are plain words, so nothing is escaped.
 */


#include "us_figures.h"
#include "us_answer.h"
#include "../store/us_erasures.h"
#include "../us_text.h"


typedef uint8_t *(*us_figures_pt)(uint8_t *p, const us_figures_t *f);


typedef enum {
    US_FIGURE_GAUGE = 0,
    US_FIGURE_COUNTER,
    US_FIGURE_FLAG,                   /* 0 or 1; false or true */
    US_FIGURE_RATIO,                  /* a double */
    US_FIGURE_SECONDS                 /* in ms; UINT64_MAX: since it began */
} us_figure_type_t;


typedef struct {
    unsigned                kinds;    /* of zones that have it */
    us_figure_type_t        type;
    unsigned                shared;   /* in f->share, and not in *f */
    size_t                  offset;
    const char             *stat;     /* NULL: not in /stats */
    const char             *metric;   /* NULL: not in /metrics */
    const char             *help;
} us_figure_t;


/* upper bounds of the buckets, in us and in s; the last one has none */

static const struct {
    uint64_t     us;
    const char  *seconds;
} us_figures_buckets[US_N_BUCKETS] = {
    { 50, "0.00005" }, { 100, "0.0001" }, { 250, "0.00025" },
    { 500, "0.0005" }, { 1000, "0.001" }, { 2500, "0.0025" },
    { 5000, "0.005" }, { 10000, "0.01" }, { 25000, "0.025" },
    { 50000, "0.05" }, { 100000, "0.1" }, { 1000000, "1.0" },
    { UINT64_MAX, "+Inf" }
};


void
us_tally_batch(us_tally_t *tally, uint64_t us)
{
    unsigned  i;

    for (i = 0; us > us_figures_buckets[i].us; i++) { /* void */ }

    us_tally_add(tally, US_N_BUCKET + i, 1);
    us_tally_add(tally, US_N_SUM, us);
}


void
us_tally_sums(const us_tally_t *tallies, uint64_t n[US_N])
{
    unsigned  i, k;

    memset(n, 0, US_N * sizeof(uint64_t));

    for (i = 0; i < US_TALLIES; i++) {
        for (k = 0; k < US_N; k++) {
            n[k] += __atomic_load_n(&tallies[i].n[k], __ATOMIC_RELAXED);
        }
    }
}


#define DISK     US_FIGURES_DISK
#define REPLICA  US_FIGURES_REPLICA
#define LOG      US_FIGURES_REPLICATED
#define STORE    (US_FIGURES_MEMORY|DISK|REPLICA|LOG)
#define FILTER   US_FIGURES_FILTER
#define SHARD    US_FIGURES_SHARD
#define ANY      (STORE|FILTER)

#define GAUGE    US_FIGURE_GAUGE
#define COUNTER  US_FIGURE_COUNTER
#define FLAG     US_FIGURE_FLAG
#define RATIO    US_FIGURE_RATIO
#define SECONDS  US_FIGURE_SECONDS

#define AT(field)     0, offsetof(us_figures_t, field)
#define SHARED(word)  1, offsetof(us_share_t, word)


static const us_figure_t  us_figures_table[] = {

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

    { STORE, GAUGE, AT(store.urls), "urls", "urls",
      "Ids given, those of deleted URLs included." },
    { STORE, GAUGE, AT(next_id), "next_id", NULL, NULL },
    { STORE, GAUGE, AT(store.deleted), "deleted", "deleted_ids",
      "Ids whose URL was deleted." },
    { STORE, GAUGE, AT(store.sites), "sites", "sites", "Sites." },
    { STORE, GAUGE, AT(store.fit), "fit", "fit_urls",
      "URLs that still fit, an estimate." },
    { STORE, GAUGE, AT(sets), "sets", "sets", "Sets, besides marks." },
    { STORE, GAUGE, AT(sets_most), "sets_most", "sets_most",
      "Sets that there may be." },
    { STORE, GAUGE, AT(erasures), "erasures", "erasures",
      "Erasures, those that were lifted included." },

    { FILTER, GAUGE, AT(filter.urls), "urls", "filter_urls",
      "URLs that were new to the filter." },
    { FILTER, GAUGE, AT(filter.capacity), "capacity", "filter_capacity_urls",
      "URLs for which the filter is configured." },
    { FILTER, RATIO, AT(filter.filling), "filling", "filter_filling_ratio",
      "Share of the filter's bits that are set, by a sample." },
    { FILTER, RATIO, AT(filter.expected), "expected_error",
      "filter_error_ratio",
      "Share of new URLs that are answered as seen now, by a sample." },
    { FILTER, RATIO, AT(filter.error), "error", "filter_stated_error_ratio",
      "Share of new URLs that are answered as seen at capacity, as "
      "configured." },
    { FILTER, GAUGE, AT(filter.hashes), "hashes", NULL, NULL },

    /* memory */

    { STORE, GAUGE, AT(store.size), "size", "zone_size_bytes",
      "Size of the zone." },
    { STORE, GAUGE, AT(store.used), "used", NULL, NULL },
    { STORE, GAUGE, AT(free), "free", "zone_free_bytes",
      "Bytes of the zone that are not in use." },
    { STORE, GAUGE, AT(store.content), "store_bytes", "store_bytes",
      "Bytes in use for URLs: all but the zone's header and the journal's "
      "ring." },
    { FILTER, GAUGE, AT(filter.size), "size", "filter_size_bytes",
      "Size of the filter." },

    /* work */

    { STORE, COUNTER, AT(n[US_N_TRAININGS]), "trainings", "trainings_total",
      "Models learnt from the store's records." },
    { STORE, COUNTER, AT(store.recoveries), "recoveries",
      "lock_recoveries_total",
      "Updates of a killed writer that the next writer completed." },
    { STORE, COUNTER, AT(n[US_N_LOCK_WAITS]), "lock_waits", "lock_waits_total",
      "Times that a writer waited for the lock." },
    { STORE, COUNTER, AT(n[US_N_HOT]), "hot_hits", "hot_hits_total",
      "URLs that a worker's hot table answered." },
    { STORE, COUNTER, AT(n[US_N_CLAIMS]), "claims", "claims_total",
      "Claims made, or cleared, by /claim." },
    { STORE, GAUGE, AT(revisit), "revisit", "revisit_seconds",
      "Unit in which claims are dated; 0: none are kept." },
    { STORE, GAUGE, AT(clock), "clock", "claims_clock_seconds",
      "Clock of claims: the latest time that a claim can have, in seconds "
      "since 1970; it never goes back." },
    { STORE, GAUGE, AT(clock_ahead), "clock_ahead", "clock_ahead_seconds",
      "Time by which the clock of claims is ahead of the machine's: no claim "
      "gets older for so long." },
    { ANY, COUNTER, AT(n[US_N_QUOTA]), "over_quota", "over_quota_total",
      "Requests refused by urlstore_quota." },
    { ANY, COUNTER, AT(n[US_N_BUDGET]), "over_budget", "over_budget_total",
      "URLs rejected because the rules had taken too long for their request." },
    { ANY, COUNTER, AT(n[US_N_UNREADY]), "unready", "unready_total",
      "Requests answered 503: loading, not the owner of the directory, or "
      "read-only." },
    { ANY, COUNTER, AT(n[US_N_BYTES]), "body_bytes", "body_bytes_total",
      "Bytes of request bodies, inflated." },

    /* Idempotency-Key */

    { ANY, COUNTER, AT(n[US_N_REPEATED]), "idempotency_repeated",
      "idempotency_repeated_total",
      "URLs answered as new or due once more, to a retry." },
    { ANY, COUNTER, AT(n[US_N_FORGOTTEN]), "idempotency_forgotten",
      "idempotency_forgotten_total",
      "Requests with a key while keys are forgotten before their time: the "
      "memory is too small." },

    /* of a cluster */

    { SHARD, GAUGE, AT(shard), "shard", "shard", "Number of the shard." },
    { SHARD, GAUGE, AT(map_version), "map_version", "map_version",
      "Version of the map that the shard has adopted; 0: none so far." },
    { SHARD, COUNTER, AT(n[US_N_UNAVAILABLE]), "unavailable",
      "unavailable_total",
      "URLs and ids answered as unavailable: they are another shard's." },

    /* the journal, by LSN: bytes of operations since the store was made */

    { STORE, GAUGE, AT(published), "published", "published_lsn",
      "LSN up to which operations are visible to readers." },
    { STORE, GAUGE, AT(written), "written", NULL, NULL },
    { STORE, GAUGE, AT(durable), "durable", NULL, NULL },
    { DISK, GAUGE, AT(write_lag), "lag_bytes", "write_lag_bytes",
      "Bytes of operations that are not written yet: they wait in the "
      "ring." },
    { DISK, GAUGE, AT(store.parts[US_PART_RING]), NULL, "ring_size_bytes",
      "Size of the journal's ring: adds wait while it is full." },
    { DISK, GAUGE, AT(unsynced), "unsynced_bytes", NULL, NULL },
    { DISK, GAUGE, AT(sync_lag), NULL, "sync_lag_bytes",
      "Bytes of operations that are not on disk yet." },

    { DISK|LOG, FLAG, AT(life.stalled), "stalled", "stalled",
      "1 if a write to the journal has failed and is tried again, or the log "
      "of a primary does not confirm." },
    { DISK, FLAG, AT(life.sync_failed), "sync_failed", "sync_failed",
      "1 if a sync has failed: the store is read-only until a restart." },
    { DISK, COUNTER, SHARED(errors), "journal_errors", "journal_errors_total",
      "Writes and syncs of the journal that failed." },
    { DISK, COUNTER, SHARED(writes), "journal_writes", "journal_writes_total",
      "Writes to the journal." },
    { DISK, COUNTER, SHARED(syncs), "journal_syncs", "journal_syncs_total",
      "Syncs of the journal." },
    { DISK, GAUGE, AT(life.segment), "segment", NULL, NULL },
    { DISK|REPLICA|LOG, COUNTER, SHARED(takeovers), "takeovers",
      "takeovers_total",
      "Roles of dead workers that another worker took over." },

    { DISK|LOG, COUNTER, SHARED(snapshots), "snapshots", "snapshots_total",
      "Snapshots written." },
    { DISK, GAUGE, SHARED(snapshot_lsn), "snapshot_lsn", NULL, NULL },
    { DISK, COUNTER, SHARED(scrubbed), "scrubbed_bytes", "scrubbed_bytes_total",
      "Bytes of the directory read again and found whole." },

    { DISK|REPLICA|LOG, GAUGE, AT(life.progress), "progress", NULL, NULL },
    { DISK, SECONDS, SHARED(load_ms), "replay_seconds", "replay_seconds",
      "Time that the last start took to load the directory: snapshot and "
      "journal." },
    { DISK, GAUGE, AT(replay_bytes), "replay_bytes", "replay_bytes",
      "Bytes of operations past the newest snapshot, which a start "
      "replays." },
    { DISK, GAUGE, SHARED(cut_bytes), "cut_bytes", "cut_bytes",
      "Bytes of the journal's torn end that the last start cut off." },
    { DISK, GAUGE, SHARED(lost_ids), "lost_ids", "lost_ids",
      "Ids in the part cut off that had been answered." },
    { DISK, GAUGE, SHARED(changed), "changed_urls", "changed_urls",
      "URLs of which www. counts otherwise than before, since the last start "
      "gave the directory another signature." },
    { DISK, GAUGE, AT(life.replicas), "replicas", "replicas",
      "Replicas that are waited for after an erasure." },
    { DISK, GAUGE, AT(life.replicas_away), "replicas_away", "replicas_away",
      "Replicas of these that are not connected." },

    /* a replica; LSNs are the primary's */

    { REPLICA, FLAG, AT(lag.connected), "connected", "replica_connected",
      "1 if the primary sends its journal." },
    { REPLICA, GAUGE, AT(lag.lsn), "lsn", "replica_lsn",
      "LSN up to which the primary's operations are applied." },
    { REPLICA, GAUGE, AT(lag.published), "primary_lsn", "replica_primary_lsn",
      "LSN that the primary had published by its last message." },
    { REPLICA, GAUGE, AT(lag.bytes), "lag_bytes",
      "replica_lag_bytes",
      "Bytes of the primary's operations that are not applied yet." },
    { REPLICA, SECONDS, AT(lag.ms), "lag_seconds",
      "replica_lag_seconds",
      "Time since the replica had all that the primary had published; 0 "
      "while it has." },
    { REPLICA, COUNTER, SHARED(replica.bytes), "received_bytes",
      "replica_received_bytes_total", "Bytes that the primary has sent." },
    { REPLICA, COUNTER, SHARED(replica.connects), "connects",
      "replica_connects_total",
      "Connections to the primary." },
    { REPLICA, COUNTER, SHARED(replica.failures), "failures",
      "replica_failures_total",
      "Connections that failed or broke." },
    { REPLICA, COUNTER, SHARED(replica.restarts), "restarts",
      "replica_restarts_total",
      "Times that all was fetched anew." },

    /* a replicated store; LSNs are those of the log */

    { LOG, FLAG, AT(is_primary), "is_primary", "primary",
      "1 if the node is the primary and has its lease." },
    { LOG, GAUGE, AT(log.term), "term", "term",
      "Number of the primary's term, as far as the node knows." },
    { LOG, GAUGE, AT(log.acked), "confirmed", "confirmed_lsn",
      "LSN up to which the log is confirmed, as far as the node knows." },
    { LOG, GAUGE, AT(log.end), "log_end", "log_end_lsn",
      "LSN of the log's end, as far as the node knows." },
    { LOG, GAUGE, SHARED(replicate.base), "log_base", "log_base_lsn",
      "LSN at which the log's rows begin, as far as the node knows: a node "
      "that begins reads the base and what lies between this and the end." },
    { LOG, GAUGE, AT(log.lag), "lag_bytes", "log_lag_bytes",
      "Bytes of the log that a standby has not applied, or of operations that "
      "the log has not confirmed to its primary." },
    { LOG, SECONDS, AT(log.age), "log_age", "log_age_seconds",
      "Time since a primary has sent what the log confirmed last, which is the "
      "age of its lease, or since the log's last answer to a standby." },
    { LOG, COUNTER, SHARED(replicate.rows), "log_rows", "log_rows_total",
      "Rows that this node has appended to the log." },
    { LOG, COUNTER, SHARED(replicate.read), "log_read_bytes",
      "log_read_bytes_total",
      "Bytes of the log that this node has read into its store." },
    { LOG, COUNTER, SHARED(replicate.failures), "failures",
      "log_failures_total",
      "Calls of the log that failed." },
    { LOG, COUNTER, SHARED(replicate.rebases), "rebases", "rebases_total",
      "Bases of the log that this node has made." },
    { LOG, COUNTER, SHARED(replicate.promotions), "promotions",
      "promotions_total",
      "Times that this node has become the primary." },
    { LOG, COUNTER, SHARED(replicate.deposed), "deposed", "deposed_total",
      "Times that this node was the primary and another one took over." },
    { LOG, GAUGE, SHARED(replicate.copier.lsn), "cached", "cached_lsn",
      "LSN up to which the path has the log; 0: there is none, or no snapshot "
      "of it yet." },
    { LOG, FLAG, AT(log.off), "cache_off", "cache_off",
      "1 if the path cannot be written: a start reads more from the log." },
    { LOG, COUNTER, SHARED(replicate.copier.failures), "cache_failures",
      "cache_failures_total", "Writes to the path that failed." },
    { LOG, COUNTER, SHARED(replicate.copier.restarts), "cache_restarts",
      "cache_restarts_total",
      "Times that the path was begun anew, with a snapshot of all." }
};

#define US_FIGURES  (sizeof(us_figures_table) / sizeof(us_figures_table[0]))


static uint64_t
us_figures_past(uint64_t lsn, uint64_t other)
{
    return lsn > other ? lsn - other : 0;
}


void
us_figures_store(us_figures_t *f, us_store_t *store)
{
    us_store_info(store, &f->store);

    f->free = f->store.size - f->store.used;
    f->full = f->store.full;
    f->bytes_per_url = f->store.bytes_per_url;
    f->sets = us_figures_past(us_store_sets(store), us_store_nmarks(store));
    f->erasures = us_store_erasures(store);
    f->revisit = us_store_revisit(store);
    f->clock = us_store_clock(store);

    /*
     * The last in the order of an operation's life is read first: otherwise
     * an operation in between would make a difference negative.
     */

    f->durable = us_store_durable(store);
    f->written = us_store_written(store);
    f->published = us_store_published(store);

    f->write_lag = us_figures_past(f->published, f->written);
    f->sync_lag = us_figures_past(f->published, f->durable);
    f->unsynced = us_figures_past(f->written, f->durable);
}


void
us_figures_life(us_figures_t *f, const us_life_t *life)
{
    f->share = life->sh;
    us_life_info(life, &f->life);

    if (life->conf.follow) {
        f->kind = US_FIGURES_REPLICA;
        f->primary = life->conf.follow->name;
        us_life_lag(life, &f->lag);

    } else if (life->conf.replicate) {
        f->kind = US_FIGURES_REPLICATED;
        f->node = life->conf.replicate->node;
        f->is_primary = (f->state == US_LIFE_READY);
        f->life.stalled |= (f->state == US_LIFE_STALLED);
        us_replicate_info(life, &f->log);

    } else if (!life->conf.memory) {
        f->kind = US_FIGURES_DISK;
        f->sync = life->conf.sync_name;
        f->replay_bytes = us_figures_past(f->published,
                                          f->share->snapshot_lsn);
    }
}


void
us_figures_filter(us_figures_t *f, const us_filter_t *filter)
{
    us_filter_info(filter, &f->filter);

    f->full = us_filter_full(filter);
    f->bytes_per_url = (double) f->filter.size / f->filter.capacity;
}


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
    size_t  i;

    static const uint8_t  parts[] = { 0, 4, 6, 8, 10, 16 };

    if (uuid == NULL) {
        return us_put(p, "null");
    }

    for (i = 0; i < 5; i++) {
        *p++ = i ? '-' : '"';
        p = us_put_hex(p, uuid + parts[i], parts[i + 1] - parts[i]);
    }

    *p++ = '"';

    return p;
}


static uint8_t *
us_stats_zone(uint8_t *p, const us_figures_t *f)
{
    p = us_json_printf(p, "{\"zone\":\"%V\",\"normalization\":\"%V\","
                       "\"state\":\"%s\"", f->zone, f->conf->norm,
                       us_life_state_word(f->state));

    if (f->kind == US_FIGURES_FILTER) {
        return us_put(p, ",\"filter\":true");
    }

    p = us_put(p, ",\"uuid\":");
    p = us_stats_uuid(p, f->uuid);

    if (f->cluster) {
        p = us_put(p, ",\"cluster\":");
        p = us_stats_uuid(p, f->cluster);
    }

    switch (f->kind) {

    case US_FIGURES_MEMORY:
        return us_put(p, ",\"persistent\":false");

    case US_FIGURES_REPLICA:
        return us_json_printf(p, ",\"persistent\":false,\"primary\":%q",
                              us_str_of(f->primary));

    case US_FIGURES_REPLICATED:
        return us_json_printf(p, ",\"persistent\":true,\"node\":%q,"
                              "\"holder\":%q", us_str_of(f->node),
                              us_str_of(f->log.holder));

    default: /* US_FIGURES_DISK */
        return us_json_printf(p, ",\"persistent\":true,\"sync\":\"%s\"",
                              f->sync);
    }
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


/* bytes_per_url, parts, marks and answers */

static uint8_t *
us_stats_lists(uint8_t *p, const us_figures_t *f)
{
    unsigned  i;

    p = us_put(p, ",\"bytes_per_url\":");
    p = f->bytes_per_url ? us_put_decimal(p, f->bytes_per_url, 2)
                         : us_put(p, "null");

    if (f->kind != US_FIGURES_FILTER) {
        p = us_put(p, ",\"parts\":");

        for (i = 0; i < US_PARTS; i++) {
            p = us_json_printf(p, "%s\"%s\":%u", i ? "," : "{",
                               us_store_part_name(i), f->store.parts[i]);
        }

        p = us_put(p, "},\"marks\":[");

        for (i = 0; i < f->conf->nmarks; i++) {
            p = us_json_printf(p, "%s\"%V\"", i ? "," : "",
                               f->conf->marks[i]);
        }

        p = us_put(p, "]");
    }

    p = us_put(p, ",\"answers\":");

    for (i = US_ANSWER_NEW; i <= US_ANSWERS_COUNTED; i++) {
        p = us_json_printf(p, "%s\"%V\":%u", i > US_ANSWER_NEW ? "," : "{",
                           us_answer_words[i], f->n[us_counter_of(i)]);
    }

    return us_put(p, "}}\n");
}


/* pieces: what the zone is, a row each of the table, and the lists */

uint8_t *
us_figures_stats(uint8_t *p, const us_figures_t *f, unsigned n)
{
    const uint64_t     *value;
    const us_figure_t  *row;

    if (n == 0) {
        return us_stats_zone(p, f);
    }

    if (n > US_FIGURES) {
        return n == US_FIGURES + 1 ? us_stats_lists(p, f) : NULL;
    }

    row = &us_figures_table[n - 1];

    if (row->stat == NULL || !us_figures_has(f, row)) {
        return p;
    }

    value = us_figure_at(f, row);
    p = us_json_printf(p, ",\"%s\":", row->stat);

    switch (row->type) {

    case US_FIGURE_FLAG:
        return us_put(p, *value ? "true" : "false");

    case US_FIGURE_RATIO:
        return us_put_decimal(p, us_figure_decimal(f, row), 9);

    case US_FIGURE_SECONDS:
        return us_put_decimal(p, us_figure_decimal(f, row), 3);

    default:
        return us_put_known(p, US_FORMAT_JSON, *value, US_STORE_NO_ID);
    }
}


static uint8_t *
us_metric(uint8_t *p, const char *name, const char *type, const char *help)
{
    return us_json_printf(p, "# HELP urlstore_%s %s\n# TYPE urlstore_%s %s\n",
                          name, help, name, type);
}


/* urlstore_NAME{zone="ZONE", of a shard with its number */

static uint8_t *
us_metric_name(uint8_t *p, const us_figures_t *f, const char *name)
{
    p = us_json_printf(p, "urlstore_%s{zone=\"%V\"", name, f->zone);

    return f->is_shard ? us_json_printf(p, ",shard=\"%u\"", f->shard) : p;
}


static uint8_t *
us_sample(uint8_t *p, const us_figures_t *f, const char *name, uint64_t n)
{
    return us_json_printf(us_metric_name(p, f, name), "} %u\n", n);
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
    return us_json_printf(us_metric_name(p, f, name), ",%s=\"%V\"} %u\n",
                          label, value, n);
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
    unsigned  i;

    if (f->kind == US_FIGURES_FILTER) {
        return p;
    }

    p = us_metric(p, "zone_used_bytes", "gauge",
                  "Bytes of the zone in use, by part.");

    for (i = 0; i < US_PARTS; i++) {
        p = us_sample_label(p, f, "zone_used_bytes", "part",
                            us_str_of(us_store_part_name(i)),
                            f->store.parts[i]);
    }

    return p;
}


static uint8_t *
us_metrics_requests(uint8_t *p, const us_figures_t *f)
{
    unsigned  i;

    p = us_metric(p, "requests_total", "counter", "Requests, by endpoint.");

    for (i = 0; i < US_N_ENDPOINTS && f->endpoints[i]; i++) {
        p = us_sample_label(p, f, "requests_total", "endpoint",
                            us_str_of(f->endpoints[i]),
                            f->n[US_N_REQUESTS + i]);
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


static uint8_t *
us_metrics_batches(uint8_t *p, const us_figures_t *f)
{
    uint64_t  n;
    unsigned  i;

    p = us_metric(p, "batch_seconds", "histogram",
                  "Time from a request's first item to its reply, the wait "
                  "for its client included.");

    n = 0;

    for (i = 0; i < US_N_BUCKETS; i++) {
        n += f->n[US_N_BUCKET + i];
        p = us_sample_label(p, f, "batch_seconds_bucket", "le",
                            us_str_of(us_figures_buckets[i].seconds), n);
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

    if (n >= US_FIGURES) {
        n -= US_FIGURES;

        return n < sizeof(lists) / sizeof(lists[0]) ? lists[n](p, f) : NULL;
    }

    row = &us_figures_table[n];

    if (row->metric == NULL || !us_figures_has(f, row)) {
        return p;
    }

    p = us_metric(p, row->metric,
                  row->type == US_FIGURE_COUNTER ? "counter" : "gauge",
                  row->help);

    return row->type == US_FIGURE_RATIO || row->type == US_FIGURE_SECONDS
           ? us_sample_decimal(p, f, row->metric, us_figure_decimal(f, row))
           : us_sample(p, f, row->metric,
                       *(const uint64_t *) us_figure_at(f, row));
}


uint8_t *
us_health(uint8_t *p, us_format_t format, const char *status, int writable,
    int full, uint64_t epoch, const us_life_t *life)
{
    us_life_lag_t        lag;
    us_life_info_t       info;
    us_replicate_info_t  log;

    if (format == US_FORMAT_TEXT) {
        return us_json_printf(p, "%s\n", status);
    }

    p = us_json_printf(p, "{\"status\":\"%s\",\"writable\":%s,\"full\":%s,"
                       "\"epoch\":%u", status, writable ? "true" : "false",
                       full ? "true" : "false", epoch);

    if (life && life->conf.follow) {
        us_life_lag(life, &lag);

        p = us_json_printf(p, ",\"connected\":%s,\"lsn\":%u,"
                           "\"primary_lsn\":%u,\"lag_bytes\":%u,"
                           "\"lag_seconds\":",
                           lag.connected ? "true" : "false", lag.lsn,
                           lag.published, lag.bytes);
        p = lag.ms == UINT64_MAX ? us_put(p, "null")
                                 : us_put_decimal(p, lag.ms / 1000.0, 3);

    } else if (life && life->conf.replicate) {
        us_replicate_info(life, &log);

        p = us_json_printf(p, ",\"node\":%q,\"holder\":%q,\"term\":%u,"
                           "\"lag_bytes\":%u",
                           us_str_of(life->conf.replicate->node),
                           us_str_of(log.holder), log.term, log.lag);
    }

    if (life) {
        us_life_info(life, &info);

        if (info.reason[0]) {
            p = us_json_printf(p, ",\"reason\":%q", us_str_of(info.reason));
        }
    }

    return us_put(p, "}\n");
}
