
/*
 * The manifest: what a data directory holds, as text that a person can read.
 *
 * FORMAT (version 1 to 7), lines in this order, replaced as a whole:
 *
 *     urlstore data 1
 *     uuid 5d0b1c6c0b8a4dc1a5cbd1ac4f3f0e11
 *     epoch 1                     # raised when ids may have been cut
 *     state open                  # or clean: closed in order; backup; replica
 *     boot 2f6ac0f4-...           # of the machine that opened it last
 *     sync always                 # the policy it was opened with
 *     end 000000000a34f0c1 81723  # clean, backup: LSN and ids at the end
 *     snapshot 0000000004b2c000   # absent: none yet
 *     log 0000000004b2c000 3 77ab # of a replicated log: an LSN, the term
 *                                 # there, the CRC of all bytes below it
 *     restored 00000000034f0c10   # a shard that was restored: up to this LSN
 *                                 # its map is one of before (us_shard.h)
 *     moved 1                     # the store is in a replicated log now
 *     store norm crawler/1 ...    # any number: the store's own settings
 *     crc32c 9ae0daaf             # of all bytes before this line
 *
 * (without the remarks).  Version 2 says that the streams of the directory have
 * operations of claims, of 2 bytes, version 3 that they have those of a shard,
 * version 4 that they have claims, of 4 bytes (a shard or not), version 5 that
 * they have keys of requests, version 6 that they have sets, version 7 that
 * they have erasures (and any of these).  Programs that know lower versions
 * only cannot read them.  The owner of the settings chooses the version
 * (us_data.c).
 *
 * The directory then holds
 *
 *     manifest  watermark  lock  readers
 *     snapshot.LSN                the one that is named, others are leftovers
 *     journal.LSN                 from the snapshot's LSN on, without a gap
 *     *.tmp                       leftovers
 */


#ifndef _US_MANIFEST_H_INCLUDED_
#define _US_MANIFEST_H_INCLUDED_


#include "us_writer.h"


#define US_MANIFEST_VERSION   7           /* the latest; all are read */
#define US_MANIFEST_NAME      "manifest"
#define US_MANIFEST_SETTINGS  4096
#define US_MANIFEST_MAX       (US_MANIFEST_SETTINGS * 2 + 1024)


typedef enum {
    US_STATE_CLEAN = 0,
    US_STATE_OPEN,
    US_STATE_BACKUP,                  /* us_cli_backup.c: never written to */
    US_STATE_REPLICA                  /* a copy: us_copy.h */
} us_manifest_state_t;


/* a place in a replicated log, from which on the CRC can be continued */

typedef struct {
    uint64_t             lsn;
    uint64_t             term;
    uint32_t             crc;
} us_manifest_log_t;


typedef struct {
    unsigned             version;     /* 0: as 1 */
    uint8_t              uuid[16];
    uint64_t             epoch;
    us_manifest_state_t  state;
    char                 boot[US_BOOT_ID + 1];
    char                 sync[16];
    uint64_t             end;
    uint64_t             end_ids;
    unsigned             has_snapshot:1;
    unsigned             has_log:1;
    unsigned             has_restored:1;
    unsigned             moved:1;
    uint64_t             snapshot;
    us_manifest_log_t    log;
    uint64_t             restored;

    /* the store's settings: lines "KEY VALUE\n" that mean nothing here */
    char                 settings[US_MANIFEST_SETTINGS];
} us_manifest_t;


typedef enum {
    US_MANIFEST_OK = 0,
    US_MANIFEST_NONE,                 /* no such file */
    US_MANIFEST_VERSION_OTHER,
    US_MANIFEST_BAD
} us_manifest_rc_t;


/* whether the directory was closed in order: it goes up to m->end */

static inline int
us_manifest_closed(const us_manifest_t *m)
{
    return m->state == US_STATE_CLEAN || m->state == US_STATE_BACKUP;
}


/* 0: a copy whose files are not complete, see us_copy.h */

static inline int
us_manifest_begun(const us_manifest_t *m)
{
    return m->state != US_STATE_REPLICA || m->settings[0] != '\0';
}


/* whether the machine is known to have run since the directory was opened */

static inline int
us_manifest_same_boot(const us_manifest_t *m, const char *boot)
{
    return strcmp(boot, m->boot) == 0 && strcmp(boot, US_BOOT_UNKNOWN) != 0;
}


/* whether a watermark is of the owner that opened the directory last */

static inline int
us_manifest_marked(const us_manifest_t *m, const us_watermark_t *mark)
{
    return memcmp(mark->uuid, m->uuid, 16) == 0
           && strcmp(mark->boot, m->boot) == 0;
}


/* "clean", "open", "backup", "replica" */
const char *us_manifest_state(const us_manifest_t *m);

us_manifest_rc_t us_manifest_read(int dirfd, us_manifest_t *m,
    us_disk_error_t *e);
int us_manifest_write(int dirfd, const us_manifest_t *m, us_disk_error_t *e);

/*
 * The same of a text of len bytes, at most US_MANIFEST_MAX, and into a text
 * that the caller frees: 0, or -1 with e.
 */
us_manifest_rc_t us_manifest_scan(us_manifest_t *m, const char *p, size_t len,
    us_disk_error_t *e);
int us_manifest_print(const us_manifest_t *m, char **text, size_t *len,
    us_disk_error_t *e);

/* the value of a setting into buf, or -1 if there is none or no room */
int us_manifest_setting(const us_manifest_t *m, const char *key, char *buf,
    size_t size);

/* appends a setting; -1 if there is no room or a control byte in it */
int us_manifest_set(us_manifest_t *m, const char *key, us_str_t value);
int us_manifest_set_number(us_manifest_t *m, const char *key, uint64_t n);

/* this machine's boot id, or US_BOOT_UNKNOWN */
void us_manifest_boot(char boot[US_BOOT_ID + 1]);


#endif /* _US_MANIFEST_H_INCLUDED_ */
