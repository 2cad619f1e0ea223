
/*
 * The journal as a stream: what GET /log sends and a replica reads.
 *
 * FORMAT (version 1; all numbers little-endian)
 *
 *     manifest  beat  file | beat ...
 *
 *     manifest, 8 bytes and a text: of the directory that is sent
 *        0   4  "USMF"
 *        4   4  bytes of the text, at most US_MANIFEST_MAX
 *        8      the text (us_manifest.h), which has its own CRC
 *
 *     beat, 64 bytes: how far the sender is; it comes at least once a second
 *        0   4  "USBT"
 *        4   4  version of the stream: 1
 *        8   8  LSN published
 *       16   8  LSN durable: what is sent ends here
 *       24   8  number of ids given below LSN published
 *       32  28  0
 *       60   4  CRC-32C of bytes 0 .. 59
 *
 *     file: the bytes of a snapshot or of a journal segment (us_segment.h):
 *     header, blocks, footer.  The last segment has no footer yet
 *
 * A stream from nothing sends the snapshot first, if there is one, then the
 * journal, from the segment that contains the snapshot's LSN.  A stream that
 * goes on sends the header of the file once more, then the blocks that follow
 * the reader's place in it.  Only bytes that are durable at the sender are
 * sent.  So the sender cannot lose what a reader has, unless its directory is
 * lost or replaced.
 *
 * The chain of CRCs covers all operations of a store from its first one.  A
 * place (us_place_t) ends with the CRC of the last block that was read.  If the
 * sender has other bytes before that place, the next block does not follow it,
 * and the stream is not continued.
 */


#ifndef _US_STREAM_H_INCLUDED_
#define _US_STREAM_H_INCLUDED_


#include "us_manifest.h"


#define US_STREAM_VERSION   1
#define US_STREAM_BEAT      64
#define US_STREAM_MANIFEST  8         /* bytes before the text */


/*
 * A place in the files of a store: which file, and where in it.  tail.offset is
 * 0 between two files: tail.lsn is the LSN up to which all was read, and
 * tail.crc that of the last footer.  After a snapshot, kind is still that, and
 * the segment that contains tail.lsn comes next.
 */

typedef struct {
    uint8_t            uuid[16];
    uint64_t           epoch;
    us_segment_kind_t  kind;
    us_tail_t          tail;          /* of a snapshot: segment is its LSN */
} us_place_t;


/* a place as text, without spaces; parsing returns -1 if it is not one */

#define US_PLACE_TEXT  224

void us_place_print(const us_place_t *at, char text[US_PLACE_TEXT]);
int us_place_parse(us_place_t *at, const char *p, size_t len);

/* before the first file of a store */
void us_place_start(us_place_t *at, const us_manifest_t *m);


typedef struct {
    uint64_t           published;
    uint64_t           durable;
    uint64_t           ids;
} us_beat_t;


size_t us_beat_write(uint8_t p[US_STREAM_BEAT], const us_beat_t *beat);

/* the bytes before a manifest's text of so many bytes */
void us_stream_manifest(uint8_t p[US_STREAM_MANIFEST], size_t len);


typedef enum {
    US_FRAME_MANIFEST = 0,
    US_FRAME_BEAT,
    US_FRAME_HEAD,                    /* a file begins, or goes on */
    US_FRAME_BLOCK,
    US_FRAME_FOOTER
} us_frame_type_t;


/*
 * A frame; p points into the caller's bytes.
 */

typedef struct {
    us_frame_type_t    type;
    const uint8_t     *p;
    size_t             len;
    us_block_t         block;         /* of US_FRAME_BLOCK, _FOOTER */
    us_beat_t          beat;
} us_frame_t;


/*
 * A reader of one stream.  `at` is where it has come to: past every frame that
 * was returned.
 */

typedef struct {
    const us_ops_t    *ops;
    us_place_t         at;
    us_manifest_t      manifest;      /* the last that came */
    unsigned           named:1;       /* there is one */
    unsigned           resumed:1;     /* it goes on, at `at` */
    unsigned           open:1;        /* a header came, of this stream */
    us_reader_t        reader;        /* without a file */
    us_disk_error_t    error;
} us_stream_t;


/* at: where the reader has come to before, or NULL */
void us_stream_init(us_stream_t *s, const us_ops_t *ops, const us_place_t *at);

/*
 * The frame that begins at p, of which len bytes are there.  Returns its
 * length; 0: more bytes are needed, *need in all; -1 with s->error: it is no
 * frame, or does not follow the one before.  After -1 no more may be read.
 */
ssize_t us_stream_next(us_stream_t *s, const uint8_t *p, size_t len,
    us_frame_t *f, size_t *need);


#endif /* _US_STREAM_H_INCLUDED_ */
