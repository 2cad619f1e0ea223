
/*
 * A zone's life.
 *
 *     slab pool of the nginx zone
 *     +--------+------------+-------+-----------------------------+-------+
 *     | header | sh, log_ctx| slots | mem: one piece for the store| spare |
 *     +--------+------------+-------+-----------------------------+-------+
 *
 * Parsing the configuration names the zone and makes its normalizer.  Its
 * init callback runs in the master: it formats a new mapping or, on reload,
 * adopts the old one, and refuses what the data cannot follow (a changed
 * size would silently get an empty zone from nginx).  Each worker opens a
 * handle of its own.
 *
 * The only lock is shpool->mutex: the master releases it when its holder
 * dies.  The init callback also runs under `nginx -t` and before it is known
 * whether the new configuration will be taken: adopting changes nothing.
 */


#include "ngx_http_urlstore.h"

#include <sys/mman.h>
#include <sys/random.h>


/* pages of the slab pool that are left to nginx and to small things */

#define NGX_HTTP_URLSTORE_SPARE   16


static ngx_int_t ngx_http_urlstore_zone_init(ngx_shm_zone_t *shm_zone,
    void *data);
static ngx_int_t ngx_http_urlstore_zone_create(
    ngx_http_urlstore_zone_t *zone);
static ngx_uint_t ngx_http_urlstore_word(u_char c);
static void ngx_http_urlstore_zone_cleanup(void *data);
static void ngx_http_urlstore_lock(void *data);
static void ngx_http_urlstore_unlock(void *data);

static ngx_int_t ngx_http_urlstore_opt_schemes(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_marks(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_sites(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);
static ngx_int_t ngx_http_urlstore_opt_huge(ngx_conf_t *cf,
    ngx_http_urlstore_zone_t *zone, ngx_str_t *value);


static ngx_http_urlstore_option_t  ngx_http_urlstore_options[] = {

    { ngx_string("profile"), ngx_http_urlstore_opt_profile },
    { ngx_string("www"), ngx_http_urlstore_opt_www },
    { ngx_string("schemes"), ngx_http_urlstore_opt_schemes },
    { ngx_string("marks"), ngx_http_urlstore_opt_marks },
    { ngx_string("sites"), ngx_http_urlstore_opt_sites },
    { ngx_string("huge"), ngx_http_urlstore_opt_huge },
    { ngx_string("path"), ngx_http_urlstore_opt_path },
    { ngx_string("sync"), ngx_http_urlstore_opt_sync },
    { ngx_string("mode"), ngx_http_urlstore_opt_mode },
    { ngx_string("snapshot"), ngx_http_urlstore_opt_snapshot },
    { ngx_string("scrub"), ngx_http_urlstore_opt_scrub },

    { ngx_null_string, NULL }
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

    if (ngx_http_urlstore_persist_conf(cf, zone, size) != NGX_OK) {
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


/* NAME and SIZE, the first two arguments of a directive that makes a zone */

ngx_http_urlstore_zone_t *
ngx_http_urlstore_zone_declare(ngx_conf_t *cf, size_t *size)
{
    off_t                      n;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_urlstore_zone_t  *zone;

    value = cf->args->elts;

    /* it becomes a label of the metrics, and a string of JSON */

    for (i = 0; i < value[1].len; i++) {
        if (!ngx_http_urlstore_word(value[1].data[i])) {
            break;
        }
    }

    if (i == 0 || i < value[1].len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid name \"%V\" of %V: "
                           "letters, digits, - and _", &value[1], &value[0]);
        return NULL;
    }

    zone = ngx_http_urlstore_zone_find(cf, &value[1]);
    if (zone == NULL) {
        return NULL;
    }

    if (zone->shm_zone) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate %V \"%V\"", &value[0], &value[1]);
        return NULL;
    }

    n = ngx_parse_offset(&value[2]);             /* unlike _size, takes "g" */

    if (n == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\" of %V \"%V\"",
                           &value[2], &value[0], &value[1]);
        return NULL;
    }

    *size = ngx_align((size_t) n, ngx_pagesize);

    return zone;
}


/* the arguments from the third on */

ngx_int_t
ngx_http_urlstore_zone_options(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_http_urlstore_option_t *options)
{
    ngx_str_t                   *value, v;
    ngx_uint_t                   i, seen;
    ngx_http_urlstore_option_t  *opt;

    value = cf->args->elts;
    seen = 0;

    for (i = 3; i < cf->args->nelts; i++) {

        for (opt = options; opt->name.len; opt++) {

            if (value[i].len > opt->name.len
                && value[i].data[opt->name.len] == '='
                && ngx_strncmp(value[i].data, opt->name.data, opt->name.len)
                   == 0)
            {
                break;
            }
        }

        if (opt->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of %V",
                               &value[i], &value[0]);
            return NGX_ERROR;
        }

        if (seen & ((ngx_uint_t) 1 << (opt - options))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\" of %V \"%V\"",
                               &opt->name, &value[0], &value[1]);
            return NGX_ERROR;
        }

        seen |= (ngx_uint_t) 1 << (opt - options);

        v.data = value[i].data + opt->name.len + 1;
        v.len = value[i].len - opt->name.len - 1;

        if (opt->parse(cf, zone, &v) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid value \"%V\" of parameter \"%V\" "
                               "of %V \"%V\"",
                               &v, &opt->name, &value[0], &value[1]);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* its normalizer, and its shared memory */

