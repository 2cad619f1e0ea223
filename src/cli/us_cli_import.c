
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
 *
 * urlstore size, at the end of this file, fills a directory in the same way.
 */


#include "us_cli_data.h"
#include "us_files.h"
#include "../api/us_request.h"
#include "../api/us_time.h"
#include "../us_text.h"
#include "../life/us_embed.h"
#include "../url/us_normalize.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


/*
 * A data directory filled with the URLs of lines, by groups.
 *
 *     a group --> us_files_normalize() --> us_embed_add() --> directory
 *
 * After an error, which is printed, nothing more can be added.
 */

#define US_FILL_NOW      UINT64_MAX

/* refused lines that are printed, and bytes of each */

#define US_FILL_PRINTED  10
#define US_FILL_SHOWN    200


typedef struct {
    const char       *full;           /* what to do when memory is full */
    us_cli_data_t     data;
    us_files_t        files;
    uint64_t          added;
    uint64_t          seen;
    uint64_t          refused;        /* no URLs, or those of other shards */
} us_fill_t;


/*
 * Fills the directory with all lines of the files; it is made if it does not
 * exist.  f is zero but for `full` and files.take, whose data is *data.  An
 * exit code; us_cli_data_close() is called after it.
 */

static int
us_fill(us_fill_t *f, const char *dir, us_profile_t profile, us_www_t www,
    us_embed_conf_t *conf, int n, char **names, void *data)
{
    int         code;
    us_norm_t  *norm;

    norm = us_norm_create(profile);

    if (norm == NULL) {
        return us_cli_failed(dir, "out of memory");
    }

    us_norm_set_www(norm, www);
    conf->norm = us_norm_signature(norm);

    code = us_cli_data_own(&f->data, dir, conf);
    code = code ? code : us_cli_data_rules(&f->data);
    us_norm_destroy(norm);

    f->files.data = data;
    f->files.fresh = &f->added;
    f->files.progress = 1;
    f->files.cut = 1;
    f->files.urls = 1;

    return code ? code : us_files_all(&f->files, n, names);
}


/*
 * Adds a group of lines, and learns a model if one is due.  times: when each
 * was claimed, in seconds since 1970; 0: never; US_FILL_NOW: new ones now.  A
 * store without claims ignores them, and then they may be NULL.  US_CLI_DONE,
 * or an exit code; a line that is no URL is counted.
 */

static int
us_fill_add(us_fill_t *f, const us_str_t *lines, size_t n,
    const uint64_t *times)
{
    char              text[4 * US_FILL_SHOWN + 1];
    size_t            i, k, full;
    uint64_t          at[US_FILES_GROUP];
    us_str_t          line;
    us_verdict_t      verdict;
    us_files_urls_t  *urls;
    us_store_item_t  *items;
    us_store_claim_t  claims[US_FILES_GROUP];

    urls = us_files_normalize(f->data.norm, f->data.ws, lines, n);
    items = urls->items;

    for (i = 0, k = 0; i < n; i++) {
        verdict = urls->verdicts[i];

        if (verdict == US_URL_OK) {
            at[k++] = times ? times[i] : US_FILL_NOW;

        /* the first ones are printed: their reasons tell most */

        } else if (f->refused++ < US_FILL_PRINTED) {
            line = lines[i];
            line.len = line.len > US_FILL_SHOWN ? US_FILL_SHOWN : line.len;
            *us_put_escaped((uint8_t *) text, line) = '\0';
            fprintf(stderr, "urlstore: refused (%s): %s\n",
                    us_verdict_name(verdict), text);
        }
    }

    n = k;

    if (us_embed_add(f->data.embed, items, n) == -1) {
        return us_cli_data_failed(&f->data);
    }

    /* claims: those that follow each other with one time together */

    for (i = 0, k = 0; us_store_revisit(f->data.store) && i < n; i++) {

        if (at[i] != US_FILL_NOW && items[i].id != US_STORE_NO_ID) {
            claims[k++].id = items[i].id;
        }

        if (k && (i + 1 == n || at[i + 1] != at[i])) {
            if (us_embed_claim(f->data.embed, claims, k, at[i]) == -1) {
                return us_cli_data_failed(&f->data);
            }

            k = 0;
        }
    }

    for (i = 0, full = 0; i < n; i++) {
        f->added += (items[i].status == US_NEW);
        f->seen += (items[i].status == US_SEEN);
        f->refused += (items[i].status == US_MOVED);
        full += (items[i].status == US_FULL);
    }

    if (full) {
        return us_cli_failed(f->data.path, f->full);
    }

    return us_embed_learn(f->data.embed) == 0
           ? US_CLI_DONE : us_cli_data_failed(&f->data);
}


