
/*
 * A zone in the master: its memory and its directory, made with the first
 * configuration that names them, and adopted by the next one.
 *
 *     slab pool of the nginx zone
 *     +--------+----+-------+---------------------+------+-------+
 *     | header | sh | tally | mem: piece of store | life | spare |
 *     +--------+----+-------+---------------------+------+-------+
 *
 * The init callback has the zone's kind fill a new mapping, or adopts the old
 * one.  The kind refuses what its data cannot follow.  Each worker opens a
 * handle of its own.
 *
 * The only lock is shpool->mutex: the master releases it when its holder
 * dies.  The init callback also runs under "nginx -t" and before it is known
 * whether the new configuration will be taken: adopting changes nothing.
 *
 * The master opens the directory of path=, refuses one that would never load or
 * that holds foreign files, and passes its descriptors on to workers and to the
 * next cycle.  A master that runs as root gives the directory and its files, if
 * it has made them, to the workers' user.  "nginx -t" checks the same and
 * changes nothing, so that it refuses what a start would refuse.
 */


#include "ngx_http_urlstore_cluster.h"
#include "../journal/us_dir.h"

#include <libgen.h>
#include <sys/mman.h>
#include <sys/random.h>


extern ngx_module_t  ngx_thread_pool_module;


ngx_int_t
ngx_http_urlstore_random(ngx_log_t *log, void *p, size_t len)
{
    if (getrandom(p, len, 0) == (ssize_t) len) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");

    return NGX_ERROR;
}


/*
 * A pool of the zone's own, with a thread for each role.  The keeper waits in
 * its thread for the syncer, and a disk may hold a thread for long: in a pool
 * that is shared, a role would wait for another one, of another zone, or for
 * the files of other locations ("aio threads").
 *
 * A pool gets its threads from the directive "thread_pool" only, so its handler
 * is called.
 */