char *
ngx_http_urlstore_zone_add(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    size_t size, ngx_shm_zone_init_pt init)
{
    zone->norm = us_norm_create(zone->profile);
    if (zone->norm == NULL) {
        return NGX_CONF_ERROR;
    }

    us_norm_set_www(zone->norm, zone->www);

    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size,
                                           &ngx_http_urlstore_module);
    if (zone->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->shm_zone->init = init;
    zone->shm_zone->data = zone;

    return NGX_CONF_OK;
}


/* the zone of this name, which may be declared further down */

ngx_http_urlstore_zone_t *
ngx_http_urlstore_zone_find(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                       i;
    ngx_pool_cleanup_t              *cln;
    ngx_http_urlstore_zone_t        *zone, **zp;
    ngx_http_urlstore_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_urlstore_module);

    zp = umcf->zones.elts;

    for (i = 0; i < umcf->zones.nelts; i++) {
        if (zp[i]->name.len == name->len
            && ngx_strncmp(zp[i]->name.data, name->data, name->len) == 0)
        {
            return zp[i];
        }
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_http_urlstore_zone_t));
    if (cln == NULL) {
        return NULL;
    }

    zone = cln->data;
    ngx_memzero(zone, sizeof(ngx_http_urlstore_zone_t));

    cln->handler = ngx_http_urlstore_zone_cleanup;

    zone->name = *name;
    zone->profile = US_PROFILE_CRAWLER;
    zone->www = US_WWW_FIRST;

    zp = ngx_array_push(&umcf->zones);
    if (zp == NULL) {
        return NULL;
    }

    *zp = zone;

    return zone;
}


/*
 * nginx would give the workers of a reload a new, empty zone if only its size
 * has changed.
 */

ngx_int_t
ngx_http_urlstore_zone_resized(ngx_conf_t *cf, ngx_str_t *name, size_t size)
{
    ngx_uint_t        i;
    ngx_cycle_t      *old;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *shm_zone;

    old = cf->cycle->old_cycle;

    if (old == NULL || ngx_is_init_cycle(old)) {
        return NGX_OK;
    }

    part = &old->shared_memory.part;
    shm_zone = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            shm_zone = part->elts;
            i = 0;
        }

        if (shm_zone[i].tag != &ngx_http_urlstore_module
            || shm_zone[i].shm.name.len != name->len
            || ngx_strncmp(shm_zone[i].shm.name.data, name->data, name->len)
               != 0)
        {
            continue;
        }

        if (shm_zone[i].shm.size == size) {
            return NGX_OK;
        }

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "urlstore_zone \"%V\": its size cannot change "
                           "from %uz to %uz while nginx runs, for its URLs "
                           "would be lost; stop nginx and start it again",
                           name, shm_zone[i].shm.size, size);
        return NGX_ERROR;
    }

    return NGX_OK;
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

    if (ngx_http_urlstore_zone_create(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_urlstore_persist_init(zone, NULL);
}


/* what the workers share beside the URLs; NULL: no memory */

ngx_http_urlstore_sh_t *
ngx_http_urlstore_zone_share(ngx_http_urlstore_zone_t *zone)
{
    size_t                   len;
    ngx_slab_pool_t         *shpool;
    ngx_http_urlstore_sh_t  *sh;

    shpool = zone->shpool;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_sh_t));
    if (sh == NULL) {
        return NULL;
    }

    len = sizeof(" in urlstore_zone \"\"") + zone->name.len;

    shpool->log_ctx = ngx_slab_alloc(shpool, len);
    if (shpool->log_ctx == NULL) {
        return NULL;
    }

    ngx_sprintf(shpool->log_ctx, " in urlstore_zone \"%V\"%Z", &zone->name);

    shpool->log_nomem = 0;

    sh->slots = ngx_slab_calloc(shpool, sizeof(ngx_http_urlstore_slot_t)
                                        * NGX_HTTP_URLSTORE_SLOTS);
    if (sh->slots == NULL) {
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

    if (getrandom(zone->conf.uuid, 16, 0) != 16
        || getrandom(zone->conf.hash_key, 16, 0) != 16)
    {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "getrandom() failed");
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
    unsigned     i;
    const char  *what;
    us_str_t    *a, *b;

    what = NULL;

    if ((zone->filter == NULL) != (old->filter == NULL)) {
        what = "kind";

    } else if (zone->profile != old->profile) {
        what = "profile";

    } else if (zone->www != old->www) {
        what = "www";

    } else if (zone->conf.schemes_first != old->conf.schemes_first) {
        what = "schemes";

    } else if (zone->conf.sites != old->conf.sites) {
        what = "sites";

    } else if (zone->conf.lookup != old->conf.lookup) {
        what = "mode";

    } else if (ngx_http_urlstore_persist_same(zone, old)) {
        what = ngx_http_urlstore_persist_same(zone, old);

    } else if (zone->conf.nmarks != old->conf.nmarks) {
        what = "marks";

    } else if (zone->conf.norm.len != old->conf.norm.len
               || ngx_memcmp(zone->conf.norm.data, old->conf.norm.data,
                             zone->conf.norm.len)
                  != 0)
    {
        what = "normalization";
    }

    for (i = 0; what == NULL && i < zone->conf.nmarks; i++) {
        a = &zone->conf.marks[i];
        b = &old->conf.marks[i];

        if (a->len != b->len || ngx_memcmp(a->data, b->data, a->len) != 0) {
            what = "marks";
        }
    }

    if (what) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "urlstore_zone \"%V\": its \"%s\" cannot change while "
                      "nginx runs, for the URLs in it were stored otherwise; "
                      "stop nginx and start it again", &zone->name, what);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* in a worker, once */

