
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


#include "us_cli_data.h"
#include "us_fill.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_SIZING_SPARE  1.2          /* SIZE over what the URLs need */
#define US_SIZING_LEAST  10000        /* URLs that a sample must have */

/* memory is taken in chunks; a smaller store has smaller ones */

#define US_SIZING_MEMORY  ((size_t) 1 << 30)


enum {
    US_SIZING_URLS = US_CLI_LONG,
    US_SIZING_SAMPLE
};


typedef struct {
    double            urls;           /* of the zone */
    const char       *sample;
    int               profile;
    unsigned          sites:1;

    us_fill_t         fill;
    us_files_t        files;

    us_store_info_t   info;           /* at the end of the sample */
    uint64_t          disk;
    double            load;           /* seconds */
} us_sizing_t;


static int us_sizing_command(int argc, char **argv);
static int us_sizing_options(us_sizing_t *z, int argc, char **argv);
static int us_sizing_run(us_sizing_t *z);
static int us_sizing_fill(us_sizing_t *z, const char *dir);
static int us_sizing_snapshot(us_sizing_t *z, const char *dir);
static int us_sizing_lines(void *data, us_str_t *lines, size_t n);
static int us_sizing_load(us_sizing_t *z, const char *dir);
static void us_sizing_print(us_sizing_t *z);
static void us_sizing_remove(const char *dir);


static const us_cli_option_t  us_sizing_list[] = {
    { US_SIZING_URLS, "urls", "N", "The number of different URLs: 250000000, "
      "250M or 2.5e8." },
    { US_SIZING_SAMPLE, "sample", "FILE", "Lines of the same kind, packed or "
      "not; \"-\" is standard input. Of 100,000 different URLs or more, it "
      "says enough." },
    { 'p', "profile", "P", "The rules of the zone: crawler (the default), "
      "crawler-clean, aggressive or whatwg." },
    { 's', "sites", NULL, "Of a zone with sites=on." },
    { 0, NULL, NULL, NULL }
};


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
    .exits =
        " 0   all was done\n"
        " 1   the sample has less than 10,000 different URLs, or too long "
        "lines\n"
        " 2   wrong usage, or something could not be read or written"
};


static int
us_sizing_command(int argc, char **argv)
{
    int           code;
    us_sizing_t  *z;

    z = calloc(1, sizeof(us_sizing_t));

    if (z == NULL) {
        fprintf(stderr, "urlstore: out of memory\n");
        return US_CLI_USAGE;
    }

    code = us_sizing_options(z, argc, argv);

    if (code == US_CLI_DONE) {
        code = us_sizing_run(z);
    }

    free(z);

    return code;
}


static int
us_sizing_options(us_sizing_t *z, int argc, char **argv)
{
    int    key;
    char  *end;

    z->profile = US_PROFILE_CRAWLER;

    while ((key = us_cli_option(&us_cli_sizing, argc, argv)) != -1) {

        switch (key) {

        case US_SIZING_URLS:
            z->urls = us_cli_count(optarg, &end);

            if (*end != '\0' || z->urls == 0) {
                fprintf(stderr, "urlstore: --urls \"%.40s\" is not a number "
                        "of URLs from 1 to 1e12, such as 250M\n", optarg);
                return US_CLI_USAGE;
            }
            break;

        case US_SIZING_SAMPLE:
            z->sample = optarg;
            break;

        case 'p':
            z->profile = us_cli_profile(optarg);

            if (z->profile == -1) {
                return US_CLI_USAGE;
            }
            break;

        case 's':
            z->sites = 1;
            break;

        default:
            return us_cli_usage(&us_cli_sizing);
        }
    }

    if (z->urls == 0 || z->sample == NULL || optind != argc) {
        return us_cli_usage(&us_cli_sizing);
    }

    return US_CLI_DONE;
}


static int
us_sizing_run(us_sizing_t *z)
{
    int          code;
    char         dir[4096];
    const char  *tmp;

    tmp = getenv("TMPDIR");

    if (snprintf(dir, sizeof(dir), "%s/urlstore-size-XXXXXX",
                 tmp && *tmp ? tmp : "/tmp") >= (int) sizeof(dir)
        || mkdtemp(dir) == NULL)
    {
        fprintf(stderr, "urlstore: \"%s\" cannot be made: %s\n", dir,
                strerror(errno));
        return US_CLI_USAGE;
    }

    code = us_sizing_fill(z, dir);

    if (code == US_CLI_DONE) {
        code = us_sizing_load(z, dir);
    }

    us_sizing_remove(dir);

    if (code != US_CLI_DONE) {
        return code;
    }

    if (z->info.urls < US_SIZING_LEAST) {
        fprintf(stderr, "urlstore: the sample has %" PRIu64 " different "
                "URLs; at least %d are needed\n", z->info.urls,
                US_SIZING_LEAST);
        return US_CLI_REFUSED;
    }

    us_sizing_print(z);

    return us_files_code(&z->files);
}


