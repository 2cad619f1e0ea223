
/*
 * See ngx_http_urlstore_persist.h: the options of urlstore_zone that name a
 * directory and say how it is kept, and the directory in the master, which
 * opens it, checks what would never load, and passes its descriptors on to
 * workers and to the next cycle.
 */


#include "ngx_http_urlstore_persist.h"
#include "../journal/us_dir.h"

#include <dirent.h>


static ngx_http_urlstore_persist_t *ngx_http_urlstore_persist_of(
    ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone);
static void ngx_http_urlstore_dir_chown(ngx_http_urlstore_persist_t *p);
static ngx_int_t ngx_http_urlstore_dir_keep(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_dir_t *dir);
static void ngx_http_urlstore_dir_cleanup(void *data);


/* options */

static ngx_http_urlstore_persist_t *
ngx_http_urlstore_persist_of(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
    us_life_conf_t               *conf;
    ngx_http_urlstore_persist_t  *p;

    if (zone->persist) {
        return zone->persist;
    }

    p = ngx_pcalloc(cf->pool, sizeof(ngx_http_urlstore_persist_t));
    if (p == NULL) {
        return NULL;
    }

    p->zone = zone;
    p->cycle = cf->cycle;
    ngx_str_set(&p->sync_name, "1s");

    conf = &p->life.conf;
    conf->sync_name = (char *) p->sync_name.data;
    conf->interval = 1000;
    conf->snapshot = NGX_HTTP_URLSTORE_SNAPSHOT;
    conf->scrub = NGX_HTTP_URLSTORE_SCRUB;

    zone->persist = p;

    return p;
}


ngx_int_t
ngx_http_urlstore_opt_path(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len == 0) {
        return NGX_ERROR;
    }

#if !(NGX_THREADS)

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"path\" needs an nginx built with threads");
    return NGX_ERROR;

#else

    p->pool = ngx_thread_pool_add(cf, NULL);
    if (p->pool == NULL) {
        return NGX_ERROR;
    }

