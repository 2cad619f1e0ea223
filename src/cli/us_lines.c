
/*
 * Reads lines in blocks.
 *
 *     buf   |.....given out.....|line\nline\nli|          |
 *                               start          end        US_LINES_BUFFER
 *
 * The rest of an unfinished line moves to the front before the next read.  A
 * packed file is read through the program that unpacks it:
 *
 *     file --> xz -dc --> pipe --> buf
 *
 * If standard input is itself a pipe, the bytes that identified the format
 * cannot be put back.  A feeder, a child process, writes them first:
 *
 *     pipe --> feeder --> pipe --> xz -dc --> pipe --> buf
 */


#include "us_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>


typedef struct {
    const char   *magic;
    size_t        len;
    const char   *program;
} us_lines_format_t;


static const us_lines_format_t  us_lines_formats[] = {
    { "\x1f\x8b", 2, "gzip" },
    { "\xfd" "7zXZ\0", 6, "xz" },
    { "\x28\xb5\x2f\xfd", 4, "zstd" },
    { NULL, 0, NULL }
};


static int
us_lines_error(const us_lines_t *l, const char *what)
{
    fprintf(stderr, "urlstore: %s: %s: %s\n", l->name, what, strerror(errno));

    return -1;
}


int
us_lines_init(us_lines_t *l)
{
    memset(l, 0, sizeof(us_lines_t));

    l->fd = -1;
    l->file = -1;
    l->buf = malloc(US_LINES_BUFFER);

    return l->buf ? 0 : -1;
}


void
us_lines_free(us_lines_t *l)
{
    free(l->buf);
}


static const char *
us_lines_program(const uint8_t *p, size_t n)
{
    const us_lines_format_t  *f;

    for (f = us_lines_formats; f->magic; f++) {
        if (n >= f->len && memcmp(p, f->magic, f->len) == 0) {
            return f->program;
        }
    }

    return NULL;
}


static ssize_t
us_lines_read(int fd, uint8_t *p, size_t n)
{
    ssize_t  rc;

    do {
        rc = read(fd, p, n);
    } while (rc == -1 && errno == EINTR);

    return rc;
}


/* the child that gives head, then all of fd, to out; it never returns */

static void
us_lines_feed(int fd, int out, uint8_t *buf, size_t head)
{
    uint8_t  *p;
    ssize_t   n, m;

    for (n = head; n > 0; n = us_lines_read(fd, buf, US_LINES_BUFFER)) {
        for (p = buf; n > 0; p += m, n -= m) {
            m = write(out, p, n);
            if (m <= 0) {
                _exit(1);
            }
        }
    }

    _exit(n == 0 ? 0 : 1);
}


/*
 * Starts program with l->fd as its input; l->fd becomes its output.
 * The bytes in the buffer, if any, were read from l->fd before.
 */

static int
us_lines_unpack(us_lines_t *l, const char *program)
{
    int  out[2], in[2];

    if (l->end) {
        if (pipe2(in, O_CLOEXEC) == -1) {
            return us_lines_error(l, "pipe");
        }

        l->feeder = fork();

        if (l->feeder == -1) {
            return us_lines_error(l, "fork");
        }

        if (l->feeder == 0) {
            (void) close(in[0]);
            us_lines_feed(l->fd, in[1], l->buf, l->end);
        }

        (void) close(in[1]);
        (void) close(l->fd);
        l->fd = in[0];
        l->end = 0;
    }

    if (pipe2(out, O_CLOEXEC) == -1) {
        return us_lines_error(l, "pipe");
    }

    (void) fcntl(out[0], F_SETPIPE_SZ, US_LINES_BUFFER);

    l->unpacker = fork();

    if (l->unpacker == -1) {
        return us_lines_error(l, "fork");
    }

    if (l->unpacker == 0) {
        if (dup2(l->fd, 0) == -1 || dup2(out[1], 1) == -1) {
            _exit(127);
        }

        execlp(program, program, "-dc", (char *) NULL);
        fprintf(stderr, "urlstore: cannot run %s: %s\n", program,
                strerror(errno));
        _exit(127);
    }

    (void) close(out[1]);
    l->file = l->fd;
    l->fd = out[0];

    return 0;
}


