
/*
 * A file of blocks: a journal segment or a snapshot.
 *
 * FORMAT (version 1, of a snapshot 2; all numbers little-endian)
 *
 *     +--------+-------+-------+-----     -----+-------+--------+
 *     | header | block | block |      ...      | block | footer |
 *     +--------+-------+-------+-----     -----+-------+--------+
 *
 *     header, 64 bytes
 *        0   8  "USJRNL\r\n" (segment) or "USSNAP\r\n" (snapshot)
 *        8   4  format version: 1, of a snapshot 2
 *       12   4  0
 *       16  16  uuid of the store
 *       32   8  epoch of the store when the file was begun
 *       40   8  LSN of the first byte (snapshot: 0, its own stream)
 *       48   8  number of ids given below that LSN
 *       56   4  CRC of the last block of the segment before, or 0
 *       60   4  CRC-32C of bytes 0 .. 59
 *
 *     block, 48 bytes and the payload
 *        0   4  "USBK"
 *        4   4  bytes of payload, 1 .. US_BLOCK_MAX
 *        8   8  LSN of the first byte of the payload
 *       16   8  number of ids given below that LSN
 *       24   8  an LSN known to be durable when this was written
 *       32   4  CRC of the block before, or of the header
 *       36   4  0
 *       40   4  0
 *       44   4  CRC-32C of bytes 0 .. 43 and the payload, begun with the
 *               header's CRC, so that a block is valid in its own file only
 *
 *     footer: like a block, with "USFT" and no payload; its LSN and ids are
 *     those at the end (of the journal that it covers, for a snapshot), and
 *     bytes 36 .. 43 count the blocks
 *
 * A payload is a sequence of whole operations.  It is up to US_BLOCK_SIZE
 * long, unless one operation alone is longer.  A journal segment gets its
 * footer when it has reached US_SEGMENT_SIZE and then never changes again; a
 * snapshot always has one.  A segment's file is called journal.LSN, a
 * snapshot's snapshot.LSN, LSN in 16 hexadecimal digits.
 *
 * Any change of a file is found: the chain of CRCs misses a block or finds
 * two exchanged, each block's own CRC finds its bytes changed, the footer (or
 * the next segment's header) finds the end cut off.  Only the end of the
 * newest segment may have been cut by a crash.
 */


#ifndef _US_SEGMENT_H_INCLUDED_
#define _US_SEGMENT_H_INCLUDED_


#include "us_disk.h"


#define US_SEGMENT_VERSION  1
#define US_SNAPSHOT_VERSION 2
#define US_SEGMENT_SIZE     (64 * 1024 * 1024)
#define US_SEGMENT_HEADER   64
#define US_BLOCK_HEADER     48
#define US_BLOCK_SIZE       (64 * 1024 - US_BLOCK_HEADER)
#define US_BLOCK_MAX        (16 * 1024 * 1024)


typedef enum {
    US_SEGMENT_JOURNAL = 0,
    US_SEGMENT_SNAPSHOT
} us_segment_kind_t;


typedef struct {
    us_segment_kind_t  kind;
    uint8_t            uuid[16];
    uint64_t           epoch;
    uint64_t           lsn;
    uint64_t           ids;
    uint32_t           prev;
    uint32_t           crc;           /* of the header itself */
} us_segment_head_t;


typedef struct {
    uint32_t           len;           /* 0: the footer */
    uint64_t           lsn;
    uint64_t           ids;
    uint64_t           durable;       /* or the footer's count of blocks */
    uint32_t           prev;
    uint32_t           crc;
} us_block_t;


typedef enum {
    US_READ_BLOCK = 0,
    US_READ_FOOTER,
    US_READ_END,                      /* the file ends after a whole block */
    US_READ_BAD,                      /* error.text says what and where */
    US_READ_VERSION,                  /* of another format version */
    US_READ_FAILED                    /* the file cannot be read at all */
} us_read_t;


/*
 * What has to be known of the operations that a stream is made of: the size
 * of the one at p (see us_store_op_size()), and how many ids it gives.
 */

typedef struct {
    ssize_t          (*size)(const uint8_t *p, size_t len);
    unsigned         (*ids)(const uint8_t *p, size_t len);
} us_ops_t;


/*
 * A place in a file: the next block begins there.  The tail of a journal is the
 * place at which the next writer appends.
 */

typedef struct {
    uint64_t           segment;       /* the LSN in the file's name */
    uint64_t           offset;        /* 0: the segment is to be made */
    uint64_t           blocks;        /* in it */
    uint64_t           lsn;           /* all below is written */
    uint64_t           ids;           /* given below lsn */
    uint32_t           crc;           /* of the last block */
    uint32_t           seed;          /* of the segment's header */
    uint64_t           renewed;       /* times: see us_writer_renew() */
} us_tail_t;


