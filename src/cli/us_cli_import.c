
/*
 * urlstore import [--profile P] [--www first|keep|strip] [--revisit UNIT]
 *                 DIR [FILE...]
 *
 * Adds a URL a line to a data directory, which is made if it is empty; lines
 * of a dump, "ID<TAB>URL", are accepted, too.  The directory must have no
 * owner.  Ids are given in the order of the lines: to keep ids, copy the
 * directory instead.
 *
 * Everything is on the disk when it returns.
 */


#include "us_cli.h"
#include "us_fill.h"
#include "../api/us_time.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>


typedef struct {
    us_fill_t         fill;
    us_files_t        files;
    uint64_t          lines;          /* but for empty ones */
    us_www_t          www;
    us_profile_t      profile;
    uint64_t          revisit;
} us_import_t;


static int us_import_command(int argc, char **argv);
static int us_import_options(us_import_t *im, int argc, char **argv);
static int us_import_run(us_import_t *im, int n, char **names);
static int us_import_lines(void *data, us_str_t *lines, size_t n);
static us_str_t us_import_dumped(us_import_t *im, us_str_t line);


static const us_cli_option_t  us_import_list[] = {
    { 'p', "profile", "P", "The rules of a new store: crawler (the default), "
      "crawler-clean, aggressive or whatwg." },
    { 'w', "www", "HOW", "Of a new store, what www. in front of a host means: "
      "first (the default), keep, strip." },
    { 'r', "revisit", "UNIT", "Keep claims, dated by units of 1m to 1d, such "
      "as 1h." },
    { 0, NULL, NULL, NULL }
};


const us_cli_command_t  us_cli_import = {
    .name = "import",
    .run = us_import_command,
    .args = "DIR [FILE...]",
    .summary = "add URLs to a data directory",
    .text =
        "Adds the URLs of files, or of standard input (\"-\"), packed by "
        "gzip, xz or zstd or not, one a line, to DIR, which is made if it "
        "does not exist. Lines of a dump, \"ID<TAB>URL\", are accepted, too; "
        "if claims are kept, a third column is the time of the last one. "
        "Ids are given in the order of the lines: to keep ids, use backup and "
        "restore instead. No "
        "service may own DIR. All is on the disk when the command ends.\n\n"
        "The first ten lines that are refused are printed with their reasons. "
        "A command that was interrupted has kept what it had added: run it "
        "again, and it continues; the URLs that are there count as seen.",
    .options = us_import_list,
    .exits =
        " 0   all was added\n"
        " 1   lines were refused\n"
        " 2   wrong usage, DIR is none that this command can write to, or "
        "something could not be read or written\n"
        " 130 interrupted"
};


static volatile sig_atomic_t  us_import_stop;


static void
us_import_signal(int signo)
{
    us_import_stop = 1;
}


static int
us_import_command(int argc, char **argv)
{
    int           code, rc;
    us_import_t  *im;

    im = calloc(1, sizeof(us_import_t));

    if (im == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return US_CLI_USAGE;
    }

    code = us_import_options(im, argc, argv);

    if (code == US_CLI_DONE) {
        code = us_import_run(im, argc - optind, argv + optind);

        rc = us_fill_close(&im->fill);
        code = rc ? rc : code;
    }

    free(im);

    return code;
}


static int
us_import_www(const char *name)
{
    int  www;

    www = strcmp(name, "first") == 0 ? US_WWW_FIRST
          : strcmp(name, "keep") == 0 ? US_WWW_KEEP
          : strcmp(name, "strip") == 0 ? US_WWW_STRIP : -1;

    if (www == -1) {
        fprintf(stderr, "urlstore: unknown --www \"%s\"; use first, keep or "
                "strip\n", name);
    }

    return www;
}


static int
us_import_unit(const char *text, uint64_t *unit)
{
    if (us_time_duration(us_str_of(text), unit) == 0
        && *unit >= US_STORE_REVISIT_MIN && *unit <= US_STORE_REVISIT_MAX)
    {
        return 0;
    }

    fprintf(stderr, "urlstore: invalid --revisit \"%s\"; use a time from 1m to "
            "1d, such as 1h\n", text);

    return -1;
}