typedef struct {
    int               profile;
    int               www;
    us_embed_conf_t   conf;

    us_fill_t         fill;
    uint64_t          lines;          /* but for empty ones */
} us_import_t;


static us_import_t  us_import;


static int
us_import_revisit(const us_cli_option_t *o, void *value, const char *arg)
{
    uint64_t  unit;

    if (us_time_duration(us_str_of(arg), &unit) != 0
        || unit < US_STORE_REVISIT_MIN || unit > US_STORE_REVISIT_MAX)
    {
        return us_cli_fail("invalid --revisit \"%s\"; use a time from 1m to "
                           "1d, such as 1h", arg);
    }

    *(uint32_t *) value = (uint32_t) unit;

    return 0;
}


static const us_cli_option_t  us_import_list[] = {
    { 'p', "profile", "P", "The rules of a new store: crawler (the default), "
      "crawler-clean, aggressive or whatwg.",
      us_cli_profile, offsetof(us_import_t, profile) },
    { 'w', "www", "HOW", "Of a new store, what www. in front of a host means: "
      "first (the default), keep, strip.",
      us_cli_www, offsetof(us_import_t, www) },
    { 'r', "revisit", "UNIT", "Keep claims, dated by units of 1m to 1d, such "
      "as 1h.",
      us_import_revisit, offsetof(us_import_t, conf.revisit) },
    { .name = NULL }
};


static volatile sig_atomic_t  us_import_stop;


static void
us_import_signal(int signo)
{
    us_import_stop = 1;
}


static int
us_import_lines(void *data, us_str_t *lines, size_t n)
{
    us_import_t *im = data;

    int       rc;
    size_t    i, k;
    us_str_t  line, id, rest, url;
    uint64_t  at, times[US_FILES_GROUP];

    for (i = 0, k = 0; i < n; i++) {
        line = lines[i];
        times[k] = US_FILL_NOW;

        rest = line;

        if (us_str_cut(&rest, '\t', &id) && us_id_digits(id)) {

            /* "ID<TAB>URL[<TAB>TIME]" */

            line = rest;
            at = 0;

            if (us_str_cut(&rest, '\t', &url)
                && ((rest.len == 1 && *rest.data == '-')
                    || us_time_point(rest, &at) == 0))
            {
                times[k] = at;
                line = url;
            }
        }

        /* "-": a deleted one */

        if (line.len && !(line.len == 1 && *line.data == '-')) {
            lines[k++] = line;
        }
    }

    im->lines += k;
    rc = us_fill_add(&im->fill, lines, k, times);

    return rc ? rc : us_import_stop ? US_CLI_INTERRUPTED : US_CLI_DONE;
}


static int
us_import_command(const us_cli_command_t *c, int n, char **args)
{
    us_import_t *im = c->own;

    int               code;
    us_fill_t        *f;
    struct sigaction  sa;

    /* a second one ends the process at once */

    memset(&sa, 0, sizeof(struct sigaction));
    sa.sa_handler = us_import_signal;
    sa.sa_flags = SA_RESETHAND|SA_RESTART;
    (void) sigaction(SIGINT, &sa, NULL);
    (void) sigaction(SIGTERM, &sa, NULL);

    im->conf.snapshot = UINT64_MAX;   /* one, at the end */

    f = &im->fill;
    f->full = "no memory for more URLs";
    f->files.take = us_import_lines;

    code = us_fill(f, args[0], (us_profile_t) im->profile, (us_www_t) im->www,
                   &im->conf, n - 1, args + 1, im);

    if (f->data.ws) {
        fprintf(stderr, "urlstore: %s%" PRIu64 " lines: %" PRIu64 " new, %"
                PRIu64 " seen, %" PRIu64 " refused\n",
                code == US_CLI_INTERRUPTED
                ? "interrupted; the same command continues; " : "", im->lines,
                f->added, f->seen, f->refused);
    }

    code = code ? code : f->refused ? US_CLI_REFUSED : US_CLI_DONE;

    return us_cli_data_close(&f->data, code);
}


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
    .own = &us_import,
    .exits =
        " 0   all was added\n"
        " 1   lines were refused\n"
        " 2   wrong usage, DIR is none that this command can write to, or "
        "something could not be read or written\n"
        " 130 interrupted"
};