/* writing: both return the bytes written at p, and fill in crc */

size_t us_segment_head_write(uint8_t *p, us_segment_head_t *h);
size_t us_block_write(uint8_t *p, us_block_t *b, uint32_t seed);

/*
 * The same of what comes at a place, which moves past it: the header of a file
 * that begins there, of which h has kind, uuid and epoch; a block, whose
 * payload of len bytes is in its place; and the footer.
 */
size_t us_tail_begin(us_tail_t *tail, uint8_t *p, us_segment_head_t *h);
size_t us_tail_block(us_tail_t *tail, uint8_t *p, size_t len, uint64_t ids,
    uint64_t durable);
void us_tail_footer(us_tail_t *tail, uint8_t p[US_BLOCK_HEADER]);

/*
 * A stream in two pieces, as a ring has it: copies len bytes that follow the
 * first `skip`; and how many of them to read at once, which are all, or `most`,
 * or one operation that is longer.
 */
void us_pieces_copy(uint8_t *to, const us_str_t pieces[2], size_t skip,
    size_t len);
size_t us_pieces_group(const us_str_t pieces[2], size_t skip, size_t most,
    const us_ops_t *ops);

/*
 * Bytes of whole operations at p that make up the next payload, and the ids
 * that they give; 0 if the first one is not whole, -1 if it cannot be one.
 */
ssize_t us_block_fill(const uint8_t *p, size_t len, const us_ops_t *ops,
    uint64_t *nids);

/* the ids that a payload gives; -1: it is not made of whole operations */
int us_block_ids(const uint8_t *p, size_t len, const us_ops_t *ops,
    uint64_t *ids);

/* buf has US_DISK_NAME bytes; parsing returns -1 if the name is another */
const char *us_segment_name(char *buf, us_segment_kind_t kind, uint64_t lsn);
int us_segment_parse_name(const char *name, us_segment_kind_t kind,
    uint64_t *lsn);


/*
 * Reads one file block by block and checks all of the above.  The next block
 * must begin at `at`, with its lsn, ids and crc.
 */

typedef struct {
    int                fd;
    const us_ops_t    *ops;
    char               name[US_DISK_NAME];
    us_segment_head_t  head;
    us_tail_t          at;            /* offset 0: no header was read */
    unsigned           now:1;         /* no read waits for the disk */
    unsigned           aligned:1;     /* reads begin at US_DISK_BLOCKs */

    us_disk_error_t    error;

    uint8_t           *buf;           /* of the file, from buf_offset on */
    size_t             buf_size;
    size_t             buf_len;
    uint64_t           buf_offset;
} us_reader_t;


/*
 * From where the bytes come.  US_READ_DISK: past the kernel's cache, if the
 * file system can do that.  US_READ_NOW: without waiting for the disk;
 * US_READ_FAILED with EAGAIN, here or of us_reader_next(): the disk was asked
 * for it, to be tried again.
 */

typedef enum {
    US_READ_CACHE = 0,
    US_READ_DISK,
    US_READ_NOW
} us_read_from_t;

/*
 * uuid may be NULL: any store's.  US_READ_BLOCK: the header is good.  To be
 * closed whatever it returned.
 */
us_read_t us_reader_open(us_reader_t *r, int dirfd, const char *name,
    us_segment_kind_t kind, const uint8_t *uuid, const us_ops_t *ops,
    us_read_from_t from);
void us_reader_close(us_reader_t *r);

/* US_READ_BLOCK: p is valid until the next call */
us_read_t us_reader_next(us_reader_t *r, us_block_t *b, const uint8_t **p);

/* goes on at a place that another reader of the same file has reached */
void us_reader_resume(us_reader_t *r, const us_tail_t *tail);

/*
 * The same checks without a file (r->fd is -1), of bytes that come from
 * elsewhere: a header of US_SEGMENT_HEADER bytes, then blocks.
 * us_reader_take() returns US_READ_END if the block is longer than len bytes:
 * *need of them are needed.
 */
us_read_t us_reader_start(us_reader_t *r, const uint8_t *p,
    us_segment_kind_t kind, const uint8_t *uuid, const us_ops_t *ops);
us_read_t us_reader_take(us_reader_t *r, const uint8_t *p, size_t len,
    us_block_t *b, size_t *need);

/*
 * After US_READ_BAD: finds the first valid block or footer of this file at or
 * past offset, whatever comes before it.  Returns its offset, or 0.  Does not
 * move the reader.
 */
uint64_t us_reader_probe(us_reader_t *r, uint64_t offset, us_block_t *b);

/* the file's size now, or -1 */
int64_t us_reader_size(const us_reader_t *r);


#endif /* _US_SEGMENT_H_INCLUDED_ */
