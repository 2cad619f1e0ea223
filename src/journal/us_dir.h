
/*
 * What lies in a data directory (see us_manifest.h), and its two locks:
 *
 *     lock      flock(2) LOCK_EX: the owner, which may write
 *     readers   flock(2) LOCK_SH: processes that read it and do not own it;
 *               the owner removes files under LOCK_EX only
 *
 * An owner's lock belongs to one open file description.  The owner's children
 * inherit it, so it is free when the last of them is gone.  In the directory of
 * a replica the file has 16 random bytes (us_dir_id()).
 */


#ifndef _US_DIR_H_INCLUDED_
#define _US_DIR_H_INCLUDED_


#include "us_segment.h"


#define US_DIR_LOCK     "lock"
#define US_DIR_READERS  "readers"
#define US_DIR_MOVING   "lost-moving"
#define US_DIR_AUDIT    "erasures.log"    /* api/us_audit.h */


typedef struct {
    uint64_t          *segments;      /* first LSNs, in order */
    size_t             nsegments;
    uint64_t          *snapshots;     /* LSNs, in order */
    size_t             nsnapshots;
} us_dir_t;


int us_dir_read(int dirfd, us_dir_t *dir, us_disk_error_t *e);
void us_dir_free(us_dir_t *dir);

/* how many segments begin at or below an LSN: the last of them contains it */
size_t us_dir_upto(const us_dir_t *dir, uint64_t lsn);

/*
 * The first name that is not one of a data directory's, or is one but not that
 * of a regular file with one name only: 1, *name (US_DIR_NAME bytes) is it; 0:
 * there is none; -1, e: the directory cannot be read.
 */
#define US_DIR_NAME  256

int us_dir_foreign(int dirfd, char *name, us_disk_error_t *e);

/* the same with a readable error: 0, or -1 with e */
int us_dir_alone(int dirfd, us_disk_error_t *e);

/*
 * Whether root may use the directory for data of that user: it holds nothing
 * else, and it belongs to the user, or the user may write to it, or it is a
 * data directory already.  Nothing is changed.  0, or -1 with e.
 */
int us_dir_usable(int dirfd, uid_t uid, gid_t gid, us_disk_error_t *e);

/*
 * Gives the files to that user, as root, and the directory too if it was `made`
 * by us, or is a data directory.  Follows no link.  0, or -1 with e.
 */
int us_dir_give(int dirfd, int made, uid_t uid, us_disk_error_t *e);

/* bytes of the directory's regular files; of one of them, 0: it is not there */
uint64_t us_dir_bytes(int dirfd);
uint64_t us_dir_file_bytes(int dirfd, us_segment_kind_t kind, uint64_t lsn);

/*
 * Removes all files of a directory whose file "lock" the caller has locked, but
 * that one, and names that are not a data directory's.  0, or -1 with e.
 */
int us_dir_remove(int dirfd, us_disk_error_t *e);

/*
 * Moves them, a data directory with a snapshot, to the new directory DIR/name,
 * which is "lost-LSN" or "lost-LSN-N" and has no lock.  Until all is there, it
 * is DIR/lost-moving: if there is one, the files are in two places, and the
 * next call moves the rest.
 */
int us_dir_keep(int dirfd, char name[US_DISK_NAME], us_disk_error_t *e);
int us_dir_moving(int dirfd);

/*
 * A number, not 0 and below 2^52, that no other directory has, also no copy of
 * it; lockfd is its file "lock".  It stays when the files are removed.  0: it
 * could not be made, with errno.
 */
uint64_t us_dir_id(int lockfd);

/* removes temporary files; the owner only */
void us_dir_clean(int dirfd);


#endif /* _US_DIR_H_INCLUDED_ */
