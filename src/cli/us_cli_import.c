
/*
 * urlstore import [--profile P] [--www first|keep|strip] DIR [FILE...]
 *
 * Adds a URL a line to a data directory, which is made if it is empty; lines
 * of a dump, "ID<TAB>URL", are accepted, too.  The directory must have no
 * owner.  Ids are given in the order of the lines: to keep ids, copy the
 * directory instead.
 *
 * Everything is on the disk when it returns.
 */


#include "us_cli_data.h"
#include "us_files.h"
#include "../url/us_normalize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>


#define US_IMPORT_RING      (8 * 1024 * 1024)
#define US_IMPORT_SNAPSHOT  (1024 * 1024)     /* bytes of the journal */


static int us_import_command(int argc, char **argv);


static const us_cli_option_t  us_import_list[] = {
    { 'p', "profile", "P", "The rules of a new store: crawler (the default), "
      "crawler-clean, aggressive, whatwg or strict-rfc3986." },
    { 'w', "www", "HOW", "Of a new store, what www. in front of a host means: "
      "first (the default), keep, strip." },
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
        "does not exist. Lines of a dump, \"ID<TAB>URL\", are accepted, too. "
        "Ids are given in the order of the lines: to keep ids, use backup and "
        "restore instead. No "
        "service may own DIR. All is on the disk when the command ends.",
    .options = us_import_list,
    .exits =
        " 0   all was added\n"
        " 1   lines were refused, or DIR cannot be written to as it is\n"
        " 2   wrong usage, or something could not be read or written"
};


typedef struct {
    us_cli_data_t     d;
    us_norm_t        *norm;
    us_norm_ws_t     *ws;
    us_writer_t       w;
    us_tail_t         tail;
    uint64_t          begun;          /* the LSN before the first line */

    us_files_t        files;
    unsigned          n;              /* items waiting */
    us_store_item_t   items[US_STORE_GROUP];
    uint8_t           text[US_STORE_GROUP][US_URL_MAX];

    uint64_t          lines;
    uint64_t          added;
    uint64_t          seen;
    uint64_t          refused;
} us_import_t;


/* writes what the store has published */

static int
us_import_write(us_import_t *im)
{
    uint64_t  before;
    us_str_t  pieces[2];

    while (im->tail.lsn < us_store_published(im->d.store)) {
        before = im->tail.lsn;
        us_store_ops(im->d.store, before, pieces);

        if (us_writer_append(&im->w, &im->tail, pieces, 0) != 0
            || im->tail.lsn == before)
        {
            return -1;
        }

        us_store_set_written(im->d.store, im->tail.lsn);
    }

    return 0;
}


static int
us_import_group(us_import_t *im)
{
    unsigned  i, done, full;

    for (done = 0; done < im->n; /* void */ ) {

        us_store_add(im->d.store, im->items + done, im->n - done);

        full = 0;

        for (i = done; i < im->n && im->items[i].status != US_BUSY; i++) {
            full |= (im->items[i].status == US_FULL);
            im->added += (im->items[i].status == US_NEW);
            im->seen += (im->items[i].status == US_SEEN);
        }

        if (us_import_write(im) == -1) {
            return -1;
        }

        if (full) {
            return us_disk_fail(&im->w.error, 0, "no memory for more URLs");
        }

        done = i;
    }

    im->n = 0;

    /* a model is in the store's stream, too: no snapshot may have more of it */

    if (us_store_train_due(im->d.store)
        && us_store_train(im->d.store, NULL))
    {
        return us_import_write(im);
    }

    return 0;
}


