
/*
 * Syncs of one file by several descriptors, in several processes: which of
 * their results can be believed.
 *
 * Linux reports an error of write-back (fs/errseq: since 4.13) once to each
 * descriptor that was open when it happened, at its next fsync().  A descriptor
 * that is opened later reports it too, but only if nobody has been told of it
 * before.  The pages are clean then, and what they held is lost.
 *
 *     page written        x
 *     write-back fails       x
 *     A.fsync()                 EIO
 *     B = open()                    x
 *     B.fsync()                       0     and the page is not on the disk
 *
 * So fsync() == 0 says something of a page only if it was written after the
 * descriptor was opened, or if no error had been reported to anybody when it
 * was opened.  Who is told of an error records it where everybody sees it.  But
 * between the return of fsync() and that record its process may be killed.
 * Hence each sync is recorded before it begins:
 *
 *     begin     busy[who] = 1
 *     fsync()
 *     failed    failed = 1
 *     end       busy[who] = 0
 *
 * A descriptor is in doubt if any sync was under way, or was never ended, when
 * it was opened.  After its first sync the file is read back from the disk
 * (us_writer.c); from then on it is as good as any other.
 *
 * The words lie in memory that outlives the processes.  Each `who` is one
 * process at a time.
 */


#ifndef _US_WATCH_H_INCLUDED_
#define _US_WATCH_H_INCLUDED_


#include "us_disk.h"


#define US_WATCH_MAX  4


typedef struct {
    uint32_t           busy[US_WATCH_MAX];
    uint32_t           failed;
} us_watch_t;


/*
 * After a descriptor was opened: 1, it is in doubt; 0, it is not, or watch is
 * NULL, as nobody else syncs the file.
 */
int us_watch_doubt(const us_watch_t *watch);

/* around fdatasync(), and around the reading back of what is in doubt */
void us_watch_begin(us_watch_t *watch, unsigned who);
void us_watch_end(us_watch_t *watch, unsigned who, int failed);

/* whether a sync has failed, whoever made it */
int us_watch_failed(const us_watch_t *watch);


#endif /* _US_WATCH_H_INCLUDED_ */