ngx_int_t
ngx_http_urlstore_zone_threads(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{

    u_char          *p;
    ngx_int_t        rc;
    ngx_str_t       *value;
    ngx_array_t     *args, words;
    ngx_command_t   *cmd;

    if (ngx_array_init(&words, cf->pool, 3, sizeof(ngx_str_t)) != NGX_OK) {
        return NGX_ERROR;
    }

    value = ngx_array_push_n(&words, 3);

    value[1].len = sizeof("urlstore_") - 1 + zone->name.len;
    value[1].data = ngx_pnalloc(cf->pool, value[1].len);
    value[2].data = ngx_pnalloc(cf->pool, sizeof("threads=") + NGX_INT_T_LEN);

    if (value[1].data == NULL || value[2].data == NULL) {
        return NGX_ERROR;
    }

    cmd = ngx_thread_pool_module.commands;
    value[0] = cmd->name;
    (void) ngx_sprintf(value[1].data, "urlstore_%V", &zone->name);

    /* as in a configuration, a word ends with a zero byte */

    p = ngx_sprintf(value[2].data, "threads=%d%Z", US_ROLES);
    value[2].len = p - value[2].data - 1;

    args = cf->args;
    cf->args = &words;
    rc = cmd->set(cf, cmd, NULL) == NGX_CONF_OK ? NGX_OK : NGX_ERROR;
    cf->args = args;

    if (rc == NGX_OK) {
        zone->pool = ngx_thread_pool_add(cf, &value[1]);
    }

    return rc;
}


ngx_int_t
ngx_http_urlstore_store_create(ngx_http_urlstore_zone_t *zone)
{
    ngx_log_t               *log;
    ngx_time_t              *tp;
    ngx_slab_pool_t         *shpool;
    ngx_http_urlstore_sh_t  *sh;

    log = zone->shm_zone->shm.log;
    shpool = zone->shpool;
    sh = zone->sh;

    sh->size = (shpool->pfree - NGX_HTTP_URLSTORE_SPARE) * ngx_pagesize;
    sh->mem = ngx_slab_alloc(shpool, sh->size);

    if (sh->mem == NULL) {
        return NGX_ERROR;
    }

#ifdef MADV_HUGEPAGE

    /* before the first touch; a kernel without them is no error */

    if (zone->huge && madvise(zone->shm_zone->shm.addr,
                              zone->shm_zone->shm.size, MADV_HUGEPAGE)
                      == -1)
    {
        ngx_log_error(NGX_LOG_NOTICE, log, ngx_errno,
                      "madvise(MADV_HUGEPAGE) for urlstore_zone \"%V\" "
                      "failed", &zone->name);
    }

#endif

    if (ngx_http_urlstore_random(log, zone->conf.uuid, 16) != NGX_OK
        || ngx_http_urlstore_random(log, zone->conf.hash_key, 16) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* version 4, variant 1 (RFC 9562) */

    zone->conf.uuid[6] = (zone->conf.uuid[6] & 0x0f) | 0x40;
    zone->conf.uuid[8] = (zone->conf.uuid[8] & 0x3f) | 0x80;

    /* grows with each start, and stays below 2^53 */

    tp = ngx_timeofday();
    zone->conf.epoch = (uint64_t) tp->sec * 1000 + tp->msec;

    if (us_store_format(sh->mem, sh->size, &zone->conf) != 0) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "urlstore_zone \"%V\" is too small", &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* what cannot change as long as the data lives */

ngx_int_t
ngx_http_urlstore_zone_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    us_life_conf_t *a = &zone->life.conf;
    us_life_conf_t *b = &old->life.conf;
    us_store_conf_t *c = &zone->conf;
    us_store_conf_t *d = &old->conf;

    ngx_log_t   *log;
    ngx_uint_t   i;
    const char  *how;

    /* stored: the URLs in a directory depend on it, so that a start refuses */

    const struct {
        const char  *name;
        unsigned     stored;
        unsigned     differs;
    } rows[] = {
        { "profile", 1, zone->profile != old->profile },
        { "www", 1, zone->www != old->www },
        { "schemes", 1, c->schemes_first != d->schemes_first },
        { "normalization", 1, us_str_compare(c->norm, d->norm) != 0 },
        { "sites", 0, c->sites != d->sites },
        /* claims can be added */
        { "revisit", 1, d->revisit && c->revisit != d->revisit },
        /* a zone can become shard 0, whose ids are the same */
        { "shard", 1, zone->first_id != old->first_id
                      || (old->cluster && !zone->cluster) },
        { "mode", 0, c->lookup != d->lookup },
        { "huge", 0, zone->huge != old->huge },
        { "path", 0, a->memory != b->memory },
        { "follow", 0, (a->follow == NULL) != (b->follow == NULL) },
        { "replicate", 0, (a->replicate == NULL) != (b->replicate == NULL) },
        { "node", 0, a->replicate
                     && !ngx_http_urlstore_same(&zone->node, &old->node) },
        { "path", 0, !ngx_http_urlstore_same(&zone->path, &old->path) },
        { "sync", 0, a->sync != b->sync || a->interval != b->interval }
    };

    log = zone->shm_zone->shm.log;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {

        if (!rows[i].differs) {
            continue;
        }

        how = !a->memory && !rows[i].stored ? "stop nginx and start it again"
              : a->memory
              ? "its URLs were stored otherwise: stop nginx and start it "
                "again, with an empty zone"
              : "its URLs were stored otherwise: a new path, which \"urlstore "
                "dump\" and \"urlstore import\" fill, can have another one";

        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "urlstore_zone \"%V\": its \"%s\" cannot change while "
                      "nginx runs; %s", &zone->name, rows[i].name, how);
        return NGX_ERROR;
    }

    /* marks can be added, after those that the zone has */

    for (i = 0; i < d->nmarks; i++) {

        if (i < c->nmarks && us_str_compare(c->marks[i], d->marks[i]) == 0) {
            continue;
        }

        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "urlstore_zone \"%V\": its \"marks\" cannot change so: "
                      "number %ui is \"%*s\" in the zone; new marks are "
                      "allowed after those of the zone only",
                      &zone->name, i + 1, d->marks[i].len, d->marks[i].data);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_http_urlstore_dir_cleanup(void *data)
{
    ngx_http_urlstore_dir_t *dir = data;

    if (--dir->refs) {
        return;
    }

    if (dir->lock != -1) {
        (void) close(dir->lock);
    }

    (void) close(dir->dirfd);

    ngx_free(dir);
}


/*
 * Cycles share the descriptors: a configuration that is given up, and the one
 * that goes on, each drop their part.
 */

static ngx_int_t
ngx_http_urlstore_dir_keep(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_dir_t *dir)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(zone->cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    dir->refs++;
    zone->dir = dir;

    cln->handler = ngx_http_urlstore_dir_cleanup;
    cln->data = dir;

    return NGX_OK;
}


/* 1: this process is root's, and the workers are to be another user's */

static ngx_uint_t
ngx_http_urlstore_dir_user(ngx_http_urlstore_zone_t *zone, uid_t *uid,
    gid_t *gid)
{
    ngx_core_conf_t  *ccf;

    *uid = geteuid();
    *gid = getegid();

    ccf = (ngx_core_conf_t *) ngx_get_conf(zone->cycle->conf_ctx,
                                           ngx_core_module);

    if (*uid != 0 || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return 0;
    }

    *uid = ccf->user;
    *gid = ccf->group;

    return *uid != 0;
}


static ngx_int_t
ngx_http_urlstore_dir_refuse(ngx_http_urlstore_zone_t *zone,
    us_disk_error_t *e)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\", path \"%V\": %s", &zone->name,
                  &zone->path, e->text);

    return NGX_ERROR;
}