/*
 * urlstore size --urls N --sample FILE: what a zone for N URLs needs.
 *
 *     sample --> a store in a directory of its own --> bytes of memory and of
 *     disk for a URL, time of loading it --> times N
 *
 * The directory is made in $TMPDIR or /tmp and removed.  Memory is counted at
 * the end of the sample: models have been learnt and the index has its usual
 * load.  All but the header and the ring of the journal grows with the URLs,
 * in a straight line.
 */


#define US_SIZING_SPARE  1.2          /* SIZE over what the URLs need */
#define US_SIZING_LEAST  10000        /* URLs that a sample must have */

/* memory is taken in chunks; a smaller store has smaller ones */

#define US_SIZING_MEMORY  ((size_t) 1 << 30)


typedef struct {
    double            urls;           /* of the zone */
    const char       *sample;
    int               profile;
    int               sites;

    us_fill_t         fill;

    us_store_info_t   info;           /* at the end of the sample */
} us_sizing_t;


static us_sizing_t  us_sizing;


static int
us_sizing_urls(const us_cli_option_t *o, void *value, const char *arg)
{
    char  *end;

    *(double *) value = us_cli_count(arg, &end);

    if (*end != '\0' || *(double *) value == 0) {
        return us_cli_fail("--urls \"%.40s\" is not a number of URLs from 1 to "
                           "1e12, such as 250M", arg);
    }

    return 0;
}


static const us_cli_option_t  us_sizing_list[] = {
    { US_CLI_LONG, "urls", "N", "The number of different URLs: 250000000, "
      "250M or 2.5e8.",
      us_sizing_urls, offsetof(us_sizing_t, urls) },
    { US_CLI_LONG + 1, "sample", "FILE", "Lines of the same kind, packed or "
      "not; \"-\" is standard input. Of 100,000 different URLs or more, it "
      "says enough.",
      us_cli_text, offsetof(us_sizing_t, sample) },
    { 'p', "profile", "P", "The rules of the zone: crawler (the default), "
      "crawler-clean, aggressive or whatwg.",
      us_cli_profile, offsetof(us_sizing_t, profile) },
    { 's', "sites", NULL, "Of a zone with sites=on.",
      NULL, offsetof(us_sizing_t, sites) },
    { .name = NULL }
};


static int
us_sizing_lines(void *data, us_str_t *lines, size_t n)
{
    return us_fill_add(data, lines, n, NULL);
}


/*
 * Fills the directory, and writes a snapshot: a start reads it, and the disk
 * always holds one.
 */

static int
us_sizing_fill(us_sizing_t *z, const char *dir)
{
    int              code;
    us_fill_t       *f;
    us_manifest_t    m;
    us_disk_error_t  e;
    us_embed_conf_t  conf = { .sites = z->sites, .size = US_SIZING_MEMORY };

    f = &z->fill;
    f->files.take = us_sizing_lines;
    f->full = "the sample is too large: a part of it is enough, as "
              "head -n 10000000 gives it";

    code = us_fill(f, dir, (us_profile_t) z->profile, US_WWW_FIRST, &conf, 1,
                   (char **) &z->sample, f);

    if (code == US_CLI_DONE) {
        us_store_info(f->data.store, &z->info);

        if (us_embed_sync(f->data.embed) == -1) {
            code = us_cli_data_failed(&f->data);

        } else if (us_data_snapshot(f->data.store, f->data.dirfd, NULL, NULL,
                                    NULL, &m, &e)
                   != 0)
        {
            code = us_cli_failed(dir, e.text);
        }
    }

    return us_cli_data_close(&f->data, code);
}


