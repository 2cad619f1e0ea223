
/*
 * See ngx_http_urlstore_persist.h: the options of urlstore_zone that name a
 * directory and say how it is kept; and the directory in the master.
 *
 * The master opens the directory, refuses one that would never load or that
 * holds foreign files, and passes its descriptors on to workers and to the next
 * cycle.  A master that runs as root gives the directory and its files, if it
 * has made them, to the workers' user.
 *
 * "nginx -t" checks the same and changes nothing, so that it refuses what a
 * start would refuse.
 */


#include "ngx_http_urlstore_persist.h"
#include "../journal/us_dir.h"


#if (NGX_THREADS)
extern ngx_module_t  ngx_thread_pool_module;
#endif


static ngx_int_t ngx_http_urlstore_dir_threads(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_test(ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_parent(
    ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone);
static ngx_int_t ngx_http_urlstore_dir_own(ngx_http_urlstore_zone_t *zone,
    ngx_uint_t made);
static ngx_int_t ngx_http_urlstore_dir_usable(ngx_http_urlstore_zone_t *zone,
    int dirfd);
static ngx_int_t ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone,
    int dirfd);
static ngx_int_t ngx_http_urlstore_dir_refuse(ngx_http_urlstore_zone_t *zone,
    us_disk_error_t *e);
static ngx_uint_t ngx_http_urlstore_dir_user(ngx_http_urlstore_persist_t *p,
    uid_t *uid, gid_t *gid);
static ngx_int_t ngx_http_urlstore_dir_keep(ngx_http_urlstore_persist_t *p,
    ngx_http_urlstore_dir_t *dir);
static void ngx_http_urlstore_dir_cleanup(void *data);


ngx_http_urlstore_persist_t *
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
    p->pace.left = US_SHIP_GRACE;
    p->cycle = cf->cycle;
    ngx_str_set(&p->sync_name, "1s");

    conf = &p->life.conf;
    conf->sync_name = (char *) p->sync_name.data;
    conf->interval = 1000;
    conf->snapshot = NGX_HTTP_URLSTORE_SNAPSHOT;
    conf->scrub = NGX_HTTP_URLSTORE_SCRUB;

    p->replicate.lease = NGX_HTTP_URLSTORE_LEASE;
    p->replicate.stale = NGX_HTTP_URLSTORE_STALE;

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

    return ngx_http_urlstore_opt_time(value, &p->life.conf.interval);
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
    ngx_http_urlstore_persist_t  *p;

    p = ngx_http_urlstore_persist_of(cf, zone);

    if (p == NULL) {
        return NGX_ERROR;
    }

    if (ngx_strcmp(value->data, "off") == 0) {
        p->life.conf.scrub = 0;
        return NGX_OK;
    }

    return ngx_http_urlstore_opt_time(value, &p->life.conf.scrub);
}


ngx_int_t
ngx_http_urlstore_opt_time(ngx_str_t *value, uint64_t *ms)
{
    ngx_int_t  n;

    n = ngx_parse_time(value, 0);

    if (n == NGX_ERROR || n == 0) {
        return NGX_ERROR;
    }

    *ms = n;

    return NGX_OK;
}


/* after all options: NGX_ERROR has been logged */

ngx_int_t
ngx_http_urlstore_persist_conf(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size)
{
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

    if (p->path.len
        && ngx_http_urlstore_path_free(cf, zone, &p->path) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_dir_threads(cf, zone) != NGX_OK) {
        return NGX_ERROR;
    }

    /* nothing is changed before it is loaded, and nothing ever in a replica */

    zone->conf.fenced = 1;

    /* these have no journal of their own */

    if (zone->conf.lookup || p->life.conf.follow) {
        return NGX_OK;
    }

    zone->conf.ring = us_store_ring(size);

    return NGX_OK;
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

static ngx_int_t
ngx_http_urlstore_dir_threads(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone)
{
#if (NGX_THREADS)

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
        zone->persist->pool = ngx_thread_pool_add(cf, &value[1]);
    }

    return rc;

#else

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "urlstore_zone \"%V\" needs an nginx built with "
                       "threads", &zone->name);
    return NGX_ERROR;

