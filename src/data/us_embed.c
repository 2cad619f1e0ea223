
/*
 * See us_embed.h.
 *
 *     open     lock, recovery, store in private memory, writer attached
 *     add      store -> ring -> us_embed_write() -> journal
 *     close    sync, manifest says "closed in order", lock given back
 */


#include "us_embed.h"
#include "us_data.h"
#include "../journal/us_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


#define US_EMBED_RING      (8 * 1024 * 1024)
#define US_EMBED_SNAPSHOT  (64 * 1024 * 1024)

/* journal bytes that a start replays in some milliseconds */
#define US_EMBED_REPLAY    (1024 * 1024)


struct us_embed_s {
    us_embed_conf_t   conf;
    int               dirfd;
    int               lockfd;
    void             *mem;            /* the store's, or NULL */
    size_t            size;
    us_store_t       *store;
    pthread_mutex_t   mutex;

    us_recovery_t     recovery;
    us_writer_t       writer;
    us_tail_t         tail;
    uint64_t          covered;        /* LSN of the last snapshot */
    int               writing;        /* the writer is attached */
    us_disk_error_t   error;
};


static int us_embed_take(us_embed_t *e, const char *path);
static int us_embed_load(us_embed_t *e);
static us_recovery_rc_t us_embed_recover(us_embed_t *e);
static int us_embed_fresh(us_embed_t *e);
static int us_embed_format(us_embed_t *e, us_store_conf_t *conf);
static int us_embed_write(us_embed_t *e);
static int us_embed_snapshot(us_embed_t *e);
static void us_embed_free(us_embed_t *e);


static void
us_embed_lock(void *data)
{
    (void) pthread_mutex_lock(data);
}


static void
us_embed_unlock(void *data)
{
    (void) pthread_mutex_unlock(data);
}


us_embed_t *
us_embed_open(const char *path, const us_embed_conf_t *conf, char *error)
{
    us_embed_t  *e;

    e = calloc(1, sizeof(us_embed_t));

    if (e == NULL) {
        snprintf(error, US_EMBED_ERROR, "out of memory");
        return NULL;
    }

    e->conf = *conf;
    e->dirfd = -1;
    e->lockfd = -1;
    e->recovery.readers = -1;
    (void) pthread_mutex_init(&e->mutex, NULL);

    if (e->conf.snapshot == 0) {
        e->conf.snapshot = US_EMBED_SNAPSHOT;
    }

    if (us_embed_take(e, path) == -1 || us_embed_load(e) == -1) {
        snprintf(error, US_EMBED_ERROR, "%s", e->error.text);
        us_embed_free(e);
        return NULL;
    }

    return e;
}


/* the directory and its lock */