static int
us_import_line(us_import_t *im, us_str_t in)
{
    size_t            n;
    us_canon_t        canon;
    us_store_item_t  *item;

    /* "ID<TAB>" of a dump */

    for (n = 0; n < in.len && in.data[n] >= '0' && in.data[n] <= '9'; n++) {
        /* void */
    }

    if (n && n < in.len && in.data[n] == '\t') {
        in.data += n + 1;
        in.len -= n + 1;
    }

    if (in.len == 0 || (in.len == 1 && *in.data == '-')) {
        return 0;
    }

    im->lines++;

    if (us_normalize(im->norm, im->ws, in, NULL, &canon) != US_URL_OK) {
        im->refused++;
        return 0;
    }

    item = &im->items[im->n];
    memset(item, 0, sizeof(us_store_item_t));
    memcpy(im->text[im->n], canon.url.href.data, canon.url.href.len);
    item->url = (us_str_t) { canon.url.href.len, im->text[im->n] };
    item->merge = canon.merge;

    return (++im->n == US_STORE_GROUP) ? us_import_group(im) : 0;
}


static int
us_import_lines(void *data, us_str_t *lines, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (us_import_line(data, lines[i]) != 0) {
            return US_CLI_USAGE;
        }
    }

    return 0;
}


/* what is there already, or a new store; error in d.recovery.error */

static int
us_import_open(us_import_t *im)
{
    us_manifest_t    *m;
    us_cli_data_t    *d;
    us_store_conf_t   conf;

    d = &im->d;
    m = &d->recovery.manifest;

    if (us_cli_data_load(d, 0, 1, US_IMPORT_RING) != US_CLI_DONE) {
        return -1;
    }

    memset(&conf, 0, sizeof(us_store_conf_t));
    conf.norm = us_norm_signature(im->norm);
    conf.ring = US_IMPORT_RING;
    conf.epoch = 1;

    if (d->rc == US_RECOVERY_FRESH) {

        if (getrandom(conf.uuid, 16, 0) != 16
            || getrandom(conf.hash_key, 16, 0) != 16)
        {
            return us_disk_fail(&d->recovery.error, errno, "no random bytes");
        }

        if (us_cli_data_format(d, &conf) != US_CLI_DONE
            || us_data_describe(m, &conf) == -1)
        {
            return -1;
        }

        return us_recovery_create(d->dirfd, m, d->boot, "off",
                                  &d->recovery.error);
    }

    if (d->rc != US_RECOVERY_OK) {
        return -1;
    }

    us_store_conf(d->store, &conf);
    conf.norm = us_norm_signature(im->norm);

    if (us_data_differs(m, &conf, &d->recovery.error) == -1) {
        return -1;
    }

    im->tail = d->recovery.tail;
    im->begun = im->tail.lsn;

    return us_recovery_finish(&d->recovery, "off");
}


static int
us_import_run(us_import_t *im, int n, char **names)
{
    int  rc;

    us_writer_init(&im->w, im->d.dirfd, im->d.recovery.manifest.uuid,
                   im->d.recovery.manifest.epoch, im->d.boot, &us_data_ops);

    rc = us_writer_attach(&im->w, &im->tail);

    if (rc == 0) {
        rc = us_files_run(&im->files, n, names);
        us_files_end(&im->files);
    }

    if (rc == 0) {
        rc = us_import_group(im);
    }

    if (rc == 0) {
        rc = us_writer_sync(&im->w, &im->tail);
    }

    if (rc == 0) {
        rc = us_writer_mark(&im->w, &im->tail, im->tail.lsn, im->tail.lsn);
    }

    /* much that is new: the next start need not read it line by line */

    if (rc == 0 && im->tail.lsn - im->begun >= US_IMPORT_SNAPSHOT) {

        /* nobody removes files while somebody reads, and that was us */
        us_recovery_close(&im->d.recovery);

        rc = us_data_snapshot(im->d.store, im->d.dirfd, NULL, NULL,
                              &im->d.recovery.manifest, &im->w.error);
    }

    if (rc == 0) {
        rc = us_recovery_clean(im->d.dirfd, im->tail.lsn, im->tail.ids,
                               &im->w.error);
    }

    us_writer_close(&im->w);

    return rc;
}