#endif
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

        other = zp[i]->path;

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
                               "path=%V of \"%V\" is used by \"%V\" already",
                               path, &zone->name, &zp[i]->name);
            return NGX_ERROR;
        }
    }

    zone->path = path;

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

    if ((a->life.conf.follow == NULL) != (b->life.conf.follow == NULL)) {
        return "follow";
    }

    if ((a->life.conf.replicate == NULL) != (b->life.conf.replicate == NULL)) {
        return "replicate";
    }

    if (a->life.conf.replicate
        && (zone->node.len != old->node.len
            || ngx_memcmp(zone->node.data, old->node.data, old->node.len)
               != 0))
    {
        return "node";
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
    p->life.conf.zone = zone->shm_zone->shm.size;

    if (ngx_test_config) {
        return p->path.len ? ngx_http_urlstore_dir_test(zone) : NGX_OK;
    }

    if (old) {
        p->life.sh = zone->sh->persist;
        us_share_count(&p->life.sh->load_wanted, 1);

        return p->path.len ? ngx_http_urlstore_dir_keep(p, old->persist->dir)
                           : NGX_OK;
    }

    p->life.sh = ngx_slab_calloc(zone->shpool, sizeof(us_share_t));
    if (p->life.sh == NULL) {
        return NGX_ERROR;
    }

    zone->sh->persist = p->life.sh;

    return p->path.len ? ngx_http_urlstore_dir_open(zone) : NGX_OK;
}


/* as dir_open(), but nothing is made, locked or given away */

static ngx_int_t
ngx_http_urlstore_dir_test(ngx_http_urlstore_zone_t *zone)
{
    int                           dirfd;
    ngx_int_t                     rc;
    ngx_log_t                    *log;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    log = zone->shm_zone->shm.log;

    dirfd = open((char *) p->path.data, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (dirfd == -1) {

        if (ngx_errno == NGX_ENOENT && !zone->conf.lookup) {
            return ngx_http_urlstore_dir_parent(zone);
        }

        /* nginx -t may run as a user that cannot look */

        if (ngx_errno == NGX_EACCES && geteuid() != 0) {
            ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                          "urlstore_zone \"%V\": its path \"%V\" was not "
                          "looked at", &zone->name, &p->path);
            return NGX_OK;
        }

        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "opening urlstore_zone \"%V\"'s path \"%V\" failed",
                      &zone->name, &p->path);
        return NGX_ERROR;
    }

    rc = zone->conf.lookup ? NGX_OK
                           : ngx_http_urlstore_dir_usable(zone, dirfd);

    if (rc == NGX_OK) {
        rc = ngx_http_urlstore_dir_check(zone, dirfd);
    }

    (void) close(dirfd);

    return rc;
}


/* whether the directory could be made */

static ngx_int_t
ngx_http_urlstore_dir_parent(ngx_http_urlstore_zone_t *zone)
{
    u_char                        *slash, *parent;
    struct stat                    st;
    ngx_http_urlstore_persist_t   *p;

    p = zone->persist;

    parent = ngx_pnalloc(p->cycle->pool, p->path.len + 1);
    if (parent == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(parent, p->path.data, p->path.len + 1);

    slash = parent + p->path.len;

    while (slash > parent + 1 && slash[-1] == '/') {
        *--slash = '\0';
    }

    slash = (u_char *) strrchr((char *) parent, '/');
    slash[slash == parent] = '\0';

    if (stat((char *) parent, &st) == 0 && S_ISDIR(st.st_mode)) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\": its path \"%V\" cannot be made, as "
                  "\"%s\" is no directory", &zone->name, &p->path, parent);

    return NGX_ERROR;
}


/* made if it is not there */

