
/*
 * Lines, read in blocks; and the files of a command, line by line, with the
 * progress.  See us_files.h.
 *
 *     buf   |line\nline\nline\nli|          |
 *                              end        US_LINES_BUFFER
 *
 * All that was read is given out; the rest of an unfinished line moves to the
 * front before the next read.  A packed file, or pipe, is read through the
 * program that unpacks it:
 *
 *     file --> xz -dc --> pipe --> buf
 */


#include "us_files.h"
#include "us_cli.h"
#include "../us_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>


typedef struct {
    const char   *magic;
    size_t        len;
    const char   *program;
} us_lines_format_t;


#define US_LINES_MAGIC  6             /* the longest */

static const us_lines_format_t  us_lines_formats[] = {
    { "\x1f\x8b", 2, "gzip" },
    { "\xfd" "7zXZ\0", 6, "xz" },
    { "\x28\xb5\x2f\xfd", 4, "zstd" },
    { NULL, 0, NULL }
};


static int
us_lines_error(const us_files_t *f, const char *what)
{
    fprintf(stderr, "urlstore: %s: %s: %s\n", f->name, what, strerror(errno));

    return -1;
}


/*
 * The first bytes of a file, pipe or socket, which are left in it for the
 * unpacker: their number, or -1.  Of a terminal there are none.
 */

static ssize_t
us_lines_peek(int fd, mode_t mode, char *p, size_t n)
{
    int      copy[2];
    ssize_t  rc;

    if (S_ISREG(mode)) {
        return pread(fd, p, n, lseek(fd, 0, SEEK_CUR));
    }

    if (S_ISSOCK(mode)) {
        return recv(fd, p, n, MSG_PEEK);
    }

    if (!S_ISFIFO(mode)) {
        return 0;
    }

    if (pipe2(copy, O_CLOEXEC) == -1) {
        return -1;
    }

    rc = tee(fd, copy[1], n, 0);
    rc = rc > 0 ? read(copy[0], p, n) : rc;

    (void) close(copy[0]);
    (void) close(copy[1]);

    return rc;
}


/* starts program with f->fd as its input; f->fd becomes its output */

static int
us_lines_unpack(us_files_t *f, const char *program)
{
    int  out[2];

    if (pipe2(out, O_CLOEXEC) == -1) {
        return us_lines_error(f, "pipe");
    }

    (void) fcntl(out[0], F_SETPIPE_SZ, US_LINES_BUFFER);

    f->unpacker = fork();

    if (f->unpacker == -1) {
        return us_lines_error(f, "fork");
    }

    if (f->unpacker == 0) {
        if (dup2(f->fd, 0) == -1 || dup2(out[1], 1) == -1) {
            _exit(127);
        }

        execlp(program, program, "-dc", (char *) NULL);
        fprintf(stderr, "urlstore: cannot run %s: %s\n", program,
                strerror(errno));
        _exit(127);
    }

    (void) close(out[1]);
    f->file = f->fd;
    f->fd = out[0];

    return 0;
}


/* "-" is standard input; 0, or -1 after a message */

static int
us_lines_open(us_files_t *f, const char *name)
{
    char                      magic[US_LINES_MAGIC];
    ssize_t                   n;
    struct stat               st;
    const us_lines_format_t  *format;

    f->name = strcmp(name, "-") == 0 ? "standard input" : name;

    f->fd = strcmp(name, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 3)
                                   : open(name, O_RDONLY|O_CLOEXEC);
    if (f->fd == -1) {
        return us_lines_error(f, "open");
    }

    if (fstat(f->fd, &st) == -1) {
        return us_lines_error(f, "stat");
    }

    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return us_lines_error(f, "read");
    }

    n = us_lines_peek(f->fd, st.st_mode, magic, sizeof(magic));

    if (n == -1) {
        return us_lines_error(f, "read");
    }

    for (format = us_lines_formats; format->magic; format++) {
        if ((size_t) n >= format->len
            && memcmp(magic, format->magic, format->len) == 0)
        {
            return us_lines_unpack(f, format->program);
        }
    }

    return 0;
}


/*
 * eof: all was read; before that we have broken the unpacker's pipe.  0, or -1
 * after a message: the unpacker failed, the text is not whole.
 */

static int
us_lines_close(us_files_t *f, int eof)
{
    int  status;

    if (f->fd != -1) {
        (void) close(f->fd);
        f->fd = -1;
    }

    if (f->file != -1) {
        (void) close(f->file);
        f->file = -1;
    }

    if (f->unpacker <= 0) {
        return 0;
    }

    status = -1;

    while (waitpid(f->unpacker, &status, 0) == -1 && errno == EINTR) {
        /* void */
    }

    f->unpacker = 0;

    if (!eof || status == 0) {
        return 0;
    }

    fprintf(stderr, "urlstore: %s: it could not be unpacked whole\n", f->name);

    return -1;
}


