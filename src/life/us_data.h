
/*
 * A store in a data directory: what ties src/store to src/journal, for the
 * module and for the command alike.
 *
 *     store  --operations-->  journal     us_writer.h, by the caller
 *     store  --dump-------->  snapshot    us_data_snapshot()
 *     store  <--apply-------  both        us_data_apply(), by a recovery
 *     its configuration  <->  manifest    us_data_describe(), _differs()
 *
 * Settings in the manifest:
 *
 *     store norm crawler/1 www=first
 *     store marks visited,hot         # absent: none
 *     store schemes keep              # or first
 *     store sites off                 # or on
 *     store revisit 3600              # s; absent: no claims
 *     store shard 3                   # of a cluster; absent: none
 *
 * Of a shard the manifest has version 3, with claims 2, else 1.
 */


#ifndef _US_DATA_H_INCLUDED_
#define _US_DATA_H_INCLUDED_


#include "../store/us_store.h"
#include "../journal/us_recovery.h"
#include "../journal/us_snapshot.h"
#include "../url/us_normalize.h"


/* us_store_op_size() and us_store_op_ids() */
extern const us_ops_t  us_data_ops;


/* gives m the store's uuid, epoch and settings; -1: they are too long */
int us_data_describe(us_manifest_t *m, const us_store_conf_t *conf);

/*
 * Whether a store of this configuration can hold the directory's data: 0, or
 * -1 with the setting that differs, and both values, in e.
 */
int us_data_differs(const us_manifest_t *m, const us_store_conf_t *conf,
    us_disk_error_t *e);

/*
 * Whether a replica, or a node of a replicated store, may keep its copy in the
 * directory, and remove the files there: it is empty, or its manifest says that
 * it is a copy.  0, or -1 with e.
 */
int us_data_copied(int dirfd, us_disk_error_t *e);

/* the other way round; the strings point into text */
typedef struct {
    char  norm[US_STORE_NORM_LEN + 1];
    char  marks[US_STORE_MARKS * (US_STORE_MARK_LEN + 1)];
} us_data_text_t;

int us_data_conf(const us_manifest_t *m, us_store_conf_t *conf,
    us_data_text_t *text, us_disk_error_t *e);

/*
 * Opens the directory for writing, by its owner, for a store that holds all of
 * it: the manifest gets the store's uuid, epoch and settings.  0, or -1 with e:
 * it may be tried again as long as nothing was appended.
 */
int us_data_settle(us_store_t *s, int dirfd, const us_tail_t *tail,
    const char *sync, us_disk_error_t *e);

/*
 * What a configuration has that the store has not: more marks, which begin with
 * those of the store, claims, or the number of a shard.  us_data_declare()
 * declares it in the manifest, and then in the store: the journal has no
 * operation that the manifest does not announce.  For the one process that
 * writes the manifest.  0, -1 or US_DISK_LOST, with e.
 */
int us_data_lacks(const us_store_t *s, const us_store_conf_t *want);
int us_data_declare(us_store_t *s, int dirfd, const us_store_conf_t *want,
    us_disk_error_t *e);

/*
 * 1: a URL with "www." that is the URL without it, and was not when it was
 * stored, or the other way round; else 0.  ws is of norm.
 */
int us_data_changed(us_store_t *s, const us_norm_t *norm, us_norm_ws_t *ws,
    uint64_t id);

/* us_recovery_apply_pt: data is the us_store_t */
int us_data_apply(void *data, const uint8_t *p, size_t len);

/*
 * Writes a snapshot and has the manifest name it, which is *m then.  wait() is
 * called with the LSN that it covers, and with the LSN of all that it holds: a
 * dump has effects of operations past its LSN, such as a delete.  wait()
 * returns 0 once `until` is durable, -1 to give up.  It is also called with
 * lsn 0, when the dump has begun, and now and then, and may pause.  log: of a
 * replicated log, what the manifest gets, filled by wait(); or NULL.  0, -1 or
 * US_DISK_LOST, as us_snapshot_finish().
 */
typedef int (*us_data_wait_pt)(void *data, uint64_t lsn, uint64_t until);

int us_data_snapshot(us_store_t *s, int dirfd, us_data_wait_pt wait,
    void *data, const us_manifest_log_t *log, us_manifest_t *m,
    us_disk_error_t *e);


#endif /* _US_DATA_H_INCLUDED_ */
