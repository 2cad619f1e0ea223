
/*
 * A data directory as the commands see it: opened, loaded, looked at file by
 * file.  See us_cli_data.h.
 */


#include "us_cli_data.h"
#include "../us_process.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>


static void
us_cli_data_nolock(void *data)
{
}


static void
us_cli_data_init(us_cli_data_t *d, const char *path)
{
    memset(d, 0, sizeof(us_cli_data_t));
    d->path = path;
    d->recovery.readers = -1;
    d->dirfd = -1;
    d->lock = -1;
}


int
us_cli_data_open(us_cli_data_t *d, const char *path)
{
    int     code;
    char    text[PATH_MAX];
    glob_t  found;

    us_cli_data_init(d, path);

    d->dirfd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (d->dirfd == -1) {
        return us_cli_failed(path, strerror(errno));
    }

    code = US_CLI_DONE;

    /* a folder that has one store in it is easily taken for that store */

    if (faccessat(d->dirfd, US_MANIFEST_NAME, F_OK, 0) == -1
        && (size_t) snprintf(text, sizeof(text), "%s/*/" US_MANIFEST_NAME,
                             path) < sizeof(text)
        && glob(text, GLOB_NOSORT, NULL, &found) == 0)
    {
        if (found.gl_pathc == 1) {
            snprintf(text, sizeof(text), "there is no store in it; did you "
                     "mean \"%.*s\"?", (int) (strlen(found.gl_pathv[0])
                     - sizeof("/" US_MANIFEST_NAME) + 1), found.gl_pathv[0]);
            code = us_cli_failed(path, text);
        }

        globfree(&found);
    }

    us_manifest_boot(d->boot);
    d->marked = (us_watermark_read(d->dirfd, &d->mark) == 0);

    return code;
}


int
us_cli_data_read(us_cli_data_t *d, const char *path, int lookup)
{
    return us_cli_data_open(d, path) || us_cli_data_load(d, lookup)
           || us_cli_data_result(d) ? US_CLI_USAGE : US_CLI_DONE;
}


int
us_cli_data_result(const us_cli_data_t *d)
{
    if (d->rc == US_RECOVERY_FRESH) {
        return us_cli_data_none(d);
    }

    if (d->rc != US_RECOVERY_OK) {
        (void) us_cli_failed(d->path, d->recovery.error.text);
        return US_CLI_REFUSED;
    }

    return US_CLI_DONE;
}


uint64_t
us_cli_data_answered(const us_cli_data_t *d)
{
    const us_manifest_t  *m;

    m = &d->recovery.manifest;

    if (us_manifest_closed(m)) {
        return m->end;
    }

    if (!d->marked || !us_manifest_marked(m, &d->mark)) {
        return 0;
    }

    /* what was not durable is lost with the machine: that was the promise */

    return us_manifest_same_boot(m, d->boot) ? d->mark.written
                                             : d->mark.durable;
}


int
us_cli_data_none(const us_cli_data_t *d)
{
    return us_cli_failed(d->path, "there is no store in it");
}


int
us_cli_data_own(us_cli_data_t *d, const char *path,
    const us_embed_conf_t *conf)
{
    int   code;
    char  error[US_EMBED_ERROR];

    us_cli_data_init(d, path);

    if (conf->norm.len == 0 || access(path, F_OK) == 0) {
        code = us_cli_data_open(d, path);

        if (code != US_CLI_DONE) {
            return code;
        }
    }

    if (conf->norm.len == 0
        && faccessat(d->dirfd, US_MANIFEST_NAME, F_OK, 0) == -1)
    {
        return us_cli_data_none(d);
    }

    d->embed = us_embed_open(path, conf, error);

    if (d->embed == NULL) {
        return us_cli_failed(path, error);
    }

    d->store = us_embed_store(d->embed);

    return US_CLI_DONE;
}


