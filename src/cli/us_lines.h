
/*
 * Lines of a file or of standard input, in groups, without copying them:
 * plain, or packed by gzip, xz or zstd.
 */


#ifndef _US_LINES_H_INCLUDED_
#define _US_LINES_H_INCLUDED_


#include "../us_base.h"


#define US_LINES_BUFFER  (1 << 20)    /* a longer line is skipped and counted,
                                         or cut */


typedef struct {
    const char   *name;               /* for messages */
    int           fd;
    int           file;               /* the file itself, if fd is a pipe */
    pid_t         unpacker;
    pid_t         feeder;
    unsigned      eof:1;
    unsigned      skipping:1;         /* within a line that is too long */
    unsigned      cut:1;              /* return the beginning of such a line */

    uint8_t      *buf;
    size_t        start;              /* of what has not been given out */
    size_t        end;

    uint64_t      bytes;              /* read so far, of the plain text */
    uint64_t      skipped;            /* lines that were too long */

    /*
     * Called before a wait for more input, so that a reader downstream gets
     * what there is.  0, or -1 to stop.
     */
    int         (*idle)(void *data);
    void         *data;
} us_lines_t;


int us_lines_init(us_lines_t *l);
void us_lines_free(us_lines_t *l);

/* "-" is standard input; 0, or -1 after a message */
int us_lines_open(us_lines_t *l, const char *name);

/*
 * Up to max lines without their '\n', valid until the next call; the last
 * one of a file need not have one.  Returns their number, 0 at the end, or -1
 * after a message.
 */
ssize_t us_lines_next(us_lines_t *l, us_str_t *lines, size_t max);

/* 0, or -1 after a message: the unpacker failed, the text is not whole */
int us_lines_close(us_lines_t *l);

/* position in the file and its size, for progress; -1 if they are unknown */
int us_lines_position(const us_lines_t *l, uint64_t *pos, uint64_t *size);


#endif /* _US_LINES_H_INCLUDED_ */
