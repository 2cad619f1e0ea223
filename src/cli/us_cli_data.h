
/*
 * What the commands on a data directory have in common.
 *
 *     us_cli_data_open()   the directory and its watermark
 *     us_cli_data_load()   its store, built in this process's memory
 *     us_cli_data_own()    its store, to be written to: the lock is ours
 *     us_cli_data_rules()  the normalizer of the store's URLs
 *
 * us_cli_data_close() undoes what there is of them, after each.
 */


#ifndef _US_CLI_DATA_H_INCLUDED_
#define _US_CLI_DATA_H_INCLUDED_


#include "us_cli.h"
#include "../life/us_data.h"
#include "../life/us_embed.h"
#include "../journal/us_dir.h"


typedef struct {
    const char        *path;
    int                dirfd;
    char               boot[US_BOOT_ID + 1];
    us_watermark_t     mark;          /* read before the journal is */
    unsigned           marked:1;      /* there is one */
    us_recovery_t      recovery;
    us_recovery_rc_t   rc;

    void              *mem;           /* NULL: not loaded */
    size_t             size;
    int                lock;          /* of us_cli_data_lock(), or -1 */
    us_embed_t        *embed;         /* NULL: not owned */
    us_store_t        *store;         /* of either */

    us_norm_t         *norm;
    us_norm_ws_t      *ws;
} us_cli_data_t;


/* what one file looks like */

typedef struct {
    us_read_t          end;
    uint64_t           size;
    uint64_t           follow;        /* valid blocks after a bad place */
    us_disk_error_t    error;
    us_reader_t        r;             /* r.at.offset: up to where it is good */
} us_cli_file_t;


/* US_CLI_DONE, or a message was printed */
int us_cli_data_open(us_cli_data_t *d, const char *path);

/*
 * Builds the store; d->rc is the result.  lookup: for id -> URL only, which
 * takes less memory.
 */
int us_cli_data_load(us_cli_data_t *d, int lookup);

/*
 * us_embed_open(): if conf has no norm, of a directory with a store.  An exit
 * code, after a message.
 */
int us_cli_data_own(us_cli_data_t *d, const char *path,
    const us_embed_conf_t *conf);

/* the owner's lock of a directory that is open; an exit code, as above */
int us_cli_data_lock(us_cli_data_t *d);

/* why a call of us_embed.h has failed, to standard error; US_CLI_USAGE */
int us_cli_data_failed(const us_cli_data_t *d);

/* of the signature that the store has; an exit code, after a message */
int us_cli_data_rules(us_cli_data_t *d);

/*
 * Of an owner, all that was added is on the disk afterwards.  Returns the
 * command's exit code: `code`, or that of a failure, after a message.  Does
 * nothing if d is zero.
 */
int us_cli_data_close(us_cli_data_t *d, int code);

/*
 * The exit code for what was loaded.  REFUSED: it is damaged.  A message was
 * printed if it is not DONE.
 */
int us_cli_data_result(const us_cli_data_t *d);

/* all three, for commands whose REFUSED is an answer: DONE, or USAGE */
int us_cli_data_read(us_cli_data_t *d, const char *path, int lookup);

/*
 * The LSN up to which clients have been answered, as far as that is known: if
 * d->recovery.lsn is less, something that was answered is lost.
 */
uint64_t us_cli_data_answered(const us_cli_data_t *d);

/* "there is no store in it"; returns US_CLI_USAGE */
int us_cli_data_none(const us_cli_data_t *d);

/* reads a file to its end; `uuid` may be NULL */
void us_cli_data_file(us_cli_file_t *f, int dirfd, us_segment_kind_t kind,
    uint64_t lsn, const uint8_t *uuid);


#endif /* _US_CLI_DATA_H_INCLUDED_ */
