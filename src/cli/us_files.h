
/*
 * The input of a command: the lines of its files, or of standard input, with
 * the progress on a terminal.
 *
 *     FILE...  --> us_lines (plain, gz, xz, zstd) --> groups of lines --> take
 *                                                 `-> batches of lines --> send
 */


#ifndef _US_FILES_H_INCLUDED_
#define _US_FILES_H_INCLUDED_


#include "../store/us_store.h"
#include "../url/us_normalize.h"


/*
 * Lines of a file or of standard input, in groups, without copying them:
 * plain, or packed by gzip, xz or zstd.
 */

#define US_LINES_BUFFER  (1 << 20)    /* a longer line is skipped and counted,
                                         or cut */
#define US_FILES_GROUP   256          /* lines that come together, at most */

#define US_BATCH_LINES   1000         /* of a request to a service */
#define US_BATCH_BYTES   (512 * 1024)


typedef struct {

    /* a group of lines; returns 0, or an exit code after a message; or NULL */
    int            (*take)(void *data, us_str_t *lines, size_t n);

    /*
     * Lines, after `take`, as a text for one request, with a newline each; the
     * same.  A line that is longer than any URL is cut: of what is no URL, the
     * length is enough.
     */
    int            (*send)(void *data, us_str_t text);

    /*
     * Writes what has been held back, also before a wait for more input, so
     * that a reader downstream gets what there is; 0, or as above; or NULL
     */
    int            (*flush)(void *data);

    /* the share of the input that has been read, from 0 to 1; or NULL */
    void           (*share)(void *data, double share);

    void            *data;
    const uint64_t  *fresh;           /* a count for the progress, or NULL */
    unsigned         progress:1;      /* write it to the terminal */
    unsigned         cut:1;           /* return the beginning of long lines */
    unsigned         urls:1;          /* leave out empty lines, and \r before
                                         the end of a line */
    unsigned         failed:1;        /* some input could not be read */

    /* the file that is being read */

    const char      *name;            /* for messages */
    int              fd;
    int              file;            /* the file itself, if fd is a pipe */
    pid_t            unpacker;

    uint8_t         *buf;
    uint8_t         *text;            /* what waits for `send` */
    size_t           len;
    unsigned         waiting;         /* lines of it */

    uint64_t         skipped;         /* lines that were too long */
    uint64_t         lines;
    uint64_t         total;           /* bytes of all files, 0: unknown */
    uint64_t         passed;          /* bytes of the files that are done */
    uint64_t         began;           /* ms */
    uint64_t         shown;
} us_files_t;


/*
 * f is zero but for what the caller has set: take, data, ...  US_CLI_DONE, or
 * US_CLI_USAGE after a message.  us_files_end() is called in either case: it
 * prints the last line of progress.
 */
int us_files_init(us_files_t *f);
void us_files_end(us_files_t *f);

/*
 * Reads n files; standard input if there are none.  What cannot be read sets
 * `failed` after a message, and the next file is read.  Returns 0, or what a
 * callback returned.
 */
int us_files_run(us_files_t *f, int n, char **names);

/* the exit code of what was read: too long lines, files that failed */
int us_files_code(const us_files_t *f);

/* all of it: init, run, end and code */
int us_files_all(us_files_t *f, int n, char **names);

/* reads one file, whose size is not part of f->total */
int us_files_one(us_files_t *f, const char *name);

/* us_files_all() of arguments, which are lines */
int us_files_args(us_files_t *f, int n, char **args);

/* a `flush` of a command that prints */
int us_cli_flush(void *data);


/* the canonical URLs of a group of lines, until the next group */

typedef struct {
    size_t           n;               /* lines that are not refused */
    us_store_item_t  items[US_FILES_GROUP];
    us_verdict_t     verdicts[US_FILES_GROUP];    /* of all lines */
    uint8_t          text[US_FILES_GROUP * US_URL_MAX];
} us_files_urls_t;

us_files_urls_t *us_files_normalize(us_norm_t *norm, us_norm_ws_t *ws,
    const us_str_t *lines, size_t n);


#endif /* _US_FILES_H_INCLUDED_ */
