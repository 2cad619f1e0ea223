
/*
 * The zone of a store: its directive and its life.
 *
 *     urlstore_zone  NAME SIZE [OPTION=VALUE ...];
 *
 *     slab pool of the nginx zone
 *     +--------+------------+-------+-----------------------------+-------+
 *     | header | sh, log_ctx| tally | mem: one piece for the store| spare |
 *     +--------+------------+-------+-----------------------------+-------+
 *
 * The init callback runs in the master: it formats a new mapping
 * or, on reload, adopts the old one, and refuses what the data cannot follow.
 * Each worker opens a handle of its own.
 *
 * The only lock is shpool->mutex: the master releases it when its holder
 * dies.  The init callback also runs under `nginx -t` and before it is known
 * whether the new configuration will be taken: adopting changes nothing.
 */


#include "ngx_http_urlstore_persist.h"
#include "ngx_http_urlstore_shard.h"
#include "../api/us_time.h"

#include <sys/mman.h>


/* pages of the slab pool that are left to nginx and to small things */
#define NGX_HTTP_URLSTORE_SPARE   16


static ngx_int_t ngx_http_urlstore_opt_schemes(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_marks(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_sites(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_revisit(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_huge(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);

static ngx_int_t ngx_http_urlstore_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_urlstore_zone_create(
    ngx_http_urlstore_zone_t *zone);
static const char *ngx_http_urlstore_zone_differs(
    ngx_http_urlstore_zone_t *zone, ngx_http_urlstore_zone_t *old);
static ngx_uint_t ngx_http_urlstore_zone_stored(const char *what);
static ngx_int_t ngx_http_urlstore_zone_marks(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old);


static ngx_http_urlstore_option_t  ngx_http_urlstore_options[] = {

    { ngx_string("profile"), ngx_http_urlstore_opt_profile, 0,
      NGX_HTTP_URLSTORE_ALLOWED_PROFILE },

    { ngx_string("www"), ngx_http_urlstore_opt_www, 0,
      NGX_HTTP_URLSTORE_ALLOWED_WWW },

    { ngx_string("schemes"), ngx_http_urlstore_opt_schemes, 0,
      "keep or first" },

    { ngx_string("marks"), ngx_http_urlstore_opt_marks, 0,
      "at most 16 different names of at most 32 letters, digits, - and _, "
      "with commas between them," },

    { ngx_string("sites"), ngx_http_urlstore_opt_sites, 0,
      "on or off" },

    { ngx_string("revisit"), ngx_http_urlstore_opt_revisit, 0,
      "a time from 1m to 1d, such as 1h," },

    { ngx_string("huge"), ngx_http_urlstore_opt_huge, 0,
      "on or off" },

    { ngx_string("path"), ngx_http_urlstore_opt_path, 1,
      NGX_HTTP_URLSTORE_ALLOWED_PATH },

    { ngx_string("sync"), ngx_http_urlstore_opt_sync, 1,
      "always, off or a time such as 1s" },

    { ngx_string("follow"), ngx_http_urlstore_opt_follow, 0,
      "http://HOST[:PORT][/PREFIX]" },

    { ngx_string("replicate"), ngx_http_urlstore_opt_replicate, 0,
      "postgres:CONNECTION or postgres:@FILE" },

    { ngx_string("replicas"), ngx_http_urlstore_opt_replicas, 0,
      "1, or 0 for a log on one server alone," },

    { ngx_string("lease"), ngx_http_urlstore_opt_lease, 0,
      "a time of at least 1s" },

    { ngx_string("takeover"), ngx_http_urlstore_opt_takeover, 0,
      "off or a time of at least 1s" },

    { ngx_string("stale"), ngx_http_urlstore_opt_stale, 0,
      "off or a time of at least 1s" },

    { ngx_string("base"), ngx_http_urlstore_opt_base, 0,
      "a directory" },

    { ngx_string("mode"), ngx_http_urlstore_opt_mode, 0,
      "store or lookup" },

    { ngx_string("snapshot"), ngx_http_urlstore_opt_snapshot, 1,
      "off or a size such as 64m" },

    { ngx_string("scrub"), ngx_http_urlstore_opt_scrub, 1,
      "off or a time such as 1h" },

    { ngx_string("cluster"), ngx_http_urlstore_opt_cluster, 0,
      "the name of an urlstore_cluster above" },

    { ngx_string("shard"), ngx_http_urlstore_opt_shard, 0,
      "a number up to 4095" },

    { ngx_string("node"), ngx_http_urlstore_opt_node, 0,
      "a name of at most 63 bytes" },

    { ngx_null_string, NULL, 0, NULL }
};


/* urlstore_zone NAME SIZE [OPTION=VALUE ...]; */

char *
ngx_http_urlstore_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                     size;
    ngx_str_t                 *value;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;

    zone = ngx_http_urlstore_zone_declare(cf, &size);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_zone_options(cf, zone, ngx_http_urlstore_options)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_follow_conf(cf, zone) != NGX_OK
        || ngx_http_urlstore_replicate_conf(cf, zone) != NGX_OK
        || ngx_http_urlstore_persist_conf(cf, zone, size) != NGX_OK
        || ngx_http_urlstore_shard_conf(cf, zone) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (size < us_store_min_size(&zone->conf)
               + (NGX_HTTP_URLSTORE_SPARE + 8) * ngx_pagesize)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\" is too small: %uz bytes, "
                           "at least %uz are needed", &value[1], size,
                           us_store_min_size(&zone->conf)
                           + (NGX_HTTP_URLSTORE_SPARE + 8) * ngx_pagesize);
        return NGX_CONF_ERROR;
    }

    if (ngx_http_urlstore_zone_resized(cf, &value[1], size) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_urlstore_zone_add(cf, zone, size,
                                      ngx_http_urlstore_zone_init);
}


static ngx_int_t
ngx_http_urlstore_opt_schemes(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  first;

    if (ngx_http_urlstore_opt_either(value, "keep", "first", &first)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    zone->conf.schemes_first = first;

    return NGX_OK;
}


/* marks=A,B,...: words of letters, digits, - and _ */

static ngx_int_t
ngx_http_urlstore_opt_marks(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    us_str_t  list;

    list.data = value->data;
    list.len = value->len;

    return us_conf_marks(&zone->conf, list) == 0 ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_urlstore_opt_sites(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    ngx_uint_t  on;

    if (ngx_http_urlstore_opt_either(value, "off", "on", &on) != NGX_OK) {
        return NGX_ERROR;
    }

    zone->conf.sites = on;

    return NGX_OK;
}


/* the unit of claims */

static ngx_int_t
ngx_http_urlstore_opt_revisit(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    uint64_t  s;

    if (us_time_duration(ngx_http_urlstore_str(value), &s) == -1
        || s < US_STORE_REVISIT_MIN
        || s > US_STORE_REVISIT_MAX)
    {
        return NGX_ERROR;
    }

    zone->conf.revisit = (uint32_t) s;

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_huge(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    return ngx_http_urlstore_opt_either(value, "off", "on", &zone->huge);
}


static ngx_int_t
ngx_http_urlstore_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_urlstore_zone_t *old = data;

    us_str_t                   norm;
    ngx_http_urlstore_zone_t  *zone;

    zone = shm_zone->data;
    zone->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    norm = us_norm_signature(zone->norm);
    zone->conf.norm = norm;

    if (old) {
        if (ngx_http_urlstore_zone_same(zone, old) != NGX_OK) {
            return NGX_ERROR;
        }

        zone->sh = old->sh;

        return ngx_http_urlstore_persist_init(zone, old);
    }

    if (shm_zone->shm.exists) {
        zone->sh = zone->shpool->data;
        return NGX_OK;
    }

    /* "nginx -t" touches no memory that it does not need */

    if (ngx_test_config) {
        return ngx_http_urlstore_persist_init(zone, NULL);
    }

    if (ngx_http_urlstore_zone_create(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_persist_init(zone, NULL);
}


/* what the workers share beside the URLs; NULL: no memory */

ngx_http_urlstore_sh_t *
ngx_http_urlstore_zone_share(ngx_http_urlstore_zone_t *zone)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_urlstore_sh_t  *sh;

    shpool = zone->shpool;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_sh_t));
    if (sh == NULL) {
        return NULL;
    }

    if (ngx_http_urlstore_pool_name(shpool, "urlstore_zone", &zone->name)
        != NGX_OK)
    {
        return NULL;
    }

    shpool->log_nomem = 0;

    sh->tallies = ngx_slab_calloc(shpool, sizeof(us_tally_t)
                                          * US_TALLIES);
    if (sh->tallies == NULL) {
        return NULL;
    }

    sh->started = ngx_time();
    shpool->data = sh;

    return sh;
}


static ngx_int_t
ngx_http_urlstore_zone_create(ngx_http_urlstore_zone_t *zone)
{
    ngx_log_t               *log;
    ngx_time_t              *tp;
    ngx_slab_pool_t         *shpool;
    ngx_http_urlstore_sh_t  *sh;

    log = zone->shm_zone->shm.log;
    shpool = zone->shpool;

    sh = ngx_http_urlstore_zone_share(zone);
    if (sh == NULL) {
        return NGX_ERROR;
    }

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

    zone->sh = sh;

    return NGX_OK;
}


/* what cannot change as long as the data lives */

ngx_int_t
ngx_http_urlstore_zone_same(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    const char  *what, *how;

    what = ngx_http_urlstore_zone_differs(zone, old);

    if (what == NULL) {
        return ngx_http_urlstore_zone_marks(zone, old);
    }

    if (ngx_strcmp(what, "kind") == 0) {
        how = "give it another name";

    } else if (zone->persist && !ngx_http_urlstore_zone_stored(what)) {
        how = "stop nginx and start it again";

    } else if (zone->persist) {
        how = "its URLs were stored otherwise: a new path, which \"urlstore "
              "dump\" and \"urlstore import\" fill, can have another one";

    } else {
        how = "its URLs were stored otherwise: stop nginx and start it again, "
              "with an empty zone";
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "urlstore_zone \"%V\": its \"%s\" cannot change while nginx "
                  "runs; %s", &zone->name, what, how);

    return NGX_ERROR;
}


/* the first parameter that differs and cannot change, or NULL */

static const char *
ngx_http_urlstore_zone_differs(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    if (ngx_strcmp(zone->kind->name, old->kind->name) != 0) {
        return "kind";
    }

    if (zone->profile != old->profile) {
        return "profile";
    }

    if (zone->www != old->www) {
        return "www";
    }

    if (zone->conf.schemes_first != old->conf.schemes_first) {
        return "schemes";
    }

    if (zone->conf.norm.len != old->conf.norm.len
        || ngx_memcmp(zone->conf.norm.data, old->conf.norm.data,
                      zone->conf.norm.len)
           != 0)
    {
        return "normalization";
    }

    if (zone->conf.sites != old->conf.sites) {
        return "sites";
    }

    /* claims can be added */

    if (old->conf.revisit && zone->conf.revisit != old->conf.revisit) {
        return "revisit";
    }

    /* a zone can become shard 0, whose ids are the same */

    if (zone->first_id != old->first_id || (old->cluster && !zone->cluster)) {
        return "shard";
    }

    if (zone->conf.lookup != old->conf.lookup) {
        return "mode";
    }

    if (zone->huge != old->huge) {
        return "huge";
    }

    return ngx_http_urlstore_persist_same(zone, old);
}


/* whether the URLs in a directory depend on it, so that a restart refuses it */

static ngx_uint_t
ngx_http_urlstore_zone_stored(const char *what)
{
    return ngx_strcmp(what, "profile") == 0 || ngx_strcmp(what, "www") == 0
           || ngx_strcmp(what, "schemes") == 0
           || ngx_strcmp(what, "revisit") == 0
           || ngx_strcmp(what, "shard") == 0
           || ngx_strcmp(what, "normalization") == 0;
}


/* marks can be added, after those that the zone has */

static ngx_int_t
ngx_http_urlstore_zone_marks(ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_zone_t *old)
{
    ngx_uint_t  i;

    for (i = 0; i < old->conf.nmarks; i++) {

        if (i < zone->conf.nmarks
            && us_str_compare(zone->conf.marks[i], old->conf.marks[i]) == 0)
        {
            continue;
        }

        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "urlstore_zone \"%V\": its \"marks\" cannot change so: "
                      "number %ui is \"%*s\" in the zone; new marks are "
                      "allowed after those of the zone only",
                      &zone->name, i + 1,
                      old->conf.marks[i].len, old->conf.marks[i].data);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* in a worker, once */

ngx_int_t
ngx_http_urlstore_zone_open(ngx_http_urlstore_zone_t *zone, ngx_log_t *log)
{
    zone->tally = &zone->sh->tallies[ngx_worker % US_TALLIES];

    if (zone->kind->open && zone->kind->open(zone, log) != NGX_OK) {
        return NGX_ERROR;
    }

    zone->ws = us_norm_ws_create(zone->norm);

    if (zone->ws == NULL) {
        ngx_log_error(NGX_LOG_EMERG, log, 0,
                      "no memory for the normalizer of urlstore_zone \"%V\"",
                      &zone->name);
        return NGX_ERROR;
    }

    return ngx_http_urlstore_persist_start(zone);
}


void
ngx_http_urlstore_zone_close(ngx_http_urlstore_zone_t *zone)
{
    ngx_uint_t  i;

    ngx_http_urlstore_persist_stop(zone);

    ngx_http_urlstore_train_exit(zone);
    ngx_http_urlstore_shard_exit(zone);

    for (i = 0; i < NGX_HTTP_URLSTORE_PROFILES; i++) {
        if (zone->norms[i]) {
            us_norm_ws_destroy(zone->wss[i]);
            us_norm_destroy(zone->norms[i]);
            zone->norms[i] = NULL;
        }
    }

    if (zone->ws) {
        us_norm_ws_destroy(zone->ws);
        zone->ws = NULL;
    }

    if (zone->store) {
        us_store_close(zone->store);
        zone->store = NULL;
    }
}