/* whether the directory could be made */

static ngx_int_t
ngx_http_urlstore_dir_parent(ngx_http_urlstore_zone_t *zone)
{
    char         *parent;
    u_char       *path;
    struct stat   st;

    path = ngx_pnalloc(zone->cycle->pool, zone->path.len + 1);
    if (path == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(path, zone->path.data, zone->path.len + 1);
    parent = dirname((char *) path);

    if (stat(parent, &st) == 0 && S_ISDIR(st.st_mode)) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\": its path \"%V\" cannot be made, as "
                  "\"%s\" is no directory", &zone->name, &zone->path, parent);

    return NGX_ERROR;
}


/*
 * Made if it is not there.  "nginx -t" refuses the same, but makes, locks and
 * gives away nothing.
 */

static ngx_int_t
ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone)
{
    int                       rc;
    uid_t                     uid;
    gid_t                     gid;
    ngx_err_t                 err;
    ngx_log_t                *log;
    ngx_uint_t                made, gives;
    us_manifest_t             m;
    us_disk_error_t           e;
    ngx_http_urlstore_dir_t  *dir;

    log = zone->shm_zone->shm.log;
    made = 0;
    gives = ngx_http_urlstore_dir_user(zone, &uid, &gid);

    if (!zone->conf.lookup && !ngx_test_config) {
        made = (ngx_create_dir(zone->path.data, 0700) != NGX_FILE_ERROR);

        if (!made && ngx_errno != NGX_EEXIST) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          ngx_create_dir_n " \"%V\" failed", &zone->path);
            return NGX_ERROR;
        }
    }

    dir = ngx_calloc(sizeof(ngx_http_urlstore_dir_t), log);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    dir->lock = -1;
    dir->dirfd = open((char *) zone->path.data, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dir->dirfd == -1) {
        err = ngx_errno;
        ngx_free(dir);

        if (ngx_test_config && err == NGX_ENOENT && !zone->conf.lookup) {
            return ngx_http_urlstore_dir_parent(zone);
        }

        /* nginx -t may run as a user that cannot look */

        if (ngx_test_config && err == NGX_EACCES && geteuid() != 0) {
            ngx_log_error(NGX_LOG_WARN, log, err,
                          "urlstore_zone \"%V\": its path \"%V\" was not "
                          "looked at", &zone->name, &zone->path);
            return NGX_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "opening urlstore_zone \"%V\"'s path \"%V\" failed",
                      &zone->name, &zone->path);
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_dir_keep(zone, dir) != NGX_OK) {
        return NGX_ERROR;
    }

    /* whether it is ours to use: root could write to any */

    if (!zone->conf.lookup && !made
        && us_dir_usable(dir->dirfd, uid, gid, &e) != 0)
    {
        return ngx_http_urlstore_dir_refuse(zone, &e);
    }

    if (!zone->conf.lookup && !ngx_test_config) {
        dir->lock = openat(dir->dirfd, US_DIR_LOCK,
                           O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0600);

        if (dir->lock == -1) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "opening \"%V/%s\" failed", &zone->path,
                          US_DIR_LOCK);
            return NGX_ERROR;
        }

        if (gives && us_dir_give(dir->dirfd, made, uid, &e) == -1) {
            return ngx_http_urlstore_dir_refuse(zone, &e);
        }
    }

    /* refuses one that could never be loaded, before anything is loaded */

    if (zone->life.conf.follow || zone->life.conf.replicate) {
        rc = us_data_copied(dir->dirfd, &e);

    } else {
        rc = us_manifest_read(dir->dirfd, &m, &e);

        rc = rc == US_MANIFEST_NONE ? 0
             : rc == US_MANIFEST_OK ? us_data_differs(&m, &zone->conf, &e) : -1;
    }

    return rc == 0 ? NGX_OK : ngx_http_urlstore_dir_refuse(zone, &e);
}