static int
us_import_options(us_import_t *im, int argc, char **argv)
{
    int  key, value;

    im->profile = US_PROFILE_CRAWLER;
    im->www = US_WWW_FIRST;

    while ((key = us_cli_option(&us_cli_import, argc, argv)) != -1) {

        value = -1;

        if (key == 'p') {
            value = us_cli_profile(optarg);
            im->profile = (us_profile_t) value;

        } else if (key == 'w') {
            value = us_import_www(optarg);
            im->www = (us_www_t) value;

        } else if (key == 'r') {
            value = us_import_unit(optarg, &im->revisit);
        }

        if (value == -1) {
            return us_cli_usage(&us_cli_import);
        }
    }

    return optind < argc ? US_CLI_DONE : us_cli_usage(&us_cli_import);
}


/* names: the directory, then files */

static int
us_import_run(us_import_t *im, int n, char **names)
{
    int               code, rc;
    us_embed_conf_t   conf;
    struct sigaction  sa;

    /* a second one ends the process at once */

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = us_import_signal;
    sa.sa_flags = SA_RESETHAND|SA_RESTART;
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);

    memset(&conf, 0, sizeof(us_embed_conf_t));
    conf.snapshot = UINT64_MAX;       /* one, at the end */
    conf.revisit = (uint32_t) im->revisit;

    im->fill.full = "no memory for more URLs";
    code = us_fill_open(&im->fill, names[0], im->profile, im->www, &conf);

    if (code != US_CLI_DONE) {
        return code;
    }

    im->files.take = us_import_lines;
    im->files.data = im;
    im->files.fresh = &im->fill.added;
    im->files.progress = 1;
    im->files.cut = 1;

    code = us_files_init(&im->files) == 0
           ? us_files_run(&im->files, n - 1, names + 1) : US_CLI_USAGE;

    us_files_end(&im->files);

    if (code == US_CLI_DONE || code == US_CLI_INTERRUPTED) {
        rc = us_fill_flush(&im->fill);
        code = rc ? rc : code;
    }

    fprintf(stderr, "urlstore: %s%" PRIu64 " lines: %" PRIu64 " new, %" PRIu64
            " seen, %" PRIu64 " refused\n",
            code == US_CLI_INTERRUPTED
            ? "interrupted; the same command continues; " : "", im->lines,
            im->fill.added, im->fill.seen, im->fill.refused);

    rc = us_files_code(&im->files);
    us_files_free(&im->files);

    return code ? code : rc ? rc
           : im->fill.refused ? US_CLI_REFUSED : US_CLI_DONE;
}


static int
us_import_lines(void *data, us_str_t *lines, size_t n)
{
    us_import_t *im = data;

    int       rc;
    size_t    i;
    us_str_t  line;

    rc = US_CLI_DONE;

    for (i = 0; i < n && rc == US_CLI_DONE; i++) {
        line = lines[i];

        line = us_import_dumped(im, line);

        /* "-": a deleted one */

        if (line.len == 0 || (line.len == 1 && *line.data == '-')) {
            continue;
        }

        im->lines++;
        rc = us_fill_line(&im->fill, line);

        if (rc == US_CLI_DONE && us_import_stop) {
            rc = US_CLI_INTERRUPTED;
        }
    }

    return rc;
}


/* of a line "ID<TAB>URL[<TAB>TIME]" the URL; another line as it is */

static us_str_t
us_import_dumped(us_import_t *im, us_str_t line)
{
    size_t          id;
    us_str_t        time;
    uint64_t        at;
    const uint8_t  *tab;

    us_fill_time(&im->fill, US_FILL_NOW);

    for (id = 0;
         id < line.len && line.data[id] >= '0' && line.data[id] <= '9';
         id++)
    {
        /* void */
    }

    if (id == 0 || id == line.len || line.data[id] != '\t') {
        return line;
    }

    line.data += id + 1;
    line.len -= id + 1;

    tab = memchr(line.data, '\t', line.len);

    if (tab == NULL) {
        return line;
    }

    time.data = tab + 1;
    time.len = line.data + line.len - time.data;
    at = 0;

    if ((time.len == 1 && *time.data == '-')
        || us_time_point(time, &at) == 0)
    {
        us_fill_time(&im->fill, at);
        line.len = tab - line.data;
    }

    return line;
}