/* in seconds: a small sample is loaded in a few ms */

static double
us_sizing_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + ts.tv_nsec / 1e9;
}


static int
us_sizing_command(const us_cli_command_t *c, int n, char **args)
{
    us_sizing_t *z = c->own;

    int               code;
    DIR              *d;
    char              dir[4096];
    double            memory, disk, need, load;
    const char       *tmp;
    us_cli_data_t     data;
    us_cli_file_t     file;
    us_manifest_t    *m;
    struct dirent    *e;

    if (z->urls == 0 || z->sample == NULL) {
        return us_cli_usage(c);
    }

    tmp = getenv("TMPDIR");

    if (snprintf(dir, sizeof(dir), "%s/urlstore-size-XXXXXX",
                 tmp && *tmp ? tmp : "/tmp") >= (int) sizeof(dir)
        || mkdtemp(dir) == NULL)
    {
        return us_cli_fail("\"%s\" cannot be made: %s", dir, strerror(errno));
    }

    code = us_sizing_fill(z, dir);
    load = 0;
    disk = 0;

    if (code == US_CLI_DONE) {
        code = us_cli_data_open(&data, dir);
    }

    /* the size of the snapshot, and how long a start takes to load it */

    if (code == US_CLI_DONE) {
        load = -us_sizing_now();
        code = us_cli_data_load(&data, 0);
        load += us_sizing_now();

        if (code == US_CLI_DONE && data.rc != US_RECOVERY_OK) {
            code = us_cli_failed(dir, data.recovery.error.text);
        }

        m = &data.recovery.manifest;
        us_cli_data_file(&file, data.dirfd, US_SEGMENT_SNAPSHOT, m->snapshot,
                         m->uuid);
        disk = (double) file.size;

        code = us_cli_data_close(&data, code);
    }

    d = opendir(dir);

    while (d && (e = readdir(d)) != NULL) {
        (void) unlinkat(dirfd(d), e->d_name, 0);
    }

    if (d) {
        (void) closedir(d);
        (void) rmdir(dir);
    }

    if (code != US_CLI_DONE) {
        return code;
    }

    if (z->info.urls < US_SIZING_LEAST) {
        (void) us_cli_fail("the sample has %" PRIu64 " different URLs; at "
                           "least %d are needed", z->info.urls,
                           US_SIZING_LEAST);
        return US_CLI_REFUSED;
    }

    memory = (double) z->info.content / z->info.urls;
    disk /= z->info.urls;

    /* twice: the ring grows with the zone, and is a part of it */

    need = memory * z->urls * US_SIZING_SPARE;
    need += us_store_ring((size_t) need);
    need += need / 256 + (1 << 20);

    printf("sample     %" PRIu64 " lines, %" PRIu64 " different URLs, %"
           PRIu64 " refused\n", z->fill.files.lines, z->info.urls,
           z->fill.refused);
    printf("URLs       %.0f\n", z->urls);
    printf("memory     %.1f bytes a URL, %.0f MB\n", memory,
           memory * z->urls / (1 << 20) + 1);
    printf("SIZE       %.0fm\n", need / (1 << 20) + 1);
    printf("disk       %.1f bytes a URL, %.0f MB; at most %.0f MB\n", disk,
           disk * z->urls / (1 << 20) + 1,
           2 * disk * z->urls / (1 << 20) + 128);
    printf("restart    %.1f s on this machine\n",
           load / z->info.urls * z->urls);

    return US_CLI_DONE;
}


const us_cli_command_t  us_cli_sizing = {
    .name = "size",
    .run = us_sizing_command,
    .args = "",
    .summary = "print the SIZE, disk and restart time of a zone",
    .text =
        "Stores the URLs of a sample in a directory of its own, below $TMPDIR "
        "or /tmp, and multiplies: SIZE for urlstore_zone, a fifth more than "
        "the URLs need; the disk that path= takes, and at most, while a "
        "snapshot is written; the time that this machine takes to load a "
        "snapshot of so many URLs.",
    .options = us_sizing_list,
    .own = &us_sizing,
    .exits =
        " 0   all was done\n"
        " 1   the sample has less than 10,000 different URLs\n"
        " 2   wrong usage, or something could not be read or written"
};
