
/*
 * urlstore dedup [-q] [--count] [--ids] [--filter N,RATE] [--normalize P]
 *                [--follow DIR] [--memory SIZE] [FILE...]
 *
 * Prints each line the first time it comes, in order.
 *
 *     without --normalize   lines are bytes; the answer is that of
 *                           awk '!seen[$0]++'                  (us_lineset)
 *     --normalize P         lines are URLs, taken as a zone with profile=P
 *                           and www=first takes them: printed canonical, and
 *                           one for both spellings of a site    (us_urlset)
 *     --filter N,RATE       either, approximately: up to N lines, of which
 *                           RATE may be missing                 (us_filter)
 */


#include "us_cli.h"
#include "us_dedup.h"
#include "us_follow.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>


static int us_dedup_run(int argc, char **argv);


static volatile sig_atomic_t  us_dedup_stop;


static const us_cli_option_t  us_dedup_list[] = {
    { 'q', "quiet", NULL, "Print no progress, and no reasons for refused "
      "lines." },
    { 'c', "count", NULL, "Print each line once, at the end, after the number "
      "of times that it came and a tab." },
    { 'i', "ids", NULL, "Print before each line its number, from 0, and a "
      "tab." },
    { 'f', "filter", "N,RATE", "Approximately, in a fixed amount of memory: "
      "up to N lines (50M), of which RATE (0.001) may be missing." },
    { 'n', "normalize", "P", "Lines are URLs: print them canonical, by the "
      "rules of profile P, once for both spellings of a site (www.)." },
    { 'F', "follow", "DIR", "Read the files of DIR as they are finished, "
      "until a signal comes." },
    { 'm', "memory", "SIZE", "Use at most SIZE (64k, 512M, 4G) for the "
      "lines." },
    { 0, NULL, NULL, NULL }
};


const us_cli_command_t  us_cli_dedup = {
    .name = "dedup",
    .run = us_dedup_run,
    .args = "[FILE...]",
    .summary = "print each line the first time it comes",
    .text =
        "Prints the different lines of files, or of standard input (\"-\"), "
        "in their order. Files packed by gzip, xz or zstd are unpacked by "
        "these programs. On a terminal it shows the progress.",
    .options = us_dedup_list,
    .exits =
        " 0   all was done\n"
        " 1   lines were refused, too long, or more than the filter was made "
        "for\n"
        " 2   wrong usage, some input or the output failed, no memory"
};


static void
us_dedup_signal(int signo)
{
    us_dedup_stop = 1;
}


static int
us_dedup_filter_option(us_dedup_t *d, const char *text)
{
    char    *end;
    double   capacity, rate;

    capacity = us_cli_count(text, &end);

    if (*end == ',' && capacity) {
        rate = strtod(end + 1, &end);

        if (*end == '\0'
            && us_filter_plan((uint64_t) capacity, rate, 0, &d->plan) == 0)
        {
            return 0;
        }
    }

    fprintf(stderr, "urlstore: --filter \"%s\" is not N,RATE: a number of "
            "lines up to 1e12, and an error between %g and %g, such as "
            "50M,0.001\n", text,
            US_FILTER_ERROR_MIN, US_FILTER_ERROR_MAX);

    return US_CLI_USAGE;
}


static int
us_dedup_options(us_dedup_t *d, int argc, char **argv)
{
    int  c;

    d->profile = -1;

    while ((c = us_cli_option(&us_cli_dedup, argc, argv)) != -1) {

        switch (c) {

        case 'q':
            d->quiet = 1;
            break;

        case 'c':
            d->count = 1;
            break;

        case 'i':
            d->ids = 1;
            break;

        case 'f':
            if (us_dedup_filter_option(d, optarg) != 0) {
                return US_CLI_USAGE;
            }
            break;

        case 'n':
            d->profile = us_cli_profile(optarg);

            if (d->profile == -1) {
                return US_CLI_USAGE;
            }
            break;

        case 'F':
            d->follow = optarg;
            break;

        case 'm':
            d->memory = us_cli_size("memory", optarg, 1 << 20);

            if (d->memory == 0) {
                return US_CLI_USAGE;
            }
            break;

        default:
            return us_cli_usage(&us_cli_dedup);
        }
    }

    if (d->count && (d->ids || d->plan.size)) {
        fprintf(stderr, "urlstore: --count does not go with --ids or "
                "--filter\n");
        return US_CLI_USAGE;
    }

    if (d->ids && d->plan.size) {
        fprintf(stderr, "urlstore: --ids does not go with --filter\n");
        return US_CLI_USAGE;
    }

    if (d->follow && optind < argc) {
        fprintf(stderr, "urlstore: files do not go with --follow\n");
        return US_CLI_USAGE;
    }

    return 0;
}