static ngx_int_t
ngx_http_urlstore_dir_open(ngx_http_urlstore_zone_t *zone)
{
    ngx_log_t                    *log;
    ngx_uint_t                    made;
    ngx_http_urlstore_dir_t      *dir;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    log = zone->shm_zone->shm.log;
    made = 0;

    if (!zone->conf.lookup) {
        made = (ngx_create_dir(p->path.data, 0700) != NGX_FILE_ERROR);

        if (!made && ngx_errno != NGX_EEXIST) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          ngx_create_dir_n " \"%V\" failed", &p->path);
            return NGX_ERROR;
        }
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

    if (!zone->conf.lookup && ngx_http_urlstore_dir_own(zone, made) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_dir_check(zone, dir->dirfd);
}


static ngx_int_t
ngx_http_urlstore_dir_own(ngx_http_urlstore_zone_t *zone, ngx_uint_t made)
{
    uid_t                         uid;
    gid_t                         gid;
    us_disk_error_t               e;
    ngx_http_urlstore_dir_t      *dir;
    ngx_http_urlstore_persist_t  *p;

    p = zone->persist;
    dir = p->dir;

    if (!made && ngx_http_urlstore_dir_usable(zone, dir->dirfd) != NGX_OK) {
        return NGX_ERROR;
    }

    dir->lock = openat(dir->dirfd, US_DIR_LOCK,
                       O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (dir->lock == -1) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "opening \"%V/%s\" failed", &p->path, US_DIR_LOCK);
        return NGX_ERROR;
    }

    if (ngx_http_urlstore_dir_user(p, &uid, &gid)
        && us_dir_give(dir->dirfd, made, uid, &e) == -1)
    {
        return ngx_http_urlstore_dir_refuse(zone, &e);
    }

    return NGX_OK;
}


/* whether it is ours to use: root could write to any */

static ngx_int_t
ngx_http_urlstore_dir_usable(ngx_http_urlstore_zone_t *zone, int dirfd)
{
    uid_t            uid;
    gid_t            gid;
    us_disk_error_t  e;

    (void) ngx_http_urlstore_dir_user(zone->persist, &uid, &gid);

    return us_dir_usable(dirfd, uid, gid, &e) == 0
           ? NGX_OK : ngx_http_urlstore_dir_refuse(zone, &e);
}


/* 1: this process is root's, and the workers are to be another user's */

static ngx_uint_t
ngx_http_urlstore_dir_user(ngx_http_urlstore_persist_t *p, uid_t *uid,
    gid_t *gid)
{
    ngx_core_conf_t  *ccf;

    *uid = geteuid();
    *gid = getegid();

    ccf = (ngx_core_conf_t *) ngx_get_conf(p->cycle->conf_ctx,
                                           ngx_core_module);

    if (*uid != 0 || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return 0;
    }

    *uid = ccf->user;
    *gid = ccf->group;

    return *uid != 0;
}


/* refuses a directory that could never be loaded, before anything is loaded */

static ngx_int_t
ngx_http_urlstore_dir_check(ngx_http_urlstore_zone_t *zone, int dirfd)
{
    int              rc;
    us_manifest_t    m;
    us_disk_error_t  e;

    if (zone->persist->life.conf.follow
        || zone->persist->life.conf.replicate)
    {
        return us_data_copied(dirfd, &e) == 0
               ? NGX_OK : ngx_http_urlstore_dir_refuse(zone, &e);
    }

    rc = us_manifest_read(dirfd, &m, &e);

    if (rc == US_MANIFEST_OK) {
        rc = us_data_differs(&m, &zone->conf, &e);
    }

    return rc == US_MANIFEST_OK || rc == US_MANIFEST_NONE
           ? NGX_OK : ngx_http_urlstore_dir_refuse(zone, &e);
}


static ngx_int_t
ngx_http_urlstore_dir_refuse(ngx_http_urlstore_zone_t *zone,
    us_disk_error_t *e)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\", path \"%V\": %s", &zone->name,
                  &zone->persist->path, e->text);

    return NGX_ERROR;
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