static int
us_embed_take(us_embed_t *e, const char *path)
{
    if (mkdir(path, 0700) == -1 && errno != EEXIST) {
        return us_disk_fail(&e->error, errno, "mkdir() failed");
    }

    e->dirfd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (e->dirfd == -1) {
        return us_disk_fail(&e->error, errno, "open() failed");
    }

    if (us_dir_alone(e->dirfd, &e->error) == -1) {
        return -1;
    }

    e->lockfd = us_disk_lock(e->dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

    if (e->lockfd == -1) {
        return errno == EWOULDBLOCK
               ? us_disk_fail(&e->error, 0, "it is owned by another process; "
                              "only one may own it")
               : us_disk_fail(&e->error, errno, "it cannot be locked");
    }

    return 0;
}


static int
us_embed_apply(void *data, const uint8_t *p, size_t len)
{
    us_embed_t  *e = data;

    return us_data_apply(e->store, p, len);
}


static int
us_embed_load(us_embed_t *e)
{
    char               boot[US_BOOT_ID + 1];
    us_recovery_t     *r;
    us_store_conf_t    conf;
    us_recovery_rc_t   rc;

    r = &e->recovery;
    us_manifest_boot(boot);

    rc = us_recovery_open(r, e->dirfd, &us_data_ops, us_embed_apply, e, boot);

    if (rc == US_RECOVERY_FRESH) {
        rc = us_embed_fresh(e) == 0 ? US_RECOVERY_OK : US_RECOVERY_FAILED;

    } else if (rc == US_RECOVERY_OK) {
        rc = us_embed_recover(e);
    }

    if (rc != US_RECOVERY_OK) {
        e->error = r->error;
        return -1;
    }

    if (us_data_settle(e->store, e->dirfd, &r->tail, "off", &e->error) != 0) {
        return -1;
    }

    e->tail = r->tail;
    e->covered = e->tail.lsn;

    /* an owner that goes on reading could not remove files */

    us_recovery_close(r);

    us_store_conf(e->store, &conf);
    us_writer_init(&e->writer, e->dirfd, conf.uuid, conf.epoch, boot,
                   &us_data_ops);
    e->writing = 1;

    if (us_writer_attach(&e->writer, &e->tail) != 0) {
        e->error = e->writer.error;
        return -1;
    }

    us_store_set_written(e->store, e->tail.lsn);
    us_store_set_durable(e->store, e->tail.lsn);

    return 0;
}


static us_recovery_rc_t
us_embed_recover(us_embed_t *e)
{
    us_recovery_t     *r;
    us_data_text_t     text;
    us_store_conf_t    conf, wanted;
    us_recovery_rc_t   rc;

    r = &e->recovery;

    if (us_data_conf(&r->manifest, &conf, &text, &r->error) == -1) {
        return US_RECOVERY_FAILED;
    }

    wanted = conf;
    wanted.norm = e->conf.norm;

    if (e->conf.revisit) {
        wanted.revisit = e->conf.revisit;
    }

    if (us_data_differs(&r->manifest, &wanted, &r->error) == -1) {
        return US_RECOVERY_FAILED;
    }

    conf.sites |= e->conf.sites;
    conf.revisit = wanted.revisit;

    if (us_embed_format(e, &conf) == -1) {
        return US_RECOVERY_FAILED;
    }

    rc = us_recovery_run(r, 1);

    if (rc != US_RECOVERY_OK) {
        return rc;
    }

    if (us_store_set_lsn(e->store, r->lsn) == -1) {
        us_disk_fail(&r->error, 0, "the snapshot's index has more ids than "
                     "the snapshot gives");
        return US_RECOVERY_DAMAGED;
    }

    us_store_set_identity(e->store, r->manifest.uuid,
                          r->manifest.epoch + r->lost);

    return US_RECOVERY_OK;
}


static int
us_embed_fresh(us_embed_t *e)
{
    us_store_conf_t  conf;

    memset(&conf, 0, sizeof(us_store_conf_t));
    conf.norm = e->conf.norm;
    conf.sites = e->conf.sites;
    conf.revisit = e->conf.revisit;
    conf.epoch = 1;

    if (getrandom(conf.uuid, 16, 0) != 16) {
        return us_disk_fail(&e->recovery.error, errno, "no random bytes");
    }

    return us_embed_format(e, &conf);
}


/* an empty store; memory counts when it is used */

static int
us_embed_format(us_embed_t *e, us_store_conf_t *conf)
{
    us_disk_error_t  *error;
    us_store_lock_t   lock = { us_embed_lock, us_embed_unlock, &e->mutex };

    error = &e->recovery.error;
    conf->ring = US_EMBED_RING;
    e->size = e->conf.size;

    if (e->size == 0) {
        e->size = (size_t) sysconf(_SC_PHYS_PAGES) / 4 * 3
                  * (size_t) sysconf(_SC_PAGESIZE);
    }

    if (getrandom(conf->hash_key, 16, 0) != 16) {
        return us_disk_fail(error, errno, "no random bytes");
    }

    e->mem = mmap(NULL, e->size, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (e->mem == MAP_FAILED) {
        e->mem = NULL;
        return us_disk_fail(error, errno, "mmap(%zu) failed", e->size);
    }

    if (us_store_format(e->mem, e->size, conf) == -1) {
        return us_disk_fail(error, 0, "%zu bytes are too few: a store needs "
                            "%zu", e->size, us_store_min_size(conf));
    }

    e->store = us_store_open(e->mem, &lock);

    return e->store ? 0 : us_disk_fail(error, errno, "out of memory");
}


us_store_t *
us_embed_store(us_embed_t *e)
{
    return e->store;
}


us_store_t *
us_embed_handle(us_embed_t *e)
{
    us_store_lock_t  lock = { us_embed_lock, us_embed_unlock, &e->mutex };

    return us_store_open(e->mem, &lock);
}


const char *
us_embed_error(const us_embed_t *e)
{
    return e->error.text;
}


int
us_embed_add(us_embed_t *e, us_store_item_t *items, size_t n)
{
    return us_embed_add_older(e, items, n, 0);
}


int
us_embed_add_older(us_embed_t *e, us_store_item_t *items, size_t n,
    uint32_t older)
{
    us_store_time(e->store, (uint64_t) time(NULL));

    for ( ;; ) {
        us_store_add_older(e->store, items, n, older);

        if (us_embed_write(e) == -1) {
            return -1;
        }

        /* the ring was full, and is empty now */

        while (n && items->status != US_BUSY) {
            items++;
            n--;
        }

        if (n == 0) {
            break;
        }
    }

    if (e->tail.lsn - e->covered >= e->conf.snapshot) {
        return us_embed_snapshot(e);
    }

    return 0;
}


int
us_embed_claim(us_embed_t *e, us_store_claim_t *claims, size_t n, uint64_t at)
{
    us_store_time(e->store, (uint64_t) time(NULL));

    for ( ;; ) {
        us_store_claim(e->store, claims, n, at);

        if (us_embed_write(e) == -1) {
            return -1;
        }

        while (n && claims->status != US_BUSY) {
            claims++;
            n--;
        }

        if (n == 0) {
            return 0;
        }
    }
}


int
us_embed_learn(us_embed_t *e)
{
    if (us_store_train_due(e->store) && us_store_train(e->store, NULL)) {
        return us_embed_write(e);
    }

    return 0;
}


/* appends what the store has published, and lets the ring reuse its bytes */

static int
us_embed_write(us_embed_t *e)
{
    uint64_t  before;
    us_str_t  pieces[2];

    while (e->tail.lsn < us_store_published(e->store)) {
        before = e->tail.lsn;
        us_store_ops(e->store, before, pieces);

        if (us_writer_append(&e->writer, &e->tail, pieces,
                             us_store_durable(e->store))
            != 0
            || us_writer_mark(&e->writer, &e->tail,
                              us_store_durable(e->store), e->tail.lsn)
               != 0)
        {
            e->error = e->writer.error;
            return -1;
        }

        us_store_set_written(e->store, e->tail.lsn);

        if (e->tail.lsn == before) {
            return us_disk_fail(&e->error, 0, "no whole operation in the "
                                "ring");
        }
    }

    return 0;
}


int
us_embed_sync(us_embed_t *e)
{
    if (us_writer_sync(&e->writer, &e->tail) != 0
        || us_writer_mark(&e->writer, &e->tail, e->tail.lsn, e->tail.lsn) != 0)
    {
        e->error = e->writer.error;
        return -1;
    }

    us_store_set_durable(e->store, e->tail.lsn);

    return 0;
}


static int
us_embed_snapshot(us_embed_t *e)
{
    us_manifest_t  m;

    if (us_embed_sync(e) == -1) {
        return -1;
    }

    if (us_data_snapshot(e->store, e->dirfd, NULL, NULL, NULL, &m, &e->error)
        != 0)
    {
        return -1;
    }

    e->covered = e->tail.lsn;

    return 0;
}


int
us_embed_close(us_embed_t *e, char *error)
{
    int  rc;

    rc = us_embed_sync(e);

    if (rc == 0 && e->tail.lsn - e->covered >= US_EMBED_REPLAY) {
        rc = us_embed_snapshot(e);
    }

    if (rc == 0) {
        rc = us_recovery_clean(e->dirfd, e->tail.lsn, e->tail.ids,
                               &e->error);
    }

    if (rc != 0) {
        snprintf(error, US_EMBED_ERROR, "%s", e->error.text);
    }

    us_embed_free(e);

    return rc == 0 ? 0 : -1;
}


static void
us_embed_free(us_embed_t *e)
{
    us_recovery_close(&e->recovery);

    if (e->writing) {
        us_writer_close(&e->writer);
    }

    if (e->store) {
        us_store_close(e->store);
    }

    if (e->mem) {
        (void) munmap(e->mem, e->size);
    }

    if (e->lockfd != -1) {
        (void) close(e->lockfd);
    }

    if (e->dirfd != -1) {
        (void) close(e->dirfd);
    }

    (void) pthread_mutex_destroy(&e->mutex);
    free(e);
}