int
us_cli_data_lock(us_cli_data_t *d)
{
    d->lock = us_disk_lock(d->dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

    return d->lock != -1 ? US_CLI_DONE
           : us_cli_failed(d->path, errno == EWOULDBLOCK
                           ? "it has an owner; stop the service first"
                           : strerror(errno));
}


int
us_cli_data_failed(const us_cli_data_t *d)
{
    return us_cli_failed(d->path, us_embed_error(d->embed));
}


int
us_cli_data_rules(us_cli_data_t *d)
{
    us_store_conf_t  conf;

    us_store_conf(d->store, &conf);
    d->norm = us_norm_of(conf.norm);
    d->ws = d->norm ? us_norm_ws_create(d->norm) : NULL;

    return d->ws ? US_CLI_DONE
           : us_cli_fail("\"%s\" was normalized by %.*s, which this version "
                         "does not have", d->path, (int) conf.norm.len,
                         conf.norm.data);
}


int
us_cli_data_close(us_cli_data_t *d, int code)
{
    char  error[US_EMBED_ERROR];

    if (d->path == NULL) {
        return code;
    }

    us_recovery_close(&d->recovery);
    us_norm_ws_destroy(d->ws);
    us_norm_destroy(d->norm);

    if (d->embed && us_embed_close(d->embed, error) == -1) {
        code = us_cli_failed(d->path, error);
    }

    if (d->mem && d->store) {
        us_store_close(d->store);
    }

    if (d->mem) {
        (void) munmap(d->mem, d->size);
    }

    if (d->lock != -1) {
        (void) close(d->lock);
    }

    if (d->dirfd != -1) {
        (void) close(d->dirfd);
    }

    return code;
}


static int
us_cli_data_apply(void *data, const uint8_t *p, size_t len)
{
    us_cli_data_t  *d = data;

    return d->store ? us_data_apply(d->store, p, len) : 0;
}


int
us_cli_data_load(us_cli_data_t *d, int lookup)
{
    us_recovery_t   *r;
    us_data_text_t   text;
    us_store_conf_t  conf;
    us_store_lock_t  lock = { us_cli_data_nolock, us_cli_data_nolock, NULL };

    r = &d->recovery;

    d->rc = us_recovery_open(r, d->dirfd, &us_data_ops, us_cli_data_apply, d,
                             d->boot);

    if (d->rc != US_RECOVERY_OK) {
        return US_CLI_DONE;
    }

    if (us_data_conf(&r->manifest, &conf, &text, &r->error) == -1) {
        d->rc = US_RECOVERY_FAILED;
        return US_CLI_DONE;
    }

    if (getrandom(conf.hash_key, sizeof(conf.hash_key), 0)
        != sizeof(conf.hash_key))
    {
        return us_cli_fail("no random bytes: %s", strerror(errno));
    }

    conf.lookup = lookup;

    /* three quarters of the memory, of which only what is used counts */

    d->size = (size_t) us_process_memory("") / 4 * 3;

    d->mem = mmap(NULL, d->size, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (d->mem == MAP_FAILED) {
        d->mem = NULL;
        return us_cli_fail("no memory: %s", strerror(errno));
    }

    if (us_store_format(d->mem, d->size, &conf) == 0) {
        d->store = us_store_open(d->mem, &lock);
    }

    if (d->store == NULL) {
        return us_cli_fail("no memory for a store");
    }

    r->whole = 1;
    d->rc = us_recovery_run(r, 0);

    if (r->instead.text[0]) {
        (void) us_cli_failed(d->path, r->instead.text);
    }

    (void) us_store_set_lsn(d->store, r->lsn);

    return US_CLI_DONE;
}


void
us_cli_data_file(us_cli_file_t *f, int dirfd, us_segment_kind_t kind,
    uint64_t lsn, const uint8_t *uuid)
{
    char            name[US_DISK_NAME];
    uint64_t        at;
    us_block_t      b;
    us_reader_t    *r;
    const uint8_t  *p;

    memset(f, 0, sizeof(us_cli_file_t));

    r = &f->r;
    us_segment_name(name, kind, lsn);

    f->end = us_reader_open(r, dirfd, name, kind, uuid, &us_data_ops,
                            US_READ_CACHE);

    while (f->end == US_READ_BLOCK) {
        f->end = us_reader_next(r, &b, &p);
    }

    f->error = r->error;
    f->size = r->fd == -1 ? 0 : us_reader_size(r);

    if (f->end == US_READ_BAD) {
        for (at = us_reader_probe(r, r->at.offset + 1, &b);
             at != 0;
             at = us_reader_probe(r, at + US_BLOCK_HEADER + b.len, &b))
        {
            f->follow++;
        }
    }

    us_reader_close(r);
}