static int
us_sizing_fill(us_sizing_t *z, const char *dir)
{
    int              rc, closed;
    us_embed_conf_t  conf;

    memset(&conf, 0, sizeof(us_embed_conf_t));
    conf.sites = z->sites;
    conf.size = US_SIZING_MEMORY;

    z->fill.full = "the sample is too large: a part of it is enough, as "
                   "head -n 10000000 gives it";

    rc = us_fill_open(&z->fill, dir, (us_profile_t) z->profile, US_WWW_FIRST,
                      &conf);

    if (rc == US_CLI_DONE) {
        z->files.take = us_sizing_lines;
        z->files.data = z;
        z->files.fresh = &z->fill.added;
        z->files.progress = 1;
        z->files.cut = 1;

        rc = us_files_init(&z->files) == 0
             ? us_files_run(&z->files, 1, (char **) &z->sample) : US_CLI_USAGE;

        us_files_end(&z->files);
        us_files_free(&z->files);
    }

    if (rc == US_CLI_DONE) {
        rc = us_fill_flush(&z->fill);
    }

    if (rc == US_CLI_DONE) {
        us_store_info(us_embed_store(z->fill.embed), &z->info);
        rc = us_sizing_snapshot(z, dir);
    }

    closed = us_fill_close(&z->fill);

    return z->files.failed ? US_CLI_USAGE : rc ? rc : closed;
}


/* writes a snapshot: a start reads it, and the disk always holds one */

static int
us_sizing_snapshot(us_sizing_t *z, const char *dir)
{
    int              rc, fd;
    us_manifest_t    m;
    us_disk_error_t  e;

    if (us_embed_sync(z->fill.embed) == -1) {
        return us_cli_failed(dir, us_embed_error(z->fill.embed));
    }

    fd = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd == -1) {
        return us_cli_failed(dir, strerror(errno));
    }

    rc = us_data_snapshot(us_embed_store(z->fill.embed), fd, NULL, NULL, NULL,
                          &m, &e);
    (void) close(fd);

    return rc == 0 ? US_CLI_DONE : us_cli_failed(dir, e.text);
}


static int
us_sizing_lines(void *data, us_str_t *lines, size_t n)
{
    us_sizing_t *z = data;

    int     rc;
    size_t  i;

    rc = US_CLI_DONE;

    for (i = 0; i < n && rc == US_CLI_DONE; i++) {
        rc = us_fill_line(&z->fill, lines[i]);
    }

    return rc;
}


/* the size of the snapshot, and how long a start takes to load it */

static int
us_sizing_load(us_sizing_t *z, const char *dir)
{
    int              code;
    us_cli_data_t    d;
    us_cli_file_t    f;
    us_manifest_t   *m;
    struct timespec  began, ended;

    code = us_cli_data_open(&d, dir);

    if (code != US_CLI_DONE) {
        return code;
    }

    (void) clock_gettime(CLOCK_MONOTONIC, &began);
    code = us_cli_data_load(&d, 0);
    (void) clock_gettime(CLOCK_MONOTONIC, &ended);

    z->load = ended.tv_sec - began.tv_sec
              + (ended.tv_nsec - began.tv_nsec) / 1e9;

    if (code == US_CLI_DONE && d.rc != US_RECOVERY_OK) {
        code = us_cli_failed(dir, d.recovery.error.text);
    }

    m = &d.recovery.manifest;
    us_cli_data_file(&f, d.dirfd, US_SEGMENT_SNAPSHOT, m->snapshot, m->uuid);
    z->disk = f.size;

    us_cli_data_close(&d);

    return code;
}


static void
us_sizing_print(us_sizing_t *z)
{
    double  memory, disk, need;

    memory = (double) z->info.content / z->info.urls;
    disk = (double) z->disk / z->info.urls;

    /* twice: the ring grows with the zone, and is a part of it */

    need = memory * z->urls * US_SIZING_SPARE;
    need += us_store_ring((size_t) need);
    need += need / 256 + (1 << 20);

    printf("sample     %" PRIu64 " lines, %" PRIu64 " different URLs, %"
           PRIu64 " refused\n", z->files.lines, z->info.urls,
           z->fill.refused);
    printf("URLs       %.0f\n", z->urls);
    printf("memory     %.1f bytes a URL, %.0f MB\n", memory,
           memory * z->urls / (1 << 20) + 1);
    printf("SIZE       %.0fm\n", need / (1 << 20) + 1);
    printf("disk       %.1f bytes a URL, %.0f MB; at most %.0f MB\n", disk,
           disk * z->urls / (1 << 20) + 1,
           2 * disk * z->urls / (1 << 20) + 128);
    printf("restart    %.1f s on this machine\n",
           z->load / z->info.urls * z->urls);
}


/* the directory and its files */

static void
us_sizing_remove(const char *dir)
{
    DIR            *d;
    struct dirent  *e;

    d = opendir(dir);

    if (d == NULL) {
        return;
    }

    while ((e = readdir(d)) != NULL) {
        (void) unlinkat(dirfd(d), e->d_name, 0);
    }

    (void) closedir(d);
    (void) rmdir(dir);
}