/* position in the file and its size, for progress; -1 if they are unknown */

static int
us_lines_position(const us_files_t *f, uint64_t *pos, uint64_t *size)
{
    int          fd;
    off_t        at;
    struct stat  st;

    fd = f->file != -1 ? f->file : f->fd;

    if (fd == -1 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
        return -1;
    }

    /* the unpacker shares the position */

    at = lseek(fd, 0, SEEK_CUR);
    if (at == -1) {
        return -1;
    }

    *pos = at;
    *size = st.st_size;

    return 0;
}


#define US_FILES_TICK  500            /* ms between lines of progress */


/* "1234567" as "1.23M", into buf of 16 bytes */

static const char *
us_files_short(char *buf, double n)
{
    unsigned           i;
    static const char  units[] = " kMGT";

    for (i = 0; n >= 1000 && i < 4; i++) {
        n /= 1000;
    }

    (void) snprintf(buf, 16, i ? "%.3g%c" : "%.0f", n, units[i]);

    return buf;
}


/* one line on the terminal, written over again */

static void
us_files_show(us_files_t *f, int last)
{
    char      buf[16];
    double    seconds, share;
    uint64_t  pos, size;
    unsigned  left;

    f->shown = us_clock_running();
    seconds = (f->shown - f->began) / 1e3;

    fprintf(stderr, "\r%s lines", us_files_short(buf, f->lines));

    if (f->fresh) {
        fprintf(stderr, ", %s new", us_files_short(buf, *f->fresh));
    }

    fprintf(stderr, ", %s/s", us_files_short(buf, seconds > 0
                                             ? f->lines / seconds : 0));

    if (f->total && !last
        && us_lines_position(f, &pos, &size) == 0)
    {
        share = (double) (f->passed + pos) / f->total;

        if (share > 0.001 && share <= 1) {
            left = (unsigned) (seconds / share - seconds);
            fprintf(stderr, ", %.0f%%, %u:%02u left", 100 * share, left / 60,
                    left % 60);
        }
    }

    fprintf(stderr, "\033[K%s", last ? "\n" : "");
}


int
us_files_init(us_files_t *f)
{
    f->fd = -1;
    f->file = -1;
    f->progress = f->progress && isatty(2);
    f->began = us_clock_running();
    f->shown = f->began;
    f->buf = malloc(US_LINES_BUFFER + 1 + US_BATCH_BYTES + US_URL_MAX + 2);

    if (f->buf == NULL) {
        return us_cli_fail("out of memory");
    }

    f->text = f->buf + US_LINES_BUFFER + 1;

    return US_CLI_DONE;
}


static int
us_files_flush(us_files_t *f)
{
    int  rc;

    rc = f->waiting ? f->send(f->data, (us_str_t) { f->len, f->text }) : 0;

    f->waiting = 0;
    f->len = 0;

    return rc || f->flush == NULL ? rc : f->flush(f->data);
}


static int
us_files_take(us_files_t *f, us_str_t *lines, size_t n)
{
    int     rc;
    size_t  i, k, len;

    f->lines += n;

    for (i = 0, k = 0; f->urls && i < n; i++) {
        lines[i].len -= (lines[i].len
                         && lines[i].data[lines[i].len - 1] == '\r');

        if (lines[i].len) {
            lines[k++] = lines[i];
        }
    }

    n = f->urls ? k : n;
    rc = n && f->take ? f->take(f->data, lines, n) : 0;

    for (i = 0; f->send && rc == 0 && i < n; i++) {
        len = lines[i].len > US_URL_MAX ? US_URL_MAX + 1 : lines[i].len;

        memcpy(f->text + f->len, lines[i].data, len);
        f->len += len;
        f->text[f->len++] = '\n';

        if (++f->waiting == US_BATCH_LINES || f->len >= US_BATCH_BYTES) {
            rc = us_files_flush(f);
        }
    }

    if (f->progress && us_clock_running() - f->shown > US_FILES_TICK) {
        us_files_show(f, 0);
    }

    return rc;
}


