
/*
 * See us_embed.h: the life of a store on disk (us_life.h) of one process, whose
 * jobs run at once, in the thread of the caller.
 *
 *     open     lock, us_life_start(); the loader's job
 *     add      store -> ring; the writer's job; the keeper's, if it is due
 *     sync     us_write_all()
 *     close    us_life_close()
 *
 * So a failed sync ends the writing for good, a segment that is removed is
 * replaced by a snapshot, and short sessions are counted together, all by the
 * code that serves a zone.
 */


#include "us_embed.h"
#include "us_job.h"
#include "../journal/us_dir.h"
#include "../us_clock.h"

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
    us_life_t         life;
    us_share_t        share;
    us_data_text_t    text;           /* of life.conf.store */
    char             *path;           /* absolute */
    pthread_mutex_t   mutex;
    us_disk_error_t   error;
};


/* us_life_env_t, and the store's lock */

static uint64_t
us_embed_now(void *data)
{
    return us_clock_running();
}


static int
us_embed_start(void *data, us_job_t *job)
{
    us_job_run(job);
    us_job_done(job);

    return 0;
}


static int
us_embed_durable(us_embed_t *e)
{
    us_tail_t  tail;

    return us_write_all(&e->life, e->life.store, UINT64_MAX, &tail, &e->error);
}


/* the keeper waits until all is durable: nobody else makes it so */

static void
us_embed_pause(void *data, unsigned ms)
{
    us_embed_t *e = data;

    struct timespec  ts = { 0, ms * 1000000L };

    if (us_embed_durable(e) == -1) {
        (void) nanosleep(&ts, NULL);
    }
}


static int
us_embed_no(void *data)
{
    return 0;
}


static void
us_embed_moved(void *data)
{
}


static void
us_embed_say(void *data, us_say_t level, const char *text)
{
    us_embed_t *e = data;

    if (level >= US_SAY_ERROR) {
        us_disk_fail(&e->error, 0, "%s", text);
    }
}


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


/* the directory and its lock */

static int
us_embed_take(us_embed_t *e, const char *path)
{
    us_life_t  *l;

    l = &e->life;

    if (mkdir(path, 0700) == -1 && errno != EEXIST) {
        return us_disk_fail(&e->error, errno, "mkdir() failed%s",
                            errno == ENOENT ? ", as its parent directory is "
                                              "not there" : "");
    }

    /* the program may change its own directory */

    e->path = realpath(path, NULL);
    l->conf.path = e->path;
    l->dirfd = e->path ? open(e->path, O_RDONLY|O_DIRECTORY|O_CLOEXEC) : -1;

    if (l->dirfd == -1) {
        return us_disk_fail(&e->error, errno, "open() failed");
    }

    if (us_dir_alone(l->dirfd, &e->error) == -1) {
        return -1;
    }

    l->lockfd = us_disk_lock(l->dirfd, US_DIR_LOCK, O_RDWR, LOCK_EX|LOCK_NB);

    if (l->lockfd == -1) {
        return errno == EWOULDBLOCK
               ? us_disk_fail(&e->error, 0, "it is owned by another process; "
                              "only one may own it")
               : us_disk_fail(&e->error, errno, "it cannot be locked");
    }

    return 0;
}


/* what the directory has, and what the caller adds; or a new store */

static int
us_embed_conf(us_embed_t *e, const us_embed_conf_t *conf)
{
    us_manifest_t      m;
    us_store_conf_t   *c;
    us_manifest_rc_t   rc;

    c = &e->life.conf.store;
    rc = us_manifest_read(e->life.dirfd, &m, &e->error);

    if ((rc != US_MANIFEST_OK && rc != US_MANIFEST_NONE)
        || (rc == US_MANIFEST_OK
            && us_data_conf(&m, c, &e->text, &e->error) == -1))
    {
        return -1;
    }

    if (getrandom(c->hash_key, 16, 0) != 16
        || (rc == US_MANIFEST_NONE && getrandom(c->uuid, 16, 0) != 16))
    {
        return us_disk_fail(&e->error, errno, "no random bytes");
    }

    if (conf->norm.len == 0 && rc == US_MANIFEST_NONE) {
        return us_disk_fail(&e->error, 0, "there is no store in it");
    }

    c->norm = conf->norm.len ? conf->norm : c->norm;
    c->sites |= conf->sites;
    c->sets |= conf->sets;
    c->erases |= conf->erases;
    c->revisit = conf->revisit ? conf->revisit : c->revisit;
    c->epoch = rc == US_MANIFEST_NONE ? 1 : c->epoch;
    c->ring = US_EMBED_RING;

    return 0;
}


/* whether the disk refuses: -1, why is e->error */

static int
us_embed_refused(us_embed_t *e)
{
    char  reason[US_SHARE_REASON];

    return us_life_refuses(&e->life, reason)
           ? us_disk_fail(&e->error, 0, "%.470s", reason) : 0;
}