static int
us_import_www(const char *name)
{
    return strcmp(name, "first") == 0 ? US_WWW_FIRST
           : strcmp(name, "keep") == 0 ? US_WWW_KEEP
           : strcmp(name, "strip") == 0 ? US_WWW_STRIP : -1;
}


/* NULL: wrong options, or no memory */

static us_norm_t *
us_import_norm(int argc, char **argv)
{
    int         key, profile, www;
    us_norm_t  *norm;

    profile = US_PROFILE_CRAWLER;
    www = US_WWW_FIRST;

    while ((key = us_cli_option(&us_cli_import, argc, argv)) != -1) {

        if (key == 'p') {
            profile = us_profile_parse((us_str_t) { strlen(optarg),
                                                    (uint8_t *) optarg });

        } else if (key == 'w') {
            www = us_import_www(optarg);
        }

        if (key == '?' || profile == -1 || www == -1) {
            return NULL;
        }
    }

    if (optind == argc) {
        return NULL;
    }

    norm = us_norm_create((us_profile_t) profile);

    if (norm) {
        us_norm_set_www(norm, (us_www_t) www);

        if (us_norm_seal(norm) != 0) {
            us_norm_destroy(norm);
            return NULL;
        }
    }

    return norm;
}


static int
us_import_command(int argc, char **argv)
{
    int           code, lock;
    us_norm_t    *norm;
    us_import_t  *im;

    norm = us_import_norm(argc, argv);

    if (norm == NULL) {
        return us_cli_usage(&us_cli_import);
    }

    im = calloc(1, sizeof(us_import_t));

    if (im == NULL) {
        us_norm_destroy(norm);
        return US_CLI_USAGE;
    }

    im->files.take = us_import_lines;
    im->files.data = im;
    im->files.fresh = &im->added;
    im->files.progress = 1;
    im->files.cut = 1;

    if (us_files_init(&im->files) == -1) {
        us_norm_destroy(norm);
        free(im);
        return US_CLI_USAGE;
    }

    im->norm = norm;
    im->ws = us_norm_ws_create(norm);

    (void) mkdir(argv[optind], 0700);
    code = us_cli_data_open(&im->d, argv[optind]);
    lock = -1;

    if (code == US_CLI_DONE) {
        lock = us_disk_lock(im->d.dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

        if (lock == -1) {
            fprintf(stderr, "urlstore: \"%s\" cannot be locked: %s\n",
                    im->d.path, errno == EWOULDBLOCK ? "it has an owner"
                                                     : strerror(errno));
            code = US_CLI_USAGE;
        }
    }

    if (code == US_CLI_DONE) {

        if (im->ws == NULL || us_import_open(im) != 0) {
            fprintf(stderr, "urlstore: \"%s\": %s\n", im->d.path,
                    im->d.recovery.error.text);
            code = US_CLI_REFUSED;

        } else if (us_import_run(im, argc - optind - 1, argv + optind + 1)
                   != 0)
        {
            fprintf(stderr, "urlstore: \"%s\": %s\n", im->d.path,
                    im->w.error.text);
            code = US_CLI_USAGE;
        }

        fprintf(stderr, "urlstore: %" PRIu64 " lines: %" PRIu64 " new, %"
                PRIu64 " seen, %" PRIu64 " refused\n", im->lines, im->added,
                im->seen, im->refused);
    }

    if (code == US_CLI_DONE) {
        code = us_files_code(&im->files);
    }

    if (code == US_CLI_DONE && im->refused) {
        code = US_CLI_REFUSED;
    }

    us_files_free(&im->files);

    if (im->d.dirfd != -1) {
        us_cli_data_close(&im->d);
    }

    if (lock != -1) {
        (void) close(lock);
    }

    us_norm_ws_destroy(im->ws);
    us_norm_destroy(norm);
    free(im);

    return code;
}