ngx_int_t
ngx_http_urlstore_store_attach(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    if (old) {
        if (ngx_http_urlstore_zone_same(zone, old) != NGX_OK) {
            return NGX_ERROR;
        }

        us_share_count(&zone->life.sh->load_wanted, 1);
    }

    zone->life.conf.store = zone->conf;
    zone->life.conf.norm = zone->norm;
    zone->life.conf.zone = zone->shm_zone->shm.size;

    if (zone->path.len == 0) {
        return NGX_OK;
    }

    return old ? ngx_http_urlstore_dir_keep(zone, old->dir)
               : ngx_http_urlstore_dir_open(zone);
}


/* what workers share, beside what the kind of the zone has */

static ngx_int_t
ngx_http_urlstore_zone_create(ngx_http_urlstore_zone_t *zone)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_urlstore_sh_t  *sh;

    shpool = zone->shpool;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_sh_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    zone->sh = sh;

    sh->started = ngx_time();
    sh->tallies = ngx_slab_calloc(shpool, sizeof(us_tally_t) * US_TALLIES);

    if (sh->tallies == NULL || zone->kind->create(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    sh->life = ngx_slab_calloc(shpool, sizeof(us_share_t));

    return sh->life ? NGX_OK : NGX_ERROR;
}


/* the init callback: a new mapping (data is NULL), or one that goes on */

ngx_int_t
ngx_http_urlstore_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_zone_t *old = data;

    ngx_http_urlstore_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    zone->conf.norm = us_norm_signature(zone->norm);

    if (old) {
        if (ngx_strcmp(zone->kind->name, old->kind->name) != 0) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "urlstore_zone \"%V\": its \"kind\" cannot change "
                          "while nginx runs; give it another name",
                          &zone->name);
            return NGX_ERROR;
        }

        zone->sh = old->sh;

        if (zone->keys_keep > old->keys_keep) {
            zone->sh->keys_since = ngx_time();
        }

    /* "nginx -t" touches no memory that it does not need */

    } else if (!ngx_test_config
               && ngx_http_urlstore_zone_create(zone) != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->life.sh = zone->sh ? zone->sh->life : NULL;

    return zone->kind->attach ? zone->kind->attach(zone, old) : NGX_OK;
}
