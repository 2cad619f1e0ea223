
/*
 * See us_figures.h: the table of figures, and the looks.
 */


#include "us_figures.h"
#include "us_figures_private.h"


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


const us_figure_t  us_figures_table[] = {

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
      "Times that the path was begun anew, with a snapshot of all." },

    { 0, 0, 0, 0, NULL, NULL, NULL }
};


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