static int
us_dedup_lines(void *data, us_str_t *lines, size_t n)
{
    us_dedup_t *d = data;

    return d->take(d, lines, n);
}


static int
us_dedup_idle(void *data)
{
    return us_dedup_flush(data);
}


/* the sets choose their next size by the share that was read */

static void
us_dedup_progress(void *data, double share)
{
    us_dedup_t *d = data;

    if (d->set) {
        us_lineset_progress(d->set, share);

    } else if (d->urls) {
        us_urlset_progress(d->urls, share);
    }
}


static int
us_dedup_follow(us_dedup_t *d)
{
    int                failed, rc;
    const char        *name;
    us_follow_t       *f;
    struct sigaction   sa;

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = us_dedup_signal;
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);

    f = us_follow_open(d->follow);
    if (f == NULL) {
        return US_CLI_USAGE;
    }

    rc = 0;
    failed = 0;

    while (rc == 0
           && (name = us_follow_next(f, &us_dedup_stop, &failed)) != NULL)
    {
        rc = us_files_one(&d->files, name);
    }

    us_follow_close(f);

    return rc ? rc : failed ? US_CLI_USAGE : 0;
}


/* prints the lines with their counts, after all input was read */

static int
us_dedup_print_counts(us_dedup_t *d)
{
    size_t            pos;
    uint32_t          count;
    us_str_t          line;
    us_store_item_t   item;

    pos = 0;

    while (d->set && us_lineset_walk(d->set, &pos, &line, &count)) {
        if (us_dedup_print(d, line, count) != 0) {
            return US_CLI_USAGE;
        }
    }

    while (d->urls && us_urlset_walk(d->urls, &pos, &item, &count)) {
        if (us_dedup_print_url(d, &item, count) != 0) {
            return US_CLI_USAGE;
        }
    }

    return us_dedup_flush(d);
}


/* prints what was left out, and why; returns the exit code */

static int
us_dedup_close(us_dedup_t *d)
{
    int                rc;
    unsigned           i;
    us_filter_info_t   info;

    rc = us_files_code(&d->files);

    for (i = 0; i < sizeof(d->refused) / sizeof(d->refused[0]); i++) {
        if (d->refused[i]) {
            rc = rc ? rc : US_CLI_REFUSED;

            if (!d->quiet) {
                fprintf(stderr, "urlstore: %llu lines refused: %s\n",
                        (unsigned long long) d->refused[i],
                        us_verdict_name(i));
            }
        }
    }

    if (d->filter) {
        us_filter_info(d->filter, &info);

        if (info.urls > info.capacity) {
            rc = rc ? rc : US_CLI_REFUSED;
            fprintf(stderr, "urlstore: the filter was made for %llu lines "
                    "and got %llu: its error has grown from %g to %.2g\n",
                    (unsigned long long) info.capacity,
                    (unsigned long long) info.urls, info.error,
                    info.expected);
        }
    }

    return rc;
}


static int
us_dedup_run(int argc, char **argv)
{
    int         rc, code;
    us_dedup_t  d;

    memset(&d, 0, sizeof(us_dedup_t));

    if (us_dedup_options(&d, argc, argv) != 0) {
        return US_CLI_USAGE;
    }

    d.files.take = us_dedup_lines;
    d.files.flush = us_dedup_idle;
    d.files.share = us_dedup_progress;
    d.files.data = &d;
    d.files.fresh = &d.fresh;
    d.files.progress = !d.quiet;

    if (us_dedup_open(&d) != 0) {
        us_dedup_free(&d);
        return US_CLI_USAGE;
    }

    rc = d.follow ? us_dedup_follow(&d)
                  : us_files_run(&d.files, argc - optind, argv + optind);

    if (rc == 0 && d.count) {
        rc = us_dedup_print_counts(&d);
    }

    us_files_end(&d.files);

    code = us_dedup_close(&d);
    us_dedup_free(&d);

    return rc ? rc : code;
}