ngx_int_t
ngx_http_urlstore_zone_open(ngx_http_urlstore_zone_t *zone, ngx_log_t *log)
{
    us_store_lock_t  lock;

    zone->slot = &zone->sh->slots[ngx_worker % NGX_HTTP_URLSTORE_SLOTS];

    if (zone->filter == NULL) {
        ngx_http_urlstore_zone_lock(zone, &lock);

        zone->store = us_store_open(zone->sh->mem, &lock);

        if (zone->store == NULL) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "opening urlstore_zone \"%V\" failed", &zone->name);
            return NGX_ERROR;
        }

        us_store_conf(zone->store, &zone->conf);
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


void
ngx_http_urlstore_zone_lock(ngx_http_urlstore_zone_t *zone,
    us_store_lock_t *lock)
{
    lock->lock = ngx_http_urlstore_lock;
    lock->unlock = ngx_http_urlstore_unlock;
    lock->data = zone;
}


static void
ngx_http_urlstore_lock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    if (ngx_shmtx_trylock(&zone->shpool->mutex)) {
        return;
    }

    ngx_http_urlstore_count(zone, NGX_HTTP_URLSTORE_N_LOCK_WAITS, 1);

    ngx_shmtx_lock(&zone->shpool->mutex);
}


static void
ngx_http_urlstore_unlock(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    ngx_shmtx_unlock(&zone->shpool->mutex);
}


/* of the configuration's pool: the mapping may be gone by now */

static void
ngx_http_urlstore_zone_cleanup(void *data)
{
    ngx_http_urlstore_zone_t *zone = data;

    if (zone->norm) {
        us_norm_destroy(zone->norm);
        zone->norm = NULL;
    }
}


ngx_int_t
ngx_http_urlstore_opt_profile(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    int       profile;
    us_str_t  name;

    name.data = value->data;
    name.len = value->len;

    profile = us_profile_parse(name);

    if (profile == -1) {
        return NGX_ERROR;
    }

    zone->profile = profile;

    return NGX_OK;
}


ngx_int_t
ngx_http_urlstore_opt_www(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "first") == 0) {
        zone->www = US_WWW_FIRST;

    } else if (ngx_strcmp(value->data, "keep") == 0) {
        zone->www = US_WWW_KEEP;

    } else if (ngx_strcmp(value->data, "strip") == 0) {
        zone->www = US_WWW_STRIP;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_schemes(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "first") == 0) {
        zone->conf.schemes_first = 1;

    } else if (ngx_strcmp(value->data, "keep") == 0) {
        zone->conf.schemes_first = 0;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_urlstore_word(u_char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}


/* marks=A,B,...: words of letters, digits, - and _ */

static ngx_int_t
ngx_http_urlstore_opt_marks(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    u_char      c, *p, *start, *last;
    us_str_t    name;
    ngx_uint_t  i;

    start = value->data;
    last = value->data + value->len;

    for (p = start; p <= last; p++) {

        c = p < last ? *p : ',';

        if (c != ',') {
            if (!ngx_http_urlstore_word(c)) {
                return NGX_ERROR;
            }

            continue;
        }

        name.data = start;
        name.len = p - start;

        if (name.len == 0 || name.len > US_STORE_MARK_LEN
            || zone->conf.nmarks == US_STORE_MARKS)
        {
            return NGX_ERROR;
        }

        for (i = 0; i < zone->conf.nmarks; i++) {
            if (zone->conf.marks[i].len == name.len
                && ngx_memcmp(zone->conf.marks[i].data, name.data, name.len)
                   == 0)
            {
                return NGX_ERROR;
            }
        }

        zone->conf.marks[zone->conf.nmarks++] = name;
        start = p + 1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_sites(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "on") == 0) {
        zone->conf.sites = 1;

    } else if (ngx_strcmp(value->data, "off") == 0) {
        zone->conf.sites = 0;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_urlstore_opt_huge(ngx_conf_t *cf, ngx_http_urlstore_zone_t *zone,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "on") == 0) {
        zone->huge = 1;

    } else if (ngx_strcmp(value->data, "off") == 0) {
        zone->huge = 0;

    } else {
        return NGX_ERROR;
    }

    return NGX_OK;
}
