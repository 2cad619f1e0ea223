
/*
 * See us_files.h.
 */


#include "us_cli.h"
#include "us_files.h"

#include <sys/stat.h>
#include <unistd.h>


#define US_FILES_TICK  0.5            /* seconds between lines of progress */


static double
us_files_since(const struct timespec *t)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return now.tv_sec - t->tv_sec + (now.tv_nsec - t->tv_nsec) / 1e9;
}


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

    seconds = us_files_since(&f->began);
    (void) clock_gettime(CLOCK_MONOTONIC, &f->shown);

    fprintf(stderr, "\r%s lines", us_files_short(buf, f->lines));

    if (f->fresh) {
        fprintf(stderr, ", %s new", us_files_short(buf, *f->fresh));
    }

    fprintf(stderr, ", %s/s", us_files_short(buf, seconds > 0
                                             ? f->lines / seconds : 0));

    if (f->total && !last
        && us_lines_position(&f->input, &pos, &size) == 0)
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


static int
us_files_idle(void *data)
{
    us_files_t *f = data;

    return f->flush(f->data) == 0 ? 0 : -1;
}


int
us_files_init(us_files_t *f)
{
    if (us_lines_init(&f->input) == -1) {
        fprintf(stderr, "urlstore: out of memory\n");
        return -1;
    }

    f->input.cut = f->cut;

    if (f->flush) {
        f->input.idle = us_files_idle;
        f->input.data = f;
    }

    f->progress = f->progress && isatty(2);

    (void) clock_gettime(CLOCK_MONOTONIC, &f->began);
    f->shown = f->began;

    return 0;
}


void
us_files_free(us_files_t *f)
{
    us_lines_free(&f->input);
}


int
us_files_one(us_files_t *f, const char *name)
{
    int        rc;
    ssize_t    n;
    uint64_t   pos, size, known;
    us_str_t   lines[US_FILES_GROUP];

    if (us_lines_open(&f->input, name) == -1) {
        (void) us_lines_close(&f->input);
        f->failed = 1;
        return 0;
    }

    known = 0;

    while ((n = us_lines_next(&f->input, lines, US_FILES_GROUP)) > 0) {

        if (f->share && f->total && f->input.bytes != known
            && us_lines_position(&f->input, &pos, &size) == 0)
        {
            known = f->input.bytes;
            f->share(f->data, (double) (f->passed + pos) / f->total);
        }

        f->lines += n;
        rc = f->take(f->data, lines, n);

        if (rc != 0) {
            (void) us_lines_close(&f->input);
            return rc;
        }

        if (f->progress && us_files_since(&f->shown) > US_FILES_TICK) {
            us_files_show(f, 0);
        }
    }

    if (us_lines_position(&f->input, &pos, &size) == 0) {
        f->passed += size;
    }

    if (us_lines_close(&f->input) == -1 || n == -1) {
        f->failed = 1;
    }

    return f->flush ? f->flush(f->data) : 0;
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


void
us_files_end(us_files_t *f)
{
    if (f->progress) {
        us_files_show(f, 1);
    }
}


int
us_files_code(const us_files_t *f)
{
    if (f->input.skipped) {
        fprintf(stderr, "urlstore: %llu lines left out: longer than %d "
                "bytes\n", (unsigned long long) f->input.skipped,
                US_LINES_BUFFER);
    }

    return f->failed ? US_CLI_USAGE
           : f->input.skipped ? US_CLI_REFUSED : US_CLI_DONE;
}