static void
us_embed_free(us_embed_t *e)
{
    us_life_t  *l;

    l = &e->life;

    us_life_stop(l);

    if (l->mem) {
        (void) munmap(l->mem, l->size);
    }

    if (l->lockfd != -1) {
        (void) close(l->lockfd);
    }

    if (l->dirfd != -1) {
        (void) close(l->dirfd);
    }

    (void) pthread_mutex_destroy(&e->mutex);
    free(e->path);
    free(e);
}


us_embed_t *
us_embed_open(const char *path, const us_embed_conf_t *conf, char *error)
{
    size_t       size;
    us_life_t   *l;
    us_embed_t  *e;

    e = calloc(1, sizeof(us_embed_t));

    if (e == NULL) {
        (void) snprintf(error, US_EMBED_ERROR, "out of memory");
        return NULL;
    }

    (void) pthread_mutex_init(&e->mutex, NULL);

    l = &e->life;
    l->sh = &e->share;
    l->lock = (us_store_lock_t) { us_embed_lock, us_embed_unlock, &e->mutex };
    l->env = (us_life_env_t) { us_embed_now, us_embed_start, us_embed_pause,
                               us_embed_no, us_embed_no, us_embed_moved,
                               us_embed_say, e };
    l->dirfd = -1;
    l->lockfd = -1;
    l->readers = -1;
    l->conf.sync = US_SYNC_OFF;
    l->conf.sync_name = "off";
    l->conf.snapshot = conf->snapshot ? conf->snapshot : US_EMBED_SNAPSHOT;

    if (us_embed_take(e, path) == -1 || us_embed_conf(e, conf) == -1) {
        goto failed;
    }

    /* an empty store; memory counts when it is used */

    size = conf->size ? conf->size : (size_t) us_process_memory("") / 4 * 3;
    l->size = size;
    l->mem = mmap(NULL, size, PROT_READ|PROT_WRITE,
                  MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (l->mem == MAP_FAILED) {
        l->mem = NULL;
        us_disk_fail(&e->error, errno, "mmap(%zu) failed", size);
        goto failed;
    }

    if (us_store_format(l->mem, size, &l->conf.store) == -1) {
        us_disk_fail(&e->error, 0, "%zu bytes are too few: a store needs %zu",
                     size, us_store_min_size(&l->conf.store));
        goto failed;
    }

    if (us_life_start(l) == 0) {
        (void) us_life_tick(l);
    }

    if (l->store == NULL || us_share_state(l->sh) != US_LIFE_READY) {
        us_disk_fail(&e->error, 0, "%.470s", l->sh->reason[0]
                     ? l->sh->reason : "out of memory");
        goto failed;
    }

    if (us_embed_refused(e) == -1) {
        goto failed;
    }

    return e;

failed:

    (void) snprintf(error, US_EMBED_ERROR, "%s", e->error.text);
    us_embed_free(e);

    return NULL;
}


us_store_t *
us_embed_store(us_embed_t *e)
{
    return e->life.store;
}


us_store_t *
us_embed_handle(us_embed_t *e)
{
    return us_store_open(e->life.mem, &e->life.lock);
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


/*
 * What the store has published is in the journal then.  After a failure the
 * caller decides when it is tried again, and not the time since then.
 */

static int
us_embed_write(us_embed_t *e)
{
    us_life_t  *l;

    l = &e->life;

    us_release(&l->sh->stalled_at[US_ROLE_WRITER], 0);
    us_life_write(l);
    us_keep(l);

    return us_embed_refused(e);
}


/*
 * What a call has left, as the ring was full, which is empty now: 1; 0: it has
 * done all; -1: the disk refuses.
 */

static int
us_embed_rest(us_embed_t *e, us_store_item_t **items, size_t *n)
{
    if (us_embed_write(e) == -1) {
        return -1;
    }

    while (*n && (*items)->status != US_BUSY) {
        (*items)++;
        (*n)--;
    }

    return *n != 0;
}


static int
us_embed_add_to(us_embed_t *e, us_store_item_t *items, size_t n,
    uint32_t older, const us_store_set_t *set)
{
    int  rc;

    us_store_time(e->life.store, (uint64_t) time(NULL));

    do {
        if (set) {
            us_store_add_set(e->life.store, items, n, *set, NULL);

        } else {
            us_store_add_older(e->life.store, items, n, older);
        }

        rc = us_embed_rest(e, &items, &n);
    } while (rc == 1);

    return rc;
}


int
us_embed_add_older(us_embed_t *e, us_store_item_t *items, size_t n,
    uint32_t older)
{
    return us_embed_add_to(e, items, n, older, NULL);
}


int
us_embed_add_set(us_embed_t *e, us_store_item_t *items, size_t n,
    us_store_set_t set)
{
    return us_embed_add_to(e, items, n, 0, &set);
}


/*
 * After a call that the ring may have refused: 0: it is done, 1: once more.
 * what: for which there may be no room.
 */

static int
us_embed_again(us_embed_t *e, us_store_status_t status, const char *what)
{
    if (us_embed_write(e) == -1) {
        return -1;
    }

    switch (status) {

    case US_BUSY:
        return 1;

    case US_FULL:
        return us_disk_fail(&e->error, 0, "there is no room for %s", what);

    case US_GONE:
        return us_disk_fail(&e->error, 0, "the erasure is over");

    default:
        return 0;
    }
}


int
us_embed_make_set(us_embed_t *e, us_str_t name, us_store_set_t *set)
{
    int                rc;
    uint64_t           lsn;
    us_store_status_t  status;

    us_store_time(e->life.store, (uint64_t) time(NULL));

    do {
        status = us_store_set_make(e->life.store, name,
                                   US_STORE_SETS + US_STORE_MARKS, set, &lsn);
        rc = us_embed_again(e, status, "another set");
    } while (rc == 1);

    return rc == 0 ? status == US_NEW : -1;
}


int
us_embed_drop_set(us_embed_t *e, us_store_set_t set)
{
    uint64_t           lsn;
    us_store_status_t  status;

    do {
        status = us_store_set_drop(e->life.store, set, &lsn);

        if (us_embed_write(e) == -1) {
            return -1;
        }

    } while (status == US_BUSY);

    return status == US_OK;
}


int
us_embed_claim(us_embed_t *e, us_store_claim_t *claims, size_t n, uint64_t at)
{
    us_store_time(e->life.store, (uint64_t) time(NULL));

    do {
        us_store_claim(e->life.store, claims, n, at);

        if (us_embed_write(e) == -1) {
            return -1;
        }

        while (n && claims->status != US_BUSY) {
            claims++;
            n--;
        }
    } while (n);

    return 0;
}


int
us_embed_erase_begin(us_embed_t *e, us_erasure_kind_t kind, us_str_t reason,
    uint64_t *number)
{
    int                 rc;
    uint8_t             random[16];
    uint64_t            lsn;
    us_store_status_t   status;

    us_store_time(e->life.store, (uint64_t) time(NULL));

    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        return us_disk_fail(&e->error, errno, "no random bytes");
    }

    do {
        status = us_store_erasure_begin(e->life.store, kind, reason, random,
                                        us_process_self(), NULL, number, &lsn);
        rc = us_embed_again(e, status, "an erasure");
    } while (rc == 1);

    return rc;
}


int
us_embed_erase(us_embed_t *e, uint64_t number, us_store_item_t *items,
    size_t n)
{
    int  rc;

    do {
        us_store_erase(e->life.store, number, items, n);
        rc = us_embed_rest(e, &items, &n);
    } while (rc == 1);

    return rc;
}


int
us_embed_erase_site(us_embed_t *e, uint64_t number, us_str_t site)
{
    int       rc;
    uint64_t  lsn;

    do {
        rc = us_embed_again(e, us_store_erase_site(e->life.store, number, site,
                                                   &lsn), "an erasure");
    } while (rc == 1);

    return rc;
}


int
us_embed_erase_end(us_embed_t *e, uint64_t number)
{
    int                 rc;
    us_sweep_t          sweep;
    us_store_status_t   status;

    us_store_erasure_leave(e->life.store, number);
    memset(&sweep, 0, sizeof(us_sweep_t));
    rc = 1;

    do {
        status = us_store_sweep(e->life.store, &sweep);

        if (status != US_NEW) {
            rc = us_embed_again(e, status, "an erasure");
        }
    } while (rc == 1);

    us_store_sweep_end(e->life.store, &sweep);

    if (rc == 0) {
        rc = us_embed_sync(e);
    }

    if (rc == 0) {
        us_keep(&e->life);
        us_erased_look(&e->life);
    }

    return rc;
}


unsigned
us_embed_left(us_embed_t *e, const us_erasure_info_t *erasure)
{
    if (us_erased_wanted(&e->life, e->life.store)) {
        us_erased_look(&e->life);
    }

    return us_life_left(&e->life, erasure) & ~(unsigned) US_LEFT_WORKERS;
}


int
us_embed_erase_lift(us_embed_t *e, uint64_t number)
{
    int                 rc;
    uint64_t            lsn;
    us_store_status_t   status;

    us_store_time(e->life.store, (uint64_t) time(NULL));

    do {
        status = us_store_erasure_lift(e->life.store, number, &lsn);
        rc = us_embed_again(e, status, "an erasure");
    } while (rc == 1);

    return rc == -1 ? -1 : status == US_OK;
}


int
us_embed_learn(us_embed_t *e)
{
    return us_store_train_due(e->life.store)
           && us_store_train(e->life.store, NULL) ? us_embed_write(e) : 0;
}


int
us_embed_sync(us_embed_t *e)
{
    return us_embed_write(e) == 0 ? us_embed_durable(e) : -1;
}


int
us_embed_close(us_embed_t *e, char *error)
{
    int         rc;
    us_life_t  *l;

    l = &e->life;
    rc = us_embed_sync(e);

    if (rc == 0) {

        /* a snapshot that fails is taken by the next session */

        l->conf.snapshot = US_EMBED_REPLAY;
        us_keep(l);
        rc = us_embed_refused(e);
    }

    us_life_stop(l);

    if (rc == 0) {
        rc = us_life_close(l, US_LIFE_HUNG);
    }

    if (rc != 0) {
        (void) snprintf(error, US_EMBED_ERROR, "%s", e->error.text);
    }

    us_embed_free(e);

    return rc;
}