int
us_files_one(us_files_t *f, const char *name)
{
    int             rc, skipping;
    size_t          n, end;
    ssize_t         got;
    uint8_t        *p, *last, *nl;
    uint64_t        pos, size;
    us_str_t        lines[US_FILES_GROUP];
    struct pollfd   ready;

    if (us_lines_open(f, name) == -1) {
        (void) us_lines_close(f, 0);
        f->failed = 1;
        return 0;
    }

    rc = 0;
    got = 1;
    end = 0;
    skipping = 0;
    ready.fd = f->fd;
    ready.events = POLLIN;

    while (rc == 0 && got > 0) {

        if (f->flush && poll(&ready, 1, 0) == 0) {
            rc = us_files_flush(f);

            if (rc != 0) {
                break;
            }
        }

        do {
            got = read(f->fd, f->buf + end, US_LINES_BUFFER - end);
        } while (got == -1 && errno == EINTR);

        if (got == -1) {
            (void) us_lines_error(f, "read");
            break;
        }

        if (f->share && f->total && us_lines_position(f, &pos, &size) == 0) {
            f->share(f->data, (double) (f->passed + pos) / f->total);
        }

        end += got;

        /* the last line need not have an end */

        if (got == 0 && end) {
            f->buf[end++] = '\n';
        }

        p = f->buf;
        last = p + end;
        n = 0;

        while (rc == 0 && (nl = memchr(p, '\n', last - p)) != NULL) {

            if (!skipping) {
                lines[n++] = (us_str_t) { nl - p, p };
            }

            skipping = 0;
            p = nl + 1;

            if (n == US_FILES_GROUP) {
                rc = us_files_take(f, lines, n);
                n = 0;
            }
        }

        /* one line fills it all */

        if (end == US_LINES_BUFFER && p == f->buf) {

            if (!skipping && f->cut) {
                lines[n++] = (us_str_t) { end, p };
            }

            f->skipped += !skipping && !f->cut;
            skipping = 1;
            p = last;
        }

        if (rc == 0 && n) {
            rc = us_files_take(f, lines, n);
        }

        end = last - p;
        memmove(f->buf, p, end);
    }

    if (us_lines_position(f, &pos, &size) == 0) {
        f->passed += size;
    }

    if (us_lines_close(f, got == 0) == -1 || got == -1) {
        f->failed = 1;
    }

    return rc ? rc : us_files_flush(f);
}


int
us_files_run(us_files_t *f, int n, char **names)
{
    int          i, rc;
    struct stat  st;

    if (n == 0) {
        f->total = fstat(0, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
        return us_files_one(f, "-");
    }

    for (i = 0; i < n; i++) {
        if (stat(names[i], &st) == 0 && S_ISREG(st.st_mode)) {
            f->total += st.st_size;
        }
    }

    rc = 0;

    for (i = 0; i < n && rc == 0; i++) {
        rc = us_files_one(f, names[i]);
    }

    return rc;
}


int
us_files_args(us_files_t *f, int n, char **args)
{
    int       i, rc;
    size_t    k;
    us_str_t  lines[US_FILES_GROUP];

    f->urls = 0;
    f->progress = 0;
    rc = us_files_init(f);

    for (i = 0, k = 0; i < n && rc == US_CLI_DONE; i++) {
        lines[k++] = us_str_of(args[i]);

        if (k == US_FILES_GROUP || i == n - 1) {
            rc = us_files_take(f, lines, k);
            k = 0;
        }
    }

    rc = rc ? rc : us_files_flush(f);
    us_files_end(f);

    return rc;
}


void
us_files_end(us_files_t *f)
{
    if (f->progress) {
        us_files_show(f, 1);
    }

    free(f->buf);
}


int
us_files_code(const us_files_t *f)
{
    if (f->skipped) {
        fprintf(stderr, "urlstore: %llu lines left out: longer than %d "
                "bytes\n", (unsigned long long) f->skipped,
                US_LINES_BUFFER);
    }

    return f->failed ? US_CLI_USAGE
           : f->skipped ? US_CLI_REFUSED : US_CLI_DONE;
}


int
us_files_all(us_files_t *f, int n, char **names)
{
    int  rc;

    rc = us_files_init(f);
    rc = rc ? rc : us_files_run(f, n, names);
    us_files_end(f);

    return rc ? rc : us_files_code(f);
}


int
us_cli_flush(void *data)
{
    (void) fflush(stdout);

    return us_cli_output();
}


us_files_urls_t *
us_files_normalize(us_norm_t *norm, us_norm_ws_t *ws, const us_str_t *lines,
    size_t n)
{
    size_t            i;
    uint8_t          *p;
    us_canon_t        canon;
    us_store_item_t  *item;

    static us_files_urls_t  u;

    u.n = 0;
    p = u.text;

    for (i = 0; i < n; i++) {
        u.verdicts[i] = us_normalize(norm, ws, lines[i], NULL, &canon);

        if (u.verdicts[i] == US_URL_OK) {
            item = &u.items[u.n++];
            memset(item, 0, sizeof(us_store_item_t));

            /* copied: a result lives until the next */

            item->url = (us_str_t) { canon.url.href.len, p };
            item->merge = canon.merge;
            p = mempcpy(p, canon.url.href.data, canon.url.href.len);
        }
    }

    return &u;
}
