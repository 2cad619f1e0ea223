
/*
 * urlstore dump [--deleted] [--times] DIR
 * urlstore dump --sorted [--delta] [--memory SIZE] DIR
 *
 * The first prints "ID<TAB>URL" in order of ids; with --deleted an id whose
 * URL was deleted has "-".  With --times there is a third column, when the URL
 * was claimed last.  The second prints URLs in order of their bytes,
 * sorted through temporary files if there are more than fit SIZE (256m).
 *
 * --delta codes each URL by what it has in common with the one before, as the
 * Connectivity Server stores its URLs:
 *
 *     byte: length of the common prefix, at most 255;  the rest;  newline
 *
 * With --sorted the last line, on standard error, has the bytes per URL in
 * both forms.  A damaged directory is printed up to the damage.
 */


#include "us_cli_data.h"
#include "us_cli_sort.h"
#include "../store/us_shard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>


#define US_DUMP_MEMORY  (256 * 1024 * 1024)


static int us_dump_run(int argc, char **argv);


static const us_cli_option_t  us_dump_list[] = {
    { 'd', "deleted", NULL, "Print deleted ids, too, with \"-\" as the URL." },
    { 't', "times", NULL, "Print a third column: when the URL was claimed "
      "last, in seconds since 1970, or \"-\"." },
    { 's', "sorted", NULL, "Print URLs without ids, in order of their "
      "bytes." },
    { US_CLI_LONG, "delta", NULL, "With --sorted: code each URL by what it "
      "has in common with the one before, as a byte for the length of the "
      "common prefix (at most 255), the rest and a newline." },
    { 'm', "memory", "SIZE", "With --sorted: sort through temporary files "
      "what is more than SIZE (256m)." },
    { 0, NULL, NULL, NULL }
};


const us_cli_command_t  us_cli_dump = {
    .name = "dump",
    .run = us_dump_run,
    .args = "DIR",
    .summary = "print the URLs of a data directory",
    .text =
        "Prints \"ID<TAB>URL\" lines in order of ids. With --sorted, the last "
        "line on standard error is the bytes per URL, plain and delta-coded. "
        "A damaged directory is printed up to the damage.",
    .options = us_dump_list,
    .exits =
        " 0   all URLs were printed\n"
        " 1   DIR is damaged: URLs up to the damage were printed\n"
        " 2   wrong usage, DIR has no store, or something could not be read "
        "or written"
};


typedef struct {
    unsigned   sorted:1;
    unsigned   delta:1;
    unsigned   deleted:1;
    unsigned   times:1;
    size_t     memory;

    uint64_t   urls;
    uint64_t   raw;                   /* bytes, without newlines */
    uint64_t   coded;
    size_t     last_len;
    uint8_t    last[US_URL_MAX + 8];
} us_dump_options_t;


static int
us_dump_out(void *data, us_str_t s)
{
    us_dump_options_t  *o = data;

    size_t  n, max;

    max = (s.len < o->last_len) ? s.len : o->last_len;
    max = (max > 255) ? 255 : max;

    for (n = 0; n < max && s.data[n] == o->last[n]; n++) {
        /* void */
    }

    memcpy(o->last, s.data, s.len);
    o->last_len = s.len;

    o->urls++;
    o->raw += s.len;
    o->coded += 2 + s.len - n;

    if (o->delta) {
        (void) putchar_unlocked((int) n);
        s.data += n;
        s.len -= n;
    }

    (void) fwrite_unlocked(s.data, s.len, 1, stdout);
    (void) putchar_unlocked('\n');

    return ferror(stdout) ? -1 : 0;
}


static int
us_dump_time(us_store_t *s, uint64_t id)
{
    uint64_t  claimed;

    claimed = us_store_claimed(s, id);

    return claimed ? printf("\t%" PRIu64, claimed) : printf("\t-");
}


