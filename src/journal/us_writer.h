
/*
 * Writes the end of the journal: one process at a time appends whole
 * operations, syncs, and begins new segments.
 *
 *     journal.0000000000000000   sealed
 *     journal.0000000004000131   sealed
 *     journal.00000000080002e7   ... block block |<- tail.offset
 *
 * All that the next writer needs is the tail (us_tail_t).  The caller keeps it
 * in shared memory and stores it in one step after an append has returned.  A
 * writer that is killed in between leaves bytes past tail.offset.  No reply
 * depends on them, and us_writer_attach() cuts them off: all but a footer, as
 * the next segment may be there.  Then that one is made again at the tail, even
 * if the caller wants it elsewhere by now.
 *
 * A segment is synced and sealed before the next one is made, so that what is
 * not durable lies in the newest segment.
 *
 * FORMAT of the file "watermark", 112 bytes, written in place after each
 * append and before any reply that depends on it, never synced itself:
 *
 *        0   8  "USMARK\r\n"
 *        8   4  format version: 2
 *       12   4  0
 *       16  16  uuid of the store
 *       32  36  boot id of the machine, as text
 *       68   4  0
 *       72   8  LSN written: what may have been answered ends here
 *       80   8  LSN durable
 *       88   8  number of ids given below LSN written
 *       96   8  LSN of the last delete, or more
 *      104   4  0
 *      108   4  CRC-32C of bytes 0 .. 107
 *
 * The file survives the death of every process.  After a start of the machine
 * "LSN written" means nothing, and "LSN durable" is a lower bound.  A server
 * that reads the directory of another server learns by "LSN of the last delete"
 * that there is a delete which it has not read yet.
 *
 *
 * When a sync that reports success can be believed.  Several processes write
 * the file and sync it, each by its own descriptor.
 *
 * Linux reports an error of write-back (errseq_t, since 4.13) once to each
 * descriptor that was open when it happened, at its next fsync().  A descriptor
 * that is opened later reports it too, but only if no other one has reported
 * it before.  The pages are clean then, and what they held is lost.
 *
 *     page written        x
 *     write-back fails       x
 *     A.fsync()                 EIO
 *     B = open()                    x
 *     B.fsync()                       0     and the page is not on the disk
 *
 * A may be another process that is killed before it has recorded the error, or
 * a foreign program.
 *
 * So fsync() == 0 proves that a byte is on the disk only if the byte was
 * written after the descriptor was opened, or was known to be durable then.
 * Hence two words of shared memory:
 *
 *     appended   raised before bytes are written: none lies at or past it
 *     durable    raised after they were proved to be on the disk
 *
 * The process that opens a descriptor reads `appended` after the open().  A
 * sync by that descriptor proves nothing about bytes below this LSN, until
 * `durable` has reached it.  If the descriptor is synced earlier, the process
 * reads the file back from the disk, without the cache (us_writer.c).
 *
 * Both words are LSNs and only grow.  A third word is set when a sync has
 * failed in any process; no process writes then.
 */


#ifndef _US_WRITER_H_INCLUDED_
#define _US_WRITER_H_INCLUDED_


#include "us_segment.h"


#define US_WATERMARK_VERSION  2


typedef struct {
    uint64_t           appended;
    uint64_t           durable;
    uint64_t           failed;
} us_watch_t;


/* watch may be NULL: no other process has the file open */

/* before bytes are written whose stream ends at lsn */
void us_watch_append(us_watch_t *watch, uint64_t lsn);

/* all below lsn is on the disk; or a sync has failed */
void us_watch_durable(us_watch_t *watch, uint64_t lsn);
void us_watch_fail(us_watch_t *watch);


#define US_WATERMARK_NAME  "watermark"

#define US_BOOT_ID       36
#define US_BOOT_UNKNOWN  "unknown"    /* the kernel does not say */
#define US_WRITER_MAX    (1024 * 1024)  /* bytes of operations in an append */


typedef struct {
    uint8_t            uuid[16];
    char               boot[US_BOOT_ID + 1];
    uint64_t           written;
    uint64_t           durable;
    uint64_t           ids;
    uint64_t           deleted;
} us_watermark_t;


/*
 * A process's descriptors.  watch: the words of all processes that write and
 * sync this journal; NULL: there is no other one.
 */

typedef struct {
    int                dirfd;         /* the caller's */
    int                syncfd;        /* the directory once more, or -1 */
    int                fd;            /* of the newest segment, or -1 */
    int                mark_fd;       /* of the watermark file, or -1 */
    uint64_t           segment;       /* of fd */
    uint64_t           renewed;       /* of fd */
    uint64_t           doubt;         /* of fd, an LSN: see us_writer.h */
    us_watch_t        *watch;
    uint64_t           epoch;
    us_watermark_t     mark;
    const us_ops_t    *ops;
    uint64_t           limit;         /* of a segment, US_SEGMENT_SIZE */
    uint64_t           roll;          /* LSN of an operation that begins a
                                         segment; or of one before the tail:
                                         the next one does; 0: none */
    unsigned           sealed:1;      /* a writer that was killed has sealed
                                         the segment there */
    uint8_t           *buf;
    size_t             buf_size;
    us_disk_error_t    error;
} us_writer_t;


/*
 * Functions that can fail return, with w->error,
 *
 *     -1               nothing was done, the tail is as it was: the call may be
 *                      repeated, say after ENOSPC or EMFILE
 *     US_WRITER_GONE   the same, but the newest segment is not there any more,
 *                      or a part of it: only us_writer_renew() helps
 *     US_WRITER_LOST   a sync has failed.  What is on the disk is not known:
 *                      nothing must be written before a recovery
 */

#define US_WRITER_LOST  -2
#define US_WRITER_GONE  -3


void us_writer_init(us_writer_t *w, int dirfd, const uint8_t *uuid,
    uint64_t epoch, const char *boot, const us_ops_t *ops);
void us_writer_close(us_writer_t *w);

/*
 * The writer: takes the end over from the last writer.  Opens the files that it
 * will need, so that it does not fail for want of a descriptor later.
 */
int us_writer_attach(us_writer_t *w, const us_tail_t *tail);

/* the syncer: opens what it will need; whether it has to */
int us_writer_ready(us_writer_t *w, const us_tail_t *tail);
int us_writer_stale(const us_writer_t *w, const us_tail_t *tail);

/*
 * Appends what is whole of the two pieces, the stream from tail->lsn on, up to
 * about US_WRITER_MAX bytes, and moves *tail, also by a new segment begun
 * before a failure.  durable is written into the blocks.
 */
int us_writer_append(us_writer_t *w, us_tail_t *tail,
    const us_str_t pieces[2], uint64_t durable);

/*
 * Begins a new segment at tail->lsn, without the end of the one before: the
 * journal has a gap, until a snapshot covers tail->lsn.
 */
int us_writer_renew(us_writer_t *w, us_tail_t *tail);

/*
 * On success all below tail->lsn is durable.  May go on in one process while
 * another appends; needs no us_writer_attach().
 */
int us_writer_sync(us_writer_t *w, const us_tail_t *tail);

/* the watermark file: 0, or -1 with w->error */
int us_writer_mark(us_writer_t *w, const us_tail_t *tail, uint64_t durable,
    uint64_t deleted);

/* a failure is of no consequence: there will be a next one */
void us_watermark_write(int dirfd, const us_watermark_t *mark);
int us_watermark_read(int dirfd, us_watermark_t *mark);


#endif /* _US_WRITER_H_INCLUDED_ */