int
us_lines_open(us_lines_t *l, const char *name)
{
    ssize_t       n;
    struct stat   st;
    const char   *program;

    l->name = strcmp(name, "-") == 0 ? "standard input" : name;
    l->start = 0;
    l->end = 0;
    l->eof = 0;
    l->skipping = 0;

    l->fd = strcmp(name, "-") == 0 ? fcntl(0, F_DUPFD_CLOEXEC, 3)
                                   : open(name, O_RDONLY|O_CLOEXEC);
    if (l->fd == -1) {
        return us_lines_error(l, "open");
    }

    if (fstat(l->fd, &st) == -1) {
        return us_lines_error(l, "stat");
    }

    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return us_lines_error(l, "read");
    }

    n = us_lines_read(l->fd, l->buf, US_LINES_BUFFER);
    if (n == -1) {
        return us_lines_error(l, "read");
    }

    l->end = n;
    program = us_lines_program(l->buf, n);

    if (program == NULL) {
        l->bytes += n;
        return 0;
    }

    if (S_ISREG(st.st_mode) && lseek(l->fd, -n, SEEK_CUR) != -1) {
        l->end = 0;
    }

    return us_lines_unpack(l, program);
}


/* reads more at end; 0, or -1 after a message */

static int
us_lines_fill(us_lines_t *l)
{
    ssize_t        n;
    struct pollfd  p;

    if (l->start) {
        memmove(l->buf, l->buf + l->start, l->end - l->start);
        l->end -= l->start;
        l->start = 0;
    }

    if (l->end == US_LINES_BUFFER) {
        /* one line fills it all; us_lines_next() has given it out if cut */
        l->end = 0;
        l->skipped += !l->skipping;
        l->skipping = 1;
    }

    if (l->idle) {
        p.fd = l->fd;
        p.events = POLLIN;

        if (poll(&p, 1, 0) == 0 && l->idle(l->data) == -1) {
            return -1;
        }
    }

    n = us_lines_read(l->fd, l->buf + l->end, US_LINES_BUFFER - l->end);

    if (n == -1) {
        return us_lines_error(l, "read");
    }

    l->eof = (n == 0);
    l->end += n;
    l->bytes += n;

    return 0;
}


ssize_t
us_lines_next(us_lines_t *l, us_str_t *lines, size_t max)
{
    size_t    n;
    uint8_t  *p, *end, *nl;

    n = 0;

    for ( ;; ) {
        p = l->buf + l->start;
        end = l->buf + l->end;

        while (n < max && (nl = memchr(p, '\n', end - p)) != NULL) {

            if (l->skipping) {
                l->skipping = 0;

            } else {
                lines[n].data = p;
                lines[n++].len = nl - p;
            }

            p = nl + 1;
        }

        l->start = p - l->buf;

        if (n) {
            return n;
        }

        if (l->eof) {
            break;
        }

        if (l->cut && !l->skipping && l->start == 0
            && l->end == US_LINES_BUFFER)
        {
            lines[0].data = l->buf;
            lines[0].len = l->end;
            l->start = l->end;
            l->skipping = 1;
            return 1;
        }

        if (us_lines_fill(l) == -1) {
            return -1;
        }
    }

    if (p == end || l->skipping) {
        return 0;
    }

    lines[0].data = p;
    lines[0].len = end - p;
    l->start = l->end;

    return 1;
}


static int
us_lines_wait(pid_t *pid)
{
    int    status;
    pid_t  rc;

    if (*pid <= 0) {
        return 0;
    }

    do {
        rc = waitpid(*pid, &status, 0);
    } while (rc == -1 && errno == EINTR);

    *pid = 0;

    return rc != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}


int
us_lines_close(us_lines_t *l)
{
    int  rc;

    if (l->fd != -1) {
        (void) close(l->fd);
        l->fd = -1;
    }

    if (l->file != -1) {
        (void) close(l->file);
        l->file = -1;
    }

    rc = us_lines_wait(&l->unpacker);
    rc |= us_lines_wait(&l->feeder);

    if (!l->eof) {
        /* we have stopped before the end, which broke the children's pipes */
        rc = 0;
    }

    if (rc != 0) {
        fprintf(stderr, "urlstore: %s: it could not be unpacked whole\n",
                l->name);
    }

    return rc;
}


int
us_lines_position(const us_lines_t *l, uint64_t *pos, uint64_t *size)
{
    int          fd;
    off_t        at;
    struct stat  st;

    fd = l->file != -1 ? l->file : l->fd;

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