static int
us_dump_ids(us_cli_data_t *d, us_dump_options_t *o, us_sort_t *sort)
{
    int                rc;
    size_t             len;
    uint8_t            buf[US_URL_MAX + 8];
    uint64_t           id, next, first;
    us_store_status_t  status;

    next = us_store_next_id(d->store);
    first = us_store_first_id(d->store);
    rc = 0;

    for (id = 0; id < next && rc == 0; id++) {
        status = us_store_get(d->store, id, buf, &len);

        if (status == US_OK && sort) {
            rc = us_sort_add(sort, (us_str_t) { len, buf });

        } else if (status == US_OK) {
            rc = printf("%" PRIu64 "\t%.*s", first + id, (int) len, buf) < 0
                 || (o->times && us_dump_time(d->store, id) < 0)
                 || putchar('\n') == EOF;

        } else if (status == US_DELETED && o->deleted) {
            rc = printf("%" PRIu64 "\t-%s\n", first + id,
                        o->times ? "\t-" : "") < 0;
        }
    }

    return rc;
}


static int
us_dump_sorted(us_cli_data_t *d, us_dump_options_t *o)
{
    int         rc;
    us_sort_t  *sort;

    sort = us_sort_create(o->memory);

    if (sort == NULL) {
        return -1;
    }

    rc = us_dump_ids(d, o, sort);

    if (rc == 0) {
        rc = us_sort_end(sort, us_dump_out, o);
    }

    us_sort_destroy(sort);

    if (rc == 0 && o->urls) {
        fprintf(stderr, "urlstore: %" PRIu64 " URLs, %.2f bytes each, %.2f "
                "sorted and delta-coded\n", o->urls,
                (double) o->raw / o->urls, (double) o->coded / o->urls);
    }

    return rc;
}


static int
us_dump_options(us_dump_options_t *o, int argc, char **argv)
{
    int  key;

    memset(o, 0, sizeof(us_dump_options_t));
    o->memory = US_DUMP_MEMORY;

    while ((key = us_cli_option(&us_cli_dump, argc, argv)) != -1) {

        switch (key) {

        case 's':
            o->sorted = 1;
            break;

        case US_CLI_LONG:
            o->delta = 1;
            break;

        case 'd':
            o->deleted = 1;
            break;

        case 't':
            o->times = 1;
            break;

        case 'm':
            o->memory = us_cli_size("memory", optarg, 1);

            if (o->memory == 0) {
                return -1;
            }
            break;

        default:
            return -1;
        }
    }

    return (optind == argc - 1 && (o->sorted || !o->delta)
            && !(o->sorted && (o->deleted || o->times))) ? 0 : -1;
}


/* what is missing at the end; an exit code */

static int
us_dump_damage(const us_cli_data_t *d)
{
    uint64_t  answered;

    if (d->rc == US_RECOVERY_FRESH) {
        return us_cli_data_none(d);
    }

    if (d->rc != US_RECOVERY_OK) {
        (void) us_cli_failed(d->path, d->recovery.error.text);
        return US_CLI_REFUSED;
    }

    answered = us_cli_data_answered(d);

    if (answered > d->recovery.lsn) {
        fprintf(stderr, "urlstore: \"%s\": LSN %" PRIu64 " was "
                "answered, the journal ends at %" PRIu64 "\n", d->path,
                answered, d->recovery.lsn);
        return US_CLI_REFUSED;
    }

    return US_CLI_DONE;
}


static int
us_dump_run(int argc, char **argv)
{
    int                code;
    us_cli_data_t      d;
    us_dump_options_t  o;

    if (us_dump_options(&o, argc, argv) == -1) {
        return us_cli_usage(&us_cli_dump);
    }

    code = us_cli_data_open(&d, argv[optind]);

    if (code != US_CLI_DONE) {
        return code;
    }

    code = us_cli_data_load(&d, 1);

    if (code == US_CLI_DONE && d.store) {

        if ((o.sorted ? us_dump_sorted(&d, &o) : us_dump_ids(&d, &o, NULL))
            != 0)
        {
            code = us_cli_output();

            if (code == US_CLI_DONE) {
                fprintf(stderr, "urlstore: sorting failed, with temporary "
                        "files in $TMPDIR or /tmp: %s\n", strerror(errno));
                code = US_CLI_USAGE;
            }
        }
    }

    if (code == US_CLI_DONE) {
        code = us_dump_damage(&d);
    }

    us_cli_data_close(&d);

    return code;
}
