
/*
 * Sends the files of a data directory as a stream (us_stream.h), while the
 * directory's owner writes to it.
 *
 *     snapshot.S ------ journal.L ------ journal.M --- ...
 *                |                            ^
 *                S                            at: the next byte to be sent
 *
 * Each block is checked before it is sent, so that damage of a file ends the
 * stream instead of reaching its reader.  A beat follows the manifest, then
 * comes each second, and when all has been sent that there is.
 *
 * The sender keeps the lock "readers" until it has sent all that there is for
 * the first time: the owner removes no file meanwhile.  A store grants its
 * readers a total time with the lock (us_pace()), or slow readers would keep
 * old files for ever.  A reader without the lock that falls back by more than a
 * snapshot has to begin from nothing.
 *
 * All of it is for one thread of the owner, which has others to serve: no read
 * of a block waits for the disk.  What the kernel does not have in memory, it
 * is asked to read, and us_ship_next() returns US_SHIP_WAIT meanwhile.
 */


#ifndef _US_SHIP_H_INCLUDED_
#define _US_SHIP_H_INCLUDED_


#include "us_stream.h"


#define US_SHIP_BEAT   1000           /* ms between two beats, at most */
#define US_SHIP_GRACE  60000          /* ms that readers have together */
#define US_SHIP_PACE   262144         /* bytes that give them a second more */
#define US_SHIP_TRIES  250            /* of a read, by an owner each 20 ms */
#define US_SHIP_AGAIN  50             /* after so many it is asked for anew */
#define US_SHIP_FREE   4              /* as does so much time without a lock */


typedef enum {
    US_SHIP_OK = 0,
    US_SHIP_WAIT,                     /* there is no more for now */
    US_SHIP_GONE,                     /* the place is not there; error */
    US_SHIP_FAILED                    /* a file cannot be read; error */
} us_ship_rc_t;


typedef struct {
    int                dirfd;         /* the caller's */
    int                readers;       /* lock, or -1 */
    const us_ops_t    *ops;
    us_manifest_t      manifest;      /* of the directory at the beginning */
    us_place_t         at;
    unsigned           open:1;        /* reader has the file of `at` */
    unsigned           header:1;      /* small has its header, to be sent */
    unsigned           named:1;       /* at has a count of blocks as named */
    unsigned           tries;         /* since the disk was asked */
    uint64_t           sent;          /* bytes */
    us_reader_t        reader;
    uint64_t           limit;         /* bytes of it that are final */
    uint8_t            small[US_SEGMENT_HEADER];
    char              *text;          /* of the manifest; NULL: not sent */
    size_t             text_len;
    unsigned           begun:1;       /* the manifest was sent */
    unsigned           news:1;        /* sent since the last beat */
    uint64_t           beat_next;     /* ms */
    uint8_t            beat[US_STREAM_BEAT];
    us_disk_error_t    error;
} us_ship_t;


/* how long readers of a store may keep its files */

typedef struct {
    int64_t            left;          /* ms */
    uint64_t           at;            /* ms, of the last call */
    unsigned           held;          /* the caller's: locks */
} us_pace_t;


/*
 * at: where the reader has come to; NULL: it begins from nothing.  tail: the
 * journal's end now.  OK: the header of the file may be taken by
 * us_ship_next(); to be ended whatever it returned.
 */
us_ship_rc_t us_ship_begin(us_ship_t *s, int dirfd, const us_ops_t *ops,
    const us_place_t *at, const us_tail_t *tail);
void us_ship_end(us_ship_t *s);

/* its files may be removed */
void us_ship_unlock(us_ship_t *s);

/*
 * Time goes on, to `now` in ms, and readers have taken so many bytes.  Returns
 * whether they may keep files; at first all is zero but left, US_SHIP_GRACE.
 */
int us_pace(us_pace_t *p, uint64_t now, uint64_t bytes);

/*
 * What the stream has next, at a time in ms: the manifest, a beat, or what
 * us_ship_next() returns.  OK: the len bytes at p are valid until the next
 * call.
 */
us_ship_rc_t us_ship_send(us_ship_t *s, const us_tail_t *tail,
    const us_beat_t *beat, uint64_t now, const uint8_t **p, size_t *len);

/* the next header, block or footer; it ends at or below the LSN durable */
us_ship_rc_t us_ship_next(us_ship_t *s, const us_tail_t *tail,
    uint64_t durable, const uint8_t **p, size_t *len);

/* the place of an LSN alone: the stream begins with the segment that has it */
void us_ship_from(us_place_t *at, const us_manifest_t *m, uint64_t lsn);


#endif /* _US_SHIP_H_INCLUDED_ */