#endif

    p->path = *value;

    if (ngx_conf_full_name(cf->cycle, &p->path, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    p->life.conf.path = (char *) p->path.data;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_sync(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char                       *name;
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL || value->len > 15) {
        return NGX_ERROR;
    }

    name = ngx_pnalloc(cf->pool, value->len + 1);
    if (name == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(name, value->data, value->len + 1);

    p->sync_name.data = name;
    p->sync_name.len = value->len;
    p->life.conf.sync_name = (char *) name;

    if (ngx_strcmp(name, "always") == 0) {
        p->life.conf.sync = US_SYNC_ALWAYS;
        return NGX_OK;
    }

    if (ngx_strcmp(name, "off") == 0) {
        p->life.conf.sync = US_SYNC_OFF;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->life.conf.interval = ms;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_mode(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  lookup;

    if (ngx_http_urlstore_opt_either(value, "store", "lookup", &lookup)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->conf.lookup = lookup;

    return NGX_OK;
}


/* the least growth of the journal between two snapshots, or off */

ngx_int_t
ngx_http_urlstore_opt_snapshot(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    off_t                         size;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->life.conf.snapshot = 0;
        return NGX_OK;
    }

    size = ngx_parse_offset(value);

    if (size <= 0) {
        return NGX_ERROR;
    }

    p->life.conf.snapshot = size;

    return NGX_OK;
}


/* the time between two scrubs, or off */

ngx_int_t
ngx_http_urlstore_opt_scrub(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_int_t                     ms;
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->life.conf.scrub = 0;
        return NGX_OK;
    }

    ms = ngx_parse_time(value, 0);

    if (ms == NGX_ERROR || ms == 0) {
        return NGX_ERROR;
    }

    p->life.conf.scrub = ms;

    return NGX_OK;
}


/* after all options: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_persist_conf(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
    size_t                        most;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {

        if (zone->conf.lookup) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "urlstore_zone \"%V\": mode=lookup needs a "
                               "\"path\"", &zone->name);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (ngx_http_urlstore_path_free(cf, zone, &p->path) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->conf.lookup) {
        return NGX_OK;
    }

    /*
     * A power of two, at most a 16th of the zone; up to 512 KB, which takes
     * any model that the first million URLs learn, an 8th.
     */

    most = ngx_min(size / 8, 512 * 1024);
    most = ngx_max(size / 16, most);

    zone->conf.ring = 64 * 1024;

    while (zone->conf.ring < 16 * 1024 * 1024
           && zone->conf.ring * 2 <= most)
    {
        zone->conf.ring *= 2;
    }

    return NGX_OK;
}


/* two zones would each wait for the other one to leave the directory */

ngx_int_t
ngx_http_urlstore_path_free(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *path)
{
    size_t                           len;
    ngx_str_t                       *other;
    ngx_uint_t                       i;
    ngx_http_urlstore_zone_t       **zp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    zp = umcf->zones.elts;

    for (i = 0; i < umcf->zones.nelts; i++) {

        other = zp[i]->persist ? &zp[i]->persist->path
                : zp[i]->filter ? &zp[i]->filter->path : NULL;

        if (zp[i] == zone || other == NULL) {
            continue;
        }

        /* with a slash at the end or without */

        len = ngx_min(other->len, path->len);

        if (len && ngx_strncmp(other->data, path->data, len) == 0
            && (other->len == len || ngx_strcmp(other->data + len, "/") == 0)
            && (path->len == len || ngx_strcmp(path->data + len, "/") == 0))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "path=%V of \"%V\" is that of \"%V\" already",
                               path, &zone->name, &zp[i]->name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* what of the options cannot change at a reload, or NULL */

const char *
ngx_http_urlstore_persist_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_persist_t  *a, *b;

    a = zone->persist;
    b = old->persist;

    if ((a == NULL) != (b == NULL)) {
        return "path";
    }

    if (a == NULL) {
        return NULL;
    }

    if (a->path.len != b->path.len
        || ngx_memcmp(a->path.data, b->path.data, a->path.len) != 0)
    {
        return "path";
    }

    if (a->life.conf.sync != b->life.conf.sync
        || a->life.conf.interval != b->life.conf.interval)
    {
        return "sync";
    }

    return NULL;
}


/*
 * Of the zone's init callback, in the master: a new mapping (old is NULL), or
 * one that goes on.
 */

ngx_int_t
ngx_http_urlstore_persist_init(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    if (p == NULL) {
        return NGX_OK;
    }

    p->life.conf.store = zone->conf;

    if (ngx_test_config) {
        return NGX_OK;
    }

    if (old) {
        p->life.sh = zone->sh->persist;
        us_share_count(&p->life.sh->load_wanted, 1);

        return ngx_http_urlstore_dir_keep(p, old->persist->dir);
    }

    p->life.sh = ngx_slab_calloc(zone->shpool, sizeof(us_share_t));
    if (p->life.sh == NULL) {
        return NGX_ERROR;
    }

    zone->sh->persist = p->life.sh;

    if (ngx_http_urlstore_dir_open(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_dir_check(zone);
}


/* made if it is not there, with an owner who may write to it */

static ngx_int_t
ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone)
{
    ngx_log_t                    *log;
    ngx_http_urlstore_dir_t      *dir;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    log = zone->shm_zone->shm.log;

    if (!zone->conf.lookup
        && ngx_create_dir(p->path.data, 0700) == NGX_FILE_ERROR
        && ngx_errno != NGX_EEXIST)
    {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      ngx_create_dir_n " \"%V\" failed", &p->path);
        return NGX_ERROR;
    }

    dir = ngx_calloc(sizeof(ngx_http_urlstore_dir_t), log);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    dir->lock = -1;
    dir->dirfd = open((char *) p->path.data, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dir->dirfd == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening urlstore_zone \"%V\"'s path \"%V\" failed",
                      &zone->name, &p->path);
        ngx_free(dir);
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_dir_keep(p, dir) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->conf.lookup) {
        return NGX_OK;
    }

    dir->lock = openat(dir->dirfd, US_DIR_LOCK, O_RDWR|O_CREAT|O_CLOEXEC,
                       0600);

    if (dir->lock == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening \"%V/%s\" failed", &p->path, US_DIR_LOCK);
        return NGX_ERROR;
    }

    ngx_http_urlstore_dir_chown(p);

    return NGX_OK;
}


/* tells at once, before anything is loaded, what would never load */

static ngx_int_t
ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone)
{
    us_manifest_t                 m;
    us_disk_error_t               e;
    us_manifest_rc_t              rc;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;

    rc = us_manifest_read(p->dir->dirfd, &m, &e);

    if (rc == US_MANIFEST_NONE) {
        return NGX_OK;
    }

    if (rc == US_MANIFEST_OK && us_data_differs(&m, &zone->conf, &e) == 0) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\", \"%V\": %s", &zone->name, &p->path,
                  e.text);

    return NGX_ERROR;
}


/* what root has made or imported belongs to the workers */

static void
ngx_http_urlstore_dir_chown(ngx_http_urlstore_persist_t *p)
{
    DIR              *d;
    struct stat       st;
    struct dirent    *de;
    ngx_core_conf_t  *ccf;

    if (geteuid() != 0) {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(p->cycle->conf_ctx,
                                           ngx_core_module);

    if (ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return;
    }

    (void) fchown(p->dir->dirfd, ccf->user, -1);

    d = opendir((char *) p->path.data);

    if (d == NULL) {
        return;
    }

    while ((de = readdir(d)) != NULL) {

        if (fstatat(p->dir->dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && S_ISREG(st.st_mode) && st.st_uid != ccf->user)
        {
            (void) fchownat(p->dir->dirfd, de->d_name, ccf->user, -1,
                            AT_SYMLINK_NOFOLLOW);
        }
    }

    (void) closedir(d);
}


/*
 * Cycles share the descriptors: a configuration that is given up, and the one
 * that goes on, each drop their part.
 */

static ngx_int_t
ngx_http_urlstore_dir_keep(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_dir_t *dir)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(p->cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    dir->refs++;
    p->dir = dir;

    cln->handler = ngx_http_urlstore_dir_cleanup;
    cln->data = dir;

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
